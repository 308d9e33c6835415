"""Blueprints load into the same objects as Python code, or report every error with its place; nothing is run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from flujo_aros import (
    AgentSpec,
    BlueprintError,
    Call,
    Pipeline,
    Processing,
    Runner,
    RunStatus,
    Step,
    UsageError,
    load_blueprint,
)
from flujo_aros.blueprint.load import parse_blueprint

SCHEMA: dict[str, Any] = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}

WHOLE = """
version: "0.1"
name: demo
description: shows every key
agents:
  reader:
    model: local:smollm2
    system_prompt: Read the order.
    output_schema: {type: object, required: [n], properties: {n: {type: integer}}}
    model_settings: {temperature: 0, max_tokens: 100}
    output_mode: native
    timeout: 30
    max_retries: 1
steps:
  - kind: step
    name: read
    uses: agents.reader
    input: "Order: {{ input }}"
    processing: {structured_output: openai_json, enforcement: validate}
    on_degraded: fail
  - name: inline
    agent: {model: "local:smollm2", system_prompt: Say hello.}
    processing: {schema: {type: integer}}
    on_degraded: accept
  - name: join
    uses: os.path:join
    params: {b: tail}
"""


def mistakes(text: str, **options: Any) -> list[str]:
    with pytest.raises(BlueprintError) as caught:
        parse_blueprint(text, source="t.yaml", **options)
    return str(caught.value).splitlines()


def one_step(lines: str) -> str:
    return f"agents: {{a: {{model: m}}}}\nsteps:\n  - name: s\n    {lines}\n"


def test_yaml_and_python_make_the_same_objects():
    reader = AgentSpec(
        model="local:smollm2",
        system_prompt="Read the order.",
        output_schema=SCHEMA,
        model_settings={"temperature": 0, "max_tokens": 100},
        output_mode="native",
        timeout=30,
        max_retries=1,
    )
    made = (
        Step(
            "read",
            agent=reader,
            input="Order: {{ input }}",
            processing=Processing(structured_output="openai_json", enforcement="validate"),
            on_degraded="fail",
        )
        >> Step(
            "inline",
            agent=AgentSpec(model="local:smollm2", system_prompt="Say hello."),
            processing=Processing(schema={"type": "integer"}),
            on_degraded="accept",
        )
        >> Call("join", function="os.path:join", params={"b": "tail"})
    )
    loaded = parse_blueprint(WHOLE, allow=["os.path"])
    assert loaded == Pipeline(made.steps, name="demo", description="shows every key")
    assert [step.name for step in loaded.steps] == ["read", "inline", "join"]


def test_a_blueprint_without_a_name_has_that_of_its_file(tmp_path: Path):
    file = tmp_path / "orders.yaml"
    file.write_text("\ufeffsteps: [{name: a, agent: {model: m}}]", encoding="utf-8")
    assert load_blueprint(file).name == "orders"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("uses: agents.a\n    inptu: x", "5:5: unknown key 'inptu'; did you mean 'input'?"),
        ("uses: agents.b", "4:11: unknown agent 'b'; known: a"),
        ("uses: a", "4:11: `uses` takes agents.NAME or package.module:name, not 'a'"),
        ("uses: os:path.join", "4:11: `uses` takes agents.NAME or package.module:name, not 'os:path.join'"),
        ("uses: agents.a\n    agent: {model: m}", "3:5: step 's' needs either `uses` or `agent`, but not both"),
        ("kind: lop", "4:11: unknown kind of step 'lop'; did you mean 'loop'?"),
        (
            "uses: agents.a\n    input: 3",
            "5:12: input of step 's' must be a template, or an object or list of templates, not 3",
        ),
        ("uses: agents.a\n    input: '{{ imput }}'", "5:12: input of step 's': there is no 'imput'"),
        ("uses: agents.a\n    input: '{{ steps.t.output }}'", "5:12: input of step 's': there is no step 't'"),
        ("uses: agents.a\n    params: {a: 1}", "5:5: `params` are for callable steps"),
        (
            "uses: agents.a\n    on_degraded: maybe",
            "5:18: step 's': on_degraded must be one of accept, fail, not 'maybe'",
        ),
        ("uses: agents.a\n    processing: {enforcement: of}", "5:31: processing.enforcement should be 'off', "),
        ("uses: agents.a\n    processing: {schem: {}}", "5:18: unknown key 'schem'; did you mean 'schema'?"),
        ("uses: agents.a\n    processing: {schema: {type: 3}}", "5:33: invalid JSON Schema at $.type"),
        ("agent: {modle: m}", "4:13: unknown key 'modle'; did you mean 'model'?"),
        ("agent: skills.x", "4:12: step 's' would import skills, which is not allowed"),
        ("agent: {model: m, timeout: 0}", "4:32: timeout should be greater than 0, not 0"),
        (
            "agent: {model: m, system_prompt: {from_file: ../../etc/passwd}}",
            "4:50: '../../etc/passwd' cannot be found: a blueprint",
        ),
    ],
)
def test_an_error_names_its_place_and_the_fix(lines: str, message: str):
    assert any(line.startswith(f"t.yaml:{message}") for line in mistakes(one_step(lines)))


def test_all_errors_of_a_file_are_reported_at_once_in_order():
    text = (
        "agents:\n"
        "  a: {model: 3, output_schema: {type: nonsense}}\n"
        "steps:\n"
        "  - {name: one, uses: agents.a, input: '{{ imput }}', colour: red}\n"
        "  - {name: one, uses: agents.a, input: '{{ steps.two.output }}'}\n"
        "  - {name: two, uses: 'os:system'}\n"
        "  - {kind: dance, name: three}\n"
        "extra: 1\n"
    )
    found = mistakes(text)
    assert [int(line.split(":")[1]) for line in found] == [2, 2, 4, 4, 5, 5, 6, 7, 8]


def test_an_invalid_schema_of_an_answer_is_reported_once_and_at_the_schema():
    found = mistakes("steps:\n  - kind: hitl\n    name: h\n    message: ok?\n    input_schema: {enum: yes}\n")
    assert [line.split(": ", 1)[0] for line in found] == ["t.yaml:5:26"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- 1", "t.yaml:1:1: a blueprint is a mapping with `steps:`"),
        ("name: x", "t.yaml:1:1: 'steps' is missing"),
        ("steps: []", "t.yaml:1:8: steps should have at least one element"),
        (
            "steps: [{name: s, uses: agents.a}]",
            "t.yaml:1:25: unknown agent 'a'; describe it under `agents:` at the top of the blueprint",
        ),
        ("steps: [3]", "t.yaml:1:9: a step is a mapping, such as `{name: answer, uses: agents.writer}`, not 3"),
        ("steps:\n  -", "t.yaml:2:4: a step is a mapping, such as `{name: answer, uses: agents.writer}`, not null"),
        ("steps: {a: 1}", "t.yaml:1:8: steps should be a list"),
        ("version: '9'\nsteps: [{name: a, agent: {model: m}}]", "t.yaml:1:10: this version is not supported"),
    ],
)
def test_a_file_that_is_not_a_blueprint_says_why(text: str, message: str):
    assert mistakes(text)[0].startswith(message)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("id: x", "unknown key 'id'; write `name`"),
        ("with: {a: 1}", "unknown key 'with'; write `input`"),
        ("messages: []", "unknown key 'messages'; write `input`, and `system_prompt` in the agent"),
        ("continue-on-error: true", "write `fallback`, a step that runs instead of one that failed"),
        ("timeout-minutes: 5", "unknown key 'timeout-minutes'; write `timeout`, in seconds"),
        ("output: {topic: string}", "`output_schema` describes the value of a step, `steps.NAME.output` reads it, "),
        ("output: {tag: result}", "and `contract: tagged:TAG` says that it is between tags"),
        ("parallel: []", "write `kind: parallel`, and a list of steps under each name in `branches:`"),
        ("input: '{{ topic }}'", "inside a map also this, item, index; inside a loop also index, loop, iteration"),
        ("input: '{{ topic }}'", "a field of the input is input.topic, the value of a step steps.topic.output"),
    ],
)
def test_keys_and_variables_of_other_tools_say_what_to_write_here(line: str, words: str) -> None:
    (found,) = mistakes(one_step(f"uses: agents.a\n    {line}"))
    assert words in found


def test_a_request_of_openai_as_a_schema_is_one_error() -> None:
    around = "{type: json_schema, json_schema: {name: t, schema: {type: object}}}"
    text = f"agents: {{a: {{model: 'openai:x', output_schema: {around}}}}}\nsteps: [{{name: s, uses: agents.a}}]\n"
    (found,) = mistakes(text)
    assert "this contains a JSON Schema, under `json_schema.schema`, but is not one" in found


def test_an_expression_is_not_the_name_of_a_model() -> None:
    text = "agents: {a: {model: 'ChatOpenAI(model=x)'}}\nsteps: [{name: s, uses: agents.a}]\n"
    (found,) = mistakes(text)
    assert "the model 'ChatOpenAI(model=x)' is not a name; write PROVIDER:NAME" in found


def test_an_unreadable_file_is_reported_in_one_sentence(tmp_path: Path):
    (tmp_path / "latin.yaml").write_bytes(b"name: \xff")
    for name, words in [
        ("none.yaml", "does not exist"),
        (".", r"is a folder; pass the blueprint in it: .*latin\.yaml"),
        ("latin.yaml", "UTF-8"),
    ]:
        with pytest.raises(BlueprintError, match=words):
            load_blueprint(tmp_path / name)


def test_lenient_passes_over_unknown_keys_and_keeps_a_line_for_each():
    text = one_step("uses: agents.a\n    colour: red\n    processing: {apo: full}") + "pipline_config: {}\n"
    assert len(mistakes(text)) == 3
    pipeline = parse_blueprint(text, source="t.yaml", lenient=True)
    assert [step.name for step in pipeline.steps] == ["s"]
    assert [line.split(": ")[0] for line in sorted(pipeline.warnings)] == ["t.yaml:5:5", "t.yaml:6:18", "t.yaml:7:1"]


@pytest.mark.parametrize("allow", [["os.path"], ["os"], ["*"], "os.path"])
def test_a_callable_needs_its_module_or_a_parent_package_allowed(allow: Any):
    assert parse_blueprint(one_step("uses: os.path:join"), allow=allow).steps[0] == Call("s", function="os.path:join")


@pytest.mark.parametrize("allow", [[], ["o"], ["os.pat"], ["os.path.join"], ["ospath"]])
def test_a_callable_that_is_not_allowed_names_the_flag_to_pass(allow: list[str]):
    assert mistakes(one_step("uses: os.path:join"), allow=allow)[0].endswith(
        "would import os.path, which is not allowed; if you trust it, pass --allow os.path"
        ' (in Python: allow=["os.path"])'
    )


def test_a_module_beside_the_blueprint_is_allowed_by_its_file_also_if_it_can_be_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of a program is on Python's path, but not on that of the command line; the file works in both."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "allowed_shop.py").write_text("def buy(x): return x")
    (tmp_path / "b.yaml").write_text(one_step("uses: allowed_shop:buy"))
    with pytest.raises(
        BlueprintError, match=r"pass --allow allowed_shop\.py \(in Python: allow=\[\"allowed_shop\.py\"\]"
    ):
        load_blueprint("b.yaml")
    assert Runner(load_blueprint("b.yaml", allow=["allowed_shop.py"])).run_sync("pen").output == "pen"


def test_an_allowed_module_that_is_missing_is_found_when_the_pipeline_runs_and_not_before():
    pipeline = parse_blueprint(one_step("uses: no_such_pkg.tools:fix"), allow=["no_such_pkg"])
    with pytest.raises(UsageError, match=r"step 's': no_such_pkg\.tools cannot be imported"):
        Runner(pipeline).run_sync()


def test_an_allowed_callable_runs():
    pipeline = parse_blueprint(one_step("uses: json:loads\n    input: '{{ input }}'"), allow=["json"])
    run = Runner(pipeline).run_sync('{"n": [1, 2]}')
    assert (run.status, run.output) == (RunStatus.COMPLETED, {"n": [1, 2]})


def test_prompts_come_from_files_inside_the_blueprints_folder_only(tmp_path: Path):
    folder = tmp_path / "project"
    (folder / "prompts").mkdir(parents=True)
    (folder / "prompts" / "a.md").write_text("Read this. äöü", encoding="utf-8")
    (tmp_path / "secret.md").write_text("secret")
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    file = folder / "b.yaml"

    def load(name: str) -> Any:
        file.write_text(f"steps: [{{name: a, agent: {{model: m, system_prompt: {{from_file: {name}}}}}}}]")
        return load_blueprint(file).steps[0]

    assert load("prompts/a.md").agent.system_prompt == "Read this. äöü"
    for name in ("../secret.md", str(tmp_path / "secret.md"), "link.md"):
        with pytest.raises(BlueprintError, match="outside the folder"):
            load(name)
    with pytest.raises(BlueprintError, match="does not exist"):
        load("prompts/none.md")


def test_shared_parts_may_be_under_a_key_of_their_own():
    text = """
