"""A journal in a temporary folder, and OpenTelemetry that exports to memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from flujo_aros import Journal, OpenTelemetry


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "runs.sqlite") as opened:
        yield opened


@dataclass
class Emitted:
    """What OpenTelemetry received."""

    exporter: InMemorySpanExporter = field(default_factory=InMemorySpanExporter)
    reader: InMemoryMetricReader = field(default_factory=InMemoryMetricReader)

    def __post_init__(self) -> None:
        self.traces = TracerProvider()
        self.traces.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.meters = MeterProvider([self.reader])

    def observer(self, **options: Any) -> OpenTelemetry:
        return OpenTelemetry(self.traces, self.meters, **options)

    @property
    def spans(self) -> dict[str, ReadableSpan]:
        """The last span of each name."""
        return {span.name: span for span in self.exporter.get_finished_spans()}

    def parent(self, name: str) -> str | None:
        """Return the name of a span's parent."""
        parent = self.spans[name].parent
        ids = {span.context.span_id: span.name for span in self.exporter.get_finished_spans()}
        return None if parent is None else ids[parent.span_id]

    def events(self, name: str) -> list[tuple[str, Mapping[str, Any]]]:
        return [(event.name, dict(event.attributes or {})) for event in self.spans[name].events]

    def points(self, metric: str) -> list[Any]:
        data = self.reader.get_metrics_data()
        scopes = [scope for each in data.resource_metrics for scope in each.scope_metrics] if data else []
        return [
            point
            for scope in scopes
            for each in scope.metrics
            if each.name == metric
            for point in each.data.data_points
        ]

    def everything(self) -> str:
        data = self.reader.get_metrics_data()
        return "\n".join(
            [*(span.to_json() for span in self.exporter.get_finished_spans()), data.to_json() if data else ""]
        )


@pytest.fixture
def emitted() -> Emitted:
    return Emitted()
