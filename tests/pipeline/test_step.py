"""Agent steps and function steps: what reaches the model, what values are valid, and how they fail."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import pytest
from pydantic import BaseModel, ConfigDict, Field, computed_field, field_serializer
from pydantic_ai import Agent, DeferredToolRequests, PromptedOutput
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel

from flujo_aros import (
    AgentSpec,
    Call,
    ContractError,
    Human,
    Issue,
    OutputError,
    Processing,
    Risk,
    Runner,
    RunStatus,
    Step,
    StepStatus,
    TemplateError,
    UsageError,
    check,
    read,
)
from flujo_aros.blueprint.load import parse_blueprint
from flujo_aros.contract import Output, compile_contract, with_checks
from flujo_aros.events import AskStarted, Event
from flujo_aros.recovery import Achieved, Evidence
from flujo_aros.testing import ScriptedModel

SCHEMA: dict[str, Any] = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}


class Seen:
    """A scripted model that records its requests."""

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)
        self.messages: list[list[ModelMessage]] = []
        self.settings: list[dict[str, Any]] = []
        self.model = FunctionModel(self._answer)

    def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.messages.append(messages)
        self.settings.append(dict(info.model_settings or {}))
        return ModelResponse([TextPart(self.replies.pop(0))])

    @property
    def prompts(self) -> list[str]:
        """Return the last user prompt of each call."""
        found: list[str] = []
        for messages in self.messages:
            last = messages[-1]
            assert isinstance(last, ModelRequest)
            found.append(str(last.parts[-1].content))  # type: ignore[union-attr]  # a user prompt here
        return found


class Scripted:
    """Serves the scripted model under every local name, and records the names."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.asked: list[str] = []

    async def model(self, name: str) -> Model:
        self.asked.append(name)
        return self._model

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        return None


@pytest.fixture
def local(monkeypatch: pytest.MonkeyPatch) -> Callable[[Model], Scripted]:
    def use(model: Model) -> Scripted:
        source = Scripted(model)
        monkeypatch.setattr("flujo_aros.host.local.LocalModels", lambda: source)
        monkeypatch.setattr("flujo_aros.host.local.check_local", lambda _names: None)
        return source

    return use


# What reaches the model


def test_an_object_input_reaches_the_model_as_json_with_its_leaves_rendered():
    seen = Seen("ok")
    step = Step("a", Agent(seen.model), input={"who": "{{ input }}", "all": "{{ context.tags }}", "n": 3})
    Runner(step).run_sync("Ann", {"tags": ["x"]})
    assert json.loads(seen.prompts[0]) == {"who": "Ann", "all": ["x"], "n": 3}


def test_an_object_input_reaches_a_callable_as_an_object():
    step = Call("a", function=lambda value: value, input={"who": "{{ input.name }}", "list": ["{{ input }}", 1]})
    assert Runner(step).run_sync({"name": "Ann"}).output == {"who": "Ann", "list": [{"name": "Ann"}, 1]}


def test_an_infinitely_nested_input_is_rejected():
    endless: dict[str, Any] = {}
    endless["a"] = endless
    with pytest.raises(TemplateError, match="input of step 'a' is nested too deeply"):
        Call("a", function=len, input=endless)


def test_a_leaf_with_a_missing_name_says_which_leaf():
    step = Call("a", function=len, input={"who": {"name": "{{ context.nmae }}"}})
    error = Runner(step).run_sync("", {"name": "x"}).steps[0].error
    assert error == "input of step 'a', at who.name: there is no 'nmae'; did you mean 'name'?"


def test_model_settings_of_the_step_reach_the_model_of_your_own_agent():
    seen = Seen("ok")
    agent = Agent(seen.model, model_settings={"temperature": 0.9, "max_tokens": 5})
    Runner(Step("a", agent, model_settings={"temperature": 0.1, "top_p": 0.5})).run_sync("x")
    assert seen.settings[0] == {"temperature": 0.1, "max_tokens": 5, "top_p": 0.5}


