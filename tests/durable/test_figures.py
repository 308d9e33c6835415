"""The figures of the documentation are those that the script has printed."""

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]


def printed() -> list[str]:
    return (ROOT / "benchmarks" / "crashes.jsonl").read_text(encoding="utf-8").splitlines()


def test_the_page_quotes_what_the_sweep_has_printed_and_nothing_else() -> None:
    page = (ROOT / "docs" / "durable.md").read_text(encoding="utf-8")
    quoted = page.partition("```json\n")[2].partition("```")[0].splitlines()
    assert quoted == printed()


def test_no_death_has_lost_anything_or_called_anything_completed_falsely() -> None:
    for line in printed():
        told = json.loads(line)
        broken = ("lost", "falsely_completed", "recorded_twice", "illegal_journals", "text_wrong")
        assert [told[name] for name in broken] == [0] * len(broken)
        assert told["bodies_run_again"] <= told["bodies_in_flight_at_deaths"]
