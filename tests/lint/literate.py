"""Lint cases written in Markdown: a heading that states the behaviour, a blueprint, and the findings.

    ## A schema of the agent that the step does not mention

    ~~~~yaml
    steps:
      - name: a
        uses: agents.x
    ~~~~

    ~~~~text
    3:11 info «agents.x»
    ~~~~

    ~~~~yaml fixed
    ...
    ~~~~

Each line of the `text` block is a finding of the rule that the file is named after: place, severity, and the words of
the text that it points at (the first line of them). `(nothing)` says that there is none. What the safe fixes make of
the blueprint stands in `yaml fixed`, what the unsafe ones make of it in `yaml unsafe`; a case without them is left as
it is by both. `aros` blocks stand for other files of the folder: `yaml file child.yaml`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from flujo_aros.lint import Applicability, Finding, Options, lint_text
from flujo_aros.lint.edits import Positions

CASES = Path(__file__).parent / "cases"

_HEADING = re.compile(r"^## (.+)$", re.M)
_BLOCK = re.compile(r"^~~~~([^\n]+)\n(.*?)^~~~~$", re.S | re.M)


@dataclass(frozen=True)
class Case:
    """One behaviour of one rule."""

    code: str
    title: str
    text: str
    findings: list[str]
    fixed: str
    unsafe: str
    files: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The id of the test."""
        return f"{self.code}/{re.sub(r'[^a-z0-9]+', '-', self.title.lower()).strip('-')}"

    def options(self, fix: Applicability | None = None) -> Options:
        """The options that select only the rule of the case."""
        return Options(select=(self.code,), ignore=longer_than(self.code), fix=fix)

    def find(self, folder: Path) -> list[str]:
        """Return the findings, in the notation of the cases."""
        for name, text in self.files.items():
            (folder / name).write_text(text, encoding="utf-8")
        found = lint_text(self.text, source=str(folder / "case.yaml"), folder=folder, options=self.options())
        return [written(self.text, each) for each in found.findings]

    def fix(self, folder: Path, level: Applicability) -> str:
        """Return the text after its fixes."""
        return lint_text(self.text, source=str(folder / "case.yaml"), folder=folder, options=self.options(level)).text


def longer_than(code: str) -> tuple[str, ...]:
    """Return the codes that start with another code."""
    from flujo_aros.lint.rules import RULES

    return tuple(rule.code for rule in RULES if rule.code.startswith(code) and rule.code != code)


def written(text: str, finding: Finding) -> str:
    """Return a finding in the notation of the cases."""
    return f"{finding.place.line}:{finding.place.column} {finding.severity.value} «{pointed_at(text, finding)}»"


def pointed_at(text: str, finding: Finding) -> str:
    """Return the first line of the text that a finding points at."""
    positions = Positions(text)
    whole = text[positions.offset(finding.place) : positions.offset(finding.end)]
    return whole.partition("\n")[0]


def load_cases() -> list[Case]:
    """Load the cases of all files. Fails if one is malformed, naming it."""
    return [case for path in sorted(CASES.glob("*.md")) for case in cases_in(path)]


def cases_in(path: Path) -> list[Case]:
    """Yield the cases of one file."""
    _, *parts = _HEADING.split(path.read_text(encoding="utf-8"))
    return [_case(path.stem, title, body) for title, body in zip(parts[::2], parts[1::2], strict=True)]


def _case(code: str, title: str, body: str) -> Case:
    blocks: dict[str, str] = dict(_BLOCK.findall(body))
    assert {"yaml", "text"} <= blocks.keys(), f"{code}: {title}: needs a ~~~~yaml and a ~~~~text block"
    files = {kind.removeprefix("yaml file "): text for kind, text in blocks.items() if kind.startswith("yaml file ")}
    assert blocks.keys() - {f"yaml file {name}" for name in files} <= {"yaml", "text", "yaml fixed", "yaml unsafe"}, (
        title
    )
    text = blocks["yaml"]
    findings = [] if blocks["text"].strip() == "(nothing)" else blocks["text"].splitlines()
    fixed = blocks.get("yaml fixed", text)
    return Case(code, title, text, findings, fixed, blocks.get("yaml unsafe", fixed), files)
