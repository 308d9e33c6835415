"""The language: one strict model for each mapping of a blueprint, for the loader and for the schema for editors.

Every key in these models has an effect. `ignored` has the keys that flujo blueprints may contain and that have no
effect here, each with the reason; they cause warnings. Every other key is an error.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Final, TypeAlias, TypeVar, Union, cast

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, WithJsonSchema, create_model

from flujo_aros.ensemble.step import Ensemble
from flujo_aros.host import AgentSpec
from flujo_aros.pipeline.agree import Agree
from flujo_aros.pipeline.control import Branch, Cached, Import, Loop, OutputMapping
from flujo_aros.pipeline.fanout import Map, Parallel
from flujo_aros.pipeline.human import Human
from flujo_aros.pipeline.model import PipelineStep
from flujo_aros.pipeline.options import Declared, declared_options
from flujo_aros.pipeline.step import Call, Coercion, Processing, Step

B = TypeVar("B", bound=BaseModel)

VERSION: Final = "0.1"

SHARED: Final = "x-"
"""The prefix of top-level keys that define anchors for other parts."""

REF: Final = "x-ref"
"""A placeholder in these models for a `$ref` to something that is not a model itself, such as a nested step."""

Members: TypeAlias = dict[str, JsonValue]
StepNode: TypeAlias = Annotated[Members, WithJsonSchema({REF: "Step"})]
Body: TypeAlias = Annotated[JsonValue, WithJsonSchema({REF: "Body"})]
JsonSchema: TypeAlias = Annotated[
    Members,
    WithJsonSchema(
        {"type": "object", "description": "A JSON Schema: inline, {from_file: NAME} or {from: package.module:Type}."}
    ),
]
Operations: TypeAlias = Annotated[JsonValue, WithJsonSchema({REF: "Operations"})]
Reference: TypeAlias = Annotated[str, Field(description="A callable, as package.module:name.")]
Template: TypeAlias = Annotated[
    JsonValue,
    WithJsonSchema({"type": ["string", "object", "array"]}),
    Field(
        description="A template, or an object or list with templates in it. Default: the output of the previous step."
    ),
]
Expression: TypeAlias = Annotated[
    JsonValue,
    WithJsonSchema({"type": ["string", "boolean"]}),
    Field(description="An expression, such as previous_step.ok == true."),
]
Name: TypeAlias = Annotated[str, Field(min_length=1, description="Unique within its list of steps.")]


class Block(BaseModel):
    """One mapping of a blueprint."""

    model_config = ConfigDict(extra="forbid")
    ignored: ClassVar[Mapping[str, str]] = {}


class BodyKeys(Block):
    """A branch or body with its own name."""

    version: JsonValue = VERSION
    """The version of the language."""
    name: str | None = Field(default=None, min_length=1)
    """The name in reports. Default: the name of the file."""
    description: str = ""
    """A description of its purpose."""
    steps: list[StepNode] = Field(default_factory=list[Members], min_length=1)
    """The steps, in order."""
    ignored: ClassVar[Mapping[str, str]] = {
        "static_invariants": "write `checks` on the steps instead",
        "pipeline_config": "it has no effect",
        "config": "it has no effect; `config` belongs to a step",
        "metadata": "it has no effect",
        "tags": "it has no effect",
    }


class Top(BodyKeys):
    """A complete blueprint."""

    agents: dict[str, Annotated[JsonValue, WithJsonSchema({REF: "Agent"})]] = Field(default_factory=dict)
    """Agents by the NAME in `uses: agents.NAME`."""
    profiles: dict[str, str | dict[str, str]] = Field(default_factory=dict)
    """Models by the NAME of `--profile NAME`: one for all agents, or one for each agent by name, with `*` for the
    others."""
    imports: dict[str, Annotated[JsonValue, WithJsonSchema({"type": ["string", "object"]})]] = Field(
        default_factory=dict
    )
    """Other blueprints, by the NAME in `uses: imports.NAME`: the path of a file, or a blueprint."""
    steps: list[StepNode] = Field(min_length=1)
    """The steps, in order."""


class PromptFile(Block):
    """A prompt in a separate file inside the folder of the blueprint."""

    from_file: str
    """The name of a file inside the folder of the blueprint."""
    variables: Members = Field(default_factory=dict)
    """The values of the placeholders in the file."""


def _declares(kind: Any) -> Callable[[type[B]], type[B]]:
    """Add the options of a kind of step, or of an agent, to the keys that a block declares itself."""

    def extended(base: type[B]) -> type[B]:
        options: dict[str, Any] = (
            {key: (each.annotation, each) for key, each in kind.model_fields.items() if key not in base.model_fields}
            if issubclass(kind, BaseModel)
            else Kind(kind).members(base.model_fields)
        )
        made = create_model(base.__name__, __base__=base, **options)
        made.__doc__ = base.__doc__
        return made

    return extended


@_declares(AgentSpec)
class Agent(Block):
    """An agent: a model, its instructions, and the schema of its answer."""

    name: str | None = None
    """The name in traces and in the journal. Default: the key."""
    system_prompt: str | PromptFile = ""
    """The instructions for the model, or {from_file: NAME}. Not a template."""
    output_schema: JsonSchema | None = None
    """A JSON Schema for the answer: inline, {from_file: NAME} or {from: package.module:Type}."""
    ignored: ClassVar[Mapping[str, str]] = {
        "id": "an agent is identified by its key",
        "description": "it has no effect",
        "retries": "write max_retries",
    }


class Skill(Block):
    """A built-in or a callable by its name, with parameters."""

    id: str | None = None
    """The name of a built-in or of a callable."""
    path: str | None = None
    """A callable, as package.module:name."""
    params: Members = Field(default_factory=dict)
    """Keyword arguments for the function."""
    ignored: ClassVar[Mapping[str, str]] = {
        "name": "it has no effect",
        "description": "it has no effect",
        "model": "a built-in has no model",
        "output_schema": "the return value of a callable is used as it is",
    }


class Limits(Block):
    """The limits on the usage of a step."""

    max_requests: int | None = Field(default=None, ge=0)
    """Model calls."""
    max_tokens: int | None = Field(default=None, ge=0)
    """Tokens, in and out together."""
    max_cost: float | None = Field(default=None, ge=0)
    """US dollars."""
    total_tokens_limit: int | None = Field(default=None, ge=0)
    """Alias for max_tokens."""
    total_cost_usd_limit: float | None = Field(default=None, ge=0)
    """Alias for max_cost."""


ImportedOutputs: TypeAlias = Annotated[
    JsonValue,
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "object", "additionalProperties": {"type": "string"}},
                {"type": "array", "items": {REF: "OutputMapping"}},
            ]
        }
    ),
]


_IN_STEP: Final = frozenset({"input"})
"""The options that steps of every kind accept; one that has no effect causes a warning."""


@dataclass(frozen=True)
class Kind:
    """A kind of step. Its form in a blueprint follows from the options that its class declares.

    `step` is the class. `under` is the key under which its options are; empty: in the step itself. `keys` has the keys
    of options that have a different name in a blueprint, and `stricter` the types of options that are stricter there
    than in Python. `base` and `inner` are the models of everything that no option declares, in the step and `under` it:
    the keys of options with a special form, and flujo's synonyms.
    """

    step: type[PipelineStep]
    under: str = ""
    keys: Mapping[str, str] = field(default_factory=dict[str, str])
    stricter: Mapping[str, Any] = field(default_factory=dict[str, Any])
    base: Any = None
    inner: Any = None
    named: str = ""
    """Its key in `KINDS`, if several kinds share a word."""

    @cached_property
    def word(self) -> str:
        """The value of `kind:`."""
        return self.named or str(next(each.default for each in fields(self.step) if each.name == "kind"))

    @cached_property
    def options(self) -> Mapping[str, Declared]:
        """The options of this kind that a blueprint can set, by their keys there."""
        shared = () if self.step is PipelineStep else declared_options(PipelineStep)
        return {
            self.keys.get(name, name): each
            for name, each in declared_options(cast("Any", self.step)).items()
            if name not in shared and name != "name" and each.option.form not in ("hidden", "special")
        }

    @cached_property
    def keys_under(self) -> frozenset[str]:
        """The keys that belong under `under`."""
        return frozenset(self.options).difference(_IN_STEP) if self.under else frozenset()

    @cached_property
    def block(self) -> type[StepKeys]:
        """The model of such a step."""
        base: type[StepKeys] = self.base or StepKeys
        inner_base: type[Block] = self.inner or Block
        members = self.members((inner_base if self.under else base).model_fields)
        if self.under:
            inner = create_model(f"{self.under.title()}Keys", __base__=inner_base, **members)
            inner.__doc__ = f"The settings under `{self.under}:`."
            written: Any = (inner | None, None) if self.under in base.model_fields else (inner, ...)
            members = {self.under: written}
        name = f"{self.word.title()}Block" if self.base is None else base.__name__
        made = create_model(name, __base__=base, **members)
        about = (self.step.__doc__ or "").partition("\n")[0]
        made.__doc__ = base.__doc__ if self.base else f"`kind: {self.word}`: {about[:1].lower()}{about[1:]}"
        made.ignored = {key: why for key, why in base.ignored.items() if key not in self.options}
        return made

    def members(self, known: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of a block for the options that it does not yet declare."""
        found: dict[str, Any] = {}
        for key, option in self.options.items():
            if option.option.form == "condition":
                expression, function = condition_keys(key)
                found |= {expression: (_FORMS["expression"], None), function: (_FORMS["reference"], None)}
            elif key not in _IN_STEP:
                found[key] = self.stricter.get(key) or _member(option)
        return {key: each for key, each in found.items() if key not in known}


