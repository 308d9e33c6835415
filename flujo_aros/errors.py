"""Every error that this package raises; `OutputError`, which carries outcomes, is defined beside them in `outcome`.

ArosError
├── UsageError(ArosError, ValueError)   before any model call: something was asked for that cannot be
│   ├── ContractError                   a contract that cannot be compiled; names the place in the schema
│   ├── BlueprintError                  a blueprint that cannot be loaded; carries findings with line and column
│   ├── TemplateError                   an input template that names something that is not there
│   │   └── FilterError                 or a filter that is not there
│   └── LocalModelError                 the local model cannot be started; says which command mends it
├── LimitReached                        a model call that was not made, because a usage limit is used up
└── OutputError (in `outcome`)          only from `.value` and `.output`: somebody asked for a value that there is not

Bad data is a value (`Rejected`, `Degraded`) until somebody asks for `.value`. Errors of the caller's own code are
never wrapped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class ArosError(Exception):
    """The root of all errors of this package."""


class UsageError(ArosError, ValueError):
    """Something was asked for that cannot be; raised before any model call."""


class ContractError(UsageError):
    """A contract that cannot be compiled, such as an invalid JSON Schema or an empty tag.

    `path` leads to what is wrong inside of a schema: keys, and places of lists.
    """

    def __init__(self, message: str, path: Sequence[str | int] = ()) -> None:
        super().__init__(message)
        self.path = tuple(path)


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a blueprint something is wrong: one-based line and column, and the path of keys to it."""

    line: int
    column: int
    path: str = ""


_TOLD = 50
"""How many mistakes of a blueprint are told at once."""


class BlueprintError(UsageError):
    """A blueprint that cannot be loaded. `findings` has one line for each mistake, with its place."""

    def __init__(self, source: str, findings: list[tuple[Place | None, str]]) -> None:
        self.source = source
        self.findings = findings
        super().__init__("\n".join(self._lines()))

    def _lines(self) -> list[str]:
        lines = [
            f"{self.source}:{p.line}:{p.column}: {text}" if p else f"{self.source}: {text}"
            for p, text in self.findings[:_TOLD]
        ]
        more = len(self.findings) - _TOLD
        return [*lines, f"{self.source}: and {more} more mistakes"] if more > 0 else lines


class TemplateError(UsageError):
    """An input template that names something that is not there, or cannot be rendered."""


class FilterError(TemplateError):
    """A template that uses a filter which is not there."""


class LocalModelError(UsageError):
    """The local model cannot be started. The message is one sentence and says what to do."""


class LimitReached(ArosError):
    """A model call was not made, because what a step or a run may use is used up. Settles the step as failed."""
