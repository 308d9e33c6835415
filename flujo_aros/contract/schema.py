"""A JSON Schema as the reader needs it: names, types and alternatives, with every `$ref` resolved, loops included.

A `Shape` guides parsing and coercion. It never decides whether a value is valid. That is up to the validator, so
keywords that only a validator needs (`pattern`, `not`, …) do not appear here. Bounds, and the patterns of keys, are
tested by the engine that validates values, in linear or bounded time.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cache, cached_property
from types import NoneType
from typing import Any, Final, TypeAlias, cast

import jsonschema_rs

from flujo_aros.errors import ContractError
from flujo_aros.json_data import References, is_dict, is_list, members

JsonSchema = dict[str, Any]


def fold(name: str) -> str:
    """Normalize a name by dropping case, accents, spaces and punctuation: `Unit-Price` and `unitPrice` become equal."""
    if name.isascii():
        return "".join(filter(str.isalnum, name)).lower()
    plain = name.replace("ß", "ss").replace("æ", "ae").replace("œ", "oe").replace("Æ", "ae").replace("Œ", "oe")
    return "".join(c for c in unicodedata.normalize("NFKD", plain) if c.isalnum()).casefold()


_WRITTEN_OUT: Final = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "å": "aa", "ø": "oe"})


def folds(name: str) -> tuple[str, ...]:
    """Return the normalized forms of a name: `Länge` is `lange`, without its accent, and `laenge`, written out."""
    if name.isascii():
        return (fold(name),)
    return fold(name), fold(unicodedata.normalize("NFC", name).lower().translate(_WRITTEN_OUT))


Engine: TypeAlias = jsonschema_rs.RegexOptions | jsonschema_rs.FancyRegexOptions

_BACKTRACKS: Final = 100_000


def engines() -> tuple[Engine, ...]:
    """Return engines to compile a schema with, the best first: look-around requires the second one,
    which backtracks.
    """
    return jsonschema_rs.RegexOptions(), jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACKS)


class Pattern:
    """A pattern of `patternProperties`, compiled when the first key is tested."""

    def __init__(self, source: str) -> None:
        self.source = source

    def matches(self, key: str) -> bool:
        """Return whether the key contains a match, as JSON Schema defines it."""
        whole = key.encode(errors="replace").decode()  # the engine cannot read a lone surrogate
        return self._validator is not None and self._validator.is_valid(whole)

    @cached_property
    def _validator(self) -> jsonschema_rs.Validator | None:
        schema: dict[str, Any] = {"pattern": self.source}
        for engine in engines():
            try:
                return jsonschema_rs.validator_for(schema, pattern_options=engine)
            except jsonschema_rs.ValidationError:
                continue
        return None


_MOST_STATES: Final = 1 << 26
"""The maximum size in bytes of the automaton for a long word list."""


def contains(source: str) -> Callable[[str], bool]:
    """Return a function that tests whether a text contains a match, in one pass and about 100 times faster than `re`.

    The expression has no look-around. Compiling it takes milliseconds. The function raises `UnicodeEncodeError` for
    text with a lone surrogate, which the engine cannot read.

    >>> contains(r"\\b(?:wrong|incorrect)\\b")("that is wrong")
    True
    """
    engine = jsonschema_rs.RegexOptions(size_limit=_MOST_STATES)
    return jsonschema_rs.validator_for({"pattern": source}, pattern_options=engine).is_valid


_BOUNDS: Final = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength"),
)


def bounds_of(schema: Mapping[str, Any]) -> Callable[[object], str | None] | None:
    """Return a function that reports how a number or string violates the schema's bounds, or None if it has none.

    >>> bounds_of({"type": "integer", "minimum": 3})(2)
    '2 is less than the minimum of 3'
    """
    kind = schema.get("type")
    bounds = {key: schema[key] for key in _BOUNDS if key in schema}
    if not bounds or kind not in ("integer", "number", "string"):
        return None

    @cache
    def validator() -> jsonschema_rs.Validator:
        return jsonschema_rs.validator_for({**bounds, "type": kind})

    def wrong(value: object) -> str | None:
        of_kind = isinstance(value, str) if kind == "string" else isinstance(value, (int, float))
        error = None if not of_kind or isinstance(value, bool) else next(validator().iter_errors(value), None)
        return None if error is None else error.message

    return wrong


@dataclass(eq=False)
class Shape:
    """The schema of one location in a value, prepared for reading; `types` is empty if any value is allowed."""

    types: frozenset[str] = frozenset()
    properties: dict[str, Shape] = field(default_factory=dict[str, "Shape"])
    required: frozenset[str] = frozenset()
    patterns: tuple[tuple[Pattern, Shape], ...] = ()
    """The shapes of keys that match a `patternProperties` expression."""
    additional: Shape | bool | None = None
    """`None` if the schema does not specify it: extra keys are allowed, and a pydantic model ignores them."""
    items: Shape | None = None
    prefix: tuple[Shape, ...] = ()
    branches: tuple[Shape, ...] = ()
    choices: tuple[Any, ...] | None = None
    format: str | None = None
    bounds: Callable[[Any], str | None] | None = None
    """Reports how a scalar violates `minimum`, `maxLength`, `pattern` or a similar keyword. None if there are none."""
    most: float | None = None
    """The largest number allowed: a percent sign or `4/5` fits no other scale."""
    note: str = ""
    """The title and description, whose words a reply may repeat next to its value."""
    title: str = ""
    """The name of the type, which a reply may use to select an alternative."""
    sentences: frozenset[str] = frozenset()
    """The title and the description, normalized, if they are sentences that the schema does not also name as values."""
    blank: list[Any] | dict[str, Any] | None = None
    """The declared default if it is an empty list or object: the meaning of null where null is not allowed."""
    unique: bool = False
    """Whether a list has unique items: a Python type may store it as an unordered set."""
    aliases: tuple[str, ...] = ()
    only_aliases: bool = False
    risk: str | None = None
    choice_aliases: dict[str, Any] = field(default_factory=dict[str, Any])
    has_risks: bool = False
    """At the root: whether some location below has its own risk."""
    has_only_aliases: bool = False
    """At the root: whether some real name below must be written as an alias."""
    may_elide: bool = True
    """At the root: whether some location below allows strings in a list or arbitrary keys, where an ellipsis may
    occur."""
    may_mix: bool = True
    """At the root: whether some list below may contain lists as well as other items."""
    has_aliases: bool = False
    """At the root: whether some location below has aliases."""
    has_times: bool = False
    """At the root: whether some string below is a date, time or duration."""
    has_decimals: bool = False
    """At the root: whether some number below is a `Decimal`, which keeps digits that a float loses."""
    has_sentence: Callable[[str], bool] | None = None
    """At the root: tests whether a JSON text may contain one of the `sentences` below. None if there are none."""
    plan: Any = None
    """Values that the reader computed for this location. Stored here, so that they live as long as the shape."""

    def allows(self, kind: str) -> bool:
        """Return whether a value of this JSON type is allowed here."""
        if self.branches:
            return any(branch.allows(kind) for branch in self.branches)
        if not self.types:
            return self.choices is None or any(kind_of(choice) == kind for choice in self.choices)
        return kind in self.types or (kind == "integer" and "number" in self.types)

    def asks_for(self, kind: str) -> bool:
        """Return whether the schema names this JSON type, in a type or a choice. If it names none, prose is not an
        answer.
        """
        if self.branches:
            return any(branch.asks_for(kind) for branch in self.branches)
        return bool(self.types or self.choices is not None) and self.allows(kind)

    @cached_property
    def asks_for_scalar(self) -> bool:
        """Whether the schema names a scalar type."""
        return any(map(self.asks_for, frozenset[str]().union(*SCALARS.values())))

    @property
    def time_forms(self) -> list[str]:
        """The formats of dates, times and durations that a string may have here."""
        if self.branches:
            return [form for branch in self.branches for form in branch.time_forms]
        return [self.format] if self.format in TIMES else []

    @cached_property
    def anything(self) -> bool:
        """Whether the schema puts no restriction on this location."""
        return not (self.types or self.properties or self.patterns or self.branches or self.choices or self.items)

    @cached_property
    def only_lists(self) -> bool:
        """Whether an array is allowed here, and no object."""
        return self.allows("array") and not self.allows("object") and not self.anything

    @cached_property
    def takes_any(self) -> frozenset[type]:
        """The Python classes of JSON scalars whose values are all allowed here as written."""
        if self.anything or self.branches or self.bounds or self.choices is not None:
            return frozenset()
        found = {kind for kind, names in SCALARS.items() if self.types & names}
        return frozenset(found - {str} if self.format is not None else found)

    @cached_property
    def is_scalar(self) -> bool:
        """Whether neither an object nor an array is allowed here, and there are no alternatives."""
        return not (self.branches or self.allows("array") or self.allows("object"))

    @cached_property
    def keys(self) -> dict[str, str]:
        """Every key that may be written here, alias or real, mapped to the real name."""
        found = {name: name for name, shape in self.properties.items() if not (shape.only_aliases and shape.aliases)}
        for name, shape in self.properties.items():
            for alias in shape.aliases:
                found.setdefault(alias, name)
        for branch in self.branches:
            for key, name in branch.keys.items():
                found.setdefault(key, name)
        return found

    @cached_property
    def folded(self) -> dict[str, str]:
        """Normalized `keys`. Names that normalize to the same word are left out."""
        seen: dict[str, set[str]] = {}
        for key, name in self.keys.items():
            for word in folds(key):
                seen.setdefault(word, set()).add(name)
        return {word: names.pop() for word, names in seen.items() if len(names) == 1 and word}

    def name_of(self, key: str) -> str | None:
        """Return the declared name that a key spells, in any case and with any punctuation."""
        return self.keys.get(key) or self.spelled(key)

    def spelled(self, key: str) -> str | None:
        """Return the one declared name that a key spells if case, accents and punctuation do not count."""
        found = {self.folded[word] for word in folds(key) if word in self.folded}
        return found.pop() if len(found) == 1 else None

    def knows(self, key: str) -> bool:
        """Return whether a key spells a declared name, even if it could be one of several."""
        return key in self.keys or not self.folded.keys().isdisjoint(folds(key))

    @cached_property
    def named(self) -> dict[str, Shape]:
        """The first 200 fields of the contract, nested ones included, by their written names."""
        found: dict[str, Shape] = {}
        pending: deque[Shape] = deque([self])
        seen: set[Shape] = set()
        while pending and len(found) < _MOST_NAMES:
            here = pending.popleft()
            if here in seen:
                continue
            seen.add(here)
            for key, name in here.keys.items():
                if len(key) > 1:
                    found.setdefault(key, here.member(name))
            pending += [*here.properties.values(), *here.branches, *([here.items] if here.items else [])]
            pending += here.prefix
        return found

    @cached_property
    def flags(self) -> dict[str, Shape]:
        """The fields among `named` that may be true or false, but not a string."""
        return {n: part for n, part in self.named.items() if part.allows("boolean") and not part.allows("string")}

    def member(self, key: str) -> Shape:
        """Return the shape of the member with this real name, which may be in one of the alternatives."""
        found = self.properties.get(key)
        if found is not None:
            return found
        for branch in self.branches:
            if key in branch.keys.values():
                return branch.member(key)
        return next(self._under(key), self.additional if isinstance(self.additional, Shape) else ANY)

    def keeps(self, key: str) -> bool:
        """Return whether the schema allows this undeclared key, explicitly or because it declares no keys at all."""
        return self.is_open or isinstance(self.additional, Shape) or next(self._under(key), None) is not None

    @property
    def is_open(self) -> bool:
        """Whether an object may have any keys with any values."""
        undeclared = not self.properties and not self.branches and self.additional is None
        return self.additional is True or (undeclared and self.allows("object"))

    @property
    def parts(self) -> list[Shape]:
        """The shapes directly inside: of the members, of the elements, and the alternatives."""
        inner = [*self.properties.values(), *self.branches, *self.prefix, *(part for _, part in self.patterns)]
        return [*inner, *(part for part in (self.items, self.additional) if isinstance(part, Shape))]

    def _under(self, key: str) -> Iterator[Shape]:
        """Yield the shapes that the schema and its alternatives define for keys that match a pattern."""
        yield from (shape for pattern, shape in self.patterns if pattern.matches(key))
        for branch in self.branches:
            yield from branch._under(key)

    def walk(self, value: object) -> Iterator[tuple[Any, Shape]]:
        """Yield every part of a JSON value with its shape, in no particular order."""
        pending: list[tuple[Any, Shape]] = [(value, self)]
        while pending:
            here, shape = pending.pop()
            yield here, shape
            inside = shape.member if is_dict(here) else shape.element
            pending += [(part, inside(step)) for step, part in members(here)]

    def element(self, index: int) -> Shape:
        """Return the shape of the element at this location of an array."""
        if index < len(self.prefix):
            return self.prefix[index]
        if self.items is not None:
            return self.items
        for branch in self.branches:
            if branch.allows("array"):
                return branch.element(index)
        return ANY


SCALARS: Final[Mapping[type, frozenset[str]]] = {
    bool: frozenset({"boolean"}),
    int: frozenset({"integer", "number"}),
    float: frozenset({"number"}),
    str: frozenset({"string"}),
    NoneType: frozenset({"null"}),
}
"""The schema types that accept a scalar as it is written, by its Python class."""
ANY: Final = Shape()
_MOST_NAMES: Final = 200


def kind_of(value: object) -> str:
    """Return the JSON type of a Python value."""
    return next((kind for kind, types in _KINDS if isinstance(value, types)), "unknown")


_KINDS: tuple[tuple[str, type | tuple[type, ...]], ...] = (
    ("null", NoneType),
    ("boolean", bool),
    ("string", str),
    ("integer", int),
    ("number", float),
    ("object", dict),
    ("array", (list, tuple)),
)


def compile_shape(schema: JsonSchema, *, drops: bool = False) -> Shape:
    """Return the shape of a JSON Schema. Takes time linear in the size of the schema; reference loops become loops of
    shapes.

    `drops` means that the validator drops undeclared keys of an object unless the schema allows them. Raises
    `ContractError` for invalid `x-aros` hints.
    """
    compiler = _Compiler(schema)
    root = compiler.compile()
    if root is not ANY:
        root.has_risks = any(shape.risk for shape in compiler.done.values())
        root.has_times = any(shape.format in TIMES for shape in compiler.done.values())
        root.has_decimals = any(shape.format == DECIMAL for shape in compiler.done.values())
        root.has_only_aliases = any(shape.only_aliases for shape in compiler.done.values())
        root.may_elide = any(_may_elide(shape, drops=drops) for shape in compiler.done.values())
        root.may_mix = any(_may_mix(shape) for shape in compiler.done.values())
        root.has_aliases = any(shape.aliases for shape in compiler.done.values())
        root.has_sentence = _finder(compiler.described) if compiler.described else None
    return root


def _finder(sentences: Iterable[str]) -> Callable[[str], bool]:
    """Return a function that tests whether a text may contain one of these sentences, however they begin and end. It is
    compiled at the first call.
    """
    parts = {max(_UNESCAPED.findall(sentence[1:]), key=len, default="") for sentence in sentences}

    @cache
    def search() -> Callable[[str], bool]:
        return contains("|".join(re.escape(part[:_PREFIX]) for part in sorted(parts)))

    def may_hold(text: str) -> bool:
        try:
            return search()(text)
        except UnicodeEncodeError:
            return True

    return may_hold


_UNESCAPED: Final = re.compile(r"(?:[^\W_]|[ ,'-])+")
_PREFIX: Final = 24
_LEAST_WORDS: Final = 3
_LEAST_CHARACTERS: Final = 8
"""The least size of a description that no value repeats by chance, in words or, without spaces, in characters."""
_ALTERNATIVES: Final = re.compile(r"\w ?\| ?\w")
"""A description that lists the values: `positive|negative`."""


def _may_elide(shape: Shape, *, drops: bool) -> bool:
    if shape.allows("array") and any(map(shape.element(0).allows, ("string", "object"))):
        return True
    closed = shape.additional is False or (shape.additional is None and drops and shape.properties)
    if shape.allows("object") and not shape.branches and (shape.patterns or not closed):
        return True
    return ANY in shape.parts


def _may_mix(shape: Shape) -> bool:
    """Return whether a list here, or an undescribed one below, may contain lists as well as other items."""
    if shape.is_open or ANY in shape.parts:
        return True
    element = shape.element(0)
    return shape.allows("array") and (
        bool(shape.prefix) or (element.allows("array") and sum(map(element.allows, _JSON_TYPES)) > 1)
    )


_JSON_TYPES: Final = ("array", "object", "string", "number", "boolean", "null")


_BESIDE_REF: Final = frozenset(
    {"$ref", "$dynamicRef", "$defs", "$schema", "$id", "definitions", "description", "title"}
)


_DEEPEST: Final = 100
"""The maximum number of nested parts of the schema followed for one location; deeper ones do not guide the reader."""


class _Compiler:
    """Builds shapes. Those deeper in the value are filled in later, so recursion is limited to the
    parts of one location.
    """

    def __init__(self, root: JsonSchema) -> None:
        self.root = root
        self.references = References(root)
        self.done: dict[int, Shape] = {}
        self.described: list[str] = []
        """The sentences of all locations."""
        self._pending: dict[int, tuple[Shape, Mapping[str, Any]]] = {}
        self._depth = 0

    def compile(self) -> Shape:
        """Return the shape of the whole schema."""
        root = self.shape(self.root)
        while self._pending:
            self._fill_whole(*self._pending.popitem()[1])
        _cut_loops(self.done.values())
        return root

    def shape(self, schema: object) -> Shape:
        """Return the shape of a part of the schema, filled in before the end."""
        if not isinstance(schema, Mapping) or not schema:
            return ANY
        node = cast("Mapping[str, Any]", schema)
        if _BESIDE_REF.issuperset(node):
            node = self.follow(node)
        known = self.done.get(id(node))
        if known is None:
            known = self.done[id(node)] = Shape()
            self._pending[id(known)] = known, node
        return known

    def _merge_known(self, schema: object) -> Shape:
        """Return the shape of another part of the schema for the same location, as far as it is known."""
        shape = self.shape(schema)
        if self._depth < _DEEPEST and id(shape) in self._pending:
            self._depth += 1
            self._fill_whole(*self._pending.pop(id(shape)))
            self._depth -= 1
        return shape

    def _fill_whole(self, shape: Shape, node: Mapping[str, Any]) -> None:
        target = self.follow(node)
        if target is not node:
            _merge(shape, self._merge_known(target))
        self.fill(shape, node)
        for part in _list(node.get("allOf")):
            _merge(shape, self._merge_known(part))

    def follow(self, node: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the target of a `$ref`, followed further if that is only another `$ref`."""
        here, seen = node, set[int]()
        while id(here) not in seen:
            seen.add(id(here))
            ref = here.get("$ref", here.get("$dynamicRef"))
            found = self.references.resolve(ref) if isinstance(ref, str) and ref.startswith("#") else None
            if found is None:
                break
            here = found
            if not _BESIDE_REF.issuperset(here):
                break
        return here

    def fill(self, shape: Shape, node: Mapping[str, Any]) -> None:
        kinds = node.get("type")
        if kinds:
            shape.types = frozenset([kinds] if isinstance(kinds, str) else _list(kinds))
        for name, part in _dict(node.get("properties")).items():
            shape.properties[name] = self.shape(part)
        shape.required |= frozenset(name for name in _list(node.get("required")) if isinstance(name, str))
        more = node.get("additionalProperties")
        if more is not None:
            shape.additional = more if isinstance(more, bool) else self.shape(more)
        for pattern, part in _dict(node.get("patternProperties")).items():
            shape.patterns += ((Pattern(pattern), self.shape(part)),)
        if "items" in node and not isinstance(node["items"], list):
            shape.items = self.shape(node["items"])
        shape.prefix = tuple(self.shape(part) for part in _list(node.get("prefixItems"))) or shape.prefix
        branches = _list(node.get("anyOf")) or _list(node.get("oneOf"))
        if branches:
            shape.branches = tuple(self.shape(part) for part in branches)
        if "const" in node:
            shape.choices = (node["const"],)
        elif isinstance(node.get("enum"), list):
            shape.choices = tuple(node["enum"])
        if isinstance(node.get("format"), str):
            shape.format = node["format"]
        shape.bounds = bounds_of(node)
        _fill_scale(shape, node)
        self._note_sentences(shape, node)
        default = node.get("default")
        shape.blank = default if default in ([], {}) else shape.blank
        shape.unique = shape.unique or node.get("uniqueItems") is True
        _fill_hints(shape, node.get("x-aros", {}))

    def _note_sentences(self, shape: Shape, node: Mapping[str, Any]) -> None:
        values = (*_list(node.get("examples")), *(shape.choices or ()), node.get("default"), node.get("example"))
        known = {fold(value) for value in values if isinstance(value, str)}
        for said in (node.get("title"), node.get("description")):
            if not isinstance(said, str) or fold(said) in known:
                continue
            is_long = len(said.split()) >= _LEAST_WORDS or (not said.isascii() and len(fold(said)) >= _LEAST_CHARACTERS)
            if is_long or _ALTERNATIVES.search(said):
                shape.sentences |= {fold(said)}
                self.described.append(said)


