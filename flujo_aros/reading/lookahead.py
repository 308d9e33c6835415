"""Lookahead in a streamed reply: what cannot be decided yet is decided when more has arrived.

In complete text these lookaheads cost next to nothing. In a streamed reply, a decision that more text could change
raises `NeedMoreInput`; the parser then goes back to the last thing that was certain, and on from there when more has
come.

An expression is written once. Two forms are derived from it for a streamed reply: one that concludes nothing from the
end of the text (`certain`), and one that matches whatever may still become a match (`begun`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, cast


class _Expression:
    """The return type of `expression`: the attributes of the compiled expression, which is compiled on first use."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern, self._flags)

    def __getattr__(self, name: str) -> Any:
        found = self.__dict__[name] = getattr(self._compiled, name)
        return found


def expression(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """A regular expression that is compiled when it is first used: valid JSON needs hardly any of them.

    A group that is repeated possessively ends in `|(?!)`, here and everywhere in the package: Python before 3.11.5 does
    not go back where the last repetition of such a group failed halfway (python/cpython#106052), unless a branch
    that never matches is tried last.

    >>> expression(r"[0-9]+").match("12, ")[0]
    '12'
    """
    return cast("re.Pattern[str]", _Expression(pattern, flags))


class NeedMoreInput(Exception):
    """More text is needed. Caught by the parser, never raised to callers."""


@dataclass(slots=True)
class Opened:
    """A string whose end has not arrived: its start, how far it was searched, and its last inner quote."""

    role: str
    start: int
    at: int
    seen: int


class OpenString(NeedMoreInput):
    """More of a string is needed. The scan state outlives the exception, which would keep the text alive."""

    def __init__(self, role: str, start: int, at: int, seen: int) -> None:
        self.opened = Opened(role, start, at, seen)


class Ahead:
    """An expression that is matched at a place of a streamed reply.

    >>> number = Ahead(r"[0-9]+ (?= [,}] )")
    >>> number.match("12, ", 0, growing=True)[0]
    '12'
    >>> number.match("12x", 0, growing=True) is None
    True
    >>> number.match("12", 0, growing=True)
    Traceback (most recent call last):
        ...
    flujo_aros.reading.lookahead.NeedMoreInput
    """

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self.pattern = pattern
        self.flags = flags | re.X

    @cached_property
    def now(self) -> re.Pattern[str]:
        """Matches in complete text."""
        return re.compile(self.pattern, self.flags)

    @cached_property
    def sure(self) -> re.Pattern[str]:
        """Matches what will match whatever text follows."""
        return re.compile(certain(self.pattern), self.flags)

    @cached_property
    def begun(self) -> re.Pattern[str]:
        """Matches what may still become a match."""
        return re.compile(begun(self.pattern), self.flags)

    def match(self, text: str, pos: int, *, growing: bool) -> re.Match[str] | None:
        """The match at `pos`; raises `NeedMoreInput` where more text could change it, in a streamed reply."""
        if not growing:
            return self.now.match(text, pos)
        found = self.sure.match(text, pos)
        if self.begun.match(text, pos) if found is None else found.end() == len(text):
            raise NeedMoreInput
        return found

    def matches(self, text: str, pos: int, *, growing: bool) -> bool:
        """Whether there is a match at `pos`. Raises `NeedMoreInput` if only more text can show it."""
        if not growing:
            return self.now.match(text, pos) is not None
        if self.sure.match(text, pos) is not None:
            return True
        if self.begun.match(text, pos):
            raise NeedMoreInput
        return False


_TOKEN: Final = re.compile(
    r"""
      (?P<blank> \s+ | \#[^\n]* )                          # of a verbose expression
    | (?P<behind> \(\?(?: ! | <= | <! ) )                  # `(?!`, `(?<=`: what has arrived decides it
    | (?P<open> \( (?: \?(?: P<\w+> | [:=>] ) )? )         # `(`, `(?P<name>`, `(?:`, `(?=`, `(?>`
    | (?P<close> \) (?: (?: [*+?] | \{[\d,]+\} ) [+?]? )? )
    | (?P<bar> \| )
    | (?P<anchor> \\[AZB] | \^ | \$ )
    | (?P<bound> \\b )
    | (?P<atom> \[ \^? \]? (?: \\. | [^\]\\] )* \] | \\. | . )
      (?P<many> \* | \+ | \? | \{ (?P<least>\d*) ,? \d* \} )? (?P<greed> [+?] )?
    """,
    re.X | re.S,
)


def begun(pattern: str) -> str:
    r"""A verbose expression that matches all that `pattern` matches, and at the end of a text all that may become it.

    Each part of it may be missing where the text ends.

    >>> print(begun(r"ab+ [cd]{2} (?: e | f )?"))
    (?:a|\Z)(?:b+|\Z)(?:[cd]{2}|[cd]*\Z)(?:(?:e|\Z)|(?:f|\Z))?
    """
    return "".join(_begun_parts(pattern))


def _begun_parts(pattern: str) -> Iterator[str]:
    at = 0
    while at < len(pattern):
        found = _TOKEN.match(pattern, at)
        if found is None:
            raise AssertionError("every character is a token")
        at = found.end()
        if found["behind"]:
            at = _close(pattern, found.start())
            yield pattern[found.start() : at]
        elif found["atom"]:
            yield _begun_atom(found)
        elif found["bound"]:
            yield r"(?:\b|\Z)"
        elif not found["blank"]:
            yield found[0]


def _begun_atom(found: re.Match[str]) -> str:
    atom, many = found["atom"], found["many"] or ""
    if many in ("*", "?") or (many and found["least"] in ("", "0") and many != "+"):
        return found[0]
    if many in ("", "+"):
        return rf"(?:{found[0]}|\Z)"
    return rf"(?:{found[0]}|{atom}*\Z)"


def _close(pattern: str, start: int) -> int:
    """Where the group that opens at `start` ends."""
    depth = 0
    for found in _TOKEN.finditer(pattern, start):
        depth += bool(found["open"] or found["behind"]) - bool(found["close"])
        if not depth:
            return found.end()
    raise AssertionError("every group is closed")


_NEVER: Final = "\0"


def certain(pattern: str) -> str:
    r"""The expression for a streamed reply: its end is not final, and what has not arrived may be anything.

    What must not follow may have begun to come.

    >>> print(certain(r"[0-9]+ (?! ab )"))
    [0-9]+ (?!\Z|(?:a|\Z)(?:b|\Z))
    """
    pattern, at = pattern.replace(r"\Z", _NEVER), 0
    parts: list[str] = []
    while (start := pattern.find("(?!", at)) >= 0:
        end = _close(pattern, start)
        parts += [pattern[at:start], r"(?!\Z|", begun(pattern[start + 3 : end - 1]), ")"]
        at = end
    return "".join((*parts, pattern[at:])).replace(_NEVER, "(?!)")


_MARKS: Final = ("//", "/*", "...", "```", "<!--")


def await_end(text: str, at: int, *, growing: bool) -> None:
    """Wait if a lookahead has reached the end of a streamed reply."""
    if growing and at >= len(text):
        raise NeedMoreInput


def await_mark(text: str, at: int, *, growing: bool) -> None:
    """Wait if the text ends here, or in what may become a comment, an ellipsis or a fence."""
    if growing and len(text) - at < 4:
        rest = text[at:]
        if not rest or any(mark != rest and mark.startswith(rest) for mark in _MARKS):
            raise NeedMoreInput
