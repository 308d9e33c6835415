"""The models that a blueprint uses, and where their addresses may come from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from flujo_aros import BlueprintError, UsageError, load_blueprint
from flujo_aros.blueprint.load import parse_blueprint
from flujo_aros.host import create_model

SHOP = """
agents:
  reader: {model: "openai:gpt-4o"}
  writer: {model: "${WRITER:-anthropic:claude-haiku-4-5}"}
profiles:
  test: local:smollm2
  cheap: {reader: "openai:gpt-4o-mini", "*": "${CHEAP:-local:smollm2}"}
steps:
  - {name: read, uses: agents.reader}
  - {name: write, uses: agents.writer}
  - kind: map
    name: each
    map: {iterable_input: input, body: [{name: again, agent: {model: "mistral:small"}}]}
  - {name: pick, uses: flujo.builtins.extract_from_text, params: {schema: {type: integer}, model: "openai:gpt-4o"}}
"""
OWN = {"openai:gpt-4o", "anthropic:claude-haiku-4-5", "mistral:small"}


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AROS_PROFILE", "WRITER", "CHEAP"):
        monkeypatch.delenv(name, raising=False)


def models(**choice: Any) -> set[str]:
    """Return the models of the agents, without the built-in agent, which brings its own."""
    pipeline = parse_blueprint(SHOP, **choice)
    return {model for step in pipeline.steps for model in step.models}


def test_a_blueprint_uses_its_own_models() -> None:
    assert models() == OWN


def test_one_model_replaces_all() -> None:
    assert models(models="local:smollm2") == {"local:smollm2"}


def test_a_model_is_replaced_by_the_name_of_an_agent_or_its_own() -> None:
    assert models(models={"writer": "local:smollm2"}) == OWN - {"anthropic:claude-haiku-4-5"} | {"local:smollm2"}
    assert models(models={"openai:gpt-4o": "local:smollm2"}) == OWN - {"openai:gpt-4o"} | {"local:smollm2"}


def test_a_name_that_is_not_there_is_an_error_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"the blueprint has no agent or model called 'readr'; did you mean 'reader'"):
        models(models={"readr": "local:smollm2"})


def test_a_profile_names_the_model_of_each_agent_or_of_all() -> None:
    assert models(profile="test") == {"local:smollm2"}
    assert models(profile="cheap") == {"openai:gpt-4o-mini", "local:smollm2"}


def test_the_environment_chooses_a_profile_and_fills_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AROS_PROFILE", "cheap")
    monkeypatch.setenv("CHEAP", "groq:llama")
    assert models() == {"openai:gpt-4o-mini", "groq:llama"}
    assert models(profile="test") == {"local:smollm2"}


def test_a_model_that_is_named_wins_over_the_profile() -> None:
    assert models(profile="test", models={"reader": "openai:gpt-5"}) == {"local:smollm2", "openai:gpt-5"}


def test_a_profile_that_is_not_there_is_an_error_of_the_caller() -> None:
    with pytest.raises(UsageError, match=r"^--profile 'tset' .*: there is no such profile; did you mean 'test'\?"):
        models(profile="tset")


def test_a_profile_of_the_environment_that_is_not_there_is_an_error_with_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AROS_PROFILE", "tset")
    words = r"blueprint:6:3: unknown profile 'tset', which AROS_PROFILE names; did you mean 'test'\?"
    with pytest.raises(BlueprintError, match=words):
        models()


def test_a_profile_of_the_environment_has_no_effect_on_a_blueprint_without_profiles_but_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AROS_PROFILE", "test")
    plain = "steps: [{name: a, agent: {model: 'openai:gpt-4o'}}]"
    pipeline = parse_blueprint(plain)
    assert pipeline.models == {"openai:gpt-4o"}
    assert pipeline.warnings == ("blueprint: AROS_PROFILE=test has no effect: the blueprint has no `profiles`",)
    with pytest.raises(UsageError, match=r"^--profile 'test' .*: the blueprint has no profiles$"):
        parse_blueprint(plain, profile="test")


def test_an_imported_blueprint_uses_the_chosen_models_too(tmp_path: Path) -> None:
    (tmp_path / "inner.yaml").write_text("steps: [{name: a, agent: {model: 'openai:gpt-4o'}}]")
    outer = "imports: {inner: inner.yaml}\nprofiles: {test: local:smollm2}\nsteps: [{name: b, uses: imports.inner}]"
    (tmp_path / "outer.yaml").write_text(outer)
    assert load_blueprint(tmp_path / "outer.yaml", profile="test").models == {"openai:gpt-4o"}  # it has no such profile
    assert load_blueprint(tmp_path / "outer.yaml", models="local:smollm2").models == {"local:smollm2"}
    one = load_blueprint(tmp_path / "outer.yaml", models={"openai:gpt-4o": "local:smollm2"})
    assert one.models == {"local:smollm2"}


def one_step(model: str) -> str:
    return f"agents: {{a: {{model: '{model}'}}}}\nsteps: [{{name: a, uses: agents.a}}]"


def test_the_address_of_a_model_is_taken_from_a_blueprint_only_if_it_is_this_machine() -> None:
    near = "openai:qwen@http://127.0.0.1:8000/v1"
    assert parse_blueprint(one_step(near)).models == {near}
    for far in ("openai:qwen@https://evil.example/v1", "openai:qwen@http://127.0.0.1.evil.example/v1"):
        with pytest.raises(BlueprintError, match=r"would send your data and your key to the address .*evil\.example"):
            parse_blueprint(one_step(far))


@pytest.mark.parametrize(
    ("allow", "allowed"),
    [
        ("https://llm.example", True),
        ("*", True),
        ("http://llm.example", False),
        ("https://llm.example.com", False),
        ("https://llm", False),
    ],
)
def test_an_address_is_allowed_by_its_host(allow: str, allowed: bool) -> None:
    far = "openai:qwen@https://llm.example/v1"
    if allowed:
        assert parse_blueprint(one_step(far), allow=[allow]).models == {far}
    else:
        with pytest.raises(BlueprintError, match=r"pass --allow https://llm\.example"):
            parse_blueprint(one_step(far), allow=[allow])


@pytest.mark.parametrize(
    ("written", "variable", "value", "allowed"),
    [
        ("openai:qwen@${URL}", "URL", "https://llm.example/v1", True),
        ("${MODEL}", "MODEL", "openai:qwen@https://llm.example/v1", True),
        ("openai:qwen@https://${HOST}/v1", "HOST", "llm.example", True),
        ("openai:qwen@${URL:-https://evil.example/v1}", "OTHER", "x", False),
        ("openai:${NAME}@https://evil.example/v1", "NAME", "qwen", False),
        ("openai:qwen@https://evil.example/${PART}", "PART", "v1", False),
        ("openai:qwen@https://${HOST}.evil.example/v1", "HOST", "llm", False),
    ],
)
def test_an_address_comes_from_the_environment_and_never_from_a_default(
    written: str,
    variable: str,
    value: str,
    allowed: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("URL", raising=False)
    monkeypatch.setenv(variable, value)
    if allowed:
        assert parse_blueprint(one_step(written)).models
    else:
        with pytest.raises(BlueprintError, match=r"would send your data and your key to the address .*evil\.example"):
            parse_blueprint(one_step(written))


def test_an_address_may_be_named_by_the_caller() -> None:
    far = "openai:qwen@https://llm.example/v1"
    assert parse_blueprint(one_step("openai:gpt-4o"), models=far).models == {far}
    assert parse_blueprint(one_step("openai:gpt-4o"), models={"a": far}).models == {far}


def test_an_address_in_a_profile_is_written_in_the_blueprint() -> None:
    text = one_step("openai:gpt-4o") + "\nprofiles: {far: 'openai:qwen@https://evil.example/v1'}"
    with pytest.raises(BlueprintError, match=r"to the address https://evil\.example"):
        parse_blueprint(text, profile="far")


def test_the_model_of_an_address_asks_that_server(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openai")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    made = create_model("openai:qwen@http://127.0.0.1:8000/v1")
    assert (made.model_name, made.base_url) == ("qwen", "http://127.0.0.1:8000/v1/")
    with pytest.raises(UsageError, match="write openai:NAME@URL"):
        create_model("anthropic:claude@http://127.0.0.1:8000/v1")


def test_yaml_in_the_place_of_a_path_is_a_short_error() -> None:
    with pytest.raises(UsageError, match="use parse_blueprint") as caught:
        load_blueprint(SHOP)
    assert "gpt-4o" not in str(caught.value)


@pytest.mark.parametrize(
    ("profile", "error"),
    [
        ("gpt-4o-mini", "did you mean 'openai:gpt-4o-mini'"),
        ("{b: local:smollm2}", "unknown agent 'b'; known: a"),
        ("{model: local:smollm2}", "not 'model'; write `far: local:smollm2` for one model for all agents"),
        ("openai:qwen@https://evil.example/v1", "to the address https://evil.example"),
    ],
)
def test_a_profile_is_checked_also_where_it_is_not_chosen(profile: str, error: str) -> None:
    with pytest.raises(BlueprintError, match=re.escape(error)):
        parse_blueprint(f"{one_step('openai:gpt-4o')}\nprofiles:\n  far: {profile}")
