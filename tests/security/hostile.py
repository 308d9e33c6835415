"""Hostile text for models, files and errors: control sequences, markup and commands."""

from __future__ import annotations

import re
from typing import Final

HOSTILE: Final = {
    "colour": "a\x1b[31;5;77mRED",
    "screen": "\x1b[2J\x1b[H\x1b[?1049h",
    "title": "\x1b]0;owned\x07",
    "link": "\x1b]8;;http://evil.example/\x1b\\click\x1b]8;;\x1b\\",
    "clipboard": "\x1b]52;c;cm0gLXJmIC8=\x07",
    "device": '\x1bP$q"p\x1b\\\x1b[6n\x1b[c\x05',
    "c1": "\x9b31;5;77mRED\x9d0;owned\x9c\x85",
    "backspace": "safe\x08\x08\x08\x08evil\x7f\x0b\x0c",
    "overwrite": "error\rsuccess",
    "null": "a\x00b\x07\x0e\x0f",
    "bidi": "\u202etxt.exe\u202c \u2066x\u2069\u200f\u061c",
    "unseen": "a\u200bb\ufeffc\u2060\u00add\u2028e\U000e0041",
    "markup": "[bold red]x[/] [link=http://evil.example]y[/link] :bomb: [/nothing]",
    "html": "</script><script>alert(1)</script><img src=x onerror=alert(1)>'\"><svg onload=alert(1)>",
    "url": "javascript:alert(1) {{ 7 * 7 }} {% raw %} ${x}",
    "markdown": "| a | [x](javascript:alert(1)) ![i](http://evil.example/i.png) `code`\n# heading",
    "github": "one\n::error file=a::two\r\n ::add-mask::x%0A::stop-commands::y ##[set-env name=x]y",
    "formula": '=cmd|" /C calc"!A1',
}
"""By what they do where they are printed as they are."""

ALL: Final = " ".join(HOSTILE.values())


def as_name(text: str) -> str:
    """Return the part of the text that is allowed in the name of a step."""
    return "x" + re.sub(r"[\n/{}\"']", "", text) + "x"
