"""Detects secrets by their form or their name.

Forms are keys and tokens of well-known kinds, private keys and passwords in URLs; names are a label in the text, a
field, or an environment variable. Ordinary data, such as a hash, a UUID, an account or an order number, is not matched
by its form.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final, NamedTuple, TypeGuard, cast

from pydantic import BaseModel

from flujo_aros.json_data import is_dict
from flujo_aros.redaction.text import Quotes, begins_word, unescaped

# --- the forms of secrets ---------------------------------------------------------------------------------------------

_KEYS: Final[Mapping[str, str]] = {
    "sk-": r"[A-Za-z0-9_-]{12,}",  # OpenAI, Anthropic, OpenRouter and others
    **dict.fromkeys(("AKIA", "ASIA"), r"[A-Z0-9]{12,}"),  # AWS
    **dict.fromkeys(("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"[A-Za-z0-9]{12,}"),  # GitHub
    "github_pat_": r"[A-Za-z0-9_]{5,}",
    **dict.fromkeys(("glpat-", "gldt-", "glrt-"), r"[A-Za-z0-9_.-]{10,}"),  # GitLab
    "xox": r"[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{8,}",  # Slack
    "xapp-": r"\d-[A-Za-z0-9-]{8,}",
    **dict.fromkeys(("sk_live_", "sk_test_", "rk_live_", "rk_test_"), r"[A-Za-z0-9]{8,}"),  # Stripe
    "whsec_": r"[A-Za-z0-9+/=]{12,}",
    "AIza": r"[A-Za-z0-9_-]{12,}",  # Google
    "ya29.": r"[A-Za-z0-9_-]{12,}",
    "GOCSPX-": r"[A-Za-z0-9_-]{9,}",
    **dict.fromkeys(("hf_", "npm_", "gsk_", "pplx-"), r"(?=[A-Za-z]{0,30}\d)[A-Za-z0-9]{20,}"),
    "pypi-": r"AgE[A-Za-z0-9_-]{9,}",
    "SG.": r"[A-Za-z0-9_-]{12,}\.[A-Za-z0-9_-]{8,}",  # SendGrid
    "key-": r"[0-9a-f]{32}(?![A-Za-z0-9])",  # Mailgun
    "dapi": r"[0-9a-f]{32}(?![A-Za-z0-9])",  # Databricks
    **dict.fromkeys(("dop_v1_", "doo_v1_"), r"[0-9a-f]{16,}"),  # DigitalOcean
    **dict.fromkeys(("shpat_", "shpss_", "shppa_"), r"[0-9a-fA-F]{16,}"),  # Shopify
    "hvs.": r"[A-Za-z0-9_-]{16,}",  # Vault
    "lin_api_": r"[A-Za-z0-9]{12,}",  # Linear
    "ATATT3": r"[A-Za-z0-9_=+/-]{12,}",  # Atlassian
    "AGE-SECRET-KEY-1": r"[A-Z0-9]{12,}",
    # A JSON web token, signed or encrypted, even if it is cut off: its parts are JSON in base64.
    "eyJ": (
        r"(?:[A-Za-z0-9_-]{8,}\.(?:eyJ|e30)[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]*)?"
        r"|[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{0,600}(?:\.[A-Za-z0-9_-]{8,}){3}|[A-Za-z0-9_-]{13,}\Z)"
    ),
}
"""The prefixes of well-known keys, and the characters that may follow."""


@cache
def _key(begin: str) -> re.Pattern[str]:
    """Return a key that begins a word. Its fixed prefix comes first, which makes the search as fast as possible."""
    rest = _KEYS[begin]
    begin = re.escape(begin)
    # After an escape of JSON, of a URL (`%20`) or of a terminal (`[1m`), a letter or digit is not part of a word.
    escapes = rf"(?<=\\[nrtbf]{begin})|(?<=\\u[0-9A-Fa-f]{{4}}{begin})|(?<=%[0-9A-Fa-f]{{2}}{begin})|(?<=\[\dm{begin})"
    return re.compile(rf"{begin}(?:(?<![A-Za-z0-9_]{begin})|{escapes}){rest}")


_WORD: Final = r"[A-Z]?[a-z]+(?![A-Za-z0-9._~+/=-])"
"""A plain word, as in `bearer certificates` and `basic understanding`."""
_SCHEME: Final = r"\b[a-zA-Z][a-zA-Z0-9+.-]{0,30}://"
_CRUMB: Final = r"[\w.-]{1,60}=[^;\s\"'\\,]{1,400}"
_COOKIE: Final = rf"(?=[^\n\"'\\,]{{0,400}}\d)(?P<secret>{_CRUMB}(?:;\s?{_CRUMB}){{0,40}})"
_OTHERS: Final = (
    # A private key, even one whose end is cut off.
    ("-----begin", r"-----BEGIN [A-Z0-9 ]{0,40}(?:-----[\s\S]*?(?:-----END [A-Z0-9 ]{0,40}-----|\Z)|\Z)"),
    ("bearer", rf"(?i:bearer)(?:\s|%20)+(?!{_WORD})(?P<secret>[A-Za-z0-9._~+/=-]{{8,}})"),
    ("basic", r"(?i:\bbasic)\s+(?=[A-Za-z+/]{0,300}[0-9=])(?P<secret>[A-Za-z0-9+/]{12,}={0,2})"),
    ("cookie", rf"(?i:cookie)\\?[\"']?\s{{0,3}}:\s{{0,3}}\\?[\"']?{_COOKIE}"),
    # A password may contain anything: it ends at the last `@` before a host name. A port is not a password.
    (
        "://",
        rf"{_SCHEME}[^\s/:@\"'<>]{{0,200}}:(?!\d{{1,5}}/)(?P<secret>(?:(?!://)[^\s\"'<>]){{1,200}})@(?=\[?[A-Za-z0-9])",
    ),
    # The same, truncated before the `@`; digits alone are a port.
    ("://", rf"{_SCHEME}[^\s/:@\"'<>]{{1,200}}:(?P<secret>(?!\d+\Z)[^\s/@\"'<>]{{1,200}})\Z"),
    # Anyone who knows the path of a webhook can post to it.
    ("://hooks.slack.com/", r"://hooks\.slack\.com/(?:services|workflows)/(?P<secret>[\w/-]{12,})"),
    ("/api/webhooks/", r"discord(?:app)?\.com/api/webhooks/(?P<secret>[\w/-]{12,})"),
    # The signature of a URL grants access to its target.
    ("sig", r"(?i:[?&;](?:x-amz-|x-goog-)?sig(?:nature)?=)(?P<secret>[A-Za-z0-9%+/=_-]{16,})"),
    ("x-amz-security-token", r"(?i:x-amz-security-token=)(?P<secret>[A-Za-z0-9%+/=_-]{16,})"),
    ("q~", r"(?<![\w.~-])(?P<secret>[\w.~-]{3}\dQ~[\w.~-]{24,40})"),  # Azure
    (":aa", r"(?<!\d)\d{8,10}:(?P<secret>AA[A-Za-z0-9_-]{30,40})"),  # Telegram
    ("--user", r"--user[ =][\"']?[\w.@-]{1,60}:(?P<secret>[^\s\"'\\]{3,200})"),
    ("curl", r"curl\s(?:[^\n]{0,200}?\s)?-u\s{0,3}[\"']?[\w.@-]{1,60}:(?P<secret>[^\s\"'\\]{3,200})"),
)
"""For each kind a lowercase marker that its text contains, and its pattern: the whole match, or the group `secret`."""
_compiled = cache(re.compile)
"""Compiles a pattern when a text contains its marker; compiling all of them would take a sixth of the import time."""
_SHORTEST_PART: Final = 8
_PARTS: Final = re.compile(r"\\+[nrt]|[\s;=]+|-----[A-Z0-9 ]*(?:-----)?")
"""Each word or line of a longer secret is a secret as well."""


def find_by_form(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of text that is secret by its form, in any order.

    >>> text = "Use AKIAIOSFODNN7EXAMPLE for the order 4711-0815."
    >>> [text[start:end] for start, end in find_by_form(text)]
    ['AKIAIOSFODNN7EXAMPLE']
    """
    for begin in _KEYS:
        if begin in text:
            yield from (found.span() for found in _key(begin).finditer(text))
    yield from _marked(text)


