"""The findings of the linter, with their places and fixes, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

from flujo_aros.errors import Place


class Severity(StrEnum):
    """The severity of a finding: with an `error` the blueprint does not run, a `warning` is a likely problem, `info` a
    recommendation."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Applicability(IntEnum):
    """When a fix may be applied: never (`display`), after a review (`unsafe`), or by `--fix` (`safe`)."""

    DISPLAY = 0
    UNSAFE = 1
    SAFE = 2

    @property
    def word(self) -> str:
        """Its name in every output."""
        return "display-only" if self is Applicability.DISPLAY else self.name.lower()


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Replace the text between two offsets of a file with `text`; equal offsets insert it."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """The fix of a finding: edits that belong together."""

    title: str
    edits: tuple[Edit, ...]
    applicability: Applicability = Applicability.SAFE

    def as_unsafe(self) -> Fix:
        """The same fix, but unsafe."""
        return Fix(self.title, self.edits, min(self.applicability, Applicability.UNSAFE))


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. It covers the text from `place` up to `end`, and `place.path` is the path of keys to it. `step` is
    the full name of the step that it concerns; a nested one is named `parent/branch/step`.
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
