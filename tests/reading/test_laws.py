"""The invariants of reading, one test for each. Guards on valid JSON are excluded here and tested as cases."""

import ast
import json
import re
import sys
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from flujo_aros import Accepted, Limits, Output, Reason, Rejected, Risk, Trust, read
from flujo_aros.contract import Valid, compile_contract
from flujo_aros.reading.node import Edit, RepairLog
from flujo_aros.reading.select import DEPTH

from .given import (
    CALM,
    CALM_DAMAGE,
    DAMAGE,
    MIXED,
    PLAIN,
    SCHEMAS,
    SOUP,
    STYLES,
    TEXTS,
    TRICKY,
    Pair,
    Style,
    damaged,
    examples,
    models,
    pairs,
    whole_objects,
    write,
)

LAYOUTS = st.sampled_from(
    [{}, {"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": False}, {"indent": "\t", "ensure_ascii": False}]
)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "risk": st.sampled_from(Risk),
        "truncated": st.booleans(),
        "pick": st.sampled_from(["first", "last", "error"]),
    },
)


def exact(value: Any) -> str:
    """Return a text that distinguishes 1, 1.0 and True, and orders of keys."""
    return json.dumps(value)


# --- 1: what is right stays as it is ----------------------------------------------------------------------------------


@given(pairs(st.text(PLAIN, max_size=12)), LAYOUTS, st.sampled_from([None, False]), st.sampled_from(Risk))
def test_valid_json_is_returned_as_it_is(
    pair: Pair, layout: dict[str, Any], truncated: bool | None, risk: Risk
) -> None:
    """Valid JSON that satisfies its schema is CLEAN, without repairs, and equals the result of `json.loads`."""
    assume(pair.schema.get("type") != "string")  # a contract for text has a rule of its own
    text = json.dumps(pair.value, **layout)
    outcome = read(text, pair.schema, truncated=truncated, risk=risk)
    assert isinstance(outcome, Accepted), outcome
    assert (exact(outcome.value), outcome.trust, list(outcome.repairs)) == (exact(json.loads(text)), Trust.CLEAN, [])


@given(models(), LAYOUTS)
def test_valid_json_of_a_type_is_returned_as_it_is(made: tuple[Any, Any], layout: dict[str, Any]) -> None:
    """JSON that pydantic accepts strictly is CLEAN, with the value that pydantic returns."""
    model, data = made
    text = json.dumps(data, **layout)
    outcome = read(text, model)
    assert isinstance(outcome, Accepted), outcome
    assert (outcome.value, outcome.trust) == (model.model_validate_json(text, strict=True), Trust.CLEAN)


# --- 2: any text at all -----------------------------------------------------------------------------------------------


@examples(400)
@given(TEXTS, SCHEMAS, OPTIONS)
@example("\ud800", {}, {})
@example('{"a": "\\ud800"}', {}, {"risk": Risk.LOSSY})
def test_no_text_raises(text: str, schema: dict[str, Any], options: dict[str, Any]) -> None:
    """Any text with any schema yields an outcome that can be printed, stored and sent back."""
    outcome = read(text, schema, **options)
    assert isinstance(outcome, Accepted | Rejected)
    assert outcome.text == text
    assert json.loads(json.dumps(outcome.to_dict()))["outcome"] == outcome.kind
    assert outcome.explain()
    if isinstance(outcome, Rejected):
        assert outcome.feedback()
        assert outcome.issues
    else:
        assert outcome.trust is Trust.of(outcome.repairs)
        ceiling = options.get("risk", Risk.INFERRED)
        assert all(repair.risk <= ceiling for repair in outcome.repairs)


@given(st.text(st.sampled_from("{}[]\":, 1a\\`'\n"), min_size=1, max_size=5), SOUP.map(lambda s: s[:6]), SCHEMAS)
@examples(60)
def test_work_grows_with_the_text(unit: str, head: str, schema: dict[str, Any]) -> None:
    """Twice the text takes at most about twice the steps."""
    once, twice = (steps_of(head + unit * count, schema) for count in (200, 400))
    assert twice < 3 * once + 5_000


