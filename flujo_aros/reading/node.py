"""What the parser builds: values with their positions in the text, and the log of edits."""

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


# Built without the cost of a NamedTuple's own constructor, which matters in the parser's hot loop.
new_node = cast(
    "Callable[[type[Node], tuple[str, Any, int, int]], Node]",
    tuple.__new__,  # pyright: ignore[reportUnknownMemberType]
)
new_member = cast(
    "Callable[[type[Member], tuple[str, int, Node]], Member]",
    tuple.__new__,  # pyright: ignore[reportUnknownMemberType]
)


def moved(node: Node, by: int) -> Node:
    """The same tree, shifted along the text."""
    value = node.value
    if node.kind == OBJECT:
        value = [Member(member.key, member.start + by, moved(member.node, by)) for member in value]
    elif node.kind == ARRAY:
        value = [moved(item, by) for item in value]
    return Node(node.kind, value, node.start + by, node.end + by)


def plain(node: Node) -> Any:
    """The JSON value of a node, independent of any schema; the last of duplicate keys wins."""
    if node.kind == OBJECT:
        return {member.key: plain(member.node) for member in node.value}
    if node.kind == ARRAY:
        return [plain(item) for item in node.value]
    return node.value


_SHOWN: Final = 80

Path: TypeAlias = "tuple[Path, str | int] | None"
"""A path as a linked list, innermost last: building it costs one small tuple for each level."""


class Edit(NamedTuple):
    """One departure from JSON: its code, its risk, its characters, what they were read as, and its path (if known)."""

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

# A NamedTuple without the cost of its own constructor: a damaged text has thousands of edits.
new_edit = cast(
    "Callable[[type[Edit], tuple[str, Risk, int, int, str, str]], Edit]",
    tuple.__new__,  # pyright: ignore[reportUnknownMemberType]
)


class RepairLog(Sequence[Repair]):
    """The repairs of a value, built on first access."""

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
            self._built = tuple([self._build(edit, root) for edit in (*unlogged, *self._edits)])
        return self._built

    def _build(self, edit: Edit, root: Node | None) -> Repair:
        written = edit.path if isinstance(edit.path, str) else ""
        path = written or path_of(steps_of(edit, root, self._names))
        before = self._text[edit.start : min(edit.end, edit.start + _SHOWN + 1)]  # an edit may be about the whole text
        shown = [words if len(words) <= _SHOWN else f"{words[: _SHOWN - 1]}…" for words in (before, edit.after)]
        return Repair(edit.code, edit.risk, path, (edit.start, edit.end), *shown)

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
    """The keys and indexes that lead to the place of an edit; empty if it is about the whole value."""
    if isinstance(edit.path, str):
        return () if edit.path else steps_to(root, edit.start, names)
    return unlink(edit.path)


def worst(edits: Iterable[Edit]) -> Risk | None:
    """The highest risk, or None if nothing was edited."""
    return max(map(_RISK_OF, edits), default=None)


_RISK_OF: Final = attrgetter("risk")


def unlink(path: Path) -> tuple[str | int, ...]:
    """A linked path as a tuple, outermost first."""
    steps: list[str | int] = []
    while path is not None:
        path, step = path
        steps.append(step)
    return tuple(reversed(steps))


def steps_to(root: Node | None, at: int, names: dict[int, str]) -> tuple[str | int, ...]:
    """The keys and indexes that lead to the innermost node which holds this position of the text.

    Siblings are in the order of the text, so each level takes a binary search: a text may have as many edits as a list
    has items.
    """
    steps: list[str | int] = []
    node: Node | None = root
    while node is not None:
        inner: Node | None = None
        if node.kind == OBJECT:
            members: list[Member] = node.value
            index = bisect_left(members, at, key=_MEMBER_END)
            if index < len(members) and members[index].start <= at:
                steps.append(names.get(id(members[index]), members[index].key))
                inner = members[index].node
        elif node.kind == ARRAY:
            items: list[Node] = node.value
            index = bisect_left(items, at, key=_END)
            if index < len(items) and items[index].start <= at:
                steps.append(index)
                inner = items[index]
        node = inner
    return tuple(steps)


_MEMBER_END, _END = attrgetter("node.end"), attrgetter("end")
