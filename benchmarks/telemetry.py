"""Measure the cost of observers in microseconds per step, and the speed of queries on a large journal.

    python benchmarks/telemetry.py overhead        # each observer, compared with none
    python benchmarks/telemetry.py journal         # 100,000 steps: the commands runs, show and health

A plain step emits five events: the step, one call, and one reading with two repairs. A recovered step emits ten: the
first reading is rejected, and a stage with another call and another reading follows.
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
ISSUES = (Issue("$.crew", "type", "expected a whole number, found the string 'many'"),)


class Nowhere(SpanExporter):
    """Discards all spans."""

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
            step(run_id, f"items/{number}/price", repaired=number % every == every - 1)
        used = Usage.total([USED] * steps)
        emit(RunFinished(run_id=run_id, pipeline="boats", status="completed", usage=used, seconds=steps * 0.9))


def microseconds(*observers: Observer, every: int, after: Callable[[], object] = lambda: None) -> tuple[float, float]:
    """Return the CPU time of a step in its own thread and in total, including all writes; the best of five."""
    best = (float("inf"), float("inf"))
    for attempt in range(5):
        with observing(*observers):
            own, all_threads = time.thread_time(), time.process_time()
            run(f"run-{time.time_ns()}-{attempt}", STEPS, every=every)
            waited = time.thread_time() - own
            after()
            spent = time.process_time() - all_threads
        best = min(best, (waited / STEPS * 1e6, spent / STEPS * 1e6), key=lambda pair: pair[1])
    return best


def overhead() -> None:
    print(f"{'CPU µs per step':<30}{'plain':>8}{'recov.':>8}   of these in the run's own thread")
    none = [microseconds(every=every) for every in (STEPS + 1, 1)]
    print(f"{'none (only the events)':<30}{none[0][1]:>8.0f}{none[1][1]:>8.0f}")

    def line(name: str, *observers: Observer, after: Callable[[], object] = lambda: None) -> None:
        found = [microseconds(*observers, every=every, after=after) for every in (STEPS + 1, 1)]
        cells = [f"{each[1] - base[1]:>8.0f}" for each, base in zip(found, none, strict=True)]
        own = [f"{each[0] - base[0]:>8.0f}" for each, base in zip(found, none, strict=True)]
        print(f"{name:<30}{''.join(cells)}   {''.join(own)}")

    line("OpenTelemetry without SDK", OpenTelemetry())
    batch = BatchSpanProcessor(Nowhere(), max_queue_size=50_000)
    traces = TracerProvider(shutdown_on_exit=False)
    traces.add_span_processor(batch)
    meters = MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False)
    line("OpenTelemetry, SDK, batch", OpenTelemetry(traces, meters), after=traces.force_flush)
    traces.shutdown()
    meters.shutdown()
    line("Logging, silent", Logging())
    with tempfile.TemporaryDirectory() as folder, Journal(Path(folder) / "runs.sqlite") as emitted:
        line("Journal, SQLite", emitted, after=lambda: emitted.flush(60))


def journal() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "runs.sqlite"
        started = time.perf_counter()
        with Journal(file) as emitted, observing(emitted):
            for number in range(RUNS):
                run(f"{number:08x}", STEPS_EACH, every=10)
                if number % 50 == 49:
                    emitted.flush(60)
            emitted.flush(60)
            dropped = emitted.dropped
        took, size = time.perf_counter() - started, file.stat().st_size
        print(f"{RUNS * STEPS_EACH:,} steps, {RUNS:,} runs: {took:.0f} s, {size / 1e6:.0f} MB, {dropped} rows lost")
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
