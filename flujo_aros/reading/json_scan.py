"""Valid JSON inside a reply, read by the C parser: where a value ends, what it is, and its nodes on demand.

Work follows damage. In a reply with one defect, most containers are valid JSON, and each of these costs one call of the
C scanner instead of a look at every token. What it finds is a `Scanned` node, which knows its value at once and makes
the nodes of its items on demand: coercion and repair paths descend into few.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from json.scanner import make_scanner
from typing import Any, Final, NamedTuple, cast

from flujo_aros.json_data import may_mean_backslash
from flujo_aros.reading.node import ARRAY, LITERAL, NUMBER, OBJECT, STRING, Member, Node
from flujo_aros.reading.scalars import MAX_DIGITS

_BLANK: Final = re.compile(r"[ \t\r\n]*")
_COLON: Final = re.compile(r"[ \t\r\n]*:[ \t\r\n]*")
_COMMA: Final = re.compile(r"[ \t\r\n]*,?[ \t\r\n]*")
_CLASSES: Final = {str: STRING, int: NUMBER, float: NUMBER, bool: LITERAL, type(None): LITERAL}


def refuse_constant(word: str) -> None:
    """Reject `NaN` and `Infinity`, which the C scanner reports here."""
    raise ValueError(f"{word} is not a JSON number")


def finite(digits: str) -> float:
    """The float written by these digits. Raises `ValueError` if it would be infinite."""
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
    """The decoder attributes that the scanner reads its hooks from; its stubs do not declare them."""
    return json.JSONDecoder(parse_constant=refuse_constant, strict=True, **hooks)


_scan: Final = make_scanner(_context())
_scan_with_care: Final = make_scanner(_context(parse_float=finite, object_pairs_hook=_without_duplicates))


class Scanned(Node):
    """A container read by the C scanner. Its tuple field holds the JSON and the text."""

    @cached_property
    def value(self) -> Any:
        """The members or items as the parser would have built them, created on first access."""
        return _members(self) if self.kind == OBJECT else _items(self)

    @property
    def plain(self) -> Any:
        """The JSON."""
        return self[1][0]


_new = cast(  # without the price of a NamedTuple's own constructor
    "Callable[[type[Scanned], tuple[str, Any, int, int]], Scanned]",
    tuple.__new__,  # pyright: ignore[reportUnknownMemberType]
)


class JsonExtent(NamedTuple):
    """Where a JSON value ends, or None and how far it is valid if it is damaged."""

    end: int | None
    error: int


def json_extent(text: str, start: int) -> JsonExtent:
    """How far the JSON from `start` is valid, at the speed of a C scanner."""
    try:
        return JsonExtent(_scan(text, start)[1], 0)
    except json.JSONDecodeError as error:
        return JsonExtent(None, error.pos)
    except StopIteration as error:
        return JsonExtent(None, error.value)
    except (ValueError, RecursionError):
        return JsonExtent(None, start)


def find_json_end(text: str, start: int) -> int | None:
    """The end of the JSON value at `start`, or None if there is no JSON value."""
    return json_extent(text, start).end


class Unreadable(NamedTuple):
    """The parser has to read the container itself: it is valid JSON only up to this position."""

    at: int


def scan(text: str, start: int, depth: int) -> Scanned | Unreadable:
    """The container at `start`, if it is valid JSON that can mean one thing only.

    The parser reads it itself where a key occurs twice, a number is not finite, a backslash may be a part of the text
    (`C:\\new`), or containers are nested deeper than `depth`.
    """
    try:
        value, end = _scan_with_care(text, start)
    except json.JSONDecodeError as error:
        return Unreadable(error.pos)
    except StopIteration as error:
        return Unreadable(error.value)
    except (ValueError, RecursionError):
        return Unreadable(len(text))
    if end - start > depth and text.count("{", start, end) + text.count("[", start, end) > depth:
        return Unreadable(end)
    if end - start > MAX_DIGITS and has_long_number(text, start, end):
        return Unreadable(end)
    at = text.find("\\", start, end)
    if at >= 0 and may_mean_backslash(text, max(start, at - 4), end):
        return Unreadable(end)
    return _new(Scanned, (OBJECT if text[start] == "{" else ARRAY, (value, text), start, end))


def find_nodes(text: str, start: int, value: Any, paths: Sequence[tuple[str | int, ...]]) -> list[Node]:
    """The nodes of the scalars at these paths of the JSON value at `start`; paths and nodes in the order of the text.

    The C scanner skips what no path leads into, and nothing after the last of them is looked at.
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
    """Add the nodes that `tree` leads to in one container. Returns its end, unless all nodes are found already."""
    kind: type = value.__class__
    is_object = kind is dict
    pos = _after(_BLANK, text, start + 1)
    parts: Iterable[tuple[Any, Any]] = value.items() if is_object else enumerate(cast("list[Any]", value))
    for key, part in parts:
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
    """Whether a number in this part of a text may have too many digits to be read exactly: one sample is all digits."""
    half = MAX_DIGITS // 2
    return any(text[at : at + half].isdigit() for at in range(start, end, half))


def _members(node: Scanned) -> list[Member]:
    (plain, text), found = node[1], list[Member]()
    pos = _after(_BLANK, text, node.start + 1)
    for value in plain.values():
        key, end = _scan(text, pos)
        inner = _node(text, _after(_COLON, text, end), value)
        found.append(Member(key, pos, inner))
        pos = _after(_COMMA, text, inner.end)
    return found


def _items(node: Scanned) -> list[Node]:
    (plain, text), found = node[1], list[Node]()
    pos = _after(_BLANK, text, node.start + 1)
    for value in plain:
        inner = _node(text, pos, value)
        found.append(inner)
        pos = _after(_COMMA, text, inner.end)
    return found


def _node(text: str, start: int, value: Any) -> Node:
    end: int = _scan(text, start)[1]
    kind = _CLASSES.get(value.__class__)
    if kind is None:
        return _new(Scanned, (OBJECT if value.__class__ is dict else ARRAY, (value, text), start, end))
    return Node(kind, value, start, end)


def _after(pattern: re.Pattern[str], text: str, pos: int) -> int:
    found = pattern.match(text, pos)
    return found.end() if found else pos
