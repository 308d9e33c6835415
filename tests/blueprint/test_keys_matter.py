"""Every key that editors offer has an observable effect on a run, or is documented as having none."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from flujo_aros import BlueprintError, Processing, Runner, UsageError, load_blueprint
from flujo_aros.blueprint import blocks
from flujo_aros.blueprint.blocks import blueprint_schema
from flujo_aros.lint import lint_text
from flujo_aros.testing import ScriptedModel

GOOD = '{"n": 1}'
OBJECT = "{type: object, required: [n], properties: {n: {type: integer}}}"
TEXT = "nothing useful"
GONE = ConnectionError("gone")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that the blueprints refer to: another blueprint, prompts, and functions."""
    files = {"child.yaml": CHILD, "asking.yaml": ASKING, "keyed.py": KEYED}
    files |= {"prompt.md": "Be {{ how }}.", "other.md": "Be {{ how }}, please."}
    made = tmp_path_factory.mktemp("keys")
    for name, text in files.items():
        (made / name).write_text(text, encoding="utf-8")
    return made


@pytest.fixture(autouse=True)
def beside_the_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


class Counting(ScriptedModel):
    """A scripted model that counts its concurrent calls."""

    now = most = 0

    async def request(self, *given: Any, **named: Any) -> Any:
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(50):
            await asyncio.sleep(0)
        try:
            return await super().request(*given, **named)
        finally:
            self.now -= 1


class Source:
    def __init__(self, model: ScriptedModel) -> None:
        self.scripted = model

    async def model(self, name: str) -> ScriptedModel:
        return self.scripted if name == "local:x" else ScriptedModel(then='{"n": 7}')


def seen(blueprint: str, *replies: Any) -> Any:
    """Return everything observable of a run: warnings, model requests, and the result."""
    model = Counting(*replies, then=replies[-1])
    Path("b.yaml").write_text(blueprint, encoding="utf-8")
    try:
        pipeline = load_blueprint("b.yaml", allow=["builtins", "./keyed.py"])
        run = Runner(pipeline, models=Source(model)).run_sync("7", {"known": 1})
        resumed = asyncio.run(Runner(pipeline).resume(run.paused, "5")) if run.paused else None
    except (BlueprintError, UsageError) as error:
        return str(error)
    reported = [re.sub(r"'(run_id|seconds)': [^,}]+", "", str(each.to_dict())) for each in (run, resumed) if each]
    asked = [(each.prompt, dict(each.settings), each.output_mode) for each in model.asked]
    found = [(each.code, each.severity) for each in lint_text(blueprint).findings]
    named = pipeline.name, pipeline.description, [(step.name, str(step.meta)) for step in pipeline.steps]
    return pipeline.warnings, found, reported, asked, model.most, run.context, named


usually = cache(seen)
"""The same for a blueprint that many keys are compared with."""


