"""Values of options in plain words."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, cast

from pydantic import BaseModel


def plain_words(value: Any) -> Any:
    """A value of an option as plain JSON that says something; None for what is shown in another way.

    >>> plain_words(len), plain_words((1, None)), plain_words(Decimal)
    ('len', [1, None], 'Decimal')
    """
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, Mapping):
        members = cast("Mapping[object, Any]", value)
        found = {str(key): plain_words(each) for key, each in members.items()}
        return found if all(each is not None for each in found.values()) else None
    if isinstance(value, (list, tuple)):
        return [plain_words(each) for each in cast("list[Any]", value)]
    if dataclasses.is_dataclass(value) and not callable(value):
        fields = {each.name: plain_words(getattr(value, each.name)) for each in dataclasses.fields(value)}
        return {key: each for key, each in fields.items() if each is not None}
    if isinstance(value, BaseModel):
        return plain_words(value.model_dump(mode="json", exclude_defaults=True))
    return str(getattr(value, "__name__", "")) or None
