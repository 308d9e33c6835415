"""A process of its own that answers questions line by line, so that a parser that hangs can be ended."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

_START: Final = 60.0
_ROOT: Final = str(Path(__file__).parents[2])


class Ended(Exception):
    """The process ended without an answer."""


def child_command(reader: str) -> list[str]:
    """How to start a process that has this reader alone, without the working folder on its path."""
    code = f"import sys; sys.path.insert(0, {_ROOT!r}); from benchmarks.reading.child import main; main({reader!r})"
    return [sys.executable, "-P", "-c", code]


class LineProcess:
    """A running command that reads one JSON document a line and answers each with one; its first line says it is ready.

    Raises `Ended` where it cannot be started. Use it as a context manager: the process is ended with it.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, bufsize=1
        )
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._listener = threading.Thread(target=_listen(self._process, self._answers), daemon=True)
        self._listener.start()
        try:
            self.hello = self._next(_START)
        except (Ended, TimeoutError):
            self.close()
            raise

    def ask(self, question: Mapping[str, Any], *, timeout: float) -> dict[str, Any]:
        """The answer; raises `TimeoutError` after so many seconds and `Ended` when the process died of it."""
        stdin = self._process.stdin
        try:
            if stdin is not None:
                stdin.write(json.dumps(question) + "\n")
                stdin.flush()
        except OSError as error:
            raise Ended from error
        return self._next(timeout)

    def _next(self, timeout: float) -> dict[str, Any]:
        try:
            line = self._answers.get(timeout=timeout)
        except queue.Empty as error:
            raise TimeoutError from error
        if not line:
            raise Ended
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process, whatever it is at."""
        self._process.kill()
        self._process.wait()
        self._listener.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                _close_quietly(pipe.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _listen(process: subprocess.Popen[str], answers: queue.SimpleQueue[str]) -> Callable[[], None]:
    def listen() -> None:
        for line in process.stdout or ():
            answers.put(line)
        answers.put("")

    return listen


def _close_quietly(close: Callable[[], None]) -> None:
    """What was still to be written to a process that is gone does not matter."""
    try:
        close()
    except OSError:
        return
