"""The pydantic-ai agent that is built from a spec."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, Protocol, TypeVar, cast

from pydantic_ai import Agent, NativeOutput, PromptedOutput, StructuredDict, ToolOutput
from pydantic_ai.capabilities import CAPABILITY_TYPES, AbstractCapability
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from flujo_aros.contract import Check, Contract, TaggedContract, with_checks
from flujo_aros.errors import UsageError
from flujo_aros.host.capability import Aros
from flujo_aros.host.direct import TEXT, with_instructions
from flujo_aros.host.direct_run import DirectAgent
from flujo_aros.host.envelope import object_schema
from flujo_aros.host.model_facts import made_model, profile_of
from flujo_aros.host.output_types import without_deferral
from flujo_aros.host.schema_request import schema_request
from flujo_aros.host.spec import AgentSpec, OutputMode
from flujo_aros.recovery import Ladder

T = TypeVar("T")
MadeT = TypeVar("MadeT")


class ModelSource(Protocol):
    """Provides the models that a pipeline names, including those of providers (for tests and routing)."""

    async def model(self, name: str) -> Model:
        """Return the model of this name, ready for requests."""
        ...


@dataclass(frozen=True, slots=True)
class HostedAgent(Generic[T]):
    """A pydantic-ai agent, and what one run of it needs so that `Aros` is active.

    `schema_sent`: the provider is asked to enforce the schema.
    """

    agent: Agent[Any, Any]
    contract: Contract[T] | None
    output_type: Any = None
    instructions: str | None = None
    add: tuple[Aros, ...] = ()
    schema_sent: bool = False


async def direct_agent(
    spec: AgentSpec,
    contract: Contract[T] | None,
    ladder: Ladder | None,
    models: ModelSource | None,
    *,
    repeated: bool = False,
) -> DirectAgent[T]:
    """The agent of a spec, which needs no agent graph: it has no tools. The same one each time in an event loop.

    `repeated`: the caller repeats it after provider errors. Raises `UsageError` for an unavailable model.
    """
    model = await named_model(spec.model, models, repeated=repeated)
    return _once(_of_spec, spec, model, contract, ladder)


async def agent_with_tools(
    spec: AgentSpec,
    tools: Sequence[Any],
    contract: Contract[T] | None,
    ladder: Ladder | None,
    models: ModelSource | None,
    *,
    repeated: bool = False,
) -> HostedAgent[T]:
    """The agent of a spec that has `tools` or capabilities, for pydantic-ai to run. Raises as `direct_agent`."""
    model = await named_model(spec.model, models, repeated=repeated)
    return hosted_agent(_once(_with_tools, spec, model, *tools), contract, ladder, spec.output_mode)


def check_agent(spec: AgentSpec, tools: Sequence[Any]) -> None:
    """Raise `UsageError` for an agent that cannot be built, because of its tools or a requirement of a capability."""
    if tools or spec.capabilities:
        _with_tools(spec, None, *tools)


def capability_names() -> tuple[str, ...]:
    """The names of the capabilities that pydantic-ai can build from a spec."""
    return tuple(CAPABILITY_TYPES)


async def named_model(name: str, models: ModelSource | None, *, repeated: bool = False) -> Model:
    """The model with this name, from the source if one is given, else from pydantic-ai. Raises `UsageError`.

    With `repeated`, the provider's client does not retry on its own: the caller does, counting and waiting.
    """
    if models is not None:
        only = getattr(models, "only", "")  # `LocalModels` has only those of its own prefix, any other source all names
        if isinstance(only, str) and name.startswith(only):
            return await models.model(name)
    if name.startswith("local:"):
        message = f"the model {name!r} runs on this machine, but no source of local models was given (models=...)"
        raise UsageError(message)
    return _once(_made_once if repeated else made_model, sys.intern(name))


def _made_once(name: str) -> Model:
    """The model without the retries of its provider's client."""
    model = made_model(name)
    client = getattr(model, "client", None)
    if isinstance(getattr(client, "max_retries", None), int):
        cast("Any", client).max_retries = 0
    return model


_MOST_KEPT: Final = 128
_kept: Final[dict[asyncio.AbstractEventLoop, dict[tuple[object, ...], tuple[object, Any]]]] = {}


