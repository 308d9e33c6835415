"""Opens the database of a journal: a SQLite file, or any other by its URL."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, Engine, Table, inspect, select, text
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from sqlalchemy.schema import CreateIndex, CreateTable

from flujo_aros.database import database_url, open_engine, refusal, shown
from flujo_aros.errors import UsageError
from flujo_aros.telemetry.records import ABOUT, METADATA, VERSION

DEFAULT: Final = "sqlite:///.aros/runs.sqlite"
"""The default journal of a folder."""

_TRIES: Final = 20
_WAIT: Final = 5.0
"""How many seconds a run waits for the file of its journal: a run is worth more than its record."""
_LOCK: Final = 4_711_042
"""The key of the advisory lock that guards the creation of tables in PostgreSQL."""


def open_database(source: str | Path, *, create: bool = True) -> Engine:
    """The engine of a journal. Missing tables are created.

    Raises `UsageError`, one sentence, when it cannot be opened, or, with `create=False`, when it does not exist.
    """
    missing = None if create else "run a blueprint first, or set AROS_JOURNAL to another"
    engine = open_engine(source, "journal", missing=missing, wait=_WAIT)
    try:
        _make_tables(engine)
    except SQLAlchemyError as error:
        engine.dispose()
        raise UsageError(f"the journal {shown(engine.url)} {refusal(error, engine.url)}") from error
    return engine


def file_of(source: str | Path) -> Path | None:
    """The file that a journal is kept in; None for a database that is not a file."""
    url = database_url(source, "journal")
    return Path(url.database) if url.get_backend_name() == "sqlite" and url.database else None


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
        _add_columns(connection, table)
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


def _add_columns(connection: Connection, table: Table) -> None:
    """Add the columns that a journal of an earlier version lacks. Its existing rows have NULL there."""
    there = {column["name"] for column in inspect(connection).get_columns(table.name)}
    for column in table.columns:
        if column.name not in there:
            kind = column.type.compile(connection.dialect)
            connection.execute(text(f"ALTER TABLE {table.name} ADD COLUMN {column.name} {kind}"))
