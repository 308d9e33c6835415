"""One llama.cpp server in a child process, from start to end."""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Final, NamedTuple, cast

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from flujo_aros.errors import LocalModelError
from flujo_aros.spelling import nearest

POLL = 0.02
TAIL = 64 * 1024
SERVER_FILE = Path(__file__).with_name("server.py")
_MISSING_LIBRARY = re.compile(r"\b(lib[\w.+-]+): cannot open shared object file")


_PREFIX: Final = "AROS_LOCAL_"


class LocalSettings(BaseSettings):
    """Settings for serving local models, from `AROS_LOCAL_THREADS`, `AROS_LOCAL_CONTEXT` and so on."""

    model_config = SettingsConfigDict(env_prefix=_PREFIX, frozen=True, extra="ignore")

    threads: int | None = Field(default=None, ge=1, le=512)
    """Compute threads; by default half the cores available to this process, at least 1 and at most 8."""
    context: int = Field(default=4096, ge=256)
    """The maximum number of tokens of a prompt and its reply together."""
    port: int = Field(default=0, ge=0, le=65535)
    """The loopback port; 0 lets the system choose a free one."""
    start_timeout: float = Field(default=120.0, gt=0)
    """The maximum time for loading the weights, in seconds."""

    @property
    def computing_threads(self) -> int:
        """`threads`, or a default for this machine that avoids threads waiting for each other on busy cores."""
        return self.threads or max(1, min(8, _usable_cores() // 2))


def read_settings() -> LocalSettings:
    """Return the settings from the environment. Raises `LocalModelError` naming the invalid or unknown variable."""
    known = [f"{_PREFIX}{name.upper()}" for name in LocalSettings.model_fields]
    for name in os.environ:
        if name.upper().startswith(_PREFIX) and name.upper() not in known:
            raise LocalModelError(f"unknown setting {name}{nearest(name, known)}")
    try:
        return LocalSettings()
    except ValidationError as error:
        first = error.errors()[0]
        variable = f"{_PREFIX}{first['loc'][0]}".upper()
        raise LocalModelError(f"{variable}={first['input']}: {first['msg'].lower()}; correct or unset it.") from None


class ServerFacts(NamedTuple):
    """The report of a running server: its address, its context size, and whether its template supports tools."""

    url: str
    context: int
    tools: bool


class LocalServer:
    """A running llama.cpp server, which exits with this process, however this process ends.

    `ready()` waits for it, and `stop()` ends it. It leaves no files behind: its log is an unnamed file.
    """

    def __init__(self, name: str, weights: Path, settings: LocalSettings) -> None:
        self.name = name
        self.weights = weights
        self.key = secrets.token_urlsafe(24)
        self._settings = settings
        with ExitStack() as files:
            self._report = files.enter_context(tempfile.TemporaryFile())
            self._log = files.enter_context(tempfile.TemporaryFile())
            self._process = self._spawn()
            self._files = files.pop_all()
        # from here on, only this end of the pipe keeps the child alive
        with suppress(BrokenPipeError):  # it has already exited: `ready()` reports why
            self._lifeline.write(self._server_order())

    def _spawn(self) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(  # noqa: S603 - our own interpreter and our own file
                [sys.executable, "-P", str(SERVER_FILE)],
                stdin=subprocess.PIPE,
                stdout=self._report,
                stderr=self._log,
                bufsize=0,
                start_new_session=True,  # Ctrl-C in the terminal is for this process, which then stops the child
            )
        except OSError as error:
            raise LocalModelError(f"No process can be started for the local model: {error.strerror}.") from error

    def _server_order(self) -> bytes:
        order = {
            "name": self.name,
            "weights": str(self.weights),
            "key": self.key,
            "threads": self._settings.computing_threads,
            "context": self._settings.context,
            "port": self._settings.port,
        }
        return json.dumps(order).encode() + b"\n"

    @property
    def _lifeline(self) -> IO[bytes]:
        return cast("IO[bytes]", self._process.stdin)  # not None: the process was started with stdin=PIPE

    @property
    def alive(self) -> bool:
        """Whether the process is running."""
        return self._process.poll() is None

    async def ready(self) -> ServerFacts:
        """Wait until the server answers. Raises `LocalModelError` if it exits while loading or takes too long."""
        deadline = time.monotonic() + self._settings.start_timeout
        while not (line := os.pread(self._report.fileno(), TAIL, 0)).endswith(b"\n"):
            if not self.alive:
                raise LocalModelError(self._explain_failed_start())
            if time.monotonic() > deadline:
                raise LocalModelError(
                    f"The local model {self.name} was not ready within {self._settings.start_timeout:g} seconds"
                    f"{self._first_error_in_log()}; set AROS_LOCAL_START_TIMEOUT to wait longer."
                )
            await asyncio.sleep(POLL)
        return ServerFacts(**json.loads(line))

    async def wait_for_exit(self, within: float) -> bool:
        """Wait for at most this many seconds, and return whether the process has exited."""
        deadline = time.monotonic() + within
        while self.alive:
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(POLL)
        return True

    def kill(self) -> None:
        """Kill the process without waiting for it; it has no state to save."""
        self._process.kill()

    async def stop(self) -> None:
        """Stop the server and wait until it has exited, even if cancelled."""
        self.kill()
        try:
            await self.wait_for_exit(within=10)
        finally:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=1)  # returns immediately, unless the line above was cancelled
            self._lifeline.close()
            self._files.close()

    def describe_exit(self) -> str:
        """Return why a process ended, such as `signal SIGKILL, perhaps because it ran out of memory`."""
        code = self._process.returncode
        if code == -signal.SIGKILL:
            return "signal SIGKILL, perhaps because it ran out of memory"
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}{self._first_error_in_log()}"

    def _explain_failed_start(self) -> str:
        # The engine may end before its log is written, so the port itself is also checked.
        if self._settings.port and ("couldn't bind" in self._log_text() or _is_taken(self._settings.port)):
            return (
                f"Port {self._settings.port} on 127.0.0.1 is taken: set AROS_LOCAL_PORT to a free port, "
                "or unset it to let the system choose one."
            )
        if missing := _MISSING_LIBRARY.search(self._log_text()):
            package = "; on Debian and Ubuntu: apt-get install libgomp1" if "libgomp" in missing[1] else ""
            return f"llama.cpp needs the system library {missing[1]}, which is not installed{package}."
        return (
            f"llama.cpp could not load {self.weights}: {self.describe_exit()}. "
            "Is the file complete, and is there enough memory? AROS_LOCAL_CONTEXT sets the size of the context."
        )

    def _log_text(self) -> str:
        return os.pread(self._log.fileno(), TAIL, 0).decode(errors="replace")

    def _first_error_in_log(self) -> str:
        """Return the first error in the log, which names the cause (later ones only pass it on), or else the last
        line."""
        lines = [line for line in self._log_text().splitlines() if line.strip()]
        errors = [line for line in lines if line[:20].split()[1:2] == ["E"]]
        words = errors[:1] or lines[-1:]
        return f" ({words[0].partition(' E ')[2].strip() or words[0].strip()})" if words else ""


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def _usable_cores() -> int:
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
