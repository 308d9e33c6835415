"""The direct path: agents without tools run with one request and one reading, without an agent graph."""

import asyncio

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import BaseModel
from pydantic_ai import Agent, PromptedOutput
from pydantic_ai.exceptions import ModelHTTPError, UsageLimitExceeded
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelRequest, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import DeltaThinkingPart, FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings, InstrumentedModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.usage import RequestUsage, UsageLimits

from flujo_aros import Accepted, AgentSpec, Aros, Reason, Rejected, UsageError, observing
from flujo_aros.contract import Output, compile_contract
from flujo_aros.events import AgentFinished, AgentStarted, AskFinished, ReadFinished, StageFinished, StageSkipped
from flujo_aros.host import redirect_calls, request_once, run_agent
from flujo_aros.testing import ScriptedModel


class Item(BaseModel):
    name: str
    qty: int


CONTRACTS = {
    "json": compile_contract(Item),
    "list": compile_contract(list[Item]),
    "tagged": Output.tagged("answer", Item),
    "text": Output.text("answer"),
    "block": Output.block("plan", ["owner"]),
    "event": Output.event(["say", "stop"], fallback="say"),
    "none": None,
}
REPLIES = (
    '{"name": "pen", "qty": 3}',
    '{"response": [{"name": "pen", "qty": 3}]}',
    "Sure! ```json\n{'name': 'pen', 'qty': '3',}\n```",
    '{"name": "pen", "qty": "it is 3"}',
    '<answer>{"name": "pen", "qty": 3}</answer>',
    '{"plan": "a", "owner": "b"} and so on',
    '{"kind": "say", "text": "hello there"}',
    "I would rather not say anything about pens today.",
    '{"name": "pen", "q',
    "",
    " \n",
)
PROMPT = "What is it? Write it between <answer> and </answer>."
ERROR = ModelHTTPError(
    400, "m", {"error": {"code": "json_validate_failed", "failed_generation": '{"name":"a","qty":1}'}}
)
scripts = st.lists(st.sampled_from([*REPLIES, ERROR]), min_size=6, max_size=6)


class Scripted:
    """Serves a model that gives these replies in order."""

    def __init__(self, replies, *, native: bool, instrumented: bool = False) -> None:
        self.replies, self.asked = [*replies], []
        profile = ModelProfile(supports_json_schema_output=native)
        made = FunctionModel(self.answer, stream_function=self.stream, profile=profile, model_name="m")
        self.made = InstrumentedModel(made) if instrumented else made

    async def model(self, name):
        return self.made

    def next(self, messages, info):
        last = messages[-1]
        assert isinstance(last, ModelRequest)
        self.asked.append((info.model_request_parameters, [part.content for part in last.parts]))
        return self.replies.pop(0)

    def answer(self, messages, info):
        reply = self.next(messages, info)
        if isinstance(reply, Exception):
            raise reply
        return ModelResponse(
            [TextPart(reply)], usage=RequestUsage(input_tokens=5, output_tokens=2), finish_reason="stop"
        )

    async def stream(self, messages, info):
        reply = self.next(messages, info)
        if reply == "":
            yield {0: DeltaThinkingPart(content="Hm.")}
        for at in range(0, len(reply), 7) if isinstance(reply, str) else ():
            yield reply[at : at + 7]
        if isinstance(reply, Exception):
            raise reply


TOLD = (AgentFinished, AskFinished, ReadFinished, StageFinished, StageSkipped)


async def story_of(replies, contract, *, instrumented, native, streamed):
    """Return everything observable of a run."""
    source, heard, shown = Scripted(replies, instrumented=instrumented, native=native), [], []

    async def live(event):
        shown.append(event)

    spec = AgentSpec(model="local:x", system_prompt="Be brief.")
    with observing(heard.append):
        run = await run_agent(spec, PROMPT, contract, models=source, live=live if streamed else None)
    reported = [
        (type(event).__name__, getattr(event, "stage", None), getattr(event, "outcome", None))
        for event in heard
        if isinstance(event, TOLD)
    ]
    said = [[part.content for part in message.parts if hasattr(part, "content")] for message in run.messages]
    return run.outcome, run.stages, run.calls, run.usage.requests, said, source.asked, reported, shown


