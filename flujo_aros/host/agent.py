"""Runs an agent for one step, by pydantic-ai or directly, and reports its outcome, stages, calls and cost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import signature
from operator import attrgetter
from shlex import join
from traceback import walk_tb
from types import NoneType, TracebackType, UnionType
from typing import (
    Any,
    Final,
    Generic,
    Literal,
    NamedTuple,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)
from urllib.parse import urlsplit
from uuid import uuid4

from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    DeferredToolResults,
    NativeOutput,
    PromptedOutput,
    ToolApproved,
    ToolDenied,
    ToolOutput,
)
from pydantic_ai.capabilities import CAPABILITY_TYPES, AbstractCapability
from pydantic_ai.exceptions import UnexpectedModelBehavior, UserError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestContext, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.settings import ModelSettings, merge_model_settings
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RunUsage, UsageLimits
from pydantic_core import to_jsonable_python

from flujo_aros.contract import BlockContract, Check, Contract, Invalid, TaggedContract, is_async, with_checks
from flujo_aros.errors import UsageError
from flujo_aros.host.capability import Aros
from flujo_aros.host.content import Prompt, has_content
from flujo_aros.host.models import ModelSource, can_stream, named_model, once, profile_of
from flujo_aros.host.output import Wire, lacks_envelope, output_contract, shown_contract, structured, without_deferral
from flujo_aros.host.recorded import recorded_run
from flujo_aros.host.recover import Recovery, clean_history, missing_block_text, recover, recover_text
from flujo_aros.host.request import (
    TOOL,
    AgentSpan,
    Call,
    ReportedCall,
    capabilities_in,
    count,
    is_instrumented,
    make_call,
    reject_misfit,
    request_with_fallback,
    schema_request,
    separate_instrumentation,
    text_in,
    with_instructions,
)
from flujo_aros.host.response import (
    PROVIDER_FAULTS,
    arguments_of,
    asks_after_empty_reply,
    has_only_thinking,
    issue_of,
    no_output_in,
    reason_of,
    rescue,
    retry_after_of,
    sentence,
    with_answer,
    with_blank,
)
from flujo_aros.host.run import TEXT, Exchange, Run, Viewer, recording
from flujo_aros.host.spec import AgentSpec, Decision, Deferral, DeferredCall, OutputMode, Result, object_schema
from flujo_aros.host.stream import Live, Showing, WatchedStream, read_out
from flujo_aros.outcome import Accepted, Issue, Outcome, OutputError, Reason, Rejected, StageRecord, Trust
from flujo_aros.reading.payload import apply_checks_async
from flujo_aros.recovery import Evidence, Ladder
from flujo_aros.redaction import Vault
from flujo_aros.usage import Allowance, Usage

T = TypeVar("T")


async def direct_agent(
    spec: AgentSpec, contract: Contract[T] | None, models: ModelSource | None, *, repeated: bool = False
) -> DirectAgent[T]:
    """Return the agent of a spec without tools, which needs no agent graph. Within one event loop it is always the same
    object.

    `repeated` means that the caller retries after provider errors. Raises `UsageError` for an unavailable model.
    """
    model = await named_model(spec.model, models, repeated=repeated)
    return once(_of_spec, spec, model, contract)


def check_agent(spec: AgentSpec, tools: Sequence[Any]) -> None:
    """Raise `UsageError` for an agent that cannot be built, because of its tools or a requirement of a capability."""
    if tools or spec.capabilities:
        _with_tools(spec, None, *tools)


def capability_names() -> tuple[str, ...]:
    """Return the names of the capabilities that pydantic-ai can build from a spec."""
    return tuple(CAPABILITY_TYPES)


class CapabilityOption(NamedTuple):
    """An option of a capability: whether it must be given, whether only by its name, and its types and values, or an
    empty tuple if they are no plain JSON.
    """

    is_required: bool
    is_keyword: bool
    choices: tuple[Any, ...]


def capability_options(name: str) -> Mapping[str, CapabilityOption]:
    """Return the options of a capability, by name. The mapping is empty if the capability accepts any option."""
    kind = CAPABILITY_TYPES[name]
    owner = next(each for each in kind.__mro__ if "from_spec" in vars(each))
    is_plain = owner is AbstractCapability  # its own calls `kind`
    takes = signature(kind if is_plain else kind.from_spec).parameters.values()
    if any(each.kind is each.VAR_KEYWORD for each in takes):
        return {}
    try:
        hints = get_type_hints(kind.__init__ if is_plain else kind.from_spec)
    except NameError:  # a type that its module imports for type checkers only
        hints = {}
    return {
        each.name: CapabilityOption(
            each.default is each.empty, each.kind is each.KEYWORD_ONLY, _plain_choices(hints.get(each.name))
        )
        for each in takes
    }


def _plain_choices(hint: Any) -> tuple[Any, ...]:
    """Return the scalar types and literals of a type, or an empty tuple if it has any other part."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else ()
    found = [_plain_choices(part) for part in parts]
    if parts:
        return tuple(each for part in found for each in part) if all(found) else ()
    return (hint,) if hint in (bool, int, float, str, NoneType) else ()


