"""Steps that do work: `Step` (an agent) and `Call` (a function), and the effective options of a step after all
defaults.

`Processing` is the block of options for a reply: its schema, the allowed repairs, and the ladder. `effective` computes
the resulting options once, for the runner, the linter and `aros plan`.
"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import inspect
import types
import typing
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from functools import cached_property, partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, Protocol, TypeAlias, TypeVar, cast

from annotated_types import Ge
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypeIs

from flujo_aros.configured import option_error
from flujo_aros.contract import (
    Check,
    CompletionSignal,
    Contract,
    JsonSchema,
    SchemaValues,
    WrittenContract,
    compile_contract,
    compile_shape,
    fold,
    reject_iterations,
    require_keywords,
    with_checks,
    written_contract,
)
from flujo_aros.errors import ContractError, UsageError
from flujo_aros.events import TextReplaced
from flujo_aros.host import AgentSpec, missing_provider
from flujo_aros.json_data import follow_refs, is_dict, with_schemas_changed
from flujo_aros.outcome import Accepted, Degraded, Issue, Outcome, Reason, Rejected, Risk, StageRecord, Trust
from flujo_aros.pipeline.condition import Expressed
from flujo_aros.pipeline.human import decided, paused_for
from flujo_aros.pipeline.ledger import Settlement, emit_call
from flujo_aros.pipeline.model import Pipeline, PipelineStep, StepContext, TakesInput
from flujo_aros.pipeline.modules import REFERENCE, imported, resolved
from flujo_aros.pipeline.options import Option, anything, has, is_a, known_options, list_of, reject_wrong_options, shown
from flujo_aros.pipeline.results import StepResult, T_co
from flujo_aros.pipeline.template import InputLike, field_names
from flujo_aros.reading.payload import apply_checks_async
from flujo_aros.reading.read import read
from flujo_aros.recovery import PLAIN_TEXT, READING, Degrade, Ladder, Retry, ladder_for
from flujo_aros.redaction import SecretsFound, secrets_among
from flujo_aros.settings import current_settings
from flujo_aros.spelling import nearest, short_value

if TYPE_CHECKING:
    from flujo_aros.host import AbstractAgent, AgentRun, Prompt
else:
    AbstractAgent = Mapping  # `_AGENT` is the check; the type itself would import pydantic-ai for every blueprint

Enforcement: TypeAlias = Literal["off", "validate", "repair", "validate+repair"]
StructuredOutput: TypeAlias = Literal["off", "auto", "openai_json", "outlines", "xgrammar"]
Aop: TypeAlias = Literal["off", "minimal", "full"]
RiskWord: TypeAlias = Literal["lossless", "inferred", "lossy"]

CONVERSIONS: Final[Mapping[str, str]] = {
    "integer": "str->int",
    "number": "str->float",
    "boolean": "str->bool",
    "array": "str->array",
}
"""For each schema type, the conversion that `coercion.allow` may name."""

_LEVELS: Final = (Risk.LOSSLESS, Risk.INFERRED, Risk.LOSSY)
_PRECHECK_KEYS: Final = ("enabled", "required_context_keys")
_NATIVE: Final = ("openai_json", "outlines", "xgrammar")


@known_options
@dataclass(frozen=True, slots=True, kw_only=True)
class Coercion:
    """Limits on changes to a reply that make it fit the schema.

    `tolerant_level`: 0 allows only changes of the wrapping (risk LOSSLESS), 1 also unambiguous conversions (INFERRED,
    the default), 2 also truncation and rounding (LOSSY). `allow` lists the allowed conversions of strings by type
    (`{"integer": ["str->int"]}`); if it is set, only these conversions are made, at any level.
    """

    tolerant_level: Literal[0, 1, 2] | None = None
    """0 is `risk: lossless`, 1 is `inferred`, and 2 is `lossy`."""
    max_unescape_depth: Annotated[int, Ge(0)] | None = None
    """Has no effect."""
    anyof_strategy: Literal["first-pass"] | None = None
    """The first alternative that fits is used."""
    allow: dict[str, list[str]] | None = None
    """The only string conversions to allow, by type: {integer: [str->int]}."""
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    def __post_init__(self) -> None:
        reject_wrong_options(self, "coercion.")
        for kind, conversions in (self.allow or {}).items():
            if kind not in CONVERSIONS:
                raise UsageError(f"coercion.allow has no type {kind!r}{nearest(kind, CONVERSIONS)}")
            for wrong in set(conversions) - {CONVERSIONS[kind]}:
                raise UsageError(f"coercion.allow.{kind} accepts only {CONVERSIONS[kind]!r}, not {wrong!r}")


_COERCION: Final = Option(words="a Coercion", hint="use `Coercion(tolerant_level=1)`", fits=is_a("Coercion"))
_STAGES: Final = Option(
    words="a list of stages, each a name or a mapping",
    hint='`stages=["retry"]`, even for a single one',
    fits=lambda value: isinstance(value, (list, tuple)),
)
_LIMITS: Final = ("max_stages", "max_calls", "max_cost", "deadline", "adaptive")
"""The limits of a ladder, which are validated with it, as are the options of its stages."""


@known_options
@dataclass(frozen=True, slots=True, kw_only=True)
class Processing:
    """The schema of a step's reply, the allowed repairs, and the ladder. `enforcement`: "repair" (or "validate+repair")
    reads, validates and runs the ladder; "validate" reads and validates, without further model calls; "off" takes the
    text unchanged. `structured_output`: "openai_json", "outlines" and "xgrammar" all ask for the provider's own schema
    or grammar mode, and so does `enforce_grammar`; "off" also keeps the agent's schema from being enforced. `risk` is
    the highest risk of a repair; it defaults to `coercion.tolerant_level`, which defaults to `aop`. `stages` are the
    stages of the ladder, by name or with their options. Raises `UsageError`.

    >>> Processing(stages=("retry", {"stage": "llm_repair", "attempts": 1}), max_calls=3).max_calls
    3
    """

    structured_output: StructuredOutput = "auto"
    """How a schema is requested: `auto` uses the provider's mode if it has one, and `off` only puts the schema in the
    instructions. The others mean the provider's mode."""
    schema: Annotated[dict[str, Any], Option(words="a JSON Schema, which is a mapping")] | None = None
    """A JSON Schema for the value. Default: that of the agent."""
    enforcement: Enforcement = "repair"
    """`repair` validates and runs the ladder; `validate` makes no further call; `off` checks nothing."""
    aop: Aop | None = None
    """flujo's name for `risk`: `off` is lossless, `minimal` converts no strings, and `full` is the default."""
    coercion: Annotated[Coercion, _COERCION] = field(default_factory=Coercion)
    """Which string conversions are allowed."""
    enforce_grammar: bool = False
    """The same as `structured_output: openai_json`."""
    risk: RiskWord | None = None
    """The riskiest repair allowed. Default: that of the contract."""
    stages: Annotated[tuple[str | dict[str, Any], ...], _STAGES] | None = None
    """The stages of the ladder, in order: names, or mappings with `stage:` and its options."""
    max_stages: int | None = None
    """The maximum number of fallback stages. Default: 3."""
    max_calls: int | None = None
    """The maximum number of further model calls. Default: 6."""
    max_cost: Decimal | None = None
    """The maximum cost of all stages together, in US dollars."""
    deadline: float | None = None
    """Seconds for all stages together."""
    adaptive: bool | None = None
    """Order the stages by their past success."""
    reasoning_precheck: Annotated[dict[str, Any], Option(words="a mapping")] | None = None
    """{required_context_keys: […]}: without a value for each, the step fails without a call."""
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    def __post_init__(self) -> None:
        names = (each.name for each in fields(self))
        reject_wrong_options(self, "processing.", frozenset(names).difference(_LIMITS).union({"adaptive"}))
        if self.enforcement == "validate+repair":
            object.__setattr__(self, "enforcement", "repair")
        if self.enforce_grammar and self.structured_output == "off":
            raise UsageError("enforce_grammar conflicts with structured_output: off; remove one of them")
        _check_precheck(self.reasoning_precheck)
        for number, each in enumerate(cast("tuple[object, ...]", self.stages or ())):
            if not isinstance(each, (str, Mapping)) and not hasattr(each, "stage"):
                message = f"processing.stages.{number} must be a stage, a name or a mapping, not {short_value(each)}"
                raise UsageError(message, key=f"stages.{number}")
        self.ladder(Ladder())  # so that an invalid stage or limit raises immediately

    @property
    def native(self) -> bool:
        """Whether the provider should enforce the schema."""
        return self.enforce_grammar or self.structured_output in _NATIVE

    @property
    def ceiling(self) -> Risk | None:
        """The highest risk of a repair, or None for the contract's own default."""
        if self.risk is not None:
            return Risk[self.risk.upper()]
        if self.coercion.tolerant_level is not None:
            return _LEVELS[self.coercion.tolerant_level]
        return Risk.LOSSLESS if self.aop == "off" else None

    @property
    def conversions(self) -> frozenset[str] | None:
        """The schema types to which a string may be converted, or None for those that the risk allows."""
        if self.coercion.allow is not None:
            return frozenset(kind for kind, conversions in self.coercion.allow.items() if conversions)
        return frozenset() if self.aop == "minimal" else None

    @property
    def required_context_keys(self) -> tuple[str, ...]:
        """The dotted paths in the context that must have a value before the model is called."""
        precheck = self.reasoning_precheck or {}
        return tuple(precheck.get("required_context_keys") or ()) if precheck.get("enabled", True) else ()

    @property
    def warnings(self) -> list[tuple[str, str]]:
        """The keys that have no effect, each with a sentence that says why."""
        found: list[tuple[str, str]] = []
        if self.coercion.max_unescape_depth is not None:
            why = "JSON inside a JSON string is unwrapped once, as an INFERRED repair; `risk: lossless` forbids it"
            found.append(("coercion.max_unescape_depth", f"has no effect: {why}"))
        if self.enforcement == "off":
            useless = [name for name in ("aop", "risk", "stages", "max_stages", "max_calls") if getattr(self, name)]
            found += [(name, "has no effect with `enforcement: off`") for name in useless]
        if self.enforcement == "validate" and self.stages:
            found.append(("stages", "has no effect with `enforcement: validate`, which makes no further model calls"))
        return found

    def ladder(self, default: Ladder) -> Ladder:
        """Return the ladder with the stages and limits of this block in place of the default's. Raises `UsageError`."""
        changed: dict[str, Any] = {name: value for name in _LIMITS if (value := getattr(self, name)) is not None}
        if self.stages is not None:
            changed["stages"] = self.stages
        if not changed:
            return default
        kept = {name: getattr(default, name) for name in type(default).model_fields}
        try:
            return Ladder.model_validate({**kept, **changed})
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            path = list(first["loc"])
            if len(path) > 1:  # `deterministic` is not a stage of the ladder
                names = [each.get("stage") if is_dict(each) else each for each in self.stages or ()]
                path[1] = [number for number, name in enumerate(names) if name not in READING][int(path[1])]
            raise UsageError(option_error(Ladder, first), key=".".join(map(str, path))) from error


