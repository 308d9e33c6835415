"""Stages that ask again: in the same conversation, with the schema enforced, another model, or for a flat object."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Final, Literal, TypeVar, cast

from pydantic import Field
from pydantic_core import to_json

from flujo_aros.contract import Block, Contract, JsonSchema, Output
from flujo_aros.json_data import schema_at
from flujo_aros.outcome import Accepted, Issue, Outcome, Reason, Rejected, Repair, Risk, Trust
from flujo_aros.reading.read import doomed_in
from flujo_aros.reading.read import read as read_text
from flujo_aros.reading.runaway import before_runaway, ran_away
from flujo_aros.recovery.fidelity import keeping, plain_value
from flujo_aros.recovery.plan import (
    BROKEN_OFF,
    FORM_FAILED,
    LEFT_OPEN,
    SAYS_NOTHING,
    Ask,
    Past,
    Plan,
    ReadReply,
    Reply,
    Rung,
    Task,
    Way,
    has_issue,
)
from flujo_aros.recovery.prompts import continue_prompt, form_prompt, plain_prompt, retry_prompt

T = TypeVar("T")


class Retry(Rung):
    """Ask again in the same conversation: the failing reply, what was wrong with it, and a stricter instruction.

    If the provider can enforce the schema, it does, because instructions alone seldom help a small model. If the schema
    was not enforced before and rules out the error, just the question is asked again, since feedback on a format that
    can no longer be wrong would only cost tokens. A model that repeats the schema is asked to answer in plain prose
    instead, from which `extract` reads the value.
    """

    # Not TOO_LARGE: the next one would be as large. PROVIDER only if the output format caused the error. TRUNCATED only
    # for a runaway reply, or if the provider broke off: anything else would be cut again at the same place.
    answers: ClassVar[frozenset[Reason]] = frozenset(Reason) - {Reason.TOO_LARGE}

    sees_question: ClassVar[bool] = True

    stage: Literal["retry"] = "retry"
    attempts: int = Field(default=1, ge=1, le=100)
    """The maximum number of attempts, all in one conversation."""
    native: bool = True
    """Have the provider enforce the schema, if it supports that."""

    def passes(self, task: Task[Any], past: Past) -> str | None:
        """Skipped for a cut reply, which would be cut again, and for an error or filter that no wording changes."""
        if past.current.reason is Reason.PROVIDER and not has_issue(past.current, FORM_FAILED):
            return "the provider's error does not depend on the output format"
        if past.current.reason is Reason.REFUSED and has_issue(past.current, "content_filter"):
            return "the provider's filter ended the reply"
        cut = past.current.reason is Reason.TRUNCATED
        # No budget cut the reply, so the same question may be asked again.
        once_more = ran_away(past.current.text) or has_issue(past.current, LEFT_OPEN, BROKEN_OFF)
        if cut and not once_more and not self.enforces(task, past):
            return "the reply was cut off, and a retry with the same budget would be cut off again"
        return None

    def enforces(self, task: Task[Any], past: Past) -> bool:
        """If the provider can enforce the schema, was not asked to, and the schema rules out the error.

        An objection of a check or of a Python type is not ruled out that way, so the model must see it.
        """
        failing = past.spoken
        if not self.native or task.native != "can" or not task.enforces or past.was_enforced:
            return False
        return failing.reason is not Reason.PROVIDER and plain_value(failing.text, task.contract.json_schema) is None

    def climb(self, task: Task[T], past: Past, read: ReadReply[T]) -> Plan[T]:
        """Ask until a reply is accepted or the attempts are used up."""
        # After an error about the output format there is nothing to correct: the question stays, only the format
        # changes.
        unanswered = past.spoken.reason is Reason.PROVIDER
        way: Way = "constrained" if self.native and not unanswered and task.enforces else "conversation"
        unchanged = self.enforces(task, past)  # only the question, with the schema enforced for the first time
        failing: Rejected = past.spoken
        outcome: Outcome[T] = failing
        turns: tuple[str, ...] = ()
        for attempt in range(1, self.attempts + 1):
            echoes = failing.reason is Reason.ECHOED_SCHEMA or has_issue(failing, SAYS_NOTHING)
            plainly = way == "conversation" and echoes
            prompt = plain_prompt(task.contract) if plainly else form_prompt(task.contract)
            if not plainly and failing.reason is not Reason.PROVIDER:
                prompt = retry_prompt(task.contract, failing)
            # An echo would only be echoed again, and an empty reply is not worth showing.
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


class Constrain(Rung):
    """Ask the question again in the provider's own schema mode, if the model has one that was not used.

    One call, with the messages of the run and without its tools. For models that fail in prompted or tool mode: a
    grammar guarantees the format, and the model still sees the question, so it need not make anything up.
    """

    # TRUNCATED too: a model that rambles up to its limit cannot do so if a grammar allows only the answer. PROVIDER
    # only if another output format caused it. Not REFUSED or TOO_LARGE: no format would change those.
    answers: ClassVar[frozenset[Reason]] = frozenset(Reason) - {Reason.REFUSED, Reason.TOO_LARGE}

    sees_question: ClassVar[bool] = True

    stage: Literal["constrain"] = "constrain"

    def passes(self, task: Task[Any], past: Past) -> str | None:
        """Skipped without a schema or provider support, or if the schema was already enforced."""
        if past.current.reason is Reason.PROVIDER and not has_issue(past.current, FORM_FAILED):
            return "the provider's error does not depend on the output format"
        if not task.contract.json_schema:
            return "there is no schema that a provider could enforce"
        if task.native == "on" or past.was_enforced:
            return "the schema was already enforced"
        return "the model has no mode that enforces this schema" if task.native == "no" else None

    def enforces(self, task: Task[Any], past: Past) -> bool:  # noqa: ARG002 (one shape for all stages)
        """Yes, unless the stage is skipped."""
        return task.native == "can"

    def climb(self, task: Task[T], past: Past, read: ReadReply[T]) -> Plan[T]:  # noqa: ARG002 (one shape for all stages)
        """One request, read like any reply."""
        reply = yield Ask("", self.stage, 1, task.contract, way="constrained")
        return read(reply)


class Escalate(Rung):
    """Ask another model the question of the run, with its messages but without its tools and the failing replies."""

    # Not TOO_LARGE: the reply was read, and exceeds the limits.
    answers: ClassVar[frozenset[Reason]] = frozenset(Reason) - {Reason.TOO_LARGE}

    sees_question: ClassVar[bool] = True

    stage: Literal["escalate"] = "escalate"
    model: str = Field(min_length=1)
    """The model to ask: a pydantic-ai model name, or `local:NAME`."""
    attempts: int = Field(default=1, ge=1, le=10)
    """The maximum number of attempts."""

    def climb(self, task: Task[T], past: Past, read: ReadReply[T]) -> Plan[T]:
        """Ask until a reply is accepted or the attempts are used up."""
        outcome: Outcome[T] = past.latest
        for attempt in range(1, self.attempts + 1):
            prompt = form_prompt(task.contract)
            reply = yield Ask(prompt, self.stage, attempt, task.contract, way="conversation", model=self.model)
            outcome = read(reply)
            if not isinstance(outcome, Rejected):
                return outcome
        return outcome


_SEAM: Final = 24
"""How many characters before the cut a continuation has to repeat, to prove that both parts belong together."""
_MIN_SEAM: Final = 12


class Resume(Rung):
    """Complete a truncated reply: repeat the request with a larger budget, or ask for the rest.

    `larger` asks the same question with a larger `max_tokens`. `continue` shows the model its truncated reply and asks
    it to continue, beginning with its last words; the two parts are joined only if those words are in both. `auto`
    selects `larger` if the caller's own `max_tokens` cut the reply, and `continue` if the provider's limit did.
    """

    answers: ClassVar[frozenset[Reason]] = frozenset({Reason.TRUNCATED})
    fallback: ClassVar[bool] = False

    stage: Literal["resume"] = "resume"
    how: Literal["auto", "larger", "continue"] = "auto"
    """The strategy."""
    factor: float = Field(default=4, gt=1, le=100)
    """The factor by which the token budget of the first reply is multiplied."""
    max_tokens: int | None = Field(default=None, ge=1)
    """The larger token budget; overrides `factor`."""

    def passes(self, task: Task[Any], past: Past) -> str | None:
        """Skipped without text to continue, without a budget that could grow, or for a runaway reply."""
        if ran_away(past.first.text):
            return "the reply was a runaway, which a larger budget would only prolong"
        if has_issue(past.first, LEFT_OPEN):
            return "the reply was not cut off: the model ended it there"
        if past.asks_enforced and not _begins(past.first.text, task.contract):
            return "the text before the cut does not begin an answer; a later stage asks with the schema enforced"
        if (doomed := doomed_in(past.first.text, task.contract)) is not None:
            return f"the rest would not help: {doomed.path} does not satisfy the contract ({doomed.message})"
        if self._larger(task):
            return None if self._budget(task) else "the budget that cut the reply is not known"
        return None if past.first.text.strip() else "there is no text before the cut to continue"

    def climb(self, task: Task[T], past: Past, read: ReadReply[T]) -> Plan[T]:
        """One request. The result counts as the model's own reply."""
        if self._larger(task):
            way: Way = "constrained" if task.enforces else "conversation"
            reply = yield Ask("", self.stage, 1, task.contract, way=way, max_tokens=self._budget(task))
            return read(reply)
        cut = past.first.text
        begin = cut[-_SEAM:].lstrip() if len(cut) > _SEAM else cut
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
    """Whether a truncated text contains the start of a value: a key of the schema, or else an opening bracket."""
    names: dict[str, Any] = (schema_at(contract.json_schema, ()) or {}).get("properties", {})
    if not names:
        return "{" in cut or "[" in cut
    return any(re.search(rf"{re.escape(json.dumps(name))}\s*:", cut) for name in names)


