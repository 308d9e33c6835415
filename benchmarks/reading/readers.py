"""`read()` and its peers, each as a function of text and contract that returns a value or a rejection."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Final, TypeAlias

from benchmarks.reading.peers import REFUSALS, Parser
from flujo_aros.cli.read import Got
from flujo_aros.contract import Contract, Valid
from flujo_aros.outcome import Accepted
from flujo_aros.reading.read import read

Read: TypeAlias = Callable[[str, Contract[Any], bool | None], Got | None]

OURS: Final = "flujo_aros"

Ends: TypeAlias = Callable[[str, dict[str, Any] | None], bool]


def always(_text: str, _schema: dict[str, Any] | None) -> bool:
    """Return True: it always terminates."""
    return True


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader of replies, with its installed version and a clock for its calls."""

    name: str
    version: str
    read: Read
    clock: Callable[[], int] = time.process_time_ns
    ends: Ends = always
    """Returns whether it terminates on a text with a schema; checked before the first call."""


def our_reader() -> Reader:
    """Return `read()` as callers use it."""

    def read_reply(text: str, contract: Contract[Any], truncated: bool | None) -> Got | None:
        outcome = read(text, contract, truncated=truncated)
        return Got(outcome.value) if isinstance(outcome, Accepted) else None

    return Reader(OURS, version("flujo_aros"), read_reply)


def peer_reader(parser: Parser, ends: Ends) -> Reader:
    """Return a peer whose values are validated afterwards, as a careful user would do.

    The reader raises `Unasked` for a contract that its parser has no types for.
    """
    return Reader(parser.name, parser.version, _validated(parser), parser.clock, ends)


def _validated(parser: Parser) -> Read:
    def peer(text: str, contract: Contract[Any], _truncated: bool | None) -> Got | None:
        try:
            value = parser.parse(text, contract.json_schema or None)
            return Got(value) if isinstance(contract.validate(value), Valid) else None
        except REFUSALS:
            return None

    return peer
