"""Streams: any chunks give the same outcome as the whole text, and final values never change."""

import json
import re
from ast import literal_eval
from dataclasses import fields
from datetime import date
from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Any, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, PlainSerializer, StringConstraints, model_validator

from flujo_aros import Accepted, Limits, Outcome, Partial, Reason, Rejected, StreamReader, UsageError, read
from flujo_aros.contract import BlockContract, Output
from flujo_aros.reading.runaway import strip_runaway

from .given import examples

OBJECT = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "count": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "owner": {"type": "object", "properties": {"name": {"type": "string"}}},
        "note": {"type": ["string", "null"]},
    },
    "required": ["title"],
}


class Item(BaseModel):
    sku: str
    qty: int = 1


class Order(BaseModel):
    title: str
    due: date | None = None
    items: list[Item] = []
    note: str | None = None


REPLIES: list[tuple[str, Any]] = [
    ('{"title": "Caf\\u00e9 \\ud83d\\ude00", "count": 12, "tags": ["a", "b\\\\c"], "note": null}', OBJECT),
    (
        'Sure [1]:\n```json\n{"title": "A \\"b\\"", "count": "3",\n "tags": ["x",], "extra": {"y": 1.50}}\n```\nDone.',
        OBJECT,
    ),
    ("<think>{\"title\": \"no\"}</think>{'title': 'it\\'s', count: 3, 'tags': ['a' 'b'], 'note': None}", OBJECT),
    ("◁think▷{\"title\": \"no\"}◁/think▷{'title': 'it\\'s', count: 3}", OBJECT),
    ('[THINK]{"title": "no"} [0][/THINK] [1] {"title": "yes", "tags": ["a"]}', OBJECT),
    (
        '<|channel|>analysis<|message|>{"title": "no"}<|end|><|start|>assistant<|channel|>final<|message|>{"title": 1}',
        OBJECT,
    ),
    ('Draft {"title": "old", "count": 1} then {"title": "new", "count": 2}', OBJECT),
    ('{"result": {"title": "wrapped", "owner": {"name": "Ada"}}}', OBJECT),
    ('{"title": "one", "note": "a", "note": "b"}', OBJECT),
    ('{"x": 1, "x": 2, "list": [1, 2, {"y": []}], "deep": {"a": {"b": null}}}', {}),
    ('{"title": "say "hi" to all", "tags": ["red", "green"] "count": 4}', OBJECT),
    ('{"title": "cut", "tags": ["a", "b', OBJECT),
    ('{"a": 1}\n{"a": 2}\n{"a": 3}', {}),
    ('{"title": "Tea", "due": "2024-05-01", "items": [{"sku": "A-1"}, {"sku": "B", "qty": "2"}], "zzz": 1}', Order),
    ('[{"sku": "A", "qty": 1}, {"sku": "B", "qty": 2}]', list[Item]),
    ('<r>{"a": "</r>", "b": [1, {"c": 2}]}</r> or <r>\n```json\n{"a": 5}\n```\n</r>', Output.tagged("r", {})),
    ("The <r> tag: <r>\n  Once upon <b> a time \n</r>!", Output.text("r")),
    ('{"verdict": "yes", "why": {"a": 1}}\n\nBecause it is.', Output.block("verdict")),
    ('Here: {"kind": "Say", "text": "Hello \\"you\\"", "mood": 3}', Output.event(["say", "act"])),
    ("Just a text.\nAs it is.", str),
    ("**yes**", bool),
    ('{"title": "Tea", "items": "[{\\"sku\\": \\"A-1\\"}]", "note": null}', Order),
]


_STEP = re.compile(r"""\.(\w+)|\[(\d+)\]|\[('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\]""")


def stream(text: str, contract: Any, pieces: list[str], **options: Any) -> tuple[list[Partial[Any]], Any]:
    """Return all partials, and the outcome."""
    reader = StreamReader(contract, **options)
    partials = [partial for piece in pieces if (partial := reader.feed(piece)) is not None]
    return partials, reader.close()


def cut(text: str, places: list[int]) -> list[str]:
    """Return the text in chunks."""
    bounds = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    return [text[a:b] for a, b in pairwise(bounds)]


def at(value: Any, path: str) -> Any:
    """Return the value at a path."""
    for key, index, quoted in _STEP.findall(path[1:]):
        value = value[key or (int(index) if index else literal_eval(quoted))]
    return value


