"""One run from the command line: its observers and progress, the question and the state of a paused run, its exit code.

The progress is a live display in a terminal, and one plain line for each change elsewhere.
"""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping
from contextlib import ExitStack, aclosing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table

from flujo_aros import events
from flujo_aros.cli.commands import Deps, Models, Modules
from flujo_aros.cli.interrupt import INTERRUPTED, Interrupted, run_until_signal
from flujo_aros.cli.plan import with_positions
from flujo_aros.cli.question import asked, example_answer
from flujo_aros.cli.render import print_summary
from flujo_aros.cli.screen import Text, print_json, print_result, say, stderr_console, stdout_reserved, worded
from flujo_aros.cli.shown import new_mask, show_traceback, without_secrets
from flujo_aros.ensemble.log import LogEvent
from flujo_aros.ensemble.views import stage_line
from flujo_aros.errors import UsageError
from flujo_aros.pipeline.model import Pipeline
from flujo_aros.pipeline.results import PausedRun, RunResult, RunStatus
from flujo_aros.pipeline.runner import Runner, StreamEvent
from flujo_aros.settings import read_settings
from flujo_aros.telemetry.formatting import counted, seconds_words, time_words

if TYPE_CHECKING:
    from flujo_aros.durable import Durable
    from flujo_aros.evals.replies import ReplyCache
    from flujo_aros.telemetry.setup import Listeners


EXIT_CODES: Final = {
    RunStatus.COMPLETED: 0,
    RunStatus.DEGRADED: 1,
    RunStatus.FAILED: 1,
    RunStatus.PAUSED: 3,
    RunStatus.CANCELLED: INTERRUPTED,
}

PAUSED: Final = Path(".aros") / "paused"
"""The folder of the states of paused runs."""


@contextmanager
def journal() -> Generator[Listeners]:
    """Open the observers besides the terminal: the journal, and OpenTelemetry if the environment configures it.

    The run that creates a journal prints a notice, since a journal contains prompts and replies.
    """
    from flujo_aros.telemetry.setup import listening

    with listening(read_settings()) as kept:
        if kept.new_journal is not None:
            words = f"prompts and replies of runs are recorded in {kept.new_journal}, with secrets masked"
            say(f"{words}; AROS_JOURNAL=off turns this off", style="dim")
        yield kept


def execute(
    blueprint: Path,
    pipeline: Pipeline,
    run: Callable[[Runner], Coroutine[Any, Any, RunResult]],
    stream: Callable[[Runner], AsyncGenerator[StreamEvent]] | None = None,
    *,
    as_json: bool,
    engine: Durable | None = None,
    cache: ReplyCache | None = None,
    prepare: Callable[[Runner], object] = lambda _: None,
) -> RunResult:
    """Run with progress and a journal, and report a run that is interrupted.

    `stream` is the same run as a stream, by which a terminal shows each reply while it is written. `engine` stores a
    run that survives a crash or a signal; `prepare` registers its runner. `cache` has replies that need not be paid for
    again.
    Raises `BlueprintError` for errors that can be found before any model call.
    """
    from flujo_aros.evals.replies import PaidCalls
    from flujo_aros.host import record_calls
    from flujo_aros.pipeline.per_minute import CallsPerMinute

    console = stderr_console()
    ended: list[RunResult] = []
    try:
        with ExitStack() as held:
            if engine is None:  # otherwise its database or its version may be the cause
                held.enter_context(with_positions(blueprint))
            held.enter_context(stdout_reserved())
            if cache is not None:
                held.enter_context(record_calls(PaidCalls(CallsPerMinute(), cache)))
            kept = held.enter_context(journal())
            watching = held.enter_context(progress(console))
            observers, evidence = (new_mask().hear, watching, *kept.observers), kept.evidence
            runner = Runner(pipeline, observers=observers, on_result=ended.append, evidence=evidence, engine=engine)
            prepare(runner)
            main = (
                run(runner)
                if stream is None or not isinstance(watching, Board)
                else _run_and_show(watching, stream(runner))
            )
            return run_until_signal(main) if engine is None else run_until_signal(main, engine.leave)
    except Interrupted:
        for result in ended:
            spent = f"after {time_words(result.seconds)} and {counted(result.usage.requests, 'call')}"
            if engine is None:
                say(f"{result.status.value}  run {result.run_id}, {spent}")
            else:
                say(f"interrupted  run {result.run_id}, {spent}; the same command continues it")
            if as_json:
                print_json(result.to_dict())
        raise


async def _run_and_show(board: Board, stream: AsyncGenerator[StreamEvent]) -> RunResult:
    """Run, and show each reply while it is written."""
    result: RunResult | None = None
    async with aclosing(stream) as shown:
        async for each in shown:
            if isinstance(each.event, events.RunFinished) and isinstance(each.result, RunResult):
                result = each.result
            elif each.step is not None:
                board.written(each.step, each.event)
    if result is None:
        raise AssertionError("the stream ended without a result")
    return result


