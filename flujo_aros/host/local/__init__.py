"""Small local models: `local:smollm2`, or `local:<path to a .gguf file>`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import AsyncExitStack
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from pydantic_ai.models import Model

from flujo_aros.errors import LocalModelError, UsageError
from flujo_aros.host.local.engine import LocalServer, LocalSettings, read_settings
from flujo_aros.host.spec import KNOWN, PREFIX, Weights, local_name_error

if TYPE_CHECKING:
    from flujo_aros.host.local.chat import LocalChatModel

MAGIC = b"GGUF"


class LocalModels:
    """The local models of a run: a server for each weights file is started when first needed, and all are stopped at
    the end.

    Steps that name the same file share its server. Runs in one event loop that are given the same `LocalModels` share
    it too.

        async with LocalModels() as models:
            agent = Agent(await models.model("local:smollm2"), output_type=NativeOutput(Ticket))
    """

    only: Final = PREFIX
    """The prefix of the names that this source serves. pydantic-ai creates the models of providers."""

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
        """Stop all servers. This completes even if it is cancelled."""
        self._open = False
        for server in self._servers.values():
            server.kill()
        async with AsyncExitStack() as stack:
            for weights in list(self._servers):
                stack.push_async_callback(self._end, weights)

    async def model(self, name: str) -> Model:
        """Return the model with that name, ready to answer; starts its server if it is not running.

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
        server = self._servers[weights] = LocalServer(_short_name(name), weights, self._settings or read_settings())
        async with AsyncExitStack() as failed:
            failed.push_async_callback(self._end, weights)
            # Importing the client takes as long as loading the weights: a thread does both at the same time.
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
    """Raise `LocalModelError` unless the `local` extra is installed."""
    if find_spec("xllamacpp") is None or find_spec("openai") is None:
        raise LocalModelError("Local models need llama.cpp: pip install 'flujo_aros[local]'")


def find_weights(name: str) -> Path:
    """Return the weights file that a name such as `local:smollm2` or `local:~/models/x.gguf` means.

    Raises `LocalModelError` if it does not exist or is not a GGUF file.
    """
    if not name.startswith(PREFIX):
        raise LocalModelError(f"{name!r} is not a local model: write local:smollm2 or local:<path to a .gguf file>.")
    wanted = name.removeprefix(PREFIX)
    known = KNOWN.get(wanted)
    if known is not None:
        return _installed_weights(wanted, known)
    mistake = local_name_error(name)
    if mistake is not None and not Path(wanted).is_file():
        raise LocalModelError(mistake)
    return _check_weights(Path(wanted).expanduser(), name)


def _installed_weights(name: str, weights: Weights) -> Path:
    spec = find_spec(weights.package)  # checks without importing
    folders = spec.submodule_search_locations if spec else None
    files = sorted(file for folder in folders or () for file in Path(folder).glob("*.gguf"))
    if not files:
        raise LocalModelError(f"The weights of local:{name} are not installed: {weights.install}")
    return _check_weights(files[0], f"local:{name}")


def _check_weights(file: Path, name: str) -> Path:
    try:
        with file.open("rb") as opened:
            magic = opened.read(4)
    except FileNotFoundError:
        names = ", ".join(sorted(KNOWN))
        raise LocalModelError(
            f"{name}: there is no file {file.absolute()}; pass the path of a .gguf file, or a name ({names})."
        ) from None
    except IsADirectoryError:
        raise LocalModelError(f"{name}: this is a folder; pass the path of a .gguf file in it.") from None
    except OSError as error:
        raise LocalModelError(f"{name}: cannot read the file: {error.strerror}.") from None
    if magic != MAGIC:
        raise LocalModelError(
            f"{name}: not a GGUF file (it does not begin with {MAGIC.decode()}); pass the path of a GGUF file."
        )
    return file.resolve()


def _short_name(name: str) -> str:
    wanted = name.removeprefix(PREFIX)
    return wanted if wanted in KNOWN else Path(wanted).stem


def _client_class() -> type[LocalChatModel]:
    from flujo_aros.host.local.chat import LocalChatModel

    return LocalChatModel
