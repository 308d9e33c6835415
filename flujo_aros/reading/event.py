"""Read an event, a JSON object with a kind and a text, from JSON or from the prose written in its place."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from math import inf, isfinite, nan
from typing import Any, Final, TypeVar

from flujo_aros.contract import (
    PLACEHOLDER,
    WELL_KNOWN,
    Counts,
    Event,
    EventContract,
    LooseEvent,
    Shape,
    WrittenEvent,
    compile_contract,
    fold,
    is_blank,
    mask_reasoning,
    path_of,
)
from flujo_aros.json_data import Unescaped, is_dict, is_list
from flujo_aros.outcome import Accepted, Issue, Reading, Reason, Rejected, Repair, Risk, Trust
from flujo_aros.reading.grammar import brackets
from flujo_aros.reading.lookahead import expression
from flujo_aros.reading.node import CLEANED, LOSSY, NUMBER, OBJECT, Edit, Member, Node, worst
from flujo_aros.reading.parser import Frame, Parsed, Parser, Stop
from flujo_aros.reading.payload import Look, cut_prose
from flujo_aros.reading.scalars import SURROGATE
from flujo_aros.reading.scanner import FENCED

_NOTHING_READ: Final = (Reason.NO_JSON, Reason.REFUSED)
_NO_EVENT: Final = (Reason.INVALID, Reason.MALFORMED, Reason.AMBIGUOUS)


def read_event(text: str, contract: EventContract, look: Look, *, truncated: bool | None = None) -> Reading[Event]:
    """An event: JSON with a kind and a text, else the prose of the reply. A reply without JSON is never rejected for
    that.

    An echo of the prompt's form or example is set aside; with nothing else in it, the reply is empty.
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
        begun = truncated and not prose.strip("\"'`")  # only an opening quotation mark arrived
        if heard != text or (prose and not begun and is_slot(prose, contract.example)):
            return _echoed(text)
        if prose and (cut := cut_prose(text, "$.text", truncated=truncated)) is not None:
            return Rejected(Reason.TRUNCATED, (cut,), text)
        said = said_in(prose)
        event = Event.model_validate({"kind": contract.fallback, "text": said, "_raw_fallback": True})
        repair = Repair("prose-wrapped", Risk.INFERRED, "$", (0, len(text)), text[:80], said[:80])
        return Accepted(event, Trust.SYNTHESIZED, "first", (repair,), text)
    return outcome


def _with_echoes(outcome: Accepted[WrittenEvent], text: str, heard: str) -> Accepted[WrittenEvent]:
    """The outcome, with a note of the text that was set aside as an echo."""
    if heard == text:
        return outcome
    start = next(at for at, (one, two) in enumerate(zip(text, heard, strict=True)) if one != two)
    end = len(text) - next(at for at, (one, two) in enumerate(zip(text[::-1], heard[::-1], strict=True)) if one != two)
    aside = Repair("prose-around", Risk.LOSSLESS, "$", (start, end), text[start:end][:80], "")
    repairs = (*outcome.repairs, aside)
    return replace(outcome, repairs=repairs, trust=Trust.of(repairs))


def _echo_of(example: str) -> re.Pattern[str]:
    """Matches the form or the example of the instruction as a separate object."""
    slot = rf"(?:\.\.\.|…|{re.escape(json.dumps(example, ensure_ascii=False)[1:-1])})"
    return re.compile(
        rf'\{{\s*"kind"\s*:\s*"[^"{{}}]{{0,200}}"\s*,\s*"text"\s*:\s*"{slot}"[^{{}}]{{0,2000}}(?:\{{[^{{}}]{{0,200}}\}}[^{{}}]{{0,200}})?\}}'
    )


def is_slot(said: str, example: str) -> bool:
    """Whether a text is the example from the prompt, or its unfilled dots."""
    return is_same_line(said, example) or (bool(said.strip()) and is_blank(said))


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
    """The kind granted for a written one: the kind itself, its declared spelling, or the fallback."""
    if written in contract.kinds:
        return written
    return {fold(kind): kind for kind in contract.kinds}.get(fold(written or "")) or contract.fallback


