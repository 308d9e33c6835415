"""Finds values that are secret because of a name: a label in the text, a field, or an environment variable."""

from __future__ import annotations

import dataclasses
import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final, NamedTuple, TypeGuard

from pydantic import BaseModel

from flujo_aros.json_data import is_dict
from flujo_aros.redaction.text import Quotes, begins_word, unescaped

# --- the names of secrets ---------------------------------------------------------------------------------------------

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
    """The expression for a two-word name, such as `api_key`. It finds the last word and looks back."""
    return f"{last}(?:{'|'.join(rf'(?<={word}[ _-]{last})|(?<={word}{last})' for word in first)})"


_STRONG: Final = (
    *(stem + rest for stem, rest in _STEMS.items()),
    *(form for name in _OTHER_LETTERS for form in (name, json.dumps(name)[1:-1].replace("\\", r"\\{1,2}"))),
    _second(_KEYS, "key"),
    _second(_TOKENS, "token"),
    _second(("connection",), "string"),
)
"""The names of secrets, in lower case. Each begins with literal characters, which makes the search fast."""
_WEAK: Final = ("token", "key", r"auth(?:orization)?", "jwt", "sid", "cookie", "login", r"pin(?:[ _-]code)?", "otp")
"""Names that often have another meaning."""
_IN_SENTENCES: Final = ("token", "pin")
"""Those of them that a sentence gives a value to: `the token is …`."""
_NUMBERED: Final = r"(?:[_-]?(?:key|value|id|text|\d{1,3}))?"

_BREAK: Final = re.compile(r"(?<!\\)(?:\\\\)*\\(?:[nrt]|u000[9ad]|[\"'])")
"""What ends a word inside a JSON string."""
_TAIL: Final = re.compile(r"[^\W\d_]*(?:\\[\s\S]*)?")
_NO_SECRET: Final = re.compile(
    "null|none|nil|true|false|yes|no|not|your|the|here|required|optional|missing|hidden|redacted|unknown|undefined|empty|unset"
    "|string|text|str|value|integer|int|number|object|field|input|basic|bearer|invalid|wrong|incorrect|expected"
)
"""Words that occur in place of a secret and are not one."""
_MAYBE: Final = re.compile(r"(?i)(?:^|[_-])(?:key|token|auth|authorization|pin|otp|dsn|cookie|jwt)$")
_VARIABLE: Final = re.compile(r"(?i)(?:key|token|secret|password|passwd|pwd|credentials?|dsn)$")
_PLACES: Final = frozenset({"PWD", "OLDPWD"})
"""Shell names for the current directory. They are not passwords, and hiding them would hide every path."""
_SCHEMES: Final = ("bearer", "basic", "token")
"""What precedes the secret in a header."""
_DATE: Final = re.compile(r"\d{4}-\d\d?-\d\d?(?:[Tt][\d:.+Zz-]*)?|\d\d?[./-]\d\d?[./-]\d{2,4}|\d\d?:\d\d(?::\d\d)?")
_SHORTEST: Final = 4
_SHORTEST_VARIABLE: Final = 8
_MOST: Final = 10_000
_DEEPEST: Final = 6

# --- in a text --------------------------------------------------------------------------------------------------------

_CLOSING: Final = r"\\?[\"'`*]{0,3}\s{0,3}"
_WHOLE: Final = r"(?!(?<=[^\\]\\)[\"'])"
"""Not the backslash of an escaped quotation mark."""
_IN_QUOTES: Final = (
    # Inside of a JSON string, where a quotation mark and a backslash of the value are escaped twice.
    r"\\\"(?P<escaped>(?:[^\"\\\n]|\\\\\\[\"\\]|\\\\[a-z/]|\\[^\"\\\n]){3,200})"
    r"|\"(?P<double>(?:[^\"\\\n]|\\.){3,200})|'(?P<single>(?:[^'\\\n]|\\[^\n]){3,200})"
)
_QUOTED: Final = ("escaped", "double", "single")


class _Labelled(NamedTuple):
    """A value after the name of a secret, as written there."""

    written: str
    place: tuple[int, int]
    sure: bool
    """It is a secret even if it looks like a word."""
    quoted: bool
    """Quotation marks delimit it."""


