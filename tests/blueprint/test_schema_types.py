"""`output_schema: {from: package.module:Type}` takes the schema from a Python type."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from flujo_aros import BlueprintError, Pipeline, Runner, UsageError
from flujo_aros.blueprint.blocks import blueprint_schema
from flujo_aros.blueprint.dump import dump
from flujo_aros.blueprint.load import parse_blueprint
from flujo_aros.lint import Options, lint_text
from flujo_aros.testing import ScriptedModel

TYPES = """
from pydantic import BaseModel, Field

class Invoice(BaseModel):
    total: float = Field(gt=0)
    lines: list[str] = []

SCHEMA = {"type": "object", "required": ["total"], "properties": {"total": {"type": "number"}}}
number = 7
"""
REPLY = '{"total": 12.5, "lines": ["pens",]}'
AGENT = """
agents: {a: {model: 'openai:gpt-4o', output_schema: {from: 'shop_types:NAME'}}}
steps: [{name: read, uses: agents.a}]
"""
STEP = """
agents: {a: {model: 'openai:gpt-4o'}}
steps: [{name: read, uses: agents.a, output_schema: {from: 'shop_types:NAME'}}]
"""
PROCESSING = (
    "agents: {a: {model: 'openai:gpt-4o'}}\n"
    "steps: [{name: read, uses: agents.a, processing: {schema: {from: 'shop_types:NAME'}}}]"
)
TYPO_AND_CHECK = """
agents: {a: {model: 'openai:gpt-4o', output_schema: {from: 'shop_types:Invioce'}}, b: {model: 'openai:gpt-4o'}}
steps: [{name: read, uses: agents.a},
  {name: other, uses: agents.b, input: x, checks: ['shop_types:nmber']}]
