"""The code of the documentation satisfies a strict type checker, as a user would run it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from test_docs import PAGES, ROOT, python_blocks

NOT_YET = frozenset(
    {"testing", "telemetry", "steps", "recovery", "reading", "pipelines", "journal", "contracts"}
    | {
        "005_a_later_answer_that_does_not_fit",
        "003_complete_value_at_a_cut",
        "001_json_lines_for_any_json",
    }
)
"""Pages with code that a strict checker refuses; a page that has become clean leaves the list."""


def _module(page: Path) -> str:
    return re.sub(r"\W", "_", page.stem)


@pytest.mark.slow
def test_the_code_of_the_pages_passes_mypy_strict(tmp_path: Path) -> None:
    """Each page is one module, its lines where they stand on the page."""
    for page in PAGES:
        lines: list[str] = []
        for block in python_blocks(page):
            lines += [""] * (block.line - 1 - len(lines)) + block.code.splitlines()
        if lines:
            (tmp_path / f"{_module(page)}_.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={tmp_path / 'cache'}", "."]
    env = {"MYPYPATH": str(ROOT), "PATH": "", "PYTHONPATH": str(ROOT)}
    found = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    errors = [line for line in found.stdout.splitlines() if ": error: " in line]
    assert found.returncode in (0, 1), found.stdout + found.stderr
    refused = {line.partition("_.py:")[0] for line in errors}
    assert [line for line in errors if line.partition("_.py:")[0] not in NOT_YET] == []
    assert refused == NOT_YET
