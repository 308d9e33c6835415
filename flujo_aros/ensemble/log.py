"""The event log: append-only, in memory or in a database, and read by pure folds.

The log is the only state of an ensemble: whoever reads it from the beginning knows all that there is to know. The
events of one turn are appended together, or not at all, so that a killed run goes on at a turn as if nothing had been.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from sqlalchemy import Column, Engine, Integer, MetaData, String, Table, Text, create_engine, func, insert, select
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from flujo_aros.errors import UsageError

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class LogEvent:
    """One event. `id` counts from 1 within its log; `actor` is an agent, `user` or `conductor`.

    `payload` has what was said: `text`, and further fields. `meta` has what it took: model, trust, usage, measures.
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
        """What was said; empty for an event without words."""
        said = self.payload.get("text")
        return said if isinstance(said, str) else ""

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "id": self.id,
            "run_id": self.run_id,
            "turn": self.turn,
            "kind": self.kind,
            "actor": self.actor,
            "payload": self.payload,
            "meta": self.meta,
        }


_METADATA: Final = MetaData()
_EVENTS: Final = Table(
    "aros_events",
    _METADATA,
    Column("run_id", String(64), primary_key=True),
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("turn", Integer, nullable=False),
    Column("kind", String(100), nullable=False),
    Column("actor", String(100), nullable=False),
    Column("payload", Text, nullable=False),
    Column("meta", Text, nullable=False),
)
_PAGE: Final = 1_000


class EventLog:
    """The events of one run of an ensemble, in their order.

    Without a `url` it lives in memory. A file or a URL (`sqlite:///FILE`, `postgresql://…`) keeps it; one database may
    hold many logs, told apart by `run_id`. Raises `UsageError` for a database that cannot be opened, or written.

    >>> log = EventLog()
    >>> log.append([("user.injected", "user", {"text": "It rains."})], turn=1)[0].id
    1
    >>> fold(log, lambda count, event: count + 1, 0)
    1
    """

    def __init__(self, url: str | Path | None = None, *, run_id: str = "run") -> None:
        self.run_id = run_id
        self.url = None if url is None else str(url)
        self._kept: list[LogEvent] = []
        self._engine: Engine | None = None if url is None else _opened(str(url))
        self._last = self._newest()

    def __len__(self) -> int:
        return self._last

    def __iter__(self) -> Iterator[LogEvent]:
        return self.events()

    def append(
        self,
        events: Iterable[tuple[str, str, dict[str, Any]] | tuple[str, str, dict[str, Any], dict[str, Any]]],
        *,
        turn: int,
    ) -> tuple[LogEvent, ...]:
        """Append events, each `(kind, actor, payload)` or `(kind, actor, payload, meta)`: all of them, or none."""
        first = self._newest() + 1 if self._engine is not None else self._last + 1
        made: list[LogEvent] = []
        for number, (kind, actor, payload, *more) in enumerate(events, first):
            plain = json.loads(json.dumps([payload, more[0] if more else {}], ensure_ascii=False, default=str))
            made.append(LogEvent(number, self.run_id, turn, kind, actor, plain[0], plain[1]))
        if self._engine is None:
            self._kept += made
        elif made:
            rows = [{**each.to_dict(), "payload": _json(each.payload), "meta": _json(each.meta)} for each in made]
            try:
                with self._engine.begin() as connection:
                    connection.execute(insert(_EVENTS), rows)
            except SQLAlchemyError as error:
                raise UsageError(f"the event log {self.url} cannot be written: {_said(error)}") from error
        self._last = made[-1].id if made else self._last
        return tuple(made)

    def events(self, *, after: int = 0) -> Iterator[LogEvent]:
        """The events with a larger id than `after`, in their order."""
        if self._engine is None:
            yield from self._kept[after:]
            return
        while True:
            page = self._page(after)
            yield from page
            if len(page) < _PAGE:
                return
            after = page[-1].id

    def _page(self, after: int) -> Sequence[LogEvent]:
        assert self._engine is not None  # noqa: S101 - asked by `events` alone
        own = (_EVENTS.c.run_id == self.run_id) & (_EVENTS.c.id > after)
        with self._engine.connect() as connection:
            rows = connection.execute(select(_EVENTS).where(own).order_by(_EVENTS.c.id).limit(_PAGE)).all()
        return [
            LogEvent(row.id, row.run_id, row.turn, row.kind, row.actor, json.loads(row.payload), json.loads(row.meta))
            for row in rows
        ]

    def _newest(self) -> int:
        if self._engine is None:
            return len(self._kept)
        with self._engine.connect() as connection:
            found = connection.execute(select(func.max(_EVENTS.c.id)).where(_EVENTS.c.run_id == self.run_id)).scalar()
        return found or 0

    def close(self) -> None:
        """Let go of the database."""
        if self._engine is not None:
            self._engine.dispose()


def fold(log: Iterable[LogEvent], projection: Callable[[S, LogEvent], S], start: S) -> S:
    """What a log comes to: the projection of each event onto what came of those before it.

    >>> fold(EventLog(), lambda seen, event: [*seen, event.kind], [])
    []
    """
    for event in log:
        start = projection(start, event)
    return start


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


def _opened(url: str) -> Engine:
    address = url if "://" in url else f"sqlite:///{url}"
    if address.startswith("postgresql://"):
        address = address.replace("postgresql://", "postgresql+psycopg://", 1)
    try:
        if address.startswith("sqlite:///"):
            Path(address.removeprefix("sqlite:///")).absolute().parent.mkdir(parents=True, exist_ok=True)
        engine = create_engine(address)
        _METADATA.create_all(engine)
    except (SQLAlchemyError, ArgumentError, NoSuchModuleError, ImportError, OSError) as error:
        raise UsageError(f"the event log {url!r} cannot be opened: {_said(error)}") from error
    return engine


def _said(error: Exception) -> str:
    return str(getattr(error, "orig", None) or error).splitlines()[0]
