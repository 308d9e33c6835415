"""Payloads that are not the whole reply: between tags, or before prose."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from flujo_aros.contract import (
    ANY,
    REASONING_OPENS,
    Block,
    BlockContract,
    Check,
    Invalid,
    JsonContract,
    Judgement,
    TaggedContract,
    TypeValues,
    Valid,
    closing_mark,
    judge,
    judge_awaiting,
    mask_reasoning,
    without_reasoning,
)
from flujo_aros.json_data import is_dict
from flujo_aros.outcome import Accepted, Issue, Outcome, Reading, Reason, Rejected, Repair, Risk, Trust
from flujo_aros.reading.candidate import Following
from flujo_aros.reading.lookahead import Ahead, NeedMoreInput, expression
from flujo_aros.reading.node import (
    ARRAY,
    OBJECT,
    Edit,
    Node,
    RepairLog,
    find_json_end,
    finite,
    plain,
    refuse_constant,
    worst,
)
from flujo_aros.reading.parser import DEPTH, Failure, Parsed, Parser
from flujo_aros.reading.partial import NOTHING, JsonPreview, Preview, Rules, TextPreview, as_json, rewritten_fields
from flujo_aros.reading.remainder import Span, prose_rest, rivalry
from flujo_aros.reading.runaway import ran_away
from flujo_aros.reading.scalars import SURROGATE
from flujo_aros.reading.scanner import FENCED

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
"""What may be between a tag and the end of its line without being text."""
_BLANK: Final = expression(_ASIDE.replace(r"\r", r"\r\n"))
_ENDS: Final = expression(f"{_ASIDE}$", re.M)
_SPOKEN: Final = expression(r"[\s`'\"*]*(?:and|or|und|oder|et|ou|y|to|…|\.\.\.|,|/|&)[\s`'\"*]*", re.I)
_SPOKEN_WORD: Final = expression(r"[\s`'\"*]*(?:and|or|und|oder|et|ou|y|to)[\s`'\"*]*", re.I)
_BEGINS: Final = expression(r"\s*(?:```|[{\[\"]|\Z)")
_BEGINS_LATER: Final = expression(r"[{\[]\s*[\"'{\[\d]")
"""Text that introduces a payload, so that the tag is unlikely to be a mere mention."""


class Look(Protocol):
    """Reads one JSON value from a text, with the options of the call."""

    def __call__(self, text: str, contract: JsonContract[T], *, whole: bool = False) -> Reading[T]:
        """The outcome. `whole` means that the end of the text is known, wherever the reply was cut."""
        ...


class Pair(NamedTuple):
    """The positions of an opening and a closing tag, and so of the text between them."""

    opening: int
    start: int
    end: int
    closing: int


class _Marks:
    """Finds marks of a kind one after the other, outside of reasoning.

    In a streamed reply it stops before what may become a mark. `seen` is how far it has looked.
    """

    def __init__(self, wanted: str, *, longest: int = 0, growing: bool = False) -> None:
        self.seen: int = 0
        self._growing = growing
        self._pattern = re.compile(rf"(?P<wanted>{wanted})|(?P<think>(?i:{REASONING_OPENS}))")
        self._closes: re.Pattern[str] | None = None
        """The end marker of the reasoning block that the text ends in."""
        self._longest = longest + _LONGEST_TAG

    def next(self, text: str) -> re.Match[str] | None:
        """The next marker, or None if there is no more text."""
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
        """How much may be scanned for the end of JSON: text that is not JSON costs a scan of everything after it."""
        self._marks = _Marks(
            f"(?P<opens>{contract.opens.pattern})|(?P<closes>{contract.closes.pattern})",
            longest=len(contract.tag),
            growing=growing,
        )
        self._unread = False
        """The end of the payload's JSON has not been reached."""
        self._following: Following | None = None
        self._looked_to = 0
        """How far the JSON of the payload was searched for closing tags."""
        self._preview: Preview | None = None
        self._text: TextPreview | None = None

    def read(self, text: str, look: Look) -> Reading[T]:
        """The payload of a complete reply. `look` reads JSON that is not valid as written."""
        self.text = mask_reasoning(text)
        self.budget = _LOOKS * len(text)
        self._read_on()
        outcome = _tagged(text, self, look)
        return replace(outcome, tag=self.contract.tag) if isinstance(outcome, Rejected) else outcome

    def grow(self, text: str) -> None:
        """Continue with the text that has arrived."""
        self.text = text
        self._read_on()
        self.text = ""
        if self._following is not None:
            self._following.let_go()

    def shown(self) -> Preview | None:
        """The payload, once it is not empty."""
        return None if self._text is not None and not self._text.begun else self._preview

    @property
    def waits_at(self) -> int:
        """Where the part that may still change begins."""
        return self._marks.seen if self._following is None else self._following.waits_at()

    @property
    def in_open_text(self) -> bool:
        """Whether continuing costs no more than the text that has arrived."""
        text = self.contract.mode == "text" and self.opening is not None
        return text or (self._following is not None and self._following.parser.opened is not None)

    @property
    def unclosed(self) -> int | None:
        """The position of a tag that is never closed, as if the payload began there."""
        if self.opening is None:
            return None
        at, start = self.opening
        text = self.text
        begun = self.contract.mode == "text" or _BEGINS.match(text, start) or _BEGINS_LATER.search(text, start)
        return at if begun else None

    def _read_on(self) -> None:
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
            if mark["opens"]:  # an open tag before it was only spoken of
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
        """Read the payload up to the end of its JSON, ignoring tags inside strings. False if it is not complete."""
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
        """Whether more of a payload is needed to see where its JSON ends."""
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
        parsed = self._following.read_on(text)
        # A closing tag in a string ends the payload after all if no tag follows the JSON: then nothing of it is final.
        ends = parsed.end if isinstance(parsed, Parsed) else len(text)
        if not preview.in_doubt and contract.closes.search(text, self._looked_to, ends) is not None:
            preview.doubt(in_doubt=True)
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


