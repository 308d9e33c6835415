"""`Durable`: runs that survive crashes, on one machine or many, built on DBOS."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import socket
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Final, Self, cast
from uuid import uuid4
from weakref import WeakKeyDictionary, WeakSet

import sqlalchemy as sa
from dbos import DBOS, DBOSClient, EnqueueOptions, SetWorkflowID
from dbos import error as engine_errors
from pydantic import BaseModel
from sqlalchemy.exc import SQLAlchemyError

from flujo_aros.configured import reject_unknown_options
from flujo_aros.database import add_functions, database_url
from flujo_aros.durable.checkpoint import Checkpoints, draw_ids, rows_of
from flujo_aros.durable.handle import DurableHandle
from flujo_aros.durable.limits import SharedLimits
from flujo_aros.durable.liveness import Liveness, dequeue_while, listen_to, liveness
from flujo_aros.durable.recorder import RunRecording
from flujo_aros.durable.serializer import JsonSerializer, reject_pickles
from flujo_aros.durable.store import OPEN, RUNS, DatabaseError, RunRow, Store, Superseded, Unwritten, workflow_of
from flujo_aros.errors import ArosError, UsageError
from flujo_aros.pipeline.model import Answer, Pipeline
from flujo_aros.pipeline.pause import as_given, as_saved, every_step, fingerprint, step_with_deps
from flujo_aros.pipeline.per_minute import PerMinute
from flujo_aros.pipeline.results import RunResult, RunStatus, Work
from flujo_aros.pipeline.runner import Runner, RunTask
from flujo_aros.pipeline.step import Step
from flujo_aros.pipeline.values import ContextLike, SharedContext
from flujo_aros.redaction import without_secrets
from flujo_aros.spelling import nearest

Document = Mapping[str, Any]
"""A blueprint as plain JSON, from which any worker can rebuild the pipeline."""
Load = Callable[[Document], Runner]
"""Builds a runner from a document. Raises `ArosError` if this worker is not allowed to do this, or cannot."""

_APP: Final = "aros"
_VERSION: Final = "aros-1"
"""The version in the engine's rows. The pipeline of a run is recorded in the run, since one worker executes many."""
_MOST_TAKEOVERS: Final = 3
_LOOK_SECONDS: Final = 0.25
_LOOKS_AT_PARKED: Final = 20
_LOOKS_AT_FORGOTTEN: Final = 4
_TRIES: Final = 40
_log: Final = logging.getLogger("flujo_aros.durable")
_open: Durable | None = None

# Without a handler, the engine would write to whatever `sys.stderr` is when the first database is opened, and keep that
# stream: it fails to open the next one if the stream was closed (a test's, an embedding program's).
logging.getLogger("dbos").addHandler(logging.NullHandler())


@DBOS.workflow(name="aros_run", max_recovery_attempts=_MOST_TAKEOVERS)
async def _aros_run(run_id: str, segment: int) -> str:
    """Execute a run, or the part of it after a pause. The return value is ignored: the rows of this package record how
    it ended.
    """
    if _open is None:
        raise AssertionError("a workflow is running without an engine")
    return await _open.perform(run_id, segment)


@dataclass(slots=True)
class _Local:
    """A run that was started in this process, by a caller that awaits it."""

    runner: Runner
    task: RunTask
    result: RunResult | None = None
    error: BaseException | None = None


@dataclass(slots=True)
class _Active:
    """A run that this process is executing."""

    task: asyncio.Task[RunResult]
    loop: asyncio.AbstractEventLoop
    cancelled: bool = False


