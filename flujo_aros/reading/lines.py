"""A reply of plain `key: value` lines, for schemas whose required keys all stand there."""

from __future__ import annotations

import json
import re
from typing import Final

from flujo_aros.contract.schema import Shape, fold
from flujo_aros.reading.cursor import Failure
from flujo_aros.reading.node import ARRAY, BARE, LITERAL, NUMBER, OBJECT, STRING, Member, Node, moved
from flujo_aros.reading.scalars import FOREIGN, LITERALS, read_number
from flujo_aros.reading.tolerant import Machine

_LINE: Final = re.compile(
    r"[ \t]*(?:[-*•+][ \t]+|\d{1,2}[.)][ \t]+)?(?:\*\*|__|`)?([^\W\d][\w \-]{0,60}?)(?:\*\*|__|`)?"
    r"[ \t]*[:：][ \t]*(?:\*\*|__)?[ \t]*(.*)"
)
_CLOSERS: Final = re.compile(r"\s*[}\]][}\],;\s]*")
_MAX_LINES: Final = 200
_WRAPPED: Final = re.compile(r"(\*\*|__|[\"'`“”])(.*?)(\1|[”\"])\Z", re.S)


def read_lines(text: str, shape: Shape) -> Node | None:
    """An object from lines like `key: value`, or None. Every required key must stand there, each key once.

    A line between the keys that is not such a line makes it None: it might belong to the value above it.
    """
    if not shape.required or text.count("\n") > _MAX_LINES:
        return None
    members: dict[str, Member] = {}
    at, pending = 0, False
    for line in text.split("\n"):
        start, at = at, at + len(line) + 1
        found = _LINE.fullmatch(line.rstrip("\r"))
        name = shape.keys.get(found[1]) or shape.folded.get(fold(found[1])) if found else None
        if found is None or name is None:
            if members and _CLOSERS.fullmatch(line):
                return None  # the end of an object that was never opened: its values may be anything
            pending = pending or (bool(members) and bool(line.strip()))
            continue
        if name in members or pending or not found[2].strip():
            return None
        members[name] = Member(name, start + found.start(1), _value(found, start, shape.member(name)))
    if not shape.required <= members.keys():
        return None
    nodes = list(members.values())
    return Node(OBJECT, nodes, nodes[0].start, nodes[-1].node.end)


def _value(found: re.Match[str], offset: int, shape: Shape) -> Node:
    start = offset + found.start(2)
    raw = found[2].rstrip().rstrip(",").rstrip()
    raw = raw[:-2].rstrip() if raw.endswith("**") and not raw.startswith("**") else raw
    end = start + len(raw)
    if raw[:1] == '"' and (decoded := _decoded(raw)) is not None:
        return Node(STRING, decoded, start, end)
    quoted = _WRAPPED.fullmatch(raw)
    if quoted:
        return Node(STRING, quoted[2], start, end)
    if raw[:1] in ("[", "{"):
        parsed = Machine(raw, 0, shape).parse()
        if not isinstance(parsed, Failure) and parsed.end == len(raw) and not parsed.cut:
            return moved(parsed.node, start)
    if raw in LITERALS or raw in FOREIGN:
        return Node(LITERAL, LITERALS[raw] if raw in LITERALS else FOREIGN[raw][0], start, end)
    number = read_number(raw)
    return Node(NUMBER, number.value, start, end) if number else Node(BARE, raw, start, end)


def _decoded(raw: str) -> str | None:
    try:
        return str(json.loads(raw))
    except ValueError:
        return None


def list_of(nodes: list[Node]) -> Node:
    """Several values as one list."""
    return Node(ARRAY, nodes, nodes[0].start, nodes[-1].end)