def _tagged(text: str, reader: TagReader[T], look: Look) -> Reading[T]:
    contract, masked = reader.contract, reader.text
    if (open_at := reader.unclosed) is not None:
        words = f"<{contract.tag}> is opened at character {open_at} and never closed"
        return Rejected(Reason.TRUNCATED, (Issue("$", "unterminated_tag", words),), text, text[open_at:])
    pairs = _meant(masked, reader.pairs, contract)
    if not pairs:
        words = f"it has no <{contract.tag}>…</{contract.tag}>"
        return Rejected(Reason.NO_JSON, (Issue("$", "missing_tag", words),), text)
    _, start, end, _ = pairs[-1]
    raw = text[start:end]
    payload = _unfenced(raw)
    if not payload.strip(_UNSEEN):
        words = f"there is nothing between <{contract.tag}> and </{contract.tag}>"
        return Rejected(Reason.NO_JSON, (Issue("$", "empty_payload", words),), text, raw)
    if contract.mode == "text" and _is_blurred(masked, pairs, contract):
        words = f"it mentions its own tags, so the beginning and end of <{contract.tag}> are unclear"
        return Rejected(Reason.AMBIGUOUS, (Issue("$", "nested_tag", words),), text, raw)
    if (rest := _left_over(text, pairs, contract)) is not None:
        return Rejected(Reason.AMBIGUOUS, (Issue("$", "leftover", rest),), text, raw)
    repairs = (*_earlier(text, pairs), *_other_forms(text, pairs[-1], contract.tag))
    if contract.mode == "text":
        return _judged(contract, text, raw, raw.strip(), repairs)
    if not contract.strict:
        inside = look(payload, JsonContract(contract.values, "json", contract.risk), whole=True)
        return _moved(inside, text, raw, start + raw.find(payload), repairs)
    found = _strictly(payload)
    if isinstance(found, _NotJson):
        return Rejected(found.reason, (Issue("$", found.code, f"the payload {found.why}"),), text, raw)
    return _judged(contract, text, raw, found[0], repairs)


