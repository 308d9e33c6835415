"""Builds every kind of step: from its block to the object that Python code would create."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any, Final, cast

from flujo_aros.blueprint import blocks
from flujo_aros.blueprint.dialect import OTHER_KINDS, PRECHECK_KEYS, REFUSED
from flujo_aros.blueprint.document import Node
from flujo_aros.blueprint.loading import EnoughError, Loading, Located, member, not_a_step
from flujo_aros.blueprint.references import (
    NO_AGENT,
    Making,
    Shaped,
    Target,
    Unready,
    Where,
    as_template,
    checks_of,
    is_expression,
    limits,
    name_of,
    place_of,
    set_values,
    target_of,
    template_literal,
)
from flujo_aros.contract import WrittenContract, written_contract
from flujo_aros.ensemble.manifest import (
    DEFAULT_PROFILE,
    Manifest,
    no_emitter_hint,
    read_manifest,
    unheard_input,
    wrong_kind,
)
from flujo_aros.errors import ContractError, FilterError, Hint, Suggestion, TemplateError, UsageError
from flujo_aros.host import AgentSpec
from flujo_aros.json_data import is_dict
from flujo_aros.pipeline.builtins import built_in_step
from flujo_aros.pipeline.control import OutputMapping, StateUpdate
from flujo_aros.pipeline.model import META_KEYS, STEP_NAME, Pipeline, PipelineStep, find_errors
from flujo_aros.pipeline.options import NESTED, Declared
from flujo_aros.pipeline.step import NO_PROCESSING, Call, Processing, Step, warnings_of
from flujo_aros.pipeline.template import InputLike, compile_input
from flujo_aros.spelling import nearest

MAX_STEPS: Final = 1_000
"""The maximum number of steps in one file, nested ones included."""
TOO_MANY_STEPS: Final = f"a blueprint has at most {MAX_STEPS} steps; move parts to other files (`imports`)"

_PATH: Final = re.compile(r"(?:context\.)?[A-Za-z_]\w*(?:\.\w+)*", re.ASCII)
_SETTINGS: Final = ("temperature", "top_p", "top_k", "max_tokens", "seed")
_WITH_TEMPLATES: Final = frozenset({"input", "message"})
_WHOSE: Final = {"step": "steps with an agent", "imports": "`uses: imports.…`"}


def build_steps(loading: Loading, nodes: list[Node], where: Where) -> list[PipelineStep] | None:
    """Return the steps that these nodes describe, or None if there are errors, which are recorded."""
    built: list[PipelineStep | None] = []
    before = where.before
    for index, node in enumerate(nodes):
        built.append(build_step(loading, node, Where(f"{where.path}[{index}]", where.name, before, where.conversation)))
        before = (*before, name_of(node, index))
    # A placeholder keeps the name of a step that could not be built, so that others can still refer to it.
    named = enumerate(zip(nodes, built, strict=True))
    stood_in = [step or Call(name_of(node, n), function=str) for n, (node, step) in named]
    wrong = False
    for error in find_errors(stood_in, where.before):
        place, step = place_of(nodes[error.index], error.key), built[error.index]
        loading.doubt(place, Hint(error.message, error.suggestion), error.code)
        if loading.lenient and step is not None:
            name = f"{step.name} ({error.index + 1})" if error.key == "name" else step.name  # a unique placeholder name
            built[error.index] = _unready(loading, name, 0)
        wrong = not loading.lenient
    whole = [step for step in built if step is not None]
    return whole if len(whole) == len(built) and not wrong else None


def build_step(loading: Loading, node: Node, around: Where) -> PipelineStep | None:
    """Return the step that this node describes, or None with its errors recorded. `around` is the
    name of its parent.
    """
    if not isinstance(node.value, dict):
        loading.note(node.place, not_a_step(node.plain()))
        return None
    if len(loading.located) >= MAX_STEPS:
        loading.note(node.place, TOO_MANY_STEPS)
        raise EnoughError
    members = node.members
    word = members.get("kind")
    kind: Any = "step" if word is None else word.value
    if word is not None and (not isinstance(kind, str) or kind not in _BUILDERS):  # a list or mapping is not a kind
        loading.note(word.place, _no_such_kind("" if kind is None else str(word.plain())))
        return None
    if "meta" in members:
        node = _merge_meta(loading, node, kind)
    for key in _WITH_TEMPLATES & members.keys():
        loading.other_braces(members[key])
    known, at, doubts = len(loading.findings), len(loading.located), len(loading.doubts)
    written, node = node, loading.with_schema_files(node)
    plain = _normalize(loading, node, kind)
    _check_stages(loading, node, plain)
    name = str(plain.get("name"))
    where = replace(around, name=f"{around.name}/{name}" if around.name else name)
    loading.located.append(Located(None, written, where.path, where.name))
    block = loading.block(blocks.BLOCKS[kind], node, plain)
    making = Making(loading, node, where)
    making = replace(making, common=_common(making, block))
    step = None
    try:
        if block is None and kind != "step":
            options_of(making, blocks.KINDS[kind], None)  # records the errors inside a step that cannot be built
        else:
            step = _BUILDERS[kind](making, block)
    except UsageError as error:
        place = place_of(node, error.key or "name", error.suggestion)
        foreign = isinstance(error, FilterError) and block is not None
        # unless it is already reported at its key
        if all(each.message != str(error) for each in loading.findings[known:]):
            (loading.cannot_run if foreign else loading.doubt)(place, error)
    if len(loading.findings) > known:
        del loading.doubts[doubts:]
        return None
    if len(loading.doubts) > doubts:
        step = _unready(loading, name, doubts, making.common)
    loading.located[at] = Located(step, written, where.path, where.name)
    return step


def _unready(loading: Loading, name: str, since: int, common: Mapping[str, Any] | None = None) -> PipelineStep:
    """Return a step that loads but cannot run, with the first reason recorded while it was built."""
    doubt = loading.doubts[since]
    del loading.doubts[since:]
    loading.warn(doubt.place, Hint(f"step {name!r} cannot run: {doubt.message}", doubt.suggestion), doubt.code)
    unready = partial(Unready, name, why=doubt.message, source=loading.source, place=doubt.place)
    try:
        return unready(**(common or {}))
    except UsageError:  # the error is in an option
        return unready()


def _body(making: Making, node: Node | None, key: str, scope: str, name: str | None = None) -> Pipeline:
    """Return the pipeline of a branch or body: a list of steps, `steps:` with a name, or a single step."""
    if node is None or node.value is None:
        return _NOTHING
    where, nodes, keys = making.where.body(key, scope), node.elements, blocks.BodyKeys()
    if "steps" in node.members:
        keys = making.loading.block(blocks.BodyKeys, node) or keys
        nodes, where = node.members["steps"].elements, replace(where, path=f"{where.path}.steps")
    elif node.members:
        step = build_step(making.loading, node, where)
        return _NOTHING if step is None else Pipeline([step], name=name or scope, body=True)
    if not nodes:
        empty = "is empty; it " if node.value in ([], {}) else ""
        making.loading.note(node.place, f"{key} {empty}should be a list of steps{_steps_meant(making, node, key)}")
        return _NOTHING
    steps = build_steps(making.loading, nodes, where)
    if steps is None:
        return _NOTHING
    return Pipeline(steps, name=keys.name or name or scope, description=keys.description, body=True)


def _steps_meant(making: Making, node: Node, key: str) -> str:
    """Return what to write instead of a name in place of steps."""
    name, branches = node.value, making.member("branches")
    if not isinstance(name, str):
        return ""
    if key == "default_branch" and branches is not None and name in branches.members:
        anchor = re.sub(r"\W", "_", name)
        return f"; to name a branch, mark it, `{name}: &{anchor} […]`, and write `{key}: *{anchor}` below it"
    is_target = re.fullmatch(r"\w[\w.]*[.:]\w+", name) is not None
    uses = name if is_target else f"agents.{name if name in making.loading.agents else 'NAME'}"
    return f", such as [{{name: {key.rpartition('.')[2]}, uses: {uses}}}]"


# A placeholder for a body whose errors are recorded; the outer step is discarded, so it never runs.
_NOTHING: Final = Pipeline([Call("nothing", function=str)], body=True)


def _common(making: Making, block: blocks.StepKeys | None) -> dict[str, Any]:
    """Return the options that every kind has."""
    options = options_of(making, blocks.COMMON, block) or {}
    checks = checks_of(making.loading, making.node)
    if block is None:
        return {}
    config = block.config or blocks.Config()
    return {
        "retries": config.max_retries,
        "timeout": config.timeout or config.timeout_s,
        **options,
        "checks": checks,
        "usage_limits": None if block.usage_limits is None else limits(block.usage_limits),
        "meta": {key: value for key, value in block.meta.items() if key not in META_KEYS},
    }


# The kinds, one function each


_NO_INPUT: Final = {
    "hitl": "the person sees `message`, which is a template",
    "map": "the list is `iterable_input` under `map:`, and the `input` of a step in the body is a template",
}
_OF_BODY: Final = (
    "the steps in it receive the value of the previous step; to change that, write a step before it: "
    "`{name: NAME, uses: passthrough, input: …}`"
)
"""What to write in place of `input` for the kinds of steps that have none."""
_JUDGES: Final = ("judge_selection", "code_consensus")


def build_kind(making: Making, block: blocks.StepKeys) -> PipelineStep | None:
    """Build the step of a kind: first each option by its declared form, then those with a special form."""
    kind = blocks.KINDS[block.kind]
    if "input" not in kind.options and "input" in making.node.members:
        instead = _NO_INPUT.get(kind.word, _OF_BODY)
        making.loading.warn(making.node.keys["input"], f"`input` has no effect here; {instead}")
    _check_config(making, kind.word)
    keys: Any = getattr(block, kind.under) if kind.under else block
    if kind.word == "parallel" and keys.reduce in _JUDGES:
        why = f"reduce: {keys.reduce} is not supported; evaluate the values in a later step"
        making.loading.cannot_run(making.node.members["reduce"].place, why)
    if kind.word == "loop" and keys.conversation:
        making = replace(making, where=replace(making.where, conversation=True))
    options = options_of(making, kind, block)
    special = _SPECIAL[kind.word](making, keys) if kind.word in _SPECIAL else {}
    if options is None or special is None:
        return None
    return kind.step(**{"name": block.name, **special, **options}, **making.common)


def options_of(making: Making, kind: blocks.Kind, block: blocks.StepKeys | None) -> dict[str, Any] | None:
    """Return the options that a step sets, or None if a required one is missing or wrong. Without a block, only the
    steps inside it are built, so that their errors are recorded.
    """
    beside = making.node.members
    holder = beside.get(kind.under, making.node) if kind.under else making.node
    inside = beside if holder is making.node else holder.members
    options: dict[str, Any] = {}
    whole = True
    for key, option in kind.options.items():
        form, under = option.option.form, key in kind.keys_under
        keys = getattr(block, kind.under) if block is not None and under else block
        node = (inside if under else beside).get(key)
        found = None
        if form == "condition":
            found = None if block is None else _condition(making, block.name, holder, key, option)
        elif node is not None and (form in NESTED if keys is None else key in keys.model_fields_set):
            found = _option(making, kind, key, node, getattr(keys, key, None))
            if found is None:
                whole = whole and (node.value is None or form not in ("step", "steps"))
                options |= {option.name: None} if form == "value" else {}
        if found is not None:
            options[option.name] = found
        whole = whole and (found is not None or not option.required)
    return options if whole else None


def _option(making: Making, kind: blocks.Kind, key: str, node: Node, written: Any) -> Any:
    """Return the Python value of an option, or None if it is not set or has errors, which are recorded."""
    full = f"{kind.under}.{key}" if key in kind.keys_under else key
    option = kind.options[key]
    scope = option.option.scope
    match option.option.form:
        case "body":
            return _body(making, node, full, scope, key if scope == "*" else scope)
        case "branches":
            return _branches(making, kind)
        case "step":
            where = making.where.body(full, scope)
            if kind.word == "cache":  # nothing around a cached step is part of its input
                where = replace(where, conversation=False)
            return None if node.value is None else build_step(making.loading, node, where)
        case "steps":
            return build_steps(making.loading, node.elements, making.where.body(full, scope))
        case "operations":
            return _operations(making, node, full)
        case "function":
            return making.function(node, key)
        case "reducer" | "kinds":
            if isinstance(written, str) and ":" in written and making.function(node, key) is None:
                return None
        case "schema":
            return written if making.loading.schema(node) else None
        case _:
            pass
    return written


def _condition(making: Making, name: str, holder: Node, key: str, option: Declared) -> str | None:
    """Return a condition: an expression, or a function."""
    expression, function = keys = blocks.condition_keys(key)
    given = {each: node for each in keys if (node := holder.members.get(each)) is not None and node.value is not None}
    if option.required and len(given) != 1:
        message = f"step {name!r} needs either `{expression}` or `{function}`, but not both"
        making.loading.doubt(making.node.place, message)
        return None
    if len(given) == 2:
        making.loading.doubt(holder.keys[function], f"write either `{expression}` or `{function}`, not both")
    if expression in given:
        value = given[expression].value
        if isinstance(value, (str, bool)):
            return value if isinstance(value, str) else str(value).lower()
        wrong = f"`{expression}` should be an expression, not {given[expression].plain()!r}"
        making.loading.note(given[expression].place, wrong)
        return None
    if function in given and is_expression(given[function]):
        known = Hint(f"; write `{expression}` for an expression", Suggestion(function, expression, sure=True))
        making.loading.doubt(holder.keys[function], known.after(f"`{function}` is a function, package.module:name"))
        return None
    return making.function(given.get(function), function)


def _branches(making: Making, kind: blocks.Kind) -> dict[str, Pipeline]:
    """Return the bodies by name; those for true and false may have any YAML spelling."""
    found = making.member("branches")
    spelt = {"True": "true", "TRUE": "true", "False": "false", "FALSE": "false"}
    names = spelt if kind.word == "conditional" else {}
    return {
        (scope := names.get(name, name)): _body(making, node, f"branches.{name}", scope)
        for name, node in (found.members.items() if found is not None else ())
    }


def _loop(making: Making, keys: Any) -> dict[str, Any]:
    """Return the options that short forms of a loop set: the changes after each iteration, its next
    input, and the output.
    """
    inner = making.member("loop") or making.node
    return {
        **({} if keys.max_iterations is None else {"max_loops": keys.max_iterations}),
        "state": _state_updates(making, inner.members.get("state")),
        "output": _output_of(making, inner),
        "next_input": _next_input_of(making, inner.members.get("propagation")),
    }


def _operations(making: Making, node: Node | None, key: str) -> Pipeline | None:
    """Return the steps before or after a body: steps, or changes to the context in the short form."""
    if node is None or node.value is None:
        return None
    steps = _operation_nodes(making, node)
    if steps.value in ([], {}):
        return None
    return _body(making, steps, key, key.rpartition(".")[2])


def _agree(making: Making, block: Any) -> dict[str, Any] | None:
    """Return the models to ask, and the agent and schema that describe the reading in place of a step."""
    described = making.member("uses") or making.member("agent")
    schema = making.member("output_schema")
    if schema is not None and not making.loading.schema(schema):
        return None
    given = {"models": block.models, "contract": block.output_schema}
    if described is None or described.value is None:
        agents = making.loading.agents
        if block.wordings is None or block.reading is not None or block.readings is not None or not agents:
            return given
        if len(agents) > 1:
            needs = f"step {block.name!r} needs `uses`, one of its agents: {', '.join(agents)}"
            making.loading.note(making.node.place, needs)
            return None
        only = next(iter(agents.values()))
        return None if only is None else {**given, "agent": only}
    target = target_of(making.loading, making.node, f"step {block.name!r}")
    if target is None:
        return None
    if target.agent is None:
        making.loading.note(described.place, f"the readings of step {block.name!r} need an agent: write agents.NAME")
        return None
    return {**given, "agent": target.agent}


def _ensemble(making: Making, block: Any) -> dict[str, Any] | None:
    """Return the cast with its agents, its log, and the messages of the user."""
    if "retries" in making.node.members:
        why = "an agent that fails loses its turn, and the others continue"
        making.loading.warn(making.node.keys["retries"], f"`retries` has no effect on an ensemble: {why}")
    cast_node = making.member("cast")
    nodes = [] if cast_node is None else cast_node.elements
    members = [each for node in nodes if (each := _manifest(making, node)) is not None]
    turns = [turn for turn in block.inject if not turn.isdecimal()]
    for turn in turns:
        making.loading.note((making.member("inject", turn) or making.node).place, f"{turn!r} is not a turn number")
    profiles = _profiles(making, block, [each.model_profile for each in members])
    if len(members) < len(block.cast) or profiles is None or turns:
        return None
    for manifest, node in zip(members, nodes, strict=True):
        what = f"agent {manifest.name!r} waits for events that are never emitted"
        _doubt_kinds(making, what, manifest.subscribes_to, node.members.get("subscribes_to", node), members)
    if (given := making.member("input")) is not None and (unheard := unheard_input(members)) is not None:
        making.loading.warn(given.place, unheard)
    for key in ("stop_on", "stop"):
        stops = making.member(key) or making.node
        kinds = [str(each.value) for each in stops.elements or ([] if stops is making.node else [stops])]
        _doubt_kinds(making, "nothing stops the run", [kind for kind in kinds if not wrong_kind(kind)], stops, members)
    return {
        "cast": members,
        "profiles": profiles,
        "inject": {int(turn): text for turn, text in block.inject.items()},
        **set_values(block, "log"),
    }


def _profiles(making: Making, block: Any, used: Sequence[str]) -> dict[str, AgentSpec] | None:
    """Return the agents by profile: as `profiles` names them, and otherwise those of the same names, or the only agent.
    None if there is an error, which is recorded.
    """
    agents = making.loading.agents
    wanted: dict[str, str] = dict(block.profiles)
    profiles: dict[str, AgentSpec] = {}
    for name in used:
        only = next(iter(agents)) if len(agents) == 1 and name == DEFAULT_PROFILE else None
        if name not in wanted and (found := name if name in agents else only) is not None:
            wanted[name] = found
        elif name not in wanted and name == DEFAULT_PROFILE and agents:
            why = f"an agent of the cast needs a `model_profile`, the name of one of the agents: {', '.join(agents)}"
            making.loading.note((making.member("cast") or making.node).place, why)
            return None
    for name, agent in wanted.items():
        spec = agents.get(agent)
        if spec is not None:
            profiles[name] = spec
        elif agent not in agents:
            place = (making.member("profiles", name) or making.node).place
            making.loading.note(place, nearest(agent, agents).after(f"no agent {agent!r}"))
    return profiles if len(profiles) == len(wanted) else None


def _doubt_kinds(making: Making, what: str, kinds: Sequence[str], node: Node, cast: Sequence[Manifest]) -> None:
    """Warn about kinds that nobody emits: only another process could append such an event to the log."""
    for index, kind in enumerate(kinds):
        unknown = no_emitter_hint(kind, cast)
        if unknown is not None:
            place = node.elements[index].place if node.elements else node.place
            making.loading.warn(place, unknown.after(f"{what}: "))


def _manifest(making: Making, node: Node) -> Manifest | None:
    """Return the manifest at this node, or in the file that it names."""
    manifest: Any = node.plain()
    if is_dict(manifest):
        return making.loading.block(Manifest, node)
    if not isinstance(manifest, str):
        making.loading.note(node.place, "a manifest is a mapping, or the path of a YAML file with one")
        return None
    file = making.loading.inside(manifest)
    if file is None:
        making.loading.note(node.place, f"{manifest!r} is outside the folder of the blueprint")
        return None
    try:
        return read_manifest(file)
    except UsageError as error:
        for line in str(error).splitlines():
            making.loading.note(node.place, line)
    return None


def build_plain(making: Making, block: blocks.StepBlock | None) -> PipelineStep | None:
    """Return the step of an agent, a callable or an imported blueprint. Without a block, only its
    errors are recorded.
    """
    loading, node = making.loading, making.node
    name = member(node, "name") if block is None else None
    who = f"step {name.plain()!r}" if name else "this step" if block is None else f"step {block.name!r}"
    target = target_of(loading, node, who)
    schemas = (making.member("processing", "schema"), making.member("output_schema"))
    is_agent = target is None or not (target.alias or target.function or target.builtin or target.context)
    sound = [loading.schema(each, typed=is_agent) for each in schemas if each is not None]
    if block is None or target is None or not all(sound):
        _check_input(making)
        return None
    _check_keys(making, target)
    if target.alias is not None:
        return _import(making, block, target.alias)
    if target.function is not None or target.builtin is not None:
        return _call(making, block, target)
    return _agent_step(making, block, target.agent or NO_AGENT)


def _agent_step(making: Making, block: blocks.StepBlock, agent: AgentSpec) -> PipelineStep:
    if block.params is not None:
        why = "`params` are for callable steps; an agent has `model_settings`"
        making.loading.note(making.node.keys["params"], why)
    step = cast("Step", _make_step(making, "step", block, {"agent": agent, **_agent_options(making, block)}))
    for key, message in warnings_of(step) if block.processing is not None else ():
        place = (making.member("processing", *key.split(".")) or making.node).place
        making.loading.warn(place, f"processing.{key} {message}")
    return step


def _agent_options(making: Making, block: blocks.StepBlock) -> dict[str, Any]:
    """Return the options of `Step` with a special form: how an agent is asked, and how its reply is read."""
    written = making.member("model_settings")
    sound = {} if written is None else making.loading.settings(written)
    stages = None if block.processing is None else making.member("processing", "stages")
    for node in (making.node, *(stages.elements if stages is not None else ())):
        if (model := node.members.get("model")) is not None:
            making.loading.model(model)
    processing = block.processing or NO_PROCESSING
    contract: Any = None if block.contract is None else _contract(making)
    if block.output_schema is not None and block.contract is not None and processing.schema is None:
        processing = replace(processing, schema=block.output_schema)
    elif block.output_schema is not None and processing.schema is None:
        contract = block.output_schema
    elif block.output_schema is not None:
        place = making.node.keys["output_schema"]
        making.loading.warn(place, "'output_schema' is ignored: `processing.schema` defines the value")
    return {
        "contract": contract,
        "processing": processing,
        "model_settings": sound if block.config is None else {**set_values(block.config, *_SETTINGS), **sound},
        "use_history": making.where.conversation,
    }


def _contract(making: Making) -> WrittenContract | None:
    """Return where the payload is: a string such as `tagged:result`, or `{tagged: result, strict: false}`."""
    node = making.member("contract")
    if node is None or not isinstance(node.value, (str, dict)):
        wanted = "contract must be a string such as tagged:result, or a mapping"
        making.loading.note((node or making.node).place, wanted)
        return None
    try:
        return written_contract(node.plain())
    except ContractError as error:
        making.loading.note(node.place, error)
        return None


def _call(making: Making, block: blocks.StepBlock, target: Target) -> PipelineStep:
    schema = (block.processing.schema if block.processing else None) or block.output_schema
    common = dict(making.common)
    if schema is not None:
        common["checks"] = (Shaped(json.dumps(schema)), *common["checks"])
    params = {**target.params, **(block.params or {})}
    if target.builtin is not None:
        making.loading.schema(making.member("params", "schema") or making.member("agent", "params", "schema"))
        making.loading.model(making.member("params", "model") or making.member("agent", "params", "model"))
    if target.context is not None:
        return _context_step(making, block, target.context, params, common)
    if target.builtin is not None:
        return built_in_step(block.name, target.builtin, params, **set_values(block, "input"), **common)
    making = replace(making, common=common)
    special = {"function": target.function, "params": params, "agent_options": _options_if_agent(making, block)}
    return _make_step(making, "call", block, special)


def _options_if_agent(making: Making, block: blocks.StepBlock) -> dict[str, Any]:
    """Return the options of `Step` that a step with `uses: package.module:name` sets, in case the name is that of an
    agent.
    """
    if making.loading.lenient:
        return {}
    given = {**_agent_options(making, block), **(options_of(making, blocks.KINDS["step"], block) or {})}
    if given["contract"] is None:  # an agent with its own output type ignores it
        given["contract"] = given["processing"].schema
        given["processing"] = replace(given["processing"], schema=None)
    defaults = {each.name: each.default for each in fields(Step)}
    return {key: value for key, value in given.items() if key != "input" and value and value != defaults[key]}


def _context_step(
    making: Making, block: blocks.StepBlock, what: str, params: dict[str, Any], common: dict[str, Any]
) -> PipelineStep:
    """Build the step for flujo's built-ins that write a value to the context or read one: it passes the value on."""
    written = {**(block.input if isinstance(block.input, dict) else {}), **params}
    path = written.get("path")
    if not isinstance(path, str) or (what == "get" and not _PATH.fullmatch(path)):
        keys = "`path` and `value`" if what == "set" else "`path`, such as a.b,"
        making.loading.note(
            place_of(making.node, "params"), f"context_{what} of step {block.name!r} needs {keys} in params"
        )
        path = "nowhere"
    path = path.removeprefix("context.")
    if what == "get":
        template = f"{{{{ context.{path} | default({template_literal(written.get('default'))}) }}}}"
        return built_in_step(block.name, "passthrough", input=template, **common)
    changed: dict[str, Any] = {"sink_to": path, "updates_context": False}
    return built_in_step(block.name, "passthrough", input=as_template(written.get("value")), **{**common, **changed})


