"""What observers cost: microseconds a step, and how fast a large journal answers.

    python benchmarks/telemetry.py overhead        # each observer against none
    python benchmarks/telemetry.py journal         # 100,000 steps: runs, show and health as commands

A step is told as eight events: step, one call, one rejected reading, one stage with its call and reading.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from flujo_aros.events import (
    AskFinished,
    AskStarted,
    Observer,
    ReadFinished,
    RunFinished,
    RunStarted,
    StageFinished,
    StageStarted,
    StepFinished,
    StepStarted,
    emit,
    observing,
    span,
)
from flujo_aros.outcome import Issue, Repair, Risk
from flujo_aros.telemetry.journal import Journal
from flujo_aros.telemetry.logs import Logging
from flujo_aros.telemetry.otel import OpenTelemetry
from flujo_aros.usage import Usage

STEPS = 2_000
RUNS, STEPS_EACH = 1_000, 100
USED = Usage(requests=1, input_tokens=400, output_tokens=90, cost=Decimal("0.0001"))
REPLY = '{"name": "Alma", "crew": "3", "notes": "' + "x" * 600 + '",}'
REPAIRS = (
    Repair("string-to-number", Risk.INFERRED, "$.crew", (25, 28), '"3"', "3"),
    Repair("trailing-comma", Risk.LOSSLESS, "$", (640, 641), ",", ""),
)
ISSUES = (Issue("$.crew", "type", "expected a whole number, found the text 'many'"),)


class Nowhere(SpanExporter):
    """Takes spans and forgets them."""

    def export(self, _spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return SpanExportResult.SUCCESS


def ask(stage: str) -> None:
    with span(AskStarted(stage=stage, attempt=1, model="openai:gpt-4o-mini", prompt="Which boat? " * 20)):
        emit(AskFinished(stage=stage, attempt=1, usage=USED, model="openai:gpt-4o-mini", seconds=0.4))


def step(run_id: str, name: str, *, repaired: bool) -> None:
    with span(StepStarted(run_id=run_id, name=name, kind="step")):
        ask("first")
        if repaired:
            emit(ReadFinished(stage="first", outcome="rejected", trust=None, reason="invalid", issues=ISSUES,
                              schema_hash="de22809fe0a3", text=REPLY))  # fmt: skip
            with span(StageStarted(stage="llm_repair", reason="invalid")):
                ask("llm_repair")
                emit(ReadFinished(stage="llm_repair", outcome="accepted", trust="inferred", reason=None,
                                  repairs=REPAIRS, schema_hash="de22809fe0a3", text=REPLY))  # fmt: skip
                emit(StageFinished(stage="llm_repair", outcome="accepted", reason=None, calls=1))
        else:
            emit(ReadFinished(stage="first", outcome="accepted", trust="inferred", reason=None, repairs=REPAIRS,
                              schema_hash="de22809fe0a3", text=REPLY))  # fmt: skip
        used = USED + USED if repaired else USED
        emit(StepFinished(run_id=run_id, name=name, kind="step", status="success", trust="inferred", reason=None,
                          usage=used, seconds=0.9))  # fmt: skip


def run(run_id: str, steps: int, *, every: int = 1) -> None:
    with span(RunStarted(run_id=run_id, pipeline="boats")):
        for number in range(steps):
            step(run_id, f"items/{number}/price", repaired=number % every == 0)
        used = Usage.total([USED] * steps)
        emit(RunFinished(run_id=run_id, pipeline="boats", status="completed", usage=used, seconds=steps * 0.9))


def microseconds(*observers: Observer, after: Callable[[], object] = lambda: None) -> tuple[float, float]:
    """Of a step: until it goes on, and CPU in all threads with everything written. The best of three."""
    best = (float("inf"), float("inf"))
    for attempt in range(3):
        with observing(*observers):
            wall, cpu = time.perf_counter(), time.process_time()
            run(f"run-{time.time_ns()}-{attempt}", STEPS)
            waited = time.perf_counter() - wall
            after()
            best = min(best, (waited / STEPS * 1e6, (time.process_time() - cpu) / STEPS * 1e6))
    return best


def overhead() -> None:
    print(f"{'observer':<34}{'µs a step':>12}{'CPU µs a step':>16}")

    def line(name: str, figures: tuple[float, float]) -> None:
        print(f"{name:<34}{figures[0] - none[0]:>12.0f}{figures[1] - none[1]:>16.0f}")

    none = microseconds()
    print(f"{'none (the events themselves)':<34}{none[0]:>12.0f}{none[1]:>16.0f}")
    line("OpenTelemetry without SDK", microseconds(OpenTelemetry()))
    batch = BatchSpanProcessor(Nowhere(), max_queue_size=50_000)
    traces = TracerProvider(shutdown_on_exit=False)
    traces.add_span_processor(batch)
    meters = MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False)
    line("OpenTelemetry, SDK, batch", microseconds(OpenTelemetry(traces, meters), after=traces.force_flush))
    traces.shutdown()
    meters.shutdown()
    line("Logging, silent", microseconds(Logging()))
    with tempfile.TemporaryDirectory() as folder, Journal(Path(folder) / "runs.sqlite") as journal:
        line("Journal, SQLite", microseconds(journal, after=lambda: journal.flush(60)))


def journal() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "runs.sqlite"
        started = time.perf_counter()
        with Journal(file) as told, observing(told):
            for number in range(RUNS):
                run(f"{number:08x}", STEPS_EACH, every=10)
                if number % 50 == 49:
                    told.flush(60)
            told.flush(60)
            dropped = told.dropped
        took, size = time.perf_counter() - started, file.stat().st_size
        print(
            f"{RUNS * STEPS_EACH:,} steps in {RUNS:,} runs: written in {took:.0f} s, {size / 1e6:.0f} MB, {dropped} lost"
        )
        environment = {**os.environ, "AROS_JOURNAL": str(file)}
        for command in (["--version"], ["runs"], ["show", "last"], ["health", "--since", "24h", "--trend", "6"]):
            times = []
            for _ in range(3):
                before = time.perf_counter()
                call = [sys.executable, "-m", "flujo_aros.cli", *command]
                subprocess.run(call, env=environment, check=True, capture_output=True)
                times.append(time.perf_counter() - before)
            print(f"aros {' '.join(command):<34}{min(times):>6.2f} s")


if __name__ == "__main__":
    {"overhead": overhead, "journal": journal}[sys.argv[1] if len(sys.argv) > 1 else "overhead"]()
