"""A run that waits for a person can be saved and resumed in another process."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent

from flujo_aros import (
    Accepted,
    Branch,
    Call,
    Import,
    Loop,
    Map,
    Parallel,
    Pipeline,
    Processing,
    Rejected,
    Runner,
    RunResult,
    RunStatus,
    Step,
    StepLimits,
    StepStatus,
    Trust,
    Usage,
    UsageError,
)
from flujo_aros.contract import Output
from flujo_aros.events import Event, StepFinished
from flujo_aros.pipeline.ledger import PauseRun, Settlement
from flujo_aros.pipeline.model import PipelineStep, StepContext
from flujo_aros.testing import ScriptedModel

from .kinds_lab import check_invariants


@dataclass(frozen=True)
class Ask(PipelineStep):
    """The smallest step that asks a person."""

    name: str
    kind: str = field(default="hitl", init=False, repr=False)

    async def run(self, context: StepContext) -> Settlement[Any]:
        if context.answer is None:
            raise PauseRun(f"{self.name}?", {"type": "string"})
        return Settlement(Accepted(context.answer.value, Trust.CLEAN, "first", (), ""))


class Counting:
    """Counts how often each function ran."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def call(self, name: str, **options: Any) -> Call:
        def work(value: Any) -> Any:
            self.ran.append(name)
            return f"{value}.{name}"

        return Call(name, function=work, **options)


def paused_state(result: RunResult) -> dict[str, Any]:
    assert result.status is RunStatus.PAUSED
    assert result.paused is not None
    return json.loads(json.dumps(result.paused.to_dict()))


def resume(pipeline: Pipeline, state: dict[str, Any], answer: Any, **options: Any) -> RunResult:
    heard: list[Event] = []
    return asyncio.run(Runner(pipeline, observers=[heard.append]).resume(state, answer, **options))


def test_a_pause_settles_the_run_as_paused_with_its_question():
    lab, heard = Counting(), []
    result = Runner(Pipeline([lab.call("a"), Ask("sure"), lab.call("b")]), observers=[heard.append]).run_sync("x")
    check_invariants(result, heard)
    assert [step.status.value for step in result.steps] == ["success", "paused", "skipped"]
    assert result.paused is not None
    assert (result.paused.step, result.paused.message) == ("sure", "sure?")
    assert result.paused.input_schema == {"type": "string"}
    assert result.to_dict()["paused"]["step"] == "sure"
    assert result.error == {"step": "sure", "reason": None, "message": "waits for an answer: sure?"}


def test_finished_steps_do_not_run_again_and_the_answer_is_the_value():
    lab = Counting()
    pipeline = lab.call("a", sink_to="kept") >> Ask("sure") >> lab.call("b")
    state = paused_state(Runner(pipeline).run_sync("x"))
    result = resume(pipeline, state, "yes")
    assert (result.status, result.output, lab.ran) == (RunStatus.COMPLETED, "yes.b", ["a", "b"])
    assert [step.name for step in result.steps] == ["a", "sure", "b"]
    assert (result.context, result.run_id) == ({"kept": "x.a"}, state["run_id"])


def nested(lab: Counting) -> dict[str, Any]:
    ask = Ask("ask")
    return {
        "parallel": Parallel("s", {"a": [lab.call("a1"), ask, lab.call("a2")], "b": lab.call("b1")}),
        "branch": Branch(
            "s", {"x.first": [lab.call("c1", sink_to="kept"), ask, lab.call("c2")]}, condition="previous_step"
        ),
        "loop": Loop("s", [lab.call("l1", sink_to="kept"), ask, lab.call("l2")], max_loops=2),
        "imports": Import("s", Pipeline([lab.call("i1"), ask, lab.call("i2")])),
    }


@pytest.mark.parametrize("kind", ["parallel", "branch", "loop", "imports"])
def test_a_pause_inside_any_kind_resumes_without_running_anything_twice(kind: str):
    lab = Counting()
    pipeline = lab.call("first") >> nested(lab)[kind] >> lab.call("last")
    result, pauses = Runner(pipeline).run_sync("x", {"items": [1, 2]}), 0
    while result.status is RunStatus.PAUSED:
        pauses += 1
        result = resume(pipeline, paused_state(result), f"answer{pauses}")
    assert result.status is RunStatus.COMPLETED
    assert pauses == (2 if kind == "loop" else 1)
    # every step of the result ran exactly once, in whichever process
    ran = [step.name.rsplit("/", 1)[-1] for step in result.steps if step.kind == "step"]
    assert sorted(lab.ran) == sorted(ran)
    assert len({step.name for step in result.steps}) == len(result.steps)


