"""The journal: a database that records every run, step, model call, reading and repair as it happens."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final, Self, TypeAlias, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import SQLAlchemyError

from flujo_aros.configured import reject_unknown_options
from flujo_aros.database import cause, database_url, find_run, make_tables, open_engine, shown
from flujo_aros.errors import UsageError
from flujo_aros.events import Event, RunStarted
from flujo_aros.recovery import Achieved, Evidence
from flujo_aros.settings import DEFAULT_JOURNAL, OFF
from flujo_aros.telemetry.health import Health, Span, diagnose
from flujo_aros.telemetry.masking import Mask
from flujo_aros.telemetry.records import (
    ABOUT,
    ASKS,
    CONTRACTS,
    NOTES,
    OF_A_RUN,
    REPAIRS,
    RUNS,
    STAGES,
    STEPS,
    TABLES,
    USED,
    VALUES,
    VERSION,
    Chapter,
    JournalAsk,
    JournalNote,
    JournalReading,
    JournalRepair,
    JournalRun,
    JournalStage,
    JournalStep,
    JournalValue,
    Record,
    Recorder,
    RecordT,
    Story,
    from_row,
    is_gone,
    to_row,
    usage_in,
)
from flujo_aros.usage import Usage

_log: Final = logging.getLogger("flujo_aros.journal")

_WAIT: Final = 5.0
"""The maximum time in seconds that a run waits for its journal file: the run matters more than its record."""


def file_of(source: str | Path) -> Path | None:
    """Return the file of a journal, or None for a database that is not a file."""
    url = database_url(source, "journal")
    return Path(url.database) if url.get_backend_name() == "sqlite" and url.database else None


_Row: TypeAlias = dict[str, Any]
_Key: TypeAlias = tuple[Any, ...]

_KEYS: Final = {kind: [column.name for column in table.primary_key.columns] for kind, table in TABLES.items()}
"""The key of each kind of record."""

_PAUSE: Final = 0.1
"""The number of seconds for which records are batched before they are written, and so the most that a crash can
lose."""
_AGAIN: Final = 1.0
_KEPT_ON_UPDATE: Final = {RUNS: ("started",)}
"""The columns that a later record of the same key does not change: a resumed run keeps its first start time."""


@dataclass(frozen=True, slots=True)
class Left:
    """A change of existing rows instead of a new one: a run is resumed, and everything it left open before this id has
    ended.
    """

    run_id: str
    before: int


_CLOSED: Final = (
    (STEPS, STEPS.c.status, {"running": "lost", "paused": "resumed"}),
    (STAGES, STAGES.c.outcome, {"running": "interrupted"}),
)


class Writer:
    """Takes records, keeps the newest for each key, and writes them a moment later.

    `put` never waits and never raises. While the database cannot be written, up to `most` records are kept; beyond that
    the oldest are dropped. A warning is logged when writing begins to fail, and another when records are discarded at
    the end; `dropped` counts the discarded ones.
    """

    def __init__(self, engine: Callable[[], sa.Engine], mask: Callable[[str], str], *, most: int = 50_000) -> None:
        self.dropped = 0
        self._engine = engine
        self._mask = mask
        self._most = most
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._rows: dict[_Key, Record | Left] = {}
        self._wake = threading.Condition()
        self._thread: threading.Thread | None = None
        self._hurry = self._closing = self._writing = False
        self._failing = ""
        """The reason why the last write to the database failed."""

    def put(self, record: Record | Left, *, soon: bool = False) -> None:
        """Queue a record, replacing any earlier one with the same key. `soon` writes it without waiting for more."""
        if os.getpid() != self._pid:
            self._begin()  # a forked child has neither the thread nor its records
        with self._wake:
            if len(self._rows) >= self._most:
                self._rows.pop(next(iter(self._rows)))
                self.dropped += 1
            first = not self._rows
            self._rows[_key(record)] = record
            if self._thread is None:
                self._start()
            elif first or (soon and not self._hurry):  # waking the thread is the most expensive part
                self._wake.notify_all()
            self._hurry = self._hurry or soon

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until everything queued so far is written; return False if that did not happen in time."""
        with self._wake:
            self._hurry = True
            self._wake.notify_all()
            return self._wake.wait_for(lambda: not self._writing and (self._thread is None or not self._rows), timeout)

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
        """Count and log the rows that could not be written."""
        self.dropped += len(self._rows)
        self._rows = {}
        if self.dropped:
            where, why = shown(self._engine().url), self._failing or "the database could not be written for too long"
            _log.warning("%d rows are missing from the journal %s: %s", self.dropped, where, why)

    def _write(self, rows: Mapping[_Key, Record | Left]) -> bool:
        left: list[Left] = []
        tables: dict[sa.Table, list[_Row]] = {}
        for record in rows.values():
            if isinstance(record, Left):
                left.append(record)
                _close_waiting(tables, record)
            else:
                table = TABLES[type(record)]
                tables.setdefault(table, []).append(self._mask_row(table, to_row(record)))
        try:
            with self._engine().begin() as connection:
                for each in left:
                    _close_left(connection, each)
                for table, batch in tables.items():
                    write_rows(connection, table, batch)
        except SQLAlchemyError as error:
            if not self._failing:
                words = "the journal %s cannot be written: %s; the run continues, and its records are kept in memory"
                _log.warning(words, shown(self._engine().url), cause(error))
            self._failing = cause(error)
            return False
        self._failing = ""
        return True

    def _mask_row(self, table: sa.Table, row: _Row) -> _Row:
        for column in table.columns:
            if column.info["masked"] and row[column.name]:
                row[column.name] = _storable(self._mask(row[column.name]))
        return row


