"""`aros run --input-jsonl`: every row is a run, none stops another, and none runs twice."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from .conftest import Aros, Ended

SHOP = """
    def shout(text):
        with open("asked.txt", "a") as file:
            file.write(f"{text}\\n")
        if text == "bad":
            raise ValueError("no such order")
        return {"text": text.upper()}
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder with a blueprint of one function, and a module with that function."""
    (tmp_path / "shop.py").write_text(dedent(SHOP), encoding="utf-8")
    text = 'steps: [{name: s, uses: "shop:shout", input: "{{ input }}{{ context.mark | default(\'\') }}"}]'
    (tmp_path / "shop.yaml").write_text(text, encoding="utf-8")
    return tmp_path


def batch(aros: Aros, *lines: str, extra: tuple[str, ...] = ()) -> Ended:
    Path("rows.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return aros("run", "shop.yaml", "--allow", "shop", "--input-jsonl", "rows.jsonl", "-o", "out.jsonl", *extra)


def results() -> dict[Any, dict[str, Any]]:
    lines = Path("out.jsonl").read_text(encoding="utf-8").splitlines()
    return {document["row"]: document for document in map(json.loads, lines)}


def asked() -> list[str]:
    return sorted(Path("asked.txt").read_text().split())


def test_each_row_is_a_line_with_the_document_of_its_run(aros: Aros, shop: Path) -> None:
    ended = batch(
        aros, '"ann"', '{"id": "b-7", "input": "bob", "context": {"mark": "!"}}', "", '{"id": 3, "input": "cy"}'
    )
    assert (ended.exit_code, ended.stdout) == (0, "")
    assert "all 3 rows completed" in ended.stderr
    assert {row: found["output"]["text"] for row, found in results().items()} == {0: "ANN", "b-7": "BOB!", 3: "CY"}
    assert list(results()[0])[:4] == ["row", "run_id", "blueprint", "status"]


def test_a_row_that_fails_or_is_no_json_stops_no_other(aros: Aros, shop: Path) -> None:
    ended = batch(aros, '"bad"', "{not json", '{"input": "x", "context": 3}', '"good"', extra=("--concurrency", "2"))
    assert ended.exit_code == 1
    assert "1 completed, 3 not" in ended.stderr
    found = results()
    assert {row: each["status"] for row, each in found.items()} == {
        0: "failed",
        1: "failed",
        2: "failed",
        3: "completed",
    }
    assert "no such order" in found[0]["error"]["message"]
    assert "line 2 is not JSON" in found[1]["error"]["message"]
    assert found[1].keys() == found[3].keys()


def test_a_slip_in_the_keys_of_a_row_is_said_and_other_keys_are_data(aros: Aros, shop: Path) -> None:
    ended = batch(aros, '{"input": "a", "contxt": {}}', '{"input": "b", "expected": "B"}', '{"contxt": 1}')
    found = results()
    assert found[0]["error"]["message"] == "unknown key 'contxt' beside `input`; did you mean 'context'?"
    assert [found[row]["status"] for row in (1, 2)] == ["completed", "completed"]
    assert found[1]["output"] == {"text": '{"INPUT": "B", "EXPECTED": "B"}'}
    assert ended.exit_code == 1


def test_rows_that_are_there_already_do_not_run_again(aros: Aros, shop: Path) -> None:
    assert batch(aros, '"a"', '"bad"').exit_code == 1
    again = batch(aros, '"a"', '"bad"', '"c"')
    assert "2 rows of 3 in out.jsonl already" in again.stderr
    assert again.exit_code == 1, "a row that failed before still counts"
    assert sorted(asked()) == ["a", "bad", "c"]


def test_a_line_that_a_killed_process_left_unfinished_is_run_again(aros: Aros, shop: Path) -> None:
    batch(aros, '"a"', '"b"', extra=("--concurrency", "1"))
    whole = Path("out.jsonl").read_bytes()
    Path("out.jsonl").write_bytes(whole[:-20])
    assert batch(aros, '"a"', '"b"').exit_code == 0
    assert asked() == ["a", "b", "b"]
    assert sorted(results()) == [0, 1]


@pytest.mark.parametrize(
    ("lines", "extra", "words"),
    [
        (('{"id": 1, "input": "a"}', '{"id": 1, "input": "b"}'), (), "rows 0 and 1 have the same id 1"),
        (('"a"',), ("--input", "x"), "stands in place of --input"),
    ],
)
def test_what_cannot_be_run_is_said_before_anything_runs(
    aros: Aros, shop: Path, lines: tuple[str, ...], extra: tuple[str, ...], words: str
) -> None:
    ended = batch(aros, *lines, extra=extra)
    assert ended.exit_code == 2
    assert words in ended.stderr
    assert not Path("asked.txt").exists()


def test_an_output_that_is_something_else_is_left_alone(aros: Aros, shop: Path) -> None:
    Path("out.jsonl").write_text("my notes\n")
    assert "line 1 of 'out.jsonl' is no result of a batch" in batch(aros, '"a"').stderr
    assert Path("out.jsonl").read_text() == "my notes\n"