def test_two_paused_branches_prompt_one_after_the_other():
    lab = Counting()
    pipeline = Pipeline([Parallel("s", {"a": [Ask("one"), lab.call("x")], "b": [Ask("two"), lab.call("y")]})])
    first = Runner(pipeline).run_sync("x")
    second = resume(pipeline, paused_state(first), "1")
    assert second.paused is not None
    assert {first.paused and first.paused.step, second.paused.step} == {"s/a/one", "s/b/two"}
    last = resume(pipeline, paused_state(second), "2")
    assert last.output == {"a": "1.x", "b": "2.y"}
    assert sorted(lab.ran) == ["x", "y"]


def test_every_element_of_a_map_may_ask():
    pipeline = Pipeline([Map("m", [Ask("ask"), Counting().call("x")], iterable_input="input")])
    result, asked = Runner(pipeline).run_sync([1, 2, 3]), []
    while result.paused is not None:
        asked.append(result.paused.step)
        result = resume(pipeline, paused_state(result), len(asked))
    assert sorted(asked) == ["m/0/ask", "m/1/ask", "m/2/ask"]
    assert sorted(result.output) == ["1.x", "2.x", "3.x"]


def test_usage_and_tolerated_failures_are_kept():
    def bad(_: Any) -> None:
        raise ValueError("bad")

    fan = Parallel("s", {"a": Call("bad", function=bad), "b": Ask("ask")}, on_branch_failure="ignore")
    pipeline = Pipeline([fan])
    result = resume(pipeline, paused_state(Runner(pipeline).run_sync()), "yes")
    assert (result.status, result.output) == (RunStatus.COMPLETED, {"b": "yes"})
    assert result.step("s/a/bad").status is StepStatus.FAILED


def test_another_pipeline_is_rejected():
    lab = Counting()
    state = paused_state(Runner(lab.call("a") >> Ask("sure")).run_sync())
    with pytest.raises(
        UsageError,
        match="its models have changed since; resume it with the pipeline and the models that it started with",
    ):
        resume(lab.call("a") >> Ask("sure") >> lab.call("new"), state, "yes")
    with pytest.raises(UsageError, match="this is not the state of a paused run: run_id: Field required"):
        resume(Pipeline([Ask("sure")]), {"run": 1}, "yes")


@pytest.mark.parametrize("packed", [json.dumps, lambda state: json.dumps(state).encode()])
def test_a_state_that_is_still_text_is_refused_with_what_to_pass(packed: Callable[[Any], Any]) -> None:
    state = paused_state(Runner(Pipeline([Ask("sure")])).run_sync())
    with pytest.raises(
        UsageError, match=r"the state of a paused run must be a mapping, not .*; pass json\.loads\(…\) of it"
    ):
        Runner(Pipeline([Ask("sure")])).resume_sync(packed(state), "yes")
    with pytest.raises(UsageError, match="the state of a paused run must be a mapping, not 3"):
        Runner(Pipeline([Ask("sure")])).resume_sync(3, "yes")  # type: ignore[arg-type]  # the mistake


def test_a_run_resumes_without_an_event_loop() -> None:
    runner = Runner(Pipeline([Ask("sure")]))
    state = paused_state(runner.run_sync())
    assert runner.resume_sync(state, "yes").output == "yes"

    async def inside() -> None:
        runner.resume_sync(state, "yes")

    with pytest.raises(UsageError, match=r"resume_sync cannot run inside an event loop; write `await runner\.resume"):
        asyncio.run(inside())


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (1, r"an earlier release of flujo_aros \(format 1, .* answer the run with that release, or start it again"),
        (99, r"a later release of flujo_aros \(format 99, .* pip install -U flujo_aros"),
    ],
)
def test_a_state_that_another_release_saved_is_refused_with_what_to_do(version: int, words: str) -> None:
    state = {**paused_state(Runner(Pipeline([Ask("sure")])).run_sync()), "version": version, "steps": [{"requests": 1}]}
    with pytest.raises(UsageError, match=words):
        resume(Pipeline([Ask("sure")]), state, "yes")


