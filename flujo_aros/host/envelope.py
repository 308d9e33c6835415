"""The text between host and model: the host may wrap a value in an object, and expects JSON text back."""

from __future__ import annotations

import copy
import typing
from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic_core import to_json, to_jsonable_python

from flujo_aros.contract import (
    NOT_JSON,
    Check,
    Contract,
    Event,
    Invalid,
    JsonSchema,
    Shape,
    Valid,
    Values,
    Verdict,
    compile_contract,
    compile_shape,
    name_of,
    parse_json,
)
from flujo_aros.errors import ContractError
from flujo_aros.json_data import References, is_dict
from flujo_aros.outcome import Accepted, Degraded, Issue, Outcome, Reason, Rejected

if TYPE_CHECKING:  # the linter needs the form of a schema, and no model host for it
    from pydantic_ai.output import OutputContext

ENVELOPE: Final = "response"
"""The key under which the host asks for a value that is not an object."""
_TYPED: Final = ("text", "block", "event")
"""The contracts whose values are not plain JSON."""


class PlainValues:
    """The values of a contract as the plain JSON that produces them, optionally under the key of an envelope.

    A host validates by itself, so it must be given JSON: a typed value written back as JSON may differ from what was
    read (secret strings, excluded fields, computed fields).
    """

    def __init__(self, inner: Values[Any], key: str | None = None) -> None:
        self._latest: tuple[Any, Any] | None = None
        self.inner = inner
        self.key = key
        self.json_schema: JsonSchema = inner.json_schema if key is None else envelope_schema(inner.json_schema, key)
        self.shape: Shape = inner.shape if key is None else compile_shape(self.json_schema)

    def strict_json(self, text: str) -> Verdict[Any] | None:
        """Judge a JSON text as written. None if it is not JSON."""
        plain: Any = parse_json(text)
        if plain is NOT_JSON:
            return None
        if self.key is not None:
            return self.strict(plain)
        typed = self.inner.strict_json(text)
        if not isinstance(typed, Valid):
            return typed
        self._latest = (plain, typed.value)
        return Valid(plain)

    def typed(self, plain: Any) -> Valid[Any] | None:
        """The typed value created from exactly this plain value when it was read, once. None: validate again."""
        latest, self._latest = self._latest, None  # used once, so that no reply is kept alive
        return Valid(latest[1]) if latest is not None and latest[0] is plain else None

    def strict(self, value: object) -> Valid[Any] | None:
        """The value if it satisfies everything as written, or None."""
        if self.key is None:
            return None if self.inner.strict(value) is None else Valid(value)
        if not is_dict(value) or value.keys() != {self.key}:
            return None
        return None if self.inner.strict(value[self.key]) is None else Valid(value)

    def validate(self, value: Any) -> Verdict[Any]:
        """Judge a JSON value."""
        if self.key is not None and self.key not in _keys(value):
            return Invalid((Issue("$", "missing", f"expected an object with the key {self.key!r}"),))
        verdict = self.inner.validate(value if self.key is None else value[self.key])
        if self.key is None:
            return verdict if isinstance(verdict, Invalid) else Valid(value, verdict.conversions)
        if isinstance(verdict, Invalid):
            return Invalid(_moved(verdict.issues, self.key))
        return Valid(value, _moved(verdict.conversions, self.key))


@dataclass(frozen=True, slots=True)
class Wire:
    """What a text between host and model must contain (`contract`), and how it becomes a value.

    `wanted` is the contract that the user has named; without one the host's own value is the value. `key` is that of
    the envelope that the host has put around it, if any. A contract of JSON gives plain JSON on the wire; one whose
    payload is text, a block or an event gives its value there, and so does the contract itself (`contract is wanted`)
    where the host asks for no more than the text of a reply.
    """

    contract: Contract[Any]
    wanted: Contract[Any] | None = None
    key: str | None = None
    awaited: tuple[Check, ...] = ()
    """The async checks of the contract, which reading cannot run."""

    @classmethod
    def of(cls, contract: Contract[Any], *, wanted: bool, key: str | None = None) -> Wire:
        """The wire for a user's contract (`wanted`) or the host's own."""

        def make() -> Wire:
            return replace(cls._made(contract.at_once, wanted=wanted, key=key), awaited=contract.awaited)

        return _once((id(contract), wanted, key), contract, make)

    @classmethod
    def _made(cls, contract: Contract[Any], *, wanted: bool, key: str | None) -> Wire:
        if contract.mode in _TYPED:
            return cls(contract, contract if wanted else None, key)
        checks = tuple(_of_plain(check, contract, key) for check in contract.checks)
        plain = replace(contract, values=PlainValues(contract.values, key), checks=checks)
        return cls(plain, contract if wanted else None, key)

    def text_of(self, accepted: Accepted[Any]) -> str:
        """The text passed to the host for an accepted value."""
        value = accepted.value
        if self.contract.mode == "text":
            return str(value)
        if self.contract.mode == "block" or (self.contract is self.wanted and not isinstance(value, Event)):
            return accepted.text
        if isinstance(value, Event):
            value = value.model_dump(mode="json", exclude_unset=True)
        return to_json(value, inf_nan_mode="constants").decode()

    def settled(self, outcome: Outcome[Any], host_value: Any) -> Outcome[Any]:
        """The outcome for the user: the typed value instead of plain JSON, and paths without the envelope."""
        if isinstance(outcome, Degraded):
            return replace(outcome, because=self._refused(outcome.because))
        if isinstance(outcome, Rejected):
            return self._refused(outcome)
        if self.contract is self.wanted:
            return outcome
        if self.wanted is None:
            return replace(outcome, value=host_value)
        plain = outcome.value if self.key is None else outcome.value[self.key]
        values = self.contract.values
        verdict = (isinstance(values, PlainValues) and values.typed(plain)) or self.wanted.validate(plain)
        if isinstance(verdict, Invalid):  # a user's validator that is not deterministic
            return Rejected(Reason.INVALID, verdict.issues, outcome.text)
        value = verdict.value
        if self.key is None:
            return replace(outcome, value=value)
        repairs = tuple(replace(repair, path=self._inside(repair.path)) for repair in outcome.repairs)
        return replace(outcome, value=value, repairs=repairs)

    def unsettled(self, outcome: Accepted[Any]) -> Accepted[Any]:
        """The outcome as seen between host and model, for a value that the user sees."""
        if self.contract is self.wanted:
            return outcome
        plain = to_jsonable_python(outcome.value, by_alias=True)
        return replace(outcome, value=plain if self.key is None else {self.key: plain})

    def _refused(self, rejected: Rejected) -> Rejected:
        if self.wanted is None or self.key is None:
            return rejected
        return replace(rejected, issues=tuple(replace(i, path=self._inside(i.path)) for i in rejected.issues))

    def _inside(self, path: str) -> str:
        start = f"$.{self.key}"
        return f"${path.removeprefix(start)}" if path.startswith((f"{start}.", f"{start}[")) or path == start else path


