"""The effective options of a step after all defaults, shared by runner, linter and plan."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent
from typing_extensions import TypedDict

from flujo_aros import (
    Accepted,
    AgentSpec,
    Call,
    Degraded,
    Processing,
    Reason,
    Rejected,
    Risk,
    Step,
    StepResult,
    StepStatus,
    Trust,
    Usage,
    UsageError,
    current_settings,
    read,
)
from flujo_aros.contract import TaggedContract, written_contract
from flujo_aros.pipeline.builtins import wrap_dict
from flujo_aros.pipeline.model import PipelineStep
from flujo_aros.pipeline.step import Coercion, effective, handed_on, mergeable, warnings_of
from flujo_aros.recovery import Degrade, ladder_for

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


def test_a_step_that_opts_out_of_grammars_keeps_its_own_schema():
    assert contract_of(processing=Processing(structured_output="off", schema=SCHEMA)) == SCHEMA


def test_a_schema_that_says_only_text_asks_for_nothing():
    step = Step("a", agent=AgentSpec(model="m", output_schema={"type": "string", "description": "a poem"}))
    assert effective(step).contract is None


@pytest.mark.parametrize(
    ("structured_output", "mode"),
    [("auto", "auto"), ("openai_json", "native"), ("xgrammar", "native"), ("off", "prompted")],
)
def test_structured_output_selects_the_output_mode_of_the_agent(structured_output: Any, mode: str):
    step = Step("a", agent=AGENT, processing=Processing(structured_output=structured_output))
    assert effective(step).agent.output_mode == mode


def test_an_agent_with_an_explicit_output_mode_is_not_changed():
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


# Where the schema comes from


@pytest.mark.parametrize(
    ("step", "source", "promoted"),
    [
        (Step("a", agent=AGENT), "agent", True),
        (Step("a", agent=AGENT, contract=Order), "contract", False),
        (Step("a", agent=AGENT, processing=Processing(schema=SCHEMA)), "processing", False),
        (Step("a", agent=AGENT, contract="tagged:result"), "agent", True),
        (Step("a", agent=AGENT, processing=Processing(structured_output="off")), None, False),
        (Step("a", agent=AgentSpec(model="m")), None, False),
        (Step("a", agent=Agent("test", output_type=Order)), "agent", True),
        (Step("a", agent=Agent("test")), None, False),
    ],
)
def test_it_says_where_the_schema_in_force_was_written(step: Step, source: str | None, promoted: bool):
    facts = effective(step)
    assert (facts.schema_source, facts.promoted) == (source, promoted)


def test_a_written_contract_places_the_payload_and_the_agent_schema_types_it():
    contract = effective(Step("a", agent=AGENT, contract="tagged:result")).contract
    assert isinstance(contract, TaggedContract)
    assert (contract.tag, contract.json_schema) == ("result", SCHEMA)


def test_a_written_contract_takes_the_schema_of_processing_before_the_agents():
    step = Step("a", agent=AGENT, contract="tagged:result", processing=Processing(schema={"type": "integer"}))
    contract = effective(step).contract
    assert contract is not None
    assert contract.fingerprint == written_contract("tagged:result").contract({"type": "integer"}).fingerprint


@pytest.mark.parametrize("written", ["text:note", {"block": "plan", "required": ["next"]}, {"event": ["a"]}])
def test_a_written_contract_without_a_schema_leaves_the_agents_alone(written: Any):
    found = effective(Step("a", agent=AGENT, contract=written_contract(written))).contract
    assert found is not None
    assert found.fingerprint == written_contract(written).contract().fingerprint


# How far a reply may be repaired


@pytest.mark.parametrize(
    ("processing", "risk"),
    [
        (Processing(), Risk.INFERRED),
        (Processing(coercion=Coercion(tolerant_level=0)), Risk.LOSSLESS),
        (Processing(coercion=Coercion(tolerant_level=1)), Risk.INFERRED),
        (Processing(coercion=Coercion(tolerant_level=2)), Risk.LOSSY),
        (Processing(aop="off"), Risk.LOSSLESS),
        (Processing(aop="full"), Risk.INFERRED),
        (Processing(aop="off", coercion=Coercion(tolerant_level=2)), Risk.LOSSY),
        (Processing(risk="lossless", coercion=Coercion(tolerant_level=2)), Risk.LOSSLESS),
    ],
)
def test_risk_tolerant_level_and_aop_set_the_ceiling_in_this_order(processing: Processing, risk: Risk):
    contract = effective(Step("a", agent=AGENT, processing=processing)).contract
    assert contract is not None
    assert contract.risk is risk


MIXED: dict[str, Any] = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "ok": {"type": "boolean"}, "s": {"type": "string"}},
}
BENT = '{"n": "3", "ok": "yes", "s": "x"}'


@pytest.mark.parametrize(
    ("processing", "reply", "value"),
    [
        (Processing(schema=MIXED), BENT, {"n": 3, "ok": True, "s": "x"}),
        (Processing(schema=MIXED, coercion=Coercion(allow={"integer": ["str->int"]})), BENT, None),
        (
            Processing(schema=MIXED, coercion=Coercion(allow={"integer": ["str->int"]})),
            '{"n": "3", s: "x"}',
            {"n": 3, "s": "x"},
        ),
        (
            Processing(schema=MIXED, coercion=Coercion(tolerant_level=0, allow={"integer": ["str->int"]})),
            '{"n": "3", "s": "x",}',
            {"n": 3, "s": "x"},
        ),
        (
            Processing(schema=MIXED, coercion=Coercion(tolerant_level=0, allow={"integer": ["str->int"]})),
            '{"n": "3", s: "x"}',
            None,
        ),
        (Processing(schema=MIXED, aop="minimal"), BENT, None),
        (Processing(schema=MIXED, aop="minimal"), '{n: 3, "s": "x"}', {"n": 3, "s": "x"}),
        (Processing(schema=MIXED, aop="off"), '```json\n{"n": 3}\n```', {"n": 3}),
        (Processing(schema=MIXED, aop="off"), "{n: 3}", None),
    ],
)
def test_only_the_conversions_and_repairs_that_are_wanted_are_made(processing: Processing, reply: str, value: Any):
    contract = effective(Step("a", agent=AGENT, processing=processing)).contract
    outcome = read(reply, contract)
    assert (outcome.value if isinstance(outcome, Accepted) else None) == value


def test_wanted_conversions_do_not_change_the_schema_that_the_model_gets():
    processing = Processing(schema=MIXED, coercion=Coercion(allow={}))
    contract = effective(Step("a", agent=AGENT, processing=processing)).contract
    assert contract is not None
    assert contract.json_schema == MIXED


def test_a_word_about_the_risk_in_the_schema_itself_stays():
    schema = {"type": "object", "properties": {"n": {"type": "integer", "x-aros": {"risk": "lossless"}}}}
    processing = Processing(schema=schema, coercion=Coercion(allow={"integer": ["str->int"]}))
    contract = effective(Step("a", agent=AGENT, processing=processing)).contract
    assert isinstance(read('{"n": "3"}', contract), Rejected)


# The ladder


def test_stages_are_named_or_described_and_limits_are_those_of_the_block():
    processing = Processing(
        stages=("deterministic", "stricter_reprompt", {"stage": "llm_repair", "attempts": 1}, "extractor", "degrade"),
        max_stages=2,
        max_calls=3,
        max_cost=Decimal("0.10"),
    )
    ladder = effective(Step("a", agent=AGENT, processing=processing)).ladder
    assert ladder is not None
    assert [stage.stage for stage in ladder.stages] == ["retry", "llm_repair", "extract", "degrade"]
    assert (ladder.max_stages, ladder.max_calls, ladder.max_cost) == (2, 3, Decimal("0.10"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Processing(stages=("rety",)), "unknown stage 'rety'; did you mean 'retry'?"),
        (lambda: Processing(stages=({"stage": "llm_repair", "attemps": 1},)), "attemps: unknown option"),
        (lambda: Processing(stages=({"attempts": 1},)), "a stage is a name, or a mapping with `stage: NAME`"),
        (lambda: Processing(stages=({"stage": "llm_repair", "attempts": 0},)), "greater than or equal to 1"),
        (lambda: Processing(max_calls=-1), "max_calls should be greater than or equal to 0"),
        (lambda: Processing(risk="some"), "risk must be one of lossless, inferred, lossy, not 'some'"),  # type: ignore[arg-type]  # on purpose
        (lambda: Processing(aop="max"), "aop must be one of off, minimal, full, not 'max'"),  # type: ignore[arg-type]  # on purpose
        (lambda: Coercion(tolerant_level=3), "coercion.tolerant_level must be one of 0, 1, 2, not 3"),  # type: ignore[arg-type]  # on purpose
        (lambda: Coercion(allow={"intger": []}), "coercion.allow has no type 'intger'; did you mean 'integer'?"),
        (lambda: Coercion(allow={"integer": ["str->float"]}), "coercion.allow.integer accepts only 'str->int'"),
        (lambda: Coercion(max_unescape_depth=-1), "must be a whole number of 0 or more"),
        (
            lambda: Processing(reasoning_precheck={"validator_agent": "agents.judge"}),
            "reasoning_precheck.validator_agent is not supported",
        ),
        (lambda: Processing(structured_output="off", enforce_grammar=True), "remove one of them"),
    ],
)
def test_impossible_options_are_one_clear_sentence(make: Any, message: str):
    with pytest.raises(UsageError) as caught:
        make()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("processing", "key"),
    [
        (Processing(coercion=Coercion(max_unescape_depth=1)), "coercion.max_unescape_depth"),
        (Processing(enforcement="off", risk="lossy"), "risk"),
        (Processing(enforcement="off", stages=("retry",)), "stages"),
        (Processing(enforcement="validate", stages=("retry",)), "stages"),
    ],
)
def test_keys_without_effect_are_warnings(processing: Processing, key: str):
    assert [warned for warned, _ in warnings_of(Step("a", agent=AGENT, processing=processing))] == [key]


def test_conversions_of_a_python_type_are_its_own_which_is_a_warning():
    step = Step("a", agent=AGENT, contract=Order, processing=Processing(coercion=Coercion(allow={})))
    assert [key for key, _ in warnings_of(step)] == ["coercion.allow"]


def test_a_grammar_that_is_to_be_enforced_is_the_providers_own_schema_mode():
    assert effective(Step("a", agent=AGENT, processing=Processing(enforce_grammar=True))).mode == "native"


# What the value is


class Shape(TypedDict):
    n: int


def gives_dict(value: object) -> dict[str, int]:
    return {"n": len(str(value))}


def gives_text(value: object) -> str:
    return str(value)


def wants_dict(value: Mapping[str, Any]) -> Any:
    return value


@pytest.mark.parametrize(
    ("step", "known"),
    [
        (Step("a", agent=AGENT), True),
        (Step("a", agent=AGENT, contract=Order), True),
        (Step("a", agent=AGENT, contract=Shape), True),
        (Step("a", agent=AGENT, contract=list[Order]), False),
        (Step("a", agent=AGENT, contract={}), None),
        (Step("a", agent=AGENT, contract="text:note"), False),
        (Step("a", agent=AGENT, contract="block:plan"), True),
        (Step("a", agent=AgentSpec(model="m")), False),
        (Step("a", agent=AgentSpec(model="m"), mergeable_output=True), True),
        (Step("a", agent=Agent("test", output_type=Order)), True),
        (Call("a", function=gives_dict), True),
        (Call("a", function=gives_text), False),
        (Call("a", function=lambda x: x), None),
        (Call("a", function="some.module:name"), None),
        (Call("a", function=wrap_dict), True),
    ],
)
def test_it_is_known_whether_the_value_is_a_mapping(step: PipelineStep, known: bool | None):
    assert mergeable(step) is known


def degraded(text: str) -> StepResult[Any]:
    outcome = Degraded(text, Rejected(Reason.NO_JSON, (), text))
    return StepResult("a", "step", StepStatus.DEGRADED, outcome, Usage(), 1, 0.0)


@pytest.mark.parametrize(
    ("following", "given"),
    [
        (Call("b", function=wants_dict), {"text": "prose"}),
        (Call("b", function=wants_dict, input="{{ input }}"), "prose"),
        (Call("b", function=gives_text), "prose"),
        (Call("b", function=gives_text, input="{{ previous_step.text }}"), {"text": "prose"}),
        (Step("b", agent=AGENT), "prose"),
        (Step("b", agent=AGENT, input="Sum up: {{ previous_step.text }}"), {"text": "prose"}),
        (None, "prose"),
    ],
)
def test_a_degraded_text_is_wrapped_only_where_the_next_step_needs_a_mapping(
    following: PipelineStep | None, given: Any
):
    assert handed_on(degraded("prose"), following) == given


def test_a_value_is_handed_on_as_it_is():
    accepted: Accepted[Any] = Accepted("text", Trust.CLEAN, "first", (), "text")
    result = StepResult("a", "step", StepStatus.SUCCESS, accepted, Usage(), 1, 0.0)
    assert handed_on(result, Call("b", function=wants_dict)) == "text"


@pytest.mark.parametrize("word", ["openai_json", "outlines", "xgrammar"])
def test_structured_output_without_a_schema_asks_for_any_json_value(word):
    step = Step("s", agent=AgentSpec(model="local:x"), processing=Processing(structured_output=word))
    assert step.facts.contract is not None
    assert step.facts.contract.json_schema == {}
    assert (step.facts.schema_source, step.facts.promoted) == ("processing", False)


@pytest.mark.parametrize("word", ["auto", "off"])
def test_no_schema_and_no_word_for_it_is_any_text(word):
    assert (
        Step("s", agent=AgentSpec(model="local:x"), processing=Processing(structured_output=word)).facts.contract
        is None
    )


def test_the_specification_s_word_for_the_usual_enforcement_means_that():
    assert Processing(enforcement="validate+repair") == Processing()
