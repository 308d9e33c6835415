"""Agents in blueprints that continue their conversation."""

from __future__ import annotations

import pytest

from flujo_aros import Cached, Loop, Pipeline, Step
from flujo_aros.blueprint.dump import dump
from flujo_aros.blueprint.load import parse_blueprint

TALK = """
agents: { a: { model: "openai:gpt-4o-mini" } }
steps:
  - { name: first, uses: agents.a, use_history: true }
  - kind: loop
    name: talk
    loop:
      conversation: true
      max_loops: 3
      body:
        - name: ai
          uses: agents.a
          fallback: { name: spare, uses: agents.a }
        - { name: aside, uses: agents.a, use_history: false }
        - { kind: hitl, name: you, message: "{{ previous_step }}" }
        - { kind: cache, name: kept, wrapped_step: { name: same, uses: agents.a } }
"""


def agent_step(pipeline: Pipeline, name: str) -> Step:
    step = next(step for step in pipeline.steps if step.name == name)
    assert isinstance(step, Step)
    return step


def test_a_conversation_of_a_loop_is_the_history_of_its_agents() -> None:
    pipeline = parse_blueprint(TALK)
    assert pipeline.warnings == ()
    assert agent_step(pipeline, "first").use_history
    loop = pipeline.steps[1]
    assert isinstance(loop, Loop)
    body = loop.bodies["body"]
    assert agent_step(body, "ai").use_history
    assert not agent_step(body, "aside").use_history
    spare, kept = agent_step(body, "ai").fallback, body.steps[-1]
    assert isinstance(spare, Step)
    assert spare.use_history
    assert isinstance(kept, Cached)
    assert parse_blueprint(dump(pipeline)) == pipeline


def test_history_is_for_agents() -> None:
    echo = "{ name: n, uses: flujo.builtins.echo, use_history: true }"
    text = f"steps: [{echo}, {{ kind: hitl, name: h, message: m, use_history: true }}]"
    warnings = parse_blueprint(text).warnings
    assert [warning.partition(": ")[2] for warning in warnings] == [
        "'use_history' is ignored: it is for steps with an agent",
        "'use_history' is ignored: it is for steps with an agent",
    ]


@pytest.mark.parametrize("key", ["ai_turn_source: all_agents", "history_management: { max_turns: 3 }"])
def test_other_conversation_keys_of_flujo_are_warnings(key: str) -> None:
    text = TALK.replace("conversation: true", f"conversation: true\n      {key}")
    (warning,) = parse_blueprint(text).warnings
    assert "is ignored" in warning
