"""The meaning of values: each test follows from the rule that leftovers must be harmless."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, TypeAdapter

from flujo_aros import Accepted, Outcome, Output, Reason, Rejected, Risk, StreamReader, Trust, read


def reading(value: object, contract: Any, name: str = "v") -> Outcome[Any]:
    """Return the outcome of a reply with this value under this key."""
    schema = TypeAdapter(contract).json_schema()
    return read(
        json.dumps({name: value}, ensure_ascii=False),
        {"type": "object", "properties": {name: schema}, "required": [name]},
    )


def given(outcome: Outcome[Any], name: str = "v") -> Any:
    """Return the value under the key, or `refused`."""
    return outcome.value[name] if isinstance(outcome, Accepted) else "refused"


def codes(outcome: Outcome[Any]) -> list[str]:
    """Return the codes of the repairs, all of which must be INFERRED."""
    assert isinstance(outcome, Accepted)
    assert {repair.risk for repair in outcome.repairs} <= {Risk.INFERRED}
    return [repair.code for repair in outcome.repairs]


def why(reply: str, contract: Any) -> Reason:
    """Return the reason of a rejection."""
    outcome = read(reply, contract)
    assert isinstance(outcome, Rejected)
    return outcome.reason


# --- choices --------------------------------------------------------------------------------------------------

Level = Literal["low", "medium", "high"]


@pytest.mark.parametrize(
    "said",
    [
        *("High", "**high**", "(high)", "high.", "level: high", "Level - high", "The level is high.", "HIGH_LEVEL"),
        *("Level.HIGH", "high level", "high (as stated)", "high - see text", "high (default)", "✅ high", "- high"),
        *("Answer: high", "<answer>high</answer>", "答案：high", "Antwort: high", "la réponse est high", "🔴 high"),
    ],
)
def test_a_choice_is_read_in_neutral_company(said: str) -> None:
    outcome = reading(said, Level, "level")
    assert given(outcome, "level") == "high"
    assert len(codes(outcome)) == 1


@pytest.mark.parametrize(
    "said",
    [
        *("formerly high", "partially high", "very high", "verry high", "below high", "possibly high", "high-ish"),
        *("not high", "nicht high", "pas high", "no es high", "不 high", "不high", "high, if it rains", "high or low"),
        *("~~high~~", "❌ high", "✗ high", "!high", "high?", "high+", ">high", "2x high", "high: 0.1", "high: false"),
        *(
            "the opposite of high",
            "free of high",
            "high by mistake",
            "was high",
            "should be high",
            "too high",
            "higher",
        ),
        *("high (?)", "kind of high", "high (not confirmed)", "high - just kidding", "-high", "high/low", "un high"),
    ],
)
def test_any_other_word_or_sign_next_to_a_choice_rejects_the_reply(said: str) -> None:
    outcome = reading(said, Level, "level")
    assert given(outcome, "level") == "refused"


def test_the_words_of_a_description_count_before_a_colon_or_copula_only() -> None:
    field = Annotated[Level, Field(description="How urgent the ticket is, not how loud")]
    assert given(reading("The ticket is high", field)) == "high"
    assert given(reading("not high", field)) == "refused"
    assert given(reading("loud high", field)) == "refused"


@pytest.mark.parametrize(
    ("said", "meant"),
    [("c++", "C++"), ("C ++", "C++"), ("The language is C++.", "C++"), ("c", "C"), ("C#", "C#"), ("C/C++", "refused")],
)
def test_signs_that_belong_to_a_choice_are_part_of_it(said: str, meant: str) -> None:
    assert given(reading(said, Literal["C", "C++", "C#"], "language"), "language") == meant


def test_a_grade_is_not_its_letter() -> None:
    grades = Literal["A", "B"]
    assert [given(reading(said, grades)) for said in ("A+", "A-", "A*", "b-", "A/B")] == ["refused"] * 5


@pytest.mark.parametrize(
    "said", ["b", "B.", "(B)", "**B**", "Answer: B", "Option B", "The answer is B.", "answer: b", "[b]"]
)
def test_a_one_letter_choice_counts_alone_or_after_a_label(said: str) -> None:
    assert read(said, Literal["A", "B", "C"]).value == "B"


@pytest.mark.parametrize(
    "said",
    [
        *(
            "This is a hard question.",
            "It's a tie",
            "It is a",
            "Give me a minute",
            "A hard question indeed",
            "a good one",
        ),
        *("N/A", "N.A.", "I would need more data", "A is it or B", "The answer is a"),
    ],
)
def test_an_article_is_not_a_choice_of_one_letter(said: str) -> None:
    assert isinstance(read(said, Literal["A", "B", "I", "N"]), Rejected)


@pytest.mark.parametrize(
    "said",
    [
        *(
            "Error: high traffic, request dropped",
            "I have low confidence in any answer.",
            "that's high",
            "Wrong label: high",
        ),
        *(
            "high is incorrect",
            "Only a maintainer can go high.",
            "I hesitate to say high.",
            "Confidence: low. I cannot rate this.",
        ),
    ],
)
def test_a_sentence_that_merely_contains_the_word_of_a_choice_is_not_an_answer(said: str) -> None:
    assert isinstance(read(said, Level), Rejected)


@pytest.mark.parametrize(
    "said", ["The priority is **high**.", "Priority: high", "优先级：high", "優先度は high です。", "high"]
)
def test_a_sentence_that_says_the_choice_is_an_answer(said: str) -> None:
    assert read(said, Level).value == "high"


# --- booleans -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("Yes.", True),
        ("**no**", False),
        ("True!", True),
        ('"true"', True),
        ("[x]", True),
        ("[ ]", False),
        ("ja", True),
        ("nein", False),
        ("sí", True),
        ("oui", True),
        ("non", False),
        ("是", True),
        ("否", False),
        ("ok: yes", True),
    ],
)
def test_a_boolean_is_read_from_a_neutral_sentence(said: str, meant: bool) -> None:
    assert given(reading(said, bool, "ok"), "ok") is meant


@pytest.mark.parametrize(
    "said",
    [
        "no value",
        "no answer",
        "mostly yes",
        "yes and no",
        "never",
        "unknown",
        "true/false",
        "true if tested",
        "0 errors",
        "yesterday",
        "!true",
    ],
)
def test_a_weakened_boolean_is_rejected(said: str) -> None:
    assert given(reading(said, bool, "ok"), "ok") == "refused"


@pytest.mark.parametrize(
    "said",
    [
        *(
            "Half true",
            "It used to be true.",
            "A true friend.",
            "I doubt it is true.",
            "almost true",
            "It is far from true.",
        ),
        *("True or false?", "No comment.", "I have no idea.", "The yes vote won.", "That would be true if x > 3."),
    ],
)
def test_a_sentence_that_contains_a_boolean_word_is_not_a_boolean(said: str) -> None:
    assert isinstance(read(said, bool), Rejected)


@pytest.mark.parametrize(
    "said", ["The statement is true.", "Answer: true", "That is true.", "Yes, it is.", "**Yes.**", "答案：是"]
)
def test_a_sentence_that_says_a_boolean_is_an_answer(said: str) -> None:
    assert read(said, bool).value is True


@pytest.mark.parametrize("said", ["vrai", "wahr", "verdadero", "yep", "예", "✔"])
def test_a_word_for_true_counts_alone(said: str) -> None:
    assert given(reading(said, bool)) is True
    assert given(reading(f"{said} or so", bool)) == "refused"


@pytest.mark.parametrize("said", ["faux", "falsch", "falso", "nope", "아니오", "✗", "❌"])
def test_a_word_for_false_counts_alone(said: str) -> None:
    assert given(reading(said, bool)) is False


class Urgency(IntEnum):
    LOW = 1
    HIGH = 2


class Language(Enum):
    EN = "english"
    DE = "german"


def test_a_member_of_an_enumeration_is_known_by_its_name() -> None:
    for said in ('"LOW"', '"low"', "LOW", "Urgency.LOW", '"1"', "1"):
        assert read(f'{{"urgency": {said}}}', dict[str, Urgency]).value == {"urgency": Urgency.LOW}, said
    for said in ('"not low"', '"lowest"', '"LOW or HIGH"', "3"):
        assert isinstance(read(f'{{"urgency": {said}}}', dict[str, Urgency]), Rejected), said
    assert read('["DE", "English"]', list[Language]).value == [Language.DE, Language.EN]


class Shade(Enum):
    """An enumeration whose members have values that differ from their names."""

    RED = "red"
    GREEN = "green"


@pytest.mark.parametrize("said", ['"Shade.RED"', "Shade.RED", "\"<Shade.RED: 'red'>\"", '"shade.red"'])
def test_a_member_of_an_enumeration_is_known_as_python_writes_it(said: str) -> None:
    assert read(f'{{"tint": {said}}}', dict[str, Shade]).value == {"tint": Shade.RED}


@pytest.mark.parametrize("said", ['"Color.RED"', '"Shade.RED or Shade.GREEN"', '"not Shade.RED"', '"Shade.BLUE"'])
def test_a_member_of_another_enumeration_is_refused(said: str) -> None:
    assert isinstance(read(f'{{"tint": {said}}}', dict[str, Shade]), Rejected)


def test_the_name_of_a_member_is_not_shown_to_a_model() -> None:
    assert "LOW" not in json.dumps(Output.json(Urgency).json_schema)


# --- numbers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "meant", "how"),
    [
        ("1.234,56", 1234.56, ["digit-groups", "decimal-comma"]),
        ("12,5", 12.5, ["decimal-comma"]),
        ("0,500", 0.5, ["decimal-comma"]),
        ("1 234", 1234, ["digit-groups"]),
        ("1\u202f234,5", 1234.5, ["digit-groups", "decimal-comma"]),
        ("1'234.50", 1234.5, ["digit-groups"]),
        ("1,23,456", 123456, ["digit-groups"]),
        ("1.234.567", 1234567, ["digit-groups"]),
        ("1,234", 1234, ["digit-groups"]),
        ("−5", -5, ["odd-digits"]),
        ("１２３", 123, ["odd-digits"]),
        ("١٢٣", 123, ["odd-digits"]),
        ("€1.200,00", 1200, ["currency", "digit-groups", "decimal-comma"]),
        ("12 USD", 12, ["currency"]),
        ("-$5", -5, ["currency"]),
        ("10k", 10_000, ["magnitude"]),
        ("$1.2M", 1_200_000, ["currency", "magnitude"]),
        ("½", 0.5, ["fraction"]),
        ("1 1/2", 1.5, ["fraction"]),
        ("**12.50**", 12.5, ["emphasis"]),
        ("'12.50'", 12.5, ["emphasis"]),
        ("v: 12.50", 12.5, ["emphasis"]),
        ("€5,-", 5, ["currency"]),
    ],
)
def test_a_number_is_read_where_one_reading_is_possible(said: str, meant: float, how: list[str]) -> None:
    outcome = reading(said, float)
    assert given(outcome) == meant
    assert codes(outcome) == how


@pytest.mark.parametrize(
    "said",
    [
        *(
            "€1.200",
            "$1.234",
            "1,000,00",
            "00,500",
            "12 34",
            "1 2 3",
            "3.14.15",
            "2024-05-01",
            "10:30",
            "5-6",
            "5 %",
            "~12",
        ),
        *(
            "<5",
            "18+",
            "over 18",
            "12-",
            "(12.50)",
            "5 kg",
            "5 cents",
            "10m",
            "4/5",
            "8/10",
            "1O0",
            "- 3",
            "five or six",
        ),
    ],
)
def test_an_ambiguous_number_is_rejected(said: str) -> None:
    assert given(reading(said, float)) == "refused"


def test_a_fraction_is_not_converted_to_an_integer() -> None:
    assert [given(reading(said, int)) for said in ("3,5", "3.7", "½", "1.234,00", "12,345")] == ["refused"] * 3 + [
        1234,
        12345,
    ]


@pytest.mark.parametrize(
    ("name", "said", "meant"),
    [
        ("dose_mg", "500 mg", 500),
        ("doseMg", "0,5mg", 0.5),
        ("timeout_s", "30 seconds", 30),
        ("reminder_minutes", "5 min", 5),
        ("distance_km", "12 km", 12),
        ("age", "30 years old", 30),
        ("speed_kmh", "40 km/h", 40),
        ("quantity", "3 pcs", 3),
        ("servings", "serves 3", 3),
        ("retries", "3 retries", 3),
        ("page_count", "12 pages", 12),
        ("count", "3k", 3000),
        ("rating", "3 out of 5", 3),
        ("price_eur", "5 €", 5),
        ("percent", "85%", 85),
        ("yield_t_per_ha", "6,8 t/ha", 6.8),
        ("speed_km_per_hour", "60 km/h", 60),
    ],
)
def test_a_unit_that_the_name_says_is_read(name: str, said: str, meant: float) -> None:
    assert given(reading(said, float, name), name) == meant


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("dose_mg", "500 mcg"),
        ("dose_mg", "1.500 mg"),
        ("estimate_hours", "150 min"),
        ("timeout_s", "500 ms"),
        ("age", "30s"),
        ("price_usd", "5 €"),
        ("price_cents", "$5"),
        ("min", "5 min"),
        ("unit_price", "5 units"),
        ("value", "12 °C"),
        ("mg_per_ml", "5 mg"),
        ("mg_per_ml", "5 g/ml"),
        ("mg_per_ml", "5 ml/mg"),
    ],
)
def test_a_unit_that_contradicts_the_field_name_rejects_the_reply(name: str, said: str) -> None:
    assert given(reading(said, float, name), name) == "refused"


def test_a_description_says_the_unit_where_the_name_does_not() -> None:
    field = Annotated[float, Field(description="How long to wait, in seconds")]
    assert given(reading("30 s", field, "wait"), "wait") == 30
    assert given(reading("30 min", field, "wait"), "wait") == "refused"
    optional = Annotated[float | None, Field(description="How long to wait, in seconds")]
    assert given(reading("30 s", optional, "wait"), "wait") == 30


@pytest.mark.parametrize(
    ("described", "said", "meant"),
    [
        ("Resting pulse, beats per minute", "88 bpm", 88),
        ("Resting pulse, beats per minute", "88 beats/min", 88),
        ("Resting pulse, beats per minute", "88 beats per hour", "refused"),
        ("Resting pulse", "88 bpm", "refused"),
        ("Wind in metres per second", "5 m/s", 5),
        ("Wind in metres per second", "5 km/h", "refused"),
        ("Wind in metres per second", "5 m", "refused"),
    ],
)
def test_a_rate_is_read_if_the_description_states_it(described: str, said: str, meant: Any) -> None:
    assert given(reading(said, Annotated[float, Field(description=described)])) == meant


@pytest.mark.parametrize(
    ("name", "described", "said", "meant"),
    [
        ("budget_per_person", "in GBP", "£650", 650),
        ("budget_per_person", "in GBP", "$650", "refused"),
        ("budget_per_person", "", "£650", "refused"),
        ("price", "Price per unit in EUR", "1,05 €", 1.05),
        ("price", "Price per unit in EUR", "£1.05", "refused"),
        ("preis", "Preis in Euro pro Kilogramm", "12,50 €", 12.5),
        ("preis", "Preis in Cent pro Kilogramm", "12,50 €", "refused"),
        ("price_per_kg", "in EUR cents", "12,50 €", "refused"),
        ("quantity", "Units ordered, at EUR 5 each", "5 €", "refused"),
        ("hours", "Hours billed, at EUR 80 per hour", "80 €", "refused"),
    ],
)
def test_the_currency_of_a_price_per_unit_is_the_one_that_the_description_states(
    name: str, described: str, said: str, meant: Any
) -> None:
    assert given(reading(said, Annotated[float, Field(description=described)], name), name) == meant


@pytest.mark.parametrize(
    ("field", "said", "meant"),
    [
        (int, "août", 8),
        (int, "Sept.", 9),
        (Annotated[int, Field(ge=1, le=12)], "May", 5),
        (Annotated[int, Field(ge=0, le=11)], "May", "refused"),
        (Annotated[int, Field(description="0 is January")], "May", "refused"),
        (int, "May 2026", "refused"),
    ],
)
def test_a_month_by_its_name_is_its_number_if_months_are_counted_from_one(field: Any, said: str, meant: Any) -> None:
    assert given(reading(said, field, "month"), "month") == meant
    assert given(reading(said, field, "day"), "day") == "refused"


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ({"1": "tea", "2": "milk"}, ["tea", "milk"]),
        ({"0": "tea", "1": "milk"}, ["tea", "milk"]),
        ({"1": "tea", "3": "milk"}, "refused"),
        ({"2": "tea", "1": "milk"}, "refused"),
        ({"2": "tea", "3": "milk"}, "refused"),
        ({"1": 4, "2": 5}, "refused"),
        ("- tea\n- milk, cold", ["tea", "milk, cold"]),
        ("• tea\n• milk", ["tea", "milk"]),
        ("1. tea\n2. milk", ["tea", "milk"]),
        ("1. tea\n3. milk", "refused"),
        ("- tea\n- milk\n- ...", "refused"),
        ("- tea\nmilk\n- jam", "refused"),
        ("Drinks:\n- tea\n- milk", "refused"),
        ("- tea\n- milk\n\nand others", "refused"),
        ("tea\nmilk", "refused"),
    ],
)
def test_numbered_members_and_lines_with_bullets_are_the_items_of_a_list(said: Any, meant: Any) -> None:
    assert given(reading(said, list[str])) == meant


class Train(BaseModel):
    line: str
    track: int


ONE, TWO = '{"line": "S 1", "track": 2}', '{"line": "S 8", "track": 5}'


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        (f"a) {ONE}\nb) {TWO}", True),
        (f"(1) {ONE}\n(2) {TWO}", True),
        (f"Item 1:\n{ONE}\nItem 2:\n{TWO}", True),
        (f"**Train 1**\n\n```json\n{ONE}\n```\n\n**Train 2**\n\n```json\n{TWO}\n```", True),
        (f"Train 1:\n{ONE}\nTrain 3:\n{TWO}", False),
        (f"Attempt 1:\n```json\n{ONE}\n```\nAttempt 2:\n```json\n{TWO}\n```", False),
        (f"Version 1: {ONE}\nVersion 2: {TWO}", False),
    ],
)
def test_objects_under_headings_that_count_items_are_the_items_of_a_list(text: str, taken: bool) -> None:
    outcome = read(text, list[Train])
    both = [Train(line="S 1", track=2), Train(line="S 8", track=5)]
    assert outcome.value == both if taken else isinstance(outcome, Rejected)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("datetime.datetime(2026, 3, 1, 9, 5, tzinfo=datetime.timezone.utc)", "2026-03-01T09:05:00+00:00"),
        ("datetime.datetime(2026, 3, 1, 9, 5, 7, 250000, tzinfo=TzInfo(UTC))", "2026-03-01T09:05:07.250000+00:00"),
        ("datetime.date(2026, 3, 1)", "2026-03-01"),
        ("datetime.datetime(2026, 13, 1, 9, 5)", None),
        ("datetime.datetime(2026, 3, 1, tzinfo=LOCAL)", None),
    ],
)
def test_a_date_that_python_shows_is_read_in_a_dict(written: str, meant: str | None) -> None:
    outcome = read(f"{{'at': {written}}}", {"properties": {"at": {"type": "string"}}, "required": ["at"]})
    assert outcome.value == {"at": meant} if meant else isinstance(outcome, Rejected)


def test_undefined_leaves_out_an_optional_field_that_may_not_be_null() -> None:
    class Member(BaseModel):
        name: str
        title: str = "none"
        left: date | None = None

    outcome = read("{name: 'Ann', title: undefined, left: undefined}", Member)
    assert outcome.value == Member(name="Ann")
    assert ("no-value", "$.title") in [(repair.code, repair.path) for repair in outcome.repairs]
    assert isinstance(read("{name: undefined, title: 'Dr.'}", Member), Rejected)
    assert isinstance(read("{name: 'Ann', title: null}", Member), Rejected)


def test_a_percent_sign_fits_the_scale_of_the_field() -> None:
    assert given(reading("85%", Annotated[float, Field(le=100)])) == 85
    assert given(reading("1%", Annotated[float, Field(le=1)])) == 0.01
    assert given(reading("85%", float)) == "refused"


def test_a_mark_out_of_five_needs_a_scale_of_five() -> None:
    assert given(reading("4/5", Annotated[int, Field(le=5)])) == 4
    assert given(reading("8/10", Annotated[int, Field(le=5)])) == "refused"


def test_a_decimal_keeps_its_digits() -> None:
    class Price(BaseModel):
        amount: Decimal

    outcome = read('{"amount": "$1,234.50"}', Price)
    assert str(outcome.value.amount) == "1234.50"
    assert codes(outcome) == ["currency", "digit-groups"]
    assert isinstance(read('{"amount": "€1.200"}', Price), Rejected)
    assert read('{"amount": "$5"}', dict[str, float | str]).value == {"amount": "$5"}


def test_digits_after_a_comma_in_a_list_may_belong_to_the_number_before_it() -> None:
    assert why("[1.299,00, 2.499,50]", list[float]) is Reason.AMBIGUOUS


def test_a_decimal_comma_without_quotes_is_read_where_no_key_could_follow() -> None:
    class Price(BaseModel):
        amount: float
        note: str = ""

    assert read('{"amount": 12,5, "note": "x"}', Price).value.amount == 12.5
    assert read('{"amount": 1.234,56}', Price).value.amount == 1234.56
    assert isinstance(read('{"amount": 1.234,56}', {}), Rejected)


# --- dates, times, durations ----------------------------------------------------------------------------------


@pytest.mark.parametrize("like", [date, datetime, time, timedelta])
@pytest.mark.parametrize("said", ["2025", "20250415", "0", "15", "15.5", "-1", "900"])
def test_digits_alone_are_not_a_date(like: type, said: str) -> None:
    for reply, contract in (
        (json.dumps({"v": said}), dict[str, like]),
        (json.dumps([said]), list[like]),
        (json.dumps({"v": {"w": [said]}}), dict[str, dict[str, list[like]]]),
        (json.dumps({"v": said}), dict[str, like | None]),
        (json.dumps({"result": [said]}), list[like]),
        (json.dumps(said), like),
        (said, like),
    ):
        assert isinstance(read(reply, contract), Rejected), (reply, contract)


def test_digits_are_kept_where_pydantic_keeps_them() -> None:
    assert isinstance(read('{"v": "2025"}', dict[str, datetime | str]), Rejected)  # 1970 to pydantic
    assert read('{"v": "about 2025"}', dict[str, datetime | str]).value == {"v": "about 2025"}
    assert codes(read('["2025-04-03T10:30:00", "12"]', tuple[datetime, str])) == []


@pytest.mark.parametrize("said", ["10:30-11:00", "10:00-12:00", "22:00-06:00", "10:30-1100"])
def test_a_time_span_is_not_a_time_zone(said: str) -> None:
    assert isinstance(read(json.dumps([said]), list[time]), Rejected)
    assert isinstance(read(json.dumps([f"2025-04-03 {said}"]), list[datetime]), Rejected)


@pytest.mark.parametrize(
    "said", ["2025-04-03T10:30:00-05:00", "2025-04-03T10:30-05:00", "2025-04-03 10:30", "2025-04-03T10:30Z"]
)
def test_an_iso_moment_is_clean(said: str) -> None:
    assert codes(read(json.dumps([said]), list[datetime])) == []


@pytest.mark.parametrize(
    "said",
    [
        *("2025/04/03", "2025.4.3", "April 3, 2025", "Apr 3rd 2025", "3 April 2025", "3. April 2025", "03.04.2025"),
        *(
            "3-Apr-2025",
            "Thursday, April 3, 2025",
            "3 avril 2025",
            "3 de abril de 2025",
            "2025年4月3日",
            "２０２５-０４-０３",
        ),
        *("2025‑04‑03", " 2025-04-03", "3 апреля 2025", "3 kwietnia 2025", "3 Nisan 2025", "2025년 4월 3일"),
        *(
            "2025-04-03 (Thursday)",
            "2025-04-03, Thursday",
            "2025年4月3日（木）",
            "the 3rd of April, 2025",
            "on 2025-04-03",
        ),
        *("**2025-04-03**", "`2025-04-03`", '"2025-04-03"', "Date: 2025-04-03", "2025-04-03."),
    ],
)
def test_a_written_date_is_read(said: str) -> None:
    outcome = read(json.dumps([said]), list[date])
    assert outcome.value == [date(2025, 4, 3)]
    assert codes(outcome) == ["written-date"]
    plain = read(json.dumps([said]), {"type": "array", "items": {"type": "string", "format": "date"}})
    assert plain.value == ["2025-04-03"]


@pytest.mark.parametrize(
    "said",
    [
        "03/04/2025",
        "3-4-2025",
        "03.04.25",
        "April 2025",
        "Friday, April 3, 2025",
        "2025-04-03 (Friday)",
        "2025-04-03 (approx.)",
        "2025-04-03?",
        "~~2025-04-03~~",
        "by 2025-04-03",
        "31/02/2025",
        "next week",
        "3 Foo 2025",
    ],
)
def test_an_ambiguous_date_is_rejected(said: str) -> None:
    assert isinstance(read(json.dumps([said]), list[date]), Rejected)


@pytest.mark.parametrize(
    ("form", "said"), [("date-time", "2026-03-14T09:30:00"), ("date-time", "2026-03-14 09:30"), ("time", "09:30")]
)
def test_a_time_without_the_time_zone_that_the_schema_requires_is_an_error(form: str, said: str) -> None:
    outcome = read(json.dumps({"v": said}), {"type": "object", "properties": {"v": {"format": form}}})
    assert isinstance(outcome, Rejected)
    assert "it has no time zone; write" in outcome.issues[0].message
    assert outcome.issues[0].message.endswith("with Z or an offset such as +02:00")


@pytest.mark.parametrize(
    ("kind", "form", "said", "meant"),
    [
        (datetime, "date-time", "2026-02-01 10:00:00Z", "2026-02-01T10:00:00Z"),
        (datetime, "date-time", "2026-02-01T10:00+01:00", "2026-02-01T10:00:00+01:00"),
        (datetime, "date-time", "2026-02-01 10:00:00,5+0100", "2026-02-01T10:00:00.5+01:00"),
        (time, "time", "10:00Z", "10:00:00Z"),
    ],
)
def test_a_schema_takes_the_iso_forms_that_pydantic_reads(kind: Any, form: str, said: str, meant: str) -> None:
    """As a lossless repair, because the validator of a schema takes only one of them."""
    typed = read(json.dumps([said]), list[kind])
    plain = read(json.dumps([said]), {"type": "array", "items": {"type": "string", "format": form}})
    assert isinstance(plain, Accepted)
    assert isinstance(typed, Accepted)
    assert (plain.value, plain.trust, [repair.code for repair in plain.repairs]) == (
        [meant],
        Trust.LOSSLESS,
        ["iso-form"],
    )
    assert (typed.value, typed.trust) == ([TypeAdapter(kind).validate_python(meant)], Trust.CLEAN)


def test_a_day_above_twelve_settles_the_order() -> None:
    assert read('["13/04/2025", "04/13/2025", "04/04/2025"]', list[date]).value == [
        date(2025, 4, 13),
        date(2025, 4, 13),
        date(2025, 4, 4),
    ]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("2025-04-03 10:30 PM", "2025-04-03T22:30:00"),
        ("2025-04-03 9pm", "2025-04-03T21:00:00"),
        ("April 3, 2025 at 10:30", "2025-04-03T10:30:00"),
        ("03.04.2025, 10:30 Uhr", "2025-04-03T10:30:00"),
        ("2025-04-03T10:30:00 +02:00", "2025-04-03T10:30:00+02:00"),
        ("2025-04-03T10:30:00+02:00[Europe/Berlin]", "2025-04-03T10:30:00+02:00"),
        ("2025-04-03 10:30 UTC", "2025-04-03T10:30:00+00:00"),
        ("20250403T103000Z", "2025-04-03T10:30:00+00:00"),
    ],
)
def test_a_written_moment_is_read(said: str, meant: str) -> None:
    assert [each.isoformat() for each in read(json.dumps([said]), list[datetime]).value] == [meant]


@pytest.mark.parametrize(
    ("said", "meant"),
    [("3 PM", time(15)), ("9:30", time(9, 30)), ("10h30", time(10, 30)), ("12 am", time(0))]
    + [(said, time(10, 30)) for said in ("10 h 30", "10:30h", "10時30分", "T10:30", "at 10:30", "`10:30`")],
)
def test_a_written_time_is_read(said: str, meant: time) -> None:
    outcome = read(json.dumps([said]), list[time])
    assert (outcome.value, codes(outcome)) == ([meant], ["written-time"])


@pytest.mark.parametrize(
    ("said", "minutes"),
    [
        *(("1.5h", 90), ("1h 30m", 90), ("90 minutes", 90), ("45 min", 45), ("1,5 h", 90)),
        *(("1 Stunde und 30 Minuten", 90), ("2 heures", 120), ("2時間", 120), ("2 weeks", 20_160)),
    ],
)
def test_a_written_duration_is_read(said: str, minutes: int) -> None:
    assert read(json.dumps([said]), list[timedelta]).value == [timedelta(minutes=minutes)]


@pytest.mark.parametrize("said", ["5 M", "2-3 hours", "2 h ago", "30 m 1 h", "2 months", "5 kg", "about 2 hours"])
def test_an_ambiguous_duration_is_rejected(said: str) -> None:
    assert isinstance(read(json.dumps([said]), list[timedelta]), Rejected)


# --- no value -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said", ["N/A", "n/a", "unknown", "none", "-", "", "Not available", "TBD", "keine Angabe", "未知"]
)
@pytest.mark.parametrize("like", [float, date, bool, Level, list[int], BaseModel])
def test_a_word_for_no_value_is_null_where_null_is_allowed(said: str, like: Any) -> None:
    outcome = read(json.dumps({"v": said}), dict[str, like | None])
    assert outcome.value == {"v": None}
    assert codes(outcome) == ["string-to-null" if said == "none" else "no-value"]


@pytest.mark.parametrize("said", ["N/A", "unknown", "", "none"])
def test_a_word_for_no_value_is_kept_for_strings_and_rejected_where_null_is_not_allowed(said: str) -> None:
    assert read(json.dumps({"v": said}), dict[str, str | None]).value == {"v": said}
    for like in (float, date, bool, Level, list[str]):
        assert isinstance(read(json.dumps({"v": said}), dict[str, like]), Rejected), like


def test_null_is_the_empty_default_of_a_list_or_an_object() -> None:
    class Cart(BaseModel):
        items: list[str] = []
        prices: dict[str, float] = {}
        seats: int = 1
        codes: list[int]

    outcome = read('{"items": null, "prices": null, "codes": [1]}', Cart)
    assert outcome.value == Cart(codes=[1])
    assert codes(outcome) == ["null-to-empty", "null-to-empty"]
    assert isinstance(read('{"seats": null, "codes": [1]}', Cart), Rejected)
    assert isinstance(read('{"codes": null}', Cart), Rejected)


def test_null_is_the_empty_list_that_a_default_factory_makes() -> None:
    class Cart(BaseModel):
        items: list[str] = Field(default_factory=list)
        prices: dict[str, float] = Field(default_factory=dict)

    outcome = read('{"items": null, "prices": null}', Cart)
    assert outcome.value == Cart()
    assert codes(outcome) == ["null-to-empty", "null-to-empty"]


def test_the_currency_of_an_amount_is_that_of_its_own_string_even_after_a_move() -> None:
    class Sum(BaseModel):
        number: str
        total: Decimal
        currency: Literal["EUR", "USD"] = "EUR"

    class Sums(BaseModel):
        sums: list[Sum]

    assert read('{"sums": {"number": "USD", "total": "2,20 €"}}', Sums).value.sums[0].total == Decimal("2.20")
    refused = read('{"sum": {"number": "x", "total": "2,20 $"}}', Sum)
    assert "the amount 2,20 $ is not in the currency that 'currency' states" in refused.explain()


def test_a_key_that_a_dataclass_does_not_have_is_ignored_and_reported_as_such() -> None:
    @dataclass
    class Point:
        x: float

    assert codes(read('{"x": 1.5, "z": 3}', Point)) == ["ignored_key"]


def test_a_choice_that_is_such_a_word_is_chosen() -> None:
    assert read('{"v": "Unknown"}', dict[str, Literal["yes", "unknown"] | None]).value == {"v": "unknown"}


@pytest.mark.parametrize("said", ["sometimes", "next week", "never", "18+", "30s", "normal"])
def test_a_word_that_says_something_is_not_null(said: str) -> None:
    for like in (float, date, bool, Level):
        assert isinstance(read(json.dumps({"v": said}), dict[str, like | None]), Rejected), like


# --- lists, envelopes, placeholders, escapes --------------------------------------------------------------------


def test_a_flat_list_is_not_a_matrix() -> None:
    assert why("[1, 2, 3, 4]", list[list[int]]) is Reason.AMBIGUOUS
    assert read("[[1, 2], [3]]", list[list[int]]).value == [[1, 2], [3]]


@pytest.mark.parametrize("reply", ['{"error_code": 500}', '{"min": 5}', '{"retry_after": 5}'])
def test_a_number_under_another_name_is_not_in_an_envelope(reply: str) -> None:
    assert isinstance(read(reply, int), Rejected)


@pytest.mark.parametrize("name", ["rejected", "errors", "invalid_items", "examples", "old_tags"])
def test_a_list_under_a_negating_key_is_not_an_answer(name: str) -> None:
    assert isinstance(read(json.dumps({name: ["a"]}), list[str]), Rejected)


def test_a_neutral_name_around_a_value_is_an_envelope() -> None:
    assert read('{"result": 5}', int).value == 5
    assert read('{"priority": "low"}', Level).value == "low"
    assert read('{"tags": ["a"]}', list[str]).value == ["a"]


class Guest(BaseModel):
    """A person who may want extras."""

    name: str
    extras: list[str] = []


class Person(BaseModel):
    """A person with a name."""

    name: str
    age: int = 0


@pytest.mark.parametrize(
    "reply",
    [
        '{"name": <name>}',
        '{"name": [name]}',
        '{"name": str}',
        '{"name": string}',
        "{name: name}",
        "name: <name>\nage: 30",
        "{name: TODO, age: 30}",
        "{name: your name here, age: 30}",
        "{name: [insert name here], age: 30}",
        "{name: (name goes here), age: 30}",
        "name: ______\nage: 30",
        '{"name": "Ann", "age": len("x1")}',
        '{"name": os.getenv("USER"), "age": 30}',
    ],
)
def test_an_unquoted_word_that_refers_to_a_value_is_rejected(reply: str) -> None:
    assert isinstance(read(reply, Person), Rejected)


@pytest.mark.parametrize("name", ["<name>", "[NAME]", "{name}", "{{ name }}", "YOUR_NAME", "<your name>", "<string>"])
def test_a_string_that_only_names_its_field_in_brackets_is_a_placeholder(name: str) -> None:
    assert why(json.dumps({"name": name}), Person) is Reason.ECHOED_SCHEMA
    assert why(json.dumps({"name": name, "age": "30"}), Person) is Reason.ECHOED_SCHEMA
    assert why(f"{{'name': '{name}',}}", Person) is Reason.ECHOED_SCHEMA


@pytest.mark.parametrize("tag", ["<tag>", "<tag 1>", "[TAG]", "{{ tags }}", "YOUR_TAG", "<string>"])
def test_an_item_that_only_names_its_list_in_brackets_is_a_placeholder(tag: str) -> None:
    tagged = {"type": "object", "properties": {"tags": {"type": "array", "items": {"type": "string"}}}}
    assert why(json.dumps({"tags": [tag, tag.replace("1", "2")]}), tagged) is Reason.ECHOED_SCHEMA
    assert read(json.dumps({"tags": ["<b>", "[sic]"]}), tagged).value == {"tags": ["<b>", "[sic]"]}


@pytest.mark.parametrize("name", ["name", "<Ann>", "[sic]", "string", "...", "{surname}"])
def test_any_other_string_is_taken_as_speech(name: str) -> None:
    assert read(json.dumps({"name": name}), Person).value == Person(name=name)


def test_an_answer_next_to_the_template_is_the_answer() -> None:
    assert read('The format is {"name": "<name>"}.\n{"name": "Ann"}', Person).value == Person(name="Ann")


def test_the_same_placeholder_in_several_fields_is_a_template() -> None:
    both = {"type": "object", "properties": {"city": {"type": "string"}, "street": {"type": "string"}}}
    assert why('{"city": "string", "street": "string"}', both) is Reason.ECHOED_SCHEMA
    assert why('{"city": "...", "street": "..."}', both) is Reason.ECHOED_SCHEMA
    assert why('{"city": "…", "street": "…"}', both) is Reason.ECHOED_SCHEMA
    assert read('{"city": "string", "street": "Quay"}', both).value == {"city": "string", "street": "Quay"}


@pytest.mark.parametrize(
    "last",
    [
        "...", "etc.", "and so on", "(12 more)", "+3 more", "[...]", "(others omitted)", "[truncated]", "<more>",
        "und 5 weitere", "et 3 autres", "y 2 más", "e altri 4", "他5名", "等3人",
        "2 others", "among others", "usw.", "u.a.", "ecc.", "enz.", "entre otros", "и т. д.", "など", "<see above>",
        "... and 48 more",
    ],
)  # fmt: skip
def test_a_last_item_that_announces_more_items_rejects_the_reply(last: str) -> None:
    assert why(json.dumps(["a", "b", last], ensure_ascii=False), list[str]) is Reason.AMBIGUOUS
    assert why(f"['a', 'b', {last!r}]", list[str]) is Reason.AMBIGUOUS


@pytest.mark.parametrize("last", ["more", "others", "the rest", "to be continued", "rest day", "via", "(see above)"])
def test_a_last_item_that_may_be_an_item_is_one(last: str) -> None:
    assert read(json.dumps(["a", "b", last]), list[str]).value == ["a", "b", last]


@pytest.mark.parametrize(
    "name",
    [
        "insert name here",
        "Your name here",
        "[unchanged]",
        "[same as above]",
        "<tu nombre>",
        "Ihr Name hier",
        "+1-XXX-XXXX",
    ],
)
def test_words_that_ask_for_a_value_are_a_placeholder(name: str) -> None:
    assert why(json.dumps({"name": name}), Person) is Reason.ECHOED_SCHEMA
    assert read('{"name": "Insert coin here"}', Person).value == Person(name="Insert coin here")


def test_the_pattern_of_a_date_is_a_placeholder_unless_the_field_asks_for_a_pattern() -> None:
    assert why('{"name": "YYYY-MM-DD"}', Person) is Reason.ECHOED_SCHEMA
    assert read({"placeholder": "YYYY-MM-DD"}.__repr__().replace(chr(39), chr(34)), dict[str, str]).value == {
        "placeholder": "YYYY-MM-DD"
    }
    assert read('{"date_format": "YYYY-MM-DD"}', dict[str, str]).value == {"date_format": "YYYY-MM-DD"}


@pytest.mark.parametrize(
    "name",
    [
        "TT.MM.JJJJ", "JJ/MM/AAAA", "дд.мм.гггг", "XX.XX.XXXX", "XX:XX", "XX XX XX XX", "此处填写公司名称",
        "在此输入姓名", "ここに名前を入力", "여기에 이름을 입력", "XX公司", "○○株式会社",
        "某某公司", "Lorem ipsum dolor sit amet",
    ],
)  # fmt: skip
def test_a_pattern_or_a_request_to_fill_in_is_a_placeholder_in_other_languages_too(name: str) -> None:
    assert why(json.dumps({"name": name}, ensure_ascii=False), Person) is Reason.ECHOED_SCHEMA


@pytest.mark.parametrize("name", ["DD", "XXL", "AA/BB", "TTIP", "MM/YY", "20XX", "XXe siècle", "XX染色体", "在此之前"])
def test_names_that_look_like_a_pattern_are_kept(name: str) -> None:
    assert read(json.dumps({"name": name}, ensure_ascii=False), Person).value == Person(name=name)


def test_a_string_that_lists_the_choices_of_its_description_repeats_it() -> None:
    schema = {"properties": {"mood": {"type": "string", "description": "good|neutral|bad"}}, "required": ["mood"]}
    assert why('{"mood": "good|neutral|bad"}', schema) is Reason.ECHOED_SCHEMA
    assert read('{"mood": "good"}', schema).value == {"mood": "good"}


def test_a_comment_behind_the_value_of_a_line_is_no_part_of_it() -> None:
    assert read("# generated\nname: Ann   # first name", Person).value == Person(name="Ann")


@pytest.mark.parametrize("key", ["more_extras", "additional_extras", "extras2"])
def test_a_list_that_continues_under_another_key_rejects_the_reply(key: str) -> None:
    assert isinstance(read(json.dumps({"name": "Ann", "extras": ["cot"], key: ["lift"]}), Guest), Rejected)


def test_a_string_of_two_joined_words_is_not_a_single_item_list() -> None:
    assert given(reading("tea and milk", list[str])) == "refused"
    assert given(reading("tea", list[str])) == ["tea"]


@pytest.mark.parametrize("said", ["none", "N/A", "-", "None", ""])
def test_a_word_for_no_value_is_the_empty_default_of_a_list(said: str) -> None:
    assert read(json.dumps({"name": "Ann", "extras": said}), Guest).value == Guest(name="Ann")
    assert isinstance(read('{"name": "Ann", "extras": "no extras"}', Guest), Rejected)


@pytest.mark.parametrize("said", ["Answer: 1,042", "The answer is 1042.", "Result: 1042", "答案：1042"])
def test_a_number_may_be_announced(said: str) -> None:
    assert read(said, int).value == 1042


KINDS = {
    "anyOf": [
        {"properties": {"kind": {"const": "card"}, "digits": {"type": "integer"}}, "required": ["kind", "digits"]},
        {"properties": {"kind": {"const": "bank"}, "iban": {"type": "string"}}, "required": ["kind", "iban"]},
    ]
}


@pytest.mark.parametrize(
    ("reply", "path", "words"),
    [
        ('{"kind": "bank", "digits": 1}', "$.iban", "the required key 'iban' is missing"),
        ('{"kind": "cash", "digits": 1}', "$.kind", "expected one of 'card', 'bank', found 'cash'"),
        ('{"kind": "cash", "iban": "x"}', "$.kind", "expected one of 'card', 'bank', found 'cash'"),
    ],
)
def test_the_constant_of_an_alternative_says_which_one_is_meant(reply: str, path: str, words: str) -> None:
    outcome = read(reply, KINDS)
    assert isinstance(outcome, Rejected)
    assert (path, words) in [(issue.path, issue.message) for issue in outcome.issues]
    assert [issue.message for issue in outcome.issues if issue.path == "$"] == [
        "it fits none of the alternatives in 'anyOf'"
    ]


@pytest.mark.parametrize(
    "said",
    [
        "Leider kann ich dazu keine Auskunft geben.", "Das darf ich nicht beantworten.", "Non posso aiutarti.",
        "Não posso ajudar com isso.", "Daar kan ik niet mee helpen.", "Nie mogę w tym pomóc.", "Я не могу помочь.",
        "Bu konuda yardımcı olamam.", "我无法协助。", "お手伝いできません。",
    ],
)  # fmt: skip
def test_a_refusal_in_another_language_is_one(said: str) -> None:
    assert why(said, Person) is Reason.REFUSED


@pytest.mark.parametrize(
    "said",
    ["Die Antwort ist 42.", "Das Ergebnis ist: 42", "Die Antwort lautet 42.", "La risposta è 42.", "A resposta é 42."],
)
def test_a_number_may_be_announced_in_other_languages(said: str) -> None:
    assert read(said, int).value == 42


def test_a_date_may_be_announced_where_null_is_allowed_too() -> None:
    assert read("The date is March 3, 2025.", date | None).value == date(2025, 3, 3)
    assert read("Das Datum ist der 3. März 2025.", date).value == date(2025, 3, 3)


@pytest.mark.parametrize(
    "said", ["Step 3: 4", "Answer 2: 7", "The answer is 42 or 43.", "Answer: not 5", "Answer: 42%"]
)
def test_other_words_before_a_number_are_not_passed_over(said: str) -> None:
    assert isinstance(read(said, int), Rejected)


class Activity(BaseModel):
    """An activity that may be active."""

    isActive: bool  # noqa: N815


def test_an_opposite_is_not_a_misspelling() -> None:
    asked = {"type": "object", "properties": {"isActive": {"type": "boolean"}}, "additionalProperties": False}
    assert isinstance(read('{"inactive": true}', asked), Rejected)
    assert isinstance(read('{"isActive": true, "inactive": true}', Activity), Rejected)


def test_a_type_name_is_a_value_when_types_are_requested() -> None:
    assert read("{type: string}", {"type": "object", "properties": {"type": {"type": "string"}}}).value == {
        "type": "string"
    }


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r"'a\xa0b'", "a\xa0b"),
        (r"'\U0001F600'", "😀"),
        (r"'a\N{BULLET}b'", "a•b"),
        (r"r'C:\temp\new'", r"C:\temp\new"),
        (r"'C:\x64\temp'", r"C:\x64\temp"),
        (r"'\d+\x41'", r"\d+A"),
        (r"r'\d+\n'", r"\d+\n"),
    ],
)
def test_python_escapes_are_decoded_in_single_quotes(written: str, meant: str) -> None:
    assert read(f"{{'name': {written}}}", Person).value.name == meant


# --- streaming ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize(
    "reply",
    [
        '{"day": "3 April 2025", "n": "1.234,56", "level": "level: high", "gone": "N/A"}',
        '{"day": "2025-04-03", "n": 12,5, "level": "formerly high", "gone": null}',
    ],
)
def test_values_shown_as_final_do_not_change(reply: str, size: int) -> None:
    schema = {
        "type": "object",
        "properties": {
            "day": {"type": "string", "format": "date"},
            "n": {"type": "number"},
            "level": {"enum": ["low", "high"]},
            "gone": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        },
    }
    reader, final = StreamReader(schema), dict[str, Any]()
    for start in range(0, len(reply), size):
        partial = reader.feed(reply[start : start + size])
        if partial is not None:
            final = {path[2:]: partial.value[path[2:]] for path in partial.final_paths if path != "$"}
    outcome = reader.close()
    assert outcome == read(reply, schema)
    if isinstance(outcome, Accepted):
        assert final == {name: outcome.value[name] for name in final}


@pytest.mark.parametrize("written", ["soon", "3", "at noon", "25 Uhr", "13 pm"])
def test_words_and_lone_digits_are_not_a_time_of_day(written: str) -> None:
    assert given(reading(written, time)) == "refused"


class Line(BaseModel):
    price: Decimal
    status: Literal["open", "paid"] = "open"


def test_the_repair_of_an_amount_for_a_decimal_names_the_amount() -> None:
    outcome = read('{"lines": [{"price": "1.219,90 €"}, {"price": "7,50"}]}', dict[str, list[Line]])
    assert isinstance(outcome, Accepted)
    assert {(repair.path, repair.before, repair.after) for repair in outcome.repairs} == {
        ("$.lines[0].price", '"1.219,90 €"', "1219.90"),
        ("$.lines[1].price", '"7,50"', "7.50"),
    }


def test_an_invalid_amount_is_named_and_an_amount_next_to_an_error_is_rejected() -> None:
    outcome = read('{"price": "about 3.5"}', Line)
    assert isinstance(outcome, Rejected)
    assert [issue.message for issue in outcome.issues] == ["expected a number, found 'about 3.5'"]
    outcome = read('{"price": "19,90 €", "status": "offen"}', Line)
    assert isinstance(outcome, Rejected)
    assert [issue.path for issue in outcome.issues] == ["$.status"]


@pytest.mark.parametrize("blank", [" ", "\u00a0", "\u202f"])
def test_the_blanks_inside_french_quotation_marks_belong_to_them(blank: str) -> None:
    said = f"«{blank}name{blank}»: «{blank}thé vert{blank}»"
    outcome = read(f"{{{said}}}", {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}})
    assert isinstance(outcome, Accepted)
    assert outcome.value == {"name": "thé vert"}
    assert [repair.code for repair in outcome.repairs] == ["quotes", "quotes"]
    assert read("{“name”: “ thé ”}", {}).value == {"name": " thé "}, "the blanks in other quotes are the string's own"


@pytest.mark.parametrize("said", ["click|type", "click | type", "type|click"])
def test_words_separated_by_a_bar_are_not_a_choice(said: str) -> None:
    assert given(reading(said, Literal["click"])) == "refused"
    assert given(reading("| click |", Literal["click"])) == "click"


class Cat(BaseModel):
    name: str
    lives: int = 9


class Dog(BaseModel):
    name: str
    breed: str = "mutt"


@pytest.mark.parametrize(
    "reply",
    [
        *('{"Dog": {"name": "Rex"}}', '{"dogs": [{"name": "Rex"}]}', '{"result": {"dog": {"name": "Rex"}}}'),
        *('{"type": "Dog", "data": {"name": "Rex"}}', '{"tool": "Dog", "arguments": {"name": "Rex"}}'),
    ],
)
def test_an_envelope_that_may_name_an_alternative_is_not_passed_over(reply: str) -> None:
    assert isinstance(read(reply, Cat | Dog), Rejected)


def test_an_envelope_that_names_nothing_leaves_the_choice_to_the_fields() -> None:
    assert read('{"result": {"name": "Tom"}}', Cat | Dog).value == Cat(name="Tom")
    assert read('{"pet": {"name": "Rex", "breed": "pug"}}', Cat | Dog).value == Dog(name="Rex", breed="pug")


def test_fields_of_one_alternative_under_the_name_of_another_are_rejected() -> None:
    for said in ('{"cat": {"name": "Rex", "breed": "pug"}}', '{"kind": "Cat", "name": "Rex", "breed": "pug"}'):
        assert isinstance(read(said, Cat | Dog), Rejected), said
    named = read('{"kind": "Dog", "name": "Rex", "breed": "pug"}', Cat | Dog)
    assert named.value == Dog(name="Rex", breed="pug")


class Parrot(BaseModel):
    kind: Literal["parrot"]
    words: int


class Snake(BaseModel):
    name: str
    length: int


def test_the_issues_of_a_union_are_about_its_nearest_member() -> None:
    outcome = read('[{"name": "Kaa"}, {"kind": "parrot", "words": "many"}]', list[Parrot | Snake])
    assert isinstance(outcome, Rejected)
    assert [issue.path for issue in outcome.issues] == ["$[0].length", "$[1].words"]


def test_an_issue_quotes_the_words_of_the_reply_from_its_first_one() -> None:
    outcome = read("So perhaps 12 or 13", int)
    assert isinstance(outcome, Rejected)
    assert "'So perhaps 12 or 13'" in outcome.issues[0].message


def test_the_repairs_of_a_union_say_nothing_of_the_alternatives_that_do_not_fit() -> None:
    outcome = read('{"name": "Rex", "breed": "pug", "age": 3}', Cat | Dog)
    assert [(repair.code, repair.path) for repair in outcome.repairs] == [("ignored_key", "$.age")]


class Contact(BaseModel):
    name: str
    email: str | None = None
    phone: str | None = None


def test_the_fields_of_another_person_are_not_moved() -> None:
    assert isinstance(read('{"name": "Bob", "father": {"email": "a@x.io"}}', Contact), Rejected)
    for key in ("contact", "details", "personal", "extraInfo"):
        outcome = read(json.dumps({"name": "Bob", key: {"email": "b@x.io"}}), Contact)
        assert outcome.value == Contact(name="Bob", email="b@x.io"), key


def test_a_key_that_asks_whether_there_is_something_does_not_name_it() -> None:
    assert read('{"name": "Bob", "has_email": true}', Contact).value == Contact(name="Bob")
    assert read('{"name": "Bob", "iphone": "13"}', Contact).value == Contact(name="Bob")
    assert read('{"name": "Bob", "hone": null, "mail": null}', Contact).value == Contact(name="Bob")


@pytest.mark.parametrize(
    "reply",
    ['{"title": "a"/"b", "n": 1}', '{"title": "a"-"b", "n": 1}', '{"title": "He wrote: "n": 1", "tags": ["x"]}'],
)
def test_a_string_that_may_be_two_is_not_joined(reply: str) -> None:
    class Note(BaseModel):
        title: str
        n: int = 0
        tags: list[str] = []

    assert isinstance(read(reply, Note), Rejected)
    assert read('{"title": "say "yes"/"no" here", "n": 1}', Note).value.title == 'say "yes"/"no" here'
    assert read('{"title": "a 5"/"6" board", "n": 1}', Note).value.title == 'a 5"/"6" board'


HIGH, LOW = '{"title": "Fix", "level": "high"}', '{"title": "Fix", "level": "low"}'


class Report(BaseModel):
    title: str
    level: Level


@pytest.mark.parametrize(
    "reply",
    [
        *(f"Ticket 1: {HIGH}\nTicket 2: {LOW}", f"First ticket: {HIGH}\nSecond ticket: {LOW}"),
        *(f"{HIGH} is right, {LOW} is wrong.", f"Expected: {HIGH}\nGot: {LOW}", f"{HIGH} replaces {LOW}"),
        *(f"{HIGH}\n\n❌ Validation failed: level", f"{HIGH}\nNote: the level is a placeholder"),
        *(f"{HIGH}\n\nKorekta: niski.", f"{HIGH}\n\nDüzeltme: düşük.", f"{HIGH}\n\nRättelse: låg."),
        *(f"{HIGH}\n---\n{LOW}", f"{HIGH}\n\n***\n\n{LOW}"),
        *(f"{HIGH}\n\nتصحيح: منخفض.", f"{HIGH}\n\nसुधार: कम।"),
    ],
)
def test_an_answer_among_others_or_in_doubt_is_rejected(reply: str) -> None:
    assert why(reply, Report) is Reason.AMBIGUOUS


def test_a_rule_between_answers_says_nothing() -> None:
    assert [each.level for each in read(f"{HIGH}\n---\n{LOW}", list[Report]).value] == ["high", "low"]
    assert read(f"{LOW}\n---\nFinal answer:\n{HIGH}", Report).value.level == "high"


@pytest.mark.parametrize("reply", [f"Attempt 1: {LOW}\nAttempt 2: {HIGH}", f"v1: {LOW}\nv2: {HIGH}"])
def test_the_last_of_several_attempts_wins(reply: str) -> None:
    assert read(reply, Report).value.level == "high"


class Amounts(BaseModel):
    amount: Decimal
    taxes: list[Decimal] = []
    fee: Decimal | None = None
    rate: float = 0


@pytest.mark.parametrize(
    "reply",
    [
        '{"amount": 12345678901234567890.125, "taxes": [1.00000000000000000001, 2.5], "fee": 0.1234567890123456789}',
        """```json\n{"amount": 12345678901234567890.125,
        "taxes": [1.00000000000000000001, 2.5,], "fee": 0.1234567890123456789}\n```""",
        "{amount: 12345678901234567890.125, 'taxes': [1.00000000000000000001, 2.5], fee: 0.1234567890123456789}",
    ],
)
def test_a_decimal_keeps_the_digits_that_a_float_loses(reply: str) -> None:
    outcome = read(reply, Amounts)
    assert isinstance(outcome, Accepted)
    assert outcome.value.amount == Decimal("12345678901234567890.125")
    assert outcome.value.taxes == [Decimal("1.00000000000000000001"), Decimal("2.5")]
    assert outcome.value.fee == Decimal("0.1234567890123456789")


@pytest.mark.parametrize("reply", ['{{"fee": {},}}', "{{fee: {}}}", '```json\n{{"fee": {},}}\n```'])
def test_a_decimal_keeps_its_digits_where_the_nearest_float_is_short(reply: str) -> None:
    class Fee(BaseModel):
        fee: Decimal

    outcome = read(reply.format("0.10000000000000001"), Fee)
    assert isinstance(outcome, Accepted)
    assert outcome.value.fee == Decimal("0.10000000000000001")


def test_many_digits_need_no_repair_and_the_bounds_of_a_decimal_hold() -> None:
    class Priced(BaseModel):
        price: Annotated[Decimal, Field(gt=0)]
        rate: float = 0

    exact = read('{"price": 0.1234567890123456789, "rate": 0.1234567890123456789}', Priced)
    assert isinstance(exact, Accepted)
    assert (exact.value.price, exact.value.rate, exact.trust.value) == (
        Decimal("0.1234567890123456789"),
        0.1234567890123456789,
        "clean",
    )
    assert isinstance(read('{"price": -0.1234567890123456789}', Priced), Rejected)


class Offer(BaseModel):
    """An amount with its currency."""

    price: Decimal
    currency: str | None = "USD"


@pytest.mark.parametrize(
    ("reply", "is_read"),
    [
        ('{"price": "€12.50", "currency": "EUR"}', True),
        ('{"price": "€12.50", "currency": "euros"}', True),
        ('{"price": "$12.50"}', True),
        ('{"price": "$12.50", "currency": "CAD"}', True),  # several countries have a dollar
        ('{"price": "12.50", "currency": "EUR"}', True),
        ('{"price": "€12.50", "currency": "shells"}', True),
        ('{"price": "€12.50", "currency": "USD"}', False),
        ('{"price": "12.50 GBP", "currency": "EUR"}', False),
        ('{"price": "€12.50"}', False),  # the default says USD
        ('{"price": "€12.50", "currency": null}', False),
    ],
)
def test_an_amount_in_another_currency_than_the_neighbouring_field_rejects_the_reply(reply: str, is_read: bool) -> None:
    for contract in (Offer, list[Offer]):
        outcome = read(reply if contract is Offer else f"[{reply}]", contract)
        assert isinstance(outcome, Accepted) is is_read, outcome.explain()


def test_the_currency_of_an_order_applies_to_its_amounts() -> None:
    class Order(BaseModel):
        currency: str
        lines: list[dict[str, float]]

    reply = '{"currency": "GBP", "lines": [{"price": "£3"}, {"price": "%s"}]}'
    assert isinstance(read(reply % "£4", Order), Accepted)
    refused = read(reply % "$4", Order)
    assert isinstance(refused, Rejected)
    assert refused.issues[0].path == "$.lines[1].price"


@pytest.mark.parametrize(
    ("written", "is_read"),
    [
        ("2024-05-03T10:30-11:30", False),  # from half past ten to half past eleven
        ("2024-05-03T08:15-09:45", False),
        ("2024-05-03T09:00-10:00", False),
        ("2024-05-03T10:30-05:00", True),
        ("2024-05-03T02:30-05:00", True),
        ("2024-05-03T10:30:00-09:30", True),  # no range has seconds
    ],
)
def test_a_time_and_a_later_one_are_a_range_and_not_an_offset(written: str, is_read: bool) -> None:
    class Visit(BaseModel):
        at: datetime

    assert isinstance(read(f'{{"at": "{written}"}}', Visit), Accepted) is is_read


class Member(BaseModel):
    """Optional fields that have names in other languages."""

    name: str
    notes: str | None = None
    city: str | None = None
    contact_email: str | None = None
    page_url: str | None = None


@pytest.mark.parametrize(
    ("key", "written"),
    [
        ("notizen", "ruft zurück"),
        ("remarques", "rappeler"),
        ("observaciones", "llamar"),
        ("stadt", "Ulm"),
        ("ciudad", "Lima"),
        ("kontakt", "ada@example.org"),
        ("anleitung", "https://example.org/a"),
    ],
)
def test_a_key_in_another_language_or_with_the_format_of_an_empty_field_rejects_the_reply(
    key: str, written: str
) -> None:
    refused = read(json.dumps({"name": "Ada", key: written}), Member)
    assert isinstance(refused, Rejected)
    assert refused.issues[0].code == "unmatched_key"


def test_a_source_with_an_address_is_still_ignored() -> None:
    assert read('{"name": "Ada", "source": "https://example.org/a"}', Member).value == Member(name="Ada")


def test_a_renamed_key_that_names_an_alternative_does_not_choose_the_other_one() -> None:
    assert isinstance(read('{"dog_name": "Rex"}', Cat | Dog), Rejected)
    assert read('{"dog_name": "Rex", "breed": "pug"}', Cat | Dog).value == Dog(name="Rex", breed="pug")


def test_half_of_a_percentage_is_not_read_as_half_a_percent() -> None:
    percentage = {"type": "object", "properties": {"share_percent": {"type": "number"}}}
    assert isinstance(read('{"share_percent": "1/2"}', percentage), Rejected)


@pytest.mark.parametrize(
    "label",
    [
        "**Answer:** ",
        "**Answer**: ",
        "*Answer:* ",
        "- Answer: ",
        "Response:\n\n",
        "Réponse finale : ",
        "**Réponse :** ",
    ],
)
@pytest.mark.parametrize(("said", "value"), [("7", 7), ("-7.5", -7.5), ("2026-01-05", date(2026, 1, 5)), ("yes", True)])
def test_a_label_in_bold_or_in_another_language_announces_a_value(label: str, said: str, value: Any) -> None:
    outcome = read(label + said, type(value))
    assert isinstance(outcome, Accepted)
    assert outcome.value == value
    assert isinstance(read("**Error:** " + said, type(value)), Rejected)


def test_the_schema_as_the_only_item_of_a_list_is_an_echo() -> None:
    schema = {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "number"}}}}
    assert why(json.dumps([schema["items"]]), schema) is Reason.ECHOED_SCHEMA


def test_a_hole_in_a_row_of_numbers_rejects_the_reply() -> None:
    assert why("[[1, 2, 3], [4, , 6]]", list[list[int]]) is Reason.AMBIGUOUS
    assert read("[1, , 3]", list[int]).value == [1, 3]


def test_a_line_break_before_a_path_is_one_while_the_path_keeps_its_backslashes() -> None:
    assert read(r'{"name": "first line\nin C:\new"}', Person).value.name == "first line\nin C:\\new"


@pytest.mark.parametrize(
    "said", ["/* days 3-30 likewise */", "/* 以下同様 */", "/* plus the ones from the old list */"]
)
def test_a_comment_that_stands_for_more_items_rejects_the_reply(said: str) -> None:
    assert not read(f"[1, 2, {said} 9]", list[int])


def test_a_network_share_with_single_backslashes_keeps_the_two_at_its_beginning() -> None:
    assert read(r'{"name": "\\filer\teams\north"}', Person).value.name == r"\\filer\teams\north"
    assert read(r'{"name": "\\\\filer\\teams"}', Person).value.name == r"\\filer\teams"
    assert read(r'{"name": "see \\filer\teams"}', Person).value.name.startswith("see ")


@pytest.mark.parametrize(
    "name",
    ["Su casa está aquí", "Ihre Tasche ist hier", "[Date illegible]", "<Datum fehlt>", "XXX XX"],
)
def test_words_that_only_resemble_a_placeholder_are_a_value(name: str) -> None:
    assert read(json.dumps({"name": name}, ensure_ascii=False), Person).value.name == name


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r"$\\cos\theta$ and \\sin\phi", r"$\cos\theta$ and \sin\phi"),
        (r"f(x) = \\sin\theta + 1", r"f(x) = \sin\theta + 1"),
        (r"(\\alpha\beta)", r"(\alpha\beta)"),
        (r"He used \\textbf\nfor bold", "He used \\textbf\nfor bold"),
    ],
)
def test_a_command_of_a_formula_is_no_network_share(written: str, meant: str) -> None:
    assert read(f'{{"name": "{written}"}}', Person).value.name == meant


@pytest.mark.parametrize(
    ("said", "choice"),
    [
        ("cancelled", "canceled"),
        ("Canceled", "cancelled"),
        ("grey", "gray"),
        ("order canceled", "order_cancelled"),
        ("unauthorized", "unauthorised"),
        ("Behavioural", "behavioral"),
        ("The status is cancelled.", "canceled"),
    ],
)
def test_american_and_british_spellings_are_the_same_choice(said: str, choice: str) -> None:
    field = {"type": "object", "properties": {"status": {"enum": [choice, "open"]}}, "required": ["status"]}
    outcome = read(json.dumps({"status": said}), field)
    assert isinstance(outcome, Accepted)
    assert outcome.value == {"status": choice}
    assert {repair.code for repair in outcome.repairs} <= {"enum-case", "enum-word"}


def test_two_spellings_that_are_both_choices_stay_apart() -> None:
    assert read('{"shade": "Grey"}', {"properties": {"shade": {"enum": ["gray", "grey"]}}}).value == {"shade": "grey"}
    assert read("It rained, so the answer is grey.", {"enum": ["gray", "grey"]}).value == "grey"
    assert read("It rained, so the answer is cancelled.", {"enum": ["canceled", "open"]}).value == "canceled"
    assert isinstance(read('"filed"', {"enum": ["filled", "open"]}), Rejected)


CLOSED = {
    "type": "object",
    "properties": {
        "patient": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "note": {"type": "string"}},
            "required": ["name"],
            "additionalProperties": False,
        },
        "urgent": {"type": "boolean"},
    },
    "required": ["patient"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    "reply", ['{"patient": {"name": "Ann", "urgent": true}}', '{"patient": {"name": "Ann"}, "urgent": true}']
)
def test_a_field_one_level_too_deep_is_moved_where_only_declared_keys_are_allowed(reply: str) -> None:
    assert read(reply, CLOSED).value == {"patient": {"name": "Ann"}, "urgent": True}


def test_a_field_one_level_too_high_is_moved_where_only_declared_keys_are_allowed() -> None:
    assert read('{"patient": {"name": "Ann"}, "note": "dizzy"}', CLOSED).value == {
        "patient": {"name": "Ann", "note": "dizzy"}
    }


def test_a_moved_field_does_not_excuse_another_key_that_is_not_allowed() -> None:
    assert isinstance(read('{"patient": {"name": "Ann", "urgent": true, "x": 1}}', CLOSED), Rejected)


STOCK = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"product": {"type": "string"}, "qty": {"type": "integer"}, "note": {"type": ["string", "null"]}},
        "required": ["product", "qty"],
    },
}


@pytest.mark.parametrize(
    ("reply", "rows"),
    [
        ('```csv\nproduct,qty\n"Nuts, mixed",4\nRaisins,9\n```', [("Nuts, mixed", 4), ("Raisins", 9)]),
        ("Here it is:\n\nproduct;qty\nNuts;4\n\nI hope it helps.", [("Nuts", 4)]),
        ("qty\tproduct\n4\tNuts", [("Nuts", 4)]),
    ],
)
def test_lines_of_csv_with_the_names_of_the_fields_are_a_list(reply: str, rows: list[tuple[str, int]]) -> None:
    assert read(reply, STOCK).value == [{"product": product, "qty": qty} for product, qty in rows]


def test_an_empty_cell_is_null_where_that_is_allowed_and_two_quotes_are_one() -> None:
    assert read('product,qty,note\nNuts,4,\nTea,1,"say ""hi"""', STOCK).value == [
        {"product": "Nuts", "qty": 4, "note": None},
        {"product": "Tea", "qty": 1, "note": 'say "hi"'},
    ]


