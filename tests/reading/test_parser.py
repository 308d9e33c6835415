"""The invariants of the parser: it agrees with the C parsers that replace it on valid JSON, and takes no shortcuts."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from flujo_aros import Accepted, Rejected, Risk, read
from flujo_aros.contract import Output, path_of
from flujo_aros.reading import grammar
from flujo_aros.reading.candidate import Candidate, iter_splices, read_scalars
from flujo_aros.reading.coerce import Coercion
from flujo_aros.reading.fit import AS_IS, fit
from flujo_aros.reading.grammar import Ahead, NeedMoreInput
from flujo_aros.reading.node import ARRAY, NUMBER, OBJECT, Node, Scanned, Source, json_extent, scan, steps_to
from flujo_aros.reading.parser import Parsed, Parser

VALUE: dict[str, Any] = {
    "name": "Ada Lovelace",
    "lines": [{"sku": f"A-{at}", "what": f"a thing, no. {at}", "count": at, "tags": ["new", "red"]} for at in range(6)],
    "place": {"city": "Oslo", "street": "Main, 3", "open": True},
    "note": "ring twice",
    "total": 12.5,
}


class Line(BaseModel):
    sku: str
    what: str
    count: int
    tags: list[str]


class Place(BaseModel):
    city: str
    street: str
    open: bool


class Order(BaseModel):
    name: str
    lines: list[Line]
    place: Place
    note: str
    total: float


CONTRACT = Output.json(Order)
SHAPE = CONTRACT.shape
DAMAGES: dict[str, tuple[str, str]] = {
    "a missing comma": (r"(?<=[\"\]}\d]),(?=\n)", ""),
    "a comma too much": (r"(?<=[\"\]}\d]),(?=\n)", ",,"),
    "a trailing comma": (r"(?<=[\"\]}\d])(?=\n *[}\]])", ","),
    "a missing colon": (r": ", " "),
    "a missing quote": (r'",(?=\n)', ","),
    "an inner quote": (r"(?<=a )thing", '"thing"'),
    "a raw line break": (r"(?<=a )thing", "\nthing"),
    "an escape that is none": (r"(?<=a )thing", r"\\ thing"),
    "a bare key": (r'"(\w+)"(?=:)', r"\1"),
    "single quotes": (r'"([^"\n]+)"', r"'\1'"),
    "a comment": (r",(?=\n)", ", // so far"),
    "a foreign word": (r"true", "True"),
}


def damaged(name: str, value: Any = VALUE) -> list[str]:
    """Yield the text of a value, damaged once at each possible place."""
    text = json.dumps(value, indent=1)
    pattern, instead = DAMAGES[name]
    return [text[: m.start()] + m.expand(instead) + text[m.end() :] for m in re.finditer(pattern, text)]


# --- repairs where the damage is --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DAMAGES)
def test_a_local_repair_equals_the_repair_of_the_full_parser(name: str) -> None:
    repaired = 0
    for text in damaged(name):
        parsed = Parser(text, 0, SHAPE).parse()
        for found in iter_splices(text, 0, json_extent(text, 0), SHAPE, ends=False):
            if CONTRACT.values.strict(json.loads(found.json)) is None:
                continue
            repaired += 1
            assert isinstance(parsed, Parsed)
            assert json.loads(found.json) == parsed.plain
            assert found.end == parsed.end
            assert [(edit[:5], edit.path) for edit in found.edits] == [
                (edit[:5], path_of(steps_to(parsed.node, edit.start, {}, {}))) for edit in parsed.edits
            ]
    assert repaired >= 1


@pytest.mark.parametrize("name", DAMAGES)
def test_one_damaged_place_is_repaired_or_rejected(name: str) -> None:
    outcomes = [read(text, Order) for text in damaged(name)]
    values = [outcome.value.model_dump() for outcome in outcomes if isinstance(outcome, Accepted)]
    plain = [{**value, "lines": [{**line, "what": _tidy(line["what"])} for line in value["lines"]]} for value in values]
    assert plain == [VALUE] * len(values)
    assert len(values) > 0.8 * len(outcomes)


def test_a_doubled_quote_behind_a_word_and_a_number_means_inches() -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}, "price": {"type": "number"}}}
    for text in ('{"name": "Monitor 27"", "price": 9}', '{"price": 9, "name": "Monitor 27""}'):
        assert read(text, schema).value == {"name": 'Monitor 27"', "price": 9}
    assert isinstance(read('{"name": "27"", "price": 9}', schema), Rejected)


CODE_IN_STRINGS = ['if (a) { return "x"; }', 'f("%d", x); }', 'a "b"}', 'x{y "z"}']


@pytest.mark.parametrize("code", CODE_IN_STRINGS)
@pytest.mark.parametrize("indent", [None, 1])
def test_a_quote_behind_a_brace_of_code_ends_the_string(code: str, indent: int | None) -> None:
    value = [line | {"what": code} for line in VALUE["lines"]]
    text = json.dumps(value, indent=indent).replace(json.dumps(code), f'"{code}"')
    assert read(text, list[Line]).value == [Line.model_validate(line) for line in value]


@pytest.mark.parametrize(
    "member", ["'note': \"tea,\n", "'note': \"tea\n", "'tags': [\"tea\n],\n", "'inner': {'a': \"tea\n},\n"]
)
def test_a_string_whose_quote_never_comes_ends_with_its_line_before_the_next_key(member: str) -> None:
    value = read(f"{{{member} 'qty': 2}}", {"type": "object", "properties": {"qty": {"type": "integer"}}}).value
    assert value["qty"] == 2
    assert "tea" in str(value)
    assert isinstance(read("{'note': \"tea, 'qty': 2}", {}), Rejected)


def _tidy(text: str) -> str:
    return text.replace('"', "").replace("\n", "").replace("\\ ", "")


def test_two_places_far_from_each_other_are_repaired_one_after_the_other() -> None:
    text = damaged("a missing comma")[1]
    at = text.index('"note"')
    text = f"{text[:at]}note{text[at + 6 :]}"
    outcome = read(text, Order)
    assert isinstance(outcome, Accepted)
    assert outcome.value == Order.model_validate(VALUE)
    assert [repair.code for repair in outcome.repairs] == ["missing-comma", "unquoted-key"]
    assert [text[slice(*repair.span)] for repair in outcome.repairs] == ["", "note"]
    assert outcome.repairs[1].path == "$.note"


def test_local_repairs_respect_the_allowed_risk() -> None:
    (text, *_) = damaged("a missing comma")
    assert isinstance(read(text, Order, risk=Risk.LOSSLESS), Rejected)
    (text, *_) = damaged("a trailing comma")
    assert isinstance(read(text, Order, risk=Risk.LOSSLESS), Accepted)


def test_keys_that_an_open_schema_does_not_name_are_looked_at_though_one_place_is_repaired() -> None:
    schema = {"type": "object", "properties": {"unit_price": {"type": "number"}, "sku": {"type": "string"}}}
    outcome = read('{"UnitPrice": 3, "sku": "a" "more": 1}', {**schema, "required": ["unit_price"]})
    assert outcome.value == {"unit_price": 3, "sku": "a", "more": 1}


def test_a_control_character_after_a_colon_is_not_a_path() -> None:
    text = json.dumps(VALUE).replace("ring twice", "ring:\ntwice")
    assert read(text.replace("ring:\\ntwice", "ring:\ntwice"), Order).value.note == "ring:\ntwice"


def test_a_bracket_that_may_belong_elsewhere_is_not_taken_for_certain() -> None:
    """Next to several lists, it is unknown which one the missing bracket closes."""
    schema = {"type": "object", "properties": {"a": {}, "b": {"type": "integer"}}, "required": ["a", "b"]}
    outcome = read('{"a": [[1, 2], [3, 4, 5], "b": 2}', schema)
    assert not isinstance(outcome, Accepted) or outcome.value["a"] in ([[1, 2], [3, 4, 5]], [[1, 2], [3, 4], 5])


# --- containers that the C scanner reads ------------------------------------------------------------------------------


def test_nodes_of_valid_json_are_those_of_the_parser() -> None:
    text = json.dumps({**VALUE, "deep": [[], {}, [1, [2.5, "x\\n", None]], {"é": "\u00fc\n"}]}, indent=2)
    whole = scan(Source(text), 0, 200)
    assert isinstance(whole, Scanned)
    assert whole.plain == json.loads(text)
    assert _spelled(whole) == _spelled(_by_hand(text))


def _by_hand(text: str) -> Node:
    parsed = Parser(text, 0, max_depth=100).parse()  # so few levels only the parser itself counts
    assert isinstance(parsed, Parsed)
    return parsed.node


def _spelled(node: Node) -> Any:
    inner = node.value
    if node.kind == OBJECT:
        inner = [(member.key, member.start, _spelled(member.node)) for member in node.value]
    elif node.kind == ARRAY:
        inner = [_spelled(item) for item in node.value]
    return node.kind, inner, node.start, node.end


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"a": 1, "a": 2}', "a key occurs twice"),
        ('{"a": 1e999}', "a number is not finite"),
        ('{"a": NaN}', "a word is not a number"),
        ('{"a": "C:\\new"}', "a backslash may be meant as written"),
        ('{"a": "\\nabla f"}', "a backslash may begin a command"),
        ('{"a": "\\ud83d"}', "half of a character"),
        ("[" * 9 + "]" * 9, "too many levels"),
        (f'{{"a": {"1" * 4_100}}}', "too many digits"),
        ('{"a": 1', "it does not end"),
    ],
)
def test_text_that_may_not_be_plain_json_is_left_to_the_parser(text: str, why: str) -> None:
    assert not isinstance(scan(Source(text), 0, 8), Scanned), why


def test_a_duplicate_key_in_an_intact_container_is_detected_in_a_damaged_reply() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "object"}, "b": {"type": "integer"}}}
    assert isinstance(read('{"a": {"k": 1, "k": 2}, "b": 1,, "c": [1 2]}', schema), Rejected)


def test_a_closer_in_a_string_does_not_end_the_container_around() -> None:
    outcome = read('{"a": {"code": "x = {"y"}; z"}, "b": 1}', {})
    assert not isinstance(outcome, Accepted) or outcome.value == {"a": {"code": 'x = {"y"}; z'}, "b": 1}


def test_a_container_does_not_end_if_the_text_after_it_does_not_fit() -> None:
    outcome = read('{"a": {"n": "tea"}p;"}}', {})
    assert outcome.value == {"a": {"n": 'tea"}p;'}}


def test_a_key_of_the_object_around_ends_an_object_that_was_not_closed() -> None:
    text = json.dumps(VALUE).replace("true}", "true")
    outcome = read(text, Order)
    assert isinstance(outcome, Accepted)
    assert outcome.value == Order.model_validate(VALUE)
    assert [repair.code for repair in outcome.repairs] == ["missing-closer"]


def test_members_after_an_early_closer_belong_to_the_object() -> None:
    outcome = read('{"sku": "a", "what": "b", "count": "3"}, "tags": []}', Line)
    assert isinstance(outcome, Accepted)
    assert [repair.code for repair in outcome.repairs] == ["early-closer", "string-to-number"]


# --- what stays refused, and what is never taken for plain ------------------------------------------------------------

COUNT: dict[str, Any] = {"type": "integer", "x-aros": {"aliases": ["qty"]}}
COUNTED: dict[str, Any] = {"type": "object", "properties": {"count": COUNT}}
PAIR: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {}, "b": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}


def test_a_closer_that_fits_no_container_is_not_made_to_fit() -> None:
    assert isinstance(read("[[1, 2}", {}, truncated=False), Rejected)


def test_an_alias_is_renamed_where_its_value_takes_a_closer_look() -> None:
    assert read('{"qty": NumberLong(5)}', COUNTED).value == {"count": 5}


def test_a_reply_that_ends_after_a_comma_lacks_the_remaining_fields() -> None:
    assert isinstance(read('{"a": 1,', PAIR, truncated=False), Rejected)
    assert read('{"a": 1, "b": 2,', PAIR, truncated=False).value == {"a": 1, "b": 2}


def test_a_sentence_is_not_a_bare_key() -> None:
    assert isinstance(read("{one two three four five six: 1, b: 2}", {}), Rejected)
    assert read("{one two: 1, b: 2}", {}).value == {"one two": 1, "b": 2}


@pytest.mark.parametrize(
    "text", ["{'a': ['red'\ntrue] // b\n}", "{a: “red”, b: `x`}", "{a: 12 b = 3}", "{a: [true], b: undefined c: 1}"]
)
def test_a_value_does_not_absorb_the_next_one(text: str) -> None:
    outcome = read(text, {})
    assert isinstance(outcome, Rejected) or len(outcome.value) > 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"ref#" # the number\n: 1}', {"ref#": 1}),
        ("{'b': 'key: v, o: 2', 'it\\'s': 0}", {"b": "key: v, o: 2", "it's": 0}),
        ("[0 “red, green”]", [0, "red, green"]),
        ("{'a': '', 'b' /* so */: 'c', '': 1}", {"a": "", "b": "c", "": 1}),
    ],
)
def test_a_key_or_string_in_other_quotes_is_whole(text: str, value: Any) -> None:
    outcome = read(text, {})
    assert isinstance(outcome, Accepted)
    assert outcome.value == value


def test_a_duplicate_key_at_a_damaged_place_is_rejected() -> None:
    assert isinstance(read('{"city": "Oslo", "street": "Main" "street": "Side", "open": true}', Place), Rejected)


def test_lists_next_to_other_items_before_a_missing_closer_are_rejected() -> None:
    assert isinstance(read('{"a": [[1, 2], [3, 4], 5, "b": 2}', PAIR), Rejected)


# --- what coercion leaves as it is ------------------------------------------------------------------------------------

MIXED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "either": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]},
        "word": {"enum": ["low", "high", 3]},
        "day": {"type": "string", "format": "date"},
        "many": {"type": "array", "items": {"type": "number"}},
        "pairs": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
        "free": {},
        "part": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    },
}
SAMPLES: list[Any] = [
    *("low", "", "N/A", "none", "3", "yes", "2026-11-22", "11/22/26", 3, 3.0, 2.5, True, None, [], {}, [1, 2.5], [[1]]),
    *([[1], [2]], [["1"]], {"n": 1}, {"n": "1"}, {"N": 1}, {"m": 1}, ["a"], [1, [2]], {"free": [1, "x", None]}),
]


def test_an_unchanged_value_has_no_edits_and_no_issues() -> None:
    """What `fit` leaves unchanged equals the result of coercion."""
    shape, rng, stays = Output.json(MIXED).shape, random.Random(4), 0  # noqa: S311
    for _ in range(4_000):
        names = rng.sample(list(MIXED["properties"]), rng.randrange(1, 4))
        value = {name: rng.choice(SAMPLES) for name in names}
        text = json.dumps([value])
        node = scan(Source(text), 0, 200)
        assert isinstance(node, Scanned)
        coercion = Coercion(text, ceiling=Risk.LOSSY)
        coerced = coercion.value(_by_hand(text).value[0], shape, (None, 0))
        if fit(value, shape) == AS_IS:
            stays += 1
            assert (coerced, coercion.edits, coercion.issues) == (value, [], [])
    assert stays > 200


def test_a_scalar_where_it_belongs_stays() -> None:
    shape = Output.json(MIXED).shape
    values: tuple[dict[str, Any], ...] = (
        {"text": "a"},
        {"maybe": None},
        {"either": True},
        {"word": "low"},
        {"many": [1, 2.5]},
        {"free": [{}]},
    )
    for value in values:
        assert fit(value, shape) == AS_IS, value


NESTED: dict[str, Any] = {**MIXED, "properties": {**MIXED["properties"], "rows": {"type": "array", "items": MIXED}}}


def test_converting_scalars_in_place_equals_a_full_coercion() -> None:
    contract, rng, converted = Output.json(NESTED), random.Random(6), 0  # noqa: S311
    for _ in range(6_000):
        value = _some_of_mixed(rng) | {"rows": [_some_of_mixed(rng) for _ in range(rng.randrange(3))]}
        text = json.dumps(value, indent=rng.choice((None, 1)))
        quick = Candidate[Any](0, len(text), 0)
        if not read_scalars(quick, text, contract, Risk.INFERRED):
            assert (quick.valid, quick.edits, quick.draft) == (None, [], None)
            continue
        converted += 1
        coercion = Coercion(text, ceiling=Risk.INFERRED, drops=False)
        coerced = coercion.value(_by_hand(text), contract.shape, None)
        assert coercion.issues == []
        assert (quick.valid and quick.valid.value, quick.edits) == (coerced, coercion.edits)
    assert converted > 400


def _some_of_mixed(rng: random.Random) -> dict[str, Any]:
    names = rng.sample(list(MIXED["properties"]), rng.randrange(1, 4))
    return {name: rng.choice(SAMPLES) if rng.random() < 0.4 else FITTING[name] for name in names}


FITTING: dict[str, Any] = {
    "text": "a",
    "maybe": "b",
    "either": 1,
    "word": "low",
    "day": "2026-11-22",
    "many": [1.5],
    "pairs": [[1]],
    "free": None,
    "part": {"n": 3},
}


@pytest.mark.parametrize(
    "text",
    [
        '{"text": 5, "many": ["1", "2"], "surprise": 1}',
        '{"text": 5, "part": {"m": 1}}',
        '{"text": 5, "text": 6}',
        '{"text": 5, "free": ["one", "..."]}',
        r'{"text": 5, "maybe": "C:\new"}',
        '{"either": "perhaps"}',
        '{"many": 1.5}',
        '{"word": "3", "free": ' + "9" * 5_000 + "}",
        '[{"text": 5}]',
        '{"text": 5,}',
    ],
)
def test_anything_beyond_scalar_conversion_is_left_to_a_full_coercion(text: str) -> None:
    candidate = Candidate[Any](0, len(text), 0)
    assert not read_scalars(candidate, text, Output.json(MIXED), Risk.INFERRED)
    assert candidate.valid is None


def test_a_converted_scalar_is_a_repair_at_its_place() -> None:
    text = json.dumps({**VALUE, "total": "12.5"}, indent=1)
    for around in (text, f"Here it is:\n```json\n{text}\n```\n"):
        outcome = read(around, Order)
        assert isinstance(outcome, Accepted)
        assert outcome.value == Order.model_validate(VALUE)
        repair = outcome.repairs[0]
        assert (repair.code, repair.path, repair.before, repair.after) == (
            "string-to-number",
            "$.total",
            '"12.5"',
            "12.5",
        )
        assert around[slice(*repair.span)] == '"12.5"'


def test_no_scalar_is_converted_above_the_risk_that_is_allowed() -> None:
    outcome = read(json.dumps({**VALUE, "total": "12.5"}), Order, risk=Risk.LOSSLESS)
    assert isinstance(outcome, Rejected)
    assert [issue.code for issue in outcome.issues] == ["risk"]


# --- texts that grow --------------------------------------------------------------------------------------------------

AHEAD: dict[str, Ahead] = {name: found for name, found in vars(grammar).items() if isinstance(found, Ahead)}
PARTS = [
    *(
        '"',
        "'",
        "“",
        "”",
        ":",
        "：",
        "=>",
        ",",
        "}",
        "]",
        "{",
        " ",
        "\n",
        "unit",
        "price",
        "12",
        "-1.5e3",
        "true",
        "//",
        "/*",
    ),
    *("*/", "#", "+", "(", "new ", "\u200b", "name:", '": ', "None"),
]


@pytest.mark.parametrize("name", AHEAD)
def test_lookahead_gives_the_same_result_however_much_text_has_arrived(name: str) -> None:
    ahead, rng, waited = AHEAD[name], random.Random(7), 0  # noqa: S311
    for _ in range(3_000):
        text = "".join(rng.choice(PARTS) for _ in range(rng.randrange(1, 9)))
        said: list[tuple[str, ...]] = []
        for end in range(len(text) + 1):
            try:
                found = ahead.match(text[:end], 0, growing=True)
            except NeedMoreInput:
                waited += 1
                assert not said, (text, end)
            else:
                said.append(("none",) if found is None else (found[0],))
        assert len(set(said)) <= 1, (text, said)
    assert waited


def test_a_number_is_not_certain_until_its_end_arrives() -> None:
    parser = Parser('{"a": 1', 0, growing=True)
    steps: list[Callable[[], object]] = [lambda: parser.resume('{"a": 1'), lambda: parser.resume('{"a": 1,')]
    assert [step() for step in steps] == [None, None]
    assert not parser.stack[0].items
    parser.resume('{"a": 1, "b": 2}')
    assert [member.node.kind for member in parser.stack[0].items][:1] == [NUMBER]


@pytest.mark.parametrize(("key", "value"), [("limit", {"city": "Oslo", "limit": 3}), ("extra", None)])
def test_only_a_declared_key_shows_where_a_string_without_its_quotes_ended(key: str, value: Any) -> None:
    """`limit` is a field; `extra` may be a word of the text before it."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}, "limit": {"type": "integer"}}}
    outcome = read(f'{{"city": "Oslo, {key}": 3}}', schema)
    assert (outcome.value if isinstance(outcome, Accepted) else None) == value


