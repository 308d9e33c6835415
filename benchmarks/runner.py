"""Measure the cost of the runner: structured steps and streams, compared with plain pydantic-ai on a scripted model.

python benchmarks/runner.py                 # 1,000 steps, 1,000 streams
python benchmarks/runner.py --steps 200 --streams 100
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import platform
import statistics
import time
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from copy import copy
from functools import cache, partial
from typing import Any

from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.capabilities.abstract import WrapRunHandler
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import RunContext

from flujo_aros import AgentSpec, Aros
from flujo_aros.events import TextDelta
from flujo_aros.pipeline.model import Pipeline
from flujo_aros.pipeline.runner import Runner
from flujo_aros.pipeline.step import Step

CHUNKS = 50
BATCHES = 10


class Line(BaseModel):
    name: str
    amount: float


class Order(BaseModel):
    number: int
    title: str
    lines: list[Line]


ORDER = Order(number=7, title="Ten things", lines=[Line(name=f"thing {i}", amount=i + 0.5) for i in range(10)])
REPLY = ORDER.model_dump_json()
SIZE = -(-len(REPLY) // CHUNKS)


async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:  # noqa: ARG001 (their signature)
    return ModelResponse([TextPart(REPLY)], finish_reason="stop")


async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:  # noqa: ARG001 (their signature)
    for at in range(0, len(REPLY), SIZE):
        await asyncio.sleep(0)
        yield REPLY[at : at + SIZE]


def model() -> FunctionModel:
    profile = ModelProfile(supports_json_schema_output=True)
    return FunctionModel(answer, stream_function=stream, profile=profile)


def bare_agent() -> Agent[None, Order]:
    return Agent(model(), output_type=NativeOutput(Order))


def structured_step(name: str = "order", agent: Agent[None, Order] | AgentSpec | None = None) -> Step:
    """Return a step that sends the same request as `bare_steps`."""
    return Step(name, agent=agent or bare_agent(), contract=Order, input="{{ input }}")


SPEC = AgentSpec(model="local:scripted", output_mode="native")


@cache
def long_pipeline(count: int, *, of_spec: bool) -> Pipeline:
    agent = SPEC if of_spec else bare_agent()
    return Pipeline([structured_step(f"s{number}", agent) for number in range(count)])


async def bare_steps(count: int) -> None:
    agent = bare_agent()
    for _ in range(count):
        result = await agent.run("go")
        assert result.output == ORDER


class Nothing(AbstractCapability[None]):
    """A capability that does nothing, to measure the cost of pydantic-ai's hooks."""


class Idle(AbstractCapability[None]):
    """A capability that does nothing, but has the hooks of `Aros`: per-run state, a wrapped model, a wrapped run."""

    async def for_run(self, ctx: RunContext[None]) -> Idle:  # noqa: ARG002 (their signature)
        return copy(self)

    def get_wrapper_model(self, model: Model) -> Model:
        return WrapperModel(model)

    async def wrap_run(self, ctx: RunContext[None], *, handler: WrapRunHandler) -> AgentRunResult[Any]:  # noqa: ARG002
        return await handler()


async def with_idle_capability(count: int) -> None:
    agent = bare_agent()
    for _ in range(count):
        result = await agent.run("go", capabilities=[Idle()])
        assert result.output == ORDER


async def with_capability(count: int, capability: AbstractCapability[None]) -> None:
    agent: Agent[None, Order] = Agent(model(), output_type=NativeOutput(Order), capabilities=[capability])
    for _ in range(count):
        result = await agent.run("go")
        assert result.output == ORDER


async def single_runs(count: int, *capabilities: AbstractCapability[None]) -> None:
    agent: Agent[None, Order] = Agent(model(), output_type=NativeOutput(Order), capabilities=capabilities)
    runner = Runner(structured_step(agent=agent))
    for _ in range(count):
        result = await runner.run("go")
        assert result.output == ORDER


class Scripted:
    """Provides the scripted model to every agent of a blueprint."""

    def __init__(self) -> None:
        self.made = model()

    async def model(self, name: str) -> Model:  # noqa: ARG002 (their signature)
        return self.made


async def single_runs_of_a_spec(count: int) -> None:
    runner = Runner(structured_step(agent=SPEC), models=Scripted())
    for _ in range(count):
        result = await runner.run("go")
        assert result.output == ORDER


async def one_pipeline(count: int, *, of_spec: bool = False) -> None:
    result = await Runner(long_pipeline(count, of_spec=of_spec), models=Scripted()).run("go")
    assert result.output == ORDER


async def cpu_of(work: Callable[[int], Awaitable[None]], count: int) -> float:
    gc.collect()
    began = time.process_time()
    await work(count)
    return time.process_time() - began


