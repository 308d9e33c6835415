"""Third-party guards with `Aros`: what they refuse is refused, and what they raise is not swallowed."""

import asyncio
from dataclasses import dataclass, field

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ModelRetry

from flujo_aros import Aros
from flujo_aros.testing import ScriptedModel


class Item(BaseModel):
    name: str
    qty: int


class Blocked(Exception):
    pass


@dataclass
class Guard(AbstractCapability):
    """A guard that sees every output, and may block it or ask the model again."""

    judge: object
    seen: list = field(default_factory=list)

    async def wrap_output_process(self, ctx, *, output_context, output, handler):
        self.seen.append(output)
        self.judge(output)
        return await handler(output)


@dataclass
class InputGuard(AbstractCapability):
    """A guard that rejects requests containing a word."""

    word: str

    async def before_model_request(self, ctx, request_context):
        if any(self.word in str(message) for message in request_context.messages):
            raise Blocked(self.word)
        return request_context


def asked(model, *capabilities, retries=0, prompt="x"):
    agent = Agent(model, output_type=NativeOutput(Item), capabilities=list(capabilities), retries=retries)
    return asyncio.run(agent.run(prompt)).output


@pytest.mark.parametrize("first", [True, False])
def test_an_output_guard_sees_the_repaired_value_and_may_block_it(first):
    """In either order, the caller receives what a guard raises, without a further call."""

    def block(output):
        raise Blocked(output)

    guard = Guard(block)
    model = ScriptedModel("Sure: {'name': 'pen', qty: '3',}")
    with pytest.raises(Blocked):
        asked(model, *((guard, Aros()) if first else (Aros(), guard)))
    assert guard.seen == [Item(name="pen", qty=3)]
    assert model.calls == 1


def test_an_output_guard_may_send_a_value_back_to_the_model():
    """pydantic-ai makes the retry, and the second answer is read like the first."""

    def at_most_two(output):
        if output.qty > 2:
            raise ModelRetry("at most two")

    guard = Guard(at_most_two)
    model = ScriptedModel("{'name': 'pen', 'qty': 3}", "{'name': 'pen', 'qty': 2}")
    assert asked(model, Aros(), guard, retries=1) == Item(name="pen", qty=2)
    assert [item.qty for item in guard.seen] == [3, 2]


def test_an_input_guard_blocks_before_any_call():
    model = ScriptedModel()
    with pytest.raises(Blocked):
        asked(model, Aros(), InputGuard("secret"), prompt="my secret")
    assert model.calls == 0
