"""The kinds of contracts, `Output`, and their written form; `Block` and `Event`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from types import FunctionType
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Generic,
    Literal,
    NamedTuple,
    NoReturn,
    TypeAlias,
    TypeGuard,
    TypeVar,
    cast,
    overload,
)

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, TypeAdapter, create_model, model_serializer
from pydantic_core import PydanticSerializationError, to_jsonable_python

from flujo_aros.configured import short_repr
from flujo_aros.contract.checks import Check, fields_in, is_async, names_of, scores_of, winner_in
from flujo_aros.contract.misspelt import require_constraint
from flujo_aros.contract.schema import JsonSchema, Shape
from flujo_aros.contract.validators import Invalid, SchemaValues, TypeValues, Valid, Values, Verdict, fingerprint
from flujo_aros.errors import ContractError
from flujo_aros.outcome import Issue, Risk
from flujo_aros.spelling import nearest, short, short_value

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Block:
    """The leading JSON object of a reply, and the prose after it. `fields` is empty if the block key is blank."""

    fields: JsonObject
    prose: str


PLACEHOLDER: Final = "…"
"""The text of an event whose reply contained no usable text."""
_MARKS: Final = " \n.…-–—_*`\"'“”‘’"
"""Characters that only fill or surround text that has not been written yet."""


def is_blank(text: str) -> bool:
    """Return whether a text is empty, or has only dots, dashes and quotation marks.

    >>> is_blank("“…”"), is_blank("?")
    (True, False)
    """
    return not text.strip(_MARKS)


class Event(BaseModel):
    """One event: its kind, its text, and any further fields.

    Further fields are available as attributes and in `model_extra`. `winner` and `scores` are typed if present.
    """

    model_config = ConfigDict(extra="allow", protected_namespaces=())

    kind: str
    text: str
    winner: str | None = None
    scores: dict[str, float] | None = {}

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return a further field, as the model wrote it."""

    @model_serializer(mode="wrap")
    def _drop_empty_verdict(self, plain: SerializerFunctionWrapHandler) -> JsonObject:
        """Omit unset verdict fields from the dump: most events have none."""
        dumped: JsonObject = plain(self)
        return {
            name: value for name, value in dumped.items() if name in self.model_fields_set or name not in WELL_KNOWN
        }

    @property
    def is_raw_fallback(self) -> bool:
        """Whether the model wrote prose instead of an event, and the event was built from that prose."""
        return bool((self.model_extra or {}).get("_raw_fallback"))

    @property
    def is_no_contest(self) -> bool:
        """Whether the event names no winner because none could be determined."""
        return bool((self.model_extra or {}).get("no_contest"))

    @property
    def says_nothing(self) -> bool:
        """Whether the text is a placeholder, because the reply contained no usable text."""
        return is_blank(self.text)


class WrittenEvent(BaseModel):
    """An event as a model may write it: the kind may be missing or wrong."""

    model_config = ConfigDict(extra="allow", protected_namespaces=())

    kind: str | None = None
    text: str
    winner: str | None = None
    scores: dict[str, float] | None = None


class LooseEvent(BaseModel):
    """An event with values of any type in the fields that can be cleaned."""

    model_config = ConfigDict(extra="allow", protected_namespaces=())

    kind: Any = None
    text: str
    winner: Any = None
    scores: Any = None


EventT = TypeVar("EventT", bound=BaseModel)


def written_model(fields: tuple[str, ...], base: type[EventT]) -> type[EventT]:
    """Return `base` with these further fields, which may be absent."""
    further: dict[str, Any] = {name: (Any, None) for name in fields if name not in base.model_fields}
    return create_model(base.__name__, __base__=base, **further) if further else base


WELL_KNOWN: Final[dict[str, Any]] = {"winner": (str | None, None), "scores": (dict[str, float], {})}
"""Fields of a verdict: typed, and never required."""


