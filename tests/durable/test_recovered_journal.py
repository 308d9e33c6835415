"""The journal of a run that was killed and recovered holds what that of an unbroken run holds, and nothing twice."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from flujo_aros.telemetry.journal import Journal
from flujo_aros.telemetry.records import Chapter, Story

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


def without_ids_and_times(story: Story) -> list[object]:
    names = {chapter.step.id: chapter.name for chapter in story.chapters if chapter.step}

    def plain(chapter: Chapter) -> object:
        assert chapter.step is not None
        step = replace(chapter.step, id=0, parent_id=0, started=0.0, seconds=None)
        asks = [replace(ask, id=0, step_id=0, started=0.0, seconds=None) for ask in chapter.asks]
        readings = [replace(reading, id=0, step_id=0, at=0.0) for reading in chapter.readings]
        stages = [replace(stage, id=0, step_id=0, started=0.0, seconds=None) for stage in chapter.stages]
        return names.get(chapter.step.parent_id), step, asks, readings, stages

    return [story.run.status, story.run.usage, *map(plain, story.chapters)]


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
