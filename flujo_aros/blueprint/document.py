"""YAML text as a tree of plain values that know their places. The only module that knows YAML.

YAML 1.2 in what counts: `yes`, `no`, `on` and dates are text. No tags but the plain ones, no duplicate keys, and
bounds on size, depth and alias expansion, so that no document can take the reader down.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

import yaml
from yaml.composer import ComposerError
from yaml.reader import ReaderError

from flujo_aros.blueprint.syntax import syntax_words
from flujo_aros.errors import BlueprintError, Place, UsageError

Scalar: TypeAlias = str | int | float | bool | None
Finding: TypeAlias = tuple[Place | None, str]

MAX_CHARS: Final = 1_000_000
MAX_DEPTH: Final = 64
MAX_NODES: Final = 10_000
"""How many values a blueprint may hold. The largest that people write have some hundred."""
_MAX_ALIASED: Final = 5_000  # how many values aliases may add to those that are written
_MAX_DIGITS: Final = 1_000
_SHOWN: Final = 60
_FIRST_OF_STEPS: Final = ("name", "kind")


@dataclass(frozen=True, slots=True)
class Node:
    """One value of a document and where it stands, from `place` up to `end`, which is just behind its last character.

    `keys` has the place of each key of a mapping.
    """

    place: Place
    end: Place
    value: Scalar | dict[str, Node] | list[Node]
    keys: dict[str, Place] = field(default_factory=dict[str, Place])

    @property
    def members(self) -> dict[str, Node]:
        """The members of a mapping; empty for anything else."""
        return self.value if isinstance(self.value, dict) else {}

    @property
    def elements(self) -> list[Node]:
        """The elements of a list; empty for anything else."""
        return self.value if isinstance(self.value, list) else []

    def plain(self) -> Any:
        """The value as plain JSON."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value

    def nearest(self, path: Sequence[str | int]) -> Node:
        """What stands at this path, or the nearest thing above it that exists."""
        here = self
        for part in path:
            if isinstance(part, str) and part in here.members:
                here = here.members[part]
            elif isinstance(part, int) and part < len(here.elements):
                here = here.elements[part]
        return here

    def at(self, path: Sequence[str | int]) -> Place:
        """The place of what stands at this path, or of the nearest thing above it that exists."""
        return self.nearest(path).place

    def key_at(self, path: Sequence[str | int]) -> Place:
        """The place of the key at the end of this path, or of the nearest thing above it that exists."""
        here = self.nearest(path[:-1])
        return here.keys.get(str(path[-1]), here.place) if path else here.place


def parse_document(text: str, source: str) -> Node:
    """The one document in a YAML text. Raises `BlueprintError` with every mistake that can be told apart."""
    if len(text) > MAX_CHARS:
        raise BlueprintError(source, [(None, f"the file has more than {MAX_CHARS} characters")])
    deep = _BRACKETS.search(text)
    if deep:  # before the scanner, which looks far ahead of each bracket
        place = _place_of_offset(text, deep.start())
        raise BlueprintError(source, [(place, f"nested more than {MAX_DEPTH} levels deep")])
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        raise BlueprintError(source, [_syntax_finding(error)]) from error
    except ReaderError as error:
        place = _place_of_offset(text, error.position)
        raise BlueprintError(source, [(place, "a control character stands here that YAML does not allow")]) from error
    if root is None:
        raise BlueprintError(source, [(None, "the file is empty")])
    tree = _Tree(text, loader.count + _MAX_ALIASED)
    node = tree.node(root, "", 0)
    if tree.findings:
        raise BlueprintError(source, tree.findings)
    return node


class _TooMuchError(ComposerError):
    """Valid YAML, and more of it than is read."""