def joined(cut: str, begin: str, rest: str) -> str | None:
    """The two parts of a reply as one, or None if the rest does not begin with the words before the cut.

    >>> joined('{"name": "pen", "qty', '"pen", "qty', '"pen", "qty": 3}')
    '{"name": "pen", "qty": 3}'
    """
    for opening in (rest, rest.lstrip(), _unfenced(rest)):
        if opening.startswith(begin):
            return cut[: len(cut) - len(begin)] + opening
    # A model may begin a few words later, or from the start: either way the overlap shows where the parts meet.
    if rest.lstrip().startswith(cut[: len(cut) - len(begin)].lstrip()) and begin in rest:
        return rest
    for size in range(len(begin) - 1, _MIN_SEAM - 1, -1):
        if rest.startswith(begin[-size:]):
            return cut[:-size] + rest
    return None


def _restarted(outcome: Outcome[T], cut: Rejected, task: Task[T]) -> Outcome[T]:
    """The outcome of a model that started over instead of continuing. It counts if it repeats the cut reply."""
    outcome = keeping(outcome, cut, task.contract, cut=True)
    # Any words are valid text, or could be wrapped as an event: without an overlap they may be the rest of the reply,
    # which would be lost, or something else altogether.
    if not (isinstance(outcome, Accepted) and _is_any_words(outcome, task.contract)) and (
        not isinstance(outcome, Rejected) or outcome.reason is Reason.REFUSED
    ):
        return outcome
    issues = outcome.issues if isinstance(outcome, Rejected) else ()
    issue = Issue("$", "no_seam", "the continuation does not begin with the last words before the cut")
    return Rejected(Reason.TRUNCATED, (issue, *issues), cut.text, draft=cut.draft)


