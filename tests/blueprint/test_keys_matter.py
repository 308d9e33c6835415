"""No key lies: each key of an agent, a step and its `processing` changes what can be seen, or is said to be useless."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import pytest

from flujo_aros import Processing, Runner
from flujo_aros.blueprint import blocks
from flujo_aros.blueprint.load import parse_blueprint
from flujo_aros.errors import BlueprintError, UsageError
from flujo_aros.lint.check import lint_text
from flujo_aros.testing.scripted import ScriptedModel

GOOD = '{"n": 1}'
OBJECT = "{type: object, required: [n], properties: {n: {type: integer}}}"
TEXT = "nothing useful"


class Source:
    def __init__(self, model: ScriptedModel) -> None:
        self.scripted = model

    async def model(self, name: str) -> ScriptedModel:
        return self.scripted if name == "local:x" else ScriptedModel(then='{"n": 7}')


def seen(blueprint: str, *replies: Any) -> Any:
    """All that can be seen of a run: what was warned of, what the model was asked, and what came of it."""
    model = ScriptedModel(*replies, then=replies[-1])
    try:
        pipeline = parse_blueprint(blueprint, allow=["builtins"])
        run = Runner(pipeline, models=Source(model)).run_sync("7", {"known": 1})
    except (BlueprintError, UsageError) as error:
        return str(error)
    told = re.sub(r"'(run_id|seconds)': [^,}]+", "", str(run.to_dict()))
    asked = [(each.prompt, dict(each.settings), each.output_mode) for each in model.asked]
    found = [(each.code, each.severity) for each in lint_text(blueprint).findings]
    return pipeline.warnings, found, told, asked, run.context, [str(step.meta) for step in pipeline.steps]


def step(more: str, agent: str = "", schema: str = OBJECT, then: str = "", name: str = "name: s") -> str:
    of = f", output_schema: {schema}" if schema else ""
    return (
        f'agents:\n  a: {{model: "local:x"{of}{agent}}}\n  b: {{model: "local:y"}}\n'
        f"steps:\n  - {{{name}, uses: agents.a, input: '{{{{ input }}}}'{more}}}\n{then}"
    )


def processing(more: str) -> str:
    return step(f", processing: {{{more}}}")


AFTER = "  - {name: t, uses: flujo.builtins.passthrough, input: '{{ context.n | default(0) }}'}\n"
KEYS: dict[str, tuple[str, str, tuple[Any, ...]]] = {
    # of a step
    "name": (step(""), step("", name="name: other"), (GOOD,)),
    "input": (step(""), step("").replace("{{ input }}", "Say {{ input }}"), (GOOD,)),
    "on_degraded": (step(""), step(", on_degraded: fail"), (TEXT,)),
    "updates_context": (step(""), step(", updates_context: true"), (GOOD,)),
    "mergeable_output": (
        step(", updates_context: true", schema="{type: array}"),
        step(", updates_context: true, mergeable_output: true", schema="{type: array}"),
        ("[1]",),
    ),
    "sink_to": (step(""), step(", sink_to: here"), (GOOD,)),
    "checks": (step(""), step(", checks: ['output.n == 2']"), (GOOD,)),
    "validators": (step(""), step(", validators: ['output.n == 2']"), (GOOD,)),
    "fallback": (step(""), step(", fallback: {name: f, uses: flujo.builtins.passthrough}"), (TEXT,)),
    "usage_limits": (step(""), step(", usage_limits: {max_requests: 1}"), (TEXT,)),
    "config": (step(""), step(", config: {temperature: 0.5}"), (GOOD,)),
    "retries": (step(""), step(", retries: 1"), (ConnectionError("gone"), GOOD)),
    "timeout": (step(", timeout: 9"), step(", timeout: 0.000001"), (GOOD,)),
    "meta": (step(""), step(", meta: {note: mine}"), (GOOD,)),
    "uses": (step(""), step("").replace("uses: agents.a", "uses: agents.b"), (GOOD,)),
    "agent": (step(""), step("").replace("uses: agents.a", 'agent: {model: "local:y"}'), (GOOD,)),
    "params": (step(""), step(", params: {key: n}"), (GOOD,)),
    "processing": (step(""), processing("stages: [retry]"), (TEXT,)),
    "contract": (step(""), step(", contract: 'tagged:n'").replace("{{ input }}", "<n> {{ input }}"), (GOOD,)),
    "output_schema": (step("", schema=""), step(f", output_schema: {OBJECT}", schema=""), (GOOD,)),
    "model": (step(""), step(", model: 'local:y'"), (GOOD,)),
    "model_settings": (step(""), step(", model_settings: {seed: 3}"), (GOOD,)),
    "max_iterations": (
        step(", max_iterations: 2, completion_signal: DONE", schema=""),
        step(", max_iterations: 3, completion_signal: DONE", schema=""),
        (TEXT,),
    ),
    "completion_signal": (
        step(", max_iterations: 2, completion_signal: DONE", schema=""),
        step(", max_iterations: 2, completion_signal: READY", schema=""),
        (TEXT,),
    ),
    "use_history": (
        step("", then="  - {name: t, uses: agents.a}\n"),
        step("", then="  - {name: t, uses: agents.a, use_history: true}\n"),
        (GOOD,),
    ),
    # of an agent
    "agent.model": (step(""), step("").replace("local:x", "local:y"), (GOOD,)),
    "agent.system_prompt": (step(""), step("", ", system_prompt: Be brief."), (GOOD,)),
    "agent.output_schema": (step("", schema=""), step(""), (GOOD,)),
    "agent.model_settings": (step(""), step("", ", model_settings: {top_p: 0.5}"), (GOOD,)),
    "agent.output_mode": (step(""), step("", ", output_mode: prompted"), (GOOD,)),
    "agent.timeout": (step(""), step("", ", timeout: 0.000001"), (GOOD,)),
    "agent.max_retries": (step(""), step("", ", max_retries: 3"), (TEXT,)),
    # of `processing`
    "processing.structured_output": (processing(""), processing("structured_output: 'off'"), (GOOD,)),
    "processing.schema": (processing(""), processing("schema: {type: array}"), (GOOD,)),
    "processing.enforcement": (processing(""), processing("enforcement: validate"), (TEXT,)),
    "processing.aop": (processing(""), processing("aop: minimal, stages: []"), ('{"n": "1"}',)),
    "processing.coercion": (processing(""), processing("coercion: {tolerant_level: 0}, stages: []"), ('{"n": "1"}',)),
    "processing.enforce_grammar": (
        step("", ", output_mode: auto", ""),
        step(", processing: {enforce_grammar: true}", schema=""),
        (GOOD,),
    ),
    "processing.risk": (processing("stages: []"), processing("stages: [], risk: lossless"), ('{"n": "1"}',)),
    "processing.stages": (processing(""), processing("stages: [retry]"), (TEXT,)),
    "processing.max_stages": (processing(""), processing("max_stages: 1"), (TEXT,)),
    "processing.max_calls": (processing(""), processing("max_calls: 1"), (TEXT,)),
    "processing.max_cost": (processing(""), processing("max_cost: 0"), (TEXT,)),
    "processing.deadline": (processing(""), processing("deadline: 0.0000001"), (TEXT,)),
    "processing.reasoning_precheck": (
        processing(""),
        processing("reasoning_precheck: {required_context_keys: [absent]}"),
        (GOOD,),
    ),
}
ELSEWHERE = {
    "kind": "each kind has tests of its own",
    "processing.adaptive": "needs the evidence of a journal: tests/recovery and tests/telemetry hold it",
}


def test_every_documented_key_has_a_probe() -> None:
    of_step = set(blocks.StepBlock.model_fields)
    of_agent = {f"agent.{name}" for name in blocks.Agent.model_fields}
    of_processing = {f"processing.{each.name}" for each in fields(Processing)}
    assert of_step | of_agent | of_processing == {*KEYS, *ELSEWHERE}


@pytest.mark.parametrize("key", KEYS)
def test_a_key_changes_what_can_be_seen(key: str) -> None:
    usual, other, replies = KEYS[key]
    assert seen(usual, *replies) == seen(usual, *replies)
    assert seen(usual, *replies) != seen(other, *replies)