FLOODS = {
    "braces": ("", "{", ""),
    "brackets": ("", "[", ""),
    "open members": ("", '{"a":', ""),
    "open lists of objects": ("", '[{"a":', ""),
    "quotes": ("", '"', ""),
    "backslashes": ('{"a": "', "\\", ""),
    "inner quotes": ('{"a": "', 'say "hi" ', '"}'),
    "lost quotes": ("{", '"a: 1, ', "}"),
    "bare words": ("{", "word ", "}"),
    "fences": ("", "```json\n", ""),
    "reasoning": ("", "<think>", ""),
    "reasoning left": ("", "</think>", ""),
    "comments": ("{", "/* ", ""),
    "slashes between values": ('{"a": 1} ', "/", '\nz {"a": 2}'),
    "comments between values": ('{"a": 1} ', "/**/", 'z {"a": 2}'),
    "comments behind a key": ('{"a" ', "/**/", " x: 1}"),
    "hash comments": ("{", "# a\n", "}"),
    "objects": ("", '{"a": 1} ', ""),
    "bad objects": ("", '{"a": x y: } ', ""),
    "wrong closers": ("", "[}", ""),
    "swapped closers": ("[", "[1}, ", "]"),
    "closers": ("[", "]", ""),
    "escaped": ("", '{\\"a\\": ', ""),
    "lines": ("", "a: b\n", ""),
    "commas": ("[", ",", "]"),
    "plus signs": ('{"a": "x"', ' + "x"', "}"),
    "calls": ("[", "f(", "]"),
    "entities": ("", "{&quot;", ""),
    "missing commas": ("[", '"a" ', "]"),
    "a long string": ('{"a": "', "x", '"}'),
    "a cut string": ('{"a": "', "x ", ""),
    "single quotes": ("{'a': '", "it's ", "'}"),
    "items with a repair each": ("[", "{'a': 1}, ", "]"),
    "items without commas": ('{"a": [', "{a: True} ", "]}"),
}


@pytest.mark.parametrize("flood", FLOODS)
@pytest.mark.parametrize(
    "schema",
    [{}, {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}],
    ids=["any", "object"],
)
def test_too_many_values_take_linear_time(flood: str, schema: dict[str, Any]) -> None:
    """No sequence of brackets, quotes, marks or incomplete values causes repeated backtracking."""
    head, unit, tail = FLOODS[flood]
    once, twice = (steps_of(head + unit * count + tail, schema) for count in (500, 1_000))
    assert twice < 3 * once + 5_000


def test_the_places_of_repaired_members_are_found_in_linear_work() -> None:
    """Every member has a repair, and each is located among its siblings."""
    texts = ("{" + ", ".join(f"'k{index}': None" for index in range(count)) + "}" for count in (1_000, 2_000))
    once, twice = (steps_of(text, {}) for text in texts)
    assert twice < 3 * once


def test_the_original_text_of_a_repair_is_cut_before_it_is_copied() -> None:
    """Thousands of edits that concern the whole text must not copy it thousands of times."""
    copied = 0

    class Text(str):
        __slots__ = ()

        def __getitem__(self, part: Any) -> str:
            nonlocal copied
            found = super().__getitem__(part)
            copied += len(found)
            return found

    text = Text("x" * 100_000)
    log = RepairLog([Edit("escaped", Risk.INFERRED, 0, len(text), "", "$")] * 100, text, lambda: (None, ()))
    assert log[0].before == "x" * 79 + "…"
    assert copied < 10_000


@pytest.mark.parametrize("text", ['{"a": "1%sx"}', '{"a": 1%sx}'])
def test_space_in_a_number_takes_linear_work(text: str) -> None:
    """The search for a currency does not restart at each blank."""
    schema = {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]}
    assert isinstance(read(text % (" " * 1_000_000), schema), Rejected)


def test_a_string_that_never_ends_is_looked_through_once() -> None:
    """Each of these quotes may begin an endless string; trying them one by one would be quadratic."""
    outcome = read('{"kind": "say", "text": "Hi.", "mood": {"now": ? ' + '\\"' * 50_000, Output.event(["say"]))
    assert isinstance(outcome, Accepted)
    assert outcome.value.text == "Hi."


@pytest.mark.parametrize("bomb", ["[", '{"a":', '[{"a":', "{'a':[", "[[1],"])
def test_depth_is_bounded(bomb: str) -> None:
    """A hundred thousand levels are rejected, whatever they consist of."""
    outcome = read(bomb * 100_000, {})
    assert isinstance(outcome, Rejected)


