"""`Aros` on a pydantic-ai agent, with scripted models."""

import asyncio
import json
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Self

import pytest
from pydantic import AfterValidator, BaseModel, Field, SecretStr, ValidationInfo, field_validator, model_validator
from pydantic_ai import Agent, AgentRunResultEvent, NativeOutput, PromptedOutput, StructuredDict, ToolOutput
from pydantic_ai.exceptions import (
    ApprovalRequired,
    CallDeferred,
    ContentFilterError,
    ModelHTTPError,
    ModelRetry,
    UnexpectedModelBehavior,
    UsageLimitExceeded,
)
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RequestUsage, RunUsage, UsageLimits

from flujo_aros import Aros, ContractError, Degraded, OutputError, Reason, Rejected, Trust, UsageError, observing
from flujo_aros.events import AskFinished, AskStarted, ReadFinished
from flujo_aros.host import recording
from flujo_aros.outcome import StageRecord
from flujo_aros.recovery import Degrade, Ladder, LlmRepair, Retry

from .scripted import Script, call


class Item(BaseModel):
    name: str
    qty: int
    note: str | None = None


class Plain(BaseModel):
    text: str


class Priced(BaseModel):
    name: str
    qty: int
    price: float | None = None


GOOD = '{"name": "pen", "qty": 3}'
BAD = '{"name": "pen", "qty": "it is 3"}'
REPAIR = Ladder(stages=(LlmRepair(attempts=1),))
PEN = Item(name="pen", qty=3)
MODES = {"prompted": PromptedOutput, "native": NativeOutput, "tool": ToolOutput}


def written(mode, text):
    return call(text) if mode == "tool" else text


def run(agent, prompt="x", **options):
    """Run an agent; return its output and the record of `Aros`."""
    with recording() as record:
        result = asyncio.run(agent.run(prompt, **options))
    return result, record


def test_the_record_of_a_call_has_damaged_arguments_as_the_model_wrote_them_and_instructions_once():
    damaged = "{'name': 'pen', 'qty': 3}"
    script = Script(written("tool", damaged), written("tool", GOOD))
    agent = Agent(script.model, output_type=ToolOutput(Item), capabilities=[Aros()], instructions="Be brief.")
    history = run(agent)[0].all_messages()
    prompts = []
    with observing(lambda event: prompts.append(event.prompt) if isinstance(event, AskStarted) else None):
        run(agent, message_history=history)
    assert f"({damaged}) returned: " in prompts[0]
    assert prompts[0].count("Be brief.") == 1


@pytest.mark.parametrize("mode", MODES)
def test_a_valid_output_passes_as_it_is(mode):
    script = Script(written(mode, GOOD))
    result, record = run(Agent(script.model, output_type=MODES[mode](Item), capabilities=[Aros()]))
    assert result.output == PEN
    assert record.outcome.trust is Trust.CLEAN
    assert record.outcome.value == PEN
    assert (script.calls, record.calls, record.stages) == (1, 1, [])


@pytest.mark.parametrize("mode", MODES)
def test_a_messy_output_is_read_without_a_call(mode):
    script = Script(written(mode, "Sure! ```json {'name': 'pen', 'qty': 3,}```"))
    result, record = run(Agent(script.model, output_type=MODES[mode](Item), capabilities=[Aros()]))
    assert result.output == PEN
    assert script.calls == 1
    assert record.outcome.repairs
    assert record.outcome.origin == "first"


@pytest.mark.parametrize("mode", MODES)
def test_an_unreadable_reply_is_repaired_by_one_bare_call(mode):
    script = Script(written(mode, BAD), GOOD)
    agent = Agent(
        script.model, output_type=MODES[mode](Item), instructions="Be brief.", capabilities=[Aros(ladder=REPAIR)]
    )
    agent.tool_plain(lookup)
    result, record = run(agent, "my private question")
    assert result.output == PEN
    assert script.calls == record.calls == 2
    assert record.stages == [StageRecord("llm_repair", "accepted", None, 1)]
    assert record.outcome.origin == "llm_repair"
    asked, info = script.prompt(1), script.infos[1]
    assert BAD in asked
    assert "private" not in asked
    assert not info.function_tools
    assert not info.output_tools
    assert info.instructions is None


