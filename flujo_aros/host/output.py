"""The link between contracts and pydantic-ai: contracts as output types, and the text that pydantic-ai expects back
from `Aros`.

pydantic-ai may wrap a value in an object, validates it again, and returns its own version of the value.
"""

from __future__ import annotations

import itertools
import typing
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from inspect import isawaitable
from types import NoneType
from typing import Annotated, Any, Final, TypeVar, cast, get_args, get_origin
from weakref import WeakValueDictionary

from pydantic import AfterValidator, TypeAdapter
from pydantic_ai import (
    DeferredToolRequests,
    ModelRetry,
    NativeOutput,
    PromptedOutput,
    StructuredDict,
    TextOutput,
    ToolOutput,
)
from pydantic_ai.exceptions import UserError
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import ToolDefinition
from pydantic_core import from_json, to_json, to_jsonable_python

from flujo_aros.contract import (
    NOT_JSON,
    OF_CONTRACT,
    BlockContract,
    Check,
    Contract,
    Event,
    EventContract,
    Invalid,
    JsonSchema,
    Shape,
    TaggedContract,
    TypeValues,
    Valid,
    Values,
    Verdict,
    compile_contract,
    compile_schema,
    compile_shape,
    judge,
    name_of,
    parse_json,
)
from flujo_aros.errors import ContractError, UsageError
from flujo_aros.host.models import Once
from flujo_aros.host.spec import ENVELOPE, envelope_schema, follow_root_ref, object_schema
from flujo_aros.json_data import is_dict
from flujo_aros.outcome import Accepted, Degraded, Issue, Outcome, Reason, Rejected
from flujo_aros.reading.payload import apply_checks_async
from flujo_aros.reading.read import StreamReader, read

_TYPED: Final = ("text", "block", "event")
"""The contracts whose values are not plain JSON."""


class PlainValues:
    """The values of a contract as the plain JSON that produces them, optionally under the key of an envelope.

    A host validates values itself, so it must be given JSON: a typed value serialized to JSON may differ from the JSON
    that was read (secret strings, excluded or computed fields).
    """

    def __init__(self, inner: Values[Any], key: str | None = None) -> None:
        self._latest: tuple[Any, Any] | None = None
        self.inner = inner
        self.key = key
        self.json_schema: JsonSchema = inner.json_schema if key is None else envelope_schema(inner.json_schema, key)
        self.shape: Shape = inner.shape if key is None else compile_shape(self.json_schema)

    def strict_json(self, text: str) -> Verdict[Any] | None:
        """Judge a JSON text as written. Returns None if it is not JSON."""
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
        """Return the typed value created when exactly this plain value was read, but only once. None means that the
        value must be validated again.
        """
        latest, self._latest = self._latest, None  # removed on use, so that no reply is kept alive
        return Valid(latest[1]) if latest is not None and latest[0] is plain else None

    def strict(self, value: object) -> Valid[Any] | None:
        """Return the value if it satisfies everything as written, or None."""
        inner = value
        if self.key is not None:
            if not is_dict(value) or value.keys() != {self.key}:
                return None
            inner = value[self.key]
        return None if self.inner.strict(inner) is None else Valid(value)

    def validate(self, value: Any) -> Verdict[Any]:
        """Judge a JSON value."""
        if self.key is not None and not (is_dict(value) and self.key in value):
            return Invalid((Issue("$", "missing", f"expected an object with the key {self.key!r}"),))
        verdict = self.inner.validate(value if self.key is None else value[self.key])
        if self.key is None:
            return verdict if isinstance(verdict, Invalid) else Valid(value, verdict.conversions)
        if isinstance(verdict, Invalid):
            return Invalid(_add_envelope_key(verdict.issues, self.key))
        return Valid(value, _add_envelope_key(verdict.conversions, self.key))


