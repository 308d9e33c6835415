"""System prompts may contain text that looks like a template."""

from __future__ import annotations

from pathlib import Path

import pytest

from flujo_aros.blueprint.load import parse_blueprint


def warnings(prompt: str, folder: Path | None = None) -> tuple[str, ...]:
    text = f"agents:\n  a:\n    model: local:x\n    system_prompt: {prompt}\nsteps:\n  - {{name: s, uses: agents.a}}\n"
    return parse_blueprint(text, folder=folder).warnings


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("Help {{ context.customer }}.", "{{ context.customer }}"),
        ("{{#if context.vip}}Be kind.{{/if}}", "{{#if"),
        ("{% if input %}x{% endif %}", "{% i"),
        ("Say {{ previous_step }}", "{{ previous_step }}"),
    ],
)
def test_a_prompt_that_looks_like_a_template_is_warned_of(written: str, shown: str) -> None:
    (warning,) = warnings(f"'{written}'")
    assert warning.startswith("blueprint:4:20: `system_prompt` is not a template: the model sees ")
    assert shown in warning
    assert warning.endswith("put values that change into the `input` of the step")


@pytest.mark.parametrize("written", ['Answer {"a": {"b": 1}}', "Use {{ and }} freely", "{{name}} is what they write"])
def test_other_braces_in_a_prompt_are_its_own(written: str) -> None:
    assert warnings(f"'{written}'") == ()


def test_a_variable_of_a_prompt_file_that_is_never_set_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "p.md").write_text("Be {{ tone }} about {{ topic }} for {{ context.who }}.")
    reported = warnings("{from_file: p.md, variables: {tone: kind}}", tmp_path)
    literal, missing = (each.partition(": ")[2] for each in reported)
    assert "not a template: the model sees '{{ context.who }}' literally" in literal
    assert missing == (
        "the prompt 'p.md' has '{{ topic }}', and `variables` has no 'topic': the model sees it literally"
    )
