"""What a durable step costs: beside a bare step of DBOS, and beside a step that is not durable.

    python -m benchmarks.overhead

Steps with one model call each run durably and without an engine, and the same number of steps of DBOS alone, which
record a reply of that size: in one process, in turns, on one SQLite file in the same mode (WAL). Times are those of
the CPU, the median of all rounds. `ratio` is what durability adds to a step, beside a step of DBOS alone in the same
round: the median and the quartiles around it, which say how noisy the machine was. `writes_per_step` are the
statements that change rows of ours, counted at the database: how many more a run has for each step more.
`writes_per_run` are the others. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from dbos import DBOS, SetWorkflowID
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from flujo_aros import AgentSpec, Pipeline, Runner, Step
from flujo_aros.durable import Durable

REPLY = '{"name": "pen", "qty": 3}'


def answer(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    """A model that answers at once."""
    return ModelResponse(parts=[TextPart(REPLY)])


class Models:
    """The one model there is."""

    async def model(self, name: str) -> FunctionModel:
        """It, by any name."""
        return FunctionModel(answer, model_name=name)


@DBOS.workflow(name="bare")
async def bare(steps: int) -> int:
    """A workflow of DBOS with so many steps, each of which records a reply."""

    async def body() -> dict[str, Any]:
        return {"reply": {"parts": [{"content": REPLY, "part_kind": "text"}], "kind": "response"}}

    for _ in range(steps):
        await DBOS.run_step_async({"name": "call"}, body)
    return steps


def pipeline(steps: int) -> Pipeline:
    """So many steps, each with one call of a model."""
    spec = AgentSpec(name="ask", model="local:ask")
    return Pipeline([Step(f"ask{n}", agent=spec, contract=dict[str, Any], input="x") for n in range(steps)], name="p")


async def cpu(work: Callable[[], Awaitable[object]]) -> float:
    """The CPU seconds of this process for a piece of work."""
    began = time.process_time()
    await work()
    return time.process_time() - began


async def measured(folder: Path, steps: int, rounds: int) -> dict[str, Any]:
    """Run all of them in turns, and compare."""
    engine = Durable(f"sqlite:///{folder / 'runs.sqlite'}")
    ours = Runner(pipeline(steps), engine=engine, models=Models())
    plain = Runner(pipeline(steps), models=Models())
    await ours.run("x")
    await plain.run("x")
    longer = Runner(pipeline(2 * steps), engine=engine, models=Models())
    writes: list[int] = []

    def count(_conn: object, _cursor: object, statement: str, *_: object) -> None:
        writes[-1] += statement.lstrip().startswith(("INSERT", "UPDATE", "DELETE")) and "aros_durable_" in statement

    async def alone() -> None:
        with SetWorkflowID(f"bare-{time.time_ns()}"):
            handle = await DBOS.start_workflow_async(bare, steps)
        await handle.get_result()

    times: dict[str, list[float]] = {"bare": [], "durable": [], "plain": []}
    for _ in range(rounds):
        times["bare"].append(await cpu(alone))
        times["durable"].append(await cpu(lambda: ours.run("x")))
        times["plain"].append(await cpu(lambda: plain.run("x")))
    sa.event.listen(engine.store.engine, "before_cursor_execute", count)
    for runner in (ours, longer):
        writes.append(0)
        await runner.run("x")
    engine.close()
    each = {name: statistics.median(found) / steps * 1e3 for name, found in times.items()}
    rounds_of = zip(times["durable"], times["plain"], times["bare"], strict=True)
    low, ratio, high = statistics.quantiles([(durable - plain) / bare for durable, plain, bare in rounds_of], n=4)
    for_each = (writes[1] - writes[0]) / steps
    return {
        "steps": steps,
        "rounds": rounds,
        "bare_dbos_ms_per_step": round(each["bare"], 2),
        "durable_ms_per_step": round(each["durable"], 2),
        "step_without_durability_ms": round(each["plain"], 2),
        "ratio": round(ratio, 2),
        "ratio_quartiles": [round(low, 2), round(high, 2)],
        "writes_per_step": round(for_each, 2),
        "writes_per_run": round(writes[0] - for_each * steps),
        "dbos_is_imported_without_durability": imported_without(),
    }


def imported_without() -> bool:
    """Whether a run without an engine imports DBOS, in a process of its own."""
    run = "from flujo_aros import Call, Runner; Runner(Call('c', function=len)).run_sync('x')"
    code = f"import sys; {run}; print('dbos' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return ended.stdout.strip() == "True"


def main() -> int:
    """Measure, and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--steps", type=int, default=40)
    options.add_argument("--rounds", type=int, default=41)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(asyncio.run(measured(Path(folder), given.steps, given.rounds))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
