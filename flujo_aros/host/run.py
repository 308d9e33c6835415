"""Runs an agent for one step and reports its outcome, stages, calls and cost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar, cast

from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    DeferredToolResults,
    NativeOutput,
    PromptedOutput,
    StructuredDict,
    ToolApproved,
    ToolDenied,
    ToolOutput,
)
from pydantic_ai.capabilities import CAPABILITY_TYPES
from pydantic_ai.exceptions import UnexpectedModelBehavior, UserError
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.run import AgentRunResult
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RunUsage, UsageLimits
from pydantic_core import to_jsonable_python

from flujo_aros.contract import Check, Contract, Invalid, TaggedContract, is_async, with_checks
from flujo_aros.errors import UsageError
from flujo_aros.host.capability import Aros
from flujo_aros.host.content import Prompt
from flujo_aros.host.direct import TEXT, capabilities_in, is_instrumented, with_instructions
from flujo_aros.host.direct_run import Asked, DirectAgent, DirectRun
from flujo_aros.host.faults import PROVIDER_FAULTS, issue_of, reason_of, retry_after_of, sentence
from flujo_aros.host.model import Live, Showing, WatchedStream
from flujo_aros.host.models import ModelSource, named_model, once, profile_of
from flujo_aros.host.output import shown_contract, without_deferral
from flujo_aros.host.recorded import recorded_run
from flujo_aros.host.response import no_output_in
from flujo_aros.host.run_state import RunOptions, RunRecord, StageRecord, agent_span, awaited_record
from flujo_aros.host.schema_request import schema_request
from flujo_aros.host.spec import AgentSpec, OutputMode, object_schema
from flujo_aros.outcome import Accepted, Issue, Outcome, OutputError, Reason, Rejected, Trust
from flujo_aros.reading.payload import judged_awaiting
from flujo_aros.recovery import Evidence, Ladder
from flujo_aros.usage import Allowance, Usage

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class HostedAgent(Generic[T]):
    """A pydantic-ai agent, and what one run of it needs so that `Aros` is active.

    `schema_sent`: the provider is asked to enforce the schema.
    """

    agent: Agent[Any, Any]
    contract: Contract[T] | None
    output_type: Any = None
    instructions: str | None = None
    add: tuple[Aros, ...] = ()
    schema_sent: bool = False


async def direct_agent(
    spec: AgentSpec,
    contract: Contract[T] | None,
    ladder: Ladder | None,
    models: ModelSource | None,
    *,
    repeated: bool = False,
) -> DirectAgent[T]:
    """The agent of a spec, which needs no agent graph: it has no tools. The same one each time in an event loop.

    `repeated`: the caller repeats it after provider errors. Raises `UsageError` for an unavailable model.
    """
    model = await named_model(spec.model, models, repeated=repeated)
    return once(_of_spec, spec, model, contract, ladder)


def check_agent(spec: AgentSpec, tools: Sequence[Any]) -> None:
    """Raise `UsageError` for an agent that cannot be built, because of its tools or a requirement of a capability."""
    if tools or spec.capabilities:
        _with_tools(spec, None, *tools)


def capability_names() -> tuple[str, ...]:
    """The names of the capabilities that pydantic-ai can build from a spec."""
    return tuple(CAPABILITY_TYPES)


def checked_contract(contract: Contract[T], checks: Sequence[Check]) -> Contract[T]:
    """The contract with further checks: the same object each time, so that caches keyed by it work."""
    return once(_with_checks, contract, *checks) if checks else contract


def _with_checks(contract: Contract[T], *checks: Check) -> Contract[T]:
    return with_checks(contract, checks)


def _of_spec(spec: AgentSpec, model: Model, contract: Contract[T] | None, ladder: Ladder | None) -> DirectAgent[T]:
    mode = spec.output_mode
    if mode == "auto":
        mode = "native" if profile_of(model).get("supports_json_schema_output") else "prompted"
    request = None
    if contract is not None and not _is_asked_in_words(contract, mode):
        with suppress(UsageError):  # a recursive schema
            request = schema_request(contract, mode)
    instructions = spec.system_prompt
    if contract is not None and request is None:
        instructions = f"{instructions}\n\n{_words(contract) or ''}".strip()
    settings = cast("ModelSettings", dict(spec.model_settings)) if spec.model_settings else None
    parameters = with_instructions(TEXT if request is None else request.parameters, instructions)
    key = None if request is None else request.key
    return DirectAgent(spec.name, model, contract, ladder, instructions or None, settings, parameters, key)


def _with_tools(spec: AgentSpec, model: Model | None, *tools: Any) -> Agent[Any, Any]:
    settings = cast("ModelSettings", dict(spec.model_settings)) if spec.model_settings else None
    try:
        return Agent.from_spec(
            {"capabilities": list(spec.capabilities)},
            model=model,
            name=spec.name or None,
            instructions=spec.system_prompt or None,
            model_settings=settings,
            tools=tools,
            deps_type=object,
        )
    except (UserError, ValueError, TypeError, ImportError) as error:  # as it refuses tools, options and what is missing
        raise UsageError(f"the agent {spec.name!r} cannot be built: {error}") from error


def hosted_agent(
    agent: Agent[Any, Any], contract: Contract[T] | None, ladder: Ladder | None, mode: OutputMode = "auto"
) -> HostedAgent[T]:
    """A user's agent with `Aros` active. If its output type is only text, this run asks for the contract."""
    has_own = any(isinstance(part, Aros) for part in capabilities_in(agent.root_capability))
    add = () if has_own else (Aros(contract, ladder),)
    if contract is None or without_deferral(agent.output_type) is not str:
        return HostedAgent(agent, contract, add=add)
    if mode == "auto":
        native = isinstance(agent.model, Model) and bool(profile_of(agent.model).get("supports_json_schema_output"))
        mode = "native" if native else "prompted"
    output = _output_type(contract, mode)
    words = _words(contract) if output is str else None
    return HostedAgent(agent, contract, output, words, add, schema_sent=mode == "native" and output is not str)


