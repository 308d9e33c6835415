"""The value of a step with the trust of each field.

The journal keeps no values, only what they were read from: the reply is read once more, and the value is shown only
if that comes to the same as when it was recorded.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from pydantic_core import to_jsonable_python

from flujo_aros.contract.values import path_of
from flujo_aros.errors import UsageError
from flujo_aros.outcome import Accepted, Outcome, Repair, Trust
from flujo_aros.reading.read import read
from flujo_aros.telemetry.records import Chapter, Story
from flujo_aros.telemetry.replay import recorded_contract, replay

_MOST_ROWS: Final = 2_000
_OF_WHOLE: Final = (Trust.SYNTHESIZED, Trust.DEGRADED)
_CUT: Final = ("length", "content_filter")


@dataclass(frozen=True, slots=True)
class Field:
    """One line of a value: how deep it stands, its key, its JSON, and what it is worth (None for a container)."""

    depth: int
    key: str
    text: str
    path: str
    trust: str | None
    codes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """A value with its fields; or, in `why_not`, why it cannot be shown."""

    fields: tuple[Field, ...] = ()
    more: int = 0
    """How many lines were left out."""
    trust: str = ""
    origin: str = ""
    why_not: str = ""


def shown_value(chapter: Chapter, story: Story) -> Shown | None:
    """The value that a step came to; None where it came to none, or where no model was asked for one."""
    step = chapter.step
    status = story.run.status if step is None else step.status
    if not chapter.readings or status not in ("success", "completed"):
        return None
    if not any(reading.outcome == "accepted" for reading in chapter.readings):
        return Shown(why_not="No reply was accepted: the value was made by a stage, and the journal keeps no values.")
    try:
        found = _read_again(chapter, story)
    except UsageError as error:
        return Shown(why_not=f"The journal keeps no values, and this one cannot be read again: {error}.")
    if found is None:
        return Shown(why_not="The journal keeps no values, and the recorded replies do not read as the same one now.")
    lines = list(_lines(found))
    value = lines[:_MOST_ROWS]
    return Shown(tuple(value), len(lines) - len(value), found.trust.value, found.origin)


def _read_again(chapter: Chapter, story: Story) -> Accepted[Any] | None:
    """What was accepted, from its own reply or, where it was put together, from all of them."""
    final = chapter.final
    if final is None or not final.text or not final.whole:
        raise UsageError("its reply was not kept as a whole")
    contract = recorded_contract(story.contracts.get(final.schema_hash or "", ""))
    cut = True if final.finish_reason in _CUT else None
    same = _same(read(final.text, contract, truncated=cut), final.trust)
    if same is not None:
        return Accepted(same.value, same.trust, final.stage, same.repairs, same.text)
    alone = Story(story.run, (chapter,), story.contracts)
    replayed = list(replay(alone, contract=contract))
    return _same(replayed[-1].outcome, final.trust) if replayed else None


def _same(outcome: Outcome[Any] | None, trust: str | None) -> Accepted[Any] | None:
    return outcome if isinstance(outcome, Accepted) and outcome.trust.value == trust else None


def _lines(accepted: Accepted[Any]) -> Iterator[Field]:
    repairs: defaultdict[str, list[Repair]] = defaultdict(list)
    for repair in accepted.repairs:
        repairs[repair.path].append(repair)
    whole = accepted.trust if accepted.trust in _OF_WHOLE else None
    value = to_jsonable_python(accepted.value, by_alias=True, fallback=str)
    yield from _of_member(value, (), repairs, whole)


def _of_member(
    value: Any, place: tuple[str | int, ...], repairs: Mapping[str, list[Repair]], whole: Trust | None
) -> Iterator[Field]:
    path, depth = path_of(place), len(place)
    key = place[-1] if place and isinstance(place[-1], str) else ""
    own = repairs.get(path, [])
    codes = tuple(dict.fromkeys(repair.code for repair in own))
    members = list(_members(value))
    if not members:
        trust = whole or Trust.of(own)
        yield Field(depth, key, json.dumps(value, ensure_ascii=False), path, trust.value, codes)
        return
    opens, closes = ("{", "}") if isinstance(value, dict) else ("[", "]")
    yield Field(depth, key, opens, path, Trust.of(own).value if own else None, codes)
    for name, member in members:
        yield from _of_member(member, (*place, name), repairs, whole)
    yield Field(depth, "", closes, "", None, ())


def _members(value: Any) -> Iterator[tuple[str | int, Any]]:
    if isinstance(value, dict):
        yield from cast("dict[str, Any]", value).items()
    elif isinstance(value, list):
        yield from enumerate(cast("list[Any]", value))
