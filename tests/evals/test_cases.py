"""Rows and datasets: loading and writing cases."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from pydantic_ai import BinaryImage, ImageUrl

from flujo_aros import Call, UsageError
from flujo_aros.evals import UNLABELLED, Case, CaseFile, evaluate_sync, read_dataset, score, write_dataset

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
def test_a_written_dataset_is_read_back(tmp_path: Path, suffix: str) -> None:
    cases = [
        Case("a", {"n": 1}, "x", {"lang": "de"}, "output.n > 0", {"level": "easy"}),
        Case({"text": "é"}, UNLABELLED, "y"),
        Case(None, None, "z"),
    ]
    file = tmp_path / f"rows{suffix}"
    assert write_dataset(cases, file) == 3
    written = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert (written["name"], written["cases"][0]["inputs"], written["cases"][0]["expected_output"]) == (
        "rows",
        "a",
        {"n": 1},
    )
    one, two, three = read_dataset(file)
    assert (one.input, one.expected, one.id, one.context, one.check) == (
        "a",
        {"n": 1},
        "x",
        {"lang": "de"},
        cases[0].check,
    )
    assert (two.input, two.expected) == ({"text": "é"}, UNLABELLED)
    assert (three.input, three.expected) == (None, None)


def test_a_file_in_the_place_of_the_cases_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"takes the cases first, then the file; 'out\.yaml' is not a list of cases"):
        write_dataset("out.yaml", tmp_path)  # type: ignore[arg-type]  # the mistake


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cases: 3", "so it is not a pydantic-evals dataset"),
        ("cases: [{name: a}]", "case 0 has no `inputs`"),
        ("cases: [{inputs: a, expected: b}]", "case 0 has the key 'expected'; the known keys are name, inputs"),
        ("cases: [", "cannot be read"),
        (
            "cases: [{inputs: a, evaluators: [{Equals: {category: bug}}]}]",
            "case 0: `Equals` has no `value`; write {Equals: {value: …}}",
        ),
    ],
)
def test_an_invalid_dataset_is_reported_with_its_place(tmp_path: Path, text: str, words: str) -> None:
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


def test_a_label_does_not_change_the_mark_of_a_row(tmp_path: Path) -> None:
    marks: list[str] = []
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


def rows_beside(folder: Path, *rows: object) -> list[Case]:
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    with CaseFile(folder / "rows.jsonl") as cases:
        return list(cases)


def test_a_row_names_images_and_texts_in_its_folder_and_addresses(tmp_path: Path) -> None:
    (tmp_path / "photo.png").write_bytes(b"\x89PNG")
    (tmp_path / "letter.txt").write_text("Dear Ann", encoding="utf-8")
    named = {"photo": {"$file": "photo.png"}, "letter": {"$file": "letter.txt"}}
    case, listed, plain = rows_beside(
        tmp_path, named, ["Who?", {"$url": "https://example.com/a.jpg?size=2"}], {"$file": 3, "name": "$url"}
    )
    photo = BinaryImage(b"\x89PNG", media_type="image/png")
    assert case.live_input() == {"photo": photo, "letter": "Dear Ann"}
    assert listed.live_input() == ["Who?", ImageUrl("https://example.com/a.jpg?size=2", media_type="image/jpeg")]
    assert plain.live_input() == {"$file": 3, "name": "$url"}
    assert case.input == named


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"$file": "../secret.txt"}, "is outside"),
        ({"$file": "/etc/hostname"}, "is outside"),
        ({"$file": "link.txt"}, "is outside"),
        ({"$file": "missing.png"}, "cannot read the file 'missing.png'"),
        ({"$file": "noise.bin"}, "is not UTF-8 text"),
        ({"$url": "https://example.com/page"}, "is not the URL of an image"),
        ({"$url": "file:///etc/photo.png"}, "is not the URL of an image"),
    ],
)
def test_a_row_cannot_name_other_files_of_the_machine(tmp_path: Path, named: object, message: str) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    (tmp_path / "secret.txt").write_text("secret", encoding="utf-8")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "noise.bin").write_bytes(b"\xff\xfe\x00")
    (case,) = rows_beside(folder, {"input": [named]})
    with pytest.raises(UsageError, match=re.escape(message)):
        case.live_input()


def test_an_evaluation_stops_before_its_first_call_where_a_file_is_missing(tmp_path: Path) -> None:
    asked: list[str] = []
    with pytest.raises(UsageError, match=re.escape("cannot read the file 'b.png'")):
        evaluate_sync(Call("ask", function=asked.append), [("a", None), Case({"$file": "b.png"}, "b", folder=tmp_path)])
    assert asked == []
