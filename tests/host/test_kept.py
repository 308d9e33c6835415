"""Caches of models, agents and checked contracts, which live as long as their event loop."""

import asyncio
import gc
import weakref

from pydantic_ai.models.test import TestModel

from flujo_aros.contract import compile_contract
from flujo_aros.host import AgentSpec, checked_contract, direct_agent, named_model

SPEC = AgentSpec(model="test", system_prompt="Say a number.")
NUMBER = compile_contract({"type": "object", "properties": {"n": {"type": "integer"}}})


class Source:
    """Returns a different model each time, like a run with its own server."""

    async def model(self, _name: str) -> TestModel:
        return TestModel()


async def runnable(contract=NUMBER, spec=SPEC, models=None):
    return await direct_agent(spec, contract, models)


def test_a_model_is_made_once_in_an_event_loop():
    async def twice():
        return await named_model("test", None), await named_model("test", None)

    first, second = asyncio.run(twice())
    assert first is second


def test_another_event_loop_has_its_own_model():
    assert asyncio.run(named_model("test", None)) is not asyncio.run(named_model("test", None))


def test_the_agent_of_a_spec_is_made_once_for_each_contract():
    async def made():
        again = SPEC.model_copy()
        return await runnable(), await runnable(), await runnable(contract=None), await runnable(spec=again)

    first, second, plain, other = asyncio.run(made())
    assert first is second
    assert first is not plain
    assert first is not other


def test_an_agent_is_made_for_each_model():
    local = SPEC.model_copy(update={"model": "local:x"})

    async def twice():
        return await runnable(spec=local, models=Source()), await runnable(spec=local, models=Source())

    first, second = asyncio.run(twice())
    assert first.model is not second.model


def test_a_checked_contract_is_made_once_for_the_same_checks():
    def check(value):
        return None

    def other(value):
        return None

    async def made():
        return [checked_contract(NUMBER, checks) for checks in ((check,), [check], (other,), ())]

    first, second, third, plain = asyncio.run(made())
    assert first is second
    assert first is not third
    assert plain is NUMBER


def test_models_of_a_closed_event_loop_are_garbage_collected():
    async def kept():
        return weakref.ref(await named_model("test", None))

    first = asyncio.run(kept())
    asyncio.run(kept())
    gc.collect()
    assert first() is None


def test_the_oldest_entry_is_dropped_when_there_are_too_many():
    local = SPEC.model_copy(update={"model": "local:x"})

    async def first_and_last():
        known = [weakref.ref((await runnable(spec=local, models=Source())).model) for _ in range(200)]
        gc.collect()
        return known[0](), known[-1]()

    first, last = asyncio.run(first_and_last())
    assert first is None
    assert last is not None
