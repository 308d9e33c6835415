"""`aros resume`: continues a run that is waiting for a person."""

from __future__ import annotations

import json
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from flujo_aros.cli.arguments import (
    Allow,
    AllowDegraded,
    AsJson,
    Choice,
    Models,
    ModulePath,
    Profile,
    RunDb,
    file_text,
    given_input,
)
from flujo_aros.cli.durable import known_db
from flujo_aros.cli.ensemble import show_figures, with_options
from flujo_aros.cli.execute import EXIT_CODES, PAUSED, Task, allowing, execute, finish, keep_paused, watched
from flujo_aros.cli.plan import check_modules, load
from flujo_aros.cli.question import ask, at_a_terminal
from flujo_aros.cli.screen import print_result, stderr_console
from flujo_aros.errors import UsageError
from flujo_aros.pipeline.results import RunStatus

if TYPE_CHECKING:  # as in `execute`
    from flujo_aros.cli.progress import Board
    from flujo_aros.pipeline.results import PausedRun, RunResult
    from flujo_aros.pipeline.runner import Runner


_STILL_PAUSED: Final = EXIT_CODES[RunStatus.PAUSED]


def resume_command(  # noqa: PLR0913 - one parameter for each option
    state: Annotated[
        Path,
        typer.Argument(
            metavar="STATE",
            show_default=False,
            help="The state file of the paused run, the id of the run or its beginning, or `last`.",
        ),
    ],
    *,
    answer: Annotated[
        str | None,
        typer.Option(
            "--answer",
            "-a",
            metavar="TEXT|@FILE|-",
            show_default=False,
            help="The answer; JSON if the run asks for an object. Without this option you are prompted in a terminal.",
        ),
    ] = None,
    as_json: AsJson = False,
    allow: Allow = None,
    folders: ModulePath = None,
    models: Models = None,
    profile: Profile = None,
    allow_degraded: AllowDegraded = False,
    again: Annotated[
        Path | None,
        typer.Option(
            "--state",
            metavar="FILE",
            show_default=False,
            help="Where to save the state if the run pauses again. [default: STATE, the same file]",
        ),
    ] = None,
    db: RunDb = None,
) -> None:
    """Answer a paused run and continue it.

    Finished steps do not run again. If the run pauses again, or rejects the answer, its state is kept in the same file,
    or in that of --state; once it has completed, the file is removed. The result of a row of `aros run --inputs` is
    also added to the results of its batch. Exit codes as for `run`.

    Example: aros resume last --answer yes
    """
    if db is None and state.name == str(state) and not state.exists():  # no file, so it may be the id of a run
        state = _state_of(str(state)) or state
        db = None if state.exists() else known_db()
        if db is None and not state.exists() and not state.suffix:
            raise UsageError(
                f"STATE: there is no paused run {str(state)!r} in {PAUSED}; give its state file, or --db for a database"
            )
    if db is not None:
        result, question = _resume_durably(str(state), answer, db, allow or [], folders or [], as_json=as_json)
        finish(result, as_json=as_json, allow_degraded=allow_degraded, question=question)
        return
    choice = Choice.of(models, profile)
    blueprint, saved = _saved(state)
    row, ensemble = saved.get("row"), saved.get("ensemble")
    loaded = load(blueprint, allow or [], folders or [], choice)
    check_modules(blueprint, loaded)
    pipeline = loaded.pipeline if ensemble is None else with_options(loaded.pipeline, blueprint, **ensemble)
    if answer is None and not at_a_terminal():
        raise typer.BadParameter("is required: a string, @FILE, or - for stdin", param_hint="'--answer'")
    from flujo_aros.pipeline.results import PausedRun

    waiting, kept = PausedRun.from_dict(saved["paused"]), state
    while True:
        text = _answer_to(waiting, kept) if answer is None else given_input(answer, "--answer")
        result = execute(blueprint, pipeline, _answering(waiting, text), as_json=as_json)
        options = allowing(allow, folders, choice)
        question = keep_paused(result, blueprint, again or state, options, row=row, ensemble=ensemble)
        _put_away(result, kept, again)
        if answer is not None or result.paused is None:
            break
        waiting, kept = result.paused, again or state
    if row is not None:
        _write_row(row, result)
    show = print_result if ensemble is None else show_figures
    finish(result, as_json=as_json, allow_degraded=allow_degraded, question=question, show=show)


