"""Bodies side by side: bounded, in order, and with nobody left running when the step around them ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from flujo_aros.pipeline.ledger import PauseRun
from flujo_aros.pipeline.results import BodyResult

BodyCall: TypeAlias = Callable[[], Awaitable[BodyResult]]


@dataclass(slots=True)
class FanOut:
    """How bodies that ran side by side have ended, each at its place; None for one that was cancelled or never began.

    `first_failed` is the place of the body that failed first in time, `pause` what the first that paused has asked.
    """

    results: list[BodyResult | None]
    first_failed: int | None = None
    pause: PauseRun | None = None
    _stopped: str | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    @classmethod
    async def run(cls, calls: Sequence[BodyCall], *, at_once: int, stop_on_failure: bool) -> FanOut:
        """Run all bodies, at most so many at a time.

        With `stop_on_failure` the first one that fails cancels the others. One that pauses stops nobody: the others
        come to their end first. Whatever else ends one of them, or this call, cancels all, and waits for them.
        """
        ended = cls([None] * len(calls))
        places = iter(range(len(calls)))
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(at_once, len(calls))):
                    ended._tasks.add(group.create_task(ended._work(calls, places, stop_on_failure=stop_on_failure)))
        except BaseExceptionGroup as several:  # one speaks for all: the steps themselves have settled by now
            raise min(several.exceptions, key=lambda raised: isinstance(raised, Exception)) from None
        if ended._stopped is not None and ended.first_failed is None:
            raise asyncio.CancelledError(ended._stopped)  # a task group says nothing of a task cancelled from within
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
                    self._stop_others("a step beside it was cancelled")
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
