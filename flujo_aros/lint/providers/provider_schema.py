"""What becomes of a schema on its way to a provider: which of its words are dropped, rejected or left unenforced.

Nothing is kept here in tables where somebody can be asked: the transformer of the model's own profile, as installed,
gets the schema with and without a word, and the word is lost if that makes no difference.
"""

from __future__ import annotations

import copy
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias

from pydantic_ai import StructuredDict
from pydantic_ai.exceptions import UserError
from pydantic_ai.profiles import JsonSchemaTransformer, ModelProfile
from pydantic_ai.profiles.anthropic import anthropic_model_profile
from pydantic_ai.profiles.google import google_model_profile
from pydantic_ai.providers import infer_provider_class

from flujo_aros.contract import JsonSchema
from flujo_aros.host import ENVELOPE, object_schema
from flujo_aros.json_data import SCHEMAS_BY_NAME, is_dict, is_list
from flujo_aros.lint.providers.llamacpp import ANNOTATIONS, grammar_losses

Effect: TypeAlias = Literal["dropped", "rejected", "unenforced"]
Path: TypeAlias = tuple[str | int, ...]

_STRUCTURE: Final = frozenset(
    ("type", "properties", "items", "$ref", "$defs", "definitions", "enum", "const", "anyOf", "allOf", "required")
)
_INNER_LISTS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_INNER_SCHEMAS: Final = ("items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else")


@dataclass(frozen=True, slots=True)
class Loss:
    """One word of a schema that a provider does not enforce.

    `path` leads to the schema that has the word, as keys and indexes. `dropped`: it is not sent. `rejected`: the call
    fails because of it. `unenforced`: because of it the provider does not enforce the schema at all.
    """

    path: Path
    keyword: str
    effect: Effect


@dataclass(frozen=True, slots=True)
class SchemaMode:
    """What a model can do with a schema: `native` says whether its provider enforces one."""

    provider: str
    native: bool


def schema_mode(model: str) -> SchemaMode | None:
    """Whether a model, by its name, has a schema mode of its own; None where the profile is not installed."""
    if model.startswith("local:"):
        return SchemaMode("llama.cpp", native=True)
    profile = _profile(model)
    if profile is None:
        return None
    return SchemaMode(model.partition(":")[0], native=bool(profile.get("supports_json_schema_output")))


def schema_losses(model: str, schema: JsonSchema) -> tuple[Loss, ...]:
    """What the provider of this model, in its schema mode, does not enforce of a schema; empty where that is not known.

    >>> schema_losses("openai:gpt-4o", {"type": "object", "properties": {}, "minProperties": 1})[0].keyword
    'minProperties'
    """
    return _losses(model, json.dumps(schema, sort_keys=False))


@lru_cache(maxsize=256)
def _losses(model: str, written: str) -> tuple[Loss, ...]:
    schema = object_schema(json.loads(written))
    enveloped = schema.get("properties", {}).keys() == {ENVELOPE} and ENVELOPE not in written
    try:
        StructuredDict(copy.deepcopy(schema))
    except UserError:  # it is asked for in words instead, see agent.py
        return (Loss((), "$ref", "unenforced"),)
    if model.startswith("local:"):
        found = [Loss(path, word, effect) for path, word, effect in grammar_losses(schema)]
    else:
        profile = _profile(model)
        transformer = profile.get("json_schema_transformer") if profile else None
        found = list(_transformed_losses(transformer, schema)) if transformer else []
    return tuple(_unwrapped(loss) if enveloped else loss for loss in found)


def _unwrapped(loss: Loss) -> Loss:
    inner = loss.path[2:] if loss.path[:2] == ("properties", ENVELOPE) else loss.path
    return Loss(inner, loss.keyword, loss.effect)


@lru_cache(maxsize=64)
def _profile(model: str) -> ModelProfile | None:
    provider, colon, name = model.partition(":")
    if not colon:
        return None
    try:
        return infer_provider_class(provider).model_profile(name)
    except ValueError:  # no such provider
        return None
    except ImportError:  # the provider's own package is not installed; these profiles do without it
        if provider == "anthropic":
            return anthropic_model_profile(name)
        return google_model_profile(name) if provider.startswith("google") else None


def _transformed_losses(transformer: type[JsonSchemaTransformer], schema: JsonSchema) -> Iterator[Loss]:
    def compatible(changed: JsonSchema) -> bool | None:
        return _walk(transformer, changed)[1]

    sent, strict = _walk(transformer, schema)
    if sent is None:
        yield Loss((), "", "rejected")
        return
    if not strict:
        yield from _hindrances(schema, compatible)
        return
    for path, word, node in _words(schema):
        kept = (_at(sent, path) or {}).get(word) == _bare(node[word])
        if not kept and _walk(transformer, _without(schema, path, word))[0] == sent:
            yield Loss(path, word, "dropped")


def _walk(transformer: type[JsonSchemaTransformer], schema: JsonSchema) -> tuple[JsonSchema | None, bool]:
    """What is sent, without the words that enforce nothing, and whether the provider enforces it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            walker = transformer(copy.deepcopy(schema), strict=None)
            sent = walker.walk()
        except UserError:
            return None, False
    return _bare(sent), walker.is_strict_compatible


def _hindrances(schema: JsonSchema, compatible: Callable[[JsonSchema], bool | None]) -> Iterator[Loss]:
    """The words because of which a schema is not enforced: each of them alone keeps the bare structure from being."""
    skeleton = _skeleton(schema)
    if not compatible(skeleton):
        yield Loss((), "", "unenforced")
        return
    for path, node in _schemas(schema):
        for word in node:
            if word in ANNOTATIONS - {"default"} or (word in _STRUCTURE and word != "required"):
                continue
            if not compatible(_with(skeleton, path, word, node[word])):
                yield Loss(path, word, "unenforced")
        if node.get("properties") and "required" not in node and not compatible(_with(skeleton, path, "required", [])):
            yield Loss(path, "required", "unenforced")


def _words(schema: JsonSchema) -> Iterator[tuple[Path, str, JsonSchema]]:
    """Every word that constrains something, its schema and the path to it."""
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
    """The same structure with nothing optional and no constraint beside types."""
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
        elif word in _STRUCTURE and word != "required":
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
    """A schema without the words that enforce nothing; properties may have their names."""
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
