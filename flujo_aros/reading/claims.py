"""Recognizes sentences next to an answer that give one of its fields another value, whatever the words.

Three questions decide. Which value does the sentence hold that is not in the answer: a number, a date, a code, a
choice, a name, a boolean? Which fields could it be for: by type, unit, size, form, and the names next to it? Is it
asserted of the answer: not negated, not under a condition, and not about another time or another thing? A sentence that
asserts the answer's own value contradicts nothing, and one with other values for two fields is about another thing.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice, pairwise
from typing import Any, Final, NamedTuple

from flujo_aros.contract import TIMES, Shape, fold
from flujo_aros.reading.grammar import CJK, expression
from flujo_aros.reading.phrases import word_set
from flujo_aros.reading.remarks import (
    FUNCTION_WORDS,
    IN_WORDS,
    LETTERS,
    UNASKED,
    class_of,
    count_in,
    is_explained,
    letter_of,
    words_in,
)
from flujo_aros.reading.scalars import MONTHS, Hints, is_unit, name_words, read_amount, read_time
from flujo_aros.spelling import distance

_OWN, _UNLIKE, _LIKE, _SURE = range(4)
"""What a word is for a field: its value, or another one that is unlike it, like it, or certainly of that field."""


class Field(NamedTuple):
    """A field of an answer, with its value and the choices of its schema in lower case."""

    name: str
    kind: str
    """`number`, `flag`, `choice`, `day`, `code` (with digits), `text`, or `empty` if there is no value."""
    held: Any
    choices: frozenset[str]
    listed: bool = False
    """Whether its value is one of several: a sentence can deny it, but gives the field no other value."""

    @property
    def has_year(self) -> bool:
        """Whether its value is a year."""
        return isinstance(self.held, int) and _is_year(self.held)


def fields_of(leaves: Mapping[str, list[Any]], names: Mapping[str, Shape]) -> tuple[Field, ...]:
    """Return the fields of an answer; one with several values is a field for each of them."""
    found: list[Field] = []
    for name, shape in names.items():
        parts = (shape, *shape.branches)
        choices = (each for part in parts for each in part.choices or () if isinstance(each, str) and len(each) > 1)
        known = frozenset(map(str.casefold, choices))
        held = leaves.get(fold(name), [])
        for value in map(_as_number, held[:_MOST_LISTED] or [None]):
            kind = "choice" if known and value else _kind(value, parts)
            found.append(Field(name, kind, value, known if len(held) < 2 else frozenset(), listed=len(held) > 1))
    return tuple(sorted(found, key=lambda field: field.listed))


def _as_number(value: Any) -> Any:
    """Return a decimal in a string as a number, but not digits alone, which may be a code."""
    return float(value) if isinstance(value, str) and _DECIMAL.fullmatch(value) else value


def _kind(value: Any, parts: Sequence[Shape]) -> str:
    if value is None or value == "":
        return "empty"
    if isinstance(value, (bool, int, float)):
        return "flag" if isinstance(value, bool) else "number"
    if any(part.format in TIMES for part in parts) or _ISO_DAY.match(str(value)):
        return "day"
    return "code" if any(map(str.isdigit, str(value))) and " " not in str(value) else "text"


class Claims:
    """What sentences say of the fields of an answer."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self.fields = fields
        known = _vocabulary(tuple((field.name, field.choices) for field in fields if not field.listed))
        self.named = known.named
        self._plurals = {word for field in fields for word in name_words(field.name) if word.endswith("s")}
        self.words = {choice: dict(means) for choice, means in known.choices.items()}
        held = [field.held.casefold() if _is_short(field.held) else "" for field in fields]
        for at, word in enumerate(held):
            if word:
                self.words.setdefault(word, {})[at] = _OWN
        self._spelled = re.compile(_any_of({*held} - {""}), re.I), known.spelled

    def _own_word(self, sentence: str, at: int) -> re.Match[str] | None:
        """Return the next name or value: whole words, which no blank separates from those of other scripts."""
        found = [match for part in self._spelled for match in islice(_whole(part, sentence, at), 1)]
        return min(found, key=lambda match: (match.start(), -match.end()), default=None)

    def contradicted_by(self, sentence: str) -> str | None:
        """Return the name of the field that a sentence gives another value, or None.

        >>> claims = Claims([Field("wind_kn", "number", 28, frozenset())])
        >>> [claims.contradicted_by(f"The log puts the wind at {said}.") for said in ("38 knots", "28 knots")]
        ['wind_kn', None]
        """
        whole = _MARKS.sub(" ", sentence[:_LONGEST_SENTENCE])
        sentence = _STRUCK.sub(r" not \1\2 but ", _BESIDES.sub(_kept, whole))
        if (item := _ITEM.match(sentence)) is not None and not self._is_named(item["label"]):
            return None
        found = _Sentence(self.fields, *self._read(sentence))
        index = None if _SUPPOSED.search(found.code) else found.otherwise(whole)
        if index is None or (UNASKED.search(sentence) and not found.is_about(index)):
            return None
        return self.fields[index].name

    def _is_named(self, label: str) -> bool:
        words = label.casefold().split()
        return any(class_of(word) not in {None, *FUNCTION_WORDS} or fold(word) in self.named for word in words)

    def _read(self, sentence: str) -> tuple[str, list[Mapping[int, int]]]:
        """Return a letter for each word of a sentence, and what the word is for the fields."""
        letters, says, text, end = [""], [dict[int, int]()], "", 0
        for found in self._values_in(sentence):
            letter, means = self._word(found)
            if letter:
                letters.append(LETTERS[letter])
                own = {at: how for at, how in means.items() if how == _OWN or letter == "FIELD"}
                says.append(own or {at: how for at, how in means.items() if not self.fields[at].listed})
                text += f"{sentence[end : found.start()]} \0{chr(_FIRST_MARK + len(says) - 1)} "
                end = found.end()
        words = words_in((text + sentence[end:]).lower())
        marks = [ord(word[1]) - _FIRST_MARK if word[0] == "\0" else 0 for word in words]
        code = "".join(letters[at] or letter_of(word) for at, word in zip(marks, words, strict=True))
        return code, [says[at] for at in marks]

    def _values_in(self, sentence: str) -> Iterator[re.Match[str]]:
        parts: tuple[Callable[[str, int], re.Match[str] | None], ...] = _QUOTE.search, self._own_word, _OTHER.search
        found = [part(sentence, 0) for part in parts]
        while ahead := [match for match in found if match]:
            first = min(ahead, key=re.Match[str].start)
            yield first
            at = first.end()
            found = [
                part(sentence, at) if match and match.start() < at else match
                for part, match in zip(parts, found, strict=True)
            ]

    def _word(self, found: re.Match[str]) -> tuple[str, dict[int, int]]:
        """Return the class of a word, or an empty string if it is neither a value nor a name."""
        word = (found["inner"].strip(" .,") if found.lastgroup == "inner" else found[0]).casefold()
        if (choice := self.words.get(word)) is not None:
            return "VALUE" if _OWN in choice.values() else "CHOICE", choice
        if found.lastgroup is None:
            if _PER.search(found.string, max(0, found.start() - _LONGEST_PART), found.start()):
                return "", {}  # `the price per night`
            named = self.named.get(fold(word)) or self.named.get(fold(word[:-1]), {})
            is_label = found.string[found.end() : found.end() + 1] == ":"
            return "" if class_of(word) in FUNCTION_WORDS and not is_label else "FIELD", named
        means = self._means(found)
        if means is None:
            return "", {}
        return "VALUE" if _OWN in means.values() else "PROPER" if found.lastgroup == "proper" else "OTHER", means

    def _means(self, found: re.Match[str]) -> dict[int, int] | None:
        """Return what a number, a date, a code or a name is for each field, or None if it is not a value."""
        said = found[0]
        match found.lastgroup:
            case "inner":
                inner = found["inner"].strip(" .,")
                parts = [part for part in _OTHER.finditer(inner) if part.lastgroup != "proper"]
                meant = [means for part in parts if (means := self._means(part)) is not None]
                if len(parts) == 1 and parts[0][0] == inner:
                    return meant[0] if meant else None
                return next((means for means in meant if _OWN in means.values()), self._texts(inner, quoted=True))
            case "proper":
                return self._proper(said, opens=found.start() == 0, german=_GERMAN.search(found.string) is not None)
            case "day":
                return self._days(said)
            case "time":
                return self._times(said)
            case "numeral" if said.casefold() in _VAGUE:
                return None
            case "number" | "numeral" if values := _numbers_meant(said):
                return self._numbers(found, values)
            case _:
                return self._codes(said.casefold())

    def _proper(self, said: str, *, opens: bool, german: bool) -> dict[int, int] | None:
        words = said.split()
        held = " ".join(str(field.held) for field in self.fields if field.kind == "text").casefold()
        if opens and len(words) > 1 and words[0].casefold() not in held.split():
            words = words[1:]  # the first word of a sentence has a capital, too
        while words and words[0] in _TITLES:
            words = words[1:]
        name = " ".join(words)
        if not name or (any(class_of(word.casefold()) for word in words) and name.casefold() not in held):
            return None
        means = self._texts(name, quoted=False)
        is_noun = german and len(words) == 1 and {_OWN, _SURE}.isdisjoint(means.values())
        return None if is_noun or not means else means

    def _texts(self, text: str, *, quoted: bool) -> dict[int, int]:
        means: dict[int, int] = {}
        said = text.casefold()
        words = set(said.split())
        for at, field in enumerate(self.fields):
            if field.kind == "empty":
                means[at] = _LIKE
            elif field.kind == "text":
                held = str(field.held).casefold()
                others = set(held.split())
                if words <= others or (others <= words and not quoted) or (quoted and _introduces(said, held)):
                    means[at] = _OWN
                elif any(map(str.isdigit, held)) and not any(map(str.isdigit, said)):
                    continue
                elif any(_is_variant(said, part) for part in (held, *others)) or others <= words:
                    means[at] = _SURE
                else:
                    cased = text[:1].isupper() == str(field.held)[:1].isupper()
                    means[at] = _LIKE if cased and (len(words) > 1) == (len(others) > 1) else _UNLIKE
        return means

    def _codes(self, said: str) -> dict[int, int]:
        means: dict[int, int] = {}
        for at, field in enumerate(self.fields):
            if field.kind == "empty":
                means[at] = _LIKE
            elif field.kind in ("code", "text"):
                held = field.held.casefold()
                if said in held:
                    means[at] = _OWN
                elif field.kind == "code" and _form(said)[:2] == _form(held)[:2]:
                    means[at] = _SURE if _DIGITS.split(said)[0] == _DIGITS.split(held)[0] else _LIKE
        return means

    def _days(self, said: str) -> dict[int, int]:
        means: dict[int, int] = {}
        year = _YEAR.search(said)
        for at, field in enumerate(self.fields):
            if field.kind == "day":
                days = [read_time(written, "date") for written in (said, f"{said} {str(field.held)[:4]}")]
                known = [day.iso for day in days if day is not None and _ISO_DAY.match(day.iso)]
                if known:
                    means[at] = _OWN if str(field.held)[:10] in known else _LIKE
            elif field.has_year and year is not None:
                means[at] = _OWN if int(year[0]) == field.held else _LIKE
        return means

    def _times(self, said: str) -> dict[int, int]:
        """Compare a time as it begins, without the zero in front: `9:30` is 09:30:00."""
        wanted = said.removeprefix("0")
        held = {at: _CLOCK.search(str(field.held)) for at, field in enumerate(self.fields) if field.kind == "day"}
        return {at: _OWN if time[1].startswith(wanted) else _LIKE for at, time in held.items() if time is not None}

    def _numbers(self, found: re.Match[str], values: set[float]) -> dict[int, int]:
        said = found[0].casefold()
        before = _WORD_BEFORE.search(found.string, max(0, found.start() - _LONGEST_PART), found.start())
        lead = before["word"] if before else ""
        unit = (_UNIT_BEHIND.match(found.string, found.end()) or ["", ""])[1]
        if fold(lead) in self.named and f"{fold(lead)}s" in self._plurals:
            return {}  # `on move 31`
        is_place = lead.casefold() in _PLACES or (lead[:1].isupper() and found.start() > len(lead) + 1)
        means: dict[int, int] = {}
        for at, field in enumerate(self.fields):
            if field.kind != "number":
                if isinstance(field.held, str) and said in field.held.casefold().split():
                    means[at] = _OWN
                elif field.kind == "empty":
                    means[at] = _UNLIKE
            elif any(_is_same(value, field.held, said) for value in values):
                means[at] = _OWN
            elif not is_place or fold(lead) in self.named:
                likeness = _likeness(values, said, unit, field)
                if likeness is not None:
                    means[at] = likeness
        return means


