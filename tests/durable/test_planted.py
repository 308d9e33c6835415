"""Write access to the database gives no control of a worker: a planted pickle in any column runs no code."""

import asyncio
import base64
import json
import os
import pickle
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import pytest

pytest.importorskip("dbos", reason="dbos is not installed: pip install 'flujo_aros[durable]'")

from dbos import DBOS
from dbos import _serialization as internals

from flujo_aros import ArosError, Pipeline, Runner
from flujo_aros.durable import Durable
from flujo_aros.durable.serializer import JsonSerializer, RejectedRow, reject_pickles
from tests.durable.steps import steps

ROOT = Path(__file__).parents[2]
PROGRAM = (sys.executable, "-m", "tests.durable.program")
DECODED = {
    ("operation_outputs", "output"),
    ("operation_outputs", "error"),
    ("workflow_status", "inputs"),
    ("workflow_status", "output"),
    ("workflow_status", "error"),
    ("workflow_input", "inputs"),
    ("workflow_output", "output"),
    ("workflow_output", "error"),
    ("notifications", "message"),
    ("workflow_events", "value"),
    ("workflow_events_history", "value"),
    ("streams", "value"),
    ("workflow_schedules", "context"),
}
"""The columns of the engine's tables that it decodes."""
OURS = {
    ("aros_durable_runs", "input"),
    ("aros_durable_runs", "context"),
    ("aros_durable_steps", "record"),
    ("aros_durable_documents", "document"),
}


