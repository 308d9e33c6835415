"""Every failure in every output mode, shape and way to run is recovered or reported, with the fewest calls."""

import sys

import pytest

from .matrix import FAILURES, MODES, WAYS, Count, shapes, try_cell

ALL = Count()
EVERY_MODE = (*MODES, "text")
CELLS = [
    pytest.param(
        mode,
        failure,
        half,
        id=f"{mode}-{failure.name}-{half}",
        marks=[] if (row + column) % 4 == 0 and half == row // 4 % 2 else [pytest.mark.slow],
    )
    for row, failure in enumerate(FAILURES)
    for column, mode in enumerate(EVERY_MODE)
    for half in (0, 1)
]
"""Every failure in every mode, by halves of the shapes; the quick tests run each failure in one mode and half."""


@pytest.fixture(scope="module", autouse=True)
def printed_count(request):
    """Print the totals of the matrix at the end."""
    yield
    with request.config.pluginmanager.get_plugin("capturemanager").global_and_fixture_disabled():
        sys.stdout.write(f"\nthe matrix: {ALL}\n")


@pytest.mark.parametrize(("mode", "failure", "half"), CELLS)
def test_every_way_to_run_recovers_or_says_why_not(mode, failure, half):
    here = Count()
    for shape in shapes(mode)[half::2]:
        for way in WAYS:
            cell = try_cell(mode, shape, failure, way)
            here.add(cell)
            ALL.add(cell)
    assert not [f"{c.name}: {c.got!r} in {c.calls} calls, wanted {c.expected!r}" for c in here.wrong]


@pytest.mark.parametrize("mode", EVERY_MODE)
def test_a_valid_reply_is_the_same_as_without_aros(mode):
    (none,) = (failure for failure in FAILURES if failure.name == "none")
    for shape in shapes(mode):
        for way in WAYS:
            bare, repaired = (try_cell(mode, shape, none, way, capabilities) for capabilities in ([], None))
            assert (bare.got, bare.calls) == (repaired.got, repaired.calls), repaired.name
