"""Scripted models and pipelines for the tests of telemetry."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.usage import RequestUsage

from flujo_aros import Pipeline, Step

GOOD = '{"name": "Alma", "crew": 3}'
MESSY = "Sure: {'name': 'Alma', 'crew': '3',}"
BAD = '{"name": "Alma", "crew": "it is 3"}'


class Boat(BaseModel):
    """The output type of the scripted agents."""

    name: str
    crew: int


class Script:
    """A model that answers each call with the next text; an exception is raised, a number is slept first."""

    def __init__(self, replies: Iterable[str | Exception | float]) -> None:
        self.replies = iter(list(replies))

    async def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        text = await self._next()
        tools = info.output_tools
        part = ToolCallPart(tools[0].name, text) if tools else TextPart(text)
        usage = RequestUsage(input_tokens=10 + len(messages), output_tokens=len(text))
        return ModelResponse(parts=[part], usage=usage, finish_reason="stop")

    async def stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        text = await self._next()
        for at in range(0, len(text), 5):
            chunk = text[at : at + 5]
            if info.output_tools:
                yield {0: DeltaToolCall(info.output_tools[0].name if not at else None, chunk, tool_call_id="a")}
            else:
                yield chunk

    async def _next(self) -> str:
        reply = next(self.replies)
        while isinstance(reply, (int, float)):
            await asyncio.sleep(reply)
            reply = next(self.replies)
        if isinstance(reply, Exception):
            raise reply
        return reply


IN_WORDS = ModelProfile(supports_json_schema_output=False)
"""Of a model that has no mode that enforces a schema, so that its replies are repaired first."""


def model(*replies: str | Exception | float, name: str = "scripted") -> FunctionModel:
    script = Script(replies)
    return FunctionModel(script, stream_function=script.stream, model_name=name, profile=IN_WORDS)


def boat_agent(*replies: str | Exception | float, name: str = "boats", **options: Any) -> Agent[None, Boat]:
    return Agent(model(*replies, name=f"model-{name}"), output_type=Boat, name=name, **options)


def boat_step(name: str, *replies: str | Exception | float, **options: Any) -> Step:
    return Step(name, agent=boat_agent(*replies, name=name), input="Which boat?", **options)


def pipeline(*steps: Any, name: str = "boats") -> Pipeline:
    return Pipeline(steps, name=name)
