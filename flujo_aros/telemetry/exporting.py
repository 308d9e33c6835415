"""Sends spans and metrics over OTLP, as the `OTEL_*` variables say. Needs the extra `otel`."""

from __future__ import annotations

import os

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor


def traces_to_otlp() -> TracerProvider:
    """A provider whose spans are sent in batches."""
    provider = TracerProvider(resource=_resource(), shutdown_on_exit=False)
    if _wanted("OTEL_TRACES_EXPORTER"):
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def meters_to_otlp() -> MeterProvider:
    """A provider whose metrics are sent now and then, and at the end."""
    readers = [PeriodicExportingMetricReader(OTLPMetricExporter())] if _wanted("OTEL_METRICS_EXPORTER") else []
    return MeterProvider(readers, resource=_resource(), shutdown_on_exit=False)


def _wanted(variable: str) -> bool:
    return os.environ.get(variable, "otlp").strip().lower() != "none"


def _resource() -> Resource:
    """Who sends: `OTEL_SERVICE_NAME`, else `aros`."""
    told = Resource.create()
    named = told.attributes.get(SERVICE_NAME, "unknown_service")
    return told.merge(Resource({SERVICE_NAME: "aros"})) if str(named).startswith("unknown_service") else told
