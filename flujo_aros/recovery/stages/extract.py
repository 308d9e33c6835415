"""The stage that lets a model think freely, and takes the value out of what it wrote."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import Field

from flujo_aros.outcome import Reason, Rejected
from flujo_aros.recovery.fidelity import grounded, plain_value
from flujo_aros.recovery.plan import Ask, Past, Plan, ReadReply, Rung, Task, Way
from flujo_aros.recovery.prompts import declined, extract_prompt, plain_prompt
from flujo_aros.redaction import Vault

T = TypeVar("T")

_HOLDS_AN_ANSWER = frozenset({Reason.NO_JSON, Reason.MALFORMED, Reason.INVALID, Reason.AMBIGUOUS})


class Extract(Rung):
    """Take the value out of the text at hand with a model that sees that text and the schema, nothing else.

    Where there is no text that could hold an answer, because the model has written nothing or has repeated the schema,
    it is first asked the question once more, to be answered in plain words. The extractor refuses to invent.
    """

    # Not TRUNCATED, REFUSED, PROVIDER, TOO_LARGE: what is missing would have to be invented.
    answers: ClassVar[frozenset[Reason]] = _HOLDS_AN_ANSWER | {Reason.ECHOED_SCHEMA}

    stage: Literal["extract"] = "extract"
    model: str | None = None
    """The extractor; by default the model of the run."""
    max_chars: int = Field(default=60_000, ge=1_000)
    """The longest prompt that may be sent."""

    def passes(self, task: Task[Any], past: Past) -> str | None:
        """No schema that says what to take out of a text, or a text that was written with that schema enforced."""
        if not task.contract.json_schema:
            return "there is no schema that says what to extract"
        if past.was_enforced and self.model is None:
            return "the provider has enforced the schema: there is no more in what was written than was read"
        if plain_value(past.spoken.text, task.contract.json_schema) is not None:
            return "the form of the answer is right: to take the same out of it once more would not help"
        return None

    def climb(self, task: Task[T], past: Past, read: ReadReply[T]) -> Plan[T]:
        """One ask about the text at hand; one before it where there is none."""
        source, attempt = past.spoken, 1
        text = source.text
        if source.reason not in _HOLDS_AN_ANSWER or not text.strip():
            reply = yield Ask(plain_prompt(task.contract), self.stage, attempt, task.contract, way="conversation")
            thought = read(reply)
            if not isinstance(thought, Rejected) or thought.reason not in _HOLDS_AN_ANSWER or not reply.text.strip():
                return thought
            text, attempt = reply.text, 2
        return (yield from extracted(task, text, read, model=self.model, attempt=attempt, max_chars=self.max_chars))


def extracted(
    task: Task[T],
    text: str,
    read: ReadReply[T],
    *,
    model: str | None = None,
    attempt: int = 1,
    max_chars: int = 60_000,
) -> Plan[T]:
    """A plan that takes a value of the task's contract out of a text: one bare ask, and a reading.

    Ends with a rejection where the model says that the text does not hold the value, and where the prompt would be
    longer than `max_chars`.
    """
    vault = Vault(text, task.secrets, labelled=True)
    enforced = task.enforces and model is None
    prompt = extract_prompt(task.contract, text, vault, enforced=enforced)
    if len(prompt) > max_chars:
        return Rejected(Reason.TOO_LARGE, (), text)
    way: Way = "bare_constrained" if enforced else "bare"
    reply = yield Ask(prompt, "extract", attempt, task.contract, way=way, model=model)
    refusal = declined(reply)
    if refusal is not None:
        return refusal
    answer = replace(reply, text=vault.restore(reply.text))
    return read(answer, partial(grounded, source=text, contract=task.contract))
