"""Which ladder suits a contract when nobody has said."""

from __future__ import annotations

from typing import Any, Final

from flujo_aros.contract.output import Contract
from flujo_aros.recovery.ladder import Ladder
from flujo_aros.recovery.stages.llm_repair import LlmRepair

_REPAIR: Final = Ladder(stages=(LlmRepair(attempts=2),))
_NOTHING: Final = Ladder(stages=())


def ladder_for(contract: Contract[Any]) -> Ladder:
    """Repair by a model call where the contract has a schema to repair towards; degrading to text is opt-in."""
    return _REPAIR if contract.json_schema else _NOTHING
