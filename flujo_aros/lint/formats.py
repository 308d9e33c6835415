"""The output formats of findings: text, JSON, GitHub annotations, and SARIF 2.1.0 for code scanning services."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote as quote_word
from typing import Any, Final, TypeAlias
from urllib.parse import quote

from flujo_aros.errors import BlueprintError, Place
from flujo_aros.lint.check import Linted, Report, lint_text
from flujo_aros.lint.edits import Applicability, Finding, Fix, Positions, Severity, unified_diff
from flujo_aros.lint.rule import Rule
from flujo_aros.redaction import Vault
from flujo_aros.visible import visible, visible_line

Paint: TypeAlias = Callable[[str, str], str]
"""Applies a style (`error`, `warning`, `info`, `dim`, `bold`) to a string, or returns it unchanged."""

_MAX_WIDTH: Final = 160


def _without_style(text: str, _style: str) -> str:
    return text


def write_text(report: Report, paint: Paint = _without_style) -> str:
    """Return every finding with its source line, or an empty string if there is none. The same recommendation for
    several steps is shown once, with the other steps below it.
    """
    blocks: list[str] = []
    for file in report.files:
        positions = Positions(file.text)
        together: dict[object, list[Finding]] = {}
        for at, finding in enumerate(file.findings):
            alike = (finding.code, finding.advice) if finding.severity is Severity.INFO and finding.step else at
            together.setdefault(alike, []).append(finding)
        blocks += [_block(file, positions, first, paint, others) for first, *others in together.values()]
    return "\n".join(blocks)


def list_fixes(report: Report, verb: str) -> Iterator[str]:
    """Yield one line for each changed file with the number of its lines that differ, and one below it for each fix."""
    for file in report.files:
        if file.text == file.before:
            continue
        lines = unified_diff(file.path, file.before, file.text).splitlines()[2:]
        added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
        yield f"{verb} {file.path} (+{added} -{removed} lines):"
        for finding in file.applied:
            yield f"  line {finding.place.line}: {finding.code} {finding.fix.title if finding.fix else finding.message}"


def summary_line(report: Report) -> str:
    """Return one sentence about all files."""
    totals = report.summary()
    files = _count_words(totals["files"], "file")
    fixed = f"{_count_words(totals['fixed'], 'fix', 'fixes')} made. " if totals["fixed"] else ""
    hidden = [
        f"{totals[k]} {word}" for k, word in (("suppressed", "ignored"), ("known", "in the baseline")) if totals[k]
    ]
    aside = f" ({', '.join(hidden)})" if hidden else ""
    if report.clean:
        return f"{fixed}No findings in {files}{aside}."
    kinds = [_count_words(totals[f"{kind}s"], kind) for kind in ("error", "warning", "info") if totals[f"{kind}s"]]
    fixable = f" {totals['fixable']} can be fixed with --fix." if totals["fixable"] else ""
    more = f" {totals['unsafe_fixable']} more with --unsafe-fixes." if totals["unsafe_fixable"] else ""
    return f"{fixed}Found {', '.join(kinds)} in {files}{aside}.{fixable}{more}"


def _block(file: Linted, positions: Positions, finding: Finding, paint: Paint, also: Sequence[Finding] = ()) -> str:
    place = finding.place
    head = f"{paint(visible_line(f'{file.path}:{place.line}:{place.column}'), 'bold')}: "
    head += f"{paint(finding.severity.value, finding.severity.value)}[{finding.code}] {visible(finding.message)}"
    lines = [head, *_excerpt(positions, place, finding.end, finding.severity.value, paint)]
    if finding.fix:
        how = {
            Applicability.SAFE: "--fix",
            Applicability.UNSAFE: "--unsafe-fixes",
            Applicability.DISPLAY: "by hand",
        }[finding.fix.applicability]
        lines.append(paint(f"  = fix ({how}): ", "dim") + visible_line(finding.fix.title))
    if also:
        steps = ", ".join(f"step {each.step!r} (line {each.place.line})" for each in also)
        lines.append(paint("  = also: ", "dim") + visible_line(steps))
    return "\n".join(lines) + "\n"


def write_error(error: BlueprintError) -> str:
    """Return each error of a blueprint with its source line and a caret under the position, as `aros
    lint` shows findings.
    """
    positions = Positions(error.text)
    lines: list[str] = []
    for problem in error.findings[: error.MOST_SHOWN]:
        lines.append(error.line(problem))
        if problem.place is not None:
            place = problem.place
            lines += _excerpt(positions, place, problem.end or place, Severity.ERROR.value, _without_style)
    return "\n".join([*lines, *error.rest, *_how_to_fix(error)])


def _how_to_fix(error: BlueprintError) -> list[str]:
    """Return the command that corrects some of the errors, or an empty list where they have no fix."""
    linted = lint_text(error.text, source=error.source, folder=Path(error.source).parent)
    report = Report(
        (replace(linted, findings=tuple(each for each in linted.findings if each.severity is Severity.ERROR)),)
    )
    fixable = report.fixable(Applicability.UNSAFE)
    if not fixable:
        return []
    unsafe = " --unsafe-fixes" if fixable > report.fixable() else ""
    which = "it" if len(error.findings) == 1 else f"{fixable} of them"
    return [f"aros lint {quote_word(error.source)} --fix{unsafe} corrects {which}"]


def _excerpt(positions: Positions, place: Place, end_place: Place, style: str, paint: Paint) -> list[str]:
    source = positions.line(place.line)
    if not source.strip():
        return []
    at = place.column - 1
    end = end_place.column - 1 if end_place.line == place.line else len(source.rstrip())
    if len(source) > _MAX_WIDTH:
        begin = max(0, at - _MAX_WIDTH // 2)
        source, at, end = source[begin : begin + _MAX_WIDTH], at - begin, min(end - begin, _MAX_WIDTH)
    number = str(place.line)
    bar = paint("|", "dim")
    pad = " " * len(number)
    before = "".join("\t" if char == "\t" else " " * _width(char) for char in visible(source[:at]))
    carets = "^" * max(1, sum(_width(char) for char in visible(source[at:end])))
    line = visible(_masked(source)).replace("\n", "")
    return [
        f" {pad} {bar}",
        f" {paint(number, 'dim')} {bar} {line}",
        f" {pad} {bar} {before}{paint(carets, style)}",
    ]


def _masked(source: str) -> str:
    """Return the line with its secrets masked at the same length, so that the carets stay in place."""
    for start, end in Vault(source).places_in(source):
        source = f"{source[:start]}{'*' * (end - start)}{source[end:]}"
    return source


def _width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _count_words(number: int, word: str, plural: str | None = None) -> str:
    return f"{number} {word if number == 1 else plural or word + 's'}"


def to_json(report: Report) -> dict[str, Any]:
    """Return the document of `--format json`."""
    findings = [finding_to_json(file.path, finding) for file, finding in report.findings]
    return {"findings": findings, "summary": dict(report.summary())}


def finding_to_json(path: str, finding: Finding) -> dict[str, Any]:
    """Return one finding as plain JSON."""
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


_LEVELS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def to_github(report: Report) -> str:
    """Return one `::error file=…` line for each finding."""
    lines: list[str] = []
    for file, finding in report.findings:
        place, end = finding.place, finding.end
        options = {"file": file.path.replace("\\", "/"), "line": place.line, "endLine": end.line}
        if place.line == end.line:  # GitHub accepts columns only within one line
            options |= {"col": place.column, "endColumn": end.column}
        options["title"] = f"{finding.code} ({finding.step})" if finding.step else finding.code
        written = ",".join(f"{name}={_property(str(value))}" for name, value in options.items())
        lines.append(f"::{_LEVELS[finding.severity]} {written}::{_message(finding.message)}")
    return "".join(f"{line}\n" for line in lines)


def _message(text: str) -> str:
    return visible(text).replace("%", "%25").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


_SARIF_LEVELS: Final = {**_LEVELS, Severity.INFO: "note"}
SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def to_sarif(report: Report, rules: Iterable[type[Rule]], version: str) -> dict[str, Any]:
    """Return one SARIF log with one run. It describes every rule, whether or not the rule found anything."""
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
        "defaultConfiguration": {"level": _SARIF_LEVELS[rule.severity]},
    }


def _result(file: Linted, finding: Finding, index: dict[str, int]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": index[finding.code],
        "level": _SARIF_LEVELS[finding.severity],
        "message": {"text": _plain(finding.message)},
        "locations": [_location(file, finding)],
        "partialFingerprints": {"arosFinding/v1": _fingerprint(file, finding)},
    }
    if finding.fix and finding.fix.applicability > Applicability.DISPLAY:
        result["fixes"] = [_fix(file, finding.fix)]
    return result


def _location(file: Linted, finding: Finding) -> dict[str, Any]:
    place = {"artifactLocation": _artifact(file), "region": _region(finding.place, finding.end)}
    location: dict[str, Any] = {"physicalLocation": place}
    if finding.step:
        location["logicalLocations"] = [{"fullyQualifiedName": visible_line(finding.step), "kind": "step"}]
    return location


def _fix(file: Linted, fix: Fix) -> dict[str, Any]:
    positions = Positions(file.text)
    regions = (_region(positions.place(edit.start), positions.place(edit.end)) for edit in fix.edits)
    replacements = [
        {"deletedRegion": region, "insertedContent": {"text": edit.text}}
        for region, edit in zip(regions, fix.edits, strict=True)
    ]
    change = {"artifactLocation": _artifact(file), "replacements": replacements}
    return {"description": {"text": _plain(fix.title)}, "artifactChanges": [change]}


def _plain(text: str) -> str:
    """Return a message escaped for SARIF viewers, which would turn `[words](target)` into a link."""
    return visible(text).replace("](", "] (")


def _region(start: Place, end: Place) -> dict[str, int]:
    return {"startLine": start.line, "startColumn": start.column, "endLine": end.line, "endColumn": end.column}


def _artifact(file: Linted) -> dict[str, Any]:
    """Return the URI of the file: relative to the working directory, as code scanning expects, or else absolute."""
    path = Path(file.path)
    if path.is_absolute():
        return {"uri": path.as_uri()}
    return {"uri": quote(path.as_posix()), "uriBaseId": "SRCROOT"}


def _fingerprint(file: Linted, finding: Finding) -> str:
    """Return a fingerprint that stays the same when lines move."""
    content = "\0".join((Path(file.path).as_posix(), finding.code, finding.step or "", finding.message))
    return hashlib.sha256(content.encode()).hexdigest()[:32]
