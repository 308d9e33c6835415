"""Keeps secrets out of repair prompts: each is replaced by a label before a text leaves, and put back in the reply."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from flujo_aros.recovery.named import labelled_in

_CUT: Final = 16
"""From so many characters on, the beginning of a secret is a secret too: the text may end in the middle of one."""
_SHORT: Final = 6
"""A value shorter than that counts only as a word of its own."""
_BEFORE: Final = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf]))"

_PATTERNS: Final = (
    # A private key, also one whose end was cut off.
    re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}(?:-----[\s\S]*?(?:-----END [A-Z0-9 ]{0,40}-----|\Z)|\Z)"),
    re.compile(r"\bsk-[A-Za-z0-9_-]{12,}"),
    re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}"),
    re.compile(r"\bgh[pousr]_[A-Za-z0-9]{12,}"),
    re.compile(r"\bgithub_pat_[A-Za-z0-9_]{5,}"),
    re.compile(r"\bxox[a-z]-[A-Za-z0-9-]{8,}"),
    re.compile(r"(?i:\bbearer)\s+(?P<secret>[A-Za-z0-9._~+/=-]{8,})"),
    re.compile(r"\b[a-zA-Z][a-zA-Z0-9+.-]{0,30}://[^\s/:@\"'<>]{0,200}:(?P<secret>[^\s/@\"'<>]{1,200})@"),
    # The same, cut before the `@`; digits alone are a port.
    re.compile(r"\b[a-zA-Z][a-zA-Z0-9+.-]{0,30}://[^\s/:@\"'<>]{1,200}:(?P<secret>(?!\d+\Z)[^\s/@\"'<>]{1,200})\Z"),
)


@dataclass(slots=True)
class Vault:
    """The secrets of one text, by label. `hide` takes them out, `restore` puts them back where a model copied a label.

    `named` are values that the caller knows to be secret, beside the kinds that are found by their looks. `labelled`:
    what the text itself calls a password, a key or a token is one, too, wherever it stands.

    >>> vault = Vault("key: sk-abcdefghijklmnop")
    >>> vault.hide("key: sk-abcdefghijklmnop")
    'key: [secret-1]'
    >>> vault.restore('{"key": "[secret-1]"}')
    '{"key": "sk-abcdefghijklmnop"}'
    """

    text: str
    named: Iterable[str] = ()
    labelled: bool = False
    _values: tuple[str, ...] = ()
    _labels: dict[str, str] = field(default_factory=dict[str, str])
    _word: str = "secret"

    def __post_init__(self) -> None:
        while f"[{self._word}-" in self.text:  # a text that holds our own labels must come back unchanged
            self._word += "x"
        called = labelled_in(self.text) if self.labelled else ()
        self._values = tuple(dict.fromkeys(_forms((*self.named, *called))))

    def hide(self, text: str) -> str:
        """The text with every known secret replaced by its label; the same secret has the same label."""
        parts: list[str] = []
        done = 0
        for start, end in _joined(sorted(self._found(text))):
            parts += [text[done:start], self._label(text[start:end])]
            done = end
        return "".join([*parts, text[done:]]) if parts else text

    @property
    def found(self) -> dict[str, str]:
        """The secrets that were hidden, by label."""
        return {label: secret for secret, label in self._labels.items()}

    def restore(self, text: str) -> str:
        """The text with every label replaced by the secret that it stands for."""
        if not self._labels:
            return text
        secrets = self.found
        return re.sub(rf"\[{self._word}-\d+\]", lambda found: secrets.get(found.group(), found.group()), text)

    def _found(self, text: str) -> Iterator[tuple[int, int]]:
        """Where the secrets of a text stand, in any order."""
        for pattern in _PATTERNS:
            name = "secret" if "secret" in pattern.groupindex else 0
            # What is hidden already stays as it is.
            yield from (m.span(name) for m in pattern.finditer(text) if not m[name].startswith(f"[{self._word}-"))
        for value in self._values:
            yield from _standing(value, text)

    def _label(self, secret: str) -> str:
        return self._labels.setdefault(secret, f"[{self._word}-{len(self._labels) + 1}]")


def _standing(value: str, text: str) -> Iterator[tuple[int, int]]:
    """Where a value stands in a text, or a beginning of it that is long enough to matter."""
    if len(value) < _SHORT:
        yield from (match.span() for match in re.finditer(rf"{_BEFORE}{re.escape(value)}(?![A-Za-z0-9])", text))
        return
    begin = value[:_CUT]
    at = text.find(begin)
    while at >= 0:
        end = at + len(begin)
        while end < len(text) and end - at < len(value) and text[end] == value[end - at]:
            end += 1
        yield at, end
        at = text.find(begin, end)


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same places without any that overlap; they come in order."""
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _forms(named: Iterable[str]) -> Iterator[str]:
    """Each value as it stands in plain text, and as it stands inside of JSON."""
    for value in named:
        if value.strip():
            yield value
            yield json.dumps(value)[1:-1]
            yield json.dumps(value, ensure_ascii=False)[1:-1]
