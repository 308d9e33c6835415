"""The values of contracts that are more than one JSON value: a block before prose, and an event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    SerializerFunctionWrapHandler,
    create_model,
    model_serializer,
)

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Block:
    """The leading JSON object of a reply, and the rest of it. `fields` is empty where the contract is inert."""

    fields: JsonObject
    prose: str


PLACEHOLDER: Final = "…"
"""The text of an event whose reply held nothing that was meant to be said."""


class Event(BaseModel):
    """One event: its kind, its text, and whatever else the model said about it.

    Further keys are kept as attributes and in `model_extra`. `winner` and `scores` are typed where they stand.
    """

    model_config = ConfigDict(extra="allow", protected_namespaces=())

    kind: str
    text: str
    winner: str | None = None
    scores: dict[str, float] | None = {}

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """A further key, as the model wrote it."""

    @model_serializer(mode="wrap")
    def _as_told(self, plain: SerializerFunctionWrapHandler) -> JsonObject:
        """Without the fields of a verdict that nobody has written: most events are none."""
        told: JsonObject = plain(self)
        return {name: value for name, value in told.items() if name in self.model_fields_set or name not in WELL_KNOWN}

    @property
    def is_raw_fallback(self) -> bool:
        """Whether the model wrote no event, and its prose was taken for one."""
        return bool((self.model_extra or {}).get("_raw_fallback"))

    @property
    def is_no_contest(self) -> bool:
        """Whether the winner could not be settled, so that the event names none."""
        return bool((self.model_extra or {}).get("no_contest"))

    @property
    def says_nothing(self) -> bool:
        """Whether the text is a placeholder: the reply held nothing that was meant to be said."""
        return self.text.strip(" .…") == ""


class WrittenEvent(BaseModel):
    """An event as a model wrote it: the kind may be missing or wrong."""

    model_config = ConfigDict(extra="allow", protected_namespaces=())

    kind: str | None = None
    text: str
    winner: str | None = None
    scores: dict[str, float] | None = None


class LooseEvent(BaseModel):
    """An event with anything at all in the places that can be cleaned."""

    model_config = ConfigDict(extra="allow", protected_namespaces=())

    kind: Any = None
    text: str
    winner: Any = None
    scores: Any = None


EventT = TypeVar("EventT", bound=BaseModel)


def written_model(fields: tuple[str, ...], base: type[EventT]) -> type[EventT]:
    """`base` with these further fields, which may be absent."""
    further: dict[str, Any] = {name: (Any, None) for name in fields if name not in base.model_fields}
    return create_model(base.__name__, __base__=base, **further) if further else base


WELL_KNOWN: Final[dict[str, Any]] = {"winner": (str | None, None), "scores": (dict[str, float], {})}
"""Fields of a verdict: typed, and never required."""


def event_model(kinds: tuple[str, ...], fields: tuple[str, ...]) -> type[Event]:
    """A strict event: one of these kinds, a text, every further field a text as well.

    Its schema has the fields of a verdict only where they are among `fields`: a model fills in what it is shown.
    """
    members: dict[str, Any] = {name: WELL_KNOWN.get(name, (str, ...)) for name in fields}
    members["kind"] = (Literal[kinds], ...)
    unasked = [name for name in WELL_KNOWN if name not in fields]

    class Asked(Event):
        model_config = ConfigDict(json_schema_extra=lambda schema: _without(schema, unasked))

    return create_model("Event", __base__=Asked, **members)


def _without(schema: JsonObject, names: list[str]) -> None:
    for name in names:
        schema["properties"].pop(name, None)


def is_taken(name: str) -> bool:
    """Whether every event has something else under this name: `copy`, `model_dump`, `says_nothing`."""
    return name not in Event.model_fields and hasattr(Event, name)
