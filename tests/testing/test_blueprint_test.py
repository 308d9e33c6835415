"""The test of a blueprint that the documentation shows."""

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
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["flujo_aros.testing.fixtures"]\n')
    (tmp_path / "test_triage.py").write_text(shown)
    environment = {key: value for key, value in os.environ.items() if key != "OPENAI_API_KEY"}
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_triage.py"],
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, "1 passed" in ran.stdout) == (0, True), ran.stdout + ran.stderr
