"""Validators that turn a JSON value into the typed value: pydantic for types, jsonschema-rs for JSON Schemas.

Two things that a validator does not report are also detected:

- keys that it ignored, found by comparing the JSON value with the validated one. Whether a key is kept depends on the
  model at its location: one of two alternatives may keep what the other drops;
- keys that occur twice, of which a validator silently keeps the last. Counting the keys of the value costs a tenth of
  parsing the text again; if they cannot be counted with certainty (UNKNOWN), the text is parsed again.
"""

from __future__ import annotations

import hashlib
import json
import re
import types
import typing
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from difflib import get_close_matches
from enum import Enum
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from itertools import islice
from math import isfinite
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeAlias, TypeGuard, TypeVar, cast
from uuid import UUID

import jiter
import jsonschema_rs
from pydantic import (
    AliasChoices,
    BaseModel,
    PydanticSchemaGenerationError,
    PydanticUserError,
    RootModel,
    TypeAdapter,
    ValidationError,
)
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUndefinedAnnotation
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import ErrorDetails, PydanticSerializationError, to_json, to_jsonable_python
from pydantic_core.core_schema import DecimalSchema, EnumSchema, WithDefaultSchema

from flujo_aros.contract.schema import (
    DECIMAL,
    MISREADABLE,
    TIMES,
    JsonSchema,
    Shape,
    compile_shape,
    contains,
    engines,
    is_misread,
    not_a_time,
)
from flujo_aros.errors import ContractError, Hint, Suggestion
from flujo_aros.json_data import CONSTRAINING, References, is_dict, is_list, members, objects_in, parts, value_at
from flujo_aros.outcome import Issue
from flujo_aros.spelling import clip, only_near

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")
_PYTHON_TYPES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("list", "tuple", "set"), "array"),
    **dict.fromkeys(("str", "text"), "string"),
    **dict.fromkeys(("int",), "integer"),
    **dict.fromkeys(("float", "decimal", "double"), "number"),
    **dict.fromkeys(("dict", "map"), "object"),
    **dict.fromkeys(("bool",), "boolean"),
    **dict.fromkeys(("None", "none"), "null"),
}
"""Names of types in Python and other languages."""
_MAX_ISSUES: Final = 50
_MOST_TRIED: Final = 60_000
_MOST_EXPLAINED: Final = 1_000
"""The maximum number of invalid values to locate, which costs more than finding that the value is invalid."""


class Valid(NamedTuple, Generic[T_co]):
    """The typed value. `conversions` lists changes by the validator itself (`"3"` read as 3, or a key ignored)."""

    value: T_co
    conversions: tuple[Issue, ...] = ()


@dataclass(frozen=True, slots=True)
class Invalid:
    """The value is invalid; lists the invalid parts."""

    issues: tuple[Issue, ...]


_TOO_LARGE_A_NUMBER: Final = Invalid((Issue("$", "non_finite", "the whole number is too large for a float"),))
NO_CHARACTER: Final = Invalid((Issue("$", "lone_surrogate", "a lone surrogate is not a valid character"),))
_TOO_COMPLEX: Final = Invalid((Issue("$", "too_complex", "the value can be validated in too many ways"),))
_REFUSED: Final = Invalid(())
_NO_ALTERNATIVE: Final = Invalid((Issue("$", "anyOf", "the value matches none of the alternatives"),))
Verdict: TypeAlias = Valid[T_co] | Invalid


class Values(Protocol[T_co]):
    """The set of values that satisfy a contract."""

    json_schema: JsonSchema
    """The schema of these values, or an empty schema if any value is allowed."""
    shape: Shape
    """The schema in the reader's form."""

    def strict_json(self, text: str) -> Verdict[T_co] | None:
        """Validate a JSON text as written, without lax conversions and without ignored keys. Never raises.

        Returns None if it is not JSON, or if only the parser can tell, as with a duplicate key or a number that is
        not finite. `Invalid` lists no issues: finding all of them takes longer, and most texts are validated again
        after a repair.
        """
        ...

    def strict(self, value: object) -> Valid[T_co] | None:
        """Return the value if it satisfies everything unchanged, or None. Never raises for bad data."""
        ...

    def validate(self, value: object) -> Verdict[T_co]:
        """Validate a JSON value. Never raises for bad data."""
        ...


def path_of(parts: Sequence[str | int]) -> str:
    """Format a path: `("items", 2, "price")` becomes `$.items[2].price`."""
    out = "$"
    for part in parts:
        out += f"[{part}]" if isinstance(part, int) else f".{part}" if part.isidentifier() else f"[{part!r}]"
    return out


