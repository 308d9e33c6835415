"""Oversized blueprints are rejected early, with a short error and without a crash."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flujo_aros import BlueprintError, Runner
from flujo_aros.blueprint.document import MAX_FINDINGS, MAX_NODES, TOO_MANY
from flujo_aros.blueprint.load import parse_blueprint
from flujo_aros.lint import Severity, lint_text


@pytest.mark.parametrize(
    "text",
    [
        "steps:\n" + "  - {name: s}\n" * MAX_NODES,
        "steps: [" + "[]," * MAX_NODES + "]",
        "x: &x [" + "1," * MAX_NODES + "]\nsteps: [" + "*x," * MAX_NODES + "]",
    ],
)
def test_too_many_values_are_rejected_at_the_limit(text: str) -> None:
    with pytest.raises(
        BlueprintError, match=f"a blueprint may contain at most {MAX_NODES} values, and this one exceeds that"
    ):
        parse_blueprint(text)


MANY: dict[str, str] = {
    "unknown keys": "steps:\n" + "".join(f"  - {{name: s{n}, ussse: x}}\n" for n in range(1000)),
    "names that are taken": "steps:\n" + "  - {name: s, uses: flujo.builtins.echo}\n" * 1000,
    "duplicate keys": "steps: []\n" * 3000,
    "tags": "steps: [" + "!x 1," * 3000 + "]",
    "missing agents": "steps:\n" + "".join(f"  - {{name: s{n}, uses: agents.a{n}}}\n" for n in range(1000)),
    "missing steps": "steps:\n"
    + "".join(f"  - {{name: s{n}, uses: flujo.builtins.echo, input: '{{{{ steps.t{n} }}}}'}}\n" for n in range(500)),
    "wrong agents": "agents:\n"
    + "".join(f"  a{n}: {{modle: m}}\n" for n in range(1500))
    + "steps: [{name: s, uses: agents.a1}]",
    "one import": "imports:\n  c:\n    steps:\n" + "".join(f"      - {{name: s{n}, x: 1}}\n" for n in range(900)),
}


@pytest.mark.parametrize("what", MANY)
def test_after_a_hundred_errors_the_rest_is_not_checked(what: str) -> None:
    with pytest.raises(BlueprintError) as caught:
        parse_blueprint(MANY[what])
    assert len(caught.value.findings) <= MAX_FINDINGS + 3
    assert (
        sum("fix these first, the rest of the file was not checked" in each.message for each in caught.value.findings)
        == 1
    )
    lines = str(caught.value).splitlines()
    assert len(lines) == 51
    assert lines[-1].startswith("blueprint: and ")
    errors = [each for each in lint_text(MANY[what]).findings if each.severity is Severity.ERROR]
    assert MAX_FINDINGS <= len(errors) <= 2 * MAX_FINDINGS + 3


def test_a_hundred_errors_are_reported_as_fifty_and_a_count() -> None:
    text = "steps:\n" + "".join(f"  - {{name: s{n}, ussse: x}}\n" for n in range(99))
    with pytest.raises(BlueprintError) as caught:
        parse_blueprint(text)
    assert len(caught.value.findings) == 99
    assert str(caught.value).splitlines()[-1] == "blueprint: and 49 more errors"


def test_a_file_of_five_hundred_steps_loads() -> None:
    agents = "agents: {a: {model: 'openai:gpt-4o'}}\n"
    steps = "".join(f"  - name: s{n}\n    uses: agents.a\n    input: '{{{{ input }}}} {n}'\n" for n in range(500))
    assert len(parse_blueprint(f"{agents}steps:\n{steps}").steps) == 500


LONG: dict[str, str] = {
    "name of an agent": "steps: [{name: s, uses: agents.%s}]",
    "kind": "steps: [{name: s, kind: %s}]",
    "key": "steps: [{name: s, '%s': 1}]",
    "tag": "steps: !%s []",
    "anchor": "steps: *%s",
    "built-in": "steps: [{name: s, uses: flujo.builtins.%s}]",
    "number": "steps: [{name: s, retries: '%s'}]",
    "name in a template": "steps: [{name: s, uses: flujo.builtins.echo, input: '{{ %s }}'}]",
    "step in a template": "steps: [{name: s, uses: flujo.builtins.echo, input: '{{ steps.%s }}'}]",
    "check": "steps: [{name: s, uses: flujo.builtins.echo, checks: ['outptu == 1 and output.%s']}]",
    "function": "steps: [{name: s, uses: '%s.b:c'}]",
    "import": "imports: {a: %s}\nsteps: [{name: s, uses: imports.a}]",
    "name of a step": "steps: [{name: %s, usse: 1}]",
    "setting": "agents: {a: {model: 'openai:x', model_settings: {%s: 1}}}\nsteps: [{name: s, uses: agents.a}]",
}


@pytest.mark.parametrize("what", LONG)
def test_messages_about_very_long_text_stay_short(what: str) -> None:
    with pytest.raises(BlueprintError) as caught:
        parse_blueprint(LONG[what] % ("n" * 9000))
    assert all(len(each.message) < 900 for each in caught.value.findings), caught.value.findings


@pytest.mark.parametrize("key", ["prompt", "import"])
def test_a_name_that_no_file_can_have_is_an_error(key: str, tmp_path: Path) -> None:
    name = json.dumps("a\0b")
    text = {
        "prompt": f"steps: [{{name: s, agent: {{model: m, system_prompt: {{from_file: {name}}}}}}}]",
        "import": f"imports: {{c: {name}}}\nsteps: [{{name: s, uses: imports.c}}]",
    }[key]
    with pytest.raises(BlueprintError, match=r"a\\x00b"):
        parse_blueprint(text, folder=tmp_path)


def test_a_wrong_option_of_a_lenient_step_is_why_it_cannot_run() -> None:
    pipeline = parse_blueprint("steps: [{name: s, uses: flujo.builtins.echo, sink_to: 'a..b'}]", lenient=True)
    with pytest.raises(BlueprintError, match=r"step 's' cannot run: .* sink_to is a dotted path"):
        Runner(pipeline).run_sync("x")


def test_the_depth_of_a_context_path_is_limited() -> None:
    text = "steps: [{name: s, uses: flujo.builtins.echo, sink_to: %s}]"
    assert Runner(parse_blueprint(text % ".".join("a" * 64))).run_sync("x").status == "completed"
    with pytest.raises(BlueprintError, match="sink_to has at most 64 names with dots between them"):
        parse_blueprint(text % ".".join("a" * 65))


def test_of_very_many_wrong_stages_the_first_are_reported() -> None:
    stages = ", ".join(f"retyr{n}" for n in range(1000))
    with pytest.raises(BlueprintError) as caught:
        parse_blueprint(f"steps: [{{name: s, agent: {{model: 'openai:x'}}, processing: {{stages: [{stages}]}}}}]")
    said = {each.message.partition(";")[0] for each in caught.value.findings}
    assert said == {TOO_MANY.partition(";")[0], *(f"unknown stage 'retyr{n}'" for n in range(MAX_FINDINGS))}
