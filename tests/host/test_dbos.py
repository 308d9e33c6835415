"""`Aros` with `DBOSDurability`: a killed run pays for no call twice, and repairs are kept."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("dbos", reason="dbos is not installed: pip install 'flujo_aros[durable]'")

pytestmark = pytest.mark.slow

PROGRAM = """
import asyncio, json, os, sys, time, warnings
warnings.simplefilter("ignore")
from dbos import DBOS, SetWorkflowID
from pydantic import BaseModel
from pydantic_ai import Agent, PromptedOutput
from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel
from flujo_aros import Aros, Ladder, LlmRepair

mode, url, log = sys.argv[1:]

class Item(BaseModel):
    name: str
    qty: int

def answer(messages, info):
    repair = "OUTPUT" in str(messages)
    with open(log, "a") as file:
        file.write("repair\\n" if repair else "first\\n")
    text = '{"name": "pen", "qty": 3}' if repair else "{'name': 'pen', 'qty': 'three of them'}"
    return ModelResponse(parts=[TextPart(text)])

@DBOS.step()
async def settle():
    with open(log, "a") as file:
        file.write("step\\n")
    if mode == "start":
        await asyncio.sleep(30)

agent = Agent(
    FunctionModel(answer), name="extract", output_type=PromptedOutput(Item),
    capabilities=[Aros(ladder=Ladder(stages=(LlmRepair(attempts=1),))), DBOSDurability()],
)
DBOS(config={"name": "aros_test", "system_database_url": url, "log_level": "ERROR",
             "application_version": "v1", "executor_id": "local"})

@DBOS.workflow()
async def work(prompt: str) -> dict:
    result = await agent.run(prompt)
    await settle()
    return {"qty": result.output.qty, "requests": result.usage.requests, "told": result.metadata["aros"]["origin"]}

async def main():
    DBOS.launch()
    if mode == "recover":
        result = await (await DBOS.retrieve_workflow_async("w1")).get_result()
    else:
        with SetWorkflowID("w1"):
            result = await work("go")
    print(json.dumps(result))
    DBOS.destroy()

asyncio.run(main())
"""


def program(tmp_path, mode):
    script = tmp_path / "work.py"
    script.write_text(PROGRAM)
    url = f"sqlite:///{tmp_path / 'dbos.sqlite'}"
    return [sys.executable, str(script), mode, url, str(tmp_path / "calls.log")]


def calls(tmp_path):
    log = tmp_path / "calls.log"
    return log.read_text().split() if log.exists() else []


def test_a_durable_agent_is_repaired_in_its_workflow(tmp_path: Path):
    done = subprocess.run(program(tmp_path, "once"), capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {"qty": 3, "requests": 2, "told": "llm_repair"}
    assert calls(tmp_path) == ["first", "repair", "step"]


def test_a_killed_workflow_resumes_with_the_repaired_value(tmp_path: Path):
    with subprocess.Popen(program(tmp_path, "start"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as started:
        try:
            while "step" not in calls(tmp_path):
                assert started.poll() is None, "it ended before the kill"
                time.sleep(0.05)
        finally:
            started.send_signal(signal.SIGKILL)
    done = subprocess.run(program(tmp_path, "recover"), capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["qty"] == 3
    assert calls(tmp_path).count("first") == 1
    assert calls(tmp_path).count("repair") == 1
