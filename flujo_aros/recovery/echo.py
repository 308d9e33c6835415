"""Detects replies that only repeat an example of the prompt, unless they may well be the real answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast

from pydantic_core import to_jsonable_python

from flujo_aros.contract import Block, Contract, Event, fold
from flujo_aros.outcome import Accepted, Issue, Outcome, Reason, Rejected, Repair, Risk, Trust
from flujo_aros.reading.payload import values_in
from flujo_aros.recovery.json_path import Place, schema_at

T = TypeVar("T")

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
_BLANK_FIRST: Final = re.compile(
    # The text up to the first value of a JSON text, which is a blank, empty or missing.
    r'\s*(?:[\[{]\s*(?:"(?:[^"\\]|\\.|(?!))*+"\s*:\s*)?|(?!))*+'
    rf'(?:"\s*(?:[<….\\]|_{{3}}|(?:{"|".join(sorted(_TYPES))})")|-?0|null|false|[\]}}])'
)
_WORD: Final = re.compile(r"[^\W_]+")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_OF_TYPES: Final = ("type", "format", "schema", "kind")
_OF_SIGNS: Final = (
    *("separator", "delimiter", "divider", "glue", "joiner", "ellipsis", "punctuation", "symbol", "sign", "char"),
    *("mark", "bullet", "padding", "filler", "placeholder", "pattern", "regex", "glob"),
)
"""Names of fields whose value may well be dots."""
Blanks: TypeAlias = Literal["left", "maybe"]
_LOOK_BACK: Final = 800
_SENTENCE: Final = 4
_SAID: Final = 3
"""This many words cannot be a coincidence, in a field of an answer or in speech."""


@dataclass
class Examples:
    """The examples of a prompt. The prompt itself is asked for only when a value could be one of them."""

    prompt: Callable[[], str]

    @cached_property
    def text(self) -> str:
        """The prompt."""
        return self.prompt()

    def hold(self, value: Any, contract: Contract[Any]) -> bool:
        """Whether a value is one of them, and no other part of the prompt contains its words.

        An answer may well equal an example: the label of a classification, a short phrase, what the text at hand
        says. So only words or numbers that cannot be a coincidence count.

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
        telling = list[Any]()
        for place, leaf in _leaves(plain):
            if not _weight(leaf):
                continue
            if _written(leaf) not in self.text:  # the usual case: most values do not occur in the prompt
                return False
            if not _is_choice(contract, place):
                telling.append(leaf)
        if sum(map(_weight, telling)) < _ENOUGH:
            return False
        places = [(start, end) for found, start, end in values_in(self.text) if found == plain]
        if not any(_is_introduced(self.text, start) for start, _ in places):
            return False
        rest = _without(self.text, places)
        return sum(_weight(leaf) for leaf in telling if not _stands_in(leaf, rest)) >= _ENOUGH

    def _say(self, said: str) -> bool:
        """Whether the prompt shows this text as an example."""
        words = said.strip()
        if len(words.split()) < _SAID or _written(words) not in self.text:
            return False
        places = [match.span() for match in re.finditer(re.escape(_written(words)), self.text)]
        return all(self._is_example(start) for start, _ in places)

    def show_dots(self, value: Any, dots: str) -> Literal["form", "data"] | None:
        """How the prompt shows dots: in an example that equals this value, or as quoted text.

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
        """Whether text in the prompt is introduced as an example, directly or by the JSON object that contains it."""
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
    """How distinctive a value is: two for a sentence or a blank to fill in, one for a name, a code or a number."""
    if isinstance(leaf, bool) or leaf is None:
        return 0
    if isinstance(leaf, (int, float)):
        return int(abs(leaf) >= 100)
    words = leaf.split(None, _SENTENCE)
    if len(words) >= _SENTENCE or _PLACEHOLDER.fullmatch(leaf):
        return 2
    return int(len(words) > 1 or (any(c.isdigit() for c in leaf) and len(leaf) > 3) or "@" in leaf)


def _is_introduced(text: str, start: int, *, heading: bool = True) -> bool:
    """Whether the words before a place, or the heading of its paragraph, announce an example."""
    before = _FENCE_END.sub("", text[max(0, start - _LOOK_BACK) : start]).rstrip()
    paragraph = re.split(r"\n\s*\n", before)[-1]
    line = paragraph.rpartition("\n")[2]
    sentence = _SENTENCE_END.split(line)[-1]
    return bool(_SAYS_EXAMPLE.search(sentence) or _FORMAT.search(sentence)) or (
        heading and bool(_HEADING.match(paragraph))
    )


def _is_choice(contract: Contract[Any], place: Place) -> bool:
    """Whether the schema gives the values to choose from, so that a right answer often equals an example."""
    schema = schema_at(contract.json_schema, place)
    return schema is not None and ("enum" in schema or "const" in schema)


def _leaves(value: Any) -> Iterator[tuple[Place, Any]]:
    """The scalars of a value with their paths, up to the number that is examined, in order."""
    found = 0
    waiting: list[tuple[Place, Any]] = [((), value)]
    while waiting and found < _MOST_LEAVES:
        place, here = waiting.pop()
        if isinstance(here, dict):
            members = islice(cast("dict[str, Any]", here).items(), _MOST_LEAVES)
            waiting += reversed([((*place, key), part) for key, part in members])
        elif isinstance(here, list):
            items = cast("Sequence[Any]", here)[:_MOST_LEAVES]
            waiting += reversed([((*place, index), part) for index, part in enumerate(items)])
        else:
            found += 1
            yield place, here


def _written(leaf: Any) -> str:
    """A value as a prompt contains it, up to the first character that JSON would escape."""
    return leaf.partition('"')[0].partition("\\")[0].partition("\n")[0] if isinstance(leaf, str) else str(leaf)


def _stands_in(leaf: Any, text: str) -> bool:
    return " ".join(str(leaf).casefold().split()) in text


def _without(text: str, places: list[tuple[int, int]]) -> str:
    """The text without these places, lowercased and with single spaces."""
    parts, done = list[str](), 0
    for start, end in places:
        parts.append(text[done:start])
        done = end
    return " ".join(" ".join([*parts, text[done:]]).casefold().split())


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
    """The verdict on blanks that may be only dots: possibly an answer, unless one contains a field name."""
    if any(_in_words(leaf) for _, leaf in texts):
        return "left"
    shown = {examples.show_dots(value, leaf) for _, leaf in texts} if examples is not None else {None}
    if shown == {"data"}:
        return None
    return "left" if "form" in shown or len(texts) > 1 else "maybe"


def _is_blank(leaf: str, place: Place) -> bool:
    """Whether a text may be a template's placeholder for an answer."""
    if leaf in _TYPES:
        return not _is_about(place, _OF_TYPES)
    return _BLANK.fullmatch(leaf) is not None and (bool(_in_words(leaf)) or not _is_about(place, _OF_SIGNS))


