"""`aros run`, `ensemble` and `resume`: run a blueprint, with the result on stdout and progress on stderr.

And durable runs: submit, execute, watch, cancel, fork and check them.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast, get_type_hints

import typer
from rich.console import Group

from flujo_aros.blueprint.load import inspect_blueprint
from flujo_aros.blueprint.loading import read_text
from flujo_aros.cli import arguments as args
from flujo_aros.cli import commands
from flujo_aros.cli.batch import ResultsFile, run_batch
from flujo_aros.cli.commands import DEFAULT_DB, Blueprint, Fork, Resume, Run
from flujo_aros.cli.execute import (
    EXIT_CODES,
    PAUSED,
    allowing,
    ask,
    at_a_terminal,
    execute,
    finish,
    journal,
    keep_paused,
    question_with,
)
from flujo_aros.cli.plan import check_deps, check_modules, check_ready, load, load_to_run, print_plan, print_warnings
from flujo_aros.cli.render import fitted_table
from flujo_aros.cli.screen import (
    Text,
    print_json,
    print_lines,
    print_result,
    say,
    stderr_console,
    stdout_console,
    stdout_reserved,
    worded,
)
from flujo_aros.cli.shown import new_mask
from flujo_aros.ensemble.manifest import unheard_input
from flujo_aros.ensemble.step import Ensemble
from flujo_aros.ensemble.views import render_stats
from flujo_aros.errors import BlueprintError, UsageError
from flujo_aros.evals.cases import Case, CaseFile
from flujo_aros.events import Event, RunFinished, StepFinished, StepStarted, TextDelta, TextReplaced
from flujo_aros.json_data import is_dict
from flujo_aros.pipeline.model import Pipeline
from flujo_aros.pipeline.modules import find_beside, imported_module, use_folder
from flujo_aros.pipeline.results import PausedRun, RunResult, RunStatus, in_order
from flujo_aros.pipeline.runner import Runner
from flujo_aros.pipeline.step import with_ladder
from flujo_aros.telemetry.formatting import counted

if TYPE_CHECKING:  # imported when a command runs: loading the engine takes a second, and `aros --help` does not need it
    from flujo_aros.durable.engine import Durable
    from flujo_aros.durable.store import RunRow


def run_command(options: Run) -> None:
    """Run the blueprint once, or for each row of --inputs."""
    context = args.given_pairs(options.pairs)
    loaded = load(options)
    if options.dry_run:
        print_plan(options.blueprint, loaded, as_json=options.as_json, with_bound=True, deps=options.deps)
        return
    pipeline = loaded.pipeline
    _require_one_input(options)  # before a missing module or API key, which would hide it
    _reject_ineffective(options)
    if options.rows is not None and options.output is None:
        raise UsageError("--inputs needs --output FILE for the results")
    check_modules(options.blueprint, loaded)
    check_ready(options.blueprint, pipeline, None if options.rows is None else options.max_cost)
    check_deps(pipeline, options)
    if options.rows is not None and options.output is not None:
        raise typer.Exit(run_batch(options, pipeline, context, options.rows, options.output))
    task: dict[str, Any] = {"input": args.run_input(options), "context": context}
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
    finish(result, options, question=question)


_OF_ROWS: Final = ("output", "retry_failed", "concurrency", *get_type_hints(commands.Limits))
_OF_ONE_RUN: Final = ("as_json", "state", "durable", "db")
_INSTEAD: Final = {
    "--output": "; the result of one run goes to stdout",
    "--max-cost": "; for one run, write `usage_limits: {max_cost: …}` at a step",
    "--json": "; each line of --output is such a document",
    "--state": "; the state of each row is in .aros/paused",
    "--durable": "; `aros submit --inputs` stores many durable runs, and `aros worker` executes them",
}
"""What to do instead of passing an option that has no effect."""


def _reject_ineffective(options: Run) -> None:
    """Raise `UsageError` for an option that has no effect together with the others."""
    if options.rows is None:
        for each in options.passed(*_OF_ROWS):
            raise UsageError(f"{each} needs --inputs{_INSTEAD.get(each, '')}")
    else:
        for each in options.passed(*_OF_ONE_RUN):
            raise UsageError(f"{each} applies to a single run, not to --inputs{_INSTEAD.get(each, '')}")
    if options.durable or options.db is not None:
        for each in options.passed("cache", "state"):
            raise UsageError(f"{each} has no effect on a durable run, which is stored in its database")


def ensemble_command(options: commands.Ensemble) -> None:
    """Run the blueprint with these options for its ensembles."""
    if len(options.sources) > 1:
        raise UsageError("--input is given more than once; an ensemble begins with one text")
    log = options.log
    # the run may be resumed from another folder
    where = log if log is None or "://" in log else str(Path(log).resolve())
    own: dict[str, Any] = {"turns": options.turns, "log": where, "reflection": options.reflection}
    pipeline = with_options(load_to_run(options), options.blueprint, **own)
    check_ready(options.blueprint, pipeline)
    text = args.given_input(options.sources[0]) if options.sources else ""
    if options.sources and isinstance(first := pipeline.steps[0], Ensemble):
        unheard = unheard_input(first.manifests)
        if unheard is not None:
            say(f"--input: {unheard}")

    run, stream = partial(Runner.run, input=text), partial(Runner.stream, input=text)
    result = execute(options.blueprint, pipeline, run, stream, as_json=options.as_json)
    if log is not None and result.status.value == "completed" and not result.usage.requests:
        say(
            f"{log} already contains this run, which has ended, so no model was called. "
            "If it used all its turns, pass a larger --turns to continue it."
        )
    question = keep_paused(result, options.blueprint, None, allowing(options), ensemble=own)
    finish(result, options, question=question, show=show_figures)


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
    return replace(pipeline, steps=tuple(steps))


def resume_command(options: Resume) -> None:
    """Answer the run in a state file, or in a database."""
    state, db = options.state, options.db
    if db is None and state.name == str(state) and not state.exists():  # not a file, so it may be the id of a run
        found, known = _find_state(str(state)), known_db()
        if str(state) == "last":
            state, db = _last_paused(found, known)
        else:
            if found is None and known is not None and (ended := _settled(state, _HAVE_VALUES)):
                raise ended
            state, db = found or state, None if found is not None else known
    if db is None and not state.exists():
        raise _not_paused(state)
    if db is not None:
        result, question, asking = _resume_durably(options, str(state), db)
        finish(result, options, question=question, answered=asking)
        return
    blueprint, saved = _read_saved(state)
    row, ensemble = saved.get("row"), saved.get("ensemble")
    pipeline = load_to_run(Blueprint(**vars(options) | {"blueprint": blueprint}))
    check_deps(pipeline, options)
    print_warnings(pipeline)
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
    finish(result, options, question=question, show=show, answered=asking)


def _find_state(run: str) -> Path | None:
    """Return the file of a paused run in this folder. Raises `UsageError` if several runs match the id."""
    from flujo_aros.database import SHORTEST_PREFIX  # imported here: `aros --help` needs no database

    files = list(PAUSED.glob("*.json"))
    if run != "last":
        is_short = len(run) < SHORTEST_PREFIX
        begun = [file for file in files if not is_short and file.name.startswith(run)]
        files = [file for file in files if file.stem == run] or begun
    if len(files) > 1 and run != "last":
        names = ", ".join(sorted(file.stem for file in files))
        raise UsageError(f"{len(files)} paused runs begin with {run!r}: {names}")
    return max(files, key=lambda file: file.stat().st_mtime, default=None)


def _not_paused(state: Path) -> UsageError:
    """Return the error for a state that does not exist. It names the status of a run in the journal."""
    from flujo_aros.database import SHORTEST_PREFIX

    elsewhere = "pass its state file, or --db for a database"
    if str(state) == "last":
        return UsageError(f"no run is paused in {PAUSED}; {elsewhere}")
    if len(str(state)) < SHORTEST_PREFIX:
        elsewhere = f"a prefix needs at least {SHORTEST_PREFIX} characters; {elsewhere}"
    return _settled(state, (*RunStatus, "lost", "running")) or UsageError(
        f"no run {str(state)!r} is paused in {PAUSED}; {elsewhere}. A state file is removed once "
        "its run has been answered and has ended; `aros runs` lists all runs"
    )


_HAVE_VALUES: Final = (RunStatus.COMPLETED, RunStatus.DEGRADED)
"""The statuses of a run that has been answered and that no database continues."""


def _settled(state: Path, statuses: Iterable[str]) -> UsageError | None:
    """Return the error for a run that the journal has with one of these statuses and that is not paused."""
    with suppress(UsageError):  # the run has a different name, or is not recorded
        run = args.recorded(state.stem).run
        named = run.run_id == state.stem or not state.suffix
        if named and run.status != RunStatus.PAUSED and run.status in statuses:
            ended = f"is {run.status} and not waiting for an answer; `aros show {run.run_id}` shows it"
            return UsageError(f"run {run.run_id}, started {run.started_at.astimezone():%Y-%m-%d %H:%M}, {ended}")
    return None


def _last_paused(file: Path | None, db: str | None) -> tuple[Path, str | None]:
    """Return the run that paused last: its state file, or its id and the database.

    Raises `UsageError` if the journal has a run that started later, so that no answer goes to an older run unnoticed.
    """
    paused: list[tuple[float, Path, str | None]] = [] if file is None else [(file.stat().st_mtime, file, None)]
    if db is not None:
        with open_engine(db) as engine:
            paused += [(at, Path(row.run_id), db) for at, row in _waiting(engine)[:1]]
    if not paused:
        return Path("last"), db
    at, state, db = max(paused, key=lambda each: each[0])
    try:
        with args.open_to_read() as journal:
            newest = next(iter(journal.runs(limit=1)), None)
    except UsageError:  # nothing is recorded
        newest = None
    if newest is not None and newest.run_id != state.stem and newest.started_at.timestamp() > at:
        ids = ", ".join(sorted({*(each.stem for each in PAUSED.glob("*.json")), *(each[1].stem for each in paused)}))
        raise UsageError(
            f"the last run, {newest.run_id}, is not waiting for an answer ({newest.status}); name one "
            f"of those that are: {ids}"
        )
    return state, db


def _waiting(engine: Durable) -> list[tuple[float, RunRow]]:
    """Return the paused runs of a database, each with the time when it paused, the last one first."""
    rows = [row for row in engine.store.runs(statuses=["paused"]) if row.status == "paused"]
    timed = [(max([row.created, *(step.started for step in engine.store.steps(row.run_id))]), row) for row in rows]
    return sorted(timed, key=lambda each: each[0], reverse=True)


def _resume_durably(options: Resume, run: str, db: str) -> tuple[RunResult, str, PausedRun]:
    """Answer a run of a database and continue it here. Returns its result, its question if it pauses again, and the
    pause that was answered."""
    from flujo_aros.durable.engine import not_waiting

    with open_engine(db) as engine:
        waiting = _waiting(engine) if run == "last" else []
        row = waiting[0][1] if waiting else engine.store.run(run)
        if row.status != "paused" or row.paused is None:
            raise not_waiting(row.run_id, row.status)
        document = stored_blueprint(engine, row, "answer it from there: handle.answer(...)")
        for each in options.passed("models", "profile", "again"):
            raise UsageError(f"{each} has no effect on a durable run, whose models and state are in its database")
        if options.answer is None and not at_a_terminal():
            raise UsageError(f"--answer is missing; the run asks: {row.paused['message']}")
        executed, allowed = executing(engine, document, options), allowing(options, models=False)

        def proceed(_: PausedRun, text: str) -> RunResult:
            return executed(partial(engine.answer_here, row=engine.store.run(row.run_id), value=text))

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
        results.add(Case(id=row["id"], mark=row["mark"]), result.to_dict(), row["version"])
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


def open_engine(db: str, *, create: bool = False) -> Durable:
    """Return the engine of a database. Raises `UsageError` if the extra is not installed or the URL cannot be used."""
    from flujo_aros.durable import Durable

    engine = Durable(db, live=True, create=create)
    _ = engine.store  # so that a wrong URL is reported before anything else
    return engine


def _is_new_file(db: str) -> bool:
    """Return whether a database is a file that does not exist yet."""
    from flujo_aros.database import database_url

    url = database_url(db)
    return url.get_backend_name() == "sqlite" and not Path(str(url.database)).exists()


def known_db() -> str | None:
    """Return the database of AROS_DB, or the default one if it exists."""
    own = os.environ.get("AROS_DB")
    return own or (DEFAULT_DB if Path(DEFAULT_DB.removeprefix("sqlite:///")).exists() else None)


def _db_option(db: str) -> str:
    """Return the option that names a database in a command line, or an empty string for the default one."""
    from flujo_aros.database import database_url, shown

    return "" if db in (DEFAULT_DB, os.environ.get("AROS_DB")) else f" --db {shlex.quote(shown(database_url(db)))}"


def resume_hint(run_id: str, db: str) -> str:
    """Return the command that answers a run."""
    return f"aros resume {run_id} --answer TEXT{_db_option(db)}"


def question_of(result: RunResult, db: str, allowed: str = "") -> str:
    """Return the question of a paused run and how to answer it, or an empty string if it has ended. `allowed` is as in
    `keep_paused`.
    """
    if result.paused is None:
        return ""
    return question_with(result.paused, f"{resume_hint(result.run_id, db)}{allowed}")


def document_of(options: Blueprint) -> dict[str, Any]:
    """Return the stored form of a blueprint, from which any worker can load it."""
    chosen = {key: value for key, value in args.chosen_models(options).items() if value is not None}
    if options.folders:  # only for advice: each process decides itself what it imports
        chosen["folders"] = [str(folder.resolve()) for folder in options.folders]
    return {"source": str(options.blueprint.resolve()), "text": read_text(options.blueprint), **chosen}


def register(engine: Durable, options: Blueprint, runner: Runner) -> str:
    """Register a blueprint with the engine and store it with its runs."""
    version = engine.register(runner)
    engine.documents[version] = document_of(options)
    return version


def submit_command(options: commands.Submit) -> None:
    """Submit one run, or one for each row, and print their ids."""
    rows, run_id = options.rows, options.run_id
    _require_one_input(options)
    pipeline, context = load_to_run(options), args.given_pairs(options.pairs)
    print_warnings(pipeline)
    if rows is None:
        inputs = [(args.run_input(options), context, run_id)]
    else:
        with CaseFile(rows, "--inputs") as cases:
            found = cases.first()
        inputs = [(_input_of(row), {**context, **row.context}, run_id and f"{run_id}-{row.id}") for row in found]
    queued: dict[str, Any] = {each: getattr(options, each) for each in ("queue", "priority", "partition")}
    with open_engine(options.db, create=True) as engine:
        runner = Runner(pipeline, engine=engine)
        register(engine, options, runner)

        async def submit() -> None:
            for one, own, name in inputs:
                handle = await runner.submit(one, own, run_id=name, **queued)
                print_lines(f"{handle.run_id}\n")

        asyncio.run(submit())


def worker_command(options: commands.Worker) -> None:
    """Take runs until a signal arrives, then drain."""
    left = asyncio.run(_taken_until_signal(options, args.given_deps(options)))
    if left:
        os._exit(0)  # a function that blocks its thread would keep the process until it returns


async def _taken_until_signal(options: commands.Worker, own: Any) -> int:
    """Take runs until a signal arrives, drain, and return how many are left for other workers.

    The event loop receives the signals. A handler in the main thread would not run if the signal arrived just before
    this thread began to wait for it.
    """
    stop, cut = asyncio.Event(), threading.Event()

    def drain() -> None:
        (cut if stop.is_set() else stop).set()

    def report(event: Event) -> None:
        if isinstance(event, RunFinished):
            left = event.status == RunStatus.CANCELLED.value and engine.leaves(event.run_id)
            status = "left for other workers" if left else event.status
            say(f"{status}  run {event.run_id} of {event.pipeline}")

    for signum in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signum, drain)
    is_new = _is_new_file(options.db)
    with journal() as kept, open_engine(options.db, create=True) as engine:

        def loaded(document: Mapping[str, Any]) -> Runner:
            observers = (new_mask().hear, report, *kept.observers)
            runner = Runner(loaded_document(document, options), observers=observers)
            engine.register(runner, own)
            return runner

        engine.load = loaded
        engine.on_unexecuted = lambda row, status, why: say(f"{status}  run {row.run_id} of {row.pipeline}: {why}")
        engine.limits = args.per_minute(options)
        queues = [name.strip() for name in options.queues.split(",") if name.strip()]
        await asyncio.to_thread(engine.launch, queues, options.concurrency, per_partition=options.per_partition)
        if is_new:
            say(f"created {engine.store.shown}, which has no runs yet", style="yellow")
        say(f"worker {engine.executor} takes runs from {options.queues} in {engine.store.shown}; Ctrl-C drains it")
        await stop.wait()
        waits = f"runs in progress: {engine.under_way}; Ctrl-C again leaves them to other workers immediately"
        say(f"draining for at most {options.grace:g} s; {waits}")
        left = await asyncio.to_thread(engine.drain, options.grace, cut)
        say("drained" if not left else f"runs left for other workers: {left}")
    return left


def _require_one_input(options: commands.Run | commands.Submit) -> None:
    ways = {"--input": options.sources or None, "--input-json": options.json_input or None, "--inputs": options.rows}
    passed = [way for way, value in ways.items() if value is not None]
    if not passed:
        raise UsageError("--input is required: a string, @FILE, or - for stdin; or --input-json for an object or list")
    if len(passed) > 1:
        raise UsageError(f"pass only one of {' and '.join(passed)}")
    if len(options.json_input) > 1:
        raise UsageError(f"--input-json is given {len(options.json_input)} times; pass one JSON value")


def _input_of(row: Case) -> Any:
    try:
        return row.live_input()
    except UsageError as error:
        raise UsageError(f"--inputs: {error}; nothing was submitted") from error


def loaded_document(document: Mapping[str, Any], modules: commands.Modules) -> Any:
    """Return the pipeline of a stored blueprint, which may import only what the caller allows.

    Raises `ArosError`, even for a module that cannot be imported here, so that another process can execute the run.
    """
    for folder in modules.folders:
        use_folder(folder)
    source = str(document["source"])
    inspected = inspect_blueprint(
        document["text"],
        source=source,
        folder=Path(source).parent,
        allow=modules.allow,
        models=document.get("models"),
        profile=document.get("profile"),
    )
    pipeline = inspected.loaded(source)
    for module in inspected.modules:
        imported_module(module, f"install it, or pass {_path_options(document).lstrip() or '--path FOLDER'}")
    return with_ladder(pipeline, document["ladder"]) if "ladder" in document else pipeline


def stored_blueprint(engine: Durable, row: RunRow, instead: str) -> dict[str, Any]:
    """Return the blueprint of a run. Raises `UsageError`, with what to do `instead`, if a program started the run."""
    document = engine.store.document(row.version)
    if document is None:
        raise UsageError(f"run {row.run_id} was started by a program, so {instead}")
    return document


def executing(
    engine: Durable, document: Mapping[str, Any], options: Fork | Resume
) -> Callable[[Callable[[Runner], Coroutine[Any, Any, RunResult]]], RunResult]:
    """Return a function that executes a run of a stored blueprint in this process."""
    with stdout_reserved():  # output printed by a module must not mix with the result
        pipeline, file = loaded_document(document, options), Path(str(document["source"]))
    check_deps(pipeline, options)
    print_warnings(pipeline)
    own = args.given_deps(options)

    def keep(runner: Runner) -> None:
        engine.documents[engine.register(runner, own)] = document

    return partial(execute, file, pipeline, as_json=options.as_json, engine=engine, prepare=keep)


def status_command(options: commands.Status) -> None:
    """Print the newest runs, or one."""
    if options.run is None and options.follow:
        raise UsageError("--follow needs a RUN, such as `last`")
    if options.run is not None and options.passed("limit"):
        raise UsageError("--limit is for the list of runs; leave it out, or RUN")
    if not options.follow and options.passed("offset"):
        raise UsageError("--offset needs --follow")
    with open_engine(options.db) as engine:
        if options.run is None:
            _list_runs(engine, options)
            return
        row = engine.store.run(options.run)
        if options.follow:
            asyncio.run(_follow(engine, row.run_id, options.offset))
            row = engine.store.run(row.run_id)
        document = _document(engine, row)
        if options.as_json:
            print_json(document)
            return
        if not options.follow:
            lines = [f"{_status_of(engine, row)}  run {row.run_id} of {row.pipeline}", _advice(engine, row)]
            steps = in_order(engine.store.steps(row.run_id))
            lines += [f"  {step.name}: {step.status or 'in progress'}" for step in steps]
            lines += [""] if document["output"] is not None else []
            print_lines("".join(f"{line}\n" for line in lines if line is not None))
        if document["output"] is not None:
            print_result(document["output"])


def _list_runs(engine: Durable, options: commands.Status) -> None:
    from flujo_aros.durable.store import DAMAGED

    found = engine.store.runs(limit=options.limit)
    if options.as_json:
        print_json([_run_dict(engine, row) for row in found])
    elif found:
        console = stdout_console()
        console.print(_table(engine, found, console.width))
        if any(_question(row) for row in found):
            hint = resume_hint("RUN", engine.url)
            say(f"\nanswer a paused run with: {hint}")
    else:
        stderr_console().print("no durable runs yet; `aros runs` lists other runs")
    if any(row.status == DAMAGED for row in found):
        raise typer.Exit(1)


async def _follow(engine: Durable, run_id: str, offset: int) -> None:
    console = stderr_console()
    async for _, each in engine.handle(run_id).stream(offset):
        event = each.event
        if isinstance(event, TextDelta):
            console.print(event.text, end="", soft_wrap=True)
        elif isinstance(event, TextReplaced):
            console.print(f"\n(again) {event.text}", end="", soft_wrap=True)
        elif isinstance(event, StepStarted):
            console.print(f"\n▸ {event.name}", soft_wrap=True)
        elif isinstance(event, StepFinished):
            console.print(f"\n  {event.name}: {event.status}", soft_wrap=True)
        elif each.result is not None:
            asks = question_of(each.result, engine.url) if isinstance(each.result, RunResult) else ""
            console.print(f"\n{each.result.status.value}  run {run_id}", soft_wrap=True)
            if asks:
                console.print(f"\n{asks}", soft_wrap=True)


def _status_of(engine: Durable, row: RunRow) -> str:
    gone = row.status in ("running", "cancelling") and (row.executor is None or not engine.locks.is_alive(row.executor))
    return "interrupted" if gone else row.status


def _advice(engine: Durable, row: RunRow) -> str | None:
    if row.note:
        return row.note
    if _status_of(engine, row) == "interrupted":
        options = f"{_db_option(engine.url)}{_allow_options(engine, row)}"
        worker, document = f"aros worker{options}", engine.store.document(row.version)
        if document is not None and not _is_current(document):  # the same command would start a new run
            fork = f"aros fork {row.run_id} --at STEP{options}"
            return f"its process ended; a worker continues it as it began: {worker}; with the edited blueprint: {fork}"
        again = "" if row.queue is not None else "run the same command again with --durable, or "
        return f"its process ended; {again}start a worker, which continues it: {worker}"
    asks = _question(row)
    if asks is None:
        return None
    return f"{asks}; answer with: {resume_hint(row.run_id, engine.url)}{_allow_options(engine, row)}"


def _is_current(document: Mapping[str, Any]) -> bool:
    """Return whether the file of a stored blueprint is still as it was stored."""
    try:
        return read_text(Path(str(document["source"]))) == str(document["text"])
    except BlueprintError:  # it cannot be read
        return False


def _allow_options(engine: Durable, row: RunRow) -> str:
    """Return the options that allow and find the modules of a stored blueprint, for a command line."""
    document = engine.store.document(row.version)
    if document is None:
        return ""
    source = Path(str(document["source"]))
    inspected = inspect_blueprint(document["text"], source=str(source), folder=source.parent, allow=["*"])
    found = {module: None if "." in module else find_beside(module, [source.parent]) for module in inspected.modules}
    named = [os.path.relpath(beside[0]) if beside is not None else module for module, beside in found.items()]
    return "".join(f" --allow {shlex.quote(each)}" for each in named) + _path_options(document)


def _path_options(document: Mapping[str, Any]) -> str:
    """Return the --path options with which a stored blueprint was first run."""
    folders: Sequence[str] = document.get("folders", ())
    return "".join(f" --path {shlex.quote(os.path.relpath(folder))}" for folder in folders)


def _question(row: RunRow) -> str | None:
    """Return the question of a paused run."""
    if row.status != "paused" or row.paused is None or row.note:
        return None
    return f"asks: {' '.join(str(row.paused.get('message')).split())}"


def _run_dict(engine: Durable, row: RunRow) -> dict[str, Any]:
    return {
        "run_id": row.run_id,
        "blueprint": row.pipeline,
        "status": _status_of(engine, row),
        "queue": row.queue,
        "created": row.created,
        "note": _advice(engine, row),
    }


def _document(engine: Durable, row: RunRow) -> dict[str, Any]:
    """Return the document of `aros run --json`; for a run in progress, with the steps that have ended."""
    from flujo_aros.durable.handle import result_of

    if row.result is not None and row.status not in ("queued", "running", "parked", "cancelling"):
        return row.result
    so_far = result_of(row, engine.store.steps(row.run_id), None, unfinished=True).to_dict()
    error = None if row.note is None else {"step": None, "reason": None, "message": row.note}
    return {**so_far, "status": row.status, "trust": None, "output": None, "error": error}


def _table(engine: Durable, rows: Sequence[RunRow], width: int) -> Group:
    """Return the runs, and their notes below the table."""
    cells = [
        {
            "run": Text(row.run_id[:12]),
            "blueprint": Text(row.pipeline),
            "status": worded(_status_of(engine, row)),
            "started": Text(time.strftime("%Y-%m-%d %H:%M", time.localtime(row.created))),
        }
        for row in rows
    ]
    notes = [(row.run_id[:12], _question(row) or _advice(engine, row)) for row in rows]
    below = [Text(f"{run}: {note.partition(chr(10))[0]}", overflow="fold") for run, note in notes if note]
    table = fitted_table(cells, width, folded={"blueprint": 12})
    return Group(table, *([Text(), *below] if below else []))


def cancel_command(options: commands.Cancel) -> None:
    """Cancel the run, and print its status."""
    with open_engine(options.db) as engine:
        row = engine.store.run(options.run)
        engine.cancel(row)
        now = engine.store.run(row.run_id).status
        say(f"run {row.run_id} is {now}")


def fork_command(options: Fork) -> None:
    """Fork the run and execute the new run in this process."""
    with open_engine(options.db) as engine:
        row = engine.store.run(options.run)
        document = stored_blueprint(engine, row, "fork it from there: durable.fork(...)")
        file = Path(str(document["source"]))
        if file.is_file():
            document = {**document, **document_of(Blueprint(blueprint=file))}  # keep the models that the run was given
        if options.ladder is not None:
            document = {**document, "ladder": args.ladder_in(options.ladder, "--ladder")}
        result = executing(engine, document, options)(partial(engine.fork, row=row, at=options.at))
    finish(result, options, question=question_of(result, options.db, allowing(options)))


def check_command(options: commands.Check) -> None:
    """Print the inconsistencies in the record."""
    from flujo_aros.durable.handle import violations

    with open_engine(options.db) as engine:
        found = violations(engine.store, options.run)
    if options.as_json:
        print_json({"violations": found})
    else:
        print_lines("\n".join([*(found or ["the record of the run is consistent"]), ""]))
    if found:
        raise typer.Exit(1)
