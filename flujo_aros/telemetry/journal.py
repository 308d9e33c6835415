"""The journal: every run, step, call, reading and repair in a database, as it happens."""

from __future__ import annotations

import json
import logging
import os
import socket
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, cast

from pydantic import BaseModel
from sqlalchemy import Connection, Engine, func, select
from sqlalchemy.exc import SQLAlchemyError

from flujo_aros.contract import Contract, written_as
from flujo_aros.errors import UsageError
from flujo_aros.events import (
    AgentFinished,
    AgentStarted,
    AskFinished,
    AskStarted,
    Event,
    FunctionCalled,
    ReadFinished,
    RunFinished,
    RunStarted,
    StageFinished,
    StagePassed,
    StageStarted,
    StepFinished,
    StepNoted,
    StepStarted,
)
from flujo_aros.recovery import Evidence, Ladder, ladder_for
from flujo_aros.settings import current_settings
from flujo_aros.telemetry import told
from flujo_aros.telemetry.diagnosis import Span, diagnose
from flujo_aros.telemetry.health import Health
from flujo_aros.telemetry.masking import Mask
from flujo_aros.telemetry.opening import DEFAULT, open_database, said, shown
from flujo_aros.telemetry.records import JournalNote, JournalRun, Story
from flujo_aros.telemetry.tables import LARGEST, RUNS, WITH_IDS
from flujo_aros.telemetry.where import Where, own_scope, step_place, steps_around, value_place, where
from flujo_aros.telemetry.words import value_words
from flujo_aros.telemetry.writing import LEFT, Row, Writer
from flujo_aros.usage import Usage

_AGENT_STATUS: Final = {"accepted": "completed", "degraded": "degraded", "cancelled": "cancelled"}
_MOST_NAME: Final = 200
_HOST: Final = socket.gethostname()
_log: Final = logging.getLogger("flujo_aros.journal")