def _import(making: Making, block: blocks.StepBlock, alias: str) -> PipelineStep | None:
    pipeline, outputs = making.loading.imports[alias], _outputs(making)
    if pipeline is None:
        return None
    return _make_step(making, "imports", block, {"pipeline": pipeline, "alias": alias, "outputs": outputs})


def _make_step(making: Making, word: str, block: blocks.StepKeys, special: dict[str, Any]) -> PipelineStep:
    """Return a step of one of the kinds that are all written `kind: step`."""
    kind = blocks.KINDS[word]
    options = options_of(making, kind, block) or {}
    return kind.step(**{"name": block.name, **special, **options}, **making.common)


def _outputs(making: Making) -> tuple[OutputMapping, ...] | None:
    """Return the outputs of an imported blueprint: `{child: parent}`, or a list of such pairs."""
    node = making.member("config", "outputs")
    if node is None or node.value is None:
        return None
    if isinstance(node.value, dict):
        pairs = [(child, parent.value) for child, parent in node.members.items()]
        if all(isinstance(parent, str) for _, parent in pairs):
            return tuple(OutputMapping(child, str(parent)) for child, parent in pairs)
    if isinstance(node.value, list):
        found = [making.loading.block(OutputMapping, each) for each in node.elements]
        return tuple(each for each in found if each is not None)
    making.loading.note(node.place, "outputs should be a mapping `child: parent`, or a list of `{child, parent}`")
    return None


