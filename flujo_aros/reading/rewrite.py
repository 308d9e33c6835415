"""The quick way through common damage: rewrite what is odd beyond doubt, and let the C parser judge the result.

Most damaged replies are Python or JavaScript literals: single quotes, bare keys, `True`, trailing commas, comments.
The text is split into strings, comments and what stands between, and each kind of damage is mended everywhere at once,
so that no Python runs for a single token. The result is either valid JSON that satisfies the contract strictly, or the
text is left to the machine. This is no second parser: it accepts nothing that the machine reads otherwise (a property
test holds them together), and it is the machine that tells the repairs when somebody looks.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from flujo_aros.outcome import Risk
from flujo_aros.reading.cursor import LEFT_OUT

# Each match starts with a quote or a slash: a string (first group: what is in it), or else a comment or a quote that
# starts no plain string, with everything behind it (second group).
_PIECE: Final = re.compile(
    r"[\"'/](?:("
    r'(?<=")[^"\\\x00-\x1f]*+(?:\\.[^"\\\x00-\x1f]*+)*+(?=")'
    r"|(?<=')[^'\"\\\x00-\x1f]*+(?='\s*[:,}\]])"
    r")[\"']"
    r"|((?<=/)(?:/[^\n]*+|\*[^*]{0,2000}\*/)|(?<=[\"'])(?s:.*))\s*+)"
)
_STRING: Final = "\x00"
"""Stands for a string while the rest is mended; it can stand nowhere else."""
# Plain sets of ASCII characters are much quicker than classes such as `\\w`; other letters are left to the machine.
_BARE: Final = re.compile(r"([A-Za-z_$][A-Za-z0-9_$-]{0,60}+)(?=[ \t\r\n]*+:)")
_GAP: Final = re.compile(
    r"[ \t\r\n](?<=[A-Za-z0-9_\"}\]\x00][ \t\r\n])[ \t\r\n]*+(?=(?:\x00|\"[^\"\n]*+\")[ \t\r\n]*+:)"
)
_TRAILING: Final = re.compile(r",(?<![\[{,\s],)(?=[ \t\r\n]*+[}\]])")
_WORDS: Final = tuple(
    (re.compile(rf"{word}(?=[ \t\r\n]*+[,}}\]])"), spelled)
    for word, spelled in (("True", "true"), ("False", "false"), ("None", "null"))
)


class Rewritten(NamedTuple):
    """A text with common damage mended, and the highest risk of what was mended."""

    text: str
    risk: Risk


def rewrite(text: str) -> Rewritten | None:
    """Mend common damage in a text that holds one value; None where something stands in it that takes more."""
    if _STRING in text:
        return None
    pieces: list[Any] = _PIECE.split(text)  # what stands between, a string or None, anything else or None, and so on
    between, strings, others = pieces[0::3], pieces[1::3], pieces[2::3]
    if not between[-1]:
        return None  # a quote that starts no plain string has taken the rest
    if others.count(None) == len(others):
        rest = _STRING.join(between)
    elif LEFT_OUT.search("\n".join(filter(None, others))):
        return None
    else:
        rest = _without_comments(between, strings)
        strings = [string for string in strings if string is not None]
    bare = _BARE.split(rest)
    rest, gaps = _GAP.subn(",", '"'.join(bare))
    for word, spelled in _WORDS:
        rest = word.sub(spelled, rest)
    between = _TRAILING.sub("", rest).split(_STRING)
    whole = [""] * (len(between) + len(strings))
    whole[0::2] = between
    whole[1::2] = strings
    return Rewritten('"'.join(whole), Risk.INFERRED if gaps or len(bare) > 1 else Risk.LOSSLESS)


def _without_comments(between: list[str], strings: list[str | None]) -> str:
    """What stands between, with the mark for each string and a space for each comment."""
    whole = [" "] * (len(between) + len(strings))
    whole[0::2] = between
    whole[1::2] = [" " if string is None else _STRING for string in strings]
    return "".join(whole)
