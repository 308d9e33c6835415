"""The meaning of scalars as models write them, with the risk of each: numbers, dates, choices and booleans.

1. `read_number` reads a number that differs from JSON only in its notation (`+5`, `1,234,567`); the parser needs no
   more.
2. `read_amount` reads one number in any notation, with what may be next to it: a currency, a percent sign, a unit or
   a word that multiplies. The name of the field decides which unit is harmless (`Hints`); digits are never dropped.
3. `read_time` reads a date, time or duration in one of the usual forms and returns its ISO form, or nothing if day and
   month could be swapped.
4. `match_choice` and `match_boolean` find the one choice that a string means: spelled in a different way, or as a word
   of a sentence. `is_no_value` and `is_placeholder` recognize strings that stand for a missing value.

In a sentence only neutral words may occur next to a choice (`verdicts.sole_choice`), the words of the schema's
description before a colon or copula, and a remark on the source of the value. Any other word, symbol or number could
change the meaning ("partially valid", "~~active~~", "2x daily"), so there is no match. Unlisted words prevent a match,
because no list of negations could be complete.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Mapping
from collections.abc import Set as AbstractSet
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Any, Final, NamedTuple

from flujo_aros.contract import Shape, fold, is_misread
from flujo_aros.numerals import number_in_words
from flujo_aros.outcome import Risk
from flujo_aros.reading.grammar import expression
from flujo_aros.reading.verdicts import TRUTH_WORDS, americanize, sole_choice

SURROGATE: Final = expression("[\ud800-\udfff]")
"""A lone surrogate, which cannot be encoded for a file, a socket or a terminal."""

LITERALS: Final[dict[str, Any]] = {"true": True, "false": False, "null": None}

# Words of other languages for JSON's three literals. `undefined` is a guess: JavaScript drops members with that value.
FOREIGN: Final[dict[str, tuple[Any, Risk]]] = {
    "True": (True, Risk.LOSSLESS),
    "False": (False, Risk.LOSSLESS),
    "None": (None, Risk.LOSSLESS),
    "TRUE": (True, Risk.LOSSLESS),
    "FALSE": (False, Risk.LOSSLESS),
    "NULL": (None, Risk.LOSSLESS),
    "Null": (None, Risk.LOSSLESS),
    "nil": (None, Risk.INFERRED),
    "undefined": (None, Risk.INFERRED),
}

NON_FINITE: Final = expression(r"[+-]?(?:nan|inf(?:inity)?)\Z", re.I)

NUMBER: Final = expression(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.A)
_LOOSE_NUMBER: Final = expression(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\Z", re.A)
_GROUPED: Final = expression(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?\Z", re.A)
MAX_DIGITS: Final = 4_000


class Reading(NamedTuple):
    """The value of a token; `code` is empty if it is plain JSON."""

    value: Any
    code: str
    risk: Risk


def read_number(raw: str) -> Reading | None:
    """Return the number that these characters represent, or None. Digits are never dropped: `007` and `12%` are not
    numbers.

    Takes thousands groups (`1,234,567`), `+5`, `.5` and `5.` as INFERRED.
    """
    if len(raw) > MAX_DIGITS:
        return None
    match = NUMBER.fullmatch(raw)
    if match:
        return _finite(raw, "", Risk.LOSSLESS)
    if _LOOSE_NUMBER.match(raw):
        digits = raw.lstrip("+-")
        if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
            return None
        return _finite(raw.removesuffix("."), "loose-number", Risk.INFERRED)
    if _GROUPED.match(raw):
        return _finite(raw.replace(",", ""), "digit-groups", Risk.INFERRED)
    return None


def _finite(raw: str, code: str, risk: Risk) -> Reading | None:
    if "." in raw or "e" in raw or "E" in raw:
        value = float(raw)
        return Reading(value, code, risk) if isfinite(value) else None
    return Reading(int(raw), code, risk)


_MAX_WORDS: Final = 80
"""The maximum length of a text that contains more than digits."""


CODES: Final = frozenset(
    {
        "decimal-comma", "odd-digits", "currency", "percent", "unit", "magnitude", "fraction", "hex-number", "numeral",
        "emphasis",
    }
)  # fmt: skip
"""Codes of amounts, in addition to those of `FORMS`."""


class Amount(NamedTuple):
    """A number: its digits as in JSON, and the codes of its written forms."""

    digits: str
    codes: tuple[str, ...] = ()

    @property
    def value(self) -> int | float:
        """The number. Integers stay `int`."""
        return float(self.digits) if set(self.digits) & set(".eE") else int(self.digits)


class Hints(NamedTuple):
    """The facts from a contract about the location of a scalar. A reply may repeat its words next to the value."""

    names: tuple[str, ...] = ()
    """The words of the field's name, in order."""
    described: frozenset[str] = frozenset()
    """The words of the field's title and description."""
    most: float | None = None
    """The largest number allowed."""
    spelled: bool = False
    """Whether the number may be in words: in a declared field, not in a list or a map, which may hold any words."""


NO_HINTS: Final = Hints()

# One kind of unit per line: names of fields that imply it (and are not written after a number), then its words.
# Languages: English, German, French, Spanish, Italian, Portuguese, Dutch, Chinese, Japanese.
_UNIT_LINES: Final = """
: ns nanosecond nanoseconds nanosekunden
: us µs μs microsecond microseconds mikrosekunden
: ms msec millis millisecond milliseconds millisekunden milisegundos
: s sec secs second seconds sek sekunde sekunden seconde secondes segundo segundos secondo secondi 秒
: m min mins minute minutes minuten minuto minutos minuti 分 分钟 分間
: h hr hrs hour hours std stunde stunden heure heures hora horas ora ore uur 小时 時間
: d day days tag tage tagen jour jours día días dia dias giorno giorni dag dagen 天 日
: wk wks week weeks woche wochen semaine semaines semana semanas settimana settimane 周 週間
: month months mo mos monat monate monaten mois mes meses mese mesi 个月 ヶ月
age: y yr yrs year years yearold yearsold jahr jahre jahren jahrealt an ans año años anno anni ano anos jaar 岁 歳 年
: mcg ug µg μg microgram micrograms mikrogramm microgramme microgrammes
: mg milligram milligrams milligramm milligramme milligrammes miligramo miligramos 毫克
: g gr gram grams gramm gramme grammes gramo gramos grammo grammi 克
: kg kgs kilo kilos kilogram kilograms kilogramm kilogramme kilogrammes kilogramo kilogramos 公斤 千克
: t tonne tonnes tonnen
: lb lbs pound pounds
: oz ounce ounces
: mm millimeter millimeters millimetre millimetres
: cm centimeter centimeters centimetre centimetres zentimeter 厘米
: m meter meters metre metres metro metros mètre mètres 米
: km kms kilometer kilometers kilometre kilometres kilómetro kilómetros kilomètre kilomètres 公里 千米
: in inch inches zoll
: ft foot feet
: yd yard yards
: mi mile miles meilen
: ml milliliter milliliters millilitre millilitres 毫升
: cl centiliter centilitre
: l liter liters litre litres litro litros 升
: m2 sqm qm
: sqft ft2
: ha hectare hectares hektar
: c celsius degc degreescelsius
: f fahrenheit degf degreesfahrenheit
: kelvin
: kmh kph
: mph
: b byte bytes
: kb kilobyte kilobytes
: mb megabyte megabytes
: gb gigabyte gigabytes
: tb terabyte terabytes
: kib
: mib
: gib
: hz
: khz
: mhz
: ghz
: w watt watts
: kw kilowatt kilowatts
: kwh
: kn knot knots nudos nœuds knoten
: v volt volts
: kcal
: kj
: bpm
: mmhg
: px pixel pixels
: cent cents
angle heading latitude longitude lat lon lng: deg degree degrees grad
quantity qty count stock menge anzahl quantité cantidad: pc pcs piece pieces item items unit units x × ea each
quantity qty count stock menge anzahl quantité cantidad: stk stück pièce pièces pieza piezas unidad unidades 个 件 個
servings serves portions yield: serving servings portion portions person persons people pax portionen personen
servings serves portions yield: personnes porciones personas porzioni persone 人 人分
rating stars: star stars ★ ⭐ sterne étoile étoiles estrella estrellas stelle
"""
_RATES: Final = {
    "bpm": ("beats", "minute"), "rpm": ("revolutions", "minute"), "fps": ("frames", "second"), "dpi": ("dots", "inch"),
    "ppm": ("parts", "million"), "mph": ("miles", "hour"), "kph": ("km", "hour"), "kmh": ("km", "hour"),
}  # fmt: skip
"""Abbreviations of rates."""
_PER: Final = expression(r"\s*/\s*| (?:per|pro|par|por|al?) ")
_PERS: Final = frozenset(("per", "pro", "par", "por"))
_GROUPS: dict[str, set[str]] = {}
_MEANT_BY: dict[str, set[str]] = {}
for _line in _UNIT_LINES.strip().splitlines():
    _names, _, _said = _line.partition(":")
    _group = (_names.split() or _said.split())[0] if _names.strip() else " ".join(_said.split()[:2])
    for _word in _said.split():
        _GROUPS.setdefault(fold(_word) or _word, set()).add(_group)
    for _word in _names.split():
        _MEANT_BY.setdefault(fold(_word), set()).add(_group)
