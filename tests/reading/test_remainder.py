"""What a value does not contain must be harmless: each way in which a reply can contradict its value."""

import json
from datetime import date, timedelta
from enum import IntEnum
from typing import Any, Literal

import pytest
from pydantic import BaseModel, TypeAdapter

from flujo_aros import Accepted, Output, Reason, Rejected, StreamReader, Trust, read

Outcome = Accepted[Any] | Rejected


class Seat(BaseModel):
    row: int
    letter: str


class Flight(BaseModel):
    number: str
    status: Literal["on time", "delayed", "cancelled"]
    gate: str | None = None
    stops: list[str] = []
    delay_minutes: int = 0
    departs_on: date | None = None
    seat: Seat | None = None


class OpenSeat(BaseModel):
    row: int | None = None
    letter: str | None = None


class OpenFlight(BaseModel):
    number: str
    status: str
    seat: OpenSeat


GOOD = '{"number": "LH 12", "status": "delayed"}'
OTHER = '{"number": "LH 12", "status": "cancelled"}'


def value(text: str, contract: Any = Flight, **options: Any) -> dict[str, Any]:
    outcome = read(text, contract, **options)
    assert isinstance(outcome, Accepted), outcome.explain()
    written: dict[str, Any] = TypeAdapter(type(outcome.value)).dump_python(outcome.value, mode="json")
    return written


def refused(text: str, contract: Any = Flight, **options: Any) -> Rejected:
    outcome = read(text, contract, **options)
    assert isinstance(outcome, Rejected), outcome.value
    return outcome


def codes(text: str, contract: Any = Flight) -> list[str]:
    outcome = read(text, contract)
    return [repair.code for repair in outcome.repairs] if isinstance(outcome, Accepted) else []


# --- keys ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "written", "field"),
    [
        ("gaet", '"B4"', "gate"),
        ("gates", '"B4"', "gate"),
        ("gateNumber", '"B4"', "gate"),
        ("dealy_minutes", "20", "delay_minutes"),
        ("delay", "20", "delay_minutes"),
        ("departson", '"2026-05-01"', "departs_on"),
        ("stop_list", '["Kiel"]', "stops"),
        ("flight_gate", '"B4"', "gate"),
        ("known_stops", '["Kiel"]', "stops"),
        ("lista_stops", '["Kiel"]', "stops"),
    ],
)
def test_a_key_with_one_possible_field_is_renamed(key: str, written: str, field: str) -> None:
    text = f'{{"number": "LH 12", "status": "delayed", "{key}": {written}}}'
    assert value(text)[field] == json.loads(written)
    assert "near_miss_key" in codes(text)


@pytest.mark.parametrize(
    ("key", "written"),
    [
        ("delay_hours", "2"),
        ("delay_seconds", "90"),
        ("terminal_gate", '"B4"'),
        ("layovers", '["Kiel"]'),
        ("takeoff", '"2026-05-01"'),
        ("delay_range", '"10-20"'),
        ("previous_place", '{"row": 3, "letter": "A"}'),
        ("arrival_gate", '"B4"'),
        ("max_delay_minutes", "20"),
    ],
)
def test_a_key_that_may_be_meant_for_a_field_rejects_the_reply(key: str, written: str) -> None:
    outcome = refused(f'{{"number": "LH 12", "status": "delayed", "{key}": {written}}}')
    assert outcome.reason is Reason.INVALID
    assert [issue.code for issue in outcome.issues] == ["unmatched_key"]


@pytest.mark.parametrize(
    "extra", ['"confidence": 0.9', '"id": 7', '"_comment": "auto"', '"reasoning": "it says so"', '"gates": null']
)
def test_a_key_that_no_field_could_have_been_is_ignored_and_reported(extra: str) -> None:
    assert value(f'{{"number": "LH 12", "status": "delayed", {extra}}}')["gate"] is None


class Contact(BaseModel):
    """Fields that have other common names."""

    host: str = ""
    email: str | None = None
    phone: str | None = None
    language: str | None = None
    labels: list[str] = []
    timeout_s: float = 0
    seen_on: date | None = None
    smokes: bool = False
    tls: bool = False
    llegada: date | None = None
    disable_cache: bool = False
    max_score: int = 0
    previous_employer: str | None = None


@pytest.mark.parametrize(
    ("key", "written", "field"),
    [
        ("hostname", '"db1"', "host"),
        ("mail", '"a@b.io"', "email"),
        ("tel", '"123"', "phone"),
        ("lang", '"de"', "language"),
        ("tags", '["x"]', "labels"),
        ("timeout_seconds", "5", "timeout_s"),
        ("date_seen", '"2026-05-01"', "seen_on"),
        ("is_smokes", "true", "smokes"),
        ("use_tls", "true", "tls"),
        ("tls_enabled", "true", "tls"),
        ("fecha de llegada", '"2026-05-01"', "llegada"),
    ],
)
def test_another_word_for_a_field_is_its_name(key: str, written: str, field: str) -> None:
    assert value(f'{{"{key}": {written}}}', Contact)[field] == json.loads(written)


@pytest.mark.parametrize(
    ("key", "written"),
    [
        ("cache", "true"),
        ("score", "5"),
        ("employer", '"X"'),
        ("email_enabled", "true"),
        ("timeout_ms", "5"),
        ("no_tls", "true"),
    ],
)
def test_a_key_that_means_otherwise_than_a_field_is_never_its_name(key: str, written: str) -> None:
    refused(f'{{"{key}": {written}}}', Contact)


class Party(BaseModel):
    """Fields with similar names and different meanings."""

    last_name: str | None = None
    employer: str | None = None
    created_by: str | None = None
    line_2: str | None = None
    altitude: float | None = None
    quantity: str | None = None
    contact: str | None = None
    temperature_c: float | None = None
    due_date: date | None = None


@pytest.mark.parametrize(
    ("key", "written", "field"),
    [
        ("surname", '"Li"', "last_name"),
        ("family_name", '"Li"', "last_name"),
        ("payment_due", '"2026-05-01"', "due_date"),
        ("employr", '"Acme"', "employer"),
        ("qauntity", '"5"', "quantity"),
    ],
)
def test_a_name_of_two_words_may_mean_the_same_as_another(key: str, written: str, field: str) -> None:
    assert value(f'{{"{key}": {written}}}', Party)[field] == json.loads(written)


@pytest.mark.parametrize(
    ("key", "written"),
    [
        ("employee", '"Li"'),
        ("created_at", '"2026-05-01"'),
        ("line_1", '"Main St"'),
        ("latitude", "54.3"),
        ("quality", '"high"'),
        ("contract", '"C-1"'),
        ("temp_f", "68"),
    ],
)
def test_a_word_that_resembles_a_field_name_is_not_a_typo_of_it(key: str, written: str) -> None:
    refused(f'{{"{key}": {written}}}', Party)


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Job(BaseModel):
    kind: Literal["job"]
    name: str
    level: Level = Level.LOW
    lasts: timedelta = timedelta(0)
    env: dict[str, str] = {}
    urgent: bool = False


class Pause(BaseModel):
    kind: Literal["pause"]
    minutes: int


class Dog(BaseModel):
    name: str
    breed: str | None = None


class Cat(BaseModel):
    name: str
    indoor: bool | None = None


class Owner(BaseModel):
    pet: Dog | Cat


