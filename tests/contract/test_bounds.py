"""A schema that jsonschema-rs accepts is a valid contract, even if a part of it can never be satisfied."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flujo_aros import Accepted, ContractError, Reason, Rejected, Trust, read
from flujo_aros.contract import Output, compile_contract

TAGS: dict[str, Any] = {"type": "object", "properties": {"tags": {"type": "array", "minItems": 2, "maxItems": 1}}}


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (TAGS, "{}"),
        ({"type": "array", "items": {"type": "integer", "minimum": 3, "maximum": 1.5}}, "[]"),
        ({"anyOf": [{"type": "string", "minLength": 5, "maxLength": 2}, {"type": "integer"}]}, "7"),
    ],
)
def test_a_value_that_leaves_the_impossible_part_out_is_clean(schema: dict[str, Any], text: str) -> None:
    outcome = read(text, schema)
    assert isinstance(outcome, Accepted)
    assert outcome.trust is Trust.CLEAN


def test_a_value_at_an_impossible_place_is_rejected_with_the_place() -> None:
    outcome = read('{"tags": ["a"]}', TAGS)
    assert isinstance(outcome, Rejected)
    assert (outcome.reason, outcome.issues[0].path) == (Reason.INVALID, "$.tags")


def test_a_property_may_be_named_like_a_bound() -> None:
    """Bounds are keywords of schemas; names of properties and values of an enum are data."""
    properties = {"minimum": {"type": "integer"}, "maximum": {"type": "integer"}}
    contract = Output.json({"type": "object", "properties": properties, "enum": [{"minimum": 5, "maximum": 2}]})
    assert contract.shape.properties.keys() == {"minimum", "maximum"}


REFS = st.sampled_from(["#", "#/$defs/a", "#/$defs/b", "#/properties/x", "#/anyOf/0", "#here"])
TYPES = st.sampled_from(["string", "integer", "number", "boolean", "null", "object", "array"])
SMALL = st.integers(-2, 4)
LEAVES = (
    st.booleans()
    | st.fixed_dictionaries({}, optional={"type": TYPES, "minimum": SMALL, "maximum": SMALL, "multipleOf": st.just(3)})
    | st.fixed_dictionaries({}, optional={"minLength": st.just(3), "maxLength": st.just(1), "pattern": st.just("^a$")})
    | st.fixed_dictionaries({"enum": st.lists(st.none() | SMALL | st.text(max_size=2), min_size=1, max_size=3)})
    | st.fixed_dictionaries({"const": st.none() | SMALL | st.just({"$ref": "#"})})
    | st.fixed_dictionaries({"$ref": REFS}, optional={"type": TYPES, "description": st.just("a loop")})
    | st.fixed_dictionaries({"$anchor": st.just("here"), "type": TYPES})
)


def _larger(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    named = st.dictionaries(st.sampled_from(["x", "y", "$ref", "enum"]), parts, max_size=2)
    lists = st.lists(parts, min_size=1, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | st.lists(TYPES, min_size=1, max_size=2, unique=True),
            "properties": named,
            "required": st.just(["x"]),
            "additionalProperties": parts,
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b$"]), parts, max_size=1),
            "propertyNames": parts,
            "dependentSchemas": named,
            "minProperties": st.just(2),
            "maxProperties": st.just(1),
            "items": parts,
            "prefixItems": lists,
            "contains": parts,
            "minItems": st.just(2),
            "maxItems": st.just(1),
            "allOf": lists,
            "anyOf": lists,
            "oneOf": lists,
            "not": parts,
            "if": parts,
            "then": parts,
        },
    )


SCHEMAS = st.builds(
    lambda root, a, b: {**root, "$defs": {"a": a, "b": b}},
    st.recursive(LEAVES, _larger, max_leaves=8).filter(lambda schema: isinstance(schema, dict)),
    st.recursive(LEAVES, _larger, max_leaves=4),
    st.recursive(LEAVES, _larger, max_leaves=4),
)
REPLIES = st.sampled_from(['{"x": 1}', "{x: [1, {y: 'a'},]}", "[1, 2", '"a"', "Here: {'x': {'x': null}}", "3", "no"])


@settings(max_examples=100, deadline=None)
@given(SCHEMAS, REPLIES)
def test_every_schema_that_jsonschema_rs_compiles_makes_a_contract(schema: dict[str, Any], text: str) -> None:
    try:
        judge = jsonschema_rs.validator_for(schema)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError):
        return
    outcome = read(text, schema)
    assert not isinstance(outcome, Accepted) or judge.is_valid(outcome.value)


def _ladder(rungs: int) -> dict[str, Any]:
    steps = {f"n{at}": {"allOf": [{"$ref": f"#/$defs/n{at + 1}"}] * 2} for at in range(rungs)}
    return {"$ref": "#/$defs/n0", "$defs": {**steps, f"n{rungs}": {"type": "integer"}}}


def test_a_schema_that_takes_the_validator_exponential_time_is_rejected() -> None:
    assert isinstance(read("1", _ladder(10)), Accepted)
    with pytest.raises(ContractError, match="more than 100,000 steps to validate one part"):
        read("1", _ladder(60))


def test_a_schema_with_many_cycles_at_one_place_is_rejected() -> None:
    def schema(ways: int) -> dict[str, Any]:
        return {"$ref": "#/$defs/n", "$defs": {"n": {"allOf": [{"$ref": "#/$defs/n"}] * ways}}}

    compile_contract(schema(2))
    with pytest.raises(ContractError, match="more than 100,000 steps to validate one part"):
        compile_contract(schema(12))
