"""A model at an address of its own has no price, although its name may be that of a hosted model."""

from __future__ import annotations

from decimal import Decimal

import pytest
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.usage import RequestUsage

from flujo_aros.host.models import counted, most_for_call
from flujo_aros.host.request import cost_of

NAME = "openai:gpt-4o-mini"


def reply(url: str | None) -> ModelResponse:
    used = RequestUsage(input_tokens=1000, output_tokens=1000)
    parts = [TextPart("yes")]
    return ModelResponse(parts, usage=used, model_name="gpt-4o-mini", provider_name="openai", provider_url=url)


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000/v1", "https://llm.example/v1", "https://fakeopenai.com/v1"])
def test_a_reply_of_another_server_costs_nothing_that_is_known(url: str) -> None:
    assert cost_of(reply(url)) is None


@pytest.mark.parametrize("url", [None, "https://api.openai.com/v1/", "https://eu.api.openai.com/v1/"])
def test_a_reply_of_openai_has_its_price(url: str | None) -> None:
    found = cost_of(reply(url))
    assert found is not None
    assert found > Decimal(0)


def test_no_cost_limit_counts_a_model_at_an_address() -> None:
    assert (counted(NAME), counted(f"{NAME}@http://127.0.0.1:8000/v1")) == (True, False)
    assert "no price is known" in str(most_for_call(f"{NAME}@http://127.0.0.1:8000/v1", 100))
