"""V-O6: two branches of a union can be satisfied by the same value."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any, ClassVar, Final

from flujo_aros.blueprint.schemas import parts_of
from flujo_aros.contract import JsonSchema
from flujo_aros.json_data import follow_refs, is_dict, is_list
from flujo_aros.lint.finding import Finding, Severity
from flujo_aros.lint.rule import Rule, key_span
from flujo_aros.lint.schemas import schemas_of
from flujo_aros.lint.subject import Subject

# Words that this rule cannot judge: two branches that have one may well be apart.
_OPAQUE: Final = frozenset(
    ("pattern", "format", "not", "if", "allOf", "contains", "patternProperties", "dependentRequired")
)
_ANY: Final = frozenset(("object", "array", "string", "number", "boolean", "null"))


class OverlappingUnion(Rule):
    """Two branches of a union can be satisfied by the same value.

    ## What it does

    Compares the branches of `anyOf` and `oneOf` in pairs. Two objects are apart if a required key has other constants
    in each, or if one requires a key that the other forbids; other values are apart by type, constants or range. With
    `oneOf` an overlap is a warning, with `anyOf` an info.

    ## Why is this bad

    A value that satisfies two branches of `oneOf` is invalid, although each branch alone would take it. With `anyOf` it
    counts as the first one, whichever was meant.

    ## Example

    ```yaml
    anyOf:
      - {type: object, properties: {city: {type: string}}}
      - {type: object, properties: {country: {type: string}}}
    ```

    ## Use instead

    ```yaml
    anyOf:
      - type: object
        required: [kind, city]
        properties: {kind: {const: city}, city: {type: string}}
      - type: object
        required: [kind, country]
        properties: {kind: {const: country}, country: {type: string}}
    ```

    ## Fix safety

    There is no fix: only you know what tells the branches apart.
    """

    code: ClassVar[str] = "V-O6"
    name: ClassVar[str] = "overlapping-union"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, subject: Subject) -> Iterator[Finding]:
        """Look at every union of every schema."""
        for schema in schemas_of(subject):
            root: Any = schema.node.plain()
            for path, part in parts_of(schema.node):
                for word in ("oneOf", "anyOf"):
                    union = part.members.get(word)
                    if union is None:
                        continue
                    found = _overlap([each.plain() for each in union.elements], root)
                    if found is None:
                        continue
                    first, second = found
                    message = f"branches {first + 1} and {second + 1} of `{word}` at {path} of {schema.owner} overlap"
                    severity = Severity.WARNING if word == "oneOf" else Severity.INFO
                    yield self.finding(message, key_span(part, word), step=schema.step, severity=severity)


def _overlap(branches: list[Any], root: object) -> tuple[int, int] | None:
    """The first two branches that one value can satisfy."""
    plain = [follow_refs(branch, root) for branch in branches]
    pairs = combinations(range(len(plain)), 2)
    return next(((one, two) for one, two in pairs if not _apart(plain[one], plain[two], root, 0)), None)


def _apart(one: JsonSchema, two: JsonSchema, root: object, depth: int) -> bool:
    """Whether no value can satisfy both, as far as that can be told; where it cannot, they count as apart."""
    if depth > 5 or any(_OPAQUE & part.keys() or "anyOf" in part or "oneOf" in part for part in (one, two)):
        return True
    choices = _choices(one), _choices(two)
    if choices[0] is not None and choices[1] is not None:
        return not choices[0] & choices[1]
    shared = _types(one) & _types(two)
    if not shared:
        return True
    for known, other in ((choices[0], two), (choices[1], one)):
        if known is not None:  # constants against a type without constants of its own
            return not any(_word_of(each) in _types(other) for each in known)
    if shared == {"object"}:
        return _objects_apart(one, two, root, depth)
    return shared == {"number"} and _ranges_apart(one, two)


def _objects_apart(one: JsonSchema, two: JsonSchema, root: object, depth: int) -> bool:
    properties: list[dict[str, Any]] = [part.get("properties") or {} for part in (one, two)]
    required: list[set[str]] = [set(part.get("required") or []) for part in (one, two)]
    for name in required[0] | required[1]:
        if name in properties[0] and name in properties[1]:
            inner = (follow_refs(properties[0][name], root), follow_refs(properties[1][name], root))
            if _apart(*inner, root, depth + 1):
                return True
    for wants, forbids, known in ((required[0], two, properties[1]), (required[1], one, properties[0])):
        if forbids.get("additionalProperties") is False and wants - known.keys():
            return True
    return False


def _choices(schema: JsonSchema) -> set[str] | None:
    values: Any = [schema["const"]] if "const" in schema else schema.get("enum")
    return {repr(value) for value in values} if is_list(values) else None


def _types(schema: JsonSchema) -> set[str]:
    kinds: Any = schema.get("type")
    listed = {str(kind) for kind in kinds} if is_list(kinds) else {str(kinds)}
    if kinds is None:
        listed = {"object"} if is_dict(schema.get("properties")) else set(_ANY)
    return {"number" if kind == "integer" else kind for kind in listed}


def _word_of(shown: str) -> str:
    """The JSON type of a constant, by its `repr`."""
    if shown in ("True", "False"):
        return "boolean"
    starts = {"'": "string", '"': "string", "{": "object", "[": "array", "N": "null"}
    return starts.get(shown[:1], "number")


def _ranges_apart(one: JsonSchema, two: JsonSchema) -> bool:
    def least(schema: JsonSchema) -> float:
        return max(float(schema.get(word, "-inf")) for word in ("minimum", "exclusiveMinimum"))

    def most(schema: JsonSchema) -> float:
        return min(float(schema.get(word, "inf")) for word in ("maximum", "exclusiveMaximum"))

    return most(one) < least(two) or most(two) < least(one)
