"""How the requests of a ladder reach a model: their messages, schema, model and cost."""

import asyncio
import json
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic_ai import Agent, PromptedOutput
from pydantic_ai.exceptions import ModelHTTPError, UnexpectedModelBehavior, UsageLimitExceeded
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models import ModelRequestContext, ModelRequestParameters
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.usage import RequestUsage, RunUsage, UsageLimits

from flujo_aros import AgentSpec, Aros, OutputError, Reason, Usage, UsageError, current_settings, observing
from flujo_aros.contract import Output, compile_contract
from flujo_aros.events import AskFinished, AskStarted
from flujo_aros.host import Run, ask_model, native_of, recording, run_agent
from flujo_aros.recovery import Ask, Degrade, Escalate, Ladder, LlmRepair, Resume, Retry

from .matrix import Item
from .scripted import PROFILE, OneModel, Script

GOOD = '{"name": "pen", "qty": 3}'
BAD = '{"name": "pen", "qty": "it is 3"}'
CONTRACT = compile_contract(Item)
PLAIN = ModelProfile(supports_json_schema_output=False)


def asked(script, ask, *, conversation=None, resolve=None):
    question = ModelRequest(parts=[UserPromptPart("How many?")], instructions="Be brief.")
    messages = [question] if conversation is None else [*conversation]
    run = Run(resolve=resolve, messages=messages)
    run.model = script.model
    return asyncio.run(ask_model(run, ask))


def reported(messages):
    """Return the kinds and texts of the messages of a request."""
    return [(part.part_kind, part.content) for message in messages for part in message.parts]


def agent(script, *stages, **options):
    aros = Aros(None, Ladder(stages=stages, **options))
    return Agent(script.model, output_type=PromptedOutput(Item), instructions="Be brief.", capabilities=[aros])


def test_a_bare_request_carries_only_its_prompt():
    script = Script("yes")
    reply = asked(script, Ask("Repair this.", "llm_repair", 1, CONTRACT))
    assert reply.text == "yes"
    assert reported(script.requests[0]) == [("user-prompt", "Repair this.")]
    assert script.infos[0].instructions is None


def test_an_ask_in_the_conversation_has_the_question_the_turns_and_the_prompt():
    script = Script("yes")
    asked(script, Ask("Again.", "retry", 2, CONTRACT, way="conversation", said=("one", "try again", "two")))
    assert reported(script.requests[0]) == [
        ("user-prompt", "How many?"),
        ("text", "one"),
        ("user-prompt", "try again"),
        ("text", "two"),
        ("user-prompt", "Again."),
    ]
    assert script.infos[0].instructions == "Be brief."
    assert not script.infos[0].function_tools


def test_an_ask_without_a_prompt_puts_the_question_once_more_with_more_room():
    script = Script(GOOD)
    asked(script, Ask("", "resume", 1, CONTRACT, way="conversation", max_tokens=400))
    assert reported(script.requests[0]) == [("user-prompt", "How many?")]
    assert script.infos[0].model_settings["max_tokens"] == 400


def test_a_constrained_ask_enforces_the_schema_after_earlier_turns_too():
    script = Script(GOOD)
    asked(script, Ask("Again.", "retry", 1, CONTRACT, way="constrained", said=(BAD,)))
    assert script.infos[0].model_request_parameters.output_mode == "native"
    assert reported(script.requests[0])[1] == ("text", BAD)


def test_a_constrained_reply_rejected_by_the_host_is_read_like_any_other():
    reply = asked(Script("{'name': 'pen', 'qty': 3,}"), Ask("", "constrain", 1, CONTRACT, way="constrained"))
    assert (reply.text, reply.fault) == ("{'name': 'pen', 'qty': 3,}", None)
    reply = asked(Script(GOOD[:-3], finish="length"), Ask("", "constrain", 1, CONTRACT, way="constrained"))
    assert (reply.text, reply.truncated) == (GOOD[:-3], True)


