"""`kind: step`: an agent, a built-in, a callable or an imported blueprint, and what old words in it mean."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any, Final, cast

from flujo_aros.blueprint import blocks
from flujo_aros.blueprint.document import Node
from flujo_aros.blueprint.loading import Loading, member
from flujo_aros.blueprint.model_settings import check_settings
from flujo_aros.blueprint.options import Making, as_template, said
from flujo_aros.blueprint.references import NO_AGENT, Shaped, Target, Unready, target_of
from flujo_aros.contract import WrittenContract, written_contract
from flujo_aros.errors import ContractError, TemplateError
from flujo_aros.host import AgentSpec
from flujo_aros.pipeline.builtins import built_in_step
from flujo_aros.pipeline.facts import warnings_of
from flujo_aros.pipeline.imports import Import, OutputMapping
from flujo_aros.pipeline.inputs import compile_input
from flujo_aros.pipeline.model import STEP_NAME, PipelineStep
from flujo_aros.pipeline.processing import Processing
from flujo_aros.pipeline.step import Call, Step

_PATH: Final = re.compile(r"(?:context\.)?[A-Za-z_]\w*(?:\.\w+)*", re.ASCII)
_NO_NAME: Final = re.compile(r"[/{}\"'\s]+")
_SETTINGS: Final = ("temperature", "top_p", "top_k", "max_tokens", "seed")
_IMPORT_KEYS: Final = ("inherit_context", "input_to", "outputs", "on_failure", "propagate_hitl", "default")
_AGENT_KEYS: Final = (
    *("processing", "contract", "model", "model_settings"),
    *("max_iterations", "completion_signal", "use_history"),
)
_PRECHECK_KEYS: Final = (
    *("validator_agent", "agent", "delimiters", "goal_context_key", "score_threshold", "inject_feedback", "max_tokens"),
    *("retry_guidance_prefix", "context_feedback_key", "consensus_agent", "consensus_samples", "consensus_threshold"),
)


META_KEYS: Final = ("processing", "mergeable_output")
"""What flujo lets stand under `meta`, and what is a key of the step itself here."""


def with_meta(loading: Loading, node: Node, kind: str) -> Node:
    """A step with what flujo lets stand under `meta`, as if it stood in the step itself."""
    if "meta" not in node.members:
        return node
    meta = member(node, "meta")
    for key in META_KEYS if kind == "step" else META_KEYS[1:]:
        value = member(node, "meta", key)
        if meta is None or value is None:
            continue
        if key in node.members:
            loading.warn(meta.keys[key], f"'meta.{key}' is passed over: the step has a `{key}` of its own")
            continue
        keys = {**node.keys, key: meta.keys[key]}
        node = Node(node.place, node.end, {**node.members, key: value}, keys)
    return node


def prepared(loading: Loading, node: Node, kind: str) -> dict[str, Any]:
    """What a step says, with the old words for some keys put into today's."""
    plain: dict[str, Any] = node.plain()
    if "step" in plain and "name" not in plain:
        plain["name"] = plain.pop("step")
    if loading.lenient:
        _filled_in(loading, node, kind, plain)
    precheck = member(node, "processing", "reasoning_precheck")
    for key, place in precheck.keys.items() if precheck is not None else ():
        if key in _PRECHECK_KEYS:
            why = "a plan is not judged here; judge it in a step of its own"
            loading.warn(place, f"{key!r} is passed over: {why}")
            del plain["processing"]["reasoning_precheck"][key]
    return plain


def _filled_in(loading: Loading, node: Node, kind: str, plain: dict[str, Any]) -> None:
    """A name that can be one here, and a question where none is asked, as a lenient loading wants it."""
    name = plain.get("name")
    if isinstance(name, str) and not STEP_NAME.fullmatch(name):
        plain["name"] = " ".join(_NO_NAME.sub(" ", name).split()) or "step"
        loading.warn(node.place, f"not a name for a step: {name!r}; it is called {plain['name']!r} here")
    if kind == "hitl" and not plain.get("message"):
        plain["message"] = str(plain.get("name"))
        loading.warn(node.place, f"step {name!r} asks nothing; write a `message`")


def build_plain(making: Making, block: blocks.StepBlock | None) -> PipelineStep | None:
    """The step of an agent, a callable or an imported blueprint. Without a block only its mistakes are looked for."""
    loading, node = making.loading, making.node
    name = member(node, "name")
    target = target_of(loading, node, f"step {name.plain()!r}" if name else "this step")
    schemas = (making.member("processing", "schema"), making.member("output_schema"))
    sound = [loading.schema(each) for each in schemas]
    if block is None or target is None or not all(sound):
        _check_input(making)
        return None
    if target.unready is not None:
        return Unready(block.name, why=target.unready, source=loading.source, place=target.place, **making.common)
    _check_keys(making, target)
    if target.alias is not None:
        return _import(making, block, target.alias)
    if target.function is not None or target.builtin is not None:
        return _call(making, block, target)
    return _agent_step(making, block, target.agent or NO_AGENT)


