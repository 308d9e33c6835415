"""A request to a model: how it is made without an agent graph, counted and reported, and the form of its output.

An agent of a blueprint without tools, like an ask of a ladder, needs no agent graph: one request and one reading
suffice. `request_once` makes the request through pydantic-ai's own direct interface: deadlines, formats of the
providers and `chat` spans are pydantic-ai's. Everything around it (limits, prices, events, repairs) works on what it
returns.

A durable engine intercepts requests with `redirect_calls`. It receives each `Call` and returns a `ModelResponse`:
normally from `request_once(call)` inside one of its own steps, on recovery the recorded response, which is plain
data for pydantic-ai's `ModelMessagesTypeAdapter`. Errors of the provider pass through and must be recorded like a
response. `agent`, `stage` and `attempt` of a call stay the same when the run is repeated. If `call.listen` is set,
the reply is streamed and shown while `request_once` runs; an engine that answers from its records does not call it, and
the reply is shown all at once.

`chat` spans come with each request. The `invoke_agent` span around them (`AgentSpan`) is opened by the public hooks of
pydantic-ai's `Instrumentation` capability, so that names and attributes are the same as for any other agent.

A schema is enforced by the provider, put in the prompt, or requested as a tool call (`schema_request`). If a provider
rejects it, it is put in the prompt (`request_with_fallback`). A configuration that cannot work is rejected before the
first call (`reject_misfit`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cache
from time import perf_counter
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeAlias, TypeVar, cast

from opentelemetry.trace import get_current_span
from pydantic import TypeAdapter
from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability, Instrumentation
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.messages import (
    CompactionPart,
    InstructionPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    SpeechPart,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestContext, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.instrumented import InstrumentationSettings, InstrumentedModel
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.run import AgentRunResult
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import RunContext, ToolDefinition
from pydantic_ai.usage import RunUsage
from pydantic_core import to_json

from flujo_aros.contract import Contract, JsonSchema, TaggedContract
from flujo_aros.errors import UsageError
from flujo_aros.events import AskFinished, AskStarted, Finish, StageSkipped, current_observers, emit, span
from flujo_aros.host.content import describe_content, is_content
from flujo_aros.host.models import can_stream, profile_of
from flujo_aros.host.output import structured
from flujo_aros.host.response import PROVIDER_FAULTS, arguments_of, detail_of, rejects_schema, sentence
from flujo_aros.host.run import Exchange, Run
from flujo_aros.host.spec import ENVELOPE, object_schema
from flujo_aros.json_data import is_dict
from flujo_aros.recovery import Ladder
from flujo_aros.usage import Usage

T = TypeVar("T")

FIRST: Final = "first"
"""The stage of an agent's own request."""
Listen: TypeAlias = Callable[[StreamedResponse], Awaitable[ModelResponse]]
"""Reads a stream to its end, or until the rest is useless, and returns the reply."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request to a model: the messages, the model, and the output format.

    `listen` reads the reply while it streams; without it nothing is streamed. `instrument` are the OpenTelemetry
    settings of the run; None means those of the process (`Agent.instrument_all`). `agent`, `stage` and `attempt`
    identify the call: `stage` is "first" for an agent's own request, else the stage of the ladder that asks.
    """

    model: Model
    messages: Sequence[ModelMessage]
    parameters: ModelRequestParameters
    settings: ModelSettings | None = None
    listen: Listen | None = None
    instrument: InstrumentationSettings | None = None
    agent: str = ""
    stage: str = FIRST
    attempt: int = 1


ModelCall: TypeAlias = Callable[[Call], Awaitable[ModelResponse]]
"""Makes one request to a model and passes on its errors: `request_once`, or a wrapper around it."""


async def request_once(call: Call, /) -> ModelResponse:
    """Make one request to a model. Raises the errors of the provider."""
    options = {
        "model_settings": call.settings,
        "model_request_parameters": call.parameters,
        "instrument": call.instrument,
    }
    if call.listen is None or not can_stream(call.model):
        return await model_request(call.model, call.messages, **cast("Any", options))
    async with model_request_stream(call.model, call.messages, **cast("Any", options)) as stream:
        return await call.listen(stream)


