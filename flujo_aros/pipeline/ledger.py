"""The run ledger: which steps have started and which have settled. A step opens a slot and settles it exactly once;
results derive from it, and the events of its start and end.

There is no "running" result: a `StepResult` exists only after its step has ended, for whatever reason.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar

from flujo_aros.errors import ArosError, raised_at
from flujo_aros.events import (
    NEVER_STARTED,
    UNHEARD,
    Finish,
    FunctionCalled,
    RunFinished,
    StepFinished,
    StepNoted,
    StepStarted,
    current_observers,
    emit,
    span,
)
from flujo_aros.outcome import Degraded, Outcome, Rejected, StageRecord, Trust
from flujo_aros.pipeline.results import (
    OnDegraded,
    RunResult,
    RunStatus,
    StepResult,
    StepStatus,
    Work,
    in_order,
    refused_call,
    run_status,
)
from flujo_aros.spelling import clip
from flujo_aros.usage import Usage

if TYPE_CHECKING:
    from flujo_aros.host import Conversation
    from flujo_aros.pipeline.results import BodyResult, DeferredWork
    from flujo_aros.pipeline.values import Path, Write


T = TypeVar("T")

_MAX_ERROR_CHARS: Final = 2000


class PauseRun(Exception):
    """Raised by a step that must wait for a person: the run settles as paused and can be resumed with an answer.

    `input_schema` is the JSON Schema that the answer must satisfy, `deferred` is the state that the step needs to
    continue, and `rejected` means that the answer was not accepted. `step` is filled in by the run; `excused` is as in
    a `Settlement`.
    """

    def __init__(
        self,
        message: str,
        input_schema: Mapping[str, Any] | None = None,
        deferred: DeferredWork | None = None,
        *,
        rejected: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.input_schema = input_schema
        self.deferred = deferred
        self.rejected = rejected
        self.step: str | None = None
        self.excused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Settlement(Generic[T]):
    """The report of a step at its end: the outcome, the number of attempts, and the stages that ran.

    For steps that contain other steps: `cause` is the nested step responsible for how this one ended, and `writes` is
    what the nested steps may put into the context. With an `error` the step has failed, whatever the outcome.
    `merges_value` is False if `updates_context` has already been applied through `writes`. `excused` names nested steps
    whose failure is accepted. `messages` is the conversation between an agent and its model. `inner_repairs` counts the
    repairs of replies that are not in the outcome, such as those of the turns of an ensemble.
    """

    outcome: Outcome[T] | None
    attempts: int = 1
    stages: tuple[StageRecord, ...] = ()
    cause: StepResult[Any] | None = None
    writes: tuple[Write, ...] = ()
    error: str | None = None
    exception: BaseException | None = None
    replaced: str | None = None
    merges_value: bool = True
    excused: tuple[str, ...] = ()
    messages: Conversation = ()
    inner_repairs: int = 0

    @classmethod
    def of(cls, body: BodyResult, *, what: str = "") -> Settlement[Any]:
        """Return the result of a body, passed on unchanged, or its failure; then `what` names the body."""
        if (cause := body.failed) is None:
            return cls(body.outcome, cause=body.degraded, writes=body.writes)
        reason = f"step {cause.name!r} {cause.status.value}: {cause.error or cause.status.value}"
        outcome = cause.outcome if isinstance(cause.outcome, Rejected) else None
        error = f"{what} failed: {reason}" if what else reason
        return cls(outcome, cause=cause, error=error, exception=cause.exception)


_NONE: Final = Work()


class Slot:
    """The place of one started step in the ledger: a context manager that settles exactly once, however it exits.

    Left with a reported outcome: success, degraded or failed. Left without one: failed. Left by an `Exception`:
    failed, and the exception is stored on the result instead of propagating. Left by `PauseRun`: paused, and by
    anything else (cancellation, Ctrl-C, exit): cancelled; both propagate.
    """

    def __init__(self, name: str, kind: str, on_degraded: OnDegraded | None = None, before: Work | None = None) -> None:
        self.name = name
        self.kind = kind
        self.writes: tuple[Write, ...] = ()
        self._on_degraded = on_degraded
        self.reported: Settlement[Any] | None = None
        self._before = before or _NONE
        self._spent = Usage()
        self._started = 0.0
        self._result: StepResult[Any] | None = None
        self._messages: Conversation = ()
        self.shown_by: int | None = None
        self.shown_anew = False
        """The attempt that wrote the text shown so far, and whether none of its values has been shown yet."""
        self.read_trust = self.input_trust = Trust.CLEAN
        self.deferred: DeferredWork | None = None
        """The state that the step needs to continue, if it paused in the middle of its work."""
        self.write_trusts: dict[Path, Trust] = {}
        """The trust of the values that its nested steps wrote to the context."""

    @classmethod
    def replayed(cls, result: StepResult[Any], writes: tuple[Write, ...], messages: Conversation = ()) -> Slot:
        """Return the slot of a step that had settled before the run was resumed."""
        slot = cls(result.name, result.kind)
        slot._result, slot.writes, slot._messages = result, writes, messages
        return slot

    @property
    def messages(self) -> Conversation:
        """The messages between the step's agent and its model, or between the agents of nested steps that run in
        order."""
        return self._messages if self.reported is None else self.reported.messages

    @property
    def result(self) -> StepResult[Any]:
        """The result of the step; accessing it before the step has settled is a programming error."""
        if self._result is None:
            raise AssertionError(f"step {self.name!r} has not settled")
        return self._result

    @property
    def settled(self) -> bool:
        """Whether the step has ended."""
        return self._result is not None

    @property
    def work(self) -> Work:
        """The usage and time of the step in this process; the result adds the usage and time from before a pause."""
        return Work(self._spent, self.result.seconds - self._before.seconds)

    def consume(self, trust: Trust) -> None:
        """Record the trust of an input of the step."""
        self.input_trust = Trust.lowest([self.input_trust, trust])

    def spend(self, usage: Usage) -> None:
        """Record the usage of a call. It counts even if the step raises or is cancelled later."""
        self._spent += usage

    def report(self, settlement: Settlement[Any]) -> None:
        """Record the settlement of the step, which takes effect when the slot exits."""
        if self.reported is not None:
            raise AssertionError(f"step {self.name!r} reported twice")
        self.reported = settlement

    def excuse(self, by: str) -> None:
        """Excuse the end of the step, because the step with that name continues despite it."""
        if self.result.counts_against:
            self._result = replace(self.result, excused_by=by)

    def __enter__(self) -> Self:
        self._started = time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if raised is None:
            self._settle(*self._judge(), self.reported)
            return False
        if isinstance(raised, PauseRun):
            self.deferred = raised.deferred if raised.step is None else None  # a nested step raised it
            self._settle(StepStatus.PAUSED, f"waits for an answer: {raised.message}", None)
            return False
        ours = isinstance(raised, Exception)
        status = StepStatus.FAILED if ours else StepStatus.CANCELLED
        self._settle(status, sentence_of(raised), Settlement(None, exception=raised))
        return ours

    def _judge(self) -> tuple[StepStatus, str | None]:
        reported = self.reported
        if reported is None:
            return StepStatus.FAILED, "the step ended without a result"
        if reported.error is not None:
            return StepStatus.FAILED, reported.error
        if isinstance(reported.outcome, Rejected):
            return StepStatus.FAILED, reported.outcome.headline() + refused_call(reported.outcome)
        degraded = StepStatus.FAILED if self._on_degraded == "fail" else StepStatus.DEGRADED
        if isinstance(reported.outcome, Degraded):
            because = reported.outcome.because
            return degraded, because.headline() + refused_call(because)
        if reported.cause is not None:
            return degraded, f"step {reported.cause.name!r} degraded: {reported.cause.error}"
        if reported.outcome is None:
            return StepStatus.FAILED, "the step ended without a result"
        return StepStatus.SUCCESS, None

    def _settle(self, status: StepStatus, error: str | None, reported: Settlement[Any] | None) -> None:
        if self._result is not None:
            raise AssertionError(f"step {self.name!r} settled twice")
        settlement: Settlement[Any] = reported or Settlement(None)
        self._result = StepResult(
            name=self.name,
            kind=self.kind,
            status=status,
            outcome=settlement.outcome,
            usage=self._before.usage + self._spent,
            attempts=settlement.attempts,
            seconds=self._before.seconds + time.perf_counter() - self._started,
            stages=settlement.stages,
            error=error,
            exception=settlement.exception,
            degraded_accepted=self._on_degraded == "accept",
            caused_by=settlement.cause.name if settlement.cause else None,
            replaced=settlement.replaced,
            input_trust=self.input_trust,
            inner_repairs=settlement.inner_repairs,
        )


class RunLedger:
    """All slots of one run, as a context manager. `result` derives the result of the run only from them.

    `planned` are the names and kinds of the pipeline's steps, in order: those that never started are `skipped`.
    `before` is the usage and time of steps by name when the run paused; the empty name stands for the whole run.
    """

    def __init__(
        self, run_id: str, pipeline: str, planned: Sequence[tuple[str, str]], before: Mapping[str, Work] | None = None
    ) -> None:
        self.run_id = run_id
        self.pipeline = pipeline
        self._planned = planned
        self._before = before or {}
        self._slots: dict[str, Slot] = {}
        self._stopped: RunStatus | None = None
        self._started = time.perf_counter()
        self._seconds: float | None = None

    def open(self, name: str, kind: str, on_degraded: OnDegraded | None = None) -> Slot:
        """Start a step. A name can start only once in a run."""
        if name in self._slots:
            raise AssertionError(f"step {name!r} started twice")
        slot = self._slots[name] = Slot(name, kind, on_degraded, self._before.get(name))
        return slot

    def replay(self, slot: Slot) -> None:
        """Restore the result of a step from before the run was resumed."""
        if slot.name in self._slots:
            raise AssertionError(f"step {slot.name!r} started twice")
        self._slots[slot.name] = slot

    def free_name(self, name: str) -> str:
        """Return a name that no step has yet: this one, or `NAME 2`, `NAME 3` for the second and third time."""
        candidates = (name, *(f"{name} {number}" for number in range(2, len(self._slots) + 3)))
        return next(candidate for candidate in candidates if candidate not in self._slots)

    def result_of(self, name: str) -> StepResult[Any]:
        """Return the result of the step with this name."""
        return self._slots[name].result

    def said_in(self, name: str) -> Conversation:
        """Return the messages between the agent of a step and its model. A step without an agent has none."""
        return self._slots[name].messages

    @property
    def settled(self) -> tuple[Slot, ...]:
        """The slots of all steps that have ended, in the order of their starts."""
        return tuple(slot for slot in self._slots.values() if slot.settled)

    def excuse(self, scope: str, by: str, *, only: StepStatus | None = None) -> None:
        """Excuse the step with this name and its nested steps if they ended with status `only`, except for `by`
        itself."""
        for name, slot in self._slots.items():
            inside = name == scope or name.startswith(f"{scope}/")
            if inside and name != by and slot.settled and only in (None, slot.result.status):
                slot.excuse(by)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._seconds = time.perf_counter() - self._started
        if raised is not None and not isinstance(raised, PauseRun):
            # The run ended between two steps, or while its resources were being closed.
            self._stopped = RunStatus.FAILED if isinstance(raised, Exception) else RunStatus.CANCELLED

    @property
    def seconds(self) -> float:
        """The working time of the run, in this process and in earlier ones."""
        here = time.perf_counter() - self._started if self._seconds is None else self._seconds
        return here + (self._before[""].seconds if "" in self._before else 0.0)

    def spent_before(self, name: str, recorded: Iterable[Slot]) -> Usage:
        """Return the usage of a step and its nested steps before the run paused; without a name, of the whole run."""
        ended = [(slot.name, slot.result.usage) for slot in recorded]
        begun = [(other, work.usage) for other, work in self._before.items()]
        inside = f"{name}/" if name else ""
        return Usage.total(usage for other, usage in (*ended, *begun) if other == name or other.startswith(inside))

    def result(self, context: Any = None) -> RunResult:
        """Return the result of the run, with the final context of the steps. Calling it while a step is still open is a
        programming error.
        """
        rest = [each for each in self._planned if each[0] not in self._slots]
        skipped = [StepResult(*step, StepStatus.SKIPPED, None, Usage(), 0, 0.0, error=NEVER_STARTED) for step in rest]
        steps = (*in_order(slot.result for slot in self._slots.values()), *skipped)
        return RunResult(self.run_id, self.pipeline, self._stopped or run_status(steps), steps, self.seconds, context)


def sentence_of(raised: BaseException) -> str:
    """Return an exception on one line, with its notes. An error of this package is already a sentence; any other begins
    with its type.
    """
    text = "; ".join((str(raised).strip(), *getattr(raised, "__notes__", ()))).removeprefix("; ")
    kind = type(raised).__name__
    if isinstance(raised, ArosError) and text:
        sentence = text
    elif isinstance(raised, Exception):
        sentence = f"{kind}: {text}" if text else kind
    else:
        sentence = f"cancelled: {text}" if text else "cancelled"
    return clip(sentence, _MAX_ERROR_CHARS)


def emit_run_finished(finish: Finish, ended: RunResult) -> None:
    """Emit the event for the end of a run."""
    if current_observers():
        finish(
            RunFinished(
                run_id=ended.run_id,
                pipeline=ended.pipeline,
                status=ended.status.value,
                usage=ended.usage,
                seconds=ended.seconds,
                output=ended.output if ended.status is RunStatus.COMPLETED else None,
                never_started={
                    step.name: step.kind
                    for step in ended.steps
                    if ended.status is RunStatus.FAILED and step.error == NEVER_STARTED
                },
            )
        )


def step_span(run_id: str, name: str, kind: str) -> AbstractContextManager[Finish]:
    """Attribute events inside the block to this step; without observers none are emitted."""
    return span(StepStarted(run_id=run_id, name=name, kind=kind)) if current_observers() else UNHEARD


def emit_call(given: Any) -> None:
    """Emit the event for a call of a step's function with this argument."""
    if current_observers():
        emit(FunctionCalled(input=given))


def emit_step_finished(finish: Finish, run_id: str, slot: Slot) -> None:
    """Emit the event for the end of a step."""
    if current_observers():
        finish(step_finished(run_id, slot.result, slot.work))


def step_finished(run_id: str, ended: StepResult[Any], work: Work) -> StepFinished:
    """Return the event for the end of a step, with the usage and time of this work."""
    place = "" if ended.exception is None else raised_at(ended.exception.__traceback__)
    return StepFinished(
        run_id=run_id,
        name=ended.name,
        kind=ended.kind,
        status=ended.status.value,
        trust=ended.trust,
        reason=ended.reason,
        usage=work.usage,
        seconds=work.seconds,
        attempts=ended.attempts,
        error=ended.error and f"{ended.error}{place}",
        output=ended.handed_on,
        input_trust=None if ended.input_trust is None else ended.input_trust.value,
    )


def emit_note(note: str, data: Callable[[], dict[str, Any]]) -> None:
    """Emit the data that a step reports besides its value, if there are observers."""
    if current_observers():
        emit(StepNoted(note=note, data=data()))