def _key(record: Record | Left) -> _Key:
    if isinstance(record, Left):
        return Left, record
    return type(record), *(getattr(record, key) for key in _KEYS[type(record)])


def _close_left(connection: sa.Connection, left: Left) -> None:
    for table, column, words in _CLOSED:
        for old, new in words.items():
            which = (table.c.run_id == left.run_id, table.c.id < left.before, column == old)
            connection.execute(sa.update(table).where(*which).values({column.name: new}))


def _close_waiting(tables: Mapping[sa.Table, list[_Row]], left: Left) -> None:
    """Apply the change to queued rows: a run may be resumed a moment after it has paused."""
    for table, column, words in _CLOSED:
        for row in tables.get(table, ()):
            if row["run_id"] == left.run_id and row["id"] < left.before:
                row[column.name] = words.get(row[column.name], row[column.name])


def write_rows(connection: sa.Connection, table: sa.Table, rows: list[_Row]) -> None:
    """Insert rows, replacing those with the same keys."""
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects.postgresql import insert  # imported here, because a journal in a file does not need it

        statement: Any = insert(table)
    else:
        statement = sqlite.insert(table)
    keys = [column.name for column in table.primary_key.columns]
    kept = (*keys, *_KEPT_ON_UPDATE.get(table, ()))
    changed = {column.name: statement.excluded[column.name] for column in table.columns if column.name not in kept}
    connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=changed), rows)


