"""Events with a strict model as output type: validated if possible, otherwise read like any event."""

import asyncio
import json
from typing import Any

import pytest
from pydantic_ai import Agent, NativeOutput, PromptedOutput, ToolOutput

from flujo_aros import Accepted, Aros, Issue, Output, Risk, Runner, Step, Trust
from flujo_aros.contract import PLACEHOLDER, Event, compile_contract, winner_in
from flujo_aros.host import fit_event_fields
from flujo_aros.testing import ScriptedModel

SAID = Output.event(["npc.said", "npc.thought"], ["mood", "wants"], fallback="npc.thought")
VERDICT = Output.event(["judge.ruled"], ["winner", "mood"], checks=[winner_in(["p1", "p2"])])
MODES = [NativeOutput, PromptedOutput, ToolOutput]
FULL = {"kind": "npc.said", "text": "Aye.", "mood": "calm", "wants": "rest"}
every_mode = pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.__name__)
with_and_without = pytest.mark.parametrize("named", [True, False], ids=["Aros(contract)", "Aros()"])


def asked(contract: Any, mode: Any, named: bool, *replies: str) -> tuple[dict[str, Any], str, int]:
    """Return the event, its trust, and the number of calls."""
    model = ScriptedModel(*replies)
    agent = Agent(model, output_type=mode(contract.model), capabilities=[Aros(contract if named else None)])
    result = asyncio.run(agent.run("Go on."))
    assert isinstance(result.output, contract.model)
    return result.output.model_dump(exclude_unset=True), (result.metadata or {})["aros"]["trust"], model.calls


@every_mode
@with_and_without
def test_a_strict_event_passes_as_it_is(mode: Any, named: bool) -> None:
    assert asked(SAID, mode, named, json.dumps(FULL)) == (FULL, "clean", 1)


@every_mode
@with_and_without
def test_prose_is_wrapped_and_has_an_empty_text_in_every_field(mode: Any, named: bool) -> None:
    event, trust, calls = asked(SAID, mode, named, "Aye, says he.")
    wrapped = {"kind": "npc.thought", "text": "Aye, says he.", "mood": "", "wants": "", "_raw_fallback": True}
    assert (event, trust, calls) == (wrapped, "synthesized", 1)


@every_mode
@with_and_without
def test_a_kind_outside_of_the_grant_is_the_fallback(mode: Any, named: bool) -> None:
    event, trust, calls = asked(SAID, mode, named, json.dumps({**FULL, "kind": "boss.died"}))
    assert (event["kind"], trust, calls) == ("npc.thought", "inferred", 1)


@every_mode
@with_and_without
@pytest.mark.parametrize(("given", "kept"), [(5, "5"), (True, "true"), (1.5, "1.5")])
def test_a_number_where_a_string_is_wanted_is_converted_and_reported(
    mode: Any, named: bool, given: Any, kept: str
) -> None:
    event, trust, calls = asked(SAID, mode, named, json.dumps({**FULL, "mood": given}))
    assert (event["mood"], trust, calls) == (kept, "inferred", 1)


@every_mode
@with_and_without
@pytest.mark.parametrize("more", [{}, {"mood": None}, {"mood": ["a"]}], ids=["left out", "null", "a list"])
def test_a_missing_field_is_requested_once_and_then_left_empty(mode: Any, named: bool, more: dict[str, Any]) -> None:
    wrong = json.dumps({"kind": "npc.said", "text": "Aye.", "wants": "rest", **more})
    event, trust, calls = asked(SAID, mode, named, wrong, json.dumps(FULL))
    assert (event, trust, calls) == (FULL, "clean", 2)
    event, trust, calls = asked(SAID, mode, named, wrong, wrong)
    text = '["a"]' if more.get("mood") else ""
    assert (event, trust, calls) == ({**FULL, "mood": text}, "lossy", 2)


