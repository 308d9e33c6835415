"""The stage that asks the model again, with the provider enforcing the schema this time."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeVar

from flujo_aros.outcome import Issue, Reason, Rejected
from flujo_aros.recovery.plan import Ask, Plan, ReadReply, Task
from flujo_aros.recovery.stages.stage import Rung

T = TypeVar("T")


class Constrain(Rung):
    """Ask the conversation again in the provider's own schema mode, where the model has one and was not asked so.

    One call, with the messages of the run and without its tools. For models that fail in prompted or tool mode: a
    grammar gives the form, and the model still has the question before it, so that nothing is made up from nothing.
    """

    # TRUNCATED too: a model that rambles up to its limit does not where a grammar lets it say the answer only.
    # Not REFUSED, PROVIDER, TOO_LARGE: no form would change that.
    answers: ClassVar[frozenset[Reason]] = frozenset(
        {
            Reason.NO_JSON,
            Reason.MALFORMED,
            Reason.INVALID,
            Reason.AMBIGUOUS,
            Reason.ECHOED_SCHEMA,
            Reason.TRUNCATED,
        }
    )

    stage: Literal["constrain"] = "constrain"

    def climb(self, task: Task[T], past: tuple[Rejected, ...], read: ReadReply[T]) -> Plan[T]:
        """One ask, read like any reply."""
        if not task.contract.json_schema:
            issue = Issue("$", "no_schema", "there is no schema that a provider could enforce")
            return Rejected(past[0].reason, (issue,), past[0].text)
        reply = yield Ask("", self.stage, 1, task.contract, constrained=True)
        return read(reply)
