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

_PATIENCE: Final = 2.0
"""Seconds to wait for a collector that does not answer, unless `OTEL_EXPORTER_OTLP_TIMEOUT` says otherwise: a command
that has done its work should end.
"""


def traces_to_otlp() -> TracerProvider:
    """A provider whose spans are sent in batches."""
    provider = TracerProvider(resource=_resource(), shutdown_on_exit=False)
    if _wanted("OTEL_TRACES_EXPORTER"):
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(timeout=_patience())))
    return provider


def meters_to_otlp() -> MeterProvider:
    """A provider whose metrics are sent periodically and at the end."""
    readers = (
        [PeriodicExportingMetricReader(OTLPMetricExporter(timeout=_patience()))]
        if _wanted("OTEL_METRICS_EXPORTER")
        else []
    )
    return MeterProvider(readers, resource=_resource(), shutdown_on_exit=False)


def send_the_rest(traces: TracerProvider, meters: MeterProvider) -> None:
    """Send what is left of both concurrently, and shut down."""
    with ThreadPoolExecutor(2) as pool:
        pool.submit(traces.shutdown)
        pool.submit(meters.shutdown)


def quieten() -> None:
    """Log only what was finally lost, not each attempt to reach a collector."""
    logging.getLogger("opentelemetry.exporter").setLevel(logging.ERROR)


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
