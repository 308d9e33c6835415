"""What is only a part of an answer: a value among members that no bracket holds, or behind a break.

Where the damage around a value cannot be read, the value itself often can; but it is not the answer.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from flujo_aros.contract import REASONING_TAGS
from flujo_aros.reading.scanner import FENCE, LINES

_KEY = r"(?:[\"“]{1,2}[^\"“”\n]{1,120}[\"”]{1,2}|['‘]{1,2}[^'‘’\n]{1,120}['’]{1,2})"
_GOES_ON: Final = re.compile(rf"[\s}}\]]*(?:,\s*)?{_KEY}\s*[:：]")
_CAME_BEFORE: Final = re.compile(
    rf"(?:{_KEY}|^[ \t]*[^\W\d]\w{{0,60}})\s*[:：]\s*[\"'“\d\[{{tfnTFN-](?:.{{0,400}}[\"'”\]}}\w])?\s*,\s*"
    rf"(?:(?:{_KEY}|^[ \t]*[^\W\d]\w{{0,60}})\s*[:：]\s*)?\Z",
    re.S | re.M,
)
_MEMBER_OF: Final = re.compile(r"[{\[]\s*[^\s{}\[\]\"][^{}\[\]\"\n]{0,60}[:=]\s*\Z")
_LOST_KEY: Final = re.compile(r"\s*\"\w[^\"\n]{0,80}\"?\s*(?::\s*)?")
_JOINED: Final = re.compile(rf"(?:[\s,}}\]]|\\[nrt])*(?:{_KEY}\s*[:：=]\s*|,\s*\w{{1,60}}\s*[:：=]\s*)?")
_CLOSED: Final = re.compile(r"([}\]])(?:\s|\\[nrt])*[,;](?:\s|\\[nrt])*\Z")
_OPENED: Final = re.compile(r"^[ \t]*\{", re.M)
"""A brace at the begin of a line that was not taken for the begin of an object."""
_LABEL: Final = re.compile(r"(?:\A|[,\n])[ \t]*[^\W\d]\w{0,60}[ \t]*[:=][ \t]*\Z")
_OPENERS: Final = {"}": "{", "]": "["}
_NEAR: Final = 600
KEY_FIRST: Final = re.compile(r"(?:\"[^\"\n{}]{1,80}\"|'[^'\n{}]{1,80}'|“[^”\n{}]{1,80}”)\s*:")
"""The first member of an object whose opening brace was lost."""
_AFTER_A_MARK: Final = re.compile(
    rf"[`<](?:(?P<fence>(?<=`)``[ \t]*[\w+-]*[ \t]*\n)|(?<=<)/(?:{REASONING_TAGS})\s*>)\s*(?={KEY_FIRST.pattern})", re.I
)  # a set of first characters makes the search ten times as quick


class Opening(NamedTuple):
    """Where members begin that no brace opens, how good a place it is, and whether it is the first of the text."""

    start: int
    rank: int
    first: bool


def key_without_opener(text: str) -> Opening | None:
    """Members that no brace opens, at the begin of the text, of its first such fence, or behind reasoning."""
    start = len(text) - len(text.lstrip())
    if KEY_FIRST.match(text, start):
        return Opening(start, LINES, first=True)
    if "`" not in text and "<" not in text:  # one character is found ten times as fast as two
        return None
    found = _AFTER_A_MARK.search(text)
    if found is None or (found["fence"] and _is_open(text, found.start())):
        return None
    return Opening(found.end(), FENCE if found["fence"] else LINES, first=False)


def begins_without_opener(text: str, start: int) -> bool:
    """Whether members that no brace opens begin behind this place: in a fence, or behind reasoning."""
    return _AFTER_A_MARK.search(text, start) is not None


def _is_open(text: str, end: int) -> bool:
    """Whether a brace before this place is not closed there: a mark behind it is a part of what it holds."""
    return text.count("{", 0, end) > text.count("}", 0, end)


def goes_on(text: str, end: int) -> bool:
    """Whether members follow behind the end of a value."""
    return _GOES_ON.match(text, end) is not None


def is_fragment(text: str, before: int, start: int, *, broken: bool) -> bool:
    """Whether the value at `start` is held by something that ends at `before`, or by members without a bracket.

    `broken` tells that a value ended at `before` that cannot be read.
    """
    gap = text[before:start]
    if not before and _LOST_KEY.fullmatch(gap):
        return True
    if broken and (_JOINED.fullmatch(gap) is not None or _in_a_string(gap)):
        return True
    near = gap[-_NEAR:].replace('\\"', '"')
    closed = _CLOSED.search(near)
    if closed is not None and near.count(closed[1]) > near.count(_OPENERS[closed[1]]):
        return True
    opened = _OPENED.search(near)
    if opened is not None and near.count("{", opened.start()) > near.count("}", opened.start()):
        return True
    return _CAME_BEFORE.search(near) is not None or _MEMBER_OF.search(near[-100:]) is not None


def is_held(text: str, start: int, end: int) -> bool:
    """Whether a value is that of a key without quotes, in an object of which only the closer is left."""
    if _LABEL.search(text, max(0, start - 100), start) is None:
        return False
    behind = text[end : end + _NEAR]
    return any(behind.count(closer) > behind.count(opener) for closer, opener in _OPENERS.items())


def _in_a_string(gap: str) -> bool:
    """Whether a string that began behind a break is still open, with the value in it."""
    return (gap.count('"') - gap.count('\\"')) % 2 == 1
