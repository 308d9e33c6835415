"""How providers treat a JSON Schema: the keywords that they drop, and the limits beyond which they reject it.

Where possible this is computed instead of kept in a table: the transformer of the model's installed profile is run with
and without a keyword, and the keyword is lost if that makes no difference. The grammar compiler of llama.cpp runs
inside its server, so its behaviour is reproduced here node by node; the tests compare the result with the server
itself.
"""

from __future__ import annotations

import copy
import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from flujo_aros.contract import JsonSchema
from flujo_aros.host import ENVELOPE, object_schema
from flujo_aros.json_data import (
    References,
    inner_schemas,
    is_dict,
    is_list,
    schemas_in,
    value_at,
    with_schemas_changed,
)

if TYPE_CHECKING:  # pydantic-ai takes a second to import, and only the profiles of its providers need it
    from pydantic_ai.profiles import JsonSchemaTransformer, ModelProfile

Path: TypeAlias = tuple[str | int, ...]


class Loss(NamedTuple):
    """One keyword of a schema that a provider does not enforce. `path` leads to the schema with the keyword, as keys
    and indexes. `dropped` means that it is not sent, `rejected` that it makes the call fail, and `unenforced` that it
    keeps the provider from enforcing the schema.
    """

    path: Path
    keyword: str
    effect: Literal["dropped", "rejected", "unenforced"]


_TYPES: Final = ("object", "array", "string", "integer", "number", "boolean", "null")
ANNOTATIONS: Final = frozenset(
    [
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
    ]
)
_STRUCTURE: Final = frozenset(("type", "$defs", "definitions"))
_FORMATS: Final = ("date", "time", "date-time", "uuid")
_MAX_REPEATED: Final = 2000
# Syntax that its translation of regular expressions does not support.
_HARD: Final = re.compile(r"\(\?[=!<]|\\[bB1-9pPk]")
_KINDS: Final = {
    "object": frozenset(("properties", "required", "additionalProperties")),
    "array": frozenset(("items", "prefixItems", "minItems", "maxItems")),
    "integer": frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")),
}


def grammar_losses(schema: JsonSchema) -> Iterator[Loss]:
    """Yield every keyword of a schema that the grammar does not enforce.

    >>> list(grammar_losses({"type": "number", "minimum": 0}))
    [Loss(path=(), keyword='minimum', effect='dropped')]
    """
    yield from _losses(schema, (), schema)


def _losses(node: object, path: Path, root: JsonSchema) -> Iterator[Loss]:
    if not is_dict(node):
        yield Loss(path, "", "rejected")  # `true` or `false` in place of a schema
        return
    refused = _fatal_keyword(node, root)
    if refused is not None:
        yield Loss(path, refused, "rejected")
        return
    enforced = _effective_keywords(node)
    for word in node:
        if word not in ANNOTATIONS and word not in _STRUCTURE and word not in enforced:
            yield Loss(path, word, "dropped")
    followed = {*enforced, "$defs", "definitions", *(("items",) if "prefixItems" in enforced else ())}
    for place, inner in inner_schemas(node):
        if place[0] in followed and (is_dict(inner) or place[0] != "additionalProperties"):
            yield from _losses(inner, (*path, *place), root)


def _fatal_keyword(node: JsonSchema, root: JsonSchema) -> str | None:
    """Return the keyword that makes a grammar impossible."""
    reference = node.get("$ref")
    if isinstance(reference, str):
        return None if _resolves(reference, root) else "$ref"
    if any(word in node and not node[word] for word in ("anyOf", "oneOf", "enum")):
        return next(word for word in ("anyOf", "oneOf", "enum") if word in node and not node[word])
    kinds: object = node.get("type", "object")
    if any(kind not in _TYPES for kind in (kinds if is_list(kinds) else [kinds])):
        return "type"
    counts = ((word, node.get(word)) for word in ("minLength", "minItems"))
    return next((word for word, count in counts if isinstance(count, int) and count > _MAX_REPEATED), None)