@pytest.mark.parametrize(
    ("text", "contract"),
    [
        ('{"kind": "job", "name": "x", "level": true}', Job),
        ("{'kind': 'job', 'name': 'x', 'level': True}", Job),
        ('{"kind": "job", "name": "x", "lasts": "P1M"}', Job),
        ("{'kind': 'job', 'name': 'x', 'lasts': 'P1Y'}", Job),
        ('{"kind": "job", "name": "x", "lasts": "03:45"}', Job),
        ("{'kind': 'job', 'name': 'x', 'lasts': '03:45'}", Job),
        ('{"kind": "job", "name": "x", "env": [{"name": "color", "value": "red"}]}', Job),
        ('{"kind": "job", "name": "x", "note": "The name is wrong, it should be y."}', Job),
        ('{"kind": "job", "name": "x", "minutes": 5}', Job | Pause),
        ('{"pet": {"cat": {"name": "Tom"}}}', Owner),
        ('{"a": 1, "a": 2}', dict[str, int]),
    ],
)
def test_an_unstated_value_of_the_right_type_rejects_the_reply(text: str, contract: Any) -> None:
    refused(text, contract)


def test_unambiguous_values_are_accepted() -> None:
    assert value('{"kind": "job", "name": "x", "level": 2, "urgent": true, "lasts": "P1D"}', Job)["level"] == 2
    assert value('{"kind": "job", "name": "x", "minutes": null}', Job | Pause)["name"] == "x"
    assert value('{"kind": "job", "name": "x", "note": "as given"}', Job)["name"] == "x"
    period = {"type": "object", "properties": {"period": {"type": "string", "format": "duration"}}}
    assert read("{'period': 'P1M'}", period).value == {"period": "P1M"}


def test_a_duration_of_two_numbers_is_ambiguous() -> None:
    outcome = read('{"kind": "job", "name": "x", "lasts": "03:45"}', Job)
    assert "it could be hours and minutes, or minutes and seconds; write PT1H30M" in outcome.explain()
    assert value('{"kind": "job", "name": "x", "lasts": "0:03:45"}', Job)["lasts"] == "PT3M45S"


class Tagged(BaseModel):
    title: str
    tags: list[str] = []


@pytest.mark.parametrize("line", ["Tags: screen, damage", "**Tags:** screen, water damage.", "- Suggested tags: a, b"])
def test_the_items_of_a_list_that_is_empty_in_the_answer_are_not_lost_below_it(line: str) -> None:
    refused(f'{{"title": "x"}}\n\n{line}', Tagged)
    refused(f'{{"title": "x", "tags": []}}\n\n{line}', Tagged)


@pytest.mark.parametrize("line", ["Tags: none", "Tags: a, b", "The tags are empty.", "No tags, I think."])
def test_a_list_below_the_answer_that_adds_nothing_is_ignored(line: str) -> None:
    filled = '["a", "b"]' if line == "Tags: a, b" else "[]"
    assert value(f'{{"title": "x", "tags": {filled}}}\n\n{line}', Tagged)["title"] == "x"


def test_a_group_of_fields_is_not_taken_for_a_field_of_objects() -> None:
    class Server(BaseModel):
        host: str
        tls: bool = True
        tags: dict[str, str] = {}

    assert value('{"host": "db1", "options": {"tls": false}}', Server)["tls"] is False


def test_another_word_for_a_field_is_not_its_name_where_its_end_is_missing() -> None:
    refused('{"host": "db1", "tags": ["x"', Contact, truncated=False)


def test_another_word_for_a_field_is_its_name_where_only_the_last_brace_is_missing() -> None:
    assert value('{"host": "db1", "tel": "123"', Contact, truncated=False)["phone"] == "123"


def test_a_key_that_is_a_part_of_two_names_is_neither_of_them_even_if_one_has_a_value() -> None:
    class Match(BaseModel):
        team: str
        home_goals: int
        away_goals: int

    refused('{"team": "Urawa", "goals": 3, "away_goals": 1}', Match)
    assert value('{"team": "Urawa", "home": 3, "away_goals": 1}', Match)["home_goals"] == 3


def test_a_key_next_to_its_field_is_ignored() -> None:
    assert value('{"number": "LH 12", "status": "delayed", "gate": "B4", "gate_note": "far"}')["gate"] == "B4"


def test_two_keys_for_one_field_with_different_values_reject_the_reply() -> None:
    refused('{"number": "LH 12", "status": "delayed", "gate": "B4", "Gate": "C1"}')


class Trip(BaseModel):
    host: str
    nights: int
    weight_kg: float
    room: Literal["single", "double"]
    author: str | None = None
    leaves_on: date | None = None
    paid: bool = False
    seat: OpenSeat | None = None


TRIP = '"host": "Ida", "nights": 2, "weight_kg": 70, "room": "single"'


@pytest.mark.parametrize(
    "extra",
    [
        '"hostname": "Bo"',
        '"number_of_nights": 3',
        '"nigths": 3',
        '"weight": 75',
        '"final_room": "double"',
        '"new_room": "double"',
        '"final": {"room": "double"}',
        '"paid": false, "has_paid": true',
        '"leaves_on": null, "leaves_on_date": "2024-05-03"',
        '"author": "", "writer": "Bo"',
        '"seat": {"letter": "A", "row": 1}, "letter": "B"',
        '"leaves": {"early": true, "plan": {"leaves_on": "2024-05-03"}}',
        '"rest": "..."',
        '"valid": false',
        '"alternatives": [{"host": "Bo", "nights": 3}]',
        '"alternative": {"room": "double"}',
    ],
)
def test_a_key_that_gives_a_field_another_value_rejects_the_reply(extra: str) -> None:
    refused(f"{{{TRIP}, {extra}}}", Trip)


@pytest.mark.parametrize(
    "extra",
    [
        '"hostname": "Ida"',
        '"nights_total": "none"',
        '"guests": 2',
        '"weight": "70"',
        '"weight_lb": 154',
        '"room_price": 90',
        '"updated_at": "2024-05-03"',
        '"author": "A. Miller", "author_name": "Miller"',
        '"author": "Miller", "author_code": "M1"',
        '"paid": false, "paid_amount": 20',
        '"leaves_on": "2024-05-03", "leaves_on_time": null',
        '"author": null, "reader": "Bo"',
        '"etc": "none"',
        '"valid": true',
        '"alternatives": []',
        '"candidates": ["Bo"]',
    ],
)
def test_a_key_that_says_the_same_or_something_else_is_ignored(extra: str) -> None:
    assert value(f"{{{TRIP}, {extra}}}", Trip)["nights"] == 2


@pytest.mark.parametrize(
    "extra",
    [
        '"date": "2024-05-03"',
        '"dates": ["2024-05-03", "2024-05-05"]',
        '"stay": {"from": "2024-05-03", "to": "2024-05-05"}',
        '"options": ["paid", "wifi"]',
        '"bezahlt_für": true',
        '"leave_year": 2024',
    ],
)
def test_a_value_that_fits_an_empty_field_rejects_the_reply(extra: str) -> None:
    refused(f"{{{TRIP}, {extra}}}", Trip)


def test_a_choice_under_a_key_that_says_which_field_it_is_for_is_renamed() -> None:
    rest = '{"host": "Ida", "nights": 2, "weight_kg": 70, '
    assert value(rest + '"room_type": "double"}', Trip)["room"] == "double"
    refused(rest + '"other_room": "double"}', Trip)
    refused(rest + '"room_type": "suite"}', Trip)


def test_fields_under_a_key_of_their_own_are_moved_out() -> None:
    assert (
        value('{"number": "LH 12", "status": "delayed", "details": {"gate": "B4", "delay_minutes": 5}}')[
            "delay_minutes"
        ]
        == 5
    )


