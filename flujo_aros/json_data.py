"""JSON helpers for every layer: types of values, paths in a value, the `$ref`s of a schema, and the escapes of
strings."""

from __future__ import annotations

import ast
import copy
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeAlias, TypeGuard, cast


def is_dict(value: object) -> TypeGuard[dict[str, Any]]:
    """Return whether a JSON value is an object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Return whether a JSON value is an array."""
    return isinstance(value, list)


def is_number(value: object) -> TypeGuard[int | float]:
    """Return whether a value is a number; True and False are not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_integer(value: object) -> TypeGuard[int]:
    """Return whether a value is an integer; True and False are not."""
    return isinstance(value, int) and not isinstance(value, bool)


SCHEMAS_BY_NAME: Final = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
"""The keywords of JSON Schema whose value is a mapping of names to schemas."""
SCHEMA_LISTS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
"""The keywords whose value is a list of schemas."""
_SINGLE_SCHEMAS: Final = ("items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else")

CONSTRAINING: Final = frozenset(
    {
        *("$ref", "$dynamicRef", "type", "enum", "const", "format", "pattern", "minLength", "maxLength"),
        *("multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        *("properties", "patternProperties", "additionalProperties", "propertyNames", "required"),
        *("minProperties", "maxProperties", "dependentRequired", "dependentSchemas", "dependencies"),
        *("unevaluatedProperties", "unevaluatedItems", "items", "additionalItems", "prefixItems"),
        *("contains", "minContains", "maxContains", "minItems", "maxItems", "uniqueItems"),
        *("anyOf", "oneOf", "allOf", "not", "if", "then", "else"),
    }
)
"""The keywords of JSON Schema that constrain a value."""

ANNOTATING: Final = frozenset(
    {
        *("$schema", "$id", "$anchor", "$dynamicAnchor", "$vocabulary", "$comment", "$defs", "definitions", "id"),
        *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"),
        *("contentEncoding", "contentMediaType", "contentSchema"),
        *("example", "nullable", "discriminator", "xml", "externalDocs", "optional", "enumNames", "aros"),
    }
)
"""Keywords of JSON Schema and OpenAPI that do not constrain a value."""

_LITERAL: Final = ("const", "default", "enum", "examples", "required", "x-aros")
"""The keywords of JSON Schema whose value is data, not a schema."""

_MAX_REFS: Final = 64
"""A chain of `$ref`s longer than this is circular."""


class References:
    """Resolves the `$ref`s of one JSON Schema within its document: pointers and anchors."""

    def __init__(self, root: dict[str, Any]) -> None:
        self.root = root

    def resolve(self, ref: str) -> dict[str, Any] | None:
        """Return the schema that a `$ref` such as `#/$defs/a` or `#anchor` points to, or None if it is not in this
        document.
        """
        if ref != "#" and not ref.startswith("#/"):
            return self._anchors.get(ref.removeprefix("#"))
        here: object = self.root
        for part in ref.removeprefix("#").split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if is_dict(here):
                here = here.get(name)
            elif is_list(here) and name.isdecimal() and int(name) < len(here):
                here = here[int(name)]
            else:
                return None
        return here if is_dict(here) else None

    @cached_property
    def _anchors(self) -> dict[str, dict[str, Any]]:
        found = ((node.get(key), node) for node in objects_in(self.root) for key in ("$anchor", "$dynamicAnchor"))
        return {name: node for name, node in found if isinstance(name, str)}


def follow_refs(schema: object, root: object) -> dict[str, Any]:
    """Return a schema with the `$ref` at its top resolved, repeatedly if needed, or an empty mapping if the target does
    not exist.

    >>> follow_refs({"$ref": "#/$defs/a"}, {"$defs": {"a": {"type": "string"}}})
    {'type': 'string'}
    """
    references = References(root if is_dict(root) else {})
    for _ in range(_MAX_REFS):
        if not is_dict(schema):
            return {}
        ref = schema.get("$ref")
        if not isinstance(ref, str) or not ref.startswith("#"):
            return schema
        schema = references.resolve(ref)
    return {}


def schemas_in(schema: object, place: Place = ()) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Yield a schema and every schema in it, each with its location.

    >>> [place for place, _ in schemas_in({"properties": {"name": {}}, "anyOf": [{}]})]
    [(), ('properties', 'name'), ('anyOf', 0)]
    """
    if is_dict(schema):
        yield place, schema
        for steps, inner in inner_schemas(schema):
            yield from schemas_in(inner, (*place, *steps))


