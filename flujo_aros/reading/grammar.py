r"""The reader's regular expressions: their compilation, their lookahead in a stream, and the parser's grammar.

In complete text, lookahead is cheap. In a streamed reply, a decision that more text could change raises
`NeedMoreInput`; the parser then goes back to its last certain state and continues from there when more text has
arrived. Each expression is written once. Two forms are derived from it for streamed replies: one that concludes nothing
from the end of the text (`certain`), and one that matches any text that may still become a match (`begun`).

The grammar of the tolerant parser has a name for each expression and an example for each alternative. All expressions
are verbose (`re.X`): a space is written `[ ]`. Quantifiers have upper bounds wherever lookahead could otherwise reach
the end of the text from every position.

`SPACE` is whitespace as models write it, with zero-width characters and byte order marks. A colon may be `:`, the
full-width `：`, `=` or `=>`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
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
    """Return a regular expression that is compiled on first use: valid JSON needs hardly any of them.

    A group that is repeated possessively ends in `|(?!)`, here and everywhere in the package: Python before 3.11.5 does
    not backtrack if the last repetition of such a group failed halfway (python/cpython#106052), unless a branch that
    never matches is tried last.

    >>> expression(r"[0-9]+").match("12, ")[0]
    '12'
    """
    return cast("re.Pattern[str]", _Expression(pattern, flags))


class NeedMoreInput(Exception):
    """More text is needed. Caught by the parser, never raised to callers."""


@dataclass(slots=True)
class Opened:
    """A string whose end has not arrived: its start, the position searched so far, and its last inner quote."""

    role: str
    start: int
    at: int
    seen: int


class OpenString(NeedMoreInput):
    """More of a string is needed. Holds only the scan state, because an exception would keep the text alive."""

    def __init__(self, role: str, start: int, at: int, seen: int) -> None:
        self.opened = Opened(role, start, at, seen)


class Ahead:
    """An expression that is matched at a position of a streamed reply.

    >>> number = Ahead(r"[0-9]+ (?= [,}] )")
    >>> number.match("12, ", 0, growing=True)[0]
    '12'
    >>> number.match("12x", 0, growing=True) is None
    True
    >>> number.match("12", 0, growing=True)
    Traceback (most recent call last):
        ...
    flujo_aros.reading.grammar.NeedMoreInput
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
        """Matches text whose match no further text can undo."""
        return re.compile(certain(self.pattern), self.flags)

    @cached_property
    def begun(self) -> re.Pattern[str]:
        """Matches text that may still become a match."""
        return re.compile(begun(self.pattern), self.flags)

    def match(self, text: str, pos: int, *, growing: bool) -> re.Match[str] | None:
        """Return the match at `pos`. In a streamed reply, raises `NeedMoreInput` if more text could change it."""
        if not growing:
            return self.now.match(text, pos)
        found = self.sure.match(text, pos)
        if self.begun.match(text, pos) if found is None else found.end() == len(text):
            raise NeedMoreInput
        return found

    def matches(self, text: str, pos: int, *, growing: bool) -> bool:
        """Return whether there is a match at `pos`. Raises `NeedMoreInput` if only more text can tell."""
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
    r"""Return a verbose expression that matches `pattern`, and text at the end that may become a match.

    At the end of the text, each part of the expression may be missing.

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
    """Return the end of the group that opens at `start`."""
    depth = 0
    for found in _TOKEN.finditer(pattern, start):
        depth += bool(found["open"] or found["behind"]) - bool(found["close"])
        if not depth:
            return found.end()
    raise AssertionError("every group is closed")


_NEVER: Final = "\0"


def certain(pattern: str) -> str:
    r"""Return the expression for a streamed reply, whose end is not final and may be followed by anything.

    Text that must not follow may already have begun.

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


_MARKS_BEGUN: Final = frozenset(("/", ".", "..", "`", "``", "<", "<!", "<!-"))
"""Text that may become `//`, `/*`, `...`, three backticks or `<!--`."""


def await_end(text: str, at: int, *, growing: bool) -> None:
    """Wait if a lookahead has reached the end of a streamed reply."""
    if growing and at >= len(text):
        raise NeedMoreInput


def await_mark(text: str, at: int, *, growing: bool) -> None:
    """Wait if the text ends here, or in what may become a comment, an ellipsis or a fence."""
    if growing and len(text) - at < 4:
        rest = text[at:]
        if not rest or rest in _MARKS_BEGUN:
            raise NeedMoreInput


# --- parts ------------------------------------------------------------------------------------------------------------

NUMBER_PATTERN: Final = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
"""A JSON number: `0`, `-12.5`, `1e-7`, but not `007` or `.5`."""
_WORD: Final = "true|false|null|True|False|None"
_SCALAR: Final = rf"(?: {NUMBER_PATTERN} | {_WORD} )"
_GAP: Final = r"[ \t\r\n]*"
_SPACE: Final = r"[\s\u200b-\u200d\u2060\ufeff]*"
_VALUE_BEGINS: Final = r"[\"'“\[{]"

# --- whitespace and comments ------------------------------------------------------------------------------------------

BLANK: Final = re.compile(_GAP)
ODD_BLANK: Final = re.compile(r"[\s\u200b\u200c\u200d\u2060\ufeff]*")
COMMENT: Final = expression(
    r"""
      //[^\n]*                                # // as agreed
    | /\*.*?\*/                               # /* as agreed */
    | \#(?![0-9a-fA-F]{3,8}\b)[^\n]*          # # as agreed; but not a color: #ffcc00
    | <!--.*?-->                              # <!-- as agreed -->
    """,
    re.X | re.S,
)
SHORT_COMMENT: Final = r"(?: (?: // | \# )[^\n]{0,200}\n | /\*.{0,200}?\*/ | <!--.{0,200}?--> )"
"""A comment next to a key, for expressions that look ahead."""
ELLIPSIS: Final = expression(r"\.\.\.|…")
CJK: Final = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Chinese, Japanese, Korean: scripts without spaces between words. For use in a set of characters."""
SENTENCE: Final = expression(
    r"\n|(?<=[.!?])(?<!\b[A-Z]\.)(?<!\b[MD][rs]\.)(?<!\bMrs\.)(?<!\bProf\.)(?<!\b[Nn]o\.)(?<!\b[ie]\.[eg]\.)"
    r"(?!(?<=\d\.) ?(?:Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez|jan|feb|maa|mei|okt|dec)[^\W\d]*)\s|[。！？]"
)
"""Between two sentences of prose."""

# --- members and elements of plain JSON, and of JSON with unambiguous deviations --------------------------------------

_DOUBLE: Final = r'"([^"\\\x00-\x1f]*)"'
_SINGLE: Final = r"'([^'\"\\\x00-\x1f]*)'"
_BARE: Final = r"[A-Za-z_$][\w$-]*"
_QUOTED_KEY: Final = r"""(?: "[^"\\\n]*" | '[^'"\\\n]*' )"""
_QUOTED_OR_BARE_KEY: Final = rf"(?: {_QUOTED_KEY} | {_BARE} )"


