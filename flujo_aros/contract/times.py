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
_BEGIN: Final = "0123456789+. -"
BEGINS: Final = frozenset(_BEGIN)
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


def misreadable(keys: Iterable[str]) -> re.Pattern[str]:
    """Finds where such a text could stand behind one of these keys (with their quotes) in JSON.

    A quick look, which has to spare valid JSON its time: it knows ISO forms by where their marks stand.
    """
    names = "|".join(re.escape(key[1:-1]) for key in sorted(keys))
    return re.compile(rf'"(?:{names})"\s*:\s*"(?=[{_BEGIN}])(?![^"]{{4}}-(?![^"]{{11}}-))(?![^"]{{2}}:(?![^"]{{2}}-))')
