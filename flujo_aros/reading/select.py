"""Find every possible answer, check each against the contract, and decide between those that fit.

1. `run` tries its sources in turn: the whole text, the only fence, a JSON string, all brackets, quotes, lines,
and a scalar. The first source that has an outcome decides.
2. Brackets come from the scanner (`_next_candidate`). Each is tried in the cheapest way that leaves no doubt (`_try`):
   as it is, with local repairs, rewritten, with its scalars converted, by the parser. `_record_candidate` continues
   after its end.
3. `_decide` chooses. The rule (in the documentation under "Which answer wins"): higher-ranked places first; of several
   in one rank that are separated by prose, the last one. If the rule cannot decide, the reply is AMBIGUOUS.
4. `_accept` lets `remainder` check everything outside the value; `_reject` names the nearest candidate.

A streamed reply goes through the same loop (`grow`), with a `Following` for the candidate whose end has not arrived.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from math import isfinite
from operator import attrgetter
from typing import Final, Generic, Literal, NamedTuple, TypeVar

from flujo_aros.contract import (
    ANY,
    DECIMAL,
    NO_CHARACTER,
    TIMES,
    Contract,
    EventContract,
    Invalid,
    Shape,
    TypeValues,
    Valid,
    WrittenEvent,
    fold,
    has_many_digits,
    mask_reasoning,
    parse_json,
)
from flujo_aros.json_data import is_dict, is_list, unescape
from flujo_aros.outcome import Accepted, Draft, Issue, Reading, Reason, Rejected, Repair, Risk, Trust
from flujo_aros.reading import phrases, remainder, scanner
from flujo_aros.reading.candidate import (
    ESCAPED,
    ESCAPED_WITHIN,
    UNREADABLE,
    Candidate,
    Following,
    Region,
    accept_spliced,
    agrees,
    iter_splices,
    judge,
    judge_json,
    read_begun,
    read_scalars,
    read_strict,
    reject_above_ceiling,
    rewrite,
    rewrites,
)
from flujo_aros.reading.fit import has_required
from flujo_aros.reading.grammar import NeedMoreInput, expression
from flujo_aros.reading.node import (
    ARRAY,
    LITERAL,
    NUMBER,
    OBJECT,
    STRING,
    Edit,
    JsonExtent,
    Member,
    Node,
    RepairLog,
    find_json_end,
    json_extent,
    moved,
    plain,
    worst,
)
from flujo_aros.reading.notations import (
    as_objects,
    is_cut,
    question_in,
    read_items,
    read_lines,
    read_table,
    read_tags,
    read_toml,
    shows_names,
)
from flujo_aros.reading.parser import DEPTH, Failure, Parsed, Parser
from flujo_aros.reading.partial import NOTHING, JsonPreview, Preview, Rules, TextPreview, as_json, rewritten_fields
from flujo_aros.reading.payload import LenientParser, event_of, is_example
from flujo_aros.reading.remainder import Span
from flujo_aros.reading.runaway import MOST_BLANK
from flujo_aros.reading.scalars import ANNOUNCING, FOREIGN, SURROGATE, announced, boolean_word, name_words, read_number
from flujo_aros.reading.scanner import BULLET, CODE, FENCE, INLINE, LINES, Scanner
from flujo_aros.reading.stated import OFFERS, is_limited, statements, without_courtesies
from flujo_aros.reading.verdicts import find_verdict, stated_words

T = TypeVar("T")

# Possessive, so that nothing is tried twice: a row of slashes can be split into comments in too many ways.
BETWEEN: Final = expression(
    rf"(?:^[ \t]*+{BULLET}[ \t]|^[ \t]*+(?:---+|\*\*\*+|___+|===+)[ \t]*+$"
    r"|[\s,;]|(?>/\*.*?\*/)|//[^\n]*+|(?!))*+",
    re.M,
)
TAGS: Final = expression(r"\s*</([\w:-]{1,60})\s*>\s*<\1>\s*")
FENCES: Final = expression(r"(?:[\s,;]|(?:```|~~~)[\w+#.-]*+|(?!))*+")
_NUMBERED: Final = expression(
    r"[\s*#_>`~-]*+(?P<noun>[^\W\d_]{2,40})[ ]?(?:#|no\.?|nr\.?)?[ ]?(?P<number>\d{1,3})[\s*_:.)-]*+"
    r"(?:(?:```|~~~)\w*+\s*+)?"
)
"""The heading of one of several items, from the item before it: `**Ticket 2:**`."""
_ITEMS: Final = phrases.word_set(
    "item entry record row element object eintrag datensatz objekt élément objet enregistrement elemento objeto"
    " registro"
)
CLOSER: Final = expression(r"\s*[}\]]")
_CITE_QUOTES: Final = ('"', "'", "“", "‘", "`")
_CONTAINERS: Final = (("object", "object"), ("array", "list"))
_UNABLE: Final = r"I (?:can(?:['’]?t|not| not)|am (?:unable|not able) to|won['’]t|must decline)"
_CANNOT: Final = expression(rf"\b{_UNABLE}\b", re.I)
_SHOWS_FORM: Final = expression(
    rf"\b(?:{_UNABLE}|(?<!csv )(?<!tsv )(?<!xml )(?<!table )(?<!tabular )(?<!markdown )(?<!requested )"
    r"(?:format|syntax|template|structure|formato?|modelo|plantilla|gabarit|vorlage|muster|schema)\b[^\n]{0,80}[:：]"
    r"\s*(?:```\w*\s*)?\Z)",
    re.I,
)
_SHOWS_CALL: Final = expression(r"^[ \t]*#[^\n]*\w\(|=\s*[\"'](?:\.\.\.|…)[\"']", re.M)
_PRINTS: Final = expression(
    r"^(?:print|console\.log)\((?:json\.dumps\(|JSON\.stringify\()?[A-Za-z_]\w{0,60}"
    r"(?:,[ ]?(?:[a-z_]{1,20}=\w{1,20}|null,[ ]?\d)){0,4}\){1,2};?[ \t]*$",
    re.M,
)
"""A statement that prints the answer, `print(json.dumps(result, indent=2))`, and says nothing about it."""
_DECLINED: Final = expression(
    rf"\b(?:{_UNABLE}|I(?:['’]m| am) (?:sorry|unable|not able)|as an AI\b|I['’]d rather not"
    r"|I (?:will not|apologi[sz]e|refuse)|lo siento|es tut mir leid|je (?:ne peux pas|suis désolé)"
    r"|(?:ich (?:kann|darf)|(?:kann|darf|möchte) ich) (?:[^\W\d]+ ){0,5}(?:nicht|keine)"
    r"|(?:non posso|não posso|no puedo) (?:aiut|rispond|forn|soddisf|ajud|respond|atend|ayud|proporcion)[^\W\d]*"
    r"|(?:kan ik|ik kan) (?:[^\W\d]+ ){0,3}niet|nie mogę (?:[^\W\d]+ ){0,2}(?:pomóc|odpowiedzieć|udzielić|spełnić)"
    r"|не могу (?:[^\W\d]+ ){0,2}(?:помочь|ответить|выполнить|предоставить)|yardımcı olam[^\W\d]+|yanıtlayam[^\W\d]+)\b"
    r"|抱歉|对不起|(?:无法|不能)(?:协助|提供|回答|满足|帮助)|申し訳|(?:お手伝い|お答え|対応)できません|수 없습니다",
    re.I,
)
_LONGEST_SCALAR: Final = 20_000
_JSON_FENCE: Final = expression(
    r"(?:[^.!?。\d`~\[{\n]{1,80}[:：]\s*)?(?P<fence>```json[ \t]*\n[^`]*\n[ \t]*```)\s*"
    rf"(?:{OFFERS.pattern}[^\n`]*)?",
    re.I,
)
"""A fence that is named JSON, with no more than an announcement before and an offer after it."""
_ENTITY: Final = expression(r"&(?:quot|#34|#x22);")
_QUOTE_ESCAPED: Final = expression(r"\\[\"']|&(?:quot|#34|#x22);")
_MORE_JSON: Final = expression(r"\s*(?:,\s*[\"{\[]|[{}\[\]])")
_EMPTY: Final = expression(r"[{}\[\]\s]*")

_QUOTES: Final = "\"'“”‘’«»„"

_BLANK_LINE: Final = expression(r"\n[ \t]*\n\s*")
_OBJECT_ON_LINE: Final = expression(r"^[ \t]*\{", re.M)
_BROKE_OFF: Final = expression(
    r"(?:(?:sorry|oops|apologies|my apologies|désolée?|lo siento|perdón)\b[^\w\n]{0,3}\s?)?"
    r"(?:that|it|this|(?:my|the) (?:last |previous )?(?:answer|reply|response|output|json)|la réponse|la respuesta)?"
    r" ?(?:was|got|is|a été|se)? ?(?:cut off|cut short|interrupted|truncated|incomplete|coupée|interrompue|cortó)"
    r"[.!:;,–—-]{0,2}\s*",
    re.I,
)
"""A sentence that says that the answer before it broke off."""
_WIDE: Final = expression(r"[｛｝［］＂]")
_STRING_OR_WIDE: Final = expression(
    r"\\.|\"(?:[^\"\\]|\\.|(?!))*+\"|“[^“”]*+”|＂(?P<quoted>[^＂\"\\]*+)＂|(?P<wide>[｛｝［］])", re.S
)
_NARROW: Final = str.maketrans("｛｝［］", "{}[]")


def _as_narrow(found: re.Match[str]) -> str:
    """Return a string or a bracket with ASCII quotes or brackets around the same characters."""
    return (
        f'"{found["quoted"]}"' if found["quoted"] is not None else found[0].translate(_NARROW if found["wide"] else {})
    )


NOTATIONS: Final = {
    "key-value-lines": read_lines,
    "list-items": read_items,
    "field-tags": read_tags,
    "table": read_table,
    "toml": read_toml,
}
_HOLDS_BRACKETS: Final = (read_tags, read_toml)
"""Notations in which brackets at the beginning of a line belong to the answer."""
_MARKED: Final = (read_tags, read_table, read_toml)
"""Notations in which a refusal may only show the expected format."""
_NO_ARGUMENTS: Final = frozenset({"unquoted-value", "call-around", "ignored_key", "near_miss_key", "moved_key"})
"""Repairs that show that a call is not the answer: a variable in place of a value, or an argument with a different
name."""
_NEAREST: Final = "truncated", "ambiguous", "invalid", "malformed", "too_large", "echoed_schema"
"""Reasons of rejected candidates, beginning with those that are closest to an answer."""
_SPAN_OF: Final = attrgetter("start", "end")
_QUICK: Final = 2
"""The maximum number of candidates tried on the fast path: each attempt scans to the end of the text."""
NESTED: Final = 2

Pick = Literal["last", "first", "error"]


class Options(NamedTuple):
    """The options of a call, and known facts about its text."""

    risk: Risk | None = None
    """The highest risk allowed, or None for the contract's own limit."""
    truncated: bool | None = None
    pick: Pick = "last"
    max_depth: int = DEPTH
    max_candidates: int = 64
    refused: bool = False
    """Whether the entire text is valid JSON that does not satisfy the contract."""


