"""Whether a value says what the draft behind it said: what was right must stay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeVar, cast

from flujo_aros.contract.output import Contract
from flujo_aros.contract.schema import JsonSchema
from flujo_aros.contract.values import path_of
from flujo_aros.errors import ContractError
from flujo_aros.json_data import is_dict
from flujo_aros.outcome import Accepted, Issue, Outcome, Reason, Rejected
from flujo_aros.reading.read import read
from flujo_aros.recovery.places import Place, place_of, schema_at, value_at

T = TypeVar("T")

_NOWHERE: Final = object()
_NO_PLACE: Final = frozenset({"missing", "required", "truncated", "changed"})
"""Issues that say nothing against what stands there."""
_MAX_CHARS: Final = 120


def keeping(outcome: Outcome[T], failing: Rejected, contract: Contract[T], *, cut: bool = False) -> Outcome[T]:
    """The outcome, or a rejection where an accepted value changes what was right in the failing output.

    With `cut`, the output ended too early: its last value may go on, and its lists may be longer.
    """
    if not isinstance(outcome, Accepted) or failing.draft is None or contract.mode != "json":
        return outcome
    plain = plain_value(outcome.text, contract.json_schema)
    if plain is None:
        return outcome
    issues = tuple(_changes(failing.draft.value, plain.value, failing.issues, contract.json_schema, cut=cut))
    return Rejected(Reason.INVALID, issues, outcome.text) if issues else outcome


def plain_value(text: str, schema: JsonSchema) -> Accepted[Any] | None:
    """The value of a text as plain JSON, with the names of the schema; None where that cannot be told."""
    try:
        plain: Outcome[Any] = read(text, schema, truncated=False)
    except ContractError:  # what a type says of itself may be more than a JSON Schema can
        return None
    return plain if isinstance(plain, Accepted) else None


def _changes(draft: Any, value: Any, issues: Sequence[Issue], schema: JsonSchema, *, cut: bool) -> Iterator[Issue]:
    wrong = [place for issue in issues if issue.code not in _NO_PLACE and (place := place_of(issue.path)) is not None]
    stated = list(leaves(draft))
    for place, leaf in stated[:-1] if cut else stated:
        if any(_touch(place, other) for other in wrong) or schema_at(schema, place) is None:
            continue
        if not same(leaf, value_at(value, place, _NOWHERE)):
            told = repr(leaf) if len(repr(leaf)) <= _MAX_CHARS else f"{repr(leaf)[:_MAX_CHARS]}…"
            yield Issue(path_of(place), "changed", f"it was {told}, which was right, and must stay")
    if not cut:
        yield from _shorter(draft, value, wrong)


def _shorter(draft: Any, value: Any, wrong: Sequence[Place]) -> Iterator[Issue]:
    """Lists without anything wrong in them that have another length now."""
    for place, items in _lists(draft, ()):
        now = value_at(value, place, _NOWHERE)
        other_length = isinstance(now, list) and len(cast("Sequence[Any]", now)) != len(items)
        if other_length and not any(_touch(place, other) for other in wrong):
            yield Issue(path_of(place), "changed", f"it had {len(items)} items, which must stay")


def _touch(one: Place, other: Place) -> bool:
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def leaves(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """The single values of a JSON value with their places; an empty list or object is one."""
    if is_dict(value) and value:
        for key, inner in value.items():
            yield from leaves(inner, (*place, key))
    elif isinstance(value, list) and value:
        for index, inner in enumerate(cast("Sequence[Any]", value)):
            yield from leaves(inner, (*place, index))
    else:
        yield place, value


def _lists(value: Any, place: Place) -> Iterator[tuple[Place, Sequence[Any]]]:
    if is_dict(value):
        for key, inner in value.items():
            yield from _lists(inner, (*place, key))
    elif isinstance(value, list):
        items = cast("Sequence[Any]", value)
        yield place, items
        for index, inner in enumerate(items):
            yield from _lists(inner, (*place, index))


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values say the same, whatever the case and the spacing of texts."""
    if isinstance(one, str) and isinstance(other, str):
        return folded(one) == folded(other)
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def folded(text: str) -> str:
    """A text without its case and its spacing."""
    return " ".join(text.casefold().split())
