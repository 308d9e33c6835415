"""Health: statistics of a journal about models, steps and stages over a period of time, with advice."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, Table, and_, case, func, literal, or_, select, true

from flujo_aros.outcome import Reason
from flujo_aros.telemetry.formatting import NEXT, code_words, share_words
from flujo_aros.telemetry.records import ASKS, READINGS, REPAIRS, RUNS, STAGES, STEPS, USED, is_gone, usage_in
from flujo_aros.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class StepHealth:
    """Statistics of one step. The iterations of loops and maps count as one (`items/*/price`)."""

    pipeline: str
    step: str
    runs: int
    failed: int
    degraded: int
    seconds: float
    usage: Usage

    @property
    def trouble(self) -> float:
        """The share of runs without a trustworthy value."""
        return _share(self.failed + self.degraded, self.runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelHealth:
    """Statistics of one model over its first replies. The effect of the ladder is in the stages."""

    model: str
    calls: int
    faults: int
    replies: int
    rejected: int
    repaired: int
    wrapped: int
    usage: Usage

    @property
    def trouble(self) -> float:
        """The share of first replies that were rejected or never arrived."""
        return _share(self.rejected + self.faults, self.replies + self.faults)

    @property
    def fallback_rate(self) -> float:
        """The share of replies that were prose, wrapped as the text of an event (`_raw_fallback`)."""
        return _share(self.wrapped, self.replies)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairHealth:
    """How often one repair was made at one path, in one model's replies to one step."""

    code: str
    risk: str
    place: str
    step: str
    model: str
    replies: int
    """The number of replies with this repair."""
    of: int
    """The number of replies that could be read."""

    @property
    def share(self) -> float:
        """The share of them with this repair."""
        return _share(self.replies, self.of)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageHealth:
    """How often one stage ran and saved the value, and what its calls cost."""

    stage: str
    ran: int
    accepted: int
    usage: Usage

    @property
    def success(self) -> float:
        """The share of its runs that produced a value."""
        return _share(self.accepted, self.ran)

    @property
    def cost_per_success(self) -> Decimal | None:
        """The cost of each value that it saved; None if no price is known or no value was saved."""
        return None if self.usage.cost is None or not self.accepted else self.usage.cost / self.accepted


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """One interval of the period."""

    start: float
    runs: int
    steps: int
    failed: int
    degraded: int
    readings: int
    rejected: int
    wrapped: int


