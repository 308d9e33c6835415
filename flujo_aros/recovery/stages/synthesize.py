"""The stage that puts a minimal block before a reply which has none, and says so."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, ClassVar, Final, Literal, TypeVar, cast

from flujo_aros.contract import Block, BlockContract, Event, EventContract, judge
from flujo_aros.outcome import Accepted, Outcome, Reason, Rejected, Repair, Risk, Trust
from flujo_aros.reading.read import read
from flujo_aros.recovery.plan import Past, Plan, ReadReply, Rung, Task

T = TypeVar("T")


NO_CONTEST: Final = "no_contest"
"""The mark of a verdict without a winner, and the kind of its event where there is such a kind."""


class Synthesize(Rung):
    """Make up what a reply should have had, and say so: the block before its prose, or a verdict without a winner.

    A block has every key, with an empty text; the prose is the model's own, untouched. A verdict whose winner fails the
    checks of its event contract names none, with `no_contest: true`. The trust is `SYNTHESIZED`, never more. Nothing is
    made up around words that were cut: that would hide the cut.
    """

    answers: ClassVar[frozenset[Reason]] = frozenset(Reason) - {Reason.PROVIDER, Reason.TOO_LARGE, Reason.TRUNCATED}
    asks: ClassVar[bool] = False

    stage: Literal["synthesize"] = "synthesize"

    def passes(self, task: Task[Any], past: Past) -> str | None:
        """Neither a block nor a verdict."""
        contract = task.contract
        if isinstance(contract, BlockContract):
            return None
        names_winner = any(issue.path.startswith("$.winner") for issue in past.spoken.issues)
        if isinstance(contract, EventContract) and (contract.is_verdict or names_winner):
            return None
        return "only a block, or a verdict without a winner, can be made up, and only openly"

    def climb(self, task: Task[T], past: Past, read: ReadReply[T]) -> Plan[T]:  # noqa: ARG002 (one shape for all stages)
        """Build it. A verdict is made of the latest answer that is an event; without any the rejection stays."""
        if isinstance(task.contract, BlockContract):
            return cast("Outcome[T]", _block(task.contract, past.current.text))
        contract = cast("EventContract", task.contract)
        latest = _undecided(past.spoken, contract)
        settled = _undecided(past.first, contract) if isinstance(latest, Rejected) else latest
        return cast("Outcome[T]", latest if isinstance(settled, Rejected) else settled)
        yield  # makes this a plan that asks nothing


def _block(contract: BlockContract, prose: str) -> Accepted[Block]:
    text = synthesized_text(contract, prose)
    made = Repair("synthesized", Risk.LOSSY, "$.fields", (0, 0), "", text[:80])
    return Accepted(Block(dict.fromkeys(contract.keys, ""), prose), Trust.SYNTHESIZED, "synthesize", (made,), text)


def _undecided(rejected: Rejected, contract: EventContract) -> Outcome[Event]:
    """The verdict of a rejected answer without its winner, which could not be settled; the rejection if it is none."""
    if rejected.reason is Reason.TRUNCATED:
        return rejected
    unjudged = replace(contract, checks=(), fields=tuple(name for name in contract.fields if name != "winner"))
    said = read(rejected.text, unjudged)
    if not isinstance(said, Accepted):
        return rejected
    event, _, cleaned = judge(said.value, contract.checks)  # what a check only cleans is clean here, too
    kind = NO_CONTEST if NO_CONTEST in contract.kinds else event.kind
    given = event.model_dump(exclude_unset=True)
    settled = Event.model_validate({**given, "kind": kind, "winner": None, NO_CONTEST: True})
    made = Repair("no-contest", Risk.LOSSY, "$.winner", (0, len(rejected.text)), str(event.winner), "null")
    repairs = (*said.repairs, *cleaned, made)
    return Accepted(settled, Trust.SYNTHESIZED, "synthesize", repairs, rejected.text)


def synthesized_text(contract: BlockContract, prose: str) -> str:
    """A reply with the minimal block of this contract before the prose."""
    block = json.dumps(dict.fromkeys(contract.keys, ""), ensure_ascii=False)
    return f"{block}\n\n{prose}" if prose.strip() else block
