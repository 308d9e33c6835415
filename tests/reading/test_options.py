"""What a caller may ask of `read`, and the feedback a model gets when it cannot be done."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, Field, ValidationError

from flujo_aros import Accepted, Limits, Rejected, StreamReader, UsageError, read

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


@pytest.mark.parametrize(
    ("text", "options", "named"),
    [
        (None, {}, "NoneType"),
        (b"{}", {}, "bytes"),
        ("{}", {"risk": "high"}, "'high'"),
        ("{}", {"pick": "any"}, "'any'"),
        ("{}", {"truncated": "length"}, "truncated must be True, False or None \\(unknown\\), not 'length'"),
        ("{}", {"limits": {"max_chars": 3}}, "limits must be Limits"),
    ],
)
def test_an_option_that_is_none_is_named(text: Any, options: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError, match=named):
        read(text, SCHEMA, **options)
    with pytest.raises(UsageError, match=named):
        StreamReader(SCHEMA, **options).feed(text)


def test_an_unknown_option_of_a_stream_is_an_error_before_the_reply_begins() -> None:
    with pytest.raises(UsageError, match="unknown option 'rsk'; known: risk, truncated, pick, limits"):
        StreamReader(SCHEMA, rsk=1, limits=Limits())  # type: ignore[call-overload]  # as a user might


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ('{"a": 1} {"a": 2}', "exactly one answer"),
        ('{"a": ', "short enough"),
        ('{"a": }', "quotes inside a string"),
        ('{"a": "b"}', "corrected output"),
        ("| a |\n|---|\n| 1 |", "Answer with the output that was asked for"),
        ("I'm sorry, I can't help with that.", 'it says "I\'m sorry"'),
        ('{"type": "object", "properties": {"a": {"type": "integer"}}}', "Do not repeat the schema"),
    ],
)
def test_feedback_says_what_to_do_about_it(text: str, advice: str) -> None:
    outcome = read(text, SCHEMA)
    assert isinstance(outcome, Rejected), outcome
    assert advice in outcome.feedback()


def test_feedback_names_every_place_that_is_wrong() -> None:
    schema = {"type": "object", "properties": {"a": {"enum": ["x"]}, "b": {"type": "number", "maximum": 1}}}
    outcome = read('{"a": "great", "b": 7}', schema)
    assert isinstance(outcome, Rejected)
    assert {issue.path for issue in outcome.issues} == {"$.a", "$.b"}


def test_feedback_quotes_the_value_that_a_model_does_not_allow() -> None:
    class Order(BaseModel):
        quantity: int = Field(ge=1)
        sku: str = Field(min_length=3)

    outcome = read('{"quantity": 0, "sku": "x"}', Order)
    assert isinstance(outcome, Rejected)
    assert "$.quantity: must be greater than or equal to 1, found 0" in outcome.feedback()
    assert outcome.feedback().count("found 'x'") == 1


def test_edits_are_explained_in_the_order_of_the_text_and_each_part_once() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "number"}}}
    outcome = read("```json\n{'a': 'x', \"b\": \"$1,019.98\"}\n```", schema)
    assert isinstance(outcome, Accepted)
    assert [line.split("  ")[1:3] for line in outcome.explain().splitlines()[1:]] == [
        ["$", "fence (lossless)"],
        ["$.a", "quotes (lossless)"],
        ["$.a", "quotes (lossless)"],
        ["$.b", "currency, digit-groups (inferred)"],
        ["$", "fence (lossless)"],
    ]


def test_a_single_candidate_is_not_explained_twice() -> None:
    outcome = read('{"a": "b"}', SCHEMA)
    assert isinstance(outcome, Rejected)
    assert outcome.explain().count("$.a") == 1


def test_limits_that_allow_nothing_are_an_error() -> None:
    with pytest.raises(ValidationError, match="max_chars"):
        Limits(max_chars=0)
