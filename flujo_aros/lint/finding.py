"""What the linter found, where, and what would mend it: all plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

from flujo_aros.errors import Place


class Severity(StrEnum):
    """How bad a finding is: `error` will not run, `warning` will surprise, `info` is worth writing down."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Applicability(IntEnum):
    """Who may apply a fix: nobody (`display`), somebody who looks at it (`unsafe`), `--fix` (`safe`)."""

    DISPLAY = 0
    UNSAFE = 1
    SAFE = 2

    @property
    def word(self) -> str:
        """The word for it in every output."""
        return "display-only" if self is Applicability.DISPLAY else self.name.lower()


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Put `text` in place of what stands between two offsets of a file; equal offsets insert."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """What would mend a finding: edits that only make sense together."""

    title: str
    edits: tuple[Edit, ...]
    applicability: Applicability = Applicability.SAFE

    def as_unsafe(self) -> Fix:
        """The same fix for somebody who looks at it."""
        return Fix(self.title, self.edits, min(self.applicability, Applicability.UNSAFE))


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. It stands from `place` up to `end`, and `place.path` is the path of keys to it.

    `step` is the full name of the step that it is about; a nested one is named `parent/branch/step`.
    """

    code: str
    severity: Severity
    message: str
    place: Place
    end: Place
    step: str | None = None
    fix: Fix | None = field(default=None, compare=False)

    @property
    def sort_key(self) -> tuple[int, int, str, str]:
        """From the top of the file to its end."""
        return (self.place.line, self.place.column, self.code, self.message)
