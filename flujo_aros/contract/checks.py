"""Checks: what a value must be beyond its schema, as plain functions, and two that every contest needs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias, TypeVar

from flujo_aros.contract.schema import is_dict
from flujo_aros.outcome import Issue, Repair, Risk

T = TypeVar("T")

Check: TypeAlias = Callable[[Any], Any]
"""Judges a value: None if it is right, a sentence or an `Issue` if it is wrong, or the value itself, made clean.

A wrong value is asked for again; a value that the check has cleaned is taken, and the cleaning is told as a repair.
"""


def judge(value: T, checks: tuple[Check, ...]) -> tuple[T, tuple[Issue, ...], tuple[Repair, ...]]:
    """The value after all checks, what they have against it, and what they have cleaned.

    `ValueError` and `AssertionError` of a check count as an issue, as with pydantic's validators.
    """
    issues: list[Issue] = []
    cleaned: list[Repair] = []
    for check in checks:
        found = _found(check, value)
        if isinstance(found, Issue):
            issues.append(found)
        elif found is not None:
            cleaned.append(Repair("cleaned", Risk.LOSSY, "$", (0, 0), str(value)[:80], str(found)[:80]))
            value = found
    return value, tuple(issues), tuple(cleaned)


def _found(check: Check, value: Any) -> Any:
    try:
        found = check(value)
    except (ValueError, AssertionError) as error:
        found = str(error) or f"{name_of(check)} is not satisfied"
    return Issue("$", "check", found) if isinstance(found, str) else found


def name_of(check: Check) -> str:
    """The name of a check, for a message."""
    return str(getattr(check, "__name__", type(check).__name__)).strip("_")


def winner_in(cast: Collection[str] | None) -> Check:
    """`winner` must be one of the cast, or not be named; without a cast every winner will do.

    >>> winner_in(["p1", "p2"])({"winner": "nobody"}).message
    "winner is 'nobody'; it must be one of: p1, p2, or null"
    """

    def winner(value: Any) -> Issue | None:
        named = _member(value, "winner")
        if cast is None or named is None or named in cast:
            return None
        return Issue("$.winner", "winner", f"winner is {named!r}; it must be one of: {', '.join(cast)}, or null")

    return winner


def scores_of(cast: Collection[str] | None, low: float = 0, high: float = 10) -> Check:
    """Cleans `scores`: names outside of the cast are dropped, numbers kept between `low` and `high`. Never asks again.

    >>> scores_of(["p1", "p2"])({"scores": {"p1": 12, "ghost": 5}})
    {'scores': {'p1': 10}}
    """

    def scores(value: Any) -> Any:
        given: Mapping[str, float] | None = _member(value, "scores")
        if cast is None or not given:
            return None
        kept = {name: min(max(score, low), high) for name, score in given.items() if name in cast}
        return None if kept == given else _with(value, "scores", kept)

    return scores


def _member(value: Any, name: str) -> Any:
    return value.get(name) if is_dict(value) else getattr(value, name, None)


def _with(value: Any, name: str, member: Any) -> Any:
    return {**value, name: member} if is_dict(value) else value.model_copy(update={name: member})
