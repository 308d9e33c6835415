"""The stage retry: reports to the model what was wrong, in the conversation, and asks for the answer again."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeVar

from pydantic import Field

from flujo_aros.contract import Contract
from flujo_aros.outcome import Outcome, Reason, Rejected
from flujo_aros.reading.runaway import before_runaway, ran_away
from flujo_aros.recovery.fidelity import plain_value
from flujo_aros.recovery.plan import (
    SAYS_NOTHING,
    Ask,
    Past,
    Plan,
    ReadReply,
    Rung,
    Task,
    Way,
    may_be_asked_otherwise,
    may_be_whole_next_time,
)
from flujo_aros.recovery.prompts import form_prompt, plain_prompt, retry_prompt

T = TypeVar("T")


def _repeats_schemas(failing: Rejected) -> bool:
    """Whether a model has repeated the schema, or said nothing but notes about it to itself."""
    silent = any(issue.code == SAYS_NOTHING for issue in failing.issues)
    return silent or failing.reason is Reason.ECHOED_SCHEMA


def _prompt(contract: Contract[Any], failing: Rejected) -> str:
    return form_prompt(contract) if failing.reason is Reason.PROVIDER else retry_prompt(contract, failing)


class Retry(Rung):
    """Ask again in the same conversation: the failing reply, what was wrong with it, and a stricter instruction.

    Where the provider can enforce the schema, it does: plain words alone seldom help a small model. If it was not asked
    to before, and the schema rules out what was wrong, the question alone is asked again: feedback on a form that
    cannot be wrong any more would only cost. A model that repeats the schema is asked to answer in plain words instead,
    which `extract` makes a value of.
    """

    # Not TOO_LARGE: the next one would be as large. PROVIDER only where the form was the trouble. TRUNCATED only for a
    # model that runs away, and where the provider broke off: anything else would be cut again at the same place.
    answers: ClassVar[frozenset[Reason]] = frozenset(Reason) - {Reason.TOO_LARGE}

    sees_question: ClassVar[bool] = True

    stage: Literal["retry"] = "retry"
    attempts: int = Field(default=1, ge=1, le=100)
    """How often to ask. All attempts are one conversation."""
    native: bool = True
    """Ask with the schema enforced, where the provider can do that."""

    def passes(self, task: Task[Any], past: Past) -> str | None:
        """A cut reply, for the same question would be cut again; a filter or an error that no words change."""
        if past.current.reason is Reason.PROVIDER and not may_be_asked_otherwise(past.current):
            return "the provider could not be asked, in whatever form"
        if past.current.reason is Reason.REFUSED and any(i.code == "content_filter" for i in past.current.issues):
            return "the provider's filter has ended the reply"
        cut = past.current.reason is Reason.TRUNCATED
        once_more = (
            ran_away(past.current.text) or may_be_whole_next_time(past.current) or _repeats_question(self, task, past)
        )
        if cut and not once_more:
            return "the reply was cut: asked for again with the same budget, it would be cut again"
        return None

    def enforces(self, task: Task[Any], past: Past) -> bool:
        """Where the provider can, was not asked to, and the schema rules out what was wrong."""
        return _repeats_question(self, task, past)

    def climb(self, task: Task[T], past: Past, read: ReadReply[T]) -> Plan[T]:
        """Ask until a reply is accepted or the attempts are used up."""
        # After an error about the form there is nothing to correct: the question stands, and only the form changes.
        unanswered = past.spoken.reason is Reason.PROVIDER
        way: Way = "constrained" if self.native and not unanswered and task.enforces else "conversation"
        unchanged = _repeats_question(self, task, past)
        failing: Rejected = past.spoken
        outcome: Outcome[T] = failing
        turns: tuple[str, ...] = ()
        for attempt in range(1, self.attempts + 1):
            plainly = way == "conversation" and _repeats_schemas(failing)
            prompt = plain_prompt(task.contract) if plainly else _prompt(task.contract, failing)
            # What it has echoed would only be echoed again; and there is no sense in showing a reply without a word.
            wrote = before_runaway(failing.text)
            said = () if plainly or not wrote.strip() else (*turns, wrote)
            if unchanged and attempt == 1:
                prompt, said = "", ()
            reply = yield Ask(prompt, self.stage, attempt, task.contract, way=way, said=said)
            outcome = read(reply)
            if not isinstance(outcome, Rejected) or outcome.reason is Reason.PROVIDER:
                return outcome
            turns = (*said, prompt) if said else ()
            failing = outcome
        return outcome


def _repeats_question(retry: Retry, task: Task[Any], past: Past) -> bool:
    """Whether the question is repeated as it was: the schema is enforced for the first time, which rules out what was
    wrong. An objection of a check or of the user's own type is not ruled out by that: the model must be shown it.
    """
    failing = past.spoken
    if not retry.native or task.native != "can" or not task.enforces or past.was_enforced:
        return False
    return failing.reason is not Reason.PROVIDER and plain_value(failing.text, task.contract.json_schema) is None
