"""Run workers on a shared PostgreSQL queue, and disrupt them while they work.

    python -m benchmarks.fleet                                   # 4 workers, 2,000 runs of 5 steps
    python -m benchmarks.fleet --runs 100 --kill-every 2         # a short test
    python -m benchmarks.fleet --minutes 30 --kill-every 0       # a soak test without kills, which checks for leaks

Every few seconds a worker is killed (SIGKILL) and replaced. Once, a worker is suspended and resumed (SIGSTOP, SIGCONT);
once, a worker loses only the database session that holds its lock; and once, the database is restarted. Files outside
the database log every execution of a step body. Prints one JSON object; exits with code 1 if a guarantee is broken.

`take_over_p99` is the time from a kill until another worker executes a step of one of the interrupted runs. With
`--minutes`, runs are submitted for that long, and the memory, threads and open files of the workers in the second fifth
of the time are compared with those in the last fifth.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from benchmarks.postgres import Server
from flujo_aros import Call, Pipeline, Runner
from flujo_aros.durable import Durable
from flujo_aros.durable.handle import violations
from flujo_aros.durable.store import Store

STEPS: Final = 5
BODY_SECONDS: Final = 0.03
BROKEN: Final = ("unfinished", "wrong", "completed_wrongly", "recorded_twice", "illegal_journals")


def pipeline(note: Path | None) -> Pipeline:
    """Return five steps that each append their number to a list, and log every execution in a file per process."""
    fd = None if note is None else os.open(note, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def step(number: int) -> Call:
        async def body(value: dict[str, Any]) -> dict[str, Any]:
            if fd is not None:
                os.write(fd, f"{value['run']} {number} {time.time()}\n".encode())
            await asyncio.sleep(BODY_SECONDS)
            return {**value, "done": [*value["done"], number]}

        return Call(f"step{number}", function=body)

    return Pipeline([step(number) for number in range(STEPS)], name="fleet")


def work(url: str, note: Path, concurrency: int) -> None:
    """Run a worker in this process. Never returns."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    try:
        engine = Durable(url)
        engine.register(Runner(pipeline(note), engine=engine))
        engine.launch(["default"], concurrency)
        signal.pause()
    finally:
        os._exit(1)


class Fleet:
    """The worker processes, and the times at which they were killed."""

    def __init__(self, url: str, folder: Path, size: int, concurrency: int) -> None:
        self.url, self.folder, self.concurrency = url, folder, concurrency
        self.pids: list[int] = []
        self.kills: list[tuple[float, int]] = []
        for _ in range(size):
            self.spawn()

    def spawn(self) -> None:
        """Start another worker."""
        pid = os.fork()
        if pid == 0:
            work(self.url, self.folder / f"worker{os.getpid()}", self.concurrency)
        self.pids.append(pid)

    def kill(self, pid: int) -> None:
        """Kill a worker and start another one."""
        os.kill(pid, signal.SIGKILL)
        self.kills.append((time.time(), pid))
        os.waitpid(pid, 0)
        self.pids.remove(pid)
        self.spawn()

    def end(self) -> None:
        """Kill all workers."""
        for pid in self.pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def bodies(self) -> list[tuple[str, int, float, int]]:
        """Return the executions of step bodies: run, step number, time, and process."""
        found: list[tuple[str, int, float, int]] = []
        for file in self.folder.glob("worker*"):
            pid = int(file.name.removeprefix("worker"))
            for line in file.read_text().splitlines():
                run, number, at = line.split()
                found.append((run, int(number), float(at), pid))
        return sorted(found, key=lambda body: body[2])