def _introduces(text: str, value: str) -> bool:
    """Return whether a quotation has a value behind other words, as in `Organized by Ann Lee`."""
    return len(value) <= _LONGEST_PART and re.search(rf"{_INTRODUCES}{re.escape(value)}(?!\w)", text, re.I) is not None


def _kept(beside: re.Match[str]) -> str:
    """Return code that is one word, or a field with its value; nothing else that stands beside a sentence."""
    code = beside["code"] or ""
    return f" {code} " if " " not in code or _PAIR.match(code) else " "


class _Vocabulary(NamedTuple):
    """The names and choices of fields, what each is for the fields, and an expression for all of them."""

    named: dict[str, dict[int, int]]
    choices: dict[str, dict[int, int]]
    spelled: re.Pattern[str]


@lru_cache(maxsize=128)
def _vocabulary(fields: tuple[tuple[str, frozenset[str]], ...]) -> _Vocabulary:
    named: dict[str, dict[int, int]] = {}
    choices: dict[str, dict[int, int]] = {}
    times = Counter(word for name, _ in fields for word in set(name_words(name)))
    for at, (name, own) in enumerate(fields):
        words = [
            word for word in _distinct_words(name) if times[word] == 1
        ]  # `the balance`, of two balances, is neither
        for each in (name, *words, *(form for word in words for form in _forms(word))) if len(name) > 1 else ():
            named.setdefault(fold(each), {})[at] = _SURE if each == name else _OWN
        for choice in own:
            choices.setdefault(choice, {})[at] = _SURE if class_of(choice) is None else _UNLIKE
    parts = {*named, *choices, *(name for name, _ in fields if len(name) > 1)}
    return _Vocabulary(named, choices, re.compile(_any_of(parts), re.I))


