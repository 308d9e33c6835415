"""`run_agent`: one agent, one prompt, one contract; bad data and failing providers are outcomes."""

import asyncio
import json

import pytest
from pydantic import BaseModel, SecretStr
from pydantic_ai import Agent, ModelRetry, NativeOutput, PromptedOutput, ToolOutput
from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelConnectionError,
    ModelHTTPError,
    UnexpectedModelBehavior,
    UsageLimitExceeded,
)
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.usage import RequestUsage

from flujo_aros import Accepted, AgentSpec, Aros, Degraded, OutputError, Reason, Rejected, Trust, Usage, UsageError
from flujo_aros.contract import Output, compile_contract
from flujo_aros.host import AgentRun, run_agent
from flujo_aros.outcome import StageRecord
from flujo_aros.recovery import Ladder, LlmRepair
from flujo_aros.testing import ScriptedModel

from .scripted import OneModel, Script, call

SCHEMA = {
    "type": "object",
    "title": "Item",
    "properties": {"name": {"type": "string"}, "qty": {"type": "integer"}},
    "required": ["name", "qty"],
}
GOOD = '{"name": "pen", "qty": 3}'
BAD = '{"name": "pen", "qty": "it is 3"}'
CONTRACT = compile_contract(SCHEMA)
REPAIR = Ladder(stages=(LlmRepair(attempts=2),))


class Item(BaseModel):
    name: str
    qty: int


def never(text: str) -> str:
    """An output validator that rejects everything."""
    raise ModelRetry(f"{text} will not do")


def look() -> str:
    """Look around."""
    return "a pen"


def run(script, contract=CONTRACT, ladder=None, **spec):
    """Run an agent made from a spec, with a scripted model."""
    source = OneModel(script.model)
    return asyncio.run(run_agent(AgentSpec(model="local:test", **spec), "hello", contract, ladder, models=source))


@pytest.mark.parametrize("mode", ["auto", "prompted", "native", "tool"])
def test_a_spec_gives_a_value_in_every_output_mode(mode):
    script = Script(call(GOOD) if mode == "tool" else GOOD)
    result = run(script, output_mode=mode)
    assert isinstance(result, AgentRun)
    assert isinstance(result.outcome, Accepted)
    assert result.outcome.value == {"name": "pen", "qty": 3}
    assert result.outcome.trust is Trust.CLEAN
    assert result.calls == 1
    assert result.usage.requests == 1


def test_the_model_source_resolves_local_names():
    source = OneModel(Script(GOOD).model)
    asyncio.run(run_agent(AgentSpec(model="local:smollm2"), "x", CONTRACT, models=source))
    assert source.names == ["local:smollm2"]


@pytest.mark.parametrize(
    ("supported", "native"), [(True, True), (False, False)], ids=["with schema support", "without schema support"]
)
def test_auto_is_native_where_the_model_can_do_it(supported, native):
    script = Script(GOOD, profile=ModelProfile(supports_json_schema_output=supported))
    run(script)
    sent = script.infos[0].model_request_parameters
    assert sent.output_mode == ("native" if native else "prompted")
    assert ("qty" in (script.infos[0].instructions or "")) is not native


def test_prompt_settings_and_words_reach_the_model():
    script = Script(GOOD)
    run(script, system_prompt="You sort parcels.", model_settings={"temperature": 0.1, "max_tokens": 50, "seed": 3})
    assert "hello" in script.prompt(0)
    assert script.infos[0].instructions.startswith("You sort parcels.")
    assert script.infos[0].model_settings == {"temperature": 0.1, "max_tokens": 50, "seed": 3}


def test_a_repair_is_reported_with_its_stage_calls_and_usage():
    used = RequestUsage(input_tokens=100, output_tokens=10)
    replies = [ModelResponse(parts=[TextPart(text)], usage=used, finish_reason="stop") for text in (BAD, GOOD)]
    result = run(Script(*replies))
    assert result.outcome.origin == "llm_repair"
    assert result.stages == (StageRecord("llm_repair", "accepted", None, 1),)
    assert result.calls == 2
    assert result.usage == Usage(requests=2, input_tokens=200, output_tokens=20, cost=result.usage.cost)


def test_bad_data_is_an_outcome():
    result = run(Script(BAD, "no", "no"), ladder=REPAIR)
    assert isinstance(result.outcome, Rejected)
    assert result.outcome.reason is Reason.INVALID
    assert result.outcome.issues[0].path == "$.qty"
    assert result.outcome.text == BAD
    assert result.calls == 3
    assert result.usage.requests == 3
    with pytest.raises(OutputError):
        _ = result.outcome.value