def secrets_by_context(text: str) -> Iterator[str]:
    """Yield values that are secret because of their context, such as a password in a URL, and parts of them.

    On their own they would not be recognized.

    >>> list(secrets_by_context("postgres://app:opensesame@db"))
    ['opensesame']
    """
    for start, end in _marked(text):
        whole = text[start:end]
        yield whole
        yield from (part for part in _PARTS.split(whole) if part != whole and _is_distinctive(part))


def _marked(text: str) -> Iterator[tuple[int, int]]:
    lowered = text.lower()
    for mark, source in _OTHERS:
        if mark in lowered:
            pattern = _compiled(source)
            name = "secret" if "secret" in pattern.groupindex else 0
            yield from (found.span(name) for found in pattern.finditer(text))


def _is_distinctive(part: str) -> bool:
    """Return whether a part of a secret is itself a secret: a line of a private key is, but a word is not."""
    letters = any(letter.isalpha() for letter in part)
    return len(part) >= _SHORTEST_PART and letters and any(letter.isdigit() or letter.isupper() for letter in part[1:])


# --- the names of secrets ---------------------------------------------------------------------------------------------

_KEY_WORDS: Final = ("api", "access", "secret", "private", "signing", "encryption", "master", "account", "license")
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
    """Return the expression for a two-word name, such as `api_key`. It finds the last word and looks back."""
    return f"{last}(?:{'|'.join(rf'(?<={word}[ _-]{last})|(?<={word}{last})' for word in first)})"


