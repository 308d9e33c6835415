"""Payloads that are part of a reply: between tags, before prose, and events, which may also be written in prose.

1. *Between tags.* `TagReader` pairs tags outside reasoning. A JSON payload ends where its JSON ends, because a tag
   in a string does not end it. The last complete pair counts, and what is outside it must be harmless.
2. *Before prose.* `read_block` takes the first JSON value, which must be an object with all required keys, and keeps
   the text around it. `BlockPreview` shows the fields while the reply streams.
3. *Checks.* `apply_checks` applies the contract's own functions to an outcome, and reports what they clean as repairs.
4. *Events.* `read_event` reads a JSON object with a kind and a text. If only optional fields are wrong,
   `clean_optional_fields` cleans them; `LenientParser` reads such an object although the rest of it is unreadable.
   A reply in prose becomes the text of an event: `speech_in` finds what the reply says between the notes that a model
   writes to itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf, isfinite, nan
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from flujo_aros.contract import (
    ANY,
    NOT_JSON,
    PLACEHOLDER,
    REASONING_OPENS,
    WELL_KNOWN,
    Block,
    BlockContract,
    Check,
    Counts,
    Event,
    EventContract,
    Invalid,
    JsonContract,
    Judgement,
    LooseEvent,
    Shape,
    TaggedContract,
    TypeValues,
    Valid,
    WrittenEvent,
    closing_mark,
    compile_contract,
    fold,
    is_blank,
    judge,
    judge_awaiting,
    mask_reasoning,
    parse_json,
    path_of,
    without_reasoning,
)
from flujo_aros.json_data import Unescaped, is_dict, is_list, parts, value_at
from flujo_aros.outcome import Accepted, Draft, Issue, Outcome, Reading, Reason, Rejected, Repair, Risk, Trust
from flujo_aros.reading.candidate import Following, risk_issue
from flujo_aros.reading.grammar import Ahead, NeedMoreInput, brackets, expression
from flujo_aros.reading.node import (
    ARRAY,
    CLEANED,
    LOSSY,
    NUMBER,
    OBJECT,
    Edit,
    Node,
    RepairLog,
    find_json_end,
    parse_finite_float,
    plain,
    reject_constant,
    worst,
)
from flujo_aros.reading.parser import DEPTH, Failure, Frame, Parsed, Parser, Stop
from flujo_aros.reading.partial import NOTHING, JsonPreview, Preview, Rules, TextPreview, as_json, rewritten_fields
from flujo_aros.reading.remainder import Answer, Span, prose_rest, rivalry
from flujo_aros.reading.runaway import find_runaway
from flujo_aros.reading.scalars import SURROGATE, placeholder_in
from flujo_aros.reading.scanner import without_fence

T = TypeVar("T")
_UNSEEN: Final = "\u200b\u200c\u200d\u2060\ufeff \t\r\n"
_FENCE_OPEN: Final = Ahead(r"\s*+ (?: ``` [\w+-]* [ \t]* \n? | (?! ` ) ) \s*")
_FENCE_CLOSE: Final = expression(r"\s*(?:```)?\s*")
_FIRST: Final = re.compile(r"[<◁\[]")
"""The first characters of a tag, or of a reasoning marker."""
_LONGEST_TAG: Final = 400
_SPACE_IN_TAG: Final = 20
_LOOKS: Final = 256
_ASIDE: Final = r"[\ufeff \t\r`\"'*_>#-]*"
"""Characters between a tag and the end of its line that do not count as text."""
_BLANK: Final = expression(_ASIDE.replace(r"\r", r"\r\n"))
_ENDS: Final = expression(f"{_ASIDE}$", re.M)
_SPOKEN: Final = expression(r"[\s`'\"*]*(?:and|or|und|oder|et|ou|y|to|…|\.\.\.|,|/|&)[\s`'\"*]*", re.I)
_SPOKEN_WORD: Final = expression(r"[\s`'\"*]*(?:and|or|und|oder|et|ou|y|to)[\s`'\"*]*", re.I)
_BEGINS: Final = expression(r"\s*(?:```|[{\[\"]|\Z)")
_BEGINS_LATER: Final = expression(r"[{\[]\s*[\"'{\[\d]")
"""Text that introduces a payload, so that the tag is unlikely to be only mentioned."""


# --- between tags -----------------------------------------------------------------------------------------------------


class Look(Protocol):
    """Reads one JSON value from a text, with the options of the call."""

    def __call__(self, text: str, contract: JsonContract[T], *, whole: bool = False) -> Reading[T]:
        """Return the outcome. `whole` means that the text is complete, even if the reply was cut later."""
        ...


class Pair(NamedTuple):
    """The positions of an opening and a closing tag, which delimit the text between them."""

    opening: int
    start: int
    end: int
    closing: int


class _Marks:
    """Finds the markers of one kind in order, outside reasoning.

    In a streamed reply it stops before text that may become a marker. `seen` is the position searched so far.
    """

    def __init__(self, wanted: str, *, longest: int = 0, growing: bool = False) -> None:
        self.seen: int = 0
        self._growing = growing
        self._pattern = re.compile(rf"(?P<wanted>{wanted})|(?P<think>(?i:{REASONING_OPENS}))")
        self._closes: re.Pattern[str] | None = None
        """The end marker of the reasoning block that the text ends in."""
        self._longest = longest + _LONGEST_TAG

    def next(self, text: str) -> re.Match[str] | None:
        """Return the next marker, or None if there is no more text."""
        while (found := (self._closes or self._pattern).search(text, self.seen)) is not None:
            self.seen = found.end()
            if self._closes is None and found["wanted"]:
                return found
            self._closes = closing_mark(found["think"]) if self._closes is None else None
        begun = _FIRST.search(text, max(self.seen, len(text) - self._longest)) if self._growing else None
        self.seen = len(text) if begun is None else begun.start()
        return None


class TagReader(Generic[T]):
    """Reads the payload of the last complete pair of tags, in a complete or streamed reply."""

    def __init__(self, contract: TaggedContract[T], max_depth: int = DEPTH, *, growing: bool = False) -> None:
        self.contract = contract
        self.max_depth = max_depth
        self.growing = growing
        self.text = ""
        self.pairs: list[Pair] = []
        self.opening: tuple[int, int] | None = None
        """The opening tag that has not been closed yet."""
        self.budget = 0
        """The number of characters that may be scanned for the end of JSON; other text costs a scan of the rest."""
        self._marks = _Marks(
            f"(?P<opens>{contract.opens.pattern})|(?P<closes>{contract.closes.pattern})",
            longest=len(contract.tag),
            growing=growing,
        )
        self._unread = False
        """Whether the end of the payload's JSON has not been reached."""
        self._following: Following | None = None
        self._looked_to = 0
        """The position up to which the payload's JSON was searched for closing tags."""
        self._preview: Preview | None = None
        self._text: TextPreview | None = None

    def read(self, text: str, look: Look) -> Reading[T]:
        """Return the payload of a complete reply. `look` reads JSON that is not valid as written."""
        self.text = mask_reasoning(text)
        self.budget = _LOOKS * len(text)
        self._read_available()
        outcome = _read_tagged(text, self, look)
        return replace(outcome, tag=self.contract.tag) if isinstance(outcome, Rejected) else outcome

    def grow(self, text: str) -> None:
        """Continue with the text that has arrived."""
        self.text = text
        self._read_available()
        self.text = ""
        if self._following is not None:
            self._following.release_text()

    def shown(self) -> Preview | None:
        """Return the payload, unless it is still empty."""
        return None if self._text is not None and not self._text.begun else self._preview

    @property
    def pending_start(self) -> int:
        """The start of the part that may still change."""
        return self._marks.seen if self._following is None else self._following.pending_start()

    @property
    def in_open_text(self) -> bool:
        """Whether continuing costs no more than the text that has arrived."""
        text = self.contract.mode == "text" and self.opening is not None
        return text or (self._following is not None and self._following.parser.opened is not None)

    @property
    def unclosed(self) -> int | None:
        """The position of a tag that is never closed, if a payload seems to begin there."""
        if self.opening is None:
            return None
        at, start = self.opening
        text = self.text
        begun = self.contract.mode == "text" or _BEGINS.match(text, start) or _BEGINS_LATER.search(text, start)
        return at if begun else None

    def _read_available(self) -> None:
        while not self._unread or self._read_json():
            at = self._marks.seen
            mark = self._marks.next(self.text)
            if self._text is not None and self.opening is not None:
                end = self._marks.seen if mark is None else mark.start()
                end = at + len(self.text[at:end].rstrip())
                self._text.add(self.text[at:end])
                self._marks.seen = end if mark is None else self._marks.seen
            if mark is None:
                return
            if mark["opens"]:  # an earlier open tag was only mentioned
                self.opening = mark.span()
                self._unread = self.contract.mode == "tagged"
                if self.growing and not self._unread:
                    self._preview = self._text = TextPreview()
            elif self.opening is not None:
                self._close(mark)

    def _close(self, mark: re.Match[str]) -> None:
        if self.opening is not None:
            self.pairs.append(Pair(*self.opening, *mark.span()))
        self.opening = None
        self._marks.seen = mark.end()
        if self._text is not None and self._text.begun:
            self._text.final.add(None)

    def _read_json(self) -> bool:
        """Read the payload up to the end of its JSON, ignoring tags inside strings. Returns False if the JSON is not
        complete."""
        start = 0 if self.opening is None else self.opening[1]
        if self.growing:
            self._unread = self._parse_on(start)
            return not self._unread
        self._unread = False
        closed = _payload_end(self.text, start, self.contract.closes) if self.budget >= 0 else None
        if closed is not None:
            self._close(closed)
        else:
            self.budget -= start
        return True

    def _parse_on(self, start: int) -> bool:
        """Return whether more of a payload is needed to see where its JSON ends."""
        text, contract = self.text, self.contract
        if self._following is None:
            try:
                begin = _FENCE_OPEN.match(text, start, growing=True)
            except NeedMoreInput:
                return True
            self._preview = None
            self._marks.seen = start = start if begin is None else begin.end()
            if text[start] not in "{[":
                return False
            typed, rewritten = isinstance(contract.values, TypeValues), rewritten_fields(contract.values)
            rules = Rules(typed=typed, exact=contract.strict, finals=not contract.checks, rewritten=rewritten)
            shape = ANY if contract.strict else contract.shape
            parser = Parser(text, start, shape, max_depth=self.max_depth, growing=True)
            self._following = Following(parser, JsonPreview(text, contract.shape, rules), quoted=False)
            self._looked_to = start
        parser, preview = self._following.parser, self._following.preview
        self._preview = preview
        parsed = self._following.continue_reading(text)
        # If no tag follows the JSON, a closing tag inside a string ends the payload after all, so nothing is final yet.
        ends = parsed.end if isinstance(parsed, Parsed) else len(text)
        if not preview.in_doubt and contract.closes.search(text, self._looked_to, ends) is not None:
            preview.set_doubtful(in_doubt=True)
        self._looked_to = max(self._looked_to, ends - _SPACE_IN_TAG - len(contract.tag))
        if isinstance(parsed, Failure) or (contract.strict and parser.edits):
            self._following = self._preview = None
            self._marks.seen = max(self._marks.seen, parser.pos)
            return False
        preview.follow(parser)
        if parsed is None:
            return True
        self._following, self._marks.seen = None, parsed.end
        if preview.whole is not NOTHING:
            verdict = contract.values.strict(parsed.plain) or contract.validate(preview.whole)
            preview.finish(as_json(verdict.value, preview.whole) if isinstance(verdict, Valid) else NOTHING)
        return False


