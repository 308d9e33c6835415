"""Shared by the builders of steps: a step under construction, the values of its keys, and its references.

Agents, blueprints, built-ins and callables are checked by name here; nothing is imported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Final, Literal, cast

from flujo_aros.blueprint import blocks
from flujo_aros.blueprint.dialect import FLUJO_BUILTINS
from flujo_aros.blueprint.document import Node
from flujo_aros.blueprint.loading import Loading, member
from flujo_aros.contract import Check, Invalid, compile_schema
from flujo_aros.errors import BlueprintError, Code, Hint, Place, Problem, Suggestion, TemplateError, UsageError
from flujo_aros.host import AgentSpec
from flujo_aros.pipeline.builtins import BUILTIN_PREFIXES, BUILTINS
from flujo_aros.pipeline.condition import Expressed
from flujo_aros.pipeline.ledger import Settlement
from flujo_aros.pipeline.model import STEP_NAME, PipelineStep, StepContext, StepLimits
from flujo_aros.pipeline.modules import REFERENCE, Imported
from flujo_aros.pipeline.names import ROOTS, VARIABLES
from flujo_aros.pipeline.values import as_plain
from flujo_aros.spelling import nearest

_DOTTED: Final = re.compile(r"(?P<module>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)[.:](?P<name>_?[A-Za-z]\w*)", re.ASCII)


@dataclass(frozen=True)
class Shaped:
    """A check that a callable's value satisfies a JSON Schema, which is stored as a string."""

    schema: str

    __name__ = "output_schema"

    def __call__(self, value: Any) -> Any:
        """Return the message of the first issue, or None."""
        verdict = compile_schema(json.loads(self.schema)).validate(as_plain(value))
        return verdict.issues[0] if isinstance(verdict, Invalid) else None


@dataclass(frozen=True)
class Unready(PipelineStep):
    """A step that loads but cannot run because something is missing. Its run fails before anything starts."""

    why: str
    source: str = ""
    place: Place | None = None
    kind: str = field(default="step", init=False, repr=False)

    @property
    def problem(self) -> Problem:
        """The reason why the step cannot run, with its position."""
        return Problem(f"step {self.name!r} cannot run: {self.why}", self.place)

    def prepare(self) -> None:
        """Raise a `BlueprintError` with the line."""
        raise BlueprintError(self.source, [self.problem])

    async def run(self, context: StepContext) -> Settlement[Any]:
        """Never called, since `prepare` raises first."""
        raise UsageError(f"step {context.name!r} cannot run: {self.why}")


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a step of `kind: step`; at most one of these is set."""

    agent: AgentSpec | None = None
    alias: str | None = None
    function: str | None = None
    builtin: str | None = None
    context: Literal["set", "get"] | None = None
    """flujo's built-ins for the context: a step that passes a value on."""
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])


def target_of(loading: Loading, node: Node, who: str) -> Target | None:
    """Return the target that `uses` or `agent` of a step names, or None if it has an error or cannot run, which is
    recorded.
    """
    members = node.members
    uses, agent = members.get("uses"), members.get("agent")
    if uses is not None and uses.value is not None and agent is not None and agent.value is not None:
        loading.note(node.place, f"{who} needs either `uses` or `agent`, but not both")
        return None
    found = uses if uses is not None and uses.value is not None else agent
    if found is None or found.value is None:
        why = "it has no agent; write `uses: agents.NAME`, `agent: {model: …}` or `uses: package.module:function`"
        loading.cannot_run(node.place, why, Code.NO_AGENT)
        return None
    if isinstance(found.value, str):
        return named(loading, found, found.value, who)
    if isinstance(found.value, dict):
        return _inline_agent(loading, found, who, member(node, "name"))
    loading.note(found.place, f"`agent` should be a name or a mapping, not {found.plain()!r}")
    return None


def named(loading: Loading, node: Node, name: str, who: str) -> Target | None:
    """Return the target that a string names; its errors are recorded at this node."""
    table, dot, alias = name.partition(".")
    tables: Mapping[str, Collection[str]] = {"agent": loading.agents, "import": loading.imports}
    if dot and alias in tables.get(table, ()):
        loading.note(node.place, _sure_suggestion(name, f"{table}s.{alias}").after(f"there is no {name!r}"))
        return None
    if name.startswith(("agents.", "imports.")):
        return _listed(loading, node, table, alias)
    if name.startswith(BUILTIN_PREFIXES) or name in BUILTINS:
        return _builtin(loading, node, name)
    if table == "steps" and dot and ":" not in name and (loading.has_step(alias) or loading.lacks_module(table)):
        value = f"the value of a step is {{{{ {name}.output }}}}, for an `input`"
        loading.note(node.place, f"`uses` takes agents.NAME or package.module:name, not the step {name!r}; {value}")
        return None
    reference = callable_reference(loading, node, who)
    return None if reference is None else Target(function=reference)


