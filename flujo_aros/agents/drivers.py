"""Runs an agent for one step: its outcome, the stages it took, the calls and what they cost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeAlias, TypeVar, cast

from pydantic_ai import Agent
from pydantic_ai.exceptions import UnexpectedModelBehavior, UserError
from pydantic_ai.messages import ModelResponse
from pydantic_ai.usage import RunUsage
from pydantic_core import to_jsonable_python

from flujo_aros.agents.agent import AgentSpec, ModelSource, RunnableAgent
from flujo_aros.agents.asking import adrive, drive
from flujo_aros.agents.faults import PROVIDER_FAULTS, issue_of, reason_of, sentence
from flujo_aros.agents.record import RunRecord, StageRecord, recording
from flujo_aros.contract.output import Contract
from flujo_aros.contract.values import Invalid
from flujo_aros.errors import OutputError, UsageError
from flujo_aros.outcome import Accepted, Issue, Outcome, Reason, Rejected, Trust
from flujo_aros.recovery.ladder import Ladder
from flujo_aros.usage import Usage

__all__ = [
    "AgentRun",
    "ModelSource",
    "RunnableAgent",
    "StageRecord",
    "UsageSink",
    "adrive",
    "drive",
    "run_agent",
]

T = TypeVar("T")

UsageSink: TypeAlias = Callable[[Usage], None]


@dataclass(frozen=True, slots=True)
class AgentRun(Generic[T]):
    """What one run of an agent came to. `calls` counts every model call, failed ones and repairs included."""

    outcome: Outcome[T]
    stages: tuple[StageRecord, ...]
    usage: Usage
    calls: int


async def run_agent(
    agent: AgentSpec | Agent[Any, Any],
    prompt: str,
    contract: Contract[T] | None,
    ladder: Ladder | None = None,
    *,
    models: ModelSource | None = None,
    usage_sink: UsageSink | None = None,
) -> AgentRun[T]:
    """Run an agent once for an output that satisfies the contract.

    Bad data and a failing provider are outcomes (`Rejected`), never exceptions. Without a contract the outcome is the
    agent's own output, plain text for a spec. `usage_sink` is told what was spent also when the run raises or is
    cancelled.

    Raises `UsageError` before any model call when the agent cannot be run as it is described. `UsageLimitExceeded`,
    cancellation and the errors of the agent's own tools pass through.
    """
    runnable: RunnableAgent[T] = await RunnableAgent[T].of(agent, contract, ladder, models)
    usage, record = RunUsage(), RunRecord(contract, ladder)
    try:
        with recording(record):
            outcome = await _outcome(runnable, prompt, usage, record)
    finally:
        if usage_sink is not None:
            usage_sink(record.spent(usage))
    return AgentRun(outcome, tuple(record.stages), record.spent(usage), record.calls)


async def _outcome(runnable: RunnableAgent[T], prompt: str, usage: RunUsage, record: RunRecord) -> Outcome[T]:
    clock = asyncio.timeout(runnable.timeout)
    try:
        async with clock:
            return await _run(runnable, prompt, usage, record)
    except TimeoutError:
        if not clock.expired():
            raise
        issue = Issue("$", "timeout", f"no answer within the agent's timeout of {runnable.timeout:g} s")
        return Rejected(Reason.PROVIDER, (issue,), _last_text(record))


async def _run(runnable: RunnableAgent[T], prompt: str, usage: RunUsage, record: RunRecord) -> Outcome[T]:
    extra = {} if runnable.output_type is None else {"output_type": runnable.output_type}
    try:
        result = await runnable.agent.run(
            prompt, instructions=runnable.instructions, usage=usage, capabilities=runnable.add, **extra
        )
    except OutputError as error:
        if error is not record.error or record.outcome is None:
            raise  # somebody else's, such as that of a tool which asked for a value of its own
        return record.outcome
    except PROVIDER_FAULTS as error:
        if record.response is not None and type(error) is UnexpectedModelBehavior:
            return _no_output(record.response, error)
        return Rejected(reason_of(error), (issue_of(error, schema_sent=runnable.schema_sent),), _last_text(record))
    except UserError as error:
        if not runnable.ours:
            raise
        hint = "; set `output_mode: auto`" if "not supported by this model" in str(error) else ""
        message = f"the agent cannot be run as described: {str(error).rstrip('.')}{hint}"
        raise UsageError(message) from error
    if record.outcome is None:
        return _unread(result.output, result.response.text or "", runnable.contract)
    if runnable.contract is None and isinstance(record.outcome, Accepted):
        return replace(record.outcome, value=result.output)  # what the agent's own output functions made of it
    return record.outcome


def _unread(output: Any, text: str, contract: Contract[T] | None) -> Outcome[T]:
    """The outcome for an output that was nothing to read, such as plain text."""
    if contract is None:
        return Accepted(cast("T", output), Trust.CLEAN, "first", (), text)
    verdict = contract.validate(to_jsonable_python(output, by_alias=True))
    if isinstance(verdict, Invalid):
        return Rejected(Reason.INVALID, verdict.issues, text)
    return Accepted(verdict.value, Trust.CLEAN, "first", (), text)


def _no_output(response: ModelResponse, error: UnexpectedModelBehavior) -> Rejected:
    """The rejection of a response that the host could make nothing of, such as an empty one."""
    text, called = response.text or "", [call.tool_name for call in response.tool_calls]
    if called:
        words = f"the model called {', '.join(called)} instead of giving its output ({sentence(error)})"
    else:
        words = sentence(error) if text.strip() else "the model wrote nothing"
    return Rejected(Reason.NO_JSON, (Issue("$", "no_output", words),), text)


def _last_text(record: RunRecord) -> str:
    return record.texts[-1] if record.texts else ""
