"""Output of the command line: the result to stdout or a file, everything else to stderr."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import IO, Any, Final, Self, TextIO, cast

from rich import text as rich_text
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from flujo_aros.cli.shown import in_github, without_commands, without_secrets
from flujo_aros.errors import UsageError
from flujo_aros.visible import visible, visible_json

STDOUT: Final = 1
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
"""One colour for each status, trust and risk."""


class Text(rich_text.Text):
    """A string to print: control sequences from a model, a file or an error have no effect on the terminal.

    Every text that is printed is one of these; `rich.text.Text` would drop some control characters and keep others.
    """

    def __init__(self, text: str = "", *args: Any, **options: Any) -> None:
        super().__init__(visible(text), *args, **options)

    def append(self, text: rich_text.Text | str, style: Any = None) -> Self:
        """Append a string in a style, or a `Text` in its own style."""
        super().append(visible(text) if isinstance(text, str) else text, style)
        return self

    @classmethod
    def assemble(cls, *parts: str | rich_text.Text | tuple[str, Any], **options: Any) -> Self:
        """Return a text from several parts: strings, strings with a style, or texts."""
        return cast("Self", super().assemble(*parts, **options))


class Screen(Console):
    """A console without markup and emoji codes, which prints only visible characters."""

    def render_str(self, text: str, **options: Any) -> rich_text.Text:
        """Convert a printed string to a `Text`."""
        return super().render_str(visible(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the pieces of anything that is printed; control codes are those of the console itself."""
        for segment in super().render(renderable, options):
            escaped = segment.text if segment.control else visible(segment.text)
            yield segment if escaped == segment.text else Segment(escaped, segment.style)

    def on_broken_pipe(self) -> None:
        """End the command, because nobody reads its output any more.

        A run in progress is ended as by SIGTERM: a `SystemExit` would stop its event loop but not its threads, for
        which the process would then wait forever.
        """
        import asyncio  # imported here, because help runs nothing

        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.file.fileno())
        os.close(nowhere)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            raise SystemExit(1) from None
        signal.raise_signal(signal.SIGTERM)


def stderr_console() -> Console:
    """Return a console on stderr: colours and live display only in a terminal; `NO_COLOR` is honoured."""
    piped = not sys.stderr.isatty() and "COLUMNS" not in os.environ
    width = _UNWRAPPED if piped else None  # a log is searched by line, so sentences are not wrapped there
    return _console("stderr", width)


def stdout_console() -> Console:
    """Return a console on stdout, for output that people read there (plans and explanations)."""
    return _console("stdout")


def _console(stream: str, width: int | None = None) -> Console:
    """Return a console on the current stream; without a terminal, trailing spaces are removed."""
    found: TextIO | None = getattr(sys, stream)
    file = cast("IO[str]", _Trimmed(found)) if found is not None and not found.isatty() else None
    return Screen(file=file, stderr=stream == "stderr", width=width, highlight=False, emoji=False, markup=False)


class _Trimmed:
    """A stream that removes trailing spaces from lines."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write lines without trailing spaces, none of which is a command to a GitHub job."""
        return self._stream.write(without_commands(_FILLED.sub("", text)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def worded(word: str | None) -> Text:
    """Return a status, trust or risk in its colour; a dash for None."""
    return Text(word, style=STYLES.get(word, "")) if word else Text("-", style="dim")


def print_json(value: Any) -> None:
    """Print a JSON document on stdout, unwrapped and uncoloured, so that it can be piped anywhere.

    Its strings are unchanged; on a terminal, control characters are escaped, which is equivalent JSON.
    """
    document = json.dumps(value, indent=2, ensure_ascii=not _encoding().lower().replace("-", "").startswith("utf"))
    if sys.stdout.isatty():
        document = visible_json(document)
    elif in_github():
        document = document.replace("##[", r"#\u0023[")
    sys.stdout.write(document + "\n")
    sys.stdout.flush()


def print_result(value: Any) -> None:
    """Print the result of a run on stdout: a string as it is, and anything else as JSON.

    On a terminal, control characters are made visible.
    """
    if isinstance(value, str):
        text = visible(value) if sys.stdout.isatty() else value
        sys.stdout.write(text.encode(_encoding(), "backslashreplace").decode(_encoding()))
        sys.stdout.write("" if value.endswith("\n") else "\n")
        sys.stdout.flush()
    else:
        print_json(value)


def print_lines(text: str) -> None:
    """Print lines on stdout: patches, findings, and tables in Markdown.

    On a terminal, control characters are made visible.
    """
    sys.stdout.flush()
    escaped = visible(text) if sys.stdout.isatty() else text
    sys.stdout.buffer.write(escaped.encode("utf-8", "backslashreplace"))  # keep carriage returns
    sys.stdout.buffer.flush()


def write_file(file: Path, text: str) -> None:
    """Write a file in UTF-8. Raises `UsageError` if it cannot be written."""
    try:
        file.write_bytes(text.encode())  # line ends stay what they are
    except OSError as error:
        why = error.strerror or error if file.parent.is_dir() else f"there is no folder {str(file.parent)!r}"
        raise UsageError(f"cannot write {str(file)!r}: {why}") from error


@contextmanager
def stdout_reserved() -> Generator[None]:
    """Redirect to stderr everything written to stdout inside the block, by functions of steps or by native libraries.

    Afterwards stdout is restored, so that it contains only the result.
    """
    try:
        kept = os.dup(STDOUT)
    except OSError:  # the caller has closed stdout, so there is nothing to restore
        yield
        return
    sys.stdout.flush()
    os.dup2(_STDERR, STDOUT)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, STDOUT)
        os.close(kept)


def say(words: RenderableType, style: str | None = None) -> None:
    """Print a line on stderr; wrapping is left to the terminal."""
    stderr_console().print(words, style=style, soft_wrap=True)


def complain(message: str) -> None:
    """Print an error on stderr as `error: <sentence>`, with further lines of the message indented."""
    first, *more = without_secrets(message).strip().splitlines() or ["something went wrong without a message"]
    say(Text.assemble(("error: ", "bold red"), first))
    for line in more:
        say(f"  {line}")


def _encoding() -> str:
    return sys.stdout.encoding or "utf-8"
