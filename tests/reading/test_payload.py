"""Payloads in tags, before prose and as events: how they are located, and what is rejected."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from flujo_aros import Accepted, ContractError, Output, Reason, Rejected, Risk, StreamReader, Trust, read


class Point(BaseModel):
    x: int


TAGGED = Output.tagged("result", Point)


def test_the_last_complete_pair_wins() -> None:
    outcome = read('<result>{"x": 1}</result> no, better: <result>{"x": 2}</result>', TAGGED)
    assert isinstance(outcome, Accepted)
    assert outcome.value == Point(x=2)
    assert [repair.code for repair in outcome.repairs] == ["earlier-tag"]


@pytest.mark.parametrize("payload", ['{"x": 1}', '\n```json\n{"x": 1}\n```\n', '```\n{"x": 1}```', '  {"x": 1}  '])
def test_one_fence_and_space_around_the_payload_are_fine(payload: str) -> None:
    outcome = read(f"Here: <result>{payload}</result> Done.", TAGGED)
    assert isinstance(outcome, Accepted)
    assert (outcome.value, outcome.trust) == (Point(x=1), Trust.CLEAN)


@pytest.mark.parametrize(
    ("text", "reason", "code"),
    [
        ("no tag at all", Reason.NO_JSON, "missing_tag"),
        ("<result></result>", Reason.NO_JSON, "empty_payload"),
        ("<result> ``` ``` </result>", Reason.NO_JSON, "empty_payload"),
        ("<result>{'x': 1}</result>", Reason.MALFORMED, "json"),
        ('<result>{"x": "one"}</result>', Reason.INVALID, "int_parsing"),
        ('<result>{"x": "1"}</result>', Reason.INVALID, "int_type"),
        ('<result>{"x": 1}</result> wait: <result>{"x": 2', Reason.TRUNCATED, "unterminated_tag"),
        ('<think><result>{"x": 1}</result></think>', Reason.NO_JSON, "missing_tag"),
    ],
)
def test_a_payload_that_cannot_be_taken_says_why(text: str, reason: Reason, code: str) -> None:
    outcome = read(text, TAGGED)
    assert isinstance(outcome, Rejected)
    assert (outcome.reason, outcome.issues[0].code) == (reason, code)


def test_a_rejected_payload_is_kept_as_it_was_written() -> None:
    outcome = read("<result>{x: 1}</result>", TAGGED)
    assert isinstance(outcome, Rejected)
    assert outcome.raw_matched == "{x: 1}"


def test_a_closing_tag_inside_a_string_ends_nothing() -> None:
    contract = Output.tagged("result", {"type": "object"})
    assert read('<result>{"html": "use </result> to close"}</result>', contract).value == {
        "html": "use </result> to close"
    }


def test_a_tag_that_is_only_mentioned_is_not_a_payload() -> None:
    text = 'I will answer in <result> tags.\n<result>{"x": 3}</result>\nThat was <result>.'
    assert read(text, TAGGED).value == Point(x=3)


def test_a_lenient_payload_is_repaired_without_loss_only() -> None:
    lenient = Output.tagged("result", Point, strict=False)
    outcome = read("<result>{'x': 1,}</result>", lenient)
    assert isinstance(outcome, Accepted)
    assert outcome.trust is Trust.LOSSLESS
    assert all(outcome.text[slice(*repair.span)].startswith(repair.before[:5]) for repair in outcome.repairs)
    assert isinstance(read("<result>{x: 1}</result>", lenient), Rejected)
    assert read("<result>{x: 1}</result>", lenient, risk=Risk.INFERRED).value == Point(x=1)


def test_a_text_payload_is_never_parsed() -> None:
    assert read('<note>\n  {"a": 1}\n</note>', Output.text("note")).value == '{"a": 1}'


@given(st.text(st.characters(codec="utf-8", exclude_characters="<>`"), min_size=1).filter(str.strip))
def test_any_text_is_restored_trimmed(text: str) -> None:
    assert read(f"Sure: <note>{text}</note>", Output.text("note")).value == text.strip()


def test_a_block_carries_its_keys_and_leaves_the_prose() -> None:
    outcome = read('Of course. {"plan": "look", "next": ""}\n\nI begin now.', Output.block("plan", ["next", " next "]))
    assert isinstance(outcome, Accepted)
    assert outcome.value.fields == {"plan": "look", "next": ""}
    assert outcome.value.prose == "Of course.\n\nI begin now."


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("just prose", Reason.NO_JSON),
        ('{"plan": null}', Reason.INVALID),
        ('{"other": 1} {"plan": "late"}', Reason.INVALID),
        ('[1] {"plan": "late"}', Reason.INVALID),
    ],
)
def test_the_first_json_value_must_be_the_block(text: str, reason: Reason) -> None:
    outcome = read(text, Output.block("plan"))
    assert isinstance(outcome, Rejected)
    assert outcome.reason is reason


def test_a_blank_block_key_accepts_every_reply() -> None:
    outcome = read("anything", Output.block("  ", ["next"]))
    assert isinstance(outcome, Accepted)
    assert (outcome.value.fields, outcome.value.prose) == ({}, "anything")


EVENT = Output.event(["npc.said", "npc.thought"], ["mood"])


def test_an_event_keeps_additional_fields() -> None:
    outcome = read('{"kind": "npc.thought", "text": "Hm.", "mood": "grim", "x": 1}', EVENT)
    assert isinstance(outcome, Accepted)
    assert outcome.value.model_dump(exclude_unset=True) == {
        "kind": "npc.thought",
        "text": "Hm.",
        "mood": "grim",
        "x": 1,
    }


@pytest.mark.parametrize("written", ['{"text": "only text"}', '{"kind": "shouted", "text": "only text"}'])
def test_a_wrong_or_missing_kind_becomes_the_fallback_and_is_reported(written: str) -> None:
    outcome = read(written, EVENT)
    assert isinstance(outcome, Accepted)
    assert (outcome.value.kind, outcome.value.text) == ("npc.said", "only text")
    assert outcome.repairs[-1].code == "fallback-kind"


def test_prose_is_wrapped_and_never_trusted() -> None:
    outcome = read("The lamps ask for rent.", EVENT)
    assert isinstance(outcome, Accepted)
    assert outcome.trust is Trust.SYNTHESIZED
    assert outcome.value.text == "The lamps ask for rent."
    assert outcome.value.model_extra == {"_raw_fallback": True}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('We need JSON. Thought: the word is HARP. Text: "It hums." Done.', "It hums."),
        ("We need to output JSON. Thought: the word is HARP. We", "…"),
        ('It must be short. "A string begins', "A string begins"),
        ("", "…"),
    ],
)
def test_notes_of_a_model_to_itself_are_not_speech(text: str, said: str) -> None:
    outcome = read(text, EVENT)
    assert isinstance(outcome, Accepted)
    assert outcome.value.text == said


def test_a_contract_without_a_name_is_not_a_contract() -> None:
    for make in (lambda: Output.tagged(" ", Point), lambda: Output.text("<>"), lambda: Output.event([])):
        with pytest.raises(ContractError):
            make()


def test_instructions_name_the_markers_that_the_reader_expects() -> None:
    assert "<result>" in TAGGED.instruction()
    assert '"plan"' in Output.block("plan").instruction()
    assert "npc.thought" in EVENT.instruction()


@given(st.text())
def test_no_text_raises(text: str) -> None:
    for contract in (TAGGED, Output.text("a"), Output.block("a"), EVENT):
        read(text, contract)


# --- to the letter, and never silently wrong --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("payload", "reason", "code"),
    [
        ('{"a": 1, "a": 2}', Reason.AMBIGUOUS, "duplicate_key"),
        ('{"b": {"a": 1, "a": true}}', Reason.AMBIGUOUS, "duplicate_key"),
        ('{"a": NaN}', Reason.MALFORMED, "json"),
        ('{"a": "\\ud800"}', Reason.MALFORMED, "lone_surrogate"),
    ],
)
def test_a_strict_payload_is_json_to_the_letter(payload: str, reason: Reason, code: str) -> None:
    """Text that two parsers would read differently has no certain meaning."""
    outcome = read(f"<r>{payload}</r>", Output.tagged("r", {}))
    assert isinstance(outcome, Rejected)
    assert (outcome.reason, outcome.issues[0].code) == (reason, code)


def test_the_same_value_twice_is_one_value() -> None:
    """There is no choice to make."""
    assert read('<r>{"a": 1, "a": 1}</r>', Output.tagged("r", {})).value == {"a": 1}


@pytest.mark.parametrize(
    ("text", "fields", "prose", "trust"),
    [
        ('```json\n{"plan": "a"}\n```\nGo.', {"plan": "a"}, "Go.", Trust.CLEAN),
        ('<think>{"plan": "x"}</think>\n{"plan": "a"} Go.', {"plan": "a"}, "Go.", Trust.LOSSLESS),
        ('{"plan": "a"}\n<think>hm</think>Go.', {"plan": "a"}, "Go.", Trust.LOSSLESS),
        ('{"plan": "x"}</think>{"plan": "a"} Go.', {"plan": "a"}, "Go.", Trust.LOSSLESS),
        ('<tool_call>{"plan": "x"}</tool_call>{"plan": "a"} Go.', {"plan": "a"}, "Go.", Trust.LOSSLESS),
        ('\ufeff{"plan": "a"} Go.', {"plan": "a"}, "Go.", Trust.CLEAN),
        ('```json\n{"plan": "a"}\nGo.', {"plan": "a"}, "Go.", Trust.CLEAN),
        ("{'plan': 'a',} Go.", {"plan": "a"}, "Go.", Trust.LOSSLESS),
        ('{x} {"plan": 2}', {"plan": 2}, "{x}", Trust.CLEAN),
    ],
    ids=[
        "fence",
        "reasoning",
        "behind",
        "never opened",
        "a call",
        "byte order mark",
        "open fence",
        "wrapping",
        "prose with braces",
    ],
)
def test_a_block_is_found_and_taken_out_of_the_prose(text: str, fields: object, prose: str, trust: Trust) -> None:
    """Reasoning and fences are not part of the prose, and a trailing comma needs no further call."""
    outcome = read(text, Output.block("plan"))
    assert isinstance(outcome, Accepted)
    assert (outcome.value.fields, outcome.value.prose, outcome.trust) == (fields, prose, trust)


@pytest.mark.parametrize(
    "text",
    ['{"plan": 1, "plan": 2}', "{'plan': 1, 'plan': 2}", "{'plan': {'a': 1, 'a': 2}}", "{plan: 'a'}", "{'plan': '"],
)
def test_a_block_with_a_choice_left_open_is_not_a_block(text: str) -> None:
    """Nothing is chosen or closed; only the wrapping is repaired."""
    assert isinstance(read(text, Output.block("plan")), Rejected)


# --- the forms of a tag -----------------------------------------------------------------------------------------------

FORMS = [
    ("<Result>{}</Result>", ["tag-form", "tag-form"]),
    ("<RESULT>{}</result>", ["tag-form"]),
    ('<result type="json">{}</result>', ["tag-form"]),
    ("<result id='>' x=1>{}</result>", ["tag-form"]),
    ("<result >{}</result\n>", ["tag-form", "tag-form"]),
    ("<result>{}</result>", []),
]


@pytest.mark.parametrize(("form", "codes"), FORMS)
def test_a_tag_counts_in_any_case_and_with_attributes(form: str, codes: list[str]) -> None:
    text = form.replace("{}", '{"x": 1}')
    outcome = read(text, TAGGED)
    assert isinstance(outcome, Accepted)
    assert (outcome.value, [repair.code for repair in outcome.repairs]) == (Point(x=1), codes)
    assert outcome.trust is (Trust.LOSSLESS if codes else Trust.CLEAN)
    assert all(text[slice(*repair.span)] == repair.before for repair in outcome.repairs)


@pytest.mark.parametrize(("form", "_codes"), FORMS)
def test_an_earlier_payload_is_never_taken_for_a_later_one_in_another_form(form: str, _codes: object) -> None:
    text = '<result>{"x": 1}</result> No, better: ' + form
    assert read(text.replace("{}", '{"x": 2}'), TAGGED).value == Point(x=2)
    assert isinstance(read(text[: text.rindex("{}")] + '{"x', TAGGED), Rejected)


@pytest.mark.parametrize(
    "other", ["<results>{}</results>", "<result/>{}", "<result-x>{}</result-x>", "<a:result>{}</a:result>"]
)
def test_another_tag_is_another_tag(other: str) -> None:
    assert isinstance(read(other.replace("{}", '{"x": 1}'), TAGGED), Rejected)


@pytest.mark.parametrize(
    "words",
    [
        "I use <result> and </result> tags. {}",
        "{} It stands between `<result>` and `</result>`.",
        "<result>...</result> is the form. {}",
        "Where the `<Result>` tag stands: {}",
        "{} So much for <result …>.",
    ],
)
def test_tags_that_are_spoken_of_hold_no_payload(words: str) -> None:
    assert read(words.replace("{}", '<result>{"x": 1}</result>'), TAGGED).value == Point(x=1)


@pytest.mark.parametrize("size", [1, 2, 5, 11])
@pytest.mark.parametrize(("form", "_codes"), FORMS)
def test_a_tag_in_another_form_streams_as_it_is_read(form: str, _codes: object, size: int) -> None:
    for contract in (TAGGED, Output.text("result")):
        text = f"Well: {form.replace('{}', 'null')} no: {form.replace('{}', json.dumps({'x': 12}))} <result"
        reader = StreamReader(contract)
        for start in range(0, len(text), size):
            reader.feed(text[start : start + size])
        assert reader.close() == read(text, contract)


def test_many_tags_take_no_more_than_their_share() -> None:
    for text in ("<result>" * 30_000, "<result>{" * 30_000, "<result> and </result>" * 20_000, "<result a=" * 30_000):
        assert isinstance(read(text, TAGGED), Rejected)


@pytest.mark.parametrize("mark", ['"', "'", "``"])
def test_a_quotation_of_which_only_the_mark_came_is_cut_and_no_dots_of_the_prompt(mark: str) -> None:
    outcome = read(mark, EVENT, truncated=True)
    assert isinstance(outcome, Rejected)
    assert outcome.reason is Reason.TRUNCATED
    whole = read(mark, EVENT)
    assert isinstance(whole, Rejected)
    assert whole.reason is Reason.ECHOED_SCHEMA


def test_a_key_that_is_missing_or_not_allowed_is_one_issue() -> None:
    inner = {"type": "object", "required": ["a b", "q"], "properties": {"a b": {}}, "additionalProperties": False}
    schema = {"type": "object", "required": ["x"], "properties": {"x": inner}}
    rejected = read('{"x": {"z": 1}}', schema)
    assert isinstance(rejected, Rejected)
    assert [(issue.path, issue.code) for issue in rejected.issues] == [
        ("$.x['a b']", "missing"),
        ("$.x.q", "missing"),
        ("$.x.z", "extra_key"),
    ]


@pytest.mark.parametrize("text", ["[insert summary here]", "{{summary}}", "<your summary here>", "Insert summary here"])
def test_a_placeholder_between_the_tags_is_not_a_text(text: str) -> None:
    assert isinstance(read(f"<summary>{text}</summary>", Output.text("summary")), Rejected)
    assert read("<summary>[laughs]</summary>", Output.text("summary")).value == "[laughs]"
