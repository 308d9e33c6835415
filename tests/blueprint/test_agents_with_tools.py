"""Agents with tools, capabilities and dependencies in blueprints."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai import Agent
from pydantic_ai.capabilities import CAPABILITY_TYPES, AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from flujo_aros import BlueprintError, Pipeline, Runner, UsageError
from flujo_aros.blueprint.load import parse_blueprint
from flujo_aros.events import AskStarted, Event
from flujo_aros.host import instrument_agents

SHOP = """
from pydantic import BaseModel
from pydantic_ai import Agent, PromptedOutput, RunContext
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

def stock(ctx: RunContext[dict[str, int]], item: str) -> int:
    "How many of an item are there?"
    return ctx.deps[item]

class Found(BaseModel):
    said: str

def answer(messages, info):
    if len(messages) == 1:
        return ModelResponse(parts=[ToolCallPart("stock", {"item": "pen"})])
    return ModelResponse(parts=[TextPart("Sure: {'said': 'there are %s',}" % messages[-1].parts[0].content)])

clerk = Agent(FunctionModel(answer), output_type=PromptedOutput(Found), deps_type=dict, name="clerk", tools=[stock])
seen = []

def write(messages, info):
    seen.append(info.model_settings)
    return ModelResponse(parts=[TextPart("Sure: {'said': 'hello',}")])

writer = Agent(FunctionModel(write))
not_an_agent = 3
"""
AGENT = """
agents:
  clerk:
    name: front-desk
    model: local:any
    system_prompt: Look it up.
    tools: [shop_of_tools:stock]
    output_schema: {type: object, required: [said], properties: {said: {type: string}}}
steps:
  - {name: ask, uses: agents.clerk, input: "{{ input }}"}
