"""When each step, call and stage of a run was under way, as bars."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, Literal, TypeAlias

from flujo_aros.telemetry.records import Chapter, JournalAsk, JournalStage, JournalStep, Story
from flujo_aros.telemetry.report_steps import Section

_NARROWEST: Final = 0.5
_Timed: TypeAlias = JournalStep | JournalAsk | JournalStage


@dataclass(frozen=True, slots=True)
class Bar:
    """A line of the timeline: `left` and `width` are percents of the whole run."""

    name: str
    anchor: str
    depth: int
    kind: Literal["step", "call", "stage"]
    ended: str
    left: float
    width: float
    seconds: float | None


def seconds_of(story: Story) -> float:
    """How long all of it took, also where the run has not ended."""
    ends = [story.run.started + (story.run.seconds or 0.0)]
    for chapter in story.chapters:
        ends += [each.started + (each.seconds or 0.0) for each in _timed(chapter)]
    return max(max(ends) - story.run.started, 1e-6)


def bars(story: Story, sections: Iterable[Section]) -> Iterator[Bar]:
    """One for each step, and under it one for each of its calls and the stages that ran; up to the end of the run
    where something did not end itself.
    """
    total = seconds_of(story)
    for section in sections:
        ran = {stage.stage for stage in section.chapter.stages if stage.outcome != "passed"}
        for each in _timed(section.chapter):
            since = each.started - story.run.started
            left = min(max(since / total * 100, 0.0), 100 - _NARROWEST)
            lasted = total - since if each.seconds is None else each.seconds
            width = min(max(lasted / total * 100, _NARROWEST), 100 - left)
            name, kind, ended = _told(each, ran)
            depth = section.depth + (kind != "step")
            yield Bar(name, section.anchor, depth, kind, ended, round(left, 2), round(width, 2), each.seconds)


def _timed(chapter: Chapter) -> list[_Timed]:
    within: list[JournalAsk | JournalStage] = [*chapter.asks]
    within += [stage for stage in chapter.stages if stage.outcome != "passed"]
    return [*([chapter.step] if chapter.step else []), *sorted(within, key=attrgetter("id"))]


def _told(each: _Timed, ran: set[str]) -> tuple[str, Literal["step", "call", "stage"], str]:
    if isinstance(each, JournalStep):
        return each.name, "step", each.status
    if isinstance(each, JournalStage):
        return each.stage, "stage", each.outcome
    words = [each.stage if each.stage in ran else "", f"call {each.attempt}", each.model]
    ended = "failed" if each.fault else "running" if each.seconds is None else "answered"
    return " ".join(word for word in words if word), "call", ended
