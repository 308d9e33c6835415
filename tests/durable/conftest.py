"""Databases for durable runs: an SQLite file, or a database on a PostgreSQL server shared by the session."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from benchmarks.postgres import Server, program

_NUMBERS = count(1)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A PostgreSQL server with the tables of durable runs in the template database `prepared`."""
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'psycopg[binary]'")
    if program("initdb") is None:
        pytest.skip("PostgreSQL is not installed")
    from flujo_aros.durable import Durable

    with TemporaryDirectory() as folder, Server(Path(folder)) as server:
        with Durable(server.database("prepared")) as durable:
            _ = durable.client
        yield server


@pytest.fixture
def postgres(server: Server) -> str:
    """A new database in PostgreSQL."""
    return server.database(f"test{next(_NUMBERS)}", template="prepared")


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new database: an SQLite file, then a PostgreSQL database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'runs.sqlite'}"
    postgres: Callable[[], str] | str = request.getfixturevalue("postgres")
    return str(postgres)
