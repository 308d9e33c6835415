"""The question of a paused run: the expected answer in words, an example, and the prompt in a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, cast

from flujo_aros.cli.screen import say, stderr_console
from flujo_aros.cli.shown import without_secrets
from flujo_aros.contract import Invalid, compile_contract
from flujo_aros.errors import ContractError
from flujo_aros.json_data import References
from flujo_aros.pipeline.results import PausedRun

_PLAIN: Final = ("string", "integer", "number", "boolean")
_DEEPEST: Final = 3
_DEEPEST_EXAMPLE: Final = 6
_MOST: Final = 30
_LONGEST: Final = 200
_TYPES: Final[Mapping[str, str]] = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "object": "an object",
    "boolean": "true or false",
    "null": "null",
    "array": "a list",
}
_LIMITS: Final[Mapping[str, str]] = {
    "pattern": "matching {}",
    "minimum": "at least {}",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "below {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} elements",
    "maxItems": "at most {} elements",
}
_FORMATS: Final[Mapping[str, tuple[str, str]]] = {
    "date": ("a date", "2026-01-31"),
    "date-time": ("a date with a time", "2026-01-31T09:30:00Z"),
    "time": ("a time", "09:30:00Z"),
    "email": ("an email address", "ann@example.com"),
    "uri": ("a URL", "https://example.com"),
    "uuid": ("a UUID", "123e4567-e89b-12d3-a456-426614174000"),
}


def asked(paused: PausedRun) -> list[str]:
    """Return the question of a paused run, line by line: the question itself, errors in the last answer, and the
    expected answer.
    """
    words = answer_words(paused.input_schema) if paused.input_schema else []
    return [f"{paused.step} asks:", paused.message, *words]


def answer_words(schema: Mapping[str, Any]) -> list[str]:
    """Return the expected answer in words, one line for each field, without any JSON Schema.

    >>> print(*answer_words({"enum": ["yes", "no"]}))
    answer with yes or no
    >>> order = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer", "minimum": 1}}}
    >>> print(*answer_words(order), sep="\\n")
    answer with an object:
      n  a whole number, at least 1, required
    """
    reader = _Asked(schema)
    fields = list(reader.fields(schema, 0))
    head = f"answer with {reader.words(schema, quoted=False)}"
    if not fields:
        return [head]
    width = max(len(name) for name, _ in fields)
    lines = [f"  {name:{width}}  {words}" for name, words in fields[:_MOST]]
    more = [f"  and {len(fields) - _MOST} more"] if len(fields) > _MOST else []
    return [f"{head}:", *lines, *more]


def example_answer(schema: Mapping[str, Any]) -> str | None:
    """Return an answer that would be accepted, as typed, or None if none is known or any string would be accepted.

    >>> example_answer({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer", "minimum": 3}}})
    '{"n": 3}'
    >>> example_answer({"type": "string"})
    """
    if not schema or (schema.get("type") == "string" and not schema.keys() & {"enum", "const", "format"}):
        return None
    example = _Asked(schema).example(schema, 0)
    try:
        if isinstance(compile_contract(dict(schema)).validate(example), Invalid):
            return None
    except ContractError:
        return None
    return example if isinstance(example, str) else json.dumps(example, ensure_ascii=False)


_UNFIT: Final = object()
_WORDS_OF_TRUTH: Final = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}


@dataclass(frozen=True, slots=True)
class _Field:
    """A field that can be typed on one line."""

    schema: Mapping[str, Any]
    required: bool
    words: str

    def read(self, line: str) -> Any:
        """Return the typed value, None for an empty line, or `_UNFIT` if the value does not fit."""
        if not line.strip() and not self.required:
            return None
        value: Any = line
        if self.schema.get("type") == "boolean":
            value = _WORDS_OF_TRUTH.get(line.strip().lower(), line)
        elif self.schema.get("type") != "string":
            with suppress(ValueError):
                value = json.loads(line)
        return _UNFIT if isinstance(compile_contract(dict(self.schema)).validate(value), Invalid) else value


class _Asked:
    """Reads one schema, with its `$ref`s."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._references = References(dict(root))

    def fields(self, schema: Mapping[str, Any], depth: int) -> Iterator[tuple[str, str]]:
        """Yield the fields of an object, or of the objects in a list; those of inner objects are indented below."""
        known = self._object_schema(schema)
        required = cast("list[str]", known.get("required", []))
        for name, each in _mapping(known.get("properties")).items():
            inner = self._simple(_mapping(each))
            words = [self.words(inner)]
            if name in required:
                words.append("required")
            elif inner.get("default") is not None:
                words.append(f"{_json(inner['default'])} if left out")
            label = ", ".join(words)
            description = " ".join(str(inner.get("description", "")).split())
            yield f"{'  ' * depth}{name}", f"{label}: {description}" if description else label
            if depth < _DEEPEST:
                yield from self.fields(inner, depth + 1)

    def plain_fields(self, schema: Mapping[str, Any]) -> dict[str, _Field]:
        """Return the fields of an object that has only plain ones, or an empty mapping for any other."""
        known = self._simple(schema)
        required = cast("list[str]", known.get("required", []))
        found: dict[str, _Field] = {}
        for name, each in _mapping(known.get("properties")).items():
            inner = self._simple(_mapping(each))
            if all(isinstance(choice, str) for choice in inner.get("enum", [None])):
                inner = {**inner, "type": "string"}
            if inner.get("type") not in _PLAIN:
                return {}
            found[name] = _Field(inner, name in required, self.words(inner, quoted=False))
        return found if known.get("type") == "object" and set(required) <= found.keys() else {}

    def _object_schema(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the schema of the object, of the elements of the list, or of the only possible alternative."""
        known = self._simple(schema)
        if known.get("type") == "array":
            return self._simple(_mapping(known.get("items")))
        several = [self._simple(each) for each in _alternatives(known)]
        objects = [each for each in several if each.get("type") == "object"]
        return objects[0] if len(objects) == 1 else known

    def words(self, schema: Mapping[str, Any], depth: int = 0, *, quoted: bool = True) -> str:
        """Return the type and its limits in a few words. `quoted` means that a string has to be written as JSON."""
        if depth > _DEEPEST:
            return "any JSON value"
        known = self._simple(schema)
        choices = known.get("enum") or ([known["const"]] if "const" in known else None)
        if choices is not None:
            return _either([_json(each) if quoted or not isinstance(each, str) else each for each in choices])
        if several := _alternatives(known):
            return _either([self.words(each, depth + 1, quoted=quoted) for each in several])
        kinds = known.get("type")
        if isinstance(kinds, list):
            each = [{**known, "type": kind} for kind in cast("list[str]", kinds)]
            return _either([self.words(one, depth, quoted=quoted) for one in each])
        if kinds == "string" and known.get("format") in _FORMATS:
            return "{} such as {}".format(*_FORMATS[known["format"]])
        parts = [_TYPES.get(str(kinds), "any JSON value")]
        if kinds == "array" and known.get("items"):
            parts.append(f"each {self.words(_mapping(known['items']), depth + 1)}")
        parts += [words.format(known[key]) for key, words in _LIMITS.items() if known.get(key) is not None]
        return ", ".join(parts)

    def example(self, schema: Mapping[str, Any], depth: int) -> Any:
        """Return a value that the schema probably accepts; only `validate` can tell."""
        known = self._simple(schema if depth <= _DEEPEST_EXAMPLE else {"type": "null"})
        for key in ("const", "default"):
            if known.get(key) is not None:
                return known[key]
        for key in ("examples", "enum"):
            if known.get(key):
                return known[key][0]
        if several := _alternatives(known):
            return self.example(several[0], depth + 1)
        kind = known.get("type")
        kind = cast("list[str]", kind)[0] if isinstance(kind, list) else kind
        if kind == "object":
            return self._example_object(known, depth)
        if kind == "array":
            return [self.example(_mapping(known.get("items")), depth + 1)] * min(known.get("minItems", 1), _MOST)
        if kind in ("integer", "number"):
            return _number(known)
        if kind == "string":
            text = _FORMATS.get(str(known.get("format")), ("", "text"))[1]
            return text.ljust(min(known.get("minLength", 0), _LONGEST), "x")[: known.get("maxLength")]
        return {"boolean": True, "null": None}.get(str(kind), "text")

    def _example_object(self, known: Mapping[str, Any], depth: int) -> dict[str, Any]:
        properties = _mapping(known.get("properties"))
        names = cast("list[str]", known.get("required") or list(properties)[: 1 - min(depth, 1)])
        return {name: self.example(_mapping(properties.get(name)), depth + 1) for name in names}

    def _simple(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the schema itself behind a `$ref`, or the only one that it consists of."""
        known = schema
        for _ in range(_DEEPEST):
            whole = cast("list[Any]", known.get("allOf", []))
            if isinstance(reference := known.get("$ref"), str):
                key, behind = "$ref", self._references.resolve(reference) or {}
            elif len(whole) == 1:
                key, behind = "allOf", dict(_mapping(whole[0]))
            else:
                break
            known = behind | {name: value for name, value in known.items() if name != key}
        return known


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _alternatives(known: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(map(_mapping, cast("list[Any]", known.get("anyOf") or known.get("oneOf") or [])))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _either(words: list[str]) -> str:
    known = list(dict.fromkeys(words))
    if len(known) < 2:
        return "".join(known)
    last = ", or " if any(" or " in each for each in known) else " or "
    return last.join([", ".join(known[:-1]), known[-1]])


def _number(known: Mapping[str, Any]) -> Any:
    if "exclusiveMinimum" in known:
        return known["exclusiveMinimum"] + 1
    return known.get("minimum", min(1, known.get("maximum", 1)))


def at_a_terminal() -> bool:
    """Return whether there is a terminal at which a person can be asked."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()  # pyright: ignore[reportUnnecessaryComparison]  # None when the parent closed it


def ask(paused: PausedRun) -> str | None:
    """Ask the question of a paused run on the terminal; return None without an answer (Ctrl-D).

    An object of plain fields is asked for field by field, unless all of it is typed as JSON.
    """
    schema = paused.input_schema or {}
    fields = _Asked(schema).plain_fields(schema)
    example = example_answer(schema)
    if fields:
        known = ["one field at a time, or all of them as JSON; Enter skips an optional one"]
    else:
        known = [] if example is None else [f"for example:  {example}"]
    say(without_secrets("\n".join(["", *asked(paused), *known])))
    if not fields:
        return _line("", needed=True)
    answer: dict[str, Any] = {}
    for name, field in fields.items():
        while True:
            line = _line(name, needed=field.required)
            if line is None or (not answer and line.startswith("{")):
                return line
            value = field.read(line)
            if value is not _UNFIT:
                break
            say(f"expected {field.words}")
        if value is not None:
            answer[name] = value
    return json.dumps(answer, ensure_ascii=False)


def _line(name: str, *, needed: bool) -> str | None:
    """Return a typed line, or None at the end of the input (Ctrl-D). It may be empty only if the field is optional."""
    while True:
        stderr_console().print(without_secrets(f"{name}> "), end="")  # stdout is for the result
        line = sys.stdin.readline()
        if not line:
            return None
        if line.strip() or not needed:
            return line.rstrip("\n")
