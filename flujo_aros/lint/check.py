"""Lints one text, one file, or a file with the blueprints that it imports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final

from flujo_aros.blueprint.document import MAX_CHARS, Node
from flujo_aros.blueprint.files import not_utf8
from flujo_aros.blueprint.load import inspect_blueprint
from flujo_aros.errors import Place, UsageError
from flujo_aros.lint.context import Subject
from flujo_aros.lint.edits import Fixed, fix_text
from flujo_aros.lint.finding import Applicability, Finding, Severity
from flujo_aros.lint.rule import Rule
from flujo_aros.lint.rules import RULES
from flujo_aros.lint.rules.loader import UnreadableYaml
from flujo_aros.lint.suppress import Key, Suppressions, beyond, matches
from flujo_aros.pipeline.names import nearest


@dataclass(frozen=True, slots=True)
class Linted:
    """The report on one file. `text` is the text to which the findings refer; `before` is the text before its fixes.
    `suppressed` counts the findings suppressed by comments, `known` those in the baseline.
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
        """The number of findings with a fix that is at least this safe."""
        return sum(1 for _, each in self.findings if each.fix and each.fix.applicability >= at_least)

    def summary(self) -> Mapping[str, int]:
        """The counts at the end of `--format json`."""
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


MARK: Final = "\ufeff"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of the linter. `select` and `ignore` are codes or prefixes of codes; the longer one wins. `fix` is
    how safe a fix must be to be applied; None: no fixes. `baseline` has the known findings.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    imports: bool = True
    fix: Applicability | None = None
    baseline: Mapping[Key, int] = field(default_factory=dict[Key, int])

    def __post_init__(self) -> None:
        for pattern in (*self.select, *self.ignore):
            if not any(matches(rule.code, pattern) for rule in RULES):
                codes = [rule.code for rule in RULES]
                raise UsageError(f"there is no rule {pattern!r}{nearest(pattern, codes)} (`aros rule` lists them)")

    def wants(self, code: str) -> bool:
        """Whether findings with this code are reported."""
        taken = max((len(each) for each in self.select if matches(code, each)), default=-1 if self.select else 0)
        left = max((len(each) for each in self.ignore if matches(code, each)), default=-1)
        return taken > left


def lint_text(
    text: str, *, source: str = "blueprint", folder: Path | None = None, options: Options | None = None
) -> Linted:
    """Lint one blueprint. `folder` is the folder of its imports and prompt files; None: there is none. Never raises for
    an invalid blueprint: one that cannot be loaded has findings that say why.

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
        if body not in looks:  # each text is looked at once: before a pass of fixes and after it
            looks[body] = _look(body, source, folder, options)
        return looks[body]

    fixed = Fixed(text.removeprefix(MARK), ())
    if options.fix is not None:
        fixed = fix_text(fixed.text, lambda body: look(body).findings, options.fix)
    seen = look(fixed.text)
    fresh = beyond(options.baseline, source, seen.findings)
    hidden = len(seen.findings) - len(fresh)
    told = Linted(source, mark + fixed.text, tuple(fresh), text, fixed.applied, seen.suppressed, hidden)
    return told, _imported(seen.root, folder)


@dataclass(frozen=True, slots=True)
class _Seen:
    findings: list[Finding]
    suppressed: int
    root: Node


def _look(text: str, source: str, folder: Path | None, options: Options) -> _Seen:
    """The findings of the rules in a text, except those suppressed by its comments."""
    inspected = inspect_blueprint(text, source=source, folder=folder, allow=["*"], lenient=False)
    subject = Subject(source, text if len(text) <= MAX_CHARS else "", inspected, folder)
    findings: list[Finding] = []
    for rule in RULES:
        if options.wants(rule.code):
            with _Blame(rule, source):
                findings += rule().check(subject)
    told = sorted(dict.fromkeys(findings), key=lambda each: each.sort_key)
    quiet = Suppressions.of(subject.positions, subject.root, (step.node for step in subject.steps))
    kept = [finding for finding in told if not quiet.cover(finding)]
    return _Seen(kept, len(told) - len(kept), subject.root)


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


def _imported(root: Node, folder: Path | None) -> list[Path]:
    """The files that a blueprint imports from its folder."""
    told = root.members.get("imports")
    if told is None or folder is None:
        return []
    files = [folder / each.value for each in told.members.values() if isinstance(each.value, str)]
    inside = folder.resolve()
    return [file for file in files if file.is_file() and file.resolve().is_relative_to(inside)]


def _read(path: Path) -> str | Linted:
    """The text of a file with its original line ends; a file that is not text is a finding."""
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        problem = not_utf8(error.object, error.start)
        place = problem.place or Place(1, 1)
        finding = Finding(UnreadableYaml.code, UnreadableYaml.severity, problem.message, place, place)
        return Linted(str(path), "", (finding,), "")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error
