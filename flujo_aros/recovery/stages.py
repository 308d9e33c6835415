"""The stages of a ladder, in three groups.

`Retry`, `Constrain`, `Escalate`, `Resume` and `Simplify` ask the question again: in the same conversation, with the
schema enforced, to another model, with a larger token budget, or for a flat object. `Extract`, `LlmRepair` and `Patch`
work on the reply: a model that sees only the reply extracts, repairs or patches the value. `Salvage`, `Synthesize` and
`Degrade` make no call: valid items are kept, a block or an event is completed, or the plain text is returned.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Final, Literal, TypeAlias, TypeVar, cast

from pydantic import Field
from pydantic_core import to_json

from flujo_aros.contract import (
    PLACEHOLDER,
    Block,
    BlockContract,
    Contract,
    Event,
    EventContract,
    JsonSchema,
    compile_schema,
    judge,
    path_of,
)
from flujo_aros.errors import ContractError
from flujo_aros.json_data import (
    Place,
    can_hold,
    definitions_of,
    is_dict,
    is_list,
    place_of,
    schema_at,
    value_at,
    with_value,
)
from flujo_aros.outcome import Accepted, Degraded, Draft, Issue, Outcome, Reason, Rejected, Repair, Risk, Trust
from flujo_aros.reading.payload import event_kind, is_slot, prose_of
from flujo_aros.reading.read import doomed_in
from flujo_aros.reading.read import read as read_text
from flujo_aros.reading.runaway import find_runaway, strip_runaway
from flujo_aros.recovery import prompts
from flujo_aros.recovery.fidelity import MADE_UP, beyond_repair, grounded, keeping, plain_value, violates
from flujo_aros.recovery.plan import (
    BROKEN_OFF,
    FORM_FAILED,
    LEFT_OPEN,
    SAYS_NOTHING,
    Ask,
    Judge,
    Past,
    Plan,
    ReadReply,
    Reply,
    Rung,
    Task,
    Way,
    has_form,
    has_issue,
)
from flujo_aros.redaction import Vault

T = TypeVar("T")


class Retry(Rung):
    """Ask again in the same conversation: the failing reply, what was wrong with it, and a stricter instruction.

    If the provider can enforce the schema, this is requested, because instructions alone seldom help a small model. If
    the schema was not enforced before and rules out the error, just the question is asked again, since feedback on a
    format that can no longer be wrong would only cost tokens. A reply that violates the schema shows that the provider
    ignores it: that attempt does not count, and the feedback follows. A model that repeats the schema is asked to
    answer in plain prose instead, from which `extract` reads the value.
    """

    # Not TOO_LARGE: the next reply would be just as large. PROVIDER only if the output format caused the error.
    # TRUNCATED only for a runaway reply, or if the provider broke off: anything else would be cut again at the same
    # place.
    answers: ClassVar[frozenset[Reason]] = frozenset(Reason) - {Reason.TOO_LARGE}

    sees_question: ClassVar[bool] = True

    stage: Literal["retry"] = "retry"
    attempts: int = Field(default=1, ge=1, le=100)
    """The maximum number of attempts, all in one conversation."""
    native: bool = True
    """Have the provider enforce the schema, if it supports that."""

    def passes(self, task: Task[Any], past: Past) -> str | None:
        """Skip the stage for a cut reply, which would be cut again, and for errors and filters that
        no wording changes.
        """
        if past.current.reason is Reason.PROVIDER and not has_issue(past.current, FORM_FAILED):
            return "the provider's error does not depend on the output format"
        if past.current.reason is Reason.REFUSED and has_issue(past.current, "content_filter"):
            return "the provider's filter ended the reply"
        cut = past.current.reason is Reason.TRUNCATED
        # No budget cut the reply, so the same question may be asked again.
        once_more = find_runaway(past.current.text) or has_issue(past.current, LEFT_OPEN, BROKEN_OFF)
        if cut and not once_more and not self.enforces(task, past):
            return "the reply was cut off, and a retry with the same token limit would be cut off again"
        return None

    def enforces(self, task: Task[Any], past: Past) -> bool:
        """Return whether the provider can enforce the schema, was not asked to, and the schema rules out the error.

        An objection of a check or of a Python type is not ruled out that way, so the model must see it.
        """
        failing = past.spoken
        if not self.native or task.native != "can" or not task.enforces or past.was_enforced:
            return False
        return failing.reason is not Reason.PROVIDER and plain_value(failing.text, task.contract.json_schema) is None

    def climb(self, task: Task[T], past: Past, read: ReadReply[T]) -> Plan[T]:
        """Ask until a reply is accepted or no attempts are left."""
        # After an error about the output format there is no reply to correct: the same question is asked in another
        # format.
        unanswered = past.spoken.reason is Reason.PROVIDER
        way: Way = "constrained" if self.native and not unanswered and task.enforces else "conversation"
        unchanged = self.enforces(task, past)  # only the question, with the schema enforced for the first time
        failing: Rejected = past.spoken
        outcome: Outcome[T] = failing
        turns: tuple[str, ...] = ()
        for attempt in range(1, self.attempts + 2):
            echoes = failing.reason is Reason.ECHOED_SCHEMA or has_issue(failing, SAYS_NOTHING)
            plainly = way == "conversation" and echoes
            prompt = prompts.plain_prompt(task.contract) if plainly else prompts.form_prompt(task.contract)
            if not plainly and failing.reason is not Reason.PROVIDER:
                prompt = prompts.retry_prompt(task.contract, failing)
            # The model would only repeat an echo again, and there is no point in showing an empty reply.
            wrote = strip_runaway(failing.text)
            said = () if plainly or not wrote.strip() else (*turns, wrote)
            if unchanged and attempt == 1:
                prompt, said = "", ()
            reply = yield Ask(prompt, self.stage, attempt, task.contract, way=way, said=said)
            outcome = read(reply)
            if not isinstance(outcome, Rejected) or outcome.reason is Reason.PROVIDER:
                return outcome
            turns = (*said, prompt) if said else ()
            failing = outcome
            ignored = unchanged and attempt == 1 and violates(outcome, task.contract.json_schema)
            if attempt >= self.attempts and not ignored:
                break
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
        """Skip the stage without a schema or provider support, or if the schema was already enforced."""
        if past.current.reason is Reason.PROVIDER and not has_issue(past.current, FORM_FAILED):
            return "the provider's error does not depend on the output format"
        if not task.contract.json_schema:
            return "there is no schema that a provider could enforce"
        if task.native == "on" or past.was_enforced:
            return "the schema was already enforced"
        return "the model has no mode that enforces this schema" if task.native == "no" else None

    def enforces(self, task: Task[Any], past: Past) -> bool:  # noqa: ARG002 (one shape for all stages)
        """Return whether the provider can enforce the schema and was not yet asked to."""
        return task.native == "can"

    def climb(self, task: Task[T], past: Past, read: ReadReply[T]) -> Plan[T]:  # noqa: ARG002 (one shape for all stages)
        """Make one request, whose reply is read like any other."""
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
        """Ask until a reply is accepted or no attempts are left."""
        outcome: Outcome[T] = past.latest
        for attempt in range(1, self.attempts + 1):
            prompt = prompts.form_prompt(task.contract)
            reply = yield Ask(prompt, self.stage, attempt, task.contract, way="conversation", model=self.model)
            outcome = read(reply)
            if not isinstance(outcome, Rejected):
                return outcome
        return outcome


_SEAM: Final = 24
"""The number of characters before the cut that a continuation must repeat, to prove that both parts belong together."""
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
    """The factor that multiplies the token budget of the first reply."""
    max_tokens: int | None = Field(default=None, ge=1)
    """The larger token budget; overrides `factor`."""

    def passes(self, task: Task[Any], past: Past) -> str | None:
        """Skip the stage without text to continue, without a budget that could grow, or for a runaway reply."""
        if find_runaway(past.first.text):
            return "the reply was a runaway, which a larger budget would only prolong"
        if has_issue(past.first, LEFT_OPEN):
            return "the reply was not cut off: the model ended it there"
        if past.asks_enforced and not _begins(past.first.text, task.contract):
            return "the text before the cut does not begin an answer; a later stage asks with the schema enforced"
        if (doomed := doomed_in(past.first.text, task.contract)) is not None:
            return f"the rest would not help: {doomed.path} does not satisfy the contract ({doomed.message})"
        if self._larger(task):
            return None if self._budget(task) else "the token limit that cut the reply is unknown"
        return None if past.first.text.strip() else "there is no text before the cut to continue"

    def climb(self, task: Task[T], past: Past, read: ReadReply[T]) -> Plan[T]:
        """Make one request. The result counts as the model's own reply."""
        if self._larger(task):
            way: Way = "constrained" if task.enforces else "conversation"
            reply = yield Ask("", self.stage, 1, task.contract, way=way, max_tokens=self._budget(task))
            return read(reply)
        cut = past.first.text
        begin = cut[-_SEAM:].lstrip() if len(cut) > _SEAM else cut
        ask = Ask(prompts.continue_prompt(begin), self.stage, 1, task.contract, way="conversation", said=(cut,))
        reply = yield replace(ask, max_tokens=self.max_tokens)
        if reply.fault is not None:
            return read(reply)
        whole = joined(cut, begin, reply.text)
        if whole is not None:
            return read(Reply(whole, reply.truncated, refused=reply.refused))
        return read(reply, partial(_restart_outcome, cut=past.first, task=task))

    def _larger(self, task: Task[Any]) -> bool:
        known = self.max_tokens is not None or task.max_tokens is not None
        return self.how == "larger" or (self.how == "auto" and known)

    def _budget(self, task: Task[Any]) -> int | None:
        if self.max_tokens is not None:
            return self.max_tokens if task.max_tokens is None or self.max_tokens > task.max_tokens else None
        return None if task.max_tokens is None else int(task.max_tokens * self.factor)


