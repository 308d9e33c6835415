"""A value names the stage that it came from: `first` for the original reply, otherwise the name of the stage."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest

from flujo_aros import Accepted, Constrain, Degrade, Degraded, Ladder, LlmRepair, Outcome, Output, Reason, Rejected
from flujo_aros.recovery import (
    AnyStage,
    Escalate,
    Extract,
    Patch,
    Reply,
    Resume,
    Retry,
    Salvage,
    Simplify,
    Synthesize,
    Task,
    read_reply,
)

from .given import BAD, GOOD, Item, climbed

CUT = Reply(GOOD[:-4], truncated=True)
ITEMS = Output.json(list[Item])
BLOCK = Output.block("plan")

# (the stage, the contract, the first reply, those that come after)
GIVES: list[tuple[Any, Any, Reply, list[Reply]]] = [
    (Resume(), Output.json(Item), CUT, [Reply(GOOD[-20:])]),
    (Resume(how="larger", max_tokens=900), Output.json(Item), CUT, [Reply(GOOD)]),
    (LlmRepair(), Output.json(Item), Reply(BAD), [Reply(GOOD)]),
    (LlmRepair(), Output.json(Item), Reply(BAD), [Reply("no"), Reply(GOOD)]),
    (Patch(), Output.json(Item), Reply(BAD), [Reply('{"$.qty": 3}')]),
    (Retry(), Output.json(Item), Reply(BAD), [Reply(GOOD)]),
    (Retry(), Output.tagged("r", Item), Reply("none"), [Reply(f"<r>{GOOD}</r>")]),
    (Retry(), Output.text("r"), Reply("none"), [Reply("<r>so</r>")]),
    (Retry(), BLOCK, Reply("none"), [Reply('{"plan": "go"}')]),
    (Constrain(), Output.json(Item), Reply(BAD), [Reply(GOOD)]),
    (Escalate(model="test:big"), Output.json(Item), Reply(BAD), [Reply(GOOD)]),
    (Extract(), Output.json(Item), Reply("three of the pen"), [Reply(GOOD)]),
    (Extract(), Output.json(Item), Reply(""), [Reply("three of the pen"), Reply(GOOD)]),
    (Simplify(), Output.json(Item), Reply("three pens"), [Reply('{"name": "pen", "qty": "3"}')]),
    (Salvage(), ITEMS, Reply(f"[{GOOD}, {GOOD[:9]}", truncated=True), []),
    (Salvage(), ITEMS, Reply(f"[{GOOD}, {BAD}]"), []),
    (Synthesize(), BLOCK, Reply("only prose"), []),
]


@pytest.mark.parametrize(
    ("stage", "contract", "first", "replies"), GIVES, ids=lambda part: getattr(part, "stage", None)
)
def test_the_origin_is_the_stage_that_gave_the_value(stage: Any, contract: Any, first: Reply, replies: Any) -> None:
    outcome = climbed((stage,), first, *replies, task=Task(contract, native="can"))[1]
    assert isinstance(outcome, Accepted), outcome
    assert outcome.origin == stage.stage
    assert outcome.to_dict()["origin"] == stage.stage


def test_every_stage_that_gives_values_is_tried() -> None:
    names = {stage.model_fields["stage"].default for stage in get_args(AnyStage)}
    assert names - {stage.stage for stage, *_ in GIVES} == {"degrade"}


@pytest.mark.parametrize("text", [GOOD, f"Sure: {GOOD}", GOOD.replace("3", '"3"'), GOOD.replace('"', "'")])
def test_a_value_from_reading_alone_has_the_origin_first(text: str) -> None:
    """Other systems call this `deterministic`: no stage is needed, and none is run."""
    for ladder in (Ladder(), Ladder.model_validate({"stages": ["deterministic", "llm_repair"]})):
        outcome: Outcome[Item] = climbed(ladder, Reply(text), like=Item)[1]
        assert isinstance(outcome, Accepted)
        assert outcome.origin == "first"


def test_the_repair_of_a_resumed_reply_has_the_repair_stage_as_its_origin() -> None:
    first = Reply(BAD[:-8], truncated=True)
    outcome = climbed((Resume(), LlmRepair()), first, Reply(BAD[-24:]), Reply(GOOD), like=Item)[1]
    assert isinstance(outcome, Accepted)
    assert outcome.origin == "llm_repair"


def test_a_degraded_text_is_not_a_value_and_keeps_the_rejection() -> None:
    outcome = climbed((Retry(), Degrade()), Reply(BAD), Reply("no"), like=Item)[1]
    assert isinstance(outcome, Degraded)
    assert outcome.text == BAD
    assert [attempt.stage for attempt in outcome.because.attempts] == ["first", "retry", "degrade"]


def test_a_verdict_without_a_winner_is_of_synthesize() -> None:
    contract = Output.event(
        ["verdict"], ["winner"], checks=[lambda event: None if event.winner == "Ann" else "not in the cast"]
    )
    reported = Reply(json.dumps({"kind": "verdict", "text": "Bo wins.", "winner": "Bo"}))
    outcome = climbed((Retry(), Synthesize()), reported, reported, task=Task(contract))[1]
    assert isinstance(outcome, Accepted)
    assert (outcome.origin, outcome.trust.value) == ("synthesize", "synthesized")


def test_values_with_an_end_survive_an_error_and_values_cut_by_a_limit_do_not() -> None:
    contract = Output.json(Item)
    broken = read_reply(Reply(GOOD, truncated=True, fault="HTTP 503"), contract)
    assert isinstance(broken, Accepted)
    assert [repair.code for repair in broken.repairs] == ["broken-off"]
    cut = read_reply(Reply(GOOD, truncated=True), contract)
    assert isinstance(cut, Rejected)
    assert cut.reason is Reason.TRUNCATED
