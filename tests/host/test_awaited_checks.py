"""An async check has the same effect as a sync one, with every contract and every way to run."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput

from flujo_aros import Accepted, AgentSpec, Aros, Output, Runner, Step, UsageError, read
from flujo_aros.contract import Contract, scores_of, winner_in, with_checks
from flujo_aros.host import run_agent
from flujo_aros.testing import ScriptedModel, ScriptedModels

from .matrix import on_own_loop

CAST = ["p1", "p2"]


class Item(BaseModel):
    name: str
    qty: int


def few(item: Any) -> str | None:
    qty = item["qty"] if isinstance(item, dict) else item.qty
    return None if qty < 5 else f"qty is {qty}, more than 5"


def known(block: Any) -> str | None:
    return None if block.fields.get("plan") in ("a", "") else "plan must be a"


def awaited(check: Callable[[Any], Any], calls: list[Any] | None = None) -> Callable[[Any], Awaitable[Any]]:
    async def judged(value: Any) -> Any:
        await asyncio.sleep(0)
        if calls is not None:
            calls.append(value)
        return check(value)

    return judged


def ruled(winner: str, **more: Any) -> str:
    return json.dumps({"kind": "judge.ruled", "text": "Well.", "winner": winner, **more})


def item(qty: int) -> str:
    return json.dumps({"name": "pen", "qty": qty})


EVENT: Contract[Any] = Output.event(["judge.ruled"], ["winner", "scores"])
PLAN: Contract[Any] = Output.block("plan")
TAGGED: Contract[Any] = Output.tagged("result", Item, max_retries=1)
JSON: Contract[Any] = Output.json(Item)
winner, scores = winner_in(CAST), scores_of(CAST)

Case = tuple[Contract[Any], list[Callable[[Any], Any]], list[str]]
CASES: dict[str, Case] = {
    "right at once": (EVENT, [winner], [ruled("p1")]),
    "right when asked again": (EVENT, [winner], [ruled("x"), ruled("p1")]),
    "no contest": (EVENT, [winner], [ruled("x"), ruled("y")]),
    "no contest, cleaned": (EVENT, [winner, scores], [ruled("x", scores={"p1": 99}), ruled("y", scores={"p2": 99})]),
    "no event when asked again": (EVENT, [winner], [ruled("x"), '{"kind": "judge.ruled"}']),
    "prose": (EVENT, [winner], ["Nobody, I think."]),
    "cleaned only": (EVENT, [scores], [ruled("p1", scores={"p1": 12, "ghost": 1})]),
    "json, repaired": (JSON, [few], [item(9), item(3)]),
    "json, repaired at the third try": (JSON, [few], [item(9), item(8), item(3)]),
    "json, never": (JSON, [few], [item(9)] * 7),
    "json, unreadable and then wrong": (JSON, [few], ["none", item(9), item(3), item(3), item(3)]),
    "tagged, asked again": (TAGGED, [few], [f"<result>{item(9)}</result>", f"<result>{item(3)}</result>"]),
    "tagged, never": (TAGGED, [few], [f"<result>{item(9)}</result>", f"<result>{item(8)}</result>"]),
    "block, asked again": (PLAN, [known], ['{"plan": "b"} On it.', '{"plan": "a"} On it.']),
    "block, made up against its check": (PLAN, [lambda block: block.fields["plan"] == "a"], ["On it.", "No."]),
    "block, made up": (PLAN, [known], ['{"plan": "b"} On it.', '{"plan": "c"} On it.']),
}


def reported(outcome: Any) -> Any:
    """Return everything that a user sees of an outcome, except for messages that depend on the way of cleaning."""
    if isinstance(outcome, Accepted):
        return outcome.value, outcome.trust, outcome.origin, sorted(repair.code for repair in outcome.repairs)
    because = outcome if outcome.kind == "rejected" else outcome.because
    return outcome.kind, because.reason, because.issues, outcome.text


@pytest.mark.parametrize("live", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("where", ["contract", "step"])
@pytest.mark.parametrize("name", CASES)
def test_the_result_is_the_same(name: str, where: str, live: bool) -> None:
    contract, checks, replies = CASES[name]
    found: list[Any] = []
    for made in (lambda check: check, awaited):
        own = [made(check) for check in checks]
        asked = with_checks(contract, own) if where == "contract" else contract
        model, heard = ScriptedModel(*replies), list[Any]()

        async def hear(event: Any, heard: list[Any] = heard) -> None:
            heard.append(event)

        agent = Agent(model, instructions="Write into <result>.")
        ran = run_agent(agent, "Go.", asked, checks=own if where == "step" else (), live=hear if live else None)
        run = asyncio.run(ran)
        found.append((reported(run.outcome), model.calls, run.calls))
    assert found[0] == found[1]


@pytest.mark.parametrize("asynchronous", [False, True], ids=["checks", "awaited checks"])
@pytest.mark.parametrize("name", CASES)
def test_an_agent_spec_and_an_agent_built_in_python_give_the_same_result(name: str, asynchronous: bool) -> None:
    contract, checks, replies = CASES[name]
    asked = with_checks(contract, [awaited(check) if asynchronous else check for check in checks])
    found: list[Any] = []
    for own in (True, False):
        model = ScriptedModel(*replies)
        spec = AgentSpec(model="local:scripted", system_prompt="Write into <result>.")
        agent = Agent(model, instructions="Write into <result>.") if own else spec
        run = asyncio.run(run_agent(agent, "Go.", asked, models=ScriptedModels({"local:scripted": model})))
        found.append((reported(run.outcome), model.calls, run.calls))
    assert found[0] == found[1]


def test_an_awaited_check_runs_once_for_each_reply() -> None:
    calls: list[Any] = []
    model = ScriptedModel(ruled("x"), ruled("p1"))
    contract = with_checks(EVENT, [awaited(winner, calls)])
    asyncio.run(run_agent(Agent(model), "Go.", contract))
    assert [event.winner for event in calls] == ["x", "p1"]


@pytest.mark.parametrize("way", ["sync", "async", "stream"])
def test_an_agent_awaits_the_checks_of_its_output(way: str) -> None:
    """With `as_output()` and `Aros`, in every way to run an agent."""
    model = ScriptedModel(ruled("x"), ruled("y", scores={"p1": 99}))
    output = with_checks(EVENT, [awaited(winner), awaited(scores)]).as_output()
    agent = Agent(model, output_type=output, capabilities=[Aros()])

    async def streamed() -> Any:
        async with agent.run_stream("Go.") as stream:
            return await stream.get_output()

    if way == "sync":
        event = on_own_loop(lambda given: given.run_sync("Go.").output, agent)
    else:
        event = asyncio.run(streamed()) if way == "stream" else asyncio.run(agent.run("Go.")).output
    assert (event.winner, event.is_no_contest, event.scores, model.calls) == (None, True, {"p1": 10}, 2)


def test_a_contract_of_aros_awaits_its_checks() -> None:
    contract = with_checks(JSON, [awaited(few)])
    model = ScriptedModel(item(9), item(3), profile={"supports_json_schema_output": True})
    agent = Agent(model, output_type=NativeOutput(Item), capabilities=[Aros(contract)])
    assert asyncio.run(agent.run("Go.")).output.qty == 3


def test_without_aros_the_host_asks_again() -> None:
    model = ScriptedModel(ruled("x"), ruled("p1"))
    agent = Agent(model, output_type=with_checks(EVENT, [awaited(winner)]).as_output(), retries=1)
    assert (asyncio.run(agent.run("Go.")).output.winner, model.calls) == ("p1", 2)


def test_a_step_of_a_pipeline_ends_in_no_contest() -> None:
    model = ScriptedModel(ruled("x"), ruled("y"))
    result = Runner(Step("judge", agent=Agent(model), contract=EVENT, checks=(awaited(winner),))).run_sync("Who?")
    assert (result.status.value, result.output.winner, result.output.is_no_contest) == ("completed", None, True)


def test_an_async_check_that_cannot_be_awaited_is_reported_before_any_call() -> None:
    contract = with_checks(JSON, [awaited(few)])
    with pytest.raises(UsageError, match="async"):
        read(item(3), contract)
    with pytest.raises(UsageError, match="pass the contract to Aros"):
        contract.as_output()


class Numbered(BaseModel):
    n: int


def one_more(found: Any) -> Any:
    return found.model_copy(update={"n": found.n + 1}) if isinstance(found, Numbered) else {"n": found["n"] + 1}


ONE: Contract[Any] = Output.json({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
AGENTS: dict[str, Callable[[Any], tuple[Any, Contract[Any] | None]]] = {
    "of a blueprint": lambda _: (AgentSpec(model="local:scripted"), ONE),
    "with an Aros that has a contract": lambda model: (Agent(model, capabilities=[Aros(Output.json(dict))]), ONE),
    "your own": lambda model: (Agent(model), ONE),
    "with an Aros": lambda model: (Agent(model, capabilities=[Aros()]), ONE),
    "with a type and a contract": lambda model: (Agent(model, output_type=Numbered), ONE),
    "with a type": lambda model: (Agent(model, output_type=Numbered), None),
    "with a contract as type": lambda model: (Agent(model, output_type=ONE.as_output()), None),
}


@pytest.mark.parametrize("live", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("asynchronous", [False, True], ids=["checks", "awaited checks"])
@pytest.mark.parametrize("name", AGENTS)
def test_values_cleaned_by_a_check_are_cleaned_once(name: str, asynchronous: bool, live: bool) -> None:
    model = ScriptedModel('{"n": 1}')
    agent, contract = AGENTS[name](model)

    async def hear(event: Any) -> None:
        pass

    checks, source = [awaited(one_more) if asynchronous else one_more], ScriptedModels({"local:scripted": model})
    run = asyncio.run(run_agent(agent, "Go.", contract, models=source, checks=checks, live=hear if live else None))
    assert isinstance(run.outcome, Accepted)
    found = run.outcome.value
    assert (found.n if isinstance(found, Numbered) else found["n"]) == 2
    assert [repair.code for repair in run.outcome.repairs] == ["cleaned"]
