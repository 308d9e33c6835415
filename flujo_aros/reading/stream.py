"""Typed partial values while a model still writes, and at the end exactly what `read` says of the whole."""

from __future__ import annotations

from typing import Any, Final, Generic, NamedTuple, TypedDict, TypeVar, Unpack

from flujo_aros.contract.output import Contract, ContractLike, compile_contract
from flujo_aros.outcome import Issue, Outcome, Risk
from flujo_aros.reading.gather import Pick
from flujo_aros.reading.read import Limits, read

T = TypeVar("T")

_LIMITS: Final = Limits()


class ReadOptions(TypedDict, total=False):
    """The options of `read` that a stream takes too."""

    risk: Risk | None
    truncated: bool | None
    pick: Pick
    limits: Limits


class Partial(NamedTuple):
    """What can be shown of an answer that is still being written."""

    value: Any
    final_paths: frozenset[str]
    restarted: bool


class StreamReader(Generic[T]):
    """Reads a reply piece by piece."""

    def __init__(self, contract: ContractLike[T], **options: Unpack[ReadOptions]) -> None:
        self.contract: Contract[T] = compile_contract(contract)
        self.options = options
        self._pieces: list[str] = []

    @property
    def runaway(self) -> Issue | None:
        """Why reading on is of no use, or None."""
        return None

    def feed(self, chunk: str) -> Partial | None:
        """Take the next piece; None: nothing new to show."""
        self._pieces.append(chunk)
        return None

    def close(self, *, truncated: bool | None = None) -> Outcome[T]:
        """The outcome of the whole text: the same as `read` gives for it."""
        options: ReadOptions = {**self.options}
        if truncated is not None:
            options["truncated"] = truncated
        return read("".join(self._pieces), self.contract, **options)