@pytest.mark.parametrize(
    ("script", "ask", "words"),
    [
        (
            Script(GOOD, profile=PLAIN),
            Ask("", "constrain", 1, CONTRACT, way="constrained"),
            "has no mode that enforces",
        ),
        (Script(GOOD), Ask("x", "escalate", 1, CONTRACT, model="nowhere:model"), "nowhere:model"),
    ],
)
def test_an_impossible_request_is_reported_without_a_call(script, ask, words):
    heard = []
    with observing(heard.append):
        reply = asked(script, ask)
    assert words in (reply.unmade or "")
    assert script.calls == 0
    assert heard == []


def test_a_question_cannot_be_asked_without_the_messages_of_the_run():
    reply = asked(Script(GOOD), Ask("", "retry", 1, CONTRACT, way="conversation"), conversation=())
    assert "are unknown" in (reply.unmade or "")


def test_a_named_model_comes_from_the_resolver():
    main, other, names = Script(), Script(GOOD), []

    async def resolve(name):
        names.append(name)
        return other.model

    reply = asked(main, Ask("x", "escalate", 1, CONTRACT, model="local:big"), resolve=resolve)
    assert reply.text == GOOD
    assert names == ["local:big"]
    assert (main.calls, other.calls) == (0, 1)


def test_a_model_that_the_resolver_does_not_have_is_reported():
    async def resolve(name):
        message = f"no {name} here"
        raise UsageError(message)

    assert (
        asked(Script(), Ask("x", "escalate", 1, CONTRACT, model="local:big"), resolve=resolve).unmade
        == "no local:big here"
    )


def test_the_profile_and_the_request_say_whether_a_schema_can_be_enforced():
    native = ModelRequestParameters(output_mode="native")
    prompted = ModelRequestParameters(output_mode="prompted")
    able, plain = Script().model, Script(profile=PLAIN).model

    def said_of(model, parameters, contract):
        run = Run()
        run.model = model
        run.exchange.request = ModelRequestContext(
            model=model, messages=[], model_settings=None, model_request_parameters=parameters
        )
        return native_of(run, contract)

    assert said_of(able, native, CONTRACT) == "on"
    assert said_of(able, prompted, CONTRACT) == said_of(able, ModelRequestParameters(), CONTRACT) == "can"
    assert said_of(plain, prompted, CONTRACT) == "no"
    assert said_of(able, prompted, Output.json(list[int])) == "can"
    assert said_of(able, prompted, Output.tagged("r", Item)) == "no"


def test_a_retry_in_a_run_continues_its_conversation_in_native_mode_without_tools():
    script = Script(BAD, GOOD)
    made = agent(script, Retry())

    @made.tool_plain
    def lookup() -> str:
        """Look something up."""
        return "nothing"

    assert asyncio.run(made.run("How many?")).output == Item(name="pen", qty=3)
    assert reported(script.requests[1]) == [("user-prompt", "How many?")], (
        "no feedback on a form that cannot be wrong now"
    )
    assert script.infos[1].model_request_parameters.output_mode == "native"
    assert not script.infos[1].function_tools
    assert "Be brief." in script.infos[1].instructions


def test_a_retry_for_a_model_without_a_schema_mode_puts_the_schema_in_the_prompt():
    script = Script(BAD, GOOD, profile=PLAIN)
    asyncio.run(agent(script, Retry()).run("How many?"))
    assert script.infos[1].model_request_parameters.output_mode == "text"


def test_a_truncated_reply_is_resumed_with_the_rest_or_a_larger_budget():
    whole = json.dumps({"name": "a rather long name of a pen", "qty": 3})
    script = Script(whole[:40], whole[20:], finish="length")
    cut = ModelResponse(parts=[TextPart(whole[:40])], finish_reason="length")
    rest = ModelResponse(parts=[TextPart(whole[16:])], finish_reason="stop")
    script = Script(cut, rest)
    assert asyncio.run(agent(script, Resume()).run("x")).output.qty == 3
    assert reported(script.requests[1])[1] == ("text", whole[:40])
    script = Script(cut, ModelResponse(parts=[TextPart(whole)], finish_reason="stop"))
    asyncio.run(agent(script, Resume()).run("x", model_settings={"max_tokens": 10}))
    assert script.infos[1].model_settings["max_tokens"] == 40
    assert reported(script.requests[1]) == [("user-prompt", "x")]


