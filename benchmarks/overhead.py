"""Measure the cost of a durable step, compared with a plain DBOS step and with a step that is not durable.

    python -m benchmarks.overhead

Runs steps with one model call each, with and without an engine, and the same number of plain DBOS steps that record a
reply of the same size. All take turns in one process on one SQLite file (WAL). Times are CPU time, the median of all
rounds. `ratio` is the time that durability adds to a step, divided by that of a plain DBOS step in the same round; its
quartiles show how noisy the machine was. `writes_per_step` counts the statements on the tables of this package that
each additional step adds to a run, and `writes_per_run` all others. Prints one JSON object.
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
    """Answer immediately, with a fixed reply."""
    return ModelResponse(parts=[TextPart(REPLY)])


class Models:
    """Provides the scripted model under every name."""

    async def model(self, name: str) -> FunctionModel:
        """Return the scripted model."""
        return FunctionModel(answer, model_name=name)


@DBOS.workflow(name="plain_dbos")
async def plain_dbos(steps: int) -> int:
    """A DBOS workflow whose steps each record a reply."""

    async def body() -> dict[str, Any]:
        return {"reply": {"parts": [{"content": REPLY, "part_kind": "text"}], "kind": "response"}}

    for _ in range(steps):
        await DBOS.run_step_async({"name": "call"}, body)
    return steps


def pipeline(steps: int) -> Pipeline:
    """Return a pipeline with this number of steps, each with one model call."""
    spec = AgentSpec(name="ask", model="local:ask")
    return Pipeline([Step(f"ask{n}", agent=spec, contract=dict[str, Any], input="x") for n in range(steps)], name="p")


async def cpu(work: Callable[[], Awaitable[object]]) -> float:
    """Return the CPU seconds that this process spends on `work`."""
    began = time.process_time()
    await work()
    return time.process_time() - began


async def measure(folder: Path, steps: int, rounds: int) -> dict[str, Any]:
    """Run the three variants in turns, and return the figures."""
    engine = Durable(f"sqlite:///{folder / 'runs.sqlite'}")
    durable = Runner(pipeline(steps), engine=engine, models=Models())
    plain = Runner(pipeline(steps), models=Models())
    await durable.run("x")
    await plain.run("x")
    longer = Runner(pipeline(2 * steps), engine=engine, models=Models())
    writes: list[int] = []

    def count(_conn: object, _cursor: object, statement: str, *_: object) -> None:
        writes[-1] += statement.lstrip().startswith(("INSERT", "UPDATE", "DELETE")) and "aros_durable_" in statement

    async def run_plain_dbos() -> None:
        with SetWorkflowID(f"plain-{time.time_ns()}"):
            handle = await DBOS.start_workflow_async(plain_dbos, steps)
        await handle.get_result()

    times: dict[str, list[float]] = {"dbos": [], "durable": [], "plain": []}
    for _ in range(rounds):
        times["dbos"].append(await cpu(run_plain_dbos))
        times["durable"].append(await cpu(lambda: durable.run("x")))
        times["plain"].append(await cpu(lambda: plain.run("x")))
    sa.event.listen(engine.store.engine, "before_cursor_execute", count)
    for runner in (durable, longer):
        writes.append(0)
        await runner.run("x")
    engine.close()
    each = {name: statistics.median(found) / steps * 1e3 for name, found in times.items()}
    ratios = [
        (with_engine - without) / dbos
        for with_engine, without, dbos in zip(times["durable"], times["plain"], times["dbos"], strict=True)
    ]
    low, ratio, high = statistics.quantiles(ratios, n=4)
    per_step = (writes[1] - writes[0]) / steps
    return {
        "steps": steps,
        "rounds": rounds,
        "bare_dbos_ms_per_step": round(each["dbos"], 2),
        "durable_ms_per_step": round(each["durable"], 2),
        "step_without_durability_ms": round(each["plain"], 2),
        "ratio": round(ratio, 2),
        "ratio_quartiles": [round(low, 2), round(high, 2)],
        "writes_per_step": round(per_step, 2),
        "writes_per_run": round(writes[0] - per_step * steps),
        "dbos_is_imported_without_durability": imported_without(),
    }


def imported_without() -> bool:
    """Return whether a run without an engine imports DBOS, checked in a separate process."""
    run = "from flujo_aros import Call, Runner; Runner(Call('c', function=len)).run_sync('x')"
    code = f"import sys; {run}; print('dbos' in sys.modules)"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return process.stdout.strip() == "True"


def main() -> int:
    """Print the figures."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--steps", type=int, default=40)
    options.add_argument("--rounds", type=int, default=41)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(asyncio.run(measure(Path(folder), given.steps, given.rounds))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
