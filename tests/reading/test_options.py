"""What a caller may ask of `read`, and the feedback a model gets when it cannot be done."""

from __future__ import annotations

from typing import Any

import pytest

from flujo_aros import Limits, Rejected, StreamReader, UsageError, read

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


@pytest.mark.parametrize(
    ("text", "options", "named"),
    [
        (None, {}, "NoneType"),
        (b"{}", {}, "bytes"),
        ("{}", {"risk": "high"}, "'high'"),
        ("{}", {"pick": "any"}, "'any'"),
        ("{}", {"truncated": "length"}, "truncated='length': it must be True, False or None"),
        ("{}", {"limits": {"max_chars": 3}}, "it must be Limits"),
    ],
)
def test_an_option_that_is_none_is_named(text: Any, options: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError, match=named):
        read(text, SCHEMA, **options)
    with pytest.raises(UsageError, match=named):
        StreamReader(SCHEMA, **options).feed(text)


def test_an_unknown_option_of_a_stream_is_an_error_before_the_reply_begins() -> None:
    with pytest.raises(UsageError, match="there is no option 'rsk'; known: risk, truncated, pick, limits"):
        StreamReader(SCHEMA, rsk=1, limits=Limits())  # type: ignore[call-overload]  # as a user might


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ('{"a": 1} {"a": 2}', "exactly one answer"),
        ('{"a": ', "shorter"),
        ('{"a": }', "quotes inside a string"),
        ('{"a": "b"}', "corrected output"),
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