def _cut_loops(shapes: Iterable[Shape]) -> None:
    """Allow anything where an alternative refers to itself, as the validator does."""
    open_shapes: set[Shape] = set()
    done: set[Shape] = set()
    pending = [(shape, False) for shape in shapes]
    while pending:
        shape, left = pending.pop()
        if left:
            open_shapes.discard(shape)
            done.add(shape)
        elif shape not in done:
            open_shapes.add(shape)
            pending.append((shape, True))
            shape.branches = tuple(ANY if part in open_shapes else part for part in shape.branches)
            pending += [(part, False) for part in shape.branches]


def _fill_scale(shape: Shape, node: Mapping[str, Any]) -> None:
    most = node.get("maximum", node.get("exclusiveMaximum"))
    if isinstance(most, (int, float)) and not isinstance(most, bool):
        shape.most = most
    title, described = (text if isinstance(text := node.get(key), str) else "" for key in ("title", "description"))
    shape.note, shape.title = f"{title} {described}".strip(), title


_HINTS: Final = ("aliases", "descriptions", "only_aliases", "risk")
_RISKS: Final = ("lossless", "inferred", "lossy")


def _check_hints(hints: dict[str, Any], choices: tuple[Any, ...] | None) -> None:
    for name in hints:
        if name not in _HINTS:
            raise ContractError(f"x-aros has no key {name!r}; known keys: {', '.join(_HINTS)}")
    words, descriptions = hints.get("aliases", []), hints.get("descriptions", {})
    of_choices = list(words.values()) if is_dict(words) else [words]
    if not all(isinstance(each, str) or _are_strings(each) for each in of_choices):
        wanted = "a list of strings, or a mapping from choices to lists of strings"
        raise ContractError(f"x-aros: aliases must be {wanted}, not {words!r}")
    if not is_dict(descriptions) or not _are_strings(list(descriptions.values())):
        raise ContractError(f"x-aros: descriptions must be a mapping from choices to strings, not {descriptions!r}")
    if not isinstance(hints.get("only_aliases", False), bool):
        raise ContractError(f"x-aros: only_aliases must be true or false, not {hints['only_aliases']!r}")
    for key in (*_dict(words), *descriptions):
        if choices is not None and not any(key in spellings(choice) for choice in choices):
            raise ContractError(f"x-aros: {key!r} is not one of the choices: {', '.join(map(str, choices))}")
    if "risk" in hints and str(hints["risk"]).lower() not in _RISKS:
        raise ContractError(f"x-aros: {hints['risk']!r} is not a risk; it must be one of {', '.join(_RISKS)}")


