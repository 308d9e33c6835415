"""What the journal tells: its rows as typed records."""

from __future__ import annotations

import json
import os
import socket
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, Row, Select, Table, and_, case, delete, func, literal, select, true

from flujo_aros.errors import UsageError
from flujo_aros.outcome import Issue
from flujo_aros.recovery import Achieved, Evidence
from flujo_aros.telemetry.records import (
    Chapter,
    JournalAsk,
    JournalNote,
    JournalReading,
    JournalRepair,
    JournalRun,
    JournalStage,
    JournalStep,
    Story,
)
from flujo_aros.telemetry.tables import ASKS, CONTRACTS, NOTES, OF_A_RUN, READINGS, REPAIRS, RUNS, STAGES, STEPS, VALUES
from flujo_aros.usage import Usage

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
    if status in ("lost", "running"):  # only who looks can tell them apart
        query = query.where(RUNS.c.status == "running")
    elif status is not None:
        query = query.where(RUNS.c.status == status)
    if pipeline is not None:
        query = query.where(RUNS.c.pipeline == pipeline)
    found = [_run(row) for row in connection.execute(query)]
    return [run for run in found if status is None or run.status == status]


def find(connection: Connection, run: str) -> str:
    """The id of the run that this is, or begins. Raises `UsageError` when none does, or more than one."""
    newest = select(RUNS.c.run_id).order_by(RUNS.c.started.desc())
    if run == "last":
        found = connection.execute(newest.limit(1)).scalars().all()
        if not found:
            raise UsageError("the journal is empty: run something first")
        return str(found[0])
    begins = RUNS.c.run_id.startswith(run, autoescape=True)
    found = connection.execute(newest.where(begins).limit(_SHOWN_MATCHES + 1)).scalars().all()
    if run in found or len(found) == 1:
        return run if run in found else str(found[0])
    if not found:
        raise UsageError(f"there is no run {run!r} in the journal; `aros runs` lists them")
    several = ", ".join(found[:_SHOWN_MATCHES])
    raise UsageError(f"{run!r} is the beginning of more than one run: {several}; type more of it")


def story(connection: Connection, run: str) -> Story:
    """All of one run, in the order in which it happened."""
    run_id = find(connection, run)
    head = _run(connection.execute(_counted().where(RUNS.c.run_id == run_id)).one())
    repairs: dict[int, list[JournalRepair]] = defaultdict(list)
    for row in _rows(connection, REPAIRS, run_id):
        repairs[row.reading_id].append(_repair(row))
    values = {row.id: row for row in _rows(connection, VALUES, run_id)}
    steps = [_step(row, head, values.get(row.id)) for row in _rows(connection, STEPS, run_id)]
    stages = _by_step(_stage(row) for row in _rows(connection, STAGES, run_id))
    asks = _by_step(_ask(row) for row in _rows(connection, ASKS, run_id))
    readings = _by_step(_reading(row, repairs) for row in _rows(connection, READINGS, run_id))
    notes = _by_step(_notes(connection, run_id))
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
    """What agreement steps have noted lately, newest first, each with its run and the name of its step."""
    if not connection.dialect.has_table(connection, NOTES.name):
        return []
    query = select(NOTES).where(NOTES.c.note == "agreement").order_by(NOTES.c.id.desc()).limit(limit)
    found = ((row.run_id, row.step_place or "", _note(row)) for row in connection.execute(query))
    return [(run_id, place, note) for run_id, place, note in found if note is not None]


def _notes(connection: Connection, run_id: str) -> Iterable[JournalNote]:
    if not connection.dialect.has_table(connection, NOTES.name):  # a journal of before they were kept
        return
    for row in _rows(connection, NOTES, run_id):
        note = _note(row)
        if note is not None:
            yield note


def _note(row: Row[Any]) -> JournalNote | None:
    try:
        data = json.loads(row.data or "")
    except ValueError:  # a masked secret can have taken a quote along
        return None
    return JournalNote(id=row.id, step_id=row.step_id, note=row.note, data=data)


def _of(parts: Mapping[int, list[T]], steps: Iterable[int]) -> tuple[T, ...]:
    return tuple(part for step in steps for part in parts.get(step, ()))


