"""`aros explain` explains the result of a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic_ai import Agent

from flujo_aros import Ensemble, Journal, Processing, Runner, Step
from flujo_aros.testing import ScriptedModel

from .conftest import Aros
from .journalled import boat_step, fill


@pytest.fixture(autouse=True)
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "runs.sqlite")
    monkeypatch.setenv("AROS_JOURNAL", "runs.sqlite")


def repaired(aros: Aros) -> str:
    return json.loads(aros("runs", "--json").stdout)[1]["run_id"]


def test_each_stage_reports_its_reason_and_its_result(aros: Aros) -> None:
    printed = aros("explain").stdout
    assert "llm_repair ran because the reply was invalid; it ended rejected, after 1 call" in printed
    assert "degrade ran because the reply was invalid; it ended degraded, with text in place of a value" in printed
    assert "1  $.crew: expected a whole number, found the string 'it is 3'" in printed


def test_a_failed_step_does_not_repeat_the_issue_of_its_last_reply(aros: Aros, tmp_path: Path) -> None:
    with Journal(tmp_path / "runs.sqlite") as journal:
        agent = Agent(ScriptedModel('{"name": "Alma", "crew": "many"}'))
        step = Step("boat", agent, dict[str, int], processing=Processing(enforcement="validate"))
        Runner(step, observers=[journal]).run_sync("")
    printed = aros("explain").stdout
    assert "boat: failed" in printed
    assert printed.count("expected a whole number, found the string 'many'") == 1


def test_the_calls_of_an_ensemble_are_under_their_agents_and_turns(aros: Aros, tmp_path: Path) -> None:
    owl = {
        "name": "owl",
        "persona": "You are an owl.",
        "subscribes_to": ["run.started"],
        "may_emit": ["agent.spoke"],
        "schedule": {"tick_every": 1},
    }
    event = '{"kind": "agent.spoke", "text": "Who walks there at this hour?", "to": []}'
    with Journal(tmp_path / "runs.sqlite") as journal:
        cast = Ensemble("wood", cast=[owl], turns=1)
        Runner(cast, models=ScriptedModel(event), observers=[journal]).run_sync("Dusk.")
    assert "\n  owl, turn 1\n  asked: You are owl" in aros("explain").stdout
    assert "wood, owl, turn 1" in aros("replay").stdout.replace("\n", " ")
    assert [each["turn"] for each in json.loads(aros("replay", "--json").stdout)] == ["owl, turn 1"]


def test_repairs_are_marked_in_the_reply_with_their_explanations(aros: Aros) -> None:
    printed = aros("explain", repaired(aros), "ask").stdout
    assert "Sure: {'name': 'Alma', 'crew': '3',}" in printed
    assert "^" in printed
    assert "string to number" in printed


def test_the_place_that_cannot_be_read_is_marked(aros: Aros, tmp_path: Path) -> None:
    with Journal(tmp_path / "runs.sqlite") as journal:
        Runner(boat_step(*['{"name": "Alma", "crew": }'] * 9), observers=[journal]).run_sync("")
    lines = aros("explain").stdout.splitlines()
    reply = next(number for number, line in enumerate(lines) if '"crew": }' in line)
    assert lines[reply + 1].rstrip().endswith("^")
    assert lines[reply + 1].index("^") == lines[reply].index("}")


def test_a_step_without_model_calls_reports_that(aros: Aros) -> None:
    printed = aros("explain", repaired(aros), "count").stdout
    assert printed.startswith("count: success")
    assert "No model was called." in printed


def test_advice_is_shown_for_a_step_without_a_value(aros: Aros) -> None:
    assert "Say in the prompt what the named fields must look like" in aros("explain").stdout.replace("\n  ", " ")


def test_a_step_that_is_not_there_is_wrong_usage_and_names_those_that_are(aros: Aros) -> None:
    ended = aros("explain", repaired(aros), "reply")
    assert ended.exit_code == 2
    assert "has no step 'reply'; known: ask, count" in ended.stderr
    assert "has no step 'cuont'; did you mean 'count'?" in aros("explain", repaired(aros), "cuont").stderr


def test_the_prompt_is_shown_before_the_answer(aros: Aros) -> None:
    lines = [line.strip() for line in aros("explain", repaired(aros), "ask").stdout.splitlines()]
    asked = next(number for number, line in enumerate(lines) if line.startswith("asked: "))
    assert "model-ask answered in" in lines[asked + 1]