def finish(
    result: RunResult,
    *,
    as_json: bool,
    allow_degraded: bool = False,
    question: str = "",
    show: Callable[[Any], None] = print_result,
    answered: PausedRun | None = None,
) -> None:
    """Print the result of a run, and its question if it paused, and exit with its exit code.

    If the run has rejected the answer to the pause `answered`, print only the reason and the question.
    """
    paused = result.paused
    asks_again = answered is not None and paused is not None and paused.rejected and paused.step == answered.step
    if as_json:
        print_json(result.to_dict())
    elif not asks_again:
        print_summary(result, stderr_console())
        if result.status is RunStatus.COMPLETED or (allow_degraded and result.status is RunStatus.DEGRADED):
            show(result.to_dict()["output"])
    if question:
        say(without_secrets(question))
    for step in result.steps:
        if step.exception is not None:
            show_traceback(step.exception)
    if not (allow_degraded and result.status is RunStatus.DEGRADED):
        raise typer.Exit(EXIT_CODES[result.status])


def _write_private(file: Path, text: str) -> None:
    """Write a file that only its owner can read, since a state contains everything that a run has seen.

    An existing state is kept until the new one is complete.
    """
    from flujo_aros.database import make_folder_of  # imported here, because SQLAlchemy is slow to import

    make_folder_of(file)
    if file.exists() and not file.is_file():  # a pipe, or /dev/stderr: it cannot be replaced
        file.write_text(text, encoding="utf-8")
        return
    real = file.resolve()  # keep a symbolic link
    new = real.with_name(f"{real.name}.{os.getpid()}.new")
    try:
        new.touch(mode=0o600)
        new.write_text(text, encoding="utf-8")
        new.replace(real)
    finally:
        new.unlink(missing_ok=True)


def allowing(options: Modules, *, models: bool = True) -> str:
    """Return the options that repeat the same permissions, models and deps, for a command line."""
    pairs: list[tuple[str, Any]] = [("--allow", each) for each in options.allow]
    pairs += [("--path", each) for each in options.folders]
    if models and isinstance(options, Models):
        pairs += [*(("--model", each) for each in options.models), ("--profile", options.profile)]
    if isinstance(options, Deps):
        pairs.append(("--deps", options.deps))
    return "".join(f" {name} {shlex.quote(str(value))}" for name, value in pairs if value is not None)


def keep_paused(
    result: RunResult, blueprint: Path, state: Path | None, allowed: str, **more: Mapping[str, Any] | None
) -> str:
    """Save the state of a paused run. Returns its question and how to answer, or an empty string if it has not paused.

    `allowed` are the options of the command that continues it. `more` is as in `save_paused`.
    """
    if result.paused is None:
        return ""
    file = save_paused(result, blueprint, state, **more)
    return question_with(result.paused, f"aros resume {shlex.quote(str(file))} --answer TEXT{allowed}")


def question_with(paused: PausedRun, command: str) -> str:
    """Return the question of a paused run, the command that answers it, and an example of an answer if one is known."""
    example = example_answer(paused.input_schema or {})
    known = [] if example is None else [f"for example:  --answer {shlex.quote(example)}"]
    return "\n".join([*asked(paused), "", f"continue with:   {command}", *known])


def save_paused(
    result: RunResult, blueprint: Path, state: Path | None = None, **more: Mapping[str, Any] | None
) -> Path:
    """Save the state of a paused run. Returns the file. Raises `UsageError` if it cannot be written.

    `more` is saved with it: `row`, where the result of a row of a batch belongs, or the options of `ensemble`.
    """
    file = state or PAUSED / f"{result.run_id}.json"
    paused = None if result.paused is None else result.paused.to_dict()
    saved: dict[str, Any] = {"blueprint": str(blueprint.resolve()), "paused": paused}
    saved |= {name: dict(each) for name, each in more.items() if each is not None}
    try:
        _write_private(file, json.dumps(saved, ensure_ascii=False, indent=2) + "\n")
    except OSError as error:
        why = f"its state cannot be written to {str(file)!r}: {error.strerror or error}"
        raise UsageError(f"the run has paused, and {why}; name another file with --state") from error
    return file


Clock = Callable[[], float]

_KEPT: Final = 2_000
_NAMES: Final = 45
_LEAST: Final = 20
"""The length of a reply to keep, the width of the rest of a row, and the minimum length to show."""
_QUIET: Final = ("success", "skipped")
"""The statuses of nested steps that need no line without a terminal."""