@every_mode
@with_and_without
def test_its_checks_apply_wherever_the_contract_is_named(mode: Any, named: bool) -> None:
    wrong = json.dumps({"kind": "judge.ruled", "text": "Well.", "winner": "nobody", "mood": "calm"})
    event, trust, calls = asked(VERDICT, mode, named, wrong, wrong)
    assert (event["winner"], event["no_contest"], trust, calls) == (None, True, "synthesized", 2)


@every_mode
def test_a_verdict_without_a_field_of_garnish_keeps_its_winner(mode: Any) -> None:
    wrong = json.dumps({"kind": "judge.ruled", "text": "Well.", "winner": "p1"})
    event, trust, calls = asked(VERDICT, mode, True, wrong, wrong)
    assert (event["winner"], event["mood"], event.get("no_contest"), trust, calls) == ("p1", "", None, "lossy", 2)


def test_a_text_is_never_made_up() -> None:
    event, trust, calls = asked(SAID, NativeOutput, True, '{"kind": "npc.said"}', '{"kind": "npc.said"}')
    assert (event["text"], trust, calls) == (PLACEHOLDER, "synthesized", 2)


def fit(event: object, path: str, contract: object = SAID) -> Accepted[Event] | None:
    """Return the event, with a string inserted where pydantic-ai requires one, on the last attempt."""
    accepted = Accepted(event, Trust.CLEAN, "first", (), json.dumps(FULL))
    return fit_event_fields(accepted, [Issue(path, "string_type", "a text is wanted")], contract, last=True)


@pytest.mark.parametrize("path", ["$.winner", "$.scores", "$.mood", "$.text", "$"])
def test_only_a_text_field_is_filled_with_text(path: str) -> None:
    ruled = Output.event(["judge.ruled"], ["winner", "scores", "mood"])
    event = Event.model_validate({"kind": "judge.ruled", "text": "Well."})
    assert (fit(event, path, ruled) is not None) == (path == "$.mood")


@pytest.mark.parametrize(
    ("more", "repair"),
    [
        ({"mood": 5}, ("number-to-string", Risk.INFERRED, "5", "5")),
        ({"mood": True}, ("literal-to-string", Risk.INFERRED, "true", "true")),
        ({"mood": ["a"]}, ("cleaned", Risk.LOSSY, '["a"]', '["a"]')),
        ({}, ("cleaned", Risk.LOSSY, "", "")),
    ],
    ids=["a number", "a boolean", "a list", "left out"],
)
def test_a_repair_shows_the_field_before_and_after(more: dict[str, Any], repair: tuple[Any, ...]) -> None:
    event = Event.model_validate({"kind": "npc.said", "text": "Aye.", "wants": "rest", **more})
    found = fit(event, "$.mood")
    assert found is not None
    assert [(each.code, each.risk, each.before, each.after) for each in found.repairs] == [repair]


def test_only_an_event_under_a_contract_of_events_is_fitted() -> None:
    event = Event.model_validate({**FULL, "mood": 5})
    assert fit(event, "$.mood") is not None
    assert fit({**FULL, "mood": 5}, "$.mood") is None
    assert fit(event, "$.mood", compile_contract({"type": "object"})) is None


def test_a_subclass_of_the_event_model_has_its_own_rules() -> None:
    class Loud(SAID.model):  # type: ignore[name-defined,misc]  # a model that is made at run time
        volume: int

    model = ScriptedModel(json.dumps({**FULL, "volume": "11"}))
    result = asyncio.run(Agent(model, output_type=NativeOutput(Loud), capabilities=[Aros()]).run("Go on."))
    assert result.output.volume == 11


def test_a_step_gives_the_event() -> None:
    agent = Agent(ScriptedModel("Aye, says he."), output_type=NativeOutput(SAID.model))
    result = Runner(Step("say", agent=agent, contract=SAID)).run_sync("Go on.")
    assert (result.output.text, result.output.is_raw_fallback) == ("Aye, says he.", True)