class Search(Generic[T]):
    """One reading of one text: its candidates, each checked against the contract, and the decision between them.

    The text is complete (`run`), or it still grows (`grow`). The loop and the rules are the same. In a streamed reply a
    candidate is read as its characters arrive, and decisions that more text could change wait. If only the complete
    text can decide, the search becomes `blind` and shows nothing more until the end.
    """

    flooded = False
    """Whether there are more candidates than the limit allows, so that the last one is unknown."""
    in_rows = 0
    """The number of candidates directly after another one, like JSON Lines. They do not count towards the limit."""
    at = 0
    """The position from which the next candidate may begin."""
    before = 0
    """The end of the last candidate."""
    # Of a streamed reply:
    blind = False
    """Whether only the complete text can decide."""
    current: Candidate[T] | None = None
    """The candidate whose end has not arrived."""
    hides = False
    """Whether another answer may begin in the part of that candidate that cannot be read yet."""
    latest: Candidate[T] | None = None
    """The last candidate that was read; later text may still rule it out."""
    unreadable: Candidate[T] | None = None
    """The last candidate that could not be read. Its preview stays until there is a better one."""
    begun = False
    size = 0
    written: TextPreview | None = None
    """The text itself, if that is the value."""

    def __init__(
        self, text: str, contract: Contract[T], options: Options, *, nested: int = 0, growing: bool = False
    ) -> None:
        self.text = text
        self.contract = contract
        self.shape = contract.shape
        self.options = options
        risk, self.truncated, self.pick = options[:3]
        self.ceiling = contract.risk if risk is None else risk
        self.refused_at = len(text) - len(text.lstrip()) if options.refused else -1
        """The start of a value that does not satisfy the contract as written."""
        self.quick = options.max_depth >= DEPTH
        """The C parsers support only one depth limit, their own."""
        self.nested = nested
        self.scanner = Scanner(text, contract.shape, growing=growing)
        self.budget = 8 * len(text) + 4_096
        self.growing = growing
        self.found: list[Candidate[T]] = []
        self.rewrites: list[int] = []
        """The positions at which the fast path was tried."""
        self.answers: list[Candidate[T]] = []
        """The candidates that satisfy the contract."""
        self.unsure: list[int] = []
        """The starts of candidates that are not plain JSON: later text may show that they are escaped."""
        if growing and self.shape.is_scalar:
            self.blind = True
            self.written = TextPreview(begun=True) if self._is_text() else None

    def run(self) -> Reading[T]:
        """Return the outcome of the first source that has one. `_choose_bracketed` considers the
        candidates from all places.
        """
        for source in (
            self._whole_scalar if self.shape.is_scalar else self._whole_object,
            self._read_only_fence,
            self._read_encoded,
            self._choose_bracketed,
            self._read_restart,
            self._read_wide,
            self._read_only_field,
            self._read_call,
            self._read_quoted,
            self._read_block_quote,
            self._read_lines,
            self._scalar_in_union,
        ):
            outcome = source()
            if outcome is not None:
                return outcome
        return self._reject()

    def _whole_object(self) -> Reading[T] | None:
        """Read a text that is one JSON object in which only scalars have to be converted."""
        text = self.text
        if not self.options.refused or not (text[0] == "{" and text[-1] == "}"):
            return None
        candidate = Candidate[T](0, len(text), LINES)
        if not read_scalars(candidate, text, self.contract, self.ceiling):
            return None
        self.found.append(candidate)
        return self._accept(candidate)

    def _read_only_fence(self) -> Reading[T] | None:
        """Read valid JSON in the only place of the text where an answer can begin, as in most replies with a fence."""
        may_have_one = "`" in self.text and self.quick and self.options.max_candidates
        place = scanner.lone_fence(self.text) if may_have_one else None
        if place is None:
            return None
        start, end = place
        valid = read_strict(self.text[start:end], self.contract)
        if valid is None:
            self.refused_at = start
            return None
        return self._decide_single(Candidate(start, end, FENCE, valid))

    def _choose_bracketed(self) -> Reading[T] | None:
        """Decide between all places where a bracket opens an answer."""
        self._try_without_opener()
        self._read_available()
        if self.flooded:
            return self._reject()
        if len(self.found) == 1 and self.found[0].rank != INLINE and not self.scanner.reasoned_to:
            return self._accept(self.found[0]) if self.found[0].fits else None
        inline = any(candidate.rank == INLINE for candidate in self.found)
        may_be_lines = inline and all(self._is_known_line(candidate.start) for candidate in self.found)
        if may_be_lines and (lines := self._read_lines()) is not None:
            return lines
        if inline and (declined := _CANNOT.search(self.text)) is not None:
            self.found = [c for c in self.found if not self._is_illustration(c, declined.end())]
        if self.scanner.reasoned_to:
            self.found = [candidate for candidate in self.found if candidate.start >= self.scanner.reasoned_to]
        fitting = [candidate for candidate in self.found if candidate.fits]
        if len(fitting) == len(self.found) == 1:
            return self._accept(fitting[0])
        return self._decide(fitting) if fitting else None

    def _read_only_field(self) -> Reading[T] | None:
        """Read a list that is the only candidate as the only field of the object, if its items are objects or choices
        that belong there.
        """
        shape = self.shape
        names = shape.required or shape.properties.keys()
        lists = [name for name, field in shape.properties.items() if field.allows("array")]
        if len(self.found) != 1 or len(lists) != 1 or [*names] != lists or shape.allows("array"):
            return None
        bare = self.found[0]
        if bare.rank == INLINE or self.text[bare.start] != "[":
            return None
        field = shape.properties[lists[0]]
        parsed = Parser(self.text, bare.start, field, max_depth=self.options.max_depth).parse()
        distinctive = field.element(0).required or field.element(0).choices
        if isinstance(parsed, Failure) or not (distinctive and parsed.node.value) or bare.has_repaired_brackets:
            return None
        node = Node(OBJECT, [Member(lists[0], bare.start, parsed.node)], bare.start, parsed.end)
        code = Edit("wrapped-in-object", Risk.INFERRED, bare.start, parsed.end, "{…}", "$")
        whole = self._of_node(node, [*parsed.edits, code], bare.rank)
        return self._accept(whole) if whole.fits else None

    def _try_without_opener(self) -> None:
        """Try a text without its first brace, `"a": 1, "b": {}}`. This comes first: its contents look like answers."""
        place = scanner.key_without_opener(self.text)
        if place is None:
            return
        start = place.start
        self.scanner.reasoning = not place.first and place.rank == LINES
        self.text, whole = f"{self.text[:start]}{{{self.text[start:]}", self.text
        candidate: Candidate[T] = Candidate(start, start + 1, place.rank)
        parser = self._parser(start)
        parser.lacks_opener = place.first
        self._try(candidate, quick=False, read=(parser, parser.parse()))
        self.text = whole
        edits = [e._replace(start=max(start, e.start - 1), end=max(start, e.end - 1)) for e in candidate.edits]
        candidate.edits = [*edits, Edit("missing-opener", Risk.INFERRED, start, start, "{", "$")]
        if candidate.node is not None:
            candidate.node = moved(candidate.node, -1)
        candidate.end = max(candidate.end - 1, start)
        if candidate.fits and self.ceiling < Risk.INFERRED:
            reject_above_ceiling(candidate, candidate.edits[-1:])
        if candidate.fits and _MORE_JSON.match(self.text, candidate.end):
            candidate.mark_rejected(Reason.MALFORMED, Issue("$", "fragment", "more follows after its end"))
        if candidate.fits or place.first:
            self.found.append(candidate)
            self.at = self.before = len(self.text) if place.first else candidate.end

    # --- the candidates in order --------------------------------------------------------------------------------------

    def _read_available(self) -> None:
        """Read all text that has arrived."""
        while not self.blind and (candidate := self.current or self._next_candidate()) is not None:
            self.current = candidate
            if (read := self._read(candidate)) is None:
                return
            self.current = None
            self._record_candidate(read)

    def _next_candidate(self) -> Candidate[T] | None:
        """Find the next place where an answer may begin."""
        place = self.scanner.next(self.at)
        if self.growing and self.scanner.reasoned_to:
            self.answers = [candidate for candidate in self.answers if candidate.start >= self.scanner.reasoned_to]
        if place is None:
            return None
        if len(self.found) - self.in_rows >= self.options.max_candidates or self.budget < 0:
            self.flooded = self.blind = True
            return None
        start, rank = place
        candidate: Candidate[T] = Candidate(start, start + 1, rank)
        earlier = None
        if self.found and self.pick == "last":
            earlier = next((known for known in reversed(self.found) if known.fits), None)
        if earlier is not None:
            candidate.replaces = remainder.is_replacement(self.text, start, earlier.end)
            candidate.compared = remainder.is_compared(self.text, start, earlier.end)
        if self.growing:
            lost = scanner.key_without_opener(self.text) if not self.found else None
            if (lost is not None and lost.start < start) or ESCAPED.match(self.text, start):
                self.blind = True
                return None
            return self._prepare_for_preview(candidate)
        return candidate

    def _read(self, candidate: Candidate[T]) -> Candidate[T] | None:
        """Try a candidate and find its end, or return None if only more text can show that."""
        following = candidate.following
        if following is None:
            self._try(candidate)
        elif not candidate.fits and following.region is None and not self._parse_on(candidate, following):
            return None
        # The candidate is inside a comment, and so is the text after it.
        stopped = candidate.reason is Reason.AMBIGUOUS and candidate.node is None
        if candidate.reason not in UNREADABLE and not stopped:
            return candidate
        region = Region(candidate.start, candidate.end, fenced=self.scanner.fence is not None)
        if following is not None:
            region = following.region = following.region or region
        end = region.end(self.text)
        if following is not None:
            if end is None:
                return None
            again = self._try(candidate.fresh_copy())  # valid JSON is read as such, whatever the parser had to guess
            if again.fits:
                return again
        candidate.end = len(self.text) if end is None else end
        return candidate

    def _record_candidate(self, candidate: Candidate[T]) -> None:
        """Record a candidate that has been read, and continue after it."""
        if self.latest is not None:
            self._look_back(self.latest)
        fits = candidate.fits
        if fits and self._is_fragment(candidate, self.before):
            fits, words = False, "it is part of something that cannot be read"
            candidate.mark_rejected(Reason.MALFORMED, Issue("$", "fragment", words))
        end = max(candidate.end, candidate.start + 1)
        self.at = self.before = end
        self.budget -= end - candidate.start + 64
        if fits:
            is_prose = candidate.rank == INLINE and self._is_prose(candidate)
        else:
            is_prose = scanner.is_citation(self.text, candidate.start, candidate.end)
        cited = is_prose and scanner.is_citation(self.text, candidate.start, candidate.end)
        self.scanner.cited = self.scanner.cited or cited
        counts = not is_prose and not scanner.is_quoted(self.text, candidate.start, candidate.end)
        if counts:
            is_row = fits and not self.growing and not (self.shape.only_lists and self.text[candidate.start] == "[")
            if is_row and self.found and self._continues_row(self.found[-1], candidate):
                self.in_rows += 1
            self.found.append(candidate)
            self.scanner.answered = self.scanner.answered or fits
            may_hold_numbers = self.text[candidate.start] == "[" and self.shape.element(0).allows("integer")
            self.scanner.numbered = self.scanner.numbered or (fits and may_hold_numbers)
        if self.growing:
            self._show(candidate, counts=counts)

    def _continues_row(self, last: Candidate[T], candidate: Candidate[T]) -> bool:
        """Return whether a candidate is the next of the rows that a list, or a contract for any value, collects."""
        row = self.shape.only_lists or self.shape.anything
        return row and last.fits and self._is_in_a_row(last, candidate)

    def _is_prose(self, candidate: Candidate[T]) -> bool:
        """Return whether brackets among words are empty, or contain a source number at the start of a line."""
        start, end = candidate.start, candidate.end
        if _EMPTY.fullmatch(self.text, start, end):
            if self.found and self._continues_row(self.found[-1], candidate):
                return False
            announced = self.text[:start].rstrip(" \t\r\n`*")[-1:] in (":", "：")  # `None found: []`
            return self.growing or not (announced and self.shape.only_lists) or remainder.has_words(self.text[end:])
        return (self.shape.anything or "," not in self.text[start:end]) and scanner.is_citation(self.text, start, end)

    def _is_fragment(self, candidate: Candidate[T], before: int) -> bool:
        """Return whether a candidate directly follows something unreadable, or members without brackets."""
        last = self.found[-1] if self.found else None
        broken = last is not None and last.end == before and last.reason in (Reason.MALFORMED, Reason.TRUNCATED)
        if last is not None and last.end == before and last.reason is Reason.AMBIGUOUS:
            # the text is more of the same object, or another answer
            broken = bool(self.text[before : candidate.start].strip())
        if self.shape.anything and scanner.is_member_value(self.text, candidate.start, candidate.end):
            return True
        return scanner.is_fragment(self.text, before, candidate.start, candidate.end, broken=broken)

    def _is_illustration(self, candidate: Candidate[T], declined_at: int) -> bool:
        """Return whether a value in a sentence after a refusal only shows the form of an answer."""
        before = self.text[: candidate.start].rstrip()
        return candidate.rank == INLINE and candidate.start > declined_at and before[-1:] not in (":", "：")

    # --- one candidate --------------------------------------------------------------------------------------------

    def _try(
        self, candidate: Candidate[T], *, quick: bool = True, read: tuple[Parser, Parsed | Failure] | None = None
    ) -> Candidate[T]:
        """Read a candidate in the cheapest unambiguous way. `read` means that the parser has already tried."""
        text, start = self.text, candidate.start
        extent = json_extent(text, start)
        end = extent.end
        is_json = end is not None and self.quick and not scanner.has_more_members(text, end)
        if end is not None and is_json and start != self.refused_at:
            valid = read_strict(text[start:end], self.contract)
            if valid is not None:
                candidate.end, candidate.valid = end, valid
                return self._lower_rank_inline(candidate)
        may_patch = quick and end is None and self._may_patch(start)
        if may_patch and (self._repair_locally(candidate, extent) or self._repair_everywhere(candidate)):
            return self._lower_rank_inline(candidate)
        if end is None and ESCAPED.match(text, start) and self._decode_escapes(candidate):
            return self._lower_rank_inline(candidate)
        candidate.end = end or candidate.end
        if is_json and read_scalars(candidate, text, self.contract, self.ceiling):
            return self._lower_rank_inline(candidate)
        if read is None:
            parser = self._parser(start)
            read = parser, parser.parse()
        return self._judge_parsed(candidate, *read)

    def _may_patch(self, start: int) -> bool:
        """Return whether the C parsers may read a candidate after a repair. Only the tolerant parser keeps digits of a
        `Decimal` that a float loses.
        """
        doubled = self.text.startswith("{{", start)
        digits = self.shape.has_decimals and has_many_digits(self.text)
        return self.quick and not (self.shape.has_risks or doubled or digits)

    def _repair_locally(self, candidate: Candidate[T], extent: JsonExtent) -> bool:
        """Repair a few places locally, and accept the result only if it is strictly valid."""
        text, start = self.text, candidate.start
        if self.contract.counts is not None:
            return False
        for found in iter_splices(text, start, extent, self.shape, ends=self.truncated is False):
            if scanner.has_more_members(text, found.end) or ESCAPED.match(text, start):
                return False
            valid = accept_spliced(found, self.contract, self.ceiling)
            if valid is not None:
                candidate.end, candidate.edits, candidate.valid = found.end, found.edits, valid
                return True
        return False

    def _repair_everywhere(self, candidate: Candidate[T], stop: int | None = None) -> bool:
        """Repair common damage everywhere at once, and accept the result only if it is strictly valid. `stop` is its
        end, if known.
        """
        text, start = self.text, candidate.start
        if start in self.rewrites or len(self.rewrites) >= _QUICK:
            return False
        self.rewrites.append(start)
        if stop is None:
            fence = text.find("```", start) if self.scanner.fence is not None else -1
            stop = scanner.last_bracket(text, start, len(text) if fence < 0 else fence)
        if not stop:
            return False
        written, risk = rewrite(text[start:stop]) or ("", Risk.LOSSY)
        if not written or risk > self.ceiling or scanner.has_more_members(text, stop):
            return False
        valid = judge_json(written, self.contract)
        if not isinstance(valid, Valid):
            return False
        candidate.end, candidate.valid, candidate.rewritten = stop, valid, risk
        return True

    def _parser(self, start: int, *, growing: bool = False) -> Parser:
        counts = self.contract.counts
        return (Parser if counts is None else LenientParser)(
            self.text,
            start,
            self.shape,
            max_depth=self.options.max_depth,
            ends=self.truncated is False,
            doubled=self.text.startswith("{{", start),
            growing=growing,
            counts=counts,
        )

    def _judge_parsed(self, candidate: Candidate[T], parser: Parser, parsed: Parsed | Failure) -> Candidate[T]:
        if isinstance(parsed, Parsed) and parser.doubled:
            parsed.edits.append(Edit("doubled-braces", Risk.INFERRED, candidate.start, parsed.end, "{…}"))
        self.budget -= parser.looked // 2
        judge(candidate, parsed, self.text, self.contract, self.ceiling)
        self._drop_if_more_members_follow(candidate)
        return self._lower_rank_inline(candidate)

    def _drop_if_more_members_follow(self, candidate: Candidate[T]) -> None:
        if candidate.fits and scanner.has_more_members(self.text, candidate.end):
            candidate.mark_rejected(Reason.MALFORMED, Issue("$", "fragment", "members follow after its end"))

    def _lower_rank_inline(self, candidate: Candidate[T]) -> Candidate[T]:
        if candidate.rank == LINES and candidate.fits and not scanner.ends_line(self.text, candidate.end):
            candidate.rank = INLINE
        return candidate

    def _decode_escapes(self, candidate: Candidate[T]) -> bool:
        """Return whether the value fits once its escapes (`{\"a\": 1}`) or HTML entities are decoded."""
        text, start = self.text, candidate.start
        if self.nested >= NESTED:
            return False
        if start and text[start - 1] == '"':
            end = find_json_end(text, start - 1)
            if end is not None:  # a JSON string that holds the answer
                return self._read_inner(candidate, json.loads(text[start - 1 : end]), start - 1, end, "double-encoded")
        last = max(text.rfind("}"), text.rfind("]")) + 1
        if any(found.start() >= last for found in _QUOTE_ESCAPED.finditer(text, start)):
            last = len(text.rstrip())  # the last closer is missing, and more of the answer follows the previous one
        if last <= start:
            return False
        part = text[start:last]
        if _ENTITY.search(part[:200]) is not None:
            return self._read_inner(candidate, html.unescape(part), start, last, "html-entities")
        return self._read_inner(candidate, unescape(part).value, start, last, "escaped")

    def _read_inner(self, candidate: Candidate[T], inner: str, start: int, end: int, code: str) -> bool:
        outcome = self._search_within(inner)
        if isinstance(outcome, Accepted):
            candidate.start = start
            self._adopt(candidate, outcome, end, code)
        return candidate.fits

    def _adopt(self, candidate: Candidate[T], outcome: Accepted[T], end: int, code: str) -> Candidate[T]:
        """Return the candidate, with the value read from the text inside it."""
        start = candidate.start
        candidate.end = end
        candidate.edits = [Edit(code, Risk.INFERRED, start, end, "…")]
        candidate.edits += [Edit(r.code, r.risk, start, end, r.after, r.path) for r in outcome.repairs]
        if self.ceiling < Risk.INFERRED:
            return reject_above_ceiling(candidate, candidate.edits[:1])
        candidate.valid = Valid(outcome.value)
        return self._lower_rank_inline(candidate)

    # --- a streamed reply ---------------------------------------------------------------------------------------------

    @property
    def pending_start(self) -> int:
        """The start of the part that may still change."""
        following = self.current.following if self.current is not None else None
        return self.scanner.seen if following is None else following.pending_start()

    @property
    def in_open_text(self) -> bool:
        """Whether continuing costs only the new text: it ends inside a string, or nothing is being read."""
        if self.blind:
            return True
        following = self.current.following if self.current is not None else None
        return following is not None and following.parser.opened is not None

    def grow(self, text: str) -> None:
        """Continue with the text that has arrived."""
        before, self.size = self.size, len(text)
        self.budget += 8 * (self.size - before)
        self.text = self.scanner.text = text
        if self.written is not None:
            self.written.add(text[before:])
        elif self.begun or self._begins():
            if self.unsure and "&quot;" in text[max(0, before - 5) :]:
                self.blind = self.blind or any(ESCAPED.match(text, start) for start in self.unsure)
            if self.answers and not self.blind:
                self.blind = scanner.begins_without_opener(text, max(0, before - ESCAPED_WITHIN))
            self._read_available()
            if self.latest is not None:
                self._look_back(self.latest)
            if self.pick == "first" and self.answers:
                # Unreadable text may hide the end of reasoning, of which the first answer was then a part.
                unseen = self.scanner.seen if self.current is None else self.current.start
                self.blind = self.blind or scanner.ends_reasoning(text, max(unseen, before - scanner.LONGEST_MARK))
        # With a single reference to the text, CPython appends in place.
        self.text = self.scanner.text = ""
        for candidate in (self.current, self.latest):
            if candidate is not None and candidate.following is not None:
                candidate.following.release_text()

    def shown(self) -> Preview | None:
        """Return the current preview, chosen by the same rule as the outcome."""
        if self.written is not None:
            return self.written
        fitting = [candidate for candidate in self.answers if candidate.fits] if self.answers else []
        best = self._best_ranked(fitting)[1] if fitting else None
        current = self.current if self.current is not None and self.current.reason is None else None
        rival = current is not None and self._wins(current, best)
        following = current.following if current is not None else None
        if rival and following is not None and following.begun and not following.quoted:
            return following.preview
        shown = best or self.unreadable
        if shown is None or shown.following is None:
            return None
        if best is not None:
            begins = self.scanner.waits and (self.scanner.fence is not None or best.rank > FENCE)
            unknown = self.blind or (self.current is not None and (current is None or self.hides))
            shown.following.preview.set_doubtful(in_doubt=unknown or (self.pick != "first" and (begins or rival)))
        return shown.following.preview

    def _wins(self, candidate: Candidate[T], best: Candidate[T] | None) -> bool:
        """Return whether a candidate that is still being read is the answer, if it turns out to be one."""
        if best is None:
            return True
        if candidate.replaces and candidate.rank < CODE:
            return True
        return candidate.rank < best.rank or (candidate.rank == best.rank and self.pick != "first")

    def _begins(self) -> bool:
        """Return whether the text has begun with something that can be previewed."""
        body = self.text.lstrip()
        try:
            self.blind = self.blind or scanner.KEY_FIRST.matches(body, 0, growing=True)
        except NeedMoreInput:
            return False
        self.begun = bool(body)
        return self.begun

    def _prepare_for_preview(self, candidate: Candidate[T]) -> Candidate[T]:
        """Return a candidate that may be incomplete, prepared for a preview. A complete one is read directly."""
        text, start = self.text, candidate.start
        preview = JsonPreview(text, self.shape, self._rules(candidate))
        quoted = start > 0 and text[start - 1] in _QUOTES
        candidate.following = following = Following(self._parser(start, growing=True), preview, quoted)
        if find_json_end(text, start) is None:
            return candidate
        whole = self._try(candidate.fresh_copy())
        following.value = self._json_shown(whole) if whole.fits else NOTHING
        return candidate if following.value is NOTHING else whole

    def _parse_on(self, candidate: Candidate[T], following: Following) -> bool:
        """Read the part of a candidate that has arrived. Returns False if more of the text, or all of it, is needed."""
        text, start, preview = self.text, candidate.start, following.preview
        parsed = following.continue_reading(text)
        if not isinstance(parsed, Failure):
            preview.follow(following.parser)
        else:
            preview.give_up()
            if following.begun and not following.quoted:
                self.unreadable = candidate
        if parsed is None:
            self.hides = following.may_be_broken(text)
            preview.set_doubtful(in_doubt=bool(self.answers) or self.hides or following.may_be_escaped(text, start))
            return False
        preview.set_doubtful(in_doubt=False)
        is_sure = isinstance(parsed, Parsed) and not parsed.edits
        if is_sure or (isinstance(parsed, Parsed) and find_json_end(text, start) is not None):
            self._try(candidate, read=(following.parser, parsed) if is_sure else None)
            return True
        if ESCAPED.match(text, start):
            preview.give_up()
            self.blind = True
            return False
        self.unsure = [other for other in self.unsure if len(text) - other < ESCAPED_WITHIN] + [start]
        if isinstance(parsed, Parsed) and self._may_patch(start) and self._repair_everywhere(candidate, parsed.end):
            self._lower_rank_inline(candidate)
        else:
            self._judge_parsed(candidate, following.parser, parsed)
        return True

    def _rules(self, candidate: Candidate[T]) -> Rules:
        """Return the rules for the preview of a candidate, such as whether anything in it is final before its end."""
        contract, start = self.contract, candidate.start
        typed = isinstance(contract.values, TypeValues)
        kinds = contract.kinds if isinstance(contract, EventContract) else ()
        in_a_row = bool(self.found) and BETWEEN.fullmatch(self.text, self.before, start) is not None
        lists = self.shape.anything or self.shape.only_lists
        if in_a_row and lists:  # the rows may be collected, so that this value is the first of a list
            for answer in self.answers:
                if answer.following is not None:
                    answer.following.preview.give_up()
        only_objects = self.shape.only_lists and self.text[start] == "{"
        blank = typed and self.shape is ANY
        of_a_line = candidate.rank == INLINE and self._is_known_line(start)
        # After words, an event may only show its form in a sentence that declines; then those words are the event.
        words_before = bool(self.text[self.scanner.reasoned_to : start].strip())
        said = isinstance(contract, EventContract) and candidate.rank > FENCE and words_before
        whole = (in_a_row and lists) or only_objects or blank or candidate.compared or contract.checks
        finals = not (whole or of_a_line or said)
        return Rules(typed=typed, finals=finals, kinds=kinds, rewritten=rewritten_fields(contract.values))

    def _is_known_line(self, start: int) -> bool:
        """Return whether a value is on the line of a requested key, so that the reply may consist of such lines."""
        line = self.text[self.text.rfind("\n", 0, start) + 1 : start]
        return bool(self.shape.required) and self.shape.knows(line.partition(":")[0])

    def _show(self, candidate: Candidate[T], *, counts: bool) -> None:
        """Show the value of a candidate that has been read."""
        following = candidate.following
        if following is None:
            return
        self.latest = candidate
        counts = counts and not self._is_example(candidate)
        if counts and candidate.fits:
            self.answers.append(candidate)
            following.preview.finish(self._json_shown(candidate) if following.value is NOTHING else following.value)
            return
        following.preview.give_up()
        if counts and not following.quoted:
            self.unreadable = candidate

    def _is_example(self, candidate: Candidate[T]) -> bool:
        contract, valid = self.contract, candidate.valid
        if not isinstance(contract, EventContract) or valid is None or not isinstance(valid.value, WrittenEvent):
            return False
        return is_example(self.text, candidate.start, valid.value.text, contract)

    def _json_shown(self, candidate: Candidate[T]) -> object:
        """Return the JSON of a candidate's value."""
        shown = NOTHING if candidate.following is None else candidate.following.preview.whole
        value: object = None if candidate.valid is None else candidate.valid.value
        if isinstance(self.contract, EventContract) and isinstance(value, WrittenEvent):
            value = event_of(value, self.contract)
        return as_json(value, shown)

    def _look_back(self, candidate: Candidate[T]) -> None:
        """Drop the last candidate if later text rules it out: more members, or words on its line."""
        if not candidate.fits:
            return
        self._drop_if_more_members_follow(candidate)
        self._lower_rank_inline(candidate)
        if scanner.is_quoted(self.text, candidate.start, candidate.end):
            candidate.mark_rejected(Reason.MALFORMED, Issue("$", "quoted", "it is a quotation"))
            self.found = [known for known in self.found if known is not candidate]
        if len(self.text) > candidate.end + 400 or (self.current is not None and candidate.rank == INLINE):
            self.latest = None

    # --- complete texts -----------------------------------------------------------------------------------------------

    def _whole_scalar(self) -> Reading[T] | None:
        """Read the text as written for a text contract; for a scalar contract, a value only if it
        is the entire text.
        """
        if self.truncated is True and not (self._is_text() and self.ceiling >= Risk.LOSSY):
            return Rejected(Reason.TRUNCATED, (Issue("$", "truncated", "the text is cut off"),), self.text)
        if self._is_text() and self.shape.format not in TIMES:
            return self._text_as_written()
        written = mask_reasoning(self.text, unopened=True)
        text = without_courtesies(written)
        if (alone := self._read_bare_json(self.text) or self._read_bare_json(text)) is not None:
            return self._decide_single(alone)
        if (whole := self._scalar(Span(0, len(text)), text)) is None:
            return Rejected(Reason.NO_JSON, (Issue("$", "empty", "the reply is empty"),), self.text)
        if not whole.fits and (text.lstrip()[:1] in ("{", "[") or scanner.lone_fence(text) is not None):
            return None
        chosen = whole if whole.fits else self._find_stated_scalar(text)
        if chosen is None:  # the issues quote the whole reply, courtesies included
            again = self._scalar(Span(0, len(written)), written)
            self.found.append(whole if again is None or again.fits else again)
            return self._reject()
        self.found.append(chosen)
        return self._decide([chosen])

    def _is_text(self) -> bool:
        return self.shape.types == frozenset({"string"}) and self.shape.choices is None

    def _text_as_written(self) -> Reading[T]:
        verdict = self.contract.validate(self.text)
        if isinstance(verdict, Invalid):
            return Rejected(Reason.INVALID, verdict.issues, self.text)
        if self.truncated is not True:
            return Accepted(verdict.value, Trust.CLEAN, "first", (), self.text)
        cut = Repair("truncated", Risk.LOSSY, "$", (len(self.text), len(self.text)), "", "")
        return Accepted(verdict.value, Trust.LOSSY, "first", (cut,), self.text)

    def _scalar(self, place: Span, text: str) -> Candidate[T] | None:
        """Read a part of a text as the scalar that the contract expects; return None if there is nothing in it."""
        body, edits = _bare_scalar(text[slice(*place)], place)
        if not body:
            return None
        start = text.find(body, place.start)
        start, end = (start, start + len(body)) if start >= 0 else place
        is_boolean = self.shape.types == frozenset({"boolean"})
        words = is_boolean or any(isinstance(choice, str) for choice in self.shape.choices or ())
        if not words and (said := announced(body)) != body:
            body, more = _bare_scalar(said, Span(start, end))
            edits += [Edit("emphasis", Risk.INFERRED, start, end, said), *more]
        node = _scalar_node(body, start, end, edits)
        value = boolean_word(body) if is_boolean and body.lower() not in ("true", "false") else None
        if value is not None:
            node = Node("literal", value, start, end)
            edits = [*edits, Edit("boolean-word", Risk.INFERRED, start, end, str(value).lower())]
        return self._of_node(node, edits)

    def _find_stated_scalar(self, text: str) -> Candidate[T] | None:
        """Return the scalar that a sentence or a line of a longer reply states. No other one may give a different
        value.
        """
        if len(text) > _LONGEST_SCALAR or _DECLINED.search(text):
            return None
        if named := stated_words(self.shape):
            return self._find_verdict(text, named)
        chosen: Candidate[T] | None = None
        values: list[object] = []
        beside: list[object] = []  # `Start: 3` beside `End: 5`
        for start, end, apart in statements(text):
            candidate = self._scalar(Span(start, end), text)
            if candidate is None or candidate.valid is None or not candidate.fits:
                colon = text.find(":", start, end)
                other = self._scalar(Span(colon + 1, end), text) if colon > 0 else None
                if other is not None and other.valid is not None and other.fits:
                    beside.append(as_json(other.valid.value, None))
                continue
            values.append(as_json(candidate.valid.value, None))
            if apart and not is_limited(text[end:]):
                candidate.edits.append(Edit("stated-value", Risk.INFERRED, start, end, text[start:end].strip(), "$"))
                chosen = candidate
        if chosen is None or any(value != values[0] for value in values):
            return None
        in_a_record = any(value != values[0] for value in beside)
        return None if in_a_record and not phrases.LABEL_AT_END.search(text[: chosen.start]) else chosen

    def _find_verdict(self, text: str, named: Mapping[str, str | bool]) -> Candidate[T] | None:
        """Return the choice or the boolean that a reply in sentences states."""
        found = find_verdict(text, named, frozenset(name_words(self.shape.note)))
        if found is None:
            return None
        value, start, end = found
        kind, code = (LITERAL, "boolean-word") if isinstance(value, bool) else (STRING, "enum-word")
        said = str(value).lower() if isinstance(value, bool) else value
        edits = [Edit(code, Risk.INFERRED, start, end, said, "$")] if text[start:end] != said else []
        edits.append(Edit("stated-value", Risk.INFERRED, start, end, text[start:end], "$"))
        candidate = self._of_node(Node(kind, value, start, end), edits)
        return candidate if candidate.fits else None

    def _scalar_in_union(self) -> Reading[T] | None:
        """Read the entire text as a scalar, for a contract that allows one among other types."""
        if self.nested if self.shape.anything else self.truncated is True:
            return None
        whole = mask_reasoning(self.text, unopened=True).strip()
        fence = _JSON_FENCE.fullmatch(whole) if self.shape.anything else None
        for text in dict.fromkeys((self.text.strip(), whole, fence["fence"] if fence else "")):
            if text and (alone := self._read_bare_json(text)) is not None:
                return self._decide_single(alone)
        if not self._is_empty():
            return None
        body, edits = _bare_scalar(self.text)
        if self.shape.anything and body in FOREIGN:
            value, risk = FOREIGN[body]
            edits.append(Edit("foreign-literal", risk, 0, len(self.text), str(value), "$"))
            return self._decide_scalar(Node(LITERAL, value, 0, len(self.text)), edits)
        if self.found or self.shape.anything:
            return None
        if find_json_end(whole, 0) == len(whole):
            return self._json_scalar(whole)
        if not self.shape.asks_for_scalar:
            return None
        body, edits = _bare_scalar(whole)
        if whole not in self.text:
            edits.append(Edit("reasoning", Risk.LOSSLESS, 0, len(self.text), body, "$"))  # within the text
        if not body or (self.shape.allows("string") and _DECLINED.search(body)):
            return None
        found = self._decide_scalar(Node(STRING, body, *self._place(body)), edits)
        free = self.shape.allows("string") and not stated_words(self.shape)
        parts = self.shape.branches
        texts = free and any(part.allows("string") and part.format not in TIMES for part in parts)
        texts = texts and all(part.format != DECIMAL for part in parts)
        if found is None and not (texts or self.shape.allows("object") or self.shape.allows("array")):
            text = without_courtesies(mask_reasoning(self.text, unopened=True))
            said = self._scalar(Span(0, len(text)), text)
            stated = said if said is not None and said.fits else self._find_stated_scalar(text)
            return None if stated is None else self._decide([stated])
        is_prose = isinstance(found, Accepted) and isinstance(found.value, str) and not self.shape.asks_for("string")
        return None if is_prose else found

    def _json_scalar(self, body: str) -> Reading[T] | None:
        """Read a reply that is one JSON scalar, for a contract that accepts it in a list or among other types.

        Or one list or object that looked like part of a sentence because of the reasoning next to it: `[]<think>…`.
        """
        if body[0] in "[{":
            bracketed = self._try(Candidate[T](self._place(body)[0], len(self.text), LINES))
            return self._decide_single(bracketed)
        value = json.loads(body)
        if isinstance(value, float) and not isfinite(value):
            return None
        if isinstance(value, str) and not value.isascii() and SURROGATE.search(value):
            return Rejected(Reason.MALFORMED, NO_CHARACTER.issues, self.text)
        kind = STRING if isinstance(value, str) else LITERAL if value is None or isinstance(value, bool) else NUMBER
        return self._decide_scalar(Node(kind, value, *self._place(body)), [])

    def _place(self, body: str) -> tuple[int, int]:
        """Return the position of the body in the text, or that of the entire text if reasoning was removed from the
        middle.
        """
        start = self.text.rfind(body)
        return (start, start + len(body)) if start >= 0 else (0, len(self.text))

    def _decide_scalar(self, node: Node, edits: list[Edit]) -> Reading[T] | None:
        candidate = self._of_node(node, edits)
        return self._decide([candidate]) if candidate.fits else None

    def _of_node(self, node: Node, edits: list[Edit], rank: int = LINES) -> Candidate[T]:
        """Return a candidate that was found without its bracket."""
        parsed = Parsed(node, node.end, edits, cut=False)
        return judge(Candidate(node.start, node.end, rank), parsed, self.text, self.contract, self.ceiling)

    def _read_bare_json(self, text: str) -> Candidate[T] | None:
        """Read a scalar that satisfies the contract as JSON, with only a fence, tags, quotes or emphasis around it."""
        start, end = self._place(text.strip())
        for body, edits in _layers(text, Span(start, end)):
            is_string = bool(edits) and edits[-1].code == "quotes"
            valid = self.contract.values.strict(body) if is_string else read_strict(body, self.contract)
            if valid is not None and (is_string or body[:1] not in ("{", "[") or self._is_empty()):
                return Candidate(start, end, LINES, valid, list(edits))
            if is_string:
                break
        return None

    def _is_empty(self) -> bool:
        """Return whether nothing in the text looks like an answer."""
        return all(candidate.reason is Reason.ECHOED_SCHEMA for candidate in self.found)

    def _search_within(self, inner: str) -> Reading[T]:
        if not inner.isascii() and SURROGATE.search(inner):
            return Rejected(Reason.MALFORMED, NO_CHARACTER.issues, inner)
        return Search(inner, self.contract, self.options._replace(refused=False), nested=self.nested + 1).run()

    def _read_encoded(self) -> Reading[T] | None:
        """Read a text that is one JSON string containing JSON: the inner JSON is the answer."""
        text = self.text.strip()
        if text[:2] not in ('"{', '"[', '"\\') or self.shape.anything or find_json_end(text, 0) != len(text):
            return None
        return self._read_quoted()

    def _read_quoted(self) -> Reading[T] | None:
        """Read an answer that is written as one JSON string, or enclosed in quotes."""
        text = scanner.without_fence(self.text.strip().lstrip("\ufeff").strip())
        if self.shape.anything and text and find_json_end(text, 0) == len(text):
            return None  # a string that contains JSON is a value of this contract
        quoted = len(text) > 2 and text[0] in _CITE_QUOTES and text[-1] in "\"'”’`"
        if not quoted or self.nested >= NESTED or not self._is_empty():
            return None
        inner = unescape(text[1:-1]).value if "\\" in text else text[1:-1]
        # These characters are never intended: `\frac` and `\beta` lost a backslash.
        if "\\" in text and ("\f" in inner or "\b" in inner):
            words = "a backslash before f or b in JSON that was written as a string may be meant as a backslash"
            return self._rejection(Reason.AMBIGUOUS, (Issue("$", "control_escape", words),))
        if inner.lstrip()[:1] not in ("{", "[", '"'):
            return None
        start = self.text.find(text)
        return self._read_within(inner, start, start + len(text), "double-encoded")

    def _read_block_quote(self) -> Reading[T] | None:
        """Read an answer in a block quote: every line is marked, except words that announce it."""
        if ">" not in self.text or self.nested >= NESTED or not self._is_empty():
            return None
        lines = self.text.strip().split("\n")
        announced = lines[0].rstrip()[-1:] in (":", "：")
        body = lines[1:] if announced else lines
        if not all(line.lstrip().startswith(">") or not line.strip() for line in body):
            return None
        inner = "\n".join(line.lstrip().removeprefix(">") for line in body)
        return self._read_within(inner, self.text.find(">"), len(self.text.rstrip()), "block-quote")

    def _read_within(self, inner: str, start: int, end: int, code: str) -> Reading[T] | None:
        """Read the answer in a text that was rewritten, or return None if it contains no JSON."""
        outcome = self._search_within(inner)
        if isinstance(outcome, Accepted):
            return self._decide_single(self._adopt(Candidate(start, start, LINES), outcome, end, code))
        draft = None if outcome.draft is None else Draft(outcome.draft.value, (start, end))
        return replace(outcome, text=self.text, draft=draft) if outcome.reason is not Reason.NO_JSON else None

    def _read_restart(self) -> Reading[T] | None:
        """Read the complete answer after the beginning of the same answer, which broke off before a blank line."""
        broken = self.found[0] if self.found and self.nested < NESTED else None
        if broken is None or broken.rank == INLINE or find_json_end(self.text, broken.start) is not None:
            return None
        gap = _BLANK_LINE.search(self.text, broken.start)
        starts = (
            [found.end() - 1 for found in _OBJECT_ON_LINE.finditer(self.text, gap.end())] if gap is not None else []
        )
        end = find_json_end(self.text, starts[0]) if len(starts) == 1 else None
        if gap is None or end is None:
            return None
        begun = read_begun(self.text[broken.start : gap.start()])
        if not begun or not agrees(begun, parse_json(self.text[starts[0] : end])):
            return None
        said = _BROKE_OFF.match(self.text, gap.end())
        rest = said.end() if said is not None else gap.end()
        return self._read_within(self.text[rest:], broken.start, len(self.text), "picked-last")

    def _read_wide(self) -> Reading[T] | None:
        """Read JSON whose brackets are full-width outside its strings: `｛“a”：1｝`."""
        if self.nested >= NESTED or not _WIDE.search(self.text):
            return None
        written = _STRING_OR_WIDE.sub(_as_narrow, self.text)
        return None if written == self.text else self._read_within(written, 0, len(self.text), "odd-bracket")

    def _read_call(self) -> Reading[T] | None:
        """Read an answer in Python: calls of the contract's own models, with keyword arguments."""
        is_form = self.nested >= NESTED or _SHOWS_CALL.search(self.text) is not None
        written = None if is_form else as_objects(self.text, self.shape)
        outcome = None if written is None else self._search_within(written)
        if not isinstance(outcome, Accepted):
            return None if outcome is None else replace(outcome, text=self.text)
        if any(repair.code in _NO_ARGUMENTS for repair in outcome.repairs):
            return None
        return self._decide_single(self._adopt(Candidate(0, 0, LINES), outcome, len(self.text), "keyword-arguments"))

    def _read_lines(self) -> Reading[T] | None:
        if self.truncated is True:
            return None
        apart = [c for c in self.found if c.rank != INLINE and c.reason is not Reason.ECHOED_SCHEMA]
        text = mask_reasoning(self.text[: self.scanner.ended_at], unopened=True).replace("\ufeff", " ")
        for code, reads in NOTATIONS.items():
            if apart and reads not in _HOLDS_BRACKETS:
                continue
            node = reads(text, self.shape)
            is_form = node is not None and (
                shows_names(node) or (reads in _MARKED and _SHOWS_FORM.search(text, 0, node.start))
            )
            lines = "" if node is None else text[node.start : node.end] + text[node.end :].partition("\n")[0]
            if is_form or (node is not None and not self.text.startswith(lines, node.start)):
                return None  # the value only shows a form, or `<think>` is part of a value
            if node is not None and is_cut(text, node, self.shape, ends=self.truncated is False):
                issue = Issue("$", "truncated", f"the text is cut off at character {len(self.text)}")
                return self._rejection(Reason.TRUNCATED, (issue,))
            if node is not None and all(node.start <= c.start < node.end for c in apart):
                if (asked := question_in(node, self.shape)) is not None:
                    words = f"{asked[:60]!r} asks for a value instead of giving it"
                    return self._rejection(Reason.AMBIGUOUS, (Issue("$", "ambiguous", words),))
                edit = Edit(code, Risk.INFERRED, node.start, node.end, "[…]" if node.kind == ARRAY else "{…}", "$")
                return self._decide_single(self._of_node(node, [edit]))
        return None

    def _decide_single(self, candidate: Candidate[T]) -> Reading[T] | None:
        """Return the outcome of the only candidate, or None if it does not fit."""
        self.found.append(candidate)
        return self._accept(candidate) if candidate.fits else None

    # --- deciding ---------------------------------------------------------------------------------------------

    def _decide(self, fitting: list[Candidate[T]]) -> Reading[T]:
        candidates = self._drop_comparisons(fitting) if self.pick == "last" else fitting
        group, chosen = self._best_ranked(candidates)
        best = chosen.rank
        if self.pick != "first" and (against := self._reject_if_in_doubt(chosen)) is not None:
            return against
        collected = self._collect(group)
        if collected is not None:
            return collected
        value = _value_of(chosen)
        others = [c for c in candidates if c is not chosen and _value_of(c) != value and not self._is_code(c, chosen)]
        if self.shape.only_lists and any(self._is_another_item(c, chosen) for c in others):
            words = "another item follows the list, or is next to the only one"
            return self._rejection(Reason.AMBIGUOUS, (Issue("$", "several", words),))
        if any(c.rank == best for c in others):
            if self.truncated is True and self.ceiling < Risk.LOSSY:
                words = "it has several answers, and the last one may have been cut off"
                return self._rejection(Reason.TRUNCATED, (Issue("$", "truncated", words),))
            if self.pick == "error" or self.shape.only_lists or not self._all_apart(group):
                words = f"{len(group)} different answers, and nothing says which one is meant"
                return self._rejection(Reason.AMBIGUOUS, (Issue("$", "several", words),))
        if others and self.pick != "first":
            doubt = remainder.rivalry(self.text, _span(chosen), [*map(_span, others)])
            before = [c for c in others if c.rank == best and c.start < chosen.start]
            if doubt is None and before and not remainder.succeeds(self.text, _span(before[-1]), chosen.start):
                doubt = "nothing says that the last answer replaces the one before it"
            if doubt is not None:
                return self._rejection(Reason.AMBIGUOUS, (Issue("$", "several", doubt),))
        others += [c for c in fitting[len(candidates) :] if _value_of(c) != value]
        if others:
            placed = all(c.rank > best for c in others)
            if self.ceiling < Risk.INFERRED:
                return self._rejection(Reason.AMBIGUOUS, (Issue("$", "several", f"{len(fitting)} different answers"),))
            code = "picked-place" if placed else f"picked-{self.pick}"
            return self._accept(chosen, Edit(code, Risk.INFERRED, 0, 0, "", "$"), others)
        return self._accept(chosen)

    def _drop_comparisons(self, fitting: list[Candidate[T]]) -> list[Candidate[T]]:
        """Return the candidates without those at the end of the text that are only shown for comparison."""
        kept = len(fitting)
        if remainder.has_words(self.text[fitting[-1].end :]):
            return fitting
        while kept > 1 and fitting[kept - 1].compared:
            kept -= 1
        if kept == 1 and remainder.is_disowned(remainder.label_before(self.text, fitting[0].start)):
            return fitting
        return fitting[:kept]

    def _best_ranked(self, fitting: Sequence[Candidate[T]]) -> tuple[list[Candidate[T]], Candidate[T]]:
        """Return the candidates of the best rank and the one that `pick` selects, or the last one
        if it replaces them.
        """
        best = min(candidate.rank for candidate in fitting)
        last = fitting[-1]
        if last.replaces and best < last.rank < CODE:
            return [last], last
        group = [candidate for candidate in fitting if candidate.rank == best]
        return group, group[0] if self.pick == "first" else group[-1]

    def _reject_if_in_doubt(self, chosen: Candidate[T]) -> Reading[T] | None:
        """Reject the reply if another answer is cut off, broken or does not fit, so that the chosen
        value is in doubt.
        """
        found = self.found[:-1] if self._ends_in_repetition() else self.found
        if any(c.start > chosen.start and c.cut and not c.fits for c in found):
            return self._reject()
        broken = next((c for c in found if c.reason in UNREADABLE and self._is_in_a_row(c, chosen)), None)
        if broken is not None:
            return self._rejection(broken.reason or Reason.MALFORMED, broken.issues, broken)
        others = [c for c in found if not c.fits and c.reason is not Reason.ECHOED_SCHEMA]
        behind = [c for c in others if self.shape.only_lists or c.start > chosen.start]
        while behind and behind[-1].compared and not remainder.has_words(self.text[behind[-1].end :]):
            behind.pop()
        rivals = [c for c in behind if not self._is_code(c, chosen) and self._is_answer(c, chosen)]
        if not rivals:
            return None
        words = "the reply has another answer that does not fit"
        return self._rejection(Reason.AMBIGUOUS, (Issue("$", "several", words), *rivals[-1].issues), rivals[-1])

    def _ends_in_repetition(self) -> bool:
        """Return whether the text is the same answer repeated, with the last copy cut off."""
        if len(self.found) <= _FEWEST_COPIES or self.shape.only_lists or self.shape.anything:
            return False  # in a list, each copy may be an item
        *whole, last = self.found
        copies = {self.text[c.start : c.end] for c in whole}
        is_cut = last.cut and not last.fits and len(copies) == 1
        return is_cut and copies.pop().startswith(self.text[last.start :].rstrip())

    def _is_in_a_row(self, other: Candidate[T], chosen: Candidate[T]) -> bool:
        """Return whether nothing but whitespace, commas or bullets separates two candidates."""
        one, two = (other, chosen) if other.start < chosen.start else (chosen, other)
        return BETWEEN.fullmatch(self.text, one.end, two.start) is not None

    def _is_code(self, candidate: Candidate[T], chosen: Candidate[T]) -> bool:
        """Return whether a candidate is part of a program shown next to the answer."""
        return candidate.rank == CODE and chosen.rank < CODE

    def _is_answer(self, candidate: Candidate[T], chosen: Candidate[T]) -> bool:
        """Return whether a candidate was meant as an answer: an object with keys of the contract, a list of such
        objects, or a list directly next to the wanted one.
        """
        both_lists = self.shape.only_lists and self.text[candidate.start] == self.text[chosen.start] == "["
        if both_lists and self._is_in_a_row(candidate, chosen):
            return True
        value = plain(candidate.node) if candidate.node else candidate.draft and candidate.draft.value
        shape = self.shape
        if value is None and candidate.reason in UNREADABLE:
            part = self.text[candidate.start : candidate.end]
            return remainder.names_fields(part, shape.named) or (not shape.properties and candidate.rank <= chosen.rank)
        if candidate.start > chosen.start and _is_item(value, shape):
            return True
        item = shape.element(0) if shape.only_lists else shape
        return _names_any(value, item.keys or (item.additional.keys if isinstance(item.additional, Shape) else ()))

    def _is_words(self, candidate: Candidate[T]) -> bool:
        """Return whether brackets that cannot be an answer contain words (`[3 more omitted]`) or an index
        (`a["b"]`)."""
        is_index = self.text[candidate.start - 1].isalnum() and self.text[candidate.start] == "["
        return not candidate.fits and (is_index or any(edit.code == "unquoted-value" for edit in candidate.edits))

    def _is_another_item(self, candidate: Candidate[T], chosen: Candidate[T]) -> bool:
        """Return whether this is an item that the chosen list lacks: below the list, or next to its only item."""
        if self.text[candidate.start] != "{" or chosen.replaces or chosen.rank == candidate.rank:
            return False
        items, item = _value_of(chosen), _value_of(candidate)
        held = is_list(items) and is_list(item) and all(part in items for part in item)
        return not held and (self.text[chosen.start] == "{" or candidate.start > chosen.start)

    def _in_lines(self, group: Sequence[Candidate[T]]) -> bool:
        """Recognize JSON Lines, or values separated by commas, for a contract that accepts any JSON."""
        between = (self.text[one.end : two.start] for one, two in pairwise(group))
        return self.shape.anything and all("\n" in part or "," in part for part in between)

    def _all_apart(self, group: Sequence[Candidate[T]]) -> bool:
        """Return whether there are words between the answers (a fence separates them too)."""
        walls = FENCES if group[0].rank <= FENCE else BETWEEN
        gaps = [(one.end, two.start) for one, two in pairwise(group)]
        return not any(walls.fullmatch(self.text, *gap) or TAGS.fullmatch(self.text, *gap) for gap in gaps)

    def _are_numbered(self, group: Sequence[Candidate[T]]) -> bool:
        """Return whether every value has a heading that counts the items of the list, and nothing else is between
        them.
        """
        item = self.shape.element(0)
        nouns = _ITEMS.union(name_words(item.title), *map(name_words, item.keys))
        label = remainder.label_before(self.text, group[0].start)
        gaps = [label, *(self.text[one.end : two.start] for one, two in pairwise(group))]
        found = [_NUMBERED.fullmatch(gap) for gap in gaps]
        return all(
            heading is not None and int(heading["number"]) == number and fold(heading["noun"]) in nouns
            for number, heading in enumerate(found, 1)
        )

    def _collect(self, group: list[Candidate[T]]) -> Reading[T] | None:
        """Collect several consecutive values, if the contract is a list of them."""
        apart = self._all_apart(group) and not self._are_numbered(group)
        if len(group) < 2 or apart or not (self.shape.only_lists or self._in_lines(group)):
            return None
        if self.shape.only_lists and self.text[group[0].start] == "[":
            return None
        if any(c.has_repaired_brackets for c in group) or CLOSER.match(self.text, group[-1].end):
            return None
        nodes: list[Node] = []
        edits: list[Edit] = []
        for candidate in group:
            parsed = Parser(self.text, candidate.start, self.shape.element(0), max_depth=self.options.max_depth).parse()
            if isinstance(parsed, Failure):
                return None
            nodes.append(parsed.node)
            edits += parsed.edits
        start, end = group[0].start, group[-1].end
        edits.append(Edit("collected", Risk.INFERRED, start, end, f"[{len(nodes)} values]", "$"))
        whole = self._of_node(Node(ARRAY, nodes, start, end), edits, group[0].rank)
        return self._accept(whole) if whole.fits else None

    def _accept(
        self, candidate: Candidate[T], picked: Edit | None = None, others: Sequence[Candidate[T]] = ()
    ) -> Reading[T]:
        """Accept a candidate. `picked` means that `others`, which also satisfy the contract, were left out."""
        text = self.text
        looks = self.pick != "first" and self.contract.counts is None
        if looks and (rest := self._find_objection(candidate)) is not None:
            return self._rejection(Reason.AMBIGUOUS, (rest,), candidate)
        edits = list(candidate.edits)
        code = "fence" if candidate.rank <= FENCE else "prose-around"
        said = (0, len(text)) in map(_SPAN_OF, edits)
        for start, end in ((0, candidate.start), (candidate.end, len(text))):
            outside = text[start:end].strip(" \t\r\n")
            if picked is not None and any(start <= other.start < end for other in others):
                edits.append(picked._replace(start=start, end=end))
            elif outside and not said:
                reasoned = self.scanner.reasoning and not start
                name = "odd-space" if outside.isspace() else "reasoning" if reasoned else code
                edits.append(Edit("bom" if outside == "\ufeff" else name, Risk.LOSSLESS, start, end, "", "$"))
        if picked is not None and all(edit.code != picked.code for edit in edits[-2:]):  # the two candidates overlap
            edits.append(picked._replace(start=candidate.start, end=candidate.end))
        if self.truncated is True and self.ceiling < Risk.LOSSY:
            blank = len(text) - candidate.end  # even without an end, it shows that the value was complete
            spared = candidate.cut and self.contract.counts is not None  # text that was cut off does not count
            if blank <= MOST_BLANK and not spared and not text[candidate.end :].strip():
                words = "the text is cut off right after it"
                return self._rejection(Reason.TRUNCATED, (Issue("$", "truncated", words),))
        brackets = candidate.node is not None and candidate.node.kind in (OBJECT, ARRAY)
        if brackets and not edits and self.contract.counts is None and find_json_end(text, candidate.start) is None:
            edits.append(Edit("odd-space", Risk.LOSSLESS, candidate.start, candidate.end, "", "$"))
        risk = worst(edits)
        if candidate.rewritten is not None:
            risk = candidate.rewritten if risk is None else max(risk, candidate.rewritten)
        trust = Trust.CLEAN if risk is None else (Trust.LOSSLESS, Trust.INFERRED, Trust.LOSSY)[risk]
        if candidate.valid is None:
            raise AssertionError("only a candidate that fits is accepted")
        fast = partial(rewrites, text, candidate.start, candidate.end) if candidate.rewritten is not None else tuple
        log = RepairLog(edits, text, candidate.node, candidate.names, unlisted=fast)
        return Accepted(candidate.valid.value, trust, "first", log, text)

    def _find_objection(self, candidate: Candidate[T]) -> Issue | None:
        """Return evidence in the surrounding text that the value is not the answer."""
        numbers = self.scanner.numbers or (self.shape.anything and self.text[candidate.start] == "[")
        if self.scanner.cited and numbers and candidate.rank == INLINE:
            words = "it is in a sentence with other numbers in brackets, which could be the answer as well"
            return Issue("$", "several", words)
        if (end := self.scanner.ended_at) is not None:
            if _BEGINS_AS_DIALOG.match(self.text):
                return Issue("$", "several", "the reply is a dialog that goes on after it")
            if _ENDS_UNANSWERED.search(self.text, end):
                return Issue("$", "several", "the reply ends with the header of another answer")
        others: list[Span] = []
        if len(self.found) > 1:
            apart = [c for c in self.found if c is not candidate and c.end <= len(self.text)]
            others = [_span(c) for c in apart if c.start <= candidate.start or not self._is_words(c)]
        span, valid, draft, edits = _span(candidate), candidate.valid, candidate.draft, candidate.edits
        read = partial(as_json, None if valid is None else valid.value, draft.value if draft else None)
        answer = remainder.Answer(self.shape, read)
        comments = [self.text[e.start : e.end] for e in edits if e.code == "comment"] if edits else []
        if comments and (said := remainder.contradiction_in("\n".join(comments), answer)) is not None:
            return said
        text = self.text[: self.scanner.ended_at]
        if "(" in text[candidate.end :]:
            text = _PRINTS.sub(lambda found: " " * len(found[0]), text)
        return remainder.prose_rest(text, span, others, answer)

    # --- rejecting --------------------------------------------------------------------------------------------

    def _reject(self) -> Reading[T]:
        if self.flooded:
            return self._rejection(Reason.TOO_LARGE, (Issue("$", "candidates", "it has too many possible answers"),))
        if not self.found:
            if self.scanner.unclosed:
                issue = Issue("$", "reasoning", "the reasoning never ends, so there is no answer after it")
                return self._rejection(Reason.TRUNCATED if self.truncated else Reason.NO_JSON, (issue,))
            if (declined := _DECLINED.search(self.text[:2_000])) is not None:
                return self._rejection(Reason.REFUSED, (Issue("$", "refused", f"it says {declined[0]!r}"),))
            kinds = [word for kind, word in _CONTAINERS if self.shape.allows(kind)]
            wanted = "value" if self.shape.allows("number") or not kinds else " or ".join(kinds)
            words = f"the text contains no JSON {wanted}" if self.text.strip() else "the reply is empty"
            return self._rejection(Reason.NO_JSON, (Issue("$", "no_json", words),))
        last = self.found[-1]
        nearest = (
            last if last.cut else min(reversed(self.found), key=lambda c: _NEAREST.index(c.reason or Reason.INVALID))
        )
        return self._rejection(nearest.reason or Reason.INVALID, nearest.issues, nearest)

    def _rejection(self, reason: Reason, issues: tuple[Issue, ...], nearest: Candidate[T] | None = None) -> Rejected:
        draft = nearest.draft if nearest else None
        seen = tuple(candidate.words() for candidate in self.found)
        return Rejected(reason, issues, self.text, draft=draft, seen=seen)


