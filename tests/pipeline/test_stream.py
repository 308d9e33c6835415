"""`Runner.stream`: every event as it happens, including nested steps, with backpressure and a valid ledger."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput, PromptedOutput, ToolOutput
from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from flujo_aros import (
    AgentSpec,
    Call,
    Human,
    Map,
    Parallel,
    Pipeline,
    Runner,
    RunResult,
    RunStatus,
    Step,
    StepResult,
    StepStatus,
    StreamEvent,
    UsageError,
    read,
)
from flujo_aros.events import (
    PartialValue,
    RunFinished,
    RunStarted,
    StepFinished,
    StepStarted,
    TextAppended,
    TextDelta,
    TextReplaced,
)
from flujo_aros.testing import ScriptedModel

from .kinds_lab import fail, forever

SCHEMA = {
    "type": "object",
    "required": ["n", "words"],
    "properties": {"n": {"type": "integer"}, "words": {"type": "array", "items": {"type": "string"}}},
}
REPLY = 'Sure!\n```json\n{"n": 7, "words": ["a", "b",]}\n```'
VALUE = {"n": 7, "words": ["a", "b"]}


class Streaming:
    """A model that streams its reply, and counts the chunks."""

    def __init__(self, *replies: Any, size: int = 3) -> None:
        self.replies = list(replies)
        self.size = size
        self.written = 0

    async def stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        for start in range(0, len(reply), self.size):
            self.written += 1
            yield reply[start : start + self.size]
            await asyncio.sleep(0)

    async def broken(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        yield '{"n": '
        raise UnexpectedModelBehavior("the provider cannot read its own JSON", body=REPLY)

    def step(self, name: str, **options: Any) -> Step:
        options.setdefault("contract", SCHEMA)
        return Step(name, agent=Agent(FunctionModel(stream_function=self.stream)), **options)


async def collect(step: Any, given: Any = "x", **options: Any) -> list[StreamEvent]:
    return [event async for event in Runner(step).stream(given, **options)]


def events_of(step: Any, given: Any = "x", **options: Any) -> list[StreamEvent]:
    return asyncio.run(collect(step, given, **options))


def result_of(events: list[StreamEvent]) -> RunResult:
    result = events[-1].result
    assert isinstance(events[-1].event, RunFinished)
    assert isinstance(result, RunResult)
    return result


def test_a_stream_has_every_step_from_start_to_end_and_the_result_last():
    events = events_of(Call("a", function=len) >> Parallel("fan", {"x": Call("b", function=str)}))
    shown = [(event.step, type(event.event)) for event in events]
    assert shown == [
        (None, RunStarted),
        ("a", StepStarted),
        ("a", StepFinished),
        ("fan", StepStarted),
        ("fan/x", StepStarted),
        ("fan/x/b", StepStarted),
        ("fan/x/b", StepFinished),
        ("fan/x", StepFinished),
        ("fan", StepFinished),
        (None, RunFinished),
    ]
    assert result_of(events).output == {"x": "1"}
    ended = events[2].result
    assert isinstance(ended, StepResult)
    assert ended.value == 1


def test_a_structured_step_ends_in_the_aggregated_and_repaired_value():
    events = events_of(Streaming(REPLY).step("order"))
    assert "".join(e.event.text for e in events if isinstance(e.event, TextDelta)) == REPLY
    ended = next(event.result for event in events if isinstance(event.event, StepFinished))
    assert isinstance(ended, StepResult)
    assert (ended.value, ended.status) == (VALUE, StepStatus.SUCCESS)
    assert result_of(events).output == VALUE
    partial = [event.event.value for event in events if isinstance(event.event, PartialValue)]
    assert {"n": 7} in partial or {"n": 7, "words": []} in partial


@settings(max_examples=15)
@given(st.integers(1, 40))
def test_any_way_of_cutting_a_reply_gives_the_same_result(size: int):
    assert result_of(events_of(Streaming(REPLY, size=size).step("order"))).output == VALUE


def test_the_stream_of_a_run_and_the_run_come_to_the_same():
    def plain(result: RunResult) -> Any:
        reported = result.to_dict()
        return [(step["name"], step["status"], step["output"], step["usage"]) for step in reported["steps"]]

    pipeline = Call("a", function=len) >> Map("m", Call("b", function=str), iterable_input="{{ [previous_step] }}")
    streamed, direct = result_of(events_of(pipeline, "four")), Runner(pipeline).run_sync("four")
    assert plain(streamed) == plain(direct)


def test_pieces_come_from_nested_steps_side_by_side():
    fan = Parallel("fan", {"a": Streaming(REPLY).step("s"), "b": Streaming(REPLY).step("s")})
    events = events_of(fan)
    for name in ("fan/a/s", "fan/b/s"):
        assert "".join(e.event.text for e in events if e.step == name and isinstance(e.event, TextDelta)) == REPLY
    order = [event.step for event in events if isinstance(event.event, TextDelta)]
    assert order != sorted(order, key=str)  # mixed


def test_pieces_come_while_the_model_still_writes():
    async def first_piece() -> int:
        model = Streaming("x" * 3000)
        async with aclosing(Runner(model.step("s", contract=None)).stream("x")) as events:
            async for event in events:
                if isinstance(event.event, TextDelta):
                    return model.written
        return 0

    assert 0 < asyncio.run(first_piece()) < 500


def test_a_slow_consumer_holds_the_model_back():
    async def consume() -> int:
        model = Streaming("x" * 3000)
        ahead = read = 0
        async for event in Runner(model.step("s", contract=None)).stream("x", buffer=4):
            if isinstance(event.event, TextDelta):
                read += 1
                for _ in range(20):
                    await asyncio.sleep(0)
                ahead = max(ahead, model.written - read)
        assert read == 1000
        return ahead

    assert asyncio.run(consume()) <= 4 + 8


def test_a_slow_consumer_holds_back_steps_that_write_nothing():
    async def consume() -> int:
        done: list[int] = []
        ahead = seen = 0
        each = Map("m", Call("b", function=done.append), iterable_input="input", max_concurrency=4)
        async for event in Runner(each).stream(list(range(200)), buffer=4):
            seen += isinstance(event.event, StepFinished) and (event.step or "").endswith("/b")
            await asyncio.sleep(0)
            ahead = max(ahead, len(done) - seen)
        return ahead

    assert asyncio.run(consume()) <= 12


def test_closing_the_iterator_cancels_the_run_and_settles_every_step():
    ended: list[RunResult] = []

    async def leave() -> None:
        fan = Parallel(
            "fan", {"a": Call("wait", function=forever), "b": Streaming("x" * 3000).step("s", contract=None)}
        )
        async with aclosing(Runner(fan, on_result=ended.append).stream("x")) as events:
            async for event in events:
                if isinstance(event.event, TextDelta):
                    break
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(leave())
    assert ended[0].status is RunStatus.CANCELLED
    assert {step.status for step in ended[0].steps} == {StepStatus.CANCELLED}


def test_cancelling_the_consumer_cancels_the_run():
    ended: list[RunResult] = []

    async def run() -> None:
        async def consume() -> None:
            async for _ in Runner(Call("wait", function=forever), on_result=ended.append).stream("x"):
                pass

        task = asyncio.ensure_future(consume())
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())
    assert ended[0].status is RunStatus.CANCELLED


def test_a_failing_step_is_an_event_and_no_exception():
    events = events_of(Call("bad", function=fail))
    assert result_of(events).status is RunStatus.FAILED
    assert isinstance(events[2].result, StepResult)


def test_detectable_errors_are_raised_before_the_run():
    with pytest.raises(UsageError, match="cannot be imported"):
        events_of(Call("a", function="no_such_package.tools:fix"))
    with pytest.raises(UsageError, match="buffer must be 1 or more"):
        events_of(Call("a", function=len), buffer=0)


def test_a_provider_error_in_mid_stream_is_read_like_any_reply():
    step = Step("order", agent=Agent(FunctionModel(stream_function=Streaming().broken)), contract=SCHEMA)
    result = result_of(events_of(Pipeline([step])))
    assert (result.status, result.output) == (RunStatus.COMPLETED, VALUE)


def test_a_resumed_run_is_streamed_like_a_new_one():
    """Only unsettled steps have events; the stream ends with the same result as `resume`."""
    model = Streaming(REPLY)
    pipeline = Call("draft", function=str.upper) >> Human("ok", "Send?") >> model.step("sort")
    paused = Runner(pipeline).run_sync("x").paused
    assert paused is not None

    async def go_on() -> list[StreamEvent]:
        async with aclosing(Runner(pipeline).stream_resumed(paused.to_dict(), "yes", buffer=1)) as events:
            return [event async for event in events]

    heard = asyncio.run(go_on())
    assert {event.step for event in heard if event.step} == {"ok", "sort"}
    assert "".join(each.event.text for each in heard if isinstance(each.event, TextDelta)) == REPLY
    result = heard[-1].result
    assert isinstance(result, RunResult)
    assert (result.status, result.output) == (RunStatus.COMPLETED, VALUE)
    assert result.to_dict()["steps"][0]["name"] == "draft"


class Order(BaseModel):
    boat: str
    days: int


@pytest.mark.parametrize("output", [Order, NativeOutput(Order), PromptedOutput(Order), ToolOutput(Order)])
def test_a_typed_agent_shows_its_value_while_it_grows_as_a_step_with_a_contract_does(output: Any):
    reply = '{"boat": "Alma", "days": 7}'
    called = ToolCallPart("final_result", reply) if isinstance(output, ToolOutput) else reply
    typed = values_in(events_of(Step("order", Agent(ScriptedModel(called), output_type=output))))
    assert typed == values_in(events_of(Step("order", Agent(ScriptedModel(reply)), contract=Order)))
    assert len(typed) > 2
    assert typed[-1] == {"boat": "Alma", "days": 7}


def values_in(events: list[StreamEvent]) -> list[Any]:
    return [each.event.value for each in events if isinstance(each.event, PartialValue)]


def test_the_text_of_an_attempt_that_broke_off_is_replaced_when_the_next_one_writes() -> None:
    attempts = iter([ConnectionResetError("reset"), None])

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        error = next(attempts)
        yield REPLY[:20]
        if error is not None:
            raise error
        yield REPLY[20:]

    step = Step("ask", agent=Agent(FunctionModel(stream_function=stream)), contract=SCHEMA, retries=1)
    assert _shown_last(Pipeline([step])) == REPLY


def test_the_text_of_an_iteration_that_was_not_the_last_is_replaced() -> None:
    model = Streaming("I am not done", "All done <promise>COMPLETE</promise>")
    agent = Agent(FunctionModel(stream_function=model.stream))
    step = Step("work", agent=agent, max_iterations=3, completion_signal="<promise>COMPLETE</promise>")
    assert _shown_last(Pipeline([step])) == "All done <promise>COMPLETE</promise>"


class OneModel:
    """Serves the same model under every name."""

    def __init__(self, served: FunctionModel) -> None:
        self.served = served

    async def model(self, name: str) -> FunctionModel:
        return self.served


@pytest.mark.parametrize("instrumented", [True, False])
@pytest.mark.parametrize("own", [True, False])
def test_a_model_that_cannot_stream_is_called_without_streaming(own: bool, instrumented: bool) -> None:
    def whole(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse([TextPart(REPLY)])

    model = FunctionModel(whole)
    agent = Agent(model, capabilities=[Instrumentation()] if instrumented else [])
    step = Step("order", agent if own else AgentSpec(model="test:model"), SCHEMA)

    async def main() -> Any:
        events = [each async for each in Runner(step, models=OneModel(model)).stream("go")]
        return events[-1].result

    assert asyncio.run(main()).output == read(REPLY, SCHEMA).value


def _shown_last(pipeline: Pipeline) -> str:
    """Return the text that a user who follows the stream sees in the end."""

    async def main() -> str:
        shown = ""
        async for each in Runner(pipeline, sleep=lambda _: asyncio.sleep(0)).stream("go"):
            if isinstance(each.event, TextReplaced):
                shown = each.event.text
            elif isinstance(each.event, (TextDelta, TextAppended)):
                shown += each.event.text
        assert isinstance(each.result, RunResult)
        assert each.result.status is RunStatus.COMPLETED, each.result.error
        return shown

    return asyncio.run(main())
