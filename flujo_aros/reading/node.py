"""What the parser builds: values that know which characters they came from."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

OBJECT: Final = "object"
ARRAY: Final = "array"
STRING: Final = "string"
NUMBER: Final = "number"
LITERAL: Final = "literal"
BARE: Final = "bare"
"""Text without quotes that is neither a number nor a literal."""


class Node:
    """One value of the text. `value` is a list of `Member`s, a list of `Node`s, or the Python scalar."""

    __slots__ = ("end", "kind", "start", "value")

    kind: str
    value: Any
    start: int
    end: int

    def __init__(self, kind: str, value: Any, start: int, end: int) -> None:
        self.kind = kind
        self.value = value
        self.start = start
        self.end = end


class Member(NamedTuple):
    """One member of an object, with the key as it was written (decoded) and where the key begins."""

    key: str
    start: int
    node: Node


def plain(node: Node) -> Any:
    """The JSON value of a node, without any regard to a schema; the last of duplicate keys wins."""
    if node.kind == OBJECT:
        return {member.key: plain(member.node) for member in node.value}
    if node.kind == ARRAY:
        return [plain(item) for item in node.value]
    return node.value
