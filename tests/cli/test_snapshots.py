"""Stable interfaces: the help of every command, and the shape of every JSON document.

A deliberate change is recorded with `AROS_UPDATE_SNAPSHOTS=1 python -m pytest tests/cli/test_snapshots.py`, and is
reviewed as a diff of the files in `snapshots/`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import Aros
from .journalled import fill
from .test_cli_help import COMMANDS, help_of

SNAPSHOTS = Path(__file__).parent / "snapshots"
UPDATE = os.environ.get("AROS_UPDATE_SNAPSHOTS") == "1"
NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
BLUEPRINT = """\
version: "0.1"
name: shop
agents:
  writer:
    model: local:smollm2
    system_prompt: Write a letter.
    output_schema: {type: object, properties: {text: {type: string}}, required: [text]}
steps:
  - name: who
    uses: shop:who
    input: "{{ input }}"
  - name: letter
    uses: agents.writer
"""


def compared(name: str, found: str) -> None:
    """Fail if the text differs from its snapshot."""
    file = SNAPSHOTS / name
    if UPDATE:
        file.write_text(found, encoding="utf-8")
    assert file.is_file(), f"no snapshot yet: run again with AROS_UPDATE_SNAPSHOTS=1 to write {file}"
    assert found == file.read_text(encoding="utf-8")


def shape_of(value: Any) -> Any:
    """Return the keys and types of a JSON value; array items of the same shape are listed once."""
    if isinstance(value, dict):
        return {key: shape_of(inner) for key, inner in sorted(value.items())}
    if isinstance(value, list):
        return [json.loads(one) for one in sorted({json.dumps(shape_of(inner), sort_keys=True) for inner in value})]
    return {bool: "boolean", int: "number", float: "number", str: "string", type(None): "null"}[type(value)]


@pytest.mark.parametrize("command", [(), *[(name,) for name in COMMANDS]])
def test_help_is_as_recorded(aros: Aros, command: tuple[str, ...]) -> None:
    joined = re.sub(r"\n {5,}(?=\S)", " ", help_of(aros, *command))  # wherever the lines of an option are broken
    compared(f"help/{'-'.join(['aros', *command])}.txt", re.sub(r"(?<=\S) {2,}", "  ", joined))


def _journalled(*args: str) -> Callable[[Aros], str]:
    def call(aros: Aros) -> str:
        run = json.loads(aros("runs", "--json").stdout)[1]["run_id"]
        return aros(*(run if arg == "RUN" else arg for arg in args)).stdout

    return call


DOCUMENTS: dict[str, Callable[[Aros], str]] = {
    "read-accepted": lambda aros: aros("read", "--schema", "n.json", "--json", text="so {n: '1',}").stdout,
    "read-rejected": lambda aros: aros("read", "--schema", "n.json", "--json", text='{"n": "few"}').stdout,
    "run": lambda aros: aros("run", "shop.yaml", "-i", "", "--allow", "shop.py", "--json").stdout,
    "run-dry": lambda aros: aros("run", "letter.yaml", "--allow", "shop.py", "--dry-run", "--json").stdout,
    "plan": lambda aros: aros("plan", "letter.yaml", "--allow", "shop.py", "--json").stdout,
    "lint": lambda aros: aros("lint", "letter.yaml", "--format", "json").stdout,
    "rule": lambda aros: aros("rule", "--json").stdout,
    "bench": lambda aros: aros("bench", "reading", "cases.jsonl", "--json").stdout,
    "runs": _journalled("runs", "--json"),
    "show": _journalled("show", "RUN", "--json"),
    "replay": _journalled("replay", "RUN", "--json"),
    "health": _journalled("health", "--format", "json", "--trend", "1"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A schema, a module, two blueprints, a corpus and a journal."""
    (tmp_path / "n.json").write_text(json.dumps(NUMBER))
    (tmp_path / "shop.py").write_text("def who(name: str) -> dict[str, int]:\n    return {'n': len(name)}\n")
    (tmp_path / "letter.yaml").write_text(BLUEPRINT)
    (tmp_path / "shop.yaml").write_text(BLUEPRINT.partition("  - name: letter")[0])
    row = {"id": "odd/one", "input": "one", "schema": NUMBER, "expected": {"n": 1}}
    (tmp_path / "cases.jsonl").write_text(json.dumps(row) + "\n")
    fill(tmp_path / "runs.sqlite")
    monkeypatch.setenv("AROS_JOURNAL", "runs.sqlite")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", DOCUMENTS)
def test_json_has_the_recorded_shape(aros: Aros, name: str) -> None:
    document = json.loads(DOCUMENTS[name](aros))
    compared(f"json/{name}.json", json.dumps(shape_of(document), indent=1) + "\n")