def test_fields_next_to_their_object_are_moved_into_it() -> None:
    assert value('{"number": "LH 12", "status": "delayed", "row": 3, "letter": "A"}')["seat"] == {
        "row": 3,
        "letter": "A",
    }


def test_a_single_field_next_to_its_object_is_moved_into_it() -> None:
    text = '{"number": "LH 12", "status": "delayed", "seat": {"row": 3}, "letter": "A"}'
    assert value(text, OpenFlight)["seat"] == {"row": 3, "letter": "A"}
    assert codes(text, OpenFlight) == ["moved_key"]


def test_a_value_that_does_not_fit_its_nested_field_rejects_the_reply() -> None:
    refused('{"number": "LH 12", "status": "delayed", "seat": {"letter": "A"}, "row": "window"}', OpenFlight)


def test_a_key_is_ignored_if_the_object_next_to_it_has_a_value_for_its_field() -> None:
    text = '{"number": "LH 12", "status": "delayed", "seat": {"row": 3, "letter": "A"}, "letter": "A"}'
    assert value(text, OpenFlight)["seat"] == {"row": 3, "letter": "A"}
    assert codes(text, OpenFlight) == ["ignored_key"]


def test_a_field_one_level_too_deep_is_moved_up() -> None:
    text = '{"number": "LH 12", "status": "delayed", "seat": {"row": 3, "letter": "A", "gate": "B4"}}'
    assert value(text)["gate"] == "B4"
    assert codes(text) == ["moved_key"]


def test_an_undeclared_object_is_matched_by_its_keys() -> None:
    assert value('{"number": "LH 12", "status": "delayed", "place": {"row": 3, "letter": "A"}}')["seat"] == {
        "row": 3,
        "letter": "A",
    }


class Leg(BaseModel):
    gate: str


class Journey(BaseModel):
    code: str
    legs: list[Leg] = []
    buyer: Leg | None = None


@pytest.mark.parametrize(
    "keys",
    [
        ("seat_row", "seat_letter"),
        ("seat.row", "seat.letter"),
        ("seatRow", "seatLetter"),
        ("seat[row]", "seat[letter]"),
    ],
)
def test_the_keys_of_a_flattened_object_are_moved_into_it(keys: tuple[str, str]) -> None:
    text = json.dumps({"number": "LH 12", "status": "delayed", keys[0]: 3, keys[1]: "A"})
    assert value(text)["seat"] == {"row": 3, "letter": "A"}
    assert codes(text) == ["moved_key", "moved_key"]


@pytest.mark.parametrize(
    ("rest", "filled"),
    [
        ('"legs[0].gate": "A1", "legs[1].gate": "B2"', {"legs": [{"gate": "A1"}, {"gate": "B2"}]}),
        ('"legs.0.gate": "A1"', {"legs": [{"gate": "A1"}]}),
        ('"legs[0].gate": "A1", "buyer_gate": "B2"', {"legs": [{"gate": "A1"}], "buyer": {"gate": "B2"}}),
    ],
)
def test_the_items_of_a_flattened_list_are_moved_into_it(rest: str, filled: dict[str, Any]) -> None:
    outcome = read(f'{{"code": "X1", {rest}}}', Journey)
    assert outcome.value.model_dump(exclude_defaults=True) == {"code": "X1", **filled}


@pytest.mark.parametrize(
    "rest",
    [
        '"legs[1].gate": "B2"',  # the first leg is missing
        '"legs[0].gate": "A1", "legs[2].gate": "C3"',
        '"legs[0].gate": "A1", "legs[1].time": "10:30"',  # a leg has no time
        '"legs[0].gate": "A1", "legs_0_gate": "B2"',
        '"buyer_gate": "A1", "buyer_name": "Ann"',
        '"buyer_gate": ["A1", "B2"]',
    ],
)
def test_a_flattened_value_that_is_not_whole_rejects_the_reply(rest: str) -> None:
    outcome = read(f'{{"code": "X1", {rest}}}', Journey)
    assert isinstance(outcome, Rejected)
    assert "unmatched_key" in [issue.code for issue in outcome.issues]


def test_a_key_with_another_prefix_is_not_part_of_a_flattened_object() -> None:
    schema = {
        "type": "object",
        "properties": {"seat": {"type": "object", "properties": {"row": {"type": "integer"}}, "required": ["row"]}},
        "required": ["seat"],
    }
    assert isinstance(read('{"other_seat_row": 3}', schema), Rejected)
    assert read('{"seat_row": 3}', schema).value == {"seat": {"row": 3}}


@pytest.mark.parametrize(
    ("begun", "between", "is_read"),
    [
        ('{"number": "LH 12", "sta', "Sorry, that was cut off. Here it is again in full:", True),
        ('{"number": "LH 12", "status": "del', "La réponse a été coupée.", True),
        ('{\n  "number": "LH 12",\n  "status":', "Here is the complete answer:", True),
        ('{"number": "LH 13", "sta', "Sorry, that was cut off. Here it is again in full:", False),
        ('{"number": "LH 12", "status": "boarding", "ga', "Sorry, that was cut off. Here it is again:", False),
        ('{"number": "LH 12", "sta', "Sorry, that was cut off. The status is a guess:", False),
        ('{"number": "LH 12", "sta', "Here is an example of the format:", False),
    ],
)
def test_an_answer_that_broke_off_may_start_again_if_both_agree(begun: str, between: str, *, is_read: bool) -> None:
    whole = '{"number": "LH 12", "status": "delayed"}'
    outcome = read(f"{begun}\n\n{between}\n\n{whole}", Flight)
    assert isinstance(outcome, Accepted) == is_read
    assert isinstance(read(f"{begun}\n\n{between} {whole}", Flight), Rejected)  # in a sentence
    assert isinstance(read(f"{begun}\n\n{between}\n\n{whole}\n\n{whole[:30]}", Flight), Rejected)


class Circle(BaseModel):
    radius: float


class Box(BaseModel):
    width: float
    height: float


def test_an_object_with_the_keys_of_two_alternatives_matches_neither() -> None:
    outcome = read('[{"radius": 1, "width": 2, "height": 3}]', list[Circle | Box])
    assert isinstance(outcome, Rejected)
    assert [issue.code for issue in outcome.issues] == ["ambiguous"]
    assert isinstance(read('[{"radius": 1, "color": "red"}]', list[Circle | Box]), Accepted)


def test_valid_json_under_a_schema_that_keeps_its_keys_is_left_alone() -> None:
    schema = {
        "type": "object",
        "properties": {"gate": {"type": "string"}, "number": {"type": "string"}},
        "required": ["number"],
    }
    outcome = read('{"number": "LH 12", "gaet": "B4"}', schema)
    assert isinstance(outcome, Accepted)
    assert (outcome.value, outcome.trust) == ({"number": "LH 12", "gaet": "B4"}, Trust.CLEAN)


# --- another answer -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        f"Draft: {GOOD}\n\nFinal:\n" + '{"number": "LH 12", "status": }',
        f"Draft: {GOOD}\n\nFinal:\nFlight(number='LH 12', status='cancelled')",
        f"```json\n{GOOD}\n```\nCorrected:\n| number | status |\n|---|---|\n| LH 12 | cancelled |",
        f"```json\n{GOOD}\n```\nAfter:\nnumber: LH 12\nstatus: cancelled",
        f"Draft: {GOOD}\nFinal answer:",
        f"```json\n{GOOD}\n```\nNot the corrected one:\n\n{OTHER}",
        f"```json\n{GOOD}\n```\nThe final answer of another agent was:\n\n{OTHER}",
        f"```json\n{GOOD}\n```\n```json\n{OTHER}\n```",
    ],
)
def test_a_later_answer_is_never_passed_over_in_silence(text: str) -> None:
    refused(text)


