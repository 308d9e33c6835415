"""Keeps secrets out of everything that leaves a run: each is replaced by a label of the same length.

The length stays, so that the places of repairs in a text stay true.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from flujo_aros.recovery.secrets import Vault

_SECRET_NAME: Final = re.compile(r"(?i)(?:key|token|secret|password|passwd|pwd|credentials?|dsn)$")
_SHORTEST: Final = 8
_SHORTEST_CUT: Final = 16


def secrets_in(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The values of variables whose names say that they are secret, such as `OPENAI_API_KEY`.

    >>> secrets_in({"SHOP_API_KEY": "correct-horse", "LANG": "en_GB.UTF-8"})
    ('correct-horse',)
    """
    return tuple(value for name, value in environment.items() if _SECRET_NAME.search(name))


@dataclass(frozen=True, slots=True)
class Mask:
    """Hides every known kind of secret in a text, and these values.

    Values shorter than eight characters are left alone: they would be found everywhere.

    >>> Mask(["correct-horse"])("the key is correct-horse, no: sk-abcdefghijklmnop")
    'the key is [secret]*****, no: [secret-1]*********'
    """

    values: Iterable[str] = ()
    _known: tuple[str, ...] = field(init=False, repr=False)
    _pattern: re.Pattern[str] | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        known = sorted({value for value in self.values if len(value) >= _SHORTEST}, key=len, reverse=True)
        object.__setattr__(self, "_known", tuple(known))
        pattern = re.compile("|".join(map(re.escape, known))) if known else None
        object.__setattr__(self, "_pattern", pattern)

    @classmethod
    def of_environment(cls, more: Iterable[str] = ()) -> Mask:
        """One that also hides the secrets that the environment of this process holds."""
        return cls((*secrets_in(os.environ), *more))

    def __call__(self, text: str) -> str:
        """The text without its secrets, as long as it was."""
        if self._pattern is not None:
            text = self._pattern.sub(lambda found: _fitted("[secret]", len(found.group())), self._uncut(text))
        vault = Vault(text)
        hidden = vault.hide(text)
        if hidden == text:
            return text
        for label, secret in vault.found.items():
            hidden = hidden.replace(label, _fitted(label, len(secret)))
        return hidden

    def _uncut(self, text: str) -> str:
        """The text with a known value that is cut at its end already hidden."""
        for value in self._known:
            for size in range(min(len(value) - 1, len(text)), _SHORTEST_CUT - 1, -1):
                if text.endswith(value[:size]):
                    return text[:-size] + _fitted("[secret]", size)
        return text


def _fitted(label: str, size: int) -> str:
    return label.ljust(size, "*") if len(label) <= size else "*" * size
