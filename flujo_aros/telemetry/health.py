"""Health: statistics from a journal about models, steps and stages over a period of time, with advice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import partial
from itertools import islice
from typing import Any, Final, TypeAlias

from sqlalchemy import ColumnElement, Connection, Table, and_, case, func, or_, select, true

from flujo_aros.outcome import Reason
from flujo_aros.spelling import clip
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
    error: str | None = None
    """The most frequent error."""

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
    """The frequency of one repair at one path, in one model's replies to one step."""

    code: str
    risk: str
    place: str
    step: str
    model: str
    replies: int
    """The number of replies with this repair."""
    of: int
    """The number of accepted replies."""

    @property
    def share(self) -> float:
        """The share of accepted replies with this repair."""
        return _share(self.replies, self.of)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageHealth:
    """The number of times one stage ran and saved the value, and the cost of its calls."""

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
        """The cost of each value that it saved, or None if no price is known or no value was saved."""
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
    """The number of runs, by status."""
    steps: dict[str, int] = field(default_factory=dict[str, int])
    """The number of steps, by status."""
    trust: dict[str, int] = field(default_factory=dict[str, int])
    """The number of steps with a value, by trust."""
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
        steps = sum(number for status, number in self.steps.items() if status != "skipped")
        return {
            "failed": _share(self.steps.get("failed", 0), steps),
            "degraded": _share(self.steps.get("degraded", 0), steps),
            "rejected": _share(self.rejected, self.replies),
            "repaired": _share(self.repaired, self.replies),
            "fallback": _share(self.wrapped, self.replies),
        }

    @property
    def cost_per_success(self) -> Decimal | None:
        """The cost of each completed run, or None if no price is known or no run completed."""
        done = self.runs.get("completed", 0)
        return None if self.usage.cost is None or not done else self.usage.cost / done


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


FALLBACK_LINE: Final = 0.10
"""The share of replies that are prose instead of JSON above which a model is reported as not following its format."""

_OFTEN: Final = 0.10
_ENOUGH: Final = 10
"""The minimum number of replies for advice."""
_HARDLY: Final = 0.10
_STAGE_RUNS: Final = 5
_LONGEST_ERROR: Final = 200

_ARRIVES: Final = {
    "string-to-number": ("arrives as text", "say in its description that it is a bare number"),
    "string-to-boolean": ("arrives as a word", "say in its description that it is true or false"),
    "string-to-null": ("arrives as a word for null", "say in its description that it is null where unknown"),
    "number-to-string": ("arrives as a number", "say in its description that it is a string"),
    "number-to-boolean": ("arrives as a number", "say in its description that it is true or false"),
    "enum-case": ("arrives in a different case", "list its values in the prompt exactly as they are written"),
    "enum-word": ("arrives with words around it", "list its values in the prompt, or add aliases to the enum"),
    "near_miss_key": ("arrives under a different name", "add the name as an alias, or name the key in the prompt"),
    "wrapped-in-list": ("arrives as one value", "say in its description that it is a list"),
    "unwrapped-list": ("arrives as a list", "say in its description that it is one value"),
    "stringified": ("arrives as JSON inside a string", "use output_mode: native where the model can"),
    "wrapped-in-object": ("arrives without the object around it", "show the whole object in the prompt"),
    "envelope": ("arrives inside another object", "ask for the object itself in the prompt"),
    "picked-last": ("appears more than once", "ask for exactly one answer"),
    "double-encoded": ("arrives as JSON inside a string", "use output_mode: native where the model can"),
    "ignored_key": ("comes with undeclared keys", "list the expected keys in the prompt"),
    "rounded": ("arrives with decimals", "ask for a whole number, or make it a number in the schema"),
    "truncated": ("arrives cut off", "raise max_tokens, or ask for less at once"),
}


