"""`${NAME}` and `${NAME:-default}`: expanded in settings, never in text that is sent to a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flujo_aros import AgentSpec, BlueprintError, Journal, Map, Pipeline, Runner, Step, load_blueprint
from flujo_aros.blueprint.dump import dump
from flujo_aros.blueprint.load import parse_blueprint
from flujo_aros.lint import lint_text
from flujo_aros.testing import ScriptedModel, ScriptedModels

AGENT = """\
agents:
  sorter: {%s}
steps:
  - {name: sort, uses: agents.sorter}
"""


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"SET": "local:y", "SECONDS": "12", "EMPTY": "", "TEAM": "team-blue-4711"}.items():
        monkeypatch.setenv(f"AROS_TEST_{name}", value)


def sorter(pipeline: Pipeline) -> Step:
    step = pipeline.steps[0]
    assert isinstance(step, Step)
    return step


@pytest.mark.parametrize(
    ("written", "model"),
    [
        ("${AROS_TEST_SET}", "local:y"),
        ("${AROS_TEST_SET:-local:x}", "local:y"),
        ("${AROS_TEST_NONE:-local:x}", "local:x"),
        ("${AROS_TEST_EMPTY:-local:x}", "local:x"),
        ("openai:${AROS_TEST_NONE:-gpt}-${AROS_TEST_NONE:-4o}", "openai:gpt-4o"),
        ("local:$${x}", "local:${x}"),
    ],
)
def test_a_model_is_read_from_the_environment(written: str, model: str) -> None:
    assert sorter(parse_blueprint(AGENT % f'model: "{written}"')).agent.model == model  # type: ignore[union-attr]
    step = f'agents: {{a: {{model: "local:z"}}}}\nsteps: [{{name: s, uses: agents.a, model: "{written}"}}]\n'
    assert sorter(parse_blueprint(step)).model == model


def test_settings_have_the_types_that_yaml_would_give_them() -> None:
    text = AGENT % (
        'model: "local:x", timeout: "${AROS_TEST_SECONDS}", max_retries: "${AROS_TEST_NONE:-2}", '
        'model_settings: {temperature: "${AROS_TEST_NONE:-0.5}", '
        'stop_sequences: ["${AROS_TEST_NONE:-x}", "n${AROS_TEST_SECONDS}"]}'
    )
    pipeline = parse_blueprint(text)
    agent = sorter(pipeline).agent
    assert pipeline.warnings == ()
    assert (agent.timeout, agent.max_retries) == (12, 2)  # type: ignore[union-attr]
    assert agent.model_settings == {"temperature": 0.5, "stop_sequences": ["x", "n12"]}  # type: ignore[union-attr]


def test_files_are_named_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AROS_TEST_STAGE", "live")
    (tmp_path / "live.json").write_text('{"type": "integer"}')
    (tmp_path / "live.yaml").write_text('agents: {a: {model: "local:z"}}\nsteps: [{name: s, uses: agents.a}]\n')
    text = AGENT % 'model: "local:x", output_schema: {from_file: "${AROS_TEST_STAGE}.json"}'
    text = f'imports: {{other: "${{AROS_TEST_STAGE}}.yaml"}}\n{text}  - {{name: other, uses: imports.other}}\n'
    (tmp_path / "b.yaml").write_text(text)
    assert "integer" in dump(load_blueprint(tmp_path / "b.yaml"))


def test_text_for_the_model_is_not_changed() -> None:
    """A blueprint cannot copy the environment into a prompt."""
    text = """\
agents:
  sorter:
    model: "local:x"
    system_prompt: "Explain ${AROS_TEST_TEAM} and ${PATH}."
    output_schema: {type: object, properties: {model: {type: string, default: "${AROS_TEST_TEAM}"}}}
steps:
  - name: sort
    uses: agents.sorter
    input: {model: "${AROS_TEST_TEAM}"}
    checks: ["output.model != '${AROS_TEST_TEAM}'"]
  - {name: wrap, uses: flujo.builtins.wrap_dict, params: {key: "${AROS_TEST_TEAM}"}}
"""
    pipeline = parse_blueprint(text)
    assert "team-blue" not in repr(pipeline)
    assert [each.split(":")[1] for each in pipeline.warnings] == ["9", "11"]
    assert all("'${AROS_TEST_TEAM}' is used literally" in each for each in pipeline.warnings)


def test_steps_before_and_after_the_others_read_the_environment_in_their_settings_only() -> None:
    text = """\
steps:
  - kind: map
    name: each
    map:
      iterable_input: items
      init: [{name: i, agent: {model: "${AROS_TEST_SET}"}}, {set: context.x, value: {model: "${AROS_TEST_TEAM}"}}]
      body: [{name: b, agent: {model: "local:x"}}]
      finalize: {name: f, agent: {model: "local:x", timeout: "${AROS_TEST_SECONDS}"}, input: "${AROS_TEST_TEAM}"}
