"""Ctrl-C and SIGTERM: the run is ended from within, so that steps settle and servers stop first."""

from __future__ import annotations

import signal
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

INTERRUPTED: Final = 128 + signal.SIGINT


class Interrupted(BaseException):  # like KeyboardInterrupt, so that no code mistakes it for an error
    """Raised when a signal has ended the run and everything it started has been cleaned up."""

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)
        self.exit_code = 128 + signum


def run_until_signal(main: Coroutine[Any, Any, T], on_signal: Callable[[], None] = lambda: None) -> T:
    """Run a coroutine to completion, or cancel it on SIGINT or SIGTERM and raise `Interrupted` once it has ended.

    `on_signal` is called before the cancellation reaches the coroutine. A second signal of the same kind has its
    default effect.
    """
    import asyncio  # imported here, because help runs nothing

    return asyncio.run(_cancelled_by_signals(main, on_signal))


async def _cancelled_by_signals(main: Coroutine[Any, Any, T], on_signal: Callable[[], None]) -> T:
    import asyncio

    loop = asyncio.get_running_loop()
    work = asyncio.ensure_future(main)
    caught: list[int] = []

    def cancel(signum: int) -> None:
        caught.append(signum)
        loop.remove_signal_handler(signum)
        work.cancel()
        on_signal()

    for signum in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(signum, cancel, signum)
    try:
        result = await work
    except asyncio.CancelledError:
        if caught:
            raise Interrupted(caught[0]) from None
        raise
    finally:
        for signum in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(signum)
    if caught:
        raise Interrupted(caught[0])
    return result
