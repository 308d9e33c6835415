"""Has pydantic-ai tell OpenTelemetry what its agents do."""

from __future__ import annotations

from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import TracerProvider
from pydantic_ai import Agent
from pydantic_ai.models.instrumented import InstrumentationSettings


def instrument_agents(tracer_provider: TracerProvider, meter_provider: MeterProvider, *, content: bool) -> None:
    """Give all agents of this process their `invoke_agent` and `chat` spans; texts in them only with `content`."""
    settings = InstrumentationSettings(
        tracer_provider=tracer_provider, meter_provider=meter_provider, include_content=content
    )
    Agent.instrument_all(settings)
