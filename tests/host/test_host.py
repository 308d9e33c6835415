"""What `Aros` reports besides the value, and how it works with the rest of pydantic-ai."""

import asyncio
import contextlib
import inspect
import json
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput, PromptedOutput, ToolOutput, capture_run_messages
from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.exceptions import UsageLimitExceeded
from pydantic_ai.messages import FinalResultEvent, ModelMessagesTypeAdapter, PartDeltaEvent, PartStartEvent
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.usage import RunUsage, UsageLimits

from flujo_aros import Aros, OutputError, Reason, Trust, UsageError, recording
from flujo_aros.recovery import Constrain, Degrade, Ladder, LlmRepair

from .matrix import MODES, WAYS, Item, Part, Replies, by_events, by_stream, json_mode_error, on_own_loop

GOOD = '{"name": "pen", "qty": 3}'
MESSY = "Sure: {'name': 'pen', 'qty': 3,}"
BAD = '{"name": "pen", "qty": "it is 3"}'
PEN = Item(name="pen", qty=3)
TOOL = "final_result"


def agent(*parts, mode="prompted", **options):
    capabilities = options.pop("capabilities", None)
    given = [Aros()] if capabilities is None else capabilities
    return Agent(Replies(parts), output_type=MODES[mode](Item), capabilities=given, **options)


def reply(text, mode="prompted", **options):
    return Part(text, tool=TOOL if mode == "tool" else None, **options)


def run(made, **options):
    return asyncio.run(made.run("x", **options))


@pytest.mark.parametrize("mode", MODES)
def test_trust_and_repairs_are_in_the_metadata_of_the_run(mode):
    result = run(agent(reply(MESSY, mode), mode=mode))
    reported = result.metadata["aros"]
    assert (reported["outcome"], reported["trust"], reported["origin"], reported["calls"]) == (
        "accepted",
        "lossless",
        "first",
        1,
    )
    assert {"prose", "trailing-comma"} & {repair["code"].replace("_", "-") for repair in reported["repairs"]}
    assert json.loads(json.dumps(reported)) == reported
    assert "pen" not in json.dumps(reported), (
        "what a model wrote goes into metadata, and so into spans, only when asked for"
    )
    assert result.response.metadata["aros"] == reported
    loud = run(agent(reply(MESSY, mode), mode=mode, capabilities=[Aros(capture_content=True)]))
    assert any("before" in repair for repair in loud.metadata["aros"]["repairs"])


def test_a_repaired_output_reports_its_stage():
    reported = run(agent(reply(BAD), reply(GOOD), capabilities=[Aros(ladder=REPAIR)])).metadata["aros"]
    assert reported["origin"] == "llm_repair"
    assert reported["stages"] == [{"stage": "llm_repair", "outcome": "accepted", "reason": None, "calls": 1}]


def test_metadata_of_the_caller_stays_and_does_not_leak_into_other_runs():
    mine = {"tenant": "a"}
    made = agent(reply(MESSY), reply(GOOD), metadata=mine)
    first, second = run(made), run(made)
    assert first.metadata["tenant"] == second.metadata["tenant"] == "a"
    assert (first.metadata["aros"]["trust"], second.metadata["aros"]["trust"]) == ("lossless", "clean")
    assert mine == {"tenant": "a"}


def test_a_streamed_output_reports_its_trust_too():
    async def main():
        async with agent(reply(MESSY)).run_stream("x") as stream:
            await stream.get_output()
            inside = stream.response.metadata
        return inside, stream.metadata, stream.all_messages()[-1].metadata

    inside, after, message = asyncio.run(main())
    assert inside["aros"]["trust"] == after["aros"]["trust"] == message["aros"]["trust"] == "lossless"


def test_a_clean_output_leaves_its_message_unchanged():
    result = run(agent(reply(GOOD)))
    assert result.response.metadata is None
    assert result.metadata["aros"]["trust"] == "clean"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("way", ["run", "stream"])
