"""`aros bench`: how often the reader is right on your own corpus, and how often silently wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from importlib.metadata import version
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table

from flujo_aros.cli.corpus import BAD, REFUSED, TITLES, WRONG, Corpus, Got, Tally, load_corpus
from flujo_aros.cli.screen import Text, print_json, stdout_console
from flujo_aros.outcome import Accepted

_LISTED: Final = 12
_HEADER: Final = 9


class BenchName(StrEnum):
    """The available measurements."""

    READING = "reading"


def bench_command(
    what: Annotated[BenchName, typer.Argument(metavar="reading", help="What to measure.")],
    corpus: Annotated[list[str], typer.Argument(metavar="CORPUS", show_default=False, help="Cases as JSON Lines.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print all figures as one JSON document.")] = False,
) -> None:
    """Score the reader on your own replies.

    Counts right values, replies that were rightly refused, replies that were refused although they could be read, and
    silently wrong values. Rows are {id, input, schema, expected, must_fail, may_fail, accept}, or for captured replies
    {id, raw, schema, gold, finish_reason}.

    Speed and other readers are measured by `python -m benchmarks reading` in a checkout of this package.

    Example: aros bench reading cases.jsonl
    """
    del what  # there is one so far
    scored = [_scored(one) for one in [load_corpus(name) for name in corpus]]
    if as_json:
        print_json({"version": version("flujo_aros"), "corpora": scored})
        return
    console = stdout_console()
    for one in scored:
        console.print(corpus_title(one), soft_wrap=True)
        console.print(categories_table({**one["categories"], "total": one["total"]}, one["columns"]), "")
        print_ids(console, one["ids"])


def _scored(corpus: Corpus) -> dict[str, Any]:
    from flujo_aros.reading.read import read  # here: no other command needs it

    tally = Tally()
    for case in corpus.cases:
        outcome = read(case.text, case.contract, truncated=case.truncated)
        tally.add(case, Got(outcome.value) if isinstance(outcome, Accepted) else None)
    return {**corpus.to_dict(), **tally.to_dict(corpus.columns)}


def corpus_title(corpus: Mapping[str, Any]) -> str:
    """The content of a corpus in one line, followed by an empty one."""
    return f"{corpus['corpus']}: {', '.join(f'{n:,} {TITLES[name]}' for name, n in corpus['totals'].items())}\n"


def categories_table(categories: Mapping[str, Mapping[str, int]], columns: Sequence[str]) -> Table:
    """The verdicts of one reader, one row for each category."""
    table = figures_table("category", ["n", *columns])
    for name, count in categories.items():
        table.add_row(name or "-", *(figure(column, count[column]) for column in ("n", *columns)))
    return table


def figures_table(first: str, columns: Sequence[str]) -> Table:
    """A table without lines, with a wide first column and narrow ones for figures."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column(first, no_wrap=True)
    for name in columns:
        title = TITLES.get(name, name)
        folded = max(7, *map(len, title.split())) if len(title) > _HEADER else None
        table.add_column(title, justify="right", width=folded, no_wrap=folded is None)
    return table


def figure(column: str, value: int) -> Text:
    """A count in its colour: red if it should be zero."""
    return Text(str(value), style="red" if column in BAD and value else "dim" if not value else "")


def print_ids(console: Console, ids: Mapping[str, Sequence[str]]) -> None:
    """The cases that were read wrongly, then those refused though recoverable."""
    for verdict in (WRONG, REFUSED):
        if names := ids.get(verdict):
            more = f" and {len(names) - _LISTED} more (--json lists them)" if len(names) > _LISTED else ""
            console.print(f"{TITLES[verdict]}: {', '.join(names[:_LISTED])}{more}", soft_wrap=True)
