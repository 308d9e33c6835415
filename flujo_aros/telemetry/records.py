"""The rows of the journal, each declared once: as a record, from which its table, its writing and its reading follow.

A field of a record is a column of the same name; `Usage` and the span of a repair have several columns, and lists and
dicts are JSON. Every row has an `id` that grows with time (nanoseconds), so that several processes can write at once
and rows sort as they happened. `Masked` columns may hold anything that a user or a model wrote: secrets in them are
masked before they are written.
"""

from __future__ import annotations

import json
import os
import socket
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from decimal import Decimal
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    NamedTuple,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import BaseModel
from sqlalchemy import BigInteger, Boolean, Column, Float, Index, Integer, MetaData, Row, Table, Text
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine

from flujo_aros import events
from flujo_aros.contract import Check, Contract, name_of
from flujo_aros.json_data import value_place
from flujo_aros.outcome import Issue
from flujo_aros.recovery import Ladder, ladder_for
from flujo_aros.settings import current_settings
from flujo_aros.telemetry.formatting import step_place, value_words
from flujo_aros.usage import Usage

VERSION: Final = 1
"""The version of the tables; a journal of a newer version is not modified."""

LARGEST: Final = 2**63 - 1
"""The largest integer of a database; larger numbers from a provider are stored as this."""

METADATA: Final = MetaData()

_MASKED: Final = "masked"
Masked: TypeAlias = Annotated[str, _MASKED]
"""A string that a user or a model wrote."""

T = TypeVar("T")
_INTERNAL: Final = "internal"
Internal: TypeAlias = Annotated[T, _INTERNAL]
"""A column for keys and queries, which `to_plain` leaves out."""


