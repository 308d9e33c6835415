"""The stage that asks for the same answer as a flat list of texts, and makes the value of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Final, Literal, TypeVar, cast

from pydantic_core import to_json

from flujo_aros.contract import Contract, JsonSchema, Output
from flujo_aros.outcome import Accepted, Outcome, Reason, Rejected, Repair, Risk, Trust
from flujo_aros.reading.read import read as read_text
from flujo_aros.recovery.json_path import schema_at
from flujo_aros.recovery.plan import Ask, Past, Plan, ReadReply, Reply, Rung, Task
from flujo_aros.recovery.prompts import form_prompt

T = TypeVar("T")

_MAX_DEPTH: Final = 4
_MAX_FIELDS: Final = 60
_SEPARATORS: Final = re.compile(r"\s*[|;\n]\s*")


class Simplify(Rung):
    """Ask the conversation for a flat object with a text for each field, then coerce the texts into the real schema.

    For schemas that a model cannot follow because they nest; lists of objects cannot be made flat.
    """

    answers: ClassVar[frozenset[Reason]] = frozenset(
        {Reason.NO_JSON, Reason.MALFORMED, Reason.INVALID, Reason.AMBIGUOUS, Reason.ECHOED_SCHEMA}
    )

    stage: Literal["simplify"] = "simplify"

    def passes(self, task: Task[Any], past: Past) -> str | None:  # noqa: ARG002 (one shape for all stages)
        """A schema that is no object, is open, or holds lists of objects."""
        return None if _flat(task.contract) else "the schema cannot be made a flat object of texts"

    def climb(self, task: Task[T], past: Past, read: ReadReply[T]) -> Plan[T]:
        """One ask in the conversation, with the flat schema enforced where the provider can."""
        fields = _flat(task.contract)
        if fields is None:
            return past.latest
        flat = _contract_of(fields)
        way: Literal["constrained", "conversation"] = "constrained" if task.native in ("can", "on") else "conversation"
        reply = yield Ask(form_prompt(flat), self.stage, 1, flat, way=way)
        if reply.fault is not None:
            return read(reply)
        answer = read_text(reply.text, flat, truncated=reply.truncated)
        if not isinstance(answer, Accepted):
            return read(reply)
        return _coerced(answer, fields, reply, read)


def _coerced(answer: Accepted[Any], fields: Mapping[str, JsonSchema], reply: Reply, read: ReadReply[T]) -> Outcome[T]:
    whole: dict[str, Any] = {}
    for path, text in cast("dict[str, str]", answer.value).items():
        if text.strip():
            _put(whole, path.split("."), _value(text, fields.get(path, {})))
    return read(Reply(to_json(whole).decode(), truncated=False), partial(_simplified, answer=answer, reply=reply))


def _simplified(outcome: Outcome[T], answer: Accepted[Any], reply: Reply) -> Outcome[T]:
    """The outcome with what was done to come to it, about the text that the model really wrote."""
    if isinstance(outcome, Rejected):
        return replace(outcome, text=reply.text)
    if not isinstance(outcome, Accepted):
        return outcome
    made = Repair("simplified", Risk.INFERRED, "$", (0, len(reply.text)), reply.text[:80], outcome.text[:80])
    repairs = (made, *answer.repairs, *outcome.repairs)
    return replace(outcome, repairs=repairs, trust=Trust.of(repairs), text=reply.text)


def _value(text: str, schema: JsonSchema) -> str | list[str]:
    if schema.get("type") != "array":
        return text
    return [part for part in _SEPARATORS.split(text.strip()) if part]


def _put(whole: dict[str, Any], parts: list[str], value: str | list[str]) -> None:
    for part in parts[:-1]:
        whole = whole.setdefault(part, {})
    whole[parts[-1]] = value


def _contract_of(fields: Mapping[str, JsonSchema]) -> Contract[Any]:
    """The flat contract: one text for each field, all of them required, an empty text for what is not known."""
    texts = {path: {"type": "string", "description": _about(schema)} for path, schema in fields.items()}
    return Output.json({"type": "object", "properties": texts, "required": list(texts), "additionalProperties": False})


def _about(schema: JsonSchema) -> str:
    words = [str(schema["description"])] if schema.get("description") else []
    if schema.get("enum"):
        words.append(f"one of: {', '.join(map(str, schema['enum']))}")
    elif schema.get("type") == "array":
        words.append("several values, with | between them")
    elif isinstance(schema.get("type"), str) and schema["type"] != "string":
        words.append(f"a {schema['type']}")
    return "; ".join([*words, "empty if not known"])


def _flat(contract: Contract[Any]) -> dict[str, JsonSchema] | None:
    """The fields of a schema by their dotted names, or None where it cannot be made flat."""
    if contract.mode != "json":
        return None
    fields: dict[str, JsonSchema] = {}
    simple = _collect(contract.json_schema, (), fields)
    return fields if simple and 0 < len(fields) <= _MAX_FIELDS else None


def _collect(schema: JsonSchema, place: tuple[str, ...], fields: dict[str, JsonSchema]) -> bool:
    here = schema_at(schema, place)
    if here is None or len(place) > _MAX_DEPTH:
        return False
    properties: Mapping[str, Any] = here.get("properties", {})
    if properties:
        names = [(*place, name) for name in properties if "." not in name]
        return len(names) == len(properties) and all(_collect(schema, name, fields) for name in names)
    if not place or here.get("type") == "object" or _holds_objects(schema_at(schema, (*place, 0)) or {}):
        return False
    fields[".".join(place)] = here
    return True


def _holds_objects(items: JsonSchema) -> bool:
    return bool(items.get("properties") or items.get("type") in ("object", "array"))
