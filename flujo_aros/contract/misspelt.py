"""Misspelt words in the schemas that people write, which validators ignore."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from pydantic_core import to_json

from flujo_aros.contract.schema import JsonSchema
from flujo_aros.contract.validators import SchemaValues, Values, is_value_of, path_of, type_word, wrapped_in
from flujo_aros.errors import ContractError, Hint, Suggestion
from flujo_aros.json_data import ANNOTATING, CONSTRAINING, Place, is_dict, is_list, schemas_in
from flujo_aros.spelling import nearest, only_near, short

_DECLARING: Final = frozenset({"$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties", "dependentSchemas"})
"""Keywords that may declare properties in addition to `properties`."""
_KNOWN: Final = CONSTRAINING | ANNOTATING
_DESCRIBING: Final = frozenset({"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"})
"""The annotations of JSON Schema that describe a value."""
_CHECKED: Final = CONSTRAINING | _DESCRIBING
_FORMATS: Final = frozenset(
    (
        *("date", "date-time", "time", "duration", "email", "idn-email", "hostname", "idn-hostname", "ipv4", "ipv6"),
        *("uri", "uri-reference", "iri", "iri-reference", "uri-template", "uuid", "regex", "json-pointer"),
        *("relative-json-pointer", "int32", "int64", "float", "double", "byte", "binary", "password", "decimal", "url"),
        *("uint32", "uint64", "ulid", "cuid"),
    )
)
"""The formats of JSON Schema, OpenAPI and common generators, and `url`, which many schemas have for `uri`; a validator
ignores others.
"""
_TYPEOF: Final = "typeof"
"""A keyword of the common extension ajv-keywords."""
_SHORT: Final = 5
"""A word with fewer letters is close to many others; it is misspelt only if its value suits the keyword."""
_CLOSE: Final = 0.8
"""The minimum similarity of a name in `required` to a property for the name to count as misspelt."""
_MOST_UNDECLARED: Final = 50
"""The maximum number of names in `required` that are compared with the properties, because comparing is slow."""


def misspelt_in(schema: JsonSchema) -> Iterator[ContractError]:
    """Yield the misspelt words of a schema, which validators ignore, each with its path: keywords such as `propertys`,
    formats, names in `required`, where a misspelt one requires a second property, of any type, and annotations, which
    constrain nothing (`misspells_annotation`). A key that may mean something else (`propertiesOrder`, `form`, `tsType`)
    is an annotation of another tool. A suggestion is sure if the value suits the keyword.

    >>> [str(error) for error in misspelt_in({"type": "object", "propertys": {}})]
    ["'propertys' is not a keyword of JSON Schema and would be ignored; did you mean 'properties'?"]
    """
    if wrapped_in(schema) is not None:
        return  # not a schema at all, which is reported as a different error
    found = list(schemas_in(schema))
    for path, part in found:
        form = part.get("format")
        suggestion = only_near(form, _FORMATS) if isinstance(form, str) and form not in _FORMATS else None
        if suggestion is not None:
            words = f"{form!r} is not a format of JSON Schema and would be ignored; did you mean {suggestion!r}?"
            yield ContractError(Hint(words, Suggestion(str(form), suggestion, sure=True)), (*path, "format"))
        for word, value in part.items():
            # `_format`: switched off
            own = word in _KNOWN or word == _TYPEOF or not word[:1].isalpha() or word.startswith("x-")
            meant = None if own else _meant_elsewhere(word, part) or only_near(word, _KNOWN)
            if meant not in _CHECKED or word.endswith(meant.capitalize()):
                continue
            suits = is_value_of(meant, value)
            if suits or (len(word) >= _SHORT and meant in CONSTRAINING):
                words = f"{short(word)} is not a keyword of JSON Schema and would be ignored; did you mean {meant!r}?"
                yield ContractError(Hint(words, Suggestion(word, meant, sure=suits)), (*path, word))
    for path, name, optional in islice(_undeclared_required(found), _MOST_UNDECLARED):
        suggestion = nearest(name, optional)
        if suggestion.suggestion is not None and get_close_matches(name, [suggestion.suggestion.meant], 1, _CLOSE):
            yield ContractError(suggestion.after(f"{short(name)} is required but not in `properties`"), path)


def _meant_elsewhere(word: str, schema: JsonSchema) -> str | None:
    """Return the keyword for what pydantic, zod and others call differently: `min`, `ge`, or `choices`."""
    meant = _ELSEWHERE.get(word, {}).get(str(schema.get("type", "")))
    return meant if meant is not None and meant not in schema and is_value_of(meant, schema[word]) else None


_NUMBERS: Final = ("integer", "number")
_ELSEWHERE: Final[dict[str, dict[str, str]]] = {
    "min": {**dict.fromkeys(_NUMBERS, "minimum"), "string": "minLength", "array": "minItems"},
    "max": {**dict.fromkeys(_NUMBERS, "maximum"), "string": "maxLength", "array": "maxItems"},
    "ge": dict.fromkeys(_NUMBERS, "minimum"),
    "gt": dict.fromkeys(_NUMBERS, "exclusiveMinimum"),
    "le": dict.fromkeys(_NUMBERS, "maximum"),
    "lt": dict.fromkeys(_NUMBERS, "exclusiveMaximum"),
    "regex": {"string": "pattern"},
    "choices": dict.fromkeys(("string", *_NUMBERS), "enum"),
}
"""By the type of the value."""


def misspells_annotation(error: ContractError) -> bool:
    """Return whether a misspelt word is an annotation, such as `desciption`, which constrains nothing."""
    found = error.suggestion
    return found is not None and error.path[-1] == found.written and found.meant in _DESCRIBING


def _undeclared_required(parts: Sequence[tuple[Place, JsonSchema]]) -> Iterator[tuple[Place, str, set[str]]]:
    """Yield names in `required` that no part of the schema declares, each with the optional properties next to it."""
    with_names = [(path, part) for path, part in parts if is_dict(part.get("properties"))]
    declared = {name for _, part in with_names for name in part["properties"]}
    for path, part in with_names:
        required = part.get("required")
        if is_list(required) and not _DECLARING & part.keys() and part.get("additionalProperties", False) is False:
            optional = set(part["properties"]) - set(map(str, required))
            for number, name in enumerate(map(str, required)):
                if name not in declared:
                    yield (*path, "required", number), name, optional


def require_constraint(schema: JsonSchema) -> None:
    """Raise `ContractError` for a schema that accepts every value, or every one of its type, because the only other
    keyword in it is misspelt, or because it maps names to types (`{"qty": "int"}`) instead of declaring properties.

    Stored files of named schemas (`{"Order": {"type": "object"}}`) are accepted.

    >>> require_constraint({"type": "object", "propertys": {}})
    Traceback (most recent call last):
        ...
    flujo_aros.errors.ContractError: 'propertys' is not a keyword of JSON Schema and would be ignored; did you mean \