def _is_surely_blank(leaf: str, place: Place) -> bool:
    """Whether a text is dots, or the name of its own field in brackets; `<div>` may well be an answer."""
    if leaf in _TYPES:
        return False
    inner, field = _in_words(leaf), _in_words(str(place[-1])) if place else ""
    return not inner or fold(inner) == fold(field) or bool(field and (field in inner or inner in field))


def _in_words(name: str) -> str:
    """The words of a name, each between spaces: `<tag>` refers to `html_tag`, and `<a>` does not."""
    words = _WORD.findall(_CAMEL.sub(" ", name))
    return f" {' '.join(words).casefold()} " if words else ""


def _is_about(place: Place, words: Sequence[str]) -> bool:
    return any(word in str(part).casefold() for part in place for word in words)


def may_echo(outcome: Accepted[Any], examples: Examples | None, contract: Contract[Any]) -> bool:
    """Whether a value needs the check of `unechoed`: most are neither a template nor similar to the prompt.

    A template that was copied unchanged begins with a blank, and an example is JSON in the prompt.
    """
    if outcome.trust is not Trust.CLEAN or contract.mode != "json" or _BLANK_FIRST.match(outcome.text):
        return True
    return examples is not None and "{" in examples.text


def unechoed(outcome: Outcome[T], examples: Examples | None, contract: Contract[T], *, ask: bool) -> Outcome[T]:
    """The outcome, unless its value is an example of the prompt or an unfilled template.

    With `ask` it is rejected, so that the model is asked once more; without, and where that has been done, the value
    is taken and reported as a repair. Spoken text is never taken from an example, and a blank is not a value.
    """
    if not isinstance(outcome, Accepted):
        return outcome
    blanks = blanks_in(outcome.value, contract, examples) if contract.mode in ("json", "tagged") else None
    if blanks == "left" or (blanks and ask):
        words = "it is the unfilled template itself"
        return Rejected(Reason.ECHOED_SCHEMA, (Issue("$", "echoed_form", words),), outcome.text)
    if not blanks and (examples is None or not examples.hold(outcome.value, contract)):
        return outcome
    if ask or isinstance(outcome.value, Event):
        words = "it is the example of the prompt, word for word; answer for the case at hand"
        return Rejected(Reason.ECHOED_SCHEMA, (Issue("$", "echoed_example", words),), outcome.text)
    repeats = Repair("repeats-example", Risk.INFERRED, "$", (0, len(outcome.text)), outcome.text[:80], "")
    trust = Trust.INFERRED if outcome.trust in (Trust.CLEAN, Trust.LOSSLESS) else outcome.trust
    return replace(outcome, repairs=(*outcome.repairs, repeats), trust=trust)
