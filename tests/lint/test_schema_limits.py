"""The size of a schema, compared with the limits that providers publish."""

import pytest

from flujo_aros.lint.providers import exceeded_limits, schema_losses

TEXT = {"type": "string"}


def found(model, schema):
    return [(limit.what, limit.found) for limit in exceeded_limits(model, schema)]


def nested(levels):
    schema = {"type": "object", "properties": {"x": TEXT}, "required": ["x"]}
    for _ in range(levels - 1):
        schema = {"type": "object", "properties": {"x": schema}, "required": ["x"]}
    return schema


def of(properties, required=()):
    return {"type": "object", "properties": properties, "required": list(required)}


def test_optional_properties_of_all_objects_count_together():
    part = of({f"p{n}": TEXT for n in range(12)})
    schema = of({"a": part, "b": {"type": "array", "items": part}}, ["a", "b"])
    assert found("anthropic:claude-sonnet-4-5", schema) == []
    assert found("anthropic:claude-sonnet-4-5", of({"a": part, "b": {"items": part}}, ["a"])) == [
        ("optional properties", 25)
    ]


@pytest.mark.parametrize(
    "union", [{"anyOf": [TEXT, {"type": "null"}]}, {"type": ["string", "null"]}, {"oneOf": [TEXT]}]
)
def test_properties_of_more_than_one_type_are_counted(union):
    names = {f"p{n}": union for n in range(17)}
    assert found("anthropic:claude-sonnet-4-5", of(names, names)) == [("properties of more than one type", 17)]


def test_levels_of_objects_are_counted_through_lists_and_references():
    assert found("openai:gpt-4o", nested(10)) == []
    assert found("openai:gpt-4o", nested(11)) == [("levels of objects", 11)]
    assert found("openai-chat:gpt-4o", of({"x": {"type": "array", "items": nested(10)}}, ["x"])) == [
        ("levels of objects", 11)
    ]
    shared = {**of({"deep": nested(9), "far": {"$ref": "#/$defs/Last"}}), "$defs": {"Last": nested(10)}}
    assert found("openai:gpt-4o", shared) == [("levels of objects", 11)]


def test_a_definition_counts_once_and_a_recursive_one_terminates():
    node = of({"value": TEXT, "next": {"$ref": "#/$defs/Node"}, "other": {"$ref": "#/$defs/Node"}})
    schema = {"$ref": "#/$defs/Node", "$defs": {"Node": node}}
    assert found("openai:gpt-4o", schema) == []
    wide = of({f"p{n}": {"$ref": "#/$defs/Part"} for n in range(60)})
    assert found("azure:gpt-4o", {**wide, "$defs": {"Part": of({"a": TEXT, "b": TEXT})}}) == []


def test_choices_and_names_are_counted():
    many = {"enum": [f"choice-{n}" for n in range(1001)]}
    assert found("openai:gpt-4o", of({"x": many}, ["x"])) == [("choices of enums", 1001)]
    long = {"x" * 60_001: TEXT, "y" * 60_000: {"const": "z"}}
    assert found("openai:gpt-4o", of(long, long)) == [("characters in names", 120_002)]


@pytest.mark.parametrize("model", ["mistral:mistral-large-latest", "local:smollm2", "test"])
def test_providers_without_published_limits_have_no_findings(model):
    assert found(model, nested(40)) == []


def test_with_the_anthropic_client_the_linter_knows_its_dropped_keywords() -> None:
    """pydantic-ai requests native output with `strict`: a plain schema is enforced, some bounds are not."""
    pytest.importorskip("anthropic", reason="anthropic is not installed: pip install 'flujo_aros[anthropic]'")
    plain = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    assert schema_losses("anthropic:claude-sonnet-4-5", plain) == ()
    bounded = {"type": "object", "properties": {"a": {"type": "string", "minLength": 2}}, "required": ["a"]}
    (loss,) = schema_losses("anthropic:claude-sonnet-4-5", bounded)
    assert (loss.path, loss.keyword, loss.effect) == (("properties", "a"), "minLength", "dropped")
