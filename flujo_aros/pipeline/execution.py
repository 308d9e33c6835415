"""One run of one pipeline: the only place where steps start, at any depth, and where their events are emitted.

Also contains the environment of each running step: the key for its side effects, the limits on its usage, and the
record of a durable run.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeAlias
from uuid import UUID, uuid5

from flujo_aros.contract import Invalid
from flujo_aros.errors import LimitReached, UsageError
from flujo_aros.events import LiveEvent, PartialValue, TextReplaced
from flujo_aros.outcome import Accepted, Degraded, Issue, Outcome, Reason, Rejected, Trust, rejection_of
from flujo_aros.pipeline.control import Cached
from flujo_aros.pipeline.human import Human
from flujo_aros.pipeline.ledger import PauseRun, RunLedger, Settlement, Slot, emit_step_finished, sentence_of, step_span
from flujo_aros.pipeline.model import Answer, Nested, PipelineStep, StepContext, StepLimits
from flujo_aros.pipeline.names import Read
from flujo_aros.pipeline.pause import as_given, as_saved
from flujo_aros.pipeline.results import (
    NO_CALL,
    BodyResult,
    DeferredWork,
    OnDegraded,
    StepResult,
    StepStatus,
    may_pass,
)
from flujo_aros.pipeline.step import Call, Step, handed_on, is_agent_step, stored_contract
from flujo_aros.pipeline.values import SharedContext, Write, kind_of, members_of, path_of
from flujo_aros.reading.payload import apply_checks_async
from flujo_aros.usage import Usage

if TYPE_CHECKING:
    from flujo_aros.host import Conversation, ModelSource
    from flujo_aros.pipeline.condition import Condition
    from flujo_aros.pipeline.template import InputTemplate
    from flujo_aros.recovery import Evidence

_NAMESPACE: Final = UUID("a9c05a3e-5d0f-4a3c-9d6b-6d1f6e2a7c41")
_step: ContextVar[tuple[str, str] | None] = ContextVar("flujo_aros_step", default=None)


def idempotency_key(*parts: object) -> str:
    """Return the idempotency key of the current step for a side effect, such as a payment: a UUID.

    It is derived from the id of the run and the name of the step, so a step that runs again, after a crash or for a
    retry, uses the same key, and the receiver does not perform the effect twice. `parts` distinguish the effects of one
    step; a tool of an agent passes `ctx.tool_call_id`. Raises `UsageError` outside a run.

    >>> from flujo_aros import Call, Runner
    >>> pay = Call("pay", function=lambda order: idempotency_key() == idempotency_key())
    >>> Runner(pay).run_sync("order 17").output
    True
    """
    step = _step.get()
    if step is None:
        raise UsageError("idempotency_key() was called outside a run: only a running step has a key")
    return str(uuid5(_NAMESPACE, "\0".join((*step, *map(str, parts)))))


def current_step() -> str:
    """Return the name of the current step, or an empty string outside a step."""
    step = _step.get()
    return "" if step is None else step[1]


@dataclass(slots=True)
class Budget:
    """The limits of one step or run, and the usage so far; `outer` are the limits of the enclosing step or run.

    The usage of a call is known only afterwards. If tokens or cost are limited, a call is therefore assumed to need as
    much as the largest one so far, and has to wait for calls of other steps while that might be too much. Together they
    exceed a limit by less than one call, and no call begins once a limit is used up. A call whose tokens or price the
    provider does not report counts as zero.
    """

    limits: StepLimits
    what: str
    outer: Budget | None = None
    spent: Usage = field(default_factory=Usage)
    open: int = 0
    most_tokens: int = 0
    most_cost: Decimal = Decimal(0)
    _settled: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def chain(self) -> tuple[Budget, ...]:
        """This budget and all enclosing budgets."""
        return (self,) if self.outer is None else (self, *self.outer.chain)

    def refusal(self, *, within: bool = False) -> str | None:
        """Return the reason why no further call may be made, or None. With `within` the call cannot wait for open
        calls.
        """
        spent, limits = self.spent, self.limits
        requests = spent.requests + self.open if within else spent.requests
        if limits.max_requests is not None and requests >= limits.max_requests:
            calls = f"{limits.max_requests} model call{'s'[: limits.max_requests != 1]}"
            return self._used_up(calls, "max_requests")
        if limits.max_tokens is not None and _tokens(spent) >= limits.max_tokens:
            return self._used_up(f"{limits.max_tokens} tokens", "max_tokens")
        if limits.max_cost is not None and limits.max_cost <= (spent.cost or 0):
            return self._used_up(f"${limits.max_cost}", "max_cost")
        return None

    def might_exceed(self) -> bool:
        """Return whether one more call in addition to the open calls might exceed the limits."""
        if self.open == 0:
            return False
        spent, limits, calls = self.spent, self.limits, self.open + 1
        if limits.max_requests is not None and spent.requests + calls > limits.max_requests:
            return True
        tokens, cost = calls * self.most_tokens, calls * self.most_cost
        if limits.max_tokens is not None and (not tokens or _tokens(spent) + tokens > limits.max_tokens):
            return True
        return limits.max_cost is not None and (not cost or (spent.cost or 0) + cost > limits.max_cost)

    def reserve(self) -> None:
        """Count a call that is about to start."""
        self.open += 1

    def settle(self, usage: Usage) -> None:
        """Count the usage of a call that has ended."""
        self.open -= 1
        self.spent += usage
        self.most_tokens = max(self.most_tokens, _tokens(usage))
        self.most_cost = max(self.most_cost, usage.cost or Decimal(0))
        self._settled.set()
        self._settled = asyncio.Event()

    async def changed(self) -> None:
        """Wait until a call has settled."""
        await self._settled.wait()

    def _used_up(self, limit: str, key: str) -> str:
        return f"{NO_CALL}{self.what} has used up its limit of {limit}; raise usage_limits.{key}"


@dataclass(slots=True)
class StepAllowance:
    """The allowance of one attempt of one step. It consults every budget that applies to the step."""

    budget: Budget
    own: int = 0

    async def reserve(self) -> Callable[[Usage], None]:
        """Wait until a call may start. Raises `LimitReached` if no further call is allowed.

        A step that already has an open call, such as one whose stream is repaired before its end, never waits, because
        two such steps would wait for each other.
        """
        chain = self.budget.chain
        while True:
            for budget in chain:
                refusal = budget.refusal(within=self.own > 0)
                if refusal is not None:
                    raise LimitReached(refusal)
            tight = next((budget for budget in chain if budget.might_exceed()), None)
            if tight is None or self.own:
                break
            await tight.changed()
        for budget in chain:
            budget.reserve()
        self.own += 1
        return self._settle

    def _settle(self, usage: Usage) -> None:
        self.own -= 1
        for budget in self.budget.chain:
            budget.settle(usage)


def _tokens(usage: Usage) -> int:
    return usage.input_tokens + usage.output_tokens


class Recording(Protocol):
    """Records one run: the start and the end of each step, and each model call.

    A run without one is not durable, and has no overhead.
    """

    @property
    def recorded(self) -> Mapping[str, Slot]:
        """The steps that settled before this process took over the run, by name. They do not run again."""
        ...

    async def started(self, name: str, step: PipelineStep) -> None:
        """Record that a step starts."""

    def calls_of(self, slot: Slot) -> AbstractContextManager[object]:
        """Record every model call inside the block as a call of this step."""
        ...

    def plain(self, step: PipelineStep, settlement: Settlement[Any]) -> Settlement[Any]:
        """Return the settlement with a value that the record can restore unchanged. Raises `UsageError`."""
        ...

    async def settled(self, slot: Slot, ledger: RunLedger) -> None:
        """Record how a step settled, and how that changes its nested steps."""

    async def live(self, step: str, event: LiveEvent) -> None:
        """Record a part of a reply while it streams."""

    @property
    def is_live(self) -> bool:
        """Whether to stream replies, so that others can watch them being written."""
        ...

    async def wait(self, name: str, seconds: float) -> None:
        """Wait before a retry; after a crash, only for the remaining time."""


Sleep: TypeAlias = Callable[[float], Awaitable[object]]
LiveOf: TypeAlias = "Callable[[str, LiveEvent], Awaitable[None]]"
"""Receives each part of a streamed reply, with the name of its step."""

UNRECORDED: Final = nullcontext()
_FIRST_WAIT: Final = 0.5
_LONGEST_WAIT: Final = 30.0
_LONGEST_RETRY_AFTER: Final = 600.0
"""The maximum wait for a provider in seconds. A longer `Retry-After` fails the step, even without a timeout."""


@dataclass(slots=True)
class Trusts:
    """The trust of the values behind the names of a frame."""

    previous: Trust = Trust.CLEAN
    given: Trust = Trust.CLEAN
    variables: Trust = Trust.CLEAN
    outputs: dict[str, Trust] = field(default_factory=dict[str, Trust])


@dataclass(slots=True)
class Frame:
    """The environment of steps: what they can read, and the prefix of their names in the ledger. `previous` and
    `outputs` are updated from step to step; the steps of one frame run one after the other.
    """

    prefix: str
    given: Any
    previous: Any
    outputs: Mapping[str, Any]
    variables: Mapping[str, Any]
    shared: SharedContext
    budget: Budget | None
    said: Conversation = ()
    """The messages of earlier agents, oldest first."""
    trusts: Trusts = field(default_factory=Trusts)

    def trust_of(self, step: PipelineStep) -> Trust:
        """Return the lowest trust among the values that a step reads here."""
        readers: list[InputTemplate | Condition] = [*step.templates, *step.conditions]
        if isinstance(step, Cached):  # the value depends on the same inputs whether its step runs or not
            readers += [*step.step.templates, *step.step.conditions]
        known = self.trusts
        heard = [known.previous, *known.outputs.values()] if isinstance(step, Step) and step.use_history else []
        return Trust.lowest([*heard, *(self._trust_of(read) for reader in readers for read in reader.reads)])

    def _trust_of(self, read: Read) -> Trust:
        known = self.trusts
        if read.root == "previous_step":
            return known.previous
        if read.root == "steps":
            trusts = [known.outputs.get(str(read.path[0]), Trust.CLEAN)] if read.path else known.outputs.values()
            return Trust.lowest(trusts)
        if read.root == "context":
            return Trust.lowest([self.shared.trust_at(read.path), known.given if not read.path else Trust.CLEAN])
        return known.given if read.root == "input" else known.variables


@dataclass(slots=True)
class Execution:
    """Runs steps and bodies of one run, and settles each in its ledger."""

    ledger: RunLedger
    models: ModelSource | None = None
    deps: Any = None
    evidence: Callable[[], Evidence] | None = None
    live: LiveOf | None = None
    gate: Callable[[], Awaitable[None]] | None = None
    sleep: Sleep = asyncio.sleep
    recorded: Mapping[str, Slot] = field(default_factory=dict[str, Slot])
    asked: str | None = None
    answer: Answer | None = None
    deferred: Mapping[str, DeferredWork] = field(default_factory=dict[str, DeferredWork])
    refusals: dict[str, str] = field(default_factory=dict[str, str])
    """The schemas that models have rejected in this run, with the reasons, so that no step sends them again."""
    recording: Recording | None = None
    """Records the run, if it is durable."""

    async def steps(self, steps: Sequence[PipelineStep], frame: Frame, scope: str = "") -> BodyResult:
        """Run steps one after the other, until one has no result for the next."""
        outer, own = dict(frame.outputs), dict[str, Any]()
        seen = replace(frame, outputs=outer, trusts=replace(frame.trusts, outputs=dict(frame.trusts.outputs)))
        degraded = result = None
        said: Conversation = ()
        for step, following in zip(steps, (*steps[1:], None), strict=True):
            result = await self._step(step, seen, f"{frame.prefix}{step.name}")
            if result.status not in (StepStatus.SUCCESS, StepStatus.DEGRADED):
                return BodyResult(scope, result, own, frame.shared, failed=result)
            if degraded is None and result.status is StepStatus.DEGRADED and result.counts_against:
                degraded = result
            seen.previous = outer[step.name] = own[step.name] = handed_on(result, following)
            seen.trusts.previous = seen.trusts.outputs[step.name] = result.carried_trust
            said = (*said, *self.ledger.said_in(result.name))
            seen.said = (*frame.said, *said)
            if isinstance(step, Human):
                seen.variables = {**seen.variables, "resume_input": seen.previous}
        if result is None:
            raise AssertionError(f"{scope or 'the pipeline'} has no steps")
        return BodyResult(scope, result, own, frame.shared, degraded=degraded, said=said)

    async def _step(self, step: PipelineStep, frame: Frame, name: str) -> StepResult[Any]:
        if name in self.recorded:
            return self._replay(name, frame)
        if self.gate is not None:
            await self.gate()
        if self.recording is not None:
            await self.recording.started(name, step)
        with self._slot(name, step.kind, step.on_degraded) as slot:
            slot.read_trust = slot.input_trust = frame.trust_of(step)
            if step.fallback or step.usage_limits or step.retries or step.timeout is not None:
                settlement = await self._settlement(step, frame, slot)
            else:
                settlement = await self._attempt(step, frame, slot, 0)
            slot.writes = settlement.writes
            slot.report(settlement)
        if self.recording is not None:
            await self.recording.settled(slot, self.ledger)
        return slot.result

    @contextmanager
    def _slot(self, name: str, kind: str, on_degraded: OnDegraded | None = None) -> Generator[Slot]:
        """Open the slot of a step that runs inside the block, and emit the events of its start and end."""
        with step_span(self.ledger.run_id, name, kind) as finish:
            slot = self.ledger.open(name, kind, on_degraded)
            try:
                with slot:
                    yield slot
            except PauseRun as pause:
                pause.step = pause.step or name
                excused, pause.excused = pause.excused, ()
                for scope in excused:
                    self.ledger.excuse(scope, name)
                raise
            finally:
                emit_step_finished(finish, self.ledger.run_id, slot)
        self._excuse_nested(slot)

    async def _body(self, parent: Frame, name: str, around: Slot, nested: Nested) -> BodyResult:
        kind, body, shared, isolated = nested.kind, nested.body, nested.shared, nested.isolated
        path = f"{name}/{nested.scope}" if nested.scope else name
        if isolated:
            frame = Frame(f"{path}/", nested.previous, nested.previous, {}, {}, shared, parent.budget)
        else:
            variables, said = {**parent.variables, **nested.variables}, (*parent.said, *nested.said)
            frame = replace(
                parent, prefix=f"{path}/", previous=nested.previous, variables=variables, shared=shared, said=said
            )
        frame.trusts = _body_trusts(parent, around, kind, frame, isolated=isolated)
        if kind is None or path in self.recorded:
            if kind is not None:
                self.ledger.replay(self.recorded[path])
            return _consume(await self.steps(body.steps, frame, path), around)
        if self.gate is not None:
            await self.gate()
        with self._slot(path, kind) as slot:
            ended = _consume(await self.steps(body.steps, frame, path), slot)
            if ended.failed is not None:
                slot.consume(ended.failed.input_trust or Trust.CLEAN)
            slot.report(Settlement[Any].of(ended))
        if slot.reported is None:
            return BodyResult(path, slot.result, {}, shared, failed=slot.result)
        return _consume(ended, around)

    async def _settlement(self, step: PipelineStep, frame: Frame, slot: Slot) -> Settlement[Any]:
        """Return the settlement of a step, with its limits, timeout, retries and fallback applied."""
        if step.usage_limits is not None:
            spent = self.ledger.spent_before(slot.name, self.recorded.values())
            frame = replace(frame, budget=Budget(step.usage_limits, f"step {slot.name!r}", frame.budget, spent))
        settlement = await self._in_time(step, frame, slot)
        if step.fallback is None or not _needs_fallback(step, settlement):
            return settlement
        ended = await self._step(step.fallback, frame, self.ledger.free_name(f"{slot.name}/fallback"))
        if ended.status not in (StepStatus.SUCCESS, StepStatus.DEGRADED):
            if not _failed(step, settlement):  # the text is the only result, and the step accepts it
                self.ledger.excuse(ended.name, slot.name)
            return self._written(step, settlement, frame, slot)
        # the value of the fallback does not depend on the inputs of the failed step
        slot.input_trust = ended.input_trust or Trust.CLEAN
        rejected, outcome = rejection_of(settlement.outcome), _as_contracted(step, step.fallback, ended.outcome)
        ending = rejected.headline() if rejected is not None else settlement.outcome and settlement.outcome.kind
        replaced = Settlement(
            replace(outcome, origin="fallback") if isinstance(outcome, Accepted) else outcome,
            cause=ended if ended.counts_against else None,
            stages=settlement.stages,
            attempts=settlement.attempts,
            replaced=settlement.error or ending or "it returned no result",
            messages=self.ledger.said_in(ended.name),
        )
        return self._written(step, replaced, frame, slot)

    async def _in_time(self, step: PipelineStep, frame: Frame, slot: Slot) -> Settlement[Any]:
        """Make all attempts of a step, within its timeout."""
        if step.timeout is None:
            return await self._attempts(step, frame, slot, None)
        clock = asyncio.timeout(step.timeout)
        try:
            async with clock:
                return await self._attempts(step, frame, slot, clock.when())
        except TimeoutError as error:
            if not clock.expired():
                raise
            words = f"no result within the step's timeout of {step.timeout:g} s"
            if _agent_of(step) is None:
                return Settlement(None, error=words, exception=error)
            return Settlement(Rejected(Reason.PROVIDER, (Issue("$", "timeout", words),), ""))

    async def _attempts(self, step: PipelineStep, frame: Frame, slot: Slot, until: float | None) -> Settlement[Any]:
        """Make one attempt, and another after each infrastructure error, up to the retries of the step. `until` is the
        end of the step's timeout. If a provider asks to wait beyond it, the step fails immediately.
        """
        settlement = await self._attempt(step, frame, slot, 0)
        calls = settlement.attempts
        for retry in range(1, step.retries + 1):
            if not _is_infrastructure(settlement):
                break
            retry_after = settlement.outcome.retry_after if isinstance(settlement.outcome, Rejected) else None
            left = _LONGEST_RETRY_AFTER if until is None else until - asyncio.get_running_loop().time()
            if retry_after is not None and retry_after > left:
                break
            seconds = _wait_before(retry, retry_after)
            await (self.sleep(seconds) if self.recording is None else self.recording.wait(slot.name, seconds))
            settlement = await self._attempt(step, frame, slot, retry)
            calls += settlement.attempts
        return settlement if calls == settlement.attempts else replace(settlement, attempts=calls)

    async def _attempt(self, step: PipelineStep, frame: Frame, slot: Slot, retry: int) -> Settlement[Any]:
        """Make one attempt of a step. Exceptions fail it; pauses and cancellation pass through."""
        place = f"{slot.name}/retry {retry}" if retry else slot.name
        context = StepContext(
            input=frame.given,
            previous=frame.previous,
            outputs=frame.outputs,
            context=frame.shared.isolated(),
            spend=slot.spend,
            models=self.models,
            deps=self.deps,
            evidence=self.evidence,
            refusals=self.refusals,
            said=frame.said,
            name=slot.name,
            variables=frame.variables,
            live=None if self.live is None else partial(self._show, self.live, slot, retry),
            allowance=None if frame.budget is None else StepAllowance(frame.budget),
            answer=self.answer if slot.name == self.asked else None,
            deferred=self.deferred.get(slot.name),
            shared=frame.shared,
            bodies=partial(self._body, frame, place, slot),
        )
        recorded = UNRECORDED if self.recording is None else self.recording.calls_of(slot)
        with _Attempt(self.ledger.run_id, slot.name) as attempt, recorded:
            settlement = await step.run(context)
            if step.bodies and settlement.outcome is not None:  # other kinds of step have already checked their values
                settlement = replace(
                    settlement, outcome=await apply_checks_async(settlement.outcome, step.checks, None)
                )
            if self.recording is not None:
                settlement = self.recording.plain(step, settlement)
            waits = step.fallback is not None and _needs_fallback(step, settlement)
            attempt.settlement = settlement if waits else self._written(step, settlement, frame, slot)
        return attempt.settlement

    async def _show(self, live: LiveOf, slot: Slot, retry: int, event: LiveEvent) -> None:
        """Show a part of a reply. The first part of a new attempt replaces what the previous attempt has shown."""
        if slot.shown_by not in (None, retry):
            slot.shown_anew = True
            if not isinstance(event, TextReplaced):
                await live(slot.name, TextReplaced(text=""))
        slot.shown_by = retry
        if slot.shown_anew and isinstance(event, PartialValue):
            event, slot.shown_anew = replace(event, restarted=True), False
        await live(slot.name, event)

    def _written(self, step: PipelineStep, settlement: Settlement[Any], frame: Frame, slot: Slot) -> Settlement[Any]:
        """Return the settlement, after a successful step's writes to the context are applied. Raises `UsageError`."""
        may_write = settlement.writes or step.updates_context or step.sink_to is not None
        if not may_write or _failed(step, settlement):
            return settlement
        writes = [*settlement.writes, *_own_writes(step, settlement, slot.name)]
        if not writes:
            return settlement
        if self.recording is not None:  # the value restored after a crash must equal the one before it
            writes = [(path, as_given(as_saved(value, f"the value of step {slot.name!r}"))) for path, value in writes]
        own = settlement.outcome.trust if isinstance(settlement.outcome, (Accepted, Degraded)) else Trust.CLEAN
        worth = own if step.kind == "hitl" else Trust.lowest([own, slot.input_trust])
        frame.shared.write(writes, worth, slot.write_trusts)
        return replace(settlement, writes=tuple(writes))

    def _replay(self, name: str, frame: Frame) -> StepResult[Any]:
        """Return the result of a step from before the run was resumed; its nested steps are restored with it."""
        for other, slot in self.recorded.items():
            if other == name or other.startswith(f"{name}/"):
                self.ledger.replay(slot)
        ended = self.recorded[name]
        frame.shared.write(ended.writes, ended.result.carried_trust)
        return ended.result

    def _excuse_nested(self, slot: Slot) -> None:
        """Excuse failures inside a step that the step itself accounts for."""
        reported, ended = slot.reported, slot.result
        for scope in reported.excused if reported else ():
            self.ledger.excuse(scope, slot.name)
        if ended.status is StepStatus.FAILED:
            self.ledger.excuse(slot.name, slot.name, only=StepStatus.CANCELLED)
        elif ended.replaced is not None or ended.attempts > 1:
            self.ledger.excuse(slot.name, slot.name, only=StepStatus.FAILED)
        if ended.status is StepStatus.SUCCESS and ended.replaced is not None:
            self.ledger.excuse(slot.name, slot.name, only=StepStatus.DEGRADED)
        if ended.status is StepStatus.DEGRADED and ended.degraded_accepted:
            self.ledger.excuse(slot.name, slot.name, only=StepStatus.DEGRADED)


