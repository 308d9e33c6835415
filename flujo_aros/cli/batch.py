"""`aros run --inputs`: one run for each row of a file. Resumable, and no row can stop another."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Self, cast
from uuid import uuid4

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

from flujo_aros.cli import arguments as args
from flujo_aros.cli.commands import Run
from flujo_aros.cli.execute import PAUSED, allowing, journal, save_paused
from flujo_aros.cli.interrupt import Interrupted, run_until_signal
from flujo_aros.cli.plan import with_positions
from flujo_aros.cli.screen import STDOUT, say, stderr_console, stdout_reserved
from flujo_aros.cli.shown import new_mask, without_secrets
from flujo_aros.errors import UsageError, file_errors
from flujo_aros.evals.cases import Case, CaseFile
from flujo_aros.evals.stop import Stop, run_all
from flujo_aros.pipeline.model import Pipeline
from flujo_aros.pipeline.pause import fingerprint
from flujo_aros.pipeline.runner import Runner
from flujo_aros.telemetry.formatting import cost_words, counted, seconds_words, time_words, token_words
from flujo_aros.usage import Usage

if TYPE_CHECKING:
    from flujo_aros.evals.replies import ReplyCache
    from flujo_aros.pipeline.per_minute import CallsPerMinute


# UTF-8 cannot encode a lone surrogate, so it is written as a JSON escape.
_AS_TEXT: Final[dict[str, Any]] = {"encoding": "utf-8", "errors": "backslashreplace", "newline": "\n"}


@dataclass(frozen=True, slots=True)
class Done:
    """A row with a line in the output: its status, its mark at that time, and the blueprint that ran it."""

    status: str
    mark: str
    run_id: str | None
    blueprint: str
    version: str
    """As of `version_of`; empty in a line that has none."""


class ResultsFile:
    """The results of a batch, as a context manager. New lines are only appended, each on disk before the next is
    counted.

    A row that ran again has two lines for a while, of which the later one counts; `tidy` then rewrites the file and
    replaces the old one atomically. Only one process at a time can use the file, since the lines of another process
    would be lost. The path `-` is stdout. Raises `UsageError` if it cannot be written, or another process is using it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_stdout = str(path) == "-"
        """Whether the lines go to stdout, where no later command finds them."""

    def __enter__(self) -> Self:
        with self._file_errors():
            self._file = self._open_results()
        return self

    def _open_results(self) -> TextIOWrapper:
        if self.is_stdout:  # a copy, because stdout itself is redirected while rows run
            copy: TextIOWrapper = os.fdopen(os.dup(STDOUT), "w", **_AS_TEXT)
            return copy
        while True:
            file: TextIOWrapper = self.path.open("a", **_AS_TEXT)
            self._lock(file)
            if os.path.samestat(self.path.stat(), os.fstat(file.fileno())):
                return file
            file.close()  # another process has replaced the file in the meantime

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def tidy(self) -> dict[str, Done]:
        """Keep one complete line for each row, and return the status of each row by its key.

        This removes an unfinished last line of a killed process, and the old lines of rows that ran again. It is safe
        to interrupt. Raises `UsageError` for a file of a different kind.
        """
        if self.is_stdout or not self.path.is_file():
            return {}
        done: dict[str, Done] = {}
        places: dict[str, tuple[int, int]] = {}
        number = at = 0
        with self._file_errors(), self.path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.endswith(b"\n"):
                    break
                key, done[key] = self._row(number, line)
                places[key] = (at, len(line))
                at += len(line)
            if len(places) < number:
                self._replace(_read_at(lines, place) for place in places.values())
        return done

    def add(self, row: Case, result: dict[str, Any], version: str) -> None:
        """Write the line of a row and flush it to disk."""
        line = {"row": row.id, **result, "mark": row.mark, "version": version}
        self._file.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._file.flush()
        with suppress(OSError):  # a pipe is not on a disk
            os.fsync(self._file.fileno())

    def _replace(self, lines: Iterable[bytes]) -> None:
        real = self.path.resolve()  # keep a symbolic link
        new = real.with_name(f"{real.name}.{os.getpid()}.new")
        file = new.open("w", **_AS_TEXT)
        try:
            self._lock(file)
            new.chmod(real.stat().st_mode & 0o7777)
            for line in lines:
                file.buffer.write(line)
            file.flush()
            os.fsync(file.fileno())
            new.replace(real)
            self._file, file = file, self._file
        finally:
            file.close()
            new.unlink(missing_ok=True)

    def _lock(self, file: TextIOWrapper) -> None:
        """Lock the file until it is closed. Raises `UsageError` if another process has locked it.

        Any number of processes may write to a device or a pipe, such as /dev/null.
        """
        if sys.platform == "win32" or not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return
        import fcntl  # imported here, because Windows does not have it

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            message = f"--output: another process writes to {str(self.path)!r}; wait for it, or use another file"
            raise UsageError(message) from None
        except OSError:  # a file system without locks
            return

    def _row(self, number: int, line: bytes) -> tuple[str, Done]:
        try:
            row = cast("dict[str, Any]", json.loads(line))
            others = (row.get("mark", ""), row.get("run_id"), row["blueprint"], row.get("version", ""))
            return json.dumps(row["row"], sort_keys=True), Done(row["status"], *others)
        except (ValueError, KeyError, TypeError) as error:
            message = f"--output: line {number} of {str(self.path)!r} is not a result of a batch; use another file"
            raise UsageError(message) from error

    def _file_errors(self) -> AbstractContextManager[None]:
        return file_errors(f"--output: cannot write {str(self.path)!r}")


