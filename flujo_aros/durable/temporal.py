"""Durable runs on Temporal: the run is a workflow, and each model call or function of it is one activity.

Temporal replays a workflow from its history after a crash, so nothing else is stored: the results of steps are computed
again, and their calls are answered from the history. The pipeline runs inside the workflow, on its event loop;
everything with side effects (models, tools, functions of `Call`) runs as an activity in the same process, on its own
task queue. If that process dies, its heartbeat stops, and another worker replays the run up to that call and makes it.

The workflow is not sandboxed: see `docs/decisions/022-temporal-without-its-sandbox.md`.
"""

from __future__ import annotations

import asyncio
import builtins
import contextvars
import os
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any, Final, Self, TypeAlias, TypeVar, cast
from urllib.parse import urlsplit
from uuid import uuid4

from flujo_aros.durable.engine import another_request, no_deps, not_waiting, task_of, version_of
from flujo_aros.durable.handle import result_of, violations_in_rows
from flujo_aros.durable.recorder import Keep, RunRecording, Table
from flujo_aros.durable.store import Ending, RunRow, StepRow
from flujo_aros.errors import ArosError, UsageError
from flujo_aros.host.recorded import CallMade, PendingCall, Record, recorder
from flujo_aros.lazy import naming_extra
from flujo_aros.pipeline.model import PipelineStep
from flujo_aros.pipeline.pause import as_given, as_saved, step_with_deps
from flujo_aros.pipeline.results import RunResult
from flujo_aros.pipeline.runner import Runner, RunTask, StreamEvent
from flujo_aros.pipeline.step import Call, changed

with naming_extra("flujo_aros.durable.temporal", "flujo_aros.durable.temporal"):
    from temporalio import activity, workflow
    from temporalio.bridge.proto.workflow_activation import RemoveFromCache, WorkflowActivation, WorkflowActivationJob
    from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
    from temporalio.common import RetryPolicy, WorkflowIDReusePolicy
    from temporalio.exceptions import (
        ActivityError,
        ApplicationError,
        ApplicationErrorCategory,
        TemporalError,
        WorkflowAlreadyStartedError,
        is_cancelled_exception,
    )
    from temporalio.exceptions import TimeoutError as WorkerLost
    from temporalio.worker import UnsandboxedWorkflowRunner, Worker

T = TypeVar("T")
Journal: TypeAlias = dict[str, Any]
"""A run, its steps and the keys of its calls, as plain JSON."""

_HEARTBEAT: Final = timedelta(seconds=5)
_LONGEST_CALL: Final = timedelta(hours=2)
_PICKED_UP: Final = timedelta(seconds=10)
_TAKEN_OVER: Final = timedelta(seconds=1)
_LOOK_SECONDS: Final = 0.5
_NOT_HERE: Final = "aros_not_here"
_open: Temporal | None = None


class _Rows:
    """Keeps the rows of a run in the memory of its workflow; a replay computes them again."""

    def __init__(self, run: RunRow) -> None:
        self.run = run
        self.steps: dict[str, StepRow] = {}

    def write(self, run_id: str, epoch: int, starts: Table, settled: Table = (), texts: Table = ()) -> None:
        """Record which steps start, and how steps have settled. Live text is not stored."""
        del epoch, texts
        for row in (*starts, *settled):
            new = StepRow(run_id=run_id, name=row["name"], kind=row["kind"], seq=row["seq"])
            ended: dict[str, Any] = {key: row.get(key) for key in ("settled_seq", "status", "record")}
            self.steps[new.name] = replace(self.steps.get(new.name, new), **ended)

    def finish(self, run_id: str, epoch: int, starts: Table, settled: Table, ending: Ending) -> str:
        """Record how the run has ended. Returns its final status."""
        self.write(run_id, epoch, starts, settled)
        gated = ending.gated([step.name for step in self.steps.values() if step.status is None])
        self.run = replace(self.run, **gated.columns(workflow.time()))
        return gated.status


class _Recording(RunRecording):
    """The recording of a run inside its workflow: waits are Temporal's timers, which survive a crash.

    Starts are recorded immediately: a delay would be a Temporal timer, and a row in memory costs nothing.
    """

    start_within = 0.0

    async def wait(self, name: str, seconds: float) -> None:
        """Wait before a retry."""
        del name
        await asyncio.sleep(seconds)


