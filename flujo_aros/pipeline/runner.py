"""Runs a pipeline: the one place where runs and steps start and finish, and where their events are emitted."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from pydantic import BaseModel

from flujo_aros.errors import UsageError
from flujo_aros.events import Observer, RunFinished, RunStarted, StepFinished, StepStarted, emit, observing, span
from flujo_aros.pipeline.context import StepContext
from flujo_aros.pipeline.flow import Pipeline
from flujo_aros.pipeline.ledger import RunLedger, RunResult, Slot, StepResult, StepStatus
from flujo_aros.pipeline.step import PipelineStep

if TYPE_CHECKING:
    from flujo_aros.agents.drivers import ModelSource

_LOCAL = "local:"


class Runner:
    """Runs a pipeline, as often as you like; it holds nothing between two runs.

    `observers` hear every event of a run (see `flujo_aros.events`). Local models that the steps name are started when
    first needed and stopped with the run.

    >>> from flujo_aros.pipeline.step import Call
    >>> Runner(Pipeline([Call("count", function=len)])).run_sync("four").output
    4
    """

    def __init__(self, pipeline: Pipeline | PipelineStep, *, observers: Sequence[Observer] = ()) -> None:
        self.pipeline = pipeline if isinstance(pipeline, Pipeline) else Pipeline([pipeline], name=pipeline.name)
        self.observers = tuple(observers)

    async def run(
        self,
        input: Any = "",  # noqa: A002 - the word of the public surface, also in templates
        context: Mapping[str, Any] | BaseModel | None = None,
    ) -> RunResult:
        """Run the steps one after the other and say how each ended. Bad data and failing steps are results.

        `context` is what templates see as `context.*`. Raises `UsageError` before anything has started, for what can
        be known to be wrong; cancellation and Ctrl-C go on after the open step has settled.
        """
        for step in self.pipeline.steps:
            step.prepare()
        execution = _Execution(self.pipeline, input, _as_mapping(context))
        with observing(*self.observers):
            return await execution.run()

    def run_sync(
        self,
        input: Any = "",  # noqa: A002 - as in `run`
        context: Mapping[str, Any] | BaseModel | None = None,
    ) -> RunResult:
        """`run` for code without an event loop. Inside one it is a `UsageError`: await `run` there."""
        if _loop_is_running():
            raise UsageError("run_sync cannot run inside an event loop; write `await runner.run(...)` instead")
        return asyncio.run(self.run(input, context))


class _Execution:
    """One run of one pipeline."""

    def __init__(self, pipeline: Pipeline, given: Any, context: Mapping[str, Any]) -> None:
        self.pipeline = pipeline
        self.given = given
        self.context = context
        self.outputs: dict[str, Any] = {}
        self.ledger = RunLedger(uuid4().hex, pipeline.name, [(step.name, step.kind) for step in pipeline.steps])

    async def run(self) -> RunResult:
        run_id, name = self.ledger.run_id, self.pipeline.name
        with span(RunStarted(run_id=run_id, pipeline=name)):
            try:
                with self.ledger:
                    await self._steps()
            finally:
                ended = self.ledger.result
                emit(
                    RunFinished(
                        run_id=run_id,
                        pipeline=name,
                        status=ended.status.value,
                        usage=ended.usage,
                        seconds=ended.seconds,
                    )
                )
        return ended

    async def _steps(self) -> None:
        async with AsyncExitStack() as held:
            models = await _local_models(held) if self._wants_local_models() else None
            previous = self.given
            for step in self.pipeline.steps:
                result = await self._step(step, previous, models)
                if result.status not in (StepStatus.SUCCESS, StepStatus.DEGRADED):
                    return
                previous = self.outputs[step.name] = result.handed_on

    async def _step(self, step: PipelineStep, previous: Any, models: ModelSource | None) -> StepResult[Any]:
        started = StepStarted(run_id=self.ledger.run_id, name=step.name, kind=step.kind)
        with span(started):
            slot = self.ledger.open(step.name, step.kind, step.on_degraded)
            try:
                with slot:
                    context = StepContext(
                        input=self.given,
                        previous=previous,
                        outputs=self.outputs,
                        context=self.context,
                        spend=slot.spend,
                        models=models,
                    )
                    slot.report(await step.run(context))
            finally:
                self._announce(slot)
        return slot.result

    def _announce(self, slot: Slot) -> None:
        ended = slot.result
        emit(
            StepFinished(
                run_id=self.ledger.run_id,
                name=ended.name,
                kind=ended.kind,
                status=ended.status.value,
                trust=ended.trust,
                reason=ended.reason,
                usage=ended.usage,
                seconds=ended.seconds,
            )
        )

    def _wants_local_models(self) -> bool:
        return any(model.startswith(_LOCAL) for model in self.pipeline.models)


async def _local_models(held: AsyncExitStack) -> ModelSource:
    from flujo_aros.agents.local import LocalModels  # here: only a run that needs a local model needs its engine

    return await held.enter_async_context(LocalModels())


def _loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _as_mapping(context: Mapping[str, Any] | BaseModel | None) -> Mapping[str, Any]:
    if context is None:
        return {}
    if isinstance(context, BaseModel):
        return {name: getattr(context, name) for name in type(context).model_fields}
    if isinstance(cast("object", context), Mapping):
        return context
    raise UsageError(f"context must be a mapping or a pydantic model, not {context!r}")
