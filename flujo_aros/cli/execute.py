"""One run from the command line: its observers, its interruption, the state of a paused run, its exit code."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import ExitStack, aclosing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from flujo_aros.cli.arguments import Choice
from flujo_aros.cli.interrupt import INTERRUPTED, Interrupted, run_until_signal
from flujo_aros.cli.plan import blamed
from flujo_aros.cli.progress import Board, progress
from flujo_aros.cli.question import asked, example_answer
from flujo_aros.cli.screen import (
    new_mask,
    print_json,
    print_result,
    show_traceback,
    stderr_console,
    stdout_reserved,
    without_secrets,
)
from flujo_aros.cli.summary import print_summary
from flujo_aros.errors import BlueprintError, LocalModelError, UsageError
from flujo_aros.events import Observer, RunFinished
from flujo_aros.folder import make_folder_of
from flujo_aros.pipeline.results import RunResult, RunStatus
from flujo_aros.settings import read_settings
from flujo_aros.telemetry.formatting import counted, seconds_words

if (
    TYPE_CHECKING
):  # the commands import them when they run: loading pydantic-ai takes a second, which `aros --help` should not
    from flujo_aros.evals.replies import ReplyCache
    from flujo_aros.pipeline.model import Pipeline
    from flujo_aros.pipeline.runner import Engine, Runner
    from flujo_aros.pipeline.streaming import StreamEvent
    from flujo_aros.telemetry.setup import Together

EXIT_CODES: Final = {
    RunStatus.COMPLETED: 0,
    RunStatus.DEGRADED: 1,
    RunStatus.FAILED: 1,
    RunStatus.PAUSED: 3,
    RunStatus.CANCELLED: INTERRUPTED,
}

PAUSED: Final = Path(".aros") / "paused"
"""The folder of the states of paused runs."""

Task = Callable[["Runner", "Board | None"], Coroutine[Any, Any, RunResult]]


@contextmanager
def journal() -> Generator[Together | None]:
    """The observers besides the terminal: the journal, and OpenTelemetry if the environment configures it.

    The run that creates a journal prints a notice, since a journal contains prompts and replies.
    """
    from flujo_aros.telemetry.setup import listening

    with listening(read_settings()) as kept:
        if kept is not None and kept.new_journal is not None:
            kept_in = f"prompts and replies of runs are recorded in {kept.new_journal}"
            words = f"{kept_in}, with secrets masked; AROS_JOURNAL=off turns this off"
            stderr_console().print(words, style="dim", soft_wrap=True)
        yield kept


def execute(
    blueprint: Path,
    pipeline: Pipeline,
    task: Task,
    *,
    as_json: bool,
    engine: Engine | None = None,
    cache: ReplyCache | None = None,
) -> RunResult:
    """Execute the task with progress and a journal, and report a run that is interrupted.

    `engine` stores a run that must survive a crash. `cache` has replies that need not be paid for again. Raises
    `BlueprintError` for errors that can be found before any model call.
    """
    from flujo_aros.evals.replies import PaidCalls
    from flujo_aros.host import CallsPerMinute, recorded_by
    from flujo_aros.pipeline.runner import Runner

    console = stderr_console()
    ended: list[RunResult] = []
    try:
        with ExitStack() as held:
            held.enter_context(stdout_reserved())
            if cache is not None:
                held.enter_context(recorded_by(PaidCalls(CallsPerMinute(), cache)))
            kept = held.enter_context(journal())
            watching = held.enter_context(progress(console))
            observers: Sequence[Observer] = (new_mask().hear, watching, *(() if kept is None else (kept,)))
            board = watching if isinstance(watching, Board) else None
            evidence = None if kept is None else kept.evidence
            runner = Runner(pipeline, observers=observers, on_result=ended.append, evidence=evidence, engine=engine)
            return run_until_signal(task(runner, board))
    except Interrupted:
        for result in ended:
            spent = f"after {seconds_words(result.seconds)} and {counted(result.usage.requests, 'call')}"
            console.print(f"{result.status.value}  run {result.run_id}, {spent}", soft_wrap=True)
            if as_json:
                print_json(result.to_dict())
        raise
    except (LocalModelError, BlueprintError):
        raise
    except UsageError as error:  # what could be known before any model call: the blueprint is to blame
        if engine is not None:
            raise  # or its database, or its version
        raise blamed(blueprint, error) from error


async def watched(
    board: Board | None,
    run: Callable[[], Coroutine[Any, Any, RunResult]],
    stream: Callable[[], AsyncGenerator[StreamEvent]],
) -> RunResult:
    """Run, and in a terminal show each reply while it is written: the same run, as a stream."""
    if board is None:
        return await run()
    result: RunResult | None = None
    async with aclosing(stream()) as events:
        async for each in events:
            if isinstance(each.event, RunFinished) and isinstance(each.result, RunResult):
                result = each.result
            elif each.step is not None:
                board.written(each.step, each.event)
    if result is None:
        raise AssertionError("a stream ended without the result of its run")
    return result


def finish(
    result: RunResult,
    *,
    as_json: bool,
    allow_degraded: bool,
    question: str = "",
    show: Callable[[Any], None] = print_result,
) -> None:
    """Print the result of a run, and its question if it paused, and exit with its exit code."""
    if as_json:
        print_json(result.to_dict())
    else:
        print_summary(result, stderr_console())
        if result.status is RunStatus.COMPLETED or (allow_degraded and result.status is RunStatus.DEGRADED):
            show(result.to_dict()["output"])
    if question:
        stderr_console().print(without_secrets(question), soft_wrap=True)
    for step in result.steps:
        if step.exception is not None:
            show_traceback(step.exception)
    if not (allow_degraded and result.status is RunStatus.DEGRADED):
        raise typer.Exit(EXIT_CODES[result.status])


def _write_private(file: Path, text: str) -> None:
    """Write a file that only its owner can read, since a state contains everything that a run has seen.

    An existing state is kept until the new one is complete.
    """
    make_folder_of(file)
    if file.exists() and not file.is_file():  # a pipe, or /dev/stderr: it cannot be replaced
        file.write_text(text, encoding="utf-8")
        return
    real = file.resolve()  # keep a link
    new = real.with_name(f"{real.name}.{os.getpid()}.new")
    try:
        new.touch(mode=0o600)
        new.write_text(text, encoding="utf-8")
        new.replace(real)
    finally:
        new.unlink(missing_ok=True)


def allowing(allow: Sequence[str] | None, folders: Sequence[Path] | None, choice: Choice) -> str:
    """The options that repeat the same permissions and models, for a command line."""
    options = [*(("--allow", each) for each in allow or ()), *(("--path", str(each)) for each in folders or ())]
    options += choice.options
    return "".join(f" {option} {shlex.quote(value)}" for option, value in options)


def keep_paused(
    result: RunResult, blueprint: Path, state: Path | None, allowed: str, **more: Mapping[str, Any] | None
) -> str:
    """Save what a paused run needs to continue. Returns its question and how to answer; empty if it has not paused.

    `allowed` are the options of the command that continues it. `more` is as in `save_paused`.
    """
    if result.paused is None:
        return ""
    file = save_paused(result, blueprint, state, **more)
    command = f"continue with:   aros resume {shlex.quote(str(file))} --answer TEXT{allowed}"
    example = example_answer(result.paused.input_schema or {})
    known = [] if example is None else [f"for example:  --answer {shlex.quote(example)}"]
    return "\n".join([*asked(result.paused), "", command, *known])


def save_paused(
    result: RunResult, blueprint: Path, state: Path | None = None, **more: Mapping[str, Any] | None
) -> Path:
    """Save what a paused run needs to continue. Returns the file. Raises `UsageError` if it cannot be written.

    `more` is saved with it: `row`, where the result of a row of a batch belongs, or the options of `ensemble`.
    """
    file = state or PAUSED / f"{result.run_id}.json"
    paused = None if result.paused is None else result.paused.to_dict()
    saved: dict[str, Any] = {"blueprint": str(blueprint.resolve()), "paused": paused}
    saved |= {name: dict(each) for name, each in more.items() if each is not None}
    try:
        _write_private(file, json.dumps(saved, ensure_ascii=False, indent=2) + "\n")
    except OSError as error:
        message = (
            f"the run has paused, and its state cannot be written to {str(file)!r}: {error.strerror or error}; "
            "name another file with --state"
        )
        raise UsageError(message) from error
    return file