def _check_precheck(precheck: dict[str, Any] | None) -> None:
    for key, value in (precheck or {}).items():
        if key not in _PRECHECK_KEYS:
            raise UsageError(
                f"reasoning_precheck.{key} is not supported: only `enabled` and "
                "`required_context_keys` are; evaluate plans in a separate step",
                key=f"reasoning_precheck.{key}",
            )
        if key == "enabled" and not isinstance(value, bool):
            raise UsageError(f"reasoning_precheck.enabled must be true or false, not {value!r}")
        if key != "enabled" and not list_of(str)(value):
            raise UsageError(f"reasoning_precheck.{key} must be a list of names, not {value!r}")


NO_PROCESSING: Final = Processing()
"""The block of a step without options."""


SchemaSource: TypeAlias = Literal["contract", "processing", "agent"]
Mode: TypeAlias = Literal["auto", "prompted", "native", "tool", "own"]

DEGRADED_KEY = "text"
"""The key of a degraded step's text if the next step needs a mapping."""

# Keywords that do not constrain a string.
_WORDS_ONLY = {"type", "title", "description"}


@dataclass(frozen=True, slots=True)
class Facts:
    """The effective options of an agent step after all defaults.

    `contract` is the contract of its reply; None means any text. `schema_source` says where the effective schema was
    written, and `promoted` means that only the agent has it, so the step enforces a schema that it does not mention.
    `mode` is how the output is requested; "own" means that the step's agent is built in Python and decides that.
    `mergeable` says whether the value is a mapping, or is None if unknown. `type_name` is the `package.module:Type`
    that a schema names and that is not yet imported.
    """

    agent: Any
    contract: Contract[Any] | None
    schema_source: SchemaSource | None
    promoted: bool
    mode: Mode
    ladder: Ladder | None
    mergeable: bool | None
    settings: Mapping[str, Any]
    type_name: str | None = None


