"""Inputs for the property tests: schemas with valid values, ways to damage a text, and arbitrary text."""

import json
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from itertools import cycle
from typing import Any, Literal
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from pydantic import BaseModel, create_model


def examples(count: int) -> settings:
    """Return how many examples to try: ten times `count` in the `dev` profile, half of it in the quick one."""
    return settings(max_examples=count * settings.default.max_examples // 100)


# No backslash and no control character: what they may stand for is a guard of its own, with tests of its own.
PLAIN = st.characters(max_codepoint=0xFFFF, exclude_categories=("Cs", "Cc"), exclude_characters="\\")
CALM = st.sampled_from(string.ascii_letters + string.digits + "    .,:;!?()-_/äßéñ中文я🙂")
TRICKY = st.sampled_from("ab {}[],:'`“”#/*<>&;=+-.0 1\n")
KEYS = st.sampled_from(
    ["a", "b", "name", "unit_price", "tags", "qty", "kind", "note", "naïve", "键", "x y", "of-2", ""]
)
NAMES = st.sampled_from(["a", "b", "name", "unit_price", "tags", "qty", "note", "items"])


@dataclass(frozen=True)
class Pair:
    """A JSON Schema and a value that strictly satisfies it."""

    schema: dict[str, Any]
    value: Any


def leaves(text: st.SearchStrategy[str]) -> st.SearchStrategy[Pair]:
    """Generate scalars of every kind, with `text` for strings."""
    return st.one_of(
        st.integers(-(10**20), 10**20).map(lambda v: Pair({"type": "integer"}, v)),
        st.floats(-1e12, 1e12).map(lambda v: Pair({"type": "number"}, v)),
        st.booleans().map(lambda v: Pair({"type": "boolean"}, v)),
        text.map(lambda v: Pair({"type": "string"}, v)),
        text.map(lambda v: Pair({"type": ["string", "null"]}, v)),
        st.sampled_from(["low", "medium", "high"]).map(lambda v: Pair({"enum": ["low", "medium", "high"]}, v)),
        st.just(Pair({"type": ["string", "null"]}, None)),
        st.integers(0, 9).map(lambda v: Pair({"anyOf": [{"type": "integer"}, {"type": "null"}]}, v)),
        text.map(lambda v: Pair({}, v)),
    )


@st.composite
def objects(draw: st.DrawFn, members: st.SearchStrategy[Pair], keys: st.SearchStrategy[str] = KEYS) -> Pair:
    """Generate objects with some declared members, some of them required."""
    found = draw(st.dictionaries(keys, members, max_size=4))
    schema: dict[str, Any] = {"type": "object", "properties": {key: pair.schema for key, pair in found.items()}}
    required = draw(st.lists(st.sampled_from(sorted(found)), unique=True)) if found else []
    kept = [key for key in found if key in required or draw(st.booleans())]
    if required:
        schema["required"] = required
    if draw(st.booleans()):
        schema["additionalProperties"] = False
    return Pair(schema, {key: found[key].value for key in draw(st.permutations(kept))})


def arrays(items: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    """Generate lists of values that share a schema."""
    return st.lists(items, max_size=3).map(
        lambda pairs: Pair(
            {"type": "array", "items": {"anyOf": [p.schema for p in pairs] or [{}]}}, [p.value for p in pairs]
        )
    )


def pairs(text: st.SearchStrategy[str], keys: st.SearchStrategy[str] = KEYS) -> st.SearchStrategy[Pair]:
    """Generate schemas of any shape with a matching value."""
    return st.recursive(leaves(text), lambda inner: st.one_of(objects(inner, keys), arrays(inner)), max_leaves=8)


def whole_objects(text: st.SearchStrategy[str]) -> st.SearchStrategy[Pair]:
    """Generate objects with at least one member, and every key declared and required, as models are asked for."""
    scalars = leaves(text)
    members = st.one_of(scalars, arrays(scalars), objects(scalars, NAMES).map(_closed))
    return st.dictionaries(NAMES, members, min_size=1, max_size=4).map(
        lambda found: _closed(
            Pair(
                {"type": "object", "properties": {key: pair.schema for key, pair in found.items()}},
                {key: pair.value for key, pair in found.items()},
            )
        )
    )


def _closed(pair: Pair) -> Pair:
    return Pair(pair.schema | {"required": sorted(pair.value), "additionalProperties": False}, pair.value)


# --- pydantic -------------------------------------------------------------------------------------------------------


class Level(Enum):
    """An enumeration of two words."""

    LOW = "low"
    HIGH = "high"


class Contact(BaseModel):
    """A nested model."""

    name: str
    email: str | None = None


_TYPES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (int, st.integers()),
    (float, st.floats(-1e9, 1e9)),
    (bool, st.booleans()),
    (str, st.text(PLAIN)),
    (int | None, st.none() | st.integers()),
    (list[int], st.lists(st.integers(), max_size=3)),
    (dict[str, bool], st.dictionaries(st.sampled_from(["p", "q", "r"]), st.booleans())),
    (tuple[int, str], st.tuples(st.integers(), st.text(PLAIN)).map(list)),
    (Literal["red", "green"], st.sampled_from(["red", "green"])),
    (Level, st.sampled_from(["low", "high"])),
    (date, st.dates().map(date.isoformat)),
    (datetime, st.datetimes().map(datetime.isoformat)),
    (Decimal, st.decimals(-1000, 1000, places=2).map(str)),
    (UUID, st.uuids().map(str)),
    (Contact, st.fixed_dictionaries({"name": st.text(PLAIN)}, optional={"email": st.none() | st.text(PLAIN)})),
    (list[Contact], st.lists(st.fixed_dictionaries({"name": st.text(PLAIN)}), max_size=2)),
]


@st.composite
def models(draw: st.DrawFn) -> tuple[type[BaseModel], dict[str, Any]]:
    """Generate a pydantic model of common types, and JSON data that it accepts unchanged."""
    chosen = draw(st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from(_TYPES), min_size=1, max_size=4))
    fields: dict[str, Any] = {name: (kind, ...) for name, (kind, _) in chosen.items()}
    return create_model("Made", **fields), {name: draw(values) for name, (_, values) in chosen.items()}


