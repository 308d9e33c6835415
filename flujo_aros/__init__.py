"""Every LLM step ends in a typed value you can trust, or in an honest refusal; never in a silent guess.

Reading needs no host: `from flujo_aros import read` does not import an agent framework. What does (`Aros`, pipelines)
is imported when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from flujo_aros.contract.output import Output
from flujo_aros.errors import (
    ArosError,
    BlueprintError,
    ContractError,
    LocalModelError,
    OutputError,
    TemplateError,
    UsageError,
)
from flujo_aros.events import Observer, observing
from flujo_aros.outcome import Accepted, Degraded, Issue, Outcome, Reason, Rejected, Repair, Risk, Trust
from flujo_aros.reading.read import Limits, read
from flujo_aros.recovery.ladder import Ladder
from flujo_aros.recovery.stages.constrain import Constrain
from flujo_aros.recovery.stages.degrade import Degrade
from flujo_aros.recovery.stages.llm_repair import LlmRepair
from flujo_aros.usage import Usage

if TYPE_CHECKING:
    from flujo_aros.agents.agent import AgentSpec
    from flujo_aros.agents.capability import Aros
    from flujo_aros.agents.record import recording
    from flujo_aros.blueprint.load import load_blueprint
    from flujo_aros.pipeline.flow import Pipeline
    from flujo_aros.pipeline.ledger import RunResult, RunStatus, StepResult, StepStatus
    from flujo_aros.pipeline.runner import Runner
    from flujo_aros.pipeline.step import Call, Step

__all__ = [
    "Accepted",
    "AgentSpec",
    "Aros",
    "ArosError",
    "BlueprintError",
    "Call",
    "Constrain",
    "ContractError",
    "Degrade",
    "Degraded",
    "Issue",
    "Ladder",
    "Limits",
    "LlmRepair",
    "LocalModelError",
    "Observer",
    "Outcome",
    "Output",
    "OutputError",
    "Pipeline",
    "Reason",
    "Rejected",
    "Repair",
    "Risk",
    "RunResult",
    "RunStatus",
    "Runner",
    "Step",
    "StepResult",
    "StepStatus",
    "TemplateError",
    "Trust",
    "Usage",
    "UsageError",
    "load_blueprint",
    "observing",
    "read",
    "recording",
]

_LAZY = {
    "AgentSpec": "flujo_aros.agents.agent",
    "Aros": "flujo_aros.agents.capability",
    "Call": "flujo_aros.pipeline.step",
    "Pipeline": "flujo_aros.pipeline.flow",
    "RunResult": "flujo_aros.pipeline.ledger",
    "RunStatus": "flujo_aros.pipeline.ledger",
    "Runner": "flujo_aros.pipeline.runner",
    "Step": "flujo_aros.pipeline.step",
    "StepResult": "flujo_aros.pipeline.ledger",
    "StepStatus": "flujo_aros.pipeline.ledger",
    "load_blueprint": "flujo_aros.blueprint.load",
    "recording": "flujo_aros.agents.record",
}


def __getattr__(name: str) -> object:
    module = _LAZY.get(name)
    if module is None:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted(__all__)
