"""What is wrong with a text that is not YAML, in the words of those who write blueprints."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_LEVEL: Final = (
    "this line does not go on with what stands above: indent it exactly like its neighbours, and look for a quote or "
    "a bracket above that is not closed"
)

_COLON: Final = (
    "a `:` too many, or a line that is indented too far: put a text with `: ` in it in quotes, and indent a key "
    "exactly like its neighbours"
)
_LIST: Final = "the lines above are a list, and this is a key: begin it with `- ` too, or take that away above"
_BEHIND: Final = "nothing can stand behind a value in quotes, brackets or braces: put the whole text in quotes"
_DIRECTIVE: Final = "lines that begin with % are not read here; take this one away"


@dataclass(frozen=True, slots=True)
class Complaint:
    """What a parser of YAML says, and what stands where it stopped.

    `beside`: in the column of what it was reading; `behind`: not at the beginning of its line.
    """

    message: str
    at: str = ""
    beside: bool = False
    behind: bool = False


_SAID: Final[Sequence[tuple[re.Pattern[str], str, bool]]] = tuple(
    (re.compile(pattern, re.DOTALL), words, at_beginning)
    for pattern, words, at_beginning in (
        (
            r"a tab character|cannot start any token.*\n\t",
            "a tab stands here; indent with spaces",
            False,
        ),
        (
            r"cannot start any token.*\n(?P<it>.)",
            "a text cannot begin with {it}; put it in quotes",
            False,
        ),
        (r"\A[^\n]*(directive|incompatible YAML)", _DIRECTIVE, False),
        (r"mapping values are not allowed", _COLON, False),
        (r"mapping keys are not allowed", "a text that begins with `? ` must be in quotes", False),
        (r"found unexpected ':'", "put a space behind this `:`, or the text in quotes", False),
        (r"could not find expected ':'", "a key without `:` and a value begins here", True),
        (
            r"quoted scalar.*(unexpected end of stream|document (separator|indicator))",
            "a quote opens here and never closes",
            True,
        ),
        (r"flow (sequence|mapping|node).*\n$", "a bracket opens here and never closes", True),
        (r"expected ',' or '(?P<it>[\]}])'", "a `,` or the closing `{it}` is missing before this", False),
        (r"expected (the )?node content.*\n(?P<it>.)", "a value is missing before {it}", False),
        (r"expected (the )?node content", "a value is missing here", False),
        (r"expected alphabetic or numeric character", "a text that begins with `*` or `&` must be in quotes", False),
        (
            r"found unknown escape character.*\n\\?(?P<it>.)",
            "there is no escape \\{it}; write \\\\, or single quotes",
            False,
        ),
        (
            r"hexa?decimal number",
            "\\x, \\u and \\U take 2, 4 and 8 hexadecimal digits; write \\\\ for a backslash",
            False,
        ),
        (
            r"invalid Unicode character escape code",
            "half of a character (a lone surrogate) stands in this text",
            False,
        ),
        (
            r"sequence entries are not allowed",
            "an element `- ` cannot begin here; it needs a line of its own",
            False,
        ),
        (
            r"scanning a block scalar",
            "behind `|` or `>` nothing stands in the line but `+`, `-` or a digit; the text begins in the next line",
            False,
        ),
        (r"expected '?<?document start>?.*\n(?P<it>[\]}])", "a closing `{it}` too many", False),
        (r"\A[^\n]*(a|undefined) tag\b", "a text that begins with `!` must be in quotes", False),
        (r"expected '?<?(block end|document start|key|'-')", _LEVEL, False),
    )
)  # fmt: skip


def syntax_words(complaint: Complaint) -> tuple[str, bool]:
    """What a complaint of the parser means, and whether it is about the place where the thing begins.

    >>> syntax_words(Complaint("while scanning a simple key, could not find expected ':'"))
    ('a key without `:` and a value begins here', True)
    """
    text = f"{complaint.message}\n{complaint.at}"
    for pattern, words, at_beginning in _SAID:
        found = pattern.search(text)
        if found is not None:
            said = words.format(**found.groupdict())
            return _closer(complaint) if said == _LEVEL else said, at_beginning
    return complaint.message, False


def _closer(complaint: Complaint) -> str:
    """What it is about a line that does not go on with what stands above."""
    if "block collection" in complaint.message and complaint.beside:
        return _LIST
    return _BEHIND if complaint.behind else _LEVEL
