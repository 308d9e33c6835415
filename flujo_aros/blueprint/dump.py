"""Pipelines as blueprints: the YAML text that loads as the same pipeline."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, cast

from pydantic_core import to_jsonable_python

from flujo_aros.blueprint.blocks import COMMON, FIRST_LINE, KINDS, VERSION, Kind, condition_keys
from flujo_aros.blueprint.document import write_document
from flujo_aros.blueprint.environment import referenced
from flujo_aros.blueprint.references import Shaped
from flujo_aros.contract import WrittenContract
from flujo_aros.ensemble.log import EventLog
from flujo_aros.ensemble.step import Ensemble
from flujo_aros.errors import UsageError
from flujo_aros.host import AgentSpec
from flujo_aros.pipeline.agree import Agree
from flujo_aros.pipeline.builtins import EXTRACT, Extraction, builtin_name
from flujo_aros.pipeline.condition import Expressed
from flujo_aros.pipeline.control import Import, Loop, OutputMapping
from flujo_aros.pipeline.model import Pipeline, PipelineStep
from flujo_aros.pipeline.modules import REFERENCE, Imported
from flujo_aros.pipeline.options import NESTED, Declared
from flujo_aros.pipeline.step import PREVIOUS, Call, Step

Plain = dict[str, Any]


def dump(pipeline: Pipeline, *, first_line: str = FIRST_LINE) -> str:
    """Write a pipeline as a blueprint. `parse_blueprint(dump(p), allow=["*"]) == p` if every function has a name.

    A function object is written as `package.module:name`. Raises `UsageError` for anything that a blueprint cannot
    express: an agent built in Python, a Python type as a contract, or a function without a public name. Values from the
    environment are written as the original references.

    >>> print(dump(Pipeline([Call("size", function="builtins:len")], name="sizes"), first_line=""))
    version: "0.1"
    name: sizes
    steps:
    - name: size
      uses: builtins:len
    <BLANKLINE>
    """
    return write_document({"version": VERSION, **_document(pipeline)}, comment=first_line)


def written_options(step: PipelineStep) -> Plain:
    """Return the options of a step that differ from their defaults, in their blueprint form.

    Without its nested steps, its agent and its `processing`.
    """
    word, writing = _word_of(step), _Writing()
    kind = KINDS.get(word)
    special = SPECIAL[word](writing, step) if word in SPECIAL and word != "step" else {}
    found = {key: value for key, value in special.items() if key not in ("uses", "params")}
    found |= found.pop(kind.under, {}) if kind is not None else {}
    found |= {"profiles": {name: _spec(spec) for name, spec in writing.agents.items()}} if writing.agents else {}
    for each in (kind, COMMON) if kind is not None else ():
        for key, option in each.options.items():
            value = getattr(step, option.name)
            if value != option.default and option.option.form not in NESTED:
                found |= writing.written(step, key, option, value)
    return {**_shape(step), **found, **_common(step)}


def _document(pipeline: Pipeline) -> Plain:
    """Return the mapping of a pipeline with its agents and imports, for a file or for an inline import."""
    writing = _Writing()
    steps = [writing.step(step) for step in pipeline.steps]
    parts: Plain = {
        "description": pipeline.description,
        "agents": {name: _spec(spec) for name, spec in writing.agents.items()},
        "imports": {alias: _document(child) for alias, child in writing.imports.items()},
    }
    whole: Plain = {"name": pipeline.name, **{key: value for key, value in parts.items() if value}, "steps": steps}
    return cast("Plain", referenced(whole, pipeline.environment))


def _word_of(step: PipelineStep) -> str:
    """Return the key in `KINDS` of this kind of step, or an empty string."""
    return next((word for word, kind in KINDS.items() if kind.step is type(step)), "")


def _spec(agent: AgentSpec) -> Plain:
    return agent.model_dump(mode="json", exclude_defaults=True)


class _Writing:
    """The agents and imports that the steps of one document have named so far."""

    def __init__(self) -> None:
        self.agents: dict[str, AgentSpec] = {}
        self.imports: dict[str, Pipeline] = {}

    def step(self, step: PipelineStep) -> Plain:
        """Return the mapping of one step."""
        if word := _word_of(step):
            written = self.options(KINDS[word], step, SPECIAL[word](self, step) if word in SPECIAL else {})
        elif isinstance(step, Extraction):
            written = _extraction(step)
        else:
            step.refuse(f"a blueprint cannot express a {type(step).__name__}")
        kind: Plain = {} if step.kind in ("step", "imports") else {"kind": step.kind}
        return {**kind, "name": step.name, **written, **self.options(COMMON, step, {}), **_common(step)}

    def options(self, kind: Kind, step: PipelineStep, outer: Plain) -> Plain:
        """Return the options of a kind that differ from their defaults, in addition to those with a special form."""
        inner: Plain = outer.pop(kind.under, {}) if kind.under else outer
        for key, option in kind.options.items():
            value = getattr(step, option.name)
            if key in kind.stricter or option.required or value != option.default:
                (inner if key in kind.keys_under else outer).update(self.written(step, key, option, value))
        return {**outer, kind.under: inner} if kind.under and inner else outer

    def written(self, step: PipelineStep, key: str, option: Declared, value: Any) -> Plain:
        """Return one option with its key."""
        if option.option.form == "condition":
            return _condition(step, value, *condition_keys(key))
        return {key: self.option(step, option, value)}

    def option(self, step: PipelineStep, option: Declared, value: Any) -> Any:
        """Return one option, in its declared form."""
        match option.option.form:
            case "body" | "operations":
                scope = option.option.scope
                return self.body(value, option.name if scope == "*" else scope)
            case "branches":
                return {name: self.body(body, name) for name, body in value.items()}
            case "step":
                return self.step(value)
            case "steps":
                return [self.step(each) for each in value]
            case "function" | "reducer" | "kinds":
                return value if isinstance(value, str) else _function(step, value)
            case "value":
                return to_jsonable_python(value)
            case _:
                return value

    def body(self, pipeline: Pipeline, name: str) -> Any:
        """Return a branch or body: its steps, and its name unless it is the default one."""
        steps = [self.step(step) for step in pipeline.steps]
        if pipeline.name == name and not pipeline.description:
            return steps
        description: Plain = {"description": pipeline.description} if pipeline.description else {}
        return {"name": pipeline.name, **description, "steps": steps}

    def named(self, wanted: str, agent: AgentSpec) -> str:
        """Return the name of an agent, the preferred one if it is free; equal agents share a name."""
        for name, spec in self.agents.items():
            if spec == agent:
                return name
        name = wanted if wanted not in self.agents else f"{wanted} {len(self.agents) + 1}"
        self.agents[name] = agent
        return name


# Options with a special form in a blueprint


def _step(writing: _Writing, step: Step) -> Plain:
    if not isinstance(step.agent, AgentSpec):
        step.refuse("an agent built in Python cannot be written to YAML; use an AgentSpec")
    return {"uses": f"agents.{writing.named(step.name, step.agent)}", **_agent_options(step)}


def _agent_options(step: Step) -> Plain:
    """Return the options that say how an agent is asked and how its reply is read."""
    plain = Plain()
    if step.model_settings:
        plain["model_settings"] = dict(step.model_settings)
    if isinstance(step.contract, WrittenContract):
        plain["contract"] = _contract(step.contract)
    elif isinstance(step.contract, dict):
        plain["output_schema"] = cast("Any", step).contract
    elif step.contract is not None:
        step.refuse(f"a blueprint takes a JSON Schema as a contract, not {step.contract!r}")
    processing = _processing(step)
    return {**plain, "processing": processing} if processing else plain


def _extraction(step: Extraction) -> Plain:
    params = {"schema": step.processing.schema, "model": step.agent.model}
    plain_input: Plain = {} if step.input == PREVIOUS else {"input": step.input}
    return {"uses": f"flujo.builtins.{EXTRACT}", **_shape(step), **plain_input, "params": params}


def _call(writing: _Writing, step: Call) -> Plain:
    plain: Plain = {"uses": _function(step, step.function), **_options_if_agent(writing, step), **_shape(step)}
    return {**plain, "params": dict(step.params)} if step.params else plain


def _options_if_agent(writing: _Writing, step: Call) -> Plain:
    """Return the options of a step that apply if its function is the name of an agent."""
    if not step.agent_options:
        return {}
    agent = Step(step.name, AgentSpec(model="local:any"), **step.agent_options)
    return writing.options(KINDS["step"], agent, _agent_options(agent))


def _shape(step: PipelineStep) -> Plain:
    """Return the schema of a function's value, which is one of its checks."""
    schemas = [check for check in step.checks if isinstance(check, Shaped)]
    return {"output_schema": json.loads(schemas[0].schema)} if schemas else {}


