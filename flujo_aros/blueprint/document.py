"""Parses YAML into a tree of plain values with their positions. No other module deals with YAML.

It follows YAML 1.2 where it matters: `yes`, `no`, `on` and dates are strings. There are no tags except the standard
ones, no duplicate keys, and limits on size, depth and alias expansion, so that no document can exhaust the reader.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias, cast

import yaml
from yaml.reader import ReaderError

from flujo_aros.errors import BlueprintError, Code, Place, Problem, Suggestion, UsageError
from flujo_aros.json_data import is_dict, is_list
from flujo_aros.pipeline.names import place_in
from flujo_aros.spelling import short

_LEVEL: Final = (
    "this line does not continue the lines above: indent it exactly like its neighbours, and look "
    "for an unclosed quote or bracket above"
)

_COLON: Final = (
    "an extra `:`, or a line that is indented too far: put a string that contains `: ` in quotes, and "
    "indent a key exactly like its neighbours"
)
_LIST: Final = "the lines above are a list, but this is a key: begin it with `- ` as well, or remove the `- ` above"
_BEHIND: Final = "nothing can follow a value in quotes, brackets or braces: put the whole string in quotes"
_DIRECTIVE: Final = "lines that begin with % (YAML directives) are not supported; remove this one"


_NO_VALUE: Final = "this key has no `:` and no value"
_OPEN_QUOTE: Final = "this quote is never closed"
_OPEN_BRACKET: Final = "this bracket is never closed"
_AT_BEGINNING: Final = (_NO_VALUE, _OPEN_QUOTE, _OPEN_BRACKET)
"""The meanings that refer to the position where a construct begins."""
_MEANINGS: Final = {
    r"a tab character|cannot start any token.*\n\t": "this is a tab; indent with spaces",
    r"cannot start any token.*\n(?P<it>.)": "a string cannot begin with {it}; put it in quotes",
    r"\A[^\n]*(directive|incompatible YAML)": _DIRECTIVE,
    r"mapping values are not allowed": _COLON,
    r"mapping keys are not allowed": "a string that begins with `? ` must be in quotes",
    r"found unexpected ':'": "put a space after this `:`, or put the string in quotes",
    r"could not find expected ':'": _NO_VALUE,
    r"quoted scalar.*(unexpected end of stream|document (separator|indicator))": _OPEN_QUOTE,
    r"flow (sequence|mapping|node).*\n$": _OPEN_BRACKET,
    r"expected ',' or '(?P<it>[\]}])'": "a `,` or the closing `{it}` is missing before this",
    r"expected (the )?node content.*\n(?P<it>.)": "a value is missing before {it}",
    r"expected (the )?node content": "a value is missing here",
    r"expected alphabetic or numeric character": "a string that begins with `*` or `&` must be in quotes",
    r"found unknown escape character.*\n\\?(?P<it>.)": "unknown escape \\{it}; write \\\\, or single quotes",
    r"hexa?decimal number": "\\x, \\u and \\U take 2, 4 and 8 hexadecimal digits; write \\\\ for a backslash",
    r"invalid Unicode character escape code": "this string contains a lone surrogate (half of a character)",
    r"sequence entries are not allowed": "an element `- ` cannot begin here; it needs its own line",
    r"scanning a block scalar": (
        "after `|` or `>` only `+`, `-` or a digit may follow on the same line; the text begins on the next one"
    ),
    r"expected '?<?document start>?.*\n(?P<it>[\]}])": "unmatched closing `{it}`",
    r"\A[^\n]*(a|undefined) tag\b": "a string that begins with `!` must be in quotes",
    r"expected '?<?(block end|document start|key|'-')": _LEVEL,
}
_PATTERNS: Final = {re.compile(pattern, re.DOTALL): words for pattern, words in _MEANINGS.items()}


def syntax_words(message: str, at: str = "", *, beside: bool = False, behind: bool = False) -> tuple[str, bool]:
    """Return the plain meaning of a parser error, and whether it refers to the position where the construct begins.

    `at` is the text where the parser stopped. `beside` means that it stopped in the column of what it was reading,
    and `behind` that it did not stop at the beginning of a line.

    >>> syntax_words("while scanning a simple key, could not find expected ':'")
    ('this key has no `:` and no value', True)
    """
    text = f"{message}\n{at}"
    for pattern, words in _PATTERNS.items():
        found = pattern.search(text)
        if found is not None:
            sentence = words.format(**found.groupdict())
            if sentence == _LEVEL:  # why it does not continue the lines above
                sentence = _LIST if beside and "block collection" in message else _BEHIND if behind else _LEVEL
            return sentence, words in _AT_BEGINNING
    return message, False


Scalar: TypeAlias = str | int | float | bool | None

MAX_CHARS: Final = 1_000_000
MAX_DEPTH: Final = 64
MAX_NODES: Final = 8_000
"""The maximum number of values in a blueprint. The largest that people write have a few hundred."""
MAX_ALIASED: Final = 2_000
"""The maximum number of values that aliases may add."""
MAX_FINDINGS: Final = 100
"""The maximum number of errors before the rest of a file is skipped, which bounds the work for one file."""
_SPLIT: Final = "; move parts to other files (`imports`)"
_MAX_DIGITS: Final = 1_000
_SHOWN: Final = 60
_FIRST_OF_STEPS: Final = ("name", "kind")


_NESTED: Final = (dict, list)
_NO_KEYS: Final[dict[str, Place]] = {}  # one empty mapping, shared by all values that are not mappings


@dataclass(frozen=True, slots=True)
class Node:
    """One value of a document and its position, from `place` up to `end`, which is just after its last character.
    `keys` has the position of each key of a mapping.
    """

    place: Place
    end: Place
    value: Scalar | dict[str, Node] | list[Node]
    keys: dict[str, Place] = field(default_factory=lambda: _NO_KEYS)

    @property
    def members(self) -> dict[str, Node]:
        """The members of a mapping, or an empty mapping for anything else."""
        return self.value if isinstance(self.value, dict) else {}

    @property
    def elements(self) -> list[Node]:
        """The elements of a list, or an empty list for anything else."""
        return self.value if isinstance(self.value, list) else []

    def plain(self) -> Any:
        """Return the value as plain JSON."""
        value = self.value
        if isinstance(value, dict):
            made: dict[str, Any] = {}
            for key, node in value.items():  # most members are scalars, which need no call
                made[key] = node.plain() if type(node.value) in _NESTED else node.value
            return made
        return [node.plain() for node in value] if isinstance(value, list) else value

    def like(self, plain: Any) -> Node:
        """Return plain JSON as nodes that all have the position of this one; existing nodes are kept."""
        if isinstance(plain, Node):
            return plain
        if is_dict(plain):
            members = {str(key): self.like(each) for key, each in plain.items()}
            return Node(self.place, self.end, members, dict.fromkeys(members, self.place))
        return Node(self.place, self.end, [self.like(each) for each in plain] if is_list(plain) else plain)

    def mapped(self, change: Callable[[str, Node], Node]) -> Node:
        """Return a mapping or list with each value changed, given its key (empty in a list); a scalar is unchanged."""
        if isinstance(self.value, dict):
            return replace(self, value={key: change(key, each) for key, each in self.value.items()})
        return replace(self, value=[change("", each) for each in self.value]) if isinstance(self.value, list) else self

    def walk(self) -> Iterator[Node]:
        """Yield this value and everything in it, in no particular order."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += [*node.members.values(), *node.elements]

    def ends(self) -> dict[tuple[int, int], Place]:
        """Return the end of each key and value by its start. If a key and a mapping begin at the same position, the
        key's end is used.
        """
        found: dict[tuple[int, int], Place] = {}
        for node in self.walk():
            found.setdefault((node.place.line, node.place.column), node.end)
            for name, place in node.keys.items():
                found[place.line, place.column] = Place(place.line, place.column + len(name), place.path)
        return found

    def with_names(self, names: Mapping[tuple[int, int], Suggestion]) -> Node:
        """Return this value with the names at these positions, keys or parts of strings, replaced
        by their corrections.
        """
        made: dict[int, Node] = {}

        def changed(node: Node) -> Node:
            if id(node) not in made:  # an anchor is one node in several places
                made[id(node)] = replaced(node)
            return made[id(node)]

        def meant(place: Place | None) -> Suggestion | None:
            return None if place is None else names.get((place.line, place.column))

        def replaced(node: Node) -> Node:
            if isinstance(node.value, list):
                return replace(node, value=[changed(each) for each in node.value])
            if isinstance(node.value, dict):
                new = {
                    key: found.meant
                    for key, place in node.keys.items()
                    if (found := meant(place)) is not None and key == found.written and found.meant not in node.value
                }
                members = {new.get(key, key): changed(each) for key, each in node.value.items()}
                return replace(node, value=members, keys={new.get(key, key): each for key, each in node.keys.items()})
            found = meant(node.place) if isinstance(node.value, str) else None
            span = found and found.only_in(str(node.value))
            if not found or not span:
                return node
            if found.whole and found.written == node.value:
                return node.like(parse_document(found.meant, "").plain())
            return replace(node, value=f"{str(node.value)[: span[0]]}{found.meant}{str(node.value)[span[1] :]}")

        return changed(self)

    def nearest(self, path: Sequence[str | int]) -> Node:
        """Return the node at this path, or its nearest existing ancestor."""
        here = self
        for part in path:
            if isinstance(part, str) and part in here.members:
                here = here.members[part]
            elif isinstance(part, int) and part < len(here.elements):
                here = here.elements[part]
        return here

    def at(self, path: Sequence[str | int]) -> Place:
        """Return the position of the node at this path, or of its nearest existing ancestor."""
        return self.nearest(path).place

    def key_at(self, path: Sequence[str | int]) -> Place:
        """Return the position of the key at the end of this path, or of its nearest existing ancestor."""
        here = self.nearest(path[:-1])
        return here.keys.get(str(path[-1]), here.place) if path else here.place