_made_by: Final[ContextVar[ModelCall]] = ContextVar("flujo_aros_model_call", default=request_once)
current_model_call: Final = _made_by.get
"""Returns what makes the requests here: `request_once`, or its replacement from `redirect_calls`."""


@contextmanager
def redirect_calls(model_call: ModelCall) -> Generator[None]:
    """Send every request inside the block through `model_call`, including those of tasks that are started there.

    >>> import asyncio
    >>> from pydantic_ai.models import ModelRequestParameters
    >>> from pydantic_ai.models.test import TestModel
    >>> async def recorded(call):
    ...     return ModelResponse(parts=[])
    >>> async def main():
    ...     with redirect_calls(recorded):
    ...         return await make_call(Call(TestModel(), [], ModelRequestParameters()))
    >>> asyncio.run(main()).parts
    []
    """
    token = _made_by.set(model_call)
    try:
        yield
    finally:
        _made_by.reset(token)


async def make_call(call: Call) -> ModelResponse:
    """Make one request, by `request_once` or by the replacement from `redirect_calls`."""
    return await _made_by.get()(call)


def with_instructions(parameters: ModelRequestParameters, instructions: str | None) -> ModelRequestParameters:
    """Return the parameters with the instructions of a request, where providers look for them."""
    return (
        replace(parameters, instruction_parts=[InstructionPart(content=instructions)]) if instructions else parameters
    )


def count(response: ModelResponse, run: Run, own: RunUsage) -> None:
    """Add a response to the usage of a run and to the usage of the agent that asked (`own`).

    Raises `UsageLimitExceeded` if the run exceeds its limits.
    """
    price(response)
    for usage in (run.usage, own):
        usage.requests += 1
        for attempt in response.failed_attempts or ():  # the failed calls of a fallback model were paid for, too
            if attempt.usage is not None:
                usage.incr(attempt.usage)
        usage.incr(response.usage)
    run.check_limits(response)


def price(response: ModelResponse) -> None:
    """Set the cost of a response if it is known. For a response that broke off, this is the cost of the part
    received."""
    used = response.usage
    if used.cost is None and not used.unmeasured_requests:
        used.cost = cost_of(response)
    elif used.cost is None:
        used.cost = cost_of(replace(response, usage=replace(used, unmeasured_requests=0))) or None


def text_in(response: ModelResponse) -> str:
    """Return the answer text of a response; text before a provider-side search counts as thinking."""
    text = before = compacted = ""
    for part in response.parts:
        if isinstance(part, (TextPart, SpeechPart)):
            text += part.content
        elif isinstance(part, NativeToolCallPart):
            before, text = text or before, ""
        elif isinstance(part, CompactionPart) and part.content:
            compacted += part.content
    return text or before or compacted


