"""Tells while a reply streams that its model has lost its way, so that nobody has to wait and pay for the rest."""

from __future__ import annotations

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

from flujo_aros.reading.runaway import Runaway


class PartsWatched:
    """Hears the events of one stream. Each text, each call of a tool and each thought is a text of its own."""

    def __init__(self) -> None:
        self._parts: dict[int, Runaway] = {}

    def lost(self, event: ModelResponseStreamEvent) -> int | None:
        """The index of the part that this event is about, if it goes on without end."""
        if isinstance(event, PartStartEvent):
            self._parts[event.index] = Runaway()
            words = _words_of(event.part)
        elif isinstance(event, PartDeltaEvent):
            words = _words_of(event.delta)
        else:
            return None
        part = self._parts.get(event.index)
        if part is None or not words:
            return None
        part.watch(words)
        return None if part.issue is None else event.index


def _words_of(piece: object) -> str:
    if isinstance(piece, (TextPart, ThinkingPart)):
        return piece.content
    if isinstance(piece, (TextPartDelta, ThinkingPartDelta)):
        return piece.content_delta or ""
    if isinstance(piece, BaseToolCallPart):
        return piece.args if isinstance(piece.args, str) else ""
    return piece.args_delta if isinstance(piece, ToolCallPartDelta) and isinstance(piece.args_delta, str) else ""