@pytest.mark.parametrize(
    "text",
    [
        f"{GOOD}\n\nFor comparison, the previous record was:\n{OTHER}\nThe latter is right.",
        f"{GOOD}\n\nThe previous answer was wrong:\n{OTHER}",
        f"{GOOD}\n\nI do not like the previous answer, here is another:\n{OTHER}",
        f"Wrong: {GOOD}\nPrevious: {OTHER}",
        f"It is {GOOD}, not {OTHER}.",
        f"{GOOD} (the old system had {OTHER})",
        f"Option A: {GOOD}\nOption B: {OTHER}\nI would take A.",
        f"Either {GOOD} or {OTHER}.",
        f"{GOOD}\n\nEither that or\n\n{OTHER}",
        f"It could be {GOOD} or maybe {OTHER}.",
        f"{GOOD}\n\n(Alternatively: {OTHER})",
        f"要么{GOOD}，要么{OTHER}",
        f"oppure {GOOD} oppure {OTHER}",
        f"либо {GOOD}, либо {OTHER}",
        f"albo {GOOD} albo {OTHER}",
        f"Ergebnis: {GOOD}\nWie man es früher schrieb: {OTHER}",
    ],
)
def test_an_answer_that_the_words_before_it_disown_is_not_the_last_word(text: str) -> None:
    assert refused(text).reason is Reason.AMBIGUOUS


