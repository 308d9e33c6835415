"""One run as one HTML page: what was asked, what came back, what was repaired, and what the value is worth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any, Final

import jinja2
from markupsafe import Markup

from flujo_aros.outcome import Trust
from flujo_aros.telemetry.records import Chapter, JournalStep, Story
from flujo_aros.telemetry.report_steps import Section, sections
from flujo_aros.telemetry.words import code_words, cost_words, counted, repair_words, time_words, token_words

_TONES: Final = {
    **dict.fromkeys(("success", "completed", "clean", "accepted"), "good"),
    **dict.fromkeys(("lossless", "paused", "running"), "calm"),
    **dict.fromkeys(("inferred", "degraded", "cancelled"), "warn"),
    **dict.fromkeys(("failed", "rejected", "lossy", "lost", "interrupted"), "bad"),
    "synthesized": "made",
}
_SIGNS: Final = {"good": "✓", "calm": "•", "warn": "▲", "bad": "✕", "made": "◆", "plain": "–"}
_ODD: Final = {
    **{code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"},
    0x7F: 0x2421,
    # What turns the direction of text around could make a reply look like another one.
    **{code: f"‹U+{code:04X}›" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200B, 0xFEFF)},
    **dict.fromkeys(range(0xD800, 0xE000), 0xFFFD),
}


@dataclass(frozen=True, slots=True)
class Bar:
    """A line of the timeline: when something was under way, in percent of the whole run."""

    name: str
    anchor: str
    depth: int
    kind: str
    tone: str
    left: float
    width: float
    seconds: float | None
    ended: str


def report_html(run: Story) -> str:
    """The run as one HTML page that needs nothing else: no network, no script, no font.

    Texts stand in it as the journal keeps them, with secrets masked, and escaped: nothing that a model wrote can be
    anything but text.

    >>> from flujo_aros.telemetry.records import JournalRun
    >>> from flujo_aros.usage import Usage
    >>> head = dict(run_id="r1", pipeline="boats", kind="pipeline", status="completed", started=0.0, seconds=1.0)
    >>> "<title>boats: completed</title>" in report_html(Story(JournalRun(**head, usage=Usage()), ()))
    True
    """
    steps = list(sections(run))
    return _template().render(
        run=run.run,
        sections=steps,
        bars=list(_bars(run, steps)),
        seconds=_seconds(run),
        trust=_worst(chapter.step for chapter in run.chapters),
        troubles=[section for section in steps if _is_trouble(section)],
        edited=any(section.repairs for section in steps),
        version=version("flujo_aros"),
    )


def _is_trouble(section: Section) -> bool:
    return section.step is not None and section.step.status in ("failed", "degraded", "lost") and not section.has_steps


def _worst(steps: Iterable[JournalStep | None]) -> str | None:
    """The least trust that any step has."""
    order = [trust.value for trust in Trust]
    return max((step.trust for step in steps if step and step.trust in order), key=order.index, default=None)


def _seconds(story: Story) -> float:
    """How long all of it took, also where the run has not ended."""
    return max(max(_ends(story)) - story.run.started, 1e-6)


def _ends(story: Story) -> Iterator[float]:
    yield story.run.started + (story.run.seconds or 0.0)
    for chapter in story.chapters:
        parts = [*chapter.asks, *chapter.stages, *([chapter.step] if chapter.step else [])]
        yield from (part.started + (part.seconds or 0.0) for part in parts)


def _bars(story: Story, steps: Iterable[Section]) -> Iterator[Bar]:
    total, began = _seconds(story), story.run.started

    def bar(section: Section, started: float, seconds: float | None, **told: Any) -> Bar:
        left = min(max((started - began) / total * 100, 0.0), 99.5)
        lasted = total - (started - began) if seconds is None else seconds
        width = min(max(lasted / total * 100, 0.5), 100 - left)
        return Bar(anchor=section.anchor, left=round(left, 2), width=round(width, 2), seconds=seconds, **told)

    for section in steps:
        step, depth = section.step, section.depth
        if step is not None:
            told = {"name": section.name, "kind": "step", "tone": tone(step.status), "ended": step.status}
            yield bar(section, step.started, step.seconds, depth=depth, **told)
        yield from (
            bar(section, each.pop("started"), each.pop("seconds"), depth=depth + 1, **each)
            for each in _within(section.chapter)
        )


def _within(chapter: Chapter) -> Iterator[dict[str, Any]]:
    """The calls and stages of a step, in order."""
    ran = {stage.stage for stage in chapter.stages if stage.outcome != "passed"}
    lines: list[tuple[int, dict[str, Any]]] = []
    for ask in chapter.asks:
        told = {"started": ask.started, "seconds": ask.seconds, "kind": "call", "tone": "bad" if ask.fault else "calm"}
        stage = f"{ask.stage} " if ask.stage in ran else ""
        name = f"{stage}call {ask.attempt}" + (f" {ask.model}" if ask.model else "")
        lines.append((ask.id, {**told, "name": name, "ended": "no answer" if ask.fault else "answered"}))
    for stage in chapter.stages:
        if stage.outcome != "passed":
            told = {"started": stage.started, "seconds": stage.seconds, "kind": "stage", "tone": tone(stage.outcome)}
            lines.append((stage.id, {**told, "name": stage.stage, "ended": stage.outcome}))
    return (line for _, line in sorted(lines, key=lambda each: each[0]))


def tone(word: str | None) -> str:
    """The kind of colour that a word of status, trust or risk has."""
    return _TONES.get(word or "", "plain")


def _seen(value: Any) -> Any:
    """A text as it can be shown: what is no letter is made visible."""
    return value.translate(_ODD) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("flujo_aros", "telemetry"),
        autoescape=True,
        finalize=_seen,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"code": code_words, "time": time_words, "cost": cost_words, "tokens": token_words}
    environment.filters |= {"tone": tone, "sign": lambda word: _SIGNS[tone(word)], "repair": repair_words}
    environment.globals |= {"counted": counted}
    return environment.get_template("report.html.j2")
