"""The values of contracts that are more than one JSON value: a block before prose, and an event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, create_model

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Block:
    """The leading JSON object of a reply, and the rest of it. `fields` is empty where the contract is inert."""

    fields: JsonObject
    prose: str


class Event(BaseModel):
    """One event: its kind, its text, and whatever else the model said about it.

    Further keys are kept as attributes and in `model_extra`. `winner` and `scores` are typed where they stand.
    """

    model_config = ConfigDict(extra="allow")

    kind: str
    text: str
    winner: str | None = None
    scores: dict[str, float] | None = None


class WrittenEvent(BaseModel):
    """An event as a model wrote it: the kind may be missing or wrong."""

    model_config = ConfigDict(extra="allow")

    kind: str | None = None
    text: str
    winner: str | None = None
    scores: dict[str, float] | None = None


def event_model(fields: tuple[str, ...]) -> type[WrittenEvent]:
    """`WrittenEvent` with these further fields, which may be absent."""
    further: dict[str, Any] = {name: (Any, None) for name in fields if name not in WrittenEvent.model_fields}
    return create_model("WrittenEvent", __base__=WrittenEvent, **further) if further else WrittenEvent
