"""The run of an agent: its options, its conversation, its calls and their cost, and its outcome.

`Run` is one object, shared by all code on both paths. It is changed in these places:

- `run_agent` (`agent`) and `recording` create it with the caller's options; `claim_run` gives it to the first agent;
- the path sets where it runs: `agent.DirectRun` once, `capability.Aros` from the context of each hook;
- each request begins an `Exchange`, filled in by the code that makes the call (`request.ReportedCall`,
  `stream.WatchedStream`), finds the answer (`response`) and reads it (`recover`);
- calls, texts and stages are added where they are made (`request`, `recover`);
- it ends with an outcome (`recover.recover`), or with an error that says why there is none (`Run.error`).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Final, Protocol

from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import FinishReason, ModelMessage, ModelRequest, ModelResponse, ModelResponseStreamEvent
from pydantic_ai.models import Model, ModelRequestContext, ModelRequestParameters
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import RunContext
from pydantic_ai.usage import RequestUsage, RunUsage, UsageLimits

from flujo_aros.contract import Check, Contract, TaggedContract
from flujo_aros.events import AgentFinished, AgentStarted, AskFinished, Event, StageFinished, current_observers, span
from flujo_aros.host.content import Prompt
from flujo_aros.host.models import Once, is_form_sent, wants_output
from flujo_aros.host.output import PartialOutput, allows_nothing
from flujo_aros.outcome import Accepted, Attempt, Degraded, Issue, Outcome, OutputError, Rejected, StageRecord
from flujo_aros.recovery import Ask, Evidence, Ladder, Reply, ladder_for
from flujo_aros.redaction import secrets_among
from flujo_aros.settings import current_settings
from flujo_aros.usage import Allowance, Usage

TEXT: Final = ModelRequestParameters()
"""A request for plain text."""


class Viewer(Protocol):
    """Displays a reply while it streams."""

    def begin(self) -> None:
        """Receive the start of another reply."""
        ...

    async def take(self, event: ModelResponseStreamEvent, /) -> None:
        """Show the text that an event adds to a reply."""
        ...

    async def append(self, text: str) -> None:
        """Show text appended to a reply that has been shown."""
        ...


class OpenStream(Protocol):
    """A streaming reply whose text so far is visible to others."""

    @property
    def usage(self) -> RequestUsage:
        """Its usage so far."""
        ...

    def so_far(self) -> ModelResponse:
        """Return the part that has arrived."""
        ...

    def revise(self, **changes: Any) -> None:
        """Change fields of the reply after its end."""
        ...


@dataclass(slots=True)
class Exchange:
    """The agent's latest own request, its result, and how that was read. Each request starts a new one."""

    request: ModelRequestContext | None = None
    wanted: Contract[Any] | None = None
    """The contract named for its output."""
    schema_refused: str = ""
    """The reason why the schema was put in the prompt, in one sentence, or an empty string while the provider accepts
    it.
    """

    began: float = 0.0
    seconds: float | None = None
    """The duration of the call, or None while its stream is open."""
    stream: OpenStream | None = None
    """The stream of the reply, if it is streamed."""
    response: ModelResponse | None = None
    """The reply, or None while the request is in progress and after a failed one."""
    error: Exception | None = None
    """The provider error that replaced or ended the reply."""
    fault: Reply | None = None
    """The reply to that error as the ladder sees it: its text is what the model had written, as far as known."""

    thought: bool = False
    """Whether the reply was empty, and its thinking is read instead."""
    unknown_tool: Issue | None = None
    """The error of a reply that only calls tools that do not exist."""
    raw_arguments: dict[str, str] = field(default_factory=dict[str, str])
    """The model's actual text, by the id of the tool call created from it."""
    passed_over: set[str] = field(default_factory=set[str])
    """The ids of unusable output tool calls, if the same response has a usable one."""
    partial_output: PartialOutput | None = None
    """The output that is validated while it streams, or None before there is one."""
    settled: tuple[str, Outcome[Any]] | None = None
    """A text that was recovered while it still streamed, and its outcome."""
    appended: str = ""
    """The text appended to a streamed reply that had already been shown."""
    judged: tuple[Check, ...] = ()
    """The checks that the outcome has passed, including those of its contract."""
    schema_ignored: bool = False
    """Whether the provider was asked to enforce the schema and the reply shows that it did not."""
    outcome: Outcome[Any] | None = None
    """The outcome of the reply, or None while unknown or if there was nothing to read."""
    summary: dict[str, Any] | None = None
    """That outcome as stored in the metadata of the message, or None for a reply that is valid as written."""

    @property
    def is_read(self) -> bool:
        """Whether the reply is to be read: a contract was named, or more than plain text was requested."""
        return self.wanted is not None or wants_output(self.parameters)

    @property
    def form_sent(self) -> bool:
        """Whether the provider is asked to enforce a format: a schema, a tool call, or any JSON."""
        return self.request is not None and is_form_sent(self.parameters, self.request.model)

    @property
    def parameters(self) -> ModelRequestParameters:
        """The request parameters."""
        return TEXT if self.request is None else self.request.model_request_parameters

    @property
    def settings(self) -> ModelSettings | None:
        """The model settings of the request, which also apply to the calls of the ladder."""
        return None if self.request is None else self.request.model_settings

    @property
    def model(self) -> str:
        """The name of the model that was asked."""
        return "" if self.request is None else self.request.model.model_name


