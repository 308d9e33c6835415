"""Detects runaway output: endless whitespace, the same words repeated, or a list that ends with the same item
repeated."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from flujo_aros.contract import Shape
from flujo_aros.json_data import is_dict
from flujo_aros.outcome import Issue
from flujo_aros.reading.grammar import expression
from flujo_aros.reading.phrases import word_set

MOST_BLANK: Final = 2_000
"""The longest run of whitespace that an answer may contain."""
_LOOK_EVERY: Final = 256
_TAIL: Final = 4_400
_SPAN: Final = 4_000
"""The number of characters that a repetition must cover before it counts."""
_TIMES: Final = 20
"""The number of times that a text must occur to count as a repetition."""
WHITESPACE: Final = "runaway_whitespace"
REPETITION: Final = "runaway_repetition"


class Runaway:
    """Watches streamed text. It checks the tail only from time to time, so that all checks together are linear."""

    __slots__ = ("_blank", "_next_look", "_tail", "issue")

    def __init__(self) -> None:
        self.issue: Issue | None = None
        self._blank = 0
        self._next_look = _SPAN
        self._tail = ""

    def watch(self, chunk: str, text: str | None = None) -> None:
        """Check the next piece. `text` is the text so far, including the piece; without it, the tail is kept here."""
        if text is None:
            self._tail = text = (self._tail + chunk)[-_TAIL:]
        kept = len(chunk.rstrip())
        self._blank = len(chunk) - kept if kept else self._blank + len(chunk)
        self._next_look -= len(chunk)
        if self._blank > MOST_BLANK:
            self.issue = _blank(self._blank)
        elif self._next_look <= 0:
            self._next_look = _LOOK_EVERY
            self.issue = _find_repetition(text[-_TAIL:])
        elif kept and self.issue is not None and self.issue.code == WHITESPACE:
            self.issue = None


def find_runaway(text: str) -> Issue | None:
    """Return the issue if the end of a text is a runaway, else None."""
    if len(text) <= MOST_BLANK:
        return None
    blank = len(text) - len(text.rstrip())
    return _blank(blank) if blank > MOST_BLANK else _find_repetition(text[-_TAIL:])


def strip_runaway(text: str) -> str:
    """Return a text without the runaway at its end; one copy of the repeated part is kept.

    >>> strip_runaway('{"a": "well' + " and so on" * 900)
    '{"a": "well and so on'
    """
    again = repeated_tail(text[-_TAIL:])
    if again is None:
        return text.rstrip() if find_runaway(text) else text
    start = len(text) - len(again)
    while text.endswith(again, 0, start):
        start -= len(again)
    return text[: start + len(again)]


def _blank(count: int) -> Issue:
    return Issue("$", WHITESPACE, f"the model wrote only whitespace for {count} characters")


def _find_repetition(tail: str) -> Issue | None:
    again = repeated_tail(tail)
    return None if again is None else Issue("$", REPETITION, f"the model repeated the same text: {again[:80]!r}")


def repeated_tail(tail: str) -> str | None:
    """Return the text repeated at the end, at least twenty times within four thousand characters."""
    unit = 32
    if len(tail) < _SPAN:
        return None
    before = tail.rfind(tail[-unit:], 0, len(tail) - 1)
    period = len(tail) - unit - before
    if before < 0 or period * _TIMES > _SPAN:
        return None
    return tail[-period:] if tail[-_SPAN:] == tail[-_SPAN - period : -period] else None


LEAST_EQUAL: Final = 8
"""The number of equal items at the end of a list that is a repetition."""
_LONGEST_ITEM: Final = 400
_SEVERAL_WORDS: Final = expression(r"[^\W\d_]{2}\W+[^\W\d_]{2}")
_A_WORD: Final = expression(r"[^\W\d_]{3}")
_MAY_REPEAT: Final = word_set(
    "line lines lyrics verse verses refrain chorus song log logs output messages events history sequence readings"
    " samples measurements scores states cells grid map tiles frames slots pattern"
)
"""Words in the names of lists that repeat items by nature."""


def may_repeat_item(text: str) -> bool:
    """Return whether a list in a JSON text may end with the same string or object repeatedly.

    >>> [may_repeat_item(f'[{", ".join(items)}]') for items in (['"a b"'] * 8, ['"a b"', '"a c"', '"a d"'])]
    [True, False]
    """
    end = text.find("]")
    while end >= 0:
        start = max(0, end - _LONGEST_ITEM)
        items = text[start:end].rstrip()
        if items.endswith(('"', "}")):
            last = items.rfind(f"{items[-1]},", 0, -1) + 1
            if last and text.endswith(items[last:], 0, start + last):
                return True
        end = text.find("]", end + 1)
    return False


def repeats_item(items: list[Any], element: Shape, names: Iterable[str]) -> bool:
    """Return whether a list ends with the same text or object repeatedly. `names` are the words in its name.
    Numbers, single words and the choices of a schema may occur that often.
    """
    last = items[-1] if len(items) >= LEAST_EQUAL else None
    if isinstance(last, str):
        has_text = element.choices is None and _SEVERAL_WORDS.search(last) is not None
    else:
        has_text = is_dict(last) and any(
            isinstance(said, str) and _A_WORD.search(said) and element.member(key).choices is None
            for key, said in last.items()
        )
    return has_text and _MAY_REPEAT.isdisjoint(names) and all(item == last for item in items[-LEAST_EQUAL:])
