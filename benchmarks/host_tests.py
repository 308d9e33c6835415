"""Run pydantic-ai's own tests without and with `Aros`: `python benchmarks/host_tests.py FOLDER [TEST...]`.

FOLDER is a checkout of pydantic-ai, or an unpacked sdist that includes its tests. Each TEST is a file or folder in it;
the default is the tests of outputs and streams. They run twice, unchanged and with `Aros(ladder=Ladder(stages=()))` on
every agent. Tests that pass unchanged but not with `Aros` are listed; tests that already fail unchanged are ignored.

With `--blocking`, BlockBuster raises an error on calls that block the event loop, in both runs. Requires the
dependencies of those tests (`pip install inline-snapshot dirty-equals pytest-mock pytest-recording`) and, for
`--blocking`, `blockbuster`.
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
    parser.add_argument("--blocking", action="store_true", help="detect calls that block the event loop")
    asked = parser.parse_args()
    folder = asked.folder.resolve()
    tests = asked.tests or [test for test in TESTS if (folder / test).exists()]
    if not tests:
        parser.error(f"{folder} contains none of the default tests; pass the tests to run")
    without = run_tests(folder, tests, blocking=asked.blocking)
    with_aros = run_tests(folder, tests, aros=True, blocking=asked.blocking)
    passed = [name for name, reason in without.items() if not reason]
    differ = {name: with_aros.get(name, "did not run") for name in passed if with_aros.get(name, "did not run")}
    print(f"{len(passed)} of {len(without)} pass without Aros; {len(passed) - len(differ)} of these pass with Aros")
    for why, count in Counter(differ.values()).most_common():
        print(f"\n{count} × {why}")
        print("\n".join(f"    {name}" for name, reported in differ.items() if reported == why))
    return 1 if differ else 0


def run_tests(folder: Path, tests: list[str], *, aros: bool = False, blocking: bool = False) -> dict[str, str]:
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
        return {f"{case.get('classname')}::{case.get('name')}": _failure(case) for case in cases if _was_run(case)}


def _was_run(case: ET.Element) -> bool:
    return case.find("skipped") is None


def _failure(case: ET.Element) -> str:
    failed = case.find("failure")
    failed = case.find("error") if failed is None else failed
    if failed is None:
        return ""
    lines = (failed.get("message") or "").splitlines() or ["no message"]
    return lines[0][:160]


def pytest_configure() -> None:
    """Add `Aros` to every agent that a test creates; this module is loaded as a pytest plugin."""
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