def _import(writing: _Writing, step: Import) -> Plain:
    if not step.alias or writing.imports.setdefault(step.alias, step.pipeline) != step.pipeline:
        step.refuse(f"an import needs its own alias; {step.alias!r} cannot be used as one")
    plain: Plain = {"uses": f"imports.{step.alias}"}
    if step.outputs is None:
        return plain
    pairs = cast("Sequence[OutputMapping]", step.outputs)
    return {**plain, "config": {"outputs": [{"child": each.child, "parent": each.parent} for each in pairs]}}


def _loop(_writing: _Writing, step: Loop) -> Plain:
    inner: Plain = {}
    state: dict[str, list[Plain]] = {}
    for update in step.state:
        row = {"target": update.target, "value": update.value}
        state.setdefault("append" if update.append else "set", []).append(row)
    if state:
        inner["state"] = state
    if step.next_input != "auto":
        inner["propagation"] = {"next_input": step.next_input}
    if step.output is not None:
        inner["output_template" if isinstance(step.output, str) else "output"] = step.output
    return {"loop": inner}


def _agree(_writing: _Writing, step: Agree) -> Plain:
    return {"models": list(step.asked_models)} if step.asked_models else {}


def _ensemble(writing: _Writing, step: Ensemble) -> Plain:
    plain: Plain = {
        "cast": [each.model_dump(mode="json", exclude_defaults=True) for each in step.manifests],
        "profiles": {name: writing.named(name, cast("AgentSpec", spec)) for name, spec in step.profiles.items()},
    }
    if step.inject:
        plain["inject"] = {str(turn): text for turn, text in step.inject.items()}
    if isinstance(step.log, EventLog):
        step.refuse("an EventLog cannot be written to YAML; pass its file or URL as `log`")
    return plain if step.log is None else {**plain, "log": str(step.log)}


