"""Recognizes sentences next to an answer that give one of its fields a different value, whatever the words.

Three questions decide. Which value in the sentence is not in the answer: a number, a date, a code, a
choice, a name, a boolean? Which fields could it be for: by type, unit, size, form, and the names next to it? Is it
asserted of the answer: not negated, not under a condition, and not about another time or another thing? A sentence that
asserts the answer's own value contradicts nothing, and one with other values for two fields is about another thing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from flujo_aros.contract import fold
from flujo_aros.reading.grammar import expression
from flujo_aros.reading.remarks import UNASKED, is_explained
from flujo_aros.reading.tagger import (
    FIELDS,
    FUNCTION_WORDS,
    LETTERS,
    OWN,
    SURE,
    UNLIKE,
    VALUES,
    Field,
    Tagger,
    class_of,
    distinct_words,
    numbers_meant,
)


def contradicted_by(sentence: str, tagger: Tagger) -> str | None:
    """Return the name of the field to which a sentence gives a different value, or None.

    >>> tagger = Tagger([Field("wind_kn", "number", 28)])
    >>> [contradicted_by(f"The log puts the wind at {said}.", tagger) for said in ("38 knots", "28 knots")]
    ['wind_kn', None]
    """
    if (item := _ITEM.match(sentence)) is not None and not _is_named(item["label"], tagger):
        return None
    tags, says = tagger.read(sentence)
    found = _Sentence(tagger.fields, tags[:_MOST_WORDS].translate(_COARSE), says[:_MOST_WORDS])
    index = None if _SUPPOSED.search(found.tags) else found.otherwise(sentence[:_LONGEST_SENTENCE])
    if index is None or (UNASKED.search(sentence) and not found.is_about(index)):
        return None
    return tagger.fields[index].name


def _is_named(label: str, tagger: Tagger) -> bool:
    words = label.casefold().split()
    return any(class_of(word) not in {None, *FUNCTION_WORDS} or fold(word) in tagger.named for word in words)


class _Sentence:
    """The words of a sentence: their tags, and what each is for the fields."""

    def __init__(self, fields: Sequence[Field], tags: str, says: list[Mapping[int, int]]) -> None:
        self.fields = fields
        self.tags = tags
        self.says = says
        self.named: dict[int, list[int]] = {}
        self.own: dict[int, list[int]] = {}
        self.others: dict[int, list[int]] = {}
        self.denied: set[int] = set()
        """The fields whose own value is negated: `not 3`, `instead of 3`, `from 3 to`."""
        about: list[set[int]] = []
        label = says[0] if _LABEL.match(tags) else None  # `category: she is 37`
        for at, said in enumerate(says):
            means = said if label is None or not at else {i: how for i, how in said.items() if i in label}
            if tags[at] == LETTERS["FIELD"]:
                for index in means:
                    if not fields[index].listed:
                        self.named.setdefault(index, []).append(at)
            elif means and self._is_negated(at):
                self.denied |= {index for index, how in means.items() if how == OWN}
            elif means:
                about += filter(None, [self._meant(at)])
                for index, how in means.items():
                    (self.own if how == OWN else self.others).setdefault(index, []).append(at)
        self.is_about_two = any(one.isdisjoint(two) for one in about for two in about)

    def _meant(self, at: int) -> set[int]:
        """Return the fields that a word is likely to be for."""
        means = {index: how for index, how in self.says[at].items() if self.fields[index].kind != "empty"}
        likely = {index for index, how in means.items() if how > UNLIKE}
        if not likely and self.tags[at] == LETTERS["PROPER"] and at < _SUBJECT_END:
            return {index for index in means if self.fields[index].kind == "text"}
        return {index for index in likely if means[index] == SURE} or likely

    def _is_negated(self, at: int) -> bool:
        """Return whether a value is negated or replaced, an operand, or one end of a range."""
        tags = self.tags
        if _NEGATED.search(tags[:at]) or _NEGATED_BEHIND.search(tags[at + 1 : at + 6]):
            return True
        own = OWN in self.says[at].values()
        if own and _MINE.search(tags[:at]):
            return True
        reach = [later for later in (at + 2, at + 3) if tags[later - 1 : later] == LETTERS["FROM"]]
        if any(later < len(tags) and self._shares(at, later) for later in reach):
            return True
        return not own and at > 1 and tags[at - 1] == LETTERS["FROM"] and self._shares(at, at - 2, others=True)

    def _shares(self, at: int, other: int, *, others: bool = False) -> bool:
        means = {index for index, how in self.says[other].items() if not others or how != OWN}
        return self.tags[other] != LETTERS["FIELD"] and not means.isdisjoint(self.says[at])

    def otherwise(self, sentence: str) -> int | None:
        """Return the field that is given a different value, or None."""
        if (index := self._other_flag()) is not None or (index := self._other_label()) is not None:
            return index
        if is_explained(self.tags):
            return None
        denied = {index for index in self.denied if index not in self.own or self.fields[index].kind == "text"}
        if denied and _NOT_OWN.search(self.tags):
            return min(denied)
        numbers = [max(found) for said in _DIGITS_IN.findall(sentence) if (found := numbers_meant(said))]
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
        words = max(1, len(distinct_words(self.fields[index].name)))
        return (
            bool(self.own or self.denied) or LETTERS["CHOICE"] in self.tags or len(self.named.get(index, ())) >= words
        )

    def _clause_start(self, at: int) -> int:
        return max((end.end() for end in _CLAUSE.finditer(self.tags, 0, at)), default=0)

    def _is_claimed(self, index: int, at: int) -> bool:
        """Return whether the value at this position is asserted of a field."""
        kind, how = self.fields[index].kind, self.says[at][index]
        before, behind = self.tags[:at], self.tags[at + 1 :]
        clause = before[self._clause_start(at) :]
        if _ELSEWHERE.search(clause) or _ELSEWHERE_BEHIND.search(behind):
            return False
        named = [place for place in self.named.get(index, ()) if place < at]
        if index not in self.named and not self.named.keys().isdisjoint(self.says[at]):
            return False
        result = _RESULT.search(before) is not None
        if self.is_about_two and not result:
            return False
        direct = any(_DIRECT.search(self.tags[place + 1 : at]) for place in named)
        direct = direct or (bool(named) and _PUT.search(before) is not None)
        follows = any(place - at in (2, 3) for place in self.named.get(index, ()))
        direct = direct or (follows and _USED.search(before) is not None)
        direct = direct or (_IS_THE.search(behind) is not None and (bool(named) or kind != "text"))
        if kind == "empty":
            beside = any(_BESIDE.search(self.tags[place + 1 : at]) for place in named)
            counted = at + 1 in self.named.get(index, ()) and before[-1:] == LETTERS["HAVE"]  # `has 3 pages`
            return (direct or beside or counted) and _HOLLOW.search(self.tags) is None
        own = self.own.get(index, ())
        if behind[:1] == LETTERS["STOP"] and at + 2 in own:
            return False  # `Frankfurt (FRA)`
        near = [place for place in own if _CLAUSE.search(self.tags, at, place) is None]
        if direct and all(at > place for place in near) and not (near and _LISTS.search(before)):
            return True
        if own or (how == UNLIKE and kind != "text"):
            return False
        if kind == "text":
            wanted = (how == SURE and _PREDICATE.search(before)) or (named and _IS.search(before))
            return bool(wanted or index in self.denied or _OUGHT.search(clause))
        if kind == "day" and before[-1:] == "." and not named:
            return False  # `The report was updated on 5 May.`
        close = [place for place in named if place >= self._clause_start(at) and at - place <= _CLOSE]
        said = (how == SURE and len(self.tags) <= _BRIEF) or bool(close) or index in self.denied or result
        return said or _PREDICATE.search(before) is not None

    def _other_label(self) -> int | None:
        """Return the field that a line gives the value of another one, as in `bags: 2`."""
        if _LABELLED.search(self.tags) is None:
            return None
        named, value = {index for index in self.says[0] if not self.fields[index].listed}, self.says[-1]
        kinds = {self.fields[index].kind for index in value}
        return next((index for index in named - value.keys() if self.fields[index].kind in kinds), None)

    def _other_flag(self) -> int | None:
        """Return the boolean that is said to be otherwise: `The sample was hemolyzed`, `No jury was demanded`."""
        for index, places in self.named.items():
            field = self.fields[index]
            near = all(two - one < _SUBJECT_END for one, two in pairwise(places))
            is_full = any(self.says[place][index] == SURE for place in places)
            whole = near and (is_full or len(places) >= min(2, len(distinct_words(field.name))))
            if field.kind == "flag" and whole and self._says_otherwise(places[0], places[-1], held=field.held):
                return index
        return None

    def _says_otherwise(self, first: int, last: int, *, held: bool) -> bool:
        before, behind = self.tags[self._clause_start(first) : first], self.tags[last + 1 :]
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

_ITEM: Final = expression(
    r"\s*[-*•]\s+[*_]*(?P<label>[^\W\d][^:\n]{0,30}):[*_]* (?:[^\w\s]{0,2}[\d.,]+ ?[^\W\d]{0,4}"
    r"|[\"“][^\"”\n]{1,60}[\"”])$"
)
"""An item of a list with a label of its own."""
_COARSE: Final = str.maketrans(
    {
        LETTERS[name]: LETTERS[whole]
        for whole, names in (("FIELD", (*FIELDS, "EMPTY_FIELD")), ("VALUE", VALUES))
        for name in names
    }
)
"""A claim may be for any field, and deny any value."""
_MOST_WORDS: Final = 100
_LONGEST_SENTENCE: Final = 400
_DIGITS_IN: Final = expression(r"[-−]?\d[\d.,]*")