@settings(max_examples=60, deadline=None)
@given(scripts, st.sampled_from(sorted(CONTRACTS)), st.booleans(), st.booleans())
@example([ERROR, *REPLIES[:5]], "json", True, True)
@example(["", *REPLIES[:5]], "json", True, True)
@example(["", *REPLIES[:5]], "none", False, False)
def test_a_run_has_the_same_result_with_and_without_spans(replies, name, native, streamed):

    async def both():
        given_ = {"native": native, "streamed": streamed}
        return [await story_of(replies, CONTRACTS[name], instrumented=spans, **given_) for spans in (True, False)]

    with_spans, without = asyncio.run(both())
    assert with_spans == without


@pytest.mark.anyio
async def test_the_run_is_reported_under_the_id_that_the_host_gave_it():
    heard = []
    source = Scripted([REPLIES[0]], native=True)
    with observing(heard.append):
        run = await run_agent(AgentSpec(model="local:x"), "go", CONTRACTS["json"], models=source)
    started = [event for event in heard if isinstance(event, AgentStarted)]
    assert [event.run_id for event in started] == [run.messages[0].run_id]


@pytest.mark.anyio
async def test_an_agent_run_by_a_check_has_its_own_record():
    inner = Agent(
        Scripted([REPLIES[2]], native=False).made,
        output_type=PromptedOutput(Item),
        capabilities=[Aros()],
    )

    async def check(item):
        return (await inner.run("Is it?")).output == item

    source = Scripted([REPLIES[2]], native=True)
    run = await run_agent(AgentSpec(model="local:x"), "go", CONTRACTS["json"], models=source, checks=[check])
    assert isinstance(run.outcome, Accepted)
    assert (run.outcome.value, run.calls, run.usage.requests) == (Item(name="pen", qty=3), 1, 1)


@pytest.mark.anyio
async def test_a_blank_standing_for_an_empty_reply_is_never_shown():
    shown = []

    async def live(event):
        shown.append(event)

    source = Scripted(["", REPLIES[0]], native=True)
    run = await run_agent(AgentSpec(model="local:x"), "go", CONTRACTS["json"], models=source, live=live)
    assert isinstance(run.outcome, Accepted)
    assert [getattr(event, "text", None) for event in shown] == [REPLIES[0], None]


@pytest.mark.anyio
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("finish", "reported"),
    [
        ("length", (Reason.TRUNCATED, "the reply was cut off before there was any output")),
        ("content_filter", (Reason.REFUSED, "the provider's filter ended the reply")),
    ],
)
async def test_a_reply_that_ended_before_any_output_is_rejected_with_our_own_message(finish, reported, streamed):
    for instrumented in (True, False):
        model = ScriptedModel(ModelResponse(parts=[], finish_reason=finish))
        source, heard = Scripted((), native=True), []
        source.made = InstrumentedModel(model) if instrumented else model

        async def live(event):
            """Ignore the chunks."""

        with observing(heard.append):
            spec = AgentSpec(model="local:x")
            run = await run_agent(spec, "go", CONTRACTS["json"], models=source, live=live if streamed else None)
        assert isinstance(run.outcome, Rejected)
        assert (run.outcome.reason, run.outcome.issues[0].message) == reported
        assert [event.outcome for event in heard if isinstance(event, AgentFinished)] == ["rejected"]


@pytest.mark.anyio
async def test_a_plain_reply_ended_by_a_filter_is_rejected_with_our_own_message():
    source = Scripted((), native=True)
    source.made = ScriptedModel(ModelResponse(parts=[], finish_reason="content_filter"))
    run = await run_agent(AgentSpec(model="local:x"), "go", None, models=source)
    assert isinstance(run.outcome, Rejected)
    words = run.outcome.issues[0].message
    assert (run.outcome.reason, words) == (Reason.REFUSED, "the provider's filter ended the reply")


@pytest.mark.anyio
async def test_reading_a_reply_is_not_reported_as_a_tool_call():
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    source = Scripted([REPLIES[2]], native=True)
    Agent.instrument_all(InstrumentationSettings(tracer_provider=provider, meter_provider=NoOpMeterProvider()))
    try:
        await run_agent(AgentSpec(model="local:x"), "go", CONTRACTS["json"], models=source)
    finally:
        Agent.instrument_all(instrument=False)
    assert [span.name for span in spans.get_finished_spans()] == ["chat m", "invoke_agent agent"]


