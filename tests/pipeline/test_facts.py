"""What holds for a step after all defaults: one answer for the runner, the linter and the plan."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from flujo_aros.agents.agent import AgentSpec
from flujo_aros.pipeline.facts import effective
from flujo_aros.pipeline.processing import Processing
from flujo_aros.pipeline.step import Step
from flujo_aros.recovery.defaults import ladder_for
from flujo_aros.recovery.stages.degrade import Degrade
from flujo_aros.settings import current_settings

SCHEMA: dict[str, Any] = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
AGENT = AgentSpec(model="test:model", output_schema=SCHEMA)


class Order(BaseModel):
    number: int


def contract_of(**more: Any) -> Any:
    contract = effective(Step("a", agent=AGENT, **more)).contract
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
    assert effective(step).contract is None


@pytest.mark.parametrize(
    ("structured_output", "mode"),
    [("auto", "auto"), ("openai_json", "native"), ("xgrammar", "native"), ("off", "prompted")],
)
def test_structured_output_decides_how_the_agent_is_asked(structured_output: Any, mode: str):
    step = Step("a", agent=AGENT, processing=Processing(structured_output=structured_output))
    assert effective(step).agent.output_mode == mode


def test_an_agent_that_says_how_it_is_asked_is_left_alone():
    agent = AgentSpec(model="m", output_mode="tool")
    step = Step("a", agent=agent, processing=Processing(structured_output="openai_json"))
    assert effective(step).agent is agent


def test_validate_makes_no_further_calls_and_accepting_text_allows_degrading():
    validate = effective(Step("a", agent=AGENT, processing=Processing(enforcement="validate"))).ladder
    assert validate is not None
    assert validate.stages == ()
    accepting = effective(Step("a", agent=AGENT, on_degraded="accept")).ladder
    assert accepting is not None
    assert isinstance(accepting.stages[-1], Degrade)


def test_without_a_word_the_ladder_is_the_one_that_suits_the_contract():
    facts = effective(Step("a", agent=AGENT))
    assert facts.contract is not None
    assert facts.ladder == ladder_for(facts.contract, current_settings())
