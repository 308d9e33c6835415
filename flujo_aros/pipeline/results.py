"""How steps and runs end: the results, and the one status that follows from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeAlias, TypeVar, cast

from flujo_aros.errors import UsageError
from flujo_aros.outcome import Accepted, Degraded, Outcome, OutputError, Rejected, Trust
from flujo_aros.pipeline.context import as_plain
from flujo_aros.redaction.vault import Vault
from flujo_aros.usage import Usage

if TYPE_CHECKING:
    from flujo_aros.host.run import StageRecord
    from flujo_aros.pipeline.pause import PausedRun

T = TypeVar("T")

OnDegraded: TypeAlias = Literal["accept", "fail"]

_INFRASTRUCTURE: Final = frozenset(
    {"no_connection", "timeout", "http_408", "http_425", "http_429", *(f"http_{code}" for code in range(500, 600))}
)


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

    `usage` is what its own calls have used, without those of nested steps. `error` is one sentence whenever there is no
    trusted value. `exception` is what the step raised, untouched. `degraded_accepted` is True where the step itself
    says `on_degraded: accept`: its text then counts as its value. `caused_by` names the nested step that decided how
    it ended. `excused_by` names the step that goes on in spite of how this one ended, which then does not count
    against the run. `replaced` says why the fallback of the step ran in its place. `input_trust` is the lowest trust
    of all that the step was made from, at any distance; None: it never started.
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
    caused_by: str | None = None
    excused_by: str | None = None
    replaced: str | None = None
    input_trust: Trust | None = None

    @property
    def value(self) -> T:
        """The value of the step. Raises `OutputError`, which names the step, when there is none."""
        if isinstance(self.outcome, Accepted) and self.ok:
            return self.outcome.value
        if isinstance(self.outcome, Degraded) and self.degraded_accepted:
            return cast("T", self.outcome.text)  # the step asked for it: `on_degraded: accept`
        raise self._refusal() from self.exception

    @property
    def ok(self) -> bool:
        """Whether the step did what it promised: success, or degraded where the step accepts that."""
        return self.status is StepStatus.SUCCESS or (self.status is StepStatus.DEGRADED and self.degraded_accepted)

    @property
    def counts_against(self) -> bool:
        """Whether the run cannot be completed because of how this step ended."""
        return not self.ok and self.excused_by is None

    @property
    def nested(self) -> bool:
        """Whether it ran inside another step."""
        return "/" in self.name

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
    def carried_trust(self) -> Trust:
        """What is handed on is worth: the lower of its own trust and that of its inputs. A person's answer is its own.

        The trust that a later step which reads it has as its `input_trust`.
        """
        own = Trust.CLEAN if self.outcome is None or isinstance(self.outcome, Rejected) else self.outcome.trust
        return own if self.kind == "hitl" else Trust.lowest([own, self.input_trust or Trust.CLEAN])

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
            "input_trust": None if self.input_trust is None else self.input_trust.value,
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
        attempts = rejected.attempts if rejected else ()
        return OutputError(
            f"step {self.name!r} has no value: {self.status.value}{why}{after}",
            reason=rejected.reason if rejected else None,
            issues=rejected.issues if rejected else (),
            step=self.name,
            stages=tried,
            texts=tuple(each.text for each in attempts if each.text) or ((rejected.text,) if rejected else ()),
            usage=self.usage,
            raw_matched=rejected.raw_matched if rejected else None,
            tag=rejected.tag if rejected else None,
            attempts=attempts,
        )


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended: one result for each step that started, in the order of their starts, nested ones included.

    Steps of the pipeline that never started follow as `skipped`. Nested steps are named `parent/branch/step`. Totals
    are derived from the steps. `seconds` is the time that the run has worked: in all its processes, without pauses.
    `context` is the context as the steps have left it. `paused` is what a run that waits for an answer is resumed from.
    """

    run_id: str
    pipeline: str
    status: RunStatus
    steps: tuple[StepResult[Any], ...]
    seconds: float
    context: Any = None
    paused: PausedRun | None = None
    trouble: str | None = None

    @property
    def usage(self) -> Usage:
        """Everything that the steps have used, failed and repair calls included."""
        return Usage.total(step.usage for step in self.steps)

    @property
    def output(self) -> Any:
        """The value of the last step of the pipeline. Raises `OutputError` when the run has none to trust.

        The `context` of the error has the id of the run and what its other steps gave: the work is not lost.
        """
        try:
            return (self._culprit() or self._last).value
        except OutputError as error:
            self._tell_of(error)
            raise

    @property
    def trust(self) -> Trust | None:
        """The lowest trust among the steps that the output depends on; None for a run without an output.

        A completed run of clean steps is CLEAN; one whose last step is clean and has read a degraded text is DEGRADED.
        """
        return self._last.carried_trust if self.status in _WITH_OUTPUT and self.steps else None

    @property
    def error(self) -> dict[str, Any] | None:
        """Which step kept the run from completing, and why: `{"step", "reason", "message"}`; None if it completed.

        What an exception has quoted may hold a secret, so known kinds of them are hidden in the message.
        """
        culprit = self._culprit()
        if culprit is None:
            return {"step": None, "reason": None, "message": _hidden(self.trouble)} if self.trouble else None
        message = self.trouble or culprit.error or culprit.status.value
        return {"step": culprit.name, "reason": culprit.reason, "message": _hidden(message)}

    def step(self, name: str) -> StepResult[Any]:
        """How the step of this name ended, such as `parallel/a/summary`. Raises `UsageError` with the nearest name."""
        for step in self.steps:
            if step.name == name:
                return step
        close = get_close_matches(name, [step.name for step in self.steps], 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise UsageError(f"the run has no step {name!r}{hint}")

    def raise_for_status(self) -> None:
        """Raise `OutputError` unless the run completed; what the step raised is its `__cause__`."""
        culprit = self._culprit()
        try:
            if culprit is not None:
                _ = culprit.value
            if self.status is not RunStatus.COMPLETED:
                message = f"run {self.run_id} of {self.pipeline!r} did not complete: {self.status.value}"
                raise OutputError(message, usage=self.usage)
        except OutputError as error:
            self._tell_of(error)
            raise

    def _tell_of(self, error: OutputError) -> None:
        """Let an error tell of the run that it ends."""
        done = {step.name: step.handed_on for step in self.steps if step.ok}
        error.context.update(run_id=self.run_id, pipeline=self.pipeline, outputs=done)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON: exactly what `aros run --json` prints. `paused` is there only while the run waits."""
        plain = {
            "run_id": self.run_id,
            "blueprint": self.pipeline,
            "status": self.status.value,
            "trust": None if self.trust is None else self.trust.value,
            "output": as_plain(self._last.handed_on) if self.status in _WITH_OUTPUT and self.steps else None,
            "steps": [step.to_dict() for step in self.steps],
            "usage": self.usage.to_dict(),
            "error": self.error,
        }
        return plain if self.paused is None else {**plain, "paused": self.paused.to_dict()}

    @property
    def _last(self) -> StepResult[Any]:
        return [step for step in self.steps if not step.nested][-1]

    def _culprit(self) -> StepResult[Any] | None:
        """The step that decided a status other than completed: the worst; of equals the cause, else the first."""
        wrong = [step for step in self.steps if step.counts_against]
        return min(wrong, key=lambda step: (_SEVERITY.index(step.status), step.caused_by is not None), default=None)


def _hidden(message: str) -> str:
    return Vault(message).hide(message)


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
    """The one status of a run, from how its steps ended: completed only if every one that counts is all right."""
    wrong = [step.status for step in steps if step.counts_against]
    return _RUN_STATUS_OF[min(wrong, key=_SEVERITY.index)] if wrong else RunStatus.COMPLETED


def _rejection(outcome: Outcome[Any] | None) -> Rejected | None:
    if isinstance(outcome, Degraded):
        return outcome.because
    return outcome if isinstance(outcome, Rejected) else None


def may_pass(rejected: Rejected) -> bool:
    """Whether it is an error of provider or network that may be gone the next time, so that `retries` help."""
    return any(issue.code in _INFRASTRUCTURE for issue in rejected.issues)