def _check_keys(making: Making, target: Target) -> None:
    """Warn about keys that this kind of target does not use."""
    if target.function is not None and not making.loading.lenient:  # the function may turn out to be an agent
        _check_config(making, "step")
        return
    word = "imports" if target.alias is not None else "step" if target.agent is not None else "call"
    of_agents = {"processing", "contract", "model_settings", *blocks.KINDS["step"].options}
    used = of_agents if word == "step" else {"processing", "input"} if word == "call" else blocks.KINDS[word].options
    for key, place in making.node.keys.items():
        if key in of_agents and key not in used:
            making.loading.warn(place, f"'{key}' is ignored: it is for {_WHOSE['step']}")
    _check_config(making, word)


def _check_config(making: Making, word: str) -> None:
    """Warn about members of `config` that steps of this kind do not use."""
    config = making.member("config")
    of_imports = {"outputs", *blocks.KINDS["imports"].keys_under}
    for key, place in config.keys.items() if config is not None else ():
        whose = "step" if key in _SETTINGS else "imports" if key in of_imports else word
        if whose != word:
            making.loading.warn(place, f"'config.{key}' is ignored: it is for {_WHOSE[whose]}")


def _check_input(making: Making) -> None:
    """Record the template errors of a step that also has other errors."""
    source = making.member("input")
    if source is None or not isinstance(source.value, (str, dict, list)):
        return
    try:
        name = making.node.members.get("name")
        compile_input(source.plain(), where=f"input of step {name.plain()!r}" if name is not None else "input")
    except TemplateError as error:
        making.loading.note(source.place, error)


