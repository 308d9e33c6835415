"""Errors for text that is not a date, time or duration: what it is, why it is unclear, and what to write."""

from __future__ import annotations

import json
from datetime import date, datetime, time, timedelta
from typing import Any

import pytest
from pydantic import BaseModel, PastDatetime

from flujo_aros import Rejected, read

UNCLEAR = ": it is unclear which number is the day and which is the month"
SCHEMA = {"type": "object", "required": ["x"], "properties": {"x": {"type": "string", "format": "date"}}}


def model_of(kind: Any) -> type[BaseModel]:
    return type("M", (BaseModel,), {"__annotations__": {"x": kind}})


@pytest.mark.parametrize(
    ("kind", "written", "message"),
    [
        (date, "03/04/2026", f"expected a date, found '03/04/2026'{UNCLEAR}; write YYYY-MM-DD"),
        (date, "3-4-26", f"expected a date, found '3-4-26'{UNCLEAR}; write YYYY-MM-DD"),
        (date, "33/04/2026", "expected a date, found '33/04/2026'; write YYYY-MM-DD"),
        (date, "next week", "expected a date, found 'next week'; write YYYY-MM-DD"),
        (date | None, "2026", "expected a date, found '2026'; write YYYY-MM-DD"),
        (datetime, "03/04/2026 9:00", f"expected a date and time, found '03/04/2026 9:00'{UNCLEAR}; write YYYY-MM-DDT"),
        (date, "2026-02-30", "expected a date, found '2026-02-30': that day does not exist; write YYYY-MM-DD"),
        (datetime, "2026-02-30T10:00:00Z", "expected a date and time, found '2026-02-30T10:00:00Z': that day does not"),
        (time, "25:00", "expected a time, found '25:00': that time does not exist; write HH:MM:SS"),
        (time, "half past", "expected a time, found 'half past'; write HH:MM:SS"),
        (timedelta, "soon", "expected a duration, found 'soon'; write PT1H30M"),
        # a number may be seconds, milliseconds or minutes
        (datetime, 1714780800, "expected a date and time, found the number 1714780800; write YYYY-MM-DDTHH:MM:SS"),
        (timedelta, 90, "expected a duration, found the number 90; write PT1H30M"),
    ],
)
def test_the_message_about_an_ambiguous_time_names_the_expected_format(
    kind: Any, written: str | int, message: str
) -> None:
    outcome = read(json.dumps({"x": written}), model_of(kind))
    assert isinstance(outcome, Rejected)
    assert outcome.issues[0].message.startswith(message)
    assert message in outcome.feedback()


@pytest.mark.parametrize("written", ["03/04/2026", "2026-02-30", "2026-13-01", "2026-2-30"])
def test_a_schema_says_the_same_as_a_model(written: str) -> None:
    by_schema, by_model = (read(json.dumps({"x": written}), contract) for contract in (SCHEMA, model_of(date)))
    assert isinstance(by_schema, Rejected)
    assert isinstance(by_model, Rejected)
    assert by_schema.issues[0].message == by_model.issues[0].message


def test_a_moment_that_does_not_exist_is_quoted_as_it_was_written() -> None:
    outcome = read('{"x": "2026-02-30 10:00Z"}', {"properties": {"x": {"type": "string", "format": "date-time"}}})
    assert isinstance(outcome, Rejected)
    assert "found '2026-02-30 10:00Z': that day does not exist" in outcome.issues[0].message


def test_a_time_that_breaks_another_rule_is_reported_by_that_rule() -> None:
    outcome = read('{"x": "2999-01-01T00:00:00"}', model_of(PastDatetime))
    assert isinstance(outcome, Rejected)
    assert outcome.issues[0].message == "must be in the past, found '2999-01-01T00:00:00'"


def test_a_value_in_another_format_is_reported_with_the_expected_one() -> None:
    outcome = read('{"x": "ann"}', {"type": "object", "properties": {"x": {"type": "string", "format": "email"}}})
    assert isinstance(outcome, Rejected)
    assert outcome.issues[0].message == "expected a string in the format 'email', found 'ann'"
