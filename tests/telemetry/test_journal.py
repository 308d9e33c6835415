"""The journal: what it stores, for how long, with several writing processes, and after a kill."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from sqlalchemy import Engine, event, text

from flujo_aros import (
    Accepted,
    AgentSpec,
    Agree,
    Aros,
    Call,
    Human,
    Journal,
    Map,
    Parallel,
    Pipeline,
    Runner,
    Step,
    UsageError,
    observing,
)
from flujo_aros.telemetry.formatting import token_words
from flujo_aros.telemetry.journal import Left, Writer, open_journal
from flujo_aros.telemetry.replay import replay
from flujo_aros.telemetry.report import report_html
from flujo_aros.testing import ScriptedModel

from .scripted import BAD, GOOD, MESSY, Boat, boat_agent, boat_step, model, pipeline

ROOT = Path(__file__).parents[2]
FORKS = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
"""Newer Pythons warn of every fork beside a thread; that it goes well here is what is held."""


def call(name: str = "count") -> Call:
    return Call(name, function=lambda previous_step: previous_step)


def test_a_run_is_recorded_step_by_step_with_calls_readings_and_repairs(journal: Journal) -> None:
    result = Runner(pipeline(boat_step("ask", MESSY), call()), observers=[journal]).run_sync("")
    story = journal.story(result.run_id)
    assert (story.run.pipeline, story.run.status, story.run.steps) == ("boats", "completed", 2)
    ask, count = story.chapters
    assert [type(part).__name__ for part in ask.parts] == ["JournalAsk", "JournalReading"]
    assert ask.asks[0].model == "model-ask"
    assert "Which boat?" in ask.asks[0].prompt
    assert ask.readings[0].text == MESSY
    assert ask.readings[0].trust == "inferred"
    assert {repair.code for repair in ask.readings[0].repairs} >= {"quotes", "string-to-number"}
    assert count.parts == ()
    assert count.step is not None
    assert count.step.status == "success"


def test_stages_that_ran_and_stages_that_did_not_are_recorded_with_the_reason(journal: Journal) -> None:
    Runner(pipeline(boat_step("ask", BAD, GOOD)), observers=[journal]).run_sync("")
    stages = {stage.stage: stage for stage in journal.story().chapters[0].stages}
    assert (stages["llm_repair"].because, stages["llm_repair"].outcome, stages["llm_repair"].calls) == (
        "invalid",
        "accepted",
        1,
    )
    passed = [stage for stage in stages.values() if stage.outcome == "skipped"]
    assert all(stage.why for stage in passed)


def test_an_agent_outside_a_step_is_a_run_and_inside_a_step_is_not(journal: Journal) -> None:
    with observing(journal):
        asyncio.run(boat_agent(BAD, GOOD, capabilities=[Aros()]).run("Which boat?"))
    Runner(pipeline(boat_step("ask", GOOD)), observers=[journal]).run_sync("")
    assert [(run.kind, run.pipeline, run.status) for run in journal.runs()] == [
        ("pipeline", "boats", "completed"),
        ("agent", "boats", "completed"),
    ]
    alone = journal.story(journal.runs()[1].run_id)
    assert [chapter.step for chapter in alone.chapters] == [None]
    assert [reading.stage for reading in alone.chapters[0].readings] == ["first", "llm_repair"]


def test_nested_steps_know_their_outer_steps(journal: Journal) -> None:
    branches = {"a": pipeline(boat_step("x", GOOD)), "b": pipeline(boat_step("y", MESSY))}
    Runner(pipeline(Parallel("both", branches=branches), call()), observers=[journal]).run_sync("")
    story = journal.story()
    top = [chapter.name for chapter in story.children()]
    assert top == ["both", "count"]
    both = next(story.children())
    assert both.step is not None
    branches_told = {chapter.name: chapter.step for chapter in story.children(both.step.id)}
    assert sorted(branches_told) == ["both/a", "both/b"]
    inside = [chapter.name for step in branches_told.values() if step for chapter in story.children(step.id)]
    assert sorted(inside) == ["both/a/x", "both/b/y"]


def test_runs_side_by_side_do_not_mix(journal: Journal) -> None:
    async def many() -> None:
        runners = [
            Runner(pipeline(boat_step("ask", 0.01, BAD, 0.01, GOOD), name=f"p{number}"), observers=[journal])
            for number in range(5)
        ]
        await asyncio.gather(*(runner.run("") for runner in runners))

    asyncio.run(many())
    for run in journal.runs():
        chapter = journal.story(run.run_id).chapters[0]
        assert [reading.stage for reading in chapter.readings] == ["first", "llm_repair"]
        assert len(chapter.asks) == 2


def test_a_run_is_found_by_its_beginning_and_as_the_last(journal: Journal) -> None:
    first = Runner(pipeline(call()), observers=[journal]).run_sync("").run_id
    second = Runner(pipeline(call()), observers=[journal]).run_sync("").run_id
    assert journal.story(first[:12]).run.run_id == first
    assert journal.story("last").run.run_id == second
    with pytest.raises(UsageError, match="no run 'zz'"):
        journal.story("zz")
    with pytest.raises(UsageError, match=r"no run '.*' \(a prefix needs at least 4 characters\) in the journal"):
        journal.story(second[:3])
    with pytest.raises(UsageError, match=r"no run 'lst' \(did you mean 'last'\?\) in the journal"):
        journal.story("lst")
    with pytest.raises(UsageError, match="the run id is empty"):
        journal.story("")


def test_a_prefix_of_several_runs_names_them(journal: Journal) -> None:
    for run in ("order-1", "order-2"):
        Runner(pipeline(call()), observers=[journal]).run_sync("", run_id=run)
    with pytest.raises(UsageError, match="more than one run: order-2, order-1"):
        journal.story("order")


def test_an_empty_journal_says_so(journal: Journal) -> None:
    assert journal.runs() == []
    with pytest.raises(UsageError, match="run a blueprint first"):
        journal.story()


def test_long_texts_are_cut_and_odd_ones_kept_as_far_as_they_can_be(tmp_path: Path) -> None:
    odd = '{"name": "\x00\ud800 Ä", "crew": 3}' + " " * 500
    with Journal(tmp_path / "runs.sqlite", max_text=40) as journal:
        Runner(pipeline(boat_step("ask", odd)), observers=[journal]).run_sync("")
        reading = journal.story().chapters[0].readings[0]
    assert len(reading.text) == 40
    assert reading.chars == len(odd)
    assert not reading.whole
    assert "Ä" in reading.text


def test_without_content_no_text_is_kept_and_everything_else_is(tmp_path: Path) -> None:
    with Journal(tmp_path / "runs.sqlite", content=False) as journal:
        Runner(pipeline(boat_step("ask", BAD, MESSY)), observers=[journal]).run_sync("")
        chapter = journal.story().chapters[0]
    assert {reading.text for reading in chapter.readings} == {""}
    assert {ask.prompt for ask in chapter.asks} == {""}
    assert chapter.readings[0].issues[0].code == "type"
    assert {repair.before for repair in chapter.readings[1].repairs} == {""}


def test_old_runs_are_pruned_by_age_and_by_number(journal: Journal) -> None:
    for _ in range(5):
        Runner(pipeline(boat_step("ask", MESSY)), observers=[journal]).run_sync("")
    newest = [run.run_id for run in journal.runs()][:2]
    assert journal.prune(max_runs=2) == 3
    assert [run.run_id for run in journal.runs()] == newest
    assert journal.prune(older_than=timedelta(hours=1)) == 0
    assert journal.prune(older_than=timedelta(0)) == 2
    with journal.engine.connect() as connection:
        for table in ("aros_runs", "aros_steps", "aros_asks", "aros_readings", "aros_repairs", "aros_stages"):
            assert connection.execute(text(f"SELECT count(*) FROM {table}")).scalar() == 0  # noqa: S608


def test_only_so_many_runs_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "runs.sqlite"
    for _ in range(4):
        with Journal(file, max_runs=2) as journal:
            Runner(pipeline(call()), observers=[journal]).run_sync("")
    with Journal(file, max_runs=2) as journal:
        assert len(journal.runs()) == 2


def test_runs_are_filtered_by_time_status_and_pipeline(journal: Journal) -> None:
    Runner(pipeline(call(), name="good"), observers=[journal]).run_sync("")
    Runner(pipeline(boat_step("ask", *[BAD] * 9), name="bad"), observers=[journal]).run_sync("")
    assert [run.pipeline for run in journal.runs(status="degraded")] == ["bad"]
    assert [run.pipeline for run in journal.runs(pipeline="good")] == ["good"]
    assert journal.runs(since=datetime.now(UTC) + timedelta(hours=1)) == []
    assert len(journal.runs(limit=1)) == 1


def test_results_of_stages_are_evidence_for_ladders(journal: Journal) -> None:
    for replies in ([BAD, GOOD], [BAD, BAD, BAD, GOOD]):
        Runner(pipeline(boat_step("ask", *replies)), observers=[journal]).run_sync("")
    fingerprint = journal.story().chapters[0].readings[0].schema_hash
    achieved = journal.evidence().about("model-ask", fingerprint or "", "llm_repair")
    assert (achieved.tries, achieved.successes) == (2, 1)


def test_settings_may_turn_the_journal_off_or_name_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert open_journal("off") is None
    with open_journal(None) as default:  # type: ignore[union-attr]  # it is on
        default.flush()
    assert (tmp_path / ".aros" / "runs.sqlite").exists()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("mysql://me:pw@host/x", "neither SQLite nor PostgreSQL"),
        ("nonsense://", "neither SQLite nor PostgreSQL"),
        ("sqlite://", "needs a file"),
        ("postgresql://me:pw@127.0.0.1:1/x", "cannot be reached"),
        ("/proc/nowhere/runs.sqlite", "cannot be"),
    ],
)
def test_a_journal_that_cannot_be_opened_is_reported_in_one_sentence_without_the_password(url: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as refused:
        Journal(url)
    assert "pw" not in str(refused.value)


def test_a_file_that_is_not_a_journal_is_not_changed(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("not a database " * 100)
    with pytest.raises(UsageError, match="file is not a database"):
        Journal(file)
    assert file.read_text().startswith("not a database")


def test_a_journal_of_a_newer_version_is_not_touched(tmp_path: Path) -> None:
    with Journal(tmp_path / "runs.sqlite") as journal, journal.engine.begin() as connection:
        connection.execute(text("UPDATE aros_journal SET version = 99"))
    with pytest.raises(UsageError, match="later release"):
        Journal(tmp_path / "runs.sqlite")


def test_a_journal_of_an_older_version_gets_the_columns_that_it_lacks(tmp_path: Path) -> None:
    with Journal(tmp_path / "runs.sqlite") as journal:
        Runner(pipeline(call()), observers=[journal]).run_sync("x")
        journal.flush()
        with journal.engine.begin() as connection:
            connection.execute(text("ALTER TABLE aros_steps DROP COLUMN input_trust"))
    with Journal(tmp_path / "runs.sqlite") as journal:
        Runner(pipeline(call()), observers=[journal]).run_sync("x")
        journal.flush()
        chapters = [chapter for run in journal.runs() for chapter in journal.story(run.run_id).chapters]
    emitted = [chapter.step.input_trust for chapter in chapters if chapter.step]
    assert sorted(emitted, key=str) == [None, "clean"]


def test_two_processes_that_upgrade_a_journal_add_a_column_once(tmp_path: Path) -> None:
    file = tmp_path / "runs.sqlite"
    with Journal(file) as journal, journal.engine.begin() as connection:
        connection.execute(text("ALTER TABLE aros_steps DROP COLUMN input_trust"))
    waiting = [file]

    def other_process(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if statement.startswith(("BEGIN", "ALTER")) and waiting:
            with closing(sqlite3.connect(waiting.pop())) as other, other:
                other.execute("ALTER TABLE aros_steps ADD COLUMN input_trust TEXT")

    event.listen(Engine, "before_cursor_execute", other_process)
    try:
        Journal(file).close()
    finally:
        event.remove(Engine, "before_cursor_execute", other_process)
    assert waiting == []


def test_a_run_continues_while_the_journal_cannot_be_written(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Journal(tmp_path / "runs.sqlite") as journal:
        with journal.engine.begin() as connection:
            connection.execute(text("ALTER TABLE aros_runs RENAME TO elsewhere"))
        assert Runner(pipeline(call()), observers=[journal]).run_sync("x").output == "x"
        assert not journal.flush(0.3)
        with journal.engine.begin() as connection:
            connection.execute(text("ALTER TABLE elsewhere RENAME TO aros_runs"))
        assert [run.status for run in journal.runs()] == ["completed"]
    assert "cannot be written" in caplog.text


KILLED = """
    import asyncio, sys
    sys.path.insert(0, {root!r})
    from flujo_aros import Runner
    from flujo_aros.telemetry.journal import Journal
    from tests.telemetry.scripted import GOOD, BAD, boat_step, pipeline

    steps = pipeline(boat_step("quick", BAD, GOOD), boat_step("slow", 60.0, GOOD))
    Runner(steps, observers=[Journal({file!r})]).run_sync("")