# flujo's short forms and old keys


_NO_NAME: Final = re.compile(r"[/{}\"'\s]+")
_HAND_ON: Final = "flujo.builtins.passthrough"
_APPEND: Final = "flujo.builtins.append"
_OUTPUTS: Final = ("output", "output_template")
_TALK: Final = "conversation_history"
_WORDS: Final = {"initial_prompt": "{{ context.initial_prompt }}"}
_CHANGES: Final = ("set", "append", "merge")
_NEXT_INPUT: Final = "auto"


def _merge_meta(loading: Loading, node: Node, kind: str) -> Node:
    """Return a step with the keys that flujo accepts under `meta` moved into the step itself."""
    meta = node.members["meta"]
    for key in META_KEYS if kind == "step" else META_KEYS[1:]:
        value = meta.members.get(key)
        if value is None:
            continue
        if key in node.members:
            loading.warn(meta.keys[key], f"'meta.{key}' is ignored: the step itself has `{key}`")
            continue
        keys = {**node.keys, key: meta.keys[key]}
        node = Node(node.place, node.end, {**node.members, key: value}, keys)
    return node


def _normalize(loading: Loading, node: Node, kind: str) -> dict[str, Any]:
    """Return the mapping of a step, with old names of keys replaced by current ones."""
    plain: dict[str, Any] = node.plain()
    if "step" in plain and "name" not in plain:
        plain["name"] = plain.pop("step")
    if loading.lenient:
        _fill_defaults(loading, node, kind, plain)
    precheck = member(node, "processing", "reasoning_precheck") if "processing" in plain else None
    for key, place in precheck.keys.items() if precheck is not None else ():
        if key in PRECHECK_KEYS:
            why = "plans are not evaluated; evaluate the plan in a separate step"
            loading.warn(place, f"{key!r} is ignored: {why}")
            del plain["processing"]["reasoning_precheck"][key]
    return plain


