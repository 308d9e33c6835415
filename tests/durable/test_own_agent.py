"""A user's agent with tools, killed between two tool calls: nothing that was recorded is done again."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("dbos", reason="dbos is not installed: pip install 'flujo_aros[durable]'")

pytestmark = pytest.mark.slow

PROGRAM = """
import os, sys
from pathlib import Path
from pydantic import BaseModel
from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from flujo_aros import Pipeline, Runner, Step, idempotency_key
from flujo_aros.durable import Durable

url, log, die = sys.argv[1:]

class Item(BaseModel):
    name: str
    qty: int

def note(what):
    with Path(log).open("a") as file:
        file.write(what + "\\n")
    if what == die:
        os.kill(os.getpid(), 9)

def answer(messages, info):
    turn = sum(isinstance(message, ModelResponse) for message in messages) + 1
    if info.function_tools == []:
        note("repair")
        return ModelResponse(parts=[TextPart('{"name": "pen", "qty": 3}')])
    note(f"ask {turn}")
    if turn < 3:
        return ModelResponse(parts=[ToolCallPart("look", {"shelf": turn}, tool_call_id=f"call-{turn}")])
    return ModelResponse(parts=[TextPart("{'name': 'pen', 'qty': 'three of them'}")])

agent = Agent(FunctionModel(answer), name="shop")

@agent.tool
def look(ctx: RunContext[None], shelf: int) -> str:
    note(f"look {shelf}")
    with Path(log + ".keys").open("a") as file:
        file.write(f"look {shelf} {idempotency_key(ctx.tool_call_id)}\\n")
    return f"shelf {shelf} has pens"

with Durable(url) as durable:
    step = Step("shop", agent=agent, contract=Item)
    result = Runner(Pipeline([step]), engine=durable).run_sync("What is there?")
    print(result.status.value, result.output, result.usage.requests)
"""


def live(folder: Path, die: str) -> subprocess.CompletedProcess[str]:
    file = folder / "shop.py"
    file.write_text(PROGRAM)
    command = [sys.executable, str(file), f"sqlite:///{folder / 'runs.sqlite'}", str(folder / "log"), die]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


@pytest.mark.parametrize(
    ("die", "twice"),
    [("ask 2", "ask 2"), ("look 2", "look 2"), ("ask 3", "ask 3"), ("repair", "repair")],
)
def test_recorded_calls_of_your_own_agent_are_not_repeated(tmp_path: Path, die: str, twice: str) -> None:
    assert live(tmp_path, die).returncode == -9
    ended = live(tmp_path, "-")
    assert ended.stdout == "completed name='pen' qty=3 4\n", ended.stderr
    done = (tmp_path / "log").read_text().splitlines()
    assert sorted(done) == sorted(["ask 1", "look 1", "ask 2", "look 2", "ask 3", "repair", twice])
    keys = {line.split()[2] for line in (tmp_path / "log.keys").read_text().splitlines()}
    assert len(keys) == 2, "a tool that is called again has the key that it had"
