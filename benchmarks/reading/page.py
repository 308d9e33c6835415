"""Render the figures as one self-contained HTML page with charts and tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

from benchmarks.reading.charts import bars, growth, legend, stacked
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
from flujo_aros.telemetry.formatting import counted

_VERDICTS: Final = ("right", "rightly_refused", "refused", "silently_wrong")

STYLE: Final = """
:root{color-scheme:light dark;--bg:#fff;--ink:#1c1f24;--soft:#5d6673;--rule:#dfe3e8;--grid:#eceff2;--panel:#f7f8fa;
--right:#1b7f5c;--rightly:#8db9dd;--refused:#c3c8cf;--wrong:#d2384b;--peer:#a9b2be;--h0:#2f6fdf;--h1:#c2571a;
--h2:#8a3fc9;
--h3:#12838f;--h4:#b8304f;--h5:#7c7a12}
@media(prefers-color-scheme:dark){:root{--bg:#14171b;--ink:#e7eaee;--soft:#9aa5b2;--rule:#2c323a;--grid:#23282f;
--panel:#1b1f25;
--right:#3fb58a;--rightly:#44708f;--refused:#525a65;--wrong:#ee5d6f;--peer:#5b6572;--h0:#78a6ff;--h1:#f09a62;
--h2:#c48bff;
--h3:#4fc3cf;--h4:#ff7d98;--h5:#c9c653}}
*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:1120px;margin:0 auto;padding:24px 16px 64px}h1{font-size:1.6rem;margin:0 0 4px}h2{margin:44px 0 4px;
font-size:1.25rem}
h3{margin:22px 0 4px;font-size:1rem}p{margin:4px 0 12px;max-width:75ch}.soft,small{color:var(--soft)}
svg{display:block;width:100%;height:auto;font:12px system-ui,sans-serif}.scroll{overflow-x:auto}
svg text{fill:var(--ink)}.bars{margin:8px 0 14px;font-size:.8rem}
.row{display:grid;grid-template-columns:190px 1fr 210px;gap:0 10px;align-items:center;min-height:25px}
.whole .row{grid-template-columns:190px 1fr}.row .name{text-align:right}.row.ours .name{font-weight:700}
.row .bar{display:flex;height:18px}.row i{display:block;height:100%;overflow:hidden;font:11px/18px system-ui,sans-serif;
text-align:center;border-right:1px solid var(--bg)}
.figure{font-variant-numeric:tabular-nums}i.ours,i.right{background:var(--right)}i.peer{background:var(--peer)}
i.rightly_refused{background:var(--rightly)}i.refused{background:var(--refused)}i.silently_wrong{background:var(--wrong)}
i.right,i.silently_wrong{color:var(--bg)}
.keys{display:flex;flex-wrap:wrap;gap:4px 16px;margin:6px 0 10px;font-size:.85rem}.key{display:inline-flex;
align-items:center;gap:6px}
.key svg{width:26px;display:inline}.sw{width:13px;height:13px;border-radius:3px;display:inline-block}
.grid{stroke:var(--grid)}.guide{stroke:var(--soft);stroke-dasharray:1 4}svg .tick{fill:var(--soft);font-size:10px}
.mid{text-anchor:middle}.end{text-anchor:end}.line path{fill:none;stroke:var(--c);stroke-width:1.4}
.line .wide{stroke-width:9;opacity:0}
.line circle{stroke:var(--c);stroke-width:1.4}.full{fill:var(--c)}.empty{fill:var(--bg)}.line .cross{stroke-width:2.2}
.line:hover path:not(.wide){stroke-width:3.4}.ours{--c:var(--right)}.line.ours path:not(.wide){stroke-width:3}
.hue0{--c:var(--h0)}.hue1{--c:var(--h1)}.hue2{--c:var(--h2)}.hue3{--c:var(--h3)}.hue4{--c:var(--h4)}
.hue5{--c:var(--h5)}
.many{display:grid;grid-template-columns:repeat(auto-fill,minmax(300px,1fr));gap:14px}
.many figure{margin:0;padding:10px;background:var(--panel);border:1px solid var(--rule);border-radius:8px}
figcaption{font:600 .85rem ui-monospace,monospace;margin-bottom:4px}
details{margin:10px 0}summary{cursor:pointer;color:var(--soft)}
table{border-collapse:collapse;font-size:.82rem;font-variant-numeric:tabular-nums;margin:8px 0}
th,td{padding:4px 10px;text-align:right;border-bottom:1px solid var(--rule);white-space:nowrap}
th:first-child,td:first-child{text-align:left;position:sticky;left:0;background:var(--bg)}
thead th{white-space:normal;vertical-align:bottom;font-weight:600;color:var(--soft)}tr.ours td{font-weight:700}
td.bad{color:var(--wrong)}
@media(max-width:600px){.row,.whole .row{grid-template-columns:1fr auto;margin-bottom:5px}.row .name{text-align:left}
.row .bar{grid-row:2;grid-column:1/-1}.many{grid-template-columns:1fr}}
"""


def page(found: Mapping[str, Any]) -> str:
    """Return the page."""
    head = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>flujo_aros and its peers</title><style>{STYLE}</style></head>\n<body><main>\n"
    )
    return head + "\n".join(_parts(found)) + "\n</main></body></html>\n"


def _parts(found: Mapping[str, Any]) -> Iterator[str]:
    yield "<h1>flujo_aros and its peers</h1>"
    yield (
        f'<p class="soft">Measured {found["date"]} with {escape(versions(found))}; Python {found["python"]}, '
        f"{escape(found['system'])}. CPU time, median of {counted(found['rounds'], 'round')}, readers interleaved.</p>"
    )
    for corpus in found["corpora"]:
        yield from _corpus(corpus)
    if found["speed"]:
        yield from _documents(found["speed"])
        yield from _floods(found)
    if found["missing"]:
        lines = " and ".join(f"<code>{escape(line)}</code>" for line in found["missing"])
        yield f'<p class="soft">Not measured because not installed. Install with {lines}.</p>'


# --- a corpus -----------------------------------------------------------------------------------------------------


def _corpus(corpus: Mapping[str, Any]) -> Iterator[str]:
    totals = ", ".join(f"{value:,} {TITLES[name]}" for name, value in corpus["totals"].items())
    yield f"<h2>{escape(corpus['corpus'].rpartition('/')[2])}</h2><p>{totals}. {escape(unasked(corpus))}</p>"
    if corpus["kind"] == "cases":
        keys = "".join(f'<span class="key"><i class="sw {name}"></i>{TITLES[name]}</span>' for name in _VERDICTS)
        yield f'<div class="keys">{keys}</div>{stacked(corpus, _VERDICTS)}'
    else:
        for column in corpus["columns"]:
            figures = [
                (reader["name"], float(reader["total"][column]), str(reader["total"][column]))
                for reader in corpus["readers"]
            ]
            yield f"<h3>{TITLES[column]}</h3>{bars(figures, TITLES[column])}"
    times = [(reader["name"], reader["median_us"], f"{reader['median_us']:,.0f} µs") for reader in corpus["readers"]]
    yield f"<h3>Median time per reply, log scale</h3>{bars(times, 'Median time', logarithmic=True)}"
    head = ["reader", *(TITLES[name] for name in corpus["columns"]), "median µs", "relative time"]
    rows = [
        [
            reader["name"],
            *(str(reader["total"][name]) for name in corpus["columns"]),
            f"{reader['median_us']:,.0f}",
            f"{reader['ratio']:.2f}",
        ]
        for reader in corpus["readers"]
    ]
    yield _table(head, rows)


# --- the speed set ------------------------------------------------------------------------------------------------


def _documents(speed: Mapping[str, Any]) -> Iterator[str]:
    readers, names, cells = documents_of(speed)
    yield "<h2>Documents</h2><p>flujo_aros validates into a pydantic model; the peers only parse.</p>"
    for name in names:
        figures = [(reader, *_document_bar(cells[reader, name])) for reader in readers]
        yield f"<h3>{escape(name)}, log scale</h3>{bars(figures, name, logarithmic=True)}"


def _document_bar(cell: Mapping[str, Any]) -> tuple[float, str]:
    if not cell["us"]:
        return 0.0, str(cell["outcome"])
    wrong = ", wrong" if cell["outcome"] == "wrong" else ""
    return cell["us"], f"{cell['us']:,.0f} µs ({cell['ratio']:.2f} × flujo_aros{wrong})"


def _floods(found: Mapping[str, Any]) -> Iterator[str]:
    readers, names, cells = floods_of(found["speed"])
    yield (
        "<h2>Floods: time against size</h2><p>Inputs on which some parser hangs, recurses or becomes quadratic. "
        f"Each reader runs in a separate process, with {found['budget']:g} s per call. A line parallel to the dotted "
        "one is linear. A cross marks a reader that exceeded the budget, recursed too deep or crashed; an empty circle "
        "marks a refusal.</p>"
    )
    yield f'<div class="keys">{legend(readers)}</div><div class="many">'
    for name in names:
        chart = growth({one: cells[one, name] for one in readers}, readers, found["budget"])
        yield f"<figure><figcaption>{escape(name)}</figcaption>{chart}</figure>"
    yield "</div>"
    rows = [[one, *flood_summary([cells[one, name] for name in names])] for one in readers]
    yield _table(["reader", *SUMMARY], rows)
    every = [[one, *(flood_cell(cells[one, name], found["budget"]) for name in names)] for one in readers]
    yield f"<details><summary>Each reader on each flood, at 2n</summary>{_table(['reader', *names], every)}</details>"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(f"<tr{_class(row[0])}>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def _class(name: str) -> str:
    return ' class="ours"' if name == OURS else ""
