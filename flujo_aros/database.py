"""Opens the databases in which runs are stored: a SQLite file, readable by its owner only, or PostgreSQL by its URL.

The journal, durable runs and event logs are all opened here, so a URL means the same everywhere, files in `.aros` are
equally private, and errors are one sentence that never shows a password.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import stat
import time
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, cast

from flujo_aros.errors import UsageError, file_errors, other_release
from flujo_aros.lazy import naming_extra
from flujo_aros.redaction import without_secrets

with naming_extra("flujo_aros.database", "flujo_aros.database"):
    from sqlalchemy import Column, Connection, Engine, MetaData, create_engine, event, insert, inspect, select, text
    from sqlalchemy.engine import URL, make_url
    from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
    from sqlalchemy.schema import CreateIndex, CreateTable

_EXPECTED: Final = "expected a file, sqlite:///FILE or postgresql://USER@HOST/DATABASE"
_log: Final = logging.getLogger("flujo_aros.database")


def database_url(source: str | Path, noun: str = "database") -> URL:
    """Return the URL of a database. A path is a SQLite file; `postgresql://` is opened with psycopg.

    `noun` is the name of the database in errors. Raises `UsageError` for anything else.

    >>> str(database_url("runs.sqlite"))
    'sqlite:///runs.sqlite'
    """
    if not isinstance(cast("object", source), (str, Path)):
        raise UsageError(f"the {noun} cannot be opened at {source!r}: {_EXPECTED}")
    text = str(source)
    if "://" not in text:
        return URL.create("sqlite", database=text)
    try:
        url = make_url(text)
    except ArgumentError as error:
        raise UsageError(f"the URL of the {noun} is invalid: {_EXPECTED}") from error
    if url.drivername in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise UsageError(f"the {noun} {shown(url)} is neither SQLite nor PostgreSQL: {_EXPECTED}")
    return url


def open_engine(
    source: str | Path,
    noun: str,
    make_tables: Callable[[Engine], None],
    *,
    missing: str | None = None,
    wait: float = 30.0,
) -> Engine:
    """Return the SQLAlchemy engine of a database. Several processes may use a SQLite file: each waits up to `wait`
    seconds for its turn.

    With `missing`, the file must exist; `missing` is the part of the error message that says what to do if it does not.
    Otherwise it is created, readable by its owner only. `make_tables` is called with the engine. Raises `UsageError`,
    one sentence that calls the database `noun`, for a database that cannot be opened, and leaves no connection open.
    """
    url = database_url(source, noun)
    is_file = url.get_backend_name() == "sqlite"
    if is_file:
        _prepare_file(url, noun, missing)
    pool: dict[str, Any] = {} if is_file else {"pool_pre_ping": True, "pool_size": 20, "max_overflow": 10}
    try:
        engine = create_engine(url, **pool)
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        message = f"the {noun} {shown(url)} needs a driver: {error}; pip install 'flujo_aros[postgres]'"
        raise UsageError(message) from error

    def prepare(connection: sqlite3.Connection, _record: Any) -> None:
        connection.isolation_level = "IMMEDIATE"  # a transaction that writes waits for the lock, and never deadlocks
        connection.execute(f"PRAGMA busy_timeout = {round(wait * 1000)}")
        if missing is None:  # a database that must exist is not changed: it may belong to another program
            _log_ahead(connection, time.monotonic() + wait)
        # a power failure may lose the last commits, but never the file
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA foreign_keys = ON")
        add_functions(connection)

    if is_file:
        event.listen(engine, "connect", prepare)
    try:
        make_tables(engine)
    except (SQLAlchemyError, UsageError) as error:
        engine.dispose()
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"the {noun} {shown(url)} {refusal(error, url)}") from error
    return engine


def read_rows(source: str | Path, query: str, **values: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query in SQL. Raises `UsageError` for a database that does not exist or cannot be read."""
    engine = open_engine(source, "database", lambda _: None, missing="nothing is stored there yet")
    try:
        with engine.connect() as connection:
            return [tuple(row) for row in connection.execute(text(query), values)]
    except SQLAlchemyError as error:
        raise UsageError(f"the database {shown(engine.url)} {refusal(error, engine.url)}") from error
    finally:
        engine.dispose()


