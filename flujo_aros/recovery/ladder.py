"""The ladder: what to do, stage by stage and within a budget, when a reply cannot be used."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Annotated, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from flujo_aros.events import ReadFinished, StageFinished, StageStarted, emit, span
from flujo_aros.outcome import Accepted, Outcome, Reason, Rejected
from flujo_aros.recovery.plan import Ask, Plan, Reply, Task, advance, read_reply
from flujo_aros.recovery.stages.constrain import Constrain
from flujo_aros.recovery.stages.degrade import Degrade
from flujo_aros.recovery.stages.llm_repair import LlmRepair

T = TypeVar("T")

Stage: TypeAlias = Annotated[LlmRepair | Constrain | Degrade, Field(discriminator="stage")]


@dataclass(slots=True)
class _Spent:
    """What one climb has used so far."""

    calls: int = 0
    cost: Decimal = Decimal(0)
    fallbacks: int = 0


class Ladder(BaseModel):
    """The ordered stages that a rejected reply goes through until one gives a value, and what they may spend.

    A stage that is not listed does not happen; a stage that does not answer the reason of the rejection is passed
    over. The limits are checked before each model call.

    >>> Ladder(stages=(LlmRepair(attempts=1),)).max_calls
    6
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    stages: tuple[Stage, ...] = (LlmRepair(attempts=2), Degrade())
    max_stages: int = Field(default=3, ge=0)
    """How many fallback stages may run; `llm_repair` is not counted."""
    max_calls: int = Field(default=6, ge=0)
    """How many model calls all stages together may make, beyond the one that gave the first reply."""
    max_cost: Decimal | None = Field(default=None, ge=0)
    """How many US dollars all stages together may spend; a call whose price is not known counts as nothing."""

    def answers(self, reason: Reason) -> bool:
        """Whether any stage can do something about such a rejection."""
        return any(reason in stage.answers for stage in self.stages)

    def climb(self, task: Task[T], first: Reply) -> Plan[T]:
        """The whole of recovery as a plan: read the first reply, then stage after stage until there is a value.

        Ends with the accepted value (its `origin` names the stage), with `Degraded`, or with the first rejection:
        the later ones are about repairs, not about the answer.
        """
        outcome = _read(first, task, "first")
        if not isinstance(outcome, Rejected):
            return outcome
        past: tuple[Rejected, ...] = (outcome,)
        spent = _Spent()
        for stage in self.stages:
            if past[0].reason not in stage.answers or (stage.fallback and spent.fallbacks >= self.max_stages):
                continue
            spent.fallbacks += stage.fallback
            outcome = yield from self._climb_stage(stage, task, past, spent)
            if isinstance(outcome, Accepted):
                return replace(outcome, origin=stage.stage)
            if not isinstance(outcome, Rejected):
                return outcome
            past += (outcome,)
        return past[0]

    def _climb_stage(
        self, stage: LlmRepair | Constrain | Degrade, task: Task[T], past: tuple[Rejected, ...], spent: _Spent
    ) -> Plan[T]:
        name, before = stage.stage, spent.calls
        ended, reason = "interrupted", None
        with span(StageStarted(stage=name, reason=past[0].reason.value)):
            try:
                plan = stage.climb(task, past, lambda reply: _read(reply, task, name))
                outcome = yield from self._within_limits(plan, past[-1], spent)
                ended, reason = outcome.kind, outcome.reason.value if isinstance(outcome, Rejected) else None
            finally:
                calls = spent.calls - before
                emit(StageFinished(stage=name, outcome=ended, reason=reason, calls=calls))
        return outcome

    def _within_limits(self, plan: Plan[T], rejected: Rejected, spent: _Spent) -> Plan[T]:
        with closing(plan):
            step = advance(plan)
            while isinstance(step, Ask):
                if spent.calls >= self.max_calls or (self.max_cost is not None and spent.cost >= self.max_cost):
                    return rejected
                spent.calls += 1
                reply = yield step
                spent.cost += reply.usage.cost or 0
                step = advance(plan, reply)
            return step


def _read(reply: Reply, task: Task[T], stage: str) -> Outcome[T]:
    outcome = read_reply(reply, task.contract)
    emit(
        ReadFinished(
            stage=stage,
            outcome=outcome.kind,
            trust=None if isinstance(outcome, Rejected) else outcome.trust.value,
            reason=outcome.reason.value if isinstance(outcome, Rejected) else None,
            repairs=tuple(outcome.repairs) if isinstance(outcome, Accepted) else (),
            issues=outcome.issues if isinstance(outcome, Rejected) else (),
            schema_hash=task.contract.fingerprint,
            contract=task.contract,
            text=reply.text,
            capture=task.capture,
        )
    )
    return outcome
