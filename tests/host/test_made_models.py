"""Models that cannot be created explain why, and created models are cached up to a limit."""

from __future__ import annotations

import asyncio
import sys

import pytest

from flujo_aros import UsageError
from flujo_aros.host import create_model, named_model


def test_a_model_without_its_key_is_reported_with_alternatives(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openai")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UsageError) as caught:
        create_model("openai:gpt-4o")
    said = str(caught.value)
    assert said.startswith("the model 'openai:gpt-4o' cannot be used: ")
    assert "OPENAI_API_KEY" in said
    assert "; without an API key, use `local:smollm2`, which runs on this machine, or in tests Runner(" in said
    assert said.endswith("models=ScriptedModel(…))")
    assert caught.value.__suppress_context__, "one traceback, not that of the provider as well"
    assert "To try Pydantic AI" not in said


def test_an_empty_key_is_reported_like_a_missing_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "")
    with pytest.raises(UsageError, match="the environment variable OPENAI_API_KEY is empty; without an API key, use"):
        create_model("openai:gpt-4o")


@pytest.mark.slow
def test_the_models_made_last_are_kept_and_the_first_is_made_again() -> None:
    pytest.importorskip("openai")

    async def main() -> None:
        def name(number: int) -> str:
            return f"openai:m{number}@http://127.0.0.1:9/v1"

        first = await named_model(name(0), None)
        for number in range(1, 128):
            await named_model(name(number), None)
        assert await named_model(name(0), None) is first
        second = await named_model(name(1), None)
        await named_model(name(128), None)  # one too many: the oldest goes, and no other
        assert await named_model(name(1), None) is second
        assert await named_model(name(0), None) is not first

    asyncio.run(main())


@pytest.mark.parametrize(
    ("name", "package", "command"),
    [
        ("openai:gpt-4o-mini", "openai", "pip install 'flujo_aros[openai]'"),
        ("openai:qwen3@http://127.0.0.1:8000/v1", "openai", "pip install 'flujo_aros[openai]'"),
        ("anthropic:claude-sonnet-4-5", "anthropic", "pip install 'flujo_aros[anthropic]'"),
        ("groq:llama-3.3-70b-versatile", "groq", "pip install 'pydantic-ai-slim[groq]'"),
    ],
)
def test_a_client_that_is_not_installed_is_named_with_the_command(
    monkeypatch: pytest.MonkeyPatch, name: str, package: str, command: str
) -> None:
    for module in [each for each in sys.modules if each.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    for module in [each for each in sys.modules if each.startswith(("pydantic_ai.models.", "pydantic_ai.providers."))]:
        if package in module:
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)  # what Python itself takes for a module that cannot be imported
    with pytest.raises(UsageError) as caught:
        create_model(name)
    assert str(caught.value) == f"the model {name!r} needs a package: {command}"
