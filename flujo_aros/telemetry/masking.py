"""Keeps secrets out of everything that leaves a run: each is replaced by a label of the same length.

The length stays, so that the places of repairs in a text stay true.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from flujo_aros.events import AgentStarted, Event, ReadFinished, RunStarted
from flujo_aros.redaction import Vault, secrets_in, secrets_of

_NAME: Final = 200
_MOST_HEARD: Final = 500
_MOST_READ: Final = 50
_MOST_NAMES: Final = 1_000


@dataclass(slots=True)
class Mask:
    """Masks every known kind of secret in a string, and these values, even where the string ends inside one.

    Once it has heard of more of them, by the events that runs and agents begin with, it hides those too.

    >>> Mask(("correct-horse",))("the key is correct-horse, no: sk-abcdefghijklmnop")
    'the key is [secret-1]***, no: [secret-2]*********'
    """

    values: tuple[str, ...] = ()
    _heard: tuple[str, ...] = ()
    _read: tuple[str, ...] = ()
    """The newest that it has heard of, beside those that it was given; and those that replies called secret."""
    _names: dict[str, str] = field(default_factory=dict[str, str], repr=False, compare=False)
    """Short texts that come again and again, such as names of steps and paths, masked by the values known so far."""

    @classmethod
    def of_environment(cls, more: Iterable[str] = ()) -> Mask:
        """One that also hides the secrets that the environment of this process holds."""
        return cls((*secrets_in(os.environ), *more))

    def hear(self, event: Event) -> None:
        """Take note of the secrets of a run that begins, and of what a reply calls a password, a key or a token.

        The text itself is masked without that; what is told of it, such as an issue, quotes the value alone.
        """
        if isinstance(event, ReadFinished):
            if event.text and (called := secrets_of(event.text)):
                self._read = _newest((*self._read, *called), _MOST_READ)
                self._names = {}
        elif isinstance(event, (RunStarted, AgentStarted)) and event.secrets:
            self._heard = _newest((*self._heard, *event.secrets), _MOST_HEARD)
            self._names = {}  # a new one, after the values: another thread may be filling the old one

    def __call__(self, text: str) -> str:
        """The text without its secrets, as long as it was."""
        names = self._names
        known = names.get(text)
        if known is not None:
            return known
        values = (*self.values, *self._heard, *self._read)
        masked = Vault(text, values, labelled=True).hide(text, fitted=True)
        if len(text) <= _NAME:
            if len(names) >= _MOST_NAMES:
                names.clear()
            names[text] = masked
        return masked


def _newest(values: tuple[str, ...], most: int) -> tuple[str, ...]:
    """Each once, where it came last."""
    return tuple(reversed(dict.fromkeys(reversed(values))))[-most:]
