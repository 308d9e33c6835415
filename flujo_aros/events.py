"""Events: frozen records of what happens, in started/finished pairs, and the observers that receive them.

Only the code that performs an action emits its event; observers only listen. `observing(...)` binds them to
everything that runs inside it, so that a capability without a runner feeds the same observers. Each event carries its
`scope`: the run, step, stage and agent run in which it was emitted. An observer is therefore a function of the events
alone, wherever and whenever it receives them.

Prompts and replies are always in the events. An observer that sends data out of the process masks or drops them,
unless the user has opted in with `capture`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from inspect import iscoroutinefunction
from itertools import count
from types import TracebackType
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

from flujo_aros.errors import UsageError
from flujo_aros.outcome import Issue, Repair
from flujo_aros.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The origin of an event: the enclosing operations, by ids that are unique in this process; 0 means none.

    The two events of a pair have the same scope, which is that of the run, step, stage, agent run or model call itself.
    """

    id: int = 0
    """The innermost running operation."""
    path: tuple[int, ...] = ()
    """All running operations, outermost first, ending with `id`."""
    run: int = 0
    """The pipeline run; without a pipeline, the outermost agent run."""
    run_id: str | None = None
    pipeline: str = ""
    steps: tuple[int, ...] = ()
    """The steps of the run, outermost first."""
    step_name: str = ""
    """The full name of the innermost step."""
    stage: str = ""
    """The stage of the ladder."""
    agent: int = 0
    """The innermost run of an agent within the step."""
    began: float = field(default=0.0, compare=False)
    """When the innermost operation started, by `time.perf_counter`."""

    @property
    def parent(self) -> int:
        """The operation that directly encloses the innermost one."""
        return self.path[-2] if len(self.path) > 1 else 0

    @property
    def step(self) -> int:
        """The innermost step."""
        return self.steps[-1] if self.steps else 0

    @property
    def owner(self) -> int:
        """The innermost agent run, step or run, to which model calls and replies belong."""
        return self.agent or self.step or self.run

    @property
    def seconds(self) -> float:
        """The time for which the innermost operation has been running."""
        return time.perf_counter() - self.began


NOWHERE: Final = Scope()
"""The scope of an event that was emitted outside any run, or has not been emitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Emitted:
    """The common fields of all events."""

    scope: Scope = field(default=NOWHERE, repr=False, compare=False)
    """Where it was emitted."""
    at: float = field(default=0.0, repr=False, compare=False)
    """When it was emitted, in seconds since 1970."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(_Emitted):
    """A pipeline began, with `input`.

    `secrets` are values from its context and blueprint that observers must mask, recognized by their names.
    `resumed` is True if it continues a run that was paused, or whose process ended.
    """

    run_id: str
    pipeline: str
    secrets: tuple[str, ...] = field(default=(), repr=False)
    resumed: bool = False
    settled: frozenset[str] | None = None
    """The steps that were already settled, if the run is recovered from a durable record. They emit no further events;
    everything else in the run is reported again from the start.
    """
    carrier: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    """Data that observers need when the run is resumed, such as a `traceparent`; saved with a paused run."""
    input: Any = field(default=None, repr=False)


