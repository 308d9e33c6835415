"""Try every place where an answer could stand, and decide between those that satisfy the contract.

The rule stands in the documentation ("Which candidate wins"): better places first; within one class apart by prose the
last one; what the rule cannot decide is AMBIGUOUS.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Final, Generic, Literal, TypeVar

from flujo_aros.contract.output import Contract
from flujo_aros.contract.schema import Shape
from flujo_aros.contract.values import Invalid, Valid
from flujo_aros.outcome import Accepted, Issue, Outcome, Reason, Rejected, Risk, Trust
from flujo_aros.reading.candidate import Candidate, find_json_end, judge, read_strict
from flujo_aros.reading.choose import match_choice
from flujo_aros.reading.cursor import Failure
from flujo_aros.reading.edits import Edit, RepairLog, worst
from flujo_aros.reading.lines import list_of, read_lines
from flujo_aros.reading.locate import FENCE, INLINE, LINES, Scout, Spot, ends_line, is_quoted
from flujo_aros.reading.node import ARRAY, OBJECT, STRING, Node, moved
from flujo_aros.reading.rewrite import rewrite
from flujo_aros.reading.scalars import FOREIGN, unescape
from flujo_aros.reading.tolerant import Machine, Parsed

T = TypeVar("T")

_BETWEEN: Final = re.compile(r"(?:[\s,;]|/\*.*?\*/|//[^\n]*|^[ \t]*(?:[-*•+]|\d{1,3}[.)])[ \t])*", re.M)
_ESCAPED: Final = re.compile(r"[{\[](?:[\s{\[]|\\[nrt])*\\[\"']|[{\[](?:[^&]{0,500}[:\[,{])?\s*&quot;")
_GOES_ON: Final = re.compile(r"[\s}\]]*,\s*\"[^\"\n]{1,120}\"\s*:")
_CAME_BEFORE: Final = re.compile(r"\"[^\"\n]{0,80}\"\s*:\s*[\"\d\[{tfn-].{0,400}[\"\]}\w]\s*,\s*\Z", re.S)
_LOST_KEY: Final = re.compile(r"\s*\"\w[^\"\n]{0,80}\"?\s*:?\s*")
_MORE_JSON: Final = re.compile(r"\s*(?:,\s*[\"{\[]|[{}\[\]])")
_KEY_FIRST: Final = re.compile(r"\"[^\"\n{}]{1,80}\"\s*:")
_CITE_QUOTES: Final = ('"', "'", "“", "‘", "`")
_DECLINED: Final = re.compile(
    r"\b(?:I(?:'m| am) (?:sorry|unable|not able)|as an AI\b|I'd rather not|lo siento|es tut mir leid"
    r"|I (?:can(?:'|no)t|won't|will not|must decline|apologi[sz]e|refuse)|je (?:ne peux pas|suis désolé)"
    r"|ich kann (?:das |dies |dir |ihnen )?(?:leider )?nicht)\b|抱歉|对不起|申し訳",
    re.I,
)
_CANNOT: Final = re.compile(
    r"\bI (?:can(?:'|’)?t|cannot|can not|am (?:unable|not able) to|won(?:'|’)t|must decline)\b", re.I
)
_SCALARS: Final = ("string", "integer", "number", "boolean", "null")
DEPTH: Final = 200
_QUICK: Final = 2
"""How many candidates are tried the quick way: each look goes to the end of the text."""
_NESTED: Final = 2
_LONGEST_SCALAR: Final = 20_000

Pick = Literal["last", "first", "error"]


class Search(Generic[T]):
    """One reading of one text."""

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
        self.scout = Scout(text, contract.shape)
        self.found: list[Candidate[T]] = []
        self.flooded = False

    def run(self) -> Outcome[T]:
        """The outcome. The one place that decides."""
        scalar = self._whole_scalar()
        if scalar is not None:
            return scalar
        self._without_opener()
        if not self.found:
            self._gather()
        fitting = [candidate for candidate in self.found if candidate.fits]
        if fitting:
            return self._decide(fitting)
        nothing = not self.found or all(c.reason is Reason.ECHOED_SCHEMA for c in self.found)
        inner = self._inside_quotes() if nothing else None
        if inner is None and all(c.rank == INLINE or c.reason is Reason.ECHOED_SCHEMA for c in self.found):
            inner = self._lines()
        if inner is None and nothing:
            inner = self._scalar_in_union()
        if inner is not None:
            return inner
        return self._reject()

    def _without_opener(self) -> None:
        """A whole text whose first brace was lost, `"a": 1, "b": {}}`: tried first, its inside looks like an answer."""
        start = len(self.text) - len(self.text.lstrip())
        if not _KEY_FIRST.match(self.text, start):
            return
        self.text, whole = f"{self.text[:start]}{{{self.text[start:]}", self.text
        spot = Spot(start, LINES)
        candidate = self._try(spot)
        self.text = whole
        candidate.edits = [
            e._replace(start=max(start, e.start - 1), end=max(start, e.end - 1)) for e in candidate.edits
        ]
        candidate.edits.append(Edit("missing-opener", Risk.INFERRED, start, start, "{", "$"))
        if candidate.node is not None:
            candidate.node = moved(candidate.node, -1)
        candidate.end = max(candidate.end - 1, start)
        if candidate.fits and _MORE_JSON.match(self.text, candidate.end):
            candidate.lose(Reason.MALFORMED, Issue("$", "fragment", "more follows behind its end"))
        self.found.append(candidate)

    # --- gathering --------------------------------------------------------------------------------------------

    def _gather(self) -> None:
        text, scout = self.text, self.scout
        budget = 8 * len(text) + 4_096
        pos = before = 0
        while (spot := scout.next(pos)) is not None:
            if len(self.found) >= self.max_candidates or budget < 0:
                self.flooded = True
                return
            candidate = self._try(spot)
            if candidate.fits and self._is_fragment(candidate, before):
                candidate.lose(
                    Reason.MALFORMED, Issue("$", "fragment", "it is a part of something that cannot be read")
                )
            budget -= candidate.end - spot.start + 64
            if candidate.reason in (Reason.MALFORMED, Reason.TRUNCATED, Reason.TOO_LARGE):
                candidate.end = self._region_end(candidate)
            pos = before = max(candidate.end, spot.start + 1)
            if is_quoted(text, candidate.start, candidate.end):
                continue
            self.found.append(candidate)
        inline = any(candidate.rank == INLINE for candidate in self.found)
        if inline and (declined := _CANNOT.search(text)) is not None:
            self.found = [c for c in self.found if not self._is_illustration(c, declined.end())]
        if scout.reasoned_to:
            self.found = [candidate for candidate in self.found if candidate.start >= scout.reasoned_to]

    def _is_fragment(self, candidate: Candidate[T], before: int) -> bool:
        """Whether it directly follows what could not be read, or members that no bracket holds."""
        gap = self.text[before : candidate.start]
        last = self.found[-1] if self.found else None
        broken = last is not None and last.reason in (Reason.MALFORMED, Reason.TRUNCATED) and last.end == before
        if not before and _LOST_KEY.fullmatch(gap):
            return True
        return (broken and not gap.strip(" \t\r\n,")) or _CAME_BEFORE.search(gap[-600:]) is not None

    def _is_illustration(self, candidate: Candidate[T], declined_at: int) -> bool:
        """An inline value in a sentence after a refusal shows the form of an answer; it is none."""
        before = self.text[: candidate.start].rstrip()
        return candidate.rank == INLINE and candidate.start > declined_at and before[-1:] not in (":", "：")

    def _try(self, spot: Spot) -> Candidate[T]:
        text = self.text
        candidate: Candidate[T] = Candidate(spot.start, spot.start + 1, spot.rank)
        end = find_json_end(text, spot.start)
        if self.quick and end is not None and not _GOES_ON.match(text, end):
            valid = read_strict(text[spot.start : end], self.contract)
            if valid is not None:
                candidate.end, candidate.valid = end, valid
                return self._placed(candidate)
        if self.quick and end is None and len(self.found) < _QUICK and self._rewritten(candidate):
            return self._placed(candidate)
        if _ESCAPED.match(text, spot.start) and (inner := self._unwrapped(spot)) is not None:
            return inner
        doubled = text.startswith("{{", spot.start)
        machine = Machine(
            text, spot.start, self.shape, max_depth=self.max_depth, ends=self.truncated is False, doubled=doubled
        )
        parsed = machine.parse()
        if isinstance(parsed, Parsed) and doubled:
            parsed.edits.append(Edit("doubled-braces", Risk.INFERRED, spot.start, parsed.end, "{…}"))
        judge(candidate, parsed, text, self.contract, self.ceiling)
        if candidate.fits and _GOES_ON.match(text, candidate.end):
            candidate.lose(Reason.MALFORMED, Issue("$", "fragment", "members follow behind its end"))
        return self._placed(candidate)

    def _rewritten(self, candidate: Candidate[T]) -> bool:
        """The quick way: common damage mended token by token, and the result taken strictly or not at all."""
        text = self.text
        found = rewrite(text, candidate.start)
        end = find_json_end(found.text, 0) if found else None
        if found is None or end is None or found.text.startswith("{{"):
            return False
        stop = found.origin(end)
        edits = [edit for edit in found.edits if edit.end <= stop]
        if (worst(edits) or Risk.LOSSLESS) > self.ceiling or self.shape.has_risks or _GOES_ON.match(text, stop):
            return False
        candidate.valid = read_strict(found.text[:end], self.contract)
        if candidate.valid is None:
            return False
        candidate.end, candidate.edits, candidate.rewritten = stop, edits, True
        return True

    def _placed(self, candidate: Candidate[T]) -> Candidate[T]:
        if candidate.fits and candidate.rank == LINES and not ends_line(self.text, candidate.end):
            candidate.rank = INLINE
        return candidate

    def _region_end(self, candidate: Candidate[T]) -> int:
        """Where to go on after a value that cannot be read: behind it, never inside it."""
        fence = self.text.find("```", candidate.start)
        limit = fence if fence >= 0 and self.scout.fence is not None else len(self.text)
        depth, quote, at = 0, False, candidate.start
        for found in re.compile(r'\\.|["{}\[\]]', re.S).finditer(self.text, candidate.start, limit):
            char = found[0]
            if char == '"':
                quote = not quote
            elif not quote and char in "{[":
                depth += 1
            elif not quote and char in "}]":
                depth -= 1
                at = found.end()
                if depth <= 0:
                    return max(at, candidate.end)
        return limit

    def _unwrapped(self, spot: Spot) -> Candidate[T] | None:
        """A value that is escaped once over all (`{\\"a\\": 1}`) or written with HTML entities."""
        text = self.text
        last = max(text.rfind("}"), text.rfind("]")) + 1
        if last <= spot.start or self.nested >= _NESTED:
            return None
        part = text[spot.start : last]
        entities = "&quot;" in part[:200]
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

    def _again(self, inner: str) -> Outcome[T]:
        search: Search[T] = Search(
            inner,
            self.contract,
            ceiling=self.ceiling,
            truncated=self.truncated,
            pick=self.pick,
            max_depth=self.max_depth,
            max_candidates=self.max_candidates,
            nested=self.nested + 1,
        )
        return search.run()

    # --- whole texts ------------------------------------------------------------------------------------------

    def _whole_scalar(self) -> Outcome[T] | None:
        """A contract for text takes the text as it was written; one for a scalar takes nothing but the whole text."""
        shape = self.shape
        if shape.anything or shape.branches or shape.allows("object") or shape.allows("array"):
            return None
        if shape.types == frozenset({"string"}) and shape.choices is None:
            return self._text_as_written()
        if self.truncated is True:
            return Rejected(Reason.TRUNCATED, (Issue("$", "truncated", "the text is cut off"),), self.text)
        body, edits = _bare_scalar(self._without_reasoning())
        return None if body[:1] in ("{", "[") and body else self._scalar(body, edits)

    def _text_as_written(self) -> Outcome[T]:
        verdict = self.contract.validate(self.text)
        if isinstance(verdict, Invalid):
            return Rejected(Reason.INVALID, verdict.issues, self.text)
        return Accepted(verdict.value, Trust.CLEAN, "first", (), self.text)

    def _without_reasoning(self) -> str:
        self.scout.next(len(self.text))
        text = re.sub(r"<(think|thinking|reasoning|analysis)>.*?(?:</\1>|\Z)", "", self.text, flags=re.S | re.I)
        return re.split(r"</(?:think|thinking|reasoning|analysis)>", text)[-1]

    def _scalar(self, body: str, edits: list[Edit]) -> Outcome[T]:
        if not body:
            return Rejected(Reason.NO_JSON, (Issue("$", "empty", "the reply is empty"),), self.text)
        start = self.text.find(body)
        node = Node(STRING, body, start, start + len(body))
        value = _boolean_word(body) if self.shape.types == frozenset({"boolean"}) else None
        if value is not None:
            node = Node("literal", value, start, start + len(body))
            edits = [*edits, Edit("boolean-word", Risk.INFERRED, start, start + len(body), str(value).lower())]
        candidate: Candidate[T] = Candidate(start, start + len(body), LINES)
        judge(candidate, Parsed(node, start + len(body), edits, cut=False), self.text, self.contract, self.ceiling)
        self.found.append(candidate)
        return self._decide([candidate]) if candidate.fits else self._reject()

    def _scalar_in_union(self) -> Outcome[T] | None:
        """A contract that takes a scalar among others: the whole text, when nothing else stands in it."""
        if self.shape.anything:
            return self._any_scalar()
        if self.truncated is True or self.found:
            return None
        body, edits = _bare_scalar(self._without_reasoning())
        if not any(self.shape.allows(kind) for kind in _SCALARS) and find_json_end(body, 0) != len(body):
            return None
        if not body or (self.shape.allows("string") and _DECLINED.search(body)):
            return None
        start = self.text.find(body)
        candidate: Candidate[T] = Candidate(start, start + len(body), LINES)
        node = Node(STRING, body.strip('"'), start, start + len(body))
        judge(candidate, Parsed(node, start + len(body), edits, cut=False), self.text, self.contract, self.ceiling)
        return self._decide([candidate]) if candidate.fits else None

    def _any_scalar(self) -> Outcome[T] | None:
        body, edits = _bare_scalar(self.text)
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

    def _inside_quotes(self) -> Outcome[T] | None:
        """The whole answer written as one JSON string, or put between quotes."""
        text = self.text.strip().lstrip("\ufeff").strip()
        if self.nested >= _NESTED or len(text) < 3 or text[0] not in _CITE_QUOTES or text[-1] not in "\"'”’`":
            return None
        inner = unescape(text[1:-1]).value if "\\" in text else text[1:-1]
        if inner.lstrip()[:1] not in ("{", "[", '"'):
            return None
        outcome = self._again(inner)
        if not isinstance(outcome, Accepted):
            return outcome if isinstance(outcome, Rejected) and outcome.reason is not Reason.NO_JSON else None
        start = self.text.find(text)
        return self._accept(self._adopt(outcome, Spot(start, LINES), start + len(text), "double-encoded"))

    def _lines(self) -> Outcome[T] | None:
        node = read_lines(self.text, self.shape) if self.truncated is not True else None
        if node is None:
            return None
        edit = Edit("key-value-lines", Risk.INFERRED, node.start, node.end, "{…}")
        candidate: Candidate[T] = Candidate(node.start, node.end, LINES)
        judge(candidate, Parsed(node, node.end, [edit], cut=False), self.text, self.contract, self.ceiling)
        self.found.append(candidate)
        return self._accept(candidate) if candidate.fits else None

    # --- deciding ---------------------------------------------------------------------------------------------

    def _decide(self, fitting: list[Candidate[T]]) -> Outcome[T]:
        best = min(candidate.rank for candidate in fitting)
        group = [candidate for candidate in fitting if candidate.rank == best]
        chosen = group[0] if self.pick == "first" else group[-1]
        later = [c for c in self.found if c.start > chosen.start and c.cut and not c.fits]
        if later and self.pick != "first":
            return self._reject()
        collected = self._collect(group)
        if collected is not None:
            return collected
        values = [candidate.valid.value for candidate in group if candidate.valid is not None]
        if any(value != values[0] for value in values):
            if self.truncated is True and self.ceiling < Risk.LOSSY:
                words = "several answers stand in it, and the last one may have been cut off"
                return self._rejected(Reason.TRUNCATED, (Issue("$", "truncated", words),))
            if self.pick == "error" or self._is_list() or not self._all_apart(group):
                words = f"{len(group)} different answers stand in it, and nothing says which one is meant"
                return self._rejected(Reason.AMBIGUOUS, (Issue("$", "several", words),))
            chosen.edits.append(Edit(f"picked-{self.pick}", Risk.INFERRED, chosen.start, chosen.end, "", "$"))
            if self.ceiling < Risk.INFERRED:
                return self._rejected(Reason.AMBIGUOUS, (Issue("$", "several", f"{len(group)} different answers"),))
        return self._accept(chosen)

    def _is_list(self) -> bool:
        return self.shape.allows("array") and not self.shape.allows("object") and not self.shape.anything

    def _in_lines(self, group: Sequence[Candidate[T]]) -> bool:
        """JSON Lines, or values with commas between them, where any JSON is welcome."""
        between = (self.text[one.end : two.start] for one, two in pairwise(group))
        return self.shape.anything and all("\n" in part or "," in part for part in between)

    def _all_apart(self, group: Sequence[Candidate[T]]) -> bool:
        """Whether words stand between the answers (a fence is a wall too)."""
        if group[0].rank <= FENCE:
            return True
        pairs = pairwise(group)
        return all(not _BETWEEN.fullmatch(self.text, one.end, two.start) for one, two in pairs)

    def _collect(self, group: list[Candidate[T]]) -> Outcome[T] | None:
        """Several values in a row, where the contract is a list of them."""
        if len(group) < 2 or self._all_apart(group) or not (self._is_list() or self._in_lines(group)):
            return None
        if self._is_list() and self.text[group[0].start] == "[":
            return None
        nodes: list[Node] = []
        edits: list[Edit] = []
        for candidate in group:
            parsed = Machine(self.text, candidate.start, self.shape.element(0), max_depth=self.max_depth).parse()
            if isinstance(parsed, Failure):
                return None
            nodes.append(parsed.node)
            edits += parsed.edits
        whole: Candidate[T] = Candidate(group[0].start, group[-1].end, group[0].rank)
        edits.append(Edit("collected", Risk.INFERRED, whole.start, whole.end, f"[{len(nodes)} values]", "$"))
        judge(whole, Parsed(list_of(nodes), whole.end, edits, cut=False), self.text, self.contract, self.ceiling)
        return self._accept(whole) if whole.fits else None

    def _accept(self, candidate: Candidate[T]) -> Outcome[T]:
        text = self.text
        edits = list(candidate.edits)
        code = "fence" if candidate.rank <= FENCE else "prose-around"
        for start, end in ((0, candidate.start), (candidate.end, len(text))):
            outside = text[start:end].strip(" \t\r\n")
            if outside:
                name = (
                    "bom"
                    if outside == "\ufeff"
                    else "odd-space"
                    if not outside.strip()
                    else "reasoning"
                    if self.scout.reasoning and not start
                    else code
                )
                edits.append(Edit(name, Risk.LOSSLESS, start, end, "", "$"))
        touches = not text[candidate.end :].strip()
        if self.truncated is True and touches and self.ceiling < Risk.LOSSY:
            return self._rejected(Reason.TRUNCATED, (Issue("$", "truncated", "the text is cut off right after it"),))
        brackets = candidate.node is not None and candidate.node.kind in (OBJECT, ARRAY)
        if brackets and not edits and find_json_end(text, candidate.start) is None:
            edits.append(Edit("odd-space", Risk.LOSSLESS, candidate.start, candidate.end, "", "$"))
        risk = worst(edits)
        trust = Trust.CLEAN if risk is None else (Trust.LOSSLESS, Trust.INFERRED, Trust.LOSSY)[risk]
        if candidate.valid is None:
            raise AssertionError("only a candidate that fits is accepted")
        log = RepairLog(edits, text, partial(self._tree, candidate), candidate.names)
        return Accepted(candidate.valid.value, trust, "first", log, text)

    def _tree(self, candidate: Candidate[T]) -> Node | None:
        """The nodes, for the paths of the repairs; of what was rewritten they are parsed when somebody looks."""
        if not candidate.rewritten:
            return candidate.node
        parsed = Machine(self.text, candidate.start, self.shape, max_depth=self.max_depth).parse()
        return None if isinstance(parsed, Failure) else parsed.node

    # --- rejecting --------------------------------------------------------------------------------------------

    def _reject(self) -> Outcome[T]:
        if self.flooded:
            return self._rejected(
                Reason.TOO_LARGE, (Issue("$", "candidates", "too many possible answers stand in it"),)
            )
        if not self.found:
            if self.scout.unclosed:
                issue = Issue("$", "reasoning", "the reasoning never ends, and no answer follows it")
                return self._rejected(Reason.TRUNCATED if self.truncated else Reason.NO_JSON, (issue,))
            declined = _DECLINED.search(self.text[:2_000])
            reason = Reason.REFUSED if declined else Reason.NO_JSON
            words = (
                "the model declined"
                if declined
                else "no JSON value stands in it"
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


def _bare_scalar(text: str) -> tuple[str, list[Edit]]:
    """The text without fence, quotes and emphasis around it."""
    body = text.strip().lstrip("\ufeff").strip()
    edits: list[Edit] = []
    fence = re.fullmatch(r"```[\w]*[ \t]*\n?(.*?)\n?```", body, re.S)
    if fence:
        body = fence[1].strip()
        edits.append(Edit("fence", Risk.LOSSLESS, 0, len(text), body, "$"))
    for _ in range(3):
        if len(body) > _LONGEST_SCALAR or not (
            found := re.fullmatch(r"(\*\*|__|[*_`\"'“‘])(.+?)(\1|[”’])[.!]?", body, re.S)
        ):
            break
        body = found[2].strip()
        edits.append(Edit("quotes", Risk.LOSSLESS, 0, len(text), body, "$"))
    return body, edits


def _boolean_word(body: str) -> bool | None:
    """The one boolean word of a text without a negation."""
    if len(body) <= 5:
        return None
    shape = Shape(choices=("true", "false"))
    found = match_choice(body, body, shape)
    return None if found is None else found.value == "true"