class Journal:
    """Keeps what happens in a database: give it to a runner, or to `observing`, as an observer.

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
        self._content = content
        self._max_text = max_text
        self._ids = count(self._first_id() if create else time.time_ns())
        self._rows: dict[int, Row] = {}
        self._asked: dict[tuple[int, str], tuple[str, str | None]] = {}
        self._read: dict[int, str | None] = {}
        self._contracts: set[str] = set()
        self._began: dict[int, float] = {}
        """When stages began, by a clock that never goes back."""
        self._explained: set[int] = set()
        """Open steps whose value is told by their readings, or by the steps inside."""
        self._inputs: dict[int, str] = {}
        self._recovered: dict[tuple[str, str], tuple[int, bool]] = {}
        """The rows of steps that were under way when the process of a durable run ended, by run and name; and whether
        steps inside are settled, which have their own values."""
        # Live events are not kept: what they come to is in the reading.
        self._takes: Mapping[type[Event], Callable[[Any], None]] = {
            RunStarted: self._run_started,
            RunFinished: self._run_finished,
            AgentStarted: self._agent_started,
            AgentFinished: self._agent_finished,
            StepStarted: self._step_started,
            StepFinished: self._step_finished,
            FunctionCalled: self._function_called,
            StepNoted: self._step_noted,
            StageStarted: self._stage_started,
            StageFinished: self._stage_finished,
            StagePassed: self._stage_passed,
            AskStarted: self._ask_started,
            AskFinished: self._ask_finished,
            ReadFinished: self._read_finished,
        }
        if max_runs is not None and create:
            self.prune(max_runs=max_runs)

    def _first_id(self) -> int:
        """The id that rows of this process begin with: later than all that are there, also if the clock has gone back.

        Ids are what a story is ordered by.
        """
        now = time.time_ns()
        with self._reading() as connection:
            newest = connection.execute(select(func.max(RUNS.c.started))).scalar() or 0.0
            if newest * 1e9 <= now:
                return now
            ahead = newest - now / 1e9
            words = "the clock has gone back: the newest run in the journal %s begins %.0f s from now"
            _log.warning(words, shown(self._engine.url), ahead)
            largest = (connection.execute(select(func.max(table.c.id))).scalar() or 0 for table in WITH_IDS)
            return max(now, int(newest * 1e9), *largest) + 1

    def __call__(self, event: Event, /) -> None:
        """Take one event."""
        self._mask.hear(event)
        take = self._takes.get(type(event))
        if take is not None:
            take(event)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until all that was told so far is in the database; False if it could not be written in time."""
        return self._writer.flush(timeout)

    def close(self) -> None:
        """Write what is left and let go of the database. Also done when the process ends."""
        self._writer.close()
        self._engine.dispose()

    @property
    def dropped(self) -> int:
        """How many rows were lost because the database could not be written for too long."""
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
            return told.runs(connection, limit=limit, since=since, status=status, pipeline=pipeline)

    def story(self, run: str = "last") -> Story:
        """All of one run. `run` is its id, the beginning of one, or `last`.

        Raises `UsageError` when there is no such run, or more than one.
        """
        with self._reading() as connection:
            return told.story(connection, run)

    def health(
        self,
        *,
        since: datetime,
        until: datetime | None = None,
        step: str | None = None,
        model: str | None = None,
        trend: int = 0,
    ) -> Health:
        """What happened in a stretch of time, by step, model, repair and stage, and what to do about it.

        `trend` cuts the stretch into so many pieces of equal length.
        """
        span = Span(since, until or datetime.now(UTC), step, model)
        with self._reading() as connection:
            return diagnose(connection, span, trend=trend)

    def agreements(self, *, limit: int = 1_000) -> list[tuple[str, str, JournalNote]]:
        """What agreement steps have come to lately, newest first, each with its run and the name of its step."""
        with self._reading() as connection:
            return told.agreements(connection, limit=limit)

    def evidence(self, *, since: datetime | None = None) -> Evidence:
        """What each stage has achieved for each model and contract: what a ladder with `adaptive` goes by."""
        with self._reading() as connection:
            return told.evidence(connection, since=since)

    def prune(self, *, older_than: timedelta | None = None, max_runs: int | None = None) -> int:
        """Remove runs that started longer ago than that, and all but the newest `max_runs`. Says how many went."""
        with self._reading(change=True) as connection:
            return told.prune(connection, older_than=older_than, max_runs=max_runs)

    @contextmanager
    def _reading(self, *, change: bool = False) -> Generator[Connection]:
        """A connection, once all that was told is written. What the database refuses is one `UsageError`."""
        self.flush()
        engine = self._engine_here()
        try:
            with engine.begin() if change else engine.connect() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise UsageError(f"the journal {shown(engine.url)} cannot be read: {said(error)}") from error

    def _engine_here(self) -> Engine:
        if os.getpid() != self._engine_pid:  # a forked child must not use the connections of its parent
            self._engine.dispose(close=False)
            self._engine_pid = os.getpid()
        return self._engine

    @property
    def engine(self) -> Engine:
        """The database, for questions of your own."""
        return self._engine_here()

    def _run_started(self, event: RunStarted) -> None:
        if event.resumed:
            if event.settled is not None:
                self._recover(event.run_id, event.settled)
            self._writer.put(LEFT, (event.run_id,), {"run_id": event.run_id, "before": next(self._ids)})
        self._start_run(event.run_id, event.pipeline, "pipeline")

    def _recover(self, run_id: str, settled: frozenset[str]) -> None:
        """Let a recovered run report its unsettled steps into the rows that they have already: nothing is there twice.

        What had happened inside these steps goes, as it happens again, with recorded calls answered from the record.
        """
        try:
            with self._reading(change=True) as connection:
                left = told.reopen(connection, run_id, {self._mask(name) for name in settled})
        except UsageError as error:
            _log.warning("%s; steps of run %s may be in it twice", error, run_id)
            return
        for name, own in left.items():
            self._recovered[run_id, name] = (own, any(each.startswith(f"{name}/") for each in settled))

    def _run_finished(self, event: RunFinished) -> None:
        self._end_run(event.status, event.usage, event.seconds)

    def _agent_started(self, event: AgentStarted) -> None:
        if own_scope() == _scope_of_run(where()):  # else it is part of what is kept already
            self._start_run(event.run_id, event.name or "agent", "agent")

    def _agent_finished(self, event: AgentFinished) -> None:
        if own_scope() == _scope_of_run(where()):
            self._end_run(_AGENT_STATUS.get(event.outcome, "failed"), event.usage, event.seconds)
        self._forget(own_scope())

    def _step_started(self, event: StepStarted) -> None:
        around, scope = where(), own_scope()
        run = self._rows.get(_scope_of_run(around))
        self._explained.update(each.id for each in steps_around() if each.id != scope)
        recovered, explained = self._recovered.pop((event.run_id, event.name), (None, False))
        if explained:
            self._explained.add(scope)
        self._rows[scope] = row = {
            "run_id": event.run_id,
            "id": recovered or next(self._ids),
            "parent_id": self._parent_id(scope),
            "pipeline": None if run is None else run["pipeline"],
            "name": event.name,
            "place": _short(step_place(event.name)),
            "kind": event.kind,
            "status": "running",
            "trust": None,
            "input_trust": None,
            "reason": None,
            "error": None,
            "attempts": None,
            "started": time.time(),
            "seconds": None,
            **_used(Usage()),
        }
        self._put("aros_steps", row)

    def _step_finished(self, event: StepFinished) -> None:
        scope = own_scope()
        row = self._rows.pop(scope, None)
        self._forget(scope)
        if row is None:
            return
        row = {
            **row,
            "status": event.status,
            "trust": event.trust,
            "input_trust": event.input_trust,
            "reason": event.reason,
            "error": self._clipped(event.error),
            "attempts": event.attempts,
            "seconds": event.seconds,
            **_used(event.usage),
        }
        self._put("aros_steps", row)
        given = self._inputs.pop(scope, None)
        if scope in self._explained:
            self._explained.discard(scope)
        elif self._content and (given is not None or event.output is not None):
            output = None if event.output is None else self._text(value_words(event.output))
            self._put("aros_values", {"run_id": row["run_id"], "id": row["id"], "input": given, "output": output})

    def _function_called(self, event: FunctionCalled) -> None:
        scope = own_scope()
        row = self._rows.get(scope)
        if row is None or not self._content:
            return
        self._inputs[scope] = given = self._text(value_words(event.input))
        self._put("aros_values", {"run_id": row["run_id"], "id": row["id"], "input": given, "output": None})

    def _step_noted(self, event: StepNoted) -> None:
        around = where()
        if around.run_id is not None and self._content:
            data = json.dumps(event.data, ensure_ascii=False, default=str)
            self._put("aros_notes", {**self._own(around, ""), "note": event.note, "data": data})

    def _stage_started(self, event: StageStarted) -> None:
        row = self._row_of_stage(event.stage, because=event.reason, outcome="running")
        if row is not None:
            self._rows[own_scope()] = row
            self._began[own_scope()] = time.perf_counter()
            self._put("aros_stages", row)

    def _stage_finished(self, event: StageFinished) -> None:
        row, began = self._rows.pop(own_scope(), None), self._began.pop(own_scope(), None)
        if row is not None and began is not None:
            ended = {"outcome": event.outcome, "reason": event.reason, "calls": event.calls}
            self._put("aros_stages", {**row, **ended, "seconds": time.perf_counter() - began})

    def _stage_passed(self, event: StagePassed) -> None:
        row = self._row_of_stage(event.stage, outcome="passed", why=event.why, seconds=0.0)
        if row is not None:
            self._put("aros_stages", row)

    def _ask_started(self, event: AskStarted) -> None:
        around = where()
        self._asked[around.owner, event.stage] = (event.model, None)
        if around.run_id is None:
            return
        row = {
            **self._own(around, event.model),
            "stage": event.stage,
            "attempt": event.attempt,
            "constrained": event.constrained,
            "started": time.time(),
            "seconds": None,
            **_used(Usage()),
            "finish_reason": None,
            "fault": None,
            "prompt": self._text(event.prompt),
        }
        self._rows[own_scope()] = row
        self._put("aros_asks", row)

    def _ask_finished(self, event: AskFinished) -> None:
        asked = (where().owner, event.stage)
        if asked in self._asked:  # else its agent was cancelled, and has ended before its call
            self._asked[asked] = (event.model, event.finish_reason)
        row = self._rows.pop(own_scope(), None)
        if row is None:
            return
        ended = {
            "model": _short(event.model),
            "seconds": event.seconds,
            **_used(event.usage),
            "finish_reason": event.finish_reason,
            "fault": self._clipped(event.fault),
        }
        self._put("aros_asks", {**row, **ended})

    def _read_finished(self, event: ReadFinished) -> None:
        around = where()
        if around.run_id is None:
            return
        self._read[around.owner] = event.schema_hash
        self._explained.update(each.id for each in (around.step,) if each is not None)
        model, finish = self._asked.get((around.owner, event.stage), ("", None))
        reading = {
            **self._own(around, model),
            "stage": event.stage,
            "outcome": event.outcome,
            "trust": event.trust,
            "reason": event.reason,
            "schema_hash": event.schema_hash,
            "finish_reason": finish,
            "issues": self._issues(event),
            "read_with": _read_with(event),
            "text": self._text(event.text),
            "chars": len(event.text),
            "at": time.time(),
        }
        self._put("aros_readings", reading)
        self._put_repairs(event, reading)
        self._put_contract(event)

    def _put_repairs(self, event: ReadFinished, reading: Row) -> None:
        same = {name: reading[name] for name in ("run_id", "step_id", "step_place", "model", "at")}
        known: set[tuple[str, str]] = set()
        for repair in event.repairs:
            place = _short(value_place(repair.path))
            row = {
                **same,
                "again": (repair.code, place) in known,
                "id": next(self._ids),
                "reading_id": reading["id"],
                "code": repair.code,
                "risk": repair.risk.name.lower(),
                "path": repair.path,
                "place": place,
                "start": repair.span[0],
                "stop": repair.span[1],
                "before": self._text(repair.before),
                "after": self._text(repair.after),
            }
            known.add((repair.code, place))
            self._put("aros_repairs", row)

    def _put_contract(self, event: ReadFinished) -> None:
        known = event.schema_hash
        if known is None or known in self._contracts or event.contract is None:
            return
        self._contracts.add(known)
        contract = cast("Contract[Any]", event.contract)
        spec = {"mode": contract.mode, "schema": contract.json_schema, **contract.where()}
        row = {"schema_hash": known, "spec": json.dumps(spec, ensure_ascii=False)}
        self._writer.put("aros_contracts", (known,), row)

    def _start_run(self, run_id: str, pipeline: str, kind: str) -> None:
        self._rows[own_scope()] = row = {
            "run_id": run_id,
            "pipeline": _short(pipeline),
            "kind": kind,
            "status": "running",
            "started": time.time(),
            "seconds": None,
            **_used(Usage()),
            "host": _HOST,
            "pid": os.getpid(),
        }
        self._writer.put("aros_runs", (run_id,), row)

    def _end_run(self, status: str, usage: Usage, seconds: float) -> None:
        row = self._rows.pop(own_scope(), None)
        if row is not None:
            for key in [key for key in self._recovered if key[0] == row["run_id"]]:
                del self._recovered[key]
            row = {**row, "status": status, "seconds": seconds, **_used(usage)}
            self._writer.put("aros_runs", (row["run_id"],), row, soon=True)

    def _row_of_stage(self, stage: str, **known: Any) -> Row | None:
        around = where()
        if around.run_id is None:
            return None
        empty = {"because": None, "reason": None, "calls": 0, "why": "", "seconds": None}
        model = self._asked.get((around.owner, "first"), ("", None))[0]
        own = {**self._own(around, model), "stage": stage, "schema_hash": self._read.get(around.owner)}
        return {**own, **empty, "started": time.time(), **known}

    def _put(self, table: str, row: Row) -> None:
        self._writer.put(table, (row["run_id"], row["id"]), dict(row))

    def _own(self, around: Where, model: str) -> Row:
        """What every row of a step begins with."""
        step = self._rows.get(around.step.id) if around.step else None
        belongs = {"step_id": step["id"], "step_place": step["place"]} if step else {"step_id": 0, "step_place": ""}
        return {"run_id": around.run_id, "id": next(self._ids), **belongs, "model": _short(model)}

    def _parent_id(self, own: int) -> int:
        parents = [self._rows[scope.id] for scope in steps_around() if scope.id != own and scope.id in self._rows]
        return cast("int", parents[-1]["id"]) if parents else 0

    def _forget(self, owner: int) -> None:
        for key in [key for key in self._asked if key[0] == owner]:
            del self._asked[key]
        self._read.pop(owner, None)

    def _issues(self, event: ReadFinished) -> str:
        if not self._content:
            return json.dumps([{"path": "", "code": issue.code, "message": ""} for issue in event.issues])
        return json.dumps([issue.to_dict() for issue in event.issues], ensure_ascii=False)

    def _text(self, text: str) -> str:
        return text[: self._max_text] if self._content else ""

    def _clipped(self, text: str | None) -> str | None:
        return None if text is None else text[: self._max_text]


