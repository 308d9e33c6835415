"""What coercion would leave as it is: values of valid JSON that are of the types their schema wants, told quickly.

The answer is never wrong in one direction: a value that is told to stay is one that `Coercion` returns without an edit
and without an issue. Of one that may need a conversion nothing is said, and coercion looks at it.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from flujo_aros.contract import TIMES, Shape
from flujo_aros.reading.enum_match import is_no_value

_MAX_BRANCHES: Final = 64
_MOST_TRIED: Final = 200


AS_IS: Final = 0
"""Coercion returns the value without an edit and without an issue."""
CONVERTS: Final = 1
"""Something in it may have to be converted, renamed or refused."""
OTHER_KEYS: Final = 2
"""Some key is not a name of the schema."""
FOREIGN_KEYS: Final = 4
"""Some key is not a name of the schema where that has names."""

_SCALARS: Final[dict[type, str]] = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
_NO_TEXTS: Final[frozenset[Any]] = frozenset()


class Scalars(NamedTuple):
    """The scalars that a shape takes as they are: by class, some strings by value."""

    classes: frozenset[type]
    """Every scalar of such a class."""
    strings: frozenset[str]
    """These strings."""
    nullable: bool
    """Every string but those that say that there is no value, which become null."""


class Plan(NamedTuple):
    """A shape as this module needs it, kept with the shape."""

    scalars: Scalars
    members: dict[str, tuple[Scalars, Shape]]
    required: frozenset[str] | None
    """None: no object may stand here as it is."""
    array: bool
    """A list may stand here as it is."""
    element: tuple[Scalars, Shape] | None
    """None: it depends on the index."""


def fit(value: Any, shape: Shape, fuel: list[int] | None = None) -> int:
    """How a container fits a shape: AS_IS, or the flags of what speaks against it.

    `fuel` is how many alternatives may still be tried: of what takes more, everything may have to be converted.
    """
    if shape.branches and not shape.properties:
        return _fit_branch(value, shape, [_MOST_TRIED] if fuel is None else fuel)
    plan: Plan = shape.plan or _plan(shape)
    return _fit_object(value, shape, plan, fuel) if value.__class__ is dict else _fit_list(value, shape, plan, fuel)


def _fit_object(value: dict[str, Any], shape: Shape, plan: Plan, fuel: list[int] | None) -> int:
    members = plan.members
    found = AS_IS if plan.required is not None and plan.required <= value.keys() else CONVERTS
    for key, part in value.items():
        known = members.get(key)
        if known is None:
            if shape.keys:
                return FOREIGN_KEYS | OTHER_KEYS | CONVERTS
            found |= OTHER_KEYS if shape.anything or shape.keeps(key) else OTHER_KEYS | CONVERTS
            inner = shape.member(key)
            scalars = (inner.plan or _plan(inner)).scalars
        else:
            scalars, inner = known
        kind = part.__class__
        if kind is dict or kind is list:
            found |= fit(part, inner, fuel)
            if found & FOREIGN_KEYS:
                return found
        elif kind not in scalars.classes and not _stays(part, scalars):
            found |= CONVERTS
    return found


def _fit_list(value: list[Any], shape: Shape, plan: Plan, fuel: list[int] | None) -> int:
    found = AS_IS if plan.array else CONVERTS
    same = plan.element
    if same is not None and same[0].classes.issuperset(map(type, value)):
        return found
    for index, part in enumerate(value):
        if same is None:
            inner = shape.element(index)
            scalars = (inner.plan or _plan(inner)).scalars
        else:
            scalars, inner = same
        kind = part.__class__
        if kind is dict or kind is list:
            found |= fit(part, inner, fuel)
            if found & FOREIGN_KEYS:
                return found
        elif kind not in scalars.classes and not _stays(part, scalars):
            found |= CONVERTS
    return found


def _fit_branch(value: Any, shape: Shape, fuel: list[int]) -> int:
    """As one of the alternatives; where none takes it as it is, all of them speak of its keys."""
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
        {name: (_scalars(shape.member(name)), shape.member(name)) for name in names},
        shape.required if objects else None,
        shape.anything or (shape.choices is None and shape.allows("array")),
        None if element is None else (_scalars(element), element),
    )
    shape.plan = plan
    return plan


def _stays(value: Any, scalars: Scalars) -> bool:
    """Whether a scalar stays that is of no class which always does."""
    if value.__class__ is not str:
        return False
    return value in scalars.strings or (scalars.nullable and not is_no_value(value))


def _scalars(shape: Shape) -> Scalars:
    if shape.anything:
        return Scalars(frozenset(_SCALARS), _NO_TEXTS, nullable=False)
    if shape.branches and not shape.properties:
        parts = [_scalars(branch) for branch in shape.branches[:_MAX_BRANCHES]] if not shape.time_forms else []
        classes = frozenset(kind for part in parts for kind in part.classes)
        strings = frozenset(text for part in parts for text in part.strings)
        return _of_classes(classes, strings, nullable=shape.allows("null"))
    if shape.choices is not None:
        return Scalars(frozenset(), frozenset(c for c in shape.choices if isinstance(c, str)), nullable=False)
    classes = frozenset(kind for kind, name in _SCALARS.items() if shape.allows(name))
    if float in classes:
        classes |= {int}
    if shape.format in TIMES:
        classes -= {str}
    return _of_classes(classes, _NO_TEXTS, nullable=shape.allows("null"))


def _of_classes(classes: frozenset[type], strings: frozenset[str], *, nullable: bool) -> Scalars:
    return Scalars(classes - {str} if nullable else classes, strings, nullable=nullable and str in classes)
