"""The kinds of steps with nested steps: values, names, context, failures."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from pydantic_ai.exceptions import UsageLimitExceeded

from flujo_aros import (
    Branch,
    Call,
    Degraded,
    Import,
    Loop,
    Map,
    OutputError,
    Parallel,
    Pipeline,
    Reason,
    Rejected,
    Runner,
    RunStatus,
    StepStatus,
    Trust,
    UsageError,
)

from .kinds_lab import call, const, fail, forever, names, run, slow

DEGRADED = Degraded("words", Rejected(Reason.NO_JSON, (), "words"))


# Parallel


def test_branches_get_the_same_input_and_give_one_mapping():
    result = run(call("say") >> Parallel("fan", {"size": call("len", len), "loud": [call("up", str.upper), call("x")]}))
    assert result.output == {"size": 4, "loud": "FOUR"}
    assert sorted(names(result)) == [
        "fan",
        "fan/loud",
        "fan/loud/up",
        "fan/loud/x",
        "fan/size",
        "fan/size/len",
        "say",
    ]
    assert result.step("fan/loud/up").value == "FOUR"


def test_branches_run_at_the_same_time():
    met = asyncio.Event()

    async def wait(_: Any) -> str:
        await met.wait()
        return "waited"

    async def meet(_: Any) -> str:
        met.set()
        return "met"

    assert run(Parallel("fan", {"a": call("w", wait), "b": call("m", meet)})).output == {"a": "waited", "b": "met"}


def test_a_failing_branch_cancels_the_others_and_is_named():
    result = run(Parallel("fan", {"a": call("wait", forever), "b": call("bad", fail)}))
    assert result.status is RunStatus.FAILED
    assert result.error == {"step": "fan/b/bad", "reason": None, "message": "LookupError: nothing about four"}
    assert result.step("fan").error == ("branch 'b' failed: step 'fan/b/bad' failed: LookupError: nothing about four")
    assert (result.step("fan").caused_by, result.step("fan/a/wait").status) == ("fan/b/bad", StepStatus.CANCELLED)
    with pytest.raises(OutputError) as caught:
        result.raise_for_status()
    assert isinstance(caught.value.__cause__, LookupError)


def test_an_ignored_branch_has_no_value_and_does_not_count():
    fan = Parallel("fan", {"a": call("ok", len), "b": call("bad", fail)}, on_branch_failure="ignore")
    result = run(fan >> call("after"))
    assert (result.status, result.output) == (RunStatus.COMPLETED, {"a": 4})
    bad = result.step("fan/b/bad")
    assert (bad.status, bad.excused_by) == (StepStatus.FAILED, "fan")


def test_an_exhausted_budget_fails_the_step_even_if_failures_are_ignored_and_the_others_finish():
    def spent(_: Any) -> None:
        raise UsageLimitExceeded("the limit of 3 requests")

    fan = Parallel("fan", {"a": call("ok", len), "b": call("dear", spent)}, on_branch_failure="ignore")
    result = run(fan, "four")
    assert result.status is RunStatus.FAILED
    assert {step.name: step.status.value for step in result.steps} == {
        "fan": "failed",
        "fan/a": "success",
        "fan/a/ok": "success",
        "fan/b": "failed",
        "fan/b/dear": "failed",
    }


def test_concat_of_other_values_names_what_each_branch_returned():
    error = run(Parallel("fan", {"a": call("x", lambda _: "x"), "b": call("y", lambda _: {})}, reduce="concat")).error
    assert error is not None
    assert error["message"].endswith("'a' returned a string, 'b' returned an object")


def test_a_step_fails_if_all_its_branches_fail_even_if_failures_are_ignored():
    fan = Parallel("fan", {"a": call("x", fail), "b": call("y", fail)}, on_branch_failure="ignore")
    assert run(fan).status is RunStatus.FAILED


@pytest.mark.parametrize(
    ("how", "given", "value"),
    [
        ("keys", {"a": 1, "b": 2}, ["a", "b"]),
        ("values", {"a": 1, "b": 2}, [1, 2]),
        ("union", {"a": {"x": 1}, "b": {"y": 2, "x": 1}}, {"x": 1, "y": 2}),
        ("concat", {"a": [1], "b": [2]}, [1, 2]),
        ("concat", {"a": "x", "b": "y"}, "xy"),
        ("first", {"a": 1, "b": 2}, 1),
        ("last", {"a": 1, "b": 2}, 2),
        ("majority_vote", {"a": 1, "b": 2, "c": 2}, 2),
        ("majority_vote", {"a": 1}, 1),
        (lambda values: sum(values.values()), {"a": 1, "b": 2}, 3),
        ("builtins:sorted", {"b": 1, "a": 2}, ["a", "b"]),
    ],
)
def test_branches_reduce_to_one_value(how: Any, given: dict[str, Any], value: Any):
    fan = Parallel("fan", {name: const("c", each) for name, each in given.items()}, reduce=how)
    assert run(fan).output == value


@pytest.mark.parametrize(
    ("votes", "tie"),
    [
        (("approve", "deny"), '"approve" (a); "deny" (b)'),
        ((1, 2, 3), "1 (a); 2 (b); 3 (c)"),
        (("x", "y", "z", "y", "x"), '"x" (a, e); "y" (b, d)'),
    ],
)
def test_a_tie_of_the_votes_fails_the_step_and_names_the_values(votes: tuple[Any, ...], tie: str):
    branches = {name: const("c", vote) for name, vote in zip("abcde", votes, strict=False)}
    result = run(Parallel("fan", branches, reduce="majority_vote"))
    assert result.status is RunStatus.FAILED
    assert f"majority_vote found a tie: {tie}; " in str(result.step("fan").error)


def test_a_union_of_contradictions_names_both_branches_and_the_key():
    fan = Parallel("fan", {"a": const("c", {"x": 1}), "b": const("c", {"x": 2})}, reduce="union")
    message = run(fan).step("fan").error
    assert message is not None
    assert message.startswith("'a' and 'b' write different values to context.x")


def test_the_trust_of_a_compound_value_is_that_of_its_worst_part():
    from flujo_aros import read

    fan = Parallel("fan", {"a": const("c", 1), "b": call("r", lambda _: read('{"n": 1,}', {"type": "object"}))})
    outcome: Any = run(fan).steps[0].outcome
    assert outcome.trust is Trust.LOSSLESS


def test_a_degraded_step_inside_degrades_the_steps_around_it_and_the_run():
    result = run(Parallel("fan", {"a": const("c", DEGRADED)}) >> call("after"))
    assert [step.status.value for step in result.steps] == ["degraded", "degraded", "degraded", "success"]
    assert {step.trust for step in result.steps[:3]} == {"degraded"}
    assert (result.status, result.steps[-1].handed_on) == (RunStatus.DEGRADED, {"a": "words"})
    accepted = run(Parallel("fan", {"a": const("c", DEGRADED)}, on_degraded="accept") >> call("after"))
    assert (accepted.status, accepted.output) == (RunStatus.COMPLETED, {"a": "words"})
    assert run(Parallel("fan", {"a": const("c", DEGRADED)}, on_degraded="fail")).status is RunStatus.FAILED


# The context


def writes(name: str, key: str, value: Any) -> Call:
    return const(name, value, sink_to=key)


def fan_writing(one: Any, other: Any, **options: Any) -> Parallel:
    return Parallel("fan", {"a": writes("w", "k", one), "b": writes("w", "k", other)}, **options)


def test_independent_writes_of_branches_are_merged():
    result = run(Parallel("fan", {"a": writes("w", "x.y", 1), "b": writes("w", "x.z", 2)}), context={"x": {"o": 0}})
    assert result.context == {"x": {"o": 0, "y": 1, "z": 2}}


def test_a_conflict_names_both_branches_and_the_key():
    result = run(fan_writing(1, 2))
    assert result.step("fan").error == (
        "'a' and 'b' write different values to context.k; let only one of them write it, "
        "or set a merge_strategy: overwrite, keep_first or no_merge"
    )
    assert result.context == {}
    assert run(fan_writing(1, 1)).context == {"k": 1}
    inside = Parallel("fan", {"a": writes("w", "k", 1), "b": writes("w", "k.deep", 2)})
    assert "context.k" in str(run(inside).steps[0].error)


@pytest.mark.parametrize(
    ("options", "context"),
    [
        ({"merge_strategy": "overwrite"}, {"k": 2}),
        ({"merge_strategy": "keep_first"}, {"k": 1}),
        ({"merge_strategy": "no_merge"}, {}),
        ({"merge_strategy": "context_update", "field_mapping": {"b": ["k"]}}, {"k": 2}),
    ],
)
def test_a_named_strategy_says_which_branch_wins(options: dict[str, Any], context: dict[str, Any]):
    for _ in range(3):
        assert run(fan_writing(1, 2, **options)).context == context


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["x", "x.y", "z"]), st.integers(0, 2)), max_size=6))
def test_merging_is_either_a_conflict_or_keeps_the_writes_of_every_branch(written: list[tuple[str, str, int]]):
    by_branch: dict[str, list[Call]] = {}
    for branch, key, value in written:
        steps = by_branch.setdefault(branch, [])
        steps.append(writes(f"w{len(steps)}", key, value))
    branches = {name: steps for name, steps in by_branch.items() if len({s.sink_to for s in steps}) == len(steps)}
    if not branches:
        return
    result = run(Parallel("fan", branches))
    if result.status is RunStatus.COMPLETED and not any(s.sink_to == "x.y" for ss in branches.values() for s in ss):
        for branch, steps in branches.items():
            for step in steps:
                assert result.context[step.sink_to] == result.step(f"fan/{branch}/{step.name}").value


def test_a_failed_step_leaves_the_context_as_it_was():
    body = [writes("w", "k", 1), call("bad", fail)]
    result = run(Parallel("fan", {"a": body, "b": writes("w", "z", 1)}, on_branch_failure="ignore"))
    assert result.context == {"z": 1}
    assert run(Branch("b", {"four": body}, condition="input")).context == {}


def test_in_place_changes_of_the_context_are_discarded():
    def spoil(context: Any) -> int:
        context["list"].append(1)
        return 1

    step = Call("spoil", function=spoil, input="{{ context }}")
    given = {"list": [0]}
    assert run(step >> Call("see", function=lambda x: x, input="{{ context.list }}"), context=given).output == [0]
    assert given == {"list": [0]}


def test_updates_context_merges_a_mapping_and_rejects_anything_else():
    assert run(const("c", {"a": 1}, updates_context=True), context={"b": 2}).context == {"a": 1, "b": 2}
    result = run(const("c", "text", updates_context=True))
    assert result.error is not None
    assert "its value is a string, not a mapping; set sink_to" in result.error["message"]


class Order(BaseModel):
    number: int
    note: str = ""


def test_a_typed_context_validates_writes_and_stays_typed():
    typed = Order(number=1)
    assert run(writes("w", "number", "7"), context=typed).context == Order(number=7)
    wrong = run(writes("w", "number", "many"), context=typed)
    assert wrong.step("w").error is not None
    assert "context.number rejects this value: input should be a valid integer" in str(wrong.step("w").error)
    nearest = run(writes("w", "nubmer", 7), context=typed)
    assert nearest.step("w").error == "the context has no 'nubmer'; did you mean 'number'?"
    assert wrong.context == nearest.context == typed


def test_a_typed_context_may_have_aliases_and_nested_models():
    class Inner(BaseModel):
        total: int = 0

    class Outer(BaseModel):
        invoice: Inner = Field(default_factory=Inner, alias="Invoice")

    result = run(writes("w", "invoice.total", 5), context=Outer())
    assert result.context == Outer(Invoice=Inner(total=5))
    wrong = run(writes("w", "invoice.total", "many"), context=Outer())
    assert "context.invoice.total rejects this value" in str(wrong.step("w").error)


def test_a_branch_sees_only_the_keys_that_are_included():
    fan = Parallel("fan", {"a": Call("s", function=sorted, input="{{ context }}")}, context_include_keys=["x"])
    assert run(fan, context={"x": 1, "y": 2}).output == {"a": ["initial_prompt", "x"]}
    assert "there is no 'x' in the context" in str(run(fan, context={}).steps[0].error)


# Map


def test_a_map_keeps_the_order_and_bounds_how_many_run():
    running: list[int] = []
    most: list[int] = []

    async def work(value: int) -> int:
        running.append(value)
        most.append(len(running))
        await asyncio.sleep(0.001 * (5 - value))
        running.remove(value)
        return value * 10

    result = run(Map("each", call("w", work), iterable_input="input", max_concurrency=2), [1, 2, 3, 4])
    assert result.output == [10, 20, 30, 40]
    assert max(most) == 2
    assert {"each/0", "each/0/w", "each/3/w"} <= set(names(result))


def test_a_map_body_sees_item_this_and_index():
    body = Call("show", function=lambda x: x, input="{{ index }}:{{ item }}:{{ this }}:{{ previous_step }}:{{ input }}")
    assert run(Map("each", body, iterable_input="context.words"), "i", {"words": ["a"]}).output == ["0:a:a:a:i"]


@pytest.mark.parametrize("where", ["words", "context.words", "{{ context.words }}", "context['words']"])
def test_the_list_of_a_map_may_be_named_in_several_ways(where: str):
    assert run(Map("each", call("up", str.upper), iterable_input=where), "", {"words": ["a"]}).output == ["A"]


def test_an_empty_list_gives_an_empty_list_and_anything_else_a_sentence():
    each = Map("each", call("w"), iterable_input="input")
    assert run(each, []).output == []
    assert run(each, "text").error == {
        "step": "each",
        "reason": None,
        "message": "iterable_input of step 'each' must be a list; 'input' is a string; "
        "let an earlier step parse the text",
    }
    assert "a string that contains JSON" in str(run(each, "[1, 2]").error)


def test_a_failing_item_fails_the_map_and_cancels_the_rest():
    async def work(value: int) -> int:
        if value == 2:
            raise ValueError("two")
        await asyncio.sleep(3600)
        return value

    result = run(Map("each", call("w", work), iterable_input="input"), [1, 2, 3])
    assert result.error == {"step": "each/1/w", "reason": None, "message": "ValueError: two"}
    assert result.step("each/0/w").status is StepStatus.CANCELLED


def test_init_and_finalize_run_before_and_after_a_map():
    each = Map(
        "each",
        Call("w", function=lambda x: x, input="{{ item }}{{ context.mark }}"),
        iterable_input="input",
        init=const("mark", "!", sink_to="mark"),
        finalize=Call("join", function="".join),
    )
    assert run(each, ["a", "b"]).output == "a!b!"


# Branch


@pytest.mark.parametrize(
    ("condition", "picked"),
    [
        ("previous_step == 'four'", "true"),
        ("len(previous_step) > 10", "false"),
        (lambda value: value == "four", "true"),
        (lambda value, context: context["flag"], "false"),
    ],
)
def test_a_condition_picks_the_branch(condition: Any, picked: str):
    branch = Branch("route", {True: const("t", "true"), "false": const("f", "false")}, condition=condition)
    result = run(branch, context={"flag": False})
    assert result.output == picked
    assert names(result)[1:] == [f"route/{picked}", f"route/{picked}/{picked[0]}"]


def test_the_default_branch_handles_other_values_and_without_it_the_step_fails():
    branches = {"spam": const("s", "spam")}
    with_default = Branch("route", branches, condition="input", default_branch=const("d", "other"))
    assert run(with_default).output == "other"
    assert run(Branch("route", branches, condition="input"), "spma").error == {
        "step": "route",
        "reason": None,
        "message": "the condition of step 'route' evaluated to 'spma', which is not a branch; did you mean 'spam'?",
    }


def test_steps_inside_see_the_steps_before_them_outside():
    pipeline = call("first", len) >> Branch(
        "route", {"4": Call("see", function=str, input="{{ steps.first.output }}!")}, condition="previous_step"
    )
    assert run(pipeline).output == "4!"


def test_a_body_with_a_reference_to_an_unknown_step_is_rejected_with_its_pipeline():
    body = Call("see", function=str, input="{{ steps.frist.output }}")
    with pytest.raises(UsageError, match=r"there is no step 'frist'; did you mean 'first'"):
        call("first") >> Parallel("fan", {"a": body})
    assert Pipeline([call("frist"), Parallel("fan", {"a": body})])


# What is wrong is said when the step is made


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Parallel("p", {}), "step 'p': there are no branches"),
        (lambda: Parallel("p", {"a/b": call("x")}), "not a valid branch name: 'a/b'"),
        (lambda: Parallel("p", {"a": call("x")}, merge_strategy="owerwrite"), "merge_strategy must be one of"),  # type: ignore[arg-type] # the mistake
        (lambda: Parallel("p", {"a": call("x")}, reduce="sum"), "unknown value for reduce: 'sum'"),
        (lambda: Parallel("p", {"a": call("x")}, field_mapping={"b": []}), "field_mapping: there is no branch 'b'"),
        (lambda: Parallel("p", {"a": []}), "the body 'a' has no steps"),
        (
            lambda: Branch("b", {"lo": const("c", 1)}, condition="input", default_branch="lo"),  # type: ignore[arg-type] # the mistake
            "step 'b': default_branch must be a step, a list of steps or a Pipeline; 'lo' is not a step",
        ),
        (lambda: Parallel("p", {"a": 3}), "step 'p': a must be a step, a list of steps or a Pipeline; 3 is not a step"),  # type: ignore[dict-item] # the mistake
        (lambda: Map("m", call("x"), iterable_input="input", max_concurrency=0), "max_concurrency must be a whole"),
        (lambda: Branch("b", {}, condition="input"), "there are no branches"),
        (lambda: Branch("b", {"a": call("x")}, condition="previous_step ="), "condition of step 'b'"),
        (lambda: Loop("l", call("x"), max_loops=0), "max_loops must be a whole number of 1 or more, not 0"),
        (lambda: Import("i", call("x")), "an import takes a Pipeline"),  # type: ignore[arg-type] # the mistake
        (lambda: Import("i", Pipeline([call("x")]), on_failure="ignore"), "on_failure must be one of abort, skip"),  # type: ignore[arg-type] # the mistake
    ],
)
def test_a_wrong_kind_is_reported_in_one_sentence(make: Any, message: str):
    with pytest.raises(UsageError) as caught:
        make()
    assert message in str(caught.value)


def test_functions_inside_are_imported_before_anything_runs():
    ran: list[Any] = []
    inner = Branch("b", {"x": call("c")}, condition="no_such_package.tools:pick")
    with pytest.raises(UsageError, match=r"step 'b': no_such_package\.tools cannot be imported"):
        run(Call("first", function=ran.append) >> Parallel("fan", {"a": inner}))
    assert ran == []


def test_a_runner_rejects_anything_but_a_pipeline_or_step():
    with pytest.raises(UsageError, match="Runner takes a Pipeline or a step, not int"):
        Runner(3)  # type: ignore[arg-type] # the mistake


def test_kinds_chain_like_all_steps():
    pipeline = call("a") >> Parallel("fan", {"x": call("b", slow)}) >> Loop("l", call("c"), max_loops=1)
    assert [step.kind for step in pipeline.steps] == ["step", "parallel", "loop"]
