"""Lines and columns of a text as the blueprint reader counts them, and the offsets that edits need."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from flujo_aros.errors import Place

_BREAK: Final = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_MARK: Final = "\ufeff"  # has an offset, but no column


@dataclass(frozen=True)
class Positions:
    """The lines of one text."""

    text: str

    @cached_property
    def starts(self) -> list[int]:
        """The offset at which each line begins."""
        return [0, *(found.end() for found in _BREAK.finditer(self.text))]

    def offset(self, place: Place) -> int:
        """The offset of a place; the nearest one where the text has no such place."""
        if place.line > len(self.starts):
            return len(self.text)
        start = self.starts[max(place.line, 1) - 1]
        offset = start + max(place.column, 1) - 1
        if _MARK in self.text:
            offset += self.text.count(_MARK, start, offset)
        return min(offset, len(self.text))

    def place(self, offset: int) -> Place:
        """The place of an offset."""
        line = bisect_right(self.starts, offset)
        start = self.starts[line - 1]
        return Place(line, offset - start + 1 - self.text.count(_MARK, start, offset))

    def line(self, number: int) -> str:
        """A line without its end; empty where there is none."""
        if not 0 < number <= len(self.starts):
            return ""
        start = self.starts[number - 1]
        end = self.starts[number] if number < len(self.starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n\x85\u2028\u2029")

    def line_end(self, offset: int) -> int:
        """The offset at which the line that holds this offset ends, before its line break."""
        found = _BREAK.search(self.text, offset)
        return found.start() if found else len(self.text)

    @cached_property
    def newline(self) -> str:
        """The line break of this text: the first one in it."""
        found = _BREAK.search(self.text)
        return found.group() if found and found.group() in ("\n", "\r\n", "\r") else "\n"