def type_reference(like: Any) -> str | None:
    """Return the `package.module:Type` of a schema written as `{from: package.module:Type}`."""
    found: Any = like.get("from") if is_dict(like) and len(like) == 1 else None
    return found if isinstance(found, str) else None


def effective(step: Step, *, importing: bool = False) -> Facts:
    """Return the effective options of an agent step, after all defaults.

    With `importing` the type of a schema `{from: package.module:Type}` is imported, which raises `UsageError` if that
    is not possible; otherwise such a schema counts as any JSON value. The schema is the step's contract, else its
    `processing.schema`, else (promotion) the agent's `output_schema`, unless `structured_output: off` disables that. A
    `structured_output` that asks for JSON without any schema means any JSON value. `enforcement: off` requires nothing,
    and neither does a schema that is only `type: string`.
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
        ladder=_ladder(step, contract),
        mergeable=_mergeable(step, contract),
        settings={} if not own else dict(step.model_settings),
        type_name=None if importing else reference,
    )


def handed_on(result: StepResult[Any], following: PipelineStep | None) -> Any:
    """Return the value that the next step receives: the value of this step, or the text of a degraded one.

    Such a text becomes `{"text": …}` if the next step needs a mapping, because its function takes one or its templates
    use `previous_step.text`.
    """
    wraps = isinstance(result.outcome, Degraded) and following is not None and _needs_mapping(following)
    return {DEGRADED_KEY: result.handed_on} if wraps else result.handed_on


def mergeable(step: PipelineStep) -> bool | None:
    """Return whether the value of a step is a mapping, or None if that is unknown. The author's declaration takes
    precedence; without one, the answer is inferred.
    """
    return step.gives_mapping if step.mergeable_output is None else step.mergeable_output


def _imported_type(reference: str, step: str) -> Any:
    found = imported(reference, step=step)
    try:
        compile_contract(found)
    except (ContractError, TypeError) as error:
        message = f"step {step!r}: {reference} is not a type for a value: {error}"
        raise UsageError(message, step=step, key=reference) from error
    return found


def _like(step: Step) -> tuple[Any, SchemaSource | None]:
    if step.contract is not None and not isinstance(step.contract, WrittenContract):
        return step.contract, "contract"
    if step.processing.schema is not None:
        return step.processing.schema, "processing"
    if step.contract is not None and not step.contract.takes_schema:
        return None, "contract"
    if step.processing.structured_output == "off":
        return None, None
    if isinstance(step.agent, AgentSpec) and step.agent.output_schema is not None:
        return step.agent.output_schema, "agent"
    if (own := getattr(step.agent, "output_type", str)) is not str:
        return (_wanted_by_agent(step, own) if _governs_output(step.processing) else None), "agent"
    asks_for_json = step.processing.native and step.contract is None
    return ({}, "processing") if asks_for_json else (None, None)


_ABOUT_PROMPT: Final = ("reasoning_precheck", "structured_output", "enforce_grammar")
"""Options that do not concern the reading of a reply, and belong to an agent built by the user."""


def _governs_output(processing: Processing) -> bool:
    """Return whether a step has options for reading or recovery, so that the output type of its
    agent is its contract.
    """
    return processing != NO_PROCESSING and any(
        getattr(processing, each.name) != getattr(NO_PROCESSING, each.name)
        for each in fields(processing)
        if each.name not in _ABOUT_PROMPT
    )


def _wanted_by_agent(step: Step, output_type: Any) -> Any:
    from flujo_aros.host import wanted_by_agent  # imported here: it imports pydantic-ai, as such an agent has done

    found = wanted_by_agent(output_type)
    if found is None:
        step.refuse("`processing` cannot change how several output types or functions are read; pass a `contract`")
    return found


def _contract(step: Step, like: Any) -> Contract[Any] | None:
    if step.processing.enforcement == "off":
        return None
    where = step.contract if isinstance(step.contract, WrittenContract) else None
    if where is None and (like is None or _any_text(like)):
        return None
    made = compile_contract(like) if where is None else where.contract(like)
    ceiling, wanted = step.processing.ceiling, step.processing.conversions
    if wanted is not None and isinstance(like, dict) and isinstance(made.values, SchemaValues):
        values = copy.copy(made.values)
        values.shape = compile_shape(_guide(values.json_schema, ceiling or made.risk, wanted))
        made = replace(made, values=values)
    return made if ceiling is None else replace(made, risk=ceiling)


def stored_contract(step: PipelineStep) -> Contract[Any] | None:
    """Return the contract that gives the stored value of an agent step its type again: that of the step, or the output
    type of an agent that the user built. None: the value is plain JSON.
    """
    if not is_agent_step(step):
        return None
    return _value_contract(effective(step, importing=True))


def _value_contract(facts: Facts) -> Contract[Any] | None:
    """Return the contract of the values of an agent step, or the output type of an agent that the user built."""
    if facts.contract is not None or isinstance(facts.agent, AgentSpec):
        return facts.contract
    from flujo_aros.host import output_contract  # imported here, as in `_wanted_by_agent`

    return output_contract(facts.agent.output_type)


def keys_besides(contract: Contract[Any], key: str) -> Sequence[str] | None:
    """Return the keys of a value of this contract that cannot have this key (none for a string), or None if it may have
    the key.
    """
    if contract.mode == "text":
        return ()
    kind: Any = getattr(contract.values, "like", None)
    names = field_names(kind) if isinstance(kind, type) else None
    if names is not None:
        return None if key in names or getattr(kind, "model_config", {}).get("extra") == "allow" else names
    root = contract.json_schema if contract.mode in ("json", "tagged") else {}
    schema = follow_refs(root, root)
    properties = schema.get("properties")
    if schema.get("type") == "string":
        return ()
    if schema.get("type") != "object" or not is_dict(properties) or key in properties or "anyOf" in schema:
        return None
    if "allOf" in schema or "patternProperties" in schema or schema.get("additionalProperties") not in (None, False):
        return None
    return list(properties)


def _contradiction(returned: Contract[Any], wanted: Contract[Any]) -> str | None:
    """Return the error if no object that an agent returns can be a value of the contract: it has none of the keys that
    the contract requires, and no part that could be the value.
    """
    if not returned.mode == wanted.mode == "json":
        return None
    schema, root = follow_refs(wanted.json_schema, wanted.json_schema), returned.json_schema
    required = schema.get("required") if schema.get("type") == "object" else None
    given = follow_refs(root, root)
    members = given.get("properties")
    if not required or not is_dict(members) or given.keys() & _OPENS or len(members) < _MORE_THAN_A_WRAPPER:
        return None
    if any(follow_refs(member, root).get("type") not in _WITHOUT_PARTS for member in members.values()):
        return None
    if given.get("additionalProperties") not in (None, False) or {*map(fold, required)} & {*map(fold, members)}:
        return None
    keys, needed = ", ".join(members), ", ".join(required)
    return (
        f"the agent returns {returned.values!r} with the keys {keys}, none of which the contract requires ({needed}); "
        "leave out the contract, or give it to the agent as its output_type"
    )


_MORE_THAN_A_WRAPPER: Final = 2
"""The number of keys from which on an object is not a wrapper around the value."""
_WITHOUT_PARTS: Final = ("string", "integer", "number", "boolean")
_OPENS: Final = frozenset({"anyOf", "oneOf", "allOf", "patternProperties"})
"""Keywords with which an object may have other keys than its properties."""


def _unknown_key(check: Expressed, contract: Contract[Any]) -> str | None:
    """Return the error for a key in a check that no value of the contract has."""
    for found in check.reads:
        key = found.path[0] if found.path and found.needed != 0 else None
        keys = keys_besides(contract, key) if isinstance(key, str) else None
        if keys is not None:
            what = f"check {check.expression!r}, column {found.column}: the contract has no {key!r}"
            return nearest(str(key), keys).after(what)
    return None


def warnings_of(step: Step) -> Iterator[tuple[str, str]]:
    """Yield the keys of a step's `processing` that have no effect, each with a sentence that says why."""
    like, _ = _like(step)
    yield from step.processing.warnings
    if step.processing.conversions is not None and like is not None and not isinstance(like, dict):
        key = "aop" if step.processing.coercion.allow is None else "coercion.allow"
        yield (
            key,
            "has no effect on a Python type, which does its own conversions: make it strict, or pass a JSON Schema",
        )