def test_a_value_that_cannot_be_saved_fails_the_run_with_a_sentence():
    result = Runner(Call("make", function=lambda _: object()) >> Ask("sure")).run_sync()
    assert result.status is RunStatus.FAILED
    assert "cannot be saved: the value of step 'make' is not plain data" in str(result.error)


def test_an_input_that_cannot_be_saved_fails_the_run_with_a_sentence():
    result = Runner(Ask("sure")).run_sync(object())
    assert "cannot be saved: the input is not plain data" in str(result.error)


class Order(BaseModel):
    number: int = 0


def test_a_typed_context_is_restored_with_its_type():
    pipeline = Call("n", function=len, sink_to="number") >> Ask("sure")
    state = paused_state(Runner(pipeline).run_sync("four", Order()))
    assert resume(pipeline, state, "yes", context_type=Order).context == Order(number=4)


def test_the_value_of_an_agent_keeps_its_output_type_across_a_pause():
    agent = Agent(ScriptedModel('{"number": 4}'), output_type=Order)
    count = Call("count", function=lambda order: order.number, input="{{ steps.read.output }}")
    pipeline = Step("read", agent) >> Ask("sure") >> count
    result = resume(pipeline, paused_state(Runner(pipeline).run_sync("four")), "yes")
    assert (result.step("read").value, result.output) == (Order(number=4), 4)


def test_an_import_can_reject_pauses():
    step = Import("s", Pipeline([Ask("ask")]), propagate_hitl=False)
    result = Runner(step).run_sync()
    assert result.status is RunStatus.FAILED
    assert result.step("s").error == "step 's/ask' asks to pause the run, but propagate_hitl is off"


SCRIPT = """
import asyncio, json, sys
from pathlib import Path
from tests.pipeline.test_kinds_pause import Ask
from flujo_aros.pipeline.runner import Runner
from flujo_aros.pipeline.step import Call

pipeline = Call("up", function=str.upper) >> Ask("sure") >> Call("size", function=len)
saved = Path(sys.argv[1])
if saved.exists():
    result = asyncio.run(Runner(pipeline).resume(json.loads(saved.read_text()), "yes"))
    print(result.status.value, result.output, [step.handed_on for step in result.steps])
else:
    saved.write_text(json.dumps(Runner(pipeline).run_sync("four").paused.to_dict()))
"""


@pytest.mark.slow
def test_a_run_continues_in_another_process(tmp_path: Path):
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "state.json")]
    root = Path(__file__).parents[2]
    subprocess.run(command, check=True, cwd=root)
    done = subprocess.run(command, check=True, cwd=root, capture_output=True, text=True)
    assert done.stdout == "completed 3 ['FOUR', 'yes', 3]\n"


def test_repairs_before_a_pause_are_reported_after_it() -> None:
    agent = Agent(ScriptedModel("{n: 4,}"))
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    pipeline = Pipeline([Step("read", agent=agent, contract=Output.json(schema)), Ask("sure")])
    paused = Runner(pipeline).run_sync("x")
    assert paused.paused is not None
    ended = asyncio.run(Runner(pipeline).resume(json.loads(json.dumps(paused.paused.to_dict())), "yes"))
    before, after = (result.steps[0].outcome for result in (paused, ended))
    assert isinstance(before, Accepted)
    assert isinstance(after, Accepted)
    assert [repair.code for repair in after.repairs] == ["unquoted-key", "trailing-comma"]
    assert tuple(after.repairs) == tuple(before.repairs)
    assert after.explain() == before.explain()


ORDER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
ONE_REPAIR = Processing(stages=("llm_repair",))


def reading(*replies: str, name: str = "read", **options: Any) -> Step:
    return Step(name, agent=Agent(ScriptedModel(*replies)), contract=Output.json(ORDER), **options)


def stages_of(result: RunResult) -> list[tuple[Any, ...]]:
    """Return the stages without the fields that are irrelevant to a comparison."""
    return [
        (step.name, stage.stage, stage.outcome, stage.reason, stage.calls, stage.usage, stage.seconds)
        for step in result.steps
        for stage in step.stages
    ]


def test_the_ladder_that_was_climbed_before_a_pause_is_reported_after_it() -> None:
    pipeline = reading("the number is 4", '{"n": 4}', processing=ONE_REPAIR) >> Ask("sure")
    paused = Runner(pipeline).run_sync("x")
    ended = resume(pipeline, paused_state(paused), "yes")
    assert [stage[1:5] for stage in stages_of(ended)] == [("llm_repair", "accepted", None, 1)]
    assert stages_of(ended) == stages_of(paused)
    assert ended.to_dict()["steps"][0] == paused.to_dict()["steps"][0]
    assert sum(stage.usage.requests for step in ended.steps for stage in step.stages) == ended.usage.requests - 1


