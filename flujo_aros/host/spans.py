"""OpenTelemetry on the direct path, where pydantic-ai's own spans describe a run without an agent graph.

`chat` spans come with each request (`direct.request_once`). The `invoke_agent` span around them is opened by the public
hooks of pydantic-ai's `Instrumentation` capability, so that names and attributes are the same as for any other agent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, TypeVar

from opentelemetry.trace import get_current_span
from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability, Instrumentation
from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.instrumented import InstrumentationSettings, InstrumentedModel
from pydantic_ai.run import AgentRunResult
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import RunContext
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai.usage import RunUsage

T = TypeVar("T")


def instrument_agents(tracer_provider: Any, meter_provider: Any, *, content: bool) -> None:
    """Give all agents of this process their `invoke_agent` and `chat` spans; texts in them only with `content`.

    The providers are those of OpenTelemetry.
    """
    settings = InstrumentationSettings(
        tracer_provider=tracer_provider, meter_provider=meter_provider, include_content=content
    )
    Agent.instrument_all(settings)


def instrumentation_of(ctx: RunContext[Any]) -> InstrumentationSettings | None:
    """The instrumentation of a pydantic-ai run, or None if there is none."""
    parts: list[AbstractCapability[Any]] = []
    if ctx.root_capability is not None:
        ctx.root_capability.apply(parts.append)
    return next((part.settings for part in parts if isinstance(part, Instrumentation)), None)


async def instrumentation_for(model: Model) -> InstrumentationSettings | None:
    """The instrumentation of a run with this model: its own, or that of the process (`Agent.instrument_all`)."""
    if isinstance(model, InstrumentedModel):
        return model.instrumentation_settings
    return await _instrumentation_of_process() if await _is_process_instrumented() else None


async def is_instrumented(agent: Agent[Any, Any]) -> bool:
    """Whether runs of an agent have spans: by its own capability or model, or for the whole process."""
    parts: list[AbstractCapability[Any]] = []
    agent.root_capability.apply(parts.append)
    if isinstance(agent.model, InstrumentedModel) or any(isinstance(part, Instrumentation) for part in parts):
        return True
    return await _is_process_instrumented() if agent.instrument is None else bool(agent.instrument)


class _IsInstrumentedError(Exception):
    """The probe was about to get a span."""


class _Name(str):
    """A model name that notices when a span is about to be named after it."""

    __slots__ = ()

    def __format__(self, spec: str) -> str:
        raise _IsInstrumentedError


class _Witness(Model):
    """A model with an empty reply, because pydantic-ai has no public way to ask whether the process is instrumented."""

    @property
    def model_name(self) -> str:
        return _NAME

    @property
    def system(self) -> str:
        return _NAME

    async def request(
        self,
        messages: list[ModelMessage],  # noqa: ARG002 (the host's signature)
        model_settings: ModelSettings | None,  # noqa: ARG002
        model_request_parameters: ModelRequestParameters,  # noqa: ARG002
    ) -> ModelResponse:
        return _NOTHING


_NAME: Final = _Name("witness")
_NOTHING: Final = ModelResponse(parts=[])
_WITNESS: Final = _Witness()


async def _is_process_instrumented() -> bool:
    """Whether pydantic-ai's direct interface would open a span. A false positive only costs time."""
    try:
        await model_request(_WITNESS, [])
    except _IsInstrumentedError:
        return True
    return False


class _FoundError(Exception):
    def __init__(self, settings: InstrumentationSettings | None) -> None:
        super().__init__()
        self.settings = settings


class _Finder(FunctionToolset[Any]):
    """Ends a run before it begins, capturing the instrumentation that it would have had."""

    async def for_run(self, ctx: RunContext[Any]) -> _Finder:
        raise _FoundError(instrumentation_of(ctx))


@cache
def _finder() -> Agent[None, str]:
    return Agent(_WITNESS, toolsets=[_Finder()])


async def _instrumentation_of_process() -> InstrumentationSettings | None:
    try:
        await _finder().run("", infer_name=False)
    except _FoundError as found:
        return found.settings
    return None


@dataclass
class SpanResult(AgentRunResult[Any]):
    """The parts of a finished run that `Instrumentation` reads."""

    said: list[ModelMessage] = field(default_factory=list[ModelMessage])

    def all_messages(self, *, output_tool_return_content: str | None = None) -> list[ModelMessage]:  # noqa: ARG002
        """The messages of the run, preceded by the earlier ones."""
        return self.said


@dataclass(frozen=True, slots=True)
class AgentSpan:
    """The `invoke_agent` span of a run on the direct path.

    `messages` are those before the run; the runner appends to the same list. `usage` is the run's usage, and `own` that
    of its own requests, without nested runs, which have their own spans.
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
            agent=_named(self.name),
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
def _named(name: str) -> Agent[None, str]:
    return Agent(name=name or None)
