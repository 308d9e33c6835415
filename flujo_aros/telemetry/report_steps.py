"""What a report shows of each step: its calls, replies and stages in order, its value and its schema."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from flujo_aros.outcome import Reason, Risk
from flujo_aros.telemetry.formatting import next_words
from flujo_aros.telemetry.records import Chapter, JournalAsk, JournalReading, JournalStage, JournalStep, Part, Story
from flujo_aros.telemetry.reply import Edit, Piece, numbered, pieces
from flujo_aros.telemetry.report_values import Shown, shown_value

_LISTED: Final = 30
"""How many repairs of a reply are listed before the rest is folded away."""
_LONGEST_PROMPT: Final = 6_000


@dataclass(frozen=True, slots=True)
class Call:
    """A model call."""

    ask: JournalAsk
    kind: str = "call"

    @property
    def prompt(self) -> str:
        """What the model was told, as far as it is shown."""
        return self.ask.prompt[:_LONGEST_PROMPT]

    @property
    def more(self) -> int:
        """How many characters of the prompt are left out."""
        return max(0, len(self.ask.prompt) - _LONGEST_PROMPT)


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply as it was written, with its repairs in place."""

    reading: JournalReading
    edits: tuple[Edit, ...]
    marked: tuple[Piece, ...]
    anchor: str
    kind: str = "reply"

    @property
    def listed(self) -> tuple[Edit, ...]:
        """The repairs that are listed at once: all, or the riskiest of them."""
        riskiest = sorted(self.edits, key=lambda edit: -Risk[edit.risk.upper()])[:_LISTED]
        return tuple(sorted(riskiest, key=lambda edit: edit.number))

    @property
    def folded(self) -> tuple[Edit, ...]:
        """The repairs that are listed only when asked for."""
        listed = {edit.number for edit in self.listed}
        return tuple(edit for edit in self.edits if edit.number not in listed)

    @property
    def risks(self) -> tuple[str, ...]:
        """The risks that there are among the repairs."""
        return tuple(
            risk for risk in ("lossless", "inferred", "lossy") if any(e.in_text and e.risk == risk for e in self.edits)
        )


@dataclass(frozen=True, slots=True)
class Rung:
    """A stage of the ladder that ran, with the calls and replies that were its own."""

    stage: JournalStage
    inside: list[Call | Reply] = field(default_factory=list[Call | Reply])
    kind: str = "stage"


@dataclass(frozen=True, slots=True)
class Passed:
    """Stages in a row that did not run."""

    stages: list[JournalStage]
    kind: str = "passed"


@dataclass(frozen=True, slots=True)
class Section:
    """All that is shown of one step."""

    anchor: str
    name: str
    depth: int
    chapter: Chapter
    step: JournalStep | None
    entries: tuple[Call | Reply | Rung | Passed, ...]
    value: Shown | None
    schemas: tuple[str, ...]
    has_steps: bool

    @property
    def repairs(self) -> int:
        """How many repairs were made in it."""
        return sum(len(reading.repairs) for reading in self.chapter.readings)

    @property
    def advice(self) -> str:
        """What a user can do about how it ended."""
        reason = self.step.reason if self.step else None
        issues = self.chapter.readings[-1].issues if self.chapter.readings else ()
        return next_words(Reason(reason), issues) if reason in {each.value for each in Reason} else ""

    @property
    def quiet(self) -> bool:
        """Whether nothing in it needs to be seen at once."""
        return self.step is not None and self.step.status in ("success", "skipped") and not self.repairs


def sections(story: Story) -> Iterator[Section]:
    """One for each step, those inside of another right behind it."""
    inside: defaultdict[int, list[Chapter]] = defaultdict(list)
    for chapter in story.chapters:
        inside[chapter.step.parent_id if chapter.step else 0].append(chapter)
    numbers = count(1)

    def below(parent: int, depth: int) -> Iterator[Section]:
        for chapter in inside[parent]:
            within = chapter.step.id if chapter.step else None
            has_steps = within in inside
            yield _section(chapter, story, f"s{next(numbers)}", depth=depth, has_steps=has_steps)
            if within is not None and has_steps:
                yield from below(within, depth + 1)

    yield from below(0, 0)


def _section(chapter: Chapter, story: Story, anchor: str, *, depth: int, has_steps: bool) -> Section:
    hashes = dict.fromkeys(reading.schema_hash for reading in chapter.readings if reading.schema_hash)
    return Section(
        anchor=anchor,
        name=chapter.name or story.run.pipeline,
        depth=depth,
        chapter=chapter,
        step=chapter.step,
        entries=tuple(_entries(chapter, anchor)),
        value=shown_value(chapter, story),
        schemas=tuple(_pretty(story.contracts[known]) for known in hashes if story.contracts.get(known)),
        has_steps=has_steps,
    )


def _entries(chapter: Chapter, anchor: str) -> Iterator[Call | Reply | Rung | Passed]:
    found: list[Call | Reply | Rung | Passed] = []
    rung: Rung | None = None
    for part in chapter.parts:
        if isinstance(part, JournalStage):
            if part.outcome != "passed":
                rung = Rung(part)
                found.append(rung)
            elif found and isinstance(found[-1], Passed):
                found[-1].stages.append(part)
            else:
                found.append(Passed([part]))
            continue
        entry = _entry(part, anchor)
        if rung is not None and part.stage == rung.stage.stage:
            rung.inside.append(entry)
        else:
            found.append(entry)
    return iter(found)


def _entry(part: Part, anchor: str) -> Call | Reply:
    if isinstance(part, JournalAsk):
        return Call(part)
    assert isinstance(part, JournalReading)  # noqa: S101 - the stages were told apart before
    edits = numbered(part.repairs)
    return Reply(part, edits, tuple(pieces(part.text, edits)), f"{anchor}-{part.id}")


def _pretty(spec: str) -> str:
    return json.dumps(json.loads(spec), indent=2, ensure_ascii=False)
