"""A handle to a run in a durable database, for any process: its status, its result, and its events as they happen.

Also the audit of a run (`aros check`), which verifies its invariants from its rows alone.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from flujo_aros.durable.serializer import RejectedRow
from flujo_aros.durable.store import RunRow, StepRow, Store, TextRow, workflow_of
from flujo_aros.errors import UsageError
from flujo_aros.events import RunFinished, RunStarted, StepStarted, TextDelta, TextReplaced
from flujo_aros.pipeline.ledger import step_finished
from flujo_aros.pipeline.model import Pipeline
from flujo_aros.pipeline.pause import slots_of
from flujo_aros.pipeline.results import (
    PausedRun,
    RunResult,
    RunStatus,
    StepResult,
    StepStatus,
    Work,
    in_order,
    run_status,
)
from flujo_aros.pipeline.runner import Runner, StreamEvent
from flujo_aros.usage import Usage

ENDED: Final = ("completed", "degraded", "failed", "cancelled")
_LOOK_SECONDS: Final = 0.1


class Keeper(Protocol):
    """The part of an engine that a handle needs."""

    @property
    def store(self) -> Store:
        """The store that contains the runs."""
        ...

    @property
    def runners(self) -> Mapping[str, Runner]:
        """The runners of this process, by the version of their pipeline."""
        ...

    def cancel(self, row: RunRow) -> None:
        """Request that the run be cancelled."""

    def answer(self, row: RunRow, value: Any) -> None:
        """Answer the step that the run waits for."""


class DurableHandle:
    """A handle to one run. It has no state: every method queries the database."""

    def __init__(self, engine: Keeper, run_id: str) -> None:
        self._engine = engine
        self.run_id = run_id
        """The id of the run."""

    def __repr__(self) -> str:
        return f"{self._engine!r}.handle({self.run_id!r})"

    async def row(self) -> RunRow:
        """Return the current row of the run."""
        return await asyncio.to_thread(self._engine.store.run, self.run_id)

    async def status(self) -> str:
        """queued, running, paused, parked, cancelling, completed, degraded, failed or cancelled."""
        return (await self.row()).status

    async def result(self) -> RunResult:
        """Wait until the run ends or pauses, and return its result.

        Raises `UsageError` for a parked run, which would never end; the error says what it is waiting for.
        """
        while True:
            row = await self.row()
            if row.status in ENDED or row.status == "paused":
                return await asyncio.to_thread(self._result, row)
            if row.status == "parked":
                raise UsageError(row.note or f"run {row.run_id} is parked")
            await asyncio.sleep(_LOOK_SECONDS)

    def _result(self, row: RunRow) -> RunResult:
        runner = self._engine.runners.get(row.version)
        return result_of(row, self._engine.store.steps(row.run_id), None if runner is None else runner.pipeline)

    async def stream(self, offset: int = 0) -> AsyncGenerator[tuple[int, StreamEvent]]:
        """Yield the events after an offset, each with its own offset, until the run ends or pauses.

        A client that reconnects with its last offset gets each event, and each character of live text, once.
        """
        run_id = (await self.row()).run_id
        while True:
            row, steps, texts = await asyncio.to_thread(self._engine.store.progress, run_id, offset)
            done = row.status in ENDED or row.status == "paused"
            for at, event in _events(row, steps, texts):
                if at > offset:
                    offset = at
                    yield at, event
            if done:
                last = RunFinished(
                    run_id=row.run_id, pipeline=row.pipeline, status=row.status, usage=Usage(), seconds=row.seconds
                )
                result = await asyncio.to_thread(self._result, row)
                yield offset, StreamEvent(None, last, result)
                return
            if row.status == "parked":
                raise UsageError(row.note or f"run {row.run_id} is parked")
            await asyncio.sleep(_LOOK_SECONDS)

    async def cancel(self) -> None:
        """Cancel the run. A run in progress settles its open steps first."""
        row = await self.row()
        await asyncio.to_thread(self._engine.cancel, row)

    async def answer(self, value: Any) -> None:
        """Answer a paused run: it continues on any worker. Raises `UsageError` if it is not paused.

        The worker validates the answer. If it rejects it, the run pauses again: `result` returns a `paused` that is
        `rejected`, and its message lists the errors.
        """
        row = await self.row()
        await asyncio.to_thread(self._engine.answer, row, value)


def _events(row: RunRow, steps: Sequence[StepRow], texts: Sequence[TextRow]) -> Iterator[tuple[int, StreamEvent]]:
    """Yield the events of a run, ordered by offset."""
    if row.epoch == 0:
        return
    found: list[tuple[int, StreamEvent]] = [
        (1, StreamEvent(None, RunStarted(run_id=row.run_id, pipeline=row.pipeline)))
    ]
    for step in steps:
        found.append((step.seq, StreamEvent(step.name, StepStarted(run_id=row.run_id, name=step.name, kind=step.kind))))
        recorded = step.recorded
        if recorded is not None and step.settled_seq is not None:
            ended = slots_of([recorded], None)[step.name].result
            if ended.status is not StepStatus.PAUSED:
                event = step_finished(row.run_id, ended, Work(ended.usage, ended.seconds))
                found.append((step.settled_seq, StreamEvent(step.name, event, ended)))
    for text in texts:
        kind = TextReplaced if text.kind == "replaced" else TextDelta
        found.append((text.seq, StreamEvent(text.step, kind(text=text.text))))
    yield from sorted(found, key=lambda each: each[0])


def result_of(
    row: RunRow, steps: Sequence[StepRow], pipeline: Pipeline | None, *, unfinished: bool = False
) -> RunResult:
    """Return the result of a run, from its rows. Without the pipeline its values are plain JSON.

    The result of an `unfinished` run has the steps that have settled, and its status is failed.
    """
    recorded = [each for each in (step.recorded for step in steps) if each is not None]
    ended = in_order(slot.result for slot in slots_of(recorded, pipeline).values())
    ended += [
        StepResult(step["name"], step["kind"], StepStatus.SKIPPED, None, Usage(), 0, 0.0)
        for step in (row.result or {}).get("steps", [])
        if step["status"] == "skipped"
    ]
    paused = None
    if row.paused is not None and row.status == "paused":
        final = [step for step in recorded if step.status is not StepStatus.PAUSED]
        try:
            paused = PausedRun.from_dict({**row.paused, "steps": [step.model_dump(mode="json") for step in final]})
        except UsageError as error:
            raise RejectedRow(f"column `paused` of run {row.run_id}: {error}") from error
    status = RunStatus.FAILED if unfinished else RunStatus(row.status)
    return RunResult(
        row.run_id, row.pipeline, status, tuple(ended), row.seconds, row.context, paused=paused, trouble=row.note
    )


def violations(store: Store, run_id: str) -> list[str]:
    """Return the invariants that the rows of a run violate, one sentence each, or an empty list if there are no
    violations.
    """
    row = store.run(run_id)
    segments = [workflow_of(row.run_id, number) for number in range(1, row.segment + 1)]
    offsets = [text.seq for text in store.texts(row.run_id)]
    return violations_in_rows(row, store.steps(row.run_id), offsets, store.calls(segments)[0])


def _damaged(steps: Iterable[StepRow]) -> Iterator[str]:
    """Yield the error of each record that is not in our format."""
    for step in steps:
        try:
            _ = step.recorded
        except RejectedRow as error:
            yield str(error)


def violations_in_rows(
    row: RunRow, steps: Sequence[StepRow], offsets: Iterable[int], calls: Iterable[str]
) -> list[str]:
    """Return the same as `violations` for rows that are already loaded: the run, its steps, the offsets of its texts,
    and the keys of its calls.

    Every step that started has settled once, a completed run has no unsuccessful step, every nested step is inside a
    step that started, no two events have the same offset, and every recorded call belongs to a step.
    """
    names = {step.name for step in steps}
    found: list[str] = []
    if row.status in ENDED:
        found += [f"step {step.name!r} started and never settled" for step in steps if step.status is None]
    if row.status in ENDED and row.ended is None:
        found.append(f"the run is {row.status} but has no end time")
    tops = {step.name.partition("/")[0] for step in steps if "/" not in step.name}
    found += [
        f"step {step.name!r} is inside a step that never started"
        for step in steps
        if step.name.partition("/")[0] not in tops
    ]
    taken = Counter([step.seq for step in steps] + [s.settled_seq for s in steps if s.settled_seq is not None])
    taken.update(offsets)
    found += [f"{count} events have the offset {at}" for at, count in taken.items() if count > 1]
    damaged = list(_damaged(steps))
    found += damaged
    ended = result_of(row, steps, None) if row.status in ENDED and not damaged else None
    if ended is not None and row.status == "completed" and run_status(ended.steps).value != "completed":
        wrong = [step.name for step in ended.steps if step.counts_against]
        found.append(f"the run is completed although these steps did not succeed: {', '.join(wrong)}")
    for key in calls:
        step_name = key.removeprefix("aros:").partition("#")[0]
        if step_name not in names:
            found.append(f"a call of step {step_name!r} is recorded, but no such step started")
    return found
