"""How a value fits its shape before any conversion: unchanged, or inside a wrapper that a model put around it.

`fit` compares JSON with its shape in one walk. It errs on one side only: if it returns `AS_IS`, coercion would return
every part without an edit or an issue. If it finds a reason to convert, coercion decides.

Wrappers are envelopes (`{"result": …}`), tool calls written as text, and the schema's own frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias, cast

from flujo_aros.contract import DECIMAL, TIMES, Shape, fold
from flujo_aros.json_data import is_dict, is_list
from flujo_aros.reading.node import ARRAY, OBJECT, STRING, Member, Node, Path, plain
from flujo_aros.reading.omissions import omission_in
from flujo_aros.reading.phrases import word_set
from flujo_aros.reading.remainder import Answer, contradiction_in
from flujo_aros.reading.remarks import correction_in, remark_in
from flujo_aros.reading.scalars import ANNOUNCING, is_no_value, name_words

AS_IS: Final = 0
"""Coercion returns the value without an edit or an issue."""
OTHER_SCALARS: Final = 1
"""A scalar in it may have to be converted or rejected."""
OTHER_KEYS: Final = 2
"""It has a key that the schema does not name."""
FOREIGN_KEYS: Final = 4
"""It has a key that the schema does not name, in an object for which the schema names keys."""
OTHER_CONTAINERS: Final = 8
"""An object or a list in it may have to be converted, completed or rejected."""
CONVERTS: Final = OTHER_SCALARS | OTHER_CONTAINERS
"""Something in it may have to be converted, renamed or rejected."""

_MAX_BRANCHES: Final = 64
_MOST_TRIED: Final = 200
_SCALARS: Final[dict[type, str]] = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
_NO_STRINGS: Final[frozenset[str]] = frozenset()


class Misfit(NamedTuple):
    """A scalar that may have to be converted: `holder[key]`, the type expected there, and its path."""

    holder: Any
    key: Any
    shape: Shape
    path: Path


class Scalars(NamedTuple):
    """The scalars that a shape accepts unchanged: by class, and for some classes by value."""

    classes: frozenset[type]
    """Classes whose every scalar is accepted."""
    strings: frozenset[str]
    """Strings that are accepted."""
    nullable: bool
    """Whether all strings are accepted but those for a missing value, which become null."""

    def hold(self, value: Any) -> bool:
        """Return whether a scalar whose class is not in `classes` is accepted unchanged anyway."""
        if value.__class__ is not str:
            return False
        return value in self.strings or (self.nullable and not is_no_value(value))


class Plan(NamedTuple):
    """The facts about a shape that `fit` needs; created once and stored with the shape."""

    scalars: Scalars
    members: dict[Any, Place]
    required: frozenset[str] | None
    """The required keys, or None if no object fits here unchanged."""
    array: bool
    """Whether a list fits here unchanged."""
    element: Place | None
    """What is expected of each element, or None if that depends on the index."""


Place: TypeAlias = "tuple[frozenset[type], Scalars, Shape]"
"""What is expected at a key or an index. The classes of `Scalars` come first, because most values need nothing else."""


def fit(
    value: Any, shape: Shape, fuel: list[int] | None = None, misfits: list[Misfit] | None = None, path: Path = None
) -> int:
    """Return how an object or a list fits a shape: `AS_IS`, or flags for the reasons against it.

    `fuel` is the number of alternatives that may still be tried; once it is used up, everything counts as possibly in
    need of conversion. `misfits` collects the scalars after `OTHER_SCALARS`, in the order of the text.
    """
    if shape.branches and not shape.properties:
        return _fit_branch(value, shape, [_MOST_TRIED] if fuel is None else fuel)
    plan: Plan = shape.plan or _plan(shape)
    parts: Iterable[tuple[Any, Any]]
    kind: type = value.__class__
    if kind is dict:
        found = AS_IS if plan.required is not None and plan.required <= value.keys() else OTHER_CONTAINERS
        parts, same = value.items(), None
    else:
        found = AS_IS if plan.array else OTHER_CONTAINERS
        same = plan.element
        if same is not None and same[0].issuperset(map(type, value)):
            return found  # a list of scalars that all stay unchanged
        parts = enumerate(cast("list[Any]", value))
    members = plan.members
    for key, part in parts:
        known = same or members.get(key)
        if known is not None:
            classes, scalars, inner = known
            if part.__class__ in classes:
                continue
        else:
            flags, scalars, inner = _undeclared(key, shape)
            found |= flags
        if found & FOREIGN_KEYS:
            return found
        kind = part.__class__
        if kind is dict or kind is list:
            found |= fit(part, inner, fuel, misfits, (path, key))
        elif kind not in scalars.classes and not scalars.hold(part):
            found |= OTHER_SCALARS
            if misfits is not None:
                misfits.append(Misfit(value, key, inner, (path, key)))
    return found


def _undeclared(key: str | int, shape: Shape) -> tuple[int, Scalars, Shape]:
    """Return the reasons against a key that the shape does not name, and the shape expected at that key or index."""
    if isinstance(key, int):
        flags, inner = AS_IS, shape.element(key)
    else:
        flags, inner = OTHER_KEYS, shape.member(key)
        if shape.keys:
            flags |= FOREIGN_KEYS | CONVERTS
        elif not (shape.anything or shape.keeps(key)):
            flags |= CONVERTS
    return flags, (inner.plan or _plan(inner)).scalars, inner


def _fit_branch(value: Any, shape: Shape, fuel: list[int]) -> int:
    """Return the fit of the first alternative that accepts the value unchanged, else the flags common to all
    alternatives.
    """
    found = AS_IS
    for branch in shape.branches:
        fuel[0] -= 1
        if fuel[0] < 0:
            return CONVERTS | OTHER_KEYS | FOREIGN_KEYS
        part = fit(value, branch, fuel)
        if part == AS_IS:
            return AS_IS
        found |= part
    return found | CONVERTS


def _plan(shape: Shape) -> Plan:
    names = [name for name, real in shape.keys.items() if name == real]
    element = None if shape.prefix else shape.element(0)
    objects = shape.anything or (shape.choices is None and shape.allows("object"))
    lists = shape.anything or (shape.choices is None and shape.allows("array"))
    members = {name: _place(shape.member(name)) for name in names}
    required, each = shape.required if objects else None, None if element is None else _place(element)
    plan = Plan(_scalars(shape), members, required, lists, each)
    shape.plan = plan
    return plan


def _place(shape: Shape) -> Place:
    scalars = _scalars(shape)
    return scalars.classes, scalars, shape


def _scalars(shape: Shape) -> Scalars:
    if shape.anything:
        return Scalars(frozenset(_SCALARS), _NO_STRINGS, nullable=False)
    if shape.branches and not shape.properties:
        parts = [_scalars(branch) for branch in shape.branches[:_MAX_BRANCHES]] if not shape.time_forms else []
        classes = frozenset(kind for part in parts for kind in part.classes)
        strings = frozenset(string for part in parts for string in part.strings)
        return _of_classes(classes, strings, nullable=shape.allows("null"))
    if shape.choices is not None:
        return Scalars(frozenset(), frozenset(c for c in shape.choices if isinstance(c, str)), nullable=False)
    classes = frozenset(kind for kind, name in _SCALARS.items() if shape.allows(name))
    if float in classes:
        classes |= {int}
    if shape.format in TIMES:
        classes -= {str}
    if shape.format == DECIMAL:
        classes -= {float}
    return _of_classes(classes, _NO_STRINGS, nullable=shape.allows("null"))


def _of_classes(classes: frozenset[type], strings: frozenset[str], *, nullable: bool) -> Scalars:
    return Scalars(classes - {str} if nullable else classes, strings, nullable=nullable and str in classes)


# --- wrappers ---------------------------------------------------------------------------------------------------------

_CALL: Final = frozenset(
    {"name", "arguments", "args", "parameters", "params", "input", "id", "type", "function", "tool", "tool_name"}
)
_PAYLOAD: Final = ("arguments", "parameters", "args", "params", "input", "function")
_SCHEMA_WORDS: Final = word_set(
    "$schema $defs $id title type properties required description additionalProperties definitions"
)
WRAPPING: Final = _CALL | _SCHEMA_WORDS
"""Keys that an object wrapped around the answer may have."""
_TYPES: Final = frozenset({"string", "integer", "number", "boolean", "object", "array", "null"})


_DISOWNING: Final = word_set(
    "old older previous prev prior before original initial example examples sample template placeholder"
    " rejected wrong incorrect"
    " invalid bad input inputs request draft schema format expected alternative alternatives deleted"
    " removed deprecated outdated"
    " error errors failed failure failures exception default defaults baseline reference"
    " beispiel beispiele vorher alt falsch entwurf exemple exemples ancien ejemplo ejemplos anterior esempio exemplo"
    " 示例 例"
)
"""Names of members that hold something other than the answer."""
_ENVELOPES: Final = word_set(
    "result results output outputs data value values response content payload json object item items list"
    " count total number amount sum score text return returned is"
)
"""Keys that mark the scalar in them as an answer; words that announce an answer do the same."""
_WHOLES: Final = word_set(
    "result results output outputs data values response content payload json object items list answer answers"
    " map mapping dict dictionary"
)
"""Keys that mark the object in them, whatever its keys, as the answer; plurals and words of its title do the same."""
_FAILURES: Final = word_set(
    "error errors failure exception refusal refused warning_fatal fehler erreur erreurs errore erro 错误 エラー"
)
_DENIALS: Final = (
    _DISOWNING
    | _FAILURES
    | word_set(
        "refused declined missing excluded ignored skipped omitted discarded false not no reason reasons warnings"
    )
)
"""Keys that mark the list in them as something other than the answer."""
_CORRECTIONS: Final = word_set("correction corrections erratum errata corrigendum amendment amendments retraction")
_REMARKS: Final = word_set("note notes comment comments remark remarks warning warnings caveat caveats")
_CORRECTED: Final = _CORRECTIONS | word_set("corrected revised amended retracted changes patch diff edits overrides")
_SUPERSEDING: Final = _CORRECTED | word_set("fixed final new updated actual latest correct true real")
_SUCCESSES: Final = word_set("success ok valid isvalid found done complete completed finished")
_STATES: Final = word_set("status state outcome result type kind verdict message statuscode httpstatus code")
_BAD_STATES: Final = word_set(
    "error failed failure fail invalid rejected incomplete partial cancelled canceled denied refused"
    " notfound unknown example"
    " sample draft template outdated needsreview unverified unconfirmed tentative preliminary provisional"
)
_BAD_CODES: Final = range(400, 600)
_NOTHING: Final = word_set("none null no na nil false keine keiner ninguno ninguna aucun aucune")
"""Values of a member that report no error."""
_COMPLETE: Final = word_set("isfinal iscomplete complete final valid isvalid reliable isreliable correct iscorrect")
_ALTERNATIVES: Final = word_set("alternative alternatives alternates otheroptions otheranswers candidates")
_UNCERTAIN: Final = word_set(
    "uncertain unsure unverified unconfirmed guessed guesses assumed estimated illegible unclear"
)
_INCOMPLETE: Final = word_set("hasmore morefollows truncated istruncated incomplete isincomplete partial ispartial")
_CONTINUED: Final = word_set("next nextpage nextcursor nextpagetoken nexttoken cursor continuation")
_LENGTHS: Final = word_set("count itemcount totalcount numitems length")
_MARKED: Final = word_set(
    "example isexample sample placeholder dummy mock draft isdraft test hypothetical stale outdated superseded"
)
_THOUGHTS: Final = word_set(
    "reasoning thought thoughts thinking analysis explanation rationale scratchpad plan steps cot"
    " chainofthought reflection"
)
_BESIDE: Final = _THOUGHTS | word_set("reason confidence certainty probability")
"""Names of members next to an answer that contain no part of it."""
_FORMER: Final = word_set(
    "old older previous prev prior former example wrong incorrect invalid rejected bad deleted removed deprecated"
    " outdated dummy mock placeholder"
)
_NEGATING: Final = word_set("not never dont")


def disowns(key: str) -> bool:
    """Return whether the key of a member says that it holds something other than the answer.

    >>> [disowns(key) for key in ("input", "previous_order", "expectedFormat", "order", "draft_email")]
    [True, True, True, False, False]
    """
    words = name_words(key)
    if fold(key) in _DISOWNING or not _NEGATING.isdisjoint(words):
        return True
    return bool(words) and (words[0] in _FORMER or _DISOWNING.issuperset(words))


def contradiction(members: list[Member], inner: Member, shape: Shape) -> str | None:
    """Return the reason why the other members of an envelope cast doubt on the answer in it, or None if they are
    harmless.
    """
    if disowns(inner.key):
        return f"{inner.key!r} is not the name of an answer"
    answer = Answer(shape, lambda: plain(inner.node))
    for member in members:
        if member is inner:
            continue
        name, node = fold(member.key), member.node
        value = node.value
        if _has_field(node, shape):
            return f"{member.key!r} next to it also has fields of the answer"
        word = fold(value) if isinstance(value, str) else ""
        if (
            reports_failure(member)
            or (name in _CORRECTIONS and value not in (None, False, "", []))
            or (name in _SUCCESSES and (value is False or word in ("false", "no")))
            or (name in _STATES and (word in _BAD_STATES or value in _BAD_CODES))
            or (name in _MARKED and value not in (None, False, ""))
            or (name in _INCOMPLETE and value is True)
            or (name in _CONTINUED and value not in (None, False, ""))
            or (name in _LENGTHS and inner.node.kind == ARRAY and value != len(inner.node.value))
        ):
            return f"{member.key!r} next to it says that this is not an answer"
        said = value if name not in _THOUGHTS and isinstance(value, str) else ""
        if said and (correction_in(said, answer.tagger) or contradiction_in(said, answer)):
            return f"{member.key!r} next to it retracts or corrects it"
    return None


def reports_failure(member: Member) -> bool:
    """Return whether a member says that the values next to it are an error report or an example.

    >>> reports_failure(Member("error", 0, Node(STRING, "not found", 0, 0)))
    True
    """
    name, value = fold(member.key), member.node.value
    if name in _FAILURES:
        return value not in (None, False, "", []) and not (isinstance(value, str) and fold(value) in _NOTHING)
    return name in _MARKED and value is True


def corrects(member: Member, values: Mapping[str, Any], shape: Shape) -> bool:
    """Return whether an undeclared member retracts something: a `correction`, a `corrected_age` or `final_age` that
    differs from `age`, or a `note` that says so.
    """
    value = member.node.value
    words = name_words(member.key)
    rest = [word for word in words if word not in _SUPERSEDING]
    name, strings = fold(member.key), _strings_in(member.node)
    if strings and _REMARKS.issuperset(words):
        text = "\n".join(strings)
        answer = Answer(shape, lambda: values)
        return bool(omission_in(text) or remark_in(text, answer.tagger) or contradiction_in(text, answer))
    if strings and not _UNCERTAIN.isdisjoint(words):
        return any(values.get(shape.name_of(each) or each) not in (None, "", []) for each in strings)
    if isinstance(value, bool) and name in (_INCOMPLETE if value else _COMPLETE):
        return True
    if name in _ALTERNATIVES:
        nodes: list[Node] = member.node.value if member.node.kind == ARRAY else [member.node]
        return any(_has_field(node, shape) for node in nodes)
    if name in _CONTINUED and value not in (None, False, "", 0):
        return True
    if value is True and words[-1:] == ["truncated"]:
        return True
    if len(rest) == len(words) or value in (None, "", []) or (isinstance(value, bool) and not rest):
        return False
    if not rest:
        holds_fields = _has_field(member.node, shape)
        is_object = member.node.kind == OBJECT and not _CORRECTED.isdisjoint(words)
        return holds_fields or is_object or not _CORRECTIONS.isdisjoint(words)
    field = shape.folded.get("".join(rest))
    return field is not None and field in values and plain(member.node) != values[field]


def _has_field(node: Node, shape: Shape) -> bool:
    """Return whether a node is an object with a declared key."""
    parts: list[Member] = node.value if node.kind == OBJECT else []
    return any(part.key in shape.keys for part in parts)


def _strings_in(node: Node) -> list[str]:
    """Return a string, or the strings in a list."""
    parts: list[Node] = node.value if node.kind == ARRAY else [node]
    return [part.value for part in parts if part.kind == STRING]


def is_call(keys: Iterable[str], shape: Shape) -> str | None:
    """Return the name of the member that holds the arguments, if these are the keys of a tool call and not of the
    contract.
    """
    written = {str(key).lower(): key for key in keys}  # the keys of a map may be numbers
    if len(written) < 2 or not written.keys() <= _CALL or {"name", "arguments"} <= shape.keys.keys():
        return None  # the contract is itself a tool call
    return next((written[name] for name in _PAYLOAD if name in written and written[name] not in shape.keys), None)


def is_call_or_envelope(value: object, shape: Shape) -> bool:
    """Return whether valid JSON is a tool call or an envelope that only a permissive schema would
    accept as the answer.
    """
    if is_list(value):  # `[{…}]` where only the fields of an object are declared
        return len(value) == 1 and means_object(shape) and is_dict(value[0]) and any(k in shape.keys for k in value[0])
    if shape.anything or not is_dict(value):
        return False
    name = is_call(value, shape)
    if name is not None:
        inner = value[name]
        return is_dict(inner) or (isinstance(inner, str) and inner.lstrip()[:1] == "{")
    frame = value.get("properties")
    if is_dict(frame) and value.keys() <= _SCHEMA_WORDS and "properties" not in shape.keys:
        return any(key in shape.keys and not is_dict(part) for key, part in frame.items())
    if shape.required or not shape.keys:
        return False
    if any(key in shape.keys or any(branch.keeps(key) for branch in shape.branches) for key in value):
        return False
    parts = [part for key, part in value.items() if fold(key) not in _BESIDE]
    return len(parts) == 1 and is_dict(parts[0]) and any(key in shape.keys for key in parts[0])


def means_object(shape: Shape) -> bool:
    """Return whether a schema without a type declares the fields of an object, and nothing else."""
    return bool(shape.properties) and not shape.types and not shape.branches and shape.items is None


def inner_of(node: Node, shape: Shape) -> Node | None:
    """Return the node inside an envelope, or None if `node` is not an envelope for this shape (or already fits it)."""
    members: list[Member] = node.value
    written = {member.key for member in members}
    known = sum(1 for key in written if shape.knows(key))
    if (call := is_call(written, shape)) is not None:
        found = next(member.node for member in members if member.key == call)
        if found.kind == OBJECT or holds_json(found):
            return _unwrap_deeper(found, shape)
    if (known and (known == len(written) or not shape.required)) or has_required(written, shape):
        return None
    if "properties" in written and written <= _SCHEMA_WORDS and "properties" not in shape.keys:
        frame = next(member.node for member in members if member.key == "properties")
        return values_in(node) if is_schema(node) else frame if frame.kind == OBJECT else None
    values = shape.additional if isinstance(shape.additional, Shape) else None
    declares = len(members) == 1 and (shape.keys or (values is not None and _names_a_map(members[0].key, shape)))
    if declares and (members[0].node.kind in (OBJECT, ARRAY) or _holds_answer(members[0].node, shape)):
        return None if disowns(members[0].key) else _unwrap_deeper(members[0].node, shape)
    return None


def _names_a_map(name: str, shape: Shape) -> bool:
    """Return whether a key only names the map in its value, and cannot be a key of the map itself: `result` or
    `word_counts`."""
    words = name_words(name)
    plural = words[-1:] and words[-1].removesuffix("s") in _ENVELOPES | ANNOUNCING and words[-1].endswith("s")
    return bool(plural) or _WHOLES.union(name_words(shape.note)).issuperset(words)


def has_required(written: Iterable[str], shape: Shape) -> bool:
    """Return whether there are required keys and all of them are among these."""
    return bool(shape.required) and shape.required <= {shape.name_of(k) for k in written}


def may_hold(name: str, node: Node, shape: Shape) -> bool:
    """Return whether a member of an envelope with other members can be the answer, judged by its type and one of its
    keys.
    """
    if shape.allows("object"):
        inner = _unwrap_deeper(node, shape) if is_neutral(name) else node
        inner = inner.value[0] if inner.kind == ARRAY and len(inner.value) == 1 else inner
        if inner.kind == OBJECT:
            return any(shape.knows(member.key) for member in inner.value)
        return _holds_answer(node, shape)
    return shape.allows("array") and node.kind == ARRAY and bool(node.value)


def payload_of(node: Node, shape: Shape) -> Node | None:
    """Return the list or scalar inside an envelope: its only member apart from thoughts, or the arguments of a call."""
    members: list[Member] = node.value
    named = {member.key: member.node for member in members}
    if (call := is_call(named, shape)) is not None:
        found = named[call]
        if found.kind == OBJECT:
            return payload_of(found, shape)
        return found if found.kind == ARRAY and shape.allows("array") else None
    answers = [member for member in members if fold(member.key) not in _BESIDE]
    if len(answers) != 1 or contradiction(members, answers[0], shape) is not None:
        return None
    key, inner = answers[0].key, answers[0].node
    named_so = len(members) == 1 or is_neutral(key)
    return inner if named_so and inner.kind != OBJECT and _may_hold(key, inner, shape) else None


def is_neutral(name: str) -> bool:
    """Return whether a key only announces an answer, and does not describe it: `result`, but not `dog`."""
    return _ENVELOPES.union(ANNOUNCING).issuperset(name_words(name))


def _may_hold(name: str, inner: Node, shape: Shape) -> bool:
    """Return whether a key may wrap the answer: `result` or `priority`, but not `error_code` or `rejected`."""
    words = set(name_words(name))
    if inner.kind == ARRAY:
        return not words & _DENIALS
    return words <= _ENVELOPES | ANNOUNCING | set(name_words(shape.note))


def _unwrap_deeper(node: Node, shape: Shape) -> Node:
    if node.kind == OBJECT:
        return (inner_of(node, shape) if shape.keys else None) or node
    if node.kind == ARRAY and len(node.value) == 1 and node.value[0].kind == OBJECT and not shape.allows("array"):
        return _unwrap_deeper(node.value[0], shape)
    return node


def holds_json(node: Node) -> bool:
    """Return whether a node is a string that may contain an object or a list."""
    return node.kind == STRING and node.value.lstrip()[:1] in ("{", "[")


def _holds_answer(node: Node, shape: Shape) -> bool:
    """Return whether a string may contain the answer as JSON, and is not itself one of the values of a map."""
    values = shape.additional if isinstance(shape.additional, Shape) else None
    return holds_json(node) and bool(shape.keys or (values is not None and not values.allows("string")))


def is_schema(node: Node) -> bool:
    """Return whether an object is a JSON Schema and not data: its `properties` are themselves schemas."""
    if node.kind != OBJECT:
        return False
    members: dict[str, Node] = {member.key: member.node for member in node.value}
    frame = members.get("properties")
    if frame is None or frame.kind != OBJECT:
        return "$schema" in members or "$ref" in members
    inner: list[Member] = frame.value
    return bool(inner) and all(_is_subschema(member.node) for member in inner)


def values_in(schema: Node) -> Node | None:
    """Return the object that a schema was filled with, if each property has a `value` next to its type.

    >>> from flujo_aros.reading.parser import Parser
    >>> parsed = Parser('{"properties": {"a": {"type": "string", "value": "x"}}}', 0).parse()
    >>> plain(values_in(parsed.node))
    {'a': 'x'}
    """
    frame = next((member.node for member in schema.value if member.key == "properties"), None)
    if frame is None or frame.kind != OBJECT:
        return None
    values: list[Member] = []
    for member in frame.value:
        parts: dict[str, Node] = {part.key: part.node for part in member.node.value if member.node.kind == OBJECT}
        if not {"type", "value"} <= parts.keys() <= _FILLED:
            return None
        values.append(Member(member.key, member.start, parts["value"]))
    return Node(OBJECT, values, frame.start, frame.end)


_FILLED: Final = word_set("type value title description format enum")
"""Keywords of a property that may be next to its value."""


def _is_subschema(node: Node) -> bool:
    if node.kind != OBJECT:
        return False
    members: dict[str, Node] = {member.key: member.node for member in node.value}
    kind = members.get("type")
    if kind is not None:
        named = kind.value if kind.kind == STRING else None
        return named in _TYPES or kind.kind == ARRAY
    return any(key in members for key in ("$ref", "anyOf", "oneOf", "allOf", "enum", "const", "items"))
