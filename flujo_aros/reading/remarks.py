"""Recognizes remarks next to a value: sentences that doubt it (the writer guessed, is not sure, did not find it, asks
for a review, means an example or another text), and sentences that retract or correct it.

Such remarks have too many wordings for a list of sentences, but few meanings. Each rule is an order of tags (see
`tagger`) that means a doubt or a correction: *not … certain*, *guessed … field*, *field … should be … another value*.

A doubt concerns the answer if its clause has a field or a value of the answer, or a word for all of it. A field that
is empty in the answer does not count: `The date is not stated` explains why it is null.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from flujo_aros.reading.grammar import SENTENCE, expression
from flujo_aros.reading.phrases import CORRECTED, Phrases
from flujo_aros.reading.tagger import FIELDS, LETTERS, LEXICON, VALUES, Tagger

_STATED: Final = (
    # uncertain: "The hours are unclear", "no clear priority", "may need to be updated"
    "^ - FIELD/VALUE/ANSWER -8 UNCLEAR/DOUBTFUL",
    "^ - UNCLEAR -6 FIELD/VALUE/ANSWER",
    "^ - THIS ~1 UNCLEAR",
    "^ + DOUBTFUL",
    "FIELD ~2 MAY SHOULD",
    "NOT ~3 ENOUGH",
    "NOT ~1 CLEAR ~4 FIELD/VALUE/THIS",
    "FIELD/VALUE/THIS ~6 NOT ~1 CLEAR",
    # the writer is not certain: "I am not entirely sure", "Can't confirm the hours", "confidence is low"
    "I ~5 NOT ~4 SURE/CONFIRM !STATED !WHAT/IF,~1,YOU/THIS",
    "^ ~1 NOT ~1 SURE/CONFIRM !WHAT/IF,~1,YOU/THIS",
    "THIS IS NOT ~1 SURE",
    "I WOULD CONFIRM/REVIEW ~3 FIELD/VALUE/ANSWER/THIS",
    "ONLY ~1 SURE !~3,IF",
    "CONFIDENCE/SURE ~5 LOW",
    "LOW CONFIDENCE",
    # it may be wrong: "the hours might be off"
    "FIELD/VALUE/ANSWER/THIS/I ~3 MAY/PERHAPS ~5 OTHERWISE/WRONG",
    "MAY/PERHAPS ~2 FIELD/VALUE/ANSWER/THIS ~4 OTHERWISE/WRONG",
    "<YOU FIELD/VALUE/ANSWER/THIS IS -1 WRONG",
    "THIS WOULD IS? ~2 OTHERWISE/WRONG",
    "^ - MAY/PERHAPS IS? ~1 WRONG",
    # a guess: "I had to guess", "6 is a placeholder", "my best guess"
    "I -4 <INSTEAD GUESSED !THIS,IS/SHOULD",
    "^ - FIELD/ANSWER -8 <INSTEAD ASSUMED !OTHER !~6,BASED,~9,SOURCE",
    "^ - VALUE -3 IS -5 ASSUMED !OTHER",
    "^ ASSUMED -5 FIELD/VALUE/ANSWER",
    "I/IS -3 ASSUMED !~6,BASED,~9,SOURCE -5 FIELD/VALUE/ANSWER",
    "^ - FIELD/VALUE/ANSWER -8 <INSTEAD GUESSED",
    "^ - GUESSED -5 FIELD/VALUE/ANSWER",
    "^ -4 <INSTEAD GUESSED $",
    "^ - THIS/ANSWER IS -2 ASSUMED/GUESSED",
    "^ - IS -2 ASSUMED $",
    "CHOSE ~4 ASSUMED/EXAMPLE",
    "I ~2 HAD_TO ~9 FIELD",
    "FIELD HAD_TO IS",
    # it is to be reviewed: "you may want to double-check the hours", "Verify the customer", "hours to be confirmed"
    "SHOULD -5 CONFIRM/REVIEW ~3 FIELD/VALUE/ANSWER/THIS/SOURCE",
    "FIELD ~4 SHOULD -3 CONFIRM/REVIEW",
    "^ CONFIRM/REVIEW ~2 FIELD/VALUE/ANSWER",
    # an example: "this is a draft", "only as an example"
    "THIS/ANSWER ~1 IS -2 EXAMPLE",
    "THIS IS ~2 ANSWER FROM ~1 EXAMPLE",
    "^ EXAMPLE ONLY? ANSWER? $",
    "ONLY ~2 EXAMPLE",
    "FROM EXAMPLE ONLY",
    "POINTS ~1 EXAMPLE",
    # not read: "I could only see the first page", "I was unable to open the file"
    "I ~4 ONLY ~6 READ",
    "I ~4 ONLY ~4 PART ~3 SOURCE",
    "NOT ~1 READ ~3 SOURCE/FIELD/VALUE",
    "SOURCE ~2 NOT ~1 READ",
    "SOURCE IS ~1 UNCLEAR/ANOTHER",
    "REAL/CORRECT/CLEAR/SURE/CONFIRM/STATED/LISTED ~4 EXCEPT ~2 FIELD",
    # it is not complete: "please send me the text", "I will put in the real weight", "TODO: weigh it"
    "SHOULD SEND/STATED !~4,ANOTHER/MORE/IF ~4 SOURCE !~9,IF",
    "I ~1 WILL ~2 CHOSE ~4 REAL",
    "^ ~1 TODO",
)
"""Orders of classes in a clause that mean doubt.

