"""A truncated tagged output is continued; one that the model left open is requested again."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import Agent

from flujo_aros import Output, Runner, Step
from flujo_aros.testing import ScriptedModel, cut

WHOLE = '<result>{"name": "a pen and paper", "n": 1}</result>'
VALUE = {"name": "a pen and paper", "n": 1}


def asked(*replies: Any, retries: int = 2, contract: Any = None) -> tuple[Any, ScriptedModel]:
    model = ScriptedModel(*replies, then="I cannot.")
    contract = contract or Output.tagged("result", {"type": "object"}, max_retries=retries)
    return Runner(Step("s", agent=Agent(model), contract=contract, input="Use <result>.")).run_sync("x"), model


def test_a_truncated_payload_is_continued() -> None:
    result, model = asked(cut(WHOLE[:33]), WHOLE[9:])
    assert (result.output, model.calls) == (VALUE, 2)
    assert "cut off" in model.asked[1].prompt


@pytest.mark.parametrize("first", ['<result>{"name": "a pen', "It is in <result>{"])
def test_a_payload_left_open_by_the_model_is_requested_again(first: str) -> None:
    result, model = asked(first, WHOLE)
    assert (result.output, model.calls) == (VALUE, 2)
    assert "never closed" in model.asked[1].prompt


def test_no_retry_is_made_of_a_cut_reply_that_could_not_be_continued() -> None:
    """The next reply would be truncated, too."""
    result, model = asked(cut(WHOLE[:33]), cut("I begin anew, and then"))
    assert (result.status.value, model.calls) == ("failed", 2)


def test_there_are_never_more_calls_than_retries() -> None:
    for retries in (0, 1, 2, 3):
        _, model = asked(cut('<result>{"a'), '"a": x}</result>', "no", "<result>{</result>", "none", retries=retries)
        assert model.calls <= 1 + retries


def test_text_between_tags_is_requested_again_too() -> None:
    result, model = asked("none", "<note>y</note>", contract=Output.text("result", max_retries=1))
    assert (result.status.value, model.calls) == ("failed", 2)
    result, model = asked("none", "<result>y</result>", contract=Output.text("result", max_retries=1))
    assert (result.output, model.calls) == ("y", 2)
