"""Looks ahead in a text that may still grow: what cannot be decided yet waits, and is decided later.

In a text that is all there these looks cost next to nothing. In one that grows, a decision that more text could change
raises `NeedMoreInput`; the parser then goes back to the last thing that was certain, and on from there when more has
come.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


class NeedMoreInput(Exception):
    """More text is needed; caught by the machine, never seen outside."""


@dataclass(slots=True)
class Opened:
    """A string whose end has not come: where it began, how far it was looked through, and its last inner quote."""

    role: str
    start: int
    at: int
    seen: int


class OpenString(NeedMoreInput):
    """More of a string is needed. What is known of it outlives the exception, which would hold on to the text."""

    def __init__(self, role: str, start: int, at: int, seen: int) -> None:
        self.opened = Opened(role, start, at, seen)


_MARKS: Final = ("//", "/*", "...", "```", "<!--")


def await_end(text: str, at: int, *, growing: bool) -> None:
    """NeedMoreInput where a look has come to the end of a growing text."""
    if growing and at >= len(text):
        raise NeedMoreInput


def await_mark(text: str, at: int, *, growing: bool) -> None:
    """NeedMoreInput where the text ends here, or in what may become a comment, an ellipsis or a fence."""
    if growing and len(text) - at < 4:
        rest = text[at:]
        if not rest or any(mark != rest and mark.startswith(rest) for mark in _MARKS):
            raise NeedMoreInput
