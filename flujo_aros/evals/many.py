"""Runs a pipeline on many cases concurrently."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TypeVar

from flujo_aros.evals.stop import Stop

C = TypeVar("C")
R = TypeVar("R")


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
    waiting: Iterator[C] = iter(cases)

    async def work() -> None:
        while stop.reason is None:
            case = next(waiting, None)
            if case is None:
                return
            take(case, await run(case))

    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(work())
