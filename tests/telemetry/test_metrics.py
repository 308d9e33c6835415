"""Metrics: the documented table matches the code, and the numbers are right."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from pydantic_ai.exceptions import ModelHTTPError

from flujo_aros import Aros, Call, Runner, Usage, observing
from flujo_aros.events import RunFinished, RunStarted, StepStarted, emit, span
from flujo_aros.telemetry.otel import METRICS

from .conftest import Emitted
from .scripted import BAD, GOOD, MESSY, boat_agent, boat_step, pipeline

PAGE = Path(__file__).parents[2] / "docs" / "telemetry.md"


def values(emitted: Emitted, metric: str, **labels: Any) -> float:
    found = [point for point in emitted.points(metric) if labels.items() <= dict(point.attributes).items()]
    return sum(getattr(point, "value", getattr(point, "sum", 0)) for point in found)


def test_every_metric_is_documented_with_its_unit_and_labels() -> None:
    page = PAGE.read_text(encoding="utf-8").partition("## Metrics")[2]
    rows = [line for line in page.splitlines() if line.startswith(("| `aros.", "| `agent."))]
    emitted = {row.split("`")[1]: [cell.strip() for cell in row.strip("|").split("|")] for row in rows}
    assert list(emitted) == [metric.name for metric in METRICS]
    for metric in METRICS:
        _, kind, unit, labels, *_ = emitted[metric.name]
        assert (kind, unit) == ("histogram" if metric.bounds else "counter", f"`{metric.unit}`")
        assert labels == ", ".join(f"`{label}`" for label in metric.labels)


def test_every_point_has_the_labels_of_the_table(emitted: Emitted) -> None:
    steps = (boat_step("a", BAD, MESSY), boat_step("b", ModelHTTPError(500, "m"), GOOD, GOOD, GOOD))
    Runner(pipeline(*steps), observers=[emitted.observer()]).run_sync("")
    seen = set()
    for metric in METRICS:
        for point in emitted.points(metric.name):
            seen.add(metric.name)
            assert set(point.attributes) == set(metric.labels), metric.name
    assert {metric.name for metric in METRICS} - seen <= {"aros.time_to_first_partial", "aros.cost", "aros.step.cost"}


def test_repairs_calls_tokens_and_trust_are_counted(emitted: Emitted) -> None:
    result = Runner(pipeline(boat_step("a", BAD, MESSY)), observers=[emitted.observer()]).run_sync("")
    usage = result.usage
    assert values(emitted, "aros.calls") == usage.requests == 2
    assert values(emitted, "agent.usage", direction="input") == usage.input_tokens
    assert values(emitted, "agent.usage", direction="output") == usage.output_tokens
    assert values(emitted, "aros.steps", status="success", trust="inferred") == 1
    assert values(emitted, "aros.stages", stage="llm_repair", outcome="accepted", because="invalid") == 1
    assert values(emitted, "aros.readings", stage="first", outcome="rejected", reason="invalid", model="model-a") == 1
    assert values(emitted, "aros.repairs", code="string-to-number", risk="inferred") == 1
    assert values(emitted, "aros.step.tokens", status="success") == usage.input_tokens + usage.output_tokens


def test_rounds_of_loops_and_maps_count_as_one_step(emitted: Emitted) -> None:
    with observing(emitted.observer()), span(RunStarted(run_id="r", pipeline="p")):
        for number in range(50):
            step = Call(f"items/{number}/price", function=len) if number < 0 else f"items/{number}/price"
            with span(StepStarted(run_id="r", name=str(step), kind="step")):
                emit(_finished(str(step)))
    assert {point.attributes["step"] for point in emitted.points("aros.steps")} == {"items/*/price"}


def test_a_completed_run_with_an_open_step_is_a_violation_of_the_gate(emitted: Emitted) -> None:
    with observing(emitted.observer()), span(RunStarted(run_id="r", pipeline="p")):
        with span(StepStarted(run_id="r", name="lost", kind="step")):
            pass
        emit(RunFinished(run_id="r", pipeline="p", status="completed", usage=Usage(), seconds=0.1))
    assert values(emitted, "aros.gate.violations", pipeline="p") == 1


def test_a_run_that_settles_every_step_reports_that_there_was_no_violation(emitted: Emitted) -> None:
    Runner(pipeline(boat_step("a", GOOD)), observers=[emitted.observer()]).run_sync("")
    assert [point.value for point in emitted.points("aros.gate.violations")] == [0]


def test_the_first_piece_of_a_streamed_call_is_timed_once(emitted: Emitted) -> None:
    async def stream() -> None:
        async with boat_agent(GOOD, capabilities=[Aros()]).run_stream("Which boat?") as reply:
            await reply.get_output()

    with observing(emitted.observer()):
        asyncio.run(stream())
    (point,) = emitted.points("aros.time_to_first_partial")
    assert (point.count, dict(point.attributes)) == (1, {"model": "model-boats"})


def _finished(name: str) -> Any:
    from flujo_aros.events import StepFinished

    return StepFinished(
        run_id="r", name=name, kind="step", status="success", trust="clean", reason=None, usage=Usage(), seconds=0.1
    )
