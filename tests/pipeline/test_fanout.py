"""Concurrent steps: what branches see of the context, and which error is raised if several fail at once."""

from __future__ import annotations

import asyncio

import pytest

from flujo_aros import Call, Parallel, Runner, RunStatus
from flujo_aros.pipeline.fanout import FanOut
from flujo_aros.pipeline.results import BodyResult


def test_every_branch_sees_the_input_of_the_run_whatever_keys_it_is_given() -> None:
    branch = Call("s", function=str, input="{{ context.initial_prompt }} {{ context.x }}")
    fan = Parallel("fan", {"a": branch}, context_include_keys=["initial_prompt", "x"])
    assert Runner(fan).run_sync("hello", {"x": 1, "y": 2}).output == {"a": "hello 1"}


def test_a_missing_key_is_one_sentence_however_many_branches_there_are() -> None:
    branches = {name: Call("s", function=str) for name in "abc"}
    fan = Parallel("fan", branches, context_include_keys=["nmae"], on_branch_failure="ignore")
    result = Runner(fan).run_sync("hello", {"name": "Ann"})
    assert result.status is RunStatus.FAILED
    assert result.steps[0].error == "there is no 'nmae' in the context; did you mean 'name'?"


def test_of_several_errors_raised_at_once_one_propagates_preferably_one_that_is_not_an_exception() -> None:
    class Stop(BaseException):
        pass

    def raising(what: BaseException) -> object:
        async def call() -> BodyResult:
            await asyncio.sleep(0)
            raise what

        return call

    async def run(*raised: BaseException) -> None:
        calls = [raising(each) for each in raised]
        await FanOut.run(calls, at_once=len(calls), stop_on_failure=True)  # type: ignore[arg-type]  # calls of a test

    with pytest.raises(ValueError, match="first"):
        asyncio.run(run(ValueError("first"), KeyError("second")))
    with pytest.raises(Stop):
        asyncio.run(run(ValueError("first"), Stop()))