def test_a_complete_bomb_is_too_large() -> None:
    """Valid JSON beyond the allowed depth is rejected, and the caller sets the limit."""
    text = "[" * 1_000 + "]" * 1_000
    outcome = read(text, {})
    assert isinstance(outcome, Rejected)
    assert outcome.reason is Reason.TOO_LARGE
    assert isinstance(read("[[[]]]", {}, limits=Limits(max_chars=5)), Rejected)


def steps_of(text: str, schema: dict[str, Any]) -> int:
    """Return the number of Python lines and calls needed to read a text and its repairs; deterministic."""
    read("", schema)
    count = 0

    def step(_frame: Any, _event: str, _arg: Any) -> Any:
        nonlocal count
        count += 1
        return step

    before = sys.gettrace()
    sys.settrace(step)
    try:
        outcome = read(text, schema)
        if isinstance(outcome, Accepted):
            len(outcome.repairs)
    finally:
        sys.settrace(before)
    return count


# --- 3: never silently wrong ------------------------------------------------------------------------------------------


@examples(400)
@given(whole_objects(st.text(st.one_of(CALM, TRICKY), max_size=12)), st.sampled_from(sorted(DAMAGE)), st.booleans())
def test_lossless_damage_is_repaired_or_rejected(pair: Pair, name: str, odd: bool) -> None:
    """One deviation from JSON yields the same value with at least one repair, or a rejection."""
    text = DAMAGE[name](pair.value)
    _undone(pair, text, odd=odd and name != "no-break spaces")


@examples(300)
@given(
    st.one_of(
        damaged(), st.tuples(whole_objects(st.text(TRICKY, max_size=8)), STYLES).map(lambda d: write(d[0].value, d[1]))
    )
)
def test_the_quick_way_and_the_careful_way_agree(text: str) -> None:
    """An unusual space, which only the slow path reads, changes no value."""
    assume("\\u" not in text)
    quick, careful = read(text, {}), read(_oddly_spaced(text), {})
    if isinstance(quick, Accepted) and isinstance(careful, Accepted):
        assert exact(quick.value) == exact(careful.value)


LOOSE_MEMBERS = st.tuples(
    st.sampled_from(["a", "$b", '"c"', "'d'", '"e f"', "'\"g\" h'", r'"g\"h"', "True"]),
    st.sampled_from([":", ": ", " :"]),
    st.sampled_from(
        [
            "1",
            "True",
            "None",
            "'x'",
            "'say \"so\" to'",
            "'a, \"b\": 1'",
            '"it\'s"',
            "[1, 2,]",
            "['p' , \"q\"]",
            "{}",
            "word",
        ]
    ),
    st.sampled_from([", ", ",", " ", "\n", ", // it's\n", " /* 'x' */, ", ", /* c */ ", ' // "q"\n', ",, "]),
).map("".join)
"""Members as a JavaScript or Python program has them, with what may stand between two of them."""


@examples(600)
@given(
    st.one_of(
        st.lists(LOOSE_MEMBERS, max_size=4).map(lambda members: "{" + "".join(members) + "}"),
        damaged(),
        st.tuples(whole_objects(st.text(TRICKY, max_size=8)), STYLES).map(lambda d: write(d[0].value, d[1])),
        st.text(st.sampled_from("""{}[]:,"'/ \n\\a1*T-."""), max_size=24).map(lambda soup: "{a: " + soup + "}"),
    )
)
@example("{'a': 1, // it's\n b: True,}")
@example("[ , ]")
@example('{"a": 1 "b": 2}')
@example("[1, /* two */: 2]")
@example('{a:\'x\', "g\\"h":1, }')
def test_rewritten_text_equals_the_result_of_the_parser(text: str) -> None:
    """The fast path for common damage yields the same value, trust and repairs as the parser, or nothing."""
    quick, careful = read(text, {}), read(text, {}, limits=Limits(max_depth=DEPTH - 1))
    if isinstance(quick, Accepted):
        assert isinstance(careful, Accepted)
        assert exact(quick.value) == exact(careful.value)
        assert (quick.trust, list(quick.repairs)) == (careful.trust, list(careful.repairs))


def _oddly_spaced(text: str) -> str:
    """Return the text with a no-break space after its first brace."""
    return re.sub(r"^([{\[])", "\\1\u00a0", text)


