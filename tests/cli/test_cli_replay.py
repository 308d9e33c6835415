"""`aros replay`: recorded replies under another contract or ladder."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from flujo_aros import Journal, Runner

from .conftest import Aros
from .journalled import Boat, boat_step, fill


@pytest.fixture(autouse=True)
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "runs.sqlite")
    monkeypatch.setenv("AROS_JOURNAL", "runs.sqlite")


def mended(aros: Aros) -> str:
    return json.loads(aros("runs", "--json").stdout)[1]["run_id"]


def test_the_same_contract_comes_to_the_same(aros: Aros) -> None:
    ended = aros("replay", mended(aros))
    assert ended.exit_code == 0
    assert "accepted, inferred from llm_repair  accepted, inferred from llm_repair" in ended.stdout


def test_another_ladder_is_read_from_a_file(aros: Aros, tmp_path: Path) -> None:
    (tmp_path / "ladder.yaml").write_text("stages: [degrade]\n")
    ended = aros("replay", mended(aros), "--ladder", "ladder.yaml", "--json")
    (told,) = json.loads(ended.stdout)
    assert ended.exit_code == 1
    assert told["now"]["outcome"] == "degraded"
    assert told["changed"]


def test_another_contract_is_read_from_a_file(aros: Aros, order_schema: str, tmp_path: Path) -> None:
    (tmp_path / "boat.json").write_text('{"type": "object", "required": ["name"]}')
    ended = aros("replay", mended(aros), "--contract", "boat.json", "--json")
    (told,) = json.loads(ended.stdout)
    assert ended.exit_code == 0
    assert told["outcome"]["value"] == {"name": "Alma", "crew": "it is 3"}
    assert (told["replies_used"], told["replies_recorded"]) == (1, 2)


def test_a_reply_that_was_not_recorded_is_said_to_be_missing(aros: Aros, tmp_path: Path) -> None:
    (tmp_path / "ladder.yaml").write_text("[retry]\n")
    ended = aros("replay", mended(aros), "--ladder", "ladder.yaml")
    assert ended.exit_code == 1
    assert "retry would ask for a reply that was" in ended.stdout


@pytest.mark.parametrize(
    ("ladder", "words"),
    [("stages: [nothing]", "$.stages[0]"), ("max_calls: many", "$.max_calls"), ("a: [", "ladder.yaml:")],
)
def test_a_ladder_that_cannot_be_used_names_the_place(aros: Aros, tmp_path: Path, ladder: str, words: str) -> None:
    (tmp_path / "ladder.yaml").write_text(ladder)
    ended = aros("replay", mended(aros), "--ladder", "ladder.yaml")
    assert ended.exit_code in (2, 4)
    assert words in ended.stderr


def test_a_step_without_replies_says_so(aros: Aros) -> None:
    ended = aros("replay", mended(aros), "--step", "count")
    assert ended.exit_code == 2
    assert "has no recorded replies" in ended.stderr


def test_checks_that_are_not_applied_are_named_and_an_acceptance_without_them_is_no_success(
    aros: Aros, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def large_crew(boat: Boat) -> bool:
        return boat.crew > 100

    monkeypatch.setenv("AROS_JOURNAL", str(tmp_path / "checked.sqlite"))
    step = replace(boat_step(*['{"name": "Alma", "crew": 3}'] * 9), checks=[large_crew])
    with Journal(tmp_path / "checked.sqlite") as journal:
        assert Runner(step, journal=journal).run_sync("").status.value != "completed"
    ended = aros("replay", "last")
    assert ended.exit_code == 1
    assert "checks are not in the journal and were not applied: large_crew" in ended.stderr
    assert "a check rejected what is accepted now" in ended.stderr
    assert "accepted, but a check rejected it" in " ".join((ended.stdout + ended.stderr).split())
