"""Every error that this package raises; `OutputError`, which carries outcomes, is defined with them in `outcome`.

ArosError
├── UsageError(ArosError, ValueError)   before any model call: invalid arguments or configuration
│   ├── ContractError                   a contract that cannot be compiled; names the location in the schema
│   ├── BlueprintError                  a blueprint that cannot be loaded; carries findings with line and column
│   ├── TemplateError                   an input template that uses an unknown name
│   │   └── FilterError                 or an unknown filter
│   └── LocalModelError                 the local model cannot be started; says which command fixes it
├── LimitReached                        a model call that was not made, because a usage limit is used up
└── OutputError (in `outcome`)          only from `.value` and `.output`: there is no value

Bad data is a value (`Rejected`, `Degraded`) until `.value` is accessed. Errors raised by the caller's own code are
never wrapped.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Self


class ArosError(Exception):
    """The base class of all errors of this package."""


class Code(StrEnum):
    """The kind of a blueprint error. The linter and the command line use this code, never the message."""

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
    """An unknown name, and the closest known name. `sure` means that the set of known names is closed and only one of
    them is close, so it is certainly the intended one.

    With `whole`, `meant` is a YAML value such as `[high]`, to be written in place of the whole string, quotes included,
    or of a whole mapping, for which `written` is empty.
    """

    written: str
    meant: str
    sure: bool = False
    whole: bool = False

    def only_in(self, text: str) -> tuple[int, int] | None:
        """Return the position of the wrong name in a text, or None if it does not occur exactly once."""
        found = list(re.finditer(rf"(?<![\w-]){re.escape(self.written)}(?![\w-])", text))
        return found[0].span() if len(found) == 1 else None


class Hint(str):
    """An error sentence, or the end of one, that carries the suggested name as data."""

    __slots__ = ("suggestion",)

    suggestion: Suggestion | None

    def __new__(cls, words: str, suggestion: Suggestion | None = None) -> Self:
        """Create a hint from a sentence and its suggestion."""
        made = super().__new__(cls, words)
        made.suggestion = suggestion
        return made

    def after(self, words: str) -> Hint:
        """Return this suggestion after another sentence."""
        return Hint(f"{words}{self}", self.suggestion)

    def of(self, written: str) -> Hint:
        """Return this suggestion for the given wrong name."""
        return Hint(self, replace(self.suggestion, written=written) if self.suggestion else None)


class UsageError(ArosError, ValueError):
    """Invalid arguments or configuration; raised before any model call.

    If the error is about a step of a pipeline, `step` is the name of the step and `key` the dotted path of the option
    at fault (`input.lines.0`), or the `package.module:name` that cannot be imported. `code` is the kind of error if it
    came from a blueprint, and `suggestion` the name that was probably meant.
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


@contextmanager
def file_errors(what: str, hint: str = "") -> Generator[None]:
    """Re-raise an `OSError` raised in the block as a `UsageError` that says what is impossible, and why."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{what}: {error.strerror or error}{hint}") from error


class ContractError(UsageError):
    """A contract that cannot be compiled, such as an invalid JSON Schema or an empty tag.

    `path` is the location of the error in the schema: keys and list indices.
    """

    def __init__(self, message: str, path: Sequence[str | int] = ()) -> None:
        super().__init__(message)
        self.path = tuple(path)


@dataclass(frozen=True, slots=True)
class Place:
    """The location of a problem in a blueprint: line and column, starting at 1, and the path of keys."""

    line: int
    column: int
    path: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """One error or warning of a blueprint: its kind, message and location.

    `place` is None if the problem concerns the whole file; `end` is the position just after the key or value, if known.
    If the problem is in an imported blueprint, `place` is the position of the import, `file` names the imported
    blueprint, and `cause` is the problem in that file, which may have a cause in turn.
    """

    message: str
    place: Place | None = None
    code: Code = Code.INVALID
    suggestion: Suggestion | None = None
    end: Place | None = None
    file: str | None = None
    cause: Problem | None = None

    @property
    def path(self) -> str:
        """The path of keys to the problem."""
        return self.place.path if self.place is not None else ""

    @property
    def sort_key(self) -> tuple[int, int, str]:
        """Sorts problems in the order of the file."""
        return (self.place.line, self.place.column, self.message) if self.place else (0, 0, self.message)


class BlueprintError(UsageError):
    """A blueprint that cannot be loaded. `findings` has one `Problem` per error; `text` is the text of the file."""

    MOST_SHOWN = 50
    """The maximum number of problems of a blueprint shown at once."""

    def __init__(self, source: str, findings: Sequence[Problem], text: str = "") -> None:
        self.source = source
        self.findings = list(findings)
        self.text = text
        lines = [self.line(problem) for problem in self.findings[: self.MOST_SHOWN]]
        super().__init__("\n".join([*lines, *self.rest]))

    def line(self, problem: Problem) -> str:
        """Return one problem as `source:line:column: message`."""
        place = problem.place
        where = f"{self.source}:{place.line}:{place.column}" if place else self.source
        return f"{where}: {problem.message}"

    @property
    def rest(self) -> list[str]:
        """The line that counts the problems that are not shown; no line if all are shown."""
        more = len(self.findings) - self.MOST_SHOWN
        return [f"{self.source}: and {more} more errors"] if more > 0 else []


class TemplateError(UsageError):
    """An input template that uses an unknown name, or cannot be rendered."""


class FilterError(TemplateError):
    """A template that uses an unknown filter."""


class LocalModelError(UsageError):
    """The local model cannot be started. The message is one sentence and says what to do."""


class LimitReached(ArosError):
    """A model call was not made because a usage limit of the step or run is exhausted. The step fails."""


def raised_at(trace: TracebackType | None) -> str:
    """Return the innermost line of the user's own code in a traceback, such as " (steps.py, line 4)", or an empty
    string if there is none.
    """
    try:
        here = Path.cwd()
    except OSError:  # the folder is gone
        return ""
    found = ""
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        ours = str(trace.tb_frame.f_globals.get("__name__")).partition(".")[0] == "flujo_aros"
        if file.is_relative_to(here) and "site-packages" not in file.parts and not ours:
            found = f" ({file.relative_to(here)}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return found


def raised_words(error: BaseException) -> str:
    """Return what the user's own code raised, and where: "it raised KeyError (steps.py, line 4): 'price'"."""
    what = f"it raised {type(error).__name__}{raised_at(error.__traceback__)}"
    return f"{what}: {error}" if str(error) else what


def other_release(what: str, found: int, known: int, *, earlier: str) -> UsageError:
    """Return the error about stored data in a format other than the one that is `known`; `earlier` says what to do if
    an earlier release has written it.
    """
    when, cure = ("a later", "upgrade with: pip install -U flujo_aros") if found > known else ("an earlier", earlier)
    formats = f"format {found}, this one knows {known}"
    return UsageError(f"{what} was written by {when} release of flujo_aros ({formats}); {cure}")
