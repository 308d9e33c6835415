"""Hides secrets: each is replaced by a label before a text is sent, and restored in the reply."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from flujo_aros.json_data import is_dict, is_list
from flujo_aros.redaction.kinds import find_by_form, labelled_values, secrets_by_context
from flujo_aros.redaction.text import SHORT, Matcher, Quotes, escaped, unescaped

_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?")


def secrets_of(text: str) -> tuple[str, ...]:
    """Return every value that is secret because of its label or context in a text; hide these when quoting a part of
    the text.

    >>> secrets_of("password: hunter2, see postgres://app:opensesame@db")
    ('hunter2', 'opensesame')
    """
    return tuple(dict.fromkeys((*labelled_values(text), *secrets_by_context(text))))


@dataclass
class Vault:
    """The secrets of one text, by label. `hide` removes them, and `restore` puts them back where a model copied a
    label.

    `named` are values that the caller knows to be secret, in addition to the kinds that are recognized by form. With
    `labelled`, values that the text itself calls a password, a key or a token are secret wherever they occur.

    A label represents the value of a secret, in every notation: escaped inside a JSON string, and unescaped elsewhere,
    both in the text and in the reply. The same value entirely in upper or lower case is also a secret.

    >>> vault = Vault("key: sk-abcdefghijklmnop")
    >>> vault.hide("key: sk-abcdefghijklmnop")
    'key: [secret-1]'
    >>> vault.restore('{"key": "[secret-1]"}')
    '{"key": "sk-abcdefghijklmnop"}'
    """

    text: str
    named: Iterable[str] = ()
    labelled: bool = False
    _labels: dict[str, str] = field(default_factory=dict[str, str])
    _word: str = "secret"

    def __post_init__(self) -> None:
        text = self.text.casefold() if "[" in self.text else ""
        while f"[{self._word}-" in text:  # a text that already contains such labels must be restored unchanged
            self._word += "x"

    def hide(self, text: str, *, fitted: bool = False) -> str:
        """Return the text with every known secret replaced by its label; the same secret has the same label.

        With `fitted`, each label is as long as its secret, and the text cannot be restored.
        """
        parts: list[str] = []
        done, quotes = 0, Quotes(text)
        for start, end in self.places_in(text):
            label = self._label(text[start:end], quotes.around(start, end) if "\\" in text[start:end] else None)
            parts += [text[done:start], _fit(label, end - start) if fitted else label]
            done = end
        return "".join([*parts, text[done:]]) if parts else text

    def places_in(self, text: str) -> list[tuple[int, int]]:
        """Return the spans of the known secrets in a text, in order."""
        return _join_spans(sorted(self._found(text)))

    @property
    def found(self) -> dict[str, str]:
        """The hidden secrets, by label."""
        return {label: secret for secret, label in self._labels.items()}

    def restore(self, text: str) -> str:
        """Return the text with every label replaced by its secret, escaped as its context requires."""
        if not self._labels:
            return text
        quotes = Quotes(text)
        return self._replaced(text, lambda secret, label: _written(secret, quotes, *label.span()))

    def restore_value(self, value: Any) -> Any:
        """Return a JSON value with every label in its strings replaced by its secret."""
        if is_dict(value):
            return {self.restore_value(key): self.restore_value(inner) for key, inner in value.items()}
        if is_list(value):
            return [self.restore_value(inner) for inner in value]
        return self._replaced(value, lambda secret, _: secret) if isinstance(value, str) else value

    def _replaced(self, text: str, put: Callable[[str, re.Match[str]], str]) -> str:
        secrets = self.found

        def put_back(label: re.Match[str]) -> str:
            secret = secrets.get(label.group().lower())
            return label.group() if secret is None else put(secret, label)

        return re.sub(rf"(?i)\[{self._word}-\d+\]", put_back, text)

    @cached_property
    def _known(self) -> dict[str, str]:
        """The named values by their forms in a JSON string, escaped once or twice."""
        escaped = {form: value for value in self._named for form in _forms(value)}
        return {**{twice: once for once in escaped for twice in _forms(once)}, **escaped}

    @cached_property
    def _named(self) -> tuple[str, ...]:
        named = (value for value in dict.fromkeys(self.named) if value.strip())
        return tuple(dict.fromkeys(form for value in named for form in _cases(value)))

    @cached_property
    def _values(self) -> Matcher:
        secrets = secrets_of(self.text) if self.labelled else tuple(secrets_by_context(self.text))
        forms = (form for value in secrets for case in _cases(value) for form in (case, *_forms(case)))
        return Matcher((*self._named, *self._known, *forms))

    def _found(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the spans of the secrets in a text, in any order."""
        for start, end in find_by_form(text):
            if not text.startswith(f"[{self._word}-", start):  # the label of a hidden secret stays unchanged
                yield start, end
        yield from self._values.find_in(text)

    def _label(self, written: str, mark: str | None) -> str:
        """Return the label of a secret as written in prose or between such quotation marks."""
        says = written
        if mark is not None:
            says = self._known[written] if written in self._known else unescaped(written, mark)
        return self._labels.setdefault(says, f"[{self._word}-{len(self._labels) + 1}]")


def without_secrets(text: str, secrets: Iterable[str] = (), *, source: str = "") -> str:
    """Return the text with each secret replaced by a label, the same secret by the same label.

    Values that `source`, the text quoted here, calls a password, a key or a token are hidden as well, because the
    quotation may leave out those words.
    """
    called = secrets_of(source) if source else ()
    return Vault(text, (*secrets, *called), labelled=True).hide(text)


def _written(secret: str, quotes: Quotes, start: int, end: int) -> str:
    """Return a secret as written in place of its label."""
    mark = quotes.around(start, end)
    if mark is not None:
        return escaped(secret, mark)
    # An unquoted label after a key would look like a list.
    bare = quotes.is_bare_value(start, end) and not _NUMBER.fullmatch(secret)
    return f'"{escaped(secret, chr(34))}"' if bare else secret


def _fit(label: str, size: int) -> str:
    return label.ljust(size, "*") if len(label) <= size else "*" * size


def _join_spans(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans without overlaps; they are given in order."""
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _cases(value: str) -> Iterator[str]:
    """Yield a value unchanged, and in upper and lower case, as a template filter may write it.

    A short value is not changed, since it may be an ordinary word in a different case.
    """
    yield value
    if len(value) >= SHORT:
        yield from {value.upper(), value.lower()} - {value}


def _forms(value: str) -> Iterator[str]:
    """Yield a value with JSON escapes, if that differs."""
    for form in (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]):
        if form != value:
            yield form
