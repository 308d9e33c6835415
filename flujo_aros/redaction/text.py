"""Finds known values in text, and whether a position is inside a JSON string, where secrets are escaped."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from flujo_aros.json_data import SUSPECT_ESCAPE, literal_escapes, unescape

CUT: Final = 16
"""The minimum length of a prefix at the end of a text, which may end in the middle of a value."""
SHORT: Final = 6
"""Values shorter than this count only as separate words."""
_BOUND: Final = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=\\u[0-9A-Fa-f]{4}))"
_PIECE: Final = 1_000
_FEW: Final = 16
"""The number of values up to which searching them one by one is faster."""
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
        """Yield the spans of values, and of prefixes of values that are long enough to matter, in any order."""
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
        """Return the end of the longest value that begins at a position."""
        together = self._long.get(text[at : at + CUT])
        if together:
            here = bisect_left(together, text[at : at + self._longest])
            return at + max(_common(value, text, at) for value in together[max(0, here - 1) : here + 1])
        sizes = (size for size, values in self._whole.items() if size >= SHORT and text[at : at + size] in values)
        longest = max(sizes, default=None)
        return None if longest is None else at + longest


def begins_word(text: str, at: int) -> bool:
    """Return whether a word may begin at a position: not within one, but also after a JSON escape."""
    return _BEGINS.match(text, at) is not None


def _pieces(value: str) -> Iterable[str]:
    """Split a long value into overlapping pieces, so that no single comparison takes long."""
    return (value[at : at + _PIECE + CUT] for at in range(0, max(1, len(value) - CUT), _PIECE))


def _starts(begins: set[str], size: int, text: str) -> Iterator[int]:
    """Yield the positions of these strings, which all have the same length."""
    if len(begins) > _FEW:
        yield from [at for at in range(len(text) - size + 1) if text[at : at + size] in begins]
        return
    for begin in begins:
        at = text.find(begin)
        while at >= 0:
            yield at
            at = text.find(begin, at + 1)


def _common(value: str, text: str, at: int) -> int:
    """Return the number of characters of a value that the text contains at a position."""
    least, most = 0, len(value)
    while least < most:
        half = (least + most + 1) // 2
        least, most = (half, most) if text.startswith(value[:half], at) else (least, half - 1)
    return least


_TOKENS: Final = re.compile(r"\\.|[\"']", re.S)
_SPACE: Final = " \t\r\n"
_NEAR: Final = 80
_KEY: Final = re.compile(r"(?:[\"']|\{\s*\w+)\s*\Z")
"""Matches the text before a colon if it is a key: a closing quote, or `{` and a bare key. In prose it is a word."""
_BEHIND_KEY: Final = re.compile(r"[\"']\s*:\s*\Z")
_BEFORE_NEXT: Final = re.compile(r"\s*(?:[,}]|\Z)")
_VALID: Final = re.compile(r"(?:[^\"\\\x00-\x1f]|\\(?:[\"\\/bfnrt]|u[0-9a-fA-F]{4})|(?!))*+")
"""The content of a string in valid JSON."""
_ESCAPED: Final = re.compile(r"[\\\"\x00-\x1f\x7f]")
_ESCAPED_SINGLE: Final = re.compile(r"[\\\"'\x00-\x1f\x7f]")


@dataclass
class Quotes:
    """The quotation marks of one text, located when first needed."""

    text: str
    _opens: dict[int, bool] = field(default_factory=dict[int, bool])
    _closes: dict[int, bool] = field(default_factory=dict[int, bool])

    def around(self, start: int, end: int) -> str | None:
        """Return the quotation mark of the JSON string that contains a position, or None.

        Exact for valid JSON. In any other text, quotation marks and their neighbours decide what a string is.

        >>> text = '{"a": "b"}, he said "c"'
        >>> [Quotes(text).around(text.index(letter), text.index(letter) + 1) for letter in "bc"]
        ['"', None]
        """
        for mark, places in self._marks.items():
            before, after = bisect_left(places, start) - 1, bisect_left(places, end)
            opened = before >= 0 and self._may_open(places[before])
            if opened and (after == len(places) or self._may_close(places[after])):
                return mark
        return None

    def is_bare_value(self, start: int, end: int) -> bool:
        """Return whether a position is an unquoted JSON value after a key."""
        behind_key = _BEHIND_KEY.search(self.text[max(0, start - _NEAR) : start])
        return behind_key is not None and _BEFORE_NEXT.match(self.text, end) is not None

    @cached_property
    def _marks(self) -> dict[str, list[int]]:
        """The positions of each kind of quotation mark, without escaped ones."""
        found: dict[str, list[int]] = {'"': [], "'": []}
        for token in _TOKENS.finditer(self.text):
            if token.group() in found:
                found[token.group()].append(token.start())
        return found

    def _may_open(self, place: int) -> bool:
        """Return whether a string may begin at a quotation mark: after a bracket, a comma or a key, or at the start of
        the text.
        """
        if place not in self._opens:
            at = self._beyond_space(place, -1)
            letter = self.text[at : at + 1] if at >= 0 else ""
            is_value = letter == ":" and _KEY.search(self.text[max(0, at - _NEAR) : at]) is not None
            self._opens[place] = letter in ("", "{", "[", ",") or is_value
        return self._opens[place]

    def _may_close(self, place: int) -> bool:
        if place not in self._closes:
            at = self._beyond_space(place, 1)
            self._closes[place] = self.text[at : at + 1] in ("", "}", "]", ",", ":")
        return self._closes[place]

    def _beyond_space(self, place: int, step: int) -> int:
        at = place + step
        while 0 <= at < len(self.text) and self.text[at] in _SPACE:
            at += step
        return at


def unescaped(written: str, mark: str) -> str:
    """Return the content of a JSON string, decoded as the reader decodes it.

    >>> print(unescaped(r"ab\\\\cd", '"'), unescaped(r"ab\\cd", '"'))
    ab\\cd ab\\cd
    """
    if "\\" not in written:
        return written
    is_plain = mark == '"' and _VALID.fullmatch(written) and not SUSPECT_ESCAPE.search(written)
    literal = frozenset[int]() if is_plain else literal_escapes(written, wants_text=True)
    found = unescape(written, literal, python=mark == "'")
    return written if found.lone or found.dangling else found.value


def escaped(text: str, mark: str) -> str:
    """Return a string escaped as the content of a JSON string, in a form that no reader can misread.

    >>> print(escaped('12" \\\\new', '"'))
    12\\" \\\\new
    """
    return (_ESCAPED_SINGLE if mark == "'" else _ESCAPED).sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    letter = found.group()
    # `\\n` and similar escapes can be mistaken for the beginning of a word, as in a path; a numeric escape cannot.
    return f"\\{letter}" if letter in '\\"' else f"\\u{ord(letter):04x}"