def test_model_and_settings_of_the_step_win_over_those_of_the_spec(local: Callable[[Model], Scripted]):
    seen = Seen("ok")
    source = local(seen.model)
    spec = AgentSpec(model="local:big", model_settings={"temperature": 0.9, "max_tokens": 5})
    step = Step("a", spec, model="local:small", model_settings={"temperature": 0.1})
    assert step.models == {"local:small"}
    Runner(step).run_sync("x")
    assert source.asked == ["local:small"]
    assert {key: seen.settings[0][key] for key in ("temperature", "max_tokens")} == {
        "temperature": 0.1,
        "max_tokens": 5,
    }


def test_observers_receive_the_resolved_system_prompt(local: Callable[[Model], Scripted]):
    local(Seen("ok").model)
    heard: list[Event] = []
    step = Step("a", AgentSpec(model="local:m", system_prompt="You are a pilot."), input="Fly {{ input }}")
    Runner(step, observers=[heard.append]).run_sync("home")
    reported = [event.prompt for event in heard if isinstance(event, AskStarted)]
    assert len(reported) == 1
    assert "You are a pilot." in reported[0]
    assert "Fly home" in reported[0]


def test_a_callable_step_has_no_model_and_no_warning_about_one(recwarn: pytest.WarningsRecorder):
    heard: list[Event] = []
    run = Runner(Call("a", function=len), observers=[heard.append]).run_sync("abc")
    assert (run.output, run.usage.requests, list(recwarn)) == (3, 0, [])
    assert not any(isinstance(event, AskStarted) for event in heard)


# What the value must be


class Order(BaseModel):
    net: int
    tax: int
    gross: int


BAD, GOOD = '{"net": 1, "tax": 2, "gross": 4}', '{"net": 1, "tax": 2, "gross": 3}'


def test_a_failing_check_starts_the_ladder_and_the_model_receives_the_reason():
    seen = Seen(BAD, GOOD)
    step = Step("a", Agent(seen.model), Order, checks=(check("output.net + output.tax == output.gross"),))
    run = Runner(step).run_sync("x")
    assert run.output == Order(net=1, tax=2, gross=3)
    assert run.steps[0].usage.requests == 2
    assert "output.net + output.tax == output.gross does not hold" in seen.prompts[1]


def test_a_value_that_no_check_accepts_is_rejected_with_the_issue():
    seen = Seen(*[BAD] * 9)
    checks = (lambda order: Issue("$.gross", "sum", "it does not add up") if order.gross == 4 else None,)
    step = Step("a", Agent(seen.model), Order, checks=checks, on_degraded="fail")
    run = Runner(step).run_sync("x")
    assert run.status is RunStatus.FAILED
    assert "it does not add up" in str(run.steps[0].error)


def test_a_check_may_say_no_more_than_true_or_false():
    seen = Seen(BAD, GOOD)
    run = Runner(Step("a", Agent(seen.model), Order, checks=[lambda order: order.gross == 3])).run_sync("x")
    assert run.output == Order(net=1, tax=2, gross=3)
    assert "a check is not satisfied" in seen.prompts[1]


async def adds_up(order: Any) -> bool:
    await asyncio.sleep(0)
    return bool(order.net + order.tax == order.gross)


async def made_clean(order: Any) -> Any:
    await asyncio.sleep(0)
    return None if order.gross == 3 else order.model_copy(update={"gross": 3})


@pytest.mark.parametrize("own_type", [True, False])
def test_an_async_check_is_awaited_and_enters_the_ladder(own_type: bool):
    seen = Seen(BAD, GOOD)
    agent: Any = Agent(seen.model, output_type=PromptedOutput(Order)) if own_type else Agent(seen.model)
    run = Runner(Step("a", agent, None if own_type else Order, checks=[adds_up])).run_sync("x")
    assert (run.output, run.steps[0].usage.requests) == (Order(net=1, tax=2, gross=3), 2)
    assert "adds_up is not satisfied" in seen.prompts[1]


def test_an_async_check_may_clean_the_value():
    run = Runner(Step("a", Agent(Seen(BAD).model), Order, checks=[made_clean])).run_sync("x")
    assert (run.output, run.steps[0].trust) == (Order(net=1, tax=2, gross=3), "lossy")


