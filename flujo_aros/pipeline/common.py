"""The options that every kind of step has, and what they promise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

from flujo_aros.outcome import Issue
from flujo_aros.pipeline.ledger import OnDegraded

if TYPE_CHECKING:
    from flujo_aros.pipeline.step import PipelineStep

Check: TypeAlias = Callable[[Any], "Issue | str | None"]
"""Judges a value: None if it is right, else what is wrong with it."""


@dataclass(frozen=True, slots=True)
class StepLimits:
    """The most that a step may use. Checked before each model call; None: no limit."""

    max_requests: int | None = None
    max_tokens: int | None = None
    max_cost: Decimal | None = None


@dataclass(frozen=True, kw_only=True)
class Common:
    """What every kind of step can be told, beside what makes its kind.

    `on_degraded`: "accept" counts text in place of a value as success, "fail" as failure; otherwise the run goes on
    with the text and ends `degraded`. `updates_context` merges the value, a mapping, into the context once the step
    has succeeded; `mergeable_output` is the author's word that it is one. `sink_to` puts the value at a dotted path
    of the context. `checks` judge the value; a failing one sends an agent's reply up its ladder. `fallback` runs in
    place of a step that failed. `retries` repeats the step after errors of the infrastructure (a rate limit, a server
    error, a broken connection), never after bad data. `timeout` is in seconds, all retries included.
    """

    on_degraded: OnDegraded | None = None
    updates_context: bool = False
    mergeable_output: bool | None = None
    sink_to: str | None = None
    checks: tuple[Check, ...] = ()
    fallback: PipelineStep | None = None
    usage_limits: StepLimits | None = None
    retries: int = 0
    timeout: float | None = None
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
