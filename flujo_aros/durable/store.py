"""The tables of this package in the database of DBOS: runs, steps that started and settled, and live text.

Data that DBOS stores (queue, owner, attempts, model calls) is not repeated here. These tables add what it cannot know:
whether every step that started has settled. `completed` is written only by `Store.finish`, in a transaction that checks
this.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from types import NoneType
from typing import Any, Final, TypeAlias, TypeVar, get_args, get_type_hints

import sqlalchemy as sa
from pydantic import ValidationError
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.exc import SQLAlchemyError

from flujo_aros.database import find_run, make_tables, open_engine, refusal, shown
from flujo_aros.durable.serializer import STRANGER, RejectedRow, decoded, not_ours, of_ours
from flujo_aros.errors import UsageError
from flujo_aros.json_data import is_dict
from flujo_aros.pipeline.results import RecordedStep

FORMAT: Final = 2
"""The format of our rows, `RecordedStep` and `PausedRun` included. A database with a different one was written by an
earlier or later release, and is refused."""
RowT = TypeVar("RowT")
Rows: TypeAlias = Sequence[Mapping[str, Any]]
OPEN: Final = ("queued", "running", "parked", "paused")
"""The statuses of runs that have not ended."""
_STARTED: Final = ("running", "queued", "cancelling")
_WORKFLOW: Final = ("workflow_uuid", "status", "executor_id")
_OUTPUT: Final = ("workflow_uuid", "function_id", "function_name", "output", "serialization")
"""The columns of DBOS's tables that are read here."""
DAMAGED: Final = "damaged"
"""The status of a run whose row cannot be decoded. Never stored: a write that expects it changes nothing."""


class Superseded(BaseException):
    """Raised when another worker has taken over the run: this one must stop immediately and write nothing more.

    Not an `Exception`: no step may settle because of it.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One run, as stored in the database."""

    run_id: str
    pipeline: str
    version: str
    request: str
    status: str
    note: str | None = None
    segment: int = 1
    epoch: int = 0
    takeovers: int = 0
    executor: str | None = None
    queue: str | None = None
    priority: int | None = None
    partition: str | None = None
    live: bool = False
    input: Any = None
    context: Any = None
    paused: dict[str, Any] | None = None
    answer: dict[str, Any] | None = None
    carrier: dict[str, Any] | None = None
    result: dict[str, Any] | None = None
    seconds: float = 0.0
    forked_from: str | None = None
    created: float = 0.0
    ended: float | None = None

    @property
    def workflow_id(self) -> str:
        """The id of the engine's workflow that executes the run now."""
        return workflow_of(self.run_id, self.segment)


def workflow_of(run_id: str, segment: int) -> str:
    """Return the id of a workflow: a run has one, and a new one each time it continues after a pause.

    >>> workflow_of("a", 1), workflow_of("a", 2), workflow_of("a/2", 1)
    ('a', 'a/2', 'a/2/1')
    """
    return run_id if segment == 1 and not _NUMBERED.search(run_id) else f"{run_id}/{segment}"


_NUMBERED: Final = re.compile(r"/[0-9]+\Z")
"""Matches a run id that ends like a segment number; without a number of its own, it could share the workflow of another
run.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The new values of a run's row when it ends or pauses."""

    status: str
    note: str | None = None
    seconds: float
    result: Mapping[str, Any]
    paused: Mapping[str, Any] | None = None
    carrier: Mapping[str, str] | None = None

    def gated(self, unsettled: Sequence[str]) -> Ending:
        """Return the ending, unless steps started and never settled: the completion gate."""
        if not unsettled or self.status in ("cancelled", "paused"):
            return self
        note = f"{len(unsettled)} steps never settled: {', '.join(unsettled[:5])}"
        error = {"step": unsettled[0], "reason": None, "message": note}
        return replace(self, status="failed", note=note, result={**self.result, "status": "failed", "error": error})

    def columns(self, now: float) -> dict[str, Any]:
        """Return the columns of the run's row that change."""
        return {**_values(self), "answer": None, "ended": None if self.status in OPEN else now}


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """One step that started, and how it settled, if it has. `seq` and `settled_seq` are the offsets of its events."""

    run_id: str
    name: str
    kind: str
    seq: int
    attempt: int = 1
    started: float = 0.0
    settled: float | None = None
    settled_seq: int | None = None
    status: str | None = None
    record: dict[str, Any] | None = None

    @property
    def recorded(self) -> RecordedStep | None:
        """How the step settled. Raises `RejectedRow`, with the names of the step and the run, for a record that is not
        in our format.
        """
        if self.record is None:
            return None
        where = f"the record of step {self.name!r} of run {self.run_id}"
        if isinstance(self.record, RejectedRow):
            raise RejectedRow(f"{where}: {self.record}")
        try:
            return RecordedStep.model_validate(self.record)
        except ValidationError as error:
            raise not_ours(where, error) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRow:
    """A piece of a reply, as it was written: `kind` is `delta`, or `replaced` for one that starts again."""

    run_id: str
    seq: int
    step: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Document:
    version: str
    document: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limit:
    id: str
    provider: str
    at: float
    tokens: int
    cost: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Format:
    format: int


