"""The stage that gives up openly: the text as it was written, marked as no value."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeVar

from flujo_aros.outcome import Degraded, Reason
from flujo_aros.recovery.plan import Past, Plan, ReadReply, Rung, Task

T = TypeVar("T")


class Degrade(Rung):
    """Hand back the model's own text as `Degraded`, which is never success; without any text, the rejection stays."""

    answers: ClassVar[frozenset[Reason]] = frozenset(Reason)
    asks: ClassVar[bool] = False

    stage: Literal["degrade"] = "degrade"

    def passes(self, task: Task[Any], past: Past) -> str | None:  # noqa: ARG002 (one shape for all stages)
        """No text to hand back."""
        return None if past.current.text.strip() else "nothing was written that could be handed back"

    def climb(self, task: Task[T], past: Past, read: ReadReply[T]) -> Plan[T]:  # noqa: ARG002 (one shape for all stages)
        """End with the text of the first reply."""
        return Degraded(past.current.text, past.current)
        yield  # makes this a plan that asks nothing
