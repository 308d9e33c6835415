"""Paused runs: their state as plain JSON while they wait for a person, enough to continue in another process."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_jsonable_python

from flujo_aros.contract import Contract, Invalid
from flujo_aros.errors import UsageError
from flujo_aros.host import with_live_content, with_saved_content
from flujo_aros.outcome import Accepted, Degraded, Outcome, Reason, Rejected
from flujo_aros.pipeline.ledger import PauseRun, RunLedger, Slot
from flujo_aros.pipeline.model import Pipeline, PipelineStep
from flujo_aros.pipeline.results import (
    PausedRun,
    RecordedOutcome,
    RecordedStep,
    StepResult,
    StepStatus,
    Strict,
    Work,
)
from flujo_aros.pipeline.step import Call, is_agent_step, stored_contract, wants_deps
from flujo_aros.pipeline.template import InputTemplate

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Record = TypeVar("_Record", bound="DataclassInstance")
_Saved = TypeVar("_Saved", bound=Strict)


def recorded_step(slot: Slot, *, talks: bool) -> RecordedStep:
    """Return a settled step as plain JSON, with its messages if later steps may continue the conversation."""
    from flujo_aros.host import plain_conversation  # imported here: most runs do not need the model host

    result = slot.result
    return _save(
        RecordedStep,
        result,
        outcome=_recorded_outcome(result),
        writes=[(list(path), as_saved(value, f"the value of step {result.name!r}")) for path, value in slot.writes],
        messages=plain_conversation(slot.messages) if talks else [],
    )


def slot_of(step: RecordedStep, contract: Contract[Any] | None) -> Slot:
    """Return the slot of a settled step, with its value in the type of its contract."""
    from flujo_aros.host import conversation_of  # imported here, as in `recorded_step`

    outcome = None if step.outcome is None else _outcome(step.outcome, contract)
    result: StepResult[Any] = _restore(StepResult, step, outcome=outcome)
    writes = tuple((tuple(path), as_given(value)) for path, value in step.writes)
    return Slot.replayed(result, writes, conversation_of(step.messages) if step.messages else ())


def as_saved(value: Any, what: str) -> Any:
    """Return a value as plain JSON, from which `as_given` restores it. Raises `UsageError` if that is not possible."""
    try:
        return to_jsonable_python(with_saved_content(value), by_alias=True, bytes_mode="base64", inf_nan_mode="strings")
    except PydanticSerializationError as error:
        raise UsageError(
            f"the run cannot be saved: {what} is not plain data ({error}); in a "
            "run that is durable or that asks a person, use plain data or pydantic models"
        ) from error


def as_given(saved: Any) -> Any:
    """Restore a value from the plain JSON of `as_saved`, including images and other content."""
    return with_live_content(saved)


def typed_by(contract: Contract[Any] | None, value: Any) -> Any:
    """Return a stored value in the type of its contract, or unchanged if it does not fit, or if a validator of the type
    would change it once more.
    """
    verdict = None if contract is None else contract.validate(value)
    if contract is None or verdict is None or isinstance(verdict, Invalid):
        return value
    again = contract.validate(as_given(as_saved(verdict.value, "a validated value")))
    return value if isinstance(again, Invalid) or again.value != verdict.value else verdict.value


def _recorded_outcome(result: StepResult[Any]) -> RecordedOutcome | None:
    outcome = result.outcome
    if outcome is None:
        return None
    if isinstance(outcome, Accepted):
        value, repairs = as_saved(outcome.value, f"the value of step {result.name!r}"), tuple(outcome.repairs)
        return _save(RecordedOutcome, outcome, outcome=outcome.kind, value=value, repairs=repairs)
    rejected = outcome.because if isinstance(outcome, Degraded) else outcome
    return _save(RecordedOutcome, rejected, outcome=outcome.kind, text=outcome.text)


def _outcome(saved: RecordedOutcome, contract: Contract[Any] | None) -> Outcome[Any]:
    if saved.outcome == Accepted.kind:
        value = typed_by(contract, as_given(saved.value))
        return Accepted(value, saved.trust, saved.origin, saved.repairs, saved.text)
    rejected = _restore(Rejected, saved, reason=saved.reason or Reason.INVALID)
    return rejected if saved.outcome == Rejected.kind else Degraded(saved.text, rejected)


def _restore(kind: type[_Record], saved: Strict, **other: Any) -> _Record:
    """Return the record with the saved fields of the same names, except for others."""
    names = [each.name for each in dataclasses.fields(kind) if each.name not in other and hasattr(saved, each.name)]
    return kind(**{name: getattr(saved, name) for name in names}, **other)


def _save(kind: type[_Saved], record: DataclassInstance, **other: Any) -> _Saved:
    """Return the plain form of a record: its fields by name. `other` replaces or adds some."""
    names = [each.name for each in dataclasses.fields(record) if each.name in kind.model_fields]
    return kind(**{name: getattr(record, name) for name in names} | other)


_TURN: Final = re.compile(r"/\d+(?=/)")
"""The number of an item or an iteration in the name of a nested step."""


def paused_run(pipeline: Pipeline, ledger: RunLedger, pause: PauseRun, given: Any, context: Any) -> PausedRun:
    """Return the state that a paused run needs to continue. Raises `UsageError` for a value that cannot be saved."""
    talks = has_conversation(pipeline)
    final = [slot for slot in ledger.settled if is_final(slot.result)]
    begun = [slot.result for slot in ledger.settled if not is_final(slot.result)]
    return PausedRun(
        run_id=ledger.run_id,
        pipeline=pipeline.name,
        fingerprint=fingerprint(pipeline),
        step=pause.step or "",
        message=pause.message,
        rejected=pause.rejected,
        input_schema=None if pause.input_schema is None else dict(pause.input_schema),
        input=as_saved(given, "the input"),
        context=as_saved(context, "the context"),
        steps=[recorded_step(slot, talks=talks) for slot in final],
        seconds=ledger.seconds,
        begun={result.name: Work(result.usage, result.seconds) for result in begun},
        deferred={slot.name: slot.deferred for slot in ledger.settled if slot.deferred is not None},
    )


def slots_of(steps: Iterable[RecordedStep], pipeline: Pipeline | None) -> dict[str, Slot]:
    """Return the slots of settled steps, by name. Without their pipeline all values are plain JSON."""
    contracts = {} if pipeline is None else dict(_contracts(pipeline))
    return {
        step.name: slot_of(step, contracts.get(step.name) or contracts.get(_TURN.sub("/body", step.name)))
        for step in steps
    }


def fingerprint(pipeline: Pipeline) -> str:
    """Return a hash of the definition of a pipeline: its steps with their templates, contracts, agents and options."""
    described = json.dumps(_describe(pipeline), sort_keys=True, default=str)
    return hashlib.sha256(described.encode()).hexdigest()


def is_final(result: StepResult[Any]) -> bool:
    """Return whether a step need not run again: all but those that paused, and those cancelled
    without an explanation.
    """
    cancelled = result.status is StepStatus.CANCELLED and result.excused_by is None
    return result.status is not StepStatus.PAUSED and not cancelled


def has_conversation(pipeline: Pipeline) -> bool:
    """Return whether any step of the pipeline continues the conversation of others."""
    return any(is_agent_step(step) and step.use_history for step in every_step(pipeline))


def every_step(pipeline: Pipeline) -> Iterator[PipelineStep]:
    """Yield the steps, their nested steps and their fallbacks."""
    for step in pipeline.steps:
        yield step
        for body in (*step.bodies.values(), *([Pipeline([step.fallback])] if step.fallback else [])):
            yield from every_step(body)


def step_with_deps(pipeline: Pipeline) -> str | None:
    """Return the first step whose agent declares a `deps_type` that does not allow None. Agents given by name are
    imported.
    """
    for step in every_step(pipeline):
        agent: object = step.facts.agent if is_agent_step(step) else None
        if isinstance(step, Call):
            with suppress(UsageError):  # the run itself reports what cannot be imported
                agent = step.agent
        if wants_deps(agent):
            return step.name
    return None


def _contracts(pipeline: Pipeline, prefix: str = "") -> list[tuple[str, Contract[Any]]]:
    """Return the contracts of agent steps, by their names in the ledger; `body` stands for each iteration."""
    found: list[tuple[str, Contract[Any]]] = []
    for step in pipeline.steps:
        name = f"{prefix}{step.name}"
        contract = stored_contract(step)
        if contract is not None:
            found.append((name, contract))
        for scope, body in step.bodies.items():
            found += _contracts(body, f"{name}/{scope}/" if scope else f"{name}/")
    return found


def _describe(value: Any) -> Any:
    """Return any part of a pipeline as plain JSON, without anything that differs between processes."""
    for kinds, describe in _DESCRIBED:
        if isinstance(value, kinds):
            return describe(value)
    if isinstance(getattr(value, "fingerprint", None), str):
        return value.fingerprint
    ours = type(value).__module__.startswith("flujo_aros.") or issubclass(type(value), PipelineStep)
    if ours and dataclasses.is_dataclass(value) and not isinstance(value, type):
        kept = {each.name: _describe(getattr(value, each.name)) for each in dataclasses.fields(value) if each.compare}
        return {"": type(value).__name__, **kept}
    if callable(value):
        return f"{getattr(value, '__module__', '')}:{getattr(value, '__qualname__', type(value).__name__)}"
    return type(value).__name__


_DESCRIBED: Final[tuple[tuple[Any, Callable[[Any], Any]], ...]] = (
    ((str, int, float, bool, type(None)), lambda value: value),
    (InputTemplate, lambda value: value.source),
    (BaseModel, lambda value: {"": type(value).__name__, **value.model_dump(mode="json")}),
    (Decimal, str),
    (Mapping, lambda value: {str(key): _describe(each) for key, each in cast("Mapping[Any, Any]", value).items()}),
    ((list, tuple), lambda value: [_describe(each) for each in value]),
    ((set, frozenset), lambda value: sorted(json.dumps(_describe(each), default=str) for each in value)),
)
