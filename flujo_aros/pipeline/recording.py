"""The interface between a run and a durable engine: what a run hands over, and what it gets back after a crash."""

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
        """The steps that had settled before this process took the run up, by name: they do not run again."""
        ...

    async def started(self, name: str, step: PipelineStep) -> None:
        """Record that a step starts."""
        ...

    def calls_of(self, slot: Slot) -> AbstractContextManager[object]:
        """Record every model call inside the block as one of this step."""
        ...

    def plain(self, step: PipelineStep, settlement: Settlement[Any]) -> Settlement[Any]:
        """The settlement with a value that comes back from the record as the same value. Raises `UsageError`."""
        ...

    async def settled(self, slot: Slot, ledger: RunLedger) -> None:
        """Record how a step has settled, and what that changes for the steps inside it."""
        ...

    async def live(self, step: str, event: LiveEvent) -> None:
        """Record a piece of a reply while it streams."""
        ...

    @property
    def is_live(self) -> bool:
        """Whether replies are to be streamed, so that others can watch them while they are written."""
        ...

    async def wait(self, name: str, seconds: float) -> None:
        """Wait before a retry. After a crash only what is left of the time is waited for."""
        ...
