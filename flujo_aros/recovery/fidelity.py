"""Limits of a repair: it must not change a correct value, or invent one that the failing reply does not contain."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, TypeVar, cast

from flujo_aros.contract import Contract, JsonSchema, path_of
from flujo_aros.errors import ContractError
from flujo_aros.json_data import is_dict
from flujo_aros.outcome import Accepted, Draft, Issue, Outcome, Reason, Rejected, Repair, Risk, Trust
from flujo_aros.reading.read import read
from flujo_aros.recovery.json_path import Place, leaves, place_of, schema_at, value_at

T = TypeVar("T")

_NOWHERE: Final = object()
_NO_PLACE: Final = frozenset({"missing", "required", "truncated", "changed"})
"""Issues that do not object to the value itself."""
_MAX_CHARS: Final = 120


def keeping(outcome: Outcome[T], failing: Rejected, contract: Contract[T], *, cut: bool = False) -> Outcome[T]:
    """The outcome, or a rejection if an accepted value changes parts of the failing output that were right.

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
    """The value of a text as plain JSON, with the names of the schema, or None if unknown."""
    try:
        plain: Outcome[Any] = read(text, schema, truncated=False)
    except ContractError:  # the JSON of a type may contain more than its JSON Schema can express
        return None
    return plain if isinstance(plain, Accepted) else None


def _changes(draft: Any, value: Any, issues: Sequence[Issue], schema: JsonSchema, *, cut: bool) -> Iterator[Issue]:
    wrong = [place for issue in issues if issue.code not in _NO_PLACE and (place := place_of(issue.path)) is not None]
    stated = list(leaves(draft))
    for place, leaf in stated[:-1] if cut else stated:
        if any(_touch(place, other) for other in wrong) or schema_at(schema, place) is None:
            continue
        if not same(leaf, value_at(value, place, _NOWHERE)):
            shown = repr(leaf) if len(repr(leaf)) <= _MAX_CHARS else f"{repr(leaf)[:_MAX_CHARS]}…"
            yield Issue(path_of(place), "changed", f"it was {shown}, which was right and must stay")
    if not cut:
        yield from _shorter(draft, value, wrong)


def _shorter(draft: Any, value: Any, wrong: Sequence[Place]) -> Iterator[Issue]:
    """Lists without an error that now have another length."""
    for place, items in _lists(draft, ()):
        now = value_at(value, place, _NOWHERE)
        other_length = isinstance(now, list) and len(cast("Sequence[Any]", now)) != len(items)
        if other_length and not any(_touch(place, other) for other in wrong):
            yield Issue(path_of(place), "changed", f"it had {len(items)} items, which must stay")


