"""One possible answer in a reply, read in the cheapest unambiguous way and checked against the contract.

Valid JSON goes straight to the validator. If only scalars have to be converted, only these are coerced. Two fast paths
handle common damage. Both leave validation to the C parser, and anything doubtful to the parser.

`rewrite` repairs unambiguous damage everywhere at once. Most damaged replies are Python or JavaScript literals: single
quotes, bare keys, `True`, trailing commas and comments. The text is split at its quotation marks, and between the
strings each kind of damage is repaired in one call, so that no Python code runs for a single token.

`iter_splices` repairs a reply only where it is damaged. The C scanner finds the first character that is not JSON. A
second C parser (jiter, which can read truncated text) reads the text before it and returns the containers that are open
there. The tolerant parser starts in these one item before the damage and stops at the first item after it. The items
that it read replace the damage, written as JSON, and the C scanner continues from there. So one defect costs the same
in every reply, apart from the C parsers, which take about 10 µs for 2 KB.

The result is valid JSON, which must satisfy the contract strictly. Nothing is accepted here that the tolerant parser
would read differently (a property test compares them).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from operator import attrgetter
from typing import Any, Final, Generic, NamedTuple, TypeVar, cast

import jiter
from pydantic_core import to_json

from flujo_aros.contract import (
    UNDECLARED,
    UNKNOWN_TAG,
    Contract,
    Invalid,
    SchemaValues,
    Shape,
    TypeValues,
    Valid,
    Verdict,
    fold,
    parse_json,
    path_of,
)
from flujo_aros.json_data import (
    SUSPECT_ESCAPE,
    SUSPECTS,
    is_dict,
    is_list,
    may_mean_backslash,
    parts,
    place_of,
    value_at,
)
from flujo_aros.outcome import Draft, Issue, Reason, Repair, Risk
from flujo_aros.reading.coerce import BRACKETS, Coercion, risk_of
from flujo_aros.reading.fit import (
    CONVERTS,
    OTHER_KEYS,
    OTHER_SCALARS,
    Misfit,
    fit,
    is_call_or_envelope,
    is_schema,
    values_in,
)
from flujo_aros.reading.grammar import expression
from flujo_aros.reading.node import (
    ARRAY,
    CLEANED,
    LIST_CODES,
    LITERAL,
    OBJECT,
    Edit,
    JsonExtent,
    Member,
    Node,
    Path,
    find_nodes,
    has_long_number,
    json_extent,
    lists_in,
    nodes_along,
    plain,
    steps_of,
    steps_to,
    unlink,
    worst,
)
from flujo_aros.reading.omissions import (
    MAY_HOLD_OMISSION,
    MAY_LACK_TEXT,
    comment_omits,
    has_lost_text,
    is_shortened,
    omitted_in,
)
from flujo_aros.reading.parser import Failure, Frame, Parsed, Parser
from flujo_aros.reading.partial import NOTHING, JsonPreview, as_json
from flujo_aros.reading.phrases import Phrases, word_set
from flujo_aros.reading.remarks import comment_corrects
from flujo_aros.reading.runaway import LEAST_EQUAL, REPETITION, may_repeat_item, repeats_item
from flujo_aros.reading.scalars import (
    Hints,
    contradicts_currency,
    name_words,
    placeholder_in,
    read_amount,
)

T = TypeVar("T")

UNREADABLE: Final = (Reason.MALFORMED, Reason.TRUNCATED, Reason.TOO_LARGE)
_MARKS: Final = expression(r'\\.|["{}\[\]]|```', re.S)
_BEGINS: Final = expression(r"[{\[]|```")
ESCAPED: Final = expression(
    r"[{\[](?:[\s{\[]|\\[nrt])*\\[\"']|[{\[](?=[^&]{0,510}+&)(?:[^&]{0,500}[:\[,{])?\s*&(?:quot|#34|#x22);"
)
"""The whole value is escaped (`{\"a\": 1}`) or written with HTML entities."""
ESCAPED_WITHIN: Final = 600
"""How many characters of a value to check for this."""

# Text that may make valid JSON doubtful. One pass of an automaton rules it out in most replies. A single automaton for
# omissions and placeholders would cost up to six times as much: the engine searches fast for a few literals that do
# not all begin with the same character. So dots, which may mean either, are only among the placeholders.
_MAY_BE_SLOT: Final = Phrases(
    r"\"(?:[<\[{(（【]|\$\{|(?:YOUR|INSERT|ENTER)_|[Ii]nsert |[Ee]nter |[Yy]our |string\"|[Ll]orem |(?:HH|hh):|XX"
    r"|○○|〇〇|××|某某|(?:YYYY|yyyy|JJJJ|AAAA|RRRR|ГГГГ|DD|dd|TT|JJ|GG|ДД|дд)[-/.]|此处|在此|请在此|ここに|여기에)",
    r"(?:\.\.\.|…| (?:goes here|hier|ici|aqui|aquí)|XX)\)?\"",
    cased=True,
)
_BRACKETED: Final = expression(r"[\"'][\[(<{（【]")
_IN_STRING, _IN_FORMULA = (Phrases(each, cased=True) for each in SUSPECTS)
CODE_OF: Final = attrgetter("code")


@dataclass(slots=True, eq=False)
class Region:
    """The extent of an unreadable value: reading continues after it, never inside it."""

    seen: int
    least: int
    fenced: bool
    depth: int = 0
    quote: bool = False

    def end(self, text: str) -> int | None:
        """Return the end: after the last closing bracket or at the fence, or None if neither has arrived."""
        for found in _MARKS.finditer(text, self.seen):
            char = found[0]
            self.seen = found.end()
            if char == "```":
                if self.fenced:
                    return found.start()
            elif char == '"':
                self.quote = not self.quote
            elif not self.quote and char in "{[":
                self.depth += 1
            elif not self.quote and char in "}]":
                self.depth -= 1
                if self.depth <= 0:
                    return max(self.seen, self.least)
        self.seen = max(self.seen, len(text) - 2)
        return None


@dataclass(slots=True, eq=False)
class Following:
    """A candidate of a streamed reply: its parser, its preview, and the reasons that may still rule it out."""

    parser: Parser
    preview: JsonPreview
    quoted: bool
    """Whether a quotation mark precedes it: only its end shows whether it is a quotation."""
    value: object = NOTHING
    """The JSON of its value, once known."""
    region: Region | None = None
    """Its end, if it cannot be read."""
    begun: bool = False
    """Whether more than its opening bracket has been read."""
    _escaped: bool = False
    _escaped_to: int = 0
    """Whether all of it looks escaped, and how much of it has been checked for that."""
    _string: int = -1
    _looked_to: int = 0
    _lines: bool = False
    _begins: bool = False
    """The open string that is searched for line breaks, and after these for the start of another answer."""

    def pending_start(self) -> int:
        """Return the start of the part that may still change."""
        opened = self.parser.opened
        return opened.start if opened is not None else self.parser.certain[0]

    def continue_reading(self, text: str) -> Parsed | Failure | None:
        """Return the finished candidate, or None if more text is needed."""
        parsed = self.parser.resume(text)
        if not self.begun:
            stack = self.parser.stack
            self.begun = len(stack) != 1 or bool(text[stack[0].start + 1 :].strip())
        return parsed

    def may_be_escaped(self, text: str, start: int) -> bool:
        """Return whether the whole value looks escaped, which only its end can confirm."""
        if self._escaped_to < ESCAPED_WITHIN:
            self._escaped, self._escaped_to = ESCAPED.match(text, start) is not None, len(text) - start
        return self._escaped and bool(self.parser.edits)

    def may_be_broken(self, text: str) -> bool:
        """Return whether another answer could begin in the text that the parser is holding back."""
        opened = self.parser.opened
        if opened is None:
            return _BEGINS.search(text, self.parser.certain[0]) is not None
        if opened.at < len(text):
            return _BEGINS.search(text, opened.at) is not None
        if opened.start != self._string:
            self._string = self._looked_to = opened.start
            self._lines = self._begins = False
        if not self._lines:
            line = text.find("\n", self._looked_to)
            self._lines, self._looked_to = line >= 0, len(text) if line < 0 else line
        if self._lines and not self._begins:
            self._begins = _BEGINS.search(text, self._looked_to) is not None
            self._looked_to = max(self._looked_to, len(text) - 3)
        return self._lines and self._begins

    def release_text(self) -> None:
        """Release the text before it grows."""
        self.parser.text = self.parser.source.text = self.preview.text = ""


@dataclass(slots=True)
class Candidate(Generic[T]):
    """A part of the text, the value read from it, and the reason if it was rejected."""

    start: int
    end: int
    rank: int
    valid: Valid[T] | None = None
    edits: list[Edit] = field(default_factory=list[Edit])
    node: Node | None = None
    names: dict[int, str] = field(default_factory=dict[int, str])
    reason: Reason | None = None
    issues: tuple[Issue, ...] = ()
    cut: bool = False
    draft: Draft | None = None
    rewritten: Risk | None = None
    """The highest risk among the edits, if the fast path read it; its nodes and edits are then not built yet."""
    following: Following | None = None
    """The parser state while the text streams in."""
    replaces: bool = False
    """Whether the words before it say that it replaces the previous answer."""
    compared: bool = False
    """Whether the words before it say that it is only shown for comparison with the previous answer."""

    @property
    def has_repaired_brackets(self) -> bool:
        """Whether brackets had to be added, changed or removed to read the candidate."""
        return not BRACKETS.isdisjoint(map(CODE_OF, self.edits))

    @property
    def fits(self) -> bool:
        """Whether it satisfies the contract within the risk allowed."""
        return self.valid is not None and self.reason is None

    def mark_rejected(self, reason: Reason, *issues: Issue) -> Candidate[T]:
        """Mark the candidate as rejected."""
        self.reason, self.issues = reason, issues
        return self

    def fresh_copy(self) -> Candidate[T]:
        """Return a new, unread candidate at the same location."""
        fresh: Candidate[T] = Candidate(self.start, self.start + 1, self.rank, following=self.following)
        fresh.replaces, fresh.compared = self.replaces, self.compared
        return fresh

    def words(self) -> str:
        """Return the reason for its rejection, in one line."""
        why = self.reason.value if self.reason else "fits"
        first = f", {self.issues[0].path}: {self.issues[0].message}" if self.issues else ""
        return f"at {self.start}-{self.end}: {why}{first}"


def read_strict(text: str, contract: Contract[T]) -> Valid[T] | None:
    """Return the value if the text is JSON that satisfies the contract unchanged and triggers no guard, else None.
    Never raises.
    """
    verdict = judge_json(text, contract)
    return verdict if isinstance(verdict, Valid) else None


def judge_json(text: str, contract: Contract[T]) -> Verdict[T] | None:
    """Like `read_strict`, but `Invalid` for JSON that does not satisfy the contract, and None if a guard triggers."""
    values, shape = contract.values, contract.values.shape
    if shape.has_only_aliases:
        return None
    valid = values.strict_json(text)
    if not isinstance(valid, Valid):
        return valid
    suspect = "\\" in text and (_IN_STRING.may_match(text) or ("$" in text and _IN_FORMULA.may_match(text)))
    if suspect and SUSPECT_ESCAPE.search(text):
        return None
    value: Any = valid[0]
    kind: type = value.__class__
    # No model is built from a schema frame, and a frame has keys that the contract does not declare.
    may_frame = kind is list or (kind is dict and not (value and value.keys() <= shape.keys.keys()))
    if may_frame and (is_call_or_envelope(value, shape) or _echoes(value, contract)):
        return None
    may_be_slot = _MAY_BE_SLOT.may_match(text)
    if shape.may_elide and (may_be_slot or MAY_HOLD_OMISSION.may_match(text)) and omitted_in(parse_json(text)):
        return None
    if may_be_slot and placeholder_in(text, shape.named):
        return None
    if _may_be_spoilt(text, shape) and _find_spoilt(parse_json(text), shape) is not None:
        return None
    return None if shape.has_aliases and _uses_alias(value, shape) else valid


def _may_be_spoilt(text: str, shape: Shape) -> bool:
    may_echo = shape.has_sentence is not None and shape.has_sentence(text)
    may_repeat = text.count(",") >= LEAST_EQUAL - 1
    return may_echo or MAY_LACK_TEXT.may_match(text) or (may_repeat and may_repeat_item(text))


def _find_spoilt(value: object, shape: Shape) -> tuple[Reason, Issue] | None:
    """Return the reason and the issue for a string or a list that is not what its field asks for: it lacks a part of
    its text, only repeats the description of the field, or repeats the same item to its end.
    """
    for place, part in parts(value):
        if part.__class__ not in (str, list):
            continue
        above = here = shape
        for step in place:
            above, here = here, here.element(step) if isinstance(step, int) else here.member(step)
        names = name_words(next((step for step in reversed(place) if isinstance(step, str)), ""))
        if is_list(part):
            if repeats_item(part, here.element(0), names):
                words = f"the last items are equal: {str(part[-1])[:60]!r}"
                return Reason.INVALID, Issue(path_of(place), REPETITION, words)
        elif place and not (here.choices is not None and part in here.choices):
            described = here.sentences | above.sentences if isinstance(place[-1], int) else here.sentences
            if (found := _find_spoilt_text(str(part), names, described)) is not None:
                reason, code, words = found
                return reason, Issue(path_of(place), code, words)
    return None


def _find_spoilt_text(text: str, names: list[str], described: frozenset[str]) -> tuple[Reason, str, str] | None:
    """Return the reason, the code and the message for a string that is not what its field asks for."""
    if described and fold(text) in described:
        return Reason.ECHOED_SCHEMA, "echo", "it repeats the description of the field"
    if has_lost_text(text, names):
        return Reason.INVALID, "lost_text", f"some of the text was lost: {text[:40]!r}"
    if "<!--" in text and _COMMENT_IN_TEXT.match(text) and _MARKUP.isdisjoint(names):
        return Reason.AMBIGUOUS, "ambiguous", "there is a comment inside the string"
    if is_shortened(text, names):
        return Reason.AMBIGUOUS, "elided", f"{text[-40:]!r} only stands for a longer text"
    return None


_COMMENT_IN_TEXT: Final = expression(r"[^<>\n]{1,200}<!--[^<>\n]{1,200}-->[^<>\n]{0,200}\Z")
"""A line of text with a comment of HTML, and no tags."""
_MARKUP: Final = word_set("html markup markdown md code content body template source")


def _echoes(value: object, contract: Contract[Any]) -> bool:
    """Return whether an object looks like a schema, or like data wrapped in a schema."""
    if is_list(value) and len(value) == 1:
        return is_dict(value[0]) and "properties" not in contract.shape.element(0).keys and "properties" in value[0]
    if not is_dict(value) or contract.shape.anything or "properties" in contract.shape.keys:
        return False
    return isinstance(value.get("properties"), dict) or value == contract.json_schema


def _uses_alias(value: object, shape: Shape) -> bool:
    """Return whether a key is an alias of another one in an object that allows any keys."""
    return any(
        is_dict(here) and any(known.keys.get(key, key) != key for key in here) for here, known in shape.walk(value)
    )


def judge(
    candidate: Candidate[T], parsed: Parsed | Failure, text: str, contract: Contract[T], ceiling: Risk
) -> Candidate[T]:
    """Coerce and validate the parsed value and store the result in the candidate."""
    if isinstance(parsed, Failure):
        candidate.end = max(parsed.at, candidate.start + 1)
        candidate.cut = parsed.reason is Reason.TRUNCATED
        issue = Issue("$", parsed.code, f"{parsed.message} (at character {parsed.at})", parsed.at)
        return candidate.mark_rejected(parsed.reason, issue)
    candidate.node, candidate.edits, candidate.cut = parsed.node, list(parsed.edits), parsed.cut
    candidate.end = parsed.end
    written = text[candidate.start : parsed.end]
    if _may_omit(written) and omitted_in(plain(parsed.node)):
        words = "an item or a key only stands for others: something was left out"
        return candidate.mark_rejected(Reason.AMBIGUOUS, Issue("$", "elided", words))
    if (slot := placeholder_in(written, contract.shape.named)) is not None:
        words = f"{slot!r} is a placeholder for a value"
        return candidate.mark_rejected(Reason.ECHOED_SCHEMA, Issue("$", "placeholder", words))
    if (split := _find_split_text(parsed, text)) is not None:
        return candidate.mark_rejected(Reason.AMBIGUOUS, split)
    if _is_echo(parsed.node, contract.shape):
        issue = Issue("$", "echo", "it is the schema, not an answer to it")
        return candidate.mark_rejected(Reason.ECHOED_SCHEMA, issue)
    counts, drops = contract.counts, not isinstance(contract.values, SchemaValues)
    coercion = Coercion(text, ceiling=ceiling, repaired=parsed.edits, counts=counts, drops=drops)
    value = coercion.value(parsed.node, contract.shape, None)
    candidate.edits += coercion.edits
    candidate.names = coercion.names
    candidate.draft = Draft(value, (candidate.start, candidate.end))
    over = _edits_above_ceiling(candidate, contract.shape, ceiling)
    if contract.counts is not None:
        over = [edit for edit in over if edit.code != CLEANED]
    if any(edit.code == "truncated" for edit in over):
        issue = Issue("$", "truncated", f"the text is cut off at character {candidate.end}")
        return candidate.mark_rejected(Reason.TRUNCATED, issue)
    if coercion.issues:
        unsure = any(issue.code in ("duplicate_key", "ambiguous") for issue in coercion.issues)
        reason = Reason.AMBIGUOUS if unsure else Reason.INVALID
        others = _issues_elsewhere(value, coercion.issues, candidate, text, contract)
        others = [issue for issue in others if not _is_of_another_member(issue, coercion.members)]
        unions = tuple(issue.path.rpartition(".")[0] for issue in others if issue.code == UNKNOWN_TAG)
        # Coercion names what the first member of such a union lacks, but none of its members is meant.
        own = [issue for issue in coercion.issues if not (unions and issue.path.startswith(unions))]
        return candidate.mark_rejected(reason, *own, *others)
    if over:
        return reject_above_ceiling(candidate, over)
    may_be_spoilt = written[:1] not in ("{", "[") or _may_be_spoilt(written.replace("'", '"'), contract.shape)
    if may_be_spoilt and (spoilt := _find_spoilt(value, contract.shape)) is not None:
        return candidate.mark_rejected(*spoilt)
    _validate(candidate, value, text, contract, ceiling)
    if candidate.valid is not None and (other := _find_currency_conflict(candidate, text)) is not None:
        candidate.valid = None
        return candidate.mark_rejected(Reason.AMBIGUOUS, other)
    return candidate


def _may_omit(text: str) -> bool:
    """Return whether JSON with any quotes may have an item that stands for others."""
    return MAY_HOLD_OMISSION.may_match(text.replace("'", '"')) or _BRACKETED.search(text) is not None


def read_scalars(candidate: Candidate[T], text: str, contract: Contract[T], ceiling: Risk) -> bool:
    """Read valid JSON in which only scalars have to be converted, such as `"28.5"` where a number is expected.

    Only these are located and coerced; everything else stays as the C parser read it. Returns False for anything that
    needs more or is doubtful, which is left to the parser and a full coercion.
    """
    start, end, shape = candidate.start, candidate.end, contract.shape
    json = text[start:end]
    simple = json[0] == "{" and shape.properties and contract.counts is None
    if not simple or shape.has_risks or shape.has_only_aliases:
        return False
    value = parse_json(json)
    if not is_dict(value) or has_long_number(json, 0, len(json)) or (_may_omit(json) and omitted_in(value)):
        return False
    if _MAY_BE_SLOT.may_match(json) and placeholder_in(json, shape.named) is not None:
        return False
    if _may_be_spoilt(json, shape) and _find_spoilt(value, shape) is not None:
        return False
    if "\\" in json and (SUSPECT_ESCAPE.search(json) or may_mean_backslash(json, 0, len(json))):
        return False
    misfits: list[Misfit] = []
    if is_call_or_envelope(value, shape) or fit(value, shape, misfits=misfits) != OTHER_SCALARS:
        return False
    coercion = Coercion(text, ceiling=ceiling, drops=not isinstance(contract.values, SchemaValues))
    nodes = find_nodes(text, start, value, [unlink(misfit.path) for misfit in misfits])
    for misfit, node in zip(misfits, nodes, strict=True):
        misfit.holder[misfit.key] = coercion.value(node, misfit.shape, misfit.path)
    # These also depend on the values next to them.
    listed = any(edit.code in LIST_CODES or edit.code == "currency" for edit in coercion.edits)
    if coercion.issues or listed or (worst(coercion.edits) or Risk.LOSSLESS) > ceiling:
        return False
    verdict = contract.validate(value)
    if isinstance(verdict, Invalid) or verdict.conversions:
        return False
    candidate.edits, candidate.valid = coercion.edits, verdict
    candidate.draft = Draft(value, (start, end))
    return True


def accept_spliced(found: Spliced, contract: Contract[T], ceiling: Risk) -> Valid[T] | None:
    """Return the value after local repairs, or None if coercion would change any of it."""
    codes = {edit.code for edit in found.edits}
    if "unquoted-value" in codes or (worst(found.edits) or Risk.LOSSLESS) > ceiling:
        return None
    values = contract.values
    if codes & BRACKETS and values.shape.may_mix:
        return None  # a repaired bracket may belong elsewhere
    valid = read_strict(found.json, contract)
    if valid is None or (isinstance(values, TypeValues) and not (values.is_open or values.shape.has_aliases)):
        return valid
    # coercion may rename undeclared keys
    return None if fit(parse_json(found.json), values.shape) & (OTHER_KEYS | CONVERTS) else valid


def _find_split_text(parsed: Parsed, text: str) -> Issue | None:
    """Return the issue for unquoted text that may have been split in two: at a comma on a line of a list, or by a
    comment.
    """
    bare = [edit for edit in parsed.edits if edit.code == "unquoted-value"]
    if not bare:
        return None
    for one, two in pairwise(bare):
        gap = text[one.end : two.start]
        if gap.strip() == "," and "\n" not in gap and _has_one_item_per_line(text, one.start, two.end):
            both = text[one.start : two.end][:60]
            words = f"without quotes, the comma in {both!r} may or may not separate two strings"
            return Issue("$", "unsure-quotes", words)
    ends = {edit.end for edit in bare}
    for edit in parsed.edits:
        before = text[: edit.start].rstrip(" \t") if edit.code == "comment" else ""
        if before and len(before) in ends and text[edit.start : edit.end].rstrip()[-1:] in (",", '"'):
            return Issue("$", "unsure-quotes", "a string without quotes continues in what looks like a comment")
    return None


def _has_one_item_per_line(text: str, start: int, end: int) -> bool:
    """Return whether each item of the enclosing list is on its own line."""
    line = text[text.rfind("\n", 0, start) + 1 : start]
    return "\n" in text[:start] and not line.strip() and text[end:].lstrip(" \t,")[:1] in ("\n", "\r", "")


_OF_A_KEY: Final = {"required": "missing", "additionalProperties": "extra_key"}
"""Missing keys: the validator reports them at the object, and our own issues at the key."""


def _issues_elsewhere(
    value: Any, known: list[Issue], candidate: Candidate[Any], text: str, contract: Contract[Any]
) -> list[Issue]:
    """Return the validator's errors at other locations, so that one retry can correct all of them."""
    verdict = contract.validate(value)
    if isinstance(verdict, Invalid) and _normalize_decimals(value, verdict.issues, candidate, text):
        verdict = contract.validate(value)  # amounts that could be read must not be corrected
    paths = {issue.path for issue in known}
    keys = {(issue.code, issue.path[: issue.path.rfind("[" if issue.path.endswith("]") else ".")]) for issue in known}
    found = verdict.issues if isinstance(verdict, Invalid) else ()
    other = [issue for issue in found if issue.path not in paths or issue.code == UNKNOWN_TAG]
    return [issue for issue in other if (_OF_A_KEY.get(issue.code), issue.path) not in keys]


