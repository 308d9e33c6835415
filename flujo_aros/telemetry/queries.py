"""The queries of the journal. They return its records."""

from __future__ import annotations

import os
import socket
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, Row, Select, and_, case, delete, func, literal, select, true

from flujo_aros.errors import UsageError
from flujo_aros.recovery import Achieved, Evidence
from flujo_aros.telemetry.records import (
    ASKS,
    CONTRACTS,
    NOTES,
    OF_A_RUN,
    READINGS,
    REPAIRS,
    RUNS,
    STAGES,
    STEPS,
    TABLES,
    VALUES,
    Chapter,
    JournalAsk,
    JournalNote,
    JournalReading,
    JournalRepair,
    JournalRun,
    JournalStage,
    JournalStep,
    JournalValue,
    RecordT,
    Story,
    from_row,
)

T = TypeVar("T")

_SHOWN_MATCHES: Final = 5
_PAUSED: Final = ("paused", "resumed")


def runs(
    connection: Connection,
    *,
    limit: int | None = None,
    since: datetime | None = None,
    status: str | None = None,
    pipeline: str | None = None,
) -> list[JournalRun]:
    """The runs, newest first."""
    query = _counted().order_by(RUNS.c.started.desc(), RUNS.c.run_id).limit(limit)
    if since is not None:
        query = query.where(RUNS.c.started >= since.timestamp())
    if status in ("lost", "running"):  # distinguished below, by their processes
        query = query.where(RUNS.c.status == "running")
    elif status is not None:
        query = query.where(RUNS.c.status == status)
    if pipeline is not None:
        query = query.where(RUNS.c.pipeline == pipeline)
    found = [_run(row) for row in connection.execute(query)]
    return [run for run in found if status is None or run.status == status]


def find(connection: Connection, run: str) -> str:
    """The id of the run with this id or prefix. Raises `UsageError` if no run matches, or more than one."""
    newest = select(RUNS.c.run_id).order_by(RUNS.c.started.desc())
    if run == "last":
        found = connection.execute(newest.limit(1)).scalars().all()
        if not found:
            raise UsageError("the journal is empty: run a blueprint first")
        return str(found[0])
    begins = RUNS.c.run_id.startswith(run, autoescape=True)
    found = connection.execute(newest.where(begins).limit(_SHOWN_MATCHES + 1)).scalars().all()
    if run in found or len(found) == 1:
        return run if run in found else str(found[0])
    if not found:
        raise UsageError(f"there is no run {run!r} in the journal; `aros runs` lists them")
    several = ", ".join(found[:_SHOWN_MATCHES])
    raise UsageError(f"{run!r} matches more than one run: {several}; give more characters")


def story(connection: Connection, run: str) -> Story:
    """The whole story of one run, in the order of events."""
    run_id = find(connection, run)
    head = _run(connection.execute(_counted().where(RUNS.c.run_id == run_id)).one())
    repairs: dict[int, list[JournalRepair]] = defaultdict(list)
    for repair in _records(connection, JournalRepair, run_id):
        repairs[repair.reading_id].append(repair)
    values = {value.id: value for value in _records(connection, JournalValue, run_id)}
    steps = [_step(step, head, values.get(step.id)) for step in _records(connection, JournalStep, run_id)]
    stages = _by_step(_records(connection, JournalStage, run_id))
    asks = _by_step(_records(connection, JournalAsk, run_id))
    readings = _by_step(
        replace(reading, repairs=tuple(repairs[reading.id])) for reading in _records(connection, JournalReading, run_id)
    )
    notes = _by_step(note for note in _records(connection, JournalNote, run_id) if note.data)
    gone_on = _gone_on(steps)

    def chapter(step: JournalStep | None, keys: Iterable[int]) -> Chapter:
        return Chapter(step, _of(stages, keys), _of(asks, keys), _of(readings, keys), _of(notes, keys))

    def within(step: JournalStep) -> Chapter:
        before = [old for old, new in gone_on.items() if new == step.id]
        return chapter(replace(step, parent_id=gone_on.get(step.parent_id, step.parent_id)), (*before, step.id))

    outside = [chapter(None, [0])] if stages[0] or asks[0] or readings[0] else []
    chapters = (*outside, *(within(step) for step in steps if step.id not in gone_on))
    hashes = {reading.schema_hash for each in chapters for reading in each.readings if reading.schema_hash}
    return Story(head, chapters, _contracts(connection, hashes))


def agreements(connection: Connection, *, limit: int) -> list[tuple[str, str, JournalNote]]:
    """The latest results of agreement steps, newest first, each with its run and step name."""
    query = select(NOTES).where(NOTES.c.note == "agreement").order_by(NOTES.c.id.desc()).limit(limit)
    found = (from_row(JournalNote, row) for row in connection.execute(query))
    return [(note.run_id, note.step_place, note) for note in found if note.data]


def _of(parts: Mapping[int, list[T]], steps: Iterable[int]) -> tuple[T, ...]:
    return tuple(part for step in steps for part in parts.get(step, ()))


