"""What a run came to, for a person: a table, then what was repaired and asked again, what failed, what to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from flujo_aros.cli.explain import repair_rows
from flujo_aros.cli.screen import STYLES, worded
from flujo_aros.cli.words import NEXT, cost_words, counted, seconds_words, token_words
from flujo_aros.outcome import Accepted, Degraded, Rejected, Repair
from flujo_aros.pipeline.ledger import RunResult, RunStatus, StepResult, StepStatus

if TYPE_CHECKING:  # the agents bring pydantic-ai, which a report has no need of
    from flujo_aros.agents.drivers import StageRecord

_COLUMNS = ("step", "status", "trust", "repairs", "calls", "tokens", "cost", "time")
_DROPPED_FIRST = ("tokens", "cost", "repairs", "calls", "trust")
"""What a narrow terminal does without, in this order; step, status and time always stay."""


def print_summary(result: RunResult, console: Console) -> None:
    """Print the closing report of a run. The result itself is not part of it."""
    console.print()
    console.print(_table(result, console))
    for part in (*_notes(result), _closing(result)):
        console.print()
        console.print(part)


def _table(result: RunResult, console: Console) -> Table:
    dropped: set[str] = set() if any(step.usage.cost is not None for step in result.steps) else {"cost"}
    table = _filled(result, dropped)
    for column in _DROPPED_FIRST:
        if console.measure(table).minimum <= console.width:
            break
        dropped.add(column)
        table = _filled(result, dropped)
    return table


def _filled(result: RunResult, dropped: set[str]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim", show_footer=len(result.steps) > 1)
    total = dict(zip(_COLUMNS, _total(result), strict=True))
    for name in _COLUMNS:
        if name not in dropped:
            right = name in ("repairs", "calls", "tokens", "cost", "time")
            table.add_column(
                name,
                footer=total[name],
                footer_style="dim",
                justify="right" if right else "left",
                no_wrap=name != "step",
                overflow="fold",
            )
    for step in result.steps:
        cells = dict(zip(_COLUMNS, _cells(step), strict=True))
        table.add_row(*[cell for name, cell in cells.items() if name not in dropped])
    return table


def _cells(step: StepResult[object]) -> Iterator[RenderableType]:
    repairs = _repairs(step)
    yield step.name
    yield worded(step.status.value)
    yield worded(step.trust)
    yield str(len(repairs)) if repairs else Text("-", style="dim")
    yield str(step.usage.requests) if step.usage.requests else Text("-", style="dim")
    yield token_words(step.usage)
    yield cost_words(step.usage.cost)
    yield seconds_words(step.seconds)


def _total(result: RunResult) -> Iterator[str]:
    usage = result.usage
    repairs = sum(len(_repairs(step)) for step in result.steps)
    yield from ("", "", "")
    yield str(repairs) if repairs else "-"
    yield str(usage.requests) if usage.requests else "-"
    yield token_words(usage)
    yield cost_words(usage.cost)
    yield seconds_words(result.seconds)


def _repairs(step: StepResult[object]) -> tuple[Repair, ...]:
    return tuple(step.outcome.repairs) if isinstance(step.outcome, Accepted) else ()


def _notes(result: RunResult) -> Iterator[RenderableType]:
    repaired = [(step.name, repair) for step in result.steps for repair in _repairs(step)]
    if repaired:
        yield _section("Repaired", repair_rows(iter(repaired)))
    asked = [(step.name, stage) for step in result.steps for stage in step.stages]
    if asked:
        yield _section("Recovery", _stage_rows(asked))
    for step in result.steps:
        if step.status in (StepStatus.FAILED, StepStatus.DEGRADED):
            yield _section(f"{step.name} {step.status.value}", _trouble(step))


def _section(title: str, body: RenderableType) -> RenderableType:
    return Group(Text(title, style="bold"), Padding(body, (0, 0, 0, 2)))


def _stage_rows(stages: list[tuple[str, StageRecord]]) -> Table:
    table = Table.grid(padding=(0, 2), pad_edge=False)
    for step, stage in stages:
        ended = Text.assemble(worded(stage.outcome), f" ({stage.reason})" if stage.reason else "")
        table.add_row(step, stage.stage, counted(stage.calls, "call"), ended)
    return table


def _trouble(step: StepResult[object]) -> Text:
    if isinstance(step.outcome, (Rejected, Degraded)):
        rejected = step.outcome.because if isinstance(step.outcome, Degraded) else step.outcome
        return Text(f"{rejected.explain()}\n").append(NEXT[rejected.reason], style="dim")
    return Text(step.error or "it ended without saying why")


def _closing(result: RunResult) -> Text:
    line = Text.assemble(
        Text(result.status.value, style=f"bold {STYLES.get(result.status.value, '')}".strip()), f"  run {result.run_id}"
    )
    if result.status is RunStatus.DEGRADED:
        line.append(
            "\nA step gave back its text instead of a value. --allow-degraded lets that pass with exit code 0.",
            style="dim",
        )
    return line
