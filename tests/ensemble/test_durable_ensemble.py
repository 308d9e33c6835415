"""A durable run of an `agree` and an `ensemble` step is killed and recovered without asking anything again."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from flujo_aros import EventLog, RunResult
from flujo_aros.testing import ScriptedModel
from tests.ensemble.shop import line, refund, shop

pytest.importorskip("dbos", reason="dbos is not installed: pip install 'flujo_aros[durable]'")

from flujo_aros.durable import Durable
from flujo_aros.durable.handle import violations

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

ROOT = Path(__file__).parents[2]
BLUEPRINT = """
version: "0.1"
name: desk
agents:
  small: {model: "openai-chat:gpt-4o-mini", output_mode: native}
  reader:
    model: "openai-chat:gpt-4o-mini"
    output_mode: native
    output_schema: {type: object, required: [seller, total], additionalProperties: false,
                    properties: {seller: {type: string}, total: {type: number}}}
steps:
  - kind: agree
    name: bill
    wordings: 3
    need: 1.0
    reading: {name: read, uses: agents.reader, input: "{{ input }}"}
  - kind: ensemble
    name: wood
    turns: 6
    input: "{{ previous_step.seller }}"
    profiles: {default: small}LOG
    cast:
      - {name: owl, persona: You count., subscribes_to: [run.started, fox.spoke], may_emit: [owl.spoke],
         memory: {reflection_threshold: 4}}
      - {name: fox, persona: You hoard., subscribes_to: [owl.spoke, agent.reflected], may_emit: [fox.spoke]}
"""
LOGGED = BLUEPRINT.replace("LOG", "\n    log: events.sqlite")
KEPT = BLUEPRINT.replace("LOG", "")


class Provider(ThreadingHTTPServer):
    """A server with OpenAI's API that answers equal prompts equally, and kills its client at given requests."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.asked: list[str] = []
        self.client: subprocess.Popen[str] | None = None
        self.kill_at = 0


class Answers(BaseHTTPRequestHandler):
    server: Provider

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.asked.append(body)
        if len(self.server.asked) == self.server.kill_at and self.server.client is not None:
            self.server.client.send_signal(signal.SIGKILL)
            return
        word = hashlib.sha256(body.encode()).hexdigest()
        schema = json.dumps(json.loads(body)["response_format"])
        kind = next((name for name in ("fox.spoke", "owl.spoke", "agent.reflected") if f'"{name}"' in schema), "")
        reply = json.dumps({"kind": kind, "text": f"Leaf {word[:8]} falls on {word[8:16]} near {word[16:24]}."})
        reply = f"{reply[:-1]},}}"  # so that every turn has a repair to count
        if not kind:
            reply = '{"seller": "Ada", "total": 9.5}'
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        whole = {"id": "1", "created": 1, "model": "gpt-4o-mini", "usage": usage}
        choice = {"index": 0, "finish_reason": "stop"}
        said = {"role": "assistant", "content": reply}
        if json.loads(body)["stream"]:
            chunk = {**whole, "object": "chat.completion.chunk", "choices": [{**choice, "delta": said}]}
            self._send("text/event-stream", f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n")
        else:
            self._send(
                "application/json",
                json.dumps({**whole, "object": "chat.completion", "choices": [{**choice, "message": said}]}),
            )

    def _send(self, kind: str, body: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def started(folder: Path, provider: Provider, *words: str) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
        "OPENAI_BASE_URL": f"http://127.0.0.1:{provider.server_address[1]}/v1",
        "OPENAI_API_KEY": "none",
        "AROS_JOURNAL": "off",
    }
    command = [sys.executable, "-m", "flujo_aros.cli", *words]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True)


def aros(folder: Path, provider: Provider, *words: str) -> tuple[int, str, str]:
    with started(folder, provider, *words) as process:
        provider.client = process
        out, error = process.communicate(timeout=120)
    return process.returncode, out, error


def run(folder: Path, provider: Provider, db: str) -> tuple[int, str, str]:
    return aros(folder, provider, "run", "desk.yaml", "--input", "A bill.", "--json", "--durable", "--db", db)


def said(result: dict[str, Any]) -> Any:
    stable = {key: value for key, value in result["output"].items() if key != "stats"}
    steps = [
        (step["name"], step["status"], step["usage"]["requests"], step["inner_repairs"]) for step in result["steps"]
    ]
    return stable, sorted(steps)