def _is_of_another_member(issue: Issue, members: list[tuple[Path, Shape]]) -> bool:
    """Return whether an issue of a union is about a field that the nearest member does not have."""
    for path, member in members:
        rest = issue.path.removeprefix(path_of(unlink(path)))
        field = rest[1:].partition(".")[0].partition("[")[0]
        if rest != issue.path and rest.startswith(".") and member.properties and field not in member.properties:
            return issue.code != UNKNOWN_TAG
    return False


def _is_echo(node: Node, shape: Shape) -> bool:
    if node.kind == ARRAY and len(node.value) == 1:
        return _is_echo(node.value[0], shape.element(0))
    if node.kind != OBJECT or shape.anything or "properties" in shape.keys or not is_schema(node):
        return False
    written = {member.key for member in node.value}
    if values_in(node) is not None:
        return False
    return "properties" in written or not written & shape.keys.keys()


def _edits_above_ceiling(candidate: Candidate[T], shape: Shape, ceiling: Risk) -> list[Edit]:
    """Return the edits that exceed the risk allowed at their location (`x-aros: {risk: …}`), or overall."""
    if not shape.has_risks:
        return [edit for edit in candidate.edits if edit.risk > ceiling]
    over: list[Edit] = []
    lists = lists_in(candidate.edits)
    for edit in candidate.edits:
        allowed, here = ceiling, shape
        for step in steps_of(edit, candidate.node, candidate.names, lists):
            here = here.element(step) if isinstance(step, int) else here.member(step)
            allowed = risk_of(here, allowed)
        if edit.risk > allowed:
            over.append(edit)
    return over


