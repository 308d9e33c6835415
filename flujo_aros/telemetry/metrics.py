"""The metrics as a table, and the observer that turns events into them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from opentelemetry.metrics import Counter, Histogram, Meter

from flujo_aros.events import (
    AskFinished,
    Event,
    ReadFinished,
    RunFinished,
    RunStarted,
    StageFinished,
    StageStarted,
    StepFinished,
    StepStarted,
)
from flujo_aros.telemetry import names
from flujo_aros.telemetry.formatting import step_place

Labels: TypeAlias = Mapping[str, str | bool]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its name, kind, unit and labels."""

    name: str
    kind: Literal["counter", "histogram"]
    unit: str
    labels: tuple[str, ...]
    description: str
    bounds: tuple[float, ...] = ()


_SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 60.0, 180.0)
_CALLS: Final = (0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 10.0, 25.0)
_TOKENS: Final = (100.0, 500.0, 1_000.0, 2_500.0, 5_000.0, 10_000.0, 50_000.0, 250_000.0)
_DOLLARS: Final = (0.0001, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 10.0)

_STEP: Final = ("pipeline", "step", "status")

_READING: Final = ("stage", "outcome", "trust", "reason", "model")

METRICS: Final = (
    Metric("aros.runs", "counter", "{run}", ("pipeline", "status"), "Runs that ended."),
    Metric("aros.run.duration", "histogram", "s", ("pipeline", "status"), "How long runs took.", _SECONDS),
    Metric("aros.steps", "counter", "{step}", (*_STEP, "kind", "trust"), "Steps that settled."),
    Metric("aros.step.duration", "histogram", "s", (*_STEP, "kind"), "How long steps took.", _SECONDS),
    Metric("aros.step.calls", "histogram", "{call}", _STEP, "Model calls of a step, repairs included.", _CALLS),
    Metric("aros.step.tokens", "histogram", "{token}", _STEP, "Input and output tokens of a step.", _TOKENS),
    Metric("aros.step.cost", "histogram", "USD", _STEP, "Cost of a step, where prices are known.", _DOLLARS),
    Metric(
        "aros.readings",
        "counter",
        "{reading}",
        ("stage", "outcome", "trust", "reason", "model"),
        "Replies that were read.",
    ),
    Metric("aros.repairs", "counter", "{repair}", ("code", "risk", "model"), "Edits between a reply and its value."),
    Metric("aros.stages", "counter", "{stage}", ("stage", "outcome", "because"), "Stages of ladders that ran."),
    Metric(
        "aros.fallback.stage",
        "counter",
        "{stage}",
        ("stage", "because"),
        "Stages started after the reply could not be repaired.",
    ),
    Metric("aros.stage.duration", "histogram", "s", ("stage", "outcome"), "How long stages took.", _SECONDS),
    Metric("aros.calls", "counter", "{call}", ("stage", "model", "fault"), "Model calls."),
    Metric("agent.usage", "counter", "{token}", ("stage", "model", "direction"), "Tokens of model calls."),
    Metric("aros.cost", "counter", "USD", ("stage", "model"), "Cost of model calls, where prices are known."),
    Metric(
        "aros.time_to_first_partial",
        "histogram",
        "s",
        ("model",),
        "Time from a call to the first part shown.",
        _SECONDS,
    ),
    Metric("aros.gate.violations", "counter", "{violation}", ("pipeline",), "Completed runs with an unsettled step."),
)


class Instruments:
    """The instruments of a meter, by name. A label that is left out is the empty string."""

    def __init__(self, meter: Meter) -> None:
        self._counters: dict[str, Counter] = {}
        self._histograms: dict[str, Histogram] = {}
        for metric in METRICS:
            if metric.kind == "counter":
                self._counters[metric.name] = meter.create_counter(metric.name, metric.unit, metric.description)
            else:
                self._histograms[metric.name] = meter.create_histogram(
                    metric.name, metric.unit, metric.description, explicit_bucket_boundaries_advisory=metric.bounds
                )

    def add(self, name: str, amount: float, labels: Labels) -> None:
        """Count."""
        self._counters[name].add(amount, labels)

    def record(self, name: str, amount: float, labels: Labels) -> None:
        """Measure."""
        self._histograms[name].record(amount, labels)


