"""Models by name: each is created once and cached, with its capabilities and the maximum cost of a call."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final, Protocol, TypeAlias, TypeVar, cast

from genai_prices import Usage, calc_price
from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import ModelInfo, Provider
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, ModelRequestParameters, infer_model
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.wrapper import WrapperModel

from flujo_aros.errors import UsageError
from flujo_aros.host.spec import COMPATIBLE, LOCAL, endpoint_of, find_name_error, missing_provider

MadeT = TypeVar("MadeT")


def _at_endpoint(name: str, url: str) -> Model:
    """Return the model of an OpenAI-compatible server. The client requires a key, although most
    local servers do not.
    """
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel  # here: `openai` may be missing
    from pydantic_ai.providers.openai import OpenAIProvider

    class Compatible(OpenAIProvider):
        """An OpenAI-compatible provider with its own name."""

        @property
        def name(self) -> str:
            return COMPATIBLE

    provider, _, rest = name.removesuffix(f"@{url}").partition(":")
    served = Compatible(base_url=url, api_key=os.environ.get("OPENAI_API_KEY") or "none")
    if rest and provider in ("openai", "openai-chat"):
        return OpenAIChatModel(rest, provider=served)
    if rest and provider == "openai-responses":
        return OpenAIResponsesModel(rest, provider=served)
    raise UsageError(f"the model {name!r} has an address; write openai:NAME@URL or openai-responses:NAME@URL")


def create_model(name: str) -> Model:
    """Return the model with a name known to pydantic-ai, or at `openai:NAME@URL`.

    Raises `UsageError` if an API key, a package or the provider is missing.
    """
    url = endpoint_of(name)
    if url is None and name.startswith("openai") and os.environ.get("OPENAI_API_KEY") == "":
        raise UsageError(
            f"the model {name!r} cannot be used: the environment variable OPENAI_API_KEY is empty; {_KEYLESS}"
        )
    try:
        return infer_model(name) if url is None else _at_endpoint(name, url)
    except (UserError, ImportError) as error:
        raise UsageError(
            missing_provider(name) or find_name_error(name) or _explain_unusable(name, str(error))
        ) from None


def _explain_unusable(name: str, why: str) -> str:
    """Return the reason why a model cannot be used, in the host's words if they are about this model."""
    package = re.search(r"pydantic-ai-slim\[([\w-]+)\]", why)
    if package is not None:
        ours = "flujo_aros" if package[1] in ("openai", "anthropic") else "pydantic-ai-slim"
        return f"the model {name!r} needs a package: pip install '{ours}[{package[1]}]'"
    reason = why.partition(" To try Pydantic AI without")[0].rstrip(". ")
    local = f"; {_KEYLESS}" if "_API_KEY`" in reason else ""
    return f"the model {name!r} cannot be used: {reason}{local}"


_KEYLESS: Final = (
    "without an API key, use `local:smollm2`, which runs on this machine, or in tests "
    "Runner(…, models=ScriptedModel(…))"
)


class ModelSource(Protocol):
    """Provides the models that a pipeline names, including the models of providers (for tests and routing)."""

    async def model(self, name: str) -> Model:
        """Return the model with this name, ready for requests."""
        ...


Models: TypeAlias = ModelSource | Model
"""A source of models, or one model that serves every name."""


def source_of(models: Models | None) -> ModelSource | None:
    """Return the models as a source; a single model serves every name."""
    if isinstance(models, Model) and not hasattr(models, "model"):
        return _SameModel(models)
    return cast("ModelSource | None", models)


@dataclass(frozen=True, slots=True)
class _SameModel:
    only_model: Model

    async def model(self, name: str) -> Model:  # noqa: ARG002 - the signature of a `ModelSource`
        return self.only_model


async def named_model(name: str, models: ModelSource | None, *, repeated: bool = False) -> Model:
    """Return the model with this name, from the source if one is given, else from pydantic-ai. Raises `UsageError`.

    With `repeated`, the provider's client does not retry on its own: the caller does, counting and waiting.
    """
    if models is not None:
        # `LocalModels` provides only names with its own prefix, any other source all names
        only = getattr(models, "only", "")
        if isinstance(only, str) and name.startswith(only):
            return await models.model(name)
    if name.startswith("local:"):
        message = f"the model {name!r} runs on this machine, but no source of local models was given (models=...)"
        raise UsageError(message)
    return once(_create_without_retries if repeated else create_model, sys.intern(name))


def _create_without_retries(name: str) -> Model:
    """Return the model without the retries of its provider's client."""
    model = create_model(name)
    client = getattr(model, "client", None)
    if isinstance(getattr(client, "max_retries", None), int):
        cast("Any", client).max_retries = 0
    return model


class Once:
    """A cache keyed by the identity of objects, which it keeps alive so that their identities stay valid."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[tuple[object, ...], tuple[object, Any]] = {}

    def get(self, make: Callable[..., MadeT], *parts: object) -> MadeT:
        """Return the result of `make(*parts)`, made once; the oldest is dropped when there are too many."""
        key = (make, *map(id, parts))
        known = self._kept.get(key)
        if known is None:
            if len(self._kept) >= self._most:
                del self._kept[next(iter(self._kept))]
            known = self._kept[key] = parts, make(*parts)
        made: MadeT = known[1]
        return made


_MOST_KEPT: Final = 128
_of_loop: Final[dict[asyncio.AbstractEventLoop, Once]] = {}


def once(make: Callable[..., MadeT], *parts: object) -> MadeT:
    """Return the result of `make` for exactly these objects, created once per event loop, because its connections work
    in no other loop.

    Creating a provider's model takes as long as twenty runs of an agent, and the model has a pool of connections.
    """
    loop = asyncio.get_running_loop()
    if loop not in _of_loop:
        for other in [other for other in _of_loop if other.is_closed()]:
            _of_loop.pop(other, None)
        _of_loop[loop] = Once(_MOST_KEPT)
    return _of_loop[loop].get(make, *parts)


_PRICED_AS: Final = {
    "openai-responses": "openai",
    "openai-chat": "openai",
    "google-gla": "google",
    "google-vertex": "google",
    "google-cloud": "google",
    "bedrock": "aws",
}
"""pydantic-ai's providers that have a different name in the price list."""

