"""Run the command line, in this process (`aros`) or in a separate one (`aros_process`)."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from flujo_aros.cli.main import main
from flujo_aros.settings import current_settings


@dataclass(frozen=True)
class Ended:
    """The exit code and output of a call."""

    exit_code: int
    stdout: str
    stderr: str


Aros = Callable[..., Ended]

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
    """Fix the width and colors of the terminal, and change to a temporary folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("AROS_JOURNAL", "off")


@pytest.fixture
def aros(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Aros:
    """Call `aros` in this process, as its script does."""

    def call(*args: str, text: str = "") -> Ended:
        monkeypatch.setattr(sys, "argv", ["aros", *args])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        capfd.readouterr()
        current_settings.cache_clear()  # a process reads its settings once, and each call stands for one
        try:
            with pytest.raises(SystemExit) as left:
                main()
        finally:
            current_settings.cache_clear()
        code = left.value.code or 0
        assert isinstance(code, int)
        return Ended(code, *capfd.readouterr())

    return call


@pytest.fixture
def environment() -> dict[str, str]:
    """Return the environment of an `aros` process, with this package on its path."""
    root = str(Path(__file__).parents[2])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))}


@pytest.fixture
def aros_process(environment: Mapping[str, str], tmp_path: Path) -> Aros:
    """Run `aros` as a process in the test's folder and wait for it."""

    def call(*args: str, text: str = "") -> Ended:
        ended = subprocess.run(
            [*COMMAND, *args],
            input=text,
            cwd=tmp_path,
            env=dict(environment),
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=240,
            check=False,
        )
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    return call


@pytest.fixture
def order_schema(tmp_path: Path) -> str:
    """The name of a file with a small JSON Schema."""
    file = tmp_path / "order.schema.json"
    file.write_text(json.dumps(ORDER_SCHEMA), encoding="utf-8")
    return str(file)