def fingerprint(schema: JsonSchema) -> str:
    """Return twelve hex digits that depend only on the content of the schema."""
    return hashlib.sha256(json.dumps(schema, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:12]


NOT_JSON: Final = object()
_PART: Final = 150
"""Half the number of digits of the largest float."""
_HUGE: Final = (re.compile(r"e\+?[0-9]{3}"), re.compile(r"E\+?[0-9]{3}"))


def parse_json(text: str) -> Any:
    """Return the value of a JSON text, or NOT_JSON if it is invalid or has duplicate keys or non-finite numbers."""
    try:
        value = jiter.from_json(text.encode(), catch_duplicate_keys=True, allow_inf_nan=False)
    except ValueError:
        return NOT_JSON
    huge = _HUGE[0].search(text) or _HUGE[1].search(text)
    return NOT_JSON if huge and not _all_finite(value) else value


def _all_finite(value: Any) -> bool:
    return all(isfinite(part) for _, part in parts(value) if isinstance(part, float))


def _overflows(value: Any, data: str | bytes) -> bool:
    """Return whether an integer was too large for a float and has become infinity."""
    # Such a long run of digits contains one of these parts as a whole.
    if not any(data[start : start + _PART].isdigit() for start in range(0, len(data) - _PART, _PART)):
        return False
    try:
        return not _all_finite(to_jsonable_python(value, inf_nan_mode="constants", fallback=str))
    except PydanticSerializationError:  # a custom serializer, which may change the value
        return False


def _is_misdated(value: object, shape: Shape) -> bool:
    """Return whether pydantic would read a string in the value as a date, time or duration that the string does not
    state."""
    return any(
        isinstance(here, str) and any(is_misread(here, form) for form in known.time_forms)
        for here, known in shape.walk(value)
    )


_MANY_DIGITS: Final = re.compile(r"\d[\d.]{15}")


def has_many_digits(text: str) -> bool:
    """Return whether a text may contain a number with more digits than a float, to which pydantic converts it before
    `Decimal`.
    """
    return _MANY_DIGITS.search(text) is not None


# How often a validator may visit a value, given recursive alternatives and `$ref`s that repeat the same schema

_DEEPEST_UNION: Final = 8
_EACH: Final = 16
"""The number of times that a shape may be tried at one location before it counts as doubling."""


class Effort:
    """The cost of validating values of a shape. It matters only if a schema with alternatives refers to itself."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.grows = _loops(shape)
        """The cost may double with each level of a value."""

    def exceeds(self, limit: int, value: object) -> bool:
        """Return whether a validator may have to visit one location more than `limit` times. Takes time linear in the
        value.

        Shapes that are tried a few times at each location, as in any union, do not count, however large the value is.
        """
        total = allowed = 0
        pending: list[tuple[Any, Counter[Shape]]] = [(value, Counter([self.shape]))]
        while pending:
            here, given = pending.pop()
            tried = _with_alternatives(given)
            total += tried.total()
            allowed += _EACH * len(tried)
            if total > limit + allowed:
                return True
            inside = _member if is_dict(here) else _element
            pending += [
                (part, _tries((inside(shape, step), count) for shape, count in tried.items()))
                for step, part in members(here)
            ]
        return False


def _tries(found: Iterable[tuple[Shape | None, int]]) -> Counter[Shape]:
    """Return the number of times each shape is tried at one location."""
    counts: Counter[Shape] = Counter()
    for shape, count in found:
        if shape is not None:
            counts[shape] += count
    return counts


def _member(shape: Shape, key: str) -> Shape | None:
    if shape.types and "object" not in shape.types:
        return None
    found = shape.properties.get(key)
    if found is None:
        found = next((part for pattern, part in shape.patterns if pattern.matches(key)), None)
    return found if found is not None or not isinstance(shape.additional, Shape) else shape.additional


def _element(shape: Shape, index: int) -> Shape | None:
    if shape.types and "array" not in shape.types:
        return None
    return shape.prefix[index] if index < len(shape.prefix) else shape.items


def _with_alternatives(given: Counter[Shape]) -> Counter[Shape]:
    """Return the shapes and all their alternatives, down to a depth that hand-written unions do not reach."""
    found, layer = given.copy(), given
    for _ in range(_DEEPEST_UNION - 1):
        layer = _tries((branch, count) for shape, count in layer.items() for branch in shape.branches)
        found.update(layer)
    return found


def _loops(root: Shape) -> bool:
    """Return whether a shape contains itself and has alternatives."""
    inside: dict[Shape, list[Shape]] = {}
    pending = [root]
    while pending:
        shape = pending.pop()
        if shape not in inside:
            inside[shape] = shape.parts
            pending += shape.parts
    try:
        TopologicalSorter(inside).prepare()
    except CycleError:
        return any(len(shape.branches) > 1 for shape in inside)
    return False


_LISTS: Final = ("allOf", "anyOf", "oneOf")
_PARTS: Final = ("not", "if", "then", "else")

_MOST_VISITS: Final = 100_000
"""The maximum number of schemas tried at one location of a value, about 2 ms for each location."""
_MOST_LOOPS: Final = 8
"""The maximum number of ways to return to the same schema at the same location. Each may multiply the visits: 8 take up
to 20 ms."""


def reject_exponential(schema: dict[str, Any]) -> None:
    """Raise `ContractError` for a schema that would take a validator exponential time at one location of a value.

    A `$ref` that leads back to itself at the same location has no effect there, as in jsonschema-rs. Trees and
    other schemas that recur one level deeper are fine. Takes time linear in the size of the schema.
    """
    references = References(schema)
    nodes = {id(node): node for node in objects_in(schema)}
    if not any(isinstance(node.get("$ref"), str) for node in nodes.values()):
        return
    below = {
        at: [id(part) for part in _same_place(node, references) if id(part) in nodes] for at, node in nodes.items()
    }
    above: dict[int, list[int]] = {at: [] for at in nodes}
    for at, inside in below.items():
        for part in inside:
            above[part].append(at)
    inner = _peel(below, above, set(nodes))
    outer = _peel(above, below, set(nodes) - set(inner))
    core = set(nodes) - set(inner) - set(outer)
    loops = sum(part in core for at in core for part in below[at]) - len(core)
    visits: Counter[int] = Counter(dict.fromkeys(core, len(core)))
    for at in (*inner, *reversed(outer)):
        visits[at] = min(1 + sum(visits[part] for part in below[at]), _MOST_VISITS + 1)
    if loops > _MOST_LOOPS or max(visits.values()) > _MOST_VISITS:
        message = f"the schema takes more than {_MOST_VISITS:,} steps to validate one part of a value"
        raise ContractError(f"{message}: its $refs lead to the same schemas repeatedly; reference each of them once")


def _peel(links: dict[int, list[int]], back: dict[int, list[int]], nodes: set[int]) -> list[int]:
    """Return the nodes that reach no cycle through `links`, each after those it links to."""
    left = {at: sum(part in nodes for part in links[at]) for at in nodes}
    found = [at for at, count in left.items() if not count]
    for at in found:
        for other in back[at]:
            if other in nodes:
                left[other] -= 1
                if not left[other]:
                    found.append(other)
    return found


def _same_place(node: dict[str, Any], references: References) -> Iterator[dict[str, Any]]:
    """Yield the subschemas that apply to the same value as this one."""
    parts: list[object] = [node.get(key) for key in _PARTS]
    for key in _LISTS:
        if is_list(node.get(key)):
            parts += node[key]
    ref = node.get("$ref")
    if isinstance(ref, str) and ref.startswith("#"):
        parts.append(references.resolve(ref))
    yield from filter(is_dict, parts)


class TypeValues(Generic[T]):
    """The values of a Python type, validated by pydantic as JSON input."""

    def __init__(self, like: Any) -> None:
        self.adapter: TypeAdapter[T]
        self.like = like
        self.json_schema: JsonSchema = {}
        kind = cast("type[object]", type(like))
        words = "pass a type such as a pydantic model, a JSON Schema as a dict, or an Output.*"
        if like is BaseModel or isinstance(like, (int, float, list, tuple, set, str)):
            if isinstance(like, str):
                is_name = like.isidentifier()
                words = f"pass the type {like} itself, not its name" if is_name else f"{words}; the text comes first"
            raise ContractError(f"{like!r} cannot be used as a contract: {words}")
        if isinstance(like, BaseModel):
            raise ContractError(f"{like!r} cannot be used as a contract: pass the class {type(like).__name__} itself")
        try:
            self.adapter = cast("TypeAdapter[T]", like) if isinstance(like, TypeAdapter) else TypeAdapter(like)
            self.json_schema = self.adapter.json_schema()
        except PydanticInvalidForJsonSchema:
            pass  # a type without a JSON Schema still validates, only without guidance
        except (PydanticSchemaGenerationError, PydanticUserError, PydanticUndefinedAnnotation) as error:
            raise ContractError(f"{like!r} cannot be used as a contract: {str(error).splitlines()[0]}") from error
        except AttributeError as error:
            if issubclass(kind, type):
                raise  # the error of a validator, or of a schema, that the user wrote
            raise ContractError(f"an object of {kind} cannot be used as a contract: {words}") from error
        guide = self.adapter.json_schema(schema_generator=_Guide) if self.json_schema else {}
        self.shape = compile_shape(guide, drops=True)
        self._effort = Effort(self.shape)
        self.is_open = not self.json_schema or any(
            "properties" in node and node.get("additionalProperties") not in (None, False)
            for node in objects_in(self.json_schema)
        )
        """Whether some model may keep keys that it does not declare."""
        self._has_numbers = any(
            node.get("type") == "integer" and not node.keys().isdisjoint(("enum", "const"))
            for node in objects_in(self.json_schema)
        )
        """Whether some choice is a number: pydantic would also convert `true` to it."""
        self._validate_json = self.adapter.validator.validate_json  # the method of the adapter would cost one more call

    def __repr__(self) -> str:
        return self.like.__name__ if isinstance(self.like, type) else repr(self.like)

    def strict_json(self, text: str) -> Verdict[T] | None:
        """Validate a JSON text strictly, without conversions or ignored keys."""
        if self._effort.grows:
            value = parse_json(text)
            return None if value is NOT_JSON else self.strict(value) or _REFUSED
        try:
            value = self._validate_json(text, strict=True, extra="forbid")
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            if first["type"] == "json_invalid" and not first["loc"]:
                return None
            plain = parse_json(text) if self.is_open else NOT_JSON
            return _REFUSED if plain is NOT_JSON else self.strict(plain) or _REFUSED
        if self.shape.has_times and MISREADABLE.search(text) and _is_misdated(parse_json(text), self.shape):
            return _REFUSED
        if self._has_numbers and ("true" in text or "false" in text):
            return None  # coercion tells numbers from booleans
        if self.shape.has_decimals and has_many_digits(text):
            return None  # the parser keeps the digits
        # Each key is followed by `":`, and in valid JSON little else is.
        keys = count_keys(value)
        if keys == text.count('":') and not _is_unusual(text) and not _may_be_long(text[::100]):
            return Valid(value)
        return None if parse_json(text) is NOT_JSON or _overflows(value, text) else Valid(value)

    def strict(self, value: object) -> Valid[T] | None:
        """Return the value of plain JSON that needs no lax conversion and has no ignored keys, or None."""
        verdict = self.validate(value)
        if isinstance(verdict, Invalid) or verdict.conversions:
            return None
        truths = self._has_numbers and any(isinstance(part, bool) for _, part in parts(value))
        return None if truths or (self.shape.has_times and _is_misdated(value, self.shape)) else verdict

    def has_type(self, value: object) -> bool:
        """Return whether a value already has this type, in all its parts."""
        try:
            # The strict validator does not look at the fields of a model again, but the serializer does.
            self.adapter.dump_python(cast("T", value), warnings="error")
            return bool(self.adapter.validate_python(value, strict=True) == value)
        except (ValidationError, PydanticSerializationError):
            return False

    def validate(self, value: object) -> Verdict[T]:
        """Validate a JSON value, strictly first; lax conversions by pydantic are then listed in `conversions`."""
        if self._effort.grows and self._effort.exceeds(_MOST_TRIED, value):
            return _TOO_COMPLEX
        try:
            data = to_json(value, inf_nan_mode="constants")
        except (PydanticSerializationError, UnicodeEncodeError):
            return NO_CHARACTER
        try:
            valid = self.adapter.validate_json(data, strict=True, extra="forbid")
        except ValidationError as error:
            strict = error
        else:
            return _TOO_LARGE_A_NUMBER if _overflows(valid, data) else Valid(valid)
        kept = self._validate_by_own_rules(data, value)
        if isinstance(kept, Valid):
            return _TOO_LARGE_A_NUMBER if _overflows(kept.value, data) else kept
        try:
            bent = self.adapter.validate_json(data)
        except ValidationError as error:
            return Invalid(tuple(_from_pydantic(error, value)))
        if _overflows(bent, data):
            return _TOO_LARGE_A_NUMBER
        known = tuple(_from_pydantic(strict, value)) if kept is None else kept.issues
        loses = kept is not None or any(issue.code in UNDECLARED for issue in known)
        lost = lost_keys(value, bent) if loses else None
        if lost is not None and (twice := _given_twice(lost)):
            return Invalid(twice)
        if kept is None or lost is None:
            return Valid(bent, tuple(_from_pydantic(strict, value)))
        return Valid(bent, (*known, *lost[:_MAX_ISSUES]))

    def _validate_by_own_rules(self, data: bytes, value: object) -> Verdict[T] | None:
        """Validate strictly, but let each model keep or drop undeclared keys. Returns None if it is unknown which keys
        those are."""
        try:
            valid = self.adapter.validate_json(data, strict=True)
        except ValidationError as error:
            return Invalid(tuple(_from_pydantic(error, value)))
        lost = lost_keys(value, valid)
        if lost is not None and (twice := _given_twice(lost)):
            return Invalid(twice)
        return None if lost is None else Valid(valid, tuple(lost[:_MAX_ISSUES]))


class _Guide(GenerateJsonSchema):
    """Generates the schema for the reader, which is not shown to a model.

    It also contains the names of enumeration members (`LOW = 1`), a mark on numbers that become a `Decimal`, and the
    defaults that `default_factory=list` and `dict` create.
    """

    def default_schema(self, schema: WithDefaultSchema) -> JsonSchemaValue:
        """Return the schema with its default, even if a factory creates it for each value."""
        out = super().default_schema(schema)
        factory = schema.get("default_factory")
        return {**out, "default": [] if factory is list else {}} if factory is list or factory is dict else out

    def decimal_schema(self, schema: DecimalSchema) -> JsonSchemaValue:
        """Return the alternatives for a number and a string; the number has a format."""
        out = super().decimal_schema(schema)
        parts = out.get("anyOf", [out])
        marked = [{**part, "format": DECIMAL} if part.get("type") == "number" else part for part in parts]
        return {**out, "anyOf": marked} if "anyOf" in out else marked[0]

    def enum_schema(self, schema: EnumSchema) -> JsonSchemaValue:
        """Return the choices, and the names that a reply may use for them."""
        out = super().enum_schema(schema)
        members = {str(to_jsonable_python(member.value)): member for member in schema["members"]}
        aliases = {
            value: [f"{schema['cls'].__name__}.{member.name}", repr(member)] for value, member in members.items()
        }
        for value, member in members.items():
            if member.name not in members:
                aliases[value].append(member.name)
        return {**out, "x-aros": {"aliases": aliases}}


def _given_twice(lost: list[Issue]) -> tuple[Issue, ...]:
    return tuple(issue for issue in lost if issue.code == "duplicate_key")


def _from_pydantic(error: ValidationError, value: object) -> list[Issue]:
    """Convert pydantic's errors to issues, each with its location in the value."""
    issues: list[Issue] = []
    for detail in error.errors(include_url=False)[:_MAX_ISSUES]:
        place, kind, words = _place_in(value, detail), detail["type"], _words(detail)
        more = detail.get("ctx", {})
        tag = str(more.get("discriminator", "")).strip("'")
        if kind == UNKNOWN_TAG and tag.isidentifier():
            place = (*place, tag)
            words = f"expected one of {more['expected_tags']}, found {clip(repr(more['tag']), 40)}"
        elif kind == "union_tag_not_found" and tag.isidentifier():
            place, kind, words = (*place, tag), "missing", f"the required key {tag!r} is missing"
        issues.append(Issue(path_of(place), kind, words))
    return issues


def _place_in(value: object, detail: ErrorDetails) -> tuple[str | int, ...]:
    """Return the keys and indexes of an error, without the names of the union members and validators that pydantic
    adds.
    """
    place: list[str | int] = []
    here = value
    for step in detail["loc"]:
        inner = value_at(here, (step,), NOT_JSON)
        if inner is not NOT_JSON:
            place.append(step)
            here = inner
    last = detail["loc"][-1:]
    return (*place, *last) if detail["type"] == "missing" else tuple(place)


def _words(detail: ErrorDetails) -> str:
    """Return pydantic's message with the value that was found, for a person or a model."""
    kind, found, words = detail["type"], detail["input"], detail["msg"]
    if kind == "missing":
        last = detail["loc"][-1]
        return f"item {last + 1} is missing" if isinstance(last, int) else f"the required key {last!r} is missing"
    if kind in ("too_short", "too_long"):
        return _SIZE.sub("must have", words).replace(" after validation", "")
    if kind in ("value_error", "assertion_error"):
        return words.partition(", ")[2] or words  # without `Value error`: the validator says what is wrong
    if not isinstance(found, (str, int, float)):
        return words
    if kind in _TIME_ERRORS and isinstance(found, str):
        return not_a_time(_TIME_ERRORS[kind], found)
    excerpt = repr(clip(found, 40)) if isinstance(found, str) else str(found)
    if kind == "decimal_parsing":
        return f"expected a number, found {excerpt}"
    return f"{words.replace('Input should be', 'must be', 1)}, found {excerpt}"


_SIZE: Final = re.compile(r"\A\w+ should have")
UNKNOWN_TAG: Final = "union_tag_invalid"
"""The code for a discriminator that no member of a union has."""
UNDECLARED: Final = ("extra_forbidden", "unexpected_keyword_argument")
"""The codes for a key that a model, or a dataclass, does not have."""
_TIME_ERRORS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("datetime_parsing", "datetime_from_date_parsing"), "date-time"),
    **dict.fromkeys(("date_parsing", "date_from_datetime_parsing", "date_from_datetime_inexact"), "date"),
    "time_parsing": "time",
    "time_delta_parsing": "duration",
}


