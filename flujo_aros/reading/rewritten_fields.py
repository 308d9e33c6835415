"""Fields whose streamed value may differ from the final one, because a validator or serializer changes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, cast
from weakref import WeakKeyDictionary

from typing_extensions import TypeIs

from flujo_aros.contract import TypeValues
from flujo_aros.json_data import is_dict

EVERYTHING: Final = frozenset({""})
"""No field is certain before the whole value is."""

_FIELDS: Final = ("model-field", "typed-dict-field", "dataclass-field")
_FUNCTIONS: Final = ("function-before", "function-after", "function-wrap", "function-plain", "decimal")
_BENDS: Final = ("strip_whitespace", "to_lower", "to_upper")
_CONFIG: Final = ("str_strip_whitespace", "str_to_lower", "str_to_upper")

_known: Final[WeakKeyDictionary[TypeValues[Any], frozenset[str]]] = WeakKeyDictionary()


def written_anew(values: TypeValues[Any]) -> frozenset[str]:
    """The names of the fields that a validator, a serializer or a setting of the type may change.

    >>> from pydantic import AfterValidator
    >>> from typing import Annotated
    >>> from typing_extensions import TypedDict
    >>> Person = TypedDict("Person", {"name": Annotated[str, AfterValidator(str.title)], "age": int})
    >>> written_anew(TypeValues(Person))
    frozenset({'name'})
    """
    found = _known.get(values)
    if found is None:
        found = _known[values] = frozenset(_names_in(values.adapter.core_schema, ()))
    return found


def _names_in(part: object, around: tuple[str, ...]) -> Iterator[str]:
    """The names of what is changed in a part of a schema of pydantic-core; `around`: the member that it belongs to."""
    if isinstance(part, (list, tuple)):
        for inner in cast("Sequence[object]", part):
            yield from _names_in(inner, around)
        return
    if not is_dict(part):
        return
    if _changes(part):
        yield from around or EVERYTHING
        yield from _all_names(part)
    for name, inner in part.items():
        if _is_field(inner):
            names = (name, *_aliases(inner))
            yield from names if "serialization" in inner else ()
            yield from _names_in(inner["schema"], names)
        elif name not in ("metadata", "serialization"):
            yield from _names_in(inner, around)


def _changes(schema: dict[str, Any]) -> bool:
    config = schema.get("config")
    bent = is_dict(config) and any(config.get(word) for word in _CONFIG)
    return bent or schema.get("type") in _FUNCTIONS or "serialization" in schema or any(map(schema.get, _BENDS))


def _all_names(part: object) -> Iterator[str]:
    if isinstance(part, (list, tuple)):
        for inner in cast("Sequence[object]", part):
            yield from _all_names(inner)
        return
    if not is_dict(part):
        return
    if part.get("type") == "definition-ref":
        yield from EVERYTHING
    for name, inner in part.items():
        if _is_field(inner):
            yield from (name, *_aliases(inner))
        if name != "metadata":
            yield from _all_names(inner)


def _is_field(part: object) -> TypeIs[dict[str, Any]]:
    return is_dict(part) and part.get("type") in _FIELDS


def _aliases(field: dict[str, Any]) -> Iterator[str]:
    """The other names of a member: each step of each path, which is more than is needed and does no harm."""
    pending: list[object] = [field.get("validation_alias")]
    while pending:
        alias = pending.pop()
        if isinstance(alias, list):
            pending += cast("list[object]", alias)
        elif alias is not None:
            yield str(alias)
