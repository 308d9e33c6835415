"""Records what `Aros` did in one run of an agent: the outcome, the stages, the calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractContextManager
from contextvars import ContextVar, Token
from dataclasses import dataclass, field, replace
from decimal import Decimal
from types import TracebackType
from typing import Any, Protocol

from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponseStreamEvent
from pydantic_ai.models import Model, ModelRequestContext, ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import RunContext
from pydantic_ai.usage import RunUsage

from flujo_aros.contract import Check, Contract
from flujo_aros.events import AskFinished, Event, StageFinished
from flujo_aros.host.faults import Fault
from flujo_aros.host.model_facts import is_form_sent, wants_output
from flujo_aros.host.partial_output import PartialOutput
from flujo_aros.outcome import Attempt, Degraded, Issue, Outcome, OutputError, Rejected
from flujo_aros.recovery import Evidence, Ladder
from flujo_aros.usage import Allowance, Usage


@dataclass(frozen=True, slots=True)
class StageRecord:
    """One stage of a ladder: its outcome, the reason if it failed, and the usage of its model calls."""

    stage: str
    outcome: str
    reason: str | None
    calls: int
    usage: Usage = field(default_factory=Usage, compare=False)
    seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What the caller wants of one run. `contract` and `ladder` are for an `Aros` that has none of its own."""

    contract: Contract[Any] | None = None
    ladder: Ladder | None = None
    allowance: Allowance | None = None
    """Asked before each model call of the run."""
    resolve: Callable[[str], Awaitable[Model]] | None = None
    """Gives the models that a stage names."""
    checks: tuple[Check, ...] = ()
    """What an output must be beyond its contract, where the contract itself cannot say so; they may be async."""
    secrets: Iterable[str] = ()
    """Values that no repair prompt may hold."""
    evidence: Evidence | None = None
    """What a ladder that adapts goes by."""
    refusals: dict[str, str] = field(default_factory=dict[str, str])
    """Which schemas were refused by which models, and why: shared by the runs of a pipeline, and added to."""
    is_text_judged: bool = False
    """Whether plain text that was cut is no output: so it is for steps, where nobody looks at how a reply ended."""


class Viewer(Protocol):
    """Shows a reply while it streams."""

    def begin(self) -> None:
        """Another reply begins."""
        ...

    async def take(self, event: ModelResponseStreamEvent, /) -> None:
        """Show what an event of a reply adds to it."""
        ...


@dataclass(slots=True)
class Tally:
    """The model calls of a run, as those who make them count them."""

    calls: int = 0
    """All of them."""
    own_calls: int = 0
    """Those of the agent's own, and of no stage."""
    broken_off: int = 0
    """Streams of the agent's own that ended before the provider could report their usage."""
    failed: int = 0
    """Calls of stages that gave no reply: pydantic-ai does not count them."""

    def count_own(self) -> None:
        """The agent is about to ask its model."""
        self.calls += 1
        self.own_calls += 1

    def take_back_own(self) -> None:
        """It was not allowed to."""
        self.calls -= 1
        self.own_calls -= 1


