"""Each step reports the lowest trust of its inputs, and the run that of its output."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from flujo_aros import (
    Accepted,
    Branch,
    Cached,
    Call,
    Degraded,
    Human,
    Import,
    Loop,
    Map,
    Parallel,
    PausedRun,
    Pipeline,
    Reason,
    Rejected,
    Runner,
    RunStatus,
    StateUpdate,
    Trust,
)

CLEAN, LOSSY, DEGRADED = Trust.CLEAN, Trust.LOSSY, Trust.DEGRADED


def worth(trust: Trust, value: Any = "v") -> Any:
    """Return a function that returns a value of this trust."""
    if trust is DEGRADED:
        return lambda _: Degraded("text", Rejected(Reason.INVALID, (), "text"))
    return lambda _: Accepted(value, trust, "first", (), "")


def same(value: Any) -> Any:
    return value


def trusts(*steps: Any, given: Any = "x", context: Any = None) -> dict[str, Trust | None]:
    run = Runner(Pipeline(steps)).run_sync(given, context)
    return {step.name: step.input_trust for step in run.steps}


LOW = Call("low", worth(LOSSY, {"k": [1, 2]}))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ previous_step }}", LOSSY),
        ("{{ previous_step.k }}", LOSSY),
        ("{{ steps.low.output.k }}", LOSSY),
        ("{{ input }}", CLEAN),
        ("nothing", CLEAN),
        ({"a": ["{{ steps.low.output }}"]}, LOSSY),
    ],
)
def test_the_key_depends_on_the_values_that_a_template_reads(source: Any, expected: Trust) -> None:
    assert trusts(LOW, Call("next", same, input=source))["next"] is expected


def test_trust_travels_over_any_distance_and_is_the_lowest() -> None:
    made = trusts(LOW, Call("b", same), Call("c", same), Call("d", worth(CLEAN), input="x"), Call("e", same))
    assert [made[name] for name in "bcde"] == [LOSSY, LOSSY, CLEAN, CLEAN]
    both = {"a": "{{ steps.low.output }}", "b": "{{ steps.text.output }}"}
    assert trusts(LOW, Call("text", worth(DEGRADED)), Call("e", same, input=both))["e"] is DEGRADED


def test_values_written_to_the_context_keep_their_trust() -> None:
    kept = Call("low", worth(LOSSY), sink_to="a.b")
    reads = [Call("whole", same, input="{{ context.a }}"), Call("part", same, input="{{ context.a.b }}")]
    other = Call("other", same, input="{{ context.c }}")
    over = Call("over", worth(CLEAN), input="x", sink_to="a")
    made = trusts(kept, *reads, other, over, Call("again", same, input="{{ context.a }}"), context={"c": 1})
    assert [made[name] for name in ("whole", "part", "other", "again")] == [LOSSY, LOSSY, CLEAN, CLEAN]


@pytest.mark.parametrize(
    "around",
    [
        Parallel("s", {"a": Call("i", same), "b": Call("j", same)}),
        Branch("s", {"true": Call("i", same)}, condition="True"),
        Map("s", Call("i", same), iterable_input="previous_step.k"),
        Loop("s", Call("i", same), max_loops=2),
        Import("s", Pipeline([Call("i", same)])),
        Cached("s", Call("i", same)),
    ],
    ids=lambda step: step.kind,
)
def test_every_kind_passes_the_trust_of_its_input_to_nested_and_later_steps(around: Any) -> None:
    made = trusts(LOW, around, Call("next", same))
    inner = [trust for name, trust in made.items() if name.startswith("s/")]
    assert inner
    assert {made["s"], made["next"], *inner} == {LOSSY}


@pytest.mark.parametrize(
    "around",
    [
        Parallel("s", {"a": Call("i", worth(LOSSY)), "b": Call("j", same)}),
        Branch("s", {"true": Call("i", worth(LOSSY))}, condition="True"),
        Map("s", Call("i", worth(LOSSY)), iterable_input="input"),
        Loop("s", Call("i", worth(LOSSY)), max_loops=2),
        Import("s", Pipeline([Call("i", worth(LOSSY)), Call("j", same)])),
        Cached("s", Call("i", worth(LOSSY))),
    ],
    ids=lambda step: step.kind,
)
def test_trust_set_inside_a_step_is_visible_outside(around: Any) -> None:
    made = trusts(around, Call("next", same), given=["x"])
    assert made["next"] is LOSSY
    assert made.get("s/b/j", CLEAN) is CLEAN  # the branches of a parallel step know nothing of each other


def test_an_iteration_is_made_from_the_one_before_it() -> None:
    made = trusts(Loop("s", Call("i", worth(LOSSY)), max_loops=2))
    assert (made["s/1/i"], made["s/2/i"]) == (CLEAN, LOSSY)


def test_the_state_of_a_loop_keeps_its_trust() -> None:
    kept = StateUpdate(target="context.notes", append=True)
    body = Call("i", worth(LOSSY), input="{{ context.notes | default([]) }}")
    made = trusts(Loop("s", body, max_loops=2, state=(kept,)), Call("next", same, input="{{ context.notes }}"))
    assert (made["s/1/i"], made["s/2/i"], made["next"]) == (CLEAN, LOSSY, LOSSY)


def test_a_value_from_the_cache_is_made_from_the_input_of_this_time() -> None:
    cached = Cached("s", Call("i", lambda value: "same", input="{{ previous_step.k }}"))
    runner = Runner(Pipeline([LOW, cached]))
    first, second = runner.run_sync("x"), runner.run_sync("x")
    assert second.step("s").outcome.origin == "cache"  # type: ignore[union-attr]  # it was accepted
    assert first.step("s").input_trust is second.step("s").input_trust is LOSSY


def test_a_fallback_uses_its_own_inputs() -> None:
    def fail(value: Any) -> Any:
        raise ValueError(value)

    instead = Call("b", worth(CLEAN), input="x")
    assert trusts(LOW, Call("a", fail, fallback=instead))["a"] is CLEAN


def test_a_branch_whose_step_failed_has_the_input_trust_of_that_step() -> None:
    branch = Branch("route", {"yes": Call("end", len, input="{{ steps.low.output.k.0 }}")}, condition="'yes'")
    found = trusts(LOW, branch)
    assert (found["route/yes"], found["route/yes/end"]) == (LOSSY, LOSSY)


def test_the_answer_of_a_person_is_his_own() -> None:
    pipeline = Pipeline([LOW, Human("ask", "Is {{ previous_step }} right?"), Call("next", same)])
    run = Runner(pipeline).run_sync("x")
    assert run.paused is not None
    saved = PausedRun.from_dict(run.paused.to_dict())
    result = asyncio.run(Runner(pipeline).resume(saved, "yes"))
    assert [step.input_trust for step in result.steps] == [CLEAN, LOSSY, CLEAN]
    assert result.trust is CLEAN


def test_the_trust_of_a_run_survives_a_pause() -> None:
    pipeline = Pipeline([LOW, Human("ask", "Go on?"), Call("next", same, input="{{ steps.low.output }}")])
    run = Runner(pipeline).run_sync("x")
    assert run.paused is not None
    assert run.trust is None
    result = asyncio.run(Runner(pipeline).resume(PausedRun.from_dict(run.paused.to_dict()), "yes"))
    assert (result.step("next").input_trust, result.trust) == (LOSSY, LOSSY)


@pytest.mark.parametrize(("accepts", "status"), [(None, RunStatus.DEGRADED), ("accept", RunStatus.COMPLETED)])
def test_a_run_that_used_a_degraded_text_reports_that_whatever_its_status(accepts: Any, status: RunStatus) -> None:
    run = Runner(Pipeline([Call("a", worth(DEGRADED), on_degraded=accepts), Call("b", same)])).run_sync("x")
    assert (run.status, run.trust, run.step("b").trust) == (status, DEGRADED, "clean")
    reported = run.to_dict()
    assert (reported["trust"], reported["steps"][1]["trust"], reported["steps"][1]["input_trust"]) == (
        "degraded",
        "clean",
        "degraded",
    )


def test_a_failed_run_has_no_trust_and_a_skipped_step_no_input() -> None:
    def fail(value: Any) -> Any:
        raise ValueError(value)

    run = Runner(Pipeline([Call("a", fail), Call("b", same)])).run_sync("x")
    assert (run.trust, run.step("a").input_trust, run.step("b").input_trust) == (None, CLEAN, None)
