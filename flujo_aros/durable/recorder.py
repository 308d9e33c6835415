"""Records one durable run: steps and calls are stored as they happen, and replayed after a crash."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Protocol, TypeVar

from pydantic import ValidationError

from flujo_aros.durable.limits import SharedLimits
from flujo_aros.durable.serializer import not_ours
from flujo_aros.durable.store import DatabaseError, Ending, RunRow, StepRow, Superseded, TextRow, Unwritten
from flujo_aros.events import BufferedObserver, LiveEvent, Observer, TextAppended, TextDelta, TextReplaced
from flujo_aros.host import CallMade, PendingCall, Record, record_calls
from flujo_aros.outcome import Accepted
from flujo_aros.pipeline.ledger import RunLedger, Settlement, Slot
from flujo_aros.pipeline.model import Pipeline, PipelineStep
from flujo_aros.pipeline.pause import as_given, as_saved, has_conversation, is_final, recorded_step, slots_of, typed_by
from flujo_aros.pipeline.results import (
    DeferredWork,
    RecordedStep,
    RunResult,
    StepResult,
    StepStatus,
    Work,
)
from flujo_aros.pipeline.step import Step, stored_contract

T = TypeVar("T")

_FLUSH_SECONDS: Final = 0.25
"""The interval in seconds at which live text is written; a reply that arrives within this time saves a write."""
_LONGEST_FLUSH: Final = 10.0
_PLAIN: Final = (str, int, float, bool, type(None))

Row = Mapping[str, Any]
Table = Sequence[Row]
Keep = Callable[[Callable[[Table], None]], Awaitable[None]]
"""Calls a function in a thread with the starts that are not written yet; it writes all of them or none."""


Checkpoint = Callable[[str, Callable[[], Awaitable[Record]], Keep], Awaitable[Record]]
"""Makes a call and stores its record under this key as one step of the engine, through `Keep`. Raises `Superseded` if
another worker has the run."""


class Rows(Protocol):
    """The storage for the rows of a run: a `Store`, or an engine's substitute."""

    def write(self, run_id: str, epoch: int, starts: Table, settled: Table = (), texts: Table = ()) -> None:
        """Record which steps start (or start again), how steps have settled, and chunks of replies: all or none."""

    def finish(self, run_id: str, epoch: int, starts: Table, settled: Table, ending: Ending) -> str:
        """Record how a run has ended, or that it pauses. For `completed`, every step that started must have settled."""
        ...