@given(whole_objects(st.text(CALM, max_size=12)), st.sampled_from(sorted(CALM_DAMAGE)))
def test_other_quotes_are_repaired_or_rejected(pair: Pair, name: str) -> None:
    """Other quotes around strings without quotes yield the same value, or a rejection."""
    _undone(pair, CALM_DAMAGE[name](pair.value))


@examples(200)
@given(whole_objects(st.text(CALM, max_size=8)), MIXED, st.booleans())
def test_departures_that_meet_are_repaired_or_rejected(pair: Pair, styles: list[Style], declared: bool) -> None:
    """A different deviation at each place yields the same value, or a rejection, even without declared keys."""
    text = write(pair.value, *styles)
    _undone(pair if declared else Pair({"type": ["object", "array"]}, pair.value), text)


@pytest.mark.parametrize("name", sorted(DAMAGE | CALM_DAMAGE))
def test_common_damage_is_undone(name: str) -> None:
    """On a plain record, no common deviation needs a further call."""
    value = {"name": "Ann Lee", "qty": 3, "tags": ["red", "two words"], "note": None, "items": {"a": True, "b": 1.5}}
    inner = {
        "type": "object",
        "properties": {"a": {"type": "boolean"}, "b": {"type": "number"}},
        "required": ["a", "b"],
    }
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "qty": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "note": {"type": ["string", "null"]},
            "items": inner,
        },
        "required": ["name", "qty", "tags", "note", "items"],
    }
    outcome = read((DAMAGE | CALM_DAMAGE)[name](value), schema)
    assert isinstance(outcome, Accepted), outcome
    assert exact(outcome.value) == exact(value)


def _undone(pair: Pair, text: str, *, odd: bool = False) -> None:
    outcome = read(_oddly_spaced(text) if odd else text, pair.schema)
    if isinstance(outcome, Accepted):
        assert exact(outcome.value) == exact(pair.value)
        assert {repair.code for repair in outcome.repairs} - ({"odd-space"} if odd else set()) or _is_json(
            text, pair.value
        )


def _is_json(text: str, value: Any) -> bool:
    try:
        return exact(json.loads(text)) == exact(value)
    except ValueError:
        return False


@examples(600)
@given(
    TEXTS,
    st.sampled_from(
        [{}, {"type": "object"}, {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}]
    ),
)
def test_clean_means_that_the_text_is_the_value(text: str, schema: dict[str, Any]) -> None:
    """A value without a repair equals the result of `json.loads` for the whole text."""
    outcome = read(text, schema)
    if isinstance(outcome, Accepted) and outcome.trust is Trust.CLEAN:
        assert _is_json(text.strip(), outcome.value)


WORD = re.compile(r"[^\W_]+")
PREFIX = re.compile(r"(?<!\w)[ubr]\"", re.I)  # of a string in Python: no word


@examples(600)
@given(whole_objects(st.text(CALM, max_size=8)), st.data())
def test_no_word_is_lost_or_invented(pair: Pair, data: st.DataObject) -> None:
    """If one structural character is dropped, doubled or inserted, a value has exactly the words of the text."""
    text = json.dumps(pair.value, ensure_ascii=False)
    marks = [index for index, char in enumerate(text) if char in '{}[]",:']
    at = data.draw(st.sampled_from(marks))
    put = data.draw(st.sampled_from(["", text[at] * 2, *(text[at] + mark for mark in '{}[]",:')]))
    text = text[:at] + put + text[at + 1 :]
    assume(not PREFIX.search(text))
    outcome = read(text, pair.schema)
    if isinstance(outcome, Accepted):
        assert set(WORD.findall(text)) == set(WORD.findall(json.dumps(outcome.value, ensure_ascii=False)))


# --- 4: a cut text ----------------------------------------------------------------------------------------------------


@examples(300)
@given(whole_objects(st.text(st.one_of(CALM, TRICKY), max_size=8)), st.sampled_from([None, True]), st.data())
def test_a_truncated_object_is_never_accepted(pair: Pair, truncated: bool | None, data: st.DataObject) -> None:
    """No proper prefix of an object is accepted below LOSSY; at LOSSY, it is reported as truncated."""
    text = json.dumps(pair.value)
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    schema = data.draw(st.sampled_from([{}, pair.schema, {key: pair.schema[key] for key in ("type", "properties")}]))
    head = data.draw(st.sampled_from(["", "Here you are: ", "```json\n"]))
    assert isinstance(read(head + cut, schema, truncated=truncated), Rejected)
    lossy = read(head + cut, schema, truncated=truncated, risk=Risk.LOSSY)
    assert isinstance(lossy, Rejected) or lossy.trust is Trust.LOSSY


