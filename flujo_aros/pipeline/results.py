"""How steps and runs end: the results, and the one status derived from them."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from html import escape
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Protocol, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from typing_extensions import TypeVar

from flujo_aros.errors import UsageError, other_release, raised_at
from flujo_aros.host import Deferral
from flujo_aros.outcome import (
    Accepted,
    Attempt,
    Degraded,
    Issue,
    Outcome,
    OutputError,
    Reason,
    Rejected,
    Repair,
    StageRecord,
    Trust,
    rejection_of,
    stages_tried,
)
from flujo_aros.pipeline.values import SharedContext, Write, as_plain
from flujo_aros.redaction import Vault
from flujo_aros.spelling import clip, short_value
from flujo_aros.usage import Usage
from flujo_aros.visible import visible

if TYPE_CHECKING:
    from flujo_aros.host import Conversation

T_co = TypeVar("T_co", default=Any, covariant=True)
"""The type of a value; any type if unspecified."""

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
    """How a run ended. Only the output of a `completed` run can be trusted without further checks."""

    COMPLETED = "completed"
    DEGRADED = "degraded"
    FAILED = "failed"
    PAUSED = "paused"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, repr=False)
class StepResult(Generic[T_co]):
    """The result of one step.

    `usage` covers its own calls, without nested steps. `error` is one sentence whenever there is no trusted value.
    `exception` is the original exception of the step. `degraded_accepted` is True if the step has `on_degraded:
    accept`, so that its text counts as its value. `caused_by` names the nested step responsible for its status.
    `excused_by` names the step that continues despite this failure, which then does not count against the run.
    `replaced` says why the fallback ran in place of the step. `input_trust` is the lowest trust of all direct and
    indirect inputs, or None if the step never started. `inner_repairs` counts the repairs of replies that are not in
    `outcome`, such as those of the turns of an ensemble.
    """

    name: str
    kind: str
    status: StepStatus
    outcome: Outcome[T_co] | None
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
    inner_repairs: int = 0

    def __repr__(self) -> str:
        """Return one line: how it ended, its trust, and its value, abbreviated."""
        passed_on = self.handed_on
        value = "" if passed_on is None else f", {_brief(passed_on)}"
        return (
            f"<StepResult {self.name}: {', '.join(filter(None, [self.status.value, self.trust, self.reason]))}{value}>"
        )

    @property
    def value(self) -> T_co:
        """The value of the step. Raises `OutputError`, which names the step, if there is none."""
        if isinstance(self.outcome, Accepted) and self.ok:
            return self.outcome.value
        if isinstance(self.outcome, Degraded) and self.degraded_accepted:
            return cast("T_co", self.outcome.text)  # the step asked for it: `on_degraded: accept`
        raise self._refusal() from self._cause

    @property
    def ok(self) -> bool:
        """Whether the step succeeded, or degraded and accepts that."""
        return self.status is StepStatus.SUCCESS or (self.status is StepStatus.DEGRADED and self.degraded_accepted)

    @property
    def counts_against(self) -> bool:
        """Whether the status of this step keeps the run from completing."""
        return not self.ok and self.excused_by is None

    @property
    def nested(self) -> bool:
        """Whether the step ran inside another step."""
        return "/" in self.name

    @property
    def handed_on(self) -> Any:
        """The value that the next step receives: the value, or the text of a degraded step. None if there is
        neither."""
        if isinstance(self.outcome, Accepted):
            return self.outcome.value
        return self.outcome.text if isinstance(self.outcome, Degraded) else None

    @property
    def trust(self) -> str | None:
        """The trust of the value, or None if there is none."""
        return None if self.outcome is None or isinstance(self.outcome, Rejected) else self.outcome.trust.value

    @property
    def carried_trust(self) -> Trust:
        """The trust of the value that is passed on: the lower of its own trust and that of its inputs. A person's
        answer does not depend on its inputs. It becomes part of the `input_trust` of a later step that reads the value.
        """
        own = Trust.CLEAN if self.outcome is None or isinstance(self.outcome, Rejected) else self.outcome.trust
        return own if self.kind == "hitl" else Trust.lowest([own, self.input_trust or Trust.CLEAN])

    @property
    def reason(self) -> str | None:
        """The reason why there is no value, as a `Reason` string, or None if there is one or the step raised."""
        rejected = rejection_of(self.outcome)
        return None if rejected is None else rejected.reason.value

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON: one entry of `steps` in `aros run --json`."""
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
            "inner_repairs": self.inner_repairs,
            "stages": [
                {"stage": stage.stage, "outcome": stage.outcome, "reason": stage.reason, "calls": stage.calls}
                for stage in self.stages
            ],
            "calls": self.usage.requests,
            "usage": usage,
            "cost": usage["cost"],
            "seconds": round(self.seconds, 3),
        }

    @property
    def _cause(self) -> BaseException | None:
        """The exception. One of this package that no code of the user has raised has no traceback: its message says
        everything, and the traceback leads through packages only.
        """
        error = self.exception
        if error is None or type(error).__module__.partition(".")[0] != __name__.partition(".")[0]:
            return error
        return error if raised_at(error.__traceback__) else error.with_traceback(None)

    def _refusal(self) -> OutputError:
        rejected = rejection_of(self.outcome)
        attempts = rejected.attempts if rejected is not None else ()
        tried = stages_tried(attempts) if attempts else tuple(stage.stage for stage in self.stages)
        after = f"; tried: {', '.join(tried)}" if tried else ""
        reason = self.error if rejected is None else rejected.outline()  # an error message never quotes a model
        why = f": {reason}" if reason else ""
        message = f"step {self.name!r} has no value: {self.status.value}{why}{after}"
        message += "" if rejected is None else refused_call(rejected)
        if rejected is None:
            return OutputError(message, step=self.name, stages=tried, usage=self.usage)
        return OutputError.because(rejected, message, step=self.name, stages=tried, usage=self.usage)


