"""Format the figures identically for the terminal, Markdown and HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from benchmarks.reading.floods import CRASHED, OVER

RAW: Final = frozenset({"RecursionError", "RangeError", CRASHED})
"""Failures that callers do not expect."""


def unasked(corpus: Mapping[str, Any]) -> str:
    """Describe which readers skipped cases, timed out or crashed; empty if none did."""
    skipped = [f"{reader['name']} {reader['unasked']}" for reader in corpus["readers"] if reader["unasked"]]
    over = [f"{reader['name']} {len(reader['endless'])}" for reader in corpus["readers"] if reader["endless"]]
    notes = [f"Cases skipped because the reader cannot express their schema: {', '.join(skipped)}."] if skipped else []
    notes += [f"Calls over the budget or crashed, counted as refused: {', '.join(over)}."] if over else []
    return " ".join(notes)


def versions(found: Mapping[str, Any]) -> str:
    """Return the name and version of each measured package."""
    seen: dict[str, str] = {}
    for name, version in found["versions"].items():
        seen.setdefault(name.split(",")[0].replace("json.loads", "json of"), version)
    return ", ".join(f"{name} {version}" for name, version in seen.items())


def documents_of(speed: Mapping[str, Any]) -> tuple[list[str], list[str], dict[tuple[str, str], dict[str, Any]]]:
    """Return the readers, the documents, and the cell of each pair."""
    cells = {(cell["reader"], cell["document"]): cell for cell in speed["documents"]}
    return list(dict.fromkeys(one for one, _ in cells)), list(dict.fromkeys(two for _, two in cells)), cells


def floods_of(speed: Mapping[str, Any]) -> tuple[list[str], list[str], dict[tuple[str, str], dict[str, Any]]]:
    """Return the readers, the floods, and the cell of each pair."""
    cells = {(flood["reader"], flood["input"]): flood for flood in speed["floods"]}
    return list(dict.fromkeys(one for one, _ in cells)), list(dict.fromkeys(two for _, two in cells)), cells


def flood_cell(flood: Mapping[str, Any], budget: float) -> str:
    """Format one reader's result on one flood: its time at 2n, with the growth unless linear, or how it failed."""
    last = flood["points"][-1]
    if flood["outcome"] == OVER:
        return f"over {budget:g} s at {last['chars'] / 1000:,.0f} KB"
    if flood["outcome"] in RAW:
        return str(flood["outcome"])
    grown = f", growth {flood['growth']:.1f}" if (flood["growth"] or 0) > 2.6 and last["ms"] > 5 else ""
    refused = " refused" if flood["outcome"] == "refused" else ""
    return f"{last['ms']:,.1f} ms{grown}{refused}"


def flood_summary(floods: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Count one reader's results on all floods, in the columns of `SUMMARY`."""
    over = sum(flood["outcome"] == OVER for flood in floods)
    raw = sum(flood["outcome"] in RAW for flood in floods)
    steep = sum((flood["growth"] or 0) > 2.6 and (flood["ms_2n"] or 0) > 5 for flood in floods)
    slowest = max((flood["ms_per_mb"] or 0 for flood in floods), default=0)
    return str(len(floods) - over - raw), str(over), str(raw), str(steep), f"{slowest:,.0f}"


SUMMARY: Final = ("in time", "over budget", "raw errors and crashes", "worse than linear", "slowest, ms for 1 MB")
