"""The names of models: what can be known to be wrong with one before anything is asked of anybody."""

from __future__ import annotations

import pkgutil
import re
from difflib import get_close_matches
from typing import Final

from pydantic_ai import providers
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model, known_model_names

from flujo_aros.errors import UsageError

LOCAL: Final = "local"
"""What stands before the name of a model on this machine."""

_NAMES: Final = frozenset(known_model_names())

_PROVIDERS: Final = tuple(
    sorted(
        {LOCAL, "openai-responses"}
        | {name.partition(":")[0] for name in _NAMES if ":" in name}
        | {each.name.replace("_", "-") for each in pkgutil.iter_modules(providers.__path__) if each.name[0] != "_"}
    )
)
"""What may stand before the colon. Found when this is imported: loading a blueprint looks into no folder."""

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
"""Whose models are called so."""


def mistaken(name: str) -> str | None:
    """What is wrong with the name of a model, and how it should be; None where nothing is known to be.

    >>> mistaken("gpt-4o-mini")
    "the model 'gpt-4o-mini' names no provider; did you mean 'openai:gpt-4o-mini'?"
    >>> mistaken("opnai:gpt-4o")
    "there is no provider of models for 'opnai:gpt-4o'; did you mean 'openai:gpt-4o'?"
    >>> mistaken("openai:gpt-4o"), mistaken("my-own-model")
    (None, None)
    >>> mistaken("openai:")
    "the model 'openai:' has no name behind its provider; write openai:NAME"
    """
    provider, colon, model = name.strip().partition(":")
    if colon and not provider:
        return f"the model {name!r} names no provider; write PROVIDER{name.strip()}"
    if colon and not model:
        return f"the model {name!r} has no name behind its provider; write {provider}:NAME"
    if colon:
        nearest = [] if provider in _PROVIDERS else get_close_matches(provider.lower(), _PROVIDERS, 1, cutoff=0.8)
        known = nearest and not any(provider.startswith(f"{other}-") for other in _PROVIDERS)
        return f"there is no provider of models for {name!r}; did you mean '{nearest[0]}:{model}'?" if known else None
    maker, slash, rest = provider.partition("/")
    if slash and maker in _PROVIDERS:
        return f"the model {name!r} names no provider; did you mean '{maker}:{rest}'?"
    owner = next((owner for family, owner in _FAMILIES if family.match(provider.lower())), None) or _owner(provider)
    return None if owner is None else f"the model {name!r} names no provider; did you mean '{owner}:{provider}'?"


def unowned(name: str) -> str | None:
    """What is wrong with a name that names no provider; None for any other. No such model can be had."""
    if ":" in name or name in _NAMES:
        return None
    return mistaken(name) or f"the model {name!r} names no provider; write PROVIDER:{name}, or local:NAME"


def made_model(name: str) -> Model:
    """The model of a name that pydantic-ai knows. Raises `UsageError` where a key, a package or a provider lacks."""
    try:
        return infer_model(name)
    except (UserError, ImportError) as error:
        raise UsageError(unowned(name) or mistaken(name) or _unusable(name, str(error))) from error


def _unusable(name: str, why: str) -> str:
    """Why a model cannot be used, in the words of the host as far as they are about this model."""
    said = why.partition(" To try Pydantic AI without")[0].rstrip(". ")
    local = ". The model `local:smollm2` runs on this machine and needs no key" if "_API_KEY`" in said else ""
    return f"the model {name!r} cannot be used: {said}{local}"


def _owner(name: str) -> str | None:
    """The provider of a model that is known by this name; rather its maker than somebody who hands it on."""
    owners = {known.partition(":")[0] for known in _NAMES if known.partition(":")[2] == name}
    return min(owners, key=lambda owner: ("/" in owner, len(owner), owner), default=None)
