"""What a user sees of a reply while it is streamed, and the events of a step."""

import asyncio
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput, PromptedOutput, ToolOutput
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ModelHTTPError, UsageLimitExceeded
from pydantic_ai.messages import ModelRequest, ModelResponse, PartDeltaEvent, TextPart, UserPromptPart
from pydantic_ai.models.function import DeltaThinkingPart, DeltaToolCall, FunctionModel
from pydantic_ai.usage import UsageLimits
from pydantic_core import to_jsonable_python

from flujo_aros import Accepted, AgentSpec, Aros, Degraded, LimitReached, Reason, Rejected, current_settings, observing
from flujo_aros.contract import Output, compile_contract
from flujo_aros.events import (
    AskFinished,
    AskStarted,
    PartialValue,
    ReadFinished,
    StageSkipped,
    TextAppended,
    TextDelta,
    TextReplaced,
)
from flujo_aros.host import run_agent
from flujo_aros.recovery import Degrade, Ladder, LlmRepair, Resume, Retry

from .scripted import OneModel, Script, call


class Item(BaseModel):
    name: str
    qty: int


ITEM = compile_contract(Item)
GOOD = '{"name": "pen", "qty": 3}'
BAD = '{"name": "pen", "qty": "it is 3"}'
PEN = Item(name="pen", qty=3)
REPAIR = Ladder(stages=(LlmRepair(attempts=1),))
PLAN = Output.block("plan")


def run(script, contract=ITEM, ladder=REPAIR, agent=None, **options):
    source = OneModel(script.model)
    spec = options.pop("spec", {})
    made = agent or AgentSpec(model="local:test", **spec)
    return asyncio.run(run_agent(made, options.pop("prompt", "hello"), contract, ladder, models=source, **options))


def watched(script, contract=ITEM, ladder=REPAIR, **options):
    """Return the chunks that a listener received, and the run."""
    pieces = []

    async def live(piece):
        pieces.append(piece)

    return pieces, run(script, contract, ladder, live=live, **options)


def seen(pieces):
    """Return the text that a user sees in the end."""
    text = ""
    for piece in pieces:
        if isinstance(piece, TextDelta | TextAppended):
            text += piece.text
        elif isinstance(piece, TextReplaced):
            text = piece.text
    return text


# --- live -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["prompted", "native", "tool"])
def test_a_reply_is_shown_as_it_arrives_and_its_value_at_the_end(mode):
    pieces, result = watched(Script(call(GOOD) if mode == "tool" else GOOD), spec={"output_mode": mode})
    assert len([piece for piece in pieces if isinstance(piece, TextDelta)]) > 2
    assert seen(pieces) == GOOD
    assert pieces[-1] == PartialValue(value=PEN.model_dump(), final_paths=frozenset({"$"}))
    assert result.outcome.value == PEN


def test_the_value_of_an_agent_without_a_contract_is_shown_while_it_arrives():
    script = Script(call(GOOD))
    pieces, _ = watched(script, None, None, agent=Agent(script.model, output_type=Item))
    assert {"name": "pen"} in [piece.value for piece in pieces if isinstance(piece, PartialValue)]


def test_a_reply_that_is_repaired_later_is_replaced_openly():
    pieces, result = watched(Script(BAD, GOOD))
    assert [piece.text for piece in pieces if isinstance(piece, TextReplaced)] == [GOOD]
    assert seen(pieces) == result.outcome.text == GOOD


def test_a_value_of_another_text_than_was_shown_restarts():
    pieces, _ = watched(Script(BAD, GOOD))
    values = [piece for piece in pieces if isinstance(piece, PartialValue)]
    assert values[-1] == PartialValue(value=PEN.model_dump(), final_paths=frozenset({"$"}), restarted=True)
    assert not any(piece.restarted for piece in values[:1])


def test_a_block_is_appended_openly():
    pieces, result = watched(Script("On it.", '{"plan": "a"}'), PLAN, None)
    assert [piece.text for piece in pieces if isinstance(piece, TextAppended)] == ['\n\n{"plan": "a"}']
    assert seen(pieces) == result.outcome.text == 'On it.\n\n{"plan": "a"}'


