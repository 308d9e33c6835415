"""How providers change a JSON Schema before they enforce it: the keywords that they drop, and the limits beyond which
they reject it.

Where the answer can be computed, no table is kept: the transformer of the model's own profile, as installed, is run
with and without a keyword, and the keyword is lost if that makes no difference. The grammar compiler of llama.cpp
runs inside its server, so here its way is followed node by node; the tests hold this against the server itself.
"""

from __future__ import annotations

import copy
import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from flujo_aros.contract import JsonSchema
from flujo_aros.host import ENVELOPE, object_schema
from flujo_aros.json_data import SCHEMAS_BY_NAME, References, is_dict, is_list

if TYPE_CHECKING:  # pydantic-ai takes a second to import, and only the profiles of its providers need it
    from pydantic_ai.profiles import JsonSchemaTransformer, ModelProfile

GrammarLoss: TypeAlias = tuple[tuple[str | int, ...], str, Literal["dropped", "rejected"]]

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
# What its translation of regular expressions has no words for.
_HARD: Final = re.compile(r"\(\?[=!<]|\\[bB1-9pPk]")
_KINDS: Final = {
    "object": frozenset(("properties", "required", "additionalProperties")),
    "array": frozenset(("items", "prefixItems", "minItems", "maxItems")),
    "integer": frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")),
}


