"""`aros health` reports problems and what to do about them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Aros
from .journalled import fill


@pytest.fixture(autouse=True)
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "runs.sqlite")
    monkeypatch.setenv("AROS_JOURNAL", "runs.sqlite")


def test_the_report_has_totals_worst_steps_models_repairs_and_stages(aros: Aros) -> None:
    printed = aros("health").stdout
    assert printed.startswith("2 runs in the last 24h: 1 completed, 1 degraded")
    for title in (
        "Worst steps (trouble: share of runs failed or degraded)",
        "Models (shares of first replies)",
        "Most frequent repairs (share of accepted replies)",
        "Stages (success: values saved per run)",
    ):
        assert f"\n{title}\n" in printed
    assert "boats / ask" in printed


def test_json_has_the_same_as_data(aros: Aros) -> None:
    printed = json.loads(aros("health", "--format", "json", "--trend", "2").stdout)
    assert printed["totals"]["runs"] == {"completed": 1, "degraded": 1}
    assert printed["rates"]["degraded"] == pytest.approx(1 / 3, abs=1e-3)
    assert printed["stages"][0]["stage"] == "llm_repair"
    assert len(printed["trend"]) == 2
    assert printed["over"] == []


def test_a_rate_over_its_threshold_fails_for_ci(aros: Aros) -> None:
    ended = aros("health", "--fail-over", "degraded=10%", "--fail-over", "fallback=0.1")
    assert ended.exit_code == 1
    assert ended.stderr == "error: the rate of degraded is 33%, which is over 10%\n"


def test_a_rate_under_its_threshold_passes(aros: Aros) -> None:
    assert aros("health", "--fail-over", "degraded=0.5").exit_code == 0


@pytest.mark.parametrize("limit", ["degraded", "speed=1", "failed=often"])
def test_an_invalid_threshold_is_a_usage_error(aros: Aros, limit: str) -> None:
    ended = aros("health", "--fail-over", limit)
    assert ended.exit_code == 2
    assert "expected one of failed, degraded, rejected, repaired, fallback" in ended.stderr


def test_a_period_without_runs_is_reported_on_one_line(aros: Aros) -> None:
    assert aros("health", "--since", "0s").stdout == "no runs in the last 0s\n"


@pytest.mark.parametrize("width", ["60", "120"])
def test_no_line_of_the_report_is_wider_than_the_terminal(
    aros: Aros, monkeypatch: pytest.MonkeyPatch, width: str
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    tables = aros("health", "--trend", "3").stdout.partition("Worst steps")[2]
    assert max(map(len, tables.splitlines())) <= int(width)
