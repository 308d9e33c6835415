"""If a check rejects a plain text, the model is asked again; the same text is rejected."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, ModelRetry, TextOutput
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel

from flujo_aros import (
    AgentSpec,
    Aros,
    Degraded,
    Journal,
    Ladder,
    Processing,
    Runner,
    RunStatus,
    Step,
    check,
)
from flujo_aros.blueprint.load import parse_blueprint
from flujo_aros.events import Event, ReadFinished, StageFinished, TextDelta, TextReplaced
from flujo_aros.recovery import Retry
from flujo_aros.testing import ScriptedModel

LONG, SHORT = "a very long answer", "short"
WHY = "write at most 5 characters"


def brief(text: str) -> str | None:
    return None if len(text) <= 5 else WHY


class Replies:
    """A model that gives these replies in order, under every name."""

    def __init__(self, *replies: str) -> None:
        self.left = list(replies)
        self.asked: list[list[ModelMessage]] = []
        self.function = FunctionModel(self.reply)

    def reply(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.asked.append(messages)
        return ModelResponse([TextPart(self.left.pop(0))])

    @property
    def prompts(self) -> list[str]:
        """Return the last user prompt of each call."""
        lasts = [messages[-1] for messages in self.asked]
        return [str(last.parts[-1].content) for last in lasts if isinstance(last, ModelRequest)]  # type: ignore[union-attr]  # a user prompt here

    async def model(self, name: str) -> Model:
        return self.function


def ran(replies: Replies, *, own: bool = False, checks: Any = (brief,), **options: Any) -> Any:
    agent = Agent(replies.function) if own else AgentSpec(model="local:x")
    return Runner(Step("note", agent, checks=checks, **options), models=replies).run_sync("Write a note.")


both_paths = pytest.mark.parametrize("own", [False, True])


@both_paths
def test_the_model_sees_its_text_and_the_message_of_the_check(own: bool) -> None:
    replies = Replies(LONG, SHORT)
    run = ran(replies, own=own)
    step = run.step("note")
    assert (run.status, run.output, step.outcome.origin) == (RunStatus.COMPLETED, SHORT, "retry")
    assert ([stage.stage for stage in step.stages], step.usage.requests) == (["retry"], 2)
    assert WHY in replies.prompts[1]
    assert "JSON Schema" not in replies.prompts[1]
    assert LONG in [
        part.content for message in replies.asked[1] for part in message.parts if isinstance(part, TextPart)
    ]


@both_paths
def test_a_text_that_no_check_accepts_fails_the_step_after_the_ladder(own: bool) -> None:
    run = ran(Replies(LONG, LONG), own=own)
    assert (run.status, run.step("note").error, run.usage.requests) == (RunStatus.FAILED, f"invalid: {WHY}", 2)


@both_paths
def test_the_stages_of_the_step_decide_how_often_it_is_asked_again(own: bool) -> None:
    stages = ({"stage": "retry", "attempts": 3},)
    run = ran(Replies(LONG, LONG, LONG, SHORT), own=own, processing=Processing(stages=stages))
    assert (run.output, run.usage.requests) == (SHORT, 4)


@both_paths
@pytest.mark.parametrize("enforcement", ["validate", "off"])
def test_no_call_is_made_where_the_step_allows_none(own: bool, enforcement: Any) -> None:
    run = ran(Replies(LONG), own=own, processing=Processing(enforcement=enforcement))
    assert (run.status, run.step("note").error) == (RunStatus.FAILED, f"invalid: {WHY}")


@both_paths
def test_a_rejected_text_is_handed_on_where_the_step_accepts_that(own: bool) -> None:
    run = ran(Replies(LONG, LONG), own=own, on_degraded="accept")
    assert (run.status, run.output) == (RunStatus.COMPLETED, LONG)
    assert isinstance(run.step("note").outcome, Degraded)


@pytest.mark.parametrize("stage", ["llm_repair", "extract", "constrain", "simplify"])
def test_stages_for_the_form_of_an_answer_make_no_call(stage: str) -> None:
    """Any text has the right form, and a model that does not see the question would invent another one."""
    run = ran(Replies(LONG, SHORT), processing=Processing(stages=(stage, "retry")))
    assert (run.output, [each.stage for each in run.step("note").stages]) == (SHORT, ["retry"])
    run = ran(Replies(LONG), processing=Processing(stages=(stage,)))
    assert (run.status, run.usage.requests) == (RunStatus.FAILED, 1)


def test_another_model_can_be_asked() -> None:
    run = ran(Replies(LONG, SHORT), processing=Processing(stages=({"stage": "escalate", "model": "local:y"},)))
    assert (run.output, run.step("note").outcome.origin) == (SHORT, "escalate")


def test_an_expression_in_a_blueprint_asks_again() -> None:
    pipeline = parse_blueprint(
        """
        version: "0.1"
        agents: {writer: {model: "local:x", system_prompt: Write.}}
        steps:
          - {kind: step, name: note, uses: agents.writer, checks: ["'very' not in output"]}
        """
    )
    replies = Replies(LONG, SHORT)
    run = Runner(pipeline, models=replies).run_sync("x")
    assert (run.output, run.usage.requests) == (SHORT, 2)
    assert "'very' not in output does not hold" in replies.prompts[1]


def test_the_retries_of_the_agent_are_attempts() -> None:
    replies = Replies(LONG, LONG, SHORT)
    agent = AgentSpec(model="local:x", max_retries=2)
    assert Runner(Step("note", agent, checks=(brief,)), models=replies).run_sync("x").output == SHORT


def test_the_ladder_of_an_agents_own_capability_applies() -> None:
    replies = Replies(LONG, LONG, SHORT)
    agent = Agent(replies.function, capabilities=[Aros(ladder=Ladder(stages=(Retry(attempts=2),)))])
    assert Runner(Step("note", agent, checks=(brief,))).run_sync("x").output == SHORT


@both_paths
def test_an_async_check_judges_each_text_once(own: bool) -> None:
    judged: list[str] = []

    async def noting(text: str) -> str | None:
        await asyncio.sleep(0)
        judged.append(text)
        return brief(text)

    assert ran(Replies(LONG, SHORT), own=own, checks=(noting,)).output == SHORT
    assert judged == [LONG, SHORT]


@both_paths
def test_a_check_may_replace_the_text_by_a_value(own: bool) -> None:
    run = ran(Replies(LONG), own=own, checks=(str.split,))
    assert (run.output, run.step("note").trust, run.usage.requests) == (LONG.split(), "lossy", 1)


@both_paths
@pytest.mark.parametrize("text", ['"a"', "'a'", " a ", "null", '{"a"', "..."])
def test_a_checked_text_stays_as_written(own: bool, text: str) -> None:
    judged: list[str] = []
    assert ran(Replies(text), own=own, checks=(judged.append,)).output == text
    assert judged == [text]


def test_the_value_of_an_output_function_is_judged_in_place_of_the_text() -> None:
    def length(text: str) -> int:
        return len(text)

    agent = Agent(Replies(LONG).function, output_type=TextOutput(length))
    run = Runner(Step("note", agent, checks=(check("output == 18"),))).run_sync("x")
    assert (run.output, run.usage.requests) == (18, 1)


def test_a_validator_of_the_agent_sees_only_an_accepted_text() -> None:
    seen: list[str] = []
    agent = Agent(Replies(LONG, SHORT, "brief").function)

    @agent.output_validator
    def again(text: str) -> str:
        seen.append(text)
        if text == SHORT:
            raise ModelRetry("another word")
        return text

    assert Runner(Step("note", agent, checks=(brief,))).run_sync("x").output == "brief"
    assert seen == [SHORT, "brief"]


@both_paths
@pytest.mark.parametrize("second", [SHORT, LONG])
def test_a_stream_ends_as_a_run_without_one(own: bool, second: str) -> None:
    model = ScriptedModel(LONG, second)

    class Source:
        async def model(self, name: str) -> Model:
            return model

    agent = Agent(model) if own else AgentSpec(model="local:x")
    runner = Runner(Step("note", agent, checks=(brief,)), models=Source())

    async def streamed() -> tuple[str, Any]:
        shown, result = "", None
        async for each in runner.stream("x"):
            if isinstance(each.event, TextReplaced):
                shown = each.event.text
            elif isinstance(each.event, TextDelta):
                shown += each.event.text
            result = each.result
        return shown, result

    shown, run = asyncio.run(streamed())
    plain = ran(Replies(LONG, second), own=own)
    assert (run.status, run.usage.requests, shown) == (plain.status, 2, second)
    assert run.step("note").outcome.text == plain.step("note").outcome.text


@both_paths
def test_the_events_are_those_of_a_value(own: bool) -> None:
    heard: list[Event] = []
    replies = Replies(LONG, SHORT)
    agent = Agent(replies.function) if own else AgentSpec(model="local:x")
    Runner(Step("note", agent, checks=(brief,)), models=replies, observers=[heard.append]).run_sync("x")
    reads = [(event.stage, event.outcome, event.reason) for event in heard if isinstance(event, ReadFinished)]
    assert reads == [("first", "rejected", "invalid"), ("retry", "accepted", None)]
    assert [event.because for event in heard if isinstance(event, StageFinished)] == ["invalid"]


def test_the_journal_keeps_both_replies_and_the_stage(tmp_path: Path) -> None:
    with Journal(tmp_path / "runs.sqlite") as journal:
        step = Step("note", AgentSpec(model="local:x"), checks=(brief,))
        Runner(step, models=Replies(LONG, SHORT), journal=journal).run_sync("x")
        (kept,) = journal.story().chapters
    assert [reading.text for reading in kept.readings] == [LONG, SHORT]
    assert [(stage.stage, stage.outcome) for stage in kept.stages] == [("retry", "accepted")]