@pytest.mark.parametrize(
    "text",
    [
        f"{GOOD}\n\nFor comparison, the previous record was:\n{OTHER}",
        f"{GOOD}\n\nThe original input:\n{OTHER}",
        f"<answer>\n{GOOD}\n</answer>\n\nThe original input:\n{OTHER}",
        f"{GOOD}\n\n(An incorrect answer would be {OTHER})",
        f"Ergebnis: {GOOD}\nZum Vergleich das alte: {OTHER}",
        f"Résultat : {GOOD}\nAncienne version : {OTHER}",
        f"Resultado: {GOOD}\nVersión anterior: {OTHER}",
        f"结果：{GOOD}\n之前的：{OTHER}",
        f"結果：{GOOD}\n以前の値：{OTHER}",
        f"{GOOD}\n\nFor reference, the earlier status in the log was:\n{OTHER}",
        f"{GOOD}\n\nÀ titre de comparaison, le vol précédent était :\n{OTHER}",
    ],
)
def test_a_value_that_is_shown_for_comparison_at_the_end_is_not_the_answer(text: str) -> None:
    assert value(text)["status"] == "delayed"
    assert {"picked-last", "picked-place"} & set(codes(text))


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{OTHER}\n```\nOops. The correct one:\n\n{GOOD}",
        f"```json\n{OTHER}\n```\nWait, I made a mistake. The corrected version is:\n\n{GOOD}",
        f"```json\n{OTHER}\n```\nFinal answer: {GOOD}",
        f"```json\n{OTHER}\n```\nDie korrigierte Fassung:\n{GOOD}",
        f"```json\n{OTHER}\n```\nVersion corrigée :\n{GOOD}",
        f"```json\n{OTHER}\n```\nVersión corregida:\n{GOOD}",
    ],
)
def test_a_correction_replaces_the_answer_in_a_better_place(text: str) -> None:
    assert value(text)["status"] == "delayed"
    assert "picked-last" in codes(text)


@pytest.mark.parametrize(
    "text",
    [
        f"First draft: {OTHER}\n\nWait, I made a mistake. Corrected:\n{GOOD}",
        f"Before: {OTHER}\nAfter: {GOOD}",
        f"Input was {OTHER}. Output:\n```json\n{GOOD}\n```",
        f"```json\n{GOOD}\n```\nFor comparison, the old record was {OTHER}.",
        f"After: {GOOD}\nBefore: {OTHER}",
        f'{GOOD}\n\nFor contrast, a record that would fail validation: {{"number": "LH 12", "status": "soon"}}',
        f'{GOOD}\n\nThis would be rejected: {{"number": "LH 12", "status": "soon"}}',
    ],
)
def test_a_draft_before_the_answer_is_not_a_rival(text: str) -> None:
    assert value(text)["status"] == "delayed"


@pytest.mark.parametrize(
    "behind",
    [
        "Actually, make it cancelled.",
        "Wait, the status should be cancelled.",
        "Correction: status is cancelled.",
        "Scratch that.",
        'The gate should be "B4".',
        "Ignore the above.",
        "That is wrong.",
        "Korrektur: Der Flug ist gestrichen.",
        "En fait, le vol est annulé.",
        "Perdón, está cancelado.",
        "更正：状态应为 cancelled。",
        "訂正：status は cancelled です。",
        "... 3 more flights omitted",
        "The remaining fields are unchanged.",
    ],
)
def test_prose_that_retracts_or_abbreviates_the_answer_rejects_the_reply(behind: str) -> None:
    refused(f'{{"number": "LH 12", "status": "delayed", "gate": "B1"}}\n\n{behind}')


@pytest.mark.parametrize(
    "behind",
    [
        "Let me know if you would like any changes!",
        "I hope this helps.",
        "The status is delayed because the crew is late.",
        "Note: no gate was given, so I left it out.",
        "- **number**: as printed on the ticket\n- **status**: delayed, says the board",
        "Sag Bescheid, wenn du noch etwas brauchst.",
        "N'hésitez pas à demander.",
        "如果需要更多帮助，请告诉我。",
    ],
)
def test_prose_that_agrees_or_is_about_something_else_is_harmless(behind: str) -> None:
    assert value(f"Sure! Here you go:\n\n{GOOD}\n\n{behind}")["status"] == "delayed"


@pytest.mark.parametrize(
    "text",
    [
        f"I couldn't find a flight in the text. Here's a sample:\n{GOOD}",
        f"Sorry, I cannot process this. Expected format: {GOOD}",
        f"Example:\n```json\n{GOOD}\n```\nPlease provide the text of the ticket.",
        f"This is NOT the answer: {GOOD}",
        f"<tool_response>{GOOD}</tool_response>\nI could not finish.",
    ],
)
def test_a_value_that_a_reply_only_shows_is_not_an_answer(text: str) -> None:
    refused(text)


class Task(BaseModel):
    code: str
    duration_hours: float


TASK = '{"code": "M25.562", "duration_hours": 90}'


@pytest.mark.parametrize(
    "said",
    [
        "The meeting takes 90 minutes.",
        "<think>It starts at one. So the final code is M25.561.</think>",
        "I looked twice. Therefore the duration is 80 hours.",
    ],
)
def test_a_conclusion_or_a_unit_before_the_value_that_contradicts_it_rejects_the_reply(said: str) -> None:
    assert refused(f"{said}\n\n{TASK}", Task).reason is Reason.AMBIGUOUS


@pytest.mark.parametrize(
    "said",
    [
        "That is 90 hours, or 5400 minutes.",
        "I read 90 minutes at first, but 90 hours are meant.",
        "<think>So the final code is M25.562.</think>",
        "So here is the task, in hours.",
    ],
)
def test_a_conclusion_or_a_unit_before_the_value_that_agrees_with_it_is_harmless(said: str) -> None:
    assert value(f"{said}\n\n{TASK}", Task)["duration_hours"] == 90


def test_the_conclusion_of_a_sentence_behind_the_value_may_contradict_it() -> None:
    said = "The gate is closed and the crew has gone home, so the status is cancelled."
    assert refused(f"{GOOD}\n\n{said}").reason is Reason.AMBIGUOUS
    assert value(f"{GOOD}\n\nThe crew is on its way, so `cancelled` would be too strong.")["status"] == "delayed"


@pytest.mark.parametrize(
    "text",
    [
        f"You sent me {GOOD}. I have changed the status as you asked.",
        f"```json\n{GOOD}\n```\nHmm, that is yesterday's. The right one:\n```json\n\n```",
        f"The record would look like this:\n{GOOD}\nPaste the board here and I will fill it in.",
        f"ドラフト：{GOOD}\n\n最終版：",
        'Draft: {"number": "LH 12", "status": "delayed", "stops": [,}',
    ],
)
def test_an_answer_that_never_comes_is_not_the_one_before_it(text: str) -> None:
    assert refused(text).reason in (Reason.AMBIGUOUS, Reason.MALFORMED)


def test_a_correction_of_what_was_sent_is_the_answer() -> None:
    assert value(f"Here is the record that you sent me, corrected: {GOOD}")["status"] == "delayed"


@pytest.mark.parametrize(
    ("old", "new"),
    [("Antigo", "Novo"), ("TASLAK", "DÜZELTİLMİŞ"), ("Contoh", "Baru"), ("Vecchio", "Nuovo"), ("Старый", "Новый")],
)
def test_labels_in_many_languages_say_which_answer_is_the_new_one(old: str, new: str) -> None:
    assert value(f"{old}:\n{GOOD}\n\n{new}:\n{OTHER}")["status"] == "cancelled"
    assert refused(f"{new}:\n{GOOD}\n\n{old}:\n{OTHER}").reason is Reason.AMBIGUOUS


def test_a_prompt_that_is_repeated_before_the_response_says_nothing_about_it() -> None:
    prompt = "### Instruction:\nDo not guess. Count the errors.\n\n### Response:\n"
    assert value(f"{prompt}{GOOD}")["status"] == "delayed"
    assert refused(f"{prompt}{GOOD}\n\n### Input:\nAnother flight\n\n### Response:\n").reason is Reason.AMBIGUOUS


def test_an_answer_in_the_form_of_a_schema_is_not_a_schema() -> None:
    schema = json.dumps({"type": "object", "properties": {"number": {"type": "string"}, "status": {"type": "string"}}})
    assert (
        value(f"This is the schema:\n\n{schema}\n\nHere is the flight, in that schema:\n\n{GOOD}")["number"] == "LH 12"
    )


class Fare(BaseModel):
    base: float
    bags: float
    total: float


FARE = '{"base": 84, "bags": 36, "total": 102}'


@pytest.mark.parametrize(
    "text",
    [
        f"Two bags at 18.00 each = 36.00.\n84.00 + 36.00 = 120.00.\n\n{FARE}",
        f"{FARE}\n\nCheck: 84 + 36 = 120",
        f"Basis 84,00 €, Gepäck 36,00 €: 84,00 € + 36,00 € = 120,00 €\n\n{FARE}",
    ],
)
def test_a_calculation_with_another_result_than_the_value_rejects_the_reply(text: str) -> None:
    assert refused(text, Fare).reason is Reason.AMBIGUOUS


@pytest.mark.parametrize(
    "text",
    [
        f"84 + 18 = 102\n\n{FARE}",
        f"84 + 36 = 120, of which 18 are refunded.\n\n{FARE}",  # 102 follows
        f"84 + 36 - 18 = 102.00\n\n{FARE}",
        f"Seats left: 300 - 12 = 288.\n\n{FARE}",
        f"84 bags came, 36 went to 2 halls: 84 * 36 = 3024.\n\n{FARE}",  # about something else than 102
        '49 / 6 = 8.1667\n\n{"base": 49, "bags": 6, "total": 8.17}',
    ],
)
def test_a_calculation_that_the_value_agrees_with_is_harmless(text: str) -> None:
    assert value(text, Fare)["total"] > 0


def test_a_number_too_large_for_a_float_next_to_a_calculation_raises_nothing() -> None:
    class Count(BaseModel):
        total: int

    large = 10**400
    outcome = read(f'84 + 36 = 120\n\n{{"total": {large}}}', Count)
    assert isinstance(outcome, Accepted)
    assert outcome.value.total == large
    assert read(f"```toml\ntotal = {large}\n```", Count)


def test_a_label_that_is_repeated_at_the_end_announces_an_answer_that_never_comes() -> None:
    text = f'Příklad:\nVstup: "LH 9"\nVýstup: {GOOD}\n\nVstup: "LH 12"\nVýstup:'
    assert refused(text).reason is Reason.AMBIGUOUS
    assert value(f"Výstup: {GOOD}\n\nVstup byl dlouhý.")["status"] == "delayed"


def test_an_answer_in_an_invented_dialog_that_goes_on_is_not_the_answer() -> None:
    dialog = f"User: is LH 12 late?\nAssistant: {GOOD}\nUser: and now?\nAssistant: {OTHER}"
    assert refused(dialog).reason is Reason.AMBIGUOUS
    assert value(f"{GOOD}\nUser: and now?\nAssistant: {OTHER}")["status"] == "delayed"


def test_an_answer_that_could_also_be_another_one_is_ambiguous() -> None:
    assert refused(f"{GOOD}\n\nHmm, the screen could also be read this way:\n\n{OTHER}").reason is Reason.AMBIGUOUS


@pytest.mark.parametrize(
    "end",
    ["<|im_end|>\n<|im_start|>user\nNext: ", "</s>", "<|eot_id|>", "\n### Instruction:\nDo ", "\nUser: what about "],
)
def test_text_after_the_end_of_the_turn_is_not_read(end: str) -> None:
    assert value(f"{GOOD}{end}{OTHER}")["status"] == "delayed"


# --- envelopes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        f'{{"reasoning": "late crew", "answer": {GOOD}}}',
        f'{{"success": true, "flight": {GOOD}}}',
        f'{{"role": "assistant", "content": {json.dumps(GOOD)}}}',
        f'{{"name": "save_flight", "arguments": {GOOD}}}',
    ],
)
def test_the_one_member_of_an_envelope_that_fits_is_the_answer(text: str) -> None:
    assert value(text)["status"] == "delayed"


@pytest.mark.parametrize(
    "text",
    [
        f'{{"old": {GOOD}, "new": {OTHER}}}',
        f'{{"status": "error", "data": {GOOD}}}',
        f'{{"rejected": {GOOD}}}',
        f'{{"success": false, "flight": {GOOD}}}',
        f'{{"answer": {GOOD}, "note": "Actually, it is cancelled."}}',
    ],
)
def test_an_envelope_with_contradicting_members_is_rejected(text: str) -> None:
    refused(text)


def test_a_tool_call_is_never_the_object_itself() -> None:
    class Job(BaseModel):
        name: str
        retries: int = 3

    assert value('{"name": "save_job", "arguments": {"name": "nightly", "retries": 5}}', Job) == {
        "name": "nightly",
        "retries": 5,
    }
    free = read('{"name": "save", "arguments": {"a": 1}}', {"type": "object"})
    assert isinstance(free, Accepted)
    assert (free.value, free.trust) == ({"a": 1}, Trust.INFERRED)


PERSON: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}
ANY_OBJECTS: dict[str, Any] = {"type": "object", "additionalProperties": {"type": "object"}}


@pytest.mark.parametrize("other", [{"type": "null"}, {"type": ["string", "null"]}, {"properties": {"x": {}}}])
def test_an_envelope_around_an_alternative_of_a_permissive_schema_is_not_the_answer(other: dict[str, Any]) -> None:
    schema = {"anyOf": [PERSON, other]}
    opened = read('{"result": {"name": "Ann", "age": 3}}', schema)
    assert isinstance(opened, Accepted)
    assert (opened.value, opened.trust) == ({"name": "Ann", "age": 3}, Trust.INFERRED)
    assert isinstance(read('{"result": {"name": "Ann", "age": "old"}}', schema), Rejected)


def test_an_object_with_keys_that_an_alternative_allows_is_not_an_envelope() -> None:
    outcome = read('{"result": {"name": "Ann", "age": 3}}', {"anyOf": [PERSON, ANY_OBJECTS]})
    assert isinstance(outcome, Accepted)
    assert (outcome.value, outcome.trust) == ({"result": {"name": "Ann", "age": 3}}, Trust.CLEAN)


def test_the_repair_for_picking_an_answer_covers_the_others() -> None:
    first, last = '{"name": "Ann", "age": 3}', '{"name": "Ben", "age": 4}'
    outcome = read(f"{first}\n\nCorrected version:\n\n{last}", PERSON)
    assert isinstance(outcome, Accepted)
    (picked,) = outcome.repairs
    assert (picked.code, outcome.value) == ("picked-last", {"name": "Ben", "age": 4})
    assert outcome.text[slice(*picked.span)].startswith(first)


def test_the_repair_of_an_ignored_key_shows_that_key_alone() -> None:
    class Nested(BaseModel):
        seats: list[Seat]

    outcome = read('{"seats": [{"row": 1, "letter": "a"}, {"row": 2, "letter": "b", "window": true}]}', Nested)
    assert isinstance(outcome, Accepted)
    assert [(r.path, r.before, r.after) for r in outcome.repairs] == [("$.seats[1].window", '"window": true', "")]


# --- guards -------------------------------------------------------------------------------------------------------


class Note(BaseModel):
    text: str


@pytest.mark.parametrize(
    "frame",
    ["{}", '{{"result": {}}}', '{{"name": "f", "arguments": {}}}', "[{}]", "```json\n{}\n```"],
)
@pytest.mark.parametrize("written", [r"$\frac{1}{2}$", r"C:\temp\new", r"\bword\b"])
def test_escapes_that_were_meant_as_written_are_kept_in_every_frame(frame: str, written: str) -> None:
    for key in ("text", "Text"):
        assert value(frame.replace("{{", "{").replace("}}", "}").replace("{}", f'{{"{key}": "{written}"}}'), Note) == {
            "text": written
        }


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r"$\frac{1}{2}\nu$", r"$\frac{1}{2}\nu$"),  # a command that alone could be a line break and a word
        (r"$\theta = \tan x$", r"$\theta = \tan x$"),
        (r"$E = h\nu$", r"$E = h\nu$"),
        (r"First:\n$\frac{1}{2}\tau$\nthen the rest", "First:\n$\\frac{1}{2}\\tau$\nthen the rest"),
        (r"from $5\nto $6", "from $5\nto $6"),
        (r"a\nu", "a\nu"),
    ],
)
def test_all_commands_of_a_formula_are_kept_or_none(written: str, meant: str) -> None:
    assert value(f'{{"text": "{written}"}}', Note) == {"text": meant}


def test_html_entities_next_to_a_doubtful_escape_in_valid_json_are_text() -> None:
    assert value(r'{"text": "C:\u4e2d [&quot;:"}', Note) == {"text": "C:\u4e2d [&quot;:"}


@pytest.mark.parametrize(
    "text",
    [
        '{"number": "LH 12", "status": "delayed", "stops": ["Kiel", "..."]}',
        '{"number": "LH 12", "status": "delayed" /* rest as before */}',
        '{"number": "LH 12", "status": "delayed", "...": "..."}',
        '{"number": "LH 12", "status": "delayed", // other fields unchanged\n}',
        '{"number": "LH 12", "status": "delayed", // (snip)\n}',
        '{"number": "LH 12", "status": "delayed", "stops": ["Kiel", etc]}',
    ],
)
def test_an_ellipsis_is_rejected_at_any_place(text: str) -> None:
    refused(text)


@pytest.mark.parametrize(
    "reply",
    ["[1, 2] + [3]", "[0] * 5", "[1, 2] ... [9]", "[1, 2] # first 2 of 9", "[1, 2]\nI kept the first two for brevity.",
     '{"rows": [1, 2], "has_more": true}'],
)  # fmt: skip
def test_a_list_that_continues_elsewhere_is_rejected(reply: str) -> None:
    assert isinstance(read(reply, list[int]), Rejected)


def test_a_list_next_to_other_signs_is_complete() -> None:
    for reply in ("[1, 2] - both are primes", "[1, 2]\n+1 for the idea", '{"rows": [1, 2], "has_more": false}'):
        assert read(reply, list[int]).value == [1, 2]


def test_a_list_among_strings_is_not_one_of_them() -> None:
    assert isinstance(read('["a", ["b"]]', list[str]), Rejected)
    assert read('[["a"], ["b"]]', list[str]).value == ["a", "b"]


def test_a_comment_ends_before_the_last_closers_on_its_line() -> None:
    assert value('{"row": 3, "letter": "A" // window}', Seat) == {"row": 3, "letter": "A"}
    assert value('```json\n{"number": "LH 12", "status": "delayed", "seat": {"row": 3, "letter": "A" // ok }}\n```')[
        "seat"
    ]
    refused('{"row": 3, "letter": "A" // see {1}', Seat)
    refused('{"row": 3, "letter": A // B}', Seat)


def test_many_missing_closers_count_as_truncation() -> None:
    refused('{"number": "LH 12", "status": "delayed", "seat": {"row": 3, "letter": ["A"', truncated=False)
    three = '{"flights": [{"number": "LH 12", "status": "delayed"'
    assert isinstance(read(three, dict[str, list[Flight]], truncated=False), Rejected)


def test_an_item_that_abbreviates_others_in_a_line_list_is_rejected() -> None:
    refused("- Kiel\n- Oslo\n- ...and more", list[str])


# --- forms that are read ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        f"> {GOOD}",
        f"Here it is: {json.dumps(GOOD)}",
        f"```json\n{json.dumps(GOOD)}\n```",
        GOOD.replace('"', "&#34;"),
        GOOD.replace("{", "{\u200b").replace(":", "\u200b:"),
        GOOD.replace(", ", "، "),
        "{'number': 'LH 12', 'status': 'delayed'  # it's late\n}",
        "number: LH 12\nstatus: delayed\nstops:\n  - Kiel\n  - Oslo\nseat:\n  row: 3\n  letter: A",
        '{number: "LH 12", id: 7, status: "delayed"}',
    ],
)
def test_a_form_with_only_one_reading_is_read(text: str) -> None:
    assert value(text)["status"] == "delayed"


