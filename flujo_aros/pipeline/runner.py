"""Runs pipelines: from an input to a result, as a stream of events, or from a paused state."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeAlias, cast
from uuid import uuid4

from pydantic import BaseModel

from flujo_aros.errors import UsageError
from flujo_aros.events import (
    UNHEARD,
    Event,
    LiveEvent,
    Observer,
    RunFinished,
    RunStarted,
    StepFinished,
    StepStarted,
    current_observers,
    is_observer,
    observing,
    span,
)
from flujo_aros.host import source_of
from flujo_aros.pipeline.execution import Budget, Execution, Frame, LiveOf, Recording, Sleep
from flujo_aros.pipeline.ledger import PauseRun, RunLedger, Slot, emit_run_finished
from flujo_aros.pipeline.model import Answer, Pipeline, PipelineStep, StepLimits, as_pipeline
from flujo_aros.pipeline.options import Option, has, is_a, known_options, reject_wrong_option
from flujo_aros.pipeline.pause import as_given, every_step, fingerprint, paused_run, slots_of
from flujo_aros.pipeline.results import DeferredWork, PausedRun, RunResult, RunStatus, StepResult, T_co, Work
from flujo_aros.pipeline.values import ContextLike, SharedContext
from flujo_aros.redaction import secrets_among
from flujo_aros.settings import current_settings

if TYPE_CHECKING:
    from flujo_aros.host import Models, ModelSource
    from flujo_aros.recovery import Evidence

Saved: TypeAlias = PausedRun | Mapping[str, Any]
"""The state of a paused run, as an object or as the plain JSON of `to_dict`."""
StreamedEvent: TypeAlias = RunStarted | StepStarted | StepFinished | RunFinished | LiveEvent


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event of a streamed run. `step` is the full name of its step, or None for the run itself.

    `event` is a `RunStarted`, `StepStarted`, `TextDelta`, `PartialValue`, `TextReplaced`, `TextAppended`,
    `StepFinished` or `RunFinished`. `result` is the step's result with a `StepFinished`, and the run's with the final
    `RunFinished`.
    """

    step: str | None
    event: StreamedEvent
    result: StepResult[Any] | RunResult | None = None


class EventChannel:
    """Takes events from a run and passes them to one consumer.

    It buffers at most `size` chunks of replies and step starts; further ones have to wait. The end of a step never
    waits, so that a run can always settle.
    """

    def __init__(self, size: int) -> None:
        if size < 1:
            raise UsageError(f"buffer must be 1 or more, not {size!r}")
        self.ledger: RunLedger | None = None
        self.result: RunResult | None = None
        self._events: asyncio.Queue[tuple[StreamEvent, bool] | None] = asyncio.Queue()
        self._room = asyncio.Semaphore(size)

    async def live(self, step: str, event: LiveEvent) -> None:
        """Take a chunk of a reply as soon as there is room."""
        await self.gate()
        self._put(StreamEvent(step, event), held=True)

    async def gate(self) -> None:
        """Wait until there is room for the step that is about to start."""
        await self._room.acquire()

    def observe(self, event: Event) -> None:
        """Take an event of the run itself."""
        if isinstance(event, StepStarted):
            self._put(StreamEvent(event.name, event), held=True)
        elif isinstance(event, StepFinished):
            result = None if self.ledger is None else self.ledger.result_of(event.name)
            self._put(StreamEvent(event.name, event, result))
        elif isinstance(event, (RunStarted, RunFinished)):
            self._put(StreamEvent(None, event, self.result if isinstance(event, RunFinished) else None))

    async def events(self, run: Callable[[], Awaitable[RunResult]]) -> AsyncGenerator[StreamEvent]:
        """Start the run and yield its events until it has ended. Its exception is raised after the last one."""
        running = asyncio.ensure_future(run())
        running.add_done_callback(lambda _: self._events.put_nowait(None))
        try:
            while (found := await self._events.get()) is not None:
                event, held = found
                if held:
                    self._room.release()
                yield event
            await running
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait([running])

    def _put(self, event: StreamEvent, *, held: bool = False) -> None:
        self._events.put_nowait((event, held))


_LOCAL = "local:"
_LEAST_SECRET = 8


