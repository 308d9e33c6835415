"""The figures in the documentation equal the output of the scripts."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = ("crashes", "fleet", "soak", "overhead")


def printed(script: str) -> list[str]:
    return (ROOT / "benchmarks" / f"{script}.jsonl").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_page_quotes_only_the_output_of_a_script(script: str) -> None:
    page = (ROOT / "docs" / "benchmarks-durable.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    assert [block.splitlines() for block in blocks][SCRIPTS.index(script)] == printed(script)


def test_no_kill_lost_anything_or_caused_a_false_completed() -> None:
    for line in printed("crashes"):
        reported = json.loads(line)
        broken = (
            "lost",
            "falsely_completed",
            "recorded_twice",
            "illegal_journals",
            "journals_that_differ",
            "text_wrong",
        )
        assert [reported[name] for name in broken] == [0] * len(broken)
        assert reported["bodies_run_again"] <= reported["bodies_in_flight_at_deaths"]


def test_every_run_of_the_fleet_has_ended_and_none_is_wrong() -> None:
    for line in printed("fleet"):
        reported = json.loads(line)
        broken = ("unfinished", "wrong", "completed_wrongly", "recorded_twice", "illegal_journals")
        assert [reported[name] for name in broken] == [0] * len(broken)


def test_half_an_hour_at_full_speed_leaks_nothing() -> None:
    (line,) = printed("soak")
    reported = json.loads(line)
    assert reported["minutes"] >= 30
    broken = ("unfinished", "wrong", "completed_wrongly", "recorded_twice", "illegal_journals")
    assert [reported[name] for name in broken] == [0] * len(broken)
    for name in ("megabytes", "threads", "open_files"):
        early, late = reported[f"{name}_second_and_last_fifth"]
        assert late < early * 1.1
