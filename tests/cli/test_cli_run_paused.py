"""A run that waits for a person saves its state, and another command resumes it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from .conftest import Aros

ASKING = """
name: letters
steps:
  - {name: draft, uses: flujo.builtins.wrap_dict, params: {key: text}}
  - {kind: hitl, name: ok, message: "Send {{ previous_step.text }}?", input_schema: {enum: [yes, no]}}
  - kind: conditional
    name: send
    condition_expression: previous_step
    branches:
      yes: [{name: sent, uses: flujo.builtins.wrap_dict, params: {key: sent}}]
      no: [{name: kept, uses: flujo.builtins.stringify}]
"""


@pytest.fixture
def asking(tmp_path: Path) -> str:
    (tmp_path / "letters.yaml").write_text(ASKING, encoding="utf-8")
    return "letters.yaml"


def test_a_paused_run_leaves_its_state_and_says_how_to_resume(aros: Aros, asking: str) -> None:
    ended = aros("run", asking, "-i", "hello", "--state", "state.json")
    assert (ended.exit_code, ended.stdout) == (3, "")
    assert "Send hello?" in ended.stderr
    assert ended.stderr.endswith(
        "ok asks:\nSend hello?\nanswer with yes or no\n\n"
        "continue with:   aros resume state.json --answer TEXT\nfor example:  --answer yes\n"
    )
    gone_on = aros("resume", "state.json", "--answer", "yes")
    assert (gone_on.exit_code, json.loads(gone_on.stdout)) == (0, {"sent": "yes"})
    assert "draft: started" not in gone_on.stderr, "what had ended does not run again"
    assert not Path("state.json").exists()


def test_a_paused_run_is_resumed_by_its_id_a_prefix_or_last(aros: Aros, asking: str) -> None:
    def pause() -> str:
        return str(json.loads(aros("run", asking, "-i", "hello", "--json").stdout)["run_id"])

    assert json.loads(aros("resume", pause(), "--answer", "yes").stdout) == {"sent": "yes"}
    assert json.loads(aros("resume", pause()[:8], "--answer", "yes").stdout) == {"sent": "yes"}
    first, second = pause(), pause()
    os.utime(Path(".aros/paused") / f"{first}.json", (1, 1))
    assert aros("resume", "last", "--answer", "yes").exit_code == 0
    assert [file.stem for file in Path(".aros/paused").iterdir()] == [first], f"{second} was the last one"


def test_last_is_rejected_if_the_last_run_is_not_the_paused_one(
    aros: Aros, asking: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An approval must not go to an older run unnoticed."""
    monkeypatch.setenv("AROS_JOURNAL", "on")
    paused = json.loads(aros("run", asking, "-i", "hello", "--json").stdout)["run_id"]
    plain = "name: plain\nsteps: [{name: kept, uses: flujo.builtins.stringify}]\n"
    Path("plain.yaml").write_text(plain, encoding="utf-8")
    other = json.loads(aros("run", "plain.yaml", "-i", "hello", "--json").stdout)["run_id"]
    ended = aros("resume", "last", "--answer", "yes")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert f"the last run, {other}, is not waiting for an answer" in " ".join(ended.stderr.split())
    assert paused in ended.stderr
    assert not Path("on").exists()
    assert aros("resume", paused, "--answer", "yes").exit_code == 0


