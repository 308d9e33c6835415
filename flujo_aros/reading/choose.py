"""One of a fixed set of values, from what a model wrote for it."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from flujo_aros.contract.schema import Shape, fold
from flujo_aros.reading.scalars import read_amount

_MAX_TEXT: Final = 300
_SPLIT: Final = re.compile(r"[^\w-]+|_+", re.UNICODE)
_NEGATION: Final = frozenset(
    """
    not no never none neither nor without isn isnt don dont doesn doesnt cannot cant wasn aren non
    but than hardly barely far less more rather unless if anything was were except instead almost nearly
    unclear unsure maybe perhaps or either could might whether
    nicht kein keine keinen nie weder ne pas jamais sin nunca ningún nem não нет не 不 没 非
    """.split()  # noqa: SIM905  (a list of words reads better as words)
)


class Choice(NamedTuple):
    """The value meant, and how it was found: `code` is empty where it stood there exactly."""

    value: Any
    code: str


def match_choice(value: Any, source: Any, shape: Shape) -> Choice | None:
    """The one choice that `value` (written as `source`) stands for, or None where it is none or could be several."""
    choices = shape.choices or ()
    for choice in choices:
        if choice == value and isinstance(choice, bool) == isinstance(value, bool):
            return Choice(choice, "")
    if value is None or isinstance(value, (dict, list)):
        return None
    if not isinstance(value, str):
        return next((Choice(choice, "number-to-string") for choice in choices if choice == source), None)
    return _match_text(value, shape, [choice for choice in choices if isinstance(choice, str)]) or _match_number(
        value, choices
    )


def _match_number(text: str, choices: tuple[Any, ...]) -> Choice | None:
    amount = read_amount(text)
    if amount is not None:
        for choice in choices:
            if isinstance(choice, (int, float)) and not isinstance(choice, bool) and choice == amount.value:
                return Choice(choice, "string-to-number")
    word = text.strip().lower()
    if word in ("true", "false") and (word == "true") in [choice for choice in choices if isinstance(choice, bool)]:
        return Choice(word == "true", "string-to-boolean")
    if word in ("null", "none") and None in choices:
        return Choice(None, "string-to-null")
    return None


def _match_text(text: str, shape: Shape, words: list[str]) -> Choice | None:
    if text in shape.choice_aliases:
        return Choice(shape.choice_aliases[text], "alias")
    named: dict[str, set[str]] = {}
    for word in words:
        named.setdefault(fold(word), set()).add(word)
    for alias, word in shape.choice_aliases.items():
        named.setdefault(fold(alias), set()).add(str(word))
    folded = fold(text)
    if len(named.get(folded, ())) == 1 and folded:
        return Choice(next(iter(named[folded])), "enum-case")
    return _match_word(text, named)


def _match_word(text: str, named: dict[str, set[str]]) -> Choice | None:
    """The one choice that stands in the text as a whole word (or run of words), in a text without a negation."""
    if len(text) > _MAX_TEXT:
        return None
    tokens = [fold(token) for token in _SPLIT.split(text) if token]
    if (
        not tokens
        or "?" in text
        or "？" in text
        or _NEGATION.intersection(token.lower() for token in re.split(r"[\s.,;:!?]+", text.replace("'", "")))
    ):
        return None
    found: set[str] = set()
    at = 0
    while at < len(tokens):
        for length in range(min(6, len(tokens) - at), 0, -1):
            run = "".join(tokens[at : at + length])
            if run in named:
                found |= named[run]
                at += length - 1
                break
        at += 1
    return Choice(found.pop(), "enum-word") if len(found) == 1 else None


def say_choices(shape: Shape, limit: int = 12) -> str:
    """The choices for a sentence."""
    choices: tuple[Any, ...] = shape.choices or ()
    shown = ", ".join(repr(choice) for choice in choices[:limit])
    return f"{shown}, …" if len(choices) > limit else shown