def _effective_keywords(node: JsonSchema) -> frozenset[str]:
    """Return the effective keywords: those of the first kind of schema that fits."""
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
        pattern = node["pattern"]
        whole = isinstance(pattern, str) and pattern.startswith("^") and pattern.endswith("$")
        return frozenset(("pattern",) if whole and not _HARD.search(pattern) else ())
    if kind in (None, "string") and node.get("format") in _FORMATS:
        return frozenset(("format",))
    if kind == "string":
        return frozenset(("minLength", "maxLength"))
    return _KINDS["integer"] if kind == "integer" else frozenset()


def _objects_only(node: JsonSchema) -> bool:
    parts: list[Any] = node.get("allOf") or []
    return bool(parts) and all(is_dict(part) and ("properties" in part or "$ref" in part) for part in parts)


def _resolves(reference: str, root: JsonSchema) -> bool:
    """Return whether llama.cpp resolves the reference: it supports pointers but not anchors."""
    is_pointer = reference == "#" or reference.startswith("#/")
    return is_pointer and References(root).resolve(reference) is not None


# As published by the providers in 2026. Anthropic and Google also reject schemas that compile to
# too large a grammar or too many states, but publish no figure for it: that is only known at the first call.
_LIMITS: Final[Mapping[str, Mapping[str, int]]] = {
    "openai": {"properties": 5000, "levels of objects": 10, "choices of enums": 1000, "characters in names": 120_000},
    "azure": {"properties": 100, "levels of objects": 5},
    "anthropic": {"optional properties": 24, "properties of more than one type": 16},
}
_FAMILIES: Final = {"openai-chat": "openai", "openai-responses": "openai"}


class TooMuch(NamedTuple):
    """A limit of a provider that a schema exceeds: `found` of `what`, where `most` are allowed."""

    provider: str
    what: str
    found: int
    most: int


def exceeded_limits(model: str, schema: JsonSchema) -> tuple[TooMuch, ...]:
    """Return the published limits of a model's provider that a schema exceeds, or an empty tuple if there are none.

    >>> wide = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(30)}}
    >>> exceeded_limits("anthropic:claude-sonnet-4-5", wide)
    (TooMuch(provider='anthropic', what='optional properties', found=30, most=24),)
    """
    provider = model.partition(":")[0]
    limits = _LIMITS.get(_FAMILIES.get(provider, provider), {})
    counts = _counts(schema) if limits else {}
    return tuple(TooMuch(provider, what, counts[what], most) for what, most in limits.items() if counts[what] > most)


def _counts(schema: JsonSchema) -> dict[str, int]:
    """Return the contents of a schema, counted by the names of the limits. Each definition counts once."""
    references, names = References(schema), set[str]()
    nodes: list[JsonSchema] = []
    waiting: list[object] = [schema]
    while waiting:
        node = waiting.pop()
        if is_dict(node):
            nodes.append(node)
            waiting += _asked_of(node)
            name = node.get("$ref")
            if isinstance(name, str) and name.startswith("#/") and name not in names:
                names.add(name)
                waiting.append(references.resolve(name))
    properties = [
        (name, member, name in (node.get("required") or ()))
        for node in nodes
        for name, member in (node["properties"].items() if is_dict(node.get("properties")) else ())
    ]
    choices = [choice for node in nodes if is_list(node.get("enum")) for choice in node["enum"]]
    named = [name.rpartition("/")[2] for name in names] + [name for name, _, _ in properties]
    constants = [node["const"] for node in nodes if "const" in node]
    return {
        "properties": len(properties),
        "levels of objects": _levels(schema, references, {}),
        "choices of enums": len(choices),
        "characters in names": sum(len(str(each)) for each in (*named, *choices, *constants)),
        "optional properties": sum(not required for _, _, required in properties),
        "properties of more than one type": sum(
            is_dict(member) and ("anyOf" in member or "oneOf" in member or is_list(member.get("type")))
            for _, member, _ in properties
        ),
    }


