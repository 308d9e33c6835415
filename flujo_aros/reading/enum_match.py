"""Match what a model wrote to one of a fixed set of values, or to a boolean.

Only neutral words may occur next to the chosen one: the field's own name, words that announce an answer,
articles, copulas, emphasis, punctuation, the words of the schema's description before a colon or copula, and a remark
on where the value was found. Any other word, symbol or number could change the meaning ("partially valid",
"~~active~~", "2x daily"), so there is no match. Unlisted words prevent a match, because no list of negations could be
complete.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final, NamedTuple

from flujo_aros.contract import Shape, fold
from flujo_aros.reading.lookahead import expression
from flujo_aros.reading.scalars import read_amount

_MAX_TEXT: Final = 300
_MOST_WORDS: Final = 6
"""For a choice that is searched for in a sentence."""


def _words(text: str) -> frozenset[str]:
    return frozenset(fold(word) for word in text.split())


# The lists. Languages: English, German, French, Spanish, Italian, Portuguese, Dutch, Russian, Chinese, Japanese.
_GLUE: Final = _words(
    """
    the a an is are it it's this these my our of as
    der die das dem ein eine ist sind es dies dieser diese dieses
    le la les l' une est sont c'est ce cette el los las son esto este esta il lo sono het een
    是 为 的 该 这 這 が は です である это
    """
)
"""Articles, copulas, pronouns. None of them may negate or weaken in another language (so not `un`, `no`, `as` before
`low`).
"""
_COPULAS: Final = _words("is are it's ist sind est sont c'est es son sono è é是 为 は が")
_ANSWER: Final = _words(
    """
    answer answers result value label class category classification choice option decision verdict output response
    prediction conclusion final overall chosen selected correct right best level rating type
    Antwort Ergebnis Wert Kategorie Klasse Einstufung Entscheidung Urteil Auswahl
    réponse résultat valeur catégorie classe décision choix respuesta resultado valor categoría clasificación decisión
    risposta risultato valore resposta antwoord ответ результат
    答案 回答 结果 結果 分类 分類 类别 類別 结论 結論 答え 最终 最終
    """
)
"""Nouns that announce an answer, whatever its subject."""
_ABOUT: Final = _words(
    """
    sentiment emotion mood tone polarity priority severity urgency status state statement claim intent language topic
    Stimmung Priorität Schweregrad Dringlichkeit Aussage priorité gravité statut sentimiento prioridad gravedad estado
    情感 情绪 情緒 优先级 優先級 严重程度 状态 狀態 感情 優先度 重要度 深刻度
    """
)
"""What a choice without a field may be about."""
ANNOUNCING: Final = _ANSWER | _ABOUT
_REMARK: Final = _words(
    """
    as stated given written mentioned noted described reported specified indicated see per according to in from
    text above document source default the
    siehe Text oben laut wie angegeben voir texte ci-dessus véase texto arriba
    """
)
"""A remark on the source, in parentheses or after a dash: `(as stated)`, `- see text`."""
_DETERMINERS: Final = frozenset({"no", "non", "not", "none"})
"""Choices that negate the noun after them: `no value` is not `no`."""
_YES: Final = _words("yes true ja oui sí sim да 是 はい")
_NO: Final = _words("no false nein non não nee нет 否 いいえ")
_NO_VALUE_LINES: Final = """
,-,–,—,--,null,none,nil,undefined,unknown,unspecified,missing,nothing,empty,n/a,na,n.a,#n/a,tbd,tba,not available
,not applicable,not known,not specified,not provided,not given,not stated,not mentioned,no data,no value,no info
,unbekannt,keine angabe,keine angaben,k.a,k. a,entfällt,nicht angegeben,nicht verfügbar,inconnu,inconnue
,non disponible,non renseigné,néant,desconocido,no disponible,ninguno,no aplica,sconosciuto,non disponibile
,desconhecido,não disponível,onbekend,неизвестно,нет данных,未知,不明,无,無,不适用,未提供,なし,該当なし
"""
_NO_VALUE: Final = frozenset(word.strip() for word in _NO_VALUE_LINES.split(","))
"""Words for a missing value, where null is allowed (in the languages above)."""

_SLOT: Final = expression(r"<[^<>]+>|\{\{.*\}\}|\$\{.*\}|\[[^\]]*\]", re.S)
_TYPE_WORDS: Final = frozenset({"string", "str", "integer", "int", "float", "boolean", "bool"})
_OF_TYPES: Final = frozenset({"type", "kind", "format", "dtype", "language", "datatype"})
"""Names of fields that may hold the name of a type."""

_TRUE: Final = frozenset({"true", "on", "1", "y", "t"}) | _YES
_FALSE: Final = frozenset({"false", "off", "0", "n", "f"}) | _NO
_BOXES: Final = {"[x]": True, "[X]": True, "☑": True, "✅": True, "✔": True, "✓": True, "[ ]": False, "☐": False}

_JOINS: Final = " \t\r\n_-‐‑.'’/"
"""Separators that may differ inside a choice: `in-progress` for `in progress`."""
_WRAPS: Final = (("**", "**"), ("__", "__"), ("*", "*"), ("_", "_"), ("`", "`"), ('"', '"'), ("'", "'"), ("(", ")"))
_MORE_WRAPS: Final = (("[", "]"), ("“", "”"), ("„", "“"), ("‘", "’"), ("«", "»"), ("「", "」"), ("<", ">"), ("{", "}"))
_LEADS: Final = expression(r"(?:[-*•·–—]\s+|(?:👉|➡️?|✅|✔️?|☑️?|🔴|🟠|🟡|🟢|🔵|🟣|⚪|⚫|🟥|🟧|🟨|🟩|🟦|→|=>|->|:)\s*)+")
_TAGGED: Final = expression(r"<([A-Za-z][\w-]{0,30})>\s*(.*?)\s*</\1>", re.S)
_HYPHEN: Final = expression("[-‐‑]")
_STOPS: Final = frozenset(".,;:!…。，、；：！\"'“”„‘’«»「」`*()（）[]【】{}|=→–—-•·")
_EMPHASIS: Final = frozenset("*_`\"'”’.!")
_COLONS: Final = frozenset(":：=→")
_OPENS_REMARK: Final = frozenset("([（-–—,，;；")


@cache  # compiled on first use: wide ranges take milliseconds to compile, and few replies are searched for words
def _token_pattern() -> re.Pattern[str]:
    """A run of Chinese, Japanese or Korean characters, a word, or a symbol."""
    cjk = "".join(f"{first}-{last}" for first, last in _CJK)
    word = rf"[^\W_{cjk}]+"
    return re.compile(rf"[{cjk}]+|{word}(?:[-‐‑'’]{word})*(?:[+#]+(?!\w))?|[^\s_]")


_CJK: Final = (("\u2e80", "\u9fff"), ("\uac00", "\ud7af"))


def _is_cjk(word: str) -> bool:
    """Whether a word begins with a Chinese, Japanese or Korean character."""
    return any(first <= word[:1] <= last for first, last in _CJK)


class Choice(NamedTuple):
    """The matched value, and how it was found; `code` is empty for an exact match."""

    value: Any
    code: str


class Company(NamedTuple):
    """What the contract itself says about a place, so that a reply may repeat it."""

    names: frozenset[str] = frozenset()
    """The words of the field's name."""
    described: frozenset[str] = frozenset()
    """The words of the field's title and description."""