@cache  # compiling these takes a tenth of the import time, and many programs never hide a secret
def _grammar() -> tuple[tuple[tuple[re.Pattern[str], ...], bool, tuple[tuple[re.Pattern[str], bool], ...]], ...]:
    """Names, whether they must begin a word, and the values after them, each with whether it is certainly a secret."""
    value = re.compile(
        rf"{_CLOSING}(?::=|=>|->|[:=：]|\\{{1,2}}uff1a)[*`]{{0,3}}\s{{0,3}}"
        rf"(?:{_IN_QUOTES}|`?(?P<bare>[^\s\"'`,;(){{}}\[\]<>]{{3,200}}(?<![.:?]){_WHOLE}))"
    )
    element = re.compile(r">\s{0,3}(?P<bare>[^\s<>][^<>\n]{2,199})</")
    in_sentence = re.compile(
        rf"[\"'`]?(?:\s+(?i:is|was|are|ist|es|est)[:\s]\s{{0,3}}|\s{{0,3}}\|\s{{0,3}})[\"'`]?(?P<bare>[^\s\"'`,;|]{{4,200}}){_WHOLE}"
    )
    code = re.compile(
        rf"{_CLOSING}[:=][*`]{{0,3}}\s{{0,3}}(?:(?i:bearer|basic)\s+)?(?:\\?[\"'`])?(?P<bare>[\w.+/=~!@#$%^&\\-]{{4,200}}){_WHOLE}"
    )
    header = re.compile(r"\\?[\"']?\s{0,3}[:=]\s{0,3}\\?[\"']?(?i:bearer|basic|token)\s+(?P<bare>[^\s\"'\\]{4,400})")
    return (
        (_all_of(_STRONG, _NUMBERED), False, ((value, True), (element, True), (in_sentence, False))),
        (_all_of(_IN_SENTENCES), False, ((in_sentence, False),)),
        (_all_of(("authorization",)), False, ((header, True),)),
        (_all_of(_WEAK), True, ((code, False),)),
    )


def _all_of(names: tuple[str, ...], rest: str = "") -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(name + rest) for name in names)


def labelled_values(text: str) -> tuple[str, ...]:
    """The values that a text labels as secret: after `password:`, `"api_key": `, `the token is`.

    Labels that often mean something else, such as `key`, count only if the value does not look like a word.

    >>> labelled_values('{"user": "ann", "password": "hunter2", "key": "colour"} The access token is t0ps3cret.')
    ('hunter2', 't0ps3cret')
    """
    quotes = Quotes(text)
    found = (
        value
        for label in _labelled(text)
        for value in _spellings(label, quotes)
        if _is_value(value) and (label.sure or _looks_random(value))
    )
    return tuple(dict.fromkeys(found))


def _spellings(label: _Labelled, quotes: Quotes) -> Iterator[str]:
    """A value as written, and decoded: a backslash may be literal, or begin a JSON escape."""
    written = label.written.strip() if label.quoted or label.sure else label.written.rstrip(".!?:")
    if "\\" not in written:
        yield written
        return
    mark = quotes.around(*label.place)
    ends = None if label.quoted else _BREAK.search(written)
    if ends is not None:
        yield written[: ends.start()]
        # Inside of JSON `\\n` is a new line, unless what follows it is not a word: as in `ab\\n3w9`.
        if mark is not None and _TAIL.fullmatch(written, ends.end()):
            return
    yield written
    said = unescaped(written, mark or '"')
    if said != written:
        yield said


def _labelled(text: str) -> Iterator[_Labelled]:
    """Each value with the label of a secret, in any order."""
    lowered = _lowered(text)
    for names, at_word, behind in _grammar():
        for name in names:
            for found in name.finditer(lowered):
                if not at_word or begins_word(text, found.start()):
                    yield from _behind(text, found.end(), behind)


def _behind(text: str, end: int, behind: tuple[tuple[re.Pattern[str], bool], ...]) -> Iterator[_Labelled]:
    """The values after a label that ends there."""
    for pattern, sure in behind:
        value = pattern.match(text, end)
        if value is not None:
            part = str(value.lastgroup)
            yield _Labelled(value[part], value.span(part), sure, part in _QUOTED)


def _lowered(text: str) -> str:
    """The text in lower case, of the same length."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else "".join(c if len(c.lower()) > 1 else c.lower() for c in text)


# --- in values and the environment ------------------------------------------------------------------------------------


def secrets_in(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The values of variables whose names say that they are secret, such as `OPENAI_API_KEY`.

    Values shorter than eight characters are left out: they would be found everywhere.

    >>> secrets_in({"SHOP_API_KEY": "correct-horse", "LANG": "en_GB.UTF-8"})
    ('correct-horse',)
    >>> secrets_in({"PWD": "/home/ann/shop", "SHOP_PWD": "correct-horse"})
    ('correct-horse',)
    """
    secret = ((name, value) for name, value in environment.items() if _VARIABLE.search(name))
    named = (value.strip() for name, value in secret if name not in _PLACES)
    return tuple(value for value in named if len(value) >= _SHORTEST_VARIABLE)