def _gone_on(steps: Sequence[JournalStep]) -> dict[int, int]:
    """The steps that paused and have continued since, each with the row that continues it."""
    newest = {step.name: step.id for step in steps}
    return {step.id: newest[step.name] for step in steps if step.status == "resumed" and newest[step.name] != step.id}


def evidence(connection: Connection, *, since: datetime | None = None) -> Evidence:
    """The record of each stage, by model and contract."""
    when = true() if since is None else STAGES.c.started >= since.timestamp()
    keys = (STAGES.c.model, STAGES.c.schema_hash, STAGES.c.stage)
    saved = func.sum(case((STAGES.c.outcome == "accepted", 1), else_=0))
    ran = and_(when, STAGES.c.outcome.not_in(("passed", "running", "interrupted")), STAGES.c.schema_hash.is_not(None))
    query = select(*keys, func.count(), saved, func.sum(STAGES.c.calls)).where(ran).group_by(*keys).order_by(*keys)
    rows = connection.execute(query)
    return Evidence.of(
        (model or "", schema, stage, Achieved(tries, int(successes), int(calls or 0)))
        for model, schema, stage, tries, successes, calls in rows
    )


def reopen(connection: Connection, run_id: str, settled: Collection[str]) -> dict[str, int]:
    """The ids of the unsettled steps of a run, by name, after removing what had happened inside them. Paused steps are
    left alone, because they continue in another row (see `_gone_on`).
    """
    query = select(STEPS.c.name, STEPS.c.id).where(STEPS.c.run_id == run_id, STEPS.c.status.not_in(_PAUSED))
    found = connection.execute(query.order_by(STEPS.c.id))
    left = {str(name): int(own) for name, own in found if name not in settled}
    for batch in _batches(sorted(left.values()), 500):
        for table in (REPAIRS, READINGS, ASKS, STAGES, NOTES):
            connection.execute(delete(table).where(table.c.run_id == run_id, table.c.step_id.in_(batch)))
        connection.execute(delete(VALUES).where(VALUES.c.run_id == run_id, VALUES.c.id.in_(batch)))
    return left


def prune(connection: Connection, *, older_than: timedelta | None = None, max_runs: int | None = None) -> int:
    """Remove old runs. Returns how many."""
    gone: set[str] = set()
    if older_than is not None:
        before = (datetime.now(UTC) - older_than).timestamp()
        gone.update(connection.execute(select(RUNS.c.run_id).where(RUNS.c.started < before)).scalars())
    if max_runs is not None:
        too_many = select(RUNS.c.run_id).order_by(RUNS.c.started.desc()).limit(2**31 - 1).offset(max_runs)
        gone.update(connection.execute(too_many).scalars())
    for table in OF_A_RUN:
        for batch in _batches(sorted(gone), 500):
            connection.execute(delete(table).where(table.c.run_id.in_(batch)))
    return len(gone)


def _batches(values: list[T], size: int) -> Iterable[list[T]]:
    return (values[start : start + size] for start in range(0, len(values), size))


def _counted() -> Select[Any]:
    """Runs with the number of their steps and repairs."""
    steps = select(func.count(STEPS.c.name.distinct())).where(STEPS.c.run_id == RUNS.c.run_id).scalar_subquery()
    repairs = select(func.count()).where(REPAIRS.c.run_id == RUNS.c.run_id).scalar_subquery()
    return select(RUNS, steps.label("steps"), repairs.label("repairs"))


def _records(connection: Connection, kind: type[RecordT], run_id: str) -> Iterator[RecordT]:
    """The records of a run, in the order in which they happened."""
    table = TABLES[kind]
    for row in connection.execute(select(table).where(table.c.run_id == literal(run_id)).order_by(table.c.id)):
        yield from_row(kind, row)


def _by_step(records: Iterable[T]) -> defaultdict[int, list[T]]:
    found: defaultdict[int, list[T]] = defaultdict(list)
    for record in records:
        found[getattr(record, "step_id", 0)].append(record)
    return found


def _contracts(connection: Connection, hashes: set[str]) -> dict[str, str]:
    query = select(CONTRACTS.c.schema_hash, CONTRACTS.c.spec).where(CONTRACTS.c.schema_hash.in_(sorted(hashes)))
    return {known: spec or "" for known, spec in connection.execute(query)}


def _run(row: Row[Any]) -> JournalRun:
    run = from_row(JournalRun, row, steps=row.steps, repairs=row.repairs)
    return replace(run, status="lost") if run.status == "running" and is_gone(run.host, run.pid) else run


def is_gone(host: str | None, pid: int | None) -> bool:
    """Whether the process of a run is known to have ended, which can be seen only on its own host."""
    if not pid or host != socket.gethostname():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _step(step: JournalStep, run: JournalRun, value: JournalValue | None) -> JournalStep:
    status = "lost" if step.status == "running" and run.status != "running" else step.status
    if value is None:
        return replace(step, status=status)
    return replace(step, status=status, input=value.input, output=value.output)
