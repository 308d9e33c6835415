"""The default ladder of a contract, how settings change it, and ladders as plain data."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from flujo_aros import Degrade, Ladder, LlmRepair, Output, Reason, Settings
from flujo_aros.contract import compile_contract, with_checks
from flujo_aros.recovery import PLAIN_TEXT, Extract, Reply, Resume, Retry, Task, ladder_for

from .given import Item, climbed
from .test_budget import STAGES

JSON = Output.json(Item)


def names(contract, **settings):
    return [stage.stage for stage in ladder_for(contract, Settings.model_validate(settings)).stages]


def test_the_default_order_is_that_of_the_specification():
    assert ladder_for(JSON) == Ladder()
    assert names(JSON) == ["resume", "llm_repair", "retry", "extract", "degrade"]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"enabled": False}, []),
        ({"repair": {"enable_llm": False}}, ["resume", "retry", "extract", "degrade"]),
        ({"repair": {"max_attempts": 0}}, ["resume", "retry", "extract", "degrade"]),
        ({"fallback": {"enable_extractor": False}}, ["resume", "llm_repair", "retry", "degrade"]),
        ({"fallback": {"degrade_to_string": False}}, ["resume", "llm_repair", "retry", "extract"]),
        ({"schema_simplify": True}, ["resume", "llm_repair", "retry", "extract", "simplify", "degrade"]),
    ],
)
def test_settings_add_and_remove_stages(settings, expected):
    assert names(JSON, **settings) == expected


def test_plain_text_has_its_own_ladder_however_often_it_is_compiled():
    ladder = ladder_for(PLAIN_TEXT)
    assert [stage.stage for stage in ladder.stages] == ["resume", "degrade"]
    for number in range(2_000):  # more than are kept
        compile_contract({"type": "string", "title": str(number)})
    assert ladder_for(compile_contract({"type": "string"})) == ladder
    checked = ladder_for(with_checks(PLAIN_TEXT, [bool]))
    assert [stage.stage for stage in checked.stages] == ["resume", "retry", "degrade"]
    assert ladder_for(compile_contract(str)) == Ladder()


def test_settings_name_attempts_and_stages():
    ladder = ladder_for(JSON, Settings.model_validate({"repair": {"max_attempts": 5}, "fallback": {"max_stages": 1}}))
    assert ladder.max_stages == 1
    assert LlmRepair(attempts=5) in ladder.stages


def test_the_flat_schema_does_not_take_the_place_of_text_in_the_end():
    """There is room for all fallback stages that the settings enable, unless the limit is lower anyway."""
    ladder = ladder_for(JSON, Settings(schema_simplify=True))
    assert ladder.max_stages == sum(stage.fallback for stage in ladder.stages) == 4
    assert (
        ladder_for(JSON, Settings.model_validate({"schema_simplify": True, "fallback": {"max_stages": 0}})).max_stages
        == 1
    )


def test_other_contracts_are_strict():
    assert names(Output.tagged("r", Item)) == names(Output.text("r")) == []
    ladder = ladder_for(Output.tagged("r", Item, max_retries=7))
    assert (ladder.stages, ladder.max_calls) == ((Resume(), Retry(attempts=7)), 7)
    assert names(Output.block("plan")) == ["resume", "retry", "synthesize", "degrade"]
    assert ladder_for(Output.block("plan")).max_calls == 1
    assert names(Output.event(["said"])) == ["resume", "retry", "synthesize"]
    assert ladder_for(Output.event(["said"])).max_calls == 1


def test_an_event_that_fails_its_check_is_requested_exactly_once_more():
    contract = Output.event(["said"], checks=[lambda event: "no" if event.text == "x" else None])
    first = Reply('{"kind": "said", "text": "x"}')
    asks, outcome = climbed(ladder_for(contract), first, first, task=Task(contract))
    assert len(asks) == 1
    assert outcome.reason is Reason.INVALID


def test_a_tagged_contract_climbs_as_often_as_it_says():
    contract = Output.tagged("r", {"type": "object"}, max_retries=2)
    asks, outcome = climbed(ladder_for(contract), *[Reply("none")] * 3, task=Task(contract))
    assert len(asks) == 2
    assert outcome.reason is Reason.NO_JSON


@given(st.lists(st.sampled_from(STAGES), max_size=8), st.integers(0, 9), st.booleans())
def test_a_ladder_survives_a_round_trip_as_data(stages, number, adaptive):
    ladder = Ladder(stages=tuple(stages), max_calls=number, deadline=number, adaptive=adaptive)
    assert Ladder.model_validate(ladder.model_dump()) == ladder
    assert Ladder.model_validate_json(ladder.model_dump_json()) == ladder


def test_names_of_stages_elsewhere_are_understood():
    plain = {
        "stages": [
            "deterministic",
            "resume",
            {"stage": "llm", "attempts": 1},
            "stricter_reprompt",
            "extract_from_text",
            {"stage": "degrade_to_string"},
        ]
    }
    stages = (Resume(), LlmRepair(attempts=1), Retry(), Extract(), Degrade())
    assert Ladder.model_validate(plain) == Ladder(stages=stages)


@pytest.mark.parametrize(
    "stages", [["wish"], "retry", [{"stage": "escalate"}], [{"stage": "retry", "atempts": 1}], [3]]
)
def test_an_unknown_stage_is_an_error(stages):
    with pytest.raises(ValidationError):
        Ladder.model_validate({"stages": stages})
