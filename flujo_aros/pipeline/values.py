"""Values of a run as plain JSON, as text for a model, and as the parts of a prompt."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import inf, isfinite
from typing import Any, Final, cast

from pydantic_core import to_jsonable_python

from flujo_aros.host import has_content, is_content
from flujo_aros.json_data import is_dict, is_list

AS_CONTENT: Final = 'make it an element of the input: ["What is in this?", "{{ input }}"]'
"""The advice for non-text content inside a text."""


def as_plain(value: Any) -> Any:
    """A value as plain JSON: models by their aliases, dates and enums as strings, anything unknown by `str`. A
    non-finite number is a string too, because JSON cannot express it.

    >>> as_plain({"when": __import__("datetime").date(2026, 1, 2), 3: (1, None), "most": float("inf")})
    {'when': '2026-01-02', '3': [1, None], 'most': 'Infinity'}
    """
    return _finite(to_jsonable_python(value, by_alias=True, bytes_mode="base64", fallback=str))


def _finite(plain: Any) -> Any:
    if isinstance(plain, float):
        return plain if isfinite(plain) else _NOT_FINITE.get(plain, "NaN")
    if is_list(plain):
        return [_finite(part) for part in plain]
    if is_dict(plain):
        return {key: _finite(part) for key, part in plain.items()}
    return plain


_NOT_FINITE: Final = {inf: "Infinity", -inf: "-Infinity"}


def as_json(value: Any) -> str:
    """A value as JSON; a string keeps its quotes."""
    return json.dumps(as_plain(value), ensure_ascii=False)


def as_text(value: Any) -> str:
    """A value as text for a model: strings unchanged, everything else as JSON, never as a Python repr. Raises
    `TypeError` for an image and other non-text content, because JSON of its bytes would be useless to a model.

    >>> as_text({"ok": True, "who": None})
    '{"ok": true, "who": null}'
    """
    refuse_content(value)
    plain = as_plain(value)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def refuse_content(value: Any) -> None:
    """Raise a `TypeError` for a value that cannot be written as text: an image or the like, or something containing
    one.
    """
    if not isinstance(value, (str, int, float)) and has_content(value):
        kind = type(value).__name__
        raise TypeError(f"{kind} is or contains an image or other content that cannot be written as text; {AS_CONTENT}")


def as_parts(value: Any) -> list[Any] | None:
    """The parts of a prompt for non-text content, alone or in a list, or None for any other value.

    >>> from pydantic_ai import ImageUrl
    >>> [type(part).__name__ for part in as_parts(["What is this?", ImageUrl("https://example.com/a.png"), {"n": 1}])]
    ['str', 'ImageUrl', 'str']
    """
    if is_content(value):
        return [value]
    if not isinstance(value, (list, tuple)):
        return None
    elements = cast("Sequence[object]", value)
    if not has_content(elements):
        return None
    parts: list[Any] = []
    for each in elements:
        parts += as_parts(each) or [as_text(each)]
    return parts
