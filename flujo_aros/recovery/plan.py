"""The protocol between recovery and the host: a plan yields an `Ask` and is sent a `Reply`. Pure: no I/O, no clock."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from types import NoneType
from typing import Any, ClassVar, Final, Generic, Literal, Protocol, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict

from flujo_aros.contract import Block, Contract
from flujo_aros.outcome import Accepted, Degraded, Issue, Outcome, Reason, Rejected, Repair, Risk, Trust
from flujo_aros.reading.read import read
from flujo_aros.recovery.echo import Examples
from flujo_aros.usage import Usage

_ENOUGH: Final = 20
"""So many tries without one success, and a stage is left out."""


@dataclass(frozen=True, slots=True)
class Achieved:
    """How often a stage was tried for a model and a schema, how often it gave a value, and what it took."""

    tries: int
    successes: int
    calls: int = 0
    cost: Decimal | None = None

    @property
    def hopeless(self) -> bool:
        """Whether it was tried often enough to be left out."""
        return self.tries >= _ENOUGH and not self.successes

    @property
    def worth(self) -> float:
        """Values for each call, with one success and one failure taken for granted so that little counts little."""
        calls_each = self.calls / self.tries if self.tries and self.calls else 1
        return (self.successes + 1) / (self.tries + 2) / max(calls_each, 1)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The record of the past by model, schema fingerprint and stage. The same table always gives the same ladder.

    >>> table = Evidence.of([("m", "abc", "retry", Achieved(tries=30, successes=0))])
    >>> table.about("m", "abc", "retry").hopeless
    True
    """

    table: tuple[tuple[tuple[str, str, str], Achieved], ...] = ()

    @classmethod
    def of(cls, rows: Iterable[tuple[str, str, str, Achieved]]) -> Evidence:
        """A table of rows (model, schema fingerprint, stage, what was achieved)."""
        return cls(tuple(((model, schema, stage), achieved) for model, schema, stage, achieved in rows))

    def about(self, model: str, schema_hash: str, stage: str) -> Achieved:
        """What is known of a stage; nothing known is no try."""
        return dict(self.table).get((model, schema_hash, stage), Achieved(0, 0))


T = TypeVar("T")


Way: TypeAlias = Literal["bare", "bare_constrained", "conversation", "constrained"]
"""How a model is asked: `bare` = the prompt alone, without tools or history; `conversation` = the messages of the run
again, then `said`, then the prompt; `bare_constrained` and `constrained` = the same two, with the provider enforcing
the schema."""