def _builtin(loading: Loading, node: Node, name: str) -> Target | None:
    short = name.rpartition(".")[2]
    if short in BUILTINS:
        return Target(builtin=short)
    if short in ("context_set", "context_get"):
        return Target(builtin="passthrough", context="set" if short == "context_set" else "get")
    if short in FLUJO_BUILTINS:
        why = f"{name} is not supported; write your own function and `uses: package.module:function`"
        loading.cannot_run(node.place, why)
        return None
    loading.doubt(node.place, nearest(short, BUILTINS).after(f"unknown built-in {name!r}"))
    return None


_FILE: Final = re.compile(r"(?P<file>[^:\s]*?(?P<module>\w+)\.py):(?P<name>\w+)")
"""Matches a function given by the path of its file, which `uses` does not accept."""


def is_expression(node: Node) -> bool:
    """Return whether the value of a key for a function can only be an expression."""
    if not isinstance(node.value, str) or node.value.startswith(BUILTIN_PREFIXES) or _FILE.fullmatch(node.value):
        return isinstance(node.value, bool)
    found = _DOTTED.fullmatch(node.value)
    root = node.value.partition(".")[0]
    return root in (*ROOTS, *VARIABLES) if found is not None and ":" not in node.value else found is None


def callable_reference(loading: Loading, node: Node, who: str) -> str | None:
    """Return the `package.module:name` at this node if it may be imported. Otherwise, record the
    error and return None.
    """
    text = node.value
    path = _FILE.fullmatch(text) if isinstance(text, str) else None
    found = _DOTTED.fullmatch(text) if isinstance(text, str) and path is None else None
    if found is None:
        key = node.place.path.rpartition(".")[2].partition("[")[0]
        words = "agents.NAME or package.module:name" if key in ("uses", "agent", "id") else "package.module:name"
        hint = Hint("")
        if path is not None:
            hint = Hint(f"; write {path['module']}:{path['name']}, and allow its file: --allow {path['file']}")
        elif isinstance(text, str) and key in ("uses", "agent"):
            tables = [table for table in ("agents", "imports") if text in getattr(loading, table)]
            hint = _sure_suggestion(text, f"{tables[0]}.{text}") if len(tables) == 1 else hint
        loading.doubt(node.place, hint.after(f"`{key}` takes {words}, not {node.plain()!r}"))
        return None
    loading.permit(node.place, who, found["module"])
    return f"{found['module']}:{found['name']}"


def _sure_suggestion(written: str, meant: str) -> Hint:
    return Hint(f"; did you mean {meant}?", Suggestion(written, meant, sure=True))


def checks_of(loading: Loading, node: Node) -> tuple[Check, ...]:
    """Return the checks of a step: expressions over `output`, and functions."""
    made: list[Check] = []
    members = node.members
    for key in ("checks", "validators"):
        for each in members[key].elements if key in members else ():
            if isinstance(each.value, str) and not REFERENCE.fullmatch(each.value) and key == "checks":
                try:
                    made.append(Expressed(each.value))
                except TemplateError as error:
                    loading.note(each.place, error)
            elif isinstance(each.value, str):
                reference = callable_reference(loading, each, f"`{key}`")
                made += [] if reference is None else [Imported(reference)]
    return tuple(made)


def _listed(loading: Loading, node: Node, table: str, name: str) -> Target | None:
    """Return the agent or import with this name at the top of the blueprint."""
    known: Collection[str] = loading.agents if table == "agents" else loading.imports
    if name not in known:
        cure = "describe it" if table == "agents" else "name the file"
        hint = nearest(name, known) or Hint(f"; {cure} under `{table}:` at the top of the blueprint")
        loading.note(node.place, hint.after(f"unknown {table[:-1]} {name!r}"))
        return None
    if table == "imports":
        return Target(alias=name)
    if name in loading.hindered:
        loading.doubts.append(loading.hindered[name])
    return Target(agent=loading.agents[name] or NO_AGENT)


def _inline_agent(loading: Loading, node: Node, who: str, step: Node | None) -> Target | None:
    """Return an inline agent, named after its step, or `{id, params}` or `{path, params}`."""
    named_by = next((key for key in ("id", "path") if key in node.members), None)
    if named_by is None or "model" in node.members:
        name = step.value if step is not None and isinstance(step.value, str) else ""
        return Target(agent=loading.agent(node, name) or NO_AGENT)
    block = loading.block(blocks.Skill, node)
    text = node.members[named_by]
    if block is None:
        return None
    if not isinstance(text.value, str):
        loading.note(text.place, f"`{named_by}` should be a name, not {text.plain()!r}")
        return None
    prefixed = text.value.startswith(("agents.", "imports.", *BUILTIN_PREFIXES))
    if not (prefixed or text.value in BUILTINS or _DOTTED.fullmatch(text.value)):
        loading.cannot_run(text.place, nearest(text.value, BUILTINS).after(f"there is no {text.value!r} here"))
        return None
    target = named(loading, text, text.value, who)
    return None if target is None else replace(target, params=block.params)