# --- any text -------------------------------------------------------------------------------------------------------

SOUP = st.text(st.sampled_from("{}[]\":,'\\/*#`<>-+.eE0129truefalsnN \n“”«»&;=()…~|_ax"), max_size=60)
ANY_TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
_TOKENS = st.sampled_from(
    [
        "```json\n",
        "```",
        "\n",
        '{"a":',
        "{'a': ",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        '"',
        "'",
        "\\",
        "\\u",
        "\\ud83d",
        "1",
        "-",
        "1e",
        "true",
        "None",
        "NaN",
        "...",
        "<think>",
        "</think>",
        "//",
        "/*",
        "*/",
        "#",
        "&quot;",
        "\\n",
        '\\"',
        "a",
        " ",
        "“",
        '"""',
        "+",
        "name: Ann\n",
        "- ",
        "> ",
        "{{",
        "}}",
        "<|channel|>final<|message|>",
        "I'm sorry",
        "\ufeff",
        "(",
        ")",
    ]
)
TOKENS = st.lists(_TOKENS, max_size=30).map("".join)


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """Generate JSON with some characters dropped, doubled, inserted or swapped."""
    text = list(json.dumps(draw(pairs(st.text(TRICKY, max_size=8))).value, ensure_ascii=draw(st.booleans())))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        what = draw(st.sampled_from(["drop", "double", "insert"]))
        text[at : at + 1] = {
            "drop": [],
            "double": text[at : at + 1] * 2,
            "insert": [draw(SOUP)[:2], *text[at : at + 1]],
        }[what]
    return "".join(text)


