"""The child process that runs llama.cpp's own HTTP server.

Run as a file, never imported: it must start fast, so it imports only the standard library and xllamacpp, and llama.cpp
writes to stdout and stderr of the process, so it needs a separate one.

The parent writes one line of JSON to stdin (the order) and reads one line of JSON from stdout (the report). The order
is not on the command line, because other users can read that and it holds the API key. Stdin then stays open: when it
closes, the parent has exited.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import signal
import sys
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any, BinaryIO

LOG_LIMIT = 256 * 1024
HEADROOM = 1024**3
PROMPT_CACHE_MIB = 256
HTTP_THREADS = 16
WARNINGS = 2  # llama.cpp's verbosity: 1 errors, 2 also warnings, 3 also a few lines for each request
PR_SET_PDEATHSIG = 1


def main() -> None:
    """Serve the model named on stdin until stdin closes."""
    _die_with_parent()
    report = os.dup(1)
    os.dup2(2, 1)
    _append_to_log()
    with open(0, "rb", buffering=0, closefd=False) as lifeline:
        order: dict[str, Any] = json.loads(lifeline.readline())
        threading.Thread(target=_exit_at_end_of, args=(lifeline,), daemon=True).start()
        server = _start(order)
        os.write(report, json.dumps(_facts(server.listening_address, order["key"])).encode() + b"\n")
        os.close(report)
        _bound_memory()
        while True:
            time.sleep(2)
            if os.fstat(2).st_size > LOG_LIMIT:
                os.ftruncate(2, 0)


def _die_with_parent() -> None:
    # Closing stdin has the same effect on every system, but only once the weights are loaded: llama.cpp holds Python's
    # interpreter lock until then.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def _append_to_log() -> None:
    if sys.platform != "win32":
        import fcntl

        fcntl.fcntl(2, fcntl.F_SETFL, fcntl.fcntl(2, fcntl.F_GETFL) | os.O_APPEND)


def _exit_at_end_of(lifeline: BinaryIO) -> None:
    while lifeline.read(1):
        pass
    os._exit(0)  # the server has no state to save


def _start(order: dict[str, Any]) -> Any:
    engine: Any = importlib.import_module("xllamacpp")  # imported by name, because the extension has no type stubs
    params = engine.CommonParams()
    params.model.path = order["weights"]
    params.model_alias = {order["name"]}
    params.hostnames = ["127.0.0.1"]
    params.port = order["port"]
    params.api_keys = [order["key"]]
    params.cpuparams.n_threads = order["threads"]
    params.cpuparams_batch.n_threads = order["threads"]
    params.n_threads_http = HTTP_THREADS
    params.n_ctx = order["context"]
    params.n_parallel = 1  # one slot, so that a request has the whole context; others wait for their turn
    params.fit_params = False  # never a context size other than the requested one
    params.cache_ram_mib = PROMPT_CACHE_MIB
    params.ui = False
    params.endpoint_slots = False
    params.verbosity = WARNINGS
    try:
        return engine.Server(params)
    except RuntimeError:
        os._exit(1)  # llama.cpp has logged the cause; its exception has less detail


def _facts(url: str, key: str) -> dict[str, Any]:
    """Return the running server's report; requesting it proves that the server answers and accepts the key."""
    request = urllib.request.Request(f"{url}/props", headers={"Authorization": f"Bearer {key}"})  # noqa: S310 - loopback
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(request, timeout=30) as answer:
        props: dict[str, Any] = json.load(answer)
    return {
        "url": url,
        "context": props["default_generation_settings"]["n_ctx"],
        "tools": bool(props["chat_template_caps"]["supports_tools"]),
    }


def _bound_memory() -> None:
    """Limit memory to what requests need: a contradictory schema makes llama.cpp's grammar use all memory there is."""
    if sys.platform != "linux":
        return
    import resource

    with contextlib.suppress(OSError, ValueError):  # serve even if the limit cannot be set
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        used = next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmData:"))
        resource.setrlimit(resource.RLIMIT_DATA, (used + HEADROOM, resource.getrlimit(resource.RLIMIT_DATA)[1]))


if __name__ == "__main__":
    main()
