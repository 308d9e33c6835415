"""The ladder: how it reads a reply, its stages, its limits, how it runs, and the default ladder of each contract."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache, partial
from types import NoneType
from typing import Annotated, Any, Final, Generic, TypeAlias, TypeVar, cast

from pydantic import Field, field_validator

from flujo_aros.configured import Configured
from flujo_aros.contract import Block, Contract, Event, TaggedContract, compile_contract
from flujo_aros.errors import UsageError
from flujo_aros.events import ReadFinished, StageFinished, StageSkipped, StageStarted, current_observers, emit, span
from flujo_aros.json_data import is_dict
from flujo_aros.outcome import Accepted, Attempt, Degraded, Issue, Outcome, Reason, Rejected, Repair, Risk, Trust
from flujo_aros.reading.read import read as read_text
from flujo_aros.recovery.fidelity import Examples, unechoed, violates
from flujo_aros.recovery.plan import (
    BROKEN_OFF,
    FORM_FAILED,
    LEFT_OPEN,
    SAYS_NOTHING,
    Ask,
    Judge,
    Past,
    Plan,
    Reply,
    Task,
    advance,
)
from flujo_aros.recovery.prompts import form_prompt
from flujo_aros.recovery.stages import AnyStage, Degrade, Extract, LlmRepair, Resume, Retry, Simplify, Synthesize
from flujo_aros.settings import Settings

T = TypeVar("T")

Stage: TypeAlias = Annotated[AnyStage, Field(discriminator="stage")]

OTHER_NAMES: Final = {
    "stricter_reprompt": "retry",
    "llm": "llm_repair",
    "extractor": "extract",
    "extract_from_text": "extract",
    "degrade_to_string": "degrade",
}
"""Alternative names of stages."""
READING: Final = ("read", "deterministic")
"""Names of what precedes every ladder and is therefore not a stage."""


class Ladder(Configured):
    """The stages that a rejected reply goes through, in order, until one returns a value, and their limits.

    Stages that are not listed never run; a stage that does not handle the reason for the rejection is skipped.
    The limits are checked before each stage and before each model call, and every skipped stage or call is recorded.
    As data, a stage is an object or just its name: `["llm_repair", {"stage": "retry", "attempts": 2}]`.

    >>> Ladder(stages=(LlmRepair(attempts=1),)).max_calls
    6
    """

    stages: tuple[Stage, ...] = (Resume(), LlmRepair(attempts=2), Retry(), Extract(), Degrade())
    max_stages: int = Field(default=3, ge=0)
    """The maximum number of fallback stages; `resume` and `llm_repair` do not count."""
    max_calls: int = Field(default=6, ge=0)
    """The maximum number of model calls of all stages together in one agent run, not counting the agent's own."""
    max_cost: Decimal | None = Field(default=None, ge=0)
    """The maximum cost of all stages together in US dollars; a call with an unknown price counts as zero."""
    deadline: float | None = Field(default=None, ge=0)
    """The number of seconds after the first reply in which calls may start; a running call is not interrupted."""
    adaptive: bool = False
    """Whether to order the stages by past success, and skip those that never produced a value."""

    @field_validator("stages", mode="before")
    @classmethod
    def _by_name(cls, value: object) -> object:
        """Resolve stages given by name only, including by their alternative names."""
        if isinstance(value, AnyStage):
            name = type(value).__name__
            raise ValueError(f"must be a sequence of stages; for a single one, write ({name}(),)")
        if not isinstance(value, (list, tuple)):
            return value
        named = [_as_stage(part) for part in cast("list[object]", value)]
        return tuple(part for part in named if not (is_dict(part) and part.get("stage") in READING))

    def answers(self, reason: Reason) -> bool:
        """Return whether any stage can handle a rejection with this reason."""
        return any(reason in stage.answers for stage in self.stages)

    def ends_with(self, read: Outcome[Any]) -> bool:
        """Return whether this reading is final, so that no plan is needed."""
        if not isinstance(read, Accepted):
            return False
        return not isinstance(read.value, Event) or isinstance(_reject_empty_event(read, self.stages), Accepted)

    def asks_after(self, rejected: Rejected, contract: Contract[Any]) -> bool:
        """Return whether a stage would make a model call for this rejection."""
        task, past = Task(contract), Past.of(rejected)
        asking = (stage for stage in self.stages if stage.asks and rejected.reason in stage.answers)
        return self.max_calls > 0 and any(stage.passes(task, past) is None for stage in asking)

    def climb(self, task: Task[T], first: Reply, read: Outcome[T] | None = None) -> Plan[T]:
        """Return the whole recovery as a plan: read the first reply, then run stage after stage until there is a value.

        `read` is the outcome of the first reply, if the caller has already read it (`read_first`).

        The plan returns the accepted value (its `origin` names the stage), `Degraded`, or the first rejection, since
        later ones concern repairs and not the answer. For a tagged contract it returns the last rejection, because
        each attempt is a new answer. A rejection carries all attempts.

        Raises `UsageError` for a deadline without a clock.
        """
        if read is None:
            read = read_first(first, task.contract, self, task.examples, capture=task.capture)
        return (yield from Climb(task, self).over(first, read))