_CAP: Final = "limit the step with `usage_limits: {max_cost: …}`"
_UNCOUNTED: Final = "`max_cost` does not count its calls; limit them with `usage_limits: {max_requests: …}`"
_REPORTS_COST: Final = "gateway/"
"""The prefix of providers that report the cost of each reply."""


def has_known_price(name: str) -> bool:
    """Return whether a cost limit counts the calls of this model, because their price is known, at least afterwards.

    >>> has_known_price("openai:gpt-4o-mini"), has_known_price("local:smollm2"), has_known_price("openai:gpt-4o-mini@http://127.0.0.1:8000/v1")
    (True, True, False)
    """
    provider, _, model = name.partition(":")
    return provider == LOCAL or provider.startswith(_REPORTS_COST) or _find_in_price_list(provider, model) is not None


def uncounted_calls(limit: str, models: Collection[str]) -> str | None:
    """Return the sentence about a cost limit that does not count the calls of some of these models, or None.

    >>> uncounted_calls("--max-cost", ["openai:gpt-4o-mini", "openai:mine@http://127.0.0.1:8000/v1"])
    '--max-cost does not count their calls: no price is known for openai:mine@http://127.0.0.1:8000/v1'
    """
    unpriced = [name for name in sorted(models) if not has_known_price(name)]
    if not unpriced:
        return None
    effect = "does not count their calls" if len(unpriced) < len(models) else "has no effect"
    return f"{limit} {effect}: no price is known for {', '.join(unpriced)}"


def max_call_cost(name: str, output_tokens: int | None, *, caches: bool = False) -> Decimal | str:
    """Return the maximum cost of one call to this model in US dollars, or a string that says why it is unknown and what
    to do.

    The prompt is assumed to fill the model's whole context window, because its length is not known beforehand.
    `caches` means that prompts may be written to the provider's cache, which may cost more. A local model costs
    nothing.

    >>> max_call_cost("local:smollm2", None)
    Decimal('0')
    >>> max_call_cost("openai:gpt-4o-mini", None)
    'a reply of openai:gpt-4o-mini may have any length; set `max_tokens` in `model_settings`'
    """
    provider, _, model = name.partition(":")
    if provider == LOCAL:
        return Decimal(0)
    known = _find_in_price_list(provider, model)
    if known is None:
        return f"no price is known for {name}; {_CAP if has_known_price(name) else _UNCOUNTED}"
    found, info = known
    if info.context_window is None:
        return f"the context size of {name} is unknown; {_CAP}"
    if output_tokens is None:
        return f"a reply of {name} may have any length; set `max_tokens` in `model_settings`"
    window, now = info.context_window, datetime.now(UTC)
    kinds = [Usage(input_tokens=window, output_tokens=output_tokens)]
    if caches:
        kinds.append(Usage(input_tokens=window, cache_write_tokens=window, output_tokens=output_tokens))
    prices = [calc_price(each, model, provider_id=found.id, genai_request_timestamp=now) for each in kinds]
    return max(price.total_price for price in prices)


def _find_in_price_list(provider: str, model: str) -> tuple[Provider, ModelInfo] | None:
    """Return the model in the price list. A model at its own address is a different one, even with the same name."""
    if endpoint_of(f"{provider}:{model}") is not None:
        return None
    try:
        return get_snapshot().find_provider_model(model, None, _PRICED_AS.get(provider, provider), None)
    except LookupError:
        return None


def can_stream(model: Model) -> bool:
    """Return whether a model can stream its replies: a `FunctionModel` may lack the function, and others the method."""
    while isinstance(model, WrapperModel):
        model = model.wrapped
    if isinstance(model, FunctionModel):
        return model.stream_function is not None
    return type(model).request_stream is not Model.request_stream


def profile_of(model: Model) -> Mapping[str, Any]:
    """Return the profile of a model. For fallback models, the capabilities that all of them share."""
    inner = model
    while isinstance(inner, WrapperModel):
        inner = inner.wrapped
    if not isinstance(inner, FallbackModel):  # a fallback model has no profile of its own
        return cast("Mapping[str, Any]", model.profile)
    first, *others = map(profile_of, inner.models)
    return {key: value for key, value in first.items() if all(other.get(key) == value for other in others)}


def is_form_sent(parameters: ModelRequestParameters, model: Model) -> bool:
    """Return whether a request asks the provider to enforce a format: a schema, a tool call, or any JSON."""
    if parameters.output_mode == "prompted":
        return bool(profile_of(model).get("supports_json_object_output"))
    return parameters.output_mode == "native" or bool(parameters.output_tools)


def wants_output(parameters: ModelRequestParameters) -> bool:
    """Return whether the request asked for more than plain text."""
    return parameters.output_object is not None or bool(parameters.output_tools)
