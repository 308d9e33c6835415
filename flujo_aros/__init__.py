"""Every LLM step ends in a typed value you can trust, or in an honest refusal; never in a silent guess."""

from flujo_aros.agents.capability import Aros
from flujo_aros.agents.record import recording
from flujo_aros.contract.output import Output
from flujo_aros.errors import ArosError, OutputError, UsageError
from flujo_aros.outcome import Accepted, Degraded, Issue, Outcome, Reason, Rejected, Repair, Risk, Trust
from flujo_aros.reading.read import Limits, read
from flujo_aros.recovery.ladder import Ladder
from flujo_aros.recovery.stages.degrade import Degrade
from flujo_aros.recovery.stages.llm_repair import LlmRepair
from flujo_aros.usage import Usage

__all__ = [
    "Accepted",
    "Aros",
    "ArosError",
    "Degrade",
    "Degraded",
    "Issue",
    "Ladder",
    "Limits",
    "LlmRepair",
    "Outcome",
    "Output",
    "OutputError",
    "Reason",
    "Rejected",
    "Repair",
    "Risk",
    "Trust",
    "Usage",
    "UsageError",
    "read",
    "recording",
]