@pytest.mark.parametrize(
    "reply",
    [
        "product,qty\nNuts,4,5", "product,qty\n", "product,price\nNuts,4", "product,qty\nNuts,4\nand 3 more",
        'product,qty\n"Nuts,4', "product,note\nNuts,x",
    ],
)  # fmt: skip
def test_lines_of_csv_that_do_not_fit_their_header_are_no_list(reply: str) -> None:
    assert isinstance(read(reply, STOCK), Rejected)


@pytest.mark.parametrize("comment", ["# or 587", "# should be 587", "# remaining ports as before"])
def test_a_comment_behind_a_line_that_gives_another_value_rejects_the_reply(comment: str) -> None:
    ports = {
        "type": "object",
        "properties": {"host": {"type": "string"}, "port": {"type": "integer"}},
        "required": ["host", "port"],
    }
    assert isinstance(read("host: a\nport: 465  # smtps", ports), Accepted)
    assert isinstance(read(f"host: a\nport: 465  {comment}", ports), Rejected)


def test_a_string_that_points_to_another_place_is_not_a_list_of_one() -> None:
    team = {"type": "object", "properties": {"members": {"type": "array", "items": {"type": "string"}}}}
    assert isinstance(read('{"members": "see above"}', team), Rejected)


@pytest.mark.parametrize("value", ["3", "[1, 2]", '{"c": 1}', '[1], "d": 4'])
def test_an_undeclared_key_without_quotes_behind_a_string_is_ignored(value: str) -> None:
    class Note(BaseModel):
        text: str

    assert read(f'{{"text": "x", b: {value}}}', Note, truncated=False).value == Note(text="x")