@dataclass(slots=True)
class Run:
    """One run of an agent: its options, the conversation, the calls and their cost, the stages, and the outcome.

    `recording()` gives it to the caller.
    """

    # The caller's options. `contract` and `ladder` apply to an `Aros` without its own.
    contract: Contract[Any] | None = None
    ladder: Ladder | None = None
    allowance: Allowance | None = None
    """Asked before each model call of the run."""
    resolve: Callable[[str], Awaitable[Model]] | None = None
    """Returns the models that a stage names."""
    checks: tuple[Check, ...] = ()
    """Checks beyond the contract, for a contract that cannot contain them; they may be async."""
    secrets: Iterable[str] = ()
    """Values that no repair prompt may contain."""
    evidence: Evidence | None = None
    """The history that an adaptive ladder uses."""
    refusals: dict[str, str] = field(default_factory=dict[str, str])
    """The schemas that models have rejected, with the reasons: shared by the runs of a pipeline, and extended."""
    is_text_judged: bool = False
    """Whether truncated plain text is rejected. It is for steps, which do not check how a reply ended."""

    # The question, on the direct path.
    prompt: Prompt = ""
    history: Sequence[ModelMessage] = ()
    """The conversation before the prompt."""
    settings: ModelSettings | None = None
    """Model settings, which override the settings of the agent."""
    limits: UsageLimits | None = None
    deps: object = None

    # Where it runs, set by the path that runs it: by `DirectRun` once, by `Aros` from the context of each hook.
    usage: RunUsage = field(default_factory=RunUsage)
    """The usage counted by pydantic-ai."""
    run_id: str = ""
    name: str = ""
    """The name of the agent."""
    model: Model = field(init=False)
    """The model that is asked, without any wrappers."""
    messages: list[ModelMessage] = field(default_factory=list[ModelMessage])
    """The conversation so far."""
    context: RunContext[Any] | None = None
    """pydantic-ai's context of the latest hook; None on the direct path."""
    instrument: InstrumentationSettings | None = None
    """The settings of the spans, on the direct path."""
    put: Callable[[Ask], Awaitable[Reply]] | None = None
    """Lets an ask of a plan be answered elsewhere, for example by a durable engine."""

    # Options for the treatment of replies by `Aros`.
    capture: bool = False
    clean_history: bool = False
    own_ladder: Ladder | None = None
    """The ladder of the `Aros`, which comes before the caller's."""
    output_type: Any = None
    """The output type of the agent, as pydantic-ai knows it."""
    wanted: Contract[Any] | None = None
    """The contract for its outputs: that of the output type, of the `Aros`, or of the caller."""
    annotate: bool = False
    """Describe the repairs in the metadata of the messages."""

    calls: int = 0
    """The number of model calls made, including failed calls and repairs."""
    own_calls: int = 0
    """The agent's own calls, without the calls of stages."""
    broken_off: int = 0
    """The agent's own streams that ended before the provider could report their usage."""
    failed: int = 0
    """Calls of stages that returned no reply, which pydantic-ai does not count."""

    exchange: Exchange = field(default_factory=Exchange)
    stages: list[StageRecord] = field(default_factory=list[StageRecord])
    asks: list[AskFinished] = field(default_factory=list[AskFinished])
    """The model calls of the current stage."""
    texts: list[str] = field(default_factory=list[str])
    """All texts of the model."""
    viewer: Viewer | None = None
    """Shows the replies while they stream."""
    added: tuple[ModelMessage, ...] = ()
    """The messages that the run added to its conversation, or an empty tuple until it has ended with an output."""
    raised: OutputError | None = None
    """The error for a run without a value."""
    claimed: bool = False
    ended: bool = False
    """Whether the run of the agent that claimed it is over."""

    @property
    def outcome(self) -> Outcome[Any] | None:
        """The outcome of the latest reply, or None while unknown or if there was nothing to read."""
        return self.exchange.outcome

    @property
    def takes_nothing(self) -> bool:
        """Whether an empty reply is an answer."""
        return allows_nothing(self.output_type)

    def ladder_of(self, contract: Contract[Any]) -> Ladder:
        """Return the ladder for a contract."""
        return self.own_ladder or self.ladder or _ladders.get(ladder_for, contract, current_settings())

    def count_own(self, calls: int = 1) -> None:
        """Count a call that the agent is about to make; -1 takes back a call that was not allowed."""
        self.calls += calls
        self.own_calls += calls

    def begin(self, request: ModelRequestContext, contract: Contract[Any] | None) -> None:
        """Begin a request of the agent, which resets the state of the previous reply."""
        self.count_own()
        self.exchange = Exchange(request, contract)

    def hear(self, event: Event) -> None:
        """Handle an event of the ladder."""
        if isinstance(event, AskFinished):
            self.asks.append(event)
        elif isinstance(event, StageFinished):
            asks, self.asks = self.asks, []
            usage = Usage.total(ask.usage for ask in asks)
            seconds = sum(ask.seconds for ask in asks)
            self.stages.append(StageRecord(event.stage, event.outcome, event.reason, event.calls, usage, seconds))

    # The reply that is being read

    @property
    def question(self) -> tuple[ModelMessage, ...]:
        """The conversation up to the request whose reply is being read."""
        messages = self.messages
        while messages and not isinstance(messages[-1], ModelRequest):
            messages = messages[:-1]
        return tuple(messages)

    @property
    def reply(self) -> ModelResponse | None:
        """The part of the current reply that has arrived. The reply is not in the history before its stream ends."""
        last = self.messages[-1] if self.messages else None
        if isinstance(last, ModelResponse):
            return last
        return None if self.exchange.stream is None else self.exchange.stream.so_far()

    @property
    def finish(self) -> FinishReason | None:
        """The finish reason of that reply."""
        reply = self.reply
        return None if reply is None else reply.finish_reason

    def revise(self, **changes: Any) -> None:
        """Change fields of the current reply."""
        if self.messages and isinstance(self.messages[-1], ModelResponse):
            self.messages[-1] = replace(self.messages[-1], **changes)
        elif self.exchange.stream is not None:
            self.exchange.stream.revise(**changes)

    # The cost of the run

    @property
    def usage_so_far(self) -> RunUsage:
        """The usage counted by pydantic-ai, plus the reply whose stream is still open, which it counts later."""
        usage, stream = copy(self.usage), self.exchange.stream
        if stream is not None and not (self.messages and isinstance(self.messages[-1], ModelResponse)):
            usage.incr(stream.usage)
            usage.requests += 1
        return usage

    def check_call(self) -> None:
        """Raise `UsageLimitExceeded` if the limits of the run allow no further call."""
        if self.limits is not None:
            usage = self.usage_so_far
            usage.requests += self.failed
            self.limits.check_before_request(usage)

    def check_limits(self, response: ModelResponse | None = None) -> None:
        """Raise `UsageLimitExceeded` if the run has exceeded its limits, or a response the limit of one request."""
        limits = self.limits
        if limits is None:
            return
        usage = self.usage_so_far
        limits.check_tokens(usage)
        limits.check_cost(usage, warn_if_cost_unavailable=False)
        if response is not None and limits.per_request_input_tokens_limit is not None:
            limits.check_per_request_input_tokens(response.usage.input_tokens)

    @property
    def spent(self) -> Usage:
        """The usage of the run, including failed calls, which pydantic-ai does not count."""
        return self._spent_of(self.usage)

    def _spent_of(self, usage: RunUsage, before: RunUsage | None = None) -> Usage:
        """Return the usage since `before`, including failed calls. Failed calls and streams that broke off count as
        unmeasured.
        """
        used = difference(usage, before or RunUsage())
        failed = max(0, self.calls - used.requests)
        requests, unmeasured = used.requests + failed, used.unmeasured_requests + failed + self.broken_off
        return replace(used, requests=requests, unmeasured_requests=min(requests, unmeasured))

    @contextmanager
    def observed(self, *hidden: object) -> Generator[None]:
        """Attribute everything inside to this run. Nothing is emitted without an observer.

        `hidden` are objects that may contain secrets in fields named as such, for example dependencies and model
        settings.
        """
        if not current_observers():
            yield
            return
        run_id, name, before, started = self.run_id, self.name, copy(self.usage), time.perf_counter()
        secrets = tuple(secret for each in hidden if each for secret in secrets_among(each))
        with span(AgentStarted(run_id=run_id, name=name, secrets=secrets)) as finish:
            try:
                yield
            finally:
                outcome, raised = self.outcome, sys.exception()
                if isinstance(outcome, Degraded) and raised is not None and raised is self.raised:
                    outcome = outcome.because  # an agent raises instead of returning text in place of its output
                ended: str = Accepted.kind if outcome is None else outcome.kind
                if raised is not None and (outcome is None or raised is not self.raised):
                    ended = "failed" if isinstance(raised, Exception) else "cancelled"
                finish(
                    AgentFinished(
                        run_id=run_id,
                        name=name,
                        outcome=ended,
                        trust=None if outcome is None or isinstance(outcome, Rejected) else outcome.trust.value,
                        reason=outcome.reason.value if isinstance(outcome, Rejected) else None,
                        usage=self._spent_of(self.usage, before),
                        seconds=time.perf_counter() - started,
                    )
                )

    def error(self, outcome: Rejected | Degraded, usage: Usage | None = None) -> OutputError:
        """Return the error for a run that ends without a value, with everything that is known about it."""
        usage = usage or self._spent_of(self.usage_so_far)
        rejected = outcome.because if isinstance(outcome, Degraded) else outcome
        stages, wanted = tuple(stage.stage for stage in self.stages), self.exchange.wanted
        tried = f"; tried: {', '.join(stages)}" if stages else ""
        alone = Attempt("first", "rejected", rejected.reason, rejected.issues, text=rejected.text, usage=usage)
        tag = wanted.tag if isinstance(wanted, TaggedContract) else None
        known = {"run_id": self.run_id, "agent": self.name, "tag": tag}
        context = (self.context.metadata if self.context else None) or {}
        self.raised = OutputError.because(
            rejected,
            f"no value: {rejected.outline()}{tried}",
            stages=stages,
            texts=tuple(self.texts),
            usage=usage,
            attempts=rejected.attempts or (alone,),
            context={**context, **{name: value for name, value in known.items() if value}},
        )
        if self.exchange.error is not None:
            self.raised.__cause__ = self.exchange.error
        return self.raised


