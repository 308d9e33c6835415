"""A model at a custom address has no price, even if its name is that of a hosted model."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest
from model_server import ModelServer
from pydantic_ai.models import override_allow_model_requests

from flujo_aros import AgentSpec, Runner, Step
from flujo_aros.host.models import has_known_price, max_call_cost

NAME = "openai:gpt-4o-mini"


@pytest.mark.parametrize(("at_address", "known"), [(True, None), (False, Decimal("0.00021"))])
def test_only_a_model_without_an_address_has_the_price_of_its_name(
    monkeypatch: pytest.MonkeyPatch, at_address: bool, known: Decimal | None
) -> None:
    pytest.importorskip("openai")
    with ModelServer(lambda _: "yes") as server:
        for key, value in server.environment.items():
            monkeypatch.setenv(key, value)
        name = f"{NAME}@{server.environment['OPENAI_BASE_URL']}" if at_address else "openai-chat:gpt-4o-mini"
        with override_allow_model_requests(allow_model_requests=True):
            result = asyncio.run(Runner(Step("ask", AgentSpec(model=name))).run("x"))
    assert (result.output, result.usage.cost) == ("yes", known)


def test_no_cost_limit_counts_a_model_at_an_address() -> None:
    assert (has_known_price(NAME), has_known_price(f"{NAME}@http://127.0.0.1:8000/v1")) == (True, False)
    assert "no price is known" in str(max_call_cost(f"{NAME}@http://127.0.0.1:8000/v1", 100))