def killed(folder: Path, provider: Provider, blueprint: str, db: str, at: int) -> tuple[Any, list[str]]:
    (folder / "desk.yaml").write_text(blueprint)
    provider.asked.clear()
    provider.kill_at = at
    code, out, error = run(folder, provider, db)
    if at:
        assert code == -9, error + out
        code, out, error = run(folder, provider, db)
    assert code == 0, error + out
    return said(json.loads(out)), list(provider.asked)


@pytest.mark.parametrize(("blueprint", "deaths"), [(KEPT, (2, 7)), (LOGGED, (7, 9))], ids=["in memory", "with a log"])
def test_calls_answered_before_a_crash_are_not_repeated(
    tmp_path: Path, provider: Provider, blueprint: str, deaths: tuple[int, ...]
) -> None:
    (tmp_path / "whole").mkdir()
    whole, asked = killed(tmp_path / "whole", provider, blueprint, "sqlite:///runs.sqlite", 0)
    assert (whole[0]["turns"], len(asked)) == (6, 9)
    for at in deaths:
        folder = tmp_path / str(at)
        folder.mkdir()
        result, again = killed(folder, provider, blueprint, "sqlite:///runs.sqlite", at)
        assert result == whole
        assert again == [*asked[:at], *asked[at - 1 :]]  # the one under way, and no other, is asked twice
        if "log:" in blueprint:
            with EventLog(folder / "events.sqlite") as log, EventLog(tmp_path / "whole/events.sqlite") as unbroken:
                assert [event.to_dict() for event in log] == [event.to_dict() for event in unbroken]


def test_a_submitted_run_is_recovered_by_another_worker_in_postgresql(
    tmp_path: Path, provider: Provider, postgres: str
) -> None:
    (tmp_path / "desk.yaml").write_text(KEPT)
    code, _, error = aros(
        tmp_path, provider, "submit", "desk.yaml", "--input", "A bill.", "--db", postgres, "--run-id", "desk-1"
    )
    assert code == 0, error
    provider.kill_at = 7
    assert aros(tmp_path, provider, "worker", "--db", postgres)[0] == -9
    with started(tmp_path, provider, "worker", "--db", postgres) as worker:
        code, _, error = aros(tmp_path, provider, "status", "desk-1", "--follow", "--db", postgres)
        worker.send_signal(signal.SIGTERM)
        worker.communicate(timeout=60)
    assert code == 0, error
    code, out, error = aros(tmp_path, provider, "status", "desk-1", "--json", "--db", postgres)
    assert (code, json.loads(out)["status"]) == (0, "completed"), error
    assert len(provider.asked) == 10
    assert len(set(provider.asked)) == 9


def test_a_turn_that_waits_for_an_approval_resumes_without_repeating_earlier_turns(
    tmp_path: Path, refunded: Callable[[], list[str]]
) -> None:
    model = ScriptedModel(
        line("Who has paid twice?", "owl.said"),
        refund("A-7"),
        line("Now A-7 has not.", "fox.said"),
        line("Who else?", "owl.said"),
        refund("B-8"),
        line("Nobody else, then.", "fox.said"),
    )

    async def ended(durable: Durable) -> RunResult[Any]:
        runner = shop(model, engine=durable)
        result = await runner.run("go", run_id="wood")
        for answer in (True, False):
            assert result.paused is not None
            result = await durable.answer_here(runner, durable.store.run("wood"), answer)
        assert violations(durable.store, "wood") == []
        return result

    with Durable(f"sqlite:///{tmp_path / 'runs.sqlite'}") as durable:
        result = asyncio.run(ended(durable))
    assert (refunded(), model.calls, result.usage.requests) == (["A-7"], 6, 6)
    assert (result.status.value, result.output["turns"]) == ("completed", 4)


def test_a_run_with_a_log_that_does_not_count_repairs_yet_resumes_from_it(tmp_path: Path, provider: Provider) -> None:
    (tmp_path / "desk.yaml").write_text(LOGGED)
    provider.kill_at = 9
    assert run(tmp_path, provider, "sqlite:///runs.sqlite")[0] == -9
    with closing(sqlite3.connect(tmp_path / "events.sqlite")) as events, events:
        assert events.execute("UPDATE aros_events SET meta = json_remove(meta, '$.repairs')").rowcount > 0
    code, out, error = run(tmp_path, provider, "sqlite:///runs.sqlite")
    assert (code, json.loads(out)["status"]) == (0, "completed"), error
