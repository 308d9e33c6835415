"""Places in a JSON value by their paths (`$.items[2].price`): what stands there, what the schema says, what to put."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

from flujo_aros.contract.schema import JsonSchema, is_dict

Place: TypeAlias = tuple[str | int, ...]

_PART: Final = re.compile(
    r"\.(?P<name>[^.\[\]]+)|\[(?P<index>\d+)\]|\[(?P<quoted>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")\]"
)
_MAX_REFS: Final = 64
_SHARED: Final[tuple[str, ...]] = ("$defs", "definitions")


def place_of(path: str) -> Place | None:
    """The parts of a path, or None for a text that is none.

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
    """A copy of a JSON value with another one at this place, or the same value where there is no such place."""
    if not place:
        return value
    made = copy.deepcopy(whole)
    holder = made
    for part in place[:-1]:
        holder = _inside(holder, part)
    last = place[-1]
    if can_hold(whole, place):
        holder[last] = value
    return made


def can_hold(whole: Any, place: Place) -> bool:
    """Whether something can be put at this place: what should hold it is there, and of the right kind."""
    holder = whole
    for part in place[:-1]:
        holder = _inside(holder, part)
    if not place:
        return True
    if isinstance(place[-1], int):
        return isinstance(holder, list) and place[-1] < len(cast("Sequence[Any]", holder))
    return isinstance(holder, dict)


def schema_at(schema: JsonSchema, place: Place) -> JsonSchema | None:
    """What a schema says about a place, as a schema on its own, or None where it cannot be told."""
    here = _followed(schema, schema)
    for part in place:
        if isinstance(part, int):
            found = here.get("items")
        else:
            properties: Mapping[str, Any] = here.get("properties", {})
            found = properties.get(part, here.get("additionalProperties"))
        if not isinstance(found, dict):
            return None
        here = _followed(cast("JsonSchema", found), schema)
    return {**here, **definitions_of(schema)}


def definitions_of(schema: JsonSchema) -> JsonSchema:
    """What other parts of a schema may point to."""
    return {name: schema[name] for name in _SHARED if name in schema}


def _followed(part: JsonSchema, root: JsonSchema) -> JsonSchema:
    """The schema that a `$ref` points to."""
    for _ in range(_MAX_REFS):
        target = part.get("$ref")
        if not isinstance(target, str) or not target.startswith("#/"):
            return part
        found: object = root
        for name in target[2:].split("/"):
            found = found.get(name.replace("~1", "/").replace("~0", "~")) if is_dict(found) else None
        if not is_dict(found):
            return {}
        part = found
    return {}


def _inside(holder: Any, part: str | int) -> Any:
    if isinstance(holder, dict) and isinstance(part, str):
        return cast("dict[str, Any]", holder).get(part)
    if isinstance(holder, list) and isinstance(part, int):
        items = cast("Sequence[Any]", holder)
        return items[part] if part < len(items) else None
    return None