def checked_contract(contract: Contract[T], checks: Sequence[Check]) -> Contract[T]:
    """Return the contract with further checks: the same object each time, so that caches keyed by it work."""
    return once(_with_checks, contract, *checks) if checks else contract


def _with_checks(contract: Contract[T], *checks: Check) -> Contract[T]:
    return with_checks(contract, checks)


def _of_spec(spec: AgentSpec, model: Model, contract: Contract[T] | None) -> DirectAgent[T]:
    mode = spec.output_mode
    if mode == "auto":
        mode = "native" if profile_of(model).get("supports_json_schema_output") else "prompted"
    request = None if contract is None or _is_described_in_prompt(contract, mode) else schema_request(contract, mode)
    parameters, key = request or (TEXT, None)
    instructions = spec.system_prompt
    if contract is not None and request is None:
        instructions = f"{instructions}\n\n{_output_description(contract) or ''}".strip()
    settings = cast("ModelSettings", dict(spec.model_settings)) if spec.model_settings else None
    parameters = with_instructions(parameters, instructions)
    return DirectAgent(spec.name, model, contract, instructions or None, settings, parameters, key)


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
    except (UserError, ValueError, TypeError, ImportError) as error:
        # pydantic-ai's errors for tools, options and missing packages
        raise UsageError(f"the agent {spec.name!r} cannot be built: {error}") from error


def _output_description(contract: Contract[Any]) -> str | None:
    """Return the description of the output in the prompt. Tags are explained by the author, who knows their purpose."""
    return None if isinstance(contract, TaggedContract) else contract.instruction()


def _output_type(contract: Contract[Any], mode: Literal["native", "prompted", "tool"]) -> Any:
    """Return the output type for pydantic-ai: the schema as an object, or text if it cannot express the schema."""
    like = None if _is_described_in_prompt(contract, mode) else structured(object_schema(contract.json_schema))
    if like is None:
        return str
    return {"native": NativeOutput, "prompted": PromptedOutput, "tool": ToolOutput}[mode](like)


