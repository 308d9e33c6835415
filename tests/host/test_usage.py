"""The usage of each call is reported where it was made, and adds up, however a run ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, AgentRunResultEvent, PromptedOutput
from pydantic_ai.exceptions import ModelHTTPError, UsageLimitExceeded
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage, UsageLimits

from flujo_aros import AgentSpec, Aros, Ladder, Output, OutputError, Usage, observing
from flujo_aros.events import AgentFinished, AskFinished, Event, LiveEvent
from flujo_aros.host import Run, recording, run_agent
from flujo_aros.testing import ScriptedModel

WAYS = ["run", "stream", "events"]


class Item(BaseModel):
    n: int


def said(text: str, tokens: int) -> ModelResponse:
    return ModelResponse([TextPart(text)], usage=RequestUsage(input_tokens=tokens, output_tokens=7))


class Heard:
    """The events about the calls of one run, as observers received them."""

    def __init__(self) -> None:
        self.asks: list[AskFinished] = []
        self.runs: list[AgentFinished] = []

    def __call__(self, event: Event) -> None:
        if isinstance(event, AskFinished):
            self.asks.append(event)
        elif isinstance(event, AgentFinished):
            self.runs.append(event)

    @property
    def first(self) -> Usage:
        """Return the usage of the agent's own call, which ends last if a block follows its stream."""
        return next(ask.usage for ask in self.asks if ask.stage == "first")

    @property
    def total(self) -> Usage:
        return Usage.total(ask.usage for ask in self.asks)


async def asked(way: str, agent: Agent[None, Any], limits: UsageLimits | None = None) -> Any:
    """Return pydantic-ai's own counts for a run."""
    if way == "run":
        return (await agent.run("Go.", usage_limits=limits)).usage
    if way == "stream":
        async with agent.run_stream("Go.", usage_limits=limits) as stream:
            await stream.get_output()
            return stream.usage
    result: Any = None
    async with agent.run_stream_events("Go.", usage_limits=limits) as events:
        async for event in events:
            result = event.result if isinstance(event, AgentRunResultEvent) else result
    return result.usage


def scripted(*texts: str, then: str | None = None) -> Agent[None, Any]:
    model = ScriptedModel(*(said(text, 100 + at) for at, text in enumerate(texts)), then=then)
    return Agent(model, output_type=PromptedOutput(Item), capabilities=[Aros()])


def by_stage(record: Run, first: Usage) -> Usage:
    return Usage.total([first, *(stage.usage for stage in record.stages)])


@pytest.mark.parametrize("way", WAYS)
def test_the_usage_of_stages_adds_up_to_the_usage_of_the_host(way: str) -> None:
    heard = Heard()
    with recording() as record, observing(heard):
        host = asyncio.run(asked(way, scripted('{"n": oops}', '{"n": 1}')))
    total = heard.total
    assert (total.requests, total.input_tokens, total.output_tokens) == (2, host.input_tokens, host.output_tokens)
    assert by_stage(record, heard.first) == total == heard.runs[0].usage


@pytest.mark.parametrize("way", WAYS)
def test_the_attempts_of_a_failure_add_up_to_its_usage(way: str) -> None:
    heard = Heard()
    with observing(heard), pytest.raises(OutputError) as caught:
        asyncio.run(asked(way, scripted("no", "none", "nothing", then="no")))
    error = caught.value
    assert error.attempts[0].usage.input_tokens > 0
    assert Usage.total(attempt.usage for attempt in error.attempts) == error.usage == heard.total == heard.runs[0].usage
    assert all(attempt.seconds > 0 for attempt in error.attempts if attempt.usage.requests)


@pytest.mark.parametrize("way", WAYS)
def test_reaching_a_limit_keeps_the_usage_so_far(way: str) -> None:
    heard = Heard()
    with recording() as record, observing(heard), pytest.raises(UsageLimitExceeded):
        asyncio.run(asked(way, scripted("no", "none", then="no"), UsageLimits(request_limit=1)))
    assert by_stage(record, heard.first) == heard.total == heard.runs[0].usage
    assert heard.total.requests == 1


@pytest.mark.parametrize("cut_in", ["first", "llm_repair"])
@pytest.mark.parametrize("shown", [False, True], ids=["whole", "live"])
def test_a_cancelled_run_reports_its_usage(cut_in: str, *, shown: bool) -> None:
    """The usage sink of a step and the observers agree, wherever the run was cancelled."""
    calls: list[str] = []

    async def stalls(at: int) -> None:
        if at == (0 if cut_in == "first" else 1):
            asyncio.current_task().cancel()  # type: ignore[union-attr]  # inside of a coroutine there is one
            await asyncio.sleep(0)

    async def reply(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        calls.append("whole")
        await stalls(len(calls) - 1)
        return said('{"n": oops}', 100)

    async def pieces(_messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str]:
        calls.append("live")
        yield '{"n": '
        await stalls(len(calls) - 1)
        yield "oops}"

    async def live(_event: LiveEvent) -> None:
        pass

    heard, sink = Heard(), list[Usage]()
    agent = Agent(FunctionModel(reply, stream_function=pieces))

    async def go() -> None:
        await run_agent(agent, "Go.", Output.json(Item), live=live if shown else None, usage_sink=sink.append)

    with observing(heard), pytest.raises(asyncio.CancelledError):
        asyncio.run(go())
    assert len(heard.asks) == len(calls) == (1 if cut_in == "first" else 2)
    assert sink == [heard.total]


@pytest.mark.parametrize("way", WAYS)
def test_a_block_appended_to_a_stream_is_counted(way: str) -> None:
    heard = Heard()
    model = ScriptedModel(said("On it.", 100), said('{"plan": "a"}', 130), then=None)
    agent = Agent(model, capabilities=[Aros(Output.block("plan"))])
    with recording() as record, observing(heard):
        host = asyncio.run(asked(way, agent))
    assert (heard.total.requests, heard.total.input_tokens) == (2, host.input_tokens)
    assert by_stage(record, heard.first) == heard.total


@pytest.mark.parametrize("in_blueprint", [False, True])
def test_a_stream_that_breaks_off_has_unmeasured_usage(in_blueprint: bool) -> None:
    async def pieces(_: list[ModelMessage], __: AgentInfo) -> AsyncIterator[str]:
        yield '{"n": '
        raise ModelHTTPError(500, "m", {"error": {"message": "overloaded"}})

    async def live(_: LiveEvent) -> None:
        """Ignore the chunks."""

    class Source:
        async def model(self, name: str) -> FunctionModel:
            return FunctionModel(stream_function=pieces)

    made = AgentSpec(model="local:x") if in_blueprint else Agent(FunctionModel(stream_function=pieces))
    heard = Heard()
    with observing(heard):
        run = asyncio.run(run_agent(made, "Go.", Output.json(Item), Ladder(stages=()), models=Source(), live=live))
    assert [ask.usage.unmeasured_requests for ask in heard.asks] == [1]
    assert (run.usage.requests, run.usage.unmeasured_requests) == (1, 1)


def test_an_agent_that_raises_is_reported_as_rejected_not_as_degraded_to_text() -> None:
    heard = Heard()
    agent = Agent(ScriptedModel(then="no idea"), output_type=Item, capabilities=[Aros()])
    with observing(heard), pytest.raises(OutputError) as failed:
        asyncio.run(agent.run("go"))
    assert [(run.outcome, run.trust, run.reason) for run in heard.runs] == [("rejected", None, "no_json")]
    assert str(failed.value) == "no value: no_json; tried: retry, degrade"