def condition_keys(name: str) -> tuple[str, str]:
    """Return the keys of a condition: as an expression, and as a function."""
    stem = name.removesuffix("condition")
    return f"{name}_expression", f"{stem}_condition" if stem else name


_FORMS: Final[Mapping[str, Any]] = {
    "body": Body,
    "branches": Annotated[dict[str, Body], Field(min_length=1)],
    "step": StepNode,
    "steps": list[StepNode],
    "function": Reference,
    "reducer": str,
    "kinds": Annotated[
        JsonValue, WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})
    ],
    "template": Template,
    "schema": JsonSchema,
    "operations": Operations,
    "expression": Union[Expression, None],  # noqa: UP007
    "reference": Union[Reference, None],  # noqa: UP007
}


def _member(option: Declared) -> Any:
    """Return an option as a field of a block."""
    written = _FORMS.get(option.option.form)
    if written is not None:
        return (written, ...) if option.required else (written | None, None)
    if option.choices:  # the step itself reports the error, with a suggestion
        written = Annotated[str, WithJsonSchema({"enum": list(option.choices)})]
    return (written or option.annotation, ... if option.required else option.default)


@_declares(Import)
class Config(Block):
    """The options for running a step."""

    max_retries: int = Field(default=0, ge=0)
    """Retries after errors of the provider or network, never after bad data."""
    timeout_s: float | None = Field(default=None, gt=0)
    """Seconds for all attempts together."""
    timeout: float | None = Field(default=None, gt=0)
    """Alias for timeout_s."""
    temperature: float | None = None
    """The sampling temperature."""
    top_p: float | None = None
    """Nucleus sampling: the share of probability to choose from."""
    top_k: int | None = None
    """The number of tokens to choose from."""
    max_tokens: int | None = Field(default=None, ge=1)
    """The maximum number of tokens of the answer."""
    seed: int | None = None
    """Makes sampling repeatable if the provider supports it."""
    outputs: ImportedOutputs | None = None
    """Only for `uses: imports.…`."""
    ignored: ClassVar[Mapping[str, str]] = {
        "preserve_fallback_diagnostics": "diagnostics are always kept",
        "execution_mode": "all steps of a run are executed in the same process",
        "inherit_conversation": "conversations do not continue across pipelines",
    }


