"""The stage that puts the question to another model."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeVar

from pydantic import Field

from flujo_aros.outcome import Outcome, Reason, Rejected
from flujo_aros.recovery.plan import Ask, Past, Plan, ReadReply, Rung, Task
from flujo_aros.recovery.prompts import form_prompt

T = TypeVar("T")


class Escalate(Rung):
    """Ask another model the question of the run: its messages, without its tools and without the failing replies."""

    # Not TOO_LARGE: the reply was read, and is more than the limits allow.
    answers: ClassVar[frozenset[Reason]] = frozenset(Reason) - {Reason.TOO_LARGE}

    sees_question: ClassVar[bool] = True

    stage: Literal["escalate"] = "escalate"
    model: str = Field(min_length=1)
    """The model to ask: a name of pydantic-ai, or `local:NAME`."""
    attempts: int = Field(default=1, ge=1, le=10)
    """How often to ask it."""

    def climb(self, task: Task[T], past: Past, read: ReadReply[T]) -> Plan[T]:
        """Ask until a reply is accepted or the attempts are used up."""
        outcome: Outcome[T] = past.latest
        for attempt in range(1, self.attempts + 1):
            prompt = form_prompt(task.contract)
            reply = yield Ask(prompt, self.stage, attempt, task.contract, way="conversation", model=self.model)
            outcome = read(reply)
            if not isinstance(outcome, Rejected):
                return outcome
        return outcome
