"""No test of agents may reach a real provider."""

import pytest
from pydantic_ai import models


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Make every real provider class refuse to be called."""
    monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", False)
