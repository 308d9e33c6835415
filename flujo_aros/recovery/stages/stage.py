"""What every stage of a ladder is: frozen data that says which rejections it answers, and a plan that may ask."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from flujo_aros.outcome import Reason
from flujo_aros.recovery.plan import Past, Task


class Rung(BaseModel):
    """The common part of all stages: immutable, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    answers: ClassVar[frozenset[Reason]]
    """The reasons for a rejection that this stage can do something about."""
    fallback: ClassVar[bool] = True
    """Whether it counts towards `Ladder.max_stages`."""
    asks: ClassVar[bool] = True
    """Whether it makes model calls, so that the limits for calls, cost and time are its limits."""
    sees_question: ClassVar[bool] = False
    """Whether it puts the question of the run again; any other stage knows the reply alone."""

    def passes(self, task: Task[Any], past: Past) -> str | None:  # noqa: ARG002 (for stages to say more)
        """Why there is nothing that this stage could do here although it answers the reason, or None."""
        return None

    def enforces(self, task: Task[Any], past: Past) -> bool:  # noqa: ARG002 (for stages to say more)
        """Whether it would put the question of the run again with the schema enforced, as it was not yet."""
        return False
