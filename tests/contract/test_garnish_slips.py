"""Any error in decorative fields of an event is cleaned and reported; only kind, text and winner are asked again."""

import asyncio
import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_ai import Agent

from flujo_aros import Accepted, Aros, Output, Reason, Rejected, Risk, Runner, Step, StreamReader, Trust, read
from flujo_aros.contract import scores_of, winner_in
from flujo_aros.host import run_agent
from flujo_aros.testing import ScriptedModel

CAST = ["p1", "p2"]
VERDICT = Output.event(["judge.ruled"], ["winner", "scores"], checks=[winner_in(CAST), scores_of(CAST)])
ASKED = Output.event(["judge.ruled"], ["winner", "mood", "scores"])
SAID = Output.event(["judge.ruled"])
CONTRACTS = {"judged": VERDICT, "asked for": ASKED, "not asked for": SAID}
HEAD = '"kind": "judge.ruled", "text": "Well.", "winner": "p1"'
GONE = object()

SCORES: dict[str, tuple[str, Any]] = {
    "NaN": ('{"p1": NaN, "p2": 3}', {"p2": 3.0}),
    "Infinity": ('{"p1": Infinity, "p2": 3}', {"p2": 3.0}),
    "-Infinity": ('{"p1": -Infinity, "p2": 3}', {"p2": 3.0}),
    "nan": ('{"p1": nan, "p2": 3}', {"p2": 3.0}),
    "a number beyond floats": ('{"p1": 1e999, "p2": 3}', {"p2": 3.0}),
    "a whole number beyond floats": ('{"p1": ' + "9" * 400 + ', "p2": 3}', {"p2": 3.0}),
    "more digits than anybody reads": ('{"p1": ' + "9" * 5000 + ', "p2": 3}', {"p2": 3.0}),
    "NaN as a text": ('{"p1": "NaN", "p2": 3}', {"p2": 3.0}),
    "NaN in their place": ("NaN", GONE),
    "numbers as texts": ('{"p1": "7", "p2": " 3 "}', {"p1": 7.0, "p2": 3.0}),
    "words": ('{"p1": "high", "p2": 3}', {"p2": 3.0}),
    "null for one": ('{"p1": null, "p2": 3}', {"p2": 3.0}),
    "None for one": ('{"p1": None, "p2": 3}', {"p2": 3.0}),
    "a list": ("[7, 3]", GONE),
    "a list of objects": ('[{"p1": 7}, {"p2": 3}]', GONE),
    "an object for one": ('{"p1": {"score": 7}, "p2": 3}', {"p1": 7.0, "p2": 3.0}),
    "a list for one": ('{"p1": [1, 2], "p2": 3}', {"p2": 3.0}),
    "another object around": ('{"p2": 3, "scores": {"a": 1, "b": 2}}', {"p2": 3.0}),
    "the same name twice": ('{"p1": 1, "p1": 7}', {"p1": 7.0}),
    "a value left out": ('{"p2": 3, "p1": }', {"p2": 3.0}),
    "an ellipsis": ('{"p2": 3, ...}', {"p2": 3.0}),
    "half a character": ('{"p2": 3, "x\\ud800": "y"}', {"p2": 3.0}),
    "nested without end": ('{"p2": 3, "x": ' + "[" * 300 + "]" * 300 + "}", GONE),
    "a wrong closer": ('{"p2": 3, "p1": 7]]', {"p2": 3.0, "p1": 7.0}),
}

OTHERS: dict[str, tuple[str, Any]] = {
    "NaN": ("NaN", None),
    "NaN deep inside": ('{"a": [1, NaN, {"b": -Infinity}]}', {"a": [1, None, {"b": None}]}),
    "a number beyond floats": ("-1e999", None),
    "half a character": ('"a\\ud800b"', "a\ufffdb"),
    "a value left out": ('{"a": 1, "b": }', {"a": 1}),
    "nested without end": ("[" * 300 + "]" * 300, GONE),
    "an ellipsis in a list": ("[1, 2, ...]", [1, 2]),
}


def event_in(text: str, contract: Any, **options: Any) -> Accepted[Any]:
    outcome = read(text, contract, **options)
    assert isinstance(outcome, Accepted), outcome.explain()
    return outcome


def slips() -> list[Any]:
    found = [("scores", name, *SCORES[name]) for name in SCORES] + [("mood", name, *OTHERS[name]) for name in OTHERS]
    return [
        pytest.param(CONTRACTS[form], key, written, kept, id=f"{key}, {form}: {name}")
        for (key, name, written, kept), form in product(found, CONTRACTS)
    ]


@pytest.mark.parametrize(("contract", "key", "written", "kept"), slips())
def test_an_error_in_garnish_is_cleaned_and_reported(contract: Any, key: str, written: str, kept: Any) -> None:
    outcome = event_in(f'{{{HEAD}, "{key}": {written}}}', contract)
    event = outcome.value.model_dump(exclude_unset=True)
    assert (event["kind"], event["text"], event["winner"]) == ("judge.ruled", "Well.", "p1")
    asked_for = key == "scores" and "scores" in contract.fields  # and then never absent
    assert event.get(key, GONE) == ({} if kept is GONE and asked_for else kept)
    assert outcome.trust is not Trust.CLEAN
    assert any(repair.path.startswith(f"$.{key}") for repair in outcome.repairs)
    json.dumps(event, allow_nan=False)


