"""The stage salvage: the longest part of a list or text that is complete and satisfies the contract."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Final, Literal, TypeVar

from pydantic_core import to_json

from flujo_aros.outcome import Accepted, Outcome, Reason, Rejected, Repair, Risk, Trust
from flujo_aros.recovery.json_path import Place, place_of, with_value
from flujo_aros.recovery.plan import Past, Plan, ReadReply, Reply, Rung, Task

T = TypeVar("T")


class Salvage(Rung):
    """Keep the whole items of a list and drop the broken or unfinished ones, each reported as a LOSSY repair.

    Never the default: a shorter list looks like a complete one. What remains satisfies the contract.
    """

    answers: ClassVar[frozenset[Reason]] = frozenset({Reason.TRUNCATED, Reason.INVALID, Reason.MALFORMED})
    asks: ClassVar[bool] = False

    stage: Literal["salvage"] = "salvage"

    def passes(self, task: Task[Any], past: Past) -> str | None:  # noqa: ARG002 (one shape for all stages)
        """No JSON value, or no schema that says what an item is."""
        return None if task.contract.mode == "json" else "only a JSON value has items that could be kept"

    def climb(self, task: Task[T], past: Past, read: ReadReply[T]) -> Plan[T]:  # noqa: ARG002 (one shape for all stages)
        """Drop what is broken, the least first, until the rest is accepted."""
        failing = past.current
        if failing.reason is Reason.INVALID:
            return _without_wrong_items(failing, read)
        return _without_the_end(failing, read)
        yield  # makes this a plan that asks nothing


def _without_wrong_items(failing: Rejected, read: ReadReply[T]) -> Outcome[T]:
    if failing.draft is None:
        return failing
    items = {_item_of(place) for issue in failing.issues if (place := place_of(issue.path)) is not None}
    if not items or () in items:
        return failing
    whole, dropped = failing.draft.value, list[Repair]()
    for place in sorted(items, key=_order, reverse=True):
        holder = whole
        for part in place[:-1]:
            holder = holder[part]
        kept = [item for index, item in enumerate(holder) if index != place[-1]]
        dropped_text = to_json(holder[place[-1]], inf_nan_mode="constants").decode()
        path = "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
        dropped.insert(0, Repair("dropped-item", Risk.LOSSY, path, failing.draft.span, dropped_text[:80], ""))
        whole = with_value(whole, place[:-1], kept)
    text = to_json(whole, inf_nan_mode="constants").decode()
    return read(Reply(text, truncated=False), partial(_kept, dropped=dropped, failing=failing))


def _without_the_end(failing: Rejected, read: ReadReply[T]) -> Outcome[T]:
    for end, text in whole_prefixes(failing.text):
        dropped_text = failing.text[end:]
        repair = Repair("dropped-end", Risk.LOSSY, "$", (end, len(failing.text)), dropped_text[:80], "")
        outcome = read(Reply(text, truncated=False), partial(_kept, dropped=[repair], failing=failing))
        if isinstance(outcome, Accepted):
            return outcome
    return failing


def _kept(outcome: Outcome[T], dropped: list[Repair], failing: Rejected) -> Outcome[T]:
    if not isinstance(outcome, Accepted):
        return outcome
    return replace(outcome, trust=Trust.LOSSY, repairs=(*dropped, *outcome.repairs), text=failing.text)


def _item_of(place: Place) -> Place:
    """The innermost item of a list that holds this place; the root where there is none."""
    last = max((index for index, part in enumerate(place) if isinstance(part, int)), default=-1)
    return place[: last + 1]


def _order(place: Place) -> tuple[tuple[int, str], ...]:
    return tuple((part, "") if isinstance(part, int) else (0, part) for part in place)


_CLOSERS: Final = {"{": "}", "[": "]"}


def whole_prefixes(text: str, most: int = 16) -> list[tuple[int, str]]:
    """The beginnings of a JSON text that end after a whole item of a list, closed, each with where it ends.

    The longest first, and at most so many. Only lists give places to end at: an object
    without its last members is another object.

    >>> whole_prefixes('{"items": [{"n": 1}, {"n": 2}, {"n"')
    [(29, '{"items": [{"n": 1}, {"n": 2}]}'), (19, '{"items": [{"n": 1}]}')]
    """
    start = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=-1)
    if start < 0:
        return []
    stack: list[str] = []
    ends: deque[tuple[int, str]] = deque(maxlen=most)
    for at, letter in _outside_strings(text, start):
        if letter in "{[":
            stack.append(letter)
        elif letter in "}]":
            if not stack or _CLOSERS[stack.pop()] != letter or not stack:
                break
            if stack[-1] == "[":
                ends.append((at + 1, _closing(stack)))
        elif stack and stack[-1] == "[" and (not ends or text[ends[-1][0] : at].strip()):
            ends.append((at, _closing(stack)))
    return [(end, text[start:end] + closing) for end, closing in reversed(ends)]


def _closing(stack: list[str]) -> str:
    return "".join(_CLOSERS[opened] for opened in reversed(stack))


def _outside_strings(text: str, start: int) -> list[tuple[int, str]]:
    """The characters that build the structure, with their places."""
    found: list[tuple[int, str]] = []
    inside = escaped = False
    for at in range(start, len(text)):
        letter = text[at]
        if inside:
            if not escaped and letter == '"':
                inside = False
            escaped = letter == "\\" and not escaped
        elif letter == '"':
            inside = True
        elif letter in "{}[],":
            found.append((at, letter))
    return found
