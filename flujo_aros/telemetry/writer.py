"""Writes records to the journal's database on a thread of its own, in batches: a run never waits for the disk."""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from sqlalchemy import Connection, Engine, Table, update
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import SQLAlchemyError

from flujo_aros.database import cause, shown
from flujo_aros.telemetry.records import BY_NAME, MASKED, STAGES, STEPS, TABLES, Record, to_row

_Row: TypeAlias = dict[str, Any]
_Key: TypeAlias = tuple[Any, ...]

_KEYS: Final = {
    kind: (table.name, tuple(column.name for column in table.primary_key.columns)) for kind, table in TABLES.items()
}
"""The table and the key of each kind of record."""

_log: Final = logging.getLogger("flujo_aros.journal")

_PAUSE: Final = 0.1
"""The number of seconds for which records are batched before they are written, and so the most that a crash can
lose."""
_AGAIN: Final = 1.0
_KEPT_ON_UPDATE: Final = {"aros_runs": ("started",)}
"""The columns that a later record of the same key does not change: a resumed run keeps its first start time."""


@dataclass(frozen=True, slots=True)
class Left:
    """Not a row but a change of rows: a run is resumed, and everything that it left open before this id has ended."""

    run_id: str
    before: int


_LEFT: Final = "left"
_CLOSED: Final = (
    (STEPS, STEPS.c.status, {"running": "lost", "paused": "resumed"}),
    (STAGES, STAGES.c.outcome, {"running": "interrupted"}),
)


class Writer:
    """Takes records, keeps the newest for each key, and writes them a moment later.

    `put` never waits and never raises. While the database cannot be written, up to `most` records are kept; beyond that
    the oldest are dropped. A warning is logged when writing begins to fail, and another when records are given up at
    the end; `dropped` counts those that are lost.
    """

    def __init__(self, engine: Callable[[], Engine], mask: Callable[[str], str], *, most: int = 50_000) -> None:
        self.dropped = 0
        self._engine = engine
        self._mask = mask
        self._most = most
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._rows: dict[tuple[str, _Key], Record | Left] = {}
        self._wake = threading.Condition()
        self._thread: threading.Thread | None = None
        self._hurry = self._closing = self._writing = False
        self._failing = ""
        """Why the database could not be written the last time."""

    def put(self, record: Record | Left, *, soon: bool = False) -> None:
        """Have a record written, in place of any earlier one with its key; `soon`: without waiting for more."""
        if os.getpid() != self._pid:
            self._begin()  # a forked child: neither the thread nor what it held has come along
        with self._wake:
            if len(self._rows) >= self._most:
                self._rows.pop(next(iter(self._rows)))
                self.dropped += 1
            first = not self._rows
            self._rows[_key(record)] = record
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
        """Write what is left and end the thread. A later `put` starts it again."""
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
        """Count and log what could not be written."""
        self.dropped += len(self._rows)
        self._rows = {}
        if self.dropped:
            where, why = shown(self._engine().url), self._failing or "it could not be written for too long"
            _log.warning("%d rows are missing from the journal %s: %s", self.dropped, where, why)

    def _write(self, rows: Mapping[tuple[str, _Key], Record | Left]) -> bool:
        left = [record for record in rows.values() if isinstance(record, Left)]
        tables: dict[str, list[_Row]] = {}
        for (table, _), record in rows.items():
            if not isinstance(record, Left):
                tables.setdefault(table, []).append(self._masked(table, to_row(record)))
        try:
            with self._engine().begin() as connection:
                for each in left:
                    _close_left(connection, each)
                for table, batch in tables.items():
                    write_rows(connection, BY_NAME[table], batch)
        except SQLAlchemyError as error:
            if not self._failing:
                words = "the journal %s cannot be written: %s; the run continues, and its record waits in memory"
                _log.warning(words, shown(self._engine().url), cause(error))
            self._failing = cause(error)
            return False
        self._failing = ""
        return True

    def _masked(self, table: str, row: _Row) -> _Row:
        for name in MASKED[table]:
            value = row.get(name)
            if value:
                row[name] = _storable(self._mask(value))
        return row


def _key(record: Record | Left) -> tuple[str, _Key]:
    if isinstance(record, Left):
        return _LEFT, (record.run_id,)
    table, keys = _KEYS[type(record)]
    return table, tuple(getattr(record, key) for key in keys)


def _close_left(connection: Connection, left: Left) -> None:
    for table, column, words in _CLOSED:
        for old, new in words.items():
            which = (table.c.run_id == left.run_id, table.c.id < left.before, column == old)
            connection.execute(update(table).where(*which).values({column.name: new}))


def write_rows(connection: Connection, table: Table, rows: list[_Row]) -> None:
    """Insert rows, or write them over those with the same keys."""
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects.postgresql import insert  # here: a journal in a file need not load it

        statement: Any = insert(table)
    else:
        statement = sqlite.insert(table)
    keys = [column.name for column in table.primary_key.columns]
    kept = (*keys, *_KEPT_ON_UPDATE.get(table.name, ()))
    changed = {column.name: statement.excluded[column.name] for column in table.columns if column.name not in kept}
    connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=changed), rows)


def _storable(text: str) -> str:
    """A string that every database takes, of the same length: without NUL and lone surrogates."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
