"""The stage for replies that were cut: the same answer with more room, or the rest of it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Final, Literal, TypeVar

from pydantic import Field

from flujo_aros.contract import Block, Contract
from flujo_aros.outcome import Accepted, Issue, Outcome, Reason, Rejected, Trust
from flujo_aros.reading.runaway import ran_away
from flujo_aros.reading.stream import doomed_in
from flujo_aros.recovery.fidelity import keeping
from flujo_aros.recovery.json_path import schema_at
from flujo_aros.recovery.plan import Ask, Past, Plan, ReadReply, Reply, Rung, Task, Way, was_left_open
from flujo_aros.recovery.prompts import continue_prompt

T = TypeVar("T")

_SEAM: Final = 24
"""How many characters before the cut a continuation has to repeat, so that both ends are known to fit."""
_MIN_SEAM: Final = 12


class Resume(Rung):
    """Ask once more for a reply that was cut, with more room for it, or for its rest from the cut on.

    `larger` asks the same question with a larger `max_tokens`; `continue` shows the model its cut reply and asks for
    what is missing, beginning with its last words: the two ends are joined only where those stand in both. `auto`
    takes `larger` where the caller's own `max_tokens` has cut the reply, and `continue` where the provider's has.
    """

    answers: ClassVar[frozenset[Reason]] = frozenset({Reason.TRUNCATED})
    fallback: ClassVar[bool] = False

    stage: Literal["resume"] = "resume"
    how: Literal["auto", "larger", "continue"] = "auto"
    """What to ask for."""
    factor: float = Field(default=4, gt=1, le=100)
    """How many times the budget of the first reply the larger one is."""
    max_tokens: int | None = Field(default=None, ge=1)
    """The larger budget itself, where it should not follow from `factor`."""

    def passes(self, task: Task[Any], past: Past) -> str | None:
        """Nothing to go on from, no budget that could be made larger, and a model that would go on without end."""
        if ran_away(past.first.text):
            return "the model had lost its way: with more room it would go on like that"
        if was_left_open(past.first):
            return "the reply was not cut: the model has ended it like that"
        if past.asks_enforced and not _begins(past.first.text, task.contract):
            return "what was cut is no beginning of an answer: it is asked for with the schema enforced"
        if (doomed := doomed_in(past.first.text, task.contract)) is not None:
            return f"its rest would not help: {doomed.path} does not satisfy the contract ({doomed.message})"
        if self._larger(task):
            return None if self._budget(task) else "the budget that has cut the reply is not known"
        return None if past.first.text.strip() else "nothing was written before the cut that could be continued"

    def climb(self, task: Task[T], past: Past, read: ReadReply[T]) -> Plan[T]:
        """One ask; the reply counts as the model's own, made whole."""
        if self._larger(task):
            way: Way = "constrained" if task.enforces else "conversation"
            reply = yield Ask("", self.stage, 1, task.contract, way=way, max_tokens=self._budget(task))
            return read(reply)
        cut = past.first.text
        begin = _words_before(cut)
        ask = Ask(continue_prompt(begin), self.stage, 1, task.contract, way="conversation", said=(cut,))
        reply = yield replace(ask, max_tokens=self.max_tokens)
        if reply.fault is not None:
            return read(reply)
        whole = joined(cut, begin, reply.text)
        if whole is not None:
            return read(Reply(whole, reply.truncated, refused=reply.refused))
        return read(reply, partial(_restarted, cut=past.first, task=task))

    def _larger(self, task: Task[Any]) -> bool:
        known = self.max_tokens is not None or task.max_tokens is not None
        return self.how == "larger" or (self.how == "auto" and known)

    def _budget(self, task: Task[Any]) -> int | None:
        if self.max_tokens is not None:
            return self.max_tokens if task.max_tokens is None or self.max_tokens > task.max_tokens else None
        return None if task.max_tokens is None else int(task.max_tokens * self.factor)


def _begins(cut: str, contract: Contract[Any]) -> bool:
    """Whether a text that was cut holds the beginning of a value: a key of the schema, or a bracket without such."""
    names: dict[str, Any] = (schema_at(contract.json_schema, ()) or {}).get("properties", {})
    if not names:
        return "{" in cut or "[" in cut
    return any(re.search(rf"{re.escape(json.dumps(name))}\s*:", cut) for name in names)


def joined(cut: str, begin: str, rest: str) -> str | None:
    """The two parts of a reply as one, or None where the rest does not begin with the words before the cut.

    >>> joined('{"name": "pen", "qty', '"pen", "qty', '"pen", "qty": 3}')
    '{"name": "pen", "qty": 3}'
    """
    for opening in (rest, rest.lstrip(), _unfenced(rest)):
        if opening.startswith(begin):
            return cut[: len(cut) - len(begin)] + opening
    # A model may begin a few words later, or from the start: both show where the ends meet.
    if rest.lstrip().startswith(cut[: len(cut) - len(begin)].lstrip()) and begin in rest:
        return rest
    for size in range(len(begin) - 1, _MIN_SEAM - 1, -1):
        if rest.startswith(begin[-size:]):
            return cut[:-size] + rest
    return None


def _restarted(outcome: Outcome[T], cut: Rejected, task: Task[T]) -> Outcome[T]:
    """The outcome of a model that started over instead of continuing: good, if it repeats what the cut reply said."""
    outcome = keeping(outcome, cut, task.contract, cut=True)
    # Any words at all are a text, or could be wrapped as an event: without a seam they may be the rest of what was cut,
    # which would be lost, or something else altogether.
    if not (isinstance(outcome, Accepted) and _is_any_words(outcome, task.contract)) and (
        not isinstance(outcome, Rejected) or outcome.reason is Reason.REFUSED
    ):
        return outcome
    issues = outcome.issues if isinstance(outcome, Rejected) else ()
    issue = Issue("$", "no_seam", "the continuation does not begin with the last words before the cut")
    return Rejected(Reason.TRUNCATED, (issue, *issues), cut.text, draft=cut.draft)


def _is_any_words(outcome: Accepted[Any], contract: Contract[Any]) -> bool:
    """Whether any text at all would have been accepted: nothing frames the value, and nothing in it has a form."""
    value, made_up = outcome.value, outcome.trust is Trust.SYNTHESIZED
    unframed = isinstance(value, str) and contract.mode == "json"
    return made_up or unframed or (isinstance(value, Block) and not value.fields)


def _words_before(cut: str) -> str:
    return cut[-_SEAM:].lstrip() if len(cut) > _SEAM else cut


def _unfenced(text: str) -> str:
    """The text without the fence that some models put around every piece of code."""
    if not text.lstrip().startswith("```"):
        return text
    body = text.lstrip().partition("\n")[2]
    return body.rstrip().removesuffix("```").rstrip()
