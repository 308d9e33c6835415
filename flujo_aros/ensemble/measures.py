"""Measures of an agent's repetition and of its drift from its persona, from 0 to 1, based on words alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from math import sqrt
from typing import Final

_WORD: Final = re.compile(r"\w+")
_LONG: Final = 4
"""The minimum length of a word that counts as characteristic of its speaker."""
_STUTTERS: Final = 12
"""The minimum number of words of a line whose own repetition is measured."""
_LOOP: Final = re.compile(r"(.{1,40}?)\1{2,}", re.DOTALL)
"""Matches the same letters three or more times in a row, even within words."""
_MOST_LOOKED_AT: Final = 2_000


def repetition(text: str, past: Iterable[str]) -> float:
    """Return the share of a line that its speaker has said in an earlier line, or repeats within this line.

    >>> repetition("The bell rings again.", ["The bell rings again!"]), repetition("A lamp.", ["The bell rings."])
    (1.0, 0.0)
    """
    mine = set(_pairs(text))
    return max([stutter(text), *(_dice(mine, set(_pairs(line))) for line in past)])


def stutter(text: str) -> float:
    """Return the share of a line that repeats its own words: 0 for ordinary speech, near 1 for a model that is stuck.

    >>> stutter("The owl counts, and the owl hoards."), stutter("ha " * 40) > 0.9, stutter("h" + "m" * 80) > 0.9
    (0.0, True, True)
    """
    pairs = _pairs(text)
    by_words = 1 - len(set(pairs)) / len(pairs) if len(pairs) >= _STUTTERS else 0.0
    seen = text[:_MOST_LOOKED_AT]
    looped = sum(len(loop[0]) - len(loop[1]) for loop in _LOOP.finditer(seen) if loop[0].strip())
    by_letters = looped / len(seen) if len(seen) >= 2 * _STUTTERS else 0.0
    return max(by_words, by_letters)


def drift(text: str, own: str) -> float:
    """Return the distance of a line's words from its speaker's persona and first lines. 1 means that they have nothing
    in common.

    >>> drift("The owl counts coins.", "An owl who counts everything.") < 0.6 < drift("Buy now!", "An owl.")
    True
    """
    mine, yours = _bag(text), _bag(own)
    shared = sum(count * yours[word] for word, count in mine.items())
    size = sqrt(sum(n * n for n in mine.values())) * sqrt(sum(n * n for n in yours.values()))
    return 1 - shared / size if size else 1.0


def _pairs(text: str) -> list[tuple[str, str]]:
    words = ["", *_WORD.findall(text.casefold()), ""]
    return list(pairwise(words))


def _dice(one: set[tuple[str, str]], other: set[tuple[str, str]]) -> float:
    return 2 * len(one & other) / (len(one) + len(other))


def _bag(text: str) -> Counter[str]:
    return Counter(word for word in _WORD.findall(text.casefold()) if len(word) >= _LONG)
