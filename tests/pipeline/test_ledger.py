"""Every started step settles exactly once, and the status of a run follows from its steps."""

from __future__ import annotations

import asyncio
import json
from decimal import Decimal
from typing import Any

import pytest

from flujo_aros import (
    Accepted,
    Degraded,
    Issue,
    Outcome,
    OutputError,
    Reason,
    Rejected,
    Repair,
    Risk,
    RunStatus,
    StepStatus,
    Trust,
    Usage,
    UsageError,
)
from flujo_aros.outcome import StageRecord
from flujo_aros.pipeline.ledger import PauseRun, RunLedger, Settlement, Slot
from flujo_aros.pipeline.results import BodyResult, OnDegraded, Work
from flujo_aros.pipeline.values import SharedContext

VALUE: Outcome[Any] = Accepted({"n": 1}, Trust.CLEAN, "first", (), '{"n": 1}')
REJECTED = Rejected(Reason.INVALID, (Issue("$.n", "type", "not a number"),), "n is many", raw_matched="many")
DEGRADED = Degraded("n is many", REJECTED)


def settled(outcome: Outcome[Any], on_degraded: OnDegraded | None = None) -> Any:
    with Slot("a", "step", on_degraded) as slot:
        slot.report(Settlement(outcome))
    return slot.result


def ledger_of(*names: str) -> RunLedger:
    return RunLedger("run-1", "demo", [(name, "step") for name in names])


def test_a_reported_value_is_success():
    result = settled(VALUE)
    assert (result.status, result.value, result.error) == (StepStatus.SUCCESS, {"n": 1}, None)


def test_a_rejected_step_fails_and_its_value_raises_with_all_details():
    result = settled(REJECTED)
    assert result.status is StepStatus.FAILED
    assert result.error == "invalid: $.n: not a number"
    with pytest.raises(OutputError, match="step 'a' has no value: failed: invalid") as caught:
        _ = result.value
    assert (caught.value.step, caught.value.reason, caught.value.texts) == ("a", Reason.INVALID, ("n is many",))
    assert caught.value.raw_matched == "many"


def test_the_error_of_a_step_ends_with_the_stages_that_were_tried():
    with Slot("a", "step", None) as slot:
        slot.report(Settlement(REJECTED, stages=(StageRecord("retry", "rejected", "invalid", 1),)))
    with pytest.raises(OutputError) as caught:
        _ = slot.result.value
    assert str(caught.value) == "step 'a' has no value: failed: invalid (type at $.n); tried: retry"


@pytest.mark.parametrize(
    ("on_degraded", "step", "run"),
    [
        (None, StepStatus.DEGRADED, RunStatus.DEGRADED),
        ("accept", StepStatus.DEGRADED, RunStatus.COMPLETED),
        ("fail", StepStatus.FAILED, RunStatus.FAILED),
    ],
)
def test_text_in_place_of_a_value_counts_as_the_step_says(
    on_degraded: OnDegraded | None, step: StepStatus, run: RunStatus
):
    with ledger_of("a") as ledger, ledger.open("a", "step", on_degraded) as slot:
        slot.report(Settlement(DEGRADED))
    assert (slot.result.status, ledger.result().status) == (step, run)
    if on_degraded == "accept":
        assert ledger.result().output == "n is many"
    else:
        with pytest.raises(OutputError):
            _ = ledger.result().output


def test_a_step_that_ends_without_a_result_has_failed():
    with Slot("a", "step") as slot:
        pass
    assert (slot.result.status, slot.result.error) == (StepStatus.FAILED, "the step ended without a result")


def test_an_exception_fails_the_step_and_is_kept_untouched():
    raised = ValueError("no such order")
    with Slot("a", "step") as slot:
        slot.spend(Usage(requests=2, input_tokens=7))
        raise raised
    result = slot.result
    assert (result.status, result.error) == (StepStatus.FAILED, "ValueError: no such order")
    assert result.exception is raised
    assert result.usage == Usage(requests=2, input_tokens=7)
    with pytest.raises(OutputError) as caught:
        _ = result.value
    assert caught.value.__cause__ is raised


def test_an_error_of_this_package_is_its_sentence():
    with Slot("a", "step") as slot:
        raise UsageError("there is no model")
    assert slot.result.error == "there is no model"


