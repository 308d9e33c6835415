"""Has pydantic-ai tell OpenTelemetry what its agents do."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent
from pydantic_ai.models.instrumented import InstrumentationSettings


def instrument_agents(tracer_provider: Any, meter_provider: Any, *, content: bool) -> None:
    """Give all agents of this process their `invoke_agent` and `chat` spans; texts in them only with `content`.

    The providers are those of OpenTelemetry.
    """
    settings = InstrumentationSettings(
        tracer_provider=tracer_provider, meter_provider=meter_provider, include_content=content
    )
    Agent.instrument_all(settings)
