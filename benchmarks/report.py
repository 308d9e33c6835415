"""Measure everything in one run and print docs/benchmarks.md.

Run `python -m benchmarks.report CAPTURED.jsonl [--html FILE] > docs/benchmarks.md` with all peers installed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import benchmarks.reading.captured  # noqa: F401 (adds the titles of its columns)
from benchmarks.reading.markdown import corpus_table, documents_table, flood_tables
from benchmarks.reading.words import unasked, versions

HERE = Path(__file__).resolve().parent


def printed(*module: str) -> str:
    return subprocess.run([sys.executable, "-m", *module], stdout=subprocess.PIPE, text=True, check=True).stdout


def main() -> None:
    captured_file, *options = sys.argv[1:]
    corpora = (str(HERE / "cases.jsonl"), str(HERE / "meaning.jsonl"), str(HERE / "blind.jsonl"), captured_file)
    found = json.loads(printed("benchmarks", "reading", *corpora, *options, "--speed", "--peers", "--json"))
    if found["missing"]:
        sys.exit(f"install first: {' and '.join(found['missing'])}")
    cases, meaning, blind, captured = found["corpora"]
    own_floods, summary, _every = flood_tables(
        found
    )  # each reader on each flood is for the page, too wide for this one
    cells = found["speed"]["documents"]
    clean = next(c for c in cells if c["document"] == "clean 2 KB" and c["reader"].startswith("TypeAdapter"))
    sys.stdout.write(
        (HERE / "report.md.in")
        .read_text(encoding="utf-8")
        .format(
            date=found["date"],
            versions=f"{versions(found)}; {found['system']}, two shared cores",
            rounds=found["rounds"],
            budget=f"{found['budget']:g}",
            n=cases["totals"]["n"],
            unasked=unasked(cases),
            captured_n=f"{captured['totals']['n']:,}",
            gold=captured["totals"]["with_gold"],
            cut=captured["totals"]["cut"],
            captured_unasked=unasked(captured),
            clean=f"{1 / clean['ratio']:.2f}",
            cases=corpus_table(cases),
            meaning_n=meaning["totals"]["n"],
            meaning=corpus_table(meaning),
            blind_n=f"{blind['totals']['n']:,}",
            blind=corpus_table(blind),
            captured=corpus_table(captured),
            speed=documents_table(found["speed"]),
            defects=printed("benchmarks.defects"),
            floods=own_floods,
            summary=summary,
        )
    )


if __name__ == "__main__":
    main()
