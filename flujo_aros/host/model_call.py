"""The agent's own model calls: told to observers as those of a ladder are, and allowed or not by the caller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from decimal import Decimal
from time import perf_counter
from types import TracebackType
from typing import Final, Self

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, SystemPromptPart, UserPromptPart
from pydantic_ai.models import Model, ModelRequestParameters

from flujo_aros.events import Finish, is_heard
from flujo_aros.host.faults import PROVIDER_FAULTS, sentence
from flujo_aros.host.reporting import ask_span, tell_ask
from flujo_aros.host.run_state import RunRecord
from flujo_aros.usage import Allowance, Usage

FIRST: Final = "first"


class FirstCall:
    """One call of the agent's own, which happens inside of it once the caller's allowance lets it.

    `response` is what came of it, as far as it came, and `first_at` when the first piece of a stream came: who makes
    the call puts them there. A class and not a generator: there is one for each step, and mostly nobody listens.
    """

    def __init__(
        self,
        model: Model,
        messages: Sequence[ModelMessage],
        parameters: ModelRequestParameters,
        record: RunRecord | None,
        *,
        capture: bool = False,
    ) -> None:
        self.response: ModelResponse | None = None
        self.first_at: float | None = None
        self._asked = model, messages, parameters
        self._record = record
        self._capture = capture
        self._settle: Callable[[Usage], None] | None = None
        self._told: tuple[AbstractContextManager[Finish], Finish] | None = None
        self._began = 0.0

    async def __aenter__(self) -> Self:
        record = self._record
        if record is not None and record.options.allowance is not None:
            self._settle = await _reserved(record.options.allowance, record)
        self._began = perf_counter()
        if record is not None:
            record.exchange.began, record.exchange.seconds = self._began, None
        if is_heard():
            model, messages, parameters = self._asked
            native, prompt = parameters.output_mode == "native", text_of(messages)
            around = ask_span(
                FIRST,
                attempt=self._attempt,
                model=model.model_name,
                constrained=native,
                prompt=prompt,
                system=text_of(messages, system_only=True),
                capture=self._capture,
            )
            self._told = around, around.__enter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        record = self._record
        if record is not None:
            record.exchange.seconds = perf_counter() - self._began
        if self._settle is None and self._told is None:
            return  # nobody asks what it has used: a price is long to find
        used = self.usage
        if self._settle is not None:
            self._settle(used)
        if record is not None:
            record.exchange.used = (self.response, used)
        if self._told is not None:
            around, finish = self._told
            try:
                self._tell(finish, used, _fault_of(raised))
            finally:
                around.__exit__(kind, raised, trace)

    @property
    def usage(self) -> Usage:
        """What the call has used; nothing was measured of one that failed."""
        return Usage(requests=1, unmeasured_requests=1) if self.response is None else usage_of(self.response)

    @property
    def _attempt(self) -> int:
        return 1 if self._record is None else self._record.tally.own_calls

    def _tell(self, finish: Finish, used: Usage, fault: str | None) -> None:
        tell_ask(
            finish,
            FIRST,
            attempt=self._attempt,
            model=self._asked[0].model_name,
            usage=used,
            seconds=perf_counter() - self._began,
            finish_reason=None if self.response is None else self.response.finish_reason,
            fault=fault,
            first_seconds=None if self.first_at is None else self.first_at - self._began,
        )


def _fault_of(raised: BaseException | None) -> str | None:
    """Why a call has failed, in one line."""
    if raised is None:
        return None
    return sentence(raised) if isinstance(raised, PROVIDER_FAULTS) else "interrupted"


async def _reserved(allowance: Allowance, record: RunRecord | None) -> Callable[[Usage], None]:
    """What the allowance gives for the call; one that it refuses, or that is broken off before, was never made."""
    granted = False
    try:
        settle = await allowance.reserve()
        granted = True
    finally:
        if not granted and record is not None:
            record.tally.take_back_own()
    return settle


def text_of(messages: Sequence[ModelMessage], *, system_only: bool = False) -> str:
    """What the requests of a conversation say in words: instructions, system prompts, and user prompts where wanted."""
    said: list[str] = []
    for message in messages:
        if isinstance(message, ModelRequest):
            said.append(message.instructions or "")
            for part in message.parts:
                if isinstance(part, SystemPromptPart):
                    said.append(part.content)
                elif isinstance(part, UserPromptPart) and not system_only:
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
