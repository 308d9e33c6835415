"""When a string in broken JSON could end at another place: what it is said to hold looks like JSON that went on."""

from __future__ import annotations

import re
from typing import Final

from flujo_aros.reading.strings import QUOTES

_UNSURE: Final = re.compile(
    r"""
      \"\s*[,+]\s*[\"\#]                                        # red", "green         one" + "two
    | \"\s*\"                                                   # red" "green
    | \"\s*:\s*[\"\[{\d]                                        # red", "size": 3
    | \"[ \t]*\n                                                # red"  and the line ends
    | \"\s+-?\d[\d.]*\s*[\",]                                   # red" 12,
    | \"\s*\+\s                                                 # one" + two
    | \n[ \t]{0,80}\"                                           # a line that begins with a quote
    | \"\s{0,40},\s{0,40}(?: \Z | [\[{\n] )                     # red", {           red",  and the line ends
    | \"\s{0,40};\s{0,40}\Z                                     # red";
    | \"\s{0,40}[,;]\s{0,40}\w{1,60}\s{0,40}[:=]                # red", size:       red"; size =
    | [,\n]\s{0,40}\w{1,60}\s{0,40}[:=]\s{0,40}\"               # , size: "large
    | ,\"\w                                                     # red,"green
    | [}\]]\s{0,40},\s{0,40}[{\[\"]                             # }, {              ], "size
    | \"\s{0,40},[^\W\d]                                        # red",green
    | \A\s{0,40}[:=]\s{0,40}[\"\[{]                             # : "red            at the beginning
    | \A\s+\"                                                   # a quote at the beginning
    | \"\s{0,40}[}\]]\s{0,40}[,;]?\s{0,40}(?: [\"\[{\n] | \w{1,60}\s{0,40}[:=] )     # red"}, "size     red"] size:
    | \"\s{0,40}[\[{]\s{0,40}[\"{\[\n]                          # red" {"size
    """,
    re.X,
)
"""A quote that would fit as the end of a string, or as the beginning of the next one: each alternative is found inside
of what is said to be one string."""
JSON_MARK: Final = re.compile(r"[{\[:=]")
"""What no key holds that has quotes in it."""
_NO_BEGIN: Final = re.compile(r"\s*[\[{:=]|\s+(?:null|true|false|None|True|False|-?\d)|\s+\Z")
_ODD: Final = re.compile(r"\"\s*,|,\s*\"")
_CLOSES_FIRST: Final = re.compile(r"[^\"]*[^\s\d\"(\[{=:>,.-]\"(?:[\s,;.:)\w]|\Z)")
"""The first quote in a text looks like the last of one: no pair stands there."""
_MORE_BEHIND: Final = re.compile(
    r",\s{0,40}(?:#|//|/\*)[^\n]{0,200}\Z|,[ \t]{0,40}\n\s{0,80}[\"']?\w{1,60}[\"']?\s{0,40}[:=]"
)
_SWALLOWED: Final = re.compile(r"[}\]]\s{0,40},\s{0,40}[{\[]")
_INCHES: Final = re.compile(r"\d\"")


def is_doubtful(code: str, text: str, quotes: tuple[str, str], *, element: bool) -> bool:
    """Whether an edit of quotes could as well have been another.

    `text` is what the string is said to hold, and `quotes` stand around it.
    """
    if code == "inner-quote":
        return _holds_json(text, *quotes) or (element and _is_odd(text))
    if code == "doubled-quotes":
        return _SWALLOWED.search(text) is not None or _NO_BEGIN.match(text) is not None
    return code == "missing-quote" and _lost_too_much(text)


def _lost_too_much(text: str) -> bool:
    """Whether a string whose end was lost may have ended before: a quote, a bracket or a separator tells so."""
    return (
        text.count('"') > text.count('\\"')
        or text.endswith((";", ","))
        or _MORE_BEHIND.search(text) is not None
        or (text[-1:] in ("}", "]") and text.count(text[-1]) > text.count("{" if text[-1] == "}" else "["))
        or _NO_BEGIN.match(text) is not None
    )


def _holds_json(text: str, quote: str, last: str) -> bool:
    """Whether the quotes in a string look like JSON that went on: then nobody can tell where it ends."""
    if quote != '"' and quote in QUOTES:  # the quotes that matter are those of its own kind
        own = QUOTES[quote] if last == '"' else QUOTES[quote].replace('"', "")
        text = text.translate({34: 39} | dict.fromkeys(map(ord, own), 34))
    odd = text.count('"') % 2 == 1
    lone = text.startswith('"') or text.endswith('"') or _ODD.search(text) is not None
    if quote == '"' and _CLOSES_FIRST.match(text) is not None:
        return True
    return _UNSURE.search(text) is not None or (odd and lone)


def _is_odd(text: str) -> bool:
    """Whether one quote has no partner; behind a digit it may stand for inches."""
    return text.count('"') % 2 == 1 and _INCHES.search(text) is None
