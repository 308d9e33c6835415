"""Converts settled steps of a paused run to plain JSON and back: values, repairs, stages and usage."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from pydantic_core import PydanticSerializationError, to_jsonable_python

from flujo_aros.contract import Contract, Invalid
from flujo_aros.errors import UsageError
from flujo_aros.host import with_live_content, with_saved_content
from flujo_aros.outcome import Accepted, Attempt, Degraded, Issue, Outcome, Reason, Rejected, Repair, Risk, Trust
from flujo_aros.pipeline.ledger import Slot
from flujo_aros.pipeline.results import (
    RecordedAttempt,
    RecordedOutcome,
    RecordedRepair,
    RecordedStage,
    RecordedStep,
    StepResult,
)
from flujo_aros.usage import Usage

if TYPE_CHECKING:
    from flujo_aros.host import StageRecord


def recorded_step(slot: Slot, *, talks: bool) -> RecordedStep:
    """A settled step as plain JSON, with its messages if later steps may continue the conversation."""
    from flujo_aros.host import plain_conversation  # here: most runs have no need of the model host

    result = slot.result
    kept = ("name", "kind", "status", "attempts", "seconds", "error", "degraded_accepted", "caused_by", "excused_by")
    return RecordedStep(
        **{key: getattr(result, key) for key in (*kept, "replaced", "input_trust")},
        **_members(result.usage),
        outcome=_recorded_outcome(result),
        stages=[RecordedStage(**_with_usage(stage)) for stage in result.stages],
        writes=[(list(path), as_saved(value, f"step {result.name!r}")) for path, value in slot.writes],
        messages=plain_conversation(slot.messages) if talks else [],
    )


def slot_of(step: RecordedStep, contract: Contract[Any] | None) -> Slot:
    """The slot of a step as it had settled; its value is typed by its contract."""
    from flujo_aros.host import conversation_of  # as in `recorded_step`

    result: StepResult[Any] = StepResult(
        name=step.name,
        kind=step.kind,
        status=step.status,
        outcome=None if step.outcome is None else _outcome(step.outcome, contract),
        usage=step.usage,
        attempts=step.attempts,
        seconds=step.seconds,
        stages=tuple(_stage(stage) for stage in step.stages),
        error=step.error,
        degraded_accepted=step.degraded_accepted,
        caused_by=step.caused_by,
        excused_by=step.excused_by,
        replaced=step.replaced,
        input_trust=step.input_trust,
    )
    writes = tuple((tuple(path), as_given(value)) for path, value in step.writes)
    return Slot.replayed(result, writes, conversation_of(step.messages) if step.messages else ())


def as_saved(value: Any, what: str) -> Any:
    """A value as plain JSON, of which `as_given` makes the value again. Raises `UsageError` if there is none."""
    try:
        return to_jsonable_python(with_saved_content(value), by_alias=True, bytes_mode="base64", inf_nan_mode="strings")
    except PydanticSerializationError as error:
        raise UsageError(
            f"the run cannot be saved: {what} returned a value that is not plain data ({error}); in a "
            "run that is durable or that asks a person, use plain data or pydantic models"
        ) from error


def as_given(saved: Any) -> Any:
    """A value from the plain JSON that `as_saved` made of it: images and other content are what they were."""
    return with_live_content(saved)


def _recorded_outcome(result: StepResult[Any]) -> RecordedOutcome | None:
    outcome = result.outcome
    if outcome is None:
        return None
    if isinstance(outcome, Accepted):
        return RecordedOutcome(
            outcome=outcome.kind,
            value=as_saved(outcome.value, f"step {result.name!r}"),
            trust=outcome.trust.value,
            origin=outcome.origin,
            text=outcome.text,
            repairs=[RecordedRepair(**_members(repair)) for repair in outcome.repairs],
        )
    rejected = outcome.because if isinstance(outcome, Degraded) else outcome
    return RecordedOutcome(
        outcome=outcome.kind,
        text=outcome.text,
        reason=rejected.reason.value,
        issues=[issue.to_dict() for issue in rejected.issues],
        raw_matched=rejected.raw_matched,
        tag=rejected.tag,
        seen=list(rejected.seen),
        attempts=[_recorded_attempt(attempt) for attempt in rejected.attempts],
    )


def _recorded_attempt(attempt: Attempt) -> RecordedAttempt:
    members = _with_usage(attempt)
    members["issues"] = [issue.to_dict() for issue in attempt.issues]
    return RecordedAttempt(**members)


def _outcome(saved: RecordedOutcome, contract: Contract[Any] | None) -> Outcome[Any]:
    if saved.outcome == Accepted.kind:
        value = as_given(saved.value)
        if contract is not None:
            verdict = contract.validate(value)
            value = value if isinstance(verdict, Invalid) else verdict.value
        repairs = tuple(
            Repair(each.code, Risk(each.risk), each.path, each.span, each.before, each.after) for each in saved.repairs
        )
        return Accepted(value, Trust(saved.trust), saved.origin, repairs, saved.text)
    rejected = Rejected(
        Reason(saved.reason or Reason.INVALID),
        _issues(saved.issues),
        saved.text,
        raw_matched=saved.raw_matched,
        tag=saved.tag,
        seen=tuple(saved.seen),
        attempts=tuple(_attempt(each) for each in saved.attempts),
    )
    return rejected if saved.outcome == Rejected.kind else Degraded(saved.text, rejected)


def _with_usage(record: StageRecord | Attempt) -> dict[str, Any]:
    """The members of a record, with those of its usage among them."""
    members = _members(record)
    usage: Usage = members.pop("usage")
    return members | _members(usage)


def _members(record: StageRecord | Attempt | Usage | Repair) -> dict[str, Any]:
    """The fields of a record by name. Not `asdict`, which makes deep copies."""
    return {each.name: getattr(record, each.name) for each in dataclasses.fields(record)}


def _stage(stage: RecordedStage) -> StageRecord:
    from flujo_aros.host import StageRecord  # as in `recorded_step`

    return StageRecord(stage.stage, stage.outcome, stage.reason, stage.calls, stage.usage, stage.seconds)


def _attempt(saved: RecordedAttempt) -> Attempt:
    return Attempt(
        stage=saved.stage,
        outcome=saved.outcome,
        reason=saved.reason,
        issues=_issues(saved.issues),
        text=saved.text,
        raw_matched=saved.raw_matched,
        usage=saved.usage,
        why=saved.why,
        seconds=saved.seconds,
    )


def _issues(saved: list[dict[str, str]]) -> tuple[Issue, ...]:
    return tuple(Issue(issue["path"], issue["code"], issue["message"]) for issue in saved)