def _read_tagged(text: str, reader: TagReader[T], look: Look) -> Reading[T]:
    contract, masked = reader.contract, reader.text
    if (open_at := reader.unclosed) is not None:
        words = f"<{contract.tag}> is opened at character {open_at} and never closed"
        return Rejected(Reason.TRUNCATED, (Issue("$", "unterminated_tag", words),), text, text[open_at:])
    pairs = _drop_mentioned_pairs(masked, reader.pairs, contract)
    if not pairs:
        words = f"the reply has no <{contract.tag}>…</{contract.tag}>"
        return Rejected(Reason.NO_JSON, (Issue("$", "missing_tag", words),), text)
    _, start, end, _ = pairs[-1]
    raw = text[start:end]
    payload = without_fence(raw)
    if not payload.strip(_UNSEEN):
        words = f"there is nothing between <{contract.tag}> and </{contract.tag}>"
        return Rejected(Reason.NO_JSON, (Issue("$", "empty_payload", words),), text, raw)
    if contract.mode == "text" and _is_ambiguous_pair(masked, pairs, contract):
        words = f"the reply mentions its own tags, so the beginning and end of <{contract.tag}> are unclear"
        return Rejected(Reason.AMBIGUOUS, (Issue("$", "nested_tag", words),), text, raw)
    if (rest := _find_leftover(text, pairs, contract)) is not None:
        return Rejected(Reason.AMBIGUOUS, (Issue("$", "leftover", rest),), text, raw)
    earlier = (((pair.start, pair.end), text[pair.start : pair.end][:80]) for pair in pairs[:-1])
    aside = (Repair("earlier-tag", Risk.LOSSLESS, "$", span, inside, "") for span, inside in earlier)
    repairs = (*aside, *_other_forms(text, pairs[-1], contract.tag))
    if contract.mode == "text":
        if placeholder_in(f'{contract.tag}: "{raw.strip()}"', (contract.tag,)) is not None:
            words = f"{raw.strip()!r} is a placeholder for a text"
            return Rejected(Reason.ECHOED_SCHEMA, (Issue("$", "placeholder", words),), text, raw)
        return _validate_value(contract, text, raw, raw.strip(), repairs)
    if not contract.strict:
        inside = look(payload, JsonContract(contract.values, "json", contract.risk), whole=True)
        if isinstance(inside, Rejected) and inside.reason is Reason.NO_JSON:  # there is another payload
            verdict = None if (known := parse_json(payload)) is NOT_JSON else contract.validate(known)
            if isinstance(verdict, Invalid):
                inside = replace(inside, reason=Reason.INVALID, issues=verdict.issues)
            else:
                inside = replace(inside, reason=Reason.MALFORMED)
        return _rebase_outcome(inside, text, raw, start + raw.find(payload), repairs)
    found = _parse_strict_json(payload, "the payload", text)
    if isinstance(found, Rejected):
        return replace(found, raw_matched=raw)
    return _validate_value(contract, text, raw, found[0], repairs)


