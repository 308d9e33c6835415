"""What a stream shows: a value as it was when it was shown, and the paths in it that stand.

The live containers only grow at their end. So a snapshot needs no copy: it notes how much of each open container there
was, and the value is put together when somebody looks. A long string costs nothing for each piece of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, Generic, NamedTuple, TypeVar

from flujo_aros.contract import path_of
from flujo_aros.json_data import is_dict, is_list
from flujo_aros.reading.edits import Path, unlink

T_co = TypeVar("T_co", covariant=True)

NOTHING: Final = object()


class OpenText:
    """A string that is still written, in the pieces that have come."""

    __slots__ = ("_joined", "_known", "pieces")

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self._joined = ""
        self._known = 0

    def upto(self, count: int) -> str:
        """The first `count` pieces as one text."""
        if count < self._known:
            return "".join(self.pieces[:count])
        if count > self._known:
            self._joined = "".join([self._joined, *self.pieces[self._known : count]])
            self._known = count
        return self._joined


class Standing(NamedTuple):
    """A place whose value will not change, and the value where all that is in it stands too."""

    path: Path
    inside: Any


class Finals:
    """The paths that stand, in the order in which they came to; as texts only when somebody looks."""

    __slots__ = ("_counts", "_latest", "_reach", "_texts", "entries")

    def __init__(self) -> None:
        self.entries: list[Standing] = []
        self._texts: list[str] = []
        self._counts: list[int] = [0]
        self._latest: frozenset[str] = frozenset()
        self._reach = 0
        """How many of the texts are in the latest set."""

    def add(self, path: Path, inside: Any = NOTHING) -> None:
        """A place that stands; with `inside`, all that is in its value stands as well."""
        self.entries.append(Standing(path, inside))

    def upto(self, count: int) -> frozenset[str]:
        """The first `count` of them."""
        for entry in islice(self.entries, len(self._counts) - 1, count):
            self._texts.append(path_of(unlink(entry.path)))
            if entry.inside is not NOTHING:
                self._texts.extend(_paths_in(entry.inside, self._texts[-1]))
            self._counts.append(len(self._texts))
        wanted = self._counts[count]
        if wanted < self._reach:
            return frozenset(self._texts[:wanted])
        if wanted > self._reach:  # a copy of a set costs a part of what making it anew costs
            self._latest = self._latest.union(self._texts[self._reach : wanted])
            self._reach = wanted
        return self._latest


def _paths_in(value: Any, path: str) -> Iterator[str]:
    pending = [(value, path)]
    while pending:
        here, at = pending.pop()
        steps = here.items() if is_dict(here) else enumerate(here) if is_list(here) else ()
        for step, inner in steps:
            inner_path = at + path_of((step,))[1:]
            yield inner_path
            pending.append((inner, inner_path))


class Slice(NamedTuple):
    """An open container as it was: its first `size` items, and its place in the container around it."""

    container: Any
    size: int
    step: str | int


class Snapshot(NamedTuple):
    """A value as it was: the open containers from the outermost in, and the text that was open in the last."""

    slices: tuple[Slice, ...]
    text: OpenText | None = None
    pieces: int = 0
    step: str | int = ""
    whole: Any = NOTHING
    """The value itself, where nothing in it is open."""

    def value(self) -> Any:
        """Put the value together; what is closed in it is shared, not copied."""
        if self.whole is not NOTHING:
            return self.whole
        inner: Any = self.text.upto(self.pieces) if self.text is not None else NOTHING
        step = self.step
        for container, count, outer in reversed(self.slices):
            copy: Any = dict(islice(container.items(), count)) if is_dict(container) else container[:count]
            if inner is not NOTHING:
                if is_list(copy):
                    copy.append(inner)
                else:
                    copy.setdefault(step, inner)
            inner, step = copy, outer
        return inner


class Partial(Generic[T_co]):
    """What can be shown of an answer that is still being written.

    `value` is plain JSON: what the schema converts for certain is converted (`"3"` is 3 where a number is wanted, an
    alias is the real name), all else is as it was written; numbers, literals and keys appear when they are whole,
    texts grow. It is the value as of this piece; it is put together at the first look, which takes time in the
    breadth of what is open, and shares what is closed in it: do not change it.

    `final_paths` are the places (`$.items[0].name`) whose value will not change, as far as this reading of the answer
    is the one that wins. `restarted` tells that it is another reading than the one shown before: a better answer
    began, or the same was found to mean something else; what was final before no longer counts.
    """

    __slots__ = ("_count", "_final_paths", "_finals", "_snapshot", "_value", "restarted")

    def __init__(self, snapshot: Snapshot, finals: Finals, *, restarted: bool) -> None:
        self._snapshot: Snapshot | None = snapshot
        self._value: Any = None
        self._finals = finals
        self._count = len(finals.entries)
        self._final_paths: frozenset[str] | None = None
        self.restarted = restarted

    @property
    def value(self) -> Any:
        """The answer so far."""
        if self._snapshot is not None:
            self._value, self._snapshot = self._snapshot.value(), None
        return self._value

    @property
    def final_paths(self) -> frozenset[str]:
        """The places whose value will not change."""
        if self._final_paths is None:
            self._final_paths = self._finals.upto(self._count)
        return self._final_paths

    def __repr__(self) -> str:
        final = sorted(self.final_paths)
        return f"Partial(value={self.value!r}, final_paths={final!r}, restarted={self.restarted!r})"