_wires: Final[dict[tuple[object, ...], tuple[object, Wire]]] = {}
_MOST_WIRES: Final = 256


def _once(key: tuple[object, ...], parts: object, make: Callable[[], Wire]) -> Wire:
    """The wire made earlier for this key, or a new one. The key names objects by identity; `parts` keeps them alive."""
    known = _wires.get(key)
    if known is None:
        if len(_wires) >= _MOST_WIRES:
            _wires.clear()
        known = _wires[key] = parts, make()
    return known[1]


def _of_plain(check: Check, contract: Contract[Any], key: str | None) -> Check:
    """A check of typed values, as a check of their plain JSON."""

    def of_plain(plain: Any) -> Any:
        verdict = contract.validate(plain if key is None else plain[key])
        if isinstance(verdict, Invalid):
            return None
        found = check(verdict.value)
        if found is None or isinstance(found, (bool, str, Issue)) or isawaitable(found):
            return found
        clean = to_jsonable_python(found, by_alias=True)
        return clean if key is None else {key: clean}

    of_plain.__name__ = name_of(check)
    return of_plain


def host_wire(output: OutputContext, wanted: Contract[Any] | None, *, with_context: bool) -> Wire:
    """The contract for the text of this host output. `wanted` is the contract named by the user, if any.

    `wanted` is the contract that the user has named, if any. Else the host's own type is taken, so that its
    validators count; and only its JSON Schema where the type is not known, or where it can be judged by the host
    alone (`with_context`: its validators want the validation context of the run).
    """
    if output.tool_def is not None:
        schema = output.tool_def.parameters_json_schema
    else:
        schema = _ANY if output.object_def is None else output.object_def.json_schema
    like, has_function = output.output_type, output.has_function

    def make() -> Wire:
        if wanted is not None and wanted.mode in _TYPED:
            return Wire.of(wanted, wanted=True)
        if wanted is not None:
            return Wire.of(wanted, wanted=True, key=ENVELOPE if _is_envelope_of(schema, wanted.json_schema) else None)
        known = None if with_context else _type_contract(like)
        if known is not None and _same_shape(known.json_schema, schema):
            return Wire.of(known, wanted=False)
        if known is not None and not has_function and _is_envelope_of(schema, known.json_schema):
            return Wire.of(known, wanted=False, key=ENVELOPE)
        return Wire(compile_contract(schema))

    return _once((id(schema), id(like), id(wanted), has_function, with_context), (schema, like, wanted), make)


_ANY: Final[JsonSchema] = {}


def object_schema(schema: JsonSchema) -> JsonSchema:
    """A copy of an object schema in the form that hosts expect; a schema of another type is wrapped."""
    own = copy.deepcopy(schema)
    return own if _followed(own).get("type") == "object" else envelope_schema(own, ENVELOPE)


def envelope_schema(schema: JsonSchema, key: str) -> JsonSchema:
    """The schema of an object that has such a value under this key; definitions move to the new root."""
    inner = {name: part for name, part in schema.items() if name not in ("$defs", "definitions", "$schema", "$id")}
    outer: JsonSchema = {"type": "object", "properties": {key: inner}, "required": [key], "additionalProperties": False}
    for name in ("$defs", "definitions"):
        if name in schema:
            outer[name] = schema[name]
    return outer


def _type_contract(like: Any) -> Contract[Any] | None:
    # A `StructuredDict` validates nothing but that it is a dict: its schema says more than its type.
    if like is None or (dict in getattr(like, "__mro__", ()) and not typing.is_typeddict(like)):
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
    """The target of a root `$ref`."""
    ref = schema.get("$ref")
    found = References(schema).resolve(ref) if isinstance(ref, str) else None
    return schema if found is None else found


def _keys(value: object) -> set[str]:
    return set(cast("dict[str, Any]", value)) if isinstance(value, dict) else set()


def _moved(issues: tuple[Issue, ...], key: str) -> tuple[Issue, ...]:
    return tuple(replace(issue, path=f"$.{key}{issue.path.removeprefix('$')}") for issue in issues)