TEXTS = st.one_of(ANY_TEXT, SOUP, TOKENS, damaged())
SCHEMAS = st.one_of(
    st.just({}),
    pairs(st.just("x")).map(lambda pair: pair.schema),
    st.sampled_from(
        [{"type": "string"}, {"type": "integer"}, {"type": "boolean"}, {"enum": ["low", "high"]}, {"type": "array"}]
    ),
    st.just({"$ref": "#/$defs/n", "$defs": {"n": {"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}}}}),
)


# --- damage that loses nothing --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Style:
    """How to write a value: each field is one way in which models deviate from JSON."""

    quote: str = '""'
    key_quote: str | None = None
    true: str = "true"
    false: str = "false"
    null: str = "null"
    comma: str = ", "
    last: str = ""
    colon: str = ": "
    line_break: str = "\\n"


def write(value: Any, *styles: Style) -> str:
    """Write a value in these styles in turns. Strings must not contain what a style cannot express."""
    return _write(value, cycle(styles))


def _write(value: Any, styles: Iterator[Style]) -> str:
    style = next(styles)
    if isinstance(value, dict | list):
        parts: list[str] = []
        for part in value:
            key = "" if isinstance(value, list) else _string(part, style, style.key_quote) + style.colon
            parts += [style.comma, key + _write(value[part] if key else part, styles)]
            style = next(styles)
        opener, closer = "{}" if isinstance(value, dict) else "[]"
        return opener + "".join(parts[1:]) + (style.last if parts else "") + closer
    if isinstance(value, str):
        return _string(value, style, None)
    named = {True: style.true, False: style.false, None: style.null}
    return named[value] if value is None or isinstance(value, bool) else json.dumps(value)


def _string(text: str, style: Style, quote: str | None) -> str:
    left, right = (quote if quote is not None else style.quote) or ("", "")
    body = text.replace("\\", "\\\\").replace("\n", style.line_break)
    if left and left == right:
        body = body.replace(left, f"\\{left}")
    return f"{left}{body}{right}"


STYLES = st.builds(
    Style,
    quote=st.sampled_from(['""', "''"]),
    key_quote=st.sampled_from([None, ""]),
    true=st.sampled_from(["true", "True"]),
    null=st.sampled_from(["null", "None"]),
    comma=st.sampled_from([", ", ",\n", ", // next\n"]),
    colon=st.sampled_from([": ", " /* so */: ", " // so\n: "]),
    last=st.sampled_from(["", ",", " ,\n"]),
)

MIXED = st.lists(
    st.builds(
        Style,
        quote=st.sampled_from(['""', '""', "''", "“”", "``"]),
        key_quote=st.sampled_from([None, None, ""]),
        true=st.sampled_from(["true", "True"]),
        null=st.sampled_from(["null", "None"]),
        comma=st.sampled_from([", ", ",", "\n, ", ", // next\n", " # so\n, ", ",, ", "\n", "; ", " <!-- so -->, "]),
        colon=st.sampled_from([": ", "\n: ", " => ", " = ", "：", " /* so */: ", ":\u00a0"]),
        last=st.sampled_from(["", "", ",", " ,\n"]),
    ),
    min_size=2,
    max_size=8,
)
"""Styles that take turns: another one at each place, as the defects of the reader show where they meet."""

Damage = Callable[[Any], str]

DAMAGE: dict[str, Damage] = {
    "fence": lambda v: f"```json\n{json.dumps(v, indent=2)}\n```",
    "plain fence": lambda v: f"Here it is:\n\n```\n{json.dumps(v)}\n```\nThat is all.",
    "prose": lambda v: f"Sure, here you are:\n{json.dumps(v)}\nIs that what you need?",
    "inline prose": lambda v: f"The answer is {json.dumps(v)}.",
    "reasoning": lambda v: f'<think>Perhaps {{"a": 0}}? No.</think>\n{json.dumps(v)}',
    "byte order mark": lambda v: f"\ufeff{json.dumps(v)}",
    "trailing comma": lambda v: write(v, Style(last=",")),
    "trailing comma and space": lambda v: write(v, Style(last=" , ")),
    "trailing comma and line": lambda v: write(v, Style(last=",\n")),
    "single quotes": lambda v: write(v, Style(quote="''")),
    "python literals": lambda v: write(v, Style(true="True", false="False", null="None")),
    "unquoted keys": lambda v: write(v, Style(key_quote="")),
    "line comments": lambda v: write(v, Style(comma=", // next\n")),
    "block comments": lambda v: write(v, Style(comma=" /* next */, ")),
    "comments behind keys": lambda v: write(v, Style(quote="''", colon=" /* so */: ")),
    "comments behind unquoted keys": lambda v: write(v, Style(key_quote="", colon=" // so\n: ")),
    "raw line breaks": lambda v: write(v, Style(line_break="\n")),
    "doubled commas": lambda v: write(v, Style(comma=",, ")),
    "equals signs": lambda v: write(v, Style(colon=" = ")),
    "no-break spaces": lambda v: write(v, Style(colon=":\u00a0")),
    "double encoding": lambda v: json.dumps(json.dumps(v)),
    "escaped quotes": lambda v: json.dumps(json.dumps(v))[1:-1],
    "envelope": lambda v: json.dumps({"result": v}),
    "tool call": lambda v: json.dumps({"name": "answer", "arguments": v}),
    "list of one": lambda v: json.dumps([v]),
}
CALM_DAMAGE: dict[str, Damage] = {
    "smart quotes": lambda v: write(v, Style(quote="“”")),
    "low quotes": lambda v: write(v, Style(quote="„“")),
    "backticks": lambda v: write(v, Style(quote="``")),
    "guillemets": lambda v: write(v, Style(quote="«»")),
    "entities": lambda v: json.dumps(v, ensure_ascii=False).replace('"', "&quot;"),
}
