"""Virtual time: an event loop whose clock jumps to the next timer, so that hours of waiting take no time.

No existing library fits: `async-solipsism` does not allow threads, but every synchronous function of a pipeline runs in
one. `looptime` waits for threads in real time, so they interleave differently from run to run. Here such a function
runs to completion with the clock stopped: the same program does the same things in the same order, every time.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, Final, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_REAL_PATIENCE: Final = 1.0
"""Real seconds to wait for a thread or a socket if nothing inside the loop will ever wake it up."""
_SHOWN_TASKS: Final = 5


class Hang(AssertionError):
    """Raised when a program waits forever or beyond its virtual deadline; the message names the waiting tasks."""


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock starts at 0 and jumps to the next timer as soon as there is nothing else to do.

    Functions for a thread run immediately, to completion. Raises `Hang` if nothing can ever happen again, or if the
    clock would pass `deadline` (seconds).
    """

    def __init__(self, deadline: float) -> None:
        self._clock = _Clock(deadline)
        super().__init__(self._clock)
        self._clock.tasks = lambda: asyncio.all_tasks(self)
        self._thread = ThreadPoolExecutor(1)

    def time(self) -> float:
        """Return the virtual seconds since the loop was created."""
        return self._clock.now

    def run_in_executor(self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        """Run a function to completion, while nothing else happens."""
        done: asyncio.Future[T] = self.create_future()
        work = (executor or self._thread).submit(func, *args)
        error = work.exception()  # waits until it has finished
        if error is None:
            self.call_soon(_end, done, done.set_result, work.result())
        else:
            self.call_soon(_end, done, done.set_exception, error)
        return done

    def close(self) -> None:
        """Close the loop and end its thread."""
        self._thread.shutdown()
        super().close()


def _end(done: asyncio.Future[Any], end: Callable[[Any], None], what: Any) -> None:
    if not done.done():
        end(what)


class _Clock(selectors.DefaultSelector):
    """The selector of the loop: instead of waiting for a timer, it advances the clock to it."""

    def __init__(self, deadline: float) -> None:
        super().__init__()
        self.now = 0.0
        self.deadline = deadline
        self.tasks: Callable[[], set[asyncio.Task[Any]]] = set

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return the events that are ready; if there are none, advance the clock."""
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            ready = super().select(_REAL_PATIENCE)
            if not ready:
                raise Hang(f"deadlock: nothing more can happen; {self._waiting()}")
            return ready
        if self.now + timeout > self.deadline:
            raise Hang(f"not done within {self.deadline:g} virtual seconds; {self._waiting()}")
        self.now += max(0.0, timeout)
        return ready

    def _waiting(self) -> str:
        tasks = sorted(map(_describe, self.tasks()))
        more = f" and {len(tasks) - _SHOWN_TASKS} more" if len(tasks) > _SHOWN_TASKS else ""
        return f"waiting tasks: {'; '.join(tasks[:_SHOWN_TASKS])}{more}" if tasks else "no task is waiting"


def _describe(task: asyncio.Task[Any]) -> str:
    """Return the name of a task, and the innermost line of code at which it waits."""
    frames = task.get_stack()
    where = f" at {frames[-1].f_code.co_qualname}, line {frames[-1].f_lineno}" if frames else ""
    return f"{task.get_name()}{where}"


def run_virtual(main: Coroutine[Any, Any, T], *, deadline: float = 86_400.0) -> T:
    """Run a program like `asyncio.run`, in virtual time: sleeps, timeouts and retries take no time, and happen in
    order.

    `asyncio` sees the virtual clock (`asyncio.sleep`, `asyncio.timeout`, `loop.time()`); `time.monotonic()` and
    `time.sleep` stay real. Sockets and other processes are not waited for: the clock would jump past them.

    Raises `Hang`, an `AssertionError`, if the program waits forever, or does not finish within `deadline` virtual
    seconds.

    >>> import asyncio
    >>> async def patient() -> float:
    ...     await asyncio.sleep(3600)
    ...     return asyncio.get_running_loop().time()
    >>> run_virtual(patient())
    3600.0
    """
    with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(deadline)) as runner:
        return runner.run(main)
