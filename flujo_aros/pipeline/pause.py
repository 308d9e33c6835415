"""Paused runs: the saved state while a run waits for a person, sufficient to continue in another process."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final, cast

from pydantic import BaseModel

from flujo_aros.contract import Contract
from flujo_aros.pipeline.facts import effective
from flujo_aros.pipeline.ledger import PauseRun, RunLedger, Slot
from flujo_aros.pipeline.model import Common, Pipeline, PipelineStep
from flujo_aros.pipeline.recorded import as_saved, recorded_step, slot_of
from flujo_aros.pipeline.results import PausedRun, RecordedStep, RecordedWork, StepResult, StepStatus
from flujo_aros.pipeline.step import is_agent_step
from flujo_aros.pipeline.template import InputTemplate

_TURN: Final = re.compile(r"/\d+(?=/)")
"""The number of an item or an iteration in the name of a step inside."""


def paused_run(pipeline: Pipeline, ledger: RunLedger, pause: PauseRun, given: Any, context: Any) -> PausedRun:
    """The state that a paused run needs to continue. Raises `UsageError` for a value that cannot be saved."""
    talks = has_conversation(pipeline)
    final = [slot for slot in ledger.settled if is_final(slot.result)]
    begun = [slot.result for slot in ledger.settled if not is_final(slot.result)]
    return PausedRun(
        run_id=ledger.run_id,
        pipeline=pipeline.name,
        fingerprint=fingerprint(pipeline),
        step=pause.step or "",
        message=pause.message,
        input_schema=None if pause.input_schema is None else dict(pause.input_schema),
        input=as_saved(given, "the input"),
        context=as_saved(context, "the context"),
        steps=[recorded_step(slot, talks=talks) for slot in final],
        seconds=ledger.seconds,
        begun={result.name: RecordedWork.of(result) for result in begun},
        deferred={slot.name: slot.deferred for slot in ledger.settled if slot.deferred is not None},
    )


def recorded_slots(paused: PausedRun, pipeline: Pipeline) -> dict[str, Slot]:
    """The settled steps of a paused run, for the resumed run; values with a contract are typed again."""
    return slots_of(paused.steps, pipeline)


def slots_of(steps: Iterable[RecordedStep], pipeline: Pipeline | None) -> dict[str, Slot]:
    """The slots of settled steps, by name. Without their pipeline all values are plain JSON."""
    contracts = {} if pipeline is None else dict(_contracts(pipeline))
    return {
        step.name: slot_of(step, contracts.get(step.name) or contracts.get(_TURN.sub("/body", step.name)))
        for step in steps
    }


def fingerprint(pipeline: Pipeline) -> str:
    """A hash of the definition of a pipeline: its steps with their templates, contracts, agents and options."""
    described = json.dumps(_described(pipeline), sort_keys=True, default=str)
    return hashlib.sha256(described.encode()).hexdigest()


def is_final(result: StepResult[Any]) -> bool:
    """Whether a step need not run again: all but those that paused, and those cancelled without an explanation."""
    cancelled = result.status is StepStatus.CANCELLED and result.excused_by is None
    return result.status is not StepStatus.PAUSED and not cancelled


def has_conversation(pipeline: Pipeline) -> bool:
    """Whether any of its steps continues the conversation of others."""
    return any(is_agent_step(step) and step.use_history for step in every_step(pipeline))


def every_step(pipeline: Pipeline) -> Iterator[PipelineStep]:
    """The steps, and those inside of them and in their place."""
    for step in pipeline.steps:
        yield step
        for body in (*step.bodies.values(), *([Pipeline([step.fallback])] if step.fallback else [])):
            yield from every_step(body)


def _contracts(pipeline: Pipeline, prefix: str = "") -> list[tuple[str, Contract[Any]]]:
    """The contracts of agent steps, by the names of their steps in the ledger, where `body` is each turn of one."""
    found: list[tuple[str, Contract[Any]]] = []
    for step in pipeline.steps:
        name = f"{prefix}{step.name}"
        contract = effective(step, importing=True).contract if is_agent_step(step) else None
        if contract is not None:
            found.append((name, contract))
        for scope, body in step.bodies.items():
            found += _contracts(body, f"{name}/{scope}/" if scope else f"{name}/")
    return found


def _described(value: Any) -> Any:
    """Any part of a pipeline as plain JSON, without anything that differs between processes."""
    for kinds, describe in _DESCRIBED:
        if isinstance(value, kinds):
            return describe(value)
    if isinstance(getattr(value, "fingerprint", None), str):
        return value.fingerprint
    ours = type(value).__module__.startswith("flujo_aros.") or issubclass(type(value), Common)
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
