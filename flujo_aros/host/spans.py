"""OpenTelemetry on the direct path, where pydantic-ai's own spans describe a run without an agent graph.

`chat` spans come with each request (`direct.request_once`). The `invoke_agent` span around them is opened by the public
hooks of pydantic-ai's `Instrumentation` capability, so that names and attributes are the same as for any other agent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

from opentelemetry.trace import get_current_span
from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability, Instrumentation
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import Model
from pydantic_ai.models.instrumented import InstrumentationSettings, InstrumentedModel
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import RunContext
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
    parts = () if ctx.root_capability is None else capabilities_in(ctx.root_capability)
    return next((part.settings for part in parts if isinstance(part, Instrumentation)), None)


def capabilities_in(root: AbstractCapability[Any]) -> list[AbstractCapability[Any]]:
    """The capabilities of an agent or of a run, by their root."""
    parts: list[AbstractCapability[Any]] = []
    root.apply(parts.append)
    return parts


def uninstrumented(model: Model) -> tuple[Model, InstrumentationSettings | None]:
    """The model itself, and the settings of the spans of a run with it: its own, or those of the process
    (`Agent.instrument_all`).
    """
    if isinstance(model, InstrumentedModel):
        return model.wrapped, model.instrumentation_settings
    # pydantic-ai has no public way to ask for it; its own direct interface reads the same attribute.
    found = Agent._instrument_default  # pyright: ignore[reportPrivateUsage]
    return model, InstrumentationSettings() if found is True else found or None


def is_instrumented(agent: Agent[Any, Any]) -> bool:
    """Whether runs of an agent have spans: by its own capability or model, or for the whole process."""
    parts = capabilities_in(agent.root_capability)
    if isinstance(agent.model, InstrumentedModel) or any(isinstance(part, Instrumentation) for part in parts):
        return True
    return bool(Agent._instrument_default if agent.instrument is None else agent.instrument)  # pyright: ignore[reportPrivateUsage]


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