@pytest.mark.parametrize(
    ("text", "is_scanned"),
    [
        ('{"a": {"b": [1, "x"], "c": {}}, "d": [[2.5], []]}', True),
        ('{"a":\u2028 {"b": 1}}', False),
        ('{"a": {"b": 1, "b": 2}}', False),
        ('{"a": [1, 2,], "b": {"c": 3}}', False),
        ('{{"a": {{"b": 1}}}}', False),
    ],
)
def test_streamed_text_gives_the_same_nodes_as_complete_text(text: str, is_scanned: bool) -> None:
    """A stream keeps only the value of a closed container, and locates its nodes later."""
    doubled = text.startswith("{{")
    parser, whole = Parser(text, 0, doubled=doubled, growing=True), Parser(text, 0, doubled=doubled).parse()
    pieces = (parser.resume(f"{text} the end"[:end]) for end in range(1, len(text) + 8))
    parsed = next(filter(None, pieces))
    assert isinstance(parsed, Parsed)
    assert isinstance(whole, Parsed)
    assert (_tree(parsed.node), parsed.plain, parsed.edits) == (_tree(whole.node), whole.plain, whole.edits)
    assert isinstance(parsed.node, Scanned) is is_scanned


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ('{"low": 7, ], "high": 9}', ["trailing-comma", "extra-closer"]),
        ("[7, }, 9]", ["trailing-comma", "extra-closer"]),
        ('{"low": 7,}, "high": 9}', ["trailing-comma", "early-closer"]),
    ],
)
def test_behind_a_superfluous_closer_no_comma_counts_as_missing_that_is_there(text: str, codes: list[str]) -> None:
    outcome = read(text, {})
    assert isinstance(outcome, Accepted)
    assert [repair.code for repair in outcome.repairs] == codes


