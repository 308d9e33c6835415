"""An ensemble run that is killed anywhere resumes to the same log as an uninterrupted run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from flujo_aros import EventLog, UsageError

PROGRAM = Path(__file__).with_name("program.py")


def killed(url: str, every: int) -> dict[str, Any]:
    command = [sys.executable, str(PROGRAM), url, str(every)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)  # type: ignore[no-any-return]


def holds(found: dict[str, Any], deaths: int) -> None:
    assert found["different"] == []
    assert found["deaths"] >= deaths
    assert found["asked_again"] <= 1  # the call that was under way


@pytest.mark.slow
def test_a_process_that_is_killed_anywhere_resumes_to_the_same_log(tmp_path: Path) -> None:
    holds(killed(f"sqlite:///{tmp_path}/events.sqlite", 1), 60)


@pytest.mark.slow
def test_a_process_that_is_killed_anywhere_resumes_to_the_same_log_in_postgresql(postgres: str) -> None:
    holds(killed(postgres, 1), 60)


def appends(url: str) -> None:
    said = "Grüße \x00 \ud800"
    with EventLog(url, run_id="both") as one, EventLog(url, run_id="both") as other, EventLog(url) as none:
        one.append([("agent.spoke", "owl", {"text": said}, {"cost": 0.5})], turn=1)
        other.append([("user.injected", "user", {"text": "Hm."})], turn=1)
        one.append([("agent.spoke", "owl", {}), ("agent.spoke", "fox", {})], turn=2)
        assert [(event.id, event.actor) for event in other] == [(1, "owl"), (2, "user"), (3, "owl"), (4, "fox")]
        assert (next(iter(other)).text, next(iter(other)).meta) == (said, {"cost": 0.5})
        assert one.append([("agent.spoke", "owl", {})], turn=3, after=3) == ()
        assert len(one.append([("agent.spoke", "owl", {})], turn=3, after=4)) == 1
        assert (len(other), len(none)) == (5, 0)


def test_several_writers_append_to_one_log(tmp_path: Path) -> None:
    appends(f"{tmp_path}/new/events.sqlite")


@pytest.mark.slow
def test_several_writers_append_to_one_log_in_postgresql(postgres: str) -> None:
    appends(postgres)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://me:hunter2@127.0.0.1:1/x", r"//me@127.0.0.1:1/x cannot be reached"),
        ("nosuch://x", "neither SQLite nor PostgreSQL: expected a file, sqlite:///FILE or postgresql://"),
        ("sqlite:////proc/none/x.sqlite", "cannot be created"),
    ],
)
def test_a_database_that_cannot_be_opened_is_named_without_its_password(url: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as raised:
        EventLog(url)
    assert "hunter2" not in str(raised.value)


def test_a_log_is_readable_only_by_its_owner(tmp_path: Path) -> None:
    with EventLog(tmp_path / "log.sqlite") as log:
        log.append([("world.observed", "world", {})], turn=0)
        assert {each.stat().st_mode & 0o777 for each in tmp_path.glob("log.sqlite*")} == {0o600}


def test_a_name_too_long_for_the_database_is_rejected() -> None:
    with pytest.raises(UsageError, match=r"run_id='x+': expected 1 to 64 characters"):
        EventLog(run_id="x" * 65)
    with pytest.raises(UsageError, match=r"kind='x+': expected at most 100 characters"):
        EventLog().append([("x" * 101, "owl", {})], turn=1)
