"""Finds out while a reply streams that the rest of it is worth nothing, so that nobody waits and pays for it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pydantic_ai.messages import (
    BaseToolCallPart,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPartDelta,
)
from pydantic_ai.models import ModelRequestParameters

from flujo_aros.contract import Contract
from flujo_aros.host.run_state import Exchange
from flujo_aros.reading.runaway import Runaway
from flujo_aros.reading.stream import StreamReader
from flujo_aros.settings import StreamingSettings


class PartsWatched:
    """Hears the events of one stream. Each text, each call of a tool and each thought is a text of its own.

    `runaway`: a part is lost that goes on without end. `contract`: so is an answer that can no longer satisfy it; an
    answer is a text, or what one of `tools` is called with.
    """

    def __init__(
        self, *, runaway: bool = True, contract: Contract[Any] | None = None, tools: Collection[str] = ()
    ) -> None:
        self._runaway = runaway
        self._contract = contract
        self._tools = tools
        self._parts: dict[int, Runaway] = {}
        self._answers: dict[int, StreamReader[Any]] = {}

    def lost(self, event: ModelResponseStreamEvent) -> int | None:
        """The index of the part that this event is about, if the rest of it is worth nothing."""
        if isinstance(event, PartStartEvent):
            self._parts[event.index] = Runaway()
            if self._contract is not None and self._answers_in(event.part):
                self._answers[event.index] = StreamReader(self._contract)
            words = _words_of(event.part)
        elif isinstance(event, PartDeltaEvent):
            words = _words_of(event.delta)
        else:
            return None
        part = self._parts.get(event.index)
        if part is None or not words:
            return None
        part.watch(words)
        answer = self._answers.get(event.index)
        if answer is not None:
            answer.feed(words)
        lost = (self._runaway and part.issue is not None) or (answer is not None and answer.doomed is not None)
        return event.index if lost else None

    def _answers_in(self, part: object) -> bool:
        return isinstance(part, TextPart) or (isinstance(part, BaseToolCallPart) and part.tool_name in self._tools)


def watch(exchange: Exchange, form: ModelRequestParameters, stops: StreamingSettings | None) -> PartsWatched | None:
    """What listens for a reply whose rest is worth nothing, as far as the settings want one to be ended early."""
    if stops is None or not exchange.is_read or not (stops.stop_runaway or stops.stop_doomed):
        return None
    tools = [tool.name for tool in form.output_tools]
    contract = exchange.wanted if stops.stop_doomed else None
    return PartsWatched(runaway=stops.stop_runaway, contract=contract, tools=tools)


def _words_of(piece: object) -> str:
    if isinstance(piece, (TextPart, ThinkingPart)):
        return piece.content
    if isinstance(piece, (TextPartDelta, ThinkingPartDelta)):
        return piece.content_delta or ""
    if isinstance(piece, BaseToolCallPart):
        return piece.args if isinstance(piece.args, str) else ""
    return piece.args_delta if isinstance(piece, ToolCallPartDelta) and isinstance(piece.args_delta, str) else ""
