"""Schemas that lead back to themselves: harmless one level deeper, refused at one and the same place."""

from __future__ import annotations

from typing import Any

import pytest

from flujo_aros import Accepted, BlueprintError, ContractError, read
from flujo_aros.blueprint.load import parse_blueprint

ENDLESS: dict[str, dict[str, Any]] = {
    "an alternative that is all of it": {"anyOf": [{"$ref": "#"}, {"type": "integer"}]},
    "one of itself": {"oneOf": [{"type": "integer"}, {"$ref": "#"}]},
    "nothing but itself": {"$ref": "#"},
    "all of itself": {"allOf": [{"anyOf": [{"$ref": "#"}]}]},
    "not itself": {"not": {"$ref": "#"}},
    "two that are each other": {
        "$ref": "#/$defs/a",
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
    },
    "below a key": {"properties": {"a": {"oneOf": [{"$ref": "#/properties/a"}, {"type": "integer"}]}}},
    "by an anchor": {"$anchor": "me", "anyOf": [{"$ref": "#me"}]},
}


@pytest.mark.parametrize("name", ENDLESS)
def test_a_schema_that_asks_for_itself_at_one_place_is_refused(name: str) -> None:
    with pytest.raises(ContractError, match="leads back to itself at the same place by"):
        read('{"a": 1}', ENDLESS[name])


def test_a_blueprint_with_such_a_schema_is_refused_with_its_line() -> None:
    text = """agents:
  a:
    model: openai:gpt-4o-mini
    output_schema: {anyOf: [{$ref: "#"}, {type: integer}]}
steps: [{name: s, uses: agents.a}]
"""
    with pytest.raises(BlueprintError, match=r"^blueprint:4:20: the schema leads back to itself"):
        parse_blueprint(text)


TREE: dict[str, Any] = {
    "type": "object",
    "required": ["n"],
    "properties": {
        "n": {"type": "integer"},
        "left": {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
        "all": {"type": "array", "items": {"$ref": "#"}},
    },
}


def test_a_schema_that_repeats_one_level_deeper_is_as_good_as_any() -> None:
    outcome = read('{n: 1, left: {n: "2", left: null}, all: [{n: 3,}]}', TREE)
    assert outcome.value == {"n": 1, "left": {"n": 2, "left": None}, "all": [{"n": 3}]}


@pytest.mark.parametrize("key", ["$anchor", "$dynamicAnchor"])
def test_a_ref_to_an_anchor_guides_the_reader(key: str) -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"$ref": "#number"}},
        "$defs": {"whole": {key: "number", "type": "integer"}},
    }
    outcome = read('{"n": "5"}', schema)
    assert isinstance(outcome, Accepted)
    assert outcome.value == {"n": 5}
