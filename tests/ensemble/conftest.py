from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ensemble.shop import TOOLS


@pytest.fixture
def refunded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """The orders that were refunded."""
    (tmp_path / "wood_tools.py").write_text(TOOLS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "wood_tools", raising=False)
    return lambda: sys.modules["wood_tools"].orders
