"""Translates the dialect of flujo: its names for kinds and keys, their old places, and the short forms of loops and
maps.

Everything after this file uses a single language, that of `blocks`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from flujo_aros.blueprint import blocks
from flujo_aros.blueprint.document import Node
from flujo_aros.blueprint.loading import Loading, member
from flujo_aros.blueprint.references import Making, as_template
from flujo_aros.errors import Hint, Suggestion
from flujo_aros.pipeline.control import StateUpdate
from flujo_aros.pipeline.model import STEP_NAME
from flujo_aros.pipeline.template import InputLike
from flujo_aros.spelling import nearest

_HAND_ON: Final = "flujo.builtins.passthrough"
_APPEND: Final = "flujo.builtins.append"
_OUTPUTS: Final = ("output", "output_template")
_TALK: Final = "conversation_history"
_WORDS: Final = {"initial_prompt": "{{ context.initial_prompt }}"}
_CHANGES: Final = ("set", "append", "merge")
_NEXT_INPUT: Final = "auto"


REFUSED: Final[Mapping[str, str]] = {
    "StateMachine": "write a `loop` whose body is a `conditional` on the name of the state",
    "tree_search": "write a `loop` over a `map` of proposals, judged by a step",
    "agentic_loop": "write a `loop` with an agent step and `exit_expression`",
    "dynamic_router": "write an agent step that names the branch, and a `conditional` on its value",
    "granular": "write a `loop`",
    "granular_step": "write a `loop`",
}
"""Kinds of flujo that are not supported, with an alternative for each."""


def _kind(meant: str, words: str = "") -> Hint:
    return Hint(f"; {words or f'write `kind: {meant}`'}", Suggestion("", meant, sure=True))


_CALLED: Final = "leave `kind` out and write `uses: package.module:function`"
_ASKED: Final = "leave `kind` out and write `uses: agents.NAME`"
OTHER_KINDS: Final[Mapping[str, Hint]] = {
    **dict.fromkeys(("python", "function", "callable", "code", "tool"), _kind("step", _CALLED)),
    **dict.fromkeys(("agent", "llm", "model", "prompt"), _kind("step", _ASKED)),
    **dict.fromkeys(("human", "approval", "input", "pause"), _kind("hitl")),
    **dict.fromkeys(("if", "branch", "switch", "router"), _kind("conditional")),
    **dict.fromkeys(("for", "foreach", "for_each", "each"), _kind("map")),
    **dict.fromkeys(("while", "repeat", "until"), _kind("loop")),
    **dict.fromkeys(
        ("import", "pipeline", "subpipeline"), _kind("step", "leave `kind` out and write `uses: imports.ALIAS`")
    ),
}
"""Names of kinds in other tools, and what to write instead."""


_NO_NAME: Final = re.compile(r"[/{}\"'\s]+")
_PRECHECK_KEYS: Final = (
    *("validator_agent", "agent", "delimiters", "goal_context_key", "score_threshold", "inject_feedback", "max_tokens"),
    *("retry_guidance_prefix", "context_feedback_key", "consensus_agent", "consensus_samples", "consensus_threshold"),
)
META_KEYS: Final = ("processing", "mergeable_output")
"""The keys that flujo accepts under `meta` and that belong to the step itself here."""


def with_meta(loading: Loading, node: Node, kind: str) -> Node:
    """A step with the keys that flujo accepts under `meta` moved into the step itself."""
    if "meta" not in node.members:
        return node
    meta = member(node, "meta")
    for key in META_KEYS if kind == "step" else META_KEYS[1:]:
        value = member(node, "meta", key)
        if meta is None or value is None:
            continue
        if key in node.members:
            loading.warn(meta.keys[key], f"'meta.{key}' is ignored: the step has a `{key}` of its own")
            continue
        keys = {**node.keys, key: meta.keys[key]}
        node = Node(node.place, node.end, {**node.members, key: value}, keys)
    return node


def prepared(loading: Loading, node: Node, kind: str) -> dict[str, Any]:
    """The mapping of a step, with old names of keys replaced by current ones."""
    plain: dict[str, Any] = node.plain()
    if "step" in plain and "name" not in plain:
        plain["name"] = plain.pop("step")
    if loading.lenient:
        _filled_in(loading, node, kind, plain)
    precheck = member(node, "processing", "reasoning_precheck") if "processing" in plain else None
    for key, place in precheck.keys.items() if precheck is not None else ():
        if key in _PRECHECK_KEYS:
            why = "plans are not evaluated; evaluate it in a separate step"
            loading.warn(place, f"{key!r} is ignored: {why}")
            del plain["processing"]["reasoning_precheck"][key]
    return plain


def _filled_in(loading: Loading, node: Node, kind: str, plain: dict[str, Any]) -> None:
    """A valid name, and a default message, for lenient loading."""
    name = plain.get("name")
    if isinstance(name, str) and not STEP_NAME.fullmatch(name):
        plain["name"] = " ".join(_NO_NAME.sub(" ", name).split()) or "step"
        loading.warn(node.place, f"not a valid step name: {name!r}; it is called {plain['name']!r} here")
    if kind == "hitl" and not plain.get("message"):
        plain["message"] = str(plain.get("name"))
        loading.warn(node.place, f"step {name!r} has no question; write a `message`")


def no_such_kind(kind: str) -> Hint:
    """The error for an unknown kind of step, with what to write instead; "" is a key without a value."""
    if not kind:
        return Hint(
            f"`kind` is empty; write one of {', '.join(sorted(blocks.BLOCKS))}, or leave it out for a plain step"
        )
    if kind in REFUSED:
        return Hint(f"`kind: {kind}` is not supported; {REFUSED[kind]}")
    meant = OTHER_KINDS.get(kind.lower())
    near = nearest(kind, blocks.BLOCKS, closed=True) if meant is None else meant.of(kind)
    return near.after(f"unknown kind of step {kind!r}")


def operation_nodes(making: Making, node: Node) -> Node:
    """The steps under `init:` or `finalize:`, including those that a short form expands to.

    `- set: context.note` with a `value` is a step that writes the value there; `output: …` is a step with that value.
    """
    if "history" in node.members:
        making.loading.warn(node.keys["history"], "'history' is ignored: a conversation begins with the first `input`")
        return node.like([])
    if not node.elements:
        steps = _short(making, node, 1)
        return node if steps is None else node.like(steps)
    made: list[Node] = []
    for number, each in enumerate(node.elements, start=1):
        steps = None if "name" in each.members else _short(making, each, number)
        made += [each] if steps is None else steps
    return node.like(made)


def _short(making: Making, node: Node, number: int) -> list[Node] | None:
    """The steps that a short form expands to; None for anything else."""
    output = next((node.members[key] for key in _OUTPUTS if key in node.members), None)
    if output is not None:
        return [_step(node, "output", output)]
    if any(key in node.members for key in _CHANGES):
        return list(_changed(making, node, number))
    return None


def state_updates(making: Making, node: Node | None) -> tuple[StateUpdate, ...]:
    """The changes to the context after each iteration: `state: {set: […], append: […], merge: […]}`."""
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


def output_of(making: Making, node: Node) -> InputLike | None:
    """The output of a loop: `output: {…}` or `output_template: …`."""
    template, output = node.members.get("output_template"), node.members.get("output")
    if template is not None and isinstance(template.value, str):
        return template.value
    if output is None or output.value is None:
        return None
    only = output.members if set(output.members) <= {"text", "fields"} else {}
    found = (only.get("fields") or only.get("text") or output).plain()
    if only:
        found = _without_words(making, output, found)
    if isinstance(found, (str, dict, list)):
        return cast("InputLike", found)
    making.loading.note(output.place, f"output should be a template, or an object or list of templates, not {found!r}")
    return None


def _without_words(making: Making, node: Node, output: Any) -> Any:
    """The content of `text` or `fields`, with flujo's names for values translated into templates."""
    if isinstance(output, dict):
        members = cast("dict[str, Any]", output).items()
        return {key: _without_words(making, node, value) for key, value in members}
    if output == _TALK:
        why = "conversations are not kept; `append` the turns to a list in `state` and pass that list on"
        making.loading.cannot_run(node.place, why)
    return _WORDS.get(output, output) if isinstance(output, str) else output


