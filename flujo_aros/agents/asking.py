"""How the asks of a plan reach a model: two short loops, and a bare nested agent for each ask."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import closing
from copy import copy
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final, TypeVar, cast

from pydantic_ai import Agent, NativeOutput, StructuredDict
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import UsageLimitExceeded, UserError
from pydantic_ai.messages import FinishReason, ModelMessage, ModelRequest
from pydantic_ai.models import Model
from pydantic_ai.run import AgentRunResult
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage, RunUsage, UsageLimits

from flujo_aros.agents.faults import PROVIDER_FAULTS, sentence
from flujo_aros.agents.record import RunRecord
from flujo_aros.agents.wire import object_schema
from flujo_aros.events import AskFinished, AskStarted, emit, span
from flujo_aros.outcome import Outcome
from flujo_aros.recovery.plan import Ask, Plan, Reply, advance
from flujo_aros.usage import Usage

T = TypeVar("T")

_TOOL_SETTINGS: Final = ("tool_choice", "parallel_tool_calls")


def drive(plan: Plan[T], answer: Callable[[Ask], Reply]) -> Outcome[T]:
    """Run a plan to its outcome, with a function that answers each ask. Catches nothing."""
    with closing(plan):
        step = advance(plan)
        while isinstance(step, Ask):
            step = advance(plan, answer(step))
        return step


async def adrive(plan: Plan[T], answer: Callable[[Ask], Awaitable[Reply]]) -> Outcome[T]:
    """Run a plan to its outcome, with an async function that answers each ask. Catches nothing."""
    with closing(plan):
        step = advance(plan)
        while isinstance(step, Ask):
            step = advance(plan, await answer(step))
        return step


def was_cut(finish: FinishReason | None) -> bool | None:
    """Whether the provider says that a reply was cut: True, False, or None when it does not say.

    Not known for a tool call: some servers (vLLM with a forced tool) say "tool_call" of arguments that they have cut.
    """
    if finish in ("length", "content_filter"):
        return True
    return False if finish == "stop" else None


@dataclass(frozen=True, slots=True)
class ModelAnswers:
    """Answers asks by a bare agent on this model: no tools, no deps, no `Aros`; history only where an ask wants it.

    Works with the usage and the limits of the caller: a limit that would be passed raises `UsageLimitExceeded` before
    the call. Errors of the provider become a `Reply` with a fault; everything else passes through.
    """

    model: Model
    usage: RunUsage
    limits: UsageLimits | None
    record: RunRecord
    along: tuple[AbstractCapability[Any], ...] = ()
    """What of the caller's capabilities goes along: instrumentation, so that the call has a span like any other."""
    conversation: tuple[ModelMessage, ...] = ()
    """The messages of the run up to the request that is being answered, for a constrained ask."""

    async def __call__(self, ask: Ask) -> Reply:
        """Make one model call."""
        before = copy(self.usage)
        fault: str | None = "interrupted"
        with span(AskStarted(stage=ask.stage, attempt=ask.attempt)):
            try:
                reply = await self._reply(ask, before)
                fault = reply.fault
            finally:
                used = difference(self.usage, before)
                emit(AskFinished(stage=ask.stage, attempt=ask.attempt, usage=used, fault=fault))
        self.record.texts.append(reply.text)
        return reply

    async def _reply(self, ask: Ask, before: RunUsage) -> Reply:
        output, refused = self._output_of(ask)
        if refused is not None:
            return Reply("", fault=refused)
        agent: Agent[Any, Any] = Agent(
            self.model,
            output_type=output,
            name=f"aros_{ask.stage}",
            retries=0,
            model_settings=_bare(self.record.settings),
            capabilities=self.along,
        )
        self.record.calls += 1
        try:
            result = await self._run(agent, ask)
        except PROVIDER_FAULTS as error:
            return Reply("", usage=difference(self.usage, before), fault=sentence(error))
        except UsageLimitExceeded:
            self.record.calls -= self.usage.requests == before.requests  # refused before it was made
            raise
        finish = result.response.finish_reason
        used = difference(self.usage, before)
        return Reply(result.response.text or "", was_cut(finish), used, refused=finish == "content_filter")

    async def _run(self, agent: Agent[Any, Any], ask: Ask) -> AgentRunResult[Any]:
        if not ask.constrained:
            return await agent.run(ask.prompt, usage=self.usage, usage_limits=self.limits)
        last = self.conversation[-1]
        told = last.instructions if isinstance(last, ModelRequest) else None
        return await agent.run(
            message_history=self.conversation, instructions=told, usage=self.usage, usage_limits=self.limits
        )

    def _output_of(self, ask: Ask) -> tuple[Any, str | None]:
        """What the model is asked for, or why it cannot be asked."""
        if not ask.constrained:
            return str, None
        sent = self.record.parameters
        if not self.conversation or (sent is not None and sent.output_mode == "native"):
            return None, "the provider was asked to enforce the schema already"
        if not self.model.profile.get("supports_json_schema_output"):
            return None, f"the model {self.model.model_name} cannot be made to follow a schema"
        schema = ask.contract.json_schema
        if object_schema(schema) != schema:
            return None, "only the schema of an object can be enforced"
        try:
            return NativeOutput(StructuredDict(schema)), None
        except UserError as error:  # a recursive schema
            return None, str(error)


def limits_left(limits: UsageLimits | None, uncounted: RequestUsage | None) -> UsageLimits | None:
    """The limits for a call that is made while a reply still streams, which the host counts only at its end."""
    if limits is None or uncounted is None:
        return limits
    less = {
        "request_limit": 1,
        "input_tokens_limit": uncounted.input_tokens,
        "output_tokens_limit": uncounted.output_tokens,
        "total_tokens_limit": uncounted.total_tokens,
    }
    known = {name: getattr(limits, name) for name in less}
    return replace(limits, **{name: max(0, most - less[name]) for name, most in known.items() if most is not None})


def difference(after: RunUsage, before: RunUsage) -> Usage:
    """What was used between two states of one `RunUsage`."""
    cost = None if after.cost is None else after.cost - (before.cost or Decimal(0))
    return Usage(
        after.requests - before.requests,
        after.input_tokens - before.input_tokens,
        after.output_tokens - before.output_tokens,
        cost,
        after.unmeasured_requests - before.unmeasured_requests,
    )


def _bare(settings: ModelSettings | None) -> ModelSettings:
    """The settings of the run (temperature, limits, timeouts) without those that only make sense with tools."""
    kept: dict[str, Any] = {name: value for name, value in (settings or {}).items() if name not in _TOOL_SETTINGS}
    return cast("ModelSettings", kept)
