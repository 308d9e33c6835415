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
    unknown = durable("fork", known["run_id"], "--at", "aks")
    assert "the pipeline has no step 'aks' to fork at; did you mean 'ask'?" in " ".join(unknown.stderr.split())


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


NESTED = """
name: nested
steps:
  - kind: map
    name: each
    map: {iterable_input: "['a', 'b']", body: [{name: wrapped, uses: flujo.builtins.wrap_dict}]}
  - {name: whole, uses: flujo.builtins.stringify}
"""


@pytest.mark.slow
def test_the_status_of_a_run_lists_its_steps_in_order_each_before_its_nested_steps(aros: Aros, tmp_path: Path) -> None:
    (tmp_path / "nested.yaml").write_text(NESTED)
    assert aros("run", "nested.yaml", "--input", "x", "--durable").exit_code == 0
    lines = aros("status", "last").stdout.splitlines()
    steps = [line.strip().partition(":")[0] for line in lines if line.startswith("  ") and ": success" in line]
    assert steps == ["each", "each/0", "each/0/wrapped", "each/1", "each/1/wrapped", "whole"]


@pytest.mark.slow
def test_a_shell_completes_durable_runs_and_the_steps_to_fork_at(
    aros: Aros, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nested.yaml").write_text(NESTED)
    run_id = json.loads(aros("run", "nested.yaml", "--input", "x", "--durable", "--json").stdout)["run_id"]
    monkeypatch.setenv("_AROS_COMPLETE", "complete_bash")

    def completed(*words: str) -> list[str]:
        monkeypatch.setenv("COMP_WORDS", " ".join(["aros", *words]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        return aros().stdout.split()

    assert completed("status", "") == completed("fork", "") == ["last", run_id]
    assert completed("cancel", run_id[:6]) == [run_id]
    assert completed("fork", run_id, "--at", "") == ["each", "whole"]
    assert completed("fork", "last", "--at", "w") == ["whole"]
    assert completed("status", "--db", "sqlite:///none.sqlite", "") == []
    assert not Path("none.sqlite").exists()


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