def reject_above_ceiling(candidate: Candidate[T], over: Sequence[Edit]) -> Candidate[T]:
    """Reject a candidate whose edits exceed the allowed risk."""
    return candidate.mark_rejected(Reason.MALFORMED, risk_issue(over))


def risk_issue(over: Sequence[Edit | Repair]) -> Issue:
    """Return the issue for edits that exceed the allowed risk."""
    words = ", ".join(sorted({edit.code for edit in over}))
    return Issue("$", "risk", f"reading it requires repairs above the allowed risk: {words}")


def _validate(candidate: Candidate[T], value: Any, text: str, contract: Contract[T], ceiling: Risk) -> None:
    verdict = contract.validate(value)
    edits = _normalize_decimals(value, verdict.issues, candidate, text) if isinstance(verdict, Invalid) else []
    if edits:
        candidate.edits += edits
        verdict = contract.validate(value)
    if isinstance(verdict, Invalid):
        twice = any(issue.code == "duplicate_key" for issue in verdict.issues)
        candidate.mark_rejected(Reason.AMBIGUOUS if twice else Reason.INVALID, *verdict.issues)
        return
    for bent in verdict.conversions:
        code = "ignored_key" if bent.code in UNDECLARED else "lax-conversion"
        after = "" if code == "ignored_key" else bent.message
        candidate.edits.append(Edit(code, Risk.INFERRED, candidate.start, candidate.end, after, bent.path))
    late = len(edits) + len(verdict.conversions)
    if late and ceiling < Risk.INFERRED:
        reject_above_ceiling(candidate, candidate.edits[-late:])
    else:
        candidate.valid = verdict


