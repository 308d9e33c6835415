"""If a provider rejects a schema, the rest of the run puts the schema in the prompt."""

import asyncio
from contextlib import aclosing

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, AgentRunResultEvent, BinaryContent, NativeOutput, PromptedOutput, ToolOutput
from pydantic_ai.exceptions import (
    ModelAuthenticationError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelQuotaExceededError,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.output import OutputObjectDefinition

from flujo_aros import AgentSpec, Aros, Ladder, Map, Output, OutputError, Pipeline, Reason, Runner, Step, observing
from flujo_aros.events import StageSkipped
from flujo_aros.host import Run, is_refused, rejects_schema, remember_refusal, run_agent
from flujo_aros.recovery import Constrain
from flujo_aros.testing import ScriptedModel

from .scripted import OneModel, call


class Item(BaseModel):
    name: str
    qty: int


class Place(BaseModel):
    street: str


PEN = Item(name="pen", qty=3)
GOOD = '{"name": "pen", "qty": 3}'
TOO_LARGE = ModelHTTPError(400, "m", {"error": {"message": "The compiled grammar is too large."}})
REFUSALS = [
    (
        400,
        {
            "type": "error",
            "error": {"message": "The compiled grammar is too large. Reduce the number of strict tools."},
        },
    ),
    (400, {"error": {"message": "Schemas contains too many optional parameters (31), limit: 24."}}),
    (400, {"error": {"message": "Invalid schema for response_format 'Item': 'uniqueItems' is not permitted."}}),
    (400, {"error": {"message": "Invalid schema for function 'final_result': 'pattern' is not permitted."}}),
    (400, {"error": {"message": "The specified schema produces a constraint that has too many states for serving."}}),
    (400, {"error": {"message": "Unknown name \"additionalProperties\" at 'generation_config.response_schema'"}}),
    (400, {"message": "output_format.schema: For 'object' type, 'additionalProperties' must be false"}),
    (422, {"detail": "response_format json_schema is not supported"}),
    (500, {"error": {"message": "failed to parse grammar"}}),
]
OTHERS = [
    (400, {"error": {"message": "This model's maximum context length is 8192 tokens."}}),
    (400, {"error": {"message": "Generated JSON does not match the expected schema.", "code": "json_validate_failed"}}),
    (401, {"error": {"message": "invalid key for json_schema"}}),
    (503, {"error": {"message": "grammar server busy"}}),
]


@pytest.mark.parametrize(("status", "body"), REFUSALS)
def test_refusals_of_providers_are_recognized(status, body):
    assert rejects_schema(ModelHTTPError(status, "m", body))


@pytest.mark.parametrize(("status", "body"), OTHERS)
def test_other_errors_are_not_treated_as_refusals(status, body):
    assert not rejects_schema(ModelHTTPError(status, "m", body))


@pytest.mark.parametrize(
    "message",
    ["image input is not supported - hint: you may need to provide the mmproj", "Invalid audio format: x-wav"],
)
def test_an_image_that_the_model_does_not_take_is_one_error_and_is_not_sent_again(message):
    model = ScriptedModel(ModelHTTPError(500, "m", {"message": message}), GOOD)
    agent = AgentSpec(model="openai:x", output_schema=Item.model_json_schema(), output_mode="native")
    run = Runner(Step("look", agent=agent), models=model).run_sync(
        ["What is it?", BinaryContent(b"GIF89a", media_type="image/gif")]
    )
    assert (run.status.value, model.calls) == ("failed", 1)
    assert run.steps[0].outcome.issues[0].message.endswith(message)
    assert len(run.steps[0].outcome.issues) == 1


TOO_LONG = "This model's maximum context length is 8192 tokens, with 9000 in the messages and 80 in the schema."


@pytest.mark.parametrize(
    ("category", "body", "code"),
    [
        (ModelContextWindowExceededError, {"message": TOO_LONG, "code": "context_length_exceeded"}, "prompt_too_long"),
        (None, {"message": "the request is too large", "type": "exceed_context_size_error"}, "prompt_too_long"),
        (ModelQuotaExceededError, {"message": "Your credit balance is too low."}, "http_400"),
        (ModelAuthenticationError, {"message": "API key not valid."}, "http_400"),
    ],
)
def test_an_error_that_another_form_cannot_cure_is_not_retried(category, body, code):
    error = ModelHTTPError.for_category(category, status_code=400, model_name="m", body={"error": body})
    model = ScriptedModel(error, GOOD)
    agent = AgentSpec(model="openai:x", output_schema=Item.model_json_schema(), output_mode="native")
    run = Runner(Step("look", agent=agent, retries=2), models=model).run_sync("x")
    assert (run.status.value, model.calls) == ("failed", 1)
    assert [issue.code for issue in run.steps[0].outcome.issues] == [code]


def test_a_prompt_that_is_too_long_is_named_in_the_message():
    body = {"error": {"message": TOO_LONG, "code": "context_length_exceeded"}}
    category = ModelContextWindowExceededError
    error = ModelHTTPError.for_category(category, status_code=400, model_name="m", body=body)
    run = Runner(Step("look", agent=AgentSpec(model="openai:x")), models=ScriptedModel(error)).run_sync("x")
    assert run.steps[0].outcome.headline() == f"provider: the prompt is too long for m: {TOO_LONG}"


async def by_run(agent):
    return await agent.run("x")


async def by_stream(agent):
    async with agent.run_stream("x") as stream:
        await stream.get_output()
    return stream


async def by_events(agent):
    async with agent.run_stream_events("x") as events:
        async for event in events:
            if isinstance(event, AgentRunResultEvent):
                return event.result
    return None


def output_of(result):
    return result.output if hasattr(result, "output") else asyncio.run(result.get_output())


@pytest.mark.parametrize("way", [by_run, by_stream, by_events])
@pytest.mark.parametrize("mode", [NativeOutput, ToolOutput])
def test_an_agent_gets_its_value_from_words_with_the_same_schema(mode, way):
    model = ScriptedModel(TOO_LARGE, GOOD)
    result = asyncio.run(way(Agent(model, output_type=mode(Item), capabilities=[Aros()])))
    assert output_of(result) == PEN
    first = "native" if mode is NativeOutput else "tool"
    assert [asked.output_mode for asked in model.asked] == [first, "prompted"]
    assert "qty" in model.asked[1].prompt
    reported = result.metadata["aros"]
    assert reported["schema_refused"] == (
        "the provider of scripted rejected the schema (The compiled grammar is too large.); "
        "prompted with the schema instead"
    )
    assert (reported["calls"], reported["origin"]) == (2, "first")
    assert (result.usage.requests, result.usage.unmeasured_requests) == (1, 0), "the host counts no call that failed"


def test_one_of_several_output_tools_is_also_found_in_text():
    model = ScriptedModel(TOO_LARGE, GOOD)
    agent = Agent(model, output_type=[ToolOutput(Item), ToolOutput(Place)], capabilities=[Aros()])
    assert asyncio.run(agent.run("x")).output == PEN
    assert '"anyOf"' in model.asked[1].prompt
    assert "street" in model.asked[1].prompt


def test_a_single_output_tool_is_described_in_the_prompt_unchanged():
    model = ScriptedModel(TOO_LARGE, GOOD)
    output = ToolOutput(Item, name="order", description="One line of the order.")
    assert asyncio.run(Agent(model, output_type=output, capabilities=[Aros()]).run("x")).output == PEN
    assert '"anyOf"' not in model.asked[1].prompt
    assert "One line of the order." in model.asked[1].prompt


def test_wrong_content_goes_through_the_ladder_without_the_schema():
    model = ScriptedModel(TOO_LARGE, "I would say a pen.", "CANNOT_REPAIR", GOOD)
    result = asyncio.run(Agent(model, output_type=NativeOutput(Item), capabilities=[Aros()]).run("x"))
    assert result.output == PEN
    assert [asked.output_mode for asked in model.asked] == ["native", "prompted", "text", "text"]


def test_later_requests_of_the_same_run_have_the_schema_in_the_prompt():
    model = ScriptedModel(TOO_LARGE, call("{}", "look"), GOOD)
    agent = Agent(model, output_type=NativeOutput(Item), capabilities=[Aros()])
    agent.tool_plain(lambda: "a pen", name="look")
    result = asyncio.run(agent.run("x"))
    assert result.output == PEN
    assert [asked.output_mode for asked in model.asked] == ["native", "prompted", "prompted"]
    assert result.metadata["aros"]["schema_refused"].endswith("earlier in this run; prompted with the schema instead")


def test_a_second_rejection_is_the_outcome():
    model = ScriptedModel(TOO_LARGE, TOO_LARGE)
    agent = Agent(model, output_type=NativeOutput(Item), capabilities=[Aros(ladder=Ladder(stages=()))])
    with pytest.raises(ModelHTTPError):
        asyncio.run(agent.run("x"))
    assert model.calls == 2


def test_a_prompted_request_is_not_made_twice():
    model = ScriptedModel(TOO_LARGE, TOO_LARGE)
    with pytest.raises(OutputError) as caught:
        asyncio.run(Agent(model, output_type=PromptedOutput(Item), capabilities=[Aros()]).run("x"))
    assert (caught.value.reason, caught.value.stages) == (Reason.PROVIDER, ("retry",))


def test_fallback_models_are_prompted_if_all_reject_the_schema():
    models = [ScriptedModel(TOO_LARGE, GOOD), ScriptedModel(TOO_LARGE)]
    agent = Agent(FallbackModel(*models), output_type=NativeOutput(Item), capabilities=[Aros()])
    assert asyncio.run(agent.run("x")).output == PEN


@pytest.mark.parametrize("streamed", [False, True])
def test_steps_of_one_run_remember_rejected_schemas(streamed):
    model = ScriptedModel(TOO_LARGE, GOOD, GOOD, GOOD)
    body = Pipeline([Step("item", agent=AgentSpec(model="local:m"), contract=Output.json(Item), input="{{ item }}")])
    runner = Runner(Map("all", body, iterable_input="previous_step", max_concurrency=1), models=OneModel(model))
    heard = []

    async def go():
        with observing(heard.append):
            if not streamed:
                return await runner.run(["a", "b", "c"])
            async with aclosing(runner.stream(["a", "b", "c"])) as events:
                return [event async for event in events][-1].result

    result = asyncio.run(go())
    assert (result.status.value, result.output) == ("completed", [PEN, PEN, PEN])
    assert [asked.output_mode for asked in model.asked] == ["native", "prompted", "prompted", "prompted"]
    assert (result.usage.requests, result.usage.unmeasured_requests) == (4, 1)
    passed = [event for event in heard if isinstance(event, StageSkipped)]
    assert [event.stage for event in passed] == ["native"] * 3
    assert [event.why.rpartition("; ")[2] for event in passed] == [
        "prompted with the schema instead",
        *["prompted with the schema instead"] * 2,
    ]


def test_another_schema_of_the_same_model_is_still_requested_natively():
    model = ScriptedModel(TOO_LARGE, GOOD, '{"street": "Quay"}')
    spec = AgentSpec(model="local:m")
    steps = [
        Step("item", agent=spec, contract=Output.json(Item)),
        Step("place", agent=spec, contract=Output.json(Place)),
    ]
    asyncio.run(Runner(Pipeline(steps), models=OneModel(model)).run("x"))
    assert [asked.output_mode for asked in model.asked] == ["native", "prompted", "native"]


def test_a_rejected_schema_affects_only_requests_with_it():
    model, run = ScriptedModel(), Run()
    item, place = (
        ModelRequestParameters(output_object=OutputObjectDefinition(like.model_json_schema())) for like in (Item, Place)
    )
    assert not is_refused(model, item, run)
    assert remember_refusal(TOO_LARGE, model, item, run)
    run.exchange.schema_refused = ""  # as before the next attempt
    assert is_refused(model, item, run)
    assert not is_refused(model, place, run)


def test_the_rejected_call_counts_towards_the_limits_of_the_run():
    model = ScriptedModel(TOO_LARGE, GOOD)
    run = asyncio.run(run_agent(AgentSpec(model="local:m"), "x", Output.json(Item), models=OneModel(model)))
    assert (run.calls, run.usage.requests, run.usage.unmeasured_requests) == (2, 2, 1)


def test_a_stage_whose_schema_is_rejected_prompts_instead_and_the_run_remembers():
    ladder = Ladder(stages=(Constrain(),), max_calls=2)
    model = ScriptedModel("a pen", TOO_LARGE, GOOD, "a pen", "a pen")
    spec = AgentSpec(model="local:m", output_mode="prompted")
    refusals = {}
    runs = [
        asyncio.run(run_agent(spec, "x", Output.json(Item), ladder, models=OneModel(model), refusals=refusals))
        for _ in range(2)
    ]
    assert (runs[0].outcome.value, runs[0].outcome.origin, runs[0].calls) == (PEN, "constrain", 3)
    assert [asked.output_mode for asked in model.asked] == ["prompted", "native", "text", "prompted"]
    assert "qty" in model.asked[2].prompt
    assert [attempt.outcome for attempt in runs[1].outcome.attempts] == ["rejected", "skipped"]


def test_a_stage_makes_no_second_call_beyond_the_limit():
    ladder = Ladder(stages=(Constrain(),), max_calls=1)
    model = ScriptedModel("a pen", TOO_LARGE)
    spec = AgentSpec(model="local:m", output_mode="prompted")
    run = asyncio.run(run_agent(spec, "x", Output.json(Item), ladder, models=OneModel(model)))
    assert (run.outcome.reason, model.calls) == (Reason.NO_JSON, 2)