def judged_order(check: Any, *replies: str, own: bool = True) -> tuple[Any, Seen]:
    seen = Seen(*(replies or (GOOD,)))
    agent: Any = Agent(seen.model, output_type=PromptedOutput(Order)) if own else Agent(seen.model)
    return Runner(Step("a", agent, None if own else Order, checks=[check])).run_sync("x"), seen


async def gross_alone(order: Any) -> Any:
    await asyncio.sleep(0)
    return order.gross


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize(
    "check",
    [gross_alone, lambda order: order.model_copy(update={"gross": "three"}), lambda order: {"net": order.net}],
)
def test_a_value_of_a_check_must_satisfy_the_contract_and_no_model_is_asked_again(check: Any, own: bool):
    run, seen = judged_order(check, own=own)
    assert (run.status, len(seen.prompts)) == (RunStatus.FAILED, 1)
    assert "which does not satisfy the contract: $" in str(run.steps[0].error)


def test_a_value_of_a_check_that_does_not_satisfy_the_contract_raises_where_it_is_read():
    with pytest.raises(TypeError, match=r"the check gross_of returned 3, which does not satisfy the contract: \$: "):
        read(GOOD, with_checks(Order, [gross_of]))


def gross_of(order: Any) -> Any:
    return order.gross


class Sealed(BaseModel):
    """A model that does not read what it writes."""

    model_config = ConfigDict(extra="forbid")
    net: float
    seal: bytes = b""

    @computed_field
    def gross(self) -> float:
        return self.net * 1.2

    @field_serializer("net")
    def in_euros(self, net: float) -> str:
        return f"{net:.2f} EUR"


def test_a_value_of_a_check_may_be_of_a_type_whose_json_it_could_not_read():
    outcome = read(
        '{"net": 1.5}', with_checks(Sealed, [lambda sealed: sealed.model_copy(update={"net": 2.5, "seal": b"\xff"})])
    )
    assert outcome.value == Sealed(net=2.5, seal=b"\xff")


@pytest.mark.parametrize("own", [True, False])
def test_plain_json_of_a_check_gets_the_type_of_the_contract(own: bool):
    run, _ = judged_order(lambda order: {"net": 1, "tax": 2, "gross": 3} if order.gross == 4 else None, BAD, own=own)
    assert (run.output, run.steps[0].trust) == (Order(net=1, tax=2, gross=3), "lossy")


def test_an_event_of_a_check_must_be_of_one_of_the_kinds():
    contract = Output.event(["said"], checks=[lambda event: event.model_copy(update={"kind": "sung"})])
    with pytest.raises(TypeError, match=r"\$\.kind: must be one of said, found 'sung'"):
        read('{"kind": "said", "text": "Aye."}', contract)


def test_a_block_of_a_check_must_have_the_keys():
    contract = with_checks(Output.block("mood"), [lambda block: replace(block, fields={})])
    with pytest.raises(TypeError, match="the required key 'mood' is missing"):
        read('{"mood": "calm"} Well.', contract)


def typo(order: Any) -> Any:
    return order.grss == 3


async def late_typo(order: Any) -> Any:
    await asyncio.sleep(0)
    return typo(order)


@pytest.mark.parametrize("check", [typo, late_typo])
def test_an_exception_of_a_check_names_the_check_and_no_model_is_asked_again(check: Any):
    run, seen = judged_order(check)
    words = f"AttributeError: 'Order' object has no attribute 'grss'; raised by the check {check.__name__}"
    assert (run.steps[0].error, len(seen.prompts)) == (words, 1)