@pytest.mark.parametrize("replies", [(MESSY,), (BAD, GOOD)], ids=["read", "repaired"])
def test_the_history_keeps_the_slip_unless_it_is_to_be_clean(mode, way, replies):
    def written(clean):
        parts = [reply(replies[0], mode), *(Part(text) for text in replies[1:])]
        made = agent(*parts, mode=mode, capabilities=[Aros(clean_history=clean)])

        async def streamed():
            async with made.run_stream("x") as stream:
                await stream.get_output()
            return stream.all_messages()

        messages = run(made).all_messages() if way == "run" else asyncio.run(streamed())
        (part,) = messages[1].parts
        return part.args if mode == "tool" else part.content

    assert written(clean=False) == replies[0]
    assert json.loads(written(clean=True)) == {"name": "pen", "qty": 3}


def test_a_cleaned_history_can_be_continued():
    made = agent(reply(MESSY, "tool"), reply(GOOD, "tool"), mode="tool", capabilities=[Aros(clean_history=True)])
    first = run(made)
    assert run(made, message_history=first.all_messages()).output == PEN


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("way", WAYS)
def test_the_finish_reason_is_known_in_every_way_to_run(mode, way):
    lost = GOOD[:-1]
    for finish, wanted in (("length", Reason.TRUNCATED), (None, Reason.TRUNCATED), ("stop", PEN)):
        made = agent(reply(lost, mode, finish=finish), mode=mode)
        try:
            found = (
                asyncio.run(WAYS[way](made)) if inspect.iscoroutinefunction(WAYS[way]) else on_own_loop(WAYS[way], made)
            )
        except OutputError as error:
            found = error.reason
        assert found == wanted, finish
        assert made.model.calls == (1 if wanted == PEN else 2), "a cut reply is only ever resumed, never repaired"


def test_arguments_reported_as_complete_may_still_be_truncated():
    with pytest.raises(OutputError) as caught:
        run(agent(reply(GOOD[:-1], "tool", finish="tool_call"), mode="tool"))
    assert caught.value.reason is Reason.TRUNCATED


async def events_of(made):
    async with made.run_stream_events("x") as stream:
        return [event async for event in stream]


def test_live_events_arrive_immediately_and_a_mid_stream_error_replaces_the_text():
    text = str({"name": "pen", "qty": 3})
    part = Part(text, error=json_mode_error(text), shown=9)
    events = asyncio.run(events_of(agent(part, mode="native")))
    starts = [event for event in events if isinstance(event, PartStartEvent)]
    assert any(isinstance(event, PartDeltaEvent) for event in events), "what came before the error was shown at once"
    assert starts[-1].part.content == text
    assert {start.index for start in starts} == {0}
    assert sum(isinstance(event, FinalResultEvent) for event in events) == 1
    assert events[-1].result.output == PEN
    assert events[-1].result.usage.unmeasured_requests == 1


def test_a_buffered_stream_shows_nothing_that_is_repaired_later():
    text = str({"name": "pen", "qty": 3})
    part = Part(text, error=json_mode_error(text), shown=9)
    events = asyncio.run(events_of(agent(part, mode="native", capabilities=[Aros(buffer_stream=True)])))
    assert not any(isinstance(event, PartDeltaEvent) for event in events)
    assert [event.part.content for event in events if isinstance(event, PartStartEvent)] == [text]
    assert events[-1].result.output == PEN


def test_a_mid_stream_error_without_the_reply_keeps_the_text_shown_so_far():
    made = agent(Part(GOOD, error=json_mode_error(""), shown=20), Part(GOOD[4:]), mode="native")
    assert asyncio.run(by_stream(made)) == PEN
    assert made.model.calls == 2


