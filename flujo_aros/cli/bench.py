"""`aros bench`: how often a reader is right, how often silently wrong, and how long it takes, beside its peers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from flujo_aros.cli.benching.cases import REFUSED, WRONG, Corpus, load_corpus
from flujo_aros.cli.benching.documents import documents
from flujo_aros.cli.benching.readers import Reader, our_reader, peer_readers
from flujo_aros.cli.benching.scoring import Score, score
from flujo_aros.cli.benching.speed import HOST, Flooded, Timed, speed_readers, time_documents, time_floods
from flujo_aros.cli.screen import print_json, stderr_console, stdout_console
from flujo_aros.telemetry.words import counted

_LISTED: Final = 12
_HEADER: Final = 9
_WORDS: Final = {
    "n": "cases",
    "right": "right",
    "rightly_refused": "rightly refused",
    "refused": "refused though recoverable",
    "silently_wrong": "silently wrong",
    "accepted": "accepted",
    "cut_accepted": "cut replies accepted",
    "invented": "holds what the reply does not",
    "with_gold": "with a known answer",
    "cut": "cut",
}


class BenchName(StrEnum):
    """What can be measured."""

    READING = "reading"


def bench_command(
    what: Annotated[BenchName, typer.Argument(metavar="reading", help="What to measure.")],
    corpus: Annotated[
        str | None,
        typer.Argument(
            metavar="CORPUS", show_default=False, help="Cases as JSON Lines; the built-in speed set if left out."
        ),
    ] = None,
    peers: Annotated[
        bool, typer.Option("--peers", help="Measure the other JSON repairers that are installed, in the same rounds.")
    ] = False,
    rounds: Annotated[
        int, typer.Option("--rounds", metavar="N", min=1, max=1_000, help="How often each time is taken.")
    ] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print all figures as one JSON document.")] = False,
) -> None:
    """Measure how well and how fast replies are read.

    With CORPUS, counts values that are right, replies rightly refused, replies refused though they could be read, and
    values that are silently wrong. Rows are {id, input, schema, expected, must_fail, may_fail, accept}, or for captured
    replies {id, raw, schema, gold, finish_reason}. Times are CPU time, and peers take turns with ours.

    Example: aros bench reading benchmarks/cases.jsonl --peers
    """
    del what  # there is one so far
    if corpus is None:
        _speed(peers=peers, rounds=rounds, as_json=as_json)
    else:
        _corpus(load_corpus(corpus), peers=peers, rounds=rounds, as_json=as_json)


# --- a corpus -----------------------------------------------------------------------------------------------------


def _corpus(corpus: Corpus, *, peers: bool, rounds: int, as_json: bool) -> None:
    others, missing = peer_readers() if peers else ([], [])
    readers = [our_reader(), *others]
    with stderr_console().status(f"reading {len(corpus.cases)} cases") as status:
        scores = score(corpus, readers, rounds=rounds, tick=lambda lap: status.update(f"round {lap + 1} of {rounds}"))
    ours = scores[0].median
    if as_json:
        found = [result.to_dict(corpus.columns, ours) for result in scores]
        about = {"corpus": corpus.source, "kind": corpus.kind, **corpus.totals, "rounds": rounds}
        print_json({**about, "readers": found, "missing": missing})
        return
    console = stdout_console()
    totals = ", ".join(f"{value:,} {_WORDS[name]}" for name, value in corpus.totals.items())
    console.print(f"{corpus.source}: {totals}\n", soft_wrap=True)
    if len(scores[0].counts) > 1:
        console.print(_categories(scores[0], corpus), "")
    console.print(_comparison(scores, corpus), "")
    for verdict in (WRONG, REFUSED):
        _list_ids(console, scores[0], verdict)
    _footer(console, readers, rounds)
    _print_missing(missing)


def _categories(ours: Score, corpus: Corpus) -> Table:
    table = _table("category", ["n", *corpus.columns])
    for name, count in sorted(ours.counts.items()):
        table.add_row(name or "-", *(_figure(column, count[column]) for column in ("n", *corpus.columns)))
    return table


def _comparison(scores: Sequence[Score], corpus: Corpus) -> Table:
    table = _table("reader", [*corpus.columns, "µs", "÷ ours"])
    for result in scores:
        figures = [_figure(column, result.total[column]) for column in corpus.columns]
        ratio = f"{result.median / scores[0].median:.2f}"
        table.add_row(result.reader.name, *figures, f"{result.median:,.0f}", ratio)
    return table


def _figure(column: str, value: int) -> Text:
    bad = column in (WRONG, "cut_accepted", "invented") and value
    return Text(str(value), style="red" if bad else "dim" if not value else "")


def _list_ids(console: Console, ours: Score, verdict: str) -> None:
    ids = ours.ids.get(verdict, [])
    if ids:
        more = f" and {len(ids) - _LISTED} more (--json lists them)" if len(ids) > _LISTED else ""
        console.print(f"{_WORDS[verdict]}: {', '.join(ids[:_LISTED])}{more}", soft_wrap=True)


# --- the speed set ------------------------------------------------------------------------------------------------


def _speed(*, peers: bool, rounds: int, as_json: bool) -> None:
    others, missing = peer_readers() if peers else ([], [])
    calls = speed_readers(peers=peers)
    given = documents()
    with stderr_console().status("reading documents of 2 KB and 200 KB"):
        timed = list(time_documents(given, calls, rounds=rounds))
    with stderr_console().status("reading floods of brackets, quotes and prose"):
        floods = list(time_floods())
    readers = [our_reader(), *(reader for reader in others if reader.name in calls)]
    if as_json:
        print_json(_speed_json(timed, floods, readers, missing, rounds))
        return
    console = stdout_console()
    names, columns = list(calls), [document.name for document in given]
    console.print(_speed_table("µs", timed, names, columns, lambda cell: f"{cell.micros:,.0f}"), "")
    console.print(_speed_table("÷ ours", timed, names, columns, lambda cell: f"{cell.ratio:.2f}"), "")
    console.print(_flood_table(floods), "")
    console.print(_goal_line(timed), soft_wrap=True)
    _footer(console, readers, rounds)
    _print_missing(missing)


def _speed_json(
    timed: Sequence[Timed], floods: Sequence[Flooded], readers: Sequence[Reader], missing: list[str], rounds: int
) -> dict[str, Any]:
    return {
        "versions": {reader.name: reader.version for reader in readers},
        "rounds": rounds,
        "documents": [cell.to_dict() for cell in timed],
        "floods": [flood.to_dict() for flood in floods],
        "missing": missing,
    }


def _speed_table(
    title: str, timed: Sequence[Timed], names: Sequence[str], columns: Sequence[str], show: Callable[[Timed], str]
) -> Table:
    cells = {(cell.reader, cell.document): cell for cell in timed}
    table = _table(title, columns)
    for name in names:
        table.add_row(name, *(_cell(cells[name, column], show) for column in columns))
    return table


def _cell(cell: Timed, show: Callable[[Timed], str]) -> Text:
    if cell.outcome == "refused":
        return Text("refused", style="dim")
    return Text(f"{show(cell)} wrong", style="red") if cell.outcome == "wrong" else Text(show(cell))


def _goal_line(timed: Sequence[Timed]) -> str:
    host = next((cell for cell in timed if cell.reader == HOST and cell.document == "clean 2 KB"), None)
    return f"Clean 2 KB: {1 / host.ratio:.2f} times {HOST}." if host and host.ratio else ""


def _flood_table(floods: Sequence[Flooded]) -> Table:
    table = _table("flood", ["KB", "ms at n", "ms at 2n", "growth", "ms/MB", "outcome"])
    for flood in floods:
        times = (f"{flood.millis:,.1f}", f"{flood.millis_twice:,.1f}", f"{flood.growth:.1f}")
        table.add_row(flood.name, f"{flood.chars / 1000:,.0f}", *times, f"{flood.millis_for_mb:,.0f}", flood.outcome)
    return table


# --- both ---------------------------------------------------------------------------------------------------------


def _table(first: str, columns: Sequence[str]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column(first, no_wrap=True)
    for name in columns:
        words = _WORDS.get(name, name)
        folded = max(7, *map(len, words.split())) if len(words) > _HEADER else None
        table.add_column(words, justify="right", width=folded, no_wrap=folded is None)
    return table


def _footer(console: Console, readers: Sequence[Reader], rounds: int) -> None:
    versions = ", ".join(f"{reader.name} {reader.version}" for reader in readers)
    console.print(f"CPU time, median of {counted(rounds, 'round')}. {versions}.", style="dim", soft_wrap=True)


def _print_missing(missing: Sequence[str]) -> None:
    if missing:
        words = f"Not installed, so not measured: {', '.join(missing)}. Add with: pip install {' '.join(missing)}"
        stderr_console().print(words, style="dim", soft_wrap=True)
