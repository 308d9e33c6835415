"""Texts that pydantic reads as a date, time or duration although they are none."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

TIMES: Final = frozenset({"date", "date-time", "time", "duration"})
"""Formats of a JSON Schema for which pydantic also takes numbers, as seconds since 1970."""
_DIGITS: Final = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*\Z")
_RANGE: Final = re.compile(r"\d\d:\d\d-\d\d:?\d\d\Z")
_DATED_RANGE: Final = re.compile(r"\d{4}-\d\d-\d\d[ _]\d\d:\d\d-\d\d:?\d\d\Z")
_DATED_OFFSET: Final = re.compile(r".{10}[Tt](\d\d:\d\d)-(\d\d:?\d\d)\Z")
_NO_OFFSET: Final = "12:00"
BEGINS: Final = frozenset("0123456789+-. ")
"""How such a text begins."""


def is_misread(text: str, form: str) -> bool:
    """Whether a text says another time than pydantic would take it for.

    Digits alone are no date (but a duration of `90` is none either), and `10:30-11:00` is a span, not a zone.
    """
    if _DIGITS.match(text):
        return not (form == "date" and "." in text.strip(" .") and text.count(".") > 1)
    if form == "time":
        return _RANGE.match(text) is not None
    if form != "date-time":
        return False
    if _DATED_RANGE.match(text):
        return True
    offset = _DATED_OFFSET.match(text)
    return offset is not None and offset[2] > _NO_OFFSET


def may_misread(text: str, keys: Iterable[str]) -> bool:
    """Whether such a text could stand behind one of these keys (with their quotes) in this JSON.

    A quick look, which has to spare valid JSON its time: it knows ISO forms by where their marks stand.
    """
    find = text.find
    for key in keys:
        at = find(key)
        while at >= 0:
            value = at + len(key) + 3
            if text[value - 3 : value] != ': "':
                value = find('"', value - 3) + 1
            if value == 0:
                break
            if text[value + 4 : value + 5] != "-" or text[value + 16 : value + 17] == "-":
                is_clock = text[value + 2 : value + 3] == ":" and text[value + 5 : value + 6] != "-"
                if text[value : value + 1] in BEGINS and not is_clock:
                    return True
            at = find(key, value)
    return False