def _find_currency_conflict(candidate: Candidate[Any], text: str) -> Issue | None:
    """Return the issue for an amount in a currency that the value does not state: `"€12.50"` next to `"currency":
    "USD"`, or next to null.
    """
    paid = [edit for edit in candidate.edits if edit.code == "currency"]
    value = as_json(candidate.valid.value, None) if paid and candidate.valid is not None else None
    lists = lists_in(candidate.edits)
    for edit in paid:
        of_text = place_of(edit.path) if isinstance(edit.path, str) else None
        place = of_text or steps_of(edit, candidate.node, candidate.names, lists)
        for depth in range(len(place)):
            here = value_at(value, place[:depth])
            for key, said in here.items() if is_dict(here) else ():
                if key != place[depth] and contradicts_currency(text[edit.start : edit.end], key, said):
                    words = f"the amount {text[edit.start : edit.end][:40]} is not in the currency that {key!r} states"
                    return Issue(path_of(place), "ambiguous", words)
    return None


def _normalize_decimals(value: Any, issues: Sequence[Issue], candidate: Candidate[Any], text: str) -> list[Edit]:
    """Rewrite strings that `Decimal` cannot parse as plain digits, if each of them is one amount.

    The schema of a `Decimal` accepts any string, so only the validator knows that a number is expected.
    """
    wanted = {issue.path for issue in issues if issue.code == "decimal_parsing"}
    edits: list[Edit] = []
    lists = lists_in(candidate.edits)
    for place, part in parts(value) if wanted else ():
        if not place or not isinstance(part, str) or path_of(place) not in wanted:
            continue
        names = next((tuple(name_words(step)) for step in reversed(place) if isinstance(step, str)), ())
        if (amount := read_amount(part, Hints(names))) is not None:
            value_at(value, place[:-1])[place[-1]] = amount.digits
            codes = amount.codes or ("string-to-number",)
            along = nodes_along(candidate.node, place, candidate.names, lists)
            found = along[-1][1] if len(along) == len(place) else None
            start, end = (found.start, found.end) if found is not None else _span_of(part, candidate, text)
            edits += [Edit(code, Risk.INFERRED, start, end, amount.digits, path_of(place)) for code in codes]
    return edits


