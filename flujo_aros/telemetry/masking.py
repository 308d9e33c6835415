"""Keeps secrets out of all data that leaves a run, by replacing each with a label of the same length.

The length is kept so that the positions of repairs in a text remain correct.
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

    It also learns secrets from the events at the start of runs and agents, and hides those too.

    >>> Mask(("correct-horse",))("the key is correct-horse, no: sk-abcdefghijklmnop")
    'the key is [secret-1]***, no: [secret-2]*********'
    """

    values: tuple[str, ...] = ()
    _heard: tuple[str, ...] = ()
    _read: tuple[str, ...] = ()
    """The most recent secrets learned from events and from labels in replies, besides the given ones."""
    _names: dict[str, str] = field(default_factory=dict[str, str], repr=False, compare=False)
    """A cache of short strings that recur, such as step names and paths, masked with the values known so far."""

    @classmethod
    def of_environment(cls, more: Iterable[str] = ()) -> Mask:
        """Return a mask that also hides the secrets in the environment of this process."""
        return cls((*secrets_in(os.environ), *more))

    def hear(self, event: Event) -> None:
        """Learn the secrets of a run that starts, and values that a reply labels as a password, a key or a token.

        The reply itself is masked without this, but messages about it, such as issues, quote only the value.
        """
        if isinstance(event, ReadFinished):
            if event.text and (called := secrets_of(event.text)):
                self._read = _newest((*self._read, *called), _MOST_READ)
                self._names = {}
        elif isinstance(event, (RunStarted, AgentStarted)) and event.secrets:
            self._heard = _newest((*self._heard, *event.secrets), _MOST_HEARD)
            self._names = {}  # replaced after the values, because another thread may be filling the old cache

    def __call__(self, text: str) -> str:
        """Return the text with its secrets masked, at the same length."""
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
    """Return each value once, at its last position."""
    return tuple(reversed(dict.fromkeys(reversed(values))))[-most:]
