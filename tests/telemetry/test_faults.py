"""Journal failures do not change the result of a run: one clear warning, and no false status."""

from __future__ import annotations

import shutil
import stat
import subprocess
import time
from pathlib import Path

import pytest
from sqlalchemy import text

from flujo_aros import Call, Journal, Pipeline, Runner, RunResult, UsageError
from flujo_aros.telemetry.journal import open_journal

LARGE = "x" * 40_000


def run(journal: Journal, value: str = "x") -> RunResult:
    steps = [Call("echo", function=lambda previous_step: previous_step), Call("count", function=len)]
    return Runner(Pipeline(steps, name="p"), journal=journal).run_sync(value)


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage() for record in caplog.records if record.name in ("flujo_aros.journal", "flujo_aros.database")
    ]


def test_a_full_disk_costs_the_record_and_not_the_run(small_disk: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = small_disk / "runs.sqlite"
    with Journal(file) as journal:
        first = run(journal)
        assert journal.flush()
        filler = small_disk / "filler"
        with filler.open("wb", buffering=0) as full:
            try:
                while True:
                    full.write(b"\0" * 4096)
            except OSError:
                pass
        second = run(journal, LARGE)
        assert (second.status.value, second.output) == ("completed", len(LARGE))
        assert not journal.flush(0.5)
    assert journal.dropped > 0
    said = warnings_of(caplog)
    assert len(said) == 2
    assert "cannot be written: database or disk is full; the run continues" in said[0]
    assert "rows are missing from the journal" in said[1]
    filler.unlink()
    with Journal(file, create=False) as journal:
        assert {each.run_id: each.status for each in journal.runs()} == {first.run_id: "completed"}


def test_rows_that_waited_for_disk_space_are_written_once(small_disk: Path) -> None:
    filler = small_disk / "filler"
    with Journal(small_disk / "runs.sqlite") as journal:
        free = shutil.disk_usage(small_disk).free
        filler.write_bytes(b"\0" * (free - 8192))
        result = run(journal, LARGE)
        assert not journal.flush(0.5)
        filler.unlink()
        assert journal.flush(20)
        assert journal.dropped == 0
        story = journal.story(result.run_id)
    assert [chapter.step and chapter.step.status for chapter in story.chapters] == ["success", "success"]


def test_a_read_only_folder_disables_the_default_journal_and_is_an_error_for_a_named_one(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    monkeypatch.chdir(small_disk)
    assert open_journal(None) is None
    (said,) = warnings_of(caplog)
    assert "Read-only file system" in said
    assert "AROS_JOURNAL=off" in said
    with pytest.raises(UsageError, match="Read-only file system; name a file in another folder"):
        open_journal("runs.sqlite")


def test_a_file_system_that_becomes_read_only_in_the_middle_costs_the_record_only(
    small_disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    journal = Journal(small_disk / "runs.sqlite")
    run(journal)
    assert journal.flush()
    with journal.engine.begin() as connection:
        connection.execute(text("PRAGMA wal_checkpoint(TRUNCATE)"))
    journal.engine.dispose()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    assert run(journal).output == 1
    journal.close()
    assert journal.dropped > 0
    assert any("cannot be written" in said for said in warnings_of(caplog))


@pytest.mark.parametrize("damage", ["overwritten", "truncated"])
def test_a_damaged_file_is_reported_with_advice_and_left_unchanged(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / ".aros" / "runs.sqlite"
    with Journal(file) as journal:
        run(journal, LARGE)
    whole = file.read_bytes()
    file.write_bytes(b"\0" * 4096 + whole[4096:] if damage == "overwritten" else whole[: len(whole) // 3])
    damaged = file.read_bytes()
    with pytest.raises(UsageError, match=r"cannot be opened: .*; move it away to start a new one \(mv "):
        Journal(file)
    assert open_journal(None) is None
    assert len(warnings_of(caplog)) == 1
    assert file.read_bytes() == damaged


def test_a_file_that_is_destroyed_while_it_is_open_costs_the_record_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "runs.sqlite"
    journal = Journal(file)
    run(journal)
    assert journal.flush()
    with journal.engine.begin() as connection:
        connection.execute(text("PRAGMA wal_checkpoint(TRUNCATE)"))
    journal.engine.dispose()
    file.write_bytes(b"no database " * 1000)
    assert run(journal).output == 1
    journal.close()
    assert journal.dropped > 0
    assert any("cannot be written" in said for said in warnings_of(caplog))


def test_a_clock_set_back_keeps_the_order_and_gives_no_negative_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with Journal(tmp_path / "runs.sqlite") as journal:
        before = run(journal).run_id
        newest = max(chapter.step.id for chapter in journal.story(before).chapters if chapter.step)
    now, now_ns = time.time, time.time_ns
    monkeypatch.setattr(time, "time", lambda: now() - 3600)
    monkeypatch.setattr(time, "time_ns", lambda: now_ns() - 3600 * 10**9)
    with Journal(tmp_path / "runs.sqlite") as journal:
        after = run(journal).run_id
        story = journal.story(after)
    (said,) = warnings_of(caplog)
    assert "the clock was set back" in said
    assert story.run.status == "completed"
    assert all(chapter.step and chapter.step.id > newest for chapter in story.chapters)
    assert all(chapter.step and (chapter.step.seconds or 0) >= 0 for chapter in story.chapters)


@pytest.mark.parametrize("tokens", [2**63, 10**30])
def test_figures_that_no_database_holds_do_not_stop_the_journal(tokens: int, journal: Journal) -> None:
    from flujo_aros import Usage, observing
    from flujo_aros.events import AgentFinished, AgentStarted, span

    ended = AgentFinished(
        run_id="a", outcome="accepted", trust="clean", reason=None, usage=Usage(1, tokens, tokens), seconds=0.1
    )
    with observing(journal), span(AgentStarted(run_id="a")) as finish:
        finish(ended)
    assert journal.flush()
    assert [run.usage.input_tokens for run in journal.runs()] == [2**63 - 1]


def test_journal_and_folder_are_for_their_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / ".aros" / "runs.sqlite"
    with Journal(file) as journal:
        run(journal)
        assert journal.flush()
        modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in file.parent.glob("runs.sqlite*")}
    assert modes == {"runs.sqlite": 0o600, "runs.sqlite-wal": 0o600, "runs.sqlite-shm": 0o600}
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_journal_that_an_earlier_version_left_open_to_all_is_closed(tmp_path: Path) -> None:
    file = tmp_path / ".aros" / "runs.sqlite"
    with Journal(file) as journal:
        run(journal)
    file.chmod(0o644)
    file.parent.chmod(0o755)
    with Journal(file, create=False):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_journal_in_a_folder_of_the_user_keeps_its_permissions_and_is_warned_about(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "runs.sqlite"
    with Journal(file):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o644)
    with Journal(file):
        assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert warnings_of(caplog) == [
        f"every user on this machine can read the journal {file}: chmod 600 makes it private"
    ]