def _begins(cut: str, contract: Contract[Any]) -> bool:
    """Return whether a truncated text contains the start of a value: a key of the schema, or else
    an opening bracket.
    """
    names: dict[str, Any] = (schema_at(contract.json_schema, ()) or {}).get("properties", {})
    if not names:
        return "{" in cut or "[" in cut
    return any(re.search(rf"{re.escape(json.dumps(name))}\s*:", cut) for name in names)


def joined(cut: str, begin: str, rest: str) -> str | None:
    """Return the two parts of a reply as one, or None if the rest does not begin with the words before the cut.

    >>> joined('{"name": "pen", "qty', '"pen", "qty', '"pen", "qty": 3}')
    '{"name": "pen", "qty": 3}'
    """
    for opening in (rest, rest.lstrip(), _without_fence(rest)):
        if opening.startswith(begin):
            return cut[: len(cut) - len(begin)] + opening
    # A model may begin a few words later, or from the start: either way the overlap shows where the parts meet.
    if rest.lstrip().startswith(cut[: len(cut) - len(begin)].lstrip()) and begin in rest:
        return rest
    for size in range(len(begin) - 1, _MIN_SEAM - 1, -1):
        if rest.startswith(begin[-size:]):
            return cut[:-size] + rest
    return None


def _restart_outcome(outcome: Outcome[T], cut: Rejected, task: Task[T]) -> Outcome[T]:
    """Return the outcome of a model that started over instead of continuing. It counts if it repeats the cut reply."""
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
    """Return whether the contract accepts any text: nothing delimits the value, and nothing in it has a format."""
    value, made_up = outcome.value, outcome.trust is Trust.SYNTHESIZED
    unframed = isinstance(value, str) and contract.mode == "json"
    return made_up or unframed or (isinstance(value, Block) and not value.fields)