def _check_stages(loading: Loading, node: Node, plain: dict[str, Any]) -> None:
    """Record the errors of every stage of a ladder, and leave out the invalid stages."""
    stages = member(node, "processing", "stages")
    if stages is None or not isinstance(stages.value, list):
        return
    sound: list[Any] = []
    for number, each in enumerate(stages.elements):
        written = each.plain()
        try:
            Processing(stages=(written,))
        except UsageError as error:
            inside = (error.key or "").split(".")[2:]
            misspelt = inside and error.suggestion is not None and inside[-1] == error.suggestion.written
            message = str(error).replace("stages.0", f"stages.{number}", 1)
            loading.note((each.key_at if misspelt else each.at)(inside), Hint(message, error.suggestion))
        else:
            sound.append(written)
    plain["processing"]["stages"] = sound


def _fill_defaults(loading: Loading, node: Node, kind: str, plain: dict[str, Any]) -> None:
    """Fill in a valid name, and a default message, for lenient loading."""
    name = plain.get("name")
    if isinstance(name, str) and not STEP_NAME.fullmatch(name):
        plain["name"] = " ".join(_NO_NAME.sub(" ", name).split()) or "step"
        loading.warn(node.place, f"not a valid step name: {name!r}; it is called {plain['name']!r} here")
    if kind == "hitl" and not plain.get("message"):
        plain["message"] = str(plain.get("name"))
        loading.warn(node.place, f"step {name!r} has no question; write a `message`")


