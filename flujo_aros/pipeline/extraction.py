"""The agent step behind `extract_from_text`: a model sees a text and a schema, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from flujo_aros.contract import Contract, Invalid
from flujo_aros.outcome import Accepted, Outcome, Reason, Rejected
from flujo_aros.pipeline.ledger import Settlement
from flujo_aros.pipeline.model import StepContext
from flujo_aros.pipeline.step import Step
from flujo_aros.recovery import Reply, declined, extract_prompt, grounded
from flujo_aros.redaction import Vault


@dataclass(frozen=True)
class Extraction(Step):
    """Takes from a text what a schema wants, by the prompt of the ladder's `extract`.

    The text stands between lines that its author could not know, so that instructions in it stay data; secrets of a
    known kind do not leave. A value that the text does not hold is refused, or reported as `not-in-output`; a model
    that says that the text does not hold what is asked for is taken at its word.
    """

    async def run(self, context: StepContext) -> Settlement[Any]:
        """Ask for the value, and hold it against the text."""
        contract = self.facts.contract
        if contract is None:  # any text will do
            return await super().run(context)
        text = self._given.text(context.names())
        vault = Vault(text, labelled=True)
        run = await self._ask(extract_prompt(contract, text, vault), context, self.checks)
        attempts: Sequence[Any] = run.outcome.attempts if isinstance(run.outcome, Rejected) else ()
        said = next((each.text for each in attempts if each.text.strip()), run.outcome.text)
        outcome = declined(Reply(said)) or grounded(run.outcome, source=vault.hide(text), contract=contract, whole=True)
        return Settlement(_restored(outcome, contract, vault), run.calls, run.stages)


def _restored(outcome: Outcome[Any], contract: Contract[Any], vault: Vault) -> Outcome[Any]:
    """The outcome with the secrets of the text back in its value, which must then still be what is wanted."""
    if not isinstance(outcome, Accepted) or not vault.found:
        return outcome
    verdict = contract.validate(vault.restore_value(outcome.value))
    if isinstance(verdict, Invalid):
        return Rejected(Reason.INVALID, verdict.issues, outcome.text)
    return replace(outcome, value=verdict.value)
