"""One example for each repair code, and the table of them in docs/reading.md.

Run `python tests/repair_codes.py` to print the table.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from pydantic import BaseModel

import flujo_aros.reading
from flujo_aros import Accepted, Output, Risk, read
from flujo_aros.reading import scalars, select

READING = Path(flujo_aros.reading.__file__ or "").parent
LOGGING_CALLS = {"_log", "_edit", "_convert", "Edit", "Choice", "Time", "_adopt", "_read_inner", "_read_within"}
AMOUNTS = {code for _, _, codes in scalars.FORMS for code in codes} | scalars.CODES
"""How a number was written, which is logged as it was found."""
CODE = re.compile(r"[a-z]+(?:[-_][a-z]+)*")


NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})


class Boat(BaseModel):
    """The contract of a few examples."""

    name: str = ""
    built: date | None = None
    crew: int = 0


class Meeting(BaseModel):
    """A contract with a start time."""

    start: datetime


class Nap(BaseModel):
    """A contract with a duration."""

    length: timedelta


class Example(NamedTuple):
    """A reply that needs this repair, its contract, and options of `read()`."""

    text: str
    contract: Any = True
    options: Mapping[str, Any] = NO_OPTIONS


def has(**properties: Any) -> dict[str, Any]:
    """Return the schema of an object with these keys."""
    return {"type": "object", "properties": properties, "required": list(properties)}


INT, NUM, TEXT, BOOL = ({"type": kind} for kind in ("integer", "number", "string", "boolean"))
INTS = {"type": "array", "items": INT}
OR_NULL = {"anyOf": [INT, {"type": "null"}]}
LEVEL = {"enum": ["low", "high"]}
LOSSY: dict[str, Any] = {"risk": Risk.LOSSY}

EXAMPLES: dict[str, Example] = {
    # around the value
    "fence": Example('```json\n{"a": 1}\n```'),
    "prose-around": Example('Sure: {"a": 1}'),
    "reasoning": Example('<think>…</think> {"a": 1}'),
    "bom": Example('\ufeff{"a": 1}'),
    "picked-last": Example('{"a": 1} or rather {"a": 2}'),
    "picked-first": Example('{"a": 1} or rather {"a": 2}', {}, {"pick": "first"}),
    "collected": Example('{"a": 1}\n{"a": 2}', {"type": "array", "items": has(a=INT)}),
    "double-encoded": Example('"[1, 2]"', INTS),
    "escaped": Example('{\\"a\\": 1}', has(a=INT)),
    "html-entities": Example("{&quot;a&quot;: 1}", has(a=INT)),
    "doubled-braces": Example('{{"a": 1}}', has(a=INT)),
    "key-value-lines": Example("a: 1\nb: 2", has(a=INT, b=INT)),
    "keyword-arguments": Example("Ticket(a=1)", has(a=INT) | {"title": "Ticket"}),
    "field-tags": Example("<a>1</a>", has(a=INT)),
    "table": Example("| a |\n|---|\n| 1 |", has(a=INT)),
    "toml": Example("[a]\nb = 1", has(a=has(b=INT))),
    "list-items": Example("- a\n- b", {"type": "array", "items": {"type": "string"}}),
    "envelope": Example('{"result": {"a": 1}}', has(a=INT)),
    # punctuation
    "trailing-comma": Example('{"a": 1,}'),
    "extra-comma": Example('{"a": 1,, "b": 2}'),
    "odd-comma": Example('{"a": 1; "b": 2}'),
    "missing-comma": Example('{"a": 1 "b": 2}'),
    "missing-colon": Example('{"a" 1}', has(a=INT)),
    "odd-colon": Example('{"a" = 1}', has(a=INT)),
    "odd-bracket": Example('｛"a": 1｝', has(a=INT)),
    "missing-closer": Example('{"a": [1, 2}'),
    "wrong-closer": Example('{"a": [1, 2}}', has(a=INTS)),
    "extra-closer": Example('{"a": {"b": 1]}}'),
    "early-closer": Example('{"a": 1}, "b": 2}', has(a=INT, b=INT)),
    "missing-opener": Example('"a": 1, "b": 2}', has(a=INT, b=INT)),
    "extra-opener": Example('{"a": [{{"b": 1}]}'),
    "tuple": Example('{"a": (1, 2)}'),
    "comment": Example('{"a": 1 /* one */}'),
    "odd-space": Example('{"a":\u200b1}'),
    "escaped-space": Example('{\\n"a": 1}', has(a=INT)),
    "truncated": Example('{"a": [1, 2', {}, LOSSY),
    # strings and keys
    "quotes": Example("{'a': 'x'}"),
    "doubled-quotes": Example('{"a": ""x""}', has(a=TEXT)),
    "inner-quote": Example('{"a": "say "hi" now"}'),
    "missing-quote": Example('{"a": "x, "b": 2}', has(a=TEXT, b=INT)),
    "control-character": Example('{"a": "x\ny"}'),
    "invalid-escape": Example('{"a": "\\d+"}'),
    "control_escape": Example('{"a": "\\frac{1}{2}"}', has(a=TEXT)),
    "concatenation": Example('{"a": "x" + "y"}'),
    "unquoted-key": Example("{a: 1}"),
    "unquoted-value": Example('{"a": blue}'),
    "call-around": Example('{"a": ObjectId("5f")}'),
    "near_miss_key": Example('{"Unit Price": 1}', has(unit_price=INT)),
    "moved_key": Example('{"name": "Alma", "size": {"crew": 4}}', Boat),
    "alias": Example('{"qty": 1}', has(quantity={**INT, "x-aros": {"aliases": ["qty"]}})),
    "duplicate_key": Example('{"a": 1, "a": 1}'),
    "ignored_key": Example('{"name": "Alma", "port": "Kiel"}', Boat),
    # literals and numbers
    "foreign-literal": Example('{"a": None}'),
    "loose-number": Example('{"a": .5}'),
    "digit-groups": Example('{"a": 1,500}', has(a=INT)),
    "decimal-comma": Example('{"a": "1.234,56"}', has(a=NUM)),
    "odd-digits": Example('{"a": "−５"}', has(a=INT)),
    "currency": Example('{"price": "€ 19.90"}', has(price=NUM)),
    "percent": Example('{"share": "85%"}', has(share={**NUM, "maximum": 1})),
    "unit": Example('{"dose_mg": "500 mg"}', has(dose_mg=NUM)),
    "magnitude": Example('{"a": "1.5 million"}', has(a=NUM)),
    "fraction": Example('{"a": "1 ½"}', has(a=NUM)),
    "hex-number": Example('{"a": "0x1F"}', has(a=INT)),
    "numeral": Example('{"a": "two"}', has(a=INT)),
    "leading-zeros": Example('{"a": "007"}', has(a=INT)),
    "written-date": Example('{"day": "3 April 2025"}', has(day={**TEXT, "format": "date"})),
    "iso-form": Example('{"at": "2025-04-03 10:30Z"}', has(at={**TEXT, "format": "date-time"})),
    "written-time": Example('{"length": "1h 30m"}', Nap),
    # what the schema wants
    "string-to-number": Example('{"a": "3"}', has(a=INT)),
    "string-to-boolean": Example('{"a": "yes"}', has(a=BOOL)),
    "string-to-null": Example('{"a": "None"}', has(a=OR_NULL)),
    "no-value": Example('{"a": "N/A"}', has(a=OR_NULL)),
    "number-to-string": Example('{"a": 1.10}', has(a=TEXT)),
    "number-to-boolean": Example('{"a": 1}', has(a=BOOL)),
    "literal-to-string": Example('{"a": true}', has(a=TEXT)),
    "boolean-word": Example("The answer is true.", BOOL),
    "stated-value": Example("The count is 42.\n\nThat is 6 * 7.", INT),
    "whole-number": Example('{"crew": 4.0}', Boat),
    "rounded": Example('{"a": 3.7}', has(a=INT), LOSSY),
    "enum-alias": Example('{"a": "urgent"}', has(a={**LEVEL, "x-aros": {"aliases": {"high": ["urgent"]}}})),
    "enum-case": Example('{"a": "High"}', has(a=LEVEL)),
    "enum-word": Example('{"level": "level: high"}', has(level=LEVEL)),
    "wrapped-in-object": Example('["low", "high"]', has(levels={"type": "array", "items": LEVEL})),
    "wrapped-in-list": Example('{"a": 1}', has(a=INTS)),
    "unwrapped-list": Example('{"a": [1]}', has(a=INT)),
    "stringified": Example('{"a": "[1, 2]"}', has(a=INTS)),
    "lax-conversion": Example('{"start": "2020-01-01"}', Meeting),
    "null-to-empty": Example('{"a": null}', has(a={**INTS, "default": []})),
    "emphasis": Example("**42**", INT),
    "picked-place": Example('```json\n{"a": 1}\n```\nnot {"a": 2}', has(a=INT)),
    "block-quote": Example('> {"a": 1}', has(a=INT)),
    "earlier-tag": Example("<n>1</n> no: <n>2</n>", Output.tagged("n", INT)),
    "tag-form": Example("<N k='v'>2</N>", Output.tagged("n", INT)),
    "cleaned": Example('{"kind": "said", "text": "Aye.", "scores": {"a": "high"}}', Output.event(["said"])),
    "fallback-kind": Example('{"text": "Aye."}', Output.event(["said"])),
    "missing-field": Example('{"kind": "said", "text": "Aye."}', Output.event(["said"], ["mood"])),
    "prose-wrapped": Example("Aye.", Output.event(["said"])),
}


@cache
def codes_in_source() -> frozenset[str]:
    """Return every repair code in the source of the reader, found where edits are created."""
    found = {*AMOUNTS, *select.NOTATIONS}
    for file in sorted(READING.glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                found.update(_codes_of(node))
    return frozenset(found)


def _codes_of(function: ast.FunctionDef) -> Iterator[str]:
    values: dict[str, list[ast.expr]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            values.setdefault(node.targets[0].id, []).append(node.value)
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in LOGGING_CALLS or any(_is_risk(part) for part in node.args):
                yield from _words(node.args, values)
        elif isinstance(node, ast.Tuple) and any(_is_risk(part) for part in node.elts):
            yield from _words(node.elts, values)


def _is_risk(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Risk"


def _words(parts: list[ast.expr], values: dict[str, list[ast.expr]], deep: int = 3) -> Iterator[str]:
    for part in parts:
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and CODE.fullmatch(part.value):
            yield part.value
        elif isinstance(part, ast.IfExp):
            yield from _words([part.body, part.orelse], values, deep)
        elif (
            isinstance(part, ast.JoinedStr) and "pick" in ast.unparse(part) and isinstance(part.values[0], ast.Constant)
        ):
            yield from (f"{part.values[0].value}{pick}" for pick in ("first", "last"))
        elif isinstance(part, ast.Name) and deep:
            yield from _words(values.get(part.id, []), values, deep - 1)


def table() -> str:
    """Return a Markdown table of all codes with their risk and an example."""
    rows = ["| code | risk | reply | value |", "|---|---|---|---|"]
    for code, example in EXAMPLES.items():
        outcome = read(example.text, example.contract, **example.options)
        assert isinstance(outcome, Accepted), (code, outcome)
        risks = sorted({repair.risk.name for repair in outcome.repairs if repair.code == code})
        value = outcome.to_dict()["value"]
        rows.append(f"| `{code}` | {', '.join(risks)} | {_cell(_shown(example.text))} | {_cell(_json(value))} |")
    return "\n".join(rows)


def _shown(text: str) -> str:
    return text.replace("\n", "↵").replace("\ufeff", "‹U+FEFF›").replace("\u200b", "‹U+200B›")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _cell(text: str) -> str:
    ticks = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    pad = " " if text[:1] == "`" or text[-1:] == "`" else ""
    return f"{ticks}{pad}{text}{pad}{ticks}".replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(table() + "\n")