NO_COMPANY: Final = Company()


_WORD: Final = expression(r"[A-Z]+(?![a-z])|[A-Z]?[^\W_A-Z\d]+|[^\W_]+?(?=[A-Z])|\d+|[^\W_]+")


def name_words(name: str) -> list[str]:
    """The words of a name: `dose_mg`, `doseMg` and `Dose (mg)` are `dose` and `mg`."""
    return [fold(word) for word in _WORD.findall(name)]


def match_choice(value: Any, source: Any, shape: Shape, company: Company = NO_COMPANY) -> Choice | None:
    """The one choice that `value` (written as `source`) means, or None if it matches none or could match several."""
    choices = shape.choices or ()
    for choice in choices:
        if choice == value and isinstance(choice, bool) == isinstance(value, bool):
            return Choice(choice, "")
    if value is None or isinstance(value, (dict, list)):
        return None
    if not isinstance(value, str):
        return next((Choice(choice, "number-to-string") for choice in choices if choice == source), None)
    return _match_text(value, shape, company) or _match_other(value, choices)


def match_boolean(text: str, company: Company = NO_COMPANY) -> bool | None:
    """The boolean that a string stands for as a whole word (`yes`, `off`, `[x]`), or None."""
    bare = text.strip()
    if bare in _BOXES:
        return _BOXES[bare]
    key = _key(_unwrapped(bare))
    if key in _TRUE or key in _FALSE:
        return key in _TRUE
    return boolean_word(text, company)


def boolean_word(text: str, company: Company = NO_COMPANY) -> bool | None:
    """The boolean stated in a sentence whose other words are all neutral."""
    named = {word: {"true"} for word in _YES} | {word: {"false"} for word in _NO}
    neutral = Company(company.names | _ABOUT | {"that", "that's"}, company.described)
    found = _match_word(text, named, neutral)
    return None if found is None else found.value == "true"


