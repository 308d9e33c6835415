"""The stage that shows a model its failing output and asks for the same content in the right form."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import Field

from flujo_aros.outcome import Issue, Outcome, Reason, Rejected
from flujo_aros.recovery.fidelity import MADE_UP, grounded, keeping, plain_value
from flujo_aros.recovery.plan import Ask, Past, Plan, ReadReply, Rung, Task, Way
from flujo_aros.recovery.prompts import declined, repair_prompt
from flujo_aros.redaction import Vault

T = TypeVar("T")


class LlmRepair(Rung):
    """Ask for the failing output in the right form: the prompt holds that output, the issues, the schema, nothing else.

    Secrets are masked before the prompt leaves and put back in the reply. An output so long that the prompt would
    exceed `max_chars` is not asked about: a repair of half an output would lose the other half. A reply that changes
    what was right is rejected, and so is one that states what the output does not (`not-in-output`): this model has
    never seen the question. Where the question itself is shorter than the prompt, and a later stage asks it with the
    schema enforced, that is cheaper and surer, and no repair is asked for.
    """

    # Not TRUNCATED, ECHOED_SCHEMA, REFUSED, PROVIDER: what is missing would have to be invented. Not AMBIGUOUS: the
    # repair model does not know the question, so its choice would be a guess. Not TOO_LARGE: the prompt would be too.
    answers: ClassVar[frozenset[Reason]] = frozenset({Reason.NO_JSON, Reason.MALFORMED, Reason.INVALID})
    fallback: ClassVar[bool] = False

    stage: Literal["llm_repair"] = "llm_repair"
    attempts: int = Field(default=2, ge=1, le=10)
    """How often to ask. The second attempt sees the first one's corrected output, if there was one."""
    max_chars: int = Field(default=60_000, ge=1_000)
    """The longest prompt that may be sent."""
    model: str | None = None
    """The model to ask; by default that of the run."""

    def passes(self, task: Task[Any], past: Past) -> str | None:
        """No text, no schema to repair towards, or more text than a prompt may hold."""
        failing = past.current
        if not failing.text.strip():
            return "nothing was written that could be repaired"
        if not task.contract.json_schema:
            return "there is no schema to repair towards"
        longest = len(self._prompt(task, failing, Vault(failing.text, task.secrets, labelled=True)))
        if longest > self.max_chars:
            return f"the prompt would have {longest} characters, more than {self.max_chars}"
        if past.asks_again and plain_value(failing.text, task.contract.json_schema) is not None:
            return "its form is right: what is wrong with it, only who knows the question can tell"
        if past.asks_enforced and task.question_chars is not None and task.question_chars <= longest:
            return "the question is cheaper to ask again, with the schema enforced"
        return None

    def climb(self, task: Task[T], past: Past, read: ReadReply[T]) -> Plan[T]:
        """Ask until a reply is accepted, the attempts are used up, or the model says that it cannot be done."""
        failing = past.current
        outcome: Outcome[T] = failing
        way: Way = "bare_constrained" if self._is_enforced(task) else "bare"
        before = ""
        for attempt in range(1, self.attempts + 1):
            vault = Vault(failing.text, task.secrets, labelled=True)
            prompt = self._prompt(task, failing, vault)
            if len(prompt) > self.max_chars or prompt == before:
                return outcome
            before = prompt
            reply = yield Ask(prompt, self.stage, attempt, task.contract, way=way, model=self.model)
            refusal = declined(reply)
            if refusal is not None:
                return refusal
            answer = replace(reply, text=vault.restore(reply.text))
            outcome = read(answer, partial(_judged, failing=failing, source=past.current, task=task))
            if not isinstance(outcome, Rejected):
                return outcome
            if any(issue.code == MADE_UP for issue in outcome.issues):
                return outcome  # the output does not hold it: asked once more, something else would be made up
            # Only an output that holds the content may take the place of the failing one: prose would have lost it,
            # and so has one that changed what was right.
            if any(issue.code == "changed" for issue in outcome.issues):
                failing = replace(failing, issues=(*failing.issues, *outcome.issues))
            elif outcome.reason in (Reason.MALFORMED, Reason.INVALID):
                failing = outcome
            else:  # never the same prompt twice
                words = f"{attempt} {'attempt' if attempt == 1 else 'attempts'} to correct it gave no JSON value"
                failing = replace(failing, issues=(*past.current.issues, Issue("$", "attempt", words)))
        return outcome

    def _is_enforced(self, task: Task[Any]) -> bool:
        """Whether the provider is to enforce the schema; what another model can do is not known."""
        return task.enforces and self.model is None

    def _prompt(self, task: Task[Any], failing: Rejected, vault: Vault) -> str:
        return repair_prompt(task.contract, failing, vault, enforced=self._is_enforced(task))


def _judged(outcome: Outcome[T], failing: Rejected, source: Rejected, task: Task[T]) -> Outcome[T]:
    """What was right must stay, and nothing may be made up."""
    return grounded(keeping(outcome, failing, task.contract), source.text, task.contract, draft=source.draft)