def _find_leftover(text: str, pairs: list[Pair], contract: TaggedContract[Any]) -> str | None:
    """Return text outside the last pair of tags that casts doubt on it."""
    *others, last = (Span(pair.opening, pair.closing) for pair in pairs)
    if others and (doubt := rivalry(text, last, others)) is not None:
        return doubt
    issue = prose_rest(text, last, others, Answer(contract.shape, lambda: None))
    return None if issue is None else issue.message


class _TwiceError(ValueError):
    """A key occurs twice with different values."""


def _parse_strict_json(payload: str, what: str, text: str) -> tuple[Any] | Rejected:
    """Return the value of strictly valid JSON: finite numbers, each key once, and no lone surrogates.

    In a tuple, because it may be None. `what` names the payload in the rejection of the reply, `text`.
    """
    reason, code = Reason.MALFORMED, "json"
    try:
        value = json.loads(
            payload,
            object_pairs_hook=_reject_duplicates,
            parse_constant=reject_constant,
            parse_float=parse_finite_float,
        )
    except _TwiceError as error:
        reason, code, why = Reason.AMBIGUOUS, "duplicate_key", f"has the key {error} twice, with different values"
    except (ValueError, RecursionError) as error:
        why = f"is not JSON: {error}"
    else:
        if not ("\\u" in payload and SURROGATE.search(json.dumps(value, ensure_ascii=False))):
            return (value,)
        code, why = "lone_surrogate", "has a lone surrogate, which is not a valid character"
    return Rejected(reason, (Issue("$", code, f"{what} {why}"),), text, payload)


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    known = dict(pairs)
    if len(known) < len(pairs):
        for key, value in pairs:
            if json.dumps(known[key]) != json.dumps(value):
                raise _TwiceError(repr(key))
    return known


def _drop_mentioned_pairs(text: str, pairs: list[Pair], contract: TaggedContract[Any]) -> list[Pair]:
    """Return the pairs that are not just mentioned: `between <result> and </result>` contains no payload."""
    if len(pairs) < 2:
        return pairs
    spoken = _SPOKEN_WORD if contract.mode == "text" else _SPOKEN
    return [pair for pair in pairs if not spoken.fullmatch(text, pair.start, pair.end)] or pairs


def _is_ambiguous_pair(text: str, pairs: list[Pair], contract: TaggedContract[Any]) -> bool:
    """Return whether the last pair may be part of the text in another pair, or contain only part of its own.

    JSON has a recognizable end. Plain text does not, so text that mentions the tags is ambiguous.
    """
    last, before = pairs[-1], pairs[-2].closing if len(pairs) > 1 else 0
    opened = re.compile(f"^{_ASIDE}{contract.opens.pattern}", re.M).search(text, before, last.opening)
    if opened is not None and not _BLANK.fullmatch(text, opened.end(), last.opening):
        return True
    if len(pairs) > 1 and not text[last.start : last.end].strip(" .…\n"):
        return True
    if _ENDS.match(text, last.closing):
        return False
    closed = re.compile(f"{contract.closes.pattern}{_ASIDE}$", re.M).search(text, last.closing)
    return closed is not None and not _BLANK.fullmatch(text, last.closing, closed.start())


def _payload_end(text: str, start: int, closes: re.Pattern[str]) -> re.Match[str] | None:
    """Return the closing tag of a JSON payload, found by the end of the JSON, because tags inside strings do not end
    it.
    """
    begin = _FENCE_OPEN.now.match(text, start)
    end = find_json_end(text, begin.end() if begin else start)
    if end is None:
        return None
    after = _FENCE_CLOSE.match(text, end)
    return closes.match(text, after.end() if after else end)


