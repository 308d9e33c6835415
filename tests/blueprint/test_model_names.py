"""Invalid model names are reported with their place before anything runs."""

from __future__ import annotations

import pytest

from flujo_aros import AgentSpec, BlueprintError, Call, Runner, Step, UsageError
from flujo_aros.blueprint.load import parse_blueprint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "agents: {a: {model: gpt-4o-mini}}",
            "1:21: the model 'gpt-4o-mini' names no provider; did you mean 'openai:",
        ),
        ("agents: {a: {model: claude-sonnet-4-5}}", "did you mean 'anthropic:claude-sonnet-4-5'?"),
        ("agents: {a: {model: Gemini-2.5-pro}}", "did you mean 'google:Gemini-2.5-pro'?"),
        (
            "agents: {a: {model: 'opnai:gpt-4o'}}",
            "no model provider is known for 'opnai:gpt-4o'; did you mean 'openai:gpt-4o'?",
        ),
        ("agents: {a: {model: 'openai:'}}", "the model 'openai:' has no name after its provider; write openai:NAME"),
        (
            "agents: {a: {model: '{{ context.model }}'}}",
            "the name of a model cannot be a template: '{{ context.model }}'",
        ),
        ("agents: {a: {model: ':gpt-4o'}}", "the model ':gpt-4o' names no provider; write PROVIDER:gpt-4o"),
        ("agents: {a: {model: 'openai:qwen@127.0.0.1:1/v1'}}", "did you mean 'openai:qwen@http://127.0.0.1:1/v1'?"),
        ("agents: {a: {model: 'openai:qwen@gpu.local/v1'}}", "did you mean 'openai:qwen@http://gpu.local/v1'?"),
        ("agents: {a: {model: 'openai@http://127.0.0.1:1/v1'}}", "write openai:NAME@http://127.0.0.1:1/v1"),
        ("agents: {a: {model: 'qwen@http://127.0.0.1:1/v1'}}", "write openai:NAME@http://127.0.0.1:1/v1"),
        ("agents: {a: {model: anthropic/claude-3}}", "did you mean 'anthropic:claude-3'?"),
        ("agents: {a: {model: 'gpt-4o '}}", "did you mean 'openai:gpt-4o'?"),
        ("steps: [{name: s, agent: {model: m}, model: o3-mini}]", "1:45: the model 'o3-mini' names no provider"),
        (
            "steps: [{name: s, agent: {model: m}, processing: {stages: [{stage: escalate, model: gpt-5}]}}]",
            "1:85: the model 'gpt-5' names no provider",
        ),
        (
            "steps: [{name: s, uses: flujo.builtins.extract_from_text, params: {schema: {}, model: gpt-5}}]",
            "1:87: the model 'gpt-5' names no provider",
        ),
    ],
)
def test_a_model_without_its_provider_is_an_error_with_its_place(text: str, message: str) -> None:
    whole = text if "steps" in text else f"{text}\nsteps: [{{name: s, uses: agents.a}}]"
    with pytest.raises(BlueprintError) as caught:
        parse_blueprint(whole)
    assert message in str(caught.value)


def test_a_lenient_blueprint_with_such_a_model_loads_but_does_not_run() -> None:
    text = "agents: {a: {model: gpt-4o}}\nsteps: [{name: s, uses: agents.a}]"
    pipeline = parse_blueprint(text, lenient=True)
    with pytest.raises(BlueprintError, match=r"1:21: step 's' cannot run: the model 'gpt-4o' names no provider"):
        Runner(pipeline).run_sync("x")


def test_an_unknown_model_is_rejected_before_any_step_runs() -> None:
    ran: list[str] = []
    pipeline = Call("first", ran.append) >> Step("s", AgentSpec(model="my-model"))
    with pytest.raises(UsageError, match="step 's': the model 'my-model' names no provider; write PROVIDER:my-model"):
        Runner(pipeline).run_sync("x")
    assert ran == []