def _storable(text: str) -> str:
    """Return a string of the same length that every database accepts: without NUL and lone surrogates."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


T = TypeVar("T")


@reject_unknown_options
class Journal:
    """Records runs in a database: pass it to a runner, or to `observing`, as an observer.

    `url` is a file or a URL (`sqlite:///FILE`, `postgresql://…`); by default `.aros/runs.sqlite` in the working
    directory. Texts are masked before they are written (see `Mask`), including the values in `secrets`; of each text
    `max_text` characters are kept, or none with `content=False`. `max_runs` is the number of runs to keep: the oldest
    are removed when the journal is opened. Several processes may use one journal at once.

    Raises `UsageError` when the database cannot be opened. After that it never raises into a run: while the database
    cannot be written, rows wait. A killed process loses at most its last tenth of a second.

    >>> from flujo_aros.pipeline.runner import Runner
    >>> from flujo_aros.pipeline.step import Call
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Journal(f"{folder}/runs.sqlite") as journal:
    ...     _ = Runner(Call("count", function=len), observers=[journal]).run_sync("four")
    ...     [(run.pipeline, run.status) for run in journal.runs()]
    [('count', 'completed')]
    """

    def __init__(
        self,
        url: str | Path = DEFAULT_JOURNAL,
        *,
        secrets: Iterable[str] = (),
        content: bool = True,
        max_text: int = 100_000,
        max_runs: int | None = 10_000,
        create: bool = True,
    ) -> None:
        self.url = url
        missing = None if create else "run a blueprint first, or set AROS_JOURNAL to another"
        tables = partial(make_tables, version=ABOUT.c.version, known=VERSION, contents="journal", create=create)
        self._engine: sa.Engine = open_engine(url, "journal", tables, missing=missing, wait=_WAIT)
        self._engine_pid = os.getpid()
        self._mask = Mask.of_environment(secrets)
        self._writer = Writer(lambda: self.engine, self._mask)
        self._ids = count(self._first_id() if create else time.time_ns())
        self._recorder = Recorder(partial(next, self._ids), content=content, max_text=max_text)
        if max_runs is not None and create:
            self.prune(max_runs=max_runs)

    def __repr__(self) -> str:
        return f"Journal({shown(self._engine.url)!r})"

    def _first_id(self) -> int:
        """Return the first id for rows of this process: larger than all existing ones, even if the clock was set back,
        since the records of a run are ordered by them.
        """
        now = time.time_ns()
        with self._reading() as connection:
            newest = connection.execute(sa.select(sa.func.max(RUNS.c.started))).scalar() or 0.0
            if newest * 1e9 <= now:
                return now
            ahead = newest - now / 1e9
            words = "the clock was set back: the newest run in the journal %s starts %.0f s in the future"
            _log.warning(words, shown(self._engine.url), ahead)
            ids = [table.c.id for table in OF_A_RUN if "id" in table.c]
            largest = (connection.execute(sa.select(sa.func.max(each))).scalar() or 0 for each in ids)
            return max(now, int(newest * 1e9), *largest) + 1

    def __call__(self, event: Event, /) -> None:
        """Receive one event."""
        self._mask.hear(event)
        if isinstance(event, RunStarted) and event.resumed:
            self._resume(event)
        for record in self._recorder.records(event):
            ended = isinstance(record, JournalRun) and record.seconds is not None
            self._writer.put(record, soon=ended)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until every event so far is in the database; return False if that took too long."""
        return self._writer.flush(timeout)

    def close(self) -> None:
        """Write what is left and close the database. This also happens at the end of the process."""
        self._writer.close()
        self._engine.dispose()

    @property
    def dropped(self) -> int:
        """The number of rows that were lost because the database could not be written for too long."""
        return self._writer.dropped

    def runs(
        self,
        *,
        limit: int | None = 20,
        since: datetime | None = None,
        status: str | None = None,
        pipeline: str | None = None,
    ) -> list[JournalRun]:
        """Return the runs, newest first."""
        query = _with_counts().order_by(RUNS.c.started.desc(), RUNS.c.run_id).limit(limit)
        if since is not None:
            query = query.where(RUNS.c.started >= since.timestamp())
        if status is not None:  # a lost run is detected below, by its process
            query = query.where(RUNS.c.status == ("running" if status == "lost" else status))
        if pipeline is not None:
            query = query.where(RUNS.c.pipeline == pipeline)
        with self._reading() as connection:
            found = _runs(connection, query)
        return [run for run in found if status in (None, run.status)]

    def story(self, run: str = "last") -> Story:
        """Return everything recorded about one run. `run` is its id, the beginning of an id, or `last`.

        Raises `UsageError` when there is no such run, or more than one.
        """
        with self._reading() as connection:
            return _story(connection, run)

    def health(
        self,
        *,
        since: datetime,
        until: datetime | None = None,
        step: str | None = None,
        model: str | None = None,
        trend: int = 0,
    ) -> Health:
        """Return statistics of a period by step, model, repair and stage, with recommendations. `trend` divides the
        period into that many equal intervals.
        """
        span = Span(since, until or datetime.now(UTC), step, model, trend)
        with self._reading() as connection:
            return diagnose(connection, span)

    def agreements(self, *, limit: int = 1_000) -> list[tuple[str, str, JournalNote]]:
        """Return the latest results of agreement steps, newest first, each with its run and the name of its step."""
        query = sa.select(NOTES).where(NOTES.c.note == "agreement").order_by(NOTES.c.id.desc()).limit(limit)
        with self._reading() as connection:
            found = [from_row(JournalNote, row) for row in connection.execute(query)]
        return [(note.run_id, note.step_place, note) for note in found if note.data]

    def evidence(self, *, since: datetime | None = None) -> Evidence:
        """Return the record of each stage for each model and contract, which a ladder with `adaptive` uses."""
        when = sa.true() if since is None else STAGES.c.started >= since.timestamp()
        keys = (STAGES.c.model, STAGES.c.schema_hash, STAGES.c.stage)
        saved = sa.func.sum(sa.case((STAGES.c.outcome == "accepted", 1), else_=0))
        ended = STAGES.c.outcome.not_in(("skipped", "running", "interrupted"))
        query = sa.select(*keys, sa.func.count(), saved, sa.func.sum(STAGES.c.calls)).group_by(*keys).order_by(*keys)
        query = query.where(when, ended, STAGES.c.schema_hash.is_not(None))
        with self._reading() as connection:
            return Evidence.of(
                (model or "", schema, stage, Achieved(tries, int(successes), int(calls or 0)))
                for model, schema, stage, tries, successes, calls in connection.execute(query)
            )

    def prune(self, *, older_than: timedelta | None = None, max_runs: int | None = None) -> int:
        """Remove runs that are older than `older_than`, and all but the newest `max_runs`. Returns the number of
        removed runs."""
        gone: set[str] = set()
        with self._reading(change=True) as connection:
            if older_than is not None:
                before = (datetime.now(UTC) - older_than).timestamp()
                gone.update(connection.execute(sa.select(RUNS.c.run_id).where(RUNS.c.started < before)).scalars())
            if max_runs is not None:
                too_many = sa.select(RUNS.c.run_id).order_by(RUNS.c.started.desc()).limit(2**31 - 1).offset(max_runs)
                gone.update(connection.execute(too_many).scalars())
            for table in OF_A_RUN:
                for batch in _batches(sorted(gone), 500):
                    connection.execute(sa.delete(table).where(table.c.run_id.in_(batch)))
        return len(gone)

    @contextmanager
    def _reading(self, *, change: bool = False) -> Generator[sa.Connection]:
        """Open a connection, after every event so far is written. Raises `UsageError` for errors of the database."""
        self.flush()
        engine = self.engine
        try:
            with engine.begin() if change else engine.connect() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise UsageError(f"the journal {shown(engine.url)} cannot be read: {cause(error)}") from error

    @property
    def engine(self) -> sa.Engine:
        """The database, for your own queries; `flush()` first writes what is still waiting."""
        if os.getpid() != self._engine_pid:  # a forked child must not use the connections of its parent
            self._engine.dispose(close=False)
            self._engine_pid = os.getpid()
        return self._engine

    def _resume(self, event: RunStarted) -> None:
        """Close the rows that a run left open when it paused or its process ended.

        A recovered run reports its unsettled steps into their existing rows, so that nothing is recorded twice. Rows
        inside these steps are removed, because the same events are emitted again, with calls answered from the record.
        """
        if event.settled is not None:
            try:
                with self._reading(change=True) as connection:
                    left = _reopen(connection, event.run_id, {self._mask(name) for name in event.settled})
                self._recorder.recover(event.run_id, left)
            except UsageError as error:
                _log.warning("%s; steps of run %s may be in it twice", error, event.run_id)
        self._writer.put(Left(event.run_id, next(self._ids)))


