"""The command line, called in this process (`aros`) or as a real one (`aros_process`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from flujo_aros.cli.main import app

Aros = Callable[..., Result]
ArosProcess = Callable[..., "subprocess.CompletedProcess[str]"]

COMMAND = [sys.executable, "-m", "flujo_aros.cli"]

ORDER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "priority": {"enum": ["high", "low"]},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["priority"],
    "additionalProperties": False,
}


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The tests say themselves how wide and how colourful the terminal is, and write nothing into the project."""
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "PY_COLORS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("AROS_JOURNAL", "off")


@pytest.fixture
def aros() -> Aros:
    """Call `aros` in this process."""

    def call(*args: str, text: str | bytes | None = None) -> Result:
        return CliRunner().invoke(app, args, input=text, prog_name="aros")

    return call


@pytest.fixture
def environment() -> dict[str, str]:
    """The environment of a started `aros`: this package, warnings as they are for a user."""
    root = str(Path(__file__).parents[2])
    return {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}


@pytest.fixture
def aros_process(environment: Mapping[str, str], tmp_path: Path) -> ArosProcess:
    """Start `aros` as a process in an empty folder and wait for it."""

    def call(*args: str, text: str = "", cwd: Path = tmp_path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, *args],
            input=text,
            cwd=cwd,
            env=dict(environment),
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=240,
            check=False,
        )

    return call


@pytest.fixture
def order_schema(tmp_path: Path) -> str:
    """The name of a file with a small JSON Schema."""
    file = tmp_path / "order.schema.json"
    file.write_text(json.dumps(ORDER_SCHEMA), encoding="utf-8")
    return str(file)
