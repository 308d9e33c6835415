"""The two places that the command line writes to: stdout for the result, stderr for everything else."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Generator
from contextlib import contextmanager, redirect_stdout
from typing import IO, Any, Final, TextIO, cast

from rich.console import Console
from rich.text import Text

from flujo_aros.cli.secrecy import without_secrets

_STDOUT: Final = 1
_STDERR: Final = 2
_UNWRAPPED: Final = 1_000
_FILLED: Final = re.compile(r" +(?=\n)")

STYLES = {
    "success": "green",
    "completed": "green",
    "clean": "green",
    "accepted": "green",
    "lossless": "green",
    "inferred": "yellow",
    "lossy": "red",
    "synthesized": "magenta",
    "degraded": "yellow",
    "failed": "red",
    "rejected": "red",
    "cancelled": "yellow",
    "skipped": "dim",
    "paused": "cyan",
}
"""One colour for each word of status, trust and risk, so that a word looks the same everywhere."""


def stderr_console() -> Console:
    """A console on stderr: colours and live display only in a terminal; `NO_COLOR` is honoured."""
    piped = not sys.stderr.isatty() and "COLUMNS" not in os.environ
    width = _UNWRAPPED if piped else None  # a log is searched by line, so sentences stay whole there
    return _console("stderr", width)


def stdout_console() -> Console:
    """A console on stdout, for what a person reads there (plans and explanations)."""
    return _console("stdout")


def _console(stream: str, width: int | None = None) -> Console:
    """A console on the stream as it is now; outside of a terminal without the spaces that fill a line up."""
    found: TextIO | None = getattr(sys, stream)
    file = cast("IO[str]", _Trimmed(found)) if found is not None and not found.isatty() else None
    return Console(file=file, stderr=stream == "stderr", width=width, highlight=False, emoji=False, markup=False)


class _Trimmed:
    """A stream that takes the spaces away that stand before the end of a line."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write lines as a person would have typed them."""
        return self._stream.write(_FILLED.sub("", text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def worded(word: str | None) -> Text:
    """A word of status, trust or risk in its colour; nothing is a dash."""
    return Text(word, style=STYLES.get(word, "")) if word else Text("-", style="dim")


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """A JSON document on stdout, unwrapped and uncoloured, so that it can be piped anywhere."""
    sys.stdout.write(json.dumps(value, indent=indent, ensure_ascii=_ascii_only()) + "\n")
    sys.stdout.flush()


def print_result(value: Any) -> None:
    """The result of a run on stdout: a text as it is, anything else as JSON."""
    if isinstance(value, str):
        sys.stdout.write(value.encode(_encoding(), "backslashreplace").decode(_encoding()))
        sys.stdout.write("" if value.endswith("\n") else "\n")
        sys.stdout.flush()
    else:
        print_json(value)


@contextmanager
def stdout_reserved() -> Generator[None]:
    """Send to stderr whatever is written to stdout inside the block: by functions of steps, by native libraries.

    After it, stdout is as it was, so that the result is the only thing there.
    """
    try:
        kept = os.dup(_STDOUT)
    except OSError:  # the caller closed it: there is nothing to keep clean
        yield
        return
    sys.stdout.flush()
    os.dup2(_STDERR, _STDOUT)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, _STDOUT)
        os.close(kept)


def complain(message: str) -> None:
    """One error on stderr, as `error: <sentence>`; further lines of the message are indented beneath."""
    first, *more = without_secrets(message).strip().splitlines() or ["something went wrong without saying what"]
    text = Text("error: ", style="bold red") + Text(first, style="not bold default")
    console = stderr_console()
    console.print(text, soft_wrap=True)
    for line in more:
        console.print(f"  {line}", soft_wrap=True)


def _encoding() -> str:
    return sys.stdout.encoding or "utf-8"


def _ascii_only() -> bool:
    return not _encoding().lower().replace("-", "").startswith("utf")
