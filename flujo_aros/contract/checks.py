"""Checks: requirements beyond the schema, as plain functions. Two checks for verdicts are included."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Generator, Iterable, Sequence
from math import isnan
from typing import Any, Protocol, TypeAlias, TypeVar, cast

from flujo_aros.contract.validators import Invalid, Verdict
from flujo_aros.errors import ContractError, UsageError
from flujo_aros.json_data import is_dict
from flujo_aros.outcome import Issue, Repair, Risk
from flujo_aros.spelling import short_value

T = TypeVar("T")

Check: TypeAlias = Callable[[Any], Any]
"""Checks a value: returns None or True to accept it, a message, an `Issue` or False to reject it, or a cleaned value.

After a rejection the model is asked again; a cleaned value must also satisfy the contract, and the change is reported
as a repair. `ValueError` and `AssertionError` reject the value; any other exception is an error in the check itself.
A check may be async on an agent and on a step of a pipeline, which await it.
"""

Judgement: TypeAlias = tuple[T, tuple[Issue, ...], tuple[Repair, ...]]
"""A value after all checks, with their issues and changes."""


class Revalidates(Protocol):
    """A contract, as far as a check is concerned."""

    def revalidate(self, value: Any) -> Verdict[Any]:
        """Validate a value that a check returns in place of another."""
        ...


def judge(value: T, checks: Sequence[Check], contract: Revalidates | None) -> Judgement[T]:
    """Run all checks; return the value, their issues and their changes.

    `ValueError` and `AssertionError` raised by a check become issues, as with pydantic's validators. Raises `TypeError`
    if the contract rejects the value that a check returns in place of another, and `UsageError` for an async check,
    which cannot be awaited here.
    """
    plan = _judging(value, checks, contract)
    try:
        check, waiting = next(plan)
    except StopIteration as end:
        judged: Judgement[T] = end.value
        return judged
    if inspect.iscoroutine(waiting):
        waiting.close()
    raise UsageError(f"the check {name_of(check)} is async and cannot be awaited here; use it on an agent or a step")


async def judge_awaiting(value: T, checks: Sequence[Check], contract: Revalidates | None) -> Judgement[T]:
    """Run all checks like `judge`, and await those that are async."""
    plan = _judging(value, checks, contract)
    try:
        check, waiting = next(plan)
        while True:
            try:
                with _Running(check):
                    found = await waiting
            except (ValueError, AssertionError) as error:
                check, waiting = plan.throw(error)
            else:
                check, waiting = plan.send(found)
    except StopIteration as end:
        judged: Judgement[T] = end.value
        return judged


def _judging(
    value: Any, checks: Sequence[Check], contract: Revalidates | None
) -> Generator[tuple[Check, Awaitable[Any]], Any, Judgement[Any]]:
    """Run the checks, yielding each awaitable result."""
    issues: list[Issue] = []
    cleaned: list[Repair] = []
    for check in checks:
        try:
            with _Running(check):
                found = check(value)
            if inspect.isawaitable(found):
                found = yield check, found
        except (ValueError, AssertionError) as error:
            found = str(error) or False
        if found is False:
            found = f"{name_of(check)} is not satisfied"
        if isinstance(found, (str, Issue)):
            issues.append(Issue("$", "check", found) if isinstance(found, str) else found)
        elif found is not None and found is not True:
            cleaned.append(Repair("cleaned", Risk.LOSSY, "$", (0, 0), str(value)[:80], str(found)[:80]))
            value = found if contract is None else _accepted(found, check, contract)
    return value, tuple(issues), tuple(cleaned)


class _Running:
    """Notes a check on an exception of the block, which may be an error in the check itself."""

    def __init__(self, check: Check) -> None:
        self.check = check

    def __enter__(self) -> None:
        pass

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, Exception):
            error.add_note(f"raised by {_described(self.check)}")


def _accepted(found: Any, check: Check, contract: Revalidates) -> Any:
    """Return the value of the contract for a value that a check returns. Raises `TypeError` if there is none."""
    verdict = contract.revalidate(found)
    if not isinstance(verdict, Invalid):
        return verdict.value
    first = verdict.issues[0]
    raise TypeError(
        f"{_described(check)} returned {short_value(found)}, which does not satisfy the contract: {first.path}: "
        f"{first.message}; a check returns None or True to accept the value, and False or a message to reject it"
    )


def _described(check: Check) -> str:
    name = name_of(check)
    return name if name == "a check" else f"the check {name}"


def name_of(check: Check) -> str:
    """Return the name of a check, for messages."""
    name = str(getattr(check, "__name__", type(check).__name__)).strip("_")
    return "a check" if name == "<lambda>" else name


def is_async(check: Check) -> bool:
    """Return whether a check is known to be async."""
    return inspect.iscoroutinefunction(check) or inspect.iscoroutinefunction(getattr(check, "__call__", None))  # noqa: B004 (an object with an async `__call__`)


def fields_in(names: Collection[str]) -> Check:
    """Require each of these fields to be present, not null and not empty.

    >>> fields_in(["mood"])({"kind": "said", "text": "Well."}).message
    'mood is missing'
    """

    def fields(value: Any) -> Issue | None:
        missing = [name for name in names if _member(value, name) in (None, "")]
        verb = "is" if len(missing) == 1 else "are"
        return Issue(f"$.{missing[0]}", "missing", f"{', '.join(missing)} {verb} missing") if missing else None

    return fields


def names_of(names: Iterable[str], what: str) -> tuple[str, ...]:
    """Return the names of a list, trimmed, each once. Raises `ContractError` for anything but a list of strings."""
    if isinstance(names, str):
        raise ContractError(f"{what}={names!r} is a string: write a list, [{names!r}]")
    if not isinstance(cast("object", names), Iterable):
        raise ContractError(f"{what} must be a list of names, not {names!r}")
    given = list(names)
    wrong = [name for name in cast("list[object]", given) if not isinstance(name, str)]
    if wrong:
        raise ContractError(f"{what} contains {wrong[0]!r}, which is not a string")
    return tuple(dict.fromkeys(name.strip() for name in given if name.strip()))


def winner_in(cast: Collection[str] | None) -> Check:
    """Require `winner` to be one of the cast, or null; without a cast any winner is accepted.

    >>> winner_in(["p1", "p2"])({"winner": "nobody"}).message
    "winner must be one of p1, p2 or null, not 'nobody'"
    """

    if cast is not None:
        names_of(cast, "cast")

    def winner(value: Any) -> Issue | None:
        named = _member(value, "winner")
        if cast is None or named is None or (isinstance(named, str) and named in cast):
            return None
        return Issue("$.winner", "winner", f"winner must be one of {', '.join(cast)} or null, not {named!r}")

    return winner


def scores_of(cast: Collection[str] | None, low: float = 0, high: float = 10) -> Check:
    """Clean `scores`: drop names outside the cast and values that are not numbers, and clamp numbers to the bounds.

    The model is never asked again; without a cast the scores are not changed.

    >>> scores_of(["p1", "p2"])({"scores": {"p1": 12, "ghost": 5}})
    {'scores': {'p1': 10}}
    """

    if cast is not None:
        names_of(cast, "cast")

    def scores(value: Any) -> Any:
        given = _member(value, "scores")
        if cast is None or not given:
            return None
        entries = given if is_dict(given) else {}
        kept = {name: _clamp(score, low, high) for name, score in entries.items() if name in cast and _is_number(score)}
        if kept == given:
            return None
        return {**value, "scores": kept} if is_dict(value) else value.model_copy(update={"scores": kept})

    return scores


def _clamp(score: float, low: float, high: float) -> float:
    bounded = min(max(score, low), high)
    return float(bounded) if isinstance(score, float) else bounded


def _is_number(score: Any) -> bool:
    return not isnan(score) if isinstance(score, float) else isinstance(score, int) and not isinstance(score, bool)


def _member(value: Any, name: str) -> Any:
    return value.get(name) if is_dict(value) else getattr(value, name, None)
