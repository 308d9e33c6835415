"""The protocol between recovery and the host: a plan yields an `Ask` and is sent a `Reply`. Pure: no I/O, no clock."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, ClassVar, Final, Generic, Literal, Protocol, TypeAlias, TypeVar

from flujo_aros.configured import Configured
from flujo_aros.contract import Contract
from flujo_aros.outcome import Accepted, Degraded, Issue, Outcome, Reason, Rejected
from flujo_aros.recovery.fidelity import Examples
from flujo_aros.usage import Usage

_ENOUGH: Final = 20
"""The number of unsuccessful attempts after which an adaptive ladder skips a stage."""


@dataclass(frozen=True, slots=True)
class Achieved:
    """The record of a stage for one model and one schema: attempts, successes, and cost."""

    tries: int
    successes: int
    calls: int = 0
    cost: Decimal | None = None

    @property
    def hopeless(self) -> bool:
        """Whether the stage was tried so often without success that it is skipped."""
        return self.tries >= _ENOUGH and not self.successes

    @property
    def worth(self) -> float:
        """The expected number of values per call, smoothed with one success and one failure so that few attempts weigh
        little.
        """
        calls_each = self.calls / self.tries if self.tries and self.calls else 1
        return (self.successes + 1) / (self.tries + 2) / max(calls_each, 1)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Past results by model, schema fingerprint and stage. Equal tables always yield equal ladders.

    >>> table = Evidence.of([("m", "abc", "retry", Achieved(tries=30, successes=0))])
    >>> table.about("m", "abc", "retry").hopeless
    True
    """

    table: tuple[tuple[tuple[str, str, str], Achieved], ...] = ()

    @classmethod
    def of(cls, rows: Iterable[tuple[str, str, str, Achieved]]) -> Evidence:
        """Return a table of rows (model, schema fingerprint, stage, record)."""
        return cls(tuple(((model, schema, stage), achieved) for model, schema, stage, achieved in rows))

    def about(self, model: str, schema_hash: str, stage: str) -> Achieved:
        """Return the record of a stage. The record of an unknown stage is empty."""
        return dict(self.table).get((model, schema_hash, stage), Achieved(0, 0))


T = TypeVar("T")


Way: TypeAlias = Literal["bare", "bare_constrained", "conversation", "constrained"]
"""How a request is sent to the model: `bare` = the prompt alone, without tools or history; `conversation` = the
messages of the run again, then `said`, then the prompt; `bare_constrained` and `constrained` = the same two, with the
provider enforcing the schema.
"""

Native: TypeAlias = Literal["no", "can", "on"]
"""Whether the provider enforces schemas: not supported, supported but not requested, or already requested."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One model call requested by a stage, never with tools. A driver that cannot make it gives the reason (`unmade`).

    `said` is inserted in the conversation between the question and the prompt: the failing reply and, in turn, the
    prompts and replies of earlier attempts. An empty prompt asks the question of the run once more. `model` overrides
    the model of the run, and `max_tokens` the budget of the reply.
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
        """Whether the model sees the messages of the run, including the question."""
        return self.way in ("constrained", "conversation")


@dataclass(frozen=True, slots=True)
class Reply:
    """The result of one call. `truncated` is True if the provider cut it, False if it ended by itself, and None if
    unknown.

    `fault` names a provider error that replaced the reply or broke it off (then `text` is what arrived with the error,
    if anything), `fault_code` is its kind (`http_400`), and `retry_after` the seconds to wait according to the
    provider. `in_words` means that the error concerned the requested output format, so that a prompt without it may
    work. `objections` are the issues raised beyond the contract, for example by the host framework's validator, or the
    reason why there is no text. `refused` means that the provider reports that its filter ended the reply, and
    `thought` that the text comes from the model's thinking and its reply is empty. `unmade` is the reason why no call
    was made: there is nothing to read, and the stage ends. With `used_up`, a limit of the caller is reached and no
    stage may make another call.
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
    """The duration of the call."""
    model: str = field(default="", compare=False)
    """The model that wrote the reply."""
    finish_reason: str | None = field(default=None, compare=False)
    """The finish reason reported by the provider."""


_FORMS: Final = frozenset({"enum", "const", "pattern", "format"})


def has_form(contract: Contract[Any]) -> bool:
    """Return whether replies have a form to describe or enforce.

    A string without one is the text itself: requested as JSON, it would only come back in quotes.

    >>> from flujo_aros import Output
    >>> has_form(Output.json({"type": "string"})), has_form(Output.json({"enum": ["yes", "no"]}))
    (False, True)
    """
    schema = contract.json_schema
    return bool(schema) and (schema.get("type") != "string" or bool(_FORMS.intersection(schema)))


