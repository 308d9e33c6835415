"""Writes rows to the journal's database on a thread of its own, in batches, so that a run never waits for the disk."""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from sqlalchemy import Connection, Engine, Table
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import SQLAlchemyError

from flujo_aros.telemetry.tables import BY_NAME, FREE

Row: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[Any, ...]

_log: Final = logging.getLogger("flujo_aros.journal")

_PAUSE: Final = 0.1
"""Seconds that rows are gathered before they are written: what a crash may take."""
_AGAIN: Final = 1.0
_KEPT_ON_UPDATE: Final = {"aros_runs": ("started",)}
"""What a later row of the same key does not change: a resumed run has started when it first did."""


class Writer:
    """Takes rows, keeps the newest for each key, and writes them a moment later.

    `put` never waits and never raises. While the database cannot be written, rows are kept up to `most`; beyond that
    the oldest are dropped and counted in `dropped`, and a warning is logged.
    """

    def __init__(self, engine: Callable[[], Engine], mask: Callable[[str], str], *, most: int = 50_000) -> None:
        self.dropped = 0
        self._engine = engine
        self._mask = mask
        self._most = most
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._rows: dict[tuple[str, Key], Row] = {}
        self._wake = threading.Condition()
        self._thread: threading.Thread | None = None
        self._hurry = self._closing = self._writing = self._failing = False

    def put(self, table: str, key: Key, row: Row, *, soon: bool = False) -> None:
        """Have a row written, in place of any earlier one with this key; `soon`: without waiting for more."""
        if os.getpid() != self._pid:
            self._begin()  # a forked child: neither the thread nor what it held has come along
        with self._wake:
            if len(self._rows) >= self._most:
                self._rows.pop(next(iter(self._rows)))
                self.dropped += 1
            first = not self._rows
            self._rows[table, key] = row
            if self._thread is None:
                self._start()
            elif first or (soon and not self._hurry):  # waking the thread costs more than all the rest
                self._wake.notify_all()
            self._hurry = self._hurry or soon

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until everything that was put so far is written; False if that did not happen in time."""
        with self._wake:
            self._hurry = True
            self._wake.notify_all()
            return self._wake.wait_for(self._is_idle, timeout)

    def close(self, timeout: float = 10.0) -> None:
        """Write what is left and end the thread. A later `put` starts anew."""
        thread = self._thread
        if thread is None or os.getpid() != self._pid:
            return
        with self._wake:
            self._closing = True
            self._wake.notify_all()
        thread.join(timeout)
        atexit.unregister(self.close)

    def _is_idle(self) -> bool:
        return not self._writing and (self._thread is None or not self._rows)

    def _start(self) -> None:
        self._closing = False
        self._thread = threading.Thread(target=self._work, name="aros-journal", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def _work(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._rows or self._closing)
                self._wake.wait_for(lambda: self._hurry or self._closing, _AGAIN if self._failing else _PAUSE)
                rows, self._rows, self._hurry, self._writing = self._rows, {}, False, True
            written = self._write(rows)
            with self._wake:
                self._writing = False
                if not written:
                    self._rows = {**rows, **self._rows}
                done = self._closing and (not self._rows or not written)
                if done:
                    self._thread = None
                self._wake.notify_all()
            if done:
                return

    def _write(self, rows: Mapping[tuple[str, Key], Row]) -> bool:
        tables: dict[str, list[Row]] = {}
        for (table, _), row in rows.items():
            tables.setdefault(table, []).append(self._masked(table, row))
        try:
            with self._engine().begin() as connection:
                for table, batch in tables.items():
                    write_rows(connection, BY_NAME[table], batch)
        except SQLAlchemyError as error:
            if not self._failing:
                _log.warning("the journal cannot be written, trying again: %s", type(error).__name__)
            self._failing = True
            return False
        self._failing = False
        return True

    def _masked(self, table: str, row: Row) -> Row:
        for name in FREE[table]:
            value = row.get(name)
            if value:
                row[name] = _storable(self._mask(value))
        return row


def write_rows(connection: Connection, table: Table, rows: list[Row]) -> None:
    """Insert rows, or write them over those with the same keys."""
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects.postgresql import insert  # here: who writes to a file need not load it

        statement: Any = insert(table)
    else:
        statement = sqlite.insert(table)
    keys = [column.name for column in table.primary_key.columns]
    kept = (*keys, *_KEPT_ON_UPDATE.get(table.name, ()))
    changed = {column.name: statement.excluded[column.name] for column in table.columns if column.name not in kept}
    connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=changed), rows)


def _storable(text: str) -> str:
    """A text that every database takes, as long as it was: without NUL and half characters."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