def _read_with(event: ReadFinished) -> str | None:
    """What a replay needs beside the schema: checks, options of the contract and the ladder, where they are no default.

    Checks are there as far as they can be written down: functions are not in the journal.
    """
    if event.contract is None:
        return None
    contract, found = cast("Contract[Any]", event.contract), dict[str, Any]()
    if contract.checks:
        found["checks"] = [written_as(check) for check in contract.checks]
    if options := contract.options():
        found["options"] = options
    ladder = cast("Ladder | None", event.ladder)
    if ladder is not None and ladder != ladder_for(contract, current_settings()):
        found["ladder"] = told = _options(ladder)
        told["stages"] = [{"stage": stage.stage, **_options(stage)} for stage in ladder.stages]
    return json.dumps(found, ensure_ascii=False) if found else None


def _options(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(mode="json", exclude_defaults=True)


def _short(name: str) -> str:
    """A name as it may stand in an index: PostgreSQL refuses a row whose indexed texts are too long together."""
    return name[:_MOST_NAME]


def _scope_of_run(around: Where) -> int:
    return around.run.id if around.run else 0


def _used(usage: Usage) -> dict[str, Any]:
    return {
        "requests": usage.requests,
        "input_tokens": min(usage.input_tokens, LARGEST),
        "output_tokens": min(usage.output_tokens, LARGEST),
        "cost": usage.cost,
        "unmeasured_requests": usage.unmeasured_requests,
    }


def is_off(named: str | None) -> bool:
    """Whether the settings say that there is to be no journal."""
    return named is not None and named.strip().lower() in ("off", "none", "false", "0")


def open_journal(named: str | None, *, secrets: Sequence[str] = (), create: bool = True) -> Journal | None:
    """The journal that the settings name: None for `off`, the default file when they name none.

    A default file that cannot be written, as in a folder that is read-only, is no journal, and logged as a warning.
    Raises `UsageError` when one that was named cannot be opened.

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
        _log.warning("%s; AROS_JOURNAL=off does without", error)
        return None