def next_input_of(making: Making, node: Node | None) -> str:
    """The input of the next iteration of a loop: `propagation: {next_input: auto | previous_output | context |
    TEMPLATE}`."""
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


def _changed(making: Making, node: Node, number: int) -> Iterator[Node]:
    """One step for each path that an operation changes."""
    operation = making.loading.block(blocks.Operation, node)
    if operation is None:
        return
    if operation.append is not None:
        target, value = operation.append.target.removeprefix("context."), as_template(operation.append.value)
        given = node.like({"list": f"{{{{ context.{target} or [] }}}}", "item": value})
        yield _step(node, f"append {number}", given, agent=_APPEND, sink_to=target)
    for key in ("set", "merge"):
        placed = operation.merge if key == "merge" else None
        if key == "set" and operation.set is not None:
            placed = blocks.Placed(target=operation.set, value=operation.value)
        for at, (target, value) in enumerate(_values(key, placed) if placed else ()):
            name = f"{key} {number}" if at == 0 else f"{key} {number}.{at + 1}"
            sink = target.removeprefix("context.")
            yield _step(node, name, node.like(as_template(value)), sink_to=sink)


def _values(key: str, placed: blocks.Placed) -> list[tuple[str, Any]]:
    if key == "merge" and isinstance(placed.value, dict):
        return [(f"{placed.target}.{name}", value) for name, value in placed.value.items()]
    return [(placed.target, placed.value)]


def _step(node: Node, name: str, given: Node, **more: str) -> Node:
    return node.like({"name": name, "agent": _HAND_ON, "input": given, **more})
