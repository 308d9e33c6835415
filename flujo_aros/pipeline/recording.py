"""The interface between a run and a durable engine: what a run records, and what it restores after a crash."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from flujo_aros.events import LiveEvent
    from flujo_aros.pipeline.ledger import RunLedger, Settlement, Slot
    from flujo_aros.pipeline.model import PipelineStep


class Recording(Protocol):
    """Records one run: the start and the end of each step, and each model call.

    A run without one is not durable, and has no overhead.
    """

    @property
    def recorded(self) -> Mapping[str, Slot]:
        """The steps that settled before this process took over the run, by name. They do not run again."""
        ...

    async def started(self, name: str, step: PipelineStep) -> None:
        """Record that a step starts."""
        ...

    def calls_of(self, slot: Slot) -> AbstractContextManager[object]:
        """Record every model call inside the block as one of this step."""
        ...

    def plain(self, step: PipelineStep, settlement: Settlement[Any]) -> Settlement[Any]:
        """The settlement with a value that the record can restore unchanged. Raises `UsageError`."""
        ...

    async def settled(self, slot: Slot, ledger: RunLedger) -> None:
        """Record how a step settled, and how that changes its nested steps."""
        ...

    async def live(self, step: str, event: LiveEvent) -> None:
        """Record a part of a reply while it streams."""
        ...

    @property
    def is_live(self) -> bool:
        """Whether replies are to be streamed, so that others can watch them while they are written."""
        ...

    async def wait(self, name: str, seconds: float) -> None:
        """Wait before a retry. After a crash, only the remaining time is waited for."""
        ...