def advise(
    steps: tuple[StepHealth, ...],
    models: tuple[ModelHealth, ...],
    repairs: tuple[RepairHealth, ...],
    stages: tuple[StageHealth, ...],
    first: _Rows,
) -> Iterator[Advice]:
    """Yield the recommendations, most serious first. `first` are the counted first replies."""
    troubled = [step for step in steps if step.runs >= _ENOUGH and step.trouble > _OFTEN]
    for step in troubled:
        inner = (each.step for each in troubled if each.pipeline == step.pipeline)
        caused = any(name.startswith(f"{step.step}/") for name in inner)
        if step.error and not caused:
            yield Advice(
                "step",
                f"step {step.step} of {step.pipeline} has no trustworthy value in {share_words(step.trouble)} of its "
                f"runs, most often because of this: {clip(step.error, _LONGEST_ERROR)}",
            )
    for model in models:
        if model.replies >= _ENOUGH and model.fallback_rate > FALLBACK_LINE:
            yield Advice(
                "fallback",
                f"{share_words(model.fallback_rate)} of replies of {_model_name(model.model)} were prose that had to "
                f"be wrapped (the threshold is {share_words(FALLBACK_LINE)}): show it an example event in the prompt, "
                "or use another model",
            )
    of = _group_by(first, "model", "step_place")
    rejected = [row for row in first if row.outcome == "rejected"]
    for (model_name, step, reason), rows in _group_by(rejected, "model", "step_place", "reason").items():
        replies = _number(of[model_name, step])
        share = _share(_number(rows), replies)
        if replies >= _ENOUGH and share > _OFTEN:
            which = f"first replies of {_model_name(model_name)}{_to(step)}"
            what = NEXT[Reason(reason)] if reason in set(Reason) else "Look at them with aros explain."
            yield Advice("rejected", f"{share_words(share)} of {which} were rejected ({code_words(reason)}). {what}")
    for repair in repairs:
        words = _ARRIVES.get(repair.code)
        if words and repair.of >= _ENOUGH and repair.share > _OFTEN:
            place = "the answer" if repair.place == "$" else f"`{repair.place}`"
            yield Advice(
                "repair",
                f"{place} {words[0]} in {share_words(repair.share)} of the accepted replies of "
                f"{_model_name(repair.model)}{_to(repair.step)}: {words[1]}",
            )
    for stage in stages:
        if stage.ran >= _STAGE_RUNS and stage.success < _HARDLY and stage.usage.requests:
            yield Advice(
                "stage",
                f"stage {stage.stage} saved {stage.accepted} of {stage.ran} values: leave it out of the ladder, or "
                "give it another model",
            )


def _model_name(model: str) -> str:
    return f"model {model}" if model else "the model"


def _to(step: str) -> str:
    return f" to step {step}" if step else ""


_REPAIRED: Final = ("lossless", "inferred", "lossy")
_WRAPPED: Final = "synthesized"
_MOST_STEPS: Final = 10
_MOST_REPAIRS: Final = 50
_IN_TREND: Final = (RUNS, STEPS, READINGS)

_Rows: TypeAlias = Sequence[Any]
"""Counted rows: each with the columns by which they were counted, their `number`, and sums."""


