"""Numbers in words, in the languages that replies are often written in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

NUMERALS: Final = {
    word: number
    for number, words in {
        0: "zero", 1: "one", 2: "two", 3: "three drei trois drie", 4: "four vier quatre cuatro quattro quatro",
        5: "five fünf cinq cinco cinque vijf", 6: "six sechs seis zes", 7: "seven sieben siete sette sete zeven",
        8: "eight acht huit ocho otto oito", 9: "nine neun nueve nove negen", 10: "ten zehn diez dieci tien",
        11: "eleven", 12: "twelve zwölf douze doce dodici twaalf", 13: "thirteen", 14: "fourteen", 15: "fifteen",
        16: "sixteen", 17: "seventeen", 18: "eighteen", 19: "nineteen", 20: "twenty zwanzig vingt veinte venti",
        30: "thirty", 40: "forty", 50: "fifty", 60: "sixty", 70: "seventy", 80: "eighty", 90: "ninety",
    }.items()
    for word in words.split()
}  # fmt: skip
MULTIPLES: Final = {"dozen": 12.0, "hundred": 100.0, "thousand": 1e3, "million": 1e6, "billion": 1e9}


def numbers_in(words: Iterable[str], also: Mapping[str, float] = MappingProxyType({})) -> Iterator[float]:
    """Yield the numbers that are written in words in lower case, each as a whole. `also` adds words for numbers.

    >>> [*numbers_in("thirty six of two hundred and five or one thousand twelve".split())]
    [36.0, 205.0, 1012.0]
    """
    total, below = 0.0, 0.0  # the thousands of the number so far, and the rest of it
    last: float | None = None  # the value of the last word; None outside a number
    for word in words:
        number, multiple = NUMERALS.get(word, also.get(word)), MULTIPLES.get(word)
        if multiple is not None:
            below, last = (below or 1.0) * multiple, multiple
            if multiple >= MULTIPLES["thousand"]:
                total, below = total + below, 0.0
        elif number is not None and last is not None and _continues(number, last):
            below, last = below + number, number
        elif word != "and" or last is None or last < MULTIPLES["hundred"]:
            if last is not None:
                yield total + below
            total, below, last = 0.0, number or 0.0, number
    if last is not None:
        yield total + below


def number_in_words(text: str) -> int | None:
    """Return the whole number that a text consists of, or None.

    >>> [number_in_words(text) for text in ("Two", "twenty-five", "deux", "two or three", "dozen")]
    [2, 25, 2, None, None]
    """
    words = text.casefold().replace("-", " ").split()
    if not words or words[0] in MULTIPLES or not all(word in _OF_NUMBERS for word in words):
        return None
    numbers = [*numbers_in(words, OTHER_NUMERALS)]
    return int(numbers[0]) if len(numbers) == 1 and words[-1] != "and" else None


OTHER_NUMERALS: Final = MappingProxyType(
    {
        word: float(number)
        for number, words in {
            0: "cero zéro 零", 1: "eins 一", 2: "zwei deux dos due dois twee два dwa iki 两 二",
            3: "tres tre três trzy три üç 三 세",
            4: "cztery четыре dört 四 네", 5: "pięć пять beş 五 다섯", 6: "seis sei sześć шесть altı 六 여섯",
            7: "sept siedem семь yedi 七 일곱", 8: "osiem восемь sekiz 八 여덟",
            9: "neuf dziewięć девять dokuz 九 아홉",
            10: "dix dez dziesięć десять 十 열", 11: "elf onze undici",
        }.items()
        for word in words.split()
    }
)  # fmt: skip
"""Numbers that a text may consist of, though many of them mean something else among other words."""
_OF_NUMBERS: Final = frozenset((*NUMERALS, *MULTIPLES, *OTHER_NUMERALS, "and"))


def _continues(number: float, last: float) -> bool:
    """Return whether a word belongs to the number before it: `six` after `thirty` or `hundred`, not after `five`."""
    follows_tens = last >= NUMERALS["twenty"] and number < NUMERALS["ten"]
    return 1 <= number < last and (last >= MULTIPLES["hundred"] or follows_tens)
