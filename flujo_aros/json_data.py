"""What every layer asks about JSON, and no other module may answer a second time: types of values, and escapes."""

from __future__ import annotations

import re
import unicodedata
from typing import Any, Final, NamedTuple, TypeGuard


def is_dict(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether a JSON value is an object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether a JSON value is an array."""
    return isinstance(value, list)


_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.)|\Z)", re.S)
_PYTHON_ESCAPE: Final = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|(x[0-9a-fA-F]{2}|U[0-9a-fA-F]{8}|N\{[A-Z][A-Z0-9 -]{0,80}\}|.)|\Z)", re.S
)
_SIMPLE: Final = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WINDOWS: Final = re.compile(r"(?:^|[\s\"'(=])(?:[A-Za-z]:\\|\\\\[\w.-]+\\)(?![\\/])")
# Letters after a backspace or form feed are no text; the other commands could be a line break and a short word.
_LATEX: Final = re.compile(
    r"\\(?:[bf](?=[A-Za-z])"
    r"|(?:nabla|neq|not|notin|newline|nonumber|nmid|text|textbf|textit|texttt|theta|tanh|times|tilde|triangle|tfrac"
    r"|rho|right|rightarrow|rangle|rceil|rfloor)(?![A-Za-z]))"
)
_LATEX_WEAK: Final = re.compile(r"\\(?:ne|ni|nu|neg|to|top|tan|tau|rm)(?![A-Za-z])")
_CONTROLS: Final = re.compile(r"\\[bf]")
_INVALID_ESCAPE: Final = re.compile(r"(?<!\\)(?:\\\\)*\\(?:[^\"\\/bfnrtu'`\n]|u(?![0-9a-fA-F]{4}))")


SUSPECT_ESCAPE: Final = re.compile(
    r"\\(?:[bf]|u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    r"|u[dD][c-fC-F](?<!\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F])|n(?:abla|eq|ot|ewline|onumber|mid)|(?<=:\\)[A-Za-z]"
    r"|t(?:ext|heta|anh|imes|ilde|riangle|frac)|r(?:ho|ight|angle|ceil|floor))"
)
"""What valid JSON may hold and hardly means: control characters in place of LaTeX or a path, half a surrogate pair."""


def literal_escapes(raw: str, *, wants_text: bool) -> frozenset[int] | None:
    """Where the backslashes of a string are meant as written although JSON knows the escape; None: everywhere.

    `raw` is the string between its quotes. It needs evidence: a Windows path, a LaTeX command, or letters after a
    backspace; and beside it either an escape that JSON does not know, or a schema that wants text.
    """
    if "\\" not in raw:
        return frozenset()
    broken = _INVALID_ESCAPE.search(raw) is not None
    if not (broken or wants_text):
        return frozenset()
    if _WINDOWS.search(raw):
        return None
    patterns = (_LATEX, _LATEX_WEAK, _CONTROLS) if broken else (_LATEX,)
    found = [m.start() for pattern in patterns for m in pattern.finditer(raw)]
    if any(raw[at + 1] in "bf" for at in found):  # one that is meant as written speaks for all
        found += [m.start() for m in _CONTROLS.finditer(raw)]
    return frozenset(at for at in found if not _preceded_by_backslash(raw, at))


def _preceded_by_backslash(raw: str, at: int) -> bool:
    run = 0
    while at - run > 0 and raw[at - run - 1] == "\\":
        run += 1
    return run % 2 == 1


class Unescaped(NamedTuple):
    """A decoded string; `kept` tells that it had escapes which JSON does not know."""

    value: str
    kept: bool
    lone: bool
    """Holds half of a surrogate pair."""
    dangling: bool
    """Ends in the middle of an escape."""


def unescape(raw: str, literal: frozenset[int] | None = frozenset(), *, python: bool = False) -> Unescaped:
    """Decode JSON escapes; what is no escape keeps its backslash.

    With `python` also `\\xa0`, `\\U0001F600` and `\\N{BULLET}` are decoded.

    At the places in `literal` (None: everywhere) letters after a backslash are kept as they are (`C:\\new`,
    `\\nabla`); quotes, backslashes and `\\uXXXX` are decoded still.
    """
    kept = dangling = False

    def one(match: re.Match[str]) -> str:
        nonlocal kept, dangling
        if match[1]:
            return chr(int(match[1], 16))
        letter: str | None = match[2]
        if letter is None:
            dangling = True
            return "\\"
        if letter in _SIMPLE and not (letter in "bfnrt" and (literal is None or match.start() in literal)):
            return _SIMPLE[letter]
        kept = True
        if len(letter) > 1 and literal is not None and (char := _python_character(letter)) is not None:
            return char
        if letter in "'`\n":
            return letter if letter != "\n" else "\n"
        return f"\\{letter}"

    value = (_PYTHON_ESCAPE if python else _ESCAPE).sub(one, raw)
    lone = False
    if "\\u" in raw and any("\ud800" <= c <= "\udfff" for c in value):
        joined = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        lone = "\ufffd" in joined and "\ufffd" not in value
        value = value if lone else joined
    return Unescaped(value, kept, lone, dangling)


def _python_character(escape: str) -> str | None:
    """The character of `xa0`, `U0001F600` or `N{BULLET}`; None where it is none."""
    try:
        return unicodedata.lookup(escape[2:-1]) if escape[0] == "N" else chr(int(escape[1:], 16))
    except (KeyError, ValueError):
        return None
