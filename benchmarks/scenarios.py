"""Run random pipelines against a faulty provider in virtual time, and check each run against the invariants.

    python -m benchmarks.scenarios --seeds 1000                       # seeds 0 to 999
    python -m benchmarks.scenarios --seeds 100000 --tally tally.json  # resumes after the last seed of the tally
    python -m benchmarks.scenarios --only 4711                        # one of them again, step by step

A scenario is a pipeline of agent steps with ladders, function steps, branches, loops, parallels and maps, with retries,
timeouts, fallbacks and limits. It may be streamed, or cancelled midway, and its model is a `FaultyModel`. Everything is
drawn from one seed. The run is recorded like a durable run, and must satisfy these invariants:

- `aros check` reports nothing: every step that started has settled once, and a *completed* run has every step;
- the run ends before its virtual deadline and leaves no task behind;
- every start event has one end event, and the usage is the sum over the steps and over all answered calls;
- an accepted value is the value that the provider meant, never a silently wrong one;
- the text that was streamed last is the text of the result.

Prints one JSON object. If an invariant is violated, prints the seeds and exits with code 1.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import RunContext

from flujo_aros import (
    Accepted,
    AgentSpec,
    Branch,
    Call,
    Loop,
    Map,
    Parallel,
    Pipeline,
    Processing,
    Runner,
    RunResult,
    Step,
    StepLimits,
    Trust,
    UsageError,
)
from flujo_aros.durable.handle import violations_in_rows
from flujo_aros.durable.recorder import Keep, RunRecording
from flujo_aros.durable.store import RunRow, Store
from flujo_aros.events import StepFinished, StepStarted, TextAppended, TextDelta, TextReplaced, observing
from flujo_aros.host.recorded import Record
from flujo_aros.pipeline.pause import as_saved
from flujo_aros.pipeline.results import StepStatus
from flujo_aros.pipeline.runner import RunTask
from flujo_aros.testing import FAULTS, FaultyModel, Hang, run_virtual

DEADLINE: Final = 30 * 86_400.0
"""Virtual seconds. The longest correct scenario waits for a few hundred calls of one hour each."""
HUGE: Final = 20_000
LADDERS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {},
    {"enforcement": "validate"},
    {"stages": ("retry",)},
    {"stages": ("resume", "llm_repair", "patch", "retry", "constrain", "degrade")},
    {"stages": ({"stage": "llm_repair", "attempts": 2}, "retry"), "max_calls": 3},
    {"deadline": 90.0},
    {"risk": "lossless"},
    {"risk": "lossy", "stages": ("retry", "salvage")},
)


class Item(BaseModel):
    """The output type of every agent step of a scenario."""

    name: str
    qty: int
    tags: list[str]


MEANT: Final = Item(name="pen", qty=3, tags=["red", "small"])


class Counted(WrapperModel):
    """Counts the calls that the provider has answered completely."""

    def __init__(self, wrapped: FaultyModel) -> None:
        super().__init__(wrapped)
        self.answered = 0

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        response = await self.wrapped.request(messages, model_settings, model_request_parameters)
        self.answered += 1
        return response

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        asked = self.wrapped.request_stream(messages, model_settings, model_request_parameters, run_context)
        async with asked as stream:
            yield stream
        self.answered += stream.finish_reason is not None

    async def model(self, _: str) -> Counted:
        """Return this model for every name."""
        return self


class RandomScenario:
    """A random pipeline, with the faults of its model, drawn from a seed."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(f"scenario {seed}")
        self.names = 0
        faults, rate = self._faults(), self.draw.choice([0.0, 0.2, 0.5, 0.9])
        self.model = Counted(FaultyModel(MEANT.model_dump(), seed=seed, faults=faults, rate=rate, huge=HUGE))
        self.pipeline = Pipeline(self.steps(depth=0), name=f"scenario-{seed}")
        self.streamed = self.draw.random() < 0.4
        self.cancel_at = self.draw.uniform(0, 120) if self.draw.random() < 0.1 else None
        self.limits = self.limit() if self.draw.random() < 0.1 else None
        self.live = self.draw.random() < 0.3

    def _faults(self) -> list[str]:
        names = [name for name in FAULTS if name != "cancelled"]
        if self.draw.random() < 0.15:
            names.append("cancelled")
        return self.draw.sample(names, self.draw.randint(1, len(names)))

    def name(self, kind: str) -> str:
        self.names += 1
        return f"{kind}{self.names}"

    def limit(self) -> StepLimits:
        draw = self.draw
        return draw.choice([StepLimits(max_requests=draw.randint(1, 6)), StepLimits(max_tokens=draw.randint(20, 2000))])

    def steps(self, depth: int) -> list[Any]:
        return [self.step(depth) for _ in range(self.draw.choice([1, 1, 2] if depth else [1, 2, 2, 3]))]

    def step(self, depth: int) -> Any:
        kinds: list[Callable[[int], Any]] = [self.ask, self.ask, self.ask, self.text, self.call]
        if depth < 2:
            kinds += [self.parallel, self.map, self.loop, self.branch][depth:]
        return self.draw.choice(kinds)(depth)

    def common(self, depth: int) -> dict[str, Any]:
        draw = self.draw
        options: dict[str, Any] = {}
        if draw.random() < 0.3:
            options["retries"] = draw.randint(1, 2)
        if draw.random() < 0.3:
            options["timeout"] = draw.choice([5.0, 60.0, 600.0, 4000.0])
        if draw.random() < 0.1:
            options["usage_limits"] = self.limit()
        if draw.random() < 0.2 and depth < 3:
            options["fallback"] = draw.choice([self.call, self.ask])(3)
        if draw.random() < 0.2:
            options["on_degraded"] = draw.choice(["accept", "fail"])
        return options

    def ask(self, depth: int) -> Step:
        draw = self.draw
        agent = AgentSpec(model="scripted:faulty", output_mode=draw.choice(["native", "prompted", "tool", "auto"]))
        processing = Processing(**draw.choice(LADDERS))
        return Step(
            self.name("ask"),
            agent=agent,
            contract=Item,
            input="Which item?",
            processing=processing,
            use_history=draw.random() < 0.1,
            **self.common(depth),
        )

    def text(self, depth: int) -> Step:
        return Step(self.name("text"), agent=AgentSpec(model="scripted:faulty"), input="Say it.", **self.common(depth))

    def call(self, depth: int) -> Call:
        seconds = self.draw.choice([0.0, 0.0, 1.0, 100.0])
        fails = self.draw.random() < 0.1

        async def wait(value: Any) -> Any:
            await asyncio.sleep(seconds)
            if fails:
                raise ValueError("a function that fails")
            return value if isinstance(value, (dict, str, int)) else str(value)

        def at_once(value: Any) -> str:
            return f"{type(value).__name__}"

        return Call(self.name("call"), function=at_once if self.draw.random() < 0.3 else wait, **self.common(depth))

    def parallel(self, depth: int) -> Parallel:
        branches = {f"b{number}": self.steps(depth + 1) for number in range(2)}
        failing = self.draw.choice(["propagate", "ignore"])
        return Parallel(
            self.name("parallel"),
            branches,
            on_branch_failure=failing,
            merge_strategy="overwrite",
            max_concurrency=self.draw.choice([None, 1, 2]),
            **self.common(depth),
        )

    def map(self, depth: int) -> Map:
        return Map(
            self.name("map"),
            self.steps(depth + 1),
            iterable_input="context.numbers",
            max_concurrency=self.draw.randint(1, 3),
            merge_strategy="overwrite",
            **self.common(depth),
        )

    def loop(self, depth: int) -> Loop:
        return Loop(
            self.name("loop"),
            self.steps(depth + 1),
            max_loops=self.draw.randint(1, 3),
            exit=self.draw.choice([None, "iteration > 1"]),
            on_max_loops="accept",
            **self.common(depth),
        )

    def branch(self, depth: int) -> Branch:
        branches = {"true": self.steps(depth + 1), "false": self.steps(depth + 1)}
        return Branch(self.name("branch"), branches, condition="len(context.numbers) > 1", **self.common(depth))


