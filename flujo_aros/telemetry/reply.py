"""The description of a reply with its repairs, of a call and of a stage, for both the terminal and the HTML report."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from flujo_aros.outcome import Accepted, Degraded, Issue, Outcome, Reason, Repair, Risk
from flujo_aros.telemetry.formatting import (
    clipped,
    code_words,
    cost_words,
    counted,
    next_words,
    time_words,
    token_words,
)

if TYPE_CHECKING:  # the records import SQLAlchemy, which `aros read` does not need
    from flujo_aros.telemetry.records import Chapter, JournalAsk, JournalReading, JournalRepair, JournalStage

_OF_VALUE: Final = frozenset({"not-in-output", "dropped-item", "dropped-end", "synthesized", "no-contest"})
"""Repairs that have no position in the text, because they concern the value."""
_IN_PLACE: Final = 40
"""The maximum length of a reading that is shown inline in the reply."""
_LISTED: Final = 30
"""The number of repairs of a reply that a page lists before the rest is folded away."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One repair, with its number in the reply."""

    number: int
    repair: Repair | JournalRepair

    @property
    def risk(self) -> str:
        """The risk of the repair, in lower case."""
        risk = self.repair.risk
        return risk if isinstance(risk, str) else risk.name.lower()

    @property
    def name(self) -> str:
        """The code of the repair as plain words."""
        return code_words(self.repair.code)

    @property
    def why(self) -> str:
        """The reason for this kind of repair."""
        return WHY.get(self.repair.code, "")

    @property
    def words(self) -> str:
        """The whole repair on one line."""
        return f"{self.number} {self.risk}: {self.name}: {repair_words(self.repair)}"

    @property
    def in_text(self) -> bool:
        """Whether it has a position in the text."""
        return self.repair.code not in _OF_VALUE

    @property
    def removes(self) -> bool:
        """Whether it removes the text without a replacement."""
        return bool(self.repair.before) and not self.repair.after

    @property
    def insertion(self) -> str:
        """The inline note after it: its replacement, if that is short and different."""
        after = self.repair.after
        changed = after != self.repair.before and after != self.repair.before.strip("\"'")
        return after if changed and len(after) <= _IN_PLACE else ""

    def masked(self, mask: Callable[[str], str]) -> Edit:
        """Return this repair with every string masked, since paths contain keys, and keys may be secrets."""
        path, before, after = map(mask, (self.repair.path, self.repair.before, self.repair.after))
        return Edit(self.number, replace(self.repair, path=path, before=before, after=after))


def repair_words(repair: Repair | JournalRepair) -> str:
    """Return the edit in words, without path, code and risk.

    >>> from flujo_aros.outcome import Risk
    >>> repair_words(Repair("enum-case", Risk.INFERRED, "$.priority", (13, 19), '"High"', '"high"'))
    '"High" read as "high"'
    """
    return " ".join(part for part in repair_parts(repair) if part)


def repair_parts(repair: Repair | JournalRepair) -> tuple[str, str, str]:
    """Return a repair in three parts: the original, the verb, and the result."""
    before, after = clipped(repair.before), clipped(repair.after)
    if before == after:  # only the notation changed, such as quotes around a key
        return before or "changed", "", ""
    if before and after:
        return before, "read as", after
    return (before.rstrip() or before, "set aside", "") if before else (after, "added", "")


def numbered(repairs: Sequence[Repair | JournalRepair]) -> tuple[Edit, ...]:
    """Return the repairs in the order of the text, counted from 1."""
    ordered = sorted(repairs, key=lambda repair: repair.span)
    return tuple(Edit(number, repair) for number, repair in enumerate(ordered, start=1))


