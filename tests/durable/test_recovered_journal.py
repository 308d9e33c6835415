"""The journal of a killed and recovered run equals that of an uninterrupted run, without duplicates."""

import subprocess
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from flujo_aros import Journal
from flujo_aros.telemetry.records import Story

pytest.importorskip("dbos", reason="dbos is not installed: pip install 'flujo_aros[durable]'")

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PROGRAM = (sys.executable, "-m", "tests.durable.program")


def live(folder: Path, die: str = "-") -> int:
    folder.mkdir(exist_ok=True)
    command = [*PROGRAM, f"sqlite:///{folder / 'runs.sqlite'}", str(folder / "log"), die]
    return subprocess.run(command, cwd=ROOT, capture_output=True, timeout=100, check=False).returncode


def story(folder: Path) -> Story:
    with Journal(folder / "journal.sqlite", create=False) as journal:
        (run,) = journal.runs()
        return journal.story(run.run_id)


NEVER_THE_SAME = {"id", "run_id", "step_id", "parent_id", "reading_id", "started", "at", "seconds"}


def plain(record: Any) -> Any:
    """Return a record of the journal and its parts, without the fields that differ from run to run."""
    if is_dataclass(record):
        named = ((each.name, getattr(record, each.name)) for each in fields(record))
        return (type(record).__name__, *((name, plain(value)) for name, value in named if name not in NEVER_THE_SAME))
    return [plain(each) for each in record] if isinstance(record, (list, tuple)) else record


def without_ids_and_times(story: Story) -> list[object]:
    names = {chapter.step.id: chapter.name for chapter in story.chapters if chapter.step}
    parents = [names.get(chapter.step.parent_id) for chapter in story.chapters if chapter.step]
    return [story.run.status, plain(story.run.usage), parents, *map(plain, story.chapters)]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    folder = tmp_path_factory.mktemp("unbroken")
    assert live(folder) == 0
    return without_ids_and_times(story(folder))


@pytest.mark.parametrize("deaths", [["first"], ["repair", "after"], ["in", "fan"]])
def test_the_journal_of_a_killed_run_equals_that_of_an_unbroken_one(
    tmp_path: Path, unbroken: list[object], deaths: list[str]
) -> None:
    for die in deaths:
        assert live(tmp_path, die) == -9
    assert live(tmp_path) == 0
    assert without_ids_and_times(story(tmp_path)) == unbroken


def test_a_killed_run_is_lost_in_the_journal_until_it_is_taken_up(tmp_path: Path) -> None:
    assert live(tmp_path, "repair") == -9
    assert story(tmp_path).run.status == "lost"
    assert live(tmp_path) == 0
    assert story(tmp_path).run.status == "completed"