class Handle(Protocol):
    """A handle to a run, wherever it is executed: its id, its status, and operations on it."""

    @property
    def run_id(self) -> str:
        """The id of the run."""
        ...

    async def status(self) -> str:
        """Return the status: queued, running, paused, parked, completed, degraded, failed or cancelled."""
        ...

    async def result(self) -> RunResult:
        """Wait for the result of the run, which may be paused."""
        ...

    def stream(self, offset: int = 0) -> AsyncGenerator[tuple[int, StreamEvent]]:
        """Return the events of the run from an offset on, each with the next offset, until the run has ended."""
        ...

    async def cancel(self) -> None:
        """Cancel the run."""

    async def answer(self, value: Any) -> None:
        """Answer a paused run, which then continues."""


class Engine(Protocol):
    """Executes runs: in this process only (`InProcess`), or surviving crashes (`Durable`)."""

    async def run(self, runner: Runner, task: RunTask) -> RunResult:
        """Execute a run and return its result."""
        ...

    async def submit(self, runner: Runner, task: RunTask) -> Handle:
        """Start a run without waiting for it."""
        ...


class InProcess:
    """The default engine: a run ends with this process. Nothing is stored and nothing has to be installed."""

    async def run(self, runner: Runner, task: RunTask) -> RunResult:
        """Execute a run here."""
        return await runner.execute(task)

    async def submit(self, *_: Any, **__: Any) -> Handle:
        """Raise `UsageError`, because a run in the background has to be stored somewhere."""
        raise UsageError(
            "submit needs an engine that stores runs: Runner(pipeline, engine=Durable('sqlite:///runs.sqlite')); "
            "without one, use `await runner.run(...)`"
        )


