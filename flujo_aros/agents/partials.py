"""Where the JSON begins in a reply that still streams, so that the host can show the part of it that there is."""

from __future__ import annotations

from typing import Final

_THINKING: Final = ("<think>", "</think>")


def json_so_far(text: str) -> str:
    """The text from the first opening brace on; the text itself where it begins so, or has none yet.

    A guess, and good enough for what is replaced by the next partial: the end is read in full. One search in the text,
    where the host parses all of it.
    """
    begin, end = _THINKING
    start = 0
    if text.lstrip().startswith(begin):
        start = text.find(end)
        if start < 0:
            return text
    brace = text.find("{", start)
    return text[brace:] if brace > 0 else text
