"""What stages have achieved before, as frozen data: a ladder that adapts orders and leaves out its stages by it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

_ENOUGH: Final = 20
"""So many tries without one success, and a stage is left out."""


@dataclass(frozen=True, slots=True)
class Achieved:
    """How often a stage was tried for a model and a schema, how often it gave a value, and what it took."""

    tries: int
    successes: int
    calls: int = 0
    cost: Decimal | None = None

    @property
    def hopeless(self) -> bool:
        """Whether it was tried often enough to be left out."""
        return self.tries >= _ENOUGH and not self.successes

    @property
    def worth(self) -> float:
        """Values for each call, with one success and one failure taken for granted so that little counts little."""
        calls_each = self.calls / self.tries if self.tries and self.calls else 1
        return (self.successes + 1) / (self.tries + 2) / max(calls_each, 1)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The record of the past by model, schema fingerprint and stage. The same table always gives the same ladder.

    >>> table = Evidence.of([("m", "abc", "retry", Achieved(tries=30, successes=0))])
    >>> table.about("m", "abc", "retry").hopeless
    True
    """

    table: tuple[tuple[tuple[str, str, str], Achieved], ...] = ()

    @classmethod
    def of(cls, rows: Iterable[tuple[str, str, str, Achieved]]) -> Evidence:
        """A table of rows (model, schema fingerprint, stage, what was achieved)."""
        return cls(tuple(((model, schema, stage), achieved) for model, schema, stage, achieved in rows))

    def about(self, model: str, schema_hash: str, stage: str) -> Achieved:
        """What is known of a stage; nothing known is no try."""
        return dict(self.table).get((model, schema_hash, stage), Achieved(0, 0))
