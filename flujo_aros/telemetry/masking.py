"""Keeps secrets out of everything that leaves a run: each is replaced by a label of the same length.

The length stays, so that the places of repairs in a text stay true.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from flujo_aros.recovery.secrets import Vault

_SECRET_NAME: Final = re.compile(r"(?i)(?:key|token|secret|password|passwd|pwd|credentials?|dsn)$")
_PLACES: Final = frozenset({"PWD", "OLDPWD"})
"""What shells call the folder one is in: no passwords, and hiding them would hide every path."""
_SHORTEST: Final = 8
_NAME: Final = 200


def secrets_in(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The values of variables whose names say that they are secret, such as `OPENAI_API_KEY`.

    Values shorter than eight characters are left out: they would be found everywhere.

    >>> secrets_in({"SHOP_API_KEY": "correct-horse", "LANG": "en_GB.UTF-8"})
    ('correct-horse',)
    >>> secrets_in({"PWD": "/home/ann/shop", "SHOP_PWD": "correct-horse"})
    ('correct-horse',)
    """
    secret = ((name, value) for name, value in environment.items() if _SECRET_NAME.search(name))
    named = (value.strip() for name, value in secret if name not in _PLACES)
    return tuple(value for value in named if len(value) >= _SHORTEST)


@dataclass(frozen=True, slots=True)
class Mask:
    """Hides every known kind of secret in a text, and these values, also where the text ends within one.

    >>> Mask(("correct-horse",))("the key is correct-horse, no: sk-abcdefghijklmnop")
    'the key is [secret-1]***, no: [secret-2]*********'
    """

    values: tuple[str, ...] = ()

    @classmethod
    def of_environment(cls, more: Iterable[str] = ()) -> Mask:
        """One that also hides the secrets that the environment of this process holds."""
        return cls((*secrets_in(os.environ), *more))

    def __call__(self, text: str) -> str:
        """The text without its secrets, as long as it was."""
        return _masked_name(text, self.values) if len(text) <= _NAME else _masked(text, self.values)


def _masked(text: str, values: tuple[str, ...]) -> str:
    vault = Vault(text, values)
    hidden = vault.hide(text)
    for label, secret in vault.found.items():
        hidden = hidden.replace(label, _fitted(label, len(secret)))
    return hidden


_masked_name: Final = lru_cache(maxsize=4_096)(_masked)
"""For what comes again and again: names of steps and models, paths, messages."""


def _fitted(label: str, size: int) -> str:
    return label.ljust(size, "*") if len(label) <= size else "*" * size