`-` stands for words without a negation, `*` for words without the name of an empty field, and `+` for both.
"""
_CONSIDERED: Final = (
    # another value: "perhaps the customer is", "the hours could be", "this could also be read as medium"
    "FIELD/VALUE/ANSWER/THIS ~1 MIGHT ~1 NOT",
    "FIELD/VALUE/ANSWER/THIS ~1 MAY ~1 PERHAPS",
    "PERHAPS NOT",
    "PERHAPS ~2 FIELD IS",
    "THIS IS PERHAPS THIS",
    "FIELD MAY !ONLY ~1 IS !READ !~9,IF",
    "NUMBER MAY",
    "VALUE/PIECE FIELD MAY",
    "FIELD/VALUE/ANSWER/THIS/I ~3 MAY/PERHAPS ~5 ANOTHER",
    "MAY/PERHAPS ~4 CHOICE !~9,IF",
    "CHOICE ~3 MAY/PERHAPS !~9,IF",
    "VALUE OR ~1 CHOICE",
    "CHOICE OR ~1 VALUE",
    "SEVERAL FIELD",
    "^ !WHAT ~2 FIELD/VALUE QUESTION",
    # it is not stated: "No hours were specified", "the text never says how long"
    "^ * NOT ~1 FIELD/ANSWER ~4 STATED",
    "FIELD ~4 NOT ~2 STATED !A/DEF/EMPTY_FIELD",
    "NOT ~2 STATED ~3 FIELD",
    "SOURCE ~2 NOT ~1 STATED ~1 WHAT",
    # another text: "the hours are from a different ticket"
    "FIELD/VALUE/ANSWER/THIS ~8 <MOVED FROM ~1 ANOTHER",
    "^ !DEF?,SOURCE ~20 FROM ~1 ANOTHER SOURCE",
)
"""The same, but a text that thinks before it answers may still settle it."""
_STATED_ACROSS: Final = (
    "NOT ~4 STATED ~1 BUT BUT? ~1 VALUE",
    "NOT ~3 SURE ~12 BUT CHOSE",
    "^ CONFIDENCE STOP ~1 LOW",
    "NOT ~5 STATED/FIELD/CLEAR/SURE ~8 BUT BUT? I ~1 CHOSE !~2,SOURCE",
    "UNCLEAR ~8 BUT BUT? I ~1 CHOSE !~2,SOURCE",
    "FIELD/VALUE ~20 SHOULD CONFIRM/REVIEW BUT? $",
    "^ ~2 FIELD BUT UNCLEAR/ASSUMED",
    "FIELD BUT? WHAT I ~1 NOT ~1 READ/CONFIRM/SURE/STATED",
)
"""The same for whole sentences: "No date is given, so I used today's", "The hours seem high; please check"."""
_CONSIDERED_ACROSS: Final = (
    "THIS/ANSWER WOULD ~60 IF",
    "IF ~60 THIS? WOULD BUT? $",
    "FIELD ~4 BUT NOT ~1 STATED",
    "FIELD/VALUE ~16 BUT NOT FROM ~2 SOURCE",
    "^ ~2 FIELD BUT? QUESTION $",
    "^ FROM EXAMPLE BUT? $",
)
_RETRACTED: Final = (
    # "The total above is wrong", "The number I gave can't be right", "That isn't the answer"
    "<YOU/SOURCE FIELD/VALUE/ANSWER/THIS/I ANSWER/TRUE? IS/THIS -1 WRONG",
    "FIELD/VALUE/ANSWER/THIS ~2 I STATED/CHOSE/LISTED ~1 IS -1 WRONG",
    "FIELD/VALUE IS CHOSE/STATED/READ/LISTED ~3 WRONG",
    "^ !YOU !~2,CHOICE ~3 IS -1 WRONG $",
    "FIELD/VALUE/ANSWER/THIS ~4 NOT IS? ~1 REAL/CORRECT/CLEAR",
    "FIELD/VALUE/ANSWER/THIS NOT IS SURE/CHOSE",
    "FIELD/VALUE/ANSWER/THIS IS NOT ANSWER",
    "FIELD/VALUE/ANSWER NOT ANSWER",
    "THIS IS FROM? -1 WRONG",
    "^ ~1 FIELD ~1 IS -5 WRONG $",
    "ANSWER ~1 YOU ANOTHER",
    "POINTS ~3 WRONG",
    "VALUE/EMPTY ARROW ~1 OTHER/CHOICE",
    "RETRACTED",
    "TRUE/FALSE/EMPTY IS -1 WRONG",
    "TRUE/FALSE/EMPTY IS NOT REAL/CORRECT",
    "I ~1 WRONG SURE",
    "I WOULD NOT CHOSE/SURE",
    "INSTEAD I? DEF? ANSWER/WHAT ~2 $",
    # "I misread it", "I used the wrong line", "I made an error", "a typo in the total"
    "I -4 SLIPPED",
    "I ~1 CHOSE/STATED/HAVE/LISTED ~4 WRONG",
    "I ~1 CHOSE/STATED/HAVE/LISTED ~6 ERROR",
    "FIELD/VALUE/ANSWER/THIS ~3 IS -1 SLIPPED",
    "FIELD/VALUE/ANSWER/THIS -6 IS A? ERROR",
    "ERROR FROM ~1 FIELD/VALUE/ANSWER",
    "ERROR ANSWER",
    "FIELD/ANSWER ~2 HAVE ~2 ERROR",
    "FIELD/VALUE/ANSWER ~3 SHOULD SHOULD EDIT/MOVED",
    # "It is actually 4", "It should have been 4", "The name should read Mia"
    "IS ACTUALLY !QUITE/NOT/FIELD/VALUE/A",
    "ACTUALLY ~3 OTHER/CHOICE",
    "I/FIELD/VALUE/THIS/ANSWER ~2 SHOULD_HAVE",
    "^ !~2,SOMEBODY -5 SHOULD IS? SPELT",
    "NAMED/ANSWER/THIS ~2 SHOULD READ",
    "NAMED/ANSWER/THIS ~2 SHOULD ~3 OTHER/CHOICE/EMPTY/TRUE/FALSE",
    "^ SHOULD? CHOSE ~1 OTHER/CHOICE ~9 INSTEAD",
    "<IS CORRECT ~2 IS/THIS/WOULD ~1 OTHER/CHOICE",
    "^ ~1 SHOULD IS OTHER/CHOICE",
    "FIELD ~2 SHOULD IS OTHER/CHOICE",
    "SHOULD_BE ~2 OTHER/CHOICE",
    "OTHER/CHOICE ~1 SHOULD_BE",
    "^ BETTER BETTER? CHOICE/OTHER",
    "MOVED FROM ~1 OTHER/CHOICE !FROM,VALUE",
    "I WILL NOT STATED/CHOSE ~2 ANSWER",
    # "Ignore the total", "Don't use it", "Please change the total", "Let me fix that"
    "^ ~1 IGNORE",
    "^ SHOULD? ~1 NOT CHOSE/SURE FROM? ~1 FIELD/VALUE/THIS/ANSWER",
    "^ SHOULD? ~1 NOT CHOSE $",
    "^ HM? SHOULD? ADD ~6 FROM ~1 NAMED",
    "^ EDIT? HM? SHOULD? CHANGE !SURE ~3 FIELD/VALUE/THIS/CHOICE/ANSWER",
    "^ ~1 MAKE_IT",
    "^ LET_ME CHANGE/CONFIRM/REVIEW/CORRECT",
    "I ~3 SHOULD/WILL/WOULD/HAD_TO ~2 CHANGE/CORRECT ~3 FIELD/VALUE/THIS/ANSWER",
    "EDIT/CLEAR ~3 BELOW",
    "^ ~3 EDIT ANSWER $",
    "SORRY FROM THIS $",
    "I ~3 WOULD/SHOULD ~2 OTHERWISE ~3 FIELD",
    "I SHOULD ~3 CHANGE $",
    "NOT ~1 FIELD/VALUE/THIS IS -1 REAL/CORRECT",
)
"""Orders of classes in a clause that retract or correct the answer."""
_RETRACTED_ACROSS: Final = (
    "| NO? HM/BUT? BUT? OOPS/SHOULD_BE",
    "^ ~2 OOPS STOP",
    "^ ~2 CHANGE STOP !NUMBER",
    "| NO? HM/BUT? BUT? WAIT !FROM !$",
    "NO WAIT",
    "RECHECKED ~25 OTHER/CHOICE/WRONG/SHOULD/NOT/SLIPPED/ANOTHER/TRUE/FALSE",
    "| HM/BUT? BUT? SORRY !FROM/IF !COMMA?,I,WILL,NOT !COMMA?,NOT,SOURCE !COMMA?,~3,LATE",
    "BUT SORRY/OOPS $",
    "COMMA SORRY COMMA",
    "SORRY FROM ~3 ERROR/SLIPPED/RETRACTED",
    "| HM/BUT? BUT? ACTUALLY !COMMA?,THIS?,IS?,QUITE !A",
    "| HM/BUT? NO COMMA !NOT/THANKS/THERE",
    "^ EDIT STOP",
    "^ ~1 ANSWER STOP NOT !ERROR",
    "NAMED STOP SHOULD IS",
    "CORRECT ~2 STOP OTHER/CHOICE",
    "^ SHOULD/BETTER STOP ~1 CHOICE/OTHER",
    "EMPTY_FIELD SHOULD IS ~1 VALUE",
    "EMPTY_FIELD IS? STOP? NOT EMPTY",
)
"""The same for whole sentences."""
_DENIED: Final = (
    "^ - <ALL/OTHER/VALUE/PIECE EMPTY_FIELD IS STATED/LISTED !NOT",
    # a value is something else: "25 is the number of drums", "3.4 was last year's figure"
    "^ HM? DEF? VALUE/PIECE IS DEF/WHAT !~9,STATED/REAL/CORRECT/PROPER/CHOICE/ONLY/AGREE =12 $",
    "^ HM? DEF? VALUE/PIECE IS ~1 ANOTHER",
    "^ HM? DEF? VALUE/PIECE IS ONLY ~1 $",
    "FIELD/VALUE/ANSWER/WHAT I STATED/CHOSE/LISTED =4 IS DEF/WHAT !~9,STATED/REAL/CORRECT =12 $",
    # "89.9 isn't what the ticket says", "The amount doesn't match the slip"
    "FIELD/VALUE/ANSWER =3 IS NOT WHAT",
    "FIELD/VALUE/ANSWER =6 NOT AGREE !FROM,~1,ANSWER,FROM",
    "FIELD/VALUE/ANSWER =3 WRONG AGREE",
    "OTHER/CHOICE/PROPER ~3 IS/WOULD IS? DEF? ~1 REAL/CORRECT",
    "CEASED ~3 VALUE",
    # a yes or no: "She did not in fact pass"
    "NOT =4 HOLDS",
    "<NOT IS =2 LACKS $",
)
"""Orders of classes in a clause that say that a value of the answer is something else. `=3` stands for up to three
words that are neither a negation nor the answer's.
"""
_DENIED_ACROSS: Final = (
    "^ HM? DEF? VALUE/PIECE IS =9 COMMA? NOT ~4 FIELD",
    "^ NOT VALUE/PIECE BUT",
    "^ OTHER INSTEAD",
    "FIELD I STATED/CHOSE/LISTED ~5 NOT AGREE",
)
"""The same for whole sentences."""
_ASSERTED: Final = (
    # a field is something else: "The tenant is Ruth Osei", "Ruth Osei is the tenant", "The rent comes to 1300"
    "^ OTHER/PROPER/CHOICE IS DEF NAMED",
    "NAMED =2 SHOULD =3 OTHER/PROPER/CHOICE",
    "SHOULD_HAVE IS/SHOULD ~1 OTHER/PROPER/CHOICE",
    "^ SHOULD? CHANGE =3 FROM OTHER/PROPER/CHOICE",
    # another choice: "The sky was merely cloudy", "The observer noted clear skies"
    "<NOT STATED/LISTED CHOICE ~1 $",
    "^ CHOICE ~1 AMOUNTS/AGREE/IS ~1 MORE/BETTER",
    "LATER =7 CHOICE $",
    # it was superseded: "The exam was re-marked and now stands at 84"
    "LATER =7 OTHER/PROPER",
)
"""Orders of classes in a clause that assert something else, in a sentence without a value of the answer."""
_CONDITIONAL: Final = ("^ ~1 IF", "^ SHOULD DEF/NAMED", "^ NOT ~5 THIS SHOULD_HAVE")
"""Sentences that ask for a change under a condition."""
_EXEMPT: Final = (
    "NOT ~9 BUT ~6 ALL", "NOT ~4 SURE ~16 BUT BUT? I HAVE? CONFIRM", "^ ~1 IF/WOULD YOU", "^ ~1 SOMEBODY @ $",
    "CHOICE ~6 MAY ~16 BUT ~20 VALUE !~12,GUESSED/ASSUMED/DOUBTFUL/UNCLEAR",
    "MAY ~8 CHOICE ~16 BUT ~20 VALUE !~12,GUESSED/ASSUMED/DOUBTFUL/UNCLEAR",
)  # fmt: skip
"""Sentences that doubt nothing: `if you need more`, what the customer is not sure of, and `it could be b, but a fits`.

