"""The documented way to test a blueprint."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_test_of_a_blueprint_in_the_documentation_passes_without_a_key(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "testing.md").read_text()
    [shown] = re.findall(r"```py\n(from flujo_aros import Runner, load_blueprint\n.*?)```", page, re.DOTALL)
    blueprint = re.search(
        r"```yaml\n(# yaml-language-server.*?)```", (ROOT / "docs" / "blueprints.md").read_text(), re.DOTALL
    )
    assert blueprint is not None
    (tmp_path / "triage.yaml").write_text(blueprint[1].replace("local:smollm2", "openai:gpt-4o-mini"))
    ran = _pytest(tmp_path, shown)
    assert (ran.returncode, "1 passed" in ran.stdout) == (0, True), ran.stdout + ran.stderr


_TOO_FEW = """
from pydantic_ai import Agent

async def ask(model):
    await Agent(model).run("which pen?")

def test_it_fails(script_model):
    import asyncio
    asyncio.run(ask(script_model()))

def test_it_is_wrong(script_model):
    script_model("never")
    assert 1 == 2
"""


@pytest.mark.slow
def test_a_test_that_fails_is_reported_once(tmp_path: Path) -> None:
    """The fixture adds no errors, such as unused replies."""
    ran = _pytest(tmp_path, _TOO_FEW)
    assert "2 failed in" in ran.stdout, ran.stdout + ran.stderr


_NO_REPLY_LEFT = """
from flujo_aros import AgentSpec, Runner, Step
from flujo_aros.testing import ScriptedModel

SCHEMA = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}


def test_one():
    step = Step("count", AgentSpec(model="openai:x", output_schema=SCHEMA))
    run = Runner(step, models=ScriptedModel("none")).run_sync("how many?")
    assert run.output == {"n": 1}
"""


@pytest.mark.slow
def test_the_traceback_of_a_call_without_a_reply_ends_in_the_test(tmp_path: Path) -> None:
    shown = _pytest(tmp_path, _NO_REPLY_LEFT).stdout
    assert 'assert run.output == {"n": 1}' in shown
    reported = "OutOfReplies: call 2 (llm_repair) has no reply in a script of 1; the reply to call 1 was rejected; it"
    assert shown.count(reported) == 1, shown
    assert "pydantic_ai" not in shown
    assert len(shown.splitlines()) < 40


def _pytest(folder: Path, tests: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text('pytest_plugins = ["flujo_aros.testing.fixtures"]\n')
    (folder / "test_it.py").write_text(tests)
    # With CI set, pytest repeats every message whole in its summary.
    environment = {
        key: value for key, value in os.environ.items() if key not in {"CI", "BUILD_NUMBER", "OPENAI_API_KEY"}
    }
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"],
        cwd=folder,
        env={**environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
