"""The invariants of the reader that the fuzzers check; each violation is reported in one sentence."""

from __future__ import annotations

import json
import math
import random
import re
from ast import literal_eval
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from flujo_aros import Accepted, Partial, Rejected, StreamReader, read
from flujo_aros.contract import Contract
from flujo_aros.outcome import Outcome

_STEP = re.compile(r"""\.(\w+)|\[(\d+)\]|\[('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\]""")
SIZES = [(1,), (1, 1, 2, 3, 7, 20), (1, 2, 3), (5, 20, 60), (100, 5_000)]
"""The number of characters in each chunk of a stream."""
LOOKS = 12
"""How many partial values of a stream are checked besides the last one; each check takes time linear in its size."""


def read_and_check(
    text: str, contract: Contract[Any], rng: random.Random, *, truncated: bool | None, streamed: bool
) -> tuple[Outcome[Any], list[str]]:
    """Return the outcome of reading a text, and the invariants it violates; with `streamed`, also those of streams."""
    outcome = read(text, contract, truncated=truncated)
    outcome.explain()
    json.dumps(outcome.to_dict(), default=str, ensure_ascii=False).encode()
    broken: list[str] = []
    if isinstance(outcome, Rejected) and not outcome.issues:
        broken.append("a rejection without an issue")
    if isinstance(outcome, Accepted):
        broken += _check_accepted(text, contract, outcome)
    if streamed:
        broken += _check_stream(text, contract, rng, outcome, truncated=truncated)
    return outcome, broken


def _check_accepted(text: str, contract: Contract[Any], outcome: Accepted[Any]) -> Iterator[str]:
    plain = outcome.to_dict()["value"]
    if contract.mode == "json":
        if type(contract.validate(plain)).__name__ == "Invalid":
            yield f"accepted, but not valid: {outcome.value!r}"
        if outcome.trust == "clean" and contract.json_schema.get("type") != "string":
            yield from _check_clean(text, contract, outcome)
    for repair in outcome.repairs:
        start, end = repair.span
        if not 0 <= start <= end <= len(text):
            yield f"a repair outside the text: {repair!r}"


def _check_clean(text: str, contract: Contract[Any], outcome: Accepted[Any]) -> Iterator[str]:
    try:
        plain = json.loads(text)
    except ValueError:
        yield f"clean, but not JSON: {outcome.value!r}"
        return
    if contract.values.strict(plain) is None:
        yield f"clean, but not valid without conversion: {outcome.value!r}"
    elif isinstance(outcome.value, (dict, list)) and plain != outcome.value and not _contains_nan(plain):
        yield f"clean, but different from what `json` reads: {outcome.value!r}"


def _contains_nan(value: Any) -> bool:
    if isinstance(value, float):
        return math.isnan(value)
    return any(
        map(_contains_nan, value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())
    )


def _check_stream(
    text: str, contract: Contract[Any], rng: random.Random, outcome: Outcome[Any], *, truncated: bool | None
) -> Iterator[str]:
    """Check that the outcome does not depend on the chunks, that values only grow, and that final values stay."""
    reader = StreamReader(contract)
    sizes, at, partials = rng.choice(SIZES), 0, list[Partial[Any]]()
    while at < len(text):
        size = rng.choice(sizes)
        partial = reader.feed(text[at : at + size])
        at += size
        if partial is not None:
            partials.append(partial)
    again = reader.close(truncated=truncated)
    if again.to_dict() != outcome.to_dict():
        yield f"chunks give {again.to_dict()!r}, the whole text {outcome.to_dict()!r}"
    begin = max((index for index, partial in enumerate(partials) if partial.restarted), default=0)
    looked = sorted({*rng.sample(range(len(partials)), min(LOOKS, len(partials))), begin, len(partials) - 1} - {-1})
    if not partials:
        return
    yield from _check_growth(partials, looked)
    if isinstance(outcome, Accepted):
        value = outcome.to_dict()["value"]
        for index in looked:
            if index >= begin:
                yield from _check_final(partials[index], value, "outcome")


def _check_growth(partials: Sequence[Partial[Any]], looked: Sequence[int]) -> Iterator[str]:
    for before, after in pairwise(looked):
        if any(partial.restarted for partial in partials[before + 1 : after + 1]):
            continue
        first, second = partials[before], partials[after]
        if not _grows(first.value, second.value):
            yield f"first {first.value!r}, then {second.value!r}, without a restart"
        if not first.final_paths <= second.final_paths:
            yield f"no longer final: {sorted(first.final_paths - second.final_paths)!r}, without a restart"
        else:
            yield from _check_final(first, second.value, "next partial")


def _check_final(partial: Partial[Any], value: Any, where: str) -> Iterator[str]:
    for path in partial.final_paths:
        shown = at(partial.value, path)
        if not same(shown, at(value, path)):
            yield f"final at {path}: {shown!r}, but {at(value, path)!r} in the {where}"


def at(value: Any, path: str) -> Any:
    """Return the value at a path, or a placeholder if there is none."""
    try:
        for key, index, quoted in _STEP.findall(path[1:]):
            value = value[key or (int(index) if index else literal_eval(quoted))]
    except (LookupError, TypeError):
        return "<missing>"
    return value


def same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal; NaN equals NaN."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other or (one != one and other != other)) and isinstance(one, bool) == isinstance(other, bool)


def _grows(before: Any, after: Any) -> bool:
    """Return whether a value is equal to another one or a prefix of it."""
    if isinstance(before, dict):
        return isinstance(after, dict) and all(key in after and _grows(before[key], after[key]) for key in before)
    if isinstance(before, list):
        return isinstance(after, list) and len(before) <= len(after) and all(map(_grows, before, after))
    if isinstance(before, str):
        return isinstance(after, str) and after.startswith(before)
    return same(before, after)
