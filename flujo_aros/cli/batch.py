"""`aros run --input-jsonl`: one run for each row of a file. Resumable, and no row can stop another."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Generator, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, cast

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
from flujo_aros.cli.given import file_text, given_text
from flujo_aros.cli.interrupt import Interrupted, run_until_signal
from flujo_aros.cli.screen import stderr_console, stdout_reserved
from flujo_aros.cli.secrecy import new_mask, without_secrets
from flujo_aros.errors import BlueprintError, LocalModelError, UsageError
from flujo_aros.telemetry.words import counted
from flujo_aros.usage import Usage

if TYPE_CHECKING:
    from flujo_aros.pipeline.flow import Pipeline
    from flujo_aros.pipeline.runner import Runner

_ROW_KEYS: Final = frozenset({"id", "input", "context"})


@dataclass(frozen=True, slots=True)
class Batch:
    """What is run for each row, and where the results go."""

    blueprint: Path
    pipeline: Pipeline
    output: Path
    context: dict[str, Any]
    concurrency: int
    allow_degraded: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its id or its number from 0, its input, and the context of its own. Or what is wrong with it."""

    id: Any
    given: Any = None
    context: dict[str, Any] = field(default_factory=dict[str, Any])
    error: str | None = None

    @property
    def key(self) -> str:
        """The id as a key: 1 and "1" are two."""
        return json.dumps(self.id, sort_keys=True)


@dataclass(slots=True)
class _Tally:
    """How many rows have ended how."""

    good: int = 0
    bad: int = 0
    paused: int = 0

    def count(self, status: object, *, allow_degraded: bool) -> bool:
        """Count a row; whether it is all right."""
        right = status == "completed" or (allow_degraded and status == "degraded")
        self.good += right
        self.bad += not right
        self.paused += status == "paused"
        return right


def run_batch(batch: Batch, source: str) -> int:
    """Run all rows that are not in the output yet, and return the exit code."""
    rows = list(_rows(_text(source)))
    _refuse_twins(rows)
    _mend(batch.output)
    done = _done(batch.output)
    tally = _Tally()
    for status in (done[row.key] for row in rows if row.key in done):
        tally.count(status, allow_degraded=batch.allow_degraded)
    left = [row for row in rows if row.key not in done]
    console = stderr_console()
    if len(left) < len(rows):
        console.print(
            f"{counted(len(rows) - len(left), 'row')} of {len(rows)} in {batch.output} already", soft_wrap=True
        )
    try:
        with (
            stdout_reserved(),
            _bar(console, len(rows), len(rows) - len(left)) as bar,
            _appending(batch.output) as file,
        ):
            run_until_signal(_all(batch, left, _Writing(file, bar, tally, batch.allow_degraded)))
    except Interrupted:
        console.print("interrupted; run the same command again to go on", soft_wrap=True)
        raise
    words = f"{tally.good} completed, {tally.bad} not" if tally.bad else f"all {counted(tally.good, 'row')} completed"
    console.print(f"{words}; results in {batch.output}", soft_wrap=True)
    return 1 if tally.bad else 0


@dataclass(slots=True)
class _Writing:
    """Takes each result as it comes, one line each, on disk before the next one counts."""

    file: IO[str]
    bar: _Bar
    tally: _Tally
    allow_degraded: bool

    def take(self, row: Row, result: dict[str, Any]) -> None:
        """Write the line of a row."""
        self.file.write(json.dumps({"row": row.id, **result}, ensure_ascii=False) + "\n")
        self.file.flush()
        os.fsync(self.file.fileno())
        right = self.tally.count(result["status"], allow_degraded=self.allow_degraded)
        trouble = cast("dict[str, Any]", result["error"] or {})
        message = None if right else trouble.get("message") or result["status"]
        self.bar.advance(self.tally, None if message is None else without_secrets(f"row {row.key}: {message}"))


async def _all(batch: Batch, rows: list[Row], writing: _Writing) -> None:
    from flujo_aros.pipeline.runner import Runner

    async with AsyncExitStack() as held:
        kept = held.enter_context(journal())
        models = None
        if any(model.startswith("local:") for model in batch.pipeline.models):
            from flujo_aros.agents.local import LocalModels

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
        raise BlueprintError(str(batch.blueprint), [(None, str(error))]) from error
    return result.to_dict()