def _span(candidate: Candidate[T]) -> Span:
    return Span(candidate.start, candidate.end)


def _is_item(value: object, shape: Shape) -> bool:
    """Return whether JSON could be one more item of a list in the answer: it has all keys of one, and no others."""
    if not is_dict(value) or len(value) < _FEWEST_KEYS:
        return False
    items = [part.element(0) for part in shape.properties.values() if part.allows("array")]
    kinds = [kind for item in items for kind in (item, *item.branches)]
    return any(has_required(value, kind) and all(map(kind.knows, value)) for kind in kinds)


_FEWEST_KEYS: Final = 2
_FEWEST_COPIES: Final = 2
"""The minimum number of equal answers that show a repetition."""


def _names_any(value: object, keys: Container[str], depth: int = 3) -> bool:
    """Return whether JSON has one of these keys, or names one as an edit does: `[{"op": "remove", "path": "/age"}]`."""
    if is_list(value):
        return depth > 0 and any(is_dict(part) and _names_any(part, keys, depth - 1) for part in value)
    return is_dict(value) and any(
        key in keys
        or (isinstance(part, str) and part.strip("/$. ") in keys)
        or (depth > 0 and _names_any(part, keys, depth - 1))
        for key, part in value.items()
    )


def _value_of(candidate: Candidate[T]) -> T | None:
    return candidate.valid.value if candidate.valid is not None else None