def submit(url: str, runs: range) -> None:
    """Submit runs to the queue from a separate process."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with Durable(url) as engine:
                runner = Runner(pipeline(None), engine=engine)

                async def put() -> None:
                    for number in runs:
                        await runner.submit({"run": f"run-{number}", "done": []}, run_id=f"run-{number}")

                asyncio.run(put())
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if status:
        raise SystemExit("the runs could not be submitted")


def unfinished(store: Store) -> int | None:
    """Return the number of unfinished runs, or None while the database is down."""
    query = (
        "SELECT count(*) FROM aros_durable_runs WHERE status NOT IN ('completed', 'failed', 'cancelled', 'degraded')"
    )
    try:
        with store.engine.connect() as connection:
            return int(connection.execute(sa.text(query)).scalar() or 0)
    except sa.exc.SQLAlchemyError:
        return None


def terminate_lock_session(store: Store) -> None:
    """Terminate only the database session that holds the lock of a worker."""
    query = (
        "SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_locks WHERE locktype = 'advisory' LIMIT 1) AS one"
    )
    with store.engine.begin() as connection:
        connection.execute(sa.text(query))


def disrupt(fleet: Fleet, server: Server, store: Store, given: argparse.Namespace) -> None:
    """Kill workers and restart the database repeatedly until all runs have ended."""
    draw, began, kills = random.Random(given.seed), time.monotonic(), 0
    stopped: tuple[int, float] | None = None
    todo = ["stop", "cut", "restart"]
    while unfinished(store) != 0:
        if time.monotonic() - began > given.seconds:
            return
        time.sleep(0.2)
        if stopped is not None and time.monotonic() > stopped[1]:
            os.kill(stopped[0], signal.SIGCONT)
            stopped = None
        if not given.kill_every or time.monotonic() - began < (kills + 1) * given.kill_every:
            continue
        kills += 1
        awake = [pid for pid in fleet.pids if stopped is None or pid != stopped[0]]
        if todo and kills % 3 == 0:
            what = todo.pop(0)
            if what == "stop":
                stopped = (draw.choice(awake), time.monotonic() + 3)
                os.kill(stopped[0], signal.SIGSTOP)
            elif what == "cut":
                terminate_lock_session(store)
            else:
                server.stop()
                time.sleep(0.5)
                server.start()
        else:
            fleet.kill(draw.choice(awake))


def take_overs(fleet: Fleet, bodies: list[tuple[str, int, float, int]]) -> list[float]:
    """Return for each kill the seconds until another worker resumed a run that was in progress."""
    found: list[float] = []
    for at, pid in fleet.kills:
        last: dict[str, tuple[int, float]] = {}
        for run, number, when, worker in bodies:
            if worker == pid:
                last[run] = (number, when)
        active = {run for run, (number, when) in last.items() if number < STEPS - 1 or at - when < BODY_SECONDS}
        after = [when - at for run, _, when, worker in bodies if run in active and worker != pid and when > at]
        if after:
            found.append(min(after))
    return found


def count_defects(store: Store, runs: int) -> Counter[str]:
    """Count the broken guarantees of the runs."""
    found: Counter[str] = Counter()
    for number in range(runs):
        row = store.find(f"run-{number}")
        if row is None or row.status not in ("completed", "failed", "cancelled", "degraded"):
            found["unfinished"] += 1
            continue
        steps = store.steps(row.run_id)
        right = row.status == "completed" and (row.result or {})["output"]["done"] == list(range(STEPS))
        found["wrong"] += not right
        found["completed_wrongly"] += row.status == "completed" and any(step.status != "success" for step in steps)
        found["recorded_twice"] += len(steps) > STEPS
        found["illegal_journals"] += bool(violations(store, row.run_id))
        found["most_takeovers"] = max(found["most_takeovers"], row.takeovers)
    return found


def quantile(values: list[float], share: float) -> float | None:
    """Return a quantile of the values."""
    return None if not values else round(sorted(values)[min(len(values) - 1, int(share * len(values)))], 2)


def sweep(given: argparse.Namespace, server: Server, folder: Path) -> tuple[dict[str, Any], int]:
    """Submit runs, disrupt them, and check the results."""
    url = server.database("fleet")
    submit(url, range(given.runs))
    fleet = Fleet(url, folder, given.workers, given.concurrency)
    store = Store(url)
    began = time.monotonic()
    try:
        disrupt(fleet, server, store, given)
    finally:
        fleet.end()
    found = count_defects(store, given.runs)
    bodies = fleet.bodies()
    store.close()
    times = take_overs(fleet, bodies)
    counted = Counter((run, number) for run, number, _, _ in bodies)
    again = sum(count - 1 for count in counted.values())
    p99 = quantile(times, 0.99)
    figures = {
        "workers": given.workers,
        "runs": given.runs,
        "steps": given.runs * STEPS,
        "killed": len(fleet.kills),
        **{name: found[name] for name in BROKEN},
        "bodies_run_again": again,
        "run_again_percent": round(100 * again / (given.runs * STEPS), 2),
        "most_takeovers": found["most_takeovers"],
        "take_over_p50": quantile(times, 0.5),
        "take_over_p99": p99,
        "seconds": round(time.monotonic() - began),
        "seed": given.seed,
    }
    return figures, sum(found[name] for name in BROKEN)


def resources(pids: list[int]) -> tuple[int, int, int]:
    """Return the total memory in bytes, threads and open files of the processes."""
    pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids)
    threads, files = (sum(1 for pid in pids for _ in Path(f"/proc/{pid}/{what}").iterdir()) for what in ("task", "fd"))
    return pages * os.sysconf("SC_PAGE_SIZE"), threads, files


def soak(given: argparse.Namespace, server: Server, folder: Path) -> tuple[dict[str, Any], int]:
    """Run at full speed for a while, and compare the resources of the workers at the beginning and at the end."""
    url = server.database("fleet")
    submit(url, range(given.runs))
    fleet = Fleet(url, folder, given.workers, given.concurrency)
    store, total = Store(url), given.runs
    began, samples = time.monotonic(), list[tuple[float, int, int, int]]()
    try:
        while (elapsed := time.monotonic() - began) < given.minutes * 60:
            time.sleep(2)
            left = unfinished(store)
            if left is not None and left < given.runs // 2:
                submit(url, range(total, total + given.runs))
                total += given.runs
            samples.append((elapsed, *resources(fleet.pids)))
        while unfinished(store):
            time.sleep(0.5)
    finally:
        fleet.end()
    found = count_defects(store, total)
    store.close()
    warm = given.minutes * 60 / 5

    def mean(column: int, since: float, until: float) -> float:
        values = [each[column] for each in samples if since <= each[0] < until]
        return sum(values) / max(1, len(values))

    ends = {
        name: [round(mean(column, warm, 2 * warm) / scale, 1), round(mean(column, 4 * warm, 5 * warm) / scale, 1)]
        for name, column, scale in (("megabytes", 1, 1e6), ("threads", 2, 1), ("open_files", 3, 1))
    }
    figures = {
        "workers": given.workers,
        "minutes": given.minutes,
        "runs": total,
        "runs_per_second": round(total / (given.minutes * 60), 1),
        **{name: found[name] for name in BROKEN},
        **{f"{name}_second_and_last_fifth": both for name, both in ends.items()},
    }
    return figures, sum(found[name] for name in BROKEN)


def main() -> int:
    """Run the fleet and print the findings."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--workers", type=int, default=4)
    options.add_argument("--runs", type=int, default=2000)
    options.add_argument("--concurrency", type=int, default=4, help="concurrent runs per worker")
    options.add_argument("--kill-every", type=float, default=4.0, metavar="SECONDS")
    options.add_argument("--seconds", type=float, default=1200.0, help="give up after this time")
    options.add_argument("--minutes", type=float, default=0.0, help="run a soak test for this time instead")
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, Server(Path(folder)) as server:
        notes = Path(folder) / "notes"
        notes.mkdir()
        figures, broken = (soak if given.minutes else sweep)(given, server, notes)
    print(json.dumps(figures))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