@dataclass(slots=True)
class ReportedCall:
    """A model call of a run, made inside this context: its events and its usage.

    The agent's own call also waits until the caller's allowance permits it. `response` is the part of the reply that
    has arrived, and `first_seconds` how long the first chunk of a stream took; the caller sets both. It is a class
    rather than a generator for speed: there is one for each step, and usually no observer.
    """

    run: Run
    call: Call
    prompt: str = ""
    """The prompt to report, if it differs from the text of the messages."""
    response: ModelResponse | None = None
    first_seconds: float | None = None
    seconds: float = 0.0
    _settle: Callable[[Usage], None] | None = None
    _reported: tuple[AbstractContextManager[Finish], Finish] | None = None
    began: float = 0.0

    @property
    def used(self) -> Usage:
        """Its usage."""
        return Usage(requests=1, unmeasured_requests=1) if self.response is None else usage_of(self.response)

    async def __aenter__(self) -> Self:
        run, call, own = self.run, self.call, self.call.stage == FIRST
        if own and run.allowance is not None:
            try:
                self._settle = await run.allowance.reserve()
            finally:
                if self._settle is None:  # a call that was not allowed, or cancelled before this point, was never made
                    run.count_own(-1)
        self.began = perf_counter()
        if own:
            run.exchange.began, run.exchange.seconds = self.began, None
        if current_observers():
            started = AskStarted(
                stage=call.stage,
                attempt=call.attempt,
                model=call.model.model_name,
                constrained=call.parameters.output_mode == "native",
                prompt=self.prompt or text_of(call.messages, for_records=True),
                system=text_of(call.messages, system_only=True) if own else "",
                capture=run.capture,
            )
            around = span(started)
            self._reported = around, around.__enter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.seconds = perf_counter() - self.began
        if self.call.stage == FIRST:
            self.run.exchange.seconds = self.seconds
        if self._settle is not None:
            self._settle(self.used)
        if self._reported is None:
            return
        around, finish = self._reported
        fault = None if raised is None else sentence(raised) if isinstance(raised, PROVIDER_FAULTS) else "interrupted"
        try:
            finish(
                AskFinished(
                    stage=self.call.stage,
                    attempt=self.call.attempt,
                    usage=self.used,
                    model=self.call.model.model_name,
                    seconds=self.seconds,
                    finish_reason=None if self.response is None else self.response.finish_reason,
                    fault=fault,
                    first_seconds=self.first_seconds,
                )
            )
        finally:
            around.__exit__(kind, raised, trace)


def text_of(messages: Sequence[ModelMessage], *, system_only: bool = False, for_records: bool = False) -> str:
    """Return the text of the requests in a conversation: instructions, system prompts, and optionally user prompts.

    For records, images and other content are described in a line, and the last request includes the results of its
    tools. Otherwise only text counts.
    """
    parts: list[str] = []
    for message in messages:
        if not isinstance(message, ModelRequest):
            continue
        if message.instructions and message.instructions not in parts:  # every request of a run repeats them
            parts.append(message.instructions)
        for part in message.parts:
            if isinstance(part, SystemPromptPart):
                parts.append(part.content)
            elif isinstance(part, UserPromptPart) and not system_only:
                for piece in (part.content,) if isinstance(part.content, str) else part.content:
                    if isinstance(piece, str):
                        parts.append(piece)
                    elif for_records and is_content(piece):
                        parts.append(describe_content(piece))
    return "\n\n".join(filter(None, [*parts, *(_iter_returned(messages) if for_records else ())]))


def _iter_returned(messages: Sequence[ModelMessage]) -> Iterator[str]:
    """Yield what the last request answers to the previous reply: tool results, and the errors of an unusable reply."""
    calls = {
        part.tool_call_id: arguments_of(part)
        for message in messages[-2:-1]
        for part in message.parts
        if isinstance(part, ToolCallPart)
    }
    for part in messages[-1].parts if messages else ():
        if isinstance(part, ToolReturnPart):
            yield f"{part.tool_name}({calls.get(part.tool_call_id, '')}) returned: {part.model_response_str()}"
        elif part.part_kind == "retry-feedback":
            yield part.model_response()


def size_of(messages: Sequence[ModelMessage]) -> int:
    """Return the approximate number of characters needed to send these messages again."""
    return sum(
        len((message.instructions or "") if isinstance(message, ModelRequest) else "")
        + sum(
            _count_characters(getattr(part, "content", None) or getattr(part, "args", None)) for part in message.parts
        )
        for message in messages
    )


def _count_characters(content: object) -> int:
    if content is None or isinstance(content, str):
        return len(content or "")
    if isinstance(content, (list, tuple)):
        return sum(map(_count_characters, cast("Sequence[object]", content)))
    return len(to_json(content, fallback=str)) if is_dict(content) else _FILE


_FILE: Final = 4_000
"""The number of characters that an image or other file counts as."""


