"""Helpers for tests of local models: whether one can run here, and the processes of a server."""

import time
from pathlib import Path

import pytest

from flujo_aros import LocalModelError
from flujo_aros.host.local import find_weights, require_engine


def why_not() -> str:
    """Return the reason why no local model can run here, or an empty string."""
    if not Path("/proc/self/stat").exists():
        return "these tests look at processes through /proc"
    try:
        require_engine()
        find_weights("local:smollm2")
    except LocalModelError as error:
        return str(error)
    return ""


REASON = why_not()
needs_model = pytest.mark.skipif(bool(REASON), reason=REASON)


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ["gone", "0"]


def runs(pid: int) -> bool:
    return _stat(pid)[0] not in ("gone", "Z", "X")


def servers_of(parent: int) -> list[int]:
    """Return the running server processes among the children of a process."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if _stat(pid)[1] == str(parent) and runs(pid) and "local/server.py" in _command(pid)]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def until(condition, within: float = 30.0) -> bool:
    """Return whether a condition becomes true, with a generous timeout."""
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
