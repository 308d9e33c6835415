"""The effective options of a step after all defaults: one answer for the runner, the linter and `aros plan`."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, cast

from pydantic import BaseModel, TypeAdapter

from flujo_aros.contract import Contract, JsonSchema, SchemaValues, WrittenContract, compile_contract, compile_shape
from flujo_aros.errors import ContractError, UsageError
from flujo_aros.host import AgentSpec
from flujo_aros.json_data import SCHEMAS_BY_NAME, is_dict
from flujo_aros.outcome import Accepted, Degraded, Rejected, Risk
from flujo_aros.pipeline.model import PipelineStep
from flujo_aros.pipeline.modules import imported
from flujo_aros.pipeline.processing import Enforcement, Processing
from flujo_aros.pipeline.results import StepResult
from flujo_aros.recovery import PLAIN_TEXT, Degrade, Ladder, Retry, ladder_for
from flujo_aros.settings import current_settings

T = TypeVar("T")

SchemaSource: TypeAlias = Literal["contract", "processing", "agent"]
Mode: TypeAlias = Literal["auto", "prompted", "native", "tool", "own"]

DEGRADED_KEY = "text"
"""The key of a degraded step's text if the next step needs a mapping."""

# Keywords that do not constrain a string.
_WORDS_ONLY = {"type", "title", "description"}


@dataclass(frozen=True, slots=True)
class Facts:
    """The effective options of an agent step after all defaults.

    `contract` is what its reply must satisfy; None: any text. `schema_source` says where
    the schema in force was written, and `promoted` means that only the agent has it, so the step enforces a schema that
    it does not mention. `mode` is how the output is requested; "own" means that the step's agent is built in Python and
    decides that. `mergeable`: whether the value is a mapping, or None if unknown. `type_name` is the
    `package.module:Type` that a schema names and that is not yet imported.
    """

    agent: Any
    contract: Contract[Any] | None
    schema_source: SchemaSource | None
    promoted: bool
    mode: Mode
    enforcement: Enforcement
    ladder: Ladder | None
    mergeable: bool | None
    settings: Mapping[str, Any]
    type_name: str | None = None


class AgentStep(PipelineStep, Protocol):
    """The options of an agent step as its author wrote them."""

    @property
    def agent(self) -> Any:
        """An `AgentSpec`, or a pydantic-ai agent."""
        ...

    @property
    def contract(self) -> Any:
        """The contract of its reply, as written."""
        ...

    @property
    def processing(self) -> Processing:
        """How its output is requested and enforced."""
        ...

    @property
    def model(self) -> str | None:
        """The model for this step only."""
        ...

    @property
    def model_settings(self) -> Mapping[str, Any]:
        """The model settings for this step only."""
        ...


def type_reference(like: Any) -> str | None:
    """The `package.module:Type` of a schema written as `{from: package.module:Type}`."""
    found: Any = like.get("from") if is_dict(like) and len(like) == 1 else None
    return found if isinstance(found, str) else None


def effective(step: AgentStep, *, importing: bool = False) -> Facts:
    """The effective options of an agent step, after all defaults.

    With `importing` the type of a schema `{from: package.module:Type}` is imported, which raises `UsageError` if that
    is not possible; otherwise such a schema counts as any JSON value.
    The schema is that of the step's contract, else its `processing.schema`, else (promotion) the agent's
    `output_schema`, unless `structured_output: off` disables that. A `structured_output` that asks for JSON without
    any schema means any JSON value. `enforcement: off` requires nothing, and neither does a schema that is only
    `type: string`.
    """
    like, source = _like(step)
    reference = type_reference(like)
    if reference is not None:
        like = _imported_type(reference, step.name) if importing else cast("Any", {})
    contract = _contract(step, like)
    own = not isinstance(step.agent, AgentSpec)
    return Facts(
        agent=_agent(step),
        contract=contract,
        schema_source=source if contract is not None or own else None,
        promoted=source == "agent" and (contract is not None or own),
        mode=_mode(step),
        enforcement=step.processing.enforcement,
        ladder=_ladder(step, contract),
        mergeable=_mergeable(step, contract),
        settings={} if not own else dict(step.model_settings),
        type_name=None if importing else reference,
    )


def handed_on(result: StepResult[Any], following: PipelineStep | None) -> Any:
    """The value that the next step receives: the value of this step, or the text of a degraded one.

    Such a text becomes `{"text": …}` if the next step needs a mapping, because its function takes one or its templates
    use `previous_step.text`.
    """
    given = result.handed_on
    if (
        isinstance(result.outcome, Degraded)
        and isinstance(given, str)
        and following is not None
        and _needs_mapping(following)
    ):
        return {DEGRADED_KEY: given}
    return given


def mergeable(step: PipelineStep) -> bool | None:
    """Whether the value of a step is a mapping: as its author declares, or else as far as it can be inferred; None if
    unknown."""
    return step.gives_mapping if step.mergeable_output is None else step.mergeable_output