SUMS = {"type": "object", "properties": {"net": {"type": "integer"}, "gross": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("contract", "expression", "message"),
    [
        (Order, "output.grss == 3", "column 1: the contract has no 'grss'; did you mean 'gross'?"),
        (Order, "output.net < (value.grss or 0)", "column 15: the contract has no 'grss'; did you mean 'gross'?"),
        (SUMS, "output['grss'] == 3", "column 1: the contract has no 'grss'; did you mean 'gross'?"),
        (str, "output.grss == 3", "column 1: the contract has no 'grss'"),
        (Output.tagged("t", Order), "output.grss == 3", "the contract has no 'grss'"),
    ],
)
def test_an_expression_over_a_key_that_the_contract_does_not_have_is_an_error_of_the_step(
    contract: Any, expression: str, message: str
):
    with pytest.raises(UsageError, match=re.escape(f"step 'a': check {expression!r}, ")) as raised:
        Step("a", Agent(Seen().model), contract, checks=[check(expression)])
    assert message in str(raised.value)
    assert raised.value.key == "checks.0"


def test_the_output_type_of_an_own_agent_is_known_to_an_expression():
    with pytest.raises(UsageError, match="the contract has no 'grss'"):
        Step("a", Agent(Seen().model, output_type=Order), checks=[check("output.grss == 3")])


class Priced(BaseModel):
    model_config = ConfigDict(extra="allow")
    cents: int = Field(alias="priceInCents")

    @computed_field
    def euros(self) -> float:
        return self.cents / 100


class Note(BaseModel):
    text: str


class Wrapped(BaseModel):
    note: Note
    seconds: float


def test_an_own_agent_whose_type_has_no_key_of_the_contract_is_an_error_of_the_step():
    words = (
        "step 'a': the agent returns Order with the keys net, tax, gross, none of which the contract requires (text); "
        "leave out the contract, or give it to the agent as its output_type"
    )
    for output_type in (Order, PromptedOutput(Order)):
        with pytest.raises(UsageError, match=re.escape(words)):
            Step("a", Agent(Seen().model, output_type=output_type), Note)


@pytest.mark.parametrize(
    ("output_type", "contract"),
    [
        (str, Note),
        (Order, Order),
        (Note, Order),
        (Wrapped, Note),
        (Order, {"type": "object", "properties": {"Net": {"type": "integer"}}, "required": ["Net"]}),
        (Order, {"type": "object", "properties": {"text": {"type": "string"}}}),
        (Order, Output.event(["said"])),
        ([Order, Note], Note),
        (Order | Note, Note),
        (dict[str, int], Note),
        (Priced, Note),
    ],
)
def test_an_own_agent_whose_value_may_satisfy_the_contract_is_accepted(output_type: Any, contract: Any):
    assert Step("a", Agent(Seen().model, output_type=output_type), contract).contract is not None


@pytest.mark.parametrize(
    ("contract", "expression"),
    [
        (Priced, "output.cents > 0 and output.euros > 0 and output.note == 'x'"),
        (dict[str, int], "output.net == 1"),
        ({**SUMS, "additionalProperties": True}, "output.tax == 1"),
        (Order | None, "output.anything is None"),
        (Order, "output.get('grss') is None"),
        (Output.event(["said"]), "output.mood == 'calm'"),
        (Output.block("mood"), "output.fields.mood == 'calm' and output.prose"),
        (list[Order], "all(each.grss == 3 for each in output)"),
        ({}, "output.net == 1"),
    ],
)
def test_an_expression_over_a_key_that_a_value_may_have_is_accepted(contract: Any, expression: str):
    assert Step("a", Agent(Seen().model), contract, checks=[check(expression)]).checks


def test_an_async_check_runs_once_for_each_value():
    asked: list[Any] = []

    async def note(order: Any) -> None:
        asked.append(order.gross)

    Runner(Step("a", Agent(Seen(GOOD).model), Order, checks=[note])).run_sync("x")
    Runner(Call("a", function=lambda _: Order(net=1, tax=1, gross=2), checks=[note])).run_sync("x")
    assert asked == [3, 2]


def test_code_that_cannot_await_an_async_check_raises_an_error():
    with pytest.raises(UsageError, match="the check adds_up is async and cannot be awaited here"):
        read(GOOD, with_checks(Output.json(Order), [adds_up]))


def test_a_check_judges_the_value_of_a_callable():
    run = Runner(Call("a", function=len, checks=(check("output > 3"),))).run_sync("ab")
    assert (run.status, run.steps[0].error) == (RunStatus.FAILED, "invalid: output > 3 does not hold")


def test_a_contract_may_be_written_as_text():
    seen = Seen('Here: <result>{"n": 3}</result> done')
    step = Step("a", Agent(seen.model), "tagged:result", "Answer between <result> tags", Processing(schema=SCHEMA))
    assert Runner(step).run_sync("x").output == {"n": 3}


def test_an_adaptive_ladder_skips_stages_that_the_evidence_shows_to_be_hopeless():
    lost = Achieved(tries=20, successes=0, calls=20)
    step = Step("a", Agent(Seen("none", GOOD).model), Order, processing=Processing(adaptive=True))
    fingerprint = compile_contract(Order).fingerprint
    evidence = Evidence.of([("function:_answer:", fingerprint, "llm_repair", lost)])
    run = Runner(step, evidence=evidence).run_sync("x")
    assert [stage.stage for stage in run.steps[0].stages] == ["retry"]


def test_validate_reads_and_asks_no_more():
    seen = Seen("no number here", "unused")
    processing = Processing(schema=SCHEMA, enforcement="validate")
    run = Runner(Step("a", Agent(seen.model), processing=processing)).run_sync("x")
    assert (run.status, len(seen.messages)) == (RunStatus.FAILED, 1)


def test_off_accepts_the_text_as_written():
    processing = Processing(schema=SCHEMA, enforcement="off")
    run = Runner(Step("a", Agent(Seen("prose").model), processing=processing)).run_sync("x")
    assert run.output == "prose"


def test_the_stages_of_the_step_are_the_ones_that_run():
    seen = Seen("no json", '{"n": 4}')
    processing = Processing(schema=SCHEMA, stages=("retry",))
    run = Runner(Step("a", Agent(seen.model), processing=processing)).run_sync("x")
    assert run.output == {"n": 4}
    assert [stage.stage for stage in run.steps[0].stages] == ["retry"]


def test_required_context_keys_are_checked_before_the_model_call():
    seen = Seen("unused")
    processing = Processing(reasoning_precheck={"required_context_keys": ["goal", "user.name"]})
    step = Step("a", Agent(seen.model), processing=processing)
    run = Runner(step).run_sync("x", {"goal": "g", "user": {"name": None}})
    assert run.status is RunStatus.FAILED
    assert run.steps[0].error == "invalid: the context has no value for user.name, which the step requires"
    assert seen.messages == []


def test_a_precheck_that_is_not_enabled_asks_for_nothing():
    processing = Processing(reasoning_precheck={"enabled": False, "required_context_keys": ["goal"]})
    assert Runner(Step("a", Agent(Seen("ok").model), processing=processing)).run_sync("x").output == "ok"


# Iterations


def test_an_iterating_step_ends_with_the_completion_signal():
    seen = Seen("still at it", "still at it", "All done.\n<promise>COMPLETE</promise>")
    step = Step("a", Agent(seen.model), max_iterations=5, completion_signal="<promise>COMPLETE</promise>")
    run = Runner(step).run_sync("work")
    assert (run.status, len(seen.messages), run.steps[0].attempts) == (RunStatus.COMPLETED, 3, 3)
    assert "<promise>COMPLETE</promise>" in seen.prompts[0]


def test_an_iterating_step_that_never_says_it_is_done_fails():
    seen = Seen(*["I will say <promise>COMPLETE</promise> when done, not yet"] * 3)
    step = Step("a", Agent(seen.model), max_iterations=3, completion_signal="<promise>COMPLETE</promise>")
    run = Runner(step).run_sync("work")
    assert run.steps[0].status is StepStatus.FAILED
    assert run.steps[0].error == "invalid: no <promise>COMPLETE</promise> within 3 iterations"
    assert run.usage.requests == 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda a: Step("a", a, max_iterations=2), "belong together"),
        (lambda a: Step("a", a, completion_signal="x"), "belong together"),
        (lambda a: Step("a", a, max_iterations=0), "max_iterations must be a whole number of 1 or more, not 0"),
        (
            lambda a: Step("a", a, "tagged:result", max_iterations=2, completion_signal="DONE"),
            "an output between <result> tags is for a single reply, not for 2 iterations",
        ),
        (lambda a: Step("a", a, model="local:x"), "set the model of the Agent instead"),
        (lambda a: Step("a", a, retries=-1), "retries must be a whole number of 0 or more, not -1"),
        (lambda a: Step("a", a, timeout=0), "timeout must be a number of seconds above 0, or None, not 0"),
        (lambda a: Step("a", a, sink_to="a b"), "sink_to is a dotted path"),
        (lambda a: Step("a", a, checks=("output > 1",)), "a check is a function of the value, not 'output > 1'"),
        (lambda a: Step("a", a, fallback="b"), "fallback must be a step, or None, not 'b'"),
    ],
)
def test_a_wrong_option_is_one_clear_sentence(make: Any, message: str):
    with pytest.raises(UsageError) as caught:
        make(Agent("test"))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (
            "taged:result",
            "a contract is json, tagged:TAG, text:TAG, block:KEY,KEY… or event:KIND,KIND…, not 'taged:result'",
        ),
        ("tagged", "a contract is json, tagged:TAG"),
        ("tagged:a,b", "a contract is json, tagged:TAG"),
    ],
)
def test_an_invalid_written_contract_lists_the_valid_forms(written: str, message: str):
    with pytest.raises(ContractError) as caught:
        Step("a", Agent("test"), written)
    assert message in str(caught.value)


