"""Finds secrets by their form: keys and tokens of well-known kinds, private keys, passwords in URLs.

Ordinary data, such as a hash, a UUID, an account or an order number, is not matched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

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
    # A JSON web token, signed or encrypted, also one that is cut: its parts are JSON in base64.
    "eyJ": (
        r"(?:[A-Za-z0-9_-]{8,}\.(?:eyJ|e30)[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]*)?"
        r"|[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{0,600}(?:\.[A-Za-z0-9_-]{8,}){3}|[A-Za-z0-9_-]{13,}\Z)"
    ),
}
"""How the well-known keys begin and continue."""


@cache
def _key(begin: str) -> re.Pattern[str]:
    """A key that begins a word. Its fixed prefix comes first, which makes the search as fast as possible."""
    rest = _KEYS[begin]
    begin = re.escape(begin)
    escapes = rf"(?<=\\[nrtbf]{begin})|(?<=\\u[0-9A-Fa-f]{{4}}{begin})"
    return re.compile(rf"{begin}(?:(?<![A-Za-z0-9_]{begin})|{escapes}){rest}")


_WORD: Final = r"[A-Z]?[a-z]+(?![A-Za-z0-9._~+/=-])"
"""`bearer certificates` and `basic understanding` are words."""
_SCHEME: Final = r"\b[a-zA-Z][a-zA-Z0-9+.-]{0,30}://"
_CRUMB: Final = r"[\w.-]{1,60}=[^;\s\"'\\,]{1,400}"
_COOKIE: Final = rf"(?=[^\n\"'\\,]{{0,400}}\d)(?P<secret>{_CRUMB}(?:;\s?{_CRUMB}){{0,40}})"
_OTHERS: Final = (
    # A private key, also one whose end was cut off.
    ("-----begin", r"-----BEGIN [A-Z0-9 ]{0,40}(?:-----[\s\S]*?(?:-----END [A-Z0-9 ]{0,40}-----|\Z)|\Z)"),
    ("bearer", rf"(?i:bearer)\s+(?!{_WORD})(?P<secret>[A-Za-z0-9._~+/=-]{{8,}})"),
    ("basic", r"(?i:\bbasic)\s+(?=[A-Za-z+/]{0,300}[0-9=])(?P<secret>[A-Za-z0-9+/]{12,}={0,2})"),
    ("cookie", rf"(?i:cookie)\\?[\"']?\s{{0,3}}:\s{{0,3}}\\?[\"']?{_COOKIE}"),
    # A password may contain anything: it ends at the last `@` before a host name. A port is not a password.
    (
        "://",
        rf"{_SCHEME}[^\s/:@\"'<>]{{0,200}}:(?!\d{{1,5}}/)(?P<secret>(?:(?!://)[^\s\"'<>]){{1,200}})@(?=\[?[A-Za-z0-9])",
    ),
    # The same, cut before the `@`; digits alone are a port.
    ("://", rf"{_SCHEME}[^\s/:@\"'<>]{{1,200}}:(?P<secret>(?!\d+\Z)[^\s/@\"'<>]{{1,200}})\Z"),
    # The path of a webhook is all that is needed to post to it.
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
    """The spans of what is secret by its form, in any order.

    >>> text = "Use AKIAIOSFODNN7EXAMPLE for the order 4711-0815."
    >>> [text[start:end] for start, end in find_by_form(text)]
    ['AKIAIOSFODNN7EXAMPLE']
    """
    for begin in _KEYS:
        if begin in text:
            yield from (found.span() for found in _key(begin).finditer(text))
    yield from _marked(text)


def secrets_by_context(text: str) -> Iterator[str]:
    """Values that are secret because of their context, such as a password in a URL, and parts of them.

    Quoted alone they would not be recognized.

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
    """Whether a part of a secret is itself a secret: a line of a private key is, a word is not."""
    letters = any(letter.isalpha() for letter in part)
    return len(part) >= _SHORTEST_PART and letters and any(letter.isdigit() or letter.isupper() for letter in part[1:])
