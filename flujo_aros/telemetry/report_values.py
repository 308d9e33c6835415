"""The value of a step with the trust of each field.

The journal keeps no values, only what they were read from: the reply is read once more, and the value is shown only
if that comes to the same as when it was recorded.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import to_jsonable_python

from flujo_aros.contract import NOT_JSON, path_of
from flujo_aros.errors import UsageError
from flujo_aros.json_data import is_dict, is_list
from flujo_aros.outcome import Accepted, Repair, Risk, Trust
from flujo_aros.reading.read import read
from flujo_aros.recovery import Ladder
from flujo_aros.telemetry.records import Chapter, JournalReading, JournalRepair, Story
from flujo_aros.telemetry.replay import recorded_contract, replay

_MOST_ROWS: Final = 2_000
_OF_WHOLE: Final = (Trust.SYNTHESIZED, Trust.DEGRADED)
_PUT_TOGETHER: Final = ("resume", "patch")
"""Stages whose reply is only a part of what was accepted."""
_CUT: Final = ("length", "content_filter")


@dataclass(frozen=True, slots=True)
class Field:
    """One line of a value: its depth, key and JSON, and its trust (None for a container)."""

    depth: int
    key: str
    text: str
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
    final = chapter.final
    if final is None or final.outcome != "accepted":
        return Shown(why_not="No reply was accepted: the value was made by a stage, and the journal keeps no values.")
    try:
        found = _read_again(chapter, final, story)
    except UsageError as error:
        return Shown(why_not=f"The journal keeps no values, and this one cannot be read again: {error}.")
    if found is NOT_JSON:
        return Shown(why_not="The journal keeps no values, and the recorded replies do not read as the same one now.")
    lines = list(_lines(found, final))
    value = lines[:_MOST_ROWS]
    return Shown(tuple(value), len(lines) - len(value), final.trust or "", final.stage)


def _read_again(chapter: Chapter, final: JournalReading, story: Story) -> Any:
    """What was accepted, from its own reply or, where it was put together, from all of them."""
    if not final.text or not final.whole:
        raise UsageError("its reply was not kept as a whole")
    contract = recorded_contract(story.contracts.get(final.schema_hash or "", ""))
    cut = True if final.finish_reason in _CUT else None
    if final.stage not in _PUT_TOGETHER:
        risk = Risk.LOSSY if final.trust == Trust.LOSSY else None
        alone = read(final.text, contract, truncated=cut, risk=risk)
        if isinstance(alone, Accepted) and _edits(alone.repairs) <= _edits(final.repairs):
            return alone.value
    for ladder in (None, _ladder_that_ran(chapter)):
        replayed = list(replay(Story(story.run, (chapter,), story.contracts), contract=contract, ladder=ladder))
        again = replayed[-1].outcome
        if isinstance(again, Accepted) and _edits(again.repairs) == _edits(final.repairs):
            return again.value
    return NOT_JSON


def _edits(repairs: Iterable[Repair | JournalRepair]) -> set[tuple[str, tuple[int, int]]]:
    return {(repair.code, repair.span) for repair in repairs}


def _ladder_that_ran(chapter: Chapter) -> Ladder | None:
    """A ladder of the stages that ran; their options are not in the journal, so the outcome may differ."""
    names = dict.fromkeys(stage.stage for stage in chapter.stages if stage.outcome != "passed")
    stages = [{"stage": name, "model": "recorded"} if name == "escalate" else {"stage": name} for name in names]
    return Ladder.model_validate({"stages": stages}) if stages else None


def _lines(value: Any, final: JournalReading) -> Iterator[Field]:
    plain = to_jsonable_python(value, by_alias=True, fallback=str)
    known = set(_places(plain, ()))
    repairs: defaultdict[str, list[JournalRepair]] = defaultdict(list)
    for repair in final.repairs:
        path = repair.path
        while path and path not in known:  # what was left out is told where it was
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        repairs[path or "$"].append(repair)
    whole = final.trust if final.trust in _OF_WHOLE else None
    yield from _of_member(plain, (), repairs, whole)


def _places(value: Any, place: tuple[str | int, ...]) -> Iterator[str]:
    yield path_of(place)
    for name, member in _members(value):
        yield from _places(member, (*place, name))


def _of_member(
    value: Any, place: tuple[str | int, ...], repairs: Mapping[str, list[JournalRepair]], whole: str | None
) -> Iterator[Field]:
    path, depth = path_of(place), len(place)
    key = place[-1] if place and isinstance(place[-1], str) else ""
    own = repairs.get(path, [])
    codes = tuple(dict.fromkeys(repair.code for repair in own))
    members = list(_members(value))
    if not members:
        yield Field(depth, key, json.dumps(value, ensure_ascii=False), whole or _worst(own) or "clean", codes)
        return
    opens, closes = ("{", "}") if is_dict(value) else ("[", "]")
    yield Field(depth, key, opens, _worst(own), codes)
    for name, member in members:
        yield from _of_member(member, (*place, name), repairs, whole)
    yield Field(depth, "", closes, None, ())


def _worst(repairs: list[JournalRepair]) -> str | None:
    risks = (Risk[repair.risk.upper()] for repair in repairs)
    return max(risks).name.lower() if repairs else None


def _members(value: Any) -> Iterator[tuple[str | int, Any]]:
    if is_dict(value):
        yield from value.items()
    elif is_list(value):
        yield from enumerate(value)