BERTH: dict[str, Any] = {
    "type": "object",
    "properties": {"boat": {"type": "string"}, "berth": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["boat", "berth"],
}


@pytest.mark.parametrize(
    ("text", "is_whole"),
    [
        ('"boat": "Alma",\n"days": 3,\n"berth": "C4"\n', True),
        ('"boat": "Alma",\n"days": 3,\n"berth": "C4",\n', True),
        ('"boat": "Alma",\n"berth": "C4",\n"days": 3', False),
        ('"boat": "Alma",\n"berth": "C4"', False),
        ('{"boat": "Alma",\n"days": 3,\n"berth": "C4"', False),
    ],
)
def test_a_reply_without_both_outer_braces_is_whole_if_it_has_all_fields_and_the_last_is_no_number(
    text: str, is_whole: bool
) -> None:
    outcome = read(text, BERTH)
    repairs = [repair.code for repair in outcome.repairs] if isinstance(outcome, Accepted) else []
    assert repairs == (["missing-closer", "missing-opener"] if is_whole else [])


@pytest.mark.parametrize(
    ("comment", "accepted"),
    [
        ("other wooden boat", True),
        ("other fields unchanged", False),
        ("others", False),
        ("and other boat", False),
        ("other stuff", False),
    ],
)
def test_a_comment_that_describes_a_value_as_other_leaves_nothing_out(comment: str, accepted: bool) -> None:
    """A plural or `stuff` may stand for fields or items; the kind of thing that a code means does not."""
    outcome = read(f'{{"boat": "Alma",  // {comment}\n"berth": "C4"}}', BERTH)
    assert isinstance(outcome, Accepted) is accepted


def _one_list(items: Any, **more: Any) -> dict[str, Any]:
    fields = {"berths": {"type": "array", "items": items}, **more}
    return {"type": "object", "properties": fields, "required": ["berths"]}


@pytest.mark.parametrize(
    ("text", "schema", "berths"),
    [
        ('[{"boat": "Alma", "berth": "C4", "days": "3"}]', _one_list(BERTH), [("Alma", 3)]),
        ('Here:\n```json\n[{"boat": "Alma", "berth": "C4", "days": 3}]\n```', _one_list(BERTH), [("Alma", 3)]),
        ('[{"boat": "Alma"}]', _one_list(BERTH), None),
        ('[{"boat": "Alma", "berth": "C4"}]', _one_list(BERTH, left={"type": "array"}), None),
        ('[{"boat": "Alma", "berth": "C4"}]\n\n[{"boat": "Bodo", "berth": "C5"}]', _one_list(BERTH), None),
    ],
)
def test_a_list_that_is_the_only_answer_is_the_only_list_that_the_object_must_have(
    text: str, schema: dict[str, Any], berths: list[tuple[str, int]] | None
) -> None:
    """Its items must be recognizable: objects with required keys, or choices."""
    outcome = read(text, schema)
    value = outcome.value if isinstance(outcome, Accepted) else None
    assert (value and [(each["boat"], each["days"]) for each in value["berths"]]) == berths


def test_a_list_of_strings_is_not_wrapped_in_an_object() -> None:
    assert isinstance(read('["C4", "C5"]', _one_list({"type": "string"})), Rejected)
    assert isinstance(read('["C4", "C5"]', _one_list({"enum": ["C4", "C5"]})), Accepted)


COPY = '{"boat": "Alma", "berth": "C4"}'


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        (f"{COPY}\n\n{COPY}\n\n{COPY[:20]}", True),
        (f"{COPY}\n\n{COPY[:20]}", False),
        (f'{COPY}\n\n{COPY}\n\n{{"boat": "Bodo", ', False),
        (f"{COPY.replace('C4', 'C5')}\n\n{COPY}\n\n{COPY[:20]}", False),
    ],
)
def test_one_more_copy_of_a_repeated_answer_may_be_cut_off(text: str, accepted: bool) -> None:
    assert isinstance(read(text, BERTH), Accepted) is accepted
    rows = read(text, {"type": "array", "items": BERTH})
    assert isinstance(rows, Rejected), "in a list, the copies may be items"


