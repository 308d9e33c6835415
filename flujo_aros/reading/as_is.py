"""Which parts of a JSON value coercion would leave unchanged, found without coercing them.

`fit` compares a value with its shape in one walk. It errs on one side only: of a value that it calls `AS_IS`, coercion
returns every part without an edit and without an issue. Where it sees a reason to convert, coercion decides.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple, TypeAlias, cast

from flujo_aros.contract import TIMES, Shape
from flujo_aros.reading.enum_match import is_no_value
from flujo_aros.reading.node import Path

AS_IS: Final = 0
"""Coercion returns the value without an edit or an issue."""
OTHER_SCALARS: Final = 1
"""A scalar in it may have to be converted or rejected."""
OTHER_KEYS: Final = 2
"""It has a key that the schema does not name."""
FOREIGN_KEYS: Final = 4
"""It has a key that the schema does not name, in an object for which the schema names keys."""
OTHER_CONTAINERS: Final = 8
"""An object or a list in it may have to be converted, completed or rejected."""
CONVERTS: Final = OTHER_SCALARS | OTHER_CONTAINERS
"""Something in it may have to be converted, renamed or rejected."""

_MAX_BRANCHES: Final = 64
_MOST_TRIED: Final = 200
_SCALARS: Final[dict[type, str]] = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
_NO_STRINGS: Final[frozenset[str]] = frozenset()


class Misfit(NamedTuple):
    """A scalar that may have to be converted: `holder[key]`, the type wanted there, and its path."""

    holder: Any
    key: Any
    shape: Shape
    path: Path


class Scalars(NamedTuple):
    """The scalars that a shape accepts unchanged: by class, and for some classes by value."""

    classes: frozenset[type]
    """Every scalar of such a class."""
    strings: frozenset[str]
    """These strings."""
    nullable: bool
    """Every string but those that say that there is no value, which become null."""

    def hold(self, value: Any) -> bool:
        """Whether a scalar whose class is not in `classes` is accepted unchanged anyway."""
        if value.__class__ is not str:
            return False
        return value in self.strings or (self.nullable and not is_no_value(value))


class Plan(NamedTuple):
    """What `fit` needs to know of a shape; made once and kept with the shape."""

    scalars: Scalars
    members: dict[Any, Place]
    required: frozenset[str] | None
    """None if no object fits here unchanged."""
    array: bool
    """A list fits here unchanged."""
    element: Place | None
    """None if it depends on the index."""


Place: TypeAlias = "tuple[frozenset[type], Scalars, Shape]"
"""What is wanted at a key or an index. The classes of `Scalars` come first, because most values need nothing else."""


def fit(
    value: Any, shape: Shape, fuel: list[int] | None = None, misfits: list[Misfit] | None = None, path: Path = None
) -> int:
    """How an object or a list fits a shape: `AS_IS`, or flags for what speaks against it.

    `fuel` is how many alternatives may still be tried; where it runs out, everything may have to be converted.
    `misfits` collects the scalars after `OTHER_SCALARS`, in the order of the text.
    """
    if shape.branches and not shape.properties:
        return _fit_branch(value, shape, [_MOST_TRIED] if fuel is None else fuel)
    plan: Plan = shape.plan or _plan(shape)
    parts: Iterable[tuple[Any, Any]]
    kind: type = value.__class__
    if kind is dict:
        found = AS_IS if plan.required is not None and plan.required <= value.keys() else OTHER_CONTAINERS
        parts, same = value.items(), None
    else:
        found = AS_IS if plan.array else OTHER_CONTAINERS
        same = plan.element
        if same is not None and same[0].issuperset(map(type, value)):
            return found  # a list of scalars, all of which stay
        parts = enumerate(cast("list[Any]", value))
    members = plan.members
    for key, part in parts:
        known = same or members.get(key)
        if known is not None:
            classes, scalars, inner = known
            if part.__class__ in classes:
                continue
        else:
            flags, scalars, inner = _undeclared(key, shape)
            found |= flags
        if found & FOREIGN_KEYS:
            return found
        kind = part.__class__
        if kind is dict or kind is list:
            found |= fit(part, inner, fuel, misfits, (path, key))
        elif kind not in scalars.classes and not scalars.hold(part):
            found |= OTHER_SCALARS
            if misfits is not None:
                misfits.append(Misfit(value, key, inner, (path, key)))
    return found


def _undeclared(key: str | int, shape: Shape) -> tuple[int, Scalars, Shape]:
    """The reasons against a key that the shape does not name, and the shape wanted at that key or index."""
    if isinstance(key, int):
        flags, inner = AS_IS, shape.element(key)
    else:
        flags, inner = OTHER_KEYS, shape.member(key)
        if shape.keys:
            flags |= FOREIGN_KEYS | CONVERTS
        elif not (shape.anything or shape.keeps(key)):
            flags |= CONVERTS
    return flags, (inner.plan or _plan(inner)).scalars, inner


def _fit_branch(value: Any, shape: Shape, fuel: list[int]) -> int:
    """The fit of the first alternative that accepts the value unchanged, else what all alternatives have in common."""
    found = AS_IS
    for branch in shape.branches:
        fuel[0] -= 1
        if fuel[0] < 0:
            return CONVERTS | OTHER_KEYS | FOREIGN_KEYS
        part = fit(value, branch, fuel)
        if part == AS_IS:
            return AS_IS
        found |= part
    return found | CONVERTS


def _plan(shape: Shape) -> Plan:
    names = [name for name, real in shape.keys.items() if name == real]
    element = None if shape.prefix else shape.element(0)
    objects = shape.anything or (shape.choices is None and shape.allows("object"))
    plan = Plan(
        _scalars(shape),
        {name: _place(shape.member(name)) for name in names},
        shape.required if objects else None,
        shape.anything or (shape.choices is None and shape.allows("array")),
        None if element is None else _place(element),
    )
    shape.plan = plan
    return plan


def _place(shape: Shape) -> Place:
    scalars = _scalars(shape)
    return scalars.classes, scalars, shape


def _scalars(shape: Shape) -> Scalars:
    if shape.anything:
        return Scalars(frozenset(_SCALARS), _NO_STRINGS, nullable=False)
    if shape.branches and not shape.properties:
        parts = [_scalars(branch) for branch in shape.branches[:_MAX_BRANCHES]] if not shape.time_forms else []
        classes = frozenset(kind for part in parts for kind in part.classes)
        strings = frozenset(string for part in parts for string in part.strings)
        return _of_classes(classes, strings, nullable=shape.allows("null"))
    if shape.choices is not None:
        return Scalars(frozenset(), frozenset(c for c in shape.choices if isinstance(c, str)), nullable=False)
    classes = frozenset(kind for kind, name in _SCALARS.items() if shape.allows(name))
    if float in classes:
        classes |= {int}
    if shape.format in TIMES:
        classes -= {str}
    return _of_classes(classes, _NO_STRINGS, nullable=shape.allows("null"))


def _of_classes(classes: frozenset[type], strings: frozenset[str], *, nullable: bool) -> Scalars:
    return Scalars(classes - {str} if nullable else classes, strings, nullable=nullable and str in classes)
