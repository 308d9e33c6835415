"""The streamed text of a reply with a block equals the returned text, even if the first reply is empty."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta

from flujo_aros import Accepted, Aros, Block, Output, Trust
from flujo_aros.events import TextAppended, TextDelta, TextReplaced
from flujo_aros.host import run_agent

from .matrix import Part, Replies

PLAN = Output.block("plan", ["next_step"])
BLOCK = '{"plan": "a", "next_step": "b"}'
EMPTY = '{"plan": "", "next_step": ""}'
FIRST = {
    "nothing": Part(""),
    "an empty text": Part("", blank=True),
    "whitespace": Part("  \n"),
    "thinking": Part("", thinking="hm"),
    "reasoning": Part("<think>hm</think>"),
    "prose": Part("On it."),
    "reasoning and prose": Part("<think>hm</think>On it."),
    "another object": Part('{"plan": null} On it.'),
    "a block": Part(f"{BLOCK} On it."),
}
Shown = tuple[str, str, int]


def model_of(first: str, second: str) -> Replies:
    return Replies([FIRST[first], *[Part(second)] * 3])


async def by_text(model: Replies, retries: int) -> Shown:
    async with Agent(model, capabilities=[Aros(PLAN)], retries=retries).run_stream("Go.") as stream:
        shown = "".join([piece async for piece in stream.stream_text(delta=True, debounce_by=None)])
        return shown, await stream.get_output(), model.calls


async def by_events(model: Replies, retries: int) -> Shown:
    shown, output = "", ""
    async with Agent(model, capabilities=[Aros(PLAN)], retries=retries).run_stream_events("Go.") as events:
        async for event in events:
            if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                shown = event.part.content
            elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                shown += event.delta.content_delta
            elif event.event_kind == "agent_run_result":
                output = event.result.output
                assert [m.text for m in event.result.all_messages() if isinstance(m, ModelResponse)][-1] == output
    return shown, output, model.calls


async def by_step(model: Replies, retries: int) -> Shown:
    shown = ""

    async def hear(event: Any) -> None:
        nonlocal shown
        if isinstance(event, TextReplaced):
            shown = event.text
        elif isinstance(event, (TextDelta, TextAppended)):
            shown += event.text

    run = await run_agent(Agent(model, retries=retries), "Go.", PLAN, live=hear)
    return shown, run.outcome.text, run.calls


@pytest.mark.parametrize("way", [by_text, by_events, by_step])
@pytest.mark.parametrize("retries", [0, 1])
@pytest.mark.parametrize("second", [f"{BLOCK}\nDone.", "never"], ids=["then a block", "then none"])
@pytest.mark.parametrize("first", FIRST)
def test_the_streamed_text_equals_the_returned_text(
    first: str, second: str, retries: int, way: Callable[[Replies, int], Coroutine[Any, Any, Shown]]
) -> None:
    shown, output, calls = asyncio.run(way(model_of(first, second), retries))
    assert shown == output
    assert (BLOCK if second != "never" or first == "a block" else EMPTY) in output
    assert calls <= (1 if first == "a block" else 2 + retries)
    assert output.count("On it.") == ("On it." in FIRST[first].text)


@pytest.mark.parametrize("first", ["an empty text", "whitespace", "reasoning"])
def test_without_shown_text_the_complete_second_reply_is_appended(first: str) -> None:
    """Including its prose, since no text was shown before."""
    shown, _, calls = asyncio.run(by_text(model_of(first, f"{BLOCK}\nDone."), 1))
    assert shown.strip().removeprefix("<think>hm</think>").strip() == f"{BLOCK}\nDone."
    assert calls == 2


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("first", ["nothing", "an empty text", "thinking"])
def test_an_empty_reply_is_retried_once_even_without_host_retries(first: str, live: bool) -> None:
    async def hear(_: object) -> None:
        return None

    for second, value in ((f"{BLOCK}\nDone.", Block({"plan": "a", "next_step": "b"}, "Done.")), ("no", None)):
        ran = run_agent(Agent(model_of(first, second), retries=0), "Go.", PLAN, live=hear if live else None)
        run = asyncio.run(ran)
        assert run.calls == 2
        assert isinstance(run.outcome, Accepted)
        assert run.outcome.value == (value or Block({"plan": "", "next_step": ""}, ""))
        assert (run.outcome.trust is Trust.SYNTHESIZED) == (value is None)
