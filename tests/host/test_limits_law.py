"""For any ladder, replies, contract and way to run: no call exceeds the limit, and the usage counts every call."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, Literal, TypeAlias, cast

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from pydantic_ai import Agent, AgentRunResultEvent, PromptedOutput
from pydantic_ai.exceptions import AgentRunError, ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.usage import RequestUsage, RunUsage, UsageLimits

from flujo_aros import (
    Aros,
    Ladder,
    Output,
    OutputError,
    Pipeline,
    Runner,
    RunResult,
    Step,
    StepLimits,
    Usage,
    observing,
)
from flujo_aros.contract import winner_in
from flujo_aros.events import AskFinished, Event, StageFinished
from flujo_aros.host import run_agent


class Item(BaseModel):
    name: str
    qty: int


PROMPT: Final = "Say which, as JSON; the answer between <r> and </r>."
GOOD: Final = '{"name": "pen", "qty": 3}'
TEXTS: Final = [
    '{"name": "pen", "qty": "it is 3"}',
    GOOD,
    '[{"name": "pen", "qty": 3}, {"name": "cup", "qty": "no"}]',
    "only prose",
    "",
    "CANNOT_REPAIR",
    '{"type": "object", "properties": {}}',
    f"<r>{GOOD}</r>",
    '{"plan": "go"} and so on',
    '{"kind": "verdict", "text": "Bo wins", "winner": "Bo"}',
    "I am sorry, but I cannot help with that.",
]
CONTRACTS: Final[dict[str, Any]] = {
    "json": Output.json(Item),
    "list": Output.json(list[Item]),
    "any": Output.json({}),
    "tagged": Output.tagged("r", Item),
    "text": Output.text("r"),
    "block": Output.block("plan"),
    "event": Output.event(["verdict"], ["winner"], checks=[winner_in(["Ann"])]),
}
STAGES: Final[list[dict[str, Any]]] = [
    {"stage": "resume"},
    {"stage": "llm_repair", "attempts": 2},
    {"stage": "patch", "attempts": 2},
    {"stage": "retry", "attempts": 2},
    {"stage": "constrain"},
    {"stage": "escalate", "model": "local:other", "attempts": 2},
    {"stage": "extract"},
    {"stage": "simplify"},
    {"stage": "salvage"},
    {"stage": "synthesize"},
    {"stage": "degrade"},
]
WAYS: Final = ("run_agent", "run_agent live", "run", "run_stream", "run_stream_events", "runner", "runner stream")
PHASES: Final = [Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink]
Said: TypeAlias = tuple[str, Literal["stop", "length", "error"]]


@dataclass
class Provider:
    """Answers for all models of a run, and records the usage of each call."""

    replies: list[Said]
    stop_at: int | None
    used: list[Usage] = field(default_factory=list[Usage])
    failed: Usage | None = None
    """What the attempts of a failure add up to."""
    stopped: asyncio.Event = field(default_factory=asyncio.Event)

    async def _next(self) -> tuple[str, Any]:
        at = len(self.used)
        self.used.append(Usage(requests=1, unmeasured_requests=1))
        if at == self.stop_at:
            self.stopped.set()
            await asyncio.sleep(3_600)
        text, end = self.replies[at] if at < len(self.replies) else ("no", "stop")
        if end == "error":
            raise ModelHTTPError(503, "m", "busy")
        return text, end

    async def answer(self, _messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        text, end = await self._next()
        spent = RequestUsage(input_tokens=100 + len(self.used), output_tokens=len(text) + 1)
        self.used[-1] = Usage(1, spent.input_tokens, spent.output_tokens)
        return ModelResponse(
            [TextPart(text)], usage=spent, finish_reason=end, model_name="gpt-4o", provider_name="openai"
        )

    async def stream(self, _messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str]:
        text, _ = await self._next()
        for at in range(0, len(text) or 1, 9):
            yield text[at : at + 9]

    def made(self, name: str) -> FunctionModel:
        profile = ModelProfile(supports_json_schema_output=True, supports_json_object_output=True)
        return FunctionModel(self.answer, stream_function=self.stream, model_name=name, profile=profile)

    async def model(self, name: str) -> Any:
        """Return the second model, which `escalate` uses."""
        return self.made(name)


@dataclass
class Heard:
    """The events that observers received."""

    asks: list[AskFinished] = field(default_factory=list[AskFinished])
    stages: list[StageFinished] = field(default_factory=list[StageFinished])

    def __call__(self, event: Event) -> None:
        if isinstance(event, AskFinished):
            self.asks.append(event)
        elif isinstance(event, StageFinished):
            self.stages.append(event)


@dataclass(frozen=True)
class Case:
    """One run."""

    way: str
    contract: str
    ladder: Ladder
    most: int | None


LADDERS: Any = st.builds(
    lambda stages, **limits: Ladder.model_validate({"stages": stages, **limits}),
    st.permutations([*STAGES, *STAGES[:8], *STAGES[:8]]).map(lambda order: order[:7]),
    max_calls=st.sampled_from([9, 3, 2, 1, 0]),
    max_stages=st.sampled_from([9, 9, 3, 1, 0]),
    max_cost=st.sampled_from([None] * 7 + ["0.0000001", "0"]),
    deadline=st.sampled_from([None] * 7 + [0]),
)
CASES = st.builds(
    Case, st.sampled_from(WAYS), st.sampled_from(sorted(CONTRACTS)), LADDERS, st.sampled_from([None, None, 4, 3, 2])
)
REPLIES = st.lists(
    st.tuples(st.sampled_from(TEXTS), st.sampled_from(["stop"] * 6 + ["length", "error"])),
    min_size=1,
    max_size=8,
)


Emitted: TypeAlias = list[Usage | RunUsage]
"""What a run itself says that it has used: one, unless it is broken off where nothing observes it."""


async def run(case: Case, provider: Provider, reported: Emitted) -> None:
    """Run the case."""
    contract, limits = CONTRACTS[case.contract], None if case.most is None else UsageLimits(request_limit=case.most)
    model = provider.made("first")
    if case.way.startswith("runner"):
        await _by_runner(case, provider, model, reported)
    elif case.way.startswith("run_agent"):
        agent: Any = Agent(model)
        live = None if case.way == "run_agent" else _unheard
        options: dict[str, Any] = {"models": provider, "live": live, "limits": limits}
        ended = await run_agent(agent, PROMPT, contract, case.ladder, usage_sink=reported.append, **options)
        assert reported == [ended.usage]
        assert ended.calls == ended.usage.requests
        assert Usage.total(stage.usage for stage in ended.stages).requests == sum(each.calls for each in ended.stages)
    else:
        output = PromptedOutput(Item) if case.contract == "json" else contract.as_output()
        agent = Agent(model, output_type=output, capabilities=[Aros(ladder=case.ladder)])
        try:
            reported.append(await _by_agent(case.way, agent, limits))
        except OutputError as error:
            assert error.usage is not None
            reported.append(error.usage)
            provider.failed = Usage.total(attempt.usage for attempt in error.attempts)


async def _by_agent(way: str, agent: Any, limits: UsageLimits | None) -> RunUsage:
    """Return pydantic-ai's own counts, which do not include failed calls."""
    if way == "run":
        return cast("RunUsage", (await agent.run(PROMPT, usage_limits=limits)).usage)
    if way == "run_stream":
        async with agent.run_stream(PROMPT, usage_limits=limits) as stream:
            await stream.get_output()
            return cast("RunUsage", stream.usage)
    result: Any = None
    async with agent.run_stream_events(PROMPT, usage_limits=limits) as events:
        async for event in events:
            result = event.result if isinstance(event, AgentRunResultEvent) else result
    return cast("RunUsage", result.usage)


