"""The shipped blueprint with nested items accepts correct totals and never wrong ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from flujo_aros import Runner, RunStatus, load_blueprint

FOLDER = Path(__file__).parents[2] / "blueprints"
PIPELINE = load_blueprint(FOLDER / "invoice.yaml")

HEAD = {"number": "114", "date": "3 March", "seller": "Lamp House", "currency": "EUR"}
SUMS = {
    "items": [
        {"text": "lamp", "quantity": 2, "price": 30, "amount": 60},
        {"text": "cable", "quantity": 1, "price": 5, "amount": 5},
    ],
    "net": 65,
    "tax": 13,
    "total": 78,
}


class Clerks:
    """Scripted models for each agent; a list is answered item by item."""

    def __init__(self, sums: list[Any]) -> None:
        self.sums = list(sums)
        self.asked: list[str] = []

    async def model(self, name: str) -> FunctionModel:
        return FunctionModel(self.answer)

    def answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        reported = str(info.instructions)
        said = "\n".join(str(getattr(part, "content", "")) for message in messages for part in message.parts)
        self.asked.append(said)
        if "bookkeeper" in reported:
            found: Any = {"account": "goods" if said.endswith("lamp") else "other"}
        elif "number, the date" in reported:
            found = HEAD
        else:
            found = self.sums.pop(0)
        return ModelResponse(parts=[TextPart(json.dumps(found))], finish_reason="stop")


def test_correct_totals_and_items_are_returned_completely():
    run = Runner(PIPELINE, models=Clerks([SUMS])).run_sync("2 lamps, 1 cable </invoice>")
    assert run.status is RunStatus.COMPLETED, run.error
    assert run.output == {"invoice": HEAD, "sums": SUMS, "accounts": [{"account": "goods"}, {"account": "other"}]}
    assert {"read/head/read head", "read/sums/read items", "book/0/account", "book/1/account"} <= {
        step.name for step in run.steps
    }


def test_sums_that_do_not_add_up_are_requested_again():
    clerks = Clerks([{**SUMS, "total": 80}, SUMS])
    run = Runner(PIPELINE, models=clerks).run_sync("2 lamps, 1 cable")
    assert run.status is RunStatus.COMPLETED, run.error
    assert run.step("read/sums/read items").outcome.origin == "retry"
    assert any("output.net + output.tax - output.total" in text for text in clerks.asked)


def test_sums_that_never_add_up_fail_the_run_with_the_check_that_did_not_hold():
    run = Runner(PIPELINE, models=Clerks([{**SUMS, "net": 1}] * 9)).run_sync("2 lamps, 1 cable")
    assert run.status is RunStatus.FAILED
    assert "output.net) < 0.01 does not hold" in str(run.error)
    assert "book" not in {step.name for step in run.steps if step.status.value != "skipped"}


def test_the_schema_file_next_to_the_blueprints_is_up_to_date():
    """Requires the latest pydantic, because other versions word some schemas differently."""
    from flujo_aros.blueprint.blocks import SCHEMA_FILE, blueprint_schema

    assert json.loads((FOLDER / SCHEMA_FILE).read_text(encoding="utf-8")) == blueprint_schema(), "run: aros schema -o …"


def test_every_key_has_a_description_and_every_description_a_key():
    from flujo_aros.blueprint.blocks import KEYS, blueprint_schema

    found: dict[str, str | None] = {}

    def look(model: str, schema: Any) -> None:
        if isinstance(schema, dict):
            for key, each in schema.get("properties", {}).items():
                found[f"{model}.{key}"] = each.get("description")
            for key, each in schema.items():
                if key != "if":
                    look(model, each)
        elif isinstance(schema, list):
            for each in schema:
                look(model, each)

    whole = blueprint_schema()
    for model, schema in {"": {**whole, "$defs": {}}, **whole["$defs"]}.items():
        look(model, schema)
    assert [key for key, words in found.items() if not words] == []
    assert set(KEYS.values()) - set(found.values()) == set()


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.yaml")), ids=lambda file: file.name)
def test_a_shipped_blueprint_names_its_schema_and_satisfies_it(file: Path):
    from jsonschema_rs import Draft202012Validator

    from flujo_aros.blueprint.blocks import FIRST_LINE, blueprint_schema
    from flujo_aros.blueprint.document import parse_document

    text = file.read_text(encoding="utf-8")
    assert text.splitlines()[0] == f"# {FIRST_LINE}"
    errors = Draft202012Validator(blueprint_schema()).iter_errors(parse_document(text, "").plain())
    assert [error.message for error in errors] == []