def _agent(step: Step) -> Any:
    """Return the agent with the step's own model, settings and output mode."""
    if not isinstance(step.agent, AgentSpec):
        return step.agent
    mode = _mode(step)
    changed: dict[str, Any] = {} if mode == step.agent.output_mode else {"output_mode": mode}
    if step.model is not None:
        changed["model"] = step.model
    if step.model_settings:
        changed["model_settings"] = {**step.agent.model_settings, **step.model_settings}
    return step.agent.model_copy(update=changed) if changed else step.agent


def _mode(step: Step) -> Mode:
    if not isinstance(step.agent, AgentSpec):
        return "own"
    if step.agent.output_mode != "auto":
        return step.agent.output_mode
    if step.processing.native:
        return "native"
    return "prompted" if step.processing.structured_output == "off" else "auto"


def _ladder(step: Step, contract: Contract[Any] | None) -> Ladder | None:
    """Return the step's ladder: the stages that it names, else the default ones of its contract. None if nothing is
    enforced, or if only the agent's own output type defines the output. Text in place of a value is possible if the
    step names `degrade` or accepts it (`on_degraded: accept`).
    """
    if contract is None:
        if step.processing.enforcement == "off" or getattr(step.agent, "output_type", str) is not str:
            return None
        contract = with_checks(PLAIN_TEXT, step.checks)
    ladder = step.processing.ladder(_default_ladder(step, contract))
    if step.processing.enforcement == "validate":
        ladder = ladder.model_copy(update={"stages": ()})
    if step.on_degraded == "accept" and not any(isinstance(stage, Degrade) for stage in ladder.stages):
        ladder = ladder.model_copy(update={"stages": (*ladder.stages, Degrade())})
    return ladder


def _default_ladder(step: Step, contract: Contract[Any]) -> Ladder:
    """Return the default ladder for a contract, with the agent's number of retries in the conversation."""
    ladder = ladder_for(contract, current_settings())
    again = step.agent.max_retries if isinstance(step.agent, AgentSpec) else 0
    if not again:
        return ladder
    stages = tuple(
        each.model_copy(update={"attempts": again}) if isinstance(each, Retry) else each for each in ladder.stages
    )
    return ladder.model_copy(update={"stages": stages})


