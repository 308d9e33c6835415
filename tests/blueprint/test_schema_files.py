"""Schemas in separate files, referenced as `{from_file: NAME}`."""

from __future__ import annotations

from pathlib import Path

import pytest

from flujo_aros import BlueprintError, Human, Step, load_blueprint
from flujo_aros.blueprint.load import parse_blueprint
from flujo_aros.lint import lint_text

JSON = '{"type": "object", "required": ["total"], "properties": {"total": {"type": "number"}}}'
TOTAL = {"type": "object", "required": ["total"], "properties": {"total": {"type": "number"}}}
OF_AGENT = """\
agents:
  reader: {model: "local:x", output_schema: {from_file: %s}}
steps:
  - {name: s, uses: agents.reader}
"""


def refused(text: str, folder: Path) -> str:
    with pytest.raises(BlueprintError) as caught:
        parse_blueprint(text, folder=folder)
    return str(caught.value)


@pytest.mark.parametrize(
    ("file", "text"),
    [("s.json", JSON), ("s.yaml", "type: object\nrequired: [total]\n" + "properties: {total: {type: number}}\n")],
)
def test_the_schema_of_an_agent_is_read_from_a_file_next_to_the_blueprint(tmp_path: Path, file: str, text: str) -> None:
    (tmp_path / file).write_text(text)
    (tmp_path / "b.yaml").write_text(OF_AGENT % file)
    step = load_blueprint(tmp_path / "b.yaml").steps[0]
    assert isinstance(step, Step)
    assert step.facts.contract is not None
    assert step.facts.contract.json_schema == TOTAL


@pytest.mark.parametrize(
    "step",
    [
        "{name: s, uses: agents.reader, output_schema: {from_file: s.json}}",
        "{name: s, uses: agents.reader, processing: {schema: {from_file: s.json}}}",
        '{name: s, agent: {model: "local:y", output_schema: {from_file: s.json}}}',
    ],
)
def test_the_schema_of_a_step_is_read_from_a_file(tmp_path: Path, step: str) -> None:
    (tmp_path / "s.json").write_text(JSON)
    made = parse_blueprint(f'agents: {{reader: {{model: "local:x"}}}}\nsteps:\n  - {step}\n', folder=tmp_path).steps[0]
    assert isinstance(made, Step)
    assert made.facts.contract is not None
    assert made.facts.contract.json_schema == TOTAL


def test_the_schema_of_an_answer_is_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(JSON)
    text = "steps:\n  - {kind: hitl, name: ask, message: How much?, input_schema: {from_file: s.json}}\n"
    step = parse_blueprint(text, folder=tmp_path).steps[0]
    assert isinstance(step, Human)
    assert step.input_schema == TOTAL


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("none.json", "the schema 'none.json': does not exist; available: broken.json, empty.json, list.json, "),
        ("../s.json", "s.json, outside the folder of the blueprint, "),
        ("/etc/hostname", "'/etc/hostname' is the file /etc/hostname, outside the folder of the blueprint, "),
        ("../s.json", "a schema is only read from inside that folder: copy it there"),
        ("broken.json", "the schema 'broken.json' is not valid JSON: Expecting"),
        ("list.json", "the schema 'list.json' should be an object, not [1]"),
        ("wrong.json", "the schema 'wrong.json': invalid JSON Schema at $.type: unknown type"),
        ("typo.json", "the schema 'typo.json': 'propertys' is not a keyword of JSON Schema and would be ignored; did"),
        ("empty.json", "the schema 'empty.json': this schema accepts every value, because it is empty"),
    ],
)
def test_a_schema_file_that_cannot_be_used_is_an_error_at_its_name_and_a_finding(
    tmp_path: Path, name: str, said: str
) -> None:
    (tmp_path / "b.yaml").write_text("steps: []")
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "wrong.json").write_text('{"type": "nonsense"}')
    (tmp_path / "typo.json").write_text('{"type": "object", "propertys": {"total": {"type": "number"}}}')
    (tmp_path / "empty.json").write_text("{}")
    text = OF_AGENT % name
    reported = refused(text, tmp_path)
    assert ":2:" in reported
    assert said in reported
    assert any(said in each.message for each in lint_text(text, folder=tmp_path).findings)