@dataclass(frozen=True, slots=True)
class Span:
    """The filter: a period of time, divided into equal `pieces`, and optionally one step or model."""

    since: datetime
    until: datetime
    step: str | None = None
    model: str | None = None
    pieces: int = 0

    @property
    def starts(self) -> list[float]:
        """The start time of each interval."""
        width = (self.until - self.since) / max(self.pieces, 1)
        return [(self.since + width * number).timestamp() for number in range(self.pieces)]

    def selects(self, table: Table) -> ColumnElement[bool]:
        """Return the condition for rows of the period, the step and the model; a run must contain both."""
        time = _time_of(table)
        within = and_(time >= self.since.timestamp(), time < self.until.timestamp())
        if table is RUNS:
            if self.step is None and self.model is None:
                return within
            inside = ASKS if self.step is None else STEPS
            return and_(within, RUNS.c.run_id.in_(select(inside.c.run_id).where(self.selects(inside))))
        if self.step is not None:
            place = table.c.place if table is STEPS else table.c.step_place
            within = and_(within, or_(place == self.step, place.startswith(f"{self.step}/", autoescape=True)))
        if self.model is not None and table is STEPS:
            return and_(within, STEPS.c.id.in_(select(ASKS.c.step_id).where(self.selects(ASKS))))
        return within if self.model is None else and_(within, table.c.model == self.model)

    def count(
        self,
        connection: Connection,
        table: Table,
        *names: str,
        sums: Sequence[str] = (),
        where: ColumnElement[bool] | None = None,
    ) -> _Rows:
        """Return the number of rows for each combination of these columns; rows that a trend shows are also counted by
        `piece`.
        """
        time, later = _time_of(table), self.starts[1:] if table in _IN_TREND else []
        chosen: list[ColumnElement[Any]] = [table.c[name] for name in (*names, *sums)]
        if later:
            began = ((time < start, number) for number, start in enumerate(later))
            chosen.append(case(*began, else_=len(later)).label("piece"))
        found = select(*chosen).where(self.selects(table), true() if where is None else where).subquery().c
        keys = [column for column in found if column.name not in sums]
        totals = [func.sum(found[name]).label(name) for name in sums]
        known = [func.count(found[name]).label("timed") for name in sums if name == "seconds"]
        query = select(*keys, func.count().label("number"), *totals, *known).group_by(*keys)
        return connection.execute(query).all()


def _time_of(table: Table) -> ColumnElement[float]:
    return table.c.at if "at" in table.c else table.c.started


def _number(rows: Iterable[Any], column: str = "", *values: str) -> int:
    """Return the number of rows counted; if a column is named, only those with one of these values."""
    return sum(row.number for row in rows if not column or getattr(row, column) in values)


def _group_by(rows: _Rows, *columns: str) -> dict[Any, list[Any]]:
    """Return the rows grouped by the values of one or more columns, the largest count first."""
    found: defaultdict[Any, list[Any]] = defaultdict(list)
    for row in rows:
        key = tuple(getattr(row, column) or "" for column in columns)
        found[key if len(columns) > 1 else key[0]].append(row)
    order = sorted(found, key=lambda key: (-_number(found[key]), key))
    return defaultdict(list, {key: found[key] for key in order})


def _counts(rows: _Rows, column: str) -> dict[str, int]:
    """Return the counts by the value of a column, the largest first."""
    return {value: _number(of) for value, of in _group_by(rows, column).items() if value}


def _usage(rows: _Rows) -> Usage:
    return Usage.total(usage_in(*(getattr(row, name) for name in USED)) for row in rows)


def diagnose(connection: Connection, span: Span) -> Health:
    """Return the health of a journal in this period."""
    count = partial(span.count, connection)
    runs = count(RUNS, "status")
    steps = count(STEPS, "pipeline", "place", "status", "trust", sums=("seconds", *USED))
    readings = count(READINGS, "stage", "model", "step_place", "outcome", "trust", "reason")
    asks = count(ASKS, "model", "stage", sums=USED)
    faults = count(ASKS, "model", where=ASKS.c.fault.is_not(None))
    ran = count(STAGES, "stage", "outcome", where=STAGES.c.outcome != "skipped")
    wrong = and_(STEPS.c.status.in_(("failed", "degraded")), STEPS.c.error.is_not(None))
    errors = count(STEPS, "pipeline", "place", "error", where=wrong)
    edits = count(REPAIRS, "code", "risk", "place", "step_place", "model", where=REPAIRS.c.again.is_(False))

    first = [row for row in readings if row.stage == "first"]
    worst_steps = tuple(_worst_steps(steps, errors))
    models = tuple(_models(asks, faults, first))
    repairs = tuple(_repairs(edits, readings))
    stages = tuple(_stages(ran, asks))
    open_runs = select(RUNS.c.run_id, RUNS.c.host, RUNS.c.pid).where(RUNS.c.status == "running")
    alive = [row.run_id for row in connection.execute(open_runs) if not is_gone(row.host, row.pid)]

    def ended(table: Table, rows: _Rows) -> dict[str, int]:
        """Return the counts by status. Runs and steps whose process is gone are `lost`, although the journal does not
        record their end.
        """
        counts = _counts(rows, "status")
        if "running" in counts:
            left = and_(table.c.status == "running", table.c.run_id.not_in(alive))
            lost = _number(count(table, "status", where=left))
            counts |= {"running": counts["running"] - lost, "lost": lost}
        return {status: number for status, number in counts.items() if number}

    return Health(
        since=span.since.timestamp(),
        until=span.until.timestamp(),
        runs=ended(RUNS, runs),
        steps=ended(STEPS, steps),
        trust=_counts(steps, "trust"),
        usage=_usage(asks),
        replies=_number(first),
        rejected=_number(first, "outcome", "rejected"),
        repaired=_number(first, "trust", *_REPAIRED),
        wrapped=_number(first, "trust", _WRAPPED),
        worst_steps=worst_steps,
        models=models,
        repairs=repairs,
        stages=stages,
        trend=tuple(_trend(span.starts, runs, steps, first)),
        advice=tuple(advise(worst_steps, models, repairs, stages, first)),
    )


