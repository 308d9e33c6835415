"""A pseudo-terminal for the command line, which runs in this process."""

from __future__ import annotations

import io
import os
import pty
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli.conftest import aros  # a fixture

from flujo_aros.cli.main import main

Terminal = Callable[..., str]
__all__ = ["aros"]


@pytest.fixture(autouse=True)
def own_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Restore the interpreter after the test, which runs in a temporary folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Call `aros` with stdout and stderr on a terminal, and return its output; line ends are `\n`."""

    def call(*words: str, text: str = "", term: str = "dumb") -> str:
        monkeypatch.setenv("TERM", term)
        monkeypatch.setenv("COLUMNS", "100")
        monkeypatch.setattr(sys, "argv", ["aros", *words])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode("utf-8", "surrogatepass"))))
        ours, theirs = pty.openpty()
        sent: list[bytes] = []
        listening = threading.Thread(target=_listen, args=(ours, sent))
        listening.start()
        kept = os.dup(1), os.dup(2)
        try:
            for number in (1, 2):
                os.dup2(theirs, number)
            with (
                os.fdopen(os.dup(theirs), "w", encoding="utf-8", errors="strict", buffering=1) as stdout,
                os.fdopen(os.dup(theirs), "w", encoding="utf-8", errors="backslashreplace", buffering=1) as stderr,
                monkeypatch.context() as patched,
                pytest.raises(SystemExit),
            ):
                patched.setattr(sys, "stdout", stdout)
                patched.setattr(sys, "stderr", stderr)
                main()
        finally:
            for number, file in enumerate(kept, start=1):
                os.dup2(file, number)
                os.close(file)
            os.close(theirs)
            listening.join()
            os.close(ours)
        return b"".join(sent).decode().replace("\r\n", "\n")

    return call


def _listen(terminal: int, sent: list[bytes]) -> None:
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # the other side is closed
            return
        if not piece:
            return
        sent.append(piece)