@dataclass(frozen=True, slots=True)
class ShownReply:
    """One reply with its outcome and every repair and issue, in the form shown to people."""

    text: str
    outcome: str
    trust: str | None
    reason: str | None
    edits: tuple[Edit, ...] = ()
    issues: tuple[Issue, ...] = ()
    whole: bool = True
    """Whether `text` is the whole reply."""
    candidates: tuple[str, ...] = ()
    """The candidates that were considered, if there was more than one."""
    read_from: tuple[int, int] | None = None
    """The part of the text to which the issues refer."""
    model: str = ""
    chars: int = 0
    """The length of the reply, of which `text` may be the beginning."""
    id: int = 0
    """The id of the reading in the journal."""

    @classmethod
    def of_outcome(cls, outcome: Outcome[Any]) -> ShownReply:
        """Return the reply of a reading."""
        if isinstance(outcome, Accepted):
            edits = numbered(tuple(outcome.repairs))
            return cls(outcome.text, outcome.kind, outcome.trust.value, None, edits)
        rejected = outcome.because if isinstance(outcome, Degraded) else outcome
        return cls(
            rejected.text,
            rejected.kind,
            None,
            rejected.reason.value,
            issues=rejected.issues,
            candidates=rejected.seen if len(rejected.seen) > 1 else (),
            read_from=None if rejected.draft is None else rejected.draft.span,
        )

    @classmethod
    def of_reading(cls, reading: JournalReading) -> ShownReply:
        """Return the reply of a reading from the journal."""
        return cls(
            reading.text,
            reading.outcome,
            reading.trust,
            reading.reason,
            numbered(reading.repairs),
            reading.issues,
            whole=reading.whole,
            model=reading.model,
            chars=reading.chars,
            id=reading.id,
        )

    def masked(self, mask: Callable[[str], str]) -> ShownReply:
        """Return this reply with every string masked; a mask keeps the length of the hidden text."""
        edits = (edit.masked(mask) for edit in self.edits)
        issues = (replace(issue, path=mask(issue.path), message=mask(issue.message)) for issue in self.issues)
        candidates = tuple(map(mask, self.candidates))
        return replace(self, text=mask(self.text), edits=tuple(edits), issues=tuple(issues), candidates=candidates)

    @property
    def words(self) -> str:
        """A short summary: trust and repairs, or the reason and the positions of the issues."""
        if self.outcome != "rejected":
            repaired = f", {counted(len(self.edits), 'repair')}" if self.edits else ""
            return f"{self.trust or ''}{repaired}"
        named = [issue for issue in self.issues if (issue.code, issue.path or "$") != (self.reason, "$")]
        places = ", ".join(f"{issue.code} at {issue.path or '$'}" for issue in named[:2])
        more = f" and {len(named) - 2} more" if len(named) > 2 else ""
        return f"{self.reason} ({places}{more})" if places else self.reason or ""

    @property
    def pieces(self) -> Iterator[Piece]:
        """The text in pieces, each with the repair that contains it."""
        return pieces(self.text, self.edits)

    @property
    def listed(self) -> tuple[Edit, ...]:
        """The repairs visible when the list is folded: all of them, or the riskiest."""
        riskiest = sorted(self.edits, key=lambda edit: -Risk[edit.risk.upper()])[:_LISTED]
        return tuple(sorted(riskiest, key=lambda edit: edit.number))

    @property
    def folded(self) -> tuple[Edit, ...]:
        """The repairs that are hidden when the list is folded."""
        listed = {edit.number for edit in self.listed}
        return tuple(edit for edit in self.edits if edit.number not in listed)

    @property
    def risks(self) -> list[str]:
        """The risks of the repairs in the text, lowest first."""
        found = {edit.risk for edit in self.edits if edit.in_text}
        return [risk for risk in ("lossless", "inferred", "lossy") if risk in found]

    def place_of(self, issue: Issue) -> tuple[int, int] | None:
        """Return the position of an issue, if certain: a character, a key that occurs once, or the end of a cut
        text."""
        ends = len(self.text.rstrip())
        if issue.at is not None:
            return min(issue.at, ends), min(issue.at, ends) + 1
        if self.reason == Reason.TRUNCATED and issue.path in ("", "$"):
            return ends, ends
        keys = re.findall(r"\.(\w+)", issue.path)
        start, end = self.read_from or (0, len(self.text))
        if not keys or issue.code == "missing":  # then the key is that of another object
            return None
        key = rf"(?<!\w){re.escape(keys[-1])}(?=['\"]?\s*[:=])"
        found = list(re.finditer(key, self.text[start:end]))
        return (start + found[0].start(), start + found[0].end()) if len(found) == 1 else None


def ask_words(ask: JournalAsk) -> str:
    """Return the end of a model call in words, to follow the name of the model."""
    if ask.fault:
        return "did not answer:"
    if ask.seconds is None:
        return "was called and had not answered when the run ended"
    spent = [f"answered in {time_words(ask.seconds)}", f"{token_words(ask.usage)} tokens"]
    spent += [cost_words(ask.usage.cost)] if ask.usage.cost is not None else []
    spent += ["with the schema enforced"] if ask.constrained else []
    spent += [f"finish reason {ask.finish_reason}"] if ask.finish_reason else []
    return ", ".join(spent)


