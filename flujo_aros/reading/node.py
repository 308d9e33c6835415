"""What the parser builds: values that know which characters they came from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, cast

OBJECT: Final = "object"
ARRAY: Final = "array"
STRING: Final = "string"
NUMBER: Final = "number"
LITERAL: Final = "literal"
BARE: Final = "bare"
"""Text without quotes that is neither a number nor a literal."""


class Node(NamedTuple):
    """One value of the text. `value` is a list of `Member`s, a list of `Node`s, or the Python scalar."""

    kind: str
    value: Any
    start: int
    end: int


class Member(NamedTuple):
    """One member of an object, with the key as it was written (decoded) and where the key begins."""

    key: str
    start: int
    node: Node


# Made without the price of a NamedTuple's own constructor: it counts in the parser's hot loop.
new_node = cast(
    "Callable[[type[Node], tuple[str, Any, int, int]], Node]",
    tuple.__new__,  # pyright: ignore[reportUnknownMemberType]
)
new_member = cast(
    "Callable[[type[Member], tuple[str, int, Node]], Member]",
    tuple.__new__,  # pyright: ignore[reportUnknownMemberType]
)


def moved(node: Node, by: int) -> Node:
    """The same tree, further along the text."""
    value = node.value
    if node.kind == OBJECT:
        value = [Member(member.key, member.start + by, moved(member.node, by)) for member in value]
    elif node.kind == ARRAY:
        value = [moved(item, by) for item in value]
    return Node(node.kind, value, node.start + by, node.end + by)


def plain(node: Node) -> Any:
    """The JSON value of a node, without any regard to a schema; the last of duplicate keys wins."""
    if node.kind == OBJECT:
        return {member.key: plain(member.node) for member in node.value}
    if node.kind == ARRAY:
        return [plain(item) for item in node.value]
    return node.value