@_declares(PipelineStep)
class StepKeys(Block):
    """The options that every kind of step has."""

    kind: str = "step"
    """What the step does. Default: `step`, which asks an agent or calls a function."""
    name: Name = Field()
    input: Template | None = None
    """A template, or an object or list with templates in it. Default: the value of the previous step."""
    checks: list[Reference] = Field(default_factory=list)
    validators: list[Reference] = Field(default_factory=list)
    """Alias for checks."""
    usage_limits: Limits | None = None
    config: Config | None = None
    """How the step is run: retries, timeout, and model settings."""
    meta: Members = Field(default_factory=dict)
    ignored: ClassVar[Mapping[str, str]] = {
        "description": "it has no effect",
        "validate_fields": "the schema is always enforced",
        "use_history": "it is for steps with an agent",
        "input_schema": "the input of a step is not checked; give the previous step a schema",
        "input_keys": "it has no effect",
        "output_keys": "it has no effect; `sink_to` and `updates_context` say where a value goes",
        "plugins": "they are not run; write `checks`",
        "static_invariants": "write `checks` instead",
        "processors": "they are not run; write a callable step",
    }


AgentNode: TypeAlias = Annotated[
    str | Members | None,
    WithJsonSchema({"anyOf": [{"type": "string"}, {REF: "Agent"}, {REF: "Skill"}, {"type": "null"}]}),
]