def _without_fence(text: str) -> str:
    """Return the text without the fence that some models put around every piece of code."""
    if not text.lstrip().startswith("```"):
        return text
    body = text.lstrip().partition("\n")[2]
    return body.rstrip().removesuffix("```").rstrip()


_MAX_DEPTH: Final = 4
_MAX_FIELDS: Final = 60
_SEPARATORS: Final = re.compile(r"\s*[|;\n]\s*")


class Simplify(Rung):
    """Ask for a flat object of strings, then coerce the strings into the real schema.

    For schemas that are too deeply nested for a model; lists of objects cannot be flattened.
    """

    answers: ClassVar[frozenset[Reason]] = frozenset(
        {Reason.NO_JSON, Reason.MALFORMED, Reason.INVALID, Reason.AMBIGUOUS, Reason.ECHOED_SCHEMA}
    )

    stage: Literal["simplify"] = "simplify"

    def passes(self, task: Task[Any], past: Past) -> str | None:  # noqa: ARG002 (one shape for all stages)
        """Skip the stage for a schema that is not an object, is open, or contains lists of objects."""
        return None if _flatten(task.contract) else "the schema cannot be flattened to an object of strings"

    def climb(self, task: Task[T], past: Past, read: ReadReply[T]) -> Plan[T]:  # noqa: ARG002 (one shape for all stages)
        """Make one request in the conversation, with the flat schema enforced if the provider supports it."""
        fields = _flatten(task.contract) or {}
        flat = _contract_of(fields)
        way: Literal["constrained", "conversation"] = "constrained" if task.native in ("can", "on") else "conversation"
        reply = yield Ask(prompts.form_prompt(flat), self.stage, 1, flat, way=way)
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
        text = to_json(whole).decode()
        made = Repair("simplified", Risk.INFERRED, "$", (0, len(reply.text)), reply.text[:80], text[:80])
        before = (made, *answer.repairs)
        return read(Reply(text, truncated=False), partial(_with_earlier, repairs=before, written=reply.text))


