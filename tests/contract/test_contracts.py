"""Valid contracts, the errors for invalid ones, and bounds on the cost of schemas."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from enum import Enum
from typing import Any, Literal

import pytest
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, TypeAdapter

from flujo_aros import Accepted, ContractError, Outcome, Output, Reason, Rejected, Risk, StreamReader, agree, read
from flujo_aros.contract import compile_contract, misspells_annotation, misspelt_in


class Order(BaseModel):
    """A model used as a contract."""

    sku: str
    qty: int = 1


def value_of(outcome: Outcome[Any]) -> Any:
    """Return the value of an accepted outcome; fail with the reason otherwise."""
    assert isinstance(outcome, Accepted), outcome.explain()
    return outcome.value


# --- what can be a contract -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("like", "text", "value"),
    [
        (Order, '{"sku": "A"}', Order(sku="A")),
        (Output.json(Order), '{"sku": "A"}', Order(sku="A")),
        (TypeAdapter(list[Order]), '[{"sku": "A"}]', [Order(sku="A")]),
        (list[int], "[1, 2]", [1, 2]),
        (dict[str, float], '{"a": 1.5}', {"a": 1.5}),
        (int | None, "null", None),
        (Literal["yes", "no"], '"yes"', "yes"),
        ({"type": "array", "items": {"type": "integer"}}, "[1]", [1]),
        ({}, '{"a": [null]}', {"a": [None]}),
        (True, "[true]", [True]),
    ],
    ids=["model", "output", "adapter", "list", "dict", "optional", "literal", "schema", "empty-schema", "true"],
)
def test_anything_with_a_json_form_can_be_a_contract(like: Any, text: str, value: Any) -> None:
    """A model, an Output, a TypeAdapter, any type, a JSON Schema, `{}` and `True`."""
    assert value_of(read(text, like)) == value


@pytest.mark.parametrize(
    ("like", "words"),
    [
        ({"type": "strin"}, r"at \$\.type: "),
        ({"properties": {"a": {"type": 5}}}, r"at \$\.properties\.a\.type: "),
        ({"properties": {"a": {"pattern": "("}}}, r"at \$\.properties\.a\.pattern: "),
        ({"type": "object", "required": "a"}, r"at \$\.required: "),
        ({"items": {"minimum": "x"}}, r"at \$\.items\.minimum: "),
        ({"$ref": "#/$defs/none"}, r"/\$defs/none"),
        ({"properties": {1: {"type": "string"}}}, "not a JSON Schema: Dict key must be str"),
        (
            {"qty": int},
            "not a JSON Schema: it contains <class 'int'>; for Python types, pass a type such as a pydantic",
        ),
        (False, "allows no value"),
        (5, "5 cannot be used as a contract: pass a type such as a pydantic model, a JSON Schema as a dict"),
        (value_of, "the function value_of is not a contract"),
        (read("1", int), "an object of .*Accepted.* cannot be used as a contract: pass a type"),
        (BaseModel, "BaseModel.* cannot be used as a contract: pass a type"),
    ],
    ids=[
        "type",
        "nested",
        "pattern",
        "required",
        "items",
        "ref",
        "key",
        "python-type",
        "false",
        "number",
        "function",
        "object",
        "base",
    ],
)
def test_an_impossible_contract_is_one_sentence_with_its_place(like: Any, words: str) -> None:
    """An invalid schema raises a `ContractError` with its place, before any model call."""
    with pytest.raises(ContractError, match=words) as caught:
        read("{}", like)
    assert len(str(caught.value).splitlines()) == 1


def test_a_type_in_place_of_the_tag_names_the_order_of_the_arguments() -> None:
    wrong: Any = Order
    with pytest.raises(ContractError, match=r"tag must be a string, .*; write the tag first, then the type"):
        Output.tagged(wrong, "result")


def test_a_contract_error_is_a_value_error() -> None:
    """Callers can catch it without knowing this package."""
    with pytest.raises(ValueError, match="invalid JSON Schema"):
        Output.json({"type": "nothing"})


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "object", "propertys": {}}, "'propertys' is not a keyword .*; did you mean 'properties'"),
        ({"typ": "object"}, "'typ' is not a keyword .*; did you mean 'type'"),
        ({"type": "array", "itmes": {"type": "string"}}, "'itmes' is not a keyword .*; did you mean 'items'"),
        ({"qty": "int"}, r"'qty' is not a keyword; write \{\"type\": \"object\", \"properties\": \{\"qty\": …\}\}, or"),
        ({"id": "int", "qty": "int", "at": {"type": "string"}}, "every value: 'qty' is not a keyword; write"),
        ({"sku": "A-1", "qty": 3}, "'sku' is not a keyword; write {} for any value"),
    ],
)
def test_a_misspelt_or_missing_keyword_without_which_a_schema_accepts_everything_is_an_error_everywhere(
    schema: dict[str, Any], words: str
) -> None:
    """A validator ignores it, and would accept unintended values."""
    for give in (
        lambda: read("{}", schema),
        lambda: StreamReader(schema),
        lambda: Output.json(schema),
        lambda: Output.tagged("result", schema),
        lambda: agree([{}], schema),
    ):
        with pytest.raises(ContractError, match=words):
            give()


def test_a_file_of_named_schemas_accepts_any_value() -> None:
    """Programs store such files; a step, a blueprint and the command line ask which of the schemas is meant."""
    assert value_of(read('{"sku": "A"}', {"Order": {"type": "object"}})) == {"sku": "A"}


@pytest.mark.parametrize(
    "annotations",
    [
        {"example": "a", "nullable": True, "x-order": 1, "$comment": "c", "discriminator": {"propertyName": "kind"}},
        {"form": True, "options": {}, "propertiesOrder": [], "constraints": [], "readonly": True, "descripton": "d"},
        {"format": "url", "unit": "EUR", "long-description": "d", "_type": "t", "comment": "c"},
        {"format": "ulid", "tsType": "Foo", "typeof": "string", "note": "years"},
    ],
    ids=["OpenAPI", "form-builders", "own-words", "generators"],
)
def test_annotations_of_other_tools_are_no_misspelt_keywords(annotations: dict[str, Any]) -> None:
    """Real schemas have them, and they constrain nothing."""
    schema = {"type": "object", "properties": {"a": {"type": "string", **annotations}}}
    assert value_of(read('{"a": "x"}', schema)) == {"a": "x"}
    assert all(map(misspells_annotation, misspelt_in(schema)))


def test_a_schema_that_pydantic_generates_may_have_any_annotation() -> None:
    """The type decides what is valid, not the keywords."""

    class Noted(BaseModel):
        model_config = ConfigDict(json_schema_extra={"require": ["sku"]})

        sku: str

    assert value_of(read('{"sku": "A"}', Noted)) == Noted(sku="A")


# --- references and cost ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ref", ["http://127.0.0.1:9/x.json", "https://example.org/x.json", "file:///etc/hostname", "x.json"]
)
def test_no_reference_leaves_the_machine(ref: str) -> None:
    """A reference to another document is an error, and is never fetched or opened."""
    with pytest.raises(ContractError):
        read("{}", {"properties": {"a": {"$ref": ref}}})


@pytest.mark.parametrize("text", ['{"next": {"next": {}}}', "{'next': {'next': {}},}", "no JSON"])
def test_reference_loops_end(text: str) -> None:
    """A recursive schema compiles, and reading with it yields an outcome."""
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}}}
    assert read(text, {"$defs": {"n": node}, "$ref": "#/$defs/n"}).to_dict()["outcome"] in ("accepted", "rejected")


def test_a_pattern_cannot_stall_a_reading() -> None:
    """Patterns that backtrack exponentially in other engines terminate, with and without look-around."""
    text = json.dumps({"a": "a" * 30_000 + "!"})
    for pattern in ("^(a+)+$", "^(?=(a+)+$)", "^(a|aa)+$", "(x+x+)+y"):
        assert isinstance(read(text, {"properties": {"a": {"pattern": pattern}}}), Rejected)


def test_a_schema_of_many_alternatives_compiles_once_for_each_name() -> None:
    """Shared definitions are compiled once, so compiling is linear in the schema."""
    defs: dict[str, Any] = {
        f"n{i}": {"properties": {"a": {"$ref": f"#/$defs/n{i + 1}"}, "b": {"$ref": f"#/$defs/n{i + 1}"}}}
        for i in range(60)
    }
    schema = {"$defs": defs | {"n60": {"type": "integer"}}, "$ref": "#/$defs/n0"}
    shape, seen = compile_contract(schema).shape, set[int]()
    pending = [shape]
    while pending:
        here = pending.pop()
        if id(here) not in seen:
            seen.add(id(here))
            pending += here.properties.values()
    assert len(seen) <= 130


# --- x-aros -----------------------------------------------------------------------------------------------------------


def aliased(**hints: Any) -> dict[str, Any]:
    """Return a schema with one property that has these keywords."""
    return {"type": "object", "properties": {"qty": {"type": "integer", "x-aros": hints}}, "required": ["qty"]}


@pytest.mark.parametrize("key", ["qty", "amount", "how_many", "Amount", "How many"])
def test_an_alias_of_a_key_gives_the_real_name(key: str) -> None:
    """The value has the real name, whichever name was written, in any case."""
    assert value_of(read(json.dumps({key: 3}), aliased(aliases=["amount", "how_many"]))) == {"qty": 3}


def test_a_single_alias_needs_no_list() -> None:
    """`aliases: amount` is equivalent to a list of one."""
    assert value_of(read('{"amount": 3}', aliased(aliases="amount"))) == {"qty": 3}


LEVEL = {
    "enum": ["LOW", "HIGH"],
    "x-aros": {"aliases": {"HIGH": ["urgent", "p1"]}, "descriptions": {"LOW": "can wait"}},
}


@pytest.mark.parametrize(
    ("word", "level"),
    [
        ("HIGH", "HIGH"),
        ("high", "HIGH"),
        ("urgent", "HIGH"),
        ("P1", "HIGH"),
        ("can wait", "LOW"),
        ("LOW: can wait", "LOW"),
    ],
)
def test_aliases_and_descriptions_of_choices_give_the_real_choice(word: str, level: str) -> None:
    """A model may answer with an alias, or with the description that it was shown."""
    assert value_of(read(json.dumps({"v": word}), {"properties": {"v": LEVEL}, "required": ["v"]})) == {"v": level}


def test_hints_work_on_pydantic_fields_too() -> None:
    """`json_schema_extra` adds the hints to a model."""
    from pydantic import Field

    class Aliased(BaseModel):
        qty: int = Field(json_schema_extra={"x-aros": {"aliases": ["amount"]}})

    assert value_of(read('{"amount": 3}', Aliased)) == Aliased(qty=3)


# --- fingerprint and cache --------------------------------------------------------------------------------------------


def test_a_fingerprint_says_whether_two_contracts_are_the_same() -> None:
    """It ignores the order of keys, is the same in every process, and changes with the schema."""
    one = Output.json({"type": "object", "properties": {"a": {"type": "integer"}}})
    same = Output.json({"properties": {"a": {"type": "integer"}}, "type": "object"})
    other = Output.json({"type": "object", "properties": {"a": {"type": "number"}}})
    assert one.fingerprint == same.fingerprint != other.fingerprint
    asked = "from flujo_aros import Output; print(Output.json({'type': 'integer'}).fingerprint)"
    reported = {
        subprocess.run(
            [sys.executable, "-c", asked],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert reported == {Output.json({"type": "integer"}).fingerprint}


def test_a_schema_that_was_changed_is_another_contract() -> None:
    """Contracts are cached by content, so a later change of the dict has an effect."""
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    assert isinstance(read('{"a": 1}', schema), Accepted)
    schema["properties"]["a"]["type"] = "array"
    schema["required"].append("b")
    assert isinstance(read('{"a": 1}', schema), Rejected)


def test_equal_schemas_share_one_contract() -> None:
    """Compiling an equal schema again is free."""
    assert compile_contract({"type": "integer"}) is compile_contract({"type": "integer"})
    assert compile_contract(Order) is compile_contract(Order)


def test_any_value_and_no_value_are_not_confused() -> None:
    """`{}` and `True` accept any JSON value; `1` in a schema is not `True`."""
    assert value_of(read("[1]", {})) == value_of(read("[1]", True)) == [1]
    assert isinstance(read("true", {"const": 1}), Rejected)
    assert value_of(read("1", {"const": 1})) == 1


def test_an_instruction_asks_for_the_schema() -> None:
    """The instruction contains the schema, or asks for any JSON value."""
    assert '"sku"' in Output.json(Order).instruction()
    assert "JSON" in Output.json({}).instruction()


def test_a_tool_call_written_as_text_is_not_a_block() -> None:
    """The content of a tool call is not text for the user."""
    contract = Output.block("plan", ["next_step"])
    call = '<tool_call>{"plan": "a", "next_step": "b"}</tool_call>'
    assert read(call, contract).reason is Reason.NO_JSON
    said = read(f'{call}\n{{"plan": "c", "next_step": "d"}}\nDone.', contract)
    assert said.value.fields == {"plan": "c", "next_step": "d"}


def test_the_options_of_a_contract_name_a_risk_that_is_not_its_default() -> None:
    assert Output.json({}).options() == {}
    assert replace(Output.json({}), risk=Risk.LOSSY).options() == {"risk": "lossy"}


def test_a_reference_that_points_to_nothing_is_reported_at_its_place() -> None:
    schema = {"type": "object", "properties": {"a": {"items": {"$ref": "#/$defs/nope"}}}}
    with pytest.raises(ContractError, match=r"at \$\.properties\.a\.items: \$ref '#/\$defs/nope' points to nothing"):
        read("{}", schema)


def test_the_name_of_a_type_is_not_a_contract() -> None:
    with pytest.raises(ContractError, match=r"pass a type .*; the text comes first"):
        read("{}", '{"a": 1}')  # type: ignore[call-overload]  # as a user might
    with pytest.raises(ContractError, match="pass the class Order itself"):
        read("{}", Order(sku="a"))  # type: ignore[call-overload]  # as a user might
    with pytest.raises(ContractError, match="pass the type Order itself, not its name"):
        read("{}", "Order")  # type: ignore[call-overload]  # as a user might


def test_a_contract_prints_its_type() -> None:
    assert "values=int)" in repr(Output.json(int))
    assert 'values={"type": "null"})' in repr(Output.json({"type": "null"}))


@pytest.mark.parametrize(
    ("hints", "words"),
    [
        (5, "x-aros must be an object"),
        ({"aliases": 5}, "aliases must be a list of strings"),
        ({"aliases": [1]}, "aliases must be a list of strings"),
        ({"aliases": {"LOW": 5}}, "aliases must be a list of strings"),
        ({"aliases": {"URGENT": ["p1"]}}, "'URGENT' is not one of the choices: LOW, HIGH"),
        ({"descriptions": "low"}, "descriptions must be a mapping from choices to strings"),
        ({"only_aliases": "yes"}, "only_aliases must be true or false"),
    ],
)
def test_hints_that_mean_nothing_are_an_error(hints: object, words: str) -> None:
    with pytest.raises(ContractError, match=re.escape(words)):
        Output.json({"enum": ["LOW", "HIGH"], "x-aros": hints})


@pytest.mark.parametrize(("word", "choice"), [("one", 1), ("aye", True), ("none", None), ("the first", 1)])
def test_aliases_name_choices_that_are_not_strings(word: str, choice: object) -> None:
    """JSON keys are strings, so they name such a choice by its JSON form."""
    hints = {"aliases": {"1": ["one"], "true": ["aye"], "null": ["none"]}, "descriptions": {"1": "the first"}}
    assert read(word, {"enum": [1, True, None], "x-aros": hints}).value is choice


class Mixed(Enum):
    HALF = 0.5
    NOTHING = None
    PAIR = (1, 2)


def test_an_enumeration_of_different_types_is_a_contract() -> None:
    assert read("0.5", Mixed).value is Mixed.HALF
    assert read("NOTHING", Mixed).value is Mixed.NOTHING


class Renamed(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    number: int = Field(alias="no")


class Chosen(BaseModel):
    number: int = Field(validation_alias=AliasChoices("no", "nr"))


@pytest.mark.parametrize(
    ("text", "contract"),
    [
        ('{"no": 1, "number": 2}', Renamed),
        ('{"no": 1, "nr": 2}', Chosen),
        ('[{"no": 1, "nr": 2}]', list[Chosen]),
        ("{'no': 1, 'nr': 2}", Chosen),
    ],
)
def test_two_spellings_of_a_field_with_different_values_are_ambiguous(text: str, contract: Any) -> None:
    outcome = read(text, contract)
    assert isinstance(outcome, Rejected)
    assert (outcome.reason, outcome.issues[0].code) == (Reason.AMBIGUOUS, "duplicate_key")
    assert isinstance(read(text.replace("2", "1"), contract), Accepted)


@pytest.mark.parametrize(
    "frame", ["{}", "[{}]", '{{"result": {}}}', '{{"name": "f", "arguments": {}}}', '{{"output": {{"data": {}}}}}']
)
def test_a_key_with_two_values_is_ambiguous_in_every_frame(frame: str) -> None:
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
    outcome = read(frame.format('{"id": 1, "id": 2}'), schema)
    assert isinstance(outcome, Rejected)
    assert (outcome.reason, outcome.issues[0].code) == (Reason.AMBIGUOUS, "duplicate_key")


def test_names_that_are_not_a_list_are_an_error() -> None:
    for make in (lambda: Output.event(None), lambda: Output.block("a", required=None)):  # type: ignore[arg-type]
        with pytest.raises(ContractError, match="must be a list of names, not None"):
            make()


@pytest.mark.parametrize(
    ("place", "around"),
    [
        ("json_schema.schema", {"type": "json_schema", "json_schema": {"name": "t", "strict": True, "schema": ...}}),
        ("schema", {"name": "t", "strict": True, "schema": ...}),
        ("parameters", {"name": "t", "description": "A tool.", "parameters": ...}),
        ("input_schema", {"name": "t", "input_schema": ...}),
        ("function.parameters", {"type": "function", "function": {"name": "t", "parameters": ...}}),
    ],
)
def test_a_schema_inside_a_part_of_a_request_is_an_error_that_says_where_the_schema_is(place: str, around: Any) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    *outer, last = place.split(".")
    within = around
    for key in outer:
        within = within[key]
    within[last] = schema
    with pytest.raises(ContractError, match=f"this contains a JSON Schema, under `{place}`, but is not one"):
        read("{}", around)


def test_a_schema_may_have_annotations_with_these_names() -> None:
    assert isinstance(read("{}", {"type": "object", "name": "t", "schema": {"type": "object"}}), Accepted)


@pytest.mark.parametrize(
    ("schema", "meant"),
    [
        ({"type": "integer", "min": 3}, "minimum"),
        ({"type": "string", "max": 3}, "maxLength"),
        ({"type": "array", "min": 3}, "minItems"),
        ({"type": "number", "lt": 3}, "exclusiveMaximum"),
        ({"type": "string", "regex": "a+"}, "pattern"),
        ({"type": "string", "choices": ["a", "b"]}, "enum"),
    ],
)
def test_a_keyword_of_another_library_is_reported_with_that_of_json_schema(schema: dict[str, Any], meant: str) -> None:
    found = [str(error) for error in misspelt_in({"type": "object", "properties": {"a": schema}})]
    assert len(found) == 1
    assert f"did you mean {meant!r}?" in found[0]


@pytest.mark.parametrize("schema", [{"type": "string", "min": "low"}, {"type": "integer", "min": 1, "minimum": 1}])
def test_such_a_keyword_with_another_value_or_beside_the_right_one_is_an_annotation(schema: dict[str, Any]) -> None:
    assert not list(misspelt_in(schema))
