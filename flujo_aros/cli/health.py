"""`aros health`: statistics and advice about models, steps and schemas, from the journal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.console import Console

from flujo_aros.cli import arguments as args
from flujo_aros.cli import commands
from flujo_aros.cli.render import figure, fitted_table
from flujo_aros.cli.runs import given_time
from flujo_aros.cli.screen import STYLES, Text, complain, print_json, stdout_console, worded
from flujo_aros.errors import UsageError
from flujo_aros.telemetry.formatting import code_words, cost_words, counted, share_words, time_words, token_words
from flujo_aros.usage import Usage

if TYPE_CHECKING:  # the command imports it when it runs: `aros --help` need not load a database
    from flujo_aros.telemetry.health import Health, Trend

_RATES = ("failed", "degraded", "rejected", "repaired", "fallback")
_LIMIT: Final = re.compile(rf"\s*({'|'.join(_RATES)})\s*=\s*(\d*\.?\d+)\s*(%?)\s*")
_SHOWN_REPAIRS = 10
_FAILED = 1


def health_command(options: commands.Health) -> None:
    """Print statistics and advice."""
    limits = given_limits(options.fail_over)
    until = datetime.now(UTC)
    since = until - given_time(options.since, "--since")
    with args.open_to_read() as journal:
        found = journal.health(since=since, until=until, step=options.step, model=options.model, trend=options.trend)
    over = {name: limit for name, limit in limits.items() if found.rates[name] > limit}
    if options.form == "json":
        print_json({**health_dict(found), "over": sorted(over)})
    else:
        _print(found, stdout_console(), options.since)
    for name, limit in over.items():
        complain(f"the rate of {name} is {share_words(found.rates[name])}, which is over {share_words(limit)}")
    if over:
        raise typer.Exit(_FAILED)


def given_limits(pairs: list[str]) -> dict[str, float]:
    """Return the thresholds of `--fail-over`.

    >>> given_limits(["fallback=0.1", "failed=5%"])
    {'fallback': 0.1, 'failed': 0.05}
    """
    limits: dict[str, float] = {}
    for pair in pairs:
        found = _LIMIT.fullmatch(pair)
        if found is None:
            known = ", ".join(_RATES)
            raise UsageError(f"--fail-over {pair!r}: expected one of {known} and a share, such as fallback=0.1")
        limits[found[1]] = float(found[2]) / (100 if found[3] else 1)
    return limits


def health_dict(found: Health) -> dict[str, Any]:
    """Return the health of a journal as plain JSON."""
    return {
        "since": _iso(found.since),
        "until": _iso(found.until),
        "totals": {
            **{name: getattr(found, name) for name in ("runs", "steps", "trust", "replies")},
            "usage": found.usage.to_dict(),
            "cost_per_success": _number(found.cost_per_success),
        },
        "rates": {name: round(rate, 4) for name, rate in found.rates.items()},
        "steps": [_to_dict(step, "trouble") for step in found.worst_steps],
        "models": [_to_dict(model, "trouble", "fallback_rate") for model in found.models],
        "repairs": [_to_dict(repair, "share") for repair in found.repairs],
        "stages": [
            {**_to_dict(stage, "success"), "cost_per_success": _number(stage.cost_per_success)}
            for stage in found.stages
        ],
        "trend": [{**_to_dict(piece), "start": _iso(piece.start)} for piece in found.trend],
        "advice": [_to_dict(each) for each in found.advice],
    }


def _to_dict(record: Any, *shares: str) -> dict[str, Any]:
    """Return the fields of a record, and these shares that it computes from them."""
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    plain = {name: value.to_dict() if isinstance(value, Usage) else value for name, value in values.items()}
    return plain | {name: round(getattr(record, name), 4) for name in shares}


def _number(cost: Any) -> float | None:
    return None if cost is None else float(cost)


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _print(found: Health, console: Console, since: str) -> None:
    if not found.runs:
        console.print(f"no runs in the last {since}")
        return
    for line in health_totals(found, since):
        console.print(line, soft_wrap=True)
    for title, rows, dropped in health_sections(found):
        if rows:
            console.print()
            console.print(Text(title, style="bold"))
            folded = {"step": 24, "model": 24, "place": 24, "repair": 16}
            console.print(fitted_table(rows, console.width, dropped_first=dropped, folded=folded))
    if found.advice:
        console.print()
        console.print(Text("Advice", style="bold"))
    for advice in found.advice:
        lines = Text(advice.text).wrap(console, max(console.width - 2, 1))
        console.print(Text("- ") + Text("\n  ").join(lines), soft_wrap=True)


def health_totals(found: Health, since: str) -> Iterator[Text]:
    """Yield a summary in sentences: runs, steps, replies, calls."""
    runs = sum(found.runs.values())
    yield Text.assemble(f"{counted(runs, 'run')} in the last {since}: ", *_counts(found.runs))
    yield Text.assemble(f"{counted(sum(found.steps.values()), 'step')}: ", *_counts(found.steps))
    if found.replies:
        words = {"rejected": "rejected", "repaired": "repaired", "fallback": "wrapped as prose"}
        shares = ", ".join(f"{share_words(found.rates[name])} {word}" for name, word in words.items())
        yield Text(f"{counted(found.replies, 'first reply')}: {shares}")
    usage = found.usage
    if usage.requests:
        each = f", {cost_words(found.cost_per_success)} for each completed run" if found.cost_per_success else ""
        cost = f", {cost_words(usage.cost)}{each}" if usage.cost is not None else ""
        yield Text(f"{counted(usage.requests, 'call')}, {token_words(usage)} tokens{cost}")


def _counts(counts: Mapping[str, int]) -> Iterator[Any]:
    for number, (word, count) in enumerate(counts.items()):
        yield ", " if number else ""
        yield Text(f"{count} {word}", style=STYLES.get(word, ""))
    if not counts:
        yield "none"


Section = tuple[str, list[dict[str, Text]], tuple[str, ...]]


def health_sections(found: Health) -> Iterator[Section]:
    """Yield a summary in tables: a title, rows, and the columns that a narrow screen drops first."""
    yield "Worst steps", [_step_row(step) for step in found.worst_steps if step.trouble], ("cost", "calls", "time")
    yield "Models", [_model_row(model) for model in found.models], ("cost", "faults", "wrapped", "repaired")
    yield "Most frequent repairs", [_repair_row(each) for each in found.repairs[:_SHOWN_REPAIRS]], ("step", "risk")
    yield "Stages", [_stage_row(stage) for stage in found.stages], ("cost each", "cost")
    yield "Trend", [_trend_row(piece) for piece in found.trend], ("degraded", "wrapped")


def _step_row(step: Any) -> dict[str, Text]:
    return {
        "step": Text(f"{step.pipeline} / {step.step}"),
        **_figures(step, "runs", "failed", "degraded"),
        "trouble": _rate(step.trouble, 0.1),
        "calls": figure(step.usage.requests),
        "cost": figure(cost_words(step.usage.cost)),
        "time": figure(time_words(step.seconds)),
    }


def _model_row(model: Any) -> dict[str, Text]:
    return {
        "model": Text(model.model or "not named"),
        **_figures(model, "calls", "faults", "replies"),
        "rejected": _rate(model.rejected / model.replies if model.replies else 0.0, 0.1),
        "repaired": _rate(model.repaired / model.replies if model.replies else 0.0, 2.0),
        "wrapped": _rate(model.fallback_rate, 0.1),
        "cost": figure(cost_words(model.usage.cost)),
    }


def _repair_row(repair: Any) -> dict[str, Text]:
    return {
        "repair": Text(code_words(repair.code)),
        "risk": worded(repair.risk),
        "place": Text(repair.place),
        "step": Text(repair.step),
        "model": Text(repair.model),
        "replies": figure(f"{repair.replies}/{repair.of}"),
        "share": figure(share_words(repair.share)),
    }


def _stage_row(stage: Any) -> dict[str, Text]:
    return {
        "stage": Text(stage.stage),
        "ran": figure(stage.ran),
        "saved": figure(stage.accepted),
        "success": figure(share_words(stage.success)),
        "calls": figure(stage.usage.requests),
        "cost": figure(cost_words(stage.usage.cost)),
        "cost each": figure(cost_words(stage.cost_per_success)),
    }


def _trend_row(piece: Trend) -> dict[str, Text]:
    started = datetime.fromtimestamp(piece.start, UTC).astimezone()
    shares = {"rejected": piece.rejected, "wrapped": piece.wrapped}
    return {
        "from": figure(started.strftime("%m-%d %H:%M")),
        **_figures(piece, "runs", "steps", "failed", "degraded"),
        **{name: _rate(number / piece.readings if piece.readings else 0.0, 0.1) for name, number in shares.items()},
    }


def _figures(record: Any, *names: str) -> dict[str, Text]:
    return {name: figure(getattr(record, name)) for name in names}


def _rate(share: float, line: float) -> Text:
    return figure(share_words(share) if share else "-", "red" if share > line else "")
