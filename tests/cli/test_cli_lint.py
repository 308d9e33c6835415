"""`aros lint` and `aros rule`, as used by people, editors and CI."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import jsonschema_rs
import pytest

from flujo_aros.lint.rules import RULES

from .conftest import Aros

BLUEPRINT = """\
# a comment
agents:
  typed:
    model: openai:gpt-4o-mini
    output_schema: {type: object, required: [a], additionalProperties: false, properties: {a: {type: string}}}
  plain: {model: "openai:gpt-4o-mini"}
steps:
  - name: first  # here
    uses: agents.typed
  - name: second
    uses: my_package.io:load
    updates_context: true
"""
CLEAN = 'agents:\n  plain: {model: "openai:gpt-4o-mini"}\nsteps:\n  - {name: only, uses: agents.plain}\n'

_URI = {
    "type": "object",
    "required": ["uri"],
    "properties": {"uri": {"type": "string", "pattern": "^(?!/)[^\\s\\\\]+$"}},
}
_REGION = {
    "type": "object",
    "required": ["startLine", "startColumn", "endLine", "endColumn"],
    "additionalProperties": False,
    "patternProperties": {"^(start|end)(Line|Column)$": {"type": "integer", "minimum": 1}},
}
_TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
_RESULT = {
    "type": "object",
    "required": ["ruleId", "ruleIndex", "level", "message", "locations"],
    "properties": {
        "level": {"enum": ["none", "note", "warning", "error"]},
        "message": _TEXT,
        "locations": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["physicalLocation"],
                "properties": {
                    "physicalLocation": {
                        "type": "object",
                        "required": ["artifactLocation", "region"],
                        "properties": {"artifactLocation": _URI, "region": _REGION},
                    }
                },
            },
        },
        "fixes": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["artifactChanges"],
                "properties": {
                    "description": _TEXT,
                    "artifactChanges": {
                        "type": "array",
                        "minItems": 1,
                        "items": {
                            "type": "object",
                            "required": ["artifactLocation", "replacements"],
                            "properties": {
                                "artifactLocation": _URI,
                                "replacements": {
                                    "type": "array",
                                    "minItems": 1,
                                    "items": {
                                        "type": "object",
                                        "required": ["deletedRegion"],
                                        "properties": {"deletedRegion": _REGION},
                                    },
                                },
                            },
                        },
                    },
                },
            },
        },
    },
}
SARIF = {
    "type": "object",
    "required": ["$schema", "version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "properties": {
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "results": {"type": "array", "items": _RESULT},
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name", "rules"],
                                "properties": {
                                    "rules": {
                                        "type": "array",
                                        "items": {
                                            "type": "object",
                                            "required": ["id", "shortDescription", "fullDescription", "help"],
                                            "properties": {
                                                "shortDescription": _TEXT,
                                                "fullDescription": _TEXT,
                                                "help": _TEXT,
                                            },
                                        },
                                    }
                                },
                            }
                        },
                    },
                },
            },
        },
    },
}


@pytest.fixture
def blueprint(tmp_path: Path) -> Path:
    """A blueprint with one safe and one unsafe fix."""
    file = tmp_path / "b.yaml"
    file.write_text(BLUEPRINT, encoding="utf-8")
    return file


def test_findings_are_on_stdout_and_their_number_is_not(aros: Aros, blueprint: Path) -> None:
    """Exit code 1, the place in the source and its fix on stdout, the summary on stderr."""
    result = aros("lint", "b.yaml")
    assert result.exit_code == 1
    assert "b.yaml:9:11: info[V-A8] step 'first' has a schema (of its agent)" in result.stdout
    assert "   |           ^^^^^^^^^^^^\n  = fix (--fix): Write `structured_output: auto`" in result.stdout
    assert result.stderr.startswith("Found 1 warning, 1 info in 1 file. 1 can be fixed with --fix. 1 more with")
    assert blueprint.read_text(encoding="utf-8") == BLUEPRINT


def test_a_clean_blueprint_has_no_output(aros: Aros, tmp_path: Path) -> None:
    """The exit code is 0."""
    (tmp_path / "b.yaml").write_text(CLEAN)
    result = aros("lint", ".")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "No findings in 1 file.\n")


def test_fix_writes_the_safe_fixes_only(aros: Aros, blueprint: Path) -> None:
    """The other findings are reported, and exactly two lines change."""
    result = aros("lint", "b.yaml", "--fix")
    assert result.exit_code == 1
    assert "V-C1" in result.stdout
    assert "V-A8" not in result.stdout
    written = "    uses: agents.typed\n    processing:\n      structured_output: auto\n"
    assert blueprint.read_text(encoding="utf-8") == BLUEPRINT.replace("    uses: agents.typed\n", written)
    assert result.stderr.startswith(
        "Fixed b.yaml (+2 -0 lines):\n"
        "  line 9: V-A8 Write `structured_output: auto`\n"
        "1 fix made. Found 1 warning in 1 file."
    )


@pytest.mark.parametrize("option", ["--diff", "--fix-dry-run"])
def test_a_dry_run_of_the_fixes_prints_them_and_writes_nothing(aros: Aros, blueprint: Path, option: str) -> None:
    """The patch is on stdout, the reason for each fix on stderr."""
    result = aros("lint", "b.yaml", option)
    assert (result.exit_code, blueprint.read_text(encoding="utf-8")) == (1, BLUEPRINT)
    assert "+      structured_output: auto\n" in result.stdout
    assert result.stderr.startswith("Would fix b.yaml (+2 -0 lines):\n  line 9: V-A8 Write")


def test_unsafe_fixes_fix_the_rest(aros: Aros, blueprint: Path) -> None:
    """Afterwards nothing is left, and a second run changes nothing."""
    assert aros("lint", "b.yaml", "--unsafe-fixes").exit_code == 0
    once = blueprint.read_bytes()
    assert aros("lint", "b.yaml", "--unsafe-fixes").stderr == "No findings in 1 file.\n"
    assert blueprint.read_bytes() == once


@pytest.mark.parametrize("option", [("--format", "json"), ("--strict",), ("--fail-on", "error")])
def test_an_option_without_effect_on_a_patch_is_an_error(aros: Aros, blueprint: Path, option: tuple[str, ...]) -> None:
    ended = aros("lint", "b.yaml", "--diff", *option)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert ended.stderr == f"error: {option[0]} has no effect with --diff, which prints a patch\n"


def test_diff_is_a_patch_equal_to_the_fixes(aros: Aros, blueprint: Path) -> None:
    """`--diff` writes nothing, and handles a file without a final line end."""
    if shutil.which("patch") is None:
        pytest.skip("no `patch` is installed here: apt-get install patch")
    before = BLUEPRINT.rstrip("\n").encode()
    blueprint.write_bytes(before)
    result = aros("lint", "b.yaml", "--unsafe-fixes", "--diff")
    assert (result.exit_code, blueprint.read_bytes()) == (1, before)
    patch = result.stdout.encode()
    subprocess.run(["patch", "-p0"], cwd=blueprint.parent, input=patch, check=True, capture_output=True)
    patched = blueprint.read_bytes()
    blueprint.write_bytes(before)
    aros("lint", "b.yaml", "--unsafe-fixes")
    assert blueprint.read_bytes() == patched
    assert aros("lint", "b.yaml", "--unsafe-fixes", "--diff").exit_code == 0


def test_json_has_the_documented_shape(aros: Aros, blueprint: Path) -> None:
    """One document with the documented keys."""
    printed = json.loads(aros("lint", "b.yaml", "--format", "json").stdout)
    first = printed["findings"][0]
    assert list(first) == [
        *("code", "severity", "message", "path", "line", "column", "end_line", "end_column", "step", "fix"),
    ]
    assert (first["code"], first["path"], first["line"], first["column"], first["end_column"]) == (
        "V-A8",
        "b.yaml",
        9,
        11,
        23,
    )
    assert first["fix"] == {"title": "Write `structured_output: auto`", "applicability": "safe"}
    assert printed["summary"]["warnings"] == printed["summary"]["infos"] == printed["summary"]["fixable"] == 1


def test_sarif_is_accepted_by_code_scanning(aros: Aros, blueprint: Path) -> None:
    """Version 2.1.0, with relative locations and a description of every rule."""
    printed = json.loads(aros("lint", "b.yaml", "--format", "sarif").stdout)
    jsonschema_rs.validator_for(SARIF).validate(printed)
    run = printed["runs"][0]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert set(rules) == {rule.code for rule in RULES}
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in run["results"])
    location = run["results"][0]["locations"][0]["physicalLocation"]
    assert location["artifactLocation"] == {"uri": "b.yaml", "uriBaseId": "SRCROOT"}
    assert location["region"] == {"startLine": 9, "startColumn": 11, "endLine": 9, "endColumn": 23}


def test_github_annotations_are_one_line_each(aros: Aros, blueprint: Path) -> None:
    """Workflow commands with escaped text."""
    lines = aros("lint", "b.yaml", "--format", "github").stdout.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(
        "::notice file=b.yaml,line=9,endLine=9,col=11,endColumn=23,title=V-A8 (first)::step 'first' has"
    )
    assert lines[1].startswith("::warning file=b.yaml,line=12,")


def test_an_unloadable_blueprint_is_a_finding(aros: Aros, tmp_path: Path) -> None:
    """The exit code is 1, not 4, in every format."""
    (tmp_path / "b.yaml").write_text("steps:\n  - nope: [\n")
    assert aros("lint", "b.yaml").exit_code == 1
    printed = json.loads(aros("lint", "b.yaml", "--format", "json").stdout)
    assert [each["code"] for each in printed["findings"]] == ["YAML-PARSE"]
    sarif = json.loads(aros("lint", "b.yaml", "--format", "sarif").stdout)
    jsonschema_rs.validator_for(SARIF).validate(sarif)


OTHER_TOOLS = {
    "cloudbuild.yaml": "steps:\n  - id: build\n    args: [b]\n    timeout: 300s\n",
    "buildkite.yml": "agents: {queue: default}\nsteps:\n  - label: test\n    command: make\n",
    "docker-compose.yaml": "services:\n  web: {image: nginx}\n",
    "ci.yaml": "jobs:\n  test:\n    steps:\n      - uses: actions/checkout@v4\n",
    "action.yml": "steps:\n  - uses: actions/checkout@v4\n",
    "mkdocs.yml": "site_name: x\n",
    "deployment.yaml": "kind: Deployment\nmetadata: {name: {{ .Values.name }}\n",
    "configmap.yaml": "data:\n  b.yaml: |\n    steps: [{name: a, uses: agents.b}]\n",
}


def test_files_of_other_tools_in_a_folder_are_neither_checked_nor_fixed(aros: Aros, blueprint: Path) -> None:
    for name, text in OTHER_TOOLS.items():
        blueprint.with_name(name).write_text(text)
    result = aros("lint", ".", "--fix")
    assert {line.partition(":")[0] for line in result.stdout.splitlines() if "V-" in line} == {"b.yaml"}
    assert all(blueprint.with_name(name).read_text() == text for name, text in OTHER_TOOLS.items())
    assert f"not blueprints, and not checked: {', '.join(sorted(OTHER_TOOLS))}" in result.stderr
    blueprint.unlink()
    nothing = aros("lint", ".")
    assert (nothing.exit_code, "no blueprint in '.'" in nothing.stderr) == (2, True)


@pytest.mark.parametrize(
    "text",
    [
        "agents: {a: {modle: x}}",
        "agent: {}\nsteps: [{name: a, use: agents.b}]",
        "steps: [{name: a, kind: loop}]",
        "steps:\n  - two: {uses: 'shop:price'}",
        "# yaml-language-server: $schema=../blueprint.schema.json\nstep: []",
        "steps:\n  - name: [",
    ],
)
def test_a_blueprint_in_a_folder_is_recognized_despite_its_errors(aros: Aros, tmp_path: Path, text: str) -> None:
    (tmp_path / "b.yaml").write_text(text)
    assert aros("lint", ".").exit_code == 1


def test_a_file_of_another_tool_that_is_named_is_checked_but_not_fixed(aros: Aros, tmp_path: Path) -> None:
    for name, text in OTHER_TOOLS.items():
        (tmp_path / name).write_text(text)
        assert aros("lint", name, "--fix").exit_code == 1
        assert (tmp_path / name).read_text() == text


def test_the_severity_that_counts_can_be_chosen(aros: Aros, blueprint: Path) -> None:
    """`--select`, `--ignore` and `--fail-on`."""
    assert aros("lint", "b.yaml", "--ignore", "V-A8,V-C").exit_code == 0
    assert aros("lint", "b.yaml", "--select", "V-A8", "--fail-on", "warning").exit_code == 0
    assert aros("lint", "b.yaml", "--fail-on", "warning").exit_code == 1


def test_infos_alone_are_not_a_failure_unless_strict(aros: Aros, blueprint: Path) -> None:
    assert [aros("lint", "b.yaml", "--select", "V-A8", *more).exit_code for more in ([], ["--strict"])] == [0, 1]


def test_a_baseline_is_written_and_read(aros: Aros, blueprint: Path) -> None:
    """Known findings are no longer reported."""
    assert aros("lint", "b.yaml", "--baseline", "known.json", "--update-baseline").exit_code == 0
    assert aros("lint", "b.yaml", "--baseline", "known.json").exit_code == 0
    assert aros("lint", "b.yaml").exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nope.yaml"], "the blueprint 'nope.yaml' does not exist; available: b.yaml"),
        (["b.yaml", "--select", "V-8A"], "unknown rule 'V-8A'; did you mean 'V-A9'?"),
        (["b.yaml", "--baseline", "none.json"], "there is no baseline 'none.json'; --update-baseline writes one"),
        (["b.yaml", "--update-baseline"], "--update-baseline needs --baseline FILE"),
    ],
)
def test_wrong_usage_is_one_sentence(aros: Aros, blueprint: Path, arguments: list[str], said: str) -> None:
    """The exit code is 2."""
    result = aros("lint", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in re.sub(r"\s+", " ", result.stderr)


def test_rule_explains_a_single_rule(aros: Aros) -> None:
    """Prints its documentation, whatever the case of the code."""
    result = aros("rule", "v-a8")
    assert result.exit_code == 0
    assert result.stdout.startswith("# V-A8: A step has a schema")
    assert "## Fix safety" in result.stdout


def test_rule_lists_all(aros: Aros) -> None:
    """As a table or as JSON."""
    shown = aros("rule").stdout
    assert all(rule.code in shown for rule in RULES)
    assert {each["code"] for each in json.loads(aros("rule", "--json").stdout)} == {rule.code for rule in RULES}


def test_rule_that_is_not_known(aros: Aros) -> None:
    """The error suggests a known rule."""
    result = aros("rule", "V-A7")
    assert result.exit_code == 2
    assert "unknown rule 'V-A7'; did you mean" in result.stderr