class SchemaValues:
    """The values of a JSON Schema, validated by jsonschema-rs. References are never fetched from a network."""

    def __init__(self, schema: JsonSchema) -> None:
        self.json_schema = schema
        self.validator = _compile_validator(self.json_schema)
        reject_exponential(schema)
        self.shape = compile_shape(self.json_schema)
        self._effort = Effort(self.shape)

    def __repr__(self) -> str:
        return clip(json.dumps(self.json_schema))

    def strict_json(self, text: str) -> Verdict[Any] | None:
        """Validate a JSON text by the schema; return None if it is not JSON."""
        value = parse_json(text)
        return None if value is NOT_JSON else self.strict(value) or _REFUSED

    def strict(self, value: object) -> Valid[Any] | None:
        """Return the value itself, if it satisfies the schema."""
        try:
            return Valid(value) if self.validator.is_valid(value) else None
        except UnicodeEncodeError:
            return None

    def validate(self, value: object) -> Verdict[Any]:
        """Validate a JSON value by the schema, formats included."""
        if self._effort.grows and self._effort.exceeds(_MOST_EXPLAINED, value):
            return self.strict(value) or _NO_ALTERNATIVE
        try:
            errors = list(islice(self.validator.iter_errors(value), _MAX_ISSUES))
        except UnicodeEncodeError:
            return NO_CHARACTER
        issues = [
            Issue(path_of(error.instance_path), str(getattr(error.kind, "name", "schema")), _schema_words(error))
            for error in errors
        ]
        return Invalid(tuple(issues)) if issues else Valid(value)


