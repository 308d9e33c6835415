"""Render the figures as Markdown tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.reading.readers import OURS
from benchmarks.reading.words import (
    SUMMARY,
    documents_of,
    flood_cell,
    flood_summary,
    floods_of,
    unasked,
    versions,
)
from flujo_aros.cli.read import TITLES


def markdown(found: Mapping[str, Any]) -> str:
    """Return all figures, with a heading for each part."""
    return "\n\n".join([*_parts(found), f"CPU time, median of {found['rounds']} rounds. {versions(found)}."]) + "\n"


def _parts(found: Mapping[str, Any]) -> Iterator[str]:
    for corpus in found["corpora"]:
        totals = ", ".join(f"{value:,} {TITLES[name]}" for name, value in corpus["totals"].items())
        yield f"## {corpus['corpus']}"
        yield f"{totals}."
        yield corpus_table(corpus)
        if unasked(corpus):
            yield unasked(corpus)
    if found["speed"]:
        yield "## Documents"
        yield documents_table(found["speed"])
        yield "## Floods"
        yield from flood_tables(found)
    if found["missing"]:
        lines = " and ".join(f"`{line}`" for line in found["missing"])
        yield f"Not measured because not installed. Install with {lines}."


def corpus_table(corpus: Mapping[str, Any]) -> str:
    """Return the table of the readers on one corpus."""
    head = ["reader", *(TITLES[name] for name in corpus["columns"]), "median µs", "relative time"]
    rows = [
        [
            bold(reader["name"]),
            *(str(reader["total"][name]) for name in corpus["columns"]),
            f"{reader['median_us']:,.0f}",
            f"{reader['ratio']:.2f}",
        ]
        for reader in corpus["readers"]
    ]
    return table(head, rows)


def documents_table(speed: Mapping[str, Any]) -> str:
    """Return the table of the readers on the documents: µs, and the ratio to `flujo_aros`."""
    readers, names, cells = documents_of(speed)
    rows = [[bold(reader), *(_document_cell(cells[reader, name]) for name in names)] for reader in readers]
    return table(["µs (relative)", *names], rows)


def _document_cell(cell: Mapping[str, Any]) -> str:
    if not cell["us"]:
        return str(cell["outcome"])
    return f"{cell['us']:,.0f} ({cell['ratio']:.2f})" + (" **wrong**" if cell["outcome"] == "wrong" else "")


def flood_tables(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield three tables: `flujo_aros` at n and 2n, a summary of all readers, and each reader on each flood."""
    readers, names, cells = floods_of(found["speed"])
    yield _our_floods([cells[OURS, name] for name in names])
    if len(readers) > 1:
        rows = [[bold(reader), *flood_summary([cells[reader, name] for name in names])] for reader in readers]
        yield table(["reader", *SUMMARY], rows)
        every = [[_code(name), *(flood_cell(cells[one, name], found["budget"]) for one in readers)] for name in names]
        yield table(["flood, at 2n", *map(bold, readers)], every)


def _our_floods(floods: Sequence[Mapping[str, Any]]) -> str:
    head = ["input", "KB at n", "ms at n", "ms at 2n", "growth", "ms for 1 MB", "outcome"]
    return table(head, [_our_flood(flood) for flood in floods])


def _our_flood(flood: Mapping[str, Any]) -> list[str]:
    figures = [
        f"{flood[name] or 0:{form}}"
        for name, form in (("ms", ",.1f"), ("ms_2n", ",.1f"), ("growth", ".1f"), ("ms_per_mb", ",.0f"))
    ]
    return [_code(flood["input"]), f"{flood['chars'] / 1000:,.0f}", *figures, flood["outcome"]]


def _code(name: str) -> str:
    return f"`{name}`" if "```" not in name else f"```` {name} ````"


def bold(name: str) -> str:
    """Return the name of a reader, in bold for `flujo_aros`."""
    return f"**{name}**" if name == OURS else name


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table whose columns after the first are right-aligned."""
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])