def grows(before: Any, after: Any) -> bool:
    """Return whether a value equals another one or is a prefix of it."""
    if isinstance(before, dict):
        return isinstance(after, dict) and all(key in after and grows(before[key], after[key]) for key in before)
    if isinstance(before, list):
        return isinstance(after, list) and len(before) <= len(after) and all(map(grows, before, after))
    if isinstance(before, str):
        return isinstance(after, str) and after.startswith(before)
    return bool(before == after)


def whole(outcome: Outcome[Any]) -> str:
    """Return every field of an outcome as text, in which NaN equals NaN."""
    return repr([getattr(outcome, each.name) for each in fields(outcome)])


def check(text: str, contract: Any, pieces: list[str], **options: Any) -> None:
    """Check the invariants of a stream."""
    partials, outcome = stream(text, contract, pieces, **options)
    assert whole(outcome) == whole(read(text, contract, **options))
    for before, after in pairwise(partials):
        if not after.restarted:
            assert grows(before.value, after.value)
            assert before.final_paths <= after.final_paths
            assert all(at(before.value, path) == at(after.value, path) for path in before.final_paths)
    if partials and isinstance(outcome, Accepted):
        value, last = outcome.to_dict()["value"], partials[-1]
        assert {path: at(value, path) for path in last.final_paths} == {
            path: at(last.value, path) for path in last.final_paths
        }


@given(st.sampled_from(REPLIES), st.lists(st.integers(0, 400), max_size=40))
def test_any_chunks_satisfy_the_invariants(reply: tuple[str, Any], places: list[int]) -> None:
    """The outcome equals that of the whole text, values only grow, and final values are in the outcome."""
    check(*reply, cut(reply[0], places))


@pytest.mark.parametrize("reply", REPLIES, ids=lambda reply: reply[0][:30])
def test_small_chunks_satisfy_the_invariants(reply: tuple[str, Any]) -> None:
    """Chunks may end anywhere: inside escapes, surrogate pairs, fences and tags."""
    for size in (1, 2, 3, 7):
        check(*reply, [reply[0][at : at + size] for at in range(0, len(reply[0]), size)])


NOISE = ["", '"', "'", ",", " ", "\\", "}", "{", "]", "[", ":", "`", "```", "\n", "/*", "<think>", '"x":1,', "</r>"]
MUTATIONS = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 2), st.sampled_from(NOISE)), min_size=1, max_size=3)


@examples(200)
@given(st.sampled_from(REPLIES), MUTATIONS, st.lists(st.integers(0, 400), max_size=30), st.booleans())
def test_damaged_replies_satisfy_the_invariants(
    reply: tuple[str, Any], damage: list[tuple[int, int, str]], places: list[int], first: bool
) -> None:
    """Whatever the damage, and whichever answer is selected."""
    text, contract = reply
    for place, length, noise in damage:
        start = place % (len(text) + 1)
        text = f"{text[:start]}{noise}{text[start + length :]}"
    check(text, contract, cut(text, places), pick="first" if first else "last")


@pytest.mark.parametrize(
    ("text", "contract"),
    [
        ('{"a"] 1}\n{"a": 2}\n{"a": 3}', {}),
        ('{"a": 1}\'{"a"<}ink> 2}\n{"a": 3}', {}),
        ('{"a": 1}\n{\\": 2}\n{"a": 3}', {}),
        ('{"a": 1}\n}{"a"[ 2}\n{"a": 3}', {}),
        ('{"a": 1}\\{"a":[ 2}\n{"a":3}', {}),
        ('{"x": 1, `x": 2, "list": [1, 2, "y": []}], "deep": {"a": {"b": null}}}', {}),
        ('[THIN{K]{"title": "no"} [```][/THINK] [1] {"title": "yes"}', OBJECT),
        ('```HINK]{"title": "no"} [0][/THINK] [1] {"title": "yes", "tags": ["a"]}', OBJECT),
        ('{"title": "no"}[0}</think>{"title": "yes"}', OBJECT),
        ('{"title": "no"}\n{\'][/THINK]{"title": "yes"}', OBJECT),
    ],
)
@pytest.mark.parametrize("pick", ["first", "last"])
def test_text_that_may_hide_another_answer_makes_nothing_final(text: str, contract: Any, pick: str) -> None:
    """After an answer, an unreadable part may contain another one, or the end of the reasoning."""
    for size in (1, 2, 3, 5):
        check(text, contract, [text[at : at + size] for at in range(0, len(text), size)], pick=pick)
    for place in range(len(text)):
        check(text, contract, [text[:place], text[place:]], pick=pick)