@pytest.mark.anyio
@pytest.mark.parametrize("streamed", [False, True])
async def test_every_request_of_a_run_goes_through_one_function(streamed):
    made = []

    async def around(call):
        made.append((f"{call.agent} {call.stage} {call.attempt}", call.listen is not None))
        return await request_once(call)

    async def live(event):
        """Ignore the chunks."""

    source = Scripted([REPLIES[3], REPLIES[3], REPLIES[0]], native=True)
    with redirect_calls(around):
        spec = AgentSpec(model="local:x", name="extract")
        run = await run_agent(spec, "go", CONTRACTS["json"], models=source, live=live if streamed else None)
    assert isinstance(run.outcome, Accepted)
    assert len(source.asked) == run.calls == len(made)
    assert made[0] == ("extract first 1", streamed)
    assert {label.split()[0] for label, _ in made[1:]} == {f"aros_{stage.stage}" for stage in run.stages}


@pytest.mark.anyio
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_replayed_run_makes_no_calls_and_has_the_same_result(streamed):
    recorded, shown = [], []

    async def record(call):
        recorded.append(ModelMessagesTypeAdapter.dump_json([await request_once(call)]))
        return ModelMessagesTypeAdapter.validate_json(recorded[-1])[0]

    async def replay(_call):
        return ModelMessagesTypeAdapter.validate_json(recorded.pop(0))[0]

    async def live(event):
        shown.append(event)

    async def go(model_call, source):
        with redirect_calls(model_call):
            options = {"models": source, "live": live if streamed else None}
            return await run_agent(AgentSpec(model="local:x"), "go", CONTRACTS["json"], **options)

    first = await go(record, Scripted([REPLIES[3], REPLIES[0]], native=True))
    shown.clear()
    again = await go(replay, Scripted([], native=True))
    assert (again.outcome, again.usage, again.calls) == (first.outcome, first.usage, first.calls)
    assert isinstance(again.outcome, Accepted)
    assert not streamed or shown[-1].value == again.outcome.value.model_dump()


@pytest.mark.anyio
async def test_a_streamed_reply_is_counted_within_the_limit_on_tokens():
    async def live(event):
        """Ignore the chunks."""

    source = Scripted([REPLIES[0]], native=True)
    with pytest.raises(UsageLimitExceeded, match="total_tokens_limit"):
        await run_agent(
            AgentSpec(model="local:x"),
            "go",
            CONTRACTS["json"],
            models=source,
            live=live,
            limits=UsageLimits(total_tokens_limit=51),
        )


@pytest.mark.anyio
async def test_in_tool_mode_the_conversation_continues_after_the_tool_result():
    call = ToolCallPart("final_result", REPLIES[0], tool_call_id="c")
    source = Scripted([], native=True)
    source.made = ScriptedModel(ModelResponse(parts=[call]), ModelResponse(parts=[call]))
    spec = AgentSpec(model="local:x", output_mode="tool")
    first = await run_agent(spec, "go", CONTRACTS["json"], models=source)
    second = await run_agent(spec, "and now?", CONTRACTS["json"], models=source, history=first.messages)
    assert isinstance(second.outcome, Accepted)
    kinds = [[part.part_kind for part in message.parts] for message in (*first.messages, *second.messages)]
    assert kinds == [["user-prompt"], ["tool-call"], ["tool-return"]] * 2


@pytest.mark.anyio
async def test_the_run_span_counts_its_own_requests_and_not_those_of_the_ladder():
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    source = Scripted([REPLIES[3], REPLIES[0]], native=True)
    Agent.instrument_all(InstrumentationSettings(tracer_provider=provider, meter_provider=NoOpMeterProvider()))
    try:
        await run_agent(AgentSpec(model="local:x", name="it"), "go", CONTRACTS["json"], models=source)
    finally:
        Agent.instrument_all(instrument=False)
    found = {span.name: span for span in spans.get_finished_spans() if span.name.startswith("invoke_agent")}
    run, ask = found.pop("invoke_agent it"), next(iter(found.values()))
    assert ask.parent.span_id == run.context.span_id
    counted = [span.attributes["gen_ai.aggregated_usage.input_tokens"] for span in (run, ask)]
    assert counted == [5, 5]


@pytest.mark.anyio
async def test_a_reply_deferred_by_the_provider_is_rejected_with_advice():
    source = Scripted([], native=True)
    source.made = ScriptedModel(ModelResponse(parts=[], state="suspended"))
    with pytest.raises(UsageError, match="background mode"):
        await run_agent(AgentSpec(model="local:x"), "go", CONTRACTS["json"], models=source)