def grammar_losses(schema: JsonSchema) -> Iterator[GrammarLoss]:
    """Every keyword of a schema that the grammar does not enforce.

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
    """The keyword that makes a grammar impossible."""
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
    """Whether llama.cpp resolves the reference: it supports pointers but not anchors."""
    is_pointer = reference == "#" or reference.startswith("#/")
    return is_pointer and References(root).resolve(reference) is not None


def _above(value: object, limit: int) -> bool:
    return isinstance(value, int) and value > limit


# As published by the providers in 2026. Anthropic and Google also refuse what compiles to too large a grammar or to too
# many states, and publish no figure for it: that is known at the first call only.
_LIMITS: Final[Mapping[str, Mapping[str, int]]] = {
    "openai": {"properties": 5000, "levels of objects": 10, "choices of enums": 1000, "characters in names": 120_000},
    "azure": {"properties": 100, "levels of objects": 5},
    "anthropic": {"optional properties": 24, "properties of more than one type": 16},
}
_FAMILIES: Final = {"openai-chat": "openai", "openai-responses": "openai"}


@dataclass(frozen=True, slots=True)
class TooMuch:
    """A limit of a provider that a schema exceeds: `found` of `what`, where `most` are allowed."""

    provider: str
    what: str
    found: int
    most: int


def refused_for_size(model: str, schema: JsonSchema) -> tuple[TooMuch, ...]:
    """The published limits of a model's provider that a schema exceeds; empty if there are none.

    >>> wide = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(30)}}
    >>> refused_for_size("anthropic:claude-sonnet-4-5", wide)
    (TooMuch(provider='anthropic', what='optional properties', found=30, most=24),)
    """
    provider = model.partition(":")[0]
    limits = _LIMITS.get(_FAMILIES.get(provider, provider), {})
    if not limits:
        return ()
    size = _Size(schema)
    size.measure(schema, 1)
    counts = size.counts()
    return tuple(TooMuch(provider, what, counts[what], most) for what, most in limits.items() if counts[what] > most)


@dataclass(slots=True)
class _Size:
    """The contents of a schema as counts. A definition counts once, however often it is referenced."""

    root: JsonSchema
    properties: int = 0
    optional: int = 0
    unions: int = 0
    depth: int = 0
    choices: int = 0
    characters: int = 0
    _within: set[str] = field(default_factory=set[str])
    _deepest: dict[str, int] = field(default_factory=dict[str, int])

    def counts(self) -> dict[str, int]:
        """The counts, by the words of the limits."""
        return {
            "properties": self.properties,
            "levels of objects": self.depth,
            "choices of enums": self.choices,
            "characters in names": self.characters,
            "optional properties": self.optional,
            "properties of more than one type": self.unions,
        }

    def measure(self, node: object, level: int) -> None:
        """Count a schema at this level of objects, and everything in it."""
        if not is_dict(node):
            return
        self._follow(node.get("$ref"), level)
        self._count_choices(node)
        members = node.get("properties")
        if is_dict(members):
            self.depth = max(self.depth, level)
            self._count_members(members, node.get("required"))
            for member in members.values():
                self.measure(member, level + 1)
        for inner in _parts(node):
            self.measure(inner, level)

    def _follow(self, name: Any, level: int) -> None:
        """Count the target of a reference once; again only at a greater depth, for the depth alone."""
        if not isinstance(name, str) or not name.startswith("#/") or name in self._within:
            return
        here = References(self.root).resolve(name)
        known = self._deepest.get(name)
        if known is not None and known >= level:
            return
        self._deepest[name] = level
        counted = self if known is None else _Size(self.root, _within=self._within, _deepest=self._deepest)
        self._within.add(name)
        counted.measure(here, level)
        self._within.discard(name)
        self.depth = max(self.depth, counted.depth)
        self.characters += len(name.rpartition("/")[2]) if known is None else 0

    def _count_members(self, members: Mapping[str, Any], required: object) -> None:
        needed = required if is_list(required) else []
        self.properties += len(members)
        self.optional += sum(name not in needed for name in members)
        self.unions += sum(_is_union(member) for member in members.values())
        self.characters += sum(map(len, members))

    def _count_choices(self, node: Mapping[str, Any]) -> None:
        choices = node.get("enum")
        if is_list(choices):
            self.choices += len(choices)
            self.characters += sum(len(str(choice)) for choice in choices)
        if "const" in node:
            self.characters += len(str(node["const"]))


def _parts(node: Mapping[str, Any]) -> Iterator[object]:
    for word in ("items", "additionalProperties"):
        yield node.get(word)
    for word in ("anyOf", "oneOf", "allOf", "prefixItems"):
        listed: object = node.get(word)
        yield from listed if is_list(listed) else ()


def _is_union(member: object) -> bool:
    return is_dict(member) and ("anyOf" in member or "oneOf" in member or is_list(member.get("type")))


Effect: TypeAlias = Literal["dropped", "rejected", "unenforced"]
Path: TypeAlias = tuple[str | int, ...]

_STRUCTURAL: Final = frozenset(
    ("type", "properties", "items", "$ref", "$defs", "definitions", "enum", "const", "anyOf", "allOf", "required")
)
_INNER_LISTS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_INNER_SCHEMAS: Final = ("items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else")


@dataclass(frozen=True, slots=True)
class Loss:
    """One keyword of a schema that a provider does not enforce. `path` leads to the schema with the keyword, as keys
    and indexes. `dropped`: it is not sent. `rejected`: the call fails because of it. `unenforced`: because of it the
    provider does not enforce the schema at all.
    """

    path: Path
    keyword: str
    effect: Effect


@dataclass(frozen=True, slots=True)
class SchemaMode:
    """The schema support of a model: `native` says whether its provider enforces a schema."""

    provider: str
    native: bool


def schema_mode(model: str) -> SchemaMode | None:
    """Whether a model, by name, has a native schema mode; None if its profile is not installed."""
    if model.startswith("local:"):
        return SchemaMode("llama.cpp", native=True)
    profile = _profile(model)
    if profile is None:
        return None
    return SchemaMode(model.partition(":")[0], native=bool(profile.get("supports_json_schema_output")))


def schema_losses(model: str, schema: JsonSchema) -> tuple[Loss, ...]:
    """The parts of a schema that the provider of this model does not enforce in its schema mode; empty if unknown.

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
        found = [Loss(path, word, effect) for path, word, effect in grammar_losses(schema)]
    else:
        profile = _profile(model)
        transformer = profile.get("json_schema_transformer") if profile else None
        strict = True if model.startswith("anthropic:") else None  # as pydantic-ai asks for native output there
        found = list(_transformed_losses(transformer, schema, strict=strict)) if transformer else []
    return tuple(_unwrapped(loss) if enveloped else loss for loss in found)


def _is_asked_in_words(schema: JsonSchema) -> bool:
    """Whether pydantic-ai puts a schema into the prompt because it is recursive."""
    from pydantic_ai import StructuredDict
    from pydantic_ai.exceptions import UserError

    try:
        StructuredDict(copy.deepcopy(schema))
    except UserError:
        return True
    return False