x-defaults: &defaults {uses: flujo.builtins.echo, retries: 2}
steps:
  - {<<: *defaults, name: a}
  - {<<: *defaults, name: b, retries: 0}
"""
    pipeline = parse_blueprint(text)
    assert ([step.retries for step in pipeline.steps], pipeline.warnings) == ([2, 0], ())


def test_a_number_of_a_choice_may_be_quoted():
    text = "agents: {a: {model: m}}\nsteps: [{name: s, uses: agents.a, processing: {coercion: {tolerant_level: '1'}}}]"
    (warning,) = parse_blueprint(text).warnings
    assert warning.endswith("processing.coercion.tolerant_level is a number; write 1 without quotes")


def test_an_agent_described_in_a_step_has_the_name_of_the_step() -> None:
    written = "steps:\n  - {name: greet, agent: {model: 'local:x'}, input: Greet}\n"
    (step,) = parse_blueprint(written).steps
    assert isinstance(step, Step)
    assert isinstance(step.agent, AgentSpec)
    assert step.agent.name == "greet"


@pytest.mark.parametrize(
    ("kind", "hint"),
    [
        ("human", "write `kind: hitl`"),
        ("python", "leave `kind` out and write `uses: package.module:function`"),
        ("Agent", "leave `kind` out and write `uses: agents.NAME`"),
        ("if", "write `kind: conditional`"),
    ],
)
def test_kinds_of_other_tools_get_a_suggestion(kind: str, hint: str) -> None:
    with pytest.raises(BlueprintError, match=re.escape(f"unknown kind of step '{kind}'; {hint}")):
        parse_blueprint(f"steps: [{{name: s, kind: {kind}}}]")


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("if", "; write `kind: conditional` with `condition_expression`"),
        ("over", "; write `kind: map` with `iterable_input` under `map:`"),
        ("prompt", "; write `input`"),
        ("temperature", "; write it under `config:`"),
        ("depends_on", "; steps run in order; `steps.NAME.output` is the value of an earlier one"),
        ("zzz", "; known: agent, checks, completion_signal"),
    ],
)
def test_an_unknown_key_of_a_step_suggests_or_lists_valid_keys(key: str, hint: str) -> None:
    with pytest.raises(BlueprintError, match=re.escape(f"unknown key '{key}'{hint}")):
        parse_blueprint(f"steps: [{{name: s, uses: flujo.builtins.passthrough, {key}: x}}]")


@pytest.mark.parametrize(
    ("step", "hint"),
    [
        ("kind: parallel, steps: []", "unknown key 'steps'; write `branches:` with a list of steps under each name"),
        ("kind: map, steps: []", "unknown key 'steps'; write `body` under `map:`"),
        ("kind: loop, max_iterations: 3", "unknown key 'max_iterations'; write `max_loops` under `loop:`"),
        ("agent: {model: 'openai:m', instructions: x}", "unknown key 'instructions'; write `system_prompt`"),
        ("uses: ./shop.py:buy", "not './shop.py:buy'; write shop:buy, and allow its file: --allow ./shop.py"),
        ("agent: {model: 'openai:m', tools: [shop.buy]}", "not 'shop.buy'; write shop:buy"),
        ("agent: {model: 'openai:m', output: {a: string}}", "unknown key 'output'; write `output_schema`"),
        ("uses: passthrough, instructions: x", "unknown key 'instructions'; write it in the agent, as `system_prompt`"),
        ("uses: passthrough, interrupt_before: [a]", "unknown key 'interrupt_before'; write a step of `kind: hitl`"),
        ("uses: passthrough, retry_delay: 3", "unknown key 'retry_delay'; `retries` waits longer"),
        ("task: agents.a", "unknown key 'task'; write `uses`"),
    ],
)
def test_forms_of_other_tools_get_a_suggestion(step: str, hint: str) -> None:
    with pytest.raises(BlueprintError, match=re.escape(hint)):
        parse_blueprint(f"steps: [{{name: s, {step}}}]")


def test_a_step_under_its_own_name_is_reported_once_with_the_right_form() -> None:
    with pytest.raises(BlueprintError) as error:
        parse_blueprint("steps: [{two: {uses: passthrough}}]")
    (found,) = error.value.findings
    assert found.message == "unknown key 'two'; write `name: two`, with the keys below `two` next to it"


def test_edges_between_steps_are_answered_with_the_order_of_the_steps() -> None:
    with pytest.raises(BlueprintError, match="unknown key 'edges'; steps run in order"):
        parse_blueprint("edges: []\nsteps: [{name: a, uses: passthrough}]")


@pytest.mark.parametrize(
    ("step", "instead"),
    [
        ("kind: hitl, message: Is it right?", "the person sees `message`"),
        (
            "kind: map, map: {iterable_input: input, body: [{name: a, uses: passthrough}]}",
            "`iterable_input` under `map:`",
        ),
        ("kind: cache, wrapped_step: {name: a, uses: passthrough}", "{name: NAME, uses: passthrough, input: …}"),
        (
            "kind: loop, loop: {max_loops: 1, exit_expression: 'true', body: [{name: a, uses: passthrough}]}",
            "passthrough",
        ),
    ],
)
def test_an_input_without_effect_is_a_warning_that_says_what_to_write(step: str, instead: str) -> None:
    (warning,) = parse_blueprint(f"steps: [{{name: s, input: x, {step}}}]").warnings
    assert "`input` has no effect here" in warning
    assert instead in warning


def test_the_bare_name_of_an_agent_is_answered_with_how_to_write_it() -> None:
    blueprint = 'agents: {clerk: {model: "test"}}\nsteps: [{name: s, uses: clerk}]'
    with pytest.raises(BlueprintError, match=r"not 'clerk'; did you mean agents\.clerk\?"):
        parse_blueprint(blueprint)


def test_a_template_with_another_name_for_the_input_suggests_the_right_one() -> None:
    blueprint = 'agents: {a: {model: "test"}}\nsteps: [{name: s, uses: agents.a, input: "Read {{ text }}"}]'
    with pytest.raises(BlueprintError, match=r"there is no 'text'; did you mean 'input'"):
        parse_blueprint(blueprint)