def lookup() -> str:
    """Look something up."""
    return "nothing"


def test_arguments_written_as_text_become_the_call_that_was_meant():
    script = Script("Here: {'name': 'pen', 'qty': 3}")
    result, record = run(Agent(script.model, output_type=ToolOutput(Item), capabilities=[Aros()]))
    assert result.output == PEN
    assert script.calls == 1
    assert record.outcome.repairs, "the record still shows what the model really wrote"
    (made,) = result.all_messages()[1].tool_calls
    assert json.loads(made.args) == {"name": "pen", "qty": 3}


def test_prose_instead_of_a_call_is_left_to_the_retry_of_the_host():
    script = Script("I will think about it.", call(GOOD))
    result, record = run(Agent(script.model, output_type=ToolOutput(Item), capabilities=[Aros()]))
    assert result.output == PEN
    assert script.calls == 2
    assert record.stages == []


def test_prose_instead_of_a_call_climbs_the_ladder_where_the_host_would_give_up():
    script = Script("three pens", GOOD)
    result, _ = run(Agent(script.model, output_type=ToolOutput(Item), retries=0, capabilities=[Aros()]))
    assert result.output == PEN


def json_mode_error(text):
    return ModelHTTPError(400, "m", {"error": {"code": "json_validate_failed", "failed_generation": text}})


def test_the_text_in_an_error_of_the_json_mode_is_read():
    script = Script(json_mode_error("{'name': 'pen', 'qty': 3}"))
    result, _ = run(Agent(script.model, output_type=NativeOutput(Item), capabilities=[Aros()]))
    assert result.output == PEN
    assert result.usage.unmeasured_requests == 1


def test_a_body_with_the_output_is_read_and_one_without_is_asked_about():
    agent = Agent(output_type=NativeOutput(Item), capabilities=[Aros()])
    result, _ = run(agent, model=Script(UnexpectedModelBehavior("odd", body=GOOD)).model)
    assert (result.output, result.metadata["aros"]["calls"]) == (PEN, 1)
    result, _ = run(agent, model=Script(UnexpectedModelBehavior("odd", body="<html>"), GOOD).model)
    assert (result.output, result.metadata["aros"]["origin"]) == (PEN, "retry")


def test_a_provider_that_is_busy_raises_its_own_error():
    agent = Agent(output_type=NativeOutput(Item), capabilities=[Aros()])
    with pytest.raises(ModelHTTPError):
        run(agent, model=Script(ModelHTTPError(503, "m", "busy")).model)


def test_a_truncated_output_is_neither_completed_nor_repaired_as_if_it_were_complete():
    script = Script('{"name": "pen", "qty": 3', '"qty": 4}', finish="length")
    with pytest.raises(OutputError) as caught:
        run(Agent(script.model, output_type=PromptedOutput(Item), capabilities=[Aros()]))
    assert caught.value.reason is Reason.TRUNCATED
    assert caught.value.stages == ("resume", "degrade")
    assert script.calls == 2


def test_an_output_that_stays_bad_raises_with_everything_known():
    script = Script(BAD, "no", "no")
    repair = Aros(None, Ladder(stages=(LlmRepair(attempts=2),)))
    with pytest.raises(OutputError) as caught:
        run(Agent(script.model, output_type=PromptedOutput(Item), capabilities=[repair]))
    error = caught.value
    assert error.reason is Reason.INVALID
    assert error.issues[0].path == "$.qty"
    assert error.stages == ("llm_repair",)
    assert error.texts == (BAD, "no", "no")
    assert error.usage.requests == 3
    assert BAD not in str(error)


def test_a_degraded_output_is_never_a_value():
    ladder = Ladder(stages=(Degrade(),))
    with recording() as record, pytest.raises(OutputError):
        asyncio.run(
            Agent(Script(BAD).model, output_type=PromptedOutput(Item), capabilities=[Aros(None, ladder)]).run("x")
        )
    assert isinstance(record.outcome, Degraded)
    assert record.outcome.text == BAD


