"""The options of `read`, and the feedback to a model after a rejection."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, Field

from flujo_aros import Accepted, Degraded, Limits, Output, Reason, Rejected, Risk, StreamReader, UsageError, read

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
def test_an_invalid_option_is_named(text: Any, options: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError, match=named):
        read(text, SCHEMA, **options)
    with pytest.raises(UsageError, match=named):
        StreamReader(SCHEMA, **options).feed(text)


def test_an_unknown_option_of_a_stream_is_an_error_before_the_reply_begins() -> None:
    with pytest.raises(TypeError, match="unknown option 'rsk'; did you mean 'risk'"):
        StreamReader(SCHEMA, rsk=1, limits=Limits())  # type: ignore[call-overload]  # as a user might


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ('{"a": 1} {"a": 2}', "exactly one answer"),
        ('{"a": ', "short enough"),
        ('{"a": }', "quotes inside a string"),
        ('{"a": "b"}', "corrected output"),
        ("| a |\n|---|\n| 1 |\n| 2 |", "Answer with the output that was asked for"),
        ("I'm sorry, I can't help with that.", 'it says "I\'m sorry"'),
        ("I can’t help with that.", "it says 'I can’t'"),
        ('{"type": "object", "properties": {"a": {"type": "integer"}}}', "Do not repeat the schema"),
    ],
)
def test_feedback_includes_advice(text: str, advice: str) -> None:
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


def test_a_text_that_was_read_in_another_notation_is_shown_once() -> None:
    schema = {"title": "Order", "type": "object", "properties": {"sku": {"type": "string"}, "note": {"type": "string"}}}
    outcome = read("Order(sku='A', note='b')", schema)
    assert outcome.explain().splitlines() == [
        "accepted, inferred",
        """  $  keyword-arguments (inferred)  "Order(sku='A', note='b')" -> '…'""",
        "  $.sku  unquoted-key (inferred)  … -> 'sku'",
        "  $.sku  quotes (lossless)  … -> 'A'",
        "  $.note  unquoted-key (inferred)  … -> 'note'",
        "  $.note  quotes (lossless)  … -> 'b'",
    ]


def test_a_list_around_a_value_is_not_explained_as_a_deletion() -> None:
    outcome = read('[{"sku": "A"}]', {"type": "object", "properties": {"sku": {"type": "string"}}})
    assert "-> '…'" in outcome.explain()


def test_a_single_candidate_is_not_explained_twice() -> None:
    outcome = read('{"a": "b"}', SCHEMA)
    assert isinstance(outcome, Rejected)
    assert outcome.explain().count("$.a") == 1


def test_limits_that_allow_nothing_are_an_error() -> None:
    with pytest.raises(UsageError, match="max_chars"):
        Limits(max_chars=0)
    with pytest.raises(TypeError, match="Limits has no option 'max_char'; did you mean 'max_chars'"):
        Limits(max_char=5)  # type: ignore[call-arg]  # as a user might


ROWS = "\n".join(f'{{"a": {number}}}' for number in range(500))


@pytest.mark.parametrize("contract", [{"type": "array", "items": SCHEMA}, {}])
def test_each_row_of_json_lines_is_collected(contract: dict[str, Any]) -> None:
    """Rows of one list are one answer, however many there are."""
    outcome = read(ROWS, contract)
    assert isinstance(outcome, Accepted)
    assert outcome.value == [{"a": number} for number in range(500)]
    assert [repair.code for repair in outcome.repairs] == ["collected"]


@pytest.mark.parametrize("pick", ["last", "first", "error"])
def test_more_answers_than_the_limit_are_not_the_last_ones_that_were_read(pick: Any) -> None:
    """A reply with more candidates than allowed is TOO_LARGE, instead of returning the last one within the limit."""
    text = " or rather ".join(f'{{"a": {number}}}' for number in range(100))
    outcome = read(text, SCHEMA, pick=pick)
    assert isinstance(outcome, Rejected)
    assert outcome.reason is Reason.TOO_LARGE
    assert "many" not in read(text, SCHEMA, pick=pick, limits=Limits(max_candidates=100)).explain()


EVENT = Output.event(["say", "act"], ["mood"])


@pytest.mark.parametrize(
    "text",
    ["Aye.", '{"kind": "SAY", "text": "Aye.", "mood": "glad"}', '{"kind": "say", "text": "Aye."}', '{"text": "Aye."}'],
)
def test_an_event_keeps_to_the_allowed_risk(text: str) -> None:
    """With `risk=LOSSLESS`, an event that needs an inferred repair is rejected."""
    assert isinstance(read(text, EVENT), Accepted)
    outcome = read(text, EVENT, risk=Risk.LOSSLESS)
    assert isinstance(outcome, Rejected)
    assert outcome.issues[0].code == "risk"


@pytest.mark.parametrize(
    ("text", "contract"),
    [
        ('"{\\"a\\": \\"few\\"}"', SCHEMA),
        ('{"kind": "say", "text": "..."} {"kind": "say"}', EVENT),
    ],
)
def test_a_rejection_has_the_reply_as_it_was_written(text: str, contract: Any) -> None:
    """`text` is the whole reply, even if its JSON was inside a string, or a part was set aside."""
    outcome = read(text, contract)
    assert isinstance(outcome, Rejected)
    assert outcome.text == text


def test_the_draft_of_a_tagged_payload_has_the_position_of_the_payload() -> None:
    text = 'Here: <result>{"a": "few",}</result>'
    outcome = read(text, Output.tagged("result", SCHEMA, strict=False))
    assert isinstance(outcome, Rejected)
    assert outcome.draft is not None
    assert text[slice(*outcome.draft.span)] == '{"a": "few",}'


def test_the_draft_of_json_in_a_string_has_the_position_of_the_string() -> None:
    text = '\n"{\\"a\\": \\"few\\"}"'
    outcome = read(text, SCHEMA)
    assert isinstance(outcome, Rejected)
    assert outcome.draft is not None
    assert text[slice(*outcome.draft.span)] == text.strip()


@pytest.mark.parametrize(("payload", "reason"), [("none of them", Reason.MALFORMED), ("null", Reason.INVALID)])
def test_an_unusable_payload_reports_the_reason_in_strict_and_lenient_mode(payload: str, reason: Reason) -> None:
    """Between its tags, invalid JSON is malformed, other JSON is invalid, and an empty payload is NO_JSON."""
    for strict in (True, False):
        outcome = read(f"<result>{payload}</result>", Output.tagged("result", SCHEMA, strict=strict))
        assert isinstance(outcome, Rejected)
        assert outcome.reason is reason


@pytest.mark.parametrize(
    ("text", "contract", "missing"),
    [
        ("null", {"type": "object"}, "object"),
        ("null", list[int], "list"),
        ("hello", list[int] | dict[str, int], "object or list"),
        ("hello", {}, "value"),
    ],
)
def test_a_reply_without_json_is_rejected_with_the_kind_of_json_that_was_requested(
    text: str, contract: Any, missing: str
) -> None:
    rejected = read(text, contract)
    assert isinstance(rejected, Rejected)
    assert rejected.issues[0].message.endswith(f"no JSON {missing}")


def test_the_representation_of_an_outcome_is_one_short_line() -> None:
    """A debugger or a log shows it, and a reply may be long."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    accepted, rejected = read("Sure! ```{'a': '" + "x" * 5_000 + "'}```", schema), read("no " * 5_000, schema)
    assert repr(accepted).startswith("<Accepted lossless, 4 repairs: {'a': 'xxx")
    assert repr(rejected).startswith("<Rejected no_json: $: the text contains no JSON object, in 'no no ")
    assert isinstance(rejected, Rejected)
    for each in (accepted, rejected, Degraded("y" * 5_000, rejected)):
        assert len(repr(each)) < 200


def test_the_repr_of_an_accepted_value_keeps_the_order_of_its_keys() -> None:
    assert repr(read('{"b": 1, "a": 2}', dict)) == "<Accepted clean: {'b': 1, 'a': 2}>"
