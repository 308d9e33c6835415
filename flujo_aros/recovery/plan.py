"""The protocol between recovery and the world: a plan yields `Ask`s, a driver sends back `Reply`s. No I/O here."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, TypeAlias, TypeVar

from flujo_aros.contract.output import Contract
from flujo_aros.outcome import Accepted, Degraded, Issue, Outcome, Reason, Rejected
from flujo_aros.reading.read import read
from flujo_aros.usage import Usage

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ask:
    """One model call that a stage wants made: a bare call, without tools or history.

    `constrained` asks for something else: the conversation of the run again, with the provider enforcing the schema of
    the contract. A driver that cannot do that answers with a fault.
    """

    prompt: str
    stage: str
    attempt: int
    contract: Contract[Any]
    constrained: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back. `truncated`: True = cut by the provider, False = ended by itself, None = not known.

    `fault` names a provider error that took the place of a reply (then `text` is what the error carried, if anything).
    `objections` is what a judge beyond the contract, such as the validator of a host framework, has against a text
    that the contract accepts. `refused`: the provider says that its filter ended the reply.
    """

    text: str
    truncated: bool | None = None
    usage: Usage = field(default_factory=Usage)
    fault: str | None = None
    objections: tuple[Issue, ...] = ()
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Task(Generic[T]):
    """What a plan works on: the contract to satisfy. Deliberately without the user's prompt or messages,
    so that no stage can leak them into a repair prompt.

    `capture` lets the texts of replies into the events; off by default, because they may hold private data.
    """

    contract: Contract[T]
    capture: bool = False


_UNFINISHED: Final = (Reason.MALFORMED, Reason.NO_JSON)

Plan: TypeAlias = Generator[Ask, Reply, Outcome[T]]
ReadReply: TypeAlias = Callable[[Reply], Outcome[T]]


def read_reply(reply: Reply, contract: Contract[T]) -> Outcome[T]:
    """Read a reply.

    A fault without any text is a rejection with reason PROVIDER, an objection one with INVALID; what cannot be read
    of a reply that a filter ended is REFUSED, and of one that met its limit TRUNCATED.
    """
    if reply.fault is not None and not reply.text.strip():
        return Rejected(Reason.PROVIDER, (Issue("$", "provider", reply.fault),), reply.text)
    outcome = read(reply.text, contract, truncated=reply.truncated)
    if isinstance(outcome, Accepted) and reply.objections:
        return Rejected(Reason.INVALID, reply.objections, reply.text)
    if isinstance(outcome, Rejected) and reply.refused:
        issue = Issue("$", "content_filter", "the provider's filter ended the reply")
        return replace(outcome, reason=Reason.REFUSED, issues=(issue, *outcome.issues))
    if isinstance(outcome, Rejected) and reply.truncated and outcome.reason in _UNFINISHED:
        return replace(outcome, reason=Reason.TRUNCATED)  # what is missing was never written: nothing to repair
    return outcome


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