@workflow.defn(name="aros_run", sandboxed=False)
class _ArosRun:
    """One run, with its pauses."""

    def __init__(self) -> None:
        self._rows: _Rows | None = None
        self._calls: dict[str, Record] = {}
        self._answer: dict[str, Any] | None = None

    @workflow.run
    async def run(self, given: dict[str, Any]) -> dict[str, Any]:
        """Execute the run to its end."""
        engine = _open_engine()
        runner = engine.inside.get(given["version"])
        if runner is None:  # fails this task, not the run, which continues on a worker that knows the pipeline
            raise RuntimeError(f"this worker does not know version {given['version']} of {given['pipeline']!r}")
        without = None if given["version"] in engine.deps else step_with_deps(runner.pipeline)
        if without is not None:
            raise RuntimeError(no_deps(without))
        row = RunRow(**given, status="running", epoch=1)
        self._rows = rows = _Rows(row)
        with _complete_loop():
            while await self._segment(runner, row, rows) == "paused":
                await workflow.wait_condition(lambda: self._answer is not None)
                row = replace(rows.run, status="running", epoch=row.epoch + 1, segment=row.segment + 1)
                row = rows.run = replace(row, answer=self._answer)
                self._answer = None
        return self.journal()

    async def _segment(self, runner: Runner, row: RunRow, rows: _Rows) -> str:
        steps, calls = list(rows.steps.values()), dict(self._calls)
        recording = _Recording(rows, row, runner.pipeline, steps, calls, self._make_call)
        task = task_of(row, recording, deps=_open_engine().deps.get(row.version))
        try:
            result = await runner.execute(task, recording)
        except asyncio.CancelledError:
            if task.result is None:
                raise
            result = task.result
        return await recording.finish(result)

    async def _make_call(self, key: str, make: Callable[[], Awaitable[Record]], keep: Keep) -> Record:
        """Make a call as one activity. If its worker is lost, the worker that continues the run makes it again."""
        del keep  # the workflow keeps calls in memory, like its steps
        record = self._calls[key] = await _open_engine().make(workflow.info().workflow_id, key, make)
        return record

    @workflow.query
    def journal(self) -> dict[str, Any]:
        """Return the run, its steps and the keys of its calls, as plain JSON."""
        if self._rows is None:
            return {"run": None, "steps": [], "calls": []}
        steps = [asdict(step) for step in self._rows.steps.values()]
        return {"run": asdict(self._rows.run), "steps": steps, "calls": list(self._calls)}

    @workflow.signal
    def answer(self, value: dict[str, Any]) -> None:
        """Receive the answer to a pause."""
        if self._rows is not None and self._rows.run.status == "paused" and self._answer is None:
            self._answer = value


def _open_engine() -> Temporal:
    if _open is None:
        raise AssertionError("a workflow is running without an engine")
    return _open