def _body_trusts(parent: Frame, around: Slot, kind: str | None, frame: Frame, *, isolated: bool) -> Trusts:
    """Return the frame for the steps of a body. Concurrent bodies do not see each other."""
    read, beside = around.read_trust, kind in ("branch", "item")
    if isolated:
        for key in frame.shared.data if read is not Trust.CLEAN else ():
            frame.shared.trusts.setdefault((key,), read)
        return Trusts(read, read)
    handed = parent.trusts.previous if frame.previous is parent.previous else read
    previous = handed if beside else Trust.lowest([handed, around.input_trust])
    variables = parent.trusts.variables if kind == "iteration" else Trust.lowest([parent.trusts.variables, read])
    return Trusts(previous, parent.trusts.given, variables, dict(parent.trusts.outputs))


def _consume(ended: BodyResult, around: Slot) -> BodyResult:
    """Record the end of a body in the slot of its step."""
    if ended.ok:
        around.consume(ended.trust)
        around.write_trusts |= ended.shared.trusts
    return ended


class _Attempt:
    """One attempt of a step, which has the keys for side effects while it runs. Its result may be an `Exception` of the
    step; pauses and cancellation pass through."""

    def __init__(self, run_id: str, step: str) -> None:
        self.settlement: Settlement[Any]
        self._token = _step.set((run_id, step))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> bool:
        _step.reset(self._token)
        if not isinstance(raised, Exception) or isinstance(raised, PauseRun):
            return False
        self.settlement = Settlement(None, error=sentence_of(raised), exception=raised)
        return True