def test_a_ladder_may_degrade():
    result = run(Script(BAD, *["no"] * 4), ladder=Ladder())
    assert isinstance(result.outcome, Degraded)
    assert [stage.stage for stage in result.stages] == ["llm_repair", "retry", "degrade"]
    assert result.calls == 1 + 2 + 1, "nothing is extracted from what was written with the schema enforced"


def test_there_is_one_retry_authority():
    for mode, first in (("tool", "not a call"), ("tool", call("nonsense")), ("prompted", "prose"), ("native", "")):
        result = run(Script(first, "no", "no", "no"), output_mode=mode, ladder=REPAIR)
        assert isinstance(result.outcome, Rejected)
        assert result.calls <= 3


@pytest.mark.parametrize(
    ("reply", "mode", "words"),
    [("", "native", "wrote nothing"), ("", "tool", "wrote nothing"), (call("{}", "finish"), "tool", "called finish")],
)
def test_a_reply_without_output_is_described_in_words(reply, mode, words):
    outcome = run(Script(reply), ladder=Ladder(stages=()), output_mode=mode).outcome
    assert outcome.reason is Reason.NO_JSON
    assert words in outcome.issues[0].message


@pytest.mark.parametrize(
    ("replies", "output", "reason", "code", "words"),
    [
        ([""], str, Reason.NO_JSON, "no_output", "the model wrote nothing"),
        ([call("{}", "finish")], str, Reason.NO_JSON, "no_output", "called finish, which it does not have"),
        ([call("{}", "finish")], Item, Reason.NO_JSON, "no_output", "called finish, which it does not have"),
        ([call("{}", "look"), ModelHTTPError(500, "m")], str, Reason.PROVIDER, "http_500", "HTTP 500"),
        ([call("{}", "look"), ModelHTTPError(500, "m")], Item, Reason.PROVIDER, "http_500", "HTTP 500"),
    ],
)
def test_the_last_reply_of_an_agent_of_ones_own_is_blamed_only_where_it_ended_the_run(
    replies, output, reason, code, words
):
    agent = Agent(Script(*replies, *replies[-1:] * 3).model, output_type=output, tools=[look])
    contract = CONTRACT if output is Item else None
    outcome = asyncio.run(run_agent(agent, "hello", contract, Ladder(stages=()))).outcome
    assert (outcome.reason, outcome.issues[0].code) == (reason, code)
    assert words in outcome.issues[0].message


def test_text_that_an_output_validator_never_accepts_is_not_called_nothing():
    agent = Agent(Script(*["no pens"] * 3).model)
    agent.output_validator(never)
    outcome = asyncio.run(run_agent(agent, "hello", None)).outcome
    assert (outcome.reason, outcome.issues[0].code) == (Reason.NO_JSON, "no_output")
    assert "output retries" in outcome.issues[0].message
    assert outcome.text == "no pens"


@pytest.mark.parametrize("mode", [ToolOutput, PromptedOutput])
@pytest.mark.parametrize(("schemas", "better"), [(True, "native"), (False, None)])
def test_native_output_is_recommended_only_where_the_model_supports_it(mode, schemas, better):
    bad = call(BAD) if mode is ToolOutput else BAD
    model = Script(bad, GOOD, profile=ModelProfile(supports_json_schema_output=schemas)).model
    agent = Agent(model, output_type=mode(Item), capabilities=[Aros(ladder=REPAIR)])
    assert asyncio.run(agent.run("hello")).metadata["aros"].get("better_mode") == better


def test_without_a_contract_the_outcome_is_the_text():
    script = Script("Dear Anna, …")
    result = run(script, contract=None)
    assert isinstance(result.outcome, Accepted)
    assert result.outcome.value == "Dear Anna, …"
    assert result.outcome.text == "Dear Anna, …"
    assert result.calls == 1


@pytest.mark.parametrize("mode", ["prompted", "native", "tool"])
@pytest.mark.parametrize(
    ("like", "text", "value"),
    [
        (list[Item], '{"response": [{"name": "pen", "qty": 3}]}', [Item(name="pen", qty=3)]),
        ({"type": "array", "items": {"type": "integer"}}, '{"response": [1, 2]}', [1, 2]),
        ({"type": "string", "enum": ["a", "b"]}, '{"response": "a"}', "a"),
        (
            {"type": "array", "items": {"$ref": "#/$defs/I"}, "$defs": {"I": SCHEMA}},
            f'{{"response": [{GOOD}]}}',
            [{"name": "pen", "qty": 3}],
        ),
        (Item, GOOD, Item(name="pen", qty=3)),
    ],
    ids=["typed list", "list", "enum", "definitions", "model"],
)
def test_any_contract_can_be_requested(mode, like, text, value):
    result = run(Script(call(text) if mode == "tool" else text), contract=Output.json(like), output_mode=mode)
    assert result.outcome.value == value
    assert result.outcome.trust is Trust.CLEAN
    assert result.calls == 1