@_declares(Step)
class StepBlock(StepKeys):
    """`kind: step`: an agent, a built-in, a callable or an imported blueprint."""

    uses: str | None = None
    """agents.NAME, imports.NAME, a built-in, or package.module:name"""
    agent: AgentNode = None
    """agents.NAME, or an inline agent: {model: …}."""
    params: Members | None = None
    processing: Processing | None = None
    """How the reply is read and recovered."""
    contract: Annotated[JsonValue, WithJsonSchema({"type": ["string", "object"]})] = None
    """Where the payload is, such as tagged:result."""
    output_schema: JsonSchema | None = None
    """The JSON Schema of the value."""
    model_settings: Members = Field(default_factory=dict)
    ignored: ClassVar[Mapping[str, str]] = {key: why for key, why in StepKeys.ignored.items() if key != "use_history"}


class Placed(Block):
    """A value and the path in the context to which it is written."""

    target: str
    """A dotted path in the context."""
    value: JsonValue
    """A value, or a template for one."""


class Operation(Block):
    """One change of the context: `set: PATH` with a `value`, `append:` to a list, or `merge:` into an object."""

    set: str | None = None
    """The dotted path in the context that `value` is written to."""
    value: JsonValue = None
    """A value, or a template for one."""
    append: Placed | None = None
    """Append a value to a list: {target: PATH, value: …}."""
    merge: Placed | None = None
    """Merge an object into another: {target: PATH, value: …}."""


class LoopKeys(Block):
    """The options under `loop:`."""

    max_iterations: int | None = Field(default=None, ge=1)
    """Alias for max_loops."""
    state: JsonValue = None
    """Changes of the context after each iteration: {set: […], append: […]}."""
    propagation: JsonValue = None
    """The input of the next iteration: {next_input: previous_output | context | TEMPLATE}."""
    output: JsonValue = None
    """The value of the loop: a template, or an object of templates."""
    output_template: str | None = None
    """The value of the loop, as a template."""
    conversation: bool = False
    """Sets use_history for every agent in the body that does not set it to false."""
    ignored: ClassVar[Mapping[str, str]] = {
        "stop_when": "write exit_expression",
        "history_management": "the whole conversation is kept",
        "history_template": "models see the conversation itself",
        "ai_turn_source": "every agent with use_history takes part in the conversation",
        "user_turn_sources": "the `input` of an agent is the user's turn",
        "named_steps": "it has no effect",
    }


class AgreeBlock(StepKeys):
    """`kind: agree`: several independent readings, combined field by field."""

    models: list[str] = Field(default_factory=list)
    """The models that do the reading."""
    uses: str | None = None
    """agents.NAME, the agent that reads, in place of a `reading`."""
    agent: AgentNode = None
    output_schema: JsonSchema | None = None
    """The JSON Schema of each reading."""


class EnsembleBlock(StepKeys):
    """`kind: ensemble`: agents that take turns over an event log."""

    cast: list[JsonValue] = Field(min_length=1)
    """Manifests, or paths of YAML files that contain one each."""
    profiles: dict[str, str] = Field(default_factory=dict)
    """The name of the agent for each model_profile that is not one itself."""
    log: str | None = None
    """A file or URL that stores the events, so that the run can be resumed."""
    inject: dict[str, str] = Field(default_factory=dict)
    """The message of the user before the turn with this number."""