def _state_of(run: str) -> Path | None:
    """The file of a paused run in this folder. Raises `UsageError` if several runs match the id."""
    beginning = "" if run == "last" else run
    files = [file for file in PAUSED.glob("*.json") if file.name.startswith(beginning)]
    if len(files) > 1 and run != "last":
        raise UsageError(
            f"STATE: {len(files)} paused runs begin with {run!r}: {', '.join(sorted(f.stem for f in files))}"
        )
    return max(files, key=lambda file: file.stat().st_mtime, default=None)


def _resume_durably(
    run: str, answer: str | None, db: str, allow: list[str], folders: list[Path], *, as_json: bool
) -> tuple[RunResult, str]:
    """Answer a run of a database and continue it here. Returns its result, and its question if it pauses again."""
    from flujo_aros.cli.durable import loaded_document, open_engine, question_of

    with open_engine(db) as engine:
        waiting = engine.store.runs(statuses=["paused"], limit=1) if run == "last" else []
        row = waiting[0] if waiting else engine.store.run(run)
        if row.status != "paused" or row.paused is None:
            raise UsageError(f"run {row.run_id} is {row.status} and is not waiting for an answer")
        document = engine.store.document(row.version)
        if document is None:
            raise UsageError(f"run {row.run_id} was started by a program, so answer it from there: handle.answer(...)")
        if answer is None:
            raise typer.BadParameter(f"missing; the run asks: {row.paused['message']}", param_hint="'--answer'")
        text = given_input(answer, "--answer")

        def task(runner: Runner, _: Board | None) -> Coroutine[Any, Any, RunResult]:
            return engine.answer_here(runner, row, text)

        pipeline = loaded_document(document, allow, folders)
        result = execute(Path(str(document["source"])), pipeline, task, as_json=as_json, engine=engine)
        return result, question_of(result, db, allowing(allow, folders, Choice()))


def _answer_to(paused: PausedRun, kept: Path) -> str:
    """The answer typed at the terminal; ends the command without one."""
    text = ask(paused)
    if text is None:
        stderr_console().print(f"\nthe run is still waiting; its state is in {kept}", soft_wrap=True)
        raise typer.Exit(_STILL_PAUSED)
    return text


def _answering(paused: PausedRun, answer: str) -> Task:
    def task(runner: Runner, board: Board | None) -> Coroutine[Any, Any, RunResult]:
        return watched(board, lambda: runner.resume(paused, answer), lambda: runner.stream_resumed(paused, answer))

    return task


def _put_away(result: RunResult, state: Path, again: Path | None) -> None:
    """Remove the state of a run that has ended, or whose new state is elsewhere."""
    moved = result.status is RunStatus.PAUSED and again is not None and again.resolve() != state.resolve()
    if moved or result.status in (RunStatus.COMPLETED, RunStatus.DEGRADED):
        state.unlink(missing_ok=True)


def _write_row(row: dict[str, Any], result: RunResult) -> None:
    """Replace the result of a waiting row in the results of its batch."""
    from flujo_aros.cli.batch import ResultsFile
    from flujo_aros.evals.cases import Case

    with ResultsFile(Path(row["results"])) as results:
        results.add(Case(id=row["id"], mark=row["mark"]), result.to_dict())
        results.tidy()
    stderr_console().print(f"row {json.dumps(row['id'])} of {row['results']} is {result.status.value}", soft_wrap=True)


def _saved(state: Path) -> tuple[Path, dict[str, Any]]:
    """The blueprint, and everything that `save_paused` saved. Raises `UsageError` for any other file."""
    try:
        saved = json.loads(file_text(str(state), "STATE"))
    except ValueError as error:
        if isinstance(error, UsageError):
            raise
        saved = None
    found = cast("dict[str, Any]", saved) if isinstance(saved, dict) else {}
    if not isinstance(found.get("blueprint"), str) or not isinstance(found.get("paused"), dict):
        message = f"{str(state)!r} is not the state of a paused run; `aros run` prints where it saves one"
        raise UsageError(message)
    return Path(found["blueprint"]), found