def _once(make: Callable[..., MadeT], *parts: object) -> MadeT:
    """The result of `make` for these very objects, made once in an event loop: its connections work in no other.

    A model of a provider takes as long to make as twenty runs of an agent, and has a pool of connections. The objects
    are kept beside the result, so that their identities stay valid.
    """
    loop = asyncio.get_running_loop()
    if loop not in _kept:
        for other in list(_kept):
            if other.is_closed():
                _kept.pop(other, None)
    kept = _kept.setdefault(loop, {})
    key = (make, *map(id, parts))
    known = kept.get(key)
    if known is None:
        if len(kept) >= _MOST_KEPT:  # a local model is a new one in each run
            del kept[next(iter(kept))]
        known = kept[key] = parts, make(*parts)
    made: MadeT = known[1]
    return made


def checked_contract(contract: Contract[T], checks: Sequence[Check]) -> Contract[T]:
    """The contract with further checks: the same object each time, so that caches keyed by it work."""
    return _once(_with_checks, contract, *checks) if checks else contract


def _with_checks(contract: Contract[T], *checks: Check) -> Contract[T]:
    return with_checks(contract, checks)


def _of_spec(spec: AgentSpec, model: Model, contract: Contract[T] | None, ladder: Ladder | None) -> DirectAgent[T]:
    mode = spec.output_mode
    if mode == "auto":
        mode = "native" if profile_of(model).get("supports_json_schema_output") else "prompted"
    request = None
    if contract is not None and not _is_asked_in_words(contract, mode):
        with suppress(UsageError):  # a recursive schema
            request = schema_request(contract, mode)
    instructions = spec.system_prompt
    if contract is not None and request is None:
        instructions = f"{instructions}\n\n{_words(contract) or ''}".strip()
    settings = cast("ModelSettings", dict(spec.model_settings)) if spec.model_settings else None
    parameters = with_instructions(TEXT if request is None else request.parameters, instructions)
    key = None if request is None else request.key
    return DirectAgent(spec.name, model, contract, ladder, instructions or None, settings, parameters, key)


def _with_tools(spec: AgentSpec, model: Model | None, *tools: Any) -> Agent[Any, Any]:
    settings = cast("ModelSettings", dict(spec.model_settings)) if spec.model_settings else None
    try:
        return Agent.from_spec(
            {"capabilities": list(spec.capabilities)},
            model=model,
            name=spec.name or None,
            instructions=spec.system_prompt or None,
            model_settings=settings,
            tools=tools,
            deps_type=object,
        )
    except (UserError, ValueError, TypeError, ImportError) as error:  # as it refuses tools, options and what is missing
        raise UsageError(f"the agent {spec.name!r} cannot be built: {error}") from error


def hosted_agent(
    agent: Agent[Any, Any], contract: Contract[T] | None, ladder: Ladder | None, mode: OutputMode = "auto"
) -> HostedAgent[T]:
    """A user's agent with `Aros` active. If its output type is only text, this run asks for the contract."""
    parts: list[AbstractCapability[Any]] = []
    agent.root_capability.apply(parts.append)
    has_own = any(isinstance(part, Aros) for part in parts)
    add = () if has_own else (Aros(contract, ladder),)
    if contract is None or without_deferral(agent.output_type) is not str:
        return HostedAgent(agent, contract, add=add)
    if mode == "auto":
        native = isinstance(agent.model, Model) and bool(profile_of(agent.model).get("supports_json_schema_output"))
        mode = "native" if native else "prompted"
    output = _output_type(contract, mode)
    words = _words(contract) if output is str else None
    return HostedAgent(agent, contract, output, words, add, schema_sent=mode == "native" and output is not str)


def _words(contract: Contract[Any]) -> str | None:
    """What the prompt says about the output. Tags are explained by the author, who alone knows their purpose."""
    return None if isinstance(contract, TaggedContract) else contract.instruction()


def _output_type(contract: Contract[Any], mode: Literal["native", "prompted", "tool"]) -> Any:
    """The output type for pydantic-ai: the schema as an object, or text if it cannot express the schema."""
    if _is_asked_in_words(contract, mode):
        return str
    try:
        like = StructuredDict(object_schema(contract.json_schema))
    except UserError:  # a recursive schema
        return str
    return {"native": NativeOutput, "prompted": PromptedOutput, "tool": ToolOutput}[mode](like)


def _is_asked_in_words(contract: Contract[Any], mode: str) -> bool:
    of_text = contract.mode in ("tagged", "text", "block") or (contract.mode == "event" and mode == "prompted")
    return of_text or not contract.json_schema
