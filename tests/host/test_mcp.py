"""Agents in blueprints call the tools of a real MCP server."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart

from flujo_aros import Pipeline, Runner, RunStatus, Step, load_blueprint
from flujo_aros.blueprint.load import parse_blueprint
from flujo_aros.testing import ScriptedModel

pytestmark = pytest.mark.slow  # the client and the server take seconds to import


@pytest.fixture(autouse=True)
def installed() -> None:
    """Import the optional packages only where they are used, to keep the fast tests fast."""
    pytest.importorskip("mcp", reason="MCP is not installed: pip install 'flujo_aros[mcp]'")


SERVER = """
import sys
from mcp.server import MCPServer
server = MCPServer("orders")
@server.tool()
def order_total(order: str) -> int:
    return {"A-7": 25}[order]
server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1])) if sys.argv[1:] else server.run("stdio")
"""
CLERK = """
import sys
from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

SERVER = {server!r}

def answer(messages, info):
    last = messages[-1].parts[-1]
    if last.part_kind == "tool-return":
        return ModelResponse([TextPart(f"It was {{last.content}} euros.")])
    return ModelResponse([ToolCallPart("order_total", {{"order": "A-7"}})])

clerk = Agent(FunctionModel(answer), toolsets=[MCPToolset(StdioTransport(sys.executable, ["-c", SERVER]))])
"""
BLUEPRINT = """
agents:
  clerk: {{model: "openai:gpt-4o-mini", capabilities: [{{MCP: {{url: "{url}"}}}}]}}
steps:
  - {{name: ask, uses: agents.clerk}}
"""


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def url() -> Iterator[str]:
    """The address of a server with one tool."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with subprocess.Popen([sys.executable, "-c", SERVER, str(port)], stderr=subprocess.DEVNULL) as server:
        deadline = time.monotonic() + 60
        while not listens(port):
            assert server.poll() is None and time.monotonic() < deadline
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/mcp"
        server.terminate()


def test_an_agent_of_a_blueprint_calls_a_tool_of_a_server(url: str, tmp_path: Path) -> None:
    (tmp_path / "orders.yaml").write_text(BLUEPRINT.format(url=url), encoding="utf-8")
    pipeline = load_blueprint(tmp_path / "orders.yaml", allow=["pydantic_ai.capabilities"])
    call = ModelResponse([ToolCallPart("order_total", {"order": "A-7"})])
    model = ScriptedModel(call, then="It was 25 euros.")
    result = Runner(pipeline, models=model).run_sync("What did A-7 cost?")
    assert (result.status, result.output) == (RunStatus.COMPLETED, "It was 25 euros.")
    answer = model.asked[-1].messages[-1]
    assert isinstance(answer, ModelRequest)
    assert [part.content for part in answer.parts if isinstance(part, ToolReturnPart)] == [25]


def test_a_server_that_is_not_there_is_an_error_that_names_it_and_says_what_to_check(tmp_path: Path) -> None:
    (tmp_path / "orders.yaml").write_text(BLUEPRINT.format(url="http://u:pw@127.0.0.1:9/mcp?k=1"), encoding="utf-8")
    pipeline = load_blueprint(tmp_path / "orders.yaml", allow=["pydantic_ai.capabilities"])
    assert failure(pipeline) == (
        "ConnectionError: no connection to the MCP server http://127.0.0.1:9/mcp: All connection attempts failed; "
        "check that the server is running, its address and its `authorization_token`"
    )


def test_an_agent_calls_a_tool_of_a_server_that_a_command_starts(tmp_path: Path) -> None:
    (tmp_path / "orders_of_mcp.py").write_text(CLERK.format(server=SERVER), encoding="utf-8")
    text = "steps: [{name: ask, uses: 'orders_of_mcp:clerk'}]"
    pipeline = parse_blueprint(text, allow=[str(tmp_path / "orders_of_mcp.py")])
    result = Runner(pipeline).run_sync("What did A-7 cost?")
    assert (result.status, result.output) == (RunStatus.COMPLETED, "It was 25 euros.")


def test_a_command_that_starts_no_server_is_named() -> None:
    from fastmcp.client.transports import StdioTransport
    from pydantic_ai.mcp import MCPToolset

    agent = Agent(ScriptedModel(), toolsets=[MCPToolset(StdioTransport("no-such-command", ["my orders"]))])
    message = failure(Step("ask", agent))
    assert message.startswith("ConnectionError: no connection to the MCP server no-such-command 'my orders': ")
    assert message.endswith("; check that this command runs in a terminal")


def test_a_secret_in_the_command_of_a_server_is_left_out_of_the_error() -> None:
    from fastmcp.client.transports import StdioTransport
    from pydantic_ai.mcp import MCPToolset

    class Orders(MCPToolset):
        """A user-defined toolset."""

    key = "ghp_" + "aB3" * 12
    message = failure(Step("ask", Agent(ScriptedModel(), toolsets=[Orders(StdioTransport("no-such", ["--key", key]))])))
    assert message.startswith("ConnectionError: no connection to the MCP server no-such --key ")
    assert key not in message


def failure(pipeline: Pipeline | Step) -> str:
    result = Runner(pipeline, models=ScriptedModel(then="Hello.")).run_sync("What did A-7 cost?")
    assert result.status is RunStatus.FAILED and result.error is not None
    return str(result.error["message"])