def _is_any_words(outcome: Accepted[Any], contract: Contract[Any]) -> bool:
    """Whether the contract accepts any text: nothing delimits the value, and nothing in it has a format."""
    value, made_up = outcome.value, outcome.trust is Trust.SYNTHESIZED
    unframed = isinstance(value, str) and contract.mode == "json"
    return made_up or unframed or (isinstance(value, Block) and not value.fields)


def _unfenced(text: str) -> str:
    """The text without the fence that some models put around every piece of code."""
    if not text.lstrip().startswith("```"):
        return text
    body = text.lstrip().partition("\n")[2]
    return body.rstrip().removesuffix("```").rstrip()


_MAX_DEPTH: Final = 4
_MAX_FIELDS: Final = 60
_SEPARATORS: Final = re.compile(r"\s*[|;\n]\s*")


class Simplify(Rung):
    """Ask for a flat object of strings, then coerce the strings into the real schema.

    For schemas whose nesting a model cannot follow; lists of objects cannot be flattened.
    """

    answers: ClassVar[frozenset[Reason]] = frozenset(
        {Reason.NO_JSON, Reason.MALFORMED, Reason.INVALID, Reason.AMBIGUOUS, Reason.ECHOED_SCHEMA}
    )

    stage: Literal["simplify"] = "simplify"

    def passes(self, task: Task[Any], past: Past) -> str | None:  # noqa: ARG002 (one shape for all stages)
        """Skipped for a schema that is not an object, is open, or contains lists of objects."""
        return None if _flat(task.contract) else "the schema cannot be flattened to an object of strings"

    def climb(self, task: Task[T], past: Past, read: ReadReply[T]) -> Plan[T]:
        """One request in the conversation, with the flat schema enforced if the provider can."""
        fields = _flat(task.contract)
        if fields is None:
            return past.latest
        flat = _contract_of(fields)
        way: Literal["constrained", "conversation"] = "constrained" if task.native in ("can", "on") else "conversation"
        reply = yield Ask(form_prompt(flat), self.stage, 1, flat, way=way)
        if reply.fault is not None:
            return read(reply)
        answer = read_text(reply.text, flat, truncated=reply.truncated)
        if not isinstance(answer, Accepted):
            return read(reply)
        whole: dict[str, Any] = {}
        for path, text in cast("dict[str, str]", answer.value).items():
            if text.strip():
                holder, (*above, name) = whole, path.split(".")
                for part in above:
                    holder = holder.setdefault(part, {})
                several = fields.get(path, {}).get("type") == "array"
                holder[name] = [part for part in _SEPARATORS.split(text.strip()) if part] if several else text
        return read(Reply(to_json(whole).decode(), truncated=False), partial(_simplified, answer=answer, reply=reply))