def missing_keys(paths: Sequence[str], context: Mapping[str, Any]) -> list[str]:
    """The dotted paths that have no value in the context; null counts as none."""
    return [path for path in paths if _at(context, path.split(".")) is None]


def returns_mapping(function: object) -> bool | None:
    """Whether a function's return annotation is a mapping or a model; None without an annotation."""
    found = _annotations(function).get("return", inspect.Parameter.empty)
    return None if found is inspect.Parameter.empty else _is_mapping(found)


def takes_mapping(function: object) -> bool:
    """Whether the annotation of a function's first parameter is a mapping; mappings are not converted to models."""
    first = _first_parameter(function)
    wanted = None if first is None else _annotations(function).get(first)
    kind = typing.get_origin(wanted) or wanted
    return isinstance(kind, type) and (issubclass(kind, Mapping) or typing.is_typeddict(cast("object", kind)))


def _imported_type(reference: str, step: str) -> Any:
    found = imported(reference, step=step)
    try:
        compile_contract(found)
    except (ContractError, TypeError) as error:
        raise UsageError(f"step {step!r}: {reference} is not a type for a value: {error}", step=step) from error
    return found


def _like(step: AgentStep) -> tuple[Any, SchemaSource | None]:
    if step.contract is not None and not isinstance(step.contract, WrittenContract):
        return step.contract, "contract"
    if step.processing.schema is not None:
        return step.processing.schema, "processing"
    if step.processing.structured_output == "off":
        return None, None
    if isinstance(step.agent, AgentSpec) and step.agent.output_schema is not None:
        return step.agent.output_schema, "agent"
    if getattr(step.agent, "output_type", str) is not str:
        return None, "agent"
    asks_for_json = step.processing.native and step.contract is None
    return ({}, "processing") if asks_for_json else (None, None)


def _contract(step: AgentStep, like: Any) -> Contract[Any] | None:
    if step.processing.enforcement == "off":
        return None
    where = step.contract if isinstance(step.contract, WrittenContract) else None
    if where is None and (like is None or _any_text(like)):
        return None
    made = compile_contract(like) if where is None else where.contract(like if where.takes_schema else None)
    ceiling, wanted = step.processing.ceiling, step.processing.conversions
    if wanted is not None and isinstance(like, dict) and isinstance(made.values, SchemaValues):
        values = copy.copy(made.values)
        values.shape = compile_shape(_guide(values.json_schema, ceiling or made.risk, wanted))
        made = replace(made, values=values)
    return made if ceiling is None else replace(made, risk=ceiling)


def contract_of(step: AgentStep) -> Contract[Any] | None:
    """The contract of an agent step's reply, or None for any text."""
    like = _like(step)[0]
    return _contract(step, like if type_reference(like) is None else {})


def warnings_of(step: AgentStep) -> Iterator[tuple[str, str]]:
    """The keys of a step's `processing` that have no effect, each with a sentence that says why."""
    like, _ = _like(step)
    yield from step.processing.warnings
    if step.processing.conversions is not None and like is not None and not isinstance(like, dict):
        key = "aop" if step.processing.coercion.allow is None else "coercion.allow"
        yield (
            key,
            "has no effect on a Python type, which converts by itself: make the type strict, or give a JSON Schema",
        )


def _agent(step: AgentStep) -> Any:
    """The agent with the step's own model, settings and output mode."""
    if not isinstance(step.agent, AgentSpec):
        return step.agent
    mode = _mode(step)
    changed: dict[str, Any] = {} if mode == step.agent.output_mode else {"output_mode": mode}
    if step.model is not None:
        changed["model"] = step.model
    if step.model_settings:
        changed["model_settings"] = {**step.agent.model_settings, **step.model_settings}
    return step.agent.model_copy(update=changed) if changed else step.agent


def _mode(step: AgentStep) -> Mode:
    if not isinstance(step.agent, AgentSpec):
        return "own"
    if step.agent.output_mode != "auto":
        return step.agent.output_mode
    if step.processing.native:
        return "native"
    return "prompted" if step.processing.structured_output == "off" else "auto"


def _ladder(step: AgentStep, contract: Contract[Any] | None) -> Ladder | None:
    """The step's ladder: the stages that it names, else the default ones of its contract. None if nothing is enforced,
    or if only the agent's own output type defines the output. Text in place of a value is possible if the step names
    `degrade` or accepts it (`on_degraded: accept`).
    """
    if contract is None:
        if step.processing.enforcement == "off" or getattr(step.agent, "output_type", str) is not str:
            return None
        contract = PLAIN_TEXT
    ladder = step.processing.ladder(_default_ladder(step, contract))
    if step.processing.enforcement == "validate":
        ladder = ladder.model_copy(update={"stages": ()})
    if step.on_degraded == "accept" and not any(isinstance(stage, Degrade) for stage in ladder.stages):
        ladder = ladder.model_copy(update={"stages": (*ladder.stages, Degrade())})
    return ladder


