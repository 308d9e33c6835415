"""`aros check` reports runs whose rows violate an invariant, and no others."""

from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("dbos", reason="dbos is not installed: pip install 'flujo_aros[durable]'")

from flujo_aros.durable.handle import violations_in_rows
from flujo_aros.durable.store import RunRow, StepRow

RUN = RunRow(run_id="r", pipeline="p", version="1", request="1", status="completed", ended=9.0)
RECORD: dict[str, Any] = {"name": "a", "kind": "step", "status": "success"}


def step(name: str, seq: int, **changes: Any) -> StepRow:
    status = changes.pop("status", "success")
    row = StepRow(run_id="r", name=name, kind="step", seq=seq, settled_seq=seq + 1, settled=1.0, status=status)
    return replace(row, record={**RECORD, "name": name, "status": status}, **changes)


def under_way(name: str, seq: int) -> StepRow:
    return StepRow(run_id="r", name=name, kind="step", seq=seq)


LEGAL = (step("a", 2), step("b", 4), step("b/in", 6))


def test_a_run_that_satisfies_the_invariants_has_no_finding() -> None:
    assert violations_in_rows(RUN, LEGAL, [8, 9], ["aros:a#first 1#1", "aros:b/in#own#1"]) == []
    running = replace(RUN, status="running", ended=None)
    assert violations_in_rows(running, [under_way("a", 2)], [], []) == []


@pytest.mark.parametrize(
    ("run", "steps", "offsets", "calls", "said"),
    [
        (RUN, [*LEGAL, under_way("c", 10)], [], [], "'c' started and"),
        (replace(RUN, ended=None), LEGAL, [], [], "no end time"),
        (RUN, [*LEGAL, step("lost/in", 10)], [], [], "'lost/in' is inside a step that never started"),
        (RUN, LEGAL, [3], [], "2 events have the offset 3"),
        (RUN, [*LEGAL, step("c", 10, status="failed")], [], [], "completed although these steps did not succeed: c"),
        (RUN, LEGAL, [], ["aros:ghost#first 1#1"], "a call of step 'ghost' is recorded"),
    ],
)
def test_a_violated_invariant_is_reported(
    run: RunRow, steps: list[StepRow], offsets: list[int], calls: list[str], said: str
) -> None:
    (found,) = violations_in_rows(run, steps, offsets, calls)
    assert said in found
