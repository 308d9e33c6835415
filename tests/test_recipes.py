"""The recipes in docs/recipes.md work, against a local server with OpenAI's API."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from openai import OpenAI
from pydantic_ai.messages import ToolCallPart
from starlette.testclient import TestClient
from test_docs import FENCE, ROOT, python_blocks

from flujo_aros import OutputError, Runner, load_blueprint
from flujo_aros.testing import ScriptedModel


@pytest.fixture(scope="module")
def page() -> SimpleNamespace:
    """The names that the code of the page defines."""
    names: dict[str, Any] = {"__name__": "recipes"}
    for block in python_blocks(ROOT / "docs/recipes.md"):
        exec(compile("\n" * (block.line - 1) + block.code, "recipes.md", "exec", dont_inherit=True), names)  # noqa: S102
    return SimpleNamespace(**names)


class Server(HTTPServer):
    """Answers chat completions with the given (text, finish reason), and records the requests."""

    def __init__(self, *replies: tuple[str, str]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.replies = list(replies)
        self.asked: list[dict[str, Any]] = []

    def client(self) -> OpenAI:
        return OpenAI(base_url=f"http://127.0.0.1:{self.server_address[1]}/v1", api_key="none", max_retries=0)


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        self.server.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        text, finish = self.server.replies.pop(0)
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
        body = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *args: Any) -> None:
        """Log nothing."""


@pytest.fixture
def serve() -> Iterator[Any]:
    servers: list[Server] = []

    def start(*replies: tuple[str, str]) -> Server:
        servers.append(Server(*replies))
        threading.Thread(target=servers[-1].serve_forever, args=(0.01,), daemon=True).start()
        return servers[-1]

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_fastapi_returns_the_typed_value_of_a_damaged_reply(page: SimpleNamespace) -> None:
    with page.agent.override(model=ScriptedModel("Here: {boat: 'Alma', days: '3',}")):
        answer = TestClient(page.app).post("/orders", params={"text": "Alma for three days"})
    assert (answer.status_code, answer.json()) == (200, {"boat": "Alma", "days": 3})


def test_fastapi_returns_502_and_the_reason_without_a_value(page: SimpleNamespace) -> None:
    with page.agent.override(model=ScriptedModel(*["I cannot help with that."] * 5)):
        answer = TestClient(page.app).post("/orders", params={"text": "Alma"})
    assert answer.status_code == 502
    assert answer.json()["reason"]


def streamed(page: SimpleNamespace, *replies: str | ToolCallPart) -> list[tuple[str, Any]]:
    """Return the events of a stream, each with its name."""
    with page.agent.override(model=ScriptedModel(*replies)):
        answer = TestClient(page.app).post("/orders/stream", params={"text": "Alma"})
    events = (f"\n{each}".partition("\ndata: ") for each in answer.text.split("\n\n") if each)
    return [(name.partition("event: ")[2], json.loads(data)) for name, _, data in events]


@pytest.mark.parametrize(
    "reply",
    [
        '```json\n{"boat": "Alma", "days": 3}\n```',
        ToolCallPart("final_result", '{"boat": "Alma", "days": 3}'),
    ],
)
def test_fastapi_streams_partial_values_up_to_the_final_value(page: SimpleNamespace, reply: str | ToolCallPart) -> None:
    events = streamed(page, reply)
    assert events[-1] == ("done", {"boat": "Alma", "days": 3})
    assert ("", {"boat": "Alma"}) in events, "partial values lack the required fields that are not written yet"


def test_fastapi_ends_a_stream_without_a_value_with_an_event_that_says_why(page: SimpleNamespace) -> None:
    (event,) = streamed(page, *["I cannot help with that."] * 5)
    assert (event[0], event[1]["reason"]) == ("degraded", "refused")


def test_a_plain_client_sends_feedback_and_gets_a_value(page: SimpleNamespace, serve: Any) -> None:
    server = serve(('{"boat": "Alma", "days": "a few"}', "stop"), ('{"boat": "Alma", "days": 3}', "stop"))
    assert page.extract(server.client(), "m", "Alma") == page.Order(boat="Alma", days=3)
    assert "days" in server.asked[1]["messages"][-1]["content"]


def test_a_plain_client_rejects_a_truncated_reply(page: SimpleNamespace, serve: Any) -> None:
    server = serve(('{"boat": "Alma", "da', "length"))
    with pytest.raises(OutputError) as refused:
        page.extract(server.client(), "m", "Alma", tries=1)
    assert refused.value.reason == "truncated"


def test_an_agent_reads_replies_of_a_server_at_a_url(page: SimpleNamespace, serve: Any) -> None:
    server = serve(("Here: {boat: 'Alma', days: '3',}", "stop"))
    agent = page.agent_on(str(server.client().base_url), "qwen3")
    assert asyncio.run(agent.run("Alma")).output == page.Order(boat="Alma", days=3)
    assert server.asked[0]["model"] == "qwen3"


@pytest.mark.parametrize(
    ("model", "address"), [("ollama:qwen3", "OLLAMA_BASE_URL"), ("openai:Qwen/Qwen3-8B@ADDRESS", "SOME_BASE_URL")]
)
def test_a_blueprint_finds_a_server_as_the_recipe_says(
    serve: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, model: str, address: str
) -> None:
    server = serve(("Alma, three days", "stop"))
    monkeypatch.setenv(address, str(server.client().base_url))
    model = model.replace("ADDRESS", str(server.client().base_url).rstrip("/"))
    file = tmp_path / "b.yaml"
    file.write_text(f'name: b\nsteps: [{{name: ask, agent: {{model: "{model}"}}, input: "{{{{ input }}}}"}}]\n')
    result = Runner(load_blueprint(file), journal=None).run_sync("Which boat?")
    assert result.output == "Alma, three days"
    assert server.asked[0]["model"] == model.partition(":")[2].partition("@")[0]


INSTRUCTOR = """
import instructor
from openai import OpenAI
from pydantic import BaseModel

