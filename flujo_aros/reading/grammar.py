"""The grammar of the tolerant parser: regular expressions by name, an example beside each alternative."""

from __future__ import annotations

import re
from typing import Final

NUMBER_PATTERN = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
BLANK: Final = re.compile(r"[ \t\r\n]*")
ODD_BLANK: Final = re.compile(r"[\s\u200b\u200c\u200d\u2060\ufeff]*")
COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/|#(?![0-9a-fA-F]{3,8}\b)[^\n]*|<!--.*?-->", re.S)
LEFT_OUT: Final = re.compile(
    r"\.\.\.|…|\b(?:more|others?|remaining|rest|omitted|truncated|unchanged|skipped|elided|left out"
    r"|not shown|abbreviated|as before|as above|same as|and so on|etc|weitere|übrige|unverändert|ausgelassen|usw"
    r"|inchangé|sin cambios|resto|reste)\b"
    r"|省略|其余|其他|以下略|残り|同上",
    re.I,
)
KEY_AHEAD: Final = re.compile(
    r"\s*(?:[\"“”„«](?P<q>[^\"“”»\n:]{0,120})[\"”“»](?=[\s\u200b-\u200d\u2060\ufeff]*(?:[:：]|=))|['‘`](?P<s>[^'’`\n:]{1,120})['’`](?=\s*(?:[:：]|=))"
    r"|(?P<b>[\w$][\w$-]{0,60}(?: [\w$-]{1,30}){0,3})(?=\s*[:：]))[\s\u200b-\u200d\u2060\ufeff]*(?:[:：]|=>?)"
)
KEY_AHEAD_BEGUN: Final = re.compile(
    r"\s*(?:[\"“”„«][^\"“”»\n:]{0,120}(?:[\"”“»]\s*)?|['‘`][^'’`\n:]{0,120}(?:['’`]\s*)?"
    r"|[\w$][\w$-]{0,60}(?: [\w$-]{0,30}){0,3}\s*)?\Z"
)
SCALAR_AHEAD: Final = re.compile(rf"(?:{NUMBER_PATTERN}|true|false|null|True|False|None)(?=\s*[\s,;\]])")
SCALAR_AHEAD_BEGUN: Final = re.compile(r"[\w.+-]*\s*\Z")
ELLIPSIS: Final = re.compile(r"\.\.\.|…")
HALF_CHARACTER: Final = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")
CALL: Final = re.compile(r"(?:new\s+)?[A-Za-z_$][\w$.]*\(\s*(?=[\"'\d\-)])")
BARE_KEY: Final = re.compile(r"[^\s:：=,，{}\[\]\"'“”‘’`][^:：=,，{}\[\]\"“”`\n]*?(?=[\"'”’`]?\s*(?:[:：]|=>|=))")
KEY_AND_VALUE: Final = re.compile(r"[^\W\d]\w{0,60}(?=[ \t]{1,20}(?:[\"'“\[{]|-?\d))")
COLON: Final = re.compile(r"\s*(?:[:：]\s*=?|=>|=)\s*(?:[:：]\s*)?")
BARE_END: Final = re.compile(r"[,，}\]\n\"]|/[/*]|\s#|;(?=\s*(?:[}\]\[{]|[\"']?\w+[\"']?\s*:|\n\s*[\"']))")
SCALAR: Final = re.compile(rf"(?:{NUMBER_PATTERN}|true|false|null|True|False|None)(?=[\s;])")
GLUED: Final = re.compile(r"-?\d[\d.]*(?:[^\W\d]\w*\s*[:：]|\s*[、；;|]|[eE][+-]?\Z)|.*\\\Z")
"""A number and what should not stand behind it: a key, an odd separator, an exponent without digits."""
LOST_BEGIN: Final = re.compile(r"[^'’‘\\]+['’]|[^“”«»\\]+[”»]")
FEET: Final = re.compile(r"\d+(?:[./]\d+)?['’]")
JOINED: Final = re.compile(r"\s*\+\s*(?=[\"'“])")
JOINED_BEGUN: Final = re.compile(r"\s*(?:\+\s*)?\Z")
CALL_BEGUN: Final = re.compile(r"[A-Za-z_$][\w$.\s]*(?:\(\s*)?\Z")
BARE_KEY_BEGUN: Final = re.compile(r"[^:：=,，{}\[\]\"“”`\n]*[\"'”’`]?\s*\Z")
DECIMAL_COMMA: Final = re.compile(
    r"[-+]?(?:\d{1,3}(?:\.\d{3})+|0|[1-9]\d{0,15}),\d{1,15}(?=\s{0,20}(?:[}\n]|,\s{0,20}[\"'}]))", re.A
)
"""A number with a decimal comma, behind which the object ends or another key stands."""
RAW: Final = re.compile(r"\W[rR][\"']")
"""Before a string in which Python reads no escapes."""
PREFIX: Final = re.compile(r"[uUbBrR](?=[\"'](?!\s*[,}\]:]))")
BRACKETS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.S)
_GAP = r"[ \t\r\n]*"
_END = r"\Z"
_DOUBLE = r'"([^"\\\x00-\x1f]*)"'
_SINGLE = r"'([^'\"\\\x00-\x1f]*)'"
_WORD = "(true|false|null|True|False|None)"
_QUOTED_KEY = r"""(?:"[^"\\\n]*"|'[^'"\\\n]*')"""
_ANY_KEY = rf"(?:{_QUOTED_KEY}|[A-Za-z_$][\w$-]*)"