@lru_cache(maxsize=1_024)
def _distinct_words(name: str) -> tuple[str, ...]:
    """Return the words of a name that may stand for it alone."""
    return tuple(word for word in name_words(name) if len(word) > _SHORT and class_of(word) is None)


def _is_short(held: Any) -> bool:
    return isinstance(held, str) and 1 < len(held) <= _LONGEST_PART


def _any_of(words: Iterable[str]) -> str:
    parts = (
        r"[\s_-]?".join(map(re.escape, _NAME_PART.findall(word))) if "_" in word else re.escape(word) for word in words
    )
    return f"(?:{'|'.join(sorted(parts, key=len, reverse=True)) or '(?!)'})s?"


def _whole(part: re.Pattern[str], sentence: str, at: int) -> Iterator[re.Match[str]]:
    for found in part.finditer(sentence, at):
        within = found.start() and _WITHIN.match(sentence, found.start() - 1)
        if not within and not _CONTINUED.match(sentence, found.end()):
            yield found


def _likeness(values: set[float], said: str, unit: str, field: Field) -> int | None:
    """Return how likely it is that a number was meant for a field, or None if it cannot be."""
    whole = [value for value in values if not isinstance(field.held, int) or value == int(value)]
    fits = _fits(unit, said, field)
    if not whole or fits is False or (field.has_year != all(map(_is_year, whole)) and not fits):
        return None
    if fits:
        return _SURE
    counts = max(whole) < _MANY and len(unit) > 2 and class_of(unit.casefold()) not in _SMALL_WORDS
    return _LIKE if not counts and min(_ratio(value, field.held) for value in whole) <= _NEAR else _UNLIKE


