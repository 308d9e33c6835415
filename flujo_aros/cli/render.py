"""Shows replies with their repairs, and tables: one renderer for every command.

Positions in a text are marked below it, as in compiler errors: line numbers, carets, and numbered labels.

```
  2 | {"priority": "High", "tags": ["a",],}
    |              ^^^^^^              ^ ^
    |              2                   3 4
```
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table

from flujo_aros.cli.screen import STYLES, Text, worded
from flujo_aros.cli.shown import without_secrets
from flujo_aros.errors import ArosError, raised_at
from flujo_aros.outcome import Trust, reason_words, rejection_of
from flujo_aros.pipeline.results import (
    RunResult,
    RunStatus,
    StepResult,
    StepStatus,
    may_pass,
    repaired,
    repairs_by_step,
)
from flujo_aros.telemetry.formatting import clipped, cost_words, counted, next_words, time_words, token_words
from flujo_aros.telemetry.reply import Edit, ShownReply, numbered, repair_words
from flujo_aros.usage import Usage
from flujo_aros.visible import visible_line

_COLUMNS_FROM: Final = 70
_UNMARKED: Final = 400
_CONTEXT: Final = 1


@dataclass(frozen=True, slots=True)
class Mark:
    """A span of a string, with its label and colour."""

    start: int
    end: int
    label: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class _Row:
    """One row of the screen: a part of one line, with `stop` past its line end. No `number` if it continues a line."""

    number: int | None
    start: int
    stop: int
    text: str


def marked(text: str, marks: Sequence[Mark], width: int) -> Iterator[Text]:
    """Yield the rows of the text around its marks, none wider than `width` cells; stretches without
    marks are left out.
    """
    rows = list(_rows(text, max(20, width - 8)))
    indexes = _lines_around(rows, marks)
    last = -1
    for index in indexes:
        if index > last + 1:
            yield Text("    ┆", style="dim")
        last = index
        row = rows[index]
        gutter = f"{row.number:>3}" if row.number else "   "
        yield Text.assemble((f"{gutter} │ ", "dim"), visible_line(row.text))
        yield from _beneath(row, marks)
    if indexes and any(row.text for row in rows[last + 1 :]):
        yield Text("    ┆", style="dim")


def _rows(text: str, width: int) -> Iterator[_Row]:
    start = 0
    for number, line in enumerate(text.split("\n"), start=1):
        for at, piece in _pieces(line, width):
            end = at + len(piece)
            yield _Row(None if at else number, start + at, start + end + (end == len(line)), piece)
        start += len(line) + 1


def _pieces(line: str, width: int) -> Iterator[tuple[int, str]]:
    """Yield the line cut into pieces of at most `width` cells, with their offsets; an empty line is one empty piece."""
    at, used = 0, 0
    for index, char in enumerate(line):
        cells = cell_len(visible_line(char))
        if used + cells > width:
            yield at, line[at:index]
            at, used = index, 0
        used += cells
    yield at, line[at:]


def _lines_around(rows: Sequence[_Row], marks: Sequence[Mark]) -> list[int]:
    """Return the rows to show: the first and the last one of each mark, and those next to them."""
    touched = [[index for index, row in enumerate(rows) if _touches(mark, row)] for mark in marks]
    edges = {edge for each in touched for edge in (*each[:1], *each[-1:])}
    wanted = {near for edge in edges for near in range(edge - _CONTEXT, edge + _CONTEXT + 1)}
    last = len(rows) - 1
    if not rows[last].text and last not in edges:  # a final line break does not begin a line
        last -= 1
    return sorted(index for index in wanted if 0 <= index <= last)


def _touches(mark: Mark, row: _Row) -> bool:
    return mark.start < row.stop and max(mark.end, mark.start + 1) > row.start


def _beneath(row: _Row, marks: Sequence[Mark]) -> Iterator[Text]:
    """Yield the row of carets, and below it as many rows as the labels need without touching each other."""
    here = [(mark, *_columns(mark, row)) for mark in marks if _touches(mark, row)]
    if not here:
        return
    carets = [(" ", "")] * max(end for _, _, end in here)
    for mark, start, end in sorted(
        here, key=lambda item: item[1] - item[2]
    ):  # widest first, so that inner ones stay visible
        carets[start:end] = [("^", mark.style)] * (end - start)
    yield Text.assemble(("    │ ", "dim"), *carets)
    labels = [(mark, start) for mark, start, _ in here if row.start <= mark.start]
    while labels:
        line, left, at = Text.assemble(("    │ ", "dim")), list[tuple[Mark, int]](), -1
        for mark, start in sorted(labels, key=lambda item: item[1]):
            if start <= at:
                left.append((mark, start))
                continue
            line.append(" " * (start - max(at, 0))).append(mark.label, style=mark.style)
            at = start + len(mark.label)
        yield line
        labels = left


def _columns(mark: Mark, row: _Row) -> tuple[int, int]:
    """Return the extent of the mark on the row, in cells; at least one cell wide."""
    first = max(0, mark.start - row.start)
    last = min(len(row.text), max(mark.start, mark.end) - row.start)
    start = cell_len(visible_line(row.text[:first]))
    return start, max(start + 1, cell_len(visible_line(row.text[:last])))


def reply_parts(reply: ShownReply, width: int, *, with_text: bool = True) -> Iterator[RenderableType]:
    """Show a reply: its text with every repair or issue marked, followed by an explanation of each."""
    marks = [Mark(*edit.repair.span, str(edit.number), STYLES[edit.risk]) for edit in reply.edits]
    issues = [(str(number), issue) for number, issue in enumerate(reply.issues, start=1)]
    places = ((label, reply.place_of(issue)) for label, issue in issues)
    marks += [Mark(*place, label, STYLES["failed"]) for label, place in places if place is not None]
    if marks and reply.whole and with_text:
        yield Group(*marked(reply.text, marks, width))
    elif reply.text.strip() and not reply.edits and with_text:
        yield Text(clipped(reply.text, _UNMARKED), style="dim")
    if reply.edits:
        yield repair_rows([(str(edit.number), edit) for edit in reply.edits], width)
    lines = [
        Text.assemble((label, STYLES["failed"]), f"  {_place(issue.path)}{issue.message or issue.code}")
        for label, issue in issues
    ]
    lines += [Text(f"candidate {words}") for words in reply.candidates]
    if lines:
        yield Group(*lines)


def _place(path: str) -> str:
    return "" if path in ("", "$") else f"{path}: "


def repair_rows(edits: Iterable[tuple[str, Edit]], width: int) -> RenderableType:
    """Return one row for each repair: label, risk, path, and what was done; sentences instead of columns on a narrow
    screen.
    """
    if width < _COLUMNS_FROM:
        return Text("\n").join(
            Text.assemble(f"{label} {edit.repair.path} ", _edit_text(edit), ", ", worded(edit.risk))
            for label, edit in edits
        )
    table = Table.grid(padding=(0, 2), pad_edge=False)
    for _ in range(4):
        table.add_column(overflow="fold")
    for label, edit in edits:
        table.add_row(Text(label, style=STYLES[edit.risk]), worded(edit.risk), Text(edit.repair.path), _edit_text(edit))
    return table


def _edit_text(edit: Edit) -> Text:
    return Text.assemble((edit.name, "bold"), f": {repair_words(edit.repair)}")


def fitted_table(
    rows: Sequence[Mapping[str, Text]],
    width: int,
    *,
    dropped_first: Sequence[str] = (),
    folded: Mapping[str, int] | None = None,
    total: Mapping[str, Text] | None = None,
) -> Table:
    """Return a table of these rows, whose keys are its headers.

    If the terminal is too narrow, columns of `dropped_first` are dropped, in this order; `folded` columns may be
    narrowed to that many cells. `total` is the row below several.
    """
    first = (*rows, total or {})[0]
    columns = list(first)
    folds = folded or {}
    for name in dropped_first:
        if name in columns and _width([*rows, *([total] if total else [])], columns, folds) > width:
            columns.remove(name)
    summed = total is not None and len(rows) > 1
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim", show_footer=summed)
    for name in columns:
        table.add_column(
            name,
            footer=total[name] if total else "",
            footer_style="dim",
            justify=first[name].justify or "left",
            no_wrap=name not in folds,
            overflow="fold",
            min_width=1,
        )
    for row in rows:
        table.add_row(*[row[name] for name in columns])
    return table


def figure(value: str | int, style: str = "") -> Text:
    """Return a number, aligned to the right; a dash for none."""
    word = value if isinstance(value, str) else f"{value:,}" if value else "-"
    return Text(word, style="dim" if word == "-" else style, justify="right")


def used(usage: Usage) -> dict[str, Text]:
    """Return the cells for calls, tokens and cost."""
    return {
        "calls": figure(usage.requests),
        "tokens in + out": figure(token_words(usage)),
        "cost": figure(cost_words(usage.cost)),
    }


def _width(rows: Sequence[Mapping[str, Text]], columns: Sequence[str], folds: Mapping[str, int]) -> int:
    widest = {name: max(cell_len(name), *(row[name].cell_len for row in rows)) for name in columns}
    return sum(min(widest[name], folds.get(name, 10_000)) for name in columns) + 2 * (len(columns) - 1)


_TOKENS: Final = "tokens in + out"
_WITHOUT_VALUE = (StepStatus.FAILED, StepStatus.DEGRADED)
_REPEATED = (
    "With `config: {max_retries: 3}` the step is retried after errors like this one, and waits as long as the "
    "provider asks."
)
_LISTED = 12
_DROPPED_FIRST = (_TOKENS, "cost", "repairs", "calls", "trust", "input trust")
"""The columns that a narrow terminal drops, in this order; step, status and time are always shown."""


def print_summary(result: RunResult, console: Console, *, allowed: bool = False) -> None:
    """Print the closing report of a run. The result itself is not part of it.

    `allowed` means that a degraded run is accepted.
    """
    console.print()
    console.print(_table(result, console))
    for part in (*_notes(result, console), _closing(result, allowed=allowed)):
        console.print()
        console.print(part)
    console.print()


def _table(result: RunResult, console: Console) -> Table:
    steps = [(step, repaired(step, repairs)) for step, repairs in repairs_by_step(result)]
    rows = [
        _summary_row(step.name, worded(step.status.value), step.trust, step.input_trust, repairs, step)
        for step, repairs in steps
    ]
    every = sum(repairs for _, repairs in steps)
    total = _summary_row("total", Text(), result.trust, None, every, result) | {"input trust": Text()}
    unused = {"calls", _TOKENS, "cost"} if not result.usage.requests else set[str]()
    if all(step.input_trust in (None, Trust.CLEAN) for step in result.steps):
        unused.add("input trust")  # adds nothing to the trust column
    return fitted_table(
        [{name: cell for name, cell in row.items() if name not in unused} for row in rows],
        console.width,
        dropped_first=_DROPPED_FIRST,
        folded={"step": 16},
        total=total,
    )


def _summary_row(
    name: str,
    status: Text,
    trust: str | None,
    input_trust: str | None,
    repairs: int,
    ended: StepResult[object] | RunResult,
) -> dict[str, Text]:
    """Return the row of a step, or of the whole run."""
    return {
        "step": Text(name),
        "status": status,
        "trust": worded(trust) if trust or status else Text(),
        "input trust": worded(input_trust),
        "repairs": figure(repairs),
        **used(ended.usage),
        "time": figure(time_words(ended.seconds or None)),
    }


def _notes(result: RunResult, console: Console) -> Iterator[RenderableType]:
    edits = [(step.name, edit) for step, repairs in repairs_by_step(result) for edit in numbered(repairs)]
    if edits:
        listed = [(name, edit.masked(without_secrets)) for name, edit in edits[:_LISTED]]
        rows = [repair_rows(listed, console.width - 2)]
        more = [Text(f"and {len(edits) - _LISTED} more: --json lists them all", style="dim")]
        yield _section("Repaired", *rows, *(more if len(edits) > _LISTED else []))
    recovered = [line for step in result.steps for line in _stages_that_ran(step)]
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


def _stages_that_ran(step: StepResult[object]) -> Iterator[Text]:
    """Yield the stages that ran, and the fallback, with the reasons, since their values look like any other in the
    table.
    """
    for stage in step.stages:
        why = f" ({stage.reason})" if stage.reason else ""
        calls = f"{step.name}: {stage.stage}, {counted(stage.calls, 'call')}, "
        yield Text.assemble(calls, worded(stage.outcome), why)
    if step.replaced is not None:
        yield Text(without_secrets(f"{step.name}: its fallback ran because it failed: {step.replaced}"))


def _excused_line(step: StepResult[object]) -> Text:
    """Return a line about a step that did not succeed, and the step that excuses it."""
    why = f": {step.error}" if step.error else ""
    return Text(without_secrets(f"{step.name} {step.status.value}, {step.excused_by} continues{why}"))


def _trouble(step: StepResult[object], width: int) -> Iterator[RenderableType]:
    """Yield the reason why a step returned no value, and advice."""
    if (rejected := rejection_of(step.outcome)) is not None:
        yield Text(f"{rejected.kind}, {reason_words(rejected)}")
        yield from reply_parts(ShownReply.of_outcome(rejected).masked(without_secrets), width, with_text=False)
        passing = may_pass(rejected) and step.attempts < 2
        words = next_words(rejected.reason, rejected.issues, asked=step.usage.requests > 0)
        yield Text(_REPEATED if passing else words, style="dim")
        return
    place = "" if step.exception is None else raised_at(step.exception.__traceback__)
    yield Text(without_secrets(f"{step.error or 'it ended without a message'}{place}"))
    if step.exception is not None and not isinstance(step.exception, ArosError):
        yield Text("aros --debug shows where it was raised.", style="dim")


def _closing(result: RunResult, *, allowed: bool) -> Text:
    status = result.status.value
    line = Text.assemble((status, f"bold {STYLES[status]}"), (f"  run {result.run_id}", "dim"))
    if result.status is RunStatus.DEGRADED:
        accepts = "" if allowed else "; --allow-degraded accepts that"
        line.append(f"\nA step returned its text instead of a value{accepts}.", style="dim")
    return line