def _agent_step(making: Making, block: blocks.StepBlock, agent: AgentSpec) -> PipelineStep:
    if block.params is not None:
        making.loading.note(
            making.node.keys["params"], "`params` are for callable steps; an agent has `model_settings`"
        )
    sound = check_settings(making.loading, making.member("model_settings"))
    stages = making.member("processing", "stages")
    for node in (making.node, *(stages.elements if stages is not None else [])):
        making.loading.model(member(node, "model"))
    processing = block.processing or Processing()
    contract: Any = None if block.contract is None else _contract(making)
    if block.output_schema is not None and block.contract is not None and processing.schema is None:
        processing = replace(processing, schema=block.output_schema)
    elif block.output_schema is not None and processing.schema is None:
        contract = block.output_schema
    elif block.output_schema is not None:
        place = making.node.keys["output_schema"]
        making.loading.warn(place, "'output_schema' is passed over: `processing.schema` says what the value must be")
    settings = {**said(block.config or blocks.Config(), *_SETTINGS), **sound}
    step = Step(
        block.name,
        agent=agent,
        contract=contract,
        processing=processing,
        model_settings=settings,
        use_history=making.where.conversation if block.use_history is None else block.use_history,
        **said(block, "input", "model", "max_iterations", "completion_signal"),
        **making.common,
    )
    for key, message in warnings_of(step):
        place = (making.member("processing", *key.split(".")) or making.node).place
        making.loading.warn(place, f"processing.{key} {message}")
    return step


def _contract(making: Making) -> WrittenContract | None:
    """Where the payload stands: a text such as `tagged:result`, or `{tagged: result, strict: false}`."""
    node = making.member("contract")
    if node is None or not isinstance(node.value, (str, dict)):
        making.loading.note((node or making.node).place, "contract is a text such as tagged:result, or a mapping")
        return None
    try:
        return written_contract(node.plain())
    except ContractError as error:
        making.loading.note_error(node.place, error)
        return None


def _call(making: Making, block: blocks.StepBlock, target: Target) -> PipelineStep:
    schema = (block.processing.schema if block.processing else None) or block.output_schema
    common = dict(making.common)
    if schema is not None:
        common["checks"] = (Shaped.by(schema), *common["checks"])
    params = {**target.params, **(block.params or {})}
    if target.builtin is not None:
        making.loading.model(making.member("params", "model") or making.member("agent", "params", "model"))
    given = said(block, "input")
    if target.context is not None:
        return _context_step(making, block, target.context, params, common)
    if target.builtin is not None:
        return built_in_step(block.name, target.builtin, params, **given, **common)
    return Call(block.name, function=cast("str", target.function), params=params, **given, **common)


def _context_step(
    making: Making, block: blocks.StepBlock, what: str, params: dict[str, Any], common: dict[str, Any]
) -> PipelineStep:
    """flujo's way to put a value into the context, or to take one out: a step that hands it on."""
    written = {**(block.input if isinstance(block.input, dict) else {}), **params}
    path = written.get("path")
    if not isinstance(path, str) or (what == "get" and not _PATH.fullmatch(path)):
        keys = "`path` and `value`" if what == "set" else "`path`, such as a.b,"
        making.loading.note(making.node.place, f"context_{what} of step {block.name!r} needs {keys} in params")
        path = "nowhere"
    path = path.removeprefix("context.")
    if what == "get":
        return built_in_step(block.name, "passthrough", input=_taken(path, written), **common)
    changed: dict[str, Any] = {"sink_to": path, "updates_context": False}
    return built_in_step(block.name, "passthrough", input=as_template(written.get("value")), **{**common, **changed})


def _taken(path: str, written: dict[str, Any]) -> str:
    """The template of a value of the context, with what stands in for it where it is not there."""
    literal = json.dumps(written.get("default"))
    return f"{{{{ context.{path} | default({'none' if literal == 'null' else literal}) }}}}"


def _import(making: Making, block: blocks.StepBlock, alias: str) -> PipelineStep | None:
    config = block.config or blocks.Config()
    pipeline = making.loading.imports[alias]
    outputs = _outputs(making)
    if pipeline is None:
        return None
    options = said(config, "inherit_context", "input_to", "on_failure", "propagate_hitl", "default")
    given = said(block, "input")
    return Import(block.name, pipeline, alias=alias, outputs=outputs, **given, **options, **making.common)


def _outputs(making: Making) -> tuple[OutputMapping, ...] | None:
    """What comes back from an imported blueprint: `{child: parent}`, or a list of both by name."""
    node = making.member("config", "outputs")
    if node is None or node.value is None:
        return None
    if isinstance(node.value, dict):
        pairs = [(child, parent.value) for child, parent in node.members.items()]
        if all(isinstance(parent, str) for _, parent in pairs):
            return tuple(OutputMapping(child, str(parent)) for child, parent in pairs)
    if isinstance(node.value, list):
        found = [making.loading.block(blocks.OutputMapping, each) for each in node.elements]
        return tuple(OutputMapping(each.child, each.parent) for each in found if each is not None)
    making.loading.note(node.place, "outputs should be a mapping `child: parent`, or a list of `{child, parent}`")
    return None


def _check_keys(making: Making, target: Target) -> None:
    """Warn of keys that this kind of target does not use."""
    config = making.member("config")
    useless = () if target.agent is not None else _AGENT_KEYS
    for key in useless:
        if key in making.node.members and not (key == "processing" and target.alias is None):
            making.loading.warn(making.node.keys[key], f"{key!r} is passed over: it is for steps with an agent")
    settings = () if target.agent is not None else _SETTINGS
    imports = () if target.alias is not None else _IMPORT_KEYS
    for key in (*settings, *imports):
        if config is not None and key in config.members:
            whose = "a step with an agent" if key in _SETTINGS else "`uses: imports.…`"
            making.loading.warn(config.keys[key], f"'config.{key}' is passed over: it is for {whose}")


def _check_input(making: Making) -> None:
    """Note what is wrong with the templates of a step that has other mistakes too."""
    source = making.member("input")
    if source is None or not isinstance(source.value, (str, dict, list)):
        return
    try:
        compile_input(source.plain(), where="input")
    except TemplateError as error:
        making.loading.note_error(source.place, error)
