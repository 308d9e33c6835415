"""Emits events when a run and its steps start and end."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from flujo_aros.events import (
    UNHEARD,
    Finish,
    FunctionCalled,
    RunFinished,
    RunStarted,
    StepFinished,
    StepNoted,
    StepStarted,
    emit,
    is_heard,
    span,
)
from flujo_aros.pipeline.ledger import Slot
from flujo_aros.pipeline.results import RunResult, RunStatus


def run_span(
    run_id: str,
    pipeline: str,
    given: Any,
    secrets: tuple[str, ...],
    *,
    resumed: bool,
    settled: frozenset[str] | None,
    carrier: dict[str, str],
) -> AbstractContextManager[Finish]:
    """Events inside the block belong to this run; without observers none are emitted."""
    if not is_heard():
        return UNHEARD
    started = RunStarted(
        run_id=run_id,
        pipeline=pipeline,
        input=given,
        secrets=secrets,
        resumed=resumed,
        settled=settled,
        carrier=carrier,
    )
    return span(started)


def tell_run(finish: Finish, ended: RunResult) -> None:
    """Emit how a run ended."""
    if is_heard():
        finish(
            RunFinished(
                run_id=ended.run_id,
                pipeline=ended.pipeline,
                status=ended.status.value,
                usage=ended.usage,
                seconds=ended.seconds,
                output=ended.output if ended.status is RunStatus.COMPLETED else None,
            )
        )


def step_span(run_id: str, name: str, kind: str) -> AbstractContextManager[Finish]:
    """Events inside the block belong to this step; without observers none are emitted."""
    return span(StepStarted(run_id=run_id, name=name, kind=kind)) if is_heard() else UNHEARD


def tell_call(given: Any) -> None:
    """Emit that the function of a step is called with this argument."""
    if is_heard():
        emit(FunctionCalled(input=given))


def tell_step(finish: Finish, run_id: str, slot: Slot) -> None:
    """Emit how a step settled."""
    if not is_heard():
        return
    ended, here = slot.result, slot.work
    finish(
        StepFinished(
            run_id=run_id,
            name=ended.name,
            kind=ended.kind,
            status=ended.status.value,
            trust=ended.trust,
            reason=ended.reason,
            usage=here.usage,
            seconds=here.seconds,
            attempts=ended.attempts,
            error=ended.error,
            output=ended.handed_on,
            input_trust=None if ended.input_trust is None else ended.input_trust.value,
        )
    )


def tell_note(note: str, data: Callable[[], dict[str, Any]]) -> None:
    """Emit what a step reports besides its value, if there are observers."""
    if is_heard():
        emit(StepNoted(note=note, data=data()))
