"""If a model calls an output tool more than once in a response, the usable call is the answer."""

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry, ToolOutput
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from flujo_aros import Aros, Ladder, Reason
from flujo_aros.host import AgentOutputError

from .scripted import Script, call

pytestmark = pytest.mark.anyio


class Person(BaseModel):
    name: str
    age: int


ADA = Person(name="Ada", age=36)
GOOD, LACKING, BOB = '{"name": "Ada", "age": 36}', '{"name": "Ada"}', '{"name": "Bob", "age": 3}'
DAMAGED = "{'name': 'Ada', 'age': 36,}"


def agent(script, strategy, *capabilities):
    return Agent(script.model, output_type=ToolOutput(Person), capabilities=capabilities, end_strategy=strategy)


@pytest.mark.parametrize("strategy", ["early", "graceful", "exhaustive"])
@pytest.mark.parametrize("calls", [(LACKING, GOOD), (GOOD, LACKING), (GOOD, BOB)])
async def test_the_host_and_aros_take_the_same_call(strategy, calls):
    outputs = []
    for capabilities in ((), (Aros(ladder=Ladder(stages=())),), (Aros(),)):
        script = Script(ModelResponse(parts=[call(each) for each in calls]))
        outputs.append((await agent(script, strategy, *capabilities).run("Who?")).output)
    assert outputs == [ADA, ADA, ADA]


@pytest.mark.parametrize("calls", [(LACKING, DAMAGED), (DAMAGED, BOB)])
async def test_a_call_that_can_be_repaired_is_one_that_can_be_used(calls):
    script = Script(ModelResponse(parts=[call(each) for each in calls]))
    assert (await agent(script, "early", Aros()).run("Who?")).output == ADA


async def test_every_call_stays_in_the_history():
    script = Script(ModelResponse(parts=[call(LACKING), call(GOOD)]))
    run = await agent(script, "early", Aros()).run("Who?")
    (response,) = (message for message in run.all_messages() if isinstance(message, ModelResponse))
    assert sorted(each.args for each in response.tool_calls) == sorted([LACKING, GOOD])


async def test_where_no_call_can_be_used_the_ladder_is_climbed():
    script = Script(ModelResponse(parts=[call(LACKING), call(LACKING)]), GOOD, GOOD)
    assert (await agent(script, "early", Aros()).run("Who?")).output == ADA


async def test_a_usable_call_that_the_host_rejects_is_retried():
    made = agent(script := Script(ModelResponse(parts=[call(LACKING), call(BOB)]), call(GOOD)), "early", Aros())

    @made.output_validator
    def grown(person: Person) -> Person:
        if person.age < 18:
            raise ModelRetry("a grown person, please")
        return person

    assert (await made.run("Who?")).output == ADA
    assert script.calls == 2


def streaming(*calls):
    """Return a model that streams these calls of the output tool in chunks."""

    async def pieces(_, __):
        for index, arguments in enumerate(calls):
            yield {index: DeltaToolCall("final_result", "", tool_call_id=f"c{index}")}
            for at in range(0, len(arguments), 5):
                yield {index: DeltaToolCall(json_args=arguments[at : at + 5])}

    return FunctionModel(stream_function=pieces)


@pytest.mark.parametrize("strategy", ["early", "graceful", "exhaustive"])
@pytest.mark.parametrize("calls", [(LACKING, GOOD), (GOOD, LACKING), (GOOD, BOB), (GOOD, LACKING, BOB)])
@pytest.mark.parametrize("ladder", [Ladder(stages=()), None])
async def test_a_stream_gives_the_call_that_can_be_used(strategy, calls, ladder):
    """pydantic-ai's own `run_stream` raises an error if that is not the first call."""
    made = Agent(
        streaming(*calls), output_type=ToolOutput(Person), capabilities=[Aros(ladder=ladder)], end_strategy=strategy
    )
    async with made.run_stream("Who?") as stream:
        outputs = [output async for output in stream.stream_output(debounce_by=None)]
    assert outputs[-1] == ADA
    async with made.run_stream("Who?") as stream:
        assert await stream.get_output() == ADA
    assert stream.usage.requests == 1
    async with made.run_stream_events("Who?") as events:
        results = [event.result.output async for event in events if event.event_kind == "agent_run_result"]
    assert results == [ADA]


@pytest.mark.parametrize("retries", [0, 1])
@pytest.mark.parametrize("strategy", ["early", "graceful", "exhaustive"])
async def test_of_calls_that_cannot_be_used_one_goes_up_the_ladder(strategy, retries):
    def made(*replies):
        script = Script(ModelResponse(parts=[call(LACKING), call(LACKING)]), *replies)
        return script, Agent(
            script.model,
            output_type=ToolOutput(Person),
            capabilities=[Aros()],
            end_strategy=strategy,
            retries=retries,
        )

    script, repaired = made(GOOD)
    assert (await repaired.run("Who?")).output == ADA
    assert script.calls == 2
    script, refused = made(*[LACKING] * 9)
    with pytest.raises(AgentOutputError) as raised:
        await refused.run("Who?")
    assert (raised.value.reason, script.calls <= 7) == (Reason.INVALID, True)
