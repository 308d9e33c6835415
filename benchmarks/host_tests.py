"""pydantic-ai's own tests, without and with `Aros` on every agent: `python benchmarks/host_tests.py FOLDER [TEST...]`.

FOLDER is a checkout of pydantic-ai, or an sdist of it that holds its tests; each TEST a file or folder in it, by
default those of outputs and streams. They run twice, as they are and with `Aros(ladder=Ladder(stages=()))` on every
agent, and what passes alone but not with `Aros` is named. A test that fails alone says nothing and is left out.

`--blocking` lets BlockBuster watch both runs: a call that blocks the event loop raises. Needs what those tests
need (`pip install inline-snapshot dirty-equals pytest-mock pytest-recording`) and, for `--blocking`, `blockbuster`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Generator
from functools import wraps
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

TESTS = (
    "tests/test_agent.py",
    "tests/test_streaming.py",
    "tests/test_tools.py",
    "tests/test_toolsets.py",
    "tests/test_usage_limits.py",
    "tests/test_history_processor.py",
    "tests/test_exceptions.py",
    "tests/test_direct.py",
    "tests/models/test_model_function.py",
    "tests/models/test_model_test.py",
    "tests/models/test_fallback.py",
)
WITH, BLOCKING = "HOST_TESTS_WITH_AROS", "HOST_TESTS_BLOCKING"


def main() -> int:
    """Run the tests twice and print the differences; exit with 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("tests", nargs="*", help="files or folders in it")
    parser.add_argument("--blocking", action="store_true", help="let BlockBuster watch the event loop")
    asked = parser.parse_args()
    folder = asked.folder.resolve()
    tests = asked.tests or [test for test in TESTS if (folder / test).exists()]
    if not tests:
        parser.error(f"{folder} holds no tests of pydantic-ai; name them")
    alone = ran(folder, tests, blocking=asked.blocking)
    with_aros = ran(folder, tests, aros=True, blocking=asked.blocking)
    passed = [name for name, why in alone.items() if not why]
    differ = {name: with_aros.get(name, "did not run") for name in passed if with_aros.get(name, "did not run")}
    print(f"{len(passed)} of {len(alone)} pass alone; of these {len(passed) - len(differ)} with Aros")
    for why, count in Counter(differ.values()).most_common():
        print(f"\n{count} × {why}")
        print("\n".join(f"    {name}" for name, reported in differ.items() if reported == why))
    return 1 if differ else 0


def ran(folder: Path, tests: list[str], *, aros: bool = False, blocking: bool = False) -> dict[str, str]:
    """Return the result of each test that was not skipped: empty if it passed, else the reason in one line."""
    here = Path(__file__).resolve()
    paths = [str(here.parent), str(here.parent.parent), str(folder), os.environ.get("PYTHONPATH", "")]
    flags = {WITH: "1" * aros, BLOCKING: "1" * blocking}
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch, "report.xml")
        options = ["-q", "-p", here.stem, "-p", "no:cacheprovider", "--inline-snapshot=disable", f"--junitxml={report}"]
        subprocess.run(
            [sys.executable, "-m", "pytest", *options, *tests],
            cwd=folder,
            env={**os.environ, **flags, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
            stdout=subprocess.DEVNULL,
            check=False,
        )
        cases = ET.parse(report).getroot().iter("testcase")
        return {f"{case.get('classname')}::{case.get('name')}": _why_not(case) for case in cases if _counts(case)}


def _counts(case: ET.Element) -> bool:
    return case.find("skipped") is None


def _why_not(case: ET.Element) -> str:
    failed = case.find("failure")
    failed = case.find("error") if failed is None else failed
    if failed is None:
        return ""
    lines = (failed.get("message") or "").splitlines() or ["no message"]
    return lines[0][:160]


def pytest_configure() -> None:
    """A pytest plugin that adds `Aros` to every agent that a test creates."""
    if not os.environ.get(WITH):
        return
    from pydantic_ai import Agent

    from flujo_aros import Aros, Ladder

    made: Any = Agent.__init__

    @wraps(made)
    def with_aros(self: Agent, *args: Any, capabilities: Any = None, **options: Any) -> None:
        made(self, *args, capabilities=[*(capabilities or ()), Aros(ladder=Ladder(stages=()))], **options)

    Agent.__init__ = with_aros  # type: ignore[method-assign]


@pytest.fixture(autouse=True)
def _nothing_blocks() -> Generator[None]:
    if not os.environ.get(BLOCKING):
        yield
        return
    from blockbuster import blockbuster_ctx

    with blockbuster_ctx(scanned_modules=["flujo_aros", "pydantic_ai"]):
        yield


if __name__ == "__main__":
    raise SystemExit(main())
