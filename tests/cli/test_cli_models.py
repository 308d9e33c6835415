"""`--model` and `--profile` replace the models of a blueprint without editing it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Aros

SHOP = """
agents: {clerk: {model: "openai:gpt-4o-mini"}}
profiles: {here: local:smollm2}
steps:
  - {name: ask, uses: agents.clerk}
  - {kind: hitl, name: sure, message: "Sure?"}
"""


@pytest.mark.parametrize(
    "options", [["--model", "local:smollm2"], ["--model", "clerk=local:smollm2"], ["--profile", "here"]]
)
def test_the_options_choose_the_models(aros: Aros, options: list[str]) -> None:
    Path("shop.yaml").write_text(SHOP)
    assert "openai:gpt-4o-mini" in aros("plan", "shop.yaml").stdout
    planned = aros("plan", "shop.yaml", *options).stdout
    assert "local:smollm2" in planned
    assert "gpt-4o-mini" not in planned


def test_two_models_for_all_agents_are_an_error(aros: Aros) -> None:
    Path("shop.yaml").write_text(SHOP)
    refused = aros("plan", "shop.yaml", "--model", "local:smollm2", "--model", "openai:gpt-4o")
    assert refused.exit_code == 2
    assert "one model for all agents" in refused.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--model", "gpt-4o"], "--model 'gpt-4o' (in Python: models=...): the model 'gpt-4o' names no provider"),
        (["--model", "clerk=gpt-4o"], "did you mean 'openai:gpt-4o'?"),
        (
            ["--model", "clerk="],
            "write OLD=NEW, the name of an agent or a model and the model to use instead, not 'clerk='",
        ),
        (["--model", "openai:q@127.0.0.1:1/v1"], "did you mean 'openai:q@http://127.0.0.1:1/v1'?"),
        (["--model", "openai@http://127.0.0.1:1/v1"], "write openai:NAME@http://127.0.0.1:1/v1"),
        (["--profile", "test"], "--profile 'test' (in Python: profile='test'): there is no such profile; known: here"),
    ],
)
def test_a_wrong_choice_is_an_error_of_the_option_and_not_of_the_file(
    aros: Aros, options: list[str], words: str
) -> None:
    Path("shop.yaml").write_text(SHOP)
    refused = aros("plan", "shop.yaml", *options)
    assert refused.exit_code == 2
    assert words in " ".join(refused.stderr.split())
    assert "clerk:" not in refused.stderr  # no excerpt