@cache
def member(*, bare: bool) -> Ahead:
    """Return the expression for a key and an unambiguous scalar, or a key and an opening bracket, in one match.

    `bare` means that the object has bare keys, so a word before a colon is a key. Groups: three kinds of keys and five
    of values.

    A string has ended if its object closes or another key follows; a quote before anything else may be part of the
    string. A number has ended at a closer, or at a comma that is not followed by digits (`1,234` is one number).
    """
    next_key = _QUOTED_OR_BARE_KEY if bare else _QUOTED_KEY
    closed = rf"\}}{_GAP}(?: [,}}\]] | \Z )"
    string_ends = rf"(?= {_GAP}(?: {closed} | ,{_GAP}(?: {next_key}{_GAP}: | {closed} ) ) )"
    word_ends = rf"(?= {_GAP}(?: \}} | ,(?! [0-9] ) ) )"
    return Ahead(rf"""
        {_GAP}(?: {_DOUBLE} | {_SINGLE} | ({_BARE}) ) {_GAP}:{_GAP}     # "a":   'a':   a:
        (?: {_DOUBLE}{string_ends}                                      # "x",
          | {_SINGLE}{string_ends}                                      # 'x',
          | ({NUMBER_PATTERN}){word_ends}                               # 12.5,
          | ({_WORD}){word_ends}                                        # true,
          | ([\[{{])                                                    # [
        )""")


_ELEMENT_ENDS: Final = rf"(?= {_GAP}(?: \] | ,{_GAP}[\"'{{\[\]\-0-9] ) )"
ELEMENT: Final = re.compile(
    rf"""
    {_GAP}(?: {_DOUBLE}{_ELEMENT_ENDS}                                  # "x",
            | {_SINGLE}{_ELEMENT_ENDS}                                  # 'x',
            | ({NUMBER_PATTERN})(?= {_GAP}[,\]] )                       # 12,
            | ({_WORD})(?= {_GAP}[,\]] )                                # true,
            | ([\[{{])                                                  # [
          )""",
    re.X,
)
_BRACKET: Final = re.compile(r"[{}\[\]]")
_BRACKET_OR_STRING: Final = re.compile(r'[{}\[\]]|"[^"\\]*+(?:\\.[^"\\]*+|(?!))*+(?:"|(?P<open>\\?\Z))', re.S)


