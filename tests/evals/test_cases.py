"""Rows and datasets: what a case is read from, and what it is written as."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from flujo_aros import UsageError
from flujo_aros.evals import UNLABELLED, Case, CaseFile, read_dataset, score, write_dataset

DATASET = """
# yaml-language-server: $schema=tickets_schema.json
name: tickets
cases:
- name: double charge
  inputs: I was charged twice
  metadata: {level: easy}
  expected_output: {category: billing}
- name: outage
  inputs: {text: nothing works, since: 2026-01-02}
  expected_output: null
  evaluators:
  - Equals: {value: {category: bug}}
evaluators:
- EqualsExpected
"""


def test_a_dataset_of_pydantic_evals_is_read(tmp_path: Path) -> None:
    file = tmp_path / "tickets.yaml"
    file.write_text(DATASET, encoding="utf-8")
    one, two = CaseFile(file)
    assert (one.id, one.input, one.expected, one.metadata) == (
        "double charge",
        "I was charged twice",
        {"category": "billing"},
        {"level": "easy"},
    )
    assert (two.input, two.expected) == ({"text": "nothing works", "since": "2026-01-02"}, {"category": "bug"})


@pytest.mark.parametrize("suffix", [".yaml", ".json"])
def test_what_is_written_as_a_dataset_is_read_back(tmp_path: Path, suffix: str) -> None:
    cases = [
        Case("a", {"n": 1}, "x", {"lang": "de"}, "output.n > 0", {"level": "easy"}),
        Case({"text": "é"}, None if suffix == "" else UNLABELLED, "y"),
    ]
    file = tmp_path / f"rows{suffix}"
    assert write_dataset(cases, file) == 2
    written = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert (written["name"], written["cases"][0]["inputs"], written["cases"][0]["expected_output"]) == (
        "rows",
        "a",
        {"n": 1},
    )
    one, two = read_dataset(file)
    assert (one.input, one.expected, one.id, one.context, one.check) == (
        "a",
        {"n": 1},
        "x",
        {"lang": "de"},
        cases[0].check,
    )
    assert (two.input, two.expected) == ({"text": "é"}, UNLABELLED)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cases: 3", "it is not a dataset of pydantic-evals"),
        ("cases: [{name: a}]", "case 0 has no `inputs`"),
        ("cases: [{inputs: a, expected: b}]", "case 0 has the key 'expected'; known are name, inputs"),
        ("cases: [", "cannot be read"),
    ],
)
def test_what_is_no_dataset_is_said_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "rows.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=words):
        CaseFile(file)


def test_rows_are_read_one_at_a_time_and_again(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('"a"\n\n{"input": "b", "expected": null, "check": "output"}\n', encoding="utf-8")
    with CaseFile(file) as cases:
        assert cases.total == 2
        assert [each.input for each in cases] == [each.input for each in cases] == ["a", "b"]
        _, second = cases
    assert (second.expected, second.labelled, second.check) == (None, True, "output")


def test_a_label_does_not_change_what_a_row_ran_on(tmp_path: Path) -> None:
    marks = []
    for row in ({"input": "a"}, {"input": "a", "expected": 1, "check": "True", "metadata": 2}, {"input": "b"}):
        file = tmp_path / "rows.jsonl"
        file.write_text(json.dumps(row) + "\n", encoding="utf-8")
        with CaseFile(file) as cases:
            marks += [each.mark for each in cases]
    assert marks[0] == marks[1] != marks[2]


@pytest.mark.parametrize(
    ("output", "expected", "right"),
    [
        (1, 1.0, True),
        (True, 1, False),
        ("12.50", 12.5, True),
        ("x", 1, False),
        ({"a": None}, {}, True),
        ({}, {"a": None}, True),
        ([1, 2], [1], False),
        ([{"q": 1}], [{"q": 1}], True),
        ("a", "A", False),
        (None, "a", False),
    ],
)
def test_values_are_compared_as_json(output: object, expected: object, right: bool) -> None:
    assert all(each.right for each in score(output, expected)) is right


def test_fields_of_all_items_have_one_place() -> None:
    scores = score({"items": [{"q": 1}, {"q": 2}]}, {"items": [{"q": 1}, {"q": 3}]})
    assert [(each.place, each.right) for each in scores] == [("items[].q", True), ("items[].q", False)]