def _as_stage(part: object) -> Any:
    if isinstance(part, str):
        return {"stage": OTHER_NAMES.get(part, part)}
    if is_dict(part) and part.get("stage") in OTHER_NAMES:
        return {**part, "stage": OTHER_NAMES[str(part["stage"])]}
    return part


_CUT_BY_ERROR: Final = Issue("$", BROKEN_OFF, "the reply ended there because of the error")
_ENDED_THERE: Final = Issue("$", LEFT_OPEN, "the model itself ended the reply there: the provider did not cut it")
_FORM_FAILED: Final = Issue("$", FORM_FAILED, "the error may be about the requested output format")
_UNFINISHED: Final = (Reason.MALFORMED, Reason.NO_JSON)


def read_reply(reply: Reply, contract: Contract[T]) -> Outcome[T]:
    """Read a reply.

    A fault without any text is rejected with reason PROVIDER, an objection with INVALID. An unreadable reply is REFUSED
    if a filter ended it, and TRUNCATED if it reached its limit.
    """
    if reply.fault is not None and not reply.text.strip():
        reason = Reason.REFUSED if reply.refused else Reason.PROVIDER
        issue = Issue("$", reply.fault_code, reply.fault)
        issues = (issue, _FORM_FAILED) if reply.in_words else (issue,)
        return Rejected(reason, issues, reply.text, retry_after=reply.retry_after)
    if reply.thought or reply.fault is not None:
        outcome = _read_oddly(reply, contract)
    else:
        outcome = read_text(reply.text, contract, truncated=reply.truncated)
    if isinstance(outcome, Accepted) and reply.objections:
        return Rejected(Reason.INVALID, reply.objections, reply.text)
    if isinstance(outcome, Rejected) and reply.objections and not reply.text.strip():
        return replace(outcome, issues=reply.objections)  # the reason why there is nothing to read
    made_up = isinstance(outcome, Accepted) and outcome.trust is Trust.SYNTHESIZED
    if made_up and reply.fault is not None and reply.in_words:
        return Rejected(Reason.NO_JSON, (Issue("$", reply.fault_code, reply.fault),), reply.text)
    if reply.refused and (isinstance(outcome, Rejected) or made_up):
        issue = Issue("$", "content_filter", "the provider's filter ended the reply")
        if not isinstance(outcome, Rejected):  # prose interrupted by a filter is not an answer
            return Rejected(Reason.REFUSED, (issue,), reply.text)
        return replace(outcome, reason=Reason.REFUSED, issues=(issue, *outcome.issues))
    if isinstance(outcome, Rejected) and reply.truncated and outcome.reason in _UNFINISHED:
        # the missing part was never written, so there is nothing to repair
        outcome = replace(outcome, reason=Reason.TRUNCATED)
    if not isinstance(outcome, Rejected) or outcome.reason is not Reason.TRUNCATED:
        return outcome
    if reply.truncated and reply.fault is not None:  # in that case the text itself is not the problem
        return replace(outcome, issues=(*outcome.issues, Issue("$", reply.fault_code, reply.fault), _CUT_BY_ERROR))
    if reply.truncated is False and contract.mode in ("tagged", "text"):  # the model itself left the tag open
        return replace(outcome, issues=(*outcome.issues, _ENDED_THERE))
    return outcome


