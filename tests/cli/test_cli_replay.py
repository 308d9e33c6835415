"""`aros replay`: recorded replies with a different contract or ladder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from flujo_aros import Journal, Runner, load_blueprint
from flujo_aros.testing import ScriptedModel, ScriptedModels

from .conftest import Aros
from .journalled import Boat, boat_step, fill


@pytest.fixture(autouse=True)
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "runs.sqlite")
    monkeypatch.setenv("AROS_JOURNAL", "runs.sqlite")


def repaired(aros: Aros) -> str:
    return json.loads(aros("runs", "--json").stdout)[1]["run_id"]


def test_the_same_contract_gives_the_same_result(aros: Aros) -> None:
    ended = aros("replay", repaired(aros))
    assert ended.exit_code == 0
    assert "accepted, inferred from llm_repair  accepted, inferred from llm_repair" in ended.stdout


def test_it_takes_the_place_of_run_with_the_deps_and_the_input(aros: Aros) -> None:
    """Nothing is run, so they are neither imported nor read."""
    assert aros("replay", repaired(aros), "--deps", "shop:shop", "-i", "@absent.txt").exit_code == 0


def test_another_ladder_is_read_from_a_file(aros: Aros, tmp_path: Path) -> None:
    (tmp_path / "ladder.yaml").write_text("stages: [degrade]\n")
    ended = aros("replay", repaired(aros), "--ladder", "ladder.yaml", "--json")
    (printed,) = json.loads(ended.stdout)
    assert ended.exit_code == 1
    assert printed["now"]["outcome"] == "degraded"
    assert printed["changed"]


def test_another_ladder_may_be_written_inline(aros: Aros) -> None:
    ended = aros("replay", repaired(aros), "--ladder", '{"stages": ["degrade"]}', "--json")
    (printed,) = json.loads(ended.stdout)
    assert printed["now"]["outcome"] == "degraded"
    ended = aros("replay", repaired(aros), "--ladder", '{"stages": ["degrad"]}')
    assert (ended.exit_code, "--ladder" in ended.stderr, "did you mean 'degrade'?" in ended.stderr) == (2, True, True)


def test_an_error_in_the_contract_names_the_option_that_was_given(aros: Aros) -> None:
    ended = aros("replay", repaired(aros), "--contract", "nope.json")
    assert (ended.exit_code, ended.stderr.startswith("error: --contract 'nope.json': there is no such file")) == (
        2,
        True,
    )


def test_another_contract_is_read_from_a_file(aros: Aros, order_schema: str, tmp_path: Path) -> None:
    (tmp_path / "boat.json").write_text('{"type": "object", "required": ["name"]}')
    ended = aros("replay", repaired(aros), "--contract", "boat.json", "--json")
    (printed,) = json.loads(ended.stdout)
    assert ended.exit_code == 0
    assert printed["outcome"]["value"] == {"name": "Alma", "crew": "it is 3"}
    assert (printed["replies_used"], printed["replies_recorded"]) == (1, 2)


def test_an_unrecorded_reply_is_reported_as_missing(aros: Aros, tmp_path: Path) -> None:
    (tmp_path / "ladder.yaml").write_text("[retry]\n")
    ended = aros("replay", repaired(aros), "--ladder", "ladder.yaml")
    assert ended.exit_code == 1
    assert "retry would need a reply that was" in ended.stdout


@pytest.mark.parametrize(
    ("ladder", "words"),
    [
        ("stages: [nothing]", "unknown stage 'nothing'"),
        ("max_calls: many", "max_calls should be an integer"),
        ("a: [", "ladder.yaml:"),
    ],
)
def test_a_ladder_that_cannot_be_used_names_the_place(aros: Aros, tmp_path: Path, ladder: str, words: str) -> None:
    (tmp_path / "ladder.yaml").write_text(ladder)
    ended = aros("replay", repaired(aros), "--ladder", "ladder.yaml")
    assert ended.exit_code in (2, 4)
    assert words in ended.stderr


def test_a_step_that_is_not_there_is_wrong_usage(aros: Aros) -> None:
    ended = aros("replay", "last", "--step", "nosuch")
    assert (ended.exit_code, "has no step 'nosuch'; known: " in ended.stderr) == (2, True)


def test_a_step_without_replies_reports_that(aros: Aros) -> None:
    ended = aros("replay", repaired(aros), "--step", "count")
    assert ended.exit_code == 2
    assert "has no recorded replies" in ended.stderr


def test_unapplied_checks_are_named_and_acceptance_without_them_is_not_a_success(
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
    assert "functions are not in the journal and were not applied: large_crew" in ended.stderr
    assert "a check rejected what is now accepted" in ended.stderr
    assert "accepted, but a check rejected it" in " ".join((ended.stdout + ended.stderr).split())


CHECKED = """\
version: "0.1"
name: bill
agents:
  clerk: {model: "local:x", output_schema: {type: object, properties: {net: {type: number}}, required: [net]}}
