"""Finds values that a text labels as secret: `password: …`, `"api_key": "…"`, `the token is …`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from flujo_aros.redaction.matcher import begins_word


class Called(NamedTuple):
    """A value behind a name that is one of secrets, as it is written there."""

    written: str
    place: tuple[int, int]
    sure: bool
    """Whether it is one even if it looks like a word."""
    marked: bool
    """Whether quotation marks tell where it ends."""


_KEYS: Final = ("api", "access", "secret", "private", "signing", "encryption", "master", "account", "license")
_TOKENS: Final = (
    *("auth", "access", "refresh", "session", "bearer", "api", "id", "bot", "app", "csrf", "sas", "security"),
    "personal",
)
_STEMS: Final = {
    "pass": "(?:word|wd|phrase|code|wort)",
    "contrase": r"(?:[ñn]|\\{1,2}u00f1)a",
    "mot": "[ _-]de[ _-]passe",
    "credential": "s?",
    "secret": "",
    "pwd": "",
    "kennwort": "",
    "senha": "",
    "wachtwoord": "",
    "lösenord": "",
}
_OTHER_LETTERS: Final = ("пароль", "密码", "密碼", "パスワード", "비밀번호")


def _second(first: tuple[str, ...], last: str) -> str:
    """A name of two words, found by its last one."""
    return f"{last}(?:{'|'.join(rf'(?<={word}[ _-]{last})|(?<={word}{last})' for word in first)})"


STRONG: Final = (
    *(stem + rest for stem, rest in _STEMS.items()),
    *(form for name in _OTHER_LETTERS for form in (name, json.dumps(name)[1:-1].replace("\\", r"\\{1,2}"))),
    _second(_KEYS, "key"),
    _second(_TOKENS, "token"),
    _second(("connection",), "string"),
)
"""The names of secrets, in small letters. Each begins with letters that are fixed, so that it is found quickly."""
_WEAK: Final = ("token", "key", r"auth(?:orization)?", "jwt", "sid", "cookie", "login", r"pin(?:[ _-]code)?", "otp")
"""Names that often mean something else."""
_SAID_OF: Final = ("token", "pin")
_NUMBERED: Final = r"(?:[_-]?(?:key|value|id|text|\d{1,3}))?"

_CLOSING: Final = r"\\?[\"'`*]{0,3}\s{0,3}"
_WHOLE: Final = r"(?!(?<=[^\\]\\)[\"'])"
"""Not the backslash of a quotation mark that is escaped."""
_IN_MARKS: Final = (
    # Inside of a JSON string, where a quotation mark and a backslash of the value are escaped twice.
    r"\\\"(?P<escaped>(?:[^\"\\\n]|\\\\\\[\"\\]|\\\\[a-z/]|\\[^\"\\\n]){3,200})"
    r"|\"(?P<double>(?:[^\"\\\n]|\\.){3,200})|'(?P<single>(?:[^'\\\n]|\\[^\n]){3,200})"
)
_MARKED: Final = ("escaped", "double", "single")
_VALUE: Final = re.compile(
    rf"{_CLOSING}(?::=|=>|->|[:=：]|\\{{1,2}}uff1a)[*`]{{0,3}}\s{{0,3}}"
    rf"(?:{_IN_MARKS}|`?(?P<bare>[^\s\"'`,;(){{}}\[\]<>]{{3,200}}(?<![.:?]){_WHOLE}))"
)
_ELEMENT: Final = re.compile(r">\s{0,3}(?P<bare>[^\s<>][^<>\n]{2,199})</")
_SAID: Final = re.compile(
    rf"[\"'`]?(?:\s+(?i:is|was|are|ist|es|est)[:\s]\s{{0,3}}|\s{{0,3}}\|\s{{0,3}})[\"'`]?(?P<bare>[^\s\"'`,;|]{{4,200}}){_WHOLE}"
)
_CODE: Final = re.compile(
    rf"{_CLOSING}[:=][*`]{{0,3}}\s{{0,3}}(?:(?i:bearer|basic)\s+)?(?:\\?[\"'`])?(?P<bare>[\w.+/=~!@#$%^&\\-]{{4,200}}){_WHOLE}"
)
_HEADER: Final = re.compile(
    r"\\?[\"']?\s{0,3}[:=]\s{0,3}\\?[\"']?(?i:bearer|basic|token)\s+(?P<bare>[^\s\"'\\]{4,400})"
)


def _all_of(names: tuple[str, ...], rest: str = "") -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(name + rest) for name in names)


_GRAMMAR: Final = (
    (_all_of(STRONG, _NUMBERED), False, ((_VALUE, True), (_ELEMENT, True), (_SAID, False))),
    (_all_of(_SAID_OF), False, ((_SAID, False),)),
    (_all_of(("authorization",)), False, ((_HEADER, True),)),
    (_all_of(_WEAK), True, ((_CODE, False),)),
)
"""Names, whether they must begin a word, and what comes behind them: each with whether it is surely secret."""


def called_secret(text: str) -> Iterator[Called]:
    """Each value with the label of a secret, in any order.

    >>> [called.written for called in called_secret('{"user": "ann", "password": "hunter2"}')]
    ['hunter2']
    """
    lowered = _lowered(text)
    for names, at_word, behind in _GRAMMAR:
        for name in names:
            for found in name.finditer(lowered):
                if not at_word or begins_word(text, found.start()):
                    yield from _behind(text, found.end(), behind)


def _behind(text: str, end: int, behind: tuple[tuple[re.Pattern[str], bool], ...]) -> Iterator[Called]:
    """The values after a label that ends there."""
    for pattern, sure in behind:
        value = pattern.match(text, end)
        if value is not None:
            part = str(value.lastgroup)
            yield Called(value[part], value.span(part), sure, part in _MARKED)


def _lowered(text: str) -> str:
    """The text in lower case, of the same length."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else "".join(c if len(c.lower()) > 1 else c.lower() for c in text)