@reject_unknown_options
class Durable:
    """An engine that keeps every run in a database: `Runner(pipeline, engine=Durable("sqlite:///runs.sqlite"))`.

    `url` is `sqlite:///FILE`, for the processes on one machine, or `postgresql://USER@HOST/NAME`, for any number of
    machines. If a process is killed, `run` on the same input continues the interrupted run, in the same program or
    another; settled steps and recorded model calls are neither run nor paid for again. `live` stores the text of
    replies as they are written, so that other processes can follow. `limits` are the limits per minute of each
    provider, shared by all workers of the database: `{"openai": PerMinute(requests=500)}`.

    Only one `Durable` can be open per process; close it with `close()` or by leaving its `with` block.

    Raises `UsageError` for an invalid URL, and at the first run for a database that cannot be opened.
    """

    def __init__(
        self, url: str, *, live: bool = False, limits: Mapping[str, PerMinute] | None = None, create: bool = True
    ) -> None:
        database_url(url, "durable database")
        self.url = url
        self.live = live
        self.limits = dict(limits or {})
        self.executor = f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:8]}"
        self.runners: dict[str, Runner] = {}
        self._deps: dict[str, Any] = {}
        self.documents: dict[str, Document] = {}
        self.load: Load | None = None
        self.on_taken_up: Callable[[RunRow], None] | None = None
        """Called with an interrupted run that `run` is about to continue."""
        self.on_unexecuted: Callable[[RunRow, str, str], None] | None = None
        """Called with a run that this process cannot execute, its new status (`parked` or `failed`), and the reason."""
        self._create = create
        self._store: Store | None = None
        self._client: DBOSClient | None = None
        self._launched = False
        self._versions: WeakKeyDictionary[Runner, str] = WeakKeyDictionary()
        self._dbos: DBOS
        self._queues: Sequence[str] = ()
        self._local: dict[str, _Local] = {}
        self._active: dict[str, _Active] = {}
        self._loops: WeakSet[asyncio.AbstractEventLoop] = WeakSet()
        self._performed: Counter[str] = Counter()
        self._forgotten: set[str] = set()
        self._draining = False
        self._stop = threading.Event()
        self._watcher: threading.Thread | None = None
        self._guard = threading.Lock()

    def __repr__(self) -> str:
        return f"Durable({without_secrets(self.url)!r})"

    # -- opening and closing -----------------------------------------------------------------------------------

    @property
    def store(self) -> Store:
        """The tables of the database, opened on first use."""
        if self._store is None:
            self._store = Store(self.url, create=self._create)
        return self._store

    @cached_property
    def locks(self) -> Liveness:
        """The locks that show which processes are alive."""
        return liveness(self.store.engine, self.executor)

    @property
    def client(self) -> DBOSClient:
        """The client that enqueues work without executing any."""
        if self._client is None:
            self.prepare()
        return cast("DBOSClient", self._client)

    def prepare(self) -> None:
        """Open the database and create missing tables. Called on first use if you do not."""
        self._reject_closed()
        if self._client is not None:
            return
        reject_pickles()
        if not sa.inspect(self.store.engine).has_table("operation_outputs", schema=self._schema):
            DBOS.migrate(self._engine_url, schema="dbos")
        self._client = DBOSClient(
            system_database_engine=self.store.engine, serializer=JsonSerializer(), application_name=_APP
        )

    @property
    def _schema(self) -> str | None:
        return None if self.store.is_sqlite else "dbos"

    def launch(
        self, queues: Sequence[str] = (), concurrency: int | None = None, *, per_partition: int | None = None
    ) -> None:
        """Start executing the runs of this process and of `queues`, at most `concurrency` at once.

        A second call adds queues. `per_partition` limits how many runs of one partition of a queue all workers
        together execute at once. It is stored with the queue: the worker that starts last sets it for all.
        """
        global _open  # noqa: PLW0603 - the engine below is one for each process, too
        self._reject_closed()
        with self._guard:
            if self._launched:
                self._listen(queues, concurrency, per_partition)
                return
            if _open is not None and _open is not self:
                raise UsageError(
                    f"this process already has {_open.store.shown} open, and only one durable database can be open at "
                    "a time; call durable.close() on that one first"
                )
            reject_pickles()
            self._hold_lock()
            config: Any = {
                "name": _APP,
                "system_database_url": self._engine_url,
                "serializer": JsonSerializer(),
                "application_version": _VERSION,
                "executor_id": self.executor,
                "log_level": "CRITICAL",
            }
            if self.store.is_sqlite:
                config["system_database_engine"] = self.store.engine  # with our SQLite settings
            _open = self
            try:
                self._dbos = DBOS(config=config)
                DBOS.listen_queues([])
                self._listen(queues, concurrency, per_partition)
                DBOS.launch()
                self._engine_rows = rows_of(self._dbos)
                dequeue_while(self._may_dequeue, self._dbos._sys_db)  # pyright: ignore[reportPrivateUsage]
            except (SQLAlchemyError, engine_errors.DBOSException, UsageError) as error:
                _open = None
                DBOS.destroy()
                if isinstance(error, SQLAlchemyError):
                    raise self.store.refused(error) from error
                if isinstance(error, UsageError):
                    raise
                raise UsageError(f"the durable database {self.store.shown} cannot be used: {error}") from error
            self._launched = True
            self._watcher = threading.Thread(target=self._watch, name="aros-watcher", daemon=True)
            self._watcher.start()

    def _listen(self, queues: Sequence[str], concurrency: int | None, per_partition: int | None) -> None:
        """Register queues with these limits, and start taking runs from them."""
        for queue in queues:
            try:
                # in a thread, because it cannot run inside an event loop, such as in an `async def main()`
                with ThreadPoolExecutor(1) as pool:
                    pool.submit(
                        self.client.register_queue,
                        queue,
                        worker_concurrency=concurrency,
                        partition_concurrency=per_partition,
                        polling_interval_sec=_LOOK_SECONDS,
                    ).result()
            except SQLAlchemyError as error:
                raise self.store.refused(error) from error
        self._queues = tuple(dict.fromkeys([*self._queues, *queues]))
        listen_to(self._queues, self._dbos)

    def _hold_lock(self) -> None:
        """Take the lock of this process. A process that is checking it holds it for a moment."""
        for _ in range(_TRIES):
            if self.locks.hold():
                return
            time.sleep(_LOOK_SECONDS / 10)
        raise UsageError(f"the durable database {self.store.shown} cannot be reached: its lock could not be acquired")

    def _may_dequeue(self) -> bool:
        """Return whether this process may take runs from queues: it has queues, is not draining, and holds its lock."""
        return bool(self._queues) and not self._draining and self.locks.hold()

    @property
    def _engine_url(self) -> str:
        return self.store.engine.url.render_as_string(hide_password=False)

    def close(self) -> None:
        """Stop executing and close the database. Runs in progress are left for other processes to continue."""
        global _open  # noqa: PLW0603 - as in `launch`
        if self._stop.is_set():
            return  # by now the process may have another engine
        self._draining = True
        self._stop.set()
        if self._watcher is not None:
            self._watcher.join()
        for active in list(self._active.values()):
            with suppress(RuntimeError):  # the event loop is closed, so nothing in it continues
                active.loop.call_soon_threadsafe(active.task.cancel)
        if self._client is not None:
            self._client.destroy()
        if self._launched:
            DBOS.destroy()
        for loop in list(self._loops):  # DBOS replaced the default executor of each with its own, and has shut it down
            loop.set_default_executor(ThreadPoolExecutor(thread_name_prefix="asyncio"))
        if "locks" in self.__dict__:
            self.locks.release()
        if self._store is not None:
            self._store.close()
        if _open is self:
            _open = None

    def _reject_closed(self) -> None:
        if self._stop.is_set():
            raise UsageError(f"this durable database, {self.store.shown}, was closed; create another one: Durable(url)")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- runs --------------------------------------------------------------------------------------------------

    async def run(self, runner: Runner, task: RunTask) -> RunResult:
        """Execute a run in this process, or continue one that was interrupted.

        Without a `run_id`, it continues a run of the same pipeline on the same input and context whose process is gone.
        With one, it continues the run with that id if it was interrupted, or is in a queue that this process does not
        work on, and returns its result if it has ended.
        A task with an answer continues a paused run.
        """
        if task.answer is not None:
            row = await asyncio.to_thread(self._asking, task)
            return await self.answer_here(runner, row, task.answer.value, task)
        await asyncio.to_thread(self.launch)
        version = self.register(runner)
        number = await asyncio.to_thread(self._start, task, version)
        return await (self.handle(task.run_id).result() if number is None else self._here(runner, task, number))

    def _start(self, task: RunTask, version: str) -> int | None:
        """Begin a run or continue an interrupted one, and return the number of its next workflow.

        None if another process is executing it, or it has ended.
        """
        row = self._found(task, version)
        if row is None:
            with self.store.connection() as connection:
                return 1 if self._add(connection, task, version, "running") else None
        task.run_id = row.run_id
        queued = row.status == "queued" and row.executor is None
        waits = queued and (row.queue or "default") not in self._queues
        if row.run_id in self._active or not (waits or self._is_interrupted(row)) or not self._take_up(row):
            return None
        if self.on_taken_up is not None and not waits:
            self.on_taken_up(row)
        return row.segment + 1

    def register(self, runner: Runner, deps: Any = None) -> str:
        """Let this process execute the runs of a pipeline, wherever they are started. Returns the pipeline's version.

        `deps` is the `ctx.deps` of its agents in runs that were not started here with their own `deps`; it is never
        stored. Without it, a run of an agent that declares a `deps_type` is parked.
        """
        version = self._versions.get(runner)
        if version is None:
            version = self._versions[runner] = version_of(runner.pipeline)
        self.runners[version] = runner
        if deps is not None:
            self._deps[version] = deps
        return version

    def _found(self, task: RunTask, version: str) -> RunRow | None:
        """Return the row of this run, or None if it was never started."""
        if not task.named:
            found = [row for row in self.store.interrupted(_request_of(task)) if self._is_interrupted(row)]
            same = next((row for row in found if row.version == version), None)
            other = next((row for row in found if row.pipeline == self.runners[version].pipeline.name), None)
            if same is None and other is not None:
                _log.warning("a new run starts, because %s", _other_version(other))
            return same
        row = self.store.find(task.run_id)
        if row is not None:
            _reject_other_request(row, task, version)
        return row

    def _is_interrupted(self, row: RunRow) -> bool:
        """Return whether the process that executed the run is gone, or no worker could execute it."""
        if row.status == "parked":
            return True
        had = row.executor is not None and row.status in ("running", "queued")
        return had and not self.locks.is_alive(row.executor or "")

    def _take_up(self, row: RunRow) -> bool:
        """Continue an interrupted or queued run here; return False if another process got there first."""
        had = row.executor is not None
        died = had and row.status != "parked"
        if died and row.takeovers >= _MOST_TAKEOVERS:
            self.store.mark(row, "failed", _why_given_up(row))
            return False
        if not self._continue(row, here=True, takeovers=row.takeovers + died, epoch=row.epoch + had):
            return False
        with suppress(engine_errors.DBOSException):
            DBOS.cancel_workflow(row.workflow_id)
        return True

    def _continue(self, row: RunRow, *, here: bool = False, **values: Any) -> bool:
        """Continue a run in a new workflow, which this process starts (`here`) or any worker takes from the queue.

        False if another process was first.
        """
        if not here:
            self.prepare()
        with self.store.connection() as connection:
            executor = self.executor if here else None
            taken = self.store.take_segment(connection, row, status="queued", executor=executor, **values)
            if taken and not here:
                self._enqueue(connection, self.store.row(connection, row.run_id))
            return taken

    def _add(self, connection: sa.Connection, task: RunTask, version: str, status: str, **columns: Any) -> bool:
        document = self.documents.get(version)
        if document is not None:
            self.store.add_document(connection, version, document)
        row = RunRow(
            run_id=task.run_id,
            pipeline=self.runners[version].pipeline.name,
            version=version,
            request=_request_of(task),
            status=status,
            executor=None if "queue" in columns else self.executor,
            live=self.live,
            input=as_saved(task.given, "the input"),
            context=_context_of(task),
            **columns,
        )
        return self.store.add(connection, row)

    async def _here(self, runner: Runner, task: RunTask, segment: int) -> RunResult:
        """Execute a run in this process for a caller that awaits it."""
        local = self._local[task.run_id] = _Local(runner, task)
        with SetWorkflowID(workflow_of(task.run_id, segment)):
            self._loops.add(asyncio.get_running_loop())
            handle = await DBOS.start_workflow_async(_aros_run, task.run_id, segment)
        waiting = asyncio.ensure_future(handle.get_result())
        try:
            await asyncio.shield(waiting)
        except asyncio.CancelledError:
            active = self._active.get(task.run_id)
            if active is not None:
                active.cancelled = not self._draining
                active.task.cancel()
            await asyncio.wait([waiting])
            if not waiting.cancelled():
                waiting.exception()  # otherwise asyncio would log a database error
            raise
        except SQLAlchemyError as error:  # the engine could not record the end of its workflow
            raise local.error or self.store.refused(error) from error
        finally:
            self._local.pop(task.run_id, None)
        if local.error is not None:
            raise local.error
        if local.result is not None:
            return local.result
        return await self.handle(task.run_id).result()

    async def submit(self, runner: Runner, task: RunTask) -> DurableHandle:
        """Enqueue a run. Any worker that has the pipeline registered, or may load its blueprint, executes it."""
        version = self.register(runner)

        def put() -> None:
            self.prepare()
            with self.store.connection() as connection:
                self._submit(connection, task, version)

        await asyncio.to_thread(put)
        return self.handle(task.run_id)

    def submit_with(
        self,
        connection: sa.Connection,
        runner: Runner,
        input: Any,
        context: ContextLike | None = None,
        *,
        run_id: str | None = None,
        queue: str = "default",
        priority: int | None = None,
        partition: str | None = None,
    ) -> DurableHandle:
        """Submit a run inside your own transaction on the same database (an outbox).

        The run exists if and only if the transaction commits: an order and the run that processes it are written
        together. `connection` is an SQLAlchemy connection to that database; call `prepare()` before its transaction
        begins.

        Raises `UsageError` if the database was not prepared, or the connection is to a different one.
        """
        if self._client is None:
            raise UsageError("the durable database is not open: call durable.prepare() before the transaction begins")
        if not sa.inspect(connection).has_table(RUNS.name):
            raise UsageError(
                f"the transaction is on a different database from {self.store.shown}, which stores the runs"
            )
        raw = connection.connection.dbapi_connection
        if isinstance(raw, sqlite3.Connection):
            add_functions(raw)
        task = RunTask(run_id or uuid4().hex, input, SharedContext.of(context), named=run_id is not None)
        task.queue, task.priority, task.partition = queue, priority, partition
        self._submit(connection, task, self.register(runner))
        return self.handle(task.run_id)

    def _submit(self, connection: sa.Connection, task: RunTask, version: str) -> None:
        """Enqueue a run as part of this transaction."""
        place = {"queue": task.queue, "priority": task.priority, "partition": task.partition}
        added = self._add(connection, task, version, "queued", **place)
        row = self.store.row(connection, task.run_id)
        if added:
            self._enqueue(connection, row)
        else:
            _reject_other_request(row, task, version)

    def _enqueue(self, connection: sa.Connection, row: RunRow) -> None:
        """Enqueue the current segment of a run."""
        options: EnqueueOptions = {
            "workflow_name": "aros_run",
            "queue_name": row.queue or (self._queues[0] if self._queues else "default"),
            "workflow_id": row.workflow_id,
            "app_version": _VERSION,
            "queue_partition_key": row.partition or row.run_id,
        }
        if row.priority is not None:
            options["priority"] = row.priority
        self.client.enqueue_in_transaction(connection, options, row.run_id, row.segment)

    def handle(self, run_id: str) -> DurableHandle:
        """Return a handle to a run of this database, by its id."""
        return DurableHandle(self, run_id)

    def answer(self, row: RunRow, value: Any, *, here: bool = False) -> None:
        """Continue a paused run with an answer, on any worker. Raises `UsageError` if the run is not waiting for
        one."""
        if row.status != "paused":
            raise not_waiting(row.run_id, row.status)
        if not self._continue(row, here=here, answer={"value": as_saved(value, "the answer")}, takeovers=0):
            raise UsageError(f"run {row.run_id} has just been answered by someone else")

    def _asking(self, task: RunTask) -> RunRow:
        """Return the row of a run that is resumed. Raises `UsageError` if it is not here or asks another step."""
        row = self.store.find(task.run_id)
        if row is None:
            raise UsageError(
                f"run {task.run_id} is not in the durable database {self.store.shown}; resume it with the engine that "
                "it was started with, which is none for Runner(pipeline)"
            )
        if row.paused is not None and row.status == "paused" and row.paused["step"] != task.asked:
            raise UsageError(
                f"run {row.run_id} is now waiting for an answer to step {row.paused['step']!r}, not {task.asked!r}; "
                "resume it with its current state"
            )
        return row

    async def answer_here(self, runner: Runner, row: RunRow, value: Any, task: RunTask | None = None) -> RunResult:
        """Answer a paused run and continue it in this process, with the deps and the channel of the task."""
        await asyncio.to_thread(self.launch)
        if row.status == "paused" and self.register(runner) != row.version:
            raise UsageError(_other_version(row))
        await asyncio.to_thread(partial(self.answer, here=True), row, value)
        return await self._here(runner, task or _restarted_task(row), row.segment + 1)

    async def fork(self, runner: Runner, row: RunRow, at: str) -> RunResult:
        """Start a new run from the step `at` on, with the results of the steps before it.

        The version of the pipeline may differ from the version of the run. Raises `UsageError` if it has no such step,
        or if the run never reached it.
        """
        await asyncio.to_thread(self.launch)
        version = self.register(runner)
        task = replace(_restarted_task(row), run_id=uuid4().hex)

        def add() -> None:
            order = [step.name for step in runner.pipeline.steps]
            steps = self.store.steps(row.run_id)
            settled = {step.name: step for step in steps if step.record is not None and step.status != "paused"}
            if at not in order:
                raise UsageError(nearest(at, order, closed=True).after(f"the pipeline has no step {at!r} to fork at"))
            before = order[: order.index(at)]
            missing = [name for name in before if name not in settled]
            if missing:
                raise UsageError(
                    f"run {row.run_id} never settled {missing[0]!r}, which comes before {at!r}; fork at that step "
                    "instead"
                )
            kept = [step for step in settled.values() if step.name.partition("/")[0] in before]
            with self.store.connection() as connection:
                self._add(connection, task, version, "running", forked_from=row.run_id)
                self.store.copy_steps(connection, task.run_id, kept)

        await asyncio.to_thread(add)
        return await self._here(runner, task, 1)

    @property
    def under_way(self) -> int:
        """The number of runs that this process is executing."""
        return len(self._performed)

    def drain(self, seconds: float, cut: threading.Event | None = None) -> int:
        """Start no more runs, and let those in progress continue for this time, or until `cut` is set.

        Returns the number of runs that are then left for other workers.
        """
        self._draining = True
        end, cut = time.monotonic() + seconds, cut or threading.Event()
        while self._performed and time.monotonic() < end and not cut.is_set():
            cut.wait(_LOOK_SECONDS / 5)
        left = self.under_way
        if self._launched:
            DBOS.destroy(workflow_completion_timeout_sec=0 if left else 1)
            self._launched = False
        return left

    def leave(self) -> None:
        """Leave the runs of this process to be continued, even if their tasks are cancelled, as by Ctrl-C.

        The next start of such a run does not count as one after a crash, unless the database cannot be reached now.
        """
        self._draining = True
        with suppress(DatabaseError), self.store.connection() as connection:
            for run_id in list(self._active):
                self.store.change(connection, self.store.row(connection, run_id), takeovers=-1)

    def leaves(self, run_id: str) -> bool:
        """Return whether a run whose tasks were cancelled is left for other workers, because nobody requested a
        cancellation.
        """
        active = self._active.get(run_id)
        return self._draining and active is not None and not active.cancelled

    def cancel(self, row: RunRow) -> None:
        """Cancel a run: immediately if no worker is executing it, otherwise as soon as its worker notices."""
        if row.status not in (*OPEN, "cancelling"):
            return
        busy = (
            row.status in ("running", "cancelling") and row.executor is not None and self.locks.is_alive(row.executor)
        )
        if busy:
            with self.store.connection() as connection:
                self.store.change(connection, row, status="cancelling")
            return
        self.store.mark(row, "cancelled", "cancelled before it ended")

    # -- executing ---------------------------------------------------------------------------------------------

    async def perform(self, run_id: str, segment: int) -> str:
        """Execute a run in this process: the body of the engine's workflow."""
        local = self._local.get(run_id)
        self._performed[run_id] += 1
        try:
            row = await asyncio.to_thread(self.store.claim, run_id, segment, self.executor)
            if row is None:
                return "superseded"
            runner = await asyncio.to_thread(self._runner_for, row, local)
            if runner is None:
                return "parked"
            result = await self._execute(runner, row, local)
        except Superseded:
            return "superseded"
        except (ArosError, Unwritten, asyncio.CancelledError) as raised:
            error = raised.error if isinstance(raised, Unwritten) else raised
            if local is not None:
                local.error = error
            elif isinstance(error, (DatabaseError, asyncio.CancelledError)):
                raise error from raised  # the run continues when the database is back, or in another process
            else:
                await asyncio.to_thread(self._give_up, run_id, str(error))
            return "failed"
        finally:
            self._performed[run_id] -= 1
            if not self._performed[run_id]:
                del self._performed[run_id]
        if local is not None:
            local.result = result
        return result.status.value

    def _give_up(self, run_id: str, why: str) -> None:
        """Mark a run as failed because it cannot be executed."""
        row = self.store.find(run_id)
        if row is not None and row.executor == self.executor:
            self._leave_unexecuted(row, "failed", why)

    def _leave_unexecuted(self, row: RunRow, status: str, why: str) -> None:
        self.store.mark(row, status, why)
        if self.on_unexecuted is not None:
            self.on_unexecuted(row, status, why)

    def _runner_for(self, row: RunRow, local: _Local | None) -> Runner | None:
        """Return the runner that executes a run here, or None for a run that is parked for others,
        which is recorded.
        """
        if row.takeovers > _MOST_TAKEOVERS:
            self._leave_unexecuted(row, "failed", _why_given_up(row))
            return None
        if local is not None:
            return local.runner
        runner = self._runner_or_reason(row)
        if isinstance(runner, Runner):
            return runner
        self._leave_unexecuted(row, "parked", runner)
        return None

    def _runner_or_reason(self, row: RunRow) -> Runner | str:
        """Return the runner that executes a run here, or the reason why this process cannot execute it."""
        runner = self.runners.get(row.version) or self._load_runner(row)
        if isinstance(runner, str):
            return runner
        self.runners[row.version] = runner
        without = None if row.version in self._deps else step_with_deps(runner.pipeline)
        return runner if without is None else no_deps(without)

    def _load_runner(self, row: RunRow) -> Runner | str:
        """Return a runner from the blueprint of a run, or the reason why there is none."""
        document = None if self.load is None else self.store.document(row.version)
        if document is None or self.load is None:
            return f"{_other_version(row)}; no worker here knows that version"
        try:
            runner = self.load(document)
        except ArosError as error:
            return f"this worker cannot load its blueprint: {error}"
        return runner if version_of(runner.pipeline) == row.version else _other_version(row)

    async def _execute(self, runner: Runner, row: RunRow, local: _Local | None) -> RunResult:
        store = self.store
        segments = [workflow_of(row.run_id, number) for number in range(1, row.segment + 1)]
        begun = row.epoch > 1 or row.segment > 1 or row.forked_from is not None
        rows = await asyncio.to_thread(store.steps, row.run_id) if begun else []
        calls, highest = await asyncio.to_thread(store.calls, segments) if begun else ({}, 0)
        texts = await asyncio.to_thread(store.texts, row.run_id) if begun and row.live else []
        draw_ids(highest)
        limiter = SharedLimits(store, self.limits) if self.limits else None
        recording = RunRecording(
            store,
            row,
            runner.pipeline,
            rows,
            calls,
            Checkpoints(self._engine_rows, store, row),
            limiter=limiter,
            texts=texts,
            observers=runner.observers,
        )
        task = task_of(row, recording, local, self._deps.get(row.version))
        loop = asyncio.get_running_loop()
        inner = asyncio.ensure_future(runner.execute(task, recording))
        active = self._active[row.run_id] = _Active(inner, loop)
        try:
            result = await inner
        except asyncio.CancelledError:
            if task.result is None or not active.cancelled:
                raise  # this process ends: the run is left unchanged, for others to continue
            await recording.finish(task.result)
            if local is not None:
                raise
            return task.result
        finally:
            recording.stop()
            if self._active.get(row.run_id) is active:  # otherwise this process has taken over the run itself
                del self._active[row.run_id]
        status = await recording.finish(result)
        if status != result.status.value:
            trouble = "a step started but never settled"
            return replace(result, status=RunStatus(status), trouble=trouble)
        return result

    # -- watching ----------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Hold the lock, cancel runs on request, and, as a worker, take over the runs of dead processes."""
        looks = 0
        while not self._stop.wait(_LOOK_SECONDS):
            try:
                if not self.locks.hold():
                    continue
                self._cancel_asked()
                if self._queues and not self._draining:
                    self._take_over(looks)
                    looks += 1
                    if looks % _LOOKS_AT_PARKED == 1:
                        self._unpark()
            except (ArosError, SQLAlchemyError, engine_errors.DBOSException):
                continue  # the database cannot be reached: try again

    def _cancel_asked(self) -> None:
        if not self._active:
            return
        for run_id in self.store.cancelling(self.executor):
            active = self._active.get(run_id)
            if active is not None and not active.cancelled:
                active.cancelled = True
                active.loop.call_soon_threadsafe(active.task.cancel)

    def _take_over(self, looks: int) -> None:
        """Continue runs whose process is gone, and those whose workflow the engine has given up for another reason.

        That happens if the database cannot be reached for a while, or the engine cannot decode one of its rows. Two
        consecutive checks must agree, because a run that is just starting looks the same for a moment.
        """
        others = [each for each in self.store.executors() if each != self.executor]
        dead = {executor for executor in others if not self.locks.is_alive(executor)}
        if dead:
            DBOS._recover_pending_workflows([*dead])  # pyright: ignore[reportPrivateUsage]
        thorough = looks % _LOOKS_AT_FORGOTTEN == 0
        if not dead and not thorough:
            return
        forgotten: set[str] = set()
        for row, dequeued in self.store.lost(self.executor):
            if row.executor in dead and not dequeued:
                self._adopt(row)
                continue
            ours = row.run_id in self._local or row.run_id in self._performed  # executed here, or about to be
            if thorough and (dequeued or row.executor in (None, self.executor)) and not ours:
                forgotten.add(row.run_id)
                if row.run_id in self._forgotten:
                    with suppress(engine_errors.DBOSException):
                        DBOS.cancel_workflow(row.workflow_id)
                    self._adopt(row)
        if thorough:
            self._forgotten = forgotten

    def _unpark(self) -> None:
        """Continue parked runs of the versions that this process has."""
        for row in self.store.runs(statuses=["parked"], limit=1000):
            # not through a queue, from which a worker without that version might take it
            if isinstance(self._runner_or_reason(row), Runner) and self._continue(row, here=True, note=None):
                with SetWorkflowID(workflow_of(row.run_id, row.segment + 1)):
                    DBOS.start_workflow(_aros_run, row.run_id, row.segment + 1)

    def _adopt(self, row: RunRow) -> None:
        """Continue a run that the engine does not consider in progress."""
        if row.status == "cancelling":
            self.store.mark(row, "cancelled", "cancelled before it ended")
        elif row.takeovers >= _MOST_TAKEOVERS:
            self.store.mark(row, "failed", _why_given_up(row))
        else:
            self._continue(row, takeovers=row.takeovers + 1)