def _levels(node: object, references: References, known: dict[str, int]) -> int:
    """Return the number of levels of objects in a schema. A definition that contains itself adds no further ones."""
    if not is_dict(node):
        return 0
    name = node.get("$ref")
    if isinstance(name, str) and name.startswith("#/") and name not in known:
        known[name] = 0
        known[name] = _levels(references.resolve(name), references, known)
    inner = max((_levels(part, references, known) for part in _asked_of(node, "properties")), default=0)
    beside = max((_levels(part, references, known) for part in _asked_of(node, *_VALUES)), default=0)
    return max(known.get(str(name), 0), beside, inner + 1 if is_dict(node.get("properties")) else 0)


_VALUES: Final = ("items", "additionalProperties", "anyOf", "oneOf", "allOf", "prefixItems")


def _asked_of(node: JsonSchema, *words: str) -> list[object]:
    """Return the schemas of the values that a model writes: those under these keywords, by default all of them."""
    return [inner for place, inner in inner_schemas(node) if place[0] in (words or ("properties", *_VALUES))]


_STRUCTURAL: Final = frozenset(
    ("type", "properties", "items", "$ref", "$defs", "definitions", "enum", "const", "anyOf", "allOf", "required")
)


def enforces_schemas(model: str) -> bool | None:
    """Return whether the provider of a model can enforce a schema, or None if its profile is not installed."""
    if model.startswith("local:"):
        return True
    profile = _profile(model)
    return None if profile is None else bool(profile.get("supports_json_schema_output"))


def schema_losses(model: str, schema: JsonSchema) -> tuple[Loss, ...]:
    """Return the parts of a schema that the provider of this model does not enforce in its schema mode, or an empty
    tuple if unknown.

    >>> schema_losses("openai:gpt-4o", {"type": "object", "properties": {}, "minProperties": 1})[0].keyword
    'minProperties'
    """
    return _provider_losses(model, json.dumps(schema, sort_keys=False))


@lru_cache(maxsize=256)
def _provider_losses(model: str, written: str) -> tuple[Loss, ...]:
    schema = object_schema(json.loads(written))
    enveloped = schema.get("properties", {}).keys() == {ENVELOPE} and ENVELOPE not in written
    if "$ref" in written and _is_asked_in_words(schema):
        return (Loss((), "$ref", "unenforced"),)
    if model.startswith("local:"):
        found = list(grammar_losses(schema))
    else:
        profile = _profile(model)
        transformer = profile.get("json_schema_transformer") if profile else None
        # as pydantic-ai does when it requests native output from Anthropic
        strict = True if model.startswith("anthropic:") else None
        found = list(_transformed_losses(transformer, schema, strict=strict)) if transformer else []
    inside = ("properties", ENVELOPE)
    return tuple(each._replace(path=each.path[2:]) if enveloped and each.path[:2] == inside else each for each in found)


def _is_asked_in_words(schema: JsonSchema) -> bool:
    """Return whether pydantic-ai puts a schema into the prompt because it is recursive."""
    from pydantic_ai import StructuredDict
    from pydantic_ai.exceptions import UserError

    try:
        StructuredDict(copy.deepcopy(schema))
    except UserError:
        return True
    return False


@lru_cache(maxsize=64)
def _profile(model: str) -> ModelProfile | None:
    provider, colon, name = model.partition(":")
    if not colon:
        return None
    from pydantic_ai.profiles.anthropic import anthropic_model_profile
    from pydantic_ai.profiles.google import google_model_profile
    from pydantic_ai.providers import infer_provider_class

    try:
        return infer_provider_class(provider).model_profile(name)
    except ValueError:  # no such provider
        return None
    except ImportError:  # the provider's own package is not installed; these profiles do not need it
        if provider == "anthropic":
            return anthropic_model_profile(name)
        return google_model_profile(name) if provider.startswith("google") else None