def test_usage_counts_the_repair_calls_with_their_cost():
    used = RequestUsage(input_tokens=1000, output_tokens=200)
    reply = lambda text: ModelResponse(parts=[TextPart(text)], usage=used, finish_reason="stop")  # noqa: E731
    usage, heard = RunUsage(), []
    script = Script(reply(BAD), reply(GOOD))
    with observing(heard.append):
        run(Agent(script.model, output_type=PromptedOutput(Item), capabilities=[Aros(ladder=REPAIR)]), usage=usage)
    assert (usage.requests, usage.input_tokens, usage.output_tokens) == (2, 2000, 400)
    first, started = [event for event in heard if isinstance(event, AskStarted)]
    _, ended = [event for event in heard if isinstance(event, AskFinished)]
    assert first.stage == "first"
    assert (started.stage, started.attempt) == ("llm_repair", 1)
    assert (ended.usage.requests, ended.usage.input_tokens, ended.usage.output_tokens) == (1, 1000, 200)


def test_a_limit_is_honoured_before_the_repair_call():
    script, usage = Script(BAD, GOOD), RunUsage()
    with recording() as record, pytest.raises(UsageLimitExceeded):
        agent = Agent(script.model, output_type=PromptedOutput(Item), capabilities=[Aros()])
        asyncio.run(agent.run("x", usage=usage, usage_limits=UsageLimits(request_limit=1)))
    assert script.calls == record.calls == usage.requests == 1


def test_the_settings_of_the_run_reach_the_repair_call():
    script = Script(BAD, GOOD)
    agent = Agent(script.model, output_type=PromptedOutput(Item), capabilities=[Aros()])
    run(agent, model_settings={"temperature": 0.2, "seed": 7, "parallel_tool_calls": False})
    assert script.infos[1].model_settings == {"temperature": 0.2, "seed": 7}


def test_a_provider_that_fails_in_a_repair_does_not_end_the_run():
    script = Script(BAD, ModelHTTPError(503, "m", "busy"), GOOD)
    result, record = run(Agent(script.model, output_type=PromptedOutput(Item), capabilities=[Aros()]))
    assert result.output == PEN
    assert record.calls == 3
    assert record.spent.requests == 3


@pytest.mark.parametrize(
    "signal", [CallDeferred(), ApprovalRequired(), KeyError("mine")], ids=lambda s: type(s).__name__
)
def test_control_flow_and_errors_of_the_caller_pass_through(signal):
    def act(item: Item) -> str:
        raise signal

    with pytest.raises(type(signal)):
        run(Agent(Script(GOOD).model, output_type=PromptedOutput(act), capabilities=[Aros()]))


def test_a_retry_requested_by_an_output_validator_reaches_the_host():
    script = Script(GOOD, '{"name": "pencil", "qty": 3}')
    agent = Agent(script.model, output_type=PromptedOutput(Item), capabilities=[Aros()])

    @agent.output_validator
    def check(item: Item) -> Item:
        if item.name == "pen":
            raise ModelRetry("longer")
        return item

    result, record = run(agent)
    assert result.output.name == "pencil"
    assert script.calls == 2
    assert record.stages == []


def test_cancellation_passes_through():
    async def main():
        async def forever(messages, info):
            await asyncio.sleep(60)

        script = Script(BAD)
        script.model = type(script.model)(forever)
        task = asyncio.create_task(
            Agent(script.model, output_type=PromptedOutput(Item), capabilities=[Aros()]).run("x")
        )
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def even(value: int) -> int:
    if value % 2:
        raise ValueError("must be even")
    return value


def test_values_rejected_only_by_the_host_go_through_the_ladder():
    def act(qty: Annotated[int, AfterValidator(even)], name: str) -> str:
        return f"{qty} {name}"

    script = Script('{"qty": 3, "name": "pen"}', '{"qty": 4, "name": "pen"}')
    result, record = run(Agent(script.model, output_type=PromptedOutput(act), capabilities=[Aros()]))
    assert result.output == "4 pen"
    assert "must be even" in script.prompt(1)
    assert record.stages == [StageRecord("retry", "accepted", None, 1)], "a repair would have made the number up"