def is_no_value(text: str) -> bool:
    """Whether a string stands for a missing value: `N/A`, `unknown`, `-`, or an empty string."""
    word = text.strip().casefold()
    return word in _NO_VALUE or _unwrapped(word).casefold() in _NO_VALUE


def is_placeholder(text: str, names: tuple[str, ...] = ()) -> bool:
    """Whether an unquoted word is a placeholder for a value: `<name>`, `string`, or the name of its own field."""
    if _SLOT.fullmatch(text) or tuple(name_words(text)) == names:
        return True
    return text in _TYPE_WORDS and not _OF_TYPES.intersection(names)


def _match_other(text: str, choices: tuple[Any, ...]) -> Choice | None:
    """A choice that is not a string: a number, a boolean or null."""
    amount = read_amount(text)
    if amount is not None:
        for choice in choices:
            if isinstance(choice, (int, float)) and not isinstance(choice, bool) and choice == amount.value:
                return Choice(choice, "string-to-number")
    word = text.strip().lower()
    if word in ("true", "false") and (word == "true") in [choice for choice in choices if isinstance(choice, bool)]:
        return Choice(word == "true", "string-to-boolean")
    if None in choices and is_no_value(text):
        return Choice(None, "string-to-null" if word in ("null", "none", "nil") else "no-value")
    return None


def _match_text(text: str, shape: Shape, company: Company) -> Choice | None:
    if text in shape.choice_aliases:
        return Choice(shape.choice_aliases[text], "alias")
    if len(text) > _MAX_TEXT:
        return None
    pairs = [(choice, choice) for choice in shape.choices or () if isinstance(choice, str)]
    pairs += [(alias, str(choice)) for alias, choice in shape.choice_aliases.items()]
    named: dict[str, set[str]] = {}
    for name, choice in pairs:
        named.setdefault(_key(name), set()).add(choice)
    bare = _key(_unwrapped(text))
    if bare and len(named.get(bare, ())) == 1:
        return Choice(next(iter(named[bare])), "enum-case")
    if not company.names:
        company = Company(_ABOUT, company.described)
    return _match_word(text, named, company)


def _key(text: str) -> str:
    """Text without case, accents and word separators; other symbols stay, because they could change the meaning."""
    inner = text.strip(" \t\r\n_.,:;'’")
    kept = "".join(c for c in inner if not c.isalnum() and c not in _JOINS and ord(c) not in _JOINERS)
    lead = inner[:1] if inner[:1] in "-/" else ""
    last = inner[-1:] if inner[-1:] in "-/" else ""
    slash = "/" if "/" in inner[1:-1] and len(fold(inner)) <= _ABBREVIATED else ""
    return f"{lead}{fold(inner)}{last}{slash}{kept}"


_ABBREVIATED: Final = 3
"""Letters of a word that may contain a slash: `N/A` is not `NA`."""
_JOINERS: Final = frozenset({0xFE0F, 0x200B, 0x200C, 0x200D, 0xFEFF, *range(0x300, 0x370)})


def _unwrapped(text: str) -> str:
    """Text without the emphasis, quotes, brackets, bullet and final period around it."""
    bare = text.strip()
    for _ in range(4):
        tagged = _TAGGED.fullmatch(bare)
        inner = tagged[2] if tagged and _key(tagged[1]) in ANNOUNCING else bare
        lead = _LEADS.match(inner)
        inner = inner[lead.end() :] if lead else inner
        inner = inner.rstrip(".,;:!。！ \t\r\n") or inner
        for left, right in (*_WRAPS, *_MORE_WRAPS):
            if inner.startswith(left) and inner.endswith(right) and len(inner) > len(left) + len(right):
                inner = inner[len(left) : -len(right)].strip()
                break
        if inner == bare:
            break
        bare = inner
    return bare


