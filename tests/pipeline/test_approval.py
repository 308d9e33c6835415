"""If an agent's tool calls need approval, the run pauses and continues with the decision."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ApprovalRequired, CallDeferred, DeferredToolRequests, ModelRetry, RunContext, Tool
from pydantic_ai.messages import ModelMessage, ModelResponse, RetryPromptPart, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel

from flujo_aros import (
    AgentSpec,
    Cached,
    Call,
    Map,
    Parallel,
    Pipeline,
    Runner,
    RunResult,
    RunStatus,
    Step,
    StepStatus,
    UsageError,
)


class Clerk:
    """A model that calls the given tools, and then reports their results. It records its requests."""

    def __init__(self, *calls: tuple[str, dict[str, Any]], typed: bool = False) -> None:
        self.calls, self.typed = calls, typed
        self.seen: list[list[ModelMessage]] = []
        self.model = FunctionModel(self.reply)

    def reply(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.seen.append(list(messages))
        returned = [
            str(part.content)
            for message in messages
            for part in message.parts
            if isinstance(part, (ToolReturnPart, RetryPromptPart))
        ]
        if not returned:
            return ModelResponse([ToolCallPart(name, args) for name, args in self.calls])
        if self.typed:
            return ModelResponse([ToolCallPart(info.output_tools[0].name, {"said": "; ".join(returned)})])
        return ModelResponse([TextPart("; ".join(returned))])


class Said(BaseModel):
    said: str


def clerk(model: Model, done: list[Any], **options: Any) -> Agent[None, Any]:
    agent: Agent[None, Any] = Agent(model, name="clerk", **options)

    @agent.tool_plain(requires_approval=True)
    def refund(order: str, amount: int) -> str:
        done.append((order, amount))
        return f"refunded {amount}"

    @agent.tool_plain
    def look(order: str) -> str:
        done.append(order)
        return f"looked at {order}"

    return agent


REFUND = ("refund", {"order": "A-7", "amount": 40})


def resumed(pipeline: Any, run: RunResult[Any], answer: Any) -> RunResult[Any]:
    """Resume the run as another process would."""
    import asyncio

    assert run.paused is not None
    return asyncio.run(Runner(pipeline).resume(json.loads(json.dumps(run.paused.to_dict())), answer))


@pytest.mark.parametrize("options", [{}, {"output_type": [str, DeferredToolRequests]}], ids=["as it is", "deferring"])
def test_a_tool_call_that_needs_an_approval_pauses_the_run_before_it_is_made(options: dict[str, Any]) -> None:
    done: list[Any] = []
    run = Runner(Step("tidy", clerk(Clerk(REFUND).model, done, **options)) >> Call("next", done.append)).run_sync("x")
    assert run.status is RunStatus.PAUSED
    assert run.paused is not None and run.paused.step == "tidy"
    assert run.paused.message == 'The agent wants to call:\n  refund(order="A-7", amount=40)'
    assert done == []
    assert run.step("tidy").status is StepStatus.PAUSED
    assert run.step("tidy").outcome is None
    assert run.usage.requests == 1


@pytest.mark.parametrize("answer", ["approve", True, {"approve": True}, '{"approve": true}'])
def test_an_approved_call_runs_and_the_agent_continues(answer: Any) -> None:
    done: list[Any] = []
    model = Clerk(REFUND)
    pipeline = Pipeline([Step("tidy", clerk(model.model, done))])
    run = resumed(pipeline, Runner(pipeline).run_sync("x"), answer)
    assert (run.status, run.output, done) == (RunStatus.COMPLETED, "refunded 40", [("A-7", 40)])
    assert run.usage.requests == 2  # of both processes
    assert len(model.seen) == 2


def test_a_denied_call_does_not_run_and_the_model_receives_the_reason() -> None:
    done: list[Any] = []
    pipeline = Pipeline([Step("tidy", clerk(Clerk(REFUND).model, done))])
    run = resumed(pipeline, Runner(pipeline).run_sync("x"), {"approve": False, "message": "too much"})
    assert (run.status, run.output, done) == (RunStatus.COMPLETED, "too much", [])


def test_an_approval_may_change_the_arguments() -> None:
    done: list[Any] = []
    pipeline = Pipeline([Step("tidy", clerk(Clerk(REFUND).model, done))])
    answer = {"approve": True, "args": {"order": "A-7", "amount": 5}}
    run = resumed(pipeline, Runner(pipeline).run_sync("x"), answer)
    assert (run.output, done) == ("refunded 5", [("A-7", 5)])


@pytest.mark.parametrize("answer", ["nope", "approved?", "maybe", "not now", 1, ""])
def test_only_the_listed_words_decide_about_a_call(answer: Any) -> None:
    """An approval must not be read leniently."""
    done: list[Any] = []
    pipeline = Pipeline([Step("tidy", clerk(Clerk(REFUND).model, done))])
    again = resumed(pipeline, Runner(pipeline).run_sync("x"), answer)
    assert again.paused is not None and again.paused.rejected
    assert "expected approve, yes, true, deny, no, false, or an object" in again.paused.message
    assert not done
    assert resumed(pipeline, again, "Yes").output == "refunded 40"


def test_an_answer_that_does_not_fit_leaves_the_run_paused_and_nothing_is_asked_again() -> None:
    done: list[Any] = []
    model = Clerk(REFUND)
    pipeline = Pipeline([Step("tidy", clerk(model.model, done))])
    again = resumed(pipeline, Runner(pipeline).run_sync("x"), {"approve": True, "args": {"amount": "lots"}})
    assert again.status is RunStatus.PAUSED
    assert again.paused is not None and again.paused.rejected
    assert 'args.amount: "lots" is not of type' in again.paused.message
    assert (done, len(model.seen)) == ([], 1)
    assert resumed(pipeline, again, "approve").output == "refunded 40"


def test_parallel_calls_run_once() -> None:
    done: list[Any] = []
    pipeline = Pipeline([Step("tidy", clerk(Clerk(("look", {"order": "A-7"}), REFUND).model, done))])
    run = resumed(pipeline, Runner(pipeline).run_sync("x"), "approve")
    assert done == ["A-7", ("A-7", 40)]
    assert run.output == "looked at A-7; refunded 40"


def test_several_calls_are_decided_one_by_one_or_all_at_once() -> None:
    done: list[Any] = []
    calls = [REFUND, ("refund", {"order": "B-1", "amount": 2})]
    pipeline = Pipeline([Step("tidy", clerk(Clerk(*calls).model, done))])
    run = Runner(pipeline).run_sync("x")
    assert run.paused is not None and 'refund 2(order="B-1", amount=2)' in run.paused.message
    one = resumed(pipeline, run, {"refund": "approve", "refund 2": "deny"})
    assert done == [("A-7", 40)]
    assert "The tool call was denied." in one.output
    assert resumed(pipeline, run, "approve").output == "refunded 40; refunded 2"


@pytest.mark.parametrize("as_text", [False, True])
def test_a_wrong_argument_of_one_of_several_calls_is_named(as_text: bool) -> None:
    pipeline = Pipeline([Step("tidy", clerk(Clerk(REFUND, REFUND).model, []))])
    wrong = {"refund": {"approve": True, "args": {"order": "A-7", "amount": "lots"}}, "refund 2": "perhaps"}
    again = resumed(pipeline, Runner(pipeline).run_sync("x"), json.dumps(wrong) if as_text else wrong)
    assert again.paused is not None and again.paused.rejected
    refused = again.paused.message.partition("not accepted:\n  ")[2].split("\n  ")
    assert [line.partition(": ")[0] for line in refused] == ["refund.args.amount", "$['refund 2']"]
    assert "lots" in refused[0] and "approve" in refused[1]


def test_a_typed_agent_with_an_output_validator_pauses_as_well() -> None:
    done: list[Any] = []
    agent = clerk(Clerk(REFUND, typed=True).model, done, output_type=Said)

    @agent.output_validator
    def polite(said: Said) -> Said:
        return Said(said=f"please: {said.said}")

    pipeline = Pipeline([Step("tidy", agent)])
    run = resumed(pipeline, Runner(pipeline).run_sync("x"), "approve")
    assert run.output == Said(said="please: refunded 40")


def test_a_contract_of_the_step_is_read_after_the_pause() -> None:
    done: list[Any] = []
    agent = clerk(Clerk(("look", {"order": "1"}), REFUND).model, done)

    def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) == 1:
            return ModelResponse([ToolCallPart(*REFUND)])
        return ModelResponse([TextPart('{"said": "done",}')])

    pipeline = Pipeline([Step("tidy", clerk(FunctionModel(reply), done), Said)])
    run = resumed(pipeline, Runner(pipeline).run_sync("x"), "approve")
    assert run.output == Said(said="done")
    assert agent is not None


def test_a_tool_that_asks_by_itself_and_one_that_runs_elsewhere() -> None:
    def remove(ctx: RunContext[None], path: str) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={"why": "protected"})
        return f"removed {path}"

    def fetch(url: str) -> str:
        raise CallDeferred

    model = Clerk(("remove", {"path": "x"}), ("fetch", {"url": "y"}))
    agent = Agent(model.model, tools=[remove, fetch])
    pipeline = Pipeline([Step("tidy", agent)])
    run = Runner(pipeline).run_sync("go")
    assert run.paused is not None
    assert run.paused.message.splitlines() == [
        "The agent wants to call:",
        '  remove(path="x")  (why: "protected")',
        "The agent waits for the result of:",
        '  fetch(url="y")',
    ]
    assert resumed(pipeline, run, {"remove": True, "fetch": [1, 2]}).output == "removed x; [1, 2]"


def test_an_agent_may_ask_again_after_an_approval() -> None:
    done: list[Any] = []

    def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        turn = sum(isinstance(message, ModelResponse) for message in messages)
        if turn < 2:
            return ModelResponse([ToolCallPart("refund", {"order": f"A-{turn}", "amount": turn})])
        return ModelResponse([TextPart("all done")])

    pipeline = Pipeline([Step("tidy", clerk(FunctionModel(reply), done))])
    second = resumed(pipeline, Runner(pipeline).run_sync("x"), "approve")
    assert second.status is RunStatus.PAUSED
    assert second.paused is not None and "A-1" in second.paused.message
    last = resumed(pipeline, second, "approve")
    assert (last.output, done, last.usage.requests) == ("all done", [("A-0", 0), ("A-1", 1)], 3)


@pytest.mark.parametrize("kind", ["map", "parallel", "cache", "fallback"])
def test_an_agent_in_a_nested_step_pauses_and_resumes(kind: str) -> None:
    done: list[Any] = []
    model = Clerk(REFUND)
    step = Step("tidy", clerk(model.model, done))

    def fail(_: Any) -> str:
        raise ValueError("no")

    pipeline: Any = {
        "map": Map("each", step, iterable_input="input"),
        "parallel": Parallel("both", {"a": step, "b": Call("n", len)}),
        "cache": Cached("kept", step),
        "fallback": Call("try", fail, fallback=step),
    }[kind]
    run = Runner(pipeline).run_sync(["one"] if kind == "map" else "one")
    assert run.status is RunStatus.PAUSED
    last = resumed(pipeline, run, "approve")
    assert last.status is RunStatus.COMPLETED
    assert done == [("A-7", 40)]
    assert len(model.seen) == 2


def test_each_element_prompts_and_no_model_call_is_repeated() -> None:
    done: list[Any] = []
    model = Clerk(REFUND)
    each = Pipeline([Map("each", Step("tidy", clerk(model.model, done)), iterable_input="input", max_concurrency=2)])
    first = Runner(each).run_sync(["one", "two"])
    second = resumed(each, first, "approve")
    assert second.status is RunStatus.PAUSED
    assert first.paused is not None and second.paused is not None
    assert {first.paused.step, second.paused.step} == {"each/0/tidy", "each/1/tidy"}
    last = resumed(each, second, "deny")
    assert last.status is RunStatus.COMPLETED
    assert (len(done), len(model.seen)) == (1, 4)


def test_iterations_resume_where_they_paused() -> None:
    done: list[Any] = []

    def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if not any(isinstance(part, ToolReturnPart) for message in messages for part in message.parts):
            return ModelResponse([ToolCallPart(*REFUND)])
        return ModelResponse([TextPart("not yet" if len(done) < 2 else "DONE")])

    step = Step("tidy", clerk(FunctionModel(reply), done), max_iterations=3, completion_signal="DONE")
    pipeline = Pipeline([step])
    first = Runner(pipeline).run_sync("x")
    second = resumed(pipeline, first, "approve")
    assert second.status is RunStatus.PAUSED
    assert resumed(pipeline, second, "approve").output == "DONE"
    assert len(done) == 2


def protected(path: str) -> str:
    """Remove a file."""
    return f"removed {path}"


remove_file = Tool(protected, requires_approval=True)


def test_a_tool_of_an_agent_in_a_blueprint_may_need_an_approval() -> None:
    spec = AgentSpec(model="local:x", tools=(f"{__name__}:remove_file",))

    class Models:
        async def model(self, name: str) -> Model:
            return Clerk(("protected", {"path": "x"})).model

    pipeline = Pipeline([Step("tidy", spec)])
    import asyncio

    run = Runner(pipeline, models=Models()).run_sync("x")
    assert run.paused is not None
    assert asyncio.run(Runner(pipeline, models=Models()).resume(run.paused, "approve")).output == "removed x"


def test_a_tool_that_wants_another_try_is_not_paused_for() -> None:
    tries: list[int] = []

    def flaky(n: int) -> str:
        tries.append(n)
        if len(tries) == 1:
            raise ModelRetry("again")
        return "ok"

    def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse([TextPart("done")] if len(tries) > 1 else [ToolCallPart("flaky", {"n": 1})])

    assert Runner(Step("tidy", Agent(FunctionModel(reply), tools=[flaky]))).run_sync("x").output == "done"


def test_the_state_of_another_pipeline_is_rejected() -> None:
    done: list[Any] = []
    paused = Runner(Step("tidy", clerk(Clerk(REFUND).model, done))).run_sync("x")
    with pytest.raises(UsageError, match="a different pipeline"):
        resumed(Pipeline([Step("tidy", clerk(Clerk(REFUND).model, done), input="other")]), paused, "approve")
