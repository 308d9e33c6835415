"""The stages that show a model what was written, but not the question: they extract, repair or patch the value."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import Field
from pydantic_core import to_json

from flujo_aros.contract import Contract, Output
from flujo_aros.errors import ContractError
from flujo_aros.json_data import Place, can_hold, definitions_of, is_dict, place_of, schema_at, with_value
from flujo_aros.outcome import Accepted, Draft, Issue, Outcome, Reason, Rejected, Repair, Trust
from flujo_aros.reading.read import read as read_text
from flujo_aros.recovery.fidelity import MADE_UP, grounded, keeping, plain_value
from flujo_aros.recovery.plan import Ask, Judge, Past, Plan, ReadReply, Reply, Rung, Task, Way, has_issue
from flujo_aros.recovery.prompts import extract_prompt, patch_prompt, plain_prompt, repair_prompt, unmasked
from flujo_aros.redaction import Vault

T = TypeVar("T")

_HOLDS_AN_ANSWER = frozenset({Reason.NO_JSON, Reason.MALFORMED, Reason.INVALID, Reason.AMBIGUOUS})


class Extract(Rung):
    """Extract the value with a model that sees only the available text and the schema.

    If no text could contain an answer, because the model wrote nothing or repeated the schema, it is first asked the
    question once more, for an answer in plain prose. The extractor is told not to invent values.
    """

    # Not TRUNCATED, REFUSED, PROVIDER, TOO_LARGE: what is missing would have to be invented.
    answers: ClassVar[frozenset[Reason]] = _HOLDS_AN_ANSWER | {Reason.ECHOED_SCHEMA}

    stage: Literal["extract"] = "extract"
    model: str | None = None
    """The extractor model; by default the model of the run."""
    max_chars: int = Field(default=60_000, ge=1_000)
    """The maximum length of the prompt."""

    def passes(self, task: Task[Any], past: Past) -> str | None:
        """Not without a schema, or if the text was written with that schema enforced."""
        if not task.contract.json_schema:
            return "there is no schema that says what to extract"
        if past.was_enforced and self.model is None:
            return "the provider has enforced the schema, so the reply holds no more than was read"
        if plain_value(past.spoken.text, task.contract.json_schema) is not None:
            return "the form of the answer is right, so extracting it again would not help"
        return None

    def climb(self, task: Task[T], past: Past, read: ReadReply[T]) -> Plan[T]:
        """One request about the available text; if there is none, another one before it."""
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
    """A plan that extracts a value of the task's contract from a text, with one bare request.

    Ends with a rejection if the model answers that the text does not contain the value, or if the prompt would be
    longer than `max_chars`.
    """
    vault = Vault(text, task.secrets, labelled=True)
    enforced = task.enforces and model is None
    prompt = extract_prompt(task.contract, text, vault, enforced=enforced)
    if len(prompt) > max_chars:
        return Rejected(Reason.TOO_LARGE, (), text)
    way: Way = "bare_constrained" if enforced else "bare"
    answer = unmasked((yield Ask(prompt, "extract", attempt, task.contract, way=way, model=model)), vault)
    if isinstance(answer, Rejected):
        return answer
    return read(answer, partial(grounded, source=text, contract=task.contract))


class LlmRepair(Rung):
    """Ask a model to correct the failing output: the prompt contains only that output, the issues and the schema.

    Secrets are masked before the prompt is sent and restored in the reply. If the prompt would exceed `max_chars`, the
    stage is skipped: repairing half an output would lose the other half. A reply that changes what was right is
    rejected, and so is one that adds what the output does not state (`not-in-output`), because this model has never
    seen the question. If the question itself is shorter than the prompt, and a later stage asks it with the schema
    enforced, that is cheaper and more reliable, and this stage is skipped.
    """

    # Not TRUNCATED, ECHOED_SCHEMA, REFUSED, PROVIDER: what is missing would have to be invented. Not AMBIGUOUS: the
    # repair model does not know the question, so its choice would be a guess. Not TOO_LARGE: the prompt would be too.
    answers: ClassVar[frozenset[Reason]] = frozenset({Reason.NO_JSON, Reason.MALFORMED, Reason.INVALID})
    fallback: ClassVar[bool] = False

    stage: Literal["llm_repair"] = "llm_repair"
    attempts: int = Field(default=2, ge=1, le=10)
    """The maximum number of attempts. The second one sees the corrected output of the first, if there was one."""
    max_chars: int = Field(default=60_000, ge=1_000)
    """The maximum length of the prompt."""
    model: str | None = None
    """The model to ask; by default that of the run."""

    def passes(self, task: Task[Any], past: Past) -> str | None:
        """Not without text, without a schema to repair towards, or if the prompt would be too long."""
        failing = past.current
        if not failing.text.strip():
            return "nothing was written that could be repaired"
        if not task.contract.json_schema:
            return "there is no schema to repair towards"
        longest = len(self._prompt(task, failing, Vault(failing.text, task.secrets, labelled=True)))
        if longest > self.max_chars:
            return f"the prompt would have {longest} characters, more than {self.max_chars}"
        if past.asks_again and plain_value(failing.text, task.contract.json_schema) is not None:
            return "its form is right, and only a model that knows the question can correct its content"
        if past.asks_enforced and task.question_chars is not None and task.question_chars <= longest:
            return "asking the question again, with the schema enforced, is cheaper"
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
            ask = Ask(prompt, self.stage, attempt, task.contract, way=way, model=self.model)
            answer = unmasked((yield ask), vault)
            if isinstance(answer, Rejected):
                return answer
            outcome = read(answer, partial(_judged, failing=failing, source=past.current, task=task))
            if not isinstance(outcome, Rejected):
                return outcome
            if has_issue(outcome, MADE_UP):
                return outcome  # the output does not contain it; asking once more would invite an invention
            # Only an output that has the content may replace the failing one: prose would have lost it, and so has one
            # that changed what was right.
            if has_issue(outcome, "changed"):
                failing = replace(failing, issues=(*failing.issues, *outcome.issues))
            elif outcome.reason in (Reason.MALFORMED, Reason.INVALID):
                failing = outcome
            else:  # never the same prompt twice
                words = f"{attempt} {'attempt' if attempt == 1 else 'attempts'} to correct it produced no JSON value"
                failing = replace(failing, issues=(*past.current.issues, Issue("$", "attempt", words)))
        return outcome

    def _is_enforced(self, task: Task[Any]) -> bool:
        """Whether the provider is asked to enforce the schema; the capabilities of another model are unknown."""
        return task.enforces and self.model is None

    def _prompt(self, task: Task[Any], failing: Rejected, vault: Vault) -> str:
        return repair_prompt(task.contract, failing, vault, enforced=self._is_enforced(task))


def _judged(outcome: Outcome[T], failing: Rejected, source: Rejected, task: Task[T]) -> Outcome[T]:
    """What was right must stay, and nothing may be made up."""
    return grounded(keeping(outcome, failing, task.contract), source.text, task.contract, draft=source.draft)


_WHOLE = frozenset({"required"})
"""Issues that name the object; the missing key has its own issue."""


class Patch(Rung):
    """Ask for the failing fields of a readable answer and insert the replies; everything else stays unchanged.

    One call for each attempt, with a prompt like that of `llm_repair`. What was right cannot change, and values that
    the answer does not contain cannot be made up.
    """

    answers: ClassVar[frozenset[Reason]] = frozenset({Reason.INVALID})

    stage: Literal["patch"] = "patch"
    attempts: int = Field(default=1, ge=1, le=10)
    """The maximum number of attempts. The second one asks for what is still wrong."""
    max_fields: int = Field(default=20, ge=1, le=200)
    """The maximum number of places to ask for. An answer with more errors is better requested again."""
    max_chars: int = Field(default=60_000, ge=1_000)
    """The maximum length of the prompt."""
    model: str | None = None
    """The model to ask; by default that of the run."""

    def passes(self, task: Task[Any], past: Past) -> str | None:
        """Not without a draft, or if the issues are not about places in it."""
        failing = past.current
        if failing.draft is None:
            return "there is no answer in which only some places are wrong"
        places = _wrong(failing, failing.draft, task.contract.json_schema)
        if not places or _form_of(places, task.contract.json_schema) is None:
            return "the errors are not in places that could be asked for one by one"
        return f"{len(places)} places are wrong, more than {self.max_fields}" if len(places) > self.max_fields else None

    def climb(self, task: Task[T], past: Past, read: ReadReply[T]) -> Plan[T]:
        """Ask until the patched answer is accepted or the attempts are used up."""
        failing = source = past.current
        schema = task.contract.json_schema
        outcome: Outcome[T] = failing
        for attempt in range(1, self.attempts + 1):
            draft = failing.draft
            places = _wrong(failing, draft, schema) if draft else {}
            form = _form_of(places, schema)
            if draft is None or form is None:
                return outcome
            vault = Vault(failing.text, task.secrets, labelled=True)
            wrong = tuple(issue for issue in failing.issues if issue.path in places)
            prompt = patch_prompt(form, replace(failing, issues=wrong), vault)
            if len(prompt) > self.max_chars:
                return outcome
            answer = unmasked((yield Ask(prompt, self.stage, attempt, form, model=self.model)), vault)
            if isinstance(answer, Rejected):
                return answer
            judge = partial(grounded, source=source.text, contract=task.contract, draft=source.draft)
            outcome = _patched(answer, form, draft, places, read, judge)
            if not isinstance(outcome, Rejected) or has_issue(outcome, MADE_UP):
                return outcome
            failing = outcome if outcome.draft else failing
        return outcome


def _patched(
    reply: Reply, form: Contract[Any], draft: Draft, places: dict[str, Place], read: ReadReply[T], judge: Judge[T]
) -> Outcome[T]:
    """The outcome of the draft with the reply inserted."""
    if reply.fault is not None:
        return read(reply)
    answer = read_text(reply.text, form, truncated=reply.truncated)
    if isinstance(answer, Accepted):
        given, repairs = answer.value, tuple(answer.repairs)
    else:  # values for some of the places are better than none: the next attempt asks for the others
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
    """The wrong places of a draft by path, without those inside another one."""
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
    """Whether another issue names the missing key of the object at this place."""
    inside = (place_of(issue.path) for issue in failing.issues if issue.code == "missing")
    return any(found is not None and found[:-1] == place for found in inside)


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
