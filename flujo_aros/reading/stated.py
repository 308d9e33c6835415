"""Finds where a longer reply states a number, a date or a time: in a sentence or line that the rest only explains.

`Total: 17`, a blank line and the reason; or a few sentences, and at the end `The answer is 17.` Choices and booleans
are words of the sentences themselves: see `verdicts`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from flujo_aros.reading import phrases
from flujo_aros.reading.grammar import expression
from flujo_aros.reading.scalars import announces

_LINE: Final = expression(r"[^\n]+")
_NEXT_SENTENCE: Final = expression(r"(?<=[^\W\d_][.!?])[ \t]|(?<=[^\W\d_][.!?]\*\*)[ \t]|(?<=[。！？])(?=.)")
_FENCE: Final = ("```", "~~~")
_FENCE_BEFORE: Final = expression(r"(?:```|~~~)[\w+-]*\s*\Z")
_MOST: Final = 200
_POLITE: Final = expression(
    r"\A\s*(?:(?:sure|certainly|of course|absolutely|ok(?:ay)?|understood|got it|hello|hi)(?: there| thing)?[!.,]\s)+"
    r"|(?:\A|(?<=[.!?\n]\s)|(?<=\n))(?:(?:therefore|thus|hence|so(?! far\b)|overall|in conclusion"
    r"|based on [\w ]{1,40}),?\s"
    r"|i(?: would|['’]d) (?:classify|rate|label|categori[sz]e|describe|call) (?:this|it|the \w+) as\s"
    r"|i (?:choose|pick|select)\s)",
    re.I,
)
OFFERS: Final = expression(
    r"(?:\A|(?<=[.!?\n]\s)|(?<=\n))(?:please )?(?:let me know|feel free|i hope (?:this|that)|hope (?:this|that)"
    r"|is there anything else|would you like|happy to help)\b",
    re.I,
)
_BOXED: Final = expression(r"\$?(?:\\\(\s?)?\\boxed\{([^{}]*)\}(?:\s?\\\))?\$?")
_LIMITS: Final = expression(
    r"\W*(?:but|unless|if|however|except|only|though|although|or|and|maybe|perhaps|probably|possibly|not|partially|partly"
    r"|mostly|somewhat|sometimes|usually|generally|almost|in (?:part|some|most|theory|principle)|let['’]?s?|aber|wenn"
    r"|oder|außer|mais|si|ou|sauf|pero|salvo|o)\b"
    r"|\W*(?:is|are|was|were|would|could|can|should|must|might|may|will|does|did|seems|thank\w*"
    r"|i(?:['’]ll|['’]d|['’]m| (?:can|could|will|would|am|have|see|understand))|sure)\b",
    re.I,
)
"""Words after a statement that limit it, or show that it only answers a request."""
_DIGIT: Final = expression(r"\d")
_SENTENCE: Final = expression(r"[.!?]\s|\n")
_CONTINUES: Final = expression(r"\n[ \t]*[a-z](?![\w ]{0,40}[:：])")
_COPULA: Final = expression(r"\b(?:is|are|ist|sind|lautet|est|es)\b", re.I)


def without_courtesies(text: str) -> str:
    """Return the text with spaces in place of a greeting, an offer, `Therefore`, and the frame of `\\boxed{17}`."""
    text = _BOXED.sub(lambda found: found[1].rjust(len(found[0])), text) if "boxed" in text else text
    text = _POLITE.sub(lambda found: " " * len(found[0]), text)
    offer = OFFERS.search(text, text.rstrip().rfind("\n") + 1)
    return text if offer is None else text[: offer.start()].ljust(len(text))


def statements(text: str) -> list[tuple[int, int, bool]]:
    """Return the start and end of the sentences and lines of a text, or an empty list if there are too many.

    The third value says whether it is separate and in a place where answers are given: alone in a fence, after a label,
    or at the beginning or end of the reply.

    A number at the beginning of a paragraph may number it, so it must be in a separate paragraph.
    """
    places = list(_units(text))
    if len(places) > _MOST:
        return []
    last = len(places) - 1
    found: list[tuple[int, int, bool]] = []
    for at, (start, end) in enumerate(places):
        before, behind = text[:start].rstrip(), text[end:].lstrip(" \t")
        fenced = _FENCE_BEFORE.search(before) is not None
        labelled = any(mark in text[start:end] for mark in ":：") and not _CONTINUES.match(behind)
        says_so = labelled or _COPULA.search(text, start, end) is not None
        introduced = not at or before.endswith((*".!?>*。！？", *_FENCE)) or announces(text[slice(*places[at - 1])])
        ends = labelled or not behind or behind.startswith(("\n\n", "\n```", ", ", "- ", "– ", "— "))
        found.append((start, end, (fenced or says_so or (introduced and at in (0, last))) and ends))
    return found


def _units(text: str) -> Iterator[tuple[int, int]]:
    for line in _LINE.finditer(text):
        start, end = line.span()
        if not line[0].strip() or line[0].lstrip().startswith(_FENCE):
            continue
        for stop in _NEXT_SENTENCE.finditer(text, start, end):
            yield start, stop.start()
            start = stop.end()
        if text[start:end].strip():
            yield start, end


def is_limited(behind: str) -> bool:
    """Return whether the words after a number, date or time limit it, or give another one on a condition.

    >>> [is_limited(behind) for behind in (" But only in May.", " 7 if you count the goose.", " 4 + 2 = 6.")]
    [True, True, False]
    """
    if _LIMITS.match(behind) or phrases.BOTH.search(behind):
        return True
    return any(_DIGIT.search(said) and phrases.CONDITION.search(said) for said in _SENTENCE.split(behind))