_WRAPPERS: Final[Sequence[tuple[str, ...]]] = (
    ("json_schema", "schema"),
    ("schema",),
    ("parameters",),
    ("input_schema",),
    ("function", "parameters"),
)


def wrapped_in(schema: JsonSchema) -> tuple[str, ...] | None:
    """Return the path of the schema in a part of a request that contains one, such as OpenAI's `response_format` or
    the definition of a tool, or None for a schema.

    >>> wrapped_in({"type": "json_schema", "json_schema": {"name": "ticket", "schema": {"type": "object"}}})
    ('json_schema', 'schema')
    """
    if (CONSTRAINING - {"type"}) & schema.keys() or schema.get("type") in TYPES:
        return None
    found = ((path, value_at(schema, path)) for path in _WRAPPERS)
    return next((path for path, inner in found if is_dict(inner) and CONSTRAINING & inner.keys()), None)


def _compile_validator(schema: JsonSchema) -> jsonschema_rs.Validator:
    inside = wrapped_in(schema)
    if inside is not None:
        where = ".".join(inside)
        raise ContractError(f"this contains a JSON Schema, under `{where}`, but is not one; write only that schema")
    for last, engine in enumerate(engines()):
        try:
            return jsonschema_rs.validator_for(schema, pattern_options=engine, validate_formats=True, offline=True)
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as error:
            if last:
                path: Sequence[str | int] = getattr(error, "instance_path", ())
                broken = _broken_ref(schema) if not path else None
                path, wrong = broken or _what_is_wrong(error, path, schema)
                message = wrong.after(f"invalid JSON Schema at {path_of(path)}: ")
                raise ContractError(message, path) from error
        except ValueError as error:  # for a key that is not a string, a lone surrogate, or bytes
            raise ContractError(f"not a JSON Schema: {error}") from error
    raise AssertionError("unreachable: the last engine returns or raises")