@pytest.mark.parametrize("way", [by_stream, by_events])
def test_limits_apply_to_the_ladder_in_streams_too(way):
    made = agent(reply(BAD), reply(GOOD))
    run_options = {"usage_limits": UsageLimits(request_limit=1), "usage": RunUsage()}
    original = made.run_stream, made.run_stream_events
    made.run_stream = lambda prompt: original[0](prompt, **run_options)
    made.run_stream_events = lambda prompt: original[1](prompt, **run_options)
    with pytest.raises(UsageLimitExceeded):
        asyncio.run(way(made))
    assert made.model.calls == 1


def spans_of(made, **options):
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing = Instrumentation(InstrumentationSettings(tracer_provider=provider, include_content=False))
    with contextlib.suppress(OutputError):
        run(made, capabilities=[tracing], **options)
    return exporter.get_finished_spans()


def test_repairs_show_up_under_the_span_of_the_run_and_no_span_counts_usage_twice():
    spans = spans_of(agent(reply(BAD), reply(GOOD), capabilities=[Aros(ladder=REPAIR)]))
    (top,) = [span for span in spans if span.parent is None]
    assert len([span for span in spans if span.name.startswith("chat")]) == 2
    assert any("aros_llm_repair" in span.name for span in spans)
    assert {span.context.trace_id for span in spans} == {top.context.trace_id}
    counting = [span.name for span in spans if any(key.startswith("gen_ai.usage") for key in span.attributes)]
    assert all(name.startswith("chat") for name in counting)


def test_no_span_contains_model_text_unless_content_is_on():
    for parts in ((reply(MESSY),), (reply(BAD), reply(GOOD)), (reply("pen pen"), reply("pen"), reply("pen"))):
        for span in spans_of(agent(*parts)):
            reported = json.dumps([dict(span.attributes), [dict(event.attributes) for event in span.events]])
            assert "pen" not in reported


def test_aros_is_inside_instrumentation_in_any_order():
    for order in ([Aros(), Instrumentation()], [Instrumentation(), Aros()]):
        found = []
        made = agent(reply(GOOD), capabilities=order)
        made.root_capability.apply(found.append)
        kinds = [type(part) for part in found]
        assert kinds.index(Instrumentation) < kinds.index(Aros)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ladder": {"stages": [{"stage": "wish"}]}}, r"ladder\.stages"),
        ({"ladder": {"max_calls": -1}}, r"ladder\.max_calls"),
        ({"ladder": "strict"}, "ladder"),
        ({"contract": {"type": "nonsense"}}, "contract must be a JSON Schema"),
        ({"buffer_stream": "yes"}, "buffer_stream must be true or false, not 'yes'"),
        ({"clean_history": 1}, "clean_history"),
        ({"bufer_stream": True}, "Aros has no option 'bufer_stream'; did you mean 'buffer_stream'"),
    ],
)
def test_an_error_in_an_agent_spec_is_reported_with_its_place(options, words):
    spec = {"model": "test", "capabilities": [{"Aros": options}]}
    with pytest.raises(ValueError, match="Aros") as caught:
        Agent.from_spec(spec, custom_capability_types=[Aros])
    shown = "".join(f"{error}\n" for error in (caught.value, caught.value.__cause__))
    assert re.search(words, shown)


def test_options_are_checked_in_python_by_the_same_words():
    with pytest.raises(UsageError, match=r"ladder\.max_calls"):
        Aros.from_spec(ladder={"max_calls": "many"})
    with pytest.raises(UsageError, match="capture_content must be true or false, not 1"):
        Aros(capture_content=1)
    with pytest.raises(UsageError, match=r"evidence must be statistics such as journal.evidence\(\), not 3"):
        Aros(evidence=3)