def _left_over(text: str, pairs: list[Pair], contract: TaggedContract[Any]) -> str | None:
    """Text outside the last pair of tags that casts doubt on it."""
    *others, last = (Span(pair.opening, pair.closing) for pair in pairs)
    if others and (doubt := rivalry(text, last, others)) is not None:
        return doubt
    issue = prose_rest(text, last, others, contract.shape, lambda: None)
    return None if issue is None else issue.message


class _NotJson(NamedTuple):
    """Why a text cannot be accepted as JSON."""

    reason: Reason
    code: str
    why: str


class _TwiceError(ValueError):
    """A key occurs twice, with different values."""


def _strictly(payload: str) -> tuple[Any] | _NotJson:
    """The value of strictly valid JSON: finite numbers, each key once, complete characters.

    As a tuple, because it may be None.
    """
    try:
        value = json.loads(payload, object_pairs_hook=_once, parse_constant=refuse_constant, parse_float=finite)
    except _TwiceError as error:
        return _NotJson(Reason.AMBIGUOUS, "duplicate_key", f"has the key {error} twice, with different values")
    except (ValueError, RecursionError) as error:
        return _NotJson(Reason.MALFORMED, "json", f"is not JSON: {error}")
    if "\\u" in payload and SURROGATE.search(json.dumps(value, ensure_ascii=False)):
        return _NotJson(Reason.MALFORMED, "lone_surrogate", "has half of a surrogate pair, which is not a character")
    return (value,)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    known = dict(pairs)
    if len(known) < len(pairs):
        for key, value in pairs:
            if json.dumps(known[key]) != json.dumps(value):
                raise _TwiceError(repr(key))
    return known


def _meant(text: str, pairs: list[Pair], contract: TaggedContract[Any]) -> list[Pair]:
    """The pairs without mere mentions: `between <result> and </result>` holds no payload."""
    if len(pairs) < 2:
        return pairs
    spoken = _SPOKEN_WORD if contract.mode == "text" else _SPOKEN
    return [pair for pair in pairs if not spoken.fullmatch(text, pair.start, pair.end)] or pairs


