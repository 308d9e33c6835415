"""How often a validator may visit a value, given recursive alternatives and `$ref`s that repeat the same schema."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, cast

from flujo_aros.contract.schema import Shape
from flujo_aros.errors import ContractError
from flujo_aros.json_data import References, is_dict, is_list, objects_in

_DEEPEST_UNION: Final = 8
_EACH: Final = 16
"""This many tries of one shape at one place do not indicate doubling."""


class Effort:
    """The cost of validating values of a shape. It matters only if a schema with alternatives refers to itself."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.grows = _loops(shape)
        """The cost may double with each level of a value."""

    def exceeds(self, limit: int, value: object) -> bool:
        """Whether a validator may have to look at places more than `limit` times. Takes time linear in the value.

        What is tried a few times at each place, as any union is, does not count, however large the value.
        """
        total = allowed = 0
        pending: list[tuple[Any, dict[int, tuple[Shape, int]]]] = [(value, {0: (self.shape, 1)})]
        while pending:
            here, given = pending.pop()
            shapes = _alternatives(given)
            total += sum(count for _, count in shapes)
            allowed += _EACH * len(shapes)
            if total > limit + allowed:
                return True
            pending += _children(here, shapes)
        return False


def _children(here: object, shapes: list[tuple[Shape, int]]) -> list[tuple[Any, dict[int, tuple[Shape, int]]]]:
    if is_dict(here):
        return [(child, _merged([(_member(shape, key), n) for shape, n in shapes])) for key, child in here.items()]
    if is_list(here):
        return [(child, _merged([(_element(shape, i), n) for shape, n in shapes])) for i, child in enumerate(here)]
    return []


def _merged(found: list[tuple[Shape | None, int]]) -> dict[int, tuple[Shape, int]]:
    """How often each shape is tried at one place."""
    counts: dict[int, tuple[Shape, int]] = {}
    for shape, count in found:
        if shape is not None:
            counts[id(shape)] = (shape, count + counts.get(id(shape), (shape, 0))[1])
    return counts


def _member(shape: Shape, key: str) -> Shape | None:
    if shape.types and "object" not in shape.types:
        return None
    found = shape.properties.get(key)
    if found is None:
        found = next((part for pattern, part in shape.patterns if pattern.matches(key)), None)
    return found if found is not None or not isinstance(shape.additional, Shape) else shape.additional


def _element(shape: Shape, index: int) -> Shape | None:
    if shape.types and "array" not in shape.types:
        return None
    return shape.prefix[index] if index < len(shape.prefix) else shape.items


def _alternatives(given: dict[int, tuple[Shape, int]]) -> list[tuple[Shape, int]]:
    """The shapes and all their alternatives, down to a depth that hand-written unions do not reach."""
    out: dict[int, tuple[Shape, int]] = {}
    layer = given
    for _ in range(_DEEPEST_UNION):
        for key, (shape, count) in layer.items():
            out[key if key else id(shape)] = (shape, count + out.get(id(shape), (shape, 0))[1])
        layer = _merged([(branch, count) for shape, count in layer.values() for branch in shape.branches])
        if not layer:
            break
    return list(out.values())


def _loops(root: Shape) -> bool:
    """Whether a shape contains itself and has alternatives."""
    open_shapes: set[int] = set()
    done: set[int] = set()
    looped = unions = False
    pending: list[tuple[Shape, bool]] = [(root, False)]
    while pending:
        shape, left = pending.pop()
        if left:
            open_shapes.discard(id(shape))
            done.add(id(shape))
            continue
        if id(shape) in open_shapes:
            looped = True
            continue
        if id(shape) in done:
            continue
        open_shapes.add(id(shape))
        unions = unions or len(shape.branches) > 1
        pending.append((shape, True))
        pending += [(part, False) for part in _parts(shape)]
    return looped and unions


def _parts(shape: Shape) -> list[Shape]:
    parts = [*shape.properties.values(), *shape.branches, *shape.prefix]
    parts += [part for _, part in shape.patterns]
    parts += [part for part in (shape.items, shape.additional) if isinstance(part, Shape)]
    return parts


_LISTS: Final = ("allOf", "anyOf", "oneOf")
_PARTS: Final = ("not", "if", "then", "else")

_MOST_VISITS: Final = 100_000
"""The most schemas tried at one place of a value, about 2 ms for each place."""
_MOST_LOOPS: Final = 8
"""Ways to return to the same schema at the same place. Each may multiply the visits: 8 take up to 20 ms."""


def refuse_exponential(schema: dict[str, Any]) -> None:
    """Raise `ContractError` for a schema that would take a validator exponential time at one place of a value.

    A `$ref` that leads back to itself at the same place has no effect there, as in jsonschema-rs. Trees and
    other schemas that recur one level deeper are fine. Takes time linear in the schema.
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
        message = f"the schema takes more than {_MOST_VISITS:,} steps to validate one place of a value"
        raise ContractError(f"{message}: its $refs lead to the same schemas repeatedly; reference each of them once")


def _peel(links: dict[int, list[int]], back: dict[int, list[int]], nodes: set[int]) -> list[int]:
    """The nodes that reach no cycle through `links`, each after those it links to."""
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
    """The subschemas that apply to the same value as this one."""
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
