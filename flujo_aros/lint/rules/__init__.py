"""Every rule, by family. A rule is a class in one of these files; nothing else lists it."""

from __future__ import annotations

from typing import Final

from flujo_aros.lint.rule import Rule
from flujo_aros.lint.rules import control_flow, ladders, loader, outputs, values

_FAMILIES: Final = (loader, values, control_flow, outputs, ladders)

RULES: Final[tuple[type[Rule], ...]] = tuple(
    each
    for family in _FAMILIES
    for each in vars(family).values()
    if isinstance(each, type) and issubclass(each, Rule) and each.__module__ == family.__name__ and each.code
)
"""All rules, in the order in which they run."""
