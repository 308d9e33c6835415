"""Measure everything and print docs/benchmarks.md.

Run `python benchmarks/report.py CAPTURED.jsonl > docs/benchmarks.md` with all peers installed.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PEERS = ("json-repair", "fast-json-repair", "jsonmend")


def bench(*args: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "flujo_aros.cli", "bench", "reading", *args, "--peers", "--json"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def bold(name: str) -> str:
    return f"**{name}**" if name == "flujo_aros" else name


def cases_table(found: dict[str, Any]) -> str:
    columns = ("right", "rightly_refused", "refused", "silently_wrong")
    head = ["reader", "right", "rightly refused", "refused though recoverable", "silently wrong", "median µs", "÷ ours"]
    return table(head, [row(reader, columns) for reader in found["readers"]])


def captured_table(found: dict[str, Any]) -> str:
    columns = ("accepted", "right", "cut_accepted", "invented")
    head = ["reader", "read without a call", "of these right", "cut replies accepted", "holds what the reply does not"]
    rows = []
    for reader in found["readers"]:
        cells = row(reader, columns)
        cells[1] += f" ({reader['total']['accepted'] / found['n']:.0%})"
        rows.append(cells)
    return table([*head, "median µs", "÷ ours"], rows)


def row(reader: dict[str, Any], columns: tuple[str, ...]) -> list[str]:
    figures = [str(reader["total"][name]) for name in columns]
    return [bold(reader["name"]), *figures, f"{reader['median_us']:,.0f}", f"{reader['ratio']:.2f}"]


def speed_table(found: dict[str, Any]) -> str:
    names = list(dict.fromkeys(cell["document"] for cell in found["documents"]))
    readers = list(dict.fromkeys(cell["reader"] for cell in found["documents"]))
    cells = {(cell["reader"], cell["document"]): cell for cell in found["documents"]}
    return table(["µs (÷ ours)", *names], [[bold(r), *(speed_cell(cells[r, n]) for n in names)] for r in readers])


def speed_cell(cell: dict[str, Any]) -> str:
    if cell["outcome"] == "refused":
        return "refused"
    return f"{cell['us']:,.0f} ({cell['ratio']:.2f})" + (" wrong" if cell["outcome"] == "wrong" else "")


def flood_table(found: dict[str, Any]) -> str:
    head = ["input", "KB", "ms at n", "ms at 2n", "growth", "ms for 1 MB", "outcome"]
    rows = [
        [
            f"`{flood['input']}`" if "```" not in flood["input"] else f"```` {flood['input']} ````",
            f"{flood['chars'] / 1000:,.0f}",
            f"{flood['ms']:,.1f}",
            f"{flood['ms_2n']:,.1f}",
            f"{flood['growth']:.1f}",
            f"{flood['ms_per_mb']:,.0f}",
            flood["outcome"],
        ]
        for flood in found["floods"]
    ]
    return table(head, rows)


def main() -> None:
    cases, captured, speed = bench(str(HERE / "cases.jsonl")), bench(sys.argv[1]), bench()
    for found in (cases, captured, speed):
        if found["missing"]:
            sys.exit(f"install first: pip install {' '.join(found['missing'])}")
    versions = {reader["name"]: reader["version"] for reader in cases["readers"]}
    about = ", ".join(f"{name} {versions[name]}" for name in ("flujo_aros", *PEERS))
    clean = next(c for c in speed["documents"] if c["document"] == "clean 2 KB" and c["reader"].startswith("Type"))
    sys.stdout.write(
        (HERE / "report.md.in")
        .read_text(encoding="utf-8")
        .format(
            date=datetime.now(UTC).date(),
            versions=f"{about}; CPython {platform.python_version()}, {platform.system()}, two shared cores",
            n=cases["n"],
            captured_n=f"{captured['n']:,}",
            gold=captured["with_gold"],
            cut=captured["cut"],
            clean=f"{1 / clean['ratio']:.2f}",
            cases=cases_table(cases),
            captured=captured_table(captured),
            speed=speed_table(speed),
            floods=flood_table(speed),
        )
    )


if __name__ == "__main__":
    main()