def spellings(choice: object) -> tuple[str, str]:
    """Return the keys that name a choice in a hint, where keys must be strings: the choice as a string, and as JSON.

    >>> spellings("HIGH"), spellings(True)
    (('HIGH', '"HIGH"'), ('True', 'true'))
    """
    return str(choice), json.dumps(choice, default=str)


def _are_strings(words: object) -> bool:
    return is_list(words) and all(isinstance(word, str) for word in words)


def _fill_hints(shape: Shape, hints: object) -> None:
    if not is_dict(hints):
        raise ContractError(f"x-aros must be an object with keys from {', '.join(_HINTS)}, not {hints!r}")
    _check_hints(hints, shape.choices)
    aliases = hints.get("aliases")
    choices = {name: choice for choice in reversed(shape.choices or ()) for name in spellings(choice)}
    if is_dict(aliases):
        for name, words in aliases.items():
            for word in _strings(words):
                shape.choice_aliases[word] = choices.get(name, name)
    else:
        shape.aliases = tuple(_strings(aliases))
    for name, words in _dict(hints.get("descriptions")).items():
        shape.choice_aliases.setdefault(words, choices.get(name, name))
        shape.choice_aliases.setdefault(f"{name}: {words}", choices.get(name, name))
    shape.only_aliases = bool(hints.get("only_aliases", False))
    if isinstance(hints.get("risk"), str):
        shape.risk = hints["risk"].lower()


