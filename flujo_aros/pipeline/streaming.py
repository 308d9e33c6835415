"""Passes the events of a run to the code that iterates over them: in order, with a bounded buffer."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from flujo_aros.errors import UsageError
from flujo_aros.events import Event, LiveEvent, RunFinished, RunStarted, StepFinished, StepStarted
from flujo_aros.pipeline.ledger import RunLedger
from flujo_aros.pipeline.results import RunResult, StepResult

StreamedEvent: TypeAlias = RunStarted | StepStarted | StepFinished | RunFinished | LiveEvent


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event of a streamed run. `step` is the full name of its step, or None for the run itself.

    `event` is a `RunStarted`, `StepStarted`, `TextDelta`, `PartialValue`, `TextReplaced`, `TextAppended`,
    `StepFinished` or `RunFinished`. `result` is the step's result with a `StepFinished`, and the run's with the final
    `RunFinished`.
    """

    step: str | None
    event: StreamedEvent
    result: StepResult[Any] | RunResult | None = None


class EventChannel:
    """Takes events from a run and passes them to one consumer. It buffers at most `size` pieces of replies and starts
    of steps; producers of more have to wait. The end of a step never waits, so that a run can always settle.
    """

    def __init__(self, size: int) -> None:
        if size < 1:
            raise UsageError(f"buffer must be 1 or more, not {size!r}")
        self.ledger: RunLedger | None = None
        self.result: RunResult | None = None
        self._events: deque[tuple[StreamEvent, bool]] = deque()
        self._size = size
        self._held = 0
        self._blocked: deque[asyncio.Future[None]] = deque()
        self._waiting: asyncio.Future[None] | None = None

    async def live(self, step: str, event: LiveEvent) -> None:
        """Take a piece of a reply, as soon as there is room."""
        if self._held >= self._size or self._blocked:
            await self._wait()
        else:
            self._held += 1
        self._put(StreamEvent(step, event), held=True)

    async def gate(self) -> None:
        """Wait until there is room for the step that is about to start."""
        if self._held >= self._size or self._blocked:
            await self._wait()
        else:
            self._held += 1

    def observe(self, event: Event) -> None:
        """Take an event of the run itself."""
        if isinstance(event, StepStarted):
            self._put(StreamEvent(event.name, event), held=True)
        elif isinstance(event, StepFinished):
            self._put(StreamEvent(event.name, event, self._step_result(event.name)))
        elif isinstance(event, (RunStarted, RunFinished)):
            result = self.result if isinstance(event, RunFinished) else None
            self._put(StreamEvent(None, event, result))

    async def events(self, run: Callable[[], Awaitable[RunResult]]) -> AsyncGenerator[StreamEvent]:
        """Start the run and yield its events until it has ended. Its exception is raised after the last one."""
        running = asyncio.ensure_future(run())
        running.add_done_callback(self._wake)
        try:
            while not (running.done() and not self._events):
                if not self._events:
                    self._waiting = asyncio.get_running_loop().create_future()
                    await self._waiting
                    continue
                event, held = self._events.popleft()
                if held:
                    self._release()
                yield event
            await running
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait([running])

    async def _wait(self) -> None:
        """Wait for the slot of a fetched event; the longest waiter gets it."""
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._blocked.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._release()  # it had been given the slot and no longer needs it
            raise

    def _release(self) -> None:
        """Pass the slot of a fetched event on, or free it."""
        while self._blocked:
            place = self._blocked.popleft()
            if not place.done():
                place.set_result(None)
                return
        self._held -= 1

    def _put(self, event: StreamEvent, *, held: bool = False) -> None:
        self._events.append((event, held))
        self._wake()

    def _wake(self, _: object = None) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def _step_result(self, name: str) -> StepResult[Any] | None:
        return None if self.ledger is None else self.ledger.result_of(name)
