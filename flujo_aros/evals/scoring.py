"""Decides whether an output is right, by comparing it with the expected one, field by field, or by an expression."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, TypeAlias

from flujo_aros.evals.cases import UNLABELLED, Case
from flujo_aros.json_data import is_dict, is_list
from flujo_aros.pipeline.condition import Condition
from flujo_aros.pipeline.values import as_plain

Match: TypeAlias = Literal["exact", "fields"]
"""With `exact` the output must equal the expected one; with `fields` it may have further fields."""


@dataclass(frozen=True, slots=True)
class FieldScore:
    """The verdict on one field of an output. The same field in all items of a list has one path, `items[].qty`."""

    place: str
    right: bool
    found: Any = None
    expected: Any = None


def score(output: Any, expected: Any, match: Match = "exact") -> tuple[FieldScore, ...]:
    """Compare the fields of an output with the expected ones; a value without fields counts as the single field `$`.

    Both are compared as JSON: a null field equals an absent one, and a decimal equals its digits.

    >>> [(each.place, each.right) for each in score({"city": "Bern", "zip": "3011"}, {"city": "Bern", "zip": 3012})]
    [('city', True), ('zip', False)]
    """
    return tuple(_scores(as_plain(output), as_plain(expected), "", match))


def _scores(found: Any, expected: Any, place: str, match: Match) -> Iterator[FieldScore]:
    if is_dict(expected) and is_dict(found) and (expected or found):
        names = dict.fromkeys(expected if match == "fields" else [*expected, *found])
        for name in names:
            if name not in expected and found[name] is None:
                continue
            own = f"{place}.{name}" if place else name
            yield from _scores(found.get(name), expected.get(name), own, match)
    elif is_list(expected) and is_list(found) and len(expected) == len(found) and expected:
        for one, other in zip(found, expected, strict=True):
            yield from _scores(one, other, f"{place}[]", match)
    else:
        yield FieldScore(place or "$", _equal(found, expected), found, expected)


def _equal(found: Any, expected: Any) -> bool:
    if isinstance(found, bool) or isinstance(expected, bool):
        return found is expected
    if isinstance(found, str) and isinstance(expected, (int, float)):
        try:
            return Decimal(found) == Decimal(repr(expected))
        except InvalidOperation:
            return False
    return bool(found == expected)


def check_of(expression: str) -> Condition:
    """Return an expression over `output`, `expected` and `input` that is true for a correct output.

    Raises `UsageError` for an invalid expression.
    """
    return Condition(expression, where=f"check {expression!r}", names=("output", "expected", "input"))


def holds_check(check: Condition, case: Case, output: Any) -> bool:
    """Return whether a check holds. Raises `TemplateError` if it cannot be evaluated, e.g. for a field that does not
    exist.
    """
    expected = None if case.expected is UNLABELLED else case.expected
    return bool(check.evaluate({"output": as_plain(output), "expected": expected, "input": case.input}))
