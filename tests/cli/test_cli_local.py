"""The main use case: a pipeline on a real local model, from the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import jsonschema_rs
import pytest

from flujo_aros import Step, load_blueprint
from flujo_aros.pipeline.step import effective

from .conftest import COMMAND, Aros

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

BLUEPRINT = Path(__file__).parents[2] / "blueprints" / "ticket_triage.yaml"
TICKET = (
    "Order 4711 arrived with a cracked screen. I need a replacement before Friday! Anna Berg, anna.berg@example.com"
)


def test_ticket_becomes_values_that_satisfy_their_schemas(aros_process: Aros) -> None:
    result = aros_process("run", str(BLUEPRINT), "--input", TICKET, "--json")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["status"] == "completed"
    for step, made in zip(load_blueprint(BLUEPRINT).steps, document["steps"], strict=True):
        assert isinstance(step, Step)
        contract = effective(step).contract
        assert contract is not None
        jsonschema_rs.validate(contract.json_schema, made["output"])
        assert made["calls"] >= 1
        assert made["usage"]["input_tokens"] > 0
    assert document["output"] == document["steps"][-1]["output"]
    assert "llama" not in result.stderr.lower(), "the engine's own log stays away"


def children_of(process: int) -> list[int]:
    """Return the living children of a process, without zombies. Servers have their own session."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            except OSError:  # it ended meanwhile
                continue
            if int(parent) == process and state != "Z":
                found.append(int(entry.name))
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are counted in /proc")
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_no_server_running(
    tmp_path: Path, environment: Mapping[str, str], signum: signal.Signals
) -> None:
    with subprocess.Popen(
        [*COMMAND, "run", str(BLUEPRINT), "--input", TICKET],
        cwd=tmp_path,
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        while process.stderr.readline() != "reply: started\n":
            assert process.poll() is None
        servers = children_of(process.pid)
        assert servers, "the server runs beside it"
        os.kill(process.pid, signum)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 128 + signum
    assert stdout == ""
    assert "reply: cancelled" in stderr
    assert "Traceback" not in stderr
    assert not [server for server in servers if Path(f"/proc/{server}").exists()]