def _fits(unit: str, said: str, field: Field) -> bool | None:
    """Return whether a unit is the field's, or None if it says nothing."""
    named = name_words(field.name)
    if not unit or fold(unit) in _CURRENCIES or unit in "€$£¥":
        return None
    if _PRICES.isdisjoint(named) and not {fold(unit), fold(unit).removesuffix("s")}.isdisjoint(named):
        return True
    amount = read_amount(f"{said} {unit}", Hints(tuple(named)))
    if amount is not None and not {"unit", "percent"}.isdisjoint(amount.codes):
        return True
    return False if is_unit(unit) else None


def _numbers_meant(said: str) -> set[float]:
    """Return the numbers that digits or words may mean: with a decimal point or a decimal comma."""
    if not any(map(str.isdigit, said)):
        year = _SPOKEN_YEAR.fullmatch(said.casefold())
        half = 0.5 if said.endswith("half") else 0
        return {half + (count_in(said.casefold()) if year is None else 100 * count_in(year[1]) + count_in(year[2]))}
    digits = _BLANKS.sub("", said).replace("−", "-").rstrip(".,")
    found: set[float] = set()
    for comma, point in ((",", "."), (".", ",")):
        if re.fullmatch(rf"-?(?:\d+|\d{{1,3}}(?:\{comma}\d{{3}})+)(?:\{point}\d+)?", digits):
            found.add(float(digits.replace(comma, "").replace(point, ".")))
    found.discard(math.inf)
    return found


def _is_same(value: float, held: float, said: str) -> bool:
    """Return whether a number is a value without its sign, or rounded."""
    decimals = len(said.replace(",", ".").partition(".")[2])
    rounded = abs(value - held) <= _ROUNDED * abs(held) and round(float(held), decimals) == value
    return abs(value) == abs(held) or (rounded and held != int(held))


def _is_year(value: float) -> bool:
    return 1900 <= value <= 2100 and value == int(value)


def _ratio(one: float, two: float) -> float:
    less, more = sorted((abs(one), abs(two)))
    return more / less if less else more / _NEAR


def _form(code: str) -> str:
    return _LETTER.sub("a", _DIGITS.sub("9", code))


def _forms(word: str) -> Iterator[str]:
    """Yield other forms of a word: `filed` and `files` for `filing`."""
    stem = _ENDING.sub("", word)
    if word.isalpha() and len(stem) > 2 and len(word) > _SHORT + 1:
        yield from (stem + ending for ending in ("", "e", "es", "s", "ed", "ing"))


@lru_cache(maxsize=1_024)
def _is_variant(one: str, two: str) -> bool:
    """Return whether two texts are spelled alike, or share most words."""
    words, others = set(one.split()), set(two.split())
    if abs(len(one) - len(two)) <= 2 and len(two) > _SHORT + 1 and distance(one, two) <= 2:
        return True
    return not words.isdisjoint(others) and len(words ^ others) <= 2


