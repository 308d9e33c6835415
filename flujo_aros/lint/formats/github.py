"""Findings as workflow commands, which GitHub shows beside the changed lines."""

from __future__ import annotations

from typing import Final

from flujo_aros.lint.finding import Severity
from flujo_aros.lint.report import Report
from flujo_aros.visible import visible

_LEVELS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def to_github(report: Report) -> str:
    """One `::error file=…` line for each finding."""
    lines: list[str] = []
    for file, finding in report.findings:
        place, end = finding.place, finding.end
        options = {"file": file.path.replace("\\", "/"), "line": place.line, "endLine": end.line}
        if place.line == end.line:  # GitHub wants columns only within one line
            options |= {"col": place.column, "endColumn": end.column}
        options["title"] = f"{finding.code} ({finding.step})" if finding.step else finding.code
        written = ",".join(f"{name}={_property(str(value))}" for name, value in options.items())
        lines.append(f"::{_LEVELS[finding.severity]} {written}::{_message(finding.message)}")
    return "".join(f"{line}\n" for line in lines)


def _message(text: str) -> str:
    return visible(text).replace("%", "%25").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