def _is_described_in_prompt(contract: Contract[Any], mode: str) -> bool:
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
    limits: UsageLimits | None = None,
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

    `prompt` is a string, or a list of strings and content such as images, which is sent unchanged. `deps` is what the
    agent's own tools and instructions see as `ctx.deps`. Bad data and a failing provider are outcomes (`Rejected`),
    never exceptions. Without a contract the outcome is the agent's own output, plain text for a spec. `usage_sink`
    receives the usage, even if the run raises or is cancelled. With `live` the reply is streamed and each chunk
    awaited; otherwise nothing is streamed. `limits` apply to this run; `allowance` is consulted before each model call.
    `settings` are model settings for this run, which override the agent's. `history` is the conversation before the
    prompt. `secrets` are masked in repair prompts. `evidence` is the statistics for an adaptive ladder. `repeated`
    means that the caller retries after provider errors, so the client of the provider does not. `refusals` are the
    schemas that models refused earlier: they are requested in the prompt, and new ones are added. `tools` are the
    functions that a spec names. `resumed` holds the calls that an earlier run left undecided, and the decision on each:
    the run continues from there.

    Raises `UsageError` before any model call if the agent cannot be run as described, and `CallsDeferred` if it waits
    for a decision on tool calls. `UsageLimitExceeded`,
    `LimitReached`, cancellation and the errors of the agent's own tools pass through.
    """
    wanted, every = contract, tuple(checks)
    if contract is not None:
        wanted = checked_contract(contract, [check for check in checks if not is_async(check)]) if checks else contract
        every = (*contract.awaited, *every)
    run = Run(
        contract=wanted,
        ladder=ladder,
        allowance=allowance,
        resolve=partial(named_model, models=models, repeated=repeated),
        checks=every and tuple(check for check in every if contract is None or is_async(check)),
        secrets=secrets,
        evidence=evidence,
        refusals={} if refusals is None else refusals,
        is_text_judged=contract is None,
        prompt=prompt,
        history=history or (),
        settings=cast("ModelSettings | None", settings),
        limits=limits,
        deps=deps,
    )
    showing, timeout = None, agent.timeout if isinstance(agent, AgentSpec) else None
    path: Callable[[], Awaitable[Outcome[T]]]
    # This is the only place where the two paths diverge: an agent without tools needs no agent graph.
    if not isinstance(agent, AgentSpec):
        path = partial(_run_pydantic_agent, agent, "auto", run, resumed)
    elif agent.is_direct:
        path = DirectRun(await direct_agent(agent, wanted, models, repeated=repeated), run).outcome
    else:
        model = await named_model(agent.model, models, repeated=repeated)
        path = partial(_run_pydantic_agent, once(_with_tools, agent, model, *tools), agent.output_mode, run, resumed)
    if live is not None:
        shown = wanted if isinstance(agent, AgentSpec) else wanted or shown_contract(agent.output_type)
        showing = run.viewer = Showing(live, shown, run)
    try:
        with recording(run):
            outcome = await (path() if timeout is None else _run_within_timeout(path, timeout, run))
        # The final decision if the agent has an Aros with its own contract, or nothing was read. No check runs
        # twice, because it would clean its own result again.
        left = [check for check in every if check not in run.exchange.judged] if every else ()
        if left:
            own = (
                None if isinstance(agent, AgentSpec) or agent.output_type is str else output_contract(agent.output_type)
            )
            outcome = await apply_checks_async(outcome, left, contract or own)
        if showing is not None:
            await showing.end(outcome)
    except (UserError, NotImplementedError) as error:  # pydantic-ai's errors for content that it cannot send
        if not has_content(prompt):
            raise
        reason = str(error).rstrip(".")
        raise UsageError(f"the model does not accept this input: {reason}; use another model, or send text") from error
    finally:
        spent = run.spent
        if usage_sink is not None:
            usage_sink(spent)
    return AgentRun(outcome, tuple(run.stages), spent, run.calls, run.added)


async def _run_within_timeout(path: Callable[[], Awaitable[Outcome[T]]], seconds: float, run: Run) -> Outcome[T]:
    clock = asyncio.timeout(seconds)
    try:
        async with clock:
            return await path()
    except TimeoutError:
        if not clock.expired():
            raise
        issue = Issue("$", "timeout", f"no answer within the agent's timeout of {seconds:g} s")
        return Rejected(Reason.PROVIDER, (issue,), _last_text(run))


async def _run_pydantic_agent(
    agent: Agent[Any, Any], mode: OutputMode, run: Run, resumed: tuple[Deferral, Mapping[str, Decision]] | None
) -> Outcome[Any]:
    """Run a pydantic-ai agent, with `Aros` active. An agent with plain text output is asked for the contract."""
    contract = run.contract
    before = len(run.history)  # the number of messages before the messages of the run
    extra: dict[str, Any] = {"user_prompt": run.prompt, "message_history": run.history or None}
    if resumed is not None:
        deferral, decisions = resumed
        before, extra = deferral.before, _resume_arguments(deferral, decisions)
    schema_sent, instructions = False, None
    if contract is not None and without_deferral(agent.output_type) is str:
        if mode == "auto":
            native = isinstance(agent.model, Model) and bool(profile_of(agent.model).get("supports_json_schema_output"))
            mode = "native" if native else "prompted"
        output = _output_type(contract, mode)
        schema_sent, instructions = (
            mode == "native" and output is not str,
            _output_description(contract) if output is str else None,
        )
        extra["output_type"] = [output, DeferredToolRequests]
    has_own = any(isinstance(part, Aros) for part in capabilities_in(agent.root_capability))
    extra.update(recorded_run(agent, () if has_own else (Aros(contract, run.ladder),)))
    if run.viewer is not None and _graph_streams(agent):
        extra["event_stream_handler"], run.viewer = run.viewer, None
    try:
        with ExitStack() as around:
            around.push(_name_server)
            result = await with_deferral(agent).run(
                instructions=instructions,
                deps=run.deps,
                model_settings=run.settings,
                usage=run.usage,
                usage_limits=run.limits,
                infer_name=False,  # otherwise pydantic-ai would look for it among the local variables here
                **extra,
            )
    except OutputError as error:
        if error is not run.raised or run.outcome is None:
            raise  # the error comes from elsewhere, such as a tool that requested its own value
        return run.outcome
    except PROVIDER_FAULTS as error:
        silent = _no_output(run.exchange, error)
        return _provider_rejection(error, run, schema_sent=schema_sent) if silent is None else silent
    messages = result.all_messages()
    if isinstance(result.output, DeferredToolRequests):
        tools = run.exchange.parameters.function_tools
        raise CallsDeferred(_deferral_of(result.output, messages, tools, before))
    run.added = tuple(messages[before:])
    if run.outcome is None:
        return _accept_unread(result.output, result.response.text or "", contract)
    if contract is None and isinstance(run.outcome, Accepted):
        return replace(run.outcome, value=result.output)  # the result of the agent's own output functions
    return run.outcome


def _name_server(_: object, error: BaseException | None, trace: TracebackType | None) -> None:
    """Raise `ConnectionError`, which names the server, for a failed connection to an MCP server.

    The error of the host does not say which server it was; only the frame that connects knows it.
    """
    if not isinstance(error, Exception) or isinstance(error, UserError):
        return
    for frame, _line in walk_tb(trace):
        if frame.f_code.co_name == "__aenter__" and frame.f_globals["__name__"] == "pydantic_ai.mcp":
            server = frame.f_locals["self"].client.transport
            url, command = getattr(server, "url", None), getattr(server, "command", None)
            name, todo = type(server).__name__, "check that it runs"
            if url is not None:  # without the parts of the URL that may be secret: user, password and query
                parts = urlsplit(str(url))
                name = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
                todo = "check that the server is running, its address and its `authorization_token`"
            elif command is not None:
                name, todo = join([command, *server.args]), "check that this command runs in a terminal"
            reason = sentence(error).removeprefix("Client failed to connect: ")
            name = Vault(name).hide(name)
            raise ConnectionError(f"no connection to the MCP server {name}: {reason}; {todo}") from error


def _graph_streams(agent: Agent[Any, Any]) -> bool:
    """Return whether the agent graph has to stream the replies itself, because others use its events or spans. That
    takes twice the time of a stream that is read below the graph. A model that cannot stream is asked without a stream.
    """
    if isinstance(agent.model, Model) and not can_stream(agent.model):
        return False
    root = agent.root_capability
    if agent.event_stream_handler is not None or root.has_wrap_run_event_stream or root.has_on_event:
        return True
    return is_instrumented(agent)


def _provider_rejection(error: Exception, run: Run, *, schema_sent: bool) -> Rejected:
    """Return the outcome of a run that ended with a provider error."""
    issue = issue_of(error, schema_sent=schema_sent)
    return Rejected(reason_of(error), (issue,), _last_text(run), retry_after=retry_after_of(error))


def _accept_unread(output: Any, text: str, contract: Contract[T] | None) -> Outcome[T]:
    """Return the outcome for an output that needed no reading, such as plain text."""
    if contract is None:
        return Accepted(cast("T", output), Trust.CLEAN, "first", (), text)
    verdict = contract.validate(to_jsonable_python(output, by_alias=True))
    if isinstance(verdict, Invalid):
        return Rejected(Reason.INVALID, verdict.issues, text)
    return Accepted(verdict.value, Trust.CLEAN, "first", (), text)


def _no_output(exchange: Exchange, error: Exception) -> Rejected | None:
    """Return the rejection of a response that the host could not use, such as an empty text, or None for other errors.

    If the response had to be read, `Aros.on_run_error` has already rejected it.
    """
    response = exchange.response
    if response is None or type(error) is not UnexpectedModelBehavior:
        return None
    text = response.text or ""
    if not text.strip() and (silent := no_output_in(response, exchange.parameters)) is not None:
        return silent
    return Rejected(Reason.NO_JSON, (Issue("$", "no_output", sentence(error)),), text)


def _last_text(run: Run) -> str:
    stream = run.exchange.stream  # without a text, the outcome is the text shown so far
    return run.texts[-1] if run.texts else "" if stream is None else stream.so_far().text or ""


_PUT_OFF: Final = (
    "the provider deferred the reply (background mode), and an agent without tools does not wait for "
    "it; remove the background mode from its model_settings, or give the step your own pydantic-ai agent"
)
_DONE: Final = "Final result processed."
"""pydantic-ai's answer to an output tool call."""