def test_lines_with_equals_signs_are_read_unless_some_have_colons() -> None:
    assert value('number = "LH 12"\nstatus = delayed') == value("number: LH 12\nstatus: delayed")
    refused("number = LH 12\nstatus: delayed")


@pytest.mark.parametrize("schema", [{"type": ["object", "array"]}, {"anyOf": [{"type": "array"}, {"type": "object"}]}])
@pytest.mark.parametrize("text", ['{"a": 1,\xa0"b": "[1]"}', '{"b": `{"c": 2}`, "a": 1}', '{"a": 1,\xa0"b": 2}'])
def test_an_object_that_may_have_any_keys_is_no_envelope_and_no_item(text: str, schema: Any) -> None:
    outcome = read(text, schema)
    assert isinstance(outcome, Accepted)
    assert outcome.value.keys() == {"a", "b"}


@pytest.mark.parametrize("text", ['(1, {"a": 1})', 'Here it is:\n({"a": 1}, "b")', '("x", None, {"a": 1})'])
def test_one_of_several_items_in_parentheses_is_not_the_answer(text: str) -> None:
    assert isinstance(read(text, {"type": "object"}), Rejected)


@pytest.mark.parametrize("text", ['JSON.stringify({"a": 1}, null, 2)', '({"a": 1})', 'The answer ({"a": 1}, as above)'])
def test_parentheses_around_an_answer_and_arguments_of_a_call_are_harmless(text: str) -> None:
    assert isinstance(read(text, {"type": "object"}), Accepted)


