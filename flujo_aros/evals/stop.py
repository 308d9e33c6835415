"""Runs many cases concurrently, and stops early when further cases would only cost money."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, TypeVar

from flujo_aros.usage import Usage

C = TypeVar("C")
R = TypeVar("R")

_VARIES: Final = re.compile(r"\d+|'[^']*'|\"[^\"]*\"|`[^`]*`")
SAME_FAILURES: Final = 10
"""The number of consecutive identical failures after which no further case is started."""


@dataclass(slots=True)
class Stop:
    """When to stop starting cases; None means never. Cases in progress are finished.

    `max_cost` is in US dollars and counts actual payments. `max_same_failures` counts consecutive failures with the
    same cause, so that a wrong API key or a prompt that never works does not waste a whole file of calls.

    >>> stop = Stop(max_failures=1)
    >>> stop.ended(Usage(requests=1), "no connection")
    >>> stop.reason
    '1 case has failed (the limit is 1)'
    """

    max_cost: Decimal | None = None
    max_failures: int | None = None
    max_same_failures: int | None = SAME_FAILURES
    case: str = "case"
    """The noun used for a case in `reason`."""
    paid: Usage = field(default_factory=Usage)
    failures: int = 0
    reason: str | None = None
    """The reason why no further case is started."""
    _cause: str = ""
    _same: int = 0

    def ended(self, paid: Usage, failure: str | None = None) -> None:
        """Count a finished case, with the reason if it failed."""
        self.paid += paid
        cause = _VARIES.sub("…", failure) if failure else ""
        self._same = self._same + 1 if cause and cause == self._cause else int(bool(cause))
        self._cause = cause
        self.failures += bool(cause)
        if self.max_cost is not None and self.paid.cost is not None and self.paid.cost >= self.max_cost:
            spent = f"{self.paid.cost:.2f}" if self.paid.cost >= 1 else f"{self.paid.cost.normalize():f}"
            self.reason = self.reason or f"spent ${spent} (the limit is ${self.max_cost})"
        if self.max_failures is not None and self.failures >= self.max_failures:
            one = self.failures == 1
            words = f"1 {self.case} has failed" if one else f"{self.failures} {self.case}s have failed"
            self.reason = self.reason or f"{words} (the limit is {self.max_failures})"
        if self.max_same_failures is not None and self._same >= self.max_same_failures:
            self.reason = self.reason or f"{self._same} {self.case}s in a row failed for the same reason: {failure}"


async def run_all(
    cases: Iterable[C],
    run: Callable[[C], Awaitable[R]],
    take: Callable[[C, R], object],
    *,
    concurrency: int,
    stop: Stop,
) -> None:
    """Run the cases with this concurrency, and pass each result to `take` as it arrives. Raises what `run` raises.

    `take` counts a result with `stop.ended`.
    """
    import asyncio  # imported here, because the help of the command line loads this module

    waiting = iter(cases)

    async def work() -> None:
        while stop.reason is None and (case := next(waiting, None)) is not None:
            take(case, await run(case))

    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(work())
