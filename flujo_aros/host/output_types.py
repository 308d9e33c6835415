"""Contracts as output types of the host, so that `result.output` is the typed value."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Annotated, Any, Final, TypeVar, cast, get_args
from weakref import WeakValueDictionary

from pydantic import AfterValidator, TypeAdapter
from pydantic_ai import (
    DeferredToolRequests,
    ModelRetry,
    NativeOutput,
    PromptedOutput,
    StructuredDict,
    TextOutput,
    ToolOutput,
)
from pydantic_ai.exceptions import UserError
from pydantic_ai.tools import RunContext
from pydantic_core import to_json

from flujo_aros.contract import (
    OF_CONTRACT,
    BlockContract,
    Check,
    Contract,
    EventContract,
    JsonSchema,
    TaggedContract,
    TypeValues,
    compile_contract,
    judge,
    name_of,
)
from flujo_aros.errors import ContractError, UsageError
from flujo_aros.host.envelope import object_schema
from flujo_aros.outcome import Accepted, Outcome
from flujo_aros.reading.payload import judged_awaiting
from flujo_aros.reading.read import StreamReader, read

T = TypeVar("T")

_PREFIX: Final = "aros_output_"
_numbers: Final = itertools.count(1)
_known: Final[WeakValueDictionary[str, Contract[Any]]] = WeakValueDictionary()
"""The contract of each text function, by its name: the only attribute of a function that pydantic-ai passes on."""
_settled: ContextVar[Accepted[Any] | None] = ContextVar("flujo_aros_settled_output", default=None)


def output_type(contract: Contract[Any]) -> Any:
    """A contract as the `output_type` of a pydantic-ai agent: the result of `contract.as_output()`.

    A type is used as it is, and a schema as a `StructuredDict`, in the mode that suits the model; wrap it in
    `NativeOutput`, `PromptedOutput` or `ToolOutput` for another. A contract whose payload is part of the text is a
    `TextOutput`; without `Aros` on the agent, the host's own retries show the model its errors.
    """
    if isinstance(contract, (TaggedContract, BlockContract, EventContract)):
        return _text_output(contract)
    if contract.awaited:
        name = name_of(contract.awaited[0])
        message = f"the check {name} is async, which a type cannot await: give the contract to Aros(…) or to a step"
        raise UsageError(message)
    like = contract.values.like if isinstance(contract.values, TypeValues) else _schema_type(contract.json_schema)
    if like is None or isinstance(like, TypeAdapter):
        return _text_output(contract)
    return Annotated[like, AfterValidator(partial(_checked, contract.checks))] if contract.checks else like


def _schema_type(schema: JsonSchema) -> Any:
    """A type with this schema for the host to request, or None if the host cannot express it."""
    if not schema or object_schema(schema) != schema:
        return None  # the host would wrap it in an envelope and not unwrap it
    try:
        return StructuredDict(schema)
    except UserError:  # a recursive schema
        return None


def _checked(checks: tuple[Check, ...], value: Any) -> Any:
    clean, issues, _ = judge(value, checks)
    if issues:
        message = "; ".join(issue.message for issue in issues)
        raise ValueError(message)
    return clean


class ContractOutput(TextOutput[T]):
    """A text function of the host for a contract, which returns the typed value when called."""

    async def __call__(self, text: str) -> T:
        """The value in a text. Raises `ModelRetry` with its errors."""
        value: T = await cast("Callable[[str], Awaitable[T]]", self.output_function)(text)
        return value


def _text_output(contract: Contract[T]) -> ContractOutput[T]:
    async def as_value(text: str) -> Any:
        settled = _settled.get()
        if settled is not None:
            return settled.value
        outcome = await judged_awaiting(read(text, contract.at_once), contract.awaited)
        if isinstance(outcome, Accepted):
            return outcome.value
        raise ModelRetry(outcome.feedback() if outcome.kind == "rejected" else outcome.because.feedback())

    as_value.__name__ = as_value.__qualname__ = f"{_PREFIX}{next(_numbers)}"
    _known[as_value.__name__] = contract
    return ContractOutput(as_value)


def contract_of(function_name: str | None) -> Contract[Any] | None:
    """The contract of a text function of the host, if it was created here."""
    return _known.get(function_name) if function_name else None


def model_contract(like: Any) -> Contract[Any] | None:
    """The event contract whose strict model this type is; a subclass has its own rules."""
    found: Contract[Any] | None = vars(like).get(OF_CONTRACT) if isinstance(like, type) else None
    return found


def agent_contract(ctx: RunContext[Any]) -> Contract[Any] | None:
    """The contract that the agent of a run has as its output type."""
    like: Any = ctx.agent.output_type if ctx.agent else None
    if isinstance(like, TextOutput):
        return contract_of(getattr(cast("Any", like).output_function, "__name__", None))
    return model_contract(_single(like))


def shown_contract(like: Any) -> Contract[Any] | None:
    """The form of partial replies for this output type, or None for text and for several alternatives."""
    if isinstance(like, TextOutput):
        return contract_of(getattr(cast("Any", like).output_function, "__name__", None))
    single = _single(like)
    if not isinstance(single, type) or issubclass(single, str):
        return None
    try:
        contract: Contract[Any] = model_contract(single) or compile_contract(cast("type[Any]", single))
    except ContractError:
        return None
    return contract if object_schema(contract.json_schema) == contract.json_schema else None  # else in an envelope


def without_deferral(like: Any) -> Any:
    """An output type without `DeferredToolRequests`, or the type itself if nothing else would be left."""
    several = cast("Sequence[Any]", like) if isinstance(like, (list, tuple)) else get_args(like)
    if DeferredToolRequests not in several:
        return cast("Any", like)
    others = [each for each in several if each is not DeferredToolRequests]
    return others[0] if len(others) == 1 else others


def _single(like: Any) -> Any:
    """The type without the host's markers for output modes and without deferred calls."""
    like = without_deferral(like)
    if isinstance(like, (NativeOutput, PromptedOutput)):
        return cast("Any", like).outputs
    return cast("Any", like).output if isinstance(like, ToolOutput) else like


@contextmanager
def settled_as(accepted: Outcome[Any]) -> Generator[None]:
    """Make the text functions return this value instead of reading the text again."""
    token = _settled.set(accepted if isinstance(accepted, Accepted) else None)
    try:
        yield
    finally:
        _settled.reset(token)


_NOTHING: Final = " "
"""Not JSON. An empty string would mean an empty object to the host."""


class PartialOutput:
    """An output that the host validates again and again while it streams. Each piece of it is read once."""

    def __init__(self) -> None:
        self._contract: Contract[Any] | None = None
        self._text = ""
        self._json = _NOTHING
        self._reader: StreamReader[Any] | None = None

    def json_of(self, text: str, contract: Contract[Any]) -> str:
        """The value so far as JSON, even if the reply is damaged or begins with prose."""
        if self._reader is None or contract is not self._contract or not text.startswith(self._text):
            self._contract, self._reader = contract, StreamReader(contract)
            self._text, self._json = "", _NOTHING
        partial = self._reader.feed(text[len(self._text) :])
        self._text = text
        if partial is not None:
            shown = partial.value
            self._json = _NOTHING if shown is None else to_json(shown, inf_nan_mode="constants").decode()
        return self._json
