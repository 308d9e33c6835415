"""Detects dead workers by a lock that the kernel or the database releases when its holder is gone.

DBOS never notices a dead worker. Here each process holds a lock under its own name: a file lock next to an SQLite
database, a session lock in PostgreSQL. A process that can take the lock of another knows that the other is dead,
without clocks, heartbeats or timeouts. A process that is suspended or slow still holds its lock and keeps its runs.

A process can also lose its lock and stay alive: its session is terminated, or its file is removed. Others then take
over its runs, and it must not take them back from the queue. So it checks its lock before each dequeue
(`dequeue_while`); the runs that it is still executing are fenced by their rows.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import IO, Any, Final, TypeAlias

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from flujo_aros.durable.serializer import unsupported
from flujo_aros.errors import file_errors


class FileLocks:
    """Locks in files next to the database, for processes on one machine."""

    def __init__(self, database: Path, executor: str) -> None:
        self._folder = database.with_name(f"{database.name}.workers")
        self._own = self._folder / executor
        self._held: IO[bytes] | None = None
        self._turn = threading.Lock()

    def hold(self) -> bool:
        """Take the lock, or check that its file still exists. Returns False while the lock is lost.

        The kernel releases it when the process ends.
        """
        with self._turn:
            if self._held is not None:
                if self._is_ours(self._held):
                    return True
                self._held.close()  # the file was removed: other processes consider this one dead
                self._held = None
                return False
            what = f"the folder {str(self._folder)!r} cannot be written"
            with file_errors(what, "; workers use it to detect which of them are alive"):
                self._folder.mkdir(exist_ok=True)
                taken = self._own.open("ab")
            try:
                fcntl.flock(taken, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:  # another process is checking it
                taken.close()
                return False
            if not self._is_ours(taken):  # the file was removed in between
                taken.close()
                return False
            self._held = taken
            return True

    def _is_ours(self, file: IO[bytes]) -> bool:
        """Return whether the file under our name is the one that we have opened."""
        try:
            return os.path.samestat(os.fstat(file.fileno()), self._own.stat())
        except OSError:
            return False

    def is_alive(self, executor: str) -> bool:
        """Return whether the process holds its lock; if the process is gone, its file is removed."""
        if executor == self._own.name:
            return True
        try:
            with (self._folder / executor).open("rb+") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    return True
                with suppress(OSError):
                    Path(file.name).unlink()
                return False
        except OSError:  # the file never existed, or another process has removed it
            return False

    def release(self) -> None:
        """Release the lock and remove its file."""
        if self._held is not None:
            with suppress(OSError):
                self._own.unlink()
            self._held.close()
            self._held = None


_KEEPALIVE: Final = ("SET tcp_keepalives_idle = 2", "SET tcp_keepalives_interval = 1", "SET tcp_keepalives_count = 3")
"""Keepalive settings with which the server detects a dead machine in about five seconds; a dead process is detected at
once.
"""


class SessionLocks:
    """Advisory locks of PostgreSQL sessions, for processes of any number of machines."""

    def __init__(self, engine: sa.Engine, executor: str) -> None:
        self._engine = engine
        self._executor = executor
        self._held: sa.Connection | None = None
        self._turn = threading.Lock()

    def hold(self) -> bool:
        """Take the lock, or check that its session is alive. Returns False while the database cannot be reached."""
        with self._turn:
            try:
                if self._held is not None:
                    self._held.exec_driver_sql("SELECT 1")
                    return True
                made = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
                made.detach()
                for setting in _KEEPALIVE:
                    made.exec_driver_sql(setting)
                taken = made.execute(_TRY, {"key": lock_key(f"worker {self._executor}")}).scalar()
            except SQLAlchemyError:
                self.release()
                return False
            if not taken:  # another process is checking it, or the server has not yet closed the old session
                made.close()
                return False
            self._held = made
            return True

    def is_alive(self, executor: str) -> bool:
        """Return whether a session holds the lock of that process."""
        if executor == self._executor:
            return True
        with self._engine.connect() as connection:  # the lock is released at the end of the transaction
            return not connection.execute(_TRY_FOR_NOW, {"key": lock_key(f"worker {executor}")}).scalar()

    def release(self) -> None:
        """Close the session that holds the lock."""
        if self._held is not None:
            with suppress(SQLAlchemyError):
                self._held.close()
            self._held = None


_TRY: Final = sa.text("SELECT pg_try_advisory_lock(:key)")
_TRY_FOR_NOW: Final = sa.text("SELECT pg_try_advisory_xact_lock(:key)")


def lock_key(name: str) -> int:
    """Return the number of an advisory lock: 63 bits of a hash, so that two names practically never have the same."""
    return int.from_bytes(hashlib.sha256(f"aros {name}".encode()).digest()[:8]) >> 1


def dequeue_while(may: Callable[[], bool], database: object) -> None:
    """Let this process take work from the engine's queues only while it may.

    DBOS has no switch for this, so its two methods that dequeue are guarded. Raises `UsageError` if this release does
    not have them.
    """
    nothings: dict[str, object] = {"start_queued_workflows": ([], None), "start_queued_partitioned_workflows": []}
    for name, nothing in nothings.items():
        dequeue = getattr(database, name, None)
        if not callable(dequeue):
            raise unsupported("does not allow control of dequeuing")
        setattr(database, name, _guard(may, dequeue, nothing))


def listen_to(queues: Sequence[str], dbos: object) -> None:
    """Let this process take work from exactly these queues of the engine, even after it was launched.

    DBOS reads its list every second, but sets it only once. Raises `UsageError` if this release keeps it elsewhere.
    """
    if not isinstance(getattr(dbos, "_listening_queues", None), list):
        raise unsupported("manages its queues differently")
    setattr(dbos, "_listening_queues", list(queues))  # noqa: B010


def _guard(may: Callable[[], bool], dequeue: Callable[..., Any], nothing: Any) -> Callable[..., Any]:
    @wraps(dequeue)
    def guarded(*args: Any, **options: Any) -> Any:
        return dequeue(*args, **options) if may() else nothing

    return guarded


Liveness: TypeAlias = FileLocks | SessionLocks
"""The lock of this process, and a check of the locks of other processes."""


def liveness(engine: sa.Engine, executor: str) -> Liveness:
    """Return the kind of locks for a database."""
    if engine.dialect.name == "sqlite":
        return FileLocks(Path(str(engine.url.database)).resolve(), executor)
    return SessionLocks(engine, executor)
