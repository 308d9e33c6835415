"""The agent's own model calls: told to observers as those of a ladder are, and allowed or not by the caller."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from time import perf_counter
from typing import Final

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, SystemPromptPart, UserPromptPart
from pydantic_ai.models import Model, ModelRequestParameters

from flujo_aros.agents.faults import PROVIDER_FAULTS, sentence
from flujo_aros.agents.record import RunRecord
from flujo_aros.agents.telling import ask_span, tell_ask
from flujo_aros.events import is_heard
from flujo_aros.usage import Allowance, Usage

FIRST: Final = "first"


@dataclass(slots=True)
class FirstCall:
    """One call of the agent's own; `response` is what came of it, as far as it came."""

    response: ModelResponse | None = None
    fault: str | None = "interrupted"
    first_at: float | None = None
    """When the first piece of a stream came."""

    @property
    def usage(self) -> Usage:
        """What the call has used; nothing was measured of one that failed."""
        return Usage(requests=1, unmeasured_requests=1) if self.response is None else usage_of(self.response)


@asynccontextmanager
async def first_call(
    model: Model,
    messages: Sequence[ModelMessage],
    parameters: ModelRequestParameters,
    record: RunRecord | None,
    *,
    capture: bool = False,
) -> AsyncGenerator[FirstCall]:
    """A model call of the agent's own happens inside, once the caller's allowance lets it."""
    allowance = None if record is None else record.allowance
    settle = None if allowance is None else await _reserved(allowance, record)
    call, began, attempt = FirstCall(), perf_counter(), 1 if record is None else record.own_calls
    native = parameters.output_mode == "native"
    prompt = text_of(messages) if is_heard() else ""
    name = model.model_name
    if record is not None:
        record.began, record.seconds = began, None
    with ask_span(FIRST, attempt=attempt, model=name, constrained=native, prompt=prompt, capture=capture) as finish:
        try:
            yield call
            call.fault = None
        except PROVIDER_FAULTS as error:
            call.fault = sentence(error)
            raise
        finally:
            if record is not None:
                record.seconds = perf_counter() - began
            if settle is not None or is_heard():  # otherwise nobody asks what it has used: a price is long to find
                used = call.usage
                if settle is not None:
                    settle(used)
                if record is not None:
                    record.used = (call.response, used)
                tell_ask(
                    finish,
                    FIRST,
                    attempt=attempt,
                    model=name,
                    usage=used,
                    seconds=perf_counter() - began,
                    finish_reason=None if call.response is None else call.response.finish_reason,
                    fault=call.fault,
                    first_seconds=None if call.first_at is None else call.first_at - began,
                )


async def _reserved(allowance: Allowance, record: RunRecord | None) -> Callable[[Usage], None]:
    """What the allowance gives for the call; one that it refuses, or that is broken off before, was never made."""
    granted = False
    try:
        settle = await allowance.reserve()
        granted = True
    finally:
        if not granted and record is not None:
            record.calls -= 1
            record.own_calls -= 1
    return settle


def text_of(messages: Sequence[ModelMessage]) -> str:
    """What the requests of a conversation say in words: instructions, system prompts and user prompts."""
    said: list[str] = []
    for message in messages:
        if isinstance(message, ModelRequest):
            said.append(message.instructions or "")
            for part in message.parts:
                if isinstance(part, SystemPromptPart):
                    said.append(part.content)
                elif isinstance(part, UserPromptPart):
                    pieces = (part.content,) if isinstance(part.content, str) else part.content
                    said.extend(piece for piece in pieces if isinstance(piece, str))
    return "\n\n".join(filter(None, said))


def usage_of(response: ModelResponse) -> Usage:
    """What the call that gave a response has used."""
    used = response.usage
    return Usage(1, used.input_tokens, used.output_tokens, cost_of(response), used.unmeasured_requests)


def cost_of(response: ModelResponse) -> Decimal | None:
    """What a response has cost in US dollars; None where no price is known."""
    if response.usage.cost is not None:
        return response.usage.cost
    if not response.model_name:
        return None
    try:
        return response.cost().total_price
    except (LookupError, ValueError):  # no such model in the price list, or no usage was reported
        return None
