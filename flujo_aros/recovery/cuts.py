"""Where a JSON text that breaks off could have ended: after each whole item of an open list."""

from __future__ import annotations

from collections import deque
from typing import Final

_CLOSERS: Final = {"{": "}", "[": "]"}


def whole_prefixes(text: str, most: int = 16) -> list[tuple[int, str]]:
    """The beginnings of a JSON text that end after a whole item of a list, closed, each with where it ends.

    The longest first, and at most so many. Only lists give places to end at: an object
    without its last members is another object.

    >>> whole_prefixes('{"items": [{"n": 1}, {"n": 2}, {"n"')
    [(29, '{"items": [{"n": 1}, {"n": 2}]}'), (19, '{"items": [{"n": 1}]}')]
    """
    start = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=-1)
    if start < 0:
        return []
    stack: list[str] = []
    ends: deque[tuple[int, str]] = deque(maxlen=most)
    for at, letter in _outside_strings(text, start):
        if letter in "{[":
            stack.append(letter)
        elif letter in "}]":
            if not stack or _CLOSERS[stack.pop()] != letter or not stack:
                break
            if stack[-1] == "[":
                ends.append((at + 1, _closing(stack)))
        elif stack and stack[-1] == "[" and (not ends or text[ends[-1][0] : at].strip()):
            ends.append((at, _closing(stack)))
    return [(end, text[start:end] + closing) for end, closing in reversed(ends)]


def _closing(stack: list[str]) -> str:
    return "".join(_CLOSERS[opened] for opened in reversed(stack))


def _outside_strings(text: str, start: int) -> list[tuple[int, str]]:
    """The characters that build the structure, with their places."""
    found: list[tuple[int, str]] = []
    inside = escaped = False
    for at in range(start, len(text)):
        letter = text[at]
        if inside:
            if not escaped and letter == '"':
                inside = False
            escaped = letter == "\\" and not escaped
        elif letter == '"':
            inside = True
        elif letter in "{}[],":
            found.append((at, letter))
    return found