def _with_earlier(outcome: Outcome[T], repairs: Sequence[Repair], written: str) -> Outcome[T]:
    """Return the outcome with the repairs that led to its text, which the model wrote differently."""
    if not isinstance(outcome, Accepted):
        return replace(outcome, text=written)
    every = (*repairs, *outcome.repairs)
    return replace(outcome, repairs=every, trust=Trust.of(every), text=written)


def _contract_of(fields: Mapping[str, JsonSchema]) -> Contract[Any]:
    """Return the flat contract: one required string per field, empty for an unknown value."""
    texts = {path: {"type": "string", "description": _about(schema)} for path, schema in fields.items()}
    flat = {"type": "object", "properties": texts, "required": list(texts), "additionalProperties": False}
    return compile_schema(flat)


def _about(schema: JsonSchema) -> str:
    words = [str(schema["description"])] if schema.get("description") else []
    if schema.get("enum"):
        words.append(f"one of: {', '.join(map(str, schema['enum']))}")
    elif schema.get("type") == "array":
        words.append("several values, with | between them")
    elif isinstance(schema.get("type"), str) and schema["type"] != "string":
        words.append(f"a {schema['type']}")
    return "; ".join([*words, "empty if not known"])


def _flatten(contract: Contract[Any]) -> dict[str, JsonSchema] | None:
    """Return the fields of a schema by their dotted names, or None if it cannot be flattened."""
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
        """Skip the stage if there is no schema, or the text was written with that schema enforced."""
        if not task.contract.json_schema:
            return "there is no schema that says what to extract"
        if past.was_enforced and self.model is None:
            return "the provider has enforced the schema, so the reply contains no more than what was read"
        if plain_value(past.spoken.text, task.contract.json_schema) is not None:
            return "the format of the answer is correct, so extracting it again would not help"
        return _why_beyond_repair(past.spoken, task)

    def climb(self, task: Task[T], past: Past, read: ReadReply[T]) -> Plan[T]:
        """Make one request about the available text; if there is none, make another request first."""
        source, attempt = past.spoken, 1
        if source.reason not in _HOLDS_AN_ANSWER or not source.text.strip():
            reply = yield Ask(
                prompts.plain_prompt(task.contract), self.stage, attempt, task.contract, way="conversation"
            )
            thought = read(reply)
            if not isinstance(thought, Rejected) or thought.reason not in _HOLDS_AN_ANSWER or not reply.text.strip():
                return thought
            source, attempt = thought, 2
        text = source.text
        vault = Vault(text, task.secrets, labelled=True)
        enforced = task.enforces and self.model is None
        prompt = prompts.extract_prompt(task.contract, text, vault, enforced=enforced)
        if len(prompt) > self.max_chars:
            return Rejected(Reason.TOO_LARGE, (), text)
        way: Way = "bare_constrained" if enforced else "bare"
        ask = Ask(prompt, self.stage, attempt, task.contract, way=way, model=self.model)
        answer = prompts.unmasked((yield ask), vault)
        if isinstance(answer, Rejected):
            return answer
        return read(answer, partial(grounded, source=text, contract=task.contract, draft=source.draft))