@dataclass
class Found:
    """The result of a scenario, and the invariants that it violates."""

    status: str = "?"
    wrong: list[str] = field(default_factory=list[str])
    tape: list[str | None] = field(default_factory=list[Any])
    trace: list[str] = field(default_factory=list[str])
    """The events, in order."""
    times: list[float] = field(default_factory=list[float])
    """The times of the events in virtual seconds; the rest of a wait before a retry follows the real clock."""
    shown: dict[str, str] = field(default_factory=dict[str, str])
    result: RunResult | None = None
    virtual: float = 0.0

    @property
    def facts(self) -> Any:
        """Return what is reproducible for a seed, unlike the order in which asyncio cancels parallel steps."""
        return self.status, self.tape, sorted(self.trace)


class RecordingEngine:
    """An engine that stores runs as `Durable` does, but executes them in this process and keeps its calls in memory."""

    def __init__(self, store: Store, *, live: bool) -> None:
        self.store = store
        self.live = live
        self.calls: dict[str, Record] = {}

    async def run(self, runner: Runner, task: RunTask) -> RunResult:
        """Execute a run and store it."""
        context = as_saved(task.shared.value, "the context")
        given = RunRow(
            run_id=task.run_id,
            pipeline=runner.pipeline.name,
            version="1",
            request="1",
            status="running",
            live=self.live,
            input=task.given,
            context=context,
        )
        with self.store.connection() as connection:
            self.store.add(connection, given)
        row = self.store.claim(task.run_id, 1, "here")
        assert row is not None
        recording = RunRecording(self.store, row, runner.pipeline, [], {}, partial(self.checkpoint, row))
        try:
            result = await runner.execute(task, recording)
        except asyncio.CancelledError:
            if task.result is not None:
                await asyncio.shield(recording.finish(task.result))
            raise
        await recording.finish(result)
        return result

    async def checkpoint(self, run: RunRow, key: str, make: Callable[[], Awaitable[Record]], keep: Keep) -> Record:
        """Store the record of a call."""
        record = self.calls[key] = await make()
        await keep(lambda starts: self.store.write(run.run_id, run.epoch, starts))
        return record

    async def submit(self, *_: Any, **__: Any) -> Any:
        """Raise an error: there are no queues."""
        raise UsageError("scenarios are run, not submitted")


