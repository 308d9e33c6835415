"""Every case in `cases/*.md` has the documented result."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from flujo_aros.blueprint.load import inspect_blueprint
from flujo_aros.lint import Applicability
from flujo_aros.lint.rules import RULES

from .literate import CASES, Case, load_cases

ALL = load_cases()


@pytest.mark.parametrize("case", ALL, ids=[case.name for case in ALL])
def test_case(case: Case, tmp_path: Path) -> None:
    """The rule finds exactly the expected text, and its fixes have exactly the expected result."""
    assert case.find(tmp_path) == case.findings
    assert case.fix(tmp_path, Applicability.SAFE) == case.fixed
    assert case.fix(tmp_path, Applicability.UNSAFE) == case.unsafe


@pytest.mark.parametrize("case", [case for case in ALL if case.unsafe != case.text], ids=lambda case: case.name)
def test_fixed_blueprint_loads(case: Case, tmp_path: Path) -> None:
    """A blueprint loads after every fix, unless it did not load before and only some fixes were made."""
    case.find(tmp_path)
    for text in (case.fixed, case.unsafe) if case.fixed != case.text else (case.unsafe,):
        inspected = inspect_blueprint(text, source=str(tmp_path / "case.yaml"), folder=tmp_path, allow=["*"])
        assert inspected.findings == []


def test_every_rule_has_a_case_that_finds_and_one_that_does_not() -> None:
    """Every rule must report something in one case and nothing in another."""
    heard = {case.code for case in ALL if case.findings}
    silent = {case.code for case in ALL if not case.findings}
    codes = {rule.code for rule in RULES}
    assert (codes - heard, codes - silent) == (set(), set())
    assert {path.stem for path in CASES.glob("*.md")} == codes


def test_no_two_cases_share_a_name() -> None:
    """A failing test identifies one case."""
    assert [name for name, count in Counter(case.name for case in ALL).items() if count > 1] == []