def _span_of(part: str, candidate: Candidate[Any], text: str) -> tuple[int, int]:
    """Return the span of a string that repairs have moved, or that of the candidate if it was written differently."""
    at = text.find(part, candidate.start, candidate.end)
    return (at, at + len(part)) if at >= 0 else (candidate.start, candidate.end)


# --- the fast paths ---------------------------------------------------------------------------------------------------

# Control characters replace the strings while the rest is repaired, so text that contains any is not read here.
_DOUBLE: Final = "\x00"
_SINGLE: Final = "\x01"
_ESCAPED: Final = "\x02"  # an escaped quotation mark
_UNSURE: Final = expression(rf"[\\{_ESCAPED}{{}}\[\]:=]|'|\"\s*,|,\s*\"")
"""In a single-quoted string that contains double quotes: escapes, and text that could be JSON."""
_COMMENT: Final = expression(r"(/(?:/[^\n]*+|\*[^*]{0,2000}\*/)(?:[ \t\r\n]*+:)?)")
# Plain sets of ASCII characters are much quicker than classes such as `\w`; other letters are left to the parser.
_BARE: Final = expression(r"([A-Za-z_$][A-Za-z0-9_$-]{0,60}+)(?=[ \t\r\n]*+:)")
_GAP: Final = expression(
    r"[ \t\r\n](?<=[A-Za-z0-9_\"}\]\x00\x01][ \t\r\n])[ \t\r\n]*+(?=(?:[\x00\x01]|\"[^\"\n]*+\")[ \t\r\n]*+:)"
)
_ODD_KEY: Final = expression(r"[\x02\\:]|.{121}")
"""A word before a key without a comma between them, which makes the key doubtful."""
_MAY_GAP: Final = Phrases(r"[A-Za-z0-9_\"}\]\x00\x01][ \t\r\n]+(?:[\x00\x01]|\"[^\"\n]+\")[ \t\r\n]*:", cased=True)
"""The same as `_GAP` for an automaton, which finds in a tenth of the time that there is no match."""
_TRAILING: Final = expression(r",(?=[ \t\r\n]*+[}\]])(?<![\[{,\s],)")
_WORDS: Final = tuple(
    (word, expression(rf"{word}(?=[ \t\r\n]*+[,}}\]])"), spelled)
    for word, spelled in (("True", "true"), ("False", "false"), ("None", "null"))
)


