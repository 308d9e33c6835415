"""The reader and its peers, each as one call from text and contract to a value or a refusal."""

from __future__ import annotations

import importlib
import json
import platform
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Final, TypeAlias

from flujo_aros.cli.benching.cases import Got
from flujo_aros.contract.output import Contract
from flujo_aros.contract.values import Valid
from flujo_aros.outcome import Accepted
from flujo_aros.reading.read import read

Read: TypeAlias = Callable[[str, Contract[Any], bool | None], Got | None]
Loads: TypeAlias = Callable[..., Any]

# What parsers of other people raise for a text that they do not like, seen in practice.
REFUSALS: Final = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)

OURS: Final = "flujo_aros"


@dataclass(frozen=True, slots=True)
class Reader:
    """Something that reads replies, with the version that is installed."""

    name: str
    version: str
    read: Read


@dataclass(frozen=True, slots=True)
class Peer:
    """A parser that repairs JSON: its distribution, its module, and what else a way of using it needs."""

    name: str
    distribution: str
    module: str
    with_schema: bool = False
    needs: tuple[str, ...] = ()

    def loads(self) -> Loads | None:
        """Its function from text to value; None where it is not installed."""
        try:
            for other in self.needs:
                importlib.import_module(other)
            module = importlib.import_module(self.module)
        except ImportError:
            return None
        loads: Loads = module.loads
        return loads


PEERS: Final = (
    Peer("json-repair", "json-repair", "json_repair"),
    Peer("json-repair, schema", "json-repair", "json_repair", with_schema=True, needs=("jsonschema",)),
    Peer("fast-json-repair", "fast-json-repair", "fast_json_repair"),
    Peer("jsonmend", "jsonmend", "jsonmend"),
)


def our_reader() -> Reader:
    """`read()` of this package, as a caller uses it."""

    def ours(text: str, contract: Contract[Any], truncated: bool | None) -> Got | None:
        outcome = read(text, contract, truncated=truncated)
        return Got(outcome.value) if isinstance(outcome, Accepted) else None

    return Reader(OURS, version("flujo_aros"), ours)


def peer_readers() -> tuple[list[Reader], list[str]]:
    """The peers that are installed, their values validated afterwards; and what pip would have to install."""
    readers = [Reader("json.loads", f"Python {platform.python_version()}", _validated(json.loads))]
    missing: list[str] = []
    for peer in PEERS:
        loads = peer.loads()
        if loads is None:
            missing += [name for name in (peer.distribution, *peer.needs) if name not in missing]
        else:
            reading = _guided(loads) if peer.with_schema else _validated(loads)
            readers.append(Reader(peer.name, version(peer.distribution), reading))
    return readers, missing


def _validated(loads: Loads) -> Read:
    def peer(text: str, contract: Contract[Any], _truncated: bool | None) -> Got | None:
        try:
            return _if_valid(loads(text), contract)
        except REFUSALS:
            return None

    return peer


def _guided(loads: Loads) -> Read:
    """The schema is given to the parser too, which may bend values to it."""

    def peer(text: str, contract: Contract[Any], _truncated: bool | None) -> Got | None:
        options = {"schema": contract.json_schema} if contract.json_schema else {}
        try:
            return _if_valid(loads(text, **options), contract)
        except REFUSALS:
            return None

    return peer


def _if_valid(value: Any, contract: Contract[Any]) -> Got | None:
    return Got(value) if isinstance(contract.validate(value), Valid) else None