def _read_at(file: IO[bytes], place: tuple[int, int]) -> bytes:
    file.seek(place[0])
    return file.read(place[1])


_WAITS: Final = "paused"
"""The status of a row that is paused, which is not a failure: if the row ran again, it would only ask again."""
_ORDER: Final = ("completed", "degraded", "failed", "cancelled", "paused")
_SHOWN: Final = 5
_NAMED: Final = 24
"""The maximum length of the row's id at the beginning of its run's id."""


def version_of(pipeline: Pipeline, context: Mapping[str, Any]) -> str:
    """Return a hash of all that the results of equal rows depend on, except for the code of functions."""
    described = json.dumps([fingerprint(pipeline), context], sort_keys=True)
    return hashlib.sha256(described.encode()).hexdigest()[:16]


def run_batch(options: Run, pipeline: Pipeline, context: dict[str, Any], source: str, output: Path) -> int:
    """Run the rows that have no result yet or are to be retried. Returns the exit code."""
    from flujo_aros.pipeline.per_minute import CallsPerMinute

    deps = args.given_deps(options)
    cost = None if options.max_cost is None else Decimal(str(options.max_cost))
    stop = Stop(cost, options.max_failures, options.max_same_failures or None, case="row")
    with args.open_cache(options.cache) as cache, CaseFile(source, "--inputs") as rows, ResultsFile(output) as results:
        limits = CallsPerMinute(args.per_minute(options, pipeline.models), on_wait=_report_wait)
        version = version_of(pipeline, context)
        batch = _Batch(options, pipeline, context, version, deps, results, cache, limits, stop)
        done = results.tidy()
        kept = batch.keep(rows, done)
        # Rows that never ran come first, so that --max-failures cannot stop at the same failures each time.
        new = (row for row in rows if row.key not in done)
        retried = (row for row in rows if row.key in done and row.key not in kept)
        known = batch.tally.total()
        if known:
            say(f"{counted(known, 'row')} of {rows.total:,} in {output} already")
        if batch.older:
            say(f"{counted(batch.older, 'result')} kept from before the blueprint, its models or --set changed")
        try:
            with stdout_reserved(), progress_of(stderr_console(), rows.total, known) as batch.bar:
                run_until_signal(batch.run(chain(new, retried), rows.total - known))
        except Interrupted:
            left = rows.total - batch.tally.total()
            again = "" if results.is_stdout else "; the same command continues with them"
            say(f"interrupted, {left:,} of {counted(rows.total, 'row')} left{again}")
            raise
        finally:
            results.tidy()
            batch.print_totals()
        batch.print_ended(rows.total)
    whole = batch.tally.total() == rows.total
    return 0 if whole and all(map(batch.is_right, batch.tally)) else 1