"""


@pytest.mark.slow
def test_a_killed_process_loses_only_its_last_moment(tmp_path: Path) -> None:
    file = tmp_path / "runs.sqlite"
    code = textwrap.dedent(KILLED.format(root=str(ROOT), file=str(file)))
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not (file.exists() and _has_slow_step(file)):
            time.sleep(0.1)
        os.kill(process.pid, signal.SIGKILL)
    with Journal(file) as journal:
        story = journal.story()
        assert story.run.status == "lost"
        assert [(chapter.name, chapter.step and chapter.step.status) for chapter in story.chapters] == [
            ("quick", "success"),
            ("slow", "lost"),
        ]
        assert story.chapters[1].asks[0].seconds is None
        assert story.run.usage.requests == journal.runs()[0].usage.requests == len(story.chapters[0].asks)
        assert [run.status for run in journal.runs(status="lost")] == ["lost"]
        health = journal.health(since=datetime.now(UTC) - timedelta(hours=1))
        assert (health.runs, health.steps) == ({"lost": 1}, {"success": 1, "lost": 1})


def _has_slow_step(file: Path) -> bool:
    try:
        with Journal(file, create=False, max_runs=None) as journal:
            runs = journal.runs()
            return bool(runs) and len(journal.story().chapters) == 2 and bool(journal.story().chapters[1].asks)
    except UsageError:
        return False


def _write(file: str, number: int) -> None:
    with Journal(file) as journal:
        for index in range(10):
            Runner(pipeline(boat_step("ask", MESSY), name=f"p{number}-{index}"), observers=[journal]).run_sync("")


@FORKS
def test_several_processes_write_one_journal_at_once(tmp_path: Path) -> None:
    file = str(tmp_path / "new" / "runs.sqlite")
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_write, args=(file, number)) for number in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * 4
    with Journal(file) as journal:
        runs = journal.runs(limit=None)
        assert len({run.pipeline for run in runs}) == 40
        assert all(run.status == "completed" and run.repairs for run in runs)


@FORKS
def test_a_forked_child_writes_its_own_rows(journal: Journal) -> None:
    Runner(pipeline(call(), name="parent"), observers=[journal]).run_sync("")
    journal.flush()

    def child() -> None:
        Runner(pipeline(call(), name="child"), observers=[journal]).run_sync("")
        journal.flush()

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join(30)
    assert process.exitcode == 0
    assert {run.pipeline for run in journal.runs()} == {"parent", "child"}


@pytest.mark.slow
def test_postgresql_holds_the_same_story(postgres: str) -> None:
    with Journal(postgres) as journal:
        journal.prune(older_than=timedelta(0))
        result = Runner(pipeline(boat_step("ask", BAD, MESSY), call()), observers=[journal]).run_sync("")
        odd = boat_step("odd", '{"name": "\x00 Ä", "crew": 3}')
        Runner(pipeline(odd), observers=[journal]).run_sync("")
        story = journal.story(result.run_id)
        assert story.run.usage == result.usage
        assert [reading.stage for reading in story.chapters[0].readings] == ["first", "llm_repair"]
        assert story.chapters[0].readings[1].repairs
        health = journal.health(since=datetime.now(UTC) - timedelta(hours=1), trend=3)
        assert health.usage.requests == result.usage.requests + 1
        assert journal.evidence().table
        assert journal.prune(max_runs=1) == 1


@pytest.mark.slow
def test_postgresql_takes_names_and_keys_that_are_too_long_for_its_indexes(postgres: str) -> None:
    key = "".join(sha256(bytes([number])).hexdigest() for number in range(200))
    agent = Agent(model(json.dumps({key: 1, "name": "Alma", "crew": "3"}), name=key), output_type=Boat)
    with Journal(postgres) as journal:
        step = Step(key, agent=agent, input="Which boat?")
        result = Runner(pipeline(step, name=key), observers=[journal]).run_sync("")
        (chapter,) = journal.story(result.run_id).chapters
        assert chapter.name == key
        assert key in "".join(repair.path for repair in chapter.readings[0].repairs)


def test_a_damaged_journal_is_reported_in_one_sentence(tmp_path: Path) -> None:
    with Journal(tmp_path / "runs.sqlite") as journal:
        Runner(pipeline(call()), observers=[journal]).run_sync("")
        with journal.engine.begin() as connection:
            connection.execute(text("DROP TABLE aros_steps"))
        with pytest.raises(UsageError, match=r"cannot be read: no such table: aros_steps"):
            journal.runs()


def test_an_input_that_is_neither_a_file_nor_a_url_creates_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="the journal cannot be opened at 3: expected a file, sqlite"):
        Journal(3)  # type: ignore[arg-type]  # what types forbid can be given
    assert list(tmp_path.iterdir()) == []


def paused_in_a_branch() -> Pipeline:
    ask = Human("ask", message="Which boat?")
    inner = Pipeline([call("before"), ask, Call("after", function=lambda previous_step: f"took {previous_step}")])
    return pipeline(Parallel("both", branches={"a": inner}), name="asks")


def test_a_run_that_was_answered_no_longer_waits(journal: Journal) -> None:
    paused = Runner(paused_in_a_branch(), journal=journal).run_sync("x")
    waiting = {chapter.name: chapter.step and chapter.step.status for chapter in journal.story().chapters}
    assert waiting == {"both": "paused", "both/a": "paused", "both/a/before": "success", "both/a/ask": "paused"}
    assert paused.paused is not None
    ended = asyncio.run(Runner(paused_in_a_branch(), journal=journal).resume(paused.paused, "Alma"))
    assert ended.status.value == "completed"
    story = journal.story()
    assert [(chapter.name, chapter.step and chapter.step.status) for chapter in story.chapters] == [
        ("both/a/before", "success"),
        ("both", "success"),
        ("both/a", "success"),
        ("both/a/ask", "success"),
        ("both/a/after", "success"),
    ]
    (both,) = story.children()
    (branch,) = story.children(both.step.id if both.step else 0)
    inside = [chapter.name for chapter in story.children(branch.step.id if branch.step else 0)]
    assert inside == ["both/a/before", "both/a/ask", "both/a/after"]
    assert not [chapter for chapter in story.chapters if chapter.step and "waits" in (chapter.step.error or "")]
    ask = next(chapter for chapter in story.chapters if chapter.name == "both/a/ask")
    assert ask.step is not None
    assert (ask.step.input, ask.step.output) == ("Which boat?", "Alma")
    assert story.run.steps == 5
    assert journal.health(since=datetime.now(UTC) - timedelta(hours=1)).steps == {"success": 5, "resumed": 3}


def test_the_time_of_a_run_and_of_its_timeline_is_without_the_pause(journal: Journal) -> None:
    paused = Runner(paused_in_a_branch(), journal=journal).run_sync("x")
    assert paused.paused is not None
    assert journal.story().pauses == ()
    asyncio.run(Runner(paused_in_a_branch(), journal=journal).resume(paused.paused, "Alma"))
    journal.flush()
    with journal.engine.begin() as connection:  # as if the answer had come an hour later
        last = connection.execute(text("SELECT max(id) FROM aros_steps WHERE status = 'resumed'")).scalar_one()
        connection.execute(text("UPDATE aros_steps SET started = started + 3600 WHERE id > :last"), {"last": last})
    story = journal.story()
    assert 3600 < story.paused_seconds < 3700
    assert story.seconds < 3600
    after = next(chapter.step for chapter in story.chapters if chapter.name == "both/a/after")
    assert after is not None
    assert after.started - story.run.started > 3600 > story.since_start(after.started) > 0
    assert "without the 60 min 0 s in which the run was paused" in report_html(story)


def test_the_record_of_a_failed_function_says_where_it_was_raised(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text("def find(order):\n    raise LookupError('no such order')\n")
    monkeypatch.syspath_prepend(tmp_path)
    result = Runner(Call("find", function="shop:find"), journal=journal).run_sync("A-7")
    assert result.step("find").error == "LookupError: no such order"
    step = journal.story().chapters[0].step
    assert step is not None
    assert step.error == "LookupError: no such order (shop.py, line 2)"


def test_the_record_of_an_answer_says_how_it_was_read_but_it_is_no_reply_of_a_model(journal: Journal) -> None:
    asks = pipeline(Human("ask", message="Send it?", input_schema={"type": "boolean"}), name="asks")
    paused = Runner(asks, journal=journal).run_sync("x").paused
    assert paused is not None
    asyncio.run(Runner(asks, journal=journal).resume(paused, "yes"))
    story = journal.story()
    (reading,) = story.chapters[0].readings
    assert (reading.stage, reading.text, reading.trust) == ("answer", "yes", "inferred")
    assert [repair.code for repair in reading.repairs] == ["boolean-word"]
    assert "from the answer" in report_html(story)
    (again,) = replay(story)
    assert isinstance(again.outcome, Accepted) and again.outcome.value is True
    assert journal.health(since=datetime.now(UTC) - timedelta(hours=1)).replies == 0


def test_the_answer_to_contested_readings_is_a_reading_of_the_step(journal: Journal) -> None:
    bill = {"type": "object", "properties": {"paid": {"type": "boolean"}}, "required": ["paid"]}
    reading = Step("read", agent=AgentSpec(model="local:m", output_schema=bill))
    models = ScriptedModel('{"paid": true}', '{"paid": false}')
    step = Agree("bill", reading=reading, wordings=2, contested="person")
    paused = Runner(step, models=models, journal=journal).run_sync("x").paused
    assert paused is not None
    asyncio.run(Runner(step, models=models, journal=journal).resume(paused, '{"paid": "yes"}'))
    (chapter,) = [each for each in journal.story().chapters if each.name == "bill"]
    assert [(reading.stage, reading.text) for reading in chapter.readings] == [("answer", '{"paid": "yes"}')]


def test_a_step_that_paused_for_approvals_has_the_calls_tokens_and_time_of_all_its_attempts(journal: Journal) -> None:
    def reply(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        turn = sum(isinstance(message, ModelResponse) for message in messages)
        return ModelResponse([ToolCallPart("refund", {"order": turn}) if turn < 2 else TextPart("all done")])

    clerk = Agent(FunctionModel(reply), name="clerk")
    clerk.tool_plain(requires_approval=True)(refund)
    desk = pipeline(Map("each", Step("tidy", agent=clerk), iterable_input="input"), name="desk")
    run = Runner(desk, journal=journal).run_sync(["x"])
    for _ in range(2):
        assert run.paused is not None
        run = asyncio.run(Runner(desk, journal=journal).resume(run.paused, "approve"))
    emitted = run.step("each/0/tidy")
    kept = next(chapter for chapter in journal.story().chapters if chapter.name == "each/0/tidy")
    assert kept.step is not None
    assert emitted.usage.requests == len(kept.asks) == 3
    assert kept.step.usage == emitted.usage == run.usage
    assert kept.step.seconds == pytest.approx(emitted.seconds)
    assert kept.step.started <= kept.asks[0].started
    page = report_html(journal.story())
    assert f"step, 3 calls, {token_words(emitted.usage)} tokens" in page


def test_a_run_that_is_resumed_before_its_pause_was_written_no_longer_waits(journal: Journal) -> None:
    begun, written = threading.Event(), threading.Event()

    def slow_database() -> Engine:
        begun.set()
        assert written.wait(60)
        return journal.engine

    ask = pipeline(Human("ask", message="Which boat?"), name="asks")
    Runner(ask, journal=journal).run_sync("x")
    (chapter,) = journal.story().chapters
    assert chapter.step is not None and chapter.step.status == "paused"
    run = journal.runs()[0].run_id
    paused = replace(chapter.step, run_id=run)
    writer = Writer(slow_database, str)
    writer.put(paused, soon=True)
    assert begun.wait(60)
    writer.put(replace(paused, id=paused.id + 1))
    writer.put(Left(run, paused.id + 2))
    writer.put(replace(paused, id=paused.id + 3, status="success"))
    written.set()
    writer.close()
    assert [(chapter.step and chapter.step.status) for chapter in journal.story().chapters] == ["success"]


def refund(order: int) -> str:
    return f"refunded {order}"


KILLED_IN_RESUME = """
    import asyncio, json, os, sys, signal
    sys.path.insert(0, {root!r})
    from flujo_aros import Call, Runner
    from flujo_aros.pipeline.human import Human
    from flujo_aros.telemetry.journal import Journal
    from tests.telemetry.scripted import pipeline

    def die(previous_step):
        if sys.argv[1] == "die":
            journal.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        return previous_step

    steps = pipeline(Human("ask", message="Which?"), Call("use", function=die))
    with Journal({file!r}) as journal:
        runner = Runner(steps, observers=[journal])
        if sys.argv[1] == "start":
            print(json.dumps(runner.run_sync("").paused.to_dict()))
        else:
            asyncio.run(runner.resume(json.load(sys.stdin), "Alma"))
