"""A program with durable runs, to be killed: `python program.py URL LOG WHERE [INPUT]`; WHERE says where it dies."""

import json
import os
import sys
from pathlib import Path

from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel

from flujo_aros import Call, Human, Parallel, Pipeline, Runner, Step, idempotency_key
from flujo_aros.durable import Durable
from flujo_aros.telemetry.journal import Journal

url, log, die, *rest = sys.argv[1:]
given = rest[0] if rest else "hi"


class Item(BaseModel):
    name: str
    qty: int


def note(what: str) -> None:
    with Path(log).open("a", encoding="utf-8") as file:
        file.write(f"{what}\n")
    if what == die:
        os.kill(os.getpid(), 9)


def answer(messages, info):
    repair = "OUTPUT" in str(messages)
    note("repair" if repair else "first")
    return ModelResponse(parts=[TextPart('{"name": "pen", "qty": 3}' if repair else "{'name': 'pen', 'qty': 'three'}")])


def step(name):
    def body(value):
        with Path(log).with_name("keys").open("a", encoding="utf-8") as file:
            file.write(f"{name} {idempotency_key()}\n")
        note(name)
        return value

    return Call(name, function=body)


ask = Step("ask", agent=Agent(FunctionModel(answer), name="ask"), contract=Item)
fan = Parallel("fan", {"a": step("in")}, reduce=lambda values: (note("fan"), values["a"])[1])
steps = [step("before"), ask, fan, step("after")]
if die == "human":
    steps.append(Human("approve", "Ship {{ previous_step }}?"))

if __name__ == "__main__":
    with Durable(url) as durable:
        journal = Journal(Path(log).with_name("journal.sqlite"))
        result = Runner(Pipeline(steps, name="demo"), engine=durable, journal=journal).run_sync(given)
        sys.stdout.write(json.dumps(result.to_dict()))
