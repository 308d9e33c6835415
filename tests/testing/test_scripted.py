"""A scripted model answers in order, streams, fails as scripted, and records its requests."""

import asyncio
import sys

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ToolCallPart

from flujo_aros import AgentSpec, Aros, Ladder, OutputError, Retry, Runner, RunStatus, Step, UsageError
from flujo_aros.testing import ScriptedModel, ScriptedModels, cut

pytest_plugins = ["flujo_aros.testing.fixtures"]


class Item(BaseModel):
    name: str


class Sev(BaseModel):
    sev: str


@pytest.mark.parametrize(
    ("reply", "advice"),
    [
        ({"sev": "low"}, "not {'sev': 'low'}; write json.dumps({'sev': 'low'})"),
        (3, "not 3; write json.dumps(3)"),
        (Sev(sev="low"), "not Sev(sev='low'); write its model_dump_json()"),
        (None, "not None"),
    ],
)
def test_a_reply_that_no_model_can_send_is_an_error_of_the_script(reply: object, advice: str) -> None:
    expected = "must be a string, a ToolCallPart, a ModelResponse, an exception or a function of the prompt, "
    for made, what in ((lambda: ScriptedModel("a", reply), "reply 2"), (lambda: ScriptedModel(then=reply), "then")):  # type: ignore[arg-type]  # the mistake
        if reply is None and what == "then":
            continue  # no reply at all
        with pytest.raises(UsageError) as raised:
            made()
        assert str(raised.value) == f"{what} {expected}{advice}"
    with pytest.raises(UsageError, match="the result of the function for call 1 must be a string"):
        asyncio.run(Agent(ScriptedModel(lambda prompt: reply)).run("x"))  # type: ignore[arg-type,return-value]  # the mistake


def ran(agent, prompt):
    return asyncio.run(agent.run(prompt)).output


def test_replies_come_in_order():
    model = ScriptedModel("one", "two")
    agent = Agent(model)
    assert [ran(agent, "a"), ran(agent, "b")] == ["one", "two"]
    assert [asked.prompt for asked in model.asked] == ["a", "b"]
    assert model.left == 0


def test_one_call_too_many_shows_its_prompt():
    with pytest.raises(AssertionError, match=r"call 1 has no reply in a script of 0; it was asked:\nhello"):
        ran(Agent(ScriptedModel()), "hello")


def test_then_answers_every_further_call():
    agent = Agent(ScriptedModel("one", then="more"))
    assert [ran(agent, "x") for _ in range(3)] == ["one", "more", "more"]


def test_a_function_sees_the_prompt():
    assert ran(Agent(ScriptedModel(str.upper)), "hello") == "HELLO"


def test_an_error_is_raised():
    with pytest.raises(ModelHTTPError):
        ran(Agent(ScriptedModel(ModelHTTPError(429, "m"))), "x")


def test_an_output_tool_can_be_called():
    model = ScriptedModel(ToolCallPart("final_result", '{"name": "pen"}'))
    assert ran(Agent(model, output_type=Item), "x") == Item(name="pen")


def test_a_truncated_reply_has_the_reason_truncated():
    model = ScriptedModel(cut('{"name": "pe'), then=cut('{"name": "pe'))
    with pytest.raises(OutputError) as raised:
        ran(Agent(model, output_type=NativeOutput(Item), capabilities=[Aros()]), "x")
    assert raised.value.reason == "truncated"


def test_a_streamed_reply_is_the_same_in_pieces():
    async def run():
        async with Agent(ScriptedModel("Hello, wide world")).run_stream("x") as result:
            return [piece async for piece in result.stream_text(delta=True, debounce_by=None)]

    pieces = asyncio.run(run())
    assert len(pieces) > 1
    assert "".join(pieces) == "Hello, wide world"


def test_a_truncated_stream_is_reported():
    async def run():
        async with Agent(ScriptedModel(cut("Hello, wi"))).run_stream("x") as result:
            await result.get_output()
            return result.response.finish_reason

    assert asyncio.run(run()) == "length"


def test_a_call_of_a_stage_without_a_reply_names_the_stage_and_the_rejected_reply_before_it():
    model = ScriptedModel("no JSON at all", "nor here")
    agent = Agent(
        model, output_type=NativeOutput(Item), capabilities=[Aros(ladder=Ladder(stages=(Retry(attempts=2),)))]
    )
    with pytest.raises(AssertionError) as raised:
        ran(agent, "x")
    first = str(raised.value).partition("; it was asked")[0]
    assert first == "call 3 (retry) has no reply in a script of 2; the reply to call 2 (retry) was rejected"
    assert [asked.stage for asked in model.asked] == ["", "retry", "retry"]


def test_an_unknown_model_name_error_lists_the_known_models():
    models = ScriptedModels({"local:a": ScriptedModel("x")})
    with pytest.raises(UsageError, match="unknown scripted model 'local:b'; known: local:a"):
        asyncio.run(models.model("local:b"))


def test_the_fixture_makes_models(script_model, aros_events):
    """`script_model` creates them, and `aros_events` collects their events."""
    model = script_model("```json\n{'name': 'pen'}\n```")
    output = ran(Agent(model, output_type=NativeOutput(Item), capabilities=[Aros()]), "x")
    assert output == Item(name="pen")
    assert [event.trust for event in aros_events if type(event).__name__ == "ReadFinished"] == ["lossless"]


def test_the_fixture_fails_a_test_that_leaves_a_reply_unused(request: pytest.FixtureRequest):
    making = sys.modules["flujo_aros.testing.fixtures"].script_model.__wrapped__(request)
    next(making)("never", then="also never")
    with pytest.raises(pytest.fail.Exception, match=r"^1 scripted reply was never used; the first is 'never'$"):
        next(making, None)


def test_the_fixture_fails_a_test_that_exhausts_the_script(request: pytest.FixtureRequest):
    making = sys.modules["flujo_aros.testing.fixtures"].script_model.__wrapped__(request)
    model = next(making)("no JSON at all")
    run = Runner(Step("ask", Agent(model, output_type=NativeOutput(Item)))).run_sync("which pen?")
    assert run.status is RunStatus.FAILED
    with pytest.raises(pytest.fail.Exception, match=r"call 2 \(llm_repair\) has no reply in a script of 1; the reply"):
        next(making, None)


def test_the_error_about_a_missing_reply_has_no_traceback_through_the_runner() -> None:
    result = Runner(Step("ask", AgentSpec(model="openai:x")), models=ScriptedModel()).run_sync("two and two?")
    with pytest.raises(OutputError) as caught:
        _ = result.output
    assert "call 1 has no reply in a script of 0; it was asked:\ntwo and two?" in str(caught.value)
    assert caught.value.__cause__ is not None
    assert caught.value.__cause__.__traceback__ is None
