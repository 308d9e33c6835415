"""A run without an engine has no cost of durability: nothing of it is imported or called."""

import json
import subprocess
import sys

PROGRAM = """
import json, sys
from collections import Counter
from flujo_aros import AgentSpec, Branch, Call, Loop, Map, Parallel, Pipeline, Runner, Step
from flujo_aros.testing import ScriptedModel

steps = [
    Step("ask", agent=AgentSpec(name="ask", model="any:model"), contract={"type": "object"}, input="x"),
    Parallel("fan", {"a": Call("up", function=str), "b": Call("size", function=len)}),
    Map("each", Call("double", function=lambda n: n * 2), iterable_input="context.numbers"),
    Loop("turns", Call("turn", function=lambda value: value), max_loops=2),
]
runner = Runner(Pipeline(steps, name="all"), models=ScriptedModel('{"n": 1}', '{"n": 1}'))
calls = Counter()

def count(frame, event, _):
    if event == "call":
        calls[frame.f_globals.get("__name__", "")] += 1

sys.setprofile(count)
result = runner.run_sync("x", {"numbers": [1, 2]})
sys.setprofile(None)
known = ("dbos", "temporalio", "flujo_aros.durable")
print(json.dumps({
    "status": result.status.value,
    "imported": sorted(name for name in sys.modules if name.startswith(known)),
    "called": sum(n for name, n in calls.items() if name.startswith("flujo_aros.durable")),
    "calls": sum(n for name, n in calls.items() if name.startswith("flujo_aros")),
}))
"""


def test_a_run_without_an_engine_imports_and_calls_nothing_of_durability() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=100, check=False)
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert found.pop("calls") > 100, "calls of flujo_aros are counted"
    assert found == {"status": "completed", "imported": [], "called": 0}
