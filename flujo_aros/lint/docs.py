"""The pages about rules, made from the rules themselves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flujo_aros.lint.rule import Rule


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
