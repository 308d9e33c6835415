"""Where in a reply the payload stands and what it must satisfy: the one idea behind every output shape."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, Literal, TypeAlias, TypeGuard, TypeVar, cast, overload

from pydantic import TypeAdapter

from flujo_aros.contract.instruction import json_instruction
from flujo_aros.contract.schema import JsonSchema, Shape
from flujo_aros.contract.values import SchemaValues, TypeValues, Values, Verdict, fingerprint
from flujo_aros.errors import ContractError
from flujo_aros.outcome import Risk

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class JsonContract(Generic[T_co]):
    """The reply holds one JSON value. Made by `Output.json`."""

    values: Values[T_co]
    mode: Literal["json"] = "json"
    risk: Risk = Risk.INFERRED
    """How risky an edit may be before the reading is rejected, unless the call says otherwise."""

    @property
    def json_schema(self) -> JsonSchema:
        """The JSON Schema of the payload; empty where anything may stand."""
        return self.values.json_schema

    @property
    def shape(self) -> Shape:
        """The schema as the reader needs it."""
        return self.values.shape

    @cached_property
    def fingerprint(self) -> str:
        """A short stable hash of mode and schema (`schema_hash` in telemetry)."""
        return fingerprint({"mode": self.mode, "schema": self.json_schema})

    def instruction(self) -> str:
        """The words for the prompt that ask for this output."""
        return json_instruction(self.json_schema)

    def validate(self, value: object) -> Verdict[T_co]:
        """Judge a JSON value. Never raises for bad data."""
        return self.values.validate(value)


Contract: TypeAlias = JsonContract[T_co]
ContractLike: TypeAlias = Contract[T_co] | type[T_co] | TypeAdapter[T_co] | JsonSchema | bool


class Output:
    """Makes contracts: each says where the payload stands and what it must satisfy."""

    @overload
    @staticmethod
    def json(like: type[T] | TypeAdapter[T]) -> JsonContract[T]: ...
    @overload
    @staticmethod
    def json(like: Any) -> JsonContract[Any]: ...
    @staticmethod
    def json(like: Any) -> JsonContract[Any]:
        """The reply holds one JSON value of this type.

        `like` is a pydantic model or any type, a `TypeAdapter`, or a JSON Schema as a dict (`{}` or `True`: any JSON
        value). Raises `ContractError` when it cannot be compiled.

        >>> Output.json({"type": "integer"}).json_schema
        {'type': 'integer'}
        """
        if like is False:
            message = "the schema `false` allows no value at all"
            raise ContractError(message)
        if like is True:
            return JsonContract(SchemaValues({}))
        if isinstance(like, dict):
            return JsonContract(SchemaValues(cast("JsonSchema", like)))
        return JsonContract(TypeValues[Any](like))


_compiled: dict[object, Contract[Any]] = {}
_MAX_COMPILED = 512


@overload
def compile_contract(like: Contract[T] | type[T] | TypeAdapter[T]) -> Contract[T]: ...
@overload
def compile_contract(like: Any) -> Contract[Any]: ...
def compile_contract(like: Any) -> Contract[Any]:
    """The contract for anything that can stand for one; compiled once for each content.

    Raises `ContractError` when it cannot be compiled.
    """
    if _is_contract(like):
        return like
    key: object = _content_key(like)
    found = _compiled.get(key)
    if found is None:
        found = Output.json(like)
        if len(_compiled) >= _MAX_COMPILED:
            _compiled.clear()
        _compiled[key] = found
    return found


def _is_contract(like: object) -> TypeGuard[Contract[Any]]:
    return isinstance(like, JsonContract)


def _content_key(like: Any) -> object:
    if isinstance(like, (dict, bool)):
        return json.dumps(like, sort_keys=True)
    try:
        hash(like)
    except TypeError:
        return id(like)
    return like
