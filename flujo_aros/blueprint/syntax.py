"""What is wrong with a text that is not YAML, in the words of those who write blueprints."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_LEVEL: Final = (
    "this line does not go on with what stands above: indent it exactly like its neighbours, and look for a quote or "
    "a bracket above that is not closed"
)

_COLON: Final = (
    "a `:` too many, or a line that is indented too far: put a text with `: ` in it in quotes, and indent a key "
    "exactly like its neighbours"
)

_SAID: Final[Sequence[tuple[re.Pattern[str], str, bool]]] = tuple(
    (re.compile(pattern), words, at_beginning)
    for pattern, words, at_beginning in (
        (r"found character '\\t'", "a tab stands here; indent with spaces", False),
        (
            r"found character '(?P<it>[@`%])'",
            "a text cannot begin with {it}; put it in quotes",
            False,
        ),
        (r"mapping values are not allowed here", _COLON, False),
        (r"could not find expected ':'", "a key without `:` and a value begins here", True),
        (r"quoted scalar.*(unexpected end of stream|document separator)", "a quote opens here and never closes", True),
        (
            r"block collection, expected <block end>, but found '\?'",
            "the lines above are a list, and this is a key: begin it with `- ` too, or take that away above",
            False,
        ),
        (r"expected <block end>, but found", _LEVEL, False),
        (r"expected '<document start>', but found", _LEVEL, False),
        (r"flow (sequence|mapping|node).*'<stream end>'", "a bracket opens here and never closes", True),
        (r"expected ',' or '(?P<it>[\]}])', but got", "a `,` or the closing `{it}` is missing before this", False),
        (r"expected the node content, but found '(?P<it>[^']+)'", "a value is missing before {it}", False),
        (r"expected alphabetic or numeric character", "a text that begins with `*` or `&` must be in quotes", False),
        (r"found undefined alias '?(?P<it>[^']+)'?", "there is no anchor `&{it}` above", False),
        (r"found duplicate anchor", "this anchor stands above already", False),
        (r"found another document", "a second document begins here; one file is one blueprint", False),
        (
            r"found unknown escape character '(?P<it>.+)'",
            "there is no escape \\{it}; write \\\\, or single quotes",
            False,
        ),
        (
            r"sequence entries are not allowed here",
            "an element `- ` cannot begin here; it needs a line of its own",
            False,
        ),
        (r"block sequence entries|but found '-'", _LEVEL, False),
    )
)


def syntax_words(complaint: str) -> tuple[str, bool]:
    """What a complaint of the parser means, and whether it is about the place where the thing begins.

    >>> syntax_words("while scanning a simple key, could not find expected ':'")
    ('a key without `:` and a value begins here', True)
    """
    for pattern, words, at_beginning in _SAID:
        found = pattern.search(complaint)
        if found is not None:
            return words.format(**found.groupdict()), at_beginning
    return complaint, False
