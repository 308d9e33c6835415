"""How the linter handles comments, baselines, selections, imports and files that are not blueprints."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from flujo_aros import UsageError
from flujo_aros.lint import Applicability, Finding, Options, Report, Severity, check, lint_files, lint_text
from flujo_aros.lint.check import read_baseline, write_baseline
from flujo_aros.lint.edits import fix_text, unified_diff
from flujo_aros.lint.formats import summary_line, write_text
from flujo_aros.lint.rule import Rule, Subject

HEAD = """\
agents:
  typed:
    model: openai:gpt-4o-mini
    output_schema: {type: object, required: [a], additionalProperties: false, properties: {a: {type: string}}}
  plain: {model: "openai:gpt-4o-mini"}
steps:
"""
STEP = "  - name: a\n    uses: agents.typed\n"


def codes(text: str, **options) -> list[str]:
    return [finding.code for finding in lint_text(text, options=Options(**options)).findings]


@pytest.mark.parametrize(
    "step",
    [
        "  - name: a  # aros: ignore[V-A8]\n    uses: agents.typed\n",
        "  - name: a\n    uses: agents.typed  # aros: ignore[V-A8]\n",
        "  - name: a\n    # aros: ignore[V-C1, V-A8]: later\n    uses: agents.typed\n",
        "  # aros: ignore\n  - name: a\n    uses: agents.typed\n",
        "  - name: a  # flujo: ignore V-A8\n    uses: agents.typed\n",
        "  - name: a  # why not, aros: ignore[V-A]\n    uses: agents.typed\n",
        "  - name: a\n    uses: agents.typed\n# aros: ignore-file[V-A8]\n",
    ],
)
def test_a_comment_suppresses_a_finding(step: str) -> None:
    """On the line, above it, on the step, or for the whole file."""
    linted = lint_text(HEAD + step)
    assert ([each.code for each in linted.findings], linted.suppressed) == ([], 1)


@pytest.mark.parametrize(
    "step",
    [
        "  - name: a  # aros: ignore[V-C1]\n    uses: agents.typed\n",
        "  - name: a\n    uses: agents.typed\n  # aros: ignore[V-A8]\n  - name: b\n    uses: agents.plain\n",
        '  - name: a\n    uses: agents.typed\n    input: "# aros: ignore-file[V-A8]"\n',
        "  - name: a\n    uses: agents.typed\n    input: |\n      # aros: ignore-file\n",
    ],
)
def test_other_comments_and_texts_that_look_like_one_do_not(step: str) -> None:
    """Another code, another step, or a string in the blueprint."""
    assert "V-A8" in codes(HEAD + step)


def test_a_finding_that_is_ignored_is_not_fixed() -> None:
    """`--fix` does not change what a comment ignores."""
    text = HEAD + "  - name: a  # aros: ignore[V-A8]\n    uses: agents.typed\n"
    assert lint_text(text, options=Options(fix=Applicability.SAFE)).text == text


def test_select_and_ignore_take_codes_and_their_beginnings() -> None:
    """The longer pattern wins."""
    text = HEAD + STEP.replace("typed", "nobody") + STEP.replace("name: a", "name: b")
    assert codes(text) == ["V-A6", "V-A8"]
    assert codes(text, select=("V-A8",)) == ["V-A8"]
    assert codes(text, select=("v-a",)) == ["V-A6", "V-A8"]
    assert codes(text, ignore=("V-A",)) == []
    assert codes(text, select=("V-A",), ignore=("V-A6",)) == ["V-A8"]
    assert codes(text, select=("V-A6",), ignore=("V-A",)) == ["V-A6"]


def test_an_unknown_rule_code_is_an_error() -> None:
    """A typo must not disable the linter."""
    with pytest.raises(UsageError, match=r"unknown rule 'V-8A'; did you mean"):
        Options(select=("V-8A",))


def test_a_baseline_hides_known_findings_even_if_they_have_moved(tmp_path: Path) -> None:
    """New findings are reported, and so is another finding of a known kind."""
    file, baseline = tmp_path / "b.yaml", tmp_path / "baseline.json"
    file.write_text(HEAD + STEP)
    write_baseline(baseline, ((each.path, finding) for each, finding in lint_files([file]).findings))
    options = Options(baseline=read_baseline(baseline))
    file.write_text("# moved\n" + HEAD + STEP)
    report = lint_files([file], options)
    assert report.clean
    assert summary_line(report) == "No findings in 1 file (1 in the baseline)."
    file.write_text(HEAD + STEP + STEP.replace("name: a", "name: b"))
    assert [finding.step for _, finding in lint_files([file], options).findings] == ["b"]


@pytest.mark.parametrize("text", ["[]", "{", '{"findings": [{}]}', '{"findings": [1]}'])
def test_a_file_that_is_not_a_baseline_is_an_error(text: str, tmp_path: Path) -> None:
    """The error says what to do."""
    (tmp_path / "b.json").write_text(text)
    with pytest.raises(UsageError, match=r"is not a baseline: .*; --update-baseline writes a new one"):
        read_baseline(tmp_path / "b.json")


def test_imported_blueprints_are_linted_and_fixed_once(tmp_path: Path) -> None:
    """A blueprint that two others import is reported once, under its own name."""
    (tmp_path / "child.yaml").write_text(HEAD + STEP)
    parent = "imports: {c: ./child.yaml}\nsteps:\n  - {name: run, uses: imports.c}\n"
    for name in ("one", "two"):
        (tmp_path / f"{name}.yaml").write_text(parent)
    paths = [tmp_path / "one.yaml", tmp_path / "two.yaml"]
    report = lint_files(paths)
    assert [(Path(file.path).name, finding.code) for file, finding in report.findings] == [("child.yaml", "V-A8")]
    assert lint_files(paths, Options(imports=False)).clean
    fixed = lint_files(paths, Options(fix=Applicability.SAFE))
    assert [Path(each.path).name for each in fixed.files if each.text != each.before] == ["child.yaml"]


def test_a_file_that_is_not_utf_8_is_a_finding(tmp_path: Path) -> None:
    """The file is not changed."""
    (tmp_path / "b.yaml").write_bytes(b"name: \xff\n")
    (_, finding), *_ = lint_files([tmp_path / "b.yaml"]).findings
    assert (finding.code, finding.place.line, finding.place.column) == ("YAML-PARSE", 1, 7)
    assert finding.message == "not in UTF-8: the byte 0xff looks like Windows-1252; save the file as UTF-8"


def test_a_rule_that_crashes_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error propagates, and names the rule and the file."""

    class Broken(Rule, code="V-Z9", severity=Severity.ERROR):
        """A rule that raises an error."""

        def check(self, subject: Subject) -> Iterator[Finding]:
            raise ZeroDivisionError(subject.source)

    monkeypatch.setattr(check, "RULES", (Broken,))
    with pytest.raises(ZeroDivisionError) as caught:
        lint_text(HEAD + STEP, source="b.yaml")
    assert caught.value.__notes__ == ["Rule V-Z9 failed on b.yaml. That is a bug in the rule, not in your file."]


