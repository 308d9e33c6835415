"""The stage that gives up openly: the text as it was written, marked as no value."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeVar

from flujo_aros.outcome import Degraded, Reason, Rejected
from flujo_aros.recovery.plan import Plan, ReadReply, Task
from flujo_aros.recovery.stages.stage import Rung

T = TypeVar("T")


class Degrade(Rung):
    """Hand back the model's own text as `Degraded`, which is never success; without any text, the rejection stays."""

    answers: ClassVar[frozenset[Reason]] = frozenset(Reason)

    stage: Literal["degrade"] = "degrade"

    def climb(self, task: Task[T], past: tuple[Rejected, ...], read: ReadReply[T]) -> Plan[T]:  # noqa: ARG002 (one shape for all stages)
        """End with the text of the first reply."""
        first = past[0]
        return Degraded(first.text, first) if first.text.strip() else first
        yield  # makes this a plan that asks nothing
