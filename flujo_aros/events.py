"""What happened, as it happens: frozen records in started/finished pairs, and the observers that listen.

An event is emitted only by the code that did the thing (`recovery/ladder.py`, `agents/asking.py`,
`pipeline/runner.py`). Observers only listen: `observing(...)` binds them to everything that runs inside it,
so that a capability without a runner feeds the same observers.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from flujo_aros.outcome import Repair
from flujo_aros.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """A pipeline began."""

    run_id: str
    pipeline: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished:
    """A pipeline ended; `status` is that of the `RunResult`."""

    run_id: str
    pipeline: str
    status: str
    usage: Usage
    seconds: float


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFinished:
    """A reply was read: `outcome` is accepted, degraded or rejected."""

    stage: str
    outcome: str
    trust: str | None
    reason: str | None
    repairs: tuple[Repair, ...] = ()
    text: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageStarted:
    """A stage of the ladder began, because of `reason`."""

    stage: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFinished:
    """A stage of the ladder ended after `calls` model calls."""

    stage: str
    outcome: str
    reason: str | None
    calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AskStarted:
    """A model call beyond the first one is about to be made for a stage."""

    stage: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AskFinished:
    """A model call of a stage came back, with what it alone has used."""

    stage: str
    attempt: int
    usage: Usage
    fault: str | None = None


Event: TypeAlias = (
    RunStarted
    | RunFinished
    | StepStarted
    | StepFinished
    | ReadFinished
    | StageStarted
    | StageFinished
    | AskStarted
    | AskFinished
)


class Observer(Protocol):
    """Anything that wants to know. Called with each event; must not raise and must be quick.

    For a started event it may return a context manager: it is entered at once and left when the pair is finished,
    so that spans nest.
    """

    def __call__(self, event: Event, /) -> AbstractContextManager[object] | None:
        """Take one event."""
        ...


_observers: ContextVar[tuple[Observer, ...]] = ContextVar("flujo_aros_observers", default=())


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


@contextmanager
def span(started: Event) -> Generator[None]:
    """Tell every observer that something started, and hold what they return until the block ends."""
    with ExitStack() as stack:
        for observer in _observers.get():
            held = observer(started)
            if held is not None:
                stack.enter_context(held)
        yield
