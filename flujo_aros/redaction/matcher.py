"""Finds many known values in a text at once: the time does not grow with their number times its length."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

CUT: Final = 16
"""From so many characters on, the beginning of a value counts: the text may end in the middle of one."""
SHORT: Final = 6
"""A value shorter than that counts only as a word of its own."""
_BOUND: Final = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=\\u[0-9A-Fa-f]{4}))"
_PIECE: Final = 1_000
_FEW: Final = 16
"""So many are looked for one by one, which is quicker."""
_BEGINS: Final = re.compile(rf"{_BOUND}(?=[\s\S])")
_ENDS: Final = re.compile(r"(?![A-Za-z0-9])")


@dataclass
class Matcher:
    """Known values, prepared once to be found in many texts.

    >>> list(Matcher(["hunter2", "1234"]).find_in("1234, 12345 and hunter2"))
    [(16, 23), (0, 4)]
    """

    values: Iterable[str] = ()
    _whole: dict[int, set[str]] = field(default_factory=dict[int, set[str]])
    _long: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    _longest: int = 0

    def __post_init__(self) -> None:
        for value in dict.fromkeys(piece for whole in self.values for piece in _pieces(whole)):
            if len(value) >= CUT:
                self._long.setdefault(value[:CUT], []).append(value)
                self._longest = max(self._longest, len(value))
            else:
                self._whole.setdefault(len(value), set()).add(value)
        for together in self._long.values():
            together.sort()

    def find_in(self, text: str) -> Iterator[tuple[int, int]]:
        """The spans of values, and of beginnings of values that are long enough to matter; in any order."""
        for at in _starts(self._begins, SHORT, text):
            end = self._end_of(at, text)
            if end is not None:
                yield at, end
        for size, values in self._whole.items():
            if size < SHORT:
                places = ((at, at + size) for at in _starts(values, size, text))
                yield from (each for each in places if begins_word(text, each[0]) and _ENDS.match(text, each[1]))

    @cached_property
    def _begins(self) -> set[str]:
        shorter = (value for size, values in self._whole.items() if size >= SHORT for value in values)
        return {value[:SHORT] for value in (*self._long, *shorter)}

    def _end_of(self, at: int, text: str) -> int | None:
        """The end of the longest value that begins at a position."""
        together = self._long.get(text[at : at + CUT])
        if together:
            here = bisect_left(together, text[at : at + self._longest])
            return at + max(_common(value, text, at) for value in together[max(0, here - 1) : here + 1])
        sizes = (size for size, values in self._whole.items() if size >= SHORT and text[at : at + size] in values)
        longest = max(sizes, default=None)
        return None if longest is None else at + longest


def begins_word(text: str, at: int) -> bool:
    """Whether a place is where a word may begin: not within one, but also behind an escape of JSON."""
    return _BEGINS.match(text, at) is not None


def _pieces(value: str) -> Iterable[str]:
    """A long value in pieces that overlap: so no look at a place takes long, and together they cover all of it."""
    if len(value) <= _PIECE + CUT:
        return (value,)
    return (value[at : at + _PIECE + CUT] for at in range(0, len(value) - CUT, _PIECE))


def _starts(begins: set[str], size: int, text: str) -> Iterator[int]:
    """The positions of these strings, which all have the same length."""
    if len(begins) > _FEW:
        yield from [at for at in range(len(text) - size + 1) if text[at : at + size] in begins]
        return
    for begin in begins:
        at = text.find(begin)
        while at >= 0:
            yield at
            at = text.find(begin, at + 1)


def _common(value: str, text: str, at: int) -> int:
    """How many characters of a value the text has at a position."""
    least, most = 0, len(value)
    while least < most:
        half = (least + most + 1) // 2
        least, most = (half, most) if text.startswith(value[:half], at) else (least, half - 1)
    return least
