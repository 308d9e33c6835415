"""How near two names are: the distance in typos, and the one name of a list that a misspelt one must mean."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_LONG: Final = 6
"""A word of this length or more may have two typos."""


def distance(one: str, two: str) -> int:
    """How many letters were lost, added, changed or swapped.

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
    """The only word that a misspelt name can be; None if several are near, or none. Other digits are no typo.

    >>> only_near("propertys", ["properties", "propertyNames"]), only_near("loop2", ["loop"])
    ('properties', None)
    """
    most = 1 if len(name) < _LONG else 2
    near = [word for word in words if abs(len(word) - len(name)) <= most and distance(name, word) <= most]
    return near[0] if len(near) == 1 and _digits(name) == _digits(near[0]) else None


def _digits(name: str) -> list[str]:
    return [letter for letter in name if letter.isdigit()]
