"""Runs an agent for one step and reports its outcome, stages, calls and cost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar, cast

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied
from pydantic_ai.exceptions import UnexpectedModelBehavior, UserError
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ToolCallPart
from pydantic_ai.run import AgentRunResult
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RunUsage, UsageLimits
from pydantic_core import to_jsonable_python

from flujo_aros.contract import Check, Contract, Invalid, is_async
from flujo_aros.errors import UsageError
from flujo_aros.host.agent import (
    HostedAgent,
    ModelSource,
    agent_with_tools,
    checked_contract,
    direct_agent,
    hosted_agent,
    named_model,
)
from flujo_aros.host.content import Prompt
from flujo_aros.host.direct_run import DirectAgent, DirectRun
from flujo_aros.host.faults import PROVIDER_FAULTS, issue_of, reason_of, retry_after_of, sentence
from flujo_aros.host.ladder_run import adrive, drive
from flujo_aros.host.model import Live, Showing, WatchedStream
from flujo_aros.host.output_types import shown_contract
from flujo_aros.host.recorded import recorded_run
from flujo_aros.host.response import no_output_in
from flujo_aros.host.run_state import RunOptions, RunRecord, StageRecord, agent_span, awaited_record
from flujo_aros.host.spans import is_instrumented
from flujo_aros.host.spec import AgentSpec
from flujo_aros.outcome import Accepted, Issue, Outcome, OutputError, Reason, Rejected, Trust
from flujo_aros.reading.payload import judged_awaiting
from flujo_aros.recovery import Evidence, Ladder
from flujo_aros.usage import Allowance, Usage

__all__ = [
    "AgentRun",
    "CallLimits",
    "Conversation",
    "Live",
    "ModelSource",
    "StageRecord",
    "UsageSink",
    "adrive",
    "drive",
    "run_agent",
]

T = TypeVar("T")

UsageSink: TypeAlias = Callable[[Usage], None]
Conversation: TypeAlias = tuple[ModelMessage, ...]
"""The messages between an agent and its model, oldest first."""


@dataclass(frozen=True, slots=True)
class AgentRun(Generic[T]):
    """The result of one run of an agent. `calls` counts every model call, failed calls and repairs included.

    `messages` are the messages that the run added; pass them as `history` to continue the conversation.
    """

    outcome: Outcome[T]
    stages: tuple[StageRecord, ...]
    usage: Usage
    calls: int
    messages: Conversation = ()


class CallLimits(Protocol):
    """Usage limits of one run of an agent, repairs included. None means no limit."""

    @property
    def max_requests(self) -> int | None:
        """Model calls."""
        ...

    @property
    def max_tokens(self) -> int | None:
        """Tokens, in and out."""
        ...

    @property
    def max_cost(self) -> Decimal | None:
        """US dollars."""
        ...


async def run_agent(  # noqa: PLR0913 (one call with every option of a step, all by name)
    agent: AgentSpec | Agent[Any, Any],
    prompt: Prompt,
    contract: Contract[T] | None,
    ladder: Ladder | None = None,
    *,
    models: ModelSource | None = None,
    deps: Any = None,
    usage_sink: UsageSink | None = None,
    live: Live | None = None,
    limits: CallLimits | UsageLimits | None = None,
    allowance: Allowance | None = None,
    settings: Mapping[str, Any] | None = None,
    history: Sequence[ModelMessage] | None = None,
    checks: Sequence[Check] = (),
    secrets: Iterable[str] = (),
    evidence: Evidence | None = None,
    repeated: bool = False,
    refusals: dict[str, str] | None = None,
    tools: Sequence[Any] = (),
    resumed: tuple[Deferral, Mapping[str, Decision]] | None = None,
) -> AgentRun[T]:
    """Run an agent once for an output that satisfies the contract, and all `checks`, which may be async.

    `prompt` is a string, or a list of strings and content such as images, which is sent unchanged. `deps` is what
    the agent's own tools and instructions see as `ctx.deps`.
    Bad data and a failing provider are outcomes (`Rejected`), never exceptions. Without a contract the outcome is the
    agent's own output, plain text for a spec. `usage_sink` receives the usage, even if the run raises or is
    cancelled. With `live` the reply is streamed and each chunk awaited; otherwise nothing is streamed. `limits` are
    those of this run; `allowance` is consulted before each model call. `settings` are model settings for this run,
    which override the agent's. `history` is the conversation before the prompt. `secrets` are masked in repair prompts.
    `evidence` is the statistics for an adaptive ladder. `repeated`: the caller retries after provider errors, so the
    client of the provider does not. `refusals` are the schemas that models refused earlier: they are
    requested in the prompt, and new ones are added. `tools` are the functions that a spec names. `resumed` is what an
    earlier run has left to be decided, and the decision on each call: the run continues from there.

    Raises `UsageError` before any model call if the agent cannot be run as described, and `CallsDeferred` if it waits
    for a decision on tool calls. `UsageLimitExceeded`,
    `LimitReached`, cancellation and the errors of the agent's own tools pass through.
    """
    wanted, every = contract, tuple(checks)
    beyond = every
    if contract is not None:
        beyond = contract.awaited
        if checks:
            wanted = checked_contract(contract, [check for check in checks if not is_async(check)])
            beyond = (*beyond, *(check for check in checks if is_async(check)))
        every = (*contract.awaited, *checks)
    resolve = partial(named_model, models=models, repeated=repeated)
    options = RunOptions(
        wanted,
        ladder,
        allowance,
        resolve,
        beyond,
        secrets,
        evidence,
        {} if refusals is None else refusals,
        is_text_judged=contract is None,
    )
    record = RunRecord(options)
    shown = wanted if isinstance(agent, AgentSpec) else wanted or shown_contract(agent.output_type)
    showing = live and Showing(live, shown, record)
    ask = _Asked(prompt, RunUsage(), _usage_limits(limits), settings, history, showing, deps, resumed)
    path: Callable[[], Awaitable[Outcome[T]]]
    # This is the only place where the two paths diverge: an agent without tools needs no agent graph.
    timeout = agent.timeout if isinstance(agent, AgentSpec) else None
    if not isinstance(agent, AgentSpec):
        path = partial(_hosted, hosted_agent(agent, wanted, ladder), ask, record)
    elif agent.is_direct:
        path = partial(_directly, await direct_agent(agent, wanted, ladder, models, repeated=repeated), ask, record)
    else:
        hosted = await agent_with_tools(agent, tools, wanted, ladder, models, repeated=repeated)
        path = partial(_hosted, hosted, ask, record)
    awaited = awaited_record.set(record)
    try:
        outcome = await (path() if timeout is None else _in_time(path, timeout, record))
        # The final decision if the agent has an Aros with its own contract, or nothing was read. No check runs
        # twice, because it would clean its own result again.
        left = [check for check in every if check not in record.exchange.judged] if every else ()
        if left:
            outcome = await judged_awaiting(outcome, left)
        if ask.showing is not None:
            await ask.showing.end(outcome)
    finally:
        awaited_record.reset(awaited)
        spent = record.spent(ask.usage)
        if usage_sink is not None:
            usage_sink(spent)
    return AgentRun(outcome, tuple(record.stages), spent, record.tally.calls, record.messages)


@dataclass(frozen=True, slots=True)
class _Asked:
    """The inputs of one run, and its limits."""

    prompt: Prompt
    usage: RunUsage
    limits: UsageLimits | None
    settings: Mapping[str, Any] | None
    history: Sequence[ModelMessage] | None
    showing: Showing | None
    deps: Any
    resumed: tuple[Deferral, Mapping[str, Decision]] | None = None

    @property
    def given(self) -> dict[str, Any]:
        """The arguments of `Agent.run` that set the start of the conversation."""
        if self.resumed is not None:
            deferral, decisions = self.resumed
            return deferral.resumed(decisions)
        return {"user_prompt": self.prompt, "message_history": self.history}

    @property
    def before(self) -> int:
        """The number of messages before those of the run."""
        return len(self.history or ()) if self.resumed is None else self.resumed[0].before


def _usage_limits(limits: CallLimits | UsageLimits | None) -> UsageLimits | None:
    if limits is None or isinstance(limits, UsageLimits):
        return limits
    return UsageLimits(
        request_limit=limits.max_requests, total_tokens_limit=limits.max_tokens, cost_limit=limits.max_cost
    )


async def _in_time(path: Callable[[], Awaitable[Outcome[T]]], seconds: float, record: RunRecord) -> Outcome[T]:
    clock = asyncio.timeout(seconds)
    try:
        async with clock:
            return await path()
    except TimeoutError:
        if not clock.expired():
            raise
        issue = Issue("$", "timeout", f"no answer within the agent's timeout of {seconds:g} s")
        return Rejected(Reason.PROVIDER, (issue,), _last_text(record))


async def _directly(agent: DirectAgent[T], ask: _Asked, record: RunRecord) -> Outcome[T]:
    """The run of an agent defined by a spec."""
    record.claimed = True  # an agent run by a check has its own record
    settings = cast("ModelSettings | None", ask.settings)
    limits, history = ask.limits or UsageLimits(), tuple(ask.history or ())
    run = DirectRun(agent, record, ask.prompt, ask.usage, limits, history, settings, ask.showing, ask.deps)
    try:
        with agent_span(run.run_id, agent.name, record, ask.usage, ask.deps, agent.settings):
            outcome = await run.outcome()
    except PROVIDER_FAULTS as error:
        return _failed(error, record, schema_sent=agent.parameters.output_mode == "native")
    except UserError as error:
        message = f"the agent cannot run as specified: {str(error).rstrip('.')}"
        hint = "; set `output_mode: auto`" if "not supported by this model" in message else ""
        raise UsageError(f"{message}{hint}") from error
    if isinstance(outcome, Accepted):
        record.messages = run.messages
    return outcome


async def _hosted(hosted: HostedAgent[T], ask: _Asked, record: RunRecord) -> Outcome[T]:
    """The run of a pydantic-ai agent."""
    extra: dict[str, Any] = {}
    if hosted.output_type is not None:
        extra["output_type"] = [hosted.output_type, DeferredToolRequests]
    extra.update(recorded_run(hosted.agent, hosted.add))
    if ask.showing is not None and _graph_streams(hosted.agent):
        extra["event_stream_handler"] = ask.showing
    else:
        record.viewer = ask.showing
    try:
        result = await deferring(hosted.agent).run(
            **ask.given,
            instructions=hosted.instructions,
            deps=ask.deps,
            model_settings=cast("ModelSettings | None", ask.settings),
            usage=ask.usage,
            usage_limits=ask.limits,
            infer_name=False,  # the host would look for it among our local variables
            **extra,
        )
    except OutputError as error:
        if error is not record.error or record.outcome is None:
            raise  # someone else's, such as a tool's that requested its own value
        return record.outcome
    except PROVIDER_FAULTS as error:
        silent = _no_output(record, error)
        return _failed(error, record, schema_sent=hosted.schema_sent) if silent is None else silent
    messages = result.all_messages()
    if isinstance(result.output, DeferredToolRequests):
        parameters = record.exchange.parameters
        tools = parameters.function_tools if parameters else ()
        raise CallsDeferred(Deferral.of(result.output, messages, tools, ask.before))
    record.messages = tuple(messages[ask.before :])
    return _ended(result, record, hosted.contract)


def _graph_streams(agent: Agent[Any, Any]) -> bool:
    """Whether the agent graph has to stream the replies itself, because others use its events or spans. That takes
    twice the time of a stream that is read below the graph.
    """
    root = agent.root_capability
    if agent.event_stream_handler is not None or root.has_wrap_run_event_stream or root.has_on_event:
        return True
    return is_instrumented(agent)


def _failed(error: Exception, record: RunRecord, *, schema_sent: bool) -> Rejected:
    """The outcome of a run that ended with a provider error."""
    issue = issue_of(error, schema_sent=schema_sent)
    return Rejected(reason_of(error), (issue,), _last_text(record), retry_after=retry_after_of(error))


def _ended(result: AgentRunResult[Any], record: RunRecord, contract: Contract[T] | None) -> Outcome[T]:
    """The outcome of a run that ended with an output."""
    if record.outcome is None:
        return _unread(result.output, result.response.text or "", contract)
    if contract is None and isinstance(record.outcome, Accepted):
        return replace(record.outcome, value=result.output)  # the result of the agent's own output functions
    return record.outcome


def _unread(output: Any, text: str, contract: Contract[T] | None) -> Outcome[T]:
    """The outcome for an output that needed no reading, such as plain text."""
    if contract is None:
        return Accepted(cast("T", output), Trust.CLEAN, "first", (), text)
    verdict = contract.validate(to_jsonable_python(output, by_alias=True))
    if isinstance(verdict, Invalid):
        return Rejected(Reason.INVALID, verdict.issues, text)
    return Accepted(verdict.value, Trust.CLEAN, "first", (), text)


def _no_output(record: RunRecord, error: Exception) -> Rejected | None:
    """The rejection of a response that the host could not use, such as an empty one, or None for other errors."""
    response = record.exchange.response
    if response is None or not isinstance(error, UnexpectedModelBehavior):
        return None
    parameters = record.exchange.parameters if record.exchange.is_read else None
    silent = None if parameters is None else no_output_in(response, parameters)
    if silent is not None or type(error) is not UnexpectedModelBehavior:
        return silent
    text, called = response.text or "", [call.tool_name for call in response.tool_calls]
    if called:
        words = f"the model called {', '.join(called)} instead of giving its output ({sentence(error)})"
    else:
        words = sentence(error) if text.strip() else "the model wrote nothing"
    return Rejected(Reason.NO_JSON, (Issue("$", "no_output", words),), text)


def _last_text(record: RunRecord) -> str:
    if record.texts:
        return record.texts[-1]
    stream = record.exchange.stream  # what it has shown is what there is
    return (stream.so_far().text or "") if isinstance(stream, WatchedStream) else ""


def plain_conversation(said: Conversation) -> list[Any]:
    """A conversation as plain JSON."""
    plain: list[Any] = ModelMessagesTypeAdapter.dump_python(list(said), mode="json")
    return plain


def conversation_of(plain: Sequence[Any]) -> Conversation:
    """Restore a conversation saved by `plain_conversation`."""
    return tuple(ModelMessagesTypeAdapter.validate_python(list(plain)))


Decision: TypeAlias = "Approval | Result"


@dataclass(frozen=True, slots=True)
class Approval:
    """A person's decision on a tool call: whether it may run, with which arguments, and if not, why."""

    approve: bool
    args: Mapping[str, Any] | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a tool call that was executed elsewhere."""

    value: Any


@dataclass(frozen=True, slots=True)
class DeferredCall:
    """One deferred tool call, waiting for an approval or for a result from elsewhere.

    `schema` is that of the arguments, where the tool is known; `metadata` is what the tool says about the call.
    """

    id: str
    tool: str
    args: Mapping[str, Any]
    kind: Literal["approval", "result"]
    schema: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Deferral:
    """The calls that a run of an agent waits for, and its conversation so far as plain JSON.

    `before` counts the messages that the run was given as its history.
    """

    calls: tuple[DeferredCall, ...]
    messages: list[Any]
    before: int = 0

    @classmethod
    def of(
        cls,
        requests: DeferredToolRequests,
        messages: Sequence[ModelMessage],
        tools: Sequence[ToolDefinition],
        before: int,
    ) -> Deferral:
        """The deferral of a run that pydantic-ai ended with these requests."""
        schemas = {tool.name: tool.parameters_json_schema for tool in tools}

        def waiting(call: ToolCallPart, kind: Literal["approval", "result"]) -> DeferredCall:
            said = requests.metadata.get(call.tool_call_id)
            plain = None if said is None else cast("dict[str, Any]", to_jsonable_python(said, fallback=str))
            schema = schemas.get(call.tool_name)
            return DeferredCall(call.tool_call_id, call.tool_name, call.args_as_dict(), kind, schema, plain)

        calls = [waiting(call, "approval") for call in requests.approvals]
        calls += [waiting(call, "result") for call in requests.calls]
        plain = ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")
        return cls(tuple(calls), plain, before)

    def resumed(self, decisions: Mapping[str, Decision]) -> dict[str, Any]:
        """The arguments for `Agent.run` to continue, given the decision on each call, by its id."""
        results = DeferredToolResults()
        for call, said in decisions.items():
            if isinstance(said, Result):
                results.calls[call] = said.value
            elif said.approve:
                results.approvals[call] = ToolApproved(override_args=None if said.args is None else dict(said.args))
            else:
                results.approvals[call] = ToolDenied(said.message) if said.message else ToolDenied()
        history = ModelMessagesTypeAdapter.validate_python(self.messages)
        return {"message_history": history, "deferred_tool_results": results}


class CallsDeferred(Exception):
    """Raised when a run of an agent waits for decisions on its tool calls. Control flow, not an error."""

    def __init__(self, deferral: Deferral) -> None:
        super().__init__("the agent waits for deferred tool calls")
        self.deferral = deferral


def deferring(agent: Agent[Any, Any]) -> Agent[Any, Any]:
    """The agent, allowed to end with deferred tool calls whatever its output type."""
    # A custom `output_type` for the run would do the same, but builds a new schema for each run, and is rejected where
    # the agent has output validators.
    schema = getattr(agent, "_output_schema", None)
    if schema is None or schema.allows_deferred_tools:
        return agent
    able, allowing = copy(agent), copy(schema)
    allowing.allows_deferred_tools = True
    able._output_schema = allowing  # pyright: ignore[reportPrivateUsage]
    return able
