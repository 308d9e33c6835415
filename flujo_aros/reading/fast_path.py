"""The quick way through common damage: rewrite what is odd beyond doubt, and let the C parser judge the result.

Most damaged replies are Python or JavaScript literals: single quotes, bare keys, `True`, trailing commas, comments.
The text is split at its quotation marks, and between the strings each kind of damage is repaired everywhere at once,
so that no Python code runs for a single token. The result is either valid JSON that satisfies the contract strictly, or
the text is left to the parser. This is not a second parser: it accepts nothing that the parser reads differently (a
property test compares them), and the parser makes the list of repairs when somebody asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from flujo_aros.outcome import Risk
from flujo_aros.reading.grammar import LEFT_OUT

# Control characters take the place of the strings while the rest is repaired; a text that has any is not read here.
_DOUBLE: Final = "\x00"
_SINGLE: Final = "\x01"
_ESCAPED: Final = "\x02"  # an escaped quotation mark
_HARD: Final = (_DOUBLE, _ESCAPED, "\\")
"""In single quotes, what a plain string has not: a string, or a backslash."""
_COMMENT: Final = re.compile(r"(/(?:/[^\n]*+|\*[^*]{0,2000}\*/)(?:[ \t\r\n]*+:)?)")
# Plain sets of ASCII characters are much quicker than classes such as `\w`; other letters are left to the parser.
_BARE: Final = re.compile(r"([A-Za-z_$][A-Za-z0-9_$-]{0,60}+)(?=[ \t\r\n]*+:)")
_GAP: Final = re.compile(
    r"[ \t\r\n](?<=[A-Za-z0-9_\"}\]\x00\x01][ \t\r\n])[ \t\r\n]*+(?=(?:[\x00\x01]|\"[^\"\n]*+\")[ \t\r\n]*+:)"
)
_ODD_KEY: Final = re.compile(r"[\x02\\:]|.{121}")
"""Of a key behind a missing comma: what makes it doubtful."""
_TRAILING: Final = re.compile(r",(?=[ \t\r\n]*+[}\]])(?<![\[{,\s],)")
_WORDS: Final = tuple(
    (re.compile(rf"{word}(?=[ \t\r\n]*+[,}}\]])"), spelled)
    for word, spelled in (("True", "true"), ("False", "false"), ("None", "null"))
)


class Rewritten(NamedTuple):
    """A text with its common damage repaired, and the highest risk of these repairs."""

    text: str
    risk: Risk


def rewrite(text: str) -> Rewritten | None:
    """Repair the common damage of a text that holds one value; None where it holds anything that takes more."""
    if _DOUBLE in text or _SINGLE in text or _ESCAPED in text or ("\\" in text and '\\\\"' in text):
        return None
    double = text.replace('\\"', _ESCAPED).split('"')
    single = _DOUBLE.join(double[0::2]).split("'")
    quoted = "'".join(single[1::2])
    if not len(double) % 2 or not len(single) % 2 or any(char in quoted for char in _HARD):
        return None
    rest = _without_comments(_SINGLE.join(single[0::2]))
    if rest is None:
        return None
    bare = _BARE.split(rest)
    parts = _GAP.split('"'.join(bare))
    gaps = len(parts) > 1
    if gaps and any(_ODD_KEY.search(key) for key in _keys_behind_gaps(parts, double)):
        return None
    rest = ",".join(parts)
    for word, spelled in _WORDS:
        rest = word.sub(spelled, rest)
    rest = _with_strings(_TRAILING.sub("", rest), _SINGLE, single[1::2])
    rest = _with_strings(rest, _DOUBLE, double[1::2])
    return Rewritten(rest.replace(_ESCAPED, '\\"'), Risk.INFERRED if gaps or len(bare) > 1 else Risk.LOSSLESS)


def _keys_behind_gaps(parts: list[str], double: list[str]) -> Iterator[str]:
    """The keys in double quotes that a comma is missing before."""
    seen = 0
    for before, part in pairwise(parts):
        seen += before.count(_DOUBLE)
        if part.startswith(_DOUBLE):
            yield double[2 * seen + 1]


def _without_comments(rest: str) -> str | None:
    """A space in the place of each comment; None where one holds quotes, marks an omission, or precedes a colon."""
    if "/" not in rest:
        return rest
    parts = _COMMENT.split(rest)
    comments = "\n".join((*parts[1::2], ""))
    if _DOUBLE in comments or _SINGLE in comments or ":\n" in comments or LEFT_OUT.search(comments):
        return None
    return " ".join(parts[0::2])


def _with_strings(rest: str, mark: str, strings: list[str]) -> str:
    """The strings between quotation marks, each in the place of its mark."""
    between = rest.split(mark)
    whole = [""] * (len(between) + len(strings))
    whole[0::2] = between
    whole[1::2] = strings
    return '"'.join(whole)