@dataclass(frozen=True, slots=True)
class DirectAgent(Generic[T]):
    """An agent without tools, prepared for its requests.

    `parameters` are sent with each request; a value that is not an object is requested under `key`.
    """

    name: str
    model: Model
    contract: Contract[T] | None
    instructions: str | None
    settings: ModelSettings | None
    parameters: ModelRequestParameters
    key: str | None


@dataclass(slots=True)
class DirectRun(Generic[T]):
    """One run of an agent without tools: one request, one reading, and the ladder if the reply is unusable."""

    agent: DirectAgent[T]
    run: Run
    own: RunUsage = field(default_factory=RunUsage)
    """The usage of the agent's own requests, without the requests of the ladder."""
    conversation: str = field(init=False)
    """The id of the conversation, taken from its history if there is one."""

    def __post_init__(self) -> None:
        run = self.run
        run.claimed, run.output_type = True, str  # an agent that a check runs has its own run
        # The spans of an instrumented model are opened around the whole run, which asks the model in it.
        run.model, run.instrument = separate_instrumentation(self.agent.model)
        run.name, run.messages, run.limits = self.agent.name, list(run.history), run.limits or UsageLimits()
        self.conversation = run.run_id = str(uuid4())
        for message in run.messages:
            self.conversation = message.conversation_id or self.conversation

    async def outcome(self) -> Outcome[T]:
        """Return the outcome of the run."""
        run, agent = self.run, self.agent
        try:
            with run.observed(run.deps, agent.settings):
                return await (self._outcome() if run.instrument is None else self._in_span(run.instrument))
        except PROVIDER_FAULTS as error:
            return _provider_rejection(error, run, schema_sent=agent.parameters.output_mode == "native")
        except UserError as error:
            if has_content(run.prompt):
                raise
            message = f"the agent cannot run as specified: {str(error).rstrip('.')}"
            hint = "; set `output_mode: auto`" if "not supported by this model" in message else ""
            raise UsageError(f"{message}{hint}") from error

    async def _in_span(self, settings: InstrumentationSettings) -> Outcome[T]:
        run = self.run
        span = AgentSpan(
            settings, run.name, run.model, run.usage, self.own, run.messages, run.run_id, self.conversation
        )

        async def body() -> Accepted[T]:
            outcome = await self._outcome()
            if isinstance(outcome, Accepted):
                return outcome
            raise run.error(outcome)

        try:
            return await span.around(body, attrgetter("value"))
        except OutputError as error:
            if error is not run.raised or run.outcome is None:
                raise
            return run.outcome

    async def _outcome(self) -> Outcome[T]:
        run, contract, response = self.run, self.agent.contract, await self._response()
        answer = self._answer(response)
        if isinstance(answer, Rejected):
            run.exchange.outcome = answer
            return answer
        text, call_id = answer
        outcome: Outcome[Any]
        if contract is None:
            judged = await recover_text(run, text)
            outcome = Accepted(text, Trust.CLEAN, "first", (), text) if judged is None else judged
        else:
            if run.viewer is not None and isinstance(contract, BlockContract):
                text = await self._append_missing_block(contract, text, run.viewer)
            wire = self._wire_for(contract, text)
            outcome, _ = await recover(run, wire, text, call_id=call_id)
        if isinstance(outcome, Accepted):
            if call_id is not None:
                self._append_message(ModelRequest(parts=[ToolReturnPart(TOOL, _DONE, tool_call_id=call_id)]))
            run.added = tuple(run.messages[len(run.history) :])
        if run.limits is not None:
            run.limits.check_cost(run.usage)
        return outcome

    def _append_message(self, message: ModelMessage) -> None:
        message.run_id, message.conversation_id = self.run.run_id, self.conversation
        self.run.messages.append(message)

    def _wire_for(self, contract: Contract[Any], text: str) -> Wire:
        """Return the contract of the text, inside the envelope around a non-object value if the reply has one."""
        key = self.agent.key
        if key is not None and lacks_envelope(text, contract, key):
            key = None
        if key is None and not contract.awaited:
            return Wire(contract, contract)
        return Wire.of(contract, wanted=True, key=key)

    async def _response(self) -> ModelResponse:
        """Return the reply to the agent's own request, counted. An error that the ladder can handle
        counts as a reply.
        """
        agent, run = self.agent, self.run
        run.check_call()
        self._append_message(ModelRequest(parts=[UserPromptPart(run.prompt)], instructions=agent.instructions))
        settings = merge_model_settings(merge_model_settings(run.model.settings, agent.settings), run.settings)
        context = ModelRequestContext(
            model=run.model,
            messages=list(run.messages),
            model_settings=settings,
            model_request_parameters=agent.parameters,
        )
        if agent.contract is not None and agent.contract.mode != "json":
            reject_misfit(agent.contract, run.ladder_of(agent.contract), context)
        run.begin(context, agent.contract)

        async def asking(form: ModelRequestParameters) -> ModelResponse:
            call = Call(
                run.model, context.messages, form, settings, None, run.instrument, agent.name, attempt=run.own_calls
            )
            async with ReportedCall(run, call) as report:
                if run.viewer is not None:
                    call = replace(call, listen=partial(self._stream_reply, run.viewer, report))
                report.response = await make_call(call)
            return report.response

        try:
            response = await request_with_fallback(run.model, agent.parameters, run, asking)
        except PROVIDER_FAULTS as error:
            found = rescue(run, agent.parameters, error)
            if found is None:
                raise
            response = found
        self._append_message(response)
        count(response, run, self.own)
        if response.state == "suspended":
            raise UsageError(_PUT_OFF)
        run.exchange.response = response
        return response

    async def _stream_reply(self, viewer: Viewer, report: ReportedCall, live: StreamedResponse) -> ModelResponse:
        """Show a reply while it streams, end the stream once the rest is useless, and return what has arrived."""
        stream = WatchedStream(live, self.agent.parameters, report)
        try:
            return await read_out(stream, self.run, viewer, self.run.usage, self.own)
        finally:
            stream.conclude()

    def _answer(self, response: ModelResponse) -> tuple[str, str | None] | Rejected:
        """Return the text of the model's answer and the id of its output tool call, or the reason why there is none."""
        run, parameters = self.run, self.agent.parameters
        text = text_in(response)
        if text.strip() and not parameters.output_tools and not response.tool_calls:
            return text, None
        response.parts = self._with_answer(response).parts
        text = text_in(response)
        for call in response.tool_calls if parameters.output_tools else ():
            if call.tool_name == TOOL:
                written = run.exchange.raw_arguments.get(call.tool_call_id)
                return arguments_of(call) if written is None else written, call.tool_call_id
        if run.exchange.fault is None and (parameters.output_tools or response.tool_calls or not text):
            silent = no_output_in(response, parameters)
            if silent is not None:
                return silent
        return text, None

    def _with_answer(self, response: ModelResponse) -> ModelResponse:
        """Return the response with its answer outside the thinking, or in the output tool call, or with a blank if it
        is empty.
        """
        exchange, parameters = self.run.exchange, self.agent.parameters
        response = with_answer(response, self.run, asks_again=False)
        text = text_in(response)
        if not asks_after_empty_reply(self.run):
            return response
        unknown = no_output_in(response, parameters) if response.tool_calls and not text.strip() else None
        if unknown is not None and unknown.reason is Reason.NO_JSON:
            exchange.unknown_tool = unknown.issues[0]
            # No provider accepts a tool call without its result, so the feedback is sent as text.
            response = replace(response, parts=[part for part in response.parts if not isinstance(part, ToolCallPart)])
        if (
            exchange.fault is None and has_only_thinking(response) and not text
        ):  # whitespace may have been shown already
            response = with_blank(response, parameters, exchange)
        return response

    async def _append_missing_block(self, contract: BlockContract, text: str, viewer: Viewer) -> str:
        """Return the text with its missing block. A reply that has been shown can only be extended."""
        run = self.run
        added = missing_block_text(run, text, await Recovery(run, self._wire_for(contract, text)).outcome(text))
        if added:
            clean_history(run, text + added, None)
            await viewer.append(added)
        return text + added


