"""The pages in docs/rules match the rules."""

from __future__ import annotations

import pytest

from flujo_aros.lint.rule import SECTIONS, Rule
from flujo_aros.lint.rules import RULES

from .rule_pages import PAGES, pages


def test_pages_are_current() -> None:
    """Each page equals the output of the script."""
    shown = {path.name: path.read_text(encoding="utf-8") for path in PAGES.glob("*.md")}
    assert shown == pages(), "run `python tests/lint/rule_pages.py`"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_documentation_of_a_rule_is_complete(rule: type[Rule]) -> None:
    """All headings, in order and not empty, and both examples."""
    sections = rule.sections()
    assert tuple(sections) == SECTIONS
    assert all(sections.values())
    assert all("```yaml" in sections[head] for head in ("Example", "Use instead"))
    assert rule.headline().endswith(".")


def test_codes_and_names_are_unique() -> None:
    """A code and a name identify one rule each."""
    assert len({rule.code for rule in RULES}) == len({rule.name for rule in RULES}) == len(RULES)
