"""Replay: recorded replies with a different contract or ladder, without any model call."""

from __future__ import annotations

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent

from flujo_aros import Accepted, Degraded, Journal, Ladder, Output, Processing, Rejected, Runner, Step, UsageError
from flujo_aros.contract import compile_contract, winner_in
from flujo_aros.recovery import Degrade, Retry
from flujo_aros.telemetry.records import Story
from flujo_aros.telemetry.replay import Replayed, recorded_contract, replay
from tests.host.matrix import Part, Replies

from .scripted import BAD, GOOD, MESSY, boat_agent, boat_step, model, pipeline


def recorded(journal: Journal, *replies: str) -> Story:
    Runner(pipeline(boat_step("ask", *replies)), observers=[journal]).run_sync("")
    return journal.story()


def one(story: Story, **options: object) -> Replayed:
    (found,) = replay(story, **options)  # type: ignore[arg-type]  # what the test says
    return found


@pytest.mark.parametrize(
    "replies", [[GOOD], [MESSY], [BAD, GOOD], [BAD] * 9, ["Alma, crew of 3", "no", GOOD], ['{"name": "Al'] * 9]
)
def test_the_same_contract_and_ladder_come_to_the_same(journal: Journal, replies: list[str]) -> None:
    found = one(recorded(journal, *replies))
    assert not found.changed
    assert found.missing is None
    assert found.used == found.recorded_replies


def test_another_contract_gives_another_value(journal: Journal) -> None:
    class Named(BaseModel):
        name: str

    found = one(recorded(journal, BAD, GOOD), contract=compile_contract(Named))
    assert isinstance(found.outcome, Accepted)
    assert found.outcome.value == Named(name="Alma")
    assert (found.used, found.recorded_replies, found.changed) == (1, 2, True)


def test_a_shorter_ladder_ends_earlier(journal: Journal) -> None:
    story = recorded(journal, BAD, GOOD)
    assert isinstance(one(story, ladder=Ladder(stages=())).outcome, Rejected)
    assert isinstance(one(story, ladder=Ladder(stages=(Degrade(),))).outcome, Degraded)


def test_a_reply_that_was_not_recorded_is_named_and_not_made_up(journal: Journal) -> None:
    found = one(recorded(journal, BAD, GOOD), ladder=Ladder(stages=(Retry(),)))
    assert found.verdict.outcome == "unknown"
    assert found.missing is not None
    assert found.missing.stage == "retry"


def test_masked_and_truncated_replies_are_reported_as_such(tmp_path: object) -> None:
    with Journal(f"{tmp_path}/runs.sqlite", max_text=60) as journal:
        reply = '{"name": "sk-abcdefghijklmnopqrst", "crew": 3}' + " " * 100
        found = one(recorded(journal, reply))
    assert found.masked
    assert found.partial
    assert isinstance(found.outcome, Accepted)
    assert found.outcome.value["name"].startswith("[secret-1]")


@pytest.mark.parametrize(
    "contract",
    [
        Output.json({"type": "object"}),
        Output.tagged("result", {"type": "integer"}),
        Output.tagged("result", {"type": "integer"}, strict=False),
        Output.text("answer"),
        Output.block("kind", ["text"]),
        Output.event(["say", "vote"]),
    ],
    ids=lambda contract: contract.mode,
)
def test_every_kind_of_contract_can_be_made_again(journal: Journal, contract: object) -> None:
    agent = type(boat_agent())(model("nothing to see", "nothing to see", "nothing"), name="any")
    asked = "Write <result> or <answer>."
    Runner(pipeline(Step("ask", agent, contract, input=asked)), observers=[journal]).run_sync("")
    story = journal.story()
    (spec,) = story.contracts.values()
    again = recorded_contract(spec)
    assert again.mode == contract.mode  # type: ignore[attr-defined]  # all of them are contracts
    assert [again.fingerprint] == list(story.contracts)


def test_a_contract_that_was_not_recorded_must_be_named() -> None:
    with pytest.raises(UsageError, match="--contract"):
        recorded_contract("")


BLOCK = '{"plan": "a", "next_step": "b"}'
CUT = "Dear Ann, I hope this mail finds you well and that "
EVENT = '{"kind": "said", "text": "Well."%s}'
TOTAL = {"type": "object", "required": ["total"], "properties": {"total": {"type": "integer"}}}
PLAN = Output.block("plan", ["next_step"])
TOLD: dict[str, tuple[object, dict[str, object], list[tuple[str, str]]]] = {
    "a text, resumed": (None, {}, [(CUT, "length"), ("well and that all is well.", "stop")]),
    "a text, with more room": (None, {"model_settings": {"max_tokens": 9}}, [(CUT, "length"), ("Well.", "stop")]),
    "a text that stays cut": (None, {}, [(CUT, "length"), ("and that", "length")]),
    "an endless text": (None, {}, [("and so on " * 900, "stop")]),
    "a block that was cut": (PLAN, {}, [(BLOCK + CUT, "length"), ("well and that all is well.", "stop")]),
    "a block, made up": (PLAN, {}, [("On it.", "stop"), ("no", "stop")]),
    "tags, asked again": (
        Output.tagged("r", TOTAL, max_retries=2),
        {},
        [("no", "stop"), ('<r>{"total": 1}</r>', "stop")],
    ),
    "a text in tags, asked again": (Output.text("r", max_retries=1), {}, [("no", "stop"), ("<r>x</r>", "stop")]),
    "an event with a field that is required": (
        Output.event(["said"], ["mood"], required=["mood"]),
        {},
        [(EVENT % "", "stop"), (EVENT % ', "mood": "calm"', "stop")],
    ),
    "a risk of its own": (TOTAL, {"processing": Processing(risk="lossless")}, [("It is {'total': '1'}", "stop")]),
    "a ladder of its own": (
        TOTAL,
        {"processing": Processing(stages=("retry",))},
        [("none", "stop"), ('{"total": 1}', "stop")],
    ),
}


@pytest.mark.parametrize("name", TOLD)
def test_a_replay_uses_the_recorded_configuration_of_a_step(journal: Journal, name: str) -> None:
    """The options of its contract, its ladder, and the budget that decides how the rest of a reply is requested."""
    contract, options, replies = TOLD[name]
    parts = [Part(text, finish=finish) for text, finish in replies]
    model = Replies([*parts, *[Part("nope")] * 9])
    step = Step("ask", Agent(model, instructions="Write <r>."), contract, input="Go.", **options)  # type: ignore[arg-type]
    Runner(step, observers=[journal]).run_sync("")
    found = one(journal.story())
    assert (found.verdict, found.missing, found.skipped) == (found.recorded, None, ())


def test_a_reply_that_a_check_has_rejected_with_its_own_issue_is_not_a_success(journal: Journal) -> None:
    contract = Output.event(["ruled"], ["winner"], checks=[winner_in(["ann"])])
    model = Replies([Part('{"kind": "ruled", "text": "Well.", "winner": "bob"}')] * 2)
    Runner(Step("ask", Agent(model), contract), observers=[journal]).run_sync("")
    found = one(journal.story())
    assert (found.skipped, found.failed_a_check, found.holds) == (("winner",), True, False)