def test_fixes_that_do_not_end_are_shown() -> None:
    """A rule whose fix triggers itself again does not hang."""

    def find(text: str) -> list[Finding]:
        from flujo_aros.errors import Place
        from flujo_aros.lint.edits import Edit, Fix

        return [Finding("V-Z9", Severity.INFO, "again", Place(1, 1), Place(1, 2), fix=Fix("more", (Edit(0, 0, "x"),)))]

    with pytest.raises(RuntimeError, match="the fixes of V-Z9 do not converge"):
        fix_text("", find, Applicability.SAFE)


def test_edits_that_touch_wait_for_the_next_pass() -> None:
    """Two steps that are fixed at the same place are fixed one after the other."""
    text = (
        HEAD
        + "  - name: a\n    uses: agents.plain\n    updates_context: true\n    processing: {enforcement: validate}\n"
    )
    both = text + STEP.replace("name: a", "name: b")
    after = lint_text(both, options=Options(fix=Applicability.UNSAFE))
    assert lint_text(after.text).findings == ()


@pytest.mark.parametrize(
    ("before", "after"), [("a\nb\n", "a\nc\n"), ("a\r\nb", "a\r\nc\r\nb"), ("a", "b"), ("", "x\n")]
)
def test_a_patch_turns_one_text_into_the_other(before: str, after: str, tmp_path: Path) -> None:
    """Even without a final line end and with carriage returns."""
    import shutil
    import subprocess

    if shutil.which("git") is None:
        pytest.skip("no `git` is installed here: apt-get install git")
    (tmp_path / "f").write_bytes(before.encode())
    patch = unified_diff("f", before, after)
    done = subprocess.run(
        ["git", "apply", "-p0", "-"], cwd=tmp_path, input=patch.encode(), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    assert (tmp_path / "f").read_bytes() == after.encode()


def test_the_text_shows_the_line_and_a_caret_and_masks_secrets() -> None:
    """Wide characters and tabs do not move the caret, and a secret is not printed."""
    text = 'agents:\n  漢字: {system_prompt: "sk-abcdefghij0123456789", model: "x:y"}\n'
    text += "steps:\n  - {name: a, uses: agents.漢字}\n"
    linted = lint_text(text, source="b.yaml")
    shown = write_text(Report((linted,)))
    assert "sk-abc" not in shown
    line, carets = shown.splitlines()[2:4]
    assert line == ' 2 |   漢字: {system_prompt: "***********************", model: "x:y"}'
    assert carets == "   | " + " " * 24 + "^" * 25


def test_an_alias_is_not_edited() -> None:
    """Values that other places share are left to a person or to `--unsafe-fixes`."""
    shared = "  - name: a\n    uses: agents.typed\n    processing: &p {structured_output: 'off'}\n"
    text = HEAD + shared + "  - name: b\n    uses: agents.typed\n    processing: *p\n"
    linted = lint_text(text, options=Options(fix=Applicability.UNSAFE, select=("V-A8",)))
    assert linted.text.count("auto") == 1
    assert linted.findings == ()


def test_merged_keys_are_distinguished_from_own_keys() -> None:
    """A step whose keys are merged with `<<` gets a key of its own."""
    text = HEAD.replace("steps:", "x: &d {uses: agents.typed}\nsteps:").replace("x: &d", "config: &d")
    text += "  - <<: *d\n    name: a\n"
    after = lint_text(text, options=Options(fix=Applicability.SAFE, select=("V-A8",))).text
    assert after == text + "    processing:\n      structured_output: auto\n"


def test_an_error_in_an_agent_is_not_followed_by_others_about_its_steps() -> None:
    text = HEAD.replace("output_schema:", "output_shema:") + STEP + "    updates_context: true\n"
    assert [finding.code for finding in lint_text(text).findings] == ["V-B1"]


def test_a_name_is_only_safe_to_write_if_the_step_then_loads() -> None:
    """`if` has one counterpart here, but the step lacks the branches that `conditional` needs."""
    _missing, found = lint_text("steps:\n  - name: a\n    kind: if\n    condition_expression: input == 'x'\n").findings
    assert found.fix is not None
    assert found.fix.applicability is Applicability.UNSAFE


@pytest.mark.parametrize("step", ["{id: push}", "{id: push, args: [a], uses: agents.typed}"])
def test_a_name_is_not_safe_to_write_in_a_step_that_stays_incomplete(step: str) -> None:
    found = next(each for each in lint_text(f"{HEAD}  - {step}\n").findings if "'id'" in each.message)
    assert found.fix is not None
    assert found.fix.applicability is Applicability.UNSAFE


def test_names_that_hide_one_another_are_all_safe_to_write() -> None:
    """The misspelt key of the loop is only found once the misspelt kind is corrected."""
    loop = "{body: [{name: b, uses: agent.w}], max_loop: 2}"
    text = f"agents: {{w: {{model: test}}}}\nsteps: [{{name: a, kind: lop, loop: {loop}}}]"
    fixed = lint_text(text, options=Options(fix=Applicability.SAFE, select=("V-B1", "V-A6")))
    assert (fixed.findings, "kind: loop" in fixed.text, "max_loops: 2" in fixed.text) == ((), True, True)


def test_one_recommendation_for_several_steps_is_shown_once() -> None:
    steps = "".join(STEP.replace("name: a", f"name: {name}") for name in "abc")
    linted = lint_text(HEAD + steps, options=Options(select=("V-A8",)))
    shown = write_text(Report((linted,)))
    assert (shown.count("info[V-A8]"), len(linted.findings)) == (1, 3)
    assert "  = also: step 'b' (line 10), step 'c' (line 12)\n" in shown


@pytest.mark.parametrize("condition", ["not " * 5_000 + "a", "-" * 50_000 + "1"])
def test_a_condition_of_another_tool_that_python_cannot_parse_is_only_a_finding(condition: str) -> None:
    text = f'steps:\n  - name: a\n    if: "{condition}"\n    then:\n      - name: b\n    else:\n      - name: c\n'
    assert lint_text(text).findings


def test_an_agent_whose_value_has_no_keys_is_reported_to_lack_a_schema() -> None:
    [finding] = lint_text(
        "agents: {a: {model: 'openai:gpt-4o-mini'}}\n"
        "steps: [{name: one, uses: agents.a}, {name: two, uses: agents.a, input: '{{ previous_step.kind }}'}]\n"
    ).findings
    assert finding.code == "V-T5"
    assert finding.message.endswith("give the agent that writes it an `output_schema`")


def test_a_limit_that_is_too_low_is_reported_where_the_agent_sets_it() -> None:
    text = (
        "agents:\n  a:\n    model: openai:gpt-4o\n    model_settings: {max_tokens: 9}\n"
        "    output_schema: {type: object, required: [n], properties: {n: {type: string, minLength: 400}}}\n"
        "steps: [{name: s, uses: agents.a}]\n"
    )
    (found,) = lint_text(text, options=Options(select=("V-O2",))).findings
    assert found.place.path == "agents.a.model_settings.max_tokens"
    assert found.fix is not None


@pytest.mark.parametrize(
    ("other", "message"), [("object", "is always a mapping"), ("string", "is not known to be a mapping")]
)
def test_a_union_is_a_mapping_if_every_branch_is_one(other: str, message: str) -> None:
    text = (
        f"agents: {{a: {{model: openai:gpt-4o, output_schema: {{anyOf: [{{type: object}}, {{type: {other}}}]}}}}}}\n"
        "steps: [{name: s, uses: agents.a, updates_context: true}]\n"
    )
    (found,) = lint_text(text, options=Options(select=("V-C1",))).findings
    assert message in found.message


@pytest.mark.parametrize(
    "text",
    [
        f"{HEAD}  - {{name: a, uses: agents.plain, timeout: &t 5m}}\n",
        HEAD + "  - name: a\n    kind: loop\n    loop:\n      body: [{name: b, uses: agents.plain}]\n"
        '      max_loops: 2\n      exit_expression: |-\n        ${{ previous_step == "xxxx" }}\n',
    ],
    ids=["anchor", "block"],
)
def test_a_value_in_an_anchor_or_a_block_scalar_is_not_replaced_by_yaml(text: str) -> None:
    """Written into such a scalar, the value would be a constant string."""
    fixed = lint_text(text, options=Options(fix=Applicability.UNSAFE, ignore=("V-A8", "V-L")))
    assert (fixed.text, [each.severity for each in fixed.findings]) == (text, [Severity.ERROR])


def test_the_kind_of_a_step_with_a_body_is_added_and_an_agent_that_is_a_model_becomes_a_mapping() -> None:
    step = "  - name: a\n    loop:\n      max_loops: 2\n      body: [{name: b, uses: agents.m}]\n"
    text = f"agents:\n  m: openai:gpt-4o\nsteps:\n{step}"
    written = text.replace("m: openai:gpt-4o", 'm: {model: "openai:gpt-4o"}').replace("a\n", "a\n    kind: loop\n")
    assert lint_text(text, options=Options(fix=Applicability.SAFE, select=("V-B1",))).text == written


@pytest.mark.parametrize(("name", "meant"), [("yes", "true"), ("Off", "false")])
def test_a_branch_named_by_another_word_for_true_or_false_shows_the_name_to_write(name: str, meant: str) -> None:
    branch = f"branches: {{{name}: [{{name: b, uses: agents.plain}}]}}"
    text = f"{HEAD}  - {{name: a, kind: conditional, condition_expression: len(input) > 3, {branch}}}\n"
    (_, found) = lint_text(text, options=Options(select=("V-CF2",))).findings
    assert found.message.endswith(f"yields only 'true', 'false'; write {meant!r}")


@pytest.mark.parametrize(
    "step",
    [
        "    until: previous_step == 'x'\n    output: summary\n    do: [{name: b, uses: agents.plain}]\n",
        "    kind: loop\n    output: summary\n    loop:\n      body: [{name: b, uses: agents.plain}]\n",
    ],
    ids=["until", "loop"],
)
def test_the_output_of_another_tool_does_not_become_the_value_of_a_loop(step: str) -> None:
    """Elsewhere it names the value; under `loop:` it would be the value."""
    text = f"{HEAD}  - name: a\n{step}"
    fixed = lint_text(text, options=Options(fix=Applicability.UNSAFE, select=("V-B1",)))
    assert (fixed.text, "V-B1" in {each.code for each in fixed.findings}) == (text, True)


@pytest.mark.parametrize(
    ("schema", "unsafe"),
    [
        ('{type: integer, enum: "1, 2, 3"}', None),
        ('{enum: "New York, NY"}', '{enum: ["New York", "NY"]}'),
        ('{enum: "yes or no"}', '{enum: ["yes or no"]}'),
    ],
)
def test_a_string_is_not_split_into_the_values_of_an_enum_without_review(schema: str, unsafe: str | None) -> None:
    """It may be one value, and its parts are strings."""
    text = HEAD.replace("{a: {type: string}}", f"{{a: {schema}}}") + STEP
    safe, reviewed = (
        lint_text(text, options=Options(fix=each, select=("V-B1",))).text for each in [*Applicability][:0:-1]
    )
    assert (safe, reviewed) == (text, text.replace(schema, unsafe or schema))


@pytest.mark.parametrize(
    ("written", "fixed"),
    [
        ("[string, null]", '[string, "null"]'),
        ("[str, None]", '[string, "null"]'),
        ("str | null", '[string, "null"]'),
        ("integer?", '[integer, "null"]'),
        ("none", '"null"'),
        ("[string, nul]", '[string, "null"]'),
        ("[string, 3]", "[string, 3]"),
    ],
)
def test_types_are_corrected_with_null_in_quotes(written: str, fixed: str) -> None:
    """Without quotes, null is no string in YAML."""
    text = HEAD.replace("{a: {type: string}}", f"{{a: {{type: {written}}}}}") + STEP
    found = lint_text(text, options=Options(fix=Applicability.SAFE, select=("V-B1",)))
    assert found.text == text.replace(f"{{type: {written}}}", f"{{type: {fixed}}}")


def test_the_fields_of_an_imported_agent_are_known(tmp_path: Path) -> None:
    module = tmp_path / "clerks_of_lint.py"
    module.write_text(
        "from pydantic import BaseModel, Field\nfrom pydantic_ai import Agent\n"
        "class Ticket(BaseModel):\n    title: str = Field(alias='Title')\n"
        "clerk = Agent(output_type=Ticket)\nwriter = Agent()\n"
    )
    reads = ["steps.a.output.titel", "steps.a.output.title", "steps.b.output.title"]
    steps = ["{name: a, uses: 'clerks_of_lint:clerk'}", "{name: b, uses: 'clerks_of_lint:writer'}"]
    steps += [f"{{name: r{n}, uses: flujo.builtins.echo, input: '{{{{ {read} }}}}'}}" for n, read in enumerate(reads)]
    (tmp_path / "b.yaml").write_text(f"steps: [{', '.join(steps)}]\n")
    (linted,) = lint_files([tmp_path / "b.yaml"], Options(select=("V-T5",), allow=(str(module),))).files
    assert [each.message.partition("that value ")[2] for each in linted.findings] == [
        "has no key 'titel'; did you mean 'title'?",
        "is a string and has no keys",
    ]


@pytest.mark.parametrize("body", ["import sys\nsys.exit(0)\n", "1/0\n", "def (\n"], ids=["exit", "raises", "syntax"])
def test_a_module_that_fails_when_imported_is_a_finding_like_any_other(body: str, tmp_path: Path) -> None:
    """The findings of the other files are reported too."""
    module = tmp_path / f"module_{abs(hash(body))}.py"
    module.write_text(body)
    (tmp_path / "bad.yaml").write_text("steps: []\n")
    (tmp_path / "failing.yaml").write_text(f"steps: [{{name: a, uses: '{module.stem}:run'}}]\n")
    options = Options(select=("V-B1", "V-A6"), allow=(str(module),))
    bad, failing = lint_files([tmp_path / "bad.yaml", tmp_path / "failing.yaml"], options).files
    assert (len(bad.findings), len(failing.findings)) == (1, 1)
    assert f"{module.stem} cannot be imported: it raised " in failing.findings[0].message


def test_the_params_of_an_imported_function_are_checked_at_each_step(tmp_path: Path) -> None:
    module = tmp_path / "functions_of_lint.py"
    module.write_text("def cut(value, limit): ...\ndef any(value, **more): ...\ndef nothing(): ...\nleast = min\n")
    steps = [
        "cut'",
        "cut', params: {limit: 1}",
        "cut', params: {limt: 1}",
        "any', params: {limt: 1}",
        "nothing'",
        "least'",
    ]
    rows = [f"  - {{name: s{n}, uses: 'functions_of_lint:{each}}}\n" for n, each in enumerate([*steps, steps[2]])]
    (tmp_path / "b.yaml").write_text("steps:\n" + "".join(rows))
    (linted,) = lint_files([tmp_path / "b.yaml"], Options(select=("V-B1",), allow=(str(module),))).files
    refused, unknown = "cannot be called with the input and `params`:", "has no parameter 'limt' after its first;"
    assert [each.message for each in linted.findings] == [
        f"step 's0': 'functions_of_lint:cut' {refused} missing a required argument: 'limit'",
        f"step 's2': 'functions_of_lint:cut' {unknown} did you mean 'limit'?",
        f"step 's4': 'functions_of_lint:nothing' {refused} too many positional arguments",
        f"step 's6': 'functions_of_lint:cut' {unknown} did you mean 'limit'?",
    ]
    key = rows[2].index("limt") + 1
    assert [(each.place.line, each.place.column) for each in linted.findings] == [(2, 5), (4, key), (6, 5), (8, key)]


def test_a_step_that_cannot_run_is_reported_once_with_its_module_imported(tmp_path: Path) -> None:
    module = tmp_path / "other_functions_of_lint.py"
    module.write_text("def run(value): ...\n")
    step = "{name: a, uses: 'other_functions_of_lint:run', input: '{{ input | uper }}'}"
    found = lint_text(f"steps: [{step}]", options=Options(allow=(str(module),))).findings
    assert [each.code for each in found] == ["V-T3"]


@pytest.mark.parametrize(("value", "found"), [(None, []), ("openai:gpt-4o", []), ("gpt4o", ["V-A9"])])
def test_a_model_in_a_variable_is_checked_if_the_variable_is_set(
    value: str | None, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AROS_TEST_MODEL", raising=False)
    if value is not None:
        monkeypatch.setenv("AROS_TEST_MODEL", value)
    text = 'agents: {a: {model: "${AROS_TEST_MODEL}"}}\nsteps: [{name: s, uses: agents.a}]\n'
    assert codes(text, select=("V-A9",)) == found


@pytest.mark.parametrize(
    ("more", "title"), [("", "Write `input`"), (", other_key: 3", "Write `input`, which is safe once")]
)
def test_a_fix_that_is_unsafe_only_because_of_other_errors_says_so(more: str, title: str) -> None:
    found = lint_text(f"{HEAD}  - {{name: a, uses: agents.plain, imput: hi{more}}}\n").findings
    (fix,) = [each.fix for each in found if each.fix is not None and each.code == "V-B1"]
    assert fix.title.startswith(title)
    assert (fix.title == title, fix.applicability is Applicability.SAFE) == (not more, not more)