def _is_blurred(text: str, pairs: list[Pair], contract: TaggedContract[Any]) -> bool:
    """Whether the last pair may be inside a text that another one holds, or hold only a part of its own.

    JSON shows where it ends. Plain text does not, so text that mentions the tags is ambiguous.
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
    """The closing tag of a JSON payload, found by the end of the JSON, because tags inside strings do not end it."""
    begin = _FENCE_OPEN.now.match(text, start)
    end = find_json_end(text, begin.end() if begin else start)
    if end is None:
        return None
    after = _FENCE_CLOSE.match(text, end)
    return closes.match(text, after.end() if after else end)


def _unfenced(raw: str) -> str:
    fence = FENCED.fullmatch(raw)
    return (fence[1] if fence else raw).strip()


def _earlier(text: str, pairs: list[Pair]) -> tuple[Repair, ...]:
    return tuple(
        Repair("earlier-tag", Risk.LOSSLESS, "$", (pair.start, pair.end), text[pair.start : pair.end][:80], "")
        for pair in pairs[:-1]
    )


def _other_forms(text: str, pair: Pair, tag: str) -> Iterator[Repair]:
    """Tags that are written in another form than requested."""
    for (begin, end), wanted in (((pair[:2]), f"<{tag}>"), (pair[2:], f"</{tag}>")):
        if text[begin:end] != wanted:
            yield Repair("tag-form", Risk.LOSSLESS, "$", (begin, end), text[begin:end][:80], wanted)


def _judged(contract: TaggedContract[T], text: str, raw: str, value: object, repairs: tuple[Repair, ...]) -> Reading[T]:
    verdict = contract.validate(value)
    if isinstance(verdict, Invalid):
        return Rejected(Reason.INVALID, verdict.issues, text, raw)
    if verdict.conversions and contract.strict:
        return Rejected(Reason.INVALID, verdict.conversions, text, raw)
    return Accepted(verdict.value, Trust.of(repairs), "first", repairs, text)


def _moved(outcome: Reading[T], text: str, raw: str, by: int, repairs: tuple[Repair, ...]) -> Reading[T]:
    """The outcome of a payload with spans that count from the beginning of the reply."""
    if not isinstance(outcome, Accepted):
        return Rejected(outcome.reason, outcome.issues, text, raw, outcome.draft, outcome.seen)
    inside = [
        Repair(r.code, r.risk, r.path, (r.span[0] + by, r.span[1] + by), r.before, r.after) for r in outcome.repairs
    ]
    every = (*repairs, *inside)
    return Accepted(outcome.value, Trust.of(every), outcome.origin, every, text)


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
        """The block as the fields of a `Block`."""
        return self._preview

    @property
    def waits_at(self) -> int:
        """Where the part that may still change begins."""
        return self._marks.seen if self._following is None else self._following.waits_at()

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
        self._following.let_go()

    def _parse_on(self, text: str, following: Following) -> None:
        parser, self._preview = following.parser, following.preview
        parsed = following.read_on(text)
        if isinstance(parsed, Failure) or any(edit.risk > Risk.LOSSLESS for edit in parser.edits):
            self._over, self._preview = True, None
            return
        self._preview.follow(parser)
        self._over = parsed is not None
        if parsed is not None:  # until then another object could be the first that is JSON
            self._preview.rules = Rules(typed=False, exact=True)
            complete = all(parsed.plain.get(key) is not None for key in self.contract.keys)
            self._preview.finish(self._preview.whole if complete else NOTHING)


_TOOL_CALL: Final = expression(r"<(tool_call|tool_use|function_call)>.*?(?:</\1>|\Z)", re.S)


def read_block(text: str, contract: BlockContract, *, truncated: bool | None = None) -> Reading[Block]:
    """The leading JSON object with all required keys, and the prose after it. Reasoning is skipped.

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
    """Why the prose of a reply is incomplete: the token limit cut it off, or it repeats itself to the end.

    Prose has no recognizable end, as objects have. `path` is its place in the value.
    """
    if truncated is True:
        return Issue(path, "truncated", "the reply was cut off before its text ended")
    return replace(lost, path=path) if (lost := ran_away(text)) else None


def _block_in(text: str, contract: BlockContract) -> Reading[Block]:
    if not contract.keys:
        return Accepted(Block({}, text), Trust.CLEAN, "first", (), text)
    # A tool call is not an answer.
    masked = _TOOL_CALL.sub(lambda call: " " * len(call[0]), mask_reasoning(text, unopened=True))
    first = next(values_in(masked), None)
    repaired = _repaired_block(masked, contract, len(text) if first is None else first[1])
    if repaired is not None:
        fields, node, edits = repaired
        repairs = RepairLog(edits, text, lambda: (node, ()))
        return _with_prose(fields, text, (node.start, node.end), repairs)
    if first is None:
        return Rejected(Reason.NO_JSON, (Issue("$", "missing_block", "there is no JSON object in it"),), text)
    value, start, end = first
    if not is_dict(value):
        words = "the first JSON value is not an object"
        return Rejected(Reason.INVALID, (Issue("$", "type", words),), text, text[start:end])
    strict = _strictly(text[start:end])
    if isinstance(strict, _NotJson):
        return Rejected(strict.reason, (Issue("$", strict.code, f"the block {strict.why}"),), text, text[start:end])
    issues = tuple(
        Issue(
            f"$.{key}", "missing" if key not in value else "null", f"the key {key!r} must be present and have a value"
        )
        for key in contract.keys
        if value.get(key) is None
    )
    if issues:
        return Rejected(Reason.INVALID, issues, text, text[start:end])
    return _with_prose(value, text, (start, end), ())