steps:
  - {kind: step, name: one, uses: agents.clerk, checks: ["output.net > 10"]}
  - {kind: step, name: two, uses: agents.clerk, checks: ["output.net < 10"]}
"""


def run_bill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, allow: Sequence[str], *replies: str) -> str:
    monkeypatch.setenv("AROS_JOURNAL", str(tmp_path / "bill.sqlite"))
    (tmp_path / "bill.yaml").write_text(text)
    pipeline = load_blueprint(tmp_path / "bill.yaml", allow=allow)
    with Journal(tmp_path / "bill.sqlite") as journal:
        return (
            Runner(pipeline, models=ScriptedModels({"local:x": ScriptedModel(*replies)}), journal=journal)
            .run_sync("")
            .status.value
        )


def test_the_expressions_of_each_step_are_applied_to_its_replies_again(
    aros: Aros, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two steps with the same schema may have different checks."""
    assert run_bill(tmp_path, monkeypatch, CHECKED, (), '{"net": 3}', '{"net": 12}', '{"net": 5}') == "completed"
    ended = aros("replay", "last", "--json")
    printed = json.loads(ended.stdout)
    assert ended.exit_code == 0
    assert [each["now"] for each in printed] == [each["recorded"] for each in printed]
    assert [(each["checks_applied"], each["checks_skipped"]) for each in printed] == [
        (["output.net > 10"], []),
        (["output.net < 10"], []),
    ]
    assert [each["outcome"]["value"] for each in printed] == [{"net": 12}, {"net": 5}]
    assert "not applied" not in aros("replay", "last").stderr


def test_a_reply_that_an_expression_rejects_is_rejected_again(
    aros: Aros, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_bill(tmp_path, monkeypatch, CHECKED, (), *['{"net": 3}'] * 9) == "failed"
    ended = aros("replay", "last")
    assert ended.exit_code == 1
    assert "output.net > 10 does not hold" in ended.stdout
    assert "accepted" not in ended.stdout


def test_a_function_of_a_blueprint_is_applied_where_its_module_is_allowed(
    aros: Aros, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A journal must not cause imports, because someone else may have written it."""
    (tmp_path / "bill_rules.py").write_text('def small(bill):\n    return bill["net"] < 4 or "too much"\n')
    monkeypatch.chdir(tmp_path)
    text = CHECKED.replace('checks: ["output.net > 10"]', 'validators: ["bill_rules:small"]')
    assert run_bill(tmp_path, monkeypatch, text, ["./bill_rules.py"], '{"net": 9}', '{"net": 3}', '{"net": 3}')
    ended = aros("replay", "last", "--json")
    (one, _) = json.loads(ended.stdout)
    assert (ended.exit_code, one["failed_a_check"], one["checks_skipped"]) == (1, True, ["bill_rules:small"])
    assert "were not applied: bill_rules:small; if you trust it, pass --allow bill_rules.py" in aros("replay").stderr
    ended = aros("replay", "last", "--allow", "./bill_rules.py", "--json")
    (one, _) = json.loads(ended.stdout)
    assert (ended.exit_code, one["outcome"]["value"], one["checks_applied"]) == (0, {"net": 3}, ["small"])
