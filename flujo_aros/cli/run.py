"""`aros run`: runs a blueprint on one input or many, with the result on stdout and progress on stderr."""

from __future__ import annotations

import os
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from flujo_aros.cli.arguments import (
    Allow,
    AllowDegraded,
    AsJson,
    Blueprint,
    Choice,
    Concurrency,
    DryRun,
    Durably,
    Input,
    InputJsonl,
    MaxCost,
    MaxFailures,
    MaxSameFailures,
    Models,
    ModulePath,
    Output,
    Pairs,
    PerProvider,
    Profile,
    RetryFailed,
    RunDb,
    State,
    UseCache,
    calls_per_minute,
    given_content,
    given_pairs,
    open_cache,
    stop_of,
)
from flujo_aros.cli.batch import Batch, run_batch
from flujo_aros.cli.execute import Task, allowing, execute, finish, keep_paused, watched
from flujo_aros.cli.plan import check_modules, check_ready, load, print_plan
from flujo_aros.cli.screen import stderr_console
from flujo_aros.evals.many import SAME_FAILURES

if TYPE_CHECKING:  # as in `execute`
    from flujo_aros.cli.progress import Board
    from flujo_aros.pipeline.model import Pipeline
    from flujo_aros.pipeline.results import RunResult
    from flujo_aros.pipeline.runner import Runner


def run_command(  # noqa: PLR0913 - one parameter for each option
    blueprint: Blueprint,
    *,
    sources: Input = None,
    as_json: AsJson = False,
    pairs: Pairs = None,
    allow: Allow = None,
    folders: ModulePath = None,
    models: Models = None,
    profile: Profile = None,
    allow_degraded: AllowDegraded = False,
    dry_run: DryRun = False,
    state: State = None,
    rows: InputJsonl = None,
    output: Output = None,
    concurrency: Concurrency = 4,
    retry_failed: RetryFailed = False,
    max_cost: MaxCost = None,
    max_failures: MaxFailures = None,
    max_same_failures: MaxSameFailures = SAME_FAILURES,
    limits: PerProvider = None,
    cache: UseCache = False,
    durable: Durably = False,
    db: RunDb = None,
) -> None:
    """Run a blueprint.

    The output of the last step goes to stdout, progress and the closing report to stderr. Exit code 0 if the run
    completed, 1 if it failed or degraded, 3 if it paused, 4 if the blueprint is invalid, 130 if it was interrupted.
    With --durable a crash loses nothing: the same command continues the interrupted run. With --inputs each row is a
    separate run, and the results go to a file: exit code 0 if every row completed. The same command continues where the
    batch was interrupted or stopped.

    Example: aros run blueprints/ticket_triage.yaml --input @ticket.txt
    """
    context, choice = given_pairs(pairs or []), Choice.of(models, profile)
    loaded = load(blueprint, allow or [], folders or [], choice)
    if dry_run:
        print_plan(blueprint, loaded, as_json=as_json, with_bound=True)
        return
    pipeline = loaded.pipeline
    check_modules(blueprint, loaded)
    check_ready(blueprint, pipeline)
    if rows is not None:
        if output is None:
            raise typer.BadParameter("needs --output FILE for the results", param_hint="'--inputs'")
        if sources:
            raise typer.BadParameter("replaces --input; give only one of them", param_hint="'--inputs'")
        stop = stop_of(max_cost, max_failures, max_same_failures)
        with open_cache(cache) as kept:
            batch = Batch(
                blueprint,
                pipeline,
                output,
                context,
                concurrency,
                calls_per_minute(limits),
                kept,
                stop,
                allow_degraded,
                retry_failed,
                allowing(allow, folders, choice),
            )
            raise typer.Exit(run_batch(batch, rows))
    if output is not None:
        raise typer.BadParameter("is for --inputs; the result of one run goes to stdout", param_hint="'--output'")
    only_batches = {
        "--retry-failed": retry_failed,
        "--max-cost": max_cost is not None,
        "--max-failures": max_failures is not None,
        "--limit": limits,
    }
    for option, given in only_batches.items():
        if given:
            raise typer.BadParameter("is for --inputs", param_hint=f"'{option}'")
    if not sources:
        raise typer.BadParameter("is required: a string, @FILE, or - for stdin", param_hint="'--input'")
    given = given_content(sources)

    def task(runner: Runner, board: Board | None) -> Coroutine[Any, Any, RunResult]:
        return watched(board, lambda: runner.run(given, context), lambda: runner.stream(given, context))

    if durable or db is not None:
        result, url = _run_durably(blueprint, pipeline, task, db, choice, as_json=as_json)
        from flujo_aros.cli.durable import question_of

        question = question_of(result, url, allowing(allow, folders, Choice()))  # the models are kept with the run
        finish(result, as_json=as_json, allow_degraded=allow_degraded, question=question)
        return
    with open_cache(cache) as kept:
        result = execute(blueprint, pipeline, task, as_json=as_json, cache=kept)
    question = keep_paused(result, blueprint, state, allowing(allow, folders, choice))
    finish(result, as_json=as_json, allow_degraded=allow_degraded, question=question)


def _run_durably(
    blueprint: Path, pipeline: Pipeline, task: Task, db: str | None, choice: Choice, *, as_json: bool
) -> tuple[RunResult, str]:
    """Run with an engine that stores the run. Returns the result, and the URL of its database."""
    from flujo_aros.cli.durable import DEFAULT_DB, open_engine, register

    def kept(runner: Runner, board: Board | None) -> Coroutine[Any, Any, RunResult]:
        register(engine, blueprint, runner, choice)
        return task(runner, board)

    url = db or os.environ.get("AROS_DB") or DEFAULT_DB
    with open_engine(url, create=True) as engine:
        engine.on_taken_up = lambda row: stderr_console().print(
            f"continuing run {row.run_id}, which was interrupted", soft_wrap=True
        )
        return execute(blueprint, pipeline, kept, as_json=as_json, engine=engine), url
