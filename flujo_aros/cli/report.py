"""`aros report`: writes one run from the journal as one HTML file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from flujo_aros.cli.arguments import RunArgument, open_to_read
from flujo_aros.cli.screen import stderr_console
from flujo_aros.errors import UsageError

_STDOUT: Final = "-"


def report_command(
    run: RunArgument = "last",
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="The file to write; - is stdout. [default: aros-RUN.html]"),
    ] = None,
) -> None:
    """Write a run as an HTML file, with its replies and repairs.

    Its timeline, every reply with each repair marked in place, values with the trust of each field, stages, totals.
    The file needs no network, and secrets in it are masked as in the journal.

    Example: aros report last -o run.html
    """
    from flujo_aros.telemetry.report import report_html  # here: `aros --help` need not load a database

    with open_to_read() as journal:
        story = journal.story(run)
    page = report_html(story)
    if output == _STDOUT:
        sys.stdout.buffer.write(page.encode())
        return
    file = Path(output or f"aros-{story.run.run_id[:8]}.html")
    try:
        file.write_text(page, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--output {str(file)!r} cannot be written: {error.strerror or error}") from error
    stderr_console().print(f"{file}: the report of run {story.run.run_id}")
