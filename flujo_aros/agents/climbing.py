"""One climb of a ladder inside of a run: what the plan may know, who answers its asks, and what the caller allows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from time import monotonic, perf_counter
from typing import Any, Final, TypeAlias, cast

from pydantic_ai.capabilities import AbstractCapability, Instrumentation
from pydantic_ai.exceptions import UsageLimitExceeded
from pydantic_ai.messages import FinishReason, ModelMessage, ModelRequest, ModelResponse
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import RunContext
from pydantic_ai.usage import RequestUsage
from pydantic_core import to_json
from typing_extensions import TypeIs

from flujo_aros.agents.asking import ModelAnswers, adrive, limits_left, native_of, was_cut
from flujo_aros.agents.awaiting import AwaitedChecks
from flujo_aros.agents.first import text_of, usage_of
from flujo_aros.agents.private import SecretsAtHand
from flujo_aros.agents.record import RunRecord, difference
from flujo_aros.agents.salvage import reply_of
from flujo_aros.agents.streams import WatchedModel, WatchedStream
from flujo_aros.agents.wording import is_refused
from flujo_aros.contract.output import Contract, compile_contract
from flujo_aros.contract.schema import is_dict
from flujo_aros.errors import LimitReached, UsageError
from flujo_aros.events import observing
from flujo_aros.outcome import Accepted, Issue, Outcome, Trust
from flujo_aros.recovery.climb import read_first
from flujo_aros.recovery.echo import Examples
from flujo_aros.recovery.ladder import Ladder
from flujo_aros.recovery.plan import Ask, Reply, Task, Way
from flujo_aros.usage import Usage

_WITHOUT_A_CALL: Final = ("block", "event")
"""The contracts that may end in a value where no further call may be made: a block or a verdict is made up."""
_FILE: Final = 4_000
"""What an image, or any other file, counts as, in characters."""
Put: TypeAlias = Callable[[RunContext[Any], "Question"], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class Question:
    """One ask of a plan as plain data, so that a durable engine can carry it: the contract only as its JSON Schema."""

    prompt: str
    stage: str
    attempt: int
    way: Way
    model: str | None
    max_tokens: int | None
    said: list[str]
    json_schema: dict[str, Any] | None
    settings: dict[str, Any]
    conversation: list[ModelMessage]

    @classmethod
    def of(cls, ask: Ask, ctx: RunContext[Any], record: RunRecord) -> Question:
        """The question of an ask in this run."""
        # What is enforced goes along, and what the question alone does not say: the form of the answer.
        form = ask.enforced or (ask.in_conversation and not ask.prompt and ask.contract.mode == "json")
        return cls(
            ask.prompt,
            ask.stage,
            ask.attempt,
            ask.way,
            ask.model,
            ask.max_tokens,
            list(ask.said),
            dict(ask.contract.json_schema) if form else None,
            cast("dict[str, Any]", dict(record.settings or {})),
            list(_asked(ctx)) if ask.in_conversation else [],
        )

    @property
    def ask(self) -> Ask:
        """The ask, for whoever answers it."""
        contract = compile_contract(self.json_schema or {})
        said = tuple(self.said)
        return Ask(self.prompt, self.stage, self.attempt, contract, self.way, self.model, self.max_tokens, said)


async def answer(ctx: RunContext[Any], record: RunRecord | None, question: Question, *, capture: bool) -> Reply:
    """Make the one model call of a question, with the usage, the limits and the instruments of the run."""
    known = record or RunRecord()
    known.settings = cast("ModelSettings", question.settings)
    answers = ModelAnswers(
        run_model(ctx),
        ctx.usage,
        limits_left(ctx.usage_limits, _uncounted(ctx, known), known.failed),
        known,
        _instruments(ctx),
        tuple(question.conversation),
        resolve=known.resolve,
        capture=capture,
    )
    return await answers(question.ask)


@dataclass(frozen=True, slots=True)
class Climb:
    """Takes replies of a run up a ladder, within the limits of the run. `put` has a question answered."""

    ctx: RunContext[Any]
    record: RunRecord
    ladder: Ladder
    contract: Contract[Any]
    put: Put
    capture: bool = False
    awaited: AwaitedChecks | None = None
    """The checks that no plan can judge."""

    async def outcome(self, text: str, finish: FinishReason | None, objections: tuple[Issue, ...] = ()) -> Outcome[Any]:
        """What a reply comes to, by way of the ladder if need be."""
        fault = self.record.fault
        if fault is None:
            refused, thought = finish == "content_filter", self.record.thought
            reply = Reply(text, was_cut(finish), objections=objections, refused=refused, thought=thought)
        else:
            reply = replace(reply_of(fault, text), objections=objections)
        if self.awaited is not None:
            reply = await self.awaited.heard(reply, self.contract)
        examples = Examples(self._prompt)
        read = read_first(reply, self.contract, self.ladder.stages, examples, capture=self.capture)
        if isinstance(read, Accepted) and read.trust is Trust.CLEAN:  # the usual case: no plan is made for it
            return read
        whole = replace(reply, usage=_used(self.record), seconds=_taken(self.record))
        return await self._climb(whole, read, examples)

    async def _climb(self, reply: Reply, read: Outcome[Any], examples: Examples) -> Outcome[Any]:
        refused: list[UsageLimitExceeded] = []

        async def answer(ask: Ask) -> Reply:
            try:
                heard = await self._answer(ask)
                return heard if self.awaited is None else await self.awaited.heard(heard, ask.contract)
            except UsageLimitExceeded as error:
                if self.contract.mode not in _WITHOUT_A_CALL:
                    raise
                refused.append(error)
                return Reply("", unmade=str(error), used_up=True)

        with observing(self.record.hear):
            found = await adrive(self.ladder.climb(self._task(examples), reply, read), answer)
        if refused and not isinstance(found, Accepted):
            raise refused[0]
        return found

    def without_asking(self) -> Climb:
        """The same with nothing but the stages that make no call."""
        stages = tuple(stage for stage in self.ladder.stages if not stage.asks)
        return replace(self, ladder=self.ladder.model_copy(update={"stages": stages}))

    def _prompt(self) -> str:
        return text_of(self.ctx.messages)

    def _task(self, examples: Examples) -> Task[Any]:
        record = self.record
        model, settings = run_model(self.ctx), record.settings or {}
        refused = is_refused(model, self.contract, record)
        return Task(
            self.contract,
            capture=self.capture,
            clock=monotonic,
            model=model.model_name,
            native="no" if refused else native_of(model, record.parameters, self.contract),
            # A reply that an error has ended met no budget: more room would not have helped.
            max_tokens=settings.get("max_tokens") if record.fault is None or not record.fault.broken_off else None,
            secrets=SecretsAtHand(self.ctx, self.record),
            evidence=self.record.evidence,
            examples=examples,
            spent=Usage.total(stage.usage for stage in self.record.stages),
            question_chars=_size_of(_asked(self.ctx)),
        )

    async def _answer(self, ask: Ask) -> Reply:
        """The reply to one ask. A call that the caller does not allow is not made."""
        before, calls, allowance = copy(self.ctx.usage), self.record.calls, self.record.allowance
        try:
            settle = None if allowance is None else await allowance.reserve()
        except LimitReached as error:
            return Reply("", unmade=str(error), used_up=True)
        try:
            return await self._put(ask)
        finally:
            if settle is not None:
                used = difference(self.ctx.usage, before)  # without the calls that failed: the host counts none of them
                settle(replace(used, requests=max(used.requests, self.record.calls - calls)))

    async def _put(self, ask: Ask) -> Reply:
        record, calls = self.record, self.record.calls
        reply = await self.put(self.ctx, Question.of(ask, self.ctx, record))
        if record.calls == calls and reply.usage.requests:  # made in another place, or before a recovery
            record.calls += 1
            record.texts.append(reply.text)
        return reply


def _used(record: RunRecord) -> Usage:
    """What the call has used whose reply is to be read."""
    own, known = record.response, record.used
    if own is None and isinstance(record.stream, WatchedStream):  # it has not been put into the history yet
        return usage_of(record.stream.so_far())
    if own is None:
        return Usage() if record.fault is None else Usage(requests=1, unmeasured_requests=1)
    if known is not None and known[0] is own:
        return known[1]
    used = own.usage  # the host has put its price there by now, if there is one: nobody need search for it again
    return Usage(1, used.input_tokens, used.output_tokens, used.cost, used.unmeasured_requests)


def _taken(record: RunRecord) -> float:
    """How long the call took whose reply is to be read, so far if its stream has not ended."""
    return perf_counter() - record.began if record.seconds is None else record.seconds


def run_model(ctx: RunContext[Any]) -> Model:
    """The model of the run. A realtime session has another kind, but no structured output that we would see."""
    if not _asks(ctx.model):
        message = f"Aros cannot ask {ctx.model.model_name!r} again: it is not a model for single requests"
        raise UsageError(message)
    return ctx.model.wrapped if isinstance(ctx.model, WatchedModel) else ctx.model


def _asks(model: object) -> TypeIs[Model[Any]]:
    return isinstance(model, Model)


def finish_of(ctx: RunContext[Any], record: RunRecord) -> FinishReason | None:
    """Why the reply that is being validated ended; it is not in the history before its stream has ended."""
    last = ctx.messages[-1] if ctx.messages else None
    if isinstance(last, ModelResponse):
        return last.finish_reason
    return record.stream.so_far().finish_reason if isinstance(record.stream, WatchedStream) else None


def spent_in(ctx: RunContext[Any], record: RunRecord) -> Usage:
    """What a run has used, with the reply that is being validated and the calls that failed."""
    counted, uncounted = copy(ctx.usage), _uncounted(ctx, record)
    if uncounted is not None:
        counted.incr(uncounted)
        counted.requests += 1
    return record.spent(counted)


def _uncounted(ctx: RunContext[Any], record: RunRecord) -> RequestUsage | None:
    """The usage of the reply that is being validated, where the host has not counted it yet: in its own stream."""
    counted = bool(ctx.messages) and isinstance(ctx.messages[-1], ModelResponse)
    return None if counted or record.stream is None else record.stream.usage


def _instruments(ctx: RunContext[Any]) -> tuple[AbstractCapability[Any], ...]:
    """The instrumentation of the run."""
    parts: list[AbstractCapability[Any]] = []
    if ctx.root_capability is not None:
        ctx.root_capability.apply(parts.append)
    return tuple(part for part in parts if isinstance(part, Instrumentation))


def _size_of(messages: Sequence[ModelMessage]) -> int:
    """About how many characters it takes to send these messages again."""
    return sum(
        len((message.instructions or "") if isinstance(message, ModelRequest) else "")
        + sum(_chars(getattr(part, "content", None) or getattr(part, "args", None)) for part in message.parts)
        for message in messages
    )


def _chars(content: object) -> int:
    if content is None or isinstance(content, str):
        return len(content or "")
    if isinstance(content, (list, tuple)):
        return sum(map(_chars, cast("Sequence[object]", content)))
    return len(to_json(content, fallback=str)) if is_dict(content) else _FILE


def _asked(ctx: RunContext[Any]) -> tuple[ModelMessage, ...]:
    """The conversation up to the request whose reply is being validated."""
    messages = ctx.messages
    while messages and not isinstance(messages[-1], ModelRequest):
        messages = messages[:-1]
    return tuple(messages)
