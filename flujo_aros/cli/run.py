"""`aros run`, `ensemble` and `resume`: run a blueprint, with the result on stdout and progress on stderr."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import typer

from flujo_aros.cli import arguments as args
from flujo_aros.cli.batch import ResultsFile, run_batch
from flujo_aros.cli.commands import DEFAULT_DB, Blueprint, Ensemble, Resume, Run
from flujo_aros.cli.durable import known_db, loaded_document, open_engine, question_of, register, resume_hint
from flujo_aros.cli.execute import EXIT_CODES, PAUSED, allowing, execute, finish, keep_paused
from flujo_aros.cli.plan import check_deps, check_modules, check_ready, load, load_to_run, print_plan
from flujo_aros.cli.question import ask, at_a_terminal
from flujo_aros.cli.screen import Text, print_result, say, stdout_console
from flujo_aros.ensemble.step import Ensemble as EnsembleStep
from flujo_aros.ensemble.views import render_stats
from flujo_aros.errors import UsageError
from flujo_aros.evals.cases import Case
from flujo_aros.json_data import is_dict
from flujo_aros.pipeline.model import Pipeline
from flujo_aros.pipeline.results import PausedRun, RunResult, RunStatus
from flujo_aros.pipeline.runner import Runner
from flujo_aros.telemetry.formatting import counted


def run_command(options: Run) -> None:
    """Run the blueprint once, or for each row of --inputs."""
    context = args.given_pairs(options.pairs)
    loaded = load(options)
    if options.dry_run:
        print_plan(options.blueprint, loaded, as_json=options.as_json, with_bound=True, deps=options.deps)
        return
    pipeline = loaded.pipeline
    if options.rows is None and not options.sources:  # before a missing module or API key, which would hide it
        raise UsageError("--input is required: a string, @FILE, or - for stdin")
    if options.rows is not None and options.output is None:
        raise UsageError("--inputs needs --output FILE for the results")
    check_modules(options.blueprint, loaded)
    check_ready(options.blueprint, pipeline)
    check_deps(pipeline, options)
    if options.rows is not None and options.output is not None:
        if options.sources:
            raise typer.BadParameter("replaces --input; pass only one of them", param_hint="'--inputs'")
        raise typer.Exit(run_batch(options, pipeline, context, options.rows, options.output))
    for name in ("output", "retry_failed", "max_cost", "max_failures", "limits"):
        if getattr(options, name) not in (None, False, [], ()):
            why = {
                "output": "; the result of one run goes to stdout",
                "max_cost": "; for one run, write `usage_limits: {max_cost: …}` at a step",
            }.get(name, "")
            option = "--limit" if name == "limits" else f"--{name.replace('_', '-')}"
            raise typer.BadParameter(f"needs --inputs{why}", param_hint=f"'{option}'")
    task: dict[str, Any] = {"input": args.given_content(options.sources), "context": context}
    task["deps"] = args.given_deps(options)
    run, stream, as_json = partial(Runner.run, **task), partial(Runner.stream, **task), options.as_json
    if options.durable or options.db is not None:
        url = options.db or os.environ.get("AROS_DB") or DEFAULT_DB
        with open_engine(url, create=True) as engine:
            engine.on_taken_up = lambda row: say(f"continuing run {row.run_id}, which was interrupted")
            keep = partial(register, engine, options)
            result = execute(options.blueprint, pipeline, run, stream, as_json=as_json, engine=engine, prepare=keep)
        question = question_of(result, url, allowing(options, models=False))  # the models are stored with the run
    else:
        with args.open_cache(options.cache) as kept:
            result = execute(options.blueprint, pipeline, run, stream, as_json=as_json, cache=kept)
        question = keep_paused(result, options.blueprint, options.state, allowing(options))
    finish(result, as_json=as_json, allow_degraded=options.allow_degraded, question=question)


def ensemble_command(options: Ensemble) -> None:
    """Run the blueprint with these options for its ensembles."""
    if len(options.sources) > 1:
        raise typer.BadParameter("is given more than once; an ensemble begins with one text", param_hint="'--input'")
    log = options.log
    # the run may be resumed from another folder
    where = log if log is None or "://" in log else str(Path(log).resolve())
    own: dict[str, Any] = {"turns": options.turns, "log": where, "reflection": options.reflection}
    pipeline = with_options(load_to_run(options), options.blueprint, **own)
    check_ready(options.blueprint, pipeline)
    text = args.given_input(options.sources[0]) if options.sources else ""

    run, stream = partial(Runner.run, input=text), partial(Runner.stream, input=text)
    result = execute(options.blueprint, pipeline, run, stream, as_json=options.as_json)
    if log is not None and result.status.value == "completed" and not result.usage.requests:
        say(
            f"{log} already contains this run, which has ended, so no model was called. "
            "If it used all its turns, pass a larger --turns to continue it."
        )
    question = keep_paused(result, options.blueprint, None, allowing(options), ensemble=own)
    finish(result, as_json=options.as_json, question=question, show=show_figures)


def show_figures(value: Any) -> None:
    """Print the result of an ensemble: readable figures on a terminal, JSON otherwise."""
    console = stdout_console()
    if not console.is_terminal or not (is_dict(value) and is_dict(value.get("stats"))):
        print_result(value)
        return
    console.print(Text(render_stats(value["stats"])), soft_wrap=True)
    for name, beliefs in value["beliefs"].items():
        for belief in beliefs:
            console.print(Text.assemble("💭 ", (name, "bold"), f" believes: {belief}"), soft_wrap=True)
    verdict = value["verdict"]
    if verdict is not None:
        console.print(Text.assemble((verdict["actor"], "bold"), f": winner {verdict.get('winner') or 'open'}"))
    without = f", without {' or '.join(value['missing'])}" if value["missing"] else ""
    console.print(f"ended by {value['reason']!r} after {counted(value['turns'], 'turn')}{without}", soft_wrap=True)


def with_options(
    pipeline: Pipeline, blueprint: Path, *, turns: int | None, log: str | None, reflection: bool
) -> Pipeline:
    """Return the pipeline, with these options for its ensembles. Raises `UsageError` if it has none."""

    class Ended(EnsembleStep):
        """An ensemble whose log contains a finished run, so that its models need not be installed."""

        @property
        def models(self) -> frozenset[str]:
            return frozenset()

    found = [step for step in pipeline.steps if isinstance(step, EnsembleStep)]
    if not found:
        raise UsageError(f"{str(blueprint)!r} has no step of `kind: ensemble`; run it with `aros run`")
    if log is not None and len(found) > 1:
        raise UsageError("--log is for a blueprint with one ensemble; set `log` for each of them there")

    def changed(step: EnsembleStep) -> EnsembleStep:
        kept = step.log if log is None else log
        new = replace(step, turns=turns or step.turns, log=kept, reflection=step.reflection and reflection)
        options = {each.name: getattr(new, each.name) for each in fields(new) if each.init}
        return Ended(**options) if kept is not None and new.has_ended() else new

    steps = [changed(step) if isinstance(step, EnsembleStep) else step for step in pipeline.steps]
    return replace(pipeline, steps=tuple(steps))


def resume_command(options: Resume) -> None:
    """Answer the run in a state file, or in a database."""
    state, db = options.state, options.db
    if db is None and state.name == str(state) and not state.exists():  # not a file, so it may be the id of a run
        found, known = _find_state(str(state)), known_db()
        if str(state) == "last" and found is not None:
            _reject_other_run(found)
            if known is not None:
                _reject_two_runs(found, known)
        if found is None and known is not None and str(state) != "last" and (ended := _settled(state, _HAVE_VALUES)):
            raise ended
        state, db = found or state, None if found is not None else known
    if db is None and not state.exists():
        raise _not_paused(state)
    if db is not None:
        result, question, asking = _resume_durably(options, str(state), db)
        allow = options.allow_degraded
        finish(result, as_json=options.as_json, allow_degraded=allow, question=question, answered=asking)
        return
    blueprint, saved = _read_saved(state)
    row, ensemble = saved.get("row"), saved.get("ensemble")
    pipeline = load_to_run(Blueprint(**vars(options) | {"blueprint": blueprint}))
    check_deps(pipeline, options)
    if ensemble is not None:
        pipeline = with_options(pipeline, blueprint, **ensemble)
    if options.answer is None and not at_a_terminal():
        raise UsageError("--answer is required: a string, @FILE, or - for stdin")

    kept, own = state, args.given_deps(options)
    question = ""

    def proceed(paused: PausedRun, text: str) -> RunResult:
        nonlocal kept, question
        given: dict[str, Any] = {"paused": paused, "answer": text, "deps": own}
        run, stream = partial(Runner.resume, **given), partial(Runner.stream_resumed, **given)
        result = execute(blueprint, pipeline, run, stream, as_json=options.as_json)
        again = options.again
        question = keep_paused(result, blueprint, again or state, allowing(options), row=row, ensemble=ensemble)
        moved = result.status is RunStatus.PAUSED and again is not None and again.resolve() != kept.resolve()
        if moved or result.status in (RunStatus.COMPLETED, RunStatus.DEGRADED):
            kept.unlink(missing_ok=True)  # the state of a run that has ended, or whose new state is elsewhere
        kept = again or state
        return result

    asking = PausedRun.from_dict(saved["paused"])
    result = _answer_until_done(asking, options.answer, lambda: f"its state is in {kept}", proceed)
    if row is not None:
        _write_row(row, result)
    show = print_result if ensemble is None else show_figures
    allow = options.allow_degraded
    finish(result, as_json=options.as_json, allow_degraded=allow, question=question, show=show, answered=asking)


def _find_state(run: str) -> Path | None:
    """Return the file of a paused run in this folder. Raises `UsageError` if several runs match the id."""
    beginning = "" if run == "last" else run
    files = [file for file in PAUSED.glob("*.json") if file.name.startswith(beginning)]
    if len(files) > 1 and run != "last":
        names = ", ".join(sorted(file.stem for file in files))
        raise UsageError(f"STATE: {len(files)} paused runs begin with {run!r}: {names}")
    return max(files, key=lambda file: file.stat().st_mtime, default=None)


def _not_paused(state: Path) -> UsageError:
    """Return the error for a state that does not exist. It names the status of a run in the journal."""
    elsewhere = "pass its state file, or --db for a database"
    if str(state) == "last":
        return UsageError(f"STATE: no run is paused in {PAUSED}; {elsewhere}")
    return _settled(state, (*RunStatus, "lost", "running")) or UsageError(
        f"STATE: no run {str(state)!r} is paused in {PAUSED}; {elsewhere}. A state file is removed once "
        "its run has been answered and has ended; `aros runs` lists all runs"
    )


_HAVE_VALUES: Final = (RunStatus.COMPLETED, RunStatus.DEGRADED)
"""The statuses of a run that has been answered and that no database continues."""


def _settled(state: Path, statuses: Iterable[str]) -> UsageError | None:
    """Return the error for a run that the journal has with one of these statuses and that is not paused."""
    with suppress(UsageError):  # the run has another name, or is not recorded
        run = args.recorded(state.stem).run
        named = run.run_id == state.stem or not state.suffix
        if named and run.status != RunStatus.PAUSED and run.status in statuses:
            ended = f"is {run.status} and not waiting for an answer; `aros show {run.run_id}` shows it"
            return UsageError(f"STATE: run {run.run_id}, started {run.started_at.astimezone():%Y-%m-%d %H:%M}, {ended}")
    return None


def _reject_other_run(state: Path) -> None:
    """Raise `UsageError` if the last run of the journal is not the one that is paused, so that no answer goes to an
    older run unnoticed.
    """
    try:
        with args.open_to_read() as journal:
            runs = journal.runs(limit=1)
    except UsageError:  # nothing is recorded, so the file is all that is known
        return
    if runs and runs[0].run_id != state.stem:
        paused = ", ".join(sorted(file.stem for file in PAUSED.glob("*.json")))
        raise UsageError(
            f"STATE: the last run, {runs[0].run_id}, is not paused in {PAUSED} ({runs[0].status}); paused there:"
            f" {paused}: use one of these ids"
        )


def _reject_two_runs(state: Path, db: str) -> None:
    """Raise `UsageError` if a run in the database is also waiting, so that no answer goes to the wrong run."""
    with open_engine(db) as engine:
        waiting = engine.store.runs(statuses=["paused"], limit=1)
    if waiting:
        one, two = state.stem, waiting[0].run_id
        raise UsageError(f"STATE: `last` may be {one}, in {PAUSED}, or {two}, in the database; use one of these ids")


def _resume_durably(options: Resume, run: str, db: str) -> tuple[RunResult, str, PausedRun]:
    """Answer a run of a database and continue it here. Returns its result, its question if it pauses again, and the
    pause that was answered."""
    from flujo_aros.durable.engine import not_waiting

    with open_engine(db) as engine:
        waiting = engine.store.runs(statuses=["paused"], limit=1) if run == "last" else []
        row = waiting[0] if waiting else engine.store.run(run)
        if row.status != "paused" or row.paused is None:
            raise not_waiting(row.run_id, row.status)
        document = engine.store.document(row.version)
        if document is None:
            raise UsageError(f"run {row.run_id} was started by a program, so answer it from there: handle.answer(...)")
        if options.answer is None and not at_a_terminal():
            raise typer.BadParameter(f"missing; the run asks: {row.paused['message']}", param_hint="'--answer'")
        pipeline = loaded_document(document, options)
        check_deps(pipeline, options)
        own = args.given_deps(options)
        allowed, file = allowing(options, models=False), Path(str(document["source"]))

        def proceed(_: PausedRun, text: str) -> RunResult:
            now = engine.store.run(row.run_id)
            keep, task = partial(engine.register, deps=own), partial(engine.answer_here, row=now, value=text)
            return execute(file, pipeline, task, as_json=options.as_json, engine=engine, prepare=keep)

        where = f"answer it with: {resume_hint(row.run_id, db)}{allowed}"
        asking = PausedRun.from_dict(row.paused)
        result = _answer_until_done(asking, options.answer, lambda: where, proceed)
        return result, question_of(result, db, allowed), asking


def _answer_until_done(
    paused: PausedRun, answer: str | None, where: Callable[[], str], proceed: Callable[[PausedRun, str], RunResult]
) -> RunResult:
    """Continue the run with the given answer; in a terminal, ask for further answers until it has ended.

    Without an answer, ends the command and prints `where` the run waits.
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


def _read_saved(state: Path) -> tuple[Path, dict[str, Any]]:
    """Return the blueprint and the state saved by `save_paused`. Raises `UsageError` for any other file."""
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