def _read_oddly(reply: Reply, contract: Contract[T]) -> Outcome[T]:
    """Read a text that was in the thinking, or that came with an error."""
    end = len(reply.text)
    if reply.thought:
        outcome = read_text(reply.text, contract, truncated=reply.truncated)
        return _with_inferred_repair(outcome, "from-thinking", (0, end)) if isinstance(outcome, Accepted) else outcome
    if reply.truncated and contract.risk >= Risk.INFERRED:
        # Unlike a token limit, an error does not suggest that the model would have continued.
        outcome = read_text(reply.text, contract)
        if isinstance(outcome, Accepted) and ends_by_itself(outcome):
            return _with_inferred_repair(outcome, BROKEN_OFF.replace("_", "-"), (end, end))
    return read_text(reply.text, contract, truncated=reply.truncated)


def ends_by_itself(outcome: Accepted[Any]) -> bool:
    """Return whether a value has a recognizable end, as objects and lists have; prose and numbers
    may always continue.
    """
    return outcome.trust is not Trust.SYNTHESIZED and not isinstance(outcome.value, _OPEN_ENDED)


_OPEN_ENDED: Final = (str, bool, int, float, NoneType, Block)


def _with_inferred_repair(outcome: Accepted[T], code: str, span: tuple[int, int]) -> Accepted[T]:
    """Return the outcome with one more repair, about where the text was or how it ended."""
    words = outcome.text[slice(*span)][:80]
    repairs = (*outcome.repairs, Repair(code, Risk.INFERRED, "$", span, words, words))
    return replace(outcome, repairs=repairs, trust=Trust.lowest([outcome.trust, Trust.INFERRED]))


_OWN: Final = ("first", "resume")
"""The stages whose reply is the model's own first answer."""


def _reject_empty_event(outcome: Outcome[T], stages: Sequence[AnyStage]) -> Outcome[T]:
    """Return the outcome, or a rejection in place of an event from an empty reply if a stage would ask again."""
    event = outcome.value if isinstance(outcome, Accepted) else None
    if not isinstance(event, Event) or not (event.is_raw_fallback and event.says_nothing) or not _asks_again(stages):
        return outcome
    issue = Issue("$.text", SAYS_NOTHING, "nothing in the reply is part of the answer")
    return Rejected(Reason.NO_JSON, (issue,), outcome.text)


def read_first(
    reply: Reply, contract: Contract[T], ladder: Ladder, examples: Examples | None, *, capture: bool
) -> Outcome[T]:
    """Read the first reply, before any stage. A CLEAN value needs no recovery."""
    outcome = unechoed(read_reply(reply, contract), examples, contract, partial(_asks_again, ladder.stages))
    if current_observers():
        report_reading(outcome, "first", reply, contract, capture=capture, ladder=ladder)
    return outcome


def _asks_again(stages: Sequence[AnyStage]) -> bool:
    """Return whether a stage asks again after a reply that only repeats its prompt."""
    return Reason.ECHOED_SCHEMA in frozenset[Reason]().union(*[stage.answers for stage in stages if stage.asks])


