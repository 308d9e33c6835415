"""Opens the database of a journal: a SQLite file, or any other by its URL."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any, Final, cast

from sqlalchemy import Connection, Engine, create_engine, event, select, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, OperationalError, SQLAlchemyError
from sqlalchemy.schema import CreateIndex, CreateTable

from flujo_aros.errors import UsageError
from flujo_aros.telemetry.folder import make_folder_of
from flujo_aros.telemetry.masking import Mask
from flujo_aros.telemetry.tables import ABOUT, METADATA, VERSION

DEFAULT: Final = "sqlite:///.aros/runs.sqlite"
"""The journal of a folder, unless another is named."""

_EXPECTED: Final = "expected a file, sqlite:///FILE or postgresql://USER@HOST/DATABASE"
_BUSY_MS: Final = 5_000
_TRIES: Final = 20
_PRAGMAS: Final = (
    f"PRAGMA busy_timeout = {_BUSY_MS}",
    "PRAGMA journal_mode = WAL",  # readers and one writer at a time do not wait for each other
    "PRAGMA synchronous = NORMAL",  # a power cut may take the last moments, never the file
    "PRAGMA temp_store = MEMORY",
)
_LOCK: Final = 4_711_042
"""The number of the lock under which PostgreSQL makes the tables."""


def database_url(source: str | Path) -> URL:
    """The URL of a journal. A path is a SQLite file; `postgresql://` speaks through psycopg.

    >>> str(database_url("runs.sqlite"))
    'sqlite:///runs.sqlite'
    """
    if not isinstance(cast("object", source), (str, Path)):
        raise UsageError(f"a journal cannot be opened at {source!r}: {_EXPECTED}")
    told = str(source)
    if "://" not in told:
        return URL.create("sqlite", database=told)
    try:
        url = make_url(told)
    except ArgumentError as error:
        raise UsageError(f"the journal's URL cannot be read: {_EXPECTED}") from error
    return url.set(drivername="postgresql+psycopg") if url.drivername in ("postgresql", "postgres") else url


def open_database(source: str | Path, *, create: bool = True) -> Engine:
    """The engine of a journal, its tables made where they are not there yet.

    Raises `UsageError`, one sentence, when it cannot be opened; with `create=False` also when it is not there.
    """
    url = database_url(source)
    if url.get_backend_name() == "sqlite":
        _check_file(url, create=create)
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise UsageError(f"the journal {shown(url)} is neither SQLite nor PostgreSQL: {_EXPECTED}")
    try:
        engine = create_engine(url)
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        message = f"the journal {shown(url)} needs a driver: {error}; pip install 'psycopg[binary]'"
        raise UsageError(message) from error
    if url.get_backend_name() == "sqlite":
        event.listen(engine, "connect", _prepare)
    try:
        _make_tables(engine)
    except SQLAlchemyError as error:
        engine.dispose()
        raise UsageError(f"the journal {shown(url)} cannot be opened: {said(error)}") from error
    return engine


def shown(url: URL) -> str:
    """A URL as it may be shown: without its password."""
    return Mask()(url.render_as_string(hide_password=True))


def _check_file(url: URL, *, create: bool) -> None:
    if url.database in (None, "", ":memory:"):
        raise UsageError("the journal needs a file: sqlite:///FILE")
    file = Path(str(url.database))
    if not create and not file.exists():
        raise UsageError(f"there is no journal at {file}: run something first, or name another with AROS_JOURNAL")
    try:
        make_folder_of(file)
    except OSError as error:
        message = f"the journal {file} cannot be made: {error.strerror or error}; AROS_JOURNAL names another place"
        raise UsageError(message) from error


def _prepare(connection: sqlite3.Connection, _record: Any) -> None:
    for pragma in _PRAGMAS:
        connection.execute(pragma)


def _make_tables(engine: Engine) -> None:
    for left in reversed(range(_TRIES)):
        try:
            with engine.begin() as connection:
                _make_in(connection)
            return
        except OperationalError as error:
            # Two processes that make the same new file at once: SQLite does not wait for a change of journal mode.
            if not left or "locked" not in str(error):
                raise
            time.sleep(0.05)


def _make_in(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
    for table in METADATA.sorted_tables:
        connection.execute(CreateTable(table, if_not_exists=True))
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            connection.execute(CreateIndex(index, if_not_exists=True))
    found = connection.execute(select(ABOUT.c.version)).scalars().all()
    if not found:
        # Somebody else may just have done so.
        connection.execute(
            text("INSERT INTO aros_journal (version) VALUES (:now) ON CONFLICT DO NOTHING"), {"now": VERSION}
        )
    elif max(found) > VERSION:
        raise UsageError("the journal was written by a newer version of flujo_aros: upgrade, or name another journal")


def said(error: SQLAlchemyError) -> str:
    """What a database said, on one line."""
    lines = str(getattr(error, "orig", None) or error).strip().splitlines() or [type(error).__name__]
    return Mask()(lines[0])
