"""Measure how often readers are right or silently wrong, and how long they take: `python -m benchmarks reading`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from benchmarks.reading.captured import load
from benchmarks.reading.markdown import markdown
from benchmarks.reading.measure import measure
from benchmarks.reading.page import page
from benchmarks.reading.tables import print_tables
from flujo_aros.cli.main import exit_code_of
from flujo_aros.cli.screen import complain, print_json, stderr_console
from flujo_aros.errors import ArosError, UsageError

_BUDGET: Final = 5.0

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, no_args_is_help=True)


@app.callback()
def benchmarks() -> None:
    """Measure flujo_aros and its peers in a checkout of the package."""


@app.command("reading")
def reading_command(
    corpus: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CORPUS]...", show_default=False, help="Cases as JSON Lines; the built-in speed set if left out."
        ),
    ] = None,
    speed: Annotated[bool, typer.Option("--speed", help="Also measure the built-in speed set.")] = False,
    peers: Annotated[
        bool, typer.Option("--peers", help="Also measure the other installed readers, in the same rounds.")
    ] = False,
    rounds: Annotated[
        int, typer.Option("--rounds", metavar="N", min=1, max=1_000, help="Number of measurements of each time.")
    ] = 5,
    budget: Annotated[
        float, typer.Option("--budget", metavar="SECONDS", min=0.1, help="Time limit for one call on a flood.")
    ] = _BUDGET,
    as_json: Annotated[bool, typer.Option("--json", help="Print all figures as one JSON document.")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print the tables as Markdown.")] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a self-contained page with charts.")
    ] = None,
) -> None:
    """Measure how well and how fast replies are read.

    With CORPUS, counts values that are right, replies correctly rejected, replies rejected although they could be read,
    and values that are silently wrong. Rows are {id, input, schema, expected, must_fail, may_fail, accept}, or for
    captured replies {id, raw, schema, gold, finish_reason}. Times are CPU time; all readers are interleaved.

    Example: python -m benchmarks reading benchmarks/cases.jsonl --speed --peers --html bench.html
    """
    if as_json and as_markdown:
        raise UsageError("--json and --markdown both print to stdout: give one of them")
    corpora = [load(name) for name in corpus or ()]
    _writable(html)
    with stderr_console().status("loading the readers") as status:
        found = measure(
            corpora, speed=speed or not corpora, peers=peers, rounds=rounds, budget=budget, tick=status.update
        )
    if html is not None:
        html.write_text(page(found), encoding="utf-8")
    _print(found, as_json=as_json, as_markdown=as_markdown)
    if html is not None:
        stderr_console().print(f"Wrote {html}", style="dim", soft_wrap=True)


def _writable(html: Path | None) -> None:
    """Check that the output folder exists before measuring for minutes."""
    if html is not None and (html.is_dir() or not html.absolute().parent.is_dir()):
        message = f"--html: cannot write {str(html)!r}: give a file in an existing folder"
        raise UsageError(message)


def _print(found: dict[str, Any], *, as_json: bool, as_markdown: bool) -> None:
    if as_json:
        print_json(found)
    elif as_markdown:
        sys.stdout.write(markdown(found))
    else:
        print_tables(found)


def main() -> None:
    """Run the command line and exit; errors are printed without a traceback."""
    try:
        app(prog_name="python -m benchmarks")
    except ArosError as error:
        complain(str(error))
        sys.exit(exit_code_of(error))


if __name__ == "__main__":
    main()
