"""A small fleet on PostgreSQL whose workers are killed: every run ends correctly. See `benchmarks/fleet.py`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.postgres import program

pytest.importorskip("dbos", reason="dbos is not installed: pip install 'flujo_aros[durable]'")

pytestmark = pytest.mark.slow


@pytest.mark.skipif(program("initdb") is None, reason="PostgreSQL is not installed")
def test_every_run_of_a_fleet_ends_whatever_happens_to_its_workers_and_its_database() -> None:
    command = [sys.executable, "-m", "benchmarks.fleet", "--runs", "120", "--kill-every", "0.7", "--concurrency", "2"]
    ended = subprocess.run(
        command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=600, check=False
    )
    assert ended.returncode == 0, ended.stderr + ended.stdout
    figures = json.loads(ended.stdout)
    assert figures["killed"] > 0
    assert figures["most_takeovers"] <= 3