def version_of(pipeline: Pipeline) -> str:
    """Return a hash of everything that determines what a run does: its steps with their contracts,
    and their ladders.
    """
    found = [step.facts.ladder for step in every_step(pipeline) if isinstance(step, Step)]
    ladders = [ladder and ladder.model_dump(mode="json") for ladder in found]
    return hashlib.sha256(json.dumps([fingerprint(pipeline), ladders]).encode()).hexdigest()


def not_waiting(run_id: str, status: str) -> UsageError:
    """Return the error for an answer to a run that is not paused."""
    ended = {"completed": "has completed", "failed": "has failed", "cancelled": "was cancelled"}
    return UsageError(f"run {run_id} {ended.get(status, f'is {status}')} and is not waiting for an answer")


def no_deps(step: str) -> str:
    """Return the message for a run that a process cannot execute because it has no `deps`."""
    return (
        f"the agent of step {step!r} needs deps, which are not stored with a run; "
        "pass them to the process that executes it:  engine.register(runner, deps=...), or aros worker --deps"
    )


def task_of(row: RunRow, recording: RunRecording, local: _Local | None = None, deps: Any = None) -> RunTask:
    """Return the task of a run, from its row and from `local` and `deps`, which only this process has."""
    value: Any = as_given(row.context or {})
    given: Any = as_given(row.input)
    channel = None
    if local is not None:
        given, channel = local.task.given, local.task.channel
        deps = deps if local.task.deps is None else local.task.deps
        kept: Any = local.task.shared.value
        value = type(kept).model_validate(value) if isinstance(kept, BaseModel) else value
    step_name = row.paused["step"] if row.paused is not None and row.answer is not None else None
    answer = None if row.answer is None else Answer(row.answer["value"])
    before = dict(recording.before)
    # A killed process has not recorded its time, only that of its steps. The steps of a fork ran in another run.
    kept = () if row.forked_from else recording.recorded.items()
    settled = sum(slot.result.seconds for name, slot in kept if "/" not in name)
    if seconds := max(row.seconds, settled):
        before[""] = Work(seconds=seconds)
    shared = SharedContext.of(value)
    task = RunTask(
        row.run_id, given, shared, deps, recording.recorded, step_name, answer, channel=channel, before=before
    )
    task.deferred = recording.deferred
    task.carrier = dict(row.carrier or {})
    task.resumed = row.epoch > 1
    return task


