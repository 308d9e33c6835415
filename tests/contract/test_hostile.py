"""Hostile replies: what is clearly meant is accepted, and nothing else."""

from typing import Any

import pytest

from flujo_aros import Accepted, ContractError, Output, Reason, Rejected, Repair, StreamReader, read
from flujo_aros.contract import EXAMPLE, with_checks

RESULT = Output.tagged("result", {"type": "object"})
NOTE = Output.text("note")
SAID = Output.event(["npc.said", "npc.thought"])


def streamed(text: str, contract: Any) -> Any:
    reader = StreamReader(contract)
    for start in range(0, len(text), 3):
        reader.feed(text[start : start + 3])
    return reader.close()


# --- tags -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "later",
    [" wait: <result>", "\n<result>\n", ' better: <result>Here it is: {"n": 2}', " no: <result>So [2", '<result>{"n":'],
)
def test_the_payload_that_started_last_is_not_replaced_by_an_earlier_one(later: str) -> None:
    outcome = read(f'<result>{{"n": 1}}</result>{later}', RESULT)
    assert isinstance(outcome, Rejected)
    assert (outcome.reason, outcome.issues[0].code) == (Reason.TRUNCATED, "unterminated_tag")


@pytest.mark.parametrize("later", [" I closed <result> properly.", " as `<result>` wants", " (see <result>)"])
def test_a_tag_only_mentioned_after_a_payload_does_not_shorten_it(later: str) -> None:
    assert read(f'<result>{{"n": 1}}</result>{later}', RESULT).value == {"n": 1}


@pytest.mark.parametrize("spoken", ["between <note> and </note>", "between <note>` and `</note>", "<note> und </note>"])
def test_tags_that_are_spoken_of_hold_no_text_where_others_do(spoken: str) -> None:
    assert read(f"<note>Eat.</note> It stands {spoken}, as asked.", NOTE).value == "Eat."


@pytest.mark.parametrize(
    "reply",
    [
        "<note>Use the <note> element for notes.</note>",
        "<note>Wrap it in <note> and </note>, always.</note>",
        "<note>It is `</note>` that ends it.</note>",
        "<note>a draft\n<note>the text</note>",
        "<note>the text</note> (as asked, in <note>...</note>)",
    ],
)
def test_a_text_that_mentions_its_own_tags_is_not_cut_at_them(reply: str) -> None:
    outcome = read(reply, NOTE)
    assert isinstance(outcome, Rejected)
    assert (outcome.reason, outcome.issues[0].code) == (Reason.AMBIGUOUS, "nested_tag")


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("I will write <note> now. <note>the text</note>", "the text"),
        ("Write it as <note>...</note>. So: <note>the text</note>", "the text"),
        ("<note>the text</note>\nIt ends with </note> as asked.", "the text"),
        ("**<note>**\n<note>the text</note></note>", "the text"),
        ("<note>…</note>", "…"),
    ],
)
def test_text_that_mentions_tags_around_a_payload_does_not_make_it_ambiguous(reply: str, text: str) -> None:
    outcome = read(reply, NOTE)
    assert isinstance(outcome, Accepted)
    assert outcome.value == text


def test_a_lone_word_between_tags_is_a_text() -> None:
    assert read("<note>and</note>", NOTE).value == "and"


@pytest.mark.parametrize("unseen", ["\u200b", "\ufeff", " \u200d\n"])
def test_payloads_hidden_from_readers_do_not_count(unseen: str) -> None:
    outcome = read(f"<note>{unseen}</note>", NOTE)
    assert isinstance(outcome, Rejected)
    assert outcome.issues[0].code == "empty_payload"


def test_a_reply_cut_after_its_payload_is_complete() -> None:
    """The result is the same if the payload may be repaired."""
    loose = Output.tagged("result", {"type": "object"}, strict=False)
    for contract in (RESULT, loose):
        assert read('<result>{"n": 1}</result> And now I', contract, truncated=True).value == {"n": 1}
    assert read('<result>{"n": 1,}</result> And', loose, truncated=True).value == {"n": 1}


@pytest.mark.parametrize("truncated", [None, True, False])
def test_a_payload_without_its_end_inside_its_tags_is_malformed_and_not_truncated(truncated: bool | None) -> None:
    """Reading stops at the closing tag."""
    outcome = read('<result>{"n": 1</result>', Output.tagged("result", {}, strict=False), truncated=truncated)
    assert isinstance(outcome, Rejected)
    assert outcome.reason is Reason.MALFORMED


HUGE = "9" * 400


def holding(number: str, contract: Any) -> str:
    value = f'{{"n": {number}}}'
    return f"<result>{value}</result>" if contract.mode == "tagged" else value


@pytest.mark.parametrize(
    ("number", "contract"),
    [
        ("1e999", Output.tagged("result", {})),
        ("-1e999", Output.tagged("result", {}, strict=False)),
        (HUGE, Output.tagged("result", dict[str, float])),
        ("1e999", Output.block("n")),
        ("1e999", Output.json({})),
        (HUGE, Output.json(dict[str, float])),
        (HUGE, Output.json(dict[str, list[float] | None])),
        (f"[{HUGE}]", Output.json(dict[str, list[float] | None])),
    ],
    ids=lambda part: part if isinstance(part, str) and len(part) < 9 else None,
)
def test_a_number_that_is_too_large_is_never_infinity(number: str, contract: Any) -> None:
    outcome = read(
        f'<result>{{"n": {number}}}</result>' if contract.mode == "tagged" else f'{{"n": {number}}}', contract
    )
    assert isinstance(outcome, Rejected)