@dataclass(slots=True)
class Exchange:
    """The latest request of the agent's own, what came of it, and how that was read. Each request begins a new one."""

    request: ModelRequestContext | None = None
    wanted: Contract[Any] | None = None
    """The contract that was named for its output."""
    context: RunContext[Any] | None = None
    """pydantic-ai's context of the request; None on the direct path."""
    is_read: bool = False
    """Whether the reply is to be read: a contract was named, or more than plain text was asked for."""
    form_sent: bool = False
    """Whether the provider is asked to enforce a form: a schema, the call of a tool, or JSON at all."""
    schema_refused: str = ""
    """Why the schema was asked for in words, in one sentence; empty while the provider takes it."""

    began: float = 0.0
    seconds: float | None = None
    """How long the call took; None while its stream is under way."""
    stream: StreamedResponse | None = None
    """The stream of the reply, if it is streamed."""
    response: ModelResponse | None = None
    """The reply; None while the request is under way, and after one that failed."""
    used: tuple[ModelResponse | None, Usage] | None = None
    """The response as it came, and what it has used: its price takes a search to find."""
    fault: Fault | None = None
    """The error of the provider that took the place of the reply, or ended it."""

    thought: bool = False
    """Whether the reply was empty, and its thinking is read in its place."""
    unknown_tool: Issue | None = None
    """What is wrong with a reply that only calls tools which do not exist."""
    raw_arguments: dict[str, str] = field(default_factory=dict[str, str])
    """What the model really wrote, by the id of the tool call that was made of it."""
    passed_over: set[str] = field(default_factory=set[str])
    """The ids of calls of output tools that cannot be used, where the same response has one that can."""
    partial_output: PartialOutput | None = None
    """The output that is validated while it streams; None before there was one."""
    settled: tuple[str, Outcome[Any]] | None = None
    """A text that was recovered while it still streamed, and what it came to."""
    appended: str = ""
    """What was put behind a streamed reply, which by then had been shown."""
    judged: tuple[Check, ...] = ()
    """The checks that the outcome has gone through, also those of the contract that it was read by."""
    schema_ignored: bool = False
    """Whether the provider was asked to enforce the schema and the reply shows that it did not."""
    outcome: Outcome[Any] | None = None
    """What the reply came to; None while it is not known, and where there was nothing to read."""
    summary: dict[str, Any] | None = None
    """That outcome as the metadata of the message has it; None for a reply that is right as it stands."""

    @property
    def parameters(self) -> ModelRequestParameters | None:
        """What the model was asked for."""
        return None if self.request is None else self.request.model_request_parameters

    @property
    def settings(self) -> ModelSettings | None:
        """The model settings of the request, which hold for the calls of the ladder, too."""
        return None if self.request is None else self.request.model_settings

    @property
    def model(self) -> str:
        """The model that was asked, by its name."""
        return "" if self.request is None else self.request.model.model_name


@dataclass(slots=True)
class RunRecord:
    """The record of one run of an agent: the stages that ran, all texts of the model, the calls, the outcome."""

    options: RunOptions = field(default_factory=RunOptions)
    tally: Tally = field(default_factory=Tally)
    exchange: Exchange = field(default_factory=Exchange)
    stages: list[StageRecord] = field(default_factory=list[StageRecord])
    asks: list[AskFinished] = field(default_factory=list[AskFinished])
    """The model calls of the stage that is under way."""
    texts: list[str] = field(default_factory=list[str])
    viewer: Viewer | None = None
    """Shows the replies of a run whose agent graph does not stream them."""
    messages: tuple[ModelMessage, ...] = ()
    """What the run has added to its conversation; nothing before it has ended with an output."""
    error: OutputError | None = None
    claimed: bool = False

    @property
    def outcome(self) -> Outcome[Any] | None:
        """What the latest reply came to; None while it is not known, and where there was nothing to read."""
        return self.exchange.outcome

    @property
    def calls(self) -> int:
        """How many model calls were made, failed ones and repairs included."""
        return self.tally.calls

    def begin(
        self, request: ModelRequestContext, contract: Contract[Any] | None, context: RunContext[Any] | None = None
    ) -> None:
        """The agent is about to ask its model: what is known of the reply before no longer holds."""
        self.tally.count_own()
        parameters = request.model_request_parameters
        is_read = contract is not None or wants_output(parameters)
        self.exchange = Exchange(request, contract, context, is_read, is_form_sent(parameters, request.model))

    def hear(self, event: Event) -> None:
        """Take what the ladder reports."""
        if isinstance(event, AskFinished):
            self.asks.append(event)
        elif isinstance(event, StageFinished):
            asks, self.asks = self.asks, []
            usage = Usage.total(ask.usage for ask in asks)
            seconds = sum(ask.seconds for ask in asks)
            self.stages.append(StageRecord(event.stage, event.outcome, event.reason, event.calls, usage, seconds))

    def spent(self, usage: RunUsage) -> Usage:
        """The usage of the run, with the calls that failed and that the host therefore does not count."""
        return self.counted(difference(usage, RunUsage()))

    def counted(self, used: Usage) -> Usage:
        """What the host has counted, with the calls that failed; those and streams that broke off are not measured."""
        failed = max(0, self.calls - used.requests)
        unmeasured = failed + self.tally.broken_off
        if not unmeasured:
            return used
        requests = used.requests + failed
        return replace(
            used, requests=requests, unmeasured_requests=min(requests, used.unmeasured_requests + unmeasured)
        )