async def _by_runner(case: Case, provider: Provider, model: Any, reported: Emitted) -> None:
    ended: list[RunResult] = []
    limits = None if case.most is None else StepLimits(max_requests=case.most)
    agent: Any = Agent(model, capabilities=[Aros(ladder=case.ladder)])
    step = Step("s", agent=agent, contract=CONTRACTS[case.contract], input=PROMPT, usage_limits=limits)
    runner = Runner(Pipeline([step], name="p"), models=provider, on_result=ended.append)
    try:
        if case.way == "runner":
            await runner.run("")
        else:
            async with aclosing(runner.stream("")) as events:
                async for _ in events:
                    pass
    finally:
        (result,) = ended
        assert result.usage == result.steps[0].usage
        reported.append(result.usage)


async def _unheard(_event: Any) -> None:
    pass


async def until_stopped(case: Case, provider: Provider) -> Emitted:
    reported: Emitted = []
    task = asyncio.create_task(run(case, provider, reported))
    stop = asyncio.create_task(provider.stopped.wait())
    await asyncio.wait([task, stop], return_when=asyncio.FIRST_COMPLETED)
    stop.cancel()
    if provider.stopped.is_set():
        task.cancel()
    with contextlib.suppress(asyncio.CancelledError, AgentRunError):
        await task
    return reported