def create_tables(connection: Connection, metadata: MetaData) -> None:
    """Create what is missing of these tables: one process does, and others wait. A table of an earlier version gets the
    columns that it lacks, which are NULL in its existing rows.
    """
    if _missing_columns(connection, metadata):
        is_sqlite = connection.dialect.name == "sqlite"
        connection.exec_driver_sql("BEGIN IMMEDIATE" if is_sqlite else f"SELECT pg_advisory_xact_lock({_LOCK})")
    for table in metadata.sorted_tables:
        connection.execute(CreateTable(table, if_not_exists=True))
    for column in _missing_columns(connection, metadata):  # again: another process may have added them before the lock
        kind = column.type.compile(connection.dialect)
        connection.execute(text(f"ALTER TABLE {column.table.name} ADD COLUMN {column.name} {kind}"))
    for table in metadata.sorted_tables:
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            connection.execute(CreateIndex(index, if_not_exists=True))


def _missing_columns(connection: Connection, metadata: MetaData) -> list[Column[Any]]:
    """Return the columns that the database lacks: all columns of a table that it lacks."""
    found = inspect(connection)
    tables = metadata.tables.keys() & set(found.get_table_names())
    there = {(table, column["name"]) for table in tables for column in found.get_columns(table)}
    every = [column for table in metadata.sorted_tables for column in table.columns]
    return [column for column in every if (column.table.name, column.name) not in there]


def make_tables(
    engine: Engine, version: Column[int], known: int, contents: str, *, create: bool, earlier: str | None = None
) -> None:
    """Create the tables; one of them has the column with their version. Tables of an earlier version are upgraded.

    Raises `UsageError` if theirs is newer than the one that is `known`; or older, if `earlier` says what to do then.
    Without `create`, it is also raised for a database without these `contents`, which is left unchanged.
    """
    where = f"the database {shown(engine.url)}"
    with engine.begin() as connection:
        exists = inspect(connection).has_table(version.table.name)
        if not exists and not create:
            raise UsageError(f"{where} contains no {contents}; is this the right URL?")
        if not exists or earlier is None:
            create_tables(connection, version.table.metadata)
        found = connection.execute(select(version)).scalar()
        if found is None:
            connection.execute(insert(version.table).values({version.name: known}))
        elif found > known or (found < known and earlier is not None):
            raise other_release(where, found, known, earlier=earlier or "")


def find_run(connection: Connection, ids: Column[str], newest: Column[float], run: str, where: str) -> str:
    """Return the id of the run with this id or prefix of at least 4 characters, or of the newest one for `last`. Raises
    `UsageError` if no run matches, or more than one; `where` says where they are, and what lists them.
    """
    if not run:  # such as a shell variable that is not set
        raise UsageError(
            f"the run id is empty: pass an id, a prefix of at least {SHORTEST_PREFIX} characters or `last`"
        )
    is_short = len(run) < SHORTEST_PREFIX
    query = select(ids).order_by((ids == run).desc(), newest.desc())
    if run != "last":
        query = query.where(ids == run if is_short else ids.startswith(run, autoescape=True))
    found = connection.execute(query.limit(1 if run == "last" else _SHOWN_MATCHES + 1)).scalars().all()
    if run in found or len(found) == 1:
        return run if run in found else str(found[0])
    if not found:
        why = f" (a prefix needs at least {SHORTEST_PREFIX} characters)" if is_short else ""
        why = " (did you mean 'last'?)" if get_close_matches(run, ["last"]) else why
        raise UsageError(f"there is no run {run!r}{why} in {where}")
    several = ", ".join(found[:_SHOWN_MATCHES])
    raise UsageError(f"{run!r} matches more than one run: {several}; use more characters")


SHORTEST_PREFIX: Final = 4
"""The minimum length of a prefix that names a run: a typing error must not reach another run."""
_SHOWN_MATCHES: Final = 5
_LOCK: Final = 4_711_042
"""The key of the advisory lock that guards the creation of tables in PostgreSQL."""


def shown(url: URL | str) -> str:
    """Return a URL without its password, safe to display.

    >>> shown("postgresql://me:hunter2@db.example.com/runs")
    'postgresql://me@db.example.com/runs'
    """
    parsed = make_url(url)
    bare = URL.create(
        parsed.get_backend_name(), parsed.username, None, parsed.host, parsed.port, parsed.database, parsed.query
    )
    return without_secrets(bare.render_as_string(hide_password=False))


def cause(error: Exception) -> str:
    """Return the message of a database error, on one line and masked."""
    lines = str(getattr(error, "orig", None) or error).strip().splitlines() or [type(error).__name__]
    return without_secrets(lines[0])