def event_model(kinds: tuple[str, ...], fields: tuple[str, ...]) -> type[Event]:
    """Return the model of a strict event: its kind is one of these, and its text and all further fields are strings.

    Its schema has the verdict fields only if they are in `fields`, because an LLM fills in every field that it sees.
    """
    members: dict[str, Any] = {name: WELL_KNOWN.get(name, (str, ...)) for name in fields}
    members["kind"] = (Literal[kinds], ...)
    unasked = [name for name in WELL_KNOWN if name not in fields]

    class Asked(Event):
        model_config = ConfigDict(json_schema_extra=lambda schema: _drop_properties(schema, unasked))

    return create_model("Event", __base__=Asked, **members)


def _drop_properties(schema: JsonObject, names: list[str]) -> None:
    for name in names:
        schema["properties"].pop(name, None)


EXAMPLE: Final = "A lantern hums behind the closed door."
"""The text of the example event, which is never meant as an answer."""
_SLOTS: Final[dict[str, Any]] = {"winner": "<a name, or null>", "scores": {"<name>": "<number>"}}


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


_ATTRIBUTE: Final = r"\s{1,9}[\w:.-]{1,80}\s?=\s?(?:\"[^\"<]{0,200}\"|'[^'<]{0,200}'|[^\s\"'<>]{1,200})"


Mode: TypeAlias = Literal["json", "tagged", "text", "block", "event"]


OF_CONTRACT: Final = "__aros_contract__"
"""The attribute that links the strict model of an event contract to the contract."""


class Counts(NamedTuple):
    """The required keys of an object.

    All others are optional: their values may be repaired or dropped, and the text after the last of the `needed` keys
    may be unreadable.
    """

    keys: frozenset[str]
    needed: frozenset[str]


@dataclass(frozen=True)
class JsonContract(Generic[T_co]):
    """The reply contains one JSON value. Created by `Output.json`."""

    values: Values[T_co]
    mode: Mode = "json"
    risk: Risk = Risk.INFERRED
    """The highest risk of a repair before the reply is rejected, unless the call says otherwise."""
    checks: tuple[Check, ...] = field(default=(), kw_only=True)
    """Requirements beyond the schema, checked once a value has been read."""
    counts: Counts | None = field(default=None, kw_only=True)
    """The required keys of the root object, if all others are optional, or None if every key is required."""

    __repr__ = short_repr

    @cached_property
    def json_schema(self) -> JsonSchema:
        """The JSON Schema of the payload, or an empty schema if any value is allowed."""
        return self.values.json_schema

    @cached_property
    def shape(self) -> Shape:
        """The schema in the reader's form."""
        return self.values.shape

    @cached_property
    def fingerprint(self) -> str:
        """A short stable hash of mode and schema (`schema_hash` in telemetry)."""
        return fingerprint({"mode": self.mode, "schema": self.json_schema, **self.where()})

    def where(self) -> JsonSchema:
        """Return plain JSON that describes, beyond the schema, where the payload is."""
        return {}

    def options(self) -> JsonSchema:
        """Return other arguments of `Output.*` that differ from their defaults, and the risk."""
        default = Risk.LOSSLESS if self.mode in ("tagged", "text", "block") else Risk.INFERRED
        return {} if self.risk is default else {"risk": self.risk.name.lower()}

    def instruction(self) -> str:
        """Return the prompt instructions that request this output."""
        if not self.json_schema:
            return "Answer with one JSON value and nothing else."
        return (
            "Answer with one JSON value that matches this JSON Schema, and nothing else: no prose, no Markdown fence.\n"
            f"{json.dumps(self.json_schema, ensure_ascii=False)}"
        )

    def as_output(self) -> Callable[..., T_co]:
        """Return this contract as the output type of a pydantic-ai agent: `result.output` is then the typed value.

        ```python
        agent = Agent(model, output_type=Output.tagged("result", Order).as_output(), capabilities=[Aros()])
        ```
        """
        # through the public name, because the host is above this layer and loads lazily
        from flujo_aros import output_type

        like: Callable[..., T_co] = output_type(self)
        return like

    @cached_property
    def awaited(self) -> tuple[Check, ...]:
        """The async checks, which an agent or a step awaits."""
        return tuple(check for check in self.checks if is_async(check))

    @cached_property
    def at_once(self) -> JsonContract[T_co]:
        """The contract without its async checks, so that sync code can read with it."""
        if not self.awaited:
            return self
        return replace(self, checks=tuple(check for check in self.checks if not is_async(check)))

    def validate(self, value: object) -> Verdict[T_co]:
        """Validate a JSON value. Never raises for bad data."""
        return self.values.validate(value)

    def revalidate(self, value: Any) -> Verdict[T_co]:
        """Validate a value that code has made, such as a check or a fallback: one of this type, or plain JSON. Nothing
        is converted.

        A value of the type is not written as JSON and read again, because its serializers need not write what its
        validators read.
        """
        if isinstance(self.values, TypeValues) and self.values.has_type(value):
            return Valid(value)
        try:
            plain = to_jsonable_python(value, inf_nan_mode="constants")
        except (PydanticSerializationError, UnicodeDecodeError):
            return Invalid((Issue("$", "type", f"{short_value(value)} is not a JSON value"),))
        verdict = self.validate(plain)
        return Invalid(verdict.conversions) if isinstance(verdict, Valid) and verdict.conversions else verdict