KINDS: Final[dict[str, Kind]] = {
    kind.word: kind
    for kind in (
        Kind(Step, base=StepBlock),
        Kind(Call, base=StepBlock, named="call"),
        Kind(Import, under="config", base=StepBlock, inner=Config),
        Kind(Parallel),
        Kind(Branch),
        Kind(Loop, under="loop", inner=LoopKeys),
        Kind(Map, under="map"),
        Kind(Human, stricter={"message": (str, Field(min_length=1))}),
        Kind(Cached, keys={"step": "wrapped_step"}),
        Kind(Agree, base=AgreeBlock),
        Kind(Ensemble, base=EnsembleBlock),
    )
}
"""The kinds of steps, by `kind`."""

COMMON: Final = Kind(PipelineStep)
"""The options that every kind has."""

BLOCKS: Final[dict[str, type[StepKeys]]] = {
    "step": StepBlock,
    **{word: kind.block for word, kind in KINDS.items() if kind.base is not StepBlock},
}
"""Every `kind` of step that a blueprint may have."""


KEYS: Final[Mapping[str, str]] = {
    "map": "The list, and the steps for each element.",
    "loop": "The steps to repeat, and when to stop.",
    "condition_expression": "An expression whose result is the name of the branch.",
    "condition": "A function of the value and the context, package.module:name, that returns the name of the branch.",
    "exit_expression": "An expression that ends the loop when true, such as previous_step.good.",
    "exit_condition": "A function of the last value and the context, package.module:name, that ends the loop.",
    "Operations.output": "The value of the step, as a template or an object of templates.",
}
"""The descriptions of keys that are not fields of a class."""


@cache
def _field_descriptions(module: str) -> Mapping[str, Mapping[str, str]]:
    """Return the descriptions of the fields of a module's classes: the string below each in the source code, if
    available.
    """
    found: dict[str, dict[str, str]] = {}
    try:
        source = inspect.getsource(sys.modules[module])
    except (OSError, TypeError):
        return found
    for owner in (each for each in ast.parse(source).body if isinstance(each, ast.ClassDef)):
        for declared, below in pairwise(owner.body):
            match declared, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found.setdefault(owner.name, {})[name] = " ".join(text.split())
                case _:
                    pass
    return found


_FOREIGN: Final = ("builtins", "typing", "pydantic.main")


def _descriptions() -> Mapping[str, str]:
    """Return the descriptions of keys whose field has none: by key, and by model and key."""
    owners: list[tuple[str, type[Any], Mapping[str, str]]] = [
        (each.__name__, each, {}) for each in (*_all_blocks(Block), Processing, Coercion, OutputMapping)
    ]
    owners.append((Agent.__name__, AgentSpec, {}))
    for kind in KINDS.values():
        owners += [(name, kind.step, kind.keys) for name in (kind.block.__name__, f"{kind.under.title()}Keys")]
    found = dict(KEYS)
    for model, owner, keys in owners:
        for each in owner.__mro__:
            ours = each.__module__ not in _FOREIGN
            for name, about in _field_descriptions(each.__module__).get(each.__name__, {}).items() if ours else ():
                key = keys.get(name, name)
                found.setdefault(f"{model}.{key}", about)
                found.setdefault(key, about)
    return found


SCHEMA_FILE: Final = "blueprint.schema.json"
"""The name of the schema file next to the blueprints, to which their first line refers."""

FIRST_LINE: Final = f"yaml-language-server: $schema={SCHEMA_FILE}"
"""The comment that tells an editor where the schema is."""


