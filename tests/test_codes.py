"""The form of a code shows which vocabulary it belongs to: see docs/decisions/023-hyphens-in-codes.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
from repair_codes import codes_in_source

import flujo_aros.reading
from flujo_aros import Reason
from flujo_aros.errors import Code
from flujo_aros.lint.rules import RULES
from flujo_aros.recovery import AnyStage

READING = Path(flujo_aros.reading.__file__ or "").parent
GUARDS = {"control_escape", "duplicate_key", "ignored_key", "moved_key", "near_miss_key"}
"""Repairs that guard valid JSON, with their names of the public interface."""
REFUSED = {"lone_surrogate", "non_finite"}
"""Guards of valid JSON that only refuse."""


def refused_by_the_parser() -> set[str]:
    return set(re.findall(r'_stop\([^\n]*, "([\w-]+)"', (READING / "parser.py").read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("codes", "form"),
    [
        (codes_in_source() - GUARDS, r"[a-z]+(-[a-z]+)*"),
        (refused_by_the_parser() - REFUSED, r"[a-z]+(-[a-z]+)*"),
        ({str(code) for code in Code}, r"[a-z]+(-[a-z]+)*"),
        ({rule.name for rule in RULES}, r"[a-z]+(-[a-z]+)*"),
        ({str(reason) for reason in Reason}, r"[a-z]+(_[a-z]+)*"),
        ({str(stage.model_fields["stage"].default) for stage in get_args(AnyStage)}, r"[a-z]+(_[a-z]+)*"),
    ],
    ids=["repairs", "parser", "blueprints", "rules", "reasons", "stages"],
)
def test_the_codes_of_one_vocabulary_have_one_form(codes: set[str], form: str) -> None:
    assert len(codes) > 3
    assert {code for code in codes if not re.fullmatch(form, code)} == set()


def test_the_guards_are_repairs_or_rejections() -> None:
    assert codes_in_source() >= GUARDS
    assert refused_by_the_parser() >= REFUSED
