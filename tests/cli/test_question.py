"""The question of a paused run, and an example of an accepted answer."""

from __future__ import annotations

import io
import json
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from flujo_aros import Human, Runner
from flujo_aros.cli.execute import answer_words, ask, example_answer
from flujo_aros.contract import Invalid, compile_contract


class Line(BaseModel):
    what: str = Field(description="As it stands\n on the slip", min_length=2)
    price: float = Field(gt=0)


class Order(BaseModel):
    kind: Literal["new", "again"]
    lines: list[Line] = Field(min_length=2)
    to: Line | None = None
    fast: bool = False


def test_an_object_is_described_field_by_field_without_json_schema() -> None:
    assert answer_words(Order.model_json_schema()) == [
        "answer with an object:",
        '  kind     "new" or "again", required',
        "  lines    a list, each an object, at least 2 elements, required",
        "    what   a string, at least 2 characters, required: As it stands on the slip",
        "    price  a number, above 0, required",
        "  to       an object or null",
        "    what   a string, at least 2 characters, required: As it stands on the slip",
        "    price  a number, above 0, required",
        "  fast     true or false, false if left out",
    ]


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"enum": ["yes", "no"]}, "yes or no"),
        ({"enum": ["a", "b", 3]}, "a, b or 3"),
        ({"const": "stop"}, "stop"),
        ({"type": "boolean"}, "true or false"),
        ({"type": "integer", "minimum": 1, "maximum": 5}, "a whole number, at least 1, at most 5"),
        ({"type": "number", "maximum": 5}, "a number, at most 5"),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, "a number, above 0, below 1"),
        ({"type": "number", "minimum": 1, "exclusiveMaximum": 9}, "a number, at least 1, below 9"),
        ({"type": "string", "minLength": 3, "maxLength": 3}, "a string, at least 3 characters, at most 3 characters"),
        ({"type": "string", "pattern": "^[0-9]+$"}, "a string, matching ^[0-9]+$"),
        ({"type": "string", "format": "date"}, "a date such as 2026-01-31"),
        ({"type": "array", "items": {"type": "string"}, "maxItems": 2}, "a list, each a string, at most 2 elements"),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, 'a list, each "a" or "b"'),
        ({"type": ["string", "null"]}, "a string or null"),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "a whole number or a string"),
        ({"not": {"type": "string"}}, "any JSON value"),
    ],
)
def test_a_value_that_is_not_an_object_is_described_on_one_line(schema: dict[str, Any], words: str) -> None:
    assert answer_words(schema) == [f"answer with {words}"]


@pytest.mark.parametrize(
    "schema",
    [
        Order.model_json_schema(),
        {"enum": ["yes", "no"]},
        {"type": "integer", "minimum": 7},
        {"type": "object", "properties": {"a": {"type": "string", "minLength": 9}}, "required": ["a"]},
        {"type": "string", "format": "date"},
        {"$defs": {"N": {"type": "object", "properties": {"next": {"$ref": "#/$defs/N"}}}}, "$ref": "#/$defs/N"},
        {"anyOf": [{"type": "array", "items": {"$ref": "#"}}, {"type": "null"}]},
    ],
)
def test_an_example_is_one_that_is_taken(schema: dict[str, Any]) -> None:
    example = example_answer(schema)
    assert example is not None
    contract = compile_contract(schema)
    assert any(not isinstance(contract.validate(each), Invalid) for each in (example, _loaded(example)))


def _loaded(example: str) -> Any:
    try:
        return json.loads(example)
    except ValueError:
        return example


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "string"},
        {
            "type": "object",
            "properties": {"a": {"pattern": "^[A-Z]{9}$"}},
            "required": ["a"],
            "additionalProperties": {"type": "integer"},
            "minProperties": 3,
        },
        {"type": "array", "items": {"$ref": "#"}, "minItems": 1},
        {"type": "array", "minItems": 10**9},
        {"type": "string", "format": "date", "minLength": 10**9},
    ],
)
def test_no_example_is_better_than_an_empty_or_rejected_one(schema: dict[str, Any]) -> None:
    assert example_answer(schema) is None


def test_a_recursive_schema_is_described_to_a_limited_depth() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/N"}}}
    assert len(answer_words({"$defs": {"N": node}, "$ref": "#/$defs/N"})) < 8


def test_endlessly_nested_lists_are_described_to_a_limited_depth() -> None:
    (line,) = answer_words({"type": "array", "items": {"$ref": "#"}})
    assert line == "answer with a list, each a list, each a list, each a list, each any JSON value"


def test_a_short_answer_with_an_object_lists_its_fields() -> None:
    decision = {"type": "object", "properties": {"approve": {"type": "boolean"}}, "required": ["approve"]}
    assert answer_words({"anyOf": [{"enum": ["approve", "deny"]}, decision]}) == [
        "answer with approve or deny, or an object:",
        "  approve  true or false, required",
    ]


DECISION = {
    "type": "object",
    "required": ["ok", "days", "how"],
    "properties": {
        "ok": {"type": "boolean"},
        "days": {"type": "integer", "minimum": 1},
        "how": {"enum": ["post", "van"]},
        "comment": {"type": "string"},
    },
}


@pytest.mark.parametrize(
    ("typed", "answer", "refused"),
    [
        ("perhaps\ny\n0\n3\nvan\n\n", {"ok": True, "days": 3, "how": "van"}, 2),
        ("no\n3\n\ntrain\npost\nsoon\n", {"ok": False, "days": 3, "how": "post", "comment": "soon"}, 1),
        ('{"ok": true, "days": 1, "how": "van"}\n', {"ok": True, "days": 1, "how": "van"}, 0),
        ("y\n3\n", None, 0),
    ],
)
def test_an_object_of_plain_fields_is_requested_field_by_field(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    typed: str,
    answer: dict[str, Any] | None,
    refused: int,
) -> None:
    paused = Runner(Human("decide", "Deliver?", input_schema=DECISION)).run_sync().paused
    assert paused is not None
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    given = ask(paused)
    assert (None if given is None else json.loads(given)) == answer
    assert capsys.readouterr().err.count("expected ") == refused