NO_AGENT: Final = AgentSpec(model="local:none")
"""A placeholder for an agent with errors, so that the rest of its step is still checked. Never runs."""


@dataclass(frozen=True, slots=True)
class Where:
    """The position of a step in the file, and its name in the run ledger."""

    path: str
    name: str
    before: tuple[str, ...] = ()
    """The names of earlier and outer steps, to which templates may refer."""
    conversation: bool = False
    """Whether an enclosing loop continues the conversation of its agents."""

    def body(self, key: str, scope: str = "") -> Where:
        """Return the position of a body under this key, whose steps are named after this scope."""
        return replace(self, path=f"{self.path}.{key}", name=f"{self.name}/{scope}" if scope else self.name)


@dataclass(frozen=True, slots=True)
class Making:
    """A step under construction. `common` are the options that every kind has, as keyword arguments."""

    loading: Loading
    node: Node
    where: Where
    common: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def member(self, *keys: str) -> Node | None:
        """Return the node under these nested keys."""
        value = self.node.value
        return member(self.node, *keys) if isinstance(value, dict) and keys[0] in value else None

    def function(self, node: Node | None, key: str) -> str | None:
        """Return the function that this key names: a built-in, or one that may be imported. Returns None without the
        key, and after recording an error.
        """
        name = None if node is None else node.value
        if node is None or name is None:
            return None
        if not isinstance(name, str) or not name.startswith(BUILTIN_PREFIXES):
            return callable_reference(self.loading, node, f"`{key}`")
        short = name.rpartition(".")[2]
        found = BUILTINS.get(short)
        if found is not None:
            return f"{found.__module__}:{short}"
        self.loading.doubt(node.place, nearest(short, BUILTINS).after(f"unknown built-in function {name!r}"))
        return None


def name_of(node: Node, index: int) -> str:
    """Return the name of a step, even if it could not be built, so that others can still refer to it."""
    found = member(node, "name") or member(node, "step")
    name = found.value if found is not None else None
    return name if isinstance(name, str) and STEP_NAME.fullmatch(name) else f"step {index + 1}"


def place_of(node: Node, key: str, suggestion: Suggestion | None = None) -> Place:
    """Return the position of an error about this key: its value, the name of the step, or the step itself; for a
    misspelt parameter, the parameter.

    A key with dots, such as `input.lines.0`, refers to something inside the value.
    """
    key, *inside = key.split(".")
    paths = ((key,), ("loop", key), ("map", key), ("config", key), ("processing", key), *_OTHER_WORDS.get(key, ()))
    found = (member(node, *path) for path in (*paths, ("name",), ("step",)))
    outer = next((each for each in found if each is not None), node)
    misspelt = key == "params" and suggestion is not None and inside == [suggestion.written]
    return (outer.key_at if misspelt else outer.at)([int(part) if part.isdecimal() else part for part in inside])


_OTHER_WORDS: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "condition": (("condition_expression",),),
    "exit": (("loop", "exit_expression"), ("loop", "exit_condition")),
    "next_input": (("loop", "propagation"),),
    "params": (("agent", "params"), ("uses",)),
    "retries": (("config", "max_retries"),),
    "stop_on": (("stop",),),
    "pipeline": (("uses",),),
}


def limits(block: blocks.Limits) -> StepLimits:
    """Return the limits of a step, in either spelling."""
    cost = block.total_cost_usd_limit if block.max_cost is None else block.max_cost
    tokens = block.total_tokens_limit if block.max_tokens is None else block.max_tokens
    return StepLimits(block.max_requests, tokens, None if cost is None else Decimal(str(cost)))


def set_values(block: blocks.Block, *keys: str) -> dict[str, Any]:
    """Return the values of a block under these keys, if they are set."""
    return {key: value for key in keys if (value := getattr(block, key)) is not None}


def as_template(value: Any) -> Any:
    """Return a plain value as an input: numbers, booleans and null are put into a template."""
    return cast("Any", value) if isinstance(value, (str, dict, list)) else f"{{{{ {template_literal(value)} }}}}"


def template_literal(value: Any) -> str:
    """Return a plain value as it is written in a template."""
    return "none" if value is None else json.dumps(value)