def test_a_date_and_time_in_an_unclear_order_is_rejected_for_that() -> None:
    class At(BaseModel):
        at: datetime

    assert "which number is the day" in read('{"at": "01/02/2024 10:00"}', At).explain()


# --- statements in place of values ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said", ["not asked", "none given", "keine bekannt", "aucune connue", "не указано", "unclear", "no idea", "pending"]
)
def test_a_statement_that_nothing_is_known_is_not_a_list_of_one(said: str) -> None:
    assert given(reading(said, list[str])) == "refused"


@pytest.mark.parametrize("said", ["peanuts", "no-code", "No Country for Old Men", "notes"])
def test_a_word_that_only_resembles_a_negation_is_a_list_of_one(said: str) -> None:
    assert given(reading(said, list[str])) == [said]


QUOTE = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "budget": {"type": "string"}},
    "required": ["city", "budget"],
}


@pytest.mark.parametrize(
    "reply",
    [
        "City: Lyon\nBudget: how much do you want to spend?", "City: Lyon ? Villeurbanne ?\nBudget: 200",
        "- **City**: Lyon\n- **Budget**: ¿cuánto sería?", "| City | Budget |\n|---|---|\n| Lyon | how much? |",
        "City: Lyon\nBudget: 300 (per person?)", "<city>Lyon</city>\n<budget>wie viel？</budget>",
    ],
)  # fmt: skip
def test_a_question_in_place_of_a_value_rejects_the_reply(reply: str) -> None:
    outcome = read(reply, QUOTE)
    assert isinstance(outcome, Rejected)
    assert "asks for a value" in outcome.issues[0].message


