"""Run one reader in a separate process that answers line by line; `lines.child_command` starts it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from benchmarks.reading.baml import Unasked
from benchmarks.reading.peers import PEERS, REFUSALS
from flujo_aros.contract import Contract, compile_contract
from flujo_aros.outcome import Accepted
from flujo_aros.reading.read import read

Attempt = Callable[[str, Mapping[str, Any] | None], tuple[str, Any]]
"""Reads a text with a schema; returns a one-word outcome and the value."""


def _flujo_aros() -> Attempt:
    contracts: dict[str, Contract[Any]] = {}

    def attempt(text: str, schema: Mapping[str, Any] | None) -> tuple[str, Any]:
        key = json.dumps(schema)
        if key not in contracts:
            contracts[key] = compile_contract(dict(schema or {}))
        outcome = read(text, contracts[key])
        if isinstance(outcome, Accepted):
            return outcome.trust.value, outcome.value
        return str(outcome.to_dict().get("reason", outcome.kind)), None

    return attempt


def _peer(name: str) -> Attempt:
    with ExitStack() as stack:
        parse = next(peer for peer in PEERS if peer.name == name).parser(stack).parse

    def attempt(text: str, schema: Mapping[str, Any] | None) -> tuple[str, Any]:
        try:
            return "value", parse(text, schema)
        except RecursionError:
            return "RecursionError", None
        except Unasked:
            return "unasked", None
        except REFUSALS:
            return "refused", None

    return attempt


def answer(attempt: Attempt, question: Mapping[str, Any]) -> dict[str, Any]:
    """Return the outcome and the best time of a few attempts, and the value if the question asks for it."""
    text, best, spent, outcome, value = question["text"], 0, 0, "", None
    for _ in range(question["laps"]):
        start = time.process_time_ns()
        outcome, value = attempt(text, question.get("schema"))
        taken = time.process_time_ns() - start
        best = min(best or taken, taken)
        spent += taken
        if spent > question["enough"]:
            break
    return {"outcome": outcome, "nanos": best, **({"value": value} if question["keep"] else {})}


def main(name: str) -> None:
    """Report that the reader is loaded, then answer questions until stdin closes."""
    attempt = _flujo_aros() if name == "flujo_aros" else _peer(name)
    sys.stdout.write("{}\n")
    sys.stdout.flush()
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answer(attempt, json.loads(line)), default=str) + "\n")
        sys.stdout.flush()
