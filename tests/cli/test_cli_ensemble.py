"""`aros ensemble`: errors for logs and blueprints that it cannot use."""

from __future__ import annotations

import json
from pathlib import Path

from flujo_aros import EventLog

from .conftest import Aros

BLUEPRINT = """
version: "0.1"
name: wood
agents: {small: {model: "local:smollm2"}}
steps:
  - kind: ensemble
    name: wood
    profiles: {default: small}
    stop_on: [judge.verdict]
    cast:
      - {name: owl, persona: An owl., subscribes_to: [run.started], may_emit: [owl.said]}
      - {name: judge, persona: A judge., subscribes_to: [owl.said], may_emit: [judge.verdict]}
"""


def played(file: Path) -> None:
    """Write the log of a finished run."""
    with EventLog(file) as log:
        log.append([("run.started", "conductor", {"text": "dusk"})], turn=0)
        log.append([("owl.said", "owl", {"text": "The lamps are lit."})], turn=1)
        log.append([("run.finished", "conductor", {"reason": "quiet", "missing": ["judge.verdict"]})], turn=2)


def test_a_log_with_an_ended_run_is_shown_without_any_call(aros: Aros, tmp_path: Path) -> None:
    (tmp_path / "wood.yaml").write_text(BLUEPRINT)
    played(tmp_path / "wood.sqlite")
    ended = aros("ensemble", "wood.yaml", "--turns", "9", "--log", "wood.sqlite")
    assert ended.exit_code == 0, ended.stderr
    assert "wood.sqlite already contains this run, which has ended, so no model was called" in ended.stderr
    value = json.loads(ended.stdout)
    assert (value["reason"], value["turns"], value["missing"]) == ("quiet", 2, ["judge.verdict"])


def test_an_input_that_no_agent_sees_is_reported(aros: Aros, tmp_path: Path) -> None:
    (tmp_path / "wood.yaml").write_text(BLUEPRINT.replace("run.started", "user.injected"))
    played(tmp_path / "wood.sqlite")
    told = "--input: no agent in the cast sees the input"
    assert told in aros("ensemble", "wood.yaml", "--log", "wood.sqlite", "--input", "A clearing at dusk.").stderr
    assert told not in aros("ensemble", "wood.yaml", "--log", "wood.sqlite").stderr


def test_the_log_of_a_finished_run_needs_no_weights(aros: Aros, tmp_path: Path) -> None:
    """A finished run makes no model call, so no weights are needed; a run with turns left needs them."""
    (tmp_path / "wood.yaml").write_text(BLUEPRINT.replace("smollm2", "./missing.gguf"))
    played(tmp_path / "wood.sqlite")
    assert aros("ensemble", "wood.yaml", "--log", "wood.sqlite").exit_code == 0
    begun = aros("ensemble", "wood.yaml", "--log", "new.sqlite")
    assert (begun.exit_code, "missing.gguf" in begun.stderr) == (1, True), begun.stderr
    with EventLog(tmp_path / "short.sqlite") as log:
        log.append([("run.started", "conductor", {"text": "dusk"})], turn=0)
        log.append([("run.finished", "conductor", {"reason": "turns"})], turn=2)
    assert "missing.gguf" in aros("ensemble", "wood.yaml", "--turns", "3", "--log", "short.sqlite").stderr


def test_a_blueprint_without_an_ensemble_is_sent_to_aros_run(aros: Aros, tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text('version: "0.1"\nsteps: [{kind: hitl, name: ask, message: "Well?"}]\n')
    ended = aros("ensemble", "one.yaml")
    assert ended.exit_code == 2
    assert "'one.yaml' has no step of `kind: ensemble`; run it with `aros run`" in ended.stderr


def test_a_run_that_pauses_is_resumed_with_the_options_it_was_started_with(aros: Aros, tmp_path: Path) -> None:
    (tmp_path / "wood.yaml").write_text(BLUEPRINT + '  - {kind: hitl, name: ask, message: "Well?"}\n')
    played(tmp_path / "wood.sqlite")
    paused = aros("ensemble", "wood.yaml", "--turns", "9", "--log", "wood.sqlite", "--no-reflection")
    assert (paused.exit_code, "ask asks:\nWell?" in paused.stderr) == (3, True), paused.stderr
    (state,) = (tmp_path / ".aros" / "paused").iterdir()
    ended = aros("resume", str(state), "--answer", "fine")
    assert (ended.exit_code, ended.stdout) == (0, "fine\n"), ended.stderr