def report_reading(
    outcome: Outcome[Any],
    stage: str,
    reply: Reply,
    contract: Contract[Any],
    *,
    capture: bool,
    ladder: Ladder | None = None,
    origin: Reply | None = None,
) -> None:
    """Emit the event for a reply that was read, or for a person's answer. `origin` is the model's own text if a stage
    built the reply from it.
    """
    written = reply if origin is None else origin
    rejected = outcome if isinstance(outcome, Rejected) else None
    emit(
        ReadFinished(
            stage=stage,
            outcome=outcome.kind,
            trust=None if isinstance(outcome, Rejected) else outcome.trust.value,
            reason=None if rejected is None else rejected.reason.value,
            repairs=tuple(outcome.repairs) if isinstance(outcome, Accepted) else (),
            issues=() if rejected is None else rejected.issues,
            schema_hash=contract.fingerprint,
            contract=contract,
            ladder=ladder,
            model=written.model,
            finish_reason=written.finish_reason,
            text=reply.text,
            capture=capture,
        )
    )


def _in_words(ask: Ask) -> Ask:
    """Return the same request without the schema enforced: the prompt describes the format instead."""
    form = form_prompt(ask.contract)
    if ask.in_conversation:
        return replace(ask, way="conversation", prompt=ask.prompt or form)
    return replace(ask, way="bare", prompt=f"{ask.prompt}\n\n{form}")