class _Sentence:
    """The words of a sentence: a letter for the class of each, and what each is for the fields."""

    def __init__(self, fields: Sequence[Field], code: str, says: list[Mapping[int, int]]) -> None:
        self.fields = fields
        self.code = code
        self.says = says
        self.named: dict[int, list[int]] = {}
        self.own: dict[int, list[int]] = {}
        self.others: dict[int, list[int]] = {}
        self.denied: set[int] = set()
        """The fields whose own value is negated: `not 3`, `instead of 3`, `from 3 to`."""
        about: list[set[int]] = []
        label = says[0] if _LABEL.match(code) else None  # `category: she is 37`
        for at, said in enumerate(says):
            means = said if label is None or not at else {i: how for i, how in said.items() if i in label}
            if code[at] == LETTERS["FIELD"]:
                for index in means:
                    self.named.setdefault(index, []).append(at)
            elif means and self._is_negated(at):
                self.denied |= {index for index, how in means.items() if how == _OWN}
            elif means:
                about += filter(None, [self._meant(at)])
                for index, how in means.items():
                    (self.own if how == _OWN else self.others).setdefault(index, []).append(at)
        self.is_about_two = any(one.isdisjoint(two) for one in about for two in about)

    def _meant(self, at: int) -> set[int]:
        """Return the fields that a word is likely to be for."""
        means = {index: how for index, how in self.says[at].items() if self.fields[index].kind != "empty"}
        likely = {index for index, how in means.items() if how > _UNLIKE}
        if not likely and self.code[at] == LETTERS["PROPER"] and at < _SUBJECT_END:
            return {index for index in means if self.fields[index].kind == "text"}
        return {index for index in likely if means[index] == _SURE} or likely

    def _is_negated(self, at: int) -> bool:
        """Return whether a value is negated or replaced, an operand, or one end of a range."""
        code = self.code
        if _NEGATED.search(code[:at]) or _NEGATED_BEHIND.search(code[at + 1 : at + 6]):
            return True
        own = _OWN in self.says[at].values()
        if own and _MINE.search(code[:at]):
            return True
        reach = [later for later in (at + 2, at + 3) if code[later - 1 : later] == LETTERS["FROM"]]
        if any(later < len(code) and self._shares(at, later) for later in reach):
            return True
        return not own and at > 1 and code[at - 1] == LETTERS["FROM"] and self._shares(at, at - 2, others=True)

    def _shares(self, at: int, other: int, *, others: bool = False) -> bool:
        means = {index for index, how in self.says[other].items() if not others or how != _OWN}
        return self.code[other] != LETTERS["FIELD"] and not means.isdisjoint(self.says[at])

    def otherwise(self, sentence: str) -> int | None:
        """Return the field that is given another value, or None."""
        if (index := self._other_flag()) is not None or (index := self._other_label()) is not None:
            return index
        if is_explained(self.code):
            return None
        denied = {index for index in self.denied if index not in self.own or self.fields[index].kind == "text"}
        if denied and _NOT_OWN.search(self.code):
            return min(denied)
        numbers = [max(found) for said in _DIGITS_IN.findall(sentence) if (found := _numbers_meant(said))]
        for index, places in self.others.items():
            if self.fields[index].listed:
                continue
            rest = [number for number in numbers if number != self.fields[index].held]
            if len(rest) > 1 and self.fields[index].kind == "number" and sum(rest) == self.fields[index].held:
                continue  # `5,700 for the floor plus 2,700 for the furniture`
            own = {number for number in numbers if any(number == field.held for field in self.fields)}
            if len(own) > 1 and sum(own) in rest:
                continue  # `50 minutes (15 minutes prep + 35 minutes cooking)`
            if any(self._is_claimed(index, at) for at in places):
                return index
        return None

    def is_about(self, index: int) -> bool:
        """Return whether a sentence has a value of the answer, another choice, or all words of a field's name."""
        words = max(1, len(_distinct_words(self.fields[index].name)))
        return (
            bool(self.own or self.denied) or LETTERS["CHOICE"] in self.code or len(self.named.get(index, ())) >= words
        )

    def _clause_start(self, at: int) -> int:
        return max((end.end() for end in _CLAUSE.finditer(self.code, 0, at)), default=0)

    def _is_claimed(self, index: int, at: int) -> bool:
        """Return whether the value at this place is asserted of a field."""
        kind, how = self.fields[index].kind, self.says[at][index]
        before, behind = self.code[:at], self.code[at + 1 :]
        clause = before[self._clause_start(at) :]
        if _ELSEWHERE.search(clause) or _ELSEWHERE_BEHIND.search(behind):
            return False
        named = [place for place in self.named.get(index, ()) if place < at]
        if index not in self.named and not self.named.keys().isdisjoint(self.says[at]):
            return False
        result = _RESULT.search(before) is not None
        if self.is_about_two and not result:
            return False
        direct = any(_DIRECT.search(self.code[place + 1 : at]) for place in named)
        direct = direct or (bool(named) and _PUT.search(before) is not None)
        follows = any(place - at in (2, 3) for place in self.named.get(index, ()))
        direct = direct or (follows and _USED.search(before) is not None)
        direct = direct or (_IS_THE.search(behind) is not None and (bool(named) or kind != "text"))
        if kind == "empty":
            beside = any(_BESIDE.search(self.code[place + 1 : at]) for place in named)
            counted = at + 1 in self.named.get(index, ()) and before[-1:] == LETTERS["HAVE"]  # `has 3 pages`
            return (direct or beside or counted) and _HOLLOW.search(self.code) is None
        own = self.own.get(index, ())
        if behind[:1] == LETTERS["STOP"] and at + 2 in own:
            return False  # `Frankfurt (FRA)`
        near = [place for place in own if _CLAUSE.search(self.code, at, place) is None]
        if direct and all(at > place for place in near) and not (near and _LISTS.search(before)):
            return True
        if own or (how == _UNLIKE and kind != "text"):
            return False
        if kind == "text":
            wanted = (how == _SURE and _PREDICATE.search(before)) or (named and _IS.search(before))
            return bool(wanted or index in self.denied or _OUGHT.search(clause))
        if kind == "day" and before[-1:] == "." and not named:
            return False  # `The report was updated on 5 May.`
        close = [place for place in named if place >= self._clause_start(at) and at - place <= _CLOSE]
        said = (how == _SURE and len(self.code) <= _BRIEF) or bool(close) or index in self.denied or result
        return said or _PREDICATE.search(before) is not None

    def _other_label(self) -> int | None:
        """Return the field that a line gives the value of another one, as in `bags: 2`."""
        if _LABELLED.search(self.code) is None:
            return None
        named, value = set(self.says[0]), self.says[-1]
        kinds = {self.fields[index].kind for index in value}
        return next((index for index in named - value.keys() if self.fields[index].kind in kinds), None)

    def _other_flag(self) -> int | None:
        """Return the boolean that is said to be otherwise: `The sample was hemolyzed`, `No jury was demanded`."""
        for index, places in self.named.items():
            field = self.fields[index]
            near = all(two - one < _SUBJECT_END for one, two in pairwise(places))
            is_full = any(self.says[place][index] == _SURE for place in places)
            whole = near and (is_full or len(places) >= min(2, len(_distinct_words(field.name))))
            if field.kind == "flag" and whole and self._says_otherwise(places[0], places[-1], held=field.held):
                return index
        return None

    def _says_otherwise(self, first: int, last: int, *, held: bool) -> bool:
        before, behind = self.code[self._clause_start(first) : first], self.code[last + 1 :]
        if (stated := _STATED_AS.search(behind)) is not None:
            conditional = _ON_CONDITION.search(before) or _ONLY_IF.match(behind, stated.end())
            return (stated[1] == LETTERS["TRUE"]) != held and conditional is None
        clause = before + (_CLAUSE.split(behind) or [""])[0]
        if _ELSEWHERE.search(before) or _ELSEWHERE_BEHIND.search(behind) or _UNDECIDED.search(clause):
            return False
        denied = _UNTRUE.search(before) is not None or _UNTRUE_BEHIND.search(behind) is not None
        return denied if held else not denied and (_HOLDS.search(before) or _IS_BEHIND.search(behind)) is not None