def test_issues_and_repairs_name_places_in_the_value_and_not_in_the_envelope():
    contract = Output.json(list[Item])
    result = run(Script('{"response": [{"name": "pen", "qty": "3"}]}'), contract=contract)
    assert [repair.path for repair in result.outcome.repairs] == ["$[0].qty"]
    result = run(
        Script('{"response": [{"name": "pen", "qty": "it is 3"}]}', "no", "no"), contract=contract, ladder=REPAIR
    )
    assert result.outcome.issues[0].path == "$[0].qty"


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (
            {"$defs": {"N": {"type": "object", "properties": {"next": {"$ref": "#/$defs/N"}}}}, "$ref": "#/$defs/N"},
            '{"next": {}}',
        ),
        ({}, '{"any": [1]}'),
    ],
    ids=["recursive", "anything"],
)
def test_types_that_the_host_cannot_express_are_prompted(schema, text):
    contract = Output.json(schema)
    script = Script(f"Sure: ```json\n{text}\n```")
    result = run(script, contract=contract, system_prompt="Be brief.")
    assert result.outcome.value == json.loads(text)
    assert contract.instruction() in script.infos[0].instructions
    assert result.outcome.repairs


def test_a_typed_value_is_the_one_that_was_read():
    class Login(BaseModel):
        password: SecretStr

    result = run(Script("{'password': 'x'}"), contract=Output.json(Login))
    assert result.outcome.value.password.get_secret_value() == "x"


@pytest.mark.parametrize(
    ("error", "reason", "words"),
    [
        (ModelHTTPError(503, "m", {"error": {"message": "overloaded"}}), Reason.PROVIDER, "HTTP 503: overloaded"),
        (
            ModelHTTPError(401, "m", {"message": "bad key sk-abcdefghijklmnopqrst"}),
            Reason.PROVIDER,
            "bad key [secret-1]",
        ),
        (ModelConnectionError("m", "connection refused"), Reason.PROVIDER, "connection refused"),
        (ContentFilterError("blocked", body='{"parts": []}'), Reason.REFUSED, "blocked"),
    ],
    ids=["http", "key", "connection", "filter"],
)
def test_a_failing_provider_is_an_outcome_with_a_sentence(error, reason, words):
    result = run(Script(error))
    assert isinstance(result.outcome, Rejected)
    assert result.outcome.reason is reason
    assert words in result.outcome.issues[0].message
    assert result.calls == 1
    assert result.usage == Usage(requests=1, unmeasured_requests=1)


def test_a_schema_that_the_provider_rejects_in_every_form_is_reported_with_advice():
    body = {"error": {"message": "failed to parse grammar: unsupported pattern"}}
    refused = ModelHTTPError(400, "m", body)
    result = run(Script(refused, refused), ladder=Ladder(stages=()), output_mode="native")
    (issue,) = result.outcome.issues
    assert issue.code == "schema_refused"
    assert "output_mode: prompted" in issue.message
    assert "unsupported pattern" in issue.message


def test_a_truncated_reply_is_truncated():
    result = run(Script('{"name": "pen", "qty": 3', finish="length"), ladder=REPAIR)
    assert result.outcome.reason is Reason.TRUNCATED
    assert result.calls == 1


def test_a_timeout_is_an_outcome_and_its_call_is_counted():
    async def slow(messages, info):
        await asyncio.sleep(30)

    source = OneModel(FunctionModel(slow))
    result = asyncio.run(run_agent(AgentSpec(model="local:x", timeout=0.05), "x", CONTRACT, models=source))
    assert result.outcome.reason is Reason.PROVIDER
    assert "0.05 s" in result.outcome.issues[0].message
    assert result.usage == Usage(requests=1, unmeasured_requests=1)


def test_usage_reaches_the_caller_when_the_run_is_cancelled():
    spent = []

    async def main():
        replies, asked_again = [BAD], asyncio.Event()

        async def answer(messages, info):
            if not replies:
                asked_again.set()
                await asyncio.sleep(30)
            used = RequestUsage(input_tokens=10, output_tokens=1)
            return ModelResponse(parts=[TextPart(replies.pop())], usage=used, finish_reason="stop")

        source = OneModel(FunctionModel(answer))
        spec = AgentSpec(model="local:x")
        task = asyncio.create_task(run_agent(spec, "x", CONTRACT, models=source, usage_sink=spent.append))
        await asked_again.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert spent == [Usage(requests=2, input_tokens=10, output_tokens=1, unmeasured_requests=1)]


def test_a_limit_of_a_user_agent_passes_through():
    agent = Agent(Script(GOOD).model, output_type=PromptedOutput(Item))

    @agent.output_validator
    def stop(item: Item) -> Item:
        raise UsageLimitExceeded("enough")

    spent = []
    with pytest.raises(UsageLimitExceeded):
        asyncio.run(run_agent(agent, "x", None, usage_sink=spent.append))
    assert spent[0].requests == 1