def _wait_before(retry: int, retry_after: float | None) -> float:
    """Return the seconds to wait before a retry: exponential backoff with jitter, at least what the provider asked for
    and little more.
    """
    own = random.uniform(0.5, 1) * min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** min(retry - 1, 10))  # noqa: S311 - no secret
    return own if retry_after is None else max(own, retry_after + random.uniform(0, _FIRST_WAIT))  # noqa: S311 - no secret


def _failed(step: PipelineStep, settlement: Settlement[Any]) -> bool:
    """Return whether the step will settle as failed."""
    outcome = settlement.outcome
    if settlement.error is not None or outcome is None or isinstance(outcome, Rejected):
        return True
    degraded = isinstance(outcome, Degraded) or settlement.cause is not None
    return degraded and step.on_degraded == "fail"


def _needs_fallback(step: PipelineStep, settlement: Settlement[Any]) -> bool:
    """Return whether to run the fallback: the step has failed, or has only text and does not accept that."""
    degraded = isinstance(settlement.outcome, Degraded) or settlement.cause is not None
    return _failed(step, settlement) or (degraded and step.on_degraded != "accept")


def _agent_of(step: PipelineStep) -> Step | None:
    """Return the agent step that this one is, or that the name of its function refers to."""
    return step if is_agent_step(step) else step.imported_agent if isinstance(step, Call) else None