def _any(names: str) -> str:
    return "".join(map(LETTERS.__getitem__, names.split("/")))


_VALUES: Final = _any("VALUE/CHOICE/OTHER/PROPER")
_SUPPOSED: Final = expression(
    f"[{_any('QUESTION')}]|^.?[{_any('IF/SHOULD')}](?![{_any('IS')}])|[{_any('THIS')}][{_any('IS')}].?[{_any('ANOTHER')}]"
)
_CLAUSE: Final = expression(f"[{_any('STOP/BUT/BECAUSE')}]")
_ELSEWHERE: Final = expression(f"[{_any('IF/WOULD/MIGHT/MAY/ANOTHER/ASIDE/WILL/BOUND/MORE')}]")
"""A condition, a possibility, another time or another thing."""
_ELSEWHERE_BEHIND: Final = expression(f"^[{_any('MORE')}]|^[^{_any('STOP/BUT/BECAUSE')}]{{0,3}}[{_any('ASIDE/BELOW')}]")
_NEGATED: Final = expression(
    f"(?:[{_any('NOT/INSTEAD')}]|^[{_any('NO')}])[^{_any('COMMA/STOP/BUT/BECAUSE')}{_VALUES}]{{0,4}}$|[{_any('NO')}][{_any('THE/IS')}]{{0,2}}$"
)
_NEGATED_BEHIND: Final = expression(
    f"^[{_any('AMOUNTS/WRONG/ARROW')}]|^.{{0,2}}[{_any('NOT')}][{_any('AGREE')}]|^[{_any('IS')}].?[{_any('NOT/WRONG/ANOTHER')}]"
)
_MINE: Final = expression(f"[{_any('I')}][{_any('CHOSE/STATED/LISTED')}][{_any('A/DEF/FROM')}]?$")
_NOT_OWN: Final = expression(
    f"[{_any('NOT/NO/INSTEAD')}][{_any('IS/DEF/THE/A')}]{{0,2}}[{_any('VALUE')}]|[{_any('VALUE')}][{_any('ARROW')}]."
)
_DIRECT: Final = expression(
    f"^[^{_any('NOT/NO/BUT/BECAUSE/STOP')}{_VALUES}]{{0,4}}[{_any('IS/AMOUNTS/STOP/ARROW/SHOULD/EMPTY')}]"
    f"[^{_any('NOT/NO/INSTEAD')}{_VALUES}]{{0,2}}$"
)
"""Between the name of a field and a value: `is`, `=`."""
_PUT: Final = expression(
    f"[{_any('AMOUNTS/STATED/CHANGE/SET/LISTED/CHOSE')}][{_any('DEF/THE/A')}]?[{_any('FIELD')}][.{_any('FROM')}]?$"
)
"""Before a value: `puts the wind at`."""
_USED: Final = expression(f"[{_any('CHOSE/SET')}].?$")
"""Before a value that a field follows: `use 12:00 as the end`."""
_IS_THE: Final = expression(
    f"^.?[{_any('IS')}](?:[{_any('WHAT/REAL/CORRECT')}]|[{_any('DEF')}][{_any('REAL/CORRECT/A')}])"
)
_LABEL: Final = expression(f"^[{_any('FIELD')}][{_any('STOP')}]")
_LABELLED: Final = expression(f"^[{_any('FIELD')}][{_any('STOP')}][{_any('VALUE')}]$")
_RESULT: Final = expression(f"[{_any('AMOUNTS')}].?$")
_LISTS: Final = expression(f"[{_any('STOP')}].?$")
_PREDICATE: Final = expression(
    f"[{_any('IS/AMOUNTS/SHOULD/STOP/SPELT/STATED/CHOSE')}][{_any('FROM/A/DEF/THE/ACTUALLY/ONLY/THIS/LATER')}.]{{0,2}}$"
)
_IS: Final = expression(f"[{_any('IS/SPELT/STOP/AMOUNTS')}][{_any('A/DEF/THE')}]?$")
_OUGHT: Final = expression(f"[{_any('SHOULD')}].{{0,3}}(?<![{_any('FROM')}])$")
_BESIDE: Final = expression(f"^[^{_any('NOT/NO/BUT/BECAUSE/STOP/COMMA')}{_VALUES}]{{0,2}}$|^[{_any('STOP')}]$")
_HOLLOW: Final = expression(f"[{_any('EMPTY/NOT/NO')}]")
_STATED_AS: Final = expression(f"^[^{_any('NOT/NO/BUT/BECAUSE/COMMA')}]{{0,2}}([{_any('TRUE/FALSE')}])")
_ON_CONDITION: Final = expression(f"[{_any('IF/WOULD/WILL')}]")
_ONLY_IF: Final = expression(f"[{_any('ONLY')}]?[{_any('IF')}]")
_UNDECIDED: Final = expression(f"[{_any('EMPTY/FALSE/TRUE/WHAT/ANSWER/IF')}]")
_UNTRUE: Final = expression(f"[{_any('NOT/NO')}][^{_any('BUT/BECAUSE/COMMA/STOP/ONLY')}]{{0,4}}$")
_UNTRUE_BEHIND: Final = expression(f"^.?[{_any('IS')}]?[{_any('NOT')}]")
_HOLDS: Final = expression(f"[{_any('IS/HAVE/LISTED')}].{{0,2}}$")
_IS_BEHIND: Final = expression(f"^[{_any('IS')}]")
_SUBJECT_END: Final = 3
"""The number of words within which a name is still the subject of a sentence, and two words belong together."""