@dataclass(frozen=True, slots=True)
class Advice:
    """One recommendation and its reason; `code` names its kind."""

    code: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The health of a journal over a period of time."""

    since: float
    until: float
    runs: dict[str, int] = field(default_factory=dict[str, int])
    """By status."""
    steps: dict[str, int] = field(default_factory=dict[str, int])
    """By status."""
    trust: dict[str, int] = field(default_factory=dict[str, int])
    """Steps with a value, by trust."""
    usage: Usage
    replies: int
    """The number of first replies."""
    rejected: int
    repaired: int
    wrapped: int
    worst_steps: tuple[StepHealth, ...]
    models: tuple[ModelHealth, ...]
    repairs: tuple[RepairHealth, ...]
    stages: tuple[StageHealth, ...]
    trend: tuple[Trend, ...]
    advice: tuple[Advice, ...] = ()

    @property
    def rates(self) -> dict[str, float]:
        """The rates for which a threshold can be set."""
        steps = sum(self.steps.values())
        return {
            "failed": _share(self.steps.get("failed", 0), steps),
            "degraded": _share(self.steps.get("degraded", 0), steps),
            "rejected": _share(self.rejected, self.replies),
            "repaired": _share(self.repaired, self.replies),
            "fallback": _share(self.wrapped, self.replies),
        }

    @property
    def cost_per_success(self) -> Decimal | None:
        """The cost of each completed run; None if no price is known or no run completed."""
        done = self.runs.get("completed", 0)
        return None if self.usage.cost is None or not done else self.usage.cost / done


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


FALLBACK_LINE: Final = 0.10
"""The share of replies wrapped as prose above which a model is reported as not following its format."""

_OFTEN: Final = 0.10
_ENOUGH: Final = 10
"""The minimum number of replies for advice."""
_HARDLY: Final = 0.10
_STAGE_RUNS: Final = 5

_ARRIVES: Final = {
    "string-to-number": ("arrives as text", "say in its description that it is a bare number"),
    "string-to-boolean": ("arrives as a word", "say in its description that it is true or false"),
    "string-to-null": ("arrives as a word for null", "say in its description that it is null where unknown"),
    "number-to-string": ("arrives as a number", "say in its description that it is a string"),
    "number-to-boolean": ("arrives as a number", "say in its description that it is true or false"),
    "enum-case": ("arrives in a different case", "list its values in the prompt exactly as they are written"),
    "enum-word": ("arrives with words around it", "list its values in the prompt, or add aliases to the enum"),
    "near_miss_key": ("arrives under another name", "add the name as an alias, or name the key in the prompt"),
    "wrapped-in-list": ("arrives as one value", "say in its description that it is a list"),
    "unwrapped-list": ("arrives as a list", "say in its description that it is one value"),
    "stringified": ("arrives as JSON inside a string", "use output_mode: native where the model can"),
    "envelope": ("arrives inside another object", "ask for the object itself in the prompt"),
    "picked-last": ("appears more than once", "ask for exactly one answer"),
    "double-encoded": ("arrives as JSON inside a string", "use output_mode: native where the model can"),
    "ignored_key": ("comes with undeclared keys", "list the expected keys in the prompt"),
    "rounded": ("arrives with decimals", "ask for a whole number, or make it a number in the schema"),
    "truncated": ("arrives cut off", "raise max_tokens, or ask for less at once"),
}


@dataclass(frozen=True, slots=True)
class Rejections:
    """The number of first replies of a model to a step that were rejected for one reason, and their total."""

    model: str
    step: str
    reason: str
    replies: int
    of: int


def advise(
    models: tuple[ModelHealth, ...],
    repairs: tuple[RepairHealth, ...],
    stages: tuple[StageHealth, ...],
    rejections: tuple[Rejections, ...],
) -> Iterator[Advice]:
    """The recommendations, most serious first."""
    for model in models:
        if model.replies >= _ENOUGH and model.fallback_rate > FALLBACK_LINE:
            yield Advice(
                "fallback",
                f"{share_words(model.fallback_rate)} of replies of {_named(model.model)} were prose that had to be "
                f"wrapped (the threshold is {share_words(FALLBACK_LINE)}): show it an example event in the prompt, or "
                "use another model",
            )
    for found in rejections:
        if found.of >= _ENOUGH and found.replies / found.of > _OFTEN:
            which = f"first replies of {_named(found.model)}{_to(found.step)}"
            share, kind = share_words(found.replies / found.of), code_words(found.reason)
            known = Reason(found.reason) if found.reason in set(Reason) else None
            what = NEXT[known] if known else "Look at them with aros explain."
            yield Advice("rejected", f"{share} of {which} were rejected ({kind}). {what}")
    for repair in repairs:
        words = _ARRIVES.get(repair.code)
        if words and repair.of >= _ENOUGH and repair.share > _OFTEN:
            place = "the answer" if repair.place == "$" else f"`{repair.place}`"
            yield Advice(
                "repair",
                f"{place} {words[0]} in {share_words(repair.share)} of replies of {_named(repair.model)}"
                f"{_to(repair.step)}: {words[1]}",
            )
    for stage in stages:
        if stage.ran >= _STAGE_RUNS and stage.success < _HARDLY and stage.usage.requests:
            yield Advice(
                "stage",
                f"stage {stage.stage} saved {stage.accepted} of {stage.ran} values: leave it out of the ladder, or "
                "give it another model",
            )


def _named(model: str) -> str:
    return f"model {model}" if model else "the model"


def _to(step: str) -> str:
    return f" to step {step}" if step else ""


_REPAIRED: Final = ("lossless", "inferred", "lossy")
_WRAPPED: Final = "synthesized"
_MOST_STEPS: Final = 10
_MOST_REPAIRS: Final = 50


@dataclass(frozen=True, slots=True)
class Span:
    """The filter: a period of time, and optionally one step or model."""

    since: datetime
    until: datetime
    step: str | None = None
    model: str | None = None

    def within(self, column: ColumnElement[Any]) -> ColumnElement[bool]:
        """Whether a time is in the period."""
        return and_(column >= self.since.timestamp(), column < self.until.timestamp())

    def of_step(self, column: ColumnElement[Any]) -> ColumnElement[bool]:
        """Whether it is the step or a step inside it."""
        if self.step is None:
            return true()
        return or_(column == self.step, column.startswith(f"{self.step}/", autoescape=True))

    def rows(self, table: Table) -> ColumnElement[bool]:
        """Selects rows of calls, readings, repairs or stages."""
        time = table.c.at if "at" in table.c else table.c.started
        model = true() if self.model is None else table.c.model == self.model
        return and_(self.within(time), self.of_step(table.c.step_place), model)

    def steps(self) -> ColumnElement[bool]:
        """Selects steps."""
        asked = select(ASKS.c.step_id).where(self.within(ASKS.c.started), ASKS.c.model == self.model)
        mine = true() if self.model is None else STEPS.c.id.in_(asked)
        return and_(self.within(STEPS.c.started), self.of_step(STEPS.c.place), mine)

    def runs(self) -> ColumnElement[bool]:
        """Selects runs: with a step or a model, those that contain it."""
        if self.step is None and self.model is None:
            return self.within(RUNS.c.started)
        if self.step is None:
            return and_(self.within(RUNS.c.started), RUNS.c.run_id.in_(select(ASKS.c.run_id).where(self.rows(ASKS))))
        return and_(self.within(RUNS.c.started), RUNS.c.run_id.in_(select(STEPS.c.run_id).where(self.steps())))


def diagnose(connection: Connection, span: Span, *, trend: int = 0) -> Health:
    """The health of a journal in this period; `trend` divides it into that many intervals."""
    rows = _steps(connection, span)
    runs, steps = _ended(connection, span, _counted((row.status, row.number) for row in rows))
    models = tuple(_models(connection, span))
    repairs = tuple(_repairs(connection, span))
    stages = tuple(_stages(connection, span))
    return Health(
        since=span.since.timestamp(),
        until=span.until.timestamp(),
        runs=runs,
        steps=steps,
        trust=_counted((row.trust, row.number) for row in rows),
        usage=Usage.total(model.usage for model in models),
        replies=sum(model.replies for model in models),
        rejected=sum(model.rejected for model in models),
        repaired=sum(model.repaired for model in models),
        wrapped=sum(model.wrapped for model in models),
        worst_steps=tuple(_worst_steps(rows)),
        models=models,
        repairs=repairs,
        stages=stages,
        trend=tuple(_trend(connection, span, trend)),
        advice=tuple(advise(models, repairs, stages, tuple(_rejections(connection, span)))),
    )


def _ended(connection: Connection, span: Span, steps: dict[str, int]) -> tuple[dict[str, int], dict[str, int]]:
    """Runs and steps by status. Those whose process is gone are `lost`, although the journal does not record their
    end."""
    runs = _by(connection, RUNS.c.status, span.runs())
    open_runs = select(RUNS.c.run_id, RUNS.c.host, RUNS.c.pid).where(RUNS.c.status == "running")
    alive = [row.run_id for row in connection.execute(open_runs) if not is_gone(row.host, row.pid)]
    for counts, table, which in ((runs, RUNS, span.runs()), (steps, STEPS, span.steps())):
        lost = and_(which, table.c.status == "running", table.c.run_id.not_in(alive))
        if size := _by(connection, table.c.status, lost).get("running", 0) if "running" in counts else 0:
            counts |= {"lost": size, "running": counts["running"] - size}
            if not counts["running"]:
                del counts["running"]
    return runs, steps


def _by(connection: Connection, column: ColumnElement[Any], which: ColumnElement[bool]) -> dict[str, int]:
    query = select(column, func.count()).where(which).group_by(column).order_by(func.count().desc(), column)
    return {str(row[0]): int(row[1]) for row in connection.execute(query)}


def _sums(table: Table) -> tuple[ColumnElement[Any], ...]:
    return tuple(func.sum(table.c[name]).label(name) for name in USED)


def _usage(row: Row[Any]) -> Usage:
    return usage_in(*(getattr(row, name) for name in USED))


def _count(which: ColumnElement[bool]) -> ColumnElement[int]:
    return func.coalesce(func.sum(case((which, 1), else_=0)), 0)


def _models(connection: Connection, span: Span) -> Iterator[ModelHealth]:
    calls = select(ASKS.c.model, *_sums(ASKS)).where(span.rows(ASKS)).group_by(ASKS.c.model)
    failed = and_(span.rows(ASKS), ASKS.c.fault.is_not(None))
    faults = select(ASKS.c.model, func.count().label("number")).where(failed).group_by(ASKS.c.model)
    faulty = {row.model: row.number for row in connection.execute(faults)}
    read = select(
        READINGS.c.model,
        func.count().label("replies"),
        _count(READINGS.c.outcome == "rejected").label("rejected"),
        _count(READINGS.c.trust.in_(_REPAIRED)).label("repaired"),
        _count(READINGS.c.trust == _WRAPPED).label("wrapped"),
    )
    asked = {row.model: row for row in connection.execute(calls)}
    readings = {row.model: row for row in connection.execute(read.where(_first(span)).group_by(READINGS.c.model))}
    found = [_model(name, asked.get(name), faulty.get(name, 0), readings.get(name)) for name in {*asked, *readings}]
    yield from sorted(found, key=lambda model: (-model.trouble, -model.calls, model.model))


def _model(name: str | None, asked: Any, faults: int, read: Any) -> ModelHealth:
    usage = Usage() if asked is None else _usage(asked)
    kinds = ("replies", "rejected", "repaired", "wrapped")
    counts = {kind: 0 if read is None else int(getattr(read, kind)) for kind in kinds}
    return ModelHealth(model=name or "", calls=usage.requests, faults=faults, usage=usage, **counts)


def _steps(connection: Connection, span: Span) -> list[Row[Any]]:
    """The steps, counted by name, status and trust."""
    keys = (STEPS.c.pipeline, STEPS.c.place, STEPS.c.status, STEPS.c.trust)
    timed = (func.sum(STEPS.c.seconds).label("seconds"), func.count(STEPS.c.seconds).label("timed"))
    query = select(*keys, func.count().label("number"), *timed, *_sums(STEPS)).where(span.steps()).group_by(*keys)
    return [*connection.execute(query).all()]


def _worst_steps(rows: Iterable[Row[Any]]) -> Iterator[StepHealth]:
    by_step: dict[tuple[str, str], list[Row[Any]]] = defaultdict(list)
    for row in rows:
        by_step[row.pipeline or "", row.place or ""].append(row)
    found = [_step(*key, of) for key, of in by_step.items()]
    yield from sorted(found, key=lambda step: (-step.trouble, -step.runs, step.step))[:_MOST_STEPS]


def _step(pipeline: str, place: str, rows: list[Row[Any]]) -> StepHealth:
    timed = sum(row.timed for row in rows)
    return StepHealth(
        pipeline=pipeline,
        step=place,
        runs=sum(row.number for row in rows),
        failed=sum(row.number for row in rows if row.status == "failed"),
        degraded=sum(row.number for row in rows if row.status == "degraded"),
        seconds=sum(row.seconds or 0.0 for row in rows) / timed if timed else 0.0,
        usage=Usage.total(map(_usage, rows)),
    )


def _counted(pairs: Iterable[tuple[str | None, int]]) -> dict[str, int]:
    """Counts by value, most frequent first."""
    found: Counter[str] = Counter()
    for name, number in pairs:
        if name is not None:
            found[name] += number
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def _repairs(connection: Connection, span: Span) -> Iterator[RepairHealth]:
    of = {
        (row.step_place, row.model): row.number
        for row in connection.execute(
            select(READINGS.c.step_place, READINGS.c.model, func.count().label("number"))
            .where(span.rows(READINGS), READINGS.c.outcome == "accepted")
            .group_by(READINGS.c.step_place, READINGS.c.model)
        )
    }
    columns = (REPAIRS.c.code, REPAIRS.c.risk, REPAIRS.c.place, REPAIRS.c.step_place, REPAIRS.c.model)
    replies = func.count().label("replies")
    query = select(*columns, replies).where(span.rows(REPAIRS), REPAIRS.c.again.is_(False)).group_by(*columns)
    for row in connection.execute(query.order_by(replies.desc(), *columns).limit(_MOST_REPAIRS)):
        yield RepairHealth(
            code=row.code,
            risk=row.risk,
            place=row.place or "$",
            step=row.step_place or "",
            model=row.model or "",
            replies=row.replies,
            of=max(of.get((row.step_place, row.model), 0), row.replies),
        )


def _stages(connection: Connection, span: Span) -> Iterator[StageHealth]:
    ran = select(STAGES.c.stage, func.count().label("ran"), _count(STAGES.c.outcome == "accepted").label("accepted"))
    which = and_(span.rows(STAGES), STAGES.c.outcome != "passed")
    spent = select(ASKS.c.stage, *_sums(ASKS)).where(span.rows(ASKS), ASKS.c.stage != "first").group_by(ASKS.c.stage)
    usage = {row.stage: _usage(row) for row in connection.execute(spent)}
    found = [
        StageHealth(stage=row.stage, ran=row.ran, accepted=int(row.accepted), usage=usage.get(row.stage, Usage()))
        for row in connection.execute(ran.where(which).group_by(STAGES.c.stage))
    ]
    yield from sorted(found, key=lambda stage: (-stage.ran, stage.stage))


def _rejections(connection: Connection, span: Span) -> Iterator[Rejections]:
    first = _first(span)
    keys = (READINGS.c.model, READINGS.c.step_place)
    rows = connection.execute(select(*keys, func.count()).where(first).group_by(*keys))
    of = {(model, step): number for model, step, number in rows}
    rejected = and_(first, READINGS.c.outcome == "rejected")
    columns = (*keys, READINGS.c.reason)
    query = select(*columns, func.count()).where(rejected).group_by(*columns).order_by(func.count().desc(), *columns)
    for model, step, reason, number in connection.execute(query):
        yield Rejections(model or "", step or "", reason or "", number, of[model, step])


def _trend(connection: Connection, span: Span, pieces: int) -> Iterator[Trend]:
    width = (span.until - span.since) / max(pieces, 1)
    starts = [(span.since + width * number).timestamp() for number in range(pieces)]
    if not starts:
        return
    counts = (
        _pieces(connection, RUNS.c.started, starts, span.runs()),
        _pieces(connection, STEPS.c.started, starts, span.steps(), STEPS.c.status),
        _pieces(connection, READINGS.c.at, starts, _first(span), READINGS.c.outcome, READINGS.c.trust),
    )
    for number, start in enumerate(starts):
        runs, steps, readings = (each[number] for each in counts)
        yield Trend(
            start=start,
            runs=runs.total(),
            steps=steps.total(),
            failed=steps["failed",],
            degraded=steps["degraded",],
            readings=readings.total(),
            rejected=sum(count for (outcome, _), count in readings.items() if outcome == "rejected"),
            wrapped=sum(count for (_, trust), count in readings.items() if trust == _WRAPPED),
        )


def _pieces(
    connection: Connection,
    time: ColumnElement[float],
    starts: list[float],
    which: ColumnElement[bool],
    *keys: ColumnElement[Any],
) -> list[Counter[tuple[Any, ...]]]:
    """The number of rows in each interval, by these keys."""
    later = [(time < start, number) for number, start in enumerate(starts[1:])]
    piece = case(*later, else_=len(starts) - 1) if later else literal(0)
    found: list[Counter[tuple[Any, ...]]] = [Counter() for _ in starts]
    inner = select(piece.label("piece"), *keys).where(which).subquery()
    for number, *key, size in connection.execute(select(*inner.c, func.count()).group_by(*inner.c)):
        found[number][tuple(key)] = size
    return found


def _first(span: Span) -> ColumnElement[bool]:
    """The first replies."""
    return and_(span.rows(READINGS), READINGS.c.stage == "first")