class _Loader(yaml.SafeLoader):
    """Composes nodes with the plain scalars of YAML 1.2, and stops where a document is nested too deeply."""

    yaml_implicit_resolvers: dict[str | None, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - as in PyYAML
    depth = 0
    count = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.depth += 1
        self.count += 1
        if self.depth > MAX_DEPTH or self.count > MAX_NODES:
            deep = f"nested more than {MAX_DEPTH} levels deep"
            many = f"a blueprint holds at most {MAX_NODES} values, and here is one more; move parts to other files"
            message = deep if self.depth > MAX_DEPTH else f"{many} (`imports`)"
            raise _TooMuchError(problem=message, problem_mark=cast("Any", self).peek_event().start_mark)
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


_TAG: Final = "tag:yaml.org,2002:"
_SCALARS: Final = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+0123456789.",
    ),
    ("merge", r"<<", "<"),
)
for _name, _pattern, _first in _SCALARS:
    cast("Any", _Loader).add_implicit_resolver(f"{_TAG}{_name}", re.compile(rf"(?:{_pattern})\Z"), list(_first))


class _Tree:
    """Turns PyYAML's graph into a tree, and notes every mistake on the way."""

    def __init__(self, text: str, most: int) -> None:
        self.text = text
        self.most = most
        self.findings: list[Finding] = []
        self.count = 0
        self.full = False

    def node(self, node: yaml.Node, path: str, depth: int) -> Node:
        place = _place(node.start_mark, path)
        self.count += 1
        if self.full or self.count > self.most or depth > MAX_DEPTH:
            if not self.full:
                message = f"aliases expand this document beyond {self.most} values or {MAX_DEPTH} levels"
                self.findings.append((place, message))
            self.full = True  # from here on nothing is expanded and nothing more is said of it
            return Node(place, place, None)
        if isinstance(node, yaml.MappingNode) and node.tag == f"{_TAG}map":
            return self.mapping(node, place, depth)
        if isinstance(node, yaml.SequenceNode) and node.tag == f"{_TAG}seq":
            parts = cast("list[yaml.Node]", node.value)
            elements = [self.node(part, f"{path}[{n}]", depth + 1) for n, part in enumerate(parts)]
            return Node(place, self.end(node, place), elements)
        return Node(place, self.end(node, place), self.scalar(node, place))

    def end(self, node: yaml.Node, place: Place) -> Place:
        """Just behind the last character. PyYAML ends a block where the next thing begins, comments included."""
        last = _last_written(node)
        mark = cast("yaml.Mark", last.end_mark)
        if getattr(last, "style", None) not in ("|", ">"):
            return Place(mark.line + 1, mark.column + 1, place.path)
        index = mark.index
        while index > last.start_mark.index + 1 and self.text[index - 1].isspace():
            index -= 1
        line = mark.line + 1 - self.text.count("\n", index, mark.index)
        return Place(line, index - self.text.rfind("\n", 0, index), place.path)

    def mapping(self, node: yaml.MappingNode, place: Place, depth: int) -> Node:
        members: dict[str, Node] = {}
        keys: dict[str, Place] = {}
        merged: list[yaml.Node] = []
        for key, value in cast("list[tuple[yaml.Node, yaml.Node]]", node.value):
            name = cast("str", key.value) if isinstance(key, yaml.ScalarNode) else None
            here = _place(key.start_mark, f"{place.path}.{name}".lstrip("."))
            if key.tag == f"{_TAG}merge":
                merged.append(value)
            elif name is None:
                self.findings.append(self.no_key(key, here))
            elif name in keys:
                hint = "; another step begins with `- `" if name in _FIRST_OF_STEPS else ""
                again = f"duplicate key {name!r}; it stands in line {keys[name].line} already{hint}"
                self.findings.append((here, again))
            else:
                keys[name] = here
                members[name] = self.node(value, here.path, depth + 1)
        for source in merged:
            self.merge(source, members, keys, place, depth)
        return Node(place, self.end(node, place), members, keys)

    def no_key(self, key: yaml.Node, here: Place) -> Finding:
        """What is wrong with a key that is a list or a mapping: most often it is a template without quotes."""
        outer = cast("yaml.Mark", key.start_mark).index - 1
        if outer >= 0 and self.text.startswith("{{", outer):
            end = self.text.find("\n", outer)
            line = self.text[outer : end if end >= 0 else None].strip()
            shown = f": '{line}'" if len(line) <= _SHOWN and "'" not in line else ""
            return (Place(here.line, here.column - 1, here.path), f"put a template in quotes{shown}")
        return (here, "a key must be a text, not a list or a mapping")

    def merge(
        self, source: yaml.Node, members: dict[str, Node], keys: dict[str, Place], place: Place, depth: int
    ) -> None:
        """`<<: *defaults`: the members of another mapping, or of several, where this one has none of its own."""
        several = isinstance(source, yaml.SequenceNode)
        for each in cast("list[yaml.Node]", source.value) if several else [source]:
            other = self.node(each, place.path, depth + 1)
            if not isinstance(other.value, dict):
                self.findings.append((other.place, "`<<` takes a mapping or a list of mappings"))
            for name, value in other.members.items():
                if name not in members:
                    members[name], keys[name] = value, other.keys[name]

    def scalar(self, node: yaml.Node, place: Place) -> Scalar:
        kind = str(node.tag).removeprefix(_TAG)
        if not isinstance(node, yaml.ScalarNode) or kind not in _READERS:
            self.findings.append((place, f"the tag {node.tag!r} is not allowed"))
            return None
        text = cast("str", node.value)
        if _SURROGATE.search(text):
            self.findings.append((place, "half of a character (a lone surrogate) stands in this text"))
            return None
        try:
            return _READERS[kind](text)
        except ValueError:
            self.findings.append((place, f"not a {kind} that JSON can hold: {text[:40]}"))
            return None


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


