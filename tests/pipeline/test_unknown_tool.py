"""If an agent without tools calls a tool, the model is told once, as for an agent with tools."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai.messages import ToolCallPart

from flujo_aros import AgentSpec, Runner, Step
from flujo_aros.testing import ScriptedModel

SCHEMA: dict[str, Any] = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}


def step(mode: Any) -> Step[Any]:
    return Step("count", AgentSpec(model="openai:x", output_schema=SCHEMA, output_mode=mode))


@pytest.mark.parametrize("mode", ["native", "prompted", "tool"])
def test_the_model_receives_an_error_for_an_unknown_tool_and_answers(mode: Any) -> None:
    model = ScriptedModel(ToolCallPart("lookup", {"what": "pens"}), '{"n": 3}')
    run = Runner(step(mode), models=model).run_sync("How many pens?")
    assert run.output == {"n": 3}
    assert model.calls == 2
    reported = "called lookup, which it does not have" in model.asked[1].prompt
    assert reported == (mode == "native")  # else the next call has the provider enforce the schema
    assert not [part for message in model.asked[1].messages for part in message.parts if isinstance(part, ToolCallPart)]


def test_arguments_of_a_tool_that_does_not_exist_are_not_an_answer() -> None:
    model = ScriptedModel(ToolCallPart("lookup", {"n": 7}), then='{"n": 3}')
    assert Runner(step("prompted"), models=model).run_sync("How many pens?").output == {"n": 3}


def test_a_model_that_keeps_calling_the_tool_is_rejected_with_the_reason() -> None:
    model = ScriptedModel(then=ToolCallPart("lookup", {"what": "pens"}))
    run = Runner(step("prompted"), models=model).run_sync("How many pens?")
    assert run.error is not None
    assert run.error["reason"] == "no_json"
    assert "lookup" in run.error["message"]


def test_a_step_without_a_contract_fails_with_the_reason() -> None:
    model = ScriptedModel(ToolCallPart("lookup", {"what": "pens"}))
    run = Runner(Step("count", AgentSpec(model="openai:x")), models=model).run_sync("How many pens?")
    assert run.error is not None
    assert "called lookup, which it does not have" in run.error["message"]


def test_a_call_of_an_unknown_tool_does_not_affect_later_runs() -> None:
    text = Step("count", AgentSpec(model="openai:x"))
    assert Runner(text, models=ScriptedModel(ToolCallPart("lookup", {"what": "pens"}))).run_sync("?").error is not None
    model = ScriptedModel(ToolCallPart("final_result", {"n": 3}))
    assert Runner(step("tool"), models=model).run_sync("How many pens?").output == {"n": 3}
