"""Contracts as data: what a blueprint and the command line may contain."""

from __future__ import annotations

from typing import Any

import pytest

from flujo_aros import Accepted, ContractError, Rejected, read
from flujo_aros.contract import Output, TaggedContract, written_contract

INTEGER = {"type": "integer"}


@pytest.mark.parametrize(
    ("written", "like", "same"),
    [
        ("json", INTEGER, Output.json(INTEGER)),
        ("tagged:result", INTEGER, Output.tagged("result", INTEGER)),
        ({"tagged": "result"}, INTEGER, Output.tagged("result", INTEGER)),
        ({"tagged": "result", "strict": False}, INTEGER, Output.tagged("result", INTEGER, strict=False)),
        ("tagged:result", None, Output.tagged("result", {})),
        ("text:note", None, Output.text("note")),
        ("block:plan, next", None, Output.block("plan", ["next"])),
        ({"block": "plan", "required": ["next"]}, None, Output.block("plan", ["next"])),
        ("event:said,thought", None, Output.event(["said", "thought"])),
        (
            {"event": ["said", "thought"], "fallback": "thought"},
            None,
            Output.event(["said", "thought"], fallback="thought"),
        ),
        ({"event": ["said"], "fields": ["to"]}, None, Output.event(["said"], ["to"])),
        ({"event": "said", "fields": "to"}, None, Output.event(["said"], ["to"])),
        ({"block": " "}, None, Output.block("")),
        ({"block": "plan", "required": "next"}, None, Output.block("plan", ["next"])),
    ],
)
def test_a_written_contract_equals_the_python_contract(written: Any, like: Any, same: Any) -> None:
    assert written_contract(written).contract(like).fingerprint == same.fingerprint


def test_retries_of_a_tagged_contract_can_be_written() -> None:
    for contract in (
        written_contract({"tagged": "result", "max_retries": 2}).contract(INTEGER),
        written_contract({"text": "r", "max_retries": 2}).contract(),
    ):
        assert isinstance(contract, TaggedContract)
        assert contract.max_retries == 2


def test_a_cast_judges_the_winner_and_cleans_the_scores() -> None:
    contract = written_contract({"event": ["ruled"], "fields": ["winner", "scores"], "cast": ["ada", "bo"]}).contract()
    verdict = '{"kind": "ruled", "text": "t", "winner": "ada", "scores": {"ada": 12, "cat": 1}}'
    assert read(verdict, contract).value.scores == {"ada": 10}
    assert isinstance(read(verdict.replace('"winner": "ada"', '"winner": "cat"'), contract), Rejected)


def test_the_example_of_an_event_can_be_written() -> None:
    contract = written_contract({"event": ["said"], "example": "A bell tolls."}).contract()
    assert "A bell tolls." in contract.instruction()
    assert isinstance(read("A bell tolls.", contract), Rejected)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("tag:result", "a contract is json, tagged:TAG"),
        ("", "a contract is json, tagged:TAG"),
        ({}, "with one of these keys"),
        ({"tagged": "a", "text": "b"}, "with one of these keys"),
        ({"tagged": "result", "stric": True}, "a tagged contract has no option 'stric'; known: strict, max_retries"),
        ({"text": "note", "strict": True}, "a text contract has no option 'strict'; known: max_retries"),
        ("json:x", "a contract is json, tagged:TAG"),
        ("block:", "a contract is json, tagged:TAG"),
        (
            {"event": ["a"], "checks": ["x"]},
            "an event contract has no option 'checks'; known: fields, required, fallback, example",
        ),
        ({"event": ["a"], "cast": "ada"}, "cast='ada' is a string: write a list, ['ada']"),
        ({"event": ["a"], "example": 3}, "not 3"),
        ({"event": ["a"], "fallback": "b"}, "'b'"),
        ({"event": ["a", 1]}, "event contains 1, which is not a string"),
        ({"event": ["a", True]}, "event contains True"),
        ({"tagged": 5}, "tagged contains 5"),
        ({"block": ["plan", None]}, "block contains None"),
        ({"tagged": "result", "strict": "no"}, "strict must be true or false, not 'no'"),
        ({"block": "plan", "required": ["next", 2]}, "required contains 2"),
    ],
)
def test_an_invalid_written_form_lists_the_valid_ones(written: Any, message: str) -> None:
    with pytest.raises(ContractError) as caught:
        written_contract(written)
    assert message in str(caught.value)


def test_a_schema_in_the_wrong_place_is_rejected() -> None:
    with pytest.raises(ContractError, match="a text contract takes no schema; remove it"):
        written_contract("text:note").contract(INTEGER)


def test_an_event_can_require_its_fields() -> None:
    every = written_contract({"event": ["said"], "fields": ["mood", "place"], "required": True}).contract()
    one = written_contract({"event": ["said"], "fields": ["mood", "place"], "required": ["mood"]}).contract()
    moody = '{"kind": "said", "text": "Well.", "mood": "glad"}'
    assert isinstance(read(moody, one), Accepted)
    rejected = read(moody, every)
    assert isinstance(rejected, Rejected)
    (issue,) = rejected.issues
    assert (issue.path, issue.code, issue.message) == ("$.place", "missing", "place is missing")
    assert isinstance(read('{"kind": "said", "text": "Well.", "mood": "", "place": "x"}', every), Rejected)


@pytest.mark.parametrize("required", ["mod", ["mod"], [1], {"mood": 1}])
def test_only_fields_of_the_event_can_be_required(required: Any) -> None:
    with pytest.raises(ContractError, match=r"not one of the fields|which is not a string"):
        written_contract({"event": ["said"], "fields": ["mood"], "required": required})


def test_an_event_format_describes_its_text_and_shows_every_field() -> None:
    lines = Output.event(["said"], ["mood"]).instruction().splitlines()
    assert lines[0] == "OUTPUT FORMAT"
    assert "`text` is one or two sentences, vivid and specific." in lines
    assert lines[-1].endswith('"mood": "<mood>"}')


def test_an_event_reports_winner_and_scores_only_where_they_were_written() -> None:
    plain = read('{"kind": "said", "text": "Well."}', Output.event(["said"])).value
    written = read('{"kind": "said", "text": "Well.", "winner": "ada"}', Output.event(["said"])).value
    assert (plain.winner, plain.scores) == (None, {})
    assert plain.model_dump() == {"kind": "said", "text": "Well."}
    assert written.model_dump() == {"kind": "said", "text": "Well.", "winner": "ada"}
