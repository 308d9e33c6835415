"""Kill durable runs at every hook, and count what is lost, wrongly reported as completed, or recorded twice.

    python -m benchmarks.crashes --deaths 2000                                  # on SQLite
    python -m benchmarks.crashes --deaths 2000 --url postgresql://aros@/postgres?host=FOLDER
    python -m benchmarks.crashes --deaths 150 --url temporal                    # on a development server of Temporal
    python -m benchmarks.crashes --deaths 500 --tally benchmarks/crashes.jsonl  # 500 more, with a new seed

Each run has a branch, a loop, a parallel, a map, a repair, a streamed reply and a pause, and hooks before and after
every write and inside every step body. The process is killed (SIGKILL) at one hook, its replacement at another, and so
on, up to three times; the last process must complete the run. The first kills visit all hooks in order, the others are
drawn from a seed. A file outside the database logs every hook. Every process records to a journal, which must in the
end equal that of an uninterrupted run. On Temporal there is no journal and no streamed text; there, the steps and calls
recorded by the workflow are compared.

Prints one JSON object; exits with code 1 if a guarantee is broken. With `--tally`, the figures are added to those of
the same sweep on the same database in that file, and the hooks are drawn from a new seed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from pydantic import BaseModel
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import flujo_aros.durable.recorder as durable_recorder
from flujo_aros import AgentSpec, Branch, Call, Human, Loop, Map, Parallel, Pipeline, Runner, Step
from flujo_aros.durable import Durable
from flujo_aros.durable.checkpoint import Checkpoints
from flujo_aros.durable.handle import violations
from flujo_aros.durable.store import Store
from flujo_aros.pipeline.results import RunResult
from flujo_aros.telemetry.journal import Journal

PROCESSES: Final = 4
"""The processes of a run: all but the last are killed."""
BROKEN: Final = (
    "lost",
    "falsely_completed",
    "recorded_twice",
    "illegal_journals",
    "journals_that_differ",
    "text_wrong",
)
NAMES: Final = ("runs", "deaths", *BROKEN, "bodies_run_again", "bodies_in_flight_at_deaths")
GOOD: Final = '{"name": "pen", "qty": 3}'
BAD: Final = "{'name': 'pen', 'qty': 'three of them'}"


class Item(BaseModel):
    """The output type of the agent."""

    name: str
    qty: int


class Hooks:
    """Counts and logs the hooks that a process reaches, and kills the process at the given one."""

    def __init__(self, file: Path, kill_at: int) -> None:
        self.count = 0
        self.kill_at = kill_at
        self.fd = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def hook(self, what: str) -> None:
        """Mark a point at which the process may be killed."""
        self.count += 1
        kill = self.count == self.kill_at
        os.write(self.fd, f"{what}{' KILLED' if kill else ''}\n".encode())
        if kill:
            os.kill(os.getpid(), 9)


class Models:
    """The models of the run: the first reply to each question needs a repair by the model."""

    def __init__(self, hooks: Hooks) -> None:
        self.hooks = hooks

    def reply(self, messages: list[ModelMessage]) -> str:
        """Return the reply of the model."""
        return GOOD if "OUTPUT" in str(messages) else BAD

    async def model(self, name: str) -> FunctionModel:
        """Return the model with this name."""

        async def ask(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
            kind = "repair" if "OUTPUT" in str(messages) else "first"
            self.hooks.hook(f"body {name} {kind}")
            await asyncio.sleep(0)
            self.hooks.hook(f"done {name} {kind}")
            return ModelResponse(parts=[TextPart(self.reply(messages))])

        async def stream(messages: list[ModelMessage], _: AgentInfo) -> AsyncIterator[str]:
            text = self.reply(messages)
            self.hooks.hook(f"body {name} stream")
            for at in range(0, len(text), 8):
                yield text[at : at + 8]
                self.hooks.hook(f"chunk {name}")
            self.hooks.hook(f"done {name} stream")

        return FunctionModel(ask, stream_function=stream, model_name=name)


def pipeline(hooks: Hooks) -> Pipeline:
    """Build a pipeline that contains every kind of step."""

    def call(name: str) -> Call:
        def body(value: Any) -> Any:
            hooks.hook(f"body {name}")
            return value

        return Call(name, function=body)

    def ask(name: str) -> Step:
        return Step(name, agent=AgentSpec(name=name, model=f"local:{name}"), contract=Item, input="Which?")

    return Pipeline(
        [
            ask("draft"),
            Branch("route", {"pen": call("known"), "other": call("unknown")}, condition="previous_step.name"),
            Loop("turns", call("turn"), max_loops=2),
            Parallel("fan", {"a": ask("ask"), "b": call("work")}),
            Map("each", call("one"), iterable_input="context.numbers"),
            Human("approve", "Ship it?"),
        ],
        name="everything",
    )


def hook_methods(hook: Callable[[str], None], owner: type, names: tuple[str, ...]) -> None:
    """Add a hook before and after each of the methods that store something."""

    def hooked(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            hook(f"before {name}")
            found = method(self, *args, **kwargs)
            names = [row["name"] for rows in args[3:4] for row in rows] if name in ("write", "finish") else []
            hook(f"kept {name} {','.join(names)}")
            return found

        return call

    for name in names:
        setattr(owner, name, hooked(name, getattr(owner, name)))


def hook_writes(hooks: Hooks) -> None:
    """Add a hook before and after every write to the database."""
    hook_methods(hooks.hook, Store, ("add", "claim", "write", "finish", "take_segment"))
    original = Checkpoints.__call__

    async def hooked(self: Checkpoints, key: str, make: Any, keep: Any) -> Any:
        hooks.hook(f"before call {key}")
        record = await original(self, key, make, keep)
        hooks.hook(f"kept call {key}")
        return record

    Checkpoints.__call__ = hooked  # type: ignore[method-assign]
    durable_recorder._FLUSH_SECONDS = 0.0
    # Starts are written as late as possible, so that every process reaches the same hooks.
    durable_recorder.RunRecording.start_within = 60.0


INPUT: Final = ("go", {"numbers": [1, 2]})
Execute = Callable[[str, str, Path, Hooks], RunResult]
"""Starts or resumes the run with this id in the database at a URL, answers its questions, and returns its result."""


def execute_durable(url: str, run_id: str, folder: Path, hooks: Hooks) -> RunResult:
    """Execute the run in this process until it ends or the process is killed."""
    hook_writes(hooks)
    engine = Durable(url, live=True)
    journal = Journal(folder / "journal.sqlite", max_runs=None)
    runner = Runner(pipeline(hooks), engine=engine, models=Models(hooks), journal=journal)

    async def main() -> RunResult:
        result = await runner.run(*INPUT, run_id=run_id)
        if result.paused is not None:
            hooks.hook("asks")
            result = await engine.answer_here(runner, engine.store.run(run_id), "yes")
        return result

    return asyncio.run(main())


def in_child(folder: Path, work: Callable[[], Any], seconds: float) -> int:
    """Run a function in a separate process. Returns 9 if it was killed, 0 if its `result` is in the folder."""
    child = os.fork()
    if child == 0:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        code = 3
        try:
            (folder / "result").write_text(json.dumps(work()))
            code = 0
        except BaseException as error:  # noqa: BLE001 - the parent process reports it
            (folder / "error").write_text(f"{type(error).__name__}: {error}")
        os._exit(code)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.WTERMSIG(status) or os.WEXITSTATUS(status)
        time.sleep(0.005)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return 99


def facts(result: dict[str, Any]) -> Any:
    """Return the part of a result that must not depend on how often the process was killed."""
    steps = [{key: value for key, value in step.items() if key != "seconds"} for step in result["steps"]]
    return result["status"], result["output"], steps, result["usage"]


_VOLATILE: Final = {"id", "run_id", "step_id", "parent_id", "reading_id", "started", "at", "seconds"}
"""The fields that differ between two runs."""


def journaled(folder: Path, run_id: str) -> Any:
    """Return the journal of a run without ids and times, which must not depend on how often the process was killed."""

    def plain(record: Any) -> Any:
        return json.loads(json.dumps(record, default=members))

    def members(record: Any) -> Any:
        if not is_dataclass(record):
            return str(record)
        return {each.name: getattr(record, each.name) for each in fields(record) if each.name not in _VOLATILE}

    with Journal(folder / "journal.sqlite", max_runs=None, create=False) as journal:
        story = journal.story(run_id)
    names = {each.step.id: each.step.name for each in story.chapters if each.step is not None}
    chapters = [
        {
            "step": None if each.step is None else plain(each.step),
            "inside": None if each.step is None else names.get(each.step.parent_id),
            "parts": [{type(part).__name__: plain(part)} for part in each.parts],
            "notes": [plain(note) for note in each.notes],
        }
        for each in story.chapters
    ]
    run = {"status": story.run.status, "usage": str(story.run.usage), "repairs": story.run.repairs}
    return run, sorted(chapters, key=lambda chapter: chapter["step"]["name"])


class Sweep:
    """The runs of a sweep on one database, and the findings."""

    execute: Execute = staticmethod(execute_durable)
    process_timeout = 60.0
    first_call = "stream"
    """The kind of the first model call of a step, as it is logged."""
    functions = frozenset({"known", "turn", "work", "one"})
    """The function steps: their bodies are done when the step has settled, those of agent steps when the call is kept.
    """

    def __init__(self, url: str | None, folder: Path) -> None:
        self.found: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.folder = folder
        self.url = url
        self.template = folder / "template.sqlite"
        self.baseline, self.journal, self.hooks = self._baseline()

    def _database(self, folder: Path) -> str:
        empty = self.folder / "template.journal"
        if empty.exists():
            shutil.copy(empty, folder / "journal.sqlite")
        if self.url is not None:
            return self.url
        if self.template.exists():
            shutil.copy(self.template, folder / "runs.sqlite")
        return f"sqlite:///{folder / 'runs.sqlite'}"

    def _start(self, url: str, run_id: str, folder: Path, kill_at: int) -> int:
        """Execute the run in a new process that is killed at a hook; return its exit code."""

        def work() -> dict[str, Any]:
            hooks = Hooks(folder / "log", kill_at)
            result = self.execute(url, run_id, folder, hooks)
            hooks.hook("ended")
            return {**result.to_dict(), "hooks": hooks.count}

        return in_child(folder, work, self.process_timeout)

    def _baseline(self) -> tuple[Any, Any, int]:
        """Execute a run without kills; its emptied tables are the template for every other run."""
        folder = self.folder / "base"
        folder.mkdir()
        run_id = f"base-{os.getpid()}"
        if self._start(self._database(folder), run_id, folder, 0) != 0:
            raise SystemExit(f"the run fails even without kills: {(folder / 'error').read_text()}")
        result = json.loads((folder / "result").read_text())
        if self.url is None:
            with sqlite3.connect(folder / "runs.sqlite") as connection:
                connection.execute("PRAGMA journal_mode=DELETE")
                tables = ["workflow_status", "operation_outputs", "aros_durable_runs", "aros_durable_steps"]
                for table in (*tables, "aros_durable_texts"):
                    connection.execute(f"DELETE FROM {table}")
            shutil.copy(folder / "runs.sqlite", self.template)
        journal = journaled(folder, run_id)
        with Journal(folder / "journal.sqlite") as kept:
            kept.prune(max_runs=0)
            with kept.engine.begin() as connection:
                connection.execute(sa.text("PRAGMA wal_checkpoint(TRUNCATE)"))
        shutil.copy(folder / "journal.sqlite", self.folder / "template.journal")
        return facts(result), journal, int(result["hooks"])

    def run(self, number: int, kills: list[int]) -> None:
        """Execute one run to its end, restarting the process after each kill."""
        folder = self.folder / str(number)
        folder.mkdir()
        url, run_id = self._database(folder), f"run-{os.getpid()}-{number}"
        code = 9
        for kill_at in (*kills, 0):
            code = self._start(url, run_id, folder, kill_at)
            if code != 9:
                break
            self.found["deaths"] += 1
            self._check_after_kill(url, run_id, number)
        self._check_end(code, url, run_id, folder, number)
        shutil.rmtree(folder)

    def _check_after_kill(self, url: str, run_id: str, number: int) -> None:
        """Check, while no process is running, that only completed steps are recorded as completed."""
        store = Store(url, create=True)
        try:
            row = store.find(run_id)
            if row is not None and row.status == "completed":
                steps = store.steps(run_id)
                tops = {step.name for step in steps if "/" not in step.name and step.status == "success"}
                if len(tops) != 6 or any(step.status is None for step in steps):
                    self.found["falsely_completed"] += 1
                    self.wrong.append(f"{number}: completed with {sorted(tops)}")
        finally:
            store.close()

    def _check_end(self, code: int, url: str, run_id: str, folder: Path, number: int) -> None:
        self.found["runs"] += 1
        result = json.loads((folder / "result").read_text()) if code == 0 else None
        if result is None or facts(result) != self.baseline:
            self.found["lost"] += 1
            error = folder / "error"
            self.wrong.append(f"{number}: code {code} {error.read_text() if error.exists() else result}"[:2000])
            return
        self._verify(url, run_id, folder, number)
        self._count_bodies((folder / "log").read_text().splitlines(), number)

    def _verify(self, url: str, run_id: str, folder: Path, number: int) -> None:
        """Compare the records of a completed run with those of an uninterrupted one."""
        store = Store(url, create=True)
        try:
            twice = self._recorded_twice(store, run_id)
            against = violations(store, run_id)
            streamed = "".join(
                f"\0{row.text}" if row.kind == "replaced" else row.text
                for row in store.texts(run_id)
                if row.step == "draft"
            )
        finally:
            store.close()
        self._compare(journaled(folder, run_id), twice, against, number)
        shown = streamed.rpartition("\0")[2]
        if shown not in (BAD, GOOD):
            self.found["text_wrong"] += 1
            self.wrong.append(f"{number}: the streamed text is {streamed!r}")

    def _compare(self, journal: Any, twice: int, against: list[str], number: int) -> None:
        if journal != self.journal:
            self.found["journals_that_differ"] += 1
            self.wrong.append(f"{number}: the journal differs: {_difference(journal, self.journal)}")
        self.found["recorded_twice"] += twice
        self.found["illegal_journals"] += bool(against)
        self.wrong += [f"{number}: {each}" for each in against]
        if twice:
            self.wrong.append(f"{number}: {twice} calls recorded twice")

    def _recorded_twice(self, store: Store, run_id: str) -> int:
        prefix = "" if store.is_sqlite else "dbos."
        query = sa.text(
            f"SELECT count(*) FROM (SELECT function_name FROM {prefix}operation_outputs "
            "WHERE function_name LIKE 'aros:%' AND (workflow_uuid = :run OR workflow_uuid LIKE :more) "
            "GROUP BY function_name HAVING count(*) > 1) AS twice"
        )
        with store.connection() as connection:
            return int(connection.execute(query, {"run": run_id, "more": f"{run_id}/%"}).scalar() or 0)

    def _count_bodies(self, lines: list[str], number: int) -> None:
        """Count the step bodies that ran more than once, and those in progress when the process was killed."""
        wanted = Counter(
            {f"body local:draft {self.first_call}": 1, "body local:draft repair": 1, "body known": 1, "body turn": 2}
            | {f"body local:ask {self.first_call}": 1, "body local:ask repair": 1, "body work": 1, "body one": 2}
        )
        done = Counter(line.removesuffix(" KILLED") for line in lines if line.startswith("body"))
        again = sum(max(0, count - wanted[name]) for name, count in done.items())
        begun: Counter[str] = Counter()
        in_flight = 0
        for line in lines:
            what = line.removesuffix(" KILLED")
            if what.startswith("body"):
                begun[what.split()[1].removeprefix("local:")] += 1
            elif what.startswith("kept call"):
                name = what.partition("#")[0].rpartition("/")[2].removeprefix("kept call aros:")
                begun[name] = max(0, begun[name] - 1)
            elif what.startswith("kept write "):
                ended = [name.rpartition("/")[2] for name in what.removeprefix("kept write ").split(",")]
                begun.subtract(name for name in ended if name in self.functions)
            if line.endswith("KILLED"):
                in_flight += sum(count for count in begun.values() if count > 0)
                begun.clear()
        self.found["bodies_run_again"] += again
        self.found["bodies_in_flight_at_deaths"] += in_flight
        missing = [name for name, count in wanted.items() if done[name] < count]
        if missing:
            self.found["lost"] += 1
            self.wrong.append(f"{number}: never executed: {missing}")


def _difference(found: Any, expected: Any) -> str:
    """Return the first entries that differ between two journals."""
    if found[0] != expected[0]:
        return f"{found[0]} is not {expected[0]}"
    wrong = [chapter for chapter in found[1] if chapter not in expected[1]]
    missing = [chapter for chapter in expected[1] if chapter not in found[1]]
    return f"has {json.dumps(wrong[:2])}, lacks {json.dumps(missing[:2])}"[:4000]


def sweep_of(url: str | None) -> type[Sweep]:
    """Return the sweep for the database at this URL."""
    if url is None or not url.startswith("temporal"):
        return Sweep
    from benchmarks.temporal import TemporalSweep

    return TemporalSweep


def part(given: argparse.Namespace, folder: Path, number: int) -> int:
    """Start a process that sweeps a part of the hooks and writes its report to the folder; return its id."""
    child = os.fork()
    if child:
        return child
    own = folder / f"part{number}"
    own.mkdir()
    sweep = sweep_of(given.url)(given.url, own)
    began, draw = time.monotonic(), random.Random(given.seed * 1000 + number)
    in_order = iter(range(1 + number, sweep.hooks + 1, given.at_once))
    runs = 0
    while sweep.found["deaths"] < given.deaths / given.at_once and time.monotonic() - began < given.seconds:
        runs += 1
        first = next(in_order, None) or draw.randint(1, sweep.hooks)
        sweep.run(runs, [first, *(draw.randint(1, sweep.hooks) for _ in range(PROCESSES - 2))])
    (folder / f"{number}.json").write_text(json.dumps({**sweep.found, "hooks": sweep.hooks, "wrong": sweep.wrong}))
    os._exit(0)


def main() -> int:
    """Run the sweep and print the findings."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--deaths", type=int, default=200, help="number of kills")
    options.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    options.add_argument(
        "--url",
        help="a PostgreSQL database, or `temporal` to start a development server; default: an SQLite file for each run",
    )
    options.add_argument("--at-once", type=int, default=4, help="number of concurrent runs")
    options.add_argument("--seed", type=int, help="default: one that the tally does not contain")
    options.add_argument("--tally", type=Path, help="JSON lines file that the figures are added to")
    given = options.parse_args()
    database = "SQLite" if given.url is None else "Temporal" if given.url == "temporal" else "PostgreSQL"
    if given.seed is None:
        given.seed = unused_seed(given.tally, database)
    with tempfile.TemporaryDirectory() as folder, server_for(given):
        parts = [part(given, Path(folder), number) for number in range(given.at_once)]
        for child in parts:
            os.waitpid(child, 0)
        found: Counter[str] = Counter()
        wrong: list[str] = []
        for file in sorted(Path(folder).glob("*.json")):
            reported = json.loads(file.read_text())
            hooks = reported.pop("hooks")
            wrong += reported.pop("wrong")
            found.update(reported)
        if len(list(Path(folder).glob("*.json"))) < given.at_once:
            raise SystemExit("a part of the sweep ended without a report")
    figures = {"database": database, "hooks": hooks, **{name: found[name] for name in NAMES}, "seeds": [given.seed]}
    print(json.dumps(figures if given.tally is None else add_to_tally(given.tally, figures)))
    for each in wrong[:20]:
        print(each, file=sys.stderr)
    broken = sum(found[name] for name in BROKEN)
    if found["bodies_run_again"] > found["bodies_in_flight_at_deaths"]:
        print("more bodies ran again than were in progress", file=sys.stderr)
        broken += 1
    return 1 if broken else 0