def _refused(batch: Batch, message: str) -> dict[str, Any]:
    return {
        "run_id": None,
        "blueprint": batch.pipeline.name,
        "status": "failed",
        "output": None,
        "steps": [],
        "usage": Usage().to_dict(),
        "error": {"step": None, "reason": None, "message": message},
    }


# Rows in, and rows that are there already


def _text(source: str) -> str:
    return given_text("-", "--input-jsonl") if source == "-" else file_text(source, "--input-jsonl")


def _rows(text: str) -> Iterator[Row]:
    lines = enumerate(text.removeprefix("\ufeff").split("\n"), start=1)
    for number, (line, words) in enumerate((line, words) for line, words in lines if words.strip()):
        try:
            found = json.loads(words)
        except (ValueError, RecursionError) as error:
            why = f"{error.msg}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
            yield Row(number, error=f"line {line} is not JSON: {why}")
            continue
        yield _row(number, found)


def _row(number: int, found: Any) -> Row:
    members = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    others = members.keys() - _ROW_KEYS
    if "input" not in members or others:
        meant = [(key, close[0]) for key in sorted(others) if (close := get_close_matches(key, _ROW_KEYS, 1, 0.75))]
        if "input" in members and meant:
            key, right = meant[0]
            return Row(number, error=f"unknown key {key!r} beside `input`; did you mean {right!r}?")
        return Row(number, found)
    context = cast("Any", members.get("context") or {})
    name = members.get("id", number)
    if not isinstance(context, dict):
        return Row(name, error=f"`context` is an object, not {context!r}")
    return Row(name, members["input"], cast("dict[str, Any]", context))


def _refuse_twins(rows: list[Row]) -> None:
    seen: dict[str, int] = {}
    for number, row in enumerate(rows):
        if row.key in seen:
            raise UsageError(f"--input-jsonl: rows {seen[row.key]} and {number} have the same id {row.key}")
        seen[row.key] = number


def _mend(output: Path) -> None:
    """Cut off a last line that a killed process has left unfinished: that row has no result."""
    if not output.is_file():
        return
    with output.open("rb+") as file:
        data = file.read()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            file.truncate(whole)


def _done(output: Path) -> dict[str, Any]:
    """The status of each row that has a line in the output, by key. Raises `UsageError` for another kind of file."""
    if not output.is_file():
        return {}
    found: dict[str, Any] = {}
    for number, line in enumerate(file_text(str(output), "--output").splitlines(), start=1):
        try:
            row = json.loads(line)
            found[json.dumps(row["row"], sort_keys=True)] = row["status"]
        except (ValueError, KeyError, TypeError) as error:
            message = f"--output: line {number} of {str(output)!r} is no result of a batch; give another file"
            raise UsageError(message) from error
    return found


@contextmanager
def _appending(output: Path) -> Generator[IO[str]]:
    try:
        file = output.open("a", encoding="utf-8", newline="\n")
    except OSError as error:
        message = f"--output: cannot write {str(output)!r}: {error.strerror or error}"
        raise UsageError(message) from error
    with file:
        yield file


# What is shown meanwhile


@dataclass(slots=True)
class _Bar:
    """How far the batch is: a bar in a terminal, a line for each row that did not complete anywhere else."""

    console: Console
    progress: Progress | None = None
    task: TaskID | None = None

    def advance(self, tally: _Tally, trouble: str | None) -> None:
        """One more row has ended."""
        if trouble is not None:
            self.console.print(trouble.splitlines()[0], style="yellow", soft_wrap=True)
        if self.progress is not None and self.task is not None:
            self.progress.update(self.task, advance=1, failed=f"{tally.bad} not completed" if tally.bad else "")


@contextmanager
def _bar(console: Console, total: int, done: int) -> Generator[_Bar]:
    if not console.is_terminal or console.is_dumb_terminal:
        yield _Bar(console)
        return
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("rows"), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("{task.fields[failed]}", style="yellow"), console=console) as shown:
        yield _Bar(console, shown, shown.add_task("rows", total=total, completed=done, failed=""))
