"""Judges whether words leave a value open: `not high`, `low or high`, `fewer than 5`, `maybe`, or an empty string.

The reader accepts a text as a value only if all words next to the value are neutral (`verdicts`, `scalars`). A model
that repairs a reply may also use other words, but not those that negate, limit, doubt or give a choice. Their words
are those of `tagger` and `verdicts`.
"""

from __future__ import annotations

import re
from typing import Final

from flujo_aros.reading.grammar import expression
from flujo_aros.reading.phrases import DECLINES
from flujo_aros.reading.scalars import is_no_value
from flujo_aros.reading.tagger import LEXICON
from flujo_aros.reading.verdicts import is_undecided

_NEGATES: Final = expression(f"[{LEXICON.any_of('NO/NOT/CEASED/INSTEAD/EXCEPT/WRONG')}]")
_OPEN: Final = expression(
    f"[{LEXICON.any_of('MIGHT/MAY/PERHAPS/ASSUMED/GUESSED/UNCLEAR/DOUBTFUL/IF/OR/BOUND/QUESTION/OTHERWISE')}]"
)
_OTHER_SENSE: Final = expression(
    r"\bmay\b(?=[ .,]{0,2}\d)|(?<=\d[ .-])may\b|\b(?:total of|sum of|plus|minus|extra|scale|limits?|threshold)\b", re.I
)
"""The month, and words for amounts that are exact."""
_INEXACT: Final = expression(
    r"(?:[<>~≈≤≥±]|(?:\b(?:about|around|roughly|nearly|almost|approx|circa|ca|max|min|before|after|until|till"
    r"|etwa|rund|ungefähr|mindestens|höchstens|unter|über|vor|nach|bis|environ|presque|avant|après|unos|unas|casi|hasta"
    r"|antes de|después de|(?:weniger|mehr) als|(?:moins|plus|menos|más) de|(?:meno|più) di)\.?))\s{0,3}\Z",
    re.I,
)
"""Before a number or a date: it is not exactly that."""
_GOES_ON: Final = expression(r"\s?(?:\+|[-–—]\s?\d|(?:to|bis|à)\s\d)")
"""After a number: it is the lower end of a range."""


def leaves_open(text: str, *, negated: bool = True) -> bool:
    """Return whether the words of a text, or their absence, leave a value open. `negated` means that a negation does:
    it may also make a boolean false.

    >>> [leaves_open(text) for text in ("not high", "low or high", "maybe", "n/a", "", "rather high", "urgent")]
    [True, True, True, True, True, False, False]
    >>> [leaves_open(text, negated=False) for text in ("never", "not ok", "no idea", "cannot tell")]
    [False, False, True, True]
    """
    if is_no_value(text) or is_undecided(text):
        return True
    tags = LEXICON.tags(_OTHER_SENSE.sub(" ", text))
    if _OPEN.search(tags):
        return True
    return _NEGATES.search(tags) is not None if negated else DECLINES.search(text) is not None


def is_inexact(text: str, start: int, end: int) -> bool:
    """Return whether the characters next to a number or a date make it one end of a range, or an estimate.

    >>> [is_inexact(text, text.index("5"), text.index("5") + 1) for text in ("about 5", "5-9", "5+", "for 5 days")]
    [True, True, True, False]
    """
    is_upper_end = text[start] == "-" and text[start - 1 : start].isdigit()
    return is_upper_end or bool(_INEXACT.search(text, max(0, start - 30), start) or _GOES_ON.match(text, end))