@dataclass(frozen=True, repr=False)
class TaggedContract(JsonContract[T_co]):
    """The payload is between `<tag>` and `</tag>`; the last complete pair counts. Created by `Output.tagged`."""

    tag: str = ""
    strict: bool = True
    """Accept only valid JSON (in one optional fence), without any repair."""
    max_retries: int = field(default=0, kw_only=True)
    """The number of times that the model is shown the errors and asked again, in the same conversation."""

    @property
    def opening(self) -> str:
        """The opening tag, which the prompt must name."""
        return f"<{self.tag}>"

    @cached_property
    def opens(self) -> re.Pattern[str]:
        """Matches the opening tag in any case and with attributes, as models write it."""
        return re.compile(rf"<(?i:{re.escape(self.tag)})(?:{_ATTRIBUTE}){{0,20}}\s{{0,9}}>")

    @cached_property
    def closes(self) -> re.Pattern[str]:
        """Matches the closing tag, in any case."""
        return re.compile(rf"</(?i:{re.escape(self.tag)})\s{{0,9}}>")

    def where(self) -> JsonSchema:
        """Return the tag."""
        return {"tag": self.tag, "strict": self.strict}

    def options(self) -> JsonSchema:
        """Return the options, `max_retries` included."""
        return super().options() | ({"max_retries": self.max_retries} if self.max_retries else {})

    def instruction(self) -> str:
        """Return the prompt instructions that request this output; they name the opening tag."""
        if self.mode == "text":
            return f"Write your answer between <{self.tag}> and </{self.tag}>."
        schema = json.dumps(self.json_schema, ensure_ascii=False)
        what = f" that matches this JSON Schema:\n{schema}" if self.json_schema else "."
        return f"Write your final answer between <{self.tag}> and </{self.tag}>, as one JSON value{what}"


@dataclass(frozen=True, repr=False)
class BlockContract(JsonContract[Block]):
    """The reply begins with a JSON object that has certain keys; prose follows. Created by `Output.block`."""

    block_key: str = ""
    required: tuple[str, ...] = ()

    @cached_property
    def json_schema(self) -> JsonSchema:
        """The schema of the block, or an empty schema if the block key is blank."""
        if not self.keys:
            return {}
        return {"type": "object", "properties": {key: {} for key in self.keys}, "required": list(self.keys)}

    def where(self) -> JsonSchema:
        """Return the keys that the block must have."""
        return {"keys": list(self.keys)}

    @property
    def keys(self) -> tuple[str, ...]:
        """All keys that the block must have; if there are none, every reply satisfies the contract."""
        return (self.block_key, *self.required) if self.block_key else ()

    def revalidate(self, value: Any) -> Verdict[Block]:
        """Validate a block that code has made, which must also have the keys."""
        verdict = super().revalidate(value)
        lacking = [key for key in self.keys if isinstance(verdict, Valid) and verdict.value.fields.get(key) is None]
        missing = (Issue(f"$.{key}", "missing", f"the required key {key!r} is missing") for key in lacking)
        return Invalid(tuple(missing)) if lacking else verdict

    def instruction(self) -> str:
        """Return the prompt instructions that request this output, or an empty string if the block key is blank."""
        if not self.keys:
            return ""
        keys = json.dumps(dict.fromkeys(self.keys, "…"), ensure_ascii=False)
        form = f"Begin your answer with one JSON object with these keys, none of them null: {keys}"
        return f"{form}\nThen continue in prose."