def _words(contract: Contract[Any]) -> str | None:
    """What the prompt says about the output. Tags are explained by the author, who alone knows their purpose."""
    return None if isinstance(contract, TaggedContract) else contract.instruction()


def _output_type(contract: Contract[Any], mode: Literal["native", "prompted", "tool"]) -> Any:
    """The output type for pydantic-ai: the schema as an object, or text if it cannot express the schema."""
    if _is_asked_in_words(contract, mode):
        return str
    try:
        like = StructuredDict(object_schema(contract.json_schema))
    except UserError:  # a recursive schema
        return str
    return {"native": NativeOutput, "prompted": PromptedOutput, "tool": ToolOutput}[mode](like)


def _is_asked_in_words(contract: Contract[Any], mode: str) -> bool:
    of_text = contract.mode in ("tagged", "text", "block") or (contract.mode == "event" and mode == "prompted")
    return of_text or not contract.json_schema


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
    usage_sink: Callable[[Usage], None] | None = None,
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
    if contract is not None:
        wanted = checked_contract(contract, [check for check in checks if not is_async(check)]) if checks else contract
        every = (*contract.awaited, *every)
    beyond = every and tuple(check for check in every if contract is None or is_async(check))
    resolve = partial(named_model, models=models, repeated=repeated)
    refused = {} if refusals is None else refusals
    plain = contract is None
    record = RunRecord(
        RunOptions(wanted, ladder, allowance, resolve, beyond, secrets, evidence, refused, is_text_judged=plain)
    )
    shown = wanted if isinstance(agent, AgentSpec) else wanted or shown_contract(agent.output_type)
    showing = None if live is None else Showing(live, shown, record)
    call_settings = cast("ModelSettings | None", settings)
    ask = Asked(prompt, RunUsage(), _usage_limits(limits), call_settings, history, showing or None, deps)
    path: Callable[[], Awaitable[Outcome[T]]]
    # This is the only place where the two paths diverge: an agent without tools needs no agent graph.
    timeout = agent.timeout if isinstance(agent, AgentSpec) else None
    if not isinstance(agent, AgentSpec):
        path = partial(_hosted, hosted_agent(agent, wanted, ladder), ask, record, resumed)
    elif agent.is_direct:
        path = partial(_directly, await direct_agent(agent, wanted, ladder, models, repeated=repeated), ask, record)
    else:
        model = await named_model(agent.model, models, repeated=repeated)
        hosted = hosted_agent(once(_with_tools, agent, model, *tools), wanted, ladder, agent.output_mode)
        path = partial(_hosted, hosted, ask, record, resumed)
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


async def _directly(agent: DirectAgent[T], ask: Asked, record: RunRecord) -> Outcome[T]:
    """The run of an agent defined by a spec."""
    record.claimed = True  # an agent run by a check has its own record
    run = DirectRun(agent, record, ask)
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


async def _hosted(
    hosted: HostedAgent[T], ask: Asked, record: RunRecord, resumed: tuple[Deferral, Mapping[str, Decision]] | None
) -> Outcome[T]:
    """The run of a pydantic-ai agent."""
    before = len(ask.history or ())  # the number of messages before those of the run
    extra: dict[str, Any] = {"user_prompt": ask.prompt, "message_history": ask.history}
    if resumed is not None:
        deferral, decisions = resumed
        before, extra = deferral.before, deferral.resumed(decisions)
    if hosted.output_type is not None:
        extra["output_type"] = [hosted.output_type, DeferredToolRequests]
    extra.update(recorded_run(hosted.agent, hosted.add))
    if ask.showing is not None and _graph_streams(hosted.agent):
        extra["event_stream_handler"] = ask.showing
    else:
        record.viewer = ask.showing
    try:
        result = await deferring(hosted.agent).run(
            instructions=hosted.instructions,
            deps=ask.deps,
            model_settings=ask.settings,
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
        raise CallsDeferred(Deferral.of(result.output, messages, tools, before))
    record.messages = tuple(messages[before:])
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