class Climb(Generic[T]):
    """The state of one run of the ladder."""

    def __init__(self, task: Task[T], ladder: Ladder) -> None:
        if ladder.deadline is not None and task.clock is None:
            raise UsageError("a ladder with a deadline needs a clock: pass clock= to the Task")
        self._task = task
        self._ladder = ladder
        self._evidence = task.evidence if ladder.adaptive else None
        self._calls, self._cost, self._fallbacks = task.spent.requests, task.spent.cost or Decimal(0), 0
        self._refusal: str | None = None
        """The reason why the caller allows no further call."""
        self._began = self._now()
        self._attempts: list[Attempt] = []
        self._unread = False
        self._answer: Reply | None = None
        """The latest reply of a model in the current stage."""
        self._enforced = False

    def over(self, first: Reply, read: Outcome[T]) -> Plan[T]:
        """Run stage after stage until there is a value. `read` is the outcome of the first reply."""
        outcome = _reject_empty_event(read, self._ladder.stages)
        if not isinstance(outcome, Rejected):
            return outcome
        self._heard("first", first)
        self._settle(outcome)
        past = Past.of(outcome)
        ordered = self._order()
        for index, stage in enumerate(ordered):
            if past.current.reason not in stage.answers:
                continue
            past = self._foreseeing(past, ordered[index + 1 :])
            if (why := self._why_skipped(stage, past)) is not None:
                self._pass(stage, why)
                continue
            outcome = yield from self._stage(stage, past)
            if isinstance(outcome, Accepted):
                return replace(outcome, origin=stage.stage)
            if isinstance(outcome, Degraded):
                self._attempts.append(Attempt(stage.stage, outcome.kind, text=outcome.text))
                degraded = replace(outcome, because=self._with_attempts(outcome.because))
                return read if isinstance(read, Accepted) else degraded
            if outcome is not past.latest:  # a reply was read in this stage
                past = past.then(stage.stage, outcome, enforced=self._enforced)
        if isinstance(read, Accepted):  # an empty event, if there is nothing better
            return read
        return self._with_attempts(past.spoken if self._task.contract.mode in ("tagged", "text") else past.first)

    def _foreseeing(self, past: Past, later: Sequence[AnyStage]) -> Past:
        """Return the history so far, with what the remaining stages would do and may do."""
        mine = (stage for stage in later if stage.sees_question and past.current.reason in stage.answers)
        asking = [stage for stage in mine if self._why_skipped(stage, past) is None]
        enforced = any(stage.enforces(self._task, past) for stage in asking)
        return replace(past, asks_again=bool(asking), asks_enforced=enforced)

    def _why_skipped(self, stage: AnyStage, past: Past) -> str | None:
        """Return the reason why a stage is skipped: it has nothing to do, the limits leave no room for it, or it has
        never produced a value."""
        why = stage.passes(self._task, past)
        if why is None and stage.fallback and self._fallbacks >= self._ladder.max_stages:
            why = f"max_stages is {self._ladder.max_stages}, and as many fallback stages have run"
        if why is None and stage.asks:
            why = self._against_call() or self._evidence_against(stage)
        return why

    def _against_call(self) -> str | None:
        """Return the reason why no further call may be made now, or None."""
        limits = self._ladder
        if self._refusal is not None:
            return self._refusal
        if self._calls >= limits.max_calls:
            return f"max_calls is {limits.max_calls}, and as many calls were made"
        if limits.max_cost is not None and self._cost >= limits.max_cost:
            return f"max_cost is ${limits.max_cost}, and ${self._cost} was spent"
        if limits.deadline is not None and self._now() - self._began >= limits.deadline:
            return f"the deadline of {limits.deadline:g} s has passed"
        return None

    def _pass(self, stage: AnyStage, why: str) -> None:
        known = self._task.contract.fingerprint
        emit(StageSkipped(stage=stage.stage, why=why, schema_hash=known, model=self._task.model))
        self._attempts.append(Attempt(stage.stage, "skipped", why=why))

    def _stage(self, stage: AnyStage, past: Past) -> Plan[T]:
        name, before = stage.stage, self._calls
        self._fallbacks += stage.fallback
        ended, reason = "interrupted", None
        because, known = past.current.reason.value, self._task.contract.fingerprint
        started = StageStarted(stage=name, reason=because, schema_hash=known, model=self._task.model)
        with span(started) as finish:
            try:
                outcome = yield from self._within_limits(stage, past)
                ended, reason = outcome.kind, outcome.reason.value if isinstance(outcome, Rejected) else None
            finally:
                calls = self._calls - before
                finish(
                    StageFinished(
                        stage=name, outcome=ended, reason=reason, calls=calls, because=because, schema_hash=known
                    )
                )
        self._settle(outcome)
        return outcome

    def _within_limits(self, stage: AnyStage, past: Past) -> Plan[T]:
        latest = past.latest
        self._enforced, self._answer = False, None

        def read(reply: Reply, judge: Judge[T] | None = None, /) -> Outcome[T]:
            nonlocal latest
            task, name = self._task, stage.stage
            asks = partial(_asks_again, self._ladder.stages if name in _OWN else ())
            outcome = unechoed(read_reply(reply, task.contract), task.examples, task.contract, asks)
            outcome = outcome if judge is None else judge(outcome)
            self._settle(outcome)
            if current_observers():
                report_reading(outcome, name, reply, task.contract, capture=task.capture, origin=self._answer)
            if self._enforced and isinstance(outcome, Rejected) and violates(outcome, task.contract.json_schema):
                self._enforced = False  # the provider ignores the schema
            latest = outcome if isinstance(outcome, Rejected) else latest
            return outcome

        with closing(stage.climb(self._task, past, read)) as plan:
            step = advance(plan)
            while isinstance(step, Ask):
                why = self._against_call()
                if why is not None:
                    self._pass(stage, f"no further call: {why}")
                    return latest
                self._calls += 1
                reply = yield step
                if reply.unmade is not None:
                    self._calls -= 1
                    self._refusal = reply.unmade if reply.used_up else None
                    self._pass(stage, reply.unmade)
                    return latest
                self._cost += reply.usage.cost or 0
                self._enforced = step.way == "constrained" and reply.fault is None
                self._heard(stage.stage, reply)
                self._answer = reply
                if step.enforced and reply.in_words and not reply.text.strip():
                    # the provider would not enforce the schema; instructions may work
                    self._settle(read_reply(reply, step.contract))
                    step = _in_words(step)
                    continue
                step = advance(plan, reply)
            return step

    def _heard(self, stage: str, reply: Reply) -> None:
        self._attempts.append(Attempt(stage, "rejected", text=reply.text, usage=reply.usage, seconds=reply.seconds))
        self._unread = True

    def _settle(self, outcome: Outcome[T]) -> None:
        """Complete the latest attempt with the outcome of its reply, as far as it is known."""
        if not self._unread:
            return
        self._unread = False
        last = replace(self._attempts[-1], outcome=outcome.kind)
        if isinstance(outcome, Rejected):
            last = replace(last, reason=outcome.reason, issues=outcome.issues, raw_matched=outcome.raw_matched)
        self._attempts[-1] = last

    def _with_attempts(self, rejected: Rejected) -> Rejected:
        return replace(rejected, attempts=tuple(self._attempts))

    def _order(self) -> Sequence[AnyStage]:
        """Return the stages in order. In an adaptive ladder, the most successful asking stages come first."""
        stages, known = self._ladder.stages, self._evidence
        if known is None:
            return stages
        model, schema = self._task.model, self._task.contract.fingerprint
        asking = [stage for stage in stages if stage.asks]
        best = iter(sorted(asking, key=lambda stage: -known.about(model, schema, stage.stage).worth))
        return [next(best) if stage.asks else stage for stage in stages]

    def _evidence_against(self, stage: AnyStage) -> str | None:
        if self._evidence is None:
            return None
        known = self._evidence.about(self._task.model, self._task.contract.fingerprint, stage.stage)
        why = f"in {known.tries} tries with this model and schema it never produced a value"
        return why if known.hopeless else None

    def _now(self) -> float:
        return self._task.clock() if self._task.clock is not None else 0.0