def rewrite(text: str) -> tuple[str, Risk] | None:
    """Repair the common damage in the text of one value. Returns it with the highest risk of these repairs, or None if
    it needs anything else.
    """
    if _DOUBLE in text or _SINGLE in text or _ESCAPED in text or ("\\" in text and '\\\\"' in text):
        return None
    double = text.replace('\\"', _ESCAPED).split('"')
    strings = double[1::2]
    single = _DOUBLE.join(double[0::2]).split("'")
    quoted = "'".join(single[1::2])
    if not len(double) % 2 or not len(single) % 2 or _ESCAPED in quoted or "\\" in quoted:
        return None
    if _DOUBLE in quoted:
        taken = _requote_inner_strings(single, strings)
        if taken is None:
            return None
        strings = taken
    plain_text = _SINGLE.join(single[0::2])
    rest = _remove_comments(plain_text) if "/" in plain_text else plain_text
    if rest is None:
        return None
    bare = _BARE.split(rest)
    rest = '"'.join(bare)
    parts = _GAP.split(rest) if _MAY_GAP.may_match(rest) else [rest]
    gaps = len(parts) > 1
    if gaps and any(_ODD_KEY.search(key) for key in _iter_keys_without_comma(parts, strings)):
        return None
    rest = ",".join(parts)
    for word, pattern, spelled in _WORDS:
        rest = pattern.sub(spelled, rest) if word in rest else rest
    rest = _restore_strings(_TRAILING.sub("", rest), _SINGLE, single[1::2])
    rest = _restore_strings(rest, _DOUBLE, strings)
    return rest.replace(_ESCAPED, '\\"'), Risk.INFERRED if gaps or len(bare) > 1 else Risk.LOSSLESS


_PIECE: Final = expression(
    r"""[{}\[\],:]|"[^"\\]*+(?:\\.[^"\\]*+)*"|'[^']*+'|//[^\n]*+|/\*[^*]*+\*/|[^\s{}\[\],:"'/]++""", re.S
)
_SPELLED: Final = {word: spelled for word, _, spelled in _WORDS}