_STRONG: Final = (
    *(stem + rest for stem, rest in _STEMS.items()),
    *(form for name in _OTHER_LETTERS for form in (name, json.dumps(name)[1:-1].replace("\\", r"\\{1,2}"))),
    _second(_KEY_WORDS, "key"),
    _second(_TOKENS, "token"),
    _second(("connection",), "string"),
)
"""The names of secrets, in lower case. Each begins with literal characters, which makes the search fast."""
_WEAK: Final = ("token", "key", r"auth(?:orization)?", "jwt", "sid", "cookie", "login", r"pin(?:[ _-]code)?", "otp")
"""Names that often have a different meaning."""
_IN_SENTENCES: Final = ("token", "pin")
"""Those names that can have a value in a sentence: `the token is …`."""
_NUMBERED: Final = r"(?:[_-]?(?:key|value|id|text|\d{1,3}))?"

_BREAK: Final = re.compile(r"(?<!\\)(?:\\\\)*\\(?:[nrt]|u000[9ad]|[\"'])")
"""Characters that end a word inside a JSON string."""
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
"""Words that precede the secret in a header."""
_DATE: Final = re.compile(r"\d{4}-\d\d?-\d\d?(?:[Tt][\d:.+Zz-]*)?|\d\d?[./-]\d\d?[./-]\d{2,4}|\d\d?:\d\d(?::\d\d)?")
_SHORTEST: Final = 4
_SHORTEST_VARIABLE: Final = 8
_MOST: Final = 10_000
_DEEPEST: Final = 6

# --- in a text --------------------------------------------------------------------------------------------------------

_CLOSING: Final = r"\\?[\"'`*]{0,3}\s{0,3}"
_WHOLE: Final = r"(?!(?<=[^\\]\\)[\"'])"
"""Keeps a value from ending with the backslash of an escaped quotation mark."""
_IN_QUOTES: Final = (
    # Inside a JSON string, where a quotation mark and a backslash of the value are escaped twice.
    r"\\\"(?P<escaped>(?:[^\"\\\n]|\\\\\\[\"\\]|\\\\[a-z/]|\\[^\"\\\n]){3,200})"
    r"|\"(?P<double>(?:[^\"\\\n]|\\.){3,200})|'(?P<single>(?:[^'\\\n]|\\[^\n]){3,200})"
)
_QUOTED: Final = ("escaped", "double", "single")


class _Labelled(NamedTuple):
    """A value after the name of a secret, as written there."""

    written: str
    place: tuple[int, int]
    sure: bool
    """Whether the value is a secret even if it looks like a word."""
    quoted: bool
    """Whether the value is in quotation marks."""