def blueprint_schema() -> dict[str, Any]:
    """Return the schema of blueprints, in draft 2020-12.

    >>> sorted(blueprint_schema()["properties"])[:3]
    ['agents', 'config', 'description']
    """
    used: list[Any] = [Top, Agent, Skill, Operation, OutputMapping, *BLOCKS.values()]
    _, written = TypeAdapter.json_schemas([(each, "validation", TypeAdapter(each)) for each in used])
    defs: dict[str, Any] = written["$defs"]
    for block in _all_blocks(Block):
        for key, why in block.ignored.items() if block.__name__ in defs else ():
            ignored = {"deprecated": True, "description": f"Ignored: {why}."}
            defs[block.__name__].setdefault("properties", {})[key] = ignored
    for kind, block in BLOCKS.items():
        _name_or_step(defs[block.__name__], kind)
    top = defs.pop(Top.__name__)
    defs = {"Step": _any_step(), "Body": _body(), "Operations": _operations(), **defs}
    known = _descriptions()
    for name, each in {**defs, Top.__name__: top}.items():
        _describe(name, each, known)
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A blueprint of flujo_aros",
        **{key: value for key, value in top.items() if key != "title"},
        "patternProperties": {f"^{SHARED}": {"description": "A place for YAML anchors that several parts share."}},
        "$defs": defs,
    }
    return cast("dict[str, Any]", _referring(whole))


def _describe(model: str, schema: Any, known: Mapping[str, str]) -> None:
    """Give a description to each key that has none, at any depth."""
    if isinstance(schema, dict):
        members = cast("dict[str, Any]", schema)
        for key, each in members.get("properties", {}).items():
            about = known.get(f"{model}.{key}", known.get(key))
            if about is not None:
                each.setdefault("description", about)
        for key, each in members.items():
            if key != "if":  # a condition, not a form
                _describe(model, each, known)
    elif isinstance(schema, list):
        for each in cast("Sequence[Any]", schema):
            _describe(model, each, known)


def _referring(schema: Any) -> Any:
    """Return the schema with real references in place of the ones that pydantic must not follow."""
    if isinstance(schema, dict):
        members = cast("dict[str, Any]", schema)
        return {
            "$ref" if key == REF else key: f"#/$defs/{value}" if key == REF else _referring(value)
            for key, value in members.items()
        }
    return list(map(_referring, cast("Sequence[Any]", schema))) if isinstance(schema, list) else schema


def _any_step() -> dict[str, Any]:
    choices = [
        {
            "if": {"required": ["kind"], "properties": {"kind": {"const": kind}}},
            "then": {"$ref": f"#/$defs/{block.__name__}"},
        }
        for kind, block in BLOCKS.items()
    ]
    plain = {"if": {"not": {"required": ["kind"]}}, "then": {"$ref": f"#/$defs/{BLOCKS['step'].__name__}"}}
    return {"type": "object", "properties": {"kind": {"enum": list(BLOCKS)}}, "allOf": [*choices, plain]}


def _body() -> dict[str, Any]:
    """Return the schema of a body: a list of steps, with or without a name, or a single step."""
    steps = {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/Step"}}
    named = {
        "type": "object",
        "required": ["steps"],
        "properties": {"name": {"type": "string"}, "description": {"type": "string"}, "steps": steps},
        "additionalProperties": False,
    }
    alone = {"allOf": [{"not": {"required": ["steps"]}}, {"$ref": "#/$defs/Step"}]}
    return {"description": "Steps, one after the other.", "anyOf": [steps, named, alone]}


def _operations() -> dict[str, Any]:
    """Return the schema of operations: steps, changes of the context, or one object that is the output."""
    either = {"anyOf": [{"$ref": "#/$defs/Operation"}, {"$ref": "#/$defs/Step"}]}
    output = {"type": "object", "required": ["output"], "properties": {"output": {"type": ["object", "string"]}}}
    steps = {"type": "object", "required": ["steps"]}
    return {"anyOf": [{"type": "array", "items": either}, output, steps, {"type": "null"}]}


def _name_or_step(schema: dict[str, Any], kind: str) -> None:
    """Allow `step` as a synonym for `name`, and only a kind's own value of `kind`."""
    schema["properties"]["kind"] = {"const": kind}
    schema["properties"]["step"] = {"type": "string", "deprecated": True, "description": "Alias for name."}
    schema["required"] = [key for key in schema["required"] if key != "name"]
    schema["anyOf"] = [{"required": ["name"]}, {"required": ["step"]}]


def _all_blocks(kind: type[Block]) -> Iterator[type[Block]]:
    for each in kind.__subclasses__():
        yield each
        yield from _all_blocks(each)