def test_an_unknown_model_in_a_ladder_leaves_the_rejection_and_says_why():
    with recording() as record, pytest.raises(OutputError) as caught:
        asyncio.run(agent(Script(BAD), Escalate(model="nowhere:model")).run("x"))
    assert caught.value.reason is Reason.INVALID
    assert "nowhere:model" in caught.value.explain()
    assert record.calls == 1


def test_a_limit_of_the_caller_is_honoured_before_a_call_and_without_its_events():
    script, heard = Script(BAD, GOOD), []
    with observing(heard.append), pytest.raises(UsageLimitExceeded):
        asyncio.run(agent(script, Retry()).run("x", usage_limits=UsageLimits(request_limit=1)))
    assert script.calls == 1
    assert [event.stage for event in heard if isinstance(event, AskStarted)] == ["first"]


class Costly:
    """A model that answers from a list, each reply with its token usage; an error is raised, `None` hangs."""

    def __init__(self, replies):
        self.replies = list(replies)
        self.used = []
        self.model = FunctionModel(self.answer, profile=PLAIN)

    async def answer(self, messages, info):
        text, tokens = self.replies.pop(0)
        self.used.append(0 if text == "error" else tokens)
        if text == "error":
            raise ModelHTTPError(503, "m", "busy")
        return ModelResponse(parts=[TextPart(text)], usage=RequestUsage(input_tokens=tokens, output_tokens=1))


REPLIES = st.lists(
    st.tuples(st.sampled_from([BAD, "prose", "error", GOOD, "{", "[1]"]), st.integers(1, 90)), min_size=12, max_size=12
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from([BAD, "prose", "{"]), REPLIES, st.integers(0, 4))
def test_the_usage_of_all_stages_and_of_the_run_is_the_sum_over_the_model_calls(first, replies, max_calls):
    costly = Costly([(first, 7), *replies])
    stages = (LlmRepair(attempts=2), Retry(attempts=2), Degrade())
    made = Agent(
        costly.model,
        output_type=PromptedOutput(Item),
        capabilities=[Aros(None, Ladder(stages=stages, max_calls=max_calls))],
    )
    usage, heard = RunUsage(), []
    with recording() as record, observing(heard.append):
        try:
            asyncio.run(made.run("x", usage=usage))
        except OutputError as error:
            assert error.usage.requests == len(costly.used)
            assert error.usage.input_tokens == sum(costly.used)
            assert Usage.total(attempt.usage for attempt in error.attempts).input_tokens == sum(costly.used)
    by_stage = Usage.total(stage.usage for stage in record.stages)
    asks = [event for event in heard if isinstance(event, AskFinished) and event.stage != "first"]
    assert by_stage == Usage.total(event.usage for event in asks)
    assert (by_stage.requests, by_stage.input_tokens) == (len(costly.used) - 1, sum(costly.used[1:]))
    assert sum(stage.calls for stage in record.stages) == by_stage.requests <= max_calls
    assert record.spent.requests == len(costly.used)
    assert record.spent.input_tokens == sum(costly.used)


def test_a_cancelled_call_is_counted_and_its_stage_reported():
    started = asyncio.Event()

    async def answer(messages, info):
        if len(calls) == 1:
            started.set()
            await asyncio.sleep(60)
        calls.append(1)
        return ModelResponse(parts=[TextPart(BAD)], usage=RequestUsage(input_tokens=5))

    calls = []
    made = Agent(FunctionModel(answer, profile=PLAIN), output_type=PromptedOutput(Item), capabilities=[Aros()])

    async def main():
        usage = RunUsage()
        with recording() as record:
            run = asyncio.create_task(made.run("x", usage=usage))
            await started.wait()
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run
        return record, record.spent

    record, spent = asyncio.run(main())
    assert (spent.requests, spent.unmeasured_requests, spent.input_tokens) == (2, 1, 5)
    (stage,) = record.stages
    assert (stage.stage, stage.outcome, stage.usage) == (
        "llm_repair",
        "interrupted",
        Usage(requests=1, unmeasured_requests=1),
    )


