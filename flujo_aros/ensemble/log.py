"""The event log: append-only, stored in memory or in a database, and read by pure folds.

The log is the only state of an ensemble: everything else is derived by reading it from the beginning. The events of one
turn are appended together or not at all, so a run that was killed resumes at its turn.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeAlias, TypeVar, cast, overload

from flujo_aros.configured import reject_unknown_options
from flujo_aros.errors import UsageError
from flujo_aros.redaction import without_secrets

if TYPE_CHECKING:  # a log in memory needs no database
    from flujo_aros.ensemble.stored_log import StoredLog

S = TypeVar("S")
S_co = TypeVar("S_co", covariant=True)

NewEvent: TypeAlias = tuple[str, str, dict[str, Any]] | tuple[str, str, dict[str, Any], dict[str, Any]]
"""An event to append: `(kind, actor, payload)` or `(kind, actor, payload, meta)`."""
_Plain: TypeAlias = tuple[str, str, dict[str, Any], dict[str, Any]]
_OWN: Final = object()
"""The default of `fold`: begin with the `start` of the projection."""


@dataclass(frozen=True, slots=True)
class LogEvent:
    """One event. `id` counts from 1 within its log; `actor` is an agent, `user` or `conductor`.

    `payload` contains `text` and further fields. `meta` contains the model, the trust, the usage and the measures.
    """

    id: int
    run_id: str
    turn: int
    kind: str
    actor: str
    payload: dict[str, Any]
    meta: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def text(self) -> str:
        """The text of the event, or an empty string if it has none."""
        text = self.payload.get("text")
        return text if isinstance(text, str) else ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


_LONGEST_RUN_ID: Final = 64
_LONGEST_NAME: Final = 100


@reject_unknown_options
class EventLog:
    """The events of one run of an ensemble, in order.

    Without a `url` it is kept in memory. A file or a URL (`sqlite:///FILE`, `postgresql://…`) persists it; one database
    can store many logs, distinguished by `run_id`. Other processes may append at the same time. Raises `UsageError` if
    the database cannot be opened, read or written.

    >>> log = EventLog()
    >>> log.append([("user.injected", "user", {"text": "It rains."})], turn=1)[0].id
    1
    >>> fold(log, lambda count, event: count + 1, 0)
    1
    """

    def __init__(self, url: str | Path | None = None, *, run_id: str = "run") -> None:
        if not 0 < len(run_id) <= _LONGEST_RUN_ID:
            raise UsageError(f"run_id={run_id!r}: expected 1 to {_LONGEST_RUN_ID} characters")
        self.run_id = run_id
        self.url = None if url is None else str(url)
        self._kept: list[LogEvent] = []
        self._stored: StoredLog | None = None
        if url is not None:
            from flujo_aros.ensemble.stored_log import StoredLog

            self._stored = StoredLog(str(url), run_id)

    def __repr__(self) -> str:
        where = "" if self.url is None else f"{without_secrets(self.url)!r}, "
        return f"EventLog({where}run_id={self.run_id!r})"

    def __len__(self) -> int:
        return len(self._kept) if self._stored is None else self._stored.newest()

    def __bool__(self) -> bool:
        return True  # `log or …` would otherwise replace an empty log

    def __iter__(self) -> Iterator[LogEvent]:
        return self.events()

    def append(self, events: Iterable[NewEvent], *, turn: int, after: int | None = None) -> tuple[LogEvent, ...]:
        """Append all of these events, or none.

        `after` is the id of the last event that the writer has seen: if the log has moved on since, nothing is
        appended and the result is empty. Without it they go to the end, whatever others are writing.
        """
        new = [_as_stored(*each[:3], each[3] if len(each) > 3 else {}) for each in events]
        while new:
            first = (len(self) if after is None else after) + 1
            made = tuple(
                LogEvent(number, self.run_id, turn, kind, actor, payload, meta)
                for number, (kind, actor, payload, meta) in enumerate(new, first)
            )
            if self._written(made):
                return made
            if after is not None:
                break
        return ()

    def _written(self, made: tuple[LogEvent, ...]) -> bool:
        """Write the events; return False if another writer has taken their ids."""
        if self._stored is not None:
            return self._stored.write([each.to_dict() for each in made])
        if made[0].id != len(self._kept) + 1:
            return False
        self._kept += made
        return True

    def events(self, *, after: int = 0) -> Iterator[LogEvent]:
        """Yield the events whose id is larger than `after`, in order."""
        if self._stored is None:
            yield from self._kept[after:]
        else:
            yield from (LogEvent(**row) for row in self._stored.read(after))

    def close(self) -> None:
        """Close the connections to the database; `with EventLog(…) as log:` does so at the end."""
        if self._stored is not None:
            self._stored.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Projection(Protocol[S_co]):
    """A projection with its own initial state; `starting_at` creates one."""

    @property
    def start(self) -> S_co:
        """The state before the first event."""
        ...

    # `Any`, so that the result of `fold` may be used where a wider type is wanted: `"".join(fold(log, lines))`.
    def __call__(self, sofar: Any, event: LogEvent, /) -> S_co:
        """Return the state after one more event."""
        ...


def starting_at(start: S) -> Callable[[Callable[[S, LogEvent], S]], Projection[S]]:
    """Decorate a projection with its initial state, so that `fold(log, projection)` needs no `start`.

    >>> @starting_at(0)
    ... def length(sofar: int, event: LogEvent) -> int:
    ...     return sofar + 1
    >>> fold(EventLog(), length)
    0
    """

    def decorated(projection: Callable[[S, LogEvent], S]) -> Projection[S]:
        made = cast("Any", projection)
        made.start = start
        return cast("Projection[S]", made)

    return decorated


@overload
def fold(log: Iterable[LogEvent], projection: Projection[S]) -> S: ...
@overload
def fold(log: Iterable[LogEvent], projection: Callable[[S | None, LogEvent], S]) -> S | None: ...
@overload
def fold(log: Iterable[LogEvent], projection: Callable[[S, LogEvent], S], start: S) -> S: ...
def fold(log: Iterable[LogEvent], projection: Callable[[Any, LogEvent], Any], start: Any = _OWN) -> Any:
    """Apply a projection to a log: `projection(state, event)` for each event.

    `start` is the state before the first event. By default it is the `start` of the projection, if it has one (the
    projections in `flujo_aros.ensemble.views` do), and otherwise None.

    >>> log = EventLog()
    >>> _ = log.append([("user.injected", "user", {"text": "It rains."})], turn=1)
    >>> fold(log, lambda kinds, event: [*(kinds or []), event.kind])
    ['user.injected']
    >>> fold(log, lambda count, event: count + 1, 0)
    1
    """
    sofar = getattr(projection, "start", None) if start is _OWN else start
    for each in log:
        sofar = projection(sofar, each)
    return sofar


def _as_stored(kind: str, actor: str, payload: dict[str, Any], meta: dict[str, Any]) -> _Plain:
    """Return the event as it would be read back from a database."""
    for name, value in (("kind", kind), ("actor", actor)):
        if len(value) > _LONGEST_NAME:
            raise UsageError(f"{name}={value!r}: expected at most {_LONGEST_NAME} characters")
    data, took = json.loads(json.dumps([payload, meta], ensure_ascii=False, default=str))
    return kind, actor, data, took
