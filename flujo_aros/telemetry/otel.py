"""OpenTelemetry: spans and metrics of runs, steps and stages.

A run is `invoke_workflow {pipeline}`, a step `step {name}`, a stage of a ladder `stage {name}`. The spans of
pydantic-ai (`invoke_agent`, `chat`) nest between and below them, and only those have `gen_ai.usage`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Final

from opentelemetry import metrics, trace
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import TracerProvider

from flujo_aros.errors import UsageError
from flujo_aros.events import Event, ReadFinished
from flujo_aros.telemetry import names
from flujo_aros.telemetry.masking import Mask
from flujo_aros.telemetry.metrics import Measures
from flujo_aros.telemetry.spans import Spans

_PLACEHOLDERS: Final = ("opentelemetry.trace", "opentelemetry.metrics")
_ENDPOINTS: Final = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
)


class OpenTelemetry:
    """Reports events to OpenTelemetry: pass it to a runner, or to `observing`, as an observer.

    Without providers it uses the global ones; without an SDK it costs next to nothing. The text of prompts, replies,
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
        self._content = content
        self._mask = mask = Mask.of_environment(secrets)
        self._traced = tracer_provider is not None
        self._measured = meter_provider is not None
        tracer = trace.get_tracer(names.SCOPE, tracer_provider=tracer_provider)
        self._spans = Spans(tracer, mask, content=content)
        self._measures = Measures(metrics.get_meter(names.SCOPE, meter_provider=meter_provider), mask)

    def __call__(self, event: Event, /) -> AbstractContextManager[object] | None:
        """Receive one event; the emitter keeps the span of a start event open."""
        if self._content or not isinstance(event, ReadFinished) or event.capture:
            self._mask.hear(event)
        if self._measured or _heard(metrics.get_meter_provider()):
            self._measures.take(event)
        return self._spans.take(event) if self._traced or _heard(trace.get_tracer_provider()) else None


def _heard(provider: object) -> bool:
    """Whether a global provider is a real one, not the placeholder of the API."""
    return not type(provider).__module__.startswith(_PLACEHOLDERS)


class Exporting:
    """An `OpenTelemetry` that exports over OTLP while the block runs, and flushes at its end."""

    def __init__(self, *, content: bool) -> None:
        from flujo_aros.host import instrument_agents
        from flujo_aros.telemetry import exporting

        exporting.quieten()
        self._send_the_rest = exporting.send_the_rest
        self._traces = exporting.traces_to_otlp()
        self._meters = exporting.meters_to_otlp()
        instrument_agents(self._traces, self._meters, content=content)
        self.observer = OpenTelemetry(self._traces, self._meters, content=content)

    def __enter__(self) -> OpenTelemetry:
        return self.observer

    def __exit__(self, *_raised: object) -> None:
        self._send_the_rest(self._traces, self._meters)


def from_environment(
    environment: Mapping[str, str] = os.environ, *, content: bool = False
) -> AbstractContextManager[OpenTelemetry] | None:
    """What the `OTEL_EXPORTER_OTLP_*` variables ask for: a context manager that gives the observer; None if nothing.

    Raises `UsageError` when they ask for it and the extra `otel` is not installed.
    """
    off = environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    if off or not any(environment.get(name) for name in _ENDPOINTS):
        return None
    try:
        return Exporting(content=content)
    except ModuleNotFoundError as error:
        message = f"OTEL_EXPORTER_OTLP_ENDPOINT is set, but {error.name} is missing: pip install 'flujo_aros[otel]'"
        raise UsageError(message) from error