def secrets_among(value: object) -> tuple[str, ...]:
    """The strings in a value whose names say that they are secret, and pydantic's secret types.

    Looks into mappings, lists, models and dataclasses, six levels deep, and at the attributes of any other object.

    >>> secrets_among({"user": "ann", "db": {"password": "hunter2"}, "sort_key": "name"})
    ('hunter2',)
    """
    return tuple(dict.fromkeys(_among(value)))


@dataclasses.dataclass(frozen=True, slots=True)
class SecretsIn:
    """The secrets in a value, which is searched on each iteration, and not before."""

    value: object = dataclasses.field(repr=False)

    def __iter__(self) -> Iterator[str]:
        """Each secret once."""
        return iter(secrets_among(self.value))


def _is_listing(value: object) -> TypeGuard[Iterable[object]]:
    return isinstance(value, (list, tuple, set, frozenset))


def _among(value: object) -> Iterator[str]:
    pending: list[tuple[str, object, int]] = [("", value, 0)]
    listed: deque[tuple[str, object, int]] = deque()  # last of all: a long list may contain more than is searched
    for _ in range(_MOST):
        if not (pending or listed):
            return
        name, here, depth = pending.pop() if pending else listed.popleft()
        reveal = _reveal(here)
        if reveal is not None or isinstance(here, (str, bytes)):
            yield from _texts_of(name, here if reveal is None else reveal(), known=reveal is not None)
        elif depth < _DEEPEST:
            inside = listed if _is_listing(here) else pending
            inside.extend((inner, held, depth + 1) for inner, held in _members(here, name, depth))


def _texts_of(name: str, value: object, *, known: bool) -> Iterator[str]:
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    scheme, _, rest = text.strip().partition(" ")
    text = rest.strip() if rest and scheme.lower() in _SCHEMES else text.strip()
    sure = known or _field_name().search(_spelled(name)) is not None
    maybe = _MAYBE.search(_spelled(name)) is not None and _looks_random(text)
    if (sure or maybe) and _is_value(text) and len(text) >= _SHORTEST:
        yield text


@cache
def _field_name() -> re.Pattern[str]:
    """The name of a field that holds a secret: one of the strong names, possibly followed by a word or a number."""
    return re.compile(rf"(?i)(?:{'|'.join(_STRONG)})(?:[_-]?(?:key|value|\d+))?$")


def _members(value: object, name: str, depth: int) -> Iterable[tuple[str, object]]:
    """The members of a value with their names; the items of a list have the name of the list."""
    if is_dict(value):
        return [(str(key), held) for key, held in value.items()]
    if _is_listing(value):
        return [(name, held) for held in value]
    if isinstance(value, BaseModel):
        return [*vars(value).items(), *(value.model_extra or {}).items()]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(part.name, getattr(value, part.name, None)) for part in dataclasses.fields(value)]
    # An arbitrary object may hold anything, such as clients with pools: only its attributes are searched.
    return list(getattr(value, "__dict__", {}).items()) if depth == 0 else ()


def _reveal(value: object) -> Callable[[], Any] | None:
    """The methods that reveal pydantic's `SecretStr` and similar types."""
    reveal: Callable[[], Any] | None = getattr(type(value), "get_secret_value", None) and getattr(
        value, "get_secret_value", None
    )
    return reveal


def _spelled(name: str) -> str:
    """A name with `_` before each word that begins with a capital letter: `apiKey` is `api_Key`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)


def _is_value(text: str) -> bool:
    words = text.casefold().strip("*.…_-<>{}[]")
    return len(words) > 2 and len(set(words)) > 1 and not _NO_SECRET.fullmatch(words)


def _looks_random(text: str) -> bool:
    """Whether a string is not a word: it mixes letters and digits, or is a number of several digits and not a date."""
    if _DATE.fullmatch(text):
        return False
    digits = sum(letter.isdigit() for letter in text)
    return digits >= _SHORTEST or (digits > 0 and any(letter.isalpha() for letter in text) and " " not in text)
