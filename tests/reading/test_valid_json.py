"""Valid JSON that satisfies a schema is returned unchanged and is CLEAN, whatever its keys."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from flujo_aros import Accepted, Rejected, Trust, read

TEXT = {"type": "string"}
FORMS: dict[str, Any] = {
    "type": "object",
    "properties": {"$schema": TEXT, "$version": {"type": "integer"}},
    "patternProperties": {"^[a-z][a-zA-Z0-9]+$": {"type": "object", "properties": {"width": {"type": "integer"}}}},
    "additionalProperties": False,
}
SETTINGS: dict[str, Any] = {
    "type": "object",
    "properties": {"user": TEXT, "workers": {"type": "integer"}, "log_file": TEXT},
}

STAYS: dict[str, tuple[dict[str, Any], Any]] = {
    "keys with a space at their ends": (SETTINGS, {"user ": 1, " workers": "four", "log_file": "a.log"}),
    "a key in another case": (SETTINGS, {"User": "alma", "logFile": "a.log"}),
    "a key in another case below the root": (
        {"type": "array", "items": SETTINGS},
        [{"user": "alma", "LogFile": 5}, {"workers": 2}],
    ),
    "a key that is like a required one": (
        {"type": "object", "properties": {"_id": TEXT, "id": TEXT}, "required": ["_id"]},
        {"_id": "1", "id": "2"},
    ),
    "a key that is like a required one and not declared": (
        {"type": "object", "properties": {" position": TEXT}, "required": [" position"]},
        {" position": "left", "position": 3},
    ),
    "keys of a form where no others are allowed": (FORMS, {"$schema": "v1", "left": {"width": 3}, "right": {}}),
    "keys of a form in an alternative": (
        {"oneOf": [{"type": "object", "patternProperties": {"^x-": TEXT}, "additionalProperties": False}, TEXT]},
        {"x-one": "a", "x-two": "b"},
    ),
    "keys of a form that needs looking ahead": (
        {"type": "object", "patternProperties": {"^(?!_)": {"type": "integer"}}, "additionalProperties": False},
        {"a": 1, "b c": 2},
    ),
    "data that names its schema": (SETTINGS, {"$schema": "https://example.org/settings.json", "user": "alma"}),
    "data that names a schema, and nothing else that was asked for": (SETTINGS, {"$schema": "settings.json", "x": 1}),
    "data with properties of its own": (
        SETTINGS,
        {"$schema": "https://json-schema.org/draft-07/schema#", "properties": {"user": "alma", "workers": None}},
    ),
    "keys that conditions ask for": (
        {
            "type": "object",
            "properties": {"kind": TEXT},
            "required": ["kind"],
            "if": {"properties": {"kind": {"const": "box"}}},
            "then": {"properties": {"width": {"type": "integer"}}, "required": ["width"]},
            "dependentSchemas": {"width": {"properties": {"Kind": {"type": "integer"}}}},
        },
        {"kind": "box", "width": 3, "Kind": 1},
    ),
    "keys of all the parts of a schema": (
        {
            "allOf": [{"$ref": "#/$defs/a"}, {"properties": {"b": TEXT}}],
            "unevaluatedProperties": False,
            "$defs": {"a": {"properties": {"a": TEXT}}},
        },
        {"a": "x", "b": "y"},
    ),
}


@pytest.mark.parametrize("text", ["{}", "Here you are:\n```json\n{}\n```"], ids=["bare", "in a fence"])
@pytest.mark.parametrize("name", STAYS)
def test_valid_json_stays_as_it_is(name: str, text: str) -> None:
    schema, value = STAYS[name]
    outcome = read(text.replace("{}", json.dumps(value)), schema)
    assert isinstance(outcome, Accepted), outcome.explain()
    assert outcome.value == value
    assert outcome.trust is (Trust.CLEAN if text == "{}" else Trust.LOSSLESS)


def test_keys_stay_where_a_backslash_calls_for_a_closer_look() -> None:
    value = {"User": "alma", "log_file": "C:\\notes", "tex": "a \\not b"}
    outcome = read(json.dumps(value), SETTINGS)
    assert outcome.value == value
    assert not outcome.repairs


def test_keys_are_renamed_where_a_required_one_is_missing() -> None:
    """Otherwise the object would not satisfy the schema, and something would be lost."""
    schema = {**SETTINGS, "required": ["user"]}
    outcome = read('{"User": "alma", "logFile": "a.log"}', schema)
    assert outcome.value == {"user": "alma", "log_file": "a.log"}
    assert {repair.code for repair in outcome.repairs} == {"near_miss_key"}


def test_the_values_of_keys_of_a_form_are_read_as_the_form_wants_them() -> None:
    outcome = read('{"$version": 2, "left": {"width": "3"}, "right": {"width": 4,}}', FORMS)
    assert outcome.value == {"$version": 2, "left": {"width": 3}, "right": {"width": 4}}


def test_a_key_of_no_form_is_named_where_no_others_are_allowed() -> None:
    outcome = read('{"left": {"width": "3"}, "NEW": {}}', FORMS)
    assert isinstance(outcome, Rejected)
    assert outcome.issues[0].path == "$.NEW"


def test_the_frame_of_a_schema_around_the_answer_is_taken_off() -> None:
    outcome = read('{"type": "object", "properties": {"user": "alma", "workers": 4}}', SETTINGS)
    assert outcome.value == {"user": "alma", "workers": 4}


def test_a_schema_in_place_of_an_answer_is_not_an_answer_even_if_any_keys_are_allowed() -> None:
    outcome = read(json.dumps(SETTINGS), SETTINGS)
    assert isinstance(outcome, Rejected)
    assert outcome.reason.value == "echoed_schema"


def test_an_alias_is_read_as_the_real_name_where_any_keys_are_allowed() -> None:
    schema = {"type": "object", "properties": {"count": {"type": "integer", "x-aros": {"aliases": ["qty"]}}}}
    outcome = read('[{"qty": 5}]', {"type": "array", "items": schema})
    assert outcome.value == [{"count": 5}]
    assert [repair.code for repair in outcome.repairs] == ["alias"]


class Note(BaseModel):
    text: str
    pages: int = 1


def test_a_value_with_dropped_keys_is_never_clean() -> None:
    """The reader reports a key that pydantic would drop silently, or finds the intended field."""
    outcome = read('{"text": "a", "Pages": 3}', Note)
    assert outcome.value == Note(text="a", pages=3)
    assert [repair.code for repair in outcome.repairs] == ["near_miss_key"]
    assert read('{"text": "a", "colour": "red"}', Note).repairs


def test_a_subschema_without_a_type_keeps_the_type_of_the_schema() -> None:
    pair = {"prefixItems": [{"type": "integer"}, {"type": "boolean"}]}
    for schema in ({"type": "array", **pair, "allOf": [{"minItems": 2}]}, {"type": "array", "allOf": [pair]}):
        assert read('["3", "true"]', schema).value == [3, True], schema


AROUND = [
    "```json\n{}\n```",
    "````\n{}\n````",
    "```{}```",
    "\ufeff{}",
    "`{}`",
    "**{}**",
    "# {}",
    "<answer>\n```\n{}\n```\n</answer>",
]
SCALARS = ["12", "12 ", " a", "", "true", "null", "it's", "{", "<think>x</think>", 12, 1.0, -0.0, 10**22, True, None]


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize(
    "contract", [{}, str | None, int | str, bool | int, int | float, Literal[1, "12", "12 "]], ids=str
)
def test_a_scalar_keeps_its_type_and_its_blanks_in_a_harmless_wrapper(contract: Any, around: str) -> None:
    for value in SCALARS:
        bare = read(json.dumps(value), contract)
        if isinstance(bare, Accepted) and bare.trust is Trust.CLEAN:
            wrapped = read(around.replace("{}", json.dumps(value), 1), contract)
            assert repr(wrapped.value) == repr(bare.value), (value, wrapped)


@pytest.mark.parametrize(
    ("text", "value"), [("'12'", "12"), ("“12 ”", "12 "), ('"12".', "12"), ("'True'", "True"), ("`12`", 12), ("''", "")]
)
def test_a_quoted_text_is_a_string_where_any_json_is_accepted(text: str, value: object) -> None:
    assert read(text, {}).value == value


@pytest.mark.parametrize(
    "text", ["# Title\n\nBody", "**a** and **b**", '"a" or "b"', "'a', 'b'", "<answer>a</answer><answer>b</answer>"]
)
def test_marks_around_parts_of_a_text_belong_to_it(text: str) -> None:
    assert read(text, str | None).value == text


def test_reasoning_removed_from_the_middle_of_a_text_is_reported() -> None:
    assert [repair.code for repair in read("Hello <think>hm</think> world", str | None).repairs] == ["reasoning"]


def test_a_digit_is_a_number_before_it_is_a_truth_value() -> None:
    assert isinstance(read("- 0", bool | int), Rejected)
    assert repr(read("'0'", bool | int).value) == "0"


def test_a_map_of_strings_keeps_the_json_in_its_only_string() -> None:
    assert read("""{'k': '{"a": 1}'}""", dict[str, str]).value == {"k": '{"a": 1}'}


def test_a_point_behind_a_long_number_costs_no_digits() -> None:
    assert read("12345678901234567890123.", int | None).value == 12345678901234567890123
