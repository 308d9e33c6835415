"""The regular expressions of the package behave the same on every supported Python."""

from __future__ import annotations

import re
from pathlib import Path

import flujo_aros

POSSESSIVE_GROUP = re.compile(r"(\S{0,4})\s*\)(?:[*+?]|\{[\d,]+\})\+")


def test_every_group_that_is_repeated_possessively_ends_in_a_branch_that_never_matches() -> None:
    """Before 3.11.5, Python keeps what a repetition that failed halfway had consumed."""
    sources = Path(flujo_aros.__file__).parent.rglob("*.py")
    groups = [
        (source.name, *found.groups())
        for source in sources
        for found in POSSESSIVE_GROUP.finditer(source.read_text("utf-8"))
    ]
    assert len(groups) > 8
    assert [group for group in groups if group[1] != "(?!)"] == []
