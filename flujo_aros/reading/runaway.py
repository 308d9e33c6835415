"""Whether a model that still writes has lost its way: white space without end, or the same words again and again."""

from __future__ import annotations

from typing import Final

from flujo_aros.outcome import Issue

MOST_BLANK: Final = 2_000
"""White space in a row that no answer has."""
_LOOK_EVERY: Final = 1_024
_TAIL: Final = 6_000
_SPAN: Final = 4_000
"""How long a repetition must go on before it counts,"""
_TIMES: Final = 20
"""and how often the same must stand in it."""


class Runaway:
    """Watches the end of a text that grows; a look at it is taken once in a while, so that all looks are linear."""

    def __init__(self) -> None:
        self.blank = 0
        self.next_look = _SPAN
        self.issue: Issue | None = None

    def watch(self, text: str, chunk: str) -> None:
        """Take note of the next piece; `text` is all of it so far, the piece included."""
        kept = len(chunk.rstrip())
        self.blank = len(chunk) - kept if kept else self.blank + len(chunk)
        if self.blank > MOST_BLANK:
            words = f"nothing but white space for {self.blank} characters"
            self.issue = Issue("$", "runaway_whitespace", words)
        elif len(text) >= self.next_look:
            self.next_look = len(text) + _LOOK_EVERY
            again = repeated(text[-_TAIL:])
            words = f"the same again and again: {again[:80]!r}" if again else ""
            self.issue = Issue("$", "runaway_repetition", words) if again else None
        elif kept and self.issue is not None and self.issue.code == "runaway_whitespace":
            self.issue = None


def repeated(tail: str) -> str | None:
    """What stands again and again at the end of a text, at least twenty times in four thousand characters."""
    unit = 32
    if len(tail) < _SPAN:
        return None
    before = tail.rfind(tail[-unit:], 0, len(tail) - 1)
    period = len(tail) - unit - before
    if before < 0 or period * _TIMES > _SPAN:
        return None
    return tail[-period:] if tail[-_SPAN:] == tail[-_SPAN - period : -period] else None