def test_a_repair_that_the_host_rejects_is_invalid():
    def act(qty: Annotated[int, AfterValidator(even)], name: str) -> str:
        return f"{qty} {name}"

    script = Script('{"qty": 3, "name": "pen"}', '{"qty": 5, "name": "pen"}')
    with pytest.raises(OutputError) as caught:
        run(Agent(script.model, output_type=PromptedOutput(act), capabilities=[Aros()]))
    assert caught.value.reason is Reason.INVALID


def test_the_host_receives_the_value_as_read_and_not_reserialized():
    class Login(BaseModel):
        user: str
        password: SecretStr
        hidden: int = Field(exclude=True)

    script = Script("{'user': 'a', 'password': 'b', 'hidden': 3}")
    result, _ = run(Agent(script.model, output_type=PromptedOutput(Login), capabilities=[Aros()]))
    assert result.output.password.get_secret_value() == "b"
    assert result.output.hidden == 3


def test_a_structured_dict_is_held_to_its_schema():
    schema = {"type": "object", "title": "A", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    script = Script('{"a": "not a number"}', '{"a": 1}')
    result, _ = run(Agent(script.model, output_type=PromptedOutput(StructuredDict(schema)), capabilities=[Aros()]))
    assert result.output == {"a": 1}
    assert script.calls == 2


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("like", "payload", "value"),
    [
        (int, "3", 3),
        (list[Item], '[{"name": "pen", "qty": 3}]', [PEN]),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (date, '"2026-01-31"', date(2026, 1, 31)),
        (Decimal, '"1.10"', Decimal("1.10")),
    ],
    ids=["int", "list", "dict", "date", "decimal"],
)
def test_values_that_are_not_objects_travel_in_the_envelope_of_the_host(mode, like, payload, value):
    agent = Agent(output_type=MODES[mode](like), capabilities=[Aros()])
    for text, calls in ((f'{{"response": {payload}}}', 1), (f"Sure: {{'response': {payload},}}", 1)):
        script = Script(written(mode, text))
        result, record = run(agent, model=script.model)
        assert result.output == value
        assert script.calls == calls
        assert record.outcome.value == value


@pytest.mark.parametrize("mode", ["native", "prompted"])
@pytest.mark.parametrize(
    ("like", "text", "value"),
    [
        (int, "3", 3),
        (bool, "Yes.", True),
        (list[Item], f"Here you are:\n[{GOOD}]", [PEN]),
        (list[str], "- a\n- b", ["a", "b"]),
        (dict[str, int], '{"a": "1"}', {"a": 1}),
        (dict[str, Any], '{"respons": {"a": 1}}', {"a": 1}),
        ([Item, Plain], GOOD, PEN),
        ([Item, Plain], f'{{"kind": "Item", "data": {GOOD}}}', PEN),
    ],
    ids=["int", "bool", "list", "lines", "dict", "a misspelt key", "union", "kind and data"],
)
def test_a_value_without_the_envelope_of_the_host_needs_no_second_call(mode, like, text, value):
    script = Script(text)
    result, record = run(Agent(output_type=MODES[mode](like), capabilities=[Aros()]), model=script.model)
    assert (result.output, script.calls) == (value, 1)
    assert record.outcome.value == value


@pytest.mark.parametrize(
    ("like", "text"),
    [
        ([Item, Plain], f'{{"kind": "Plain", "data": {GOOD}}}'),
        ([Item, Priced], GOOD),
        (list[int], "[1, 2"),
        (dict[str, Any], '{"a": 1}'),
    ],
    ids=["of another kind", "either of two types", "cut", "perhaps a misspelt key"],
)
def test_a_value_without_the_envelope_of_the_host_that_is_in_doubt_is_rejected(like, text):
    agent = Agent(output_type=PromptedOutput(like), capabilities=[Aros(ladder=Ladder(stages=[]))])
    with pytest.raises(OutputError):
        run(agent, model=Script(text).model)


def test_a_named_contract_is_enforced_along_with_the_output_type():
    schema = {"type": "object", "properties": {"qty": {"type": "integer", "maximum": 9}}, "required": ["name", "qty"]}
    script = Script('{"name": "pen", "qty": 12}', '{"name": "pen", "qty": 9}')
    result, record = run(Agent(script.model, output_type=PromptedOutput(Item), capabilities=[Aros(schema)]))
    assert result.output == Item(name="pen", qty=9)
    assert record.outcome.value == {"name": "pen", "qty": 9}
    with pytest.raises(ContractError):
        Aros({"type": "nonsense"})


