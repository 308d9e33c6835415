"""Steps that ask a person: the run pauses, and resumes with a valid answer."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from pydantic import BaseModel

from flujo_aros import Call, ContractError, Human, Pipeline, Runner, RunResult, RunStatus, TemplateError, check
from flujo_aros.contract import compile_contract
from flujo_aros.pipeline.human import judged_answer, rejected_answer
from flujo_aros.pipeline.model import PipelineStep


class Preferences(BaseModel):
    theme: str
    loud: bool = False


def upper(text: str) -> str:
    return text.upper()


def asked(step: PipelineStep, given: str = "hello") -> tuple[Pipeline, RunResult]:
    pipeline = Call("draft", function=upper) >> step >> Call("after", function=str)
    return pipeline, Runner(pipeline).run_sync(given)


def answered(pipeline: Pipeline, paused: RunResult, answer: Any) -> RunResult:
    assert paused.paused is not None
    saved = json.loads(json.dumps(paused.paused.to_dict()))  # as another process would find it
    return asyncio.run(Runner(pipeline).resume(saved, answer))


def test_it_pauses_with_the_rendered_message_and_the_schema():
    schema = {"enum": ["yes", "no"]}
    _, run = asked(Human("ok", "Send {{ previous_step }}?", input_schema=schema))
    assert run.status is RunStatus.PAUSED
    assert run.paused is not None
    assert (run.paused.step, run.paused.message, run.paused.input_schema) == ("ok", "Send HELLO?", schema)


def test_without_a_message_the_value_before_it_is_shown():
    _, run = asked(Human("ok"))
    assert run.paused is not None
    assert run.paused.message == "HELLO"


def test_an_answer_is_the_value_of_the_step():
    pipeline, run = asked(Human("ok", "Send?"))
    resumed = answered(pipeline, run, "yes please")
    assert (resumed.status, resumed.output) == (RunStatus.COMPLETED, "yes please")


def test_an_answer_in_text_is_read_against_the_schema():
    pipeline, run = asked(Human("likes", "Theme?", input_schema=Preferences))
    assert answered(pipeline, run, "{theme: 'dark', loud: true}").steps[1].value == Preferences(theme="dark", loud=True)
    assert answered(pipeline, run, {"theme": "dark"}).steps[1].value == Preferences(theme="dark")


@pytest.mark.parametrize("answer", ["maybe", 3, {"no": 1}, None])
def test_an_answer_that_does_not_fit_leaves_the_run_paused_and_says_why(answer: Any):
    pipeline, run = asked(Human("ok", "Send?", input_schema={"enum": ["yes", "no"]}))
    again = answered(pipeline, run, answer)
    assert again.status is RunStatus.PAUSED
    assert again.paused is not None
    assert again.paused.message.startswith("Send?\nThe answer was not accepted: ")
    assert (run.paused is not None and run.paused.rejected, again.paused.rejected) == (False, True)
    assert answered(pipeline, again, "yes").status is RunStatus.COMPLETED


@pytest.mark.parametrize(
    ("answer", "words"), [("maybe", "expected an object, found the string 'maybe'"), (" ", "it is empty")]
)
def test_text_that_is_not_a_value_is_rejected_as_an_answer(answer: str, words: str):
    outcome = judged_answer(answer, compile_contract({"type": "object"}))
    assert rejected_answer("Pay?", outcome) == f"Pay?\nThe answer was not accepted: {words}"


def test_an_answer_that_is_an_object_is_validated_as_its_json():
    pipeline, run = asked(Human("likes", "Theme?", input_schema=Preferences.model_json_schema()))
    assert answered(pipeline, run, Preferences(theme="dark")).steps[1].value == {"theme": "dark", "loud": False}
    again = answered(pipeline, run, {"theme": object()})
    assert again.paused is not None
    assert "is not a JSON value" in again.paused.message


def test_a_check_can_reject_an_answer():
    pipeline, run = asked(Human("n", "How many?", input_schema=int, checks=(check("output < 10"),)))
    again = answered(pipeline, run, 12)
    assert again.paused is not None
    assert again.paused.message == "How many?\nThe answer was not accepted: output < 10 does not hold"
    assert answered(pipeline, again, "9").steps[1].value == 9


def test_an_answer_goes_into_the_context():
    pipeline = Human("name", "Your name?", sink_to="user.name") >> Call("hi", upper, input="Hi {{ context.user.name }}")
    paused = Runner(pipeline).run_sync("x")
    assert answered(pipeline, paused, "Ann").output == "HI ANN"


def test_later_steps_know_the_answer_as_resume_input():
    pipeline = Human("name", "Your name?") >> Call("one", len) >> Call("hi", upper, input="hi {{ resume_input }}")
    assert answered(pipeline, Runner(pipeline).run_sync("x"), "Ann").output == "HI ANN"


def test_it_is_known_whether_an_answer_is_a_mapping():
    assert Human("a", input_schema=Preferences).gives_mapping is True
    assert Human("a", input_schema=int).gives_mapping is False
    assert Human("a").gives_mapping is None


def test_a_wrong_message_or_schema_is_found_at_once():
    with pytest.raises(TemplateError, match="message of step 'a': there is no 'imput'"):
        Human("a", "{{ imput }}")
    with pytest.raises(ContractError):
        Human("a", input_schema={"type": 3})