@dataclass(slots=True)
class _Batch:
    """A batch in progress. Each result is on disk, as one line, before the next one is counted."""

    options: Run
    pipeline: Pipeline
    context: dict[str, Any]
    version: str
    deps: Any
    results: ResultsFile
    cache: ReplyCache | None
    limits: CallsPerMinute
    stop: Stop
    tally: Counter[str] = field(default_factory=Counter[str])
    paused: list[str] = field(default_factory=list[str])
    """The ids of the runs that wait for an answer."""
    bar: Bar | None = None
    ended: int = 0
    ended_late: int = 0
    """The number of rows that were in progress when the batch stopped."""
    older: int = 0
    """The number of kept results from before the blueprint changed."""
    used: Usage = field(default_factory=Usage)
    began: float = field(default_factory=time.monotonic)

    def is_right(self, status: str) -> bool:
        """Return whether a row with this status counts as completed."""
        return status == "completed" or (self.options.allow_degraded and status == "degraded")

    def _bad(self) -> int:
        return sum(number for status, number in self.tally.items() if not self.is_right(status))

    def keep(self, rows: CaseFile, done: Mapping[str, Done]) -> set[str]:
        """Count the rows that do not run again, and return their keys.

        Raises `UsageError` for a result of another blueprint or of another version of it, and for a row that has
        changed since it completed, unless changed rows are to be retried.
        """
        kept: set[str] = set()
        for row in rows if done else ():
            known = done.get(row.key)
            if known is None:
                continue
            right = self.is_right(known.status)
            changed = right and known.mark not in ("", row.mark)
            if self.options.retry_failed and known.status != _WAITS and (changed or not right):
                continue
            self._reject_other_blueprint(known)
            if changed:
                moved = ". Rows with an `id` keep their results when lines move" if isinstance(row.id, int) else ""
                raise UsageError(
                    f"--inputs: row {row.key} has changed since its result was written to {str(self.results.path)!r}. "
                    f"Pass --retry-failed to run changed rows again, or another --output{moved}"
                )
            kept.add(row.key)
            self.tally[known.status] += 1
            if known.status == _WAITS and known.run_id:
                self.paused.append(known.run_id)
        return kept

    def _reject_other_blueprint(self, known: Done) -> None:
        """Raise `UsageError` for a result that this blueprint, as it is now, would not have given. One of an earlier
        version is kept if the failed rows are to be retried.
        """
        file, name = repr(str(self.results.path)), repr(self.pipeline.name)
        if known.blueprint != self.pipeline.name:
            raise UsageError(
                f"--output: {file} has results of the blueprint {known.blueprint!r}, not of {name}. "
                "Pass another --output"
            )
        if known.version not in ("", self.version):
            self.older += 1
            if not self.options.retry_failed:
                raise UsageError(
                    f"--output: {file} has results of the blueprint {name} from before it, its models or --set "
                    "changed. Pass --retry-failed to keep them and run only the other rows, or another --output; with "
                    "--cache in both commands, only the calls of changed steps are paid again"
                )

    async def run(self, rows: Iterator[Case], number: int) -> None:
        """Run these rows."""
        if not number:
            return
        async with runner_of(self.pipeline) as runner:
            concurrency = min(self.options.concurrency, number)
            await run_all(rows, partial(self._run_row, runner), self._take, concurrency=concurrency, stop=self.stop)

    async def _run_row(self, runner: Runner, row: Case) -> _Result:
        """Run one row and return its result. Errors in the blueprint itself are raised, since they would affect every
        row.
        """
        from flujo_aros.evals.replies import PaidCalls
        from flujo_aros.host import record_calls

        if row.error is not None:
            return self._rejected_row(row.error)
        try:
            row_input = row.live_input()
        except UsageError as error:
            return self._rejected_row(str(error))
        calls = PaidCalls(self.limits, self.cache)
        with with_positions(self.options.blueprint), record_calls(calls):
            result = await runner.run(row_input, {**self.context, **row.context}, self.deps, run_id=run_id_of(row))
        if result.paused is not None:
            place = {"results": str(self.results.path.resolve()), "id": row.id}
            where = {**place, "mark": row.mark, "version": self.version}
            save_paused(result, self.options.blueprint, row=None if self.results.is_stdout else where)
        return _Result(result.to_dict(), result.usage, calls.paid(result.usage))

    def _rejected_row(self, message: str) -> _Result:
        """Return the result of a row that cannot be run."""
        error = {"step": None, "reason": None, "message": message}
        ended = {"run_id": None, "blueprint": self.pipeline.name, "status": "failed", "trust": None, "output": None}
        return _Result({**ended, "steps": [], "usage": Usage().to_dict(), "error": error})

    def _take(self, row: Case, result: _Result) -> None:
        """Write the line of a row, and count it."""
        self.results.add(row, result.document, self.version)
        status: str = result.document["status"]
        self.tally[status] += 1
        self.ended += 1
        self.ended_late += self.stop.reason is not None
        self.used += result.used
        if status == _WAITS:
            self.paused.append(result.document["run_id"])
        right = self.is_right(status)
        trouble = cast("dict[str, Any]", result.document["error"] or {})
        message = trouble.get("message") or status
        self.stop.ended(result.paid, None if right or status == _WAITS else str(message))
        # the message of a row that cannot be run names its line
        where = "" if result.document["run_id"] is None else f"row {row.key}{row.place}: "
        if self.bar is not None:
            self.bar.advance(self._bad(), None if right else without_secrets(f"{where}{message}"))

    def print_totals(self) -> None:
        """Print the usage of the rows in this command."""
        if not self.ended:
            return
        used, paid = self.used, self.stop.paid
        parts = [f"{counted(self.ended, 'row')} in {time_words(time.monotonic() - self.began)}"]
        if used.requests:
            parts += [counted(used.requests, "call"), f"{token_words(used)} tokens", cost_words(used.cost)]
        saved = used.requests - paid.requests
        if saved:
            parts += [f"{counted(saved, 'call')} from the cache", f"{cost_words(paid.cost)} paid"]
        # Without unknown figures, which would be "- tokens", or "-" for the cost.
        say(", ".join(part for part in parts if not part.startswith("-")))

    def print_ended(self, total: int) -> None:
        """Print the number of rows by status, and advice for those that failed, are waiting, or never ran."""
        tally, file = self.tally, self.results.path
        words = ", ".join(f"{tally[status]:,} {status}" for status in _ORDER if tally[status])
        if not total:
            words = "there are no rows"
        elif tally["completed"] == total:
            words = f"all {counted(total, 'row')} completed"
        say(words if self.results.is_stdout else f"{words}; results in {file}")
        left = total - tally.total()
        if left and self.stop.reason:
            late = f"; {counted(self.ended_late, 'row')} in progress ended after that" if self.ended_late else ""
            say(f"stopped: {without_secrets(self.stop.reason)}{late}", style="yellow")
            rows, them = ("1 row was", "it") if left == 1 else (f"{left:,} rows were", "them")
            say(f"{rows} not run" + ("" if self.results.is_stdout else f"; the same command continues with {them}"))
        again = self._bad() - tally[_WAITS]
        if again:
            them = "it" if again == 1 else "them"
            option = "" if self.options.retry_failed else " with --retry-failed"
            how = "" if self.results.is_stdout else f": the same command{option} runs {them} again"
            say(f"{counted(again, 'row')} did not complete{how}")
        if self.paused:
            rows = "1 row is waiting" if len(self.paused) == 1 else f"{len(self.paused):,} rows are waiting"
            where = "prints the result" if self.results.is_stdout else f"writes the result to {file}"
            say(f"{rows} for an answer; answering {where}:")
            for run_id in self.paused[:_SHOWN]:
                say(f"  aros resume {PAUSED / f'{run_id}.json'} --answer TEXT{allowing(self.options)}")
            if len(self.paused) > _SHOWN:
                say(f"  and {len(self.paused) - _SHOWN:,} more in {PAUSED}")


