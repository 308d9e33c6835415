"""In a long-running process, the memory of observers does not grow with the number of runs."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc

import pytest

from flujo_aros import Call, Journal, Runner
from flujo_aros.events import AgentStarted, RunStarted
from flujo_aros.telemetry.masking import Mask

from .conftest import Emitted

RUNS = 300


def traced_growth(before: tracemalloc.Snapshot) -> int:
    gc.collect()
    ours = [tracemalloc.Filter(inclusive=True, filename_pattern="*flujo_aros*")]
    after = tracemalloc.take_snapshot().filter_traces(ours)
    return sum(change.size_diff for change in after.compare_to(before.filter_traces(ours), "filename"))


@pytest.mark.slow
def test_no_run_is_held_on_to_once_it_has_ended(journal: Journal, emitted: Emitted) -> None:
    runner = Runner(Call("count", function=len), observers=[journal, emitted.observer()])

    async def many() -> set[str]:
        return {(await runner.run("four", {"api_token": f"token-of-run-{number}"})).run_id for number in range(RUNS)}

    ended = asyncio.run(many())
    assert journal.flush(60)
    gc.collect()
    begun = [each for each in gc.get_objects() if isinstance(each, (RunStarted, AgentStarted))]
    assert [each for each in begun if each.run_id in ended] == []


@pytest.mark.slow
def test_a_mask_that_learns_new_secrets_in_every_run_does_not_grow() -> None:
    mask = Mask()

    def run(number: int) -> None:
        secret = f"token-{number:09}"
        mask.hear(RunStarted(run_id=str(number), pipeline="p", secrets=(secret,)))
        assert secret not in mask(f"step {number} with {secret}")

    for number in range(600):  # as many as it remembers, and more
        run(number)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.take_snapshot()
        for number in range(600, 600 + RUNS):
            run(number)
        assert traced_growth(before) < 100 * RUNS
    finally:
        tracemalloc.stop()