CHILD = """
version: "0.1"
name: child
agents: {c: {model: "local:x"}}
steps:
  - {name: inner, uses: agents.c, input: "{{ previous_step }}{{ context }}", sink_to: said}
"""
ASKING = """
version: "0.1"
name: asking
steps: [{kind: hitl, name: inner, message: Well?}]
"""
KEYED = """
def enough(output, context=None):
    return True

def never(output, context=None):
    return False

def first(value, context=None):
    return f"first {value}"

def again(output, context=None, iteration=0):
    return f"again {output}"

def last(output, context=None):
    return f"last {output}"
"""


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
    "agent.capabilities": (step(""), step("", ", capabilities: [WebSearch]"), (GOOD,)),
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
HEAD = f'agents:\n  a: {{model: "local:x", output_schema: {OBJECT}}}\n  p: {{model: "local:x"}}\n'
LINES = ("The moon is bright tonight.", "A fox runs over the hill.", "Rain falls on old roofs.", "We all go home.")
ASK = "{name: a, uses: agents.a, input: '{{ input }}'}"
ECHO = "{name: b, uses: flujo.builtins.passthrough, input: '{{ input }}'}"
ANN = (
    "{name: ann, role: poet, persona: You write., subscribes_to: [run.started, agent.spoke], may_emit: [agent.spoke],"
    " schedule: {tick_every: 1}, model_profile: fast, memory: {window: 4, reflection_threshold: 2}}"
)
KINDS = {
    "ParallelBlock": f"{{kind: parallel, name: k, branches: {{one: [{ASK}], two: [{{uses: echo, name: b}}]}}MORE}}",
    "ConditionalBlock": (
        f"{{kind: conditional, name: k, condition_expression: 'true', branches: {{'true': [{ASK}]}}MORE}}"
    ),
    "LoopBlock": f"{{kind: loop, name: k, loop: {{max_loops: 2, on_max_loops: accept, body: [{ASK}]}}MORE}}",
    "MapBlock": f"{{kind: map, name: k, map: {{iterable_input: '{{{{ [1, 2] }}}}', body: [{ASK}]}}MORE}}",
    "HitlBlock": "{kind: hitl, name: k, message: 'Well?'MORE}",
    "CacheBlock": f"{{kind: cache, name: k, wrapped_step: {ASK}MORE}}",
    "AgreeBlock": f"{{kind: agree, name: k, wordings: 2, reading: {ASK}MORE}}",
    "EnsembleBlock": f"{{kind: ensemble, name: k, turns: 3, profiles: {{fast: p}}, cast: [{ANN}]MORE}}",
}
"""A step of each kind but the plain one."""


def whole(*steps: str, top: str = "") -> str:
    return f"{top}{HEAD}steps:\n" + "".join(f"  - {step}\n" for step in steps)


def of_kind(block: str, more: str = "") -> str:
    return whole(KINDS[block].replace("MORE", more))


def loop(more: str, body: str = ASK, limits: str = "max_loops: 2, on_max_loops: accept") -> str:
    return whole(f"{{kind: loop, name: k, loop: {{{limits}, body: [{body}]{more}}}}}", AFTER[4:].strip())


def mapped(more: str, items: str = "{{ [1, 2] }}") -> str:
    return whole(f"{{kind: map, name: k, map: {{iterable_input: '{items}', body: [{ASK}]{more}}}}}", AFTER[4:].strip())


def forked(more: str, merging: str = "updates_context: true") -> str:
    two = f"{{name: c, uses: agents.a, input: '{{{{ input }}}}', {merging}}}"
    return whole(f"{{kind: parallel, name: k, branches: {{one: [{two}], two: [{two}]}}{more}}}")


def agreed(more: str, readings: str = f"wordings: 2, reading: {ASK}") -> str:
    return whole(f"{{kind: agree, name: k, {readings}{more}}}")


def cast(more: str, turns: int = 3, who: str = ANN) -> str:
    return whole(f"{{kind: ensemble, name: k, turns: {turns}, profiles: {{fast: p}}, cast: [{who}]{more}}}")


def imported(config: str) -> str:
    step = f"{{name: i, uses: imports.c, input: '{{{{ input }}}}', updates_context: true, config: {{{config}}}}}"
    return whole(step, top="imports: {c: child.yaml}\n")


def set_by(operation: str) -> str:
    return loop(f", init: [{operation}]")


def prompted(prompt: str) -> str:
    return step("", f", system_prompt: {prompt}")


def called(agent: str) -> str:
    return whole(f"{{name: s, agent: {{{agent}}}, input: {{a: 1}}}}")


def limited(limits: str) -> str:
    return step(f", usage_limits: {{{limits}}}")