TOO_MANY: Final = f"stopped after {MAX_FINDINGS} errors; fix these first, the rest of the file was not checked"
"""The last problem reported for a blueprint that has too many."""


def parse_document(text: str, source: str) -> Node:
    """Parse a YAML text with one document. Raises `BlueprintError` with all errors."""
    if len(text) > MAX_CHARS:
        raise _unreadable(source, [(None, f"the file has more than {MAX_CHARS} characters{_SPLIT}")])
    reading = _Reading(text.removeprefix("\ufeff"))
    try:
        node = reading.document()
    except _StoppedError as error:
        raise _unreadable(source, [*reading.findings, (error.place, str(error))]) from error
    except yaml.MarkedYAMLError as error:
        place, message = _syntax_finding(error, reading.text)
        located = [each for each, _ in reading.findings if each and place and each.line == place.line]
        raise _unreadable(source, [*reading.findings, *([] if located else [(place, message)])]) from error
    except (ReaderError, UnicodeEncodeError) as error:
        found = _NOT_ALLOWED.search(reading.text)
        place = Place(*place_in(reading.text, found.start() if found else 0))
        message = "YAML does not allow this control character"
        raise _unreadable(source, [*reading.findings, (place, message)]) from error
    if node is None:
        raise _unreadable(source, [(None, "the file is empty")])
    if reading.findings:
        raise _unreadable(source, reading.findings)
    return node


