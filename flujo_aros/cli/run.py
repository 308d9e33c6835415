"""`aros run`, `ensemble` and `resume`: run a blueprint, with the result on stdout and progress on stderr."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import typer

from flujo_aros.cli import arguments as args
from flujo_aros.cli.batch import Batch, ResultsFile, run_batch
from flujo_aros.cli.durable import (
    DEFAULT_DB,
    known_db,
    loaded_document,
    open_engine,
    question_of,
    register,
    resume_hint,
)
from flujo_aros.cli.execute import (
    EXIT_CODES,
    PAUSED,
    allowing,
    ask,
    at_a_terminal,
    execute,
    finish,
    keep_paused,
)
from flujo_aros.cli.plan import check_deps, check_modules, check_ready, load, load_to_run, print_plan
from flujo_aros.cli.render import figure, fitted_table
from flujo_aros.cli.screen import Text, print_result, say, stdout_console
from flujo_aros.ensemble.step import Ensemble
from flujo_aros.errors import UsageError
from flujo_aros.evals.cases import Case
from flujo_aros.json_data import is_dict
from flujo_aros.pipeline.model import Pipeline
from flujo_aros.pipeline.results import PausedRun, RunResult, RunStatus
from flujo_aros.pipeline.runner import Runner
from flujo_aros.telemetry.formatting import counted


def run_command(
    blueprint: Path = args.BLUEPRINT,
    *,
    sources: list[str] = args.INPUT,
    as_json: bool = args.AS_JSON,
    pairs: list[str] = args.PAIRS,
    modules: args.Modules,
    choice: args.Choice,
    deps: str | None = args.DEPS,
    allow_degraded: bool = args.ALLOW_DEGRADED,
    dry_run: bool = args.flag(
        "--dry-run", "Show what would run, with the maximum number of model calls and the maximum cost, and stop."
    ),
    state: Path | None = args.option(
        "--state FILE", "Where to save the state if the run pauses. [default: .aros/paused/RUN.json]"
    ),
    rows: str | None = args.INPUTS,
    output: Path | None = args.option(
        "--output -o FILE",
        "Where to write the results of --inputs. Rows that have a result there are not run again.",
        section=args.ROWS,
    ),
    concurrency: int = args.option(
        "--concurrency", "How many rows of --inputs run at the same time.", 4, args.ROWS, min=1
    ),
    retry_failed: bool = args.flag(
        "--retry-failed", "Run the rows of --inputs again that did not complete, and replace their results.", args.ROWS
    ),
    limits: args.Limits,
    cache: bool = args.CACHE,
    durable: bool = args.flag("--durable", "Store the run in a database, so that a crash loses nothing.", args.DURABLE),
    db: str | None = args.RUN_DB,
) -> None:
    """Run a blueprint.

    The output of the last step goes to stdout, progress and the closing report to stderr. Exit code 0 if the run
    completed, 1 if it failed or degraded, 3 if it paused, 4 if the blueprint is invalid, 130 if it was interrupted.
    With --durable a crash loses nothing: the same command continues the interrupted run. With --inputs each row is a
    separate run, and the results go to a file: exit code 0 if every row completed. The same command continues where the
    batch was interrupted or stopped.

    Example: aros run triage.yaml --input @ticket.txt
    """
    context = args.given_pairs(pairs)
    loaded = load(blueprint, modules, choice)
    if dry_run:
        print_plan(blueprint, loaded, as_json=as_json, with_bound=True)
        return
    pipeline = loaded.pipeline
    check_modules(blueprint, loaded)
    check_ready(blueprint, pipeline)
    check_deps(pipeline, deps)
    if rows is not None:
        if output is None:
            raise typer.BadParameter("needs --output FILE for the results", param_hint="'--inputs'")
        if sources:
            raise typer.BadParameter("replaces --input; give only one of them", param_hint="'--inputs'")
        from flujo_aros.host import CallsPerMinute

        with args.open_cache(cache) as kept:
            batch = Batch(
                blueprint,
                pipeline,
                output,
                context,
                args.given_deps(deps, modules),
                concurrency,
                CallsPerMinute(limits.per_minute),
                kept,
                limits.stop,
                allow_degraded,
                retry_failed,
                allowing(modules, choice, deps),
            )
            raise typer.Exit(run_batch(batch, rows))
    if output is not None:
        raise typer.BadParameter("is for --inputs; the result of one run goes to stdout", param_hint="'--output'")
    only_batches = {
        "--retry-failed": retry_failed,
        "--max-cost": limits.max_cost is not None,
        "--max-failures": limits.max_failures is not None,
        "--limit": limits.limits,
    }
    for name, given in only_batches.items():
        if given:
            raise typer.BadParameter("is for --inputs", param_hint=f"'{name}'")
    if not sources:
        raise typer.BadParameter("is required: a string, @FILE, or - for stdin", param_hint="'--input'")
    task: dict[str, Any] = {
        "input": args.given_content(sources),
        "context": context,
        "deps": args.given_deps(deps, modules),
    }

    run, stream = partial(Runner.run, **task), partial(Runner.stream, **task)
    if durable or db is not None:
        url = db or os.environ.get("AROS_DB") or DEFAULT_DB
        with open_engine(url, create=True) as engine:
            engine.on_taken_up = lambda row: say(f"continuing run {row.run_id}, which was interrupted")
            keep = partial(register, engine, blueprint, choice)
            result = execute(blueprint, pipeline, run, stream, as_json=as_json, engine=engine, prepare=keep)
        question = question_of(result, url, allowing(modules, args.Choice(), deps))  # the models are kept with the run
    else:
        with args.open_cache(cache) as kept:
            result = execute(blueprint, pipeline, run, stream, as_json=as_json, cache=kept)
        question = keep_paused(result, blueprint, state, allowing(modules, choice, deps))
    finish(result, as_json=as_json, allow_degraded=allow_degraded, question=question)


def ensemble_command(
    blueprint: Path = args.BLUEPRINT,
    *,
    sources: list[str] = args.INPUT,
    turns: int | None = args.option("--turns -t", "How many turns. Default: the number in the blueprint.", min=1),
    log: str | None = args.option("--log FILE|URL", "Store the events here; a run that was stopped resumes from them."),
    reflection: bool = args.option(
        "--reflection/--no-reflection", "Whether agents form beliefs from their memories.", default=True
    ),
    as_json: bool = args.AS_JSON,
    modules: args.Modules,
    choice: args.Choice,
) -> None:
    """Run the ensembles of a blueprint.

    Each event is shown as it happens, on stderr; the figures, beliefs and verdict go to stdout, as JSON if that is not
    a terminal. With --log the run can be stopped at any time and resumes at the turn it had reached. `aros report` has
    the transcript and the beliefs.

    Example: aros ensemble wood.yaml --turns 50 --input "A clearing at dusk."
    """
    if len(sources) > 1:
        raise typer.BadParameter("is given more than once; an ensemble begins with one text", param_hint="'--input'")
    pipeline = load_to_run(blueprint, modules, choice)
    where = log if log is None or "://" in log else str(Path(log).resolve())  # it may be resumed from elsewhere
    options: dict[str, Any] = {"turns": turns, "log": where, "reflection": reflection}
    pipeline = with_options(pipeline, blueprint, **options)
    check_ready(blueprint, pipeline)
    text = args.given_input(sources[0]) if sources else ""

    result = execute(blueprint, pipeline, lambda each: each.run(text), lambda each: each.stream(text), as_json=as_json)
    if log is not None and result.status.value == "completed" and not result.usage.requests:
        say(
            f"{log} holds this run already, which has ended: nothing was asked. "
            "If its turns had been played, a larger --turns continues it."
        )
    question = keep_paused(result, blueprint, None, allowing(modules, choice), ensemble=options)
    finish(result, as_json=as_json, allow_degraded=False, question=question, show=show_figures)


_FIGURES: Final[Mapping[str, str]] = {
    "utterances": "lines",
    "raw_fallback": "raw",
    "corrected_kinds": "corrected",
    "reasks": "re-asked",
    "reworded": "reworded",
    "skipped": "skipped",
    "failed": "failed",
    "reflections": "beliefs",
    "reflections_refused": "refused",
}
"""The counts of an agent, by their headers. Columns without any count are left out."""


def show_figures(value: Any) -> None:
    """Print the result of an ensemble: readable figures on a terminal, JSON otherwise."""
    console = stdout_console()
    if not console.is_terminal or not (is_dict(value) and is_dict(value.get("stats"))):
        print_result(value)
        return
    agents: dict[str, dict[str, Any]] = value["stats"]["agents"]
    counted_ones = [key for key in _FIGURES if any(each[key] for each in agents.values())]
    rows = [
        {
            "agent": Text(name),
            **{_FIGURES[key]: figure(str(each[key] or "-")) for key in counted_ones},
            "repetition": figure(f"{each['repetition']:.2f}"),
            "drift": figure(f"{each['drift']:.2f}"),
            "tokens in + out": figure(f"{each['input_tokens']:,} + {each['output_tokens']:,}"),
        }
        for name, each in agents.items()
    ]
    dropped = ("drift", "re-asked", "reworded", "tokens in + out", "corrected")
    if rows:
        console.print(fitted_table(rows, console.width, figures=list(rows[0])[1:], dropped_first=dropped))
    for name, beliefs in value["beliefs"].items():
        for belief in beliefs:
            console.print(Text.assemble("💭 ", (name, "bold"), f" believes: {belief}"), soft_wrap=True)
    verdict = value["verdict"]
    if verdict is not None:
        console.print(Text.assemble((verdict["actor"], "bold"), f": winner {verdict.get('winner') or 'open'}"))
    stats = value["stats"]
    shares = f"outside grants {stats['outside_grants']}, raw fallbacks {100 * stats['raw_fallback_rate']:.0f} %"
    without = f", without {' or '.join(value['missing'])}" if value["missing"] else ""
    after = counted(value["turns"], "turn")
    console.print(f"ended by {value['reason']!r} after {after}{without}; {shares}", soft_wrap=True)


def with_options(
    pipeline: Pipeline, blueprint: Path, *, turns: int | None, log: str | None, reflection: bool
) -> Pipeline:
    """The pipeline, with these options for its ensembles. Raises `UsageError` if it has none."""

    class Ended(Ensemble):
        """An ensemble whose log contains a finished run, so that its models need not be installed."""

        @property
        def models(self) -> frozenset[str]:
            return frozenset()

    found = [step for step in pipeline.steps if isinstance(step, Ensemble)]
    if not found:
        raise UsageError(f"{str(blueprint)!r} has no step of `kind: ensemble`; run it with `aros run`")
    if log is not None and len(found) > 1:
        raise UsageError("--log is for a blueprint with one ensemble; set `log` for each of them there")

    def changed(step: Ensemble) -> Ensemble:
        kept = step.log if log is None else log
        new = replace(step, turns=turns or step.turns, log=kept, reflection=step.reflection and reflection)
        options = {each.name: getattr(new, each.name) for each in fields(new) if each.init}
        return Ended(**options) if kept is not None and new.has_ended() else new

    steps = [changed(step) if isinstance(step, Ensemble) else step for step in pipeline.steps]
    return Pipeline(steps, name=pipeline.name, description=pipeline.description, warnings=pipeline.warnings)


def resume_command(
    state: Path = args.argument(
        "STATE", "The state file of the paused run, the id of the run or its beginning, or `last`."
    ),
    *,
    answer: str | None = args.option(
        "--answer -a TEXT|@FILE|-",
        "The answer; JSON if the run asks for an object. Without this option you are prompted in a terminal.",
    ),
    as_json: bool = args.AS_JSON,
    modules: args.Modules,
    choice: args.Choice,
    deps: str | None = args.DEPS,
    allow_degraded: bool = args.ALLOW_DEGRADED,
    again: Path | None = args.option(
        "--state FILE", "Where to save the state if the run pauses again. [default: STATE, the same file]"
    ),
    db: str | None = args.RUN_DB,
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
            missing = "no run is paused" if str(state) == "last" else f"no run {str(state)!r} is paused"
            raise UsageError(f"STATE: {missing} in {PAUSED}; give its state file, or --db for a database")
    if db is not None:
        result, question = _resume_durably(str(state), answer, db, modules, deps, as_json=as_json)
        finish(result, as_json=as_json, allow_degraded=allow_degraded, question=question)
        return
    blueprint, saved = _saved(state)
    row, ensemble = saved.get("row"), saved.get("ensemble")
    pipeline = load_to_run(blueprint, modules, choice)
    if ensemble is not None:
        pipeline = with_options(pipeline, blueprint, **ensemble)
    if answer is None and not at_a_terminal():
        raise typer.BadParameter("is required: a string, @FILE, or - for stdin", param_hint="'--answer'")

    kept, own, options = state, args.given_deps(deps, modules), allowing(modules, choice, deps)
    question = ""

    def proceed(paused: PausedRun, text: str) -> RunResult:
        nonlocal kept, question
        given: dict[str, Any] = {"paused": paused, "answer": text, "deps": own}
        run, stream = partial(Runner.resume, **given), partial(Runner.stream_resumed, **given)
        result = execute(blueprint, pipeline, run, stream, as_json=as_json)
        question = keep_paused(result, blueprint, again or state, options, row=row, ensemble=ensemble)
        moved = result.status is RunStatus.PAUSED and again is not None and again.resolve() != kept.resolve()
        if moved or result.status in (RunStatus.COMPLETED, RunStatus.DEGRADED):
            kept.unlink(missing_ok=True)  # the state of a run that has ended, or whose new state is elsewhere
        kept = again or state
        return result

    result = _answered(PausedRun.from_dict(saved["paused"]), answer, lambda: f"its state is in {kept}", proceed)
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
    run: str,
    answer: str | None,
    db: str,
    modules: args.Modules,
    deps: str | None,
    *,
    as_json: bool,
) -> tuple[RunResult, str]:
    """Answer a run of a database and continue it here. Returns its result, and its question if it pauses again."""

    with open_engine(db) as engine:
        waiting = engine.store.runs(statuses=["paused"], limit=1) if run == "last" else []
        row = waiting[0] if waiting else engine.store.run(run)
        if row.status != "paused" or row.paused is None:
            raise UsageError(f"run {row.run_id} is {row.status} and is not waiting for an answer")
        document = engine.store.document(row.version)
        if document is None:
            raise UsageError(f"run {row.run_id} was started by a program, so answer it from there: handle.answer(...)")
        if answer is None and not at_a_terminal():
            raise typer.BadParameter(f"missing; the run asks: {row.paused['message']}", param_hint="'--answer'")
        pipeline, own = loaded_document(document, modules), args.given_deps(deps, modules)
        options, file = allowing(modules, args.Choice(), deps), Path(str(document["source"]))

        def proceed(_: PausedRun, text: str) -> RunResult:
            now = engine.store.run(row.run_id)
            keep, task = partial(engine.register, deps=own), partial(engine.answer_here, row=now, value=text)
            return execute(file, pipeline, task, as_json=as_json, engine=engine, prepare=keep)

        where = f"answer it with: {resume_hint(row.run_id, db)}{options}"
        result = _answered(PausedRun.from_dict(row.paused), answer, lambda: where, proceed)
        return result, question_of(result, db, options)


def _answered(
    paused: PausedRun, answer: str | None, where: Callable[[], str], proceed: Callable[[PausedRun, str], RunResult]
) -> RunResult:
    """Continue the run with the given answer; at a terminal with one answer after another, until it has ended.

    Ends the command where a person gives none, with `where` the run waits.
    """
    while True:
        text = ask(paused) if answer is None else args.given_input(answer, "--answer")
        if text is None:
            say(f"\nthe run is still waiting; {where()}")
            raise typer.Exit(EXIT_CODES[RunStatus.PAUSED])
        result = proceed(paused, text)
        if answer is not None or result.paused is None:
            return result
        paused = result.paused


def _write_row(row: dict[str, Any], result: RunResult) -> None:
    """Replace the result of a waiting row in the results of its batch."""

    with ResultsFile(Path(row["results"])) as results:
        results.add(Case(id=row["id"], mark=row["mark"]), result.to_dict())
        results.tidy()
    say(f"row {json.dumps(row['id'])} of {row['results']} is {result.status.value}")


def _saved(state: Path) -> tuple[Path, dict[str, Any]]:
    """The blueprint, and everything that `save_paused` saved. Raises `UsageError` for any other file."""
    try:
        saved = json.loads(args.file_text(str(state), "STATE"))
    except ValueError as error:
        if isinstance(error, UsageError):
            raise
        saved = None
    found = cast("dict[str, Any]", saved) if isinstance(saved, dict) else {}
    if not isinstance(found.get("blueprint"), str) or not isinstance(found.get("paused"), dict):
        raise UsageError(f"{str(state)!r} is not the state of a paused run; `aros run` prints where it saves one")
    return Path(found["blueprint"]), found