def test_words_before_a_tool_call_are_not_an_answer():
    script = Script()

    async def stream(messages, info):
        script.requests.append(messages)
        if script.calls == 1:
            yield "I look it up."
            yield {1: DeltaToolCall("look", "{}", tool_call_id="c")}
        else:
            yield "The "
            yield "answer."

    agent = Agent(FunctionModel(stream_function=stream))
    agent.tool_plain(lambda: "found", name="look")
    pieces, result = watched(script, None, None, agent=agent)
    assert TextReplaced(text="") in pieces
    assert "{}" not in [piece.text for piece in pieces if isinstance(piece, TextDelta)], "nor is the call"
    assert seen(pieces) == result.outcome.value == "The answer."


def test_degraded_text_equals_the_text_shown():
    pieces, result = watched(Script(BAD), ladder=Ladder(stages=(Degrade(),)))
    assert isinstance(result.outcome, Degraded)
    assert seen(pieces) == result.outcome.text


def test_a_slow_listener_slows_the_model_down():
    script, order = Script(GOOD), []
    real = script.stream

    async def stream(messages, info):
        async for piece in real(messages, info):
            order.append("written")
            yield piece

    async def live(piece):
        await asyncio.sleep(0)
        order.append("shown")

    model = FunctionModel(stream_function=stream, profile=script.model.profile)
    asyncio.run(run_agent(AgentSpec(model="local:x"), "x", ITEM, models=OneModel(model), live=live))
    assert order[:4] != ["written"] * 4


def test_without_a_listener_nothing_is_streamed():
    script = Script(GOOD)
    script.stream = None
    assert run(script).outcome.value == PEN


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.sampled_from([GOOD, BAD, f"Sure! {GOOD} Bye", GOOD[:-1], "no", '{"plan": "a"}', '{"plan": 1}\nGo.', "Go."]),
        min_size=1,
        max_size=2,
    ),
    st.sampled_from([ITEM, PLAN]),
    st.sampled_from([REPAIR, None, Ladder(stages=(Degrade(),))]),
)
def test_the_shown_text_equals_the_returned_text(replies, contract, ladder):
    """The invariant of streams, with scripted replies: the chunks shown add up to the text of the outcome."""
    script = Script(*replies, *[ModelHTTPError(500, "m", "down")] * 8)
    pieces, result = watched(script, contract, ladder)
    if not isinstance(result.outcome, Rejected):
        assert seen(pieces) == result.outcome.text
    if isinstance(result.outcome, Accepted):
        assert pieces[-1].value == to_jsonable_python(result.outcome.value, by_alias=True)


# --- what a step may say ----------------------------------------------------------------------------------------------


def test_settings_of_the_step_win_over_those_of_the_agent():
    script = Script(GOOD)
    run(script, spec={"model_settings": {"temperature": 0.9, "seed": 1}}, settings={"temperature": 0.1})
    assert script.infos[0].model_settings == {"temperature": 0.1, "seed": 1}


def test_a_history_precedes_the_prompt():
    script = Script(GOOD)
    history = [ModelRequest(parts=[UserPromptPart("earlier")]), ModelResponse(parts=[TextPart("yes")])]
    run(script, history=history)
    assert script.prompt(0).index("earlier") < script.prompt(0).index("hello")


def test_limits_apply_before_each_call():
    script = Script(BAD, GOOD)
    with pytest.raises(UsageLimitExceeded):
        run(script, limits=UsageLimits(request_limit=1))
    assert script.calls == 1


class Allowed:
    """Allows a number of calls, and adds up their usage."""

    def __init__(self, calls):
        self.left = calls
        self.usages = []

    async def reserve(self):
        if self.left <= 0:
            message = "the run may not make another call"
            raise LimitReached(message)
        self.left -= 1
        return self.usages.append


@pytest.mark.parametrize("calls", [0, 1, 2, 3])
def test_an_allowance_is_checked_before_and_notified_after_every_call(calls):
    script, allowed = Script(BAD, GOOD), Allowed(calls)
    if calls == 0:
        with pytest.raises(LimitReached):
            run(script, allowance=allowed)
    else:
        result = run(script, allowance=allowed)
        assert isinstance(result.outcome, Accepted if calls > 1 else Rejected)
        assert sum(usage.requests for usage in allowed.usages) == result.usage.requests == script.calls
    assert script.calls <= calls


def test_an_allowance_receives_the_usage_of_streams_and_failures():
    allowed = Allowed(9)
    watched(Script(BAD, GOOD), allowance=allowed)
    assert len(allowed.usages) == 2
    failing = Allowed(9)
    result = run(Script(ModelHTTPError(500, "m", "down")), allowance=failing)
    assert result.outcome.reason is Reason.PROVIDER
    assert [usage.unmeasured_requests for usage in failing.usages] == [1]