@dataclass(frozen=True, repr=False)
class EventContract(JsonContract[Event]):
    """The reply is one event of an allowed kind; prose is used as its text. Created by `Output.event`."""

    kinds: tuple[str, ...] = ()
    fallback: str = ""
    fields: tuple[str, ...] = ()
    example: str = EXAMPLE
    """The text of the example in the instruction. A reply that repeats it is rejected."""
    required: tuple[str, ...] = ()
    """The fields that the model is asked for once more if they are missing. Those still missing are left empty and
    marked.
    """

    @cached_property
    def model(self) -> type[Event]:
        """The event as a strict pydantic model, for a provider or a client that enforces a schema.

        `kind` is a literal of the kinds, and `text` and the further fields are required; `winner` and `scores`
        are typed and optional.
        """
        model = event_model(self.kinds, self.fields)
        setattr(model, OF_CONTRACT, self)  # lets an agent with this output type enforce the whole contract
        return model

    @property
    def judges_winner(self) -> bool:
        """Whether the winner is required: it is requested or checked, not just an optional field."""
        return bool(self.checks) or "winner" in self.fields

    @cached_property
    def written(self) -> JsonContract[WrittenEvent]:
        """The event as a model may write it: with any kind, or none."""
        return JsonContract(cast("Values[WrittenEvent]", self.values), "json", self.risk)

    @cached_property
    def loose(self) -> JsonContract[LooseEvent]:
        """The same event with any type in the fields that can be cleaned: kind, winner and all optional fields."""
        needed = frozenset({"kind", "text", "winner"} if self.is_verdict else {"kind", "text"})
        counts = Counts(needed | {"winner"} if self.judges_winner else needed, needed)
        values = TypeValues[LooseEvent](written_model(self.fields, LooseEvent))
        return JsonContract(values, "json", self.risk, counts=counts)

    @property
    def is_verdict(self) -> bool:
        """Whether a winner is requested."""
        return "winner" in self.fields

    @cached_property
    def json_schema(self) -> JsonSchema:
        """The schema of `model`."""
        return self.model.model_json_schema()

    def revalidate(self, value: Any) -> Verdict[Event]:
        """Validate an event that code has made, which must be of one of the kinds."""
        verdict = compile_contract(Event).revalidate(value)
        if isinstance(verdict, Invalid) or verdict.value.kind in self.kinds:
            return verdict
        found = f"must be one of {', '.join(self.kinds)}, found {short(verdict.value.kind)}"
        return Invalid((Issue("$.kind", "kind", found),))

    def where(self) -> JsonSchema:
        """Return the kinds and the fallback kind."""
        return {"kinds": list(self.kinds), "fallback": self.fallback}

    def options(self) -> JsonSchema:
        """Return the fields, which of them are required, and the example."""
        found = {"fields": list(self.fields), "required": list(self.required)}
        example = {} if self.example == EXAMPLE else {"example": self.example}
        return super().options() | {name: names for name, names in found.items() if names} | example

    def instruction(self) -> str:
        """Return the prompt instructions that request this output, with an example."""
        form: dict[str, Any] = {"kind": "...", "text": "..."} | {name: _SLOTS.get(name, "...") for name in self.fields}
        example = {"kind": self.kinds[0], "text": self.example}
        example |= {name: f"<{name}>" for name in self.fields if name not in _SLOTS}
        return (
            "OUTPUT FORMAT\n"
            "Answer with one JSON object and nothing else: no prose before or after it.\n"
            f"Form: {json.dumps(form, ensure_ascii=False)}\n"
            f"`kind` is one of: {' | '.join(self.kinds)}\n"
            "`text` is one or two sentences, vivid and specific.\n"
            f"Example (never repeat it): {json.dumps(example, ensure_ascii=False)}"
        )


