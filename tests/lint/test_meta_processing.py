"""`processing` under `meta`, as flujo allows: rules check it, and fixes apply to it in place."""

from __future__ import annotations

from flujo_aros.blueprint.load import parse_blueprint
from flujo_aros.lint import Applicability, Options, lint_text

TEXT = """\
agents: {a: {model: "openai:gpt-4o", output_schema: {type: object}}}
steps:
  - name: one
    uses: agents.a
    meta:
      processing:  # of the team
        aop: minimal
      owner: me
"""


def test_a_fix_is_added_to_the_existing_block() -> None:
    fixed = lint_text(TEXT, options=Options(fix=Applicability.UNSAFE, select=("V-A8",)))
    assert fixed.text == TEXT.replace("aop: minimal\n", "aop: minimal\n        structured_output: auto\n")
    before, after = parse_blueprint(TEXT).steps[0], parse_blueprint(fixed.text).steps[0]
    assert before.processing.aop == after.processing.aop == "minimal"  # type: ignore[attr-defined] # an agent step
    assert lint_text(fixed.text, options=Options(fix=Applicability.UNSAFE, select=("V-A8",))).text == fixed.text


def test_enforcement_turned_off_under_meta_is_reported() -> None:
    (found,) = lint_text(TEXT.replace("aop: minimal", "enforcement: off"), options=Options(select=("V-A8",))).findings
    assert (found.place.line, found.severity.value) == (7, "warning")


def test_meta_processing_is_ignored_with_a_warning_if_the_step_has_its_own() -> None:
    (warning,) = parse_blueprint(TEXT + "    processing: {aop: full}\n").warnings
    assert warning == "blueprint:6:7: 'meta.processing' is ignored: the step itself has `processing`"


def test_a_judged_plan_there_is_passed_over_too() -> None:
    text = TEXT.replace("aop: minimal", "reasoning_precheck: {enabled: true, validator_agent: agents.a}")
    (warning,) = parse_blueprint(text).warnings
    assert "'validator_agent' is ignored" in warning
