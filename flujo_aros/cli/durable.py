"""Durable runs from the command line: submit, execute, watch, cancel, fork and check them."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Group

from flujo_aros.blueprint.load import inspect_blueprint
from flujo_aros.blueprint.loading import read_text
from flujo_aros.cli import arguments as args
from flujo_aros.cli.commands import DEFAULT_DB, Blueprint, Cancel, Check, Fork, Modules, Status, Submit, Worker
from flujo_aros.cli.execute import allowing, execute, finish, journal, question_with
from flujo_aros.cli.plan import check_deps, load_to_run
from flujo_aros.cli.render import fits, fitted_table
from flujo_aros.cli.screen import (
    Text,
    print_json,
    print_lines,
    print_result,
    say,
    stderr_console,
    stdout_console,
    worded,
)
from flujo_aros.cli.shown import new_mask
from flujo_aros.errors import UsageError
from flujo_aros.evals.cases import Case, CaseFile
from flujo_aros.events import Event, RunFinished, StepFinished, StepStarted, TextDelta, TextReplaced
from flujo_aros.pipeline.modules import find_beside, use_folder
from flujo_aros.pipeline.results import RunResult, RunStatus
from flujo_aros.pipeline.runner import Runner
from flujo_aros.pipeline.step import with_ladder

if TYPE_CHECKING:  # imported when a command runs: loading the engine takes a second, and `aros --help` does not need it
    from flujo_aros.durable.engine import Durable
    from flujo_aros.durable.store import RunRow


def open_engine(db: str, *, create: bool = False) -> Durable:
    """Return the engine of a database. Raises `UsageError` if the extra is not installed or the URL cannot be used."""
    from flujo_aros.durable import Durable

    engine = Durable(db, live=True, create=create)
    _ = engine.store  # so that a wrong URL is reported before anything else
    return engine


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
    return {"source": str(options.blueprint.resolve()), "text": read_text(options.blueprint), **chosen}


def register(engine: Durable, options: Blueprint, runner: Runner) -> str:
    """Register a blueprint with the engine and store it with its runs."""
    version = engine.register(runner)
    engine.documents[version] = document_of(options)
    return version


def submit_command(options: Submit) -> None:
    """Submit one run, or one for each row, and print their ids."""
    rows, run_id = options.rows, options.run_id
    if (not options.sources) == (rows is None):
        raise typer.BadParameter("use either --input or --inputs", param_hint="'--input'")
    pipeline, context = load_to_run(options), args.given_pairs(options.pairs)
    if rows is None:
        inputs = [(args.given_content(options.sources), context, run_id)]
    else:
        with CaseFile(rows, "--inputs") as cases:
            found = list(cases)
        wrong = next((row for row in found if row.error is not None), None)
        if wrong is not None:
            raise UsageError(f"--inputs: {wrong.error}; nothing was submitted")
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


def worker_command(options: Worker) -> None:
    """Take runs until a signal arrives, then drain."""
    from flujo_aros.durable import PerMinute

    own = args.given_deps(options)
    stop, cut = threading.Event(), threading.Event()

    def drain(_signum: int, _frame: object) -> None:
        (cut if stop.is_set() else stop).set()

    def report(event: Event) -> None:
        if isinstance(event, RunFinished):
            left = event.status == RunStatus.CANCELLED.value and engine.leaves(event.run_id)
            status = "left for other workers" if left else event.status
            say(f"{status}  run {event.run_id} of {event.pipeline}")

    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, drain)
    with journal() as kept, open_engine(options.db, create=True) as engine:

        def loaded(document: Mapping[str, Any]) -> Runner:
            observers = (new_mask().hear, report, *kept.observers)
            runner = Runner(loaded_document(document, options), observers=observers)
            engine.register(runner, own)
            return runner

        engine.load = loaded
        engine.on_parked = lambda row, why: say(f"parked  run {row.run_id} of {row.pipeline}: {why}")
        engine.limits = dict(PerMinute.parse(each) for each in options.limits)
        queues = [name.strip() for name in options.queues.split(",") if name.strip()]
        engine.launch(queues, options.concurrency, per_partition=options.per_partition)
        say(f"worker {engine.executor} takes runs from {options.queues}; Ctrl-C drains it")
        stop.wait()
        waits = f"runs in progress: {engine.under_way}; Ctrl-C again leaves them to other workers immediately"
        say(f"draining for at most {options.grace:g} s; {waits}")
        left = engine.drain(options.grace, cut)
        say("drained" if not left else f"runs left for other workers: {left}")
    if left:
        os._exit(0)  # a function that blocks its thread would keep the process until it returns


def _input_of(row: Case) -> Any:
    try:
        return row.live_input()
    except UsageError as error:
        raise UsageError(f"--inputs: row {row.key}: {error}; nothing was submitted") from error


def loaded_document(document: Mapping[str, Any], modules: Modules) -> Any:
    """Return the pipeline of a stored blueprint, which may import only what the caller allows. Raises `ArosError`."""
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
    return with_ladder(pipeline, document["ladder"]) if "ladder" in document else pipeline


def status_command(options: Status) -> None:
    """Print the newest runs, or one."""
    from flujo_aros.durable.store import DAMAGED

    with open_engine(options.db) as engine:
        if options.run is None:
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
            lines += [f"  {step.name}: {step.status or 'in progress'}" for step in engine.store.steps(row.run_id)]
            lines += [""] if document["output"] is not None else []
            print_lines("".join(f"{line}\n" for line in lines if line is not None))
        if document["output"] is not None:
            print_result(document["output"])


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
        again = "" if row.queue is not None else ", or run the same command again with --durable"
        worker = f"aros worker{_db_option(engine.url)}{_allow_options(engine, row)}"
        return f"its process ended; the next worker will pick it up{again}; start one with: {worker}"
    asks = _question(row)
    if asks is None:
        return None
    return f"{asks}; answer with: {resume_hint(row.run_id, engine.url)}{_allow_options(engine, row)}"


def _allow_options(engine: Durable, row: RunRow) -> str:
    """Return the options that allow the modules of a stored blueprint, for a command line."""
    document = engine.store.document(row.version)
    if document is None:
        return ""
    source = Path(str(document["source"]))
    inspected = inspect_blueprint(document["text"], source=str(source), folder=source.parent, allow=["*"])
    found = {module: None if "." in module else find_beside(module, [source.parent]) for module in inspected.modules}
    named = [os.path.relpath(beside[0]) if beside is not None else module for module, beside in found.items()]
    return "".join(f" --allow {shlex.quote(each)}" for each in named)


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
    """Return the runs with their notes: beside them, or below the table if it would be too wide."""
    notes = {row.run_id: (_question(row) or _advice(engine, row) or "").partition("\n")[0] for row in rows}
    cells = [
        {
            "run": Text(row.run_id[:12]),
            "blueprint": Text(row.pipeline),
            "status": worded(_status_of(engine, row)),
            "started": Text(time.strftime("%Y-%m-%d %H:%M", time.localtime(row.created))),
        }
        for row in rows
    ]
    noted = [{**cell, "note": Text(note)} for cell, note in zip(cells, notes.values(), strict=True)]
    if any(notes.values()) and fits(noted, width):
        return Group(fitted_table(noted, width))
    below = [Text(f"{run_id[:12]}: {note}", overflow="fold") for run_id, note in notes.items() if note]
    table = fitted_table(cells, width, folded={"blueprint": 12})
    return Group(table, *([Text(), *below] if below else []))


def cancel_command(options: Cancel) -> None:
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
        document = engine.store.document(row.version)
        if document is None:
            raise UsageError(f"run {row.run_id} was started by a program, so fork it from there: durable.fork(...)")
        file = Path(str(document["source"]))
        if file.is_file():
            document = {**document, **document_of(Blueprint(blueprint=file))}  # keep the models that the run was given
        if options.ladder is not None:
            document = {**document, "ladder": args.ladder_in(str(options.ladder), "--ladder")}
        pipeline = loaded_document(document, options)
        check_deps(pipeline, options)
        own = args.given_deps(options)

        def keep(runner: Runner) -> None:
            engine.documents[engine.register(runner, own)] = document

        task = partial(engine.fork, row=row, at=options.at)
        result = execute(file, pipeline, task, as_json=options.as_json, engine=engine, prepare=keep)
    question = question_of(result, options.db, allowing(options))
    finish(result, as_json=options.as_json, allow_degraded=options.allow_degraded, question=question)


def check_command(options: Check) -> None:
    """Print the inconsistencies in the record."""
    from flujo_aros.durable.audit import violations

    with open_engine(options.db) as engine:
        found = violations(engine.store, options.run)
    if options.as_json:
        print_json({"violations": found})
    else:
        print_lines("\n".join([*(found or ["the record of the run is consistent"]), ""]))
    if found:
        raise typer.Exit(1)
