"""Tells whether a position is inside a JSON string, where a backslash is an escape, and converts between both."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from flujo_aros.json_data import SUSPECT_ESCAPE, literal_escapes, unescape

_TOKENS: Final = re.compile(r"\\.|[\"']", re.S)
_SPACE: Final = " \t\r\n"
_NEAR: Final = 80
_KEY: Final = re.compile(r"(?:[\"']|\{\s*\w+)\s*\Z")
"""What precedes the colon after a key; in prose that is a word."""
_BEHIND_KEY: Final = re.compile(r"[\"']\s*:\s*\Z")
_BEFORE_NEXT: Final = re.compile(r"\s*(?:[,}]|\Z)")
_VALID: Final = re.compile(r"(?:[^\"\\\x00-\x1f]|\\(?:[\"\\/bfnrt]|u[0-9a-fA-F]{4}))*+")
"""The inside of a string of valid JSON."""
_ESCAPED: Final = re.compile(r"[\\\"\x00-\x1f\x7f]")
_ESCAPED_SINGLE: Final = re.compile(r"[\\\"'\x00-\x1f\x7f]")


@dataclass
class Quotes:
    """The quotation marks of one text; they are looked for when the first question is asked."""

    text: str

    def around(self, start: int, end: int) -> str | None:
        """The mark of the JSON string in which a place lies; None for any other place.

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
        """Whether a place is the value of a key of JSON, without marks."""
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

    @cached_property
    def _opens(self) -> dict[int, bool]:
        return {}

    @cached_property
    def _closes(self) -> dict[int, bool]:
        return {}

    def _may_open(self, place: int) -> bool:
        """Whether a string may begin at a mark: behind a bracket, a comma or a key, or with the text."""
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
    """The inside of a JSON string, decoded as the reader decodes it.

    >>> print(unescaped(r"ab\\\\cd", '"'), unescaped(r"ab\\cd", '"'))
    ab\\cd ab\\cd
    """
    if "\\" not in written:
        return written
    is_plain = mark == '"' and _VALID.fullmatch(written) and not SUSPECT_ESCAPE.search(written)
    literal = frozenset[int]() if is_plain else literal_escapes(written, wants_text=True)
    found = unescape(written, literal, python=mark == "'")
    return written if found.lone or found.dangling else found.value


def escaped(said: str, mark: str) -> str:
    """A string as the inside of a JSON string, in a form that no reader can take for anything else.

    >>> print(escaped('12" \\\\new', '"'))
    12\\" \\\\new
    """
    return (_ESCAPED_SINGLE if mark == "'" else _ESCAPED).sub(_escape, said)


def _escape(found: re.Match[str]) -> str:
    letter = found.group()
    # `\\n` and its kin may be taken for the beginning of a word, as in a path: a code may not.
    return f"\\{letter}" if letter in '\\"' else f"\\u{ord(letter):04x}"