class Measures:
    """Counts and measures events. Names go through `mask`."""

    def __init__(self, meter: Meter, mask: Callable[[str], str]) -> None:
        self._to = Instruments(meter)
        self._mask = mask
        self._unsettled: dict[int, int] = {}
        """The number of open steps of each run."""
        self._takes: Mapping[type[Event], Callable[[Any], None]] = {
            RunStarted: self._run_started,
            RunFinished: self._run_finished,
            StepStarted: self._step_started,
            StepFinished: self._step_finished,
            StageStarted: self._stage_started,
            StageFinished: self._stage_finished,
            AskFinished: self._ask_finished,
            ReadFinished: self._read_finished,
        }

    def take(self, event: Event) -> None:
        """Receive one event."""
        take = self._takes.get(type(event))
        if take is not None:
            take(event)

    def _run_started(self, event: RunStarted) -> None:
        self._unsettled[event.scope.id] = 0

    def _run_finished(self, event: RunFinished) -> None:
        pipeline = self._mask(event.pipeline)
        labels = {"pipeline": pipeline, "status": event.status}
        self._to.add("aros.runs", 1, labels)
        self._to.record("aros.run.duration", event.seconds, labels)
        unsettled = self._unsettled.pop(event.scope.id, 0)
        self._to.add(
            "aros.gate.violations", int(event.status == "completed" and unsettled != 0), {"pipeline": pipeline}
        )

    def _step_started(self, event: StepStarted) -> None:
        self._settle(event, +1)

    def _step_finished(self, event: StepFinished) -> None:
        self._settle(event, -1)
        used, name = event.usage, step_place(self._mask(event.name))
        labels = {"pipeline": self._mask(event.scope.pipeline), "step": name, "status": event.status}
        self._to.add("aros.steps", 1, {**labels, "kind": event.kind, "trust": event.trust or ""})
        self._to.record("aros.step.duration", event.seconds, {**labels, "kind": event.kind})
        if used.requests:
            self._to.record("aros.step.calls", used.requests, labels)
            self._to.record("aros.step.tokens", used.input_tokens + used.output_tokens, labels)
        if used.cost is not None:
            self._to.record("aros.step.cost", float(used.cost), labels)

    def _stage_started(self, event: StageStarted) -> None:
        if event.stage not in names.REPAIRS_OF_A_REPLY:
            self._to.add("aros.fallback.stage", 1, {"stage": event.stage, "because": event.reason})

    def _stage_finished(self, event: StageFinished) -> None:
        labels = {"stage": event.stage, "outcome": event.outcome}
        self._to.add("aros.stages", 1, {**labels, "because": event.because})
        self._to.record("aros.stage.duration", event.scope.seconds, labels)

    def _ask_finished(self, event: AskFinished) -> None:
        used, model = event.usage, self._mask(event.model)
        labels = {"stage": event.stage, "model": model}
        self._to.add("aros.calls", used.requests, {**labels, "fault": event.fault is not None})
        self._to.add("agent.usage", used.input_tokens, {**labels, "direction": "input"})
        self._to.add("agent.usage", used.output_tokens, {**labels, "direction": "output"})
        if used.cost is not None:
            self._to.add("aros.cost", float(used.cost), labels)
        if event.first_seconds is not None:
            self._to.record("aros.time_to_first_partial", event.first_seconds, {"model": model})

    def _read_finished(self, event: ReadFinished) -> None:
        model = self._mask(event.model)
        worth = {"outcome": event.outcome, "trust": event.trust or "", "reason": event.reason or ""}
        self._to.add("aros.readings", 1, {"stage": event.stage, **worth, "model": model})
        for repair in event.repairs:
            labels = {"code": repair.code, "risk": repair.risk.name.lower(), "model": model}
            self._to.add("aros.repairs", 1, labels)

    def _settle(self, event: StepStarted | StepFinished, change: int) -> None:
        if event.scope.run in self._unsettled:
            self._unsettled[event.scope.run] += change