_PAUSED: Final = ("paused", "resumed")


def _story(connection: sa.Connection, run: str) -> Story:
    """Return the complete story of one run, in the order of events."""
    where = "the journal; run a blueprint first" if run == "last" else "the journal; `aros runs` lists them"
    run_id = find_run(connection, RUNS.c.run_id, RUNS.c.started, run, where)
    (head,) = _runs(connection, _with_counts().where(RUNS.c.run_id == run_id))
    repairs: dict[int, list[JournalRepair]] = defaultdict(list)
    for repair in _records(connection, JournalRepair, run_id):
        repairs[repair.reading_id].append(repair)
    values = {value.id: value for value in _records(connection, JournalValue, run_id)}
    steps = [_step(step, head, values.get(step.id)) for step in _records(connection, JournalStep, run_id)]
    stages = _by_step(_records(connection, JournalStage, run_id))
    asks = _by_step(_records(connection, JournalAsk, run_id))
    readings = _by_step(
        replace(reading, repairs=tuple(repairs[reading.id])) for reading in _records(connection, JournalReading, run_id)
    )
    notes = _by_step(note for note in _records(connection, JournalNote, run_id) if note.data)
    gone_on = _continued_steps(steps)
    rows: dict[int, list[JournalStep]] = defaultdict(list)
    for each in steps:
        rows[gone_on.get(each.id, each.id)].append(each)

    def chapter(step: JournalStep | None, keys: Iterable[int]) -> Chapter:
        return Chapter(step, _of(stages, keys), _of(asks, keys), _of(readings, keys), _of(notes, keys))

    def within(newest: JournalStep) -> Chapter:
        """Return a step with all its rows, each with the usage and time of one segment between pauses."""
        of = rows[newest.id]
        whole = replace(
            newest,
            parent_id=gone_on.get(newest.parent_id, newest.parent_id),
            started=of[0].started,
            seconds=None if newest.seconds is None else sum(row.seconds or 0.0 for row in of),
            usage=Usage.total(row.usage for row in of),
        )
        return chapter(whole, [row.id for row in of])

    outside = [chapter(None, [0])] if stages[0] or asks[0] or readings[0] else []
    chapters = (*outside, *(within(step) for step in steps if step.id not in gone_on))
    hashes = {reading.schema_hash for each in chapters for reading in each.readings if reading.schema_hash}
    return Story(head, chapters, _contracts(connection, hashes), tuple(_pauses(steps, rows.values())))


