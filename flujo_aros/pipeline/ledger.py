"""The run ledger: who started, who settled. A step opens a slot and settles it exactly once; results derive from it.

There is no "running" result: a `StepResult` exists only when its step has ended, whatever ended it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Self, TypeAlias, TypeVar, cast

from flujo_aros.errors import ArosError, OutputError
from flujo_aros.outcome import Accepted, Degraded, Outcome, Rejected
from flujo_aros.pipeline.context import as_plain
from flujo_aros.usage import Usage

if TYPE_CHECKING:
    from flujo_aros.agents.drivers import StageRecord

T = TypeVar("T")

OnDegraded: TypeAlias = Literal["accept", "fail"]

_MAX_ERROR_CHARS: Final = 2000


class StepStatus(StrEnum):
    """How a step ended."""

    SUCCESS = "success"
    DEGRADED = "degraded"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"
    PAUSED = "paused"


class RunStatus(StrEnum):
    """How a run ended. `completed` is the only one that may be trusted without looking further."""

    COMPLETED = "completed"
    DEGRADED = "degraded"
    FAILED = "failed"
    PAUSED = "paused"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class StepResult(Generic[T]):
    """How one step ended, and what came of it.

    `error` is one sentence whenever there is no trusted value. `exception` is what the step raised, untouched.
    `degraded_accepted` is True where the step itself says `on_degraded: accept`: its text then counts as its value.
    """

    name: str
    kind: str
    status: StepStatus
    outcome: Outcome[T] | None
    usage: Usage
    attempts: int
    seconds: float
    stages: tuple[StageRecord, ...] = ()
    error: str | None = None
    exception: BaseException | None = field(default=None, repr=False, compare=False)
    degraded_accepted: bool = False

    @property
    def value(self) -> T:
        """The value of the step. Raises `OutputError`, which names the step, when there is none."""
        if isinstance(self.outcome, Accepted) and self.status is StepStatus.SUCCESS:
            return self.outcome.value
        if isinstance(self.outcome, Degraded) and self.degraded_accepted:
            return cast("T", self.outcome.text)  # the step asked for it: `on_degraded: accept`
        raise self._refusal() from self.exception

    @property
    def ok(self) -> bool:
        """Whether the step did what it promised: success, or degraded where the step accepts that."""
        return self.status is StepStatus.SUCCESS or (self.status is StepStatus.DEGRADED and self.degraded_accepted)

    @property
    def handed_on(self) -> Any:
        """What the next step gets: the value, or the text of a degraded step. None for a step that gave nothing."""
        if isinstance(self.outcome, Accepted):
            return self.outcome.value
        return self.outcome.text if isinstance(self.outcome, Degraded) else None

    @property
    def trust(self) -> str | None:
        """What the value is worth; None where there is none."""
        return None if self.outcome is None or isinstance(self.outcome, Rejected) else self.outcome.trust.value

    @property
    def reason(self) -> str | None:
        """Why there is no value, as the word of `Reason`; None where there is one, or where the step raised."""
        rejected = _rejection(self.outcome)
        return None if rejected is None else rejected.reason.value

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON: one entry of `steps` in `aros run --json`."""
        accepted = self.outcome if isinstance(self.outcome, Accepted) else None
        usage = self.usage.to_dict()
        return {
            "name": self.name,
            "kind": self.kind,
            "status": self.status.value,
            "trust": self.trust,
            "origin": accepted.origin if accepted else None,
            "reason": self.reason,
            "output": as_plain(self.handed_on),
            "repairs": [repair.to_dict() for repair in accepted.repairs] if accepted else [],
            "stages": [
                {"stage": stage.stage, "outcome": stage.outcome, "reason": stage.reason, "calls": stage.calls}
                for stage in self.stages
            ],
            "calls": self.usage.requests,
            "usage": usage,
            "cost": usage["cost"],
            "seconds": round(self.seconds, 3),
        }

    def _refusal(self) -> OutputError:
        rejected = _rejection(self.outcome)
        tried = tuple(stage.stage for stage in self.stages)
        after = f" (tried: {', '.join(tried)})" if tried else ""
        told = rejected.outline() if rejected else self.error  # an error message quotes nothing that a model wrote
        why = f": {told}" if told else ""
        return OutputError(
            f"step {self.name!r} has no value: {self.status.value}{why}{after}",
            reason=rejected.reason if rejected else None,
            issues=rejected.issues if rejected else (),
            step=self.name,
            stages=tried,
            texts=(rejected.text,) if rejected else (),
            usage=self.usage,
            raw_matched=rejected.raw_matched if rejected else None,
        )


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended: one result for each step of the pipeline, in order. Totals are derived from them."""

    run_id: str
    pipeline: str
    status: RunStatus
    steps: tuple[StepResult[Any], ...]
    seconds: float

    @property
    def usage(self) -> Usage:
        """Everything that the steps have used, failed and repair calls included."""
        return Usage.total(step.usage for step in self.steps)

    @property
    def output(self) -> Any:
        """The value of the last step. Raises `OutputError` when the run has none to trust."""
        culprit = self._culprit()
        return (culprit or self.steps[-1]).value

    @property
    def error(self) -> dict[str, Any] | None:
        """Which step kept the run from completing, and why: `{"step", "reason", "message"}`; None if it completed."""
        culprit = self._culprit()
        if culprit is None:
            return None
        return {"step": culprit.name, "reason": culprit.reason, "message": culprit.error or culprit.status.value}

    def raise_for_status(self) -> None:
        """Raise `OutputError` unless the run completed; what the step raised is its `__cause__`."""
        culprit = self._culprit()
        if culprit is not None:
            _ = culprit.value
        if self.status is not RunStatus.COMPLETED:
            message = f"run {self.run_id} of {self.pipeline!r} did not complete: {self.status.value}"
            raise OutputError(message, usage=self.usage)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON: exactly what `aros run --json` prints."""
        return {
            "run_id": self.run_id,
            "blueprint": self.pipeline,
            "status": self.status.value,
            "output": as_plain(self.steps[-1].handed_on) if self.status in _WITH_OUTPUT and self.steps else None,
            "steps": [step.to_dict() for step in self.steps],
            "usage": self.usage.to_dict(),
            "error": self.error,
        }

    def _culprit(self) -> StepResult[Any] | None:
        """The step that decided a status other than completed: the worst, and of equals the first."""
        wrong = [step for step in self.steps if not step.ok]
        return min(wrong, key=lambda step: _SEVERITY.index(step.status), default=None)


