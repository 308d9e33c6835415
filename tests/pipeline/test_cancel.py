"""Whatever ends a run, every started step settles once, and no task keeps running."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from flujo_aros import Call, Parallel, Runner, RunResult, RunStatus, StepStatus
from flujo_aros.events import Event, StepFinished, StepStarted
from flujo_aros.pipeline.ledger import PauseRun

from .kinds_lab import Mine, check_invariants, every_kind, forever

ENDS: dict[str, Callable[[], BaseException]] = {
    "an error": lambda: ValueError("broken"),
    "no memory": MemoryError,
    "cancellation": asyncio.CancelledError,
    "a pause": lambda: PauseRun("go on?"),
}
STATUS = {
    "an error": {RunStatus.FAILED, RunStatus.COMPLETED},  # completed where a fallback took over
    "no memory": {RunStatus.FAILED, RunStatus.COMPLETED},
    "cancellation": {RunStatus.CANCELLED},
    "a pause": {RunStatus.PAUSED},
}


def nobody_left() -> bool:
    return asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize("end", ENDS)
def test_any_error_at_any_await_of_any_kind_leaves_a_valid_ledger(end: str):
    """Fail at point 1, at point 2, and so on, until a run completes."""

    async def at(point: int) -> bool:
        heard: list[Event] = []
        ended: list[RunResult] = []
        mine = Mine(point, ENDS[end]())
        runner = Runner(every_kind(mine), observers=[heard.append], on_result=ended.append)
        with suppress(asyncio.CancelledError):
            await runner.run([1, 2])
        assert nobody_left()
        (result,) = ended
        check_invariants(result, heard)
        if mine.count >= point:
            assert result.status in STATUS[end]
        return mine.count >= point

    point = 1
    while asyncio.run(at(point)):
        point += 1
    assert point > 20


def test_cancelled_at_any_turn_of_the_loop_the_ledger_is_legal():
    async def after(turns: int) -> RunStatus:
        heard: list[Event] = []
        ended: list[RunResult] = []
        runner = Runner(every_kind(Mine()), observers=[heard.append], on_result=ended.append)
        task = asyncio.ensure_future(runner.run([1, 2]))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert nobody_left()
        if not ended:  # it had not begun
            return RunStatus.CANCELLED
        check_invariants(ended[0], heard)
        return ended[0].status

    seen = [asyncio.run(after(turns)) for turns in range(90)]
    assert set(seen) == {RunStatus.CANCELLED, RunStatus.COMPLETED}
    assert seen == sorted(seen)  # once late enough, always completed


def test_ctrl_c_in_a_branch_settles_everything_and_propagates():
    heard: list[Event] = []
    ended: list[RunResult] = []

    async def interrupt(_: Any) -> None:
        await asyncio.sleep(0)
        raise KeyboardInterrupt

    fan = Parallel("fan", {"a": Call("stop", function=interrupt), "b": Call("wait", function=forever)})
    with pytest.raises(KeyboardInterrupt):
        Runner(fan, observers=[heard.append], on_result=ended.append).run_sync()
    check_invariants(ended[0], heard)
    assert ended[0].status is RunStatus.CANCELLED


def test_a_cancelled_run_still_reports_its_finished_work():
    async def run() -> RunResult:
        ended: list[RunResult] = []
        pipeline = Call("count", function=len) >> Call("wait", function=forever)
        task = asyncio.ensure_future(Runner(pipeline, on_result=ended.append).run("four"))
        await asyncio.sleep(0.05)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        return ended[0]

    result = asyncio.run(run())
    assert [step.status for step in result.steps] == [StepStatus.SUCCESS, StepStatus.CANCELLED]
    assert result.step("count").value == 4
    assert result.to_dict()["error"]["step"] == "wait"


def test_a_step_cancelled_from_within_a_branch_cancels_the_run():
    async def give_up(_: Any) -> None:
        raise asyncio.CancelledError

    ended: list[RunResult] = []
    fan = Parallel("fan", {"a": Call("stop", function=give_up), "b": Call("wait", function=forever)})
    with pytest.raises(asyncio.CancelledError):
        Runner(fan, on_result=ended.append).run_sync()
    assert {step.status for step in ended[0].steps} == {StepStatus.CANCELLED}


@pytest.mark.parametrize("name", ["zero", "fan", "fan/a", "fan/a/one"])
@pytest.mark.parametrize("kind", [StepStarted, StepFinished])
def test_an_observer_that_raises_leaves_no_step_open_and_no_run_completed(name: str, kind: type):
    ended: list[RunResult] = []

    def observer(event: Event) -> None:
        if isinstance(event, kind) and event.name == name:
            raise RuntimeError("the disk is full")

    fan = Parallel("fan", {"a": Call("one", function=len), "b": Call("two", function=len)})
    with suppress(RuntimeError):
        Runner(Call("zero", function=str) >> fan, observers=[observer], on_result=ended.append).run_sync("x")
    assert ended[0].status is RunStatus.FAILED