def _no_such_kind(kind: str) -> Hint:
    """Return the error for an unknown kind of step, with what to write instead; "" is a key without a value."""
    if not kind:
        known = ", ".join(sorted(blocks.BLOCKS))
        return Hint(f"`kind` is empty; write one of {known}, or leave it out for a plain step")
    if kind in REFUSED:
        return Hint(f"`kind: {kind}` is not supported; {REFUSED[kind]}")
    meant = OTHER_KINDS.get(kind.lower())
    near = nearest(kind, blocks.BLOCKS, closed=True) if meant is None else meant.of(kind)
    return near.after(f"unknown kind of step {kind!r}")


def _operation_nodes(making: Making, node: Node) -> Node:
    """Return the steps under `init:` or `finalize:`, including those that a short form expands to.

    `- set: context.note` with a `value` is a step that writes the value there; `output: …` is a step with that value.
    """
    if "history" in node.members:
        making.loading.warn(node.keys["history"], "'history' is ignored: a conversation begins with the first `input`")
        return node.like([])
    if not node.elements:
        steps = _expand_short_form(making, node, 1)
        return node if steps is None else node.like(steps)
    made: list[Node] = []
    for number, each in enumerate(node.elements, start=1):
        steps = None if "name" in each.members else _expand_short_form(making, each, number)
        made += [each] if steps is None else steps
    return node.like(made)