def _unreadable(source: str, findings: Sequence[tuple[Place | None, str]]) -> BlueprintError:
    return BlueprintError(source, [Problem(message, place, Code.UNREADABLE) for place, message in findings])


class _StoppedError(Exception):
    """Valid YAML that exceeds the limits."""

    def __init__(self, place: Place, message: str) -> None:
        self.place = place
        super().__init__(message)


_TAG: Final = "tag:yaml.org,2002:"
_SCALARS: Final = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", "~nN"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+0123456789.",
    ),
    ("merge", r"<<", "<"),
)
_BY_FIRST: Final = {
    first: [(kind, re.compile(pattern)) for kind, pattern, firsts in _SCALARS if first in firsts]
    for first in "".join(firsts for _, _, firsts in _SCALARS)
}


class _Merge(str):
    """The merge key, `<<`."""

    __slots__ = ()


_MERGE: Final = _Merge("<<")
_PARSER: Final[Any] = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
"""The parser that turns a string into events: libyaml, a dozen times faster, if PyYAML is built with it.

Without it the result is the same, except that a tab inside an unquoted string is an error.
"""


class _Reading:
    """Builds a tree from the events of a YAML text and records every error. It stops as soon as a limit is exceeded."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.findings: list[tuple[Place | None, str]] = []
        self.next: Callable[[], Any] = lambda: None
        self.anchors: dict[str, Node | None] = {}  # None while the value is still being read
        self.count = 0
        self.aliased = 0
        self.end = (1, 1)  # after the last token that was read

    def document(self) -> Node | None:
        """Return the value of the only document, or None if there is none."""
        self.next = _PARSER(self.text).get_event
        self.next()  # the stream begins
        if isinstance(self.next(), yaml.StreamEndEvent):
            return None
        root = self.value(self.next(), "", 0)
        self.next()  # the document ends
        after = self.next()
        if not isinstance(after, yaml.StreamEndEvent):
            message = "not valid YAML: a second document begins here; a file contains one blueprint"
            self.note(_place(after.start_mark, ""), message)
        return root

    def note(self, place: Place, message: str) -> None:
        """Record an error; stop after very many."""
        self.findings.append((place, message))
        if len(self.findings) >= MAX_FINDINGS:
            raise _StoppedError(place, TOO_MANY)

    def value(self, event: Any, path: str, depth: int) -> Node:
        """Return the value that begins with this event."""
        kind = event.__class__
        mark = event.start_mark
        place = Place(mark.line + 1, mark.column + 1, path)
        self.count += 1
        if self.count > MAX_NODES:
            raise _StoppedError(
                place, f"a blueprint may contain at most {MAX_NODES} values, and this one exceeds that{_SPLIT}"
            )
        if depth > MAX_DEPTH:
            raise _StoppedError(place, f"nested more than {MAX_DEPTH} levels deep")
        if kind is yaml.AliasEvent:
            return self.alias(event, place, depth)
        anchor = event.anchor
        if anchor is not None:
            self.open_anchor(anchor, place)
        held: Any
        if kind is yaml.ScalarEvent:
            end = event.end_mark
            self.end = (end.line + 1, end.column + 1) if event.style not in _BLOCKS else self.block_end(event)
            held, keys = event.value, _NO_KEYS
            if event.tag or (event.implicit[0] and (held[:1] in _BY_FIRST or not held)) or not held.isascii():
                held = self.read(event, place)
        else:
            if event.tag not in (None, "!", f"{_TAG}{'map' if kind is yaml.MappingStartEvent else 'seq'}"):
                self.note(place, f"the tag {short(event.tag)} is not allowed")
            held, keys, last = (self.mapping if kind is yaml.MappingStartEvent else self.sequence)(place, depth)
            if event.flow_style:  # the parser ends a block at the next token, comments included
                self.end = (last.end_mark.line + 1, last.end_mark.column + 1)
        node = Node(place, Place(*self.end, path), held, keys)
        if anchor is not None:
            self.anchors[anchor] = node
        return node

    def open_anchor(self, anchor: str, place: Place) -> None:
        if anchor in self.anchors:
            self.note(place, f"not valid YAML: this anchor is already defined above: &{anchor[:_SHOWN]}")
        self.anchors[anchor] = None

    def sequence(self, place: Place, depth: int) -> tuple[list[Node], dict[str, Place], Any]:
        elements: list[Node] = []
        while not isinstance(inner := self.next(), yaml.SequenceEndEvent):
            elements.append(self.value(inner, f"{place.path}[{len(elements)}]", depth + 1))
        return elements, _NO_KEYS, inner

    def mapping(self, place: Place, depth: int) -> tuple[dict[str, Node], dict[str, Place], Any]:
        members: dict[str, Node] = {}
        keys: dict[str, Place] = {}
        merged: list[Node] = []
        start = f"{place.path}." if place.path else ""
        while not isinstance(inner := self.next(), yaml.MappingEndEvent):
            mark = inner.start_mark
            plain = inner.__class__ is yaml.ScalarEvent and inner.anchor is None and inner.tag is None
            name = inner.value if plain and inner.value != "<<" else self.key(inner, depth)
            self.count += 1
            here = Place(mark.line + 1, mark.column + 1, f"{start}{name}")
            if isinstance(name, _Merge):
                merged.append(self.value(self.next(), place.path, depth + 1))
                continue
            value = self.value(self.next(), here.path, depth + 1)
            if name is None:
                self.note(*self.no_key(mark.index, here))
            elif name in keys:
                hint = "; another step begins with `- `" if name in _FIRST_OF_STEPS else ""
                again = f"duplicate key {short(name)}; it is already defined on line {keys[name].line}{hint}"
                self.note(here, again)
            else:
                keys[name], members[name] = here, value
        for source in merged:
            self.merge(source, members, keys)
        return members, keys, inner

    def key(self, event: Any, depth: int) -> str | None:
        """Return the text of a key as written, the merge key, or None if it is not a string."""
        if type(event) is yaml.ScalarEvent and event.anchor is None and event.tag is None:
            return _MERGE if event.implicit[0] else event.value
        node = self.value(event, "", depth + 1)
        tagged = type(event) is yaml.ScalarEvent and event.tag == f"{_TAG}merge"
        text = event.value if type(event) is yaml.ScalarEvent else node.value
        return _MERGE if tagged else text if isinstance(text, str) else None

    def no_key(self, index: int, here: Place) -> tuple[Place, str]:
        """Return the error for a key that is a list or a mapping, most often a template without quotes."""
        outer = index - 1
        if outer >= 0 and self.text.startswith("{{", outer):
            end = self.text.find("\n", outer)
            line = self.text[outer : end if end >= 0 else None].strip()
            if line.count("}") > line.count("{"):  # the mapping around it ends on this line
                line = line[: line.find("}}") + 2]
            quoted = f": '{line}'" if len(line) <= _SHOWN and "'" not in line else ""
            return (Place(here.line, here.column - 1, here.path), f"put a template in quotes{quoted}")
        return (here, "a key must be a string, not a list or a mapping")

    def merge(self, source: Node, members: dict[str, Node], keys: dict[str, Place]) -> None:
        """Merge `<<: *defaults`: the members of other mappings that this one does not define itself."""
        for each in source.elements if isinstance(source.value, list) else [source]:
            if not isinstance(each.value, dict):
                self.note(each.place, "`<<` takes a mapping or a list of mappings")
            for name, value in each.members.items():
                if name not in members:
                    members[name], keys[name] = value, each.keys[name]

    def alias(self, event: Any, place: Place, depth: int) -> Node:
        """Return the value of an alias as if it were written here, with the position of the alias."""
        self.end = (event.end_mark.line + 1, event.end_mark.column + 1)
        node = self.anchors.get(event.anchor)
        if node is not None:
            return self.copied(node, place, place.path, depth)
        why = "it is inside the node that it refers to" if event.anchor in self.anchors else "it is not there"
        name = event.anchor[:_SHOWN]
        missing = f"not valid YAML: there is no anchor `&{name}` above"
        self.note(place, f"the alias `*{name}` cannot be read: {why}" if event.anchor in self.anchors else missing)
        return Node(place, place, None)

    def copied(self, node: Node, use: Place, path: str, depth: int) -> Node:
        self.aliased += 1
        if self.aliased > MAX_ALIASED or depth > MAX_DEPTH:
            message = f"aliases expand this document by more than {MAX_ALIASED} values or beyond {MAX_DEPTH} levels"
            raise _StoppedError(use, message)
        place, end = Place(node.place.line, node.place.column, path), Place(node.end.line, node.end.column, path)
        if isinstance(node.value, list):
            elements = [self.copied(each, use, f"{path}[{n}]", depth + 1) for n, each in enumerate(node.value)]
            return Node(place, end, elements)
        if isinstance(node.value, dict):
            start = f"{path}." if path else ""
            members = {key: self.copied(each, use, f"{start}{key}", depth + 1) for key, each in node.value.items()}
            return Node(place, end, members, node.keys)
        return Node(place, end, node.value)

    def block_end(self, event: Any) -> tuple[int, int]:
        """Return the position just after the last character of a block scalar, without the space below it."""
        mark = event.end_mark
        index = mark.index
        while index > event.start_mark.index + 1 and self.text[index - 1].isspace():
            index -= 1
        line = mark.line + 1 - self.text.count("\n", index, mark.index)
        return line, index - self.text.rfind("\n", 0, index)

    def read(self, event: Any, place: Place) -> Scalar:
        """Return the value of a scalar."""
        text: str = event.value
        tag: str | None = event.tag
        kind = _kind_of(text) if event.implicit[0] else "str" if tag is None else tag.removeprefix(_TAG)
        if kind == "str" and not _SURROGATE.search(text):
            return text
        if kind not in _READERS:
            self.note(place, f"the tag {short(tag or '')} is not allowed")
        elif _SURROGATE.search(text):
            self.note(place, "not valid YAML: this string contains a lone surrogate (half of a character)")
        else:
            try:
                return _READERS[kind](text)
            except ValueError:
                self.note(place, f"JSON cannot represent this {kind}: {text[:40]}")
        return None


def _kind_of(text: str) -> str:
    """Return the kind of an unquoted scalar in YAML 1.2."""
    for kind, pattern in _BY_FIRST.get(text[0], ()) if text else ():
        if pattern.fullmatch(text):
            return kind
    return "str" if text else "null"


def read_scalar(text: str) -> Scalar:
    """Return the value that a string would have as an unquoted scalar.

    >>> read_scalar("30"), read_scalar("0.5"), read_scalar("on")
    (30, 0.5, 'on')
    """
    kind = _kind_of(text)
    return text if kind in ("str", "merge") or len(text) > _MAX_DIGITS else _READERS[kind](text)


def _read_bool(text: str) -> bool:
    if text.lower() not in ("true", "false"):  # `!!bool yes`
        raise ValueError(text)
    return text.lower() == "true"


def _read_null(text: str) -> None:
    if text.lower() not in ("~", "null", ""):
        raise ValueError(text)


def _read_int(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise ValueError(text)
    return int(text, 8 if text.startswith("0o") else 16 if text.startswith("0x") else 10)


def _read_float(text: str) -> float:
    number = float(text.replace(".inf", "inf").replace(".nan", "nan"))
    if not math.isfinite(number):
        raise ValueError(text)
    return number


_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_NOT_ALLOWED: Final = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BLOCKS: Final = ("|", ">")
_READERS: Final[dict[str, Callable[[str], Scalar]]] = {
    "str": str,
    "int": _read_int,
    "float": _read_float,
    "bool": _read_bool,
    "null": _read_null,
    "merge": str,
}


def _place(mark: yaml.Mark, path: str) -> Place:
    return Place(mark.line + 1, mark.column + 1, path)


def _syntax_finding(error: yaml.MarkedYAMLError, text: str) -> tuple[Place | None, str]:
    """Return errors for invalid YAML, in plain words."""
    message = ", ".join(part for part in (error.context, error.problem) if part)
    at, begin = error.problem_mark, error.context_mark
    if at is None:
        return (_place(begin, "") if begin else None, f"not valid YAML: {message}")
    line = text[text.rfind("\n", 0, at.index) + 1 : at.index]
    rest = text[at.index : at.index + _SHOWN]
    rest = rest.partition("\n")[0].rstrip() or ("…" if rest.strip() else "")
    beside = begin is not None and begin.column == at.column
    words, at_beginning = syntax_words(message, rest, beside=beside, behind=bool(line.strip()))
    return _place(begin if at_beginning and begin else at, ""), f"not valid YAML: {words}"


def write_document(value: Any, *, comment: str = "") -> str:
    """Write plain JSON as a YAML string that `parse_document` reads back unchanged. `comment` is its first line.

    Raises `UsageError` for a string or a number that YAML cannot represent.
    """
    # the stubs leave the type of `width` unknown
    text = yaml.dump(value, Dumper=_Writer, sort_keys=False, allow_unicode=True, width=110)  # pyright: ignore[reportUnknownMemberType]
    written = f"# {comment}\n{text}" if comment else text
    if json.dumps(parse_document(written, "what was written").plain()) != json.dumps(value):
        raise UsageError("it contains a string or a number that cannot be written as YAML")
    return written


class _Writer(yaml.SafeDumper):
    """Quotes strings that a YAML 1.1 or 1.2 reader would not read as strings, and writes no aliases."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML asks for each value
        return True


def _write_text(writer: yaml.SafeDumper, text: str) -> yaml.Node:
    style = (
        "|" if "\n" in text and not re.search(r"[ \t]$|[^\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff]", text, re.M) else None
    )
    if any(re.fullmatch(pattern, text) for _, pattern, _ in _SCALARS):
        style = '"'
    return cast("yaml.Node", cast("Any", writer).represent_scalar(f"{_TAG}str", text, style=style))


_Writer.add_representer(str, _write_text)
