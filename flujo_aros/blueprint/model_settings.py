"""The settings of a model: which there are, and of what kind their values are.

What is not known here would reach no provider, and nobody would hear of it. pydantic-ai is not imported for the names:
a test holds them against its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from flujo_aros.blueprint.document import Node
from flujo_aros.pipeline.names import nearest

if TYPE_CHECKING:
    from flujo_aros.blueprint.loading import Loading

_PROVIDERS: Final = re.compile(
    r"(?:anthropic|bedrock|cerebras|cohere|google|groq|huggingface|mistral|openai|openrouter|snowflake|xai|zai)_\w+"
)
"""Settings that only one provider has are named after it."""

_Fits = Callable[[Any], bool]


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_KINDS: Final[dict[str, _Fits]] = {
    "a number": _number,
    "an integer": _integer,
    "true or false": lambda value: isinstance(value, bool),
    "a list": lambda value: isinstance(value, list),
    "a mapping": lambda value: isinstance(value, dict),
}

SETTINGS: Final[dict[str, str | None]] = {
    **dict.fromkeys(("temperature", "top_p", "presence_penalty", "frequency_penalty"), "a number"),
    **dict.fromkeys(("timeout", "request_timeout", "first_event_timeout"), "a number"),
    **dict.fromkeys(("max_tokens", "top_k", "seed", "max_retries"), "an integer"),
    **dict.fromkeys(("parallel_tool_calls", "citations"), "true or false"),
    "stop_sequences": "a list",
    **dict.fromkeys(("logit_bias", "extra_headers"), "a mapping"),
    **dict.fromkeys(("tool_choice", "thinking", "cache", "service_tier", "extra_body", "framing_announcement")),
}
"""Each setting that pydantic-ai knows, and what its value should be; None where it may be of several kinds."""


def check_settings(loading: Loading, node: Node | None) -> None:
    """Note the settings at this node that no model has, and the values of a wrong kind."""
    for name, value in (node.members if node is not None else {}).items():
        kind = SETTINGS.get(name)
        plain = value.plain()
        if name not in SETTINGS and not _PROVIDERS.fullmatch(name):
            tell = loading.warn if loading.lenient else loading.note
            tell(node.keys[name] if node else value.place, f"unknown setting {name!r}{nearest(name, SETTINGS)}")
        elif kind is not None and plain is not None and not _KINDS[kind](plain):
            loading.doubt(value.place, f"model_settings.{name} should be {kind}, not {plain!r}")
