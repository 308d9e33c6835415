"""Addresses places in a JSON value by path (`$.items[2].price`): read a value, find its schema, replace it."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

from flujo_aros.contract import JsonSchema
from flujo_aros.json_data import follow_refs, is_dict

Place: TypeAlias = tuple[str | int, ...]

_PART: Final = re.compile(
    r"\.(?P<name>[^.\[\]]+)|\[(?P<index>\d+)\]|\[(?P<quoted>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")\]"
)
_SHARED: Final[tuple[str, ...]] = ("$defs", "definitions")


def place_of(path: str) -> Place | None:
    """The parts of a path, or None for a string that is not a path.

    >>> place_of("$.items[2].price")
    ('items', 2, 'price')
    """
    if not path.startswith("$"):
        return None
    parts: list[str | int] = []
    at = 1
    while at < len(path):
        found = _PART.match(path, at)
        if found is None:
            return None
        if found["index"] is not None:
            parts.append(int(found["index"]))
        else:
            parts.append(found["name"] or str(ast.literal_eval(found["quoted"])))
        at = found.end()
    return tuple(parts)


def with_value(whole: Any, place: Place, value: Any) -> Any:
    """A copy of a JSON value with the value at this path replaced, or the value itself if there is no such path."""
    if not place:
        return value
    made = copy.deepcopy(whole)
    if can_hold(made, place):
        value_at(made, place[:-1])[place[-1]] = value
    return made


def value_at(whole: Any, place: Place, nowhere: object = None) -> Any:
    """The value at a place, or `nowhere` if there is no such place."""
    for part in place:
        if is_dict(whole) and part in whole:
            whole = whole[str(part)]
        elif isinstance(whole, list) and isinstance(part, int) and part < len(cast("Sequence[Any]", whole)):
            whole = cast("Sequence[Any]", whole)[part]
        else:
            return nowhere
    return whole


def can_hold(whole: Any, place: Place) -> bool:
    """Whether a value can be set at this place: its container exists and has the right type."""
    if not place:
        return True
    holder = value_at(whole, place[:-1])
    if isinstance(place[-1], int):
        return isinstance(holder, list) and place[-1] < len(cast("Sequence[Any]", holder))
    return isinstance(holder, dict)


def leaves(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """The scalars of a JSON value with their paths; an empty list or object counts as one."""
    if is_dict(value) and value:
        for key, inner in value.items():
            yield from leaves(inner, (*place, key))
    elif isinstance(value, list) and value:
        for index, inner in enumerate(cast("Sequence[Any]", value)):
            yield from leaves(inner, (*place, index))
    else:
        yield place, value


def schema_at(schema: JsonSchema, place: Place) -> JsonSchema | None:
    """The self-contained schema of a place, or None if it is unknown."""
    here = follow_refs(schema, schema)
    for part in place:
        if isinstance(part, int):
            found = here.get("items")
        else:
            properties: Mapping[str, Any] = here.get("properties", {})
            found = properties.get(part, here.get("additionalProperties"))
        if not isinstance(found, dict):
            return None
        here = follow_refs(cast("JsonSchema", found), schema)
    return {**here, **definitions_of(schema)}


def definitions_of(schema: JsonSchema) -> JsonSchema:
    """Parts of a schema that other parts may refer to."""
    return {name: schema[name] for name in _SHARED if name in schema}
