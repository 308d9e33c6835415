"""OpenTelemetry: spans and metrics of runs, steps and stages.

A run is `invoke_workflow {pipeline}`, a step is `step {name}`, and a stage of a ladder is `stage {name}`. The spans of
pydantic-ai (`invoke_agent`, `chat`) nest between and below them, and only those have `gen_ai.usage`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from opentelemetry import context as otel_context
from opentelemetry import metrics, trace
from opentelemetry.metrics import Meter, MeterProvider
from opentelemetry.trace import Link, Span, Status, StatusCode, Tracer, TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue

from flujo_aros import events
from flujo_aros.configured import reject_unknown_options
from flujo_aros.errors import UsageError
from flujo_aros.telemetry import names
from flujo_aros.telemetry.formatting import step_place, value_words
from flujo_aros.telemetry.masking import Mask
from flujo_aros.usage import Usage

_MOST_TRANSFORMS: Final = 20
_MOST_TEXT: Final = 32_000
_RAISED: Final = re.compile(r"^([A-Z]\w*(?:Error|Exception|Exceeded|Timeout|Exit|Stop))(?::|$)")
_FAILED: Final = ("failed", "cancelled")
_W3C: Final = TraceContextTextMapPropagator()

Tags = dict[str, AttributeValue]


class Spans:
    """Turns events into spans. Strings from users go through `mask`; texts are included only with `content`."""

    def __init__(self, tracer: Tracer, mask: Callable[[str], str], *, content: bool) -> None:
        self._tracer = tracer
        self._mask = mask
        self._content = content
        self._spans: dict[int, Span] = {}
        self._faulty: set[int] = set()
        """The steps in which a provider call failed."""

        self._takes: Mapping[type[events.Event], Callable[[Any], AbstractContextManager[object] | None]] = {
            events.RunStarted: self._run_started,
            events.RunFinished: self._run_finished,
            events.StepStarted: self._step_started,
            events.StepFinished: self._step_finished,
            events.FunctionCalled: self._function_called,
            events.AgentStarted: self._agent_started,
            events.AgentFinished: self._agent_finished,
            events.StageStarted: self._stage_started,
            events.StageFinished: self._stage_finished,
            events.StageSkipped: self._stage_skipped,
            events.AskStarted: self._ask_started,
            events.AskFinished: self._ask_finished,
            events.ReadFinished: self._read_finished,
        }

    def take(self, event: events.Event) -> AbstractContextManager[object] | None:
        """Receive one event; the caller keeps the span of a start event open."""
        take = self._takes.get(type(event))
        return None if take is None else take(event)

    def _run_started(self, event: events.RunStarted) -> AbstractContextManager[object]:
        """Open the span of a run. A resumed run is a separate trace with a link to the span that paused."""
        pipeline = self._mask(event.pipeline)
        before = trace.get_current_span(_W3C.extract(event.carrier)).get_span_context()
        tags: Tags = {names.OPERATION: names.INVOKE_WORKFLOW, names.WORKFLOW_NAME: pipeline}
        tags |= {"aros.run.id": event.run_id, "aros.run.resumed": event.resumed}
        links = [Link(before)] if before.is_valid else []
        held = self._held(event, f"{names.INVOKE_WORKFLOW} {pipeline}", tags, links)
        span = self._own(event)
        if span.is_recording():
            _W3C.inject(event.carrier, trace.set_span_in_context(span))
        self._put_value(span, names.INPUT_VALUE, event.input)
        return held

    def _run_finished(self, event: events.RunFinished) -> None:
        span = self._own(event)
        span.set_attribute("aros.status", event.status)
        self._put_value(span, names.OUTPUT_VALUE, event.output)
        if event.status in (*_FAILED, "degraded"):
            _fail(span, event.status)
        elif event.status == "completed":
            span.set_status(Status(StatusCode.OK))

    def _step_started(self, event: events.StepStarted) -> AbstractContextManager[object]:
        name = self._mask(event.name)
        return self._held(event, f"step {name}", {"aros.step.name": name, "aros.step.kind": event.kind})

    def _step_finished(self, event: events.StepFinished) -> None:
        faulty = event.scope.id in self._faulty
        self._faulty.discard(event.scope.id)
        span = self._own(event)
        span.set_attributes({"aros.status": event.status, "aros.step.attempts": event.attempts})
        span.set_attributes({"aros.provider_error": faulty, **_worth(event)})
        self._put_value(span, names.OUTPUT_VALUE, event.output)
        self._put_value(span, "aros.error", event.error or None)
        if event.status in _FAILED:
            raised = _RAISED.match(event.error or "")
            other = event.status if event.status == "cancelled" else names.OTHER_ERROR
            _fail(span, event.reason or (raised[1] if raised else other))

    def _function_called(self, event: events.FunctionCalled) -> None:
        self._put_value(self._own(event), names.INPUT_VALUE, event.input)

    def _agent_started(self, event: events.AgentStarted) -> None:
        if not event.scope.step:  # outside a pipeline, an agent uses the span of its host, which the host ends
            self._spans[event.scope.id] = trace.get_current_span()

    def _agent_finished(self, event: events.AgentFinished) -> None:
        if not event.scope.step:
            self._faulty.discard(event.scope.id)
            self._own(event).set_attributes(_worth(event))
            self._spans.pop(event.scope.id, None)

    def _stage_started(self, event: events.StageStarted) -> AbstractContextManager[object]:
        around = self._around(event)
        if around.is_recording():
            tags = self._repair_tags(event)
            if event.stage not in names.GIVES_TEXT:
                around.add_event("aros.repair.started", tags)
            if event.stage not in names.REPAIRS_OF_A_REPLY:
                around.add_event("aros.fallback.stage", tags)
        own = {"aros.stage": event.stage, "aros.stage.because": event.reason, "aros.schema_hash": event.schema_hash}
        return self._held(event, f"stage {event.stage}", _known(own))

    def _stage_finished(self, event: events.StageFinished) -> None:
        ended = {"aros.stage.outcome": event.outcome, "aros.stage.calls": event.calls, "aros.reason": event.reason}
        self._own(event).set_attributes(_known(ended))
        if event.stage not in names.GIVES_TEXT:
            name = "aros.repair.success" if event.outcome == "accepted" else "aros.repair.failed"
            tags = {**self._repair_tags(event), "outcome": event.outcome}
            self._around(event, beyond=event.scope.id).add_event(name, tags)

    def _stage_skipped(self, event: events.StageSkipped) -> None:
        self._around(event).add_event("aros.stage.skipped", {"stage": event.stage})

    def _ask_started(self, event: events.AskStarted) -> None:
        span = self._around(event)
        if not span.is_recording():
            return
        tags: Tags = {"stage": event.stage, "attempt": event.attempt}
        if event.constrained:
            span.add_event("grammar.applied", tags)
        content = self._content or event.capture
        system = {"aros.system": self._text(event.system)} if content and event.system else {}
        span.add_event("agent.system", {**tags, "chars": len(event.system), **system})
        prompt = {"aros.prompt": self._text(event.prompt)} if content and event.prompt else {}
        span.add_event("agent.input", {**tags, "chars": len(event.prompt), **prompt})
        if event.stage == "first" and self._spans.get(event.scope.id) is not span:
            self._put_value(span, names.INPUT_VALUE, event.prompt)

    def _ask_finished(self, event: events.AskFinished) -> None:
        failed = event.fault is not None or event.finish_reason == "error"
        if failed:
            self._faulty.add(_step_or_owner(event.scope))
        span = self._around(event)
        if not span.is_recording():
            return
        used, model = event.usage, self._mask(event.model)
        tags = {"stage": event.stage, "attempt": event.attempt, "provider_error": failed}
        spent: dict[str, Any] = {name: getattr(used, name) for name in ("requests", "input_tokens", "output_tokens")}
        spent |= {"unmeasured_requests": used.unmeasured_requests or None, "cost_usd": _dollars(used)}
        ended = {"finish_reason": event.finish_reason or None, "model_id": model or None}
        if model:
            span.set_attribute("aros.model_id", model)
        span.add_event("agent.usage", _known({**tags, **spent, **ended}))

    def _read_finished(self, event: events.ReadFinished) -> None:
        span = self._around(event)
        if not span.is_recording():
            return
        tags = {**self._repair_tags(event), **_known({"trust": event.trust})}
        if event.schema_hash:
            span.set_attribute("aros.schema_hash", event.schema_hash)
        if event.stage == "first" and (event.repairs or event.outcome == "rejected"):
            span.add_event("aros.repair.started", tags)
            span.add_event("aros.repair.failed" if event.outcome == "rejected" else "aros.repair.success", tags)
        codes = [repair.code for repair in event.repairs]
        if event.outcome == "rejected":
            issues = {"issues": sorted({issue.code for issue in event.issues})[:_MOST_TRANSFORMS]}
            span.add_event("output.coercion.fail", {**tags, **issues})
        elif codes:
            transforms = sorted(set(codes))[:_MOST_TRANSFORMS]
            span.add_event("output.coercion.success", {**tags, "transforms": transforms})
            span.set_attributes({"aros.coercion.total": len(codes), "aros.coercion.transforms": transforms})
        content = self._content or event.capture
        reply = {"aros.reply": self._text(event.text), **self._messages(event)} if content and event.text else {}
        span.add_event("agent.response", {**tags, "chars": len(event.text), **reply})

    def _repair_tags(self, event: events.StageStarted | events.StageFinished | events.ReadFinished) -> Tags:
        """Return the attributes of every span event about a repair."""
        faulty = _step_or_owner(event.scope) in self._faulty
        kind = names.STAGE_KINDS.get(event.stage, "llm")
        tags = {"stage": event.stage, "stage_kind": kind, "provider_error": faulty}
        return _known({**tags, "schema_hash": event.schema_hash, "reason": event.reason})

    def _put_value(self, span: Span, name: str, value: object) -> None:
        if self._content and value is not None and span.is_recording():
            span.set_attribute(name, self._text(value_words(value)))

    def _messages(self, event: events.ReadFinished) -> Tags:
        messages = [self._text(f"{issue.path}: {issue.message}") for issue in event.issues[:_MOST_TRANSFORMS]]
        return {"aros.issues": messages} if messages else {}

    def _text(self, text: str) -> str:
        return self._mask(text)[:_MOST_TEXT]

    def _held(
        self, event: events.Event, name: str, attributes: Tags, links: Sequence[Link] = ()
    ) -> AbstractContextManager[object]:
        """Start a span; it is current until the block ends, which ends it."""
        scope = event.scope.id
        marked = {**attributes, names.SPAN_KIND: names.CHAIN}
        span = self._tracer.start_span(name, attributes=marked, links=links, record_exception=False)
        self._spans[scope] = span
        before = otel_context.get_current()

        @contextmanager
        def held() -> Generator[None]:
            otel_context.attach(trace.set_span_in_context(span))
            try:
                yield
            finally:
                # not by a token: a stream may be closed in a different context from the one in which it was opened
                otel_context.attach(before)
                span.end()
                self._spans.pop(scope, None)

        return held()

    def _own(self, event: events.Event) -> Span:
        """Return the span for the scope of an event; without one, a span that records nothing."""
        return self._spans.get(event.scope.id, trace.INVALID_SPAN)

    def _around(self, event: events.Event, beyond: int | None = None) -> Span:
        """Return the innermost span of this package around an event, else the current one; with `beyond`, the span
        around that scope.
        """
        for scope in reversed(event.scope.path):
            span = self._spans.get(scope)
            if span is not None and scope != beyond:
                return span
        return trace.INVALID_SPAN if beyond is not None else trace.get_current_span()


def _step_or_owner(scope: events.Scope) -> int:
    """Return the scope to which a provider failure is attributed."""
    return scope.step or scope.owner


def _known(tags: Mapping[str, Any]) -> Tags:
    return {name: value for name, value in tags.items() if value is not None}


def _worth(event: events.StepFinished | events.AgentFinished) -> Tags:
    return _known({"aros.trust": event.trust, "aros.reason": event.reason})


def _dollars(used: Usage) -> float | None:
    return None if used.cost is None else float(used.cost)


def _fail(span: Span, kind: str) -> None:
    span.set_attribute(names.ERROR_TYPE, kind)
    span.set_status(Status(StatusCode.ERROR, kind))


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its name, unit and labels; a histogram if it has bounds, otherwise a counter."""

    name: str
    unit: str
    labels: tuple[str, ...]
    description: str
    bounds: tuple[float, ...] = ()

    def made(self, meter: Meter) -> Callable[..., None]:
        """Return the function that adds to the metric's counter or records a value in its histogram."""
        if not self.bounds:
            return meter.create_counter(self.name, self.unit, self.description).add
        advice = {"explicit_bucket_boundaries_advisory": self.bounds}
        return meter.create_histogram(self.name, self.unit, self.description, **advice).record


_SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 60.0, 180.0)
_CALLS: Final = (0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 10.0, 25.0)
_TOKENS: Final = (100.0, 500.0, 1_000.0, 2_500.0, 5_000.0, 10_000.0, 50_000.0, 250_000.0)
_DOLLARS: Final = (0.0001, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 10.0)

_STEP: Final = ("pipeline", "step", "status")
_READ: Final = ("stage", "outcome", "trust", "reason", "model")


METRICS: Final = (
    Metric("aros.runs", "{run}", ("pipeline", "status"), "Runs that ended."),
    Metric("aros.run.duration", "s", ("pipeline", "status"), "How long runs took.", _SECONDS),
    Metric("aros.steps", "{step}", (*_STEP, "kind", "trust"), "Steps that settled."),
    Metric("aros.step.duration", "s", (*_STEP, "kind"), "How long steps took.", _SECONDS),
    Metric("aros.step.calls", "{call}", _STEP, "Model calls of a step, repairs included.", _CALLS),
    Metric("aros.step.tokens", "{token}", _STEP, "Input and output tokens of a step.", _TOKENS),
    Metric("aros.step.cost", "USD", _STEP, "Cost of a step, where prices are known.", _DOLLARS),
    Metric("aros.readings", "{reading}", _READ, "Replies that were read."),
    Metric("aros.repairs", "{repair}", ("code", "risk", "model"), "Edits between a reply and its value."),
    Metric("aros.stages", "{stage}", ("stage", "outcome", "because"), "Stages of ladders that ran."),
    Metric(
        "aros.fallback.stage", "{stage}", ("stage", "because"), "Stages started after the reply could not be repaired."
    ),
    Metric("aros.stage.duration", "s", ("stage", "outcome"), "How long stages took.", _SECONDS),
    Metric("aros.calls", "{call}", ("stage", "model", "fault"), "Model calls."),
    Metric("agent.usage", "{token}", ("stage", "model", "direction"), "Tokens of model calls."),
    Metric("aros.cost", "USD", ("stage", "model"), "Cost of model calls, where prices are known."),
    Metric("aros.time_to_first_partial", "s", ("model",), "Time from a call to the first part shown.", _SECONDS),
    Metric("aros.gate.violations", "{violation}", ("pipeline",), "Completed runs with an unsettled step."),
)


