"""The figures on the pages about ensembles and agreement equal the output of the benchmarks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def printed(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (ROOT / "benchmarks" / name).read_text(encoding="utf-8").splitlines()]


def rows_of(page: str, head: str) -> list[str]:
    """Return the rows of the table on a page that starts with this line."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert text.count(head) == 1
    return text.partition(head)[2].partition("\n\n")[0].strip().splitlines()[1:]


def test_the_page_quotes_the_cost_of_a_long_run() -> None:
    *tenths, end = printed("ensemble.jsonl")
    assert (end["status"], end["figures_folded_are_those_of_the_run"]) == ("completed", True)
    rows = [
        f"| {row['turns']:,} | {row['ms_a_turn']} ms | {row['mb_held']} MB | {row['longest_prompt']:,} characters |"
        for row in tenths
    ]
    shown = [rows[0], rows[4], rows[9]]
    assert rows_of("ensembles.md", "| turns | CPU time of a turn | memory held | longest prompt |") == shown


def fared(runs: list[dict[str, Any]]) -> list[str]:
    """Return the rows of a table with a column for each run."""
    due = [list(run["reflections"].values()) for run in runs]
    counts = [(sum(a["crossed"] for a in each), sum(a["reflected"] for a in each)) for each in due]
    cells = {
        "ended as": [run["status"] for run in runs],
        "events outside grants": [str(run["outside_grants"]) for run in runs],
        "raw fallbacks": [f"{100 * run['raw_fallback']:.1f}%" for run in runs],
        "thresholds crossed, beliefs formed": [f"{crossed}, {formed}" for crossed, formed in counts],
        "repetition: the share of a line that its speaker has said before": [
            f"{run['repetition']:.3f}" for run in runs
        ],
        "skipped turns, failed turns": [f"{run['skipped_turns']}, {run['failed_turns']}" for run in runs],
    }
    return [f"| {name} | {' | '.join(each)} |" for name, each in cells.items()]


def test_the_page_quotes_how_a_small_model_fares() -> None:
    runs = [run for run in printed("ensemble_live.jsonl") if run["blueprint"] == "thousand_token_wood"]
    native = [run for run in runs if run["mode"] == "auto"]
    assert [(run["reflection"], run["ladder"]) for run in native] == [(True, True), (False, True), (True, False)]
    assert rows_of("ensembles.md", "| | beliefs | no beliefs | no ladder |") == fared(native)
    assert all(run["turns"] == 50 and run["raw_fallback"] < 0.1 and not run["outside_grants"] for run in native)
    prompted = [run for run in runs if run["mode"] == "prompted"]
    assert rows_of("ensembles.md", "| | ladder | no ladder |") == fared(prompted)
    assert [run["ladder"] for run in prompted] == [True, False]


def test_the_page_quotes_how_the_support_desk_ends_on_a_small_model() -> None:
    (desk,) = [run for run in printed("ensemble_live.jsonl") if run["blueprint"] == "support_desk"]
    page = (ROOT / "docs" / "ensembles.md").read_text(encoding="utf-8")
    assert f"ends with `{desk['reason']}` after {desk['turns']} turns" in page


def test_a_turn_costs_the_same_at_the_end() -> None:
    *tenths, _ = printed("ensemble.jsonl")
    assert tenths[-1]["mb_held"] <= 1.02 * tenths[0]["mb_held"]
    assert tenths[-1]["longest_prompt"] <= 1.1 * tenths[0]["longest_prompt"]
    assert tenths[-1]["ms_a_turn"] <= 1.5 * tenths[0]["ms_a_turn"]


def test_the_page_quotes_the_measured_value_of_agreement() -> None:
    rows: list[str] = []
    for row in printed("agreement.jsonl"):
        if "way" not in row:
            continue
        assert row.get("contested_named", True)
        way = "exact plurality, all agree" if row["way"] == "plurality" else f"`agree()`, `need={row['need']:g}`"
        rows.append(f"| {row['readings']} | {way} | {row['coverage']}% | {row['right']}% |")
    shown = [row.replace("need=0.67", "need=2/3").replace("need=1`", "need=1.0`") for row in rows]
    assert rows_of("benchmarks-agreement.md", "| readings | | coverage | right |") == shown


def test_the_page_quotes_the_savings_of_an_early_stop() -> None:
    shown: list[str] = []
    for row in printed("agreement.jsonl"):
        if "early stop" not in row:
            continue
        need = "2/3" if row["need"] == 0.67 else "0.6"
        saved = row.get("calls_saved", row.get("field_readings_saved"))
        differ = row.get("differ", "–")
        shown.append(f"| {row['early stop']} | {need} | {saved}% | {differ} |")
    assert (
        rows_of("benchmarks-agreement.md", "| what must stay the same | `need` | saved | runs that differ |") == shown
    )


def test_the_page_quotes_the_measured_agreement_of_one_small_model() -> None:
    quoted = (
        "3 samples, all agree",
        "3 wordings, all agree",
        "3 wordings and field by field, all agree",
        "3 wordings and field by field with evidence, all agree",
    )
    shown = [
        f"| {row['documents']} | {row['readings']} | {100 * row['coverage']:.1f}% | {100 * row['right']:.1f}% |"
        for row in printed("agreement_live.jsonl")
        if row["readings"].startswith("one reading") or row["readings"] in quoted
    ]
    assert rows_of("benchmarks-agreement.md", "| documents | readings | coverage | right |") == shown


def test_fields_on_which_all_readings_of_one_small_model_agree_are_right_nine_times_out_of_ten() -> None:
    (all_,) = [
        row
        for row in printed("agreement_live.jsonl")
        if (row["documents"], row["readings"]) == ("all", "3 wordings and field by field, all agree")
    ]
    assert all_["right"] >= 0.9
    assert all_["coverage"] >= 0.5
