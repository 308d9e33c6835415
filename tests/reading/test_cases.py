"""Every case in `cases/*.md` has the documented result."""

import json
from collections import Counter

import pytest

from flujo_aros import Accepted, Risk

from .literate import Case, describe, load_cases, wanted

ALL = load_cases()


@pytest.mark.parametrize("case", ALL, ids=[case.name for case in ALL])
def test_case(case: Case) -> None:
    """The text yields the value with exactly these repairs, or is rejected for this reason."""
    assert _exact(describe(case.read())) == _exact(wanted(case))


@pytest.mark.parametrize("case", ALL, ids=[case.name for case in ALL])
def test_no_repair_is_riskier_than_allowed(case: Case) -> None:
    """A text that needs riskier repairs than the caller allows is rejected."""
    for risk in Risk:
        outcome = case.read(risk)
        if isinstance(outcome, Accepted):
            assert [repair for repair in outcome.repairs if repair.risk > risk] == []


def test_no_two_cases_share_a_name() -> None:
    """A failing test identifies one case."""
    assert [name for name, count in Counter(case.name for case in ALL).items() if count > 1] == []


def _exact(reported: dict[str, object]) -> dict[str, object]:
    """Return a value that distinguishes 1, 1.0 and True."""
    return reported | {"value": json.dumps(reported["value"], ensure_ascii=False)} if "value" in reported else reported