@dataclass(frozen=True, slots=True)
class Task(Generic[T]):
    """The input of a plan: the contract to satisfy, and facts that only the driver knows.

    Deliberately without the user's prompt or messages, so that no stage can leak them into a repair prompt. `capture`
    allows observers to keep the texts of replies; off by default, because they may contain private data. `clock`
    returns the time in seconds, for a deadline. `model` is the name of the run's model, `native` whether its provider
    enforces schemas (None if unknown), and `max_tokens` the budget of its reply (None for the provider's default).
    `secrets` are values to mask in every repair prompt, in addition to known kinds (evaluated only when there is such a
    prompt), and `evidence` is the history that an adaptive ladder uses. `examples` recognizes the prompt's examples
    without revealing the prompt. `spent` is the usage of earlier recoveries in the same run, which count towards the
    same limits. `question_chars` is the length of the messages that a request in the conversation sends again (None if
    unknown), so that a stage can compare costs.
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
        return self.native in ("can", "on") and has_form(self.contract)


@dataclass(frozen=True, slots=True)
class Past:
    """A stage's view of the recovery so far.

    `first` is the rejection of the model's own reply, and `latest` the rejection of the latest reply to any stage.
    `current` is the rejection that the stages handle: the first one, or the rejection of the same reply after it was
    completed, or of the first reply there is, if the first call ended in an error. `spoken` is the rejection of the
    latest answer to the question of the run; repairs and extractions do not count. `was_enforced` means that a stage
    has asked the question again with the schema enforced, and got a reply; `asks_again` that a later stage will ask it
    again, and `asks_enforced` that it will do so with the schema enforced.
    """

    first: Rejected
    latest: Rejected
    current: Rejected
    spoken: Rejected
    was_enforced: bool = False
    asks_again: bool = False
    asks_enforced: bool = False

    @classmethod
    def of(cls, first: Rejected) -> Past:
        """Return the history at the start of a recovery."""
        return cls(first, first, first, first)

    def then(self, stage: str, rejected: Rejected, *, enforced: bool = False) -> Past:
        """Return the history with one more rejection."""
        says = bool(rejected.text.strip())
        answers = says and stage in _ANSWERS
        silent = self.current.reason is Reason.PROVIDER and not self.current.text.strip()
        current = rejected if (answers and silent) or (says and stage == "resume") else self.current
        spoken = rejected if answers else self.spoken
        return Past(self.first, rejected, current, spoken, self.was_enforced or enforced)


LEFT_OPEN: Final = "left_open"
"""Issue code: the payload does not end, although the provider did not cut the reply."""
BROKEN_OFF: Final = "broken_off"
"""Issue code: a provider error ended the reply."""
FORM_FAILED: Final = "form_failed"
"""Issue code: there is no reply because of the output format, so instructions alone may work."""
SAYS_NOTHING: Final = "says_nothing"
"""Issue code: nothing in the reply to an event contract was part of the answer."""
_ANSWERS: Final = ("resume", "retry", "constrain", "escalate", "simplify")
"""The stages whose reply answers the question of the run."""

Plan: TypeAlias = Generator[Ask, Reply, Outcome[T]]
Judge: TypeAlias = Callable[[Outcome[T]], Outcome[T]]
"""A stage's judgement on an outcome, such as rejecting a value that changes a correct part."""


class ReadReply(Protocol[T]):
    """Reads a reply for a stage and applies the stage's judge."""

    def __call__(self, reply: Reply, judge: Judge[T] | None = None, /) -> Outcome[T]:
        """Return the outcome, after the judge."""
        ...


def has_issue(rejected: Rejected, *codes: str) -> bool:
    """Return whether a rejection has an issue with one of these codes."""
    return any(issue.code in codes for issue in rejected.issues)


def advance(plan: Plan[T], reply: Reply | None = None) -> Ask | Outcome[T]:
    """Return the next ask of a plan, or its outcome.

    Call providers outside this function: a `StopIteration` raised by a provider would look like the end of the plan.
    """
    try:
        return next(plan) if reply is None else plan.send(reply)
    except StopIteration as end:
        outcome: Accepted[T] | Degraded | Rejected = end.value
        return outcome


class Rung(Configured):
    """The common part of all stages: immutable, and unknown keys are errors."""

    answers: ClassVar[frozenset[Reason]]
    """The rejection reasons that this stage can handle."""
    fallback: ClassVar[bool] = True
    """Whether the stage counts towards `Ladder.max_stages`."""
    asks: ClassVar[bool] = True
    """Whether the stage makes model calls, so that the limits for calls, cost and time are its limits."""
    sees_question: ClassVar[bool] = False
    """Whether the stage asks the question of the run again; other stages see only the reply."""

    def passes(self, task: Task[Any], past: Past) -> str | None:  # noqa: ARG002 (for stages to say more)
        """Return the reason why the stage could do nothing here although it handles this kind of rejection, or None."""
        return None

    def enforces(self, task: Task[Any], past: Past) -> bool:  # noqa: ARG002 (for stages to say more)
        """Return whether the stage would ask the run's question again with the schema enforced for the first time."""
        return False