def usage_of(response: ModelResponse) -> Usage:
    """Return the usage of the call that produced a response, including the models that failed before."""
    used, failed = response.usage, [attempt.usage for attempt in response.failed_attempts or () if attempt.usage]
    whole = Usage(1, used.input_tokens, used.output_tokens, cost_of(response), used.unmeasured_requests)
    return Usage.total([whole, *(Usage(0, each.input_tokens, each.output_tokens, each.cost) for each in failed)])


def cost_of(response: ModelResponse) -> Decimal | None:
    """Return the cost of a response in US dollars, or None if no price is known."""
    if response.usage.cost is not None:
        return response.usage.cost
    if not response.model_name:
        return None
    try:
        return response.cost().total_price
    except (LookupError, ValueError):  # no such model in the price list, or no usage was reported
        return None


def instrument_agents(tracer_provider: Any, meter_provider: Any, *, content: bool) -> None:
    """Enable `invoke_agent` and `chat` spans for all agents of this process; they contain texts only with `content`.

    Uses the global providers of OpenTelemetry.
    """
    settings = InstrumentationSettings(
        tracer_provider=tracer_provider, meter_provider=meter_provider, include_content=content
    )
    Agent.instrument_all(settings)


def instrumentation_of(ctx: RunContext[Any]) -> InstrumentationSettings | None:
    """Return the instrumentation of a pydantic-ai run, or None if there is none."""
    parts = () if ctx.root_capability is None else capabilities_in(ctx.root_capability)
    return next((part.settings for part in parts if isinstance(part, Instrumentation)), None)


def capabilities_in(root: AbstractCapability[Any]) -> list[AbstractCapability[Any]]:
    """Return the capabilities of an agent or of a run, by their root."""
    parts: list[AbstractCapability[Any]] = []
    root.apply(parts.append)
    return parts


def separate_instrumentation(model: Model) -> tuple[Model, InstrumentationSettings | None]:
    """Return the model itself, and the settings of the spans of a run with it: its own, or those of the process
    (`Agent.instrument_all`).
    """
    if isinstance(model, InstrumentedModel):
        return model.wrapped, model.instrumentation_settings
    # pydantic-ai has no public way to ask for it; its own direct interface reads the same attribute.
    found = Agent._instrument_default  # pyright: ignore[reportPrivateUsage]
    return model, InstrumentationSettings() if found is True else found or None


def is_instrumented(agent: Agent[Any, Any]) -> bool:
    """Return whether runs of an agent have spans: by its own capability or model, or for the whole process."""
    parts = capabilities_in(agent.root_capability)
    if isinstance(agent.model, InstrumentedModel) or any(isinstance(part, Instrumentation) for part in parts):
        return True
    return bool(Agent._instrument_default if agent.instrument is None else agent.instrument)  # pyright: ignore[reportPrivateUsage]


@dataclass
class SpanResult(AgentRunResult[Any]):
    """The parts of a finished run that `Instrumentation` reads."""

    said: list[ModelMessage] = field(default_factory=list[ModelMessage])

    def all_messages(self, *, output_tool_return_content: str | None = None) -> list[ModelMessage]:  # noqa: ARG002
        """Return the earlier messages, followed by the messages of the run."""
        return self.said


@dataclass(frozen=True, slots=True)
class AgentSpan:
    """The `invoke_agent` span of a run on the direct path.

    `messages` are those before the run; the runner appends to the same list. `usage` is the run's usage, and `own` the
    usage of its own requests, without nested runs, which have their own spans.
    """

    settings: InstrumentationSettings
    name: str
    model: Model
    usage: RunUsage
    own: RunUsage
    messages: list[ModelMessage]
    run_id: str
    conversation_id: str

    async def around(self, body: Callable[[], Awaitable[T]], shown: Callable[[T], Any]) -> T:
        """Run `body` in the span and return its result. The span shows `shown(result)`.

        An exception is recorded in the span and raised again.
        """
        found: list[T] = []
        ctx: RunContext[None] = RunContext(
            deps=None,
            model=self.model,
            usage=self.usage,
            agent=_agent_named(self.name),
            messages=self.messages,
            run_id=self.run_id,
            conversation_id=self.conversation_id,
        )

        async def handler() -> AgentRunResult[Any]:
            try:
                found.append(await body())
                return SpanResult(shown(found[0]), said=self.messages)
            finally:
                get_current_span().set_attributes(self.settings.aggregated_usage_attributes(self.own))

        instrumentation = await Instrumentation(settings=self.settings).for_run(ctx)
        await instrumentation.wrap_run(ctx, handler=handler)
        return found[0]


