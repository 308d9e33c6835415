"""Wrappers that models put around an answer: `{"result": …}`, a tool call written as text, the schema's own frame."""

from __future__ import annotations

from typing import Final

from flujo_aros.contract.schema import Shape, fold
from flujo_aros.reading.node import ARRAY, OBJECT, STRING, Member, Node

_CALL: Final = frozenset(
    {"name", "arguments", "args", "parameters", "params", "input", "id", "type", "function", "tool", "tool_name"}
)
_PAYLOAD: Final = ("arguments", "parameters", "args", "params", "input", "function")
_SCHEMA_WORDS: Final = frozenset(
    {
        "$schema",
        "$defs",
        "$id",
        "title",
        "type",
        "properties",
        "required",
        "description",
        "additionalProperties",
        "definitions",
    }
)
WRAPPING: Final = _CALL | _SCHEMA_WORDS
"""Keys that an object around the answer may have."""
_TYPES: Final = frozenset({"string", "integer", "number", "boolean", "object", "array", "null"})


def inner_of(node: Node, shape: Shape) -> Node | None:
    """The node inside an envelope, or None where `node` is no envelope for this shape (or already fits it)."""
    members: list[Member] = node.value
    written = {member.key for member in members}
    known = sum(1 for key in written if key in shape.keys or fold(key) in shape.folded)
    if not members or (known and (known == len(written) or not shape.required)):
        return None
    if shape.required and shape.required <= {shape.keys.get(k) or shape.folded.get(fold(k)) for k in written}:
        return None
    if "properties" in written and written <= _SCHEMA_WORDS and "properties" not in shape.keys:
        frame = next(member.node for member in members if member.key == "properties")
        return frame if frame.kind == OBJECT and not is_schema(node) else None
    if written <= _CALL:
        for name in _PAYLOAD:
            found = next((member.node for member in members if member.key == name), None)
            if found is not None and (found.kind == OBJECT or _holds_json(found)):
                return _deeper(found, shape)
    if len(members) == 1 and (members[0].node.kind in (OBJECT, ARRAY) or _holds_json(members[0].node)):
        return _deeper(members[0].node, shape)
    return None


def payload_of(node: Node, shape: Shape) -> Node | None:
    """The list or scalar inside an envelope around no object: its only member, or what a call takes."""
    members: list[Member] = node.value
    if len(members) == 1:
        return None if members[0].node.kind == OBJECT else members[0].node
    if shape.allows("array") and {member.key for member in members} <= _CALL:
        named = {member.key: member.node for member in members}
        found = next((named[name] for name in _PAYLOAD if name in named), None)
        return found if found is not None and found.kind == ARRAY else None
    return None


def _deeper(node: Node, shape: Shape) -> Node:
    if node.kind == OBJECT:
        return inner_of(node, shape) or node
    if node.kind == ARRAY and len(node.value) == 1 and node.value[0].kind == OBJECT and not shape.allows("array"):
        return _deeper(node.value[0], shape)
    return node


def _holds_json(node: Node) -> bool:
    return node.kind == STRING and node.value.lstrip()[:1] in ("{", "[")


def is_schema(node: Node) -> bool:
    """Whether an object is a JSON Schema rather than data: its `properties` are schemas themselves."""
    if node.kind != OBJECT:
        return False
    members: dict[str, Node] = {member.key: member.node for member in node.value}
    frame = members.get("properties")
    if frame is None or frame.kind != OBJECT:
        return "$schema" in members or "$ref" in members
    inner: list[Member] = frame.value
    return bool(inner) and all(_is_subschema(member.node) for member in inner)


def _is_subschema(node: Node) -> bool:
    if node.kind != OBJECT:
        return False
    members: dict[str, Node] = {member.key: member.node for member in node.value}
    kind = members.get("type")
    if kind is not None:
        named = kind.value if kind.kind == STRING else None
        return named in _TYPES or kind.kind == ARRAY
    return any(key in members for key in ("$ref", "anyOf", "oneOf", "allOf", "enum", "const", "items"))
