"""An event log in a database: a SQLite file, or PostgreSQL by its URL."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from sqlalchemy import Column, Connection, Engine, Integer, MetaData, String, Table, Text, func, insert, select
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from flujo_aros.database import cause, create_tables, open_engine, shown
from flujo_aros.errors import UsageError

_RUN_ID, _NAME = String(64), String(100)  # longer ones are rejected before they get here
_METADATA: Final = MetaData()
_EVENTS: Final = Table(
    "aros_events",
    _METADATA,
    Column("run_id", _RUN_ID, primary_key=True),
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("turn", Integer, nullable=False),
    Column("kind", _NAME, nullable=False),
    Column("actor", _NAME, nullable=False),
    Column("payload", Text, nullable=False),
    Column("meta", Text, nullable=False),
)
_PAGE: Final = 1_000


class StoredLog:
    """The events of one run in a database, each as plain JSON.

    Raises `UsageError` if it cannot be opened, read or written.
    """

    def __init__(self, url: str, run_id: str) -> None:
        self._run_id = run_id
        self._engine = open_engine(url, "event log", _make_table)

    def newest(self) -> int:
        """Return the id of the last event, or 0 if there is none."""
        query = select(func.max(_EVENTS.c.id)).where(_EVENTS.c.run_id == self._run_id)
        with self._transaction("read") as connection:
            return connection.execute(query).scalar() or 0

    def read(self, after: int) -> Iterator[dict[str, Any]]:
        """Yield the events whose id is larger than `after`, in order, a page at a time."""
        while True:
            page = self._page(after)
            yield from page
            if len(page) < _PAGE:
                return
            after = page[-1]["id"]

    def write(self, made: Sequence[dict[str, Any]]) -> bool:
        """Write all of these events; return False if another writer has taken their ids."""
        rows = [{**each, "payload": _json(each["payload"]), "meta": _json(each["meta"])} for each in made]
        try:
            with self._transaction("written") as connection:
                connection.execute(insert(_EVENTS), rows)
        except IntegrityError:
            return False
        return True

    def close(self) -> None:
        """Close the connections to the database."""
        self._engine.dispose()

    def _page(self, after: int) -> list[dict[str, Any]]:
        own = (_EVENTS.c.run_id == self._run_id) & (_EVENTS.c.id > after)
        with self._transaction("read") as connection:
            rows = connection.execute(select(_EVENTS).where(own).order_by(_EVENTS.c.id).limit(_PAGE)).mappings().all()
        return [{**row, "payload": json.loads(row["payload"]), "meta": json.loads(row["meta"])} for row in rows]

    @contextmanager
    def _transaction(self, doing: str) -> Generator[Connection]:
        """Open a transaction. `IntegrityError` is not converted, because the writer handles it."""
        try:
            with self._engine.begin() as connection:
                yield connection
        except IntegrityError:
            raise
        except SQLAlchemyError as error:
            raise UsageError(f"the event log {shown(self._engine.url)} could not be {doing}: {cause(error)}") from error


def _json(value: dict[str, Any]) -> str:
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate is not a character: no database can store it
        return json.dumps(value)
    return text


def _make_table(engine: Engine) -> None:
    with engine.begin() as connection:
        create_tables(connection, _METADATA)