class RunRecording:
    """Records one run in its database. `rows` and `calls` are what was recorded before this process continued it.

    A step whose work is recorded calls is written when the first of them is recorded, when it settles, or after
    `start_within` seconds, whichever comes first, in the same transaction. The starts of user functions, which leave no
    other trace, and of steps that start again are written before any of their work.
    """

    start_within: ClassVar[float] = 0.05

    def __init__(
        self,
        store: Rows,
        run: RunRow,
        pipeline: Pipeline,
        rows: Sequence[StepRow],
        calls: Mapping[str, Record],
        checkpoint: Checkpoint,
        *,
        limiter: SharedLimits | None = None,
        texts: Sequence[TextRow] = (),
        observers: Sequence[Observer] = (),
    ) -> None:
        self._store = store
        self._starts: dict[str, Row] = {}
        self._alarm: asyncio.TimerHandle | None = None
        self._late: asyncio.Task[None] | None = None
        self._buffered = [each for each in observers if isinstance(each, BufferedObserver)]
        self._run = run
        self._calls = calls
        self._checkpoint = checkpoint
        self._limiter = limiter
        self._talks = has_conversation(pipeline)
        steps = [each for each in (row.recorded for row in rows) if each is not None]
        slots = slots_of(steps, pipeline)
        self.recorded: Mapping[str, Slot] = {name: slot for name, slot in slots.items() if is_final(slot.result)}
        self.before: dict[str, Work] = {  # the usage before the pause of the steps that continue after it
            step.name: Work(slots[step.name].result.usage, slots[step.name].result.seconds)
            for step in steps
            if slots[step.name].result.status is StepStatus.PAUSED
        }
        left: Mapping[str, Any] = {} if run.paused is None or run.answer is None else run.paused.get("deferred", {})
        try:
            self.deferred = {name: DeferredWork.model_validate(work) for name, work in left.items()}
        except ValidationError as error:
            raise not_ours(f"column `paused` of run {run.run_id}", error) from error
        self._written = {name: _state(slot.result) for name, slot in self.recorded.items()}
        self._left_open = {row.name for row in rows if row.status is None}
        self._known = {row.name for row in rows}
        self._containers: set[str] = set()
        for row in rows:
            self._note_containers(row.name)
        self._ordinals: Counter[str] = Counter()
        highest = [row.seq for row in rows] + [row.settled_seq or 0 for row in rows]
        self._seq = max([1, *highest, *(row.seq for row in texts)])
        self._turn = asyncio.Lock()
        self._shown = _Shown(texts)
        self._pieces: list[tuple[str, str, str]] = []
        self._first_piece = 0.0

    @property
    def is_live(self) -> bool:
        """Whether the text of replies is stored as it is written."""
        return self._run.live

    async def started(self, name: str, step: PipelineStep) -> None:
        """Record that a step starts, either before its work or together with its first record."""
        self._note_containers(name)
        async with self._turn:
            await self._flush()
            self._seq += 1
            # removed when the step settles; a step cancelled before its work begins stays
            self._left_open.add(name)
            self._starts[name] = {"name": name, "kind": step.kind, "seq": self._seq, "started": time.time()}
            leaves_traces = isinstance(step, Step) or bool(step.bodies)
            if not leaves_traces or name in self._known or not self.start_within:
                await self._write(self._store.write)
            elif self._alarm is None:
                self._alarm = asyncio.get_running_loop().call_later(self.start_within, self._write_late)

    def _write_late(self) -> None:
        self._alarm, self._late = None, asyncio.ensure_future(self._write_starts())

    async def _write_starts(self) -> None:
        async with self._turn:
            if self._starts:
                with suppress(Superseded, Unwritten):  # the next write of the run has the same error, and raises it
                    await self._write(self._store.write)

    def stop(self) -> None:
        """Stop the timer that writes starts, because the run was abandoned or has ended."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = None

    async def _keep(self, write: Callable[[Table], None]) -> None:
        """Store a record together with the pending starts (implements `Keep`)."""
        async with self._turn:
            await self._starting(self._starts, write)

    async def _write(self, write: Callable[..., T], rows: Table = (), **options: Any) -> T:
        """Write rows of the run and the pending starts; the start of a step that settles goes into its row."""
        starts = dict(self._starts)
        whole = [{**row, **starts.pop(row["name"], {})} for row in rows]
        return await self._starting(
            starts, lambda given: write(self._run.run_id, self._run.epoch, given, whole, **options)
        )

    async def _starting(self, starts: Mapping[str, Row], write: Callable[[Table], T]) -> T:
        """Call `write` in a thread with the starts to write. If it fails, all that were queued stay queued."""
        self.stop()

        def writing() -> T:
            written = write(list(starts.values()))
            self._starts = {}  # none is added in the meantime, because the writer holds the lock
            return written

        return await _to_the_end(writing)

    def _note_containers(self, name: str) -> None:
        """Remember which steps contain this one, since outer steps are written together with their nested steps."""
        parent = name.rpartition("/")[0]
        while parent and parent not in self._containers:
            self._containers.add(parent)
            parent = parent.rpartition("/")[0]

    @contextmanager
    def calls_of(self, slot: Slot) -> Generator[None]:
        """Record every model call inside the block as a call of this step."""
        begun = self.deferred.get(slot.name)
        with record_calls(_Calls(self, slot.name, 0 if begun is None else begun.pauses)):
            yield

    def plain(self, step: PipelineStep, settlement: Settlement[Any]) -> Settlement[Any]:
        """Return the settlement with a value that survives storage. Raises `UsageError` for a value that is not plain
        data.
        """
        outcome = settlement.outcome
        if not isinstance(outcome, Accepted) or isinstance(outcome.value, _PLAIN):
            return settlement
        saved = as_saved(outcome.value, f"the value of step {step.name!r}")
        if isinstance(step, Step) and step.facts.contract is not None:
            return settlement  # the contract of the step restores its value
        value = typed_by(stored_contract(step), as_given(saved))
        return replace(settlement, outcome=replace(outcome, value=value))

    async def settled(self, slot: Slot, ledger: RunLedger) -> None:
        """Record in one transaction how a step has settled, and the resulting changes of its nested steps."""
        changed = [slot]
        inside = f"{slot.name}/"
        if slot.name in self._containers:
            changed += [
                each
                for each in ledger.settled
                if each.name.startswith(inside) and self._written.get(each.name) != _state(each.result)
            ]
        async with self._turn:
            await self._flush()
            self._left_open.difference_update(each.name for each in changed)
            rows = [self._row(recorded_step(each, talks=self._talks)) for each in changed]
            for name in sorted(name for name in self._left_open if name.startswith(inside)):
                self._left_open.discard(name)
                rows.append(self._row(_abandoned_step(name, slot.name)))
            await self._flush_observers()
            await self._write(self._store.write, rows)
        self._written.update((each.name, _state(each.result)) for each in changed)

    async def _flush_observers(self) -> None:
        """Flush the observers before a step is recorded: afterwards it emits no more events.

        An observer that cannot write, such as a journal on a full disk, loses its own record and is not awaited again.
        """
        if self._buffered:
            flushed = [await asyncio.to_thread(each.flush, _LONGEST_FLUSH) for each in self._buffered]
            self._buffered = [each for each, done in zip(self._buffered, flushed, strict=True) if done]

    def _row(self, step: RecordedStep) -> dict[str, Any]:
        self._seq += 2  # its start, unless stored: branches and items are stored with their outer step
        record = step.model_dump(mode="json", exclude_defaults=True)
        same = {"name": step.name, "kind": step.kind, "status": step.status.value, "record": record}
        return {**same, "seq": self._seq - 1, "settled_seq": self._seq}

    async def finish(self, result: RunResult) -> str:
        """Record how the run has ended, if every step that started has settled. Returns its final status."""
        changed = [
            step
            for step in result.steps
            if step.status is not StepStatus.SKIPPED and self._written.get(step.name) != _state(step)
        ]
        async with self._turn:
            await self._flush()
            rows = [self._row(recorded_step(Slot.replayed(step, ()), talks=False)) for step in changed]
            self._left_open.difference_update(step.name for step in changed)
            rows += [self._row(_abandoned_step(name, name)) for name in sorted(self._left_open)]
            paused = result.paused
            await self._flush_observers()
            return await self._write(
                self._store.finish,
                rows,
                ending=Ending(
                    status=result.status.value,
                    seconds=result.seconds,
                    result=replace(result, paused=None).to_dict(),
                    paused=None if paused is None else paused.model_copy(update={"steps": []}).to_dict(),
                    carrier=None if paused is None else paused.carrier,
                ),
            )

    async def wait(self, name: str, seconds: float) -> None:
        """Wait before a retry. After a crash, wait only until the time that was chosen before the crash."""

        async def due() -> CallMade:
            return CallMade({"value": time.time() + seconds})

        record = await _Calls(self, name).call(PendingCall("wait", due))
        await asyncio.sleep(min(seconds, max(0.0, record["value"] - time.time())))

    async def live(self, step: str, event: LiveEvent) -> None:
        """Record a chunk of a reply, except for text that was already recorded before a crash."""
        piece = self._shown.new(step, event)
        if piece is None:
            return
        now = time.monotonic()
        if not self._pieces:
            self._first_piece = now
        self._pieces.append((step, *piece))
        if now - self._first_piece >= _FLUSH_SECONDS:
            async with self._turn:
                await self._flush()

    async def _flush(self) -> None:
        """Write the pending chunks, and the starts before them; adjacent chunks are joined."""
        rows: list[dict[str, Any]] = []
        pieces, self._pieces = self._pieces, []
        for step, kind, text in pieces:
            if rows and kind == "delta" and (rows[-1]["step"], rows[-1]["kind"]) == (step, "delta"):
                rows[-1]["text"] += text
                continue
            self._seq += 1
            rows.append({"seq": self._seq, "step": step, "kind": kind, "text": text})
        if rows:
            # events are read in order, so earlier starts must be written first
            await self._write(self._store.write, texts=rows)

    async def call(self, step: str, call: PendingCall) -> Record:
        """Return the record of a call: an existing record, or the record of the call made now, within the limits."""
        label = f"{step}#{call.kind}"
        self._ordinals[label] += 1
        key = f"aros:{label}#{self._ordinals[label]}"
        if key in self._calls:
            return self._calls[key]

        async def body() -> Record:
            if self._limiter is None or not call.model:
                return (await call.make()).record
            settle = await self._limiter.reserve(call.model, call.size)
            made: CallMade | None = None
            try:
                made = await call.make()
                return made.record
            finally:
                await settle(made)

        try:
            return await self._checkpoint(key, body, self._keep)
        except DatabaseError as error:
            raise Unwritten(error) from error


@dataclass(frozen=True, slots=True)
class _Calls:
    """The calls of one step."""

    recording: RunRecording
    step: str
    pauses: int = 0
    """The number of pauses of the step so far; calls after a pause have different keys."""
    keeps_tools = True

    async def call(self, call: PendingCall) -> Record:
        """Make a call of this step, or replay it (implements `CallRecorder`)."""
        kind = f"{call.kind} after pause {self.pauses}" if self.pauses else call.kind
        return await self.recording.call(self.step, replace(call, kind=kind))


class _Shown:
    """Tracks the text already shown of replies that a crash interrupted, so that each character is shown once."""

    def __init__(self, texts: Sequence[TextRow]) -> None:
        self._seen: dict[str, str] = {}
        self._again: dict[str, str] = {}
        for row in texts:
            kept = "" if row.kind == "replaced" else self._seen.get(row.step, "")
            self._seen[row.step] = kept + row.text

    def new(self, step: str, event: LiveEvent) -> tuple[str, str] | None:
        """Return the text to show for an event, or None if all of it was shown."""
        if isinstance(event, TextReplaced):
            known = self._seen.pop(step, None)
            self._again.pop(step, None)
            return None if known == event.text else ("replaced", event.text)
        if not isinstance(event, (TextDelta, TextAppended)):
            return None
        known = self._seen.get(step)
        if known is None:
            return ("delta", event.text)
        text = self._again[step] = self._again.get(step, "") + event.text
        if known.startswith(text):
            return None
        del self._seen[step], self._again[step]
        return ("delta", text[len(known) :]) if text.startswith(known) else ("replaced", text)


def _state(result: StepResult[Any]) -> tuple[str, str | None]:
    """Return the parts of a recorded step that may change."""
    return result.status.value, result.excused_by


async def _to_the_end(write: Callable[[], T]) -> T:
    """Write in a thread and wait until that is done, even if the step is cancelled: an abandoned write could finish
    after the next one.

    Raises `Unwritten` if the database reports an error.
    """
    writing = asyncio.get_running_loop().run_in_executor(None, copy_context().run, write)
    cancelled: asyncio.CancelledError | None = None
    while True:
        try:
            found = await asyncio.shield(writing)
        except asyncio.CancelledError as error:
            if writing.cancelled():
                raise
            cancelled = error
        except DatabaseError as error:
            raise Unwritten(error) from error
        else:
            if cancelled is not None:
                raise cancelled
            return found


def _abandoned_step(name: str, by: str) -> RecordedStep:
    """Return the record of an interrupted step that the resumed run did not reach again."""
    error = "it was interrupted, and the run then took a different path"
    return RecordedStep(name=name, kind="step", status=StepStatus.CANCELLED, error=error, excused_by=by)


__all__ = ["Checkpoint", "RunRecording", "Superseded"]
