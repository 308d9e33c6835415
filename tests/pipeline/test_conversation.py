"""Steps that continue the previous conversation: in lists, loops and branches, and across a pause."""

from __future__ import annotations

import asyncio
import json

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage

from flujo_aros import Branch, Cached, Call, Human, Loop, Parallel, Pipeline, Runner, RunStatus, Step, UsageError

from .kinds_lab import fail
from .test_step import Seen


def test_a_step_may_continue_the_conversation_of_the_previous_steps():
    seen = Seen("Kiel", "Oslo", "Both.")
    agent = Agent(seen.model)
    last = Step("c", agent, input="And now?", use_history=True)
    run = Runner(Step("a", agent, input="First?") >> Step("b", agent, input="Second?") >> last).run_sync("x")
    assert run.output == "Both."
    assert [len(messages) for messages in seen.messages] == [1, 1, 5]
    said = [str(part.content) for message in seen.messages[2] for part in message.parts]  # type: ignore[union-attr]  # texts here
    assert said == ["First?", "Kiel", "Second?", "Oslo", "And now?"]


def test_nested_steps_continue_the_conversation_around_them():
    seen = Seen("Kiel", "one", "two")
    inner = [Step("b", Agent(seen.model), input="b?"), Step("c", Agent(seen.model), input="c?", use_history=True)]
    fan = Parallel("fan", {"only": inner})
    assert Runner(Step("a", Agent(seen.model), input="a?") >> fan).run_sync("x").status is RunStatus.COMPLETED
    assert [len(messages) for messages in seen.messages] == [1, 1, 5]


def test_a_conversation_cannot_be_cached():
    with pytest.raises(UsageError, match="a step with use_history cannot be cached"):
        Cached("kept", Step("b", Agent(Seen("hi").model), use_history=True))


def said_to(messages: list[ModelMessage]) -> list[str]:
    return [str(part.content) for message in messages for part in message.parts]  # type: ignore[union-attr]  # texts here


def test_a_loop_iteration_continues_earlier_iterations_and_later_steps_continue_all_of_them():
    seen = Seen("hello", "one", "two", "bye")
    agent = Agent(seen.model)
    talk = Loop("talk", Step("t", agent, use_history=True), max_loops=2)
    last = Step("c", agent, input="End.", use_history=True)
    assert Runner(Step("a", agent) >> talk >> last).run_sync("x").output == "bye"
    assert said_to(seen.messages[2]) == ["x", "hello", "hello", "one", "one"]
    assert said_to(seen.messages[3]) == ["x", "hello", "hello", "one", "one", "two", "End."]


def test_a_conversation_includes_the_selected_branch_and_the_fallback():
    seen = Seen("hello", "taken", "bye")
    agent = Agent(seen.model)
    route = Branch("r", {"true": Step("b", agent, use_history=True)}, condition="true")
    guarded = Call("g", function=fail, fallback=route)
    assert Runner(Step("a", agent) >> guarded >> Step("c", agent, use_history=True)).run_sync("x").output == "bye"
    assert said_to(seen.messages[2]) == ["x", "hello", "hello", "taken", "taken"]


def test_a_conversation_is_saved_with_a_paused_run_and_continues():
    """Each turn asks the person, and the model sees the whole conversation, in whichever process."""
    seen = Seen("Where to?", "When?", "Booked.")
    talk = Loop("talk", [Step("ai", Agent(seen.model), use_history=True), Human("you")], max_loops=2)
    pipeline = Pipeline([talk, Step("end", Agent(seen.model), use_history=True)])
    result = Runner(pipeline).run_sync("A trip, please.")
    for answer in ("Kiel", "Friday"):
        assert result.paused is not None
        saved = json.loads(json.dumps(result.paused.to_dict()))
        result = asyncio.run(Runner(pipeline).resume(saved, answer))
    assert (result.status, result.output) == (RunStatus.COMPLETED, "Booked.")
    assert said_to(seen.messages[2]) == ["A trip, please.", "Where to?", "Kiel", "When?", "Friday"]
    assert result.usage.requests == 3


def test_without_history_no_messages_are_saved():
    paused = Runner(Step("a", Agent(Seen("hi").model)) >> Human("ask", "Go on?")).run_sync("x").paused
    assert paused is not None
    assert all(step.messages == [] for step in paused.steps)