_CLOSE: Final = 4
"""The number of words between the name of a field and its value."""
_BRIEF: Final = 10
"""The number of words of a sentence that says nothing else."""

_WITHIN: Final = expression(rf"[^\W{CJK}]|[.,-]")
_CONTINUED: Final = expression(rf"[^\W{CJK}]|[.,-]?\d|-\w")
_INTRODUCES: Final = r"(?:\b(?:by|from|to|for|of|at|in|on|is|was|von|par|de|por)|[:=]) "
"""Between other words of a quotation and a value."""
_ITEM: Final = expression(
    r"\s*[-*•]\s+[*_]*(?P<label>[^\W\d][^:\n]{0,30}):[*_]* (?:[^\w\s]{0,2}[\d.,]+ ?[^\W\d]{0,4}"
    r"|[\"“][^\"”\n]{1,60}[\"”])$"
)
"""An item of a list with a label of its own."""
_CLOCK: Final = expression(r"(?:^|T)0?(\d{1,2}:\d\d(?::\d\d)?)")
_DECIMAL: Final = expression(r"-?\d{1,15}\.\d{1,15}")
_FIRST_MARK: Final = 0xE000
_MARKS: Final = expression("[\0\ue000-\uf8ff]")
_MOST_LISTED: Final = 20
_SHORT: Final = 3
_LONGEST_PART: Final = 60
_LONGEST_SENTENCE: Final = 400
_MANY: Final = 100
"""Smaller numbers count the things whose name follows them."""
_NEAR: Final = 3
_ROUNDED: Final = 0.05
_VAGUE: Final = ("one", "hundred", "thousand", "dozen")
_TITLES: Final = ("Mr", "Mrs", "Ms", "Dr", "Prof", "Herr", "Herrn", "Frau")
_PRICES: Final = frozenset(("price", "cost", "fee", "rate", "value"))
_CURRENCIES: Final = ("usd", "eur", "gbp", "chf", "euro", "euros", "dollar", "dollars")
_SMALL_WORDS: Final = ("FROM", "BASED", "IS", "AND", "BUT", "BECAUSE", "NOT", "INSTEAD", "OR", "ACTUALLY", "LATER",
    "ONLY", "THE", "DEF", "THIS", "WHAT", "IF", "SHOULD", "MORE", "STATED", "AMOUNTS")  # fmt: skip
