"""Run a parser in a separate process that can be killed if it hangs; questions and answers are lines of JSON."""

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

_START_TIMEOUT: Final = 60.0
_ROOT: Final = str(Path(__file__).parents[2])


class Ended(Exception):
    """The process ended without an answer."""


def child_command(reader: str) -> list[str]:
    """Return the command that starts a process with only this reader, without the working directory on its path."""
    code = f"import sys; sys.path.insert(0, {_ROOT!r}); from benchmarks.reading.child import main; main({reader!r})"
    return [sys.executable, "-P", "-c", code]


class LineProcess:
    """A process that answers each line of JSON with another one; its first line reports that it is ready.

    Raises `Ended` if the process cannot be started. Use it as a context manager, which kills the process on exit.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, bufsize=1
        )
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._listener = threading.Thread(target=_listen(self._process, self._answers), daemon=True)
        self._listener.start()
        try:
            self.hello = self._next(_START_TIMEOUT)
        except (Ended, TimeoutError):
            self.close()
            raise

    def ask(self, question: Mapping[str, Any], *, timeout: float) -> dict[str, Any]:
        """Return the answer. Raises `TimeoutError` after `timeout` seconds, and `Ended` if the process exits."""
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
        """Kill the process."""
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
    """Close a pipe, ignoring output that a killed process can no longer read."""
    try:
        close()
    except OSError:
        return
