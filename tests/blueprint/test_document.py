"""Parsing YAML into a tree with positions: YAML 1.2 rules, size limits, and errors with line and column."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flujo_aros import BlueprintError
from flujo_aros.blueprint.document import parse_document


def plain(text: str) -> Any:
    return parse_document(text, "t.yaml").plain()


def findings(text: str) -> str:
    with pytest.raises(BlueprintError) as caught:
        parse_document(text, "t.yaml")
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("12", 12),
        ("-0x1f", "-0x1f"),
        ("0x1f", 31),
        ("0o17", 15),
        ("012", 12),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("1_000", "1_000"),
        ("12:30:45", "12:30:45"),
        ("2026-01-02", "2026-01-02"),
        ("'true'", "true"),
        ("=", "="),
        ("!!str 12", "12"),
    ],
)
def test_plain_scalars_are_those_of_yaml_1_2(text: str, value: Any):
    assert plain(f"a: {text}") == {"a": value}


def test_keys_are_text_as_they_are_written():
    assert plain("on: 1\nyes: 2\ntrue: 3\n4: 4\nnull: 5") == {"on": 1, "yes": 2, "true": 3, "4": 4, "null": 5}


def test_anchors_and_merge_keys_work():
    text = "base: &b {x: 1, y: 2}\nuse: {<<: *b, y: 3}\nmany: {<<: [*b, {z: 4}]}\nsame: *b"
    assert plain(text) == {
        "base": {"x": 1, "y": 2},
        "use": {"x": 1, "y": 3},
        "many": {"x": 1, "y": 2, "z": 4},
        "same": {"x": 1, "y": 2},
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "t.yaml: the file is empty"),
        ("a: 1\nb: 2\na: 3", "t.yaml:3:1: duplicate key 'a'; it is already defined on line 1"),
        ("a:\n  b: {c: 1, c: 2}", "t.yaml:2:13: duplicate key 'c'; it is already defined on line 2"),
        ("a: !!python/name:os.system", "t.yaml:1:4: the tag 'tag:yaml.org,2002:python/name:os.system' is not allowed"),
        ("a: !env HOME", "t.yaml:1:4: the tag '!env' is not allowed"),
        ("a: !!timestamp 2026-01-01", "t.yaml:1:4: the tag 'tag:yaml.org,2002:timestamp' is not allowed"),
        ("? [1]\n: 2", "t.yaml:1:3: a key must be a string, not a list or a mapping"),
        ("a: .nan", "t.yaml:1:4: JSON cannot represent this float: .nan"),
        ("a: " + "9" * 2000, "t.yaml:1:4: JSON cannot represent this int: " + "9" * 40),
        ('a: "\\ud800"', "t.yaml:1:7: not valid YAML: this string contains a lone surrogate (half of a character)"),
        ("a: \x07", "t.yaml:1:4: YAML does not allow this control character"),
        (
            "a: [1",
            "t.yaml:1:4: not valid YAML: this bracket is never closed",
        ),
        ("a: *b", "t.yaml:1:4: not valid YAML: there is no anchor `&b` above"),
        ("a: 1\n---\nb: 2", "t.yaml:2:1: not valid YAML: a second document begins here"),
        ("a: {<<: 3}", "t.yaml:1:9: `<<` takes a mapping or a list of mappings"),
    ],
)
def test_an_error_names_its_place(text: str, message: str):
    assert findings(text).startswith(message)


def test_all_errors_are_reported_at_once():
    assert len(findings("a: 1\na: 2\nb: !x 1\nc: .inf").splitlines()) == 3


LAUGHS = "\n".join(
    [f"l0: &l0 [{', '.join('x' * 10)}]", *(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 12))]
)


@pytest.mark.parametrize(
    "text",
    [
        LAUGHS,
        "a: &a [*a]",
        "a: &a {b: *a}",
        "[" * 5000,
        "{a: " * 5000,
        "- " * 5000,
        "a: &a {<<: *a}",
        "x" * 1_000_001,
    ],
)
def test_no_document_takes_the_reader_down(text: str):
    started = time.process_time()
    with pytest.raises(BlueprintError):
        parse_document(text, "t.yaml")
    assert time.process_time() - started < 20  # a bound on hanging, not a measure


def test_a_node_knows_its_place_and_those_of_its_keys():
    root = parse_document("steps:\n  - name: a\n    uses: b\n", "t.yaml")
    value, key = root.at(["steps", 0, "uses"]), root.key_at(["steps", 0, "uses"])
    assert [(place.line, place.column, place.path) for place in (value, key)] == [
        (3, 11, "steps[0].uses"),
        (3, 5, "steps[0].uses"),
    ]
    assert root.at(["steps", 0, "missing"]).line == 2


@given(st.text(alphabet="ab:-[]{}&*!<>|'\"#\n ,?%@`~1.", max_size=80))
def test_any_text_parses_or_is_a_blueprint_error(text: str):
    try:
        parse_document(text, "t.yaml")
    except BlueprintError as error:
        assert str(error)