NEVER_STARTED: Final = "an earlier step ended the run"
"""The reason why a step that the run did not reach was skipped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished(_Emitted):
    """A pipeline ended; `status` is the status of the `RunResult`, and `output` its result if it completed."""

    run_id: str
    pipeline: str
    status: str
    usage: Usage
    seconds: float
    output: Any = field(default=None, repr=False)
    never_started: Mapping[str, str] = field(default_factory=dict[str, str])
    """The kinds of the steps, by name, that did not start because an earlier one failed the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStarted(_Emitted):
    """A step opened its slot in the run ledger. `name` is the full name (`parallel/a`)."""

    run_id: str
    name: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFinished(_Emitted):
    """A step settled, exactly once."""

    run_id: str
    name: str
    kind: str
    status: str
    trust: str | None
    reason: str | None
    usage: Usage
    seconds: float
    attempts: int = 1
    error: str | None = None
    input_trust: str | None = None
    """The lowest trust among the inputs of the step."""
    output: Any = field(default=None, repr=False)
    """The value that the step passes on, or None if it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepNoted(_Emitted):
    """Plain JSON that a step reports besides its value: the votes of an `agreement`, or an event of an `ensemble`."""

    note: str
    data: dict[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCalled(_Emitted):
    """The function of a step is called with this input, or a person has answered this question."""

    input: Any = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStarted(_Emitted):
    """A run of an agent with the `Aros` capability began; outside a pipeline it is the outermost scope.

    `secrets` are values from its dependencies that observers must mask, recognized by their names or types.
    """

    run_id: str
    name: str = ""
    secrets: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFinished(_Emitted):
    """A run of an agent ended: `outcome` is accepted, degraded, rejected, failed or cancelled."""

    run_id: str
    outcome: str
    trust: str | None
    reason: str | None
    usage: Usage
    seconds: float
    name: str = ""


ANSWER: Final = "answer"
"""The stage of a reading if a person's answer was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFinished(_Emitted):
    """A reply was read: `outcome` is accepted, degraded or rejected."""

    stage: str
    """The stage that asked for it, "first", or `ANSWER`."""
    outcome: str
    trust: str | None
    reason: str | None
    repairs: tuple[Repair, ...] = ()
    issues: tuple[Issue, ...] = ()
    schema_hash: str | None = None
    contract: object = field(default=None, repr=False)
    """The contract that the reply was read with."""
    ladder: object = field(default=None, repr=False)
    """The ladder for a first reply."""
    model: str = ""
    """The model that wrote the reply."""
    finish_reason: str | None = None
    """The finish reason reported by the provider."""
    text: str = field(default="", repr=False)
    capture: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StageStarted(_Emitted):
    """A stage of the ladder began, because of `reason`, in a run of this model, for the contract with this hash."""

    stage: str
    reason: str
    schema_hash: str | None = None
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFinished(_Emitted):
    """A stage of the ladder ended after `calls` model calls; `because` is the reason why it was started."""

    stage: str
    outcome: str
    reason: str | None
    calls: int
    because: str = ""
    schema_hash: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSkipped(_Emitted):
    """A stage of the ladder was skipped, and why, in one sentence."""

    stage: str
    why: str
    schema_hash: str | None = None
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskStarted(_Emitted):
    """A model call is about to be made: for a stage of a ladder, or "first" for the agent's own."""

    stage: str
    attempt: int
    model: str = ""
    constrained: bool = False
    """Whether the provider was asked to enforce the schema."""
    prompt: str = field(default="", repr=False)
    """Everything sent to the model as text, `system` included."""
    system: str = field(default="", repr=False)
    """The resolved instructions and system prompts."""
    capture: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AskFinished(_Emitted):
    """A model call returned, or failed with a `fault`. `usage` covers this call alone."""

    stage: str
    attempt: int
    usage: Usage
    model: str = ""
    seconds: float = 0.0
    finish_reason: str | None = None
    fault: str | None = None
    first_seconds: float | None = None
    """Seconds until the first chunk of a streamed reply arrived."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta(_Emitted):
    """A chunk of a reply, as the model writes it."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialValue(_Emitted):
    """The value so far, plain JSON. The fields at `final_paths` will not change unless a later value is `restarted`."""

    value: Any
    final_paths: frozenset[str] = frozenset()
    restarted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TextReplaced(_Emitted):
    """The text shown so far is replaced by this text."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TextAppended(_Emitted):
    """This text is appended to the text shown so far."""

    text: str


LiveEvent: TypeAlias = TextDelta | PartialValue | TextReplaced | TextAppended
"""Events of a reply while it streams."""

Event: TypeAlias = (
    RunStarted
    | RunFinished
    | StepStarted
    | StepFinished
    | StepNoted
    | FunctionCalled
    | AgentStarted
    | AgentFinished
    | ReadFinished
    | StageStarted
    | StageFinished
    | StageSkipped
    | AskStarted
    | AskFinished
    | LiveEvent
)


class Observer(Protocol):
    """A callable that receives each event. It must not raise and must return quickly.

    For a started event it may return a context manager: it is entered immediately and left when the pair is finished,
    so that spans nest.
    """

    def __call__(self, event: Event, /) -> AbstractContextManager[object] | None:
        """Receive one event."""
        ...


@runtime_checkable
class BufferedObserver(Observer, Protocol):
    """An observer that writes events with a delay, such as the journal.

    A durable engine flushes it before it records a step as settled, because the events of a recorded step are not
    emitted again.
    """

    def flush(self, timeout: float = ...) -> bool:
        """Write every event received so far; return False if that took longer than `timeout` seconds."""
        ...


_observers: ContextVar[tuple[Observer, ...]] = ContextVar("flujo_aros_observers", default=())
current_observers: Final = _observers.get
"""Returns the active observers. Data that only observers need is not computed if there are none."""
_scope: ContextVar[Scope] = ContextVar("flujo_aros_scope", default=NOWHERE)
current_scope: Final = _scope.get
"""Returns the scope that an event emitted now would have."""
_ids: Final = count(1)


@contextmanager
def observing(*observers: Observer) -> Generator[None]:
    """Send every event emitted inside the block to these observers, in addition to those already active.

    >>> seen = []
    >>> with observing(seen.append):
    ...     emit(StageStarted(stage="retry", reason="no_json"))
    >>> seen[0].stage
    'retry'
    """
    for each in observers:
        if not is_observer(each):
            raise UsageError(f"observing takes functions of an event that are not async, not {each!r}")
    token = _observers.set((*_observers.get(), *observers))
    try:
        yield
    finally:
        _observers.reset(token)


def is_observer(value: object) -> bool:
    """Return whether a value can be an observer: a function that is not async, or an instance that is called."""
    if isinstance(value, type) or not callable(value):
        return False
    return not any(iscoroutinefunction(each) for each in (value, getattr(value, "__call__", None)))  # noqa: B004


def emit(event: Event) -> None:
    """Send an event to every observer, with the scope and the time of the call.

    >>> seen = []
    >>> with observing(seen.append), span(StepStarted(run_id="r", name="extract", kind="step")):
    ...     emit(StageSkipped(stage="retry", why="no budget"))
    >>> seen[1].scope.step_name
    'extract'
    """
    _send(event, _scope.get())


def _send(event: Event, scope: Scope) -> None:
    observers = _observers.get()
    if observers:
        _stamp(event, scope)
        for observer in observers:
            observer(event)


def _stamp(event: Event, scope: Scope) -> None:
    # Set once, on emission, the way a frozen dataclass sets its own fields: copying each event would cost more.
    object.__setattr__(event, "scope", scope)
    object.__setattr__(event, "at", time.time())


Finish: TypeAlias = Callable[[Event], None]
"""Emits the finished event, the partner of the started one."""


def span(started: Event) -> AbstractContextManager[Finish, None]:
    """Emit a started event, open its scope for the block, and keep what observers return until the block ends.

    The block gets the function that emits the finished event, which has the scope of the started one, even if a stream
    is closed by a different task from the one that opened it.

    >>> with span(StageStarted(stage="retry", reason="no_json")) as finish:
    ...     finish(StageFinished(stage="retry", outcome="accepted", reason=None, calls=1))
    """
    return _Span(started)


def _open_scope(around: Scope, started: Event) -> Scope:
    """Return the scope of the operation that starts, nested in the current one."""
    own = next(_ids)
    new: dict[str, Any] = {"id": own, "path": (*around.path, own), "began": time.perf_counter()}
    match started:
        case RunStarted():
            new |= {"run": own, "run_id": started.run_id, "pipeline": started.pipeline}
            new |= {"steps": (), "step_name": "", "stage": "", "agent": 0}
        case StepStarted():
            new |= {"steps": (*around.steps, own), "step_name": started.name, "stage": "", "agent": 0}
        case StageStarted():
            new["stage"] = started.stage
        case AgentStarted():
            new |= {"run": around.run or own, "run_id": around.run_id or started.run_id, "agent": own}
        case _:
            pass
    return replace(around, **new)


UNHEARD: Final[AbstractContextManager[Finish]] = nullcontext(lambda _: None)
"""A span without observers, for frequent operations: it opens no scope and creates no event."""


class _Span:
    """A span with observers. It is a class rather than a generator for speed, because each step opens several."""

    __slots__ = ("_around", "_held", "_own", "_started")

    def __init__(self, started: Event) -> None:
        self._started = started
        self._held: ExitStack | None = None

    def __enter__(self) -> Finish:
        self._around = _scope.get()
        self._own = _open_scope(self._around, self._started)
        _scope.set(self._own)
        observers = _observers.get()
        if observers:
            self._emit(observers)
        return self._finish

    def _finish(self, finished: Event) -> None:
        _send(finished, self._own)

    def _emit(self, observers: tuple[Observer, ...]) -> None:
        _stamp(self._started, self._own)
        with ExitStack() as stack:
            stack.callback(_scope.set, self._around)
            holds = False
            for observer in observers:
                held = observer(self._started)
                if held is not None:
                    stack.enter_context(held)
                    holds = True
            opened = stack.pop_all()
            self._held = opened if holds else None  # an exit stack takes 1 KiB while the span is open

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Not reset by its token: a stream may be closed in a different context from the one it was opened in.
        if self._held is None:
            _scope.set(self._around)
        else:
            self._held.__exit__(kind, raised, trace)
