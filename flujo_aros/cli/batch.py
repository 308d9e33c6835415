"""`aros run --input-jsonl`: one run for each row of a file. Resumable, and no row can stop another."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from flujo_aros.cli.execute import journal
from flujo_aros.cli.interrupt import Interrupted, run_until_signal
from flujo_aros.cli.plan import blamed
from flujo_aros.cli.rows import Done, ResultsFile, Row, read_rows
from flujo_aros.cli.screen import new_mask, stderr_console, stdout_reserved, without_secrets
from flujo_aros.errors import BlueprintError, LocalModelError, UsageError
from flujo_aros.telemetry.formatting import counted
from flujo_aros.usage import Usage

if TYPE_CHECKING:
    from flujo_aros.pipeline.model import Pipeline
    from flujo_aros.pipeline.runner import Runner

_GOES_ON: Final = "paused"
"""A row that waits for an answer has not failed: run again, it would ask again."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What is run for each row, and where the results go."""

    blueprint: Path
    pipeline: Pipeline
    output: Path
    context: dict[str, Any]
    concurrency: int
    allow_degraded: bool = False
    retry_failed: bool = False

    def is_right(self, status: str) -> bool:
        """Whether a row that ended so is all right."""
        return status == "completed" or (self.allow_degraded and status == "degraded")


def run_batch(batch: Batch, source: str) -> int:
    """Run all rows that are not in the output yet, or have failed and are to run again, and return the exit code."""
    rows = read_rows(source)
    console = stderr_console()
    with ResultsFile(batch.output) as results:
        done = results.tidy()
        left = [row for row in rows if _is_left(batch, done.get(row.key))]
        kept = {row.key: done[row.key] for row in rows if not _is_left(batch, done.get(row.key))}
        _refuse_changed(batch, rows, kept)
        tally = Counter(each.status for each in kept.values())
        if kept:
            console.print(f"{counted(len(kept), 'row')} of {len(rows)} in {batch.output} already", soft_wrap=True)
        try:
            with stdout_reserved(), _bar(console, len(rows), len(kept)) as bar:
                run_until_signal(_all(batch, left, _Writing(batch, results, bar, tally)))
        except Interrupted:
            console.print("interrupted; run the same command again to go on", soft_wrap=True)
            raise
        finally:
            results.tidy()
    _print_ended(batch, tally, console)
    return 0 if all(batch.is_right(status) for status in tally) else 1


def _is_left(batch: Batch, done: Done | None) -> bool:
    """Whether a row is to run."""
    if done is None:
        return True
    return batch.retry_failed and done.status != _GOES_ON and not batch.is_right(done.status)


def _refuse_changed(batch: Batch, rows: list[Row], kept: Mapping[str, Done]) -> None:
    """Raise `UsageError` for a row whose result would be that of another: lines have moved, or were rewritten."""
    for row in rows:
        done = kept.get(row.key)
        if done is not None and done.mark not in ("", row.mark) and batch.is_right(done.status):
            message = (
                f"--input-jsonl: row {row.key} is not the one whose result is in {str(batch.output)!r}: it has changed "
                "since; give another --output, and rows an `id`, which stays theirs when lines move"
            )
            raise UsageError(message)


def _print_ended(batch: Batch, tally: Counter[str], console: Console) -> None:
    """How many rows have ended how, and what can be done about those that have failed."""
    total = tally.total()
    words = ", ".join(f"{tally[status]} {status}" for status in _ORDER if tally[status])
    if not total:
        words = "there are no rows"
    elif tally["completed"] == total:
        words = f"all {counted(total, 'row')} completed"
    console.print(f"{words}; results in {batch.output}", soft_wrap=True)
    again = sum(number for status, number in tally.items() if status != _GOES_ON and not batch.is_right(status))
    if again:
        them = "it" if again == 1 else "them"
        console.print(
            f"{counted(again, 'row')} did not complete: the same command with --retry-failed runs {them} again",
            soft_wrap=True,
        )


_ORDER: Final = ("completed", "degraded", "failed", "cancelled", "paused")


@dataclass(slots=True)
class _Writing:
    """Takes each result as it comes, one line each, on disk before the next one counts."""

    batch: Batch
    results: ResultsFile
    bar: _Bar
    tally: Counter[str]

    def take(self, row: Row, result: dict[str, Any]) -> None:
        """Write the line of a row."""
        self.results.add(row, result)
        status: str = result["status"]
        self.tally[status] += 1
        right = self.batch.is_right(status)
        trouble = cast("dict[str, Any]", result["error"] or {})
        message = None if right else without_secrets(f"row {row.key}: {trouble.get('message') or status}")
        bad = sum(number for each, number in self.tally.items() if not self.batch.is_right(each))
        self.bar.advance(bad, message)


async def _all(batch: Batch, rows: list[Row], writing: _Writing) -> None:
    from flujo_aros.pipeline.runner import Runner

    async with AsyncExitStack() as held:
        kept = held.enter_context(journal())
        models = None
        local = [model for model in batch.pipeline.models if model.startswith("local:")]
        if local:
            from flujo_aros.host.local import LocalModels, check_local

            check_local(local)
            models = await held.enter_async_context(LocalModels())  # one engine for all rows
        hear = new_mask().hear
        observers, evidence = ((hear,), None) if kept is None else ((hear, kept), kept.evidence)
        runner = Runner(batch.pipeline, observers=observers, models=models, evidence=evidence)
        waiting = iter(rows)
        async with asyncio.TaskGroup() as group:
            for _ in range(min(batch.concurrency, len(rows))):
                group.create_task(_work(batch, runner, waiting, writing))


async def _work(batch: Batch, runner: Runner, waiting: Iterator[Row], writing: _Writing) -> None:
    for row in waiting:
        writing.take(row, await _one(batch, runner, row))


async def _one(batch: Batch, runner: Runner, row: Row) -> dict[str, Any]:
    """The result of one row. What is wrong with the blueprint itself is raised: it would be so for every row."""
    if row.error is not None:
        return _refused(batch, row.error)
    try:
        result = await runner.run(row.given, {**batch.context, **row.context})
    except (LocalModelError, BlueprintError):
        raise
    except UsageError as error:
        raise blamed(batch.blueprint, error) from error
    return result.to_dict()


def _refused(batch: Batch, message: str) -> dict[str, Any]:
    return {
        "run_id": None,
        "blueprint": batch.pipeline.name,
        "status": "failed",
        "trust": None,
        "output": None,
        "steps": [],
        "usage": Usage().to_dict(),
        "error": {"step": None, "reason": None, "message": message},
    }


@dataclass(slots=True)
class _Bar:
    """How far the batch is: a bar in a terminal, a line for each row that did not complete anywhere else."""

    console: Console
    progress: Progress | None = None
    task: TaskID | None = None

    def advance(self, bad: int, trouble: str | None) -> None:
        """One more row has ended; so many did not complete."""
        if trouble is not None:
            self.console.print(trouble.splitlines()[0], style="yellow", soft_wrap=True)
        if self.progress is not None and self.task is not None:
            self.progress.update(self.task, advance=1, failed=f"{bad} not completed" if bad else "")


@contextmanager
def _bar(console: Console, total: int, done: int) -> Generator[_Bar]:
    if not console.is_terminal or console.is_dumb_terminal:
        yield _Bar(console)
        return
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("rows"), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("{task.fields[failed]}", style="yellow"), console=console) as shown:
        yield _Bar(console, shown, shown.add_task("rows", total=total, completed=done, failed=""))
