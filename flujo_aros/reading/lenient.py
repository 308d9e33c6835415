"""The parser for an object of which only some keys count: once these are read, the rest may be unreadable.

It is the same parser, which answers differently where it would stop. What it leaves out is the edit `cleaned`; nothing
takes its place.
"""

from __future__ import annotations

import re
from math import inf, nan
from typing import Any, Final

from flujo_aros.contract import ANY, Counts, Shape, path_of
from flujo_aros.json_data import Unescaped
from flujo_aros.outcome import Reason, Risk
from flujo_aros.reading.grammar import brackets
from flujo_aros.reading.node import NUMBER, OBJECT, Member, Node
from flujo_aros.reading.parser import Frame, Parsed, Parser, Stop
from flujo_aros.reading.repairs import LOSSY, Edit, worst
from flujo_aros.reading.scalars import SURROGATE

_BETWEEN: Final = ("truncated", "elided")
"""Where these stop the parser between two members, the member before has ended."""
CLEANED: Final = "cleaned"
"""The code of what was left out or changed because it is optional."""


class LenientParser(Parser):
    """Reads an object of which only the keys of `counts` count. `NaN` and `Infinity` become numbers."""

    def __init__(
        self,
        text: str,
        start: int,
        shape: Shape = ANY,
        *,
        counts: Counts,
        max_depth: int = 200,
        ends: bool = False,
        doubled: bool = False,
    ) -> None:
        super().__init__(text, start, shape, max_depth=max_depth, ends=ends, doubled=doubled)
        self._counts = counts

    def _run(self) -> Parsed:
        try:
            return super()._run()
        except Stop as stop:
            begin = self._end_of_what_counts(stop)
            end = None if begin is None else self._end_of_object(stop, begin)
            if end is None:
                raise
            return self._without_rest(stop, end)

    # --- what an optional field may hold ------------------------------------------------------------------------------

    def _not_finite(self, raw: str, pos: int, why: str) -> Node:  # noqa: ARG002 (no message is made here)
        sign = -1 if raw.startswith("-") else 1
        return Node(NUMBER, nan if "a" in raw.lower() else sign * inf, pos, pos + len(raw))

    def _whole_characters(self, found: Unescaped, start: int) -> str:
        if not found.lone or not self._in_optional():
            return super()._whole_characters(found, start)
        whole = SURROGATE.sub("\ufffd", found.value)
        self.edits.append(Edit(CLEANED, LOSSY, start, start, whole, self._path()))
        return whole

    def _in_optional(self) -> bool:
        return bool(self.stack) and self._is_optional(self.stack[0])

    def _is_optional(self, root: Frame) -> bool:
        """Whether the member that is being read is one that does not count."""
        return root.kind == OBJECT and bool(root.key) and root.keys.get(root.key, root.key) not in self._counts.keys

    # --- where it ends too early ----------------------------------------------------------------------------------

    def _cut_string(self, start: int) -> Node:
        self._end_of_text_stop("the end of a text")
        return super()._cut_string(start)

    def _word(self, raw: str, pos: int, shape: Shape, *, at_end: bool) -> Node:
        if at_end and not self.ends:
            self._end_of_text_stop("the end of a value")
        return super()._word(raw, pos, shape, at_end=at_end)

    def _end_of_text(self, *, seen_end: bool = False) -> bool:
        if not seen_end and not self.ends:
            self._end_of_text_stop("a closing bracket")
        return super()._end_of_text(seen_end=seen_end)

    # --- leaving out what follows ---------------------------------------------------------------------------------

    def _end_of_what_counts(self, stop: Stop) -> int | None:
        """Where the last key that is needed ends, if that is certain and the parser stopped at what is optional."""
        root = self.stack[0] if self.stack else None
        if root is None or root.kind != OBJECT or not self._counts.needed <= root.plain.keys():
            return None
        end: int = max(member.node.end for member in root.items if member.key in self._counts.keys)
        sure = self.comma >= end and (worst(e for e in self.edits if e.start < end) or Risk.LOSSLESS) is Risk.LOSSLESS
        between = not root.key and len(self.stack) == 1 and stop.failure.code in _BETWEEN
        return end if sure and (between or self._is_optional(root)) else None

    def _end_of_object(self, stop: Stop, begin: int) -> int | None:
        """Where the object ends. None where that is not certain, or where a key that counts may follow once more."""
        end, depth = len(self.text), 0
        cut = stop.failure.reason is Reason.TRUNCATED
        for found in brackets(self.text, self.stack[0].start, end):
            depth += 1 if found[0] in "{[" else -1
            if depth <= 0:
                end, cut = found.end(), False
                break
        else:
            if not cut:
                return None
        self.cut = cut
        again = "|".join(map(re.escape, sorted(self._counts.keys)))
        return None if re.compile(rf"[\"'](?:{again})[\"']\s*:").search(self.text, begin, end) else end

    def _without_rest(self, stop: Stop, end: int) -> Parsed:
        """The object with what was whole before this place."""
        path, root = self._path(), self.stack[0]
        if stop.failure.reason is Reason.TOO_LARGE:  # of what is nested without end nothing is kept
            path = path_of([root.key])
            del self.stack[1:]
            self.comma = min(self.comma, root.key_at)
        begin = max(self.comma + 1, *(_end_of(frame) for frame in self.stack))
        self.edits = [edit for edit in self.edits if edit.start < begin]
        self.pos = begin
        while len(self.stack) > 1:
            if self.stack[-1].items:
                self._pop()
            else:
                self.stack.pop()
                self._forget_key()
        self._forget_key()
        self.edits.append(Edit(CLEANED, LOSSY, begin, end, "", path))
        self.pos = end
        plain: dict[str, Any] = root.plain
        return Parsed(Node(OBJECT, root.items, root.start, end), end, self.edits, self.cut, plain, doubtful=True)

    def _forget_key(self) -> None:
        self.stack[-1].key = ""

    def _path(self) -> str:
        """The path of what the parser is reading."""
        steps: list[str | int] = []
        for frame in self.stack:
            if frame.kind != OBJECT:
                steps.append(len(frame.items))
            elif frame.key:
                steps.append(frame.keys.get(frame.key, frame.key))
        return path_of(steps)


def _end_of(frame: Frame) -> int:
    """Where the last item of a container ends."""
    last = frame.items[-1] if frame.items else None
    node: Node | None = last.node if isinstance(last, Member) else last
    return 0 if node is None else node.end
