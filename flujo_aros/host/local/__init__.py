"""Small models on this machine: `local:smollm2`, or `local:<path to a .gguf file>`.

Each is a llama.cpp server in a child process (`LocalServer`), started when a run first needs it (`LocalModels`).
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import AsyncExitStack, ExitStack, suppress
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Final, NamedTuple, Self, cast

from pydantic import Field, ValidationError
from pydantic_ai.models import Model
from pydantic_settings import BaseSettings, SettingsConfigDict

from flujo_aros.errors import LocalModelError, UsageError
from flujo_aros.host.spec import KNOWN, PREFIX, Weights, mistaken_local

if TYPE_CHECKING:
    from flujo_aros.host.local.chat import LocalChatModel

MAGIC = b"GGUF"
POLL = 0.02
TAIL = 64 * 1024
SERVER_FILE = Path(__file__).with_name("server.py")


class LocalSettings(BaseSettings):
    """How local models are served. Read from `AROS_LOCAL_THREADS`, `AROS_LOCAL_CONTEXT` and so on."""

    model_config = SettingsConfigDict(env_prefix="AROS_LOCAL_", frozen=True, extra="ignore")

    threads: int | None = Field(default=None, ge=1, le=512)
    """Compute threads; by default half the cores available to this process, at least 1 and at most 8."""
    context: int = Field(default=4096, ge=256)
    """How many tokens a prompt and its reply may have together."""
    port: int = Field(default=0, ge=0, le=65535)
    """The loopback port; 0 lets the system choose a free one."""
    start_timeout: float = Field(default=120.0, gt=0)
    """How many seconds loading the weights may take."""

    @property
    def computing_threads(self) -> int:
        """`threads`, or a number that suits this machine: threads that wait for each other are slow on a busy core."""
        return self.threads or max(1, min(8, _usable_cores() // 2))


def read_settings() -> LocalSettings:
    """The settings from the environment. Raises `LocalModelError` naming the invalid variable."""
    try:
        return LocalSettings()
    except ValidationError as error:
        first = error.errors()[0]
        variable = f"AROS_LOCAL_{first['loc'][0]}".upper()
        raise LocalModelError(f"{variable}={first['input']}: {first['msg'].lower()}; correct or unset it.") from None


class ServerFacts(NamedTuple):
    """What a running server reports: its address, its context size, whether its template supports tools."""

    url: str
    context: int
    tools: bool


class LocalServer:
    """A llama.cpp server that was started. It dies with this process, however this process ends.

    `ready()` waits for it, `stop()` ends it. It leaves no files behind: its log is an unnamed file.
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
        # From here on, only this end of the pipe keeps the child alive.
        with suppress(BrokenPipeError):  # already dead: ready() reports why
            self._lifeline.write(self._order())

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

    def _order(self) -> bytes:
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
        return cast("IO[bytes]", self._process.stdin)  # there is one: it was started with stdin=PIPE

    @property
    def alive(self) -> bool:
        """Whether the process is running."""
        return self._process.poll() is None

    async def ready(self) -> ServerFacts:
        """Wait until it answers. Raises `LocalModelError` if it dies while loading or takes too long."""
        deadline = time.monotonic() + self._settings.start_timeout
        while not (line := os.pread(self._report.fileno(), TAIL, 0)).endswith(b"\n"):
            if not self.alive:
                raise LocalModelError(self._why_not_started())
            if time.monotonic() > deadline:
                raise LocalModelError(
                    f"The local model {self.name} was not ready within {self._settings.start_timeout:g} seconds"
                    f"{self._last_words()}; set AROS_LOCAL_START_TIMEOUT to wait longer."
                )
            await asyncio.sleep(POLL)
        return ServerFacts(**json.loads(line))

    async def died(self, within: float) -> bool:
        """Whether the process ends within this many seconds."""
        deadline = time.monotonic() + within
        while self.alive:
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(POLL)
        return True

    def kill(self) -> None:
        """Kill it, which it cannot refuse; it has nothing to save. Returns at once."""
        self._process.kill()

    async def stop(self) -> None:
        """End it and wait until it is gone. Also complete when cancelled."""
        self.kill()
        try:
            await self.died(within=10)
        finally:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=1)  # returns at once, unless the line above was cancelled
            self._lifeline.close()
            self._files.close()

    def how_it_ended(self) -> str:
        """How a dead process ended, such as `signal SIGKILL, perhaps because it ran out of memory`."""
        code = self._process.returncode
        if code == -signal.SIGKILL:
            return "signal SIGKILL, perhaps because it ran out of memory"
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}{self._last_words()}"

    def _why_not_started(self) -> str:
        # The engine may end before its log is written, so the port itself is asked, too.
        if self._settings.port and ("couldn't bind" in self._log_text() or _is_taken(self._settings.port)):
            return (
                f"Port {self._settings.port} on 127.0.0.1 is taken: set AROS_LOCAL_PORT to a free port, "
                "or unset it and the system chooses one."
            )
        return (
            f"llama.cpp could not load {self.weights}: {self.how_it_ended()}. "
            "Is the file complete, and is there enough memory? AROS_LOCAL_CONTEXT sets the size of the context."
        )

    def _log_text(self) -> str:
        return os.pread(self._log.fileno(), TAIL, 0).decode(errors="replace")

    def _last_words(self) -> str:
        """The first error in the log, which names the cause (later ones only pass it on), else the last line."""
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


