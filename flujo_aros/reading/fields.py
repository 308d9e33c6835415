"""Reads replies whose fields are marked in another way than in JSON: keyword arguments, a tag for each, or a table.

As with `lines`, only what is unambiguous is read: every field by its name, each once, with nothing between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from flujo_aros.contract import Shape
from flujo_aros.reading.fit import disowns
from flujo_aros.reading.grammar import expression
from flujo_aros.reading.lines import read_scalar, wanted
from flujo_aros.reading.node import ARRAY, LITERAL, OBJECT, STRING, Member, Node
from flujo_aros.reading.phrases import word_set
from flujo_aros.reading.scalars import name_words

_CALL: Final = r"\((?=\s*[A-Za-z_]\w*\s*=(?!=))"
_ARGUMENT: Final = expression(rf"(?<!\w)[A-Za-z_]\w*+(?P<call>{_CALL})|(?P<sign>=)|[\"'()\[\]{{}}]")
_STRING: Final = expression(r"(?P<quote>[\"'])(?:[^\"'\\\n]|\\.|(?!(?P=quote))[\"']|(?!))*+(?P=quote)")


def as_objects(text: str, shape: Shape) -> str | None:
    """Return the text with braces in place of calls of `dict` and of the contract's models: `Ticket(title="x")`.

    It keeps its length.

    >>> from flujo_aros.contract import compile_contract
    >>> as_objects("Ticket(title='x')", compile_contract({"title": "Ticket", "type": "object"}).shape)
    "      {title:'x'}"
    """
    if "(" not in text:
        return None
    parts = (shape, *shape.branches, shape.element(0), *shape.element(0).branches)
    titles = {"dict", *(part.title for part in parts)} - {""}
    names = [re.escape(title) for title in titles if f"{title}(" in text]
    if not names:
        return None
    chars = list(text)
    opened: list[str] = []
    at, call = 0, re.compile(rf"(?<![\w.])(?:{'|'.join(names)}){_CALL}")
    while found := (_ARGUMENT if opened else call).search(text, at):
        start, at = found.span()
        char = text[at - 1]
        if found.re is call or found["call"]:
            chars[start:at] = " " * (at - start - 1) + "{"
            opened.append("call")
        elif found["sign"]:
            chars[at - 1] = ":" if opened[-1] == "call" else char
        elif char in "([{":
            opened.append(char)
        elif char in ")]}":
            chars[at - 1] = "}" if opened.pop() == "call" and char == ")" else char
        elif (string := _STRING.match(text, at - 1)) is not None:
            at = string.end()
        else:
            return None
    return "".join(chars) if "call" not in opened and at else None


_Cell: TypeAlias = tuple[str, int]
_TAG: Final = expression(
    r"<(?P<tag>[A-Za-z][\w.-]{0,60})(?:=(?P<of>[\w.-]{1,60})|\s{1,20}name=[\"'](?P<name>[\w.-]{1,60})[\"'])?\s{0,20}>"
    r"(?P<value>[^<]*)</(?P=tag)>"
)
_ANY_TAG: Final = expression(r"</?([A-Za-z][\w.-]{0,60})")
_ENTITY: Final = expression(r"&(?:[a-z]{2,8}|#\w{1,6});")


def read_tags(text: str, shape: Shape) -> Node | None:
    """Return the object whose fields each have a tag: `<name>Ada</name>`, or `<parameter=name>Ada</parameter>`.

    All required fields must be there, each once, with nothing between them. A value may not hold tags or entities.
    """
    members: dict[str, Member] = {}
    start = end = -1
    for found in _TAG.finditer(text):
        key = found["of"] or found["name"] or found["tag"]
        name = shape.name_of(key) or key
        if not members and not shape.knows(key):
            continue
        value = _value(found["value"], found.start("value"), shape.member(name))
        if value is None or name in members or (members and text[end : found.start()].strip()):
            return None
        members[name] = Member(name, found.start(), value)
        start, end = (found.start() if end < 0 else start), found.end()
    if not _is_whole(members, shape):
        return None
    outside = [tag[1] for part in (text[:start], text[end:]) for tag in _ANY_TAG.finditer(part)]
    if any(disowns(tag) or shape.knows(tag) for tag in outside):
        return None
    return Node(OBJECT, [*members.values()], start, end)


def _value(raw: str, start: int, shape: Shape) -> Node | None:
    """Return the value in a tag or a cell; None if it is unclear how much of it is meant."""
    text = raw.strip()
    start += len(raw) - len(raw.lstrip())
    end = start + len(text)
    if not text:
        empty = Node(LITERAL, None, end, end) if shape.allows("null") else Node(STRING, "", end, end)
        return empty if shape.allows("null") or shape.allows("string") else None
    if _ENTITY.search(text) or text.endswith(","):
        return None
    return Node(STRING, text, start, end) if "\n" in text and text[0] not in "[{" else read_scalar(text, start, shape)


_ROW: Final = expression(r"^[ \t]*\|(?P<cells>[^\n]+)\|[ \t]*$", re.M)
_RULE: Final = expression(r"\s*:?-+:?\s*")
_EMPHASIS: Final = expression(r"(\*\*|__|`)(.*?):?\1:?")
_VALUES: Final = word_set("value values content answer result extracted wert valor valores valeur valeurs valore 值 値")


def read_table(text: str, shape: Shape) -> Node | None:
    """Return the object or the list in the only Markdown table: its fields are the columns, or each has a row.

    A table of two columns is an object only if the second is headed as a value, not as a type or a description.
    """
    rows = list(_ROW.finditer(text))
    if len(rows) < 3 or not all(map(_RULE.fullmatch, rows[1]["cells"].split("|"))):
        return None
    begin, end = rows[0].start(), rows[-1].end()
    cells = [list(_cells(row)) for row in (rows[0], *rows[2:])]
    header = [_name(cell) for cell, _ in cells.pop(0)]
    in_one = text.count("\n", begin, end) == len(rows) - 1 and "\\|" not in text
    if not in_one or any(len(row) != len(header) for row in cells):
        return None
    item = shape if shape.properties else shape.element(0)
    if all(map(item.knows, header)):
        nodes = [_object(zip(header, row, strict=True), item, begin, end) for row in cells]
        found = [node for node in nodes if node is not None]
        if len(found) < len(cells) or (item is shape and len(found) > 1):
            return None
        return found[0] if item is shape else Node(ARRAY, found, begin, end)
    if len(header) != 2 or item is not shape or not _VALUES.issuperset(name_words(header[1])):
        return None
    return _object(((_name(key), value) for (key, _), value in cells), shape, begin, end)


def _cells(row: re.Match[str]) -> Iterator[_Cell]:
    at = row.start("cells")
    for cell in row["cells"].split("|"):
        yield cell, at
        at += len(cell) + 1


def _name(cell: str) -> str:
    found = _EMPHASIS.fullmatch(cell.strip())
    return (found[2] if found else cell).strip()


def _object(cells: Iterable[tuple[str, _Cell]], shape: Shape, begin: int, end: int) -> Node | None:
    members: dict[str, Member] = {}
    for key, (raw, start) in cells:
        name = shape.name_of(key) or key
        value = _value(raw, start, shape.member(name))
        if value is None or name in members:
            return None
        members[name] = Member(name, start, value)
    return Node(OBJECT, [*members.values()], begin, end) if _is_whole(members, shape) else None


def _is_whole(members: Mapping[str, Member], shape: Shape) -> bool:
    return bool(members and wanted(shape)) and wanted(shape) <= members.keys()