def _simplified(outcome: Outcome[T], answer: Accepted[Any], reply: Reply) -> Outcome[T]:
    """The outcome with the repairs that led to it, relative to the text that the model actually wrote."""
    if isinstance(outcome, Rejected):
        return replace(outcome, text=reply.text)
    if not isinstance(outcome, Accepted):
        return outcome
    made = Repair("simplified", Risk.INFERRED, "$", (0, len(reply.text)), reply.text[:80], outcome.text[:80])
    repairs = (made, *answer.repairs, *outcome.repairs)
    return replace(outcome, repairs=repairs, trust=Trust.of(repairs), text=reply.text)


def _contract_of(fields: Mapping[str, JsonSchema]) -> Contract[Any]:
    """The flat contract: one required string per field, empty for an unknown value."""
    texts = {path: {"type": "string", "description": _about(schema)} for path, schema in fields.items()}
    return Output.json({"type": "object", "properties": texts, "required": list(texts), "additionalProperties": False})


def _about(schema: JsonSchema) -> str:
    words = [str(schema["description"])] if schema.get("description") else []
    if schema.get("enum"):
        words.append(f"one of: {', '.join(map(str, schema['enum']))}")
    elif schema.get("type") == "array":
        words.append("several values, with | between them")
    elif isinstance(schema.get("type"), str) and schema["type"] != "string":
        words.append(f"a {schema['type']}")
    return "; ".join([*words, "empty if not known"])


def _flat(contract: Contract[Any]) -> dict[str, JsonSchema] | None:
    """The fields of a schema by their dotted names, or None if it cannot be flattened."""
    if contract.mode != "json":
        return None
    fields: dict[str, JsonSchema] = {}
    simple = _collect(contract.json_schema, (), fields)
    return fields if simple and 0 < len(fields) <= _MAX_FIELDS else None


def _collect(schema: JsonSchema, place: tuple[str, ...], fields: dict[str, JsonSchema]) -> bool:
    here = schema_at(schema, place)
    if here is None or len(place) > _MAX_DEPTH:
        return False
    properties: Mapping[str, Any] = here.get("properties", {})
    if properties:
        names = [(*place, name) for name in properties if "." not in name]
        return len(names) == len(properties) and all(_collect(schema, name, fields) for name in names)
    items = schema_at(schema, (*place, 0)) or {}
    if not place or here.get("type") == "object" or items.get("properties") or items.get("type") in ("object", "array"):
        return False
    fields[".".join(place)] = here
    return True