"""


@pytest.fixture(autouse=True)
def _types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop_types.py").write_text(TYPES)
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("shop_types", None)


def loaded(text: str, name: str = "Invoice", allow: tuple[str, ...] = ("shop_types",)) -> Pipeline:
    return parse_blueprint(text.replace("NAME", name), allow=allow)


@pytest.mark.parametrize("text", [AGENT, STEP, PROCESSING], ids=["agent", "step", "processing"])
def test_the_value_of_the_step_has_the_type(text: str) -> None:
    model = ScriptedModel(REPLY)
    run = Runner(loaded(text), models=model).run_sync("x")
    assert type(run.output).__name__ == "Invoice"
    assert (run.output.total, run.output.lines) == (12.5, ["pens"])
    assert model.calls == 1


def test_a_value_that_breaks_a_rule_of_the_type_is_requested_again() -> None:
    model = ScriptedModel('{"total": -1}', then=REPLY)
    assert Runner(loaded(AGENT), models=model).run_sync("x").output.total == 12.5
    assert model.calls > 1


def test_a_name_may_be_a_json_schema() -> None:
    assert Runner(loaded(AGENT, "SCHEMA"), models=ScriptedModel(REPLY)).run_sync("x").output["total"] == 12.5


def test_loading_imports_nothing() -> None:
    loaded(AGENT)
    assert "shop_types" not in sys.modules


def test_a_module_that_is_not_allowed_is_an_error_with_its_place() -> None:
    with pytest.raises(BlueprintError, match=r"blueprint:2:\d+: the schema .* would import shop_types, .* --allow"):
        loaded(AGENT, allow=())


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("Invioce", r"step 'read': shop_types has no 'Invioce'; did you mean 'Invoice'"),
        ("number", r"step 'read': shop_types:number is not a type"),
    ],
)
def test_a_type_that_is_not_there_stops_the_run_before_any_call(name: str, error: str) -> None:
    model = ScriptedModel(then=REPLY)
    with pytest.raises(UsageError, match=error):
        Runner(loaded(AGENT, name), models=model).run_sync("x")
    assert model.calls == 0


def test_a_module_that_is_not_there_stops_the_run() -> None:
    text = AGENT.replace("shop_types", "no_such_shop")
    with pytest.raises(UsageError, match="no_such_shop cannot be imported"):
        Runner(loaded(text, allow=("no_such_shop",)), models=ScriptedModel(then=REPLY)).run_sync("x")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (AGENT.replace("shop_types:NAME", "Invoice"), "{from: package.module:Type}"),
        (AGENT.replace("'shop_types:NAME'", "'shop_types:NAME', title: x"), "must be the only key"),
        (AGENT.replace("'shop_types:NAME'", "'shop_types:NAME', type: object"), "must be the only key"),
        ("steps: [{name: f, uses: 'shop_types:f', output_schema: {from: 'shop_types:Invoice'}}]", "of an agent"),
        ("steps: [{kind: hitl, name: h, message: m, input_schema: {from: 'shop_types:Invoice'}}]", "of an agent"),
        (
            """steps:
  - name: e
    uses: flujo.builtins.extract_from_text
    params: {schema: {from: 'os:system'}, model: 'openai:gpt-4o'}""",
            "of an agent",
        ),
    ],
)
def test_an_invalid_or_misplaced_reference_is_an_error(text: str, error: str) -> None:
    with pytest.raises(BlueprintError, match=error):
        loaded(text)


def test_dump_and_editor_and_linter_know_it() -> None:
    pipeline = loaded(STEP)
    assert parse_blueprint(dump(pipeline), allow=["*"]) == pipeline
    assert "{from: package.module:Type}" in json.dumps(blueprint_schema())
    found = lint_text(AGENT.replace("NAME", "Invoice")).findings
    assert not [each for each in found if each.severity == "error"]


def test_a_paused_run_is_restored_with_its_type() -> None:
    ask = ", {kind: hitl, name: ok, message: 'Pay {{ previous_step.total }}?'}]"
    text = AGENT.replace("NAME", "Invoice").replace("]", ask)
    pipeline = parse_blueprint(text, allow=["shop_types"])
    run = Runner(pipeline, models=ScriptedModel(REPLY)).run_sync("x")
    assert run.paused is not None and run.paused.message == "Pay 12.5?"
    sys.modules.pop("shop_types")
    again: Any = asyncio.run(
        Runner(parse_blueprint(text, allow=["shop_types"]), models=ScriptedModel(then=REPLY)).resume(run.paused, "yes")
    )
    assert type(again.step("read").value).__name__ == "Invoice"


def test_a_misspelt_check_stops_the_run_before_any_call() -> None:
    text = AGENT.replace("uses: agents.a", "uses: agents.a, checks: ['shop_types:nmber']")
    model = ScriptedModel(then=REPLY)
    with pytest.raises(UsageError, match="step 'read': shop_types has no 'nmber'; did you mean 'number'"):
        Runner(loaded(text), models=model).run_sync("x")
    assert model.calls == 0


def test_lint_imports_what_is_allowed_and_checks_it_as_a_run_does() -> None:
    found = lint_text(TYPO_AND_CHECK, options=Options(allow=("shop_types",), select=("V-B1", "V-A6"))).findings
    assert [(each.place.line, each.place.column, each.message.partition(": ")[2]) for each in found] == [
        (2, 60, "shop_types has no 'Invioce'; did you mean 'Invoice'?"),
        (4, 52, "shop_types has no 'nmber'; did you mean 'number'?"),
    ]


def test_lint_without_allow_imports_nothing() -> None:
    assert lint_text(TYPO_AND_CHECK, options=Options(select=("V-B1", "V-A6"))).findings == ()
    assert "shop_types" not in sys.modules


def test_lint_reports_a_module_that_its_allow_does_not_cover_and_imports_nothing() -> None:
    (found,) = lint_text(AGENT.replace("NAME", "Invioce"), options=Options(allow=("shop",), select=("V-B1",))).findings
    assert "would import shop_types, which is not allowed" in found.message
    assert "shop_types" not in sys.modules


def test_lint_knows_the_fields_of_a_type_that_it_may_import() -> None:
    text = AGENT.replace("NAME", "Invoice").replace(
        "]", ", {name: t, uses: agents.a, input: '{{ previous_step.sum }}'}]"
    )
    (found,) = lint_text(text, options=Options(allow=("shop_types",), select=("V-T5",))).findings
    assert "that value has no key 'sum'" in found.message


def test_a_module_that_is_not_there_is_reported_once() -> None:
    text = STEP.replace("NAME", "Invoice").replace("shop_types", "no_such_shop")
    twice = text.replace("]", ", {name: again, uses: agents.a, output_schema: {from: 'no_such_shop:Invoice'}}]")
    (found,) = lint_text(twice, options=Options(allow=("no_such_shop",), select=("V-B1",))).findings
    assert found.message.startswith("step 'read': no_such_shop cannot be imported")


def test_an_error_of_a_type_is_reported_at_the_agent_that_names_it_and_not_at_another_use_of_the_name() -> None:
    text = AGENT.replace("NAME", "number").replace("}]", "}, {name: f, uses: 'shop_types:number'}]")
    found = lint_text(text, options=Options(allow=("shop_types",), select=("V-B1", "V-A6"))).findings
    assert [(each.place.path, each.message.partition(" is not")[0]) for each in found] == [
        ("agents.a.output_schema.from", "step 'read': shop_types:number"),
        ("steps[1].uses", "step 'f': shop_types:number cannot be called; its type is int"),
    ]