def test_a_failed_step_has_no_value():
    run = Runner(Call("a", function=len, checks=(check("output > 3"),))).run_sync("ab")
    with pytest.raises(OutputError, match="step 'a' has no value"):
        _ = run.output


# What goes on after a step that only has text


def wants_object(value: dict[str, Any]) -> str:
    return f"got {sorted(value)}"


def test_a_degraded_text_is_passed_as_an_object_to_a_function_that_needs_one():
    seen = Seen("I would rather not.")
    processing = Processing(schema=SCHEMA, stages=("degrade",))
    pipeline = Step("a", Agent(seen.model), processing=processing, on_degraded="accept") >> Call("b", wants_object)
    run = Runner(pipeline).run_sync("x")
    assert (run.status, run.output) == (RunStatus.COMPLETED, "got ['text']")


def test_a_degraded_text_reaches_a_model_as_text():
    seen = Seen("I would rather not.", "fine")
    processing = Processing(schema=SCHEMA, stages=("degrade",))
    first = Step("a", Agent(seen.model), processing=processing, on_degraded="accept")
    Runner(first >> Step("b", Agent(seen.model), input="They said: {{ previous_step }}")).run_sync("x")
    assert seen.prompts[-1] == "They said: I would rather not."


# From a blueprint


def test_a_key_without_effect_is_a_warning_with_its_line():
    text = (
        "agents: {a: {model: 'local:m', output_schema: {type: object}}}\n"
        "steps:\n"
        "  - name: s\n"
        "    uses: agents.a\n"
        "    processing:\n"
        "      coercion: {max_unescape_depth: 2}\n"
    )
    (warning,) = parse_blueprint(text, source="t.yaml").warnings
    assert warning.startswith("t.yaml:6:38: processing.coercion.max_unescape_depth has no effect")