def _mergeable(step: Step, contract: Contract[Any] | None) -> bool | None:
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
    """Return the schema that guides conversions; the value is validated against the real one in any case. Types to
    which no string may be converted are left out, so that nothing is converted there. If a conversion beyond the
    general risk is allowed, its location in the schema allows that risk.
    """

    def typed(node: dict[str, Any]) -> dict[str, Any]:
        kinds = node.get("type")
        listed = cast("list[str]", kinds) if isinstance(kinds, list) else [kinds]
        if any(kind in wanted for kind in listed):
            hints = {"risk": max(ceiling, Risk.INFERRED).name.lower(), **node.get("x-aros", {})}
            return {**node, "x-aros": hints}
        if any(kind in _CONVERTED for kind in listed):
            return {key: value for key, value in node.items() if key != "type"}
        return node

    return cast("JsonSchema", with_schemas_changed(schema, typed))


def _needs_mapping(step: PipelineStep) -> bool:
    reads = [read for template in step.templates for read in template.reads if read.root == "previous_step"]
    whole = step.wants_mapping and any(not read.path for read in reads)
    return whole or any(read.path[:1] == (DEGRADED_KEY,) for read in reads)


def _at(value: Any, path: Sequence[str]) -> Any:
    for name in path:
        if isinstance(value, Mapping):
            value = cast("Mapping[str, Any]", value).get(name)
        else:
            value = getattr(value, name, None) if isinstance(value, BaseModel) else None
    return value


def _signature(function: object) -> tuple[Any, Any]:
    """Return the annotations of a function's first parameter and of its result, each `Parameter.empty` if unknown."""
    none: Any = inspect.Parameter.empty
    if not callable(function) or isinstance(function, type):
        return none, none
    try:
        hints = typing.get_type_hints(function if inspect.isroutine(function) else type(function).__call__)
    except (NameError, TypeError):  # an annotation that cannot be resolved here is ignored
        return none, none
    try:
        first = next(iter(inspect.signature(function).parameters), "")
    except (TypeError, ValueError):  # a builtin without a signature
        first = ""
    return hints.get(first, none), hints.get("return", none)


def _is_mapping(annotation: Any) -> bool | None:
    """Return whether values of this type are mappings, or None if that is unknown."""
    if annotation is Any or isinstance(annotation, (TypeVar, TypeAdapter)):
        return None
    origin = typing.get_origin(annotation) or annotation
    if origin in (typing.Union, types.UnionType):
        found = {_is_mapping(each) for each in typing.get_args(annotation)}
        return found.pop() if len(found) == 1 else None
    if not isinstance(origin, type) or origin is object or issubclass(origin, (Accepted, Degraded, Rejected)):
        return None
    kind = cast("type[Any]", origin)
    return issubclass(kind, (Mapping, BaseModel)) or dataclasses.is_dataclass(kind) or typing.is_typeddict(kind)


PREVIOUS: Final = "{{ previous_step }}"

_IS_AGENT: Final = (is_a("AgentSpec"), has("iter", "run"))
_AGENT: Final = Option(
    "special",
    "an AgentSpec or an Agent",
    'AgentSpec(model="openai:gpt-4o-mini") makes one, and a function is a Call',
    fits=lambda value: any(fits(value) for fits in _IS_AGENT),
)
_PROCESSING: Final = Option("special", "a Processing", "use `Processing(stages=[…])`", fits=is_a("Processing"))
_MODEL: Final = Option(words="the name of a model", fits=lambda value: isinstance(value, str) and value.strip() != "")

_IS_TOOL: Final = has("function", "tool_def")

_MAPPING: Final = "a mapping with strings as keys"