def is_example(text: str, start: int, said: str, contract: EventContract) -> bool:
    """Whether the event that begins here is the form or the example from the prompt."""
    return is_slot(said, contract.example) or _echo_of(contract.example).match(text, start) is not None


# --- what a reply in prose says ---------------------------------------------------------------------------------------

_QUOTED: Final = r"[\"“]([^\"“”\n]+)[\"”]"
_LABELLED: Final = expression(rf"\b(?:text|says?|reply|line|answer)\s*[:=]\s*{_QUOTED}", re.I)
_LABELLED_LINE: Final = expression(
    rf"^[^\w\n]{{0,9}}(?:text|say|reply|line|answer)[^\w\n:=]{{0,9}}[:=][^\w\n]{{0,9}}?{_QUOTED}[^\w\n]{{0,9}}$",
    re.I | re.M,
)
_LAST_QUOTE: Final = expression(r"[\"“]([^\"“”\n]+)([\"”]?)[\s.!]*\Z")
_META: Final = (
    r"(?:output|produce|respond|reply|answer|write|generate|return|provide|create|craft|emit|follow|format|include|avoid"
    r"|mention|ensure|make sure|think|consider|stay|keep|come up with"
    r"|be (?:vague|brief|short|careful|concise|subtle|specific|in character)"
    r"|give (?:an? |one )?(?:clue|hint|line|sentence))"
)
_NOTE: Final = expression(
    rf"\b(?:we|I) (?:need to|must|should|have to) {_META}\b|\bJSON\b"
    r"|(?<![\w.])thoughts?\s*:"
    r"|\bit (?:must|should|has to|needs to) be (?:an? |one |two )?"
    r"(?:short|brief|concise|vivid|vague|specific|sentences?|valid|in character)\b"
    rf"|\bthe (?:user|prompt)\b(?!'| interface)|\blet(?:'s| me) (?:think|see what|{_META})\b"
    r"|\b(?:we|I) (?:are|am) asked to\b|\bthe (?:output|response|sentence|clue) (?:must|should|has to|needs to)\b",
    re.I,
)
"""What models write to themselves and never say to others."""
_INTENT: Final = expression(r"\bwe (?:need|must|should|have) to\b", re.I)
"""What people also say to each other: a note only where it is about writing."""
_WRITING: Final = expression(
    r"\b(?:sentences?|clues?|hints?|character|persona|format|fields?|instructions?|reply|response|riddle|emotion)\b",
    re.I,
)
_PERHAPS: Final = re.compile(
    r"\b(?:we|I) (?:need|want|must have) (?:an? |one |two |some )?(?:\w+ )?"
    r"(?:sentences?|clues?|hints?|repl(?:y|ies)|riddles?)\b",
    re.I,
)
"""What people also say to each other: a note only where a quotation that could be the answer follows."""
_WORDS_SAID: Final = 3
"""A quotation of fewer words only mentions a word."""
_ANSWER: Final = expression(r"(?:[:：]|```[\w+-]{0,20}|\n)\s{0,80}\{[^{}]+\}[\s`.]*\Z")
"""An object that was announced, or is on lines of its own, with nothing after it."""
_NULL: Final = expression(r"[\s\"'`]*null[\s\"'`.]*", re.I)
"""Complete replies that say nothing. `None` is not among them, because people say it too."""
_KEY: Final = expression(r"[\"'“]?\b(?:kind|text)\b[\"'”]?\s*[:=]", re.I)


def said_in(prose: str) -> str:
    """What a reply without an event says: a labelled quotation, a quotation that never ends, or all of it.

    Notes that a model makes to itself are not said: of those nothing is kept but such a quotation.
    """
    fence = FENCED.fullmatch(prose)
    text = fence[1].strip() if fence else prose
    is_note = _NOTE.search(text) is not None or (_INTENT.search(text) is not None and _WRITING.search(text) is not None)
    may_be_note = is_note or _PERHAPS.search(text) is not None
    labelled = (_LABELLED if may_be_note else _LABELLED_LINE).findall(text)
    if labelled:
        return str(labelled[-1]).strip()
    if not text or _NULL.fullmatch(text):
        return PLACEHOLDER
    quoted = _LAST_QUOTE.search(text)
    if not is_note:
        begins = quoted is not None and not quoted[2] and text.count('"', 0, quoted.start()) % 2 == 0
        return quoted[1].strip() if may_be_note and quoted is not None and begins else text
    is_line = quoted is not None and (not quoted[2] or _stands_alone(text[: quoted.start()], quoted[1]))
    return quoted[1].strip() if quoted is not None and is_line else PLACEHOLDER