class LocalModels:
    """The local models of a run: starts a server for each weights file when it is first needed, stops all at the end.

    Steps that name the same file share its server. Runs in one event loop that are given the same `LocalModels` share
    it too.

        async with LocalModels() as models:
            agent = Agent(await models.model("local:smollm2"), output_type=NativeOutput(Ticket))
    """

    only: Final = PREFIX
    """The prefix of the names that it serves: models of a provider are created by pydantic-ai."""

    def __init__(self, settings: LocalSettings | None = None) -> None:
        self._settings = settings
        self._servers: dict[Path, LocalServer] = {}
        self._models: dict[Path, LocalChatModel] = {}
        self._lock = asyncio.Lock()
        self._open = False

    async def __aenter__(self) -> Self:
        self._open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop all servers. None keeps running, even if this is cancelled."""
        self._open = False
        for server in self._servers.values():
            server.kill()
        async with AsyncExitStack() as stack:
            for weights in list(self._servers):
                stack.push_async_callback(self._end, weights)

    async def model(self, name: str) -> Model:
        """The model with that name, ready to answer; starts its server if it is not running.

        Raises `LocalModelError`, one sentence that says what to do, if llama.cpp or the weights are not installed,
        llama.cpp cannot read the file, or the server does not start.
        """
        if not self._open:
            raise UsageError("Enter LocalModels with `async with` before asking it for a model.")
        require_engine()
        weights = find_weights(name)
        async with self._lock:
            served = self._models.get(weights)
            if served is not None and self._servers[weights].alive:
                return served
            await self._end(weights)
            return await self._start(name, weights)

    async def _start(self, name: str, weights: Path) -> Model:
        server = self._servers[weights] = LocalServer(_short(name), weights, self._settings or read_settings())
        async with AsyncExitStack() as failed:
            failed.push_async_callback(self._end, weights)
            # The client takes as long to import as the weights to load: in a thread, so that both go on at once.
            chat = await asyncio.to_thread(_client_class)
            model = chat(server, await server.ready())
            self._models[weights] = model
            failed.pop_all()
        return model

    async def _end(self, weights: Path) -> None:
        async with AsyncExitStack() as stack:
            if model := self._models.pop(weights, None):
                stack.push_async_callback(model.close)
            if server := self._servers.pop(weights, None):
                stack.push_async_callback(server.stop)


def check_local(names: Iterable[str]) -> None:
    """Raise `LocalModelError` for the first of these models that cannot be started, before any server starts."""
    for name in sorted(names):
        require_engine()
        find_weights(name)


def require_engine() -> None:
    """Raise `LocalModelError` unless the extra `local` is installed."""
    if find_spec("xllamacpp") is None or find_spec("openai") is None:
        raise LocalModelError("Local models need llama.cpp: pip install 'flujo_aros[local]'")


def find_weights(name: str) -> Path:
    """The weights file that a name such as `local:smollm2` or `local:~/models/x.gguf` means.

    Raises `LocalModelError` if it does not exist or is not a GGUF file.
    """
    if not name.startswith(PREFIX):
        raise LocalModelError(f"{name!r} is not a local model: write local:smollm2 or local:<path to a .gguf file>.")
    wanted = name.removeprefix(PREFIX)
    known = KNOWN.get(wanted)
    if known is not None:
        return _installed(wanted, known)
    mistake = mistaken_local(name)
    if mistake is not None and not Path(wanted).is_file():
        raise LocalModelError(mistake)
    return _given(wanted)


def _installed(name: str, weights: Weights) -> Path:
    spec = find_spec(weights.package)  # checks without importing
    folders = spec.submodule_search_locations if spec else None
    files = sorted(file for folder in folders or () for file in Path(folder).glob("*.gguf"))
    if not files:
        raise LocalModelError(f"The weights of local:{name} are not installed: {weights.install}")
    return _checked(files[0], f"local:{name}")


def _given(wanted: str) -> Path:
    return _checked(Path(wanted).expanduser(), PREFIX + wanted)


def _checked(file: Path, name: str) -> Path:
    try:
        with file.open("rb") as opened:
            magic = opened.read(4)
    except FileNotFoundError:
        names = ", ".join(sorted(KNOWN))
        raise LocalModelError(
            f"{name}: there is no file {file.absolute()}; give the path of a .gguf file, or a name ({names})."
        ) from None
    except IsADirectoryError:
        raise LocalModelError(f"{name}: that is a folder; give the path of a .gguf file in it.") from None
    except OSError as error:
        raise LocalModelError(f"{name}: the file cannot be read: {error.strerror}.") from None
    if magic != MAGIC:
        raise LocalModelError(f"{name}: not a GGUF file (it does not begin with {MAGIC.decode()}); give one that is.")
    return file.resolve()


def _short(name: str) -> str:
    wanted = name.removeprefix(PREFIX)
    return wanted if wanted in KNOWN else Path(wanted).stem


def _client_class() -> type[LocalChatModel]:
    from flujo_aros.host.local.chat import LocalChatModel

    return LocalChatModel