def inner_schemas(schema: dict[str, Any]) -> Iterator[tuple[Place, object]]:
    """Yield the values directly inside a schema where JSON Schema expects a schema, each with its location."""
    for word, inner in schema.items():
        if word in SCHEMAS_BY_NAME and is_dict(inner):
            yield from (((word, name), each) for name, each in inner.items())
        elif word in SCHEMA_LISTS and is_list(inner):
            yield from (((word, index), each) for index, each in enumerate(inner))
        elif word in _SINGLE_SCHEMAS:
            yield (word,), inner


def with_schemas_changed(schema: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """Return the schema after `change`, which is then applied to each schema in it.

    >>> with_schemas_changed({"items": {"title": "A", "const": {"title": 1}}}, lambda node: node | {"title": "B"})
    {'items': {'title': 'B', 'const': {'title': 1}}, 'title': 'B'}
    """
    if is_list(schema):
        return [with_schemas_changed(each, change) for each in schema]
    if not is_dict(schema):
        return schema
    found: dict[str, Any] = {}
    for word, value in change(schema).items():
        if word in SCHEMAS_BY_NAME and is_dict(value):
            found[word] = {name: with_schemas_changed(each, change) for name, each in value.items()}
        else:
            found[word] = value if word in _LITERAL else with_schemas_changed(value, change)
    return found


def objects_in(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every object in a schema, itself first, each once."""
    waiting: list[object] = [schema]
    seen: set[int] = set()
    while waiting:
        here: object = waiting.pop()
        if id(here) in seen:
            continue
        seen.add(id(here))
        if is_dict(here):
            yield here
            waiting += here.values()
        elif is_list(here):
            waiting += here


_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.)|\Z)", re.S)
_PYTHON_ESCAPE: Final = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|(x[0-9a-fA-F]{2}|U[0-9a-fA-F]{8}|N\{[A-Z][A-Z0-9 -]{0,80}\}|.)|\Z)", re.S
)
_SIMPLE: Final = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_COMMANDS: Final = (
    r"(?:alpha|beta|gamma|delta|epsilon|theta|lambda|mu|pi|sigma|phi|omega|sin|cos|tan|log|ln|exp|lim|sum|int|prod|frac|sqrt"
    r"|text\w*|math\w*|item|begin|end|left|right|times|cdot|infty|partial|hat|bar|vec|quad|section|label|ref|cite|par)\\"
)
_WINDOWS: Final = re.compile(rf"(?:^|[\s\"'(=])(?:[A-Za-z]:\\|\\\\(?!{_COMMANDS})[\w.-]+\\)(?![\\/\"])")
_SHARE: Final = re.compile(rf"\\\\(?!{_COMMANDS})[\w.-]+(?:\\[A-Za-z][\w.-]*)+")
"""The path of a network share, both of whose first backslashes are meant."""
# Letters after a backspace or form feed are not text; the other commands could be a line break and a short word.
_LATEX: Final = re.compile(
    r"\\(?:[bf](?=[A-Za-z])"
    r"|(?:nabla|neq|not|notin|newline|nonumber|nmid|text|textbf|textit|texttt|theta|tanh|times|tilde|triangle|tfrac"
    r"|rho|right|rightarrow|rangle|rceil|rfloor"
    r"|newcommand|newenvironment|renewcommand|ref|title|toprule|textsc|textsf|textrm|tableofcontents)(?![A-Za-z]))"
)
_WEAK: Final = r"\\(?:n(?:e|i|u|eg)|t(?:o|op|an|au)|rm)(?![A-Za-z.])"
_LATEX_WEAK: Final = re.compile(_WEAK)
_IN_FORMULA: Final = rf"\$[^$\"]{{0,60}}{_WEAK}[^$\"]{{0,200}}\$"
"""Between dollar signs even these are commands."""
_MAY_BE_LATEX: Final = re.compile(f"{_LATEX.pattern}|{_IN_FORMULA}")
_HALF_PAIR: Final = re.compile(r"\\u[dD][89a-fA-F]")
_CONTROL: Final = re.compile(r"(?<!\\)(?:\\\\)*\\(?=[bfnrt])")
_CONTROLS: Final = re.compile(r"\\[bf]")
_INVALID_ESCAPE: Final = re.compile(r"(?<!\\)(?:\\\\)*\\(?:[^\"\\/bfnrtu'`\n]|u(?![0-9a-fA-F]{4}))")


_IN_STRING: Final = (
    r":\\[A-Za-z]|\"\\\\[\w.-]+(?:\\[A-Za-z][\w.-]*)+\"|\\(?:[bf]|u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    r"|u[dD][c-fC-F](?<!\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F])|n(?:abla|eq|ot|ewline|onumber|mid)"
    r"|t(?:ext|heta|anh|imes|ilde|riangle|frac)|r(?:ho|ight|angle|ceil|floor)"
    r"|newcommand|newenvironment|renewcommand|ref\{|title\{|toprule|tableofcontents)"
)
SUSPECTS: Final = (_IN_STRING, _IN_FORMULA)
SUSPECT_ESCAPE: Final = re.compile("|".join(SUSPECTS))
"""Valid JSON that is rarely intended: control characters in place of LaTeX or a path, and lone surrogates."""


def literal_escapes(raw: str, *, wants_text: bool) -> frozenset[int] | None:
    """Return the positions of backslashes that are meant literally although they form a JSON escape; None means all of
    them.

    `raw` is the string between its quotes. It needs evidence: a Windows path, a LaTeX command, or letters after a
    backspace, and also either an escape that JSON does not define, or a schema that expects a string.
    """
    if "\\" not in raw:
        return frozenset()
    broken = _INVALID_ESCAPE.search(raw) is not None
    if not (broken or wants_text):
        return frozenset()
    if (path := _WINDOWS.search(raw)) is not None:
        before = _CONTROL.search(raw, 0, path.start()) if ":" in path[0] else None
        return None if before is None else frozenset(m.end() - 1 for m in _CONTROL.finditer(raw, path.start()))
    if not (broken or _MAY_BE_LATEX.search(raw)):
        return frozenset()
    # If one backslash is literal, all of them are.
    found = [m.start() for pattern in (_LATEX, _LATEX_WEAK, _CONTROLS) for m in pattern.finditer(raw)]
    return frozenset(at for at in found if not is_escaped(raw, at))


def may_mean_backslash(text: str, start: int, end: int) -> bool:
    """Return whether a string in this part of valid JSON may contain literal backslashes, or contains a lone surrogate.

    This is `literal_escapes` for many strings at once, regardless of what the schema expects of each.
    """
    return any(pattern.search(text, start, end) for pattern in (_WINDOWS, _MAY_BE_LATEX, _HALF_PAIR))


def is_escaped(text: str, at: int) -> bool:
    """Return whether the character at a position is escaped: an odd number of backslashes precedes it."""
    run = 0
    while at - run > 0 and text[at - run - 1] == "\\":
        run += 1
    return run % 2 == 1


class Unescaped(NamedTuple):
    """A decoded string; `kept` is true if it had escapes that JSON does not define."""

    value: str
    kept: bool
    lone: bool
    """Contains a lone surrogate."""
    dangling: bool
    """Ends in the middle of an escape."""


def unescape(raw: str, literal: frozenset[int] | None = frozenset(), *, python: bool = False) -> Unescaped:
    """Decode JSON escapes; a backslash that does not begin an escape is kept.

    With `python` also `\\xa0`, `\\U0001F600` and `\\N{BULLET}` are decoded.

    At the positions in `literal` (None: everywhere) letters after a backslash are kept as they are (`C:\\new`,
    `\\nabla`); quotes, backslashes and `\\uXXXX` are still decoded.
    """
    kept = dangling = False

    def one(match: re.Match[str]) -> str:
        nonlocal kept, dangling
        if match[1]:
            return chr(int(match[1], 16))
        letter: str | None = match[2]
        if letter is None:
            dangling = True
            return "\\"
        if letter in _SIMPLE and not (letter in "bfnrt" and (literal is None or match.start() in literal)):
            return _SIMPLE[letter]
        kept = True
        if len(letter) > 1 and literal is not None and (char := _python_character(letter)) is not None:
            return char
        if letter in "'`\n":
            return letter if letter != "\n" else "\n"
        return f"\\{letter}"

    if literal is None and _SHARE.fullmatch(raw):
        raw = rf"\\{raw}"
    value = (_PYTHON_ESCAPE if python else _ESCAPE).sub(one, raw)
    lone = False
    if "\\u" in raw and any("\ud800" <= c <= "\udfff" for c in value):
        joined = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        lone = "\ufffd" in joined and "\ufffd" not in value
        value = value if lone else joined
    return Unescaped(value, kept, lone, dangling)


def _python_character(escape: str) -> str | None:
    """Return the character of `xa0`, `U0001F600` or `N{BULLET}`, or None if it is not one of these."""
    try:
        return unicodedata.lookup(escape[2:-1]) if escape[0] == "N" else chr(int(escape[1:], 16))
    except (KeyError, ValueError):
        return None


Place: TypeAlias = tuple[str | int, ...]

_PART: Final = re.compile(
    r"\.(?P<name>[^.\[\]]+)|\[(?P<index>\d+)\]|\[(?P<quoted>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")\]"
)
_SHARED: Final[tuple[str, ...]] = ("$defs", "definitions")


def place_of(path: str) -> Place | None:
    """Return the parts of a path, or None for a string that is not a path.

    >>> place_of("$.items[2].price")
    ('items', 2, 'price')
    """
    if not path.startswith("$"):
        return None
    parts: list[str | int] = []
    at = 1
    while at < len(path):
        found = _PART.match(path, at)
        if found is None:
            return None
        if found["index"] is not None:
            parts.append(int(found["index"]))
        else:
            parts.append(found["name"] or str(ast.literal_eval(found["quoted"])))
        at = found.end()
    return tuple(parts)


def value_place(path: str) -> str:
    """Return a path in a value without list indexes.

    >>> value_place("$.items[2].qty")
    'items[].qty'
    """
    return re.sub(r"\[\d+\]", "[]", path).removeprefix("$").removeprefix(".") or "$"


def with_value(whole: Any, place: Place, value: Any) -> Any:
    """Return a copy of a JSON value with the value at this path replaced, or the value itself if
    there is no such path.
    """
    if not place:
        return value
    made = copy.deepcopy(whole)
    if can_hold(made, place):
        value_at(made, place[:-1])[place[-1]] = value
    return made


def value_at(whole: Any, place: Place, nowhere: object = None) -> Any:
    """Return the value at a location, or `nowhere` if there is no such location."""
    for part in place:
        if is_dict(whole) and part in whole:
            whole = whole[str(part)]
        elif isinstance(whole, list) and isinstance(part, int) and part < len(cast("Sequence[Any]", whole)):
            whole = cast("Sequence[Any]", whole)[part]
        else:
            return nowhere
    return whole


def can_hold(whole: Any, place: Place) -> bool:
    """Return whether a value can be set at this location: its container exists and has the right type."""
    if not place:
        return True
    holder = value_at(whole, place[:-1])
    if isinstance(place[-1], int):
        return isinstance(holder, list) and place[-1] < len(cast("Sequence[Any]", holder))
    return isinstance(holder, dict)


def members(value: Any) -> Iterable[tuple[Any, Any]]:
    """Return the keys and values of an object, the indexes and items of an array, or nothing for a scalar."""
    return value.items() if is_dict(value) else enumerate(value) if is_list(value) else ()


def parts(value: Any) -> Iterator[tuple[Place, Any]]:
    """Yield every part of a JSON value with its path, in order: the value itself first."""
    waiting: list[tuple[Place, Any]] = [((), value)]
    while waiting:
        place, here = waiting.pop()
        yield place, here
        waiting += [((*place, step), part) for step, part in members(here)][::-1]


def leaves(value: Any) -> Iterator[tuple[Place, Any]]:
    """Return the scalars of a JSON value with their paths; an empty list or object counts as one."""
    return ((place, part) for place, part in parts(value) if not part or not isinstance(part, (dict, list)))


def schema_at(schema: dict[str, Any], place: Place) -> dict[str, Any] | None:
    """Return the self-contained schema of a location, or None if it is unknown."""
    here = follow_refs(schema, schema)
    for part in place:
        if isinstance(part, int):
            found = here.get("items")
        else:
            properties: Mapping[str, Any] = here.get("properties", {})
            found = properties.get(part, here.get("additionalProperties"))
        if not isinstance(found, dict):
            return None
        here = follow_refs(cast("dict[str, Any]", found), schema)
    return {**here, **definitions_of(schema)}


def definitions_of(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of a schema to which other parts may refer."""
    return {name: schema[name] for name in _SHARED if name in schema}
