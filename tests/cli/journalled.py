"""A journal with two runs: one that was repaired and completed, and one that degraded."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.usage import RequestUsage

from flujo_aros import Call, Journal, Pipeline, Runner, Step

MESSY = "Sure: {'name': 'Alma', 'crew': '3',}"
BAD = '{"name": "Alma", "crew": "it is 3"}'


class Boat(BaseModel):
    """The output type of the model."""

    name: str
    crew: int


def boat_step(*replies: str) -> Step:
    """Return a step whose model gives these replies in order."""
    texts = iter(replies)

    def answer(_messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        text, tools = next(texts), info.output_tools
        part = ToolCallPart(tools[0].name, text) if tools else TextPart(text)
        return ModelResponse(parts=[part], usage=RequestUsage(input_tokens=11, output_tokens=30))

    agent = Agent(
        FunctionModel(answer, model_name="model-ask", profile=ModelProfile(supports_json_schema_output=False)),
        output_type=Boat,
        name="ask",
    )
    return Step("ask", agent, input="Which boat?")


def fill(file: Path) -> None:
    """Execute both runs."""
    with Journal(file) as journal:
        steps = [boat_step(BAD, MESSY), Call("count", function=lambda previous_step: 1)]
        Runner(Pipeline(steps, name="boats"), observers=[journal]).run_sync("")
        Runner(Pipeline([boat_step(*[BAD] * 9)], name="boats"), observers=[journal]).run_sync("")
