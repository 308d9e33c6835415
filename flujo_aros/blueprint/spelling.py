"""Values as people write them: numbers and truth in quotes, whole numbers with a point."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from pydantic_core import ErrorDetails

from flujo_aros.json_data import is_dict, is_list

_NUMBER: Final = re.compile(r"[+-]?\d+(?:\.\d+)?")
_TRUTH: Final[Mapping[str, bool]] = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_WHOLE: Final = ("int_type", "int_from_float", "int_parsing")


def meant(detail: ErrorDetails) -> int | float | bool | None:
    """The number or truth that a value of the wrong type plainly stands for; None where it stands for none.

    >>> meant({"type": "int_type", "input": "3", "loc": (), "msg": ""})
    3
    """
    given, wanted = detail["input"], detail["type"]
    if isinstance(given, float) and wanted in _WHOLE:
        return int(given) if given.is_integer() else None
    if not isinstance(given, str):
        return None
    word = given.strip()
    if wanted == "bool_type":
        return _TRUTH.get(word.lower())
    if not _NUMBER.fullmatch(word):
        return None
    if wanted == "literal_error" and word in re.split(r", | or ", str(detail.get("ctx", {}).get("expected"))):
        return int(word)
    number = float(word)
    if wanted in _WHOLE:
        return int(number) if number.is_integer() else None
    return number if wanted == "float_type" else None


def put(data: Any, path: tuple[str | int, ...], value: object) -> bool:
    """Put a value at this path of plain data; False where the path does not lead anywhere."""
    holder = _holder(data, path)
    if holder is None:
        return False
    holder[path[-1]] = value
    return True


def drop(data: Any, path: tuple[str | int, ...]) -> bool:
    """Take what stands at this path out of plain data; False where the path does not lead anywhere."""
    holder = _holder(data, path)
    if holder is None:
        return False
    del holder[path[-1]]
    return True


def _holder(data: Any, path: tuple[str | int, ...]) -> Any:
    """The mapping or list that has what stands at this path; None where the path does not lead anywhere."""
    holder: Any = None
    here: Any = data
    for part in path:
        holder = here
        known = range(len(here)) if is_list(here) else here if is_dict(here) else ()
        if part not in known:
            return None
        here = holder[part]
    return holder
