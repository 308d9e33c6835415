"""Schemas that lead back to themselves at one and the same place, so that nothing could ever be said about a value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final, cast

from flujo_aros.errors import ContractError

_LISTS: Final = ("allOf", "anyOf", "oneOf")
_PARTS: Final = ("not", "if", "then", "else")

Follow = Callable[[str], object]
"""Where a `$ref` inside of this schema leads; None: nowhere."""


def refuse_endless(schema: dict[str, Any], follow: Follow) -> None:
    """Raise a `ContractError` where a `$ref` comes round to itself without a step into the value.

    A validator has to break off there and takes anything for valid. Schemas that repeat one level deeper, such as
    that of a tree, are as good as any. Takes time linear in the schema.
    """
    nodes = list(objects_in(schema))
    if not any(isinstance(node.get("$ref"), str) for node in nodes):
        return
    around = {id(node): [id(part) for part in _same_place(node, follow)] for node in nodes}
    try:
        TopologicalSorter(around).prepare()
    except CycleError as error:
        names = {id(node): node.get("$ref") for node in nodes}
        ref = next(names[each] for each in cast("list[int]", error.args[1]) if isinstance(names.get(each), str))
        message = f"the schema leads back to itself at the same place by $ref {ref!r}, and no value could be judged"
        raise ContractError(f"{message}; refer to it from `properties` or `items`, or take the $ref out") from None


def objects_in(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every object in a schema, itself first, each once."""
    waiting: list[object] = [schema]
    seen: set[int] = set()
    while waiting:
        here: object = waiting.pop()
        if id(here) in seen:
            continue
        seen.add(id(here))
        if isinstance(here, dict):
            found = cast("dict[str, Any]", here)
            yield found
            waiting.extend(found.values())
        elif isinstance(here, list):
            waiting.extend(cast("list[object]", here))


def _same_place(node: dict[str, Any], follow: Follow) -> Iterator[dict[str, Any]]:
    """What is asked of the very value that this is asked of."""
    parts: list[object] = [node.get(key) for key in _PARTS]
    for key in _LISTS:
        if isinstance(node.get(key), list):
            parts.extend(node[key])
    ref = node.get("$ref")
    if isinstance(ref, str) and ref.startswith("#"):
        parts.append(follow(ref))
    for part in parts:
        if isinstance(part, dict):
            yield cast("dict[str, Any]", part)
