"""Findings as SARIF 2.1.0, as code scanning services read it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from flujo_aros.lint.finding import Applicability, Finding, Fix, Severity
from flujo_aros.lint.positions import Positions
from flujo_aros.lint.report import Linted, Report
from flujo_aros.lint.rule import Rule
from flujo_aros.visible import visible, visible_line

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def to_sarif(report: Report, rules: Iterable[type[Rule]], version: str) -> dict[str, Any]:
    """One SARIF log with one run. Every rule is described in it, whether or not it found anything."""
    known = sorted(rules, key=lambda rule: rule.code)
    index = {rule.code: at for at, rule in enumerate(known)}
    driver = {
        "name": "aros lint",
        "version": version,
        "semanticVersion": version,
        "rules": [_rule(rule) for rule in known],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"SRCROOT": {"description": {"text": "The folder in which aros lint was run."}}},
        "results": [_result(file, finding, index) for file, finding in report.findings],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: type[Rule]) -> dict[str, Any]:
    sections = rule.sections()
    return {
        "id": rule.code,
        "name": "".join(part.title() for part in rule.name.split("-")),
        "shortDescription": {"text": rule.headline()},
        "fullDescription": {"text": sections["Why is this bad"]},
        "help": {"text": rule.docs(), "markdown": rule.docs()},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _result(file: Linted, finding: Finding, index: dict[str, int]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": index[finding.code],
        "level": _LEVELS[finding.severity],
        "message": {"text": _plain(finding.message)},
        "locations": [_location(file, finding)],
        "partialFingerprints": {"arosFinding/v1": _fingerprint(file, finding)},
    }
    if finding.fix and finding.fix.applicability > Applicability.DISPLAY:
        result["fixes"] = [_fix(file, finding.fix)]
    return result


def _location(file: Linted, finding: Finding) -> dict[str, Any]:
    region = {
        "startLine": finding.place.line,
        "startColumn": finding.place.column,
        "endLine": finding.end.line,
        "endColumn": finding.end.column,
    }
    location: dict[str, Any] = {"physicalLocation": {"artifactLocation": _artifact(file), "region": region}}
    if finding.step:
        location["logicalLocations"] = [{"fullyQualifiedName": visible_line(finding.step), "kind": "step"}]
    return location


def _fix(file: Linted, fix: Fix) -> dict[str, Any]:
    positions = Positions(file.text)
    replacements = [
        {
            "deletedRegion": {**_at(positions, edit.start, ""), **_at(positions, edit.end, "end")},
            "insertedContent": {"text": edit.text},
        }
        for edit in fix.edits
    ]
    change = {"artifactLocation": _artifact(file), "replacements": replacements}
    return {"description": {"text": _plain(fix.title)}, "artifactChanges": [change]}


def _plain(text: str) -> str:
    """A message that a viewer shows as it is: `[words](target)` would be a link in it."""
    return visible(text).replace("](", "] (")


def _at(positions: Positions, offset: int, prefix: str) -> dict[str, int]:
    place = positions.place(offset)
    if prefix:
        return {"endLine": place.line, "endColumn": place.column}
    return {"startLine": place.line, "startColumn": place.column}


def _artifact(file: Linted) -> dict[str, Any]:
    """The file by a URI: relative to the working folder, as code scanning wants it, else absolute."""
    path = Path(file.path)
    if path.is_absolute():
        return {"uri": path.as_uri()}
    return {"uri": quote(path.as_posix()), "uriBaseId": "SRCROOT"}


def _fingerprint(file: Linted, finding: Finding) -> str:
    """The same for the same finding after lines have moved."""
    said = "\0".join((Path(file.path).as_posix(), finding.code, finding.step or "", finding.message))
    return hashlib.sha256(said.encode()).hexdigest()[:32]
