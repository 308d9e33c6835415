"""Opens the database of a journal: a SQLite file, or any other by its URL."""

from __future__ import annotations

import logging
import os
import sqlite3
import stat
import time
from pathlib import Path
from typing import Any, Final, cast

from sqlalchemy import Connection, Engine, Table, create_engine, event, inspect, select, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, OperationalError, SQLAlchemyError
from sqlalchemy.schema import CreateIndex, CreateTable

from flujo_aros.errors import UsageError
from flujo_aros.telemetry.folder import HIDDEN, close_to_others, make_folder_of, make_private
from flujo_aros.telemetry.masking import Mask
from flujo_aros.telemetry.records import ABOUT, METADATA, VERSION

DEFAULT: Final = "sqlite:///.aros/runs.sqlite"
"""The default journal of a folder."""

_EXPECTED: Final = "expected a file, sqlite:///FILE or postgresql://USER@HOST/DATABASE"
_BUSY_MS: Final = 5_000
_TRIES: Final = 20
_PRAGMAS: Final = (
    f"PRAGMA busy_timeout = {_BUSY_MS}",
    "PRAGMA journal_mode = WAL",  # readers and one writer at a time do not wait for each other
    "PRAGMA synchronous = NORMAL",  # a power cut may take the last moments, never the file
    "PRAGMA temp_store = MEMORY",
)
_log: Final = logging.getLogger("flujo_aros.journal")
_LOCK: Final = 4_711_042
"""The key of the advisory lock that guards the creation of tables in PostgreSQL."""


def database_url(source: str | Path) -> URL:
    """The URL of a journal. A path is a SQLite file; `postgresql://` connects through psycopg.

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
        raise UsageError(f"the URL of the journal is invalid: {_EXPECTED}") from error
    return url.set(drivername="postgresql+psycopg") if url.drivername in ("postgresql", "postgres") else url


def open_database(source: str | Path, *, create: bool = True) -> Engine:
    """The engine of a journal. Missing tables are created.

    Raises `UsageError`, one sentence, when it cannot be opened, or, with `create=False`, when it does not exist.
    """
    url = database_url(source)
    if url.get_backend_name() == "sqlite":
        _prepare_file(url, create=create)
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise UsageError(f"the journal {shown(url)} is neither SQLite nor PostgreSQL: {_EXPECTED}")
    try:
        engine = create_engine(url)
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        message = f"the journal {shown(url)} needs a driver: {error}; pip install 'flujo_aros[postgres]'"
        raise UsageError(message) from error
    if url.get_backend_name() == "sqlite":
        event.listen(engine, "connect", _set_pragmas)
    try:
        _make_tables(engine)
    except SQLAlchemyError as error:
        engine.dispose()
        raise UsageError(f"the journal {shown(url)} cannot be opened: {said(error)}{_advice(error, url)}") from error
    return engine


def file_of(source: str | Path) -> Path | None:
    """The file of a journal; None for a database that is not a file."""
    url = database_url(source)
    return Path(url.database) if url.get_backend_name() == "sqlite" and url.database else None


def _advice(error: SQLAlchemyError, url: URL) -> str:
    """Advice for a file that cannot be opened. It is never deleted or overwritten."""
    damaged = any(words in said(error) for words in ("malformed", "not a database", "disk image"))
    return f"; move it away to start a new one (mv {url.database} {url.database}.bad)" if damaged else ""


def shown(url: URL) -> str:
    """A URL without its password, for messages."""
    return Mask()(url.render_as_string(hide_password=True))


def _prepare_file(url: URL, *, create: bool) -> None:
    """Create the file of a new journal, readable by its owner only; SQLite gives its companion files the same
    permissions."""
    if url.database in (None, "", ":memory:"):
        raise UsageError("the journal needs a file: sqlite:///FILE")
    file = Path(str(url.database))
    if not create and not file.exists():
        raise UsageError(f"there is no journal at {file}: run a blueprint first, or set AROS_JOURNAL to another")
    try:
        make_folder_of(file)
        new = create and make_private(file)
    except OSError as error:
        message = f"the journal {file} cannot be created: {error.strerror or error}; set AROS_JOURNAL to another path"
        raise UsageError(message) from error
    if not new:
        _keep_private(file)


def _keep_private(file: Path) -> None:
    """Make a journal in `.aros` private. One elsewhere may be shared on purpose, so log a warning if others can read
    it."""
    if any(folder.name == HIDDEN for folder in file.parents):
        closed = [close_to_others(file.with_name(f"{file.name}{end}")) for end in ("", "-wal", "-shm")]
        if all(closed):
            return
    if os.name != "nt" and file.stat().st_mode & stat.S_IROTH:
        _log.warning("every user of this machine can read the journal %s: chmod 600 makes it private", file)


def _set_pragmas(connection: sqlite3.Connection, _record: Any) -> None:
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


def said(error: SQLAlchemyError) -> str:
    """The message of a database error, on one line."""
    lines = str(getattr(error, "orig", None) or error).strip().splitlines() or [type(error).__name__]
    return Mask()(lines[0])
