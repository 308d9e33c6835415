"""The closing report of a run: a table, then what was repaired and asked again, what failed, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table

from flujo_aros.cli.render import repair_rows, reply_parts
from flujo_aros.cli.screen import STYLES, Text, place_of, without_secrets, worded
from flujo_aros.errors import ArosError
from flujo_aros.outcome import Accepted, Degraded, Rejected, Repair, Trust
from flujo_aros.pipeline.results import RunResult, RunStatus, StepResult, StepStatus, may_pass
from flujo_aros.telemetry.formatting import cost_words, counted, next_words, seconds_words, token_words
from flujo_aros.telemetry.reply import ShownReply, numbered
from flujo_aros.usage import Usage

if TYPE_CHECKING:  # importing the host would load pydantic-ai, which a report does not need
    from flujo_aros.host import StageRecord

_COLUMNS: tuple[str, ...] = ("step", "status", "trust", "input", "repairs", "calls", "tokens", "cost", "time")
_FIGURES = ("repairs", "calls", "tokens", "cost", "time")
_HEADERS = {"tokens": "tokens in + out", "input": "input trust"}
_WITHOUT_VALUE = (StepStatus.FAILED, StepStatus.DEGRADED)
_FOLDED = 16
_REPEATED = (
    "With `config: {max_retries: 3}` the step is retried after errors like this one, and waits as long as the "
    "provider asks."
)
_LISTED = 12
_DROPPED_FIRST = ("tokens", "cost", "repairs", "calls", "trust", "input")
"""The columns that a narrow terminal drops, in this order; step, status and time are always shown."""


def print_summary(result: RunResult, console: Console) -> None:
    """Print the closing report of a run. The result itself is not part of it."""
    console.print()
    console.print(_table(result, console))
    for part in (*_notes(result, console), _closing(result)):
        console.print()
        console.print(part)
    console.print()


def _table(result: RunResult, console: Console) -> Table:
    rows = [dict(zip(_COLUMNS, _cells(step, len(repairs)), strict=True)) for step, repairs in _repairs(result)]
    total = dict(zip(_COLUMNS, _total(result), strict=True))
    unused: tuple[str, ...] = () if result.usage.requests else ("calls", "tokens", "cost")
    if all(step.input_trust in (None, Trust.CLEAN) for step in result.steps):
        unused = (*unused, "input")  # it adds nothing to the trust column
    columns = [name for name in _COLUMNS if name not in unused]
    for dropped in _DROPPED_FIRST:
        if _width(columns, [*rows, total]) > console.width and dropped in columns:
            columns.remove(dropped)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim", show_footer=len(rows) > 1)
    for name in columns:
        table.add_column(
            _HEADERS.get(name, name),
            footer=total[name],
            footer_style="dim",
            justify="right" if name in _FIGURES else "left",
            no_wrap=name != "step",
            overflow="fold",
        )
    for row in rows:
        table.add_row(*[row[name] for name in columns])
    return table


def _width(columns: list[str], rows: list[dict[str, Text]]) -> int:
    """The cells that a table of these columns needs; long names of steps may be folded."""
    widths = [max(cell_len(_HEADERS.get(name, name)), *(row[name].cell_len for row in rows)) for name in columns]
    return min(widths[0], _FOLDED) + sum(widths[1:]) + 2 * (len(widths) - 1)


def _cells(step: StepResult[object], repairs: int) -> Iterator[Text]:
    yield Text(step.name)
    yield worded(step.status.value)
    yield worded(step.trust)
    yield worded(step.input_trust)
    yield from _figures(repairs, step.usage, step.seconds)


def _total(result: RunResult) -> Iterator[Text]:
    yield from (Text("total"), Text(), worded(result.trust) if result.trust else Text(), Text())
    yield from _figures(sum(len(repairs) for _, repairs in _repairs(result)), result.usage, result.seconds)


def _figures(repairs: int, usage: Usage, seconds: float) -> Iterator[Text]:
    figures = (str(repairs or "-"), str(usage.requests or "-"), token_words(usage), cost_words(usage.cost))
    yield from (Text(figure, style="dim" if figure == "-" else "") for figure in figures)
    yield Text(seconds_words(seconds))


def _repairs(result: RunResult) -> Iterator[tuple[StepResult[object], Sequence[Repair]]]:
    """The steps with their repairs, each once: a step with steps inside it may have the outcome of the last one."""
    groups = {step.name.rpartition("/")[0] for step in result.steps}
    for step in result.steps:
        yield step, step.outcome.repairs if isinstance(step.outcome, Accepted) and step.name not in groups else ()


def _notes(result: RunResult, console: Console) -> Iterator[RenderableType]:
    repaired = [(step.name, edit) for step, repairs in _repairs(result) for edit in numbered(repairs)]
    if repaired:
        shown = [(name, edit.masked(without_secrets)) for name, edit in repaired[:_LISTED]]
        rows = [repair_rows(shown, console.width - 2)]
        more = [Text(f"and {len(repaired) - _LISTED} more: --json lists them all", style="dim")]
        yield _section("Repaired", *rows, *(more if len(repaired) > _LISTED else []))
    recovered = [*_stage_lines(result), *_replaced_lines(result)]
    if recovered:
        yield _section("Recovery", *recovered)
    wrong = {step.name: step for step in result.steps if step.status in _WITHOUT_VALUE}
    causes = [step for step in wrong.values() if step.caused_by not in wrong]  # the others only repeat it
    excused = [step for step in causes if step.excused_by]
    if excused:
        yield _section("Excused", *map(_excused_line, excused))
    for step in causes:
        if not step.excused_by:
            yield _section(f"{step.name} {step.status.value}", *_trouble(step, console.width - 2))


def _section(title: str, *body: RenderableType) -> RenderableType:
    return Group(Text(title, style="bold"), *(Padding(part, (0, 0, 0, 2), expand=False) for part in body))


def _stage_lines(result: RunResult) -> Iterator[Text]:
    for step in result.steps:
        yield from (_stage_line(step.name, stage) for stage in step.stages)


def _replaced_lines(result: RunResult) -> Iterator[Text]:
    """Which fallbacks ran, and why: a value that one of them gave looks like any other in the table."""
    for step in result.steps:
        if step.replaced is not None:
            yield Text(without_secrets(f"{step.name}: its fallback ran because it failed: {step.replaced}"))


def _excused_line(step: StepResult[object]) -> Text:
    """A step that ended badly, and the step that excuses it."""
    why = f": {step.error}" if step.error else ""
    return Text(without_secrets(f"{step.name} {step.status.value}, {step.excused_by} continues{why}"))


def _stage_line(step: str, stage: StageRecord) -> Text:
    why = f" ({stage.reason})" if stage.reason else ""
    return Text.assemble(f"{step}: {stage.stage}, {counted(stage.calls, 'call')}, ", worded(stage.outcome), why)


def _trouble(step: StepResult[object], width: int) -> Iterator[RenderableType]:
    """Why a step returned no value, and what to do next."""
    if isinstance(step.outcome, (Rejected, Degraded)):
        rejected = step.outcome.because if isinstance(step.outcome, Degraded) else step.outcome
        yield Text(without_secrets(rejected.explain().partition("\n")[0]))
        yield from reply_parts(ShownReply.of_outcome(rejected).masked(without_secrets), width, with_text=False)
        passing = may_pass(rejected) and step.attempts < 2
        yield Text(_REPEATED if passing else next_words(rejected.reason, rejected.issues), style="dim")
        return
    place = "" if step.exception is None else place_of(step.exception.__traceback__)
    yield Text(without_secrets(f"{step.error or 'it ended without a message'}{place}"))
    if step.exception is not None and not isinstance(step.exception, ArosError):
        yield Text("aros --debug shows where it was raised.", style="dim")


def _closing(result: RunResult) -> Text:
    status = result.status.value
    line = Text.assemble((status, f"bold {STYLES[status]}"), (f"  run {result.run_id}", "dim"))
    if result.status is RunStatus.DEGRADED:
        line.append("\nA step returned its text instead of a value; --allow-degraded accepts that.", style="dim")
    return line
