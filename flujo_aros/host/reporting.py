"""Tells observers when the run of an agent and each of its model calls begin, and how they ended."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from copy import copy

from pydantic_ai.usage import RunUsage

from flujo_aros.events import (
    AgentFinished,
    AgentStarted,
    AskFinished,
    AskStarted,
    Finish,
    StagePassed,
    emit,
    is_heard,
    span,
)
from flujo_aros.host.run_state import RunRecord, difference
from flujo_aros.outcome import Accepted, Rejected
from flujo_aros.redaction import secrets_among
from flujo_aros.usage import Usage


def ask_span(
    stage: str, *, attempt: int, model: str, constrained: bool, prompt: str, capture: bool, system: str = ""
) -> AbstractContextManager[Finish]:
    """Everything inside belongs to this model call."""
    started = AskStarted(
        stage=stage,
        attempt=attempt,
        model=model,
        constrained=constrained,
        prompt=prompt,
        system=system,
        capture=capture,
    )
    return span(started)


def tell_passed(stage: str, why: str, model: str) -> None:
    """Emit that something was not done as asked, and why."""
    emit(StagePassed(stage=stage, why=why, model=model))


def tell_ask(
    finish: Finish,
    stage: str,
    *,
    attempt: int,
    model: str,
    usage: Usage,
    seconds: float,
    finish_reason: str | None,
    fault: str | None,
    first_seconds: float | None = None,
) -> None:
    """Tell what came of a model call, whatever happened to it."""
    finish(
        AskFinished(
            stage=stage,
            attempt=attempt,
            usage=usage,
            model=model,
            seconds=seconds,
            finish_reason=finish_reason,
            fault=fault,
            first_seconds=first_seconds,
        )
    )


@contextmanager
def agent_span(run_id: str, name: str, record: RunRecord, usage: RunUsage, *hidden: object) -> Generator[None]:
    """Everything inside belongs to this run of an agent; nothing is emitted where nobody listens.

    `hidden` may hold secrets under names that say so, such as dependencies and model settings.
    """
    if not is_heard():
        yield
        return
    before, started = copy(usage), time.perf_counter()
    secrets = tuple(secret for each in hidden if each for secret in secrets_among(each))
    with span(AgentStarted(run_id=run_id, name=name, secrets=secrets)) as finish:
        try:
            yield
        finally:
            outcome = record.outcome
            finish(
                AgentFinished(
                    run_id=run_id,
                    name=name,
                    outcome=_ended(sys.exception(), record),
                    trust=None if outcome is None or isinstance(outcome, Rejected) else outcome.trust.value,
                    reason=outcome.reason.value if isinstance(outcome, Rejected) else None,
                    usage=record.counted(difference(usage, before)),
                    seconds=time.perf_counter() - started,
                )
            )


def _ended(raised: BaseException | None, record: RunRecord) -> str:
    if raised is None:
        return Accepted.kind if record.outcome is None else record.outcome.kind
    if record.outcome is not None and raised is record.error:
        return record.outcome.kind
    return "failed" if isinstance(raised, Exception) else "cancelled"
