"""Every error that this package raises.

ArosError
├── UsageError(ArosError, ValueError)   before any model call: something was asked for that cannot be
│   ├── ContractError                   a contract that cannot be compiled; names the place in the schema
│   ├── BlueprintError                  a blueprint that cannot be loaded; carries findings with line and column
│   ├── TemplateError                   an input template that names something that is not there
│   └── LocalModelError                 the local model cannot be started; says which command mends it
├── LimitReached                        a model call that was not made, because a usage limit is used up
└── OutputError                         only from `.value` and `.output`: somebody asked for a value that there is not

Bad data is a value (`Rejected`, `Degraded`) until somebody asks for `.value`. Errors of the caller's own code are
never wrapped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flujo_aros.outcome import Issue, Reason
    from flujo_aros.usage import Usage


class ArosError(Exception):
    """The root of all errors of this package."""


class UsageError(ArosError, ValueError):
    """Something was asked for that cannot be; raised before any model call."""


class ContractError(UsageError):
    """A contract that cannot be compiled, such as an invalid JSON Schema or an empty tag."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a blueprint something is wrong: one-based line and column, and the path of keys to it."""

    line: int
    column: int
    path: str = ""


class BlueprintError(UsageError):
    """A blueprint that cannot be loaded. `findings` has one line for each mistake, with its place."""

    def __init__(self, source: str, findings: list[tuple[Place | None, str]]) -> None:
        self.source = source
        self.findings = findings
        super().__init__("\n".join(self._lines()))

    def _lines(self) -> list[str]:
        return [
            f"{self.source}:{p.line}:{p.column}: {text}" if p else f"{self.source}: {text}" for p, text in self.findings
        ]


class TemplateError(UsageError):
    """An input template that names something that is not there, or cannot be rendered."""


class LocalModelError(UsageError):
    """The local model cannot be started. The message is one sentence and says what to do."""


class LimitReached(ArosError):
    """A model call was not made, because what a step or a run may use is used up. Settles the step as failed."""


class OutputError(ArosError):
    """Somebody asked for a value that there is not.

    Raised only by `.value` of an outcome or a step, and by `.output` of a run. The message names the step, the
    reason and what was tried; the texts that the model wrote are attributes and not part of the message.
    """

    def __init__(
        self,
        message: str,
        *,
        reason: Reason | None = None,
        issues: tuple[Issue, ...] = (),
        step: str | None = None,
        stages: tuple[str, ...] = (),
        texts: tuple[str, ...] = (),
        usage: Usage | None = None,
        raw_matched: str | None = None,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.issues = issues
        self.step = step
        self.stages = stages
        self.texts = texts
        self.usage = usage
        self.raw_matched = raw_matched
