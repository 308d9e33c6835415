"""Blueprints that are too much of something: refused early, in words that stay short, and never by a crash."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flujo_aros.blueprint.document import MAX_NODES
from flujo_aros.blueprint.load import parse_blueprint
from flujo_aros.errors import BlueprintError
from flujo_aros.lint import lint_text
from flujo_aros.pipeline.runner import Runner


@pytest.mark.parametrize(
    "text",
    [
        "steps:\n" + "  - {name: s}\n" * MAX_NODES,
        "steps: [" + "[]," * MAX_NODES + "]",
        "x: &x [" + "1," * MAX_NODES + "]\nsteps: [" + "*x," * MAX_NODES + "]",
    ],
)
def test_a_flood_of_values_is_refused_where_it_becomes_too_much(text: str) -> None:
    with pytest.raises(BlueprintError, match=f"a blueprint holds at most {MAX_NODES} values, and here is one more"):
        parse_blueprint(text)


def test_a_hundred_mistakes_are_told_as_fifty_and_a_number() -> None:
    text = "steps:\n" + "".join(f"  - {{name: s{n}, ussse: x}}\n" for n in range(100))
    with pytest.raises(BlueprintError) as caught:
        parse_blueprint(text)
    assert len(caught.value.findings) == 100
    lines = str(caught.value).splitlines()
    assert len(lines) == 51
    assert lines[-1] == "blueprint: and 50 more mistakes"
    assert len(lint_text(text).findings) >= 100


def test_many_steps_of_one_name_are_each_told_in_linear_time() -> None:
    text = "steps:\n" + "  - {name: s, uses: flujo.builtins.echo}\n" * 1000
    with pytest.raises(BlueprintError) as caught:
        parse_blueprint(text)
    assert len(caught.value.findings) == 999


@pytest.mark.parametrize("key", ["prompt", "import"])
def test_a_name_that_no_file_can_have_is_a_mistake(key: str, tmp_path: Path) -> None:
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