def _broken_ref(schema: JsonSchema) -> tuple[Steps, Hint] | None:
    """Return the location of the first `$ref` within the document that points to nothing, and the error."""
    references = References(schema)
    for path, here in parts(schema):
        ref = here.get("$ref") if is_dict(here) else None
        if isinstance(ref, str) and ref.startswith("#") and references.resolve(ref) is None:
            return path, Hint(f"$ref {ref!r} points to nothing in this schema")
    return None


_LITERALS: Final = ("true", "false", "null")
_KINDS: Final[Mapping[str, str]] = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "an integer",
    "number": "a number",
    "object": "a mapping",
    "string": "a string",
}
"""The type of a keyword's value, in words."""


_OUTSIDE: Final = re.compile(r"\AResource '([^']*)' is not present in a registry")


def type_word(word: object) -> str | None:
    """Return the JSON type that a word names, including Python's names, or None.

    >>> type_word("string"), type_word("str"), type_word("title")
    ('string', 'string', None)
    """
    if not isinstance(word, str):
        return None
    return word if word in TYPES else _PYTHON_TYPES.get(word)


def is_value_of(keyword: str, value: object) -> bool:
    """Return whether a value is of the kind that a keyword takes.

    >>> is_value_of("not", {"type": "null"}), is_value_of("not", "years"), is_value_of("type", "str")
    (True, False, True)
    """
    if keyword == "type" and isinstance(value, str):
        return True  # a misspelt type is an error of its own
    try:
        return jsonschema_rs.meta.is_valid({keyword: {} if is_dict(value) else value})
    except ValueError:  # not JSON
        return False