SPECIAL: Final[Mapping[str, Callable[[_Writing, Any], Plain]]] = {
    "step": _step,
    "call": _call,
    "imports": _import,
    "loop": _loop,
    "agree": _agree,
    "ensemble": _ensemble,
}
"""For each kind, the conversion of the options with a special form to a blueprint."""


# The parts of steps


def _common(step: PipelineStep) -> Plain:
    """Return the options with a special form that every kind has."""
    plain: Plain = {}
    if step.usage_limits is not None:
        found = dataclasses.asdict(step.usage_limits)
        plain["usage_limits"] = {key: _number(value) for key, value in found.items() if value is not None}
    checks = [_check(step, each) for each in step.checks if not isinstance(each, Shaped)]
    if checks:
        plain["checks"] = checks
    if step.meta:
        plain["meta"] = dict(step.meta)
    return plain


def _processing(step: Step) -> Plain:
    plain: Plain = {}
    for each in dataclasses.fields(step.processing):
        value = getattr(step.processing, each.name)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            value = {key: inner for key, inner in dataclasses.asdict(value).items() if inner is not None} or None
        elif isinstance(value, tuple):
            value = list(cast("Sequence[Any]", value))
        if value is not None and value != each.default:
            plain[each.name] = _number(value)
    return plain


def _contract(written: WrittenContract) -> Any:
    if not written.options:
        return f"{written.form}:{','.join(written.names)}".rstrip(":")
    return {written.form: list(written.names) or True, **dict(written.options)}


def _condition(step: PipelineStep, condition: Any, expression: str, reference: str) -> Plain:
    if isinstance(condition, str) and not REFERENCE.fullmatch(condition):
        return {expression: condition}
    return {reference: _function(step, condition)}


def _check(step: PipelineStep, check: Any) -> str:
    if isinstance(check, Expressed):
        return check.expression
    if isinstance(check, Imported):
        return check.reference
    return _function(step, check)


def _function(step: Any, function: Any) -> str:
    builtin = builtin_name(function)
    if builtin is not None or isinstance(function, str):
        return builtin or function
    named = f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', '')}"
    if not REFERENCE.fullmatch(named):
        raise UsageError(f"step {step.name!r}: {function!r} has no importable name to write in a blueprint")
    return named


def _number(value: Any) -> Any:
    if not isinstance(value, Decimal):
        return value
    if Decimal(str(float(value))) != value:
        raise UsageError(f"{value} cannot be written without rounding")
    return float(value)