class LlmRepair(Rung):
    """Ask a model to correct the failing output: the prompt contains only that output, the issues and the schema.

    Secrets are masked before the prompt is sent and restored in the reply. If the prompt would exceed `max_chars`, the
    stage is skipped: repairing half an output would lose the other half. A reply that changes a correct part is
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
        """Skip the stage without text or a schema to repair towards, or if the prompt would be too long."""
        failing = past.current
        if not failing.text.strip():
            return "there is no text to repair"
        if not task.contract.json_schema:
            return "there is no schema to repair towards"
        longest = len(self._prompt(task, failing, Vault(failing.text, task.secrets, labelled=True)))
        if longest > self.max_chars:
            return f"the prompt would have {longest} characters, more than {self.max_chars}"
        only_asking = past.asks_again or not has_form(task.contract)
        if only_asking and plain_value(failing.text, task.contract.json_schema) is not None:
            return "its format is correct, and only a model that knows the question can correct its content"
        if past.asks_enforced and task.question_chars is not None and task.question_chars <= longest:
            return "asking the question again, with the schema enforced, is cheaper"
        return _why_beyond_repair(failing, task)

    def climb(self, task: Task[T], past: Past, read: ReadReply[T]) -> Plan[T]:
        """Ask until a reply is accepted, no attempts are left, or the model reports that a repair is impossible."""
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
            answer = prompts.unmasked((yield ask), vault)
            if isinstance(answer, Rejected):
                return answer
            outcome = read(answer, partial(_judge_repair, failing=failing, source=past.current, task=task))
            if not isinstance(outcome, Rejected):
                return outcome
            if has_issue(outcome, MADE_UP):
                return outcome  # the output does not contain it; asking again would invite the model to invent it
            # Only an output that has the content may replace the failing one: a reply in prose has lost it, and so has
            # one that changed a correct part.
            if has_issue(outcome, "changed"):
                failing = replace(failing, issues=(*failing.issues, *outcome.issues))
            elif outcome.reason in (Reason.MALFORMED, Reason.INVALID):
                failing = outcome
            else:  # never the same prompt twice
                issue = Issue("$", "attempt", f"attempt {attempt} to correct it produced no JSON value")
                failing = replace(failing, issues=(*past.current.issues, issue))
        return outcome

    def _is_enforced(self, task: Task[Any]) -> bool:
        """Return whether the provider is asked to enforce the schema; the capabilities of another model are unknown."""
        return task.enforces and self.model is None

    def _prompt(self, task: Task[Any], failing: Rejected, vault: Vault) -> str:
        return prompts.repair_prompt(task.contract, failing, vault, enforced=self._is_enforced(task))


def _why_beyond_repair(failing: Rejected, task: Task[Any]) -> str | None:
    """Return the reason why a model that has not seen the question cannot correct a reply, or None."""
    path = beyond_repair(failing, task.contract)
    return None if path is None else f"{path} is a number, and a repair would have to make up another one"


def _judge_repair(outcome: Outcome[T], failing: Rejected, source: Rejected, task: Task[T]) -> Outcome[T]:
    """Reject a repair that changes a correct part or makes something up."""
    return grounded(keeping(outcome, failing, task.contract), source.text, task.contract, draft=source.draft)


class Patch(Rung):
    """Ask for the failing fields of a readable answer and insert the replies; everything else stays unchanged.

    One call for each attempt, with a prompt like that of `llm_repair`. Correct parts cannot change, and values that
    the answer does not contain cannot be made up.
    """

    answers: ClassVar[frozenset[Reason]] = frozenset({Reason.INVALID})

    stage: Literal["patch"] = "patch"
    attempts: int = Field(default=1, ge=1, le=10)
    """The maximum number of attempts. The second one asks for what is still wrong."""
    max_fields: int = Field(default=20, ge=1, le=200)
    """The maximum number of values to ask for. An answer with more errors is better requested again."""
    max_chars: int = Field(default=60_000, ge=1_000)
    """The maximum length of the prompt."""
    model: str | None = None
    """The model to ask; by default that of the run."""

    def passes(self, task: Task[Any], past: Past) -> str | None:
        """Skip the stage without a draft, or if the issues are not about values in it."""
        failing = past.current
        if failing.draft is None:
            return "there is no readable answer to patch"
        places = _wrong(failing, failing.draft, task.contract.json_schema)
        if not places or _form_of(places, task.contract.json_schema) is None:
            return "the errors are not in fields that can be requested individually"
        if len(places) > self.max_fields:
            return f"{len(places)} places are wrong, more than {self.max_fields}"
        return _why_beyond_repair(failing, task)

    def climb(self, task: Task[T], past: Past, read: ReadReply[T]) -> Plan[T]:
        """Ask until the patched answer is accepted or no attempts are left."""
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
            prompt = prompts.patch_prompt(form, replace(failing, issues=wrong), vault)
            if len(prompt) > self.max_chars:
                return outcome
            answer = prompts.unmasked((yield Ask(prompt, self.stage, attempt, form, model=self.model)), vault)
            if isinstance(answer, Rejected):
                return answer
            judge = partial(grounded, source=source.text, contract=task.contract, draft=source.draft)
            outcome = _patch(answer, form, draft, places, read, judge)
            if not isinstance(outcome, Rejected) or has_issue(outcome, MADE_UP):
                return outcome
            failing = outcome if outcome.draft else failing
        return outcome


def _patch(
    reply: Reply, form: Contract[Any], draft: Draft, places: dict[str, Place], read: ReadReply[T], judge: Judge[T]
) -> Outcome[T]:
    """Return the outcome of the draft with the reply inserted."""
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

    def judged(outcome: Outcome[T]) -> Outcome[T]:
        return judge(_with_earlier(outcome, repairs, outcome.text) if repairs else outcome)

    return read(Reply(text, truncated=False), judged)


def _wrong(failing: Rejected, draft: Draft, schema: dict[str, Any]) -> dict[str, Place]:
    """Return the wrong values of a draft by path, without those inside another wrong value."""
    found: dict[str, Place] = {}
    for issue in failing.issues:
        place = place_of(issue.path)
        if not place or not can_hold(draft.value, place) or schema_at(schema, place) is None:
            return {}
        found[issue.path] = place
    return {
        path: place
        for path, place in found.items()
        if not any(other != place and place[: len(other)] == other for other in found.values())
    }


def _form_of(places: dict[str, Place], schema: dict[str, Any]) -> Contract[Any] | None:
    """Return the contract of the reply: an object with one key for each wrong value."""
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
        return compile_schema({**whole, **shared})
    except ContractError:
        return None


class Degrade(Rung):
    """Return the model's own text as `Degraded`, which is never success; if there is no text, the rejection stays."""

    answers: ClassVar[frozenset[Reason]] = frozenset(Reason)
    asks: ClassVar[bool] = False

    stage: Literal["degrade"] = "degrade"

    def passes(self, task: Task[Any], past: Past) -> str | None:  # noqa: ARG002 (one shape for all stages)
        """Skip the stage if there is no text to return."""
        return None if past.current.text.strip() else "there is no text to return"

    def climb(self, task: Task[T], past: Past, read: ReadReply[T]) -> Plan[T]:  # noqa: ARG002 (one shape for all stages)
        """Return the text of the first reply as `Degraded`."""
        return Degraded(past.current.text, past.current)
        yield  # makes this function a generator (a plan), although it makes no request