@dataclass(frozen=True, slots=True)
class Wire:
    """The text between host and model: its contract, and its conversion to a value.

    `wanted` is the user's contract; without one, the host's own value is the value. `key` is the key of the envelope
    that the host has put around it, if any. A JSON contract has plain JSON on the wire. A contract whose payload is
    text, a block or an event has its value there, and so does the contract itself (`contract is wanted`) if the host
    only asks for the text of a reply.
    """

    contract: Contract[Any]
    wanted: Contract[Any] | None = None
    key: str | None = None
    awaited: tuple[Check, ...] = ()
    """The async checks of the contract, which reading cannot run."""
    as_written: bool = False
    """Whether the value is the text of the reply itself, even if that is a JSON string."""
    is_union: bool = False
    """Whether the host asks for one of several types, in an envelope that names the type."""
    wrapped: Callable[[Any], Any] | None = None
    """Puts a value into the envelope that the host expects and the reply does not have."""

    @classmethod
    def of(cls, contract: Contract[Any], *, wanted: bool, key: str | None = None) -> Wire:
        """Return the wire for a user's contract (`wanted`) or the host's own."""
        return _wires.get(_create_wire, contract, wanted, key)

    def without_envelope(self, text: str) -> Wire:
        """Return the wire for a reply that is the value itself, without the envelope that was asked for."""
        key = _UNION if self.is_union else self.key
        if key is None:
            return self
        bare = [wire for wire in self._bare(key, text) if lacks_envelope(text, wire.contract, key)]
        return bare[0] if len(bare) == 1 else self

    def _bare(self, key: str, text: str) -> Iterator[Wire]:
        """Yield a wire for each form of the value without its envelope."""
        schema, values = self.contract.json_schema, self.contract.values
        if isinstance(values, PlainValues):
            own = self.wanted or replace(self.contract, values=values.inner)
            wire = Wire.of(own, wanted=self.wanted is not None)
            yield replace(wire, awaited=self.awaited, wrapped=partial(_in_envelope, key))
            return
        union: JsonSchema = schema["properties"][key]
        defs = schema.get("$defs", {})
        if '"kind"' in text:
            yield Wire(compile_schema({**union, "$defs": defs}), wrapped=partial(_in_envelope, key))
            return
        for member in union["anyOf"]:
            data = compile_schema({**member["properties"]["data"], "$defs": defs})
            yield Wire(data, wrapped=partial(_in_union, member["properties"]["kind"]["const"]))

    def json_of(self, accepted: Accepted[Any]) -> Any:
        """Return the JSON value passed to the host for an accepted value."""
        if self.contract.mode != "json":
            return from_json(self.text_of(accepted))
        return accepted.value if self.wrapped is None else self.wrapped(accepted.value)

    def text_of(self, accepted: Accepted[Any]) -> str:
        """Return the text passed to the host for an accepted value."""
        value = accepted.value if self.wrapped is None else self.wrapped(accepted.value)
        if self.contract.mode == "text":
            return str(value)
        if self.contract.mode == "block" or (self.contract is self.wanted and not isinstance(value, Event)):
            return accepted.text
        if isinstance(value, Event):
            value = value.model_dump(mode="json", exclude_unset=True)
        return to_json(value, inf_nan_mode="constants").decode()

    def settled(self, outcome: Outcome[Any], host_value: Any) -> Outcome[Any]:
        """Return the outcome for the user: the typed value instead of plain JSON, and paths without the envelope."""
        if isinstance(outcome, Degraded):
            return replace(outcome, because=self._without_envelope(outcome.because))
        if isinstance(outcome, Rejected):
            return self._without_envelope(outcome)
        if self.as_written:
            return replace(outcome, value=outcome.text)
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
        repairs = tuple(replace(repair, path=self._path_without_envelope(repair.path)) for repair in outcome.repairs)
        return replace(outcome, value=value, repairs=repairs)

    def unsettled(self, outcome: Accepted[Any]) -> Accepted[Any]:
        """Return the outcome as seen between host and model, for a value that the user sees."""
        if self.contract is self.wanted:
            return outcome
        plain = to_jsonable_python(outcome.value, by_alias=True)
        return replace(outcome, value=plain if self.key is None else {self.key: plain})

    def _without_envelope(self, rejected: Rejected) -> Rejected:
        if self.wanted is None or self.key is None:
            return rejected
        return replace(
            rejected, issues=tuple(replace(i, path=self._path_without_envelope(i.path)) for i in rejected.issues)
        )

    def _path_without_envelope(self, path: str) -> str:
        start = f"$.{self.key}"
        return f"${path.removeprefix(start)}" if path.startswith((f"{start}.", f"{start}[")) or path == start else path