def test_a_question_in_quotes_or_in_a_field_that_may_hold_one_is_a_value() -> None:
    assert read('City: "Où?"\nBudget: 200', QUOTE).value == {"city": "Où?", "budget": "200"}
    film = {
        "type": "object",
        "properties": {"title": {"type": "string"}, "faq": {"type": "string"}},
        "required": ["title", "faq"],
    }
    assert read("title: O Brother, Where Art Thou?\nfaq: Is it long?", film).value == {
        "title": "O Brother, Where Art Thou?",
        "faq": "Is it long?",
    }


@pytest.mark.parametrize("numbers", ["12 000, 5 400, 31", "5 400", "1 234 567", "7, 10 200 30"])
def test_a_space_before_three_digits_in_a_list_may_group_or_separate_them(numbers: str) -> None:
    outcome = read(f'{{"v": [{numbers}]}}', {"properties": {"v": {"items": {"type": "integer"}}}})
    assert isinstance(outcome, Rejected)
    assert outcome.reason is Reason.AMBIGUOUS


@pytest.mark.parametrize(
    ("numbers", "values"),
    [
        ("1 2 3", [1, 2, 3]), ("10 20 30", [10, 20, 30]), ("1\n200\n300", [1, 200, 300]), ("1200 400", [1200, 400]),
        ("5 4000", [5, 4000]), ("12 000, 5 000", [12_000, 5_000]), ("5\u202f400", [5_400]),
    ],
)  # fmt: skip
def test_other_spaces_between_numbers_have_one_meaning(numbers: str, values: list[int]) -> None:
    assert read(f'{{"v": [{numbers}]}}', {"properties": {"v": {"items": {"type": "integer"}}}}).value == {"v": values}