def _expand_short_form(making: Making, node: Node, number: int) -> list[Node] | None:
    """Return the steps that a short form expands to, or None for anything else."""
    output = next((node.members[key] for key in _OUTPUTS if key in node.members), None)
    if output is not None:
        return [_context_update_step(node, "output", output)]
    if any(key in node.members for key in _CHANGES):
        return list(_update_steps(making, node, number))
    return None


def _state_updates(making: Making, node: Node | None) -> tuple[StateUpdate, ...]:
    """Return the changes to the context after each iteration: `state: {set: […], append: […], merge: […]}`."""
    if node is None or node.value is None:
        return ()
    updates: list[StateUpdate] = []
    if not isinstance(node.value, dict):
        making.loading.note(node.place, "state should be a mapping with `set:` or `append:`")
    for key, entry in node.members.items():
        if key not in _CHANGES:
            making.loading.note(node.keys[key], f"unknown key {key!r}; known: {', '.join(_CHANGES)}")
        for each in entry.elements or [entry]:
            placed = making.loading.block(blocks.Placed, each)
            if placed is None:
                continue
            for target, value in _values(key, placed):
                updates.append(StateUpdate(target=target, value=as_template(value), append=key == "append"))
    return tuple(updates)


def _output_of(making: Making, node: Node) -> InputLike | None:
    """Return the output of a loop: `output: {…}` or `output_template: …`."""
    template, output = node.members.get("output_template"), node.members.get("output")
    if template is not None and isinstance(template.value, str):
        return template.value
    if output is None or output.value is None:
        return None
    only = output.members if set(output.members) <= {"text", "fields"} else {}
    found = (only.get("fields") or only.get("text") or output).plain()
    if only:
        found = _translate_names(making, output, found)
    if isinstance(found, (str, dict, list)):
        return cast("InputLike", found)
    making.loading.note(output.place, f"output should be a template, or an object or list of templates, not {found!r}")
    return None