def last_of(text: str, contract: Any, **options: Any) -> Partial[Any]:
    """Return the last partial of a text that arrived in one chunk."""
    partials, _ = stream(text, contract, [text], **options)
    return partials[-1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"path": "C:\\\\Users\\', {"path": "C:\\Users"}),
        ('{"x": 2e', {}),
        ('{"x": 12.', {}),
        ('{"x": 12', {}),
        ('{"x": tr', {}),
        ('{"x": "', {"x": ""}),
        ('{"x": "a\\u00', {"x": "a"}),
        ('{"x": "a\\ud83d', {"x": "a"}),
        ('{"a": ["npm install", "npm test"', {"a": ["npm install", "npm test"]}),
        ('Here:\n```json\n{"items": [{"id": 1, "qty": 2}, {"id": 2, "q', {"items": [{"id": 1, "qty": 2}, {"id": 2}]}),
        ("{'a': True, b: [1, 2,", {"a": True, "b": [1, 2]}),
        ('{"a": "hi \\ud83d\\ude0', {"a": "hi "}),
        ('{"a": "hi \\ud83d\\ude00 x', {"a": "hi 😀 x"}),
        ('{"a": "it\\\\\\', {"a": "it\\"}),
        ('{"a": 1, /', {"a": 1}),
        ('{"a": 1, /* c */ "b": 2', {"a": 1}),
        ("[1, -", [1]),
        ("[1.5e10, 2", [15e9]),
        ('[ {"k": "v", "l": [ "m', [{"k": "v", "l": ["m"]}]),
    ],
)
def test_complete_values_are_shown_and_strings_grow(text: str, expected: Any) -> None:
    """Numbers, literals and keys appear when complete; an escape is not shown before its end."""
    assert last_of(text, {}).value == expected


@pytest.mark.parametrize(("kind", "shown"), [("integer", {}), ("string", {"n": "12"})])
def test_an_open_string_is_shown_only_where_a_string_is_wanted(kind: str, shown: Any) -> None:
    """A number in quotes will be converted, even if null is allowed, so its first digits are not shown."""
    schema = {"type": "object", "properties": {"n": {"anyOf": [{"type": kind}, {"type": "null"}]}}}
    assert last_of('{"n": "12', schema).value == shown


def test_a_value_that_touches_the_end_is_not_final() -> None:
    """A value is final once something follows it."""
    assert last_of('{"title": "a", "count": 1', OBJECT).final_paths == frozenset({"$.title"})
    assert last_of('{"title": "a", "tags": ["x", "y"], "count": 1,', OBJECT).final_paths == frozenset(
        {"$.title", "$.tags", "$.tags[0]", "$.tags[1]"}
    )


def test_the_items_of_a_set_are_not_final_before_it_ends() -> None:
    """A later item may equal an earlier one; the items of a list do not change."""

    class Tagged(BaseModel):
        names: list[str]
        tags: set[str]

    text = '{"names": ["a", "b", "a"], "tags": ["x", "y", "x"'
    partials, _ = stream("", Tagged, list(text))
    assert partials[-1].final_paths == frozenset({"$.names", "$.names[0]", "$.names[1]", "$.names[2]"})


def test_certain_conversions_are_shown_in_partial_values() -> None:
    """A number in quotes is shown as a number once it is complete."""
    partials, _ = stream("", OBJECT, ['{"title": "a", "count": "1', '2", "tags": '])
    assert [partial.value for partial in partials] == [{"title": "a"}, {"title": "a", "count": 12}]
    assert "$.count" in partials[-1].final_paths


def test_a_complete_answer_is_shown_as_its_type_serializes_it() -> None:
    """At the end of a candidate, it includes the defaults of the type, and all of it is final."""
    partial = last_of('{"title": "t", "items": [{"sku": "A"}]} and', Order)
    assert partial.value == {"title": "t", "due": None, "items": [{"sku": "A", "qty": 1}], "note": None}
    assert {"$", "$.items[0].qty"} <= partial.final_paths


class Written(BaseModel):
    """Values that a Python type serializes differently from the reply."""

    amount: Decimal | None = None
    code: Annotated[str, AfterValidator(str.upper)] = ""
    name: Annotated[str, StringConstraints(strip_whitespace=True)] = ""
    parts: list[Annotated[str, PlainSerializer(len)]] = []
    note: str = ""
    day: date | None = None