"""
    pipeline = parse_blueprint(text)
    step = pipeline.steps[0]
    assert isinstance(step, Map)
    first, last = [part.steps[0] for part in (step.init, step.finalize) if isinstance(part, Pipeline)]
    assert isinstance(first, Step)
    assert isinstance(last, Step)
    assert first.agent.model == "local:y"  # type: ignore[union-attr]
    assert last.agent.timeout == 12  # type: ignore[union-attr]
    assert "team-blue" not in repr(pipeline)
    assert len(pipeline.warnings) == 2
    assert parse_blueprint(dump(pipeline)) == pipeline
    assert "local:y" not in dump(pipeline)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (
            "${AROS_TEST_NONE}",
            "2:19: '${AROS_TEST_NONE}' cannot run here: the environment variable AROS_TEST_NONE is not",
        ),
        ("${AROS_TEST_NONE}", "give a default: ${AROS_TEST_NONE:-VALUE}"),
        ("${AROS_TEST_EMPTY}", "AROS_TEST_EMPTY is empty"),
        ("${}", "'${}' is not the name of an environment variable; write ${NAME} or ${NAME:-default}"),
        ("${A-B}", "'${A-B}' is not the name of an environment variable"),
        ("${A", "'${A' is not the name of an environment variable"),
    ],
)
def test_a_broken_reference_is_one_error_with_its_place_and_a_fix(written: str, said: str) -> None:
    with pytest.raises(BlueprintError) as caught:
        parse_blueprint(AGENT % f'model: "{written}"')
    assert said in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_the_linter_warns_about_unset_variables() -> None:
    (finding,) = lint_text(AGENT % 'model: "${AROS_TEST_NONE}"').findings
    assert (finding.severity.value, finding.place.line) == ("warning", 2)  # type: ignore[attr-defined]
    assert "AROS_TEST_NONE is not set" in finding.message
    assert lint_text(AGENT % 'model: "${AROS_TEST_NONE:-local:smollm2}"').findings == ()


def test_an_unset_variable_in_place_of_a_number_is_one_warning_and_no_error_about_its_type() -> None:
    found = lint_text(AGENT % 'model: local:x, timeout: "${AROS_TEST_NONE}"').findings
    (finding,) = (each for each in found if each.code == "V-B1")
    assert (finding.severity.value, "AROS_TEST_NONE is not set" in finding.message) == ("warning", True)
    with pytest.raises(BlueprintError) as caught:
        parse_blueprint(AGENT % 'model: local:x, timeout: "${AROS_TEST_NONE}"')
    assert "should be a number" not in str(caught.value)


def test_no_value_of_the_environment_is_written_down(tmp_path: Path) -> None:
    text = AGENT % 'model: "${AROS_TEST_SET}", model_settings: {extra_headers: {x-team: "${AROS_TEST_TEAM}"}}'
    pipeline = parse_blueprint(text)
    written = dump(pipeline)
    assert "team-blue" not in written
    assert parse_blueprint(written) == pipeline
    with Journal(tmp_path / "runs.sqlite") as journal:
        models = ScriptedModels({"local:y": ScriptedModel("I belong to team-blue-4711.")})
        run = Runner(pipeline, models=models, journal=journal).run_sync("who?")
    assert run.output == "I belong to team-blue-4711."
    assert b"team-blue" not in (tmp_path / "runs.sqlite").read_bytes()


PROFILES = (
    """\
profiles: {test: "local:t", mixed: {sorter: "${AROS_TEST_PROFILE}"}, other: "${AROS_TEST_OTHER}"}
"""
    + AGENT % 'model: "${AROS_TEST_NONE}"'
)


@pytest.mark.parametrize(
    "chosen",
    [
        {"models": "local:t"},
        {"models": {"sorter": "local:t"}},
        {"profile": "test"},
        {"profile": "other", "models": {"sorter": "local:t"}},
    ],
)
def test_the_variable_of_a_model_that_is_replaced_need_not_be_set(chosen: dict[str, Any]) -> None:
    agent = sorter(parse_blueprint(PROFILES, **chosen)).agent
    assert isinstance(agent, AgentSpec)
    assert agent.model == "local:t"


@pytest.mark.parametrize(
    ("chosen", "variable", "line"),
    [
        ({}, "AROS_TEST_NONE", 3),
        ({"profile": "mixed"}, "AROS_TEST_PROFILE", 1),
        ({"profile": "other"}, "AROS_TEST_OTHER", 1),
    ],
)
def test_only_the_variables_of_the_models_in_use_must_be_set(chosen: dict[str, Any], variable: str, line: int) -> None:
    with pytest.raises(BlueprintError) as caught:
        parse_blueprint(PROFILES, **chosen)
    (finding,) = caught.value.findings
    assert finding.place is not None
    assert (finding.place.line, variable in finding.message) == (line, True)


@pytest.mark.parametrize(
    "written", ["{steps: [{name: a, uses: agents.b}], agents: {b: {model: '${AROS_TEST_NONE}'}}}", "in.yaml"]
)
def test_the_variable_of_a_model_of_an_import_that_is_replaced_need_not_be_set(tmp_path: Path, written: str) -> None:
    inner = "agents: {b: {model: '${AROS_TEST_NONE}'}}\nsteps: [{name: a, uses: agents.b}]\n"
    (tmp_path / "in.yaml").write_text(inner, encoding="utf-8")
    outer = f"imports: {{part: {written}}}\nsteps: [{{name: s, uses: imports.part}}]\n"
    (tmp_path / "out.yaml").write_text(outer, encoding="utf-8")
    assert load_blueprint(tmp_path / "out.yaml", models="local:t").steps
    with pytest.raises(BlueprintError, match="AROS_TEST_NONE is not set"):
        load_blueprint(tmp_path / "out.yaml")
