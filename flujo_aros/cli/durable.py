"""Durable runs from the command line: submit them, work on them, watch, cancel, fork and check them."""

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
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.table import Table

from flujo_aros.blueprint.load import inspect_blueprint
from flujo_aros.blueprint.loading import read_text
from flujo_aros.cli import arguments as args
from flujo_aros.cli.execute import allowing, execute, finish, journal, question_with
from flujo_aros.cli.plan import load_to_run
from flujo_aros.cli.render import fitted_table
from flujo_aros.cli.screen import Text, new_mask, print_json, print_lines, say, stderr_console, stdout_console, worded
from flujo_aros.errors import UsageError
from flujo_aros.evals.cases import Case, CaseFile
from flujo_aros.events import Event, RunFinished, StepFinished, StepStarted, TextDelta, TextReplaced
from flujo_aros.pipeline.modules import use_folder
from flujo_aros.pipeline.results import RunResult, RunStatus
from flujo_aros.pipeline.runner import Runner
from flujo_aros.pipeline.step import with_ladder

if TYPE_CHECKING:  # imported when a command runs: loading the engine takes a second, which `aros --help` should not
    from flujo_aros.durable.engine import Durable
    from flujo_aros.durable.store import RunRow

DEFAULT_DB: Final = "sqlite:///.aros/durable.sqlite"

DB: Final = args.option(
    "--db URL",
    "The database of durable runs: sqlite:///FILE or postgresql://USER@HOST/NAME.",
    DEFAULT_DB,
    envvar="AROS_DB",
)
ONE_RUN: Final = args.argument("RUN", "The id of the run, its beginning, or `last`.")


def open_engine(db: str, *, create: bool = False) -> Durable:
    """The engine of a database. Raises `UsageError` if the extra is not installed or the URL cannot be used."""
    from flujo_aros.durable import Durable

    engine = Durable(db, live=True, create=create)
    _ = engine.store  # so that a wrong URL is reported before anything else
    return engine


def known_db() -> str | None:
    """The database of AROS_DB, or the default one if it exists."""
    own = os.environ.get("AROS_DB")
    return own or (DEFAULT_DB if Path(DEFAULT_DB.removeprefix("sqlite:///")).exists() else None)


def resume_hint(run_id: str, db: str) -> str:
    """The command that answers a run."""
    from flujo_aros.database import database_url, shown

    where = "" if db in (DEFAULT_DB, os.environ.get("AROS_DB")) else f" --db {shlex.quote(shown(database_url(db)))}"
    return f"aros resume {run_id} --answer TEXT{where}"


def question_of(result: RunResult, db: str, allowed: str = "") -> str:
    """What a paused run asks, and how to answer it; empty for one that has ended. `allowed` is as in `keep_paused`."""
    if result.paused is None:
        return ""
    return question_with(result.paused, f"{resume_hint(result.run_id, db)}{allowed}")


def document_of(blueprint: Path, choice: args.Choice = args.Choice()) -> dict[str, Any]:
    """The stored form of a blueprint, from which any worker can load it."""

    chosen = {key: value for key, value in choice.given.items() if value is not None}
    return {"source": str(blueprint.resolve()), "text": read_text(blueprint), **chosen}


def register(engine: Durable, blueprint: Path, choice: args.Choice, runner: Runner) -> str:
    """Register a blueprint with the engine and store it with its runs."""
    version = engine.register(runner)
    engine.documents[version] = document_of(blueprint, choice)
    return version


def submit_command(
    blueprint: Path = args.BLUEPRINT,
    *,
    sources: list[str] = args.INPUT,
    rows: str | None = args.INPUTS,
    db: str = DB,
    queue: str = args.option("--queue NAME", "The queue from which workers take it.", default="default"),
    priority: int | None = args.option(
        "--priority N", "1 is the highest; a run without a priority comes before all others.", min=1
    ),
    partition: str | None = args.option(
        "--partition KEY", "The partition that --per-partition limits, such as a customer."
    ),
    run_id: str | None = args.option(
        "--run-id ID", "The id of the run, or the prefix of the id of each row: the same id submitted twice is one run."
    ),
    pairs: list[str] = args.PAIRS,
    modules: args.Modules,
    choice: args.Choice,
) -> None:
    """Put durable runs into a queue.

    One run, or one for each row of --inputs. Prints the id of each run. `aros worker` executes them, here
    or on any machine; `aros status` shows their state.

    Example: aros submit triage.yaml --input @ticket.txt --db postgresql://aros@db/runs
    """
    if (not sources) == (rows is None):
        raise typer.BadParameter("give either --input or --inputs", param_hint="'--input'")
    pipeline, context = load_to_run(blueprint, modules, choice), args.given_pairs(pairs)
    if sources:
        given = [(args.given_content(sources), context, run_id)]
    else:
        with CaseFile(rows or "", "--inputs") as cases:
            found = list(cases)
        wrong = next((row for row in found if row.error is not None), None)
        if wrong is not None:
            raise UsageError(f"--inputs: row {wrong.key}: {wrong.error}; nothing was submitted")
        given = [
            (_input_of(row), {**context, **row.context}, f"{run_id}-{row.id}" if run_id else None) for row in found
        ]

    with open_engine(db, create=True) as engine:
        runner = Runner(pipeline, engine=engine)
        register(engine, blueprint, choice, runner)

        async def submit() -> None:
            for one, own, name in given:
                handle = await runner.submit(one, own, run_id=name, queue=queue, priority=priority, partition=partition)
                print_lines(f"{handle.run_id}\n")

        asyncio.run(submit())