SETTINGS = {
    "temperature": 0.5,
    "top_p": 0.5,
    "top_k": 3,
    "max_tokens": 9,
    "seed": 3,
    "timeout_s": 1e-6,
    "timeout": 1e-6,
}
NESTED: dict[str, tuple[str, str, tuple[Any, ...]]] = {
    # of the whole
    "version": (whole(ASK, top="version: '0.1'\n"), whole(ASK, top="version: '7'\n"), (GOOD,)),
    "name": (whole(ASK, top="name: one\n"), whole(ASK, top="name: two\n"), (GOOD,)),
    "description": (whole(ASK), whole(ASK, top="description: What it is for.\n"), (GOOD,)),
    "agents": (whole(ASK), whole(ASK).replace("  a:", "  z:"), (GOOD,)),
    "profiles": (
        whole(ASK, top="profiles: {x: local:x}\n"),
        whole(ASK, top="profiles: {x: {nobody: local:x}}\n"),
        (GOOD,),
    ),
    "imports": (imported(""), imported("").replace("child.yaml", "absent.yaml"), (GOOD,)),
    "steps": (whole(ASK), whole(ASK, ECHO), (GOOD,)),
    # of a part
    "PromptFile.from_file": (
        prompted("{from_file: prompt.md, variables: {how: brief}}"),
        prompted("{from_file: other.md, variables: {how: brief}}"),
        (GOOD,),
    ),
    "PromptFile.variables": (
        prompted("{from_file: prompt.md, variables: {how: brief}}"),
        prompted("{from_file: prompt.md, variables: {how: kind}}"),
        (GOOD,),
    ),
    "Skill.id": (called("id: flujo.builtins.stringify"), called("id: flujo.builtins.passthrough"), (GOOD,)),
    "Skill.path": (called("path: keyed:first"), called("path: keyed:last"), (GOOD,)),
    "Skill.params": (
        called("id: flujo.builtins.wrap_dict, params: {key: a}"),
        called("id: flujo.builtins.wrap_dict, params: {key: b}"),
        (GOOD,),
    ),
    "Limits.max_requests": (limited("max_requests: 9"), limited("max_requests: 1"), (TEXT,)),
    "Limits.max_tokens": (limited("max_tokens: 9000"), limited("max_tokens: 60"), (TEXT,)),
    "Limits.max_cost": (limited("max_cost: 9"), limited("max_cost: 0"), (TEXT,)),
    "Limits.total_tokens_limit": (limited("total_tokens_limit: 9000"), limited("total_tokens_limit: 60"), (TEXT,)),
    "Limits.total_cost_usd_limit": (limited("total_cost_usd_limit: 9"), limited("total_cost_usd_limit: 0"), (TEXT,)),
    "Config.max_retries": (step(""), step(", config: {max_retries: 1}"), (ConnectionError("gone"), GOOD)),
    **{f"Config.{key}": (step(""), step(f", config: {{{key}: {value}}}"), (GOOD,)) for key, value in SETTINGS.items()},
    "Config.inherit_context": (imported("inherit_context: false"), imported("inherit_context: true"), (GOOD,)),
    "Config.input_to": (imported("input_to: initial_prompt"), imported("input_to: import_artifacts"), (GOOD,)),
    "Config.outputs": (imported("outputs: {said: here}"), imported("outputs: {said: there}"), (GOOD,)),
    "Config.on_failure": (imported(""), imported("on_failure: skip"), (RuntimeError("no"),)),
    "Config.propagate_hitl": (
        imported("").replace("child", "asking"),
        imported("propagate_hitl: false").replace("child", "asking"),
        (GOOD,),
    ),
    "Config.default": (
        imported("on_failure: continue_with_default, default: {n: 1}"),
        imported("on_failure: continue_with_default, default: {n: 2}"),
        (RuntimeError("no"),),
    ),
    "OutputMapping.child": (
        imported("outputs: [{child: said, parent: here}]"),
        imported("outputs: [{child: known, parent: here}]"),
        (GOOD,),
    ),
    "OutputMapping.parent": (
        imported("outputs: [{child: said, parent: here}]"),
        imported("outputs: [{child: said, parent: there}]"),
        (GOOD,),
    ),
    "ParallelBlock.branches": (forked(""), forked("").replace("two: [", "three: ["), (GOOD,)),
    "ParallelBlock.merge_strategy": (forked(""), forked(", merge_strategy: overwrite"), (GOOD, '{"n": 2}')),
    "ParallelBlock.on_branch_failure": (
        forked(""),
        forked(", on_branch_failure: ignore"),
        (RuntimeError("no"), GOOD),
    ),
    "ParallelBlock.context_include_keys": (forked(""), forked(", context_include_keys: [other]"), (GOOD,)),
    "ParallelBlock.field_mapping": (
        forked(", merge_strategy: context_update"),
        forked(", merge_strategy: context_update, field_mapping: {one: [n], two: []}"),
        (GOOD, '{"n": 2}'),
    ),
    "ParallelBlock.ignore_branch_names": (
        forked(", updates_context: true"),
        forked(", updates_context: true, ignore_branch_names: true"),
        (GOOD,),
    ),
    "ParallelBlock.reduce": (forked(""), forked(", reduce: first"), (GOOD,)),
    "ParallelBlock.max_concurrency": (forked(""), forked(", max_concurrency: 1"), (GOOD,)),
    "ConditionalBlock.branches": (
        of_kind("ConditionalBlock"),
        of_kind("ConditionalBlock").replace("'true': [", "'false': ["),
        (GOOD,),
    ),
    "ConditionalBlock.condition": (
        of_kind("ConditionalBlock").replace("condition_expression: 'true'", "condition: keyed:enough"),
        of_kind("ConditionalBlock").replace("condition_expression: 'true'", "condition: keyed:never"),
        (GOOD,),
    ),
    "ConditionalBlock.condition_expression": (
        of_kind("ConditionalBlock"),
        of_kind("ConditionalBlock").replace("'true', branches", "'false', branches"),
        (GOOD,),
    ),
    "ConditionalBlock.default_branch": (
        of_kind("ConditionalBlock").replace("'true', branches", "'false', branches"),
        of_kind("ConditionalBlock", f", default_branch: [{ECHO}]").replace("'true', branches", "'false', branches"),
        (GOOD,),
    ),
    "LoopBlock.loop": (of_kind("LoopBlock"), of_kind("LoopBlock").replace("max_loops: 2", "max_loops: 3"), (GOOD,)),
    "LoopKeys.body": (loop(""), loop("", ECHO), (GOOD,)),
    "LoopKeys.max_loops": (loop(""), loop("", limits="max_loops: 3, on_max_loops: accept"), (GOOD,)),
    "LoopKeys.max_iterations": (loop(""), loop("", limits="max_iterations: 3, on_max_loops: accept"), (GOOD,)),
    "LoopKeys.on_max_loops": (
        loop(", exit_expression: 'false'"),
        loop(", exit_expression: 'false'", limits="max_loops: 2, on_max_loops: fail"),
        (GOOD,),
    ),
    "LoopKeys.exit_expression": (loop(""), loop(", exit_expression: 'true'"), (GOOD,)),
    "LoopKeys.exit_condition": (loop(""), loop(", exit_condition: keyed:enough"), (GOOD,)),
    "LoopKeys.completion_signal": (
        loop("", "{name: a, uses: agents.p, input: '{{ input }}'}"),
        loop(", completion_signal: DONE", "{name: a, uses: agents.p, input: '{{ input }}'}"),
        ("All of it.\nDONE",),
    ),
    "LoopKeys.initial_input_mapper": (
        loop("", "{name: a, uses: agents.a}"),
        loop(", initial_input_mapper: keyed:first", "{name: a, uses: agents.a}"),
        (GOOD,),
    ),
    "LoopKeys.iteration_input_mapper": (
        loop("", "{name: a, uses: agents.a}"),
        loop(", iteration_input_mapper: keyed:again", "{name: a, uses: agents.a}"),
        (GOOD,),
    ),
    "LoopKeys.loop_output_mapper": (loop(""), loop(", loop_output_mapper: keyed:last"), (GOOD,)),
    "LoopKeys.init": (loop(""), loop(", init: [{set: context.n, value: 3}]"), (GOOD,)),
    "LoopKeys.state": (loop(""), loop(", state: {append: [{target: context.list, value: 1}]}"), (GOOD,)),
    "LoopKeys.propagation": (
        loop("", "{name: a, uses: agents.a}"),
        loop(", propagation: {next_input: context}", "{name: a, uses: agents.a}"),
        (GOOD,),
    ),
    "LoopKeys.output": (loop(""), loop(", output: {text: '{{ previous_step.n }}'}"), (GOOD,)),
    "LoopKeys.output_template": (loop(""), loop(", output_template: 'Got {{ previous_step.n }}'"), (GOOD,)),
    "LoopKeys.conversation": (loop(""), loop(", conversation: true"), (GOOD,)),
    "Operation.set": (set_by("{set: context.n, value: 3}"), set_by("{set: context.m, value: 3}"), (GOOD,)),
    "Operation.value": (set_by("{set: context.n, value: 3}"), set_by("{set: context.n, value: 4}"), (GOOD,)),
    "Operation.append": (loop(""), set_by("{append: {target: context.list, value: 1}}"), (GOOD,)),
    "Operation.merge": (loop(""), set_by("{merge: {target: context.map, value: {a: 1}}}"), (GOOD,)),
    "Placed.target": (
        set_by("{append: {target: context.list, value: 1}}"),
        set_by("{append: {target: context.more, value: 1}}"),
        (GOOD,),
    ),
    "Placed.value": (
        set_by("{append: {target: context.list, value: 1}}"),
        set_by("{append: {target: context.list, value: 2}}"),
        (GOOD,),
    ),
    "MapBlock.map": (of_kind("MapBlock"), of_kind("MapBlock").replace("[1, 2]", "[1, 2, 3]"), (GOOD,)),
    "MapKeys.iterable_input": (mapped(""), mapped("", "{{ [1, 2, 3] }}"), (GOOD,)),
    "MapKeys.body": (mapped(""), mapped("").replace(ASK, ECHO), (GOOD,)),
    "MapKeys.init": (mapped(""), mapped(", init: [{set: context.n, value: 3}]"), (GOOD,)),
    "MapKeys.finalize": (mapped(""), mapped(", finalize: [{set: context.n, value: 3}]"), (GOOD,)),
    "MapKeys.max_concurrency": (mapped(""), mapped(", max_concurrency: 1"), (GOOD,)),
    "MapKeys.merge_strategy": (
        mapped("").replace(ASK, ASK[:-1] + ", updates_context: true}"),
        mapped(", merge_strategy: overwrite").replace(ASK, ASK[:-1] + ", updates_context: true}"),
        (GOOD, '{"n": 2}'),
    ),
    "HitlBlock.message": (of_kind("HitlBlock"), of_kind("HitlBlock").replace("Well?", "Now?"), (GOOD,)),
    "HitlBlock.input_schema": (of_kind("HitlBlock"), of_kind("HitlBlock", ", input_schema: {type: integer}"), (GOOD,)),
    "CacheBlock.wrapped_step": (of_kind("CacheBlock"), of_kind("CacheBlock").replace(ASK, ECHO), (GOOD,)),
    "Coercion.tolerant_level": (
        processing("coercion: {}, stages: []"),
        processing("coercion: {tolerant_level: 0}, stages: []"),
        ('{"n": "1"}',),
    ),
    "Coercion.max_unescape_depth": (
        processing("coercion: {}"),
        processing("coercion: {max_unescape_depth: 2}"),
        (GOOD,),
    ),
    "Coercion.anyof_strategy": (
        processing("coercion: {anyof_strategy: first-pass}"),
        processing("coercion: {anyof_strategy: best}"),
        (GOOD,),
    ),
    "Coercion.allow": (
        processing("coercion: {}, stages: []"),
        processing("coercion: {allow: {boolean: [str->bool]}}, stages: []"),
        ('{"n": "1"}',),
    ),
    "AgreeBlock.readings": (
        agreed("", f"readings: [{ASK}, {ASK.replace('name: a', 'name: b')}]"),
        agreed("", f"readings: [{ASK}, {ASK.replace('name: a', 'name: c')}]"),
        (GOOD,),
    ),
    "AgreeBlock.reading": (agreed(""), agreed("").replace("'{{ input }}'", "'Say {{ input }}'"), (GOOD,)),
    "AgreeBlock.wordings": (agreed(""), agreed("").replace("wordings: 2", "wordings: 3"), (GOOD,)),
    "AgreeBlock.models": (
        agreed("", f"models: ['local:x', 'local:y'], reading: {ASK}"),
        agreed("", f"models: ['local:x', 'local:x'], reading: {ASK}"),
        (GOOD,),
    ),
    "AgreeBlock.uses": (agreed("", "wordings: 2, uses: agents.a"), agreed("", "wordings: 2, uses: agents.p"), (GOOD,)),
    "AgreeBlock.agent": (
        agreed("", "wordings: 2, agent: {model: 'local:x'}"),
        agreed("", "wordings: 2, agent: {model: 'local:y'}"),
        (GOOD,),
    ),
    "AgreeBlock.output_schema": (
        agreed("", "wordings: 2, uses: agents.a"),
        agreed("", "wordings: 2, uses: agents.a, output_schema: {type: array}"),
        (GOOD,),
    ),
    "AgreeBlock.by_field": (agreed(""), agreed(", by_field: true"), (GOOD,)),
    "AgreeBlock.need": (
        agreed("", f"wordings: 3, reading: {ASK}"),
        agreed(", need: 3", f"wordings: 3, reading: {ASK}"),
        (GOOD, GOOD, '{"n": 2}'),
    ),
    "AgreeBlock.evidence": (agreed(""), agreed(", evidence: 'no number'"), (GOOD,)),
    "AgreeBlock.contested": (agreed(""), agreed(", contested: accept"), (GOOD, '{"n": 2}')),
    "AgreeBlock.at_once": (agreed(""), agreed(", at_once: 2"), (GOOD,)),
    "EnsembleBlock.cast": (cast(""), cast("", who=ANN.replace("You write.", "You sing.")), LINES),
    "EnsembleBlock.profiles": (cast(""), cast("").replace("{fast: p}", "{fast: absent}"), LINES),
    "EnsembleBlock.turns": (cast(""), cast("", turns=2), LINES),
    "EnsembleBlock.stop_on": (cast(""), cast(", stop_on: [agent.spoke]"), LINES),
    "EnsembleBlock.stop": (cast(""), cast(", stop: agent.spoke"), LINES),
    "EnsembleBlock.completion_signal": (cast(""), cast(", completion_signal: bright"), LINES),
    "EnsembleBlock.log": (cast(""), cast(", log: 'nosuch://events'"), LINES),
    "EnsembleBlock.inject": (cast(""), cast(", inject: {'2': 'Now sadder.'}"), LINES),
    "EnsembleBlock.repetition": (cast(""), cast(", repetition: null"), ("The moon is bright.",)),
    "EnsembleBlock.drift": (cast(""), cast(", drift: 1.0"), LINES),
    "EnsembleBlock.reflection": (cast(""), cast(", reflection: false"), LINES),
}
COMMON = {
    "kind": "step",
    "name": "other",
    "step": "other",
    "input": "other",
    "on_degraded": "fail",
    "updates_context": "true",
    "mergeable_output": "true",
    "sink_to": "here",
    "checks": "['output == 5']",
    "validators": "['output == 5']",
    "fallback": "{name: f, uses: flujo.builtins.passthrough}",
    "usage_limits": "{max_requests: 0}",
    "config": "{timeout_s: 0.000001}",
    "retries": "1",
    "timeout": "0.000001",
    "meta": "{note: mine}",
}
"""What every kind of step has, with another value than the usual one."""
ELSEWHERE = {
    "agent.name": "seen in traces: test_agents_with_tools holds it",
    "agent.tools": "needs a model that calls tools: test_agents_with_tools holds it",
    "kind": "each kind has tests of its own",
    "processing.adaptive": "needs the evidence of a journal: tests/recovery and tests/telemetry hold it",
}
USELESS = {
    ("ParallelBlock", "mergeable_output"): "its value is an object in any case",
    ("CacheBlock", "mergeable_output"): "the value is that of the step inside, which may say it",
    ("AgreeBlock", "mergeable_output"): "the value is that of the readings, which may say it",
    ("EnsembleBlock", "mergeable_output"): "its value is an object in any case",
    ("EnsembleBlock", "on_degraded"): "a turn that gives only text is an event like any other",
}
"""Keys that a kind has without a use for them, and why."""
PARTS = {"Agent", "StepBlock", "Processing", "Step", "Body", "Operations", "JsonValue"}
"""Definitions whose keys have probes above, and those that only refer to others."""


