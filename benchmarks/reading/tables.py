"""Print the figures of `python -m benchmarks` as tables in the terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.reading.readers import OURS
from benchmarks.reading.speed import HOST
from benchmarks.reading.words import (
    SUMMARY,
    documents_of,
    flood_summary,
    floods_of,
    unasked,
    versions,
)
from flujo_aros.cli.read import categories_table, corpus_title, figure, figures_table, print_ids
from flujo_aros.cli.screen import Text, stderr_console, stdout_console
from flujo_aros.telemetry.formatting import counted


def print_tables(found: Mapping[str, Any]) -> None:
    """Print all figures to stdout, and the peers that are not installed to stderr."""
    console = stdout_console()
    for corpus in found["corpora"]:
        _print_corpus(console, corpus)
    if found["speed"]:
        _print_speed(console, found)
    rounds = counted(found["rounds"], "round")
    console.print(f"CPU time, median of {rounds}. {versions(found)}.", style="dim", soft_wrap=True)
    if found["missing"]:
        words = f"Not measured because not installed. Install with: {'; '.join(found['missing'])}"
        stderr_console().print(words, style="dim", soft_wrap=True)


# --- a corpus -----------------------------------------------------------------------------------------------------


def _print_corpus(console: Console, corpus: Mapping[str, Any]) -> None:
    console.print(corpus_title(corpus), soft_wrap=True)
    own = corpus["readers"][0]
    if len(own["categories"]) > 1:
        console.print(categories_table(own["categories"], corpus["columns"]), "")
    console.print(_comparison(corpus), "")
    print_ids(console, own["ids"])
    if unasked(corpus):
        console.print(unasked(corpus), style="dim", soft_wrap=True)


def _comparison(corpus: Mapping[str, Any]) -> Table:
    table = figures_table("reader", [*corpus["columns"], "µs", "relative time"])
    for reader in corpus["readers"]:
        figures = [figure(column, reader["total"][column]) for column in corpus["columns"]]
        table.add_row(reader["name"], *figures, f"{reader['median_us']:,.0f}", f"{reader['ratio']:.2f}")
    return table


# --- the speed set ------------------------------------------------------------------------------------------------


def _print_speed(console: Console, found: Mapping[str, Any]) -> None:
    speed = found["speed"]
    console.print(_documents(speed, "µs", lambda cell: f"{cell['us']:,.0f}"), "")
    console.print(_documents(speed, "relative time", lambda cell: f"{cell['ratio']:.2f}"), "")
    readers, names, cells = floods_of(speed)
    console.print(_our_floods([cells[OURS, name] for name in names]), "")
    if len(readers) > 1:
        table = figures_table(f"{len(names)} floods", SUMMARY)
        for one in readers:
            table.add_row(one, *flood_summary([cells[one, name] for name in names]))
        console.print(table, "")
        console.print("--markdown, --html and --json list each reader on each flood.", style="dim", soft_wrap=True)
    host = documents_of(speed)[2].get((HOST, "clean 2 KB"))
    if host and host["ratio"]:
        console.print(f"Clean 2 KB: {1 / host['ratio']:.2f} times {HOST}.", soft_wrap=True)


def _documents(speed: Mapping[str, Any], title: str, show: Callable[[Mapping[str, Any]], str]) -> Table:
    readers, columns, cells = documents_of(speed)
    table = figures_table(title, columns)
    for name in readers:
        table.add_row(name, *(_cell(cells[name, column], show) for column in columns))
    return table


def _cell(cell: Mapping[str, Any], show: Callable[[Mapping[str, Any]], str]) -> Text:
    if not cell["us"]:
        return Text(cell["outcome"], style="dim")
    return Text(f"{show(cell)} wrong", style="red") if cell["outcome"] == "wrong" else Text(show(cell))


def _our_floods(floods: Sequence[Mapping[str, Any]]) -> Table:
    table = figures_table("flood", ["KB", "ms at n", "ms at 2n", "growth", "ms/MB", "outcome"])
    for flood in floods:
        figures = [
            f"{flood[name] or 0:{form}}"
            for name, form in (("ms", ",.1f"), ("ms_2n", ",.1f"), ("growth", ".1f"), ("ms_per_mb", ",.0f"))
        ]
        table.add_row(flood["input"], f"{flood['chars'] / 1000:,.0f}", *figures, flood["outcome"])
    return table