def _bare_scalar(text: str, place: Span | None = None) -> tuple[str, list[Edit]]:
    """Return the text of a reply without the fence, tags, quotes and emphasis around it."""
    *_, (body, edits) = _layers(text, place or Span(0, len(text)))
    return body, edits


def _layers(text: str, place: Span) -> Iterator[tuple[str, list[Edit]]]:
    """Yield the text at `place` of a reply, and what is left when the fence, tags, quotes and
    emphasis are taken off.
    """
    body, marks = _HEADING.subn("", text.strip().lstrip("\ufeff").strip())
    edits = [Edit("emphasis", Risk.LOSSLESS, *place, body, "$")] if marks else []
    yield body, edits
    for _ in range(4):
        fence = scanner.FENCED.fullmatch(body)
        if fence and "\n```" not in fence["inner"]:
            body = fence["inner"].strip()
            edits.append(Edit("fence", Risk.LOSSLESS, *place, body, "$"))
            yield body, edits
        found = None if len(body) > _LONGEST_SCALAR else _FRAMED.fullmatch(body)
        if found is None or (found["tag"] and fold(found["tag"]) not in ANNOUNCING):
            break
        inside, is_quoted = found["tagged"] or found["quoted"], (found["mark"] or "*") in "\"'“‘"
        decoded = parse_json(body.rstrip(".!")) if body[0] == '"' else None
        one = not _NOT_ONE.search(inside) if is_quoted else (found["mark"] or f"</{found['tag']}>") not in inside
        if not one and not isinstance(decoded, str):
            break  # `**Yes** or **no**`
        body = decoded if isinstance(decoded, str) else inside if is_quoted else inside.strip()
        edits.append(Edit("quotes" if is_quoted else "emphasis", Risk.LOSSLESS, *place, body, "$"))
        yield body, edits


