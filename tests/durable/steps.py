"""Steps for runs that are killed: each logs its executions in a file, and may kill its process."""

import os
from pathlib import Path

from pydantic import BaseModel
from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

from flujo_aros import Call, Human, Parallel, Pipeline, Step, idempotency_key
from flujo_aros.pipeline.model import PipelineStep


class Item(BaseModel):
    name: str
    qty: int


def steps(log: Path, die: str) -> list[PipelineStep]:
    """Return all steps; if `die` is `human`, including one that asks a person."""

    def note(what: str) -> None:
        with log.open("a", encoding="utf-8") as file:
            file.write(f"{what}\n")
        if what == die:
            os.kill(os.getpid(), 9)

    def answer(messages, info):
        repair = "OUTPUT" in str(messages)
        note("repair" if repair else "first")
        text = '{"name": "pen", "qty": 3}' if repair else "{'name': 'pen', 'qty': 'three of them'}"
        return ModelResponse(parts=[TextPart(text)])

    def step(name):
        def body(value):
            with log.with_name("keys").open("a", encoding="utf-8") as file:
                file.write(f"{name} {idempotency_key()}\n")
            note(name)
            return value

        return Call(name, function=body)

    ask = Step("ask", agent=Agent(FunctionModel(answer), name="ask"), contract=Item)
    fan = Parallel("fan", {"a": step("in")}, reduce=lambda values: (note("fan"), values["a"])[1])
    found: list[PipelineStep] = [step("before"), ask, fan, step("after")]
    return [*found, Human("approve", "Ship {{ previous_step }}?")] if die == "human" else found


def shop() -> Pipeline:
    """Return an agent whose tool needs `deps`."""

    def reply(messages: list[ModelMessage], _: object) -> ModelResponse:
        last = messages[-1].parts[-1]
        return ModelResponse(
            parts=[TextPart(last.content) if isinstance(last, ToolReturnPart) else ToolCallPart("price", {})]
        )

    agent = Agent(FunctionModel(reply), name="shop", deps_type=dict)

    @agent.tool
    def price(ctx: RunContext[dict[str, str]]) -> str:
        return ctx.deps["price"]

    return Pipeline([Step("shop", agent=agent)], name="shop")
