"""`processing` determines how the typed output of a step's Python agent is read, as for a spec."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ToolCallPart

from flujo_aros import AgentSpec, Aros, Processing, Runner, Step, UsageError
from flujo_aros.pipeline.results import RunResult
from flujo_aros.pipeline.step import Coercion
from flujo_aros.testing import ScriptedModel


class Order(BaseModel):
    sku: str
    qty: int


class Note(BaseModel):
    text: str


DAMAGED = "{sku: 'lamp', qty: '2'}"
BY_CALL = ToolCallPart("final_result", {"sku": "lamp", "qty": "2"})


def run(agent: Any, reply: Any = DAMAGED, **processing: Any) -> RunResult[Any]:
    model = ScriptedModel(then=reply)
    if agent == "spec":
        step = Step("read", AgentSpec(model="openai:x"), Order, processing=Processing(**processing))
        return Runner(step, models=model).run_sync("x")
    own: Agent[None, Order] = Agent(model, output_type=Order, capabilities=[Aros()] if agent == "own with Aros" else [])
    return Runner(Step("read", own, processing=Processing(**processing))).run_sync("x")


@pytest.mark.parametrize("agent", ["own", "own with Aros"])
@pytest.mark.parametrize(
    "processing",
    [
        {},
        {"risk": "lossless"},
        {"aop": "off"},
        {"coercion": Coercion(tolerant_level=0)},
        {"risk": "lossless", "stages": ("retry",)},
        {"risk": "lossless", "max_calls": 0},
        {"enforcement": "validate"},
    ],
    ids=str,
)
def test_an_agent_of_your_own_is_read_as_a_spec_is(agent: str, processing: dict[str, Any]) -> None:
    mine, spec = run(agent, **processing), run("spec", **processing)
    assert (mine.status, mine.trust, mine.usage.requests) == (spec.status, spec.trust, spec.usage.requests)


def test_a_lossless_step_rejects_a_converted_tool_call() -> None:
    assert run("own", BY_CALL).output == Order(sku="lamp", qty=2)
    assert run("own", BY_CALL, risk="lossless").status.value in ("failed", "degraded")


def test_processing_that_cannot_apply_to_several_types_of_output_is_an_error() -> None:
    agent: Agent[None, Any] = Agent(ScriptedModel(then=DAMAGED), output_type=[Order, Note])
    with pytest.raises(UsageError, match="cannot change how several output types or functions are read"):
        Runner(Step("read", agent, processing=Processing(risk="lossless"))).run_sync("x")


def test_enforcement_off_for_an_agent_with_an_output_type_is_an_error() -> None:
    agent: Agent[None, Any] = Agent(ScriptedModel(then=DAMAGED), output_type=Order)
    with pytest.raises(UsageError, match="no effect on an agent with an output type; set its output_type=str"):
        Step("read", agent, processing=Processing(enforcement="off"))