@pytest.mark.slow
def test_last_is_the_run_that_paused_last_durable_or_not(
    aros: Aros, asking: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AROS_JOURNAL", "runs.sqlite")

    def pause(*more: str) -> str:
        return str(json.loads(aros("run", asking, "-i", "hello", "--json", *more).stdout)["run_id"])

    def resume() -> str:
        return str(json.loads(aros("resume", "last", "--answer", "yes", "--json").stdout)["run_id"])

    pause()
    assert pause("--durable") == resume()
    pause("--durable")
    assert pause() == resume()


@pytest.mark.slow
@pytest.mark.parametrize("option", [("--model", "test"), ("--profile", "x"), ("--state", "next.json")])
def test_an_option_without_effect_on_a_paused_durable_run_is_an_error(
    aros: Aros, asking: str, option: tuple[str, ...]
) -> None:
    assert aros("run", asking, "-i", "hello", "--durable").exit_code == 3
    ended = aros("resume", "last", "--answer", "yes", *option)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert f"error: {option[0]} has no effect on a durable run" in ended.stderr
    assert aros("resume", "last", "--answer", "yes").exit_code == 0


def test_an_id_prefix_of_several_paused_runs_is_rejected(aros: Aros, asking: str) -> None:
    for name in ("order-1", "order-2"):
        aros("run", asking, "-i", "hello", "--state", f".aros/paused/{name}.json")
    ended = aros("resume", "order", "--answer", "yes")
    assert (ended.exit_code, ended.stderr) == (
        2,
        "error: 2 paused runs begin with 'order': order-1, order-2\n",
    )


def test_a_paused_run_is_not_answered_by_a_prefix_of_under_four_characters(aros: Aros, asking: str) -> None:
    aros("run", asking, "-i", "hello", "--state", ".aros/paused/order-12.json")
    for short in ("", "o", "ord"):
        assert aros("resume", short, "--answer", "yes").exit_code == 2
    assert "a prefix needs at least 4 characters" in aros("resume", "ord", "--answer", "yes").stderr
    assert aros("resume", "orde", "--answer", "yes").exit_code == 0


def test_the_state_of_a_run_that_an_earlier_release_paused_is_refused_in_one_sentence(aros: Aros, asking: str) -> None:
    aros("run", asking, "-i", "hello", "--state", "state.json")
    Path("state.json").write_text(Path("state.json").read_text().replace('"version": 2', '"version": 1'))
    ended = aros("resume", "state.json", "--answer", "yes")
    assert ended.exit_code == 2
    assert "was written by an earlier release of flujo_aros (format 1, this one knows 2)" in ended.stderr


def test_answering_a_run_that_is_not_waiting_is_an_error(aros: Aros) -> None:
    ended = aros("resume", "last", "--answer", "yes")
    assert (ended.exit_code, ended.stderr) == (
        2,
        "error: no run is paused in .aros/paused; pass its state file, or --db for a database\n",
    )


def test_answering_twice_reports_the_status_of_the_run(
    aros: Aros, asking: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both by its id and by its state file, unless the journal does not contain the run."""
    monkeypatch.setenv("AROS_JOURNAL", "runs.sqlite")
    run = json.loads(aros("run", asking, "-i", "hello", "--json").stdout)["run_id"]
    assert aros("resume", run, "--answer", "yes").exit_code == 0
    for state in (run, f".aros/paused/{run}.json"):
        ended = aros("resume", state, "--answer", "yes")
        assert ended.exit_code == 2
        assert f"run {run}, started 2" in ended.stderr
        assert ended.stderr.endswith(f"is completed and not waiting for an answer; `aros show {run}` shows it\n")
    for state in ("state.json", f"{run[:8]}.json"):
        unknown = aros("resume", state, "--answer", "yes")
        assert f"no run '{state}' is paused" in unknown.stderr
        assert "A state file is removed once its run has been answered and has ended" in unknown.stderr
    monkeypatch.setenv("AROS_DB", "sqlite:///durable.sqlite")  # a database of other runs changes nothing
    assert f"run {run}, started 2" in aros("resume", run, "--answer", "yes").stderr


def test_an_answer_that_does_not_fit_leaves_the_run_paused(aros: Aros, asking: str) -> None:
    aros("run", asking, "-i", "hello", "--state", "state.json")
    ended = aros("resume", "state.json", "--answer", "perhaps")
    assert ended.exit_code == 3
    assert "'perhaps'" in ended.stderr
    assert "draft" not in ended.stderr, "only the reason and the question, not the report of the steps before"
    assert aros("resume", "state.json", "--answer", "no").exit_code == 0


PREFERENCES = """
steps:
  - kind: hitl
    name: likes
    message: "What shall it be?"
    input_schema:
      type: object
      required: [theme, size]
      additionalProperties: false
      properties: {theme: {enum: [dark, light]}, size: {type: integer, minimum: 1}}
"""


def test_an_invalid_answer_is_explained_field_by_field_and_asked_again(aros: Aros) -> None:
    Path("likes.yaml").write_text(PREFERENCES)
    aros("run", "likes.yaml", "-i", "x", "--state", "state.json")
    ended = aros("resume", "state.json", "--answer", '{"theme": "drak", "lod": 1}')
    assert ended.exit_code == 3
    assert ended.stderr.endswith(
        """likes asks:
What shall it be?
The answer was not accepted:
  theme: expected one of 'dark', 'light', found 'drak'
  size: the required key 'size' is missing
  lod: the key 'lod' is not allowed here
answer with an object:
  theme  "dark" or "light", required
  size   a whole number, at least 1, required

continue with:   aros resume state.json --answer TEXT
for example:  --answer '{"theme": "dark", "size": 1}'
"""
    )
    untyped = aros("resume", "state.json", "--answer", "dark")
    assert "The answer was not accepted: expected an object, found the string 'dark'\n" in untyped.stderr
    right = aros("resume", "state.json", "--answer", '{"theme": "dark", "size": 1}')
    assert json.loads(right.stdout) == {"theme": "dark", "size": 1}


def test_without_an_answer_and_a_terminal_the_option_is_named(aros: Aros, asking: str) -> None:
    aros("run", asking, "-i", "hello", "--state", "state.json")
    ended = aros("resume", "state.json")
    assert (ended.exit_code, "--answer is required" in ended.stderr) == (2, True)
    assert Path("state.json").is_file()


def test_a_state_file_is_replaced_atomically(aros: Aros, asking: str) -> None:
    aros("run", asking, "-i", "hello", "--state", "state.json")
    before = Path("state.json").stat().st_ino
    aros("resume", "state.json", "--answer", "perhaps")
    assert Path("state.json").stat().st_ino != before
    assert Path("state.json").stat().st_mode & 0o077 == 0
    assert [file.name for file in Path().glob("state*")] == ["state.json"]


def test_a_state_that_is_a_link_stays_a_link(aros: Aros, asking: str) -> None:
    Path("real.json").touch()
    Path("state.json").symlink_to("real.json")
    aros("run", asking, "-i", "hello", "--state", "state.json")
    assert Path("state.json").is_symlink()
    assert json.loads(Path("real.json").read_text())["paused"]["step"] == "ok"


def test_a_resumed_run_reports_the_time_and_the_stages_of_all_its_processes(aros: Aros, asking: str) -> None:
    first = json.loads(aros("run", asking, "-i", "hello", "--state", "state.json", "--json").stdout)
    ended = json.loads(aros("resume", "state.json", "--answer", "yes", "--json").stdout)
    assert ended["steps"][0] == first["steps"][0]


def test_a_run_that_pauses_again_saves_its_state_to_the_given_file(aros: Aros, asking: str) -> None:
    aros("run", asking, "-i", "hello", "--state", "state.json")
    ended = aros("resume", "state.json", "--answer", "perhaps", "--state", "next.json")
    assert ended.exit_code == 3
    assert "aros resume next.json" in ended.stderr
    assert not Path("state.json").exists()
    assert aros("resume", "next.json", "--answer", "no", "--state", "next.json").exit_code == 0
    assert not Path("next.json").exists()


def test_json_has_the_state_and_the_default_file_is_named_after_the_run(aros: Aros, asking: str) -> None:
    document = json.loads(aros("run", asking, "-i", "hello", "--json").stdout)
    assert document["status"] == "paused"
    assert document["paused"]["step"] == "ok"
    assert Path(f".aros/paused/{document['run_id']}.json").is_file()


def test_a_file_that_is_not_a_state_is_a_usage_error(aros: Aros, asking: str) -> None:
    ended = aros("resume", asking, "--answer", "yes")
    assert ended.exit_code == 2
    assert "is not the state of a paused run" in ended.stderr


def test_a_state_is_private_and_left_out_of_git(aros: Aros, asking: str) -> None:
    aros("run", asking, "-i", "hello")
    (state,) = Path(".aros/paused").glob("*.json")
    assert state.stat().st_mode & 0o077 == 0
    assert Path(".aros/.gitignore").read_text() == "*\n"


def test_an_unwritable_state_is_reported_with_advice(aros: Aros, asking: str) -> None:
    Path("file").write_text("")
    ended = aros("run", asking, "-i", "hello", "--state", "file/state.json")
    assert ended.exit_code == 2
    assert "the run has paused, and its state cannot be written to 'file/state.json'" in ended.stderr