@pytest.mark.parametrize("size", [1, 4, 200])
def test_fields_changed_by_a_type_are_not_final_before_the_complete_value(size: int) -> None:
    """Validators, serializers and settings of a type change the shown value; other fields are final."""
    text = '{"note": " n ", "amount": "1e-07", "code": "ab", "name": " x ", "parts": ["a", "bc"], "day": "2024-05-01"'
    check(text + "} there", Written, [(text + "} there")[at : at + size] for at in range(0, len(text) + 7, size)])
    assert last_of(text + ', "x": 1', Written).final_paths == frozenset({"$.note", "$.day"})


def test_an_event_after_words_is_not_final() -> None:
    """It may be quoted in a sentence that declines, which then becomes the text of the event."""
    check("I can't {kind: 'say', text: 'a', o", Output.event(["say"]), list("I can't {kind: 'say', text: 'a', o"))
    begin = '{"kind": "say", "text": "Hello", "mood": 3, "x'
    assert last_of(f"Well: {begin}", Output.event(["say"])).final_paths == frozenset()
    assert "$.kind" in last_of(begin, Output.event(["say"])).final_paths


def test_with_a_root_validator_nothing_is_final() -> None:
    """It may change any member; members of a nested model are final if only the outer model has one."""

    class Whole(BaseModel):
        a: int
        inner: Item

        @model_validator(mode="after")
        def shifted(self) -> Self:
            self.a += 1
            return self

    assert last_of('{"a": 1, "inner": {"sku": "x", "qty": 2}, "x": 1', Whole).final_paths == frozenset()
    check('{"a": 1, "inner": {"sku": "x", "qty": 2}} ok', Whole, list('{"a": 1, "inner": {"sku": "x", "qty": 2}} ok'))


def test_a_better_candidate_restarts() -> None:
    """The draft is shown, then the answer in its fence; nothing of the draft is final any longer."""
    partials, outcome = stream("", OBJECT, ['Draft: {"title": "old"}. ', 'Final:\n```json\n{"title": "n', 'ew"}\n```'])
    assert [partial.restarted for partial in partials] == [False, True, False]
    assert partials[1].value == {"title": "n"}
    assert partials[1].final_paths == frozenset()
    assert outcome.value == {"title": "new"}


def test_a_snapshot_does_not_change() -> None:
    """A partial value that is accessed later is still that of its own time."""
    partials, _ = stream("", {}, ['{"a": [1, ', '2, {"b": "x', 'y", "c": 1', "}]}"])
    assert [partial.value for partial in partials] == [
        {"a": [1]},
        {"a": [1, 2, {"b": "x"}]},
        {"a": [1, 2, {"b": "xy"}]},
        {"a": [1, 2, {"b": "xy", "c": 1}]},
    ]


def test_reasoning_is_not_shown() -> None:
    """JSON in a reasoning block is not an answer, closed or not."""
    partials, _ = stream("", OBJECT, ["<thi", 'nk>{"title": "no"', "}</thi", "nk>", '{"title": "y'])
    assert [partial.value for partial in partials] == [{"title": "y"}]


def test_a_text_between_tags_grows() -> None:
    """The surrounding whitespace and the closing tag are not part of it."""
    partials, _ = stream("", Output.text("r"), ["<r>\n Once", " upon \n", "a</", "r> x"])
    assert [partial.value for partial in partials] == ["Once", "Once upon", "Once upon \na", "Once upon \na"]
    assert partials[-1].final_paths == frozenset({"$"})


def test_reasoning_between_tags_is_shown_as_it_comes_and_its_tags_end_nothing() -> None:
    """A closing tag inside reasoning closes nothing, so the text before it is not final."""
    text = "<r><think>not </r> yet</think> tea"
    partials, outcome = stream("", Output.text("r"), [text[:12], text[12:24], text[24:]])
    assert [partial.value for partial in partials] == ["<think>no", "<think>not", "<think>not </r> yet</think> tea"]
    assert all(partial.final_paths == frozenset() for partial in partials)
    assert isinstance(outcome, Rejected)


def test_a_path_is_final_once_the_next_key_has_arrived() -> None:
    """The colon of a known key proves that the object is not an envelope; its value need not have begun."""
    assert last_of('{"title": "a", "count":', OBJECT).final_paths == frozenset({"$.title"})


