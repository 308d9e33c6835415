"""Findings as one JSON document."""

from __future__ import annotations

from typing import Any

from flujo_aros.lint.finding import Finding
from flujo_aros.lint.report import Report


def to_json(report: Report) -> dict[str, Any]:
    """The document of `--format json`."""
    findings = [finding_to_json(file.path, finding) for file, finding in report.findings]
    return {"findings": findings, "summary": dict(report.summary())}


def finding_to_json(path: str, finding: Finding) -> dict[str, Any]:
    """One finding as plain JSON."""
    fix = finding.fix
    return {
        "code": finding.code,
        "severity": finding.severity.value,
        "message": finding.message,
        "path": path,
        "line": finding.place.line,
        "column": finding.place.column,
        "end_line": finding.end.line,
        "end_column": finding.end.column,
        "step": finding.step,
        "fix": None if fix is None else {"title": fix.title, "applicability": fix.applicability.word},
    }
