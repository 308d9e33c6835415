"""The code of the documentation passes strict type checkers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from test_docs import PAGES, ROOT, python_blocks

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one module for each page; its code has the line numbers of the page."""
    folder = tmp_path_factory.mktemp("pages")
    for page in PAGES:
        lines: list[str] = []
        for block in python_blocks(page):
            lines += [""] * (block.line - 1 - len(lines)) + block.code.splitlines()
        if lines:
            name = re.sub(r"\W", "_", str(page.relative_to(ROOT).with_suffix("")))
            (folder / f"{name}_.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def _checked(folder: Path, *command: str) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "MYPYPATH": str(ROOT)}
    found = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout + found.stderr


def test_the_code_of_the_pages_passes_mypy_strict(pages: Path, tmp_path: Path) -> None:
    _checked(pages, "mypy", "--strict", "--config-file=", f"--cache-dir={tmp_path}", ".")


def test_the_code_of_the_pages_passes_pyright_strict(pages: Path) -> None:
    """Strict mode rejects everything that standard mode rejects."""
    settings = {"extraPaths": [str(ROOT)], "typeCheckingMode": "strict"}
    (pages / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    _checked(pages, "pyright", "--pythonpath", sys.executable)
