"""Checks that a value is the model's own answer: neither an example from its prompt, nor changed or made up by a
repair."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, Final, Literal, TypeAlias, TypeVar

from pydantic_core import to_jsonable_python

from flujo_aros.contract import TIMES, Block, Contract, Event, JsonSchema, fold, path_of
from flujo_aros.errors import ContractError
from flujo_aros.json_data import (
    Place,
    follow_refs,
    is_dict,
    is_list,
    is_number,
    leaves,
    parts,
    place_of,
    schema_at,
    value_at,
)
from flujo_aros.numerals import MULTIPLES, NUMERALS, numbers_in
from flujo_aros.outcome import Accepted, Draft, Issue, Outcome, Reason, Rejected, Repair, Risk, Trust
from flujo_aros.reading.payload import values_in
from flujo_aros.reading.read import read
from flujo_aros.reading.remainder import without
from flujo_aros.reading.scalars import conflict_in, is_unit, name_words
from flujo_aros.reading.undecided import is_inexact, leaves_open
from flujo_aros.reading.verdicts import sole_choice
from flujo_aros.spelling import clip

T = TypeVar("T")

_NOWHERE: Final = object()
_NO_PLACE: Final = frozenset({"missing", "required", "truncated", "changed"})
"""Issues that do not object to the value itself."""
_MAX_CHARS: Final = 120


def keeping(outcome: Outcome[T], failing: Rejected, contract: Contract[T], *, cut: bool = False) -> Outcome[T]:
    """Return the outcome, or a rejection if an accepted value changes parts of the failing output that were right.

    With `cut`, the output ended too early: its last value may continue, and its lists may be longer.
    """
    if not isinstance(outcome, Accepted) or failing.draft is None or contract.mode != "json":
        return outcome
    plain = plain_value(outcome.text, contract.json_schema)
    if plain is None:
        return outcome
    issues = tuple(_changes(failing.draft.value, plain.value, failing.issues, contract.json_schema, cut=cut))
    return Rejected(Reason.INVALID, issues, outcome.text) if issues else outcome


def plain_value(text: str, schema: JsonSchema) -> Accepted[Any] | None:
    """Return the value of a text as plain JSON, with the names of the schema, or None if unknown."""
    try:
        plain: Outcome[Any] = read(text, schema, truncated=False)
    except ContractError:  # the JSON of a type may contain more than its JSON Schema can express
        return None
    return plain if isinstance(plain, Accepted) else None


def violates(rejected: Rejected, schema: JsonSchema) -> bool:
    """Return whether a reply is complete but does not match the schema, which shows that the schema
    was not enforced.
    """
    return rejected.reason is Reason.INVALID and plain_value(rejected.text, schema) is None


def _changes(draft: Any, value: Any, issues: Sequence[Issue], schema: JsonSchema, *, cut: bool) -> Iterator[Issue]:
    wrong = [place for issue in issues if issue.code not in _NO_PLACE and (place := place_of(issue.path)) is not None]
    stated = list(leaves(draft))
    for place, leaf in stated[:-1] if cut else stated:
        if any(_touch(place, other) for other in wrong) or schema_at(schema, place) is None:
            continue
        if not same(leaf, value_at(value, place, _NOWHERE)):
            yield Issue(
                path_of(place),
                "changed",
                f"it was {clip(repr(leaf), _MAX_CHARS)}, which was correct and must not change",
            )
    if not cut:
        yield from _shorter(draft, value, wrong)


def _shorter(draft: Any, value: Any, wrong: Sequence[Place]) -> Iterator[Issue]:
    """Yield an issue for each list that had no error and now has a different length."""
    for place, items in parts(draft):
        now = value_at(value, place, _NOWHERE)
        other_length = is_list(items) and is_list(now) and len(now) != len(items)
        if other_length and not any(_touch(place, other) for other in wrong):
            yield Issue(path_of(place), "changed", f"it had {len(items)} items, which must not change")


def _touch(one: Place, other: Place) -> bool:
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal, ignoring the case and spacing of strings."""
    if isinstance(one, str) and isinstance(other, str):
        return folded(one) == folded(other)
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def folded(text: str) -> str:
    """Return a string without case and spacing."""
    return " ".join(text.casefold().split())


MADE_UP: Final = "not_in_output"
"""The issue code for an invented value if the contract does not allow a repair of that risk."""