'properties'?
    """
    if not (CONSTRAINING - {"type"}) & schema.keys():
        for error in misspelt_in(schema):
            if not misspells_annotation(error):
                raise error
    unknown = _unknown_keys(schema)
    if not all(is_dict(value) and CONSTRAINING & value.keys() for value in unknown.values()):
        raise _accepts_every_value(unknown)


def _unknown_keys(schema: JsonSchema) -> JsonSchema:
    """Return the members of a schema that are not keywords, if no keyword in it constrains a value."""
    if CONSTRAINING & schema.keys():
        return {}
    return {key: value for key, value in schema.items() if key not in ANNOTATING and not key.startswith("x-")}


def _accepts_every_value(unknown: JsonSchema) -> ContractError:
    key, value = next(iter(unknown.items()))
    close = get_close_matches(key, CONSTRAINING, 1)
    hint = "write {} for any value"
    if close:
        hint = f"did you mean {close[0]!r}?"
    elif is_dict(value) or type_word(value):
        hint = f'write {{"type": "object", "properties": {{{to_json(key).decode()}: …}}}}, or {{}} for any value'
    return ContractError(f"a JSON Schema that accepts every value: {short(key)} is not a keyword; {hint}")


@lru_cache(maxsize=256)
def misspelt_of(values: SchemaValues) -> tuple[ContractError, ...]:
    """Return the misspelt words of a schema that compiles; a blueprint and its steps share one."""
    return tuple(misspelt_in(values.json_schema))


def require_keywords(values: Values[Any]) -> None:
    """Raise `ContractError` for the first misspelt word of a JSON Schema, and for a schema that accepts every value,
    because none of its keys is a keyword for one.

    >>> require_keywords(SchemaValues({"properties": {"age": {"minimun": 3}}}))
    Traceback (most recent call last):
        ...
    flujo_aros.errors.ContractError: at $.properties.age: 'minimun' is not a keyword of JSON Schema and would be \
ignored; did you mean 'minimum'?
    """
    if not isinstance(values, SchemaValues):
        return  # a type
    for error in misspelt_of(values):
        if misspells_annotation(error):
            continue
        where = path_of(error.path[:-1])
        raise ContractError(f"{error}" if where == "$" else f"at {where}: {error}", error.path)
    if unknown := _unknown_keys(values.json_schema):
        raise _accepts_every_value(unknown)