def _other_forms(text: str, pair: Pair, tag: str) -> Iterator[Repair]:
    """Yield the repairs for tags that are written in a form other than the requested one."""
    for (begin, end), wanted in (((pair[:2]), f"<{tag}>"), (pair[2:], f"</{tag}>")):
        if text[begin:end] != wanted:
            yield Repair("tag-form", Risk.LOSSLESS, "$", (begin, end), text[begin:end][:80], wanted)


def _validate_value(
    contract: TaggedContract[T], text: str, raw: str, value: object, repairs: tuple[Repair, ...]
) -> Reading[T]:
    verdict = contract.validate(value)
    if isinstance(verdict, Invalid):
        return Rejected(Reason.INVALID, verdict.issues, text, raw)
    if verdict.conversions and contract.strict:
        return Rejected(Reason.INVALID, verdict.conversions, text, raw)
    return Accepted(verdict.value, Trust.of(repairs), "first", repairs, text)


def _rebase_outcome(outcome: Reading[T], text: str, raw: str, by: int, repairs: tuple[Repair, ...]) -> Reading[T]:
    """Return the outcome of a payload, with spans relative to the beginning of the reply."""
    if not isinstance(outcome, Accepted):
        draft = outcome.draft
        moved = None if draft is None else Draft(draft.value, (draft.span[0] + by, draft.span[1] + by))
        return Rejected(outcome.reason, outcome.issues, text, raw, moved, outcome.seen)
    inside = (replace(repair, span=(repair.span[0] + by, repair.span[1] + by)) for repair in outcome.repairs)
    every = (*repairs, *inside)
    return Accepted(outcome.value, Trust.of(every), outcome.origin, every, text)


# --- before prose -----------------------------------------------------------------------------------------------------


class BlockPreview:
    """The preview of the leading JSON object of a streamed reply, as long as it is plain JSON."""

    def __init__(self, contract: BlockContract, max_depth: int = DEPTH) -> None:
        self.contract = contract
        self.max_depth = max_depth
        self._marks = _Marks(r"[{\[]", growing=True)
        self._over = not contract.keys
        self._following: Following | None = None
        self._preview: JsonPreview | None = None

    def shown(self) -> Preview | None:
        """Return the block as the fields of a `Block`."""
        return self._preview

    @property
    def pending_start(self) -> int:
        """The start of the part that may still change."""
        return self._marks.seen if self._following is None else self._following.pending_start()

    @property
    def in_open_text(self) -> bool:
        """Whether continuing costs no more than the text that has arrived."""
        return self._over or (self._following is not None and self._following.parser.opened is not None)

    def grow(self, text: str) -> None:
        """Continue with the text that has arrived."""
        if self._over:
            return
        if self._following is None:
            found = self._marks.next(text)
            if found is None:
                return
            self._over = found[0] == "["
            parser = Parser(text, found.start(), ANY, max_depth=self.max_depth, growing=True)
            rules = Rules(typed=False, exact=True, finals=False)
            self._following = Following(parser, JsonPreview(text, ANY, rules, (None, "fields")), quoted=False)
        if not self._over:
            self._parse_on(text, self._following)
        self._following.release_text()

    def _parse_on(self, text: str, following: Following) -> None:
        parser, self._preview = following.parser, following.preview
        parsed = following.continue_reading(text)
        if isinstance(parsed, Failure) or any(edit.risk > Risk.LOSSLESS for edit in parser.edits):
            self._over, self._preview = True, None
            return
        self._preview.follow(parser)
        self._over = parsed is not None
        if parsed is not None:  # before the object ends, another one could be the first valid JSON
            self._preview.rules = Rules(typed=False, exact=True)
            complete = all(parsed.plain.get(key) is not None for key in self.contract.keys)
            self._preview.finish(self._preview.whole if complete else NOTHING)


_TOOL_CALL: Final = expression(r"<(tool_call|tool_use|function_call)>.*?(?:</\1>|\Z)", re.S)


def read_block(text: str, contract: BlockContract, *, truncated: bool | None = None) -> Reading[Block]:
    """Return the leading JSON object with all required keys, and the prose after it. Reasoning is skipped.

    The prose is part of the value and has no recognizable end: a reply that was cut, or that ends in a runaway
    repetition, is TRUNCATED, whatever its block says.
    """
    outcome = _block_in(text, contract)
    cut = cut_prose(text, "$.prose", truncated=truncated)
    if cut is None:
        return outcome
    issues = outcome.issues if isinstance(outcome, Rejected) else ()
    return Rejected(Reason.TRUNCATED, (cut, *issues), text)


def cut_prose(text: str, path: str, *, truncated: bool | None) -> Issue | None:
    """Return the reason why the prose of a reply is incomplete: the token limit cut it off, or it repeats itself to the
    end.

    Unlike an object, prose has no recognizable end. `path` is its location in the value.
    """
    if truncated is True:
        return Issue(path, "truncated", "the reply was cut off before its text ended")
    return replace(lost, path=path) if (lost := find_runaway(text)) else None


def _block_in(text: str, contract: BlockContract) -> Reading[Block]:
    if not contract.keys:
        return Accepted(Block({}, text), Trust.CLEAN, "first", (), text)
    # A tool call is not an answer.
    masked = _TOOL_CALL.sub(lambda call: " " * len(call[0]), mask_reasoning(text, unopened=True))
    first = next(values_in(masked), None)
    repaired = _repaired_block(masked, contract, len(text) if first is None else first[1])
    if repaired is not None:
        fields, node, edits = repaired
        repairs = RepairLog(edits, text, node)
        return _with_prose(fields, text, (node.start, node.end), repairs)
    if first is None:
        return Rejected(Reason.NO_JSON, (Issue("$", "missing_block", "the reply contains no JSON object"),), text)
    value, start, end = first
    if not is_dict(value):
        words = "the first JSON value is not an object"
        return Rejected(Reason.INVALID, (Issue("$", "type", words),), text, text[start:end])
    strict = _parse_strict_json(text[start:end], "the block", text)
    if isinstance(strict, Rejected):
        return strict
    issues: list[Issue] = []
    for key in (key for key in contract.keys if value.get(key) is None):
        words = f"the key {key!r} must be present and have a value"
        issues.append(Issue(f"$.{key}", "null" if key in value else "missing", words))
    if issues:
        return Rejected(Reason.INVALID, tuple(issues), text, text[start:end])
    return _with_prose(value, text, (start, end), ())