_WITH_OUTPUT: Final = (RunStatus.COMPLETED, RunStatus.DEGRADED)
_SEVERITY: Final = (
    StepStatus.CANCELLED,
    StepStatus.FAILED,
    StepStatus.PAUSED,
    StepStatus.DEGRADED,
    StepStatus.SKIPPED,
    StepStatus.SUCCESS,
)
_RUN_STATUS_OF: Final = {
    StepStatus.CANCELLED: RunStatus.CANCELLED,
    StepStatus.FAILED: RunStatus.FAILED,
    StepStatus.PAUSED: RunStatus.PAUSED,
    StepStatus.DEGRADED: RunStatus.DEGRADED,
    # Skipped without anything that explains it: the run did not do all it was asked to.
    StepStatus.SKIPPED: RunStatus.FAILED,
}


def run_status(steps: Sequence[StepResult[Any]]) -> RunStatus:
    """The one status of a run, from how its steps ended: completed only if every single one is all right."""
    wrong = [step.status for step in steps if not step.ok]
    return _RUN_STATUS_OF[min(wrong, key=_SEVERITY.index)] if wrong else RunStatus.COMPLETED


@dataclass(frozen=True, slots=True)
class Settlement(Generic[T]):
    """What a step reports when it has done its work: the outcome, how many attempts it took, which stages ran."""

    outcome: Outcome[T]
    attempts: int = 1
    stages: tuple[StageRecord, ...] = ()


