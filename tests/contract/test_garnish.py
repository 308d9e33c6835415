"""Decorative fields of an event are cleaned and reported; no model is asked again because of them."""

import asyncio
import json
from typing import Any

import pytest
from pydantic_ai import Agent

from flujo_aros import Accepted, Aros, ContractError, Output, Rejected, Risk, Runner, Step, StreamReader, Trust, read
from flujo_aros.contract import scores_of, winner_in, with_checks
from flujo_aros.testing import ScriptedModel

CAST = ["p1", "p2"]
VERDICT = Output.event(["judge.ruled"], ["winner", "scores"], checks=[winner_in(CAST), scores_of(CAST)])
SAID = Output.event(["npc.said", "npc.thought"])

SCORES: list[tuple[object, object]] = [
    ({"p1": "high"}, {}),
    ({"p1": "high", "p2": 3}, {"p2": 3.0}),
    ({"p1": None, "p2": 0}, {"p2": 0.0}),
    ({"p1": True}, {}),
    ({"p1": "7/10", "p2": "4"}, {"p2": 4.0}),
    ({"p1": {"a": 1, "b": 2}}, {}),
    ({"p1": 12, "ghost": "?", "p2": "-3"}, {"p1": 10.0, "p2": 0.0}),
    ([1, 2], {}),
    ([{"name": "p1", "score": 9}], {}),
    ("great", {}),
    ("", None),
    (7, {}),
    (False, {}),
    ('{"p1": "high", "p2": 2}', {"p2": 2.0}),
    (None, None),
    ({}, {}),
]


def ruled(**more: Any) -> str:
    return json.dumps({"kind": "judge.ruled", "text": "Well.", **more})


def event_in(text: str, contract: Any = VERDICT) -> Accepted[Any]:
    outcome = read(text, contract)
    assert isinstance(outcome, Accepted), outcome.explain()
    return outcome


@pytest.mark.parametrize(("given", "kept"), SCORES, ids=[json.dumps(given) for given, _ in SCORES])
def test_invalid_scores_are_left_out_and_reported(given: object, kept: object) -> None:
    outcome = event_in(ruled(winner="p1", scores=given))
    assert (outcome.value.winner, outcome.value.scores) == ("p1", kept)
    assert bool(outcome.repairs) == (given not in (None, {}))


@pytest.mark.parametrize(("given", "kept"), SCORES, ids=[json.dumps(given) for given, _ in SCORES])
def test_no_call_is_made_for_garnish(given: object, kept: object) -> None:
    model = ScriptedModel(ruled(winner="p1", scores=given))
    result = Runner(Step("judge", agent=Agent(model), contract=VERDICT)).run_sync("Who wins?")
    assert (result.output.scores, model.calls) == (kept, 1)


def test_dropped_items_are_reported_with_their_place() -> None:
    outcome = event_in(ruled(winner="p1", scores={"p1": "high", "p2": 3}))
    assert [(r.code, r.risk, r.path, r.before) for r in outcome.repairs] == [
        ("cleaned", Risk.LOSSY, "$.scores.p1", "high")
    ]
    assert outcome.trust is Trust.LOSSY


@pytest.mark.parametrize("kind", [["npc.thought", "x"], {"name": "npc.thought"}, {}, [], 5, None, True])
def test_a_kind_that_is_not_a_string_is_a_wrong_kind(kind: object) -> None:
    outcome = event_in(json.dumps({"kind": kind, "text": "x"}), SAID)
    assert outcome.value.kind == "npc.said"
    assert "fallback-kind" in [repair.code for repair in outcome.repairs]


@pytest.mark.parametrize("more", [{"scores": [1]}, {"scores": "high"}, {"winner": {"a": 1}}, {"winner": ["a", "b"]}])
def test_an_unrequested_verdict_is_optional(more: dict[str, Any]) -> None:
    outcome = event_in(json.dumps({"kind": "npc.said", "text": "x", **more}), SAID)
    assert outcome.value.model_dump(exclude_unset=True) == {"kind": "npc.said", "text": "x"}
    assert outcome.repairs[0].code == "cleaned"


@pytest.mark.parametrize(
    "more", [{"mood": 5}, {"mood": None}, {"mood": ["a"]}, {"mood": {"a": [1]}}, {"model_dump": 1}]
)
def test_further_fields_of_any_kind_are_kept(more: dict[str, Any]) -> None:
    outcome = event_in(json.dumps({"kind": "npc.said", "text": "x", **more}), Output.event(["npc.said"], ["mood"]))
    assert outcome.value.model_dump(exclude_unset=True) == {"kind": "npc.said", "text": "x", **more}
    assert outcome.trust is (Trust.INFERRED if more.get("mood") is None else Trust.CLEAN)


