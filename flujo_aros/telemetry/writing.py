"""Writes rows to the journal's database on a thread of its own, in batches, so that a run never waits for the disk."""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from sqlalchemy import Connection, Engine, Table, update
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import SQLAlchemyError

from flujo_aros.telemetry.opening import said, shown
from flujo_aros.telemetry.tables import BY_NAME, FREE, STAGES, STEPS

Row: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[Any, ...]

_log: Final = logging.getLogger("flujo_aros.journal")

_PAUSE: Final = 0.1
"""Seconds that rows are gathered before they are written: what a crash may take."""
_AGAIN: Final = 1.0
_KEPT_ON_UPDATE: Final = {"aros_runs": ("started",)}
"""What a later row of the same key does not change: a resumed run has started when it first did."""


LEFT: Final = "left"
"""A row of no table: a run is resumed, and what it has left open before this id is no longer under way."""
_CLOSED: Final = (
    (STEPS, STEPS.c.status, {"running": "lost", "paused": "resumed"}),
    (STAGES, STAGES.c.outcome, {"running": "interrupted"}),
)


class Writer:
    """Takes rows, keeps the newest for each key, and writes them a moment later.

    `put` never waits and never raises. While the database cannot be written, rows are kept up to `most`; beyond that
    the oldest are dropped. A warning is logged when writing begins to fail, and one when rows are given up at the end;
    `dropped` counts those that are lost.
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
        self._hurry = self._closing = self._writing = False
        self._failing = ""
        """Why the database could not be written the last time."""

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
                    self._give_up()
                    self._thread = None
                self._wake.notify_all()
            if done:
                return

    def _give_up(self) -> None:
        """Count what could not be written until the end, and say so."""
        self.dropped += len(self._rows)
        self._rows = {}
        if self.dropped:
            where, why = shown(self._engine().url), self._failing or "it could not be written for too long"
            _log.warning("%d rows are missing from the journal %s: %s", self.dropped, where, why)

    def _write(self, rows: Mapping[tuple[str, Key], Row]) -> bool:
        tables: dict[str, list[Row]] = {}
        for (table, _), row in rows.items():
            tables.setdefault(table, []).append(row if table == LEFT else self._masked(table, row))
        try:
            with self._engine().begin() as connection:
                for row in tables.pop(LEFT, ()):
                    _close_left(connection, row["run_id"], row["before"])
                for table, batch in tables.items():
                    write_rows(connection, BY_NAME[table], batch)
        except SQLAlchemyError as error:
            if not self._failing:
                words = "the journal %s cannot be written: %s; the run goes on, and its record waits in memory"
                _log.warning(words, shown(self._engine().url), said(error))
            self._failing = said(error)
            return False
        self._failing = ""
        return True

    def _masked(self, table: str, row: Row) -> Row:
        for name in FREE[table]:
            value = row.get(name)
            if value:
                row[name] = _storable(self._mask(value))
        return row


def _close_left(connection: Connection, run_id: str, before: int) -> None:
    for table, column, words in _CLOSED:
        for old, new in words.items():
            left = (table.c.run_id == run_id, table.c.id < before, column == old)
            connection.execute(update(table).where(*left).values({column.name: new}))


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