class Json(sa.types.TypeDecorator[Any]):
    """Plain data as human-readable JSON; None is NULL."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:  # noqa: ARG002 - its signature
        """Convert a value for the database."""
        return None if value is None else json.dumps(value, ensure_ascii=False)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:  # noqa: ARG002 - its signature
        """Convert a value from the database."""
        return None if value is None else decoded(value)


class JsonOrError(Json):
    """Convert a value from the database; if it cannot be decoded, return the `RejectedRow`, so others still load."""

    cache_ok = True

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """Convert a value from the database."""
        try:
            return super().process_result_value(value, dialect)
        except RejectedRow as error:
            return error


_META = sa.MetaData()
_TYPES: Final[Mapping[Any, Any]] = {str: sa.Text, int: sa.BigInteger, float: sa.Float, bool: sa.Boolean}


def _table(name: str, row: type, *, keys: int = 1, indexed: str | None = None, plain: Any = Json) -> sa.Table:
    """Return a table with one column for each field of the dataclass of its rows; its first `keys`
    fields are the key.
    """
    hints = get_type_hints(row)
    columns: list[sa.Column[Any]] = []
    for at, each in enumerate(fields(row)):
        hint = hints[each.name]
        nullable = hint is Any or NoneType in get_args(hint)
        kind: Any = _TYPES.get(get_args(hint)[0] if NoneType in get_args(hint) else hint, plain)
        index = each.name == indexed
        columns.append(
            sa.Column(each.name, kind, primary_key=at < keys, nullable=nullable, index=index, autoincrement=False)
        )
    return sa.Table(name, _META, *columns)


INFO = _table("aros_durable_format", _Format)
RUNS = _table("aros_durable_runs", RunRow, indexed="status", plain=JsonOrError)
STEPS = _table("aros_durable_steps", StepRow, keys=2, plain=JsonOrError)
TEXTS = _table("aros_durable_texts", TextRow, keys=2)
LIMITS = _table("aros_durable_limits", _Limit, indexed="provider")
DOCUMENTS = _table("aros_durable_documents", _Document)


class DatabaseError(UsageError):
    """Raised when the database reports an error or cannot be reached; runs continue once it works again."""


class Unwritten(BaseException):
    """Raised when a write of a run in progress has failed: the run stops, and later continues from the stored state.

    Not an `Exception`: no step may fail because of it.
    """

    def __init__(self, error: DatabaseError) -> None:
        super().__init__(str(error))
        self.error = error


class Store:
    """The tables of one database. Every method is one transaction, and blocks: call it from a thread.

    Raises `UsageError` for an invalid URL, and for a database that cannot be opened, read or written.
    """

    engine: sa.Engine
    shown: str
    is_sqlite: bool

    def __init__(self, url: str, *, create: bool = True) -> None:
        self.url = url
        missing = None if create else "`aros run --durable` and `aros submit` create one; `aros runs` lists other runs"
        earlier = "end its runs with that release, and use a new database here"

        def tables(engine: sa.Engine) -> None:
            self.engine, self.shown, self.is_sqlite = engine, shown(engine.url), engine.dialect.name == "sqlite"
            try:
                make_tables(engine, INFO.c.format, FORMAT, "durable runs", create=create, earlier=earlier)
            except SQLAlchemyError as error:
                raise self.refused(error) from error

        open_engine(url, "durable database", tables, missing=missing)
        schema = None if self.is_sqlite else "dbos"
        self._workflows = sa.table("workflow_status", *map(sa.column, _WORKFLOW), schema=schema)
        self._outputs = sa.table("operation_outputs", *map(sa.column, _OUTPUT), schema=schema)
        mine = "FROM aros_durable_runs WHERE run_id = :run_id AND epoch = :epoch" + (
            "" if self.is_sqlite else " FOR SHARE"  # in SQLite, a writing statement locks the entire file
        )
        self._start, self._settle = sa.text(_START.format(mine=mine)), sa.text(_SETTLE.format(mine=mine))

    @contextmanager
    def connection(self) -> Generator[sa.Connection]:
        """Open a transaction. Raises `DatabaseError` for any error of the database."""
        try:
            with self.engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise self.refused(error) from error

    @contextmanager
    def snapshot(self) -> Generator[sa.Connection]:
        """Open a transaction that only reads: every query in it sees the rows as they were at the first."""
        with self.connection() as connection:
            connection.exec_driver_sql(
                "BEGIN" if self.is_sqlite else "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
            )
            yield connection

    def refused(self, error: SQLAlchemyError) -> DatabaseError:
        """Return an error of the database, as one sentence."""
        message = refusal(error, self.engine.url)
        later = "; runs continue when it is back" if message.startswith("cannot be reached") else ""
        return DatabaseError(f"the durable database {self.shown} {message}{later}")

    # -- runs --------------------------------------------------------------------------------------------------

    def add(self, connection: sa.Connection, run: RunRow) -> bool:
        """Add a run unless its id exists. Returns whether it was added."""
        return self._insert_if_absent(connection, RUNS, {**_values(run), "created": time.time()})

    def _insert_if_absent(self, connection: sa.Connection, table: sa.Table, row: Mapping[str, Any]) -> bool:
        """Add a row unless its key exists, in one statement: another process may be adding the same."""
        insert = sqlite.insert(table) if self.is_sqlite else postgresql.insert(table)
        found = connection.execute(insert.values(row).on_conflict_do_nothing().returning(*table.primary_key))
        return found.first() is not None

    def run(self, run_id: str) -> RunRow:
        """Return the run with this id, or whose id begins with it; `last` means the newest.

        Raises `UsageError` if there is none, or several, and `RejectedRow` if its row cannot be decoded.
        """
        with self.connection() as connection:
            where = f"{self.shown}; `aros status` lists them"
            return self.row(connection, find_run(connection, RUNS.c.run_id, RUNS.c.created, run_id, where))

    def row(self, connection: sa.Connection, run_id: str) -> RunRow:
        """Return the run with exactly this id, as this transaction sees it."""
        return _intact(self._rows(connection, RUNS.c.run_id == run_id)[0])

    def find(self, run_id: str) -> RunRow | None:
        """Return the run with exactly this id."""
        with self.connection() as connection:
            found = self._rows(connection, RUNS.c.run_id == run_id)
        return _intact(found[0]) if found else None

    def runs(self, *, statuses: Sequence[str] | None = None, limit: int = 100) -> list[RunRow]:
        """Return the runs, newest first. One whose row cannot be decoded is `DAMAGED`, and its note says why."""
        with self.connection() as connection:
            return self._rows(connection, *([RUNS.c.status.in_(statuses)] if statuses else []), limit=limit)

    def interrupted(self, request: str) -> list[RunRow]:
        """Return the unfinished runs of any pipeline on this input that a process started itself,
        and the parked runs.
        """
        with self.connection() as connection:
            return self._rows(
                connection,
                RUNS.c.request == request,
                RUNS.c.status.in_(("running", "queued", "parked")),
                RUNS.c.queue.is_(None),
            )

    def _rows(self, connection: sa.Connection, *where: Any, limit: int = 100) -> list[RunRow]:
        query = sa.select(RUNS).where(*where).order_by(RUNS.c.created.desc()).limit(limit)
        return [_run_of(row) for row in connection.execute(query)]

    def claim(self, run_id: str, segment: int, executor: str) -> RunRow | None:
        """Take a run for this executor; return None if its workflow is no longer the current one of the run."""
        taken = sa.case((sa.and_(RUNS.c.status == "running", RUNS.c.epoch > 0), 1), else_=0)
        with self.connection() as connection:
            changed = connection.execute(
                RUNS.update()
                .where(RUNS.c.run_id == run_id, RUNS.c.segment == segment, RUNS.c.status.in_(("queued", "running")))
                .values(
                    epoch=RUNS.c.epoch + 1,
                    takeovers=RUNS.c.takeovers + taken,
                    executor=executor,
                    status="running",
                    note=None,
                )
            )
            if changed.rowcount == 0:
                return None
            return self.row(connection, run_id)

    def change(self, connection: sa.Connection, run: RunRow, **values: Any) -> bool:
        """Change the row of a run; return False if another process has changed it in the meantime."""
        same = [RUNS.c[name] == getattr(run, name) for name in ("run_id", "segment", "epoch", "status")]
        return connection.execute(RUNS.update().where(*same).values(values)).rowcount == 1

    def take_segment(self, connection: sa.Connection, run: RunRow, **values: Any) -> bool:
        """Continue the run in a new workflow; return False if another process got there first."""
        return self.change(connection, run, segment=run.segment + 1, **values)

    def mark(self, run: RunRow, status: str, note: str) -> bool:
        """Mark a run as parked, cancelled or failed without executing it; return False if it has changed since."""
        ended = None if status in OPEN else time.time()
        with self.connection() as connection:
            return self.change(connection, run, status=status, note=note, ended=ended, epoch=run.epoch + 1)

    def cancelling(self, executor: str) -> list[str]:
        """Return the runs of this executor that should be cancelled."""
        query = sa.select(RUNS.c.run_id).where(RUNS.c.status == "cancelling", RUNS.c.executor == executor)
        with self.connection() as connection:
            return list(connection.execute(query).scalars())

    def executors(self) -> list[str]:
        """Return the executors that have runs in progress, or have dequeued some."""
        workflows = self._workflows.c
        ours = sa.select(RUNS.c.executor).where(RUNS.c.status.in_(_STARTED))
        theirs = sa.select(workflows.executor_id).where(workflows.status == "PENDING")
        with self.connection() as connection:
            return sorted(each for each in connection.execute(sa.union(ours, theirs)).scalars() if each)

    def lost(self, executor: str) -> list[tuple[RunRow, bool]]:
        """Return the runs that no other process can be executing, as far as the engine knows.

        Their workflow has ended, was never written, or (then True) was dequeued by this executor: only it knows whether
        it executes them. Runs to be cancelled are included, since their process may be gone.
        """
        workflow = self._workflows.c
        number = sa.cast(RUNS.c.segment, sa.Text)
        current = sa.case((RUNS.c.segment == 1, RUNS.c.run_id), else_=RUNS.c.run_id + "/" + number)
        dequeued = (workflow.status == "PENDING") & (workflow.executor_id == executor)
        ended = workflow.status.is_(None) | workflow.status.not_in(("ENQUEUED", "PENDING", "DELAYED"))
        query = (
            sa.select(sa.func.coalesce(dequeued, sa.false()), RUNS)
            .outerjoin(self._workflows, workflow.workflow_uuid == current)
            .where(RUNS.c.status.in_(_STARTED), dequeued | ended | (RUNS.c.status == "cancelling"))
        )
        with self.connection() as connection:
            found = [(_run_of(row), bool(is_here)) for is_here, *row in connection.execute(query)]
        return [(run, is_here) for run, is_here in found if run.status != DAMAGED]

    # -- steps -------------------------------------------------------------------------------------------------

    def _lock_run(self, connection: sa.Connection, run_id: str, epoch: int) -> None:
        """Lock the run for this transaction. Raises `Superseded` if another worker has it."""
        mine = sa.and_(RUNS.c.run_id == run_id, RUNS.c.epoch == epoch)
        if self.is_sqlite:  # a write takes the lock that a read does not
            held = connection.execute(RUNS.update().where(mine).values(epoch=RUNS.c.epoch)).rowcount == 1
        else:
            held = (
                connection.execute(sa.select(RUNS.c.run_id).where(mine).with_for_update(read=True)).scalar() is not None
            )
        if not held:
            raise Superseded(run_id)

    def write(self, run_id: str, epoch: int, starts: Rows, settled: Rows = (), texts: Rows = ()) -> None:
        """Record in one transaction which steps start (or start again), how steps have settled, and chunks of text."""
        with self.connection() as connection:
            if not (self.is_sqlite or settled):  # the next commit makes it durable
                connection.execute(_LAZY_COMMIT)
            if texts:
                self._lock_run(connection, run_id, epoch)
            self.add_starts(connection, run_id, epoch, starts)
            self._settled(connection, run_id, epoch, settled)
            if texts:
                connection.execute(TEXTS.insert(), [{"run_id": run_id, **row} for row in texts])

    def add_starts(self, connection: sa.Connection, run_id: str, epoch: int, starts: Rows) -> None:
        """Record that steps start, as part of this transaction. Raises `Superseded` if another worker has the run."""
        for start in starts:
            if connection.execute(self._start, {"run_id": run_id, "epoch": epoch, **start}).rowcount == 0:
                raise Superseded(run_id)

    def _settled(self, connection: sa.Connection, run_id: str, epoch: int, rows: Rows) -> None:
        now = time.time()
        same = {"run_id": run_id, "epoch": epoch, "started": now, "now": now}
        for row in rows:
            record = json.dumps(row["record"], ensure_ascii=False)
            if connection.execute(self._settle, {**same, **row, "record": record}).rowcount == 0:
                raise Superseded(run_id)

    def finish(self, run_id: str, epoch: int, starts: Rows, settled: Rows, ending: Ending) -> str:
        """Record how a run has ended, or that it pauses. Returns its final status.

        That is `completed` only if, in this transaction, every step that started has settled.
        """
        with self.connection() as connection:
            self._lock_run(connection, run_id, epoch)
            self.add_starts(connection, run_id, epoch, starts)
            self._settled(connection, run_id, epoch, settled)
            gated = ending.gated(self._unsettled(connection, run_id))
            connection.execute(RUNS.update().where(RUNS.c.run_id == run_id).values(gated.columns(time.time())))
            return gated.status

    def _unsettled(self, connection: sa.Connection, run_id: str) -> list[str]:
        query = sa.select(STEPS.c.name).where(STEPS.c.run_id == run_id, STEPS.c.settled.is_(None))
        return list(connection.execute(query.order_by(STEPS.c.seq)).scalars())

    def steps(self, run_id: str) -> list[StepRow]:
        """Return the steps of a run that started, in the order of their starts."""
        with self.connection() as connection:
            return _by_offset(connection, STEPS, StepRow, STEPS.c.run_id == run_id)

    def progress(self, run_id: str, after: int) -> tuple[RunRow, list[StepRow], list[TextRow]]:
        """Return a run, the steps that have started or settled after an offset, and the chunks of replies after it.

        All are read at the same moment: otherwise a later event could be among them while an earlier one is not.
        """
        changed = sa.or_(STEPS.c.seq > after, STEPS.c.settled_seq > after)
        with self.snapshot() as connection:
            run = self.row(connection, run_id)
            steps = _by_offset(connection, STEPS, StepRow, STEPS.c.run_id == run_id, changed)
            return run, steps, _by_offset(connection, TEXTS, TextRow, TEXTS.c.run_id == run_id, TEXTS.c.seq > after)

    def copy_steps(self, connection: sa.Connection, run_id: str, steps: Sequence[StepRow]) -> None:
        """Copy these steps of another run to a new run."""
        now = time.time()
        rows = [{**_values(step), "run_id": run_id, "started": now, "settled": now} for step in steps]
        if rows:
            connection.execute(STEPS.insert(), rows)

    # -- the engine's rows -------------------------------------------------------------------------------------

    def calls(self, workflow_ids: Sequence[str]) -> tuple[dict[str, Any], int]:
        """Return the records of the calls of these workflows, by key, and the highest step id of the last workflow.

        Raises `RejectedRow` for a row that is not ours.
        """
        query = sa.select(self._outputs).where(self._outputs.c.workflow_uuid.in_(workflow_ids))
        found: dict[str, Any] = {}
        highest = 0
        with self.connection() as connection:
            for row in connection.execute(query).mappings():
                if row["workflow_uuid"] == workflow_ids[-1]:
                    highest = max(highest, row["function_id"])
                if row["output"] is None or not row["function_name"].startswith("aros:"):
                    continue
                found[row["function_name"]] = of_ours(row["output"], row["serialization"], workflow_ids[0])
        return found, highest

    # -- texts and documents -----------------------------------------------------------------------------------

    def texts(self, run_id: str) -> list[TextRow]:
        """Return the chunks of replies."""
        with self.connection() as connection:
            return _by_offset(connection, TEXTS, TextRow, TEXTS.c.run_id == run_id)

    def add_document(self, connection: sa.Connection, version: str, document: Mapping[str, Any]) -> None:
        """Store the blueprint of a version."""
        self._insert_if_absent(connection, DOCUMENTS, {"version": version, "document": dict(document)})

    def document(self, version: str) -> dict[str, Any] | None:
        """Return the blueprint of a version, or None if a program made the pipeline."""
        with self.connection() as connection:
            return connection.execute(sa.select(DOCUMENTS.c.document).where(DOCUMENTS.c.version == version)).scalar()

    def close(self) -> None:
        """Close the connections."""
        self.engine.dispose()


# These run twice for each step, so each is one prepared statement, which only writes while this worker owns the run.
_START: Final = """
INSERT INTO aros_durable_steps (run_id, name, kind, seq, attempt, started)
SELECT run_id, CAST(:name AS TEXT), CAST(:kind AS TEXT), CAST(:seq AS BIGINT), 1,
CAST(:started AS DOUBLE PRECISION) {mine}
ON CONFLICT (run_id, name) DO UPDATE SET attempt = aros_durable_steps.attempt + 1, started = excluded.started,
settled = NULL, settled_seq = NULL, status = NULL
"""
_SETTLE: Final = """
INSERT INTO aros_durable_steps (run_id, name, kind, seq, attempt, started, settled, settled_seq, status, record)
SELECT run_id, CAST(:name AS TEXT), CAST(:kind AS TEXT), CAST(:seq AS BIGINT), 1, CAST(:started AS DOUBLE PRECISION),
CAST(:now AS DOUBLE PRECISION), CAST(:settled_seq AS BIGINT), CAST(:status AS TEXT), CAST(:record AS TEXT) {mine}
ON CONFLICT (run_id, name) DO UPDATE SET settled = excluded.settled, status = excluded.status,
record = excluded.record, settled_seq = COALESCE(aros_durable_steps.settled_seq, excluded.settled_seq)
"""
_LAZY_COMMIT: Final = sa.text("SET LOCAL synchronous_commit TO off")


def _run_of(columns: Iterable[Any]) -> RunRow:
    """Return the run of a row. Columns that cannot be decoded are empty, and the run is `DAMAGED`."""
    row: dict[str, Any] = dict(zip(RUNS.c.keys(), columns, strict=True))
    refused = {name: error for name, error in row.items() if isinstance(error, RejectedRow)}
    shaped = ((name, row[name]) for name in ("paused", "answer", "carrier", "result"))
    refused |= {
        name: RejectedRow(f"it has the type {type(value).__name__} instead of dict; {STRANGER}")
        for name, value in shaped
        if value is not None and name not in refused and not is_dict(value)
    }
    if not refused:
        return RunRow(**row)
    name, error = next(iter(refused.items()))
    note = f"column `{name}` of run {row['run_id']}, which is {row['status']}: {error}"
    row |= {**dict.fromkeys(refused), "status": DAMAGED, "note": note}
    return RunRow(**row)


def _by_offset(connection: sa.Connection, table: sa.Table, kind: type[RowT], *where: Any) -> list[RowT]:
    query = sa.select(table).where(*where).order_by(table.c.seq)
    return [kind(**row) for row in connection.execute(query).mappings()]


def _intact(run: RunRow) -> RunRow:
    """Return the run. Raises `RejectedRow` if it is damaged."""
    if run.status == DAMAGED:
        raise RejectedRow(run.note)
    return run


def _values(row: RunRow | StepRow | Ending) -> dict[str, Any]:
    """Return the columns of a row without copying nested values, unlike `asdict`."""
    return {each.name: getattr(row, each.name) for each in fields(row)}