def bare(usage: Usage) -> tuple[int, int, int, int]:
    return usage.requests, usage.input_tokens, usage.output_tokens, usage.unmeasured_requests


@settings(max_examples=60, phases=PHASES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(CASES, REPLIES, st.sampled_from([None, None, None, 3, 2, 1, 0]))
def test_no_call_exceeds_the_limit_and_none_goes_unreported(
    case: Case, replies: list[Said], stop_at: int | None
) -> None:
    async def go() -> tuple[Provider, Heard, Emitted]:
        provider, heard = Provider(replies, stop_at), Heard()
        with observing(heard):
            return provider, heard, await until_stopped(case, provider)

    provider, heard, reported = asyncio.run(go())
    climbing = [ask for ask in heard.asks if ask.stage != "first"]
    assert len(climbing) <= case.ladder.max_calls
    assert not climbing or (case.ladder.max_cost != Decimal(0) and case.ladder.deadline != 0)
    assert case.most is None or len(provider.used) <= case.most
    assert len(heard.asks) == len(provider.used), "each call is reported once"
    assert sum(stage.calls for stage in heard.stages) >= len(climbing)
    if "stream" not in case.way and "live" not in case.way:
        assert bare(Usage.total(ask.usage for ask in heard.asks)) == bare(Usage.total(provider.used))
    total = Usage.total(ask.usage for ask in heard.asks)
    assert len(reported) == 1 or case.way in ("run", "run_stream", "run_stream_events")
    if len(heard.asks) - len(climbing) == 1:  # else the host has asked once more by itself
        assert provider.failed in (None, total)
    for usage in reported:
        if isinstance(usage, Usage):
            assert usage == total
        else:
            assert (usage.input_tokens, usage.output_tokens) == (total.input_tokens, total.output_tokens)


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("way", WAYS)
def test_a_call_that_is_still_open_counts(way: str, most: int) -> None:
    """A block is requested while its reply still streams; that call counts towards the limit."""

    async def go() -> Provider:
        provider = Provider([("only prose", "stop")], None)
        ladder = Ladder.model_validate({"stages": ["llm_repair", {"stage": "retry", "attempts": 5}]})
        await until_stopped(Case(way, "block", ladder, most), provider)
        return provider

    assert len(asyncio.run(go()).used) == most


async def provider_of(case: Case, *replies: Said) -> tuple[Provider, Heard]:
    provider, heard = Provider(list(replies), None), Heard()
    with observing(heard):
        await until_stopped(case, provider)
    return provider, heard


BROKEN: Final[Said] = ('{"name": "pen", "qty": "it is 3"}', "stop")
DOWN: Final[Said] = ("", "error")
ASKING: Final = Ladder.model_validate(
    {"stages": [{"stage": "llm_repair", "attempts": 4}, {"stage": "retry", "native": False}]}
)


@pytest.mark.parametrize("way", WAYS)
def test_a_repair_that_the_provider_failed_counts(way: str) -> None:
    """pydantic-ai does not count it."""
    provider, _ = asyncio.run(provider_of(Case(way, "json", ASKING, 3), BROKEN, DOWN))
    assert len(provider.used) == 3


@pytest.mark.parametrize("contract", ["json", "block"])
@pytest.mark.parametrize("way", WAYS)
def test_a_host_that_asks_once_more_gets_no_second_budget(way: str, contract: str) -> None:
    """pydantic-ai asks again after an empty reply, after recovery of the streamed text."""
    ladder = ASKING.model_copy(update={"max_calls": 2})
    _, heard = asyncio.run(provider_of(Case(way, contract, ladder, None), ("", "stop")))
    climbing = [ask for ask in heard.asks if ask.stage != "first"]
    assert len(climbing) == (1 if way == "run_stream" else 2)  # which asks once, and runs one stage


@pytest.mark.parametrize("way", ["run", "run_stream"])
def test_a_reply_truncated_before_it_began_is_an_attempt(way: str) -> None:
    provider, heard = asyncio.run(provider_of(Case(way, "json", ASKING, None), ("", "length")))
    assert provider.failed == Usage.total(ask.usage for ask in heard.asks)