class Measures:
    """Counts and measures events. Names go through `mask`."""

    def __init__(self, meter: Meter, mask: Callable[[str], str]) -> None:
        self._instruments = {metric.name: metric.made(meter) for metric in METRICS}
        self._mask = mask
        self._unsettled: dict[int, int] = {}
        """The number of open steps of each run."""

    def take(self, event: events.Event) -> None:
        """Receive one event."""
        for name, value, labels in self._measured(event):
            if value is not None:
                self._instruments[name](value, labels)

    def _measured(self, event: events.Event) -> Iterator[tuple[str, float | None, Mapping[str, str | bool]]]:
        """Yield the metrics that an event adds, with their values (None: unknown) and labels."""
        match event:
            case events.RunStarted():
                self._unsettled[event.scope.id] = 0
            case events.RunFinished():
                pipeline, unsettled = self._mask(event.pipeline), self._unsettled.pop(event.scope.id, 0)
                labels = {"pipeline": pipeline, "status": event.status}
                yield "aros.runs", 1, labels
                yield "aros.run.duration", event.seconds, labels
                broken = event.status == "completed" and unsettled != 0
                yield "aros.gate.violations", int(broken), {"pipeline": pipeline}
            case events.StepStarted():
                self._settle(event, +1)
            case events.StepFinished():
                self._settle(event, -1)
                used, pipeline = event.usage, self._mask(event.scope.pipeline)
                step = {"pipeline": pipeline, "step": step_place(self._mask(event.name)), "status": event.status}
                yield "aros.steps", 1, {**step, "kind": event.kind, "trust": event.trust or ""}
                yield "aros.step.duration", event.seconds, {**step, "kind": event.kind}
                yield "aros.step.calls", used.requests or None, step
                yield "aros.step.tokens", used.input_tokens + used.output_tokens if used.requests else None, step
                yield "aros.step.cost", _dollars(used), step
            case events.StageStarted() if event.stage not in names.REPAIRS_OF_A_REPLY:
                yield "aros.fallback.stage", 1, {"stage": event.stage, "because": event.reason}
            case events.StageFinished():
                labels = {"stage": event.stage, "outcome": event.outcome}
                yield "aros.stages", 1, {**labels, "because": event.because}
                yield "aros.stage.duration", event.scope.seconds, labels
            case events.AskFinished():
                used, call = event.usage, {"stage": event.stage, "model": self._mask(event.model)}
                yield "aros.calls", used.requests, {**call, "fault": event.fault is not None}
                yield "agent.usage", used.input_tokens, {**call, "direction": "input"}
                yield "agent.usage", used.output_tokens, {**call, "direction": "output"}
                yield "aros.cost", _dollars(used), call
                yield "aros.time_to_first_partial", event.first_seconds, {"model": call["model"]}
            case events.ReadFinished():
                model = self._mask(event.model)
                worth = {"outcome": event.outcome, "trust": event.trust or "", "reason": event.reason or ""}
                yield "aros.readings", 1, {"stage": event.stage, **worth, "model": model}
                for repair in event.repairs:
                    yield "aros.repairs", 1, {"code": repair.code, "risk": repair.risk.name.lower(), "model": model}
            case _:
                return

    def _settle(self, event: events.StepStarted | events.StepFinished, change: int) -> None:
        if event.scope.run in self._unsettled:
            self._unsettled[event.scope.run] += change


