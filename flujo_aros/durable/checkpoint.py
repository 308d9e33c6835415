"""Records each call of a run as one step of the engine, in one transaction with the rows of this package.

DBOS runs a step in two transactions: one checks whether the step is already recorded, and the other records it. The
first would find nothing here: recorded calls are read once, when a run is continued, and every new call has its own id.
The second is DBOS's own statement, which verifies in its transaction that this execution still owns the workflow; the
starts of steps that are not written yet are written with it. As a result, a step costs little more than a plain DBOS
step.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from dbos import DBOS
from dbos import _sys_db as internals  # pyright: ignore[reportPrivateUsage]
from dbos import error as engine_errors
from sqlalchemy.exc import SQLAlchemyError

from flujo_aros.durable.recorder import Keep
from flujo_aros.durable.serializer import NAME, JsonSerializer, unsupported
from flujo_aros.durable.store import RunRow, Store, Superseded
from flujo_aros.host import Record

_PARAMETERS: Final = ("result", "completed_at_epoch_ms", "conn")
_SERIALIZER: Final = JsonSerializer()


def rows_of(dbos: DBOS) -> internals.SystemDatabase:
    """Return the engine's own rows. Raises `UsageError` if this release stores steps in an unknown format."""
    rows = dbos._sys_db  # pyright: ignore[reportPrivateUsage]
    record = getattr(rows, "_record_operation_result_txn", None)
    known = callable(record) and tuple(inspect.signature(record).parameters)[: len(_PARAMETERS)] == _PARAMETERS
    if not known or not callable(getattr(internals, "db_retry", None)):
        raise unsupported("stores steps in an unknown format")
    return rows


class Checkpoints:
    """The calls of one run, kept as steps of the workflow that executes it."""

    def __init__(self, rows: internals.SystemDatabase, store: Store, run: RunRow) -> None:
        self._rows = rows
        self._store = store
        self._run = run

    async def __call__(self, key: str, make: Callable[[], Awaitable[Record]], keep: Keep) -> Record:
        """Make a call and record it. Its id is assigned immediately, so the order of completion does not matter."""
        own_id, started = DBOS.reserve_step().step_id, _now()
        record = await make()
        ended = _now()  # every attempt uses the same id: a different id would be a different step

        step: internals.OperationResultInternal = {
            "workflow_uuid": self._run.workflow_id,
            "function_id": own_id,
            "function_name": key,
            "output": _SERIALIZER.serialize(record),
            "error": None,
            "serialization": NAME,
            "started_at_epoch_ms": started,
            "child_workflow_id": None,
        }

        @internals.db_retry()  # as DBOS does: a paid reply is kept until the database is back
        def write(starts: Sequence[Mapping[str, Any]]) -> None:
            with self._rows.engine.begin() as connection:
                self._rows._record_operation_result_txn(step, ended, connection)  # pyright: ignore[reportPrivateUsage]
                self._store.add_starts(connection, self._run.run_id, self._run.epoch, starts)

        try:
            await keep(write)
        except engine_errors.DBOSWorkflowConflictIDError as error:
            raise Superseded(key) from error
        except SQLAlchemyError as error:
            raise self._store.refused(error) from error
        return record


def draw_ids(highest: int) -> None:
    """Reserve the step ids that are already recorded, so that new calls get new ids."""
    drawn = 0
    while drawn < highest:
        drawn = DBOS.reserve_step().step_id


def _now() -> int:
    return int(time.time() * 1000)
