"""The stage that puts a minimal block before a reply which has none, and says so."""

from __future__ import annotations

import json
from typing import Any, ClassVar, Literal, TypeVar, cast

from flujo_aros.contract.output import BlockContract
from flujo_aros.contract.payload import Block
from flujo_aros.outcome import Accepted, Reason, Repair, Risk, Trust
from flujo_aros.recovery.plan import Past, Plan, ReadReply, Task
from flujo_aros.recovery.stages.stage import Rung

T = TypeVar("T")


class Synthesize(Rung):
    """Give the reply the block that it should have begun with: every key, with an empty text. Block contracts only.

    The prose is that of the first reply, untouched. The trust of such a value is `SYNTHESIZED`, never more.
    """

    answers: ClassVar[frozenset[Reason]] = frozenset(Reason) - {Reason.PROVIDER, Reason.TOO_LARGE}
    asks: ClassVar[bool] = False

    stage: Literal["synthesize"] = "synthesize"

    def passes(self, task: Task[Any], past: Past) -> str | None:  # noqa: ARG002 (one shape for all stages)
        """No block contract."""
        return None if isinstance(task.contract, BlockContract) else "only a block can be made up, and only openly"

    def climb(self, task: Task[T], past: Past, read: ReadReply[T]) -> Plan[T]:  # noqa: ARG002 (one shape for all stages)
        """Build the block."""
        block = cast("BlockContract", task.contract)
        prose = past.first.text
        text = synthesized_text(block, prose)
        made = Repair("synthesized", Risk.LOSSY, "$.fields", (0, 0), "", text[:80])
        value = cast("T", Block(dict.fromkeys(block.keys, ""), prose))
        return Accepted(value, Trust.SYNTHESIZED, self.stage, (made,), text)
        yield  # makes this a plan that asks nothing


def synthesized_text(contract: BlockContract, prose: str) -> str:
    """A reply with the minimal block of this contract before the prose."""
    block = json.dumps(dict.fromkeys(contract.keys, ""), ensure_ascii=False)
    return f"{block}\n\n{prose}" if prose.strip() else block