_awaited: ContextVar[RunRecord | None] = ContextVar("flujo_aros_awaited_record", default=None)


def recording(record: RunRecord | None = None) -> AbstractContextManager[RunRecord]:
    """Record what `Aros` does in the first agent run that starts inside the block.

    ```python
    with recording() as record:
        result = await agent.run("…")      # an Agent with Aros() on it
    if record.outcome is not None:
        print(record.outcome.explain(), record.stages)
    ```
    """
    return _Recording(record or RunRecord())


class _Recording:
    """A class and not a generator: there is one for each step."""

    __slots__ = ("_record", "_token")

    _token: Token[RunRecord | None]

    def __init__(self, record: RunRecord) -> None:
        self._record = record

    def __enter__(self) -> RunRecord:
        self._token = _awaited.set(self._record)
        return self._record

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        _awaited.reset(self._token)


def awaited_record() -> RunRecord | None:
    """The record that a caller waits for, whether or not a run has claimed it."""
    return _awaited.get()


def claim_record() -> RunRecord:
    """The record that a caller waits for, for the first agent run that asks; a fresh one for every other."""
    record = _awaited.get()
    if record is None or record.claimed:
        record = RunRecord()
    record.claimed = True
    return record


class AgentOutputError(OutputError, UnexpectedModelBehavior):
    """What a run of an agent raises without a value: also the host's own error, for code that already catches that."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Everything that is known, where the host's error would keep its message alone."""
        return type(self), (self.message,), self.__dict__

    @classmethod
    def of(cls, error: OutputError) -> AgentOutputError:
        """The same error as one of the host; itself where it is."""
        if isinstance(error, cls):
            return error
        made = cls(*error.args)
        made.__dict__.update(error.__dict__)
        made.__cause__ = error.__cause__
        return made.with_traceback(error.__traceback__)


def output_error(outcome: Rejected | Degraded, record: RunRecord, usage: Usage, context: dict[str, Any]) -> OutputError:
    """The error for a run whose ladder ended without a value, with everything that is known about it.

    `context` describes the run: its id, its agent, the tag, and the caller's own metadata.
    """
    rejected = outcome.because if isinstance(outcome, Degraded) else outcome
    stages = tuple(stage.stage for stage in record.stages)
    tried = f"; tried: {', '.join(stages)}" if stages else ""
    alone = Attempt("first", "rejected", rejected.reason, rejected.issues, text=rejected.text, usage=usage)
    return OutputError(
        f"no value: {rejected.outline()}{tried}",
        reason=rejected.reason,
        issues=rejected.issues,
        stages=stages,
        texts=tuple(record.texts),
        usage=usage,
        raw_matched=rejected.raw_matched,
        tag=rejected.tag,
        attempts=rejected.attempts or (alone,),
        context=context,
    )


def difference(after: RunUsage, before: RunUsage) -> Usage:
    """What was used between two states of one `RunUsage`."""
    cost = None if after.cost is None else after.cost - (before.cost or Decimal(0))
    return Usage(
        after.requests - before.requests,
        after.input_tokens - before.input_tokens,
        after.output_tokens - before.output_tokens,
        cost,
        after.unmeasured_requests - before.unmeasured_requests,
    )
