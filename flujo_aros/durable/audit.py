"""Verifies the invariants of a run from its rows, for `aros check`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from flujo_aros.durable.handle import ENDED, result_of
from flujo_aros.durable.store import RunRow, StepRow, Store, workflow_of
from flujo_aros.pipeline.results import run_status


def violations(store: Store, run_id: str) -> list[str]:
    """Return the invariants that the rows of a run violate, one sentence each, or an empty list if there are no
    violations.
    """
    row = store.run(run_id)
    segments = [workflow_of(row.run_id, number) for number in range(1, row.segment + 1)]
    offsets = [text.seq for text in store.texts(row.run_id)]
    return broken_laws(row, store.steps(row.run_id), offsets, store.calls(segments)[0])


def broken_laws(row: RunRow, steps: Sequence[StepRow], offsets: Iterable[int], calls: Iterable[str]) -> list[str]:
    """Return the same as `violations` for rows that are already loaded: the run, its steps, the offsets of its texts,
    the keys of its calls.

    Every step that started has settled once, a completed run has no unsuccessful step, every nested step is inside a
    step that started, no two events have the same offset, and every recorded call belongs to a step.
    """
    names = {step.name for step in steps}
    found: list[str] = []
    if row.status in ENDED:
        found += [f"step {step.name!r} started and never settled" for step in steps if step.status is None]
    if row.status in ENDED and row.ended is None:
        found.append(f"the run is {row.status} but has no time at which it ended")
    tops = {step.name.partition("/")[0] for step in steps if "/" not in step.name}
    found += [
        f"step {step.name!r} is inside a step that never started"
        for step in steps
        if step.name.partition("/")[0] not in tops
    ]
    taken = Counter([step.seq for step in steps] + [s.settled_seq for s in steps if s.settled_seq is not None])
    taken.update(offsets)
    found += [f"{count} events have the offset {at}" for at, count in taken.items() if count > 1]
    ended = result_of(row, steps, None) if row.status in ENDED else None
    if ended is not None and row.status == "completed" and run_status(ended.steps).value != "completed":
        wrong = [step.name for step in ended.steps if step.counts_against]
        found.append(f"the run is completed although these steps did not succeed: {', '.join(wrong)}")
    for key in calls:
        step_name = key.removeprefix("aros:").partition("#")[0]
        if step_name not in names:
            found.append(f"a call of step {step_name!r} is recorded, but no such step started")
    return found
