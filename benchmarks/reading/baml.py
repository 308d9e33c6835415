"""Use BAML's parser alone: convert a JSON Schema to BAML types, and the parsed value back to JSON."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from flujo_aros.json_data import is_dict, is_list

_PRIMITIVES: Final = {"string": "string", "integer": "int", "number": "float", "boolean": "bool", "null": "null"}
_FUNCTION: Final = """
client<llm> Unused {{
  provider openai
  options {{
    model "unused"
    api_key "unused"
  }}
}}
function Read() -> {0} {{
  client Unused
  prompt #"unused"#
}}
"""


class Unasked(Exception):
    """The schema cannot be expressed in the types of this parser."""


class _Any(BaseModel):
    model_config = ConfigDict(extra="allow")


class _Types:
    """The BAML types of one schema. Properties have generated names, and their real names as aliases."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._classes: dict[str, str] = {}
        self._named: dict[str, str] = {}
        self.keys: dict[str, list[str]] = {}
        self.required: dict[str, frozenset[str]] = {}
        self.root = self._type(schema)

    @property
    def source(self) -> str:
        return "\n".join([*self._classes.values(), _FUNCTION.format(self.root)])

    def _type(self, schema: Any) -> str:
        if not is_dict(schema):
            raise Unasked
        if "$ref" in schema:
            return self._reference(str(schema["$ref"]))
        if "const" in schema or "enum" in schema:
            return self._union([_literal(value) for value in schema.get("enum", [schema.get("const")])])
        for word in ("anyOf", "oneOf"):
            if word in schema:
                return self._union([self._type(one) for one in schema[word]])
        kind = schema.get("type")
        if is_list(kind):
            return self._union([self._type({**schema, "type": one}) for one in kind])
        return self._of_kind(kind, schema)

    def _of_kind(self, kind: Any, schema: dict[str, Any]) -> str:
        if kind == "object":
            return self._class(schema) if schema.get("properties") else self._map(schema)
        if kind == "array" and "items" in schema:
            return f"({self._type(schema['items'])})[]"
        if kind not in _PRIMITIVES:
            raise Unasked
        return _PRIMITIVES[kind]

    def _union(self, types: list[str]) -> str:
        return types[0] if len(types) == 1 else f"({' | '.join(types)})"

    def _map(self, schema: dict[str, Any]) -> str:
        return f"map<string, {self._type(schema.get('additionalProperties'))}>"

    def _reference(self, pointer: str) -> str:
        if pointer in self._named:
            return self._named[pointer]
        found: Any = self._schema
        for part in pointer.removeprefix("#").strip("/").split("/"):
            found = found.get(part) if is_dict(found) else None
        if is_dict(found) and found.get("type") == "object" and found.get("properties"):
            return self._class(found, pointer)
        return self._type(found)

    def _class(self, schema: dict[str, Any], pointer: str = "") -> str:
        name = f"T{len(self.keys)}"
        self._named[pointer or name] = name
        keys = self.keys[name] = list(schema["properties"])
        self.required[name] = frozenset(schema.get("required", ()))
        lines = [
            f"  f{at} {self._member(schema['properties'][key], key in self.required[name])} @alias({json.dumps(key)})"
            for at, key in enumerate(keys)
        ]
        self._classes[name] = "\n".join([f"class {name} {{", *lines, "}"])
        return name

    def _member(self, schema: Any, required: bool) -> str:
        return self._type(schema) if required else f"({self._type(schema)})?"


def _literal(value: Any) -> str:
    if isinstance(value, float) or is_dict(value) or is_list(value):
        raise Unasked
    return json.dumps(value, ensure_ascii=False)


class BamlParser:
    """The reply parser of `baml-py`, offline, with one compiled function per schema.

    Raises `Unasked` for schemas that BAML has no types for, and `ValueError` if BAML rejects the reply. BAML classes
    always have all members: an optional one that is None is removed if its name does not occur in the reply.
    """

    def __init__(self) -> None:
        self._baml: Any = importlib.import_module("baml_py")
        self._compiled: dict[str, tuple[Any, Any, ModuleType, _Types]] = {}
        self._last: tuple[object, tuple[Any, Any, ModuleType, _Types]] | None = None

    def __call__(self, text: str, schema: Mapping[str, Any] | None) -> Any:
        """Return the value as plain JSON."""
        runtime, context, module, types = self._for({} if schema is None else schema)
        try:
            value: Any = runtime.parse_llm_response(
                "Read", text, module, module, module, False, context, None, None, {}
            )
        except self._baml.baml_py.BamlError as error:
            raise ValueError(str(error)[:200]) from error
        return _plain(value, types, text)

    def _for(self, schema: Mapping[str, Any]) -> tuple[Any, Any, ModuleType, _Types]:
        if self._last is not None and self._last[0] is schema:  # keeps the lookup out of the measured time
            return self._last[1]
        key = json.dumps(schema)
        if key not in self._compiled:
            types = _Types(schema)
            module = ModuleType("types_of_baml")
            for name in types.keys:
                setattr(module, name, type(name, (_Any,), {}))
            try:
                runtime: Any = self._baml.BamlRuntime.from_files(".", {"main.baml": types.source}, {})
            except self._baml.baml_py.BamlError as error:
                raise Unasked from error
            self._compiled[key] = runtime, runtime.create_context_manager(), module, types
        self._last = schema, self._compiled[key]
        return self._compiled[key]


def _plain(value: Any, types: _Types, text: str) -> Any:
    if is_list(value):
        return [_plain(one, types, text) for one in value]
    if is_dict(value):
        return {key: _plain(one, types, text) for key, one in value.items()}
    if not isinstance(value, BaseModel):
        return value
    name = type(value).__name__
    members = {types.keys[name][int(field[1:])]: one for field, one in value}
    kept = {key: one for key, one in members.items() if one is not None or key in types.required[name] or key in text}
    return {key: _plain(one, types, text) for key, one in kept.items()}