def _models(asks: _Rows, faults: _Rows, first: _Rows) -> Iterator[ModelHealth]:
    calls, replies, failed = _group_by(asks, "model"), _group_by(first, "model"), _group_by(faults, "model")
    found = [
        ModelHealth(
            model=model,
            calls=_usage(calls[model]).requests,
            faults=_number(failed[model]),
            replies=_number(replies[model]),
            rejected=_number(replies[model], "outcome", "rejected"),
            repaired=_number(replies[model], "trust", *_REPAIRED),
            wrapped=_number(replies[model], "trust", _WRAPPED),
            usage=_usage(calls[model]),
        )
        for model in {*calls, *replies}
    ]
    yield from sorted(found, key=lambda model: (-model.trouble, -model.calls, model.model))


def _worst_steps(steps: _Rows, errors: _Rows) -> Iterator[StepHealth]:
    errors_of = _group_by(errors, "pipeline", "place")
    found = [
        StepHealth(
            pipeline=pipeline,
            step=place,
            runs=_number(rows) - _number(rows, "status", "skipped"),
            failed=_number(rows, "status", "failed"),
            degraded=_number(rows, "status", "degraded"),
            seconds=sum(row.seconds or 0.0 for row in rows) / (sum(row.timed for row in rows) or 1),
            usage=_usage(rows),
            error=next(iter(_counts(errors_of[pipeline, place], "error")), None),
        )
        for (pipeline, place), rows in _group_by(steps, "pipeline", "place").items()
    ]
    yield from sorted(found, key=lambda step: (-step.trouble, -step.runs, step.step))[:_MOST_STEPS]


def _repairs(edits: _Rows, readings: _Rows) -> Iterator[RepairHealth]:
    read = _group_by([row for row in readings if row.outcome == "accepted"], "step_place", "model")
    found = _group_by(edits, "code", "risk", "place", "step_place", "model").items()
    for (code, risk, place, step, model), rows in islice(found, _MOST_REPAIRS):
        replies = _number(rows)
        of = max(_number(read[step, model]), replies)
        yield RepairHealth(code=code, risk=risk, place=place or "$", step=step, model=model, replies=replies, of=of)


def _stages(ran: _Rows, asks: _Rows) -> Iterator[StageHealth]:
    spent = _group_by(asks, "stage")
    for stage, rows in _group_by(ran, "stage").items():
        accepted = _number(rows, "outcome", "accepted")
        yield StageHealth(stage=stage, ran=_number(rows), accepted=accepted, usage=_usage(spent[stage]))


def _trend(starts: Sequence[float], *counted: _Rows) -> Iterator[Trend]:
    for number, start in enumerate(starts):
        runs, steps, first = ([row for row in rows if getattr(row, "piece", 0) == number] for rows in counted)
        yield Trend(
            start=start,
            runs=_number(runs),
            steps=_number(steps),
            failed=_number(steps, "status", "failed"),
            degraded=_number(steps, "status", "degraded"),
            readings=_number(first),
            rejected=_number(first, "outcome", "rejected"),
            wrapped=_number(first, "trust", _WRAPPED),
        )