@cache  # compiling these takes a tenth of the import time, and many programs never hide a secret
def _grammar() -> tuple[tuple[tuple[re.Pattern[str], ...], bool, tuple[tuple[re.Pattern[str], bool], ...]], ...]:
    """Return names, whether they must begin a word, and the values after them, each with whether it is certainly a
    secret.
    """
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
    """Return the values that a text labels as secret: after `password:`, `"api_key": `, `the token is`.

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
    """Yield a value as written, and decoded: a backslash may be literal, or begin a JSON escape."""
    written = label.written.strip() if label.quoted or label.sure else label.written.rstrip(".!?:")
    if "\\" not in written:
        yield written
        return
    mark = quotes.around(*label.place)
    ends = None if label.quoted else _BREAK.search(written)
    if ends is not None:
        yield written[: ends.start()]
        # Inside JSON `\\n` is a new line, unless what follows it is not a word: as in `ab\\n3w9`.
        if mark is not None and _TAIL.fullmatch(written, ends.end()):
            return
    yield written
    plain = unescaped(written, mark or '"')
    if plain != written:
        yield plain


def _labelled(text: str) -> Iterator[_Labelled]:
    """Yield each value with the label of a secret, in any order."""
    lowered = _lower(text)
    for names, at_word, behind in _grammar():
        for name in names:
            for found in name.finditer(lowered):
                if not at_word or begins_word(text, found.start()):
                    yield from _behind(text, found.end(), behind)


def _behind(text: str, end: int, behind: tuple[tuple[re.Pattern[str], bool], ...]) -> Iterator[_Labelled]:
    """Yield the values after a label that ends there."""
    for pattern, sure in behind:
        value = pattern.match(text, end)
        if value is not None:
            part = str(value.lastgroup)
            yield _Labelled(value[part], value.span(part), sure, part in _QUOTED)


def _lower(text: str) -> str:
    """Return the text in lower case, of the same length: only `İ` has two characters in lower case."""
    return text.replace("İ", "i").lower()


# --- in values and the environment ------------------------------------------------------------------------------------


def secrets_in(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of variables whose names say that they are secret, such as `OPENAI_API_KEY`.

    Values shorter than eight characters are left out, because they would match ordinary text.

    >>> secrets_in({"SHOP_API_KEY": "correct-horse", "LANG": "en_GB.UTF-8"})
    ('correct-horse',)
    >>> secrets_in({"PWD": "/home/ann/shop", "SHOP_PWD": "correct-horse"})
    ('correct-horse',)
    """
    secret = ((name, value) for name, value in environment.items() if _VARIABLE.search(name))
    named = (value.strip() for name, value in secret if name not in _PLACES)
    return tuple(value for value in named if len(value) >= _SHORTEST_VARIABLE)


def secrets_among(value: object) -> tuple[str, ...]:
    """Return the strings in a value whose names say that they are secret, and pydantic's secret types.

    Looks into mappings, lists, models and dataclasses, six levels deep, and at the attributes of any other object.

    >>> secrets_among({"user": "ann", "db": {"password": "hunter2"}, "sort_key": "name"})
    ('hunter2',)
    """
    return tuple(dict.fromkeys(_among(value)))


class SecretsFound(Iterable[str]):
    """Secrets that are searched for only when one is needed, and then only once."""

    def __init__(self, search: Callable[[], Iterable[str]]) -> None:
        self._found: Final = cache(lambda: tuple(dict.fromkeys(search())))

    def __iter__(self) -> Iterator[str]:
        """Return each secret once."""
        return iter(self._found())


def _is_listing(value: object) -> TypeGuard[Iterable[object]]:
    return isinstance(value, (list, tuple, set, frozenset))


def _among(value: object) -> Iterator[str]:
    pending: list[tuple[str, object, int]] = [("", value, 0)]
    listed: deque[tuple[str, object, int]] = deque()  # last, because a long list may contain more than is searched
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
    sure = known or _field_name().search(_snake_case(name)) is not None
    maybe = _MAYBE.search(_snake_case(name)) is not None and _looks_random(text)
    if (sure or maybe) and _is_value(text) and len(text) >= _SHORTEST:
        yield text


@cache
def _field_name() -> re.Pattern[str]:
    """Return the name of a field that contains a secret: one of the strong names, possibly followed by
    a word or a number.
    """
    return re.compile(rf"(?i)(?:{'|'.join(_STRONG)})(?:[_-]?(?:key|value|\d+))?$")


def _members(value: object, name: str, depth: int) -> Iterable[tuple[str, object]]:
    """Return the members of a value with their names; the items of a list have the name of the list."""
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


def _reveal(value: Any) -> Callable[[], Any] | None:
    """Return the method that reveals pydantic's `SecretStr` or a similar type, or None for any other value."""
    return value.get_secret_value if hasattr(cast("type[object]", type(value)), "get_secret_value") else None


def _snake_case(name: str) -> str:
    """Return a name with `_` before each word that begins with a capital letter: `apiKey` is `api_Key`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)


def _is_value(text: str) -> bool:
    words = text.casefold().strip("*.…_-<>{}[]")
    return len(words) > 2 and len(set(words)) > 1 and not _NO_SECRET.fullmatch(words)


def _looks_random(text: str) -> bool:
    """Return whether a string is not a word: it mixes letters and digits, or is a number of several digits and not a
    date.
    """
    if _DATE.fullmatch(text):
        return False
    digits = sum(letter.isdigit() for letter in text)
    return digits >= _SHORTEST or (digits > 0 and any(letter.isalpha() for letter in text) and " " not in text)
