"""Text that a token limit has truncated is not a success: it is resumed or rejected."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ToolOutput
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.settings import ModelSettings

from flujo_aros import (
    AgentSpec,
    Aros,
    Call,
    Degraded,
    Output,
    Pipeline,
    Processing,
    Reason,
    Runner,
    RunStatus,
    Step,
    StepStatus,
    bound,
    check,
)
from flujo_aros.events import AskStarted, Event, observing

CUT = "Dear Ann, I hope this mail finds you well and that "
REST = "well and that the boat is ready."
WHOLE = "Dear Ann, I hope this mail finds you well and that the boat is ready."


class Replies:
    """A model that gives these replies in order, each truncated or not, under every name."""

    def __init__(self, *replies: tuple[str, str]) -> None:
        self.left = list(replies)
        self.function = FunctionModel(self.reply)

    def reply(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        text, finish = self.left.pop(0)
        return ModelResponse(parts=[TextPart(text)], finish_reason=finish)  # type: ignore[arg-type]  # words of the host

    async def model(self, name: str) -> Model:
        return self.function


def ran(replies: Replies, *, own: bool, **options: Any) -> Any:
    agent = Agent(replies.function) if own else AgentSpec(model="local:x")
    return Runner(Step("mail", agent, **options), models=replies).run_sync("write")


@pytest.mark.parametrize("own", [True, False])
def test_text_that_was_cut_is_resumed(own: bool) -> None:
    run = ran(Replies((CUT, "length"), (REST, "stop")), own=own)
    step = run.step("mail")
    assert (run.status, run.output, step.outcome.origin) == (RunStatus.COMPLETED, WHOLE, "resume")
    assert ([stage.stage for stage in step.stages], step.usage.requests) == (["resume"], 2)


@dataclass
class Served:
    """Serves one model under every name."""

    served: Model

    async def model(self, name: str) -> Model:
        return self.served


@pytest.mark.parametrize("way", ["step", "contract", "blueprint"])
def test_truncated_text_is_requested_again_as_text_even_if_a_schema_could_be_enforced(way: str) -> None:
    asked: list[str] = []

    def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        asked.append(info.model_request_parameters.output_mode)
        assert info.instructions is None, "a question for text names no format"
        first = len(asked) == 1
        return ModelResponse(parts=[TextPart(CUT if first else WHOLE)], finish_reason="length" if first else "stop")

    model = FunctionModel(reply, profile=ModelProfile(supports_json_schema_output=True))
    settings = ModelSettings(max_tokens=12)
    prompts: list[str] = []

    def hear(event: Event) -> None:
        if isinstance(event, AskStarted):
            prompts.append(event.prompt)

    with observing(hear):
        if way == "contract":
            output = asyncio.run(Agent(model, model_settings=settings, capabilities=[Aros(str)]).run("write")).output
        elif way == "step":
            output = Runner(Step("mail", Agent(model, model_settings=settings))).run_sync("write").output
        else:
            spec = AgentSpec(model="local:x", model_settings={"max_tokens": 12})
            output = Runner(Step("mail", spec), models=Served(model)).run_sync("write").output
    assert (output, asked) == (WHOLE, ["text", "text"])
    assert prompts == ["write", "write"]


class Total(BaseModel):
    total: float


@pytest.mark.parametrize("output", [[str, ToolOutput(Total)], [ToolOutput(Total), str]])
def test_text_in_place_of_a_value_is_judged_as_well(output: Any) -> None:
    def asked(*replies: tuple[str, str]) -> Any:
        return Runner(Step("mail", Agent(Replies(*replies).function, output_type=output))).run_sync("write")

    for reply in ((CUT, "length"), ("and so on " * 900, "stop"), (CUT, "content_filter")):
        assert asked(reply, ("no", "stop")).status is RunStatus.DEGRADED
    assert asked((CUT, "stop")).output == CUT


@pytest.mark.parametrize("own", [True, False])
def test_text_that_stays_cut_degrades(own: bool) -> None:
    run = ran(Replies((CUT, "length"), ("well and that the", "length")), own=own)
    outcome = run.step("mail").outcome
    assert (run.status, run.step("mail").status) == (RunStatus.DEGRADED, StepStatus.DEGRADED)
    assert isinstance(outcome, Degraded)
    assert outcome.because.reason is Reason.TRUNCATED


@pytest.mark.parametrize("rest", ["the boat is ready.", "I have no idea.", "Dear Bob, all is well."])
@pytest.mark.parametrize("contract", [None, {"type": "string"}, Output.block("")])
def test_words_that_do_not_continue_the_cut_text_are_not_its_rest(rest: str, contract: Any) -> None:
    """Without an overlap they may be only the rest, and the first part would be lost."""
    run = ran(Replies((CUT, "length"), (rest, "stop")), own=False, contract=contract)
    outcome = run.step("mail").outcome
    assert (run.status, outcome.text) == (RunStatus.DEGRADED, CUT)
    assert "no_seam" in {issue.code for issue in outcome.because.issues} | {
        issue.code for attempt in outcome.because.attempts for issue in attempt.issues
    }


@pytest.mark.parametrize(
    ("options", "status", "calls"),
    [
        ({"on_degraded": "fail"}, RunStatus.FAILED, 2),
        ({"on_degraded": "accept"}, RunStatus.COMPLETED, 2),
        ({"processing": Processing(enforcement="validate")}, RunStatus.FAILED, 1),
        ({"processing": Processing(enforcement="off")}, RunStatus.DEGRADED, 1),
        ({"processing": Processing(stages=("degrade",))}, RunStatus.DEGRADED, 1),
    ],
)
@pytest.mark.parametrize("own", [True, False])
def test_the_step_reports_the_outcome_of_truncated_text(
    own: bool, options: dict[str, Any], status: RunStatus, calls: int
) -> None:
    run = ran(Replies((CUT, "length"), ("well and that the", "length")), own=own, **options)
    assert (run.status, run.usage.requests) == (status, calls)


def test_a_fallback_runs_in_place_of_text_that_stays_truncated() -> None:
    run = ran(
        Replies((CUT, "length"), ("well and that the", "length")), own=False, fallback=Call("sorry", lambda _: "sorry")
    )
    assert (run.status, run.output) == (RunStatus.COMPLETED, "sorry")


@pytest.mark.parametrize("finish", ["length", "stop", None])
def test_endlessly_repeated_words_are_not_a_text_and_are_not_requested_again(finish: str) -> None:
    run = ran(Replies(("Dear Ann, " + "a customer service, " * 300, finish)), own=False)
    assert (run.status, run.usage.requests) == (RunStatus.DEGRADED, 1)
    assert "runaway_repetition" in {issue.code for issue in run.step("mail").outcome.because.issues}


@pytest.mark.parametrize("finish", ["stop", None])
def test_text_that_ended_by_itself_is_success_at_one_call(finish: str) -> None:
    run = ran(Replies((CUT, finish)), own=False)
    assert (run.status, run.output, run.usage.requests) == (RunStatus.COMPLETED, CUT, 1)


def test_the_bound_counts_the_call_for_the_rest() -> None:
    assert bound(Pipeline([Step("mail", AgentSpec(model="local:x"))])).calls == 2
    assert bound(Step("mail", AgentSpec(model="local:x"), input="{{ steps.order.output }}")).calls == 2


TOTAL = {"type": "object", "required": ["total"], "properties": {"total": {"type": "number"}}}


def test_a_value_that_failed_a_check_is_not_handed_on() -> None:
    seen: list[Any] = []
    step = Step("sum", AgentSpec(model="local:x"), contract=TOTAL, checks=[check("output.total == 12")])
    replies = Replies(*[('{"total": 10}', "stop")] * 9)
    run = Runner(step >> Call("pay", seen.append), models=replies).run_sync("x")
    assert (run.status, seen) == (RunStatus.FAILED, [])
    assert "output.total == 12 does not hold" in run.error["message"]  # type: ignore[index]  # it failed
    assert [each.status for each in run.steps] == [StepStatus.FAILED, StepStatus.SKIPPED]


def test_a_value_that_failed_a_check_is_handed_on_as_text_where_the_step_accepts_that() -> None:
    seen: list[Any] = []
    step = Step(
        "sum", AgentSpec(model="local:x"), contract=TOTAL, checks=[check("output.total == 12")], on_degraded="accept"
    )
    run = Runner(step >> Call("pay", seen.append), models=Replies(*[('{"total": 10}', "stop")] * 9)).run_sync("x")
    assert (run.status, seen) == (RunStatus.COMPLETED, ['{"total": 10}'])


def test_a_reply_that_does_not_fit_the_schema_still_degrades_to_text() -> None:
    step = Step("sum", AgentSpec(model="local:x"), contract=TOTAL, checks=[check("output.total == 12")])
    run = Runner(step, models=Replies(*[("It is ten.", "stop")] * 9)).run_sync("x")
    assert run.status is RunStatus.DEGRADED
