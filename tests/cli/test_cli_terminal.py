"""`aros run` in a real terminal: a live display on it, and only the result on stdout."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from .conftest import COMMAND

STEPS = """
import time

def slowly(text):
    print("heard:", text)
    time.sleep(0.5)
    return {"heard": text}
"""


def run_in_terminal(folder: Path, environment: Mapping[str, str], **more: str) -> tuple[str, str]:
    """Return what `aros run` wrote to a piped stdout, and to a terminal as its stderr."""
    (folder / "steps.py").write_text(STEPS)
    step = {"name": "listen", "uses": "steps:slowly", "input": "{{ input }}"}
    (folder / "one.yaml").write_text(json.dumps({"version": "0.1", "name": "one", "steps": [step]}))
    ours, theirs = pty.openpty()
    command = [*COMMAND, "run", "one.yaml", "--allow", "steps.py", "-i", "hello"]
    env = {**environment, "TERM": "xterm-256color", **more}
    with subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=theirs, text=True) as process:
        os.close(theirs)
        shown = b""
        while piece := _some(ours):
            shown += piece
        assert process.stdout is not None
        stdout = process.stdout.read()
    os.close(ours)
    assert process.returncode == 0
    return stdout, shown.decode()


def _some(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # the other side is closed
        return b""


def test_the_live_display_is_on_the_terminal_and_the_result_on_stdout(
    tmp_path: Path, environment: Mapping[str, str]
) -> None:
    stdout, shown = run_in_terminal(tmp_path, environment)
    assert json.loads(stdout) == {"heard": "hello"}
    assert "running" in shown
    assert "heard: hello" in shown, "what a step prints stands above the display"
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l"), "the cursor is shown again"
    assert "\x1b[32msuccess" in shown


ASKING = """
steps:
  - {kind: hitl, name: ok, message: "Send {{ input }}?", input_schema: {enum: [yes, no]}}
  - {kind: hitl, name: to, message: To whom?}
"""


def resume_in_terminal(
    folder: Path, environment: Mapping[str, str], typed: list[bytes], *options: str
) -> tuple[int, str, str]:
    """Run `aros resume` and type these lines; return the exit code, stdout, and the terminal output."""
    pause(folder, environment, "--state", "state.json")
    return typed_in_terminal(folder, environment, typed, "resume", "state.json", *options)


def pause(folder: Path, environment: Mapping[str, str], *options: str) -> None:
    """Start a run that waits for an answer."""
    (folder / "ask.yaml").write_text(ASKING)
    run = [*COMMAND, "run", "ask.yaml", "-i", "it", *options]
    assert subprocess.run(run, cwd=folder, env=dict(environment), capture_output=True, check=False).returncode == 3


def typed_in_terminal(
    folder: Path, environment: Mapping[str, str], typed: list[bytes], *words: str
) -> tuple[int, str, str]:
    """Run `aros` and type these lines; return the exit code, stdout, and the terminal output."""
    ours, theirs = pty.openpty()
    command = [*COMMAND, *words]
    env = {**environment, "TERM": "dumb"}
    with subprocess.Popen(command, cwd=folder, env=env, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        while piece := _some(ours):
            shown += piece
            if shown.endswith(b"> ") and typed:
                os.write(ours, typed.pop(0))
        assert process.stdout is not None
        stdout = process.stdout.read().decode()
    os.close(ours)
    return process.returncode, stdout, shown.decode().replace("\r\n", "\n")


@pytest.mark.slow
def test_in_a_terminal_the_question_is_repeated_until_the_answer_fits(
    tmp_path: Path, environment: Mapping[str, str]
) -> None:
    code, stdout, shown = resume_in_terminal(tmp_path, environment, [b"perhaps\n", b"\n", b"yes\n", b"Ann\n"])
    assert (code, stdout) == (0, "Ann\n")
    assert shown.count("ok asks:\nSend it?\n") == 2
    assert "The answer was not accepted: expected one of 'yes', 'no', found 'perhaps'\nanswer with yes or no\n" in shown
    assert "to asks:\nTo whom?\n> " in shown
    assert not (tmp_path / "state.json").exists()


@pytest.mark.slow
def test_who_does_not_answer_loses_nothing(tmp_path: Path, environment: Mapping[str, str]) -> None:
    code, stdout, shown = resume_in_terminal(tmp_path, environment, [b"yes\n", b"\x04"])
    assert (code, stdout) == (3, "")
    assert shown.endswith("the run is still waiting; its state is in state.json\n")
    assert json.loads((tmp_path / "state.json").read_text())["paused"]["step"] == "to"


@pytest.mark.slow
def test_a_state_that_has_moved_is_reported_and_kept(tmp_path: Path, environment: Mapping[str, str]) -> None:
    moved = ("--state", "next.json")
    _, _, shown = resume_in_terminal(tmp_path, environment, [b"yes\n", b"\x04"], *moved)
    assert shown.endswith("the run is still waiting; its state is in next.json\n")
    assert json.loads((tmp_path / "next.json").read_text())["paused"]["step"] == "to"
    code, _, _ = resume_in_terminal(tmp_path, environment, [b"yes\n", b"Ann\n"], *moved)
    assert (code, sorted(tmp_path.glob("*.json"))) == (0, [])


@pytest.mark.slow
def test_the_question_of_a_durable_run_is_asked_in_a_terminal_too(
    tmp_path: Path, environment: Mapping[str, str]
) -> None:
    pytest.importorskip("dbos", reason="dbos is not installed: pip install 'flujo_aros[durable]'")
    pause(tmp_path, environment, "--durable")
    code, stdout, shown = typed_in_terminal(tmp_path, environment, [b"perhaps\n", b"yes\n", b"\x04"], "resume", "last")
    assert (code, stdout) == (3, "")
    assert shown.count("ok asks:\nSend it?\n") == 2
    assert re.search(r"the run is still waiting; answer it with: aros resume [0-9a-f]{32} --answer TEXT\n$", shown)
    code, stdout, shown = typed_in_terminal(tmp_path, environment, [b"Ann\n"], "resume", "last")
    assert (code, stdout) == (0, "Ann\n")
    assert "to asks:\nTo whom?\n> " in shown


@pytest.mark.slow
def test_no_color_is_honoured_in_a_terminal(tmp_path: Path, environment: Mapping[str, str]) -> None:
    _, shown = run_in_terminal(tmp_path, environment, NO_COLOR="1")
    assert "\x1b[32m" not in shown
    assert "success" in shown


@pytest.mark.slow
def test_a_dumb_terminal_gets_plain_lines(tmp_path: Path, environment: Mapping[str, str]) -> None:
    _, shown = run_in_terminal(tmp_path, environment, TERM="dumb")
    assert "listen: started\r\n" in shown
    assert "\x1b" not in shown