def offered() -> Iterator[str]:
    """Yield every key that editors offer, by the part that it belongs to, except documented no-ops."""
    schema = blueprint_schema()
    useless = {block.__name__: set(block.ignored) for block in blocks_of(blocks.Block)}
    yield from (key for key in schema["properties"] if key not in blocks.Top.ignored)
    for part, definition in schema["$defs"].items():
        own = set(definition.get("properties", {})) - useless.get(part, set())
        common = set(COMMON) if part in KINDS else set[str]()
        yield from (f"{part}.{key}" for key in own - common if part not in PARTS)


def blocks_of(block: type[blocks.Block]) -> Iterator[type[blocks.Block]]:
    yield block
    for inner in block.__subclasses__():
        yield from blocks_of(inner)


def test_every_documented_key_has_a_probe() -> None:
    of_step = set(blocks.StepBlock.model_fields)
    of_agent = {f"agent.{name}" for name in blocks.Agent.model_fields}
    of_processing = {f"processing.{each.name}" for each in fields(Processing)}
    assert of_step | of_agent | of_processing == {*KEYS, *ELSEWHERE}
    assert set(offered()) == set(NESTED)
    assert set(blocks.StepKeys.model_fields) == set(COMMON) - {"step"}  # which is another word for the name
    assert {block.__name__ for block in blocks.BLOCKS.values()} == {*KINDS, "StepBlock"}