"""
USES = 'steps:\n  - {name: ask, uses: "shop_of_tools:clerk", input: "How many {{ input }}?"}\n'


@pytest.fixture(autouse=True)
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An importable module of tools."""
    (tmp_path / "shop_of_tools.py").write_text(SHOP, encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield
    sys.modules.pop("shop_of_tools", None)


class Scripted:
    """A model that calls its tool, if it has one, and then answers with the tool's result, under every name."""

    def __init__(self) -> None:
        self.asked: list[tuple[str | None, list[str]]] = []

    async def model(self, name: str) -> FunctionModel:
        """Return the model."""
        return FunctionModel(self.answer, model_name=name)

    def answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        """Return a tool call first, then the answer in damaged JSON."""
        self.asked.append((info.instructions, [tool.name for tool in info.function_tools]))
        if len(messages) == 1 and info.function_tools:
            return ModelResponse(parts=[ToolCallPart(info.function_tools[0].name, {"item": "pen"})])
        last: Any = messages[-1].parts[0]
        return ModelResponse(parts=[TextPart(f"```json\n{{'said': '{last.content}',}}\n```")])


def load(text: str, *allow: str) -> Pipeline:
    return parse_blueprint(text, allow=allow)


def test_an_agent_of_a_blueprint_calls_its_tools_with_the_deps_of_the_run() -> None:
    models = Scripted()
    run = Runner(load(AGENT, "shop_of_tools"), models=models).run_sync("?", deps={"pen": 7})
    assert run.output == {"said": "7"}
    assert run.steps[0].usage.requests == 2
    assert models.asked[0][1] == ["stock"]
    assert "Look it up." in (models.asked[0][0] or "")


@pytest.mark.parametrize("blueprint", [AGENT, USES])
def test_the_error_of_a_tool_names_the_tool(blueprint: str) -> None:
    run = Runner(load(blueprint, "shop_of_tools"), models=Scripted()).run_sync("?", deps={"ink": 7})
    assert run.error is not None
    assert run.error["message"] == "KeyError: 'pen'; raised by the tool 'stock'"


def test_the_record_of_a_call_contains_the_tool_results() -> None:
    asked: list[str] = []

    def hear(event: Event) -> None:
        if isinstance(event, AskStarted):
            asked.append(event.prompt)

    Runner(load(AGENT, "shop_of_tools"), models=Scripted(), observers=[hear]).run_sync("?", deps={"pen": 7})
    assert len(asked) == 2
    assert "returned" not in asked[0]
    assert asked[1] == f'{asked[0]}\n\nstock({{"item":"pen"}}) returned: 7'


def test_the_name_of_an_agent_is_that_of_its_span() -> None:
    exporter = InMemorySpanExporter()
    traces = TracerProvider()
    traces.add_span_processor(SimpleSpanProcessor(exporter))
    instrument_agents(traces, MeterProvider(), content=False)
    try:
        Runner(load(AGENT, "shop_of_tools"), models=Scripted()).run_sync("?", deps={"pen": 7})
    finally:
        Agent.instrument_all(False)
    assert "invoke_agent front-desk" in [span.name for span in exporter.get_finished_spans()]


def test_a_step_uses_a_pydantic_ai_agent_by_its_name() -> None:
    run = Runner(load(USES, "shop_of_tools")).run_sync("pens", deps={"pen": 4})
    assert run.output.said == "there are 4"
    assert run.trust is not None
    assert run.trust.name != "CLEAN"
    assert run.steps[0].usage.requests == 2


def test_function_parameters_are_rejected_for_an_agent() -> None:
    text = 'steps:\n  - {name: ask, agent: {id: "shop_of_tools:clerk", params: {n: 1}}}\n'
    with pytest.raises(UsageError, match="shop_of_tools:clerk is an agent, which takes no `params`"):
        Runner(load(text, "shop_of_tools")).run_sync("pens")


def used(name: str, options: str) -> Pipeline:
    return load(f'steps:\n  - {{name: ask, uses: "shop_of_tools:{name}", {options}}}\n', "shop_of_tools")


def test_the_processing_of_a_step_applies_to_its_pydantic_ai_agent() -> None:
    run = Runner(used("clerk", "processing: {risk: lossless}")).run_sync("pens", deps={"pen": 4})
    assert run.trust is not None
    assert run.trust.name == "LOSSLESS"
    run = Runner(used("clerk", "processing: {enforcement: validate, max_calls: 1}, checks: ['false']")).run_sync(
        "pens", deps={"pen": 4}
    )
    assert (run.status.value, run.usage.requests) == ("failed", 2)


@pytest.mark.parametrize(
    "schema",
    [
        "output_schema: {type: object, required: [said], properties: {said: {type: string}}}",
        "processing: {schema: {type: object, required: [said], properties: {said: {type: string}}}}",
    ],
)
def test_the_schema_of_a_step_is_the_contract_of_an_agent_that_writes_text(schema: str) -> None:
    assert Runner(used("writer", schema)).run_sync("?").output == {"said": "hello"}
    assert Runner(used("clerk", schema)).run_sync("?", deps={"pen": 4}).output.said == "there are 4"


def test_the_settings_of_a_step_reach_a_pydantic_ai_agent() -> None:
    Runner(used("writer", "config: {temperature: 0.5}, model_settings: {max_tokens: 9}")).run_sync("?")
    assert sys.modules["shop_of_tools"].seen == [{"temperature": 0.5, "max_tokens": 9}]


def test_a_conversation_includes_a_pydantic_ai_agent() -> None:
    text = """
steps:
  - kind: loop
    name: talk
    loop:
      max_loops: 1
      exit_expression: "true"
      conversation: true
      body: [{name: ask, uses: "shop_of_tools:writer"}, {name: count, uses: "builtins:len"}]
"""
    pipeline = load(text, "shop_of_tools", "builtins")
    assert pipeline.warnings == ()
    assert Runner(pipeline).run_sync("?").status.value == "completed"


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ("model: 'local:any'", "model"),
        ("config: {temperature: 0.5}", "model_settings"),
        ("max_iterations: 2, completion_signal: DONE", "max_iterations"),
    ],
)
def test_an_agent_option_on_a_function_is_rejected_before_the_run(options: str, key: str) -> None:
    with pytest.raises(UsageError, match=f"shop_of_tools:write is a function; `{key}` is for agents"):
        Runner(used("write", options)).run_sync("?")