def _unwrapped(loss: Loss) -> Loss:
    inner = loss.path[2:] if loss.path[:2] == ("properties", ENVELOPE) else loss.path
    return Loss(inner, loss.keyword, loss.effect)


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
    except ImportError:  # the provider's own package is not installed; these profiles do without it
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
        kept = (_at(sent, path) or {}).get(word) == _bare(node[word])
        if not kept and _walk(transformer, _without(schema, path, word), strict=strict)[0] == sent:
            yield Loss(path, word, "dropped")


def _walk(
    transformer: type[JsonSchemaTransformer], schema: JsonSchema, *, strict: bool | None
) -> tuple[JsonSchema | None, bool]:
    """The schema that is sent, without annotations, and whether the provider enforces it."""
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
    """The keywords that prevent enforcement of a schema: each alone prevents that of the bare structure."""
    skeleton = _skeleton(schema)
    if not compatible(skeleton):
        yield Loss((), "", "unenforced")
        return
    for path, node in _schemas(schema):
        for word in node:
            if word in ANNOTATIONS - {"default"} or (word in _STRUCTURAL and word != "required"):
                continue
            if not compatible(_with(skeleton, path, word, node[word])):
                yield Loss(path, word, "unenforced")
        if node.get("properties") and "required" not in node and not compatible(_with(skeleton, path, "required", [])):
            yield Loss(path, "required", "unenforced")


def _words(schema: JsonSchema) -> Iterator[tuple[Path, str, JsonSchema]]:
    """Every constraining keyword, its schema and the path to it."""
    for path, node in _schemas(schema):
        for word in node:
            if word not in ANNOTATIONS and word not in ("type", "properties", "$ref", "$defs", "definitions", "items"):
                yield path, word, node


def _schemas(node: Any, path: Path = ()) -> Iterator[tuple[Path, JsonSchema]]:
    if not is_dict(node):
        return
    schema = node
    yield path, schema
    for word in SCHEMAS_BY_NAME:
        inner = schema.get(word)
        for name, each in inner.items() if is_dict(inner) else ():
            yield from _schemas(each, (*path, word, name))
    for word in _INNER_LISTS:
        inner = schema.get(word)
        for index, each in enumerate(inner) if is_list(inner) else ():
            yield from _schemas(each, (*path, word, index))
    for word in _INNER_SCHEMAS:
        yield from _schemas(schema.get(word), (*path, word))


def _skeleton(node: Any) -> Any:
    """The same structure with nothing optional and no constraint except types."""
    if is_list(node):
        return [_skeleton(each) for each in node]
    if not is_dict(node):
        return node
    bare: JsonSchema = {}
    for word, value in node.items():
        if word in ("properties", "$defs", "definitions") and is_dict(value):
            bare[word] = {name: _skeleton(each) for name, each in value.items()}
        elif word in ("items", "anyOf", "allOf"):
            bare[word] = _skeleton(value)
        elif word == "oneOf":
            bare["anyOf"] = _skeleton(value)
        elif word in _STRUCTURAL and word != "required":
            bare[word] = value
    if "properties" in bare:
        bare["required"] = list(bare["properties"])
    return bare


def _with(skeleton: JsonSchema, path: Path, word: str, value: Any) -> JsonSchema:
    changed = copy.deepcopy(skeleton)
    node = _at(changed, tuple("anyOf" if part == "oneOf" else part for part in path))
    if node is not None:
        if word == "oneOf":
            node.pop("anyOf", None)
        node[word] = copy.deepcopy(value)
    return changed


def _without(schema: JsonSchema, path: Path, word: str) -> JsonSchema:
    changed = copy.deepcopy(schema)
    node = _at(changed, path)
    if node is not None:
        del node[word]
    return changed


def _at(schema: JsonSchema, path: Sequence[str | int]) -> JsonSchema | None:
    here: Any = schema
    for part in path:
        try:
            here = here[part]
        except (KeyError, IndexError, TypeError):  # the skeleton does not have it
            return None
    return here if is_dict(here) else None


def _bare(node: Any) -> Any:
    """A schema without annotation keywords; properties with these names are kept."""
    if is_list(node):
        return [_bare(each) for each in node]
    if not is_dict(node):
        return node
    bare: JsonSchema = {}
    for word, value in node.items():
        if word in SCHEMAS_BY_NAME and is_dict(value):
            bare[word] = {name: _bare(each) for name, each in value.items()}
        elif word not in ANNOTATIONS:
            bare[word] = _bare(value)
    return bare