@pytest.mark.parametrize("winner", [{"name": "p1"}, {"name": "p1", "score": 9}, ["p1"]])
def test_a_winner_in_a_wrapping_is_named(winner: object) -> None:
    outcome = event_in(ruled(winner=winner))
    assert (outcome.value.winner, outcome.trust) == ("p1", Trust.INFERRED)


@pytest.mark.parametrize("winner", [{"id": "p1", "name": "p2"}, {}, [], ["p1", "p2"], {"name": None}, 5, "nobody", ""])
def test_an_unknown_winner_is_requested_once_and_then_left_open(winner: object) -> None:
    wrong = ruled(winner=winner, scores={"p1": "high", "p2": 99})
    model = ScriptedModel(wrong, wrong)
    result = Runner(Step("judge", agent=Agent(model), contract=VERDICT)).run_sync("Who wins?")
    event = result.output
    assert (event.winner, event.is_no_contest, event.scores, model.calls) == (None, True, {"p2": 10.0}, 2)


def test_an_answer_that_is_not_an_event_does_not_settle_a_winner() -> None:
    model = ScriptedModel(ruled(winner="nobody"), '{"kind": "judge.ruled"}')
    result = Runner(Step("judge", agent=Agent(model), contract=VERDICT)).run_sync("Who wins?")
    assert (result.output.text, result.output.is_no_contest, model.calls) == ("Well.", True, 2)


def test_only_required_fields_are_asked_about() -> None:
    outcome = read(ruled(winner=["p1", "p2"], scores="great"), VERDICT)
    assert isinstance(outcome, Rejected)
    assert [issue.path for issue in outcome.issues] == ["$.winner"]


def test_a_verdict_that_a_check_left_open_is_not_judged_by_it_again() -> None:
    """Even if the user's check accepts no verdict without a winner."""
    step = Step(
        "judge",
        agent=Agent(ScriptedModel(ruled(winner="x"), ruled(winner="y"))),
        contract=Output.event(["judge.ruled"], ["winner"]),
        checks=(lambda event: event.winner in CAST or "it must be p1 or p2",),
    )
    result = Runner(step).run_sync("Who wins?")
    assert (result.status.value, result.output.winner, result.output.is_no_contest) == ("completed", None, True)


def test_optional_fields_do_not_decide_which_event_is_meant() -> None:
    text = f"A draft: {ruled(winner='p2')} But no, finally: {ruled(winner='p1', scores={'p1': 'high'})}"
    assert event_in(text).value.winner == "p1"


def test_an_agent_gets_the_cleaned_event() -> None:
    model = ScriptedModel(ruled(winner={"name": "p2"}, scores={"p1": "high", "p2": 11}))
    agent = Agent(model, output_type=VERDICT.as_output(), capabilities=[Aros()])
    result = asyncio.run(agent.run("Who wins?"))
    assert (result.output.winner, result.output.scores, model.calls) == ("p2", {"p2": 10.0}, 1)


@pytest.mark.parametrize("given", [{"p1": "high"}, [1], "x", {"p1": None, "p2": 2}])
def test_scores_are_cleaned_in_any_contract(given: object) -> None:
    contract = with_checks(Output.json({"type": "object"}), [winner_in(set(CAST)), scores_of(CAST)])
    outcome = event_in(json.dumps({"winner": "p1", "scores": given}), contract)
    assert outcome.value["scores"] == ({"p2": 2} if given == {"p1": None, "p2": 2} else {})
    assert isinstance(read('{"winner": ["p1"]}', contract), Rejected)


@pytest.mark.parametrize("size", [1, 3, 7])
@pytest.mark.parametrize(("given", "_kept"), SCORES, ids=[json.dumps(given) for given, _ in SCORES])
def test_paths_shown_as_final_do_not_change_in_the_cleaned_event(given: object, _kept: object, size: int) -> None:
    contract = Output.event(["judge.ruled"], ["winner", "scores"])
    text = ruled(winner={"name": "p1"}, scores=given, mood="calm")
    reader, shown = StreamReader(contract), dict[str, Any]()
    for start in range(0, len(text), size):
        partial = reader.feed(text[start : start + size])
        if partial is not None:
            shown = {} if partial.restarted else shown
            shown |= {path: _at(partial.value, path) for path in partial.final_paths}
    outcome = reader.close()
    assert outcome == read(text, contract)
    final = outcome.value.model_dump(exclude_unset=True)
    assert {path: _at(final, path) for path in shown if path != "$"} == {p: v for p, v in shown.items() if p != "$"}


def _at(value: Any, path: str) -> Any:
    here = value
    for name in path.removeprefix("$").strip(".").split("."):
        here = here[name] if name else here
    return here


def test_a_type_can_be_given_checks_and_a_check_alone_is_an_error() -> None:
    assert read("3", with_checks(int, [lambda value: "small" if value < 5 else None])).issues[0].message == "small"
    with pytest.raises(ContractError, match=r"write \[check\] for a single one"):
        with_checks(int, lambda value: None)  # type: ignore[arg-type]  # the mistake