def _of(parts: Mapping[int, list[T]], steps: Iterable[int]) -> tuple[T, ...]:
    return tuple(part for step in steps for part in parts.get(step, ()))


def _continued_steps(steps: Sequence[JournalStep]) -> dict[int, int]:
    """Return the steps that paused and have continued since, each with the row that continues them."""
    newest = {step.name: step.id for step in steps}
    return {step.id: newest[step.name] for step in steps if step.status == "resumed" and newest[step.name] != step.id}


def _pauses(steps: Sequence[JournalStep], rows: Iterable[Sequence[JournalStep]]) -> Iterator[tuple[float, float]]:
    """Yield the start and end of each interval in which nothing ran because a step was paused."""
    for again in sorted(row.started for of in rows for row in of[1:]):
        ends = (step.started + (step.seconds or 0.0) for step in steps if step.started < again)
        since = max(ends, default=again)
        if since < again:
            yield since, again


def _reopen(connection: sa.Connection, run_id: str, settled: Collection[str]) -> dict[str, int]:
    """Return the ids of the unsettled steps of a run, by name, after deleting the rows of their nested steps and calls.
    Paused steps are left alone, because they continue in another row (see `_continued_steps`).
    """
    query = sa.select(STEPS.c.name, STEPS.c.id).where(STEPS.c.run_id == run_id, STEPS.c.status.not_in(_PAUSED))
    found = connection.execute(query.order_by(STEPS.c.id))
    left = {str(name): int(own) for name, own in found if name not in settled}
    for batch in _batches(sorted(left.values()), 500):
        for table in OF_A_RUN:
            if "step_id" in table.c:
                connection.execute(sa.delete(table).where(table.c.run_id == run_id, table.c.step_id.in_(batch)))
        connection.execute(sa.delete(VALUES).where(VALUES.c.run_id == run_id, VALUES.c.id.in_(batch)))
    return left