Contract: TypeAlias = JsonContract[T_co]
ContractLike: TypeAlias = Contract[T_co] | type[T_co] | TypeAdapter[T_co] | JsonSchema | bool


class _Forms(type):
    if not TYPE_CHECKING:  # type checkers report unknown forms themselves

        def __getattr__(cls, name: str) -> object:
            hint = _OTHER_FORMS.get(name) or nearest(name, _OPTIONS)
            raise AttributeError(f"Output has no {name!r}{hint}")


_OTHER_FORMS: Final = {
    "object": "; write Output.tagged(tag, type) for JSON between tags, or Output.json(type)",
    "array": "; write Output.tagged(tag, list[type]) for JSON between tags, or Output.json(list[type])",
    "string": "; write Output.text(tag)",
}
"""Names of other systems, and what to write instead."""


class Output(metaclass=_Forms):
    """Creates contracts: each defines the location of the payload and the requirements for its value."""

    @overload
    @staticmethod
    def json(like: type[T] | TypeAdapter[T]) -> JsonContract[T]: ...
    @overload
    @staticmethod
    def json(like: Any) -> JsonContract[Any]: ...
    @staticmethod
    def json(like: Any) -> JsonContract[Any]:
        """Create a contract for a reply that contains one JSON value of this type.

        `like` is a pydantic model or any type, a `TypeAdapter`, or a JSON Schema as a dict (`{}` or `True`: any JSON
        value). Raises `ContractError` if it cannot be compiled, and for a schema that accepts every value because its
        keyword is misspelt (`propertys`), or because it has none (`{"qty": "int"}`).

        >>> Output.json({"type": "integer"}).json_schema
        {'type': 'integer'}
        """
        if like is False:
            raise ContractError("the schema `false` allows no value")
        if like is True:
            return JsonContract(SchemaValues({}))
        if isinstance(like, dict):
            contract = compile_schema(cast("JsonSchema", like))
            require_constraint(contract.json_schema)
            return contract
        if isinstance(like, FunctionType):
            raise ContractError(
                f"the function {like.__name__} is not a contract: pass the type that it returns, or a schema"
            )
        return JsonContract(TypeValues[Any](like))

    @overload
    @staticmethod
    def tagged(
        tag: str, like: type[T] | TypeAdapter[T], *, strict: bool = True, max_retries: int = 0
    ) -> TaggedContract[T]: ...
    @overload
    @staticmethod
    def tagged(tag: str, like: Any, *, strict: bool = True, max_retries: int = 0) -> TaggedContract[Any]: ...
    @staticmethod
    def tagged(tag: str, like: Any, *, strict: bool = True, max_retries: int = 0) -> TaggedContract[Any]:
        """Create a contract for one JSON value between `<tag>` and `</tag>`; the last complete pair counts.

        One fence around the payload is allowed; `strict=False` also allows lossless repairs. `max_retries` is the
        number of times that the model is shown its errors and asked again, in the same conversation. The prompt must
        name the opening tag. `like` is as in `json`. Raises `ContractError` for a blank tag, and unless `max_retries`
        is a whole number of at least 0.
        """
        if not isinstance(cast("object", strict), bool):
            raise ContractError(f"strict must be true or false, not {strict!r}")
        name, retries = _trimmed(tag), _whole(max_retries, "max_retries")
        return TaggedContract(Output.json(like).values, "tagged", Risk.LOSSLESS, name, strict, max_retries=retries)

    @staticmethod
    def text(tag: str, *, max_retries: int = 0) -> TaggedContract[str]:
        """Create a contract for the text between `<tag>` and `</tag>`, never parsed; empty text is rejected.

        `max_retries` is as in `tagged`.
        """
        retries = _whole(max_retries, "max_retries")
        return TaggedContract(TypeValues[str](str), "text", Risk.LOSSLESS, _trimmed(tag), max_retries=retries)

    @staticmethod
    def block(block_key: str, required: Iterable[str] = ()) -> BlockContract:
        """Create a contract for a leading JSON object that has `block_key` and the `required` keys, none of them null.

        The value is a `Block(fields, prose)`. The names are trimmed and deduplicated. With a blank `block_key` every
        reply satisfies the contract, as `Block({}, text)`.
        """
        if not isinstance(cast("object", block_key), str):
            raise ContractError(f"block_key must be a string, not {block_key!r}")
        key = block_key.strip()
        required = names_of(required, "required")
        others = tuple(dict.fromkeys(name.strip() for name in required if name.strip() and name.strip() != key))
        return BlockContract(TypeValues[Block](Block), "block", Risk.LOSSLESS, key, others if key else ())

    @staticmethod
    def event(
        kinds: Iterable[str],
        fields: Iterable[str] = (),
        *,
        fallback: str | None = None,
        required: Iterable[str] | bool = (),
        checks: Iterable[Check] = (),
        example: str = EXAMPLE,
    ) -> EventContract:
        """Create a contract for one event: a JSON object with a `kind` from `kinds`, a `text`, and optionally more
        keys.

        `fields` are further keys to request; a missing one is reported as a repair, so the event is not CLEAN.
        `required` names fields that the model is asked for once more if they are missing; True means all but `winner`
        and `scores`, which are always optional. A wrong or missing kind becomes `fallback` (by default the first kind),
        which is reported. A reply without JSON becomes the text of such an event, with `_raw_fallback: true` and trust
        SYNTHESIZED. `checks` validate the event, such as `winner_in(cast)`; if one fails, the model is asked once more.
        `example` is the text of the example in `instruction()`; a reply that echoes it is rejected. Raises
        `ContractError` if there is no kind, or if a required name is not among the fields.
        """
        known = names_of(kinds, "kinds")
        if not known:
            raise ContractError("an event contract needs at least one kind")
        if fallback is not None and fallback not in known:
            raise ContractError(f"the fallback kind {fallback!r} is not one of the kinds: {', '.join(known)}")
        further = _fields(fields)
        requested = tuple(name for name in further if name not in WELL_KNOWN)
        needed = requested if required is True else _required(required or (), further)
        if not isinstance(cast("object", example), str) or not example.strip():
            raise ContractError(f"example must be a string, not {example!r}")
        # The reply is first read as the loose event; `read` turns that into the event.
        values = cast("Values[Event]", TypeValues[WrittenEvent](written_model(further, WrittenEvent)))
        judges = (*([fields_in(needed)] if needed else []), *_functions(checks))
        kind = fallback or known[0]
        return EventContract(values, "event", Risk.INFERRED, known, kind, further, example, needed, checks=judges)