`@` stands for any number of words that are neither the writer nor in the answer.
"""
_RATIONALE: Final = (
    "^ STOP? NAMED STOP STOP? VALUE/PIECE !ARROW !~3,GUESSED/ASSUMED/SURE/PERHAPS/DOUBTFUL/UNCLEAR",
    "^ STOP? NAMED STOP STOP? FALSE/EMPTY BUT BUT? NOT",
    "^ HM? DEF? NAMED IS -1 VALUE/TRUE/FALSE/EMPTY BUT? BECAUSE !~40,GUESSED/ASSUMED/DOUBTFUL/WRONG/SLIPPED/ERROR/REAL",
    "^ STOP? NAMED STOP ~9 ARROW STOP? VALUE/TRUE/FALSE/EMPTY $",
)
"""Lines that give a field its own value and a reason: `hours: 6, as the form says`, `paid is false because …`."""
_EMPTY: Final = ("EMPTY", "NOT ~2 EMPTY_FIELD")
"""Sentences that explain why a field is empty, unless they name another one, or a guess: `so it is null`."""


def _rule(pattern: str) -> str:
    return LEXICON.rule(pattern, _ALSO, _SPANS)


_ALSO: Final = {
    "FIELD": "/".join((*FIELDS, "THE")), "NAMED": "/".join((*FIELDS, "EMPTY_FIELD")), "NOT": "NOT/NO",
    "VALUE": "VALUE/NUMBER",
    "MAY": "MAY/MIGHT", "REVIEW": "REVIEW/CORRECT", "REAL": "REAL/TRUE", "BUT": "BUT/BECAUSE/COMMA/STOP/AND",
    "FROM": "FROM/BASED",
    "CHOSE": "CHOSE/SET/ADD", "SHOULD": "SHOULD/BETTER", "CHANGE": "CHANGE/SET", "CORRECT": "CORRECT/VALID",
    "SPELT": "SPELT/AMOUNTS", "OTHERWISE": "OTHERWISE/MOVED/ERROR/SLIPPED/RETRACTED", "WRONG": "WRONG/RETRACTED/CEASED",
}  # fmt: skip
"""Classes that also count as another one: a reply in another language has its own names for the fields, so that an
article stands for one.
"""
_SPANS: Final = {
    "-": "NOT/NO",
    "*": "EMPTY_FIELD",
    "+": "NOT/NO/EMPTY_FIELD",
    "=": "/".join(("NOT/NO/I", *FIELDS, *VALUES)),
    "@": "/".join(("I", *FIELDS, "VALUE/NUMBER")),
}
"""Spans of words that are none of these."""


class _Rules(NamedTuple):
    """Expressions for the clauses and for the whole sentences of one kind of remark."""

    clause: re.Pattern[str]
    sentence: re.Pattern[str]


def _rules(clauses: Sequence[str], sentences: Sequence[str]) -> _Rules:
    return _Rules(expression("|".join(map(_rule, clauses))), expression("|".join(map(_rule, sentences)) or "(?!)"))


_STATES: Final = _rules(_STATED, _STATED_ACROSS)
_DOUBTS: Final = _rules((*_STATED, *_CONSIDERED), (*_STATED_ACROSS, *_CONSIDERED_ACROSS))
_CORRECTS: Final = _rules(_RETRACTED, _RETRACTED_ACROSS)
_DENIES: Final = _rules(_DENIED, _DENIED_ACROSS)
_ASSERTS: Final = _rules(_ASSERTED, ())
_IS_CONDITIONAL: Final = expression("|".join(map(_rule, _CONDITIONAL)))
_IS_EXEMPT: Final = expression("|".join(map(_rule, _EXEMPT)))
_IS_RATIONALE: Final = expression("|".join(map(_rule, _RATIONALE)))
_IS_ABOUT_EMPTY: Final = expression("|".join(map(_rule, _EMPTY)))
_NAMED: Final = frozenset(map(LETTERS.__getitem__, (*FIELDS, "EMPTY_FIELD", "VALUE", "NUMBER", "CHOICE")))
_OTHER_TOPICS: Final = frozenset(LETTERS[name] for name in (*FIELDS, "VALUE", "NUMBER", "ASSUMED", "GUESSED"))
_SUSPECT: Final = (
    "NOT/EXCEPT/CEASED/MIGHT/UNCLEAR/DOUBTFUL/GUESSED/ASSUMED/CONFIRM/REVIEW/MAY/PERHAPS/OTHERWISE/WRONG/ANOTHER/"
    "EXAMPLE/HAD_TO/WOULD/SEVERAL/LOW/ONLY/OR/WILL/SHOULD/TODO/WAIT/SORRY/OOPS/EDIT/ACTUALLY/INSTEAD/SLIPPED/"
    "RETRACTED/ERROR/IGNORE/CHANGE/SET/RECHECKED/SHOULD_HAVE/CORRECT/EMPTY/MAKE_IT/ARROW/POINTS/NO/ADD/MOVED/"
    "BETTER/VALID/SHOULD_BE"
)
"""Every rule requires a word of one of these classes, or a question mark."""


MAY_REMARK: Final = Phrases(
    *LEXICON.phrases(_SUSPECT),
    r"[\u0900-\u0dff]+|n['’]t\b|['’](?:d|ll)\b|[-=>]>|<-|[→⇒←?❌✗✘✖👎]",
)
"""Finds texts that may contain a remark. Most contain none, which one pass shows."""
_MAY_ASSERT: Final = Phrases(MAY_REMARK.source, *LEXICON.phrases("IS/LATER/STATED/FROM/AMOUNTS/AGREE"), r"['’]s\b")
_OTHERWISE_ABOUT: Final = frozenset(
    map(LETTERS.__getitem__, ("VALUE", "NUMBER", "ANOTHER", "WOULD", "MIGHT", "MAY", "ASIDE"))
)
_MOST_WORDS: Final = 80
"""Longer clauses are read in pieces, so that the time is linear."""


def doubt_in(text: str, tagger: Callable[[], Tagger], *, named: bool = False, thinks: bool = False) -> str | None:
    """Return the first sentence of a text that doubts the answer, or None.

    `tagger` returns the tagger of the answer, and is only called for a suspicious text. `named` asks for a sentence
    with a field or a value. `thinks` means that the text precedes the answer, and that only what it states is doubted,
    not what it considers.

    >>> from flujo_aros.reading.tagger import Field
    >>> answer = Tagger([Field("hours", "number", 6), Field("customer", "empty")])
    >>> doubt_in("I kept it short. No hours were given, so I put 6.", lambda: answer)
    'No hours were given, so I put 6.'
    >>> doubt_in("The customer is not named. The hours are from the second line.", lambda: answer) is None
    True
    """
    rules = _STATES if thinks else _DOUBTS
    for sentence, tags in _suspect(text, tagger):
        if not (named and _NAMED.isdisjoint(tags)) and _doubts(tags, rules):
            return sentence
    return None


class Remark(NamedTuple):
    """A sentence about the answer, and whether it corrects it or doubts it."""

    sentence: str
    corrects: bool


def remark_in(text: str, tagger: Callable[[], Tagger]) -> Remark | None:
    """Return the first sentence of a text that corrects or doubts the answer, or None.

    >>> from flujo_aros.reading.tagger import Field
    >>> answer = Tagger([Field("hours", "number", 6)])
    >>> remark_in("I kept it short. The hours should be 7.", lambda: answer)
    Remark(sentence='The hours should be 7.', corrects=True)
    """
    for sentence, tags in _suspect(text, tagger, _MAY_ASSERT):
        remarks = MAY_REMARK.may_match(sentence)
        is_unasked = _NAMED.isdisjoint(tags) and UNASKED.search(sentence) is not None
        corrects = (remarks and _corrects(tags)) or (not is_unasked and _contradicts(tags))
        if corrects or (remarks and not is_unasked and _doubts(tags, _DOUBTS)):
            return Remark(sentence, corrects)
    return None


def correction_in(text: str, tagger: Callable[[], Tagger] = Tagger) -> str | None:
    """Return the first sentence of a text that retracts or corrects what was said before, or None.

    >>> correction_in("I kept it short. Oops, it should be 6.")
    'Oops, it should be 6.'
    """
    return next((sentence for sentence, tags in _suspect(text, tagger) if _corrects(tags)), None)


def comment_corrects(comment: str) -> bool:
    """Return whether a comment in a value gives another value or takes it back: `// or 587`."""
    return CORRECTED.search(comment) is not None or correction_in(comment.lstrip("/#*<!- ")) is not None


def _suspect(text: str, tagger: Callable[[], Tagger], finds: Phrases = MAY_REMARK) -> Iterator[tuple[str, str]]:
    """Yield the sentences of a text that may be remarks, each with its tags."""
    if finds.may_match(text):
        tags = tagger().tags
        for sentence in filter(finds.may_match, SENTENCE.split(text)):
            yield sentence, tags(sentence)


def _corrects(tags: str) -> bool:
    if _CORRECTS.sentence.search(tags):
        return True
    return not is_explained(tags) and _IS_CONDITIONAL.search(tags) is None and _says(tags, _CORRECTS)


def is_explained(tags: str) -> bool:
    """Return whether a sentence gives a field its own value and a reason for it."""
    return _IS_RATIONALE.search(tags) is not None


def _contradicts(tags: str) -> bool:
    if _IS_CONDITIONAL.search(tags) or is_explained(tags):
        return False
    return _says(tags, _DENIES) or (_OTHERWISE_ABOUT.isdisjoint(tags) and _says(tags, _ASSERTS))


def _doubts(tags: str, rules: _Rules) -> bool:
    if (
        _IS_EXEMPT.search(tags)
        or is_explained(tags)
        or (_OTHER_TOPICS.isdisjoint(tags) and _IS_ABOUT_EMPTY.search(tags))
    ):
        return False
    return _says(tags, rules)


def _says(tags: str, rules: _Rules) -> bool:
    if rules.sentence.search(tags):
        return True
    parts = _CLAUSE_END.split(tags)
    clauses = (part[at : at + _MOST_WORDS] for part in parts for at in range(0, len(part), _MOST_WORDS))
    found = map(rules.clause.search, clauses)
    return any(match is not None and _IF not in match.string[: match.end()] for match in found)


UNASKED: Final = expression(
    r"(?:\bnot|n['’]t) (?:\w+ ){0,3}(?:in|of|by|to|for) (?:the|this|your|any|a) (?:\w+ ){0,2}"
    r"(?:schema|fields?|JSON|format|output|request|data)\b|\badditional fields?\b|\bno (?:\w+ )?fields?\b"
    r"|\bnot (?:requested|asked for)\b",
    re.I,
)
"""A sentence about what the schema has no field for."""
_IF: Final = LETTERS["IF"]
_CLAUSE_END: Final = expression(f"[{''.join(map(LETTERS.__getitem__, ('BUT', 'BECAUSE', 'AND', 'COMMA', 'STOP')))}]")