def scenario(seed: int, store: Store) -> Found:
    """Run one scenario and check it against the invariants."""
    random.seed(seed)
    drawn, found = RandomScenario(seed), Found()
    engine = RecordingEngine(store, live=drawn.live)
    runner = Runner(drawn.pipeline, models=drawn.model, engine=engine, usage_limits=drawn.limits)
    run_id = f"{os.getpid()}-{seed}-{time.monotonic_ns()}"
    try:
        run_virtual(_execute(drawn, runner, run_id, found), deadline=DEADLINE)
    except Hang as hang:
        found.wrong.append(f"hang: {hang}")
    except Exception as error:  # noqa: BLE001 - any exception is a finding
        found.wrong.append(f"raised {type(error).__name__}: {error}")
    found.tape = [call.fault for call in _faulty(drawn).calls]
    row, steps = store.find(run_id), store.steps(run_id)
    if row is None:
        return found
    found.status = row.status
    offsets = [text.seq for text in store.texts(run_id)]
    found.wrong += violations_in_rows(row, steps, offsets, engine.calls)
    if row.ended is None:
        found.wrong.append(f"the run was left {row.status}")
    if found.result is not None:
        found.wrong += _violations(found.result, found, drawn, row.status)
    return found


def _faulty(drawn: RandomScenario) -> FaultyModel:
    assert isinstance(drawn.model.wrapped, FaultyModel)
    return drawn.model.wrapped