class Slot:
    """The place of one started step in the ledger: a context manager that settles exactly once, however it is left.

    Left with a reported outcome: success, degraded or failed. Left without one: failed. Left by an `Exception`:
    failed, and the exception is kept on the result instead of going on. Left by anything else (cancellation,
    Ctrl-C, exit): cancelled, and it goes on.
    """

    def __init__(self, name: str, kind: str, on_degraded: OnDegraded | None = None) -> None:
        self.name = name
        self.kind = kind
        self._on_degraded = on_degraded
        self._reported: Settlement[Any] | None = None
        self._spent: list[Usage] = []
        self._started = 0.0
        self._result: StepResult[Any] | None = None

    @property
    def result(self) -> StepResult[Any]:
        """How the step ended; asking before it has is a programming error."""
        if self._result is None:
            raise AssertionError(f"step {self.name!r} has not settled")
        return self._result

    @property
    def settled(self) -> bool:
        """Whether the step has ended."""
        return self._result is not None

    def spend(self, usage: Usage) -> None:
        """Note what a call has used. It counts even if the step raises or is cancelled later."""
        self._spent.append(usage)

    def report(self, settlement: Settlement[Any]) -> None:
        """Note what the step came to; it settles when the slot is left."""
        if self._reported is not None:
            raise AssertionError(f"step {self.name!r} reported twice")
        self._reported = settlement

    def __enter__(self) -> Self:
        self._started = time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if raised is None:
            self._settle(*self._judge())
            return False
        ours = isinstance(raised, Exception)
        self._settle(StepStatus.FAILED if ours else StepStatus.CANCELLED, _sentence(raised), raised)
        return ours

    def _judge(self) -> tuple[StepStatus, str | None]:
        if self._reported is None:
            return StepStatus.FAILED, "the step ended without a result"
        outcome = self._reported.outcome
        if isinstance(outcome, Rejected):
            return StepStatus.FAILED, outcome.headline()
        if isinstance(outcome, Degraded):
            status = StepStatus.FAILED if self._on_degraded == "fail" else StepStatus.DEGRADED
            return status, outcome.because.headline()
        return StepStatus.SUCCESS, None

    def _settle(self, status: StepStatus, error: str | None, exception: BaseException | None = None) -> None:
        if self._result is not None:
            raise AssertionError(f"step {self.name!r} settled twice")
        reported = self._reported if exception is None else None
        self._result = StepResult(
            name=self.name,
            kind=self.kind,
            status=status,
            outcome=reported.outcome if reported else None,
            usage=Usage.total(self._spent),
            attempts=reported.attempts if reported else 1,
            seconds=time.perf_counter() - self._started,
            stages=reported.stages if reported else (),
            error=error,
            exception=exception,
            degraded_accepted=self._on_degraded == "accept",
        )


class RunLedger:
    """All slots of one run, as a context manager. `result` derives the run from them, and from nothing else.

    `planned` are the names and kinds of the pipeline's steps, in order: those that never started are `skipped`.
    """

    def __init__(self, run_id: str, pipeline: str, planned: Sequence[tuple[str, str]]) -> None:
        self.run_id = run_id
        self.pipeline = pipeline
        self._planned = planned
        self._slots: dict[str, Slot] = {}
        self._stopped: RunStatus | None = None
        self._started = time.perf_counter()
        self._seconds: float | None = None

    def open(self, name: str, kind: str, on_degraded: OnDegraded | None = None) -> Slot:
        """Start a step. A name can start only once in a run."""
        if name in self._slots:
            raise AssertionError(f"step {name!r} started twice")
        slot = self._slots[name] = Slot(name, kind, on_degraded)
        return slot

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._seconds = time.perf_counter() - self._started
        if raised is not None:  # it ended between two steps, or while what the run holds was being closed
            self._stopped = RunStatus.FAILED if isinstance(raised, Exception) else RunStatus.CANCELLED

    @property
    def result(self) -> RunResult:
        """The run as it ended. Asking while a step is still open is a programming error."""
        steps = tuple(self._result_of(name, kind) for name, kind in self._planned)
        seconds = time.perf_counter() - self._started if self._seconds is None else self._seconds
        return RunResult(self.run_id, self.pipeline, self._stopped or run_status(steps), steps, seconds)

    def _result_of(self, name: str, kind: str) -> StepResult[Any]:
        slot = self._slots.get(name)
        if slot is not None:
            return slot.result
        return StepResult(name, kind, StepStatus.SKIPPED, None, Usage(), 0, 0.0, error="an earlier step ended the run")


def _rejection(outcome: Outcome[Any] | None) -> Rejected | None:
    if isinstance(outcome, Degraded):
        return outcome.because
    return outcome if isinstance(outcome, Rejected) else None


def _sentence(raised: BaseException) -> str:
    """What was raised, in one line: our own errors are sentences already, others are named by their type."""
    text = str(raised).strip()
    kind = type(raised).__name__
    if isinstance(raised, ArosError) and text:
        sentence = text
    elif isinstance(raised, Exception):
        sentence = f"{kind}: {text}" if text else kind
    else:
        sentence = f"cancelled: {text}" if text else "cancelled"
    return sentence if len(sentence) <= _MAX_ERROR_CHARS else f"{sentence[:_MAX_ERROR_CHARS]}…"