def refusal(error: SQLAlchemyError, url: URL) -> str:
    """Return a database error and what to do about it, as the end of a sentence that begins with the name of the
    database.
    """
    message = cause(error)
    if "readonly" in message or "read-only" in message:
        return f"cannot be written ({message}): make the file and its folder writable, or name another"
    if "full" in message and url.get_backend_name() == "sqlite":
        return f"cannot be written: the disk is full ({message}); nothing is lost: free some space and run again"
    if "disk I/O error" in message:
        return (
            f"cannot be read or written ({message}): is the disk full? Nothing is lost: free some space and run again"
        )
    if any(words in message for words in ("not a database", "malformed", "disk image")):
        # The file is never deleted or overwritten.
        return f"cannot be opened: {message}; move it away to start a new one (mv {url.database} {url.database}.bad)"
    if "unable to open" in message:
        return f"cannot be opened ({message}): check that its folder exists and is writable"
    if url.get_backend_name() != "sqlite" and any(
        words in message for words in ("connect", "refused", "closed", "terminat")
    ):
        return f"cannot be reached ({message})"
    return f"cannot be used: {message}"


def _prepare_file(url: URL, noun: str, missing: str | None) -> None:
    """Create a file that only its owner can read; SQLite gives its companion files the same permissions."""
    if url.database in (None, "", ":memory:"):
        raise UsageError(f"the {noun} needs a file, since an in-memory database would be lost: sqlite:///FILE")
    file = Path(str(url.database))
    if missing is not None and not file.exists():
        raise UsageError(f"there is no {noun} at {file}: {missing}")
    with file_errors(f"the {noun} {file} cannot be created", "; name a file in another folder"):
        make_folder_of(file)
        new = make_private(file)
    if not new:
        _keep_private(file, noun)


def _keep_private(file: Path, noun: str) -> None:
    """Make a file in `.aros` private; for one elsewhere, which may be shared on purpose, log a warning."""
    if any(folder.name == HIDDEN for folder in file.parents):
        closed = [close_to_others(file.with_name(f"{file.name}{end}")) for end in ("", "-wal", "-shm")]
        if all(closed):
            return
    if os.name != "nt" and file.stat().st_mode & stat.S_IROTH:
        _log.warning("every user on this machine can read the %s %s: chmod 600 makes it private", noun, file)


def _log_ahead(connection: sqlite3.Connection, deadline: float) -> None:
    """Switch to the write-ahead log, so that readers and the writer do not wait for each other.

    If another process is switching a new file at this moment, SQLite refuses immediately, whatever its `busy_timeout`.
    """
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def add_functions(connection: sqlite3.Connection) -> None:
    """Add a function that the DBOS tables need: before SQLite 3.42 their default, `unixepoch('subsec')`, is NULL."""
    if sqlite3.sqlite_version_info < (3, 42):
        connection.create_function("unixepoch", 1, _milliseconds)


def _milliseconds(_precision: str) -> float:
    return time.time_ns() // 1_000_000 / 1000


HIDDEN: Final = ".aros"
OWNER_ONLY: Final = 0o600
_FOLDER: Final = 0o700
_OTHERS: Final = 0o077


def make_folder_of(file: Path) -> None:
    """Create the folder of a file. `.aros` is private: readable by its owner only, and ignored by git.

    An existing folder that others can read is made private if the caller owns it.
    """
    hidden = next((folder for folder in file.parents if folder.name == HIDDEN), None)
    new = hidden is not None and not hidden.exists()
    if hidden is not None and new:
        hidden.parent.mkdir(parents=True, exist_ok=True)
        hidden.mkdir(mode=_FOLDER, exist_ok=True)
    file.parent.mkdir(parents=True, exist_ok=True)
    if hidden is not None and new:
        (hidden / ".gitignore").write_text("*\n", encoding="utf-8")
    elif hidden is not None:
        close_to_others(hidden)


def close_to_others(path: Path) -> bool:
    """Remove the permissions of everyone but the owner; return False if the caller does not own the file or folder.

    Always True on systems without such permissions.
    """
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        if os.name != "nt" and mode & _OTHERS:
            path.chmod(mode & ~_OTHERS)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def make_private(file: Path) -> bool:
    """Create an empty file that only its owner can read, unless it exists; return True if it is new."""
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, OWNER_ONLY))
    except FileExistsError:
        return False
    return True
