"""The JSON Schema of blueprints, for completion and validation in editors. Generated from the loader's models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from flujo_aros.blueprint.blocks import BLOCKS, REF, SHARED, Agent, Block, Operation, OutputMapping, Skill, Top

SCHEMA_FILE: Final = "blueprint.schema.json"
"""The name of the schema file next to the blueprints, to which their first line refers."""

FIRST_LINE: Final = f"yaml-language-server: $schema={SCHEMA_FILE}"
"""The comment by which an editor finds the schema."""


def blueprint_schema() -> dict[str, Any]:
    """The schema of a whole blueprint, of draft 2020-12.

    >>> sorted(blueprint_schema()["properties"])[:3]
    ['agents', 'config', 'description']
    """
    used: list[type[BaseModel]] = [Top, Agent, Skill, Operation, OutputMapping, *BLOCKS.values()]
    _, written = models_json_schema([(each, "validation") for each in used], ref_template="#/$defs/{model}")
    defs: dict[str, Any] = written["$defs"]
    for block in _all_blocks(Block):
        if block.__name__ in defs:
            _add_ignored(defs[block.__name__], block)
    for kind, block in BLOCKS.items():
        _name_or_step(defs[block.__name__], kind)
    top = defs.pop(Top.__name__)
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A blueprint of flujo_aros",
        **{key: value for key, value in top.items() if key != "title"},
        "patternProperties": {f"^{SHARED}": {"description": "A place for YAML anchors that several parts share."}},
        "$defs": {"Step": _any_step(), "Body": _body(), "Operations": _operations(), **defs},
    }
    return cast("dict[str, Any]", _referring(whole))


def _referring(schema: Any) -> Any:
    """The schema with real references instead of those that pydantic must not follow."""
    if isinstance(schema, dict):
        members = cast("dict[str, Any]", schema)
        return {
            "$ref" if key == REF else key: f"#/$defs/{value}" if key == REF else _referring(value)
            for key, value in members.items()
        }
    return list(map(_referring, cast("Sequence[Any]", schema))) if isinstance(schema, list) else schema


def _any_step() -> dict[str, Any]:
    choices = [
        {
            "if": {"required": ["kind"], "properties": {"kind": {"const": kind}}},
            "then": {"$ref": f"#/$defs/{block.__name__}"},
        }
        for kind, block in BLOCKS.items()
    ]
    plain = {"if": {"not": {"required": ["kind"]}}, "then": {"$ref": f"#/$defs/{BLOCKS['step'].__name__}"}}
    return {
        "type": "object",
        "properties": {"kind": {"enum": list(BLOCKS)}},
        "allOf": [*choices, plain],
    }


def _body() -> dict[str, Any]:
    """A list of steps, with or without a name, or a single step."""
    steps = {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/Step"}}
    named = {
        "type": "object",
        "required": ["steps"],
        "properties": {"name": {"type": "string"}, "description": {"type": "string"}, "steps": steps},
        "additionalProperties": False,
    }
    alone = {"allOf": [{"not": {"required": ["steps"]}}, {"$ref": "#/$defs/Step"}]}
    return {"description": "Steps, one after the other.", "anyOf": [steps, named, alone]}


def _operations() -> dict[str, Any]:
    """Steps, or changes of the context, or one object that is the output."""
    either = {"anyOf": [{"$ref": "#/$defs/Operation"}, {"$ref": "#/$defs/Step"}]}
    output = {"type": "object", "required": ["output"], "properties": {"output": {"type": ["object", "string"]}}}
    steps = {"type": "object", "required": ["steps"]}
    return {"anyOf": [{"type": "array", "items": either}, output, steps, {"type": "null"}]}


def _add_ignored(schema: dict[str, Any], block: type[Block]) -> None:
    for key, why in block.ignored.items():
        schema.setdefault("properties", {})[key] = {"deprecated": True, "description": f"Ignored: {why}."}


def _name_or_step(schema: dict[str, Any], kind: str) -> None:
    """`step` is a synonym for `name`, and each kind accepts only its own value of `kind`."""
    schema["properties"]["kind"] = {"const": kind}
    schema["properties"]["step"] = {"type": "string", "deprecated": True, "description": "Alias for name."}
    schema["required"] = [key for key in schema["required"] if key != "name"]
    schema["anyOf"] = [{"required": ["name"]}, {"required": ["step"]}]


def _all_blocks(kind: type[Block]) -> Iterator[type[Block]]:
    for each in kind.__subclasses__():
        yield each
        yield from _all_blocks(each)
