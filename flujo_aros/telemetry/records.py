"""What the journal gives back: one frozen record for each run, step, stage, call, reading and repair."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeAlias

from flujo_aros.outcome import Issue
from flujo_aros.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalRun:
    """One run. `status` is that of the `RunResult`, or `running`, or `lost`: its process is gone."""

    run_id: str
    pipeline: str
    kind: str
    """`pipeline`, or `agent`: an agent that ran outside of any pipeline."""
    status: str
    started: float
    """Seconds since 1970, as all times."""
    seconds: float | None
    usage: Usage
    host: str = ""
    pid: int = 0
    steps: int = 0
    repairs: int = 0

    @property
    def started_at(self) -> datetime:
        """When it started, in UTC."""
        return datetime.fromtimestamp(self.started, UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalRepair:
    """One edit between the text of a reading and its value."""

    code: str
    risk: str
    path: str
    span: tuple[int, int]
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalReading:
    """One reply and what it was read as. Secrets in `text` are masked, at the same length."""

    id: int
    step_id: int
    stage: str
    model: str
    outcome: str
    trust: str | None
    reason: str | None
    schema_hash: str | None
    finish_reason: str | None
    issues: tuple[Issue, ...]
    text: str
    chars: int
    """How long the reply was; longer than `text` where the journal kept only its beginning."""
    at: float
    repairs: tuple[JournalRepair, ...] = ()
    read_with: dict[str, Any] = field(default_factory=dict[str, Any])
    """What beside the schema it was read with, where that is no default: `options` of the contract, the `ladder`, and
    `checks`: an `expression`, a `function` to import, or the `name` of any other."""

    @property
    def whole(self) -> bool:
        """Whether the text was kept as a whole."""
        return len(self.text) == self.chars


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalAsk:
    """One model call. `seconds` is None where it never came back."""

    id: int
    step_id: int
    stage: str
    attempt: int
    model: str
    constrained: bool
    started: float
    seconds: float | None
    usage: Usage
    finish_reason: str | None
    fault: str | None
    prompt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalStage:
    """One stage of a ladder that ran, or did not: then `outcome` is `passed`, and `why` says why."""

    id: int
    step_id: int
    stage: str
    because: str | None
    outcome: str
    reason: str | None
    calls: int
    why: str
    started: float
    seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalNote:
    """What a step said beside its value: `note` is `agreement` or `ensemble`, `data` its plain JSON."""

    id: int
    step_id: int
    note: str
    data: dict[str, Any]


Part: TypeAlias = JournalAsk | JournalReading | JournalStage
"""What happens in a step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalStep:
    """One step. `status` is that of the `StepResult`; `running` while it has not settled, or `lost`: its process ended
    before it did; or `resumed`: it had paused, and the run has gone on since.

    `input` is what a function was called with, `output` what a step without a reading came to: JSON, or the text.
    """

    id: int
    parent_id: int
    name: str
    kind: str
    status: str
    trust: str | None
    input_trust: str | None = None
    """The lowest trust of all that the step was made from; None in journals of before it was kept."""
    reason: str | None
    error: str | None
    attempts: int
    started: float
    seconds: float | None
    usage: Usage
    input: str | None = None
    output: str | None = None


@dataclass(frozen=True, slots=True)
class Chapter:
    """All that happened in one step; for an agent outside of any pipeline, `step` is None."""

    step: JournalStep | None
    stages: tuple[JournalStage, ...] = ()
    asks: tuple[JournalAsk, ...] = ()
    readings: tuple[JournalReading, ...] = ()
    notes: tuple[JournalNote, ...] = ()

    @property
    def name(self) -> str:
        """The name of the step."""
        return "" if self.step is None else self.step.name

    @property
    def parts(self) -> tuple[Part, ...]:
        """Calls, readings and stages in the order in which they began."""
        parts: list[Part] = [*self.asks, *self.readings, *self.stages]
        return tuple(sorted(parts, key=lambda part: part.id))

    @property
    def final(self) -> JournalReading | None:
        """The reading that decided: the accepted one, else the last."""
        accepted = [reading for reading in self.readings if reading.outcome != "rejected"]
        return next(reversed(accepted or self.readings), None)


@dataclass(frozen=True, slots=True)
class Story:
    """A whole run, as it happened."""

    run: JournalRun
    chapters: tuple[Chapter, ...]
    contracts: dict[str, str] = field(default_factory=dict[str, str])
    """The contracts of its readings as JSON (mode, schema, where the payload stands), by `schema_hash`."""

    def children(self, parent_id: int = 0) -> Iterator[Chapter]:
        """The steps right inside a step, in start order; those of the pipeline itself by default."""
        for chapter in self.chapters:
            if chapter.step is None:
                if parent_id == 0:
                    yield chapter
            elif chapter.step.parent_id == parent_id:
                yield chapter