def _or_none(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or fits(value)


def _are_observers(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(map(is_observer, cast("Sequence[Any]", value)))


_OPTIONS: Final = {
    "journal": Option(
        words="a Journal, or any function of an event, or None",
        hint='use `Journal("runs.sqlite")`',
        fits=_or_none(is_observer),
    ),
    "observers": Option(
        words="a list of functions of an event",
        hint="`observers=[function]`, even for a single function, which must not be async",
        fits=_are_observers,
    ),
    "on_result": Option(words="a function of a RunResult, or None", fits=_or_none(callable)),
    "usage_limits": Option(
        words="StepLimits, or None", hint="use `StepLimits(max_requests=3)`", fits=_or_none(is_a("StepLimits"))
    ),
    "models": Option(
        words="a pydantic-ai Model, a source of models, which has `model(name)`, or None",
        hint="in tests `ScriptedModel(reply)`; otherwise an object with `async def model(self, name)`",
        fits=lambda value: value is None or has("model")(value) or is_a("Model")(value),
    ),
    "engine": Option(
        words="an engine, or None",
        hint="`InProcess()` is the default, and `Durable(url)` survives crashes",
        fits=_or_none(has("run", "submit")),
    ),
}


@known_options
class Runner(Generic[T_co]):
    """Runs a pipeline any number of times; it holds no state between runs.

    `journal` records the runs: a `Journal`, or any observer. `observers` receive every event of a run (see
    `flujo_aros.events`). They should not raise: an exception in one fails the step or run in progress. `on_result` is
    called once with the result of each run, even if it was cancelled and nothing is returned. `usage_limits` are the
    limits of one run. `models` provides the models that the steps name: one pydantic-ai model for all of them, or a
    source with `async def model(self, name)`. Without it, local models are started on first use and stopped with the
    run. `evidence`, a callable such as `journal.evidence`, supplies the statistics for ladders with `adaptive=True`.
    `sleep` waits between retries. `engine` executes the runs: `InProcess()`, the default, or
    `flujo_aros.durable.Durable(url)`, whose runs survive crashes.

    >>> from flujo_aros.pipeline.step import Call
    >>> Runner(Pipeline([Call("count", function=len)])).run_sync("four").output
    4
    """

    def __init__(
        self,
        pipeline: Pipeline[T_co] | PipelineStep[T_co],
        *,
        journal: Observer | None = None,
        observers: Sequence[Observer] = (),
        on_result: Callable[[RunResult], None] | None = None,
        usage_limits: StepLimits | None = None,
        models: Models | None = None,
        evidence: Evidence | Callable[[], Evidence] | None = None,
        sleep: Sleep = asyncio.sleep,
        engine: Engine | None = None,
    ) -> None:
        self.pipeline: Pipeline[T_co] = as_pipeline(pipeline, "Runner")
        reject_wrong_option(
            "Runner",
            _OPTIONS,
            journal=journal,
            observers=observers,
            on_result=on_result,
            usage_limits=usage_limits,
            models=models,
            engine=engine,
        )
        current_settings()  # loaded now, because the file access would block the event loop during a run
        self.observers = tuple(observers) if journal is None else (journal, *observers)
        self.on_result = on_result
        self.usage_limits = usage_limits
        self.models = source_of(models)
        self.evidence = evidence if evidence is None or callable(evidence) else lambda: evidence
        self.sleep = sleep
        self.engine: Engine = InProcess() if engine is None else engine
        self._prepared = False

    def __repr__(self) -> str:
        """Return the constructor call without the options.

        >>> from flujo_aros.pipeline.step import Call
        >>> Runner(Call("trim", function=str.strip) >> Call("count", function=len))
        Runner(Pipeline(trim >> count))
        """
        return f"Runner({self.pipeline!r})"

    async def run(
        self, input: Any = "", context: ContextLike | None = None, deps: Any = None, *, run_id: str | None = None
    ) -> RunResult[T_co]:
        """Run the steps one after the other and return how each ended. Bad data and failing steps are results.

        `context` is what templates see as `context.*`: a mapping, or a pydantic model that validates what steps write
        to it. `deps` is what the tools and instructions of agents see as `ctx.deps`; it stays in this call, and no
        journal, template or paused run stores it. `run_id` names the run; with a durable engine, an existing run with
        that id continues, or returns its result again. Raises `UsageError` before anything starts, for errors that can
        be detected then. Cancellation and Ctrl-C propagate after every open step has settled.
        """
        return await self.engine.run(self, self._task(input, context, deps, run_id))

    async def submit(
        self,
        input: Any = "",
        context: ContextLike | None = None,
        *,
        run_id: str | None = None,
        queue: str = "default",
        priority: int | None = None,
        partition: str | None = None,
    ) -> Handle:
        """Put a run in the queue of a durable engine and return a handle immediately. Any worker may execute it.

        A `run_id` that already exists returns the handle of that run. `priority` 1 comes first; a run without a
        priority comes before all runs with one. Runs of one `partition`, such as a customer, share the limit that
        workers set on each partition of their queues. There are no `deps` here: they are not stored, and the process
        that executes the run has its own, `engine.register(runner, deps=...)`. Raises `UsageError` if the engine does
        not store runs.
        """
        task = self._task(input, context, None, run_id, queue=queue, priority=priority, partition=partition)
        return await self.engine.submit(self, task)

    def _task(self, given: Any, context: ContextLike | None, deps: Any, run_id: str | None, **more: Any) -> RunTask:
        return RunTask(run_id or uuid4().hex, given, SharedContext.of(context), deps, named=run_id is not None, **more)

    def run_sync(
        self, input: Any = "", context: ContextLike | None = None, deps: Any = None, *, run_id: str | None = None
    ) -> RunResult[T_co]:
        """Like `run`, but for code without an event loop. Inside one it raises `UsageError`; await `run` there."""
        return _run_alone(lambda: self.run(input, context, deps, run_id=run_id), "run")

    async def stream(
        self,
        input: Any = "",
        context: ContextLike | None = None,
        deps: Any = None,
        *,
        buffer: int = 16,
        run_id: str | None = None,
    ) -> AsyncGenerator[StreamEvent]:
        """Run the pipeline and yield each event as it happens: steps that start and settle, and replies as they are
        written.

        The last event carries the `RunResult`. A step waits while `buffer` events have not been consumed. Closing the
        iterator cancels the run and waits until every step has settled; `contextlib.aclosing` does so on `break`.
        """
        channel = EventChannel(buffer)
        task = self._task(input, context, deps, run_id, channel=channel)
        async with aclosing(channel.events(lambda: self.engine.run(self, task))) as events:
            async for event in events:
                yield event

    async def resume(
        self, paused: Saved, answer: Any, *, context_type: type[BaseModel] | None = None, deps: Any = None
    ) -> RunResult[T_co]:
        """Continue a paused run, in this process or another; the step that asked receives the answer.

        Settled steps keep their results and usage, and do not run again. Their values come back as plain JSON, or as
        the contract's type if the step has a contract. A typed context needs its `context_type`, and agents with `deps`
        need them again. A durable run continues in its database. Raises `UsageError` if it is no longer waiting there,
        or if the pipeline is not the one that paused.
        """
        return await self.engine.run(self, self._resumed_task(paused, answer, context_type, deps))

    def resume_sync(
        self, paused: Saved, answer: Any, *, context_type: type[BaseModel] | None = None, deps: Any = None
    ) -> RunResult[T_co]:
        """Like `resume`, but for code without an event loop. Inside one it raises `UsageError`: use `resume`."""
        return _run_alone(lambda: self.resume(paused, answer, context_type=context_type, deps=deps), "resume")

    async def stream_resumed(
        self,
        paused: Saved,
        answer: Any,
        *,
        context_type: type[BaseModel] | None = None,
        deps: Any = None,
        buffer: int = 16,
    ) -> AsyncGenerator[StreamEvent]:
        """Like `resume`, but as a stream of events, as in `stream`. Steps that had already settled emit no events."""
        channel = EventChannel(buffer)
        task = replace(self._resumed_task(paused, answer, context_type, deps), channel=channel)
        async with aclosing(channel.events(lambda: self.engine.run(self, task))) as events:
            async for event in events:
                yield event

    def _resumed_task(self, paused: Saved, answer: Any, context_type: type[BaseModel] | None, deps: Any) -> RunTask:
        """Return the task of a resumed run. Raises `UsageError` for the state of a different pipeline."""
        saved = paused if isinstance(paused, PausedRun) else PausedRun.from_dict(paused)
        if saved.fingerprint != fingerprint(self.pipeline):
            raise UsageError(
                f"run {saved.run_id} was paused by a different pipeline, or the pipeline or its models have changed "
                "since; resume it with the pipeline and the models that it started with "
                "(--model, --profile, environment variables)"
            )
        context: dict[str, Any] = as_given(saved.context or {})
        shared = SharedContext.of(context if context_type is None else context_type.model_validate(context))
        recorded = slots_of(saved.steps, self.pipeline)
        task = RunTask(
            saved.run_id, as_given(saved.input), shared, deps, recorded, saved.step, Answer(answer), before=saved.work
        )
        return replace(task, deferred=saved.deferred, carrier=dict(saved.carrier), resumed=True)

    def prepare(self) -> None:
        """Raise `UsageError` for a model or an agent that cannot exist, as every run does before it starts."""
        if not self._prepared:
            for step in every_step(self.pipeline):
                step.prepare()
            self._check_local_models()
            self._prepared = True

    async def execute(self, task: RunTask, recording: Recording | None = None) -> RunResult[T_co]:
        """Execute a run here and now, as decided by an engine. `run` and `resume` end up here."""
        steps, name, channel = self.pipeline.steps, self.pipeline.name, task.channel
        self.prepare()
        listeners = self.observers if channel is None else (*self.observers, channel.observe)
        ledger = RunLedger(task.run_id, name, [(step.name, step.kind) for step in steps], task.before)
        began = task.shared.value
        pause: PauseRun | None = None
        with observing(*listeners) if listeners else UNHEARD:
            secrets = (*self._secrets, *secrets_among(task.shared.value)) if current_observers() else ()
            started = RunStarted(
                run_id=task.run_id,
                pipeline=name,
                input=task.given,
                secrets=secrets,
                resumed=task.resumed,
                settled=frozenset(recording.recorded) if recording is not None and task.resumed else None,
                carrier=task.carrier,
            )
            with span(started) if current_observers() else UNHEARD as finish:
                try:
                    with ledger:
                        async with self._source() as models:
                            execution = self._execution(task, ledger, models, recording)
                            await execution.steps(steps, self._frame(task, ledger))
                except PauseRun as raised:
                    pause = raised
                finally:
                    ended = self._ended(task, ledger, pause, began)
                    task.result = ended
                    if channel is not None:
                        channel.result = ended
                    if self.on_result is not None:
                        self.on_result(ended)
                    emit_run_finished(finish, ended)
        return ended

    @cached_property
    def _secrets(self) -> tuple[str, ...]:
        """The values in the steps under names that mark them as secret."""
        return tuple(dict.fromkeys(_secrets_in(self.pipeline)))

    def _check_local_models(self) -> None:
        """Raise `LocalModelError` for a missing local model, unless another source provides it."""
        if self.models is None and self._local_models:
            from flujo_aros.host.local import check_local  # imported here, as in `_source`

            check_local(self._local_models)

    def _source(self) -> AbstractAsyncContextManager[ModelSource | None]:
        """Return the source of the models of one run: the caller's, or the local models, which stop with the run."""
        if self.models is not None or not self._local_models:
            return nullcontext(self.models)
        from flujo_aros.host.local import LocalModels  # imported here: only a local model needs its engine

        return LocalModels()

    def _execution(
        self, task: RunTask, ledger: RunLedger, models: ModelSource | None, recording: Recording | None
    ) -> Execution:
        channel = task.channel
        listening = [recording.live] if recording is not None and recording.is_live else []
        if channel is not None:
            channel.ledger = ledger
            listening.append(channel.live)
        return Execution(
            ledger=ledger,
            models=models,
            deps=task.deps,
            evidence=self.evidence,
            live=_all_of(listening),
            gate=None if channel is None else channel.gate,
            sleep=self.sleep,
            recorded=task.recorded,
            asked=task.asked,
            answer=task.answer,
            deferred=task.deferred,
            recording=recording,
        )

    def _frame(self, task: RunTask, ledger: RunLedger) -> Frame:
        budget: Budget | None = None
        if self.usage_limits is not None:
            spent = ledger.spent_before("", task.recorded.values())
            budget = Budget(self.usage_limits, "the run", spent=spent)
        variables = {} if task.answer is None else {"resume_input": task.answer.value}
        return Frame("", task.given, task.given, {}, variables, task.shared, budget)

    def _ended(self, task: RunTask, ledger: RunLedger, pause: PauseRun | None, began: Any) -> RunResult[T_co]:
        result = ledger.result(task.shared.value)
        if pause is None:
            return result
        try:
            paused = paused_run(self.pipeline, ledger, pause, task.given, began)
            return replace(result, paused=paused.model_copy(update={"carrier": task.carrier}))
        except UsageError as error:
            return replace(result, status=RunStatus.FAILED, trouble=str(error))

    @cached_property
    def _local_models(self) -> frozenset[str]:
        return frozenset(model for model in self.pipeline.models if model.startswith(_LOCAL))


@dataclass(slots=True)
class RunTask:
    """The task of one run. `named` means that the caller chose the id, so the same id is the same run. `queue`,
    `priority` and `partition` say which worker executes a submitted run, and when.
    """

    run_id: str
    given: Any
    shared: SharedContext
    deps: Any = None
    recorded: Mapping[str, Slot] = field(default_factory=dict[str, Slot])
    asked: str | None = None
    answer: Answer | None = None
    deferred: Mapping[str, DeferredWork] = field(default_factory=dict[str, DeferredWork])
    channel: EventChannel | None = None
    before: Mapping[str, Work] = field(default_factory=dict[str, Work])
    carrier: dict[str, str] = field(default_factory=dict[str, str])
    resumed: bool = False
    named: bool = False
    queue: str = "default"
    priority: int | None = None
    partition: str | None = None
    result: RunResult | None = None
    """The result, even if the run was cancelled and returned nothing."""


def _all_of(listening: Sequence[LiveOf]) -> LiveOf | None:
    """Combine several receivers of the parts of a reply into one."""
    if len(listening) < 2:
        return listening[0] if listening else None

    async def live(step: str, event: LiveEvent) -> None:
        for each in listening:
            await each(step, event)

    return live


def _secrets_in(pipeline: Pipeline) -> Iterator[str]:
    pipelines = [pipeline]
    for step in every_step(pipeline):
        yield from secrets_among(step)
        pipelines += step.bodies.values()
    for each in pipelines:  # any value from the environment may be a secret, except for the name of a model
        yield from (value for value in each.environment if len(value) >= _LEAST_SECRET and value not in each.models)


def _run_alone(start: Callable[[], Awaitable[RunResult[T_co]]], name: str) -> RunResult[T_co]:
    """Return the result of a run in an event loop of its own. Raises `UsageError` inside a running one."""
    if _loop_is_running():
        raise UsageError(f"{name}_sync cannot run inside an event loop; write `await runner.{name}(...)` instead")
    results: list[RunResult[T_co]] = []

    async def keep() -> None:
        results.append(await start())

    # Not as the task's own result: when `asyncio.run` restores the signal handler, it formats the whole task.
    asyncio.run(keep())
    return results[0]


def _loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