def brackets(text: str, start: int, end: int) -> Iterator[re.Match[str]]:
    """Yield the brackets in a part of a text, without those in strings; an unterminated string does not count as one.

    No string ends after the opening quote of one that never ends, so nothing is searched twice.
    """
    for found in _BRACKET_OR_STRING.finditer(text, start, end):
        if found["open"] is not None:
            yield from _BRACKET.finditer(text, found.start(), end)
        elif found[0][0] != '"':
            yield found


# --- keys -------------------------------------------------------------------------------------------------------------

_COLON: Final = rf"{_SPACE} (?: {SHORT_COMMENT} {_SPACE} )? (?: [:：] | =>? )"
_IN_DOUBLE: Final = r"(?P<q> (?: \\\" | [^\"“”»\n:] ){0,120} )"
_IN_SINGLE: Final = r"(?P<s> (?: \\' | [^'’`\n:] ){0,120} )"
KEY_AHEAD: Final = Ahead(
    rf"""
    \s*
    (?: [\"“”„«] {_IN_DOUBLE} [\"”“»] {_COLON}  # "name" :
      | ['‘`] {_IN_SINGLE} ['’`] {_COLON}  # 'name' :
      | (?P<b> [\w$][\w$-]{{0,60}} (?: [ ][\w$-]{{1,30}} ){{0,3}} ) (?! {_SPACE} = ) {_COLON}  # unit price :
    )
    """
)
"""A key and its colon."""
BARE_KEY: Final = Ahead(
    rf"""
    [^\s:：=,，{{}}\[\]\"'“”‘’`&] (?: (?! /\* | <!-- | \s (?: // | \# ) ) [^:：=,，{{}}\[\]\"“”`\n] )*?
    (?: (?<! \s ) | (?= [\"'”’`] ) )   # not at each space of a long run
    (?= [\"'”’`]? \s* (?: {SHORT_COMMENT} \s* )? (?: [:：] | => | = ) )   # unit price" :   price /* USD */ :
    """
)
KEY_AND_VALUE: Final = expression(
    r"[^\W\d]\w{0,60} (?= [ \t]{1,20}(?: [\"'“\[{] | -?\d ) )",
    re.X,  # limit 3, where the colon was forgotten
)
FIRST_KEY: Final = expression(r"\{ \s{0,40} [\"'“]? (\w{1,60}) [\"'”]? \s{0,10} [:：]", re.X)  # { "name":
COLON: Final = expression(r"\s* (?: [:：]\s*=? | [=-]> | = ) \s* (?: [:：]\s* )?", re.X)  # :  ：  :=  =>  ->  =  ::
PREFIX: Final = expression(r"[uUbBrR] (?= [\"'] (?! \s*[,}\]:] ) )", re.X)
"""The prefix of a Python string: `u'x'`, but not the letter at the end of `['a', b']`."""

# --- strings ----------------------------------------------------------------------------------------------------------

KEY_BEHIND: Final = Ahead(
    rf"""
    \s*
    (?: {SHORT_COMMENT} \s* )?  # a comment before it
    (?: [\"“”„«]{{1,2}} {_IN_DOUBLE} [\"”“»]{{1,2}} {_COLON} # ""a"":
      | ['‘`]{{1,2}} {_IN_SINGLE} ['’`]{{1,2}} {_COLON}  # 'name' :
      | (?P<b> [\w$][\w$-]{{0,60}} ) (?P<half> [\"'”]? ) \s* (?: {SHORT_COMMENT} \s* )? [:：]  # name:   name":
        (?= \s*(?: [\"'“‘`\[{{\d\-+tfnTFN] | [yY]es\b ) | \s*\Z )  # … and a value
      | [\"“] (?P<h> \w{{1,60}} ): \s* (?= [\"'“‘\[{{] | -?\d | (?: {_WORD} )\s*[,}}] )  # "name: "tea"
    )
    """,
    re.S,
)
"""A key and its colon, where a string may have ended before the key."""
TAIL: Final = Ahead(
    r"""
    [^\"\n]{0,200} \" \s*
    (?: , \s* \"[^\"\n]{1,120}\" \s* :                                                # …", "name":
      | \} \s* (?: \Z | [,}\]] )                                                       # …" }
    )
    """
)
"""The rest of a string and its delimiter: a closing bracket before them was part of the string."""
HALF_CHARACTER: Final = expression(r"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")
"""The first half of a surrogate pair, where the text was cut."""
RAW: Final = expression(r"\W[rR][\"']")
r"""The prefix of a string in which Python reads no escapes: `r"\d+"`."""
JOINED: Final = Ahead(r"\s* \+ \s* (?= [\"'“] )")
"""The operator between the parts of a concatenated string: `"one " + "two"`."""