def _computed_field(default: Any) -> Any:
    """Declare a field that is not a column; a query computes it from other rows."""
    return field(default=default, metadata={"computed": True})


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalRun:
    """One run. `status` is the status of the `RunResult`, `running`, or `lost` if its process is gone."""

    run_id: str
    pipeline: Masked
    kind: str
    """`pipeline`, or `agent` for an agent that ran outside a pipeline."""
    status: str = "running"
    started: float
    """In seconds since 1970, like all times."""
    seconds: float | None = None
    usage: Usage = field(default_factory=Usage)
    host: str = ""
    pid: int = 0
    steps: int = _computed_field(0)
    repairs: int = _computed_field(0)

    @property
    def started_at(self) -> datetime:
        """The start time, in UTC."""
        return datetime.fromtimestamp(self.started, UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalStep:
    """One step. `status` is the status of the `StepResult`, or one of three others.

    `running` means that it has not settled, `lost` that its process ended before it settled, and `resumed` that it
    paused and the run has continued since.

    `input` is the argument of a function, `output` the result of a step without a reading: JSON, or the string itself.
    """

    run_id: Internal[str] = ""
    id: int
    parent_id: int
    pipeline: Internal[Masked] = ""
    name: Masked
    place: Internal[Masked] = ""
    """The name without the numbers of loops and maps."""
    kind: str
    status: str = "running"
    trust: str | None = None
    input_trust: str | None = None
    """The lowest trust among the inputs of the step; None in journals that did not keep it."""
    reason: str | None = None
    error: Masked | None = None
    attempts: int = 0
    started: float
    seconds: float | None = None
    usage: Usage = field(default_factory=Usage)
    input: str | None = _computed_field(None)
    output: str | None = _computed_field(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalValue:
    """The input and output of a step whose value was not read from a reply: a function, or plain text."""

    run_id: str
    id: int
    """The id of the step."""
    input: Masked | None
    output: Masked | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfStep:
    """The common columns of rows in a step: the step that they belong to (0 outside a step) and the model."""

    run_id: Internal[str] = ""
    id: int
    step_id: int
    step_place: Internal[Masked] = ""
    model: Masked = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalNote(_OfStep):
    """Data that a step reported besides its value: `note` is `agreement` or `ensemble`, and `data` is its plain
    JSON."""

    note: str
    data: Annotated[dict[str, Any], _MASKED]


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalStage(_OfStep):
    """One stage of a ladder that ran, or was skipped: then `outcome` is `skipped`, and `why` says why."""

    stage: str
    because: str | None = None
    schema_hash: str | None = None
    outcome: str = "running"
    """`accepted`, `degraded`, `rejected`, `running`, `interrupted` or `skipped`."""
    reason: str | None = None
    calls: int = 0
    why: Masked = ""
    started: float
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalAsk(_OfStep):
    """One model call. `seconds` is None if it never returned."""

    stage: str
    attempt: int
    constrained: bool
    started: float
    seconds: float | None = None
    usage: Usage = field(default_factory=Usage)
    finish_reason: str | None = None
    fault: Masked | None = None
    prompt: Masked


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalRepair(_OfStep):
    """One edit between the text of a reading and its value."""

    id: Internal[int] = 0
    step_id: Internal[int] = 0
    model: Internal[Masked] = ""
    reading_id: Internal[int] = 0
    code: str
    risk: str
    path: Masked
    place: Internal[Masked] = ""
    """The path without list indexes."""
    span: tuple[int, int]
    before: Masked
    after: Masked
    at: Internal[float] = 0.0
    again: Internal[bool] = False
    """Whether the same repair was already made at the same position in this reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalReading(_OfStep):
    """One reply and the outcome of reading it. Secrets in `text` are masked at the same length."""

    stage: str
    outcome: str
    trust: str | None
    reason: str | None
    schema_hash: str | None
    finish_reason: str | None
    issues: Annotated[tuple[Issue, ...], _MASKED]
    read_with: Annotated[dict[str, Any], _MASKED] = field(default_factory=dict[str, Any])
    """The configuration of the reading besides the schema, if it is not the default: `options` of the contract, the
    `ladder`, and `checks`: an `expression`, a `function` to import, or the `name` of any other."""
    text: Masked
    chars: int
    """The length of the reply, which exceeds that of `text` if the journal kept only its beginning."""
    at: float
    repairs: tuple[JournalRepair, ...] = _computed_field(())

    @property
    def whole(self) -> bool:
        """Whether all of the text was kept."""
        return len(self.text) == self.chars


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalContract:
    """The contract with this hash, as JSON: mode, schema, and where the payload is."""

    schema_hash: str
    spec: Masked


Record: TypeAlias = (
    JournalRun
    | JournalStep
    | JournalValue
    | JournalNote
    | JournalStage
    | JournalAsk
    | JournalReading
    | JournalRepair
    | JournalContract
)
"""A row of the journal."""

Part: TypeAlias = JournalAsk | JournalReading | JournalStage
"""The records of events inside a step."""

RecordT = TypeVar("RecordT", bound="Record")


class Dollars(TypeDecorator[Decimal]):
    """US dollars, stored as whole picodollars, which any database adds up exactly and quickly."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: Decimal | None, dialect: Dialect) -> int | None:  # noqa: ARG002 (its signature)
        """Convert a value for the database."""
        return None if value is None else min(int(value.scaleb(12).to_integral_value()), LARGEST)

    def process_result_value(self, value: Any | None, dialect: Dialect) -> Decimal | None:  # noqa: ARG002 (as above)
        """Convert a value from the database."""
        return None if value is None else Decimal(int(value)).scaleb(-12)


class _Columns(NamedTuple):
    """The storage of one field: its columns, the values written to them, and the field read from them."""

    types: Mapping[str, type[TypeEngine[Any]]]
    encode: Callable[[Any], tuple[Any, ...]]
    decode: Callable[..., Any]
    marks: tuple[Any, ...] = ()


_USED_TYPES: Final[Mapping[str, type[TypeEngine[Any]]]] = {
    "requests": Integer,
    "input_tokens": BigInteger,
    "output_tokens": BigInteger,
    "cost": Dollars,
    "unmeasured_requests": Integer,
}
USED: Final = tuple(_USED_TYPES)
"""The columns of a `Usage`; the cost is NULL if no price is known."""
_PLAIN: Final[dict[Any, tuple[type[TypeEngine[Any]], Any]]] = {
    str: (Text, ""),
    int: (BigInteger, 0),
    float: (Float, 0.0),
    bool: (Boolean, False),
}
"""The type of the column, and the value read for NULL if the field is not optional."""


def _of_usage(used: Usage) -> tuple[Any, ...]:
    tokens = min(used.input_tokens, LARGEST), min(used.output_tokens, LARGEST)
    return (used.requests, *tokens, used.cost, used.unmeasured_requests)


def usage_in(requests: Any, read: Any, written: Any, cost: Decimal | None, unmeasured: Any) -> Usage:
    """Return the `Usage` in the columns `USED`, or in sums of them."""
    return Usage(int(requests or 0), int(read or 0), int(written or 0), cost, int(unmeasured or 0))


def _of_json(value: Any) -> tuple[str | None]:
    return (json.dumps(_plain(value), ensure_ascii=False, default=str) if value else None,)


def _json(text: str | None) -> Any:
    try:
        return json.loads(text or "{}")
    except ValueError:  # masking a secret may have removed a quote
        return {}


def _columns(kind: type[Any]) -> dict[str, _Columns]:
    """Return the storage of the fields of a record."""
    hints = get_type_hints(kind, include_extras=True)
    kept = (each.name for each in fields(kind) if not each.metadata.get("computed"))
    return {name: _columns_of(name, hints[name]) for name in kept}


def _columns_of(name: str, hint: Any) -> _Columns:
    marks: tuple[Any, ...]
    marks, hint = (hint.__metadata__, get_args(hint)[0]) if get_origin(hint) is Annotated else ((), hint)
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    plain = next(part for part in parts if part is not NoneType)
    if get_origin(plain) is Annotated:
        marks, plain = (*marks, *plain.__metadata__), get_args(plain)[0]
    if plain is Usage:
        return _Columns(_USED_TYPES, _of_usage, usage_in)
    if plain == tuple[int, int]:
        return _Columns({"start": BigInteger, "stop": BigInteger}, tuple, _span)
    if plain not in _PLAIN:
        return _Columns({name: Text}, _of_json, _issues if get_origin(plain) is tuple else _json, marks)
    kind, empty = _PLAIN[plain]

    def decode(value: Any) -> Any:
        return empty if value is None and NoneType not in parts else value

    return _Columns({name: kind}, _one, decode, marks)


def _span(start: int, stop: int) -> tuple[int, int]:
    return start, stop


def _one(value: Any) -> tuple[Any]:
    return (value,)


def _issues(text: str | None) -> tuple[Issue, ...]:
    return tuple(Issue(**each) for each in _json(text) or ())


_KEPT: Final[dict[type[Any], dict[str, _Columns]]] = {}
"""The storage of the fields of each record type."""


def to_row(record: Record) -> dict[str, Any]:
    """Return the values of the columns of a record."""
    row: dict[str, Any] = {}
    for name, columns in _KEPT[type(record)].items():
        row.update(zip(columns.types, columns.encode(getattr(record, name)), strict=True))
    return row


def to_plain(record: Record) -> dict[str, Any]:
    """Return a record as plain JSON, with its computed fields and without its keys."""
    internal = {name for name, columns in _KEPT[type(record)].items() if _INTERNAL in columns.marks}
    return {each.name: _plain(getattr(record, each.name)) for each in fields(record) if each.name not in internal}


def _plain(value: Any) -> Any:
    if isinstance(value, Usage):
        return value.to_dict()
    if isinstance(value, Issue):
        return value.to_dict() | ({} if value.at is None else {"at": value.at})
    if isinstance(value, JournalRepair):
        return to_plain(value)
    if isinstance(value, tuple):
        return [_plain(each) for each in cast("Sequence[Any]", value)]
    return value


def from_row(kind: type[RecordT], row: Row[Any], **computed: Any) -> RecordT:
    """Return the record in a row, with the fields that are computed."""
    found = {
        name: columns.decode(*(getattr(row, each) for each in columns.types)) for name, columns in _KEPT[kind].items()
    }
    return kind(**found, **computed)


TABLES: Final[dict[type[Any], Table]] = {}
"""The table of each record."""


def _table(kind: type[Any], name: str, *keys: str, indexes: Mapping[str, tuple[str, ...]] | None = None) -> Table:
    _KEPT[kind] = kept = _columns(kind)
    columns = [
        Column(column, of, primary_key=column in keys, autoincrement=False, info={"masked": _MASKED in each.marks})
        for each in kept.values()
        for column, of in each.types.items()
    ]
    wanted = (Index(f"{name}_{end}", *columns) for end, columns in (indexes or {}).items())
    TABLES[kind] = table = Table(name, METADATA, *columns, *wanted)
    return table


# The indexes named `…_health` contain all columns that health needs, in its grouping order. So no texts are read and no
# rows are sorted, which would take longer than everything else.

ABOUT: Final = Table("aros_journal", METADATA, Column("version", Integer, primary_key=True))

RUNS: Final = _table(JournalRun, "aros_runs", "run_id", indexes={"started": ("started",)})
STEPS: Final = _table(
    JournalStep,
    "aros_steps",
    *("run_id", "id"),
    indexes={"health": ("pipeline", "place", "status", "trust", "started", "seconds", *USED)},
)
VALUES: Final = _table(JournalValue, "aros_values", "run_id", "id")
NOTES: Final = _table(JournalNote, "aros_notes", "run_id", "id")
STAGES: Final = _table(JournalStage, "aros_stages", "run_id", "id", indexes={"started": ("started",)})
ASKS: Final = _table(
    JournalAsk, "aros_asks", "run_id", "id", indexes={"health": ("model", "stage", "started", "step_place", *USED)}
)
READINGS: Final = _table(
    JournalReading,
    "aros_readings",
    *("run_id", "id"),
    indexes={"health": ("stage", "model", "step_place", "outcome", "trust", "reason", "at")},
)
REPAIRS: Final = _table(
    JournalRepair,
    "aros_repairs",
    *("run_id", "id"),
    indexes={"health": ("again", "code", "risk", "place", "step_place", "model", "at")},
)
CONTRACTS: Final = _table(JournalContract, "aros_contracts", "schema_hash")

Index(
    "aros_asks_faults",
    *(ASKS.c.model, ASKS.c.started, ASKS.c.step_place),
    sqlite_where=ASKS.c.fault.is_not(None),
    postgresql_where=ASKS.c.fault.is_not(None),
)

OF_A_RUN: Final = tuple(table for table in TABLES.values() if "run_id" in table.c)
"""All tables with rows of runs."""


@dataclass(frozen=True, slots=True)
class Chapter:
    """Everything that happened in one step; `step` is None for an agent outside a pipeline."""

    step: JournalStep | None
    stages: tuple[JournalStage, ...] = ()
    asks: tuple[JournalAsk, ...] = ()
    readings: tuple[JournalReading, ...] = ()
    notes: tuple[JournalNote, ...] = ()

    @property
    def name(self) -> str:
        """The name of the step."""
        return "" if self.step is None else self.step.name

    @property
    def parts(self) -> tuple[Part, ...]:
        """Calls, readings and stages, in the order in which they started."""
        parts: list[Part] = [*self.asks, *self.readings, *self.stages]
        return tuple(sorted(parts, key=lambda part: part.id))

    @property
    def ran(self) -> frozenset[str]:
        """The stages that ran."""
        return frozenset(stage.stage for stage in self.stages if stage.outcome != "skipped")

    @property
    def nested_parts(self) -> Iterator[tuple[Part, bool]]:
        """Its parts, and whether each is the call or the reading of a stage that ran."""
        for part in self.parts:
            yield part, not isinstance(part, JournalStage) and part.stage in self.ran

    @property
    def values(self) -> Iterator[tuple[str, str]]:
        """The argument of a function, and the output of a step without a reading, as `input` and `output`."""
        for name, value in () if self.step is None else (("input", self.step.input), ("output", self.step.output)):
            if value is not None:
                yield name, value

    @property
    def final(self) -> JournalReading | None:
        """The decisive reading: the accepted one, or else the last."""
        accepted = [reading for reading in self.readings if reading.outcome != "rejected"]
        return next(reversed(accepted or self.readings), None)

    @property
    def turns(self) -> dict[int, str]:
        """By the id of each call of an ensemble, the agent that was asked, and its turn."""
        turns: list[str] = []
        for note in self.notes:
            if note.note == "ensemble":
                event = note.data
                agent = event["payload"].get("agent", event["actor"])
                turns += [f"{agent}, turn {event['turn']}"] * event["meta"].get("requests", 0)
        whole = len(turns) == len(self.asks)  # calls of an interrupted turn are in no event
        return {ask.id: turn for ask, turn in zip(self.asks, turns, strict=True)} if whole else {}


@dataclass(frozen=True, slots=True)
class Story:
    """A complete run, in the order of events."""

    run: JournalRun
    chapters: tuple[Chapter, ...]
    contracts: dict[str, str] = field(default_factory=dict[str, str])
    """The contracts of its readings as JSON (mode, schema, location of the payload), by `schema_hash`."""
    pauses: tuple[tuple[float, float], ...] = ()
    """The start and end of each time at which the run waited for an answer, in seconds since 1970."""

    @property
    def seconds(self) -> float:
        """The duration of the whole run without its pauses, even if it has not ended."""
        ends = [self.run.seconds or 0.0]
        for chapter in self.chapters:
            timed = (*chapter.asks, *chapter.stages, *((chapter.step,) if chapter.step else ()))
            ends += [self.since_start(each.started) + (each.seconds or 0.0) for each in timed]
        return max(*ends, 1e-6)

    @property
    def paused_seconds(self) -> float:
        """How long the run waited for answers."""
        return sum(end - start for start, end in self.pauses)

    def since_start(self, when: float) -> float:
        """Return the time from the start of the run to a moment, without the pauses between them."""
        return when - self.run.started - sum(max(min(when, end) - start, 0.0) for start, end in self.pauses)

    def so_far(self, now: float) -> Story:
        """Return the same story; if it is still running, with its time up to `now`, in seconds since 1970."""
        if self.run.status != "running":
            return self
        chapters = tuple(
            replace(chapter, step=replace(chapter.step, seconds=now - chapter.step.started))
            if chapter.step and chapter.step.status == "running"
            else chapter
            for chapter in self.chapters
        )
        return replace(self, run=replace(self.run, seconds=self.since_start(now)), chapters=chapters)

    @property
    def nested(self) -> Iterator[tuple[Chapter, int, bool]]:
        """Every chapter, each followed by those inside it: with its depth, and whether there are any."""
        inside: defaultdict[int, list[Chapter]] = defaultdict(list)
        for chapter in self.chapters:
            inside[0 if chapter.step is None else chapter.step.parent_id].append(chapter)

        def below(parent: int, depth: int) -> Iterator[tuple[Chapter, int, bool]]:
            for chapter in inside[parent]:
                own = 0 if chapter.step is None else chapter.step.id
                yield chapter, depth, own in inside and own != 0
                yield from below(own, depth + 1) if own in inside and own != 0 else ()

        yield from below(0, 0)

    def children(self, parent_id: int = 0) -> Iterator[Chapter]:
        """Return the direct children of a step in start order; by default those of the pipeline itself."""
        return (each for each in self.chapters if (each.step.parent_id if each.step else 0) == parent_id)


def is_gone(host: str | None, pid: int | None) -> bool:
    """Return whether the process of a run is known to have ended, which can be seen only on its own host."""
    if not pid or host != socket.gethostname():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


_AGENT_STATUS: Final = {"accepted": "completed", "degraded": "degraded", "cancelled": "cancelled"}
_BODIES: Final = frozenset({"branch", "iteration", "item", "reading", "field"})
"""The kinds of a body that is a separate step in a run."""
_MOST_NAME: Final = 200
_HOST: Final = socket.gethostname()


def _said(kind: type[Any], source: Any) -> dict[str, Any]:
    """Return the columns of a record for which another object has an attribute of the same name."""
    return {name: getattr(source, name) for name in _KEPT[kind] if hasattr(source, name)}


def _of(kind: type[RecordT], source: Any, /, **own: Any) -> RecordT:
    """Return a record with the attributes of an event in its columns, except for the values given here."""
    return kind(**(_said(kind, source) | own))


def _end_record(record: RecordT, event: events.Event, /, **own: Any) -> RecordT:
    """Return the record with the attributes of its finished event in its columns, except for the values given here."""
    return replace(record, **(_said(type(record), event) | own))


class Recorder:
    """Turns each event into the rows that it adds or updates.

    `new_id` returns ids for rows. Texts are kept only with `content`, and at most `max_text` characters of each.
    """

    def __init__(self, new_id: Callable[[], int], *, content: bool, max_text: int) -> None:
        self._new_id = new_id
        self._content = content
        self._max_text = max_text
        self._open: dict[int, Record] = {}
        """The rows of everything in progress, by the scope of its events."""
        self._explained: set[int] = set()
        """Open steps whose value is in their readings."""
        self._inputs: dict[int, str] = {}
        self._contracts: set[str] = set()
        self._recovered: dict[tuple[str, str], int] = {}
        """The rows of steps that were in progress when the process of a durable run ended, by run and name."""

    def recover(self, run_id: str, left: Mapping[str, int]) -> None:
        """Let the steps of a recovered run update their existing rows, given as `left` by step name."""
        self._recovered.update({(run_id, name): own for name, own in left.items()})

    def records(self, event: events.Event) -> Iterator[Record]:  # noqa: C901, PLR0912 (one case for each event)
        """Yield the rows that an event adds or replaces. Events of live text add none, because the reading contains the
        result.
        """
        scope = event.scope
        match event:
            case events.RunStarted():
                yield self._run(event, event.pipeline, "pipeline")
            case events.AgentStarted() if scope.id == scope.run:  # otherwise it is part of the kept text
                yield self._run(event, event.name or "agent", "agent")
            case events.RunFinished():
                yield from self._run_ended(event, event.status)
            case events.AgentFinished() if scope.id == scope.run:
                yield from self._run_ended(event, _AGENT_STATUS.get(event.outcome, "failed"))
            case events.StepStarted():
                yield self._step(event)
            case events.StepFinished():
                yield from self._step_ended(event)
            case _ if scope.run_id is None:
                return
            case events.FunctionCalled():
                yield from self._call(event)
            case events.StepNoted() if self._content:
                yield _of(JournalNote, event, **self._own(event))
            case events.StageStarted():
                began = {"because": event.reason, "reason": None, "started": event.at}
                yield self._opened(event, _of(JournalStage, event, **self._own(event), **began))
            case events.StageSkipped():
                skipped = {"outcome": "skipped", "started": event.at, "seconds": 0.0}
                yield _of(JournalStage, event, **self._own(event), **skipped)
            case events.StageFinished():
                if (stage := self._closed(event, JournalStage)) is not None:
                    kept = {"because": stage.because, "schema_hash": stage.schema_hash}
                    yield _end_record(stage, event, **kept, seconds=scope.seconds)
            case events.AskStarted():
                prompt = self._text(event.prompt)
                yield self._opened(event, _of(JournalAsk, event, **self._own(event), prompt=prompt, started=event.at))
            case events.AskFinished():
                if (row := self._closed(event, JournalAsk)) is not None:
                    yield _end_record(row, event, model=_short(event.model), fault=self._clipped(event.fault))
            case events.ReadFinished():
                yield from self._reading(event)
            case _:
                return

    def _opened(self, event: events.Event, record: RecordT) -> RecordT:
        self._open[event.scope.id] = record
        return record

    def _closed(self, event: events.Event, kind: type[T]) -> T | None:
        """Return the row of the operation that ended, or None if its start was not seen."""
        record = self._open.pop(event.scope.id, None)
        return record if isinstance(record, kind) else None

    def _step_around(self, event: events.Event) -> JournalStep | None:
        step = self._open.get(event.scope.step)
        return step if isinstance(step, JournalStep) else None

    def _own(self, event: events.Event) -> dict[str, Any]:
        """Return the columns that every row of a step begins with."""
        step = self._step_around(event)
        return {
            "run_id": event.scope.run_id or "",
            "id": self._new_id(),
            "step_id": 0 if step is None else step.id,
            "step_place": "" if step is None else step.place,
            "model": _short(getattr(event, "model", "")),
        }

    def _run(self, event: events.RunStarted | events.AgentStarted, name: str, kind: str) -> JournalRun:
        own = {"pipeline": _short(name), "kind": kind, "started": event.at, "host": _HOST, "pid": os.getpid()}
        return self._opened(event, _of(JournalRun, event, **own))

    def _run_ended(
        self, event: events.RunFinished | events.AgentFinished, status: str
    ) -> Iterator[JournalRun | JournalStep]:
        run = self._closed(event, JournalRun)
        if run is not None:
            for name, kind in event.never_started.items() if isinstance(event, events.RunFinished) else ():
                yield JournalStep(
                    run_id=run.run_id,
                    id=self._recovered.get((run.run_id, name)) or self._new_id(),
                    parent_id=0,
                    pipeline=run.pipeline,
                    name=name,
                    place=_short(step_place(name)),
                    kind=kind,
                    status="skipped",
                    error=events.NEVER_STARTED,
                    started=event.at,
                    seconds=0.0,
                )
            for key in [key for key in self._recovered if key[0] == run.run_id]:
                del self._recovered[key]
            yield _end_record(run, event, pipeline=run.pipeline, status=status)

    def _step(self, event: events.StepStarted) -> JournalStep:
        scope = event.scope
        around = scope.steps[:-1]
        recovered = self._recovered.pop((event.run_id, event.name), None)
        parents = (step for each in reversed(around) if isinstance(step := self._open.get(each), JournalStep))
        parent = next(parents, None)
        run = self._open.get(scope.run)
        step = _of(
            JournalStep,
            event,
            id=recovered or self._new_id(),
            parent_id=0 if parent is None else parent.id,
            pipeline=run.pipeline if isinstance(run, JournalRun) else "",
            place=_short(step_place(event.name)),
            started=event.at,
        )
        return self._opened(event, step)

    def _step_ended(self, event: events.StepFinished) -> Iterator[Record]:
        step, own = self._closed(event, JournalStep), event.scope.id
        called, explained = self._inputs.pop(own, None), own in self._explained
        self._explained.discard(own)
        if step is None:
            return
        yield _end_record(step, event, error=self._clipped(event.error))
        explained |= step.kind in _BODIES  # the last step inside has its value
        if not explained and self._content and (called is not None or event.output is not None):
            output = None if event.output is None else self._text(value_words(event.output))
            yield JournalValue(run_id=step.run_id, id=step.id, input=called, output=output)

    def _call(self, event: events.FunctionCalled) -> Iterator[JournalValue]:
        step = self._step_around(event)
        if step is not None and self._content:
            self._inputs[event.scope.id] = called = self._text(value_words(event.input))
            yield JournalValue(run_id=step.run_id, id=step.id, input=called, output=None)

    def _reading(self, event: events.ReadFinished) -> Iterator[Record]:
        if event.scope.step:
            self._explained.add(event.scope.step)
        issues = event.issues if self._content else tuple(Issue("", each.code, "") for each in event.issues)
        kept = {"text": self._text(event.text), "chars": len(event.text), "read_with": _read_with(event)}
        reading = _of(JournalReading, event, **self._own(event), **kept, issues=issues)
        yield reading
        known: set[tuple[str, str]] = set()
        for repair in event.repairs:
            place = _short(value_place(repair.path))
            yield _of(
                JournalRepair,
                repair,
                **self._own(event),
                reading_id=reading.id,
                risk=repair.risk.name.lower(),
                place=place,
                before=self._text(repair.before),
                after=self._text(repair.after),
                at=event.at,
                again=(repair.code, place) in known,
            )
            known.add((repair.code, place))
        used = event.schema_hash
        if used is not None and used not in self._contracts and event.contract is not None:
            self._contracts.add(used)
            contract = cast("Contract[Any]", event.contract)
            spec = {"mode": contract.mode, "schema": contract.json_schema, **contract.where()}
            yield JournalContract(schema_hash=used, spec=json.dumps(spec, ensure_ascii=False))

    def _text(self, text: str) -> str:
        return text[: self._max_text] if self._content else ""

    def _clipped(self, text: str | None) -> str | None:
        return None if text is None else text[: self._max_text]


def _read_with(event: events.ReadFinished) -> dict[str, Any]:
    """Return the data that a replay needs besides the schema: checks, and the options of the contract and of the ladder
    that are not defaults.

    Checks are included as far as they can be serialized: functions are not in the journal.
    """
    if event.contract is None:
        return {}
    contract, found = cast("Contract[Any]", event.contract), dict[str, Any]()
    if contract.checks:
        found["checks"] = [_written_as(check) for check in contract.checks]
    if options := contract.options():
        found["options"] = options
    ladder = cast("Ladder | None", event.ladder)
    if ladder is not None and ladder != ladder_for(contract, current_settings()):
        stages = [{"stage": stage.stage, **_options(stage)} for stage in ladder.stages]
        found["ladder"] = {**_options(ladder), "stages": stages}
    return found


def _written_as(check: Check) -> dict[str, str]:
    """Return a check in serializable form: its expression, its import path, or just its name."""
    for attribute, key in (("expression", "expression"), ("reference", "function")):
        found = getattr(check, attribute, None)
        if isinstance(found, str):
            return {key: found}
    return {"name": name_of(check)}


def _options(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(mode="json", exclude_defaults=True)


def _short(name: str) -> str:
    """Return a name shortened to fit an index: PostgreSQL rejects a row whose indexed strings are too long in total."""
    return name[:_MOST_NAME]