def is_prose(text: str) -> bool:
    """Whether the braces in a text cannot hold an event: words surround them, and no key of an event is inside."""
    return text[:1] not in ("{", "[", "`", "") and _KEY.search(text) is None and _ANSWER.search(text) is None


def is_same_line(said: str, other: str) -> bool:
    """Whether two texts have the same words in the same order. Very short texts must be identical, to rule out
    coincidence.
    """
    words = _words(said)
    return said.strip() == other or (len(words) >= _WORDS_SAID and words == _words(other))


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _stands_alone(before: str, quoted: str) -> bool:
    """Whether a quotation is on a line of its own and not inside a longer sentence."""
    return len(quoted.split()) >= _WORDS_SAID and (not before.strip() or before.rstrip()[-1] in ".:!?\n")


T = TypeVar("T")


_MAY_BE_OPTIONAL: Final = (
    Reason.INVALID,
    Reason.AMBIGUOUS,
    Reason.MALFORMED,
    Reason.TRUNCATED,
    Reason.TOO_LARGE,
)


def tidied(outcome: Reading[WrittenEvent], text: str, contract: EventContract, look: Look) -> Reading[WrittenEvent]:
    """The outcome of an event that was rejected for its optional fields, with these cleaned; any other as it is.

    A score that is not a number is dropped, so are `scores` that are not an object; a kind that is not a string counts
    as a wrong kind; elsewhere a number that is not finite becomes null. What cannot be read after the last field that
    counts is dropped. A winner counts where the contract asks for it or has checks: `{"name": "p1"}` names one, and
    anything that names no one stays rejected. Elsewhere it is optional, too.
    """
    if not isinstance(outcome, Rejected) or outcome.reason not in _MAY_BE_OPTIONAL:
        return outcome
    loose: Reading[LooseEvent] = look(text, contract.loose)
    if not isinstance(loose, Accepted):
        return _without_optional(outcome)
    cleaning = _Cleaning(loose.value, contract, look, len(text))
    if not cleaning.is_winner_clear:
        return _without_optional(outcome, _shown(cleaning.event["winner"]))
    repairs = (*loose.repairs, *cleaning.repairs)
    event = WrittenEvent.model_validate(cleaning.event)
    return Accepted(event, Trust.of(repairs), loose.origin, repairs, loose.text)


def _without_optional(outcome: Rejected, winner: str = "") -> Rejected:
    """The rejection without issues about optional fields, which a model is not asked to repair.

    `winner` is the value of a winner that names no one, where all other fields are clean.
    """
    if winner and not any(issue.path.startswith("$.winner") for issue in outcome.issues):
        issue = Issue("$.winner", "type", f"expected a name or null, found {winner}")
        return replace(outcome, reason=Reason.INVALID, issues=(issue,))
    left = tuple(issue for issue in outcome.issues if not issue.path.startswith(("$.kind", "$.scores")))
    return replace(outcome, issues=left or outcome.issues)