def plain_conversation(messages: Sequence[ModelMessage]) -> list[Any]:
    """Return a conversation as plain JSON."""
    plain: list[Any] = ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")
    return plain


def conversation_of(plain: Sequence[Any]) -> Conversation:
    """Restore a conversation saved by `plain_conversation`."""
    return tuple(ModelMessagesTypeAdapter.validate_python(list(plain)))


def _deferral_of(
    requests: DeferredToolRequests, messages: Sequence[ModelMessage], tools: Sequence[ToolDefinition], before: int
) -> Deferral:
    """Return the deferral of a run that pydantic-ai ended with these requests."""
    schemas = {tool.name: tool.parameters_json_schema for tool in tools}

    def deferred_call(call: ToolCallPart, kind: Literal["approval", "result"]) -> DeferredCall:
        metadata = requests.metadata.get(call.tool_call_id)
        return DeferredCall(
            id=call.tool_call_id,
            tool=call.tool_name,
            args=call.args_as_dict(),
            kind=kind,
            input_schema=schemas.get(call.tool_name),
            metadata=None if metadata is None else to_jsonable_python(metadata, fallback=str),
        )

    calls = [deferred_call(call, "approval") for call in requests.approvals]
    calls += [deferred_call(call, "result") for call in requests.calls]
    return Deferral(calls=calls, messages=plain_conversation(messages), before=before)