_COUNTS: Final = frozenset(("count", "number", "num", "total", "qty", "quantity", "anzahl"))
_COUNTED: Final = frozenset(("quantity", "servings", "rating"))
"""Kinds of unit whose words mean something else if another word follows: `unit_price`, `item_weight`."""
_LIMITS: Final = frozenset(("min", "max", "minimum", "maximum"))
_SHORT: Final = 3
"""Single letters that mean a unit only at the end of a name: `dose_mg`, not `in_stock`."""

_CURRENCY_LINES: Final = """
usd: $ us$ usd dollar dollars usdollars
eur: € eur euro euros
gbp: £ gbp
jpy: ¥ ￥ jpy yen 円
cny: cny rmb 元
inr: ₹ inr rs rs.
chf: chf fr. sfr.
cad: cad ca$ c$
aud: aud a$ au$
brl: brl r$
pln: pln zł
czk: czk kč
krw: krw ₩
try: try ₺
rub: rub ₽
ils: ils ₪
thb: thb ฿
php: php ₱
vnd: vnd ₫
uah: uah ₴
ngn: ngn ₦
sek: sek
nok: nok
dkk: dkk
huf: huf
mxn: mxn
nzd: nzd
"""
_ALSO_WORDS: Final = frozenset(("try", "php"))
"""Codes of currencies that a description may use as words."""
_NUMBER_SIGNS: Final = frozenset(("#", "№"))
_SIGNS: Final = {
    sign: name
    for name, signs in (line.split(":") for line in _CURRENCY_LINES.split("\n") if line)
    for sign in signs.split()
}
_PERCENT: Final = frozenset(
    ["%", "％", "٪", "percent", "pct", "prozent", "pourcent", "porciento", "porcento", "percento", "procent"]
)
_IN_PERCENT: Final = frozenset(["percent", "percentage", "pct", "prozent", "pourcentage", "porcentaje", "percentuale"])
_SHARES: Final = frozenset(["fraction", "decimal", "ratio", "proportion", "anteil", "bruchteil"])
"""Words of a description that speaks of percent, but asks for a number between 0 and 1."""
_FULL: Final = 100
_MULTIPLE_LINES: Final = """
1_000: k K thousand Tsd. tausend mille
1_000_000: M mn mio mio. Mio Mio. million millions Millionen millones
1_000_000_000: bn billion Mrd. Milliarden milliards
"""
_MULTIPLES: Final = {
    word: int(times)
    for times, words in (line.split(":") for line in _MULTIPLE_LINES.split("\n") if line)
    for word in words.split()
}
"""Words that multiply. `m` and `B` are excluded because they could be meters, minutes or bytes."""
_OUT_OF: Final = expression(r"\s*(?:/|out of|of|von|sur|de|su)\s*(5|10|100)\Z")
_HALVES: Final = frozenset({2, 3, 4, 8, 16})
"""Denominators of common written fractions; `4/5` could as well be a score."""
_FRACTION: Final = expression(r"(?:(\d{1,6})[ -])?(\d{1,2})/(\d{1,2})\Z", re.A)
_VULGAR: Final = expression(r"(\d{0,6}) ?([½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞])\Z")

_TEXT: Final = expression(
    r"([+-]?) ?([^\d.,+-]{0,40}?) ?([+-]?)((?:\d|[.,](?=\d))(?:[\d.,_'’]| (?=\d))*)(.{0,40})\Z", re.A
)
_HEX: Final = expression(r"[+-]?0[xX][0-9a-fA-F]+\Z")
_SPACES: Final = dict.fromkeys(map(ord, "\u00a0\u2007\u2009\u202f\u2002\u2003\u2005\u2006\u200a\u3000"), " ")
_ODD: Final = {ord(c): to for c, to in zip("−﹣－＋．，٫٬’＇", "---+.,.,''", strict=True)}
_DASH: Final = expression(r"–(?=\d)")