@pytest.mark.parametrize("word", ["none", "None", "nil"])
@pytest.mark.parametrize("form", [{"type": ["string", "null"]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}])
def test_a_word_for_null_without_quotes_is_null_where_null_is_allowed(word: str, form: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"mast": form}, "required": ["mast"]}
    assert read(f'{{"mast": {word}}}', schema).value == {"mast": None}
    assert read(f'{{"mast": "{word}"}}', schema).value == {"mast": word}


def test_a_choice_without_quotes_is_not_null() -> None:
    choices = {"anyOf": [{"enum": ["none", "gaff"]}, {"type": "null"}]}
    schema = {"type": "object", "properties": {"mast": choices}, "required": ["mast"]}
    assert read('{"mast": none}', schema).value == {"mast": "none"}


STOP: dict[str, Any] = {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]}
TRIP: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "city": {"type": "string"},
        "stops": {"type": "array", "items": STOP},
    },
    "required": ["title", "city"],
}


def _with_place(*fields: str) -> dict[str, Any]:
    names = ["title", *fields]
    return {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": names}


@pytest.mark.parametrize(("group", "accepted"), [("location", True), ("address", True), ("father", False)])
def test_fields_are_moved_out_of_a_group_that_describes_the_object_around_it(group: str, accepted: bool) -> None:
    text = f'{{"title": "Cruise", "{group}": {{"city": "Kiel", "harbour": "West"}}}}'
    outcome = read(text, _with_place("city", "harbour"))
    assert isinstance(outcome, Accepted) is accepted
    assert not accepted or outcome.value == {"title": "Cruise", "city": "Kiel", "harbour": "West"}


def test_a_vague_key_in_such_a_group_belongs_to_the_group() -> None:
    text = '{"title": "Cruise", "location": {"name": "West Harbour", "city": "Kiel"}}'
    assert isinstance(read(text, _with_place("name", "city")), Rejected)


@pytest.mark.parametrize(("key", "accepted"), [("stop", True), ("item", True), ("skipped", False)])
def test_an_object_that_only_names_the_items_of_a_list_is_that_list(key: str, accepted: bool) -> None:
    """As in XML: the key is the singular of the field, or means an item or a list."""
    outcome = read(f'{{"title": "a", "city": "b", "stops": {{"{key}": [{{"at": "Kiel"}}]}}}}', TRIP)
    assert isinstance(outcome, Accepted) is accepted
    assert not accepted or outcome.value["stops"] == [{"at": "Kiel"}]


def test_a_schema_with_a_value_beside_each_type_is_the_object_of_these_values() -> None:
    filled = {"title": {"type": "string", "value": "Cruise"}, "city": {"type": "string", "value": "Kiel"}}
    reply = {"type": "object", "properties": filled}
    assert read(json.dumps(reply), TRIP).value == {"title": "Cruise", "city": "Kiel"}
    del filled["city"]["value"]
    assert isinstance(read(json.dumps(reply), TRIP), Rejected)


@pytest.mark.parametrize(
    ("title", "value"), [(r"Caf\u00", None), (r"\u2 ways", None), (r"C:\u00\x", r"C:\u00\x"), (r"Caf\u00e9", "Café")]
)
def test_an_escape_without_all_its_digits_has_lost_its_character(title: str, value: str | None) -> None:
    """Unless it is in a Windows path."""
    outcome = read(f'{{"title": "{title}", "city": "Kiel"}}', TRIP)
    assert (outcome.value["title"] if isinstance(outcome, Accepted) else None) == value


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ('book_cruise(title="Cruise", city="Kiel")', True),
        ('book_cruise(title="Cruise")', False),
        ("book_cruise(title=title, city='Kiel')", False),
        ('Then call book_cruise(title="Cruise", city="Kiel").', False),
    ],
)
def test_a_reply_that_is_one_call_with_the_fields_as_arguments_is_an_object(text: str, accepted: bool) -> None:
    assert isinstance(read(text, TRIP), Accepted) is accepted