def test_why_a_step_failed_before_a_pause_is_reported_after_it_with_every_attempt() -> None:
    fan = Parallel(
        "s",
        {"a": reading("none", "still none", "no", processing=ONE_REPAIR), "b": Ask("ask")},
        on_branch_failure="ignore",
    )
    paused = Runner(Pipeline([fan])).run_sync("x")
    ended = resume(Pipeline([fan]), paused_state(paused), "yes")
    before, after = (result.step("s/a/read") for result in (paused, ended))
    assert isinstance(before.outcome, Rejected)
    assert isinstance(after.outcome, Rejected)
    assert [attempt.stage for attempt in after.outcome.attempts] == ["first", "llm_repair", "llm_repair"]
    assert after.outcome.attempts == before.outcome.attempts
    assert after.outcome.explain() == before.outcome.explain()


def test_the_time_of_a_run_is_that_of_all_its_processes_without_the_pause() -> None:
    slow = Call("slow", function=lambda _: time.sleep(0.05))
    pipeline = Pipeline([Loop("s", [slow, Ask("ask")], max_loops=2)])
    first = Runner(pipeline).run_sync("x")
    second = resume(pipeline, paused_state(first), "1")
    third = resume(pipeline, paused_state(second), "2")
    assert third.status is RunStatus.COMPLETED
    assert first.seconds < second.seconds < third.seconds
    assert third.seconds >= 0.1
    loop, asked = third.step("s"), third.step("s/1/ask")
    assert loop.seconds >= 0.1, "a step that goes on has its time of before the pause, too"
    assert asked.seconds > first.step("s/1/ask").seconds


def test_the_limits_of_a_run_apply_across_a_pause() -> None:
    pipeline = reading('{"n": 1}', name="one") >> Ask("sure") >> reading('{"n": 2}', name="two")
    limits = StepLimits(max_requests=1)
    state = paused_state(Runner(pipeline, usage_limits=limits).run_sync("x"))
    ended = asyncio.run(Runner(pipeline, usage_limits=limits).resume(state, "yes"))
    assert ended.status is RunStatus.FAILED
    assert "no further model call: the run has used up its limit of 1 model call" in str(ended.error)


def test_the_limits_of_a_step_apply_across_a_pause_inside_it() -> None:
    body = [reading('{"n": 1}', name="one"), Ask("sure"), reading('{"n": 2}', name="two")]
    pipeline = Pipeline([Loop("s", body, max_loops=1, usage_limits=StepLimits(max_requests=1))])
    ended = resume(pipeline, paused_state(Runner(pipeline).run_sync("x")), "yes")
    assert "no further model call: step 's' has used up its limit of 1 model call" in str(ended.error)


@dataclass(frozen=True)
class Weighing(PipelineStep):
    """A step that has used tokens when it pauses."""

    name: str
    kind: str = field(default="hitl", init=False, repr=False)

    async def run(self, context: StepContext) -> Settlement[Any]:
        context.spend(Usage(1, 10, 2))
        if context.answer is None:
            raise PauseRun("well?")
        return Settlement(Accepted(context.answer.value, Trust.CLEAN, "first", (), ""))


def test_usage_before_a_pause_counts_when_the_step_ends() -> None:
    pipeline = Pipeline([Weighing("weigh")])
    ended = resume(pipeline, paused_state(Runner(pipeline).run_sync("x")), "yes")
    assert ended.step("weigh").usage == ended.usage == Usage(2, 20, 4)


def test_an_observer_receives_the_events_of_each_process() -> None:
    pipeline = Pipeline([Weighing("weigh")])
    state = paused_state(Runner(pipeline).run_sync("x"))
    state["begun"]["weigh"]["seconds"] = 1000.0
    heard: list[Event] = []
    ended = asyncio.run(Runner(pipeline, observers=[heard.append]).resume(state, "yes"))
    (step,) = [event for event in heard if isinstance(event, StepFinished)]
    assert (step.usage, step.seconds < 1000.0) == (Usage(1, 10, 2), True)
    assert (ended.step("weigh").usage, ended.step("weigh").seconds > 1000.0) == (Usage(2, 20, 4), True)
