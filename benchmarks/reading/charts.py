"""Draw the charts of the HTML page: bars of any width, and log-log plots of time against size as inline SVG."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

from benchmarks.reading.floods import CRASHED, OVER
from benchmarks.reading.readers import OURS
from benchmarks.reading.words import RAW
from flujo_aros.cli.read import TITLES

_PLOT: Final = (46.0, 12.0, 330.0, 196.0)
"""The left, top, right and bottom edges of a log-log chart."""
_DASHES: Final = ("", "6 3", "2 3")
_HUES: Final = 6
_LABELLED: Final = 6
"""The minimum share in percent for a label that fits on a narrow screen."""


def stacked(corpus: Mapping[str, Any], columns: Sequence[str]) -> str:
    """Draw one bar of verdicts for each reader, all of the same length."""
    rows: list[str] = []
    for reader in corpus["readers"]:
        count = sum(reader["total"][name] for name in columns) or 1
        parts = [_part(reader["name"], name, reader["total"][name], count) for name in columns]
        rows.append(_row(reader["name"], f'<span class="bar">{"".join(parts)}</span>'))
    return f'<div class="bars whole" role="img" aria-label="Verdicts of each reader">{"".join(rows)}</div>'


def _part(reader: str, kind: str, value: int, count: int) -> str:
    if not value:
        return ""
    share, said = 100 * value / count, f"{reader}: {value} {TITLES[kind]}"
    label = str(value) if share > _LABELLED else ""
    return f'<i class="{kind}" style="width:{share:.2f}%" title="{escape(said)}">{label}</i>'


def bars(figures: Sequence[tuple[str, float, str]], title: str, *, logarithmic: bool = False) -> str:
    """Draw one bar for each name, with its label beside it; a value of 0 shows only the label."""
    values = [value for _, value, _ in figures if value > 0]
    low, high = (min(values) / 2, max(values)) if values else (1.0, 1.0)
    rows: list[str] = []
    for name, value, label in figures:
        part = (math.log(value / low) / math.log(high / low) if logarithmic else value / high) if value > 0 else 0
        kind = "ours" if name == OURS else "peer"
        bar = f'<i class="{kind}" style="width:{max(100 * part, 0.5):.2f}%"></i>' if value > 0 else ""
        rows.append(_row(name, f'<span class="bar">{bar}</span><span class="figure">{escape(label)}</span>'))
    return f'<div class="bars" role="group" aria-label="{escape(title)}">{"".join(rows)}</div>'


def _row(name: str, rest: str) -> str:
    kind = "row ours" if name == OURS else "row"
    return f'<div class="{kind}"><span class="name">{escape(name)}</span>{rest}</div>'


def line_class(at: int) -> str:
    """Return the CSS class for the reader at this index; the first one is `flujo_aros`."""
    return "ours" if at == 0 else f"hue{(at - 1) % _HUES}"


def _dash(at: int) -> str:
    dash = _DASHES[(at - 1) // _HUES % len(_DASHES)] if at else ""
    return f' stroke-dasharray="{dash}"' if dash else ""


def growth(floods: Mapping[str, Mapping[str, Any]], readers: Sequence[str], budget: float) -> str:
    """Plot time against size of one flood for all readers, on log axes with a dotted line of linear slope."""
    points = [point for flood in floods.values() for point in flood["points"] if point["chars"] > 0]
    across = _decades(point["chars"] for point in points)
    up = (-2, math.ceil(math.log10(budget * 1000) + 0.01))
    rows = [*_grid(across, up), *_linear(across, up)]
    order = sorted(enumerate(readers), key=lambda pair: -pair[0])  # `flujo_aros` is drawn last, on top
    rows += [_line(at, name, floods[name]["points"], across, up) for at, name in order if name in floods]
    return _svg(352, 226, "Time against size", rows)


def _decades(values: Iterator[float] | Any) -> tuple[int, int]:
    known = list(values)
    return math.floor(math.log10(min(known))), math.ceil(math.log10(max(known) + 1))


def _spot(chars: float, millis: float, across: tuple[int, int], up: tuple[int, int]) -> tuple[float, float]:
    left, top, right, bottom = _PLOT
    x = (math.log10(chars) - across[0]) / (across[1] - across[0])
    y = (min(max(math.log10(max(millis, 1e-9)), up[0]), up[1]) - up[0]) / (up[1] - up[0])
    return left + x * (right - left), bottom - y * (bottom - top)


def _grid(across: tuple[int, int], up: tuple[int, int]) -> Iterator[str]:
    left, top, right, bottom = _PLOT
    sizes = {0: "1 B", 1: "10 B", 2: "100 B", 3: "1 KB", 4: "10 KB", 5: "100 KB", 6: "1 MB", 7: "10 MB"}
    times = {-2: "10 µs", -1: "0.1 ms", 0: "1 ms", 1: "10 ms", 2: "0.1 s", 3: "1 s", 4: "10 s", 5: "100 s"}
    for power in range(across[0], across[1] + 1):
        x, _ = _spot(10.0**power, 1, across, up)
        yield f'<path class="grid" d="M{x:.1f} {top}V{bottom}"/>'
        yield f'<text class="tick mid" x="{x:.1f}" y="{bottom + 14}">{sizes.get(power, f"1e{power}")}</text>'
    for power in range(up[0], up[1] + 1):
        _, y = _spot(1, 10.0**power, (0, 1), up)
        yield f'<path class="grid" d="M{left} {y:.1f}H{right}"/>'
        yield f'<text class="tick end" x="{left - 4}" y="{y + 3:.1f}">{times.get(power, f"1e{power}")}</text>'


def _linear(across: tuple[int, int], up: tuple[int, int]) -> Iterator[str]:
    """Draw a guide line at 0.1 µs per character."""
    ends = [_spot(10.0**power, 10.0**power * 1e-4, across, up) for power in across]
    (x, y), (x2, y2) = ends
    yield f'<path class="guide" d="M{x:.1f} {y:.1f}L{x2:.1f} {y2:.1f}"/>'


def _line(at: int, name: str, points: Sequence[Mapping[str, Any]], across: tuple[int, int], up: tuple[int, int]) -> str:
    spots = [_spot(point["chars"], point["ms"], across, up) for point in points if point["outcome"] != CRASHED]
    spots = spots or [_spot(points[-1]["chars"], 1, across, up)]
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in spots)
    last = points[-1]
    said = f"{name}: {last['outcome']}, {last['ms']:,.2f} ms at {last['chars']:,} characters"
    kind = line_class(at)
    return (
        f'<g class="line {kind}"><title>{escape(said)}</title><path d="{path}"{_dash(at)}/>'
        f'<path class="wide" d="{path}"/>{_mark(last["outcome"], *spots[-1])}</g>'
    )


def _mark(outcome: str, x: float, y: float) -> str:
    if outcome == OVER or outcome in RAW:
        return f'<path class="cross" d="M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8"/>'
    kind = "empty" if outcome == "refused" else "full"
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="2.6"/>'


def legend(readers: Sequence[str]) -> str:
    """Return the legend: each reader's name with its color and dash pattern."""
    return "".join(
        f'<span class="key"><svg width="26" height="10" aria-hidden="true"><g class="line {line_class(at)}">'
        f'<path d="M1 5H25"{_dash(at)}/></g></svg>{escape(name)}</span>'
        for at, name in enumerate(readers)
    )


def _svg(width: int, height: int, title: str, rows: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}" '
        f'style="max-width:{width}px">{"".join(rows)}</svg>'
    )