def stage_words(stage: JournalStage) -> str:
    """Return the reason why a stage ran, to follow its name."""
    if not stage.because:
        return "ran"
    cause = "the provider failed" if stage.because == Reason.PROVIDER else f"the reply was {code_words(stage.because)}"
    return f"ran because {cause}"


def advice_for(chapter: Chapter) -> str:
    """Return advice for a step that ended without a value, or an empty string for any other."""
    reason = chapter.step.reason if chapter.step else None
    issues = chapter.readings[-1].issues if chapter.readings else ()
    if chapter.step is not None and chapter.step.kind == "agree" and reason == Reason.AMBIGUOUS:
        issues = (Issue("$", "contested", ""),)  # the readings are separate steps
    asked = bool(chapter.asks or chapter.readings)
    return next_words(Reason(reason), issues, asked=asked) if reason in set(Reason) else ""


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a reply: the innermost edit that contains it, if any, and the edits that end after it."""

    text: str
    edit: Edit | None
    ends: tuple[Edit, ...]


def pieces(text: str, edits: Sequence[Edit]) -> Iterator[Piece]:
    """Yield the text in pieces, each within the same edits; together they are the whole text.

    >>> from flujo_aros.outcome import Risk
    >>> edit = Repair("quotes", Risk.LOSSLESS, "$", (1, 4), "'a'", "a")
    >>> [(piece.text, piece.edit.number if piece.edit else 0) for piece in pieces("['a']", numbered([edit]))]
    [('[', 0), ("'a'", 1), (']', 0)]
    """
    size = len(text)
    placed = ((*edit.repair.span, edit) for edit in edits if edit.in_text)
    spans = [(min(start, size), min(stop, size), edit) for start, stop, edit in placed]
    begins = deque(sorted(spans, key=lambda each: (each[0], each[2].number)))
    ends: dict[int, list[Edit]] = {}
    for _, stop, edit in spans:
        ends.setdefault(stop, []).append(edit)
    edges = sorted({0, len(text), *(start for start, _, _ in spans), *ends})
    open_edits: list[tuple[int, int, int, Edit]] = []  # the shortest first, so that inner ones stay visible
    if ends.get(0):
        yield Piece("", None, tuple(ends[0]))
    for start, stop in pairwise(edges):
        while begins and begins[0][0] <= start:
            begin, end, edit = begins.popleft()
            heappush(open_edits, (end - begin, edit.number, end, edit))
        while open_edits and open_edits[0][2] <= start:
            heappop(open_edits)
        yield Piece(text[start:stop], open_edits[0][3] if open_edits else None, tuple(ends.get(stop, ())))


WHY: Final = {
    "fence": "The answer was in a code fence.",
    "prose-around": "The answer was surrounded by prose.",
    "reasoning": "The model thought aloud before it answered.",
    "bom": "A byte order mark is not part of the answer.",
    "picked-last": "The reply has several answers: the last one was used.",
    "picked-first": "The reply has several answers: the first one was used.",
    "collected": "A list was expected, and its elements came one after another.",
    "double-encoded": "The answer was JSON written as a string.",
    "escaped": "The quotes of the answer were escaped.",
    "html-entities": "The answer was escaped as HTML.",
    "doubled-braces": "The braces were doubled, as in templates.",
    "key-value-lines": "The answer was written as lines of `key: value`.",
    "keyword-arguments": "The answer was written as a call with keyword arguments.",
    "field-tags": "Each field of the answer had a tag.",
    "table": "The answer was written as a table, in Markdown or CSV.",
    "toml": "The answer was written in TOML.",
    "list-items": "The answer was written as a Markdown list.",
    "envelope": "The answer was inside another object.",
    "trailing-comma": "JSON does not allow a comma after the last member.",
    "extra-comma": "There was an extra comma.",
    "odd-comma": "Another character was used as a comma.",
    "missing-comma": "The comma between two members was missing.",
    "missing-colon": "The colon between a key and its value was missing.",
    "odd-colon": "Another character was used as a colon.",
    "odd-bracket": "Other characters were used as brackets or quotes.",
    "missing-closer": "A bracket was never closed.",
    "wrong-closer": "A bracket was closed by one of a different kind.",
    "extra-closer": "There was an extra closing bracket.",
    "extra-opener": "There was an extra opening bracket.",
    "early-closer": "A bracket was closed before the object ended.",
    "missing-opener": "The first bracket was missing.",
    "tuple": "JSON has no tuples and no sets: it was read as a list.",
    "comment": "JSON allows no comments.",
    "odd-space": "A space character that JSON does not allow.",
    "escaped-space": "A line end was written as an escape outside a string.",
    "truncated": "The reply was cut off here: the missing part was completed or left out.",
    "quotes": "JSON requires double quotes.",
    "doubled-quotes": "The quotes were doubled.",
    "inner-quote": "A quote inside a string was not escaped.",
    "missing-quote": "A string had no closing quote, or no opening quote.",
    "control-character": "A control character in a string must be escaped.",
    "invalid-escape": "JSON has no such escape, so the backslash was read literally.",
    "control_escape": "The backslash was read literally, not as the start of an escape for a control character.",
    "concatenation": "JSON cannot concatenate strings: several were written one after another.",
    "unquoted-key": "A key had no quotes.",
    "unquoted-value": "A string had no quotes.",
    "call-around": "The value was inside a function call.",
    "block-quote": "The answer was in a block quote.",
    "moved_key": "The key was in a different object from the one that it belongs to.",
    "near_miss_key": "The key differs only in spelling from the expected one.",
    "alias": "The key is an alias of the expected one.",
    "duplicate_key": "The key occurred twice with the same value.",
    "ignored_key": "The key is not in the schema: it was left out.",
    "foreign-literal": "A literal of another language, such as Python.",
    "loose-number": "The number was written in a notation that JSON does not have.",
    "digit-groups": "The digits of the number were written in groups.",
    "decimal-comma": "The number was written with a decimal comma.",
    "odd-digits": "The number was written with digits or signs that JSON does not have.",
    "currency": "A currency was written next to the number.",
    "percent": "A percent sign followed the number.",
    "unit": "The unit in the name of the field was written next to the number.",
    "magnitude": "Thousands or millions were written as a word.",
    "fraction": "The number was written as a fraction.",
    "hex-number": "The number was written in hexadecimal.",
    "numeral": "The number was written in words.",
    "leading-zeros": "The number was written with leading zeros.",
    "written-date": "The date was written out, or in a different order.",
    "iso-form": "The date or time was in a form of ISO 8601 other than the one that JSON Schema requires.",
    "written-time": "The time was written in words.",
    "no-value": "The reply has a word for a missing value.",
    "string-to-number": "A number was expected, but the reply has a string.",
    "string-to-boolean": "A boolean was expected, but the reply has a word.",
    "string-to-null": "Null was expected, but the reply has a word for it.",
    "number-to-string": "A string was expected, but the reply has a number.",
    "number-to-boolean": "A boolean was expected, but the reply has a number.",
    "literal-to-string": "A string was expected, but the reply has a literal.",
    "boolean-word": "The answer was a word for true or false.",
    "stated-value": "The rest of the reply only explained the answer.",
    "whole-number": "A whole number was written with a decimal point.",
    "rounded": "An integer was expected, but the reply has a fraction.",
    "enum-alias": "The value is another name for an allowed one.",
    "enum-case": "The value differs from an allowed one only in case.",
    "enum-word": "The allowed value had other words around it.",
    "wrapped-in-object": "The reply has the value of the only field instead of the object.",
    "wrapped-in-list": "A list was expected, but the reply has a single element.",
    "unwrapped-list": "A single value was expected, but the reply has a list of one.",
    "stringified": "The value was JSON written as a string.",
    "lax-conversion": "The type accepts this notation of the value.",
    "null-to-empty": "Null was written where an empty list or object is the default.",
    "emphasis": "The answer had Markdown emphasis.",
    "picked-place": "The answer was in the requested place; anything elsewhere was ignored.",
    "tag-form": "The tag was not written in the requested form.",
    "repeats-example": "It is the example from the prompt, word for word; the model repeated it when asked again.",
    "earlier-tag": "The tag occurred more than once: the last one was used.",
    "missing-field": "A requested field is missing.",
    "fallback-kind": "The kind of the event was missing or not granted: the fallback kind was used.",
    "simplified": "The answer was requested in a simpler form and converted to the expected one.",
    "synthesized": "There was no answer: this value was synthesized from the reply.",
    "no-contest": "The reply names no winner.",
    "dropped-item": "The element was invalid and was left out.",
    "dropped-end": "The text after the last complete element was left out.",
    "not-in-output": "The model that repaired the reply added a value that is not in the reply.",
    "cleaned": "An optional part was invalid: it was dropped or corrected.",
    "prose-wrapped": "The reply was prose instead of an event: it was wrapped as the text of one.",
}
"""The reason for each kind of repair, by its code."""