_NUMBER: Final = re.compile(r"-?\d+(?:[.,]\d+)*(?:[eE][+-]?\d+)?")
_DIGITS: Final = re.compile(r"\d+")
_WORD: Final = re.compile(r"[^\W_]+")
_ESCAPE: Final = re.compile(r"\\(?:u(?P<code>[0-9A-Fa-f]{4})|[nrt\\])?")
_SHORT: Final = 4
"""Texts shorter than this only match at the start of a word."""
_MANY: Final = 4
"""A string with at least this many words may be paraphrased."""
_LOOK_AHEAD: Final = 12
"""The maximum distance from a number to its unit."""
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_ALSO: Final = {"half": 0.5, "once": 1.0, "twice": 2.0, "no": 0.0}
"""Words for numbers that are not numerals."""
_UNITS: Final = {"%": 0.01, "percent": 0.01, "k": 1e3, "thousand": 1e3, "m": 1e6, "million": 1e6, "billion": 1e9}

_SPELLED: Final = "|".join({*NUMERALS, *MULTIPLES, *_ALSO})
_AMOUNT: Final = re.compile(
    rf"(?P<digits>{_NUMBER.pattern})(?:\s?(?P<unit>%|(?:percent|k|m|{'|'.join(MULTIPLES)})\b))?"
    rf"|\b(?:an? )?(?:{_SPELLED})\b(?:[ -](?:and )?(?:{_SPELLED})\b)*",
    re.IGNORECASE,
)
"""A number in digits or in words."""
_HUGE: Final = 1e300
"""From here on a number is compared digit by digit, because it may be too large for a float."""
_MARK: Final = "Zzyx"
"""Stands for a value in a text, as no ordinary word does."""
_CLAUSE_END: Final = re.compile(
    r"[.!;](?=\s|\Z)|(?<=\?)\s|,(?=\s)|\n|\s[-–—]\s|[(){}\[\]]|\"\s*,\s*\"?|\"\s*\Z|\b(?:but|because|so)\b",
    re.IGNORECASE,
)
"""Between parts of a text that say something on their own: clauses, lines, and the strings of damaged JSON."""


def grounded(
    outcome: Outcome[T], source: str, contract: Contract[T], *, draft: Draft | None = None, whole: bool = False
) -> Outcome[T]:
    """Return the outcome; each value that the source does not state is reported as the repair `not-in-output`.

    INFERRED is a value that follows from the source: a date in a different format, a number in words, or a choice based
    on the value at its location. LOSSY is a value that nothing in the source supports, so it was made up. If the
    contract, or the location itself, does not allow that risk, the outcome is a rejection (`not_in_output`). `draft` is
    the value read from the source. `whole` means that the question was about the whole source, so a choice may be based
    on all of it.

    >>> from flujo_aros import read
    >>> from flujo_aros.contract import compile_contract
    >>> contract = compile_contract({"type": "object", "properties": {"days": {"type": "integer"}}})
    >>> made = grounded(read('{"days": 7}', contract), "a few", contract)
    >>> made.issues[0].message
    'the text does not state 7: it was made up'
    """
    if not isinstance(outcome, Accepted) or contract.mode != "json":
        return outcome
    plain = plain_value(outcome.text, contract.json_schema)
    if plain is None:
        return outcome
    text = Source(source, draft, contract.json_schema, whole=whole)
    rated = ((place, leaf, text.risk_of(place, leaf)) for place, leaf in leaves(plain.value))
    new = [(place, leaf, risk) for place, leaf, risk in rated if risk is not None]
    made_up = tuple(
        Issue(path_of(place), MADE_UP, f"the text does not state {clip(repr(leaf), 80)}: it was made up")
        for place, leaf, risk in new
        if risk > _allowed(contract, place)
    )
    if made_up:
        return Rejected(Reason.INVALID, made_up, outcome.text)
    if not new:
        return outcome
    repairs = tuple(
        Repair("not-in-output", risk, path_of(place), (0, 0), "", str(leaf)[:80]) for place, leaf, risk in new
    )
    trust = Trust.lowest([outcome.trust, Trust.of(repairs)])
    return replace(outcome, repairs=(*outcome.repairs, *repairs), trust=trust)


def beyond_repair(failing: Rejected, contract: Contract[Any]) -> str | None:
    """Return the path of a wrong number that no repair may replace, or None: any other number would be made up.

    >>> from flujo_aros.contract import compile_contract
    >>> contract = compile_contract({"type": "object", "properties": {"minutes": {"type": "integer", "maximum": 120}}})
    >>> [beyond_repair(read(text, contract), contract) for text in ('{"minutes": 500}', '{"minutes": []}')]
    ['$.minutes', None]
    """
    for issue in failing.issues:
        place = place_of(issue.path)
        if failing.draft is None or not place or not is_number(value_at(failing.draft.value, place, _NOWHERE)):
            continue
        kinds: set[str] = set()
        for part in _parts(schema_at(contract.json_schema, place) or {}):
            kind = part.get("type", ())
            kinds.update([kind] if isinstance(kind, str) else kind)
        if kinds and kinds <= _NO_TEXT and _allowed(contract, place) < Risk.LOSSY:
            return issue.path
    return None