def test_many_streams_at_once_keep_apart():
    shared = Aros()

    async def one(number):
        text = json.dumps({"name": str(number), "qty": 3})
        bad = json.dumps({"name": str(number), "qty": "it is 3"})
        made = agent(reply(bad), reply(text), capabilities=[shared])
        with recording() as record:
            found = await by_stream(made)
        return found.name, record.calls, record.outcome.value.name

    async def main():
        return await asyncio.gather(*(one(number) for number in range(30)))

    assert asyncio.run(main()) == [(str(n), 2, str(n)) for n in range(30)]
    assert not shared._runs


def test_an_error_message_names_paths_and_codes_and_quotes_nothing():
    with pytest.raises(OutputError) as caught:
        run(
            agent(
                reply('{"name": "pen", "qty": "hunter2"}'), reply("no"), reply("no"), capabilities=[Aros(ladder=REPAIR)]
            )
        )
    words = str(caught.value)
    assert "hunter2" not in words
    assert "$.qty" in words
    assert "invalid" in words
    assert "llm_repair" in words


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("way", WAYS)
def test_an_empty_reply_goes_through_the_ladder_where_the_host_would_give_up(mode, way):
    made = agent(Part("", thinking="hm"), Part(GOOD), mode=mode, retries=0)
    drive = WAYS[way]
    assert (asyncio.run(drive(made)) if inspect.iscoroutinefunction(drive) else on_own_loop(drive, made)) == PEN
    assert made.model.calls == 2


def test_silence_stays_an_answer_where_the_output_may_be_none():
    made = Agent(Replies([Part("")]), output_type=[Item, type(None)], capabilities=[Aros()], retries=0)
    assert run(made).output is None
    assert made.model.calls == 1


@pytest.mark.parametrize("mode", MODES)
def test_an_empty_reply_ends_in_an_output_error_that_keeps_the_error_of_the_host(mode):
    made = agent(Part(""), Part(""), mode=mode, capabilities=[Aros(None, Ladder(stages=()))])
    with pytest.raises(OutputError) as caught:
        run(made)
    assert caught.value.reason is Reason.NO_JSON
    assert "Exceeded maximum output retries" in str(caught.value.__cause__)
    assert caught.value.usage.requests == made.model.calls == 2


def test_a_degraded_output_is_reported_in_the_record():
    with recording() as record, pytest.raises(OutputError):
        run(agent(reply(BAD), capabilities=[Aros(ladder=Ladder(stages=(Degrade(),)))]))
    assert record.outcome.trust is Trust.DEGRADED


NAMES = st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cc"], exclude_characters="\\"), max_size=20)
VOLATILE = ("timestamp", "run_id", "conversation_id", "tool_call_id", "duration")


def steady(value):
    """Return messages without the parts that differ from run to run."""
    if isinstance(value, dict):
        return {key: steady(inner) for key, inner in value.items() if key not in VOLATILE}
    return [steady(inner) for inner in value] if isinstance(value, list) else value


@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    NAMES, st.integers(-(10**9), 10**9), st.sampled_from(sorted(MODES)), st.sampled_from(sorted(WAYS)), st.booleans()
)
def test_successful_runs_are_the_same_with_aros_in_every_run_method(name, qty, mode, way, indented):
    text = json.dumps({"name": name, "qty": qty}, indent=2 if indented else None, ensure_ascii=indented)
    seen = []
    for capabilities in ([], [Aros()], [Aros(clean_history=True)]):
        made = agent(reply(text, mode), mode=mode, capabilities=capabilities)
        with capture_run_messages() as messages:
            drive = WAYS[way]
            value = asyncio.run(drive(made)) if inspect.iscoroutinefunction(drive) else on_own_loop(drive, made)
        seen.append((value, made.model.calls, steady(ModelMessagesTypeAdapter.dump_python(messages, mode="json"))))
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize("output", [PromptedOutput(Item), NativeOutput(Item), ToolOutput(Item)], ids=str)
def test_host_retries_are_not_stacked_below_the_ladder(output):
    parts = [Part(BAD, tool=TOOL if isinstance(output, ToolOutput) else None), *[Part("no")] * 3]
    made = Agent(Replies(parts), output_type=output, retries=5, capabilities=[Aros()])
    with recording() as record, pytest.raises(OutputError):
        run(made)
    tried = ["retry", "degrade"] if not isinstance(output, NativeOutput) else ["llm_repair", "retry", "degrade"]
    assert [stage.stage for stage in record.stages] == tried
    assert made.model.calls == 1 + sum(stage.calls for stage in record.stages), "no retry of the host"


