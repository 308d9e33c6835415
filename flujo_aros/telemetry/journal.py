"""The journal: a database that records every run, step, model call, reading and repair as it happens."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from sqlalchemy import Connection, Engine, func, select
from sqlalchemy.exc import SQLAlchemyError

from flujo_aros.database import cause, shown
from flujo_aros.errors import UsageError
from flujo_aros.events import Event, RunStarted
from flujo_aros.recovery import Evidence
from flujo_aros.telemetry import queries
from flujo_aros.telemetry.engine import DEFAULT, open_database
from flujo_aros.telemetry.health import Health, Span, diagnose
from flujo_aros.telemetry.masking import Mask
from flujo_aros.telemetry.recorder import Recorder
from flujo_aros.telemetry.records import RUNS, WITH_IDS, JournalNote, JournalRun, Story
from flujo_aros.telemetry.writer import Left, Writer

_log: Final = logging.getLogger("flujo_aros.journal")


class Journal:
    """Records runs in a database: pass it to a runner, or to `observing`, as an observer.

    `url` is a file or a URL (`sqlite:///FILE`, `postgresql://…`); by default `.aros/runs.sqlite` in the working
    folder. Texts are masked before they are written (see `Mask`), also `secrets`, values that you name; of each text
    `max_text` characters are kept, or none with `content=False`. `max_runs` is how many runs are kept: the oldest go
    when the journal is opened. Several processes may use one journal at once.

    Raises `UsageError` when the database cannot be opened. After that it never raises into a run: while the database
    cannot be written, rows wait. What a killed process loses is its last tenth of a second.

    >>> from flujo_aros.pipeline.runner import Runner
    >>> from flujo_aros.pipeline.step import Call
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Journal(f"{folder}/runs.sqlite") as journal:
    ...     _ = Runner(Call("count", function=len), observers=[journal]).run_sync("four")
    ...     [(run.pipeline, run.status) for run in journal.runs()]
    [('count', 'completed')]
    """

    def __init__(
        self,
        url: str | Path = DEFAULT,
        *,
        secrets: Iterable[str] = (),
        content: bool = True,
        max_text: int = 100_000,
        max_runs: int | None = 10_000,
        create: bool = True,
    ) -> None:
        self.url = url
        self._engine: Engine = open_database(url, create=create)
        self._engine_pid = os.getpid()
        self._mask = Mask.of_environment(secrets)
        self._writer = Writer(self._engine_here, self._mask)
        self._ids = count(self._first_id() if create else time.time_ns())
        self._recorder = Recorder(partial(next, self._ids), content=content, max_text=max_text)
        if max_runs is not None and create:
            self.prune(max_runs=max_runs)

    def _first_id(self) -> int:
        """The first id for rows of this process: larger than all existing ones, even if the clock went back, because a
        run is ordered by ids.
        """
        now = time.time_ns()
        with self._reading() as connection:
            newest = connection.execute(select(func.max(RUNS.c.started))).scalar() or 0.0
            if newest * 1e9 <= now:
                return now
            ahead = newest - now / 1e9
            words = "the clock went back: the newest run in the journal %s starts %.0f s in the future"
            _log.warning(words, shown(self._engine.url), ahead)
            largest = (connection.execute(select(func.max(table.c.id))).scalar() or 0 for table in WITH_IDS)
            return max(now, int(newest * 1e9), *largest) + 1

    def __call__(self, event: Event, /) -> None:
        """Receive one event."""
        self._mask.hear(event)
        if isinstance(event, RunStarted) and event.resumed:
            self._resume(event)
        for record in self._recorder.records(event):
            ended = isinstance(record, JournalRun) and record.seconds is not None
            self._writer.put(record, soon=ended)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until every event so far is in the database; False if that took too long."""
        return self._writer.flush(timeout)

    def close(self) -> None:
        """Write what is left and close the database. This also happens at the end of the process."""
        self._writer.close()
        self._engine.dispose()

    @property
    def dropped(self) -> int:
        """The number of rows that were lost because the database could not be written for too long."""
        return self._writer.dropped

    def runs(
        self,
        *,
        limit: int | None = 20,
        since: datetime | None = None,
        status: str | None = None,
        pipeline: str | None = None,
    ) -> list[JournalRun]:
        """The runs, newest first."""
        with self._reading() as connection:
            return queries.runs(connection, limit=limit, since=since, status=status, pipeline=pipeline)

    def story(self, run: str = "last") -> Story:
        """Everything recorded about one run. `run` is its id, the beginning of an id, or `last`.

        Raises `UsageError` when there is no such run, or more than one.
        """
        with self._reading() as connection:
            return queries.story(connection, run)

    def health(
        self,
        *,
        since: datetime,
        until: datetime | None = None,
        step: str | None = None,
        model: str | None = None,
        trend: int = 0,
    ) -> Health:
        """Statistics of a period by step, model, repair and stage, with recommendations. `trend` divides the period
        into that many equal intervals.
        """
        span = Span(since, until or datetime.now(UTC), step, model)
        with self._reading() as connection:
            return diagnose(connection, span, trend=trend)

    def agreements(self, *, limit: int = 1_000) -> list[tuple[str, str, JournalNote]]:
        """The latest results of agreement steps, newest first, each with its run and the name of its step."""
        with self._reading() as connection:
            return queries.agreements(connection, limit=limit)

    def evidence(self, *, since: datetime | None = None) -> Evidence:
        """The record of each stage for each model and contract, which a ladder with `adaptive` uses."""
        with self._reading() as connection:
            return queries.evidence(connection, since=since)

    def prune(self, *, older_than: timedelta | None = None, max_runs: int | None = None) -> int:
        """Remove runs older than that, and all but the newest `max_runs`. Returns how many were removed."""
        with self._reading(change=True) as connection:
            return queries.prune(connection, older_than=older_than, max_runs=max_runs)

    @contextmanager
    def _reading(self, *, change: bool = False) -> Generator[Connection]:
        """A connection, after every event so far is written. Raises `UsageError` for errors of the database."""
        self.flush()
        engine = self._engine_here()
        try:
            with engine.begin() if change else engine.connect() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise UsageError(f"the journal {shown(engine.url)} cannot be read: {cause(error)}") from error

    def _engine_here(self) -> Engine:
        if os.getpid() != self._engine_pid:  # a forked child must not use the connections of its parent
            self._engine.dispose(close=False)
            self._engine_pid = os.getpid()
        return self._engine

    @property
    def engine(self) -> Engine:
        """The database, for queries of your own."""
        return self._engine_here()

    def _resume(self, event: RunStarted) -> None:
        """Close what a run left open when it paused or its process ended.

        A recovered run reports its unsettled steps into their existing rows, so that nothing is recorded twice. What
        had happened inside these steps is removed, because it happens again, with recorded calls answered from the
        record.
        """
        if event.settled is not None:
            try:
                with self._reading(change=True) as connection:
                    left = queries.reopen(connection, event.run_id, {self._mask(name) for name in event.settled})
                self._recorder.recover(event.run_id, left, event.settled)
            except UsageError as error:
                _log.warning("%s; steps of run %s may be in it twice", error, event.run_id)
        self._writer.put(Left(event.run_id, next(self._ids)))


def is_off(named: str | None) -> bool:
    """Whether the settings turn the journal off."""
    return named is not None and named.strip().lower() in ("off", "none", "false", "0")


def open_journal(named: str | None, *, secrets: Sequence[str] = (), create: bool = True) -> Journal | None:
    """The journal of the settings: None for `off`, the default file if they name none. If the default file cannot be
    written, for example in a read-only folder, there is no journal and a warning is logged. Raises `UsageError` if a
    journal that was named cannot be opened.

    >>> open_journal("off") is None
    True
    """
    if is_off(named):
        return None
    try:
        return Journal(named or DEFAULT, secrets=secrets, create=create)
    except UsageError as error:
        if named or not create:
            raise
        _log.warning("%s; AROS_JOURNAL=off turns it off", error)
        return None
