"""Health: what a journal says about models, steps and stages over a stretch of time."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from flujo_aros.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class StepHealth:
    """How one step did. Steps of loops and maps count as one (`items/*/price`)."""

    pipeline: str
    step: str
    runs: int
    failed: int
    degraded: int
    seconds: float
    usage: Usage

    @property
    def trouble(self) -> float:
        """The share of runs without a value to trust."""
        return _share(self.failed + self.degraded, self.runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelHealth:
    """How one model did, over its first replies: what the ladder did to them is in the stages."""

    model: str
    calls: int
    faults: int
    replies: int
    rejected: int
    repaired: int
    wrapped: int
    usage: Usage

    @property
    def trouble(self) -> float:
        """The share of first replies that were rejected, or never came."""
        return _share(self.rejected + self.faults, self.replies + self.faults)

    @property
    def fallback_rate(self) -> float:
        """The share of replies that were prose, wrapped as the text of an event (`_raw_fallback`)."""
        return _share(self.wrapped, self.replies)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairHealth:
    """How often one repair was made at one place, in the replies of one model to one step."""

    code: str
    risk: str
    place: str
    step: str
    model: str
    replies: int
    """In how many replies it was made."""
    of: int
    """Of how many replies that could be read."""

    @property
    def share(self) -> float:
        """In which share of them."""
        return _share(self.replies, self.of)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageHealth:
    """How often one stage ran, saved the value, and what its calls cost."""

    stage: str
    ran: int
    accepted: int
    usage: Usage

    @property
    def success(self) -> float:
        """The share that gave a value."""
        return _share(self.accepted, self.ran)

    @property
    def cost_per_success(self) -> Decimal | None:
        """What one value that it saved has cost; None where no price is known, or none was saved."""
        return None if self.usage.cost is None or not self.accepted else self.usage.cost / self.accepted


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """One stretch of the time that was looked at."""

    start: float
    runs: int
    steps: int
    failed: int
    degraded: int
    readings: int
    rejected: int
    wrapped: int


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing that is worth doing, and why; `code` names the kind of it."""

    code: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What a journal says of a stretch of time."""

    since: float
    until: float
    runs: dict[str, int] = field(default_factory=dict[str, int])
    """By status."""
    steps: dict[str, int] = field(default_factory=dict[str, int])
    """By status."""
    trust: dict[str, int] = field(default_factory=dict[str, int])
    """Steps with a value, by trust."""
    usage: Usage
    replies: int
    """First replies that were read."""
    rejected: int
    repaired: int
    wrapped: int
    worst_steps: tuple[StepHealth, ...]
    models: tuple[ModelHealth, ...]
    repairs: tuple[RepairHealth, ...]
    stages: tuple[StageHealth, ...]
    trend: tuple[Trend, ...]
    advice: tuple[Advice, ...] = ()

    @property
    def rates(self) -> dict[str, float]:
        """The shares that a threshold may be set for."""
        steps = sum(self.steps.values())
        return {
            "failed": _share(self.steps.get("failed", 0), steps),
            "degraded": _share(self.steps.get("degraded", 0), steps),
            "rejected": _share(self.rejected, self.replies),
            "repaired": _share(self.repaired, self.replies),
            "fallback": _share(self.wrapped, self.replies),
        }

    @property
    def cost_per_success(self) -> Decimal | None:
        """What one completed run has cost; None where no price is known, or none completed."""
        done = self.runs.get("completed", 0)
        return None if self.usage.cost is None or not done else self.usage.cost / done


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