def test_runaway_whitespace_is_reported() -> None:
    """A driver may end a stream that only repeats itself; the reader continues."""
    reader = StreamReader({})
    reader.feed('{"a": 1')
    assert reader.runaway is None
    for _ in range(150):
        reader.feed("\n" * 20)
    assert reader.runaway is not None
    assert reader.runaway.code == "runaway_whitespace"


def test_runaway_repetition_is_reported() -> None:
    """Repeated words are reported, a long list of records is not."""
    again = StreamReader({})
    for _ in range(500):
        again.feed("and then it said ")
    assert again.runaway is not None
    assert again.runaway.code == "runaway_repetition"
    records = StreamReader({})
    records.feed(json.dumps([{"id": at, "name": f"item {at}", "ok": True} for at in range(500)]))
    assert records.runaway is None


def test_the_buffer_is_bounded() -> None:
    """A text that is too large is rejected as by `read`, and is not kept."""
    limits = Limits(max_chars=50)
    text = json.dumps(["word"] * 100)
    _, outcome = stream("", {}, cut(text, list(range(0, 800, 7))), limits=limits)
    assert isinstance(outcome, Rejected)
    assert outcome.reason is Reason.TOO_LARGE
    assert whole(outcome) == whole(read(text, {}, limits=limits))
    assert len(outcome.text) == 50


def test_a_closed_stream_rejects_further_chunks() -> None:
    """A reader reads only one reply."""
    reader = StreamReader({})
    reader.close()
    with pytest.raises(UsageError, match="closed"):
        reader.feed("{}")


@pytest.mark.parametrize("truncated", [None, True, False])
def test_how_the_model_ended_decides_as_in_read(truncated: bool | None) -> None:
    """`truncated` is passed at the end, when it is known."""
    reader = StreamReader({})
    reader.feed('{"a": [1, 2')
    assert whole(reader.close(truncated=truncated)) == whole(read('{"a": [1, 2', {}, truncated=truncated))


def test_a_rejection_reports_a_runaway_model() -> None:
    """In chunks or as a whole, and for every kind of contract that rejects it."""
    for contract in (OBJECT, Output.tagged("r", OBJECT), Output.text("r"), Output.block("a"), {"type": "string"}):
        for text, code in (
            ('{"title": "x' + " and so on" * 800, "repetition"),
            ('{"title": 1,' + " \n" * 1500, "whitespace"),
        ):
            outcome = read(text, contract, truncated=True)
            assert isinstance(outcome, Rejected)
            assert outcome.issues[-1].code == f"runaway_{code}"
            reported = read(text, contract, truncated=False)
            if isinstance(contract, BlockContract) or contract == {"type": "string"}:  # words have no end of their own
                assert isinstance(reported, Rejected)
                assert reported.reason is Reason.TRUNCATED
            else:
                assert not isinstance(reported, Rejected) or reported.issues[-1].code != f"runaway_{code}"


def test_a_complete_answer_before_endless_white_space_is_accepted() -> None:
    """If only whitespace follows, the answer was not truncated."""
    assert isinstance(read('{"title": "a"}' + " " * 2_001, OBJECT, truncated=True), Accepted)
    assert isinstance(read('{"title": "a"}' + " " * 100, OBJECT, truncated=True), Rejected)


def test_the_text_before_a_runaway_is_kept() -> None:
    """One copy of the repeated part is kept; other text is unchanged."""
    assert strip_runaway("It said: " + "no, no. " * 900) == "It said: no, no. "
    assert strip_runaway('{"a": 1,' + "\n" * 3_000) == '{"a": 1,'
    assert strip_runaway("as it is\n\n") == "as it is\n\n"


def test_a_stream_with_nothing_to_show_yet_shows_nothing() -> None:
    """An empty list in place of an object is not a value, so there is no partial value."""
    reader = StreamReader({"type": "object", "properties": {"title": {"type": "string"}}})
    shown = [partial.value for char in '[] {"title": 1' if (partial := reader.feed(char)) is not None]
    assert shown == [{}]


def test_a_superfluous_comma_holds_back_no_member_after_it() -> None:
    partial = StreamReader(dict[str, Any]).feed("{'n': 3,, 'tags': ['a', 'b'], 'no")
    assert partial is not None
    assert partial.value == {"n": 3, "tags": ["a", "b"]}