@cache
def _agent_named(name: str) -> Agent[None, str]:
    return Agent(name=name or None)


TOOL: Final = "final_result"
"""The name of the output tool, as in pydantic-ai."""


def schema_request(
    contract: Contract[Any], mode: Literal["native", "prompted", "tool"]
) -> tuple[ModelRequestParameters, str | None] | None:
    """Return the request parameters that ask for a value of a contract, the same as in pydantic-ai's own output modes.

    Also returns the key of the envelope around a value that is not an object, because providers require an object.
    Returns None for a schema that no provider accepts.
    """
    schema = object_schema(contract.json_schema)
    like = structured(schema)
    if like is None:
        return None
    sent: JsonSchema = TypeAdapter(like).json_schema()
    described = sent.pop("description", None)
    if mode == "tool":
        described = described or "The final response which ends this conversation"
        tool = ToolDefinition(name=TOOL, parameters_json_schema=sent, description=described, kind="output")
        parameters = ModelRequestParameters(output_mode="tool", output_tools=[tool], allow_text_output=False)
    else:
        output = OutputObjectDefinition(sent, sent.get("title") or like.__name__, described)
        parameters = ModelRequestParameters(output_mode=mode, output_object=output)
    return parameters, None if schema == contract.json_schema else ENVELOPE


async def request_with_fallback(
    model: Model, parameters: ModelRequestParameters, run: Run, make: Callable[[ModelRequestParameters], Awaitable[T]]
) -> T:
    """Return the result of a request, which is repeated with the schema in the prompt if the provider rejects it."""
    form = parameters
    if run.refusals and (why := run.refusals.get(_refusal_key(model, form))):
        form = _move_schema_to_prompt(form, run, f"{why} earlier in this run") or form
    while True:
        try:
            return await make(form)
        except PROVIDER_FAULTS as error:
            if not run.exchange.is_read or not rejects_schema(error):
                raise
            why = _refusal_message(error, model)
            words = _move_schema_to_prompt(form, run, why)
            if words is None:
                raise
            run.refusals[_refusal_key(model, form)] = why  # for the rest of the run
            run.count_own()
            form = words


def _move_schema_to_prompt(parameters: ModelRequestParameters, run: Run, why: str) -> ModelRequestParameters | None:
    """Return the same request with the schema in the prompt, which is reported with the reason, or
    None if it is there.
    """
    words = with_schema_in_prompt(parameters)
    if words is not None:
        run.exchange.schema_refused = reason = f"{why}; prompted with the schema instead"
        emit(StageSkipped(stage=parameters.output_mode, why=reason, model=run.exchange.model))
    return words


def _refusal_message(error: Exception, model: Model) -> str:
    return f"the provider of {model.model_name} rejected the schema ({detail_of(error)})"


def remember_refusal(error: Exception, model: Model, parameters: ModelRequestParameters, run: Run) -> bool:
    """Remember for the rest of the run that a model rejects the schema of a ladder's call; return False for any other
    error.
    """
    if not rejects_schema(error):
        return False
    why = run.refusals[_refusal_key(model, parameters)] = _refusal_message(error, model)
    run.exchange.schema_refused = f"{why}; prompted with the schema instead"
    return True


def is_refused(model: Model, parameters: ModelRequestParameters, run: Run) -> bool:
    """Return whether a model has rejected the schema of a request in this run."""
    return bool(run.refusals) and _refusal_key(model, parameters) in run.refusals