# --- values without quotes --------------------------------------------------------------------------------------------

SCALAR: Final = expression(rf"{_SCALAR} (?= [\s;] )", re.X)
SCALAR_AHEAD: Final = Ahead(rf"{_SCALAR} (?= \s*[\s,;\]] )")
CALL: Final = Ahead(r"(?: new\s+ )? [A-Za-z_$][\w$.]* \( \s* (?= [\"'\d\-)] )")
"""`ObjectId("5f…")`, `new Date(0)`: a call with one argument is read as the argument."""
BARE_END: Final = expression(
    r"""
      [,，،}\]\n\"]                                        # high,
    | /[/*] | <!--                                        # high // as agreed
    | \s\#                                                # high # as agreed
    | ; (?= \s*(?: [}\]\[{]                               # high; }
                 | [\"']?\w+[\"']?\s*:                    # high; "low":
                 | \n\s*[\"'] ) )                         # high;   and a string on the next line
    """,
    re.X,
)
GLUED: Final = expression(
    r"""
      [-+]?\d[\d.]* (?: [^\W\d]\w*\s*[:：]                # 12name: a key without its comma
                   | \s*[、；;|،]                         # 12;   an odd separator
                   | [eE][+-]?\Z )                        # 1e    an exponent without digits
    | (?: [-+]?\d[\d.]* | true | false | null | True | False | None | undefined ) \s+
      (?: [^\W\d]\w* \s* [:=] | [\"'“‘`;、；] )             # 12 name = 3   12 'name'   true ;
    | .*(?: [\\、；] | \\[nrt] )\Z                          # a backslash or an odd separator at the end
    | .*(?: [{\[\"] | \.\.\. | … )                         # red {           etc...
    | .*\\u[\da-fA-F]{4} | &(?:quot|\#)                    # an escape of a string without quotes
    """,
    re.X,
)
"""A number followed by text that should not follow it."""
KEY_WITHIN: Final = expression(r"\s(\w{1,60})\s?[:=]\s")
"""A key in a value without quotes, whose comma may be missing: `red size: 3`."""
LOST_BEGIN: Final = expression(
    r"""
      [^'’‘\\]+ ['’]                                      # tea'   whose opening quote is missing
    | [^“”«»\\]+ [”»]                                     # tea”
    """,
    re.X,
)
KEY_IN_TEXT: Final = expression(r"[^\s,{(\[}\]\"'\d]\s*[\"'][^\"'\n]{1,80}[\"']\s*[:：]\s*\Z")
"""A key without a comma before it, which may be part of the string before: `"He wrote: "send": false"`."""
FEET: Final = expression(r"\d+(?:[./]\d+)?['’]")
"""A measure in feet: `5'`."""
GROUP: Final = expression(r"0\d\d(?!\d)")
"""The digits after the comma in `1,000`."""
FIRST_GROUP: Final = expression(r"(?<![\d.])[1-9]\d{0,2}[^\S\n]\Z")
NEXT_GROUP: Final = expression(r"\d{3}(?!\d)")
"""The digits before and after the space in `5 400`."""
THOUSANDS: Final = expression(r"\d{3}(?=[,.}\s]|\Z)")
DECIMAL_COMMA: Final = expression(
    r"""
    [-+]? (?: \d{1,3}(?:\.\d{3})+ | 0 | [1-9]\d{0,15} ) , \d{1,15}      # 1.234,5
    (?= \s{0,20}(?: [}\n] | ,\s{0,20}[\"'}] ) )                         # and the object ends, or another key follows
    """,
    re.X | re.A,
)
SET: Final = Ahead(r"\{ (?= \s* [\"'] | [^,{}\[\]]{1,200} , ) [^:：={}\[\]]{1,1900} \}")
"""`{'a', 'b'}` in place of a list. A single bare word in braces is a placeholder."""
STRING_ARGUMENT: Final = expression(r"([\"'])((?:(?!\1)[^\\\n])*)\1\s*\)")
NUMBER_ARGUMENT: Final = expression(r"(-?\d+(?:\.\d+)?)\s*\)")