def _merge(into: Shape, other: Shape) -> None:
    """Combine two shapes (`allOf`, `$ref` with siblings)."""
    into.types = into.types & other.types or other.types or into.types  # an empty set means any type
    into.properties = {**other.properties, **into.properties}
    into.required |= other.required
    into.patterns += other.patterns
    into.additional = into.additional if into.additional is not None else other.additional
    into.items = into.items or other.items
    into.prefix = into.prefix or other.prefix
    into.branches = into.branches or other.branches
    into.choices = into.choices if into.choices is not None else other.choices
    into.format = into.format or other.format
    into.most = other.most if into.most is None else into.most
    into.note = f"{into.note} {other.note}".strip()
    into.title = into.title or other.title
    into.sentences |= other.sentences
    into.blank = other.blank if into.blank is None else into.blank
    into.unique = into.unique or other.unique
    into.choice_aliases = {**other.choice_aliases, **into.choice_aliases}
    into.risk = into.risk or other.risk


def _strings(words: object) -> list[str]:
    return [words] if isinstance(words, str) else _list(words)


def _list(value: object) -> list[Any]:
    return value if is_list(value) else []


def _dict(value: object) -> dict[str, Any]:
    return value if is_dict(value) else {}


DECIMAL: Final = "decimal"
"""The format of numbers that become a `Decimal`."""
TIMES: Final = frozenset({"date", "date-time", "time", "duration"})
"""Formats that pydantic also reads from numbers, as seconds since 1970."""
_DIGITS: Final = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*\Z")
_RANGE: Final = re.compile(r"\d\d:\d\d-\d\d:?\d\d\Z")
_DATED_RANGE: Final = re.compile(r"\d{4}-\d\d-\d\d[ _]\d\d:\d\d-\d\d:?\d\d\Z")
_DATED_OFFSET: Final = re.compile(r".{10}[Tt](\d\d:\d\d)-(\d\d:?\d\d)\Z")
_NO_OFFSET: Final = "12:00"
_OFFSETS: Final = frozenset((*(f"{hour:02}:00" for hour in range(9)), "02:30", "03:30"))
"""Offsets in use west of Greenwich; anything else after a time is a second time, as in `T10:30-11:30`."""
_CALENDAR: Final = re.compile(r"\s*[+-]?P[\d.]+[YM]", re.I)
_NO_ZONE: Final = re.compile(r"(?:\A|[Tt _])\d\d:\d\d(?::\d\d(?:\.\d+)?)?\Z")
_DAY: Final = re.compile(r"\s*(?P<year>\d{4})([-/.])(?P<month>\d\d?)\2(?P<day>\d\d?)(?!\d)")
_CLOCK: Final = re.compile(r"(?:\A|[Tt _])(?P<h>\d\d):(?P<m>\d\d)(?::(?P<s>\d\d))?")
_LAST_HOUR: Final = 23
_LAST_MINUTE: Final = 59
_TWO_UNITS: Final = re.compile(r"\s*[+-]?\d{1,2}:\d\d\s*\Z")
"""Matches a duration in hours and minutes, or in minutes and seconds."""
MISREADABLE: Final = re.compile(
    r'(?:\A|[:,\[])\s*"(?=[0-9+. -]|[Pp][\d.])(?![^"]{4}-(?![^"]{11}-)|[^"]{2}:(?![^"]{2}[-"]))'
)
"""Matches a string in JSON that pydantic may misread, so that all strings are checked. This must be cheap, because all
valid JSON is searched: it recognizes ISO forms by the positions of their separators."""