def _repaired_block(text: str, contract: BlockContract, before: int) -> tuple[dict[str, Any], Node, list[Edit]] | None:
    """Return the block, if it begins before `before` and needs only trivial repairs: a trailing comma, other quotes."""
    start = text.find("{", 0, before)
    if start < 0:
        return None
    parsed = Parser(text, start).parse()
    if isinstance(parsed, Failure) or parsed.cut or worst(parsed.edits) is not Risk.LOSSLESS:
        return None
    fields: dict[str, Any] = plain(parsed.node)
    whole = all(fields.get(key) is not None for key in contract.keys) and not _has_duplicate_key(parsed.node)
    return (fields, parsed.node, parsed.edits) if whole and _is_text(fields) else None


def _has_duplicate_key(node: Node) -> bool:
    """Return whether a key occurs twice in one object of a tree."""
    if node.kind == OBJECT:
        names = {member.key for member in node.value}
        return len(names) < len(node.value) or any(_has_duplicate_key(member.node) for member in node.value)
    return node.kind == ARRAY and any(_has_duplicate_key(item) for item in node.value)


def _is_text(value: Any) -> bool:
    """Return whether a value can be serialized as JSON and contains no lone surrogate."""
    try:
        return not SURROGATE.search(json.dumps(value, ensure_ascii=False, allow_nan=False))
    except ValueError:
        return False


def _with_prose(fields: dict[str, Any], text: str, at: tuple[int, int], repairs: Sequence[Repair]) -> Accepted[Block]:
    """Return the block at this position, and the prose around it without reasoning and tool calls."""
    around = text[: at[0]], text[at[1] :]
    said = [_without_reasoning_and_calls(part) for part in around]
    aside = [
        Repair("reasoning", Risk.LOSSLESS, "$", span, text[slice(*span)][:80], part.strip()[:80])
        for span, part in zip(((0, at[0]), (at[1], len(text))), said, strict=True)
        if part != text[slice(*span)]
    ]
    whole = (*repairs, *aside) if aside else repairs
    return Accepted(Block(fields, _prose(*said)), Trust.of(whole), "first", whole, text)


def prose_of(text: str) -> str:
    """Return the prose of a reply without a block, without reasoning and tool calls."""
    return _without_reasoning_and_calls(text).strip()


def _without_reasoning_and_calls(part: str) -> str:
    return _TOOL_CALL.sub("", without_reasoning(part))


def _prose(before: str, behind: str) -> str:
    """Return the text around the block, without a fence around the block."""
    before, behind = before.strip("\ufeff \t\r\n"), behind.strip()
    opened = _FENCE_BEFORE.search(before)
    if opened and (behind.startswith("```") or "```" not in behind):
        before, behind = before[: opened.start()].strip(), behind.removeprefix("```").strip()
    return "\n\n".join(part for part in (before, behind) if part)


def values_in(text: str) -> Iterator[tuple[Any, int, int]]:
    """Yield the JSON objects and lists of a text, in order, with their positions."""
    at, budget = 0, 4 * len(text) + 4_096
    for found in re.finditer(r"[{\[]", text):
        if found.start() < at:
            continue
        end = find_json_end(text, found.start())
        budget -= (end or found.start()) - found.start() + 64
        if end is not None:
            yield json.loads(text[found.start() : end]), found.start(), end
            at = end
        elif budget < 0:
            return


_FENCE_BEFORE: Final = expression(r"```[\w+-]*\Z")


# --- checks -----------------------------------------------------------------------------------------------------------


def apply_checks(outcome: Reading[T], contract: JsonContract[Any]) -> Reading[T]:
    """Apply the checks of a contract to an outcome: issues reject the value, and changes become repairs."""
    checks = contract.checks
    if not checks or not isinstance(outcome, Accepted) or is_settled(outcome):
        return outcome
    return with_judgement(outcome, judge(outcome.value, checks, contract))


async def apply_checks_async(
    outcome: Outcome[T], checks: Sequence[Check], contract: JsonContract[Any] | None
) -> Outcome[T]:
    """Apply checks, which may be async, to an outcome; `contract` is that of the value, if there is one."""
    if not checks or not isinstance(outcome, Accepted) or is_settled(outcome):
        return outcome
    return with_judgement(outcome, await judge_awaiting(outcome.value, checks, contract))


def is_settled(outcome: Accepted[Any]) -> bool:
    """Return whether checks have already run. A value that was synthesized because of failed checks need not satisfy
    them."""
    return outcome.origin == "synthesize"


def with_judgement(outcome: Accepted[T], judgement: Judgement[T]) -> Reading[T]:
    """Return the outcome after the results of the checks on its value."""
    value, issues, cleaned = judgement
    if issues:
        return Rejected(Reason.INVALID, issues, outcome.text)
    if not cleaned:
        return outcome
    trust = outcome.trust if outcome.trust is Trust.SYNTHESIZED else Trust.LOSSY
    return replace(outcome, value=value, trust=trust, repairs=(*outcome.repairs, *cleaned))


# --- events -----------------------------------------------------------------------------------------------------------

_NOTHING_READ: Final = (Reason.NO_JSON, Reason.REFUSED)
_NO_EVENT: Final = (Reason.INVALID, Reason.MALFORMED, Reason.AMBIGUOUS)


