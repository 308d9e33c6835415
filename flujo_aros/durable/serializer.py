"""Safe storage: only JSON is written to the engine's tables, and only JSON is ever read from them.

DBOS stores pickles by default, and decodes each row in the format that its `serialization` column names: a row that
says `py_pickle` would be unpickled, whatever serializer is configured, and a pickle runs code. Anyone with write access
to the database would control every worker. Therefore the only function with which DBOS unpickles is replaced by one
that raises an error.
"""

from __future__ import annotations

import json
from typing import Any, Final

from dbos import Serializer
from dbos import _serialization as internals  # pyright: ignore[reportPrivateUsage]
from pydantic import ValidationError

from flujo_aros.contract import path_of
from flujo_aros.errors import ArosError, UsageError
from flujo_aros.json_data import is_dict

NAME: Final = "aros_json"
"""The value of the `serialization` column in all our rows."""


class RejectedRow(ArosError):
    """Raised for a database row that is not in a format of this package, and was not decoded."""


class EngineError(ArosError):
    """An error that the engine has recorded, with the original type and message in its text."""


class JsonSerializer(Serializer):
    """Human-readable JSON. Exceptions are stored as their type and message; other objects are errors.

    >>> JsonSerializer().serialize({"reply": "Grüße"})
    '{"reply":"Grüße"}'
    """

    def name(self) -> str:
        """Return the value of the `serialization` column."""
        return NAME

    def serialize(self, data: Any) -> str:
        """Return a value as JSON. Raises `TypeError` for anything that is not plain data."""
        if isinstance(data, BaseException):
            data = {"": "exception", "type": type(data).__name__, "message": str(data)}
        return json.dumps(data, ensure_ascii=False, separators=(",", ":"))

    def deserialize(self, serialized_data: str) -> Any:
        """Return the value of a row. Raises `RejectedRow` for anything but JSON."""
        value = decoded(serialized_data)
        if is_dict(value) and value.get("") == "exception":
            return EngineError(f"{value.get('type')}: {value.get('message')}")
        return value


STRANGER: Final = "something other than flujo_aros has written to this database; check who has access"


def decoded(column: str) -> Any:
    """Return the JSON of a column. Raises `RejectedRow` for anything else."""
    try:
        return json.loads(column)
    except (TypeError, ValueError) as error:
        raise RejectedRow(
            f"a row of the durable database is not JSON ({error}) and was not decoded; {STRANGER}"
        ) from error


def not_ours(where: str, error: ValidationError) -> RejectedRow:
    """Return the error for JSON that does not have our format. `where` names its run and its position in it."""
    wrong = error.errors(include_url=False)[0]
    what = f"{path_of(wrong['loc'])}: {wrong['msg']}"
    return RejectedRow(f"{where} is not in the format of flujo_aros ({what}); {STRANGER}")


def of_ours(column: str, serialization: str | None, run_id: str) -> Any:
    """Return the JSON of a column with an explicit serialization format. Raises `RejectedRow` unless the format is
    ours.
    """
    if serialization != NAME:
        raise RejectedRow(
            f"a recorded call of run {run_id} is serialized as `{serialization}` instead of `{NAME}` and was not "
            f"decoded; {STRANGER}"
        )
    return decoded(column)


def unsupported(problem: str) -> UsageError:
    """Return the error for a release of DBOS that this package does not know."""
    return UsageError(f"this release of dbos {problem}; install a supported one: pip install 'dbos>=3.4,<4'")


def _refuse(serialized_data: str) -> Any:  # noqa: ARG001 - it is never read
    raise RejectedRow(
        "a row of the durable database is serialized as `py_pickle`; pickles can run code and are never decoded; "
        f"{STRANGER}"
    )


def reject_pickles() -> None:
    """Keep DBOS from unpickling any row in this process from now on.

    Raises `UsageError` if this release of DBOS decodes pickles in an unknown place.
    """
    unpickler = getattr(internals, "DBOSDefaultSerializer", None)
    known = isinstance(unpickler, Serializer) and unpickler.name() == "py_pickle"
    if not known or not callable(getattr(internals, "deserialize_value", None)):
        raise unsupported("cannot be stopped from decoding pickles")
    unpickler.deserialize = _refuse  # type: ignore[union-attr]
    unpickler.serialize = JsonSerializer().serialize  # type: ignore[union-attr]  # nor is one written for such a row