def _what_is_wrong(
    error: jsonschema_rs.ValidationError | jsonschema_rs.ReferencingError, path: Sequence[str | int], schema: JsonSchema
) -> tuple[Sequence[str | int], Hint]:
    """Return the location of the error, which may be inside the value at `path`, and the error."""
    instance = getattr(error, "instance", None)
    if (outside := _OUTSIDE.search(error.message)) is not None:
        return path, Hint(
            f"$ref {outside[1]!r} points outside this schema, and no other document is read; put it under `$defs`"
        )
    wanted: Sequence[str] = getattr(getattr(error, "kind", None), "types", None) or ()
    if wanted:
        what = "a schema" if len(wanted) > 1 else _KINDS[wanted[0]]
        return path, _what_to_write(path, instance, what, schema).after(
            f"expected {what}, not {clip(to_json(instance).decode(), 60)}"
        )
    if path[-1:] == ["type"]:
        if not is_list(instance):
            return path, _unknown_type(instance)
        number = next((number for number, each in enumerate(instance) if each not in TYPES), None)
        if number is not None:
            return [*path, number], _unknown_type(instance[number])
        return path, Hint("a type is named twice" if instance else "expected a type, not an empty list")
    return path, Hint(clip(error.message, 300))


def _unknown_type(word: object) -> Hint:
    """Return the error for a value under `type` that is not a type, with the one that was meant."""
    known = Hint(f"; {', '.join(TYPES)}")
    if not isinstance(word, str):
        null = Hint('; write "null", in quotes', Suggestion("null", _NULL, sure=True, whole=True))
        return (null if word is None else known).after(f"unknown type {clip(to_json(word).decode(), 60)}")
    close = [_PYTHON_TYPES[word]] if word in _PYTHON_TYPES else get_close_matches(word, TYPES, 1)
    several = [type_word(each.strip()) for each in re.sub(r"\?$", "|null", word).split("|")]
    if len(several) > 1 and all(several):
        listed = f"[{', '.join(_NULL if each == 'null' else str(each) for each in several)}]"
        known = Hint(f"; write {listed}", Suggestion(word, listed, sure=True, whole=True))
    elif close:
        sure, is_null = close == [_PYTHON_TYPES.get(word) or only_near(word, TYPES)], close == ["null"]
        meant = Suggestion(word, _NULL if is_null else close[0], sure, whole=is_null)
        known = Hint(f"; did you mean {close[0]!r}?", meant)
    return known.after(f"unknown type {word!r}")