@contextmanager
def server_for(given: argparse.Namespace) -> Iterator[None]:
    """Start a Temporal server for the sweep if `--url temporal` is given."""
    if given.url != "temporal":
        yield
        return
    from benchmarks.temporal import TemporalServer

    with TemporalServer() as server:
        given.url = server.url
        yield


def add_to_tally(file: Path, figures: dict[str, Any]) -> dict[str, Any]:
    """Add the figures to those of the same sweep in the file; return the sums."""
    known = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    kept = []
    for line in known:
        if line["database"] != figures["database"]:
            kept.append(line)
        elif line["hooks"] == figures["hooks"]:  # other figures are of an older program, and are replaced
            figures = {**figures, **{name: figures[name] + line[name] for name in NAMES}}
            figures["seeds"] = line["seeds"] + figures["seeds"]
    kept.append(figures)
    kept.sort(key=lambda line: str(line["database"]), reverse=True)
    file.write_text("".join(f"{json.dumps(line)}\n" for line in kept))
    return figures


def unused_seed(file: Path | None, database: str) -> int:
    """Return a seed that the tally does not contain for this database."""
    lines = [json.loads(line) for line in file.read_text().splitlines()] if file is not None and file.exists() else []
    return 1 + max((seed for line in lines if line["database"] == database for seed in line["seeds"]), default=0)


if __name__ == "__main__":
    sys.exit(main())