_NOT_ONE: Final = expression(r"""\\|[“”]|(?<!\w)["'‘’]|["'‘’](?!\w)""")
"""In a quoted text: an escape, or a quote that may end it."""
_BEGINS_AS_DIALOG: Final = expression(r"\s*(?:user|human):[ \t]", re.I)
_ENDS_UNANSWERED: Final = expression(r"\n[ \t]*\#{2,4}[ \t]*(?:response|assistant)[ \t]*:?\s*\Z", re.I)
_HEADING: Final = expression(r"\A(?:#{1,6}|>(?=[ \t]+[*_]*[^\W\d_]))[ \t]+(?=[^\n]+\Z)")
_FRAMED: Final = expression(
    r"(?P<mark>\*\*|__|[*_`\"'“‘])(?P<quoted>.+?|(?<=[\"'“‘]))(?:(?P=mark)|[”’])[.!]?"
    r"|<(?P<tag>[A-Za-z][\w-]{0,30})>(?P<tagged>.+)</(?P=tag)>",
    re.S,
)


def _scalar_node(body: str, start: int, end: int, edits: list[Edit]) -> Node:
    """Return a number if it is written without quotation marks, else a string; deviations of the
    number go to `edits`.
    """
    number = None if any(edit.code == "quotes" for edit in edits) else read_number(body)
    if number is None:
        return Node(STRING, body, start, end)
    if number.code:
        edits.append(Edit(number.code, number.risk, start, end, str(number.value), "$"))
    return Node(NUMBER, number.value, start, end)