def test_lines_of_one_alternative_are_read() -> None:
    assert value("radius: 3", Circle | Box) == {"radius": 3}


def test_a_misspelt_key_among_the_lines_is_not_passed_over() -> None:
    assert value("number: LH 12\nstatus: delayed\ngaet: B4")["gate"] == "B4"
    refused("number: LH 12\nstatus: delayed\ndelay_hours: 2")
    assert value("number: LH 12\nstatus: delayed\nterminal: 2")["gate"] is None


def test_a_field_without_its_colon_is_read_where_its_name_is_known() -> None:
    text = '{"number": "LH 12", "status": "delayed", delay_minutes 5}'
    assert value(text)["delay_minutes"] == 5
    refused('{"number": "LH 12", "status": "delayed", platform 5}')


def test_a_missing_last_closer_is_inserted_before_prose() -> None:
    assert value(GOOD.rstrip("}") + "\n\nHope this helps!", truncated=False)["status"] == "delayed"


def test_lines_lose_no_characters_of_their_values() -> None:
    for written in ("__init__.py", "**/*.py", '"a" and "b"', "`x` is `y`"):
        assert value(f"text: {written}", Note) == {"text": written}
    assert value("text: |\n  one\n  two", Note) == {"text": "one\ntwo"}


# --- tags and streams ---------------------------------------------------------------------------------------------


def test_the_last_pair_of_tags_may_be_disowned_too() -> None:
    assert (
        refused(f"<f>{GOOD}</f>\nEarlier I had <f>{OTHER}</f>.", Output.tagged("f", Flight)).reason is Reason.AMBIGUOUS
    )


def test_final_paths_stay_final_whatever_follows_the_answer() -> None:
    replies = [
        f'{{"status": "ok", "result": {GOOD}}}',
        f"```json\n{OTHER}\n```\nCorrected:\n```json\n" + '"number": "LH 12", "status": "delayed"}\n```',
        '{"number": "LH 12", "status": "delayed", "details": {"gate": "B4"}}',
        json.dumps(GOOD),
        f"```json\n{OTHER}\n```\nOops. The corrected version is: {GOOD}",
        f"```json\n{OTHER}\n```\nOops. The corrected version is:\n{GOOD}\nThe previous version was: {OTHER}",
        f"{GOOD}\nFor comparison, the previous version was:\n{OTHER}" + 60 * "\n",
        f"```json\n{GOOD}\n```\nThe original input was:\n```json\n{OTHER}\n```",
    ]
    for text in replies:
        reader, final = StreamReader(Flight), dict[str, Any]()
        for at in range(0, len(text), 3):
            partial = reader.feed(text[at : at + 3])
            if partial is not None:
                final = {} if partial.restarted else final
                final |= {path: partial.value for path in partial.final_paths if path.count(".") == 1}
        outcome = reader.close()
        if isinstance(outcome, Accepted):
            written = outcome.value.model_dump(mode="json")
            for path, shown in final.items():
                assert shown[path[2:]] == written[path[2:]]


def test_a_place_that_can_no_longer_fit_is_known_before_the_end() -> None:
    reader = StreamReader(Flight)
    reader.feed('{"number": "LH 12", "status": "unknown", "gate": "B')
    assert reader.doomed is not None
    assert (reader.doomed.path, reader.doomed.code) == ("$.status", "enum")


@pytest.mark.parametrize(
    "text", [GOOD, f"Sure:\n```json\n{GOOD}\n```", GOOD.replace("delayed", "Delayed"), f"[{GOOD}]"]
)
def test_an_answer_that_fits_is_never_doomed(text: str) -> None:
    reader = StreamReader(Flight)
    for at in range(0, len(text), 2):
        reader.feed(text[at : at + 2])
        assert reader.doomed is None
    assert isinstance(reader.close(), Accepted)


@pytest.mark.parametrize(
    "comment",
    [
        "// or 4",
        "/* should be 40 */",
        "// actually 12",
        "// corrected: 7",
        "// not 30",
        "# oder 4",
        "// placeholder",
        "// or B",
        "// maybe 4",
        "// row: 31",
        "// wait, the plan says 31",
        "// falsch, 31 ist richtig",
        "// correction below",
    ],
)
def test_a_comment_that_gives_another_value_rejects_the_reply(comment: str) -> None:
    end = "" if comment.startswith("/*") else "\n"
    for text in (f'{{"row": 30 {comment}{end}, "letter": "A"}}', f'{{row: 30 {comment}{end}, "letter": "A"}}'):
        assert refused(text, Seat).reason is Reason.AMBIGUOUS


@pytest.mark.parametrize(
    "comment",
    [
        "// was 4",
        "// as given",
        "// must be positive",
        "/* in row 3 */",
        "// correct",
        "// or later",
        '// "letter": "B",',
    ],
)
def test_any_other_comment_is_left_out(comment: str) -> None:
    assert value(f'{{"row": 30, {comment}\n"letter": "A"}}', Seat) == {"row": 30, "letter": "A"}


@pytest.mark.parametrize(
    "label",
    [
        "Example:",
        "Here is an example of the expected format:",
        "Ejemplo:",
        "Beispiel:",
        "示例：",
        "Sample output:",
        "Ecco un esempio:",
        "Пример:",
    ],
)
def test_a_value_only_called_an_example_is_not_an_answer(label: str) -> None:
    assert refused(f"{label}\n{GOOD}").reason is Reason.AMBIGUOUS
    assert refused(f"{label}\n```json\n{GOOD}\n```").reason is Reason.AMBIGUOUS
    assert value(f"{label[:-1]} for the flight in your mail:\n{GOOD}")["number"] == "LH 12"


@pytest.mark.parametrize(
    "rest", ["\nError: no such flight", '\n{"error": "timeout"}', "\n```\nError: cut off\n```", "\nFehler: unbekannt"]
)
def test_an_error_report_after_a_value_rejects_the_reply(rest: str) -> None:
    assert "error" in refused(GOOD + rest).issues[0].message


@pytest.mark.parametrize("rest", ["\nErrors: none", '\n{"error": null}', "\nError: none", '\n{"usage": {"tokens": 3}}'])
def test_no_error_after_a_value_is_harmless(rest: str) -> None:
    assert value(GOOD + rest)["number"] == "LH 12"


def test_an_object_that_reports_an_error_while_fields_are_empty_is_not_an_answer() -> None:
    assert refused('{"number": "LH 12", "status": "delayed", "error": "not found"}').reason is Reason.AMBIGUOUS
    assert refused('{"number": "LH 12", "status": "delayed", "is_example": true}').reason is Reason.AMBIGUOUS
    assert value('{"number": "LH 12", "status": "delayed", "error": null}')["status"] == "delayed"
    assert value('{"row": 3, "letter": "A", "error": "none free before"}', Seat) == {"row": 3, "letter": "A"}