def rewrites(text: str, start: int, end: int) -> list[Edit]:
    """Return the edits of `rewrite` in the text that it repaired, with their paths.

    They are listed on demand, because few callers look at them. Each piece of the text is what it looks like: `rewrite`
    repairs no string whose end is doubtful.
    """
    edits: list[Edit] = []
    outer: list[tuple[bool, Path, int]] = []
    path: Path = None
    item: Path = None
    is_object, index = True, 0  # the container at `path`, and the number of items before this one
    item_end, in_member = -1, True  # the current or last item
    comma: list[Edit] = []  # for the comma after it, if that is the last one
    for found in _PIECE.finditer(text, start, end):
        piece, at = found[0], found.start()
        sign = piece[0]
        place = item if in_member or item_end == at else path
        if sign == ",":
            comma = [Edit("trailing-comma", Risk.LOSSLESS, at, at + 1, "", place)]
        elif sign == "/":
            edits.append(Edit("comment", Risk.LOSSLESS, at, found.end(), "", place))
        elif sign in "}]":
            edits += comma
            item, item_end, comma = path, found.end(), []
            is_object, path, index = outer.pop()
        elif sign != ":":
            is_key = is_object and not in_member
            after = json.loads(piece) if sign == '"' and is_key else piece.strip("'")
            if not in_member:
                item = path, after if is_object else index
                if index and not comma:
                    edits.append(Edit("missing-comma", Risk.INFERRED, at, at, ",", item))
                index, comma = index + 1, []
            if sign == "'":
                edits.append(Edit("quotes", Risk.LOSSLESS, at, found.end(), after, item))
            elif is_key and sign != '"':
                edits.append(Edit("unquoted-key", Risk.INFERRED, at, found.end(), after, item))
            elif piece in _SPELLED:
                edits.append(Edit("foreign-literal", Risk.LOSSLESS, at, found.end(), _SPELLED[piece], item))
            in_member, item_end = is_key, found.end()
            if sign in "{[":
                outer.append((is_object, path, index))
                is_object, path, index, in_member = sign == "{", item, 0, False
    return edits


def _requote_inner_strings(single: list[str], strings: list[str]) -> list[str] | None:
    """Put double-quoted parts of single-quoted strings back into these: `'a "b" c'`.

    Returns the remaining strings, or None if the end of one of them is doubtful.
    """
    left: list[str] = []
    seen = 0
    for at, part in enumerate(single):
        held = part.count(_DOUBLE)
        inside, seen = strings[seen : seen + held], seen + held
        if not at % 2:
            left += inside
        elif held:
            whole = _restore_strings(part, _DOUBLE, inside)
            if _UNSURE.search(whole) is not None:
                return None
            single[at] = whole.replace('"', _ESCAPED)
    return left


def _iter_keys_without_comma(parts: list[str], strings: list[str]) -> Iterator[str]:
    """Yield the double-quoted keys that lack a comma before them."""
    seen = 0
    for before, part in pairwise(parts):
        seen += before.count(_DOUBLE)
        if part.startswith(_DOUBLE):
            yield strings[seen]


def _remove_comments(rest: str) -> str | None:
    """Replace each comment with a space. Returns None if a comment has quotes, refers to the answer, or precedes a
    colon."""
    parts = _COMMENT.split(rest)
    comments = "\n".join((*dict.fromkeys(parts[1::2]), ""))
    if any(sign in comments for sign in (_DOUBLE, _SINGLE, ":", "=")):
        return None
    if comment_omits(comments) or comment_corrects(comments.replace("//", "")):
        return None
    return " ".join(parts[0::2])


def _restore_strings(rest: str, mark: str, strings: list[str]) -> str:
    """Put the strings between quotation marks back in place of their marks."""
    between = rest.split(mark)
    whole = [""] * (len(between) + len(strings))
    whole[0::2] = between
    whole[1::2] = strings
    return '"'.join(whole)


_MOST_PLACES: Final = 3
"""The maximum number of places repaired one by one: each costs another pass of the C parsers over the entire text."""
_NEAR: Final = 400
_RECURS: Final = expression(r",\s*+(?:[}\]]|[A-Za-z_]\w*+\s*+:)|\{\s*+[A-Za-z_]\w*+\s*+:|:\s*+[TFN]")
"""`1,}`, `{key:`, `, key:` or `: True`. Starting each branch with a fixed character halves the time."""
_MOST_NEAR: Final = 4
_STRUCTURE: Final = frozenset("{}[],")
_before = Node(LITERAL, None, 0, 0)
_BEFORE: Final = {OBJECT: Member("", 0, _before), ARRAY: _before}
"""The position of an item before the damage; only its end matters."""
_ESCAPE: Final = expression(r'(:?)\\([^"])')
_COLON: Final = "\\u003a"
"""Text that looks like a drive letter in a path if a backslash follows."""
_CODES: Final = {"\\": "005c", "b": "0008", "f": "000c", "n": "000a", "r": "000d", "t": "0009"}
"""Escapes written by the encoder, each mapped to a code for the same character."""


class Spliced(NamedTuple):
    """Valid JSON that replaces a damaged value, the end of that value in the text, and the edits."""

    json: str
    end: int
    edits: list[Edit]


def iter_splices(text: str, start: int, extent: JsonExtent, shape: Shape, *, ends: bool) -> Iterator[Spliced]:
    """Yield the value at `start`, an opening bracket, with one more damaged place repaired each time.

    `extent` is the part that the C scanner could read, and `ends` means that the text is known to be complete. The
    iterator ends where more than a few local repairs are needed.
    """
    edits: list[Edit] = []
    grown = done = 0  # how much longer the text has become, and the end of the repaired part
    for _ in range(_MOST_PLACES):
        near = text[extent.error : extent.error + _NEAR]
        if max(near.count("'"), near.count("//")) > _MOST_NEAR or len(_RECURS.findall(near)) > 1:
            return  # common damage that recurs this soon is better repaired all at once
        begin, comma, frames = _place(text, start, extent.error, shape)
        cut = comma or begin  # the comma is rewritten too, because it may turn out to be the last
        if not frames or cut < done:
            return
        parser = Parser(text, start, shape, ends=ends)
        before = [len(frame.items) for frame in frames]
        parsed = parser.parse_from(begin, comma, frames, until=extent.error)
        if isinstance(parsed, Failure) or parser.doubtful or parser.cut or not parser.edits:
            return
        head, end = text[:cut] + _items_read(frames, before, parser), parser.pos
        edits += _add_paths(parser, grown)
        if parsed is not None:
            yield Spliced(head[start:], end - grown, edits)
            return
        grown, done = grown + len(head) - end, len(head)
        text = head + text[end:]
        if text[-1] in "}]":  # most values end here, and the validator detects any other end as well as the scanner
            yield Spliced(text[start:], len(text) - grown, edits)
        extent = json_extent(text, start)
        if extent.end is not None:
            if extent.end < len(text):
                yield Spliced(text[start : extent.end], extent.end - grown, edits)
            return