def with_schema_in_prompt(parameters: ModelRequestParameters) -> ModelRequestParameters | None:
    """Return the request with its schema only in the prompt, or None if that is already so."""
    output = parameters.output_object
    if parameters.output_mode == "native" and output is not None:
        return replace(parameters, output_mode="prompted")
    if parameters.output_mode != "tool" or not parameters.output_tools:
        return None
    schemas = [tool.parameters_json_schema for tool in parameters.output_tools]
    tool = parameters.output_tools[0]
    output = OutputObjectDefinition(
        schemas[0] if len(schemas) == 1 else {"anyOf": schemas},
        tool.name,
        tool.description if len(schemas) == 1 else None,
    )
    return replace(parameters, output_mode="prompted", output_object=output, output_tools=[], allow_text_output=True)


def _refusal_key(model: Model, parameters: ModelRequestParameters) -> str:
    output = parameters.output_object
    schemas = [tool.parameters_json_schema for tool in parameters.output_tools]
    return f"{model.model_name} {to_json([None if output is None else output.json_schema, schemas]).decode()}"


_PART_OF_TEXT: Final = ("tagged", "text", "block")
_MOST_CHARS_PER_TOKEN: Final = 8
"""The maximum number of characters per token that any tokenizer reaches over an entire prompt."""
_LEAST_TOKENS: Final = 512
"""A smaller count is not the size of a context window, but the part of the prompt that was not cached."""


def reject_misfit(contract: Contract[Any], ladder: Ladder, request: ModelRequestContext) -> None:
    """Raise a `UsageError` for a configuration that cannot work, before anything is spent on it."""
    parameters = request.model_request_parameters
    mode = parameters.output_mode
    if contract.mode in _PART_OF_TEXT and (mode == "native" or (mode == "tool" and not parameters.allow_text_output)):
        message = (
            f"a {contract.mode} output is part of a text, but the agent asks for its output in {mode} mode; "
            "set output_type=contract.as_output() on the agent, or output_type=str"
        )
        raise UsageError(message)
    if not isinstance(contract, TaggedContract):
        return
    if not contract.opens.search(text_of(request.messages)):
        message = (
            f"the prompt does not name the opening tag {contract.opening}, so the model does not know about it; "
            f'say so in the prompt or the instructions: "Write your final answer between {contract.opening} and '
            f'</{contract.tag}>."'
        )
        raise UsageError(message)
    if not contract.max_retries:
        return
    wanted = f"max_retries={contract.max_retries} asks again in the same conversation"
    if profile_of(request.model).get("supports_conversation") is False:
        message = f"{wanted}, but the model {request.model.model_name} takes single prompts only; set max_retries=0"
        raise UsageError(message)
    if ladder.max_calls < 1 or not any(stage.stage == "retry" for stage in ladder.stages):
        message = f"{wanted}, but the ladder makes no such call; add Retry() to its stages, or set max_retries=0"
        raise UsageError(message)


def prompt_cut(exchange: Exchange) -> str:
    """Return the warning that the provider seems to have cut the prompt silently (as Ollama does), or an empty string.

    The provider then counted far fewer tokens than the prompt can have.
    """
    request, response = exchange.request, exchange.response
    if request is None or response is None:
        return ""
    counted = response.usage.input_tokens
    if counted < _LEAST_TOKENS:
        return ""
    parameters = request.model_request_parameters
    tools = [tool.parameters_json_schema for tool in (*parameters.function_tools, *parameters.output_tools)]
    size = len(text_of(request.messages)) + len(to_json(tools))
    if size <= counted * _MOST_CHARS_PER_TOKEN:
        return ""
    return (
        f"the provider counted {counted} input tokens for a prompt of {size} characters and has most likely cut it; "
        "raise the context length of the server (Ollama: num_ctx), or shorten the prompt"
    )


def better_mode(exchange: Exchange) -> str | None:
    """Return `native` if the model's profile supports it and another output mode is configured."""
    request = exchange.request
    if request is None:
        return None
    mode = request.model_request_parameters.output_mode
    able = profile_of(request.model).get("supports_json_schema_output")
    return "native" if able and mode in ("prompted", "tool") else None
