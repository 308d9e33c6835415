"""The usage is the same in the result, the journal and the spans, however a run ends."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError

from flujo_aros import Aros, Journal, Loop, OutputError, Parallel, Pipeline, Runner, RunResult, Step, Usage, observing
from flujo_aros.testing import ScriptedModel

from .conftest import Emitted
from .scripted import BAD, GOOD, MESSY, boat_agent, boat_step

REPLIES = st.sampled_from([GOOD, GOOD, MESSY, BAD, "no boat at all", '{"name": "Al', "", "!500"])
SCRIPTS = st.lists(st.lists(REPLIES, max_size=8), min_size=1, max_size=3)


def scripted(name: str, replies: list[str]) -> Any:
    script = [ModelHTTPError(500, "m") if reply == "!500" else reply for reply in replies]
    return boat_step(name, *script, *[GOOD] * 8)


def in_spans(emitted: Emitted) -> Usage:
    """Return the sum of the `agent.usage` events of all spans."""
    found = Usage()
    for span in emitted.exporter.get_finished_spans():
        for event in span.events:
            if event.name == "agent.usage":
                tags = dict(event.attributes or {})
                cost = Decimal(str(tags["cost_usd"])) if "cost_usd" in tags else None
                tokens = (tags["input_tokens"], tags["output_tokens"])
                found += Usage(tags["requests"], *tokens, cost, tags.get("unmeasured_requests", 0))
    return found


def in_asks(journal: Journal, run_id: str) -> Usage:
    return Usage.total(ask.usage for chapter in journal.story(run_id).chapters for ask in chapter.asks)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Journal]:
    """A journal shared by all examples, since opening one takes longer than most of them."""
    with Journal(tmp_path_factory.mktemp("usage") / "runs.sqlite") as journal:
        yield journal


def run_told(pipeline: Pipeline, journal: Journal) -> RunResult:
    emitted = Emitted()
    result = Runner(pipeline, observers=[journal, emitted.observer()]).run_sync("")
    story = journal.story(result.run_id)
    assert story.run.usage == result.usage
    assert in_asks(journal, result.run_id) == result.usage
    assert in_spans(emitted) == result.usage
    by_step = {chapter.name: chapter.step.usage for chapter in story.chapters if chapter.step}
    assert by_step == {step.name: step.usage for step in result.steps if step.status.value != "skipped"}
    return result


@settings(max_examples=12)
@given(scripts=SCRIPTS)
def test_usage_is_the_same_everywhere_for_any_replies(runs: Journal, scripts: list[list[str]]) -> None:
    run_told(Pipeline([scripted(f"s{number}", replies) for number, replies in enumerate(scripts)], name="any"), runs)


def test_usage_is_the_same_everywhere_for_parallel_branches(runs: Journal) -> None:
    branches = {"a": Pipeline([scripted("x", [BAD])]), "b": Pipeline([scripted("y", [MESSY])])}
    assert run_told(Pipeline([Parallel("both", branches=branches)], name="p"), runs).usage.requests == 3


def test_usage_is_the_same_everywhere_wherever_a_run_is_cancelled(journal: Journal) -> None:
    """Cancelled after each iteration of the event loop, until the run ends before it can be cancelled."""

    async def cancelled(pipeline: Pipeline, emitted: Emitted, steps: int) -> bool:
        run = asyncio.ensure_future(Runner(pipeline, observers=[journal, emitted.observer()]).run(""))
        for _ in range(steps):
            await asyncio.sleep(0)
        cancelled = run.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await run
        return cancelled

    known: set[str] = set()
    for steps in itertools.count():
        emitted = Emitted()
        # each call takes a step of the loop, so that one can be in progress when its run ends
        pipeline = Pipeline([boat_step("a", 0, BAD, 0, GOOD), boat_step("b", 0, MESSY)], name="slow")
        ongoing = asyncio.run(cancelled(pipeline, emitted, steps))
        for run in journal.runs(limit=1):
            if run.run_id not in known:  # the latest, if it had begun
                known.add(run.run_id)
                assert run.status in ("cancelled", "completed")
                assert run.usage == in_asks(journal, run.run_id) == in_spans(emitted)
        if not ongoing:
            break
    assert len(known) > 20


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("replies", [[GOOD], [BAD, GOOD], [BAD] * 12], ids=["good", "mended", "refused"])
def test_usage_of_an_agent_alone_is_the_same_everywhere(
    journal: Journal, emitted: Emitted, replies: list[str], *, streamed: bool
) -> None:
    agent = boat_agent(*replies, capabilities=[Aros()])

    async def ask() -> None:
        if streamed:
            async with agent.run_stream("Which boat?") as reply:
                await reply.get_output()
        else:
            await agent.run("Which boat?")

    mine = emitted.traces.get_tracer("mine").start_as_current_span("mine")
    with observing(journal, emitted.observer()), mine, contextlib.suppress(OutputError):
        asyncio.run(ask())
    run = journal.runs()[0]
    assert run.usage.requests
    assert run.usage == in_asks(journal, run.run_id) == in_spans(emitted)


def test_usage_is_the_same_everywhere_for_a_streamed_loop(tmp_path: Path) -> None:
    """With streamed repairs inside a loop, the journal and the result agree, and each call is counted once."""
    model = ScriptedModel("nothing here", "still nothing", '{"a": "x"}', then='{"a": 1}')
    body = Pipeline([Step("in", agent=Agent(model), contract=dict[str, int])])
    results: list[RunResult] = []

    async def stream(runner: Runner) -> None:
        results.extend([event.result async for event in runner.stream("x") if event.result is not None])

    with Journal(f"{tmp_path}/runs.sqlite") as journal:
        loop = Loop("lp", body, exit="previous_step.a == 1", max_loops=2)
        asyncio.run(stream(Runner(loop, journal=journal)))
        assert journal.runs(limit=1)[0].usage == results[0].usage
    assert results[0].usage.requests == model.calls
