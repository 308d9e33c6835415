"""The JSON Schemas of a blueprint: their parts, and the certain errors in them."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final

from flujo_aros.blueprint.document import Node
from flujo_aros.errors import Hint, Place, Suggestion
from flujo_aros.json_data import ANNOTATING, CONSTRAINING, SCHEMAS_BY_NAME
from flujo_aros.pipeline.names import short

_LISTS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE: Final = ("items", "additionalProperties", "not", "contains")

_KNOWN: Final = CONSTRAINING | ANNOTATING
_CLOSE: Final = 0.8
"""How similar to a keyword a key must be to count as misspelt; any other key is an annotation."""


def parts_of(schema: Node, path: str = "$") -> Iterator[tuple[str, Node]]:
    """A schema and every schema in it, each with the path of the value that it describes."""
    yield path, schema
    for word in SCHEMAS_BY_NAME:
        for name, inner in schema.members[word].members.items() if word in schema.members else ():
            yield from parts_of(inner, f"{path}.{name}" if word == "properties" else path)
    for word in _LISTS:
        for inner in schema.members[word].elements if word in schema.members else ():
            yield from parts_of(inner, path)
    for word in _SINGLE:
        if word in schema.members and isinstance(schema.members[word].value, dict):
            yield from parts_of(schema.members[word], f"{path}[]" if word == "items" else path)


def schema_errors(schema: Node) -> Iterator[tuple[Place, str]]:
    """Errors in a schema that validators ignore, each with its place.

    Validators ignore a keyword that they do not know, such as `propertys`. A schema without any keyword that
    constrains a value accepts everything.
    """
    misspelt = False
    for _, part in parts_of(schema):
        for word in part.members:
            near = [] if word in _KNOWN or word.startswith("x-") else get_close_matches(word, _KNOWN, 1, _CLOSE)
            if near:
                misspelt = True
                words = f"{short(word)} is not a keyword of JSON Schema and would be ignored; did you mean {near[0]!r}?"
                yield part.keys.get(word, part.place), Hint(words, Suggestion(word, near[0]))
    if not misspelt and not CONSTRAINING & schema.members.keys():
        said = f"it says only {', '.join(map(short, schema.members))}" if schema.members else "it is empty"
        cure = (
            "write `type: object` with `properties`, {from_file: NAME} or {from: package.module:Type}; leave "
            "it out if any text is acceptable"
        )
        yield schema.place, f"this schema accepts every value, since {said}; {cure}"