@given(whole_objects(st.text(PLAIN, max_size=8)))
def test_a_value_at_the_end_of_a_truncated_text_is_not_trusted(pair: Pair) -> None:
    """Even a complete value may continue if the text was cut right after it, unless prose follows it."""
    text = json.dumps(pair.value)
    assert isinstance(read(text, pair.schema, truncated=True), Rejected)
    whole = read(f"{text}\n\nThat is beca", pair.schema, truncated=True)
    assert isinstance(whole, Accepted)
    assert exact(whole.value) == exact(pair.value)


# --- 6: what is accepted holds ----------------------------------------------------------------------------------------


@examples(600)
@given(TEXTS, SCHEMAS, OPTIONS)
def test_an_accepted_value_satisfies_its_contract_and_is_clean_when_read_again(
    text: str, schema: dict[str, Any], options: dict[str, Any]
) -> None:
    """A recovered value passes the same validation as a first answer, and its JSON needs no repair."""
    outcome = read(text, schema, **options)
    if isinstance(outcome, Accepted):
        _holds(outcome, schema)


@given(whole_objects(st.text(st.one_of(CALM, TRICKY), max_size=12)), st.sampled_from(sorted(DAMAGE)))
def test_a_repaired_value_satisfies_its_contract_and_is_clean_when_read_again(pair: Pair, name: str) -> None:
    """The same holds for repaired values."""
    outcome = read(DAMAGE[name](pair.value), pair.schema)
    if isinstance(outcome, Accepted):
        _holds(outcome, pair.schema)


def _holds(outcome: Accepted[Any], schema: dict[str, Any]) -> None:
    assert isinstance(compile_contract(schema).validate(outcome.value), Valid)
    again_text = json.dumps(outcome.value, ensure_ascii=False)
    if schema == {"type": "string"} or re.search(r"\\[a-z]", again_text):
        return  # a text contract takes quotes as text; control characters are a guard
    again = read(again_text, schema)
    assert isinstance(again, Accepted)
    assert (exact(again.value), again.trust) == (exact(outcome.value), Trust.CLEAN)


@examples(600)
@given(
    st.one_of(
        TEXTS,
        st.tuples(whole_objects(st.text(CALM)), st.sampled_from(sorted(DAMAGE))).map(
            lambda d: DAMAGE[d[1]](d[0].value)
        ),
    ),
    SCHEMAS,
    OPTIONS,
)
def test_repairs_say_where_they_are(text: str, schema: dict[str, Any], options: dict[str, Any]) -> None:
    """A span is in the text and begins with `before`; a path leads into the value; no risk exceeds the allowed one."""
    outcome = read(text, schema, **options)
    repairs = outcome.repairs if isinstance(outcome, Accepted) else ()
    moved = MOVING.intersection(repair.code for repair in repairs)  # the path is then that before the move
    for repair in repairs:
        start, end = repair.span
        assert repair.risk <= options.get("risk", Risk.INFERRED)
        assert 0 <= start <= end <= len(text)
        assert text[start:end].startswith(repair.before.removesuffix("…"))
        assert moved or _resolves(repair.path, outcome.value), repair


MOVING = {"envelope", "wrapped-in-object", "missing-opener"}
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]|\[('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")\]")


def _resolves(path: str, value: Any) -> bool:
    at = 1
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            return False
        step: Any = int(found[2]) if found[2] else found[1] if found[1] else ast.literal_eval(found[3])
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return False
        at = found.end()
    return path.startswith("$")


def test_the_field_suggested_for_an_undeclared_key_is_the_same_in_every_process() -> None:
    """The suggestion is part of prompts, which identify recorded replies."""
    names = ("pros", "tips", "uses", "cons", "fans", "bugs")
    lists: dict[str, Any] = {name: {"type": "array", "items": {"type": "string"}} for name in names}
    outcome = read('{"listing": ["a"]}', {"type": "object", "properties": lists, "required": [*names]})
    assert isinstance(outcome, Rejected)
    assert "write 'bugs'" in outcome.issues[0].message