async def _execute(drawn: RandomScenario, runner: Runner, run_id: str, found: Found) -> None:
    """Run the pipeline, cancel it at the drawn time, and record the events."""
    loop = asyncio.get_running_loop()
    starts, ends = Counter[str](), Counter[str]()

    def observe(event: Any) -> None:
        if isinstance(event, (StepStarted, StepFinished)):
            status = event.status if isinstance(event, StepFinished) else "starts"
            (ends if isinstance(event, StepFinished) else starts)[event.name] += 1
            found.trace.append(f"{event.name} {status}")
            found.times.append(loop.time())

    async def go() -> None:
        context = {"numbers": [1, 2]}
        if not drawn.streamed:
            found.result = await runner.run("go", context, run_id=run_id)
            return
        async for each in runner.stream("go", context, run_id=run_id):
            if isinstance(each.event, TextReplaced) and each.step is not None:
                found.shown[each.step] = each.event.text
            elif isinstance(each.event, (TextDelta, TextAppended)) and each.step is not None:
                found.shown[each.step] = found.shown.get(each.step, "") + each.event.text
            elif isinstance(each.result, RunResult):
                found.result = each.result

    with observing(observe):
        running = asyncio.ensure_future(go())
        if drawn.cancel_at is not None:
            await asyncio.wait([running], timeout=drawn.cancel_at)
            running.cancel()
        with suppress(asyncio.CancelledError):
            await running
    found.virtual = loop.time()
    left = [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    if left:
        found.wrong.append(f"{len(left)} tasks were left behind: {left[:3]}")
    if starts != ends or any(count > 1 for count in ends.values()):
        found.wrong.append(f"starts and ends of steps differ: {starts - ends} {ends - starts}")


def _violations(result: RunResult, found: Found, drawn: RandomScenario, kept: str) -> list[str]:
    """Return the invariants that a result violates."""
    wrong: list[str] = []
    if result.status.value != kept:
        wrong.append(f"the run returned {result.status.value}, but {kept} was stored")
    made, answered = len(_faulty(drawn).calls), drawn.model.answered
    counted = result.usage.requests
    if not answered <= counted <= made:
        wrong.append(f"{made} calls were made, {answered} answered, but {counted} counted")
    for step in result.steps:
        outcome = step.outcome
        certain = isinstance(outcome, Accepted) and outcome.trust is not Trust.LOSSY
        if certain and isinstance(outcome.value, Item) and outcome.value != MEANT:
            wrong.append(f"step {step.name!r} accepted {outcome.value!r}")
        shown = found.shown.get(step.name)
        said = step.status is StepStatus.SUCCESS and isinstance(outcome, Accepted) and step.replaced is None
        if said and outcome is not None and shown is not None and shown != outcome.text:
            wrong.append(f"step {step.name!r} streamed {shown[:200]!r}, but returned {outcome.text[:200]!r}")
    return wrong


def sweep(seeds: range, seconds: float, store: Store, *, repeat_every: int = 100) -> dict[str, Any]:
    """Run scenarios one after another, some of them twice to check that they are reproducible."""
    statuses: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    broken: dict[str, list[str]] = {}
    done = calls = repeated = 0
    virtual, began = 0.0, time.monotonic()
    for seed in seeds:
        if time.monotonic() - began > seconds:
            break
        found = scenario(seed, store)
        if seed % repeat_every == 0:
            repeated += 1
            again = scenario(seed, store)
            if again.facts != found.facts:
                found.wrong.append("the same seed produced a different run")
        done += 1
        statuses[found.status] += 1
        calls += len(found.tape)
        faults.update(name for name in found.tape if name is not None)
        virtual += found.virtual
        if found.wrong:
            broken[str(seed)] = found.wrong
    return {
        "scenarios": done,
        "broken": broken,
        "statuses": dict(sorted(statuses.items())),
        "calls": calls,
        "faults": faults.total(),
        "repeated": repeated,
        "virtual_days": round(virtual / 86_400, 1),
    }


def _added(tally: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Return the sum of two sweeps."""
    if not tally:
        return found
    both = {key: tally[key] + found[key] for key in ("scenarios", "calls", "faults", "repeated")}
    statuses = dict(sorted((Counter(tally["statuses"]) + Counter(found["statuses"])).items()))
    days = round(tally["virtual_days"] + found["virtual_days"], 1)
    return {**both, "broken": tally["broken"] | found["broken"], "statuses": statuses, "virtual_days": days}


def shown(found: dict[str, Any]) -> str:
    """Return the line that is printed and quoted in the documentation."""
    return json.dumps({**found, "broken": len(found["broken"])})


def main() -> int:
    """Run the sweep and print the findings."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seeds", type=int, default=1000, help="number of scenarios")
    options.add_argument("--first", type=int, default=0, help="the first seed")
    options.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    options.add_argument("--tally", type=Path, help="file that accumulates the results; the next run resumes from it")
    options.add_argument("--only", type=int, metavar="SEED", help="run one scenario and print its events")
    given = options.parse_args()
    tally = json.loads(given.tally.read_text()) if given.tally is not None and given.tally.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        store = Store(f"sqlite:///{folder}/runs.sqlite")
        if given.only is not None:
            found = scenario(given.only, store)
            lines = [f"{at:12.3f}  {line}" for at, line in zip(found.times, found.trace, strict=True)]
            lines += [f"faults: {found.tape}", found.status, *(f"WRONG {each}" for each in found.wrong)]
            print("\n".join(lines))
            return 1 if found.wrong else 0
        first = given.first + tally.get("scenarios", 0)
        reported = _added(tally, sweep(range(first, given.first + given.seeds), given.seconds, store))
    if given.tally is not None:
        given.tally.write_text(json.dumps(reported))
    print(shown(reported))
    for seed, wrong in list(reported["broken"].items())[:20]:
        print(f"{seed}: {wrong[0]}", file=sys.stderr)
    return 1 if reported["broken"] else 0


if __name__ == "__main__":
    sys.exit(main())