@pytest.mark.parametrize("key", ["_comment", "reasoning", "Begründung", "razonamiento", "理由", "комментарий"])
@pytest.mark.parametrize(
    ("text", "accepted"), [("the berth is near the gate", True), ("Correction: the berth is D7, not C4.", False)]
)
def test_a_comment_under_a_key_that_the_schema_forbids_is_ignored_unless_it_corrects_the_answer(
    key: str, text: str, accepted: bool
) -> None:
    outcome = read(json.dumps({key: text, "boat": "Alma", "berth": "C4"}), {**BERTH, "additionalProperties": False})
    assert isinstance(outcome, Accepted) is accepted
    assert not accepted or outcome.value == {"boat": "Alma", "berth": "C4"}


@pytest.mark.parametrize(
    ("url", "accepted"),
    [("https://json-schema.org/draft/2020-12/schema", True), ("http://json-schema.org/draft-07/schema#", True)]
    + [(url, False) for url in ("https://example.org/berths.json", "./json-schema.org/", "v1")],
)
def test_the_version_of_json_schema_is_ignored_where_the_schema_forbids_it(url: str, accepted: bool) -> None:
    outcome = read(
        json.dumps({"$schema": url, "boat": "Alma", "berth": "C4"}), {**BERTH, "additionalProperties": False}
    )
    assert isinstance(outcome, Accepted) is accepted
    assert not accepted or outcome.value == {"boat": "Alma", "berth": "C4"}