_NULL: Final = '"null"'
"""The type null in YAML, where null without quotes is not a string."""


def _what_to_write(path: Sequence[str | int], instance: object, wanted: str, schema: JsonSchema) -> Hint:
    """Return what to write instead of a value of the wrong kind, if it is clear what was meant."""
    keyword = path[-1] if path else ""
    if keyword == "required" and instance is True and path[-3:-2] == ["properties"]:
        return Hint(f"; write `required: [{path[-2]}]` next to `properties`")
    if keyword == "properties" and is_list(instance):
        return Hint("; write NAME: {type: string} for each property")
    if not isinstance(instance, str):
        return Hint("")
    kind, meant, sure = type_word(instance), None, True
    if wanted == "a schema":
        meant = f"{{type: {kind}}}" if kind is not None else None
    elif wanted == "a list" and keyword in ("enum", "required", "type"):
        beside = value_at(schema, (*path[:-1], "type"), "string")
        if keyword == "enum" and "string" not in map(type_word, beside if is_list(beside) else [beside]):
            return Hint("; write the values in brackets")
        names = [part.strip() for part in re.split(r"[,|]", instance)]
        plain = all(name.isidentifier() and name.lower() not in _LITERALS for name in names)
        meant = f"[{', '.join(names if plain else [to_json(name).decode() for name in names])}]"
        sure = plain and len(names) == 1  # the comma in "New York, NY" separates nothing
    elif wanted in ("a number", "an integer"):
        meant = instance if re.fullmatch(r"-?\d+(?:\.\d+)?", instance) else None
    if meant is None:
        return Hint("; a schema is a mapping such as {type: string}" if wanted == "a schema" else "")
    return Hint(f"; write {meant}", Suggestion(instance, meant, sure, whole=True))


def _schema_words(error: jsonschema_rs.ValidationError) -> str:
    """Return the message about a value, with the expected format if it has one."""
    form, found = getattr(error.kind, "format", None), error.instance
    if form in TIMES and isinstance(found, str):
        return not_a_time(form, found)
    if form is not None:
        return f"expected a string in the format {form!r}, found {clip(repr(found), 60)}"
    return _SCHEMA_WORDS.get(type(error.kind).__name__) or clip(error.message, 300)


_SCHEMA_WORDS: Final = {
    "AnyOf": "it fits none of the alternatives in 'anyOf'",
    "OneOfNotValid": "it fits none of the alternatives in 'oneOf'",
    "OneOfMultipleValid": "it fits more than one of the alternatives in 'oneOf'",
    "UniqueItems": "it has equal items, but all must be different",
}


Steps = tuple[str | int, ...]


def lost_keys(data: Any, value: Any) -> list[Issue] | None:
    """Return an issue for each key of the JSON value `data` that the validated `value` lacks, or None if unknown."""
    lost: list[Issue] = []
    pending: list[tuple[Steps, Any, Any]] = [((), data, value)]
    while pending:
        path, here, made = pending.pop()
        while _is_root(made):
            made = made.root
        if is_dict(here):
            members = _members(here, made)
            if members is None:
                return None
            lost += [_issue_of_lost_key(here, made, key, path) for key in here if key not in members]
            pending += [((*path, key), here[key], part) for key, part in members.items()]
        elif is_list(here) and any(isinstance(part, (dict, list)) for part in here):
            if not _is_sequence(made) or len(made) != len(here):
                return None
            pending += [((*path, index), part, made[index]) for index, part in enumerate(here)]
    return lost


def _issue_of_lost_key(here: dict[str, Any], made: Any, key: str, path: Steps) -> Issue:
    """Return the issue for a key that is ignored, or that is another spelling of a field, with a different value."""
    names = (_names_of(type(made)) if isinstance(made, BaseModel) else None) or {}
    field = names.get(key)
    for other in here if field is not None else ():
        if other != key and names.get(other) == field and here[other] != here[key]:
            words = f"the keys {key!r} and {other!r} name the same field and have different values"
            return Issue(path_of((*path, key)), "duplicate_key", words)
    return Issue(path_of((*path, key)), UNDECLARED[0], "Extra inputs are not permitted")


def _is_root(value: object) -> TypeGuard[RootModel[Any]]:
    return isinstance(value, RootModel)


def _is_sequence(value: object) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    return isinstance(value, (list, tuple))