"""


@pytest.mark.slow
def test_steps_of_a_killed_process_are_lost_while_and_after_another_resumes(tmp_path: Path) -> None:
    file = tmp_path / "runs.sqlite"
    code = textwrap.dedent(KILLED_IN_RESUME.format(root=str(ROOT), file=str(file)))

    def process(how: str, given: str = "") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", code, how]
        return subprocess.run(command, input=given, capture_output=True, text=True, check=False, timeout=120)

    state = process("start").stdout
    assert process("die", state).returncode == -signal.SIGKILL
    with Journal(file) as journal:
        assert [run.status for run in journal.runs()] == ["lost"]
    assert process("go on", state).returncode == 0
    with Journal(file) as journal:
        story = journal.story()
        assert story.run.status == "completed"
        emitted = [(chapter.name, chapter.step and chapter.step.status) for chapter in story.chapters]
        assert sorted(emitted) == [("ask", "success"), ("ask", "success"), ("use", "lost"), ("use", "success")]
        health = journal.health(since=datetime.now(UTC) - timedelta(hours=1))
        assert health.steps == {"success": 3, "lost": 1, "resumed": 1}
        with journal.engine.connect() as connection:
            assert connection.execute(text("SELECT count(*) FROM aros_steps WHERE status = 'running'")).scalar() == 0


def test_inputs_and_outputs_of_functions_are_recorded_even_if_they_raise(journal: Journal) -> None:
    def refuse(order: dict[str, object]) -> None:
        raise ValueError("too many")

    double = Call("double", function=lambda previous_step: {"days": int(previous_step) * 2})
    Runner(pipeline(double, Call("check", function=refuse)), journal=journal).run_sync("3")
    first, second = (chapter.step for chapter in journal.story().chapters)
    assert first is not None
    assert second is not None
    assert (first.input, first.output) == ("3", '{"days":6}')
    assert (second.input, second.output) == ('{"days":6}', None)


def test_a_plain_text_reply_is_kept_and_one_that_was_read_is_not_kept_twice(journal: Journal) -> None:
    plain = Step("draft", agent=Agent(model("Dear Ann,"), name="draft"), input="Write.")
    Runner(pipeline(plain, boat_step("ask", GOOD)), journal=journal).run_sync("")
    draft, ask = (chapter.step for chapter in journal.story().chapters)
    assert draft is not None
    assert ask is not None
    assert draft.output == "Dear Ann,"
    assert ask.output is None


def test_function_inputs_and_outputs_are_masked_and_omitted_without_content(tmp_path: Path) -> None:
    give = Call("give", function=lambda previous_step: {"password": "hunter2hunter2", "key": "sk-abcdefghijklmnop"})
    for content in (True, False):
        with Journal(tmp_path / "runs.sqlite", content=content) as journal:
            Runner(pipeline(give, call()), journal=journal).run_sync("with sk-abcdefghijklmnop")
            steps = [chapter.step for chapter in journal.story().chapters if chapter.step]
        kept = " ".join(f"{step.input} {step.output}" for step in steps)
        assert "hunter2" not in kept
        assert "abcdefghijklmnop" not in kept
        assert ("[secret-1]" in kept) is content