_UNION: Final = "result"
"""The key under which pydantic-ai asks for one of several types, as `{"kind": …, "data": …}`."""


def _is_union(schema: JsonSchema) -> bool:
    """Return whether the host asks with this schema for one of several types."""
    if schema.get("properties", {}).keys() != {_UNION}:
        return False
    members = [member.get("properties", {}) for member in schema["properties"][_UNION].get("anyOf", ())]
    return bool(members) and all(member.keys() == {"kind", "data"} and "const" in member["kind"] for member in members)


def lacks_envelope(text: str, contract: Contract[Any], key: str) -> bool:
    """Return whether a reply is a value by itself, without the envelope of this key around it."""
    shape = contract.shape
    inner = [shape.element(0)] if shape.allows("array") else []
    if shape.allows("object") and not shape.keys:
        inner.append(shape.member(key))
    is_loose = str in shape.takes_any or any(each.anything for each in inner)
    if f'"{key}"' in text or (is_loose and "{" in text):  # such a value may be an envelope with a misspelt key
        return False
    return isinstance(read(text, contract.at_once), Accepted)


def _in_envelope(key: str, value: Any) -> Any:
    return {key: value}


def _in_union(kind: str, value: Any) -> Any:
    return {_UNION: {"kind": kind, "data": value}}


_wires: Final = Once(256)


def _create_wire(contract: Contract[Any], wanted: bool, key: str | None) -> Wire:  # noqa: FBT001 (as `Wire.of` has it)
    own: Contract[Any] = contract.at_once
    sent = own
    if own.mode not in _TYPED:
        checks = tuple(_check_plain(check, own, key) for check in own.checks)
        sent = replace(own, values=PlainValues(own.values, key), checks=checks)
    return Wire(sent, own if wanted else None, key, contract.awaited)


def _check_plain(check: Check, contract: Contract[Any], key: str | None) -> Check:
    """Return a check of typed values, as a check of their plain JSON."""

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


def wire_of(
    definition: ToolDefinition | OutputObjectDefinition | None,
    wanted: Contract[Any] | None,
    like: Any = None,
    *,
    has_function: bool = False,
) -> Wire:
    """Return the wire for an output that the host asks for with this definition.

    `wanted` is the user's contract, if any. Otherwise it is the host's own type (`like`), so that its validators apply,
    and only its JSON Schema if the type is not known. `has_function` means that a function of the user turns the value
    into the output.
    """
    if isinstance(definition, ToolDefinition):
        schema = definition.parameters_json_schema
    else:
        schema = _ANY if definition is None else definition.json_schema
    return _wires.get(_wire_of_schema, schema, like, wanted, has_function)


def _wire_of_schema(schema: JsonSchema, like: Any, wanted: Contract[Any] | None, has_function: bool) -> Wire:  # noqa: FBT001
    if wanted is not None and wanted.mode in _TYPED:
        return Wire.of(wanted, wanted=True)
    if wanted is not None:
        return Wire.of(wanted, wanted=True, key=ENVELOPE if _is_envelope_of(schema, wanted.json_schema) else None)
    known = _type_contract(like)
    if known is not None and _same_shape(known.json_schema, schema):
        return Wire.of(known, wanted=False)
    if known is not None and not has_function and _is_envelope_of(schema, known.json_schema):
        return Wire.of(known, wanted=False, key=ENVELOPE)
    return Wire(compile_schema(schema), is_union=_is_union(schema))


_ANY: Final[JsonSchema] = {}


def _type_contract(like: Any) -> Contract[Any] | None:
    # A `StructuredDict` only validates that the value is a dict: its schema says more than its type.
    is_class = get_origin(like) is None  # `dict[str, int]` is as specific as its schema
    if like is None or (is_class and dict in getattr(like, "__mro__", ()) and not typing.is_typeddict(like)):
        return None
    try:
        return compile_contract(like)
    except ContractError:
        return None