def run_id_of(row: Case) -> str:
    """Return a new id for a run of this row. It begins with the row's own id, so that lists of runs show it."""
    name = re.sub(r"[^\w.]+", "-", str(row.id))[:_NAMED].strip("-.")
    return "-".join(each for each in (name, uuid4().hex) if each)


@dataclass(frozen=True, slots=True)
class _Result:
    """The document of a run, the usage of its replies, and the part of that usage that this command paid for."""

    document: dict[str, Any]
    used: Usage = field(default_factory=Usage)
    paid: Usage = field(default_factory=Usage)


@asynccontextmanager
async def runner_of(*pipelines: Pipeline) -> AsyncGenerator[Runner]:
    """Create a runner of the first pipeline with the journal, and one engine for the local models of all of them."""
    async with AsyncExitStack() as held:
        kept = held.enter_context(journal())
        models = None
        local = [model for pipeline in pipelines for model in pipeline.models if model.startswith("local:")]
        if local:
            from flujo_aros.host.local import LocalModels, check_local

            check_local(local)
            models = await held.enter_async_context(LocalModels())
        observers = (new_mask().hear, *kept.observers)
        yield Runner(pipelines[0], observers=observers, models=models, evidence=kept.evidence)


def _report_wait(provider: str, seconds: float) -> None:
    if seconds >= _LONG_WAIT:
        say(f"calls to {provider} wait {seconds_words(seconds)} for its limit")