@pytest.mark.parametrize("key", KEYS)
def test_a_key_has_a_visible_effect(key: str) -> None:
    usual, other, replies = KEYS[key]
    before = seen(usual, *replies)
    assert before == seen(usual, *replies)
    assert before != seen(other, *replies)


@pytest.mark.parametrize("key", NESTED)
def test_a_key_of_a_part_or_of_a_kind_has_a_visible_effect(key: str) -> None:
    usual, other, replies = NESTED[key]
    before = seen(usual, *replies)
    assert before == seen(usual, *replies)
    assert isinstance(before, tuple) or key == "ConditionalBlock.default_branch", before
    assert before != seen(other, *replies)


@pytest.mark.parametrize("block", KINDS)
@pytest.mark.parametrize("key", COMMON)
def test_a_common_key_has_a_visible_effect_on_every_kind(block: str, key: str) -> None:
    merged = ", updates_context: true" if key == "mergeable_output" else ""
    usual = of_kind(block, merged)
    if key in ("kind", "name", "step"):
        written = r"kind: \w+" if key == "kind" else "name: k"
        other = re.sub(written, f"{key}: {COMMON[key]}", usual, count=1)
    else:
        other = of_kind(block, f"{merged}, {key}: {COMMON[key]}")
    replies = (GOOD,), (TEXT,), *((*[GONE] * times, GOOD) for times in (1, 2, 3))
    assert any(usually(usual, *each) != seen(other, *each) for each in replies) != ((block, key) in USELESS)