def _fields(names: Iterable[str]) -> tuple[str, ...]:
    """Return the fields of an event in addition to its kind and text."""
    further = tuple(name for name in names_of(names, "fields") if name not in ("kind", "text"))
    for name in further:
        if name.startswith("_"):
            raise ContractError(f"the field {name!r} cannot be used: names with a leading underscore are reserved")
        if name not in Event.model_fields and hasattr(Event, name):  # `copy`, `model_dump`, `says_nothing`
            raise ContractError(
                f"the field {name!r} cannot be used: every event has that attribute; choose another name"
            )
    return further


def _required(names: Iterable[str], fields: tuple[str, ...]) -> tuple[str, ...]:
    needed = names_of(names, "required")
    if unknown := [name for name in needed if name not in fields]:
        raise ContractError(
            f"required contains {unknown[0]!r}, which is not one of the fields: {', '.join(fields) or 'there are none'}"
        )
    return needed


def _functions(checks: Iterable[Check]) -> tuple[Check, ...]:
    if callable(checks) or not isinstance(cast("object", checks), Iterable):
        raise ContractError("checks must be a list of functions; write [check] for a single one")
    judges = tuple(checks)
    for check in judges:
        if not callable(check):
            raise ContractError(
                f"checks contains {check!r}, not a function; a check takes a value and returns an error"
            )
    return judges