class Salvage(Rung):
    """Keep the complete items of a list and drop broken or unfinished ones, each reported as a LOSSY repair.

    No default ladder includes it, because a shortened list looks complete. The result satisfies the contract.
    """

    answers: ClassVar[frozenset[Reason]] = frozenset({Reason.TRUNCATED, Reason.INVALID, Reason.MALFORMED})
    asks: ClassVar[bool] = False

    stage: Literal["salvage"] = "salvage"

    def passes(self, task: Task[Any], past: Past) -> str | None:  # noqa: ARG002 (one shape for all stages)
        """Skip the stage unless the contract is JSON: only its schema says what an item is."""
        return None if task.contract.mode == "json" else "only JSON lists have items to keep"

    def climb(self, task: Task[T], past: Past, read: ReadReply[T]) -> Plan[T]:  # noqa: ARG002 (one shape for all stages)
        """Drop broken items, as few as possible, until the rest is accepted."""
        failing = past.current
        if failing.reason is Reason.INVALID:
            return _without_wrong_items(failing, read)
        return _without_the_end(failing, read)
        yield  # makes this function a generator (a plan), although it makes no request


def _without_wrong_items(failing: Rejected, read: ReadReply[T]) -> Outcome[T]:
    if failing.draft is None:
        return failing
    items = {_item_of(place) for issue in failing.issues if (place := place_of(issue.path)) is not None}
    if not items or () in items:
        return failing
    whole, dropped = failing.draft.value, list[Repair]()
    for place in sorted(items, key=_order, reverse=True):
        holder: Any = value_at(whole, place[:-1])
        kept = [item for index, item in enumerate(holder) if index != place[-1]]
        dropped_text = to_json(holder[place[-1]], inf_nan_mode="constants").decode()
        repair = Repair("dropped-item", Risk.LOSSY, path_of(place), failing.draft.span, dropped_text[:80], "")
        dropped.insert(0, repair)
        whole = with_value(whole, place[:-1], kept)
    text = to_json(whole, inf_nan_mode="constants").decode()
    return read(Reply(text, truncated=False), partial(_with_earlier, repairs=dropped, written=failing.text))


def _without_the_end(failing: Rejected, read: ReadReply[T]) -> Outcome[T]:
    for end, text in whole_prefixes(failing.text):
        dropped_text = failing.text[end:]
        repair = Repair("dropped-end", Risk.LOSSY, "$", (end, len(failing.text)), dropped_text[:80], "")
        outcome = read(Reply(text, truncated=False), partial(_with_earlier, repairs=[repair], written=failing.text))
        if isinstance(outcome, Accepted):
            return outcome
    return failing


def _item_of(place: Place) -> Place:
    """Return the innermost list item that contains this location, or the root."""
    last = max((index for index, part in enumerate(place) if isinstance(part, int)), default=-1)
    return place[: last + 1]


def _order(place: Place) -> tuple[tuple[int, str], ...]:
    return tuple((part, "") if isinstance(part, int) else (0, part) for part in place)