def test_a_union_is_read_too():
    class Other(BaseModel):
        b: str

    script = Script("Sure! {'result': {'kind': 'Other', 'data': {'b': 'x'}},}")
    result, _ = run(Agent(script.model, output_type=PromptedOutput([Item, Other]), capabilities=[Aros()]))
    assert result.output == Other(b="x")


def test_a_validator_that_wants_the_context_of_the_run_is_left_to_the_host():
    class Scoped(BaseModel):
        a: int

        @field_validator("a")
        @classmethod
        def bounded(cls, value: int, info: ValidationInfo) -> int:
            if value > info.context["most"]:
                raise ValueError("too much")
            return value

    agent = Agent(
        Script('{"a": 3}').model,
        output_type=PromptedOutput(Scoped),
        validation_context={"most": 5},
        capabilities=[Aros()],
    )
    assert run(agent)[0].output.a == 3


def test_a_repaired_value_that_the_host_still_rejects_is_no_value_even_if_the_ladder_can_degrade():
    class Scoped(BaseModel):
        a: int

        @model_validator(mode="after")
        def bounded(self, info: ValidationInfo) -> Self:
            if self.a > info.context["most"]:
                raise ValueError("too much")
            return self

    agent = Agent(
        Script('{"a": 9}', '{"a": 8}').model,
        output_type=PromptedOutput(Scoped),
        validation_context={"most": 5},
        capabilities=[Aros(ladder=Ladder(stages=(Retry(), Degrade())))],
    )
    with recording() as record, pytest.raises(OutputError):
        asyncio.run(agent.run("x"))
    assert isinstance(record.outcome, Rejected)
    assert (record.outcome.reason, record.outcome.issues[0].path) == (Reason.INVALID, "$")
    assert record.calls == 2


@pytest.mark.parametrize(
    ("error", "output"),
    [(ContentFilterError("blocked"), str), (UnexpectedModelBehavior("no body"), PromptedOutput(Item))],
    ids=["a filter, for plain text", "any other error without a reply"],
)
def test_an_error_that_is_not_about_an_output_stays_the_host_s_own(error, output):
    agent = Agent(Script(error).model, output_type=output, capabilities=[Aros(ladder=Ladder(stages=()))])
    with pytest.raises(UnexpectedModelBehavior) as raised:
        run(agent)
    assert type(raised.value) is type(error)


def test_text_outputs_are_left_alone():
    result, record = run(Agent(Script("{'a': 1,}").model, capabilities=[Aros()]))
    assert result.output == "{'a': 1,}"
    assert record.outcome is None


def test_an_output_tool_called_without_arguments_means_an_empty_object():
    class Empty(BaseModel):
        a: int = 1

    for args in ("", None, {}):
        assert run(Agent(Script(call(args)).model, output_type=Empty, capabilities=[Aros()]))[0].output == Empty()


def test_a_record_belongs_to_one_run_only():
    inner = Agent(Script(BAD, GOOD).model, output_type=PromptedOutput(Item), capabilities=[Aros()])
    outer = Agent(Script(call("{}", "ask"), GOOD).model, output_type=PromptedOutput(Item), capabilities=[Aros()])

    @outer.tool_plain
    async def ask() -> str:
        return str((await inner.run("y")).output)

    result, record = run(outer)
    assert result.output == PEN
    assert record.stages == []
    assert record.texts == [GOOD]


def test_one_agent_serves_many_runs_at_once():
    cap = Aros(ladder=REPAIR)

    async def answer(messages, info):
        prompt = messages[-1].parts[-1].content
        await asyncio.sleep(0)
        number = "".join(c for c in prompt.split("OUTPUT")[-1] if c.isdigit())
        qty = 1 if "OUTPUT" in prompt else '"it is one"'
        text = f'{{"name": "{number}", "qty": {qty}}}'
        return ModelResponse(parts=[TextPart(text)], finish_reason="stop")

    agent = Agent(type(Script().model)(answer), output_type=PromptedOutput(Item), capabilities=[cap])

    async def one(number):
        with recording() as record:
            result = await agent.run(f"item {number}")
        return result.output.name, record.calls, record.outcome.value.name

    async def main():
        return await asyncio.gather(*(one(number) for number in range(30)))

    assert asyncio.run(main()) == [(str(n), 2, str(n)) for n in range(30)]
    assert not cap._runs


