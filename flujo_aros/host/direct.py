"""One request to a model without the agent graph of pydantic-ai: the one function that every such call goes through.

An agent of a blueprint has no tools, and neither has an ask of a ladder. Neither needs an agent graph: a request and a
reading will do. `request_once` makes the request through pydantic-ai's own direct interface: deadlines, formats of the
providers and `chat` spans are pydantic-ai's. Everything around it (limits, prices, events, repairs) works on what it
returns.

A durable engine puts itself in between with `calls_made_by`. It gets each `Call` and answers with a `ModelResponse`:
normally by `request_once(call)` inside one step of its own, on recovery with the response that it has recorded, which
is plain data for pydantic-ai's `ModelMessagesTypeAdapter`. What a provider raises passes through and is to be
recorded like a response. `call.label` says what a call is for and stays the same when the run is repeated. Where
`call.listen` is set, the reply is streamed and shown while `request_once` runs; an engine that answers from its
records does not call it, and the reply is shown whole.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeAlias

from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.messages import (
    CompactionPart,
    InstructionPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    SpeechPart,
    TextPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RunUsage, UsageLimits

from flujo_aros.host.model_call import cost_of

TEXT: Final = ModelRequestParameters()
"""A request for nothing but text."""

Listen: TypeAlias = Callable[[StreamedResponse], Awaitable[ModelResponse]]
"""Reads a stream to its end, or to where the rest of it is worth nothing, and gives the reply."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request to a model: what is asked of whom, and in which form.

    `listen` reads the reply while it streams; without it nothing is streamed. `instrument` are the OpenTelemetry
    settings of the run; None stands for those of the process (`Agent.instrument_all`). `agent`, `stage` and `attempt`
    say what the call is for: `stage` is "first" for an agent's own request, else the stage of the ladder that asks.
    """

    model: Model
    messages: Sequence[ModelMessage]
    parameters: ModelRequestParameters
    settings: ModelSettings | None = None
    listen: Listen | None = None
    instrument: InstrumentationSettings | None = None
    agent: str = ""
    stage: str = "first"
    attempt: int = 1

    @property
    def label(self) -> str:
        """What the call is for, in words that stay the same when a run is repeated: `extract first 1`."""
        return f"{self.agent} {self.stage} {self.attempt}".strip()


class ModelCall(Protocol):
    """Makes one request to a model: `request_once`, or something around it."""

    async def __call__(self, call: Call, /) -> ModelResponse:
        """The whole reply. Raises what the provider raises."""
        ...


async def request_once(call: Call, /) -> ModelResponse:
    """Make one request to a model. Raises what the provider raises."""
    if call.listen is None:
        return await model_request(
            call.model,
            call.messages,
            model_settings=call.settings,
            model_request_parameters=call.parameters,
            instrument=call.instrument,
        )
    async with model_request_stream(
        call.model,
        call.messages,
        model_settings=call.settings,
        model_request_parameters=call.parameters,
        instrument=call.instrument,
    ) as stream:
        return await call.listen(stream)


_made_by: Final[ContextVar[ModelCall]] = ContextVar("flujo_aros_model_call", default=request_once)


@contextmanager
def calls_made_by(model_call: ModelCall) -> Generator[None]:
    """Let every request inside the block go through `model_call`, also in the tasks that are started there.

    >>> import asyncio
    >>> from pydantic_ai.models import ModelRequestParameters
    >>> from pydantic_ai.models.test import TestModel
    >>> async def recorded(call):
    ...     return ModelResponse(parts=[])
    >>> async def main():
    ...     with calls_made_by(recorded):
    ...         return await make_call(Call(TestModel(), [], ModelRequestParameters()))
    >>> asyncio.run(main()).parts
    []
    """
    token = _made_by.set(model_call)
    try:
        yield
    finally:
        _made_by.reset(token)


async def make_call(call: Call) -> ModelResponse:
    """Make one request, by `request_once` or by what `calls_made_by` has put in its place."""
    return await _made_by.get()(call)


def with_instructions(parameters: ModelRequestParameters, messages: Sequence[ModelMessage]) -> ModelRequestParameters:
    """The parameters with the instructions of the latest request, where providers look for them."""
    last = messages[-1] if messages else None
    if not isinstance(last, ModelRequest) or not last.instructions:
        return parameters
    return replace(parameters, instruction_parts=[InstructionPart(content=last.instructions)])


def count(response: ModelResponse, usage: RunUsage, own: RunUsage, limits: UsageLimits | None) -> None:
    """Count a response into the usage of a run, and into what the run has used by itself (`own`).

    Raises `UsageLimitExceeded` where the run has used more than it may.
    """
    used = response.usage
    price(response)
    for each in (usage, own):
        each.requests += 1
        for attempt in response.failed_attempts or ():  # of a fallback model: they were paid for, too
            if attempt.usage is not None:
                each.incr(attempt.usage)
        each.incr(used)
    if limits is not None:
        check_limits(usage, limits, response)


def price(response: ModelResponse) -> None:
    """Write into a response what it has cost, as far as that is known: of one that broke off, what came of it."""
    used = response.usage
    if used.cost is not None:
        return
    if not used.unmeasured_requests:
        used.cost = cost_of(response)
        return
    measured = copy(used)
    measured.unmeasured_requests = 0
    used.cost = cost_of(replace(response, usage=measured)) or None


def check_limits(usage: RunUsage, limits: UsageLimits, response: ModelResponse | None = None) -> None:
    """Raise `UsageLimitExceeded` where a run has used more than it may."""
    limits.check_tokens(usage)
    limits.check_cost(usage, warn_if_cost_unavailable=False)
    if response is not None and limits.per_request_input_tokens_limit is not None:
        limits.check_per_request_input_tokens(response.usage.input_tokens)


def text_in(response: ModelResponse) -> str:
    """The text that a response gives as its answer; what was written before a search of the provider's is a thought."""
    text = before = compacted = ""
    for part in response.parts:
        if isinstance(part, (TextPart, SpeechPart)):
            text += part.content
        elif isinstance(part, NativeToolCallPart):
            before, text = text or before, ""
        elif isinstance(part, CompactionPart) and part.content:
            compacted += part.content
    return text or before or compacted
