"""`aros check`: whether what is kept of a run obeys the laws, found from its rows alone."""

from __future__ import annotations

from collections import Counter

from flujo_aros.durable.handle import ENDED, result_of
from flujo_aros.durable.store import Store, workflow_of
from flujo_aros.pipeline.results import run_status


def violations(store: Store, run_id: str) -> list[str]:
    """What is against the laws in the rows of a run, one sentence each; nothing for a run that is as it must be.

    Every step that started has settled once, a completed run has no step that counts against it, every nested step
    stands inside one that started, events have offsets of their own, and every recorded call belongs to a step.
    """
    row = store.run(run_id)
    steps = store.steps(row.run_id)
    names = {step.name for step in steps}
    found: list[str] = []
    if row.status in ENDED:
        found += [f"step {step.name!r} started and never settled" for step in steps if step.status is None]
    if row.status in ENDED and row.ended is None:
        found.append(f"the run is {row.status}, and has no time at which it ended")
    tops = {step.name.partition("/")[0] for step in steps if "/" not in step.name}
    found += [
        f"step {step.name!r} stands inside a step that never started"
        for step in steps
        if step.name.partition("/")[0] not in tops
    ]
    offsets = Counter([step.seq for step in steps] + [s.settled_seq for s in steps if s.settled_seq is not None])
    offsets.update(text.seq for text in store.texts(row.run_id))
    found += [f"{count} events have the offset {at}" for at, count in offsets.items() if count > 1]
    ended = result_of(row, steps, None) if row.status in ENDED else None
    if ended is not None and row.status == "completed" and run_status(ended.steps).value != "completed":
        wrong = [step.name for step in ended.steps if step.counts_against]
        found.append(f"the run is completed, and these steps did not do what they promised: {', '.join(wrong)}")
    segments = [workflow_of(row.run_id, number) for number in range(1, row.segment + 1)]
    for key in store.calls(segments)[0]:
        step_name = key.removeprefix("aros:").partition("#")[0]
        if step_name not in names:
            found.append(f"a call of step {step_name!r} is recorded, and no such step started")
    return found
