"""Runs bodies concurrently: bounded, in order, with none left running when their step ends. Then merges their
results."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from flujo_aros.errors import UsageError
from flujo_aros.outcome import Accepted, Degraded, Trust
from flujo_aros.pipeline.ledger import PauseRun
from flujo_aros.pipeline.results import BodyResult
from flujo_aros.pipeline.sandbox import kind_of
from flujo_aros.pipeline.shared import Path, Write, members_of
from flujo_aros.pipeline.values import as_json

BodyCall: TypeAlias = Callable[[], Awaitable[BodyResult]]


@dataclass(slots=True)
class FanOut:
    """The results of concurrent bodies in order; None for one that was cancelled or never started.

    `first_failed` is the index of the body that failed first in time, `pause` the pause of the first one that paused.
    """

    results: list[BodyResult | None]
    first_failed: int | None = None
    pause: PauseRun | None = None
    _stopped: str | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    @classmethod
    async def run(cls, calls: Sequence[BodyCall], *, at_once: int, stop_on_failure: bool) -> FanOut:
        """Run all bodies, at most so many at a time.

        With `stop_on_failure` the first one that fails cancels the others. A pause stops no other body; they all finish
        first. Anything else that ends one of them, or this call, cancels all and waits for them.
        """
        ended = cls([None] * len(calls))
        places = iter(range(len(calls)))
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(at_once, len(calls))):
                    ended._tasks.add(group.create_task(ended._work(calls, places, stop_on_failure=stop_on_failure)))
        except BaseExceptionGroup as several:  # one for all of them: the steps themselves have settled by now
            raise min(several.exceptions, key=lambda raised: isinstance(raised, Exception)) from None
        if ended._stopped is not None and ended.first_failed is None:
            raise asyncio.CancelledError(ended._stopped)  # a task group does not report a task cancelled from within
        return ended

    async def _work(self, calls: Sequence[BodyCall], places: Iterator[int], *, stop_on_failure: bool) -> None:
        for place in places:
            try:
                result = await calls[place]()
            except PauseRun as pause:
                self.pause = self.pause or pause
                continue
            except asyncio.CancelledError:
                if self._stopped is None:
                    self._stop_others("a concurrent step was cancelled")
                raise
            self.results[place] = result
            if result.ok or not (stop_on_failure or self.first_failed is None):
                continue
            if self.first_failed is None:
                self.first_failed = place
            if stop_on_failure:
                self._stop_others(f"{result.scope!r} has failed")
                return

    def _stop_others(self, why: str) -> None:
        self._stopped = why
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel(why)


MergeStrategy: TypeAlias = Literal["error_on_conflict", "context_update", "overwrite", "keep_first", "no_merge"]


def merged_writes(by_branch: Mapping[str, Sequence[Write]], strategy: MergeStrategy) -> tuple[Write, ...]:
    """The writes of all branches as one list, in the order of the branches.

    Raises `UsageError` if two branches write different values to one path, or one inside the value of the other, and
    the strategy does not decide between them.
    """
    if strategy == "no_merge":
        return ()
    kept: list[tuple[str, Write]] = []
    for branch, writes in by_branch.items():
        others = [(name, write) for name, write in kept if name != branch]
        for write in writes:
            clash = next(_clashes(write, others), None)
            if clash is not None and strategy == "keep_first":
                continue
            if clash is not None and strategy != "overwrite":
                raise UsageError(_conflict(*clash, branch, write))
            kept.append((branch, write))
    return tuple(write for _, write in kept)


def _clashes(write: Write, others: Iterable[tuple[str, Write]]) -> Iterator[tuple[str, Write]]:
    path, value = write
    for name, other in others:
        if _overlap(path, other[0]) and not (path == other[0] and _same(value, other[1])):
            yield name, other


def _overlap(one: Path, other: Path) -> bool:
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def _same(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) and as_json(one) == as_json(other))


def _conflict(first: str, one: Write, second: str, other: Write) -> str:
    place = ".".join(one[0] if len(one[0]) < len(other[0]) else other[0])
    return (
        f"{first!r} and {second!r} both write different values to context.{place}; let only one of them "
        "write it, or set a merge_strategy: overwrite, keep_first or no_merge"
    )


def worst_trust(bodies: Iterable[BodyResult]) -> Trust:
    """The trust of a value made from theirs: the lowest of them."""
    return Trust.lowest(
        body.outcome.trust for body in bodies if body.ok and isinstance(body.outcome, (Accepted, Degraded))
    )


def reduced(how: str, values: Mapping[str, Any]) -> Any:
    """One value made from those of all branches. Raises `UsageError` for values that cannot be combined this way.

    >>> reduced("concat", {"a": [1], "b": [2, 3]}), reduced("majority_vote", {"a": "x", "b": "y", "c": "y"})
    ([1, 2, 3], 'y')
    """
    return REDUCERS[how](values)


def _union(values: Mapping[str, Any]) -> dict[str, Any]:
    """All members of all values. A member that two branches have must be the same value in both."""
    made: dict[str, Any] = {}
    by_branch: dict[str, list[Write]] = {}
    for name, value in values.items():
        members = members_of(value)
        if members is None:
            raise UsageError(f"reduce: union needs a mapping from each branch; {name!r} gave {kind_of(value)}")
        by_branch[name] = members
    for path, member in merged_writes(by_branch, "error_on_conflict"):
        made[path[0]] = member
    return made


def _concat(values: Mapping[str, Any]) -> Any:
    """All lists as one list, or all strings as one string."""
    parts = list(values.values())
    if all(isinstance(part, str) for part in parts):
        return "".join(parts)
    if all(isinstance(part, (list, tuple)) for part in parts):
        return [each for part in parts for each in part]
    raise UsageError("reduce: concat needs a list from each branch, or a string from each")


def _majority(values: Mapping[str, Any]) -> Any:
    """The most frequent value; in a tie, that of the earliest branch."""
    parts = list(values.values())
    keys = [as_json(part) for part in parts]
    return parts[keys.index(max(keys, key=keys.count))]


REDUCERS: Final[Mapping[str, Callable[[Mapping[str, Any]], Any]]] = {
    "keys": list,
    "values": lambda values: list(values.values()),
    "union": _union,
    "concat": _concat,
    "first": lambda values: next(iter(values.values())),
    "last": lambda values: list(values.values())[-1],
    "majority_vote": _majority,
}
"""The ways to reduce `{branch: value}` to one value."""
