"""Cached steps: equal inputs are not paid for twice, and untrusted values are not cached."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from flujo_aros import Accepted, Cached, Call, Human, Map, Pipeline, Runner, RunStatus, Step, Trust, UsageError
from flujo_aros.pipeline.control import CacheEntry, MemoryCache


class Counting:
    """A function that records its inputs."""

    def __init__(self, result: Any = None) -> None:
        self.given: list[Any] = []
        self.result = result

    def __call__(self, value: Any) -> Any:
        self.given.append(value)
        return {"of": value} if self.result is None else self.result


def test_the_same_input_runs_the_step_once():
    work = Counting()
    runner = Runner(Cached("c", Call("work", work)))
    outputs = [runner.run_sync(given).output for given in ("a", "a", "b")]
    assert outputs == [{"of": "a"}, {"of": "a"}, {"of": "b"}]
    assert work.given == ["a", "b"]


def test_a_value_from_the_cache_is_marked_and_has_no_attempts():
    runner = Runner(Cached("c", Call("work", Counting())))
    first, second = runner.run_sync("a"), runner.run_sync("a")
    assert [step.name for step in first.steps] == ["c", "c/work"]
    assert [step.name for step in second.steps] == ["c"]
    assert second.to_dict()["steps"][0]["origin"] == "cache"
    assert second.steps[0].attempts == 0


def test_only_inputs_that_the_step_reads_are_part_of_the_key():
    work = Counting()
    runner = Runner(Cached("c", Call("work", work, input="{{ context.topic }}")))
    for given, topic in (("a", "x"), ("b", "x"), ("b", "y")):
        runner.run_sync(given, {"topic": topic})
    assert work.given == ["x", "y"]


def test_the_model_is_not_asked_again_and_the_trust_is_unchanged():
    calls: list[int] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        calls.append(1)
        return ModelResponse([TextPart("{n: 3}")])

    runner = Runner(Cached("c", Step("ask", Agent(FunctionModel(answer)), dict[str, int])))
    first, second = runner.run_sync("x"), runner.run_sync("x")
    assert (first.output, second.output, len(calls)) == ({"n": 3}, {"n": 3}, 1)
    assert (second.steps[0].trust, second.usage.requests) == ("inferred", 0)


def test_a_failed_step_is_not_kept():
    tries: list[int] = []

    def flaky(value: Any) -> Any:
        tries.append(1)
        if len(tries) == 1:
            raise LookupError("not yet")
        return value

    runner = Runner(Cached("c", Call("work", flaky)))
    assert [runner.run_sync("a").status for _ in range(3)] == [
        RunStatus.FAILED,
        RunStatus.COMPLETED,
        RunStatus.COMPLETED,
    ]
    assert len(tries) == 2


def test_a_made_up_value_is_not_kept():
    work = Counting(Accepted("made up", Trust.SYNTHESIZED, "synthesize", (), ""))
    runner = Runner(Cached("c", Call("work", work)))
    runner.run_sync("a")
    runner.run_sync("a")
    assert len(work.given) == 2


def test_writes_to_the_context_are_repeated_from_the_cache():
    cached = Cached("c", Call("work", Counting(), sink_to="found.it"))
    runner = Runner(cached >> Call("after", str, input="{{ context.found.it.of }}"))
    assert [runner.run_sync("a").output for _ in range(2)] == ["a", "a"]


def test_a_kept_value_cannot_be_changed_from_outside():
    runner = Runner(Cached("c", Call("work", Counting())))
    runner.run_sync("a").output["of"] = "changed"
    runner.run_sync("a").output["of"] = "changed"
    assert runner.run_sync("a").output == {"of": "a"}


def test_a_value_that_cannot_be_copied_is_not_kept():
    work = Counting(result=threading.Lock())
    runner = Runner(Cached("c", Call("work", work)))
    runner.run_sync("a")
    assert runner.run_sync("a").status is RunStatus.COMPLETED
    assert len(work.given) == 2


def test_a_step_with_nested_steps_is_cached_as_one():
    work = Counting(result=1)
    each = Map("each", Pipeline([Call("work", work)], body=True), iterable_input="{{ input }}")
    runner = Runner(Cached("c", each))
    assert [runner.run_sync([1, 2]).output for _ in range(2)] == [[1, 1], [1, 1]]
    assert len(work.given) == 2


def test_items_of_a_map_share_the_cache():
    work = Counting()
    body = Pipeline([Cached("c", Call("work", work))], body=True)
    run = Runner(Map("each", body, iterable_input="{{ input }}", max_concurrency=1)).run_sync(["a", "b", "a"])
    assert run.output == [{"of": "a"}, {"of": "b"}, {"of": "a"}]
    assert work.given == ["a", "b"]


class Slow(Counting):
    """A slow function that fails for the first `failures` calls."""

    def __init__(self, failures: int = 0) -> None:
        super().__init__()
        self.failures = failures
        self.began = asyncio.Event()

    async def work(self, value: Any) -> Any:
        self.given.append(value)
        self.began.set()
        left = self.failures - len(self.given)
        await asyncio.sleep(0.01)
        if left >= 0:
            raise LookupError("not now")
        return {"of": value}


def test_items_that_ask_for_the_same_at_the_same_time_wait_for_one_of_them():
    slow = Slow()
    run = Runner(Map("each", Cached("c", Call("work", slow.work)), iterable_input="input")).run_sync(
        ["a", "a", "b", "a"]
    )
    assert run.output == [{"of": "a"}, {"of": "a"}, {"of": "b"}, {"of": "a"}]
    assert sorted(slow.given) == ["a", "b"]
    assert [step.name for step in run.steps if step.name.endswith("work")] == ["each/0/c/work", "each/2/c/work"]


def test_concurrent_runs_share_a_value_that_is_being_computed():
    slow = Slow()
    runner = Runner(Cached("c", Call("work", slow.work)))

    async def both() -> list[Any]:
        return [run.output for run in await asyncio.gather(runner.run("a"), runner.run("a"))]

    assert asyncio.run(both()) == asyncio.run(both()) == [{"of": "a"}] * 2
    assert slow.given == ["a"]


def test_who_waits_for_one_that_fails_runs_on_its_own():
    slow = Slow(failures=1)
    runner = Runner(Cached("c", Call("work", slow.work)))

    async def both() -> list[str]:
        return [run.status for run in await asyncio.gather(runner.run("a"), runner.run("a"))]

    assert asyncio.run(both()) == ["failed", "completed"]
    assert slow.given == ["a", "a"]


def test_who_waits_for_one_that_is_cancelled_runs_on_its_own():
    slow = Slow()
    runner = Runner(Cached("c", Call("work", slow.work)))

    async def one_of_two() -> Any:
        first, second = (asyncio.ensure_future(runner.run("a")) for _ in range(2))
        await slow.began.wait()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        return (await second).output

    assert asyncio.run(one_of_two()) == {"of": "a"}
    assert slow.given == ["a", "a"]


def test_a_custom_cache_may_be_shared():
    work, cache = Counting(), MemoryCache()
    for _ in range(2):
        Runner(Cached("c", Call("work", work), cache=cache)).run_sync("a")
    assert len(work.given) == 1


def test_the_memory_cache_evicts_the_least_recently_used_entry():
    cache, entry = MemoryCache(most=2), CacheEntry(Accepted(1, Trust.CLEAN, "first", (), ""))
    for key in ("a", "b", "a", "c"):
        if cache.get(key) is None:
            cache.put(key, entry)
    assert [key for key in "abc" if cache.get(key) is not None] == ["a", "c"]


def test_an_answer_of_a_person_cannot_be_cached():
    with pytest.raises(UsageError, match="a person's answer cannot be cached"):
        Cached("c", Human("ask"))
