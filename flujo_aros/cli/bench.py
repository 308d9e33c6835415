"""`aros bench`: how often a reader is right, how often silently wrong, and how long it takes, beside its peers."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from flujo_aros.cli.screen import print_json, stderr_console
from flujo_aros.errors import UsageError

_BUDGET: Final = 5.0


class BenchName(StrEnum):
    """What can be measured."""

    READING = "reading"


def bench_command(
    what: Annotated[BenchName, typer.Argument(metavar="reading", help="What to measure.")],
    corpus: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CORPUS]...", show_default=False, help="Cases as JSON Lines; the built-in speed set if left out."
        ),
    ] = None,
    speed: Annotated[bool, typer.Option("--speed", help="Measure the built-in speed set besides CORPUS.")] = False,
    peers: Annotated[
        bool, typer.Option("--peers", help="Measure the other readers that are installed, in the same rounds.")
    ] = False,
    rounds: Annotated[
        int, typer.Option("--rounds", metavar="N", min=1, max=1_000, help="How often each time is taken.")
    ] = 5,
    budget: Annotated[
        float, typer.Option("--budget", metavar="SECONDS", min=0.1, help="The most that one call on a flood may take.")
    ] = _BUDGET,
    as_json: Annotated[bool, typer.Option("--json", help="Print all figures as one JSON document.")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print the tables as Markdown.")] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write one page with charts, which needs no network.")
    ] = None,
) -> None:
    """Measure how well and how fast replies are read.

    With CORPUS, counts values that are right, replies rightly refused, replies refused though they could be read, and
    values that are silently wrong. Rows are {id, input, schema, expected, must_fail, may_fail, accept}, or for captured
    replies {id, raw, schema, gold, finish_reason}. Times are CPU time, and peers take turns with ours.

    Example: aros bench reading benchmarks/cases.jsonl --speed --peers --html bench.html
    """
    from flujo_aros.cli.benching.cases import load_corpus  # here: no other command need load what measures
    from flujo_aros.cli.benching.measure import measure
    from flujo_aros.cli.benching.page import page

    del what  # there is one so far
    if as_json and as_markdown:
        raise UsageError("--json and --markdown both print to stdout: give one of them")
    corpora = [load_corpus(name) for name in corpus or ()]
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
    """Minutes of measuring are not to end in a folder that is not there."""
    if html is not None and (html.is_dir() or not html.absolute().parent.is_dir()):
        message = f"--html: cannot write {str(html)!r}: give a file in a folder that is there"
        raise UsageError(message)


def _print(found: dict[str, Any], *, as_json: bool, as_markdown: bool) -> None:
    from flujo_aros.cli.bench_tables import print_tables
    from flujo_aros.cli.benching.markdown import markdown

    if as_json:
        print_json(found)
    elif as_markdown:
        sys.stdout.write(markdown(found))
    else:
        print_tables(found)
