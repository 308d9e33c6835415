"""An ensemble with an owl, a fox whose refunds need approval, and a cat that is called."""

from __future__ import annotations

import json
from typing import Any

from pydantic_ai.messages import ModelResponse, ToolCallPart

from flujo_aros import AgentSpec, Ensemble, EventLog, Manifest, Runner
from flujo_aros.testing import ScriptedModel

TOOLS = """
from pydantic_ai import Tool

orders = []


def pay(order: str) -> str:
    orders.append(order)
    return "paid"


refund = Tool(pay, name="refund", requires_approval=True)
"""


def shop(model: ScriptedModel, *, log: EventLog | None = None, engine: Any = None) -> Runner:
    owl = Manifest(name="owl", persona="You ask.", subscribes_to=("run.started", "fox.said"), may_emit=("owl.said",))
    fox = Manifest(
        name="fox", persona="You pay.", subscribes_to=("owl.said",), may_emit=("fox.said",), model_profile="trusted"
    )
    cat = Manifest(name="cat", persona="You come.", subscribes_to=("cat.called",), may_emit=("cat.said",))
    profiles = {"default": "local:m", "trusted": AgentSpec(model="local:m", tools=["wood_tools:refund"])}
    step = Ensemble("wood", cast=[cat, owl, fox], profiles=profiles, log=log, turns=4)
    return Runner(step, models=model, engine=engine)


def refund(order: str) -> ModelResponse:
    return ModelResponse(parts=[ToolCallPart("refund", {"order": order})])


def line(text: str, kind: str) -> str:
    return json.dumps({"kind": kind, "text": text})
