"""How much an agent repeats itself, and how far it has drifted from who it is: from 0 to 1, by words alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from math import sqrt
from typing import Final

_WORD: Final = re.compile(r"\w+")
_LONG: Final = 4
"""How many letters a word has that says something about its speaker."""


def repetition(text: str, past: Iterable[str]) -> float:
    """How much of a line its speaker has said in one line before: 1 is all of it.

    >>> repetition("The bell rings again.", ["The bell rings again!"]), repetition("A lamp.", ["The bell rings."])
    (1.0, 0.0)
    """
    mine = _pairs(text)
    return max((_alike(mine, _pairs(line)) for line in past), default=0.0)


def drift(text: str, own: str) -> float:
    """How far the words of a line are from those of its speaker's persona and first lines: 1 is nothing in common.

    >>> drift("The owl counts coins.", "An owl who counts everything.") < 0.6 < drift("Buy now!", "An owl.")
    True
    """
    mine, yours = _bag(text), _bag(own)
    shared = sum(count * yours[word] for word, count in mine.items())
    size = sqrt(sum(n * n for n in mine.values())) * sqrt(sum(n * n for n in yours.values()))
    return 1 - shared / size if size else 1.0


def _pairs(text: str) -> set[tuple[str, str]]:
    words = ["", *_WORD.findall(text.casefold()), ""]
    return set(pairwise(words))


def _alike(one: set[tuple[str, str]], other: set[tuple[str, str]]) -> float:
    return 2 * len(one & other) / (len(one) + len(other))


def _bag(text: str) -> Counter[str]:
    return Counter(word for word in _WORD.findall(text.casefold()) if len(word) >= _LONG)
