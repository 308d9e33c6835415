"""The seam between a run and a durable engine: what the run tells the engine, and what it gets back after a crash."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from flujo_aros.events import LiveEvent
    from flujo_aros.pipeline.ledger import RunLedger, Settlement, Slot
    from flujo_aros.pipeline.model import PipelineStep


class Recording(Protocol):
    """Keeps one run: each step before its work starts and after it has settled, and each of its model calls.

    A run that has none is not durable, and pays nothing.
    """

    @property
    def recorded(self) -> Mapping[str, Slot]:
        """The steps that had settled before this process took the run up, by name: they do not run again."""
        ...

    async def started(self, name: str, step: PipelineStep) -> None:
        """Keep that a step starts."""
        ...

    def calls_of(self, slot: Slot) -> AbstractContextManager[object]:
        """Record every model call inside the block as one of this step."""
        ...

    def plain(self, step: PipelineStep, settlement: Settlement[Any]) -> Settlement[Any]:
        """The settlement with a value that comes back from the record as the same value. Raises `UsageError`."""
        ...

    async def settled(self, slot: Slot, ledger: RunLedger) -> None:
        """Keep how a step has settled, and what that has changed for the steps inside it."""
        ...

    async def live(self, step: str, event: LiveEvent) -> None:
        """Keep a piece of a reply while it is written."""
        ...

    @property
    def is_live(self) -> bool:
        """Whether replies are to be streamed, so that others can watch them while they are written."""
        ...

    async def wait(self, name: str, seconds: float) -> None:
        """Wait before a retry. After a crash only what is left of the time is waited for."""
        ...
