"""Any reply to an event contract yields one event, and its trust tells how it was obtained."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.exceptions import ModelHTTPError

from flujo_aros import Accepted, Aros, ContractError, Output, Risk, Runner, Step, Trust, read
from flujo_aros.blueprint.load import parse_blueprint
from flujo_aros.contract import Event, winner_in
from flujo_aros.testing import ScriptedModel, ScriptedModels, cut
from flujo_aros.testing.scripted import ScriptedReply

SAID = Output.event(["said", "thought"])
BLUEPRINT = """
agents: {a: {model: "test:m"}}
steps: [{name: s, uses: agents.a, input: Go on., contract: {event: [said, thought]}}]
"""


def by_step(model: ScriptedModel) -> Event:
    return Runner(Step("s", Agent(model), contract=SAID)).run_sync("Go on.").output


def by_agent(model: ScriptedModel) -> Event:
    return asyncio.run(Agent(model, output_type=SAID.as_output(), capabilities=[Aros()]).run("Go on.")).output


def by_strict_agent(model: ScriptedModel) -> Event:
    agent = Agent(model, output_type=NativeOutput(SAID.model), capabilities=[Aros()])
    return asyncio.run(agent.run("Go on.")).output


def by_stream(model: ScriptedModel) -> Event:
    async def streamed() -> Event:
        agent = Agent(model, output_type=SAID.as_output(), capabilities=[Aros()])
        async with agent.run_stream("Go on.") as result:
            return await result.get_output()

    return asyncio.run(streamed())


def by_blueprint(model: ScriptedModel) -> Event:
    return Runner(parse_blueprint(BLUEPRINT), models=ScriptedModels({"test:m": model})).run_sync("x").output


WAYS = [by_step, by_agent, by_strict_agent, by_stream, by_blueprint]
NO_TEXT = '{"kind": "thought"}'
TWO = """[{"kind": "said", "text": "A crow lands."}, {"kind": "thought", "text": "Ugly."},
{"kind": "said", "text": "Caw!"}]"""
ECHO = f'{{"kind": "said", "text": "{SAID.example}"}}'
REPLIES: dict[str, tuple[ScriptedReply, ScriptedReply, str]] = {
    "a list of events": (TWO, TWO, "A crow lands.\nCaw!"),
    "a list of texts": ('["A crow", "lands."]', '["A crow", "lands."]', "A crow\nlands."),
    "a list of numbers": ("[1, 2]", "[1, 2]", "…"),
    "no text twice": (NO_TEXT, NO_TEXT, "…"),
    "no text, then a list": (NO_TEXT, '["A crow."]', "A crow."),
    "another key": ('{"kind": "said", "utterance": "A crow."}', NO_TEXT, "A crow."),
    "a list as text": ('{"kind": "said", "text": ["A", "B"]}', NO_TEXT, "A\nB"),
    "prose cut twice": (cut("The old bridge creaks under"), cut("the weight of"), "The old bridge creaks under"),
    "an event cut twice": (cut('{"kind": "said", "text": "The old'), cut(" bridge"), "The old"),
    "the example twice": (ECHO, ECHO, "…"),
    "the example in a list": (f"[{ECHO}]", f"[{ECHO}]", "…"),
    "two events": ('{"kind": "said", "text": "A."}\n{"kind": "thought", "text": "B."}',) * 2 + ("A.",),
    "an error of the provider instead of the second": (NO_TEXT, ModelHTTPError(500, "m"), "…"),
    "half a character": ('{"kind": "said", "text": "\\ud800 crow"}',) * 2 + ("…",),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("reply", REPLIES)
def test_every_reply_gives_an_event(way: Callable[[ScriptedModel], Event], reply: str) -> None:
    first, second, text = REPLIES[reply]
    model = ScriptedModel(first, second)
    event = way(model)
    assert (event.text, event.is_raw_fallback, model.calls) == (text, True, 2)
    assert event.kind in SAID.kinds


def test_a_synthesized_event_is_marked() -> None:
    run = Runner(Step("s", Agent(ScriptedModel(TWO, TWO)), contract=SAID)).run_sync("Go on.")
    outcome = run.steps[0].outcome
    assert isinstance(outcome, Accepted)
    assert (outcome.trust, outcome.origin) == (Trust.SYNTHESIZED, "synthesize")
    assert [(repair.code, repair.risk) for repair in outcome.repairs] == [("synthesized", Risk.LOSSY)]


def test_an_event_that_fails_a_check_is_not_made_up() -> None:
    short = Output.event(["said"], checks=[lambda event: len(event.text) < 9])
    for long in ("These are too many words.", '["These are", "too many words."]'):
        run = Runner(Step("s", Agent(ScriptedModel(long, long)), contract=short)).run_sync("Go on.")
        assert run.status.value == "failed"


async def is_short(event: Event) -> bool:
    await asyncio.sleep(0)
    return len(event.text) < 9


def test_an_event_that_fails_an_async_check_is_not_made_up() -> None:
    contract = Output.event(["said"], checks=[is_short])
    model = ScriptedModel(then='{"kind": "said", "text": "These are too many words."}')
    assert Runner(Step("s", Agent(model), contract=contract)).run_sync("Go on.").status.value == "failed"


def test_a_verdict_in_another_form_names_no_winner() -> None:
    contract = Output.event(["judge.ruled"], ["winner", "scores"], checks=[winner_in(["ada"])])
    model = ScriptedModel(then='["Ada wins."]')
    event = Runner(Step("s", Agent(model), contract=contract)).run_sync("Go on.").output
    assert (event.text, event.winner, event.is_no_contest) == ("Ada wins.", None, True)


@pytest.mark.parametrize("left_out", ["", ', "mood": null'])
def test_a_missing_field_is_never_clean(left_out: str) -> None:
    outcome = read(f'{{"kind": "said", "text": "Aye."{left_out}}}', Output.event(["said"], ["mood"]))
    assert isinstance(outcome, Accepted)
    assert outcome.trust is Trust.INFERRED
    assert [(repair.code, repair.path) for repair in outcome.repairs] == [("missing-field", "$.mood")]


@pytest.mark.parametrize("reply", ['{"kind": "said", "text": "Aye."}', "Aye."])
def test_a_required_field_is_requested_once_and_then_left_empty_and_marked(reply: str) -> None:
    contract = Output.event(["said"], ["mood", "place"], required=["mood"])
    model = ScriptedModel(reply, reply)
    run = Runner(Step("s", Agent(model), contract=contract)).run_sync("Go on.")
    outcome = run.steps[0].outcome
    assert isinstance(outcome, Accepted)
    assert (outcome.value.text, outcome.value.mood, outcome.trust, model.calls) == ("Aye.", "", Trust.SYNTHESIZED, 2)


def test_a_required_field_that_comes_with_the_second_reply_is_taken() -> None:
    contract = Output.event(["said"], ["mood"], required=True)
    model = ScriptedModel('{"kind": "said", "text": "Aye."}', '{"kind": "said", "text": "Aye.", "mood": "calm"}')
    run = Runner(Step("s", Agent(model), contract=contract)).run_sync("Go on.")
    assert (run.output.mood, run.trust, "mood" in model.asked[1].prompt) == ("calm", Trust.CLEAN, True)


def test_only_a_field_can_be_required() -> None:
    with pytest.raises(ContractError, match="required contains 'mod', which is not one of the fields: mood"):
        Output.event(["said"], ["mood"], required=["mod"])


def test_the_fields_of_a_verdict_are_never_required_by_all() -> None:
    assert Output.event(["ruled"], ["mood", "winner", "scores"], required=True).required == ("mood",)


def test_winner_and_scores_are_present_only_when_requested() -> None:
    plain, verdict = SAID, Output.event(["said"], ["winner", "scores"])
    assert not {"winner", "scores"} & set(plain.json_schema["properties"])
    assert {"winner", "scores"} <= set(verdict.json_schema["properties"])
    reply = '{"kind": "said", "text": "Aye."}'
    assert read(reply, plain).value.model_dump() == {"kind": "said", "text": "Aye."}
    reported = read(reply, verdict)
    assert reported.value.model_dump() == {"kind": "said", "text": "Aye.", "winner": None, "scores": {}}
    assert isinstance(reported, Accepted)
    assert reported.trust is Trust.CLEAN
