"""What one climb may spend, and has spent: checked before each stage and before each model call."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from flujo_aros.usage import Usage


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a ladder; None: no limit."""

    max_stages: int
    max_calls: int
    max_cost: Decimal | None
    deadline: float | None


@dataclass(slots=True)
class Budget:
    """The limits of one climb, and what it has used so far."""

    limits: Limits
    calls: int = 0
    cost: Decimal = Decimal(0)
    fallbacks: int = 0
    refusal: str | None = None
    """Why the caller allows no call any more."""

    def take_back(self, refusal: str | None) -> None:
        """The latest call was not made; with a refusal none will be."""
        self.calls -= 1
        self.refusal = refusal

    def spend(self, usage: Usage) -> None:
        """One call came back."""
        self.cost += usage.cost or 0

    def against_stage(self) -> str | None:
        """Why no further fallback stage may run, or None."""
        most = self.limits.max_stages
        return f"max_stages is {most}, and as many fallback stages have run" if self.fallbacks >= most else None

    def against_call(self, seconds: float) -> str | None:
        """Why no further call may be made after so many seconds, or None."""
        limits = self.limits
        if self.refusal is not None:
            return self.refusal
        if self.calls >= limits.max_calls:
            return f"max_calls is {limits.max_calls}, and as many calls were made"
        if limits.max_cost is not None and self.cost >= limits.max_cost:
            return f"max_cost is ${limits.max_cost}, and ${self.cost} were spent"
        if limits.deadline is not None and seconds >= limits.deadline:
            return f"the deadline of {limits.deadline:g} s has passed"
        return None
