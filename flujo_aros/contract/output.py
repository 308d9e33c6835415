"""Where in a reply the payload stands and what it must satisfy: the one idea behind every output shape."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, Literal, TypeAlias, TypeGuard, TypeVar, cast, overload

from pydantic import TypeAdapter

from flujo_aros.contract.instruction import (
    block_instruction,
    event_instruction,
    json_instruction,
    tagged_instruction,
)
from flujo_aros.contract.payload import Block, WrittenEvent, event_model
from flujo_aros.contract.schema import JsonSchema, Shape
from flujo_aros.contract.values import SchemaValues, TypeValues, Values, Verdict, fingerprint
from flujo_aros.errors import ContractError
from flujo_aros.outcome import Risk

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


Mode: TypeAlias = Literal["json", "tagged", "text", "block", "event"]


@dataclass(frozen=True)
class JsonContract(Generic[T_co]):
    """The reply holds one JSON value. Made by `Output.json`."""

    values: Values[T_co]
    mode: Mode = "json"
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
        return fingerprint({"mode": self.mode, "schema": self.json_schema, **self.where()})

    def where(self) -> JsonSchema:
        """What beside the schema tells where the payload stands, as plain JSON."""
        return {}

    def instruction(self) -> str:
        """The words for the prompt that ask for this output."""
        return json_instruction(self.json_schema)

    def validate(self, value: object) -> Verdict[T_co]:
        """Judge a JSON value. Never raises for bad data."""
        return self.values.validate(value)


@dataclass(frozen=True)
class TaggedContract(JsonContract[T_co]):
    """The payload stands between `<tag>` and `</tag>`; the last complete pair counts. Made by `Output.tagged`."""

    tag: str = ""
    strict: bool = True
    """Take the payload as valid JSON only (in one optional fence), without any repair."""

    def where(self) -> JsonSchema:
        """The tag."""
        return {"tag": self.tag, "strict": self.strict}

    def instruction(self) -> str:
        """The words for the prompt that ask for this output; they name the opening tag."""
        return tagged_instruction(self.tag, self.json_schema if self.mode == "tagged" else None)


@dataclass(frozen=True)
class BlockContract(JsonContract[Block]):
    """The reply begins with a JSON object that has certain keys; prose follows. Made by `Output.block`."""

    block_key: str = ""
    required: tuple[str, ...] = ()

    def where(self) -> JsonSchema:
        """The keys that must stand in the block."""
        return {"keys": list(self.keys)}

    @property
    def keys(self) -> tuple[str, ...]:
        """All keys that the block must have; none: the contract is inert and every reply satisfies it."""
        return (self.block_key, *self.required) if self.block_key else ()

    def instruction(self) -> str:
        """The words for the prompt that ask for this output; empty where the contract is inert."""
        return block_instruction(self.keys) if self.keys else ""


@dataclass(frozen=True)
class EventContract(JsonContract[WrittenEvent]):
    """The reply is one event of a kind that is allowed; prose is taken as its text. Made by `Output.event`."""

    kinds: tuple[str, ...] = ()
    fallback: str = ""

    def where(self) -> JsonSchema:
        """The kinds, and which one stands in for a wrong one."""
        return {"kinds": list(self.kinds), "fallback": self.fallback}

    def instruction(self) -> str:
        """The words for the prompt that ask for this output, with an example."""
        return event_instruction(self.kinds, tuple(self.shape.properties))


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

    @overload
    @staticmethod
    def tagged(tag: str, like: type[T] | TypeAdapter[T], *, strict: bool = True) -> TaggedContract[T]: ...
    @overload
    @staticmethod
    def tagged(tag: str, like: Any, *, strict: bool = True) -> TaggedContract[Any]: ...
    @staticmethod
    def tagged(tag: str, like: Any, *, strict: bool = True) -> TaggedContract[Any]:
        """The payload is one JSON value between `<tag>` and `</tag>`; the last complete pair counts.

        One fence around the payload is fine; with `strict=False` it may also need lossless repairs. Raises
        `ContractError` for a blank tag. `like` as in `json`.
        """
        return TaggedContract(Output.json(like).values, "tagged", Risk.LOSSLESS, _named(tag, "tag"), strict)

    @staticmethod
    def text(tag: str) -> TaggedContract[str]:
        """The payload is the text between `<tag>` and `</tag>`, never parsed; an empty one is rejected."""
        return TaggedContract(TypeValues[str](str), "text", Risk.LOSSLESS, _named(tag, "tag"))

    @staticmethod
    def block(block_key: str, required: Iterable[str] = ()) -> BlockContract:
        """The first JSON value of the reply is an object with `block_key` and the `required` keys, none of them null.

        The value is a `Block(fields, prose)`. Keys are trimmed, doubles dropped; with a blank `block_key` the contract
        is inert: every reply satisfies it as `Block({}, text)`.
        """
        key = block_key.strip()
        others = tuple(dict.fromkeys(name.strip() for name in required if name.strip() and name.strip() != key))
        return BlockContract(TypeValues[Block](Block), "block", Risk.LOSSLESS, key, others if key else ())

    @staticmethod
    def event(kinds: Iterable[str], fields: Iterable[str] = (), *, fallback: str | None = None) -> EventContract:
        """The reply is one event: a JSON object with a `kind` out of `kinds`, a `text`, and more keys if it likes.

        A wrong or missing kind becomes `fallback` (by default the first kind), which is reported. A reply without JSON
        is taken as the text of such an event, with `_raw_fallback: true` in it and trust SYNTHESIZED. Raises
        `ContractError` without any kind.
        """
        known = tuple(dict.fromkeys(kind.strip() for kind in kinds if kind.strip()))
        if not known:
            message = "an event contract needs at least one kind"
            raise ContractError(message)
        if fallback is not None and fallback not in known:
            message = f"the fallback kind {fallback!r} is none of the kinds: {', '.join(known)}"
            raise ContractError(message)
        values = TypeValues[WrittenEvent](event_model(tuple(fields)))
        return EventContract(values, "event", Risk.INFERRED, known, fallback or known[0])


def _named(name: str, what: str) -> str:
    trimmed = name.strip().strip("<>/ ")
    if not trimmed:
        message = f"a blank {what} marks nothing: give it a name"
        raise ContractError(message)
    return trimmed


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
    known = _ready(like)
    if known is not None:
        return known
    key = _content_key(like)
    if key is None:
        return Output.json(like)
    found = _compiled.get(key)
    if found is None:
        found = Output.json(like)
        if len(_compiled) >= _MAX_COMPILED:
            _compiled.clear()
        _compiled[key] = found
    return found


def _ready(like: object) -> Contract[Any] | None:
    """A contract that is one already, or that was compiled for the same type."""
    if isinstance(like, type):
        return _compiled.get(cast("object", like))
    return like if _is_contract(like) else None


def _is_contract(like: object) -> TypeGuard[Contract[Any]]:
    return isinstance(like, JsonContract)


def _content_key(like: Any) -> object | None:
    """What tells two contracts apart; None for a type that cannot be hashed, which is compiled each time."""
    if isinstance(like, (dict, bool)):
        try:
            return json.dumps(like, sort_keys=True)
        except (TypeError, ValueError) as error:
            message = f"not a JSON Schema: {error}"
            raise ContractError(message) from error
    try:
        hash(like)
    except TypeError:
        return None
    key: object = like
    return key