def with_checks(like: Contract[T] | type[T], checks: Iterable[Check]) -> Contract[T]:
    """Return the contract of a type with additional checks; a contract without new checks is returned unchanged."""
    contract, further = compile_contract(like), _functions(checks)
    return replace(contract, checks=(*contract.checks, *further)) if further else contract


def _whole(number: object, what: str) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise ContractError(f"{what} must be a whole number, 0 or more, not {number!r}")
    return number


def _trimmed(tag: object) -> str:
    if not isinstance(tag, str):
        order = "; write the tag first, then the type" if isinstance(tag, type) else ""
        raise ContractError(f"tag must be a string, not {short_value(tag)}{order}")
    trimmed = tag.strip().strip("<>/ ")
    if not trimmed:
        raise ContractError("the tag must not be blank")
    if re.search(r"[\s<>]", trimmed):
        raise ContractError(f"tag must be a single name without spaces, < or >, not {tag!r}")
    return trimmed


_compiled: dict[object, Contract[Any]] = {}
_MAX_COMPILED = 512


@overload
def compile_contract(like: Contract[T] | type[T] | TypeAdapter[T]) -> Contract[T]: ...
@overload
def compile_contract(like: Any) -> Contract[Any]: ...
def compile_contract(like: Any) -> Contract[Any]:
    """Compile a type, a JSON Schema or an `Output.*` to a contract; each one is compiled only once.

    Raises `ContractError` if it cannot be compiled, and for a schema that constrains nothing because its keyword is
    misspelt or missing.
    """
    ready: object = like
    key: object | None = ready
    if not isinstance(ready, type):
        if _is_contract(ready):
            return ready
        key = _content_key(like)
    return Output.json(like) if key is None else _cached(key, lambda: Output.json(like))


def compile_schema(schema: JsonSchema) -> JsonContract[Any]:
    """Compile a JSON Schema that a program generated or stored, in which an unknown keyword is an annotation, never a
    spelling mistake; each one is compiled only once.

    Raises `ContractError` if it cannot be compiled.
    """
    return _cached(("schema", _content_key(schema)), lambda: JsonContract(SchemaValues(schema)))


def _cached(key: object, compiled: Callable[[], JsonContract[T]]) -> JsonContract[T]:
    found = _compiled.get(key)
    if found is None:
        found = compiled()
        if len(_compiled) >= _MAX_COMPILED:
            _compiled.clear()
        _compiled[key] = found
    return found


def _is_contract(like: object) -> TypeGuard[Contract[Any]]:
    return isinstance(like, JsonContract)


def _content_key(like: Any) -> object | None:
    """Return a key that identifies a contract, or None for an unhashable type, which is compiled each time."""
    if isinstance(like, (dict, bool)):
        try:
            return json.dumps(like, sort_keys=True, default=_reject)
        except (TypeError, ValueError) as error:
            raise ContractError(f"not a JSON Schema: {error}") from error
    try:
        hash(like)
    except TypeError:
        return None
    key: object = like
    return key


def _reject(part: object) -> NoReturn:
    advice = "; for Python types, pass a type such as a pydantic model" if isinstance(part, type) else ""
    raise ContractError(f"not a JSON Schema: it contains {part!r}{advice}")


_FORMS: Final = "json, tagged:TAG, text:TAG, block:KEY,KEY… or event:KIND,KIND…"
_OPTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "json": (),
    "tagged": ("strict", "max_retries"),
    "text": ("max_retries",),
    "block": ("required",),
    "event": ("fields", "required", "fallback", "example", "cast"),
}
_NAMES: Final[Mapping[str, tuple[int, float]]] = {"json": (0, 0), "tagged": (1, 1), "text": (1, 1)}
"""The minimum and maximum number of names for each form; other forms need at least one name."""
_WITH_SCHEMA: Final = ("json", "tagged")


