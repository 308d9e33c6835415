"""Helpers for tests of nested steps: functions, a pipeline with every kind, and the invariants of a run."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from flujo_aros import (
    Branch,
    Call,
    Import,
    Loop,
    Map,
    Parallel,
    Pipeline,
    Runner,
    RunResult,
    RunStatus,
    StepStatus,
    Usage,
)
from flujo_aros.events import Event, RunFinished, RunStarted, StepFinished, StepStarted


def run(step: Any, given: Any = "four", context: Any = None) -> RunResult:
    return Runner(step).run_sync(given, context)


def call(name: str, function: Any = lambda value: value, **options: Any) -> Call:
    return Call(name, function=function, **options)


def const(name: str, value: Any, **options: Any) -> Call:
    return Call(name, function=lambda _: value, **options)


def names(result: RunResult) -> list[str]:
    return [step.name for step in result.steps]


def fail(value: Any) -> Any:
    raise LookupError(f"nothing about {value}")


async def slow(value: Any) -> Any:
    await asyncio.sleep(0.01)
    return value


async def forever(value: Any) -> Any:
    await asyncio.sleep(3600)


class Mine:
    """Counts the points that it passes, and raises an error at one of them."""

    def __init__(self, at: int = 0, what: BaseException | type[BaseException] | None = None) -> None:
        self.at = at
        self.what = what
        self.count = 0

    async def point(self) -> None:
        await asyncio.sleep(0)
        self.count += 1
        if self.count == self.at and self.what is not None:
            raise self.what

    async def step(self, value: Any) -> Any:
        await self.point()
        await self.point()
        return value


def every_kind(mine: Mine) -> Pipeline:
    """Return a pipeline with each kind of step, some of them nested."""

    def call(name: str, **options: Any) -> Call:
        return Call(name, function=mine.step, **options)

    child = Pipeline([call("c1"), call("c2", sink_to="seen")], name="child")
    return Pipeline(
        [
            call("first", sink_to="first"),
            Parallel("fan", {"a": [call("a1"), call("a2")], "b": call("b1")}, reduce="values"),
            Map("each", [call("m1")], iterable_input="previous_step", max_concurrency=2),
            Branch("route", {"true": call("yes"), "false": call("no")}, condition="len(previous_step) == 2"),
            Loop("again", call("turn"), max_loops=2),
            Import("sub", child, outputs={"seen": "seen"}),
            call("guarded", fallback=call("spare")),
        ],
        name="every kind",
    )


def check_invariants(result: RunResult, heard: list[Event]) -> None:
    """Check the invariants of a run: each started step settled once, and the status follows from the steps."""
    started = Counter(event.name for event in heard if isinstance(event, StepStarted))
    finished = Counter(event.name for event in heard if isinstance(event, StepFinished))
    assert started == finished
    assert set(started.values()) <= {1}
    shown = [step.name for step in result.steps]
    assert len(shown) == len(set(shown))
    assert {step.name for step in result.steps if step.status is not StepStatus.SKIPPED} == set(started)
    assert all(not step.nested for step in result.steps if step.status is StepStatus.SKIPPED)
    counting = [step for step in result.steps if step.counts_against]
    assert (result.status is RunStatus.COMPLETED) == (not counting)
    assert result.usage == Usage.total(event.usage for event in heard if isinstance(event, StepFinished))
    assert isinstance(heard[0], RunStarted)
    assert isinstance(heard[-1], RunFinished)
    assert heard[-1].status == result.status.value