def _resume_arguments(deferral: Deferral, decisions: Mapping[str, Decision]) -> dict[str, Any]:
    """Return the arguments for `Agent.run` to continue, given the decision on each call, by its id."""
    results = DeferredToolResults()
    for call, decision in decisions.items():
        if isinstance(decision, Result):
            results.calls[call] = decision.value
        elif decision.approve:
            results.approvals[call] = ToolApproved(override_args=None if decision.args is None else dict(decision.args))
        else:
            results.approvals[call] = ToolDenied(decision.message) if decision.message else ToolDenied()
    return {"message_history": conversation_of(deferral.messages), "deferred_tool_results": results}


class CallsDeferred(Exception):
    """Raised when a run of an agent waits for decisions on its tool calls. Control flow, not an error."""

    def __init__(self, deferral: Deferral) -> None:
        super().__init__("the agent waits for deferred tool calls")
        self.deferral = deferral


def with_deferral(agent: Agent[Any, Any]) -> Agent[Any, Any]:
    """Return the agent, allowed to end with deferred tool calls whatever its output type."""
    # A custom `output_type` for the run would do the same, but builds a new schema for each run, and is rejected where
    # the agent has output validators.
    schema = getattr(agent, "_output_schema", None)
    if schema is None or schema.allows_deferred_tools:
        return agent
    able, allowing = copy(agent), copy(schema)
    allowing.allows_deferred_tools = True
    able._output_schema = allowing  # pyright: ignore[reportPrivateUsage]
    return able