async def steps(count: int) -> None:
    """Time all variants in interleaved rounds, and print the table."""
    size = max(1, count // BATCHES)
    ways: dict[str, Callable[[int], Awaitable[None]]] = {
        "bare agent.run": bare_steps,
        "agent.run with an empty capability": partial(with_capability, capability=Nothing()),
        "agent.run with an idle capability of the same form": with_idle_capability,
        "agent.run with Aros": partial(with_capability, capability=Aros()),
        "Runner, one step, agent of a blueprint": single_runs_of_a_spec,
        "Runner, pipeline, agent of a blueprint": partial(one_pipeline, of_spec=True),
        "Runner, one step, own agent with Aros on it": lambda count: single_runs(count, Aros()),
        "Runner, one step, own agent without": single_runs,
        "Runner, pipeline, own agent without": one_pipeline,
    }
    for work in ways.values():
        await work(size)
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(BATCHES):
        for name, work in ways.items():
            spent[name].append(await cpu_of(work, size))
    base = statistics.median(spent["bare agent.run"])
    print(f"\n{BATCHES * size} structured steps, one after the other\n")
    print("| way | CPU per step | relative to bare |\n|---|---|---|")
    for name, seconds in spent.items():
        each = statistics.median(seconds)
        print(f"| {name} | {1000 * each / size:.2f} ms | {each / base:.2f} × |")


async def bare_stream(agent: Agent[None, Order], gate: asyncio.Event) -> int:
    seen = 0
    async with agent.run_stream("go") as run:
        await gate.wait()
        async for _ in run.stream_response(debounce_by=None):
            seen += 1
        assert await run.get_output() == ORDER
    return seen


async def runner_stream(runner: Runner, gate: asyncio.Event) -> int:
    seen, result = 0, None
    async with aclosing(runner.stream("go")) as events:
        async for event in events:
            if isinstance(event.event, TextDelta):
                if not seen:
                    await gate.wait()
                seen += 1
            result = event.result
    assert getattr(result, "output", None) == ORDER
    return seen


async def streams(count: int) -> None:
    print(f"\n{count} concurrent structured streams of {CHUNKS} chunks, {len(REPLY)} characters each\n")
    print("| way | memory per open stream | CPU per chunk |\n|---|---|---|")
    agent, own, direct = bare_agent(), Runner(structured_step()), Runner(structured_step(agent=SPEC), models=Scripted())
    ways: dict[str, Callable[[asyncio.Event], Awaitable[int]]] = {
        "bare run_stream": lambda gate: bare_stream(agent, gate),
        "Runner.stream, agent of a blueprint": lambda gate: runner_stream(direct, gate),
        "Runner.stream, own agent": lambda gate: runner_stream(own, gate),
    }
    figures: dict[str, tuple[float, float]] = {}
    for name, one in ways.items():
        open_gate = asyncio.Event()
        open_gate.set()
        await asyncio.gather(*[one(open_gate) for _ in range(5)])
        cpu = [await _stream_cpu(one, count)]
        memory = await _stream_memory(one, count)
        figures[name] = (memory, statistics.median(cpu))
        print(f"| {name} | {memory / 1024:.0f} KiB | {1e6 * figures[name][1]:.0f} µs |")
    (_, (bare_memory, bare_cpu)), *others = figures.items()
    for name, (memory, cpu) in others:
        print(f"| {name}, above bare | {(memory - bare_memory) / 1024:.0f} KiB | {1e6 * (cpu - bare_cpu):.0f} µs |")


async def _stream_cpu(one: Callable[[asyncio.Event], Awaitable[int]], count: int) -> float:
    gate = asyncio.Event()
    gate.set()
    gc.collect()
    began = time.process_time()
    seen = await asyncio.gather(*[one(gate) for _ in range(count)])
    return (time.process_time() - began) / max(1, len(seen) * CHUNKS)


async def _stream_memory(one: Callable[[asyncio.Event], Awaitable[int]], count: int) -> float:
    """Return the memory of each stream while all are open, in bytes."""
    gate = asyncio.Event()
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    tasks = [asyncio.ensure_future(one(gate)) for _ in range(count)]
    for _ in range(200):
        await asyncio.sleep(0)
    gc.collect()
    allocated = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    gate.set()
    await asyncio.gather(*tasks)
    return allocated / count


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--streams", type=int, default=1000)
    options = parser.parse_args()
    print(f"Python {platform.python_version()}, {platform.machine()}")
    await steps(options.steps)
    if options.streams:
        await streams(options.streams)


if __name__ == "__main__":
    asyncio.run(main())
