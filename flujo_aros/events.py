"""What happened, as it happens: frozen records in started/finished pairs, and the observers that listen.

An event is emitted only by the code that did the thing. Observers only listen: `observing(...)` binds them to
everything that runs inside it, so that a capability without a runner feeds the same observers. Where something
happened is not repeated in every event: an observer asks `scopes()` for what is under way around it.

Texts that models wrote and were sent are always in the events. An observer that lets anything leave the process
masks or drops them, unless `capture` says that the user wants them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count
from types import TracebackType
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

from flujo_aros.outcome import Issue, Repair
from flujo_aros.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """A pipeline began, with `input`.

    `secrets` are values in its context and its blueprint that no observer may let out: told by their names.
    `resumed`: it goes on with a run that had paused, or whose process had ended.
    """

    run_id: str
    pipeline: str
    secrets: tuple[str, ...] = field(default=(), repr=False)
    resumed: bool = False
    settled: frozenset[str] | None = None
    """The steps that a durable record has settled, where the run is recovered from one: they have no further events,
    and everything else in the run is reported again from its start."""
    carrier: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    """What observers want to find again when the run is resumed, such as a `traceparent`: it is saved with a pause."""
    input: Any = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished:
    """A pipeline ended; `status` is that of the `RunResult`, `output` what it came to if it completed."""

    run_id: str
    pipeline: str
    status: str
    usage: Usage
    seconds: float
    output: Any = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStarted:
    """A step opened its slot in the run ledger. `name` is the full name (`parallel/a`)."""

    run_id: str
    name: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFinished:
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
    """The lowest trust of all that the step was made from."""
    output: Any = field(default=None, repr=False)
    """What the step hands on; None where it gave nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepNoted:
    """What a step says beside its value, as plain JSON: the votes of an `agreement`, an event of an `ensemble`."""

    note: str
    data: dict[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCalled:
    """The function of a step is called with this input."""

    input: Any = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStarted:
    """A run of an agent that has `Aros` on it began; outside of a pipeline it is the outermost thing there is.

    `secrets` are values in its dependencies that no observer may let out: told by their names or types.
    """

    run_id: str
    name: str = ""
    secrets: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFinished:
    """A run of an agent ended: `outcome` is accepted, degraded, rejected, failed or cancelled."""

    run_id: str
    outcome: str
    trust: str | None
    reason: str | None
    usage: Usage
    seconds: float
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFinished:
    """A reply was read: `outcome` is accepted, degraded or rejected."""

    stage: str
    outcome: str
    trust: str | None
    reason: str | None
    repairs: tuple[Repair, ...] = ()
    issues: tuple[Issue, ...] = ()
    schema_hash: str | None = None
    contract: object = field(default=None, repr=False)
    """The contract that the reply was read with."""
    ladder: object = field(default=None, repr=False)
    """The ladder that a first reply begins to climb."""
    text: str = field(default="", repr=False)
    capture: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StageStarted:
    """A stage of the ladder began, because of `reason`, for the contract with this hash."""

    stage: str
    reason: str
    schema_hash: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFinished:
    """A stage of the ladder ended after `calls` model calls."""

    stage: str
    outcome: str
    reason: str | None
    calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StagePassed:
    """A stage of the ladder was not run, and why not, in one sentence."""

    stage: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AskStarted:
    """A model call is about to be made: for a stage of a ladder, or "first" for the agent's own."""

    stage: str
    attempt: int
    model: str = ""
    constrained: bool = False
    """Whether the provider was asked to enforce the schema."""
    prompt: str = field(default="", repr=False)
    """All that the model is asked, `system` included."""
    system: str = field(default="", repr=False)
    """The resolved instructions and system prompts."""
    capture: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AskFinished:
    """A model call came back, or failed with a `fault`, with what it alone has used."""

    stage: str
    attempt: int
    usage: Usage
    model: str = ""
    seconds: float = 0.0
    finish_reason: str | None = None
    fault: str | None = None
    first_seconds: float | None = None
    """How long it took until the first piece came, of a reply that was streamed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """A piece of a reply, as the model writes it."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialValue:
    """What can be told of the value so far. What stands at `final_paths` will not change, unless it is `restarted`."""

    value: Any
    final_paths: frozenset[str] = frozenset()
    restarted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TextReplaced:
    """The text that counts is another one than the one that was shown."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TextAppended:
    """Something stands after the text that was shown."""

    text: str


LiveEvent: TypeAlias = TextDelta | PartialValue | TextReplaced | TextAppended
"""What happens to a reply while it streams."""

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
    | StagePassed
    | AskStarted
    | AskFinished
    | LiveEvent
)


class Observer(Protocol):
    """Anything that wants to know. Called with each event; must not raise and must be quick.

    For a started event it may return a context manager: it is entered at once and left when the pair is finished,
    so that spans nest.
    """

    def __call__(self, event: Event, /) -> AbstractContextManager[object] | None:
        """Take one event."""
        ...


@runtime_checkable
class BufferedObserver(Observer, Protocol):
    """An observer that writes what it is told a little later, such as the journal.

    A durable engine flushes it before it records a step as settled: what is recorded has no events a second time.
    """

    def flush(self, timeout: float = ...) -> bool:
        """Write everything that was told so far; False if that took longer than `timeout` seconds."""
        ...


@dataclass(frozen=True, slots=True)
class Scope:
    """Something that has started and not ended yet. `id` tells it apart from all others in this process."""

    id: int
    event: Event


_observers: ContextVar[tuple[Observer, ...]] = ContextVar("flujo_aros_observers", default=())
_scopes: ContextVar[tuple[Scope, ...]] = ContextVar("flujo_aros_scopes", default=())
_ids: Final = count(1)


@contextmanager
def observing(*observers: Observer) -> Generator[None]:
    """Let these observers hear everything that runs inside the block, beside those who listen already.

    >>> heard = []
    >>> with observing(heard.append):
    ...     emit(StageStarted(stage="retry", reason="no_json"))
    >>> heard[0].stage
    'retry'
    """
    token = _observers.set((*_observers.get(), *observers))
    try:
        yield
    finally:
        _observers.reset(token)


def emit(event: Event) -> None:
    """Tell every observer."""
    for observer in _observers.get():
        observer(event)


def is_heard() -> bool:
    """Whether anybody listens here: what only observers want need not be found out otherwise."""
    return bool(_observers.get())


def scopes() -> tuple[Scope, ...]:
    """Everything that is under way around the caller, outermost first: run, step, stage, ask.

    >>> with span(StageStarted(stage="retry", reason="no_json")):
    ...     [scope.event.stage for scope in scopes()]
    ['retry']
    """
    return _scopes.get()


Finish: TypeAlias = Callable[[Event], None]
"""Tells the finished event, the partner of the started one."""


def span(started: Event) -> AbstractContextManager[Finish, None]:
    """Tell every observer that something started, and hold what they return until the block ends.

    The block gets what tells its partner, the finished event: `scopes()[-1]` is then the started one, also where a
    stream is closed by another task than the one that opened it.

    >>> with span(StageStarted(stage="retry", reason="no_json")) as finish:
    ...     finish(StageFinished(stage="retry", outcome="accepted", reason=None, calls=1))
    """
    return _Span(started)


def _nobody(_: Event) -> None:
    """Takes what nobody wants to hear."""


UNHEARD: Final[AbstractContextManager[Finish]] = nullcontext(_nobody)
"""A span of which nobody hears, for what begins often: it is in no `scopes()`, and no event is made for it."""


class _Span:
    """A class and not a generator: there are several for each step, and mostly nobody listens."""

    __slots__ = ("_around", "_held", "_own", "_started")

    def __init__(self, started: Event) -> None:
        self._started = started
        self._held: ExitStack | None = None

    def __enter__(self) -> Finish:
        self._around = _scopes.get()
        self._own = (*self._around, Scope(next(_ids), self._started))
        _scopes.set(self._own)
        observers = _observers.get()
        if observers:
            self._tell(observers)
        return self._finish

    def _finish(self, finished: Event) -> None:
        observers = _observers.get()
        if not observers:
            return
        here = _scopes.get()
        _scopes.set(self._own)
        try:
            for observer in observers:
                observer(finished)
        finally:
            _scopes.set(here)

    def _tell(self, observers: tuple[Observer, ...]) -> None:
        with ExitStack() as stack:
            stack.callback(_scopes.set, self._around)
            for observer in observers:
                held = observer(self._started)
                if held is not None:
                    stack.enter_context(held)
            self._held = stack.pop_all()

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Not by a token: a stream may be closed in another context than the one it was opened in.
        if self._held is None:
            _scopes.set(self._around)
        else:
            self._held.__exit__(kind, raised, trace)