def _members(here: dict[str, Any], made: Any) -> dict[str, Any] | None:
    """Return the values of an object's members after validation, by key, or None if unknown."""
    if isinstance(made, BaseModel):
        return _members_of_model(here, made)
    if is_dict(made):
        if len(made) == len(here) and not made.keys() <= here.keys():  # keys that are not strings, in the same order
            return dict(zip(here, made.values(), strict=True))
        return {key: made[key] for key in here if key in made}
    return None


def _members_of_model(here: dict[str, Any], made: BaseModel) -> dict[str, Any] | None:
    names = _names_of(type(made))
    if names is None:
        return None
    found: dict[str, Any] = {}
    seen: set[str] = set()
    extra = made.__pydantic_extra__ or {}
    for key in here:
        name = names.get(key)
        if name is not None and name not in seen:
            seen.add(name)
            found[key] = made.__dict__.get(name)
        elif name is None and key in extra:
            found[key] = extra[key]
    return found


@lru_cache(maxsize=1_024)
def _names_of(model: type[BaseModel]) -> dict[str, str] | None:
    """Return the fields of a model by the keys they are read from, or None if a field is taken from deeper down."""
    config = model.model_config
    by_name = bool(config.get("populate_by_name") or config.get("validate_by_name"))
    by_alias = config.get("validate_by_alias") is not False
    names: dict[str, str] = {}
    for name, field in model.model_fields.items():
        alias = field.validation_alias if by_alias else None
        choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
        for choice in choices:
            if isinstance(choice, str):
                names[choice] = name
            elif choice is not None:
                return None
        if alias is None or by_name:
            names[name] = name
    return names


_is_unusual: Final = contains(r"[ \t\r\n]:|Infinity|NaN|[0-9][eE]\+?[0-9]{3}")
"""Matches whitespace before a colon, or a number that is not finite, in a JSON text."""
_may_be_long: Final = contains("[0-9]{3}")
"""Applied to every hundredth character, shows that a number may be too long for a float; all would take longer."""

UNKNOWN: Final = -(10**12)
"""Marks a count as uncertain: added to any count, it makes the sum negative."""

_SCALARS: Final = frozenset({str, int, float, bool, type(None), Decimal, date, datetime, time, timedelta, UUID})
_of_class: dict[type, Callable[[Any], int]] = {}


def count_keys(value: Any) -> int:
    """Return the number of keys in the JSON of this value; negative if uncertain."""
    kind = cast("type[object]", type(value))
    counter = _of_class.get(kind)
    if counter is not None:
        return counter(value)
    if kind in _SCALARS:
        return 0
    if kind is list:
        return sum(map(count_keys, value))
    if kind is dict:
        return len(value) + sum(map(count_keys, value.values()))
    if not isinstance(value, BaseModel):
        return UNKNOWN
    counter = _of_class[kind] = _counter_of(type(value))
    return counter(value)


def _counter_of(model: type[BaseModel]) -> Callable[[Any], int]:
    """Return a counter for one model, which skips plain fields."""
    decorators = model.__pydantic_decorators__
    if issubclass(model, RootModel) or model.model_config.get("extra") == "allow":
        return _unknown
    if decorators.model_validators or decorators.field_validators or decorators.root_validators:
        return _unknown
    fields = model.model_fields.items()
    deep = [(name, _counter_for(field.annotation)) for name, field in fields if not _is_plain(field)]

    def count(value: Any) -> int:
        found: int = len(value.__pydantic_fields_set__)
        data: dict[str, Any] = value.__dict__
        for name, counter in deep:
            found += counter(data[name])
        return found

    return count


def _counter_for(annotation: Any) -> Callable[[Any], int]:
    """Return the counter for a field. A list of one model goes straight to the counter of that model."""
    parts = typing.get_args(annotation) if typing.get_origin(annotation) is list else ()
    if not (parts and isinstance(parts[0], type) and issubclass(parts[0], BaseModel)):
        return count_keys
    model = parts[0]
    if not all(map(_is_plain, model.model_fields.values())):
        return count_keys  # the field may contain a model, even this one
    if _counter_of(model) is _unknown:
        return lambda values: sum(map(_unknown, values))
    if all(field.is_required() for field in model.model_fields.values()):
        each = len(model.model_fields)
        return lambda values: each * len(values)
    return lambda values: sum([len(value.__pydantic_fields_set__) for value in values])


def _unknown(_: Any) -> int:
    return UNKNOWN


def _is_plain(field: FieldInfo) -> bool:
    validated = any(type(item).__name__.endswith("Validator") for item in field.metadata)
    return not validated and _holds_no_keys(field.annotation)


def _holds_no_keys(annotation: Any) -> bool:
    if annotation in _SCALARS or annotation is None:
        return True
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return all(type(member.value) in _SCALARS for member in annotation)
    origin = typing.get_origin(annotation)
    if origin is typing.Literal:
        return True
    if origin in (list, typing.Union, types.UnionType):
        return all(_holds_no_keys(part) for part in typing.get_args(annotation))
    return False