def test_every_option_of_an_agent_step_can_be_written_in_a_blueprint():
    text = """
agents: {a: {model: "local:m", output_schema: {type: object}}}
steps:
  - name: s
    uses: agents.a
    contract: {tagged: result, strict: false}
    input: {who: "{{ input }}"}
    model: local:other
    model_settings: {temperature: 0.1}
    processing: {risk: lossless, stages: [retry, {stage: llm_repair, attempts: 1}], max_calls: 2, deadline: 5}
    checks: ["output.n > 0"]
    on_degraded: fail
    timeout: 9
    retries: 1
"""
    (step,) = parse_blueprint(text).steps
    assert isinstance(step, Step)
    ladder, contract = step.facts.ladder, step.facts.contract
    assert ladder is not None
    assert contract is not None
    assert ([stage.stage for stage in ladder.stages], ladder.max_calls) == (["retry", "llm_repair"], 2)
    assert (contract.mode, contract.risk, step.facts.promoted) == ("tagged", Risk.LOSSLESS, True)
    assert (step.facts.agent.model, step.facts.agent.model_settings) == ("local:other", {"temperature": 0.1})
    assert (step.timeout, step.retries, step.on_degraded, len(step.checks)) == (9, 1, "fail", 1)


def test_evidence_is_requested_only_by_an_adaptive_ladder() -> None:
    """The journal is not read for a step that does not need its statistics."""
    asked: list[str] = []

    def evidence() -> Evidence:
        asked.append("asked")
        return Evidence()

    plain = Step("plain", Agent(ScriptedModel('{"a": 1}')), dict[str, int])
    adaptive = Step("adaptive", Agent(ScriptedModel('{"a": 1}')), dict[str, int], processing=Processing(adaptive=True))
    assert Runner(plain, evidence=evidence).run_sync("x").output == {"a": 1}
    assert asked == []
    assert Runner(adaptive, evidence=evidence).run_sync("x").output == {"a": 1}
    assert asked == ["asked"]