_PLACEHOLDERS: Final = ("opentelemetry.trace", "opentelemetry.metrics")


@reject_unknown_options
class OpenTelemetry:
    """Reports events to OpenTelemetry: pass it to a runner, or to `observing`, as an observer.

    Without providers it uses the global ones; without an SDK its cost is negligible. The text of prompts, replies,
    issues and errors is exported only if `content` is on, or `capture_content` of an agent; known kinds of secrets,
    those in the environment, and `secrets` are masked even then.

    >>> from flujo_aros.pipeline.runner import Runner
    >>> from flujo_aros.pipeline.step import Call
    >>> Runner(Call("count", function=len), observers=[OpenTelemetry()]).run_sync("four").output
    4
    """

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        *,
        content: bool = False,
        secrets: Iterable[str] = (),
    ) -> None:
        for name, given, member in (
            ("tracer_provider", tracer_provider, "get_tracer"),
            ("meter_provider", meter_provider, "get_meter"),
        ):
            if given is not None and not hasattr(given, member):
                raise UsageError(f"OpenTelemetry: {name} must be a provider, which has `{member}`, not {given!r}")
        self._content = content
        self._mask = mask = Mask.of_environment(secrets)
        self._traced = tracer_provider is not None
        self._measured = meter_provider is not None
        tracer = trace.get_tracer("flujo_aros", tracer_provider=tracer_provider)
        self._spans = Spans(tracer, mask, content=content)
        self._measures = Measures(metrics.get_meter("flujo_aros", meter_provider=meter_provider), mask)

    def __call__(self, event: events.Event, /) -> AbstractContextManager[object] | None:
        """Receive one event; the emitter keeps the span of a start event open."""
        if self._content or not isinstance(event, events.ReadFinished) or event.capture:
            self._mask.hear(event)
        if self._measured or _heard(metrics.get_meter_provider()):
            self._measures.take(event)
        return self._spans.take(event) if self._traced or _heard(trace.get_tracer_provider()) else None


def _heard(provider: object) -> bool:
    """Return whether a global provider is a real one, not the placeholder of the API."""
    return not type(provider).__module__.startswith(_PLACEHOLDERS)
