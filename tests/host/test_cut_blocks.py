"""A block whose prose was truncated is not a success: it is resumed or rejected, streamed or not."""

import asyncio
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError

from flujo_aros import Accepted, Aros, Block, Degraded, Ladder, Output, OutputError, Reason, Rejected, Trust, read
from flujo_aros.events import TextAppended, TextDelta, TextReplaced
from flujo_aros.host import AgentRun, run_agent
from flujo_aros.recovery import Retry, Synthesize

from .matrix import Part, Replies

PLAN = Output.block("plan", ["next_step"])
FIELDS = {"plan": "a", "next_step": "b"}
BLOCK = '{"plan": "a", "next_step": "b"}'
CUT = "Dear Ann, I hope this mail finds you well and that "
REST = "well and that the boat is ready."
WHOLE = "Dear Ann, I hope this mail finds you well and that the boat is ready."
ENDLESS = "Dear Ann, " + "a customer service, " * 300


def ran(*parts: Part, live: bool, ladder: Ladder | None = None, **settings: Any) -> tuple[AgentRun[Block], str]:
    shown = ""

    async def hear(event: Any) -> None:
        nonlocal shown
        if isinstance(event, TextReplaced):
            shown = event.text
        elif isinstance(event, (TextDelta, TextAppended)):
            shown += event.text

    agent = Agent(Replies(parts), retries=0)
    run = asyncio.run(run_agent(agent, "Go.", PLAN, ladder, live=hear if live else None, settings=settings))
    return run, shown


def reason_of(run: AgentRun[Block]) -> Reason | None:
    if isinstance(run.outcome, Degraded):
        return run.outcome.because.reason
    return run.outcome.reason if isinstance(run.outcome, Rejected) else None


@pytest.mark.parametrize("live", [False, True])
def test_prose_that_was_cut_is_resumed(live: bool) -> None:
    run, shown = ran(Part(f"{BLOCK}\n{CUT}", finish="length"), Part(REST), live=live)
    assert isinstance(run.outcome, Accepted)
    assert (run.outcome.value, run.outcome.origin, run.calls) == (Block(FIELDS, WHOLE), "resume", 2)
    assert shown == (f"{BLOCK}\n{WHOLE}" if live else "")


@pytest.mark.parametrize("live", [False, True])
def test_a_larger_budget_replaces_the_truncated_reply(live: bool) -> None:
    whole = f"{BLOCK}\nDear Ann, all is well."
    run, shown = ran(Part(f"{BLOCK}\n{CUT}", finish="length"), Part(whole), live=live, max_tokens=20)
    assert isinstance(run.outcome, Accepted)
    assert (run.outcome.value.prose, run.outcome.origin) == ("Dear Ann, all is well.", "resume")
    assert shown == (whole if live else "")


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("first", [f"{BLOCK}\n{CUT}", BLOCK, CUT, f'{{"plan": null}} {CUT}', '{"plan": "a", "nex'])
def test_prose_that_stays_cut_degrades_and_nothing_is_made_up(first: str, live: bool) -> None:
    run, shown = ran(Part(first, finish="length"), Part("and that", finish="length"), live=live)
    assert isinstance(run.outcome, Degraded)
    assert (reason_of(run), run.outcome.text, run.calls) == (Reason.TRUNCATED, first, 2)
    assert shown == (first if live else "")


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("finish", ["length", "stop"])
@pytest.mark.parametrize("first", [f"{BLOCK}\n{ENDLESS}", ENDLESS])
def test_prose_that_repeats_itself_to_the_end_is_not_a_success(first: str, finish: str, live: bool) -> None:
    run, _ = ran(Part(first, finish=finish), Part(first, finish=finish), live=live)
    assert reason_of(run) is Reason.TRUNCATED