@pytest.mark.parametrize(
    ("schema", "hint"),
    [
        ({"tagged": "result"}, "'tagged' is not a keyword; write {} for any value"),
        ({"propertys": {"age": {"type": "integer"}}}, "did you mean 'properties'?"),
        ({"title": "Order", "age": "integer"}, "'age' is not a keyword"),
        ({"type": "object", "propertys": {}}, "'propertys' is not a keyword of JSON Schema and would be ignored"),
        ({"properties": {"age": {"type": "integer", "minimun": 3}}}, "at $.properties.age: 'minimun' is not a keyword"),
    ],
)
def test_a_mapping_that_is_not_a_schema_is_an_error_of_its_step(schema: dict[str, Any], hint: str) -> None:
    """It would accept unintended values."""
    spec = AgentSpec(model="openai:gpt-4o-mini")
    for build in (
        lambda: Step("ask", spec, schema),
        lambda: Step("ask", spec, processing=Processing(schema=schema)),
        lambda: Step("ask", spec, Output.json(schema)),
        lambda: Human("ask", "Who?", input_schema=schema),
        lambda: Step("ask", spec.model_copy(update={"output_schema": schema})),
    ):
        with pytest.raises(ContractError, match=re.escape(hint)):
            build()


@pytest.mark.parametrize("schema", [{}, {"title": "Anything"}, {"x-aros": {}}])
def test_a_schema_that_allows_any_value_is_accepted(schema: dict[str, Any]) -> None:
    Step("ask", AgentSpec(model="openai:gpt-4o-mini"), schema)


@pytest.mark.parametrize("marked", [Order, PromptedOutput(Order), [Order, DeferredToolRequests]])
@pytest.mark.parametrize(
    ("processing", "calls", "status"),
    [
        (Processing(), 1, "completed"),
        (Processing(risk="lossless"), 2, "degraded"),
        (Processing(risk="lossless", stages=("retry",)), 2, "failed"),
        (Processing(aop="off", max_calls=0), 1, "degraded"),
        (Processing(risk="lossless", enforcement="validate"), 1, "failed"),
    ],
)
def test_processing_applies_to_an_agent_with_its_own_output_type(
    marked: Any, processing: Processing, calls: int, status: str
):
    seen = Seen(*["{net: 1, tax: '2', gross: 3}"] * 2)
    run = Runner(Step("a", Agent(seen.model, output_type=marked), processing=processing)).run_sync("x")
    assert (run.status.value, run.usage.requests) == (status, calls)


def test_processing_that_cannot_govern_several_output_types_is_an_error_of_the_step():
    agent: Any = Agent(Seen(GOOD).model, output_type=[Order, int])
    with pytest.raises(UsageError, match="step 'a': `processing` cannot change how several output types"):
        Step("a", agent, processing=Processing(risk="lossless"))
    assert Step("a", agent, processing=Processing(structured_output="off")).facts.contract is None


async def _letters(text: str) -> Any:
    for each in text:
        yield each


@pytest.mark.parametrize("items", [lambda text: (each for each in text), _letters])
def test_a_function_that_returns_a_generator_fails_the_step(items: Any) -> None:
    result = Runner(Call("letters", function=items)).run_sync("abc")
    assert result.error is not None
    assert result.error["message"] == "the function of step 'letters' returned a generator; return a list of its items"
