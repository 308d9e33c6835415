"""Every event identifies where it was emitted, so that observers need only the events."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from flujo_aros import Call, Journal, Parallel, Runner
from flujo_aros.events import (
    AskFinished,
    AskStarted,
    Event,
    ReadFinished,
    RunStarted,
    StageFinished,
    StageStarted,
    StepFinished,
    StepStarted,
)
from flujo_aros.telemetry.records import Story

from .conftest import Emitted
from .scripted import BAD, GOOD, MESSY, boat_step, pipeline


@pytest.fixture
def events() -> list[Event]:
    """Return the events of a run with parallel branches, a repair, and a stage that asks again."""
    seen: list[Event] = []
    branches = {"a": pipeline(boat_step("x", 0.01, BAD, 0.01, GOOD)), "b": pipeline(boat_step("y", 0.01, MESSY))}
    Runner(
        pipeline(Parallel("both", branches=branches), Call("count", function=str)), observers=[seen.append]
    ).run_sync("")
    return seen


def of(kind: type[Any], events: list[Event]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def test_every_event_has_the_run_the_step_and_the_time_it_was_emitted_in(events: list[Event]) -> None:
    run = of(RunStarted, events)[0]
    assert all(event.scope.run == run.scope.id and event.scope.run_id == run.run_id for event in events)
    assert all(event.scope.pipeline == "boats" for event in events)
    assert {event.scope.step_name for event in of(ReadFinished, events)} == {"both/a/x", "both/b/y"}
    times = [event.at for event in events]
    assert times[0] > 0
    assert times == sorted(times)


def test_both_events_of_a_pair_have_one_scope_inside_that_of_their_parent(events: list[Event]) -> None:
    for started, finished in ((StepStarted, StepFinished), (StageStarted, StageFinished), (AskStarted, AskFinished)):
        opened, closed = of(started, events), of(finished, events)
        assert {event.scope.id for event in opened} == {event.scope.id for event in closed}
        assert len({event.scope.id for event in opened}) == len(opened)
    steps = {event.name: event.scope for event in of(StepStarted, events)}
    assert steps["both/a/x"].steps == (steps["both"].id, steps["both/a"].id, steps["both/a/x"].id)
    assert steps["both/a/x"].parent == steps["both/a"].id
    assert steps["both"].parent == of(RunStarted, events)[0].scope.id


def test_a_reading_names_the_model_and_the_end_of_its_reply(events: list[Event]) -> None:
    calls = {event.scope.step_name: event for event in of(AskFinished, events)}
    for read in of(ReadFinished, events):
        assert read.model == calls[read.scope.step_name].model != ""
        assert read.finish_reason == "stop"


def test_a_stage_that_ended_still_knows_why_it_began(events: list[Event]) -> None:
    (stage,) = of(StageFinished, events)
    assert (stage.stage, stage.because, stage.outcome) == ("llm_repair", "invalid", "accepted")
    assert stage.schema_hash == of(ReadFinished, events)[0].schema_hash


def test_a_journal_filled_after_the_run_equals_a_live_one(tmp_path: Path) -> None:
    seen: list[Event] = []
    with Journal(tmp_path / "live.sqlite") as live, Journal(tmp_path / "later.sqlite") as later:
        branches = {"a": pipeline(boat_step("x", BAD, GOOD)), "b": pipeline(boat_step("y", MESSY))}
        Runner(
            pipeline(Parallel("both", branches=branches), Call("count", function=str)), observers=[live, seen.append]
        ).run_sync("")
        for event in seen:
            later(event)
        assert list(facts(later.story())) == list(facts(live.story()))


def facts(story: Story) -> Iterator[object]:
    """Return a story without ids, timestamps and durations."""
    yield story.run.status, story.run.usage, story.run.seconds
    for chapter in story.chapters:
        step = chapter.step
        assert step is not None
        yield step.name, step.status, step.trust, step.input, step.output, step.usage
        yield [(ask.stage, ask.model, ask.prompt, ask.usage, ask.finish_reason) for ask in chapter.asks]
        yield [(read.stage, read.model, read.text, read.issues, len(read.repairs)) for read in chapter.readings]
        yield [(stage.stage, stage.because, stage.outcome, stage.schema_hash, stage.model) for stage in chapter.stages]


@pytest.mark.parametrize("metric", ["aros.steps", "aros.readings", "aros.repairs", "aros.stages", "aros.calls"])
def test_metrics_computed_after_the_run_equal_live_metrics(metric: str) -> None:
    seen: list[Event] = []
    live, later = Emitted(), Emitted()
    listener: Callable[[Event], object] = live.observer()
    Runner(pipeline(boat_step("x", BAD, MESSY)), observers=[listener, seen.append]).run_sync("")
    observer = later.observer()
    for event in seen:
        observer(event)
    assert counted(later, metric) == counted(live, metric) != []


def counted(emitted: Emitted, metric: str) -> list[tuple[dict[str, Any], float]]:
    return [(dict(point.attributes), point.value) for point in emitted.points(metric)]
