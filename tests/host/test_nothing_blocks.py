"""Nothing blocks the event loop: each case runs in a fork of a process with empty caches."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BEFORE = """
import asyncio
from blockbuster import blockbuster_ctx
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput, PromptedOutput
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.usage import RequestUsage
from flujo_aros import AgentSpec, Aros, Journal, Pipeline, Runner, Step, StepLimits
from flujo_aros.testing import ScriptedModel

class City(BaseModel):
    name: str

ROME = ModelResponse(
    [TextPart('{"name": "Rome"}')], usage=RequestUsage(input_tokens=9, output_tokens=5),
    model_name="gpt-4o-mini", provider_name="openai", finish_reason="stop",
)

class Source:
    async def model(self, name):
        return ScriptedModel("I will not.", ROME, then=ROME)

async def watched(made):
    with blockbuster_ctx(scanned_modules=["flujo_aros"]):
        return await made

async def streamed(agent):
    async with agent.run_stream("Where?") as result:
        return await result.get_output()
"""
CASES = {
    "an agent": """
agent = Agent(ScriptedModel(ROME), output_type=PromptedOutput(City), capabilities=[Aros()])
assert asyncio.run(watched(agent.run("Where?"))).output.name == "Rome"
""",
    "a reply that is repaired": """
agent = Agent(ScriptedModel("I will not.", then=ROME), output_type=NativeOutput(City), capabilities=[Aros()])
assert asyncio.run(watched(agent.run("Where?"))).output.name == "Rome"
""",
    "a stream": """
agent = Agent(ScriptedModel(ROME), output_type=PromptedOutput(City), capabilities=[Aros()])
assert asyncio.run(watched(streamed(agent))).name == "Rome"
""",
    "a pipeline": """
step = Step("ask", AgentSpec(model="local:any"), City, input="Say {{ input | upper }}")
result = asyncio.run(watched(Runner(Pipeline([step]), models=Source()).run("Where?")))
assert result.output.name == "Rome", result
""",
    "a pipeline without a contract": """
result = asyncio.run(watched(Runner(Step("ask", AgentSpec(model="local:any")), models=Source()).run("Where?")))
assert result.output == "I will not.", result
""",
    "a limit on money": """
from decimal import Decimal
step = Step("ask", AgentSpec(model="local:any"), City, usage_limits=StepLimits(max_cost=Decimal(1)))
result = asyncio.run(watched(Runner(Pipeline([step]), models=Source()).run("Where?")))
assert result.output.name == "Rome", result
""",
    "a journal": """
with Journal("runs.sqlite") as journal:
    runner = Runner(Step("ask", AgentSpec(model="local:any"), City), models=Source(), journal=journal)
    assert asyncio.run(watched(runner.run("Where?"))).output.name == "Rome"
    assert journal.runs()[0].usage.requests == 2
""",
}


BLOCKING = """
from flujo_aros.settings import read_settings
async def late():
    read_settings()
asyncio.run(watched(late()))
"""
# The types of C that blockbuster patches make some Pythons crash when they take themselves down.
FORKS = """
import os, sys, traceback
for number, code in enumerate({codes!r}):
    child = os.fork()
    if not child:
        os.dup2(os.open(f"{{number}}.txt", os.O_CREAT | os.O_WRONLY), sys.stderr.fileno())
        try:
            exec(code, globals())
        except BaseException:
            traceback.print_exc()
        sys.stderr.flush()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0, code
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return what each case prints as an error."""
    folder, cases = tmp_path_factory.mktemp("forks"), {**CASES, "late": BLOCKING}
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    code = BEFORE + FORKS.format(codes=[*cases.values()])
    subprocess.run([sys.executable, "-c", code], cwd=folder, env=env, check=True)
    return {name: (folder / f"{number}.txt").read_text() for number, name in enumerate(cases)}


@pytest.mark.parametrize("case", CASES)
def test_nothing_blocks_the_event_loop_in(case: str, printed: dict[str, str]) -> None:
    assert printed[case] == ""


def test_blocking_code_is_detected(printed: dict[str, str]) -> None:
    assert "BlockingError: Blocking call to os.getcwd" in printed["late"]
