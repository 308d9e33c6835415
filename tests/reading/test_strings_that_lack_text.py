"""A string that does not hold what its field asks for rejects the reply, and what only looks like it does not."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from flujo_aros import Accepted, Outcome, Reason, Rejected, StreamReader, read


def reading(value: str, field: str = "field", **words: Any) -> Outcome[Any]:
    """Return the outcome of a reply with this string in a field."""
    schema = {"type": "object", "properties": {field: {"type": "string", **words}}, "required": [field]}
    return read(json.dumps({field: value}, ensure_ascii=False), schema)


def code(outcome: Outcome[Any]) -> str:
    assert isinstance(outcome, Rejected)
    return outcome.issues[0].code


# --- shortened strings ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        "GB29 NWBK 6016 …", "FR76 3000 ... 189", "0x742d...f44e", "1Z999AA101...", "+44 20 79...", "a1b2c3d4…9f8e",
        "550e8400-...-446655440000", "978316148...", "https://shop.example/p/.../reviews", "www.example.org/archive…",
        "https://api.example/v1?key=...&page=2", "/srv/.../current", "src/.../main.rs", r"D:\Data\...\out.csv",
        "j...@example.com",
    ],
)  # fmt: skip
def test_dots_among_the_characters_of_a_code_a_path_or_a_url_reject_the_reply(value: str) -> None:
    assert code(reading(value)) == "elided"


@pytest.mark.parametrize(
    "value",
    [
        "Wait...", "Well … no", "1984...", "Apollo 13...", "R2D2...", "COVID-19...", "10... 9... 8...", "1, 2, 3, 4...",
        "0...10 V", "-20…60 °C", "v1.0...v1.1", "B10...B20", "12...Nf6", "3.14159...", "0.333…", "./...", "//...",
        "https://git.example/a/b/compare/v1.0...v2.0", "f(...args)", "…4567", "go test ./...",
    ],
)  # fmt: skip
def test_dots_in_speech_in_titles_and_in_ranges_are_text(value: str) -> None:
    assert reading(value).value == {"field": value}


@pytest.mark.parametrize(
    "value",
    [
        "The clause is only valid if ... (truncated)", "The rent is due [truncated]", "The tenant argues that […]",
        "Der Mieter zahlt die … (gekürzt)", "La réponse est plus longue [tronqué]", "The witness said that [cut].",
        "It goes on for a good many more words until it is finally put down here (continued)",
    ],
)  # fmt: skip
def test_a_remark_at_the_end_that_a_string_was_cut_rejects_the_reply(value: str) -> None:
    assert code(reading(value)) == "elided"


@pytest.mark.parametrize(
    "value",
    [
        "Kill Bill (Director's Cut)", "Moby Dick [abridged]", "Risk Factors (continued)", "Let It Be [Remastered]",
        "He wrote [...] that it was late.", "It is (sic) true", "The branches were shortened (with a saw)",
    ],
)  # fmt: skip
def test_brackets_in_a_title_or_inside_a_quotation_are_text(value: str) -> None:
    assert reading(value).value == {"field": value}


@pytest.mark.parametrize(
    ("field", "value"),
    [("excerpt", "The tenant argues that […]"), ("masked_card", "4111 11... 1111"), ("glob", "/srv/.../current")],
)
def test_a_field_for_less_than_the_whole_may_hold_a_shortened_string(field: str, value: str) -> None:
    assert reading(value, field).value == {field: value}


def test_a_choice_with_dots_is_a_choice() -> None:
    assert reading("AB 1234 5...", enum=["AB 1234 5...", "other"]).value == {"field": "AB 1234 5..."}


# --- lost text --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("owner", "[object Object]"), ("owners", "[object Object], [object Object]"), ("city", "The <unk> of York"),
        ("city", "[UNK] York"), ("name", "M\ufffdller"), ("ean", "4.00552E+12"),
        ("plate", "HH 4<!-- 1 or 7? -->0221"),
    ],
)  # fmt: skip
def test_a_string_whose_characters_were_lost_rejects_the_reply(field: str, value: str) -> None:
    assert isinstance(reading(value, field), Rejected)
    schema = {"type": "object", "properties": {field: {"type": "string"}}, "required": [field]}
    assert isinstance(read(f"{{{field}: '{value}',}}", schema), Rejected)
    assert isinstance(read(json.dumps({field: value}), schema), Rejected)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("note", "The page shows [object Object] in place of the name"), ("token", "<unk>"),
        ("text", "Words outside of the vocabulary become <unk>"), ("char", "\ufffd"), ("avogadro", "6.022E+23"),
        ("note", "The city of M\ufffdnchen lies on the Isar and has over a million inhabitants"),
        ("html", "WX <!-- plate --> 4"), ("body", "<p>a</p> <!-- end --> b"),
    ],
)  # fmt: skip
def test_a_string_that_speaks_of_lost_text_is_a_value(field: str, value: str) -> None:
    assert reading(value, field).value == {field: value}


# --- descriptions -----------------------------------------------------------------------------------------------------


class Parcel(BaseModel):
    receiver: Annotated[str, Field(description="Full name of the receiver")]
    tags: list[Annotated[str, Field(description="One word for the contents")]] = []
    note: Annotated[str | None, Field(description="Anything the courier should know.")] = None


@pytest.mark.parametrize(
    "reply",
    [
        '{"receiver": "Full name of the receiver"}', '{"receiver": "full name of the receiver."}',
        "{'receiver': 'Full name of the receiver',}", '{"Receiver": "Full name of the receiver", "note": ""}',
        '{"receiver": "Ann", "tags": ["One word for the contents"]}',
        '{"receiver": "Ann", "note": "Anything the courier should know"}', "receiver: Full name of the receiver",
    ],
)  # fmt: skip
def test_a_string_that_repeats_the_description_of_its_field_is_an_echo(reply: str) -> None:
    outcome = read(reply, Parcel)
    assert isinstance(outcome, Rejected)
    assert (outcome.reason, outcome.issues[0].code) == (Reason.ECHOED_SCHEMA, "echo")
    reader = StreamReader(Parcel)
    for char in reply:
        reader.feed(char)
    assert reader.close() == outcome


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("Sales and marketing team", {"description": "Sales and marketing team", "enum": ["Sales and marketing team"]}),
        ("No reason was given", {"description": "No reason was given", "default": "No reason was given"}),
        ("The old town hall", {"description": "The old town hall", "examples": ["The old town hall"]}),
        ("Name", {"title": "Name", "description": "Name"}),
        ("The name of the shop is Aby's", {"description": "The name of the shop"}),
    ],
)
def test_a_description_that_the_schema_names_as_a_value_is_a_value(value: str, words: dict[str, Any]) -> None:
    assert isinstance(reading(value, **words), Accepted)


def test_the_description_of_another_field_is_a_value() -> None:
    assert read('{"receiver": "One word for the contents"}', Parcel).value == Parcel(
        receiver="One word for the contents"
    )
