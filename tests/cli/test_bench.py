"""`aros bench` scores the reader on a user's own corpus."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.reading.captured import agrees, contains, load
from benchmarks.reading.readers import our_reader
from benchmarks.reading.scoring import score
from flujo_aros.cli.read import same

from .conftest import Aros

NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

ROWS: list[dict[str, Any]] = [
    {"id": "plain/right", "input": '{"n": 1}', "schema": NUMBER, "expected": {"n": 1}},
    {"id": "plain/also-right", "input": "{n: 2,}", "schema": NUMBER, "expected": {"n": 0}, "accept": [{"n": 2}]},
    {
        "id": "cut/refuse",
        "input": '{"n": 1, "m": "o',
        "schema": NUMBER,
        "expected": None,
        "must_fail": True,
        "accept": [{"n": 1}],
    },
    {"id": "cut/either", "input": '{"n": 1', "schema": NUMBER, "expected": {"n": 1}, "may_fail": True},
    {"id": "odd/too-much", "input": "one", "schema": NUMBER, "expected": {"n": 1}},
    {"id": "odd/not-what-is-expected", "input": '{"n": 3}', "schema": None, "expected": {"n": 4}},
]

CAPTURED: list[dict[str, Any]] = [
    {"id": "a", "raw": '```json\n{"n": 1}\n```', "schema": NUMBER, "gold": {"n": 1}, "finish_reason": "stop"},
    {"id": "b", "raw": '{"n": 2}', "schema": NUMBER, "gold": {"n": 1}, "finish_reason": "stop"},
    {"id": "c", "raw": '{"n": 2} and then', "schema": NUMBER, "gold": None, "finish_reason": "length"},
    {"id": "d", "raw": '{"n": 2', "schema": NUMBER, "gold": {"n": 2}, "finish_reason": "length"},
]


@pytest.fixture
def corpus(tmp_path: Path) -> str:
    return _written(tmp_path / "cases.jsonl", ROWS)


def _written(file: Path, rows: list[dict[str, Any]]) -> str:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(file)


def test_each_case_counts_in_one_of_four_columns(aros: Aros, corpus: str) -> None:
    result = aros("bench", "reading", corpus, "--json")
    assert result.exit_code == 0
    (scored,) = json.loads(result.stdout)["corpora"]
    assert scored["total"] == {"n": 6, "right": 2, "rightly_refused": 2, "refused": 1, "silently_wrong": 1}
    assert scored["ids"] == {"refused": ["odd/too-much"], "silently_wrong": ["odd/not-what-is-expected"]}
    assert scored["categories"]["plain"] == {
        "n": 2,
        "right": 2,
        "rightly_refused": 0,
        "refused": 0,
        "silently_wrong": 0,
    }


def test_the_table_has_a_row_for_each_category_and_names_wrong_cases(aros: Aros, corpus: str) -> None:
    result = aros("bench", "reading", corpus)
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["cut", "2", "0", "2", "0", "0"] in lines
    assert ["odd", "2", "0", "0", "1", "1"] in lines
    assert "silently wrong, by id: odd/not-what-is-expected" in result.stdout
    assert "rejected although recoverable, by id: odd/too-much" in result.stdout
    assert ["total", "6", "2", "2", "1", "1"] in lines


def test_captured_replies_are_compared_with_the_known_answer_and_the_reply(tmp_path: Path) -> None:
    corpus = load(_written(tmp_path / "c.jsonl", CAPTURED))
    (found,) = score(corpus, [our_reader()], rounds=1, tick=lambda _: None)
    assert (corpus.kind, corpus.totals) == ("captured", {"n": 4, "with_gold": 3, "cut": 2})
    assert found.to_dict(corpus.columns, 0)["total"] == {
        "n": 4,
        "accepted": 3,
        "right": 1,
        "cut_accepted": 1,
        "invented": 0,
    }


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "has no cases"),
        ("{", "line 1: not JSON"),
        ("[]", "line 1: expected an object"),
        ('{"id": "x", "input": 5, "expected": 1}', "line 1: input: input should be a valid string"),
        ('{"id": "x", "input": "5"}', 'line 1: give "expected" or "must_fail": true'),
        ('{"id": "x", "input": "5", "expected": 5, "schema": {"type": "whole"}}', "line 1: invalid JSON Schema"),
        ('{"id": "x", "inptu": "5", "expected": 5}', "line 1: unknown key 'inptu'; did you mean 'input'?"),
        ('{"id": "x", "raw": "5", "schema": {"type": "whole"}}', "line 1: input: field required"),
    ],
)
def test_an_unusable_corpus_is_reported_in_one_sentence_with_its_line(
    aros: Aros, tmp_path: Path, line: str, words: str
) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_text(line, encoding="utf-8")
    result = aros("bench", "reading", str(file))
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stdout == ""


def test_corpus_that_is_not_there_is_wrong_usage(aros: Aros) -> None:
    result = aros("bench", "reading", "no-such.jsonl")
    assert result.exit_code == 2
    assert "CORPUS: cannot read 'no-such.jsonl'" in result.stderr


def test_equality_distinguishes_true_from_one_but_not_one_from_one_point_zero() -> None:
    assert same({"a": [1, "x", None]}, {"a": [1.0, "x", None]})
    assert not same(True, 1)
    assert not same({"a": 1}, {"a": 1, "b": 2})
    assert not same([1], [1, 1])
    assert not same("1", 1)


def test_known_answer_matches_regardless_of_case_and_extra_keys() -> None:
    assert agrees({"name": "ANNA B.", "more": 1, "n": 2.0}, {"name": "Anna B", "n": 2})
    assert not agrees({"name": "Anna"}, {"name": "Anna", "n": 2})
    assert not agrees(["a"], ["a", "b"])


def test_leaf_is_found_escaped_or_not() -> None:
    assert contains('{"a": "caf\\u00e9\\nbar", "n": 5}', {"a": "café\nbar", "n": 5.0, "ok": True})
    assert not contains('{"a": "tea"}', {"a": "coffee"})


def test_a_corpus_without_the_word_before_it_shows_what_to_write(aros: Aros) -> None:
    result = aros("bench", "cases.jsonl")
    assert result.exit_code == 2
    assert "Missing argument 'reading' before 'cases.jsonl'; write `aros bench reading …`" in result.stderr


def test_without_a_corpus_it_is_wrong_usage(aros: Aros) -> None:
    result = aros("bench", "reading")
    assert result.exit_code == 2
    assert "CORPUS" in result.stderr
