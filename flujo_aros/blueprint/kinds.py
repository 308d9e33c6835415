"""Every kind of step: from the block that describes it to the object that Python code would have made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias, cast

from flujo_aros.blueprint import blocks
from flujo_aros.blueprint.document import MAX_FINDINGS, Node
from flujo_aros.blueprint.loading import EnoughError, Loading, Located, member, problem
from flujo_aros.blueprint.operations import next_input_of, operation_nodes, output_of, state_updates
from flujo_aros.blueprint.options import Making, Where, key_node, limits, name_of, said
from flujo_aros.blueprint.plain import META_KEYS, build_plain, prepared, with_meta
from flujo_aros.blueprint.references import Unready, checks_of
from flujo_aros.ensemble.manifest import Manifest, read_manifest
from flujo_aros.ensemble.step import Ensemble
from flujo_aros.errors import Code, FilterError, Hint, UsageError
from flujo_aros.host import AgentSpec
from flujo_aros.json_data import is_dict
from flujo_aros.pipeline.agree import Agree
from flujo_aros.pipeline.branch import Branch, branch_key
from flujo_aros.pipeline.loop import Loop
from flujo_aros.pipeline.model import Mistake, Pipeline, PipelineStep, find_mistakes, name_is_taken
from flujo_aros.pipeline.names import nearest
from flujo_aros.pipeline.step import Call

MAX_STEPS: Final = 1_000
"""How many steps one file may have, nested ones included."""


def too_many_steps() -> str:
    """What is said of a file with more steps than are read."""
    return f"a blueprint has at most {MAX_STEPS} steps; move parts to other files (`imports`)"


def build_steps(loading: Loading, nodes: list[Node], where: Where) -> list[PipelineStep] | None:
    """The steps that these nodes describe; None when there are mistakes, which are noted."""
    built: list[PipelineStep | None] = []
    before = where.before
    _refuse_one_name_for_many(loading, nodes)
    for index, node in enumerate(nodes):
        built.append(build_step(loading, node, replace(where, path=f"{where.path}[{index}]", before=before)))
        before = (*before, name_of(node, index))
    # A stand-in holds the name of a step that could not be built, so that others may still speak of it.
    named = enumerate(zip(nodes, built, strict=True))
    stood_in = [step or Call(name_of(node, n), function=str) for n, (node, step) in named]
    wrong = False
    for mistake in find_mistakes(stood_in, where.before):
        place, step = key_node(nodes[mistake.index], mistake.key).place, built[mistake.index]
        loading.doubt(place, Hint(mistake.message, mistake.suggestion), mistake.code)
        if loading.lenient and step is not None:
            built[mistake.index] = _unready(loading, _own_name(step.name, mistake), 0)
        wrong = not loading.lenient
    whole = [step for step in built if step is not None]
    return whole if len(whole) == len(built) and not wrong else None


def _refuse_one_name_for_many(loading: Loading, nodes: list[Node]) -> None:
    """Note the names of a flood of steps that share one, before any of them is built."""
    names = [name_of(node, index) for index, node in enumerate(nodes)] if len(nodes) > MAX_FINDINGS else []
    if loading.lenient or len(names) - len(set(names)) < MAX_FINDINGS:
        return
    seen: dict[str, int] = {}
    for index, name in enumerate(names):
        first = seen.setdefault(name, index)
        if first < index:
            loading.note(key_node(nodes[index], "name").place, name_is_taken(name, first), Code.DUPLICATE_STEP)


def build_step(loading: Loading, node: Node, around: Where) -> PipelineStep | None:
    """The step that this node describes, or None with its mistakes noted. `around` has the name of what holds it."""
    if not isinstance(node.value, dict):
        loading.note(node.place, f"a step is a mapping with `name:` and what it does, not {node.plain()!r}")
        return None
    if len(loading.located) >= MAX_STEPS:
        loading.note(node.place, too_many_steps())
        raise EnoughError
    kind = node.members["kind"].plain() if "kind" in node.members else "step"
    if not isinstance(kind, str) or kind not in _BUILDERS:  # a list or mapping is no kind
        loading.note(node.members["kind"].place, _no_such_kind(kind if isinstance(kind, str) else str(kind)))
        return None
    node = with_meta(loading, node, kind)
    known, at, doubts = len(loading.findings), len(loading.located), len(loading.doubts)
    written, node = node, loading.with_schema_files(node)
    plain = prepared(loading, node, kind)
    name = str(plain.get("name"))
    where = replace(around, name=f"{around.name}/{name}" if around.name else name)
    loading.located.append(Located(None, written, where.path, where.name))
    block = loading.block(blocks.BLOCKS[kind], node, plain)
    making = Making(loading, node, where, _common(loading, node, block, where))
    step = None
    try:
        if block is None:
            _look_inside(making, kind)
        else:
            step = _BUILDERS[kind](making, block)
    except UsageError as error:
        place = key_node(node, error.key or "name").place
        found = problem(place, Hint(str(error), error.suggestion), error.code)
        if isinstance(error, FilterError) and block is not None:
            loading.doubts.append(found)
        else:
            loading.doubt(place, Hint(str(error), error.suggestion), error.code)
    if len(loading.findings) > known:
        del loading.doubts[doubts:]
        return None
    if len(loading.doubts) > doubts:
        step = _unready(loading, name, doubts, making.common)
    loading.located[at] = replace(loading.located[at], step=step)
    return step


def _unready(loading: Loading, name: str, since: int, common: Mapping[str, Any] | None = None) -> PipelineStep:
    """A step that loads and cannot run, for the first of the doubts that have come up since."""
    doubt = loading.doubts[since]
    place, why = doubt.place, doubt.message
    del loading.doubts[since:]
    message = f"step {name!r} cannot run: {why}"
    loading.warnings.append(problem(place, Hint(message, doubt.suggestion), doubt.code))
    try:
        return Unready(name, why=why, source=loading.source, place=place, **(common or {}))
    except UsageError:  # an option is what is wrong with it
        return Unready(name, why=why, source=loading.source, place=place)


def _own_name(name: str, mistake: Mistake) -> str:
    """A name for a step whose own is taken."""
    return f"{name} ({mistake.index + 1})" if mistake.key == "name" else name


def _no_such_kind(kind: str) -> Hint:
    if kind in blocks.REFUSED:
        return Hint(f"`kind: {kind}` is not run here; {blocks.REFUSED[kind]}")
    meant = blocks.OTHER_KINDS.get(kind.lower())
    return (Hint(f"; {meant}") if meant else nearest(kind, blocks.BLOCKS)).after(f"there is no kind of step {kind!r}")


def _look_inside(making: Making, kind: str) -> None:
    """Note the mistakes inside of a step that cannot be built."""
    if kind == "step":
        build_plain(making, None)
    for name, node in _members(making) if kind in ("parallel", "conditional") else ():
        _body(making, node, f"branches.{name}", name)
    for keys in ((kind, "body"), ("default_branch",)):
        inner = making.member(*keys)
        if inner is not None and inner.value is not None:
            _body(making, inner, ".".join(keys), keys[-1])


def _body(making: Making, node: Node | None, key: str, scope: str, name: str | None = None) -> Pipeline:
    """The pipeline of a branch or body: a list of steps, `steps:` with a name, or one step alone."""
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
        making.loading.note(node.place, f"{key} should be a list of steps")
        return _NOTHING
    steps = build_steps(making.loading, nodes, where)
    if steps is None:
        return _NOTHING
    return Pipeline(steps, name=keys.name or name or scope, description=keys.description, body=True)


# Stands for a body with mistakes, which are noted: the step around it is not handed on. Never runs.
_NOTHING: Final = Pipeline([Call("nothing", function=str)], body=True)


def _common(loading: Loading, node: Node, block: blocks.StepKeys | None, where: Where) -> dict[str, Any]:
    """The options that every kind has."""
    fallback = member(node, "fallback")
    inner = replace(where, path=f"{where.path}.fallback")
    instead = build_step(loading, fallback, inner) if fallback is not None and fallback.value is not None else None
    checks = checks_of(loading, node)
    if block is None:
        return {}
    config = block.config or blocks.Config()
    return {
        "updates_context": block.updates_context,
        "checks": checks,
        "fallback": instead,
        "usage_limits": None if block.usage_limits is None else limits(block.usage_limits),
        "retries": config.max_retries if block.retries is None else block.retries,
        "timeout": block.timeout or config.timeout or config.timeout_s,
        "meta": {key: value for key, value in block.meta.items() if key not in META_KEYS},
        **said(block, "on_degraded", "mergeable_output", "sink_to"),
    }


# The kinds, one function each


_JUDGES: Final = ("judge_selection", "code_consensus")


def build_kind(making: Making, block: blocks.StepKeys) -> PipelineStep | None:
    """The step of a kind whose form follows from its options: each option by the form that it is declared with."""
    kind = blocks.KINDS[block.kind]
    holder, keys = making.node, block
    if kind.under:
        holder, keys = making.member(kind.under) or making.node, getattr(block, kind.under)
    if "input" not in kind.options:
        making.without_input()
    given: dict[str, Any] = {}
    for key, option in kind.options.items():
        node = holder.members.get(key)
        found = None if node is None else _option(making, kind, key, node, getattr(keys, key))
        if found is not None:
            given[option.name] = found
        elif option.required:
            return None
    return cast("PipelineStep", kind.step(**{**given, "name": block.name}, **making.common))


def _option(making: Making, kind: blocks.Kind, key: str, node: Node, written: Any) -> Any:
    """What an option is in Python; None where it says nothing, or its errors are noted."""
    full = f"{kind.under}.{key}" if kind.under else key
    match kind.options[key].option.form:
        case "body":
            return _body(making, node, full, "*", key)
        case "branches":
            return _branches(making)
        case "step":
            # Nothing around a nested step is part of its input: what is kept of it depends on its input alone.
            where = replace(making.where.body(full), conversation=False)
            return build_step(making.loading, node, where)
        case "operations":
            return _operations(making, node, full)
        case "function":
            return making.function(node, key)
        case "reducer":
            if written is not None and ":" in written:
                making.function(node, key)
        case "schema":
            making.loading.schema(node)
        case _:
            pass
    return written


def _parallel(making: Making, block: Any) -> PipelineStep | None:
    if block.reduce not in _JUDGES:
        return build_kind(making, block)
    _branches(making)
    why = f"reduce: {block.reduce} is not run here; judge the values in a step after this one"
    place = making.node.members["reduce"].place
    making.loading.cannot_run(place, f"step {block.name!r}", why)
    return Unready(block.name, why=why, source=making.loading.source, place=place, **making.common)


def _branches(making: Making) -> dict[str, Pipeline]:
    return {name: _body(making, node, f"branches.{name}", name) for name, node in _members(making)}


def _conditional(making: Making, block: blocks.ConditionalBlock) -> PipelineStep | None:
    branches = {_truth(name): _body(making, node, f"branches.{name}", _truth(name)) for name, node in _members(making)}
    default = making.member("default_branch")
    other = None if block.default_branch is None else _body(making, default, "default_branch", "default")
    making.without_input()
    if (block.condition is None) == (block.condition_expression is None):
        message = f"step {block.name!r} needs either `condition_expression` or `condition`, and not both"
        making.loading.doubt(making.node.place, message)
        return None
    condition = making.expression(making.member("condition_expression"), "condition_expression")
    if condition is None:
        condition = making.function(making.member("condition"), "condition")
    if condition is None:
        return None
    return Branch(block.name, branches, condition=condition, default_branch=other, **making.common)


def _members(making: Making) -> list[tuple[str, Node]]:
    found = making.member("branches")
    return [] if found is None else list(found.members.items())


def _truth(name: str) -> str:
    """The branches of true and false, in any spelling of YAML."""
    return branch_key(name.lower() == "true") if name in ("True", "TRUE", "False", "FALSE") else name


def _loop(making: Making, block: blocks.LoopBlock) -> PipelineStep:
    keys, inner = block.loop, making.member("loop") or making.node
    exit_ = making.expression(inner.members.get("exit_expression"), "exit_expression")
    if keys.exit_expression is not None and keys.exit_condition is not None:
        making.loading.doubt(inner.keys["exit_condition"], "write `exit_expression` or `exit_condition`, and not both")
    options: dict[str, Any] = {name: making.function(inner.members.get(name), name) for name in _MAPPERS}
    options["exit"] = exit_ or making.function(inner.members.get("exit_condition"), "exit_condition")
    options |= {"max_loops": keys.max_iterations, **said(keys, "completion_signal", "max_loops", "on_max_loops")}
    making.without_input()
    if keys.conversation:
        making = replace(making, where=replace(making.where, conversation=True))
    return Loop(
        block.name,
        _body(making, inner.members.get("body"), "loop.body", "*", "body"),
        init=_operations(making, inner.members.get("init"), "loop.init"),
        state=state_updates(making, inner.members.get("state")),
        output=output_of(making, inner),
        next_input=next_input_of(making, inner.members.get("propagation")),
        **{key: value for key, value in options.items() if value is not None},
        **making.common,
    )


_MAPPERS: Final = ("initial_input_mapper", "iteration_input_mapper", "loop_output_mapper")


def _operations(making: Making, node: Node | None, key: str) -> Pipeline | None:
    """What runs before or after a body: steps, or changes of the context written in short."""
    if node is None or node.value is None:
        return None
    steps = operation_nodes(making, node)
    if steps.value in ([], {}):
        return None
    return _body(making, steps, key, key.rpartition(".")[2])


def _agree(making: Making, block: blocks.AgreeBlock) -> PipelineStep | None:
    listed = making.member("readings")
    steps = build_steps(making.loading, listed.elements, making.where.body("readings", "*")) if listed else []
    node = making.member("reading")
    reading = None
    if node is not None and node.value is not None:
        reading = build_step(making.loading, node, making.where.body("reading", "*"))
    making.without_input()
    if steps is None or (node is not None and reading is None):
        return None
    return Agree(
        block.name,
        readings=steps,
        reading=cast("Any", reading),
        contested=block.contested,
        at_once=block.at_once,
        models=block.models,
        **said(block, "wordings", "need"),
        **making.common,
    )


def _ensemble(making: Making, block: blocks.EnsembleBlock) -> PipelineStep | None:
    if "retries" in making.node.members:
        why = "an agent that fails loses its turn, and the others go on"
        making.loading.warn(making.node.keys["retries"], f"`retries` has no effect on an ensemble: {why}")
    profiles: dict[str, AgentSpec | str] = {}
    for name, agent in block.profiles.items():
        spec = making.loading.agents.get(agent)
        if spec is None and agent not in making.loading.agents:
            near = nearest(agent, making.loading.agents)
            place = (making.member("profiles", name) or making.node).place
            making.loading.note(place, near.after(f"no agent {agent!r}"))
        elif spec is not None:
            profiles[name] = spec
    cast_node = making.member("cast")
    nodes = [] if cast_node is None else cast_node.elements
    members = [each for node in nodes if (each := _manifest(making, node)) is not None]
    turns = [turn for turn in block.inject if not turn.isdecimal()]
    for turn in turns:
        making.loading.note((making.member("inject", turn) or making.node).place, f"{turn!r} is no number of a turn")
    if len(members) < len(block.cast) or len(profiles) < len(block.profiles) or turns:
        return None
    return Ensemble(
        block.name,
        cast=members,
        profiles=profiles,
        turns=block.turns,
        stop_on=block.stop_on,
        inject={int(turn): text for turn, text in block.inject.items()},
        repetition=block.repetition,
        drift=block.drift,
        reflection=block.reflection,
        **said(block, "input", "completion_signal", "log"),
        **making.common,
    )


def _manifest(making: Making, node: Node) -> Manifest | None:
    """The manifest that stands here, or in the file that is named here."""
    given: Any = node.plain()
    if is_dict(given):
        return making.loading.block(Manifest, node)
    if not isinstance(given, str):
        making.loading.note(node.place, "a manifest is a mapping, or the path of a YAML file with one")
        return None
    file = making.loading.inside(given)
    if file is None:
        making.loading.note(node.place, f"{given!r} is outside the folder of the blueprint")
        return None
    try:
        return read_manifest(file)
    except UsageError as error:
        for line in str(error).splitlines():
            making.loading.note(node.place, line)
    return None


Build: TypeAlias = Callable[[Making, Any], "PipelineStep | None"]

_BUILDERS: Final[dict[str, Build]] = {
    "step": build_plain,
    "parallel": _parallel,
    "conditional": _conditional,
    "loop": _loop,
    "map": build_kind,
    "hitl": build_kind,
    "cache": build_kind,
    "agree": _agree,
    "ensemble": _ensemble,
}


def add_kind(kind: blocks.Kind) -> None:
    """Let blueprints have one more kind of step."""
    blocks.KINDS[kind.word] = kind
    blocks.BLOCKS[kind.word] = kind.block
    _BUILDERS[kind.word] = build_kind