async def streamed(agent, model):
    async with agent.run_stream_events("x", model=model) as stream:
        async for event in stream:
            if isinstance(event, AgentRunResultEvent):
                return event.result.output
    return None


async def opened(agent, model):
    async with agent.run_stream("x", model=model) as stream:
        return await stream.get_output()


@pytest.mark.parametrize("way", [streamed, opened])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("buffered", [False, True])
def test_streamed_runs_recover_too(way, mode, buffered):
    agent = Agent(output_type=MODES[mode](Item), capabilities=[Aros(buffer_stream=buffered)])
    for replies in ([written(mode, "Sure! {'name': 'pen', 'qty': 3,}")], [written(mode, BAD), GOOD]):
        script = Script(*replies)
        assert asyncio.run(way(agent, script.model)) == PEN
        assert script.calls == len(replies)


def test_partial_outputs_are_the_business_of_the_host():
    async def main():
        heard = []
        agent = Agent(output_type=PromptedOutput(Item), capabilities=[Aros()])
        with observing(heard.append):
            async with agent.run_stream("x", model=Script(GOOD).model) as stream:
                partials = [partial async for partial in stream.stream_output(debounce_by=None)]
        return partials, [event for event in heard if isinstance(event, ReadFinished)]

    partials, reads = asyncio.run(main())
    assert partials[-1] == PEN
    assert len(reads) <= 2


def test_an_error_in_mid_stream_is_repaired_when_streams_are_buffered():
    async def breaks(messages, info):
        yield '{"na'
        raise json_mode_error("{'name': 'pen', 'qty': 3}")

    async def main():
        model = type(Script().model)(stream_function=breaks, profile=Script().model.profile)
        return await opened(Agent(output_type=NativeOutput(Item), capabilities=[Aros(buffer_stream=True)]), model)

    assert asyncio.run(main()) == PEN


def test_an_agent_spec_may_name_it():
    spec = {
        "model": "test",
        "capabilities": [
            {"Aros": {"ladder": {"stages": [{"stage": "llm_repair", "attempts": 1}]}, "buffer_stream": True}}
        ],
        "output_schema": {"type": "object", "title": "A", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    }
    agent = Agent.from_spec(spec, custom_capability_types=[Aros])
    script = Script(call('{"a": "it is 1"}'), '{"a": 1}')
    assert run(agent, model=script.model)[0].output == {"a": 1}
    found = []
    agent.root_capability.apply(found.append)
    (mine,) = [part for part in found if isinstance(part, Aros)]
    assert mine == Aros(None, Ladder(stages=(LlmRepair(attempts=1),)), buffer_stream=True)
    assert run(Agent.from_spec({"model": "test", "capabilities": ["Aros"]}, custom_capability_types=[Aros]))[0].output


def test_an_invalid_ladder_is_rejected_at_its_place():
    with pytest.raises(UsageError, match="must be a Ladder"):
        Aros(ladder=["retry"])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(UsageError, match=r"must be a Ladder, .*; Ladder\.model_validate\(…\) makes one of data"):
        Aros(ladder={"stages": ["retry"]})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(
        UsageError, match=r"Aros: ladder\.stages\[0\] cannot be used: unknown stage 'retyr'; did you mean 'retry'?"
    ):
        Aros.from_spec(ladder={"stages": ["retyr"]})


def test_a_class_in_place_of_an_object_is_rejected_with_advice() -> None:
    """pydantic-ai would take it as a factory of capabilities."""
    agent = Agent(TestModel(), output_type=int, capabilities=[Aros])
    with pytest.raises(UsageError, match=r"write capabilities=\[Aros\(\)\]"):
        asyncio.run(agent.run("x"))