def _restarted_task(row: RunRow) -> RunTask:
    """Return the task of a run that starts again, with the same input and context."""
    return RunTask(row.run_id, as_given(row.input), SharedContext.of(as_given(row.context or {})))


def _context_of(task: RunTask) -> Any:
    return as_saved(task.shared.value, "the context")


def _request_of(task: RunTask) -> str:
    """Return a hash of the input and context of a run: equal hashes are the same request."""
    saved = [as_saved(task.given, "the input"), _context_of(task)]
    return hashlib.sha256(json.dumps(saved, sort_keys=True).encode()).hexdigest()


def _reject_other_request(row: RunRow, task: RunTask, version: str) -> None:
    """Raise `UsageError` if the run with this id is a different request or has a different version."""
    if row.request != _request_of(task):
        raise UsageError(another_request(row.run_id))
    if row.version != version and row.status in OPEN:
        raise UsageError(_other_version(row))


def another_request(run_id: str) -> str:
    """Return the message for a `run_id` that belongs to another request."""
    return f"run {run_id!r} was started with a different input or context; use a different run ID"


def _other_version(row: RunRow) -> str:
    return (
        f"run {row.run_id} was started with a different version of {row.pipeline!r}: its steps, contracts or ladder "
        "have changed since; run it with that version, or continue from its results, with the same --allow and --path: "
        f"aros fork {row.run_id} --at STEP"
    )


def _why_given_up(row: RunRow) -> str:
    return (
        f"its process has died {row.takeovers + 1} times during this run, so the run is not retried; find out what "
        f"ends the process, then continue from the results of the run: aros fork {row.run_id} --at STEP"
    )


__all__ = ["Document", "Durable", "Load"]