def test_a_fraction_of_persons_is_a_range() -> None:
    assert given(reading("3/4", float, "servings"), "servings") == "refused"
    assert given(reading("3/4", float, "cups"), "cups") == 0.75


WASHERS = {"item": "washer", "qty": 100}


@pytest.mark.parametrize("item", ["Zumtobel Group", WASHERS])
def test_a_list_that_ends_with_the_same_item_again_and_again_is_a_runaway(item: object) -> None:
    items = ["Osram Licht", "Signify NV", *[item] * 8]
    contract = {"type": "object", "properties": {"v": {"type": "array"}}}
    for reply in (json.dumps({"v": items}), json.dumps({"v": items}, indent=2), f"{{v: {items},}}"):
        outcome = read(reply, contract)
        assert isinstance(outcome, Rejected)
        assert (outcome.issues[0].code, outcome.issues[0].path) == ("runaway_repetition", "$.v")
    assert isinstance(read(json.dumps({"v": items[:-1]}), contract), Accepted)


@pytest.mark.parametrize(
    ("name", "item"),
    [("v", 1.5), ("v", "present"), ("v", {"temperature": 20, "rain": 0}), ("lyrics", "na na na"), ("v", [0, 0, 1])],
)
def test_a_list_that_may_repeat_its_items_is_read(name: str, item: object) -> None:
    value = {name: [item] * 12}
    assert read(json.dumps(value), {"type": "object", "properties": {name: {"type": "array"}}}).value == value


def test_a_choice_may_be_repeated() -> None:
    assert given(reading(["in stock"] * 9, list[Literal["in stock", "sold out"]])) == ["in stock"] * 9


@pytest.mark.parametrize(
    ("name", "described"),
    [("gewicht", ""), ("weight", "Gewicht in Kilogramm"), ("poids_kg", ""), ("peso_kg", "precio por unidad")],
)
def test_three_digits_behind_a_comma_or_point_mean_two_numbers_in_languages_with_a_decimal_comma(
    name: str, described: str
) -> None:
    schema = {"type": "object", "properties": {name: {"type": "number", "description": described}}, "required": [name]}
    for written in ("1.250", "1,250"):
        assert isinstance(read(json.dumps({name: written}), schema), Rejected)
    for written, number in (("1.250,5", 1250.5), ("1,25", 1.25), ("12.5", 12.5), ("1.250.000", 1250000)):
        outcome = read(json.dumps({name: written}), schema)
        assert isinstance(outcome, Accepted)
        assert outcome.value == {name: number}
