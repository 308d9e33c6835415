"""The checks of an output that have to be awaited: each text is judged once, wherever it is heard of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from flujo_aros.contract import Check, Contract, Event, Judgement, judge_awaiting
from flujo_aros.host.envelope import Wire
from flujo_aros.outcome import Accepted, Issue, Outcome
from flujo_aros.reading.payload import is_settled, with_judgement
from flujo_aros.recovery import Reply, read_reply


@dataclass(frozen=True, slots=True)
class AwaitedChecks:
    """Judges what is read of replies, for a plan that never awaits: what the checks say goes into its next reply."""

    checks: Sequence[Check]
    wire: Wire
    _known: dict[str, Judgement[Any]] = field(default_factory=dict[str, Judgement[Any]])

    async def judged(self, outcome: Outcome[Any]) -> Outcome[Any]:
        """The outcome that the user sees, after the checks; a verdict that was left open is only cleaned."""
        if not self.checks or not isinstance(outcome, Accepted):
            return outcome
        if not is_settled(outcome):
            return with_judgement(outcome, await self._judgement(outcome))
        if not isinstance(outcome.value, Event):
            return outcome
        value, _, cleaned = await judge_awaiting(outcome.value, self.checks)
        return with_judgement(outcome, (value, (), cleaned))

    async def heard(self, reply: Reply, contract: Contract[Any]) -> Reply:
        """A reply to an ask for this contract, with what the checks have against it."""
        if not self.checks or self.wire.wanted is None or contract is not self.wire.contract:
            return reply
        outcome = read_reply(reply, contract)
        settled = self.wire.settled(outcome, None) if isinstance(outcome, Accepted) else outcome
        issues: tuple[Issue, ...] = ()
        if isinstance(settled, Accepted):
            _, issues, _ = await self._judgement(settled)
        return replace(reply, objections=(*reply.objections, *issues)) if issues else reply

    async def _judgement(self, outcome: Accepted[Any]) -> Judgement[Any]:
        known = self._known.get(outcome.text)
        if known is None:
            known = await judge_awaiting(outcome.value, self.checks)
            if self.wire.wanted is not None:
                self._known[outcome.text] = known
        return known
