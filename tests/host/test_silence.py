"""When an empty reply is an answer, and when it is not."""

import asyncio
from typing import Optional

import pytest
from pydantic_ai import Agent, NativeOutput, PromptedOutput, ToolOutput

from flujo_aros import Output
from flujo_aros.host import allows_nothing, run_agent
from flujo_aros.testing import ScriptedModel

from .matrix import Item


@pytest.mark.parametrize("like", [None, Item | None, Optional[Item], [Item, None], PromptedOutput([Item, type(None)])])  # noqa: UP045 (both spellings)
def test_an_optional_output_accepts_an_empty_reply(like):
    assert allows_nothing(like)


@pytest.mark.parametrize("like", [Item, str, list[Item], [Item, int], ToolOutput(Item), NativeOutput(Item), len])
def test_any_other_output_does_not(like):
    assert not allows_nothing(like)


@pytest.mark.parametrize(
    ("contract", "answer", "calls"),
    [
        (Output.json(Item), '{"name": "pen", "qty": 3}', 2),
        (Output.event(["said"]), "Aye.", 2),
        (Output.tagged("result", Item, max_retries=1), '<result>{"name": "pen", "qty": 3}</result>', 2),
        (Output.tagged("result", Item), "never asked", 1),
    ],
    ids=["json", "event", "tagged", "tagged, no retries"],
)
def test_where_the_host_gives_up_the_ladder_of_a_text_contract_asks(contract, answer, calls):
    model = ScriptedModel("", answer)
    agent = Agent(model, instructions="Answer in <result>.", retries=0)
    run = asyncio.run(run_agent(agent, "Go on.", contract))
    assert (run.outcome.kind, model.calls) == ("accepted" if calls > 1 else "rejected", calls)
