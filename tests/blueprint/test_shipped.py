"""The shipped blueprints."""

from __future__ import annotations

from pathlib import Path

import pytest

from flujo_aros.lint import lint_text

SHIPPED = sorted((Path(__file__).parents[2] / "blueprints").glob("*.yaml"))


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.name)
def test_a_shipped_blueprint_has_no_findings(file: Path) -> None:
    assert [str(finding) for finding in lint_text(file.read_text(encoding="utf-8")).findings] == []