class _Cleaning:
    """The fields of an event, cleaned, and what was cleaned of them."""

    def __init__(self, written: LooseEvent, contract: EventContract, look: Look, size: int) -> None:
        self.event: dict[str, Any] = written.model_dump(exclude_unset=True)
        self.repairs: list[Repair] = []
        self.is_winner_clear = True
        self._look = look
        self._span = (0, size)
        kind = self.event.get("kind")
        if kind is not None and not isinstance(kind, str):
            self.event["kind"] = _shown(kind)  # not one of the kinds: the fallback replaces it
        self._clean_winner(judged=contract.judges_winner)
        self._clean_scores()
        self._clean_numbers()

    def _clean_winner(self, *, judged: bool) -> None:
        given = self.event.get("winner")
        if given is None or isinstance(given, str):
            return
        named = _name_in(given)
        if named is None and judged:
            self.is_winner_clear = False
        elif named is None:
            self._drop("winner")
        else:
            self.event["winner"] = named
            code = "envelope" if isinstance(given, (dict, list)) else "number-to-string"
            self._log(code, Risk.INFERRED, "$.winner", given, named)

    def _clean_scores(self) -> None:
        given = self.event.get("scores")
        if given is None:
            return
        if isinstance(given, str):
            written = self._look(given, compile_contract({"type": "object"}), whole=True)
            given = written.value if isinstance(written, Accepted) else given
        if not is_dict(given):
            self._drop("scores")
            return
        if given is not self.event["scores"]:
            self._log("stringified", Risk.INFERRED, "$.scores", self.event["scores"], _shown(given))
        numbers = {name: self._number(name, score) for name, score in given.items()}
        self.event["scores"] = {name: number for name, number in numbers.items() if number is not None}

    def _number(self, name: str, score: Any) -> float | None:
        path = path_of(("scores", name))
        found = self._look(json.dumps(score), compile_contract(float), whole=True)
        if not isinstance(found, Accepted):
            self._log(CLEANED, Risk.LOSSY, path, score, "")
            return None
        self.repairs += [replace(repair, path=path, span=self._span) for repair in found.repairs]
        return float(found.value)

    def _clean_numbers(self) -> None:
        """Null in place of a non-finite number, which JSON cannot express."""
        pending: list[tuple[Any, str | int, tuple[str | int, ...]]] = [
            (self.event, name, (name,)) for name in self.event if name not in ("text", "winner", "scores")
        ]
        while pending:
            holder, key, steps = pending.pop()
            value = holder[key]
            if is_dict(value):
                pending += [(value, inner, (*steps, inner)) for inner in value]
            elif is_list(value):
                pending += [(value, index, (*steps, index)) for index in range(len(value))]
            elif isinstance(value, float) and not isfinite(value):
                holder[key] = None
                self._log(CLEANED, Risk.LOSSY, path_of(steps), value, _shown(None))

    def _drop(self, name: str) -> None:
        self._log(CLEANED, Risk.LOSSY, f"$.{name}", self.event.pop(name), "")

    def _log(self, code: str, risk: Risk, path: str, before: Any, after: str) -> None:
        self.repairs.append(Repair(code, risk, path, self._span, _shown(before), after[:80]))


def _name_in(given: Any) -> str | None:
    """The name inside a list or an object given in place of a name, or None if it is unclear."""
    if isinstance(given, (bool, int, float)):
        return json.dumps(given) if isinstance(given, int) or isfinite(given) else None
    held = list(given.values()) if is_dict(given) else given if is_list(given) else []
    texts = [inner for inner in held if isinstance(inner, str) and inner.strip()]
    return texts[0] if len(texts) == 1 and (is_dict(given) or len(held) == 1) else None


def _shown(value: Any) -> str:
    return value[:80] if isinstance(value, str) else json.dumps(value, ensure_ascii=False)[:80]


_BETWEEN: Final = ("truncated", "elided")
"""If one of these stops the parser between two members, the member before it has ended."""