def test_the_model_of_a_pydantic_ai_agent_is_its_own() -> None:
    with pytest.raises(UsageError, match="`model` is for an AgentSpec; set the model of the Agent instead"):
        Runner(used("writer", "model: 'local:any'")).run_sync("?")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (AGENT, "the tool 'shop_of_tools:stock' would import shop_of_tools, which is not allowed"),
        (AGENT.replace("[shop_of_tools:stock]", "[stock]"), "a tool is package.module:name, not 'stock'"),
        (
            AGENT.replace("tools: [shop_of_tools:stock]", "capabilities: [WebSerch]"),
            "pydantic-ai has no capability 'WebSerch'; did you mean 'WebSearch'?",
        ),
        (
            AGENT.replace("tools: [shop_of_tools:stock]", "capabilities: [{MCP: {url: 'http://127.0.0.1'}}]"),
            "the capability 'MCP' would import pydantic_ai.capabilities, which is not allowed",
        ),
        (
            AGENT.replace("tools: [shop_of_tools:stock]", "capabilities: [{Thinking: {effrt: high}}]"),
            "the capability 'Thinking' has no option 'effrt'; did you mean 'effort'?",
        ),
        (
            AGENT.replace("tools: [shop_of_tools:stock]", "capabilities: [{Thinking: {effort: hihg}}]"),
            "the option 'effort' of the capability 'Thinking' cannot be \"hihg\"; did you mean 'high'?",
        ),
        (
            AGENT.replace("tools: [shop_of_tools:stock]", "capabilities: [{Thinking: {effort: 3}}]"),
            "the option 'effort' of the capability 'Thinking' cannot be 3; expected true or false, \"minimal\", ",
        ),
        (
            AGENT.replace("tools: [shop_of_tools:stock]", "capabilities: [{Thinking: {id: 3}}]"),
            "the option 'id' of the capability 'Thinking' cannot be 3; expected a string, null",
        ),
        (
            AGENT.replace("tools: [shop_of_tools:stock]", "capabilities: [{Thinking: hihg}]"),
            "the option 'effort' of the capability 'Thinking' cannot be \"hihg\"; did you mean 'high'?",
        ),
        (
            AGENT.replace("tools: [shop_of_tools:stock]", "capabilities: [{PrefixTools: shop}]"),
            "the options of the capability 'PrefixTools' have names: {PrefixTools: {prefix: …}}",
        ),
        (
            AGENT.replace("tools: [shop_of_tools:stock]", "capabilities: [{MCP: {command: npx}}]"),
            "a blueprint can only name the `url` of an MCP server; to start one with a command, build",
        ),
        (
            AGENT.replace("tools: [shop_of_tools:stock]", "capabilities: [MCP]"),
            "the capability 'MCP' needs options: {MCP: {url: …}}",
        ),
        (
            AGENT.replace("tools: [shop_of_tools:stock]", "capabilities: [{PrefixTools: {}}]"),
            "the capability 'PrefixTools' needs options: {PrefixTools: {prefix: …, capability: …}}",
        ),
        (AGENT.replace("tools: [shop_of_tools:stock]", "capabilities: [3]"), "a capability is a name, or a mapping"),
    ],
)
def test_invalid_agent_options_are_rejected_at_their_place(text: str, words: str) -> None:
    with pytest.raises(BlueprintError) as caught:
        load(text)
    (found,) = [each for each in caught.value.findings if words in each.message]
    assert found.place is not None
    assert found.place.line == 7


@pytest.mark.parametrize("options", ["effort: high", "effort: true", "effort: low, id: null", "defer_loading: false"])
def test_the_options_that_a_capability_takes_are_accepted(options: str) -> None:
    text = AGENT.replace("tools: [shop_of_tools:stock]", f"capabilities: [{{Thinking: {{{options}}}}}]")
    assert load(text, "pydantic_ai.capabilities").steps


def test_an_option_whose_type_cannot_be_resolved_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    class Sized(AbstractCapability[Any]):
        def __init__(self, size: int = 0) -> None:
            self.size = size

    monkeypatch.setitem(Sized.__init__.__annotations__, "size", "OnlyForTypeCheckers")
    monkeypatch.setitem(cast("dict[str, Any]", CAPABILITY_TYPES), "Sized", Sized)
    text = AGENT.replace("tools: [shop_of_tools:stock]", "capabilities: [{Sized: {size: x}}]")
    assert load(text, "pydantic_ai.capabilities").steps


def test_a_tool_that_is_not_there_is_found_before_any_call() -> None:
    models = Scripted()
    with pytest.raises(UsageError, match="shop_of_tools has no 'stok'; did you mean 'stock'"):
        Runner(load(AGENT.replace(":stock", ":stok"), "shop_of_tools"), models=models).run_sync("?")
    assert models.asked == []


@pytest.mark.parametrize(
    "capability", ["{MCP: 'http://127.0.0.1:9/mcp'}", "{Thinking: high}", "{NativeTool: {kind: web_search}}"]
)
def test_a_capability_may_have_one_value_or_options_of_its_own_kind(capability: str) -> None:
    text = AGENT.replace("tools: [shop_of_tools:stock]", f"capabilities: [{capability}]")
    assert load(text, "pydantic_ai.capabilities").steps


def test_a_capability_reaches_the_request() -> None:
    text = AGENT.replace("tools: [shop_of_tools:stock]", "capabilities: [{Thinking: {effort: high}}]")
    run = Runner(load(text, "pydantic_ai.capabilities"), models=Scripted()).run_sync("hello")
    assert run.output == {"said": "hello"}


def test_a_capability_that_cannot_be_made_is_an_error_before_any_step_runs() -> None:
    text = """
agents: {desk: {model: "openai:x", capabilities: [{MCP: {url: "https://example.com/mcp", tool_prefix: ""}}]}}
steps:
  - {name: first, uses: flujo.builtins.echo}
  - {name: ask, uses: agents.desk}
"""
    pipeline = load(text, "pydantic_ai.capabilities")
    begun: list[object] = []
    with pytest.raises(UsageError, match="step 'ask': the agent 'desk' cannot be built"):
        Runner(pipeline, models=Scripted(), observers=[begun.append]).run_sync("x")
    assert begun == []
