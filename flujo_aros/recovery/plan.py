"""The protocol between recovery and the world: a plan yields `Ask`s, a driver sends back `Reply`s. No I/O here."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from flujo_aros.contract.output import Contract
from flujo_aros.outcome import Issue, Outcome, Reason, Rejected
from flujo_aros.reading.read import read
from flujo_aros.usage import Usage

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ask:
    """One model call that a stage wants made: a bare call, without tools or history."""

    prompt: str
    stage: str
    attempt: int
    contract: Contract[Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back. `truncated`: True = cut by the provider, False = ended by itself, None = not known.

    `fault` names a provider error that took the place of a reply (then `text` is what the error carried, if anything).
    """

    text: str
    truncated: bool | None = None
    usage: Usage = Usage()
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class Task(Generic[T]):
    """What a plan works on: the contract to satisfy. Deliberately without the user's prompt or messages,
    so that no stage can leak them into a repair prompt."""

    contract: Contract[T]


Plan: TypeAlias = Generator[Ask, Reply, Outcome[T]]


def read_reply(reply: Reply, contract: Contract[T]) -> Outcome[T]:
    """Read a reply; a fault without any text is a rejection with reason PROVIDER."""
    if reply.fault is not None and not reply.text.strip():
        return Rejected(Reason.PROVIDER, (Issue("$", "provider", reply.fault),), reply.text)
    return read(reply.text, contract, truncated=reply.truncated)
