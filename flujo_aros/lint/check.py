"""Lints one text, one file, or a file with the blueprints that it imports.

Findings are suppressed by comments such as `# aros: ignore[V-A8]` (or flujo's `# flujo: ignore V-A8`), and by
baselines.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TypeAlias, cast

from flujo_aros.blueprint.document import MAX_CHARS, Node
from flujo_aros.blueprint.files import not_utf8
from flujo_aros.blueprint.load import inspect_blueprint
from flujo_aros.errors import Place, UsageError, file_errors
from flujo_aros.lint.edits import Applicability, Finding, Fixed, Positions, Severity, fix_text
from flujo_aros.lint.rule import Rule, Subject
from flujo_aros.lint.rules import RULES
from flujo_aros.lint.rules.loader import UnreadableYaml
from flujo_aros.spelling import nearest


@dataclass(frozen=True, slots=True)
class Linted:
    """The report on one file. `text` is the text to which the findings refer; `before` is the text before its fixes.
    `suppressed` counts the findings suppressed by comments, and `known` those in the baseline.
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
    """The report on all files of one call."""

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
        """Return the number of findings with a fix that is at least this safe."""
        return sum(1 for _, each in self.findings if each.fix and each.fix.applicability >= at_least)

    def summary(self) -> Mapping[str, int]:
        """Return the counts at the end of `--format json`."""
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


_COMMENT: Final = re.compile(
    r"(?:(?<=\s)|^)#[^\n#]*?\b(?:aros|flujo):\s*ignore(?P<file>-file)?"
    r"(?P<codes>\s*\[[^\]\n]*\]|(?:[ \t,]+[A-Z][\w*-]*)*)",
    re.M,
)
_CODE: Final = re.compile(r"[A-Z][\w-]*\*?")


_Codes: TypeAlias = frozenset[str]
"""The codes, or prefixes of codes, in one comment. It is empty if the comment suppresses all codes."""


def suppressed_spans(positions: Positions, root: Node, steps: Iterable[Node]) -> list[tuple[int, int, _Codes]]:
    """Return the comments of a text, except for what only looks like one inside a string, each with the first and last
    line to which it applies: its own line or, if it is alone on it, the next one; if a step begins there, the whole
    step; or the whole file.
    """
    if "ignore" not in positions.text:
        return []
    strings = (each for each in root.walk() if isinstance(each.value, str))
    texts = sorted((positions.offset(each.place), positions.offset(each.end)) for each in strings)
    ends: dict[int, int] = {}
    for step in steps:
        ends[step.place.line] = max(step.end.line, ends.get(step.place.line, 0))
    spans: list[tuple[int, int, _Codes]] = []
    for found in _COMMENT.finditer(positions.text):
        if _is_inside(texts, found.start()):
            continue
        line = bisect_right(positions.starts, found.start())
        before = positions.text[positions.starts[line - 1] : found.start()]
        line += not before.strip()
        codes = frozenset(_CODE.findall(found["codes"]))
        whole = found["file"] is not None
        spans.append((1, len(positions.starts), codes) if whole else (line, ends.get(line, line), codes))
    return spans


def is_suppressed(finding: Finding, spans: Iterable[tuple[int, int, _Codes]]) -> bool:
    """Return whether a comment suppresses this finding."""
    reaching = (codes for first, last, codes in spans if first <= finding.place.line <= last)
    return any(not codes or any(matches(finding.code, each) for each in codes) for codes in reaching)


def matches(code: str, pattern: str) -> bool:
    """Return whether a code matches a pattern: itself, or a prefix (`V-A`, `V-A*`).

    >>> matches("V-A8", "V-A"), matches("V-A8", "V-C1")
    (True, False)
    """
    return code.upper().startswith(pattern.removesuffix("*").upper())


def _is_inside(spans: list[tuple[int, int]], offset: int) -> bool:
    at = bisect_right(spans, (offset, len(spans) and 1 << 60)) - 1
    return at >= 0 and spans[at][0] <= offset < spans[at][1]


VERSION: Final = 1
_KEYS: Final = ("path", "code", "step", "message")

Key: TypeAlias = tuple[str, str, str, str]


def key_of(path: str, finding: Finding) -> Key:
    """Return the identity of a finding in a baseline."""
    return (path, finding.code, finding.step or "", finding.message)


def read_baseline(file: Path) -> Mapping[Key, int]:
    """Return the number of times that each finding of a baseline file may occur. Raises `UsageError` for any other
    file.
    """
    try:
        data: Any = json.loads(file.read_text(encoding="utf-8"))
        entries = cast("list[dict[str, Any]]", data["findings"])
        found = {cast("Key", tuple(str(entry[name]) for name in _KEYS)): int(entry["count"]) for entry in entries}
    except FileNotFoundError as error:
        raise UsageError(f"there is no baseline {str(file)!r}; --update-baseline writes one") from error
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UsageError(f"{str(file)!r} is not a baseline: {error}; --update-baseline writes a new one") from error
    return found


def write_baseline(file: Path, findings: Iterable[tuple[str, Finding]]) -> None:
    """Write the findings, each with its path, as the new baseline. Raises `UsageError` if it cannot be written."""
    counts = Counter(key_of(path, finding) for path, finding in findings)
    entries = [{**dict(zip(_KEYS, key, strict=True)), "count": counts[key]} for key in sorted(counts)]
    with file_errors(f"the baseline {str(file)!r} cannot be written"):
        file.write_text(json.dumps({"version": VERSION, "findings": entries}, indent=2) + "\n", encoding="utf-8")