def test_from_file_must_be_the_only_key(tmp_path: Path) -> None:
    text = OF_AGENT.replace("{from_file: %s}", "{from_file: s.json, type: object}")
    assert "`from_file` must be the only key" in refused(text, tmp_path)


def test_keywords_of_a_schema_in_a_separate_file_have_no_findings(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(JSON)
    found = lint_text(OF_AGENT % "s.json", folder=tmp_path).findings
    assert not any("from_file" in each.message for each in found)


def test_a_blueprint_without_a_folder_reports_that() -> None:
    with pytest.raises(BlueprintError) as caught:
        parse_blueprint(OF_AGENT % "s.json")
    assert "'s.json' cannot be found: a blueprint loaded from a string has no folder" in str(caught.value)
    assert "folder=" in str(caught.value)


def test_a_link_that_leads_out_of_the_folder_is_named_with_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(JSON)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "s.json").symlink_to(tmp_path / "s.json")
    inside = tmp_path / "in"
    said = f"'s.json' is the file {tmp_path / 's.json'}, outside the folder of the blueprint, {inside};"
    assert said in refused(OF_AGENT % "s.json", inside)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (
            "{type: object, propertys: {a: {type: integer}}}",
            "3:60: 'propertys' is not a keyword of JSON Schema and would",
        ),
        ("{type: object, propertys: {a: {type: integer}}}", "did you mean 'properties'?"),
        ("{type: object, properties: {a: {type: string, maxlength: 3}}}", "did you mean 'maxLength'?"),
        ("{type: array, items: {anyOf: [{typ: string}]}}", "'typ' is not a keyword"),
        (
            "{type: object, properties: {kind: {type: string}}, required: [knd]}",
            "3:107: 'knd' is required but not in `properties`; did you mean 'kind'?",
        ),
        ("{}", "3:45: this schema accepts every value, because it is empty; write `type: object` with `properties`"),
        ("{title: Order, example: 1}", "accepts every value, because it has only 'title', 'example'; write"),
    ],
)
def test_a_schema_that_cannot_be_intended_is_an_error_and_a_finding(tmp_path: Path, schema: str, said: str) -> None:
    text = f"""\
name: shop
agents:
  reader: {{model: "local:x", output_schema: {schema}}}
steps: [{{name: s, uses: agents.reader}}]
"""
    assert said in refused(text, tmp_path)
    reported = said.partition(": ")[2] if said.startswith("3:") else said
    assert any(reported in each.message for each in lint_text(text).findings)


@pytest.mark.parametrize(
    "schema",
    [
        "{type: object, properties: {kind: {type: string}}, required: [knd], additionalProperties: {type: string}}",
        "{type: object, properties: {kind: {type: string}}, required: [knd], patternProperties: {'^k': {}}}",
        "{type: object, properties: {kind: {type: string}}, required: [knd], allOf: [{required: [kind]}]}",
        "{type: object, properties: {kind: {type: string}, of: {properties: {knd: {type: string}}}}, required: [knd]}",
        "{type: object, properties: {item: {type: string}}, required: [item, items]}",
        "{type: object, properties: {kind: {type: string}}, required: [colour]}",
        "{allOf: [{properties: {kind: {type: string}}}, {required: [knd]}]}",
    ],
)
def test_a_required_name_that_may_be_intended_is_not_an_error(schema: str) -> None:
    text = f'agents: {{r: {{model: "local:x", output_schema: {schema}}}}}\nsteps: [{{name: s, uses: agents.r}}]\n'
    assert parse_blueprint(text).steps


def test_properties_called_like_a_misspelt_keyword_and_notes_of_ones_own_are_none_of_it() -> None:
    schema = (
        "{type: object, x-order: 1, unit: EUR, properties: {propertys: {type: string, example: a}, typ: {enum: [a]}}}"
    )
    text = f'agents: {{r: {{model: "local:x", output_schema: {schema}}}}}\nsteps: [{{name: s, uses: agents.r}}]\n'
    assert parse_blueprint(text).steps


def test_an_unusable_file_is_reported_at_its_name(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"type": "object", "propertys": {}}')
    assert "did you mean 'properties'?" in refused(OF_AGENT % "s.json", tmp_path)
