"""Running a pipeline: results, events, and a correct status whatever the steps do."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from flujo_aros import (
    AgentSpec,
    Call,
    Degraded,
    LocalModelError,
    OutputError,
    Pipeline,
    Reason,
    Rejected,
    Runner,
    RunStatus,
    Step,
    StepStatus,
    TemplateError,
    UsageError,
    read,
)
from flujo_aros.events import Event, FunctionCalled, RunFinished, RunStarted, StepFinished, StepStarted
from flujo_aros.testing import ScriptedModel, ScriptedModels


async def double(value: Any) -> Any:
    return value + value


def fail(value: Any) -> Any:
    raise LookupError(f"nothing about {value}")


def scripted(*replies: str) -> FunctionModel:
    left = list(replies)

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse([TextPart(left.pop(0))])

    return FunctionModel(answer)


@pytest.mark.parametrize("name", ["run", "run_sync", "stream"])
def test_a_pipeline_says_that_a_runner_runs_it(name: str):
    with pytest.raises(AttributeError, match=rf"Runner\(pipeline\)\.{name}\(input\)"):
        getattr(Pipeline([Call("count", function=len)]), name)


def test_any_other_missing_attribute_of_a_pipeline_is_an_ordinary_error():
    with pytest.raises(AttributeError, match="'Pipeline' object has no attribute 'stepps'"):
        _ = Pipeline([Call("count", function=len)]).stepps


def test_values_go_from_step_to_step():
    pipeline = Call("count", function=len) >> Call("double", function=double)
    run = Runner(pipeline).run_sync("four")
    assert (run.status, run.output, [step.value for step in run.steps]) == (RunStatus.COMPLETED, 8, [4, 8])


def test_run_and_run_sync_are_one_path():
    runner = Runner(Call("count", function=len))
    one, other = asyncio.run(runner.run("abc")).to_dict(), runner.run_sync("abc").to_dict()
    for run in (one, other):
        run["run_id"], run["steps"][0]["seconds"] = "", 0
    assert one == other


def test_printed_output_is_valid_json_even_with_non_finite_numbers():
    run = Runner(Call("odd", function=lambda _: {"a": float("nan"), "b": [float("-inf"), 1.5]})).run_sync()
    assert json.loads(json.dumps(run.to_dict()["output"], allow_nan=False)) == {"a": "NaN", "b": ["-Infinity", 1.5]}
    assert run.output["b"][0] == float("-inf")


def test_run_sync_inside_an_event_loop_suggests_run():
    async def inside() -> None:
        Runner(Call("count", function=len)).run_sync("x")

    with pytest.raises(UsageError, match=r"await runner\.run"):
        asyncio.run(inside())


def test_a_step_sees_input_context_and_earlier_steps():
    class Order(BaseModel):
        number: int

    seen = Call("seen", function=str, input="{{ input }}|{{ steps.count.output }}|{{ context.number }}")
    run = Runner(Call("count", function=len) >> seen).run_sync("four", Order(number=7))
    assert run.output == "four|4|7"


def test_params_reach_the_function():
    run = Runner(Call("round", function=round, params={"ndigits": 1})).run_sync(3.14159)
    assert run.output == 3.1


def test_a_python_object_reaches_the_next_callable_as_it_is():
    marker = object()
    run = Runner(Call("make", function=lambda _: marker) >> Call("same", function=lambda x: x)).run_sync()
    assert run.output is marker


def test_a_raising_step_fails_the_run_and_later_steps_are_skipped():
    run = Runner(Call("bad", function=fail) >> Call("later", function=double)).run_sync("x")
    assert [step.status for step in run.steps] == [StepStatus.FAILED, StepStatus.SKIPPED]
    assert run.status is RunStatus.FAILED
    assert run.error == {"step": "bad", "reason": None, "message": "LookupError: nothing about x"}
    with pytest.raises(OutputError) as caught:
        run.raise_for_status()
    assert isinstance(caught.value.__cause__, LookupError)


def test_stop_iteration_of_a_sync_function_fails_the_step_instead_of_hanging():
    run = Runner(Call("next", function=lambda _: next(iter(())))).run_sync()
    assert run.status is RunStatus.FAILED
    assert isinstance(run.steps[0].exception and run.steps[0].exception.__cause__, StopIteration)


def test_a_sync_function_does_not_block_the_loop():
    released = threading.Event()

    async def run() -> Any:
        task = asyncio.ensure_future(Runner(Call("wait", function=lambda _: released.wait(30))).run())
        await asyncio.sleep(0)
        released.set()
        return (await task).output

    assert asyncio.run(run()) is True


def test_a_function_that_returns_an_outcome_settles_by_it():
    schema = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
    runner = Runner(Call("read", function=lambda text: read(text, schema)))
    assert runner.run_sync('{"n": 1}').output == {"n": 1}
    assert runner.run_sync('{"n": "many"}').steps[0].reason == "invalid"


def test_a_missing_name_fails_the_step_with_a_sentence_that_names_it():
    run = Runner(Call("a", function=len, input="{{ context.nmae }}")).run_sync("", {"name": "Ann"})
    assert run.steps[0].error == "input of step 'a': there is no 'nmae'; did you mean 'name'?"
    assert isinstance(run.steps[0].exception, TemplateError)


def test_an_agent_step_ends_in_a_typed_value():
    class Order(BaseModel):
        number: int

    step = Step("order", agent=Agent(scripted('Sure!\n```json\n{"number": 7,}\n```')), contract=Order)
    run = Runner(step).run_sync("order 7")
    assert run.output == Order(number=7)
    assert run.steps[0].usage.requests == 1
    assert [repair["code"] for repair in run.to_dict()["steps"][0]["repairs"]]


def test_an_agent_that_gives_no_value_degrades_the_run_and_its_calls_are_counted():
    step = Step("order", agent=Agent(scripted(*["I would rather not."] * 9)), contract={"type": "integer"})
    run = Runner(step >> Call("later", function=len)).run_sync("order 7")
    assert run.status is RunStatus.DEGRADED
    assert run.steps[0].reason is not None
    assert run.usage.requests == run.steps[0].usage.requests >= 1


def test_an_agent_step_that_accepts_text_degrades_and_completes():
    text = "I would rather not."
    step = Step("order", agent=Agent(scripted(*[text] * 9)), contract={"type": "integer"}, on_degraded="accept")
    run = Runner(step >> Call("shout", function=str.upper)).run_sync("order 7")
    assert (run.status, run.steps[0].status, run.output) == (RunStatus.COMPLETED, StepStatus.DEGRADED, text.upper())


def test_imports_are_resolved_before_any_step_runs():
    ran: list[Any] = []
    pipeline = Call("first", function=ran.append) >> Call("second", function="no_such_package.tools:fix")
    with pytest.raises(UsageError, match=r"step 'second': no_such_package\.tools cannot be imported"):
        Runner(pipeline).run_sync()
    assert ran == []


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("os.path:joni", "os.path has no 'joni'; did you mean 'join'?"),
        ("os:path", "os:path cannot be called; its type is module"),
    ],
)
def test_a_name_that_cannot_be_called_is_reported_in_one_sentence(function: str, message: str):
    with pytest.raises(UsageError) as caught:
        Runner(Call("a", function=function)).run_sync()
    assert str(caught.value) == f"step 'a': {message}"


class Worker:
    async def run(self, data: Any) -> Any:
        return data


WORKER = Worker()


def test_an_agent_in_place_of_a_function_gets_an_error_that_says_where_it_belongs():
    with pytest.raises(
        UsageError,
        match=r"its type is Worker; the only object accepted here is a pydantic-ai Agent, in the `uses` of a step",
    ):
        Runner(Call("a", function=f"{__name__}:WORKER")).run_sync()


def test_one_model_of_pydantic_ai_serves_every_name():
    steps = [Step(name, AgentSpec(model=f"openai:{name}")) for name in ("a", "b")]
    run = Runner(Pipeline(steps), models=TestModel(custom_output_text="hello")).run_sync("x")
    assert [step.value for step in run.steps] == ["hello", "hello"]


def test_a_pipeline_without_local_models_never_loads_their_engine():
    assert Runner(Call("count", function=len)).run_sync("x").output == 1
    assert "xllamacpp" not in sys.modules


def test_events_come_in_pairs_and_only_for_actual_work():
    heard: list[Event] = []
    Runner(Call("bad", function=fail) >> Call("later", function=len), observers=[heard.append]).run_sync("x")
    assert [type(event) for event in heard] == [RunStarted, StepStarted, FunctionCalled, StepFinished, RunFinished]


def test_an_observer_may_hold_a_span_around_steps_and_run():
    order: list[str] = []

    class Span:
        def __init__(self, name: str) -> None:
            self.name = name

        def __enter__(self) -> None:
            order.append(f"+{self.name}")

        def __exit__(self, *_: object) -> None:
            order.append(f"-{self.name}")

    def observer(event: Event) -> Span | None:
        return Span(type(event).__name__) if isinstance(event, (RunStarted, StepStarted)) else None

    Runner(Call("a", function=len) >> Call("b", function=double), observers=[observer]).run_sync("x")
    assert order == ["+RunStarted", "+StepStarted", "-StepStarted", "+StepStarted", "-StepStarted", "-RunStarted"]


# The law: every started step settles exactly once, and `completed` means what it says


DEGRADED = Degraded("text", Rejected(Reason.NO_JSON, (), "text"))
ENDS: dict[str, Any] = {
    "value": 1,
    "raise": ValueError("broken"),
    "cancel": asyncio.CancelledError(),
    "interrupt": KeyboardInterrupt(),
    "reject": DEGRADED.because,
    "degrade": DEGRADED,
}
STATUS = {
    "value": StepStatus.SUCCESS,
    "raise": StepStatus.FAILED,
    "reject": StepStatus.FAILED,
    "cancel": StepStatus.CANCELLED,
    "interrupt": StepStatus.CANCELLED,
    "degrade": StepStatus.DEGRADED,
}


def behaving(end: str, pauses: int) -> Callable[[Any], Any]:
    async def behave(_: Any) -> Any:
        for _turn in range(pauses):
            await asyncio.sleep(0)
        if isinstance(ENDS[end], BaseException):
            raise ENDS[end]
        return ENDS[end]

    return behave


Behaviour = tuple[str, int, Any]
behaviours = st.lists(
    st.tuples(st.sampled_from(sorted(ENDS)), st.integers(0, 3), st.sampled_from([None, "accept", "fail"])),
    min_size=1,
    max_size=5,
)


def pipeline_of(steps: list[Behaviour]) -> Pipeline:
    return Pipeline(
        Call(f"s{number}", function=behaving(end, pauses), on_degraded=on_degraded)
        for number, (end, pauses, on_degraded) in enumerate(steps)
    )


def expected(steps: list[Behaviour]) -> tuple[list[StepStatus], RunStatus]:
    statuses: list[StepStatus] = []
    ended: RunStatus | None = None
    degraded = False
    for end, _, on_degraded in steps:
        if ended is not None:
            statuses.append(StepStatus.SKIPPED)
            continue
        status = StepStatus.FAILED if end == "degrade" and on_degraded == "fail" else STATUS[end]
        statuses.append(status)
        degraded = degraded or (status is StepStatus.DEGRADED and on_degraded is None)
        if status is StepStatus.FAILED:
            ended = RunStatus.FAILED
        elif status is StepStatus.CANCELLED:
            ended = RunStatus.CANCELLED
    return statuses, ended or (RunStatus.DEGRADED if degraded else RunStatus.COMPLETED)


def check_pairs(heard: list[Event]) -> None:
    started = [event.name for event in heard if isinstance(event, StepStarted)]
    finished = [event.name for event in heard if isinstance(event, StepFinished)]
    assert started == finished
    assert [type(event) for event in (heard[0], heard[-1])] == [RunStarted, RunFinished]


@settings(max_examples=150, deadline=None)
@given(behaviours)
def test_every_started_step_settles_once_and_the_status_follows_from_them(steps: list[Behaviour]):
    heard: list[Event] = []
    runner = Runner(pipeline_of(steps), observers=[heard.append])
    statuses, status = expected(steps)
    if status is RunStatus.CANCELLED:
        with pytest.raises((asyncio.CancelledError, KeyboardInterrupt)):
            runner.run_sync()
    else:
        run = runner.run_sync()
        assert ([step.status for step in run.steps], run.status) == (statuses, status)
        assert (run.error is None) == (status is RunStatus.COMPLETED)
    check_pairs(heard)
    seen = [event.status for event in heard if isinstance(event, StepFinished)]
    assert seen == [each.value for each in statuses if each is not StepStatus.SKIPPED]
    assert isinstance(heard[-1], RunFinished)
    assert heard[-1].status == status.value


async def cancelled_after(ticks: int, pipeline: Pipeline, heard: list[Event]) -> bool:
    """Run, and cancel after this many iterations of the event loop; return whether the run was cancelled."""
    task = asyncio.ensure_future(Runner(pipeline, observers=[heard.append]).run())
    for _ in range(ticks):
        await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    return task.cancelled()


@pytest.mark.parametrize("steps", [[("value", 3, None)] * 3, [("value", 2, None), ("degrade", 2, "accept")]])
def test_cancelled_at_any_await_the_open_step_settles_as_cancelled(steps: list[Behaviour]):
    reached: set[str] = set()
    for ticks in range(1, 40):
        heard: list[Event] = []
        cancelled = asyncio.run(cancelled_after(ticks, pipeline_of(steps), heard))
        check_pairs(heard)
        last_step = next(event for event in reversed(heard) if isinstance(event, StepFinished))
        last = heard[-1]
        assert isinstance(last, RunFinished)
        assert (last.status, last_step.status) == (
            ("cancelled", "cancelled") if cancelled else ("completed", last_step.status)
        )
        reached.add(last.status)
    assert reached == {"cancelled", "completed"}


def test_usage_spent_before_a_cancellation_is_in_the_step():
    heard: list[Event] = []
    started = asyncio.Event

    async def run() -> None:
        waiting = started()

        async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            if len(messages) > 1:
                waiting.set()
                await asyncio.sleep(3600)
            return ModelResponse([TextPart("no")])

        agent = Agent(FunctionModel(answer))

        @agent.output_validator
        def never(value: str) -> str:
            from pydantic_ai import ModelRetry

            raise ModelRetry("again")

        task = asyncio.ensure_future(Runner(Step("a", agent=agent), observers=[heard.append]).run("x"))
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    finished = next(event for event in heard if isinstance(event, StepFinished))
    assert finished.status == "cancelled"
    assert finished.usage.requests >= 1


def test_the_error_of_a_run_reaches_the_work_that_was_done_before():
    step = Step("order", agent=Agent(scripted(*["I would rather not."] * 9)), contract={"type": "integer"})
    run = Runner(Call("first", function=len) >> step).run_sync("four")
    for ask in (run.raise_for_status, lambda: run.output):
        with pytest.raises(OutputError) as caught:
            ask()
        assert caught.value.context["run_id"] == run.run_id
        assert caught.value.context["outputs"] == {"first": 4}
        assert caught.value.attempts[0].text == "I would rather not."


def test_a_journal_observes_the_run_along_with_other_observers() -> None:
    """`journal=` takes any observer, such as a `Journal`."""
    kept: list[str] = []
    heard: list[str] = []
    runner = Runner(
        Call("count", function=len),
        journal=lambda event: kept.append(type(event).__name__),
        observers=[lambda event: heard.append(type(event).__name__)],
    )
    assert runner.run_sync("four").output == 4
    assert kept == heard
    assert kept[0] == "RunStarted"


def test_a_missing_local_model_is_reported_before_any_step(tmp_path: Path):
    done: list[str] = []
    missing = Step("ask", AgentSpec(model=f"local:{tmp_path}/no.gguf"))
    pipeline = Call("first", function=done.append) >> Call("then", function=str, fallback=missing)
    with pytest.raises(LocalModelError, match=r"no\.gguf"):
        Runner(pipeline).run_sync("x")
    assert done == []


def test_a_custom_source_may_serve_any_local_model():
    step = Step("ask", AgentSpec(model="local:of-our-own"))
    models = ScriptedModels({"local:of-our-own": ScriptedModel("hello")})
    assert Runner(step, models=models).run_sync("x").output == "hello"
