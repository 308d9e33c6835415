"""Makes untrusted text safe to print: invisible characters and terminal commands are replaced by symbols.

All text from models, files and errors goes through here before it is shown: in the terminal, in log lines, in findings
and in reports.
"""

from __future__ import annotations

import json
import re
from typing import Final

_KEPT: Final = "\t\n"
_UNSEEN: Final = (
    *range(0x80, 0xA0),  # C1 controls: a terminal may interpret U+009B as ESC [
    *(0x00AD, 0x061C, 0x180E, 0x200B, 0x200E, 0x200F),
    *range(0x2028, 0x202F),  # line separators, and characters that change the direction of text
    *range(0x2060, 0x2070),  # isolates, and characters without a width
    *(0xFEFF, *range(0xFFF9, 0xFFFC)),
    *range(0xD800, 0xE000),  # halves of characters, which cannot be encoded
    *range(0xE0000, 0xE0080),  # tags, in which text can be hidden
)
_SYMBOLS: Final[dict[int, str]] = {
    **{code: chr(0x2400 + code) for code in range(0x20)},
    0x7F: "\u2421",
    **{code: f"‹U+{code:04X}›" for code in _UNSEEN},
}
_IN_LINES: Final = {code: symbol for code, symbol in _SYMBOLS.items() if chr(code) not in _KEPT}
_HOSTILE: Final = re.compile("[" + "".join(f"\\U{code:08x}" for code in _IN_LINES) + "]")


def visible(text: str) -> str:
    r"""Replace each invisible character by a symbol; line breaks and tabs are kept.

    Control characters become their Unicode pictures, all others their code points.

    >>> visible("\x1b[31mred\x07 \x9b1m \u202eexe.txt\n")
    '␛[31mred␇ ‹U+009B›1m ‹U+202E›exe.txt\n'
    """
    return text.translate(_IN_LINES) if _HOSTILE.search(text) else text


def visible_line(text: str) -> str:
    r"""Make text safe to print on one line: line breaks and tabs are also replaced by symbols.

    >>> visible_line("one\ttwo\nthree")
    'one␉two␊three'
    """
    return text.translate(_SYMBOLS)


def visible_json(document: str) -> str:
    r"""Make a JSON document safe to print: invisible characters are escaped in its strings, so its value does not
    change.

    >>> visible_json('{"a": "\u202e\x7f"}')
    '{"a": "\\u202e\\u007f"}'
    """
    return _HOSTILE.sub(_escape, document)


def _escape(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1] if ord(found[0]) > 0x7F else f"\\u{ord(found[0]):04x}"
