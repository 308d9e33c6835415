"""What linting has come to: the findings of each file, what was kept away, what was mended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from flujo_aros.lint.finding import Applicability, Finding, Severity


@dataclass(frozen=True, slots=True)
class Linted:
    """One file. `text` is what the findings speak of; `before` is what it was before its fixes.

    `suppressed` counts the findings that comments keep away, `known` those that are in the baseline.
    """

    path: str
    text: str
    findings: tuple[Finding, ...]
    before: str
    applied: tuple[Finding, ...] = ()
    suppressed: int = 0
    known: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """All files of one call."""

    files: tuple[Linted, ...]

    @property
    def findings(self) -> Iterator[tuple[Linted, Finding]]:
        """Every finding with its file, in order."""
        for file in self.files:
            for finding in file.findings:
                yield file, finding

    @property
    def clean(self) -> bool:
        """Whether nothing was found."""
        return not any(file.findings for file in self.files)

    def fixable(self, at_least: Applicability = Applicability.SAFE) -> int:
        """How many findings have a fix that is at least so safe."""
        return sum(1 for _, each in self.findings if each.fix and each.fix.applicability >= at_least)

    def summary(self) -> Mapping[str, int]:
        """The numbers that `--format json` ends with."""
        counts = Counter(finding.severity for _, finding in self.findings)
        return {
            "files": len(self.files),
            "errors": counts[Severity.ERROR],
            "warnings": counts[Severity.WARNING],
            "infos": counts[Severity.INFO],
            "fixable": self.fixable(),
            "unsafe_fixable": self.fixable(Applicability.UNSAFE) - self.fixable(),
            "fixed": sum(len(file.applied) for file in self.files),
            "suppressed": sum(file.suppressed for file in self.files),
            "known": sum(file.known for file in self.files),
        }
