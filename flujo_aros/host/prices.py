"""What a model call can cost at most, told before it is made: from the prices that are published."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Final

from genai_prices import Usage, calc_price
from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import ModelInfo, Provider

from flujo_aros.host.model_names import LOCAL

_PRICED_AS: Final = {
    "openai-responses": "openai",
    "openai-chat": "openai",
    "google-gla": "google",
    "google-vertex": "google",
    "google-cloud": "google",
    "bedrock": "aws",
}
"""Providers of pydantic-ai that have another name in the list of prices."""

_CAP: Final = "limit the step with `usage_limits: {max_cost: …}`"
_UNCOUNTED: Final = "no `max_cost` counts its calls; limit them with `usage_limits: {max_requests: …}`"
_TELLS: Final = "gateway/"
"""How the providers begin that tell with each reply what it has cost."""


def counted(name: str) -> bool:
    """Whether a limit on money counts the calls of this model: their price is known, then if not beforehand.

    >>> counted("openai:gpt-4o-mini"), counted("local:smollm2"), counted("ollama:llama3.2")
    (True, True, False)
    """
    provider, _, model = name.partition(":")
    return provider == LOCAL or provider.startswith(_TELLS) or _found(provider, model) is not None


def most_for_call(name: str, output_tokens: int | None, *, caches: bool = False) -> Decimal | str:
    """The most US dollars that one call of this model can cost; a text says why that is not known, and what to do.

    The prompt is taken to fill the model's whole context window, for what it will hold is not known beforehand.
    `caches` says that prompts may be written to a cache of the provider, which may cost more. A model on this machine
    costs nothing.

    >>> most_for_call("local:smollm2", None)
    Decimal('0')
    >>> most_for_call("openai:gpt-4o-mini", None)
    'a reply of openai:gpt-4o-mini may have any length; set `max_tokens` in `model_settings`'
    """
    provider, _, model = name.partition(":")
    if provider == LOCAL:
        return Decimal(0)
    known = _found(provider, model)
    if known is None:
        return f"no price is known for {name}; {_CAP if counted(name) else _UNCOUNTED}"
    found, info = known
    if info.context_window is None:
        return f"how much {name} can read at most is not known; {_CAP}"
    if output_tokens is None:
        return f"a reply of {name} may have any length; set `max_tokens` in `model_settings`"
    window, now = info.context_window, datetime.now(UTC)
    kinds = [Usage(input_tokens=window, output_tokens=output_tokens)]
    if caches:
        kinds.append(Usage(input_tokens=window, cache_write_tokens=window, output_tokens=output_tokens))
    prices = [calc_price(each, model, provider_id=found.id, genai_request_timestamp=now) for each in kinds]
    return max(price.total_price for price in prices)


def _found(provider: str, model: str) -> tuple[Provider, ModelInfo] | None:
    """The model in the list of prices."""
    try:
        return get_snapshot().find_provider_model(model, None, _PRICED_AS.get(provider, provider), None)
    except LookupError:
        return None
