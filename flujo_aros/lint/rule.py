"""The base class of rules: a code, a name, a severity, documentation and a check."""

from __future__ import annotations

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final

from flujo_aros.blueprint.document import Node
from flujo_aros.errors import Place
from flujo_aros.lint.context import Subject
from flujo_aros.lint.finding import Applicability, Edit, Finding, Fix, Severity

SECTIONS: Final = ("What it does", "Why is this bad", "Example", "Use instead", "Fix safety")
"""The headings in the documentation of every rule, in this order."""

_SUGGESTS_A_NAME: Final = (
    "If a known name is close, the fix writes it. Only you know whether that name was meant, so the fix is unsafe."
)
_NO_FIX: Final = "There is no fix: only you know what was meant."


class Rule(ABC):
    """One thing that can be wrong in a blueprint. The docstring of a rule is its documentation.

    Its first line is the summary; then come the sections of `SECTIONS`, each as `## Heading`. A rule is named after the
    pattern that it finds, never after the fix.
    """

    code: ClassVar[str] = ""
    name: ClassVar[str]
    """The name of the class in words: `unused-output`."""
    severity: ClassVar[Severity]
    fixable: ClassVar[Applicability | None] = None
    """The safety of its best fix; None if it has none."""
    safety: ClassVar[str]
    """The section `Fix safety` of a rule whose docstring has none."""

    def __init_subclass__(
        cls,
        *,
        code: str = "",
        severity: Severity = Severity.WARNING,
        fixable: Applicability | None = None,
        suggests_name: bool = False,
    ) -> None:
        super().__init_subclass__()
        cls.code, cls.severity = code, severity
        cls.name = re.sub(r"(?<!^)(?=[A-Z])", "-", cls.__name__).lower()
        cls.fixable = Applicability.UNSAFE if suggests_name else fixable
        cls.safety = _SUGGESTS_A_NAME if suggests_name else _NO_FIX

    @abstractmethod
    def check(self, subject: Subject) -> Iterator[Finding]:
        """Every finding in one blueprint."""

    @classmethod
    def docs(cls) -> str:
        """The documentation in Markdown."""
        written = inspect.cleandoc(cls.__doc__ or "")
        if f"## {SECTIONS[-1]}" in written:
            return written
        return f"{written}\n\n## {SECTIONS[-1]}\n\n{cls.safety}"

    @classmethod
    def headline(cls) -> str:
        """The first line of the documentation."""
        return cls.docs().partition("\n")[0]

    @classmethod
    def sections(cls) -> Mapping[str, str]:
        """The documentation by heading."""
        parts = re.split(r"^## (.+)$", cls.docs(), flags=re.M)
        return {head.strip(): body.strip() for head, body in zip(parts[1::2], parts[2::2], strict=True)}

    def finding(
        self,
        message: str,
        span: tuple[Place, Place],
        *,
        step: str | None = None,
        fix: Fix | None = None,
        severity: Severity | None = None,
    ) -> Finding:
        """A finding of this rule."""
        return Finding(self.code, severity or self.severity, message, span[0], span[1], step, fix)


def span_of(node: Node) -> tuple[Place, Place]:
    """The span of a value, from its first to its last character."""
    return node.place, node.end


def key_span(mapping: Node, name: str) -> tuple[Place, Place]:
    """The span of a key of a mapping."""
    place = mapping.keys[name]
    return place, Place(place.line, place.column + len(name), place.path)


def fix_of(title: str, edits: Iterable[Edit | None], applicability: Applicability = Applicability.SAFE) -> Fix | None:
    """A fix with these edits; None if one of them is not possible."""
    made = tuple(edits)
    sound = tuple(sorted(edit for edit in made if edit is not None))
    return Fix(title, sound, applicability) if sound and len(sound) == len(made) else None


def rule_to_markdown(rule: type[Rule]) -> str:
    """One rule as a page."""
    facts = [f"Severity: {rule.severity.value}", f"Name: `{rule.name}`"]
    facts.append(f"Fix: {rule.fixable.word}" if rule.fixable is not None else "Fix: none")
    return f"# {rule.code}: {rule.headline()}\n\n{' · '.join(facts)}\n\n{_body(rule)}\n"


def rule_to_json(rule: type[Rule]) -> dict[str, Any]:
    """One rule as plain JSON."""
    return {
        "code": rule.code,
        "name": rule.name,
        "severity": rule.severity.value,
        "fix": None if rule.fixable is None else rule.fixable.word,
        "summary": rule.headline(),
        "docs": dict(rule.sections()),
    }


def index_page(rules: Iterable[type[Rule]]) -> str:
    """The table of all rules, with a link to the page of each."""
    rows = [
        f"| [{rule.code}]({rule.code}.md) | {rule.severity.value} | {rule.headline()} "
        f"| {rule.fixable.word if rule.fixable is not None else ''} |"
        for rule in rules
    ]
    head = "# Rules of `aros lint`\n\n| Code | Severity | Finds | Fix |\n| --- | --- | --- | --- |\n"
    return head + "\n".join(rows) + "\n"


def _body(rule: type[Rule]) -> str:
    return rule.docs().partition("\n")[2].strip()