def _same_shape(one: JsonSchema, other: JsonSchema) -> bool:
    one, other = follow_root_ref(one), follow_root_ref(other)
    return one.get("type") == other.get("type") == "object" and _members(one) == _members(other)


def _is_envelope_of(outer: JsonSchema, inner: JsonSchema) -> bool:
    if _members(outer) != {ENVELOPE} or _members(follow_root_ref(inner)) == {ENVELOPE}:
        return False
    held = follow_root_ref({**outer["properties"][ENVELOPE], "$defs": outer.get("$defs", {})})
    plain = follow_root_ref(inner)
    return all(held.get(word) == plain.get(word) for word in ("type", "enum", "const"))


def _members(schema: JsonSchema) -> set[str]:
    return set(schema.get("properties", {}))


def _add_envelope_key(issues: tuple[Issue, ...], key: str) -> tuple[Issue, ...]:
    return tuple(replace(issue, path=f"$.{key}{issue.path.removeprefix('$')}") for issue in issues)


T = TypeVar("T")

_PREFIX: Final = "aros_output_"
_numbers: Final = itertools.count(1)
_known: Final[WeakValueDictionary[str, Contract[Any]]] = WeakValueDictionary()
"""The contract of each text function, by its name: the only attribute of a function that pydantic-ai passes on."""
_settled: ContextVar[Accepted[Any] | None] = ContextVar("flujo_aros_settled_output", default=None)


def output_type(contract: Any) -> Any:
    """Return a contract as the `output_type` of a pydantic-ai agent: the result of `contract.as_output()`.

    A type is used as it is, and a schema as a `StructuredDict`, in the mode that suits the model; wrap it in
    `NativeOutput`, `PromptedOutput` or `ToolOutput` for another. A contract whose payload is part of the text is a
    `TextOutput`; without `Aros` on the agent, the host's own retries show the model its errors.
    """
    wanted = compile_contract(contract)
    if isinstance(wanted, (TaggedContract, BlockContract, EventContract)):
        return _text_output(wanted)
    if wanted.awaited:
        name = name_of(wanted.awaited[0])
        message = f"the check {name} is async, which a type cannot await: pass the contract to Aros(…) or to a step"
        raise UsageError(message)
    schema = wanted.json_schema
    if isinstance(wanted.values, TypeValues):
        like = wanted.values.like
    else:  # the host would wrap a schema of a different type in an envelope, and not unwrap the value
        like = structured(schema) if schema and object_schema(schema) == schema else None
    if like is None or isinstance(like, TypeAdapter):
        return _text_output(wanted)
    return Annotated[like, AfterValidator(partial(_apply_checks, wanted))] if wanted.checks else like


def structured(schema: JsonSchema) -> Any:
    """Return a type with this object schema for the host to request, or None for a recursive one, which it cannot
    express.
    """
    try:
        return StructuredDict(schema)
    except UserError:
        return None


def _apply_checks(contract: Contract[Any], value: Any) -> Any:
    clean, issues, _ = judge(value, contract.checks, contract)
    if issues:
        message = "; ".join(issue.message for issue in issues)
        raise ValueError(message)
    return clean


class ContractOutput(TextOutput[T]):
    """A text function of the host for a contract, which returns the typed value when called."""

    async def __call__(self, text: str) -> T:
        """Return the value in a text. Raises `ModelRetry` with its errors."""
        value: T = await cast("Callable[[str], Awaitable[T]]", self.output_function)(text)
        return value


def _text_output(contract: Contract[T]) -> ContractOutput[T]:
    async def as_value(text: str) -> Any:
        settled = _settled.get()
        if settled is not None:
            return settled.value
        outcome = await apply_checks_async(read(text, contract.at_once), contract.awaited, contract)
        if isinstance(outcome, Accepted):
            return outcome.value
        raise ModelRetry(outcome.feedback() if outcome.kind == "rejected" else outcome.because.feedback())

    as_value.__name__ = as_value.__qualname__ = f"{_PREFIX}{next(_numbers)}"
    _known[as_value.__name__] = contract
    return ContractOutput(as_value)