class LenientParser(Parser):
    """Reads an object of which only some keys count: once these are read, the rest may be unreadable.

    It is the same parser, which answers differently where it would stop. What it leaves out is the edit `cleaned`;
    nothing takes its place. `NaN` and `Infinity` become numbers.
    """

    counts: Counts

    def _run(self) -> Parsed:
        try:
            return super()._run()
        except Stop as stop:
            begin = self._end_of_what_counts(stop)
            end = None if begin is None else self._end_of_object(stop, begin)
            if end is None:
                raise
            return self._without_rest(stop, end)

    # --- what an optional field may hold ------------------------------------------------------------------------------

    def _not_finite(self, raw: str, pos: int, why: str) -> Node:  # noqa: ARG002 (no message is made here)
        sign = -1 if raw.startswith("-") else 1
        return Node(NUMBER, nan if "a" in raw.lower() else sign * inf, pos, pos + len(raw))

    def _whole_characters(self, found: Unescaped, start: int) -> str:
        if not found.lone or not self._in_optional():
            return super()._whole_characters(found, start)
        whole = SURROGATE.sub("\ufffd", found.value)
        self.edits.append(Edit(CLEANED, LOSSY, start, start, whole, self._path()))
        return whole

    def _in_optional(self) -> bool:
        return bool(self.stack) and self._is_optional(self.stack[0])

    def _is_optional(self, root: Frame) -> bool:
        """Whether the member being read is an optional one."""
        return root.kind == OBJECT and bool(root.key) and root.keys.get(root.key, root.key) not in self.counts.keys

    # --- where it ends too early ----------------------------------------------------------------------------------

    def _cut_string(self, start: int) -> Node:
        self._end_of_text_stop("the end of a text")
        return super()._cut_string(start)

    def _word(self, raw: str, pos: int, shape: Shape, *, at_end: bool) -> Node:
        if at_end and not self.ends:
            self._end_of_text_stop("the end of a value")
        return super()._word(raw, pos, shape, at_end=at_end)

    def _end_of_text(self, *, seen_end: bool = False) -> bool:
        if not seen_end and not self.ends:
            self._end_of_text_stop("a closing bracket")
        return super()._end_of_text(seen_end=seen_end)

    # --- leaving out what follows ---------------------------------------------------------------------------------

    def _end_of_what_counts(self, stop: Stop) -> int | None:
        """Where the last required key ends, if that is certain and the parser stopped at an optional one."""
        root = self.stack[0] if self.stack else None
        if root is None or root.kind != OBJECT or not self.counts.needed <= root.plain.keys():
            return None
        end: int = max(member.node.end for member in root.items if member.key in self.counts.keys)
        sure = self.comma >= end and (worst(e for e in self.edits if e.start < end) or Risk.LOSSLESS) is Risk.LOSSLESS
        between = not root.key and len(self.stack) == 1 and stop.failure.code in _BETWEEN
        return end if sure and (between or self._is_optional(root)) else None

    def _end_of_object(self, stop: Stop, begin: int) -> int | None:
        """Where the object ends, or None if that is uncertain or a required key may still follow."""
        end, depth = len(self.text), 0
        cut = stop.failure.reason is Reason.TRUNCATED
        for found in brackets(self.text, self.stack[0].start, end):
            depth += 1 if found[0] in "{[" else -1
            if depth <= 0:
                end, cut = found.end(), False
                break
        else:
            if not cut:
                return None
        self.cut = cut
        again = "|".join(map(re.escape, sorted(self.counts.keys)))
        return None if re.compile(rf"[\"'](?:{again})[\"']\s*:").search(self.text, begin, end) else end

    def _without_rest(self, stop: Stop, end: int) -> Parsed:
        """The object with the members that were complete before this place."""
        path, root = self._path(), self.stack[0]
        if stop.failure.reason is Reason.TOO_LARGE:  # nothing is kept of what is nested without end
            path = path_of([root.key])
            del self.stack[1:]
            self.comma = min(self.comma, root.key_at)
        begin = max(self.comma + 1, *(_end_of(frame) for frame in self.stack))
        self.edits = [edit for edit in self.edits if edit.start < begin]
        self.pos = begin
        while len(self.stack) > 1:
            if self.stack[-1].items:
                self._pop()
            else:
                self.stack.pop()
                self._forget_key()
        self._forget_key()
        self.edits.append(Edit(CLEANED, LOSSY, begin, end, "", path))
        self.pos = end
        plain: dict[str, Any] = root.plain
        return Parsed(Node(OBJECT, root.items, root.start, end), end, self.edits, self.cut, plain, doubtful=True)

    def _forget_key(self) -> None:
        self.stack[-1].key = ""

    def _path(self) -> str:
        """The path of what the parser is reading."""
        steps: list[str | int] = []
        for frame in self.stack:
            if frame.kind != OBJECT:
                steps.append(len(frame.items))
            elif frame.key:
                steps.append(frame.keys.get(frame.key, frame.key))
        return path_of(steps)


def _end_of(frame: Frame) -> int:
    """Where the last item of a container ends."""
    last = frame.items[-1] if frame.items else None
    node: Node | None = last.node if isinstance(last, Member) else last
    return 0 if node is None else node.end