def beyond(known: Mapping[Key, int], path: str, findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings that are not in the baseline, or occur more often than the baseline allows."""
    seen = Counter[Key]()
    fresh: list[Finding] = []
    for finding in findings:
        key = key_of(path, finding)
        seen[key] += 1
        fresh += [finding] if seen[key] > known.get(key, 0) else []
    return fresh


MARK: Final = "\ufeff"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of the linter.

    `select` and `ignore` are codes or prefixes of codes; the longer one takes precedence. `fix` is the minimum safety
    of fixes to apply; None applies none. `baseline` has the known findings. Without `allow` nothing is imported; with
    it, as in `load_blueprint`, the modules that a blueprint names are imported and checked as a run does.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    imports: bool = True
    fix: Applicability | None = None
    baseline: Mapping[Key, int] = field(default_factory=dict[Key, int])
    allow: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for pattern in (*self.select, *self.ignore):
            if not any(matches(rule.code, pattern) for rule in RULES):
                codes = [rule.code for rule in RULES]
                raise UsageError(f"unknown rule {pattern!r}{nearest(pattern, codes)} (`aros rule` lists them)")

    def wants(self, code: str) -> bool:
        """Return whether findings with this code are reported."""
        taken = max((len(each) for each in self.select if matches(code, each)), default=-1 if self.select else 0)
        left = max((len(each) for each in self.ignore if matches(code, each)), default=-1)
        return taken > left


def lint_text(
    text: str, *, source: str = "blueprint", folder: Path | None = None, options: Options | None = None
) -> Linted:
    """Lint one blueprint. Never raises for an invalid blueprint.

    `folder` is the folder of its imports and prompt files, or None if there is none.

    >>> lint_text("steps: []").findings[0].code
    'V-B1'
    """
    return _lint(text, source, folder, options or Options())[0]


def lint_files(paths: Iterable[Path], options: Options | None = None) -> Report:
    """Lint files, and the blueprints that they import from their folders, each file once. Nothing is written.

    Raises `UsageError` for a missing file.
    """
    wanted = options or Options()
    waiting = list(paths)
    done: dict[Path, Linted] = {}
    while waiting:
        path = waiting.pop(0)
        known = path.resolve()
        if known in done:
            continue
        text = _read(path)
        if isinstance(text, Linted):
            done[known] = text
            continue
        done[known], imported = _lint(text, str(path), path.parent, wanted)
        waiting += imported if wanted.imports else []
    return Report(tuple(done.values()))


def _lint(text: str, source: str, folder: Path | None, options: Options) -> tuple[Linted, list[Path]]:
    """Lint one text, and the files in its folder that it imports."""
    mark = MARK if text.startswith(MARK) else ""
    looks: dict[str, _Seen] = {}

    def look(body: str) -> _Seen:
        if body not in looks:  # each text is checked once, before and after a pass of fixes
            looks[body] = _look(body, source, folder, options)
        return looks[body]

    fixed = Fixed(text.removeprefix(MARK), ())
    if options.fix is not None:
        fixed = fix_text(fixed.text, lambda body: look(body).findings, options.fix)
    seen = look(fixed.text)
    fresh = beyond(options.baseline, source, seen.findings)
    hidden = len(seen.findings) - len(fresh)
    linted = Linted(source, mark + fixed.text, tuple(fresh), text, fixed.applied, seen.suppressed, hidden)
    return linted, _imported_files(seen.root, folder)


@dataclass(frozen=True, slots=True)
class _Seen:
    findings: list[Finding]
    suppressed: int
    root: Node


def _look(text: str, source: str, folder: Path | None, options: Options) -> _Seen:
    """Return the findings of the rules in a text, except those suppressed by its comments."""
    inspected = inspect_blueprint(text, source=source, folder=folder, allow=options.allow or ["*"], lenient=False)
    if options.allow and inspected.pipeline is not None:
        inspected = inspected.with_imports()
    subject = Subject(source, text if len(text) <= MAX_CHARS else "", inspected, folder)
    findings: list[Finding] = []
    for rule in RULES:
        if options.wants(rule.code):
            with _Blame(rule, source):
                findings += rule().check(subject)
    ordered = sorted(dict.fromkeys(findings), key=lambda each: each.sort_key)
    quiet = suppressed_spans(subject.positions, subject.root, (step.node for step in subject.steps))
    kept = [finding for finding in ordered if not is_suppressed(finding, quiet)]
    return _Seen(kept, len(ordered) - len(kept), subject.root)


@dataclass(frozen=True, slots=True)
class _Blame:
    """Reports which rule crashed on which file: that is a bug in the rule, and it is not hidden."""

    rule: type[Rule]
    source: str

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            error.add_note(
                f"Rule {self.rule.code} failed on {self.source}. That is a bug in the rule, not in your file."
            )


def _imported_files(root: Node, folder: Path | None) -> list[Path]:
    """Return the files that a blueprint imports from its folder."""
    imports = root.members.get("imports")
    if imports is None or folder is None:
        return []
    files = [folder / each.value for each in imports.members.values() if isinstance(each.value, str)]
    inside = folder.resolve()
    return [file for file in files if file.is_file() and file.resolve().is_relative_to(inside)]


def _read(path: Path) -> str | Linted:
    """Return the text of a file with its original line ends; a file that is not text is a finding."""
    with file_errors(f"{path} cannot be read"):
        data = path.read_bytes()
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        problem = not_utf8(error.object, error.start)
        place = problem.place or Place(1, 1)
        finding = Finding(UnreadableYaml.code, UnreadableYaml.severity, problem.message, place, place)
        return Linted(str(path), "", (finding,), "")
