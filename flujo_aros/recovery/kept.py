"""Whether a value says what the text behind it said: what was right must stay, what is new must be told."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar, cast

from flujo_aros.contract.output import Contract
from flujo_aros.contract.schema import JsonSchema, is_dict
from flujo_aros.contract.values import path_of
from flujo_aros.errors import ContractError
from flujo_aros.outcome import Accepted, Issue, Outcome, Reason, Rejected, Repair, Risk, Trust
from flujo_aros.reading.read import read
from flujo_aros.recovery.places import Place, place_of, schema_at, value_at

T = TypeVar("T")

_NOWHERE: Final = object()
_NO_PLACE: Final = frozenset({"missing", "required", "truncated", "changed"})
"""Issues that say nothing against what stands there."""
_NUMBER: Final = re.compile(r"-?\d+(?:[.,]\d+)*(?:[eE][+-]?\d+)?")
_ESCAPE: Final = re.compile(r"\\(?:u(?P<code>[0-9A-Fa-f]{4})|[nrt\\])?")
_MAX_CHARS: Final = 120


def keeping(outcome: Outcome[T], failing: Rejected, contract: Contract[T], *, cut: bool = False) -> Outcome[T]:
    """The outcome, or a rejection where an accepted value changes what was right in the failing output.

    With `cut`, the output ended too early: its last value may go on, and its lists may be longer.
    """
    if not isinstance(outcome, Accepted) or failing.draft is None or contract.mode != "json":
        return outcome
    plain = _plain(outcome.text, contract.json_schema)
    if plain is None:
        return outcome
    issues = tuple(_changes(failing.draft.value, plain.value, failing.issues, contract.json_schema, cut=cut))
    return Rejected(Reason.INVALID, issues, outcome.text) if issues else outcome


def grounded(outcome: Outcome[T], source: str, contract: Contract[T]) -> Outcome[T]:
    """The outcome, with every value in it that does not stand in the source told as an inferred repair."""
    if not isinstance(outcome, Accepted) or contract.mode != "json":
        return outcome
    plain = _plain(outcome.text, contract.json_schema)
    if plain is None:
        return outcome
    words, numbers = _words_of(source), set(_numbers(source))
    new = tuple(
        Repair("not-in-output", Risk.INFERRED, path_of(place), (0, 0), "", str(leaf)[:80])
        for place, leaf in _leaves(plain.value, ())
        if not _is_choice(schema_at(contract.json_schema, place)) and not _stands_in(leaf, words, numbers)
    )
    if not new:
        return outcome
    trust = Trust.INFERRED if outcome.trust in (Trust.CLEAN, Trust.LOSSLESS) else outcome.trust
    return replace(outcome, repairs=(*outcome.repairs, *new), trust=trust)


def _plain(text: str, schema: JsonSchema) -> Accepted[Any] | None:
    """The value of a text as plain JSON, with the names of the schema; None where that cannot be told."""
    try:
        plain: Outcome[Any] = read(text, schema, truncated=False)
    except ContractError:  # what a type says of itself may be more than a JSON Schema can
        return None
    return plain if isinstance(plain, Accepted) else None


def _changes(draft: Any, value: Any, issues: Sequence[Issue], schema: JsonSchema, *, cut: bool) -> Iterator[Issue]:
    wrong = [place for issue in issues if issue.code not in _NO_PLACE and (place := place_of(issue.path)) is not None]
    leaves = list(_leaves(draft, ()))
    for place, leaf in leaves[:-1] if cut else leaves:
        if any(_touch(place, other) for other in wrong) or schema_at(schema, place) is None:
            continue
        if not _same(leaf, value_at(value, place, _NOWHERE)):
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


def _leaves(value: Any, place: Place) -> Iterator[tuple[Place, Any]]:
    if is_dict(value):
        for key, inner in value.items():
            yield from _leaves(inner, (*place, key))
    elif isinstance(value, list):
        for index, inner in enumerate(cast("Sequence[Any]", value)):
            yield from _leaves(inner, (*place, index))
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


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, str) and isinstance(other, str):
        return _folded(one) == _folded(other)
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def _is_choice(schema: JsonSchema | None) -> bool:
    """Whether the schema gives the values to choose from, so that the wording of the source does not matter."""
    return schema is None or "enum" in schema or "const" in schema or "default" in schema


def _stands_in(leaf: Any, words: str, numbers: set[float]) -> bool:
    if leaf is None or isinstance(leaf, bool) or leaf == "":
        return True
    if isinstance(leaf, (int, float)):
        return leaf in numbers or _folded(str(leaf)) in words
    return not isinstance(leaf, str) or _folded(leaf.replace("\\", "")) in words


def _words_of(source: str) -> str:
    """A text to look for values in, which are written in it with or without the escapes of JSON."""
    if "\\" not in source:
        return _folded(source)
    said = _ESCAPE.sub(_said, source).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    plain = source.replace("\\", "")
    return f"{_folded(said)}\n{_folded(plain)}"


def _said(escape: re.Match[str]) -> str:
    if escape["code"]:
        return chr(int(escape["code"], 16))
    return " " if escape.group()[-1] in "nrt" else ""


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _numbers(text: str) -> Iterator[float]:
    for found in _NUMBER.findall(text):
        for form in {found, found.replace(",", ""), found.replace(".", "").replace(",", "."), found.replace(",", ".")}:
            try:
                yield float(form)
            except ValueError:
                continue
