"""Contracts as output types of the host, so that `result.output` is the typed value."""

from __future__ import annotations

import itertools
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final
from weakref import WeakValueDictionary

from pydantic_ai import ModelRetry, StructuredDict, TextOutput
from pydantic_ai.exceptions import UserError

from flujo_aros.agents.wire import object_schema
from flujo_aros.contract.output import BlockContract, Contract, EventContract, TaggedContract
from flujo_aros.contract.values import TypeValues
from flujo_aros.outcome import Accepted
from flujo_aros.reading.read import read

_PREFIX: Final = "aros_output_"
_numbers: Final = itertools.count(1)
_known: Final[WeakValueDictionary[str, Contract[Any]]] = WeakValueDictionary()
"""The contract of each text function of ours, by its name: the one thing that the host tells of a function."""
_settled: ContextVar[Accepted[Any] | None] = ContextVar("flujo_aros_settled_output", default=None)


def output_spec(contract: Contract[Any]) -> Any:
    """What to give an agent as its `output_type` for this contract.

    A type stands for itself and a schema for a `StructuredDict`, in the mode that suits the model; wrap it into
    `NativeOutput`, `PromptedOutput` or `ToolOutput` for another. A contract whose payload is a part of the text is a
    `TextOutput`; without `Aros` on the agent, the host's own retries tell the model what was wrong.
    """
    if isinstance(contract, (TaggedContract, BlockContract, EventContract)):
        return _text_output(contract)
    if contract.checks or not contract.json_schema:
        return _text_output(contract)
    if isinstance(contract.values, TypeValues):
        return contract.values.like
    try:
        return StructuredDict(object_schema(contract.json_schema))
    except UserError:  # a recursive schema
        return _text_output(contract)


def _text_output(contract: Contract[Any]) -> TextOutput[Any]:
    async def as_value(text: str) -> Any:
        settled = _settled.get()
        if settled is not None:
            return settled.value
        outcome = read(text, contract)
        if isinstance(outcome, Accepted):
            return outcome.value
        raise ModelRetry(outcome.feedback() if outcome.kind == "rejected" else outcome.because.feedback())

    as_value.__name__ = as_value.__qualname__ = f"{_PREFIX}{next(_numbers)}"
    _known[as_value.__name__] = contract
    return TextOutput(as_value)


def contract_of(function_name: str | None) -> Contract[Any] | None:
    """The contract behind a text function of the host, if it is one of ours."""
    return _known.get(function_name) if function_name else None


@contextmanager
def settled_as(accepted: Accepted[Any]) -> Generator[None]:
    """Let our text functions give this value instead of reading the text once more."""
    token = _settled.set(accepted)
    try:
        yield
    finally:
        _settled.reset(token)