def read_event(
    text: str, contract: EventContract, look: Look, *, ceiling: Risk, truncated: bool | None = None
) -> Reading[Event]:
    """Read an event: JSON with a kind and a text, or else the prose of the reply.

    A reply is never rejected for lack of JSON, unless only lossless repairs are allowed. An echo of the prompt's form
    or example is set aside; a reply that contains nothing else counts as empty.
    """
    outcome = _event_in(text, contract, look, truncated=truncated)
    if ceiling is not Risk.LOSSLESS or not isinstance(outcome, Accepted):
        return outcome
    over = [repair for repair in outcome.repairs if repair.risk > ceiling]
    return Rejected(Reason.MALFORMED, (risk_issue(over),), text) if over else outcome


def _event_in(text: str, contract: EventContract, look: Look, *, truncated: bool | None) -> Reading[Event]:
    echo = _echo_of(contract.example)
    heard = echo.sub(lambda found: " " * len(found[0]), text)
    outcome: Reading[WrittenEvent] = look(heard, contract.written)
    outcome = clean_optional_fields(outcome, heard, contract, look)
    if isinstance(outcome, Accepted):
        if is_slot(outcome.value.text, contract.example):
            return _reject_echo(text)
        if heard != text:
            spans = [found.span() for found in echo.finditer(text)]
            start, end = spans[0][0], spans[-1][1]
            aside = Repair("prose-around", Risk.LOSSLESS, "$", (start, end), text[start:end][:80], "")
            repairs = (*outcome.repairs, aside)
            outcome = replace(outcome, repairs=repairs, trust=Trust.of(repairs))
        return _with_allowed_kind(outcome, contract, text)
    prose = mask_reasoning(text, unopened=True).strip()
    if outcome.reason in _NOTHING_READ or (outcome.reason in _NO_EVENT and is_prose(prose)):
        begun = truncated and not prose.strip("\"'`")  # nothing but an opening quotation mark has arrived
        if heard != text or (prose and not begun and is_slot(prose, contract.example)):
            return _reject_echo(text)
        if prose and (cut := cut_prose(text, "$.text", truncated=truncated)) is not None:
            return Rejected(Reason.TRUNCATED, (cut,), text)
        said = speech_in(prose)
        event = Event.model_validate({"kind": contract.fallback, "text": said, "_raw_fallback": True})
        repair = Repair("prose-wrapped", Risk.INFERRED, "$", (0, len(text)), text[:80], said[:80])
        return Accepted(event, Trust.SYNTHESIZED, "first", (repair,), text)
    return replace(outcome, text=text)


def _echo_of(example: str) -> re.Pattern[str]:
    """Return an expression that matches the form or the example of the instruction as a separate object."""
    slot = rf"(?:\.\.\.|…|{re.escape(json.dumps(example, ensure_ascii=False)[1:-1])})"
    return re.compile(
        rf'\{{\s*"kind"\s*:\s*"[^"{{}}]{{0,200}}"\s*,\s*"text"\s*:\s*"{slot}"[^{{}}]{{0,2000}}(?:\{{[^{{}}]{{0,200}}\}}[^{{}}]{{0,200}})?\}}'
    )


def is_slot(said: str, example: str) -> bool:
    """Return whether a text is the example from the prompt, or its unfilled dots."""
    return is_same_line(said, example) or (bool(said.strip()) and is_blank(said))


def _reject_echo(text: str) -> Rejected:
    words = "the reply repeats the example from the prompt, or leaves its dots in place"
    return Rejected(Reason.ECHOED_SCHEMA, (Issue("$.text", "echoed_example", words),), text)


def _with_allowed_kind(outcome: Accepted[WrittenEvent], contract: EventContract, text: str) -> Reading[Event]:
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
    """Return an event as it was written, with an allowed kind."""
    defaults = {name: default for name, (_, default) in WELL_KNOWN.items() if name in contract.fields}
    kind = event_kind(written.kind, contract)
    return Event.model_validate({**defaults, **written.model_dump(exclude_unset=True), "kind": kind})


def event_kind(written: str | None, contract: EventContract) -> str:
    """Return the allowed kind for a written one: the kind itself, its declared spelling, or the fallback."""
    if written in contract.kinds:
        return written
    return {fold(kind): kind for kind in contract.kinds}.get(fold(written or "")) or contract.fallback


def is_example(text: str, start: int, said: str, contract: EventContract) -> bool:
    """Return whether the event that begins here is the form or the example from the prompt."""
    return is_slot(said, contract.example) or _echo_of(contract.example).match(text, start) is not None


# --- the text of a reply in prose -------------------------------------------------------------------------------------

_QUOTED: Final = r"[\"“]([^\"“”\n]+)[\"”]"
_LABELLED: Final = expression(rf"\b(?:text|says?|reply|line|answer)\s*[:=]\s*{_QUOTED}", re.I)
_LABELLED_LINE: Final = expression(
    rf"^[^\w\n]{{0,9}}(?:text|say|reply|line|answer)[^\w\n:=]{{0,9}}[:=][^\w\n]{{0,9}}?{_QUOTED}[^\w\n]{{0,9}}$",
    re.I | re.M,
)
_LAST_QUOTE: Final = expression(r"[\"“]([^\"“”\n]+)([\"”]?)[\s.!]*\Z")
_META: Final = (
    r"(?:output|produce|respond|reply|answer|write|generate|return|provide|create|craft|emit|follow|format|include"
    r"|avoid|mention|ensure|make sure|think|consider|stay|keep|come up with|be (?:vague|brief|short|careful|concise"
    r"|subtle|specific|in character)|give (?:an? |one )?(?:clue|hint|line|sentence))"
)
_NOTE: Final = expression(
    rf"\b(?:we|I) (?:need to|must|should|have to) {_META}\b|\bJSON\b|(?<![\w.])thoughts?\s*:|\bit (?:must|should"
    r"|has to|needs to) be (?:an? |one |two )?(?:short|brief|concise|vivid|vague|specific|sentences?|valid"
    rf"|in character)\b|\bthe (?:user|prompt)\b(?!'| interface)|\blet(?:'s| me) (?:think|see what|{_META})\b|\b(?:we"
    r"|I) (?:are|am) asked to\b|\bthe (?:output|response|sentence|clue) (?:must|should|has to|needs to)\b",
    re.I,
)
"""Phrases that models write to themselves and never say to others."""
_INTENT: Final = expression(r"\bwe (?:need|must|should|have) to\b", re.I)
"""Phrases that people also say to each other: a note only if it is about writing."""
_WRITING: Final = expression(
    r"\b(?:sentences?|clues?|hints?|character|persona|format|fields?|instructions?|reply|response|riddle|emotion)\b",
    re.I,
)
_PERHAPS: Final = re.compile(
    r"\b(?:we|I) (?:need|want|must have) (?:an? |one |two |some )?(?:\w+ )?"
    r"(?:sentences?|clues?|hints?|repl(?:y|ies)|riddles?)\b",
    re.I,
)
"""Phrases that people also say to each other: a note only if a quotation that could be the answer follows."""
_WORDS_SAID: Final = 3
"""The minimum number of words of a quotation; shorter ones only mention a word."""
_ANSWER: Final = expression(r"(?:[:：]|```[\w+-]{0,20}|\n)\s{0,80}\{[^{}]+\}[\s`.]*\Z")
"""An object that was announced, or is on its own lines, with nothing after it."""
_NULL: Final = expression(r"[\s\"'`]*null[\s\"'`.]*", re.I)
"""Complete replies that say nothing. `None` is not included, because people also say it."""
_KEY: Final = expression(r"[\"'“]?\b(?:kind|text)\b[\"'”]?\s*[:=]", re.I)