def _touch(one: Place, other: Place) -> bool:
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def _lists(value: Any, place: Place) -> Iterator[tuple[Place, Sequence[Any]]]:
    if is_dict(value):
        for key, inner in value.items():
            yield from _lists(inner, (*place, key))
    elif isinstance(value, list):
        items = cast("Sequence[Any]", value)
        yield place, items
        for index, inner in enumerate(items):
            yield from _lists(inner, (*place, index))


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal, ignoring the case and spacing of strings."""
    if isinstance(one, str) and isinstance(other, str):
        return folded(one) == folded(other)
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def folded(text: str) -> str:
    """A string without case and spacing."""
    return " ".join(text.casefold().split())


MADE_UP: Final = "not_in_output"
"""The issue code for such a value where a repair with that risk is not allowed."""

_NUMBER: Final = re.compile(r"-?\d+(?:[.,]\d+)*(?:[eE][+-]?\d+)?")
_DIGITS: Final = re.compile(r"\d+")
_WORD: Final = re.compile(r"[^\W_]+")
_ESCAPE: Final = re.compile(r"\\(?:u(?P<code>[0-9A-Fa-f]{4})|[nrt\\])?")
_SHORT: Final = 4
"""A shorter text counts only at the start of a word."""
_MANY: Final = 4
"""A string with at least this many words may be paraphrased."""
_LOOK_AHEAD: Final = 12
"""How far after a number its unit begins."""
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_COUNTS: Final = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
)
_TENS: Final = ("thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_NAMED: Final = {
    **{word: float(number) for number, word in enumerate(_COUNTS)},
    **{word: 10.0 * tens for tens, word in enumerate(_TENS, 3)},
    "hundred": 100.0,
    "thousand": 1000.0,
    "dozen": 12.0,
    "half": 0.5,
    "once": 1.0,
    "twice": 2.0,
    "no": 0.0,
}
_UNITS: Final = {"%": 0.01, "percent": 0.01, "k": 1e3, "thousand": 1e3, "m": 1e6, "million": 1e6, "billion": 1e9}


def grounded(
    outcome: Outcome[T], source: str, contract: Contract[T], *, draft: Draft | None = None, whole: bool = False
) -> Outcome[T]:
    """The outcome, with every value in it that the source does not state reported as the repair `not-in-output`.

    INFERRED is a value that follows from the source: a date in another format, a number in words, a choice based on the
    value at its place. LOSSY is a value that nothing in the source supports, so it was made up. If the contract, or the
    place itself, does not allow that risk, the outcome is a rejection (`not_in_output`). `draft` is the value read from
    the source. `whole` means that the question was about the whole source, so a choice may be based on all of it.

    >>> from flujo_aros import read
    >>> from flujo_aros.contract import compile_contract
    >>> contract = compile_contract({"type": "object", "properties": {"days": {"type": "integer"}}})
    >>> made = grounded(read('{"days": 7}', contract), "a few", contract)
    >>> made.issues[0].message
    'nothing in the text says 7: it was made up'
    """
    if not isinstance(outcome, Accepted) or contract.mode != "json":
        return outcome
    plain = plain_value(outcome.text, contract.json_schema)
    if plain is None:
        return outcome
    text = Source(source, draft, contract.json_schema, whole=whole)
    found = [(place, leaf, text.risk_of(place, leaf)) for place, leaf in leaves(plain.value)]
    new = [(place, leaf, risk) for place, leaf, risk in found if risk is not None]
    made_up = tuple(
        Issue(path_of(place), MADE_UP, f"nothing in the text says {_shown(leaf)}: it was made up")
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
    worst = Trust.of([*repairs, *outcome.repairs])
    better = outcome.trust in (Trust.CLEAN, Trust.LOSSLESS, Trust.INFERRED, Trust.LOSSY)
    return replace(outcome, repairs=(*outcome.repairs, *repairs), trust=worst if better else outcome.trust)


def _allowed(contract: Contract[Any], place: Place) -> Risk:
    """The highest risk allowed for a repair at a place."""
    hints: object = (schema_at(contract.json_schema, place) or {}).get("x-aros")
    own: object = hints.get("risk") if is_dict(hints) else None
    return Risk[own.upper()] if isinstance(own, str) and own.upper() in Risk.__members__ else contract.risk


def _shown(leaf: object) -> str:
    shown = repr(leaf)
    return shown if len(shown) <= _MOST_SHOWN else f"{shown[:_MOST_SHOWN]}…"


_MOST_SHOWN: Final = 80


@dataclass
class Source:
    """A source text that values are compared with, and the values read from it."""

    text: str
    draft: Draft | None
    schema: JsonSchema
    whole: bool = False

    def risk_of(self, place: Place, leaf: object) -> Risk | None:
        """How far a value at a place departs from the text, or None if the text states it."""
        here = schema_at(self.schema, place) or {}
        if leaf is None or "const" in here or ("default" in here and same(leaf, here["default"])):
            return None
        there = _NOWHERE if self.draft is None else value_at(self.draft.value, place, _NOWHERE)
        if there is not _NOWHERE and same(there, leaf):
            return None
        missing = self.draft is not None and there is _NOWHERE
        if isinstance(leaf, bool) or "enum" in here or leaf in ("", [], {}):
            return self._of_choice(place, leaf, missing=missing)
        if isinstance(leaf, (int, float)):
            return self._of_number(float(leaf), missing=missing)
        return self._of_words(str(leaf), missing=missing)

    def _of_choice(self, place: Place, leaf: object, *, missing: bool) -> Risk | None:
        """A choice is based on the value at its place, or on prose about it."""
        if isinstance(leaf, str) and leaf and self._times(leaf) > (self._elsewhere(leaf) if missing else 0):
            return None
        if missing:
            return Risk.LOSSY
        name = next((part for part in reversed(place) if isinstance(part, str)), "")
        speaks = self.draft is not None or self.whole or any(word in self._words for word in _words(name))
        return Risk.INFERRED if speaks else Risk.LOSSY

    def _of_number(self, leaf: float, *, missing: bool) -> Risk | None:
        if self._numbers[abs(leaf)] > (self._elsewhere(leaf) if missing else 0):
            return None
        follows = any(abs(abs(leaf) - number) <= abs(leaf) * 1e-9 for number in self._meant)
        return Risk.INFERRED if follows else Risk.LOSSY

    def _of_words(self, leaf: str, *, missing: bool) -> Risk | None:
        if self._times(leaf) > (self._elsewhere(leaf) if missing else 0):
            return None
        if _DIGITS.search(leaf) and all(map(self._gives_part, _DIGITS.findall(leaf))):
            letters = [word for word in _words(leaf) if not word.isdigit() and len(word) > 1]
            return Risk.INFERRED if all(word in self._words for word in letters) else Risk.LOSSY
        words = _words(leaf)
        known = sum(word in self._words for word in words)
        # All of its words, in another order; or most words of a sentence, which says the same in other words.
        reworded = known == len(words) or (len(words) >= _MANY and 2 * known > len(words))
        return Risk.INFERRED if words and reworded and not missing else Risk.LOSSY

    def _gives_part(self, digits: str) -> bool:
        """Whether the text contains the digits of a date or a number, or the month by name."""
        number = float(digits)
        if number in self._numbers or number == 0:
            return True
        month = _MONTHS[int(number) - 1] if 1 <= number <= len(_MONTHS) else None
        return month is not None and any(word.startswith(month) for word in self._words)

    def _times(self, leaf: str) -> int:
        """How often the text contains these words."""
        words = folded(leaf.replace("\\", ""))
        if len(words) >= _SHORT or not words.isascii() or not words.isalnum():
            return self._said.count(words)
        end = "" if len(words) == _SHORT - 1 else "(?![a-z0-9])"  # "pens" speaks of a pen
        return len(re.findall(rf"(?<![a-z0-9]){re.escape(words)}{end}", self._said))

    def _elsewhere(self, leaf: object) -> int:
        """How often it is the complete value of another known field, where it means something else."""
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
        said = _ESCAPE.sub(_unescaped, self.text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return f"{folded(said)}\n{folded(self.text.replace(chr(92), ''))}"

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(_words(self._said))

    @cached_property
    def _numbers(self) -> Counter[float]:
        return Counter(abs(number) for number in _numbers(self.text))

    @cached_property
    def _meant(self) -> set[float]:
        """The numbers that the text states in words and with units: a percentage, thousands, millions."""
        found = {_NAMED[word] for word in self._words if word in _NAMED}
        for match in _NUMBER.finditer(self.text):
            behind = self.text[match.end() : match.end() + _LOOK_AHEAD].lower().lstrip()
            unit = "%" if behind.startswith("%") else next(iter(_WORD.findall(behind)), "")
            if unit in _UNITS:
                found |= {abs(number) * _UNITS[unit] for number in _numbers(match.group())}
        return found


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _unescaped(escape: re.Match[str]) -> str:
    if escape["code"]:
        return chr(int(escape["code"], 16))
    return " " if escape.group()[-1] in "nrt" else ""


def _numbers(text: str) -> Iterator[float]:
    """The numbers of a text, each in every way its commas and dots can be read."""
    for found in _NUMBER.findall(text):
        forms = {found, found.replace(",", ""), found.replace(".", "").replace(",", "."), found.replace(",", ".")}
        values: set[float] = set()
        for form in forms:
            try:
                values.add(float(form))
            except ValueError:
                continue
        yield from values
