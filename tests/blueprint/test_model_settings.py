"""Misspelt model settings are errors; otherwise they would silently have no effect."""

from __future__ import annotations

from typing import get_type_hints

import pytest
from pydantic_ai.settings import ModelSettings

from flujo_aros.blueprint.load import inspect_blueprint
from flujo_aros.host.spec import SETTINGS


def reported(settings: str, *, of_step: bool = False) -> list[str]:
    own = f", model_settings: {settings}"
    agent, step = ("", own) if of_step else (own, "")
    text = f"agents: {{a: {{model: m{agent}}}}}\nsteps: [{{name: s, uses: agents.a{step}}}]"
    return [each.message for each in inspect_blueprint(text).findings]


def test_every_setting_of_pydantic_ai_is_known() -> None:
    assert set(get_type_hints(ModelSettings)) <= set(SETTINGS)


@pytest.mark.parametrize("of_step", [False, True])
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("{temprature: 0}", "unknown setting 'temprature'; did you mean 'temperature'?"),
        ("{max_tokens: many}", "model_settings.max_tokens should be an integer, not 'many'"),
        ("{max_tokens: true}", "model_settings.max_tokens should be an integer, not True"),
        ("{temperature: hot}", "model_settings.temperature should be a number, not 'hot'"),
        ("{stop_sequences: end}", "model_settings.stop_sequences should be a list, not 'end'"),
    ],
)
def test_an_unknown_model_setting_is_an_error(settings: str, message: str, of_step: bool) -> None:
    assert reported(settings, of_step=of_step) == [message]


@pytest.mark.parametrize(
    "settings", ["{temperature: 0, seed: 7}", "{openai_reasoning_effort: low}", "{thinking: true}"]
)
def test_settings_of_all_models_and_of_one_provider_are_accepted(settings: str) -> None:
    assert reported(settings) == []