_ladders: Final = Once(256)
"""The default ladders. Making one, or finding it by its settings, takes as long as reading a reply."""

awaited_run: Final[ContextVar[Run | None]] = ContextVar("flujo_aros_awaited_run", default=None)
"""The run that a caller waits for, whether or not an agent has claimed it."""


@contextmanager
def recording(run: Run | None = None) -> Generator[Run]:
    """Record what `Aros` does in the first agent run that starts inside the block.

    ```python
    with recording() as record:
        result = await agent.run("…")      # an Agent with Aros() on it
    if record.outcome is not None:
        print(record.outcome.explain(), record.stages)
    ```
    """
    awaited = run or Run()
    token = awaited_run.set(awaited)
    try:
        yield awaited
    finally:
        awaited_run.reset(token)


def claim_run() -> Run:
    """Return the run that a caller waits for to the first agent that asks, and a new run to any other."""
    run = awaited_run.get()
    if run is None or run.claimed:
        run = Run()
    run.claimed = True
    return run


class AgentOutputError(OutputError, UnexpectedModelBehavior):
    """Raised by an agent run that ends without a value. It is also an instance of the host's own error, for code that
    catches that.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle all attributes, where the host's error would keep only its message."""
        return type(self), (self.message,), self.__dict__

    @classmethod
    def of(cls, error: OutputError) -> AgentOutputError:
        """Return the same error as an instance of the host's class, or itself if it is one already."""
        if isinstance(error, cls):
            return error
        made = cls(*error.args)
        made.__dict__.update(error.__dict__)
        made.__cause__ = error.__cause__
        return made.with_traceback(error.__traceback__)


def difference(after: RunUsage, before: RunUsage) -> Usage:
    """Return the usage between two states of one `RunUsage`."""
    cost = None if after.cost is None else after.cost - (before.cost or Decimal(0))
    return Usage(
        after.requests - before.requests,
        after.input_tokens - before.input_tokens,
        after.output_tokens - before.output_tokens,
        cost,
        after.unmeasured_requests - before.unmeasured_requests,
    )