def test_checks_send_a_value_up_the_ladder():
    script = Script('{"name": "pen", "qty": 9}', GOOD)
    result = run(
        script, checks=[lambda item: None if item.qty < 5 else f"qty is {item.qty}, more than 5"], ladder=Ladder()
    )
    assert result.outcome.value == PEN
    assert result.outcome.origin == "retry"
    assert "qty is 9, more than 5" in script.prompt(1)


def test_checks_also_apply_to_an_agent_with_its_own_aros():
    script = Script('{"name": "pen", "qty": 9}')
    agent = Agent(script.model, output_type=Item, capabilities=[Aros(Item, Ladder(stages=()))])
    script.replies = [call('{"name": "pen", "qty": 9}')]
    result = run(script, None, None, agent=agent, checks=[lambda item: "no" if item.qty > 5 else None])
    assert isinstance(result.outcome, Rejected)


def test_a_stage_may_name_another_model_of_the_source():
    script = Script(BAD, GOOD)
    source = OneModel(script.model)
    ladder = Ladder(stages=(LlmRepair(attempts=1, model="local:big"),))
    asyncio.run(run_agent(AgentSpec(model="local:small"), "x", ITEM, ladder, models=source))
    assert source.names == ["local:small", "local:big"]


# --- events -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("streamed", [False, True], ids=["run", "stream"])
def test_every_call_of_a_run_is_reported_including_the_agents_own(streamed):
    heard = []

    script = Script(call(BAD), GOOD)
    agent = Agent(script.model, output_type=Item, capabilities=[Aros(ladder=REPAIR)])

    async def reported():
        with observing(heard.append):
            if not streamed:
                return await agent.run("hello")
            async with agent.run_stream_events("hello") as events:
                async for _ in events:
                    pass
        return None

    asyncio.run(reported())
    started = [(e.stage, e.attempt) for e in heard if isinstance(e, AskStarted)]
    finished = [e for e in heard if isinstance(e, AskFinished)]
    assert started == [(e.stage, e.attempt) for e in finished] == [("first", 1), ("llm_repair", 1)]
    assert all(e.model and e.seconds >= 0 and e.usage.requests == 1 and e.fault is None for e in finished)
    assert [e.text for e in heard if isinstance(e, ReadFinished)] == [BAD, GOOD]
    assert next(e.prompt for e in heard if isinstance(e, AskStarted)) == "hello"


def test_a_failed_call_is_reported_with_its_error():
    heard = []
    with observing(heard.append):
        run(Script(ModelHTTPError(503, "m", "down")))
    (finished,) = [e for e in heard if isinstance(e, AskFinished)]
    assert "503" in finished.fault
    assert finished.usage.unmeasured_requests == 1


# --- a model that has lost its way ------------------------------------------------------------------------------------

BLANK = '{"name": "pen",' + " \n" * 50_000
AGAIN = '{"name": "' + "and then it said " * 5_000
STAGES = Ladder(stages=(Resume(how="continue"), Retry()))


class Endless(Script):
    """A reply that counts how many of its characters were consumed."""

    taken = 0

    async def stream(self, messages, info):
        async for piece in super().stream(messages, info):
            self.taken += 7
            yield piece


@pytest.mark.parametrize("mode", ["prompted", "native", "tool"])
@pytest.mark.parametrize(("endless", "code"), [(BLANK, "runaway_whitespace"), (AGAIN, "runaway_repetition")])
def test_a_runaway_model_is_stopped_and_the_outcome_reports_it(mode, endless, code):
    script = Endless(call(endless) if mode == "tool" else endless)
    _, result = watched(script, ladder=Ladder(stages=()), spec={"output_mode": mode})
    assert script.taken < 8_000
    assert result.outcome.reason is Reason.TRUNCATED
    assert result.outcome.issues[-1].code == code
    assert result.calls == result.usage.requests == 1
    assert result.usage.output_tokens > 0
    assert result.usage.unmeasured_requests == 1


@pytest.mark.parametrize("endless", [BLANK, AGAIN])
def test_the_ladder_continues_after_a_stopped_reply_without_resuming_it(endless):
    script, heard = Script(endless, GOOD), []
    with observing(heard.append):
        pieces, result = watched(script, ladder=STAGES)
    assert result.outcome.value == PEN
    assert result.outcome.origin == "retry"
    assert seen(pieces) == GOOD
    assert [event.stage for event in heard if isinstance(event, StageSkipped)] == ["resume"]
    assert "repeated the same text" in script.prompt(1) or "only whitespace" in script.prompt(1)
    assert len(script.prompt(1)) < 2_000