@pytest.mark.parametrize("kind", [asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_error_that_is_not_the_steps_own_settles_it_as_cancelled_and_propagates(kind: type[BaseException]):
    slot = Slot("a", "step")
    with pytest.raises(kind), slot:
        raise kind
    assert slot.result.status is StepStatus.CANCELLED


def test_an_exception_after_the_report_still_fails_the_step():
    with Slot("a", "step") as slot:
        slot.report(Settlement(VALUE))
        raise ValueError("late")
    assert (slot.result.status, slot.result.outcome) == (StepStatus.FAILED, None)


def test_reporting_settling_or_starting_twice_is_a_programming_error():
    slot = Slot("a", "step")
    with slot:
        slot.report(Settlement(VALUE))
        with pytest.raises(AssertionError, match="reported twice"):
            slot.report(Settlement(VALUE))
    with pytest.raises(AssertionError, match="settled twice"), slot:
        pass
    ledger = ledger_of("a")
    ledger.open("a", "step")
    with pytest.raises(AssertionError, match="started twice"):
        ledger.open("a", "step")


def test_a_run_with_an_open_step_has_no_result():
    ledger = ledger_of("a")
    ledger.open("a", "step")
    with pytest.raises(AssertionError, match="has not settled"):
        _ = ledger.result()


def test_steps_that_never_started_are_skipped_and_keep_the_run_from_completing():
    with ledger_of("a", "b") as ledger, ledger.open("a", "step") as slot:
        slot.report(Settlement(VALUE))
    run = ledger.result()
    assert [step.status for step in run.steps] == [StepStatus.SUCCESS, StepStatus.SKIPPED]
    assert run.status is RunStatus.FAILED


def test_a_run_stopped_between_two_steps_is_not_completed():
    ledger = ledger_of("a")
    with pytest.raises(asyncio.CancelledError), ledger:
        with ledger.open("a", "step") as slot:
            slot.report(Settlement(VALUE))
        raise asyncio.CancelledError
    assert ledger.result().status is RunStatus.CANCELLED
    with pytest.raises(OutputError, match="did not complete: cancelled"):
        ledger.result().raise_for_status()


def test_totals_are_the_sum_of_the_steps():
    with ledger_of("a", "b") as ledger:
        for name in ("a", "b"):
            with ledger.open(name, "step") as slot:
                slot.spend(Usage(requests=1, input_tokens=10, cost=Decimal("0.01")))
                slot.spend(Usage(requests=1, output_tokens=5))
                slot.report(Settlement(VALUE))
    assert ledger.result().usage == Usage(4, 20, 10, Decimal("0.02"))


def test_the_json_of_a_run_has_exactly_the_documented_keys():
    repaired = Accepted([1], Trust.LOSSLESS, "first", (Repair("fence", Risk.LOSSLESS, "$", (0, 3), "```", ""),), "")
    with ledger_of("a", "b") as ledger:
        with ledger.open("a", "step") as slot:
            slot.spend(Usage(requests=1, cost=Decimal("0.5")))
            slot.report(Settlement(repaired))
        with ledger.open("b", "step") as slot:
            slot.report(Settlement(REJECTED))
    plain = json.loads(json.dumps(ledger.result().to_dict()))
    assert list(plain) == ["run_id", "blueprint", "status", "trust", "output", "steps", "usage", "error"]
    first, second = plain["steps"]
    expected = "name kind status trust input_trust origin reason output repairs inner_repairs stages calls usage cost"
    assert list(first) == list(second) == [*expected.split(), "seconds"]
    assert (first["trust"], first["calls"], first["cost"]) == ("lossless", 1, 0.5)
    assert first["repairs"] == [
        {"code": "fence", "risk": "lossless", "path": "$", "span": [0, 3], "before": "```", "after": ""}
    ]
    assert (second["status"], second["reason"], second["output"]) == ("failed", "invalid", None)
    assert plain["error"] == {"step": "b", "reason": "invalid", "message": "invalid: $.n: not a number"}
    assert (plain["status"], plain["output"]) == ("failed", None)


def test_a_pause_settles_as_paused_and_resumes():
    slot = Slot("a", "hitl")
    with pytest.raises(PauseRun), slot:
        raise PauseRun("sure?", {"type": "boolean"})
    assert (slot.result.status, slot.result.error) == (StepStatus.PAUSED, "waits for an answer: sure?")


def test_an_excused_step_does_not_count_and_a_good_one_needs_no_excuse():
    with ledger_of("fan") as ledger:
        with ledger.open("fan", "parallel") as parent:
            with ledger.open("fan/a", "branch") as bad:
                bad.report(Settlement(REJECTED))
            with ledger.open("fan/b", "branch") as good:
                good.report(Settlement(VALUE))
            parent.report(Settlement(VALUE))
        assert ledger.result().status is RunStatus.FAILED
        ledger.excuse("fan", "fan")
    run = ledger.result()
    assert (run.status, [step.excused_by for step in run.steps]) == (RunStatus.COMPLETED, [None, "fan", None])


def test_the_cause_of_a_failure_is_named_and_not_the_step_around_it():
    with ledger_of("fan") as ledger, ledger.open("fan", "parallel") as parent:
        with ledger.open("fan/a", "step") as child:
            child.report(Settlement(REJECTED))
        body = BodyResult("fan/a", child.result, {}, SharedContext({}), failed=child.result)
        parent.report(Settlement[Any].of(body, what="branch 'a'"))
    run = ledger.result()
    assert (run.error or {})["step"] == "fan/a"
    assert run.step("fan").error == "branch 'a' failed: step 'fan/a' failed: invalid: $.n: not a number"
    assert run.step("fan").reason == "invalid"


def test_the_output_is_that_of_the_last_step_of_the_pipeline():
    with ledger_of("fan") as ledger, ledger.open("fan", "parallel") as parent:
        with ledger.open("fan/a", "step") as child:
            child.report(Settlement(Accepted(1, Trust.CLEAN, "first", (), "")))
        parent.report(Settlement(VALUE))
    assert ledger.result().output == ledger.result().to_dict()["output"] == {"n": 1}
    with pytest.raises(UsageError, match="the run has no step 'fna'; did you mean 'fan'"):
        ledger.result().step("fna")
    with pytest.raises(UsageError, match="the run has no step 'zz'; it has: fan, fan/a"):
        ledger.result().step("zz")


def test_a_duplicate_name_gets_a_number():
    ledger = ledger_of("a")
    assert ledger.free_name("a/fallback") == "a/fallback"
    ledger.open("a/fallback", "step")
    assert ledger.free_name("a/fallback") == "a/fallback 2"


def test_the_error_of_a_run_hides_secrets_that_an_exception_has_quoted():
    with ledger_of("a") as ledger, ledger.open("a", "step"):
        raise ValueError("cannot use 'sk-abcdefghijklmnopqrstuv'")
    message = ledger.result().to_dict()["error"]["message"]
    assert "sk-" not in message
    assert "cannot use '[secret-1]'" in message


def test_a_replayed_step_has_started_and_ended():
    slot = Slot.replayed(settled_result("a"), (), ())
    ledger = ledger_of("a")
    ledger.replay(slot)
    assert ledger.settled == (slot,)
    assert ledger.result().status is RunStatus.COMPLETED
    with pytest.raises(AssertionError, match="started twice"):
        ledger.replay(slot)


def settled_result(name: str) -> Any:
    with Slot(name, "step") as slot:
        slot.report(Settlement(VALUE))
    return slot.result


@pytest.mark.parametrize(
    ("by", "only", "excused"),
    [
        ("fan/a", None, [True, False, True, False]),
        ("other", None, [True, True, True, False]),
        ("other", StepStatus.FAILED, [True, True, True, False]),
        ("other", StepStatus.CANCELLED, [False, False, False, False]),
    ],
)
def test_excusing_covers_everything_inside_a_name_except_the_step_that_continues(
    by: str, only: StepStatus | None, excused: list[bool]
):
    ledger = ledger_of("fan", "fan2")
    for name in ("fan", "fan/a", "fan/a/b", "fan2"):
        with ledger.open(name, "step") as slot:
            slot.report(Settlement(REJECTED))
    ledger.open("fan/open", "step")  # which has not ended is left alone
    ledger.excuse("fan", by, only=only)
    assert [slot.result.excused_by is not None for slot in ledger.settled] == excused


def test_the_seconds_of_a_run_are_those_of_all_its_processes():
    before = {"": Work(Usage(requests=2), 1000.0), "a": Work(Usage(requests=1), 10.0)}
    with RunLedger("run-1", "demo", [("a", "step")], before) as ledger:
        assert ledger.seconds >= 1000.0
        with ledger.open("a", "step") as slot:
            slot.spend(Usage(requests=4))
            slot.report(Settlement(VALUE))
    ended = ledger.seconds
    assert ended == ledger.seconds >= 1000.0
    assert (slot.result.usage.requests, slot.work.usage.requests) == (5, 4)
    assert slot.result.seconds >= 10.0 > slot.work.seconds


def test_earlier_usage_of_a_step_includes_its_nested_steps():
    names = ("a", "a/b", "ab", "")
    ledger = RunLedger("run-1", "demo", [], {name: Work(Usage(requests=10**at), 1.0) for at, name in enumerate(names)})
    assert ledger.spent_before("a", ()).requests == 11
    assert ledger.spent_before("", ()).requests == 1111
    assert ledger.spent_before("ab", ()).requests == 100


@pytest.mark.parametrize(("length", "is_cut"), [(2000, False), (2001, True)])
def test_the_error_of_a_step_is_cut_where_it_is_too_long(length: int, is_cut: bool):
    with Slot("a", "step") as slot:
        raise UsageError("x" * length)
    assert slot.result.error == ("x" * 2000 + "…" if is_cut else "x" * length)