@known_options
@dataclass(frozen=True)
class Step(TakesInput[T_co]):
    """An agent step: renders the input, calls the agent, and reads its reply against the contract.

    `agent` is an `AgentSpec`, or your own pydantic-ai `Agent`. `contract` is a type, a pydantic model, a JSON
    Schema or an `Output.*`; a string (`"tagged:result"`) says where the payload is, with the schema of `processing` or
    of the agent. Without a contract, the agent's own schema applies (see `effective`). `model` and
    `model_settings` (temperature, top_p, max_tokens, …) override the agent's. With `use_history` the agent continues
    the conversation of the agent steps before it: in the same list of steps, in enclosing ones, and in earlier
    iterations of its loop; otherwise each step is a separate conversation. With `max_iterations` above 1 the agent is
    called repeatedly until its reply contains the `completion_signal`; the step fails if it never does. Raises
    `UsageError` for invalid options, before any call.

    >>> Step("greet", agent=AgentSpec(model="local:smollm2"), input="Greet {{ input }}").name
    'greet'
    """

    agent: Annotated[AgentSpec | AbstractAgent[Any, T_co] | AbstractAgent[Any, str], _AGENT]
    contract: Annotated[
        type[T_co] | Contract[T_co] | Mapping[str, Any] | WrittenContract | str | None, Option("special", fits=anything)
    ] = None
    input: InputLike = PREVIOUS
    processing: Annotated[Processing, _PROCESSING] = NO_PROCESSING
    model: Annotated[str, _MODEL] | None = field(default=None, kw_only=True)
    """Overrides the agent's model."""
    model_settings: Annotated[Mapping[str, Any], Option("special", _MAPPING)] = field(
        default_factory=dict[str, Any], kw_only=True
    )
    max_iterations: Annotated[int, Ge(1)] = field(default=1, kw_only=True)
    """The maximum number of times that the agent is called until its reply contains the `completion_signal`."""
    completion_signal: str | None = field(default=None, kw_only=True)
    """The string that ends the iterations, such as <promise>COMPLETE</promise>."""
    use_history: bool = field(default=False, kw_only=True)
    """Continue the conversation of earlier agents, including earlier iterations of the loop."""
    kind: str = field(default="step", init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.model is not None and not isinstance(self.agent, AgentSpec):
            self.refuse("`model` is for an AgentSpec; set the model of the Agent instead")
        if isinstance(self.contract, str):
            object.__setattr__(self, "contract", written_contract(self.contract))
        where = isinstance(self.contract, WrittenContract)
        takes_schema = isinstance(self.contract, WrittenContract) and self.contract.takes_schema
        if self.contract is not None and self.processing.schema is not None and not takes_schema:
            self.refuse("the contract and the schema of the step both define the value; use only one", "contract")
        own = self.agent.output_schema if isinstance(self.agent, AgentSpec) else None
        for like in (None if where else self.contract, self.processing.schema, own):
            if like is not None and type_reference(like) is None:
                require_keywords(compile_contract(like).values)
        like, source = _like(self)  # raises if `processing` has no effect
        if self.processing.enforcement == "off" and source == "agent" and not isinstance(self.agent, AgentSpec):
            self.refuse("`enforcement: off` has no effect on an agent with an output type; set its output_type=str")
        self._reject_contradictions()
        if (self.completion_signal is None) != (self.max_iterations == 1):
            self.refuse("max_iterations above 1 and completion_signal belong together; set both", "max_iterations")
        if self.completion_signal is not None:
            CompletionSignal(self.completion_signal)
            contract = _contract(self, like if type_reference(like) is None else {})
            reject_iterations(contract, self.max_iterations, f"step {self.name!r}")

    def _reject_contradictions(self) -> None:
        """Raise `UsageError` if the agent's own type, or an expression of a check, contradicts the contract."""
        if not isinstance(self.agent, AgentSpec) and not isinstance(self.contract, WrittenContract | None):
            from flujo_aros.host import output_contract  # imported here, as in `_wanted_by_agent`

            returned = output_contract(getattr(self.agent, "output_type", str))
            wanted = None if type_reference(self.contract) else compile_contract(self.contract)
            if returned is not None and wanted is not None and (problem := _contradiction(returned, wanted)):
                self.refuse(problem, "contract")
        expressions = {at: check for at, check in enumerate(self.checks) if isinstance(check, Expressed)}
        known = _value_contract(effective(self)) if expressions else None
        for at, check in expressions.items():
            if known is not None and (problem := _unknown_key(check, known)) is not None:
                self.refuse(problem, f"checks.{at}")

    @cached_property
    def facts(self) -> Facts:
        """The effective options of this step after all defaults."""
        return effective(self)

    @property
    def models(self) -> frozenset[str]:
        """The names of the models that this step asks for by name."""
        agent = self.facts.agent
        own: set[str] = {agent.model} if isinstance(agent, AgentSpec) else set()
        return super().models | own

    @property
    def gives_mapping(self) -> bool | None:
        """Whether the contract expects an object."""
        return self.facts.mergeable

    def prepare(self) -> None:
        """Raise a `UsageError` for a model that does not exist, and for an agent that cannot be built."""
        super().prepare()
        for name in sorted(self.models):
            why = missing_provider(name)
            if why is not None:
                raise UsageError(f"step {self.name!r}: {why}", step=self.name)
        self.__dict__["facts"] = effective(self, importing=True)
        tools, agent = self._tools(), self.facts.agent
        if isinstance(agent, AgentSpec) and (tools or agent.capabilities):
            from flujo_aros.host import check_agent  # imported here: most agents have neither

            try:
                check_agent(agent, tools)
            except UsageError as error:
                raise UsageError(f"step {self.name!r}: {error}", step=self.name) from error

    async def run(self, context: StepContext) -> Settlement[Any]:
        """Call the agent. The outcome may be a rejection: that is a failed step, not an exception."""
        names = context.names()
        required = self.processing.required_context_keys
        missing = [path for path in required if _at(names["context"], path.split(".")) is None] if required else []
        if missing:
            words = f"the context has no value for {', '.join(missing)}, which the step requires"
            return Settlement(Rejected(Reason.INVALID, (Issue("$", "missing_context", words),), ""), attempts=0)
        prompt = self._given.prompt(names)
        if self.completion_signal is not None:
            return await self._iterate(prompt, CompletionSignal(self.completion_signal), context)
        run = await self._ask(prompt, context, self.checks)
        return Settlement(self._rejection_or_outcome(run.outcome), run.calls, run.stages, messages=run.messages)

    def _rejection_or_outcome(self, outcome: Outcome[Any]) -> Outcome[Any]:
        """Return the outcome, or the rejection itself if text would replace a value that a check rejected."""
        contract = self.facts.contract
        if not isinstance(outcome, Degraded) or self.on_degraded == "accept":
            return outcome
        if contract is None:
            is_text = getattr(self.agent, "output_type", str) is str  # then only a check can reject the text
            return outcome.because if is_text and outcome.because.reason is Reason.INVALID else outcome
        is_value = isinstance(read(outcome.text, replace(contract, checks=())), Accepted)
        return outcome.because if is_value and (self.checks or contract.checks) else outcome

    async def _iterate(self, prompt: Prompt, signal: CompletionSignal, context: StepContext) -> Settlement[Any]:
        calls, last = 0, ""
        stages: tuple[StageRecord, ...] = ()
        instruction = signal.instruction()
        text = f"{prompt}\n\n{instruction}" if isinstance(prompt, str) else [*prompt, instruction]
        begun = 0 if context.deferred is None else context.deferred.iteration
        for turn in range(begun, self.max_iterations):
            if turn and context.live is not None:
                await context.live(TextReplaced(text=""))  # the text shown so far is not final
            run = await self._ask(text, context, (), turn)  # a reply that is not final is not validated
            calls, stages = calls + run.calls, (*stages, *run.stages)
            last = run.outcome.text
            if not isinstance(run.outcome, Accepted):
                return Settlement(run.outcome, calls, stages)
            if signal.stands_in(last, self.facts.contract):
                return Settlement(
                    await apply_checks_async(run.outcome, self.checks, self.facts.contract),
                    calls,
                    stages,
                    messages=run.messages,
                )
        words = f"no {signal.mark} within {self.max_iterations} iterations"
        return Settlement(Rejected(Reason.INVALID, (Issue("$", "not_complete", words),), last), calls, stages)

    async def _ask(
        self, prompt: Prompt, context: StepContext, checks: Sequence[Check], iteration: int = 0
    ) -> AgentRun[Any]:
        known = self.facts
        adapts = known.ladder is not None and known.ladder.adaptive
        begun = context.deferred if context.deferred is not None and context.deferred.iteration == iteration else None
        resumed = None if begun is None else decided(context)
        from flujo_aros.host import CallsDeferred, run_agent  # here: a pipeline of callables needs no model host

        try:
            return await run_agent(
                known.agent,
                prompt,
                known.contract,
                known.ladder,
                models=context.models,
                deps=context.deps,
                evidence=context.evidence() if adapts and context.evidence is not None else None,
                history=context.said if self.use_history else None,
                usage_sink=context.spend,
                live=context.live,
                allowance=context.allowance,
                settings=known.settings or None,
                checks=checks,
                secrets=SecretsFound(partial(secrets_among, [context.context, context.input])),
                repeated=self.retries > 0,
                refusals=context.refusals,
                tools=self._tools(),
                resumed=resumed,
            )
        except CallsDeferred as waiting:
            raise paused_for(waiting.deferral, context.deferred, iteration) from None
        except (AttributeError, TypeError) as error:
            if context.deps is None and "'NoneType'" in str(error):
                error.add_note("the run was given no deps; if ctx.deps is read there, pass deps=… (--deps MODULE:NAME)")
            raise

    def _tools(self) -> list[Any]:
        """Return the model's tools, imported: functions, and pydantic-ai's `Tool` objects."""
        agent = self.facts.agent
        if not isinstance(agent, AgentSpec):
            return []
        found = [(each, imported(each, step=self.name)) for each in agent.tools]
        return [tool if _IS_TOOL(tool) else resolved(each, step=self.name) for each, tool in found]


def is_agent_step(step: object) -> TypeIs[Step[Any]]:
    """Return whether a step is a `Step`, of any type."""
    return isinstance(step, Step)


def check_models(steps: Iterable[PipelineStep]) -> None:
    """Raise `UsageError` for an agent step among these, which will run, without the key or the package of its model.
    The steps inside these may not run.
    """
    from flujo_aros.host import create_model  # imported here: it imports the packages of the providers

    for step in steps:
        agent = step.facts.agent if is_agent_step(step) else None
        if isinstance(agent, AgentSpec) and not agent.model.startswith("local:"):
            try:
                create_model(agent.model)
            except UsageError as error:
                raise UsageError(f"step {step.name!r}: {error}", step=step.name) from error


def wants_deps(agent: object) -> bool:
    """Return whether an agent declares a `deps_type` that does not allow None."""
    kind = getattr(agent, "deps_type", object)
    return kind not in (object, Any, types.NoneType) and types.NoneType not in typing.get_args(kind)


class CallFunction(Protocol[T_co]):
    """The function of a `Call`: the input comes first. Unlike `Callable[..., T_co]`, it types a lambda's parameter."""

    def __call__(self, value: Any, /, *args: Any, **params: Any) -> T_co:
        """Return the value of the step, its outcome, or an awaitable of either."""
        ...


@known_options
@dataclass(frozen=True)
class Call(TakesInput[T_co]):
    """A step that calls `function(input, **params)`, sync or async.

    `function` is a callable, or "package.module:name", imported when the pipeline first runs; the name may also refer
    to a pydantic-ai `Agent`, which then runs as it would in a `Step` with `agent_options`. The input is the value of a
    single `{{ expression }}`, else the rendered text; an object or list of templates becomes an object or list of their
    values. A sync function runs in its own thread. It may return an `Outcome` (as `read` does): a rejection then fails
    the step. An exception fails the step and is stored on the result.

    >>> Call("count", function=len).name
    'count'
    """

    function: Annotated[
        CallFunction[T_co | Outcome[T_co] | Awaitable[T_co | Outcome[T_co]]] | str, Option("special", fits=anything)
    ]
    params: Annotated[Mapping[str, Any], Option("special", _MAPPING)] = field(default_factory=dict[str, Any])
    input: InputLike = PREVIOUS
    agent_options: Annotated[Mapping[str, Any], Option("special", _MAPPING)] = field(
        default_factory=dict[str, Any], kw_only=True
    )
    """Options of `Step`, such as `processing`, for an agent that `function` names. A schema as `contract` applies to an
    agent without its own output type.
    """
    kind: str = field(default="step", init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.function, str) and not REFERENCE.fullmatch(self.function):
            message = f"the function of step {self.name!r} must be 'package.module:name', not {self.function!r}"
            raise UsageError(message)
        if not isinstance(self.function, str) and not callable(self.function):
            instead = "; for an agent, use Step" if is_a("AbstractAgent", "AgentSpec")(self.function) else ""
            raise UsageError(f"the function of step {self.name!r} cannot be called: {shown(self.function)}{instead}")

    @property
    def gives_mapping(self) -> bool | None:
        """Whether the function's return annotation is a mapping, if it has one and is available; for the type variable
        of its first parameter, whether the input is a mapping."""
        wanted, returned = _signature(self.function)
        if isinstance(returned, TypeVar) and returned == wanted:
            return self._given.gives_mapping
        return None if returned is inspect.Parameter.empty else _is_mapping(returned)

    @property
    def wants_mapping(self) -> bool:
        """Whether the annotation of the function's first parameter is a mapping; mappings are not converted to
        models."""
        wanted, _ = _signature(self.function)
        kind = typing.get_origin(wanted) or wanted
        return isinstance(kind, type) and (issubclass(kind, Mapping) or typing.is_typeddict(cast("object", kind)))

    def prepare(self) -> None:
        """Import the function, so that an invalid name or wrong `params` fail before any model call. Raises
        `UsageError`.
        """
        super().prepare()
        if self._agent_step is None:
            self._check_params(resolved(self.function, step=self.name))

    def _check_params(self, function: Callable[..., Any]) -> None:
        """Raise `UsageError` if the function cannot be called with the input and these `params`."""
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):  # a builtin without a signature
            return
        by_name = [each.name for each in [*signature.parameters.values()][1:] if each.kind in _BY_NAME]
        try:
            signature.bind(None, **self.params)
        except TypeError as error:
            unknown = next((key for key in self.params if key not in by_name), None)
            if unknown is None:
                self.refuse(f"{shown(self.function)} cannot be called with the input and `params`: {error}", "params")
            what = f"{shown(self.function)} has no parameter {unknown!r} after its first"
            self.refuse(nearest(unknown, by_name).after(what), f"params.{unknown}")

    @property
    def agent(self) -> Any:
        """The agent that the name refers to, or None for a function. Raises `UsageError` if it cannot be imported."""
        return None if self._agent_step is None else self._agent_step.facts.agent

    @property
    def imported_agent(self) -> Step | None:
        """The agent step, if the name refers to an agent and `prepare` has imported it."""
        return self.__dict__.get("_agent_step")

    @cached_property
    def _agent_step(self) -> Step | None:
        """The agent step, if the name refers to an agent, or None for a function."""
        if not isinstance(self.function, str):
            return None
        found = cast("Any", imported(self.function, step=self.name))
        if not isinstance(found, AgentSpec) and not _IS_AGENT[1](found):
            for key in sorted(self.agent_options.keys() - _HARMLESS, reverse=True):
                self.refuse(f"{self.function} is a function; `{key}` is for agents", key)
            return None
        if self.params:
            self.refuse(f"{self.function} is an agent, which takes no `params`", "params")
        options: dict[str, Any] = {**self.agent_options}
        if getattr(found, "output_type", str) is not str and not isinstance(options.get("contract"), WrittenContract):
            options.pop("contract", None)
        return Step(self.name, found, input=self.input, checks=self.checks, on_degraded=self.on_degraded, **options)

    async def run(self, context: StepContext) -> Settlement[Any]:
        """Call the function and use its result as the value."""
        if self._agent_step is not None:
            return await self._agent_step.run(context)
        given = self._given.value(context.names())
        emit_call(given)
        result = await self.call(given, **self.params)
        if inspect.isgenerator(result) or inspect.isasyncgen(result):
            raise UsageError(f"the function of step {self.name!r} returned a generator; return a list of its items")
        is_outcome = isinstance(result, (Accepted, Degraded, Rejected))
        outcome = cast("Outcome[Any]", result) if is_outcome else Accepted(result, Trust.CLEAN, "first", (), "")
        return Settlement(await apply_checks_async(outcome, self.checks, None))

    async def call(self, given: Any, **params: Any) -> Any:
        """Return the function's result, awaited if necessary. A sync function runs in a thread."""
        call = partial(resolved(self.function, step=self.name), given, **params)
        result = (
            await call() if inspect.iscoroutinefunction(call.func) else await asyncio.to_thread(_call_in_thread, call)
        )
        return await result if inspect.isawaitable(result) else result