_NO_TEXT: Final = frozenset({"integer", "number", "boolean", "null"})


def _allowed(contract: Contract[Any], place: Place) -> Risk:
    """Return the highest risk allowed for a repair at a location."""
    hints: object = (schema_at(contract.json_schema, place) or {}).get("x-aros")
    own: object = hints.get("risk") if is_dict(hints) else None
    return Risk[own.upper()] if isinstance(own, str) and own.upper() in Risk.__members__ else contract.risk


@dataclass
class Source:
    """A source text that values are compared with, and the values read from it."""

    text: str
    draft: Draft | None
    schema: JsonSchema
    whole: bool = False

    def risk_of(self, place: Place, leaf: object) -> Risk | None:
        """Return the risk of a value at a location, compared with the text, or None if the text states it."""
        here = schema_at(self.schema, place) or {}
        there = _NOWHERE if self.draft is None else value_at(self.draft.value, place, _NOWHERE)
        if "const" in here or (there is not _NOWHERE and same(there, leaf)):
            return None
        if there not in (_NOWHERE, None, ""):
            return self._of_change(place, leaf, there)
        if leaf is None or ("default" in here and same(leaf, here["default"])):
            return None
        missing = self.draft is not None
        if isinstance(leaf, bool) or leaf in ("", [], {}) or leaf in _options(here):
            return self._of_choice(place, leaf, missing=missing)
        if isinstance(leaf, (int, float)) and abs(leaf) < _HUGE:
            return self._of_number(place, float(leaf), missing=missing)
        return self._of_words(str(leaf), missing=missing)

    def _of_change(self, place: Place, leaf: object, there: object) -> Risk | None:
        """Return the risk of a value that replaces another one, which the reader did not accept at this location.

        That text must mean the new value: it may not leave it open.
        """
        here = schema_at(self.schema, place) or {}
        said = there if isinstance(there, str) else "; ".join(str(each) for _, each in leaves(there))
        if isinstance(leaf, bool):
            return Risk.INFERRED if _is_in_words(said) and not leaves_open(said, negated=leaf) else Risk.LOSSY
        if leaf in (None, "", [], {}):
            return Risk.INFERRED if isinstance(there, str) and leaves_open(there) else Risk.LOSSY
        if leaf in (options := _options(here)):
            return Risk.INFERRED if _may_mean(said, leaf, options) else Risk.LOSSY
        name = _name_at(place)
        if isinstance(leaf, (int, float)) and abs(leaf) < _HUGE:
            return Risk.INFERRED if _is_only_number(said, float(leaf), name) else Risk.LOSSY
        text = str(leaf)
        if any(part.get("format") in TIMES for part in _parts(here)):
            described = frozenset(name_words(f"{here.get('title', '')} {here.get('description', '')}"))
            is_only = _is_only_time(said, text, frozenset(name_words(name)), described)
            return Risk.INFERRED if is_only else Risk.LOSSY
        if len(_words(text)) < _MANY and not leaves_open(text) and leaves_open(_besides(said, text) or "it"):
            return Risk.LOSSY
        return self._of_words(text, missing=False)

    def _of_choice(self, place: Place, leaf: object, *, missing: bool) -> Risk | None:
        """Return the risk of a choice, which is based on prose about it."""
        if isinstance(leaf, str) and leaf and self._times(leaf) > (self._elsewhere(leaf) if missing else 0):
            return Risk.LOSSY if self._is_open(leaf) else None
        if missing:
            return Risk.LOSSY
        name = _name_at(place)
        words = _words(name)
        if self.whole:
            return Risk.INFERRED
        about = [clause for clause in self._clauses if any(word in _words(clause) for word in words)]
        negated = leaf is not False
        return Risk.LOSSY if all(leaves_open(clause, negated=negated) for clause in about) else Risk.INFERRED

    def _of_number(self, place: Place, leaf: float, *, missing: bool) -> Risk | None:
        if self._numbers[abs(leaf)] > (self._elsewhere(leaf) if missing else 0):
            return Risk.LOSSY if self._is_open(leaf, _name_at(place)) else None
        follows = any(abs(abs(leaf) - number) <= abs(leaf) * 1e-9 for number in self._meant)
        return Risk.INFERRED if follows else Risk.LOSSY

    def _of_words(self, leaf: str, *, missing: bool) -> Risk | None:
        if self._times(leaf) > (self._elsewhere(leaf) if missing else 0):
            return Risk.LOSSY if len(_words(leaf)) < _MANY and self._is_open(leaf) else None
        if _DIGITS.search(leaf) and all(map(self._gives_part, _DIGITS.findall(leaf))):
            letters = [word for word in _words(leaf) if not word.isdigit() and len(word) > 1]
            return Risk.INFERRED if all(word in self._words for word in letters) else Risk.LOSSY
        words = _words(leaf)
        known = sum(word in self._words for word in words)
        # All of its words, in a different order; or most words of a sentence, which says the same in other words.
        reworded = known == len(words) or (len(words) >= _MANY and 2 * known > len(words))
        return Risk.INFERRED if words and reworded and not missing else Risk.LOSSY

    def _is_open(self, leaf: str | float, name: str = "") -> bool:
        """Return whether every clause that has this value leaves it open, or has it in a different unit: `The crew has
        fewer than 5 people.`
        """
        if self.whole or (isinstance(leaf, str) and leaves_open(leaf)):
            return False
        if isinstance(leaf, str):
            rests = [rest for clause in self._clauses if (rest := _besides(clause, leaf)) is not None]
            return bool(rests) and all(rest and leaves_open(rest) for rest in rests)
        stated = [
            is_inexact(clause, *found.span())
            or conflict_in(clause, name) is not None
            or leaves_open(clause[: found.start()] + clause[found.end() :] or "it")
            for clause in self._clauses
            for found in _NUMBER.finditer(clause)
            if abs(leaf) in map(abs, _numbers(found[0]))
        ]
        return bool(stated) and all(stated)

    def _gives_part(self, digits: str) -> bool:
        """Return whether the text contains the digits of a date or a number, or the month by name."""
        number = float(digits)
        if number in self._numbers or number == 0:
            return True
        month = _MONTHS[int(number) - 1] if 1 <= number <= len(_MONTHS) else None
        return month is not None and any(word.startswith(month) for word in self._words)

    def _times(self, leaf: str) -> int:
        """Return the number of times that the text contains these words."""
        words = folded(leaf.replace("\\", ""))
        return len(_short(words).findall(self._said)) if _is_short(words) else self._said.count(words)

    def _elsewhere(self, leaf: object) -> int:
        """Return how often the text is the complete value of another known field, where it has a different meaning."""
        return self._known[folded(leaf) if isinstance(leaf, str) else leaf]

    @cached_property
    def _known(self) -> Counter[Any]:
        """The values of the fields that the schema knows."""
        draft = () if self.draft is None else leaves(self.draft.value)
        known = [value for place, value in draft if schema_at(self.schema, place) is not None]
        return Counter(
            folded(value) if isinstance(value, str) else value
            for value in known
            if isinstance(value, (str, int, float)) and not isinstance(value, bool)
        )

    @cached_property
    def _said(self) -> str:
        """The text to search for values, with or without JSON escapes."""
        if "\\" not in self.text:
            return folded(self.text)
        text = _ESCAPE.sub(_unescaped, self.text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return f"{folded(text)}\n{folded(self.text.replace(chr(92), ''))}"

    @cached_property
    def _clauses(self) -> list[str]:
        """The parts of the text that say something on their own."""
        return [clause for clause in map(folded, _CLAUSE_END.split(self.text.replace("\\", ""))) if clause]

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(_words(self._said))

    @cached_property
    def _numbers(self) -> Counter[float]:
        return Counter(abs(number) for number in _numbers(self.text))

    @cached_property
    def _meant(self) -> set[float]:
        """The numbers that the text states in words and with units: a percentage, thousands, or millions."""
        found = set(numbers_in(_words(self._said), _ALSO))
        for match in _NUMBER.finditer(self.text):
            behind = self.text[match.end() : match.end() + _LOOK_AHEAD].lower().lstrip()
            unit = "%" if behind.startswith("%") else next(iter(_WORD.findall(behind)), "")
            if unit in _UNITS:
                found |= {abs(number) * _UNITS[unit] for number in _numbers(match.group())}
        return found


def _name_at(place: Place) -> str:
    return next((part for part in reversed(place) if isinstance(part, str)), "")


def _is_short(words: str) -> bool:
    return len(words) < _SHORT and words.isascii() and words.isalnum()


def _short(words: str) -> re.Pattern[str]:
    """Return the expression for a short word in a folded text."""
    end = "" if len(words) == _SHORT - 1 else "(?![a-z0-9])"  # "pens" counts as a mention of "pen"
    return re.compile(rf"(?<![a-z0-9]){re.escape(words)}{end}")


def _besides(text: str, leaf: str) -> str | None:
    """Return what a text says besides these words, or None if it does not contain them."""
    text, words = folded(text), folded(leaf.replace("\\", ""))
    rest = _short(words).sub(" ", text) if _is_short(words) else text.replace(words, " ")
    return None if rest == text else rest.strip()


def _parts(schema: JsonSchema) -> list[JsonSchema]:
    """Return a schema and its alternatives."""
    branches = (each for word in ("anyOf", "oneOf") for each in schema.get(word, ()))
    return [schema, *(follow_refs(branch, schema) for branch in branches)]


def _options(schema: JsonSchema) -> list[Any]:
    return [
        choice for part in _parts(schema) for choice in part.get("enum", [part["const"]] if "const" in part else ())
    ]


def _may_mean(said: str, leaf: object, options: Sequence[object]) -> bool:
    """Return whether a text may be another expression for a choice: it names no other one, and decides.

    >>> [_may_mean(said, "high", ["low", "high"]) for said in ("urgent!", "low to high", "not high", "3", "")]
    [True, False, False, False, False]
    """
    own = str(leaf)
    rest = _besides(said, own)
    if rest == "":
        return True
    others = (str(each) for each in options if each != leaf and each is not None)
    if any(_besides(rest or said, other) is not None for other in others if other):
        return False
    return _is_in_words(said) and (leaves_open(own) or not leaves_open(rest or said))


def _is_in_words(text: str) -> bool:
    return any(map(str.isalpha, text))


def _is_only_number(said: str, leaf: float, name: str) -> bool:
    """Return whether a text states this number for a field, and no other one, and leaves nothing open.

    >>> [_is_only_number(said, 5, "hours") for said in ("It is five.", "5 in all", "5 or 6", "up to 5", "5 minutes")]
    [True, True, False, False, False]
    """
    found = [*_AMOUNT.finditer(said)]
    if not found or not all(_is_amount(each, leaf) for each in found):
        return False
    rest = _AMOUNT.sub(" ", said).strip(" .,;:!\"'")
    words = _words(rest)
    if any(is_inexact(said, *each.span()) for each in found) or (rest and leaves_open(rest)) or "minus" in words:
        return False
    units = [word for word in words if is_unit(word) and word != "in"]  # a preposition more often than inches
    return {*units} <= {*name_words(name)} and conflict_in(said, name) is None


def _is_amount(found: re.Match[str], leaf: float) -> bool:
    """Return whether a number in digits or in words is this one."""
    digits, unit = found["digits"], (found["unit"] or "").lower()
    if (leaf < 0) != (digits or "").startswith("-"):
        return False
    if digits is None:
        stated = [*numbers_in(_words(found[0]), _ALSO)]
        return len(stated) == 1 and math.isclose(leaf, stated[0])
    factor = {**MULTIPLES, **_UNITS}.get(unit, 1.0)
    known = {number * each for number in _numbers(digits) for each in (factor, max(factor, 1.0))}
    return any(math.isclose(leaf, number) for number in known)


def _is_only_time(said: str, leaf: str, names: frozenset[str], described: frozenset[str]) -> bool:
    """Return whether a text states this date or time with only neutral words and days of the week next to it.

    >>> [_is_only_time(said, "2024-03-05", frozenset(), frozenset())
    ...     for said in ("It is March 5th, 2024.", "before 5 March 2024", "5 or 6 March 2024", "03/05/2024")]
    [True, False, False, False]
    """
    if len(said) > _MAX_CHARS:
        return False
    given = [int(digits) for digits in _DIGITS.findall(said)]
    wanted = [int(digits) for digits in _DIGITS.findall(leaf)]
    if not {*given} <= {*wanted, wanted[0] % 100 if wanted else 0}:
        return False
    words = [word for word in _words(said) if not word[0].isdigit()]
    named = [word for word in words if word.startswith(_MONTHS)]
    small = [number for number in given if 0 < number <= len(_MONTHS)]
    if not named and len({*small}) > 1 and len(str(given[0])) <= 2 and ":" not in said:
        return False  # the day and the month could be swapped
    rest = " ".join([_MARK, *(word for word in words if word not in named and not word.startswith(_WEEKDAYS))])
    if not sole_choice(rest, {_MARK: leaf}, described, names):
        return False
    return Source(said, None, {}).risk_of((), leaf) is not Risk.LOSSY


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _unescaped(escape: re.Match[str]) -> str:
    if escape["code"]:
        return chr(int(escape["code"], 16))
    return " " if escape.group()[-1] in "nrt" else ""


def _numbers(text: str) -> Iterator[float]:
    """Yield the numbers of a text, each in every way its commas and dots can be read."""
    for found in _NUMBER.findall(text):
        forms = {found, found.replace(",", ""), found.replace(".", "").replace(",", "."), found.replace(",", ".")}
        values: set[float] = set()
        for form in forms:
            try:
                values.add(float(form))
            except ValueError:
                continue
        yield from values


_EXAMPLE: Final = (
    r"(?i:\b(?:examples?|for instance|such as|like this|like so|sample|template|demonstration"
    r"|beispiel|zum beispiel|ejemplo|por ejemplo|exemple|par exemple|esempio|exemplo)\b|\be\.\s?g\.|例)"
)
_SAYS_EXAMPLE: Final = re.compile(_EXAMPLE)
_FORMAT: Final = re.compile(
    r"(?i:\b(?:format|structure|shape|schema|form)\b)\W{0,6}(?i:(?:is|as follows|json)\W{0,6})?\Z"
)
_HEADING: Final = re.compile(rf"\A\W*{_EXAMPLE}")
_SENTENCE_END: Final = re.compile(r"(?<!\be\.g)[.!?]\s+(?=[A-Z\"'{\[])")
_FENCE_END: Final = re.compile(r"```[\w+-]*\s*\Z")
_PLACEHOLDER: Final = re.compile(
    r"\s*(?:<[^<>]{1,80}>|\[[^\[\]]{1,80}\]|\{[^{}]{1,80}\}|\.\.\.|…"
    r"|(?i:string|your [\w' ]{1,40}|[\w' ]{1,40} here))\s*"
)
_BLANK: Final = re.compile(r"\s*(?:<[^<>/]{1,80}>|\.{2,6}|…|_{3,})\s*")
_TYPES: Final = frozenset({"string", "str", "text", "integer", "int", "number", "float", "boolean", "bool"})
_MAY_BE_BLANK: Final = re.compile(rf"[<&…\\]|\.\.|___|{'|'.join(sorted(_TYPES))}")
"""Text that may contain a placeholder, even escaped. Most replies do not, and their values are not searched."""
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_OF_TYPES: Final = ("type", "format", "schema", "kind")
_OF_SIGNS: Final = (
    *("separator", "delimiter", "divider", "glue", "joiner", "ellipsis", "punctuation", "symbol", "sign", "char"),
    *("mark", "bullet", "padding", "filler", "placeholder", "pattern", "regex", "glob"),
)
"""Names of fields whose value may actually be dots."""
Blanks: TypeAlias = Literal["left", "maybe"]
_LOOK_BACK: Final = 800
_SENTENCE: Final = 4
_SAID: Final = 3
"""The number of words that cannot match by coincidence, in a field of an answer or in speech."""


@dataclass
class Examples:
    """The examples of a prompt. The prompt itself is built only when a value could be one of them."""

    prompt: Callable[[], str]

    @cached_property
    def text(self) -> str:
        """The prompt."""
        return self.prompt()

    def hold(self, value: Any, contract: Contract[Any]) -> bool:
        """Return whether a value is an example of the prompt, and no other part of the prompt contains its words.

        An answer may legitimately equal an example: the label of a classification, a short phrase, or words from the
        input. So only words or numbers that cannot be a coincidence count.

        >>> prompt = 'Example: {"name": "Ada Lovelace", "born": 1815}. Now this: The pen of Bo Li, born 1990.'
        >>> from flujo_aros.contract import compile_contract
        >>> [Examples(lambda: prompt).hold(v, compile_contract(dict)) for v in
        ...     ({"name": "Ada Lovelace", "born": 1815}, {"name": "Bo Li", "born": 1990})]
        [True, False]
        """
        if isinstance(value, Event):
            return self._say(value.text)
        if "{" not in self.text:
            return False
        plain = _plain(value)
        if not isinstance(plain, (dict, list)):
            return False
        distinctive = list[Any]()
        for place, leaf in _leaves(plain):
            if not _weight(leaf):
                continue
            if _written(leaf) not in self.text:  # the common case: most values do not occur in the prompt
                return False
            if not _is_choice(contract, place):
                distinctive.append(leaf)
        if sum(map(_weight, distinctive)) < _ENOUGH:
            return False
        places = [(start, end) for found, start, end in values_in(self.text) if found == plain]
        if not any(_is_introduced(self.text, start) for start, _ in places):
            return False
        rest = folded(without(self.text, places))
        return sum(_weight(leaf) for leaf in distinctive if folded(str(leaf)) not in rest) >= _ENOUGH

    def _say(self, text: str) -> bool:
        """Return whether the prompt shows this text as an example."""
        words = text.strip()
        if len(words.split()) < _SAID or _written(words) not in self.text:
            return False
        places = [match.span() for match in re.finditer(re.escape(_written(words)), self.text)]
        return all(self._is_example(start) for start, _ in places)

    def show_dots(self, value: Any, dots: str) -> Literal["form", "data"] | None:
        """Return the form in which the prompt shows dots: in an example that equals this value, or as quoted text.

        >>> asked = Examples(lambda: 'Which sign is used here: "a ... b"? Quote it, such as "---" or "...".')
        >>> asked.show_dots({"found": "..."}, "..."), asked.show_dots({"found": "___"}, "___")
        (None, None)
        >>> Examples(lambda: "The parts are joined by '...'.").show_dots({"found": "..."}, "...")
        'data'
        """
        if dots not in self.text:
            return None
        plain = _plain(value)
        equal = [start for found, start, _ in values_in(self.text) if found == plain] if "{" in self.text else []
        if equal:
            return "form" if any(_is_introduced(self.text, start) for start in equal) else None
        quoted = rf"(?:(?<=[\"'`“‘«])|^){re.escape(dots)}(?=[\"'`”’»]|$)"
        places = [found.start() for found in re.finditer(quoted, self.text, re.MULTILINE)]
        return "data" if any(not self._is_example(place) for place in places) else None

    def _is_example(self, place: int) -> bool:
        """Return whether text in the prompt is introduced as an example, directly or by the JSON object that contains
        it.
        """
        brace = self.text.rfind("{", max(0, place - _LOOK_BACK), place)
        in_object = brace > self.text.rfind("}", max(0, place - _LOOK_BACK), place)
        return _is_introduced(self.text, brace if in_object else place, heading=in_object)


_ENOUGH: Final = 2
_MOST_LEAVES: Final = 40


def _plain(value: Any) -> Any:
    if isinstance(value, Block):
        return value.fields
    if type(value) in (dict, list):
        return value
    return to_jsonable_python(value, by_alias=True, fallback=str)


def _weight(leaf: Any) -> int:
    """Return the distinctiveness of a value: 2 for a sentence or a blank to fill in, 1 for a name,
    a code or a number.
    """
    if isinstance(leaf, bool) or leaf is None:
        return 0
    if isinstance(leaf, (int, float)):
        return int(abs(leaf) >= 100)
    words = leaf.split(None, _SENTENCE)
    if len(words) >= _SENTENCE or _PLACEHOLDER.fullmatch(leaf):
        return 2
    return int(len(words) > 1 or (any(c.isdigit() for c in leaf) and len(leaf) > 3) or "@" in leaf)


def _is_introduced(text: str, start: int, *, heading: bool = True) -> bool:
    """Return whether the words before a location, or the heading of its paragraph, announce an example."""
    before = _FENCE_END.sub("", text[max(0, start - _LOOK_BACK) : start]).rstrip()
    paragraph = re.split(r"\n\s*\n", before)[-1]
    line = paragraph.rpartition("\n")[2]
    sentence = _SENTENCE_END.split(line)[-1]
    return bool(_SAYS_EXAMPLE.search(sentence) or _FORMAT.search(sentence)) or (
        heading and bool(_HEADING.match(paragraph))
    )


def _is_choice(contract: Contract[Any], place: Place) -> bool:
    """Return whether the schema lists the values to choose from, so that a right answer often equals an example."""
    schema = schema_at(contract.json_schema, place)
    return schema is not None and ("enum" in schema or "const" in schema)


def _leaves(value: Any) -> Iterator[tuple[Place, Any]]:
    """Return the scalars of a value with their paths, in order, up to the number examined."""
    return islice(((place, leaf) for place, leaf in leaves(value) if not isinstance(leaf, (dict, list))), _MOST_LEAVES)


def _written(leaf: Any) -> str:
    """Return a value as a prompt contains it, up to the first character that JSON would escape."""
    return leaf.partition('"')[0].partition("\\")[0].partition("\n")[0] if isinstance(leaf, str) else str(leaf)


def blanks_in(value: Any, contract: Contract[Any], examples: Examples | None = None) -> Blanks | None:
    """Return whether a value is an unfilled template: all its strings are dots, `<name>`, or names of types.

    Brackets with the name of the field, several fields of dots, and dots that the prompt shows as an example are
    certainly placeholders. Names of types, and the dots of a single field, may be intended. Dots that the prompt
    quotes, and dots in a field for symbols, such as a separator, are an answer.

    >>> from flujo_aros.contract import compile_contract
    >>> forms = ({"name": "<name>", "age": 0}, {"a": "string", "b": "string"}, {"separator": "..."})
    >>> [blanks_in(form, compile_contract(dict)) for form in forms]
    ['left', 'maybe', None]
    """
    if isinstance(value, Event):
        return None
    texts: list[tuple[Place, str]] = []
    others = 0
    for place, leaf in _leaves(_plain(value)):
        if not isinstance(leaf, str):
            others += 1
            if leaf not in (0, None):
                return None
        elif _is_blank(leaf, place) and not _is_choice(contract, place):
            texts.append((place, leaf))
        else:
            return None
    if texts and all(_is_surely_blank(leaf, place) for place, leaf in texts):
        return _about_dots(value, texts, examples)
    return "maybe" if texts and len(texts) + others > 1 else None


def _about_dots(value: Any, texts: Sequence[tuple[Place, str]], examples: Examples | None) -> Blanks | None:
    """Return the verdict on blanks that may be only dots: possibly an answer, unless one contains a field name."""
    if any(_in_words(leaf) for _, leaf in texts):
        return "left"
    shown = {examples.show_dots(value, leaf) for _, leaf in texts} if examples is not None else {None}
    if shown == {"data"}:
        return None
    return "left" if "form" in shown or len(texts) > 1 else "maybe"


def _is_blank(leaf: str, place: Place) -> bool:
    """Return whether a text may be a template's placeholder for an answer."""
    if leaf in _TYPES:
        return not _is_about(place, _OF_TYPES)
    return _BLANK.fullmatch(leaf) is not None and (bool(_in_words(leaf)) or not _is_about(place, _OF_SIGNS))


def _is_surely_blank(leaf: str, place: Place) -> bool:
    """Return whether a text is dots, or the name of its own field in brackets; `<div>` may well be an answer."""
    if leaf in _TYPES:
        return False
    inner, field = _in_words(leaf), _in_words(str(place[-1])) if place else ""
    return not inner or fold(inner) == fold(field) or bool(field and (field in inner or inner in field))


def _in_words(name: str) -> str:
    """Return the words of a name, each between spaces: `<tag>` refers to `html_tag`, and `<a>` does not."""
    words = _WORD.findall(_CAMEL.sub(" ", name))
    return f" {' '.join(words).casefold()} " if words else ""


def _is_about(place: Place, words: Sequence[str]) -> bool:
    return any(word in str(part).casefold() for part in place for word in words)


def unechoed(
    outcome: Outcome[T], examples: Examples | None, contract: Contract[T], asks: Callable[[], bool]
) -> Outcome[T]:
    """Return the outcome, unless its value is an example of the prompt or an unfilled template.

    If a stage `asks` again, such a value is rejected, so that the model is asked once more. Otherwise, or after that,
    it is accepted and reported as a repair. Spoken text is never taken from an example, and a blank is not a value.
    """
    if not isinstance(outcome, Accepted):
        return outcome
    as_written = isinstance(outcome.value, str) and outcome.value == outcome.text  # a text, not JSON
    may_be_blank = contract.mode in ("json", "tagged") and not as_written and _MAY_BE_BLANK.search(outcome.text)
    blanks = blanks_in(outcome.value, contract, examples) if may_be_blank else None
    if blanks == "left" or (blanks and asks()):
        words = "the value is the unfilled template itself"
        return Rejected(Reason.ECHOED_SCHEMA, (Issue("$", "echoed_form", words),), outcome.text)
    if not blanks and (examples is None or not examples.hold(outcome.value, contract)):
        return outcome
    if asks() or isinstance(outcome.value, Event):
        words = "the value is the example from the prompt, word for word; answer for the actual input"
        return Rejected(Reason.ECHOED_SCHEMA, (Issue("$", "echoed_example", words),), outcome.text)
    repeats = Repair("repeats-example", Risk.INFERRED, "$", (0, len(outcome.text)), outcome.text[:80], "")
    trust = Trust.lowest([outcome.trust, Trust.INFERRED])
    return replace(outcome, repairs=(*outcome.repairs, repeats), trust=trust)
