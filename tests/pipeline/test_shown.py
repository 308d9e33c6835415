"""How results are displayed: one line in a console, a table in a notebook."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flujo_aros import (
    AgentSpec,
    Aros,
    Call,
    EventLog,
    Human,
    Journal,
    Ladder,
    Parallel,
    Pipeline,
    Resume,
    Retry,
    Runner,
    RunResult,
    Step,
    StreamReader,
)
from flujo_aros.durable import Durable
from flujo_aros.testing import ScriptedModel, ScriptedModels


def run_of(*replies: str, schema: dict[str, Any] | None = None) -> RunResult:
    step = Step("ask", AgentSpec(model="openai:x", output_schema=schema))
    models = ScriptedModels({"openai:x": ScriptedModel(*replies, then=replies[-1])})
    return Runner(Call("trim", str.strip) >> step, models=models).run_sync("hello")


def test_a_run_is_one_short_line() -> None:
    assert repr(run_of("fine")) == "<RunResult pipeline: completed, clean, 2 steps, 'fine'>"
    long = repr(run_of("word " * 5_000))
    assert len(long) < 200
    assert "\n" not in long


def test_a_run_without_an_output_says_why() -> None:
    shown = repr(Runner(Call("boom", lambda _: 1 / 0)).run_sync())
    assert shown == "<RunResult boom: failed, 1 step, 'ZeroDivisionError: division by zero'>"


def test_a_pause_is_one_short_line() -> None:
    paused = Runner(Human("approve", "Send {{ input }}?")).run_sync("it " * 5_000).paused
    assert len(repr(paused)) < 200
    assert repr(paused).startswith("<PausedRun approve: approve asks 'Send it it")


def test_a_step_is_one_short_line() -> None:
    run = run_of('{"n": 1,}', schema={"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}})
    assert repr(run.step("ask")) == "<StepResult ask: success, lossless, {'n': 1}>"


def test_a_notebook_shows_the_steps_and_the_output_and_nothing_runs_in_it() -> None:
    page = run_of("<script>alert(1)</script>")._repr_html_()
    assert "<b>completed</b>" in page
    assert "<td>trim</td><td>success</td><td>clean</td>" in page
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_a_notebook_shows_how_a_reply_was_repaired_and_only_that() -> None:
    page = run_of("{n: 1}", schema={"type": "object", "required": ["n"]})._repr_html_()
    assert page.count("<details>") == 1
    assert "<summary>ask: how its reply was read</summary>" in page
    assert "unquoted-key" in page


def test_a_notebook_masks_the_secrets_in_errors_and_shows_invisible_characters() -> None:
    def ask(_: object) -> None:
        raise ValueError("no access with sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD\u202e")

    page = Runner(Call("ask", ask)).run_sync()._repr_html_()
    assert "ValueError: no access with [secret-1]" in page
    assert "sk-proj" not in page
    assert "\u202e" not in page
    assert "‹U+202E›" in Runner(Call("echo", str)).run_sync("a\u202eb")._repr_html_()


def test_a_notebook_counts_each_repair_once() -> None:
    inner = Step("ask", AgentSpec(model="openai:x", output_schema={"type": "object", "required": ["n"]}))
    page = Runner(Parallel("both", {"a": inner}), models=ScriptedModel("{n: 1}")).run_sync()._repr_html_()
    assert "<td>both/a</td><td>success</td><td>inferred</td><td>0</td>" in page
    assert "<td>both/a/ask</td><td>success</td><td>inferred</td><td>1</td>" in page


def test_the_repr_of_steps_and_pipelines_shows_the_given_options_on_one_line() -> None:
    ask = Step("ask", AgentSpec(model="openai:x", system_prompt="word " * 5_000), retries=2)
    assert repr(ask.agent).startswith("AgentSpec('openai:x', system_prompt='word word")
    assert repr(ask).startswith("Step('ask', retries=2, agent=AgentSpec('openai:x'")
    assert len(repr(ask)) < 200
    shout = Call("shout", str.upper)
    assert repr(shout) == "Call('shout', function=<method 'upper' of 'str' objects>)"
    assert repr(ask >> shout) == "Pipeline(ask >> shout)"
    assert repr(Pipeline([shout], name="loud")) == "Pipeline(shout, name='loud')"


@pytest.mark.parametrize(
    ("make", "shown"),
    [
        (Aros, "Aros()"),
        (lambda: Aros(int, Ladder(max_calls=3)), "Aros(contract=JsonContract(values=int), ladder=Ladder(max_calls=3))"),
        (lambda: Ladder(stages=(Retry(), Resume(factor=2))), "Ladder(stages=(Retry(), Resume(factor=2.0)))"),
        (lambda: StreamReader(int), "<StreamReader of JsonContract(values=int): 0 characters, open>"),
        (EventLog, "EventLog(run_id='run')"),
    ],
)
def test_the_repr_of_an_object_that_users_construct_shows_what_differs_from_its_defaults(
    make: Callable[[], object], shown: str
) -> None:
    assert repr(make()) == shown


def test_the_repr_of_what_opens_a_database_names_it_without_its_password(tmp_path: Path) -> None:
    with Journal(tmp_path / "runs.sqlite") as journal:
        assert repr(journal) == f"Journal('sqlite:///{tmp_path}/runs.sqlite')"
    with EventLog(tmp_path / "e.sqlite", run_id="wood") as events:
        assert repr(events) == f"EventLog('{tmp_path}/e.sqlite', run_id='wood')"
    shown = repr(Durable("postgresql://me:hunter2-example@db/runs"))
    assert shown.startswith("Durable('postgresql://me:")
    assert "hunter2" not in shown
