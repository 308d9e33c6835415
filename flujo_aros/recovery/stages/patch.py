"""The stage that asks for the wrong places of an answer only, and leaves the right ones as they are."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import Field
from pydantic_core import to_json

from flujo_aros.contract import Contract, Output
from flujo_aros.errors import ContractError
from flujo_aros.json_data import is_dict
from flujo_aros.outcome import Accepted, Draft, Outcome, Reason, Rejected, Repair, Trust
from flujo_aros.reading.read import read as read_text
from flujo_aros.recovery.fidelity import MADE_UP, grounded
from flujo_aros.recovery.json_path import Place, can_hold, definitions_of, place_of, schema_at, with_value
from flujo_aros.recovery.plan import Ask, Judge, Past, Plan, ReadReply, Reply, Rung, Task
from flujo_aros.recovery.prompts import declined, patch_prompt
from flujo_aros.redaction import Vault

T = TypeVar("T")

_WHOLE = frozenset({"required"})
"""Issues that name the object; the missing key has an issue of its own."""


class Patch(Rung):
    """Ask for the failing fields of an answer that could be read, and put the replies into it; the rest is frozen.

    One call for each attempt, with a prompt like that of `llm_repair`. What was right cannot change, and what the
    answer does not hold cannot be made up.
    """

    answers: ClassVar[frozenset[Reason]] = frozenset({Reason.INVALID})

    stage: Literal["patch"] = "patch"
    attempts: int = Field(default=1, ge=1, le=10)
    """How often to ask. The second attempt asks for what is still wrong."""
    max_fields: int = Field(default=20, ge=1, le=200)
    """The most places to ask for; an answer with more of them is better asked for again."""
    max_chars: int = Field(default=60_000, ge=1_000)
    """The longest prompt that may be sent."""
    model: str | None = None
    """The model to ask; by default that of the run."""

    def passes(self, task: Task[Any], past: Past) -> str | None:
        """No draft, or issues that are not about places in it."""
        failing = past.current
        if failing.draft is None:
            return "there is no answer of which only places are wrong"
        places = _wrong(failing, failing.draft, task.contract.json_schema)
        if not places or _form_of(places, task.contract.json_schema) is None:
            return "what is wrong is not in places that could be asked for one by one"
        return f"{len(places)} places are wrong, more than {self.max_fields}" if len(places) > self.max_fields else None

    def climb(self, task: Task[T], past: Past, read: ReadReply[T]) -> Plan[T]:
        """Ask until the patched answer is accepted or the attempts are used up."""
        failing, schema = past.current, task.contract.json_schema
        outcome: Outcome[T] = failing
        for attempt in range(1, self.attempts + 1):
            draft = failing.draft
            places = _wrong(failing, draft, schema) if draft else {}
            form = _form_of(places, schema)
            if draft is None or form is None:
                return outcome
            vault = Vault(failing.text, task.secrets, labelled=True)
            prompt = patch_prompt(form, replace(failing, issues=_only(failing, places)), vault)
            if len(prompt) > self.max_chars:
                return outcome
            reply = yield Ask(prompt, self.stage, attempt, form, model=self.model)
            refusal = declined(reply)
            if refusal is not None:
                return refusal
            judge = partial(_judged, source=past.current, task=task)
            outcome = _patched(replace(reply, text=vault.restore(reply.text)), form, draft, places, read, judge)
            if not isinstance(outcome, Rejected):
                return outcome
            if any(issue.code == MADE_UP for issue in outcome.issues):
                return outcome
            failing = outcome if outcome.draft else failing
        return outcome


def _judged(outcome: Outcome[T], source: Rejected, task: Task[T]) -> Outcome[T]:
    """Nothing may be made up: this model has never seen the question."""
    return grounded(outcome, source.text, task.contract, draft=source.draft)


def _patched(
    reply: Reply, form: Contract[Any], draft: Draft, places: dict[str, Place], read: ReadReply[T], judge: Judge[T]
) -> Outcome[T]:
    """What the draft comes to with the reply in it."""
    if reply.fault is not None:
        return read(reply)
    answer = read_text(reply.text, form, truncated=reply.truncated)
    if isinstance(answer, Accepted):
        given, repairs = answer.value, tuple(answer.repairs)
    else:  # what it gives for some of the places is better than nothing: the next attempt asks for the others
        given, repairs = answer.draft.value if answer.draft else None, ()
    if not is_dict(given):
        return read(Reply(reply.text, reply.truncated))
    whole = draft.value
    for path, value in given.items():
        if path in places:
            whole = with_value(whole, places[path], value)
    text = to_json(whole, inf_nan_mode="constants").decode()
    return read(Reply(text, truncated=False), lambda outcome: judge(_with_repairs(outcome, repairs)))


def _with_repairs(outcome: Outcome[T], repairs: tuple[Repair, ...]) -> Outcome[T]:
    """The outcome of a value whose parts were read with these repairs."""
    if not isinstance(outcome, Accepted) or not repairs:
        return outcome
    both = (*repairs, *outcome.repairs)
    return replace(outcome, repairs=both, trust=Trust.of(both))


def _wrong(failing: Rejected, draft: Draft, schema: dict[str, Any]) -> dict[str, Place]:
    """The wrong places of a draft by their paths, without those that lie inside of another one."""
    found: dict[str, Place] = {}
    for issue in failing.issues:
        place = place_of(issue.path)
        if issue.code in _WHOLE and place is not None and _has_own(failing, place):
            continue
        if not place or not can_hold(draft.value, place) or schema_at(schema, place) is None:
            return {}
        found[issue.path] = place
    return {
        path: place
        for path, place in found.items()
        if not any(other != place and place[: len(other)] == other for other in found.values())
    }


def _has_own(failing: Rejected, place: Place) -> bool:
    """Whether another issue names the key that is missing in the object at this place."""
    inside = (place_of(issue.path) for issue in failing.issues if issue.code == "missing")
    return any(found is not None and found[:-1] == place for found in inside)


def _only(failing: Rejected, places: dict[str, Place]) -> Any:
    return tuple(issue for issue in failing.issues if issue.path in places)


def _form_of(places: dict[str, Place], schema: dict[str, Any]) -> Contract[Any] | None:
    """The contract of the reply: an object with one key for each wrong place."""
    parts = {path: schema_at(schema, place) for path, place in places.items()}
    known = {path: part for path, part in parts.items() if part is not None}
    if not known or len(known) != len(parts):
        return None
    shared = definitions_of(schema)
    properties = {path: {key: word for key, word in part.items() if key not in shared} for path, part in known.items()}
    whole: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    try:
        return Output.json({**whole, **shared})
    except ContractError:
        return None
