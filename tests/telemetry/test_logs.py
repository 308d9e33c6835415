"""Log lines: their content and levels, and what is never logged."""

from __future__ import annotations

import logging

import pytest

from flujo_aros import Logging, Runner

from .scripted import BAD, GOOD, MESSY, boat_step, pipeline


def test_a_successful_run_is_logged_in_two_lines(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "flujo_aros"):
        run = Runner(pipeline(boat_step("ask", GOOD)), observers=[Logging()]).run_sync("")
    assert [record.message.split(",")[0] for record in caplog.records] == [
        f"run {run.run_id} of boats started",
        f"run {run.run_id} of boats completed",
    ]


def test_one_call_is_logged_in_the_singular(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "flujo_aros"):
        Runner(pipeline(boat_step("ask", GOOD)), observers=[Logging()]).run_sync("")
    assert " completed, 1 call, " in caplog.text


def test_an_error_is_a_warning_with_its_place(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "flujo_aros"):
        Runner(pipeline(boat_step("ask", *[BAD] * 9)), observers=[Logging()]).run_sync("")
    assert [record.message.split(",")[0] for record in caplog.records][-2:] == [
        "step ask degraded",
        caplog.records[-1].message.split(",")[0],
    ]
    stage = next(record for record in caplog.records if record.message.startswith("stage llm_repair rejected"))
    assert getattr(stage, "aros_step", None) == "ask"
    assert getattr(stage, "aros_stage", None) == "llm_repair"


@pytest.mark.parametrize("content", [False, True])
def test_texts_are_logged_only_with_content(caplog: pytest.LogCaptureFixture, *, content: bool) -> None:
    with caplog.at_level(logging.DEBUG, "flujo_aros"):
        Runner(pipeline(boat_step("ask", BAD, MESSY)), observers=[Logging(content=content)]).run_sync("")
    assert ("'it is 3'" in caplog.text) is content
    assert "string-to-number" in caplog.text


def test_a_custom_logger_may_be_passed(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "mine"):
        Runner(pipeline(boat_step("ask", GOOD)), observers=[Logging(logging.getLogger("mine"))]).run_sync("")
    assert {record.name for record in caplog.records} == {"mine"}
