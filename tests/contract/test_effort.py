"""Schemas with recursive alternatives, which a validator may try again at every level of a value."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from flujo_aros import Accepted, Rejected, Trust, read
from flujo_aros.contract import Effort, compile_shape

LEFT = {"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}, "required": ["a"]}
RIGHT = {"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}, "b": {}}, "required": ["a", "b"]}
TREE: dict[str, Any] = {"$ref": "#/$defs/n", "$defs": {"n": {"anyOf": [LEFT, RIGHT, {"type": "string"}]}}}
ANY_JSON: dict[str, Any] = {
    "$ref": "#/$defs/j",
    "$defs": {
        "j": {
            "anyOf": [
                {"type": "string"},
                {"type": "number"},
                {"type": "array", "items": {"$ref": "#/$defs/j"}},
                {"type": "object", "additionalProperties": {"$ref": "#/$defs/j"}},
            ]
        }
    },
}


NODE: dict[str, Any] = {"type": "array", "items": {"$ref": "#/$defs/n"}}
LISTS: dict[str, Any] = {
    "$ref": "#/$defs/n",
    "$defs": {"n": {"anyOf": [NODE, NODE | {"maxItems": 9}, {"type": "string"}]}},
}


class Leaf(BaseModel):
    """One of two mutually recursive models."""

    a: Leaf | Twig | str


class Twig(BaseModel):
    """The other mutually recursive model."""

    a: Leaf | Twig | str
    b: int = 0


class File(BaseModel):
    """A leaf of a tree."""

    name: str
    size: int


class Tree(BaseModel):
    """A tree of files."""

    name: str
    parts: list[Tree | File]


def nested(depth: int, leaf: str) -> str:
    """Return a chain of nested objects."""
    return '{"a": ' * depth + leaf + "}" * depth


@pytest.mark.parametrize(("contract", "leaf"), [(TREE, "null"), (TREE, "[1, 2]"), (Leaf, "{}")])
def test_a_deep_value_that_fits_no_alternative_is_rejected_in_bounded_time(contract: Any, leaf: str) -> None:
    """Each level doubles the number of ways to read the value, and none of them matches."""
    assert isinstance(read(nested(40, leaf), contract), Rejected)


def test_lists_in_lists_that_two_alternatives_take_cost_more_with_each_level() -> None:
    deep: Any = "x"
    for _ in range(40):
        deep = [deep]
    assert Effort(compile_shape(LISTS)).exceeds(10_000, deep)


def test_a_deep_value_that_fits_a_schema_is_clean() -> None:
    """Validating a schema is cheap if the value matches."""
    outcome = read(nested(120, '"x"'), TREE)
    assert isinstance(outcome, Accepted)
    assert outcome.trust is Trust.CLEAN


def test_a_value_of_common_depth_that_fits_models_is_clean() -> None:
    """Models are tried one by one, which is fast for values of few levels."""
    outcome = read(nested(10, '"x"'), Leaf)
    assert isinstance(outcome, Accepted)
    assert outcome.trust is Trust.CLEAN


def test_alternatives_of_different_kinds_cost_no_more_with_depth() -> None:
    """For a list, only the alternative for lists is tried."""
    outcome = read('{"a": [' * 60 + "1" + "]}" * 60, ANY_JSON)
    assert isinstance(outcome, Accepted)
    assert outcome.trust is Trust.CLEAN


@pytest.mark.parametrize("contract", [Tree, ANY_JSON])
def test_a_large_value_that_fits_is_clean(contract: Any) -> None:
    """A few attempts at each place do not count as doubling, however many places there are."""
    parts = ", ".join('{"name": "x", "size": 1}' for _ in range(20_000))
    outcome = read(f'{{"name": "all", "parts": [{parts}]}}', contract)
    assert isinstance(outcome, Accepted)
    assert outcome.trust is Trust.CLEAN


@pytest.mark.parametrize(
    ("schema", "grows"),
    [
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, False),
        ({"$ref": "#/$defs/n", "$defs": {"n": {"type": "array", "items": {"$ref": "#/$defs/n"}}}}, False),
        (TREE, True),
    ],
)
def test_only_loops_with_alternatives_are_looked_at(schema: dict[str, Any], *, grows: bool) -> None:
    """Other schemas have no additional cost."""
    assert Effort(compile_shape(schema)).grows is grows


def test_two_alternatives_that_loop_are_enough_to_be_counted_and_one_is_not() -> None:
    defs = {"n": {"anyOf": [LEFT, RIGHT]}, "one": {"anyOf": [LEFT]}}
    two = compile_shape({"$ref": "#/$defs/n", "$defs": defs})
    one = compile_shape({"$ref": "#/$defs/n", "$defs": {"n": defs["one"]}})
    assert (Effort(two).grows, Effort(one).grows) == (True, False)