Native: TypeAlias = Literal["no", "can", "on"]
"""Whether the provider enforces schemas: it cannot, it can but was not asked to, or it was asked to already."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One model call that a stage wants made, never with tools. A driver that cannot make it says why (`unmade`).

    `said` stands in the conversation between the question and the prompt: the failing reply and, by turns, the prompts
    and replies of earlier attempts. An empty prompt asks the question of the run once more. `model` is another model
    than that of the run, `max_tokens` another budget for the reply.
    """

    prompt: str
    stage: str
    attempt: int
    contract: Contract[Any]
    way: Way = "bare"
    model: str | None = None
    max_tokens: int | None = None
    said: tuple[str, ...] = ()

    @property
    def enforced(self) -> bool:
        """Whether the provider enforces the schema of the contract."""
        return self.way in ("constrained", "bare_constrained")

    @property
    def in_conversation(self) -> bool:
        """Whether the model sees the messages of the run, and with them the question."""
        return self.way in ("constrained", "conversation")


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back. `truncated`: True = cut by the provider, False = ended by itself, None = not known.

    `fault` names a provider error that took the place of a reply, or broke it off (then `text` is what came with the
    error, if anything), `fault_code` its kind (`http_400`), and `retry_after` the seconds that the provider wants to be
    left alone. `in_words`: the error was about the form that was asked for, so that words alone may do.
    `objections` is what a judge beyond the contract, such as the validator of a host framework, has against a text
    that the contract accepts, or why there is no text. `refused`: the provider says that its filter ended the reply.
    `thought`: the text is what the model has put into its thinking, and its reply is empty. `unmade` says why there
    was no call at all: then there is nothing to read, and the stage is over. With `used_up` no stage may make a call
    any more, since a limit of the caller's is reached.
    """

    text: str
    truncated: bool | None = None
    usage: Usage = field(default_factory=Usage)
    fault: str | None = None
    fault_code: str = "provider"
    retry_after: float | None = field(default=None, compare=False)
    in_words: bool = False
    objections: tuple[Issue, ...] = ()
    refused: bool = False
    thought: bool = False
    unmade: str | None = None
    used_up: bool = False
    seconds: float = field(default=0.0, compare=False)
    """How long the call took."""
    model: str = field(default="", compare=False)
    """The model that wrote it."""
    finish_reason: str | None = field(default=None, compare=False)
    """Why it ended, as the provider reports it."""


@dataclass(frozen=True, slots=True)
class Task(Generic[T]):
    """What a plan works on: the contract to satisfy, and what a driver knows that the plan cannot find out by itself.

    Deliberately without the user's prompt or messages, so that no stage can leak them into a repair prompt. `capture`
    says that the texts of replies may be kept by observers; off by default, because they may hold private data.
    `clock` gives the seconds for a deadline. `model` is the name of the run's model, `native` whether its provider
    enforces schemas (None: not known), `max_tokens` the budget that its reply had (None: the provider's own).
    `secrets` are values to be masked in every repair prompt beside the kinds that are known (gone through only when
    there is such a prompt), `evidence` is what a ladder adapts to. `examples` knows whether a value is one of the
    prompt's examples, without telling the prompt. `spent` is what earlier climbs of the same run have used: the limits
    of a ladder are for all of them together. `question_chars` is the length of the messages that an ask in the
    conversation sends again (None: not known), so that a stage knows which ask is cheaper.
    """

    contract: Contract[T]
    capture: bool = False
    clock: Callable[[], float] | None = None
    model: str = ""
    native: Native | None = None
    max_tokens: int | None = None
    secrets: Iterable[str] = ()
    evidence: Evidence | None = None
    examples: Examples | None = None
    spent: Usage = field(default_factory=Usage)
    question_chars: int | None = None

    @property
    def enforces(self) -> bool:
        """Whether the provider can be asked to enforce the schema of the contract."""
        return self.native in ("can", "on") and bool(self.contract.json_schema)


@dataclass(frozen=True, slots=True)
class Tried:
    """One rejected reply, and the stage that it belongs to ("first" for the model's own).

    `enforced` says that this reply answered the question of the run, with the provider enforcing the schema.
    """

    stage: str
    rejected: Rejected
    enforced: bool = False


@dataclass(frozen=True, slots=True)
class Past:
    """What a stage knows of the climb so far: the rejected replies, the first one first.

    `asks_again` says that a later stage will put the question again, `asks_enforced` that it will do so with the schema
    enforced.
    """

    tries: tuple[Tried, ...]
    asks_again: bool = False
    asks_enforced: bool = False

    @classmethod
    def of(cls, first: Rejected) -> Past:
        """The past of a climb that begins."""
        return cls((Tried("first", first),))

    def then(self, stage: str, rejected: Rejected, *, enforced: bool = False) -> Past:
        """The past after one more rejection."""
        return Past((*self.tries, Tried(stage, rejected, enforced)))

    @property
    def was_enforced(self) -> bool:
        """Whether a stage has put the question again with the schema enforced, and was answered."""
        return any(tried.enforced for tried in self.tries)

    @property
    def first(self) -> Rejected:
        """The rejection of the model's own reply."""
        return self.tries[0].rejected

    @property
    def latest(self) -> Rejected:
        """The latest rejection, of whichever stage."""
        return self.tries[-1].rejected

    @property
    def current(self) -> Rejected:
        """The rejection that the stages answer: the first one, or that of the same reply once it was made whole."""
        return self._latest_of(("first", "resume"))

    @property
    def spoken(self) -> Rejected:
        """The rejection of the latest answer to the question of the run; repairs and extracts are none."""
        return self._latest_of(_ANSWERS)

    def _latest_of(self, stages: tuple[str, ...]) -> Rejected:
        replies = [tried.rejected for tried in self.tries if tried.stage in stages and tried.rejected.text.strip()]
        return replies[-1] if replies else self.first


LEFT_OPEN: Final = "left_open"
"""The code of an issue: a payload that does not end, in a reply that the provider has not cut."""
BROKEN_OFF: Final = "broken_off"
"""The code of an issue: an error of the provider has ended the reply."""
_FORM_FAILED: Final = Issue("$", "form_failed", "the error is about the form that was asked for")
SAYS_NOTHING: Final = "says_nothing"
"""The code of an issue: the reply to an event contract held nothing that was meant to be said."""
_ANSWERS: Final = ("first", "resume", "retry", "constrain", "escalate", "simplify")
_UNFINISHED: Final = (Reason.MALFORMED, Reason.NO_JSON)

Plan: TypeAlias = Generator[Ask, Reply, Outcome[T]]
Judge: TypeAlias = Callable[[Outcome[T]], Outcome[T]]
"""What a stage has to say about a reading, such as a rejection of a value that changes what was right."""


class ReadReply(Protocol[T]):
    """Reads a reply for a stage, and hears what the stage itself thinks of it."""

    def __call__(self, reply: Reply, judge: Judge[T] | None = None, /) -> Outcome[T]:
        """The outcome, after the judge."""
        ...


def read_reply(reply: Reply, contract: Contract[T]) -> Outcome[T]:
    """Read a reply.

    A fault without any text is a rejection with reason PROVIDER, an objection one with INVALID; what cannot be read
    of a reply that a filter ended is REFUSED, and of one that met its limit TRUNCATED.
    """
    if reply.fault is not None and not reply.text.strip():
        reason = Reason.REFUSED if reply.refused else Reason.PROVIDER
        issue = Issue("$", reply.fault_code, reply.fault)
        issues = (issue, _FORM_FAILED) if reply.in_words else (issue,)
        return Rejected(reason, issues, reply.text, retry_after=reply.retry_after)
    outcome = _read(reply, contract)
    if isinstance(outcome, Accepted) and reply.objections:
        return Rejected(Reason.INVALID, reply.objections, reply.text)
    if isinstance(outcome, Rejected) and reply.objections and not reply.text.strip():
        return replace(outcome, issues=reply.objections)  # why there is nothing to read
    made_up = isinstance(outcome, Accepted) and outcome.trust is Trust.SYNTHESIZED
    if made_up and reply.fault is not None and reply.in_words:
        return Rejected(Reason.NO_JSON, (Issue("$", reply.fault_code, reply.fault),), reply.text)
    if reply.refused and (isinstance(outcome, Rejected) or made_up):
        issue = Issue("$", "content_filter", "the provider's filter ended the reply")
        if not isinstance(outcome, Rejected):  # words that a filter has broken off are nobody's answer
            return Rejected(Reason.REFUSED, (issue,), reply.text)
        return replace(outcome, reason=Reason.REFUSED, issues=(issue, *outcome.issues))
    if isinstance(outcome, Rejected) and reply.truncated and outcome.reason in _UNFINISHED:
        outcome = replace(outcome, reason=Reason.TRUNCATED)  # what is missing was never written: nothing to repair
    if isinstance(outcome, Rejected) and reply.truncated and reply.fault is not None:
        return _broken_off(outcome, Issue("$", reply.fault_code, reply.fault))
    if isinstance(outcome, Rejected) and reply.truncated is False and contract.mode in ("tagged", "text"):
        return _left_open(outcome)
    return outcome


def _read(reply: Reply, contract: Contract[T]) -> Outcome[T]:
    """Read the text of a reply, wherever it stood and however it ended."""
    end = len(reply.text)
    if reply.thought:
        outcome = read(reply.text, contract, truncated=reply.truncated)
        return _inferred(outcome, "from-thinking", (0, end)) if isinstance(outcome, Accepted) else outcome
    if reply.fault is not None and reply.truncated and contract.risk >= Risk.INFERRED:
        # Unlike a budget, an error does not make it likely that the model was about to go on.
        outcome = read(reply.text, contract)
        if isinstance(outcome, Accepted) and ends_by_itself(outcome):
            return _inferred(outcome, BROKEN_OFF.replace("_", "-"), (end, end))
    return read(reply.text, contract, truncated=reply.truncated)


def ends_by_itself(outcome: Accepted[Any]) -> bool:
    """Whether a value has an end of its own, as objects and lists have; words and numbers may always go on."""
    return outcome.trust is not Trust.SYNTHESIZED and not isinstance(outcome.value, _OPEN_ENDED)


_OPEN_ENDED: Final = (str, bool, int, float, NoneType, Block)


def _inferred(outcome: Accepted[T], code: str, span: tuple[int, int]) -> Accepted[T]:
    """The outcome with one repair more, about where the text stood or how it ended."""
    words = outcome.text[slice(*span)][:80]
    repairs = (*outcome.repairs, Repair(code, Risk.INFERRED, "$", span, words, words))
    return replace(outcome, repairs=repairs, trust=max(outcome.trust, Trust.INFERRED, key=list(Trust).index))


def _left_open(outcome: Rejected) -> Rejected:
    """The rejection of a reply that was not cut: a tag without its end was left open by the model itself."""
    if outcome.reason is not Reason.TRUNCATED:
        return outcome
    return replace(
        outcome,
        issues=(
            *outcome.issues,
            Issue("$", LEFT_OPEN, "the model has ended its reply like that: the provider has not cut it"),
        ),
    )


def _broken_off(outcome: Rejected, fault: Issue) -> Rejected:
    """The rejection of a reply that an error of the provider has cut; what is wrong with a whole one is said by it."""
    if outcome.reason is not Reason.TRUNCATED:
        return outcome
    cut = Issue("$", BROKEN_OFF, "the reply ended there because of the error")
    return replace(outcome, issues=(*outcome.issues, fault, cut))


def may_be_whole_next_time(rejected: Rejected) -> bool:
    """Whether no budget has cut a reply, so that the same question may be asked again."""
    return any(issue.code in (LEFT_OPEN, BROKEN_OFF) for issue in rejected.issues)


def was_left_open(rejected: Rejected) -> bool:
    """Whether a reply that looks cut has ended by itself."""
    return any(issue.code == LEFT_OPEN for issue in rejected.issues)


def may_be_asked_otherwise(rejected: Rejected) -> bool:
    """Whether there is no reply because of the form that was asked for, so that words alone may do."""
    return any(issue.code == _FORM_FAILED.code for issue in rejected.issues)


def advance(plan: Plan[T], reply: Reply | None = None) -> Ask | Outcome[T]:
    """The next ask of a plan, or its outcome.

    Only the plan's own end may end it: call a provider outside of this function, or a `StopIteration` that the
    provider raises would pass for the end of the plan.
    """
    try:
        return next(plan) if reply is None else plan.send(reply)
    except StopIteration as end:
        outcome: Accepted[T] | Degraded | Rejected = end.value
        return outcome


class Rung(BaseModel):
    """The common part of all stages: immutable, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    answers: ClassVar[frozenset[Reason]]
    """The reasons for a rejection that this stage can do something about."""
    fallback: ClassVar[bool] = True
    """Whether it counts towards `Ladder.max_stages`."""
    asks: ClassVar[bool] = True
    """Whether it makes model calls, so that the limits for calls, cost and time are its limits."""
    sees_question: ClassVar[bool] = False
    """Whether it puts the question of the run again; any other stage knows the reply alone."""

    def passes(self, task: Task[Any], past: Past) -> str | None:  # noqa: ARG002 (for stages to say more)
        """Why there is nothing that this stage could do here although it answers the reason, or None."""
        return None

    def enforces(self, task: Task[Any], past: Past) -> bool:  # noqa: ARG002 (for stages to say more)
        """Whether it would put the question of the run again with the schema enforced, as it was not yet."""
        return False
