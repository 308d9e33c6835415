"""Recursive schemas guide the reading one level deeper, and nothing at the same place."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from flujo_aros import Accepted, Rejected, read

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
    "three with titles": {
        "$ref": "#/$defs/a",
        "$defs": {x: {"$ref": f"#/$defs/{y}", "title": x} for x, y in ("ab", "bc", "ca")},
    },
    "by an anchor": {"$anchor": "me", "anyOf": [{"$ref": "#me"}]},
}


@pytest.mark.parametrize("name", ENDLESS)
def test_a_schema_that_refers_to_itself_at_one_place_is_left_to_the_validator(name: str) -> None:
    judge = jsonschema_rs.validator_for(ENDLESS[name])
    for text, value in (('{"a": 1}', {"a": 1}), ("{'a': 1,}", {"a": 1})):
        assert isinstance(read(text, ENDLESS[name]), Accepted) is judge.is_valid(value)


@pytest.mark.parametrize("name", ENDLESS)
def test_prose_is_not_an_answer_to_a_schema_that_says_nothing(name: str) -> None:
    assert isinstance(read("I have looked at it.", ENDLESS[name]), Rejected)


TREE: dict[str, Any] = {
    "type": "object",
    "required": ["n"],
    "properties": {
        "n": {"type": "integer"},
        "left": {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
        "all": {"type": "array", "items": {"$ref": "#"}},
    },
}


def test_a_schema_that_recurs_one_level_deeper_is_accepted() -> None:
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
