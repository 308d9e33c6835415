"""For any pipeline, replies and end of a run: each call is reported once, and all reports show the same usage."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any, Literal, TypeAlias

from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.trace import ReadableSpan
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.models.function import FunctionModel

from flujo_aros import (
    Aros,
    Branch,
    Import,
    Journal,
    Ladder,
    Loop,
    Map,
    Parallel,
    Pipeline,
    Runner,
    RunResult,
    Step,
    Usage,
)
from flujo_aros.host import instrument_agents

from .conftest import Emitted
from .scripted import BAD, GOOD, MESSY, Boat, Script, model

Kind: TypeAlias = Literal["parallel", "map", "loop", "import", "branch", "fallback", "retries"]
PHASES = [Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink]  # to explain takes minutes
REPLIES = st.sampled_from([GOOD, GOOD, MESSY, BAD, BAD, "no boat at all", '{"name": "Al', "", "!500"])
LADDERS: Any = st.sampled_from(
    [
        None,
        {"stages": ["llm_repair", {"stage": "escalate", "model": "local:other", "attempts": 2}, "degrade"]},
        {"stages": ["patch", "retry", {"stage": "escalate", "model": "local:other"}], "max_calls": 4},
        {"stages": []},
    ]
)


@dataclass(frozen=True)
class Ask:
    """A step that asks a model; it follows a script, and then answers correctly."""

    replies: tuple[str, ...]
    ladder: dict[str, Any] | None


@dataclass(frozen=True)
class Around:
    """A step with nested steps."""

    kind: Kind
    inside: tuple[Plan, ...]


Plan: TypeAlias = Ask | Around
ASKS = st.builds(Ask, st.lists(REPLIES, max_size=6).map(tuple), LADDERS)
AROUND: Any = st.sampled_from(["parallel", "map", "loop", "import", "branch", "fallback", "retries"])
PLANS: Any = st.recursive(
    ASKS, lambda inner: st.builds(Around, AROUND, st.lists(inner, min_size=1, max_size=2).map(tuple)), max_leaves=4
)


class Stopping(Script):
    """A script that hangs at one call of the run until the run is cancelled."""

    def __init__(self, replies: list[str | Exception], world: World) -> None:
        super().__init__(replies)
        self.world = world

    async def _next(self) -> str:
        self.world.calls += 1
        if self.world.stop_at is not None and self.world.calls > self.world.stop_at:
            self.world.stopped.set()
            await asyncio.sleep(3_600)
        return await super()._next()


@dataclass
class World:
    """The shared state of one run: the models, and the call at which everything stops."""

    stop_at: int | None
    calls: int = 0
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    names: Iterator[int] = field(default_factory=count)

    async def model(self, _name: str) -> Any:
        """Return the second model, which `escalate` uses."""
        return model(BAD, *[GOOD] * 40, name="other")

    def asking(self, name: str, plan: Ask, **options: Any) -> Step:
        script = [ModelHTTPError(500, "m") if reply == "!500" else reply for reply in plan.replies]
        asked = Stopping([*script, *[GOOD] * 60], self)
        scripted = FunctionModel(asked, stream_function=asked.stream, model_name=f"model-{name}")
        ladder = None if plan.ladder is None else Ladder.model_validate(plan.ladder)
        agent = Agent(scripted, output_type=Boat, name=name, capabilities=[Aros(ladder=ladder)])
        return Step(name, agent=agent, input="Which boat?", **{"on_degraded": "accept", **options})

    def step(self, plan: Plan) -> Any:
        name = f"s{next(self.names)}"
        if isinstance(plan, Ask):
            return self.asking(name, plan)
        if plan.kind == "fallback":
            return self.asking(name, Ask((BAD,) * 9, None), on_degraded="fail", fallback=self.step(plan.inside[0]))
        if plan.kind == "retries":
            return self.asking(name, Ask(("!500", BAD, "!500", "!500"), None), retries=2)
        body = Pipeline([self.step(each) for each in plan.inside], name="body", body=True)
        if plan.kind == "parallel":
            return Parallel(name, {"a": body, "b": Pipeline([self.step(Ask((BAD,), None))], name="b", body=True)})
        if plan.kind == "map":
            return Map(name, body, iterable_input="{{ context.numbers }}")
        if plan.kind == "branch":
            return Branch(name, {"true": body}, condition=lambda *_: True)
        if plan.kind == "loop":
            return Loop(name, body, max_loops=2)
        return Import(name, Pipeline(body.steps, name="imported"), outputs={})


async def run(plans: list[Plan], world: World, emitted: Emitted, journal: Journal, *, streamed: bool) -> RunResult:
    ended: list[RunResult] = []
    steps = Pipeline([world.step(plan) for plan in plans], name="any")
    runner = Runner(steps, observers=[journal, emitted.observer()], on_result=ended.append, models=world)

    async def go() -> None:
        if not streamed:
            await runner.run("", context={"numbers": [1, 2]})
            return
        async with aclosing(runner.stream("", context={"numbers": [1, 2]})) as events:
            async for _ in events:
                pass

    task = asyncio.create_task(go())
    stop = asyncio.create_task(world.stopped.wait())
    await asyncio.wait([task, stop], return_when=asyncio.FIRST_COMPLETED)
    stop.cancel()
    if world.stopped.is_set():
        task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    (result,) = ended
    return result


def in_spans(spans: list[ReadableSpan]) -> Usage:
    found = Usage()
    events = [each for span in spans for each in span.events if each.name == "agent.usage"]
    for each in events:
        tags: dict[str, Any] = dict(each.attributes or {})
        cost = Decimal(str(tags["cost_usd"])) if "cost_usd" in tags else None
        tokens = (tags["input_tokens"], tags["output_tokens"])
        found += Usage(tags["requests"], *tokens, cost, tags.get("unmeasured_requests", 0))
    return found


def check_nesting(spans: list[ReadableSpan], run_name: str, *, timed: bool) -> None:
    """Check that every step is directly inside the one in its name, and every stage and agent inside a step."""
    by_id = {span.context.span_id: span for span in spans}
    steps = {span.name for span in spans if span.name.startswith("step ")}
    assert len(steps) == len([span for span in spans if span.name.startswith("step ")]), "each step has one span"
    for span in spans:
        parent = by_id[span.parent.span_id] if span.parent else None
        assert (parent is None) == (span.name == run_name)
        if parent is not None:
            assert parent.start_time <= span.start_time
            assert span.end_time <= parent.end_time or not timed
        if span.name.startswith("step "):
            parts = span.name.split("/")
            outer = ["/".join(parts[:size]) for size in range(len(parts) - 1, 0, -1)]
            expected = next((name for name in outer if name in steps), run_name)
            assert parent is not None
            assert parent.name == expected
        elif parent is not None:
            around = parent
            while not around.name.startswith("step "):
                assert around.parent is not None, f"{span.name} is in no step"
                around = by_id[around.parent.span_id]


@settings(max_examples=15, phases=PHASES, suppress_health_check=[HealthCheck.too_slow])
@given(
    plans=st.lists(PLANS, min_size=1, max_size=3),
    streamed=st.booleans(),
    stop_at=st.none() | st.integers(min_value=0, max_value=8),
)
def test_every_call_is_reported_once_and_in_its_place(plans: list[Plan], streamed: bool, stop_at: int | None) -> None:
    emitted = Emitted()
    instrument_agents(emitted.traces, emitted.meters, content=False)
    try:
        with tempfile.TemporaryDirectory() as folder, Journal(Path(folder) / "runs.sqlite") as journal:
            world = World(stop_at)
            result = asyncio.run(run(plans, world, emitted, journal, streamed=streamed))
            story = journal.story(result.run_id)
    finally:
        Agent.instrument_all(False)
    stages = {stage.stage for chapter in story.chapters for stage in chapter.stages if stage.outcome != "skipped"}
    for what in (result.status.value, *stages):
        event(what)
    spans = list(emitted.exporter.get_finished_spans())
    asks = Usage.total(ask.usage for chapter in story.chapters for ask in chapter.asks)
    assert story.run.usage == asks == in_spans(spans) == result.usage
    assert {each.name: each.step.usage for each in story.chapters if each.step and each.step.status != "skipped"} == {
        step.name: step.usage for step in result.steps if step.status.value != "skipped"
    }
    # A call that is cancelled, also by a failing branch beside it, ends a moment after its agent: so the host has it.
    check_nesting(spans, "invoke_workflow any", timed=result.status.value in ("completed", "degraded"))
    ours = [span for span in spans if span.instrumentation_scope and span.instrumentation_scope.name == "flujo_aros"]
    assert not [name for span in ours for name in span.attributes or {} if name.startswith("gen_ai.usage")]
    if result.status.value == "completed":
        chats = [dict(span.attributes or {}) for span in spans if span.name.startswith("chat ")]
        for way in ("input", "output"):
            counted = sum(chat.get(f"gen_ai.usage.{way}_tokens", 0) for chat in chats)
            assert counted == getattr(result.usage, f"{way}_tokens")
