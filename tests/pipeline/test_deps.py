"""`deps` reach the tools and instructions of every agent of a run, and nothing else."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ToolCallPart

from flujo_aros import Call, Human, Journal, Map, Runner, RunStatus, Step
from flujo_aros.testing import ScriptedModel


@dataclass
class Shop:
    prices: dict[str, int]
    till: str = "till-9731-of-the-shop"


SHOP = Shop({"pen": 3})


def clerk(deps_type: Any = Shop) -> Agent[Any, str]:
    agent = Agent(ScriptedModel(ToolCallPart("price", {"item": "pen"}), then="It is 3."), deps_type=deps_type)

    @agent.tool
    def price(ctx: RunContext[Shop], item: str) -> int:
        return ctx.deps.prices[item]

    @agent.instructions
    def greeting(ctx: RunContext[Shop]) -> str:
        return f"You sell {', '.join(ctx.deps.prices)}."

    return agent


async def streamed(runner: Runner, deps: Shop) -> Any:
    async for event in runner.stream("pen", {"items": [1]}, deps):
        last = event
    return last.result


@pytest.mark.parametrize("way", ["run", "run_sync", "stream"])
def test_the_tools_of_an_agent_see_the_deps_of_the_run(way: str) -> None:
    runner = Runner(Step("ask", clerk()) >> Map("all", Step("each", clerk()), iterable_input="context.items"))
    if way == "run_sync":
        run = runner.run_sync("pen", {"items": [1]}, SHOP)
    elif way == "run":
        run = asyncio.run(runner.run("pen", {"items": [1]}, deps=SHOP))
    else:
        run = asyncio.run(streamed(runner, SHOP))
    assert (run.status, run.output) == (RunStatus.COMPLETED, ["It is 3."])


def test_deps_are_passed_again_when_a_paused_run_resumes(tmp_path: Path) -> None:
    with Journal(tmp_path / "runs.sqlite") as journal:
        pipeline = Human("ask", message="Go on?") >> Step("sell", clerk()) >> Call("end", str.upper)
        paused = Runner(pipeline, journal=journal).run_sync("pen", deps=SHOP)
        assert paused.paused is not None
        assert SHOP.till not in paused.paused.model_dump_json()
        run = asyncio.run(Runner(pipeline, journal=journal).resume(paused.paused, "yes", deps=SHOP))
    assert run.output == "IT IS 3."
    assert SHOP.till.encode() not in (tmp_path / "runs.sqlite").read_bytes()


@pytest.mark.parametrize("forgotten", [True, False])
@pytest.mark.parametrize("deps_type", [Shop, object])
def test_a_tool_without_its_deps_says_what_to_pass(deps_type: type, forgotten: bool) -> None:
    run = Runner(Step("ask", clerk(deps_type))).run_sync("pen", deps=None if forgotten else object())
    assert run.steps[0].error is not None
    assert ("pass deps=" in run.steps[0].error) == forgotten
