"""The stage that asks the model again, with the provider enforcing the schema this time."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeVar

from flujo_aros.outcome import Reason
from flujo_aros.recovery.plan import Ask, Past, Plan, ReadReply, Rung, Task, may_be_asked_otherwise

T = TypeVar("T")


class Constrain(Rung):
    """Ask the conversation again in the provider's own schema mode, where the model has one and was not asked so.

    One call, with the messages of the run and without its tools. For models that fail in prompted or tool mode: a
    grammar gives the form, and the model still has the question before it, so that nothing is made up from nothing.
    """

    # TRUNCATED too: a model that rambles up to its limit does not where a grammar lets it say the answer only.
    # PROVIDER only where another form was the trouble. Not REFUSED, TOO_LARGE: no form would change that.
    answers: ClassVar[frozenset[Reason]] = frozenset(
        {
            Reason.NO_JSON,
            Reason.MALFORMED,
            Reason.INVALID,
            Reason.AMBIGUOUS,
            Reason.ECHOED_SCHEMA,
            Reason.TRUNCATED,
            Reason.PROVIDER,
        }
    )

    sees_question: ClassVar[bool] = True

    stage: Literal["constrain"] = "constrain"

    def passes(self, task: Task[Any], past: Past) -> str | None:
        """No schema to enforce, no provider that could, or one that did already."""
        if past.current.reason is Reason.PROVIDER and not may_be_asked_otherwise(past.current):
            return "the provider could not be asked, in whatever form"
        if not task.contract.json_schema:
            return "there is no schema that a provider could enforce"
        if task.native == "on" or past.was_enforced:
            return "the provider was asked to enforce the schema already"
        return "the model cannot be made to follow this schema" if task.native == "no" else None

    def enforces(self, task: Task[Any], past: Past) -> bool:  # noqa: ARG002 (one shape for all stages)
        """Wherever it does not pass."""
        return task.native == "can"

    def climb(self, task: Task[T], past: Past, read: ReadReply[T]) -> Plan[T]:  # noqa: ARG002 (one shape for all stages)
        """One ask, read like any reply."""
        reply = yield Ask("", self.stage, 1, task.contract, way="constrained")
        return read(reply)