_PLAIN: Final = expression(r"(?:0|[1-9]\d*)(?:\.\d+)?\Z", re.A)
FORMS: Final = (
    (expression(r"\d+\.\Z|\.\d+\Z", re.A), "", ("loose-number",)),
    (expression(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?\Z", re.A), ",", ("digit-groups",)),
    (expression(r"[1-9]\d?(?:,\d{2})+,\d{3}(?:\.\d+)?\Z", re.A), ",", ("digit-groups",)),
    (expression(r"[1-9]\d{0,2}(?:\.\d{3})+(?:,\d+|\.\d{3})\Z", re.A), ".", ("digit-groups",)),
    (expression(r"[1-9]\d{0,2}(?:([ '’])\d{3})(?:\1\d{3})*(?:[.,]\d+)?\Z", re.A), " '’", ("digit-groups",)),
    (expression(r"\d+(?:_\d+)+(?:\.\d+)?\Z", re.A), "_", ("digit-groups",)),
    (expression(r"(?:0|[1-9]\d*),\d+\Z", re.A), "", ()),
    (expression(r"0\d+(?:\.\d+)?\Z", re.A), "", ("leading-zeros",)),
)
"""Formats of digits: the separators to drop, and the codes. A comma that remains is a decimal comma."""
_THOUSAND_OR_POINT: Final = expression(r"[1-9]\d{0,2}[.,]\d{3}\Z", re.A)
_DECIMAL_COMMA_WORDS: Final = (
    "altezza altura au aus aux ağırlık bedrag betrag breite cantidad cena coste costo coût custo das de del "
    "della delle dem den der des di du een el et fiyat fläche für gewicht gli hauteur het hoogte höhe il "
    "im importe kosten kwota la las le lengte les lo longitud longueur los lunghezza länge menge mit montant "
    "nach para poids por precio preis prezzo preço prijs prix quantidade quantità quantité "
    "summe superficie sur tutar umsatz und valeur van von voor waga wert wysokość y вес высота сумма цена"
)
_DECIMAL_COMMA: Final = frozenset(_DECIMAL_COMMA_WORDS.split())
"""Words of names and descriptions in languages that write 1.5 as `1,5`, so that `1.250` and `1,250` mean two things."""
_NO_CENTS: Final = expression(r"(?<=\d)[.,] ?[-–—](?!\d)")
"""A price without cents: `5,- €`."""
_LABEL: Final = expression(
    r"(?:[-*•] )?[*_]{0,3}([^\W\d_][\w ]{0,40}?)"
    r"(?:[*_]{0,3} ?[:=：][*_]*| [–—-](?= )| (?:is|ist|lautet|beträgt|est|es|è|é|jest)(?=[ :：]))[ :：]{0,4}(.+)\Z"
)


def read_amount(raw: str, hints: Hints = NO_HINTS) -> Amount | None:
    """Return the one number in a text, or None."""
    text = raw.strip()
    if len(text) > MAX_DIGITS:
        return None
    if (plain := read_number(text)) is not None and not _is_thousand_or_point(text, hints):
        return Amount(text.replace(",", "").lstrip("+").removesuffix("."), (plain.code,) if plain.code else ())
    if _HEX.match(text):
        return Amount(str(int(text, 16)), ("hex-number",))
    if hints.spelled and text[:1].isalpha() and (number := number_in_words(text)) is not None:
        return Amount(str(number), ("numeral",))
    text, codes = _normalize_digits(text)
    if _is_thousand_or_point(text, hints):
        return None
    if len(text) > _MAX_WORDS and _PLAIN.match(text.lstrip("+-")) is None:
        return None
    for mark in ("**", "__", "`", "*", '"', "'"):
        if text.startswith(mark) and text.endswith(mark) and len(text) > 2 * len(mark):
            text, codes = text[len(mark) : -len(mark)].strip(), (*codes, "emphasis")
    label = _LABEL.match(text)
    if label is not None and hints.names and fold(label[1]) == "".join(hints.names):
        text, codes = label[2], (*codes, "emphasis")
    found = _fraction(text, hints) or _amount(_NO_CENTS.sub("", text), hints)
    if found is None or not isfinite(float(found.digits)):
        return None
    return Amount(found.digits, (*codes, *found.codes))


def _is_thousand_or_point(text: str, hints: Hints) -> bool:
    """Return whether digits mean two numbers in the language of the field: `1.250` in German."""
    return _THOUSAND_OR_POINT.match(text) is not None and not _DECIMAL_COMMA.isdisjoint(
        hints.described.union(hints.names)
    )


def announced(text: str) -> str:
    """Return the value after a label or a subject that only announces it, or the text itself.

    >>> [announced(text) for text in ("The answer is 17.", "Total: 17", "Error: 17")]
    ['17', '17', 'Error: 17']
    """
    label = _LABEL.match(text)
    return label[2].strip().rstrip(".").strip("*_` ") if label is not None and announces(label[1]) else text


def announces(label: str) -> bool:
    """Return whether a label says only that an answer follows: `The answer`, `Here is the total price:`."""
    words = set(name_words(label)) - _GLUE - _HERE
    return label == "A" or (bool(words) and words <= _ANNOUNCING_AMOUNTS)  # `A: 7`, after a question


def _normalize_digits(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the text with ASCII digits, signs, points and spaces."""
    if text.isascii():
        return text, ()
    spaced = _DASH.sub("-", text.translate(_SPACES)) if text.startswith("–") else text.translate(_SPACES)
    out = spaced.translate(_ODD)
    if not out.isascii():
        out = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in out)
    return out.strip(), ("odd-digits",) if out != text.translate(_SPACES).translate({0x2019: "'"}) else ()


def _amount(text: str, hints: Hints) -> Amount | None:
    match = _TEXT.match(text)
    if match is None:
        return None
    sign, before, inner_sign, body, after = match.groups()
    if (
        (sign == "-" and text[1:2] == " ")
        or (sign and inner_sign)
        or (inner_sign and _without_spaces(before) not in _SIGNS)
    ):
        return None
    read = _digits(body.strip())
    behind = _behind(before.strip(), after, hints) if read is not None else None
    if read is None or behind is None:
        return None
    if behind.codes and "." in body and _THOUSAND_OR_POINT.match(body):
        return None  # `€1.200` is 1200 in some countries and 1.2 in others
    digits = f"{'-' if '-' in (sign, inner_sign) else ''}{read.digits}"
    if behind.factor != 1:
        digits = format(Decimal(digits) * behind.factor, "f")
        digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
    return Amount(digits, (*behind.codes, *read.codes))


def _digits(body: str) -> Amount | None:
    if _PLAIN.match(body):
        return Amount(body)
    for form, dropped, codes in FORMS:
        if form.match(body):
            bare = body.translate(dict.fromkeys(map(ord, dropped)))
            comma = ("decimal-comma",) if "," in bare else ()
            whole, point, part = bare.replace(",", ".").partition(".")
            return Amount(f"{whole.lstrip('0') or '0'}{point if part else ''}{part}", (*codes, *comma))
    return None


class _Behind(NamedTuple):
    """The effect of the words around the digits."""

    codes: tuple[str, ...] = ()
    factor: Decimal = Decimal(1)


def _behind(before: str, after: str, hints: Hints) -> _Behind | None:
    """Return the effect of the words around the digits, or None if they could change the meaning."""
    codes: list[str] = []
    factor = Decimal(1)
    lead, rest = _without_spaces(before), after.strip()
    units = _units_of(hints)
    if lead in _SIGNS:
        if not _is_currency(_SIGNS[lead], units, hints):
            return None
        codes.append("currency")
    elif lead in _NUMBER_SIGNS and not units:
        codes.append("emphasis")
    elif lead and not (lead in ("serves", "x") and _fits(lead, units)):
        return None
    elif lead:
        codes.append("unit")
    word, _, more = rest.partition(" ")
    times = _MULTIPLES.get(word) or _MULTIPLES.get(word.casefold() if len(word) > 1 else "")
    if times is not None and units <= _COUNTED:
        factor, rest = factor * times, more.strip()
        codes.append("magnitude")
    if not rest:
        return _Behind(tuple(codes), factor)
    if codes[:1] in (["currency"], ["unit"]) and _without_spaces(rest) not in _SIGNS:
        return None
    return _suffix(rest, codes, factor, units, hints)


def _suffix(rest: str, codes: list[str], factor: Decimal, units: frozenset[str], hints: Hints) -> _Behind | None:
    word = _without_spaces(rest)
    if word in _SIGNS:
        if not _is_currency(_SIGNS[word], units, hints):
            return None
        return _Behind((*(code for code in codes if code != "currency"), "currency"), factor)
    if word in _PERCENT:
        if hints.most is not None and hints.most <= 1:
            return _Behind((*codes, "percent"), factor / _FULL)
        described = _IN_PERCENT & hints.described and _SHARES.isdisjoint(hints.described.union(hints.names))
        percents = _IN_PERCENT.intersection(hints.names) or described
        return _Behind((*codes, "percent"), factor) if percents or hints.most == _FULL else None
    if "magnitude" in codes:
        return None
    marks = _OUT_OF.match(f" {rest}")
    if marks is not None:
        top = int(marks[1])
        fits = hints.most == top if hints.most is not None else bool({"rating", "stars"}.intersection(hints.names))
        return _Behind((*codes, "unit")) if fits else None
    key = fold(rest) if rest not in ("°", "★", "⭐", "×") else {"°": "deg"}.get(rest, rest)
    if not re.fullmatch(r"[^\d+<>~%!?=,;:]{1,30}", rest) or not key:
        return None
    fits = _fits(key, units) or _is_own_name(key, hints.names) or _is_rate(rest, hints)
    return _Behind((*codes, "unit")) if fits else None


def _is_rate(unit: str, hints: Hints) -> bool:
    """Return whether a unit is the rate that the field is in, by its name or description: `t/ha` for `yield_t_per_ha`,
    and `bpm` for "beats per minute".
    """
    parts = _RATES.get(unit.casefold()) or tuple(part.strip() for part in _PER.split(unit.casefold()))
    if len(parts) != len(("what", "per what")):
        return False
    words: tuple[AbstractSet[str], AbstractSet[str]]
    if "per" in hints.names[1:-1]:
        at = hints.names.index("per", 1)
        words = ({hints.names[at - 1]}, {hints.names[at + 1]})
    elif not _PERS.isdisjoint(hints.described):
        words = (hints.described, hints.described)
    else:
        return False
    return all(_is_in(part, among) for part, among in zip(parts, words, strict=True))


def _is_in(unit: str, words: AbstractSet[str]) -> bool:
    """Return whether a unit, or another word for it, is among these words."""
    groups = _GROUPS.get(fold(unit), set())
    return any(_stem(word) == _stem(unit) or not groups.isdisjoint(_GROUPS.get(word, ())) for word in words)


def _without_spaces(words: str) -> str:
    return "".join(words.casefold().split())


def _units_of(hints: Hints) -> frozenset[str]:
    """Return the kinds of unit in the name of a field, or else in its description. The set is empty if there are none
    or several.
    """
    names = hints.names
    found: list[set[str]] = []
    for at, word in enumerate(names):
        last = at == len(names) - 1 and at > 0
        if word in _MEANT_BY:
            found.append(_MEANT_BY[word])
        elif word in _GROUPS and (last or (len(word) > _SHORT and not _GROUPS[word] & _COUNTED)):
            found.append(_GROUPS[word])
    if "per" in names:
        return frozenset({"per"})
    if found:
        return _intersection(found) or frozenset({"several"})
    return _intersection([_GROUPS[word] for word in hints.described if len(word) > _SHORT and word in _GROUPS])


def _intersection(groups: list[set[str]]) -> frozenset[str]:
    """Return the intersection of these sets."""
    return frozenset(groups[0].intersection(*groups[1:])) if groups else frozenset()


def _fits(word: str, units: frozenset[str]) -> bool:
    word = "serving" if word == "serves" else word
    return not units.isdisjoint(_GROUPS.get(word, ()))


def _is_own_name(word: str, names: tuple[str, ...]) -> bool:
    """Return whether a unit names the things that the field counts: `3 retries` for `retries`, or `12 pages`
    for `page_count`.
    """
    if not names or word in _LIMITS:
        return False
    counted = names[-2:-1] if names[-1] in _COUNTS else ()
    spelled = {names[-1], *counted, "".join(names[-2:]), "".join(names[-3:])}
    return _stem(word) in {_stem(name) for name in spelled}


def _stem(word: str) -> str:
    if word.endswith("ies") and len(word) > len("ties"):
        return f"{word[:-3]}y"
    return word.removesuffix("s") if len(word) > _SHORT else word


def _is_currency(sign: str, units: frozenset[str], hints: Hints) -> bool:
    """Return whether an amount in this currency is allowed here: neither the name nor the description states only
    others. In a price for each unit (`price_per_kg`, "per person"), one of them must state it.
    """
    names, described = hints.names, hints.described
    if not _CENTS.isdisjoint(described.union(names)):
        return False
    named = {_SIGNS[word] for word in names if word in _SIGNS}
    named = named or {_SIGNS[word] for word in described if word in _SIGNS and word not in _ALSO_WORDS}
    if not units or "per" in names:
        return sign in named or not (named or units)
    own = bool(_units_of(hints._replace(described=frozenset()))) or not _GROUPS.keys().isdisjoint(names[-1:])
    return sign in named and not own and (units <= _COUNTED or not _PERS.isdisjoint(described))


_CENTS: Final = frozenset(("cent", "cents", "eurocent", "eurocents", "pence", "centimes", "centavos"))


def other_unit(words: AbstractSet[str], unit: str) -> bool:
    """Return whether amounts in this unit contradict the words of the names and values around them, all in lower case.

    >>> [other_unit({"price", "usd"}, unit) for unit in ("euros", "dollars", "cents")]
    [True, False, True]
    """
    if unit in _SCALES:
        return words.isdisjoint((unit, unit[:-1]))
    if unit not in _SIGNS:
        return False
    currencies = {_SIGNS[word] for word in words & _SIGNS.keys()}
    return bool(currencies) and _SIGNS[unit] not in currencies


def in_other_unit(name: str, unit: str) -> bool:
    """Return whether a unit measures what a field does, but is not the one in its name.

    >>> [in_other_unit("duration_hours", unit) for unit in ("minutes", "hours", "km")]
    [True, False, False]
    """
    units, said = _units_of(Hints(tuple(name_words(name)))), _GROUPS.get(fold(unit), set[str]())
    if not units or not said or not units.isdisjoint(said):
        return False
    return any(not (kind.isdisjoint(units) or kind.isdisjoint(said)) for kind in _QUANTITIES)


_QUANTITIES: Final = tuple(
    frozenset[str]().union(*(_GROUPS[unit] for unit in units.split()))
    for units in (
        "ns us ms s min h d wk month y", "mcg mg g kg t lb oz", "mm cm m km in ft yd mi", "ml cl l", "m2 sqft ha",
        "c f kelvin", "kmh mph kn", "b kb mb gb tb",
    )
)  # fmt: skip
"""The units of time, mass, length, volume, area, temperature, speed and data."""


def conflict_in(text: str, name: str) -> str | None:
    """Return the conflict of a key or an amount with the name of a field, in words, or None.

    >>> conflict_in("2 hours", "duration_minutes")
    "it is in a different unit from 'duration_minutes': convert it"
    >>> conflict_in("$5", "cost_eur")
    "it is in a different currency from 'cost_eur': use an amount that is stated in it"
    >>> conflict_in("5 cents", "cost_eur")
    "it is in a different unit from 'cost_eur': convert it"
    >>> conflict_in("5 EUR", "cost_eur")
    """
    named = {*name_words(name)}
    for word in _NOT_IN_UNIT.split(text[:_MAX_TEXT].casefold()):
        if word and word not in named and is_unit(word):
            if in_other_unit(name, word) or (word in _CENTS and other_unit(named, word)):
                return f"it is in a different unit from {name!r}: convert it"
            if other_unit(named, word):
                return f"it is in a different currency from {name!r}: use an amount that is stated in it"
    return None


_NOT_IN_UNIT: Final = expression(r"[\s\d_.,:;'\"()-]+")


def is_unit(word: str) -> bool:
    """Return whether a word is a unit that some field may have."""
    key = word.casefold()
    return key in _SIGNS or key in _PERCENT or (key != "in" and fold(word) in _GROUPS)


_SCALES: Final = frozenset(("hundreds", "thousands", "millions", "billions", "cents"))


def contradicts_currency(amount: str, key: str, said: object) -> bool:
    """Return whether the value of a currency field contradicts the currency of an amount: `€12.50` and `USD`, or null.

    >>> [contradicts_currency("$5", key, "EUR") for key in ("currency", "city")]
    [True, False]
    """
    if _CURRENCY_KEYS.isdisjoint(name_words(key)) or not (said is None or isinstance(said, str)):
        return False
    named = _SIGNS.get(_without_spaces(said or "").strip("."))
    if said and named is None:
        return False
    signs = {sign: _SIGNS[sign] for part in _NO_SIGN.split(amount) if (sign := _without_spaces(part)) in _SIGNS}
    return any(name != named and named not in _SHARED_SIGNS.get(sign, ()) for sign, name in signs.items())


_CURRENCY_KEYS: Final = frozenset(("currency", "währung", "waehrung", "devise", "moneda", "divisa", "valuta", "moeda"))
_NO_SIGN: Final = expression(r"[\d.,'’\"+_-]+")
_SHARED_SIGNS: Final = {"$": ("cad", "aud", "nzd", "mxn"), "¥": ("cny",), "￥": ("cny",)}
"""Signs of several currencies."""


def _fraction(text: str, hints: Hints) -> Amount | None:
    vulgar = _VULGAR.match(text)
    if vulgar is not None:
        part = Fraction(unicodedata.numeric(vulgar[2])).limit_denominator(16)
        return _as_amount(int(vulgar[1] or 0) + part)
    match = _FRACTION.match(text)
    if match is None:
        return None
    part = Fraction(int(match[2]), int(match[3]) or 1)
    lowest = part.denominator == int(match[3]) and part.denominator in _HALVES and part < 1
    marks = hints.most is not None and hints.most > 1
    if (
        not lowest
        or marks
        or "servings" in _units_of(hints)  # `3/4` persons are three or four
        or {"rating", "stars", "score", "grade", "mark", "date", *_IN_PERCENT}.intersection(hints.names)
    ):
        return None
    return _as_amount(int(match[1] or 0) + part)


def _as_amount(number: Fraction) -> Amount:
    return Amount(repr(float(number)), ("fraction",))


# --- dates, times and durations ---------------------------------------------------------------------------------------


class Time(NamedTuple):
    """The ISO form, and the code of the repair; the code is empty if the text was already in that form."""

    iso: str
    code: str


_MONTH_LINES: Final = """
january jan januar jänner janvier janv enero ene gennaio gen janeiro januari januar январь января stycznia ocak
february feb februar févr février fév febrero febbraio fevereiro fev februari февраль февраля lutego şubat
march mar märz mrz mär mars marzo março maart mrt март марта marca mart
april apr avril avr abril abr aprile апрель апреля kwietnia nisan
may mai mayo maggio mag maio mei май мая maj maja mayıs
june jun juni juin junio giugno giu junho июнь июня czerwca haziran
july jul juli juil juillet julio luglio lug julho июль июля lipca temmuz
august aug août aout agosto ago augustus август августа augusti sierpnia ağustos
september sep sept septembre septiembre settembre set setembro сентябрь сентября września eylül
october oct oktober okt octobre octubre ottobre ott outubro out октябрь октября października ekim
november nov novembre noviembre novembro ноябрь ноября kasım
december dec dezember dez décembre déc diciembre dic dicembre dezembro декабрь декабря grudnia aralık
"""
"""English, German, French, Spanish, Italian, Portuguese, Dutch, Russian, Swedish, Polish, Turkish. Polish `listopad` is
October in Croatian.
"""
MONTHS: Final = {
    word: number for number, line in enumerate(_MONTH_LINES.strip().splitlines(), 1) for word in line.split()
}
_MONTH_FIELDS: Final = frozenset(
    map(fold, ("month", "monat", "mois", "mes", "mese", "maand", "månad", "miesiąc", "месяц"))
)
_IN_A_YEAR: Final = 12
_ZERO: Final = frozenset(("0", "zero"))


def read_month(text: str, hints: Hints) -> int | None:
    """Return the number of a month in words, if the name or description of its field asks for a month, counted from 1.

    >>> [read_month("août", Hints(("month",), most=most)) for most in (None, 12, 11)]
    [8, 8, None]
    """
    words = hints.described.union(hints.names)
    asks = hints.most in (None, _IN_A_YEAR) and _ZERO.isdisjoint(words)
    return MONTHS.get(text.casefold().rstrip(".")) if asks and not _MONTH_FIELDS.isdisjoint(words) else None


_DAY_LINES: Final = """
monday mon montag lundi lunes lunedì maandag понедельник 月 月曜日 星期一 周一
tuesday tue tues dienstag mardi martes martedì dinsdag вторник 火 火曜日 星期二 周二
wednesday wed mittwoch mercredi miércoles mercoledì woensdag среда 水 水曜日 星期三 周三
thursday thu thur thurs donnerstag jeudi jueves giovedì donderdag четверг 木 木曜日 星期四 周四
friday fri freitag vendredi viernes venerdì vrijdag пятница 金 金曜日 星期五 周五
saturday sat samstag sonnabend samedi sábado sabato zaterdag суббота 土 土曜日 星期六 周六
sunday sun sonntag dimanche domingo domenica zondag воскресенье 日 日曜日 星期日 周日
"""
_WEEKDAYS: Final = {
    word: number for number, line in enumerate(_DAY_LINES.strip().splitlines()) for word in line.split()
}
_LEAST_YEAR: Final = 1000
_WEEKDAY_BEHIND: Final = expression(r"(.*\d\S{0,2}?)(?:,? +([^\W\d]+)| ?\(([^\W\d]+)\.?\))\Z")
"""A day, then its weekday: `2025-11-03 (Monday)`."""
_FACE: Final = 12
"""Hours on a 12-hour clock."""

_DAY_MONTH: Final = expression(
    r"(\d{1,2})(?:\.|st|nd|rd|th|er|º|ª|°)?[ -]*(?:of |de |di )?([^\W\d]+)\.?,?[ -]*(?:of |de |del |di )?(\d{4})\Z"
)
_FORMS: Final = (
    (_DAY_MONTH, 3, 2, 1),  # 3rd of May 2024, 3. Mai 2024, 3 de mayo de 2024
    (expression(r"([^\W\d]+)\.? *(\d{1,2})(?:st|nd|rd|th)?(?:, *| +)(\d{4})\Z"), 3, 1, 2),  # May 3rd, 2024
    (expression(r"(\d{4}) *,? *([^\W\d]+)\.? +(\d{1,2})(?:st|nd|rd|th)?\Z"), 1, 2, 3),  # 2024 May 3
    (expression(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})\Z"), 1, 3, 4),  # 2024-5-3
    (expression(r"(\d{4}) ?[年년] ?(\d{1,2}) ?[月월] ?(\d{1,2}) ?[日일]\Z"), 1, 2, 3),  # 2024年5月3日
)
"""Formats of a day, and the groups of year, month and day."""
_YEAR_LAST: Final = expression(r"(\d{1,2})([-/.]) ?(\d{1,2})\2 ?(\d{4})\Z")
_COMPACT: Final = expression(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)?(Z|[+-]\d\d:?\d\d)?\Z")
_CLOCK: Final = expression(
    r"T?(?P<h>\d{1,2})(?:(?:[:.]| ?h ?|時)(?P<m>\d\d)(?:[:.](?P<s>\d\d)(?P<f>\.\d{1,6})?)?[h分]?|h)?"
    r" *(?P<half>[ap]\.?m\.?)?(?: *(?:Uhr|o'clock))?"
    r"(?: *(?P<zone>Z|UTC|GMT|(?:(?:UTC|GMT) *)?[+-]\d\d:?\d\d)(?:\[[\w/+-]+\])?)?\Z",
    re.I,
)
_TWO_PARTS: Final = expression(
    r"(.*?\d{4}(?:-\d\d-\d\d)?|\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|.*\d{1,2}日)"
    r"(?:T| *, *| +(?:at |um |à |a las )?| *(?=\d))(\d{1,2}(?:[:h].*| *[ap]\.?m.*|h))\Z",
    re.I,
)
_DAYS: Final = expression(r"\d+ *d(?:ays?)?\Z", re.I | re.A)
"""A duration that validators can parse."""
_LENGTH: Final = expression(r"(\d{1,9}(?:[.,]\d{1,6})?) *([^\W\d]+)\.? *,? *(?:(?:and|und|et|y|e) )?")
_LOOKALIKES: Final = {
    **dict.fromkeys((0x2010, 0x2011, 0x2012, 0x2013, 0x2212), "-"),
    **dict.fromkeys((0xA0, 0x202F, 0x2009, 0x3000), " "),
}
_MAX: Final = 80


_BEFORE_TIME: Final = expression(
    r"(?:(?:date|day|time|datum|fecha|日期|日付) ?[:：] ?|(?:on|at|am|der|den|le|el|il|um|à) )", re.I
)
_AROUND_TIME: Final = "*_`\"'“”,;. "
"""Emphasis, quotes and a final period around a date or a time."""


def read_time(text: str, form: str, *, exact: bool = False) -> Time | None:
    """Return the ISO form of a written date, time or duration (`form` as in JSON Schema), or None
    if it is ambiguous.

    `exact` means that the validator accepts only the form of RFC 3339, as that of a JSON Schema does; pydantic also
    reads `2026-05-04 10:00Z`.
    """
    found = _read_time(text, form)
    match = _LOOSE.match(found.iso) if exact and found is not None and form in ("date-time", "time") else None
    if found is None or match is None or (match["day"] is None) == (form == "date-time"):
        return found
    day, second, zone = match["day"], match["s"] or ":00", match["zone"]
    zone = f"{zone[:3]}:{zone[3:].lstrip(':')}" if len(zone) > 1 else zone
    if not _exists(f"{day or '2000-01-01'}T{match['clock']}{second[:3]}"):
        return found
    iso = f"{day}T" * (day is not None) + match["clock"] + second.replace(",", ".") + zone
    code = found.code if found.code else "iso-form"
    return found if iso.upper() == found.iso.upper() else Time(iso, code)


def _exists(iso: str) -> bool:
    """Return whether this day and time are in the calendar and on the clock."""
    try:
        datetime.fromisoformat(iso)
    except ValueError:
        return False
    return True


def _read_time(text: str, form: str) -> Time | None:
    if is_misread(text, form):
        return None
    if len(text) > _MAX:
        return Time(text, "")
    plain = text.strip()
    if not plain.isascii():
        plain = unicodedata.normalize("NFKC", plain.translate(_LOOKALIKES)).translate(_LOOKALIKES).strip()
        plain = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in plain)
    code = "written-date" if form.startswith("date") else "written-time"
    bare = plain.strip(_AROUND_TIME)
    label = None if form == "duration" else _BEFORE_TIME.match(bare)
    bare = bare[label.end() :] if label else bare
    if bare != plain and is_misread(bare, form):
        return None
    found = _READERS[form](bare) or (bare if bare != plain and _is_iso(bare, form) else None)
    if found is not None and found != text:
        return Time(found, code)
    return Time(plain, code) if plain != text and not is_misread(plain, form) else Time(text, "")


MOMENT: Final = (
    r"(?:datetime\.)?(?P<kind>date(?:time)?)\((?P<parts>\d{1,4}(?:,[ ]?\d{1,6}){2,6})"
    r"(?P<utc>,[ ]?tzinfo=(?:(?:datetime\.)?(?:timezone\.utc|UTC)|<UTC>|TzInfo\((?:UTC|0)\)"
    r"|ZoneInfo\([\"'](?:\w+/)?UTC[\"']\)))?\)"
)
"""A date or a time as Python shows it: `datetime.datetime(2026, 3, 1, 9, 5, tzinfo=datetime.timezone.utc)`."""


def iso_moment(found: re.Match[str]) -> str | None:
    """Return the ISO form of a match of `MOMENT`, or None if there is no such date.

    >>> iso_moment(re.match(MOMENT, "datetime.date(2026, 3, 1)"))
    '2026-03-01'
    """
    parts = [int(part) for part in found["parts"].split(",")]
    year, month, day, hour, minute, second, micro = [*parts, 0, 0, 0, 0][:7]
    zone = UTC if found["utc"] else None
    try:
        moment = datetime(year, month, day, hour, minute, second, micro, zone)
    except ValueError:
        return None
    is_date = found["kind"] == "date" and len(parts) == 3
    return moment.date().isoformat() if is_date else moment.isoformat()


def _date(text: str) -> str | None:
    """Return the ISO form of a written date, or None if it is not a date or could be several."""
    lowered = text.casefold()
    head, _, rest = lowered.partition(" ")
    weekday = _WEEKDAYS.get(head.rstrip(".,"))
    behind = _WEEKDAY_BEHIND.match(lowered) if weekday is None else None
    if weekday is not None and rest:
        lowered = rest.removeprefix("the ").removeprefix("le ").removeprefix("den ").strip()
    elif behind is not None and (behind[2] or behind[3]) in _WEEKDAYS:
        lowered, weekday = behind[1], _WEEKDAYS[behind[2] or behind[3]]
    found = _day_of(lowered.removeprefix("the ").removesuffix(" г."))
    if found is None or (weekday is not None and found.weekday() != weekday):
        return None
    return found.isoformat()


def _day_of(text: str) -> date | None:
    for form, year, month, day in _FORMS:
        if match := form.match(text):
            named = match[month]
            return _make_date(match[year], int(named) if named.isdecimal() else MONTHS.get(named), match[day])
    if match := _YEAR_LAST.match(text):
        first, second = int(match[1]), int(match[3])
        if match[2] == ".":  # dates with dots never put the month first
            return _make_date(match[4], second, first)
        days = {_make_date(match[4], second, first), _make_date(match[4], first, second)} - {None}
        return days.pop() if len(days) == 1 else None
    return None


def _make_date(year: str | int, month: int | None, day: str | int) -> date | None:
    if month is None or int(year) < _LEAST_YEAR:
        return None
    try:
        return date(int(year), month, int(day))
    except ValueError:
        return None


def _clock(text: str) -> str | None:
    """Return the ISO form of a time of day, with its time zone if it has one."""
    match = _CLOCK.match(text)
    if match is None or not (match["m"] or match["half"] or text.rstrip().endswith(("h", "Uhr"))):
        return None
    hour, zone = int(match["h"]), (match["zone"] or "").upper().replace(" ", "")
    if match["half"]:
        if not 1 <= hour <= _FACE:
            return None
        hour = hour % _FACE + (_FACE if match["half"][0] in "pP" else 0)
    if hour >= 2 * _FACE:
        return None
    zone = zone.removeprefix("UTC").removeprefix("GMT") or ("Z" if zone else "")
    return f"{hour:02}:{match['m'] or '00'}:{match['s'] or '00'}{match['f'] or ''}{zone}"


def _moment(text: str) -> str | None:
    if match := _COMPACT.match(text):
        day = _make_date(match[1], int(match[2]), match[3])
        time = f"{match[4]}:{match[5]}:{match[6] or '00'}{match[7] or ''}"
        return None if day is None else f"{day.isoformat()}T{time}"
    if _ISO.match(text):
        return None
    parts = _TWO_PARTS.match(text)
    if parts is None:
        return _date(text)
    day_text, clock = parts[1].rstrip(" ,"), _clock(parts[2].strip())
    iso = day_text if _ISO_DATE.match(day_text) else _date(day_text)
    return f"{iso}T{clock}" if iso and clock else None


_ISO_DATE: Final = expression(r"\d{4}-\d\d-\d\d\Z")
_ISO: Final = expression(r"\d{4}-\d\d-\d\d(?:[Tt _]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:[Zz]|[+-]\d\d:?\d\d)?)?\Z")
_MIDNIGHT: Final = expression(r"[Tt _]00:00(?::00(?:[.,]0+)?)?(?:[Zz]|[+-]\d\d:?\d\d)?\Z")
_LOOSE: Final = expression(
    r"(?:(?P<day>\d{4}-\d\d-\d\d)[Tt _])?(?P<clock>\d\d:\d\d)(?P<s>:\d\d(?:[.,]\d+)?)?(?P<zone>[Zz]|[+-]\d\d:?\d\d)\Z"
)
"""A time of day with its zone, and with or without a date, in any of the forms of ISO 8601 that pydantic reads."""
_ISO_CLOCK: Final = expression(r"\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:[Zz]|[+-]\d\d:?\d\d)?\Z")


def _day(text: str) -> str | None:
    if _ISO.match(text):
        return text[:10] if _MIDNIGHT.match(text, 10) else None
    return _date(text)


def _time_of_day(text: str) -> str | None:
    return None if _ISO_CLOCK.match(text) else _clock(text)


def _length(text: str) -> str | None:
    """Return the ISO form of a duration in weeks, days, hours, minutes and seconds, the longest unit first."""
    seconds, at, last = Decimal(0), 0, -1
    while at < len(text):
        match = _LENGTH.match(text, at)
        groups = set[str]() if match is None or match[2] == "M" else _GROUPS.get(fold(match[2]) or match[2], set())
        unit = next((unit for unit, (name, _) in enumerate(_SECONDS) if name in groups), -1)
        if match is None or unit <= last:
            return None
        seconds += Decimal(match[1].replace(",", ".")) * _SECONDS[unit][1]
        at, last = match.end(), unit
    whole = int(seconds)
    if not at or _DAYS.match(text):
        return None
    return f"PT{whole}S" if whole == seconds else f"PT{seconds.normalize():f}S"


_SECONDS: Final = (
    ("wk wks", 604_800),
    ("d day", 86_400),
    ("h hr", 3_600),
    ("m min", 60),
    ("s sec", 1),
    ("ms msec", Decimal("0.001")),
)


def _is_iso(text: str, form: str) -> bool:
    """Return whether a date or a time is in its ISO form."""
    known = {"date": _ISO_DATE, "date-time": _ISO, "time": _ISO_CLOCK}.get(form)
    return known is not None and known.match(text) is not None


_READERS: Final = {"date": _day, "date-time": _moment, "time": _time_of_day, "duration": _length}


# --- choices and booleans ---------------------------------------------------------------------------------------------

_MAX_TEXT: Final = 300


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
"""Articles, copulas and pronouns. None of them may negate or weaken in another language (so not `un`, `no`, `as` before
`low`).
"""
_ANSWER: Final = _words(
    """
    answer answers result value label class category classification choice option decision verdict output response
    prediction conclusion final finale overall chosen selected correct right best level rating type
    action recommendation
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
"""Subjects of a choice without a field."""
ANNOUNCING: Final = _ANSWER | _ABOUT
_ANNOUNCING_AMOUNTS: Final = (
    ANNOUNCING | _COUNTS | _words("price cost amount sum average mean date time day deadline datum fecha")
)
_HERE: Final = _words("here s hier voici aquí ecco")
_SOURCE: Final = expression(
    r"[\"'’”*_`.!]*\s*[(\[（,，;；–—-][\s(\[]*(?:(?:as|stated|given|written|mentioned|noted|described|reported|specified"
    r"|indicated|see|per|according|to|in|from|text|above|document|source|default|the|siehe|oben|laut|wie|angegeben|voir"
    r"|texte|ci-dessus|véase|texto|arriba)\b[\s)\]）.*_`\"']*)+\Z",
    re.I,
)
"""A remark on the source, in parentheses or after a dash: `(as stated)`, `- see text`."""
_MEMBER: Final = expression(r"(?<=[^\W\d])\.(?=[^\W\d]\w*\W*\Z)")
"""The point in the name of a Python enum's member: `Level.HIGH`."""
_UNSURE: Final = expression(r"\b(?:should|un)\b", re.I)
"""Words that state nothing of a field: a word such as `un` is an article in one language and a negation in another."""
_YES_ALONE: Final = _words(
    "yep yeah wahr vrai verdadero vero verdadeiro tak prawda evet igen kyllä áno ano правда 예 네"
)
_NO_ALONE: Final = _words("nope nah falsch faux falso nie fałsz hayır nem nej ne ложь 아니오 아니요")
"""Words that count only on their own."""
_NO_VALUE_LINES: Final = """
,-,–,—,--,null,none,nil,undefined,unknown,unspecified,missing,nothing,empty,n/a,na,n.a,#n/a,tbd,tba,not available
,not applicable,not known,not specified,not provided,not given,not stated,not mentioned,no data,no value,no info
,unbekannt,keine angabe,keine angaben,k.a,k. a,entfällt,nicht angegeben,nicht verfügbar,inconnu,inconnue
,non disponible,non renseigné,néant,desconocido,no disponible,ninguno,no aplica,sconosciuto,non disponibile
,desconhecido,não disponível,onbekend,неизвестно,нет данных,未知,不明,无,無,不适用,未提供,なし,該当なし
"""
_NO_VALUE: Final = frozenset(word.strip() for word in _NO_VALUE_LINES.split(","))
"""Words for a missing value, where null is allowed (in the languages above)."""

_SLOT: Final = expression(
    r"<[^<>]+>|\{\{.*\}\}|\$\{.*\}|\[[^\]]*\]|_{3,}"
    r"|(?i:x{3,}|todo|tbd|fixme|placeholder|(?:your|insert|enter) [\w ]{1,40} here|[\w ]{1,40} goes here)",
    re.S,
)
_TYPE_WORDS: Final = frozenset({"string", "str", "integer", "int", "float", "boolean", "bool"})
_OF_TYPES: Final = frozenset({"type", "kind", "format", "dtype", "language", "datatype", "pattern", "mask"})
"""Names of fields that may hold the name of a type."""

_TRUTHS: Final = {word: truth for truth, words in TRUTH_WORDS.items() for word in words}
_TRUE: Final = frozenset({"on", "1", "y", "t"}.union(map(fold, TRUTH_WORDS[True]))) | _YES_ALONE
_FALSE: Final = frozenset({"off", "0", "n", "f"}.union(map(fold, TRUTH_WORDS[False]))) | _NO_ALONE
_BOXES: Final = {
    **dict.fromkeys(("[x]", "[X]", "☑", "✅", "✔", "✓"), True),
    **dict.fromkeys(("[ ]", "☐", "❌", "✗", "✘"), False),
}

_JOINS: Final = " \t\r\n_-‐‑.'’/"
"""Separators that may differ inside a choice: `in-progress` for `in progress`."""
_WRAPS: Final = (("**", "**"), ("__", "__"), ("*", "*"), ("_", "_"), ("`", "`"), ('"', '"'), ("'", "'"), ("(", ")"))
_MORE_WRAPS: Final = (("[", "]"), ("“", "”"), ("„", "“"), ("‘", "’"), ("«", "»"), ("「", "」"), ("<", ">"), ("{", "}"))
_LEADS: Final = expression(r"(?:[-*•·–—]\s+|(?:👉|➡️?|✅|✔️?|☑️?|🔴|🟠|🟡|🟢|🔵|🟣|⚪|⚫|🟥|🟧|🟨|🟩|🟦|→|=>|->|:)\s*)+")
_TAGGED: Final = expression(r"<([A-Za-z][\w-]{0,30})>\s*(.*?)\s*</\1>", re.S)
_ALTERNATIVES: Final = expression(r"\w\s{0,2}\|\s{0,2}\w")
"""Words with a bar between them, as in a template: `click|type`."""


class Choice(NamedTuple):
    """The matched value and the code of the match, which is empty for an exact one."""

    value: Any
    code: str


WORD: Final = expression(r"[A-Z]+(?![^\W_A-Z\d])|[A-Z]?[^\W_A-Z\d]+|[^\W_]+?(?=[A-Z])|\d+|[^\W_]+")


def name_words(name: str) -> list[str]:
    """Return the words of a name: `dose_mg`, `doseMg` and `Dose (mg)` are `dose` and `mg`."""
    return [fold(word) for word in WORD.findall(name)]


def match_choice(value: Any, source: Any, shape: Shape, hints: Hints = NO_HINTS) -> Choice | None:
    """Return the one choice that `value` (written as `source`) means, or None if it could match none or several."""
    choices = shape.choices or ()
    for choice in choices:
        if choice == value and isinstance(choice, bool) == isinstance(value, bool):
            return Choice(choice, "")
    if value is None or isinstance(value, (dict, list)):
        return None
    if not isinstance(value, str):
        return next((Choice(choice, "number-to-string") for choice in choices if choice == source), None)
    return _match_text(value, shape, hints) or _match_other(value, choices)


def match_boolean(text: str, hints: Hints = NO_HINTS) -> bool | None:
    """Return the boolean that a string stands for as a whole word (`yes`, `off`, `[x]`), or None."""
    bare = text.strip()
    if bare in _BOXES:
        return _BOXES[bare]
    key = _key(_strip_decoration(bare))
    if key in _TRUE or key in _FALSE:
        return key in _TRUE
    return boolean_word(text, hints)


def boolean_word(text: str, hints: Hints = NO_HINTS) -> bool | None:
    """Return the boolean stated in a sentence whose other words are all neutral."""
    about_it = hints._replace(names=(*hints.names, "that", "thats"))
    return next(iter(_values_stated(text, _TRUTHS, about_it)), None)


def is_no_value(text: str) -> bool:
    """Return whether a string stands for a missing value: `N/A`, `unknown`, `-`, or an empty string."""
    word = text.strip().casefold()
    if word[:1].isalnum() and word[-1:].isalnum():  # without decoration, like most strings
        return word in _NO_VALUE
    return word in _NO_VALUE or (word[:2] != '["' and _strip_decoration(word).casefold() in _NO_VALUE)


def refers_back(text: str) -> bool:
    """Return whether a string only points to another place: `see above`."""
    return text.strip(" ().").casefold() in _UNCHANGED


_AND_SO_ON: Final = frozenset(("etc", "and so on", "usw", "und so weiter", "and more"))


def is_placeholder(text: str, names: tuple[str, ...] = ()) -> bool:
    """Return whether an unquoted word is a placeholder for a value: `<name>`, `string`, `etc` or the name of its
    own field.
    """
    if _SLOT.fullmatch(text) or tuple(name_words(text)) == names or text.rstrip(".").casefold() in _AND_SO_ON:
        return True
    return text in _TYPE_WORDS and not _OF_TYPES.intersection(names)


_IN_BRACKETS: Final = expression(
    r"(?:<|\[|\$?\{{1,2})\s*([^\W\d][\w .'’-]{0,60}?)\s*(?:>|\]|\}{1,2})|((?:YOUR|INSERT|ENTER)_\w{1,60})"
    r"|(?:[Yy]our|[Ii]nsert|[Ee]nter) ([\w ]{1,60}) here|([\w ]{1,60}) goes here"
    r"|(\w{2,8} \w{1,40} (?:hier|ici|aquí|aqui))|([+\d][+\d ().-]{0,6}X{3,}(?:[ ().-]{1,3}X{2,}){1,4})"
)
_ASKED_FOR: Final = frozenset({"your", "the", "a", "an", "insert", "enter", "here"})
_ASKS: Final = _words("your insert enter dein deine ihr ihre votre ton ta tu su seu sua tuo tua jouw uw twój twoja")
_OF: Final = _words("of the des der de du del della di do da van von")
"""First of several words in brackets that stand for what the reader is to fill in."""
_DATE_MASK: Final = (
    r"(?i:(?:[yajrг]{4}|X{4})[-/.](?:mm|мм|XX)[-/.](?:dd|jj|tt|gg|дд|XX)"
    r"|(?:dd|jj|tt|gg|дд|XX)[-/.](?:mm|мм|aa|XX)[-/.](?:[yajrг]{4}|X{4}))"
)
"""The pattern of a date: `YYYY-MM-DD`, `TT.MM.JJJJ`, `XX/XX/XXXX`."""
_MASK: Final = (
    r"[Hh]{2}:[Mm]{2}|XX:XX|(?:X{2,4}[ -]){2,4}X{2,4}"
    r"|(?:X{2,4}(?!染|级|級|型|世)|[○〇×]{2})[\u3040-\u9fff가-힣]{1,8}|某某[^\"]{0,9}|[Ll]orem ipsum [^\"]{0,200}"
)
"""Another pattern: `HH:MM`, `XX XX XX`, `○○株式会社`."""
_TO_FILL_IN: Final = (
    r"(?:此处|在此|请在此)(?:填写|填入|输入)[^\"]{0,20}|ここに[^\"]{0,20}(?:入力|記入)[^\"]{0,9}"
    r"|여기에[^\"]{0,20}(?:입력|작성)[^\"]{0,9}"
)
_SLOT_VALUE: Final = expression(
    r"[:=]\s{0,9}(?:\[\s{0,20})?[\"'`](?:([<\[{$](?:[^\"'`\n]|(?<=\w)['’](?=\w)){1,70}[>\]}]|(?:YOUR|INSERT|ENTER)_\w{1,60}|(?:[Yy]our"
    r"|[Ii]nsert|[Ee]nter) [\w ]{1,60} here|[\w ]{1,60} goes here|(?i:ihre?|deine?|votre|ton|ta|tu|su|seu|sua|uw|jouw)"
    r" \w{1,40} (?:hier|ici|aquí|aqui)|[+\d][+\d ().-]{0,6}X{3,}(?:[ ().-]{1,3}X{2,}){1,4})|(string|\.\.\.|…)"
    rf"|({_DATE_MASK}|{_MASK}|{_TO_FILL_IN}))[\"'`]"
)
"""A value, or the first item of a list, that may be a placeholder. It begins with its colon, since each word of a text
would be tried as a name."""
_UNCHANGED: Final = frozenset(("unchanged", "same as above", "as above", "see above", "omitted", "truncated"))
"""Words in brackets for a value that was left out."""
_SHOWS_FORMAT: Final = frozenset(("placeholder", "hint", "example", "label", "format", "pattern", "mask"))
_NAME_BEFORE: Final = expression(r"([\w-]{1,60})[\"'`]?\s{0,9}\Z")


def placeholder_in(text: str, fields: Container[str]) -> str | None:
    """Return the string in a JSON text that is only a placeholder for the value of its field, or None.

    That is the name of the field, of one of its items or of a type in brackets, the pattern of a date, or the same
    `"string"` or `"..."` in several fields.

    >>> [placeholder_in(f'{{"name": "{value}"}}', ("name",)) for value in ("<name>", "[YOUR NAME]", "<Ann>", "string")]
    ['<name>', '[YOUR NAME]', None, None]
    """
    unfilled: dict[str, str] = {}
    for found in _SLOT_VALUE.finditer(text):
        before = _NAME_BEFORE.search(text, max(0, found.start() - 70), found.start())
        if before is None or before[1] not in fields or (found[3] and _names_type(before[1])):
            continue
        name, value = before[1], found[1]
        if found[3]:
            if before[1].casefold() in _SHOWS_FORMAT:
                continue
            return found[3]
        if value is None:
            unfilled[name] = found[2]
            continue
        words = _IN_BRACKETS.fullmatch(value)
        said = next(filter(None, words.groups())) if words else ""
        stems = [_stem(word) for word in name_words(said) if word not in _ASKED_FOR and not word.isdigit()]
        own = {_stem(word) for word in name_words(name)}
        if said and (
            own.issubset(stems)
            or (stems and own.issuperset(stems) and not _names_type(name))
            or (said in _TYPE_WORDS and not _names_type(name))
            or said.lower() in _UNCHANGED
            or (_asks(name_words(said)) and name.casefold() not in _SHOWS_FORMAT)
            or "XXX" in said
        ):
            return value
    if len(unfilled) > 1 and not any(map(_names_type, unfilled)):
        return next(iter(unfilled.values()))
    return None


def _asks(words: list[str]) -> bool:
    """Return whether words in brackets ask for a value: `your name`, `name of the lawyer`."""
    return len(words) > 1 and (words[0] in _ASKS or (words[1] in _OF and len(words) > 2))


def _names_type(name: str) -> bool:
    return any(word in name.lower() for word in _OF_TYPES)


def _match_other(text: str, choices: tuple[Any, ...]) -> Choice | None:
    """Return the choice that is meant, if it is not a string: a number, a boolean or null."""
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


def _match_text(text: str, shape: Shape, hints: Hints) -> Choice | None:
    if text in shape.choice_aliases:
        return Choice(shape.choice_aliases[text], "enum-alias")
    if len(text) > _MAX_TEXT:
        return None
    pairs: list[tuple[str, Any]] = [(choice, choice) for choice in shape.choices or () if isinstance(choice, str)]
    pairs += shape.choice_aliases.items()
    named: dict[str, set[Any]] = {}
    for name, choice in pairs:
        named.setdefault(_key(name), set()).add(choice)
    american: dict[str, set[Any]] = {}
    for key, same in named.items():
        american.setdefault(americanize(key), set()).update(same)
    named |= {key: same for key, same in american.items() if key not in named}
    bare = _key(_strip_decoration(text))
    found = named.get(bare) or named.get(americanize(bare)) or set()
    if bare and len(found) == 1:
        return Choice(next(iter(found)), "enum-case")
    stated = _values_stated(text, {name: choice for name, choice in pairs if len(named[_key(name)]) == 1}, hints)
    return Choice(stated.pop(), "enum-word") if stated else None


def _values_stated(text: str, named: Mapping[str, Any], hints: Hints) -> set[Any]:
    """Return the one choice in a text with only neutral words and a remark on its source next to it, or nothing."""
    if (
        not named
        or len(text) > _MAX_TEXT
        or text.count("*") % 2
        or any(p.search(text) for p in (_ALTERNATIVES, _UNSURE))
    ):
        return set()  # an odd asterisk is not emphasis: `A*`, or the mark of a footnote
    lead = _LEADS.match(text.strip())
    bare = text.strip()[lead.end() if lead else 0 :].strip("{}| ")
    bare = _MEMBER.sub(": ", _SOURCE.sub("", bare))
    return sole_choice(bare, named, hints.described, frozenset(hints.names))


def _key(text: str) -> str:
    """Return text without case, accents and word separators; other symbols stay, because they could
    change the meaning.
    """
    inner = text.strip(" \t\r\n_.,:;'’")
    kept = "".join(c for c in inner if not c.isalnum() and c not in _JOINS and ord(c) not in _JOINERS)
    lead = inner[:1] if inner[:1] in "-/" else ""
    last = inner[-1:] if inner[-1:] in "-/" else ""
    slash = "/" if "/" in inner[1:-1] and len(fold(inner)) <= _ABBREVIATED else ""
    return f"{lead}{fold(inner)}{last}{slash}{kept}"


_ABBREVIATED: Final = 3
"""The maximum number of letters of an abbreviation with a slash: `N/A` is not `NA`."""
_JOINERS: Final = frozenset({0xFE0F, 0x200B, 0x200C, 0x200D, 0xFEFF, *range(0x300, 0x370)})


def _strip_decoration(text: str) -> str:
    """Return text without the emphasis, quotes, brackets, bullet and final period around it."""
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
