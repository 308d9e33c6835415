"""`aros runs` lists recent runs."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from .conftest import Aros
from .journalled import fill


@pytest.fixture(autouse=True)
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "runs.sqlite")
    monkeypatch.setenv("AROS_JOURNAL", "runs.sqlite")


def test_runs_are_listed_newest_first_with_their_costs(aros: Aros, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    ended = aros("runs")
    header, *lines = ended.stdout.splitlines()
    assert header.split()[:3] == ["run", "pipeline", "status"]
    assert [line.split()[1:3] for line in lines] == [["boats", "degraded"], ["boats", "completed"]]
    assert "22 + 60" in lines[1]


def test_older_runs_are_mentioned(aros: Aros) -> None:
    assert "older" not in aros("runs").stderr
    assert aros("runs", "--limit", "1").stderr == "only the newest run: --limit 10 shows older ones\n"


def test_ids_are_as_long_as_they_must_be_and_find_their_run(aros: Aros) -> None:
    short = aros("runs").stdout.splitlines()[1].split()[0]
    assert len(short) == 8
    assert json.loads(aros("show", short, "--json").stdout)["run_id"].startswith(short)


def test_json_has_times_and_usage(aros: Aros) -> None:
    runs = json.loads(aros("runs", "--json", "--status", "completed").stdout)
    assert [run["status"] for run in runs] == ["completed"]
    assert runs[0]["usage"]["requests"] == 2
    assert runs[0]["started"].endswith("+00:00")


@pytest.mark.parametrize("width", ["40", "80", "200"])
def test_no_line_is_wider_than_the_terminal(aros: Aros, monkeypatch: pytest.MonkeyPatch, width: str) -> None:
    monkeypatch.setenv("COLUMNS", width)
    assert max(map(len, aros("runs").stdout.splitlines())) <= int(width)


def test_old_runs_are_removed_when_asked_to(aros: Aros) -> None:
    assert aros("runs", "--prune", "1d").stderr == "0 runs removed\n"
    ended = aros("runs", "--prune", "0s")
    assert ended.stderr.splitlines() == ["2 runs removed", "no runs yet"]


def test_a_filter_without_matches_is_reported(aros: Aros) -> None:
    ended = aros("runs", "--pipeline", "ships")
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "", "no such runs in the journal\n")


def test_a_status_that_no_run_can_have_is_an_error(aros: Aros) -> None:
    ended = aros("runs", "--status", "faild")
    assert ended.exit_code == 2
    assert (
        "--status 'faild': expected one of completed, degraded, failed, paused, cancelled, running, lost"
        in ended.stderr
    )


@pytest.mark.parametrize(
    ("journal", "words"),
    [("off", "the journal is turned off"), ("elsewhere.sqlite", "there is no journal at elsewhere.sqlite")],
)
def test_without_a_journal_one_sentence_gives_advice(
    aros: Aros, monkeypatch: pytest.MonkeyPatch, journal: str, words: str
) -> None:
    monkeypatch.setenv("AROS_JOURNAL", journal)
    ended = aros("runs")
    assert ended.exit_code == 2
    assert words in ended.stderr
    assert ended.stdout == ""


@pytest.mark.parametrize(
    ("command", "holds"),
    [("runs", "contains no journal"), ("show", "contains no journal"), ("status", "contains no durable runs")],
)
def test_a_command_that_only_reads_leaves_the_database_of_another_program_as_it_is(
    aros: Aros, monkeypatch: pytest.MonkeyPatch, command: str, holds: str
) -> None:
    with closing(sqlite3.connect("shop.sqlite")) as other:
        other.execute("CREATE TABLE orders (id)")
    before = Path("shop.sqlite").read_bytes()
    monkeypatch.setenv("AROS_JOURNAL", "shop.sqlite")
    ended = aros(command, *(["--db", "shop.sqlite"] if command == "status" else []))
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert f"the database sqlite:///shop.sqlite {holds}; is this the right URL?" in ended.stderr
    assert Path("shop.sqlite").read_bytes() == before
    assert [path.name for path in Path().glob("shop.sqlite*")] == ["shop.sqlite"]


def test_an_invalid_time_is_wrong_usage(aros: Aros) -> None:
    ended = aros("runs", "--since", "yesterday")
    assert ended.exit_code == 2
    assert "--since 'yesterday'" in ended.stderr


def test_the_run_that_makes_a_journal_says_where_and_how_to_do_without_and_no_other(
    aros: Aros, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AROS_JOURNAL")
    (tmp_path / "work.py").write_text("def echo(given: str) -> str:\n    return given\n")
    (tmp_path / "b.yaml").write_text("steps:\n  - name: echo\n    uses: work:echo\n")
    command = ("run", "b.yaml", "--input", "x", "--path", ".", "--allow", "work")
    first, second = aros(*command), aros(*command)
    assert (first.exit_code, first.stdout) == (0, "x\n")
    assert first.stderr.count("prompts and replies of runs are recorded in .aros/runs.sqlite") == 1
    assert "AROS_JOURNAL=off" in first.stderr
    assert "AROS_JOURNAL" not in second.stderr
    assert Path(".aros").stat().st_mode & 0o777 == 0o700
