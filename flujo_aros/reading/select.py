"""Find every place where an answer could be, try each against the contract, and decide between those that fit.

The rule (in the documentation under "Which candidate wins"): better places first; within one class, apart by prose, the
last one; what the rule cannot decide is AMBIGUOUS.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from math import isfinite
from typing import Any, Final, Generic, Literal, TypeVar

from flujo_aros.contract import TIMES, Contract, Invalid, Valid, mask_reasoning
from flujo_aros.json_data import is_dict, is_list, unescape
from flujo_aros.outcome import Accepted, Issue, Reading, Reason, Rejected, Risk, Trust
from flujo_aros.reading.boundaries import goes_on, is_fragment, is_held, key_without_opener
from flujo_aros.reading.candidate import Candidate, accept_spliced, judge, read_scalars, read_strict
from flujo_aros.reading.enum_match import boolean_word
from flujo_aros.reading.fast_path import rewrite
from flujo_aros.reading.json_scan import JsonExtent, find_json_end, json_extent
from flujo_aros.reading.lenient import LenientParser
from flujo_aros.reading.lines import list_of, read_lines
from flujo_aros.reading.node import ARRAY, LITERAL, NUMBER, OBJECT, STRING, Node, moved
from flujo_aros.reading.parser import DEPTH, Failure, Parsed, Parser
from flujo_aros.reading.partial import as_json
from flujo_aros.reading.remainder import Span, names_fields, prose_rest, rivalry
from flujo_aros.reading.repairs import Edit, RepairLog, worst
from flujo_aros.reading.runaway import MOST_BLANK
from flujo_aros.reading.scalars import FOREIGN, SURROGATE, read_number
from flujo_aros.reading.scanner import (
    CODE,
    FENCE,
    FENCED,
    INLINE,
    LINES,
    Scanner,
    Spot,
    ends_line,
    is_citation,
    is_quoted,
)
from flujo_aros.reading.splice import splices

T = TypeVar("T")

# Nothing in it is tried twice: a row of slashes can be taken for comments in more ways than anyone can try.
BETWEEN: Final = re.compile(r"(?:^[ \t]*+(?:[-*•+]|\d{1,3}[.)])[ \t]|[\s,;]|(?>/\*.*?\*/)|//[^\n]*+)*+", re.M)
FENCES: Final = re.compile(r"(?:[\s,;]|(?:```|~~~)[\w+#.-]*+)*+")
CLOSER: Final = re.compile(r"\s*[}\]]")
_CITE_QUOTES: Final = ('"', "'", "“", "‘", "`")
_DECLINED: Final = re.compile(
    r"\b(?:I(?:'m| am) (?:sorry|unable|not able)|as an AI\b|I'd rather not|lo siento|es tut mir leid"
    r"|I (?:can(?:'|no)t|won't|will not|must decline|apologi[sz]e|refuse)|je (?:ne peux pas|suis désolé)"
    r"|ich kann (?:das |dies |dir |ihnen )?(?:leider )?nicht)\b|抱歉|对不起|申し訳",
    re.I,
)
_OPENERS: Final = frozenset("{[")
_CLOSERS: Final = frozenset("}]")
_SCALARS: Final = ("string", "integer", "number", "boolean", "null")
_LONGEST_SCALAR: Final = 20_000
ESCAPED: Final = re.compile(
    r"[{\[](?:[\s{\[]|\\[nrt])*\\[\"']"
    r"|[{\[](?=[^&]{0,510}+&)(?:[^&]{0,500}[:\[,{])?\s*&(?:quot|#34|#x22);"
)
_ENTITY: Final = re.compile(r"&(?:quot|#34|#x22);")
_QUOTE_ESCAPED: Final = re.compile(r"\\[\"']|&(?:quot|#34|#x22);")
_MORE_JSON: Final = re.compile(r"\s*(?:,\s*[\"{\[]|[{}\[\]])")
_CANNOT: Final = re.compile(
    r"\bI (?:can(?:'|’)?t|cannot|can not|am (?:unable|not able) to|won(?:'|’)t|must decline)\b", re.I
)
_BRACKETS: Final = re.compile(r'\\.|["{}\[\]]|```', re.S)
_EMPTY: Final = re.compile(r"[{}\[\]\s]*")
UNREADABLE: Final = (Reason.MALFORMED, Reason.TRUNCATED, Reason.TOO_LARGE)

_QUICK: Final = 2
"""How many candidates are tried the quick way: each look goes to the end of the text."""
NESTED: Final = 2

Pick = Literal["last", "first", "error"]


class Region:
    """What a value that cannot be read takes up: reading goes on behind it, never inside it."""

    def __init__(self, start: int, least: int, *, fenced: bool) -> None:
        self.least = least
        self.fenced = fenced
        self.depth = 0
        self.quote = False
        self.seen = start

    def end(self, text: str) -> int | None:
        """Where it ends: with its last closer, or with its fence; None where neither stands in the text (yet)."""
        for found in _BRACKETS.finditer(text, self.seen):
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


class Search(Generic[T]):
    """One reading of one text: its candidates, each tried against the contract, and the decision between them."""

    def __init__(
        self,
        text: str,
        contract: Contract[T],
        *,
        ceiling: Risk,
        truncated: bool | None,
        pick: Pick,
        max_depth: int,
        max_candidates: int,
        nested: int = 0,
        growing: bool = False,
    ) -> None:
        self.text = text
        self.contract = contract
        self.shape = contract.shape
        self.ceiling = ceiling
        self.truncated = truncated
        self.pick: Pick = pick
        self.max_depth = max_depth
        self.quick = max_depth >= DEPTH
        """The C parsers know one limit of depth only, their own."""
        self.max_candidates = max_candidates
        self.nested = nested
        self.scanner = Scanner(text, contract.shape, growing=growing)
        self.refused = False
        """The text as a whole is JSON, and not such a value as it stands: `judge_json` has said so."""
        self.found: list[Candidate[T]] = []
        self.flooded = False
        self.at = 0
        """Where the next candidate may begin."""
        self.before = 0
        """Where the last one ended."""
        self.mended: list[int] = []
        """Where the quick way was tried."""
        self.budget = 8 * len(text) + 4_096

    def run(self) -> Reading[T]:
        """The outcome. The one place that decides."""
        whole = self._whole_scalar() or (self._whole_object() if self.refused else None)
        if whole is not None:
            return whole
        encoded = self._encoded()
        if encoded is not None:
            return encoded
        self._without_opener()
        self._gather()
        fitting = [candidate for candidate in self.found if candidate.fits]
        if len(fitting) == len(self.found) == 1:
            return self._accept(fitting[0])
        if fitting:
            return self._decide(fitting)
        nothing = not self.found or all(c.reason is Reason.ECHOED_SCHEMA for c in self.found)
        inner = (self._inside_quotes() or self._block_quote()) if nothing else None
        if inner is None and all(c.rank == INLINE or c.reason is Reason.ECHOED_SCHEMA for c in self.found):
            inner = self._lines()
        if inner is None and nothing:
            inner = self._scalar_in_union()
        if inner is not None:
            return inner
        return self._reject()

    def _whole_object(self) -> Reading[T] | None:
        """The outcome of a text that is one JSON object, in which scalars alone have to be converted."""
        text, candidate = self.text, Candidate[T](0, len(self.text), LINES)
        if not (text[0] == "{" and text[-1] == "}" and read_scalars(candidate, text, self.contract, self.ceiling)):
            return None
        self.found.append(candidate)
        return self._accept(candidate)

    def _without_opener(self) -> None:
        """A whole text whose first brace was lost, `"a": 1, "b": {}}`: tried first, its inside looks like an answer."""
        place = key_without_opener(self.text)
        if place is None:
            return
        start = place.start
        self.scanner.reasoning = not place.first and place.rank == LINES
        self.text, whole = f"{self.text[:start]}{{{self.text[start:]}", self.text
        spot = Spot(start, place.rank)
        candidate = self._try(spot, quick=False)
        self.text = whole
        candidate.edits = [
            e._replace(start=max(start, e.start - 1), end=max(start, e.end - 1)) for e in candidate.edits
        ]
        candidate.edits.append(Edit("missing-opener", Risk.INFERRED, start, start, "{", "$"))
        if candidate.node is not None:
            candidate.node = moved(candidate.node, -1)
        candidate.end = max(candidate.end - 1, start)
        if candidate.fits and self.ceiling < Risk.INFERRED:
            candidate.lose(Reason.MALFORMED, Issue("$", "risk", "reading it takes repairs above the allowed risk"))
        if candidate.fits and _MORE_JSON.match(self.text, candidate.end):
            candidate.lose(Reason.MALFORMED, Issue("$", "fragment", "more follows after its end"))
        if candidate.fits or place.first:
            self.found.append(candidate)
            self.at = self.before = len(self.text) if place.first else candidate.end

    # --- candidates -------------------------------------------------------------------------------------------

    def _gather(self) -> None:
        while (spot := self.scanner.next(self.at)) is not None:
            if len(self.found) >= self.max_candidates or self.budget < 0:
                self.flooded = True
                return
            candidate = self._try(spot)
            if candidate.reason in UNREADABLE:
                candidate.end = self._region(candidate).end(self.text) or len(self.text)
            self._take(spot, candidate)
        inline = any(candidate.rank == INLINE for candidate in self.found)
        if inline and (declined := _CANNOT.search(self.text)) is not None:
            self.found = [c for c in self.found if not self._is_illustration(c, declined.end())]
        if self.scanner.reasoned_to:
            self.found = [candidate for candidate in self.found if candidate.start >= self.scanner.reasoned_to]

    def _take(self, spot: Spot, candidate: Candidate[T]) -> bool:
        """Go on behind a candidate; whether it counts as one."""
        if candidate.fits and self._is_fragment(candidate, self.before):
            candidate.lose(Reason.MALFORMED, Issue("$", "fragment", "it is part of something that cannot be read"))
        end = self.at = self.before = max(candidate.end, spot.start + 1)
        self.budget -= end - spot.start + 64
        if candidate.fits and candidate.rank == INLINE and self._is_prose(candidate):
            return False
        if is_quoted(self.text, candidate.start, candidate.end):
            return False
        self.found.append(candidate)
        self.scanner.answered = self.scanner.answered or candidate.fits
        return True

    def _is_prose(self, candidate: Candidate[T]) -> bool:
        """Whether brackets amid words hold nothing, or the number of a source at the begin of a line."""
        start, end = candidate.start, candidate.end
        if _EMPTY.fullmatch(self.text, start, end):
            return True
        return (self.shape.anything or "," not in self.text[start:end]) and is_citation(self.text, start, end)

    def _is_fragment(self, candidate: Candidate[T], before: int) -> bool:
        """Whether it directly follows what could not be read, or members that no bracket holds."""
        last = self.found[-1] if self.found else None
        broken = last is not None and last.reason in (Reason.MALFORMED, Reason.TRUNCATED) and last.end == before
        if self.shape.anything and is_held(self.text, candidate.start, candidate.end):
            return True
        return is_fragment(self.text, before, candidate.start, broken=broken)

    def _is_illustration(self, candidate: Candidate[T], declined_at: int) -> bool:
        """An inline value in a sentence after a refusal shows the form of an answer; it is none."""
        before = self.text[: candidate.start].rstrip()
        return candidate.rank == INLINE and candidate.start > declined_at and before[-1:] not in (":", "：")

    def _try(self, spot: Spot, *, quick: bool = True) -> Candidate[T]:
        text = self.text
        candidate: Candidate[T] = Candidate(spot.start, spot.start + 1, spot.rank)
        extent = json_extent(text, spot.start)
        end = extent.end
        is_json = end is not None and self.quick and not goes_on(text, end)
        if end is not None and is_json:
            valid = read_strict(text[spot.start : end], self.contract)
            if valid is not None:
                candidate.end, candidate.valid = end, valid
                return self._placed(candidate)
        if quick and self.quick and end is None and (self._spliced(candidate, extent) or self._rewritten(candidate)):
            return self._placed(candidate)
        if ESCAPED.match(text, spot.start) and (inner := self._unwrapped(spot)) is not None:
            return inner
        candidate.end = end or candidate.end
        if is_json and read_scalars(candidate, text, self.contract, self.ceiling):
            return self._placed(candidate)
        machine = self._machine(spot)
        return self._judged(candidate, machine, machine.parse())

    def _spliced(self, candidate: Candidate[T], extent: JsonExtent) -> bool:
        """A few places repaired where they are, and the result taken strictly or not at all."""
        text, start, shape = self.text, candidate.start, self.shape
        if self.contract.counts is not None or shape.has_risks or text.startswith("{{", start):
            return False
        for found in splices(text, start, extent, shape, ends=self.truncated is False):
            if goes_on(text, found.end) or ESCAPED.match(text, start):
                return False
            valid = accept_spliced(found, text, start, self.contract, self.ceiling)
            if valid is not None:
                candidate.end, candidate.edits, candidate.valid = found.end, found.edits, valid
                return True
        return False

    def _machine(self, spot: Spot, *, growing: bool = False) -> Parser:
        doubled = self.text.startswith("{{", spot.start)
        counts = self.contract.counts
        if counts is not None:
            return LenientParser(
                self.text,
                spot.start,
                self.shape,
                counts=counts,
                max_depth=self.max_depth,
                ends=self.truncated is False,
                doubled=doubled,
            )
        return Parser(
            self.text,
            spot.start,
            self.shape,
            max_depth=self.max_depth,
            ends=self.truncated is False,
            doubled=doubled,
            growing=growing,
        )

    def _judged(self, candidate: Candidate[T], machine: Parser, parsed: Parsed | Failure) -> Candidate[T]:
        if isinstance(parsed, Parsed) and machine.doubled:
            parsed.edits.append(Edit("doubled-braces", Risk.INFERRED, candidate.start, parsed.end, "{…}"))
        self.budget -= machine.looked // 2
        judge(candidate, parsed, self.text, self.contract, self.ceiling)
        self._drop_if_it_goes_on(candidate)
        return self._placed(candidate)

    def _drop_if_it_goes_on(self, candidate: Candidate[T]) -> None:
        if candidate.fits and goes_on(self.text, candidate.end):
            candidate.lose(Reason.MALFORMED, Issue("$", "fragment", "members follow after its end"))

    def _rewritten(self, candidate: Candidate[T]) -> bool:
        """The quick way: common damage mended all at once, and the result taken strictly or not at all."""
        text, start = self.text, candidate.start
        if start in self.mended or len(self.mended) >= _QUICK:
            return False
        self.mended.append(start)
        stop = text.find("```", start) if self.scanner.fence is not None else -1
        if stop < 0:
            stop = len(text)
        stop = max(text.rfind("}", start, stop), text.rfind("]", start, stop)) + 1
        if not stop or self.shape.has_risks or text.startswith("{{", start):
            return False
        found = rewrite(text[start:stop])
        if found is None or found.risk > self.ceiling or goes_on(text, stop):
            return False
        candidate.valid = read_strict(found.text, self.contract)
        if candidate.valid is None:
            return False
        candidate.end, candidate.rewritten = stop, found.risk
        return True

    def _placed(self, candidate: Candidate[T]) -> Candidate[T]:
        if candidate.fits and candidate.rank == LINES and not ends_line(self.text, candidate.end):
            candidate.rank = INLINE
        return candidate

    def _region(self, candidate: Candidate[T]) -> Region:
        return Region(candidate.start, candidate.end, fenced=self.scanner.fence is not None)

    def _unwrapped(self, spot: Spot) -> Candidate[T] | None:
        """A value that is escaped once over all (`{\\"a\\": 1}`) or written with HTML entities."""
        text = self.text
        if text[spot.start - 1 : spot.start] == '"' and spot.start and self.nested < NESTED:
            end = find_json_end(text, spot.start - 1)
            if end is not None:  # a JSON string that holds the answer
                outcome = self._again(json.loads(text[spot.start - 1 : end]))
                if not isinstance(outcome, Accepted):
                    return None
                return self._adopt(outcome, spot._replace(start=spot.start - 1), end, "double-encoded")
        last = max(text.rfind("}"), text.rfind("]")) + 1
        if self.nested >= NESTED:
            return None
        if any(found.start() >= last for found in _QUOTE_ESCAPED.finditer(text, spot.start)):
            last = len(text.rstrip())  # the last closer is missing, and more of the answer stands behind the one before
        if last <= spot.start:
            return None
        part = text[spot.start : last]
        entities = _ENTITY.search(part[:200]) is not None
        inner = html.unescape(part) if entities else unescape(part).value
        outcome = self._again(inner)
        if not isinstance(outcome, Accepted):
            return None
        code = "html-entities" if entities else "escaped"
        return self._adopt(outcome, spot, last, code)

    def _adopt(self, outcome: Accepted[T], spot: Spot, end: int, code: str) -> Candidate[T]:
        candidate: Candidate[T] = Candidate(spot.start, end, spot.rank)
        candidate.edits = [Edit(code, Risk.INFERRED, spot.start, end, "")]
        candidate.edits += [Edit(r.code, r.risk, spot.start, end, r.after, r.path) for r in outcome.repairs]
        candidate.valid = Valid(outcome.value)
        return self._placed(candidate)

    # --- whole texts ------------------------------------------------------------------------------------------

    def _whole_scalar(self) -> Reading[T] | None:
        """A contract for text takes the text as it was written; one for a scalar takes nothing but the whole text."""
        shape = self.shape
        if shape.anything or shape.branches or shape.allows("object") or shape.allows("array"):
            return None
        if shape.types == frozenset({"string"}) and shape.choices is None:
            return self._text_as_written()
        if self.truncated is True:
            return Rejected(Reason.TRUNCATED, (Issue("$", "truncated", "the text is cut off"),), self.text)
        body, edits = _bare_scalar(mask_reasoning(self.text, unopened=True))
        return None if body[:1] in ("{", "[") and body else self._scalar(body, edits)

    def _text_as_written(self) -> Reading[T]:
        if self.truncated is True and self.ceiling < Risk.LOSSY:
            return Rejected(Reason.TRUNCATED, (Issue("$", "truncated", "the text is cut off"),), self.text)
        if self.shape.format in TIMES:
            return self._scalar(*_bare_scalar(mask_reasoning(self.text, unopened=True)))
        verdict = self.contract.validate(self.text)
        if isinstance(verdict, Invalid):
            return Rejected(Reason.INVALID, verdict.issues, self.text)
        if self.truncated is not True:
            return Accepted(verdict.value, Trust.CLEAN, "first", (), self.text)
        end = len(self.text)
        cut = Edit("truncated", Risk.LOSSY, end, end, "", "$")
        return Accepted(verdict.value, Trust.LOSSY, "first", RepairLog([cut], self.text, lambda: (None, ())), self.text)

    def _scalar(self, body: str, edits: list[Edit]) -> Reading[T]:
        if not body:
            return Rejected(Reason.NO_JSON, (Issue("$", "empty", "the reply is empty"),), self.text)
        start, end = self._place(body)
        node = _scalar_node(body, start, end, edits)
        is_word = body.lower() not in ("true", "false")
        value = boolean_word(body) if is_word and self.shape.types == frozenset({"boolean"}) else None
        if value is not None:
            node = Node("literal", value, start, end)
            edits = [*edits, Edit("boolean-word", Risk.INFERRED, start, end, str(value).lower())]
        candidate: Candidate[T] = Candidate(start, end, LINES)
        judge(candidate, Parsed(node, end, edits, cut=False), self.text, self.contract, self.ceiling)
        self.found.append(candidate)
        return self._decide([candidate]) if candidate.fits else self._reject()

    def _scalar_in_union(self) -> Reading[T] | None:
        """A contract that takes a scalar among others: the whole text, when nothing else stands in it."""
        if self.shape.anything:
            return self._any_scalar()
        if self.truncated is True or self.found:
            return None
        whole = mask_reasoning(self.text, unopened=True).strip()
        if find_json_end(whole, 0) == len(whole):
            return self._json_scalar(whole)
        if not any(self.shape.asks_for(kind) for kind in _SCALARS):
            return None
        body, edits = _bare_scalar(whole)
        if not body or (self.shape.allows("string") and _DECLINED.search(body)):
            return None
        found = self._one_scalar(Node(STRING, body, *self._place(body)), edits)
        is_prose = isinstance(found, Accepted) and isinstance(found.value, str) and not self.shape.asks_for("string")
        return None if is_prose else found

    def _json_scalar(self, body: str) -> Reading[T] | None:
        """A reply that is one JSON scalar, for a contract that takes it in a list or among others."""
        value = json.loads(body)
        if isinstance(value, float) and not isfinite(value):
            return None
        if isinstance(value, str) and not value.isascii() and SURROGATE.search(value):
            issue = Issue("$", "lone_surrogate", "half of a surrogate pair is not a character")
            return Rejected(Reason.MALFORMED, (issue,), self.text)
        kind = STRING if isinstance(value, str) else LITERAL if value is None or isinstance(value, bool) else NUMBER
        return self._one_scalar(Node(kind, value, *self._place(body)), [])

    def _place(self, body: str) -> tuple[int, int]:
        """Where it stands in the text; all of the text where reasoning was taken out of its middle."""
        start = self.text.rfind(body)
        return (start, start + len(body)) if start >= 0 else (0, len(self.text))

    def _one_scalar(self, node: Node, edits: list[Edit]) -> Reading[T] | None:
        candidate: Candidate[T] = Candidate(node.start, node.end, LINES)
        judge(candidate, Parsed(node, node.end, edits, cut=False), self.text, self.contract, self.ceiling)
        return self._decide([candidate]) if candidate.fits else None

    def _any_scalar(self) -> Reading[T] | None:
        body, edits = _bare_scalar(self.text)
        if self.text.strip() in ("''", "“”", "``"):
            body, edits = '""', [Edit("quotes", Risk.LOSSLESS, 0, len(self.text), "", "$")]
        if body == "" or self.nested:
            return None
        whole = Candidate[T](0, len(self.text), FENCE, read_strict(body, self.contract), edits)
        if whole.valid is None and body in FOREIGN:
            value, risk = FOREIGN[body]
            edits.append(Edit("foreign-literal", risk, 0, len(self.text), str(value), "$"))
            whole.valid = self._valid(value)
        elif whole.valid is None and self.text.strip()[:1] in _CITE_QUOTES and edits and not set(body) & set("\"'\n"):
            whole.valid = self._valid(body)
        return self._accept(whole) if whole.valid is not None else None

    def _valid(self, value: object) -> Valid[T] | None:
        verdict = self.contract.validate(value)
        return None if isinstance(verdict, Invalid) else verdict

    def _again(self, inner: str) -> Reading[T]:
        if not inner.isascii() and SURROGATE.search(inner):
            issue = Issue("$", "lone_surrogate", "half of a surrogate pair is not a character")
            return Rejected(Reason.MALFORMED, (issue,), inner)
        return Search(
            inner,
            self.contract,
            ceiling=self.ceiling,
            truncated=self.truncated,
            pick=self.pick,
            max_depth=self.max_depth,
            max_candidates=self.max_candidates,
            nested=self.nested + 1,
        ).run()

    def _encoded(self) -> Reading[T] | None:
        """A whole text that is one JSON string with JSON in it: what stands inside is read as it was meant."""
        text = self.text.strip()
        if text[:2] not in ('"{', '"[', '"\\') or self.shape.anything or find_json_end(text, 0) != len(text):
            return None
        return self._inside_quotes()

    def _inside_quotes(self) -> Reading[T] | None:
        """The whole answer written as one JSON string, or put between quotes."""
        text = self.text.strip().lstrip("\ufeff").strip()
        if (fence := FENCED.fullmatch(text)) is not None:
            text = fence[1].strip()
        if self.nested >= NESTED or len(text) < 3 or text[0] not in _CITE_QUOTES or text[-1] not in "\"'”’`":
            return None
        inner = unescape(text[1:-1]).value if "\\" in text else text[1:-1]
        if inner.lstrip()[:1] not in ("{", "[", '"'):
            return None
        outcome = self._again(inner)
        if not isinstance(outcome, Accepted):
            return outcome if outcome.reason is not Reason.NO_JSON else None
        start = self.text.find(text)
        return self._accept(self._adopt(outcome, Spot(start, LINES), start + len(text), "double-encoded"))

    def _block_quote(self) -> Reading[T] | None:
        """The whole answer in a block quote: every line has its mark, but for words that announce it."""
        lines = self.text.strip().split("\n")
        announced = lines[0].rstrip()[-1:] in (":", "：")
        body = lines[1:] if announced else lines
        if self.nested >= NESTED or not all(line.lstrip().startswith(">") or not line.strip() for line in body):
            return None
        outcome = self._again("\n".join(line.lstrip().removeprefix(">") for line in body))
        if not isinstance(outcome, Accepted):
            return None
        start = self.text.find(">")
        return self._accept(self._adopt(outcome, Spot(start, LINES), len(self.text.rstrip()), "block-quote"))

    def _lines(self) -> Reading[T] | None:
        node = read_lines(self.text, self.shape) if self.truncated is not True else None
        if node is None:
            return None
        edit = Edit("key-value-lines", Risk.INFERRED, node.start, node.end, "{…}", "$")
        candidate: Candidate[T] = Candidate(node.start, node.end, LINES)
        judge(candidate, Parsed(node, node.end, [edit], cut=False), self.text, self.contract, self.ceiling)
        self.found.append(candidate)
        return self._accept(candidate) if candidate.fits else None

    # --- deciding ---------------------------------------------------------------------------------------------

    def _decide(self, fitting: list[Candidate[T]]) -> Reading[T]:
        group, chosen = self._leading(fitting)
        best = chosen.rank
        if self.pick != "first" and (against := self._against(chosen)) is not None:
            return against
        collected = self._collect(group)
        if collected is not None:
            return collected
        value = _value_of(chosen)
        different = [c for c in fitting if c is not chosen and _value_of(c) != value and not self._is_code(c, chosen)]
        if any(c.rank == best for c in different):
            if self.truncated is True and self.ceiling < Risk.LOSSY:
                words = "it has several answers, and the last one may have been cut off"
                return self._rejected(Reason.TRUNCATED, (Issue("$", "truncated", words),))
            if self.pick == "error" or self._is_list() or not self._all_apart(group):
                words = f"{len(group)} different answers, and nothing says which one is meant"
                return self._rejected(Reason.AMBIGUOUS, (Issue("$", "several", words),))
        if different and self.pick != "first":
            doubt = rivalry(self.text, Span(chosen.start, chosen.end), [Span(c.start, c.end) for c in different])
            if doubt is not None:
                return self._rejected(Reason.AMBIGUOUS, (Issue("$", "several", doubt),))
        if different:
            code = f"picked-{self.pick}" if any(c.rank == best for c in different) else "picked-place"
            chosen.edits.append(Edit(code, Risk.INFERRED, chosen.start, chosen.end, "", "$"))
            if self.ceiling < Risk.INFERRED:
                return self._rejected(Reason.AMBIGUOUS, (Issue("$", "several", f"{len(fitting)} different answers"),))
        return self._accept(chosen)

    def _leading(self, fitting: Sequence[Candidate[T]]) -> tuple[list[Candidate[T]], Candidate[T]]:
        """The candidates of the best class, and the one of them that `pick` asks for."""
        best = min(candidate.rank for candidate in fitting)
        group = [candidate for candidate in fitting if candidate.rank == best]
        return group, group[0] if self.pick == "first" else group[-1]

    def _against(self, chosen: Candidate[T]) -> Reading[T] | None:
        """What tells against the chosen value: an answer that is cut, broken or does not fit."""
        if any(c.start > chosen.start and c.cut and not c.fits for c in self.found):
            return self._reject()
        broken = self._broken_beside(chosen)
        if broken is not None:
            return self._rejected(broken.reason or Reason.MALFORMED, broken.issues, broken)
        rivals = [
            c
            for c in self.found
            if not c.fits
            and c.reason is not Reason.ECHOED_SCHEMA
            and not self._is_code(c, chosen)
            and (self._is_list() or c.start > chosen.start)
            and self._is_answer(c, chosen)
        ]
        if not rivals:
            return None
        words = "it has another answer that does not fit"
        return self._rejected(Reason.AMBIGUOUS, (Issue("$", "several", words), *rivals[-1].issues), rivals[-1])

    def _broken_beside(self, chosen: Candidate[T]) -> Candidate[T] | None:
        """What cannot be read and stands in one row with the chosen value."""
        for other in self.found:
            if other.reason in UNREADABLE:
                one, two = (other, chosen) if other.start < chosen.start else (chosen, other)
                if BETWEEN.fullmatch(self.text, one.end, two.start):
                    return other
        return None

    def _is_code(self, candidate: Candidate[T], chosen: Candidate[T]) -> bool:
        """Whether it stands in a program that is shown beside the answer."""
        return candidate.rank == CODE and chosen.rank < CODE

    def _is_answer(self, candidate: Candidate[T], chosen: Candidate[T]) -> bool:
        """Whether it was meant as an answer: an object with keys of the contract, or a list of such."""
        value = candidate.draft.value if candidate.draft else None
        shape = self.shape
        if value is None and candidate.reason in UNREADABLE:
            part = self.text[candidate.start : candidate.end]
            return names_fields(part, shape) or (not shape.properties and candidate.rank <= chosen.rank)
        if is_list(value):
            value, shape = (value[0] if value else None), shape.element(0)
        elif self._is_list():
            shape = shape.element(0)
        if not is_dict(value):
            return False
        inner = [part for part in value.values() if is_dict(part)]
        return any(key in shape.keys for part in (value, *inner) for key in part)

    def _is_list(self) -> bool:
        return self.shape.allows("array") and not self.shape.allows("object") and not self.shape.anything

    def _in_lines(self, group: Sequence[Candidate[T]]) -> bool:
        """JSON Lines, or values with commas between them, where any JSON is welcome."""
        between = (self.text[one.end : two.start] for one, two in pairwise(group))
        return self.shape.anything and all("\n" in part or "," in part for part in between)

    def _all_apart(self, group: Sequence[Candidate[T]]) -> bool:
        """Whether words stand between the answers (a fence is a wall too)."""
        walls = FENCES if group[0].rank <= FENCE else BETWEEN
        return all(not walls.fullmatch(self.text, one.end, two.start) for one, two in pairwise(group))

    def _collect(self, group: list[Candidate[T]]) -> Reading[T] | None:
        """Several values in a row, where the contract is a list of them."""
        if len(group) < 2 or self._all_apart(group) or not (self._is_list() or self._in_lines(group)):
            return None
        if self._is_list() and self.text[group[0].start] == "[":
            return None
        if any(c.bent for c in group) or CLOSER.match(self.text, group[-1].end):
            return None
        nodes: list[Node] = []
        edits: list[Edit] = []
        for candidate in group:
            parsed = Parser(self.text, candidate.start, self.shape.element(0), max_depth=self.max_depth).parse()
            if isinstance(parsed, Failure):
                return None
            nodes.append(parsed.node)
            edits += parsed.edits
        whole: Candidate[T] = Candidate(group[0].start, group[-1].end, group[0].rank)
        edits.append(Edit("collected", Risk.INFERRED, whole.start, whole.end, f"[{len(nodes)} values]", "$"))
        judge(whole, Parsed(list_of(nodes), whole.end, edits, cut=False), self.text, self.contract, self.ceiling)
        return self._accept(whole) if whole.fits else None

    def _accept(self, candidate: Candidate[T]) -> Reading[T]:
        text = self.text
        if self.pick != "first" and self.contract.counts is None and (rest := self._unexplained(candidate)) is not None:
            return self._rejected(Reason.AMBIGUOUS, (rest,), candidate)
        edits = list(candidate.edits)
        code = "fence" if candidate.rank <= FENCE else "prose-around"
        said = any(edit.start == 0 and edit.end == len(text) for edit in edits)
        for start, end in ((0, candidate.start), (candidate.end, len(text))):
            outside = text[start:end].strip(" \t\r\n")
            if outside and not said:
                name = (
                    "bom"
                    if outside == "\ufeff"
                    else "odd-space"
                    if not outside.strip()
                    else "reasoning"
                    if self.scanner.reasoning and not start
                    else code
                )
                edits.append(Edit(name, Risk.LOSSLESS, start, end, "", "$"))
        blank = len(text) - candidate.end  # without end, it shows that the value was whole
        touches = blank <= MOST_BLANK and not text[candidate.end :].strip()
        spared = candidate.cut and self.contract.counts is not None  # what was cut off does not count
        if self.truncated is True and touches and not spared and self.ceiling < Risk.LOSSY:
            return self._rejected(Reason.TRUNCATED, (Issue("$", "truncated", "the text is cut off right after it"),))
        brackets = candidate.node is not None and candidate.node.kind in (OBJECT, ARRAY)
        if brackets and not edits and self.contract.counts is None and find_json_end(text, candidate.start) is None:
            edits.append(Edit("odd-space", Risk.LOSSLESS, candidate.start, candidate.end, "", "$"))
        risk = worst(edits)
        if candidate.rewritten is not None:
            risk = candidate.rewritten if risk is None else max(risk, candidate.rewritten)
        trust = Trust.CLEAN if risk is None else (Trust.LOSSLESS, Trust.INFERRED, Trust.LOSSY)[risk]
        if candidate.valid is None:
            raise AssertionError("only a candidate that fits is accepted")
        log = RepairLog(edits, text, partial(self._tree, candidate), candidate.names)
        return Accepted(candidate.valid.value, trust, "first", log, text)

    def _unexplained(self, candidate: Candidate[T]) -> Issue | None:
        """What in the text around the value speaks against it."""
        others = [Span(c.start, c.end) for c in self.found if c is not candidate and c.end <= len(self.text)]
        span = Span(candidate.start, candidate.end)
        return prose_rest(
            self.text[: self.scanner.ended_at], span, others, self.shape, lambda: self._json_of(candidate)
        )

    def _json_of(self, candidate: Candidate[T]) -> Any:
        """The JSON of the value that a candidate came to."""
        return as_json(
            None if candidate.valid is None else candidate.valid.value,
            candidate.draft.value if candidate.draft else None,
        )

    def _tree(self, candidate: Candidate[T]) -> tuple[Node | None, Sequence[Edit]]:
        """The nodes, for the paths of the repairs; what was rewritten is parsed when somebody looks."""
        if candidate.rewritten is None:
            return candidate.node, ()
        parsed = self._machine(Spot(candidate.start, candidate.rank)).parse()
        if isinstance(parsed, Parsed) and parsed.end == candidate.end and worst(parsed.edits) == candidate.rewritten:
            return parsed.node, parsed.edits
        # The machine would not have been sure where its strings end; the whole text as valid JSON leaves no doubt.
        return None, (Edit("rewritten", candidate.rewritten, candidate.start, candidate.end, "", "$"),)

    # --- rejecting --------------------------------------------------------------------------------------------

    def _reject(self) -> Reading[T]:
        if self.flooded:
            return self._rejected(Reason.TOO_LARGE, (Issue("$", "candidates", "it has too many possible answers"),))
        if not self.found:
            if self.scanner.unclosed:
                issue = Issue("$", "reasoning", "the reasoning never ends, and no answer follows it")
                return self._rejected(Reason.TRUNCATED if self.truncated else Reason.NO_JSON, (issue,))
            declined = _DECLINED.search(self.text[:2_000])
            reason = Reason.REFUSED if declined else Reason.NO_JSON
            words = (
                "the model declined"
                if declined
                else "it has no JSON value"
                if self.text.strip()
                else "the reply is empty"
            )
            return self._rejected(reason, (Issue("$", reason.value, words),))
        order = [
            Reason.TRUNCATED,
            Reason.AMBIGUOUS,
            Reason.INVALID,
            Reason.MALFORMED,
            Reason.TOO_LARGE,
            Reason.ECHOED_SCHEMA,
        ]
        last = self.found[-1]
        worst_of = (
            last if last.cut else min(reversed(self.found), key=lambda c: order.index(c.reason or Reason.INVALID))
        )
        return self._rejected(worst_of.reason or Reason.INVALID, worst_of.issues, worst_of)

    def _rejected(self, reason: Reason, issues: tuple[Issue, ...], nearest: Candidate[T] | None = None) -> Rejected:
        draft = nearest.draft if nearest else None
        seen = tuple(candidate.words() for candidate in self.found)
        return Rejected(reason, issues, self.text, draft=draft, seen=seen)


def _value_of(candidate: Candidate[T]) -> T | None:
    return candidate.valid.value if candidate.valid is not None else None


def _bare_scalar(text: str) -> tuple[str, list[Edit]]:
    """The text without fence, quotes and emphasis around it."""
    body = text.strip().lstrip("\ufeff").strip()
    edits: list[Edit] = []
    fence = FENCED.fullmatch(body)
    if fence:
        body = fence[1].strip()
        edits.append(Edit("fence", Risk.LOSSLESS, 0, len(text), body, "$"))
    for _ in range(3):
        if len(body) > _LONGEST_SCALAR or not (
            found := re.fullmatch(r"(\*\*|__|[*_`\"'“‘])(.+?)(\1|[”’])[.!]?", body, re.S)
        ):
            break
        body = found[2].strip()
        code = "emphasis" if found[1] in ("**", "__", "*", "_", "`") else "quotes"
        edits.append(Edit(code, Risk.LOSSLESS, 0, len(text), body, "$"))
    return body, edits


def _scalar_node(body: str, start: int, end: int, edits: list[Edit]) -> Node:
    """A number where one stands without quotation marks, else text."""
    number = None if any(edit.code == "quotes" for edit in edits) else read_number(body)
    return Node(STRING, body, start, end) if number is None else Node(NUMBER, number.value, start, end)
