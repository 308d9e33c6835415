"""Errors of a blueprint are data: a code, a place, a message, and a suggested name."""

from __future__ import annotations

from pathlib import Path

import pytest

from flujo_aros import BlueprintError
from flujo_aros.blueprint.load import inspect_blueprint, parse_blueprint
from flujo_aros.errors import Code, Suggestion
from flujo_aros.lint.rules import RULES
from flujo_aros.lint.rules.loader import LoaderRule

AGENT = "agents: {reader: {model: local:smollm2}}\nsteps:\n"


@pytest.mark.parametrize(
    ("step", "code", "path", "suggestion"),
    [
        ("{name: s, uses: agents.raeder}", Code.UNKNOWN_AGENT, "steps[0].uses", Suggestion("raeder", "reader")),
        (
            "{name: s, uses: agents.reader, inptu: x}",
            Code.INVALID,
            "steps[0].inptu",
            Suggestion("inptu", "input", sure=True),
        ),
        ("{name: s, uses: agents.reader, input: '{{ x'}", Code.INVALID_TEMPLATE, "steps[0].input", None),
        (
            "{name: s, uses: agents.reader, input: '{{ inptu }}'}",
            Code.INVALID_TEMPLATE,
            "steps[0].input",
            Suggestion("inptu", "input", sure=True),
        ),
        (
            "{name: s, uses: agents.reader, input: {x: ['{{ steps.t.output }}']}}",
            Code.UNKNOWN_STEP,
            "steps[0].input.x[0]",
            None,
        ),
        ("{name: s, uses: agents.reader, sink_to: 'a b'}", Code.INVALID, "steps[0].sink_to", None),
    ],
)
def test_a_problem_has_a_kind_a_place_and_a_suggestion(
    step: str, code: Code, path: str, suggestion: Suggestion | None
) -> None:
    (problem,) = inspect_blueprint(f"{AGENT}  - {step}").findings
    assert (problem.code, problem.path, problem.suggestion) == (code, path, suggestion)


@pytest.mark.parametrize("key", ["agent", "agnt", "agetns"])
def test_errors_that_disappear_with_a_misspelt_key_are_not_reported(key: str) -> None:
    (problem,) = inspect_blueprint(
        f"{AGENT}  - {{name: s, uses: agents.reader}}".replace("agents:", f"{key}:")
    ).findings
    assert problem.message == f"unknown key {key!r}; did you mean 'agents'?"


def test_a_list_of_agents_is_one_error() -> None:
    text = "agents: [{name: reader, model: test}]\nsteps:\n  - {name: s, uses: agents.reader}\n"
    (problem,) = inspect_blueprint(text).findings
    assert problem.message == "agents should be a mapping, not a list; write `NAME: {model: …}` for each agent"


def test_the_manifest_of_an_agent_is_one_error() -> None:
    manifest = "{name: owl, role: critic, persona: An owl., subscribes_to: [a.b], may_emit: [a.c]}"
    message = "this is the manifest of an agent; name the file in the `cast` of a step of `kind: ensemble`"
    assert [each.message for each in inspect_blueprint(manifest).findings] == [message]


@pytest.mark.parametrize("key", ["agent", "agents"])
def test_a_single_agent_without_a_name_is_one_error(key: str) -> None:
    text = f"{key}: {{model: test, system_prompt: Sort.}}\nsteps:\n  - {{name: s, uses: agents.reader}}\n"
    (problem,) = inspect_blueprint(text).findings
    assert (problem.path, problem.message) == (
        key,
        "this is one agent without a name; write `agents: {NAME: {model: …}}`, and `uses: agents.NAME`",
    )


@pytest.mark.parametrize("key", ["agent", "agents"])
def test_other_errors_are_reported_with_a_single_agent_without_a_name(key: str) -> None:
    text = f"{key}: {{model: test, promt: Sort.}}\nsteps:\n  - {{name: s, uses: agents.reader, inptu: x}}\n"
    assert [each.path for each in inspect_blueprint(text).findings] == [key, f"{key}.promt", "steps[0].inptu"]


def test_every_invalid_option_of_a_step_is_reported_with_its_place() -> None:
    stages = "[foo, retry, {stage: retry, attemps: 2}, {retry: {attempts: 1}}]"
    processing = f"{{stages: {stages}, max_calls: -1, max_stages: many, risk: high}}"
    found = inspect_blueprint(
        f"{AGENT}  - {{name: s, uses: agents.reader, contract: tagedd, processing: {processing}}}"
    ).findings
    assert {(each.path.removeprefix("steps[0]."), each.message.partition(",")[0]) for each in found} == {
        ("contract", "a contract is json"),
        ("processing.stages[0]", "unknown stage 'foo'; known: constrain"),
        ("processing.stages[2].attemps", "stages.2.retry.attemps: unknown option; did you mean 'attempts'?"),
        ("processing.stages[3]", "stages.3: a stage is a name"),
        ("processing.max_calls", "processing: max_calls should be greater than or equal to 0"),
        ("processing.max_stages", "processing.max_stages should be an integer"),
        ("processing.risk", "processing.risk should be 'lossless'"),
    }