def _place(text: str, start: int, error: int, shape: Shape) -> tuple[int, int, list[Frame]]:
    """Return the position where the parser starts, the comma before it (or 0), and the containers open there, or
    no containers if there is no such position.

    It is one item before the last one begun, because the end of a string depends on the text after it.
    """
    prefix = text[start:error]
    if "\\" in prefix:
        prefix = prefix.replace("\\\\", "..").replace('\\"', "..")
    strings = prefix.split('"')
    at, depth, commas, index = len(prefix), 0, 0, len(strings) - 1
    if index % 2:  # the error is inside a string
        at -= len(strings[index]) + 1
        index -= 1
    while True:
        for char in reversed(strings[index]):
            at -= 1
            if char not in _STRUCTURE:
                continue
            if char in "}]":
                depth += 1
            elif char in "{[":
                depth -= 1
            elif char == "," and not depth:
                commas += 1
            if depth < 0 or commas == 2:
                outside = "".join(strings[::2])
                # the same depth at this location as at the error
                deep = sum(map(outside.count, "{[")) - sum(map(outside.count, "}]"))
                frames = _frames(text[start : start + at + 1], start, deep, shape)
                return start + at + 1, start + at if commas == 2 else 0, frames
        if index < 2:
            return 0, 0, []
        at -= len(strings[index - 1]) + 2
        index -= 2


def _frames(prefix: str, start: int, depth: int, shape: Shape) -> list[Frame]:
    """Return the containers open at the end of `prefix`, outermost first, with the items read so far; none if these
    are not `depth` containers of valid JSON.
    """
    try:
        here: Any = jiter.from_json(prefix.encode(), partial_mode=True)
    except ValueError:
        return []
    frames: list[Frame] = []
    while is_dict(here) or is_list(here):
        frame = Frame(OBJECT if is_dict(here) else ARRAY, start, shape, here)
        frames.append(frame)
        inner: Any = None
        if len(frames) < depth and here:
            frame.key, inner = here.popitem() if is_dict(here) else ("", cast("list[Any]", here).pop())
            shape = shape.member(frame.keys.get(frame.key, frame.key)) if is_dict(here) else shape.element(len(here))
        frame.items = [_BEFORE[frame.kind]] * len(here)
        if frame.kind == OBJECT and here:
            frame.items[0] = Member(next(iter(here)), 0, _before)
        here = inner
    return frames if len(frames) == depth else []


def read_begun(text: str) -> Any:
    """Return the complete parts of a JSON value that breaks off, or None if it is not JSON up to there.

    >>> read_begun('{"name": "Ann", "tags": ["a", "b')
    {'name': 'Ann', 'tags': ['a']}
    """
    try:
        return jiter.from_json(text.encode(), partial_mode=True)
    except ValueError:
        return None


def agrees(begun: object, whole: object) -> bool:
    """Return whether a JSON value may be the continuation of an incomplete one.

    >>> [agrees({"a": [1]}, whole) for whole in ({"a": [1, 2], "b": 3}, {"a": [2]})]
    [True, False]
    """
    if is_dict(begun) and is_dict(whole):
        return all(key in whole and agrees(value, whole[key]) for key, value in begun.items())
    if is_list(begun) and is_list(whole):
        return len(begun) <= len(whole) and all(map(agrees, begun, whole))
    return begun == whole and isinstance(begun, bool) == isinstance(whole, bool)


def _items_read(frames: list[Frame], before: list[int], parser: Parser) -> str:
    """Return the items that the parser read until it stopped, written as JSON."""
    still_open, out = len(parser.stack), ""
    for level in range(len(frames) - 1, max(still_open - 1, 0) - 1, -1):
        frame = frames[level]
        inner = level < len(frames) - 1
        known = before[level] + inner  # the inner container was the first item read here
        read = dict(islice(frame.plain.items(), known, None)) if frame.kind == OBJECT else frame.plain[known:]
        if read:
            out += ("," if known else "") + _json(read)[1:-1]
        if level >= still_open:
            out += "}" if frame.kind == OBJECT else "]"
    return out + "," if still_open and parser.stack[-1].items else out


def _add_paths(parser: Parser, grown: int) -> list[Edit]:
    """Return the edits with positions in the original text."""
    root = parser.tree_so_far()
    found = [
        edit if edit.path else edit._replace(path=path_of(steps_to(root, edit.start, {}, {}))) for edit in parser.edits
    ]
    return [edit._replace(start=edit.start - grown, end=edit.end - grown) for edit in found]


def _json(value: Any) -> str:
    """Encode a value whose strings are certain so that none of its escapes can be read as a literal backslash."""
    written = to_json(value, inf_nan_mode="constants").decode()
    return _ESCAPE.sub(_as_code, written) if "\\" in written else written


def _as_code(found: re.Match[str]) -> str:
    return f"{found[1] and _COLON}\\u{_CODES.get(found[2], '')}"
