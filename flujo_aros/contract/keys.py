"""Whether the keys of a JSON text were all different, told from the value that pydantic made of it.

A validator keeps the last of several equal keys and says nothing. Parsing a second time would tell, at the price of a
second parse; counting the keys that ended up in the value tells the same for a tenth of it. What cannot be counted
with certainty is UNKNOWN, and is then parsed a second time.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from math import isfinite
from typing import Any, Final, cast
from uuid import UUID

from pydantic import BaseModel, RootModel
from pydantic.fields import FieldInfo

UNKNOWN: Final = -(10**12)
"""Added to any count, the sum stays negative."""

_SCALARS: Final = frozenset({str, int, bool, type(None), date, datetime, time, timedelta, UUID})
_of_class: dict[type, Callable[[Any], int]] = {}


def count_keys(value: Any) -> int:
    """How many keys the JSON of this value had; negative where that is not certain, or where a number is not finite."""
    kind = cast("type[object]", type(value))
    counter = _of_class.get(kind)
    if counter is not None:
        return counter(value)
    if kind in _SCALARS:
        return 0
    if kind is list:
        return sum(map(count_keys, value))
    if kind is float:
        return 0 if isfinite(value) else UNKNOWN
    if kind is Decimal:  # one that no float holds is parsed a second time
        return 0 if value.is_finite() and isfinite(value) else UNKNOWN
    if kind is dict:
        return len(value) + sum(map(count_keys, value.values()))
    if not isinstance(value, BaseModel):
        return UNKNOWN
    counter = _of_class[kind] = _counter_of(type(value))
    return counter(value)


def _counter_of(model: type[BaseModel]) -> Callable[[Any], int]:
    """A counter for one model: plain fields are not looked at, numbers must be finite, the rest is counted."""
    decorators = model.__pydantic_decorators__
    if issubclass(model, RootModel) or model.model_config.get("extra") == "allow":
        return _unknown
    if decorators.model_validators or decorators.field_validators or decorators.root_validators:
        return _unknown
    fields = model.model_fields
    floats = [name for name, field in fields.items() if field.annotation is float]
    deep = [
        (name, _counter_for(field.annotation))
        for name, field in fields.items()
        if field.annotation is not float and not _is_plain(field)
    ]

    def count(value: Any) -> int:
        found: int = len(value.__pydantic_fields_set__)
        data: dict[str, Any] = value.__dict__
        for name in floats:
            if not isfinite(data[name]):
                return UNKNOWN
        for name, counter in deep:
            found += counter(data[name])
        return found

    return count


def _counter_for(annotation: Any) -> Callable[[Any], int]:
    """The counter for a field: straight to the model where the field is a list of one model."""
    parts = typing.get_args(annotation) if typing.get_origin(annotation) is list else ()
    if not (parts and isinstance(parts[0], type) and issubclass(parts[0], BaseModel)):
        return count_keys
    model = parts[0]
    if any(not _is_plain(field) for field in model.model_fields.values() if field.annotation is not float):
        return count_keys  # there may be a model in it, even this one once more
    if _counter_of(model) is _unknown:
        return lambda values: sum(map(_unknown, values))
    floats = [name for name, field in model.model_fields.items() if field.annotation is float]
    same = len(model.model_fields) if all(field.is_required() for field in model.model_fields.values()) else None

    def count(values: list[Any]) -> int:
        for name in floats:
            # A sum is finite only if all its parts are; where it overflows, the text is parsed a second time.
            if not isfinite(sum([value.__dict__[name] for value in values])):
                return UNKNOWN
        if same is not None:
            return same * len(values)
        return sum([len(value.__pydantic_fields_set__) for value in values])

    return count


def _unknown(_: Any) -> int:
    return UNKNOWN


def _is_plain(field: FieldInfo) -> bool:
    return not any(_validates(item) for item in field.metadata) and _holds_no_keys(field.annotation)


def _validates(item: Any) -> bool:
    return type(item).__name__.endswith("Validator")


def _holds_no_keys(annotation: Any) -> bool:
    if annotation in _SCALARS or annotation is None:
        return True
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return all(type(member.value) in _SCALARS for member in annotation)
    origin = typing.get_origin(annotation)
    if origin is typing.Literal:
        return True
    if origin in (list, typing.Union, types.UnionType):
        return all(_holds_no_keys(part) for part in typing.get_args(annotation))
    return False