def test_a_filter_that_is_not_there_is_known_by_its_code() -> None:
    (problem,) = inspect_blueprint(
        f"{AGENT}  - {{name: s, uses: agents.reader, input: '{{{{ input | uper }}}}'}}"
    ).warnings
    assert (problem.code, problem.suggestion) == (Code.UNKNOWN_FILTER, Suggestion("uper", "upper", sure=True))


def test_an_error_has_the_end_of_the_key_or_value_that_it_is_about() -> None:
    with pytest.raises(BlueprintError) as caught:
        parse_blueprint(f"{AGENT}  - {{name: s, uses: agents.raeder}}")
    (problem,) = caught.value.findings
    assert problem.place is not None
    assert problem.end is not None
    assert problem.end.column - problem.place.column == len("agents.raeder")


def test_each_kind_of_problem_has_one_rule_of_the_linter() -> None:
    assert sorted(rule.about for rule in RULES if issubclass(rule, LoaderRule)) == sorted(Code)


def test_a_problem_of_an_imported_blueprint_is_data_with_its_file_and_its_place_there(tmp_path: Path) -> None:
    main = "imports: {kid: ./kid.yaml}\nsteps: [{name: s, uses: imports.kid}]\n"
    kid = "imports: {baby: ./baby.yaml}\nsteps: [{name: s, uses: imports.baby}]\n"
    (tmp_path / "kid.yaml").write_text(kid, encoding="utf-8")
    (tmp_path / "baby.yaml").write_text("steps: [{name: s, uses: agents.nobody}]\n", encoding="utf-8")
    (problem,) = inspect_blueprint(main, folder=tmp_path, source=str(tmp_path / "main.yaml")).findings
    assert (problem.code, problem.path) == (Code.INVALID_IMPORT, "imports.kid")
    assert Path(problem.file or "") == tmp_path / "kid.yaml"
    middle = problem.cause
    assert middle is not None
    assert (middle.path, Path(middle.file or "")) == ("imports.baby", tmp_path / "baby.yaml")
    inmost = middle.cause
    assert inmost is not None
    assert inmost.place is not None
    assert (inmost.code, inmost.path, inmost.place.line, inmost.place.column) == (
        Code.UNKNOWN_AGENT,
        "steps[0].uses",
        1,
        25,
    )
    assert inmost.cause is None


def test_errors_inside_a_step_that_has_errors_itself_are_reported_with_them() -> None:
    text = "steps:\n  - kind: cache\n    name: c\n    gap: 1\n    wrapped_step: {name: s, uses: agents.nobody}\n"
    with pytest.raises(BlueprintError) as caught:
        parse_blueprint(text)
    assert [each.path for each in caught.value.findings] == ["steps[0].gap", "steps[0].wrapped_step.uses"]


@pytest.mark.parametrize(
    ("wrong", "behind"),
    [
        ("{kind: stp, name: s, uses: agents.redaer}", "unknown agent 'redaer'"),
        (
            "{kind: loop, name: s, loop: {max_loop: 3, exit_expression: a =, body: [{name: b, uses: agents.reader}]}}",
            "write ==",
        ),
        (
            "{kind: loop, name: s, loop: {max_loops: x, exit_expression: a =, body: [{name: b, uses: agents.reader}]}}",
            "write ==",
        ),
        ("{name: s, uses: agents.reader, config: {max_retries: many}, on_degraded: fial}", "'fial'"),
        ("{name: s, uses: agents.reader, output_schema: {type: objekt, requird: [a]}}", "'requird'"),
        ("{name: s, uses: agents.reader, output_schema: {type: object, minimum: x, properties: {a: {type: 7}}}}", "7"),
    ],
)
def test_an_error_is_reported_together_with_the_one_that_hides_it(wrong: str, behind: str) -> None:
    found = inspect_blueprint(f"{AGENT}  - {wrong}\n").findings
    assert len(found) == 2
    assert any(behind in each.message for each in found)


def test_errors_of_an_agent_are_reported_together() -> None:
    text = "agents: {a: {model: gpt-4o-mini, output_mode: nativ, tools: [x]}}\nsteps: [{name: s, uses: agents.a}]"
    assert [each.path for each in inspect_blueprint(text).findings] == [
        "agents.a.model",
        "agents.a.output_mode",
        "agents.a.tools[0]",
    ]


def test_a_misspelt_name_does_not_cause_follow_up_errors() -> None:
    found = inspect_blueprint(f"{AGENT}  - {{nmae: s, uses: agents.reader}}\n").findings
    assert [each.message for each in found] == ["unknown key 'nmae'; did you mean 'name'?"]


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (
            "{kind: loop, name: s, loop: {max_loops: 2, exit_expression: 'true', steps: [{name: b, uses: 'm:f'}]}}",
            "write `body`",
        ),
        ("{name: s, while: 'true', uses: agents.reader}", "under `loop:`, which ends the loop when true"),
        ("{kind: loop, name: s, loop: {until: 'true', body: [{name: b, uses: agents.reader}]}}", "`exit_expression`"),
        ("{kind: map, name: s, map: {over: input, body: [{name: b, uses: agents.reader}]}}", "`iterable_input`"),
        ("{name: s, uses: 'steps.py:fn'}", "write steps:fn, and allow its file: --allow steps.py"),
    ],
)
def test_other_names_and_forms_only_give_advice(step: str, said: str) -> None:
    (found,) = inspect_blueprint(f"{AGENT}  - {step}\n", allow=["m"]).findings
    assert said in found.message
