"""The data that reading builds: values with their positions in the text, and the log of edits.

Work is proportional to the damage. In a reply with one defect, most containers are valid JSON, and each of these costs
one call of the C scanner instead of one step per token. The result is a `Scanned` node, which knows its value
immediately and creates the nodes of its items on demand: coercion and repair paths descend into few of them.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from json.scanner import make_scanner
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias, cast, overload

from flujo_aros.contract import path_of
from flujo_aros.json_data import may_mean_backslash, members, place_of
from flujo_aros.outcome import Repair, Risk
from flujo_aros.reading.scalars import MAX_DIGITS

OBJECT: Final = "object"
ARRAY: Final = "array"
STRING: Final = "string"
NUMBER: Final = "number"
LITERAL: Final = "literal"
BARE: Final = "bare"
"""Unquoted text that is neither a number nor a literal."""


class Node(NamedTuple):
    """One value of the text. `value` is a list of `Member`s, a list of `Node`s, or the Python scalar."""

    kind: str
    value: Any
    start: int
    end: int


class Member(NamedTuple):
    """One member of an object, with the decoded key and where the key begins."""

    key: str
    start: int
    node: Node


# Built without the cost of a NamedTuple's own constructor: the parser makes thousands of each.
_new = cast("Any", tuple.__new__)  # pyright: ignore[reportUnknownMemberType]
new_node: Final[Callable[[type[Node], tuple[str, Any, int, int]], Node]] = _new
new_member: Final[Callable[[type[Member], tuple[str, int, Node]], Member]] = _new
new_edit: Final[Callable[[type[Edit], tuple[str, Risk, int, int, str, str]], Edit]] = _new
new_scanned: Final[Callable[[type[Scanned], tuple[str, Any, int, int, Source]], Scanned]] = _new


def moved(node: Node, by: int) -> Node:
    """Return the same tree with all positions shifted."""
    value = node.value
    if node.kind == OBJECT:
        value = [Member(member.key, member.start + by, moved(member.node, by)) for member in value]
    elif node.kind == ARRAY:
        value = [moved(item, by) for item in value]
    return Node(node.kind, value, node.start + by, node.end + by)


def plain(node: Node) -> Any:
    """Return the JSON value of a node, independent of any schema; the last of duplicate keys wins."""
    if node.kind == OBJECT:
        return {member.key: plain(member.node) for member in node.value}
    if node.kind == ARRAY:
        return [plain(item) for item in node.value]
    return node.value


_SHOWN: Final = 80

Path: TypeAlias = "tuple[Path, str | int] | None"
"""A path as a linked list, innermost last: building it costs one small tuple for each level."""


class Edit(NamedTuple):
    """One deviation from JSON: its code, its risk, its characters, their replacement, and its path (if known)."""

    code: str
    risk: Risk
    start: int
    end: int
    after: str
    path: Path | str = ""
    """"" means that the path is looked up by position."""


CLEANED: Final = "cleaned"
"""The code for an optional part that was left out or changed."""
LOSSLESS, INFERRED, LOSSY = Risk.LOSSLESS, Risk.INFERRED, Risk.LOSSY
"""Looking up an enum member costs more than reading a name."""


class RepairLog(Sequence[Repair]):
    """The repairs of a value, built on first access."""

    def __init__(
        self,
        edits: Sequence[Edit],
        text: str,
        root: Node | None = None,
        names: dict[int, str] | None = None,
        *,
        unlisted: Callable[[], Sequence[Edit]] = tuple,
    ) -> None:
        """`root` has the nodes that contain the edits. `unlisted` returns further edits, made before these."""
        self._edits = edits
        self._text = text
        self._root = root
        self._names = names or {}
        self._unlisted = unlisted

    @cached_property
    def _all(self) -> tuple[Repair, ...]:
        root, lists = self._root, lists_in(self._edits)
        built: list[Repair] = []
        written: dict[Path, str] = {}
        for edit in (*self._unlisted(), *self._edits):
            code, risk, start, end, after, path = edit
            if code in _OF_VALIDATOR and isinstance(path, str):
                along = nodes_along(root, place_of(path) or (), self._names, lists)
                start, end = (along[-1][0], along[-1][1].end) if along else (start, end)
            before = self._text[start : min(end, start + _SHOWN + 1)]  # an edit may concern the entire text
            before = before if len(before) <= _SHOWN else f"{before[: _SHOWN - 1]}…"
            after = after if len(after) <= _SHOWN else f"{after[: _SHOWN - 1]}…"
            if not isinstance(path, str):
                path = written.get(path) or written.setdefault(path, path_of(unlink(path)))
            path = path or path_of(steps_to(root, start, self._names, lists))
            built.append(Repair(code, risk, path, (start, end), before, after))
        return tuple(built)

    @overload
    def __getitem__(self, index: int) -> Repair: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Repair]: ...
    def __getitem__(self, index: int | slice) -> Repair | Sequence[Repair]:
        return self._all[index]

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Repair]:
        return iter(self._all)

    def __eq__(self, other: object) -> bool:
        return self._all == (other._all if isinstance(other, RepairLog) else other)

    def __hash__(self) -> int:
        return hash(self._all)

    def __repr__(self) -> str:
        return repr(self._all)


_OF_VALIDATOR: Final = ("ignored_key", "lax-conversion")
"""The codes for changes made by a validator, which reports the path and not the characters."""


WRAPPED: Final = "wrapped-in-list"
"""The code for a value that became a list of one item."""
UNWRAPPED: Final = "unwrapped-list"
"""The code for a list whose only item became the value."""
LIST_CODES: Final = (WRAPPED, UNWRAPPED)
Lists: TypeAlias = Mapping[tuple[int, int], str]
"""The values that became a list or were taken out of one, by their start and end."""


def lists_in(edits: Iterable[Edit]) -> Lists:
    """Return the edits that put values into a list or took them out of one."""
    return {(edit.start, edit.end): edit.code for edit in edits if edit.code in LIST_CODES}


def steps_of(edit: Edit, root: Node | None, names: dict[int, str], lists: Lists) -> tuple[str | int, ...]:
    """Return the keys and indexes that lead to the position of an edit, or an empty tuple if it
    concerns the entire value.
    """
    if isinstance(edit.path, str):
        return () if edit.path else steps_to(root, edit.start, names, lists)
    return unlink(edit.path)


def worst(edits: Iterable[Edit]) -> Risk | None:
    """Return the highest risk, or None if nothing was edited."""
    return max(map(_RISK_OF, edits), default=None)


_RISK_OF: Final = attrgetter("risk")


def unlink(path: Path) -> tuple[str | int, ...]:
    """Return a linked path as a tuple, outermost first."""
    steps: list[str | int] = []
    while path is not None:
        path, step = path
        steps.append(step)
    return tuple(reversed(steps))


def steps_to(root: Node | None, at: int, names: dict[int, str], lists: Lists) -> tuple[str | int, ...]:
    """Return the keys and indexes that lead to the innermost node at this position of the text.

    Siblings are in the order of the text, so each level takes a binary search: a text may have as many edits as a list
    has items.
    """
    steps: list[str | int] = []
    node = root
    while node is not None:
        changed = lists.get((node.start, node.end)) if node.start <= at < node.end else None
        if changed == WRAPPED:
            steps.append(0)
        if node.kind not in (OBJECT, ARRAY):
            break
        inside: list[Any] = node.value
        is_object = node.kind == OBJECT
        index = bisect_left(inside, at, key=_MEMBER_END if is_object else _END)
        if index == len(inside) or inside[index].start > at:
            break
        found: Any = inside[index]
        step: str | int = (names.get(id(found)) or found.key) if is_object else index
        steps += [step] if is_object or changed != UNWRAPPED else []
        node = found.node if is_object else found
    return tuple(steps)


_MEMBER_END, _END = attrgetter("node.end"), attrgetter("end")


def nodes_along(
    root: Node | None, steps: Iterable[str | int], names: dict[int, str], lists: Lists
) -> list[tuple[int, Node]]:
    """Return the start and the node of each member and item that these keys and indexes lead through.

    Repairs may have moved the last of them.
    """
    found: list[tuple[int, Node]] = []
    node: Node | None = root
    item: Node | None = None
    for step in steps:
        changed = None if node is None or node is item else lists.get((node.start, node.end))
        if node is not None and changed == UNWRAPPED and node.kind == ARRAY:
            node = node.value[0]
        inner: tuple[int, Node] | None = None
        if node is not None and changed == WRAPPED:
            item, inner = node, (node.start, node)
        elif node is not None and node.kind == OBJECT:
            members: list[Member] = node.value
            same = (each for each in reversed(members) if names.get(id(each), each.key) == step)
            inner = next(((each.start, each.node) for each in same), None)
        elif node is not None and node.kind == ARRAY and isinstance(step, int) and step < len(node.value):
            inner = node.value[step].start, node.value[step]
        if inner is None:
            break
        found.append(inner)
        node = inner[1]
    return found


# --- valid JSON, read by the C scanner: the end of a value, the value, and its nodes on demand ------------------------

_BLANK: Final = re.compile(r"[ \t\r\n]*")
JSON_BEGINS: Final = re.compile(r"\{[ \t\r\n]*+[\"}]|\[[ \t\r\n]*+[\]\[{\"\-0-9tfnNI]")
"""The beginning of a container that may be valid JSON."""
_OBJECT_BEGINS: Final = re.compile(r"\{[ \t\r\n]*+([\"}]?)")
_COLON: Final = re.compile(r"[ \t\r\n]*:[ \t\r\n]*")
_COMMA: Final = re.compile(r"[ \t\r\n]*,?[ \t\r\n]*")
_CLASSES: Final = {str: STRING, int: NUMBER, float: NUMBER, bool: LITERAL, type(None): LITERAL}


def reject_constant(word: str) -> None:
    """Reject `NaN` and `Infinity`, which the C scanner reports here."""
    raise ValueError(f"{word} is not a JSON number")


def parse_finite_float(digits: str) -> float:
    """Return the float written by these digits. Raises `ValueError` if it would be infinite."""
    value = float(digits)
    if value - value != 0:
        raise ValueError(f"the number {digits[:40]} is too large to represent exactly")
    return value


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _context(**hooks: Any) -> Any:
    """Return the decoder attributes that the scanner reads its hooks from; its stubs do not declare them."""
    return json.JSONDecoder(parse_constant=reject_constant, strict=True, **hooks)


_scan: Final = make_scanner(_context())
_scan_with_care: Final = make_scanner(_context(parse_float=parse_finite_float, object_pairs_hook=_without_duplicates))


class Source:
    """The text that contains the nodes. In a streamed reply it grows, and nothing else may hold a reference to it."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class Scanned(Node):
    """A container of valid JSON. Its tuple has the JSON in place of the value, and the source after the end."""

    @cached_property
    def value(self) -> Any:
        """The members or items as the parser would have built them, created on first access."""
        return _child_nodes(self)

    @property
    def plain(self) -> Any:
        """The JSON."""
        return self[1]

    @property
    def source(self) -> Source:
        """The source that contains the node."""
        return cast("tuple[str, Any, int, int, Source]", self)[4]

    def forget(self) -> None:
        """Release the members or items; they can be created again."""
        self.__dict__.pop("value", None)


