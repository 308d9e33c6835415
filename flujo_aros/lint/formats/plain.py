"""Findings for a person: one line each, the place in the source with a caret under it, and what would mend it."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from flujo_aros.errors import BlueprintError, Place
from flujo_aros.lint.finding import Applicability, Finding, Severity
from flujo_aros.lint.fix import unified_diff
from flujo_aros.lint.positions import Positions
from flujo_aros.lint.report import Linted, Report
from flujo_aros.redaction import Vault
from flujo_aros.visible import visible, visible_line

Paint: TypeAlias = Callable[[str, str], str]
"""Puts a style (`error`, `warning`, `info`, `dim`, `bold`) on a text, or leaves it as it is."""

_MAX_WIDTH: Final = 160


def _unpainted(text: str, _style: str) -> str:
    return text


def write_text(report: Report, paint: Paint = _unpainted) -> str:
    """Every finding with its source line. Empty where there is none."""
    blocks: list[str] = []
    for file in report.files:
        positions = Positions(file.text)
        blocks += [_block(file, positions, finding, paint) for finding in file.findings]
    return "\n".join(blocks)


def list_fixes(report: Report, verb: str) -> Iterator[str]:
    """One line for each changed file with the number of its lines that differ, and one below it for each fix."""
    for file in report.files:
        if file.text == file.before:
            continue
        lines = unified_diff(file.path, file.before, file.text).splitlines()[2:]
        added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
        yield f"{verb} {file.path} (+{added} -{removed} lines):"
        for finding in file.applied:
            yield f"  line {finding.place.line}: {finding.code} {finding.fix.title if finding.fix else finding.message}"


def summary_line(report: Report) -> str:
    """One sentence about all files."""
    told = report.summary()
    files = _counted(told["files"], "file")
    fixed = f"{_counted(told['fixed'], 'fix', 'fixes')} made. " if told["fixed"] else ""
    hidden = [
        f"{told[key]} {word}" for key, word in (("suppressed", "ignored"), ("known", "in the baseline")) if told[key]
    ]
    aside = f" ({', '.join(hidden)})" if hidden else ""
    if report.clean:
        return f"{fixed}No findings in {files}{aside}."
    kinds = [_counted(told[f"{kind}s"], kind) for kind in ("error", "warning", "info") if told[f"{kind}s"]]
    fixable = f" {told['fixable']} can be fixed with --fix." if told["fixable"] else ""
    more = f" {told['unsafe_fixable']} more with --unsafe-fixes." if told["unsafe_fixable"] else ""
    return f"{fixed}Found {', '.join(kinds)} in {files}{aside}.{fixable}{more}"


def _block(file: Linted, positions: Positions, finding: Finding, paint: Paint) -> str:
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
    return "\n".join(lines) + "\n"


def write_error(error: BlueprintError) -> str:
    """Each error of a blueprint with its source line and a caret under the place, as `aros lint` shows findings."""
    positions = Positions(error.text)
    lines: list[str] = []
    for problem in error.findings[: error.MOST_SHOWN]:
        lines.append(error.line(problem))
        if problem.place is not None:
            place = problem.place
            lines += _excerpt(positions, place, problem.end or place, Severity.ERROR.value, _unpainted)
    return "\n".join([*lines, *error.rest])


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
    shown = visible(_masked(source)).replace("\n", "")
    return [
        f" {pad} {bar}",
        f" {paint(number, 'dim')} {bar} {shown}",
        f" {pad} {bar} {before}{paint(carets, style)}",
    ]


def _masked(source: str) -> str:
    """The line without its secrets, and as long as it was: the carets must still stand under their place."""
    for start, end in Vault(source).places_in(source):
        source = f"{source[:start]}{'*' * (end - start)}{source[end:]}"
    return source


def _width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _counted(number: int, word: str, plural: str | None = None) -> str:
    return f"{number} {word if number == 1 else plural or word + 's'}"
