"""A reply cut into pieces, so that each repair can be shown where it was made."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise
from typing import Final

from flujo_aros.telemetry.formatting import code_words, repair_words
from flujo_aros.telemetry.records import JournalRepair
from flujo_aros.telemetry.report_reasons import WHY

_OF_VALUE: Final = frozenset({"not-in-output", "dropped-item", "dropped-end", "synthesized", "no-contest"})
"""Repairs of a value: they have no place in the text that it was read from."""
_IN_PLACE: Final = 40
"""The longest text that is written into the reply as what a stretch of it was read as."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One repair, with the number that it has in its reply."""

    number: int
    repair: JournalRepair

    @property
    def name(self) -> str:
        """Its code in words."""
        return code_words(self.repair.code)

    @property
    def why(self) -> str:
        """Why it was made."""
        return WHY.get(self.repair.code, "")

    @property
    def words(self) -> str:
        """All of it in one line."""
        return f"{self.number} {self.repair.risk}: {self.name}: {repair_words(self.repair)}"

    @property
    def in_text(self) -> bool:
        """Whether it has a place in the text."""
        return self.repair.code not in _OF_VALUE

    @property
    def removes(self) -> bool:
        """Whether what stood there is not in the value at all."""
        return bool(self.repair.before) and not self.repair.after

    @property
    def insertion(self) -> str:
        """What is written into the reply behind it: what it was read as, where that is short and something else."""
        after = self.repair.after
        changed = after != self.repair.before and after != self.repair.before.strip("\"'")
        return after if changed and len(after) <= _IN_PLACE else ""


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a reply: the innermost edit that it is part of, if any, and the edits that end behind it."""

    text: str
    edit: Edit | None
    ends: tuple[Edit, ...]


def numbered(repairs: Sequence[JournalRepair]) -> tuple[Edit, ...]:
    """The repairs in the order of the text, counted from 1."""
    ordered = sorted(repairs, key=lambda repair: repair.span)
    return tuple(Edit(number, repair) for number, repair in enumerate(ordered, start=1))


def pieces(text: str, edits: Sequence[Edit]) -> Iterator[Piece]:
    """The text in stretches that belong to the same edits; together they are the whole text.

    >>> edit = JournalRepair(code="quotes", risk="lossless", path="$", span=(1, 4), before="'a'", after="a")
    >>> [(piece.text, piece.edit.number if piece.edit else 0) for piece in pieces("['a']", numbered([edit]))]
    [('[', 0), ("'a'", 1), (']', 0)]
    """
    size = len(text)
    placed = ((*edit.repair.span, edit) for edit in edits if edit.in_text)
    spans = [(min(start, size), min(stop, size), edit) for start, stop, edit in placed]
    begins = deque(sorted(spans, key=lambda each: (each[0], each[2].number)))
    ends: dict[int, list[Edit]] = {}
    for _, stop, edit in spans:
        ends.setdefault(stop, []).append(edit)
    edges = sorted({0, len(text), *(start for start, _, _ in spans), *ends})
    open_edits: list[tuple[int, int, int, Edit]] = []  # the shortest first: what is inside of another stays seen
    if ends.get(0):
        yield Piece("", None, tuple(ends[0]))
    for start, stop in pairwise(edges):
        while begins and begins[0][0] <= start:
            begin, end, edit = begins.popleft()
            heappush(open_edits, (end - begin, edit.number, end, edit))
        while open_edits and open_edits[0][2] <= start:
            heappop(open_edits)
        yield Piece(text[start:stop], open_edits[0][3] if open_edits else None, tuple(ends.get(stop, ())))
