"""`aros run --durable` and the commands that follow it: the quickest way to try durable runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import COMMAND, Aros, Ended

pytest.importorskip("dbos", reason="dbos is not installed: pip install 'flujo_aros[durable]'")

BLUEPRINT = """
version: "0.1"
name: shop
steps:
  - {name: up, uses: "durable_shop:up", input: "{{ input }}"}
  - name: ask
    agent: {model: test, output_schema: {type: object, properties: {n: {type: integer}}, required: [n]}}
"""


@pytest.fixture
def durable(aros_process: Aros, tmp_path: Path, environment: dict[str, str]) -> Callable[..., Ended]:
    (tmp_path / "durable_shop.py").write_text("def up(text):\n    return text.upper()\n")
    (tmp_path / "shop.yaml").write_text(BLUEPRINT)
    environment["AROS_DB"] = "sqlite:///runs.sqlite"
    return lambda *words: aros_process(*words, "--allow", "./durable_shop.py", "--json")


def step(ended: Ended, name: str) -> dict[str, Any]:
    (found,) = [each for each in json.loads(ended.stdout)["steps"] if each["name"] == name]
    return found


@pytest.mark.slow
def test_a_durable_run_is_stored_and_can_be_forked_with_another_ladder(
    durable: Callable[..., Ended], aros_process: Aros, tmp_path: Path
) -> None:
    first = durable("run", "shop.yaml", "--input", "pen", "--durable")
    assert step(first, "up")["output"] == "PEN", first.stderr
    assert step(first, "ask")["stages"][0]["stage"] == "llm_repair"
    (known,) = json.loads(aros_process("status", "--json").stdout)
    assert known["run_id"] == json.loads(first.stdout)["run_id"]
    (tmp_path / "ladder.json").write_text('{"stages": ["retry"], "max_calls": 3}')
    forked = durable("fork", known["run_id"], "--at", "ask", "--ladder", "ladder.json")
    assert step(forked, "up")["output"] == "PEN", forked.stderr
    assert {stage["stage"] for stage in step(forked, "ask")["stages"]} == {"retry"}


@pytest.mark.slow
def test_a_read_only_database_file_is_reported_in_one_sentence(
    durable: Callable[..., Ended], tmp_path: Path, environment: Mapping[str, str]
) -> None:
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("root may write to every file, and there is no setpriv to take that from it")
    assert step(durable("run", "shop.yaml", "--input", "pen", "--durable"), "up")["output"] == "PEN"
    (tmp_path / "runs.sqlite").chmod(0o400)
    as_others = ["setpriv", "--bounding-set", "-dac_override"] if os.geteuid() == 0 else []
    words = [*as_others, *COMMAND, "run", "shop.yaml", "--input", "pen", "--durable", "--allow", "./durable_shop.py"]
    refused = subprocess.run(words, cwd=tmp_path, env=dict(environment), capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "make the file and its folder writable" in " ".join(refused.stderr.split())
    assert refused.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--follow",), "--follow needs a RUN, such as `last`"),
        (("last", "--offset", "3"), "--offset needs --follow"),
        (("last", "--limit", "3"), "--limit is for the list of runs; leave it out, or RUN"),
    ],
)
def test_an_option_of_status_without_effect_is_an_error(aros: Aros, options: tuple[str, ...], why: str) -> None:
    ended = aros("status", *options)
    assert (ended.exit_code, ended.stdout, ended.stderr) == (2, "", f"error: {why}\n")
