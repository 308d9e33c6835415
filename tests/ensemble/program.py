"""Play an ensemble in processes that kill themselves at every EVERY-th place: `python program.py URL EVERY`.

A place is a model call, and every statement and commit of the database. Each time the run resumes in a new process,
until it ends. Printed is, as JSON, how many have died, which logs differ from that of a run that nobody killed, and how
many calls were made again.
"""

import hashlib
import json
import os
import signal
import sys
from typing import Any

from sqlalchemy import Engine, event

from flujo_aros import Ensemble, EventLog, Manifest, Runner
from flujo_aros.testing import ScriptedModel, ScriptedModels

TURNS = 12
CAST = [
    Manifest(
        name="whisperer",
        persona="You whisper.",
        subscribes_to=("run.started", "user.injected"),
        may_emit=("world.observed",),
        schedule={"tick_every": 2},
        memory={"reflection_threshold": 5},
    ),
    Manifest(
        name="actor",
        persona="You act.",
        subscribes_to=("world.observed", "agent.reflected"),
        may_emit=("agent.spoke",),
        memory={"reflection_threshold": 4, "window": 3},
    ),
]


class Places:
    """Counts the places that a process passes, and kills it at one of them."""

    def __init__(self, die_at: int | None) -> None:
        self.passed = 0
        self.die_at = die_at

    def __call__(self, *_: Any) -> None:
        self.passed += 1
        if self.passed == self.die_at:
            os.kill(os.getpid(), signal.SIGKILL)


def play(log: EventLog, places: Places, calls: int | None = None) -> None:
    def line(prompt: str) -> str:
        if calls is not None:
            os.write(calls, b".")
        places()
        word = hashlib.sha256(prompt.encode()).hexdigest()
        kind = "agent.reflected" if "ONE belief" in prompt else "agent.spoke"
        return json.dumps({"kind": kind, "text": f"Leaf {word[:8]} falls on {word[8:16]} near {word[16:24]}."})

    for name in ("after_cursor_execute", "commit"):
        event.listen(Engine, name, places)
    step = Ensemble("wood", cast=CAST, profiles={"default": "local:m"}, turns=TURNS, log=log, inject={6: "Rain."})
    Runner(step, models=ScriptedModels({"local:m": ScriptedModel(then=line)})).run_sync("A clearing at dusk.")


def said(log: EventLog) -> list[dict[str, Any]]:
    return [{**each.to_dict(), "run_id": ""} for each in log]


def life(url: str, run_id: str, die_at: int | None, calls: int) -> bool:
    """Play in a separate process; return whether it ended without being killed."""
    child = os.fork()
    if not child:
        code = 1
        try:
            play(EventLog(url, run_id=run_id), Places(die_at), calls)
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return False
    assert os.waitstatus_to_exitcode(status) == 0
    return True


def main() -> None:
    url, every = sys.argv[1], int(sys.argv[2])
    unbroken = EventLog()
    counted = ScriptedCalls()
    play(unbroken, Places(None), counted.write)
    whole, once = said(unbroken), counted.read()
    found: dict[str, Any] = {"deaths": 0, "events": len(whole), "different": [], "asked_again": 0}
    die_at = 1
    while True:
        run_id = f"killed at {die_at}"
        lived = life(url, run_id, die_at, counted.write)
        if not lived:
            found["deaths"] += 1
            assert life(url, run_id, None, counted.write)
        log = EventLog(url, run_id=run_id)
        found["different"] += [die_at] if said(log) != whole else []
        log.close()
        found["asked_again"] = max(found["asked_again"], counted.read() - once)
        if lived:
            break
        die_at += every
    sys.stdout.write(json.dumps(found))


class ScriptedCalls:
    """Counts calls across processes by writing one byte for each."""

    def __init__(self) -> None:
        self._end, self.write = os.pipe()

    def read(self) -> int:
        os.write(self.write, b"!")
        return len(os.read(self._end, 1 << 16)) - 1


if __name__ == "__main__":
    main()
