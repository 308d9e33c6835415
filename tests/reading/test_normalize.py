"""`normalize_json_text` and `parse_and_validate`: `read` under the names of the specification."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flujo_aros import OutputError, normalize_json_text, parse_and_validate, read

SCHEMA = {"type": "object", "required": ["age"], "properties": {"age": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('Sure!\n```json\n{"age": 3}\n```\n', '{"age": 3}'),
        ("{“age”: 3}", '{"age": 3}'),
        ("{'age': 3,}", '{"age": 3}'),
        ('{"age": 1} no: {"age": 3}', '{"age": 3}'),
        ("[True, None]", "[true, null]"),
        (' {"age":  3.10} ', '{"age":  3.10}'),
        ('```json\n"caf\\u00e9"\n```', '"café"'),
        ("no JSON here\n", "no JSON here"),
        ('{"age": ', '{"age":'),
    ],
)
def test_wrapping_and_damage_around_json_are_removed(text: str, expected: str) -> None:
    assert normalize_json_text(text) == expected


@given(st.text())
def test_normalizing_never_raises_and_leaves_normal_text_unchanged(text: str) -> None:
    once = normalize_json_text(text)
    assert normalize_json_text(once) == once


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text("abc é"), st.lists))
@example("a ")
@example("12")
def test_valid_json_keeps_its_meaning(value: object) -> None:
    assert json.loads(normalize_json_text(f"```json\n{json.dumps(value)}\n```")) == value


def test_parsing_gives_the_value_that_read_gives() -> None:
    assert parse_and_validate("{'age': '3'}", SCHEMA) == read("{'age': '3'}", SCHEMA).value == {"age": 3}
    assert parse_and_validate("{'age': '3'}") == {"age": "3"}


def test_parsing_raises_the_reason_if_there_is_no_value() -> None:
    with pytest.raises(OutputError, match="age") as caught:
        parse_and_validate('{"name": "Ada"}', SCHEMA)
    assert caught.value.issues
