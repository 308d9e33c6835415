"""The stage that shows a model its failing output and asks for the same content in the right form."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal, TypeVar

from pydantic import Field

from flujo_aros.outcome import Issue, Outcome, Reason, Rejected
from flujo_aros.recovery.plan import Ask, Plan, ReadReply, Task
from flujo_aros.recovery.prompts import CANNOT_REPAIR, repair_prompt
from flujo_aros.recovery.secrets import Vault
from flujo_aros.recovery.stages.stage import Rung

T = TypeVar("T")


class LlmRepair(Rung):
    """Ask for the failing output in the right form: the prompt holds that output, the issues, the schema, nothing else.

    Secrets of known kinds are masked before the prompt leaves and put back in the reply. An output so long that the
    prompt would exceed `max_chars` is not asked about: a repair of half an output would lose the other half.
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

    def climb(self, task: Task[T], past: tuple[Rejected, ...], read: ReadReply[T]) -> Plan[T]:
        """Ask until a reply is accepted, the attempts are used up, or the model says that it cannot be done."""
        failing = past[-1] if past[-1].reason in self.answers else past[0]
        outcome: Outcome[T] = failing
        for attempt in range(1, self.attempts + 1):
            vault = Vault(failing.text)
            prompt = repair_prompt(vault.hide(failing.text), _hidden(failing.issues, vault), task.contract.json_schema)
            if not failing.text.strip() or len(prompt) > self.max_chars:
                return outcome
            reply = yield Ask(prompt, self.stage, attempt, task.contract)
            if reply.text.strip().strip(".\"'`") == CANNOT_REPAIR:
                issue = Issue("$", "cannot_repair", "the output does not hold what the schema requires")
                return Rejected(Reason.NO_JSON, (issue,), reply.text)
            outcome = read(replace(reply, text=vault.restore(reply.text)))
            if not isinstance(outcome, Rejected):
                return outcome
            # Only an output that holds the content may take the place of the failing one: prose would have lost it.
            if outcome.reason in (Reason.MALFORMED, Reason.INVALID):
                failing = outcome
        return outcome


def _hidden(issues: tuple[Issue, ...], vault: Vault) -> tuple[Issue, ...]:
    """The issues without secrets: a validator likes to quote the value that it refuses."""
    return tuple(replace(issue, message=vault.hide(issue.message)) for issue in issues)
