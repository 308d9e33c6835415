"""What the builders of all kinds share: a step in the making, its options, and which key a complaint is about."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, cast

from flujo_aros.blueprint import blocks
from flujo_aros.blueprint.document import Node
from flujo_aros.blueprint.loading import Loading, member
from flujo_aros.blueprint.references import function_reference
from flujo_aros.pipeline.model import STEP_NAME, StepLimits


@dataclass(frozen=True, slots=True)
class Where:
    """Where a step stands in the file, and what it is called in the run ledger."""

    path: str
    name: str
    before: tuple[str, ...] = ()
    """The names of the steps that come before it, those around it too: templates may speak of them."""
    conversation: bool = False
    """Whether a loop around it wants its agents to go on with their conversation."""

    def at(self, path: str, name: str | None = None) -> Where:
        """Another place with the same names before it."""
        return Where(path, self.name if name is None else name, self.before, self.conversation)

    def body(self, key: str, scope: str = "") -> Where:
        """The place of a body under this key, whose steps are named after this scope."""
        return self.at(f"{self.path}.{key}", f"{self.name}/{scope}" if scope else self.name)


@dataclass(frozen=True, slots=True)
class Making:
    """A step in the making. `common` are the options that every kind has, as keyword arguments."""

    loading: Loading
    node: Node
    where: Where
    common: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def member(self, *keys: str) -> Node | None:
        """What stands under these keys, one in the other."""
        value = self.node.value
        return member(self.node, *keys) if isinstance(value, dict) and keys[0] in value else None

    def function(self, node: Node | None, key: str) -> str | None:
        """The function that this key names, allowed to be imported; None with the mistake noted, or without one."""
        if node is None or node.value is None:
            return None
        return function_reference(self.loading, node, f"`{key}`")

    def expression(self, node: Node | None, key: str) -> str | None:
        """The expression under this key; None with the mistake noted, or without one."""
        if node is None or node.value is None:
            return None
        if isinstance(node.value, bool):
            return str(node.value).lower()
        if isinstance(node.value, str):
            return node.value
        self.loading.note(node.place, f"`{key}` should be an expression, not {node.plain()!r}")
        return None

    def without_input(self) -> None:
        """Warn of an `input` where it has no effect."""
        if "input" in self.node.members:
            self.loading.warn(self.node.keys["input"], "`input` has no effect here; a body sees what came before")


def name_of(node: Node, index: int) -> str:
    """The name of a step, also of one that could not be built, so that others may still speak of it."""
    found = member(node, "name") or member(node, "step")
    name = found.value if found is not None else None
    return name if isinstance(name, str) and STEP_NAME.fullmatch(name) else f"step {index + 1}"


def key_node(node: Node, key: str) -> Node:
    """What a complaint about this key is about: its value, or the name of the step, or the step itself.

    A key with dots, such as `input.lines.0`, is that of something inside the value.
    """
    key, *inside = key.split(".")
    paths = ((key,), ("loop", key), ("map", key), ("config", key), ("processing", key), *_OTHER_WORDS.get(key, ()))
    found = (member(node, *path) for path in (*paths, ("name",), ("step",)))
    outer = next((each for each in found if each is not None), node)
    return _inside(outer, inside)


def _inside(node: Node, parts: Sequence[str]) -> Node:
    """What stands at the end of these keys and places of a list, as far as they are there."""
    for part in parts:
        inner = node.members.get(part)
        if inner is None and part.isdecimal() and int(part) < len(node.elements):
            inner = node.elements[int(part)]
        if inner is None:
            break
        node = inner
    return node


_OTHER_WORDS: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "condition": (("condition_expression",),),
    "exit": (("loop", "exit_expression"), ("loop", "exit_condition")),
    "next_input": (("loop", "propagation"),),
    "retries": (("config", "max_retries"),),
    "pipeline": (("uses",),),
}


def limits(block: blocks.Limits) -> StepLimits:
    """The limits of a step, in either spelling."""
    cost = block.total_cost_usd_limit if block.max_cost is None else block.max_cost
    tokens = block.total_tokens_limit if block.max_tokens is None else block.max_tokens
    return StepLimits(block.max_requests, tokens, None if cost is None else Decimal(str(cost)))


def said(block: blocks.Block, *keys: str) -> dict[str, Any]:
    """What a block says under these keys, as far as it says something."""
    return {key: value for key in keys if (value := getattr(block, key)) is not None}


def as_template(value: Any) -> Any:
    """A plain value as an input: numbers, truth and null stand in a template."""
    if isinstance(value, (str, dict, list)):
        return cast("Any", value)
    return "{{ " + {"null": "none"}.get(json.dumps(value), json.dumps(value)) + " }}"
