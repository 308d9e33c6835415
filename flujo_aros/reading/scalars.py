"""Strings, numbers and words as models write them: what each token says, and how far that departs from JSON."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from flujo_aros.outcome import Risk

SURROGATE: Final = re.compile("[\ud800-\udfff]")
"""Half of a surrogate pair: it cannot be encoded for a file, a socket or a terminal."""

LITERALS: Final[dict[str, Any]] = {"true": True, "false": False, "null": None}

# Words that other languages use for JSON's three literals. `undefined` is a guess: JavaScript drops such a member.
FOREIGN: Final[dict[str, tuple[Any, Risk]]] = {
    "True": (True, Risk.LOSSLESS),
    "False": (False, Risk.LOSSLESS),
    "None": (None, Risk.LOSSLESS),
    "TRUE": (True, Risk.LOSSLESS),
    "FALSE": (False, Risk.LOSSLESS),
    "NULL": (None, Risk.LOSSLESS),
    "Null": (None, Risk.LOSSLESS),
    "nil": (None, Risk.INFERRED),
    "undefined": (None, Risk.INFERRED),
}

NON_FINITE: Final = re.compile(r"[+-]?(?:nan|inf(?:inity)?)\Z", re.I)

NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.A)
_LOOSE_NUMBER: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\Z", re.A)
_GROUPED: Final = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?\Z", re.A)
MAX_DIGITS: Final = 4_000


class Reading(NamedTuple):
    """What a token was read as; `code` is empty where it is plain JSON."""

    value: Any
    code: str
    risk: Risk


def read_number(raw: str) -> Reading | None:
    """The number that these characters write, or None. Digits are never dropped: `007` and `12%` are no numbers.

    Takes thousands groups (`1,234,567`), `+5`, `.5` and `5.` as INFERRED.
    """
    if len(raw) > MAX_DIGITS:
        return None
    match = NUMBER.fullmatch(raw)
    if match:
        return _finite(raw, "", Risk.LOSSLESS)
    if _LOOSE_NUMBER.match(raw):
        digits = raw.lstrip("+-")
        if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
            return None
        return _finite(raw, "loose-number", Risk.INFERRED)
    if _GROUPED.match(raw):
        return _finite(raw.replace(",", ""), "digit-groups", Risk.INFERRED)
    return None


def _finite(raw: str, code: str, risk: Risk) -> Reading | None:
    if "." in raw or "e" in raw or "E" in raw:
        value = float(raw)
        return None if value in (float("inf"), float("-inf")) else Reading(value, code, risk)
    return Reading(int(raw), code, risk)
