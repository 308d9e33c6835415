"""Reports a run: its events, the metadata of run and message, and a history without the repaired reply."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Any, Final, TypeGuard

from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponsePart, TextPart, ToolCallPart
from pydantic_ai.run import AgentRunResult
from pydantic_ai.usage import RunUsage

from flujo_aros.events import AgentFinished, AgentStarted, is_heard, span
from flujo_aros.host.model import WatchedStream
from flujo_aros.host.run_state import RunRecord, difference
from flujo_aros.host.schema_request import better_mode, prompt_cut
from flujo_aros.outcome import Accepted, Outcome, Rejected, Trust
from flujo_aros.redaction import secrets_among

KEY: Final = "aros"
"""The key in the metadata of a run and of a message."""


def summary_of(outcome: Outcome[Any], record: RunRecord, *, content: bool) -> dict[str, Any]:
    """The outcome as plain JSON, without value and texts. The text of repairs is included only with `content`."""
    summary: dict[str, Any] = {"outcome": outcome.kind}
    if isinstance(outcome, Accepted):
        repairs = [repair.to_dict() for repair in outcome.repairs]
        for repair in () if content else repairs:
            del repair["before"], repair["after"]
        summary |= {"trust": outcome.trust.value, "origin": outcome.origin, "repairs": repairs}
    else:
        rejected = outcome if outcome.kind == "rejected" else outcome.because
        summary |= {"reason": rejected.reason.value, "issues": [[issue.path, issue.code] for issue in rejected.issues]}
    stages = [{"stage": s.stage, "outcome": s.outcome, "reason": s.reason, "calls": s.calls} for s in record.stages]
    if record.exchange.schema_ignored:
        summary["schema_enforced"] = False
    if record.exchange.schema_refused:
        summary["schema_refused"] = record.exchange.schema_refused
    cut = prompt_cut(record.exchange)
    if cut:
        summary["prompt_cut"] = cut
    better = better_mode(record.exchange) if record.stages or not isinstance(outcome, Accepted) else None
    if better:
        summary["better_mode"] = better
    return summary | {"stages": stages, "calls": record.calls}


def annotate_run(result: AgentRunResult[Any], summary: dict[str, Any]) -> None:
    """Add it to the metadata of the run, next to the caller's entries."""
    # The host has no public way for a capability to add metadata, and writing to the caller's own dict would leak into
    # other runs.
    state = result._state  # pyright: ignore[reportPrivateUsage]
    state.metadata = {**(state.metadata or {}), KEY: summary}


def annotate_message(record: RunRecord, messages: list[ModelMessage], summary: dict[str, Any]) -> None:
    """Add it to the metadata of the response that the output came from."""
    last = messages[-1] if messages else None
    if isinstance(last, ModelResponse):
        last.metadata = {**(last.metadata or {}), KEY: summary}
    elif isinstance(record.exchange.stream, WatchedStream):  # not in the history before its stream has ended
        record.exchange.stream.revise(metadata={KEY: summary})


def is_repaired(outcome: Outcome[Any], text: str) -> TypeGuard[Accepted[Any]]:
    """Whether a value differs from what the model wrote."""
    return isinstance(outcome, Accepted) and not (outcome.trust is Trust.CLEAN and outcome.text == text)


def clean_history(record: RunRecord, messages: list[ModelMessage], json: str, call_id: str | None) -> None:
    """Replace what the model wrote with the accepted JSON."""
    last = messages[-1] if messages else None
    if isinstance(last, ModelResponse):
        messages[-1] = replace(last, parts=_cleaned(last.parts, json, call_id))
    elif isinstance(record.exchange.stream, WatchedStream):
        record.exchange.stream.revise(parts=_cleaned(record.exchange.stream.so_far().parts, json, call_id))


def _cleaned(parts: Sequence[ModelResponsePart], json: str, call_id: str | None) -> list[ModelResponsePart]:
    if call_id is not None:
        return [
            replace(part, args=json) if isinstance(part, ToolCallPart) and part.tool_call_id == call_id else part
            for part in parts
        ]
    texts = [part for part in parts if isinstance(part, TextPart)]
    if not texts:
        return [*parts, TextPart(json)]
    kept = [part for part in parts if part not in texts[:-1]]
    return [replace(part, content=json) if part is texts[-1] else part for part in kept]


@contextmanager
def agent_span(run_id: str, name: str, record: RunRecord, usage: RunUsage, *hidden: object) -> Generator[None]:
    """Everything inside belongs to this run of an agent. Nothing is emitted without an observer.

    `hidden` are objects that may contain secrets in fields named as such, for example dependencies and model settings.
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
