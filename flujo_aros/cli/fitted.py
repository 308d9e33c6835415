"""Tables that do without their less important columns where the terminal is narrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.cells import cell_len
from rich.table import Table

from flujo_aros.cli.screen import Text


def fitted_table(
    rows: Sequence[Mapping[str, Text]],
    width: int,
    *,
    figures: Sequence[str] = (),
    dropped_first: Sequence[str] = (),
    folded: Mapping[str, int] | None = None,
) -> Table:
    """A table of these rows, whose keys are its headers.

    `figures` stand right-aligned. Where the terminal is too narrow, columns of `dropped_first` go, in this order;
    `folded` columns may be folded down to so many cells.
    """
    columns = list(rows[0])
    folds = folded or {}
    for name in dropped_first:
        if name in columns and _width(rows, columns, folds) > width:
            columns.remove(name)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for name in columns:
        right = name in figures
        table.add_column(
            name, justify="right" if right else "left", no_wrap=name not in folds, overflow="fold", min_width=1
        )
    for row in rows:
        table.add_row(*[row[name] for name in columns])
    return table


def figure(word: str) -> Text:
    """A number, or the dash that stands for none."""
    return Text(word, style="dim" if word == "-" else "")


def _width(rows: Sequence[Mapping[str, Text]], columns: Sequence[str], folds: Mapping[str, int]) -> int:
    widest = {name: max(cell_len(name), *(row[name].cell_len for row in rows)) for name in columns}
    return sum(min(widest[name], folds.get(name, 10_000)) for name in columns) + 2 * (len(columns) - 1)
