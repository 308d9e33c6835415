"""`--model` and `--profile`: other models for a blueprint, without editing it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from flujo_aros.cli.durable import loaded_document
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


ASKING = """
agents: {clerk: {model: "openai:gpt-4o-mini"}}
profiles: {here: local:smollm2}
steps:
  - {kind: hitl, name: sure, message: "Sure?"}
  - {name: ask, uses: agents.clerk}
"""


def test_who_goes_on_with_a_paused_run_is_given_the_profile_of_the_environment(
    aros: Aros, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("shop.yaml").write_text(ASKING)
    monkeypatch.setenv("AROS_PROFILE", "here")
    paused = aros("run", "shop.yaml", "--input", "x")
    assert paused.exit_code == 3
    assert "--profile here" in " ".join((paused.stdout + paused.stderr).split())


def test_a_worker_uses_the_profile_that_a_run_was_submitted_with(aros: Aros, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("dbos", reason="dbos is not installed: pip install 'flujo_aros[durable]'")
    Path("shop.yaml").write_text(ASKING)
    monkeypatch.setenv("AROS_PROFILE", "here")
    assert (
        aros("submit", "shop.yaml", "--input", "x", "--run-id", "one", "--db", "sqlite:///runs.sqlite").exit_code == 0
    )
    monkeypatch.delenv("AROS_PROFILE")
    from flujo_aros.durable.store import Store

    with closing(Store("sqlite:///runs.sqlite")) as store:
        document = store.document(store.run("one").version)
    assert document is not None
    assert document["profile"] == "here"
    pipeline = loaded_document(document, (), ())
    assert pipeline.models == {"local:smollm2"}
