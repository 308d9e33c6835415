"""Scalars in replies with explanations."""

from __future__ import annotations

from datetime import date
from typing import Any, Literal

import pytest

from flujo_aros import Accepted, Rejected, Risk, read

Mood = Literal["happy", "sad", "calm"]
Letter = Literal["A", "B", "C"]
Vote = Literal["yes", "no"]


@pytest.mark.parametrize(
    ("said", "contract", "meant"),
    [
        ("Mood: sad\n\nReason: the writer lost a dog.", Mood, "sad"),
        ("Sad.\n\nThe writer lost a dog.", Mood, "sad"),
        ("The writer lost a dog last week. The mood is sad.", Mood, "sad"),
        ("The writer lost a dog.\n\nFinal answer: **sad**", Mood, "sad"),
        ("Sure! The answer is sad. Let me know if you need anything else!", Mood, "sad"),
        ("Here is the result:\n\n```\nsad\n```\nThe dog is mentioned twice.", Mood, "sad"),
        ("I would classify this as calm.", Mood, "calm"),
        ("4 hens and 2 ducks make 6 birds.\n\nAnswer: 6", int, 6),
        ("The total is:\n\n6", int, 6),
        ("6\n\nHens and ducks are birds.", int, 6),
        ("$\\boxed{6}$", int, 6),
        ("<answer>6</answer>", int, 6),
        ("Total: 6", int, 6),
        ("### 6", int, 6),
        ("The date is 2031-05-02.", date, date(2031, 5, 2)),
        ("It is the first Friday in May.\n\nAnswer: 2031-05-02", date, date(2031, 5, 2)),
        ("No, the lease does not say so.", bool, False),
        ("True\n\nThe lease says so on page 2.", bool, True),
        ("No. The lease does not say so.", Vote, "no"),
        ("B) A pump", Letter, "B"),
        ("Therefore, the answer is B.", Letter, "B"),
        ("The answer is \\boxed{B}.", Letter, "B"),
        ("Hens and ducks: 4 + 2 = 6\n\nThe answer is **6**.", int, 6),
        ("Yes - page 2 says so.", bool, True),
        ("The answer is 6.", int | None, 6),
        ("Rating: 2", Literal[1, 2, 3], 2),
        ("Assessment: calm\nReason: the sea is flat.", Mood, "calm"),
        ("Pumps move water.\n\nAnswer: B) A pump", Letter, "B"),
    ],
)
def test_a_reply_may_explain_the_scalar_that_it_states(said: str, contract: Any, meant: object) -> None:
    outcome = read(said, contract)
    assert isinstance(outcome, Accepted)
    assert outcome.value == meant
    assert {repair.risk for repair in outcome.repairs} <= {Risk.LOSSLESS, Risk.INFERRED}


@pytest.mark.parametrize(
    ("said", "contract"),
    [
        ("sad\n\nActually, calm.", Mood),
        ("sad\n\nIt could also be calm.", Mood),
        ("sad\n\nBut only in the first verse.", Mood),
        ("- happy\n- sad", Mood),
        ("I can't tell.\n\ncalm", Mood),
        ("The mood is not\nsad", Mood),
        ("The mood should never be:\n\nsad", Mood),
        ("An example of a wrong answer:\n\nsad", Mood),
        ("Text: rain\nReply: sad\n\nText: sun\nReply: happy", Mood),
        ("1. There are 4 hens.", int),
        ("- 4\n- 2\nThe sum is 6 birds.", int),
        ("6\n\n7 if you count the goose.", int),
        ("6\n\nOr 7.", int),
        ("Error: 404", int),
        ("Start: 2031-05-02\nDate: 2031-05-09", date),
        ("Yes, I can do that. Please send the lease.", bool),
        ("Yes, but only on page 2.", bool),
        ("Yes, partially.", bool),
        ("Yes, let us begin! Which lease do you mean?", bool),
        ("Mood: sad (morning)\nMood: calm (evening)", Mood),
        ("The mood is calm\nfor a storm", Mood),
        ("No, that is true.", bool),
        ("Yes. Well, no.", bool),
        ("A) A hose\nB) A pump\nC) A tap", Letter),
        ("B) is wrong.", Letter),
        ("B\n\nThough C is equally right.", Letter),
    ],
)
def test_a_scalar_that_the_rest_of_the_reply_limits_is_rejected(said: str, contract: Any) -> None:
    assert isinstance(read(said, contract), Rejected)


def test_a_part_of_a_longer_reply_is_never_accepted_without_a_repair() -> None:
    outcome = read("6\n\nHens and ducks are birds.", int)
    assert isinstance(outcome, Accepted)
    assert [(repair.code, repair.risk) for repair in outcome.repairs] == [
        ("stated-value", Risk.INFERRED),
        ("prose-around", Risk.LOSSLESS),
    ]


def test_thoughts_next_to_a_scalar_are_not_part_of_it() -> None:
    assert read('{"reasoning": "Two hens, four ducks.", "answer": 6}', int).value == 6
    assert read('{"label": "sad", "confidence": 0.9}', Mood).value == "sad"
    assert isinstance(read('{"reasoning": "?", "rejected": true}', bool), Rejected)


def test_a_call_with_a_single_argument_holds_a_list() -> None:
    call = '{"name": "final_result", "arguments": {"response": ["ivy", "fern"]}}'
    assert read(call, list[str]).value == ["ivy", "fern"]


def test_an_envelope_with_thoughts_is_opened_where_no_key_is_required() -> None:
    contract = {"type": "object", "properties": {"retries": {"type": "integer"}, "quiet": {"type": "boolean"}}}
    outcome = read('{"reasoning": "Few are enough.", "answer": {"retries": 2, "quiet": true}}', contract)
    assert outcome.value == {"retries": 2, "quiet": True}
