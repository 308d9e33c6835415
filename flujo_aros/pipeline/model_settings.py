"""The settings of a model: which there are, and of what kind their values are.

What is not known here would reach no provider, and nobody would hear of it. pydantic-ai is not imported for the names:
a test holds them against its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from flujo_aros.errors import Hint
from flujo_aros.pipeline.names import nearest

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
    "a number of seconds": lambda value: _number(value) or hasattr(value, "connect"),  # of a client, in Python
    "an integer": _integer,
    "true or false": lambda value: isinstance(value, bool),
    "a list": lambda value: isinstance(value, (list, tuple)),
    "a mapping": lambda value: isinstance(value, Mapping),
}

SETTINGS: Final[dict[str, str | None]] = {
    **dict.fromkeys(("temperature", "top_p", "presence_penalty", "frequency_penalty"), "a number"),
    **dict.fromkeys(("request_timeout", "first_event_timeout"), "a number"),
    **dict.fromkeys(("max_tokens", "top_k", "seed", "max_retries"), "an integer"),
    **dict.fromkeys(("parallel_tool_calls", "citations"), "true or false"),
    "stop_sequences": "a list",
    **dict.fromkeys(("logit_bias", "extra_headers"), "a mapping"),
    **dict.fromkeys(("tool_choice", "thinking", "cache", "service_tier", "extra_body", "framing_announcement")),
    "timeout": "a number of seconds",
}
"""Each setting that pydantic-ai knows, and what its value should be; None where it may be of several kinds."""


def unknown_setting(name: str) -> Hint | None:
    """The sentence for a setting that no model has, with the nearest one."""
    if name in SETTINGS or _PROVIDERS.fullmatch(name):
        return None
    return nearest(name, SETTINGS).after(f"unknown setting {name!r}")


def wrong_setting(name: str, value: Any) -> str | None:
    """The sentence for a value that is not of the kind of its setting."""
    kind = SETTINGS.get(name)
    if kind is None or value is None or _KINDS[kind](value):
        return None
    return f"model_settings.{name} should be {kind}, not {value!r}"


def wrong_settings(settings: Mapping[str, Any]) -> Iterator[str]:
    """One sentence for each setting that no model has, and each value of a wrong kind."""
    for name, value in settings.items():
        unknown = unknown_setting(name)
        wrong = unknown.after("model_settings: ") if unknown else wrong_setting(name, value)
        if wrong is not None:
            yield wrong
