"""What really travels between host and model: the host may put an envelope around a value, and wants JSON text back."""

from __future__ import annotations

import copy
import typing
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from pydantic_ai.output import OutputContext
from pydantic_core import from_json, to_json

from flujo_aros.contract.output import Contract, compile_contract
from flujo_aros.contract.schema import JsonSchema, Shape, compile_shape
from flujo_aros.contract.values import Invalid, Valid, Values, Verdict
from flujo_aros.errors import ContractError
from flujo_aros.outcome import Issue

ENVELOPE: Final = "response"
"""The key under which the host asks for a value that is not an object."""


@dataclass(frozen=True, slots=True)
class Carried:
    """An accepted value together with the JSON text that gives it, for a host that validates by itself."""

    value: Any
    json: str


class CarriedValues:
    """The values of a contract, each with its JSON text, optionally under the key of an envelope."""

    def __init__(self, inner: Values[Any], key: str | None = None) -> None:
        self.inner = inner
        self.key = key
        self.json_schema: JsonSchema = inner.json_schema if key is None else envelope_schema(inner.json_schema, key)
        self.shape: Shape = inner.shape if key is None else compile_shape(self.json_schema)

    def strict_json(self, text: str) -> Valid[Carried] | None:
        """The value of a JSON text that satisfies everything as it stands, or None."""
        if self.key is None:
            found = self.inner.strict_json(text)
        else:
            payload = _only_member(text, self.key)
            found = None if payload is None else self.inner.strict_json(payload)
        return None if found is None else Valid(Carried(found.value, text), found.conversions)

    def validate(self, value: object) -> Verdict[Carried]:
        """Judge a JSON value."""
        payload, prefix = value, "$"
        if self.key is not None:
            members = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
            if self.key not in members:
                return Invalid((Issue("$", "missing", f"expected an object with the key {self.key!r}"),))
            payload, prefix = members[self.key], f"$.{self.key}"
        verdict = self.inner.validate(payload)
        if isinstance(verdict, Invalid):
            return Invalid(_moved(verdict.issues, prefix))
        text = to_json(value, inf_nan_mode="constants").decode()
        return Valid(Carried(verdict.value, text), _moved(verdict.conversions, prefix))


def carried(contract: Contract[Any], key: str | None = None) -> Contract[Carried]:
    """The same contract, giving each value with its JSON text."""
    return cast("Contract[Carried]", replace(contract, values=CarriedValues(contract.values, key)))


def host_contract(output: OutputContext, wanted: Contract[Any] | None, *, with_context: bool) -> Contract[Carried]:
    """What a text of this host output must satisfy.

    `wanted` is the contract that the user has named, if any. Else the host's own type is taken, so that its
    validators count; and only its JSON Schema where the type is not known, or where it can be judged by the host
    alone (`with_context`: its validators want the validation context of the run).
    """
    schema = _host_schema(output)
    if wanted is not None:
        return carried(wanted, ENVELOPE if _is_envelope_of(schema, wanted.json_schema) else None)
    known = None if with_context else _type_contract(output.output_type)
    if known is not None and _same_shape(known.json_schema, schema):
        return carried(known)
    if known is not None and not output.has_function and _is_envelope_of(schema, known.json_schema):
        return carried(known, ENVELOPE)
    return carried(compile_contract(schema))


def object_schema(schema: JsonSchema) -> JsonSchema:
    """A schema of an object, as hosts want it: an own copy, in an envelope where it describes something else."""
    own = copy.deepcopy(schema)
    return own if _followed(own).get("type") == "object" else envelope_schema(own, ENVELOPE)


def envelope_schema(schema: JsonSchema, key: str) -> JsonSchema:
    """The schema of an object that holds such a value under this key; definitions move to the new root."""
    inner = {name: part for name, part in schema.items() if name not in ("$defs", "definitions", "$schema", "$id")}
    outer: JsonSchema = {"type": "object", "properties": {key: inner}, "required": [key], "additionalProperties": False}
    for name in ("$defs", "definitions"):
        if name in schema:
            outer[name] = schema[name]
    return outer


def _host_schema(output: OutputContext) -> JsonSchema:
    if output.tool_def is not None:
        return output.tool_def.parameters_json_schema
    return output.object_def.json_schema if output.object_def is not None else {}


def _type_contract(like: Any) -> Contract[Any] | None:
    # A `StructuredDict` validates nothing but that it is a dict: its schema says more than its type.
    if like is None or (isinstance(like, type) and issubclass(like, dict) and not typing.is_typeddict(like)):
        return None
    try:
        return compile_contract(like)
    except ContractError:
        return None


def _same_shape(one: JsonSchema, other: JsonSchema) -> bool:
    one, other = _followed(one), _followed(other)
    return one.get("type") == other.get("type") == "object" and _members(one) == _members(other)


def _is_envelope_of(outer: JsonSchema, inner: JsonSchema) -> bool:
    if _members(outer) != {ENVELOPE} or _members(_followed(inner)) == {ENVELOPE}:
        return False
    held = _followed({**outer["properties"][ENVELOPE], "$defs": outer.get("$defs", {})})
    plain = _followed(inner)
    return all(held.get(word) == plain.get(word) for word in ("type", "enum", "const"))


def _members(schema: JsonSchema) -> set[str]:
    return set(schema.get("properties", {}))


def _followed(schema: JsonSchema) -> JsonSchema:
    """The schema that a root `$ref` points to."""
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    found = schema.get("$defs", {}).get(name)
    return cast("JsonSchema", found) if isinstance(found, dict) else schema


def _only_member(text: str, key: str) -> str | None:
    try:
        whole = from_json(text)
    except ValueError:
        return None
    if not isinstance(whole, dict) or set(cast("dict[str, Any]", whole)) != {key}:
        return None
    return to_json(whole[key], inf_nan_mode="constants").decode()


def _moved(issues: tuple[Issue, ...], prefix: str) -> tuple[Issue, ...]:
    if prefix == "$":
        return issues
    return tuple(Issue(prefix + issue.path.removeprefix("$"), issue.code, issue.message) for issue in issues)