def bomb(mark: Path) -> str:
    class Bomb:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.system, (f"touch {mark}",)

    return base64.b64encode(pickle.dumps(Bomb())).decode()


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with a run killed after a recorded call, a queued run, and rows of every kind."""
    folder = tmp_path_factory.mktemp("killed")
    url = f"sqlite:///{folder / 'runs.sqlite'}"
    command = [*PROGRAM, url, str(folder / "log"), "repair"]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, timeout=100, check=False).returncode == -9
    with Durable(url) as durable:
        asyncio.run(Runner(pipeline(folder), engine=durable).submit("hi", run_id="queued"))
    with closing(sqlite3.connect(folder / "runs.sqlite")) as connection, connection:
        (run,) = connection.execute("SELECT run_id FROM aros_durable_runs WHERE status = 'running'").fetchone()
        connection.execute("UPDATE aros_durable_runs SET run_id = 'killed', queue = 'default' WHERE run_id = ?", (run,))
        connection.execute("UPDATE aros_durable_steps SET run_id = 'killed'")
        connection.execute("INSERT INTO workflow_events VALUES ('killed', 'k', 'true', 'aros_json')")
        connection.execute("INSERT INTO workflow_events_history VALUES ('killed', 1, 'k', 'true', 'aros_json')")
        connection.execute("INSERT INTO streams VALUES ('killed', 'k', 'true', 0, 1, 'aros_json')")
        connection.execute(
            "INSERT INTO notifications (message_uuid, destination_uuid, topic, message, serialization, consumed) "
            "VALUES ('m', 'killed', 't', 'true', 'aros_json', false)"
        )
        connection.execute(
            "INSERT INTO workflow_schedules (schedule_id, schedule_name, workflow_name, schedule, status, context, "
            "automatic_backfill) VALUES ('s', 's', 'aros_run', '0 0 1 1 *', 'PAUSED', 'null', false)"
        )
        for table in ("workflow_status", "operation_outputs", "workflow_input", "workflow_output"):
            connection.execute(f"UPDATE {table} SET workflow_uuid = 'killed' WHERE workflow_uuid = ?", (run,))  # noqa: S608
    return folder


def pipeline(folder: Path) -> Pipeline:
    return Pipeline(steps(folder / "log", "-"), name="demo")


def columns(connection: sqlite3.Connection, table: str) -> set[str]:
    return {str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")}


def test_these_are_all_columns_that_the_engine_decodes(tmp_path: Path) -> None:
    """If a new release of the engine decodes another column, add it to the test below."""
    with Durable(f"sqlite:///{tmp_path / 'runs.sqlite'}") as durable:
        durable.prepare()
    with closing(sqlite3.connect(tmp_path / "runs.sqlite")) as connection, connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        has = {table: columns(connection, table) for table in tables}
    serialized = {table for table, names in has.items() if "serialization" in names}
    assert serialized == {table for table, _ in DECODED} - {"workflow_input", "workflow_output", "workflow_schedules"}
    payloads = {"inputs", "output", "error", "message", "value", "context"}
    found = {(table, name) for table, names in has.items() for name in names & payloads if "aros_" not in table}
    assert found == DECODED


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "column", "name"),
    [
        *((*place, name) for place in sorted(DECODED) for name in ("py_pickle", "unknown")),
        *((*place, "") for place in sorted(OURS)),
    ],
)
def test_a_planted_pickle_runs_no_code_and_no_run_stays_pending(
    tmp_path: Path, killed: Path, table: str, column: str, name: str
) -> None:
    shutil.copytree(killed, tmp_path / "db")
    database, mark = tmp_path / "db" / "runs.sqlite", tmp_path / "ran"
    with closing(sqlite3.connect(database)) as connection, connection:
        clear = ", output = NULL" if column == "error" else ""
        connection.execute(f"UPDATE {table} SET {column} = ?{clear}", (bomb(mark),))  # noqa: S608 - no input in it
        with suppress(sqlite3.OperationalError):
            connection.execute(f"UPDATE {table} SET serialization = ?", (name,))  # noqa: S608 - as above
        if table in ("workflow_input", "workflow_output"):
            connection.execute("UPDATE workflow_status SET serialization = ?", (name,))

    async def ended(durable: Durable) -> dict[str, str | None]:
        notes: dict[str, str | None] = {}
        for run in ("killed", "queued"):
            result = await asyncio.wait_for(durable.handle(run).result(), 60)
            notes[run] = None if result.status.value == "completed" else result.trouble
        return notes

    with Durable(f"sqlite:///{database}") as durable:
        durable.register(Runner(pipeline(tmp_path / "db"), engine=durable))
        durable.launch(["default"])
        try:
            notes = asyncio.run(ended(durable))
        except ArosError as error:  # of a row of ours: raised to whoever asks for the run
            notes = {"killed": str(error)}
        for read in (
            lambda: DBOS.get_event("killed", "k", timeout_seconds=0),
            lambda: list(DBOS.read_stream("killed", "k")),
            lambda: DBOS.get_all_events("killed"),
            DBOS.list_schedules,
            DBOS.list_workflows,
            lambda: DBOS.list_workflow_steps("killed"),
        ):
            with suppress(Exception):  # what they raise is the engine's: that no code runs is ours
                read()
    assert not mark.exists()
    if (table, column) == ("operation_outputs", "output"):
        assert notes["queued"] is None
        assert "was not decoded" in str(notes["killed"])
    elif (table, column) in OURS - {("aros_durable_documents", "document")}:
        assert "is not JSON" in str(notes["killed"])
    else:
        assert notes == {"killed": None, "queued": None}


@pytest.mark.parametrize("decode", ["args", "value", "exception"])
def test_every_decoding_function_of_the_engine_rejects_pickles(tmp_path: Path, decode: str) -> None:
    reject_pickles()
    mark = tmp_path / "ran"
    with pytest.raises(RejectedRow, match="never decoded"):
        getattr(internals, f"deserialize_{decode}")(bomb(mark), "py_pickle", JsonSerializer())
    with pytest.raises(TypeError, match="not available"):
        getattr(internals, f"deserialize_{decode}")(bomb(mark), "unknown", JsonSerializer())
    assert not mark.exists()


def test_no_pickle_is_written_for_a_row_that_says_it_is_one() -> None:
    reject_pickles()
    written, _ = internals.serialize_exception(ValueError("no"), "py_pickle", JsonSerializer())
    assert json.loads(written)["message"] == "no"