def _repaired_block(text: str, contract: BlockContract, before: int) -> tuple[dict[str, Any], Node, list[Edit]] | None:
    """The block, if it begins before `before` and needs only trivial repairs: a trailing comma, other quotes."""
    start = text.find("{", 0, before)
    if start < 0:
        return None
    parsed = Parser(text, start).parse()
    if isinstance(parsed, Failure) or parsed.cut or worst(parsed.edits) is not Risk.LOSSLESS:
        return None
    fields: dict[str, Any] = plain(parsed.node)
    whole = all(fields.get(key) is not None for key in contract.keys) and not _has_twice(parsed.node)
    return (fields, parsed.node, parsed.edits) if whole and _is_text(fields) else None


def _has_twice(node: Node) -> bool:
    """Whether a key occurs twice in one object of a tree."""
    if node.kind == OBJECT:
        names = {member.key for member in node.value}
        return len(names) < len(node.value) or any(_has_twice(member.node) for member in node.value)
    return node.kind == ARRAY and any(_has_twice(item) for item in node.value)


def _is_text(value: Any) -> bool:
    """Whether it can be serialized as JSON, with only complete characters."""
    try:
        return not SURROGATE.search(json.dumps(value, ensure_ascii=False, allow_nan=False))
    except ValueError:
        return False


def _with_prose(fields: dict[str, Any], text: str, at: tuple[int, int], repairs: Sequence[Repair]) -> Accepted[Block]:
    """The block at this position, and the prose around it without reasoning and tool calls."""
    around = text[: at[0]], text[at[1] :]
    said = [_said(part) for part in around]
    aside = [
        Repair("reasoning", Risk.LOSSLESS, "$", span, text[slice(*span)][:80], part.strip()[:80])
        for span, part in zip(((0, at[0]), (at[1], len(text))), said, strict=True)
        if part != text[slice(*span)]
    ]
    whole = (*repairs, *aside) if aside else repairs
    return Accepted(Block(fields, _prose(*said)), Trust.of(whole), "first", whole, text)


def prose_of(text: str) -> str:
    """The prose of a reply without a block, without reasoning and tool calls."""
    return _said(text).strip()


def _said(part: str) -> str:
    return _TOOL_CALL.sub("", without_reasoning(part))


def _prose(before: str, behind: str) -> str:
    """The text around the block, without a fence around the block."""
    before, behind = before.strip("\ufeff \t\r\n"), behind.strip()
    opened = _FENCE_BEFORE.search(before)
    if opened and (behind.startswith("```") or "```" not in behind):
        before, behind = before[: opened.start()].strip(), behind.removeprefix("```").strip()
    return "\n\n".join(part for part in (before, behind) if part)


def values_in(text: str) -> Iterator[tuple[Any, int, int]]:
    """The JSON objects and lists of a text, in order, with their positions."""
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


def judged(outcome: Reading[T], checks: Sequence[Check]) -> Reading[T]:
    """Apply checks to an outcome: their issues reject the value, and what they clean becomes repairs."""
    if not checks or not isinstance(outcome, Accepted) or is_settled(outcome):
        return outcome
    return with_judgement(outcome, judge(outcome.value, checks))


async def judged_awaiting(outcome: Outcome[T], checks: Sequence[Check]) -> Outcome[T]:
    """As `judged`, for checks that may be async."""
    if not checks or not isinstance(outcome, Accepted) or is_settled(outcome):
        return outcome
    return with_judgement(outcome, await judge_awaiting(outcome.value, checks))


def is_settled(outcome: Accepted[Any]) -> bool:
    """Whether checks have already run. A value openly made up because of them need not satisfy them."""
    return outcome.origin == "synthesize"


def with_judgement(outcome: Accepted[T], judgement: Judgement[T]) -> Reading[T]:
    """The outcome after checks reported on its value."""
    value, issues, cleaned = judgement
    if issues:
        return Rejected(Reason.INVALID, issues, outcome.text)
    if not cleaned:
        return outcome
    trust = outcome.trust if outcome.trust is Trust.SYNTHESIZED else Trust.LOSSY
    return replace(outcome, value=value, trust=trust, repairs=(*outcome.repairs, *cleaned))