_CLOSERS: Final = {"{": "}", "[": "]"}
_STRUCTURE: Final = re.compile(r'[{}\[\],]|"(?:[^"\\]|\\.|(?!))*+(?:"|\\?\Z)', re.S)
"""Structural characters, and strings, which contain none. A truncated string extends to the end."""


def whole_prefixes(text: str) -> list[tuple[int, str]]:
    """Return prefixes of a JSON text that end after a complete list item, with brackets closed, and the end of each.

    The longest comes first; at most 16 are returned. Only lists can be shortened: an object without its last
    members is a different object.

    >>> whole_prefixes('{"items": [{"n": 1}, {"n": 2}, {"n"')
    [(29, '{"items": [{"n": 1}, {"n": 2}]}'), (19, '{"items": [{"n": 1}]}')]
    """
    start = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=-1)
    if start < 0:
        return []
    stack: list[str] = []
    ends: deque[tuple[int, str]] = deque(maxlen=16)
    for found in _STRUCTURE.finditer(text, start):
        at, letter = found.start(), found[0]
        if letter in "{[":
            stack.append(letter)
        elif letter in "}]":
            if not stack or _CLOSERS[stack.pop()] != letter or not stack:
                break
            if stack[-1] == "[":
                ends.append((at + 1, _closing(stack)))
        elif letter == "," and stack and stack[-1] == "[" and (not ends or text[ends[-1][0] : at].strip()):
            ends.append((at, _closing(stack)))
    return [(end, text[start:end] + closing) for end, closing in reversed(ends)]


def _closing(stack: list[str]) -> str:
    return "".join(_CLOSERS[opened] for opened in reversed(stack))


NO_CONTEST: Final = "no_contest"
"""The marker of a verdict without a winner, and the kind of its event if there is one."""
_NOT_AN_ANSWER: Final = (Reason.ECHOED_SCHEMA, Reason.REFUSED, Reason.PROVIDER)
"""The reasons of rejections whose reply contains no part of an answer."""


class Synthesize(Rung):
    """Add what the contract requires and the reply lacks: a block before its prose, or an event built from its text.

    A block has every key, with an empty string as its value; the prose is not changed. Truncated prose gets no block,
    since that would hide the truncation. An event uses the text that the replies contain in a different form: in a
    list, under a different key, or before a cut; `…` if there is none. Missing required fields are empty strings. A
    verdict whose winner fails the checks names none, with `no_contest: true`. An event that fails any other check
    stays rejected. The trust is always `SYNTHESIZED`.
    """

    answers: ClassVar[frozenset[Reason]] = frozenset(Reason) - {Reason.PROVIDER, Reason.TOO_LARGE}
    asks: ClassVar[bool] = False

    stage: Literal["synthesize"] = "synthesize"

    def passes(self, task: Task[Any], past: Past) -> str | None:
        """Skip the stage for other contracts, for a block before truncated prose, and for an event
        that a filter ended.
        """
        if isinstance(task.contract, BlockContract):
            cut = past.current.reason is Reason.TRUNCATED or has_issue(past.current, "content_filter")
            return "a block before truncated prose would hide the truncation" if cut else None
        if not isinstance(task.contract, EventContract):
            return "only a block or an event can be synthesized"
        if past.current.reason is Reason.REFUSED:
            return "the provider's filter ended the reply"
        return None

    def climb(self, task: Task[T], past: Past, read: ReadReply[T]) -> Plan[T]:  # noqa: ARG002 (one shape for all stages)
        """Build the block or event, without a call."""
        if isinstance(task.contract, BlockContract):
            return cast("Outcome[T]", _block(task.contract, past.current.text))
        return cast("Outcome[T]", _event(cast("EventContract", task.contract), past))
        yield  # makes this function a generator (a plan), although it makes no request


def _block(contract: BlockContract, prose: str) -> Accepted[Block]:
    """Return the prose after a block with every key."""
    fields = dict.fromkeys(contract.keys, "")
    text = json.dumps(fields, ensure_ascii=False) + (f"\n\n{prose}" if prose.strip() else "")
    made = Repair("synthesized", Risk.LOSSY, "$.fields", (0, 0), "", text[:80])
    return Accepted(Block(fields, prose_of(prose)), Trust.SYNTHESIZED, "synthesize", (made,), text)


