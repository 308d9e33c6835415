"""Cancellation and errors at every await of caches, pauses, retries, timeouts, agents and streams."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, suppress
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from flujo_aros import (
    Cached,
    Call,
    Human,
    Import,
    Loop,
    Map,
    Parallel,
    PausedRun,
    Pipeline,
    Runner,
    RunResult,
    RunStatus,
    Step,
    StepLimits,
)
from flujo_aros.events import Event, RunStarted, StepFinished, StepStarted
from flujo_aros.pipeline.ledger import PauseRun

from .kinds_lab import Mine, check_invariants

NUMBER = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
ENDS: dict[str, Callable[[], BaseException]] = {
    "an error": lambda: ValueError("broken"),
    "a busy provider": lambda: ModelHTTPError(503, "m"),
    "a broken connection": lambda: ConnectionError("gone"),
    "cancellation": asyncio.CancelledError,
    "a pause": lambda: PauseRun("go on?"),
}


def every_option(mine: Mine) -> Pipeline:
    """Yield pipelines with each option and kind that `every_kind` lacks, whose agents are asked once or three times."""
    fresh = [True]

    async def unsure(value: Any) -> Any:
        if fresh.pop() if fresh else False:
            await mine.point()
            raise ConnectionError("the first time")
        return await mine.step(value)

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        await mine.point()
        return ModelResponse([TextPart('{"n": 1}' if "no idea" in str(messages) else "no idea")])

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        for piece in ("Sure: ", '{"n": ', "1}"):
            await mine.point()
            yield piece

    def agent(name: str, **options: Any) -> Step:
        return Step(name, Agent(FunctionModel(answer, stream_function=stream)), NUMBER, **options)

    def call(name: str, **options: Any) -> Call:
        return Call(name, function=mine.step, **options)

    async def judged(value: Any) -> bool:
        await mine.point()
        return True

    return Pipeline(
        [
            Cached("kept", call("work")),
            Call("shaky", function=unsure, retries=2),
            Parallel("shaky fan", {"a": agent("s")}, retries=1),
            call("timed", timeout=60),
            agent("talk", checks=[judged], use_history=True, usage_limits=StepLimits(max_requests=5)),
            agent("guarded", fallback=agent("spare"), retries=1, timeout=60),
            Loop("turns", [agent("turn", use_history=True), Cached("kept", call("work"))], max_loops=2),
            Map("each", Import("sub", Pipeline([agent("in")])), iterable_input="input"),
            Human("ask", "Go on?"),
            Parallel("two", {"a": Human("left", "Left?"), "b": agent("right")}),
            call("last"),
        ],
        name="every option",
    )


async def no_wait(_: float) -> None:
    await asyncio.sleep(0)


async def to_the_end(mine: Mine, *, streamed: bool, turns: int | None = None) -> list[RunResult]:
    """Run, answer each pause, and check every result; a cancelled run is the last one."""
    ended: list[RunResult] = []
    heard: list[Event] = []
    runner = Runner(every_option(mine), observers=[heard.append], on_result=ended.append, sleep=no_wait)

    async def go() -> None:
        paused: PausedRun | None = None
        while paused is not None or not ended:
            if streamed:
                begun = runner.stream([1, 2], buffer=1) if paused is None else runner.stream_resumed(paused, "yes")
                async with aclosing(begun) as events:
                    async for _ in events:
                        pass
            else:
                await (runner.run([1, 2]) if paused is None else runner.resume(paused, "yes"))
            paused = ended[-1].paused if mine.what is None else None

    task = asyncio.ensure_future(go())
    for _ in range(turns or 0):
        await asyncio.sleep(0)
    if turns is not None:
        task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    # A bare agent of pydantic-ai that is cancelled in its first turns leaves a task of its own behind.
    ours = {each for each in asyncio.all_tasks() if "ScopedTask" not in repr(each.get_coro())}
    assert ours == {asyncio.current_task()}
    begins = [place for place, event in enumerate(heard) if isinstance(event, RunStarted)]
    parts = [heard[start:end] for start, end in zip(begins, [*begins[1:], None], strict=False)]
    for number, (result, part) in enumerate(zip(ended, parts, strict=True)):
        if number == 0:
            check_invariants(result, part)
        started, finished = names_of(StepStarted, part), names_of(StepFinished, part)
        assert started == finished
        assert set(started.values()) <= {1}
    return ended


def names_of(kind: type[StepStarted | StepFinished], heard: list[Event]) -> Counter[str]:
    return Counter(event.name for event in heard if isinstance(event, kind))


@pytest.mark.parametrize(
    ("end", "streamed"),
    [
        pytest.param(end, streamed, marks=[] if (end, streamed) == ("cancellation", True) else [pytest.mark.slow])
        for end in ENDS
        for streamed in (False, True)
    ],
)
def test_any_error_at_any_await_of_any_option_leaves_a_valid_ledger(end: str, streamed: bool) -> None:
    for point in range(1, 100):
        mine = Mine(point, ENDS[end]())
        (result,) = asyncio.run(to_the_end(mine, streamed=streamed))
        assert result.status is not RunStatus.CANCELLED or end == "cancellation"
        if mine.count < point:
            break
    assert point > 15


@pytest.mark.parametrize(("streamed", "stride"), [(False, 43), (True, 59)])
def test_cancelled_at_any_turn_of_the_loop_every_step_settles(streamed: bool, stride: int) -> None:
    seen: set[RunStatus] = set()
    for turns in range(0, 12 * stride, stride):
        seen |= {result.status for result in asyncio.run(to_the_end(Mine(), streamed=streamed, turns=turns))}
    assert seen >= {RunStatus.CANCELLED, RunStatus.PAUSED}


def test_without_changes_it_completes_after_two_questions() -> None:
    results = asyncio.run(to_the_end(Mine(), streamed=False))
    assert [result.status for result in results] == [*[RunStatus.PAUSED] * 2, RunStatus.COMPLETED]
