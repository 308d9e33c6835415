"""The `py` blocks of the documentation run with the objects that they assume."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ModelMessage, ModelResponse, NativeOutput, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from test_docs import FENCE, PAGES, ROOT

from flujo_aros import Aros, Call, Output, Step
from flujo_aros.testing import ScriptedModel

NEED_A_SERVICE = {"durable.md", "provider-errors.md", "recipes.md", "temporal.md"}
"""Pages whose sketch needs a Temporal server, an error of a provider, or instructor; other tests run what they show."""
HOSTED = re.compile(r'"(?:openai|anthropic):[^"]+"')


class Thing(BaseModel):
    n: int


def sketches() -> list[Any]:
    found: list[Any] = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for fence in FENCE.finditer(text):
            if fence[1] == "py":
                line = text[: fence.start()].count("\n") + 2
                found.append(pytest.param(page, "\n" * (line - 1) + fence[2], id=f"{page.name}:{line}"))
    return found


def _reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    is_invoice = "'total'" in str(info.output_tools)
    return ModelResponse(parts=[TextPart('{"number": "A-7", "total": 12.5}' if is_invoice else '{"n": 1}')])


def _answered() -> Any:
    message = SimpleNamespace(content='{"n": 1}')
    return SimpleNamespace(choices=[SimpleNamespace(message=message, finish_reason="stop")])


class _Ollama:
    def post(self, path: str, json: dict[str, Any]) -> _Ollama:
        return self

    def raise_for_status(self) -> _Ollama:
        return self

    def json(self) -> dict[str, Any]:
        return {"message": {"content": '{"n": 1}'}, "done_reason": "stop"}


@pytest.fixture
def names() -> dict[str, Any]:
    """Return the names that the snippets assume: an agent, a model, a client, and the user's types."""
    model = FunctionModel(_reply)
    completions = SimpleNamespace(create=lambda **_: _answered())
    return {
        **dict.fromkeys(("Invoice", "Order", "Ticket", "Wide"), Thing),
        **{each.__name__: each for each in (Agent, Aros, NativeOutput, Step)},
        "agent": Agent(model, output_type=Thing, capabilities=[Aros()]),
        "client": SimpleNamespace(chat=SimpleNamespace(completions=completions)),
        "contract": Output.json(Thing),
        "http": _Ollama(),
        "input": "Which one?",
        "model": model,
        "pipeline": Call("count", function=len),
        "script_model": ScriptedModel,
    }


@pytest.mark.parametrize(("page", "code"), [each for each in sketches() if each.values[0].name not in NEED_A_SERVICE])
def test_a_sketch_runs_if_its_dependencies_are_installed(
    page: Path, code: str, names: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    blueprint = next(
        fence[2] for fence in FENCE.finditer((ROOT / "docs/blueprints.md").read_text()) if fence[1] == "yaml"
    )
    Path("triage.yaml").write_text(blueprint, encoding="utf-8")
    code = HOSTED.sub("model", code).replace("start_http_server(9464)", "start_http_server(0)")
    result = eval(compile(code, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True), names)  # noqa: S307
    if inspect.isawaitable(result):
        asyncio.run(result)  # type: ignore[arg-type]
    for name in [name for name in names if name.startswith("test_")]:
        names[name](names["script_model"])


@pytest.mark.parametrize(("page", "code"), [each for each in sketches() if each.values[0].name in NEED_A_SERVICE])
def test_imports_of_other_sketches_exist(page: Path, code: str) -> None:
    tree = ast.parse(code, str(page))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("flujo_aros"):
            exec(ast.unparse(node), {})  # noqa: S102
