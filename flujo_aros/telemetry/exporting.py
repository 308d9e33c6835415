"""Sends spans and metrics over OTLP, configured by the `OTEL_*` variables. Needs the extra `otel`."""

from __future__ import annotations

import logging
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from flujo_aros.host import instrument_agents
from flujo_aros.telemetry.otel import OpenTelemetry

_PATIENCE: Final = 2.0
"""Seconds to wait for a collector that does not answer, unless `OTEL_EXPORTER_OTLP_TIMEOUT` says otherwise: a command
that has done its work should end.
"""


class Exporting:
    """An `OpenTelemetry` that exports over OTLP while the block runs, and flushes at its end."""

    def __init__(self, *, content: bool) -> None:
        # Only what was finally lost is logged, not each attempt to reach a collector.
        logging.getLogger("opentelemetry.exporter").setLevel(logging.ERROR)
        resource = _resource()
        self._traces = TracerProvider(resource=resource, shutdown_on_exit=False)
        if _wanted("OTEL_TRACES_EXPORTER"):
            self._traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(timeout=_patience())))
        wanted = _wanted("OTEL_METRICS_EXPORTER")
        readers = [PeriodicExportingMetricReader(OTLPMetricExporter(timeout=_patience()))] if wanted else []
        self._meters = MeterProvider(readers, resource=resource, shutdown_on_exit=False)
        instrument_agents(self._traces, self._meters, content=content)
        self.observer = OpenTelemetry(self._traces, self._meters, content=content)

    def __enter__(self) -> OpenTelemetry:
        return self.observer

    def __exit__(self, *_raised: object) -> None:
        """Send what is left of both concurrently, and shut down."""
        with ThreadPoolExecutor(2) as pool:
            pool.submit(self._traces.shutdown)
            pool.submit(self._meters.shutdown)


def _patience() -> float | None:
    told = any(name.startswith("OTEL_EXPORTER_OTLP_") and name.endswith("TIMEOUT") for name in os.environ)
    return None if told else _PATIENCE


def _wanted(variable: str) -> bool:
    return os.environ.get(variable, "otlp").strip().lower() != "none"


def _resource() -> Resource:
    """The service name: `OTEL_SERVICE_NAME`, or `aros`."""
    told = Resource.create()
    named = told.attributes.get(SERVICE_NAME, "unknown_service")
    return told.merge(Resource({SERVICE_NAME: "aros"})) if str(named).startswith("unknown_service") else told