@dataclass(frozen=True, slots=True)
class Work:
    """The usage and time of a step or run before a pause, which are added when it is resumed."""

    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0


class Strict(BaseModel):
    """A strict model of plain JSON, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class RecordedOutcome(Strict):
    """The outcome of a settled step, as plain JSON."""

    outcome: str
    value: Any = None
    trust: Trust = Trust.CLEAN
    origin: str = "first"
    text: str = ""
    reason: Reason | None = None
    issues: tuple[Issue, ...] = ()
    repairs: tuple[Repair, ...] = ()
    raw_matched: str | None = None
    tag: str | None = None
    seen: tuple[str, ...] = ()
    attempts: tuple[Attempt, ...] = ()


class RecordedStep(Strict):
    """The settlement of one step before the run paused, and its writes to the context."""

    name: str
    kind: str
    status: StepStatus
    outcome: RecordedOutcome | None = None
    usage: Usage = Usage()
    stages: tuple[StageRecord, ...] = ()
    attempts: int = 1
    seconds: float = 0.0
    error: str | None = None
    degraded_accepted: bool = False
    caused_by: str | None = None
    excused_by: str | None = None
    replaced: str | None = None
    input_trust: Trust | None = None
    inner_repairs: int = 0
    writes: list[tuple[list[str], Any]] = []
    messages: list[Any] = []


class DeferredWork(Deferral):
    """The state with which an agent step continues after its tool calls are decided.

    `pauses` is how often the step has paused, and `iteration` its current iteration. `state` is any additional state of
    a step with its own agents, as plain JSON.
    """

    pauses: int = 1
    iteration: int = 0
    state: Any = None


_VERSION: Final = 2
"""The version of the saved state of a paused run. It changes with any class above that is part of it."""


class PausedRun(Strict):
    """A run that waits for an answer, as plain JSON: save `to_dict()` anywhere, and `Runner.resume` continues it.

    `step` is the full name of the step that asks, `message` its question, `input_schema` the schema of the answer,
    and `rejected` whether it asks again because an answer was not accepted.
    `seconds` is the working time of the run so far, and `begun` the part of it used by the steps that continue.
    `deferred` has, by step name, the state of agents that wait for a decision on their tool calls. `carrier` contains
    data for observers, such as the `traceparent` of the paused run. It contains values of the run, and is as private as
    they are.
    """

    version: int = _VERSION
    run_id: str
    pipeline: str
    fingerprint: str
    step: str
    message: str
    rejected: bool = False
    input_schema: dict[str, Any] | None = None
    input: Any = None
    context: Any = None
    steps: list[RecordedStep] = Field(default_factory=list[RecordedStep])
    seconds: float = 0.0
    begun: dict[str, Work] = Field(default_factory=dict[str, Work])
    deferred: dict[str, DeferredWork] = Field(default_factory=dict[str, DeferredWork])
    carrier: dict[str, str] = Field(default_factory=dict[str, str])

    def __repr__(self) -> str:
        """Return one line that names the pipeline, the step and its question."""
        return f"<PausedRun {self.pipeline}: {self.step} asks {_brief(self.message)}>"

    __str__ = __repr__

    @property
    def work(self) -> dict[str, Work]:
        """The usage and time before the pause, by the names of the steps that continue; the empty name stands for the
        whole run.
        """
        return {"": Work(seconds=self.seconds), **self.begun}

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        return self.model_dump(mode="json")

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> PausedRun:
        """Load the result of `to_dict`. Raises `UsageError` for anything else, and for a state that an earlier or later
        release has saved.
        """
        if not isinstance(cast("object", saved), Mapping):
            advice = "; pass json.loads(…) of it" if isinstance(saved, (str, bytes)) else ""
            raise UsageError(f"the state of a paused run must be a mapping, not {short_value(saved)}{advice}")
        version = saved.get("version")
        if isinstance(version, int) and version != _VERSION:
            earlier = "answer the run with that release, or start it again"
            raise other_release("the state of the paused run", version, _VERSION, earlier=earlier)
        try:
            return cls.model_validate_json(json.dumps(dict(saved)))
        except ValidationError as error:
            wrong = error.errors(include_url=False)[0]
            place = ".".join(map(str, wrong["loc"]))
            raise UsageError(f"this is not the state of a paused run: {place}: {wrong['msg']}") from error
        except (TypeError, ValueError) as error:
            raise UsageError(f"this is not the state of a paused run: {error}") from error


@dataclass(frozen=True, slots=True)
class BodyResult:
    """How the steps of a body ended. `failed` is the nested step that failed the body, and `degraded` the first one
    whose text was passed on in place of a value. `last` is the result of its last step, `outputs` has the value of each
    by name, `writes` their writes to the context in order, `shared` the resulting context, and `said` the conversation
    of its agents.
    """

    scope: str
    last: StepResult[Any]
    outputs: Mapping[str, Any]
    shared: SharedContext
    failed: StepResult[Any] | None = None
    degraded: StepResult[Any] | None = None
    said: Conversation = ()

    @property
    def ok(self) -> bool:
        """Whether every step has produced something for the next."""
        return self.failed is None

    @property
    def value(self) -> Any:
        """The value passed on: the value of its last step, or the text of a degraded one."""
        return self.last.handed_on

    @property
    def outcome(self) -> Outcome[Any] | None:
        """The outcome of its last step."""
        return self.last.outcome

    @property
    def trust(self) -> Trust:
        """The trust of the value passed on, including its inputs."""
        return self.last.carried_trust

    @property
    def writes(self) -> tuple[Write, ...]:
        """The writes of its steps to the context."""
        return self.shared.writes


@dataclass(frozen=True, slots=True, repr=False)
class RunResult(Generic[T_co]):
    """How a run ended: one result for each step that started, in the order of their starts, nested ones included.

    Steps of the pipeline that never started follow as `skipped`. Nested steps are named `parent/branch/step`. Totals
    are derived from the steps. `seconds` is the working time of the run, in all its processes and without pauses.
    `context` is the final context. `paused` is the state from which a waiting run is resumed.
    """

    run_id: str
    pipeline: str
    status: RunStatus
    steps: tuple[StepResult[Any], ...]
    seconds: float
    context: Any = None
    paused: PausedRun | None = None
    trouble: str | None = None

    def __repr__(self) -> str:
        """Return one line: how it ended, its trust, and its output, abbreviated, or the error."""
        error = self.error
        ended = [self.status.value, self.trust, f"{len(self.steps)} {'step' if len(self.steps) == 1 else 'steps'}"]
        summary = _brief(self._last.handed_on) if self._has_output else _brief(error["message"]) if error else ""
        return f"<RunResult {self.pipeline}: {', '.join(filter(None, [*ended, summary]))}>"

    def _repr_html_(self) -> str:
        """Return the representation in notebooks: how each step ended, how replies that needed repairs were
        read, and the output. `aros report` has all details.
        """
        return _html(self)

    @property
    def usage(self) -> Usage:
        """The usage of all steps, failed and repair calls included."""
        return Usage.total(step.usage for step in self.steps)

    @property
    def output(self) -> T_co:
        """The value of the last step of the pipeline. Raises `OutputError` if the run has no trustworthy value.

        The `context` of the error has the id of the run and the values of its other steps, so that their work is not
        lost.
        """
        try:
            return cast("T_co", (self._culprit() or self._last).value)
        except OutputError as error:
            self._add_run(error)
            raise

    @property
    def trust(self) -> Trust | None:
        """The lowest trust among the steps that the output depends on, or None for a run without an output.

        A completed run of clean steps is CLEAN; one whose last step is clean but read a degraded text is DEGRADED.
        """
        return self._last.carried_trust if self._has_output else None

    @property
    def error(self) -> dict[str, Any] | None:
        """The step that kept the run from completing, and why: `{"step", "reason", "message"}`, even for a paused run.
        None if it completed.

        An exception may quote a secret, so known kinds of secrets are hidden in the message.
        """
        culprit = self._culprit()
        if culprit is None:
            return {"step": None, "reason": None, "message": _hidden(self.trouble)} if self.trouble else None
        message = self.trouble or f"{culprit.error or culprit.status.value}{self._degraded_before(culprit)}"
        return {"step": culprit.name, "reason": culprit.reason, "message": _hidden(message)}

    def step(self, name: str) -> StepResult[Any]:
        """Return the result of the step with this name, such as `parallel/a/summary`. Raises `UsageError`, with the
        nearest name, if there is none.
        """
        for step in self.steps:
            if step.name == name:
                return step
        close = get_close_matches(name, [step.name for step in self.steps], 1)
        hint = f"did you mean {close[0]!r}?" if close else f"it has: {', '.join(step.name for step in self.steps[:10])}"
        raise UsageError(f"the run has no step {name!r}; {hint}")

    def raise_for_status(self) -> None:
        """Raise `OutputError` unless the run completed; the step's exception is its `__cause__`."""
        culprit = self._culprit()
        try:
            if culprit is not None:
                _ = culprit.value
            if self.status is not RunStatus.COMPLETED:
                message = f"run {self.run_id} of {self.pipeline!r} did not complete: {self.status.value}"
                raise OutputError(message, usage=self.usage)
        except OutputError as error:
            self._add_run(error)
            raise

    def _add_run(self, error: OutputError) -> None:
        """Add the run to an error: the text that an earlier step passed on, and the context."""
        culprit = self._culprit()
        if culprit is not None and culprit.name == error.step:
            error.args = (f"{error.args[0]}{self._degraded_before(culprit)}",)
        done = {step.name: step.handed_on for step in self.steps if step.ok}
        error.context.update(run_id=self.run_id, pipeline=self.pipeline, outputs=done)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON: exactly what `aros run --json` prints. `paused` is present only while the run waits."""
        plain = {
            "run_id": self.run_id,
            "blueprint": self.pipeline,
            "status": self.status.value,
            "trust": None if self.trust is None else self.trust.value,
            "output": as_plain(self._last.handed_on) if self._has_output else None,
            "steps": [step.to_dict() for step in self.steps],
            "usage": self.usage.to_dict(),
            "error": self.error,
        }
        return plain if self.paused is None else {**plain, "paused": self.paused.to_dict()}

    def _degraded_before(self, failed: StepResult[Any]) -> str:
        """Return which steps before one that raised have passed on text in place of a value, and why."""
        before = takewhile(lambda step: step is not failed, self.steps if failed.exception is not None else ())
        return "".join(
            f"; step {step.name!r} before it had no value: {step.reason}"
            for step in before
            if step.status is StepStatus.DEGRADED and not step.nested
        )

    @property
    def _has_output(self) -> bool:
        return self.status in _WITH_OUTPUT and bool(self.steps)

    @property
    def _last(self) -> StepResult[Any]:
        return [step for step in self.steps if not step.nested][-1]

    def _culprit(self) -> StepResult[Any] | None:
        """Return the step that decided a status other than completed: the worst one, and among equals the cause or
        else the first.
        """
        wrong = [step for step in self.steps if step.counts_against]
        return min(wrong, key=lambda step: (_SEVERITY.index(step.status), step.caused_by is not None), default=None)


_BRIEF: Final = reprlib.Repr()
_BRIEF.maxstring, _BRIEF.maxother = 80, 100


def _brief(value: Any) -> str:
    return _BRIEF.repr(value)


_LONGEST: Final = 20_000
_COLUMNS: Final = ("step", "status", "trust", "repairs", "calls", "seconds", "why")


def repairs_by_step(run: RunResult) -> Iterator[tuple[StepResult[object], Sequence[Repair]]]:
    """Yield the steps with their repairs, each once: a step that contains other steps may have the outcome of the
    last one.
    """
    groups = {step.name.rpartition("/")[0] for step in run.steps}
    for step in run.steps:
        yield step, step.outcome.repairs if isinstance(step.outcome, Accepted) and step.name not in groups else ()


def repaired(step: StepResult[object], repairs: Sequence[Repair]) -> int:
    """Return the number of repairs in the replies of a step, of which `repairs` belong to its own outcome."""
    return len(repairs) + step.inner_repairs


def _html(run: RunResult) -> str:
    """Return the run as HTML without scripts or styles of its own.

    As in the report, everything that a model wrote is escaped, secrets in errors are masked, and invisible characters
    are shown as symbols.
    """
    trust = "" if run.trust is None else f", trust {run.trust.value}"
    head = f"<p><b>{run.status.value}</b>{trust}: {_escaped(run.pipeline)}, run {_escaped(run.run_id[:8])}</p>"
    steps = [*repairs_by_step(run)]
    rows = "".join(_row(_cells(step, repaired(step, repairs)), "td") for step, repairs in steps)
    table = f"<table><thead>{_row(_COLUMNS, 'th')}</thead><tbody>{rows}</tbody></table>"
    read = "".join(
        f"<details><summary>{_escaped(step.name)}: how its reply was read</summary>"
        f"<pre>{_escaped(clip(_hidden(step.outcome.explain()), _LONGEST))}</pre></details>"
        for step, repairs in steps
        if step.outcome is not None and (repairs or not isinstance(step.outcome, Accepted))
    )
    output = run.to_dict()["output"]
    text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, indent=2)
    return f"<div>{head}{table}{read}{'' if output is None else f'<pre>{_escaped(clip(text, _LONGEST))}</pre>'}</div>"


def _cells(step: StepResult[object], repairs: int) -> tuple[str, ...]:
    why = "" if step.ok else _hidden(step.error or step.reason or "")
    seconds = f"{step.seconds:.2f}"
    return step.name, step.status.value, step.trust or "", str(repairs), str(step.usage.requests), seconds, why


def _row(cells: tuple[str, ...], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{_escaped(cell)}</{tag}>' for cell in cells)}</tr>"


def _escaped(text: str) -> str:
    return escape(visible(text))


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
    # Skipped without a reason: the run is incomplete.
    StepStatus.SKIPPED: RunStatus.FAILED,
}


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_NamedT = TypeVar("_NamedT", bound=_Named)


def in_order(steps: Iterable[_NamedT]) -> list[_NamedT]:
    """Return each step directly followed by its nested steps, however they were interleaved;
    otherwise in start order.
    """
    found = {step.name: step for step in steps}
    inside: dict[str, list[_NamedT]] = {}
    for name, step in found.items():
        around = name.rpartition("/")[0]
        while around and around not in found:
            around = around.rpartition("/")[0]
        inside.setdefault(around, []).append(step)
    ordered: list[_NamedT] = []
    waiting = inside.get("", [])[::-1]
    while waiting:
        step = waiting.pop()
        ordered.append(step)
        waiting += inside.get(step.name, [])[::-1]
    return ordered


def run_status(steps: Sequence[StepResult[Any]]) -> RunStatus:
    """Return the status of a run, derived from its steps: completed only if every step that counts succeeded."""
    wrong = [step.status for step in steps if step.counts_against]
    return _RUN_STATUS_OF[min(wrong, key=_SEVERITY.index)] if wrong else RunStatus.COMPLETED


NO_CALL: Final = "no further model call: "
"""The beginning of the reason why the limits of a step or a run allow no call."""


def refused_call(rejected: Rejected) -> str:
    """Return the limit that prevented a model call which might have led to a value, after a semicolon, if any."""
    whys = (each.why for each in rejected.attempts if each.outcome == "skipped" and each.why.startswith(NO_CALL))
    return "".join(f"; {why}" for why in islice(whys, 1))


def may_pass(rejected: Rejected) -> bool:
    """Return whether a rejection is a transient error of the provider or network, so that `retries` help."""
    return any(issue.code in _INFRASTRUCTURE for issue in rejected.issues)
