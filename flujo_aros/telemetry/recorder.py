"""Events as rows of the journal: a fold over events without I/O or a clock."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, TypedDict, TypeVar, cast

from pydantic import BaseModel

from flujo_aros.contract import Contract, written_as
from flujo_aros.events import (
    AgentFinished,
    AgentStarted,
    AskFinished,
    AskStarted,
    Event,
    FunctionCalled,
    ReadFinished,
    RunFinished,
    RunStarted,
    Scope,
    StageFinished,
    StagePassed,
    StageStarted,
    StepFinished,
    StepNoted,
    StepStarted,
)
from flujo_aros.outcome import Issue
from flujo_aros.recovery import Ladder, ladder_for
from flujo_aros.settings import current_settings
from flujo_aros.telemetry.formatting import step_place, value_place, value_words
from flujo_aros.telemetry.records import (
    JournalAsk,
    JournalContract,
    JournalNote,
    JournalReading,
    JournalRepair,
    JournalRun,
    JournalStage,
    JournalStep,
    JournalValue,
    Record,
)
from flujo_aros.usage import Usage

T = TypeVar("T")

_AGENT_STATUS: Final = {"accepted": "completed", "degraded": "degraded", "cancelled": "cancelled"}
_MOST_NAME: Final = 200
_HOST: Final = socket.gethostname()


class _Own(TypedDict):
    """The columns that every row of a step begins with."""

    run_id: str
    id: int
    step_id: int
    step_place: str
    model: str


class Recorder:
    """Turns each event into the rows that it adds or updates.

    `new_id` returns ids for rows. Texts are kept only with `content`, and at most `max_text` characters of each.
    """

    def __init__(self, new_id: Callable[[], int], *, content: bool, max_text: int) -> None:
        self._new_id = new_id
        self._content = content
        self._max_text = max_text
        self._open: dict[int, Record] = {}
        """The rows of everything under way, by the scope of its events."""
        self._explained: set[int] = set()
        """Open steps whose value is in their readings, or in the steps inside."""
        self._inputs: dict[int, str] = {}
        self._contracts: set[str] = set()
        self._recovered: dict[tuple[str, str], tuple[int, bool]] = {}
        """The rows of steps that were under way when the process of a durable run ended, by run and name; and whether
        steps inside are settled, which have their own values."""

    def recover(self, run_id: str, left: Mapping[str, int], settled: frozenset[str]) -> None:
        """Let the steps of a recovered run report into their existing rows: `left`, by name."""
        for name, own in left.items():
            self._recovered[run_id, name] = (own, any(each.startswith(f"{name}/") for each in settled))

    def records(self, event: Event) -> Iterator[Record]:  # noqa: C901, PLR0912 (one case for each event)
        """The rows that an event adds or replaces. Live events add none, because their result is in the reading."""
        scope = event.scope
        match event:
            case RunStarted():
                yield self._run(event, event.pipeline, "pipeline")
            case AgentStarted() if scope.id == scope.run:  # else it is part of what is kept already
                yield self._run(event, event.name or "agent", "agent")
            case RunFinished():
                yield from self._run_ended(event, event.status)
            case AgentFinished() if scope.id == scope.run:
                yield from self._run_ended(event, _AGENT_STATUS.get(event.outcome, "failed"))
            case StepStarted():
                yield self._step(event)
            case StepFinished():
                yield from self._step_ended(event)
            case _ if scope.run_id is None:
                return
            case FunctionCalled():
                yield from self._call(event)
            case StepNoted() if self._content:
                yield JournalNote(**self._own(scope, ""), note=event.note, data=event.data)
            case StageStarted():
                yield self._opened(scope, self._stage(event, "running", because=event.reason))
            case StagePassed():
                yield self._stage(event, "passed", why=event.why)
            case StageFinished():
                stage = self._closed(scope, JournalStage)
                if stage is not None:
                    ended = replace(stage, outcome=event.outcome, reason=event.reason, calls=event.calls)
                    yield replace(ended, seconds=scope.seconds)
            case AskStarted():
                yield self._ask(event)
            case AskFinished():
                yield from self._ask_ended(event)
            case ReadFinished():
                yield from self._reading(event)
            case _:
                return

    def _opened(self, scope: Scope, record: T) -> T:
        self._open[scope.id] = cast("Record", record)
        return record

    def _closed(self, scope: Scope, kind: type[T]) -> T | None:
        """The row of whatever ended; None if its start was not seen."""
        record = self._open.pop(scope.id, None)
        return record if isinstance(record, kind) else None

    def _step_around(self, scope: Scope) -> JournalStep | None:
        step = self._open.get(scope.step)
        return step if isinstance(step, JournalStep) else None

    def _own(self, scope: Scope, model: str) -> _Own:
        step = self._step_around(scope)
        return {
            "run_id": scope.run_id or "",
            "id": self._new_id(),
            "step_id": 0 if step is None else step.id,
            "step_place": "" if step is None else step.place,
            "model": _short(model),
        }

    def _run(self, event: RunStarted | AgentStarted, name: str, kind: str) -> JournalRun:
        run = JournalRun(
            run_id=event.run_id,
            pipeline=_short(name),
            kind=kind,
            status="running",
            started=event.at,
            seconds=None,
            usage=Usage(),
            host=_HOST,
            pid=os.getpid(),
        )
        return self._opened(event.scope, run)

    def _run_ended(self, event: RunFinished | AgentFinished, status: str) -> Iterator[JournalRun]:
        run = self._closed(event.scope, JournalRun)
        if run is not None:
            for key in [key for key in self._recovered if key[0] == run.run_id]:
                del self._recovered[key]
            yield replace(run, status=status, seconds=event.seconds, usage=event.usage)

    def _step(self, event: StepStarted) -> JournalStep:
        scope = event.scope
        around = scope.steps[:-1]
        self._explained.update(around)
        recovered, explained = self._recovered.pop((event.run_id, event.name), (None, False))
        if explained:
            self._explained.add(scope.id)
        parents = (step for each in reversed(around) if isinstance(step := self._open.get(each), JournalStep))
        parent = next(parents, None)
        run = self._open.get(scope.run)
        step = JournalStep(
            run_id=event.run_id,
            id=recovered or self._new_id(),
            parent_id=0 if parent is None else parent.id,
            pipeline=run.pipeline if isinstance(run, JournalRun) else "",
            name=event.name,
            place=_short(step_place(event.name)),
            kind=event.kind,
            status="running",
            trust=None,
            reason=None,
            error=None,
            attempts=0,
            started=event.at,
            seconds=None,
            usage=Usage(),
        )
        return self._opened(scope, step)

    def _step_ended(self, event: StepFinished) -> Iterator[Record]:
        step, own = self._closed(event.scope, JournalStep), event.scope.id
        called, explained = self._inputs.pop(own, None), own in self._explained
        self._explained.discard(own)
        if step is None:
            return
        yield replace(
            step,
            status=event.status,
            trust=event.trust,
            input_trust=event.input_trust,
            reason=event.reason,
            error=self._clipped(event.error),
            attempts=event.attempts,
            seconds=event.seconds,
            usage=event.usage,
        )
        if not explained and self._content and (called is not None or event.output is not None):
            output = None if event.output is None else self._text(value_words(event.output))
            yield JournalValue(run_id=step.run_id, id=step.id, input=called, output=output)

    def _call(self, event: FunctionCalled) -> Iterator[JournalValue]:
        step = self._step_around(event.scope)
        if step is not None and self._content:
            self._inputs[event.scope.id] = called = self._text(value_words(event.input))
            yield JournalValue(run_id=step.run_id, id=step.id, input=called, output=None)

    def _stage(
        self, event: StageStarted | StagePassed, outcome: str, *, because: str | None = None, why: str = ""
    ) -> JournalStage:
        return JournalStage(
            **self._own(event.scope, event.model),
            stage=event.stage,
            because=because,
            schema_hash=event.schema_hash,
            outcome=outcome,
            reason=None,
            calls=0,
            why=why,
            started=event.at,
            seconds=0.0 if isinstance(event, StagePassed) else None,
        )

    def _ask(self, event: AskStarted) -> JournalAsk:
        ask = JournalAsk(
            **self._own(event.scope, event.model),
            stage=event.stage,
            attempt=event.attempt,
            constrained=event.constrained,
            started=event.at,
            seconds=None,
            usage=Usage(),
            finish_reason=None,
            fault=None,
            prompt=self._text(event.prompt),
        )
        return self._opened(event.scope, ask)

    def _ask_ended(self, event: AskFinished) -> Iterator[JournalAsk]:
        ask = self._closed(event.scope, JournalAsk)
        if ask is not None:
            yield replace(
                ask,
                model=_short(event.model),
                seconds=event.seconds,
                usage=event.usage,
                finish_reason=event.finish_reason,
                fault=self._clipped(event.fault),
            )

    def _reading(self, event: ReadFinished) -> Iterator[Record]:
        if event.scope.step:
            self._explained.add(event.scope.step)
        reading = JournalReading(
            **self._own(event.scope, event.model),
            stage=event.stage,
            outcome=event.outcome,
            trust=event.trust,
            reason=event.reason,
            schema_hash=event.schema_hash,
            finish_reason=event.finish_reason,
            issues=event.issues if self._content else tuple(Issue("", each.code, "") for each in event.issues),
            read_with=_read_with(event),
            text=self._text(event.text),
            chars=len(event.text),
            at=event.at,
        )
        yield reading
        yield from self._repairs(event, reading)
        known = event.schema_hash
        if known is not None and known not in self._contracts and event.contract is not None:
            self._contracts.add(known)
            contract = cast("Contract[Any]", event.contract)
            spec = {"mode": contract.mode, "schema": contract.json_schema, **contract.where()}
            yield JournalContract(schema_hash=known, spec=json.dumps(spec, ensure_ascii=False))

    def _repairs(self, event: ReadFinished, reading: JournalReading) -> Iterator[JournalRepair]:
        known: set[tuple[str, str]] = set()
        for repair in event.repairs:
            place = _short(value_place(repair.path))
            yield JournalRepair(
                **self._own(event.scope, event.model),
                reading_id=reading.id,
                code=repair.code,
                risk=repair.risk.name.lower(),
                path=repair.path,
                place=place,
                span=repair.span,
                before=self._text(repair.before),
                after=self._text(repair.after),
                at=event.at,
                again=(repair.code, place) in known,
            )
            known.add((repair.code, place))

    def _text(self, text: str) -> str:
        return text[: self._max_text] if self._content else ""

    def _clipped(self, text: str | None) -> str | None:
        return None if text is None else text[: self._max_text]


def _read_with(event: ReadFinished) -> dict[str, Any]:
    """What a replay needs besides the schema: checks, options of the contract and the ladder, unless they are defaults.

    Checks are included as far as they can be written down: functions are not in the journal.
    """
    if event.contract is None:
        return {}
    contract, found = cast("Contract[Any]", event.contract), dict[str, Any]()
    if contract.checks:
        found["checks"] = [written_as(check) for check in contract.checks]
    if options := contract.options():
        found["options"] = options
    ladder = cast("Ladder | None", event.ladder)
    if ladder is not None and ladder != ladder_for(contract, current_settings()):
        stages = [{"stage": stage.stage, **_options(stage)} for stage in ladder.stages]
        found["ladder"] = {**_options(ladder), "stages": stages}
    return found


def _options(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(mode="json", exclude_defaults=True)


def _short(name: str) -> str:
    """A name shortened to fit an index: PostgreSQL rejects a row whose indexed strings are too long in total."""
    return name[:_MOST_NAME]
