"""Classes of words, and rules for their order in a sentence.

A sentence becomes a string with one letter for each word and each break, its *tags*. A rule is a regular expression for
these letters that names the classes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Final

from flujo_aros.reading.grammar import expression


class Lexicon:
    """Words of several languages by class: `guess*` is any word that begins like that, and `made_up` is a group of
    words. A word of several classes belongs to the last one.

    `more` are classes whose words are found in a different way. `word` finds the words, marks and breaks.

    >>> import re
    >>> colors = Lexicon({"NOT": "not never", "RED": "red reddish ruby_red"})
    >>> not_red = re.compile(colors.rule("NOT ~1 RED"))
    >>> [not_red.search(colors.tags(text)) is not None for text in ("It is not very ruby red.", "Red, not blue")]
    [True, False]
    """

    def __init__(self, words: Mapping[str, str], more: Iterable[str] = (), word: re.Pattern[str] | None = None) -> None:
        self._word = word or _WORD
        self.words = words
        self.letters = {name: chr(ord("\u0100") + index) for index, name in enumerate((*words, *more))}
        """The letter of each class."""
        known = [(known, name) for name, listed in words.items() for known in listed.split()]
        self._known = dict(known)
        self._stems = {word[:-1]: name for word, name in self._known.items() if word[-1] == "*"}
        self._every: dict[str, list[str]] = {}
        for each, name in known:
            self._every.setdefault(each, []).append(name)
        self._stem_lengths = sorted(set(map(len, self._stems)), reverse=True)
        groups = sorted(
            (word.replace("_", " ").replace("*", r"\w*") for word in self._known if "_" in word), reverse=True
        )
        by_initial = [f"(?={one})(?:{'|'.join(each)})" for one, each in groupby(groups, itemgetter(0))]
        self._group = expression(rf"\b(?:{'|'.join(by_initial)})\b")
        """Groups of words, the longer ones first, by their initials, since that is faster than one long alternation."""
        unspaced = (word for word in self._known if word[0] > "\u3000" and word[0].isalpha() and word[-1] != "*")
        self._unspaced = expression("|".join(sorted(unspaced, key=len, reverse=True)))
        """Words of Chinese and Japanese, which have no spaces around them."""
        self.class_of = lru_cache(maxsize=4096)(self._class_of)
        """Return the class of a word in lower case, or None."""
        self.classes_of = lru_cache(maxsize=4096)(self._classes_of)
        """Return every class of a word in lower case."""

    def any_of(self, names: str) -> str:
        """Return the letters of classes: `A/B`."""
        return "".join(map(self.letters.__getitem__, names.split("/")))

    def phrases(self, names: str) -> Iterator[str]:
        """Yield expressions for the words of classes: `A/B`."""
        words = (word for name in names.split("/") for word in self.words[name].split() if word[0].isalpha())
        return (rf"\b{word.rstrip('*').replace('_', ' ')}{'' if word.endswith('*') else _END}" for word in words)

    def _class_of(self, word: str) -> str | None:
        if (known := self._known.get(word)) is not None:
            return known
        return next((self._stems[word[:end]] for end in self._stem_lengths if word[:end] in self._stems), None)

    def _classes_of(self, word: str) -> frozenset[str]:
        spelled = word, *(f"{word[:end]}*" for end in self._stem_lengths if end <= len(word))
        return frozenset(name for each in spelled for name in self._every.get(each, ()))

    def words_in(self, text: str) -> list[str]:
        """Return the words, marks and breaks of a sentence in lower case."""
        text = text.replace("_", " ").replace("’", "'")
        text = self._group.sub(lambda found: found[0].replace(" ", "_"), text)
        return self._word.findall(text if text.isascii() else self._unspaced.sub(r" \g<0> ", text))

    def letter_of(self, word: str) -> str:
        """Return the letter for the class of a word in lower case."""
        return self.letters.get(self.class_of(word[:_LONGEST]) or "", OTHER_WORD)  # what is cached must not be long

    def tags(self, text: str) -> str:
        """Return a letter for each word and each break of a sentence."""
        return "".join(map(self.letter_of, self.words_in(text.lower())))

    def rule(self, pattern: str, also: Mapping[str, str] = {}, spans: Mapping[str, str] = {}) -> str:
        """Return the expression for an order of classes.

        `A/B` is a word of one of these classes, and `A?` an optional one; `also` has the classes that count as another
        one as well. `~3` stands for up to three words. `spans` has other signs for words: `-3` are up to three and `-`
        any number of words of none of its classes. `!A,B` means that these do not follow, and `<A` that the word before
        is none of these; `|` is the beginning of a part.
        """
        return "".join(self._part(part, also, spans) for part in pattern.split())

    def _part(self, part: str, also: Mapping[str, str], spans: Mapping[str, str]) -> str:
        if part in ("^", "$"):
            return part
        if part == "|":
            return f"(?:^|{self.letters['STOP']})"
        if part[0] == "!":
            return f"(?!{self.rule(part[1:].replace(',', ' '), also, spans)})"
        if part[0] == "<":
            return f"(?<!{self._part(part[1:], also, spans)})"
        if part[0] == "~" or part[0] in spans:
            words = f"[^{self.any_of(spans[part[0]])}]" if part[0] in spans else "."
            return f"{words}{{0,{part[1:]}}}" if part[1:] else f"{words}*"
        names = "/".join(also.get(name, name) for name in part.rstrip("?").split("/"))
        return f"[{self.any_of(names)}]{'?' if part.endswith('?') else ''}"


_END: Final = r"\b"
OTHER_WORD: Final = "."
"""The letter of a word without a class."""
_LONGEST: Final = 60
_WORD: Final = expression(
    r"[\u0900-\u0dff]+|n['’]t\b|[^\W\d_]+?(?=n['’]t\b)|[^\W_]+(?:[-_][^\W_]+)*(?:['’](?=[^\W\d_]{2}(?<!re|ve|ll)))?|['’](?:s|re|d|m|ll)\b"
    r"|\x00|(?<=\s)--?(?=\s)|=|<-+|[-=>]>|[←→⇒>;,:()—–…：，；（）、?❌✗✘✖👎]"
)
