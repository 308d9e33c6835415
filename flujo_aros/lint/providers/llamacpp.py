"""What llama.cpp makes of a JSON Schema when it builds its grammar: which words it enforces, drops or refuses.

Its compiler runs inside the server, so here its way is followed node by node: it looks for one kind of schema after
the other and takes the first that fits; the words that belong to another kind are dropped. The tests hold this
against the server itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, Literal, TypeAlias

from flujo_aros.contract import JsonSchema
from flujo_aros.json_data import References, is_dict, is_list

GrammarLoss: TypeAlias = tuple[tuple[str | int, ...], str, Literal["dropped", "rejected"]]

_TYPES: Final = ("object", "array", "string", "integer", "number", "boolean", "null")
ANNOTATIONS: Final = frozenset(
    (
        "title",
        "description",
        "$schema",
        "$id",
        "$comment",
        "examples",
        "default",
        "deprecated",
        "discriminator",
        "x-aros",
    )
)
_STRUCTURE: Final = frozenset(("type", "$defs", "definitions"))
_FORMATS: Final = ("date", "time", "date-time", "uuid")
_MAX_REPEATED: Final = 2000
# What its translation of regular expressions has no words for.
_HARD: Final = re.compile(r"\(\?[=!<]|\\[bB1-9pPk]")
_KINDS: Final = {
    "object": frozenset(("properties", "required", "additionalProperties")),
    "array": frozenset(("items", "prefixItems", "minItems", "maxItems")),
    "integer": frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")),
}


def grammar_losses(schema: JsonSchema) -> Iterator[GrammarLoss]:
    """Every word of a schema that the grammar does not enforce.

    >>> list(grammar_losses({"type": "number", "minimum": 0}))
    [((), 'minimum', 'dropped')]
    """
    yield from _losses(schema, (), schema)


def _losses(node: object, path: tuple[str | int, ...], root: JsonSchema) -> Iterator[GrammarLoss]:
    if not is_dict(node):
        yield path, "", "rejected"  # `true` or `false` in place of a schema
        return
    refused = _refused(node, root)
    if refused is not None:
        yield path, refused, "rejected"
        return
    enforced = _enforced(node)
    for word in node:
        if word not in ANNOTATIONS and word not in _STRUCTURE and word not in enforced:
            yield path, word, "dropped"
    yield from _inner(node, path, root, enforced)


def _refused(node: JsonSchema, root: JsonSchema) -> str | None:
    """The word because of which no grammar can be made."""
    reference = node.get("$ref")
    if isinstance(reference, str):
        return None if _resolves(reference, root) else "$ref"
    if any(word in node and not node[word] for word in ("anyOf", "oneOf", "enum")):
        return next(word for word in ("anyOf", "oneOf", "enum") if word in node and not node[word])
    kinds: object = node.get("type", "object")
    if any(kind not in _TYPES for kind in (kinds if is_list(kinds) else [kinds])):
        return "type"
    return next((word for word in ("minLength", "minItems") if _above(node.get(word), _MAX_REPEATED)), None)


def _enforced(node: JsonSchema) -> frozenset[str]:
    """The words that count: those of the first kind of schema that fits."""
    first = next((word for word in ("$ref", "oneOf", "anyOf", "const", "enum") if word in node), None)
    if first is not None:
        return frozenset((first,))
    kinds: object = node.get("type")
    found = [_enforced_for(node, kind) for kind in (kinds if is_list(kinds) else [kinds])]
    return frozenset[str]().union(*found)


def _enforced_for(node: JsonSchema, kind: object) -> frozenset[str]:
    if kind in (None, "object") and ("properties" in node or node.get("additionalProperties") not in (None, True)):
        return _KINDS["object"]
    if kind == "object":
        return frozenset(("allOf", "additionalProperties") if _objects_only(node) else ("additionalProperties",))
    if kind is None and "allOf" in node:
        return frozenset(("allOf",) if _objects_only(node) else ())
    if kind in (None, "array") and ("items" in node or "prefixItems" in node):
        return _KINDS["array"] if "prefixItems" not in node else frozenset(("prefixItems",))
    if kind in (None, "string") and "pattern" in node:
        return frozenset(("pattern",) if _translatable(node["pattern"]) else ())
    if kind in (None, "string") and node.get("format") in _FORMATS:
        return frozenset(("format",))
    if kind == "string":
        return frozenset(("minLength", "maxLength"))
    return _KINDS["integer"] if kind == "integer" else frozenset()


def _inner(
    node: JsonSchema, path: tuple[str | int, ...], root: JsonSchema, enforced: frozenset[str]
) -> Iterator[GrammarLoss]:
    for word in ("properties", "$defs", "definitions"):
        for name, each in _members(node.get(word)):
            if word not in _KINDS["object"] or word in enforced:
                yield from _losses(each, (*path, word, name), root)
    for word in ("anyOf", "oneOf", "prefixItems", "allOf"):
        if word in enforced:
            for index, each in enumerate(node.get(word) or []):
                yield from _losses(each, (*path, word, index), root)
    if "items" in node and ("items" in enforced or "prefixItems" in enforced):
        yield from _losses(node["items"], (*path, "items"), root)
    if is_dict(node.get("additionalProperties")) and "additionalProperties" in enforced:
        yield from _losses(node["additionalProperties"], (*path, "additionalProperties"), root)


def _members(value: object) -> Iterator[tuple[str, Any]]:
    if is_dict(value):
        yield from value.items()


def _objects_only(node: JsonSchema) -> bool:
    parts: list[Any] = node.get("allOf") or []
    return bool(parts) and all(is_dict(part) and ("properties" in part or "$ref" in part) for part in parts)


def _translatable(pattern: object) -> bool:
    return isinstance(pattern, str) and pattern.startswith("^") and pattern.endswith("$") and not _HARD.search(pattern)


def _resolves(reference: str, root: JsonSchema) -> bool:
    """Whether llama.cpp finds it: it knows pointers, and no anchors."""
    is_pointer = reference == "#" or reference.startswith("#/")
    return is_pointer and References(root).resolve(reference) is not None


def _above(value: object, limit: int) -> bool:
    return isinstance(value, int) and value > limit