def test_endless_white_space_does_not_invalidate_a_complete_answer():
    script = Endless(GOOD + "\n" * 90_000)
    _, result = watched(script)
    assert script.taken < 8_000
    assert result.outcome.value == PEN
    assert result.outcome.trust.value == "clean"


def test_a_plain_text_is_never_stopped():
    words = "ha " * 4_000
    pieces, result = watched(Script(words), None, None)
    assert seen(pieces) == result.outcome.text == words
    assert result.outcome.kind == "degraded"  # all of it is shown, and the same words without end are no success


def test_a_stream_that_is_held_back_is_stopped_too():
    script = Endless(BLANK)
    agent = Agent(
        FunctionModel(stream_function=script.stream, profile=script.model.profile),
        output_type=Item,
        capabilities=[Aros(ladder=Ladder(stages=()), buffer_stream=True)],
    )
    _, result = watched(script, None, None, agent=agent)
    assert script.taken < 8_000
    assert result.outcome.issues[-1].code == "runaway_whitespace"


def test_a_model_that_loses_its_way_in_its_thinking_is_stopped_too():
    taken = 0

    async def stream(messages, info):
        nonlocal taken
        while taken < 50_000:
            taken += 20
            yield {0: DeltaThinkingPart(content="Wait, let me check. ")}
        yield GOOD

    model = FunctionModel(stream_function=stream, profile=Script().model.profile)
    _, result = watched(Script(), ladder=Ladder(stages=()), agent=Agent(model, output_type=NativeOutput(Item)))
    assert taken < 8_000
    assert result.outcome.reason is Reason.TRUNCATED
    assert [issue.code for issue in result.outcome.issues] == ["no_output", "runaway_repetition"]


def test_the_stop_can_be_switched_off(monkeypatch):
    monkeypatch.setenv("AROS_STREAMING__STOP_RUNAWAY", "false")
    current_settings.cache_clear()
    script = Endless(AGAIN + '"}')
    watched(script, ladder=Ladder(stages=()))
    current_settings.cache_clear()
    assert script.taken >= len(AGAIN)


@pytest.mark.parametrize("mode", [PromptedOutput, NativeOutput, ToolOutput])
@pytest.mark.parametrize(("doomed", "ends_early"), [("true", True), ("false", False)])
def test_a_stream_with_an_unrepairable_field_is_ended_early_if_requested(monkeypatch, mode, doomed, ends_early):
    text = '{"qty": "several", "name": "' + " ".join(map(str, range(9_000))) + '"}'
    taken = 0

    async def stream(messages, info):
        nonlocal taken
        if mode is ToolOutput:
            yield {0: DeltaToolCall("final_result", "", tool_call_id="c")}
        for taken in range(0, len(text), 50):
            piece = text[taken : taken + 50]
            yield {0: DeltaToolCall(json_args=piece)} if mode is ToolOutput else piece

    monkeypatch.setenv("AROS_STREAMING__STOP_DOOMED", doomed)
    current_settings.cache_clear()
    model = FunctionModel(stream_function=stream, profile=Script().model.profile)
    made = Agent(model, output_type=mode(Item), capabilities=[Aros(ladder=Ladder(stages=()))])
    _, result = watched(Script(), None, None, agent=made)
    current_settings.cache_clear()
    assert isinstance(result.outcome, Rejected)
    assert (taken < 1_000) is ends_early


@dataclass
class Listening(AbstractCapability[None]):
    """Receives the events of the agent graph."""

    heard: list[object]

    async def wrap_run_event_stream(self, ctx, *, stream):
        async for event in stream:
            self.heard.append(event)
            yield event


def test_a_capability_that_observes_an_agent_still_receives_a_shown_stream() -> None:
    script, heard = Script(GOOD), []
    agent = Agent(script.model, output_type=NativeOutput(Item), capabilities=[Listening(heard)])
    pieces, result = watched(script, agent=agent)
    assert result.outcome.value == PEN
    assert "".join(piece.text for piece in pieces if isinstance(piece, TextDelta)) == GOOD
    assert [event for event in heard if isinstance(event, PartDeltaEvent)]