def is_misread(text: str, form: str) -> bool:
    """Return whether pydantic would misread a string as a date, time or duration.

    Digits alone are not a date or a duration, `10:30-11:00` is a time span, not a time with a zone, a month or a
    year is not a number of days, and `03:45` may be minutes and seconds as well as hours and minutes.
    """
    if _DIGITS.match(text):
        return not (form == "date" and "." in text.strip(" .") and text.count(".") > 1)
    if form == "duration":
        return _CALENDAR.match(text) is not None or _TWO_UNITS.match(text) is not None
    if form == "time":
        return _RANGE.match(text) is not None
    if form != "date-time":
        return False
    if _DATED_RANGE.match(text):
        return True
    offset = _DATED_OFFSET.match(text)
    return offset is not None and (offset[2] > _NO_OFFSET or offset[1] < offset[2] not in _OFFSETS)


_TIME_FORMS: Final = {
    "date": ("date", "YYYY-MM-DD"),
    "date-time": ("date and time", "YYYY-MM-DDTHH:MM:SS, with Z or an offset if the time zone is known"),
    "time": ("time", "HH:MM:SS"),
    "duration": ("duration", "PT1H30M (1 hour and 30 minutes)"),
}
_EITHER_ORDER: Final = re.compile(r"\s*(0?[1-9]|1[0-2])\s*([/.\- ])\s*(0?[1-9]|1[0-2])\s*\2\s*\d{2,4}(?!\d)")
"""Matches a date in which either number could be the day or the month."""


