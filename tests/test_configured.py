"""Invalid constructor options: one sentence that names the option, its value and what was expected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from flujo_aros import Aros, EventLog, Journal, Ladder, LlmRepair, Logging, OpenTelemetry, Processing, UsageError
from flujo_aros.host import AgentSpec
from flujo_aros.recovery import Escalate, Retry, Synthesize
from flujo_aros.settings import RepairSettings, Settings


class FakeModel:
    """An object that is not a string."""


def make(kind: Callable[..., Any], **options: Any) -> Any:
    return kind(**options)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (Ladder, {"max_call": 3}, "Ladder has no option 'max_call'; did you mean 'max_calls'?"),
        (LlmRepair, {"atempts": 1}, "LlmRepair has no option 'atempts'; did you mean 'attempts'?"),
        (AgentSpec, {"modle": "test"}, "AgentSpec has no option 'modle'; did you mean 'model'?"),
        (Settings, {"enabld": False}, "Settings has no option 'enabld'; did you mean 'enabled'?"),
        (Synthesize, {"value": 1}, "Synthesize has no option 'value'; known: none"),
        (RepairSettings, {"x": 1}, "RepairSettings has no option 'x'; known: enable_llm, max_attempts"),
        (Aros, {"bufer_stream": True}, "Aros has no option 'bufer_stream'; did you mean 'buffer_stream'?"),
        (Aros, {"risk": "x"}, "Aros has no option 'risk'; known: buffer_stream, capture_content, "),
        (Journal, {"secret": ["x"]}, "Journal has no option 'secret'; did you mean 'secrets'?"),
        (Logging, {"contents": True}, "Logging has no option 'contents'; did you mean 'content'?"),
        (OpenTelemetry, {"contnt": True}, "OpenTelemetry has no option 'contnt'; did you mean 'content'?"),
        (
            Processing,
            {"agent": AgentSpec(model="a:b")},
            "Processing has no option 'agent'; its own are: structured_output, ",
        ),
        (
            Processing,
            {"ladder": Ladder()},
            "Processing has no option 'ladder'; write the options of Ladder directly: stages=…, ",
        ),
        (EventLog, {"id": "x"}, "EventLog has no option 'id'; known: run_id, url"),
    ],
)
def test_an_unknown_option_is_a_type_error_with_the_nearest_name(kind: Any, options: Any, message: str) -> None:
    with pytest.raises(TypeError) as caught:
        make(kind, **options)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (Ladder, {"stages": ("retri",)}, "Ladder: unknown stage 'retri'; did you mean 'retry'?"),
        (Ladder, {"stages": LlmRepair()}, "must be a sequence of stages; for a single one, write (LlmRepair(),)"),
        (Ladder, {"max_calls": -1}, "Ladder: max_calls should be greater than or equal to 0, not -1"),
        (
            Ladder,
            {"stages": [{"stage": "retry", "atempts": 1}]},
            "Ladder: stages.0.retry.atempts: unknown option; did you mean 'attempts'?",
        ),
        (Processing, {"stages": ["retri"]}, "unknown stage 'retri'; did you mean 'retry'?"),
        (AgentSpec, {"model": "m", "output_mode": "nativ"}, "'tool', not 'nativ'; did you mean 'native'?"),
        (AgentSpec, {}, "AgentSpec: model is missing"),
        (AgentSpec, {"model": "gpt-4o"}, "the model 'gpt-4o' names no provider; did you mean 'openai:gpt-4o'?"),
        (AgentSpec, {"model": "opnai:x"}, "no model provider is known for 'opnai:x'; did you mean 'openai:x'?"),
        (AgentSpec, {"model": "openai:"}, "the model 'openai:' has no name after its provider; write openai:NAME"),
        (
            AgentSpec,
            {"model": "m", "model_settings": {"temprature": 1}},
            "AgentSpec: model_settings: unknown setting 'temprature'; did you mean 'temperature'?",
        ),
        (
            AgentSpec,
            {"model": "m", "model_settings": {"temperature": "hot"}},
            "AgentSpec: model_settings.temperature should be a number, not 'hot'",
        ),
        (AgentSpec, {"model": FakeModel()}, "AgentSpec: model should be a string, not FakeModel(…)"),
        (AgentSpec, {"model": None}, "AgentSpec: model should be a string, not empty"),
        (AgentSpec, {"model": 3}, "AgentSpec: model should be a string; put it in quotes, not 3"),
        (AgentSpec, {"model": "m", "tools": "f"}, "AgentSpec: tools should be a list, not 'f'"),
        (
            AgentSpec,
            {"model": "m", "output_schema": FakeModel},
            "AgentSpec: output_schema should be a mapping, not the class FakeModel",
        ),
        (
            AgentSpec,
            {"model": "m", "output_schema": RepairSettings},
            "not the class RepairSettings; its schema is RepairSettings.model_json_schema()",
        ),
        (Ladder, {"stages": [Escalate]}, "Ladder: stages.0: Escalate is a class; write Escalate()"),
        (Ladder, {"stages": [None]}, "Ladder: stages.0 should be a mapping, not empty"),
        (Escalate, {}, "Escalate: model is missing"),
        (RepairSettings, {"max_attempts": 99}, "max_attempts should be less than or equal to 10, not 99"),
    ],
)
def test_a_wrong_value_is_one_sentence_without_the_words_of_pydantic(kind: Any, options: Any, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        make(kind, **options)
    assert str(caught.value).endswith(message)
    assert "pydantic" not in str(caught.value)


def test_data_is_validated_by_pydantic_as_ever() -> None:
    with pytest.raises(ValidationError):
        Ladder.model_validate({"max_call": 3})
    assert Ladder.model_validate({"max_calls": 3}) == Ladder(max_calls=3)


def test_options_without_their_names_are_a_type_error_that_shows_how_to_write_them() -> None:
    with pytest.raises(TypeError, match=r"^AgentSpec takes its options by name, such as model=…, not 'openai:x'$"):
        AgentSpec("openai:x")  # type: ignore[misc]  # pyright: ignore[reportCallIssue] - which is the point
    with pytest.raises(TypeError, match=r"^Retry takes its options by name, such as attempts=…, not 3$"):
        Retry(3)  # type: ignore[misc]  # pyright: ignore[reportCallIssue] - as above
    with pytest.raises(TypeError, match=r"^Synthesize takes no options, not even 3$"):
        Synthesize(3)  # type: ignore[misc]  # pyright: ignore[reportCallIssue] - as above
