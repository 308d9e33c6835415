"""Paused runs: what is written down while a run waits for a person, enough to go on in another process."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from flujo_aros.contract.output import Contract
from flujo_aros.contract.values import Invalid
from flujo_aros.errors import UsageError
from flujo_aros.outcome import Accepted, Degraded, Issue, Outcome, Reason, Rejected, Repair, Risk, Trust
from flujo_aros.pipeline.facts import effective
from flujo_aros.pipeline.flow import Pipeline
from flujo_aros.pipeline.ledger import PauseRun, RunLedger, Slot
from flujo_aros.pipeline.results import StepResult, StepStatus
from flujo_aros.pipeline.step import PipelineStep, Step
from flujo_aros.pipeline.template import InputTemplate
from flujo_aros.usage import Usage

_VERSION: Final = 1


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RecordedRepair(_Strict):
    """One edit between the text and the value of a settled step."""

    code: str
    risk: int
    path: str
    span: tuple[int, int]
    before: str
    after: str


class RecordedOutcome(_Strict):
    """The outcome of a settled step, as plain JSON."""

    outcome: str
    value: Any = None
    trust: str = "clean"
    origin: str = "first"
    text: str = ""
    reason: str | None = None
    issues: list[dict[str, str]] = []
    repairs: list[RecordedRepair] = []


class RecordedStep(_Strict):
    """How one step had settled before the run paused, and what it has put into the context."""

    name: str
    kind: str
    status: StepStatus
    outcome: RecordedOutcome | None = None
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: Decimal | None = None
    unmeasured_requests: int = 0
    attempts: int = 1
    seconds: float = 0.0
    error: str | None = None
    degraded_accepted: bool = False
    caused_by: str | None = None
    excused_by: str | None = None
    replaced: str | None = None
    writes: list[tuple[list[str], Any]] = []
    messages: list[Any] = []


class PausedRun(_Strict):
    """A run that waits for an answer, as plain JSON: save `to_dict()` anywhere, and `Runner.resume` goes on from it.

    `step` is the full name of the step that asks, `message` what it asks, `input_schema` what the answer must satisfy.
    Values in it are those of the run: it is as private as they are.
    """

    version: int = _VERSION
    run_id: str
    pipeline: str
    fingerprint: str
    step: str
    message: str
    input_schema: dict[str, Any] | None = None
    input: Any = None
    context: Any = None
    steps: list[RecordedStep] = Field(default_factory=list[RecordedStep])

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return self.model_dump(mode="json")

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> PausedRun:
        """What `to_dict` has saved. Raises `UsageError` for anything else."""
        try:
            return cls.model_validate_json(json.dumps(dict(saved)))
        except (ValidationError, TypeError, ValueError) as error:
            raise UsageError(f"this is not the state of a paused run: {str(error).splitlines()[0]}") from error


def paused_run(pipeline: Pipeline, ledger: RunLedger, pause: PauseRun, given: Any, context: Any) -> PausedRun:
    """Everything that a paused run needs to go on. Raises `UsageError` for a value that cannot be saved."""
    talks = has_conversation(pipeline)
    settled = [slot for slot in ledger.settled if _is_final(slot.result)]
    return PausedRun(
        run_id=ledger.run_id,
        pipeline=pipeline.name,
        fingerprint=fingerprint(pipeline),
        step=pause.step or "",
        message=pause.message,
        input_schema=None if pause.input_schema is None else dict(pause.input_schema),
        input=_saved(given, "the input"),
        context=_saved(context, "the context"),
        steps=[_recorded(slot, talks=talks) for slot in settled],
    )


def recorded_slots(paused: PausedRun, pipeline: Pipeline) -> dict[str, Slot]:
    """The settled steps of a paused run, for the run that goes on; values with a contract are typed again."""
    contracts = dict(_contracts(pipeline))
    return {step.name: _slot(step, contracts.get(step.name)) for step in paused.steps}


def fingerprint(pipeline: Pipeline) -> str:
    """A hash of what a pipeline does: its steps with their templates, contracts, agents and options."""
    described = json.dumps(_described(pipeline), sort_keys=True, default=str)
    return hashlib.sha256(described.encode()).hexdigest()


def _is_final(result: StepResult[Any]) -> bool:
    """Whether a step need not run again: all but those that paused, and those cancelled without an explanation."""
    cancelled = result.status is StepStatus.CANCELLED and result.excused_by is None
    return result.status is not StepStatus.PAUSED and not cancelled


def _recorded(slot: Slot, *, talks: bool) -> RecordedStep:
    """A settled step as plain JSON, with what was said in it if later steps may go on from there."""
    from flujo_aros.agents.conversation import plain_conversation  # here: most runs have no need of the model host

    result = slot.result
    kept = ("name", "kind", "status", "attempts", "seconds", "error", "degraded_accepted", "caused_by", "excused_by")
    return RecordedStep(
        **{key: getattr(result, key) for key in (*kept, "replaced")},
        **dataclasses.asdict(result.usage),
        outcome=_recorded_outcome(result),
        writes=[(list(path), _saved(value, f"step {result.name!r}")) for path, value in slot.writes],
        messages=plain_conversation(slot.messages) if talks else [],
    )


def _recorded_outcome(result: StepResult[Any]) -> RecordedOutcome | None:
    outcome = result.outcome
    if outcome is None:
        return None
    if isinstance(outcome, Accepted):
        value = _saved(outcome.value, f"step {result.name!r}")
        return RecordedOutcome(
            outcome=outcome.kind,
            value=value,
            trust=outcome.trust.value,
            origin=outcome.origin,
            text=outcome.text,
            repairs=[RecordedRepair(**dataclasses.asdict(repair)) for repair in outcome.repairs],
        )
    rejected = outcome.because if isinstance(outcome, Degraded) else outcome
    return RecordedOutcome(
        outcome=outcome.kind,
        text=outcome.text,
        reason=rejected.reason.value,
        issues=[issue.to_dict() for issue in rejected.issues],
    )


def _slot(step: RecordedStep, contract: Contract[Any] | None) -> Slot:
    from flujo_aros.agents.conversation import conversation_of  # as in `_recorded`

    usage = Usage(step.requests, step.input_tokens, step.output_tokens, step.cost, step.unmeasured_requests)
    result: StepResult[Any] = StepResult(
        name=step.name,
        kind=step.kind,
        status=step.status,
        outcome=None if step.outcome is None else _outcome(step.outcome, contract),
        usage=usage,
        attempts=step.attempts,
        seconds=step.seconds,
        error=step.error,
        degraded_accepted=step.degraded_accepted,
        caused_by=step.caused_by,
        excused_by=step.excused_by,
        replaced=step.replaced,
    )
    writes = tuple((tuple(path), value) for path, value in step.writes)
    return Slot.replayed(result, writes, conversation_of(step.messages) if step.messages else ())


def _outcome(saved: RecordedOutcome, contract: Contract[Any] | None) -> Outcome[Any]:
    if saved.outcome == Accepted.kind:
        value = saved.value
        if contract is not None:
            verdict = contract.validate(value)
            value = value if isinstance(verdict, Invalid) else verdict.value
        repairs = tuple(
            Repair(each.code, Risk(each.risk), each.path, each.span, each.before, each.after) for each in saved.repairs
        )
        return Accepted(value, Trust(saved.trust), saved.origin, repairs, saved.text)
    issues = tuple(Issue(issue["path"], issue["code"], issue["message"]) for issue in saved.issues)
    rejected = Rejected(Reason(saved.reason or Reason.INVALID), issues, saved.text)
    return rejected if saved.outcome == Rejected.kind else Degraded(saved.text, rejected)


def _saved(value: Any, what: str) -> Any:
    """A value as plain JSON that comes back as the same JSON. Raises `UsageError` where there is none."""
    try:
        return to_jsonable_python(value, by_alias=True, bytes_mode="base64", inf_nan_mode="strings")
    except PydanticSerializationError as error:
        raise UsageError(
            f"the run paused, but cannot be saved: {what} gave a value that is no plain data ({error}); "
            "hand on plain data or pydantic models before a step that asks a person"
        ) from error


def has_conversation(pipeline: Pipeline) -> bool:
    """Whether any of its steps goes on with the conversation of others."""
    return any(isinstance(step, Step) and step.use_history for step in _all_steps(pipeline))


def _all_steps(pipeline: Pipeline) -> Iterator[PipelineStep]:
    """The steps, and those inside of them and in their place."""
    for step in pipeline.steps:
        yield step
        for body in (*step.bodies.values(), *([Pipeline([step.fallback])] if step.fallback else [])):
            yield from _all_steps(body)


def _contracts(pipeline: Pipeline, prefix: str = "") -> list[tuple[str, Contract[Any]]]:
    """The contracts of agent steps, by the names that their steps have in the ledger outside of maps and loops."""
    found: list[tuple[str, Contract[Any]]] = []
    for step in pipeline.steps:
        name = f"{prefix}{step.name}"
        contract = effective(step).contract if isinstance(step, Step) else None
        if contract is not None:
            found.append((name, contract))
        for scope, body in step.bodies.items():
            found += _contracts(body, f"{name}/{scope}/" if scope else f"{name}/")
    return found


def _described(value: Any) -> Any:
    """Anything that a pipeline is made of, as plain JSON without what differs from process to process."""
    for kinds, describe in _DESCRIBED:
        if isinstance(value, kinds):
            return describe(value)
    if isinstance(getattr(value, "fingerprint", None), str):
        return value.fingerprint
    ours = type(value).__module__.startswith("flujo_aros.")
    if ours and dataclasses.is_dataclass(value) and not isinstance(value, type):
        kept = {each.name: _described(getattr(value, each.name)) for each in dataclasses.fields(value) if each.compare}
        return {"": type(value).__name__, **kept}
    if callable(value):
        return f"{getattr(value, '__module__', '')}:{getattr(value, '__qualname__', type(value).__name__)}"
    return type(value).__name__


def _model(value: BaseModel) -> Any:
    return {"": type(value).__name__, **value.model_dump(mode="json")}


_DESCRIBED: Final[tuple[tuple[Any, Callable[[Any], Any]], ...]] = (
    ((str, int, float, bool, type(None)), lambda value: value),
    (InputTemplate, lambda value: value.source),
    (BaseModel, _model),
    (Decimal, str),
    (Mapping, lambda value: {str(key): _described(each) for key, each in cast("Mapping[Any, Any]", value).items()}),
    ((list, tuple), lambda value: [_described(each) for each in value]),
    ((set, frozenset), lambda value: sorted(json.dumps(_described(each), default=str) for each in value)),
)
