"""Suggests spellings: the edit distance between two names, and the valid name that a misspelt one may mean."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from typing import Any, Final

from flujo_aros.errors import Hint, Suggestion

_MAX_NAME: Final = 60
_MAX_NAMES: Final = 50


class _InOrder(reprlib.Repr):
    """Abbreviates values, and keeps the order of the keys of a dictionary, which `reprlib` sorts."""

    def repr_dict(self, x: dict[Any, Any], level: int) -> str:
        shown = islice(x.items(), self.maxdict if level > 0 else 0)
        parts = [f"{self.repr1(key, level - 1)}: {self.repr1(value, level - 1)}" for key, value in shown]
        return f"{{{', '.join([*parts, *([self.fillvalue] if len(parts) < len(x) else [])])}}}"


_CLIPPED: Final = _InOrder()
_CLIPPED.maxstring = _CLIPPED.maxother = 80
_CLIPPED.maxlevel = 3
_LONG: Final = 6
"""A word of this length or more may have two typos."""


def distance(one: str, two: str) -> int:
    """Return the number of letters that were dropped, added, changed or swapped.

    >>> distance("inptu", "input"), distance("propertys", "properties")
    (1, 2)
    """
    before: list[int] = []
    last = list(range(len(two) + 1))
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, other in enumerate(two, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == two[j - 2] and one[i - 2] == other:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, last = last, row
    return last[-1]


def only_near(name: str, words: Iterable[str]) -> str | None:
    """Return the only word that a misspelt name can mean, or None if several are close, or none. A different digit is
    not a typo.

    >>> only_near("propertys", ["properties", "propertyNames"]), only_near("loop2", ["loop"])
    ('properties', None)
    """
    most = 1 if len(name) < _LONG else 2
    near = [word for word in words if abs(len(word) - len(name)) <= most and distance(name, word) <= most]
    return near[0] if len(near) == 1 and _digits(name) == _digits(near[0]) else None


def nearest(name: str, valid: Iterable[str], *, closed: bool = False) -> Hint:
    """Return a hint for a wrong name: the nearest valid one, or else all names if they are few. If there are very many
    names, only those of similar length are compared, and a very long name gets no suggestion. `closed` means that users
    cannot add names, so a single close match is certainly the intended one.

    >>> nearest("inptu", ["input", "context"])
    "; did you mean 'input'?"
    """
    known = sorted(valid)
    alike = known if len(known) <= _MAX_NAMES else sorted(known, key=lambda each: abs(len(each) - len(name)))
    close = get_close_matches(name, alike[:_MAX_NAMES], 1) if len(name) <= _MAX_NAME else []
    if close:
        sure = closed and only_near(name, known) == close[0]
        return Hint(f"; did you mean {short(close[0])}?", Suggestion(name, close[0], sure))
    return Hint(f"; known: {', '.join(map(clip, known))}" if 0 < len(known) <= 12 else "")


def short(text: str) -> str:
    """Return a string in quotes, shortened for display.

    >>> short("x" * 100) == repr("x" * 60 + "…")
    True
    """
    return repr(clip(text))


def clip(text: str, most: int = _MAX_NAME) -> str:
    """Return a string, shortened for display."""
    return text if len(text) <= most else f"{text[:most]}…"


def short_value(value: object) -> str:
    """Return the representation of any value, shortened for display.

    >>> short_value({"text": "x" * 100, "id": 1})
    "{'text': 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx', 'id': 1}"
    """
    return _CLIPPED.repr(value)


def brief(value: Any, most: int = _MAX_NAME) -> str:
    """Return a JSON value, shortened for display."""
    return clip(json.dumps(value, ensure_ascii=False, default=str), most)


def _digits(name: str) -> list[str]:
    return [letter for letter in name if letter.isdigit()]