PLAIN_TEXT: Final = compile_contract({"type": "string"})
"""Accepts any complete text, for a step without a contract."""

_NOTHING: Final = Ladder(stages=())
_DEFAULTS: Final = Settings()


def ladder_for(contract: Contract[Any], settings: Settings | None = None) -> Ladder:
    """Return the default ladder for a contract under the current settings.

    *json*: `resume`, `llm_repair`, `retry`, `extract`, `degrade`. *tagged* and *text* are strict: `max_retries` of the
    contract, none by default. *block*: `resume` for a truncated reply, one `retry` if the block is missing, then a
    synthesized block; `degrade` if the text is still truncated. *event*: one `retry` if a check fails or the reply
    repeats the example of the prompt; then a verdict names no winner. `PLAIN_TEXT`: `resume` for a truncated reply,
    one `retry` if it has checks and one fails, then `degrade`.
    """
    settings = settings or _DEFAULTS
    if not settings.enabled:
        return _NOTHING
    degrade = (Degrade(),) if settings.fallback.degrade_to_string else ()
    # Not compared by identity, because it may have been evicted from the cache and compiled again.
    plain = contract.mode == PLAIN_TEXT.mode and type(contract.values) is type(PLAIN_TEXT.values)
    if plain and contract.json_schema == PLAIN_TEXT.json_schema:
        if contract.checks:
            return Ladder(stages=(Resume(), Retry(), *degrade))
        # Only a truncated or runaway text is rejected: if asked again, the model would run away again.
        return Ladder(stages=(Resume(), *degrade), max_calls=1)
    if isinstance(contract, TaggedContract):
        retries = contract.max_retries
        return Ladder(stages=(Resume(), Retry(attempts=retries)), max_calls=retries) if retries else _NOTHING
    if contract.mode == "block":
        return Ladder(stages=(Resume(), Retry(), Synthesize(), *degrade), max_calls=1)
    if contract.mode == "event":
        return Ladder(stages=(Resume(), Retry(native=False), Synthesize()), max_calls=1)
    return _json_ladder(settings)  # pyright: ignore[reportArgumentType] (it is frozen, so it has a hash)


@lru_cache(maxsize=16)
def _json_ladder(settings: Settings) -> Ladder:
    repair, fallback = settings.repair, settings.fallback
    stages: list[AnyStage] = [Resume()]
    if repair.enable_llm and repair.max_attempts:
        stages.append(LlmRepair(attempts=repair.max_attempts))
    stages.append(Retry())
    if fallback.enable_extractor:
        stages.append(Extract())
    if settings.schema_simplify:
        stages.append(Simplify())
    if fallback.degrade_to_string:
        stages.append(Degrade())
    # `simplify` would otherwise replace `degrade`
    return Ladder(stages=tuple(stages), max_stages=fallback.max_stages + settings.schema_simplify)
