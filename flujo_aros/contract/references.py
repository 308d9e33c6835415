"""How often the `$ref` of a schema make a validator visit one place of a value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, cast

from flujo_aros.errors import ContractError
from flujo_aros.json_data import References, objects_in

_LISTS: Final = ("allOf", "anyOf", "oneOf")
_PARTS: Final = ("not", "if", "then", "else")

_MOST_VISITS: Final = 100_000
"""Schemas tried at one place of a value: about 2 ms for each place."""
_MOST_LOOPS: Final = 8
"""Ways to come back to the same schema at the same place. Each may multiply the visits: 8 take up to 20 ms."""


def refuse_exponential(schema: dict[str, Any]) -> None:
    """Raise a `ContractError` for a schema that would take a validator exponential time at one place of a value.

    A `$ref` that leads back to itself at the same place says nothing there, and jsonschema-rs takes it so; trees and
    other schemas that repeat one level deeper are as good as any. Takes time linear in the schema.
    """
    references = References(schema)
    nodes = {id(node): node for node in objects_in(schema)}
    if not any(isinstance(node.get("$ref"), str) for node in nodes.values()):
        return
    below = {
        at: [id(part) for part in _same_place(node, references) if id(part) in nodes] for at, node in nodes.items()
    }
    above: dict[int, list[int]] = {at: [] for at in nodes}
    for at, parts in below.items():
        for part in parts:
            above[part].append(at)
    inner = _peel(below, above, set(nodes))
    outer = _peel(above, below, set(nodes) - set(inner))
    core = set(nodes) - set(inner) - set(outer)
    loops = sum(part in core for at in core for part in below[at]) - len(core)
    visits: Counter[int] = Counter(dict.fromkeys(core, len(core)))
    for at in (*inner, *reversed(outer)):
        visits[at] = min(1 + sum(visits[part] for part in below[at]), _MOST_VISITS + 1)
    if loops > _MOST_LOOPS or max(visits.values()) > _MOST_VISITS:
        message = f"the schema takes more than {_MOST_VISITS:,} steps to judge one place of a value"
        raise ContractError(f"{message}: its $ref lead to the same schemas again and again; name each of them once")


def _peel(links: dict[int, list[int]], back: dict[int, list[int]], nodes: set[int]) -> list[int]:
    """The nodes that no loop can be reached from by `links`, each after those that it links to."""
    left = {at: sum(part in nodes for part in links[at]) for at in nodes}
    found = [at for at, count in left.items() if not count]
    for at in found:
        for other in back[at]:
            if other in nodes:
                left[other] -= 1
                if not left[other]:
                    found.append(other)
    return found


def _same_place(node: dict[str, Any], references: References) -> Iterator[dict[str, Any]]:
    """What is asked of the very value that this is asked of."""
    parts: list[object] = [node.get(key) for key in _PARTS]
    for key in _LISTS:
        if isinstance(node.get(key), list):
            parts.extend(node[key])
    ref = node.get("$ref")
    if isinstance(ref, str) and ref.startswith("#"):
        parts.append(references.resolve(ref))
    for part in parts:
        if isinstance(part, dict):
            yield cast("dict[str, Any]", part)
