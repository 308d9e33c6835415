"""`aros show` prints a run as a tree with timing bars."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flujo_aros import Call, Journal, Parallel, Pipeline, Runner

from .conftest import Aros
from .journalled import fill


@pytest.fixture(autouse=True)
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "runs.sqlite")
    monkeypatch.setenv("AROS_JOURNAL", "runs.sqlite")


def repaired(aros: Aros) -> str:
    return json.loads(aros("runs", "--json").stdout)[1]["run_id"]


def test_the_last_run_is_shown_with_steps_calls_readings_and_stages(aros: Aros) -> None:
    lines = aros("show").stdout.splitlines()
    assert lines[0].startswith("boats  degraded")
    printed = [line.split("  ")[0] if not line.startswith(" ") else line.strip().split("  ")[0] for line in lines[4:]]
    assert printed[:4] == ["ask", "call 1 model-ask", "asked", "read"]
    assert printed[4:6] == ["reply", "llm_repair"]
    assert printed[-3:-1] == ["degrade", ""]
    assert printed[-1].startswith("ask: invalid: ")


def test_bars_show_when_something_was_under_way(aros: Aros) -> None:
    lines = {line.split()[0]: line for line in aros("show", repaired(aros)).stdout.splitlines()[3:]}
    assert lines["ask"].count("█") > lines["count"].count("█") >= 1
    assert lines["count"].index("█") > lines["ask"].rindex("█") - 2


def test_steps_alone_are_shown_without_calls(aros: Aros) -> None:
    lines = aros("show", repaired(aros), "--steps").stdout.splitlines()[4:]
    assert [line.split()[0] for line in lines] == ["ask", "count"]


def test_json_has_everything_the_journal_has(aros: Aros) -> None:
    printed = json.loads(aros("show", repaired(aros), "--json").stdout)
    ask, count = printed["steps"]
    assert [reading["outcome"] for reading in ask["readings"]] == ["rejected", "accepted"]
    assert ask["readings"][0]["issues"][0]["path"] == "$.crew"
    assert ask["asks"][0]["usage"]["requests"] == 1
    assert ask["stages"][0]["stage"] == "llm_repair"
    assert count["status"] == "success"


@pytest.mark.parametrize("width", ["50", "80", "160"])
def test_no_line_of_the_tree_is_wider_than_the_terminal(
    aros: Aros, monkeypatch: pytest.MonkeyPatch, width: str
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    lines = aros("show", repaired(aros)).stdout.splitlines()[2:]
    assert max(map(len, lines)) <= int(width)


def test_a_run_that_is_not_there_is_wrong_usage(aros: Aros) -> None:
    ended = aros("show", "nothing")
    assert ended.exit_code == 2
    assert "there is no run 'nothing' in the journal" in ended.stderr


@pytest.mark.parametrize("command", ["runs", "show", "explain", "health", "replay"])
def test_no_line_is_wider_than_the_terminal(aros: Aros, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    printed = aros(command).stdout
    assert printed.strip()
    assert [line for line in printed.splitlines() if len(line) > 80] == []


def test_the_input_and_output_of_a_function_are_shown_and_explained(
    aros: Aros, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "runs.sqlite"
    monkeypatch.setenv("AROS_JOURNAL", str(file))
    with Journal(file) as journal:
        double = Call("double", function=lambda previous_step: {"days": int(previous_step) * 2})
        inner = Pipeline([double], name="inner")
        Runner(Pipeline([Parallel("both", branches={"a": inner, "b": inner})], name="p"), journal=journal).run_sync("3")
    shown = aros("show", "last").stdout
    assert "input" in shown
    assert '{"days":6}' in shown
    assert 'output: {"days":6}' in aros("explain", "last", "both/a/double").stdout
    steps = json.loads(aros("show", "last", "--json").stdout)["steps"]
    assert [each["name"] for each in steps if each["output"] is None] == ["both/a", "both/b"]
    assert 'output: {"a":{"days":6},"b":{"days":6}}' in aros("explain", "last", "both").stdout
    assert "input: 3" in aros("explain", "last", "a").stdout
    several = aros("explain", "last", "double")
    assert several.exit_code == 2
    assert "more than one step 'double': both/a/double, both/b/double" in several.stderr
    assert 'aria-label="Output">{&#34;days&#34;:6}</pre>' in aros("report", "last", "-o", "-").stdout


PAUSING = """
steps:
  - name: route
    kind: conditional
    condition_expression: "input == 'a'"
    branches:
      "true": [{kind: hitl, name: ask, message: "Send it?"}]
"""


def test_the_question_of_a_paused_run_is_printed_once(aros: Aros) -> None:
    Path("route.yaml").write_text(PAUSING, encoding="utf-8")
    assert aros("run", "route.yaml", "-i", "a").exit_code == 3
    shown = aros("show").stdout
    assert shown.count("waits for an answer") == 1
    assert shown.endswith("route/true/ask: waits for an answer: Send it?\n")


def test_a_question_of_several_lines_is_shown_completely(aros: Aros, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AROS_JOURNAL", "sqlite:///runs.sqlite")
    blueprint = 'steps: [{kind: hitl, name: sure, message: "The agent wants to call:\\n  refund(amount=40)"}]'
    Path("ask.yaml").write_text(blueprint)
    assert aros("run", "ask.yaml", "--input", "x").exit_code == 3
    shown = aros("show", "last").stdout
    assert "waits for an answer: The agent wants to call: refund(amount=40)" in " ".join(shown.split())