class Order(BaseModel):
    boat: str
    days: int

client = instructor.from_openai(OpenAI(base_url="ADDRESS", api_key="none"), mode=instructor.Mode.JSON)
model, messages = "m", [{"role": "user", "content": "Alma"}]
RECIPE
print(order.boat, order.days)
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_instructor_recipe_runs_with_the_reader_alone(serve: Any, tmp_path: Path) -> None:
    server = serve(("Sure! {'boat': 'Alma', 'days': '3',}", "stop"))
    text = (ROOT / "docs/recipes.md").read_text(encoding="utf-8")
    recipe = next(fence[2] for fence in FENCE.finditer(text) if "import InstructorRetryException" in fence[2])
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    python = tmp_path / "venv" / "bin" / "python"

    def run(*command: str | Path) -> str:
        ran = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=tmp_path)
        return ran.stdout

    run(sys.executable, "-m", "venv", tmp_path / "venv")
    run(python, "-m", "pip", "--disable-pip-version-check", "-q", "install", ROOT, "instructor")
    code = INSTRUCTOR.replace("ADDRESS", str(server.client().base_url)).replace("RECIPE", recipe)
    assert run(python, "-c", code) == "Alma 3\n"


def test_the_job_for_github_uploads_findings_that_aros_has_written(tmp_path: Path) -> None:
    text = (ROOT / "docs/recipes.md").read_text(encoding="utf-8")
    job = yaml.safe_load(next(fence[2] for fence in FENCE.finditer(text) if "upload-sarif" in fence[2]))
    steps = job["jobs"]["lint"]["steps"]
    lint = next(step["run"] for step in steps if "aros lint" in step.get("run", ""))
    shutil.copytree(ROOT / "blueprints", tmp_path / "blueprints")
    command = lint.replace("aros", f"{sys.executable} -m flujo_aros.cli", 1)
    subprocess.run(command, shell=True, check=True, cwd=tmp_path)  # noqa: S602 - the line of the page
    findings = json.loads((tmp_path / steps[-1]["with"]["sarif_file"]).read_text())
    assert findings["runs"][0]["tool"]["driver"]["name"] == "aros lint"


def test_the_recipe_for_pytest_passes(page: SimpleNamespace) -> None:
    page.test_an_order_in_prose_is_understood()
    asyncio.get_event_loop().close()  # run_sync makes one, and leaves it open
    asyncio.set_event_loop(None)