def worker_command(
    *,
    db: str = DB,
    queues: str = args.option("--queues Q,…", "The queues to take runs from.", default="default"),
    concurrency: int = args.option("--concurrency N", "How many runs of a queue at once.", default=8, min=1),
    per_partition: int | None = args.option(
        "--per-partition N",
        "How many runs of one --partition at once, of all workers together. Kept with the queue.",
        min=1,
    ),
    limits: list[str] = args.option(
        "--limit LIMIT",
        "The limits per minute of a provider for all workers, e.g. openai:requests=500,tokens=200000,cost=2. "
        "Repeatable.",
        (),
    ),
    grace: float = args.option("--grace SECONDS", "How long runs may continue after SIGTERM or Ctrl-C.", default=30.0),
    modules: args.Modules,
    deps: str | None = args.DEPS,
) -> None:
    """Execute the durable runs of a database.

    Runs of workers that have died are taken over. What a blueprint may import is what this command allows.
    After SIGTERM or Ctrl-C it starts no more runs, lets those in progress continue for --grace seconds, and leaves the
    rest to other workers. A second signal leaves them at once.

    Example: aros worker --db postgresql://aros@db/runs --concurrency 16
    """
    from flujo_aros.durable import PerMinute

    own = args.given_deps(deps, modules)
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
    with journal() as kept, open_engine(db, create=True) as engine:

        def loaded(document: Mapping[str, Any]) -> Runner:
            observers = (new_mask().hear, report, *kept.observers)
            runner = Runner(loaded_document(document, modules), observers=observers)
            engine.register(runner, own)
            return runner

        engine.load = loaded
        engine.limits = dict(PerMinute.parse(each) for each in limits)
        engine.launch(
            [name.strip() for name in queues.split(",") if name.strip()], concurrency, per_partition=per_partition
        )
        say(f"worker {engine.executor} takes runs from {queues}; Ctrl-C drains it")
        stop.wait()
        waits = f"runs in progress: {engine.under_way}; Ctrl-C again leaves them to other workers at once"
        say(f"draining for at most {grace:g} s; {waits}")
        left = engine.drain(grace, cut)
        say("drained" if not left else f"runs left for other workers: {left}")
    if left:
        os._exit(0)  # a function that blocks its thread would keep the process until it returns


def _input_of(row: Case) -> Any:
    try:
        return row.live_input()
    except UsageError as error:
        raise UsageError(f"--inputs: row {row.key}: {error}; nothing was submitted") from error


def loaded_document(document: Mapping[str, Any], modules: args.Modules) -> Any:
    """The pipeline of a kept blueprint; what it may import is what the caller allows. Raises `ArosError`."""

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
    if "ladder" in document:
        pipeline = with_ladder(pipeline, document["ladder"])
    return pipeline


def status_command(
    run: str | None = args.argument("RUN", "The id of a run, its beginning, or `last`.", None),
    db: str = DB,
    follow: bool = args.flag("--follow -f", "Print steps and replies as they come, until the run ends or waits."),
    offset: int = args.option("--offset", "With --follow: print only what comes after it.", default=0, min=0),
    as_json: bool = args.AS_JSON,
    limit: int = args.option("--limit -n", "How many runs, newest first.", default=20, min=1),
) -> None:
    """Show the state of durable runs, or follow one.

    A run is queued, running, paused, parked or has ended. A parked run needs a version of its blueprint that no worker
    has; an interrupted one has lost its process. For both, the note says what to do. A damaged run cannot be read: the
    others are listed all the same, and the exit code is 1. With --json and a RUN: the document of `aros run --json`.

    Example: aros status 3f2a --follow
    """
    from flujo_aros.durable.store import DAMAGED

    with open_engine(db) as engine:
        if run is None:
            found = engine.store.runs(limit=limit)
            if as_json:
                print_json([_run_dict(engine, row) for row in found])
            elif found:
                console = stdout_console()
                console.print(_table(engine, found, console.width))
                if any(_asks(row) for row in found):
                    hint = resume_hint("RUN", engine.url)
                    say(f"\nanswer a paused run with: {hint}")
            else:
                stderr_console().print("no durable runs yet")
            if any(row.status == DAMAGED for row in found):
                raise typer.Exit(1)
            return
        row = engine.store.run(run)
        if follow:
            asyncio.run(_follow(engine, row.run_id, offset))
            row = engine.store.run(row.run_id)
        if as_json:
            print_json(_document(engine, row))
        elif not follow:
            lines = [f"{_status_of(engine, row)}  run {row.run_id} of {row.pipeline}", _advice(engine, row)]
            lines += [f"  {step.name}: {step.status or 'in progress'}" for step in engine.store.steps(row.run_id)]
            print_lines("".join(f"{line}\n" for line in lines if line is not None))


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
        return f"its process has ended; a worker takes it over{again}"
    asks = _asks(row)
    return None if asks is None else f"{asks}; answer with: {resume_hint(row.run_id, engine.url)}"


