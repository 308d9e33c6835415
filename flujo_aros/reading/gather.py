"""Find every place where an answer could stand, and try each against the contract."""

from __future__ import annotations

import html
import json
import re
from abc import ABC, abstractmethod
from typing import Final, Generic, Literal, TypeVar

from flujo_aros.contract import Contract, Valid
from flujo_aros.json_data import unescape
from flujo_aros.outcome import Accepted, Issue, Reading, Reason, Risk
from flujo_aros.reading.boundaries import goes_on, is_fragment, is_held, key_without_opener
from flujo_aros.reading.candidate import Candidate, accept_spliced, judge, read_strict
from flujo_aros.reading.edits import Edit
from flujo_aros.reading.fast_path import rewrite
from flujo_aros.reading.json_scan import JsonExtent, find_json_end, json_extent
from flujo_aros.reading.lenient import LenientParser
from flujo_aros.reading.locate import INLINE, LINES, Scout, Spot, ends_line, is_citation, is_quoted
from flujo_aros.reading.node import moved
from flujo_aros.reading.parser import DEPTH, Failure, Parsed, Parser
from flujo_aros.reading.splice import splices

T = TypeVar("T")

ESCAPED: Final = re.compile(r"[{\[](?:[\s{\[]|\\[nrt])*\\[\"']|[{\[](?:[^&]{0,500}[:\[,{])?\s*&(?:quot|#34|#x22);")
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


class Gathering(ABC, Generic[T]):
    """The candidates of one text."""

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
        self.scout = Scout(text, contract.shape, growing=growing)
        self.found: list[Candidate[T]] = []
        self.flooded = False
        self.at = 0
        """Where the next candidate may begin."""
        self.before = 0
        """Where the last one ended."""
        self.mended: list[int] = []
        """Where the quick way was tried."""
        self.budget = 8 * len(text) + 4_096

    @abstractmethod
    def run(self) -> Reading[T]:
        """Read the text."""

    @abstractmethod
    def _again(self, inner: str) -> Reading[T]:
        """Read what was inside of an escape or of quotes."""

    def _without_opener(self) -> None:
        """A whole text whose first brace was lost, `"a": 1, "b": {}}`: tried first, its inside looks like an answer."""
        place = key_without_opener(self.text)
        if place is None:
            return
        start = place.start
        self.scout.reasoning = not place.first and place.rank == LINES
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

    # --- gathering --------------------------------------------------------------------------------------------

    def _gather(self) -> None:
        while (spot := self.scout.next(self.at)) is not None:
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
        if self.scout.reasoned_to:
            self.found = [candidate for candidate in self.found if candidate.start >= self.scout.reasoned_to]

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
        self.scout.answered = self.scout.answered or candidate.fits
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
        if self.quick and end is not None and not goes_on(text, end):
            valid = read_strict(text[spot.start : end], self.contract)
            if valid is not None:
                candidate.end, candidate.valid = end, valid
                return self._placed(candidate)
        escaped = ESCAPED.match(text, spot.start) is not None
        if (
            quick
            and self.quick
            and end is None
            and ((not escaped and self._spliced(candidate, extent)) or self._rewritten(candidate))
        ):
            return self._placed(candidate)
        if escaped and (inner := self._unwrapped(spot)) is not None:
            return inner
        machine = self._machine(spot)
        return self._judged(candidate, machine, machine.parse())

    def _spliced(self, candidate: Candidate[T], extent: JsonExtent) -> bool:
        """A few places repaired where they are, and the result taken strictly or not at all."""
        text, start, shape = self.text, candidate.start, self.shape
        if self.contract.counts is not None or shape.has_risks or text.startswith("{{", start):
            return False
        for found in splices(text, start, extent, shape, ends=self.truncated is False):
            if goes_on(text, found.end):
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
        stop = text.find("```", start) if self.scout.fence is not None else -1
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
        return Region(candidate.start, candidate.end, fenced=self.scout.fence is not None)

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