def _transformed_losses(
    transformer: type[JsonSchemaTransformer], schema: JsonSchema, *, strict: bool | None
) -> Iterator[Loss]:
    def compatible(changed: JsonSchema) -> bool | None:
        return _walk(transformer, changed, strict=strict)[1]

    sent, enforced = _walk(transformer, schema, strict=strict)
    if sent is None:
        yield Loss((), "", "rejected")
        return
    if not enforced:
        yield from _hindrances(schema, compatible)
        return
    for path, word, node in _words(schema):
        kept = value_at(sent, (*path, word)) == _bare({word: node[word]})[word]
        if not kept and _walk(transformer, _without_annotation(schema, path, word), strict=strict)[0] == sent:
            yield Loss(path, word, "dropped")


def _walk(
    transformer: type[JsonSchemaTransformer], schema: JsonSchema, *, strict: bool | None
) -> tuple[JsonSchema | None, bool]:
    """Return the schema that is sent, without annotations, and whether the provider enforces it."""
    from pydantic_ai.exceptions import UserError

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            walker = transformer(copy.deepcopy(schema), strict=strict)
            sent = walker.walk()
        except UserError:
            return None, False
    return _bare(sent), walker.is_strict_compatible


def _hindrances(schema: JsonSchema, compatible: Callable[[JsonSchema], bool | None]) -> Iterator[Loss]:
    """Yield the keywords that prevent enforcement of a schema: each does so on its own, when added to the bare
    structure.
    """
    skeleton = _skeleton(schema)
    if not compatible(skeleton):
        yield Loss((), "", "unenforced")
        return
    for path, node in schemas_in(schema):
        for word in node:
            if word in ANNOTATIONS - {"default"} or (word in _STRUCTURAL and word != "required"):
                continue
            if not compatible(_with_keyword(skeleton, path, word, node[word])):
                yield Loss(path, word, "unenforced")
        if (
            node.get("properties")
            and "required" not in node
            and not compatible(_with_keyword(skeleton, path, "required", []))
        ):
            yield Loss(path, "required", "unenforced")


def _words(schema: JsonSchema) -> Iterator[tuple[Path, str, JsonSchema]]:
    """Yield every constraining keyword, its schema and the path to it."""
    for path, node in schemas_in(schema):
        for word in node:
            if word not in ANNOTATIONS and word not in ("type", "properties", "$ref", "$defs", "definitions", "items"):
                yield path, word, node


def _skeleton(schema: Any) -> Any:
    """Return the same structure with nothing optional and no constraint except types."""

    def bare(node: JsonSchema) -> JsonSchema:
        kept = {word: value for word, value in node.items() if word in _STRUCTURAL and word != "required"}
        kept |= {"anyOf": node["oneOf"]} if "oneOf" in node else {}
        return kept | ({"required": list(kept["properties"])} if "properties" in kept else {})

    return with_schemas_changed(schema, bare)


def _with_keyword(skeleton: JsonSchema, path: Path, word: str, value: Any) -> JsonSchema:
    """Return the skeleton with this keyword at its location, which the skeleton may not have."""
    changed = copy.deepcopy(skeleton)
    node = value_at(changed, tuple("anyOf" if part == "oneOf" else part for part in path))
    if is_dict(node):
        if word == "oneOf":
            node.pop("anyOf", None)
        node[word] = copy.deepcopy(value)
    return changed


def _without_annotation(schema: JsonSchema, path: Path, word: str) -> JsonSchema:
    changed = copy.deepcopy(schema)
    del value_at(changed, path)[word]
    return changed


def _bare(schema: Any) -> Any:
    """Return a schema without annotation keywords; properties with these names are kept."""
    return with_schemas_changed(
        schema, lambda node: {word: value for word, value in node.items() if word not in ANNOTATIONS}
    )