def speech_in(prose: str) -> str:
    """Return the speech in a reply without an event: a labelled quotation, a quotation that never ends, or all of the
    reply.

    Notes that a model writes for itself are not speech; only such a quotation in them is kept.
    """
    text = without_fence(prose)
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
    is_line = quoted is not None and (not quoted[2] or _is_alone(text[: quoted.start()], quoted[1]))
    return quoted[1].strip() if quoted is not None and is_line else PLACEHOLDER


def is_prose(text: str) -> bool:
    """Return whether the braces in a text cannot contain an event: words surround them, and no key of an event is
    inside.
    """
    return text[:1] not in ("{", "[", "`", "") and _KEY.search(text) is None and _ANSWER.search(text) is None


def is_same_line(said: str, other: str) -> bool:
    """Return whether two texts have the same words in the same order. Very short texts must be identical, to rule out
    coincidence.
    """
    words = _words(said)
    return said.strip() == other or (len(words) >= _WORDS_SAID and words == _words(other))


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _is_alone(before: str, quoted: str) -> bool:
    """Return whether a quotation is on its own line and not inside a longer sentence."""
    return len(quoted.split()) >= _WORDS_SAID and (not before.strip() or before.rstrip()[-1] in ".:!?\n")


_MAY_BE_OPTIONAL: Final = (Reason.INVALID, Reason.AMBIGUOUS, Reason.MALFORMED, Reason.TRUNCATED, Reason.TOO_LARGE)


def clean_optional_fields(
    outcome: Reading[WrittenEvent], text: str, contract: EventContract, look: Look
) -> Reading[WrittenEvent]:
    """Clean the optional fields of an event that was rejected because of them; return any other outcome unchanged.

    Scores that are not numbers are dropped, and so are `scores` that are not an object. A kind that is not a string
    counts as a wrong kind. Elsewhere a non-finite number becomes null. Anything unreadable after the last required
    field is dropped. A winner is required if the contract requests it or has checks: `{"name": "p1"}` names one, and a
    value that names no one stays rejected. Otherwise it is also optional.
    """
    if not isinstance(outcome, Rejected) or outcome.reason not in _MAY_BE_OPTIONAL:
        return outcome
    loose: Reading[LooseEvent] = look(text, contract.loose)
    if not isinstance(loose, Accepted):
        return _without_optional(outcome)
    cleaning = _Cleaning(loose.value, contract, look, len(text))
    if not cleaning.is_winner_clear:
        return _without_optional(outcome, _excerpt(cleaning.event["winner"]))
    repairs = (*loose.repairs, *cleaning.repairs)
    event = WrittenEvent.model_validate(cleaning.event)
    return Accepted(event, Trust.of(repairs), loose.origin, repairs, loose.text)


def _without_optional(outcome: Rejected, winner: str = "") -> Rejected:
    """Return the rejection without issues about optional fields, which a model is not asked to repair.

    `winner` is the value of a winner that names no one, if all other fields are clean.
    """
    if winner and not any(issue.path.startswith("$.winner") for issue in outcome.issues):
        issue = Issue("$.winner", "type", f"expected a name or null, found {winner}")
        return replace(outcome, reason=Reason.INVALID, issues=(issue,))
    left = tuple(issue for issue in outcome.issues if not issue.path.startswith(("$.kind", "$.scores")))
    return replace(outcome, issues=left or outcome.issues)


class _Cleaning:
    """The cleaned fields of an event, and the changes made to them."""

    def __init__(self, written: LooseEvent, contract: EventContract, look: Look, size: int) -> None:
        self.event: dict[str, Any] = written.model_dump(exclude_unset=True)
        self.repairs: list[Repair] = []
        self.is_winner_clear = True
        self._look = look
        self._span = (0, size)
        kind = self.event.get("kind")
        if kind is not None and not isinstance(kind, str):
            self.event["kind"] = _excerpt(kind)  # the kind is not allowed, so the fallback replaces it
        self._clean_winner(judged=contract.judges_winner)
        self._clean_scores()
        self._clean_numbers()

    def _clean_winner(self, *, judged: bool) -> None:
        winner = self.event.get("winner")
        if winner is None or isinstance(winner, str):
            return
        named = _name_in(winner)
        if named is None and judged:
            self.is_winner_clear = False
        elif named is None:
            self._drop("winner")
        else:
            self.event["winner"] = named
            code = "envelope" if isinstance(winner, (dict, list)) else "number-to-string"
            self._log(code, Risk.INFERRED, "$.winner", winner, named)

    def _clean_scores(self) -> None:
        scores = self.event.get("scores")
        if scores is None:
            return
        if isinstance(scores, str):
            written = self._look(scores, compile_contract({"type": "object"}), whole=True)
            scores = written.value if isinstance(written, Accepted) else scores
        if not is_dict(scores):
            self._drop("scores")
            return
        if scores is not self.event["scores"]:
            self._log("stringified", Risk.INFERRED, "$.scores", self.event["scores"], _excerpt(scores))
        numbers = {name: self._number(name, score) for name, score in scores.items()}
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
        """Put null in place of each non-finite number, which JSON cannot express."""
        optional = {name: value for name, value in self.event.items() if name not in ("text", "winner", "scores")}
        for place, value in reversed([*parts(optional)]):
            if isinstance(value, float) and not isfinite(value):
                value_at(self.event, place[:-1])[place[-1]] = None
                self._log(CLEANED, Risk.LOSSY, path_of(place), value, _excerpt(None))

    def _drop(self, name: str) -> None:
        self._log(CLEANED, Risk.LOSSY, f"$.{name}", self.event.pop(name), "")

    def _log(self, code: str, risk: Risk, path: str, before: Any, after: str) -> None:
        self.repairs.append(Repair(code, risk, path, self._span, _excerpt(before), after[:80]))