@pytest.mark.parametrize("way", ["sync", "async", "stream", "agent"])
@pytest.mark.parametrize("name", ["NaN", "a whole number beyond floats", "a value left out", "nested without end"])
def test_an_error_in_garnish_causes_no_further_call(name: str, way: str) -> None:
    written, kept = SCORES[name]
    model = ScriptedModel(f'{{{HEAD}, "scores": {written}}}')
    if way == "sync":
        event = Runner(Step("judge", agent=Agent(model), contract=VERDICT)).run_sync("Who wins?").output
    elif way == "agent":
        agent = Agent(model, output_type=VERDICT.as_output(), capabilities=[Aros()])
        event = asyncio.run(agent.run("Who wins?")).output
    else:

        async def hear(_: object) -> None:
            return None

        ran = run_agent(Agent(model), "Who wins?", VERDICT, live=hear if way == "stream" else None)
        event = asyncio.run(ran).outcome.value
    assert (event.winner, event.scores, model.calls) == ("p1", {} if kept is GONE else kept, 1)


def test_omitted_parts_are_reported_with_their_place_and_text() -> None:
    text = f'{{{HEAD}, "scores": {{"p2": 3, "p1": }}, "mood": "calm"}}'
    outcome = event_in(text, ASKED)
    cleaned = [repair for repair in outcome.repairs if repair.code == "cleaned"]
    assert [(r.path, r.risk, text[slice(*r.span)]) for r in cleaned] == [
        ("$.scores.p1", Risk.LOSSY, ' "p1": }, "mood": "calm"}')
    ]
    assert outcome.trust is Trust.LOSSY


@pytest.mark.parametrize("truncated", [None, True])
def test_an_event_truncated_in_an_optional_field_keeps_its_complete_fields(truncated: bool | None) -> None:
    text = f'{{{HEAD}, "mood": "calm", "scores": {{"p1": 7, "p2": 3'
    event = event_in(text, ASKED, truncated=truncated).value
    assert (event.text, event.mood, event.scores) == ("Well.", "calm", {"p1": 7.0})  # 3 may be the begin of 31


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_cut_makes_an_event_of_half_a_text_or_winner(data: st.DataObject) -> None:
    """Required fields are complete as written, or the reply counts as truncated."""
    members = {"kind": "judge.ruled", "text": "Well, well.", "winner": "p1", "mood": "calm", "scores": {"p1": 7}}
    order = data.draw(st.permutations(list(members)))
    text = json.dumps({name: members[name] for name in order})
    cut = text[: data.draw(st.integers(1, len(text) - 1))]
    outcome = read(cut, ASKED, truncated=data.draw(st.sampled_from([None, True])))
    if isinstance(outcome, Rejected):
        assert outcome.reason is Reason.TRUNCATED or '"kind"' not in cut or '"text"' not in cut
        return
    whole = outcome.value.model_dump(exclude_unset=True)
    if not whole.get("_raw_fallback"):
        assert {name: whole[name] for name in ("kind", "text", "winner")} == {
            name: members[name] for name in ("kind", "text", "winner")
        }
        assert outcome.trust is Trust.LOSSY


@pytest.mark.parametrize(
    "text",
    [
        '{"kind": "judge.ruled", "text": "He said "no" and, "x": }',  # who knows where the text ends
        f'{{{HEAD}, "scores": {{"p1": }}, "text": "Another."}}',  # what counts stands there once more
        '{"kind": "judge.ruled", "scores": {"p1": }, "text": "Well."}',  # what counts has not come yet
        '{"kind": "judge.ruled", "text": "half \\ud800", "winner": "p1"}',
        f'{{{HEAD}, "scores": {{"p1": }}',
    ],
)
def test_required_fields_are_never_guessed(text: str) -> None:
    assert isinstance(read(text, VERDICT), Rejected)


@pytest.mark.parametrize("winner", ["NaN", "Infinity", "1e999"])
def test_a_winner_that_is_not_a_number_is_retried(winner: str) -> None:
    wrong = f'{{"kind": "judge.ruled", "text": "Well.", "winner": {winner}, "scores": {{"p1": NaN}}}}'
    outcome = read(wrong, VERDICT)
    assert isinstance(outcome, Rejected)
    assert [issue.path for issue in outcome.issues] == ["$.winner"]
    model = ScriptedModel(wrong, wrong)
    event = Runner(Step("judge", agent=Agent(model), contract=VERDICT)).run_sync("Who wins?").output
    assert (event.winner, event.is_no_contest, model.calls) == (None, True, 2)


@pytest.mark.parametrize("size", [1, 3, 7])
@pytest.mark.parametrize(
    ("key", "written"), [*(("scores", w) for w, _ in SCORES.values()), *(("mood", w) for w, _ in OTHERS.values())]
)
def test_paths_shown_as_final_do_not_change(key: str, written: str, size: int) -> None:
    if len(written) > 1_000 and size < 7:
        return
    text = f'{{{HEAD}, "{key}": {written}}}'
    reader, finals = StreamReader(ASKED), dict[str, Any]()
    for start in range(0, len(text), size):
        partial = reader.feed(text[start : start + size])
        if partial is not None:
            finals = {} if partial.restarted else finals
            finals |= {p: partial.value.get(p[2:]) for p in partial.final_paths if p[2:] in ("kind", "text", "winner")}
    outcome = reader.close()
    assert outcome == read(text, ASKED)
    event = event_in(text, ASKED).value.model_dump()
    assert finals == {path: event[path[2:]] for path in finals}