def _asks(row: RunRow) -> str | None:
    """The question of a paused run."""
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
    """The shape of `aros run --json`; a run that has not ended has the steps that have."""
    from flujo_aros.durable.handle import result_of

    if row.result is not None and row.status not in ("queued", "running", "parked", "cancelling"):
        return row.result
    so_far = result_of(row, engine.store.steps(row.run_id), None, unfinished=True).to_dict()
    error = None if row.note is None else {"step": None, "reason": None, "message": row.note}
    return {**so_far, "status": row.status, "trust": None, "output": None, "error": error}


def _table(engine: Durable, rows: Sequence[RunRow], width: int) -> Table:
    cells = [
        {
            "run": Text(row.run_id[:12]),
            "blueprint": Text(row.pipeline),
            "status": worded(_status_of(engine, row)),
            "started": Text(time.strftime("%Y-%m-%d %H:%M", time.localtime(row.created))),
            "note": Text((_asks(row) or _advice(engine, row) or "").partition("\n")[0]),
        }
        for row in rows
    ]
    return fitted_table(cells, width, folded={"blueprint": 12, "note": 20})


def cancel_command(run: str = ONE_RUN, db: str = DB) -> None:
    """Cancel a durable run.

    A run in progress first ends the steps that it has started.

    Example: aros cancel 3f2a
    """
    with open_engine(db) as engine:
        row = engine.store.run(run)
        engine.cancel(row)
        now = engine.store.run(row.run_id).status
        say(f"run {row.run_id} is {now}")


def fork_command(
    run: str = ONE_RUN,
    *,
    at: str = args.option("--at STEP", "The first step that runs again.", default=...),
    ladder: Path | None = args.option(
        "--ladder FILE", "A ladder, YAML or JSON, that replaces those of the agent steps."
    ),
    db: str = DB,
    as_json: bool = args.AS_JSON,
    modules: args.Modules,
    deps: str | None = args.DEPS,
    allow_degraded: bool = args.ALLOW_DEGRADED,
) -> None:
    """Run a durable run again from one step on.

    This is a new run: the steps before that one keep their results and are not paid for again. The blueprint is read
    again from its file, so that a run can continue after its blueprint has changed.

    Example: aros fork 3f2a --at answer --ladder stricter.json
    """
    with open_engine(db) as engine:
        row = engine.store.run(run)
        document = engine.store.document(row.version)
        if document is None:
            raise UsageError(f"run {row.run_id} was started by a program, so fork it from there: durable.fork(...)")
        file = Path(str(document["source"]))
        if file.is_file():
            document = {**document, **document_of(file)}  # and keep the models that the run was given
        if ladder is not None:
            document = {**document, "ladder": args.ladder_in(str(ladder), "--ladder")}
        pipeline, own = loaded_document(document, modules), args.given_deps(deps, modules)

        def keep(runner: Runner) -> None:
            engine.documents[engine.register(runner, own)] = document

        task = partial(engine.fork, row=row, at=at)
        result = execute(file, pipeline, task, as_json=as_json, engine=engine, prepare=keep)
    question = question_of(result, db, allowing(modules, args.Choice(), deps))
    finish(result, as_json=as_json, allow_degraded=allow_degraded, question=question)


def check_command(run: str = ONE_RUN, db: str = DB, as_json: bool = args.AS_JSON) -> None:
    """Check the record of a durable run.

    Every step and call that started must have ended, exactly once, and nothing may be recorded that never started.
    Exit code 0 if that holds, 1 if not.

    Example: aros check 3f2a
    """
    from flujo_aros.durable.audit import violations

    with open_engine(db) as engine:
        found = violations(engine.store, run)
    if as_json:
        print_json({"violations": found})
    else:
        print_lines("\n".join([*(found or ["the record of the run is consistent"]), ""]))
    if found:
        raise typer.Exit(1)
