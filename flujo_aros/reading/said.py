"""What a reply in prose says, and what in it is only a note that the model has made to itself."""

from __future__ import annotations

import re
from typing import Final

from flujo_aros.contract import PLACEHOLDER
from flujo_aros.reading.scanner import FENCED

_QUOTED: Final = r"[\"“]([^\"“”\n]+)[\"”]"
_LABELLED: Final = re.compile(rf"\b(?:text|says?|reply|line|answer)\s*[:=]\s*{_QUOTED}", re.I)
_LABELLED_LINE: Final = re.compile(
    rf"^[^\w\n]{{0,9}}(?:text|say|reply|line|answer)[^\w\n:=]{{0,9}}[:=][^\w\n]{{0,9}}?{_QUOTED}[^\w\n]{{0,9}}$",
    re.I | re.M,
)
_LAST_QUOTE: Final = re.compile(r"[\"“]([^\"“”\n]+)([\"”]?)[\s.!]*\Z")
_META: Final = (
    r"(?:output|produce|respond|reply|answer|write|generate|return|provide|create|craft|emit|follow|format|include|avoid"
    r"|mention|ensure|make sure|think|consider|stay|keep|come up with"
    r"|be (?:vague|brief|short|careful|concise|subtle|specific|in character)"
    r"|give (?:an? |one )?(?:clue|hint|line|sentence))"
)
_NOTE: Final = re.compile(
    rf"\b(?:we|I) (?:need to|must|should|have to) {_META}\b|\bJSON\b"
    r"|(?<![\w.])thoughts?\s*:"
    r"|\bit must be (?:an? |one |two )?(?:short|brief|concise|vivid|vague|specific|sentences?|valid|in character)\b"
    rf"|\bthe (?:user|prompt)\b(?!'| interface)|\blet(?:'s| me) (?:think|see what|{_META})\b"
    r"|\b(?:we|I) (?:are|am) asked to\b|\bthe (?:output|response|sentence|clue) (?:must|should|has to|needs to)\b",
    re.I,
)
"""What models write to themselves, and nobody says to another."""
_INTENT: Final = re.compile(r"\bwe (?:need|must|should|have) to\b", re.I)
"""What people say to each other as well: a note only where it is about writing."""
_WRITING: Final = re.compile(
    r"\b(?:sentences?|clues?|hints?|character|persona|format|fields?|instructions?|reply|response|riddle|emotion)\b",
    re.I,
)
_WORDS_SAID: Final = 3
"""A quotation of fewer words is a word that is spoken of."""
_ANSWER: Final = re.compile(r"(?:[:：]|```[\w+-]{0,20}|\n)\s{0,80}\{[^{}]+\}[\s`.]*\Z")
"""An object that was announced, or that stands on lines of its own, with nothing behind it."""
_KEY: Final = re.compile(r"[\"'“]?\b(?:kind|text)\b[\"'”]?\s*[:=]", re.I)


def said_in(prose: str) -> str:
    """What a reply without an event says: a labelled quotation, a quotation that never ends, or all of it.

    Notes that a model makes to itself are not said: of those nothing is kept but such a quotation.
    """
    fence = FENCED.fullmatch(prose)
    text = fence[1].strip() if fence else prose
    is_note = _NOTE.search(text) is not None or (_INTENT.search(text) is not None and _WRITING.search(text) is not None)
    labelled = (_LABELLED if is_note else _LABELLED_LINE).findall(text)
    if labelled:
        return str(labelled[-1]).strip()
    if not text:
        return PLACEHOLDER
    if not is_note:
        return text
    quoted = _LAST_QUOTE.search(text)
    is_line = quoted is not None and (not quoted[2] or _stands_alone(text[: quoted.start()], quoted[1]))
    return quoted[1].strip() if quoted is not None and is_line else PLACEHOLDER


def is_prose(text: str) -> bool:
    """Whether what stands in braces in a text can be no event: words stand around it, and it has no key of an event."""
    return text[:1] not in ("{", "[", "`", "") and _KEY.search(text) is None and _ANSWER.search(text) is None


def is_same_line(said: str, other: str) -> bool:
    """Whether two texts have the same words in the same order; very few of them are no coincidence only as written."""
    words = _words(said)
    return said.strip() == other or (len(words) >= _WORDS_SAID and words == _words(other))


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _stands_alone(before: str, quoted: str) -> bool:
    """Whether a quotation is a line of its own, and no words of a sentence that goes on."""
    return len(quoted.split()) >= _WORDS_SAID and (not before.strip() or before.rstrip()[-1] in ".:!?\n")