def _as_contracted(step: PipelineStep, fallback: PipelineStep, outcome: Outcome[Any] | None) -> Outcome[Any] | None:
    """Return the outcome of a fallback if its value satisfies the contract of the step, or else the rejection."""
    agent = _agent_of(step)
    contract = None if agent is None else stored_contract(agent)
    if contract is None or not isinstance(outcome, Accepted):
        return outcome
    verdict = contract.revalidate(outcome.value)
    if not isinstance(verdict, Invalid):
        return replace(outcome, value=verdict.value)
    about = f"the value of the fallback {fallback.name!r} does not satisfy the contract of the step: "
    issues = tuple(replace(issue, message=f"{about}{issue.message}") for issue in verdict.issues)
    return Rejected(Reason.INVALID, issues, outcome.text)


def _is_infrastructure(settlement: Settlement[Any]) -> bool:
    """Return whether the attempt failed for a transient reason, so that a retry may succeed."""
    if isinstance(settlement.exception, (ConnectionError, TimeoutError)):
        return True
    rejected = rejection_of(settlement.outcome)
    return rejected is not None and may_pass(rejected)


def _own_writes(step: PipelineStep, settlement: Settlement[Any], name: str) -> list[Write]:
    """Return the writes to the context that a step's options ask for; degraded text only if the step accepts it."""
    outcome = settlement.outcome
    if isinstance(outcome, Degraded) and step.on_degraded != "accept":
        return []
    value = outcome.text if isinstance(outcome, Degraded) else outcome.value if isinstance(outcome, Accepted) else None
    writes: list[Write] = []
    if step.updates_context and settlement.merges_value:
        members = members_of(value)
        if members is None:
            raise UsageError(
                f"step {name!r} has updates_context, but its value is {kind_of(value)}, not a mapping; set sink_to, "
                "give its agent an output_schema, or wrap the value with wrap_dict"
            )
        writes += members
    if step.sink_to is not None:
        writes.append((path_of(step.sink_to), value))
    return writes
