"""Regressions of ensembles with small models: what is read, asked again and isolated."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import ValidationError
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.exceptions import ModelHTTPError, UsageLimitExceeded
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.usage import RequestUsage

from flujo_aros import (
    Accepted,
    Aros,
    Ensemble,
    EventLog,
    Manifest,
    Output,
    Reason,
    Rejected,
    Runner,
    RunStatus,
    Step,
    read,
)
from flujo_aros.contract import scores_of, winner_in
from flujo_aros.ensemble.measures import repetition
from flujo_aros.ensemble.memory import ReflectionTracker
from flujo_aros.testing import ScriptedModel, ScriptedModels

SAID = Output.event(["elf.said", "elf.thought"], fallback="elf.said")
CAST = ["ada", "bo"]
RULED = Output.event(["judge.ruled"], ["winner", "scores"], checks=[winner_in(CAST), scores_of(CAST)])


@pytest.mark.parametrize(
    ("reply", "kind", "text", "is_raw"),
    [
        ('{"kind": "elf.thought", "text": "My boots are late."}', "elf.thought", "My boots are late.", False),
        ('{"text": "no kind at all"}', "elf.said", "no kind at all", False),
        ('{"kind": "judge.ruled", "text": "Guilty."}', "elf.said", "Guilty.", False),
        ('Here you are: {"kind": "elf.said", "text": "The door owes me."}', "elf.said", "The door owes me.", False),
        ('{"kind":"elf.said","text":"a jar {half} full of }"}', "elf.said", "a jar {half} full of }", False),
        ("The moss wants wages.", "elf.said", "The moss wants wages.", True),
        ("", "elf.said", "…", True),
        (
            'The answer is JSON. Idea: it is a CELLO. Text: "It hums between two knees." That will do.',
            "elf.said",
            "It hums between two knees.",
            True,
        ),
        ("I must write JSON. Idea: it is a CELLO. I must", "elf.said", "…", True),
        ('It must be brief. "A hammer finds eighty', "elf.said", "A hammer finds eighty", True),
        ('It should be vivid. Text: "Strings under a', "elf.said", "Strings under a", True),
        ('We need one sentence. "Breath makes it', "elf.said", "Breath makes it", True),
        ('Okay, we need a hint. Word: DRUM. Text: "It answers." Good.', "elf.said", "It answers.", True),
        ("We need a clue, sheriff!", "elf.said", "We need a clue, sheriff!", True),
        ('"We need a clue," said the owl.', "elf.said", '"We need a clue," said the owl.', True),
    ],
)
def test_every_reply_is_an_event_that_says_no_more_than_was_meant(
    reply: str, kind: str, text: str, is_raw: bool
) -> None:
    event = read(reply, SAID).value
    assert (event.kind, event.text, event.is_raw_fallback) == (kind, text, is_raw)


@pytest.mark.parametrize(
    "reply", ["…", "...", "“…”", "—", "A thin, cold line.", '{"kind": "elf.said", "text": "A thin, cold line."}']
)
def test_the_example_of_the_prompt_and_a_placeholder_say_nothing(reply: str) -> None:
    outcome = read(reply, Output.event(["elf.said"], example="A thin, cold line."))
    assert isinstance(outcome, Rejected)
    assert outcome.reason is Reason.ECHOED_SCHEMA


def test_reasoning_is_separate_from_speech() -> None:
    assert read("<think>aim: give nothing away</think> a hint", SAID).value.text == "a hint"


@pytest.mark.parametrize(
    ("opens", "closes"),
    [
        ("<think>", "</think>"),
        ("<seed:think>", "</seed:think>"),
        ("◁think▷", "◁/think▷"),
        ("[THINK]", "[/THINK]"),
        ("<|START_THINKING|>", "<|END_THINKING|>"),
        ("<|begin_of_thought|>", "<|end_of_thought|>"),
        ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    ],
)
@pytest.mark.parametrize("said", ["A bell rings.", '{"kind": "agent.spoke", "text": "A bell rings."}', ""])
def test_a_draft_in_the_reasoning_is_never_used_as_speech(opens: str, closes: str, said: str) -> None:
    draft = f'{opens}I hide it: {{"kind": "agent.spoke", "text": "The owl did it."}} No.'
    event = read(f"{draft}{closes}{said}", SAID).value
    assert event.text == "A bell rings." if said else event.says_nothing
    assert isinstance(read(draft, SAID, truncated=True), Rejected)


@pytest.mark.parametrize("reply", ["null", "```json\nnull\n```", '"null"'])
def test_a_null_says_nothing(reply: str) -> None:
    event = read(reply, SAID).value
    assert event.says_nothing
    assert event.is_raw_fallback


@pytest.mark.parametrize("given", [{"kind": "elf.sang", "text": "La."}, {"kind": "elf.said"}])
def test_the_model_of_an_event_takes_no_other_kind_and_needs_a_text(given: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        SAID.model.model_validate(given)


ANY_JSON = [None, True, 0, 0.5, 1e400, 10**400, "", "ada", [], ["ada"], [{"ada": 1}], {}, {"ada": [1]}]


@pytest.mark.parametrize("name", ["kind", "text", "winner", "scores", "mood", "based_on", "replaces", "_raw_fallback"])
@pytest.mark.parametrize("value", ANY_JSON, ids=lambda value: json.dumps(value)[:12])
def test_no_value_of_a_field_raises_or_fails_a_turn(name: str, value: Any) -> None:
    said = json.dumps({"kind": "judge.ruled", "text": "So be it.", "winner": "ada", "mood": "grim", name: value})
    for contract in (RULED, Output.event(["judge.ruled"], ["winner", "scores", "mood"], required=True)):
        read(said, contract).to_dict()
    judge = member("judge", "judge.ruled", output_extra_fields=("winner", "scores", "mood"))
    _, log = played([judge, member("ada")], {"m": ScriptedModel(then=said)}, turns=4)
    assert not [event for event in log if "Error" in str(event.payload.get("reason"))]


def test_the_first_line_of_an_agent_repeats_nothing() -> None:
    assert repetition("I was charged twice.", []) == 0.0


def test_scores_are_numbers_and_may_be_absent() -> None:
    ruling = {"kind": "judge.ruled", "text": "So."}
    assert RULED.model.model_validate({**ruling, "scores": {"ada": 9}}).scores == {"ada": 9.0}
    assert RULED.model.model_validate(ruling).scores == {}


def ruled(tokens: tuple[int, int] = (1, 1), **more: Any) -> ModelResponse:
    plain = json.dumps({"kind": "judge.ruled", "text": "So be it.", **more})
    used = RequestUsage(input_tokens=tokens[0], output_tokens=tokens[1])
    return ModelResponse(parts=[TextPart(plain)], usage=used, finish_reason="stop")


def judged(contract: Any, *replies: Any) -> tuple[Any, ScriptedModel]:
    model = ScriptedModel(*replies)
    return Runner(Step("judge", agent=Agent(model), contract=contract)).run_sync("Who wins?"), model


def test_a_winner_outside_the_cast_is_retried_once_with_the_names_and_both_calls_are_counted() -> None:
    result, model = judged(RULED, ruled((100, 10), winner="the moon"), ruled((120, 12), winner="ada"))
    assert (result.output.winner, model.calls) == ("ada", 2)
    assert (result.usage.input_tokens, result.usage.output_tokens) == (220, 22)
    assert "ada" in model.asked[1].prompt
    assert "bo" in model.asked[1].prompt


def test_scores_outside_the_bounds_or_cast_are_cleaned_without_a_retry() -> None:
    result, model = judged(RULED, ruled(winner="ada", scores={"ada": 12, "ghost": 5, "bo": -3}))
    assert (result.output.scores, model.calls) == ({"ada": 10.0, "bo": 0.0}, 1)


def test_a_score_without_end_is_cleaned() -> None:
    assert scores_of(CAST)({"scores": {"ada": 10**400, "bo": float("nan")}}) == {"scores": {"ada": 10}}


def test_an_infinite_winner_is_an_issue_even_with_invalid_scores() -> None:
    outcome = read(json.dumps({"kind": "judge.ruled", "text": "So.", "winner": 10**400, "scores": 0.5}), RULED)
    assert isinstance(outcome, Rejected)
    assert [issue.path for issue in outcome.issues] == ["$.winner"]


def test_scores_that_a_judge_of_an_ensemble_gives_are_cleaned_in_its_turn() -> None:
    judge = member("judge", "judge.ruled", output_extra_fields=("winner", "scores"))
    model = ScriptedModel(ruled(winner="ada", scores={"ada": 12, "ghost": 5, "bo": -3}))
    _, log = played([judge, member("ada"), member("bo")], {"m": model}, turns=1)
    assert list(log)[1].payload["scores"] == {"ada": 10.0, "bo": 0.0}
    assert model.calls == 1


def test_without_a_cast_any_winner_is_taken() -> None:
    result, model = judged(Output.event(["judge.ruled"], ["winner", "scores"]), ruled(winner="whoever"))
    assert (result.output.winner, model.calls) == ("whoever", 1)


@pytest.mark.parametrize(
    ("counts", "due"),
    [
        ([3], [False]),
        ([5], [True]),
        ([5, 5], [True, False]),
        ([4, 6], [False, True]),
        ([11, 14, 16], [True, False, True]),
    ],
)
def test_a_reflection_is_due_when_the_count_crosses_a_multiple(counts: Sequence[int], due: Sequence[bool]) -> None:
    tracker = ReflectionTracker("elf", 5)
    assert [tracker.observe(count) for count in counts] == due


def test_a_model_that_echoes_the_schema_is_asked_for_prose_without_it() -> None:
    result, model = judged(
        SAID, '(as the schema says) {"kind": "...", "text": "..."}', "A hammer finds eighty strings."
    )
    assert result.output.text == "A hammer finds eighty strings."
    assert not any(word in model.asked[1].prompt for word in ('{"kind"', "OUTPUT FORMAT", "elf.thought"))


@pytest.mark.parametrize("way", ["step", "agent"])
def test_a_structured_call_that_raises_is_followed_by_words_and_is_paid_for(way: str) -> None:
    model = ScriptedModel(ModelHTTPError(400, "m", {"error": {"code": "json_validate_failed"}}), "It hums.")
    agent = Agent(model, output_type=NativeOutput(SAID.model), capabilities=[Aros()])
    if way == "step":
        result = Runner(Step("s", agent=Agent(model), contract=SAID)).run_sync("Go on.")
        said, requests = result.output, result.usage.requests
    else:
        run = asyncio.run(agent.run("Go on."))
        said, requests = run.output, run.usage.requests
    assert (said.text, said.is_raw_fallback, requests, model.calls) == ("It hums.", True, 2, 2)


def member(name: str, kind: str = "elf.said", profile: str = "m", **more: Any) -> Manifest:
    return Manifest(
        name=name,
        persona=f"You are {name}.",
        subscribes_to=("run.started",),
        may_emit=(kind,),
        model_profile=profile,
        **more,
    )


def played(cast: list[Manifest], models: dict[str, ScriptedModel], turns: int) -> tuple[Any, EventLog]:
    log = EventLog()
    profiles = {name: f"local:{name}" for name in models}
    step = Ensemble("wood", cast=cast, profiles=profiles, turns=turns, log=log)
    named = {f"local:{name}": model for name, model in models.items()}
    return Runner(step, models=ScriptedModels(named)).run_sync("Go."), log


def test_one_failure_is_isolated_and_a_used_up_budget_is_not() -> None:
    models = {
        "broken": ScriptedModel(then=ValueError("parse")),
        "fine": ScriptedModel(then='{"kind": "elf.said", "text": "I am still here."}'),
        "spent": ScriptedModel(then=UsageLimitExceeded("the budget is used up")),
    }
    result, log = played([member(name, profile=name) for name in models], models, turns=9)
    assert [(event.actor, event.kind) for event in log][1:] == [
        ("conductor", "turn.failed"),
        ("fine", "elf.said"),
        ("conductor", "run.finished"),
    ]
    assert result.status is RunStatus.FAILED
    assert isinstance(result.step("wood").exception, UsageLimitExceeded)
    assert list(log)[-1].payload == {"reason": "budget"}


def test_a_kind_that_was_left_out_is_a_repair_of_its_place() -> None:
    outcome = read('{"text": "no kind at all"}', SAID)
    assert isinstance(outcome, Accepted)
    assert [repair.path for repair in outcome.repairs] == ["$.kind"]
