"""What the parser builds: values that know which characters they came from, and the log of departures from the text."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias, cast, overload

from flujo_aros.contract import path_of
from flujo_aros.outcome import Repair, Risk

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


_SHOWN: Final = 80

Path: TypeAlias = "tuple[Path, str | int] | None"
"""A path as a linked list, innermost last: building it costs one small tuple for each level."""


class Edit(NamedTuple):
    """One departure: what, how risky, which characters, what they were read as, and where in the value (if known)."""

    code: str
    risk: Risk
    start: int
    end: int
    after: str
    path: Path | str = ""
    """"" means: look the place up by position."""


CLEANED: Final = "cleaned"
"""The code of what was left out or changed because it is optional."""
LOSSLESS, INFERRED, LOSSY = Risk.LOSSLESS, Risk.INFERRED, Risk.LOSSY
"""Looking a member of an enum up costs more than reading a name."""

# A NamedTuple without the price of its own constructor: thousands are made for a damaged text.
new_edit = cast(
    "Callable[[type[Edit], tuple[str, Risk, int, int, str, str]], Edit]",
    tuple.__new__,  # pyright: ignore[reportUnknownMemberType]
)


class RepairLog(Sequence[Repair]):
    """The repairs of a value, built when somebody looks."""

    __slots__ = ("_built", "_edits", "_names", "_text", "_tree")

    def __init__(
        self,
        edits: Sequence[Edit],
        text: str,
        tree: Callable[[], tuple[Node | None, Sequence[Edit]]],
        names: dict[int, str] | None = None,
    ) -> None:
        """`tree` gives the nodes that the edits lie in, and the edits made on the way to them that `edits` has not."""
        self._edits = edits
        self._text = text
        self._tree = tree
        self._names = names or {}
        self._built: tuple[Repair, ...] | None = None

    def _all(self) -> tuple[Repair, ...]:
        if self._built is None:
            root, unlogged = self._tree()
            self._built = tuple(self._build(edit, root) for edit in (*unlogged, *self._edits))
        return self._built

    def _build(self, edit: Edit, root: Node | None) -> Repair:
        written = edit.path if isinstance(edit.path, str) else ""
        path = written or path_of(steps_of(edit, root, self._names))
        before = self._text[edit.start : min(edit.end, edit.start + _SHOWN + 1)]  # an edit may be about the whole text
        return Repair(edit.code, edit.risk, path, (edit.start, edit.end), _cut(before), _cut(edit.after))

    @overload
    def __getitem__(self, index: int) -> Repair: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Repair]: ...
    def __getitem__(self, index: int | slice) -> Repair | Sequence[Repair]:
        return self._all()[index]

    def __len__(self) -> int:
        return len(self._all())

    def __iter__(self) -> Iterator[Repair]:
        return iter(self._all())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, RepairLog):
            return self._all() == other._all()
        return self._all() == other

    def __hash__(self) -> int:
        return hash(self._all())

    def __repr__(self) -> str:
        return repr(self._all())


def steps_of(edit: Edit, root: Node | None, names: dict[int, str]) -> tuple[str | int, ...]:
    """The keys and indexes that lead to the place of an edit; empty where it is about the whole."""
    if isinstance(edit.path, str):
        return () if edit.path else tuple(steps_to(root, edit.start, names))
    return unlink(edit.path)


def worst(edits: Iterable[Edit]) -> Risk | None:
    """The highest risk, or None where nothing was edited."""
    return max(map(_RISK_OF, edits), default=None)


_RISK_OF: Final = attrgetter("risk")


def unlink(path: Path) -> tuple[str | int, ...]:
    """A linked path as a tuple, outermost first."""
    steps: list[str | int] = []
    while path is not None:
        path, step = path
        steps.append(step)
    return tuple(reversed(steps))


def steps_to(root: Node | None, at: int, names: dict[int, str]) -> Iterator[str | int]:
    """The keys and indexes that lead to the innermost node which holds this position of the text.

    Siblings are in the order of the text, so each level takes a binary search: a text may have as many edits as a list
    has items.
    """
    node: Node | None = root
    while node is not None:
        inner: Node | None = None
        if node.kind == OBJECT:
            members: list[Member] = node.value
            index = bisect_left(members, at, key=lambda member: member.node.end)
            if index < len(members) and members[index].start <= at:
                yield names.get(id(members[index]), members[index].key)
                inner = members[index].node
        elif node.kind == ARRAY:
            items: list[Node] = node.value
            index = bisect_left(items, at, key=lambda item: item.end)
            if index < len(items) and items[index].start <= at:
                yield index
                inner = items[index]
        node = inner


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
