"""Count the calls, functions and files involved in turning a reply into a value: `python benchmarks/walks.py`.

Each path is executed once before it is counted, to exclude imports and caches. Comprehensions and lambdas count as
calls; other packages and the standard library do not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import flujo_aros
from flujo_aros import AgentSpec, Aros, Runner, Step, read
from flujo_aros.blueprint.load import parse_blueprint

PACKAGE = f"{Path(flujo_aros.__file__).parent}/"

CLEAN = '{"title": "Screen cracked", "priority": "high", "tags": ["damage"]}'
DAMAGED = "Sure!\n```json\n{'title': 'Screen \"cracked\" on arrival', priority: \"high\", 'tags': ['damage',],}\n```"
BLUEPRINT = """
name: triage
agents:
  triage: {model: openai:gpt-4o-mini, system_prompt: Sort the ticket., output_schema: {type: object}}
steps:
  - {kind: step, name: triage, uses: agents.triage, input: "Ticket: {{ input }}"}
"""


class Ticket(BaseModel):
    """The model of the README example."""

    title: str
    priority: str
    tags: list[str] = []


class Scripted:
    """Provides the same model to every agent of a blueprint."""

    def __init__(self, model: FunctionModel) -> None:
        self.made = model

    async def model(self, name: str) -> FunctionModel:  # noqa: ARG002 (their signature)
        return self.made


@dataclass
class Walk:
    """The functions called on one path."""

    calls: int = 0
    functions: set[CodeType] = field(default_factory=set)
    files: set[str] = field(default_factory=set)
    depth: int = 0
    changes: int = 0
    last: str = ""

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(PACKAGE):
            return
        self.calls += 1
        self.functions.add(code)
        self.files.add(code.co_filename)
        self.changes += code.co_filename != self.last
        self.last = code.co_filename
        depth, above = 0, frame
        while above is not None:
            depth += above.f_code.co_filename.startswith(PACKAGE)
            above = above.f_back
        self.depth = max(self.depth, depth)


def walk(way: Callable[[], Any]) -> Walk:
    """Run a path twice, and count the calls of the second run."""
    way()
    passed = Walk()
    sys.setprofile(passed)
    try:
        way()
    finally:
        sys.setprofile(None)
    return passed


def replying(*replies: str) -> FunctionModel:
    """Return a model that repeats these replies."""
    made = 0

    async def reply(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        nonlocal made
        made += 1
        return ModelResponse(parts=[TextPart(replies[(made - 1) % len(replies)])])

    return FunctionModel(reply)


def agent(*replies: str) -> Callable[[], Any]:
    """Return a function that runs an agent with `Aros`."""
    from pydantic_ai import PromptedOutput

    host: Agent[None, Ticket] = Agent(replying(*replies), output_type=PromptedOutput(Ticket), capabilities=[Aros()])
    return lambda: host.run_sync("Sort the ticket.")


def step(*replies: str) -> Callable[[], Any]:
    """Return a function that runs a pipeline of one agent step with a contract and no tools."""
    spec = AgentSpec(model="local:scripted", system_prompt="Sort the ticket.", output_schema=Ticket.model_json_schema())
    runner = Runner(Step("triage", agent=spec), models=Scripted(replying(*replies)))
    return lambda: runner.run_sync("My screen is cracked")


WAYS: dict[str, Callable[[], Callable[[], Any]]] = {
    "read, clean JSON": lambda: lambda: read(CLEAN, Ticket),
    "read, the damaged reply of the README": lambda: lambda: read(DAMAGED, Ticket),
    "read, the same, and its repairs": lambda: lambda: list(read(DAMAGED, Ticket).repairs),
    "own agent with Aros, clean": lambda: agent(CLEAN),
    "own agent with Aros, damaged": lambda: agent(DAMAGED),
    "own agent with Aros, one repair call": lambda: agent("I cannot say.", CLEAN),
    "load_blueprint, one step": lambda: lambda: parse_blueprint(BLUEPRINT),
    "pipeline of one step, clean": lambda: step(CLEAN),
    "pipeline of one step, damaged": lambda: step(DAMAGED),
}


def main() -> None:
    """Print the table."""
    print("| way | calls | functions | files | depth | changes of file |\n|---|---|---|---|---|---|")
    for name, way in WAYS.items():
        passed = walk(way())
        counts = passed.calls, len(passed.functions), len(passed.files), passed.depth, passed.changes
        print(f"| {name} | {' | '.join(map(str, counts))} |")


if __name__ == "__main__":
    main()