@pytest.mark.parametrize("key", ["mgr", "pax"])
def test_an_abbreviated_key_next_to_a_similar_empty_field_rejects_the_reply(key: str) -> None:
    class Group(BaseModel):
        name: str
        manager: str | None = None
        passengers: str = ""

    assert refused(f'{{"name": "A", "{key}": "Bo"}}', Group).issues[0].code == "unmatched_key"
    assert value('{"name": "A", "mgmt_url": "x"}', Group)["manager"] is None


@pytest.mark.parametrize(
    "thought", ["Wait, the status should be cancelled.", OTHER, "Actually, it was not delayed but cancelled."]
)
def test_a_correction_in_reasoning_after_the_answer_counts(thought: str) -> None:
    assert refused(f"{GOOD}\n<think>{thought}</think>").reason is Reason.AMBIGUOUS


def test_reasoning_after_the_answer_is_harmless_if_it_corrects_nothing() -> None:
    assert value(f"{GOOD}\n<think>The user asked for the status, so this is complete.</think>")["status"] == "delayed"


@pytest.mark.parametrize(
    "word", ["from", "replacing", "overrides", "over", "in place of", "as opposed to", "←", "et non", "y no"]
)
def test_a_value_that_defers_to_the_one_before_it_is_not_the_answer(word: str) -> None:
    assert refused(f"Changed {GOOD} {word} {OTHER}").reason is Reason.AMBIGUOUS


class Slot(BaseModel):
    room: str
    seats: int


SLOT = '{"room": "A", "seats": 4}'


@pytest.mark.parametrize(
    "reply",
    [
        "```js\nconst slot = {room: 'A', seats: 4};\nslot.seats = count(rows);\n```",
        "```python\nslot = {'room': 'A', 'seats': 4}\nslot['seats'] += 2\n```",
    ],
)
def test_code_behind_the_value_that_changes_a_field_rejects_the_reply(reply: str) -> None:
    found = read(reply, Slot)
    assert isinstance(found, Rejected)
    assert "changes 'seats'" in str(found)


def test_code_behind_the_value_that_only_uses_it_is_harmless() -> None:
    assert read("```js\nconst slot = {room: 'A', seats: 4};\nif (slot.seats == 4) { log(slot.room); }\n```", Slot)


@pytest.mark.parametrize(
    "code", ["row.seats = slot['seats']", "row['seats'] = slot.seats;", "row.seats = 4", "el.room = 'A';"]
)
def test_code_behind_the_value_that_assigns_it_elsewhere_is_harmless(code: str) -> None:
    assert value(f"{SLOT}\n\n{code}", Slot) == {"room": "A", "seats": 4}


@pytest.mark.parametrize("lines", ["room: hall\nseats: many\n", "Room: B\nSeats: four", "seats： 4\nroom： B"])
def test_another_answer_in_lines_behind_the_value_rejects_the_reply(lines: str) -> None:
    refused(f"{SLOT}\n\n{lines}", Slot)


def test_the_same_answer_in_lines_behind_the_value_is_harmless() -> None:
    assert value(f'{SLOT}\n\nroom: "A"\nseats: 4.0', Slot) == {"room": "A", "seats": 4}


@pytest.mark.parametrize("number", ["9" * 400, "-" + "9" * 400])
def test_numbers_that_no_float_can_hold_raise_nothing(number: str) -> None:
    assert read(f"{SLOT}\n\nThe seats are not {number}.", Slot) is not None
    huge = f'{{"room": "A", "seats": {number}}}'
    assert value(f"{huge}\n\nThe seats of 3 rooms were added.", Slot) == {"room": "A", "seats": int(number)}


def test_answers_that_each_depend_on_a_condition_are_alternatives() -> None:
    reply = 'If the door counts, then {"room": "A", "seats": 4}. If not, after all, then {"room": "A", "seats": 3}.'
    assert isinstance(read(reply, Slot), Rejected)
    assert read('When I was asked first: {"room": "A", "seats": 4}. Final answer: {"room": "A", "seats": 3}', Slot)


def test_the_input_of_a_tool_that_is_called_in_words_is_not_the_answer() -> None:
    value = '{"room": "A", "seats": 4}'
    for given in (value, f"\n```json\n{value}\n```"):
        reply = f"Thought: look it up.\nAction: find_room\nAction Input: {given}\nObservation:"
        assert isinstance(read(reply, Slot), Rejected)


def test_what_would_be_the_answer_for_a_text_like_another_is_an_example() -> None:
    reply = 'Use this format, for a message such as "Room A for four":\n\n{"room": "A", "seats": 4}'
    assert isinstance(read(reply, Slot), Rejected)


@pytest.mark.parametrize(
    "label",
    [
        "I'm sorry, but I can't read the plan. The output would have looked like this:",
        "Das wäre die Antwort, wenn der Raum noch frei wäre:",
        "This would be the answer if the room were free:",
    ],
)
def test_what_the_answer_would_be_is_not_the_answer(label: str) -> None:
    assert isinstance(read(f'{label}\n\n{{"room": "A", "seats": 4}}', Slot), Rejected)


@pytest.mark.parametrize("value", ["[ROOM]", "<room>", "{name}"])
def test_a_part_of_the_name_of_the_field_in_brackets_is_no_value(value: str) -> None:
    class Plan(BaseModel):
        room_name: str
        seats: int

    assert isinstance(read(json.dumps({"room_name": value, "seats": 4}), Plan), Rejected)
    assert read('{"room_name": "[A]", "seats": 4}', Plan)


def test_a_comment_next_to_empty_fields_is_not_dropped() -> None:
    schema = {"type": "object", "properties": {"plan": {"type": "array"}}, "additionalProperties": False}
    assert isinstance(read('{"plan": [], "reason": "The deadline is missing."}', schema), Rejected)
    assert read('{"plan": [1], "reason": "It is due on Monday."}', schema)


class Order(BaseModel):
    items: list[Slot]


ORDERED = '{"items": [{"room": "A", "seats": 4}, {"room": "B", "seats": 5}]}'


@pytest.mark.parametrize(
    "remark",
    ["The seats of B should be 6.", "The second seats were unclear.", "The room of the second is hard to read."],
)
def test_a_remark_about_a_field_of_several_items_rejects_the_reply(remark: str) -> None:
    refused(f"{ORDERED}\n\n{remark}", Order)


@pytest.mark.parametrize("words", ["Each room is from the second column.", "- room: its letter\n- seats: 4 and 5"])
def test_an_explanation_of_the_fields_of_several_items_is_harmless(words: str) -> None:
    value(f"{ORDERED}\n\n{words}", Order)


@pytest.mark.parametrize(
    "comment",
    ["I made this up", "hallucinated", "from memory", "to be confirmed", "TBC", "unverified", "could not find this"],
)
def test_a_comment_that_calls_its_value_made_up_or_unchecked_rejects_the_answer(comment: str) -> None:
    refused(f'{{"number": "LH 12", "status": "delayed" // {comment}\n}}')
    assert value('{"number": "LH 12", "status": "delayed" // confirmed by the crew\n}')["status"] == "delayed"


class Stay(BaseModel):
    room: int
    minutes: int = 0
    weight_lb: float = 0
    usd: float = 0


@pytest.mark.parametrize("key", ["hours", "seconds", "kg", "eur"])
def test_a_key_that_is_only_another_unit_of_an_empty_field_rejects_the_answer(key: str) -> None:
    assert isinstance(read(f'{{"room": 7, "{key}": 2}}', Stay), Rejected)
    assert isinstance(read('{"room": 7, "year": 2026, "page": 3}', Stay), Accepted)