def _event(contract: EventContract, past: Past) -> Outcome[Event]:
    """Return the latest reply that is an event but misses some requirements, or else an event built from the text of a
    reply.
    """
    replies = {id(rejected): rejected for rejected in (past.spoken, past.current, past.first)}.values()
    spoken = [rejected for rejected in replies if rejected.reason not in _NOT_AN_ANSWER]
    # truncated text only if there is no other text
    spoken.sort(key=lambda rejected: rejected.reason is Reason.TRUNCATED)
    fields = tuple(name for name in contract.fields if name != "winner" and name not in contract.required)
    plain = replace(contract, checks=(), required=(), fields=fields)
    for rejected in spoken:
        said = read_text(strip_runaway(rejected.text), plain)
        if isinstance(said, Accepted) and not said.value.says_nothing:
            # A readable reply that was INVALID has failed a check, possibly one that only the caller knows.
            return _settled(said, rejected, contract, rejected.issues if rejected.reason is Reason.INVALID else ())
    for rejected in spoken:
        if (made := _wrap_other_form(strip_runaway(rejected.text), plain)) is not None:
            return _settled(made, rejected, contract)
    return _settled(_made(plain.fallback, PLACEHOLDER, past.first.text), past.first, contract)


def _settled(
    said: Accepted[Event], rejected: Rejected, contract: EventContract, issues: Sequence[Issue] = ()
) -> Outcome[Event]:
    """Return the event in the form that its contract requires, without an unverified winner, or the rejection if there
    are other issues.
    """
    fields = said.value.model_dump(exclude_unset=True)
    missing = [name for name in contract.required if fields.get(name) in (None, "")]
    repairs = [*said.repairs, *(Repair("synthesized", Risk.LOSSY, f"$.{name}", (0, 0), "", "") for name in missing)]
    event, found, cleaned = judge(Event.model_validate(fields | dict.fromkeys(missing, "")), contract.checks, contract)
    against = [issue for issue in (*issues, *found) if issue.path not in [f"$.{name}" for name in missing]]
    if against and not contract.is_verdict and any(not issue.path.startswith("$.winner") for issue in against):
        return rejected
    repairs += cleaned
    if against or (contract.is_verdict and event.is_raw_fallback):
        kind = NO_CONTEST if NO_CONTEST in contract.kinds else event.kind
        repairs.append(Repair("no-contest", Risk.LOSSY, "$.winner", (0, len(said.text)), str(event.winner), "null"))
        fields = event.model_dump(exclude_unset=True)
        event = Event.model_validate({**fields, "kind": kind, "winner": None, NO_CONTEST: True})
    return Accepted(event, Trust.SYNTHESIZED, "synthesize", repairs, said.text)


def _wrap_other_form(text: str, contract: EventContract) -> Accepted[Event] | None:
    """Return an event made from text in a different form, with repairs of any risk, or None if there is no such
    text."""
    cut = read_text(text, contract, risk=Risk.LOSSY)
    if isinstance(cut, Accepted):
        return None if cut.value.says_nothing else _made(cut.value.kind, cut.value.text, text)
    for schema in ({"type": "array"}, {"type": "object"}):
        found = read_text(text, schema, risk=Risk.LOSSY)
        lines = list(_lines(found.value, contract)) if isinstance(found, Accepted) else []
        if lines:
            kind = lines[0][0]
            # If there are several events, use those of one kind: a thought is not spoken text.
            said = "\n".join(line for other, line in lines if other == kind)
            return _made(event_kind(kind, contract), said, text)
    return None


def _lines(value: Any, contract: EventContract, kind: str | None = None) -> Iterator[tuple[str | None, str]]:
    """Yield the strings of a JSON value, each with the kind of its event."""
    if isinstance(value, str):
        if value.strip(" .…") and not is_slot(value, contract.example):
            yield kind, value.strip()
    elif is_list(value):
        for item in value:
            yield from _lines(item, contract, kind)
    elif is_dict(value):
        kind = str(value["kind"]) if "kind" in value else kind
        aside = ("kind", *contract.fields)
        others = [inner for key, inner in value.items() if key not in aside and isinstance(inner, str)]
        spoken = value.get("text")
        yield from _lines(spoken if spoken is not None else others[0] if len(others) == 1 else None, contract, kind)


def _made(kind: str, said: str, text: str) -> Accepted[Event]:
    event = Event.model_validate({"kind": kind, "text": said, "_raw_fallback": True})
    made = Repair("synthesized", Risk.LOSSY, "$", (0, len(text)), text[:80], said[:80])
    return Accepted(event, Trust.SYNTHESIZED, "synthesize", (made,), text)


AnyStage: TypeAlias = (
    Resume | LlmRepair | Patch | Retry | Constrain | Escalate | Extract | Simplify | Salvage | Synthesize | Degrade
)
"""Every stage that a ladder may have."""
