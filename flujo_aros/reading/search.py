"""Try every place where an answer could stand, and decide between those that satisfy the contract.

The rule stands in the documentation ("Which candidate wins"): better places first; within one class apart by prose the
last one; what the rule cannot decide is AMBIGUOUS.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from math import isfinite
from typing import Any, Final, TypeVar

from flujo_aros.contract import TIMES, Invalid, Valid, mask_reasoning
from flujo_aros.json_data import is_dict, is_list, unescape
from flujo_aros.outcome import Accepted, Issue, Reading, Reason, Rejected, Risk, Trust
from flujo_aros.reading.candidate import Candidate, judge, read_strict
from flujo_aros.reading.choose import boolean_word
from flujo_aros.reading.edits import Edit, RepairLog, worst
from flujo_aros.reading.gather import NESTED, UNREADABLE, Gathering
from flujo_aros.reading.grown import as_json
from flujo_aros.reading.json_scan import find_json_end
from flujo_aros.reading.lines import list_of, read_lines
from flujo_aros.reading.locate import CODE, FENCE, FENCED, INLINE, LINES, Spot
from flujo_aros.reading.node import ARRAY, LITERAL, NUMBER, OBJECT, STRING, Node
from flujo_aros.reading.parser import Failure, Parsed, Parser
from flujo_aros.reading.remainder import Span, names_fields, prose_rest, rivalry
from flujo_aros.reading.runaway import MOST_BLANK
from flujo_aros.reading.scalars import FOREIGN, SURROGATE, read_number

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


class Search(Gathering[T]):
    """One reading of one text."""

    def run(self) -> Reading[T]:
        """The outcome. The one place that decides."""
        whole = self._whole_scalar()
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
        best = min(candidate.rank for candidate in fitting)
        group = [candidate for candidate in fitting if candidate.rank == best]
        chosen = group[0] if self.pick == "first" else group[-1]
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
                    if self.scout.reasoning and not start
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
        return prose_rest(self.text[: self.scout.ended_at], span, others, self.shape, lambda: self._json_of(candidate))

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
            if self.scout.unclosed:
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