def _batches(values: list[T], size: int) -> Iterable[list[T]]:
    return (values[start : start + size] for start in range(0, len(values), size))


def _with_counts() -> sa.Select[Any]:
    """Select runs with the number of their steps and repairs."""
    steps = sa.select(sa.func.count(STEPS.c.name.distinct())).where(STEPS.c.run_id == RUNS.c.run_id).scalar_subquery()
    repairs = sa.select(sa.func.count()).where(REPAIRS.c.run_id == RUNS.c.run_id).scalar_subquery()
    return sa.select(RUNS, steps.label("steps"), repairs.label("repairs"))


def _records(connection: sa.Connection, kind: type[RecordT], run_id: str) -> Iterator[RecordT]:
    """Yield the records of a run, in the order in which they happened."""
    table = TABLES[kind]
    for row in connection.execute(sa.select(table).where(table.c.run_id == sa.literal(run_id)).order_by(table.c.id)):
        yield from_row(kind, row)


def _by_step(records: Iterable[T]) -> defaultdict[int, list[T]]:
    found: defaultdict[int, list[T]] = defaultdict(list)
    for record in records:
        found[getattr(record, "step_id", 0)].append(record)
    return found


def _contracts(connection: sa.Connection, hashes: set[str]) -> dict[str, str]:
    query = sa.select(CONTRACTS.c.schema_hash, CONTRACTS.c.spec).where(CONTRACTS.c.schema_hash.in_(sorted(hashes)))
    return {known: spec or "" for known, spec in connection.execute(query)}


def _runs(connection: sa.Connection, query: sa.Select[Any]) -> list[JournalRun]:
    """Return the selected runs. The usage of a run that has not ended is that of its calls so far."""
    runs = [from_row(JournalRun, row, steps=row.steps, repairs=row.repairs) for row in connection.execute(query)]
    open_ids = [run.run_id for run in runs if run.status == "running"]
    spent: defaultdict[str, list[Usage]] = defaultdict(list)
    if open_ids:
        asked = sa.select(ASKS.c.run_id, *(ASKS.c[name] for name in USED)).where(ASKS.c.run_id.in_(open_ids))
        for run_id, *used in connection.execute(asked):
            spent[run_id].append(usage_in(*used))
    return [
        replace(run, usage=Usage.total(spent[run.run_id]), status="lost" if is_gone(run.host, run.pid) else run.status)
        if run.status == "running"
        else run
        for run in runs
    ]


def _step(step: JournalStep, run: JournalRun, value: JournalValue | None) -> JournalStep:
    status = "lost" if step.status == "running" and run.status != "running" else step.status
    if value is None:
        return replace(step, status=status)
    return replace(step, status=status, input=value.input, output=value.output)


def open_journal(named: str | None, *, create: bool = True) -> Journal | None:
    """Return the journal of the settings: None for `off`, the default file if they name none.

    If the default file cannot be written, for example in a read-only folder, there is no journal and a warning is
    logged. Raises `UsageError` if a journal that was named cannot be opened.

    >>> open_journal("off") is None
    True
    """
    if named == OFF:
        return None
    try:
        return Journal(named or DEFAULT_JOURNAL, create=create)
    except UsageError as error:
        if named or not create:
            raise
        _log.warning("%s; AROS_JOURNAL=off turns it off", error)
        return None