@pytest.mark.parametrize("contract", [Output.tagged("result", {}), Output.json(dict[str, int]), Output.block("n")])
def test_an_integer_may_have_any_size(contract: Any) -> None:
    outcome = read(holding(HUGE, contract), contract)
    assert isinstance(outcome, Accepted)
    assert (outcome.value.fields if contract.mode == "block" else outcome.value) == {"n": int(HUGE)}


# --- events -----------------------------------------------------------------------------------------------------------

PROSE = {
    'The sign reads {"open": true}. I step in.': 'The sign reads {"open": true}. I step in.',
    "She holds {a, b} and [c].": "She holds {a, b} and [c].",
    'I read {"open": true}': 'I read {"open": true}',
    "I count [1, 2, 3] lamps; [4] are broken.": "I count [1, 2, 3] lamps; [4] are broken.",
    "I cannot open the door, I'm sorry.": "I cannot open the door, I'm sorry.",
    "We need to leave before dawn.": "We need to leave before dawn.",
    "We have to run! The user interface blinks.": "We have to run! The user interface blinks.",
    'The old man says: "Leave now." Then he weeps.': 'The old man says: "Leave now." Then he weeps.',
    'He gives his answer: "No." and leaves.': 'He gives his answer: "No." and leaves.',
    'Reply: "No, sir."': "No, sir.",
    "```\nI hum.\n```": "I hum.",
    "```text\nI hum.\n```": "I hum.",
    "hm, dull.</think> I hum.": "I hum.",
    "We need a clue. We must hide the word HARP.": "We need a clue. We must hide the word HARP.",
    "We need to pick a clue that hides the word HARP.": "…",
}


@pytest.mark.parametrize("text", PROSE)
def test_any_prose_is_the_text_of_an_event(text: str) -> None:
    outcome = read(text, SAID)
    assert isinstance(outcome, Accepted), outcome.explain()
    assert (outcome.value.text, outcome.value.is_raw_fallback) == (PROSE[text], True)
    assert streamed(text, SAID) == outcome


@pytest.mark.parametrize(
    "text", ['{"content": "x"}', 'Here: {"kind": "npc.said", "line": "x"}', '[{"text": 1}, {}]', "{}"]
)
def test_a_malformed_event_is_not_treated_as_prose(text: str) -> None:
    outcome = read(text, SAID)
    assert isinstance(outcome, Rejected)
    assert outcome.reason is Reason.INVALID


ECHOES = [EXAMPLE, EXAMPLE[:-1], EXAMPLE.upper(), f"“{EXAMPLE}”", f"*{EXAMPLE}*", EXAMPLE.replace(" ", "\n", 1)]


@pytest.mark.parametrize("echo", ECHOES)
@pytest.mark.parametrize("form", ["{}", '{{"kind": "npc.thought", "text": "{}"}}', "{{'text': '{}'}}"])
def test_an_echo_of_the_example_is_known_in_any_dress(form: str, echo: str) -> None:
    outcome = read(form.format(echo), SAID)
    assert isinstance(outcome, Rejected)
    assert outcome.reason is Reason.ECHOED_SCHEMA


def test_a_short_example_of_your_own_is_an_echo_only_word_for_word() -> None:
    contract = Output.event(["npc.said"], example="Aye.")
    assert isinstance(read('{"kind": "npc.said", "text": "Aye."}', contract), Rejected)
    assert read('{"kind": "npc.said", "text": "Aye!"}', contract).value.text == "Aye!"


def test_an_ignored_echo_is_reported() -> None:
    echo = f'{{"kind": "npc.said", "text": "{EXAMPLE}"}}'
    outcome = read(f'{echo}\n{{"kind": "npc.thought", "text": "Mine."}}', SAID)
    assert isinstance(outcome, Accepted)
    reported: list[Repair] = [repair for repair in outcome.repairs if repair.span == (0, len(echo))]
    assert (outcome.value.text, [repair.code for repair in reported]) == ("Mine.", ["prose-around"])


# --- mistakes of the caller -------------------------------------------------------------------------------------------

WRONG = {
    "a tag that is not a string": (lambda: Output.tagged(None, {}), "tag must be a string, not None"),  # type: ignore[arg-type]  # the mistake
    "a key that is not a string": (lambda: Output.block(5), "block_key must be a string, not 5"),  # type: ignore[arg-type]  # the mistake
    "required as one text": (lambda: Output.block("plan", "next"), r"write a list, \['next'\]"),
    "a kind that is no text": (lambda: Output.event(["a", 1]), "kinds contains 1"),  # type: ignore[list-item]  # the mistake
    "a field that events have": (lambda: Output.event(["a"], ["says_nothing"]), "'says_nothing' cannot be used"),
    "a field that models had": (lambda: Output.event(["a"], ["copy"]), "'copy' cannot be used"),
    "a field that models have": (lambda: Output.event(["a"], ["model_dump"]), "'model_dump' cannot be used"),
    "a blank example": (lambda: Output.event(["a"], example=" "), "example"),
    "a check that is none": (lambda: Output.event(["a"], checks=["short"]), "checks contains 'short'"),  # type: ignore[list-item]  # the mistake
    "a check that is none, on a contract": (lambda: with_checks(NOTE, [5]), "checks contains 5"),  # type: ignore[list-item]  # the mistake
}


@pytest.mark.parametrize("name", WRONG)
def test_an_invalid_contract_is_rejected_with_one_sentence(name: str) -> None:
    make, words = WRONG[name]
    with pytest.raises(ContractError, match=words):
        make()


def test_a_field_may_begin_as_the_methods_of_a_model_do() -> None:
    contract = Output.event(["npc.said"], ["model_name"])
    text = '{"kind": "npc.said", "text": "x", "model_name": "c"}'
    assert read(text, contract).value.model_name == contract.model.model_validate_json(text).model_name == "c"