def _gone_on(steps: Sequence[JournalStep]) -> dict[int, int]:
    """The steps that had paused and have gone on since, each with the step of the same name that it went on as."""
    newest = {step.name: step.id for step in steps}
    return {step.id: newest[step.name] for step in steps if step.status == "resumed" and newest[step.name] != step.id}


def evidence(connection: Connection, *, since: datetime | None = None) -> Evidence:
    """What stages have achieved, by model and contract."""
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
    """The ids of the steps of a run that are not settled, by name, once what had happened inside them is removed.

    Steps that had paused are left as they are: they go on as another row (see `_gone_on`).
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
    """Remove old runs, and say how many."""
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


def _rows(connection: Connection, table: Table, run_id: str) -> Iterable[Row[Any]]:
    return connection.execute(select(table).where(table.c.run_id == literal(run_id)).order_by(table.c.id))


def _by_step(records: Iterable[T]) -> defaultdict[int, list[T]]:
    found: defaultdict[int, list[T]] = defaultdict(list)
    for record in records:
        found[getattr(record, "step_id", 0)].append(record)
    return found


def _contracts(connection: Connection, hashes: set[str]) -> dict[str, str]:
    query = select(CONTRACTS.c.schema_hash, CONTRACTS.c.spec).where(CONTRACTS.c.schema_hash.in_(sorted(hashes)))
    return {known: spec or "" for known, spec in connection.execute(query)}


def _usage(row: Row[Any]) -> Usage:
    return Usage(
        row.requests or 0, row.input_tokens or 0, row.output_tokens or 0, row.cost, row.unmeasured_requests or 0
    )


def _run(row: Row[Any]) -> JournalRun:
    return JournalRun(
        run_id=row.run_id,
        pipeline=row.pipeline or "",
        kind=row.kind,
        status="lost" if row.status == "running" and is_gone(row.host, row.pid) else row.status,
        started=row.started,
        seconds=row.seconds,
        usage=_usage(row),
        host=row.host or "",
        pid=row.pid or 0,
        steps=row.steps,
        repairs=row.repairs,
    )


def is_gone(host: str | None, pid: int | None) -> bool:
    """Whether the process of a run is known to have ended: only on its own host can that be told."""
    if not pid or host != socket.gethostname():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _step(row: Row[Any], run: JournalRun, values: Row[Any] | None) -> JournalStep:
    status = "lost" if row.status == "running" and run.status != "running" else row.status
    return JournalStep(
        id=row.id,
        parent_id=row.parent_id,
        name=row.name or "",
        kind=row.kind or "",
        status=status,
        trust=row.trust,
        input_trust=row.input_trust,
        reason=row.reason,
        error=row.error,
        attempts=row.attempts or 0,
        started=row.started,
        seconds=row.seconds,
        usage=_usage(row),
        input=None if values is None else values.input,
        output=None if values is None else values.output,
    )


def _stage(row: Row[Any]) -> JournalStage:
    fields = _fields(row, "id", "step_id", "stage", "because", "outcome", "reason", "started", "seconds")
    return JournalStage(**fields, calls=row.calls or 0, why=row.why or "")


def _ask(row: Row[Any]) -> JournalAsk:
    fields = _fields(row, "id", "step_id", "stage", "attempt", "started", "seconds", "finish_reason", "fault")
    fields |= {"model": row.model or "", "prompt": row.prompt or ""}
    return JournalAsk(**fields, constrained=bool(row.constrained), usage=_usage(row))


def _reading(row: Row[Any], repairs: Mapping[int, list[JournalRepair]]) -> JournalReading:
    names = ("id", "step_id", "stage", "outcome", "trust", "reason", "schema_hash", "finish_reason", "chars", "at")
    return JournalReading(
        **_fields(row, *names),
        model=row.model or "",
        issues=tuple(Issue(**issue) for issue in json.loads(row.issues or "[]")),
        text=row.text or "",
        repairs=tuple(repairs.get(row.id, ())),
        read_with=json.loads(row.read_with or "{}"),
    )


def _repair(row: Row[Any]) -> JournalRepair:
    return JournalRepair(
        code=row.code,
        risk=row.risk,
        path=row.path or "",
        span=(row.start, row.stop),
        before=row.before or "",
        after=row.after or "",
    )


def _fields(row: Row[Any], *names: str) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}