def _match_word(text: str, named: dict[str, set[str]], company: Company) -> Choice | None:
    """The one choice that occurs in the text as a whole word or phrase, with only neutral words next to it."""
    if len(text) > _MAX_TEXT:
        return None
    tagged = _TAGGED.fullmatch(text.strip())
    if tagged and _key(tagged[1]) in ANNOUNCING | company.names:
        text = tagged[2]
    tokens = list(_tokens(text[_lead_of(text) :], named, company))
    found: set[str] = set()
    last = at = 0
    pending: list[int] = []  # described words, which need a colon or copula before the choice
    while at < len(tokens):
        token = tokens[at]
        length, meant = _choice_at(tokens, at, named)
        if meant and not _is_letter_in_a_sentence(tokens, at, length, text, company):
            following = tokens[at + length] if at + length < len(tokens) else ""
            if "".join(tokens[at : at + length]) in _DETERMINERS and following[:1].isalnum():
                return None
            if any(not _announces(tokens[index + 1 : at]) for index in pending):
                return None
            found |= meant
            pending = []
            last = at = at + length
        elif token in _GLUE or token in company.names or token in _ANSWER or token in _STOPS:
            at += 1
        elif found and _is_remark(tokens[last:]):
            break
        elif token in company.described and not found:
            pending.append(at)
            at += 1
        else:
            return None
    return Choice(found.pop(), "enum-word") if len(found) == 1 and not pending else None


def _lead_of(text: str) -> int:
    lead = _LEADS.match(text.lstrip())
    return len(text) - len(text.lstrip()) + lead.end() if lead else 0


def _tokens(text: str, named: dict[str, set[str]], company: Company) -> Iterator[str]:
    """The words, as keys, and the signs of a text; what is written without spaces is cut where all parts are known."""
    known = named.keys() | _GLUE | _ANSWER | company.names | company.described
    before = ""
    for match in _token_pattern().finditer(text):
        part = match[0]
        if not part[0].isalnum():
            # A sign at the beginning of a word belongs to it (`-active`, `!true`), and a dash at its end (`high-`).
            glued = part in "-!" and (
                (text[match.end() : match.end() + 1].isalnum() and not before.strip())
                or (part == "-" and before.isalnum() and not text[match.end() :].strip())
            )
            yield f"{part}?" if glued else part
        elif _key(part) in known:
            yield _key(part)
        elif _is_cjk(part):
            yield from _segments(fold(part), known)
        elif _HYPHEN.search(part):
            yield from (_key(piece) for piece in _HYPHEN.split(part))
        else:
            yield _key(part)
        before = text[match.end() - 1]
        before = before if text[match.end() : match.end() + 1].strip() else " "


def _segments(run: str, known: Iterable[str]) -> Iterator[str]:
    """The words of a run of Chinese or Japanese characters, longest match first."""
    longest = max((len(word) for word in known if _is_cjk(word)), default=1)
    at = 0
    while at < len(run):
        length = next(
            (n for n in range(min(longest, len(run) - at), 0, -1) if run[at : at + n] in known), len(run) - at
        )
        yield run[at : at + length]
        at += length


def _choice_at(tokens: list[str], at: int, named: dict[str, set[str]]) -> tuple[int, set[str]]:
    for length in range(min(_MOST_WORDS, len(tokens) - at), 0, -1):
        run = tokens[at : at + length]
        if all(word[:1].isalnum() for word in run) and "".join(run) in named:
            return length, named["".join(run)]
    return 1, set()


def _is_letter_in_a_sentence(tokens: list[str], at: int, length: int, text: str, company: Company) -> bool:
    """Whether a choice of one letter occurs among words, where it may be an article or a pronoun.

    It counts alone, in brackets, or after a label: `(B)`, `Answer: B`, `Option B`.
    """
    letter = "".join(tokens[at : at + length])
    if len(letter) > 1 or not letter.isalpha() or _is_cjk(letter):
        return False
    words = [token for token in tokens if token[:1].isalnum()]
    if len(words) == 1:
        return False
    if at and tokens[at - 1] in "([" and tokens[at + 1 : at + 2] in ([")"], ["]"]):
        return False
    before = next((token for token in reversed(tokens[:at]) if token not in _STOPS and token not in _COPULAS), "")
    capital = re.search(rf"(?<!\w){letter.upper()}(?!\w)", text) is not None
    return before not in company.names | _ANSWER or not (capital or _COLONS.intersection(tokens[:at]))


def _announces(between: list[str]) -> bool:
    """Whether a colon or copula separates a described word from the choice."""
    return any(token in _COLONS or token in _COPULAS for token in between)


def _is_remark(rest: list[str]) -> bool:
    """Whether the words after the choice only say where it was found."""
    words = [token for token in rest if token[:1].isalnum()]
    opened = next((sign for sign in rest if sign not in _EMPHASIS), "")
    return opened in _OPENS_REMARK and bool(words) and all(word in _REMARK or word in _STOPS for word in rest)


def say_choices(shape: Shape, limit: int = 12) -> str:
    """The choices, prepared for searching a sentence."""
    choices: tuple[Any, ...] = shape.choices or ()
    shown = ", ".join(repr(choice) for choice in choices[:limit])
    return f"{shown}, …" if len(choices) > limit else shown