_BRACKETS: Final = re.compile(rf"(?:[\[{{][ \n]*){{{MAX_DEPTH + 1}}}")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_READERS: Final[dict[str, Callable[[str], Scalar]]] = {
    "str": str,
    "int": _read_int,
    "float": _read_float,
    "bool": _read_bool,
    "null": _read_null,
    "merge": str,
}


def _last_written(node: yaml.Node) -> yaml.Node:
    """The last node of a block, however deep: its end is the end of the block. Of anything else the node itself."""
    seen: set[int] = set()
    while isinstance(node, (yaml.MappingNode, yaml.SequenceNode)) and not node.flow_style and node.value:
        if id(node) in seen:  # a block that holds itself
            break
        seen.add(id(node))
        last = node.value[-1]
        inner: yaml.Node = last[1] if isinstance(node, yaml.MappingNode) else last
        if inner.start_mark.index < node.start_mark.index:  # an alias: it is written elsewhere
            return cast("yaml.Node", last[0]) if isinstance(node, yaml.MappingNode) else node
        node = inner
    return node


def _place(mark: yaml.Mark, path: str) -> Place:
    return Place(mark.line + 1, mark.column + 1, path)


def _place_of_offset(text: str, offset: int) -> Place:
    before = text[:offset]
    return Place(before.count("\n") + 1, offset - before.rfind("\n"))


def _syntax_finding(error: yaml.MarkedYAMLError) -> Finding:
    message = ", ".join(part for part in (error.context, error.problem) if part)
    marks = (error.problem_mark, error.context_mark)
    if not isinstance(error, _TooMuchError):
        words, at_beginning = syntax_words(message)
        message = f"not valid YAML: {words}"
        marks = marks[::-1] if at_beginning else marks
    mark = marks[0] or marks[1]
    return (_place(mark, "") if mark else None, message)


def write_document(value: Any, *, comment: str = "") -> str:
    """Plain JSON as a YAML text that `parse_document` reads back as the same. `comment` is its first line.

    Raises `UsageError` for a text or a number that YAML cannot hold.
    """
    text = yaml.dump(value, Dumper=_Writer, sort_keys=False, allow_unicode=True, width=110)
    written = f"# {comment}\n{text}" if comment else text
    if not _same(parse_document(written, "what was written").plain(), value):
        raise UsageError("a text or a number in it cannot be written as YAML")
    return written


def _same(left: Any, right: Any) -> bool:
    return json.dumps(left) == json.dumps(right)


class _Writer(yaml.SafeDumper):
    """Quotes what a reader of YAML 1.1 or 1.2 would take for something else than a text, and writes no aliases."""

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
