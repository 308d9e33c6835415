"""If there is nothing to recover, an agent with `Aros` is indistinguishable from one without."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from pydantic import BaseModel, field_validator
from pydantic_ai import Agent, NativeOutput, PromptedOutput, RunUsage, capture_run_messages
from pydantic_ai.exceptions import ModelHTTPError, UnexpectedModelBehavior
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.profiles import ModelProfile

from flujo_aros import Aros, Ladder, Output, OutputError
from flujo_aros.host import profile_of
from flujo_aros.testing import ScriptedModel

from .scripted import Script, call

Ending = str
READ_ONLY = Ladder(stages=())


async def words(_: list[ModelMessage], __: AgentInfo) -> AsyncIterator[str]:
    for word in ("hello ", "big ", "world"):
        yield word


async def words_and_an_error(_: list[ModelMessage], __: AgentInfo) -> AsyncIterator[str]:
    yield "hello "
    yield "big "
    raise ModelHTTPError(500, "m", None)


async def in_run_stream(agent: Agent, ending: Ending, usage: RunUsage) -> list[Any]:
    seen: list[Any] = []
    async with agent.run_stream("Go.", usage=usage) as result:
        async for text in result.stream_text(debounce_by=None):
            seen.append((text, result.usage.unmeasured_requests))
            if ending == "cancelled":
                await result.cancel()
            if ending != "read to its end":
                break
    return seen


async def in_iter(agent: Agent, ending: Ending, usage: RunUsage) -> list[Any]:
    seen: list[Any] = []
    async with agent.iter("Go.", usage=usage) as run:
        async for node in run:
            if not Agent.is_model_request_node(node):
                continue
            async with node.stream(run.ctx) as stream:
                async for event in stream:
                    seen.append((event.event_kind, stream.usage.unmeasured_requests))
                    if event.event_kind == "part_delta" and ending == "cancelled":
                        await stream.cancel()
                    if event.event_kind == "part_delta" and ending != "read to its end":
                        break
    return seen


async def in_events(agent: Agent, ending: Ending, usage: RunUsage) -> list[Any]:
    seen: list[Any] = []
    async with agent.run_stream_events("Go.", usage=usage) as events:
        async for event in events:
            seen.append(event.event_kind)
            if event.event_kind == "part_delta" and ending != "read to its end":
                break
    return seen


Way = Callable[[Agent, Ending, RunUsage], Awaitable[list[Any]]]


def watched(way: Way, ending: Ending, capabilities: list[Aros]) -> tuple[Any, ...]:
    """Return everything that a user sees of a stream, with its usage and messages."""
    pieces = words_and_an_error if ending == "broken off" else words
    agent: Agent = Agent(FunctionModel(stream_function=pieces), capabilities=capabilities)
    usage, seen, raised = RunUsage(), None, None
    with capture_run_messages() as messages:
        try:
            seen = asyncio.run(way(agent, "read to its end" if ending == "broken off" else ending, usage))
        except ModelHTTPError as error:
            raised = str(error)
    left = [(each.state, each.usage, [part.part_kind for part in each.parts], each.text) for each in replies(messages)]
    return seen, raised, usage, left


def replies(messages: list[ModelMessage]) -> list[ModelResponse]:
    return [each for each in messages if isinstance(each, ModelResponse)]


@pytest.mark.parametrize("ending", ["read to its end", "left", "cancelled", "broken off"])
@pytest.mark.parametrize("way", [in_run_stream, in_iter, in_events])
def test_a_text_stream_is_unchanged_by_aros(way: Way, ending: Ending) -> None:
    assert watched(way, ending, [Aros(ladder=READ_ONLY)]) == watched(way, ending, [])


class City(BaseModel):
    name: str


async def run(agent: Agent) -> None:
    await agent.run("Where?")


async def streamed(agent: Agent) -> None:
    async with agent.run_stream("Where?") as result:
        await result.get_output()


async def streamed_output(agent: Agent) -> None:
    async with agent.run_stream("Where?") as result:
        async for _ in result.stream_output(debounce_by=None):
            pass


async def iterated(agent: Agent) -> None:
    async with agent.iter("Where?") as nodes:
        async for _ in nodes:
            pass


async def reported(agent: Agent) -> None:
    async with agent.run_stream_events("Where?") as events:
        async for _ in events:
            pass


@pytest.mark.parametrize("way", [run, streamed, streamed_output, iterated, reported])
@pytest.mark.parametrize("output", [PromptedOutput(City), NativeOutput(City), City], ids=["prompted", "native", "tool"])
def test_code_that_catches_the_errors_of_the_host_catches_ours(
    output: Any, way: Callable[[Agent], Awaitable[None]]
) -> None:
    wrong = '{"town": "Rome"}'
    script = Script(call(wrong) if output is City else wrong)
    agent: Agent = Agent(script.model, output_type=output, capabilities=[Aros(ladder=READ_ONLY)])
    with pytest.raises(UnexpectedModelBehavior) as caught:
        asyncio.run(way(agent))
    error = caught.value
    assert isinstance(error, OutputError)
    assert (error.message, error.body, error.texts) == (str(error), None, (wrong,))


def test_an_error_of_a_run_survives_pickling_with_all_attributes() -> None:
    agent = Agent(Script("nothing of the kind").model, output_type=PromptedOutput(City))
    with pytest.raises(OutputError) as caught:
        asyncio.run(agent.run("Where?", capabilities=[Aros(ladder=READ_ONLY)]))
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 (our own)
    assert (type(again), again.explain(), again.to_dict()) == (
        type(caught.value),
        caught.value.explain(),
        caught.value.to_dict(),
    )


def test_an_error_of_an_agent_that_a_tool_asks_reaches_the_caller_as_it_is() -> None:
    inner = Agent(Script("nothing of the kind").model, output_type=PromptedOutput(City))
    outer = Agent("test", capabilities=[Aros()])

    @outer.tool_plain
    async def city() -> City:
        return (await inner.run("Where?", capabilities=[Aros(ladder=READ_ONLY)])).output

    with pytest.raises(OutputError) as caught:
        asyncio.run(outer.run("Where?"))
    assert caught.value.texts == ("nothing of the kind",)


def falling_back(*schemas: bool, reply: object = '{"name": "Rome"}') -> FallbackModel:
    profiles = [ModelProfile(supports_json_schema_output=each, supports_tools=True) for each in schemas]
    return FallbackModel(*[Script(reply, profile=each).model for each in profiles])


@pytest.mark.parametrize("output", [City, PromptedOutput(City), NativeOutput(City)])
def test_a_fallback_model_is_asked_like_any_other(output: Any) -> None:
    reply = call({"name": "Rome"}) if output is City else '{"name": "Rome"}'
    agent = Agent(falling_back(True, True, reply=reply), output_type=output, capabilities=[Aros()])
    assert asyncio.run(agent.run("Where?")).output == City(name="Rome")


@pytest.mark.parametrize(("schemas", "known"), [((True, True), True), ((True, False), None)])
def test_a_fallback_model_has_the_shared_capabilities(schemas: tuple[bool, ...], known: object) -> None:
    assert profile_of(WrapperModel(falling_back(*schemas))).get("supports_json_schema_output") is known


class Street(BaseModel):
    name: str


def moved(street: Street, *, floor: int) -> str:
    return f"{street.name} {floor}"


def test_an_output_function_with_more_than_one_argument_gets_each_of_them() -> None:
    reply = '{"street": {"name": "Quay"}, "floor": 2,}'
    agent = Agent(ScriptedModel(reply), output_type=NativeOutput(moved), capabilities=[Aros()])
    assert asyncio.run(agent.run("Go.")).output == "Quay 2"


def test_a_value_rejected_only_by_its_class_does_not_compete_with_an_accepted_one() -> None:
    class Place(BaseModel):
        street: str

        @field_validator("street")
        @classmethod
        def named(cls, street: str) -> str:
            if street == "Nowhere":
                message = "there is no such street"
                raise ValueError(message)
            return street

    model = ScriptedModel('{"street": "Nowhere"} or {"street": "Quay"}')
    agent = Agent(model, output_type=NativeOutput(Place), capabilities=[Aros(ladder=READ_ONLY)])
    assert asyncio.run(agent.run("Go.")).output == Place(street="Quay")


def test_a_repair_is_placed_in_the_value_and_not_in_the_envelope_of_the_host() -> None:
    model = ScriptedModel('{"response": ["1", 2]}')
    agent = Agent(model, output_type=NativeOutput(list[int]), capabilities=[Aros(Output.json(list[int]))])
    result = asyncio.run(agent.run("Go."))
    assert result.output == [1, 2]
    assert [repair["path"] for repair in (result.metadata or {})["aros"]["repairs"]] == ["$[0]"]