@dataclass(frozen=True)
class WrittenContract:
    """The location of the payload in a reply, as data; the schema comes from elsewhere. Created by
    `written_contract`."""

    form: Mode
    names: tuple[str, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def takes_schema(self) -> bool:
        """Whether the payload must satisfy a schema."""
        return self.form in _WITH_SCHEMA

    def contract(self, like: Any = None) -> Contract[Any]:
        """Return the contract with this schema or type. Raises `ContractError`, including when this form takes no
        schema."""
        options = dict(self.options)
        if like is not None and not self.takes_schema:
            raise ContractError(f"a {self.form} contract takes no schema; remove it")
        if self.form == "json":
            return compile_contract({} if like is None else like)
        if self.form == "tagged":
            return Output.tagged(self.names[0], {} if like is None else like, **options)
        if self.form == "text":
            return Output.text(self.names[0], **options)
        if self.form == "block":
            return Output.block(self.names[0], (*self.names[1:], *_as_list(options.get("required"))))
        return _event(self.names, options)


def _event(kinds: tuple[str, ...], options: dict[str, Any]) -> Contract[Any]:
    """Return the contract of an event. With a `cast`, its winner and scores are checked against it."""
    known, required = options.get("cast"), options.get("required")
    cast = None if known is None else names_of(known, "cast")
    checks = () if cast is None else (winner_in(cast), scores_of(cast))
    needed = required if isinstance(required, bool) else _as_list(required)
    fields, fallback, example = (
        _as_list(options.get("fields")),
        options.get("fallback"),
        options.get("example", EXAMPLE),
    )
    return Output.event(kinds, fields, fallback=fallback, required=needed, checks=checks, example=example)


def written_contract(written: str | Mapping[str, Any]) -> WrittenContract:
    """Parse the written form: a string (`tagged:result`) or a mapping (`{"tagged": "result", "strict": False}`).

    Raises `ContractError`, which lists the valid forms.

    >>> written_contract("tagged:result").contract({"type": "integer"}).mode
    'tagged'
    """
    if isinstance(written, str):
        form, _, rest = written.partition(":")
        return _check_form(form.strip(), [name for name in rest.split(",") if name.strip()], {}, repr(written))
    forms = [form for form in _OPTIONS if form in written]
    if len(forms) != 1:
        raise ContractError(f"a contract is {_FORMS}, as a string or a mapping with one of these keys, not {written!r}")
    options = {name: value for name, value in written.items() if name != forms[0]}
    names = [name.strip() if isinstance(name, str) else name for name in _as_list(written[forms[0]])]
    return _check_form(forms[0], names, options, repr(dict(written)))


def _check_form(form: str, names: list[Any], options: dict[str, Any], shown: str) -> WrittenContract:
    if form in _OPTIONS and (odd := [name for name in names if not isinstance(name, str)]):
        raise ContractError(f"{form} contains {odd[0]!r}, which is not a string")
    kept = tuple(name.strip() for name in names if isinstance(name, str) and name.strip())
    if form == "block" and names[:1] == [""]:  # a blank key disables the contract
        kept = ("", *kept)
    least, most = _NAMES.get(form, (1, inf))
    if form not in _OPTIONS or not least <= len(kept) <= most:
        raise ContractError(f"a contract is {_FORMS}, not {shown}")
    for name in options:
        if name not in _OPTIONS[form]:
            known = ", ".join(_OPTIONS[form]) or "none"
            article = "an" if form == "event" else "a"
            raise ContractError(f"{article} {form} contract has no option {name!r}; known: {known}")
    found = WrittenContract(cast("Mode", form), kept, tuple(options.items()))
    found.contract()  # so that an invalid option is reported at the line it is written on
    return found


def _as_list(value: object) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return list(cast("list[Any]", value))
    return [] if value in (True, None) else [value]