_BY_NAME: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_HARMLESS: Final = frozenset({"contract", "processing", "use_history"})
"""Agent options that are harmless on a function: a schema also validates its value, and it has no conversation."""


def _call_in_thread(call: Callable[[], Any]) -> Any:
    """Call in a thread. A `StopIteration` cannot be raised into a coroutine, so it is converted."""
    try:
        return call()
    except StopIteration as error:
        raise RuntimeError("the function raised StopIteration") from error


Changed = TypeVar("Changed")

_KEYS: Final = ("stages", *_LIMITS)


def with_ladder(pipeline: Pipeline, ladder: object) -> Pipeline:
    """Return the pipeline with these stages and limits on every agent step: the keys of a ladder under `processing`. A
    `Call` has them in case its name refers to an agent.

    Raises `UsageError` for anything else.

    >>> from flujo_aros.pipeline.step import Step
    >>> from flujo_aros import AgentSpec
    >>> ask = Step("ask", agent=AgentSpec(model="local:smollm2"))
    >>> with_ladder(Pipeline([ask]), {"stages": ["retry"]}).steps[0].processing.stages
    ('retry',)
    """
    if not is_dict(ladder) or not ladder or not ladder.keys() <= {*_KEYS}:
        raise UsageError(f"a ladder is a JSON object with some of {', '.join(_KEYS)}")
    changes: dict[str, Any] = dict(ladder)
    if isinstance(changes.get("stages"), list):
        changes["stages"] = tuple(changes["stages"])

    def with_it(step: PipelineStep) -> PipelineStep | None:
        if is_agent_step(step):
            return replace(step, processing=replace(step.processing, **changes))
        if not isinstance(step, Call) or not isinstance(step.function, str):
            return None
        own = step.agent_options.get("processing", Processing())
        return replace(step, agent_options={**step.agent_options, "processing": replace(own, **changes)})

    return changed(pipeline, with_it)


def changed(value: Changed, change: Callable[[PipelineStep], PipelineStep | None]) -> Changed:
    """Return the pipeline with every step replaced by the result of `change`; if that is None, its nested steps are
    changed.
    """
    if isinstance(value, Pipeline):
        pipeline = cast("Pipeline[Any]", value)
        steps = tuple(changed(step, change) for step in pipeline.steps)
        return cast("Changed", replace(pipeline, steps=steps))
    if isinstance(value, Mapping):
        return cast("Changed", {key: changed(each, change) for key, each in cast("Mapping[Any, Any]", value).items()})
    if isinstance(value, (list, tuple)):
        items = [changed(each, change) for each in cast("list[Any]", value)]
        return cast("Changed", items if isinstance(value, list) else tuple(items))
    if isinstance(value, PipelineStep):
        step = cast("PipelineStep", value)
        own = change(step)
        if own is not None:
            return cast("Changed", own)
        inside = {
            each.name: new
            for each in fields(step)
            if each.init and (new := changed(old := getattr(step, each.name), change)) is not old and new != old
        }
        return cast("Changed", replace(step, **inside) if inside else step)
    return value
