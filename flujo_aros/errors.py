"""Every error that this package raises; `OutputError`, which carries outcomes, is defined beside them in `outcome`.

ArosError
├── UsageError(ArosError, ValueError)   before any model call: something was asked for that cannot be
│   ├── ContractError                   a contract that cannot be compiled; names the place in the schema
│   ├── BlueprintError                  a blueprint that cannot be loaded; carries findings with line and column
│   ├── TemplateError                   an input template that names something that is not there
│   │   └── FilterError                 or a filter that is not there
│   └── LocalModelError                 the local model cannot be started; says which command fixes it
├── LimitReached                        a model call that was not made, because a usage limit is used up
└── OutputError (in `outcome`)          only from `.value` and `.output`: somebody asked for a value that there is not

Bad data is a value (`Rejected`, `Degraded`) until somebody asks for `.value`. Errors of the caller's own code are
never wrapped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Self


class ArosError(Exception):
    """The root of all errors of this package."""


class Code(StrEnum):
    """What kind of error a blueprint has. The linter and the command line go by it, never by a message."""

    UNREADABLE = "unreadable-yaml"
    INVALID = "invalid-blueprint"
    IGNORED = "ignored-key"
    MISSING_IMPORT = "missing-import"
    IMPORT_CYCLE = "import-cycle"
    INVALID_IMPORT = "invalid-import"
    NO_AGENT = "step-without-agent"
    UNKNOWN_AGENT = "unknown-agent"
    DUPLICATE_STEP = "duplicate-step-name"
    INVALID_TEMPLATE = "invalid-template"
    UNKNOWN_FILTER = "unknown-filter"
    UNKNOWN_STEP = "unknown-step-reference"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A name that is not known, and the known name that comes nearest."""

    written: str
    meant: str


class Hint(str):
    """A sentence, or the end of one, with the name that it suggests as data."""

    __slots__ = ("suggestion",)

    suggestion: Suggestion | None

    def __new__(cls, words: str, suggestion: Suggestion | None = None) -> Self:
        """The words, and what they suggest."""
        made = super().__new__(cls, words)
        made.suggestion = suggestion
        return made

    def after(self, words: str) -> Hint:
        """These words behind others: the same suggestion."""
        return Hint(f"{words}{self}", self.suggestion)


class UsageError(ArosError, ValueError):
    """Something was asked for that cannot be; raised before any model call.

    Of an error about a step of a pipeline, `step` is the name of the step and `key` the option at fault, with dots for
    what is inside of it (`input.lines.0`). `code` is what kind of error it is where a blueprint has one, `suggestion`
    the name that may have been meant.
    """

    def __init__(
        self,
        message: str = "",
        *,
        step: str | None = None,
        key: str | None = None,
        code: Code | None = None,
        suggestion: Suggestion | None = None,
    ) -> None:
        super().__init__(message)
        self.step = step
        self.key = key
        self.code = code
        self.suggestion = suggestion or getattr(message, "suggestion", None)


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


@dataclass(frozen=True, slots=True)
class Problem:
    """One error or warning of a blueprint: what kind it is, in words, and where.

    `place` is None where the whole file is meant; `end` is just behind the key or value, where that is known.
    """

    message: str
    place: Place | None = None
    code: Code = Code.INVALID
    suggestion: Suggestion | None = None
    end: Place | None = None

    @property
    def path(self) -> str:
        """The keys that lead to the place."""
        return self.place.path if self.place is not None else ""

    @property
    def sort_key(self) -> tuple[int, int, str]:
        """From the top of the file to its end."""
        return (self.place.line, self.place.column, self.message) if self.place else (0, 0, self.message)


class BlueprintError(UsageError):
    """A blueprint that cannot be loaded. `findings` has one `Problem` for each error, `text` is what was read."""

    MOST_SHOWN = 50
    """How many problems of a blueprint are shown at once."""

    def __init__(self, source: str, findings: Sequence[Problem], text: str = "") -> None:
        self.source = source
        self.findings = list(findings)
        self.text = text
        shown = [self.line(problem) for problem in self.findings[: self.MOST_SHOWN]]
        super().__init__("\n".join([*shown, *self.rest]))

    def line(self, problem: Problem) -> str:
        """One problem as `source:line:column: message`."""
        place = problem.place
        where = f"{self.source}:{place.line}:{place.column}" if place else self.source
        return f"{where}: {problem.message}"

    @property
    def rest(self) -> list[str]:
        """The line about the problems beyond those that are shown; none where all are."""
        more = len(self.findings) - self.MOST_SHOWN
        return [f"{self.source}: and {more} more errors"] if more > 0 else []


class TemplateError(UsageError):
    """An input template that names something that is not there, or cannot be rendered."""


class FilterError(TemplateError):
    """A template that uses a filter which is not there."""


class LocalModelError(UsageError):
    """The local model cannot be started. The message is one sentence and says what to do."""


class LimitReached(ArosError):
    """A model call was not made, because what a step or a run may use is used up. Settles the step as failed."""