def _member_pattern(next_key: str, *, growing: bool) -> re.Pattern[str]:
    """A key and a scalar whose end is beyond doubt, or an opening bracket, in one match.

    In a growing text the end of the text tells nothing.
    """
    closed = rf"\}}{_GAP}(?:[,}}\]]{'' if growing else '|' + _END})"
    text_ends = rf"(?={_GAP}(?:{closed}|,{_GAP}(?:{next_key}{_GAP}:|{closed})))"
    word_ends = rf"(?={_GAP}(?:\}}|,{'[^0-9]' if growing else '(?![0-9])'}))"
    return re.compile(
        rf"{_GAP}(?:{_DOUBLE}|{_SINGLE}|([A-Za-z_$][\w$-]*)){_GAP}:{_GAP}"
        rf"(?:{_DOUBLE}{text_ends}|{_SINGLE}{text_ends}|({NUMBER_PATTERN}){word_ends}|{_WORD}{word_ends}|([\[{{]))"
    )


def _begun_pattern(next_key: str) -> re.Pattern[str]:
    """A key and a string of which more text may show that its end is beyond doubt."""
    closed = rf"\}}{_GAP}"
    return re.compile(
        rf"{_GAP}(?:{_DOUBLE}|{_SINGLE}|([A-Za-z_$][\w$-]*)){_GAP}:{_GAP}(?:{_DOUBLE}|{_SINGLE})"
        rf"{_GAP}(?:{closed}|,{_GAP}(?:(?:{next_key}){_GAP}|{closed})?)?\Z"
    )


MEMBER: Final = {growing: _member_pattern(_QUOTED_KEY, growing=growing) for growing in (False, True)}
MEMBER_OF_BARE: Final = {growing: _member_pattern(_ANY_KEY, growing=growing) for growing in (False, True)}
_QUOTED_KEY_BEGUN = r"""(?:"[^"\\\n]*"?|'[^'\\\n]*'?)"""
BEGUN: Final = _begun_pattern(_QUOTED_KEY_BEGUN)
BEGUN_OF_BARE: Final = _begun_pattern(rf"(?:{_QUOTED_KEY_BEGUN}|[A-Za-z_$][\w$-]*)")
_TEXT_ENDS = rf"(?={_GAP}(?:\]|,{_GAP}[\"'{{\[\]\-0-9]))"
ELEMENT: Final = re.compile(
    rf"{_GAP}(?:{_DOUBLE}{_TEXT_ENDS}|{_SINGLE}{_TEXT_ENDS}"
    rf"|({NUMBER_PATTERN})(?={_GAP}[,\]])|{_WORD}(?={_GAP}[,\]])|([\[{{]))"
)
FIRST_KEY: Final = re.compile(r"\{\s{0,40}[\"'“]?(\w{1,60})[\"'”]?\s{0,10}[:：]")
GROUP: Final = re.compile(r"0\d\d(?!\d)")
NEXT_CONTAINER: Final = re.compile(r"[ \t\r\n]*(,)[ \t\r\n]*(?=[{\[])")
