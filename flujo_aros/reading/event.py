"""An event, a JSON object with a kind and a text, or what was said in prose instead."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from flujo_aros.contract import PLACEHOLDER, WELL_KNOWN, Event, EventContract, WrittenEvent, fold, mask_reasoning
from flujo_aros.outcome import Accepted, Issue, Reading, Reason, Rejected, Repair, Risk, Trust
from flujo_aros.reading.optional_fields import Look, tidied
from flujo_aros.reading.payload import cut_prose
from flujo_aros.reading.scanner import FENCED

_NOTHING_READ: Final = (Reason.NO_JSON, Reason.REFUSED)
_NO_EVENT: Final = (Reason.INVALID, Reason.MALFORMED, Reason.AMBIGUOUS)


def read_event(text: str, contract: EventContract, look: Look, *, truncated: bool | None = None) -> Reading[Event]:
    """An event: JSON with a kind and a text, else what was said in prose. Never rejected for want of JSON.

    An echo of the prompt's form or example is set aside; with nothing beside it the reply says nothing.
    """
    heard = _echo_of(contract.example).sub(lambda found: " " * len(found[0]), text)
    outcome: Reading[WrittenEvent] = look(heard, contract.written)
    outcome = tidied(outcome, heard, contract, look)
    if isinstance(outcome, Accepted):
        if is_slot(outcome.value.text, contract.example):
            return _echoed(text)
        return _of_a_kind(_with_echoes(outcome, text, heard), contract, text)
    prose = mask_reasoning(text, unopened=True).strip()
    if outcome.reason in _NOTHING_READ or (outcome.reason in _NO_EVENT and is_prose(prose)):
        if heard != text or (prose and is_slot(prose.strip("\"'"), contract.example)):
            return _echoed(text)
        if prose and (cut := cut_prose(text, "$.text", truncated=truncated)) is not None:
            return Rejected(Reason.TRUNCATED, (cut,), text)
        said = said_in(prose)
        event = Event.model_validate({"kind": contract.fallback, "text": said, "_raw_fallback": True})
        repair = Repair("prose-wrapped", Risk.INFERRED, "$", (0, len(text)), text[:80], said[:80])
        return Accepted(event, Trust.SYNTHESIZED, "first", (repair,), text)
    return outcome


def _with_echoes(outcome: Accepted[WrittenEvent], text: str, heard: str) -> Accepted[WrittenEvent]:
    """The outcome, with what was set aside of the text as an echo."""
    if heard == text:
        return outcome
    start = next(at for at, (one, two) in enumerate(zip(text, heard, strict=True)) if one != two)
    end = len(text) - next(at for at, (one, two) in enumerate(zip(text[::-1], heard[::-1], strict=True)) if one != two)
    aside = Repair("prose-around", Risk.LOSSLESS, "$", (start, end), text[start:end][:80], "")
    repairs = (*outcome.repairs, aside)
    return replace(outcome, repairs=repairs, trust=Trust.of(repairs))


def _echo_of(example: str) -> re.Pattern[str]:
    """Matches the form or the example of the instruction, as an object of its own."""
    slot = rf"(?:\.\.\.|…|{re.escape(json.dumps(example, ensure_ascii=False)[1:-1])})"
    return re.compile(
        rf'\{{\s*"kind"\s*:\s*"[^"{{}}]{{0,200}}"\s*,\s*"text"\s*:\s*"{slot}"[^{{}}]{{0,2000}}(?:\{{[^{{}}]{{0,200}}\}}[^{{}}]{{0,200}})?\}}'
    )


def is_slot(said: str, example: str) -> bool:
    """Whether a text is the example of the prompt, or dots that were to be filled in."""
    return is_same_line(said, example) or (bool(said.strip()) and not said.strip(" .…"))


def _echoed(text: str) -> Rejected:
    words = "it repeats the example of the prompt, or leaves its dots in place"
    return Rejected(Reason.ECHOED_SCHEMA, (Issue("$.text", "echoed_example", words),), text)


def _of_a_kind(outcome: Accepted[WrittenEvent], contract: EventContract, text: str) -> Reading[Event]:
    written, event = outcome.value, event_of(outcome.value, contract)
    repairs: Sequence[Repair] = outcome.repairs
    given = event.model_extra or {}
    for name in contract.fields:
        if name not in WELL_KNOWN and given.get(name) is None:
            repairs = (*repairs, Repair("missing-field", Risk.INFERRED, f"$.{name}", (0, len(text)), "", ""))
    if event.kind != written.kind:
        code = "enum-case" if fold(event.kind) == fold(written.kind or "") else "fallback-kind"
        repairs = (*repairs, Repair(code, Risk.INFERRED, "$.kind", (0, len(text)), str(written.kind), event.kind))
    trust = outcome.trust if repairs is outcome.repairs else Trust.of(repairs)
    return Accepted(event, trust, outcome.origin, repairs, text)


def event_of(written: WrittenEvent, contract: EventContract) -> Event:
    """An event as it was written, with a kind that is allowed."""
    asked = {name: default for name, (_, default) in WELL_KNOWN.items() if name in contract.fields}
    return Event.model_validate(
        {**asked, **written.model_dump(exclude_unset=True), "kind": event_kind(written.kind, contract)}
    )


def event_kind(written: str | None, contract: EventContract) -> str:
    """The kind that is granted for one that was written: itself, in another case, or else the fallback."""
    if written in contract.kinds:
        return written
    return {fold(kind): kind for kind in contract.kinds}.get(fold(written or "")) or contract.fallback


def is_example(text: str, start: int, said: str, contract: EventContract) -> bool:
    """Whether an event that begins here is the form or the example of the prompt."""
    return is_slot(said, contract.example) or _echo_of(contract.example).match(text, start) is not None


# --- what a reply in prose says ---------------------------------------------------------------------------------------

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
"""An object that was announced, or that has lines of its own, with nothing behind it."""
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
    """Whether the braces in a text cannot hold an event: there are words around them, and no key of an event."""
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
