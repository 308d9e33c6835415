"""Loops and imports: values, names, context, failures."""

from __future__ import annotations

from typing import Any

import pytest

from flujo_aros import Call, Import, Loop, OutputMapping, Pipeline, RunStatus, StateUpdate, UsageError

from .kinds_lab import call, const, fail, names, run

# Loop


def test_a_loop_ends_when_its_exit_condition_holds():
    result = run(Loop("grow", call("twice", lambda x: x + x), exit="len(previous_step) > 10"), "abc")
    assert result.output == "abc" * 4
    assert names(result) == ["grow", "grow/1", "grow/1/twice", "grow/2", "grow/2/twice"]


def test_a_loop_that_never_meets_its_condition_fails_with_advice():
    grow = Loop("grow", call("twice"), exit="previous_step == 'x'", max_loops=2)
    assert run(grow).error == {
        "step": "grow",
        "reason": None,
        "message": "exit \"previous_step == 'x'\" was never true in 2 iterations; raise max_loops, "
        "or set on_max_loops: accept",
    }
    accepting = Loop("grow", call("twice"), exit="previous_step == 'x'", max_loops=2, on_max_loops="accept")
    assert run(accepting).output == "four"


def test_a_loop_without_a_condition_runs_exactly_max_loops_times():
    assert run(Loop("grow", call("twice", lambda x: x + "!"), max_loops=3), "a").output == "a!!!"


def test_a_completion_signal_ends_a_loop():
    replies = iter(["working", "done\n<promise>COMPLETE</promise>", "never"])
    loop = Loop("work", call("w", lambda _: next(replies)), completion_signal="<promise>COMPLETE</promise>")
    assert run(loop).output.startswith("done")


def test_iterations_share_the_context_and_only_a_loop_that_ends_well_writes_it():
    count = Call("count", function=lambda n: n + 1, input="{{ context.n }}", sink_to="n")
    assert run(Loop("l", count, exit="context.n >= 3"), context={"n": 0}).context == {"n": 3}
    assert run(Loop("l", count, exit="context.n >= 30"), context={"n": 0}).context == {"n": 0}


def test_state_next_input_output_and_mappers_of_a_loop():
    loop = Loop(
        "l",
        call("w", lambda x: f"{x}."),
        max_loops=2,
        state=(StateUpdate(target="context.seen", append=True), StateUpdate(target="last", value="{{ index }}")),
        next_input="{{ previous_step }}{{ context.last }}",
        output={"text": "{{ previous_step }}", "all": "{{ context.seen }}", "turns": "{{ iteration }}"},
        initial_input_mapper=lambda value, context: value.upper(),
        loop_output_mapper=lambda value, context: {**value, "mapped": True},
    )
    result = run(loop, "a")
    assert result.output == {"text": "A.0.", "all": ["A.", "A.0."], "turns": 2, "mapped": True}
    assert result.context == {"seen": ["A.", "A.0."], "last": 1}


@pytest.mark.parametrize("key", ["exit", "next_input", "output"])
def test_expressions_evaluated_after_a_loop_body_may_only_refer_to_its_steps(key: str):
    source = {
        "exit": "steps.{}.output",
        "next_input": "{{{{ steps.{}.output }}}}",
        "output": "{{{{ steps.{}.output }}}}",
    }
    assert Pipeline([call("before"), Loop("l", call("turn"), **{key: source[key].format("turn")})])
    assert Pipeline([call("before"), Loop("l", call("turn"), **{key: source[key].format("before")})])
    with pytest.raises(UsageError) as caught:
        Pipeline([call("before"), Loop("l", call("turn"), **{key: source[key].format("trun")})])
    assert str(caught.value) == f"{key} of step 'l': there is no step 'trun'; did you mean 'turn'?"


def test_a_failing_iteration_fails_the_loop():
    result = run(Loop("l", call("bad", fail), max_loops=3))
    assert (result.error or {})["step"] == "l/1/bad"


# Import


CHILD = Pipeline(
    [Call("up", function=str.upper), Call("keep", function=lambda x: {"v": x}, updates_context=True)], name="child"
)


def test_an_import_has_its_own_context_and_copies_back_named_outputs():
    step = Import("sub", CHILD, outputs=[OutputMapping("v", "result.v"), OutputMapping("output.v", "again")])
    result = run(step, context={"mine": 1})
    assert (result.output, result.context) == ({"v": "FOUR"}, {"mine": 1, "result": {"v": "FOUR"}, "again": "FOUR"})
    assert names(result) == ["sub", "sub/up", "sub/keep"]
    assert run(Import("sub", CHILD), context={"mine": 1}).context == {"mine": 1}
    assert run(Import("sub", CHILD, updates_context=True)).context == {"v": "FOUR"}


def test_an_output_that_is_not_there_is_a_sentence():
    result = run(Import("sub", CHILD, outputs={"w": "x"}))
    assert result.step("sub").error == "outputs of step 'sub': there is no 'w' in the context; known: v"


def test_an_import_sees_the_context_only_where_it_inherits_it():
    child = Pipeline([Call("see", function=sorted, input="{{ context }}")])
    assert run(Import("s", child), context={"a": 1}).output == ["initial_prompt"]
    assert run(Import("s", child, inherit_context=True), context={"a": 1}).output == ["a", "initial_prompt"]


def test_input_to_import_artifacts_puts_the_members_there():
    child = Pipeline([Call("see", function=lambda x: x, input="{{ context.import_artifacts }}")])
    step = const("make", {"a": 1}) >> Import("s", child, input_to="both")
    assert run(step, context={"import_artifacts": {"b": 2}}).output == {"a": 1, "b": 2}
    assert "needs a mapping" in str(run(Import("s", child, input_to="import_artifacts")).steps[0].error)


@pytest.mark.parametrize(
    ("options", "value"),
    [({"on_failure": "skip"}, "four"), ({"on_failure": "continue_with_default", "default": {"n": 0}}, {"n": 0})],
)
def test_a_failed_import_may_be_tolerated(options: dict[str, Any], value: Any):
    result = run(Import("sub", Pipeline([call("bad", fail)]), **options) >> call("after"))
    assert (result.status, result.output, result.steps[0].trust) == (RunStatus.COMPLETED, value, "synthesized")
    assert result.step("sub/bad").excused_by == "sub"
    assert run(Import("sub", Pipeline([call("bad", fail)]))).status is RunStatus.FAILED