def _default_ladder(step: AgentStep, contract: Contract[Any]) -> Ladder:
    """The default ladder for a contract, with the agent's number of retries in the conversation."""
    ladder = ladder_for(contract, current_settings())
    again = step.agent.max_retries if isinstance(step.agent, AgentSpec) else 0
    if not again:
        return ladder
    stages = tuple(
        each.model_copy(update={"attempts": again}) if isinstance(each, Retry) else each for each in ladder.stages
    )
    return ladder.model_copy(update={"stages": stages})


def _mergeable(step: AgentStep, contract: Contract[Any] | None) -> bool | None:
    if contract is None:
        own = getattr(step.agent, "output_type", str)
        return False if own is str or isinstance(step.agent, AgentSpec) else _is_mapping(own)
    if contract.mode in ("text", "block"):
        return contract.mode == "block"
    kinds = set(contract.shape.types)
    if not kinds:
        return True if contract.shape.properties or contract.mode == "event" else None
    return kinds == {"object"}


def _any_text(like: object) -> bool:
    if not isinstance(like, dict):
        return False
    schema = cast("dict[str, Any]", like)
    return schema.get("type") == "string" and schema.keys() <= _WORDS_ONLY


_CONVERTED = ("integer", "number", "boolean")


def _guide(schema: JsonSchema, ceiling: Risk, wanted: frozenset[str]) -> JsonSchema:
    """The schema that guides conversions; the value is validated against the real one in any case. Types to which no
    string may be converted are left out, so that nothing is converted there. Where a conversion beyond the general risk
    is allowed, the place itself allows it.
    """

    def rewritten(node: Any) -> Any:
        if isinstance(node, list):
            return [rewritten(each) for each in cast("list[object]", node)]
        if not isinstance(node, dict):
            return node
        members = cast("dict[str, Any]", node)
        return {key: value if key in _LITERAL else inner(key, value) for key, value in typed(members).items()}

    def inner(key: str, value: Any) -> Any:
        if key in SCHEMAS_BY_NAME and isinstance(value, dict):
            return {name: rewritten(each) for name, each in cast("dict[str, Any]", value).items()}
        return rewritten(value)

    def typed(node: dict[str, Any]) -> dict[str, Any]:
        kinds = node.get("type")
        listed = cast("list[str]", kinds) if isinstance(kinds, list) else [kinds]
        if any(kind in wanted for kind in listed):
            hints = {"risk": max(ceiling, Risk.INFERRED).name.lower(), **node.get("x-aros", {})}
            return {**node, "x-aros": hints}
        if any(kind in _CONVERTED for kind in listed):
            return {key: value for key, value in node.items() if key != "type"}
        return node

    return cast("JsonSchema", rewritten(schema))


# Keywords whose value is data, not a schema.
_LITERAL = ("const", "default", "enum", "examples", "required", "x-aros")


def _needs_mapping(step: PipelineStep) -> bool:
    if step.wants_mapping and any(read.whole_previous for template in step.templates for read in template.reads):
        return True
    return any(read.names("previous_step", DEGRADED_KEY) for template in step.templates for read in template.reads)


def _at(value: Any, path: Sequence[str]) -> Any:
    for name in path:
        if isinstance(value, Mapping):
            value = cast("Mapping[str, Any]", value).get(name)
        else:
            value = getattr(value, name, None) if isinstance(value, BaseModel) else None
    return value


def _annotations(function: object) -> dict[str, Any]:
    if not callable(function) or isinstance(function, type):
        return {}
    target = function if inspect.isroutine(function) else type(function).__call__
    try:
        return typing.get_type_hints(target)
    except (NameError, TypeError):  # an annotation that cannot be resolved here is ignored
        return {}


def _first_parameter(function: object) -> str | None:
    try:
        parameters = inspect.signature(cast("Callable[..., Any]", function)).parameters
    except (TypeError, ValueError):
        return None
    return next(iter(parameters), None)


def _is_mapping(annotation: Any) -> bool | None:
    """Whether values of this type are mappings; None if that is unknown."""
    if annotation is Any or isinstance(annotation, TypeVar):
        return None
    if isinstance(annotation, TypeAdapter):
        return None
    origin = typing.get_origin(annotation) or annotation
    if origin in (typing.Union, types.UnionType):
        found = {_is_mapping(each) for each in typing.get_args(annotation)}
        return found.pop() if len(found) == 1 else None
    if not isinstance(origin, type):
        return None
    return _is_mapping_type(cast("type[object]", origin))


def _is_mapping_type(kind: type[Any]) -> bool | None:
    if kind is object or issubclass(kind, (Accepted, Degraded, Rejected)):
        return None
    return issubclass(kind, (Mapping, BaseModel)) or dataclasses.is_dataclass(kind) or typing.is_typeddict(kind)
