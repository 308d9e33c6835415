"""Random pipelines with a faulty provider satisfy the invariants; the page quotes the script's output."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.scenarios import scenario, sweep
from flujo_aros.durable.store import Store

ROOT = Path(__file__).parents[2]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(f"sqlite:///{tmp_path / 'runs.sqlite'}")) as opened:
        yield opened


def test_a_hundred_scenarios_satisfy_the_invariants(store: Store) -> None:
    found = sweep(range(1_000_000, 1_000_100), float("inf"), store, repeat_every=10)
    assert found["broken"] == {}
    assert found["scenarios"] == 100
    assert found["faults"] > 0


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_thousands_of_scenarios_satisfy_the_invariants(store: Store) -> None:
    found = sweep(range(2_000_000, 2_003_000), float("inf"), store)
    assert found["broken"] == {}


def test_a_run_that_ends_with_an_open_step_violates_an_invariant(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Store, "_settled", lambda *_: None)
    wrong = [each for seed in range(5) for each in scenario(seed, store).wrong]
    assert any("started and never settled" in each for each in wrong)


def printed() -> str:
    return (ROOT / "benchmarks" / "scenarios.jsonl").read_text(encoding="utf-8")


def test_the_page_quotes_only_the_output_of_the_script() -> None:
    page = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    assert page.partition("```json\n")[2].partition("```")[0] == printed()


def test_no_scenario_violated_an_invariant() -> None:
    assert json.loads(printed())["broken"] == 0
