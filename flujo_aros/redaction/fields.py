"""Finds values that are secret because of their label in a text, or the name of their field or environment variable."""

from __future__ import annotations

import dataclasses
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, cast

from pydantic import BaseModel

from flujo_aros.json_data import is_dict
from flujo_aros.redaction.labels import STRONG, Called, called_secret
from flujo_aros.redaction.quoting import Quotes, unescaped

_BREAK: Final = re.compile(r"(?<!\\)(?:\\\\)*\\(?:[nrt]|u000[9ad]|[\"'])")
"""What ends a word inside of a JSON string."""
_TAIL: Final = re.compile(r"[^\W\d_]*(?:\\[\s\S]*)?")
_NO_SECRET: Final = re.compile(
    "null|none|nil|true|false|yes|no|not|your|the|here|required|optional|missing|hidden|redacted|unknown|undefined|empty|unset"
    "|string|text|str|value|integer|int|number|object|field|input|basic|bearer|invalid|wrong|incorrect|expected"
)
"""Words that occur in the place of a secret and are not one."""
_FIELD: Final = re.compile(rf"(?i)(?:{'|'.join(STRONG)})(?:[_-]?(?:key|value|\d+))?$")
_MAYBE: Final = re.compile(r"(?i)(?:^|[_-])(?:key|token|auth|authorization|pin|otp|dsn|cookie|jwt)$")
_VARIABLE: Final = re.compile(r"(?i)(?:key|token|secret|password|passwd|pwd|credentials?|dsn)$")
_PLACES: Final = frozenset({"PWD", "OLDPWD"})
"""What shells call the folder one is in: no passwords, and hiding them would hide every path."""
_SCHEMES: Final = ("bearer", "basic", "token")
"""What precedes the secret in a header."""
_DATE: Final = re.compile(r"\d{4}-\d\d?-\d\d?(?:[Tt][\d:.+Zz-]*)?|\d\d?[./-]\d\d?[./-]\d{2,4}|\d\d?:\d\d(?::\d\d)?")
_SHORTEST: Final = 4
_SHORTEST_VARIABLE: Final = 8
_MOST: Final = 10_000
_DEEPEST: Final = 6


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


def labelled_values(text: str) -> tuple[str, ...]:
    """The values that a text labels as secret: after `password:`, `"api_key": `, `the token is`.

    Labels that often mean something else, such as `key`, count only if the value does not look like a word.

    >>> labelled_values('{"user": "ann", "password": "hunter2", "key": "colour"} The access token is t0ps3cret.')
    ('hunter2', 't0ps3cret')
    """
    quotes = Quotes(text)
    found = (
        value
        for called in called_secret(text)
        for value in _spellings(called, quotes)
        if _is_value(value) and (called.sure or _looks_random(value))
    )
    return tuple(dict.fromkeys(found))


def _spellings(called: Called, quotes: Quotes) -> Iterator[str]:
    """A value as it is written, and decoded: a backslash may be literal, or begin an escape of JSON."""
    written = called.written.strip() if called.marked or called.sure else called.written.rstrip(".!?:")
    if "\\" not in written:
        yield written
        return
    mark = quotes.around(*called.place)
    ends = None if called.marked else _BREAK.search(written)
    if ends is not None:
        yield written[: ends.start()]
        # Inside of JSON `\\n` is a new line, unless what stands behind it is no word: as in `ab\\n3w9`.
        if mark is not None and _TAIL.fullmatch(written, ends.end()):
            return
    yield written
    said = unescaped(written, mark or '"')
    if said != written:
        yield said


def secrets_among(value: object) -> tuple[str, ...]:
    """The texts in a value, however deep, whose names say that they are secret, and pydantic's secret types.

    Looks into mappings, lists, models, dataclasses, and the attributes of any other object.

    >>> secrets_among({"user": "ann", "db": {"password": "hunter2"}, "sort_key": "name"})
    ('hunter2',)
    """
    return tuple(dict.fromkeys(_among(value)))


@dataclasses.dataclass(frozen=True, slots=True)
class SecretsIn:
    """The secrets of a value, which is looked through each time that they are gone through, and not before."""

    value: object = dataclasses.field(repr=False)

    def __iter__(self) -> Iterator[str]:
        """Each secret once."""
        return iter(secrets_among(self.value))


def _is_listing(value: object) -> bool:
    return isinstance(value, (list, tuple, set, frozenset))


def _among(value: object) -> Iterator[str]:
    pending: list[tuple[str, object, int]] = [("", value, 0)]
    listed: deque[tuple[str, object, int]] = deque()  # behind all else: a long list may hold more than is looked at
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
    sure = known or _FIELD.search(_spelled(name)) is not None
    maybe = _MAYBE.search(_spelled(name)) is not None and _looks_random(text)
    if (sure or maybe) and _is_value(text) and len(text) >= _SHORTEST:
        yield text


def _members(value: object, name: str, depth: int) -> Iterable[tuple[str, object]]:
    """The members of a value with their names; the items of a list have the name of the list."""
    if is_dict(value):
        return [(str(key), held) for key, held in value.items()]
    if isinstance(value, (list, tuple, set, frozenset)):
        return [(name, held) for held in cast("Iterable[object]", value)]
    if isinstance(value, BaseModel):
        return [*vars(value).items(), *(value.model_extra or {}).items()]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(part.name, getattr(value, part.name, None)) for part in dataclasses.fields(value)]
    # An object of the caller's own may hold anything, such as clients with pools: no further than its attributes.
    return list(getattr(value, "__dict__", {}).items()) if depth == 0 else ()


def _reveal(value: object) -> Callable[[], Any] | None:
    """What gives the text of pydantic's `SecretStr` and kin."""
    reveal: Callable[[], Any] | None = getattr(type(value), "get_secret_value", None) and getattr(
        value, "get_secret_value", None
    )
    return reveal


def _spelled(name: str) -> str:
    """A name with `_` where a capital letter begins a word: `apiKey` is `api_Key`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)


def _is_value(text: str) -> bool:
    words = text.casefold().strip("*.…_-<>{}[]")
    return len(words) > 2 and len(set(words)) > 1 and not _NO_SECRET.fullmatch(words)


def _looks_random(text: str) -> bool:
    """Whether a string is not a word: letters and digits mixed, or a number of several digits that is not a date."""
    if _DATE.fullmatch(text):
        return False
    digits = sum(letter.isdigit() for letter in text)
    return digits >= _SHORTEST or (digits > 0 and any(letter.isalpha() for letter in text) and " " not in text)