def _translate_names(making: Making, node: Node, output: Any) -> Any:
    """Return the content of `text` or `fields`, with flujo's names for values translated into templates."""
    if isinstance(output, dict):
        members = cast("dict[str, Any]", output).items()
        return {key: _translate_names(making, node, value) for key, value in members}
    if output == _TALK:
        why = "conversations are not kept; `append` the turns to a list in `state` and pass that list on"
        making.loading.cannot_run(node.place, why)
    return _WORDS.get(output, output) if isinstance(output, str) else output


def _next_input_of(making: Making, node: Node | None) -> str:
    """Return the input of the next iteration of a loop: `propagation: {next_input: auto | previous_output | context |
    TEMPLATE}`.
    """
    found = node if node is None or isinstance(node.value, str) else node.members.get("next_input")
    if node is None or node.value is None:
        return _NEXT_INPUT
    if found is not None and isinstance(found.value, str):
        return found.value
    if found is None and making.loading.lenient:
        making.loading.warn(node.place, "propagation is ignored: it has no `next_input`")
        return _NEXT_INPUT
    making.loading.note(node.place, "propagation should be `next_input: previous_output`, `context` or a template")
    return _NEXT_INPUT


def _update_steps(making: Making, node: Node, number: int) -> Iterator[Node]:
    """Yield one step for each path that an operation changes."""
    operation = making.loading.block(blocks.Operation, node)
    if operation is None:
        return
    if operation.append is not None:
        target, value = operation.append.target.removeprefix("context."), as_template(operation.append.value)
        given = node.like({"list": f"{{{{ context.{target} or [] }}}}", "item": value})
        yield _context_update_step(node, f"append {number}", given, agent=_APPEND, sink_to=target)
    for key in ("set", "merge"):
        placed = operation.merge if key == "merge" else None
        if key == "set" and operation.set is not None:
            placed = blocks.Placed(target=operation.set, value=operation.value)
        for at, (target, value) in enumerate(_values(key, placed) if placed else ()):
            name = f"{key} {number}" if at == 0 else f"{key} {number}.{at + 1}"
            sink = target.removeprefix("context.")
            yield _context_update_step(node, name, node.like(as_template(value)), sink_to=sink)


def _values(key: str, placed: blocks.Placed) -> list[tuple[str, Any]]:
    if key == "merge" and isinstance(placed.value, dict):
        return [(f"{placed.target}.{name}", value) for name, value in placed.value.items()]
    return [(placed.target, placed.value)]


def _context_update_step(node: Node, name: str, given: Node, **more: str) -> Node:
    return node.like({"name": name, "agent": _HAND_ON, "input": given, **more})


_BUILDERS: Final[dict[str, Callable[[Making, Any], PipelineStep | None]]] = {
    **dict.fromkeys(blocks.BLOCKS, build_kind),
    "step": build_plain,
}
_SPECIAL: Final[Mapping[str, Callable[[Making, Any], dict[str, Any] | None]]] = {
    "loop": _loop,
    "agree": _agree,
    "ensemble": _ensemble,
}
"""Options with a special form in a blueprint, by kind."""


def add_kind(kind: blocks.Kind) -> None:
    """Register a kind of step for blueprints."""
    blocks.KINDS[kind.word] = kind
    word = "step" if kind.base is blocks.StepBlock else kind.word
    blocks.BLOCKS[word] = kind.block
    _BUILDERS.setdefault(word, build_kind)
