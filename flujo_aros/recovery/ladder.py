"""The ladder: what to do, stage by stage and within a budget, when a reply cannot be used."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Final, TypeAlias, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, field_validator

from flujo_aros.contract.output import Contract
from flujo_aros.json_data import is_dict
from flujo_aros.outcome import Outcome, Reason, Rejected
from flujo_aros.recovery.budget import Limits
from flujo_aros.recovery.climb import Climb
from flujo_aros.recovery.plan import Past, Plan, Reply, Task
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

T = TypeVar("T")

AnyStage: TypeAlias = (
    Resume | LlmRepair | Patch | Retry | Constrain | Escalate | Extract | Simplify | Salvage | Synthesize | Degrade
)
Stage: TypeAlias = Annotated[AnyStage, Field(discriminator="stage")]

OTHER_NAMES: Final = {"stricter_reprompt": "retry", "llm": "llm_repair", "extractor": "extract"}
"""Names that stages have elsewhere."""
_READING: Final = ("read", "deterministic")
"""Names of what every climb begins with, and that is therefore no stage."""


class Ladder(BaseModel):
    """The ordered stages that a rejected reply goes through until one gives a value, and what they may spend.

    A stage that is not listed does not happen; a stage that does not answer the reason of the rejection is passed
    over. The limits are checked before each stage and before each model call, and what they refuse is recorded.
    As data, a stage is an object or just its name: `["llm_repair", {"stage": "retry", "attempts": 2}]`.

    >>> Ladder(stages=(LlmRepair(attempts=1),)).max_calls
    6
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    stages: tuple[Stage, ...] = (Resume(), LlmRepair(attempts=2), Retry(), Extract(), Degrade())
    max_stages: int = Field(default=3, ge=0)
    """How many fallback stages may run; `resume` and `llm_repair` are not counted."""
    max_calls: int = Field(default=6, ge=0)
    """How many model calls all stages together may make in one run of an agent, beyond the agent's own."""
    max_cost: Decimal | None = Field(default=None, ge=0)
    """How many US dollars all stages together may spend; a call whose price is not known counts as nothing."""
    deadline: float | None = Field(default=None, ge=0)
    """How many seconds after the first reply a stage may still make a call; a call under way is not broken off."""
    adaptive: bool = False
    """Order the stages by what they have achieved before, and leave out those that never gave a value."""

    @field_validator("stages", mode="before")
    @classmethod
    def _by_name(cls, value: object) -> object:
        """Stages given by their names alone, and by the names that they have elsewhere."""
        if not isinstance(value, (list, tuple)):
            return value
        named = [_as_stage(part) for part in cast("list[object]", value)]
        return tuple(part for part in named if not (is_dict(part) and part.get("stage") in _READING))

    def answers(self, reason: Reason) -> bool:
        """Whether any stage can do something about such a rejection."""
        return any(reason in stage.answers for stage in self.stages)

    def asks_after(self, rejected: Rejected, contract: Contract[Any]) -> bool:
        """Whether a stage would make a call because of such a rejection."""
        task, past = Task(contract), Past.of(rejected)
        asking = (stage for stage in self.stages if stage.asks and rejected.reason in stage.answers)
        return self.max_calls > 0 and any(stage.passes(task, past) is None for stage in asking)

    def climb(self, task: Task[T], first: Reply, read: Outcome[T] | None = None) -> Plan[T]:
        """The whole of recovery as a plan: read the first reply, then stage after stage until there is a value.

        `read` is what the first reply reads as, where the caller has done that (`read_first`).

        Ends with the accepted value (its `origin` names the stage), with `Degraded`, or with the first rejection: the
        later ones are about repairs, not about the answer. For a tagged contract it is the latest answer's, since
        every one of its attempts is an answer. A rejection carries all attempts.

        Raises `UsageError` for a deadline without a clock.
        """
        limits = Limits(self.max_stages, self.max_calls, self.max_cost, self.deadline)
        return (yield from Climb(task, limits, adaptive=self.adaptive).over(self.stages, first, read))


def _as_stage(part: object) -> Any:
    if isinstance(part, str):
        return {"stage": OTHER_NAMES.get(part, part)}
    if is_dict(part) and part.get("stage") in OTHER_NAMES:
        return {**part, "stage": OTHER_NAMES[str(part["stage"])]}
    return part
