"""The rows of `aros run --input-jsonl`: what one line may be, and what is wrong with it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final, cast

from flujo_aros.cli.given import file_text, given_text
from flujo_aros.errors import UsageError

_KEYS: Final = ("input", "id", "context")
_FORM: Final = 'a row with an input is {"input": …, "id": …, "context": {…}}'


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its id or its number from 0, its input, and the context of its own. Or what is wrong with it.

    `mark` is a hash of what it says, by which a row that has changed since it ran is known.
    """

    id: Any
    given: Any = None
    context: dict[str, Any] = field(default_factory=dict[str, Any])
    error: str | None = None
    mark: str = ""

    @property
    def key(self) -> str:
        """The id as a key: 1 and "1" are two."""
        return json.dumps(self.id, sort_keys=True)


def read_rows(source: str) -> list[Row]:
    """The rows of a file, or of stdin. A line that is no row is a `Row` with an error.

    Raises `UsageError` for two rows with one id, and for a file that is not one JSON value on each line.
    """
    text = given_text("-", "--input-jsonl") if source == "-" else file_text(source, "--input-jsonl")
    text = text.removeprefix("\ufeff")
    rows = list(_rows(text))
    if any(row.error for row in rows[:1]) and _is_one_array(text):
        message = (
            "--input-jsonl: this is one JSON array; give one JSON value on each line, as `jq -c '.[]'` writes them"
        )
        raise UsageError(message)
    _refuse_twins(rows)
    return rows


def _rows(text: str) -> Iterator[Row]:
    lines = enumerate(text.split("\n"), start=1)
    for number, (line, words) in enumerate((line, words) for line, words in lines if words.strip()):
        try:
            found = json.loads(words, object_pairs_hook=_members, parse_constant=_no_constant, parse_float=_finite)
        except (ValueError, RecursionError) as error:
            yield Row(number, error=f"line {line} is not JSON: {_said(error)}", mark=_mark(words.strip()))
            continue
        yield _row(number, line, _mark(found), found)


def _row(number: int, line: int, mark: str, found: Any) -> Row:
    if not isinstance(found, dict) or "input" not in found:
        return Row(number, found, mark=mark)
    members = cast("dict[str, Any]", found)
    name, context = members.get("id", number), members.get("context")
    unknown = [key for key in members if key not in _KEYS]
    if unknown:
        return Row(name, error=f"line {line}: {_unknown(unknown)}", mark=mark)
    if not isinstance(context, dict | None):
        return Row(name, error=f"line {line}: `context` is an object, not {json.dumps(context)}", mark=mark)
    return Row(name, members["input"], cast("dict[str, Any]", context or {}), mark=mark)


def _mark(said: Any) -> str:
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]


def _unknown(keys: list[str]) -> str:
    for key in keys:
        for near in get_close_matches(key, _KEYS, 1, 0.75):
            return f"unknown key {key!r} beside `input`; did you mean {near!r}?"
    listed = ", ".join(map(repr, keys))
    return (
        f"unknown {'key' if len(keys) == 1 else 'keys'} {listed} beside `input`; {_FORM}: put other values into "
        "`context`, or the whole object under `input`"
    )


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The members of an object. Raises `ValueError` where one would silently win over another."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            message = f"the key {key!r} stands twice in one object"
            raise ValueError(message)
        found[key] = value
    return found


def _no_constant(word: str) -> Any:
    message = f"there is no {word} in JSON"
    raise ValueError(message)


def _finite(written: str) -> float:
    number = float(written)
    if math.isinf(number):
        message = f"the number {written[:40]} is too large"
        raise ValueError(message)
    return number


def _said(error: ValueError | RecursionError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg}, column {error.colno}"
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


def _is_one_array(text: str) -> bool:
    try:
        return isinstance(json.loads(text), list)
    except (ValueError, RecursionError):
        return False


def _refuse_twins(rows: list[Row]) -> None:
    seen: dict[str, int] = {}
    for number, row in enumerate(rows):
        if row.key in seen:
            message = (
                f"--input-jsonl: rows {seen[row.key]} and {number} have the same id {row.key}; "
                "a row without an id has its number, from 0"
            )
            raise UsageError(message)
        seen[row.key] = number