@pytest.mark.parametrize("live", [False, True])
def test_a_retry_returns_a_complete_reply_and_no_block_for_the_truncated_one(live: bool) -> None:
    """The second reply replaces the first, whose block would hide that its prose was truncated."""
    ladder = Ladder(stages=(Retry(), Synthesize()), max_calls=1)
    first = Part(ENDLESS, finish="length")
    run, shown = ran(first, Part(f"{BLOCK}\n{WHOLE}"), live=live, ladder=ladder)
    assert isinstance(run.outcome, Accepted)
    assert run.outcome.value == Block(FIELDS, WHOLE)
    assert shown == (f"{BLOCK}\n{WHOLE}" if live else "")
    run, _ = ran(first, Part("no"), live=live, ladder=ladder)
    assert reason_of(run) is Reason.TRUNCATED


@pytest.mark.parametrize("live", [False, True])
def test_a_continuation_without_the_block_gets_one_after_all_of_the_prose(live: bool) -> None:
    run, shown = ran(Part(CUT, finish="length"), Part(REST), live=live)
    assert isinstance(run.outcome, Accepted)
    assert (run.outcome.value.prose, run.outcome.trust) == (WHOLE, Trust.SYNTHESIZED)
    assert WHOLE in shown or not live


@pytest.mark.parametrize("broken", [f"{BLOCK}\n{CUT}", CUT])
def test_prose_that_an_error_broke_off_is_not_a_success(broken: str) -> None:
    part = Part(f"{broken} and more", error=ModelHTTPError(503, "m"), shown=len(broken))
    run, shown = ran(part, part, live=True)
    assert isinstance(run.outcome, Degraded)
    assert (run.outcome.text, shown) == (broken, broken)


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("first", [CUT, f"{BLOCK}\n{CUT}"])
def test_no_block_is_made_up_before_prose_that_a_filter_has_cut(first: str, live: bool) -> None:
    run, _ = ran(Part(first, finish="content_filter"), live=live)
    assert reason_of(run) is Reason.REFUSED
    assert isinstance(run.outcome, Degraded)
    assert run.outcome.text == first


@pytest.mark.parametrize("live", [False, True])
def test_the_prose_of_a_made_up_block_is_the_same_in_a_stream(live: bool) -> None:
    run, _ = ran(Part("<think>hm</think>\nOn it. "), Part("no"), live=live)
    assert isinstance(run.outcome, Accepted)
    assert run.outcome.value.prose == "On it."


def test_the_host_gets_no_output_of_a_block_that_stays_cut() -> None:
    cut = [Part(f"{BLOCK}\n{CUT}", finish="length"), Part("and", finish="length")]

    async def streamed() -> str:
        async with Agent(Replies(cut), capabilities=[Aros(PLAN)]).run_stream("Go.") as stream:
            return await stream.get_output()

    with pytest.raises(OutputError) as streaming:
        asyncio.run(streamed())
    with pytest.raises(OutputError) as plain:
        asyncio.run(Agent(Replies(cut), capabilities=[Aros(PLAN)]).run("Go."))
    assert streaming.value.reason is plain.value.reason is Reason.TRUNCATED


def test_the_host_streams_the_rest_of_a_block_that_was_cut() -> None:
    async def streamed() -> tuple[str, str]:
        model = Replies([Part(f"{BLOCK}\n{CUT}", finish="length"), Part(REST)])
        async with Agent(model, capabilities=[Aros(PLAN)]).run_stream("Go.") as stream:
            shown = "".join([piece async for piece in stream.stream_text(delta=True, debounce_by=None)])
            return shown, await stream.get_output()

    shown, output = asyncio.run(streamed())
    assert shown == output == f"{BLOCK}\n{WHOLE}"


@pytest.mark.parametrize(
    ("text", "contract"),
    [
        (f"{BLOCK}\n{CUT}", PLAN),
        (BLOCK, PLAN),
        (CUT, Output.block("")),
        (CUT, Output.event(["npc.said"])),
        (CUT, {"type": "string"}),
        (f"<note>{CUT}", Output.text("note")),
    ],
)
def test_words_that_were_cut_are_truncated_in_every_contract(text: str, contract: Any) -> None:
    outcome = read(text, contract, truncated=True)
    assert isinstance(outcome, Rejected)
    assert outcome.reason is Reason.TRUNCATED
