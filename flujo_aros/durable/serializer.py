"""Safe at rest: only JSON goes into the engine's tables, and only JSON is ever read from them.

DBOS stores pickles by default, and obeys the `serialization` column of each row when it reads: a row that says
`py_pickle` would be unpickled, whatever serializer is configured, and a pickle runs code. Whoever may write to the
database would own every worker. So the one place where DBOS unpickles is replaced by a refusal.
"""

from __future__ import annotations

import json
from typing import Any, Final

from dbos import Serializer
from dbos import _serialization as internals  # pyright: ignore[reportPrivateUsage]

from flujo_aros.errors import ArosError, UsageError
from flujo_aros.json_data import is_dict

NAME: Final = "aros_json"
"""What stands in the `serialization` column of every row of ours."""


class RefusedRow(ArosError):
    """A row of the database is not in a format that this package writes; its content was not decoded."""


class EngineError(ArosError):
    """An error that the engine has recorded: its type and its message, as text."""


class JsonSerializer(Serializer):
    """Plain JSON that a person can read. Exceptions become their type and message; nothing else is taken.

    >>> JsonSerializer().serialize({"reply": "Grüße"})
    '{"reply":"Grüße"}'
    """

    def name(self) -> str:
        """What stands in the `serialization` column."""
        return NAME

    def serialize(self, data: Any) -> str:
        """A value as JSON. Raises `TypeError` for anything that is not plain data."""
        if isinstance(data, BaseException):
            data = {"": "exception", "type": type(data).__name__, "message": str(data)}
        return json.dumps(data, ensure_ascii=False, separators=(",", ":"))

    def deserialize(self, serialized_data: str) -> Any:
        """The value of a row. Raises `RefusedRow` for what is not JSON."""
        try:
            value: Any = json.loads(serialized_data)
        except (TypeError, ValueError) as error:
            raise RefusedRow(f"a row of the durable database is not JSON ({error}); it was not decoded") from error
        if is_dict(value) and value.get("") == "exception":
            return EngineError(f"{value.get('type')}: {value.get('message')}")
        return value


def _refuse(serialized_data: str) -> Any:  # noqa: ARG001 - it is not looked at
    raise RefusedRow(
        "a row of the durable database says `py_pickle`; pickles can run code and are never decoded. "
        "Somebody else has written to this database: look at who may"
    )


def refuse_pickles() -> None:
    """Let no row of any DBOS database be unpickled in this process from now on.

    Raises `UsageError` where this release of DBOS decodes pickles in a place that is not known.
    """
    unpickler = getattr(internals, "DBOSDefaultSerializer", None)
    known = isinstance(unpickler, Serializer) and unpickler.name() == "py_pickle"
    if not known or not callable(getattr(internals, "deserialize_value", None)):
        raise UsageError(
            "this release of dbos cannot be kept from decoding pickles; install one that can: "
            "pip install 'dbos>=3.4,<4'"
        )
    unpickler.deserialize = _refuse  # type: ignore[union-attr]
