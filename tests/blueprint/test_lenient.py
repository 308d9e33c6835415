"""Loading as flujo does: the intended meaning is accepted, and an unsupported step does not affect the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from flujo_aros import BlueprintError, Pipeline, Runner, load_blueprint
from flujo_aros.blueprint.load import parse_blueprint

HEAD = "agents: {a: {model: 'openai:m'}}\nsteps:\n"
ECHO = "agent: {id: flujo.builtins.echo}"


def strict(text: str) -> Pipeline:
    return parse_blueprint(HEAD + text, source="t.yaml")


def lenient(text: str) -> Pipeline:
    return parse_blueprint(HEAD + text, source="t.yaml", allow=["*"], lenient=True)


@pytest.mark.parametrize(
    ("option", "warning"),
    [
        ("config: {max_retries: '2'}", "config.max_retries is a number; write 2 without quotes"),
        ("config: {timeout_s: '1.5'}", "config.timeout_s is a number; write 1.5 without quotes"),
        ("updates_context: yes", "updates_context is true or false; write true without quotes"),
        ("updates_context: 'False'", "updates_context is true or false; write false without quotes"),
        ("retries: 2.0", "retries is a number; write 2 without quotes"),
        ("usage_limits: {max_cost: '0.5'}", "usage_limits.max_cost is a number; write 0.5 without quotes"),
    ],
)
def test_numbers_and_truth_in_quotes_are_taken_with_a_warning(option: str, warning: str):
    warnings = strict(f"  - {{name: s, uses: agents.a, {option}}}").warnings
    assert len(warnings) == 1
    assert warnings[0].endswith(warning)


@pytest.mark.parametrize("option", ["config: {max_retries: soon}", "updates_context: maybe", "retries: 2.5"])
def test_a_value_that_is_not_a_number_remains_an_error(option: str):
    with pytest.raises(BlueprintError):
        strict(f"  - {{name: s, uses: agents.a, {option}}}")


@pytest.mark.parametrize(
    "text",
    [
        "imports:\nagents:\nsteps: [{name: s, uses: flujo.builtins.echo}]",
        "agents: {a: {model: m, model_settings: , max_retries: }}\nsteps: [{name: s, uses: agents.a, meta: }]",
        "steps: [{name: s, uses: flujo.builtins.echo, updates_context: , params: }]",
    ],
)
def test_a_key_without_a_value_is_ignored(text: str):
    assert parse_blueprint(text).warnings == ()


def test_a_key_that_must_be_there_is_missing_without_a_value():
    with pytest.raises(BlueprintError, match="name should be a string"):
        strict("  - {name: , uses: agents.a}")


WRONG = [
    ("{name: s, uses: flujo.builtins.nope}", "unknown built-in 'flujo.builtins.nope'"),
    ("{name: s, agent: plain_name}", "not 'plain_name'"),
    ("{name: s, uses: flujo.builtins.stringify, params: {x: 1}}", "no parameter 'x'"),
    ("{name: s, uses: agents.a, input: '{{ steps.gone.output }}'}", "there is no step 'gone'"),
    ("{name: s, uses: agents.a, output_schema: {type: text}}", "invalid JSON Schema"),
    ("{kind: conditional, name: s, branches: {x: [{name: b}]}}", "either `condition_expression` or `condition`"),
    ("{kind: parallel, name: s, branches: {x: [{name: b}]}, merge_strategy: last_wins}", "merge_strategy must be"),
    ("{kind: loop, name: s, loop: {body: [{name: b}], exit_condition: 'm:f', exit_expression: 'true'}}", "not both"),
]


@pytest.mark.parametrize(("step", "words"), WRONG)
def test_lenient_loads_an_invalid_step_but_rejects_its_run_before_anything_starts(step: str, words: str):
    with pytest.raises(BlueprintError):
        parse_blueprint(f"{HEAD}  - {step}", allow=["*"])
    pipeline = lenient(f"  - {{name: one, {ECHO}}}\n  - {step}")
    assert any("t.yaml:4:" in line and "step 's' cannot run" in line for line in pipeline.warnings)
    with pytest.raises(BlueprintError, match=r"t\.yaml:4:") as caught:
        Runner(pipeline).run_sync("x")
    assert words in str(caught.value)


def test_an_error_in_a_nested_step_names_that_step():
    text = "  - {kind: map, name: m, map: {iterable_input: items, body: [{name: in, uses: flujo.builtins.nope}]}}"
    pipeline = lenient(text)
    refused = [line for line in pipeline.warnings if "cannot run" in line]
    assert len(refused) == 1
    assert refused[0].startswith("t.yaml:3:79: step 'in' cannot run: unknown built-in")
    with pytest.raises(BlueprintError, match="step 'in' cannot run"):
        Runner(pipeline).run_sync("x", context={"items": []})


def test_an_agent_that_cannot_be_run_hinders_its_own_steps_only(tmp_path: Path):
    (tmp_path / "p.md").write_text("Be {{ tone }}.")
    text = (
        "agents:\n  a: {model: m, system_prompt: {from_file: p.md, variables: {tone: '{{ context.tone }}'}}}\n"
        "  b: {model: m, output_schema: {type: dict}}\n  c: {model: m, max_retries: abc}\n"
        "steps: [{name: x, uses: agents.a}, {name: y, uses: agents.b}, {name: z, uses: agents.c}]"
    )
    file = tmp_path / "b.yaml"
    file.write_text(text)
    with pytest.raises(BlueprintError, match="a variable of a prompt is a plain value"):
        load_blueprint(file)
    warnings = load_blueprint(file, lenient=True).warnings
    assert sorted(line.partition("step ")[2][:14] for line in warnings if "cannot run" in line) == [
        "'x' cannot run",
        "'y' cannot run",
    ]
    assert any("max_retries should be an integer, not 'abc'; it is ignored" in line for line in warnings)


@pytest.mark.parametrize("written", ["local:m", "[]", "true"])
def test_an_agent_that_is_not_a_mapping_is_an_error_at_its_place(written: str):
    with pytest.raises(BlueprintError) as caught:
        parse_blueprint(f"agents:\n  a: {written}\nsteps: [{{name: s, uses: agents.a}}]", lenient=True)
    (problem,) = caught.value.findings
    assert problem.path == "agents.a"
    assert problem.message.startswith("this should be a mapping")


def test_a_duplicate_name_loads_under_another_name_but_does_not_run():
    pipeline = lenient(f"  - {{name: s, {ECHO}}}\n  - {{name: s, {ECHO}}}")
    assert [step.name for step in pipeline.steps] == ["s", "s (2)"]
    with pytest.raises(BlueprintError, match="name 's' is already used by step 1"):
        Runner(pipeline).run_sync("x")


def test_a_unique_misspelt_name_is_corrected():
    pipeline = lenient(f"  - {{name: 'yes/no', {ECHO}}}\n  - {{kind: hitl, name: ask}}")
    assert [step.name for step in pipeline.steps] == ["yes no", "ask"]
    assert "has no question; write a `message`" in pipeline.warnings[1]


def test_a_forbidden_import_remains_an_error():
    with pytest.raises(BlueprintError, match="not allowed"):
        parse_blueprint(f"{HEAD}  - {{name: s, uses: 'os:system'}}", lenient=True)


def test_kinds_that_are_not_run_remain_errors_with_their_line():
    with pytest.raises(BlueprintError, match="3:12: `kind: tree_search` is not supported"):
        lenient("  - {kind: tree_search, name: s}")


def test_a_list_may_be_begun_and_continued_before_a_body_runs():
    text = (
        "  - kind: loop\n    name: l\n    loop:\n      max_loops: 2\n"
        "      init:\n        - append: {target: context.log, value: '{{ input }}'}\n"
        "        - append: {target: context.log, value: {n: 1}}\n"
        f"      body: [{{name: b, {ECHO}}}]\n"
        "      state: {append: {target: context.log, value: turn}}\n      output: '{{ context.log }}'\n"
    )
    assert Runner(strict(text)).run_sync("go", context={"log": ["old"]}).output == [
        "old",
        "go",
        {"n": 1},
        "turn",
        "turn",
    ]
    assert Runner(strict(text)).run_sync("go").output == ["go", {"n": 1}, "turn", "turn"]


def test_flujos_terms_for_loop_outputs_keep_their_meaning_or_are_rejected():
    loop = f"  - {{kind: loop, name: l, loop: {{max_loops: 1, body: [{{name: b, {ECHO}}}], output: %s}}}}"
    said = Runner(strict(loop % "{fields: {goal: initial_prompt}}"))
    assert said.run_sync("x", context={"initial_prompt": "win"}).output == {"goal": "win"}
    pipeline = strict(loop % "{text: conversation_history}")
    with pytest.raises(BlueprintError, match="conversations are not kept"):
        Runner(pipeline).run_sync("x")


@pytest.mark.parametrize("init", ["[]", "{}", "{history: {start_with: {from_step: x}}}"])
def test_init_without_anything_to_do_does_nothing(init: str):
    loop = f"  - {{kind: loop, name: l, loop: {{max_loops: 1, init: {init}, body: [{{name: b, {ECHO}}}]}}}}"
    assert Runner(strict(loop)).run_sync("x").output == "x"