def contract_of(function_name: str | None) -> Contract[Any] | None:
    """Return the contract of a text function of the host, if it was created here."""
    return _known.get(function_name) if function_name else None


def model_contract(like: Any) -> Contract[Any] | None:
    """Return the event contract whose strict model this type is; a subclass has its own rules."""
    found: Contract[Any] | None = vars(like).get(OF_CONTRACT) if isinstance(like, type) else None
    return found


def agent_contract(like: Any) -> Contract[Any] | None:
    """Return the contract that an agent has as its output type."""
    if isinstance(like, TextOutput):
        return contract_of(getattr(cast("Any", like).output_function, "__name__", None))
    return model_contract(_single(like))


def wanted_by_agent(like: Any) -> Any:
    """Return the contract or the type of an agent's output, or None for several types and for functions."""
    single = _single(like)
    return agent_contract(like) or (single if isinstance(single, type) or get_origin(single) is not None else None)


def output_contract(like: Any) -> Contract[Any] | None:
    """Return the contract of the values of an output type, or None for several types, functions and plain dicts."""
    return _type_contract(wanted_by_agent(like))


def shown_contract(like: Any) -> Contract[Any] | None:
    """Return the form of partial replies for this output type, or None for text and for several alternatives."""
    named, single = agent_contract(like), _single(like)
    if isinstance(like, TextOutput) or not isinstance(single, type) or issubclass(single, str):
        return named
    try:
        contract: Contract[Any] = named or compile_contract(cast("type[Any]", single))
    except ContractError:
        return None
    # any other value is in an envelope
    return contract if object_schema(contract.json_schema) == contract.json_schema else None


def without_deferral(like: Any) -> Any:
    """Return an output type without `DeferredToolRequests`, or the type itself if nothing else would be left."""
    several = cast("Sequence[Any]", like) if isinstance(like, (list, tuple)) else get_args(like)
    if DeferredToolRequests not in several:
        return cast("Any", like)
    others = [each for each in several if each is not DeferredToolRequests]
    return others[0] if len(others) == 1 else others


def _single(like: Any) -> Any:
    """Return the type without the host's markers for output modes and without deferred calls."""
    like = without_deferral(like)
    if isinstance(like, (NativeOutput, PromptedOutput)):
        return cast("Any", like).outputs
    return cast("Any", like).output if isinstance(like, ToolOutput) else like


def allows_nothing(like: Any) -> bool:
    """Return whether an output type accepts an empty reply: it is None or includes None."""
    parts: Any = getattr(like, "outputs", getattr(like, "output", None)) or get_args(like) or like
    several: Sequence[Any] = cast("Sequence[Any]", parts) if isinstance(parts, (list, tuple)) else (parts,)
    return any(part in (None, NoneType) or (part is not like and allows_nothing(part)) for part in several)


@contextmanager
def without_second_read(accepted: Outcome[Any]) -> Generator[None]:
    """Make the text functions return this value instead of reading the text again."""
    token = _settled.set(accepted if isinstance(accepted, Accepted) else None)
    try:
        yield
    finally:
        _settled.reset(token)


_NOTHING: Final = " "
"""Text that is not JSON. An empty string would mean an empty object to the host."""


class PartialOutput:
    """An output that the host validates repeatedly while it streams. Each piece of it is read once."""

    def __init__(self) -> None:
        self._contract: Contract[Any] | None = None
        self._text = ""
        self._json = _NOTHING
        self._reader: StreamReader[Any] | None = None

    def json_of(self, text: str, contract: Contract[Any]) -> str:
        """Return the value so far as JSON, even if the reply is damaged or begins with prose."""
        if self._reader is None or contract is not self._contract or not text.startswith(self._text):
            self._contract, self._reader = contract, StreamReader(contract)
            self._text, self._json = "", _NOTHING
        partial = self._reader.feed(text[len(self._text) :])
        self._text = text
        if partial is not None:
            preview = partial.value
            self._json = _NOTHING if preview is None else to_json(preview, inf_nan_mode="constants").decode()
        return self._json
