"""`aros init` and broken first blueprints: what new users encounter."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema_rs import Draft202012Validator

from flujo_aros.blueprint.document import parse_document

from .conftest import Aros


def test_init_writes_a_valid_blueprint_and_prints_the_next_commands(aros: Aros) -> None:
    ended = aros("init", "notes.yaml", "--model", "openai:gpt-4o-mini")
    assert ended.exit_code == 0
    assert "aros plan notes.yaml" in ended.stderr
    assert Path("notes.yaml").read_text().startswith("# yaml-language-server: $schema=blueprint.schema.json\n")
    plan = aros("plan", "notes.yaml")
    assert plan.exit_code == 0
    assert "openai:gpt-4o-mini" in plan.stdout


@pytest.mark.parametrize("model", ["local:smollm2", "openai:gpt-4o-mini", "anthropic:claude-sonnet-4-5"])
def test_linting_the_output_of_init_finds_nothing(aros: Aros, model: str) -> None:
    aros("init", "notes.yaml", "--model", model)
    ended = aros("lint", "notes.yaml")
    assert (ended.exit_code, ended.stdout) == (0, "")
    bounded = not model.startswith("anthropic:")  # whose schema mode drops bounds, as the linter knows with its client
    assert ("maxLength" in Path("notes.yaml").read_text()) is bounded


def test_init_writes_over_nothing(aros: Aros) -> None:
    Path("first.yaml").write_text("mine")
    ended = aros("init")
    assert (ended.exit_code, Path("first.yaml").read_text()) == (2, "mine")
    assert "already exists" in ended.stderr


def test_the_schema_accepts_the_output_of_init_and_rejects_a_wrong_key(aros: Aros) -> None:
    aros("init")
    schema = Draft202012Validator(json.loads(aros("schema").stdout))
    text = Path("first.yaml").read_text(encoding="utf-8")
    assert schema.is_valid(parse_document(text, "").plain())
    assert not schema.is_valid(parse_document(text.replace("checks:", "cheks:"), "").plain())
    assert json.loads(Path("blueprint.schema.json").read_text()) == json.loads(aros("schema").stdout)


BROKEN = {
    "a typo in a key": ("    uses: agents.reader\n", "    usees: agents.reader\n", 30, "did you mean 'uses'?"),
    "a missing agent": ("uses: agents.writer", "uses: agents.writter", 42, "did you mean 'writer'?"),
    "a bad template": ("{{ steps.read.output.mood }}", "{{ steps.reed.output.mood }}", 43, "did you mean 'read'?"),
    "a wrong type": (
        "max_tokens: 300 }",
        "max_tokens: 300 }\n    timeout: soon",
        14,
        "timeout should be a number, not 'soon'",
    ),
    "a bad schema": (
        "type: string, minLength: 1, maxLength: 40",
        "type: strin",
        20,
        "invalid JSON Schema",
    ),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_first_blueprint_broken_by_hand_names_the_line_and_the_cure(aros: Aros, broken: str) -> None:
    right, wrong, line, cure = BROKEN[broken]
    aros("init")
    text = Path("first.yaml").read_text(encoding="utf-8")
    assert right in text
    Path("first.yaml").write_text(text.replace(right, wrong, 1), encoding="utf-8")
    for command in (("run", "first.yaml", "-i", "x"), ("plan", "first.yaml")):
        ended = aros(*command)
        assert (ended.exit_code, ended.stdout) == (4, "")
        assert cure in ended.stderr
        found = {int(part.split(":")[1]) for part in ended.stderr.split() if part.startswith("first.yaml:")}
        assert any(abs(each - line) <= 3 for each in found), ended.stderr
