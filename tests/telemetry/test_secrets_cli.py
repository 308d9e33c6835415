"""Secrets planted around `aros run` never occur in command output, logs, journal, report or OTLP payloads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from textwrap import dedent

import pytest

ROOT = Path(__file__).parents[2]

PLANTED = {
    "environment": "env-staple-of-the-house",
    "provider key": "provider-horse-battery-9",
    "collector header": "collector-horse-battery-8",
    "set": "set-on-the-command-line-7",
    "set by looks": "ghp_Pl4ntedOnTheCommandLine01",
    "prompt": "sk-proj-Pl4ntedInThePrompt01",
    "prompt url": "pw0rd-in-prompt-url",
    "prompt label": "labelled-horse-12",
    "header": "header-horse-of-the-settings",
    "authorization": "dXNlcjpwbGFudGVkLWJhc2lj",
    "system prompt": "AKIAPLANTEDINSTRUCT1",
    "params": "param-battery-of-a-function",
    "reply value": "sk-ant-Pl4ntedInAReplyValue",
    "reply prose": "xoxb-1234-planted-in-prose",
    "reply key": "github_pat_PlantedAsAKey01",
    "reply bearer": "Pl4nted.Bearer.Token-0001",
    "reply label": "reply-label-horse-55",
    "issue": "ghs_Pl4ntedInAnIssue01234567",
    "repair": "ASIAPLANTEDINAREPAIR",
    "provider error": "sk-or-Pl4ntedInAProviderError",
    "provider url": "pw0rd-in-provider-url",
    "step output": "sk-svc-Pl4ntedInAnOutput01",
    "exception": "gho_Pl4ntedInAnException0123",
    "exception url": "pw0rd-in-exception-url",
}

BLUEPRINT = f"""
    version: "0.1"
    name: planted
    agents:
      clerk:
        model: openai-chat:gpt-4o-mini
        system_prompt: "The key is {PLANTED["system prompt"]}."
        model_settings:
          extra_headers: {{X-Api-Key: {PLANTED["header"]}, Authorization: "Basic {PLANTED["authorization"]}"}}
        output_schema:
          type: object
          required: [name, crew, password]
          properties: {{name: {{type: string}}, crew: {{type: integer}}, password: {{type: string}}}}
    steps:
      - name: ask
        uses: agents.clerk
        input: "{{{{ input }}}} {{{{ context }}}}"
        on_degraded: accept
      - name: lookup
        uses: "steps:lookup"
        params: {{api_key: {PLANTED["params"]}}}
      - name: LAST
"""
GOOD_END = BLUEPRINT.replace("- name: LAST", "- {name: done, uses: 'steps:done'}")
BAD_END = BLUEPRINT.replace("- name: LAST", "- {name: fail, uses: 'steps:fail'}")
STEPS = f"""
    def lookup(previous_step, api_key):
        print("looking it up")
        return {PLANTED["step output"]!r}

    def done(previous_step):
        return "all done"

    def fail(previous_step):
        raise RuntimeError("https://me:{PLANTED["exception url"]}@host said no to {PLANTED["exception"]}, "
                           "{PLANTED["params"]}, {PLANTED["set"]} and {PLANTED["environment"]}")
"""
REPLIES = [
    (
        f'Use {PLANTED["reply prose"]}: {{"name": "{PLANTED["reply value"]}", "{PLANTED["reply key"]}": 1, '
        f'"crew": "{PLANTED["issue"]}", "password": "{PLANTED["reply label"]}"}}'
    ),
    f"Authorization: Bearer {PLANTED['reply bearer']}, and {PLANTED['header']}, {PLANTED['set']}",
    (
        f"{{'name': '{PLANTED['repair']}', 'crew': '3', 'password': '{PLANTED['reply label']}', "
        f"'x': '{PLANTED['environment']}', 'y': '{PLANTED['authorization']} {PLANTED['provider key']}',}}"
    ),
]


class Provider(BaseHTTPRequestHandler):
    """A scripted OpenAI server: a string is a reply; after the last one, an error quotes the request."""

    replies: Iterator[str]
    emitted: bytes

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path in ("/v1/traces", "/v1/metrics"):  # it is the collector, too
            type(self).emitted += body
            self._answer(200, b"")
            return
        reply = next(self.replies, None)
        if reply is None:
            error = f"bad key {PLANTED['provider error']} at https://me:{PLANTED['provider url']}@host"
            quoted = f"{error}, sent {self.headers['X-Api-Key']} {self.headers['Authorization']}"
            self._answer(401, json.dumps({"error": {"message": quoted}}).encode())
            return
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": reply}}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        whole = {"id": "1", "object": "chat.completion", "created": 1, "model": "gpt-4o-mini"}
        self._answer(200, json.dumps({**whole, "choices": [choice], "usage": usage}).encode())

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_words: object) -> None:
        """Log nothing."""


@pytest.fixture
def server() -> Iterator[str]:
    Provider.emitted = b""
    with ThreadingHTTPServer(("127.0.0.1", 0), Provider) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{listening.server_address[1]}"
        listening.shutdown()
        thread.join()


def call(folder: Path, server: str, *words: str) -> str:
    """Return what a command writes to stdout and stderr."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("AROS_", "OTEL_"))},
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
        "OPENAI_BASE_URL": f"{server}/v1",
        "OPENAI_API_KEY": PLANTED["provider key"],
        "BOATS_API_KEY": PLANTED["environment"],
        "OTEL_EXPORTER_OTLP_ENDPOINT": server,
        "OTEL_EXPORTER_OTLP_HEADERS": f"x-token={PLANTED['collector header']}",
        "COLUMNS": "200",
    }
    command = [sys.executable, "-m", "flujo_aros.cli", *words]
    ended = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    return f"{ended.stdout}\n{ended.stderr}"


def found_in(text: str) -> list[str]:
    return [name for name, secret in PLANTED.items() if secret in text or secret[:16] in text]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("blueprint", "replies", "ended"),
    [(GOOD_END, REPLIES, "completed"), (BAD_END, REPLIES, "failed"), (GOOD_END, [], "failed")],
    ids=["repaired", "a function raises", "the provider fails"],
)
def test_no_command_shows_a_planted_secret(
    server: str, tmp_path: Path, blueprint: str, replies: list[str], ended: str
) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    pytest.importorskip("openai")
    Provider.replies = iter(replies)
    (tmp_path / "steps.py").write_text(dedent(STEPS))
    (tmp_path / "b.yaml").write_text(dedent(blueprint))
    given = f"{PLANTED['prompt']} https://me:{PLANTED['prompt url']}@host the password is {PLANTED['prompt label']}"
    pairs = ["--set", f"access_token={PLANTED['set']}", "--set", f"note={PLANTED['set by looks']}"]
    run = ["run", "b.yaml", "--input", given, "--allow", "steps.py", *pairs]
    emitted = {"aros run": call(tmp_path, server, "--debug", *run)}
    assert f"{ended}  run " in emitted["aros run"]
    for words in ("runs", "show", "explain", "health", "replay", "report -o -", "show --json", "replay --json"):
        emitted[f"aros {words}"] = call(tmp_path, server, *words.split())
    emitted["OTLP"] = Provider.emitted.decode(errors="replace")
    for file in (tmp_path / ".aros").iterdir():
        emitted[file.name] = file.read_bytes().decode(errors="replace")
    assert "planted" in emitted["OTLP"]
    assert "planted" in emitted["runs.sqlite"]
    assert {name: found_in(text) for name, text in emitted.items()} == {name: [] for name in emitted}