_LONG_WAIT: Final = 2.0
"""The number of seconds of a wait that is reported."""
_EVERY: Final = 30.0
"""The number of seconds between two lines of progress without a terminal."""


@dataclass(slots=True)
class Bar:
    """The progress of the rows: a bar in a terminal; elsewhere a line twice a minute, and one for each problem."""

    console: Console
    total: int
    done: int
    progress: Progress | None = None
    task: TaskID | None = None
    clock: Callable[[], float] = time.monotonic
    before: int = field(init=False)
    began: float = field(init=False)
    said: float = field(init=False)

    def __post_init__(self) -> None:
        self.before = self.done
        self.began = self.said = self.clock()

    def advance(self, bad: int, trouble: str | None, what: str = "not completed") -> None:
        """Count a finished row, and whether it succeeded."""
        self.done += 1
        if trouble is not None:
            self.console.print(trouble.splitlines()[0], style="yellow", soft_wrap=True)
        failed = f"{bad:,} {what}" if bad else ""
        if self.progress is not None and self.task is not None:
            self.progress.update(self.task, advance=1, failed=failed)
            return
        now = self.clock()
        if now - self.said >= _EVERY and self.done < self.total:
            self.said = now
            left = (now - self.began) / (self.done - self.before) * (self.total - self.done)
            parts = [f"{self.done:,} of {self.total:,} rows", failed, f"about {seconds_words(left)} left"]
            self.console.print(", ".join(filter(None, parts)), soft_wrap=True)


@contextmanager
def progress_of(console: Console, total: int, done: int = 0) -> Generator[Bar]:
    """Show the progress of the rows while the block runs."""
    if not console.is_terminal or console.is_dumb_terminal:
        yield Bar(console, total, done)
        return
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("rows"), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("{task.fields[failed]}", style="yellow"), console=console) as progress:
        yield Bar(console, total, done, progress, progress.add_task("rows", total=total, completed=done, failed=""))