class JsonExtent(NamedTuple):
    """The end of a JSON value; if it is damaged, None and the end of its valid part."""

    end: int | None
    error: int


def json_extent(text: str, start: int) -> JsonExtent:
    """Return the end of the valid part of the JSON at `start`, at the speed of a C scanner."""
    if text[start : start + 1] == "{" and (begins := _OBJECT_BEGINS.match(text, start)) is not None and not begins[1]:
        return JsonExtent(None, begins.end())  # an exception of the scanner counts the lines and costs ten times this
    try:
        return JsonExtent(_scan(text, start)[1], 0)
    except json.JSONDecodeError as error:
        return JsonExtent(None, error.pos)
    except StopIteration as error:
        return JsonExtent(None, error.value)
    except (ValueError, RecursionError):
        return JsonExtent(None, start)


def find_json_end(text: str, start: int) -> int | None:
    """Return the end of the JSON value at `start`, or None if there is no JSON value."""
    return json_extent(text, start).end


def scan(source: Source, start: int, depth: int) -> Scanned | int:
    """Return the container at `start`, if it is valid and unambiguous JSON, or else how far it is valid.

    The parser must read it itself where a key occurs twice, a number is not finite, a backslash may be part of the text
    (`C:\\new`), or containers are nested deeper than `depth`.
    """
    text = source.text
    if JSON_BEGINS.match(text, start) is None:  # where the scanner fails, it counts the lines up to there
        return start + 1
    try:
        value, end = _scan_with_care(text, start)
    except json.JSONDecodeError as error:
        return error.pos
    except StopIteration as error:
        return int(error.value)
    except (ValueError, RecursionError):
        return len(text)
    if end - start > depth and text.count("{", start, end) + text.count("[", start, end) > depth:
        return end
    if end - start > MAX_DIGITS and has_long_number(text, start, end):
        return end
    at = text.find("\\", start, end)
    if at >= 0 and may_mean_backslash(text, max(start, at - 64), end):
        return end
    return new_scanned(Scanned, (OBJECT if text[start] == "{" else ARRAY, value, start, end, source))