@pytest.mark.parametrize("key", ["reason_code", "port", "internal_note"])
def test_any_other_key_that_the_schema_forbids_rejects_the_reply(key: str) -> None:
    outcome = read(f'{{"{key}": "x", "boat": "Alma", "berth": "C4"}}', {**BERTH, "additionalProperties": False})
    assert isinstance(outcome, Rejected)
    assert [issue.code for issue in outcome.issues] == ["extra_key"]


def test_a_unit_in_parentheses_is_part_of_the_key_of_a_line() -> None:
    length = {"properties": {"boat": {"type": "string"}, "length_m": {"type": "integer"}}, "required": ["length_m"]}
    outcome = read("- **Boat** : Alma\n- **Length (m)** : 9", {"type": "object", **length})
    assert outcome.value == {"boat": "Alma", "length_m": 9}
    assert isinstance(read("Boat: Alma\nLength (ft): 9", {"type": "object", **length}), Rejected)


def _tree(node: Node) -> Any:
    """Return a node and its children as text."""
    parts = node.value
    if node.kind == OBJECT:
        parts = [(member.key, member.start, _tree(member.node)) for member in node.value]
    elif node.kind == ARRAY:
        parts = [_tree(item) for item in node.value]
    return node.kind, parts, node.start, node.end


PERSON = {
    "type": "object",
    "properties": {
        "姓名": {"type": "string"},
        "年龄": {"type": "integer"},
        "语言": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["姓名", "年龄"],
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("｛“姓名”：“张伟”，“年龄”：32｝", {"姓名": "张伟", "年龄": 32}),
        ('好的：\n\n{"姓名"："张伟"，"年龄"：32，"语言"：["中文"］｝', {"姓名": "张伟", "年龄": 32, "语言": ["中文"]}),
        ("｛＂姓名＂：＂张伟＂，＂年龄＂：３２｝", {"姓名": "张伟", "年龄": 32}),
        ('｛"姓名": "张｛伟｝：“，”", "年龄": 32｝', {"姓名": "张｛伟｝：“，”", "年龄": 32}),
        ("｛“姓名”：“张伟”｝", None),
        ("｛“姓名”：“张伟”，“年龄”：3", None),
        ("参见［1］｛年龄｝", None),
    ],
)
def test_full_width_punctuation_is_read_as_json_except_in_strings(text: str, value: Any) -> None:
    outcome = read(text, PERSON)
    assert (outcome.value if isinstance(outcome, Accepted) else None) == value


