"""The idempotency key of an effect is the same for the same step of the same run, and otherwise different."""

import pytest
from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from flujo_aros import Call, Loop, Map, Pipeline, Runner, Step, UsageError, idempotency_key


def keys_of(*run_ids: str) -> list[str]:
    keys: list[str] = []

    def note(value: object) -> object:
        keys.append(idempotency_key())
        return value

    steps = [
        Call("one", function=note),
        Map("each", Call("item", function=note), iterable_input="context.numbers"),
        Loop("turns", Call("turn", function=note), max_loops=2),
    ]
    for run_id in run_ids:
        Runner(Pipeline(steps)).run_sync("x", {"numbers": [1, 1]}, run_id=run_id)
    return keys


def test_each_step_item_and_iteration_of_each_run_has_its_own_key() -> None:
    keys = keys_of("a", "b")
    assert len(set(keys)) == len(keys) == 10
    assert set(keys_of("a")) < set(keys)


def test_a_retry_asks_with_the_key_of_the_first_attempt() -> None:
    keys: list[str] = []

    def flaky(_: object) -> str:
        keys.append(idempotency_key())
        if len(keys) == 1:
            raise ConnectionError("reset by peer")
        return "done"

    async def at_once(_: float) -> None: ...

    assert Runner(Call("flaky", function=flaky, retries=1), sleep=at_once).run_sync("x").output == "done"
    assert len(keys) == 2
    assert len(set(keys)) == 1


def test_parts_distinguish_the_effects_of_one_step_such_as_the_calls_of_tools() -> None:
    keys: list[str] = []

    def answer(messages, info):
        calls = [ToolCallPart("pay", {"amount": n}, tool_call_id=f"call-{n}") for n in (1, 2)]
        return ModelResponse(parts=calls if len(messages) == 1 else [TextPart("paid")])

    agent = Agent(FunctionModel(answer))

    @agent.tool
    def pay(ctx: RunContext[None], amount: int) -> str:
        keys.append(idempotency_key(ctx.tool_call_id))
        assert idempotency_key() == idempotency_key()
        return f"paid {amount}"

    for _ in range(2):
        Runner(Step("pay", agent=agent)).run_sync("x", run_id="order-17")
    assert len(keys) == 4
    assert len(set(keys)) == 2


def test_there_is_no_idempotency_key_outside_a_run() -> None:
    with pytest.raises(UsageError, match="outside a run"):
        idempotency_key()