CONSTRAIN = Ladder(stages=(LlmRepair(attempts=1), Constrain()))
REPAIR = Ladder(stages=(LlmRepair(),))


@pytest.mark.parametrize("mode", ["prompted", "tool"])
@pytest.mark.parametrize("way", WAYS)
def test_a_model_that_fails_when_prompted_is_asked_again_with_the_schema_enforced(mode, way):
    made = agent(
        reply(BAD, mode),
        Part(GOOD),
        mode=mode,
        instructions="Be brief.",
        capabilities=[Aros(None, CONSTRAIN)],
    )
    made.tool_plain(lookup)
    value = asyncio.run(WAYS[way](made)) if inspect.iscoroutinefunction(WAYS[way]) else on_own_loop(WAYS[way], made)
    assert value == PEN
    asked = made.model.infos[1]
    assert asked.model_request_parameters.output_mode == "native"
    assert asked.model_request_parameters.output_object.json_schema["required"] == ["name", "qty"]
    assert "Be brief." in asked.instructions
    assert not asked.function_tools
    assert [part.content for part in made.model.requests[1][-1].parts] == ["x"]


def lookup() -> str:
    """Look something up."""
    return "nothing"


def test_an_enforced_schema_is_not_requested_again():
    made = agent(reply(BAD), Part("no"), mode="native", capabilities=[Aros(None, CONSTRAIN)])
    with recording() as record, pytest.raises(OutputError):
        run(made)
    assert made.model.calls == record.calls == 2
    assert [stage.stage for stage in record.stages] == ["llm_repair"]
    assert "already" in record.outcome.attempts[-1].why


def test_an_unenforced_grammar_is_detected():
    def reported(text, mode="native", **options):
        return run(agent(reply(text, mode, **options), reply(GOOD), mode=mode)).metadata["aros"]

    assert reported(MESSY)["schema_enforced"] is False
    assert reported("three pens")["schema_enforced"] is False
    assert "schema_enforced" not in reported(GOOD)
    assert "schema_enforced" not in reported(BAD), "a schema may say less than the type"
    assert "schema_enforced" not in reported(MESSY, "prompted")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("before", ["", "Sure! Here it is: ", "```json ", "<think>{} or not</think>\n"])
def test_partial_values_are_shown_after_prose_fences_and_thinking(mode, before):
    async def main():
        made = Agent(Replies([reply(before + GOOD, mode)]), output_type=MODES[mode](Draft), capabilities=[Aros()])
        async with made.run_stream("x") as stream:
            return [partial async for partial in stream.stream_output(debounce_by=None)]

    partials = asyncio.run(main())
    assert partials[-1] == Draft(name="pen", qty=3)
    assert Draft(name="pen") in partials
    assert not partials[0].qty


@pytest.mark.parametrize("mode", MODES)
def test_partial_values_of_a_damaged_reply_come_while_it_streams(mode):
    async def main():
        damaged = "{name: 'pen', /* a note */ 'qty': \"3\",}"
        made = Agent(Replies([reply(damaged, mode)]), output_type=MODES[mode](Draft), capabilities=[Aros()])
        async with made.run_stream("x") as stream:
            return [partial async for partial in stream.stream_output(debounce_by=None)]

    partials = asyncio.run(main())
    assert Draft(name="pe") in partials
    assert partials[-1] == Draft(name="pen", qty=3)


class Draft(BaseModel):
    name: str = ""
    qty: int = 0