@contextmanager
def progress(console: Console, clock: Clock = time.monotonic) -> Generator[events.Observer]:
    """Provide an observer that shows the steps of a run on this console while the block runs."""
    if not console.is_terminal or console.is_dumb_terminal:
        yield PlainProgress(console)
        return
    board = Board(clock, lambda line: console.print(line, soft_wrap=True))
    with Live(board, console=console, transient=True, refresh_per_second=8):
        yield board


@dataclass(frozen=True, slots=True)
class PlainProgress:
    """Prints one line when a step of the pipeline starts, when it ends, and for each stage of a recovery.

    Nested steps have a line only if they fail, since a map may have thousands of them.
    """

    console: Console

    def __call__(self, event: events.Event, /) -> None:
        """Print the line of an event, if it has one."""
        nested = len(event.scope.steps) > 1
        if isinstance(event, events.StepStarted):
            if not nested:
                self._line(event.name, "started")
        elif isinstance(event, events.StepFinished):
            if nested and event.status in _QUIET:
                return
            ended = ", ".join(word for word in (event.status, event.trust or event.reason) if word)
            self._line(event.name, f"{ended}, {time_words(event.seconds)}")
        elif isinstance(event, events.StageStarted):
            self._line(event.scope.step_name or "run", f"trying {event.stage} ({event.reason})")
        elif isinstance(event, events.StepNoted) and event.note == "ensemble":
            self.console.print(event_line(event), soft_wrap=True)

    def _line(self, name: str, what: str) -> None:
        self.console.print(f"{name}: {what}", soft_wrap=True)


def event_line(event: events.StepNoted) -> Text:
    """Return an event of an ensemble as one line."""
    logged = LogEvent(**event.data)
    line = without_secrets(stage_line(logged))
    who, colon, what = line.partition(": ") if line.startswith(f"{logged.actor}: ") else ("", "", line)
    return Text.assemble((f"{logged.turn:>4}  ", "dim"), (f"{who}{colon}", "bold"), what)


@dataclass(slots=True)
class _Row:
    """One step on the board."""

    started: float
    doing: str = ""
    text: str = ""
    ended: events.StepFinished | None = None


class Board:
    """The steps of a run, redrawn at every refresh: running steps with their stage, settled steps with their status."""

    def __init__(self, clock: Clock, say: Callable[[Text], object] = lambda _: None) -> None:
        self.clock = clock
        self.say = say
        """Prints a line above the board, such as an utterance of an ensemble."""
        self.rows: dict[str, _Row] = {}
        self.spinners: dict[str, Spinner] = {}

    def __call__(self, event: events.Event, /) -> None:
        """Receive an event."""
        if isinstance(event, events.StepStarted):
            self.rows[event.name] = _Row(self.clock())
        elif isinstance(event, events.StepFinished):
            self.rows.setdefault(event.name, _Row(self.clock())).ended = event
        elif isinstance(event, events.StageStarted):
            self._doing(event, f"trying {event.stage} ({event.reason})")
        elif isinstance(event, events.AskStarted) and event.stage != "first":
            self._doing(event, f"{event.stage}, attempt {event.attempt}")
        elif isinstance(event, events.StageFinished):
            self._doing(event, "")
        elif isinstance(event, events.StepNoted) and event.note == "ensemble":
            self.say(event_line(event))

    def written(self, step: str, event: object) -> None:
        """Update the reply of a step as it grows."""
        row = self.rows.get(step)
        if row is None:
            return
        if isinstance(event, (events.TextDelta, events.TextAppended)):
            row.text = (row.text + event.text)[-_KEPT:]
        elif isinstance(event, events.TextReplaced):
            row.text = event.text[-_KEPT:]

    def _doing(self, event: events.Event, what: str) -> None:
        row = self.rows.get(event.scope.step_name)
        if row is not None and row.ended is None:
            row.doing = what

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the board."""
        table = Table.grid(padding=(0, 2), pad_edge=False)
        for name, row in self.rows.items():
            if row.ended is None:
                turning = Spinner("dots" if console.encoding.startswith("utf") else "line")
                spinner, doing = self.spinners.setdefault(name, turning), Text(_tail(row, options.max_width), "dim")
                table.add_row(spinner, name, doing, _elapsed(self.clock() - row.started))
            else:
                table.add_row(" ", name, worded(row.ended.status), _elapsed(row.ended.seconds))
        yield table


def _tail(row: _Row, width: int) -> str:
    """Return the activity of a step: the stage of its recovery, or the end of the text so far."""
    text = " ".join(without_secrets(row.text).split())
    room = max(width - _NAMES, _LEAST)
    return row.doing or (text if len(text) <= room else f"…{text[-room:]}") or "running"


def _elapsed(seconds: float) -> Text:
    return Text(seconds_words(seconds), style="dim")
