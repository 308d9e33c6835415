"""Every LLM step ends in a typed value you can trust, or in an honest refusal; never in a silent guess.

Reading needs no host: `from flujo_aros import read` does not import an agent framework. What does (`Aros`, pipelines,
the journal) is imported when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import flujo_aros.launch as _launch  # noqa: F401  # pyright: ignore[reportUnusedImport] - before anything that is imported from elsewhere
from flujo_aros.contract.checks import winner_in
from flujo_aros.contract.output import Output, with_checks
from flujo_aros.contract.payload import Block, Event
from flujo_aros.contract.signal import CompletionSignal
from flujo_aros.errors import (
    ArosError,
    Attempt,
    BlueprintError,
    ContractError,
    LimitReached,
    LocalModelError,
    OutputError,
    TemplateError,
    UsageError,
)
from flujo_aros.events import Observer, observing
from flujo_aros.outcome import Accepted, Degraded, Issue, Outcome, Reason, Rejected, Repair, Risk, Trust
from flujo_aros.reading.live import Partial
from flujo_aros.reading.normalize import normalize_json_text, parse_and_validate
from flujo_aros.reading.read import Limits, read
from flujo_aros.reading.stream import StreamReader
from flujo_aros.recovery.evidence import Evidence
from flujo_aros.recovery.ladder import Ladder
from flujo_aros.recovery.stages.constrain import Constrain
from flujo_aros.recovery.stages.degrade import Degrade
from flujo_aros.recovery.stages.escalate import Escalate
from flujo_aros.recovery.stages.extract import Extract
from flujo_aros.recovery.stages.llm_repair import LlmRepair
from flujo_aros.recovery.stages.patch import Patch
from flujo_aros.recovery.stages.resume import Resume
from flujo_aros.recovery.stages.retry import Retry
from flujo_aros.recovery.stages.salvage import Salvage
from flujo_aros.recovery.stages.simplify import Simplify
from flujo_aros.recovery.stages.synthesize import Synthesize
from flujo_aros.usage import Usage

if TYPE_CHECKING:
    from flujo_aros.agents.agent import AgentSpec
    from flujo_aros.agents.capability import Aros
    from flujo_aros.agents.record import recording
    from flujo_aros.blueprint.load import load_blueprint
    from flujo_aros.pipeline.bound import Bound, bound
    from flujo_aros.pipeline.branch import Branch
    from flujo_aros.pipeline.cached import Cached
    from flujo_aros.pipeline.common import StepLimits
    from flujo_aros.pipeline.condition import check
    from flujo_aros.pipeline.flow import Pipeline
    from flujo_aros.pipeline.human import Human
    from flujo_aros.pipeline.imports import Import, OutputMapping
    from flujo_aros.pipeline.loop import Loop, StateUpdate
    from flujo_aros.pipeline.map import Map
    from flujo_aros.pipeline.parallel import Parallel
    from flujo_aros.pipeline.pause import PausedRun
    from flujo_aros.pipeline.processing import Processing
    from flujo_aros.pipeline.results import RunResult, RunStatus, StepResult, StepStatus
    from flujo_aros.pipeline.runner import Runner
    from flujo_aros.pipeline.step import Call, Step
    from flujo_aros.pipeline.streaming import StreamEvent
    from flujo_aros.settings import Settings, current_settings
    from flujo_aros.telemetry.journal import Journal
    from flujo_aros.telemetry.logs import Logging
    from flujo_aros.telemetry.otel import OpenTelemetry

__all__ = [
    "Accepted",
    "AgentSpec",
    "Aros",
    "ArosError",
    "Attempt",
    "Block",
    "BlueprintError",
    "Bound",
    "Branch",
    "Cached",
    "Call",
    "CompletionSignal",
    "Constrain",
    "ContractError",
    "Degrade",
    "Degraded",
    "Escalate",
    "Event",
    "Evidence",
    "Extract",
    "Human",
    "Import",
    "Issue",
    "Journal",
    "Ladder",
    "LimitReached",
    "Limits",
    "LlmRepair",
    "LocalModelError",
    "Logging",
    "Loop",
    "Map",
    "Observer",
    "OpenTelemetry",
    "Outcome",
    "Output",
    "OutputError",
    "OutputMapping",
    "Parallel",
    "Partial",
    "Patch",
    "PausedRun",
    "Pipeline",
    "Processing",
    "Reason",
    "Rejected",
    "Repair",
    "Resume",
    "Retry",
    "Risk",
    "RunResult",
    "RunStatus",
    "Runner",
    "Salvage",
    "Settings",
    "Simplify",
    "StateUpdate",
    "Step",
    "StepLimits",
    "StepResult",
    "StepStatus",
    "StreamEvent",
    "StreamReader",
    "Synthesize",
    "TemplateError",
    "Trust",
    "Usage",
    "UsageError",
    "bound",
    "check",
    "current_settings",
    "load_blueprint",
    "normalize_json_text",
    "observing",
    "parse_and_validate",
    "read",
    "recording",
    "winner_in",
    "with_checks",
]

_LAZY = {
    "AgentSpec": "flujo_aros.agents.agent",
    "Aros": "flujo_aros.agents.capability",
    "Bound": "flujo_aros.pipeline.bound",
    "Branch": "flujo_aros.pipeline.branch",
    "Cached": "flujo_aros.pipeline.cached",
    "Call": "flujo_aros.pipeline.step",
    "Human": "flujo_aros.pipeline.human",
    "Import": "flujo_aros.pipeline.imports",
    "Journal": "flujo_aros.telemetry.journal",
    "Logging": "flujo_aros.telemetry.logs",
    "Loop": "flujo_aros.pipeline.loop",
    "Map": "flujo_aros.pipeline.map",
    "OpenTelemetry": "flujo_aros.telemetry.otel",
    "OutputMapping": "flujo_aros.pipeline.imports",
    "Parallel": "flujo_aros.pipeline.parallel",
    "PausedRun": "flujo_aros.pipeline.pause",
    "Pipeline": "flujo_aros.pipeline.flow",
    "Processing": "flujo_aros.pipeline.processing",
    "RunResult": "flujo_aros.pipeline.results",
    "RunStatus": "flujo_aros.pipeline.results",
    "Runner": "flujo_aros.pipeline.runner",
    "Settings": "flujo_aros.settings",
    "StateUpdate": "flujo_aros.pipeline.loop",
    "Step": "flujo_aros.pipeline.step",
    "StepLimits": "flujo_aros.pipeline.common",
    "StepResult": "flujo_aros.pipeline.results",
    "StepStatus": "flujo_aros.pipeline.results",
    "StreamEvent": "flujo_aros.pipeline.streaming",
    "bound": "flujo_aros.pipeline.bound",
    "check": "flujo_aros.pipeline.condition",
    "current_settings": "flujo_aros.settings",
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
