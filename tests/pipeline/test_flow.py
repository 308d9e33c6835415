"""Pipelines and steps are checked when they are made, before anything runs."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from flujo_aros.agents.agent import AgentSpec
from flujo_aros.errors import ContractError, TemplateError, UsageError
from flujo_aros.pipeline.facts import effective_agent, effective_contract, effective_ladder
from flujo_aros.pipeline.flow import Pipeline
from flujo_aros.pipeline.step import Call, Processing, Step
from flujo_aros.recovery.stages.degrade import Degrade

SCHEMA: dict[str, Any] = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
AGENT = AgentSpec(model="test:model", output_schema=SCHEMA)


def call(name: str, **more: Any) -> Call:
    return Call(name, function=len, **more)


def test_steps_and_pipelines_chain_in_any_way():
    a, b, c = call("a"), call("b"), call("c")
    assert a >> b >> c == Pipeline([a, b, c]) == a >> (b >> c)
    assert (Pipeline([a], name="mine") >> b).name == "mine"


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([], "pipeline 'p' has no steps"),
        ([call("a"), call("a")], "step name 'a' is taken by step 1; each step needs its own"),
        (
            [call("a", input="{{ steps.b.output }}"), call("b")],
            "step 'b' comes later; only earlier steps have an output",
        ),
        ([call("a", input="{{ steps.a.output }}")], "step 'a' is this step itself; only earlier steps have an output"),
        ([call("abc"), call("b", input="{{ steps.abd.output }}")], "there is no step 'abd'; did you mean 'abc'?"),
        ([call("a"), call("b", input="{{ steps.a.otput }}")], "a step has only `output`: write steps.a.output"),
        ([len], "pipeline 'p' is made of steps, not of <built-in function len>"),
    ],
)
def test_a_wrong_pipeline_is_one_clear_sentence(steps: list[Any], message: str):
    with pytest.raises(UsageError) as caught:
        Pipeline(steps, name="p")
    assert str(caught.value).endswith(message)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: call(""), "not a name for a step: ''"),
        (lambda: call("a/b"), "not a name for a step: 'a/b'"),
        (lambda: call("a", input=3), "the input of step 'a' must be a template text, not 3"),
        (lambda: call("a", on_degraded="maybe"), "on_degraded of step 'a' must be one of accept, fail, not 'maybe'"),
        (lambda: Call("a", function="os.system"), "must be 'package.module:name', not 'os.system'"),
        (lambda: Call("a", function="os:path.join"), "must be 'package.module:name'"),
        (lambda: Call("a", function="os:_exit"), "must be 'package.module:name'"),
        (lambda: Call("a", function=3), "the function of step 'a' cannot be called: 3"),
        (lambda: Step("a", agent="test:model"), "must be an AgentSpec or an Agent, not 'test:model'"),
        (lambda: Step("a", agent=AGENT, contract=int, processing=Processing(schema=SCHEMA)), "give one of them"),
        (lambda: Processing(enforcement="of"), "enforcement must be one of off, validate, repair, not 'of'"),
    ],
)
def test_a_wrong_step_is_one_clear_sentence(make: Any, message: str):
    with pytest.raises(UsageError) as caught:
        make()
    assert message in str(caught.value)


def test_a_contract_that_cannot_be_compiled_shows_when_the_step_is_made():
    with pytest.raises(ContractError):
        Step("a", agent=AGENT, contract={"type": 3})


def test_a_template_that_cannot_be_compiled_names_its_step():
    with pytest.raises(TemplateError, match=r"^input of step 'a': there is no 'imput'"):
        call("a", input="{{ imput }}")


# What holds after all defaults


class Order(BaseModel):
    n: int


def contract_of(**more: Any) -> Any:
    contract = effective_contract(Step("a", agent=AGENT, **more))
    return None if contract is None else contract.json_schema


def test_an_agents_schema_is_enforced_when_the_step_says_nothing():
    assert contract_of() == SCHEMA


def test_the_steps_own_contract_goes_before_the_agents_schema():
    assert contract_of(contract=Order)["title"] == "Order"
    assert contract_of(processing=Processing(schema={"type": "integer"})) == {"type": "integer"}


@pytest.mark.parametrize("off", [Processing(enforcement="off"), Processing(structured_output="off")])
def test_a_step_can_opt_out_of_its_agents_schema(off: Processing):
    assert contract_of(processing=off) is None


def test_a_step_that_opts_out_of_grammars_keeps_a_schema_of_its_own():
    assert contract_of(processing=Processing(structured_output="off", schema=SCHEMA)) == SCHEMA


def test_a_schema_that_says_only_text_asks_for_nothing():
    step = Step("a", agent=AgentSpec(model="m", output_schema={"type": "string", "description": "a poem"}))
    assert effective_contract(step) is None


@pytest.mark.parametrize(
    ("structured_output", "mode"),
    [("auto", "auto"), ("openai_json", "native"), ("xgrammar", "native"), ("off", "prompted")],
)
def test_structured_output_decides_how_the_agent_is_asked(structured_output: Any, mode: str):
    step = Step("a", agent=AGENT, processing=Processing(structured_output=structured_output))
    assert effective_agent(step).output_mode == mode


def test_an_agent_that_says_how_it_is_asked_is_left_alone():
    agent = AgentSpec(model="m", output_mode="tool")
    assert effective_agent(Step("a", agent=agent, processing=Processing(structured_output="openai_json"))) is agent


def test_validate_makes_no_further_calls_and_accepting_text_allows_degrading():
    validate = effective_ladder(Step("a", agent=AGENT, processing=Processing(enforcement="validate")))
    assert validate is not None
    assert validate.stages == ()
    accepting = effective_ladder(Step("a", agent=AGENT, on_degraded="accept"))
    assert accepting is not None
    assert isinstance(accepting.stages[-1], Degrade)
    assert effective_ladder(Step("a", agent=AGENT)) is None
