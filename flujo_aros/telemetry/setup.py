"""The observers of the command line: the journal, and OpenTelemetry if the environment configures it."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from flujo_aros.errors import UsageError
from flujo_aros.events import Observer
from flujo_aros.host import instrument_agents
from flujo_aros.recovery import Evidence
from flujo_aros.redaction import without_secrets
from flujo_aros.settings import DEFAULT_JOURNAL, OFF, Settings
from flujo_aros.telemetry.journal import file_of, open_journal
from flujo_aros.telemetry.otel import OpenTelemetry

_log: Final = logging.getLogger("flujo_aros.telemetry")
_PATIENCE: Final = 2.0
"""Seconds to wait for a collector that does not answer, so that a finished command still exits.

`OTEL_EXPORTER_OTLP_TIMEOUT` overrides it.
"""
_ENDPOINTS: Final = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
)
_EXPORTERS: Final = ("OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER")


def from_environment(
    environment: Mapping[str, str] = os.environ, *, content: bool = False
) -> AbstractContextManager[OpenTelemetry] | None:
    """Return a context manager that returns the observer configured by the `OTEL_*` variables, or None if there is
    none.

    Raises `UsageError` if one is configured and the `otel` extra is not installed.
    """
    off = environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    asking = [name for name in _ENDPOINTS if environment.get(name)]
    asking += [name for name in _EXPORTERS if "console" in _exporters(name, environment)]
    if off or not asking:
        return None
    try:
        return exporting(environment, content=content)
    except ModuleNotFoundError as error:
        message = f"{asking[0]} is set, but {error.name} is missing: pip install 'flujo_aros[otel]'"
        raise UsageError(message) from error


def exporting(environment: Mapping[str, str], *, content: bool) -> AbstractContextManager[OpenTelemetry]:
    """Return a context manager with an observer that sends spans and metrics over OTLP, or prints them on stderr, as
    the `OTEL_*` variables say. It flushes at the end of the block. Raises `ModuleNotFoundError` without the extra
    `otel`.
    """
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, MetricExporter, PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter

    has_timeout = any(name.startswith("OTEL_EXPORTER_OTLP_") and name.endswith("TIMEOUT") for name in environment)
    patience = None if has_timeout else _PATIENCE
    resource = Resource.create()
    if str(resource.attributes.get(SERVICE_NAME, "unknown_service")).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: "aros"}))
    traces = TracerProvider(resource=resource, shutdown_on_exit=False)
    of_traces, of_metrics = (_exporters(name, environment) for name in _EXPORTERS)
    if "otlp" in of_traces:
        traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(timeout=patience)))
    if "console" in of_traces:  # stdout is for the result
        traces.add_span_processor(BatchSpanProcessor(ConsoleSpanExporter(out=sys.stderr)))
    metrics: list[MetricExporter] = [OTLPMetricExporter(timeout=patience)] if "otlp" in of_metrics else []
    metrics += [ConsoleMetricExporter(out=sys.stderr)] if "console" in of_metrics else []
    readers = [PeriodicExportingMetricReader(each) for each in metrics]
    meters = MeterProvider(readers, resource=resource, shutdown_on_exit=False)
    instrument_agents(traces, meters, content=content)

    @contextmanager
    def sending() -> Generator[OpenTelemetry]:
        with _reporting_losses([environment[name] for name in _ENDPOINTS if environment.get(name)]):
            try:
                yield OpenTelemetry(traces, meters, content=content)
            finally:
                with ThreadPoolExecutor(2) as pool:  # sends the remaining data of both concurrently
                    pool.submit(traces.shutdown)
                    pool.submit(meters.shutdown)

    return sending()


@contextmanager
def _reporting_losses(endpoints: Sequence[str]) -> Generator[None]:
    """Replace the log lines of the exporters by a single line with the address, while the block runs."""
    theirs = logging.getLogger("opentelemetry.exporter")
    reporting = _Losses(" and ".join(dict.fromkeys(endpoints)))
    was = theirs.level, theirs.propagate
    theirs.setLevel(logging.ERROR)  # only data that is lost for good, not each failed attempt
    theirs.propagate = False
    theirs.addHandler(reporting)
    try:
        yield
    finally:
        theirs.removeHandler(reporting)
        theirs.level, theirs.propagate = was


class _Losses(logging.Handler):
    """Reports the first error of an exporter."""

    def __init__(self, endpoint: str) -> None:
        super().__init__()
        self._endpoint = endpoint
        self._reported = False

    def emit(self, record: logging.LogRecord) -> None:
        if not self._reported:
            self._reported = True
            _log.warning("telemetry was not sent to %s: %s", self._endpoint, without_secrets(record.getMessage()))


def _exporters(variable: str, environment: Mapping[str, str]) -> set[str]:
    """Return the exporters that a variable names: `otlp`, which needs an endpoint and is the default, and `console`."""
    named = {each.strip().lower() for each in environment.get(variable, "").split(",")} - {""} or {"otlp"}
    has_endpoint = any(environment.get(name) for name in _ENDPOINTS)
    return named if has_endpoint else named - {"otlp"}


@dataclass(frozen=True, slots=True)
class Listeners:
    """The observers configured by the settings and the environment."""

    observers: tuple[Observer, ...] = ()
    evidence: Callable[[], Evidence] | None = None
    """The statistics for adaptive ladders, from the journal."""
    new_journal: Path | None = None
    """The file of the journal, if it was just created."""


@contextmanager
def listening(settings: Settings) -> Generator[Listeners]:
    """Open the observers for the settings and the `OTEL_*` variables while the block runs. Raises `UsageError` if one
    is not available.
    """
    with ExitStack() as held:
        exporting = from_environment(content=settings.telemetry.content)
        file = None if settings.journal == OFF else file_of(settings.journal or DEFAULT_JOURNAL)
        new = file if file is not None and not file.exists() else None
        journal = held.enter_context(open_journal(settings.journal) or nullcontext(None))
        exported = held.enter_context(exporting or nullcontext(None))
        observers = tuple(each for each in (journal, exported) if each is not None)
        yield Listeners(observers) if journal is None else Listeners(observers, journal.evidence, new)