@contextmanager
def _complete_loop() -> Generator[None]:
    """Add the methods that the pipeline needs and Temporal's event loop lacks.

    The few functions that would run in a thread, all of them quick and pure, run immediately. The loop reports itself
    as closed when the workflow has ended, so that nothing that is cached per loop outlives it.
    """
    loop = cast("Any", asyncio.get_running_loop())
    ended = False

    def run_in_executor(_: object, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        done: asyncio.Future[T] = loop.create_future()
        done.set_result(func(*args))
        return done

    loop.run_in_executor = run_in_executor
    loop.is_closed = lambda: ended
    try:
        yield
    finally:
        ended = True


class Temporal:
    """An engine that keeps runs in Temporal: `Runner(pipeline, engine=Temporal("temporal://localhost:7233/default"))`.

    `url` names the server and the namespace, and `queue` the task queue that workers share. Values are plain data, as
    with `Durable`; functions of `Call` are activities, while conditions, mappers and checks run inside the workflow and
    must be pure. `docs/temporal.md` lists the features of `Durable` that are missing here.

    Use it as an async context manager, or `await close()`. Raises `UsageError` for an invalid URL, and if the server
    cannot be reached.
    """

    def __init__(self, url: str, *, queue: str = "aros") -> None:
        parts = urlsplit(url)
        if parts.scheme != "temporal" or not parts.hostname:
            raise UsageError(f"{url!r} is not the URL of a Temporal server; write temporal://HOST:7233/NAMESPACE")
        self.url = url
        self.queue = queue
        self.inside: dict[str, Runner] = {}
        self.deps: dict[str, Any] = {}
        self._address = f"{parts.hostname}:{parts.port or 7233}"
        self._namespace = parts.path.strip("/") or "default"
        self._own_queue = f"{queue}-{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:8]}"
        self._makes: dict[tuple[str, str], tuple[Callable[[], Awaitable[Record]], contextvars.Context]] = {}
        self._client: Client | None = None
        self._launching = asyncio.Lock()
        self._waiting = 0
        self._stays = False
        self._workers: AsyncExitStack | None = None

    async def client(self) -> Client:
        """Return the connection to the server."""
        if self._client is None:
            try:
                self._client = await Client.connect(self._address, namespace=self._namespace)
            except RuntimeError as error:
                raise UsageError(f"the Temporal server {self.url!r} cannot be reached: {error}") from error
        return self._client

    def register(self, runner: Runner, deps: Any = None) -> str:
        """Let this process execute the runs of a pipeline, wherever they are started. Returns the pipeline's version.

        `deps` is the `ctx.deps` of its agents. A process without it does not execute the runs of an agent that declares
        a `deps_type`; Temporal offers them to another.
        """
        local = [name for name in runner.pipeline.models if name.startswith("local:")]
        if local and runner.models is None:
            raise UsageError(
                f"{local[0]} is started for each run, which a workflow cannot do; serve the model yourself, or use "
                "Durable"
            )
        version = version_of(runner.pipeline)
        if version not in self.inside:
            pipeline = changed(runner.pipeline, _as_activity)
            self.inside[version] = Runner(pipeline, models=runner.models, usage_limits=runner.usage_limits)
        if deps is not None:
            self.deps[version] = deps
        return version

    async def launch(self) -> None:
        """Start executing runs, wherever they are started."""
        global _open
        async with self._launching:
            if self._workers is not None:
                return
            if _open is not None and _open is not self:
                raise UsageError(f"this process already has {_open.url!r} open; close that one first")
            client = await self.client()
            calls = Worker(client, task_queue=self._own_queue, activities=[self._call])
            runs = Worker(
                client,
                task_queue=self.queue,
                workflows=[_ArosRun],
                workflow_runner=UnsandboxedWorkflowRunner(),
                sticky_queue_schedule_to_start_timeout=_TAKEN_OVER,
                debug_mode=True,  # otherwise reading a long reply counts as a deadlock
            )
            _open, self._workers = self, AsyncExitStack()
            await self._workers.enter_async_context(calls)
            self._workers.push_async_callback(_evict, runs)
            await self._workers.enter_async_context(runs)

    async def close(self) -> None:
        """Stop executing. Runs in progress are left for other workers to continue."""
        global _open  # noqa: PLW0603 - as in `launch`
        workers, self._workers, self._client = self._workers, None, None
        try:
            if workers is not None:
                await workers.aclose()
        finally:
            if _open is self:
                _open = None

    async def __aenter__(self) -> Self:
        self._stays = True
        await self.launch()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stays = False
        await self.close()

    async def run(self, runner: Runner, task: RunTask) -> RunResult:
        """Execute a run, here or in another worker, or continue the run with this id.

        Outside of `async with`, this process executes runs only while it awaits one. Raises `UsageError` for a paused
        run with an answer, which may be waiting in another worker.
        """
        if task.answer is not None:
            raise UsageError(
                f"a run on Temporal is answered through its handle: await temporal.handle({task.run_id!r}).answer(...)"
            )
        self._waiting += 1
        try:
            await self.launch()
            handle = await self.submit(runner, task)
            try:
                return await handle.result()
            except asyncio.CancelledError:
                await asyncio.shield(handle.cancel())
                raise
        finally:
            self._waiting -= 1
            if not self._waiting and not self._stays:
                await self.close()

    async def submit(self, runner: Runner, task: RunTask) -> TemporalHandle:
        """Start a run. Any worker that has the pipeline registered executes it."""
        if task.queue != "default" or task.priority is not None or task.partition is not None:
            raise UsageError(
                "runs on Temporal do not support priorities or partitions, and their queue is set on the engine: "
                "Temporal(url, queue=…)"
            )
        if task.deps is not None:
            raise UsageError(
                "any worker may execute a run on Temporal, so deps belong to the workers: "
                "temporal.register(runner, deps=...)"
            )
        version = self.register(runner)
        given = {
            "run_id": task.run_id,
            "pipeline": runner.pipeline.name,
            "version": version,
            "request": "",
            "input": as_saved(task.given, "the input"),
            "context": as_saved(task.shared.value, "the context"),
        }
        client, reject = await self.client(), WorkflowIDReusePolicy.REJECT_DUPLICATE
        with suppress(WorkflowAlreadyStartedError):  # the run with that id continues, or has ended
            await client.start_workflow(
                "aros_run", given, id=task.run_id, task_queue=self.queue, id_reuse_policy=reject
            )
        return TemporalHandle(self, task.run_id, given)

    def handle(self, run_id: str) -> TemporalHandle:
        """Return a handle to a run of this namespace, by its id."""
        return TemporalHandle(self, run_id)

    async def make(self, run_id: str, key: str, make: Callable[[], Awaitable[Record]]) -> Record:
        """Make a call as one activity of this process, from inside a workflow."""
        place = run_id, key
        while True:
            self._makes[place] = make, contextvars.copy_context()
            try:
                return cast(
                    "Record",
                    await workflow.execute_activity(
                        "aros_call",
                        args=[run_id, key],
                        task_queue=self._own_queue,
                        summary=key,
                        start_to_close_timeout=_LONGEST_CALL,
                        schedule_to_start_timeout=_PICKED_UP,
                        heartbeat_timeout=_HEARTBEAT,
                        retry_policy=RetryPolicy(maximum_attempts=1),
                    ),
                )
            except ActivityError as failed:
                if is_cancelled_exception(failed):
                    raise asyncio.CancelledError(str(failed)) from failed
                if not _is_lost(failed):
                    raise _rebuild_error(failed) from failed
            finally:
                self._makes.pop(place, None)

    @activity.defn(name="aros_call")
    async def _call(self, run_id: str, key: str) -> Record:
        """Make a call of a run that is executed in this process."""
        found = self._makes.get((run_id, key))
        if found is None:
            raise _not_here(f"{key} of run {run_id} is no longer executed by this process")
        make, context = found
        making = asyncio.get_running_loop().create_task(_await(make), context=context)
        try:
            while not making.done():
                await asyncio.wait([making], timeout=_HEARTBEAT.total_seconds() / 4)
                activity.heartbeat()
        except asyncio.CancelledError:
            making.cancel()
            await asyncio.wait([making])
            why = activity.cancellation_details()
            if why is not None and why.worker_shutdown:  # the run was not cancelled
                raise _not_here(f"the worker that makes {key} is shutting down") from None
            raise
        return making.result()


def _not_here(message: str) -> ApplicationError:
    """Return the error for a call that this process did not make. It is expected, so Temporal logs no traceback."""
    return ApplicationError(message, type=_NOT_HERE, category=ApplicationErrorCategory.BENIGN)


async def _evict(worker: Worker) -> None:
    """Cancel the workflows still cached by a worker that has shut down, as it does when its cache is full.

    Otherwise the garbage collector ends them, at any time and in any thread, in the middle of their steps.
    """
    workflows = worker._workflow_worker  # pyright: ignore[reportPrivateUsage]
    held = {} if workflows is None else dict(workflows._running_workflows)  # pyright: ignore[reportPrivateUsage]
    for run, running in held.items():
        jobs = [WorkflowActivationJob(remove_from_cache=RemoveFromCache())]
        await asyncio.to_thread(running.activate, WorkflowActivation(run_id=run, jobs=jobs))


async def _await(make: Callable[[], Awaitable[T]]) -> T:
    return await make()


def _is_lost(failed: ActivityError) -> bool:
    """Return whether the worker is lost, so that the outcome of the call is unknown."""
    cause = failed.cause
    return isinstance(cause, WorkerLost) or (isinstance(cause, ApplicationError) and cause.type == _NOT_HERE)


def _rebuild_error(failed: ActivityError) -> Exception:
    """Return the error of a function, rebuilt from its type and its message if possible."""
    cause = failed.cause
    if not isinstance(cause, ApplicationError):
        return failed
    known = getattr(builtins, cause.type or "", None)
    if isinstance(known, type) and issubclass(known, Exception) and not issubclass(known, UnicodeError):
        return known(cause.message)
    return FunctionFailed(f"{cause.type}: {cause.message}")


class FunctionFailed(ArosError):
    """The error of a function that failed in an activity, by its type and message."""


def _as_activity(step: PipelineStep) -> PipelineStep | None:
    """Return a step that calls a function, with the function as an activity, or None for other steps."""
    if not isinstance(step, Call):
        return None

    async def function(value: Any, /, **params: Any) -> Any:
        calls = recorder()
        if calls is None:
            raise AssertionError(f"step {step.name!r} runs outside of a recorded run")

        async def make() -> CallMade:
            return CallMade({"value": as_saved(await step.call(value, **params), f"the value of step {step.name!r}")})

        return as_given((await calls.call(PendingCall("function", make)))["value"])

    return replace(step, function=function)


class TemporalHandle:
    """A handle to one run. It has no state: every method queries the server."""

    def __init__(self, engine: Temporal, run_id: str, given: Mapping[str, Any] | None = None) -> None:
        self._engine = engine
        self.run_id = run_id
        """The id of the run."""
        self._given = given

    async def _workflow(self) -> WorkflowHandle[Any, Any]:
        return (await self._engine.client()).get_workflow_handle(self.run_id)

    async def _journal(self) -> Journal:
        """Return the state of the run. Raises `UsageError` if the server, or every worker, is unreachable."""
        try:
            journal: Journal = await (await self._workflow()).query("journal")
        except TemporalError as error:
            raise UsageError(f"the state of run {self.run_id} cannot be queried: {error}") from error
        return journal

    async def status(self) -> str:
        """queued, running, paused, completed, degraded, failed or cancelled. Needs a running worker."""
        run = (await self._journal())["run"]
        return "queued" if run is None else str(run["status"])

    async def result(self) -> RunResult:
        """Wait until the run ends or pauses, and return its result.

        Raises `UsageError` for a run that was started with a different input, or that Temporal itself has ended.
        """
        waiting = asyncio.ensure_future((await self._workflow()).result())
        try:
            while True:
                await asyncio.wait([waiting], timeout=_LOOK_SECONDS)
                if waiting.done():
                    return self._result_of(waiting.result())
                with suppress(UsageError):  # no worker can tell whether it is paused
                    journal = await self._journal()
                    if journal["run"] is not None and journal["run"]["status"] == "paused":
                        return self._result_of(journal)
        except WorkflowFailureError as error:
            raise UsageError(f"run {self.run_id} was ended by Temporal: {error.cause}") from error
        finally:
            waiting.cancel()

    def _result_of(self, journal: Journal) -> RunResult:
        row, steps = RunRow(**journal["run"]), [StepRow(**step) for step in journal["steps"]]
        if self._given is not None and (row.input, row.context) != (self._given["input"], self._given["context"]):
            raise UsageError(another_request(self.run_id))
        runner = self._engine.inside.get(row.version)
        return result_of(row, steps, None if runner is None else runner.pipeline)

    def stream(self, offset: int = 0) -> AsyncGenerator[tuple[int, StreamEvent]]:  # noqa: ARG002 - as in `Handle`
        """Raise `UsageError`: Temporal's history is not a stream of events."""
        raise UsageError("a run on Temporal cannot be followed event by event; poll its status, or use Durable")

    async def cancel(self) -> None:
        """Cancel the run. Its open steps settle first."""
        await (await self._workflow()).cancel()

    async def answer(self, value: Any) -> None:
        """Answer a paused run. Raises `UsageError` if it is not paused."""
        status = await self.status()
        if status != "paused":
            raise not_waiting(self.run_id, status)
        await (await self._workflow()).signal("answer", {"value": as_saved(value, "the answer")})

    async def check(self) -> list[str]:
        """Return the invariants that the run violates, as `aros check` reports them."""
        journal = await self._journal()
        steps = [StepRow(**step) for step in journal["steps"]]
        return violations_in_rows(RunRow(**journal["run"]), steps, (), journal["calls"]) if journal["run"] else []


__all__ = ["Temporal", "TemporalHandle"]