def find_nodes(text: str, start: int, value: Any, paths: Sequence[tuple[str | int, ...]]) -> list[Node]:
    """Return the nodes of the scalars at these paths of the JSON value at `start`; paths and nodes in the order of the
    text.

    The C scanner skips everything that no path leads into, and stops after the last one.
    """
    tree: dict[str | int, Any] = {}
    for path in paths:
        branch = tree
        for step in path:
            branch = branch.setdefault(step, {})
    found: list[Node] = []
    _find_in(text, start, value, tree, found, len(paths))
    return found


def _find_in(text: str, start: int, value: Any, tree: dict[str | int, Any], found: list[Node], wanted: int) -> int:
    """Add the nodes that `tree` leads to in one container. Returns its end, unless all nodes have been found."""
    kind: type = value.__class__
    is_object = kind is dict
    pos = _after(_BLANK, text, start + 1)
    for key, part in members(value):
        at = _after(_COLON, text, _scan(text, pos)[1]) if is_object else pos
        inner = tree.get(key)
        if inner:
            end = _find_in(text, at, part, inner, found, wanted)
        else:
            end = _scan(text, at)[1]
            if inner is not None:
                found.append(Node(_CLASSES[part.__class__], part, at, end))
        if inner is not None and len(found) == wanted:
            return end
        pos = _after(_COMMA, text, end)
    return pos + 1


def has_long_number(text: str, start: int, end: int) -> bool:
    """Return whether a number in this part of a text may have too many digits to be read exactly, judged by samples."""
    half = MAX_DIGITS // 2
    return any(text[at : at + half].isdigit() for at in range(start, end, half))


def _child_nodes(node: Scanned) -> list[Any]:
    source, is_object, found = node.source, node.kind == OBJECT, list[Any]()
    text = source.text
    pos = _after(_BLANK, text, node.start + 1)
    for value in node.plain.values() if is_object else node.plain:
        key, end = _scan(text, pos) if is_object else ("", pos)
        inner = _node(source, _after(_COLON, text, end) if is_object else pos, value)
        found.append(Member(key, pos, inner) if is_object else inner)
        pos = _after(_COMMA, text, inner.end)
    return found


def _node(source: Source, start: int, value: Any) -> Node:
    end: int = _scan(source.text, start)[1]
    kind = _CLASSES.get(value.__class__)
    if kind is None:
        return new_scanned(Scanned, (OBJECT if value.__class__ is dict else ARRAY, value, start, end, source))
    return Node(kind, value, start, end)


def _after(pattern: re.Pattern[str], text: str, pos: int) -> int:
    found = pattern.match(text, pos)
    return found.end() if found else pos