def _name_in(value: Any) -> str | None:
    """Return the name inside a list or an object given in place of a name, or None if it is unclear."""
    if isinstance(value, (bool, int, float)):
        return json.dumps(value) if isinstance(value, int) or isfinite(value) else None
    held = list(value.values()) if is_dict(value) else value if is_list(value) else []
    texts = [inner for inner in held if isinstance(inner, str) and inner.strip()]
    return texts[0] if len(texts) == 1 and (is_dict(value) or len(held) == 1) else None


def _excerpt(value: Any) -> str:
    return value[:80] if isinstance(value, str) else json.dumps(value, ensure_ascii=False)[:80]


_BETWEEN: Final = ("truncated", "elided")
"""Failures between two members after which the previous member is known to be complete."""


class LenientParser(Parser):
    """Reads an object in which only some keys are required: once these are read, the rest may be unreadable.

    It is the same parser, but it continues where the strict one would fail. Parts that it leaves out are recorded as
    the edit `cleaned`, without a replacement. `NaN` and `Infinity` become numbers.
    """

    counts: Counts  # pyright: ignore[reportIncompatibleVariableOverride] (this parser is never made without)

    def _run(self) -> Parsed:
        try:
            return super()._run()
        except Stop as stop:
            begin = self._end_of_required_keys(stop)
            end = None if begin is None else self._end_of_object(stop, begin)
            if end is None:
                raise
            return self._without_rest(stop, end)

    # --- values of optional fields --------------------------------------------------------------------------------

    def _not_finite(self, raw: str, pos: int, why: str) -> Node:  # noqa: ARG002 (no message is made here)
        sign = -1 if raw.startswith("-") else 1
        return Node(NUMBER, nan if "a" in raw.lower() else sign * inf, pos, pos + len(raw))

    def _whole_characters(self, found: Unescaped, start: int) -> str:
        if not found.lone or not (self.stack and self._is_optional(self.stack[0])):
            return super()._whole_characters(found, start)
        whole = SURROGATE.sub("\ufffd", found.value)
        self.edits.append(Edit(CLEANED, LOSSY, start, start, whole, self._path()))
        return whole

    def _is_optional(self, root: Frame) -> bool:
        """Return whether the member being read is optional."""
        return root.kind == OBJECT and bool(root.key) and root.keys.get(root.key, root.key) not in self.counts.keys

    # --- objects that end early ---------------------------------------------------------------------------------------

    def _read_cut_string(self, start: int) -> Node:
        self._end_of_text_stop("the end of a text")
        return super()._read_cut_string(start)

    def _word(self, raw: str, pos: int, shape: Shape, *, at_end: bool) -> Node:
        if at_end and not self.ends:
            self._end_of_text_stop("the end of a value")
        return super()._word(raw, pos, shape, at_end=at_end)

    def _end_of_text(self, *, seen_end: bool = False) -> bool:
        if not seen_end and not self.ends:
            self._end_of_text_stop("a closing bracket")
        return super()._end_of_text(seen_end=seen_end)

    # --- dropping unreadable text -------------------------------------------------------------------------------

    def _end_of_required_keys(self, stop: Stop) -> int | None:
        """Return the end of the last required key, if it is certain and the parser stopped at an optional one."""
        root = self.stack[0] if self.stack else None
        if root is None or root.kind != OBJECT or not self.counts.needed <= root.plain.keys():
            return None
        end: int = max(member.node.end for member in root.items if member.key in self.counts.keys)
        sure = self.comma >= end and (worst(e for e in self.edits if e.start < end) or Risk.LOSSLESS) is Risk.LOSSLESS
        between = not root.key and len(self.stack) == 1 and stop.failure.code in _BETWEEN
        return end if sure and (between or self._is_optional(root)) else None

    def _end_of_object(self, stop: Stop, begin: int) -> int | None:
        """Return the end of the object, or None if it is uncertain or a required key may still follow."""
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
        """Return the object with the members that were complete before this location."""
        path, root = self._path(), self.stack[0]
        if stop.failure.reason is Reason.TOO_LARGE:  # endless nesting is dropped entirely
            path = path_of([root.key])
            del self.stack[1:]
            self.comma = min(self.comma, root.key_at)
        begin = max(self.comma + 1, *(frame.end for frame in self.stack))
        self.edits = [edit for edit in self.edits if edit.start < begin]
        self.pos = begin
        while len(self.stack) > 1:
            if self.stack[-1].items:
                self._pop()
            else:
                self.stack.pop()
                self.stack[-1].key = ""
        root.key = ""
        self.edits.append(Edit(CLEANED, LOSSY, begin, end, "", path))
        self.pos = end
        return Parsed(Node(OBJECT, root.items, root.start, end), end, self.edits, self.cut, root.plain)

    def _path(self) -> str:
        """Return the path of the value that the parser is reading."""
        steps: list[str | int] = []
        for frame in self.stack:
            if frame.kind != OBJECT:
                steps.append(len(frame.items))
            elif frame.key:
                steps.append(frame.keys.get(frame.key, frame.key))
        return path_of(steps)