def _not_in_calendar(found: str) -> str:
    """Return why the numbers of a date or time are impossible, or an empty string if they are possible."""
    day, clock = _DAY.match(found), _CLOCK.search(found)
    try:
        if day is not None:
            date(*map(int, day.group("year", "month", "day")))
    except ValueError:
        return ": that day does not exist"
    late = clock is not None and (
        int(clock["h"]) > _LAST_HOUR or max(int(clock["m"]), int(clock["s"] or 0)) > _LAST_MINUTE
    )
    return ": that time does not exist" if late else ""


def not_a_time(form: str, found: str, value: str | None = None) -> str:
    """Return the message for text that is not a date, time or duration: the text and the expected format.

    `value` describes a value that is not a string.
    """
    what, wanted = _TIME_FORMS[form]
    either = form.startswith("date") and (parts := _EITHER_ORDER.match(found)) is not None and parts[1] != parts[3]
    why = ": it is unclear which number is the day and which is the month" if either else ""
    if form == "duration" and _TWO_UNITS.match(found):
        why = ": it could be hours and minutes, or minutes and seconds"
    elif form != "duration" and (wrong := _not_in_calendar(found)):
        why = wrong
    elif not either and form.endswith("time") and _NO_ZONE.search(found):
        why, wanted = ": it has no time zone", f"{wanted.partition(',')[0]} with Z or an offset such as +02:00"
    return f"expected a {what}, found {value or repr(found[:40])}{why}; write {wanted}"
