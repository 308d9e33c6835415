"""Shows a reply while the model writes it, and reports when the final text differs from what was shown."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable
from typing import Any, TypeAlias

from pydantic_ai.messages import (
    AgentStreamEvent,
    ModelResponsePart,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.tools import RunContext

from flujo_aros.contract import Contract
from flujo_aros.events import LiveEvent, PartialValue, TextAppended, TextDelta, TextReplaced
from flujo_aros.host.model import words_of
from flujo_aros.host.response import written_in
from flujo_aros.host.run_state import RunRecord
from flujo_aros.outcome import Accepted, Outcome, Rejected
from flujo_aros.reading.read import StreamReader

Live: TypeAlias = Callable[[LiveEvent], Awaitable[None]]
"""Receives each piece of a reply as it arrives. It is awaited, so a slow listener slows the model down."""


class Showing:
    """Takes the events of one run of an agent and emits to `live` what a person should see.

    The emitted events always add up to the text that counts: the deltas one after the other, a `TextReplaced` in place
    of all before it, a `TextAppended` after it.
    """

    def __init__(self, live: Live, contract: Contract[Any] | None, record: RunRecord) -> None:
        self.live = live
        self.record = record
        self.contract = contract
        self.shown = ""
        self._valued = self._restarted = False
        """A value was shown, and it belonged to a text that has been replaced."""
        self._reader = self._new_reader()
        self._started: set[int] = set()

    async def __call__(self, ctx: RunContext[Any], events: AsyncIterable[AgentStreamEvent]) -> None:  # noqa: ARG002 (the host's signature)
        """Take the events of one model request, or of the tools that it called."""
        self.begin()
        async for event in events:
            await self.take(event)

    def begin(self) -> None:
        """Another reply begins."""
        self._started = set()

    async def take(self, event: AgentStreamEvent) -> None:
        """Show the text that an event adds to the reply."""
        if isinstance(event, PartStartEvent):
            await self._begin(event.index, event.part)
        elif isinstance(event, PartDeltaEvent) and event.index in self._started:
            await self._show(words_of(event.delta))

    async def append(self, text: str) -> None:
        """Show text appended to a reply that has been shown."""
        self.shown += text
        await self.live(TextAppended(text=text))

    async def _begin(self, index: int, part: ModelResponsePart) -> None:
        words = self._words_in(part)
        if words is None:
            return
        again = index in self._started
        if again or not self._started:  # replaced, or the reply after a tool call: the text shown is not the answer
            await self._replace(words if again else "")
        self._started.add(index)
        if not again:
            await self._show(words)

    def _words_in(self, part: ModelResponsePart) -> str | None:
        """The text of a part that a person should see, or None if it is not an answer, such as a call of the agent's
        own tool.
        """
        parameters = self.record.exchange.parameters
        outputs = [tool.name for tool in parameters.output_tools] if parameters else []
        if isinstance(part, TextPart) or (isinstance(part, ToolCallPart) and part.tool_name in outputs):
            return written_in(part)
        return None

    async def _show(self, words: str) -> None:
        if not words:
            return
        self.shown += words
        if self.record.exchange.appended and words == self.record.exchange.appended:
            await self.live(TextAppended(text=words))
            return
        await self.live(TextDelta(text=words))
        partial = self._reader.feed(words) if self._reader is not None else None
        if partial is not None:
            await self._value(partial.value, partial.final_paths, restarted=partial.restarted)

    async def _value(self, value: Any, final_paths: frozenset[str], *, restarted: bool = False) -> None:
        restarted = restarted or self._restarted
        self._valued, self._restarted = True, False
        await self.live(PartialValue(value=value, final_paths=final_paths, restarted=restarted))

    async def _replace(self, text: str) -> None:
        if text == self.shown:
            return
        self.shown = text
        self._restarted = self._valued
        self._reader = self._new_reader()
        if self._reader is not None and text:
            self._reader.feed(text)
        await self.live(TextReplaced(text=text))

    async def end(self, outcome: Outcome[Any]) -> None:
        """Replace the text shown with that of the outcome, and show the value."""
        if isinstance(outcome, Rejected):
            return
        text = outcome.text
        if text.startswith(self.shown) and self.shown:
            if text != self.shown:
                await self.live(TextAppended(text=text[len(self.shown) :]))
        elif text != self.shown:
            self._restarted = self._valued
            await self.live(TextReplaced(text=text))
        self.shown = text
        if isinstance(outcome, Accepted):
            await self._value(outcome.value, frozenset({"$"}))

    def _new_reader(self) -> StreamReader[Any] | None:
        return None if self.contract is None else StreamReader(self.contract)