CODE = {
    "type": "object",
    "properties": {"language": {"type": "string"}, "code": {"type": "string"}},
    "required": ["language", "code"],
}


@pytest.mark.parametrize(
    "code",
    [
        'print("a", "b")\nprint("c " + name)',
        'if x == "a" or x:\n  y = f("b", "c")',
        'say "a"\nthen "b"',
    ],
)
def test_code_in_a_string_needs_no_escapes_if_its_end_is_certain(code: str) -> None:
    whole = {"language": "python", "code": code}
    for text in (
        f'{{"language": "python", "code": "{code}"}}',
        f'{{"code": "{code}",\n"language": "python"}}',
        f'```json\n{{"language": "python", "code": "{code}"\n}}\n```',
    ):
        assert read(text, CODE).value == whole


@pytest.mark.parametrize(
    "code",
    [
        'd = {"a": 1,\n "b": 2}',  # what looks like a key may be one
        'print("a")", "b\nc',
        'print("a",\n"b")", "c',
        'print("a\\n")\nprint("b", "c")',  # whether the escape is one of the code or of JSON is unknown
        '"a"\n"b", "c',
    ],
)
def test_code_in_a_string_is_rejected_if_it_may_have_ended_earlier(code: str) -> None:
    assert isinstance(read(f'{{"language": "python", "code": "{code}"}}', CODE), Rejected)