@pytest.mark.parametrize("own", [False, True], ids=["plain", "with its own Aros"])
def test_a_user_agent_keeps_its_output_type(own):
    script = Script("{'name': 'pen', 'qty': 3,}")
    agent = Agent(script.model, output_type=PromptedOutput(Item), capabilities=[Aros()] if own else [])
    result = asyncio.run(run_agent(agent, "x", None))
    assert result.outcome.value == Item(name="pen", qty=3)
    assert result.outcome.repairs
    assert result.calls == 1


@pytest.mark.parametrize("own", [False, True], ids=["plain", "with its own Aros"])
def test_a_contract_is_enforced_along_with_the_output_type_of_a_user_agent(own):
    strict = compile_contract(
        {**SCHEMA, "properties": {**SCHEMA["properties"], "qty": {"type": "integer", "maximum": 5}}}
    )
    script = Script('{"name": "pen", "qty": 7}', GOOD, GOOD)
    agent = Agent(script.model, output_type=NativeOutput(Item), capabilities=[Aros()] if own else [])
    result = asyncio.run(run_agent(agent, "x", strict))
    assert result.outcome.value == {"name": "pen", "qty": 3}
    assert result.outcome.origin == "retry", "a repair that has not seen the question would have made the number up"


@pytest.mark.parametrize("own", [False, True], ids=["plain", "with its own Aros"])
def test_a_user_agent_with_text_output_is_prompted_for_the_contract(own):
    script = Script(GOOD)
    agent = Agent(script.model, instructions="Mine.", capabilities=[Aros()] if own else [])
    result = asyncio.run(run_agent(agent, "x", CONTRACT))
    assert result.outcome.value == {"name": "pen", "qty": 3}
    assert "Mine." in script.infos[0].instructions


def test_an_error_of_a_tool_is_never_wrapped():
    agent = Agent(Script(call("{}", "broken")).model)

    @agent.tool_plain
    def broken() -> str:
        raise OutputError("of the tool")

    with pytest.raises(OutputError, match="of the tool"):
        asyncio.run(run_agent(agent, "x", None))


@pytest.mark.parametrize(
    ("name", "words"),
    [("local:smollm2", "no source of local models"), ("nosuch:model", "nosuch"), ("nonsense", "nonsense")],
)
def test_an_unavailable_model_is_reported_before_any_call(name, words):
    with pytest.raises(UsageError, match=words):
        asyncio.run(run_agent(AgentSpec(model=name), "x", CONTRACT))


def test_native_output_without_model_support_is_reported():
    with pytest.raises(UsageError, match="output_mode: auto"):
        run(Script(GOOD, profile=ModelProfile(supports_json_schema_output=False)), output_mode="native")


def test_a_spec_is_strict_data():
    with pytest.raises(TypeError, match="did you mean 'system_prompt'"):
        AgentSpec(model="test", sytem_prompt="x")
    spec = AgentSpec.model_validate({"model": "openai:gpt-4o-mini", "model_settings": {"temperature": 0}})
    assert spec.output_mode == "auto"


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    "error", [UnexpectedModelBehavior("no such mode"), ModelHTTPError(400, "m", {"error": "not in this mode"})]
)
def test_an_event_is_prompted_if_its_structured_call_fails(error, streamed):
    """The turn still yields an event, and the failed call is counted."""
    model = ScriptedModel(error, 'Sure: {"kind": "said", "text": "The bell sued the tower."}')
    shown = []

    async def live(event):
        shown.append(event)

    spec = AgentSpec(model="local:any", system_prompt="You are a bell.")
    contract = Output.event(["said", "thought"])
    run = asyncio.run(run_agent(spec, "Go.", contract, models=OneModel(model), live=live if streamed else None))
    assert isinstance(run.outcome, Accepted)
    assert (run.outcome.value.kind, run.outcome.value.text) == ("said", "The bell sued the tower.")
    assert [asked.output_mode for asked in model.asked] == ["native", "text"]
    assert "OUTPUT FORMAT" in model.asked[1].prompt
    assert (run.calls, run.usage.requests, run.usage.unmeasured_requests) == (2, 2, 1)
    assert bool(shown) == streamed


def test_an_event_is_not_requested_again_if_the_provider_is_busy():
    """A rate limit does not depend on the output format."""
    model = ScriptedModel(ModelHTTPError(429, "m"))
    run = asyncio.run(run_agent(AgentSpec(model="local:any"), "Go.", Output.event(["said"]), models=OneModel(model)))
    assert (run.outcome.reason, model.calls) == (Reason.PROVIDER, 1)