def test_a_ladder_counts_the_cost_of_its_calls():
    def priced(text):
        usage = RequestUsage(input_tokens=1000, output_tokens=200)
        return ModelResponse(parts=[TextPart(text)], usage=usage, provider_name="openai")

    script = Script(priced(BAD), *[priced("no")] * 6, name="gpt-4o")
    with pytest.raises(OutputError) as caught:
        asyncio.run(agent(script, LlmRepair(attempts=5), max_cost=Decimal("0.000001")).run("x"))
    assert caught.value.usage.cost == pytest.approx(Decimal("0.009"))
    assert script.calls == 2


def test_a_call_with_an_unknown_price_counts_as_zero():
    script = Script(BAD, *["no"] * 6)
    with pytest.raises(OutputError):
        asyncio.run(agent(script, LlmRepair(attempts=5), max_cost=Decimal("0.000001")).run("x"))
    assert script.calls == 6


def test_a_cost_that_the_provider_reports_is_not_calculated_again():
    usage = RequestUsage(input_tokens=1000, output_tokens=200, cost=Decimal("0.5"))
    script = Script(ModelResponse([TextPart(GOOD)], usage=usage, provider_name="openai"), name="gpt-4o")
    assert asyncio.run(agent(script).run("x")).usage.cost == Decimal("0.5")


@pytest.mark.parametrize("profile", [PLAIN, PROFILE])
def test_a_repeated_question_includes_the_schema_of_its_answer(profile):
    cut = ModelResponse(parts=[TextPart(GOOD[:-8])], finish_reason="length")
    script = Script(cut, GOOD, profile=profile)
    assert asyncio.run(agent(script, Resume()).run("x", model_settings={"max_tokens": 10})).output.qty == 3
    assert "qty" in str(script.infos[1].model_request_parameters.output_object or script.infos[1].instructions)


@pytest.fixture
def environment(monkeypatch):
    """Set environment variables for the settings, and reset the settings before and after."""

    def put(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        current_settings.cache_clear()

    yield put
    current_settings.cache_clear()


def test_the_settings_of_the_environment_shape_the_default_ladder(environment):
    environment(AROS_REPAIR__ENABLE_LLM="false", AROS_FALLBACK__MAX_STAGES="1")
    with recording() as record, pytest.raises(OutputError):
        made = Agent(Script(BAD, "no").model, output_type=PromptedOutput(Item), capabilities=[Aros()])
        asyncio.run(made.run("x"))
    assert [stage.stage for stage in record.stages] == ["retry"]


def test_errors_of_a_json_mode_may_be_raised_as_they_are(environment):
    environment(AROS_DEGRADE_ON_UNEXPECTED_BEHAVIOR="false")
    body = {"error": {"code": "json_validate_failed", "failed_generation": GOOD}}
    script = Script(ModelHTTPError(400, "m", body))
    with pytest.raises(ModelHTTPError):
        asyncio.run(Agent(script.model, output_type=PromptedOutput(Item), capabilities=[Aros()]).run("x"))


@pytest.mark.parametrize(("degrades", "calls"), [("true", 2), ("false", 1)])
def test_errors_without_the_reply_defer_to_the_ladder_only_where_the_settings_say_so(environment, degrades, calls):
    environment(AROS_DEGRADE_ON_UNEXPECTED_BEHAVIOR=degrades)
    script = Script(UnexpectedModelBehavior("no JSON"), '{"name": "pen", "qty": 3}')
    spec = AgentSpec(model="local:m")
    run = asyncio.run(run_agent(spec, "x", Output.json(Item), models=OneModel(script.model)))
    assert (script.calls, run.outcome.kind) == (calls, "accepted" if calls == 2 else "rejected")
    assert [stage.stage for stage in run.stages] == ["retry"] * (calls - 1)