"""Classes of words behind a number that do not name the things it counts."""
_PLACES: Final = word_set(
    "page pages p line lines row column section clause article paragraph § table figure room gate court gallery round"
    " chapter step seat coach platform track building floor item no nr number version v art seite zeile regel página"
    " ligne pagina note footnote box appendix form schedule day week minute beaufort exhibit rule phase part level"
    " zone kapitel abschnitt punkt artikel artículo"
)
"""Words before a number that says where something is, or which one it is."""
_NAME_PART: Final = expression(r"[A-Za-z]+|\d+|[^\W_a-zA-Z\d]+")
_ISO_DAY: Final = expression(r"\d{4}-\d\d-\d\d")
_YEAR: Final = expression(r"\b(?:19|20)\d\d\b")
_SPOKEN_YEAR: Final = expression(r"(\w+teen|twenty) (\w+ty.*|\w+teen|ten)")
_BLANKS: Final = expression(r"[\s'’]")
_LETTER: Final = expression(r"[^\W\d]+")
_DIGITS: Final = expression(r"\d+")
_DIGITS_IN: Final = expression(r"[-−]?\d[\d.,]*")
_ENDING: Final = expression(r"(?:ings?|ed|es|e|s)\Z")
_GERMAN: Final = expression(r"\b(?:der|die|das|ist|und|nicht|ein|eine|im|den|dem|auf|mit|von)\b", re.I)
_BESIDES: Final = expression(
    r"(?<=\S )\([^()\n]*\d[^()\n]*\)"
    r"|`(?P<code>[^`\n]{1,120})`|(?<=\d) (?:out of|of|von|sur|van|su) \d+\b(?![.,]?\d)"
    r"|(?<!\S)\d\)(?=\s)"
)
"""A number in parentheses or before a list item, code, and the end of a scale: `4 out of 5`."""
_PAIR: Final = expression(r"[\"']?[\w-]+[\"']?\s?[:=]")
_STRUCK: Final = expression(r"~~\s*([^~\n]{1,60}?)\s*~~|\bs/([^/\n]{1,60})/")
_WORD_BEFORE: Final = expression(r"(?P<word>[^\W\d_]+|§)\.?\s*(?:#|no\.\s?)?\Z")
_PER: Final = expression(r"\b(?:per|pro|each|every|par|por|al) \Z", re.I)
_UNIT_BEHIND: Final = expression(r"\s?(°\s?[CF]\b|[%°€$£¥]|[\u3040-\u9fff]|[^\W\d_]+)")
_QUOTE: Final = expression(r"(?<![\w'’])[\"'“‘«「『„](?!\s*[:,])(?P<inner>[^\"'“”‘’«»」』\n]{1,60})[\"'”’»」』](?!\w)")
_MONTH: Final = rf"(?i:(?!out\b)(?:{'|'.join(map(re.escape, MONTHS))}))\b"
_CAP: Final = r"[A-Z\u00c0-\u00de](?=\w*[a-z\u00df-\u00ff])[\w'’-]{1,30}"
_NO_NAME: Final = (
    rf"(?:{'|'.join(_TITLES[:-2])}|Celsius|Fahrenheit|{'|'.join(map(str.capitalize, MONTHS))}|\w+days?|The|An?|In|On|At"
    r"|This|Note|Der|Die|Das|Den|Le|La|Les|El|Los|Il|De|Het|Os?|I|It)\b"
)
_OTHER: Final = expression(
    rf"(?P<day>\b(?:\d{{4}}-\d{{1,2}}-\d{{1,2}}\b|\d{{1,2}}\.\d{{1,2}}\.\d{{4}}\b"
    rf"|\d{{1,2}}(?:[a-z]{{2}}|\.)? (?:de )?{_MONTH}(?:,? (?:de )?\d{{4}})?"
    rf"|{_MONTH}\.? \d{{1,2}}(?:[a-z]{{2}})?\b(?:,? \d{{4}})?))"
    r"|(?P<time>\b\d{1,2}:\d\d(?::\d\d)?\b(?![\w-])|\b\d{1,2}h\d\d\b)"
    rf"|(?<![^\W{CJK}])(?<![.,])(?P<number>[-−]?\d{{1,3}}(?:[ \u00a0\u202f]\d{{3}})+(?:[.,]\d+)?(?!\w)"
    r"|[-−]?(?!0\d)\d(?:[\d.,'’]*\d)?)(?![\w-]*[A-Za-z]|[./:-]\d|\.\.)"
    r"|(?P<code>\b(?=[A-Za-z\d_.:/-]*\d)[A-Za-z\d][\w.:/-]*(?<![.,:])(?![\w%]))"
    rf"|(?P<numeral>(?i:{IN_WORDS}(?: and a half\b)?))"
    rf"|(?P<proper>(?:(?<=[\w,»:=(] )|(?<=[MD][rs]\. )|\A(?={_CAP} {_CAP}))"
    rf"(?!{_NO_NAME}){_CAP}(?:(?: (?:van|von|de|of|the|der))? {_CAP}){{0,4}})"
)
