"""Checks the remainder of a reply, the text that is not in the value: it must be harmless.

Reading selects a value. Everything else that the model wrote belongs to one of three classes:

- *wrapping*: fences, greetings, reasoning and role tokens;
- *harmless*: an undeclared key while every declared field has its value; prose that does not
  question the answer;
- *unexplained*: everything else. If it could change the value, the reply is rejected; it is never dropped.

`prose_rest` checks the text around a value, and `rivalry` several values that all fit; `undeclared` handles members
without a field. Structure decides where it can (the name of a field with a different value, a fence, an opener, a label
with nothing after it); word lists (`phrases`) can only cause a rejection.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain, islice, pairwise
from typing import Any, Final, NamedTuple

from flujo_aros.contract import Shape, fold, mask_reasoning
from flujo_aros.json_data import is_dict, is_list
from flujo_aros.numerals import numbers_in
from flujo_aros.outcome import Issue
from flujo_aros.reading import phrases
from flujo_aros.reading.absent import MAY_BE_ABSENT, Kind, absence_in, other_kind_in
from flujo_aros.reading.caveats import MAY_BE_CAVEAT, caveat_in
from flujo_aros.reading.claims import contradicted_by
from flujo_aros.reading.disowned import MAY_DISOWN, disowned_in, is_sample
from flujo_aros.reading.grammar import CJK, SENTENCE, SHORT_COMMENT, expression
from flujo_aros.reading.omissions import MAY_OMIT, announces_more, holds_list, omission_in
from flujo_aros.reading.phrases import Phrases
from flujo_aros.reading.remarks import MAY_REMARK, correction_in, doubt_in, remark_in
from flujo_aros.reading.scalars import WORD, in_other_unit, is_unit, name_words, other_unit
from flujo_aros.reading.scanner import CODE_FENCES
from flujo_aros.reading.tagger import Tagger, fields_of, may_claim, numbers_meant, other_spellings

_FENCE: Final = expression(r"(?:```|~~~)[ \t]{0,20}([\w+#.-]{0,40})[^\n]{0,200}\n(.*?)(?:```|~~~|\Z)", re.S)
_EMPTY_FENCE: Final = expression(r"[:：][*_]*\s*\n(?:```|~~~)(?:json)?[ \t]*\n\s*(?:(?:```|~~~)\s*)?\Z")
_FENCE_END: Final = expression(r"\A\s*(?:```|~~~)[ \t]*(?=\n|\Z)")
_NOTHING_BEFORE: Final = expression(r"\s*(?:(?:```|~~~)[\w+#.-]*[ \t]*\n\s*)?\Z")
_NOTHING_BEHIND: Final = expression(r"[\s`~]*\Z")
"""At most the closing fence of the value."""
_QUOTED_LINE: Final = expression(r"^[ \t]*>[^\n]*", re.M)
"""Quoted text."""
_OPEN_FENCE: Final = expression(r"(?<!\s)\s*+(?:```|~~~)[\w+#.-]*\s*\Z")
_CLAUSE: Final = expression(r"[.!?。！？](?=\s)|\n|</\w+\s*>|<\|[\w ]+\|>")
_CLOSING_TAG: Final = expression(r"</[\w:-]{1,60}\s{0,9}>|<\|[\w ]{1,60}\|>")
_QUOTED: Final = expression(r"[\"'](\w{1,60})\\?[\"']\s{0,3}:|^[ \t]*([^\W\d]\w{0,60})\s{0,3}:", re.M)
_NEAR: Final = 300


class Span(NamedTuple):
    """A part of a reply that was read as a value."""

    start: int
    end: int


class Answer:
    """A value and its contract. What the checks need of the value is found on first use."""

    def __init__(self, shape: Shape, read: Callable[[], Any]) -> None:
        """`read` returns the value as JSON."""
        self.shape = shape
        self._read = read

    @cached_property
    def value(self) -> Any:
        """The value as JSON."""
        return self._read()

    @cached_property
    def leaves(self) -> dict[str, list[Any]]:
        """All scalars of the value, by the normalized names of their keys."""
        return _leaves(self.value, self.shape)

    @cached_property
    def _tagger(self) -> Tagger:
        shape = self.shape
        short = {key: shape.member(name) for key, name in shape.keys.items() if len(key) == 1}
        return Tagger(fields_of(self.leaves, {**(shape.named or _own_keys(self.value, shape)), **short}))

    def tagger(self) -> Tagger:
        """Return what tags the sentences next to the value; most texts need none."""
        return self._tagger

    @cached_property
    def kind(self) -> Kind:
        """The kind of document that the contract expects."""
        return Kind.of(self.shape, lambda name: any(part not in (None, "", 0) for part in self.held(name)))

    def held(self, name: str) -> list[Any]:
        """Return the scalars under the keys with this name."""
        return self.leaves.get(fold(name), [])


def label_before(text: str, start: int, floor: int = 0) -> str:
    """Return the words that introduce the value at `start`: the end of the clause before it, on its line or the line
    above.

    >>> label_before("I did it. For comparison, the old one was: {}", 43)
    'For comparison, the old one was:'
    """
    before = _OPEN_FENCE.sub("", text[max(floor, start - _NEAR) : start]).rstrip(' \t\r\n"')
    return _CLAUSE.split(before)[-1].strip(" \t\r\n\"'`([{*_>|#-")[-100:]


def is_disowned(label: str, *, follows: bool = False) -> bool:
    """Return whether the words before a value say that it is not the answer: an old value, an example or
    a counterexample. `follows` means that another value precedes them.
    """
    if phrases.DISOWNS.search(label) is None or phrases.OWNS.search(label) is not None:
        return False
    return not (follows and _looks_back(label))


def _looks_back(label: str) -> bool:
    """Return whether the words between two values are a sentence that retracts the first one: `Wait, that's wrong.`"""
    is_sentence = label[-1:] in _SENTENCE_ENDS or label.count(" ") < _FEW_WORDS
    return is_sentence and correction_in(label) is not None and phrases.AHEAD.search(label) is None


_SENTENCE_ENDS: Final = frozenset(".!…。！")
_FEW_WORDS: Final = 3
"""Words that form a complete sentence without a full stop: `Wait, no:`."""


def is_compared(text: str, start: int, floor: int) -> bool:
    """Return whether a value is only shown for comparison: the words between it and the previous one say only that.

    >>> is_compared("{} For comparison, the previous record was: {}", 44, 2)
    True
    """
    label = label_before(text, start, floor)
    if not (_is_alone(label, text[floor:start]) and phrases.COMPARED.search(label)):
        return False
    return phrases.OWNS.search(label.replace("output", "")) is None


def _is_alone(label: str, between: str) -> bool:
    """Return whether the text between two values consists of a label."""
    return not has_words(_CLOSING_TAG.sub("", _OPEN_FENCE.sub("", between)).replace(label, "", 1))


def is_replacement(text: str, start: int, floor: int) -> bool:
    """Return whether a value replaces the previous one: its label says so, or a correction precedes it.

    >>> is_replacement("{} Wait, that is wrong. The corrected version is: {}", 50, 2)
    True
    >>> is_replacement("{} Wait, that is wrong. {}", 24, 2)
    True
    """
    if is_aside(text, start, floor):
        return False
    label = label_before(text, start, floor)
    if floor and _looks_back(label):
        return True
    if phrases.DISOWNS.search(label) is not None:
        return False
    corrects = correction_in(text[floor:start]) is not None
    return phrases.REPLACES.search(label) is not None or (corrects and phrases.OWNS.search(label) is not None)


def succeeds(text: str, before: Span, start: int) -> bool:
    """Return whether the words around two answers say that the second one is the answer, or that the first one is not.

    >>> [succeeds(text, Span(0, 2), text.rindex("{}")) for text in ("{} Final: {}", "{} Second item: {}")]
    [True, False]
    """
    between = text[before.end : start]
    if between.strip() == "|":  # two cells of a table, whose header says which one is the answer
        between = text[max(0, before.start - _NEAR) : before.start]
    if phrases.OWNS.search(between) or correction_in(between):
        return True
    label = label_before(text, start, before.end)
    if phrases.ANNOUNCES.search(label) or _COMMENTED.search(text, max(0, before.start - _NEAR), before.start):
        return True
    first = label_before(text, before.start)
    return phrases.DRAFTS.search(first) is not None or phrases.DISOWNS.search(first) is not None


_COMMENTED: Final = expression(r"^[ \t]*(?://|#)[ \t]*\Z", re.M)
"""The line before a value that is commented out."""


def is_commented_out(text: str, chosen: Span) -> bool:
    """Return whether a value is in a comment: on a line that begins with `//` or `#`, or in `<!-- -->` next to other
    text.

    >>> is_commented_out("I cannot say. <!-- {} -->", Span(19, 21))
    True
    """
    if _COMMENTED.search(text, max(0, chosen.start - _NEAR), chosen.start):
        return True
    opened = text.rfind("<!--", max(0, chosen.start - _NEAR), chosen.start)
    closed = text.find("-->", chosen.end)
    inside = opened >= 0 and text.find("-->", opened, chosen.start) < 0 and closed >= 0
    return inside and has_words(
        " ".join((text[:opened], text[opened + 4 : chosen.start], text[chosen.end : closed], text[closed + 3 :]))
    )


def is_aside(text: str, start: int, floor: int) -> bool:
    """Return whether a value is in parentheses that opened after `floor`."""
    before = text[max(floor, start - _NEAR) : start]
    return before.count("(") + before.count("（") > before.count(")") + before.count("）")


def rivalry(text: str, chosen: Span, others: Sequence[Span]) -> str | None:
    """Return the reason why the selected one of several answers may be wrong, or None if it is right.

    `others` are the positions of the other answers, in order. The last one wins, unless the words before it disown it
    or the answers are offered as alternatives.
    """
    ends = [0, *sorted(span.end for span in (*others, chosen))]
    floor = max(end for end in ends if end <= chosen.start)
    if any(other.start < chosen.start for other in others):
        if is_disowned(label_before(text, chosen.start, floor), follows=floor > 0):
            return "the words before the last answer say that it is not the answer"
        if floor and is_aside(text, chosen.start, floor):
            return "the last answer is in parentheses after another one"
    every = sorted((*others, chosen))
    labels = [
        label_before(text, span.start, floor)
        for span, floor in zip(every, [0, *(s.end for s in every[:-1])], strict=True)
    ]
    if len(every) > 1 and all(_ON_CONDITION.match(label) and not _IS_FINAL.search(label) for label in labels):
        return "several answers are given, each on a condition"
    rivals = (_rival_pair(text, *pair) for pair in pairwise(zip(every, labels, strict=True)))
    if (reason := next(filter(None, rivals), None)) is not None:
        return reason
    denied = phrases.TURNS.search(text, every[-1].end, every[-1].end + _NEAR)
    if denied is not None and denied.start() == every[-1].end:
        return "the words after the last answer say that it is not the answer"
    if phrases.BOTH.search(text, every[-1].end, every[-1].end + _NEAR):
        return "the words after the last answer prefer none of them"
    for other in others:
        if other.start > chosen.start and _takes_over(text, other, max(e for e in ends if e <= other.start)):
            return "another answer follows the one in the higher-ranked place"
    return None


def _rival_pair(text: str, first: tuple[Span, str], second: tuple[Span, str]) -> str | None:
    """Return the reason why neither of two answers, each with its label, replaces the other one, or None."""
    (one, label), (two, next_label) = first, second
    is_same = label == next_label != "" and _is_alone(label, text[one.end : two.start])
    if is_same and text[one.start : one.end].split() != text[two.start : two.end].split():
        return f"two answers have the same label: {label[-60:]!r}"
    if phrases.CHOICE_BETWEEN.search(text[max(one.end, two.start - 100) : two.start]):
        return "several answers are offered as alternatives"
    if phrases.NEXT_OUTPUT.search(next_label) and phrases.NEXT_INPUT.search(text, one.end, two.start):
        return "another input with its own answer follows the answer"
    return None


_IS_FINAL: Final = expression(r"\b(?:answer|final|output|result|antwort|ergebnis|réponse|respuesta)\b", re.I)
_ON_CONDITION: Final = expression(
    r"(?:if|unless|when|assuming|suppos(?:e|ing)|wenn|falls|sofern|si|se|als|indien|jeśli|если|om|hvis|eğer)\b|如果|若|もし",
    re.I,
)


def _takes_over(text: str, other: Span, floor: int) -> bool:
    """Return whether a later answer in a lower-ranked place is meant to replace the previous one: announced, or on its
    own.
    """
    label = label_before(text, other.start, floor)
    if is_disowned(label, follows=floor > 0):
        return False
    between = text[floor : other.start]
    alone = between.rstrip(" \t")[-1:] in ("", "\n", ":", "：")
    return alone or phrases.OWNS.search(label) is not None or correction_in(between) is not None


def prose_rest(text: str, chosen: Span, others: Sequence[Span], answer: Answer) -> Issue | None:
    """Return evidence in the surrounding text that the value is not the answer, or None if all of it is harmless.

    `others` are the positions of other values, whose own text is not prose. `value` returns the JSON value if it is
    needed for a comparison. Takes time linear in the length of the text.
    """
    found = _evidence_beside(text, chosen, others)
    if not others and "##" in text:
        text = _without_prompt(text, chosen)
    before = "" if _NOTHING_BEFORE.match(text, 0, chosen.start) else text[: chosen.start]
    behind = ""
    if found is None and (others or not _NOTHING_BEHIND.match(text, chosen.end)):
        behind = without(text, others, chosen.end)  # its reasoning stays: it may correct the answer
        if _follows_words(text, chosen) and phrases.REFUSED.search(text[chosen.end : chosen.end + _NEAR]):
            found = "the text after it declines to give it"
        elif has_words(behind):
            found = _rest_behind(behind, answer)
        if found is None and (failed := phrases.FAILS.search(text, chosen.end, len(text))) is not None:
            found = f"an error is reported after it: {_excerpt(text, failed.start())!r}"
    label = label_before(before, chosen.start) if found is None and before else ""
    if label and label[-1] not in _SENTENCE_ENDS and answer.shape.knows(label):
        names = _FIELD_LINE.findall(f"{before}\n{behind}")
        beside = next((name for name in names if answer.shape.knows(name) and name != label), None)
        found = beside and f"it is only the value of {label!r}, next to {beside!r}"
    if found is None and label[-1:] in _COLONS and label == label_before(behind, len(behind)):
        found = f"the text after it announces an answer that never comes: {label[-60:]!r}"
    if found is None and has_words(before):
        found = _rest_before(text, label, chosen, others, behind, answer)
    near = "" if others else before[-2 * _NEAR :]
    if found is None and any(map(_MAY_REFUSE.may_match, filter(None, (near, behind)))):
        found = _denied_beside(near, behind, answer)
    if found is None and before:
        found = _denied_before(before, answer)
    if found is None and (before or behind):
        found = _result_otherwise(before, behind, answer)
    return None if found is None else Issue("$", "leftover", found)


_COLONS: Final = (":", "：")
_MAY_REFUSE: Final = Phrases(MAY_BE_ABSENT.source, MAY_DISOWN.source)


def _denied_beside(before: str, behind: str, answer: Answer) -> str | None:
    """Return why the words next to the value say that it was made of nothing, or is not the answer."""
    before = _OPEN_FENCE.sub("", mask_reasoning(before, unopened=True))
    behind = _FENCE.sub(" ", _FENCE_END.sub("", behind))
    if (absent := absence_in(before, behind, answer.shape.named)) is not None:
        return f"the text next to it says that there was nothing to read: {_excerpt(absent, 0)!r}"
    if (other := other_kind_in(before, behind, lambda: answer.kind)) is not None:
        return f"the text next to it says that the document is of a different kind: {_excerpt(other, 0)!r}"
    disowned = disowned_in(before, behind)
    return disowned and f"the text next to it says that it is not the answer: {_excerpt(disowned, 0)!r}"


def _without_prompt(text: str, chosen: Span) -> str:
    """Return a text with spaces in place of a prompt that is repeated before the header of the response."""
    begun = max((header.end() for header in _RESPONSE.finditer(text, 0, chosen.start)), default=0)
    return text[begun:].rjust(len(text))


_RESPONSE: Final = expression(r"^[ \t]*\#{2,4}[ \t]*(?:response|assistant)[ \t]*:?[ \t]*\n", re.M | re.I)


def _evidence_beside(text: str, chosen: Span, others: Sequence[Span]) -> str | None:
    """Return evidence directly before or after a value, or between it and the next ones."""
    near = max(0, chosen.start - _NEAR)
    if _COMPUTES.match(text, chosen.end):
        return "it is part of an expression that continues after it"
    is_list = text[chosen.start] == "["
    if is_list and (_ITEM_BEHIND.match(text, chosen.end) or _ITEM_BEFORE.search(text, near, chosen.start)):
        return "an item is outside the list"
    in_tuple = _TUPLE_BEFORE.search(text, near, chosen.start)
    if in_tuple is not None and (in_tuple["items"] or _TUPLE_BEHIND.match(text, chosen.end)):
        return "it is one of several items in parentheses"
    if not others and is_commented_out(text, chosen):
        return "it is commented out"
    if _ACTION.search(text, near, chosen.start) and _OBSERVED.match(text, chosen.end):
        return "it is the input of a tool"
    if _EMPTY_FENCE.search(text, chosen.end):
        return "an empty fence takes the place of another answer"
    floor = chosen.end
    for other in others:
        if other.start >= floor:
            label = label_before(text, other.start, floor)
            if phrases.REPLACES.search(label) or (label[-1:] in ":：" and phrases.OWNS.search(label)):
                return f"another answer follows it and cannot be read: {label[-60:]!r}"
            floor = other.end
    return None


def has_words(text: str) -> bool:
    """Return whether a text says anything: it contains letters, an ellipsis, an arrow, a cross or a part: `(1/3)`."""
    return any(map(str.isalpha, text)) or _SIGNS.search(text) is not None


_ACTION: Final = expression(r"^[ \t]*Action Input:\s*(?:```\w*\s*)?\Z", re.M | re.I)
_OBSERVED: Final = expression(r"[\s`]*Observation:", re.I)
"""What a reply that calls a tool in words has before and after the arguments."""
_COMPUTES: Final = expression(r"[ \t]*(?:\+[ \t]*[\[{(\"'\w]|\*[ \t]*\d|(?:\.\.\.+|…)[ \t]*[\[{(])")
"""An operator directly after a value, on its line, as in `[1, 2] + [3]`."""
_ITEM: Final = r"(?:-?\d[\w.+-]{0,40}|\"[^\"\n]{0,400}\"|'[^'\n]{0,400}'|(?:[tT]rue|[fF]alse|null|None)\b)"
_ITEM_BEHIND: Final = expression(rf"\s*(?:[,;]|(?:and|plus)\b)\s*{_ITEM}\s*(?:[,;\]<`]|\Z)|\s*{_ITEM}\s*(?:[<`]|\Z)")
"""A single scalar after a list, or after a comma: the list was closed too early."""
_ITEM_BEFORE: Final = expression(rf"(?:\A|\n)\s*(?:{_ITEM}\s*[,;]\s*)+\Z")
_BLANK: Final = rf"(?:\s|{SHORT_COMMENT}|(?!))*+"
_TUPLE_BEFORE: Final = expression(
    rf"(?<![\w)\]])\({_BLANK}(?P<items>(?:{_ITEM}{_BLANK}[,;]|[\[{{])(?:[^()]*[,;])?)?{_BLANK}\Z", re.X
)
_TUPLE_BEHIND: Final = expression(rf"{_BLANK}[,;]{_BLANK}(?:{_ITEM}{_BLANK}[,;)]|[\[{{])", re.X)
"""Another item in the parentheses around a value, which are not those of a call."""
_SIGNS: Final = expression(r"\.\.\.|[…❌→]|[-=]>|[(\[（]\d{1,3}[/／]\d{1,3}[)\]）]")
"""Symbols that mark something as left out, crossed out, replaced, or a part."""


def without(text: str, places: Iterable[tuple[int, int]], start: int = 0) -> str:
    """Return a text from `start`, without these spans.

    >>> without("one {} two", [(4, 6)])
    'one   two'
    """
    parts: list[str] = []
    for first, last in sorted(places):
        if start <= first:
            parts.append(text[start:first])
            start = max(start, last)
    return " ".join([*parts, text[start:]])


def _rest_before(
    text: str,
    label: str,
    chosen: Span,
    others: Sequence[Span],
    behind: str,
    answer: Answer,
) -> str | None:
    floor = max((other.end for other in others if other.end <= chosen.start), default=0) if others else 0
    label = label_before(text, chosen.start, floor) if floor else label
    before = text[max(0, chosen.start - _SOME_TEXT) : chosen.start]
    if (doubted := _doubted_before(before, label, floor, answer)) is not None:
        return f"the words before it say that it is not to be trusted: {_excerpt(doubted, 0)!r}"
    if not floor and MAY_OMIT.may_match(before):
        said = mask_reasoning(before, unopened=True)
        if (omitted := omission_in(said, listed=holds_list(answer.value), before=True)) is not None:
            return f"the words before it say that something was left out: {_excerpt(omitted, 0)!r}"
    if not floor and label[-1:] in _COLONS and announces_more(label, answer.value):
        return f"the words before it announce more items: {_excerpt(label, 0)!r}"
    in_sentence = not others and _SENTENCE_GOES_ON.match(text, chosen.end) and _follows_words(text, chosen)
    if (
        in_sentence
        and (phrases.ATTRIBUTES.search(label) or phrases.CONDITION.search(label))
        and _gives_none(text, chosen, behind)
    ):
        return "it is part of a sentence in a reply that gives no answer"
    if _MAY_DENY.may_match(label) and (denied := _denied_by(label, text, chosen, others, behind, answer)) is not None:
        return f"the words before it say that it is not the answer{denied}"
    if (
        MAY_DISOWN.may_match(label)
        and is_sample(label)
        and not (others and correction_in(label))
        and _gives_none(text, chosen, behind)
    ):
        return "it is an example in a reply that gives no answer"
    return None


_MAY_DENY: Final = phrases.Phrases(*(each.source for each in (phrases.DISOWNS, phrases.NEVER, phrases.COMPARED)))


def _denied_by(label: str, text: str, chosen: Span, others: Sequence[Span], behind: str, answer: Answer) -> str | None:
    """Return the words that introduce a value if they say that it is not the answer."""
    said = f": {label[-60:]!r}"
    if is_disowned(label, follows=any(other.end <= chosen.start for other in others)):
        before = mask_reasoning(text[: chosen.start], unopened=True)
        if others or names_fields(" ".join(one or two for one, two in _QUOTED.findall(before)), answer.shape.named):
            return f"{said}; and what precedes it cannot be read"
        if phrases.ANNOUNCED.search(behind):
            return f", and the text after it announces one{said}"
    if others:
        return None
    last = phrases.TURN.exact.split(label)[-1]
    if phrases.NEVER.search(last) and (
        not phrases.OWNS.search(phrases.NEVER.sub("not", last)) or _gives_none(text, chosen, behind)
    ):
        return said
    return said if phrases.COMPARED.search(label) and is_compared(text, chosen.start, 0) else None


def _gives_none(text: str, chosen: Span, behind: str) -> bool:
    """Return whether the text around a value says that there is no answer, or asks for what is needed for one."""
    around = mask_reasoning(text[: chosen.start], unopened=True)[-_SOME_TEXT:] + "\n" + behind[:_SOME_TEXT]
    said = [sentence for sentence in SENTENCE.split(around) if not phrases.BEYOND.search(sentence)]
    return any(phrases.DECLINES.search(sentence) or phrases.ASKS.search(sentence) for sentence in said)


def _follows_words(text: str, chosen: Span) -> bool:
    """Return whether some words precede a value on its line."""
    line = text[max(text.rfind("\n", 0, chosen.start), chosen.start - _NEAR) + 1 : chosen.start]
    return line.count(" ") >= _FEW_WORDS


_SENTENCE_GOES_ON: Final = expression(r"[`\"'”»)]{0,3}(?:[.,;]| \w)")


def _doubted_before(before: str, label: str, floor: int, answer: Answer) -> str | None:
    """Return the sentence before a value that doubts it: the words that introduce it, or a doubt stated earlier."""
    remarks = MAY_REMARK.may_match(before)
    if remarks and not (floor and _looks_back(label)) and (doubted := doubt_in(label, answer.tagger)) is not None:
        return doubted
    if floor or not (remarks or MAY_BE_CAVEAT.may_match(before)):
        return None
    said = mask_reasoning(before, unopened=True)
    return (remarks and doubt_in(said, answer.tagger, thinks=True)) or caveat_in(said, answer.tagger)


def _denied_before(before: str, answer: Answer) -> str | None:
    """Return the last statement about a boolean in the text before a value, if the value contradicts it: `It is not
    vegan.`
    """
    shape = answer.shape
    flags = shape.flags
    mentions = list(_naming(tuple(flags))[0].finditer(before)) if flags else []
    if not mentions:
        return None
    found = mentions[-1]
    start = max(before.rfind(end, 0, found.start()) for end in ".!?\n") + 1
    name = shape.name_of(found[0]) or found[0]
    said = _said_of(before[start : found.end()], found.start() - start, flags.get(name, shape))
    if said is None or answer.held(name) != [not said]:
        return None
    return f"the text before it gives {name!r} a different value: {_excerpt(before, start)!r}"


def _result_otherwise(before: str, behind: str, answer: Answer) -> str | None:
    """Return a conclusion, a calculation or an amount next to a value that it contradicts, or None."""
    if _CONCLUDES.search(before) and (found := _concluded(before, answer)) is not None:
        return found
    if not ("=" in before or "=" in behind or _AMOUNT.search(before) or _AMOUNT.search(behind)):
        return None
    around = f"{mask_reasoning(before, unopened=True)}\n{behind}"
    return ("=" in around and _result_beside(around, answer)) or _unit_beside(around, answer)


def _result_beside(prose: str, answer: Answer) -> str | None:
    """Return a calculation next to a value whose result should be in it: `84 + 36 = 120` next to a total of 102.

    One number of the value, and only one, is not in the text, is of about this size, and does not follow from the
    result and a number after it.
    """
    prose = prose[-_MOST_PROSE:]
    if not (equations := [*_EQUATION.finditer(prose)]):
        return None
    last = equations[-1]
    results = numbers_meant(last["result"])
    parts = chain.from_iterable(answer.leaves.values())
    numbers = {part for part in parts if part.__class__ in (int, float) and abs(part) < _MOST_NUMBER}
    unsaid = numbers - _numbers_said(prose)
    if len(unsaid) != 1 or any(_is_about(result, number) for result in results for number in numbers):
        return None
    (number,) = unsaid
    alike = [result for result in results if result / 2 < abs(number) < 2 * result]
    if not alike or any(_follows(number, one, other) for one in alike for other in _numbers_said(prose[last.end() :])):
        return None
    return f"the text next to it computes another number: {_excerpt(last[0], 0)!r}"


def _concluded(before: str, answer: Answer) -> str | None:
    """Return the conclusion before a value, or in its reasoning, that gives a field a different value."""
    sentences = [each for each in SENTENCE.split(_CLOSING_TAG.sub("\n", before[-2 * _NEAR :])) if has_words(each)]
    if sentences and sentences[-1].rstrip()[-1:] in _COLONS:
        del sentences[-1]
    if not sentences or not _CONCLUDES.search(sentences[-1]):
        return None
    name = contradicted_by(sentences[-1], answer.tagger())
    if name is None:
        return None
    return f"the text before it gives {name!r} a different value: {_excerpt(sentences[-1], 0)!r}"


_THEN: Final = expression(
    r"[,;]\s(?:and )?(?:so|thus|therefore|hence|also|daher|donc|por tanto|quindi|dus)\s"
    r"(?P<said>(?![^\n]*\bwould\b).{1,200})\Z"
)
"""The conclusion of a sentence: `…, so the total is 4.`"""
_CONCLUDES: Final = expression(
    r"\b(?:so|thus|therefore|hence|final|finally|conclusion|also|daher|somit|folglich|donc|ainsi|por (?:lo )?tanto"
    r"|así que|quindi|perciò|portanto|logo|dus|więc|zatem|значит|итак|поэтому)\b|因此|所以|よって|したがって|따라서",
    re.I,
)


def _unit_beside(prose: str, answer: Answer) -> str | None:
    """Return a number of the value that the text next to it states in a different unit from the field's: `90 minutes`
    next to `duration_hours`.
    """
    amounts = {
        (number, found[2]) for found in _AMOUNT.finditer(prose[-_MOST_PROSE:]) for number in numbers_meant(found[1])
    }
    for name, parts in answer.leaves.items() if amounts else ():
        field = answer.shape.name_of(name) or name
        held = {part for part in parts if part.__class__ in (int, float) and abs(part) > _COMMON_NUMBER}
        units = {unit for number, unit in amounts if number in held and is_unit(unit)}
        if units and all(in_other_unit(field, unit) for unit in units):
            return f"the text next to it states it in a different unit from {field!r}: {min(units)!r}"
    return None


_COMMON_NUMBER: Final = 4
"""Numbers up to this one are often of something else."""
_AMOUNT: Final = expression(r"(?<![\w.,])(\d[\d.,]{0,20})\s?([^\W\d]{1,12})\b")


def _numbers_said(prose: str) -> set[float]:
    """Return the numbers in a text, in digits or in words."""
    said = {number for each in _NUMBER.findall(prose) for number in numbers_meant(each)}
    return said.union(numbers_in(_TOKEN.findall(prose.casefold())))


def _is_about(result: float, number: float) -> bool:
    """Return whether a number is a result, rounded or in percent."""
    to_whole = number == int(number) != result and abs(result - number) < 1
    return to_whole or any(abs(part - number) <= _ROUNDED * abs(part) for part in (result, 100 * result))


def _follows(number: float, one: float, other: float) -> bool:
    """Return whether a number is the sum, difference, product or quotient of two others, rounded."""
    quotients = (one / other, other / one) if one and other else ()
    computed = (one + other, abs(one - other), one * other, *quotients)
    return any(abs(part - abs(number)) <= _ROUNDED * abs(part) for part in computed)


_ROUNDED: Final = 0.01
_MOST_NUMBER: Final = 1e15
"""No text computes larger numbers, and whole numbers may be too large for a float."""
_NUMBER: Final = expression(r"\d[\d.,]*")
_OPERAND: Final = r"[^\w\s=+*/×÷·]{0,2}(?<![\d.,])\d[\d.,]{0,20}\s?(?:[^\W\d]{1,6}|[%€$£°²³]{1,2})?"
_EQUATION: Final = expression(
    rf"{_OPERAND}(?:\s?[-−+*/×÷·x:]\s?{_OPERAND}){{1,8}}\s?=\s?[^\w\s]{{0,2}}\s?(?P<result>\d[\d.,]{{0,20}})"
    r"(?!\s?[-−+*/×÷·=\d])"
)


def _rest_behind(behind: str, answer: Answer) -> str | None:
    shape = answer.shape
    names = shape.named
    if "```" in behind or "~~~" in behind:
        behind = _FENCE_END.sub("", behind)
    fenced = "```" in behind or "~~~" in behind
    behind = _QUOTED_LINE.sub("", behind) if ">" in behind else behind
    if (begun := phrases.LABEL_AT_END.search(_OPEN_FENCE.sub("", behind) if fenced else behind)) is not None:
        return f"the text after it announces an answer that never comes: {begun[0].strip()[:40]!r}"
    for fence in _FENCE.finditer(behind) if fenced else ():
        is_answer = names_fields(fence[2], names) if names else _MAY_BE_LIST.match(fence[2]) is not None
        if is_answer and fence[1].lower() not in CODE_FENCES:
            return "another answer begins in a fence after it and cannot be read"
    prose = _FENCE.sub(" ", behind) if fenced else behind
    if (omitted := omission_in(prose, listed=holds_list(answer.value))) is not None:
        return f"the reply says that something was left out: {_excerpt(omitted, 0)!r}"
    if (begun := phrases.NEW_ANSWER.search(prose)) is not None and _differs_from(prose, begun.end(), answer):
        return f"the text after it gives another answer: {_excerpt(prose, begun.start())!r}"
    for found in _ASSIGNED.finditer(prose) if "=" in prose else ():
        if (name := shape.name_of(found["name"])) is not None and not _is_own(found["source"], name, answer):
            return f"the code after it changes {name!r}: {_excerpt(found[0], 0)!r}"
    if (remark := remark_in(prose, answer.tagger)) is not None:
        said = "retracts or corrects it" if remark.corrects else "says that it is not to be trusted"
        return f"the text after it {said}: {_excerpt(remark.sentence, 0)!r}"
    if (claim := _claim_in(prose, answer)) is not None:
        return f"the text after it {claim}"
    if (caveat := caveat_in(prose, answer.tagger, behind=True)) is not None:
        return f"the text after it says that it is not to be trusted: {_excerpt(caveat, 0)!r}"
    return (
        _other_lines(prose, answer)
        or _other_form(prose, names)
        or _other_text(prose, answer)
        or _other_items(prose, answer)
    )


def _claim_in(prose: str, answer: Answer) -> str | None:
    """Return which field a text gives a different value, as in `gives 'total' a different value: …`, or None."""
    for sentence in SENTENCE.split(prose[:_MOST_PROSE]):
        name = contradicted_by(sentence, answer.tagger())
        if name is None and (concluded := _THEN.search(sentence)) is not None:
            name = contradicted_by(sentence[concluded.start("said") :], answer.tagger())
        if name is not None:
            return f"gives {name!r} a different value: {_excerpt(sentence, 0)!r}"
    return None


_ASSIGNED: Final = expression(
    r"^[ \t]*[A-Za-z_]\w{0,40}(?:\.|\[[\"'])(?P<name>\w{1,60})(?:[\"']\])?[ \t]{0,3}"
    r"(?:[-+*/]=[^\n]*|=(?!=)(?P<source>[^\n]*))",
    re.M,
)
"""Code that assigns to a member: `booking.room = 7`."""
_MEMBER: Final = expression(r"[A-Za-z_]\w{0,40}(?:\.|\[[\"'])(\w{1,60})(?:[\"']\])?")
_MOST_PROSE: Final = 20_000


def _is_own(written: str | None, name: str, answer: Answer) -> bool:
    """Return whether what is written for a field is its value, or the member of that name: `booking["room"]`."""
    said = (written or "").strip().rstrip(";")
    if (member := _MEMBER.fullmatch(said)) is not None:
        return answer.shape.name_of(member[1]) == name
    held = answer.held(name)
    said = said.strip("\"'`*., ").casefold()
    same_number = any(map(str.isdigit, said)) and not numbers_meant(said).isdisjoint(held)
    return same_number or said in map(_said, held)


_SOME_TEXT: Final = 2_000


_IN_UNIT: Final = expression(
    r" in (hundreds|thousands|millions|billions|cents|[A-Za-z]{3}\b|euros?\b|dollars?\b|[€$£¥])"
)
_AMOUNTS: Final = expression(r"\b(?:amount|price|value|figure|number|total|cost|sum)s?\b|\bmoney\b", re.I)
_LABELLED: Final = expression(
    r"[*_>-]{0,3}\s?([^\W\d][\w -]{0,60}?)[*_]{0,3}\s{0,3}[:：][*_]{0,3}\s{0,3}"
    r"(\w+://\S+|[a-z]+|(?=[A-Z\u00c0-\u00de])[\w'’.&-]{2,40}(?: [\w'’.&-]{1,40}){0,3})"
)
"""The name of a field and a short text or a link, and nothing else."""
_NO_TEXTS: Final = expression(
    r"(?:required|optional|string|text|none|null|empty|not|missing|unknown|taken|extracted|inferred|based|left|the|an?"
    r"|this|from|see|yes|no|same|your|as|is|i)\b",
    re.I,
)
"""The beginning of a remark about a field."""


def _other_text(prose: str, answer: Answer) -> str | None:
    """Return a line that gives a string a different value (`Owner: Marko`), a link for an empty one, or another unit
    for amounts (`All prices are in euros.`).
    """
    shape = answer.shape
    if (line := _LABELLED.fullmatch(prose.strip())) is not None and (name := shape.name_of(line[1])) is not None:
        held = [_said(part) for part in answer.held(name) if part is not None]
        said = line[2].casefold().rstrip(".")
        is_text = shape.member(name).allows("string") and _NO_TEXTS.match(said) is None
        is_text = is_text and not (line[2].islower() and any(" " in part for part in held))
        if is_text and (held or "://" in said) and not any(said in part or part in said for part in held):
            return f"the text after it gives {name!r} a different value: {_excerpt(line[0], 0)!r}"
    units = {found[1].casefold(): found for found in _IN_UNIT.finditer(prose) if _has_amount(found, shape)}
    if not units:
        return None
    words = {word for name in shape.named for word in name_words(name)}
    words.update(str(part).casefold() for parts in answer.leaves.values() for part in parts)
    for unit, found in units.items():
        if other_unit(words, unit):
            return f"the text after it gives a different unit: {_excerpt(prose, max(0, found.start() - _NEAR_UNIT))!r}"
    return None


_NEAR_UNIT: Final = 60


def _has_amount(unit: re.Match[str], shape: Shape) -> bool:
    """Return whether the words before a unit mention an amount, or name a field."""
    place = max(0, unit.start() - _NEAR_UNIT), unit.start()
    return any(each.search(unit.string, *place) for each in (_AMOUNTS, _naming(tuple(shape.named))[0]))


def _differs_from(prose: str, at: int, answer: Answer) -> bool:
    """Return whether the paragraph at `at` contains anything other than values of the answer."""
    body = prose[at : at + _NEAR_SENTENCE].strip().split("\n\n")[0]
    held = " ".join(_said(part) for parts in answer.leaves.values() for part in parts)
    return any(word.casefold() not in held for word in _TOKEN.findall(body))


def contradiction_in(comments: str, answer: Answer) -> Issue | None:
    """Return the issue for a comment in the value that says why it cannot be trusted, or that gives one of its fields
    a different value: `// explicit: true`.
    """
    if not answer.shape.named:
        return None
    said = _COMMENTED_OUT.sub("", _MARKS.sub("", comments))
    if (unfounded := phrases.UNFOUNDED.search(said)) is not None:
        return Issue("$", "leftover", f"a comment says that it is made up: {_excerpt(said, unfounded.start())!r}")
    if not (MAY_REMARK.may_match(said) or MAY_BE_CAVEAT.may_match(said) or may_claim(said, answer.shape.named)):
        return None
    doubted = doubt_in(said, answer.tagger, named=True) or caveat_in(said, answer.tagger, of_writer=True, behind=True)
    if doubted is not None:
        return Issue("$", "leftover", f"a comment says that it is not to be trusted: {_excerpt(doubted, 0)!r}")
    claim = _claim_in(said, answer)
    return None if claim is None else Issue("$", "leftover", f"a comment {claim}")


_COMMENTED_OUT: Final = expression(r"^[ \t]*[\"'][^\"'\n]{1,60}[\"'][ \t]*:[^\n]*", re.M)
_MARKS: Final = expression(r"^[/#*<!-]+|\*/|-->", re.M)


def _excerpt(text: str, at: int) -> str:
    return " ".join(text[at : at + 80].split())[:60]


def names_fields(text: str, names: Iterable[str]) -> bool:
    """Return whether a text that is not prose names one of these fields."""
    named = set(map(fold, _TOKEN.findall(text[:20_000])))
    return any(fold(name) in named for name in names)


_MAY_BE_LIST: Final = expression(r"\s*[\"'(\[{]")
_TOKEN: Final = expression(r"[^\W\d][\w-]*")


_FIELD_LINE: Final = expression(
    r"^[ \t]*(?:#{1,6}|[-*•])[ \t]+[*_`]{0,3}([^\W\d][\w -]{0,60}?)[*_` \t]*(?:[:：=–-]|$)", re.M
)
"""A heading or an item of a list that names a field."""


_KEY_LINE: Final = expression(r"^[ \t]{0,8}([^\W\d][\w -]{0,60}?)[ \t]{0,4}[:：](?=[ \t]|$)([^\n]*)", re.M)


def _other_lines(prose: str, answer: Answer) -> str | None:
    """Return an answer in `key: value` lines: all required keys, at least two, and other values."""
    if ":" not in prose and "：" not in prose:
        return None
    lines = {answer.shape.name_of(found[1]): found[2] for found in _KEY_LINE.finditer(prose)}
    written = {name: said for name, said in lines.items() if name is not None}
    if len(written) < _FEWEST_LINES or not answer.shape.required <= written.keys():
        return None
    if all(_is_own(said, name, answer) for name, said in written.items()):
        return None
    return f"another answer follows it, in lines: {', '.join(sorted(written))[:60]}"


_FEWEST_LINES: Final = 2


def _other_form(prose: str, names: Mapping[str, Shape]) -> str | None:
    """Return an answer in a form that is not supported: a call with arguments, a table or a row of tags."""
    if not any(sign in prose for sign in "(|<"):
        return None
    for found in _FORMS.finditer(prose):
        if sum(fold(word) in {fold(name) for name in names} for word in _TOKEN.findall(found[0])) > 1:
            return f"another answer follows it, in a form that cannot be read: {_excerpt(found[0], 0)!r}"
    return None


_FORMS: Final = expression(
    r"\b[A-Za-z_]\w{0,60}\((?:\s*\w{1,60}\s*=[^()\n]{0,200}){1,20}\)?|^[ \t]*\|[^\n]+\|[ \t]*$"
    r"|^[ \t]*<\w[^\n]{0,400}</\w+>",
    re.M,
)


@lru_cache(maxsize=128)
def _naming(names: tuple[str, ...]) -> tuple[re.Pattern[str], dict[str, str]]:
    """Return the expression for the fields of a contract in a sentence, as words; names by their folded form."""
    spelled = {fold(spelling): name for name in reversed(names) for spelling in (*other_spellings(name), name)}
    written = {
        r"[\s_-]?".join(map(re.escape, WORD.findall(spelling))) or re.escape(spelling)
        for name in names
        for spelling in (name, *other_spellings(name))
    }
    any_name = "|".join(sorted(written, key=lambda each: (-len(each), each))) or "(?!)"
    in_words = rf"(?<![^\W{CJK}])(?<!-)(?:{any_name})(?!-)(?![^\W{CJK}])"
    return re.compile(in_words, re.I), spelled


def _other_items(prose: str, answer: Answer) -> str | None:
    """Return a line that lists other items of a list of strings, as in `Tags: screen, damage`."""
    named = answer.shape.named
    lists = [name for name, part in named.items() if part.allows("array") and part.element(0).allows("string")]
    if not lists or (any_name := _naming(tuple(lists))[0]).search(prose) is None:
        return None
    for sentence in SENTENCE.split(prose):
        for found in any_name.finditer(sentence[:_NEAR_SENTENCE]):
            if (listed := _ITEMS.match(sentence, found.end())) is None:
                continue
            held = {str(part).casefold() for part in answer.held(found[0])}
            items = {item.casefold() for item in _COMMA.split(listed[1])}
            if not held or len(items & held) not in (0, len(items)):
                return f"the text after it gives {found[0]!r} a different value: {_excerpt(sentence, 0)!r}"
    return None


def _own_keys(value: object, shape: Shape) -> dict[str, Shape]:
    """Return the keys of an object whose contract declares none, with what each may contain."""
    keys = islice(value, _MOST_KEYS) if is_dict(value) else ()
    return {key: shape.member(key) for key in keys if 1 < len(key) <= _LONGEST_KEY}


_MOST_KEYS: Final = 200
_LONGEST_KEY: Final = 100


def _said_of(sentence: str, at: int, shape: Shape) -> bool | None:
    """Return the value that a sentence gives to the boolean named at `at` (`is not vegan`), or None."""
    if not shape.allows("boolean") or shape.allows("string"):
        return None
    before = sentence[max(0, at - _NEAR_WORDS) : at]
    said = False if phrases.UNTRUE.search(before) else True if phrases.HOLDS.search(before) else None
    return None if said is None or phrases.CONDITION.search(sentence) else said


_NEAR_WORDS: Final = 40
_NEAR_SENTENCE: Final = 500
"""The distance around the name of a field within which its sentence is read: a "sentence" may be megabytes long."""


def _said(part: Any) -> str:
    return (f"{part:g}" if isinstance(part, float) else str(part)).casefold()


def _leaves(value: Any, shape: Shape) -> dict[str, list[Any]]:
    """Return all scalars of a value, by the normalized names of their keys."""
    found: dict[str, list[Any]] = {}
    names: dict[tuple[int, str], tuple[str, set[str]]] = {}  # of each key of each shape: a list repeats them
    pending: list[tuple[Any, Shape]] = [(value, shape)]
    while pending:
        here, known = pending.pop()
        if is_dict(here):
            for key, part in here.items():
                if (place := (id(known), key)) not in names:
                    real = known.keys.get(key, key)
                    aliases = {alias for alias, meant in known.keys.items() if meant == real}
                    names[place] = real, set(map(fold, {key, *aliases}))
                real, spelled = names[place]
                parts = part if is_list(part) else [part]
                scalars = [each for each in parts if not isinstance(each, (dict, list))]
                for each in spelled if scalars else ():
                    found.setdefault(each, []).extend(scalars)
                if len(scalars) < len(parts):
                    pending.append((part, known.member(real)))
        elif is_list(here):
            found.setdefault("", []).extend(part for part in here if not isinstance(part, (dict, list)))
            pending += [(part, known.element(at)) for at, part in enumerate(here)]
    return found


_COMMA: Final = expression(r"[,;，、]\s*")
_LISTED: Final = r"[\w'’&/+-]{1,40}(?: [\w'’&/+-]{1,40}){0,2}"
_ITEMS: Final = expression(rf"[\"'`*_)]{{0,4}}\s?[:：][*_]{{0,2}}\s*({_LISTED}(?:, ?{_LISTED}){{1,20}})\s*\.?\s*\Z")
"""The items of a list after its name, as in `Tags: screen, damage`."""
