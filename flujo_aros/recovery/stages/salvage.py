"""The stage that keeps what is whole of an answer, and reports what it has dropped."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal, TypeVar

from pydantic_core import to_json

from flujo_aros.outcome import Accepted, Outcome, Reason, Rejected, Repair, Risk, Trust
from flujo_aros.recovery.cuts import whole_prefixes
from flujo_aros.recovery.places import Place, place_of, with_value
from flujo_aros.recovery.plan import Past, Plan, ReadReply, Reply, Task
from flujo_aros.recovery.stages.stage import Rung

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
        lost = to_json(holder[place[-1]], inf_nan_mode="constants").decode()
        path = "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
        dropped.insert(0, Repair("dropped-item", Risk.LOSSY, path, failing.draft.span, lost[:80], ""))
        whole = with_value(whole, place[:-1], kept)
    text = to_json(whole, inf_nan_mode="constants").decode()
    return read(Reply(text, truncated=False), partial(_kept, dropped=dropped, failing=failing))


def _without_the_end(failing: Rejected, read: ReadReply[T]) -> Outcome[T]:
    for end, text in whole_prefixes(failing.text):
        lost = failing.text[end:]
        repair = Repair("dropped-end", Risk.LOSSY, "$", (end, len(failing.text)), lost[:80], "")
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
